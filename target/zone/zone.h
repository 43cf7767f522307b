/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One zone: where it is written to, and what is known of it. All of them: zones.h.
 *
 * Its write pointer, units in flight and footer are under zone->lock (completions). A zone that is
 * not written to belongs to the code that has put it into its state. Without a lock GC looks for
 * full ones, and at their erase_count, failed_lives, not_before, full_seq and full_nr: set these
 * before the state.
 */
#ifndef MTFTL_ZONE_H
#define MTFTL_ZONE_H

#include <linux/ktime.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "device/device.h"

#define MTFTL_ZONE_LIVES	2u	/* each ended by a failed write, in a row: it is worn out */

/* Writing to a zone changes one cache line of it. Neighbours share none. */
struct mtftl_zone {
	spinlock_t lock ____cacheline_aligned_in_smp;	/* wp to footer */
	u32 wp;			/* blocks handed out */
	u32 quiet_wp;		/* every unit below it has completed */
	u16 in_flight;
	bool closing;		/* no unit is placed in it any more */
	bool broken;		/* failed a write: nothing more goes here before a reset */
	bool judged, finished;	/* after that: had the device finished it? See life.c */
	u64 first_seq;		/* number of its first unit, 0 if not known yet */
	u64 ranges_seq;		/* of the newest ranges in it */
	u64 born_sum, life_sum;	/* of its blocks, as the map's */
	struct mtftl_footer_buf *footer;	/* NULL: it will have none; see stream.c */
	struct mtftl *ftl ____cacheline_aligned_in_smp;
	u32 index;
	u32 limit;		/* data goes below it */
	u32 erase_count;	/* not while it is written to, like the next */
	u32 failed_lives;	/* in a row, of this mount; not while it is full */
	ktime_t taken;		/* as a victim, the last time */
	u64 not_before;		/* jiffies_64, 0: no victim sooner, see life.h */
	u64 full_seq;		/* when it became full, for its age */
	u64 full_nr;		/* the last that became full has the highest; zones->lock */
	u32 torn_end;		/* where recovery found the last unit's end; above wp: torn */
	u8 torn_sectors;	/* of the block at wp, found by recovery */
	bool append;		/* placed by the device */
	bool newer;		/* recovery found units in it that the checkpoint does not have */
	bool unfinished;	/* found written to its last block, and active still */
	enum mtftl_zone_state state;	/* zones->lock to change it: see above */
	struct list_head list;	/* of its state; zones->lock */
	struct work_struct close_work;
};

static inline u32 mtftl_zone_start(const struct mtftl_zone *zone)
{
	return mtftl_zone_page(zone->ftl, zone->index);
}

static inline bool mtftl_zone_is_worn_out(const struct mtftl_zone *zone)
{
	return zone->failed_lives >= MTFTL_ZONE_LIVES;
}

#endif
