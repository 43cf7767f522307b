// SPDX-License-Identifier: GPL-2.0
/*
 * A device with a volatile cache, in memory, for proving the oracle: without
 * a bug the run must find nothing, with each of the bugs it must find it.
 * Spec: BLOCKS[,BUG]. device->lock protects everything.
 */
#include "device.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "oracle.h"

enum bug {
	BUG_NONE,
	BUG_FLUSH,		/* a flush leaves every fourth block behind */
	BUG_FUA,		/* FUA is ignored */
	BUG_TORN,		/* a cut may leave half of a block */
	BUG_MISPLACED,		/* a cut may put a block beside its place */
	BUG_RESURRECT,		/* a discard is never made durable */
	BUG_STALE_READ,		/* some reads miss the cache */
	BUG_OLD_VERSION,	/* a cut may bring back what the flushed data replaced */
	BUG_LOST_WRITE,		/* some writes are acknowledged and dropped */
	BUG_REPLAY,		/* every second cut undoes what the first one had kept */
	NR_BUGS,
};

static const char *const bug_names[NR_BUGS] = {
	[BUG_NONE] = "none", [BUG_FLUSH] = "flush", [BUG_FUA] = "fua", [BUG_TORN] = "torn",
	[BUG_MISPLACED] = "misplaced", [BUG_RESURRECT] = "resurrect",
	[BUG_STALE_READ] = "stale-read", [BUG_OLD_VERSION] = "old-version",
	[BUG_LOST_WRITE] = "lost-write", [BUG_REPLAY] = "replay",
};

struct cell {
	bool dirty;
	bool cleared;			/* the cached state is a discard */
	char cache[BLOCK_BYTES];
	char media[BLOCK_BYTES];
	char before[BLOCK_BYTES];	/* what media was before it last changed */
};

struct memdevice {
	struct device dev;
	pthread_mutex_t lock;
	enum bug bug;
	uint64_t random;
	struct cell *cells;
	bool dead, armed;
	enum cut_kind kind;
	uint64_t value;			/* instant, or writes left */
	unsigned int cuts;
};

