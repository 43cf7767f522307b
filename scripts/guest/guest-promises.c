// SPDX-License-Identifier: GPL-2.0
/*
 * Who judges what a file system kept: files whose blocks say which one they are and which version.
 *
 *	guest-promises make FOLDER STATE BLOCKS
 *		three files a thread: cold, hot, and a log, which is empty. STATE remembers each
 *		block; it is on no drive that fails
 *	guest-promises write FOLDER STATE SHAPE STRIKE
 *		overwrites hot files and appends to logs, with fsync. After BEFORE ms STRIKE is run,
 *		a line for a shell. It ends once all of SHAPE is done, or after LIMIT ms. SHAPE
 *		is BEFORE,AFTER ms,MIB,LIMIT,UNIT: blocks a write; more than 1: cold files too
 *	guest-promises judge FOLDER STATE
 *		reads all of it, and compares
 *	guest-promises zone DEVICE
 *		first block of the zone that most is written to now
 *	guest-promises rot DEVICE BLOCK
 *		one bit of it flips; a zone is copied, reset, and written again
 *	guest-promises cut [DM]
 *		DM takes no more commands, then the drive's power is cut
 *	guest-promises save|restore DEVICE FILE
 *		the blocks that are not zeroes
 *
 * They print JSON or a number. A block is promised in the version that an fsync covered, or in a
 * newer one. After an error the thread closes the file, rests, and goes on as a patient program
 * does. A write whose fsync failed is promised by no later fsync.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/blkzoned.h>
#include <linux/dm-ioctl.h>
#include <linux/nvme_ioctl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "guest.h"

#define BLOCK 4096u
#define WORDS (BLOCK / sizeof(uint64_t))
#define THREADS 4u
#define WRITES 8u			/* of a round, before its fsync */
#define UNIT 16u			/* blocks of a write, at most */
#define ROUNDS 10u			/* of each thread after the strike */
#define REST_US 20000			/* after an error */
#define WINDOW_MS 50u
#define WINDOWS 4000u
#define FAULT 0xc0			/* the emulator's vendor command, and its action */
#define CUT 1

enum { COLD, HOT, LOG, FILES };
static const char *const NAMES[FILES] = { "cold", "hot", "log" };

/* Of a block; versions are counted from 1. Its thread alone changes it. */
struct promise {
	uint32_t sent, safe;
};

static const char *folder;
static struct promise *promises;
static uint64_t blocks;			/* of a file */

/* The load. What main reads while threads run is atomic. */
static uint64_t began;
static unsigned int unit = 1;
static atomic_ullong may_end;		/* from then on, in ns; 0: not yet */
static atomic_bool ended;
static atomic_uint windows[WINDOWS], errors[256];

struct worker {
	pthread_t id;
	unsigned int number;
	int fd[FILES];
	uint64_t random, next;		/* the log's end */
	atomic_uint rounds, failed, enough;	/* rounds after which it may end */
	atomic_bool well, gone;		/* its last round; its end */
};

static struct worker workers[THREADS];

static void *buffer(size_t size)
{
	void *data;

	if (posix_memalign(&data, BLOCK, size))
		die("memory");
	return data;
}

static struct promise *promise(unsigned int thread, unsigned int file, uint64_t at)
{
	return &promises[(thread * FILES + file) * blocks + at];
}

static void path_of(char *path, size_t size, unsigned int thread, unsigned int file)
{
	snprintf(path, size, "%s/%s-%u", folder, NAMES[file], thread);
}

static void fill(uint64_t *words, unsigned int thread, unsigned int file, uint64_t at,
		 uint32_t version)
{
	uint64_t id = 0x6d69736600000000ull | (uint64_t)thread << 28 | (uint64_t)file << 24 | at;

	words[0] = id;
	words[1] = version;
	for (unsigned int i = 2; i < WORDS; i++)
		words[i] = (id ^ (uint64_t)version << 40) * 0x9e3779b97f4a7c15ull + i;
}

static void open_state(const char *path, uint64_t each)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) ||
	    (each && (ftruncate(fd, THREADS * FILES * each * sizeof(*promises)) || fstat(fd, &st))))
		die(path);
	blocks = st.st_size / sizeof(*promises) / THREADS / FILES;
	promises = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (promises == MAP_FAILED)
		die(path);
}

/* make */

static void make_file(unsigned int thread, unsigned int file, uint64_t *data)
{
	char path[256];
	int fd;

	path_of(path, sizeof(path), thread, file);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	if (fd < 0)
		die(path);
	for (uint64_t at = 0; at < (file == LOG ? 0 : blocks); at++) {
		fill(data, thread, file, at, 1);
		if (pwrite(fd, data, BLOCK, at * BLOCK) != BLOCK)
			die(path);
		promise(thread, file, at)->sent = 1;
	}
	if (fsync(fd) || close(fd))
		die(path);
	for (uint64_t at = 0; at < blocks; at++)
		promise(thread, file, at)->safe = promise(thread, file, at)->sent;
}

