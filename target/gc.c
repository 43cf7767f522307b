// SPDX-License-Identifier: GPL-2.0
/*
 * Garbage collection: one thread that moves what is valid out of a victim, and a work
 * item that resets victims behind its back, so that no write ever waits for a reset.
 *
 * Order. A batch's unit draws its number, then takes, under the shard lock, only blocks
 * that the map still points at. A write that comes later gets a slot, whose unit draws
 * a higher number. On completion the map follows only where it is unchanged.
 *
 * Reset. Valid counts fall when newer data is buffered, not when it is durable, so a victim
 * is reset only after a flush of everything, and after the last reader has gone.
 *
 * Progress. Users stop at a reserve of zones (ftl->gated: nothing new enters the buffers);
 * of the reserve, what is buffered by then always fits, and GC always keeps one zone
 * to move into. Above it, users may write as fast as GC gains space: rate.c.
 *
 * gc_lock is held from a batch's numbers to its completions; everything else belongs to
 * the thread.
 */
#include "ftl.h"
#include "trace.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>

#define BATCH_UNITS	8u
#define UNIT_BLOCKS	64u	/* header below 2% whatever users write */
#define WEAR_INTERVAL	32u	/* every so many victims look at the least worn zone */
#define WEAR_SPREAD	16u	/* erasures apart that are worth moving cold data for */

struct gc_item {
	u32 lba;
	u32 page;
};

/* One read of contiguous pages. */
struct gc_read {
	struct mtftl_gc *gc;
	u32 first;		/* block of the batch */
	u32 nr;
	blk_status_t status;
};

struct mtftl_gc {
	struct mtftl *ftl;
	struct gc_item *items;	/* of the victim */
	u32 nr_items;
	u32 unit_blocks;
	u32 batch;		/* blocks moved at once */
	u32 payload;		/* blocks that fit into a zone that GC writes */
	void **chunks;		/* their memory */
	struct gc_read *reads;
	bool *bad;		/* blocks of the batch that cannot be read */
	struct mtftl_unit_io *units[BATCH_UNITS];
	struct bio_set bios;
	atomic_t pending;	/* bios and units in flight, and one for the thread */
	struct completion done;
	struct work_struct reset_work;
	struct workqueue_struct *wq;
	u64 oldest_seq;		/* no unit in flight has a lower number */
	bool active;		/* free zones are short: users are paced */
	bool forced;		/* by message: collect once even if they are not */
	bool reset_failed;	/* zones wait for a reset that could not be tried */
	u32 victims;
	void *walk_buf;
	u32 nr_chunks;
};

/* What others ask */

u64 mtftl_gc_oldest_seq(struct mtftl *ftl)
{
	/* Pairs with write_batch(): who sees its numbers drawn sees this too. */
	smp_rmb();
	return READ_ONCE(ftl->gc_data->oldest_seq);
}

bool mtftl_gc_active(struct mtftl *ftl)
{
	return READ_ONCE(ftl->gc_data->active);
}

/* Composing has to wait for credit. */
bool mtftl_throttled(struct mtftl *ftl)
{
	return READ_ONCE(ftl->gc_data->active) && atomic64_read(&ftl->credit) <= 0;
}

void mtftl_charge(struct mtftl *ftl, u32 blocks)
{
	if (READ_ONCE(ftl->gc_data->active))
		atomic64_sub(blocks, &ftl->credit);
}

void mtftl_gc_kick(struct mtftl *ftl)
{
	wake_up(&ftl->gc_wait);
}

void mtftl_gc_force(struct mtftl *ftl)
{
	WRITE_ONCE(ftl->gc_data->forced, true);
	mtftl_gc_kick(ftl);
}

static u32 zones_coming(struct mtftl *ftl)
{
	return READ_ONCE(ftl->zone_count[MTFTL_ZONE_EMPTY]) +
	       READ_ONCE(ftl->zone_count[MTFTL_ZONE_RESETTING]);
}

/* Choosing */

static u32 zone_valid(const struct mtftl_zone *zone)
{
	return max(atomic_read(&zone->valid), 0);
}

