// SPDX-License-Identifier: GPL-2.0
/*
 * Makes FUA writes one after the other, and measures them. It uses /dev/fuawrite, because a write
 * with O_DSYNC also ends with a flush.
 *
 *	fua FILE FIRST BLOCKS MILLISECONDS SEED
 *
 * Each write goes to a random one of BLOCKS blocks of 4 KiB from FIRST on. Prints the number of
 * writes, and their mean and longest time in nanoseconds.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>

#include "torture/fuawrite/fuawrite.h"

#define BLOCK	4096

static _Alignas(BLOCK) unsigned char data[BLOCK];

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDWR);

	if (fd < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

int main(int argc, char **argv)
{
	uint64_t first, blocks, end, begun, took, sum = 0, most = 0, nr = 0, random;
	struct fuawrite arg = { .data = (uintptr_t)data, .length = BLOCK };
	int helper;

	if (argc != 6) {
		fprintf(stderr, "usage: fua FILE FIRST BLOCKS MILLISECONDS SEED\n");
		return 2;
	}
	arg.fd = open_file(argv[1]);
	helper = open_file("/dev/fuawrite");
	first = strtoull(argv[2], NULL, 0);
	blocks = strtoull(argv[3], NULL, 0);
	random = strtoull(argv[5], NULL, 0);
	end = now() + strtoull(argv[4], NULL, 0) * 1000000;
	for (begun = now(); begun < end; begun += took) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		arg.offset = (first + (random >> 33) % blocks) * BLOCK;
		if (ioctl(helper, FUAWRITE, &arg)) {
			perror("fua");
			return 1;
		}
		took = now() - begun;
		sum += took;
		most = took > most ? took : most;
		nr++;
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", nr, sum / nr, most);
	return 0;
}
