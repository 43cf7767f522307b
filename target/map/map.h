/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The map: logical block -> page of the device, slot of a buffer, unmapped, lost; how many
 * blocks of each zone it points to. How old those are: age.h.
 *
 * Looking takes no lock, in any context; what an entry's slot holds is copied by the map. All
 * that changes an entry runs under the lock of the entry's shard, with interrupts off, and may be
 * called in any context. mtftl_map_load(), _set() and _count() are for mounting.
 */
#ifndef MTFTL_MAP_H
#define MTFTL_MAP_H

#include <linux/atomic.h>
#include <linux/bio.h>

#include "map/entries.h"
#include "map/pending.h"
#include "map/ring.h"

int mtftl_map_alloc(struct mtftl *ftl);
void mtftl_map_free(struct mtftl *ftl);
/* Bytes for each block and for each zone. */
u64 mtftl_map_bytes(const struct mtftl *ftl);

static inline u32 mtftl_map_look(const struct mtftl *ftl, u32 lba)
{
	mtftl_assert(lba < ftl->config.logical_blocks, "block %u", lba);
	return READ_ONCE(ftl->map->entries[lba]);
}

static inline u32 mtftl_map_valid(const struct mtftl *ftl, u32 zone)
{
	mtftl_assert(zone < ftl->config.nr_zones, "zone %u", zone);
	return max(atomic_read(&ftl->map->zones[zone].blocks), 0);
}

/* The index of the ring that has the slot of a value. */
static inline u32 mtftl_map_ring(const struct mtftl *ftl, u32 value)
{
	mtftl_assert(mtftl_is_slot(value), "map value %#x", value);
	return (value - MTFTL_MAP_SLOTS) >> ftl->config.lane_shift;
}

/* Users: into the buffers */
void mtftl_bio_to_slot(struct bio *bio, void *data);
/*
 * Returns the slot that has the data now, which may be in another lane. overwrite returns
 * MTFTL_MAP_UNMAPPED if there is none. @through: the data goes to flash at once.
 */
u32 mtftl_map_overwrite(struct mtftl *ftl, u32 lba, struct bio *bio, bool through);
u32 mtftl_map_publish(struct mtftl *ftl, u32 lba, struct mtftl_slot *slot, u32 value, bool through);
bool mtftl_map_copy_slot(struct mtftl *ftl, u32 lba, u32 value, struct bio *bio);
bool mtftl_map_discard(struct mtftl *ftl, struct mtftl_range_rec *rec);
/* Changes when a discard kills a buffered block; the record is listed by then. */
static inline unsigned long mtftl_map_killed(const struct mtftl *ftl)
{
	return atomic_long_read(&ftl->map->killed);
}

/*
 * FUA writes. One is through when each of its blocks is on flash, in its version or a newer one;
 * other blocks do not count. Call _begin before the first block is buffered. Call
 * mtftl_map_through() after the last one: it completes the bio, now or later. Call _again when the
 * device gives back or is read-only: waiting bios are answered, and no bio waits afterwards.
 */
void mtftl_map_through_begin(struct mtftl *ftl, struct bio *bio);
void mtftl_map_through(struct mtftl *ftl, struct bio *bio);
void mtftl_map_through_again(struct mtftl *ftl);

/* Writers: out of them */
bool mtftl_map_take(struct mtftl *ftl, struct mtftl_ring *ring, struct mtftl_slot *slot, u32 value);
void mtftl_map_complete(struct mtftl *ftl, u32 lba, u32 value, u32 page);

/*
 * Resets: what is buffered in place of pages that leave, as @leaves says, goes out ahead of the
 * rest. One caller at a time.
 */
void mtftl_map_want(struct mtftl *ftl, bool (*leaves)(struct mtftl *ftl, u32 page));
/* Some of that is neither written yet nor dead. */
static inline bool mtftl_map_wants(const struct mtftl *ftl)
{
	/* Pairs with unwant(). */
	return atomic_read_acquire(&ftl->map->wanted);
}

/* GC */
bool mtftl_map_points_to(struct mtftl *ftl, u32 lba, u32 page);
void mtftl_map_move(struct mtftl *ftl, u32 lba, u32 from, u32 to);
bool mtftl_map_lose(struct mtftl *ftl, u32 lba, u32 page, u64 *seq);

/* Checkpoints: a chunk as it would be without the buffers, unchanged from now on; its entries. */
u32 mtftl_map_durable(struct mtftl *ftl, u32 chunk, __le32 *out);

/* Mounting: as the checkpoint has it, and what is newer than that. */
static inline void mtftl_map_load(struct mtftl *ftl, u32 lba, u32 value)
{
	/* Nothing is buffered yet. */
	mtftl_assert(lba < ftl->config.logical_blocks && !mtftl_is_slot(value),
		     "block %u: %#x", lba, value);
	ftl->map->entries[lba] = value;
}

static inline void mtftl_map_set(struct mtftl *ftl, u32 lba, u32 value)
{
	if (mtftl_map_look(ftl, lba) == value)
		return;
	mtftl_map_mark(ftl, lba);
	mtftl_map_load(ftl, lba, value);
}

/* @nr entries point to the zone, more than those that were counted before. */
static inline void mtftl_map_count(struct mtftl *ftl, u32 zone, u32 nr)
{
	mtftl_assert(zone < ftl->config.nr_zones, "zone %u", zone);
	if (nr)
		atomic_add(nr, &ftl->map->zones[zone].blocks);
}

#endif
