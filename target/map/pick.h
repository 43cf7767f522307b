/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which slots of a ring go into one unit: filled ones of a class. So a ring is not composed in
 * order, but it is freed in order: see ring.h. All is for the ring's writer alone.
 */
#ifndef MTFTL_PICK_H
#define MTFTL_PICK_H

#include "map/ring.h"

/* Slots that a unit may take. */
struct mtftl_pick {
	u64 start;		/* none lies before it */
	u64 end;		/* they lie before it */
	u32 nr;
	u32 class;
	u32 others;		/* filled ones of other classes, before the end */
	bool mixed;		/* they go along */
	bool wanted;		/* only those that a reset waits for, of all classes */
};

/*
 * Of the filled slots from next on, up to the first that is not filled yet: @max of one class, or
 * if no class has so many those of the first one's.
 */
void mtftl_ring_pick(struct mtftl_ring *ring, u32 max, struct mtftl_pick *pick);
/* Of the class of the oldest slot, @max or less; others were composed ahead of it. */
void mtftl_ring_pick_oldest(struct mtftl_ring *ring, u32 max, struct mtftl_pick *pick);
/* The most that a class has, of those that were looked at for that. */
u32 mtftl_ring_fullest(const struct mtftl_ring *ring);
/* Of those that a reset waits for, wherever they are, @max; their unit has the first's class. */
void mtftl_ring_pick_wanted(struct mtftl_ring *ring, u32 max, struct mtftl_pick *pick);
/* It is picked, and not taken yet. */
bool mtftl_ring_is_picked(const struct mtftl_ring *ring, const struct mtftl_pick *pick, u64 pos);
/* All that are filled go along, of whatever class: they fit into the unit. */
void mtftl_ring_pick_all(const struct mtftl_ring *ring, struct mtftl_pick *pick);
/* The picked one at @pos is taken: call it for one after the other. */
void mtftl_ring_take(struct mtftl_ring *ring, const struct mtftl_pick *pick, u64 pos);
/* So many of the picked ones were taken. */
void mtftl_ring_taken(struct mtftl_ring *ring, u32 nr);

#endif