static void make(void)
{
	uint64_t *data = buffer(BLOCK);
	int fd;

	if (mkdir(folder, 0700))
		die(folder);
	for (unsigned int i = 0; i < THREADS * FILES; i++)
		make_file(i / FILES, i % FILES, data);
	fd = open(folder, O_RDONLY | O_DIRECTORY);
	if (fd < 0 || fsync(fd) || close(fd))
		die(folder);
	free(data);
}

/* write */

static uint64_t draw(struct worker *w, uint64_t below)
{
	w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
	return (w->random >> 33) % below;
}

static uint64_t place(struct worker *w, unsigned int file)
{
	uint64_t at;

	if (file != LOG)
		return draw(w, blocks / unit) * unit;
	at = w->next;
	w->next = at + 2 * unit <= blocks ? at + unit : 0;
	return at;
}

static int write_unit(struct worker *w, unsigned int file, uint64_t at, uint64_t *data)
{
	ssize_t done;

	for (unsigned int i = 0; i < unit; i++) {
		struct promise *p = promise(w->number, file, at + i);

		fill(data + i * WORDS, w->number, file, at + i, ++p->sent);
	}
	done = pwrite(w->fd[file], data, unit * BLOCK, at * BLOCK);
	if (done < 0)
		return -errno;
	if (done != unit * BLOCK)
		return -EIO;
	windows[(now() - began) / (WINDOW_MS * 1000000ull) % WINDOWS] += unit;
	return 0;
}

/* One file's writes, and their fsync; returns the error that the program sees. */
static int one_round(struct worker *w, unsigned int file, uint64_t *data)
{
	uint64_t at[WRITES];
	char path[256];
	int error;

	path_of(path, sizeof(path), w->number, file);
	if (w->fd[file] < 0)
		w->fd[file] = open(path, O_WRONLY);
	if (w->fd[file] < 0)
		return -errno;
	for (unsigned int i = 0; i < WRITES; i++) {
		at[i] = place(w, file);
		error = write_unit(w, file, at[i], data);
		if (error)
			return error;
	}
	if (fsync(w->fd[file]))
		return -errno;
	for (unsigned int i = 0; i < WRITES * unit; i++) {
		struct promise *p = promise(w->number, file, at[i / unit] + i % unit);

		p->safe = p->sent;
	}
	return 0;
}

/* A thread that others hold up does not keep the guest busy. */
static bool has_enough(const struct worker *w)
{
	return may_end && now() >= may_end && w->rounds >= w->enough;
}

static void *work(void *arg)
{
	uint64_t *data = buffer(UNIT * BLOCK);
	struct worker *w = arg;

	for (unsigned int turn = 0; !ended && !has_enough(w); turn++) {
		unsigned int file = unit > 1 ? draw(w, FILES) : turn % 2 ? LOG : HOT;
		int error = one_round(w, file, data);

		/* "Try again" is no failure, but nothing is promised. */
		errors[-error & 255] += !!error;
		if (error != -EAGAIN) {
			w->well = !error;
			w->rounds++;
			w->failed += !!error;
		}
		if (!error)
			continue;
		if (w->fd[file] >= 0)
			close(w->fd[file]);
		w->fd[file] = -1;
		usleep(REST_US);
	}
	w->gone = true;
	return NULL;
}

struct shape {
	unsigned int before, after, mib, limit;
};

static uint64_t blocks_written(void)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < WINDOWS; i++)
		sum += windows[i];
	return sum;
}

static void wait_for_work(const struct shape *shape, uint64_t struck)
{
	uint64_t since = blocks_written();

	for (;;) {
		uint64_t ms = (now() - struck) / 1000000;
		bool done = ms >= shape->after && blocks_written() - since >= shape->mib * 256ull;

		for (unsigned int i = 0; i < THREADS; i++)
			done = done && workers[i].rounds >= workers[i].enough;
		if (done || ms >= shape->limit)
			return;
		usleep(5000);
	}
}

/* Threads that wait for the drive have ten seconds to end. */
static unsigned int wait_for_ends(void)
{
	unsigned int stuck = THREADS;

	for (unsigned int i = 0; stuck && i < 1000; i++) {
		usleep(10000);
		stuck = 0;
		for (unsigned int j = 0; j < THREADS; j++)
			stuck += !workers[j].gone;
	}
	return stuck;
}

