// SPDX-License-Identifier: GPL-2.0
/*
 * What waits for the next round of flushes: see pending.h.
 *
 * One lock for the lists of bios and the count of rounds, one for the records: inside a shard's
 * lock for those of discards. Both with interrupts off.
 */
#include "map/pending.h"

#include <linux/slab.h>

#include "device/bio.h"
#include "device/device.h"
#include "device/seq.h"

#define MAX_RANGES	((unsigned int)MTFTL_UNIT_MAX_RANGES * MTFTL_RANGE_UNITS)
#define KEPT_RANGES	16u	/* of these, for GC, which has no bio that could wait */

struct mtftl_pending {
	wait_queue_head_t wait;
	spinlock_t lock;		/* what follows, up to asked */
	struct bio_list bios;
	struct bio_list round;		/* of the round under way */
	u64 asked;			/* rounds asked for */

	spinlock_t ranges_lock;		/* what follows */
	unsigned int nr;
	unsigned int reserved;		/* places for records under way */
	struct bio_list waiting;	/* found no place, in order */
	struct mtftl_range_rec *recs;
	struct mtftl_event room;
};

int mtftl_pending_alloc(struct mtftl *ftl)
{
	struct mtftl_pending *pending = kzalloc_obj(*pending, GFP_KERNEL);

	if (!pending)
		return -ENOMEM;
	ftl->pending = pending;
	init_waitqueue_head(&pending->wait);
	spin_lock_init(&pending->lock);
	spin_lock_init(&pending->ranges_lock);
	pending->recs = kvcalloc(MAX_RANGES, sizeof(*pending->recs), GFP_KERNEL);
	mtftl_on_read_only(ftl, mtftl_pending_wake);
	return pending->recs ? 0 : -ENOMEM;
}

void mtftl_pending_free(struct mtftl *ftl)
{
	if (!ftl->pending)
		return;
	kvfree(ftl->pending->recs);
	kfree(ftl->pending);
	ftl->pending = NULL;
}

struct wait_queue_head *mtftl_pending_wait(struct mtftl *ftl)
{
	return &ftl->pending->wait;
}

void mtftl_pending_wake(struct mtftl *ftl)
{
	wake_up_all(&ftl->pending->wait);
}

/* Flushes */

void mtftl_pending_flush(struct mtftl *ftl, struct bio *bio)
{
	struct mtftl_pending *pending = ftl->pending;
	unsigned long flags;
	bool back;

	spin_lock_irqsave(&pending->lock, flags);
	back = mtftl_device_gives_back(ftl);
	if (!back) {
		bio_list_add(&pending->bios, bio);
		pending->asked++;
	}
	spin_unlock_irqrestore(&pending->lock, flags);
	if (back)
		mtftl_give_back(bio);
	else
		mtftl_pending_wake(ftl);
}

u64 mtftl_pending_ask(struct mtftl *ftl)
{
	struct mtftl_pending *pending = ftl->pending;
	u64 mine;

	spin_lock_irq(&pending->lock);
	mine = ++pending->asked;
	spin_unlock_irq(&pending->lock);
	mtftl_pending_wake(ftl);
	return mine;
}

u64 mtftl_pending_asked(struct mtftl *ftl)
{
	return READ_ONCE(ftl->pending->asked);
}

u64 mtftl_pending_begin_round(struct mtftl *ftl, bool *users)
{
	struct mtftl_pending *pending = ftl->pending;
	u64 round;

	spin_lock_irq(&pending->lock);
	bio_list_merge(&pending->round, &pending->bios);
	bio_list_init(&pending->bios);
	*users = !bio_list_empty(&pending->round);
	round = pending->asked;
	spin_unlock_irq(&pending->lock);
	return round;
}

static struct bio_list take_bios(struct mtftl_pending *pending, struct bio_list *from)
{
	struct bio_list bios;

	spin_lock_irq(&pending->lock);
	bios = *from;
	bio_list_init(from);
	spin_unlock_irq(&pending->lock);
	return bios;
}

struct bio_list mtftl_pending_end_round(struct mtftl *ftl)
{
	return take_bios(ftl->pending, &ftl->pending->round);
}

/* Records */

static bool has_room(const struct mtftl_pending *pending, bool kept)
{
	lockdep_assert_held(&pending->ranges_lock);
	mtftl_assert(pending->nr + pending->reserved <= MAX_RANGES, "%u and %u of %u", pending->nr,
		     pending->reserved, MAX_RANGES);
	return pending->nr + pending->reserved < MAX_RANGES - (kept ? 0 : KEPT_RANGES);
}

