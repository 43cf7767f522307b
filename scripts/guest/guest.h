/* SPDX-License-Identifier: GPL-2.0 */
/* What the guest's programs that measure share. */
#ifndef GUEST_H
#define GUEST_H

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Nanoseconds. */
static inline uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/*
 * Where a file lies is read before a measurement. On a machine with much memory it stays there,
 * because the journal holds it.
 */
static inline void learn_extents(const char *path)
{
	struct fiemap map = { .fm_length = FIEMAP_MAX_OFFSET };
	int file = open(path, O_RDONLY);

	if (file < 0 || ioctl(file, FS_IOC_FIEMAP, &map))
		die(path);
	close(file);
}

#endif
