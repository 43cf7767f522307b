// SPDX-License-Identifier: GPL-2.0
/*
 * Flush rounds and discards: what makes acknowledged things durable.
 *
 * One thread runs the rounds. A round covers all that was acknowledged before it began:
 * it writes the range records, lets every lane drain up to the head it has now,
 * and flushes the device once. Who comes while it runs shares the next one.
 *
 * A device flush that failed leaves open what the drive has dropped of all that it was given since
 * the one before. So nothing may be called durable any more, and nothing reset or put into a
 * checkpoint: only recovery, which looks at what is there, can tell. Unless nothing was given.
 *
 * flush_lock protects the lists of bios, the counts of rounds and what is flushed; ranges.lock the
 * range records, inside a shard's lock for those of discards. Both with interrupts off.
 */
#include "ftl.h"
#include "trace.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>

#define CALM	(HZ / 20)	/* lanes that nobody hurries have this long */
#define STARVED	(HZ / 20)	/* a lane that does not drain: does its writer run at all? */

static void wake_flusher(struct mtftl *ftl)
{
	wake_up_all(&ftl->flush_wait);
}

/* A flush, or a write that wants one (FUA). Completes it. Any context. */
void mtftl_flush_bio(struct mtftl *ftl, struct bio *bio)
{
	unsigned long flags;
	bool back;

	spin_lock_irqsave(&ftl->flush_lock, flags);
	back = READ_ONCE(ftl->giving_back);
	if (!back) {
		bio_list_add(&ftl->flush_bios, bio);
		ftl->flush_wanted++;
	}
	spin_unlock_irqrestore(&ftl->flush_lock, flags);
	if (back)
		mtftl_give_back(bio);
	else
		wake_flusher(ftl);
}

/* All that was acknowledged before the call is durable when it returns 0. Sleeps. */
int mtftl_flush_sync(struct mtftl *ftl)
{
	u64 mine, failures;
	int r = 0;

	spin_lock_irq(&ftl->flush_lock);
	mine = ++ftl->flush_wanted;
	failures = ftl->flush_failures;
	spin_unlock_irq(&ftl->flush_lock);
	wake_flusher(ftl);
	wait_event(ftl->flush_wait, READ_ONCE(ftl->flush_done) >= mine);
	spin_lock_irq(&ftl->flush_lock);
	/* A later round may have succeeded before we looked: that one was not ours. */
	if (ftl->flush_failures != failures)
		r = ftl->flush_error;
	spin_unlock_irq(&ftl->flush_lock);
	return r;
}

/* Range records */

/*
 * Room for one record is kept until range_commit(). False: @bio waits, if there is one, or is
 * given back.
 */
static bool range_reserve(struct mtftl *ftl, struct bio *bio)
{
	struct mtftl_ranges *ranges = &ftl->ranges;
	bool room, back;
	unsigned long flags;

	spin_lock_irqsave(&ranges->lock, flags);
	back = READ_ONCE(ftl->giving_back);
	room = ranges->nr + ranges->reserved < MTFTL_MAX_RANGES;
	if (room)
		ranges->reserved++;
	else if (bio && !back)
		bio_list_add(&ranges->waiting, bio);
	spin_unlock_irqrestore(&ranges->lock, flags);
	if (!room && bio && back)
		mtftl_give_back(bio);
	return room;
}

static void range_commit(struct mtftl *ftl, const struct mtftl_range_rec *rec)
{
	struct mtftl_ranges *ranges = &ftl->ranges;
	unsigned long flags;
	bool full;

	spin_lock_irqsave(&ranges->lock, flags);
	ranges->reserved--;
	if (rec)
		ranges->recs[ranges->nr++] = *rec;
	full = ranges->nr >= MTFTL_UNIT_MAX_RANGES;
	spin_unlock_irqrestore(&ranges->lock, flags);
	if (full)
		wake_flusher(ftl);
}

/* Record what changed the map, with the number drawn then; NULL: nothing did. Any context. */
void mtftl_range_log(struct mtftl *ftl, const struct mtftl_range_rec *rec)
{
	range_commit(ftl, rec);
}

/* Keep room for mtftl_range_log(). False: nothing can be written any more. Sleeps. */
bool mtftl_range_wait(struct mtftl *ftl)
{
	while (!range_reserve(ftl, NULL))
		if (mtftl_flush_sync(ftl))
			return false;
	return true;
}

