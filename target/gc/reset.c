// SPDX-License-Identifier: GPL-2.0
/*
 * Resets of collected zones: see reset.h.
 *
 * Valid counts fall when newer data is buffered, not when it is durable, so a zone is reset only
 * after that has been written and flushed, and after the last reader has gone: then it is settled.
 * Zones settle together, while others, whose blocks have left the buffers already, wait for the
 * device's flush, and erasers are at work on those that did before; each works on a zone at a time,
 * and gives it away as soon as it is erased. A flush may wait for such a zone, so settling and
 * erasing have queues of their own.
 */
#include "gc/reset.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "device/device.h"
#include "device/pause.h"
#include "device/rw.h"
#include "device/seq.h"
#include "device/space.h"
#include "durable/checkpoint.h"
#include "durable/flush.h"
#include "io/lane.h"
#include "map/map.h"
#include "zone/life.h"
#include "zone/super.h"
#include "zone/zones.h"

#define ERASERS		2u	/* the second one helps: no die waits for its next erase */
#define PATIENCE	(HZ / 20)	/* with lanes that are to write */
#define SETTLERS	2u	/* one waits for the buffers, one for the device */

struct eraser {
	struct work_struct work;
	struct mtftl_resets *resets;
	bool helps;
};

struct settler {
	struct work_struct work;
	struct mtftl_resets *resets;
};

struct mtftl_resets {
	struct mtftl *ftl;
	struct workqueue_struct *settle_wq;
	struct workqueue_struct *erase_wq;
	struct mutex buffers_lock;	/* waiting for the buffers */
	struct settler settlers[SETTLERS];
	struct eraser erasers[ERASERS];
	spinlock_t lock;		/* settled */
	struct list_head settled;	/* zones */
	int failed;			/* exchanged: an int */
	bool hurry;
};

static bool may_go_on(struct mtftl_resets *resets)
{
	return !mtftl_is_read_only(resets->ftl) && !mtftl_is_paused(resets->ftl) &&
	       !READ_ONCE(resets->hurry);
}

static bool is_hurried(void *data)
{
	const struct mtftl_resets *resets = data;

	return READ_ONCE(resets->hurry);
}

/* If resets began again after each pause, frequent ones would stop them. False: GC stops in it. */
static bool sit_out_pause(struct mtftl_resets *resets)
{
	mtftl_space_sit_out_pause(resets->ftl, is_hurried, resets);
	return !mtftl_is_paused(resets->ftl);
}

static bool send_begin(struct mtftl_resets *resets)
{
	while (!mtftl_send_begin(resets->ftl))
		if (!sit_out_pause(resets))
			return false;
	/* Behind a pause: another system may have written to the drive, also where it was dead. */
	if (!mtftl_is_read_only(resets->ftl))
		return true;
	mtftl_send_end(resets->ftl);
	return false;
}

static void give_up(struct mtftl_resets *resets, struct list_head *list)
{
	struct mtftl *ftl = resets->ftl;

	mtftl_zones_give_back(ftl, MTFTL_ZONE_RESETTING, list);
	WRITE_ONCE(resets->failed, true);
	mtftl_space_kick_gc(ftl);
	mtftl_space_wake(ftl);
}

/* Erasing */

static void kick_erasers(struct mtftl_resets *resets)
{
	u32 i;

	for (i = 0; i < ERASERS; i++)
		queue_work(resets->erase_wq, &resets->erasers[i].work);
}

/*
 * Each erase keeps dies from everything else for milliseconds: users come in between, unless they
 * stand still anyway, or one eraser does not keep up.
 */
static bool needs_help(struct mtftl_resets *resets)
{
	lockdep_assert_held(&resets->lock);
	return mtftl_space_is_gated(resets->ftl) || !may_go_on(resets) ||
	       !list_is_singular(&resets->settled);
}

/* Onto @taken; false: there is none for this eraser. */
static bool take_settled(struct eraser *eraser, struct list_head *taken)
{
	struct mtftl_resets *resets = eraser->resets;

	spin_lock(&resets->lock);
	if (!list_empty(&resets->settled) && (!eraser->helps || needs_help(resets)))
		list_move(resets->settled.next, taken);
	spin_unlock(&resets->lock);
	return !list_empty(taken);
}

