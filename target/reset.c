// SPDX-License-Identifier: GPL-2.0
/*
 * Resets of collected zones: see reset.h.
 *
 * Valid counts fall when newer data is buffered, not when it is durable, so a zone is reset only
 * after a flush of everything, and after the last reader has gone.
 */
#include "reset.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "checkpoint.h"
#include "device.h"
#include "flush.h"
#include "inflight.h"
#include "log.h"
#include "pause.h"
#include "seq.h"
#include "space.h"
#include "zone.h"

#define AT_ONCE		8u	/* where zones are short; else one by one */

struct reset {
	struct bio bio;
	struct mtftl_zone *zone;
};

struct mtftl_resets {
	struct mtftl *ftl;
	struct workqueue_struct *wq;
	struct work_struct work;
	struct reset *all;		/* AT_ONCE; the work's, like inflight */
	struct mtftl_inflight inflight;
	bool failed;
	bool hurry;
};

static bool may_go_on(struct mtftl_resets *resets)
{
	return !mtftl_is_read_only(resets->ftl) && !mtftl_is_paused(resets->ftl) &&
	       !READ_ONCE(resets->hurry);
}

static bool in_a_hurry(struct mtftl *ftl, void *private)
{
	return mtftl_zones_count(ftl, MTFTL_ZONE_EMPTY) <= ftl->config.reserve + 1 ||
	       !may_go_on(private);
}

static void reset_endio(struct bio *bio)
{
	struct mtftl_inflight *inflight = bio->bi_private;

	mtftl_inflight_put(inflight);
}

/*
 * As many zones of the list as go at once. Each erase keeps a die from everything else for
 * milliseconds: what users want comes between two of them, unless they have to wait anyway.
 */
static void reset_zones(struct mtftl_resets *resets, struct list_head *zones)
{
	struct mtftl *ftl = resets->ftl;
	u32 at_once = in_a_hurry(ftl, resets) ? AT_ONCE : 1;
	struct mtftl_zone *zone;
	u32 n = 0, i;
	bool ok;

	mtftl_inflight_begin(&resets->inflight);
	list_for_each_entry(zone, zones, list) {
		struct reset *reset = &resets->all[n++];
		struct bio *bio = &reset->bio;

		reset->zone = zone;
		bio_init(bio, ftl->device->bdev, NULL, 0, REQ_OP_ZONE_RESET | REQ_SYNC);
		bio->bi_iter.bi_sector = mtftl_page_sector(mtftl_zone_start(zone));
		bio->bi_private = &resets->inflight;
		bio->bi_end_io = reset_endio;
		if (!mtftl_zone_is_worn_out(zone)) {
			mtftl_inflight_get(&resets->inflight);
			submit_bio(bio);
		}
		if (n == at_once)
			break;
	}
	mtftl_inflight_wait(&resets->inflight);
	for (i = 0; i < n; i++) {
		struct reset *reset = &resets->all[i];

		ok = !mtftl_zone_is_worn_out(reset->zone) && !reset->bio.bi_status;
		reset->zone->not_before = ok ? 0 : (jiffies + MTFTL_GIVEN_UP) | 1;
		mtftl_zone_reset_done(reset->zone, ok);
		bio_uninit(&reset->bio);
	}
}

static void reset_work(struct work_struct *work)
{
	struct mtftl_resets *resets = container_of(work, struct mtftl_resets, work);
	unsigned int flags = memalloc_noio_save();
	struct mtftl *ftl = resets->ftl;
	struct mtftl_zones *zones = ftl->zones;
	struct mtftl_zone *zone;
	u64 ranges_seq = 0;
	LIST_HEAD(list);

	/* Those whose count was 0 before the flush begins. */
	spin_lock(&zones->lock);
	list_splice_init(&zones->list[MTFTL_ZONE_RESETTING], &list);
	list_for_each_entry(zone, &list, list)
		ranges_seq = max(ranges_seq, zone->ranges_seq);
	spin_unlock(&zones->lock);
	if (list_empty(&list))
		goto out;
	/* Nothing can be gained any more, only lost. */
	if (mtftl_is_read_only(ftl) || mtftl_is_paused(ftl))
		goto put_back;
	/* Resets change what a clean checkpoint stands for, as writes do. */
	if (mtftl_log_dirty(ftl))
		goto put_back;

	/* Discards are logged in zones like data: keep them until a checkpoint has them. */
	if (ranges_seq > mtftl_seq_ckpt(ftl) && mtftl_checkpoint(ftl, false))
		goto put_back;
	/* What replaced the pages in these zones must be durable first. */
	if (mtftl_flush_calmly(ftl, in_a_hurry, resets))
		goto put_back;
	mtftl_wait_readers(ftl);
	while (!list_empty(&list)) {
		if (!mtftl_send_begin(ftl))
			goto put_back;
		reset_zones(resets, &list);
		mtftl_send_end(ftl);
	}
	mtftl_space_kick_gc(ftl);
	goto out;
put_back:
	spin_lock(&zones->lock);
	list_splice(&list, &zones->list[MTFTL_ZONE_RESETTING]);
	spin_unlock(&zones->lock);
	WRITE_ONCE(resets->failed, true);
	mtftl_space_kick_gc(ftl);
	wake_up_all(&ftl->space->wait);
out:
	memalloc_noio_restore(flags);
}

void mtftl_resets_kick(struct mtftl_resets *resets)
{
	queue_work(resets->wq, &resets->work);
}

void mtftl_resets_settle(struct mtftl_resets *resets)
{
	flush_workqueue(resets->wq);
}

bool mtftl_resets_failed(const struct mtftl_resets *resets)
{
	return READ_ONCE(resets->failed);
}

/* Zones that are to be reset count as coming: somebody has to see that the device is gone. */
void mtftl_resets_retry(struct mtftl_resets *resets, void *block)
{
	if (xchg(&resets->failed, false) && mtftl_device_answers(resets->ftl, block))
		mtftl_resets_kick(resets);
}

void mtftl_resets_hurry(struct mtftl_resets *resets, bool hurry)
{
	WRITE_ONCE(resets->hurry, hurry);
}

struct mtftl_resets *mtftl_resets_alloc(struct mtftl *ftl)
{
	struct mtftl_resets *resets = kzalloc(sizeof(*resets), GFP_KERNEL);

	if (!resets)
		return NULL;
	resets->ftl = ftl;
	init_completion(&resets->inflight.done);
	INIT_WORK(&resets->work, reset_work);
	resets->all = kcalloc(AT_ONCE, sizeof(*resets->all), GFP_KERNEL);
	resets->wq = alloc_ordered_workqueue("mtftl-reset-%s", WQ_MEM_RECLAIM,
					     ftl->device->dm->name);
	if (resets->all && resets->wq)
		return resets;
	mtftl_resets_free(resets);
	return NULL;
}

void mtftl_resets_free(struct mtftl_resets *resets)
{
	if (!resets)
		return;
	if (resets->wq)
		destroy_workqueue(resets->wq);
	kfree(resets->all);
	kfree(resets);
}
