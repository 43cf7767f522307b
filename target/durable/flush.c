// SPDX-License-Identifier: GPL-2.0
/*
 * Flush rounds: see flush.h.
 *
 * A round covers all that was acknowledged before it began: it writes the range records, lets every
 * lane drain up to the head it has now, and flushes the device once. A flush that comes while it
 * runs shares the next one. A round's number is pending's count of the flushes that were asked for
 * by then.
 *
 * Discards that wait for room do not occupy the flusher: a work item clears the map for them, which
 * may take long. The flusher writes the records that they have listed. After each write it checks
 * whether a flush is asked for.
 */
#include "durable/flush.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "device/await.h"
#include "device/device.h"
#include "device/inflight.h"
#include "device/pause.h"
#include "device/seq.h"
#include "device/space.h"
#include "device/thread.h"
#include "io/discard.h"
#include "io/lane.h"
#include "map/map.h"
#include "map/pending.h"
#include "map/ring.h"
#include "zone/super.h"
#include "zone/write.h"

#define PATIENCE	8	/* of a round's time that the next one waits for company */
#define LONGEST		(NSEC_PER_MSEC / 2)	/* that a round waits, whatever the last one took */
#define VAIN		8	/* rounds */

struct mtftl_flush {
	struct task_struct *flusher;
	u64 done;			/* rounds completed; flusher, like the next */
	u64 blocks;			/* written since a round that users asked for */
	u64 company;			/* requests since the last round began, at its end */
	u64 took;			/* it, in ns */
	unsigned int vain;		/* rounds that wait for nobody */
	spinlock_t lock;		/* failures and error */
	u64 failures;			/* rounds that failed */
	int error;			/* of the last one that did */
	struct mtftl_write *units[MTFTL_RANGE_UNITS];	/* of ranges; flusher */
	struct mtftl_inflight ranges;
	bool failed;			/* one of them */

	struct mtftl *ftl;
	struct workqueue_struct *wq;
	struct work_struct discards;	/* discards that waited for room */
};

int mtftl_flush_sync(struct mtftl *ftl)
{
	struct mtftl_flush *flush = ftl->flush;
	u64 mine, failures;
	int r = 0;

	spin_lock_irq(&flush->lock);
	failures = flush->failures;
	spin_unlock_irq(&flush->lock);
	mine = mtftl_pending_ask(ftl);
	wait_event(*mtftl_pending_wait(ftl), READ_ONCE(flush->done) >= mine);
	spin_lock_irq(&flush->lock);
	/* A later round may have succeeded before we looked: that one was not ours. */
	if (flush->failures != failures)
		r = flush->error;
	spin_unlock_irq(&flush->lock);
	return r;
}

/* If no other flush is under way or expected, what it wants goes while the flusher wakes up. */
void mtftl_flush(struct mtftl *ftl, struct bio *bio)
{
	struct mtftl_flush *flush = ftl->flush;

	if (READ_ONCE(flush->company) < 2 && mtftl_pending_asked(ftl) == READ_ONCE(flush->done))
		mtftl_lanes_hurry(ftl);
	mtftl_pending_flush(ftl, bio);
}

/* Ranges */

bool mtftl_flush_for_range(struct mtftl *ftl)
{
	while (!mtftl_range_reserve(ftl, NULL, false))
		if (mtftl_flush_sync(ftl))
			return false;
	return true;
}

static void ranges_written(struct mtftl_write *unit, u32 page)
{
}

static void ranges_done(struct mtftl_write *unit, blk_status_t status)
{
	struct mtftl_flush *flush = unit->private;

	if (status)
		WRITE_ONCE(flush->failed, true);
	mtftl_inflight_put(&flush->ranges);
}

static const struct mtftl_write_owner ranges_owner = {
	.written = ranges_written,
	.done = ranges_done,
};

