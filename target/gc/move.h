/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Moving: what is valid goes out of victims, a slice at a time, on every core. A part of GC, which
 * decides on the victims (gc.c) and keeps the movers.
 *
 * A victim is its lister's until mtftl_move(); from then on its items belong to the movers, until
 * left is 0 and GC is kicked. All of it sleeps.
 */
#ifndef MTFTL_MOVE_H
#define MTFTL_MOVE_H

#include <linux/atomic.h>
#include <linux/list.h>

#include "gc/pace.h"
#include "zone/zones.h"

/* A block that is moved, or before the first of its unit the header: that has its checksum. */
struct mtftl_item {
	u32 lba;		/* MTFTL_NO_LBA: a header */
	u32 page;
};

struct mtftl_victim {
	struct list_head list;	/* the movers' */
	struct mtftl_zone *zone;
	struct mtftl_item *items;
	u32 nr_items;
	u32 next;		/* item that no slice has taken; the movers', like the next */
	u32 header;		/* page of the header that item @next belongs to */
	u32 need;		/* blocks that may be written for it, headers included */
	atomic_t left;		/* slices under way, and one for the items that none has taken */
	atomic_t moved;		/* items that have moved, or need not */
	bool oldest;		/* none is before it: it waits for space, the others give up */
	/* What became of it: set by movers, never taken back. */
	bool gave_up;		/* some blocks could not be read now */
	bool ranges_left;	/* a checkpoint is needed for what it says of ranges */
	bool ended_early;	/* items are left */
};

struct mtftl_movers;
struct mtftl_resets;

struct mtftl_movers *mtftl_movers_alloc(struct mtftl *ftl, struct mtftl_pace *pace,
					struct mtftl_resets *resets);
void mtftl_movers_free(struct mtftl_movers *movers);
void mtftl_movers_start(struct mtftl_movers *movers);
/* There may be something to move again. */
void mtftl_movers_wake(struct mtftl_movers *movers);
/* No slice is under way when this returns. */
void mtftl_movers_stop(struct mtftl_movers *movers);

/* Movers are at rest: what they have not taken of it they leave. */
void mtftl_move_end(struct mtftl_movers *movers, struct mtftl_victim *victim);

/* Blocks in a unit of GC's at most. */
u32 mtftl_move_unit_blocks(const struct mtftl *ftl);
void mtftl_move(struct mtftl_movers *movers, struct mtftl_victim *victim);

#endif