static void tell(uint64_t struck, uint64_t end, unsigned int stuck)
{
	unsigned int well = 0, failed = 0;
	const char *comma = "";

	for (unsigned int i = 0; i < THREADS; i++) {
		well += workers[i].well && workers[i].gone;
		failed += workers[i].failed;
	}
	printf("{\"struck_ms\": %llu, \"ended_ms\": %llu, \"window_ms\": %u, ",
	       (struck - began) / 1000000ull, (end - began) / 1000000ull, WINDOW_MS);
	printf("\"threads\": %u, \"stuck\": %u, ", THREADS, stuck);
	printf("\"well\": %u, \"failed\": %u, \"errors\": {", well, failed);
	for (unsigned int i = 0; i < 256; i++) {
		if (errors[i]) {
			printf("%s\"%s\": %u", comma, strerrorname_np(i), errors[i]);
			comma = ", ";
		}
	}
	printf("}, \"windows\": [");
	comma = "";
	for (unsigned int i = 0; i < WINDOWS; i++) {
		if (windows[i]) {
			printf("%s[%u, %u]", comma, i, windows[i]);
			comma = ", ";
		}
	}
	printf("]}\n");
	fflush(stdout);
}

static void load(const char *words, const char *strike)
{
	struct shape shape;
	uint64_t struck, end;

	if (sscanf(words, "%u,%u,%u,%u,%u", &shape.before, &shape.after, &shape.mib, &shape.limit,
		   &unit) != 5 || !unit || unit > UNIT || unit * 2 > blocks)
		die("SHAPE");
	began = now();
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker) {
			.number = i, .fd = { -1, -1, -1 }, .random = i + 1
		};
		if (pthread_create(&workers[i].id, NULL, work, &workers[i]))
			die("thread");
	}
	usleep(shape.before * 1000);
	struck = now();
	if (system(strike) == -1)
		die("strike");
	for (unsigned int i = 0; i < THREADS; i++)
		workers[i].enough = workers[i].rounds + ROUNDS;
	if (!shape.mib)
		may_end = struck + shape.after * 1000000ull;
	wait_for_work(&shape, struck);
	end = now();
	ended = true;
	tell(struck, end, wait_for_ends());
	_exit(0);
}

/* judge */

struct verdict {
	uint64_t promised, lost, unreadable, wrong;
};

static void judge_block(const struct promise *p, ssize_t got, const uint64_t *data,
			const uint64_t *expected, const uint64_t *zeroes, struct verdict *v)
{
	bool empty = got < (ssize_t)BLOCK || !memcmp(data, zeroes, BLOCK);

	v->promised += !!p->safe;
	if (got < 0)
		v->unreadable += !!p->safe;
	else if (empty)
		v->lost += !!p->safe;
	else if (memcmp(data, expected, BLOCK) || data[1] > p->sent)
		v->wrong++;
	else if (data[1] < p->safe)
		v->lost++;
}

static void judge(void)
{
	uint64_t *data = buffer(BLOCK), *expected = buffer(BLOCK);
	uint64_t *zeroes = buffer(BLOCK);
	struct verdict v = { 0 };
	char path[256];

	memset(zeroes, 0, BLOCK);
	for (unsigned int i = 0; i < THREADS * FILES; i++) {
		ssize_t none;
		int fd;

		/* A file that is not there is lost, one that cannot be opened is unreadable. */
		path_of(path, sizeof(path), i / FILES, i % FILES);
		fd = open(path, O_RDONLY);
		none = errno == ENOENT ? 0 : -1;
		for (uint64_t at = 0; at < blocks; at++) {
			ssize_t got = fd >= 0 ? pread(fd, data, BLOCK, at * BLOCK) : none;

			fill(expected, i / FILES, i % FILES, at, got == BLOCK ? data[1] : 0);
			judge_block(promise(i / FILES, i % FILES, at), got, data, expected, zeroes,
				    &v);
		}
		if (fd >= 0)
			close(fd);
	}
	printf("{\"promised\": %lu, \"lost\": %lu, \"unreadable\": %lu, \"wrong\": %lu}\n",
	       v.promised * BLOCK, v.lost * BLOCK, v.unreadable * BLOCK, v.wrong * BLOCK);
}

/* Zones */

#define MOST_ZONES 256u

static struct blk_zone_report *report(int fd)
{
	size_t size = sizeof(struct blk_zone_report) + MOST_ZONES * sizeof(struct blk_zone);
	struct blk_zone_report *zones = calloc(1, size);

	if (!zones)
		die("memory");
	zones->nr_zones = MOST_ZONES;
	if (ioctl(fd, BLKREPORTZONE, zones))
		die("zones");
	return zones;
}