static void erase_work(struct work_struct *work)
{
	struct eraser *eraser = container_of(work, struct eraser, work);
	unsigned int flags = memalloc_noio_save();
	struct mtftl_resets *resets = eraser->resets;
	struct mtftl *ftl = resets->ftl;
	struct mtftl_zone *zone;
	LIST_HEAD(taken);
	bool ok;

	while (take_settled(eraser, &taken)) {
		/* Zones may have become short meanwhile. */
		if (!eraser->helps)
			queue_work(resets->erase_wq, &resets->erasers[1].work);
		if (!send_begin(resets)) {
			spin_lock(&resets->lock);
			list_splice_init(&resets->settled, &taken);
			spin_unlock(&resets->lock);
			give_up(resets, &taken);
			break;
		}
		zone = list_first_entry(&taken, struct mtftl_zone, list);
		mtftl_assert(zone->state == MTFTL_ZONE_RESETTING &&
			     !mtftl_map_valid(ftl, zone->index), "zone %u: state %u, %u blocks",
			     zone->index, zone->state, mtftl_map_valid(ftl, zone->index));
		ok = !mtftl_zone_is_worn_out(zone) &&
		     !mtftl_zone_mgmt(ftl, zone->index, REQ_OP_ZONE_RESET);
		zone->not_before = ok ? 0 : get_jiffies_64() + MTFTL_GIVEN_UP;
		mtftl_zone_reset_done(zone, ok);
		mtftl_send_end(ftl);
		mtftl_space_kick_gc(ftl);
	}
	memalloc_noio_restore(flags);
}

/* Settling */

/* Those whose count was 0 before the flush begins, onto @list; the newest ranges in them. */
static u64 take_collected(struct mtftl *ftl, struct list_head *list)
{
	struct mtftl_zone *zone;
	u64 ranges_seq = 0;

	mtftl_zones_take(ftl, MTFTL_ZONE_RESETTING, list);
	list_for_each_entry(zone, list, list) {
		mtftl_assert(zone->state == MTFTL_ZONE_RESETTING, "zone %u: state %u", zone->index,
			     zone->state);
		ranges_seq = max(ranges_seq, zone->ranges_seq);
	}
	return ranges_seq;
}

static bool may_settle(struct mtftl_resets *resets, u64 ranges_seq)
{
	struct mtftl *ftl = resets->ftl;

	/* Nothing can be gained any more, only lost. */
	if (!sit_out_pause(resets) || mtftl_is_read_only(ftl))
		return false;
	/* Resets change what a clean checkpoint stands for, as writes do. */
	if (mtftl_super_dirty(ftl))
		return false;
	/* Discards are logged in zones like data: keep them until a checkpoint has them. */
	return ranges_seq <= mtftl_seq_ckpt(ftl) || !mtftl_checkpoint(ftl, false);
}

/* All that RESETTING zones held is dead. */
static bool leaves(struct mtftl *ftl, u32 page)
{
	return READ_ONCE(mtftl_zone(ftl, mtftl_page_zone(ftl, page))->state) ==
	       MTFTL_ZONE_RESETTING;
}

/*
 * What took the place of these zones' blocks leaves the buffers, and nothing else: they absorb the
 * less the emptier they are. False: all has to go. Lanes do not come to it, or at the gate GC needs
 * what is kept for them, or a discard took a block's place, and is not written.
 */
static bool write_replaced(struct mtftl_resets *resets)
{
	struct mtftl *ftl = resets->ftl;

	lockdep_assert_held(&resets->buffers_lock);
	mtftl_map_want(ftl, leaves);
	mtftl_lanes_kick(ftl);
	mtftl_space_await(ftl, !mtftl_map_wants(ftl) || !may_go_on(resets) ||
			  mtftl_space_is_gated(ftl), PATIENCE);
	return !mtftl_map_wants(ftl) && !mtftl_ranges_count(ftl, true);
}

