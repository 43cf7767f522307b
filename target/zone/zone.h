/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Zones: their states, which are short, and what becomes of one that fails or was reset.
 *
 * States, lists and counts change under zones->lock (process context); a count may be looked at
 * without. A zone's write pointer, units in flight and footer are under zone->lock (completions).
 * A zone that nobody writes to belongs to whoever has put it into its state.
 */
#ifndef MTFTL_ZONE_H
#define MTFTL_ZONE_H

#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "device/device.h"
#include "device/space.h"

#define MTFTL_ZONE_LIVES	2u	/* each ended by a failed write, in a row: it is worn out */

/* Who writes to a zone changes one line of it. Neighbours share none. */
struct mtftl_zone {
	spinlock_t lock ____cacheline_aligned_in_smp;	/* wp to footer */
	u32 wp;			/* blocks handed out */
	u32 quiet_wp;		/* every unit below it has completed */
	u16 in_flight;
	bool closing;		/* nobody takes place in it any more */
	bool broken;		/* failed a write: nothing more goes here before a reset */
	bool judged, finished;	/* after that: had the device finished it? zones->wq */
	u64 first_seq;		/* number of its first unit, 0 if not known yet */
	u64 ranges_seq;		/* of the newest ranges in it */
	u64 born_sum, life_sum;	/* of its blocks, as the map's */
	struct mtftl_footer_buf *footer;	/* NULL: it will have none; see stream.c */
	struct mtftl *ftl ____cacheline_aligned_in_smp;
	u32 index;
	u32 limit;		/* data goes below it */
	u32 erase_count;	/* changed while nobody writes to the zone, like the next */
	u32 failed_lives;	/* in a row, of this mount */
	ktime_t taken;		/* as a victim, the last time */
	unsigned long not_before;	/* jiffies, 0: no victim sooner, see MTFTL_GIVEN_UP */
	u64 full_seq;		/* when it became full, for its age */
	u32 torn_end;		/* where recovery found the last unit's end; above wp: torn */
	u8 torn_sectors;	/* of the block at wp, found by recovery */
	bool append;		/* placed by the device */
	bool newer;		/* recovery found units in it that the checkpoint does not have */
	bool unfinished;	/* found written to its last block, and active still */
	enum mtftl_zone_state state;	/* zones->lock */
	struct list_head list;	/* of its state; zones->lock */
	struct work_struct close_work;
};

struct mtftl_zones {
	spinlock_t lock;	/* what follows, up to back_us, and the state of space.h */
	struct list_head list[MTFTL_NR_ZONE_STATES];
	u32 worn_out;		/* full ones that GC has to clear */
	u32 back_us;		/* from victim to empty, of late; 0: not known yet */
	struct workqueue_struct *wq;	/* ordered: closing zones, writing units again */
	struct mtftl_zone all[];
};

static inline struct mtftl_zone *mtftl_zone(const struct mtftl *ftl, u32 index)
{
	return &ftl->zones->all[index];
}

static inline u32 mtftl_zone_start(const struct mtftl_zone *zone)
{
	return mtftl_zone_page(zone->ftl, zone->index);
}

static inline u32 mtftl_zones_count(const struct mtftl *ftl, enum mtftl_zone_state state)
{
	return mtftl_space_zones(ftl, state);
}

/* Against the budget of open ones. */
static inline u32 mtftl_zones_in_use(const struct mtftl *ftl)
{
	return mtftl_zones_count(ftl, MTFTL_ZONE_OPEN) +
	       mtftl_zones_count(ftl, MTFTL_ZONE_CLOSING) +
	       mtftl_zones_count(ftl, MTFTL_ZONE_PARTIAL);
}

int mtftl_zones_alloc(struct mtftl *ftl);
void mtftl_zones_free(struct mtftl *ftl);
/* Lock held. */
void mtftl_zone_set_state(struct mtftl_zone *zone, enum mtftl_zone_state state);
struct mtftl_zone *mtftl_zones_least_worn(struct mtftl *ftl);
/* By themselves, the rest. */
void mtftl_zones_set_gc_owes(struct mtftl *ftl, u32 blocks);
void mtftl_zones_set_no_victim(struct mtftl *ftl, bool none);
void mtftl_zones_look(struct mtftl *ftl, struct mtftl_admit_state *state);
static inline bool mtftl_zone_is_worn_out(const struct mtftl_zone *zone)
{
	return zone->failed_lives >= MTFTL_ZONE_LIVES;
}
bool mtftl_zone_was_finished(struct mtftl_zone *zone);
void mtftl_zone_finish_broken(struct mtftl_zone *zone);
void mtftl_zone_reset_done(struct mtftl_zone *zone, bool ok);
#define MTFTL_GIVEN_UP	(2 * MTFTL_LAST_HOPE)	/* so long GC leaves what it could not read or reset */
u32 mtftl_zone_replace(struct mtftl *ftl, u32 index);
#endif