static void busiest_zone(const char *device)
{
	int fd = open(device, O_RDONLY);
	struct blk_zone_report *before, *after;
	uint64_t most = 0, best = 0;

	if (fd < 0)
		die(device);
	before = report(fd);
	for (unsigned int tries = 0; !most; tries++) {
		if (tries == 500) {
			fprintf(stderr, "nothing is written to %s\n", device);
			exit(1);
		}
		usleep(20000);
		after = report(fd);
		for (unsigned int i = 0; i < after->nr_zones; i++) {
			const struct blk_zone *zone = &after->zones[i];
			uint64_t from = before->zones[i].wp;

			if (zone->cond == BLK_ZONE_COND_IMP_OPEN && zone->wp > from + most) {
				most = zone->wp - from;
				best = zone->start;
			}
		}
		free(before);
		before = after;
	}
	printf("%lu\n", best / 8);
}

static void rot(const char *device, uint64_t block)
{
	int fd = open(device, O_RDWR | O_DIRECT | O_SYNC);
	/* A device without zones: the block stands for one. */
	struct blk_zone zone = {
		.start = block * 8, .len = 8, .wp = block * 8 + 8, .cond = BLK_ZONE_COND_NOT_WP
	};
	uint32_t zone_size = 0;
	struct blk_zone_report *zones;
	struct blk_zone_range range;
	uint64_t size;
	char *data;

	if (fd < 0 || ioctl(fd, BLKGETZONESZ, &zone_size))
		die(device);
	if (zone_size) {
		zones = report(fd);
		zone = zones->zones[block * 8 / zone_size];
	}
	size = zone.cond == BLK_ZONE_COND_FULL ? zone.capacity : zone.wp - zone.start;
	size *= 512;
	data = buffer(size);
	if (pread(fd, data, size, zone.start * 512) != (ssize_t)size)
		die("read");
	data[(block * 8 - zone.start) * 512 + 1000] ^= 1;
	range = (struct blk_zone_range) { zone.start, zone.len };
	if (zone_size && ioctl(fd, BLKRESETZONE, &range))
		die("reset");
	for (uint64_t at = 0; at < size; at += BLOCK)
		if (pwrite(fd, data + at, BLOCK, zone.start * 512 + at) != BLOCK)
			die("write");
}

/* Power, and the device beside the drive: it is in memory. */

static void cut(const char *dm)
{
	struct nvme_passthru_cmd command = { .opcode = FAULT, .nsid = 1, .cdw10 = CUT };
	struct dm_ioctl suspend = {
		.version = { DM_VERSION_MAJOR, 0, 0 }, .data_size = sizeof(suspend),
		.flags = DM_SUSPEND_FLAG | DM_SKIP_LOCKFS_FLAG | DM_NOFLUSH_FLAG,
	};
	int control = open("/dev/mapper/control", O_RDWR), drive = open("/dev/nvme0", O_RDWR);

	if (control < 0 || drive < 0)
		die("devices");
	if (dm) {
		snprintf(suspend.name, sizeof(suspend.name), "%s", dm);
		if (ioctl(control, DM_DEV_SUSPEND, &suspend))
			die(dm);
	}
	if (ioctl(drive, NVME_IOCTL_ADMIN_CMD, &command))
		die("cut");
}

static void copy(const char *device, const char *file, bool restore)
{
	int fd = open(device, restore ? O_WRONLY : O_RDONLY);
	FILE *kept = fopen(file, restore ? "r" : "w");
	char data[BLOCK], zeroes[BLOCK] = { 0 };
	uint64_t at = 0;

	if (fd < 0 || !kept)
		die(file);
	if (restore) {
		while (fread(&at, sizeof(at), 1, kept) && fread(data, BLOCK, 1, kept))
			if (pwrite(fd, data, BLOCK, at * BLOCK) != BLOCK)
				die(device);
	} else {
		for (; pread(fd, data, BLOCK, at * BLOCK) == BLOCK; at++)
			if (memcmp(data, zeroes, BLOCK) &&
			    !(fwrite(&at, sizeof(at), 1, kept) && fwrite(data, BLOCK, 1, kept)))
				die(file);
	}
	if (fclose(kept) || fsync(fd))
		die(file);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc >= 4) {
		folder = argv[2];
		if (strcmp(what, "save") && strcmp(what, "restore") && strcmp(what, "rot"))
			open_state(argv[3], argc == 5 ? strtoull(argv[4], NULL, 0) : 0);
	}
	if (argc == 5 && !strcmp(what, "make"))
		make();
	else if (argc == 6 && !strcmp(what, "write"))
		load(argv[4], argv[5]);
	else if (argc == 4 && !strcmp(what, "judge"))
		judge();
	else if (argc == 3 && !strcmp(what, "zone"))
		busiest_zone(argv[2]);
	else if (argc == 4 && !strcmp(what, "rot"))
		rot(argv[2], strtoull(argv[3], NULL, 0));
	else if (argc <= 3 && !strcmp(what, "cut"))
		cut(argc == 3 ? argv[2] : NULL);
	else if (argc == 4 && (!strcmp(what, "save") || !strcmp(what, "restore")))
		copy(argv[2], argv[3], what[0] == 'r');
	else
		return 2;
	return 0;
}