/* The most that a victim may hold. */
static u32 worth_moving(struct mtftl_gc *gc)
{
	struct mtftl *ftl = gc->ftl;
	u32 used = ftl->zone_count[MTFTL_ZONE_SUPER] + ftl->zone_count[MTFTL_ZONE_CKPT] +
		   ftl->zone_count[MTFTL_ZONE_BAD] + ftl->reserve;

	return mtftl_victim_limit(gc->payload, ftl->logical_blocks,
				  ftl->nr_zones > used ? ftl->nr_zones - used : 1);
}

static struct mtftl_zone *pick_victim(struct mtftl_gc *gc)
{
	struct mtftl *ftl = gc->ftl;
	struct mtftl_zone *zone, *best = NULL, *least = NULL;
	u64 score, best_score = 0, now = atomic64_read(&ftl->seq);
	u32 most_worn = 0, limit = worth_moving(gc);

	lockdep_assert_held(&ftl->zones_lock);
	list_for_each_entry(zone, &ftl->zone_list[MTFTL_ZONE_FULL], list) {
		struct mtftl_candidate candidate = {
			.valid = min(zone_valid(zone), ftl->capacity),
			.capacity = ftl->capacity,
			.age = now - zone->full_seq,
		};

		if (zone->broken)
			return zone;
		most_worn = max(most_worn, zone->erase_count);
		if (!least || zone->erase_count < least->erase_count)
			least = zone;
		/*
		 * Headers and footer of a full zone are no garbage: moved for them alone, zones
		 * would go round for ever, with users waiting for what is never gained.
		 */
		if (zone_valid(zone) > limit)
			continue;
		score = ftl->opt.gc_policy->score(&candidate);
		if (score > best_score) {
			best = zone;
			best_score = score;
		}
	}
	/* What sits on the least worn zone is cold: let others have a turn there. */
	if (least && ++gc->victims % WEAR_INTERVAL == 0 &&
	    most_worn - least->erase_count > WEAR_SPREAD)
		return least;
	return best;
}

/* What is in the victim */

static void keep_item(void *private, u32 page, u64 lba)
{
	struct mtftl_gc *gc = private;
	struct gc_item *item = &gc->items[gc->nr_items];

	if (lba >= gc->ftl->logical_blocks || gc->nr_items == gc->ftl->capacity ||
	    READ_ONCE(gc->ftl->map[lba]) != page)
		return;
	item->lba = lba;
	item->page = page;
	gc->nr_items++;
}

/* Its headers do not tell all: ask the map. Slow, and hardly ever needed. */
static void find_by_map(struct mtftl_gc *gc, struct mtftl_zone *victim)
{
	struct mtftl *ftl = gc->ftl;
	u32 lba, value;

	for (lba = 0; lba < ftl->logical_blocks && gc->nr_items < ftl->capacity; lba++) {
		value = READ_ONCE(ftl->map[lba]);
		if (mtftl_is_page(value) && mtftl_page_zone(ftl, value) == victim)
			keep_item(gc, value, lba);
		if (!(lba & 0xffff))
			cond_resched();
	}
}

/* Waiting for a batch of bios */

static void gc_get(struct mtftl_gc *gc)
{
	atomic_inc(&gc->pending);
}

static void gc_put(struct mtftl_gc *gc)
{
	if (atomic_dec_and_test(&gc->pending))
		complete(&gc->done);
}

static void gc_begin(struct mtftl_gc *gc)
{
	atomic_set(&gc->pending, 1);
	reinit_completion(&gc->done);
}

static void gc_wait_all(struct mtftl_gc *gc)
{
	gc_put(gc);
	wait_for_completion_io(&gc->done);
}

/* Reading */

static void read_endio(struct bio *bio)
{
	struct gc_read *read = bio->bi_private;

	read->status = bio->bi_status;
	bio_put(bio);
	gc_put(read->gc);
}

static void *batch_block(struct mtftl_gc *gc, u32 i)
{
	return gc->chunks[i >> MTFTL_BUFFER_ORDER] +
	       (i & ((1u << MTFTL_BUFFER_ORDER) - 1)) * MTFTL_BLOCK_SIZE;
}

static void submit_read(struct mtftl_gc *gc, struct gc_read *read, u32 page)
{
	void *data = batch_block(gc, read->first);
	struct bio *bio;

	bio = bio_alloc_bioset(gc->ftl->bdev, 1, REQ_OP_READ, GFP_NOIO, &gc->bios);
	bio->bi_iter.bi_sector = mtftl_page_sector(page);
	bio->bi_private = read;
	bio->bi_end_io = read_endio;
	__bio_add_page(bio, virt_to_page(data), read->nr * MTFTL_BLOCK_SIZE,
		       offset_in_page(data));
	gc_get(gc);
	submit_bio_noacct(bio);
}