static struct memdevice *to_mem(struct device *dev)
{
	return (struct memdevice *)dev;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static unsigned int pick(struct memdevice *mem, unsigned int n)
{
	mem->random = mem->random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(mem->random >> 33) % n;
}

static void persist(struct cell *cell)
{
	memcpy(cell->before, cell->media, BLOCK_BYTES);
	memcpy(cell->media, cell->cache, BLOCK_BYTES);
	cell->dirty = false;
}

static void cut(struct memdevice *mem)
{
	uint64_t i;

	mem->dead = true;
	mem->armed = false;
	mem->cuts++;
	for (i = 0; i < mem->dev.nr_blocks; i++) {
		struct cell *cell = &mem->cells[i];

		if (mem->bug == BUG_OLD_VERSION && !pick(mem, 64))
			memcpy(cell->media, cell->before, BLOCK_BYTES);
		if (mem->bug == BUG_REPLAY && mem->cuts % 2 == 0)
			memcpy(cell->media, cell->before, BLOCK_BYTES);
		if (cell->dirty && pick(mem, 2)) {
			if (mem->bug == BUG_TORN && !pick(mem, 16))
				memcpy(cell->cache, cell->media, BLOCK_BYTES / 2);
			if (mem->bug == BUG_MISPLACED && !pick(mem, 16) && i)
				memcpy(mem->cells[i - 1].media, cell->cache, BLOCK_BYTES);
			persist(cell);
		}
		cell->dirty = false;
	}
}

static bool is_dead(struct memdevice *mem)
{
	if (mem->armed && (mem->kind == CUT_NS ? now_ns() >= mem->value : !mem->value))
		cut(mem);
	return mem->dead;
}

static int mem_read(struct device *dev, uint64_t lba, uint32_t nr, void *data)
{
	struct memdevice *mem = to_mem(dev);
	uint32_t i;
	int err = 0;

	pthread_mutex_lock(&mem->lock);
	if (is_dead(mem))
		err = -EIO;
	for (i = 0; !err && i < nr; i++) {
		struct cell *cell = &mem->cells[lba + i];
		bool miss = mem->bug == BUG_STALE_READ && !pick(mem, 64);

		memcpy((char *)data + (size_t)i * BLOCK_BYTES,
		       cell->dirty && !miss ? cell->cache : cell->media, BLOCK_BYTES);
	}
	pthread_mutex_unlock(&mem->lock);
	return err;
}

static void put(struct memdevice *mem, uint64_t lba, const void *data)
{
	struct cell *cell = &mem->cells[lba];

	if (data && mem->bug == BUG_LOST_WRITE && !pick(mem, 256))
		return;
	cell->dirty = true;
	cell->cleared = !data;
	if (data)
		memcpy(cell->cache, data, BLOCK_BYTES);
	else
		memset(cell->cache, 0, BLOCK_BYTES);
	if (mem->armed && mem->kind != CUT_NS && mem->value)
		mem->value--;
}

static int mem_write(struct device *dev, uint64_t lba, uint32_t nr, const void *data,
		     unsigned int flags)
{
	struct memdevice *mem = to_mem(dev);
	uint32_t i;
	int err = 0;

	pthread_mutex_lock(&mem->lock);
	if (is_dead(mem))
		err = -EIO;
	for (i = 0; !err && i < nr; i++) {
		put(mem, lba + i, (const char *)data + (size_t)i * BLOCK_BYTES);
		if (flags & WRITE_FUA && mem->bug != BUG_FUA)
			persist(&mem->cells[lba + i]);
	}
	pthread_mutex_unlock(&mem->lock);
	return err;
}

static int mem_clear(struct device *dev, uint64_t lba, uint32_t nr, enum clear_kind kind)
{
	struct memdevice *mem = to_mem(dev);
	uint32_t i;
	int err = 0;

	(void)kind;
	pthread_mutex_lock(&mem->lock);
	if (is_dead(mem))
		err = -EIO;
	for (i = 0; !err && i < nr; i++)
		put(mem, lba + i, NULL);
	pthread_mutex_unlock(&mem->lock);
	return err;
}

static int mem_flush(struct device *dev)
{
	struct memdevice *mem = to_mem(dev);
	uint64_t i;
	int err = 0;

	pthread_mutex_lock(&mem->lock);
	if (is_dead(mem))
		err = -EIO;
	for (i = 0; !err && i < mem->dev.nr_blocks; i++) {
		struct cell *cell = &mem->cells[i];

		if (mem->bug == BUG_FLUSH && i % 4 == 0)
			continue;
		if (mem->bug == BUG_RESURRECT && cell->cleared)
			continue;
		if (cell->dirty)
			persist(cell);
	}
	pthread_mutex_unlock(&mem->lock);
	return err;
}

static int mem_mount(struct device *dev, const struct tuning *tuning)
{
	(void)tuning;
	return to_mem(dev)->dead ? -EIO : 0;
}

static int mem_unmount(struct device *dev)
{
	return mem_flush(dev);
}

static int mem_disturb(struct device *dev, enum disturbance what, const struct tuning *tuning)
{
	(void)dev;
	(void)what;
	(void)tuning;
	return 0;
}

static int mem_format(struct device *dev)
{
	struct memdevice *mem = to_mem(dev);

	memset(mem->cells, 0, mem->dev.nr_blocks * sizeof(*mem->cells));
	return 0;
}

static int mem_check(struct device *dev)
{
	(void)dev;
	return 0;
}

static int mem_fault(struct device *dev, enum fault fault, uint64_t where)
{
	(void)dev;
	(void)fault;
	(void)where;
	return 0;
}

static int mem_slow_die(struct device *dev, uint64_t where, unsigned int percent)
{
	(void)dev;
	(void)where;
	(void)percent;
	return -EOPNOTSUPP;
}

static unsigned int mem_log_room(struct device *dev)
{
	(void)dev;
	return 0;
}

static int mem_fault_rates(struct device *dev, unsigned int reads, unsigned int writes)
{
	(void)dev;
	(void)reads;
	(void)writes;
	return 0;
}

static int mem_arm(struct device *dev, enum cut_kind kind, uint64_t value)
{
	struct memdevice *mem = to_mem(dev);

	pthread_mutex_lock(&mem->lock);
	mem->armed = true;
	mem->kind = kind;
	mem->value = kind == CUT_NS ? now_ns() + value : value;
	pthread_mutex_unlock(&mem->lock);
	return 0;
}

static bool mem_dead(struct device *dev)
{
	struct memdevice *mem = to_mem(dev);
	bool dead;

	pthread_mutex_lock(&mem->lock);
	dead = is_dead(mem);
	pthread_mutex_unlock(&mem->lock);
	return dead;
}

static int mem_power_cycle(struct device *dev)
{
	struct memdevice *mem = to_mem(dev);

	if (!mem_dead(dev))
		cut(mem);
	mem->dead = false;
	return 0;
}

static bool mem_disarm(struct device *dev)
{
	struct memdevice *mem = to_mem(dev);

	if (mem_dead(dev))
		return false;
	mem->armed = false;
	return true;
}

static void mem_describe(struct device *dev)
{
	printf("power %s, %" PRIu64 " blocks\n", mem_dead(dev) ? "off" : "on", dev->nr_blocks);
}

static const struct device_ops mem_ops = {
	.read = mem_read, .write = mem_write, .flush = mem_flush, .clear = mem_clear,
	.mount = mem_mount, .unmount = mem_unmount, .disturb = mem_disturb, .format = mem_format, .check = mem_check,
	.fault = mem_fault, .slow_die = mem_slow_die, .log_room = mem_log_room,
	.fault_rates = mem_fault_rates, .arm = mem_arm, .dead = mem_dead,
	.power_cycle = mem_power_cycle, .describe = mem_describe, .disarm = mem_disarm,
};

struct device *memdevice_open(const char *spec, uint64_t seed)
{
	struct memdevice *mem = calloc(1, sizeof(*mem));
	char *end;
	int i;

	if (!mem)
		return NULL;
	mem->dev.ops = &mem_ops;
	mem->dev.nr_blocks = strtoull(spec, &end, 10);
	mem->random = seed;
	if (*end == ',') {
		for (i = 0; i < NR_BUGS && strcmp(end + 1, bug_names[i]); i++)
			;
		if (i == NR_BUGS) {
			fprintf(stderr, "mem: unknown bug '%s'\n", end + 1);
			free(mem);
			return NULL;
		}
		mem->bug = i;
	}
	mem->cells = calloc(mem->dev.nr_blocks, sizeof(*mem->cells));
	if (!mem->cells) {
		free(mem);
		return NULL;
	}
	pthread_mutex_init(&mem->lock, NULL);
	return &mem->dev;
}
