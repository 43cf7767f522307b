/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The buffers: one ring of 4 KiB slots a lane. Positions only grow: tail <= next <= head <= tail +
 * entries. Users reserve at head and fill without a lock; the lane's writer composes from next;
 * completions free at tail, in order. The map points to slots by number: see map.h. ring->lock,
 * with interrupts off, protects head, tail and what the lane keeps beside. Slots say theirs.
 */
#ifndef MTFTL_RING_H
#define MTFTL_RING_H

#include <linux/spinlock.h>

#include "device/ftl.h"

#define MTFTL_NO_LBA		U32_MAX	/* a slot that is not needed */
#define mtftl_is_page(value)	((value) <= MTFTL_MAP_MAX_PAGE)

static inline bool mtftl_is_slot(u32 value)
{
	return value >= MTFTL_MAP_SLOTS && value < MTFTL_MAP_LOST;
}

enum mtftl_slot_state {
	MTFTL_SLOT_FREE,	/* or reserved, and still being filled */
	MTFTL_SLOT_FILLED,	/* may be overwritten in place; dead if the map is elsewhere */
	MTFTL_SLOT_IN_FLIGHT,	/* its content is fixed */
	MTFTL_SLOT_DONE,	/* waits for the slots before it */
};

struct mtftl_slot {
	u32 lba;		/* shard->lock of the lba that it holds or held */
	u32 prev;		/* what the map pointed to before; shard->lock */
	u8 state;		/* shard->lock to change, but for DONE -> FREE: ring->lock */
	u8 class;		/* of its data, for placement; fixed once filled, like the next */
	u16 life;
	bool wanted, through;	/* a reset waits for it; a FUA write does; shard->lock to change */
	bool summed;		/* crc is its data's; shard->lock to change, once it is filled */
	u8 hint;		/* of how long its data will live, 0: none; see hint.h */
	u32 crc;
};

struct mtftl_ring {
	struct mtftl_slot *slots;	/* on the node of the CPU, like the next */
	void **chunks;			/* pages of the slots */
	unsigned int cpu;		/* where the lane's writer is at home */
	u32 entries;			/* slots in use at most */
	u32 mask;			/* of positions, for the array's index */
	u32 first_slot;			/* map value of slot 0 */
	spinlock_t lock ____cacheline_aligned_in_smp;
	u64 head;			/* next position to be filled */
	u64 tail;			/* first position that is not written yet */
	u64 next ____cacheline_aligned_in_smp;	/* next to be composed; writer only, up to filled */
	u32 ahead;			/* slots behind it that were composed before it */
	u64 looked;			/* pick.c has seen those before it */
	u32 filled[MTFTL_MAX_CLASSES];	/* of these, by class: not composed yet */
	u64 from[MTFTL_MAX_CLASSES];	/* none of these lies before it */
	u64 drain_to;			/* compose up to here without waiting; flusher */
	atomic_t wanted;		/* slots that are waited for, and not composed yet */
};

struct mtftl_rings {
	unsigned int nr;
	u32 shift;			/* slots of a ring's array */
	struct mtftl_ring all[];
};

int mtftl_rings_alloc(struct mtftl *ftl);
void mtftl_rings_free(struct mtftl *ftl);

static inline struct mtftl_ring *mtftl_ring(const struct mtftl *ftl, unsigned int index)
{
	mtftl_assert(index < ftl->rings->nr, "lane %u of %u", index, ftl->rings->nr);
	return &ftl->rings->all[index];
}

/* The slot at a position, and its memory. */
static inline struct mtftl_slot *mtftl_ring_slot(const struct mtftl_ring *ring, u64 pos,
						 void **data)
{
	u32 index = (u32)pos & ring->mask;

	if (data)
		*data = ring->chunks[index >> MTFTL_BUFFER_SHIFT] +
			(index & (MTFTL_BUFFER_BLOCKS - 1)) * MTFTL_BLOCK_SIZE;
	return &ring->slots[index];
}

/* The slot that a map value points to, and its memory. */
static inline struct mtftl_slot *mtftl_slot(const struct mtftl *ftl, u32 value, void **data)
{
	u32 slot = value - MTFTL_MAP_SLOTS;

	mtftl_assert(mtftl_is_slot(value), "map value %#x", value);
	return mtftl_ring_slot(mtftl_ring(ftl, slot >> ftl->rings->shift), slot, data);
}

static inline u32 mtftl_ring_value(const struct mtftl_ring *ring, u64 pos)
{
	return ring->first_slot + ((u32)pos & ring->mask);
}

static inline u32 mtftl_ring_used(const struct mtftl_ring *ring)
{
	return READ_ONCE(ring->head) - READ_ONCE(ring->tail);
}

static inline u32 mtftl_ring_unsent(const struct mtftl_ring *ring)
{
	return READ_ONCE(ring->head) - READ_ONCE(ring->next) - READ_ONCE(ring->ahead);
}

/* What flushes wait for is on its way. */
static inline bool mtftl_ring_is_drained(const struct mtftl_ring *ring)
{
	return READ_ONCE(ring->drain_to) <= READ_ONCE(ring->next);
}

static inline bool mtftl_ring_next_is_filled(const struct mtftl_ring *ring)
{
	u64 next = READ_ONCE(ring->next);

	return next != READ_ONCE(ring->head) &&
	       READ_ONCE(ring->slots[(u32)next & ring->mask].state) == MTFTL_SLOT_FILLED;
}

/* What every change of a position keeps. Lock held; the writer may move next meanwhile. */
static inline bool mtftl_ring_is_sound(const struct mtftl_ring *ring)
{
	u64 next = READ_ONCE(ring->next);

	return ring->tail <= next && next <= ring->head && ring->head - ring->tail <= ring->entries;
}

/* Free what is done at the tail, in order. Lock held. */
void mtftl_ring_advance(struct mtftl_ring *ring);
bool mtftl_rings_are_empty(const struct mtftl *ftl);
/* Flushes: up to the heads of now. Returns how many slots were filled since the flush before. */
u64 mtftl_rings_mark_drain(struct mtftl *ftl);
bool mtftl_rings_are_drained(const struct mtftl *ftl);

#endif
