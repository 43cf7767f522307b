/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All zones by state, which is opened next, and the queue for their work.
 *
 * States, lists and counts change under zones->lock (process context), which this component alone
 * takes; a count may be looked at without. What GC looks at of a full zone without the lock is set
 * before its state is.
 */
#ifndef MTFTL_ZONES_H
#define MTFTL_ZONES_H

#include "device/device.h"
#include "device/space.h"
#include "zone/zone.h"

struct mtftl_zones {
	spinlock_t lock;	/* what follows, up to back_us, and the state of space.h */
	struct list_head list[MTFTL_NR_ZONE_STATES];
	u64 full_nr;		/* of the zone that became full last */
	u32 worn_out;		/* of the full ones */
	u32 opened;		/* counts up when one is empty no more */
	u32 back_us;		/* from victim to empty, of late; 0: not known yet */
	struct workqueue_struct *wq;	/* ordered: closing zones, writing units again */
	struct mtftl_zone all[];
};

static inline struct mtftl_zone *mtftl_zone(const struct mtftl *ftl, u32 index)
{
	mtftl_assert(index < ftl->config.nr_zones, "zone %u", index);
	return &ftl->zones->all[index];
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

/* @enough sees the zones of a state, with the lock held, until it returns true. */
static __always_inline void mtftl_zones_each(struct mtftl *ftl, enum mtftl_zone_state state,
					     bool (*enough)(struct mtftl_zone *zone, void *data),
					     void *data)
{
	struct mtftl_zone *zone;

	spin_lock(&ftl->zones->lock);
	list_for_each_entry(zone, &ftl->zones->list[state], list)
		if (enough(zone, data))
			break;
	spin_unlock(&ftl->zones->lock);
}

/* @look sets the room that open zones have, see space.h, with the lock held. */
static inline void mtftl_zones_update_room(struct mtftl *ftl, void (*look)(struct mtftl *ftl))
{
	spin_lock(&ftl->zones->lock);
	look(ftl);
	spin_unlock(&ftl->zones->lock);
}

/* Full zones that GC has to clear. */
static inline u32 mtftl_zones_worn_out(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->zones->worn_out);
}

static inline u32 mtftl_zones_back_us(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->zones->back_us);
}

int mtftl_zones_alloc(struct mtftl *ftl);
void mtftl_zones_free(struct mtftl *ftl);
void mtftl_zone_move(struct mtftl_zone *zone, enum mtftl_zone_state state);
/*
 * Opens a zone if @right may; NULL: it may not. Shuts one to new units. In the same step @hold gets
 * the zone, or NULL, and the room that is left now, as mtftl_zones_update_room() has it.
 */
struct mtftl_zone *mtftl_zone_open(struct mtftl *ftl, enum mtftl_right right,
				   void (*hold)(void *data, struct mtftl_zone *zone), void *data);
void mtftl_zone_shut(struct mtftl_zone *zone,
		     void (*hold)(void *data, struct mtftl_zone *zone), void *data);
bool mtftl_zones_buffers_are_empty(const struct mtftl *ftl, enum mtftl_right right);
/* All zones of a state go onto @list, and keep the state; and back. */
void mtftl_zones_take(struct mtftl *ftl, enum mtftl_zone_state state, struct list_head *list);
void mtftl_zones_give_back(struct mtftl *ftl, enum mtftl_zone_state state, struct list_head *list);
/* An empty zone goes aside for checkpoints. NULL: there is none. */
struct mtftl_zone *mtftl_zones_set_aside(struct mtftl *ftl);
/* How long the reset of a victim took, for mtftl_zones_back_us(). */
void mtftl_zones_note_back(const struct mtftl_zone *zone);
void mtftl_zones_set_gc_owes(struct mtftl *ftl, u32 blocks);
/* Zones that were taken from the empty ones: counts up, and then nothing is known of victims. */
u32 mtftl_zones_opened(const struct mtftl *ftl);
/* @opened: mtftl_zones_opened() before GC looked. False: one was opened since, so it is not set. */
bool mtftl_zones_set_no_victim(struct mtftl *ftl, bool none, u32 opened);
void mtftl_zones_look(struct mtftl *ftl, struct mtftl_admit_state *state);
/* The ordered queue. Work that is queued already stays, or is hastened by _queue(). */
void mtftl_zone_queue_close(struct mtftl_zone *zone);
void mtftl_zones_queue(struct mtftl *ftl, struct delayed_work *work);
void mtftl_zones_queue_later(struct mtftl *ftl, struct delayed_work *work, unsigned long delay);
/* Waits for all of it. */
void mtftl_zones_settle(struct mtftl *ftl);
/* A line a zone, in order: state, blocks written, of these valid, erases, age. Sleeps. */
void mtftl_zones_tell(struct mtftl *ftl, char *result, unsigned int maxlen);

#endif
