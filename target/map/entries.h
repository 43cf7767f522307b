/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of the map: for map.h, which says what may change what. The ages in it are for age.h,
 * which says what they mean.
 */
#ifndef MTFTL_ENTRIES_H
#define MTFTL_ENTRIES_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/cache.h>

#include "device/ftl.h"

struct mtftl_map_zone {
	atomic_t blocks;		/* that are valid */
	u32 born;			/* by map->clock: when users wrote what lies there */
	u32 life;			/* of that, see policy.h */
} ____cacheline_aligned_in_smp;		/* lanes write to zones of their own */

struct mtftl_map {
	u32 *entries;
	/* A bit for each chunk: it is not as its last copy by mtftl_map_durable() any more. */
	unsigned long *changed;
	struct mtftl_map_shard *shards;
	struct mtftl_map_zone *zones;
	u32 clock;			/* zones that users have begun; zones->lock to change */
	atomic_t wanted;		/* slots that resets wait for */
	atomic_long_t killed;		/* by discards, before they were written */
	atomic_long_t dropped;		/* of these, those that FUA writes waited for */
};

static inline u32 mtftl_map_chunks(const struct mtftl *ftl)
{
	return DIV_ROUND_UP_ULL(ftl->config.logical_blocks, 1u << MTFTL_CHUNK_SHIFT);
}

/*
 * An entry changes, or what it would be without the buffers. Under the lock of its shard, or in a
 * mount. The line is shared, so it is written to only where the bit is new.
 */
static inline void mtftl_map_mark(struct mtftl *ftl, u32 lba)
{
	u32 chunk = lba >> MTFTL_CHUNK_SHIFT;

	if (!test_bit(chunk, ftl->map->changed))
		set_bit(chunk, ftl->map->changed);
}

/*
 * Which chunks have changed. What drew a number before this is in it, if it has landed; so is a
 * discard, landed or not.
 */
static inline void mtftl_map_copy_changed(const struct mtftl *ftl, unsigned long *changed)
{
	u32 i;

	/* Pairs with mtftl_seq_draw() in mtftl_map_discard() and mtftl_map_lose(). */
	smp_mb();
	for (i = 0; i < BITS_TO_LONGS(mtftl_map_chunks(ftl)); i++)
		changed[i] = READ_ONCE(ftl->map->changed[i]);
}

static inline u32 mtftl_map_clock(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->map->clock);
}

/* Mounting. */
static inline void mtftl_map_set_clock(struct mtftl *ftl, u32 clock)
{
	WRITE_ONCE(ftl->map->clock, clock);
}

/* Users have begun one more zone. The caller keeps others from doing the same. */
static inline void mtftl_map_tick(struct mtftl *ftl)
{
	WRITE_ONCE(ftl->map->clock, ftl->map->clock + 1);
}

static inline u32 mtftl_map_born(const struct mtftl *ftl, u32 zone)
{
	return READ_ONCE(ftl->map->zones[zone].born);
}

static inline u32 mtftl_map_life(const struct mtftl *ftl, u32 zone)
{
	return READ_ONCE(ftl->map->zones[zone].life);
}

/* The mean over what lies there. For the writer of the zone, and for mounting. */
static inline void mtftl_map_set_age(struct mtftl *ftl, u32 zone, u32 born, u32 life)
{
	WRITE_ONCE(ftl->map->zones[zone].born, born);
	WRITE_ONCE(ftl->map->zones[zone].life, life);
}

#endif
