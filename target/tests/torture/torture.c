// SPDX-License-Identifier: GPL-2.0
/*
 * The torture run: rounds of work on a device, each ended by a power cut at a
 * moment drawn from the seed, each followed by a mount and the oracle's
 * judgement of every block. Runs in a guest; everything that it does follows
 * from its seed and from the (virtual) clock.
 *
 *   torture [-s seed] [-n cuts] [-c n] [-w seconds] [-j] [-v]
 *	   [-f | -o times | -z rounds | -x images | -r file |
 *	   -l file] mem:BLOCKS[,BUG] | dm:SPEC | stripe:DRIVES
 *
 * With -j the oracle's events go to the journal of the flash (notes.h). With -r the file gets what a
 * device holds that a run of this seed has left. With -l the histories of a file follow each other
 * (history.h).
 *
 * With -f allocations fail instead: first each allocation of a mount or an administrator's command,
 * one after the other, then many at once under load. With -z the cuts leave a media image, which is
 * then damaged and mounted, so many times. With -x each image has one wrong field, and GC is
 * forced. With -o the device is overwritten so many times while reads, writes and zones fail;
 * nothing may be lost, and neither latency nor memory may grow.
 *
 * Prints a line a round (-v), each violation with the history of its block, and
 * one line of JSON. Exit status: 0 nothing found, 1 violations, 2 cannot run,
 * 3 hang (a watchdog reports it, with the kernel's blocked tasks, and panics).
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "allocfail.h"
#include "device.h"
#include "fuzz.h"
#include "history.h"
#include "notes.h"
#include "oracle.h"

#define MAX_WORKERS	12u
#define MAX_IO_BLOCKS	16u	/* of a read or write: 64 KiB */
#define CHECK_BLOCKS	64u	/* of a read of the checker */
#define FULL_EVERY	4u	/* rounds in which every block is read */
#define STORM_RATE	100u	/* failing reads and writes in a million */
#define STORM_TRIES	5u	/* of a read that fails */
#define STORM_STEPS	10u
#define HOT_PLACES	16u
#define LATENCIES	40u	/* powers of two of nanoseconds */
#define MOST_PAUSES	8u	/* in a row in which no operation ends */
#define MAX_FAULTS	3u	/* of a device: each may cost it a zone */
#define JUDGE_EVERY	16u	/* mounts with a failed allocation */
#define LEAK_SCANS	3	/* one object is reported by the second that sees it */
#define LEAK_SECONDS	3	/* between them: kmemleak lets it get 5 seconds old */

enum round_kind {
	ROUND_WORK,		/* cut under load */
	ROUND_FLUSH,		/* cut after the load and a flush: each block holds its newest version */
	ROUND_STOP,		/* cut in the middle of a clean stop, or just after it */
	ROUND_MOUNT,		/* cuts while mounting, then again */
	ROUND_IDLE,		/* cut without a write since the last one */
	ROUND_LOG,		/* cut while the superblock log goes from one zone to the other */
	NR_ROUND_KINDS,
};

static const char *const round_names[NR_ROUND_KINDS] = {
	"work", "flush", "stop", "mount", "idle", "log",
};

static const char *const cut_names[] = {
	[CUT_NS] = "after ns", [CUT_PROGRAMS] = "at program", [CUT_RESETS] = "at reset",
};

enum action {
	DO_WRITE, DO_FUA, DO_NOWAIT, DO_READ, DO_FLUSH, DO_DISCARD, DO_ZEROES, NR_ACTIONS,
};

static const char *const action_names[NR_ACTIONS] = {
	"write", "fua", "nowait", "read", "flush", "discard", "zeroes",
};

enum pattern {
	UNIFORM, HOT, SEQUENTIAL, SKEWED, NR_PATTERNS,
};

struct plan {
	enum round_kind kind;
	struct tuning tuning;
	unsigned int workers;
	unsigned int weight[NR_ACTIONS];
	enum pattern pattern[MAX_WORKERS];
	unsigned int hot_blocks;	/* where HOT workers meet... */
	unsigned int hot_ops;		/* ...for so many operations; then somewhere else */
	uint64_t hot_place;
	unsigned int max_blocks;	/* of a read or write */
	unsigned int max_clear;
	bool race;			/* workers may overlap on a block */
	bool disturb;
	unsigned int only;		/* that disturbance; NR_DISTURBANCES: each of them */
	bool flush;			/* at the end of the work */
	unsigned int ops;		/* of all workers, at most */
	long think_ns;			/* that a worker rests after each, at most; 0: never */
	enum cut_kind cut;
	uint64_t cut_value;
	unsigned int cut_flush;		/* or when so many flushes were acknowledged, 0: not so */
	unsigned int mount_cuts;
	enum fault fault;
	uint64_t fault_where;
	unsigned int slow_percent;	/* of one die, 0: none is slow */
	bool fill;			/* before the work: GC has to move what it finds */
};

struct worker {
	pthread_t thread;
	unsigned int index;
	uint64_t random;
	uint64_t next;			/* of a sequential worker */
	void *data;
	struct op op;
};

/* Shared by the threads: constants of the run, then of the round, then counters. */
static struct device *dev;
static struct oracle *oracle;
static bool verbose;
static unsigned int hang_seconds = 30;	/* a stop takes over 6 with the slowest die */
static unsigned int faults, worn_zones;
static const struct plan *plan;
static atomic_bool stop;
static atomic_uint ops_done;
static atomic_uint flushes_done;
static atomic_uint violations;
static atomic_ulong done[NR_ACTIONS];
static bool storming;			/* reads may fail, and are tried again */
static atomic_ulong retries, written;	/* reads, blocks */
static unsigned long write_goal;	/* blocks at which a step of the storm ends */
static atomic_ulong latency[LATENCIES];	/* of writes, by log2 of ns */

