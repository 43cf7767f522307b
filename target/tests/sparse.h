/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fuzzers' device, made of their input: see fuzz.h. Only blocks that the input gives take
 * memory, so a zone of 275,712 blocks costs no more than one of three. The number of reads is
 * limited: else an input that only points to other places would take minutes. There is one device
 * at a time.
 */
#ifndef MTFTL_TESTS_SPARSE_H
#define MTFTL_TESTS_SPARSE_H

#include <setjmp.h>

#include "flash.h"
#include "fuzz.h"

#define SPARSE_BLOCKS	4096u		/* that are given and that are written */
#define SPARSE_FILLS	16u
#define SPARSE_WRITTEN	300000u		/* blocks below all write pointers together */
#define SPARSE_READS	6000u		/* blocks that can be read, without sparse_allow() */

struct sparse_block {
	u32 page;
	u32 next;			/* of the same bucket, plus one */
	const u8 *data;
	u32 size;
	bool torn;
	struct mtftl_oob oob;
};

struct sparse_fill {
	u32 zone;
	u32 first, end, stride;
	struct sparse_block block;
};

struct sparse_image {
	struct flash flash;
	struct flash_zone zones[FUZZ_MAX_ZONES];
	u32 meta_size;
	bool small_blocks;		/* of 512 bytes */
	bool oob;			/* FUZZ_GEO_OOB */
	u32 budget;			/* blocks that could be read, at first */
	u32 reads;			/* and that still can */
	u32 below;			/* blocks below all write pointers, at first */
	jmp_buf *give_up;		/* where to go on when there are no more; NULL: -EIO */
	u32 nr;
	u32 nr_fills;
	u32 buckets[1024];		/* 0: empty, else the number of a block plus one */
	struct sparse_block blocks[SPARSE_BLOCKS];
	struct sparse_fill fills[SPARSE_FILLS];
	u32 written;			/* blocks in use below */
	u8 content[512][MTFTL_BLOCK_SIZE];
};

/* False: the input is too short for a geometry. */
bool sparse_load(struct sparse_image *image, const u8 *data, size_t size);
/* Allow so many reads of blocks from now on, whatever was read before. */
static inline void sparse_allow(struct sparse_image *image, u32 reads)
{
	image->budget = reads;
	image->reads = reads;
}

/* All allowed reads were made; the device answers no more. */
static inline bool sparse_is_exhausted(const struct sparse_image *image)
{
	return !image->reads;
}

/*
 * The code asked for more blocks than the size of the device explains. When each block below a
 * write pointer was read eight times, all should be known.
 */
static inline bool sparse_asked_too_much(const struct sparse_image *image)
{
	return !image->reads && image->below < image->budget / 8;
}

/* One block as the input gives it, padded with zeroes; -EIO: the device answers no more. */
int sparse_block(struct sparse_image *image, u32 page, u8 *block, struct mtftl_oob *oob);
/* What is written of the block at a zone's write pointer, padded likewise. */
int sparse_torn_block(struct sparse_image *image, u32 zone, u8 *block);

#endif
