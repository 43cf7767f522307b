/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fuzzers' input. Parsers of one block take the block, zeroes following. The
 * image fuzzer takes the zones' states, two bytes each (condition, write pointer),
 * then records: zone, offset, length as __le16, so many bytes of that block; with
 * FUZZ_TEAR set in the length, the block's checksum is wrong; with FUZZ_OOB the first bytes
 * are its metadata.
 */
#ifndef MTFTL_TESTS_FUZZ_H
#define MTFTL_TESTS_FUZZ_H

#include "format.h"

#define FUZZ_TORN	0xee
#define FUZZ_TEAR	0x8000u
#define FUZZ_OOB	0x4000u

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

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

#endif
