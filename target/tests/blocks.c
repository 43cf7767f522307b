// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks that say which one they are, for tests in a guest: there a shell's tools
 * take thousands of instructions for each byte that they look at.
 *
 *	blocks write FIRST COUNT >OUT	so many of them
 *	blocks judge FILE FIRST COUNT	how many read as errors; or that some are not what they were
 *	blocks find FILE NUMBER		where in the file that block is
 *	blocks sum FILE [FIRST COUNT]	a sum of its content, or of parts of it
 *	blocks nowait FILE COUNT	so many (a power of two) scattered and read back, by a caller that must
 *					not block: how many writes and reads said EAGAIN
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define BLOCK	4096
#define WORDS	(BLOCK / sizeof(uint64_t))
#define BATCH	16		/* blocks of a read */

static _Alignas(BLOCK) uint64_t data[BATCH][WORDS], expected[WORDS];

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static int open_file(const char *path, int flags)
{
	int fd = open(path, O_RDONLY | flags);

	if (fd < 0)
		die(path);
	return fd;
}

static void fill(uint64_t *words, uint64_t number)
{
	size_t i;

	for (i = 0; i < WORDS; i++)
		words[i] = (number + 1) * 0x9e3779b97f4a7c15ull + i;
}

static bool is(const uint64_t *words, uint64_t number)
{
	fill(expected, number);
	return !memcmp(words, expected, BLOCK);
}

static int write_blocks(uint64_t first, uint64_t count)
{
	uint64_t i;

	for (i = first; i < first + count; i++) {
		fill(data[0], i);
		if (fwrite(data[0], BLOCK, 1, stdout) != 1)
			die("write");
	}
	return fflush(stdout) ? 2 : 0;
}

static int judge(const char *path, uint64_t first, uint64_t count)
{
	uint64_t at, nr, i, lost = 0, wrong = 0;
	int fd = open_file(path, O_DIRECT);
	ssize_t got;

	for (at = first; at < first + count; at += nr) {
		nr = first + count - at < BATCH ? first + count - at : BATCH;
		got = pread(fd, data, nr * BLOCK, (off_t)(at * BLOCK));
		if (got != (ssize_t)(nr * BLOCK)) {
			nr = 1;
			got = pread(fd, data, BLOCK, (off_t)(at * BLOCK));
			if (got != BLOCK) {
				if (got >= 0 || errno != EIO)
					die(path);
				lost++;
				continue;
			}
		}
		for (i = 0; i < nr; i++)
			wrong += !is(data[i], at + i);
	}
	if (wrong)
		printf("%" PRIu64 " wrong\n", wrong);
	else
		printf("%" PRIu64 "\n", lost);
	return wrong ? 1 : 0;
}

static int find(const char *path, uint64_t number)
{
	int fd = open_file(path, 0);
	uint64_t at;

	for (at = 0; pread(fd, data, BLOCK, (off_t)(at * BLOCK)) == BLOCK; at++)
		if (is(data[0], number)) {
			printf("%" PRIu64 "\n", at);
			return 0;
		}
	return 1;
}

static uint64_t sum_part(int fd, uint64_t first, uint64_t count, uint64_t sum)
{
	const uint64_t *words = data[0];
	uint64_t end = first + count, at = first;
	ssize_t got, i;

	while (at < end) {
		memset(data, 0, sizeof(data));
		got = pread(fd, data, end - at < BATCH ? (end - at) * BLOCK : sizeof(data),
			    (off_t)(at * BLOCK));
		if (got < 0)
			die("read");
		if (!got)
			break;
		for (i = 0; i < (got + 7) / 8; i++)
			sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15ull + (sum >> 32);
		at += (uint64_t)(got + BLOCK - 1) / BLOCK;
	}
	return (sum ^ at) * 0x9e3779b97f4a7c15ull;
}

/* True: it would have blocked, and was done again by one that may. */
static bool would_block(int fd, bool writes, uint64_t at, size_t nr)
{
	struct iovec iov = { data, nr * BLOCK };
	off_t offset = (off_t)(at * BLOCK);
	ssize_t done = writes ? pwritev2(fd, &iov, 1, offset, RWF_NOWAIT) :
		       preadv2(fd, &iov, 1, offset, RWF_NOWAIT);
	bool again = done < 0 && errno == EAGAIN;

	if (again)
		done = writes ? pwritev(fd, &iov, 1, offset) : preadv(fd, &iov, 1, offset);
	if (done != (ssize_t)iov.iov_len)
		die("nowait");
	return again;
}

static int nowait(const char *path, uint64_t count)
{
	uint64_t at, i, again[2] = { 0 }, wrong = 0;
	int fd = open(path, O_RDWR | O_DIRECT);

	if (fd < 0)
		die(path);
	/* No two neighbours one after the other: each block is a read of its own. */
	for (i = 0; i < count; i++) {
		at = i * 0x9e3779b1 % count;
		fill(data[0], at);
		again[0] += would_block(fd, true, at, 1);
	}
	if (fsync(fd))
		die("fsync");
	for (at = 0; at < count; at += BATCH) {
		again[1] += would_block(fd, false, at, BATCH);
		for (i = 0; i < BATCH; i++)
			wrong += !is(data[i], at + i);
	}
	printf("%" PRIu64 " %" PRIu64 "\n", again[0], again[1]);
	return wrong ? 1 : 0;
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

int main(int argc, char **argv)
{
	uint64_t sum = 1;
	int fd, i;

	if (argc == 4 && !strcmp(argv[1], "write"))
		return write_blocks(number(argv[2]), number(argv[3]));
	if (argc == 5 && !strcmp(argv[1], "judge"))
		return judge(argv[2], number(argv[3]), number(argv[4]));
	if (argc == 4 && !strcmp(argv[1], "find"))
		return find(argv[2], number(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "nowait"))
		return nowait(argv[2], number(argv[3]));
	if (argc >= 3 && argc % 2 && !strcmp(argv[1], "sum")) {
		fd = open_file(argv[2], 0);
		if (argc == 3)
			sum = sum_part(fd, 0, UINT64_MAX / BLOCK, sum);
		for (i = 3; i < argc; i += 2)
			sum = sum_part(fd, number(argv[i]), number(argv[i + 1]), sum);
		printf("%016" PRIx64 "\n", sum);
		return 0;
	}
	fprintf(stderr, "usage: blocks write FIRST COUNT | judge FILE FIRST COUNT |"
		" find FILE NUMBER | sum FILE [FIRST COUNT]... | nowait FILE COUNT\n");
	return 2;
}