static bool send_ranges(struct mtftl *ftl, struct mtftl_write *unit)
{
	static const struct mtftl_want want = { .right = MTFTL_RIGHT_FLUSH, .least = 1 };
	struct mtftl_wait wait = { .right = MTFTL_RIGHT_FLUSH };
	struct mtftl_admit_state state;
	struct mtftl_stream *stream;
	u32 room;

	for (;;) {
		wait.gen = mtftl_space_gen(ftl);
		if (mtftl_send_begin(ftl)) {
			stream = mtftl_stream_find(ftl, &want, &room);
			if (stream)
				break;
			mtftl_send_end(ftl);
		}
		mtftl_zones_look(ftl, &state);
		if (!mtftl_wait_for_place(ftl, &state, &wait, NULL, NULL))
			return false;
	}
	mtftl_write_take_place(unit, stream);
	mutex_unlock(&stream->lock);
	mtftl_inflight_get(&ftl->flush->ranges);
	mtftl_write_submit(unit);
	mtftl_send_end(ftl);
	return true;
}

/* A unit of the records behind the @from oldest. Returns how many it takes. */
static u32 compose_ranges(struct mtftl *ftl, u32 from, struct mtftl_write *unit)
{
	struct mtftl_unit_info info = { .type = MTFTL_UNIT_RANGES, .lane = U16_MAX };
	const struct mtftl_range_rec *recs;
	u32 i, nr;

	nr = mtftl_ranges_take(ftl, from, &recs, &info.seq);
	mtftl_assert(nr && nr <= MTFTL_UNIT_MAX_RANGES, "%u records", nr);
	mtftl_unit_init(unit->header, &info);
	for (i = 0; i < nr; i++)
		mtftl_unit_add_range(unit->header, recs[i].lba, recs[i].nr_blocks, recs[i].seq,
				     recs[i].kind);
	mtftl_write_start(unit, MTFTL_UNIT_RANGES, info.seq);
	unit->through = mtftl_lanes_go_through(ftl);
	return nr;
}

/*
 * Write all records that are listed now, in several units at the same time; @full: only full units.
 * The records stay listed until they are written.
 */
static int write_ranges(struct mtftl *ftl, bool full)
{
	u32 nr = mtftl_ranges_count(ftl, false), written = 0, i;
	struct mtftl_flush *flush = ftl->flush;
	bool ok = true;
	int r;

	if (full)
		nr -= nr % MTFTL_UNIT_MAX_RANGES;
	if (!nr)
		return 0;
	do {
		mtftl_space_await(ftl, !mtftl_is_paused(ftl), MAX_SCHEDULE_TIMEOUT);
		r = mtftl_super_dirty(ftl);
	} while (r == -EAGAIN);
	if (r)
		return -EIO;
	flush->failed = false;
	mtftl_inflight_begin(&flush->ranges);
	for (i = 0; ok && i < MTFTL_RANGE_UNITS && written < nr; i++) {
		written += compose_ranges(ftl, written, flush->units[i]);
		ok = send_ranges(ftl, flush->units[i]);
	}
	mtftl_inflight_wait(&flush->ranges);
	if (!ok || flush->failed)
		return -EIO;
	mtftl_assert(written >= nr && i, "%u of %u records", written, nr);
	mtftl_count(ftl, meta_blocks, i);

	mtftl_ranges_written(ftl, written);
	return 0;
}

static void discard_work(struct work_struct *work)
{
	struct mtftl_flush *flush = container_of(work, struct mtftl_flush, discards);

	mtftl_discard_waiting(flush->ftl);
}

static void room_appeared(struct mtftl *ftl)
{
	queue_work(ftl->flush->wq, &ftl->flush->discards);
}

/* Rounds */

/* Waits out a pause. The bios that want this flush were given back, or they wait, too. */
static int flush_device(struct mtftl *ftl, u64 drawn)
{
	int r;

	mtftl_space_send_begin(ftl);
	r = mtftl_flush_cache(ftl, drawn);
	mtftl_send_end(ftl);
	return r;
}