/* Discard or write-zeroes. Never sleeps; completes the bio, now or later. */
void mtftl_trim(struct mtftl *ftl, struct bio *bio)
{
	while (bio->bi_iter.bi_size) {
		u32 lba = bio->bi_iter.bi_sector / MTFTL_BLOCK_SECTORS;
		u32 left = (1u << MTFTL_CHUNK_SHIFT) - (lba & ((1u << MTFTL_CHUNK_SHIFT) - 1));
		u32 n = min(left, bio->bi_iter.bi_size >> MTFTL_BLOCK_SHIFT);
		struct mtftl_range_rec rec = {
			.lba = lba,
			.nr_blocks = n,
			.kind = MTFTL_RANGE_TRIM,
		};

		if (READ_ONCE(ftl->read_only)) {
			bio_io_error(bio);
			return;
		}
		if (!range_reserve(ftl, bio)) {
			wake_flusher(ftl);
			return;
		}
		if (mtftl_map_trim(ftl, &rec))
			mtftl_count(ftl, user_trims, n);
		else
			range_commit(ftl, NULL);
		bio->bi_iter.bi_sector += (sector_t)n * MTFTL_BLOCK_SECTORS;
		bio->bi_iter.bi_size -= n * MTFTL_BLOCK_SIZE;
	}
	if (bio->bi_opf & REQ_FUA)
		mtftl_flush_bio(ftl, bio);
	else
		bio_endio(bio);
}

static void ranges_done(struct mtftl_unit_io *unit, blk_status_t status)
{
	struct mtftl *ftl = unit->ftl;

	ftl->ranges_status = status;
	complete(unit->private);
}

/* Write one unit of the oldest records; they stay listed until they are written. */
static int write_ranges(struct mtftl *ftl)
{
	struct mtftl_ranges *ranges = &ftl->ranges;
	struct mtftl_unit_io *unit = ftl->ranges_unit;
	struct mtftl_unit_info info = { .type = MTFTL_UNIT_RANGES, .lane = U16_MAX };
	DECLARE_COMPLETION_ONSTACK(done);
	struct mtftl_hope hope = { };
	struct mtftl_stream *stream;
	struct bio_list waiting;
	u32 n, i, room, gen;
	struct bio *bio;

	wait_event(ftl->drain_wait, !READ_ONCE(ftl->paused));
	if (READ_ONCE(ftl->super.clean) && mtftl_super_dirty(ftl))
		return -EIO;
	/* A record counts before all of it is there: only the lock tells that it is. */
	spin_lock_irq(&ranges->lock);
	n = min_t(u32, ranges->nr, MTFTL_UNIT_MAX_RANGES);
	/* The records are there already, so this number is above all of theirs. */
	info.seq = atomic64_inc_return(&ftl->seq);
	mtftl_unit_start(unit, MTFTL_UNIT_RANGES, info.seq);
	mtftl_unit_init(unit->header, &info);
	for (i = 0; i < n; i++)
		mtftl_unit_add_range(unit->header, ranges->recs[i].lba, ranges->recs[i].nr_blocks,
				     ranges->recs[i].seq, ranges->recs[i].kind);
	spin_unlock_irq(&ranges->lock);
	unit->done = ranges_done;
	unit->private = &done;
	for (;;) {
		gen = atomic_read(&ftl->space_gen);
		stream = mtftl_stream_find(ftl, 0, 1, MTFTL_RIGHT_URGENT, &room);
		if (stream)
			break;
		if (READ_ONCE(ftl->read_only) || mtftl_hope_is_lost(ftl, &hope))
			return -EIO;
		wait_event_timeout(ftl->drain_wait, gen != atomic_read(&ftl->space_gen) ||
				   READ_ONCE(ftl->read_only), MTFTL_LAST_HOPE);
	}
	mtftl_stream_take(stream, unit);
	mutex_unlock(&stream->lock);
	mtftl_unit_submit(unit);
	wait_for_completion_io(&done);
	if (ftl->ranges_status)
		return -EIO;
	mtftl_count(ftl, meta_blocks, 1);

	spin_lock_irq(&ranges->lock);
	ranges->nr -= n;
	memmove(ranges->recs, ranges->recs + n, ranges->nr * sizeof(*ranges->recs));
	waiting = ranges->waiting;
	bio_list_init(&ranges->waiting);
	spin_unlock_irq(&ranges->lock);
	while ((bio = bio_list_pop(&waiting)))
		mtftl_trim(ftl, bio);
	return 0;
}

/* Those that fill a unit by themselves do not wait for a flush. */
static void write_full_ranges(struct mtftl *ftl)
{
	while (READ_ONCE(ftl->ranges.nr) >= MTFTL_UNIT_MAX_RANGES)
		if (write_ranges(ftl))
			break;
}

/* Rounds */

static bool lanes_drained(struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ftl->nr_lanes; i++)
		/* Pairs with advance_tail(): who killed a slot has listed the discard. */
		if (smp_load_acquire(&ftl->lanes[i].tail) < ftl->lanes[i].drain_to)
			return false;
	return true;
}

