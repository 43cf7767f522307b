// SPDX-License-Identifier: GPL-2.0
/*
 * What a device loses in a power cut: each block says which one it is and which version.
 *
 *	guest-loss fill DEVICE STATE BLOCKS	writes so many, and flushes them; STATE is a file that remembers
 *	guest-loss write DEVICE STATE THREADS	overwrites at random, each thread with a flush after every FLUSH_EVERY
 *						writes, until one fails: somebody cuts the power
 *	guest-loss judge DEVICE STATE		reads all of it, and prints what is not there
 *
 * A block may be as it was when a flush that began after its acknowledgement ended, or newer. Each thread has blocks of
 * its own, and one write under way: so an order is known.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096u
#define WORDS (BLOCK / sizeof(uint64_t))
#define BATCH 32u		/* blocks of a write of fill */
#define FLUSH_EVERY 64u
#define MOST 64u		/* threads */

/* Of a block; versions are counted from 1. */
struct known {
	uint32_t sent, acked, safe;
};

static int device;
static struct known *known;
static uint64_t blocks;
static unsigned int threads;
static atomic_bool dead;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void *buffer(void)
{
	void *data;

	if (posix_memalign(&data, BLOCK, BATCH * BLOCK))
		die("memory");
	return data;
}

static void fill(uint64_t *words, uint64_t block, uint32_t version)
{
	for (unsigned int i = 0; i < WORDS; i += 2) {
		words[i] = block;
		words[i + 1] = version;
	}
}

static void open_state(const char *path, uint64_t size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	struct stat st;

	if (fd < 0 || (size && ftruncate(fd, size * sizeof(*known))) || fstat(fd, &st))
		die(path);
	blocks = st.st_size / sizeof(*known);
	known = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (known == MAP_FAILED)
		die(path);
}

static void write_all(void)
{
	uint64_t *data = buffer();

	for (uint64_t at = 0; at < blocks; at += BATCH) {
		unsigned int nr = blocks - at < BATCH ? blocks - at : BATCH;

		for (unsigned int i = 0; i < nr; i++)
			fill(data + i * WORDS, at + i, 1);
		if (pwrite(device, data, nr * BLOCK, at * BLOCK) != nr * BLOCK)
			die("write");
	}
	if (fdatasync(device))
		die("flush");
	for (uint64_t at = 0; at < blocks; at++)
		known[at] = (struct known) { 1, 1, 1 };
}

static void *overwrite(void *arg)
{
	uint64_t me = (uintptr_t)arg, x = me + 1, since[FLUSH_EVERY];
	uint64_t *data = buffer();

	for (unsigned int nr = 0; !dead;) {
		uint64_t at;

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		at = (x >> 33) % (blocks / threads) * threads + me;
		fill(data, at, ++known[at].sent);
		if (pwrite(device, data, BLOCK, at * BLOCK) != BLOCK)
			break;
		known[at].acked = known[at].sent;
		since[nr++] = at;
		if (nr < FLUSH_EVERY)
			continue;
		if (fdatasync(device))
			break;
		for (; nr; nr--)
			known[since[nr - 1]].safe = known[since[nr - 1]].acked;
	}
	dead = true;
	return NULL;
}

static void write_until_dead(void)
{
	pthread_t ids[MOST];

	for (unsigned int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, overwrite, (void *)(uintptr_t)i))
			die("thread");
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
}

static void judge(void)
{
	uint64_t acked = 0, stale = 0, lost = 0, foreign = 0, unreadable = 0;
	uint64_t *data = buffer(), expected[WORDS];

	for (uint64_t at = 0; at < blocks; at++) {
		const struct known *k = &known[at];

		acked += k->acked - 1;
		if (pread(device, data, BLOCK, at * BLOCK) != BLOCK) {
			unreadable++;
			continue;
		}
		fill(expected, at, data[1]);
		if (memcmp(data, expected, BLOCK) || data[1] > k->sent)
			foreign++;
		else if (data[1] < k->safe)
			lost++;
		else if (data[1] < k->acked)
			stale++;
	}
	printf("{\"written\": %" PRIu64 ", \"unflushed_lost\": %" PRIu64 ", \"flushed_lost\": %" PRIu64
	       ", \"foreign\": %" PRIu64 ", \"unreadable\": %" PRIu64 "}\n",
	       acked, stale, lost, foreign, unreadable);
}

int main(int argc, char **argv)
{
	if (argc != (argc > 1 && !strcmp(argv[1], "judge") ? 4 : 5)) {
		fprintf(stderr, "usage: guest-loss fill DEVICE STATE BLOCKS | write DEVICE STATE THREADS | judge DEVICE STATE\n");
		return 2;
	}
	device = open(argv[2], O_RDWR | O_DIRECT);
	if (device < 0)
		die(argv[2]);
	open_state(argv[3], strcmp(argv[1], "fill") ? 0 : strtoull(argv[4], NULL, 0));
	if (!strcmp(argv[1], "fill")) {
		write_all();
	} else if (!strcmp(argv[1], "write")) {
		threads = atoi(argv[4]);
		if (!threads || threads > MOST)
			die("threads");
		write_until_dead();
	} else {
		judge();
	}
	return 0;
}
