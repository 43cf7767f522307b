// SPDX-License-Identifier: GPL-2.0
/* Any block as a unit header, or without one as data of any metadata: what parses keeps to its limits. */
#include "fuzz.h"
#include "unit.h"

#define ZONE		3
#define OFFSET		7
#define CAPACITY	100

/* The first bytes are two blocks' metadata. */
static void parse_oob(const u8 *data, size_t size)
{
	_Alignas(8) u8 blocks[2 * MTFTL_BLOCK_SIZE], header[MTFTL_BLOCK_SIZE];
	struct mtftl_oob oob[2];
	struct mtftl_unit_info info;
	u32 i, crc, offset = CAPACITY - 1 - (size & 1);
	u64 lba;

	if (size < sizeof(oob))
		return;
	memcpy(oob, data, sizeof(oob));
	fuzz_block(blocks, data + sizeof(oob), size - sizeof(oob));
	memcpy(blocks + MTFTL_BLOCK_SIZE, blocks, MTFTL_BLOCK_SIZE);
	if (mtftl_oob_parse(blocks, oob, sizeof(*oob), 2, 0, ZONE, offset, CAPACITY, header, &info))
		return;
	fuzz_assert(info.seq > info.durable_seq);
	fuzz_assert(offset + mtftl_unit_head(true, info.type) + info.nr_blocks <= CAPACITY);
	for (i = 0; info.type != MTFTL_UNIT_RANGES && i < info.nr_entries; i++)
		mtftl_unit_entry(header, i, &lba, &crc);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	_Alignas(8) u8 block[MTFTL_BLOCK_SIZE];
	struct mtftl_unit_info info;
	enum mtftl_range_kind kind;
	u32 crc, nr, i;
	u64 lba, seq;

	parse_oob(data, size);
	fuzz_block(block, data, size);
	if (mtftl_unit_parse(block, 0, ZONE, OFFSET, CAPACITY, &info))
		return 0;
	fuzz_assert(info.seq > info.durable_seq);
	fuzz_assert(info.offset + 1 + info.nr_blocks <= CAPACITY);
	for (i = 0; i < info.nr_entries; i++) {
		if (info.type == MTFTL_UNIT_RANGES) {
			mtftl_unit_range(block, i, &lba, &nr, &seq, &kind);
			fuzz_assert(nr > 0 && lba + nr > lba && seq < info.seq);
		} else {
			mtftl_unit_entry(block, i, &lba, &crc);
		}
	}
	return 0;
}