bool mtftl_range_reserve(struct mtftl *ftl, struct bio *bio, bool waited)
{
	struct mtftl_pending *pending = ftl->pending;
	bool room, back;
	unsigned long flags;

	spin_lock_irqsave(&pending->ranges_lock, flags);
	back = mtftl_device_gives_back(ftl);
	room = has_room(pending, !bio) &&
	       (!bio || waited || bio_list_empty(&pending->waiting));
	if (room)
		pending->reserved++;
	else if (bio && !back && waited)
		bio_list_add_head(&pending->waiting, bio);
	else if (bio && !back)
		bio_list_add(&pending->waiting, bio);
	spin_unlock_irqrestore(&pending->ranges_lock, flags);
	if (!room && bio && back)
		mtftl_give_back(bio);
	return room;
}

void mtftl_ranges_on_room(struct mtftl *ftl, void (*heard)(struct mtftl *ftl))
{
	mtftl_event_on(&ftl->pending->room, heard);
}

static void tell_room(struct mtftl *ftl)
{
	if (mtftl_ranges_are_waited_for(ftl))
		mtftl_event_tell(&ftl->pending->room, ftl);
}

void mtftl_range_add(struct mtftl *ftl, const struct mtftl_range_rec *rec)
{
	struct mtftl_pending *pending = ftl->pending;
	unsigned long flags;
	bool full;

	spin_lock_irqsave(&pending->ranges_lock, flags);
	mtftl_assert(pending->reserved && pending->nr < MAX_RANGES, "%u reserved, %u listed",
		     pending->reserved, pending->nr);
	mtftl_assert(!rec || (rec->nr_blocks && rec->nr_blocks <= MTFTL_RANGE_MAX_BLOCKS &&
			      rec->seq && rec->seq <= mtftl_seq_last(ftl)),
		     "%u blocks, number %llu", rec->nr_blocks, rec->seq);
	pending->reserved--;
	if (rec)
		pending->recs[pending->nr++] = *rec;
	full = pending->nr >= MTFTL_UNIT_MAX_RANGES;
	spin_unlock_irqrestore(&pending->ranges_lock, flags);
	if (full)
		mtftl_pending_wake(ftl);
	if (!rec)
		tell_room(ftl);
}

/* A record counts before all of it is there: only the lock tells that it is. */
u32 mtftl_ranges_count(struct mtftl *ftl, bool reserved)
{
	struct mtftl_pending *pending = ftl->pending;
	u32 nr;

	spin_lock_irq(&pending->ranges_lock);
	nr = pending->nr + (reserved ? pending->reserved : 0);
	spin_unlock_irq(&pending->ranges_lock);
	return nr;
}

bool mtftl_ranges_fill_unit(struct mtftl *ftl)
{
	return READ_ONCE(ftl->pending->nr) >= MTFTL_UNIT_MAX_RANGES;
}

u32 mtftl_ranges_take(struct mtftl *ftl, u32 from, const struct mtftl_range_rec **recs, u64 *seq)
{
	struct mtftl_pending *pending = ftl->pending;
	u32 nr;

	spin_lock_irq(&pending->ranges_lock);
	mtftl_assert(from < pending->nr, "%u of %u", from, pending->nr);
	nr = min_t(u32, pending->nr - from, MTFTL_UNIT_MAX_RANGES);
	/* The records are there already, so this number is above all of theirs. */
	*seq = mtftl_seq_draw(ftl);
	spin_unlock_irq(&pending->ranges_lock);
	*recs = pending->recs + from;
	return nr;
}

void mtftl_ranges_written(struct mtftl *ftl, u32 nr)
{
	struct mtftl_pending *pending = ftl->pending;

	spin_lock_irq(&pending->ranges_lock);
	mtftl_assert(nr <= pending->nr, "%u of %u", nr, pending->nr);
	pending->nr -= nr;
	memmove(pending->recs, pending->recs + nr, pending->nr * sizeof(*pending->recs));
	spin_unlock_irq(&pending->ranges_lock);
	tell_room(ftl);
}

bool mtftl_ranges_are_waited_for(struct mtftl *ftl)
{
	return !bio_list_empty(&ftl->pending->waiting);
}

struct bio *mtftl_ranges_take_waiting(struct mtftl *ftl)
{
	struct mtftl_pending *pending = ftl->pending;
	struct bio *bio = NULL;
	unsigned long flags;

	spin_lock_irqsave(&pending->ranges_lock, flags);
	if (has_room(pending, false) || mtftl_is_read_only(ftl))
		bio = bio_list_pop(&pending->waiting);
	spin_unlock_irqrestore(&pending->ranges_lock, flags);
	return bio;
}

static void give_back(struct bio_list bios)
{
	struct bio *bio;

	while ((bio = bio_list_pop(&bios)))
		mtftl_give_back(bio);
}

void mtftl_pending_give_back(struct mtftl *ftl)
{
	struct mtftl_pending *pending = ftl->pending;
	struct bio_list waiting;

	give_back(take_bios(pending, &pending->bios));
	give_back(take_bios(pending, &pending->round));
	spin_lock_irq(&pending->ranges_lock);
	waiting = pending->waiting;
	bio_list_init(&pending->waiting);
	spin_unlock_irq(&pending->ranges_lock);
	give_back(waiting);
}
