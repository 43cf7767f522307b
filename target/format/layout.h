/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How large checkpoints are: arithmetic that all readers and writers of the format must agree on.
 * Pure: any context.
 */
#ifndef MTFTL_LAYOUT_H
#define MTFTL_LAYOUT_H

#include "format/format.h"

static inline u64 mtftl_div_round_up(u64 a, u32 b)
{
	mtftl_assert(b && a <= a + b - 1);
	return div_u64(a + b - 1, b);
}

/* Blocks of a stream that has zone records and all of the map. */
u32 mtftl_ckpt_stream_blocks(u32 nr_zones, u64 logical_blocks);
/*
 * Zones that one checkpoint takes. Twice as many are set aside, so that the last checkpoint stays
 * valid while the next one is written.
 */
u32 mtftl_ckpt_zones(u32 nr_zones, u32 zone_capacity, u64 logical_blocks);

/* The largest device whose checkpoint takes no more than @zones. */
u64 mtftl_ckpt_most_blocks(u32 nr_zones, u32 zone_capacity, u32 zones);

#endif