/* The device's part of a flush: without an error all units up to @drawn are durable. Sleeps. */
int mtftl_flush_device(struct mtftl *ftl, u64 drawn)
{
	u64 taken = mtftl_taken(ftl);
	bool unsure;
	int r;

	r = READ_ONCE(ftl->unsure) ? -EIO : blkdev_issue_flush(ftl->bdev);
	spin_lock_irq(&ftl->flush_lock);
	if (!r && drawn > ftl->durable_seq)
		WRITE_ONCE(ftl->durable_seq, drawn);
	if (!r && taken > ftl->flushed)
		ftl->flushed = taken;
	unsure = r && mtftl_taken(ftl) != ftl->flushed;
	if (unsure)
		WRITE_ONCE(ftl->unsure, true);
	spin_unlock_irq(&ftl->flush_lock);
	if (unsure)
		mtftl_set_read_only(ftl, "a flush failed: what the device dropped is not known");
	trace_mtftl_flush(ftl, ftl->durable_seq, r);
	return r;
}

/* All records that are there now. */
static int write_listed_ranges(struct mtftl *ftl)
{
	u32 left;
	int r = 0;

	spin_lock_irq(&ftl->ranges.lock);
	left = ftl->ranges.nr;
	spin_unlock_irq(&ftl->ranges.lock);
	for (; !r && left; left -= min_t(u32, left, MTFTL_UNIT_MAX_RANGES))
		r = write_ranges(ftl);
	return r;
}

static int flush_round(struct mtftl *ftl)
{
	unsigned int i;
	u64 drawn;
	int r;

	/*
	 * The number before the heads: every user's unit up to it holds only slots below
	 * the heads that are read next. GC's units in flight are not waited for.
	 */
	drawn = atomic64_read(&ftl->seq);
	/* Pairs with the locks of the lanes, and of who draws numbers. */
	smp_mb();
	for (i = 0; i < ftl->nr_lanes; i++) {
		struct mtftl_lane *lane = &ftl->lanes[i];

		spin_lock_irq(&lane->lock);
		WRITE_ONCE(lane->drain_to, lane->head);
		spin_unlock_irq(&lane->lock);
		mtftl_lane_kick(lane);
	}
	r = write_listed_ranges(ftl);
	if (r)
		return r;
	drawn = min(drawn, mtftl_gc_oldest_seq(ftl) - 1);
	mtftl_lanes_bind_writers(ftl);
	while (!wait_event_timeout(ftl->drain_wait, lanes_drained(ftl) ||
				   READ_ONCE(ftl->read_only), STARVED))
		mtftl_lanes_free_writers(ftl);
	if (!lanes_drained(ftl))
		return -EIO;
	/* A discard that came meanwhile may have killed a slot before it was written. */
	r = write_listed_ranges(ftl);
	mtftl_count(ftl, flushes, 1);
	return r ?: mtftl_flush_device(ftl, drawn);
}

static bool lanes_settled(struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ftl->nr_lanes; i++)
		if (READ_ONCE(ftl->lanes[i].tail) < ftl->lanes[i].settle_to)
			return false;
	return true;
}

static bool ranges_pending(struct mtftl *ftl)
{
	bool pending;

	spin_lock_irq(&ftl->ranges.lock);
	pending = ftl->ranges.nr || ftl->ranges.reserved;
	spin_unlock_irq(&ftl->ranges.lock);
	return pending;
}

/*
 * As mtftl_flush_sync(), but lanes get there at the pace of their users, unless that takes
 * long, or @hurry says so, or there are range records to be written. One caller at a time.
 */
int mtftl_flush_calmly(struct mtftl *ftl, bool (*hurry)(struct mtftl *ftl))
{
	u64 drawn = atomic64_read(&ftl->seq);
	unsigned int i;

	/* As in flush_round(). */
	smp_mb();
	for (i = 0; i < ftl->nr_lanes; i++) {
		struct mtftl_lane *lane = &ftl->lanes[i];

		spin_lock_irq(&lane->lock);
		lane->settle_to = lane->head;
		spin_unlock_irq(&lane->lock);
	}
	drawn = min(drawn, mtftl_gc_oldest_seq(ftl) - 1);
	wait_event_timeout(ftl->drain_wait, lanes_settled(ftl) || hurry(ftl), CALM);
	if (!lanes_settled(ftl) || ranges_pending(ftl))
		return mtftl_flush_sync(ftl);
	mtftl_count(ftl, flushes, 1);
	return mtftl_flush_device(ftl, drawn);
}

