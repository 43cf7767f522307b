// SPDX-License-Identifier: GPL-2.0
/*
 * Parses any block as a unit header, or as data without a header and with any metadata. What parses
 * keeps to its limits. The first bytes are the place: capacity of the zone, block of the zone,
 * bytes of metadata a block, blocks at hand.
 */
#include "format/parse.h"
#include "fuzz.h"

#define ZONE		3
#define BLOCKS_MOST	8u

struct place {
	u8 capacity[3];
	u8 offset[3];
	u8 stride;
	u8 blocks;
};

/* What follows are the metadata of so many blocks, and then what each of them holds. */
static void parse_oob(const struct place *place, const u8 *data, size_t size)
{
	static u8 blocks[BLOCKS_MOST * MTFTL_BLOCK_SIZE] __attribute__((aligned(8)));
	u8 header[MTFTL_BLOCK_SIZE] __attribute__((aligned(8)));
	u8 oob[BLOCKS_MOST * MTFTL_META_MAX] __attribute__((aligned(8)));
	u32 capacity = fuzz_capacity(place->capacity), nr = 1 + place->blocks % BLOCKS_MOST, i, crc;
	u32 stride = sizeof(struct mtftl_oob) + place->stride % 15 * 8, offset, most;
	struct mtftl_unit_info info;
	u64 lba;

	offset = fuzz_u24(place->offset) % capacity;
	if (size < nr * stride)
		return;
	memcpy(oob, data, nr * stride);
	for (i = 0; i < nr; i++)
		fuzz_block(blocks + i * MTFTL_BLOCK_SIZE, data + nr * stride, size - nr * stride);
	if (mtftl_oob_parse(blocks, oob, stride, nr, 0, ZONE, offset, capacity, header, &info))
		return;
	fuzz_assert(info.seq > info.durable_seq);
	most = capacity - offset - mtftl_unit_head(true, info.type);
	fuzz_assert(info.nr_blocks <= most);
	fuzz_assert(mtftl_unit_head(true, info.type) || info.nr_blocks <= nr);
	for (i = 0; info.type != MTFTL_UNIT_RANGES && i < info.nr_entries; i++)
		mtftl_unit_entry(header, i, &lba, &crc);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const struct place *place = (const struct place *)data;
	u8 block[MTFTL_BLOCK_SIZE] __attribute__((aligned(8)));
	u32 capacity, offset, crc, nr, i;
	struct mtftl_unit_info info;
	enum mtftl_range_kind kind;
	u64 lba, seq;

	if (size < sizeof(*place))
		return 0;
	capacity = fuzz_capacity(place->capacity);
	offset = fuzz_u24(place->offset);
	data += sizeof(*place);
	size -= sizeof(*place);
	parse_oob(place, data, size);
	fuzz_block(block, data, size);
	if (mtftl_unit_parse(block, 0, ZONE, offset, capacity, &info))
		return 0;
	fuzz_assert(info.seq > info.durable_seq);
	fuzz_assert(info.offset < capacity && info.nr_blocks < capacity - info.offset);
	for (i = 0; i < info.nr_entries; i++) {
		if (info.type == MTFTL_UNIT_RANGES) {
			mtftl_unit_range(block, i, &lba, &nr, &seq, &kind);
			/* No writer makes a longer one than a chunk of the map. */
			fuzz_assert(nr > 0 && lba + nr > lba && seq < info.seq);
		} else {
			mtftl_unit_entry(block, i, &lba, &crc);
		}
	}
	return 0;
}
