/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fuzzers' input. For parsers of one block it is the place of the block and then the block,
 * padded with zeroes. For fuzzers of images it is a device: a struct fuzz_geometry, then records. A
 * record is a struct fuzz_record and as many bytes as it says.
 */
#ifndef MTFTL_TESTS_FUZZ_H
#define MTFTL_TESTS_FUZZ_H

#include <stddef.h>

#include "format/format.h"

#define FUZZ_TORN	0xee

#define FUZZ_MIN_CAPACITY	3u
#define FUZZ_MAX_CAPACITY	275712u		/* of a zone of 1077 MiB */
#define FUZZ_MIN_ZONES		3u
#define FUZZ_MAX_ZONES		1023u		/* a checkpoint of small ones takes several */

/* Any bytes are a valid geometry: values out of bounds are wrapped. */
struct fuzz_geometry {
	__u8 capacity[3];	/* of a zone in blocks, from the lowest byte */
	__u8 zones[2];		/* more than FUZZ_MIN_ZONES */
	__u8 flags;		/* FUZZ_GEO_* */
	__u8 meta;		/* bytes of metadata a block: 8 times the lowest four bits */
};

#define FUZZ_GEO_HOLE	0x01	/* zones lie twice as far apart as they must */
#define FUZZ_GEO_512	0x02	/* device blocks of 512 bytes: zones are ragged, write pointers too */
#define FUZZ_GEO_OOB	0x04	/* fuzz_walk: units of data have no headers */

struct fuzz_record {
	__u8 kind;		/* lowest two bits: enum fuzz_kind; above: 256 zones more, each */
	__u8 zone;
	__u8 at[3];		/* block of the zone, from the lowest byte; of FUZZ_ZONE: its write pointer */
	__u8 extra;		/* FUZZ_ZONE: condition, sectors behind; FUZZ_FILL: stride */
	__u8 length[2];		/* of what follows, FUZZ_TEAR and FUZZ_OOB */
};

enum fuzz_kind {
	FUZZ_BLOCK,		/* what one block holds */
	FUZZ_ZONE,		/* condition and write pointer; a zone without is empty */
	FUZZ_FILL,		/* what each extra + 1st block holds, from there to the zone's end */
	FUZZ_COUNT,		/* what the extra + 1 blocks from there on hold */
};

#define FUZZ_TEAR	0x8000u	/* the block's checksum is wrong */
#define FUZZ_OOB	0x4000u	/* what follows begins with the block's metadata */
#define FUZZ_LENGTH	0x1fffu

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerMutate(u8 *data, size_t size, size_t max_size);	/* libFuzzer's own */

/* What must hold, or the fuzzer has found something. */
#define fuzz_assert(condition) do {						\
	if (!(condition))							\
		__builtin_trap();						\
} while (0)

static inline void fuzz_block(u8 *block, const u8 *data, size_t size)
{
	size_t used = size < MTFTL_BLOCK_SIZE ? size : MTFTL_BLOCK_SIZE;

	memcpy(block, data, used);
	memset(block + used, 0, MTFTL_BLOCK_SIZE - used);
}

static inline u32 fuzz_u24(const u8 *bytes)
{
	return bytes[0] | bytes[1] << 8 | (u32)bytes[2] << 16;
}

static inline enum fuzz_kind fuzz_kind(const struct fuzz_record *record)
{
	return record->kind & 3;
}

/* A zone's capacity of any three bytes. */
static inline u32 fuzz_capacity(const u8 *bytes)
{
	u32 capacity = fuzz_u24(bytes);

	if (capacity < FUZZ_MIN_CAPACITY || capacity > FUZZ_MAX_CAPACITY)
		capacity = FUZZ_MIN_CAPACITY +
			   capacity % (FUZZ_MAX_CAPACITY - FUZZ_MIN_CAPACITY + 1);
	return capacity;
}

#endif