/* Nothing will make room for them any more. */
static void fail_waiting(struct mtftl *ftl)
{
	struct bio_list waiting;
	struct bio *bio;

	spin_lock_irq(&ftl->ranges.lock);
	waiting = ftl->ranges.waiting;
	bio_list_init(&ftl->ranges.waiting);
	spin_unlock_irq(&ftl->ranges.lock);
	while ((bio = bio_list_pop(&waiting)))
		bio_io_error(bio);
}

static bool flusher_has_work(struct mtftl *ftl)
{
	return READ_ONCE(ftl->flush_wanted) != READ_ONCE(ftl->flush_done) ||
	       (READ_ONCE(ftl->read_only) ? !bio_list_empty(&ftl->ranges.waiting) :
		READ_ONCE(ftl->ranges.nr) >= MTFTL_UNIT_MAX_RANGES) ||
	       kthread_should_stop();
}

static struct bio_list take_bios(struct mtftl *ftl, struct bio_list *from)
{
	struct bio_list bios;

	spin_lock_irq(&ftl->flush_lock);
	bios = *from;
	bio_list_init(from);
	spin_unlock_irq(&ftl->flush_lock);
	return bios;
}

static void give_back(struct bio_list bios)
{
	struct bio *bio;

	while ((bio = bio_list_pop(&bios)))
		mtftl_give_back(bio);
}

/* ftl->giving_back is set: flushes and discards that wait, and none waits afterwards. */
void mtftl_flush_give_back(struct mtftl *ftl)
{
	struct bio_list waiting;

	give_back(take_bios(ftl, &ftl->flush_bios));
	give_back(take_bios(ftl, &ftl->round_bios));
	spin_lock_irq(&ftl->ranges.lock);
	waiting = ftl->ranges.waiting;
	bio_list_init(&ftl->ranges.waiting);
	spin_unlock_irq(&ftl->ranges.lock);
	give_back(waiting);
}

static int flusher(void *data)
{
	unsigned int flags = memalloc_noio_save();
	struct mtftl *ftl = data;
	struct bio_list bios;
	struct bio *bio;
	u64 wanted;
	int r;

	while (!kthread_should_stop()) {
		wait_event_idle(ftl->flush_wait, flusher_has_work(ftl));
		if (READ_ONCE(ftl->read_only))
			fail_waiting(ftl);
		else
			write_full_ranges(ftl);

		spin_lock_irq(&ftl->flush_lock);
		bio_list_merge(&ftl->round_bios, &ftl->flush_bios);
		bio_list_init(&ftl->flush_bios);
		wanted = ftl->flush_wanted;
		spin_unlock_irq(&ftl->flush_lock);
		if (wanted == ftl->flush_done)
			continue;
		r = flush_round(ftl);
		bios = take_bios(ftl, &ftl->round_bios);
		while ((bio = bio_list_pop(&bios))) {
			bio->bi_status = errno_to_blk_status(r);
			bio_endio(bio);
		}
		if (r) {
			spin_lock_irq(&ftl->flush_lock);
			ftl->flush_failures++;
			ftl->flush_error = r;
			spin_unlock_irq(&ftl->flush_lock);
		}
		/* Whoever sees the round done sees its error. */
		smp_store_release(&ftl->flush_done, wanted);
		wake_up_all(&ftl->flush_wait);
	}
	memalloc_noio_restore(flags);
	return 0;
}

int mtftl_flush_alloc(struct mtftl *ftl)
{
	spin_lock_init(&ftl->flush_lock);
	spin_lock_init(&ftl->ranges.lock);
	bio_list_init(&ftl->flush_bios);
	bio_list_init(&ftl->round_bios);
	bio_list_init(&ftl->ranges.waiting);
	ftl->ranges.nr = 0;
	ftl->ranges.reserved = 0;
	ftl->unsure = false;
	ftl->ranges.recs = kvcalloc(MTFTL_MAX_RANGES, sizeof(*ftl->ranges.recs), GFP_KERNEL);
	ftl->ranges_unit = mtftl_unit_alloc(ftl, 1);
	ftl->flusher = mtftl_thread(flusher, ftl, -1, "mtftl_flush");
	return ftl->ranges.recs && ftl->ranges_unit && ftl->flusher ? 0 : -ENOMEM;
}

void mtftl_flush_start(struct mtftl *ftl)
{
	kthread_unpark(ftl->flusher);
}

void mtftl_flush_stop(struct mtftl *ftl)
{
	if (ftl->flusher)
		kthread_stop(ftl->flusher);
	ftl->flusher = NULL;
	mtftl_unit_free(ftl->ranges_unit);
	ftl->ranges_unit = NULL;
	kvfree(ftl->ranges.recs);
	ftl->ranges.recs = NULL;
}
