/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all files of the judge use.
 */
#ifndef MTFTL_TESTS_CUTS_COMMON_H
#define MTFTL_TESTS_CUTS_COMMON_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Memory, a mapping or a file: without it the judge ends. */
static inline void *must(void *p)
{
	if (p && p != MAP_FAILED)
		return p;
	perror("judge");
	exit(2);
}

/* A number that looks random, the same for the same @x. */
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

#endif
