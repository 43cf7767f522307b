// SPDX-License-Identifier: GPL-2.0
/*
 * How large checkpoints are: see layout.h.
 */
#include "format/layout.h"

u32 mtftl_ckpt_stream_blocks(u32 nr_zones, u64 logical_blocks)
{
	u64 records = (u64)nr_zones * sizeof(struct mtftl_zone_record);

	return mtftl_div_round_up(records, MTFTL_BLOCK_SIZE) +
	       mtftl_div_round_up(logical_blocks * sizeof(__le32), MTFTL_BLOCK_SIZE);
}

u64 mtftl_ckpt_most_blocks(u32 nr_zones, u32 zone_capacity, u32 zones)
{
	u64 blocks = (u64)zones * (zone_capacity / (1 + MTFTL_STREAM_UNIT_BLOCKS)) *
		     MTFTL_STREAM_UNIT_BLOCKS;
	u32 records = mtftl_ckpt_stream_blocks(nr_zones, 0);

	return blocks > records ? (blocks - records) * (MTFTL_BLOCK_SIZE / sizeof(__le32)) : 0;
}

u32 mtftl_ckpt_zones(u32 nr_zones, u32 zone_capacity, u64 logical_blocks)
{
	u32 stream_blocks = mtftl_ckpt_stream_blocks(nr_zones, logical_blocks);
	u32 units = zone_capacity / (1 + MTFTL_STREAM_UNIT_BLOCKS);

	if (units == 0)
		return (u32)-1;
	return mtftl_div_round_up(stream_blocks, units * MTFTL_STREAM_UNIT_BLOCKS);
}