static const char *_Atomic phase = "start";
static atomic_uint phase_number;
static atomic_uint all_ops;		/* that ended */

static uint64_t random64(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static unsigned int below(uint64_t *state, uint64_t n)
{
	return (unsigned int)(random64(state) % n);
}

/* Between 2^low and 2^high, evenly in the exponent. */
static uint64_t magnitude(uint64_t *state, unsigned int low, unsigned int high)
{
	unsigned int bits = low + below(state, high - low);

	return (1ull << bits) + random64(state) % (1ull << bits);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void enter(const char *name)
{
	atomic_store(&phase, name);
	atomic_fetch_add(&phase_number, 1);
}

static void tell_kernel(const char *path, char key)
{
	int fd = open(path, O_WRONLY);

	if (fd >= 0 && write(fd, &key, 1) != 1)
		perror(path);
	if (fd >= 0)
		close(fd);
}

/* No phase, nor any operation in it, for hang_seconds: then something waits for ever. */
static void *watchdog(void *arg)
{
	unsigned int now, last = 0, waited = 0;
	const char *keys = "tlc";

	(void)arg;
	while (waited < hang_seconds) {
		sleep(1);
		now = atomic_load(&phase_number) + atomic_load(&all_ops);
		waited = now == last ? waited + 1 : 0;
		last = now;
	}
	printf("HANG in %s\n", atomic_load(&phase));
	fflush(stdout);
	dev->ops->describe(dev);
	fflush(stdout);
	/* A process with a blocked thread cannot exit: the kernel has to stop. */
	tell_kernel("/proc/sys/kernel/printk", '8');
	while (*keys)
		tell_kernel("/proc/sysrq-trigger", *keys++);
	_exit(3);
}

static void violation(const char *format, ...)
{
	va_list args;

	if (atomic_fetch_add(&violations, 1) >= 16)
		return;
	va_start(args, format);
	printf("VIOLATION ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
}

/* An operation failed: fine if the power is off, else it must not. */
static void failed(enum action action, uint64_t lba, int err)
{
	if (action == DO_NOWAIT && (err == -EAGAIN || err == -EOPNOTSUPP))
		return;
	if (!dev->ops->dead(dev))
		violation("%s of block %" PRIu64 " failed with the power on: %s",
			  action_names[action], lba, strerror(-err));
	atomic_store(&stop, true);
}

static uint64_t choose_block(struct worker *worker, unsigned int nr)
{
	uint64_t room = dev->nr_blocks - nr, a, b, place;

	switch (plan->pattern[worker->index]) {
	case HOT:
		/*
		 * What a hot spot leaves behind when it moves keeps its last version. It goes round
		 * few places, so that older versions are on flash, to come back by mistake.
		 */
		place = plan->hot_place + atomic_load(&ops_done) / plan->hot_ops;
		place = random64(&place) % HOT_PLACES * (dev->nr_blocks / HOT_PLACES);
		return (place + below(&worker->random, plan->hot_blocks)) % room;
	case SEQUENTIAL:
		a = worker->next <= room ? worker->next : 0;
		worker->next = a + nr;
		return a;
	case SKEWED:
		a = random64(&worker->random) % 65536;
		b = a * a >> 16;
		return room * (b * b >> 16) >> 16;
	default:
		return random64(&worker->random) % room;
	}
}

static enum action choose_action(struct worker *worker)
{
	unsigned int i, sum = 0, x;

	for (i = 0; i < NR_ACTIONS; i++)
		sum += plan->weight[i];
	x = below(&worker->random, sum);
	for (i = 0; x >= plan->weight[i]; i++)
		x -= plan->weight[i];
	return i;
}

/* What was flushed must be there even if the power goes at once, and no later flush helps. */
static void count_flush(void)
{
	if (atomic_fetch_add(&flushes_done, 1) + 1 == plan->cut_flush)
		dev->ops->arm(dev, CUT_NS, 0);
}

static void do_flush(struct worker *worker)
{
	int err;

	oracle_flush_begin(oracle, &worker->op);
	err = dev->ops->flush(dev);
	if (err) {
		failed(DO_FLUSH, 0, err);
	} else {
		oracle_flush_end(oracle, &worker->op);
		count_flush();
	}
}

static void do_read(struct worker *worker, uint64_t lba, unsigned int nr)
{
	unsigned int found, tries = 0;
	int err;

	oracle_read_begin(oracle, &worker->op, lba, nr);
	do {
		err = dev->ops->read(dev, lba, nr, worker->data);
		atomic_fetch_add(&retries, tries > 0);
	} while (err && storming && ++tries < STORM_TRIES);
	if (err) {
		failed(DO_READ, lba, err);
		return;
	}
	found = oracle_read_end(oracle, &worker->op, worker->data);
	if (found) {
		atomic_fetch_add(&violations, found);
		atomic_store(&stop, true);
	}
}

/* What the map says now; after a cut recovery makes another one. */
static void read_device(struct worker *worker)
{
	unsigned int nr;
	uint64_t lba;

	enter("read all");
	atomic_store(&stop, false);
	for (lba = 0; lba < dev->nr_blocks && !atomic_load(&stop); lba += nr) {
		nr = dev->nr_blocks - lba < CHECK_BLOCKS ? (unsigned int)(dev->nr_blocks - lba) :
			CHECK_BLOCKS;
		do_read(worker, lba, nr);
		atomic_fetch_add(&all_ops, 1);
	}
}

static void do_write(struct worker *worker, enum action action, uint64_t lba, unsigned int nr)
{
	unsigned int flags = action == DO_FUA ? WRITE_FUA : action == DO_NOWAIT ? WRITE_NOWAIT : 0;
	enum begun begun = oracle_begin(oracle, &worker->op, lba, nr, false, plan->race);
	uint64_t start;
	int err;

	if (begun == FLUSH_FIRST)
		do_flush(worker);
	if (begun != BEGUN)
		return;
	oracle_fill(oracle, &worker->op, worker->data);
	start = now_ns();
	err = dev->ops->write(dev, lba, nr, worker->data, flags);
	atomic_fetch_add(&latency[63 - __builtin_clzll((now_ns() - start) | 1)], 1);
	if (atomic_fetch_add(&written, nr) + nr >= write_goal && storming)
		atomic_store(&stop, true);
	oracle_end(oracle, &worker->op, !err, action == DO_FUA);
	if (err)
		failed(action, lba, err);
	else if (action == DO_FUA)
		count_flush();
}

/* Every block that is zeroes: a full device has little garbage, and GC has to move much. */
static void fill_device(struct worker *worker)
{
	unsigned int nr;
	uint64_t lba;

	enter("fill");
	atomic_store(&stop, false);
	for (lba = 0; lba < dev->nr_blocks && !atomic_load(&stop); lba += nr ? nr : 1) {
		for (nr = 0; nr < MAX_IO_BLOCKS && lba + nr < dev->nr_blocks; nr++)
			if (!oracle_empty(oracle, lba + nr))
				break;
		if (nr)
			do_write(worker, DO_WRITE, lba, nr);
		atomic_fetch_add(&all_ops, 1);
	}
}

static void do_clear(struct worker *worker, enum action action, uint64_t lba, unsigned int nr)
{
	int err;

	if (oracle_begin(oracle, &worker->op, lba, nr, true, plan->race) != BEGUN)
		return;
	err = dev->ops->clear(dev, lba, nr,
			      action == DO_DISCARD ? CLEAR_DISCARD : CLEAR_ZEROES);
	oracle_end(oracle, &worker->op, !err, false);
	if (err)
		failed(action, lba, err);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	unsigned long nr_cpus = (unsigned long)sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(worker->index % nr_cpus, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	while (!atomic_load(&stop)) {
		struct timespec think = { .tv_nsec = plan->think_ns ?
					  (long)below(&worker->random, (uint64_t)plan->think_ns) : 0 };
		enum action action = choose_action(worker);
		bool clear = action == DO_DISCARD || action == DO_ZEROES;
		unsigned int nr = 1 + below(&worker->random,
					    clear ? plan->max_clear : plan->max_blocks);
		uint64_t lba = choose_block(worker, nr);

		if (action == DO_FLUSH)
			do_flush(worker);
		else if (action == DO_READ)
			do_read(worker, lba, nr);
		else if (clear)
			do_clear(worker, action, lba, nr);
		else
			do_write(worker, action, lba, nr);
		atomic_fetch_add(&done[action], 1);
		atomic_fetch_add(&all_ops, 1);
		if (atomic_fetch_add(&ops_done, 1) + 1 >= plan->ops && !storming)
			atomic_store(&stop, true);
		if (think.tv_nsec)
			nanosleep(&think, NULL);
	}
	return NULL;
}

/*
 * A suspend without flush waits for no device: it gives back the bios that wait for flash, and they
 * begin anew. So if one follows another faster than flash can be written, no such bio ever ends. After
 * MOST_PAUSES in which none did, let one end.
 */
static void let_one_end(const struct timespec *pause)
{
	static unsigned int ops, pauses;

	pauses = atomic_load(&all_ops) == ops ? pauses + 1 : 0;
	ops = atomic_load(&all_ops);
	while (pauses >= MOST_PAUSES && atomic_load(&all_ops) == ops && !atomic_load(&stop))
		nanosleep(pause, NULL);
}

/* The administrator: interferes while the workers run. */
static void *disturb(void *arg)
{
	struct worker *worker = arg;

	while (!atomic_load(&stop)) {
		struct timespec pause = { 0, (long)magnitude(&worker->random, 14, 21) };
		enum disturbance what = plan->only;
		int err;

		if (what == NR_DISTURBANCES)
			what = below(&worker->random, NR_DISTURBANCES);

		nanosleep(&pause, NULL);
		if (what == DISTURB_PAUSE)
			let_one_end(&pause);
		oracle_command(oracle, what);
		err = dev->ops->disturb(dev, what, &plan->tuning);
		if (err) {
			if (!dev->ops->dead(dev))
				violation("disturbance %d failed with the power on: %s", what,
					  strerror(-err));
			atomic_store(&stop, true);
		}
	}
	return NULL;
}

static void run_workers(struct worker *workers, struct worker *admin)
{
	unsigned int i;

	atomic_store(&stop, false);
	atomic_store(&ops_done, 0);
	atomic_store(&flushes_done, 0);
	for (i = 0; i < plan->workers; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	if (plan->disturb)
		pthread_create(&admin->thread, NULL, disturb, admin);
	for (i = 0; i < plan->workers; i++)
		pthread_join(workers[i].thread, NULL);
	if (plan->disturb)
		pthread_join(admin->thread, NULL);
}

static struct plan make_plan(uint64_t *random, unsigned int round)
{
	static const unsigned int lanes[] = { 1, 2, 3, 8 };
	static const unsigned int entries[] = { 64, 128, 512, 2048 };
	static const unsigned int units[] = { 1, 2, 8, 32 };
	struct plan p = { 0 };
	unsigned int i, x = below(random, 100);
	bool meet;

	p.kind = x < 50 || round < 4 ? ROUND_WORK : x < 72 ? ROUND_FLUSH : x < 81 ? ROUND_STOP :
		 x < 92 ? ROUND_MOUNT : x < 94 ? ROUND_IDLE : ROUND_LOG;
	p.tuning.lanes = lanes[below(random, 4)];
	p.tuning.buffer_entries = entries[below(random, 4)];
	p.tuning.write_unit = units[below(random, 4)];
	p.tuning.cost_benefit = below(random, 2);
	p.tuning.placement = below(random, NR_PLACEMENTS);
	p.tuning.append = below(random, 3);
	p.workers = 1 + below(random, MAX_WORKERS);
	p.weight[DO_WRITE] = 10 + below(random, 60);
	p.weight[DO_FUA] = below(random, 3) ? 0 : below(random, 10);
	p.weight[DO_NOWAIT] = below(random, 2) ? 0 : below(random, 20);
	p.weight[DO_READ] = below(random, 30);
	p.weight[DO_FLUSH] = below(random, 3) ? below(random, 4) : 0;
	p.weight[DO_DISCARD] = below(random, 2) ? 0 : below(random, 12);
	p.weight[DO_ZEROES] = below(random, 3) ? 0 : below(random, 6);
	meet = !below(random, 3);
	for (i = 0; i < MAX_WORKERS; i++)
		p.pattern[i] = meet ? HOT : below(random, NR_PATTERNS);
	p.hot_blocks = (unsigned int)magnitude(random, 2, 7);
	p.hot_ops = (unsigned int)magnitude(random, 5, 12);
	p.hot_place = random64(random);
	p.max_blocks = 1 + below(random, below(random, 2) ? 2 : MAX_IO_BLOCKS);
	p.max_clear = below(random, 4) ? 16 : MAX_OP_BLOCKS;
	p.race = !below(random, 4);
	p.disturb = p.kind == ROUND_LOG || !below(random, 3);
	/* A suspend leaves nothing in flight: what follows from a lone checkpoint needs rounds without. */
	p.only = below(random, 2) ? NR_DISTURBANCES : below(random, NR_DISTURBANCES);
	p.flush = p.kind == ROUND_FLUSH || (p.kind == ROUND_MOUNT && below(random, 2));
	p.ops = (unsigned int)magnitude(random, 7, p.flush ? 10 : 12);
	p.cut = below(random, 3) ? CUT_NS : CUT_PROGRAMS;
	/* What a reset took must have been replaced by then. */
	if (p.kind == ROUND_WORK && !below(random, 3))
		p.cut = CUT_RESETS;
	p.cut_value = p.cut == CUT_NS ? magnitude(random, 16, 25) :
		      p.cut == CUT_RESETS ? magnitude(random, 0, 4) : magnitude(random, 2, 10);
	p.mount_cuts = p.kind == ROUND_MOUNT ? 1 + below(random, 3) : 0;
	p.fault = below(random, 3) ? FAULT_NONE : 1 + below(random, NR_FAULTS - 1);
	p.fault_where = random64(random);
	if (p.kind == ROUND_WORK && !below(random, 3)) {
		p.cut_flush = (unsigned int)magnitude(random, 0, 5);
		p.weight[DO_FLUSH] = 1 + below(random, 8);
	}
	if (p.kind == ROUND_STOP)
		p.cut_value = p.cut == CUT_NS ? magnitude(random, 12, 22) : magnitude(random, 0, 6);
	if (p.kind == ROUND_LOG) {
		/* A checkpoint is a few programs, the last of them the record. */
		p.workers = 1;
		p.only = DISTURB_CHECKPOINT;
		p.cut = CUT_PROGRAMS;
		p.cut_value = 1 + below(random, 16);
	}
	/* Blocks that nothing hurries stay in the buffers, while GC and resets go on. */
	p.think_ns = below(random, 4) ? 0 : (long)magnitude(random, 14, 22);
	p.fill = round == 0 || below(random, 2);
	p.slow_percent = below(random, 3) ? 0 : (unsigned int)magnitude(random, 7, 12);
	return p;
}

static unsigned int check_range(uint64_t lba, uint32_t nr, void *data)
{
	unsigned int found = 0;
	uint32_t i;

	if (!dev->ops->read(dev, lba, nr, data))
		return oracle_recovered(oracle, lba, nr, data);
	for (i = 0; i < nr; i++)
		found += dev->ops->read(dev, lba + i, 1, data) ?
			 oracle_unreadable(oracle, lba + i) :
			 oracle_recovered(oracle, lba + i, 1, data);
	return found;
}

/*
 * Read every block, or those changed since they were judged last, and let the oracle
 * judge; what is there is the new base.
 */
static void check_blocks(void *data, bool all)
{
	uint64_t lba = 0, end, last;

	oracle_crashed(oracle);
	while (lba < dev->nr_blocks) {
		while (!all && lba < dev->nr_blocks && !oracle_changed(oracle, lba))
			lba++;
		end = lba + CHECK_BLOCKS < dev->nr_blocks ? lba + CHECK_BLOCKS : dev->nr_blocks;
		for (last = end; !all && last > lba && !oracle_changed(oracle, last - 1); last--)
			;
		if (last > lba)
			atomic_fetch_add(&violations, check_range(lba, (uint32_t)(last - lba), data));
		lba = end;
	}
}

/* Mount with a cut somewhere in it, and again; returns the cuts made. */
static unsigned int cut_mounts(uint64_t *random)
{
	unsigned int i, cuts = 0;

	for (i = 0; i < plan->mount_cuts; i++) {
		bool by_time = below(random, 2);
		int err;

		enter("arm");
		dev->ops->arm(dev, by_time ? CUT_NS : CUT_PROGRAMS,
			      by_time ? magnitude(random, 12, 24) : magnitude(random, 0, 7));
		enter("mount that is cut");
		err = dev->ops->mount(dev, &plan->tuning);
		if (err && !dev->ops->dead(dev))
			violation("mount failed with the power on: %s", strerror(-err));
		enter("unmount after a cut mount");
		if (!err)
			dev->ops->unmount(dev);
		enter("power cycle");
		dev->ops->power_cycle(dev);
		cuts++;
	}
	return cuts;
}

static void print_plan(const struct plan *p, unsigned int round)
{
	printf("round %u: %s, lanes %u entries %u unit %u, %u workers%s%s%s%s, at most %u ops, "
	       "cut %s %" PRIu64 "\n", round, round_names[p->kind], p->tuning.lanes,
	       p->tuning.buffer_entries, p->tuning.write_unit, p->workers,
	       p->race ? ", race" : "", p->disturb ? ", disturbed" : "",
	       p->fault ? ", fault" : "", p->slow_percent ? ", slow die" : "", p->ops,
	       p->cut_flush ? "at flush" : cut_names[p->cut],
	       p->cut_flush ? p->cut_flush : p->cut_value);
	fflush(stdout);
}

/* The work may break so many zones only: then all begins again on a formatted device. */
static void begin_again(void)
{
	int err;

	enter("format");
	dev->ops->unmount(dev);
	oracle_formatting(oracle);
	err = dev->ops->format(dev);
	if (!err)
		oracle_formatted(oracle, dev->nr_blocks);
	/* With zones of the superblock worn out there is no other beginning, and no fault more. */
	faults = err ? MAX_FAULTS + 1 : 0;
	enter("mount");
	err = dev->ops->mount(dev, &plan->tuning);
	if (err)
		violation("mount failed: %s", strerror(-err));
}

/* As the plan says, while there are zones to spare. */
static enum fault break_flash(void)
{
	if (!plan->fault || faults >= MAX_FAULTS ||
	    (plan->fault == FAULT_READ_ONLY && worn_zones == MAX_FAULTS))
		return FAULT_NONE;
	if (dev->ops->fault(dev, plan->fault, plan->fault_where))
		return FAULT_NONE;
	faults++;
	worn_zones += plan->fault == FAULT_READ_ONLY;
	return plan->fault;
}

/* Checkpoints, each of which writes a record, until the next one goes into the other zone. */
static void fill_log(void)
{
	int err = 0;

	enter("fill the log");
	while (!err && dev->ops->log_room(dev)) {
		err = dev->ops->disturb(dev, DISTURB_CHECKPOINT, &plan->tuning);
		atomic_fetch_add(&all_ops, 1);
	}
	if (err)
		violation("a checkpoint failed with the power on: %s", strerror(-err));
}

static unsigned int run_round(uint64_t seed, unsigned int round, bool check,
			      struct worker *workers)
{
	uint64_t random = seed ^ (uint64_t)round * 0xd1342543de82ef95ull;
	struct plan p = make_plan(&random, round);
	unsigned int i, cuts;
	bool survived = false;
	uint64_t start, mounted, checked, worked;
	int err;

	plan = &p;
	for (i = 0; i <= MAX_WORKERS; i++)
		workers[i].random = random64(&random);
	if (verbose)
		print_plan(&p, round);
	start = now_ns();
	if (check) {
		enter("offline check");
		err = dev->ops->check(dev);
		if (err)
			violation("the offline check found damage: %d", err);
	}
	cuts = cut_mounts(&random);
	enter("mount");
	err = dev->ops->mount(dev, &p.tuning);
	if (err) {
		violation("mount failed: %s", strerror(-err));
		return cuts;
	}
	mounted = now_ns();
	enter("check");
	check_blocks(workers[0].data, check || round % FULL_EVERY == FULL_EVERY - 1);
	checked = now_ns();
	if (faults == MAX_FAULTS) {
		begin_again();
		p.fill = true;
	}
	if (p.fill)
		fill_device(&workers[0]);
	if (p.kind == ROUND_LOG)
		fill_log();
	enter("work");
	p.fault = break_flash();
	if (p.slow_percent)
		dev->ops->slow_die(dev, random64(&random), p.slow_percent);
	if ((p.kind == ROUND_WORK && !p.cut_flush) || p.kind == ROUND_LOG)
		dev->ops->arm(dev, p.cut, p.cut_value);
	if (p.kind != ROUND_IDLE)
		run_workers(workers, &workers[MAX_WORKERS]);
	if (p.flush)
		do_flush(&workers[0]);
	if (p.kind == ROUND_FLUSH)
		read_device(&workers[0]);
	worked = now_ns();
	enter("unmount");
	if (p.kind == ROUND_STOP) {
		dev->ops->arm(dev, p.cut, p.cut_value);
		err = dev->ops->unmount(dev);
		survived = dev->ops->disarm(dev);
		if (survived && !err)
			oracle_stopped_clean(oracle);
	} else {
		/* Without a cut so far it comes now: nothing may be written after it. */
		dev->ops->arm(dev, CUT_NS, 0);
		dev->ops->unmount(dev);
	}
	enter("power cycle");
	err = dev->ops->power_cycle(dev);
	if (err)
		violation("power cycle failed: %s", strerror(-err));
	if (verbose)
		printf("  mount %.3f ms, check %.3f ms, %u ops in %.3f ms%s\n",
		       (double)(mounted - start) / 1e6, (double)(checked - mounted) / 1e6,
		       atomic_load(&ops_done), (double)(worked - checked) / 1e6,
		       survived ? ", cut after the stop" : "");
	return cuts + 1;
}

/*
 * Every allocation of a mount fails once: the mount fails cleanly, or it does
 * without. Clean mounts, or each after a crash. Returns the number of mounts that it took, 0 on a violation.
 */
static unsigned int fail_mounts(void *data, bool after_crash)
{
	static const struct tuning tuning = {
		.lanes = 2, .buffer_entries = 128, .write_unit = 8, .append = true,
	};
	unsigned int n;
	bool fired, refused;
	int err;

	for (n = 1;; n++) {
		enter("mount with a failing allocation");
		allocfail_nth(n);
		err = dev->ops->mount(dev, &tuning);
		fired = allocfail_fired();
		allocfail_nth(0);
		if (err && (!fired || err != -ENOMEM))
			violation("allocation %u %s, mount says: %s", n,
				  fired ? "failed" : "was never made", strerror(-err));
		refused = err;
		if (refused && !atomic_load(&violations))
			err = dev->ops->mount(dev, &tuning);
		if (err || atomic_load(&violations))
			return 0;
		/* Nothing is written in between: what one mount damages, a later check sees. */
		enter("check");
		if (!refused || n % JUDGE_EVERY == 0)
			check_blocks(data, true);
		if (after_crash)
			dev->ops->arm(dev, CUT_NS, 0);
		err = dev->ops->unmount(dev);
		if (after_crash)
			err = dev->ops->power_cycle(dev);
		if (err)
			violation("unmount failed: %s", strerror(-err));
		if (!fired)
			return n;
	}
}

/*
 * The same for each command of the administrator. One that fails may leave a device that
 * answers with errors only; what was flushed before is there after the next mount. Returns
 * the number of commands, 0 on a violation.
 */
static unsigned int fail_commands(struct worker *workers, enum disturbance what)
{
	static const struct plan few = {
		.workers = 2, .max_blocks = 4, .max_clear = 16, .ops = 32, .flush = true,
		.weight = { [DO_WRITE] = 80, [DO_READ] = 10, [DO_DISCARD] = 10 },
		.tuning = { .lanes = 2, .buffer_entries = 128, .write_unit = 8, .append = true },
	};
	unsigned int n;
	bool fired;
	int err;

	plan = &few;
	enter("mount");
	err = dev->ops->mount(dev, &few.tuning);
	/* The last round ended with a cut: what it took is judged before new flushes cover it. */
	if (!err)
		check_blocks(workers[0].data, true);
	for (n = 1; !err; n++) {
		enter("work before a command with a failing allocation");
		run_workers(workers, &workers[MAX_WORKERS]);
		do_flush(&workers[0]);
		enter("command with a failing allocation");
		allocfail_nth(n);
		err = dev->ops->disturb(dev, what, &few.tuning);
		fired = allocfail_fired();
		allocfail_nth(0);
		if (err && !fired)
			violation("command %d says: %s", what, strerror(-err));
		if (err || !fired) {
			enter("unmount");
			dev->ops->unmount(dev);
			enter("mount");
			err = dev->ops->mount(dev, &few.tuning);
			if (!err)
				check_blocks(workers[0].data, !fired);
		}
		if (atomic_load(&violations) || !fired)
			break;
	}
	if (err)
		violation("mount failed: %s", strerror(-err));
	enter("unmount");
	dev->ops->unmount(dev);
	return atomic_load(&violations) ? 0 : n;
}

/* What failed allocations left behind: none of it may be lost. */
static void find_leaks(void)
{
	unsigned int turn;
	int leaks = 0;

	for (turn = 0; turn < LEAK_SCANS && leaks >= 0; turn++) {
		enter("wait for leaks to age");
		sleep(LEAK_SECONDS);
		enter("look for leaks");
		leaks = allocfail_leaks();
	}
	if (leaks)
		violation("memory: %d leaks", leaks);
}

static int fail_allocations(uint64_t seed, struct worker *workers)
{
	uint64_t random = seed;
	struct plan p = make_plan(&random, 0);
	unsigned int mounts = 0, commands = 0, round, i;
	int err = allocfail_setup();

	if (err) {
		fprintf(stderr, "this kernel cannot fail allocations: %s\n", strerror(-err));
		return 2;
	}
	for (round = 0; round < 8 && !atomic_load(&violations); round++) {
		if (round % 4 == 3)
			mounts += fail_mounts(workers[0].data, round / 4);
		if (round < NR_DISTURBANCES)
			commands += fail_commands(workers, round);
		if (atomic_load(&violations))
			break;
		p = make_plan(&random, round);
		/* A suspend or checkpoint without memory may fail, and says so. */
		p.disturb = false;
		plan = &p;
		for (i = 0; i <= MAX_WORKERS; i++)
			workers[i].random = random64(&random);
		enter("mount");
		err = dev->ops->mount(dev, &p.tuning);
		if (err) {
			violation("mount failed: %s", strerror(-err));
			break;
		}
		enter("check");
		check_blocks(workers[0].data, true);
		enter("work with failing allocations");
		allocfail_storm(1 + round % 4);
		run_workers(workers, &workers[MAX_WORKERS]);
		allocfail_storm(0);
		dev->ops->arm(dev, CUT_NS, 0);
		enter("unmount");
		dev->ops->unmount(dev);
		enter("power cycle");
		dev->ops->power_cycle(dev);
	}
	find_leaks();
	printf("{\"seed\": %" PRIu64 ", \"mounts\": %u, \"commands\": %u, \"rounds\": %u, "
	       "\"violations\": %u}\n", seed, mounts, commands, round, atomic_load(&violations));
	return atomic_load(&violations) ? 1 : 0;
}

/* The power of two below which so many of a thousand writes stay, in ns. */
static uint64_t quantile(unsigned int thousandths)
{
	unsigned long sum = 0, total = 0;
	unsigned int i;

	for (i = 0; i < LATENCIES; i++)
		total += atomic_load(&latency[i]);
	for (i = 0; i < LATENCIES - 1; i++) {
		sum += atomic_load(&latency[i]);
		if (sum * 1000 >= total * thousandths)
			break;
	}
	return 2ull << i;
}

static unsigned long kernel_memory_kib(void)
{
	unsigned long sum = 0, value;
	char line[128], name[32];
	FILE *file = fopen("/proc/meminfo", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%31[^:]: %lu", name, &value) == 2 &&
		    (!strcmp(name, "Slab") || !strcmp(name, "KernelStack") ||
		     !strcmp(name, "VmallocUsed") || !strcmp(name, "Percpu")))
			sum += value;
	if (file)
		fclose(file);
	return sum;
}

/* What is freed goes into quarantine first there. */
static bool has_kasan(void)
{
	struct utsname kernel;

	return !uname(&kernel) && strstr(kernel.release, "kasan");
}

static void storm_step(unsigned int step, struct worker *workers)
{
	unsigned int i;

	for (i = 0; i < LATENCIES; i++)
		atomic_store(&latency[i], 0);
	/* Two zones wear out on the way, besides those that fail a write. */
	if ((step == 3 || step == 6) &&
	    dev->ops->fault(dev, FAULT_READ_ONLY, random64(&workers[0].random)))
		violation("a zone cannot be made read-only");
	run_workers(workers, &workers[MAX_WORKERS]);
}

static int storm(uint64_t seed, unsigned int times, struct worker *workers)
{
	static const struct tuning tuning = {
		.lanes = 2, .buffer_entries = 256, .write_unit = 32, .placement = PLACEMENT_BY_LIFE, .append = true,
	};
	uint64_t median[STORM_STEPS], tail[STORM_STEPS], random = seed;
	unsigned long memory[STORM_STEPS];
	static struct plan p = {
		.kind = ROUND_WORK, .workers = 4, .max_blocks = MAX_IO_BLOCKS, .max_clear = 16,
		.weight = { [DO_WRITE] = 80, [DO_FUA] = 1, [DO_READ] = 15, [DO_FLUSH] = 1,
			    [DO_DISCARD] = 2, [DO_ZEROES] = 1 },
		.pattern = { UNIFORM, UNIFORM, SKEWED, SEQUENTIAL },
	};
	unsigned int i, step;
	int err;

	plan = &p;
	storming = true;
	for (i = 0; i <= MAX_WORKERS; i++)
		workers[i].random = random64(&random);
	enter("mount");
	err = dev->ops->mount(dev, &tuning);
	if (err)
		violation("mount failed: %s", strerror(-err));
	if (dev->ops->fault_rates(dev, STORM_RATE, STORM_RATE))
		violation("the flash takes no rates of faults");
	for (step = 0; step < STORM_STEPS && !atomic_load(&violations); step++) {
		enter("storm");
		write_goal = dev->nr_blocks * times / STORM_STEPS * (step + 1);
		storm_step(step, workers);
		median[step] = quantile(500);
		tail[step] = quantile(990);
		memory[step] = kernel_memory_kib();
		if (verbose)
			dev->ops->describe(dev);
	}
	dev->ops->fault_rates(dev, 0, 0);
	/* The first step fills the device. */
	if (step == STORM_STEPS && (tail[step - 1] > 4 * tail[1] || median[step - 1] > 4 * median[1]))
		violation("latency grew");
	if (step == STORM_STEPS && !has_kasan() && memory[step - 1] > memory[1] + memory[1] / 10)
		violation("memory grew");
	enter("flush");
	do_flush(&workers[0]);
	dev->ops->describe(dev);
	enter("check");
	check_blocks(workers[0].data, true);
	enter("unmount");
	err = dev->ops->unmount(dev);
	err = err ?: dev->ops->check(dev);
	enter("mount");
	err = err ?: dev->ops->mount(dev, &tuning);
	if (err)
		violation("stop, offline check or mount failed: %d", err);
	enter("check");
	check_blocks(workers[0].data, true);
	printf("{\"seed\": %" PRIu64 ", \"overwritten\": %u, \"blocks\": %" PRIu64
	       ", \"written\": %lu, \"read_again\": %lu, \"violations\": %u", seed, times,
	       dev->nr_blocks, atomic_load(&written), atomic_load(&retries),
	       atomic_load(&violations));
	for (i = 0; i < 3; i++) {
		printf(", \"%s\": [", i == 0 ? "median_ns" : i == 1 ? "p99_ns" : "memory_kib");
		for (unsigned int j = 0; j < step; j++)
			printf("%s%" PRIu64, j ? ", " : "",
			       i == 0 ? median[j] : i == 1 ? tail[j] : (uint64_t)memory[j]);
		printf("]");
	}
	printf("}\n");
	return atomic_load(&violations) ? 1 : 0;
}

static void print_summary(uint64_t seed, unsigned int rounds, unsigned int cuts, uint64_t ns)
{
	unsigned int i;

	printf("{\"seed\": %" PRIu64 ", \"rounds\": %u, \"cuts\": %u, \"violations\": %u, "
	       "\"seconds\": %.3f, \"blocks\": %" PRIu64, seed, rounds, cuts,
	       atomic_load(&violations), (double)ns / 1e9, dev->nr_blocks);
	for (i = 0; i < NR_ACTIONS; i++)
		printf(", \"%s\": %lu", action_names[i], atomic_load(&done[i]));
	printf("}\n");
}

static int usage(void)
{
	fprintf(stderr, "usage: torture [-s seed] [-n cuts] [-c check-every] [-w hang-seconds] [-j] [-v]"
		" [-f | -o times | -z rounds | -x images | -r file | -l file]"
		" mem:BLOCKS[,BUG] | dm:SPEC | stripe:DRIVES\n");
	return 2;
}

#define LOST	UINT32_MAX	/* in the file: no version of the block */

static uint32_t version_of(uint64_t seed, uint64_t lba, const void *data)
{
	uint64_t stamped = lba;
	uint32_t version;

	return oracle_stamp(seed, data, &stamped, &version) || stamped != lba ? LOST : version;
}

/* Blocks that cannot be read together are read one by one. */
static void find_versions(uint64_t seed, uint64_t lba, uint32_t nr, char *data, uint32_t *versions)
{
	bool together = !dev->ops->read(dev, lba, nr, data);
	uint32_t i;

	for (i = 0; i < nr; i++, lba++) {
		char *block = together ? data + (size_t)i * BLOCK_BYTES : data;

		versions[i] = !together && dev->ops->read(dev, lba, 1, block) ? LOST :
			      version_of(seed, lba, block);
	}
}

/* The version of each block, as recovery finds it, in four bytes each. */
static int read_versions(uint64_t seed, const char *path, void *data)
{
	static const struct tuning tuning = {
		.lanes = 2, .buffer_entries = 64, .write_unit = 8, .append = true,
	};
	FILE *file = fopen(path, "we");
	int err = file ? dev->ops->mount(dev, &tuning) : -errno;
	uint32_t versions[CHECK_BLOCKS], nr;
	uint64_t lba;

	for (lba = 0; !err && lba < dev->nr_blocks; lba += nr) {
		nr = dev->nr_blocks - lba < CHECK_BLOCKS ? (uint32_t)(dev->nr_blocks - lba) :
			CHECK_BLOCKS;
		find_versions(seed, lba, nr, data, versions);
		err = fwrite(versions, sizeof(*versions), nr, file) == nr ? 0 : -EIO;
	}
	err = err ?: dev->ops->unmount(dev);
	if (err)
		fprintf(stderr, "%s: %s\n", path, strerror(-err));
	return err || fclose(file) ? 2 : 0;
}

int main(int argc, char **argv)
{
	const char *versions = NULL, *history = NULL;
	unsigned int max_cuts = 100, check_every = 0, rounds = 0, cuts = 0, i;
	static struct worker workers[MAX_WORKERS + 1];
	uint64_t seed = 1, start = now_ns();
	unsigned int damaged = 0, images = 0, overwrites = 0;
	bool allocations = false;
	pthread_t dog;
	int opt;

	while ((opt = getopt(argc, argv, "s:n:c:w:fo:z:x:jr:l:v")) != -1) {
		switch (opt) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			max_cuts = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'c':
			check_every = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'w':
			hang_seconds = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'f':
			allocations = true;
			break;
		case 'o':
			overwrites = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'z':
			damaged = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'x':
			images = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'j':
			notes_open();
			break;
		case 'l':
			history = optarg;
			break;
		case 'r':
			versions = optarg;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			return usage();
		}
	}
	if (optind + 1 != argc)
		return usage();
	if (!strncmp(argv[optind], "mem:", 4))
		dev = memdevice_open(argv[optind] + 4, seed);
	else if (!strncmp(argv[optind], "dm:", 3))
		dev = dmdevice_open(argv[optind] + 3);
	else if (!strncmp(argv[optind], "stripe:", 7))
		dev = stripedevice_open(argv[optind] + 7);
	else
		return usage();
	if (!dev)
		return 2;
	if (versions) {
		if (posix_memalign(&workers[0].data, BLOCK_BYTES, CHECK_BLOCKS * BLOCK_BYTES))
			return 2;
		return read_versions(seed, versions, workers[0].data);
	}
	if (!history && dev->nr_blocks <= MAX_OP_BLOCKS) {
		fprintf(stderr, "the device has %" PRIu64 " blocks, more than %u are needed\n",
			dev->nr_blocks, MAX_OP_BLOCKS);
		return 2;
	}
	oracle = oracle_new(seed, dev->nr_blocks);
	for (i = 0; i <= MAX_WORKERS; i++) {
		workers[i].index = i;
		if (posix_memalign(&workers[i].data, BLOCK_BYTES, CHECK_BLOCKS * BLOCK_BYTES))
			return 2;
	}
	pthread_create(&dog, NULL, watchdog, NULL);
	if (history)
		return histories(dev, oracle, history, enter);
	if (allocations)
		return fail_allocations(seed, workers);
	if (overwrites)
		return storm(seed, overwrites, workers);
	while (cuts < max_cuts && !atomic_load(&violations)) {
		cuts += run_round(seed, rounds,
				  check_every && rounds % check_every == check_every - 1, workers);
		rounds++;
	}
	print_summary(seed, rounds, cuts, now_ns() - start);
	if (damaged && !atomic_load(&violations))
		return fuzz(dev, oracle, seed, damaged, enter);
	if (images && !atomic_load(&violations))
		return crafted(dev, oracle, seed, images, enter);
	return atomic_load(&violations) ? 1 : 0;
}
