/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mounts of damaged media: metadata blocks flipped, swapped, zeroed, cut off,
 * also with their checksums made right again. The target and mtftl(8) must refuse
 * it or read it: no oops, no hang, and never a block that is not whole or another's.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdatomic.h>
#include <stdint.h>

struct device;
struct oracle;

/* The device is unmounted, after a crash. Returns 0, 1 (violations) or 2 (cannot). */
int fuzz(struct device *dev, struct oracle *oracle, uint64_t seed, unsigned int rounds,
	 void (*enter)(const char *phase));
/*
 * Makes images with one wrong field each, behind a right checksum, mounts them, forces GC and reads
 * all. No mount may take longer than twice the longest legal one.
 */
int crafted(struct device *dev, struct oracle *oracle, uint64_t seed, unsigned int rounds,
	    void (*enter)(const char *phase));

#endif