/*
 * Resets wait for this, too. So if a lane finds no place, and nothing moves, none will appear.
 */
static int wait_for_lanes(struct mtftl *ftl)
{
	struct mtftl_wait wait = { .right = MTFTL_RIGHT_USER };
	struct mtftl_admit_state state;

	while (!mtftl_space_await(ftl, mtftl_rings_are_drained(ftl) || mtftl_is_read_only(ftl),
				  MTFTL_LAST_HOPE)) {
		if (!mtftl_lanes_stuck(ftl, true)) {
			wait.moved = 0;
			continue;
		}
		mtftl_zones_look(ftl, &state);
		state.in_flight |= !mtftl_lanes_landed(ftl);
		state.flushing = true;
		mtftl_is_dead_end(ftl, &state, &wait);
	}
	return mtftl_rings_are_drained(ftl) ? 0 : -EIO;
}

/*
 * What a user's flush wants goes with FUA if it is little, and the drive's cache holds nothing else
 * that a flush of the device would have to program. Then that flush is not sent.
 */
static void gather(struct mtftl *ftl, u64 blocks)
{
	struct block_device *bdev = mtftl_bdev(ftl);

	/* Without FUA the kernel would flush the device for each unit. */
	mtftl_lanes_gather(ftl, blocks, bdev_fua(bdev) && mtftl_seq_is_flushed(ftl));
}

/* @users: they asked for it. What resets and checkpoints ask for says nothing of users' writes. */
static int flush_round(struct mtftl *ftl, bool users)
{
	unsigned long killed = mtftl_map_killed(ftl);
	struct mtftl_flush *flush = ftl->flush;
	u64 drawn;
	int r;

	/*
	 * The number before the heads: every user's unit up to it holds only slots below
	 * the heads that are read next. GC's units in flight are not waited for.
	 */
	drawn = mtftl_seq_last(ftl);
	/* Pairs with the locks of the rings, and of those that draw numbers. */
	smp_mb();
	flush->blocks += mtftl_rings_mark_drain(ftl);
	if (users) {
		gather(ftl, flush->blocks);
		flush->blocks = 0;
	}
	mtftl_lanes_kick(ftl);
	r = write_ranges(ftl, false);
	if (r)
		return r;
	drawn = mtftl_seq_before_unordered(ftl, drawn);
	mtftl_assert(drawn <= mtftl_seq_last(ftl), "number %llu", drawn);
	r = wait_for_lanes(ftl);
	if (r)
		return r;
	/* A discard may have killed a slot before it was written; then its record is listed. */
	if (mtftl_map_killed(ftl) != killed)
		r = write_ranges(ftl, false);
	mtftl_count(ftl, flushes, 1);
	return r ?: flush_device(ftl, drawn);
}

/*
 * Threads whose flushes end together ask again together, within microseconds. If a round began
 * with the first of them, the others would wait for two. So the round waits a moment for as many as
 * there were. If few of them come, the next rounds do not wait.
 */
static void wait_for_company(struct mtftl *ftl)
{
	struct mtftl_flush *flush = ftl->flush;
	u64 came = mtftl_pending_asked(ftl), all = flush->done + flush->company;

	if (came == flush->done || came >= all)
		return;
	if (flush->vain) {
		flush->vain--;
		return;
	}
	wait_event_hrtimeout(*mtftl_pending_wait(ftl), mtftl_pending_asked(ftl) >= all,
			     ns_to_ktime(min_t(u64, flush->took / PATIENCE, LONGEST)));
	if (mtftl_pending_asked(ftl) - came < (all - came) / 2 + 1)
		flush->vain = VAIN;
}

static bool flusher_has_work(struct mtftl *ftl)
{
	return mtftl_pending_asked(ftl) != READ_ONCE(ftl->flush->done) ||
	       (mtftl_is_read_only(ftl) ? mtftl_ranges_are_waited_for(ftl) :
		mtftl_ranges_fill_unit(ftl)) ||
	       kthread_should_stop();
}