/* It makes no number durable: units that this does not wait for may be in flight. */
static int flush_device(struct mtftl_resets *resets)
{
	struct mtftl *ftl = resets->ftl;
	int r;

	if (!send_begin(resets))
		return -EAGAIN;
	mtftl_count(ftl, flushes, 1);
	r = mtftl_flush_device(ftl, 0);
	mtftl_send_end(ftl);
	return r;
}

static void settle_work(struct work_struct *work)
{
	struct mtftl_resets *resets = container_of(work, struct settler, work)->resets;
	unsigned int flags = memalloc_noio_save();
	struct mtftl *ftl = resets->ftl;
	bool may, written;
	u64 ranges_seq;
	LIST_HEAD(list);

	/* What replaced the pages in these zones must be durable first. */
	mutex_lock(&resets->buffers_lock);
	ranges_seq = take_collected(ftl, &list);
	may = !list_empty(&list) && may_settle(resets, ranges_seq);
	written = may && write_replaced(resets);
	mutex_unlock(&resets->buffers_lock);
	if (may && !(written ? flush_device(resets) : mtftl_flush_sync(ftl))) {
		mtftl_wait_readers(ftl);
		spin_lock(&resets->lock);
		list_splice_tail(&list, &resets->settled);
		spin_unlock(&resets->lock);
		kick_erasers(resets);
	} else if (!list_empty(&list)) {
		give_up(resets, &list);
	}
	memalloc_noio_restore(flags);
}

void mtftl_resets_kick(struct mtftl_resets *resets)
{
	u32 i;

	for (i = 0; i < SETTLERS; i++)
		queue_work(resets->settle_wq, &resets->settlers[i].work);
}

void mtftl_resets_settle(struct mtftl_resets *resets)
{
	u32 i;

	flush_workqueue(resets->settle_wq);
	/* In this order: the first one calls the others. */
	for (i = 0; i < ERASERS; i++)
		flush_work(&resets->erasers[i].work);
}

bool mtftl_resets_failed(const struct mtftl_resets *resets)
{
	return READ_ONCE(resets->failed);
}

/* Zones that are to be reset count as coming: that the device is gone has to be seen here. */
void mtftl_resets_retry(struct mtftl_resets *resets, void *block)
{
	if (!mtftl_send_begin(resets->ftl))
		return;
	if (xchg(&resets->failed, 0) && mtftl_device_answers(resets->ftl, block))
		mtftl_resets_kick(resets);
	mtftl_send_end(resets->ftl);
}

void mtftl_resets_hurry(struct mtftl_resets *resets, bool hurry)
{
	WRITE_ONCE(resets->hurry, hurry);
}

struct mtftl_resets *mtftl_resets_alloc(struct mtftl *ftl)
{
	struct mtftl_resets *resets = kzalloc_obj(*resets, GFP_KERNEL);
	u32 i;

	if (!resets)
		return NULL;
	resets->ftl = ftl;
	spin_lock_init(&resets->lock);
	INIT_LIST_HEAD(&resets->settled);
	mutex_init(&resets->buffers_lock);
	for (i = 0; i < SETTLERS; i++) {
		INIT_WORK(&resets->settlers[i].work, settle_work);
		resets->settlers[i].resets = resets;
	}
	for (i = 0; i < ERASERS; i++) {
		INIT_WORK(&resets->erasers[i].work, erase_work);
		resets->erasers[i].resets = resets;
		resets->erasers[i].helps = i;
	}
	resets->settle_wq = alloc_workqueue("mtftl-reset-%s", WQ_MEM_RECLAIM | WQ_UNBOUND, SETTLERS,
					    mtftl_disk_name(ftl));
	resets->erase_wq = alloc_workqueue("mtftl-erase-%s", WQ_MEM_RECLAIM | WQ_UNBOUND, ERASERS,
					   mtftl_disk_name(ftl));
	if (resets->settle_wq && resets->erase_wq)
		return resets;
	mtftl_resets_free(resets);
	return NULL;
}

void mtftl_resets_free(struct mtftl_resets *resets)
{
	if (!resets)
		return;
	if (resets->settle_wq)
		destroy_workqueue(resets->settle_wq);
	if (resets->erase_wq)
		destroy_workqueue(resets->erase_wq);
	kfree(resets);
}
