// SPDX-License-Identifier: GPL-2.0
/*
 * Writes that say how long their data will live.
 *
 *	hinted FILE TIMES BLOCKS HINT...
 *
 * Writes TIMES rounds from the beginning of FILE on, past the page cache: in each round BLOCKS
 * blocks of 4 KiB with each of the hints, which are numbers of enum rw_hint, 0 for none.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK	4096

static void check(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	size_t times, size;
	off_t at = 0;
	void *data;
	int fd, i;

	if (argc < 5) {
		fprintf(stderr, "usage: hinted FILE TIMES BLOCKS HINT...\n");
		return 2;
	}
	times = strtoul(argv[2], NULL, 0);
	size = strtoul(argv[3], NULL, 0) * BLOCK;
	data = aligned_alloc(BLOCK, size);
	check(!!data, "hinted");
	memset(data, 'x', size);
	fd = open(argv[1], O_RDWR | O_DIRECT);
	check(fd >= 0, argv[1]);
	while (times--) {
		for (i = 4; i < argc; i++, at += size) {
			uint64_t hint = strtoull(argv[i], NULL, 0);

			check(!fcntl(fd, F_SET_RW_HINT, &hint), argv[i]);
			check(pwrite(fd, data, size, at) == (ssize_t)size, argv[1]);
		}
	}
	check(!fsync(fd), argv[1]);
	return 0;
}