static int flusher(void *data)
{
	unsigned int flags = memalloc_noio_save();
	struct mtftl *ftl = data;
	struct mtftl_flush *flush = ftl->flush;
	struct bio_list bios;
	struct bio *bio;
	u64 round, begun;
	bool users;
	int r;

	while (!kthread_should_stop()) {
		wait_event_idle(*mtftl_pending_wait(ftl), flusher_has_work(ftl));
		/* The device is read-only, so no room will come: each waiting discard fails. */
		if (mtftl_is_read_only(ftl))
			mtftl_discard_waiting(ftl);
		/* Records that fill a unit do not wait for a flush; a flush writes all records. */
		else if (mtftl_pending_asked(ftl) == flush->done && mtftl_ranges_fill_unit(ftl))
			write_ranges(ftl, true);

		wait_for_company(ftl);
		begun = ktime_get_ns();
		round = mtftl_pending_begin_round(ftl, &users);
		if (round == flush->done)
			continue;
		mtftl_assert(round > flush->done, "round %llu after %llu", round, flush->done);
		r = flush_round(ftl, users);
		bios = mtftl_pending_end_round(ftl);
		while ((bio = bio_list_pop(&bios))) {
			bio->bi_status = errno_to_blk_status(r);
			bio_endio(bio);
		}
		if (r) {
			spin_lock_irq(&flush->lock);
			flush->failures++;
			flush->error = r;
			spin_unlock_irq(&flush->lock);
		}
		WRITE_ONCE(flush->company, mtftl_pending_asked(ftl) - flush->done);
		flush->took = ktime_get_ns() - begun;
		/* A thread that sees the round done sees its error. */
		smp_store_release(&flush->done, round);
		mtftl_pending_wake(ftl);
	}
	memalloc_noio_restore(flags);
	return 0;
}

int mtftl_flush_alloc(struct mtftl *ftl)
{
	struct mtftl_flush *flush = kzalloc_obj(*flush, GFP_KERNEL);
	u32 i;

	if (!flush)
		return -ENOMEM;
	ftl->flush = flush;
	flush->ftl = ftl;
	INIT_WORK(&flush->discards, discard_work);
	flush->wq = alloc_workqueue("mtftl-trim-%s", WQ_MEM_RECLAIM | WQ_UNBOUND, 1,
				    mtftl_disk_name(ftl));
	spin_lock_init(&flush->lock);
	init_completion(&flush->ranges.done);
	for (i = 0; i < MTFTL_RANGE_UNITS; i++) {
		flush->units[i] = mtftl_write_alloc(ftl, 1, NUMA_NO_NODE, &ranges_owner, flush);
		if (!flush->units[i])
			return -ENOMEM;
	}
	mtftl_ranges_on_room(ftl, room_appeared);
	flush->flusher = mtftl_thread(flusher, ftl, -1, "mtftl_flush/%s", mtftl_disk_name(ftl));
	return flush->flusher && flush->wq ? 0 : -ENOMEM;
}

void mtftl_flush_start(struct mtftl *ftl)
{
	kthread_unpark(ftl->flush->flusher);
}

void mtftl_flush_stop(struct mtftl *ftl)
{
	if (!ftl->flush)
		return;
	if (ftl->flush->flusher)
		kthread_stop(ftl->flush->flusher);
	ftl->flush->flusher = NULL;
}

void mtftl_flush_free(struct mtftl *ftl)
{
	u32 i;

	if (!ftl->flush)
		return;
	mtftl_flush_stop(ftl);
	if (ftl->flush->wq)
		destroy_workqueue(ftl->flush->wq);
	for (i = 0; i < MTFTL_RANGE_UNITS; i++)
		mtftl_write_free(ftl->flush->units[i]);
	kfree(ftl->flush);
	ftl->flush = NULL;
}