/* False: the device does not answer at all. */
static bool read_batch(struct mtftl_gc *gc, const struct gc_item *items, u32 nr)
{
	const u32 chunk = 1u << MTFTL_BUFFER_ORDER;
	u32 i, n, nr_reads = 0;

	memset(gc->bad, 0, nr * sizeof(*gc->bad));
	gc_begin(gc);
	for (i = 0; i < nr; i += n) {
		struct gc_read *read = &gc->reads[nr_reads++];
		u32 most = min(nr - i, chunk - (i & (chunk - 1)));

		for (n = 1; n < most && items[i + n].page == items[i].page + n; n++)
			;
		*read = (struct gc_read){ .gc = gc, .first = i, .nr = n };
		submit_read(gc, read, items[i].page);
	}
	gc_wait_all(gc);

	/* Where a read failed, one by one: its neighbours may be fine. */
	while (nr_reads--) {
		const struct gc_read *read = &gc->reads[nr_reads];

		for (i = read->first; read->status && i < read->first + read->nr; i++) {
			gc->bad[i] = mtftl_rw_sync(gc->ftl, REQ_OP_READ, items[i].page,
						   batch_block(gc, i), 1);
			if (gc->bad[i] && !mtftl_device_answers(gc->ftl, gc->walk_buf))
				return false;
		}
	}
	return true;
}

/* Its only copy cannot be read: say so, durably, instead of handing out anything else. */
static void lose(struct mtftl_gc *gc, const struct gc_item *item)
{
	struct mtftl_range_rec rec = {
		.lba = item->lba,
		.nr_blocks = 1,
		.kind = MTFTL_RANGE_LOST,
	};
	struct mtftl *ftl = gc->ftl;

	if (!mtftl_range_wait(ftl))
		return;
	if (mtftl_map_lose(ftl, item->lba, item->page, &rec.seq)) {
		mtftl_count(ftl, lost_blocks, 1);
		mtftl_range_log(ftl, &rec);
	} else {
		mtftl_range_log(ftl, NULL);
	}
}

/* Writing */

static void gc_unit_done(struct mtftl_unit_io *unit, blk_status_t status)
{
	gc_put(unit->private);
}

/* A stream with room for GC, locked. NULL: read-only, or asked to stop. */
static struct mtftl_stream *wait_for_stream(struct mtftl *ftl, u32 *room)
{
	struct mtftl_stream *stream;
	u32 gen;

	for (;;) {
		gen = atomic_read(&ftl->space_gen);
		stream = mtftl_stream_find(ftl, 0, 2, MTFTL_RIGHT_GC, room);
		if (stream || READ_ONCE(ftl->read_only) || kthread_should_stop())
			return stream;
		if (READ_ONCE(ftl->zone_count[MTFTL_ZONE_RESETTING]))
			queue_work(ftl->gc_data->wq, &ftl->gc_data->reset_work);
		wait_event(ftl->drain_wait, gen != atomic_read(&ftl->space_gen) ||
			   READ_ONCE(ftl->read_only) || kthread_should_stop());
	}
}

/* Write one unit of the batch from block @i on; returns how many blocks it dealt with. */
static u32 write_unit(struct mtftl_gc *gc, struct mtftl_unit_io *unit,
		      const struct gc_item *items, u32 i, u32 nr)
{
	struct mtftl *ftl = gc->ftl;
	struct mtftl_stream *stream;
	u32 room, n;

	stream = wait_for_stream(ftl, &room);
	if (!stream)
		return 0;
	room = min3(room - 1, gc->unit_blocks, (u32)unit->max);
	/* The number first, then the look at the map: a write in between has a higher one. */
	mtftl_unit_start(unit, MTFTL_UNIT_GC, atomic64_inc_return(&ftl->seq));
	for (n = 0; i + n < nr && unit->nr < room; n++)
		if (!gc->bad[i + n] &&
		    mtftl_map_points_to(ftl, items[i + n].lba, items[i + n].page))
			mtftl_unit_add(unit, items[i + n].lba, items[i + n].page,
				       batch_block(gc, i + n));
	if (unit->nr)
		mtftl_stream_take(stream, unit);
	mutex_unlock(&stream->lock);
	if (unit->nr) {
		unit->done = gc_unit_done;
		unit->private = gc;
		gc_get(gc);
		mtftl_count(ftl, gc_blocks, unit->nr);
		mtftl_count(ftl, units, 1);
		mtftl_unit_compose(unit);
		mtftl_unit_submit(unit);
	}
	return n;
}

