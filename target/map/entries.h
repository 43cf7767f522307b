/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of the map: for map.h, which says who may change what, and for age.h.
 */
#ifndef MTFTL_ENTRIES_H
#define MTFTL_ENTRIES_H

#include <linux/atomic.h>
#include <linux/cache.h>

#include "device/ftl.h"

struct mtftl_map_zone {
	atomic_t blocks;		/* that are valid */
	u32 born;			/* by map->clock: when users wrote what lies there */
	u32 life;			/* of that, see policy.h */
} ____cacheline_aligned_in_smp;		/* lanes write to zones of their own */

struct mtftl_map {
	u32 *entries;
	struct mtftl_map_shard *shards;
	struct mtftl_map_zone *zones;
	u32 clock;			/* zones that users have begun; zones->lock to change */
	atomic_t wanted;		/* slots that resets wait for */
	atomic_long_t killed;		/* by discards, before they were written */
	atomic_long_t dropped;		/* of these, those that FUA writes waited for */
};

#endif