static bool write_batch(struct mtftl_gc *gc, const struct gc_item *items, u32 nr)
{
	struct mtftl *ftl = gc->ftl;
	u32 i = 0, n = 1, units;

	while (i < nr && n) {
		mutex_lock(&ftl->gc_lock);
		WRITE_ONCE(gc->oldest_seq, atomic64_read(&ftl->seq) + 1);
		/* Pairs with mtftl_gc_oldest_seq(). */
		smp_mb();
		gc_begin(gc);
		for (units = 0; units < BATCH_UNITS && i < nr && n; units++, i += n)
			n = write_unit(gc, gc->units[units], items, i, nr);
		gc_wait_all(gc);
		WRITE_ONCE(gc->oldest_seq, U64_MAX);
		mutex_unlock(&ftl->gc_lock);
	}
	for (i = 0; i < nr && n; i++)
		if (gc->bad[i])
			lose(gc, &items[i]);
	return n;
}

/* One victim */

static void give_credit(struct mtftl_gc *gc, u32 moved, u32 valid)
{
	struct mtftl *ftl = gc->ftl;
	u32 target = (ftl->reserve + ftl->low_water + 1) / 2;
	u64 credit = mtftl_rate_credit(moved, valid, ftl->capacity, zones_coming(ftl),
				       ftl->reserve, target);

	if (!credit)
		return;
	if (atomic64_add_return(credit, &ftl->credit) > ftl->capacity)
		atomic64_set(&ftl->credit, ftl->capacity);
	mtftl_space_appeared(ftl);
}

/* Takes what is valid out of the zone. False: it could not finish. */
static bool collect(struct mtftl_gc *gc, struct mtftl_zone *victim)
{
	u32 i, n, valid = zone_valid(victim);

	gc->nr_items = 0;
	if (valid)
		mtftl_zone_walk(gc->ftl, victim, gc->walk_buf, keep_item, gc);
	for (i = 0; i < gc->nr_items; i += n) {
		n = min(gc->nr_items - i, gc->batch);
		if (!read_batch(gc, gc->items + i, n) || !write_batch(gc, gc->items + i, n))
			return false;
		give_credit(gc, n, gc->nr_items);
	}
	if (!gc->nr_items)
		give_credit(gc, 0, 0);
	return true;
}

static bool collect_all(struct mtftl_gc *gc, struct mtftl_zone *victim)
{
	if (!collect(gc, victim))
		return false;
	if (!zone_valid(victim))
		return true;
	if (!mtftl_device_answers(gc->ftl, gc->walk_buf))
		return false;
	/* A header could not be read, or a footer was wrong. */
	gc->nr_items = 0;
	find_by_map(gc, victim);
	mtftl_warn(gc->ftl, "zone %u: %u blocks found by the map alone", victim->index,
		   gc->nr_items);
	while (gc->nr_items) {
		u32 n = min(gc->nr_items, gc->batch);

		if (!read_batch(gc, gc->items + gc->nr_items - n, n) ||
		    !write_batch(gc, gc->items + gc->nr_items - n, n))
			return false;
		gc->nr_items -= n;
	}
	return !zone_valid(victim);
}

/* Resetting, behind GC's back */

static void reset_work(struct work_struct *work)
{
	struct mtftl_gc *gc = container_of(work, struct mtftl_gc, reset_work);
	unsigned int flags = memalloc_noio_save();
	struct mtftl *ftl = gc->ftl;
	struct mtftl_zone *zone, *next;
	u64 ranges_seq = 0;
	LIST_HEAD(zones);

	/* Those whose count was 0 before the flush begins. */
	spin_lock(&ftl->zones_lock);
	list_splice_init(&ftl->zone_list[MTFTL_ZONE_RESETTING], &zones);
	list_for_each_entry(zone, &zones, list)
		ranges_seq = max(ranges_seq, zone->ranges_seq);
	spin_unlock(&ftl->zones_lock);
	if (list_empty(&zones))
		goto out;
	/* Resets change what a clean checkpoint stands for, as writes do. */
	if (READ_ONCE(ftl->super.clean) && mtftl_super_dirty(ftl))
		goto put_back;

	/* Discards are logged in zones like data: keep them until a checkpoint has them. */
	if (ranges_seq > READ_ONCE(ftl->super.info.ckpt_seq) && mtftl_checkpoint(ftl, false))
		goto put_back;
	/* What replaced the pages in these zones must be durable first. */
	if (mtftl_flush_sync(ftl))
		goto put_back;
	mtftl_wait_readers(ftl);
	list_for_each_entry_safe(zone, next, &zones, list) {
		mtftl_zone_reset(ftl, zone);
		mtftl_space_appeared(ftl);
	}
	mtftl_gc_kick(ftl);
	goto out;
put_back:
	spin_lock(&ftl->zones_lock);
	list_splice(&zones, &ftl->zone_list[MTFTL_ZONE_RESETTING]);
	spin_unlock(&ftl->zones_lock);
	WRITE_ONCE(gc->reset_failed, true);
	mtftl_gc_kick(ftl);
out:
	memalloc_noio_restore(flags);
}

/* The thread */

static bool wanted(struct mtftl_gc *gc)
{
	struct mtftl *ftl = gc->ftl;

	return zones_coming(ftl) < ftl->low_water || READ_ONCE(gc->forced) ||
	       READ_ONCE(ftl->broken_zones) || READ_ONCE(gc->reset_failed);
}

static void update_active(struct mtftl_gc *gc, bool active)
{
	if (active == gc->active)
		return;
	atomic64_set(&gc->ftl->credit, gc->ftl->capacity);
	WRITE_ONCE(gc->active, active);
	mtftl_space_appeared(gc->ftl);
}

static bool gc_step(struct mtftl_gc *gc)
{
	struct mtftl *ftl = gc->ftl;
	struct mtftl_zone *victim;
	bool empty;

	if (READ_ONCE(ftl->super.clean) && mtftl_super_dirty(ftl))
		return false;
	/* They count as coming, so nobody else would try again, or see that the device is gone. */
	if (READ_ONCE(gc->reset_failed)) {
		WRITE_ONCE(gc->reset_failed, false);
		if (mtftl_device_answers(ftl, gc->walk_buf))
			queue_work(gc->wq, &gc->reset_work);
		return false;
	}
	spin_lock(&ftl->zones_lock);
	victim = pick_victim(gc);
	if (victim) {
		mtftl_zone_set_state(ftl, victim, MTFTL_ZONE_VICTIM);
		if (victim->broken)
			ftl->broken_zones--;
	}
	spin_unlock(&ftl->zones_lock);
	WRITE_ONCE(gc->forced, false);
	update_active(gc, victim && zones_coming(ftl) < ftl->low_water);
	mtftl_zones_no_victim(ftl, !victim &&
			      !READ_ONCE(ftl->zone_count[MTFTL_ZONE_RESETTING]));
	if (!victim)
		return false;
	empty = collect_all(gc, victim);
	trace_mtftl_gc_victim(victim, gc->nr_items, zones_coming(ftl),
			      atomic64_read(&ftl->credit));
	spin_lock(&ftl->zones_lock);
	mtftl_zone_set_state(ftl, victim, empty ? MTFTL_ZONE_RESETTING : MTFTL_ZONE_FULL);
	if (!empty && victim->broken)
		ftl->broken_zones++;
	spin_unlock(&ftl->zones_lock);
	if (empty) {
		mtftl_count(ftl, victims, 1);
		queue_work(gc->wq, &gc->reset_work);
	}
	return empty;
}

static int gc_thread(void *data)
{
	unsigned int flags = memalloc_noio_save();
	struct mtftl_gc *gc = data;
	struct mtftl *ftl = gc->ftl;
	u32 gen;

	while (!kthread_should_stop()) {
		gen = atomic_read(&ftl->space_gen);
		if (!READ_ONCE(ftl->read_only) && wanted(gc)) {
			if (gc_step(gc))
				continue;
			/* Nothing to gain now: not before somebody writes or frees. */
			wait_event_idle_timeout(ftl->gc_wait, kthread_should_stop() ||
						gen != atomic_read(&ftl->space_gen), HZ / 10);
			continue;
		}
		update_active(gc, false);
		mtftl_zones_no_victim(ftl, false);
		wait_event_idle(ftl->gc_wait, kthread_should_stop() ||
				(!READ_ONCE(ftl->read_only) && wanted(gc)));
	}
	memalloc_noio_restore(flags);
	return 0;
}

int mtftl_gc_alloc(struct mtftl *ftl)
{
	struct mtftl_gc *gc = kzalloc(sizeof(*gc), GFP_KERNEL);
	u32 i, chunks, usable = ftl->capacity - mtftl_footer_reserve(ftl->capacity);

	if (!gc)
		return -ENOMEM;
	ftl->gc_data = gc;
	gc->ftl = ftl;
	gc->oldest_seq = U64_MAX;
	gc->unit_blocks = min(UNIT_BLOCKS, ftl->unit_max);
	gc->batch = BATCH_UNITS * gc->unit_blocks;
	gc->payload = usable - DIV_ROUND_UP(usable, gc->unit_blocks + 1);
	init_completion(&gc->done);
	INIT_WORK(&gc->reset_work, reset_work);
	chunks = DIV_ROUND_UP(gc->batch, 1u << MTFTL_BUFFER_ORDER);
	gc->items = kvmalloc_array(ftl->capacity, sizeof(*gc->items), GFP_KERNEL);
	gc->reads = kvmalloc_array(gc->batch, sizeof(*gc->reads), GFP_KERNEL);
	gc->bad = kvmalloc_array(gc->batch, sizeof(*gc->bad), GFP_KERNEL);
	gc->chunks = kcalloc(chunks, sizeof(*gc->chunks), GFP_KERNEL);
	gc->walk_buf = (void *)__get_free_pages(GFP_KERNEL, MTFTL_BUFFER_ORDER);
	gc->wq = alloc_ordered_workqueue("mtftl-reset-%s", WQ_MEM_RECLAIM, ftl->dev->name);
	if (!gc->items || !gc->reads || !gc->bad || !gc->chunks || !gc->walk_buf || !gc->wq)
		return -ENOMEM;
	gc->nr_chunks = chunks;
	for (i = 0; i < chunks; i++) {
		gc->chunks[i] = (void *)__get_free_pages(GFP_KERNEL, MTFTL_BUFFER_ORDER);
		if (!gc->chunks[i])
			return -ENOMEM;
	}
	for (i = 0; i < BATCH_UNITS; i++) {
		gc->units[i] = mtftl_unit_alloc(ftl, gc->unit_blocks);
		if (!gc->units[i])
			return -ENOMEM;
	}
	return bioset_init(&gc->bios, BATCH_UNITS, 0, BIOSET_NEED_BVECS);
}

void mtftl_gc_free(struct mtftl *ftl)
{
	struct mtftl_gc *gc = ftl->gc_data;
	u32 i;

	if (!gc)
		return;
	if (gc->wq)
		destroy_workqueue(gc->wq);
	bioset_exit(&gc->bios);
	for (i = 0; i < BATCH_UNITS; i++)
		mtftl_unit_free(gc->units[i]);
	for (i = 0; i < gc->nr_chunks; i++)
		free_pages((unsigned long)gc->chunks[i], MTFTL_BUFFER_ORDER);
	free_pages((unsigned long)gc->walk_buf, MTFTL_BUFFER_ORDER);
	kfree(gc->chunks);
	kvfree(gc->bad);
	kvfree(gc->reads);
	kvfree(gc->items);
	kfree(gc);
	ftl->gc_data = NULL;
}

int mtftl_gc_start(struct mtftl *ftl)
{
	struct task_struct *task;

	if (ftl->gc)
		return 0;
	task = kthread_run(gc_thread, ftl->gc_data, "mtftl_gc");
	if (IS_ERR(task))
		return PTR_ERR(task);
	ftl->gc = task;
	return 0;
}

/* No unit of GC is in flight and no zone is being reset when this returns. */
void mtftl_gc_stop(struct mtftl *ftl)
{
	if (ftl->gc) {
		kthread_stop(ftl->gc);
		ftl->gc = NULL;
	}
	if (ftl->gc_data)
		update_active(ftl->gc_data, false);
	if (ftl->gc_data && ftl->gc_data->wq)
		flush_workqueue(ftl->gc_data->wq);
}
