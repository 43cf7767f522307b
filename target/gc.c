// SPDX-License-Identifier: GPL-2.0
/*
 * Garbage collection: workers that move what is valid out of victims, and a work item
 * that resets victims behind their backs, so that no write ever waits for a reset.
 *
 * Pipeline. Each worker has a victim of its own: it lists the blocks and begins to read them
 * while another one writes. Victims are moved one at a time, under move_lock: with two of them
 * moved in part, the zones that GC has to move into might not do for either.
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
 * gc_lock is held from a batch's numbers to its completions, never while waiting for
 * space: a checkpoint waits for it, and resets may wait for the checkpoint.
 */
#include "ftl.h"
#include "trace.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>

#define WORKERS		3u	/* one writes, one reads, one looks what to read */
#define BATCHES		2u	/* of a worker: one is read while the other is written */
#define BATCH_UNITS	4u
#define UNIT_BLOCKS	64u	/* header below 2% whatever users write */
#define RESETS		8u	/* at once */
#define WEAR_INTERVAL	32u	/* every so many victims look at the least worn zone */
#define WEAR_SPREAD	16u	/* erasures apart that are worth moving cold data for */
#define GIVEN_UP	(2 * MTFTL_LAST_HOPE)	/* a victim that could not be read */

/* A block that is moved, or before the first of its unit the header: that has its checksum. */
struct gc_item {
	u32 lba;		/* MTFTL_NO_LBA: a header */
	u32 page;
};

/* What came of a block that was read. */
enum gc_found {
	GC_WHOLE,
	GC_LATER,		/* an error that may pass */
	GC_LOST,		/* the medium says so, or its checksum */
};

/* Bios or units in flight, and one for who waits for them. */
struct gc_pending {
	atomic_t count;
	struct completion done;
};

/* One read of contiguous pages. */
struct gc_read {
	struct gc_pending *pending;
	u32 first;		/* block of the batch */
	u32 nr;
	blk_status_t status;
};

/* Blocks that are moved at once. */
struct gc_batch {
	const struct gc_item *items;
	u32 nr;
	void **chunks;		/* their memory */
	u32 nr_chunks;
	struct gc_read *reads;
	u32 nr_reads;
	u8 *found;		/* enum gc_found of each block */
	u32 *crcs;
	struct gc_pending pending;
};

struct gc_worker {
	struct mtftl_gc *gc;
	struct task_struct *task;
	struct gc_item *items;	/* of the victim */
	u32 nr_items;
	struct gc_batch batches[BATCHES];
	void *walk_buf;
	u32 unit_header;	/* of the unit being listed */
	bool ranges_left;	/* a checkpoint is needed for them */
	bool gave_up;		/* some blocks could not be read now */
	/* Of the unit under way, for verifying: batches end where they will. */
	void *header;
	struct mtftl_unit_info unit;
	enum gc_found header_found;
};

struct gc_reset {
	struct bio bio;
	struct mtftl_zone *zone;
};

struct mtftl_gc {
	struct mtftl *ftl;
	struct gc_worker workers[WORKERS];
	struct mutex choose_lock;	/* who is at work: victims, active, forced, no_victim */
	struct mutex walk_lock;		/* who lists a victim: stream */
	struct mutex move_lock;		/* a victim, from its first block moved to its last; moving */
	void *stream;			/* of a footer */
	u32 unit_blocks;
	u32 batch;			/* blocks moved at once */
	u32 batch_items;		/* and their headers: what is read at once */
	u32 payload;			/* blocks that fit into a zone that GC writes */
	struct mtftl_unit_io *units[BATCH_UNITS];	/* gc_lock, like writes */
	struct gc_pending writes;
	struct bio_set bios;	/* reads */
	u64 oldest_seq;		/* no unit in flight has a lower number */
	u64 logged_after;	/* move_lock, like the next: the checkpoint's number */
	u32 logged_again;	/* ranges out of victims since */
	u32 moving;		/* blocks found in the victim under way */
	atomic_t moved;		/* of these, by now */
	struct work_struct reset_work;
	struct gc_reset *resets;	/* reset_work only, like resetting */
	struct gc_pending resetting;
	struct workqueue_struct *wq;
	bool active;		/* free zones are short: users are paced */
	bool starved;		/* no zone to move into: users are not paced, but empty their buffers */
	bool forced;		/* by message: collect once even if they are not */
	bool running;		/* ftl->life, like the next */
	bool stopping;
	bool reset_failed;	/* zones wait for a reset that could not be tried */
	u32 victims;
	unsigned long stuck_since;	/* choose_lock; jiffies, 0: it is not */
};

/* What others ask */

u64 mtftl_gc_oldest_seq(struct mtftl *ftl)
{
	/* Pairs with write_units(): who sees its numbers drawn sees this too. */
	smp_rmb();
	return READ_ONCE(ftl->gc_data->oldest_seq);
}

bool mtftl_gc_active(struct mtftl *ftl)
{
	return READ_ONCE(ftl->gc_data->active);
}

/*
 * Composing has to wait for credit. While GC itself finds no zone, what is buffered goes
 * first: GC may have more of the zones that are left when the buffers are empty.
 */
bool mtftl_throttled(struct mtftl *ftl)
{
	struct mtftl_gc *gc = ftl->gc_data;

	return READ_ONCE(gc->active) && !READ_ONCE(gc->starved) &&
	       atomic64_read(&ftl->credit) <= 0;
}

/* A unit with so many blocks takes place. */
void mtftl_charge(struct mtftl *ftl, u32 blocks)
{
	if (READ_ONCE(ftl->gc_data->active))
		atomic64_sub(1 + blocks, &ftl->credit);
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

/* Pacing users */

static u32 zones_coming(struct mtftl *ftl)
{
	return READ_ONCE(ftl->zone_count[MTFTL_ZONE_EMPTY]) +
	       READ_ONCE(ftl->zone_count[MTFTL_ZONE_RESETTING]);
}

/* In zones that are open: a moment's truth, as good as pacing needs. */
static u64 open_room(struct mtftl *ftl)
{
	u64 room = 0;
	u32 i;

	for (i = 0; i <= ftl->budget.user_streams; i++) {
		const struct mtftl_zone *zone = READ_ONCE(ftl->streams[i].zone);
		u32 wp = zone ? READ_ONCE(zone->wp) : 0;

		if (zone && wp < zone->limit)
			room += zone->limit - wp;
	}
	return room;
}

/* Any context. What users took meanwhile, unseen by this look, the next one sees. */
static void update_credit(struct mtftl_gc *gc)
{
	struct mtftl *ftl = gc->ftl;
	struct mtftl_space space = {
		.zones = zones_coming(ftl),
		.capacity = ftl->capacity,
		.room = open_room(ftl),
		.moving = READ_ONCE(gc->moving),
		.moved = atomic_read(&gc->moved),
	};

	atomic64_set(&ftl->credit, mtftl_rate_credit(&space, READ_ONCE(ftl->low_water)));
	mtftl_space_appeared(ftl);
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

static struct mtftl_zone *pick_victim(struct mtftl_gc *gc, bool forced)
{
	struct mtftl *ftl = gc->ftl;
	struct mtftl_zone *zone, *best = NULL, *least = NULL;
	u64 score, best_score = 0, now = atomic64_read(&ftl->seq);
	u32 most_worn = 0, limit = worth_moving(gc);
	bool scarce = ftl->zone_count[MTFTL_ZONE_EMPTY] <= ftl->reserve;

	lockdep_assert_held(&ftl->zones_lock);
	list_for_each_entry(zone, &ftl->zone_list[MTFTL_ZONE_FULL], list) {
		struct mtftl_candidate candidate = {
			.valid = min(zone_valid(zone), ftl->capacity),
			.capacity = ftl->capacity,
			.age = now - zone->full_seq,
		};

		if (zone->not_before && !forced && time_before(jiffies, zone->not_before))
			continue;
		/* It costs a zone, and gives none back: that can wait. */
		if (mtftl_zone_is_worn_out(zone) && scarce)
			continue;
		if (mtftl_zone_is_worn_out(zone))
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

/* A mount would need them: no checkpoint has what they say. */
static bool has_new_ranges(const struct mtftl_zone *zone)
{
	return zone->ranges_seq > READ_ONCE(zone->ftl->super.ckpt_seq);
}

static void add_item(struct gc_worker *worker, u32 lba, u32 page)
{
	if (worker->nr_items < worker->gc->ftl->capacity)
		worker->items[worker->nr_items++] = (struct gc_item){ .lba = lba, .page = page };
}

static void keep_item(void *private, enum mtftl_unit_type type, u32 header, u32 index, u64 lba)
{
	struct gc_worker *worker = private;
	struct mtftl *ftl = worker->gc->ftl;
	u32 page = header + 1 + index;

	if (type == MTFTL_UNIT_RANGES) {
		if (has_new_ranges(mtftl_page_zone(ftl, header)))
			add_item(worker, MTFTL_NO_LBA, header);
		return;
	}
	if (lba >= ftl->logical_blocks || READ_ONCE(ftl->map[lba]) != page)
		return;
	if (worker->unit_header != header)
		add_item(worker, MTFTL_NO_LBA, header);
	worker->unit_header = header;
	add_item(worker, lba, page);
}

/* Its headers do not tell all: ask the map. Slow, and hardly ever needed. */
static void find_by_map(struct gc_worker *worker, struct mtftl_zone *victim)
{
	struct mtftl *ftl = worker->gc->ftl;
	u32 lba, value;

	worker->nr_items = 0;
	for (lba = 0; lba < ftl->logical_blocks && worker->nr_items < ftl->capacity; lba++) {
		value = READ_ONCE(ftl->map[lba]);
		if (mtftl_is_page(value) && mtftl_page_zone(ftl, value) == victim)
			add_item(worker, lba, value);
		if (!(lba & 0xffff))
			cond_resched();
	}
}

/* Waiting for what is in flight */

static void pending_begin(struct gc_pending *pending)
{
	atomic_set(&pending->count, 1);
	reinit_completion(&pending->done);
}

static void pending_get(struct gc_pending *pending)
{
	atomic_inc(&pending->count);
}

static void pending_put(struct gc_pending *pending)
{
	if (atomic_dec_and_test(&pending->count))
		complete(&pending->done);
}

static void pending_wait(struct gc_pending *pending)
{
	pending_put(pending);
	wait_for_completion_io(&pending->done);
}

/* Reading */

static void read_endio(struct bio *bio)
{
	struct gc_read *read = bio->bi_private;

	read->status = bio->bi_status;
	bio_put(bio);
	pending_put(read->pending);
}

static bool is_header(const struct gc_item *item)
{
	return item->lba == MTFTL_NO_LBA;
}

static void *batch_block(struct gc_batch *batch, u32 i)
{
	return batch->chunks[i >> MTFTL_BUFFER_ORDER] +
	       (i & ((1u << MTFTL_BUFFER_ORDER) - 1)) * MTFTL_BLOCK_SIZE;
}

static void submit_read(struct mtftl_gc *gc, struct gc_batch *batch, struct gc_read *read)
{
	void *data = batch_block(batch, read->first);
	struct bio *bio;

	bio = bio_alloc_bioset(gc->ftl->bdev, 1, REQ_OP_READ, GFP_NOIO, &gc->bios);
	bio->bi_iter.bi_sector = mtftl_page_sector(batch->items[read->first].page);
	bio->bi_private = read;
	bio->bi_end_io = read_endio;
	__bio_add_page(bio, virt_to_page(data), read->nr * MTFTL_BLOCK_SIZE,
		       offset_in_page(data));
	pending_get(read->pending);
	submit_bio_noacct(bio);
}

/* The victim's blocks from @first on; as many as there are, if not too many. */
static void start_reading(struct gc_worker *worker, struct gc_batch *batch, u32 first)
{
	const u32 chunk = 1u << MTFTL_BUFFER_ORDER;
	const struct gc_item *items = worker->items + first;
	struct blk_plug plug;
	u32 i, n, moved = 0;

	batch->items = items;
	batch->nr = 0;
	for (n = min(worker->nr_items - first, worker->gc->batch_items);
	     batch->nr < n && moved < worker->gc->batch; batch->nr++)
		moved += !is_header(&items[batch->nr]);
	batch->nr_reads = 0;
	memset(batch->found, GC_WHOLE, batch->nr * sizeof(*batch->found));
	pending_begin(&batch->pending);
	blk_start_plug(&plug);
	for (i = 0; i < batch->nr; i += n) {
		struct gc_read *read = &batch->reads[batch->nr_reads++];
		u32 most = min(batch->nr - i, chunk - (i & (chunk - 1)));

		for (n = 1; n < most && items[i + n].page == items[i].page + n; n++)
			;
		*read = (struct gc_read){ .pending = &batch->pending, .first = i, .nr = n };
		submit_read(worker->gc, batch, read);
	}
	blk_finish_plug(&plug);
}

/* One block by itself. False: the device does not answer at all. */
static bool read_again(struct gc_worker *worker, struct gc_batch *batch, u32 i)
{
	const struct gc_item *item = &batch->items[i];
	struct mtftl *ftl = worker->gc->ftl;
	int r = mtftl_rw_sync(ftl, REQ_OP_READ, item->page, batch_block(batch, i), 1);

	batch->found[i] = GC_WHOLE;
	if (!r)
		return true;
	if (!mtftl_device_answers(ftl, worker->walk_buf))
		return false;
	if (mtftl_medium_says(r) || mtftl_zone_is_offline(mtftl_page_zone(ftl, item->page)))
		batch->found[i] = GC_LOST;
	else
		batch->found[i] = GC_LATER;
	return true;
}

/*
 * Ranges that no checkpoint has go to another zone, with the numbers that they have: theirs
 * counts, not the unit's. A checkpoint for each victim that holds some would write the map over
 * and over. But where this writes as much as a checkpoint would, one is taken instead.
 */
static bool log_again(struct gc_worker *worker)
{
	struct mtftl_gc *gc = worker->gc;
	struct mtftl *ftl = gc->ftl;
	u64 after = READ_ONCE(ftl->super.ckpt_seq), lba;
	u32 most = MTFTL_UNIT_MAX_RANGES *
		   mtftl_ckpt_stream_blocks(ftl->nr_zones, ftl->logical_blocks);
	struct mtftl_range_rec rec;
	u32 i;

	lockdep_assert_held(&gc->move_lock);
	if (gc->logged_after != after)
		gc->logged_again = 0;
	gc->logged_after = after;
	for (i = 0; i < worker->unit.nr_entries; i++) {
		mtftl_unit_range(worker->header, i, &lba, &rec.nr_blocks, &rec.seq, &rec.kind);
		if (rec.seq <= after)
			continue;
		if (gc->logged_again >= most || lba >= ftl->logical_blocks ||
		    !mtftl_range_wait(ftl))
			return false;
		rec.lba = lba;
		mtftl_range_log(ftl, &rec);
		gc->logged_again++;
	}
	return true;
}

/* Its blocks come next. */
static void take_header(struct gc_worker *worker, struct gc_batch *batch, u32 i)
{
	struct mtftl *ftl = worker->gc->ftl;
	u32 page = batch->items[i].page, zone = page >> ftl->zone_shift;
	const void *block = batch_block(batch, i);

	worker->header_found = batch->found[i];
	if (batch->found[i] == GC_WHOLE &&
	    mtftl_unit_parse(block, ftl->seed, zone, page & ((1u << ftl->zone_shift) - 1),
			     ftl->capacity, &worker->unit))
		worker->header_found = GC_LOST;
	worker->unit_header = page;
	if (worker->header_found == GC_WHOLE)
		memcpy(worker->header, block, MTFTL_BLOCK_SIZE);
	if (worker->header_found == GC_WHOLE && worker->unit.type == MTFTL_UNIT_RANGES)
		worker->ranges_left |= !log_again(worker);
	else
		worker->ranges_left |= worker->header_found != GC_WHOLE;
}

/* What the block's writer said of it. False: there is no header that tells. */
static bool expected_crc(struct gc_worker *worker, const struct gc_item *item, u32 *crc)
{
	u32 index = item->page - worker->unit_header - 1;
	u64 lba;

	if (worker->header_found != GC_WHOLE || index >= worker->unit.nr_entries)
		return false;
	mtftl_unit_entry(worker->header, index, &lba, crc);
	return lba == item->lba;
}

/* It is what it was when it was written, or nobody can tell. False: the device does not answer. */
static bool verify(struct gc_worker *worker, struct gc_batch *batch, u32 i)
{
	const struct gc_item *item = &batch->items[i];
	struct mtftl *ftl = worker->gc->ftl;
	u32 crc;

	batch->crcs[i] = mtftl_payload_crc(ftl->seed, batch_block(batch, i));
	if (!expected_crc(worker, item, &crc) || crc == batch->crcs[i])
		return true;
	/* On the way here, or on the medium? */
	if (!read_again(worker, batch, i))
		return false;
	batch->crcs[i] = mtftl_payload_crc(ftl->seed, batch_block(batch, i));
	if (batch->found[i] == GC_WHOLE && crc != batch->crcs[i]) {
		batch->found[i] = GC_LOST;
		DMWARN_LIMIT("%s: block %u is not what was written", ftl->dev->name, item->lba);
	}
	return true;
}

/* False: the device does not answer at all. */
static bool finish_reading(struct gc_worker *worker, struct gc_batch *batch)
{
	u32 i;

	pending_wait(&batch->pending);
	/* Where a read failed, one by one: its neighbours may be fine. */
	while (batch->nr_reads--) {
		const struct gc_read *read = &batch->reads[batch->nr_reads];

		for (i = read->first; read->status && i < read->first + read->nr; i++)
			if (!read_again(worker, batch, i))
				return false;
	}
	for (i = 0; i < batch->nr; i++) {
		if (is_header(&batch->items[i]))
			take_header(worker, batch, i);
		else if (worker->header_found == GC_LATER)
			batch->found[i] = GC_LATER;
		else if (batch->found[i] == GC_WHOLE && !verify(worker, batch, i))
			return false;
		worker->gave_up |= batch->found[i] == GC_LATER;
	}
	return true;
}

/* Its only copy cannot be read: say so, durably, instead of handing out anything else. */
static void lose(struct mtftl *ftl, const struct gc_item *item)
{
	struct mtftl_range_rec rec = {
		.lba = item->lba,
		.nr_blocks = 1,
		.kind = MTFTL_RANGE_LOST,
	};

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
	struct mtftl_gc *gc = unit->private;

	atomic_add(unit->nr, &gc->moved);
	update_credit(gc);
	pending_put(&gc->writes);
}

static bool may_go_on(struct mtftl_gc *gc)
{
	return !READ_ONCE(gc->ftl->read_only) && !READ_ONCE(gc->ftl->paused) &&
	       !READ_ONCE(gc->stopping);
}

/* No zone comes, and no unit is in flight that could change that. */
static bool nothing_moves(struct mtftl *ftl)
{
	return !READ_ONCE(ftl->zone_count[MTFTL_ZONE_RESETTING]) &&
	       !READ_ONCE(ftl->zone_count[MTFTL_ZONE_CLOSING]) && mtftl_lanes_landed(ftl);
}

/* Zones that are to be reset count as coming: somebody has to see that the device is gone. */
static void retry_resets(struct gc_worker *worker)
{
	struct mtftl_gc *gc = worker->gc;

	if (xchg(&gc->reset_failed, false) && mtftl_device_answers(gc->ftl, worker->walk_buf))
		queue_work(gc->wq, &gc->reset_work);
}

/* Space was looked for at generation @gen, in vain. False: it is not worth another try. */
static bool wait_for_space(struct gc_worker *worker, u32 gen)
{
	struct mtftl_gc *gc = worker->gc;
	struct mtftl *ftl = gc->ftl;

	if (!READ_ONCE(gc->starved)) {
		WRITE_ONCE(gc->starved, true);
		mtftl_space_appeared(ftl);
	}
	retry_resets(worker);
	if (!wait_event_timeout(ftl->drain_wait, gen != atomic_read(&ftl->space_gen) ||
				READ_ONCE(gc->reset_failed) || !may_go_on(gc), MTFTL_LAST_HOPE) &&
	    nothing_moves(ftl))
		mtftl_set_read_only(ftl, "no zone is left for what would have to be moved");
	return may_go_on(gc);
}

/* One unit of the batch from block @i on; how many blocks it dealt with, 0: no space. */
static u32 write_unit(struct mtftl_gc *gc, struct mtftl_unit_io *unit, struct gc_batch *batch,
		      u32 i)
{
	const struct gc_item *items = batch->items;
	struct mtftl *ftl = gc->ftl;
	struct mtftl_stream *stream;
	u32 room, n;

	lockdep_assert_held(&ftl->gc_lock);
	if (READ_ONCE(ftl->paused))
		return 0;
	stream = mtftl_stream_find(ftl, 0, 2, MTFTL_RIGHT_GC, &room);
	if (!stream)
		return 0;
	room = min3(room - 1, gc->unit_blocks, (u32)unit->max);
	/* The number first, then the look at the map: a write in between has a higher one. */
	mtftl_unit_start(unit, MTFTL_UNIT_GC, atomic64_inc_return(&ftl->seq));
	for (n = 0; i + n < batch->nr && unit->nr < room; n++) {
		if (is_header(&items[i + n]) || batch->found[i + n] != GC_WHOLE ||
		    !mtftl_map_points_to(ftl, items[i + n].lba, items[i + n].page))
			continue;
		mtftl_unit_add(unit, items[i + n].lba, items[i + n].page,
			       batch_block(batch, i + n));
		unit->entries[unit->nr - 1].crc = batch->crcs[i + n];
	}
	if (unit->nr)
		mtftl_stream_take(stream, unit);
	mutex_unlock(&stream->lock);
	/* Those that are not in it need not be moved any more. */
	atomic_add(n - unit->nr, &gc->moved);
	if (unit->nr) {
		unit->done = gc_unit_done;
		unit->private = gc;
		pending_get(&gc->writes);
		mtftl_count(ftl, gc_blocks, unit->nr);
		mtftl_count(ftl, units, 1);
		mtftl_unit_compose(unit);
		mtftl_unit_submit(unit);
	}
	return n;
}

/* Units from block @i on, until they are written; how many blocks they dealt with. */
static u32 write_units(struct mtftl_gc *gc, struct gc_batch *batch, u32 i)
{
	struct mtftl *ftl = gc->ftl;
	u32 first = i, units, n = 1;

	mutex_lock(&ftl->gc_lock);
	WRITE_ONCE(gc->oldest_seq, atomic64_read(&ftl->seq) + 1);
	/* Pairs with mtftl_gc_oldest_seq(). */
	smp_mb();
	pending_begin(&gc->writes);
	for (units = 0; units < BATCH_UNITS && i < batch->nr && n; units++, i += n)
		n = write_unit(gc, gc->units[units], batch, i);
	pending_wait(&gc->writes);
	WRITE_ONCE(gc->oldest_seq, U64_MAX);
	mutex_unlock(&ftl->gc_lock);
	return i - first;
}

static bool write_batch(struct gc_worker *worker, struct gc_batch *batch)
{
	struct mtftl_gc *gc = worker->gc;
	u32 i, n, gen;

	for (i = 0; i < batch->nr; i += n) {
		gen = atomic_read(&gc->ftl->space_gen);
		n = write_units(gc, batch, i);
		if (n)
			WRITE_ONCE(gc->starved, false);
		else if (!wait_for_space(worker, gen))
			return false;
	}
	for (i = 0; i < batch->nr; i++)
		if (batch->found[i] == GC_LOST && !is_header(&batch->items[i]))
			lose(gc->ftl, &batch->items[i]);
	return true;
}

/* One victim */

/* All that was found in it; the first batch is being read already. */
static bool move_items(struct gc_worker *worker)
{
	struct gc_batch *batch = &worker->batches[0], *next = &worker->batches[1];
	bool ok = true;
	u32 end = 0;

	while (ok && batch->nr) {
		end += batch->nr;
		start_reading(worker, next, end);
		ok = finish_reading(worker, batch) && write_batch(worker, batch);
		swap(batch, next);
	}
	pending_wait(&batch->pending);
	return ok;
}

/* Its turn has come. False: it could not finish. */
static bool move_victim(struct gc_worker *worker, struct mtftl_zone *victim)
{
	struct mtftl_gc *gc = worker->gc;

	lockdep_assert_held(&gc->move_lock);
	atomic_set(&gc->moved, 0);
	WRITE_ONCE(gc->moving, worker->nr_items);
	if (!move_items(worker))
		return false;
	if (!zone_valid(victim))
		return true;
	if (worker->gave_up || !mtftl_device_answers(gc->ftl, worker->walk_buf))
		return false;
	/* A header could not be read, or a footer was wrong. */
	find_by_map(worker, victim);
	mtftl_warn(gc->ftl, "zone %u: %u blocks found by the map alone", victim->index,
		   worker->nr_items);
	worker->header_found = GC_LOST;
	start_reading(worker, &worker->batches[0], 0);
	return move_items(worker) && !zone_valid(victim);
}

/* Takes what is valid out of the zone. False: it could not. */
static bool collect(struct gc_worker *worker, struct mtftl_zone *victim)
{
	struct mtftl_gc *gc = worker->gc;
	struct mtftl *ftl = gc->ftl;
	bool empty;

	worker->nr_items = 0;
	worker->unit_header = U32_MAX;
	worker->header_found = GC_LOST;
	worker->gave_up = false;
	worker->ranges_left = false;
	if (zone_valid(victim) || has_new_ranges(victim)) {
		mutex_lock(&gc->walk_lock);
		worker->ranges_left = !mtftl_zone_walk(ftl, victim, worker->walk_buf, gc->stream,
						       keep_item, worker);
		mutex_unlock(&gc->walk_lock);
	}
	start_reading(worker, &worker->batches[0], 0);

	mutex_lock(&gc->move_lock);
	empty = move_victim(worker, victim);
	trace_mtftl_gc_victim(victim, worker->nr_items, zones_coming(ftl),
			      atomic64_read(&ftl->credit));
	spin_lock(&ftl->zones_lock);
	mtftl_zone_set_state(ftl, victim, empty ? MTFTL_ZONE_RESETTING : MTFTL_ZONE_FULL);
	if (!empty && mtftl_zone_is_worn_out(victim))
		ftl->worn_out_zones++;
	if (empty && !worker->ranges_left)
		victim->ranges_seq = 0;
	victim->not_before = worker->gave_up ? (jiffies + GIVEN_UP) | 1 : 0;
	spin_unlock(&ftl->zones_lock);
	if (worker->gave_up)
		mtftl_warn(ftl, "zone %u cannot be read now, but later perhaps",
			   victim->index);
	WRITE_ONCE(gc->moving, 0);
	WRITE_ONCE(gc->starved, false);
	update_credit(gc);
	mutex_unlock(&gc->move_lock);

	if (empty) {
		mtftl_count(ftl, victims, 1);
		queue_work(gc->wq, &gc->reset_work);
	}
	return empty;
}

/* Resetting, behind GC's back */

static bool zones_are_few(struct mtftl *ftl)
{
	return READ_ONCE(ftl->zone_count[MTFTL_ZONE_EMPTY]) <= ftl->reserve + 1 ||
	       !may_go_on(ftl->gc_data);
}

static void reset_endio(struct bio *bio)
{
	struct mtftl_gc *gc = bio->bi_private;

	pending_put(&gc->resetting);
}

/* As many zones of the list as go at once: each waits behind what its dies are at. */
static void reset_zones(struct mtftl_gc *gc, struct list_head *zones)
{
	struct mtftl_zone *zone;
	u32 n = 0, i;

	pending_begin(&gc->resetting);
	list_for_each_entry(zone, zones, list) {
		struct gc_reset *reset = &gc->resets[n++];
		struct bio *bio = &reset->bio;

		reset->zone = zone;
		bio_init(bio, gc->ftl->bdev, NULL, 0, REQ_OP_ZONE_RESET | REQ_SYNC);
		bio->bi_iter.bi_sector = mtftl_page_sector(mtftl_zone_page(gc->ftl, zone));
		bio->bi_private = gc;
		bio->bi_end_io = reset_endio;
		if (!mtftl_zone_is_worn_out(zone)) {
			pending_get(&gc->resetting);
			submit_bio(bio);
		}
		if (n == RESETS)
			break;
	}
	pending_wait(&gc->resetting);
	for (i = 0; i < n; i++) {
		struct gc_reset *reset = &gc->resets[i];

		mtftl_zone_reset_done(gc->ftl, reset->zone,
				      !mtftl_zone_is_worn_out(reset->zone) &&
				      !reset->bio.bi_status);
		bio_uninit(&reset->bio);
	}
}

static void reset_work(struct work_struct *work)
{
	struct mtftl_gc *gc = container_of(work, struct mtftl_gc, reset_work);
	unsigned int flags = memalloc_noio_save();
	struct mtftl *ftl = gc->ftl;
	struct mtftl_zone *zone;
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
	/* Nothing can be gained any more, only lost. */
	if (READ_ONCE(ftl->read_only) || READ_ONCE(ftl->paused))
		goto put_back;
	/* Resets change what a clean checkpoint stands for, as writes do. */
	if (READ_ONCE(ftl->super.clean) && mtftl_super_dirty(ftl))
		goto put_back;

	/* Discards are logged in zones like data: keep them until a checkpoint has them. */
	if (ranges_seq > READ_ONCE(ftl->super.ckpt_seq) && mtftl_checkpoint(ftl, false))
		goto put_back;
	/* What replaced the pages in these zones must be durable first. */
	if (mtftl_flush_calmly(ftl, zones_are_few))
		goto put_back;
	mtftl_wait_readers(ftl);
	while (!list_empty(&zones))
		reset_zones(gc, &zones);
	mtftl_gc_kick(ftl);
	goto out;
put_back:
	spin_lock(&ftl->zones_lock);
	list_splice(&zones, &ftl->zone_list[MTFTL_ZONE_RESETTING]);
	spin_unlock(&ftl->zones_lock);
	WRITE_ONCE(gc->reset_failed, true);
	mtftl_gc_kick(ftl);
	wake_up_all(&ftl->drain_wait);
out:
	memalloc_noio_restore(flags);
}

/* The workers */

static bool wanted(struct mtftl_gc *gc)
{
	struct mtftl *ftl = gc->ftl;

	if (READ_ONCE(gc->forced) || READ_ONCE(ftl->worn_out_zones) ||
	    READ_ONCE(gc->reset_failed))
		return true;
	if (zones_coming(ftl) >= READ_ONCE(ftl->low_water))
		return false;
	/* One at a time will do while users need not wait. */
	return !READ_ONCE(ftl->zone_count[MTFTL_ZONE_VICTIM]) ||
	       atomic64_read(&ftl->credit) < ftl->capacity / 2;
}

static bool may_work(struct mtftl_gc *gc)
{
	return may_go_on(gc) && wanted(gc);
}

static void set_active(struct mtftl_gc *gc, bool active)
{
	if (active == gc->active)
		return;
	WRITE_ONCE(gc->active, active);
	update_credit(gc);
}

static void update_active(struct mtftl_gc *gc)
{
	struct mtftl *ftl = gc->ftl;

	lockdep_assert_held(&gc->choose_lock);
	set_active(gc, READ_ONCE(ftl->zone_count[MTFTL_ZONE_VICTIM]) && may_go_on(gc) &&
		       zones_coming(ftl) < READ_ONCE(ftl->low_water));
}

/*
 * So many zones are worn out that nothing can be gained from those that are left, and all
 * that is open is full. For a while a discard may still help.
 */
static void see_if_stuck(struct mtftl_gc *gc)
{
	struct mtftl *ftl = gc->ftl;

	lockdep_assert_held(&gc->choose_lock);
	if (!READ_ONCE(ftl->no_victim) || !nothing_moves(ftl) || !mtftl_lanes_stuck(ftl))
		gc->stuck_since = 0;
	else if (!gc->stuck_since)
		gc->stuck_since = jiffies | 1;
	else if (time_after(jiffies, gc->stuck_since + MTFTL_LAST_HOPE))
		mtftl_set_read_only(ftl, "no zone is left from which space could be gained");
}

static struct mtftl_zone *choose_victim(struct mtftl_gc *gc)
{
	struct mtftl_zone *victim = NULL;
	struct mtftl *ftl = gc->ftl;
	bool forced;

	mutex_lock(&gc->choose_lock);
	/* Another worker may have done so meanwhile. */
	if (wanted(gc)) {
		forced = xchg(&gc->forced, false);
		spin_lock(&ftl->zones_lock);
		victim = pick_victim(gc, forced);
		if (victim) {
			mtftl_zone_set_state(ftl, victim, MTFTL_ZONE_VICTIM);
			if (mtftl_zone_is_worn_out(victim))
				ftl->worn_out_zones--;
		}
		spin_unlock(&ftl->zones_lock);
		update_active(gc);
		mtftl_zones_no_victim(ftl, !READ_ONCE(ftl->zone_count[MTFTL_ZONE_VICTIM]) &&
					   !READ_ONCE(ftl->zone_count[MTFTL_ZONE_RESETTING]));
		see_if_stuck(gc);
	}
	mutex_unlock(&gc->choose_lock);
	return victim;
}

static void rest(struct mtftl_gc *gc)
{
	mutex_lock(&gc->choose_lock);
	if (!may_work(gc)) {
		update_active(gc);
		mtftl_zones_no_victim(gc->ftl, false);
	}
	mutex_unlock(&gc->choose_lock);
}

static bool gc_step(struct gc_worker *worker)
{
	struct mtftl_gc *gc = worker->gc;
	struct mtftl *ftl = gc->ftl;
	struct mtftl_zone *victim;

	if (READ_ONCE(ftl->super.clean) && mtftl_super_dirty(ftl))
		return false;
	if (READ_ONCE(gc->reset_failed)) {
		retry_resets(worker);
		return false;
	}
	victim = choose_victim(gc);
	if (!victim)
		return false;
	/* Perhaps the next one should be read by the time that this one is written. */
	mtftl_gc_kick(ftl);
	return collect(worker, victim);
}

static int gc_thread(void *data)
{
	unsigned int flags = memalloc_noio_save();
	struct gc_worker *worker = data;
	struct mtftl_gc *gc = worker->gc;
	struct mtftl *ftl = gc->ftl;
	u32 gen;

	while (!kthread_should_stop()) {
		if (kthread_should_park())
			kthread_parkme();
		gen = atomic_read(&ftl->space_gen);
		if (may_work(gc)) {
			if (gc_step(worker))
				continue;
			/* Nothing to gain now: not before somebody writes or frees. */
			wait_event_idle_timeout(ftl->gc_wait, READ_ONCE(gc->stopping) ||
						gen != atomic_read(&ftl->space_gen), HZ / 10);
			continue;
		}
		rest(gc);
		wait_event_idle(ftl->gc_wait, kthread_should_stop() || kthread_should_park() ||
				may_work(gc));
	}
	memalloc_noio_restore(flags);
	return 0;
}

static int batch_alloc(struct mtftl_gc *gc, struct gc_batch *batch)
{
	u32 chunks = DIV_ROUND_UP(gc->batch_items, 1u << MTFTL_BUFFER_ORDER);

	init_completion(&batch->pending.done);
	batch->reads = kvmalloc_array(gc->batch_items, sizeof(*batch->reads), GFP_KERNEL);
	batch->found = kvmalloc_array(gc->batch_items, sizeof(*batch->found), GFP_KERNEL);
	batch->crcs = kvmalloc_array(gc->batch_items, sizeof(*batch->crcs), GFP_KERNEL);
	batch->chunks = kcalloc(chunks, sizeof(*batch->chunks), GFP_KERNEL);
	if (!batch->reads || !batch->found || !batch->crcs || !batch->chunks)
		return -ENOMEM;
	while (batch->nr_chunks < chunks) {
		void *chunk = (void *)__get_free_pages(GFP_KERNEL, MTFTL_BUFFER_ORDER);

		if (!chunk)
			return -ENOMEM;
		batch->chunks[batch->nr_chunks++] = chunk;
	}
	return 0;
}

static void batch_free(struct gc_batch *batch)
{
	while (batch->nr_chunks)
		free_pages((unsigned long)batch->chunks[--batch->nr_chunks], MTFTL_BUFFER_ORDER);
	kfree(batch->chunks);
	kvfree(batch->crcs);
	kvfree(batch->found);
	kvfree(batch->reads);
}

static int worker_alloc(struct mtftl_gc *gc, struct gc_worker *worker)
{
	int r = 0;
	u32 i;

	worker->gc = gc;
	worker->items = kvmalloc_array(gc->ftl->capacity, sizeof(*worker->items), GFP_KERNEL);
	worker->walk_buf = (void *)__get_free_pages(GFP_KERNEL, MTFTL_BUFFER_ORDER);
	worker->header = (void *)__get_free_page(GFP_KERNEL);
	if (!worker->items || !worker->walk_buf || !worker->header)
		return -ENOMEM;
	for (i = 0; !r && i < BATCHES; i++)
		r = batch_alloc(gc, &worker->batches[i]);
	if (r)
		return r;
	worker->task = mtftl_thread(gc_thread, worker, -1, "mtftl_gc/%u",
				    (unsigned int)(worker - gc->workers));
	return worker->task ? 0 : -ENOMEM;
}

static void worker_free(struct gc_worker *worker)
{
	u32 i;

	if (worker->task)
		kthread_stop(worker->task);
	for (i = 0; i < BATCHES; i++)
		batch_free(&worker->batches[i]);
	free_page((unsigned long)worker->header);
	free_pages((unsigned long)worker->walk_buf, MTFTL_BUFFER_ORDER);
	kvfree(worker->items);
}

int mtftl_gc_alloc(struct mtftl *ftl)
{
	struct mtftl_gc *gc = kzalloc(sizeof(*gc), GFP_KERNEL);
	u32 i, usable = ftl->capacity - mtftl_footer_reserve(ftl->capacity);
	int r = 0;

	if (!gc)
		return -ENOMEM;
	ftl->gc_data = gc;
	gc->ftl = ftl;
	gc->oldest_seq = U64_MAX;
	gc->unit_blocks = min(UNIT_BLOCKS, ftl->unit_max);
	gc->batch = BATCH_UNITS * gc->unit_blocks;
	gc->batch_items = gc->batch + gc->batch / 4;
	gc->payload = usable - DIV_ROUND_UP(usable, gc->unit_blocks + 1);
	mutex_init(&gc->choose_lock);
	mutex_init(&gc->walk_lock);
	mutex_init(&gc->move_lock);
	init_completion(&gc->writes.done);
	init_completion(&gc->resetting.done);
	INIT_WORK(&gc->reset_work, reset_work);
	gc->wq = alloc_ordered_workqueue("mtftl-reset-%s", WQ_MEM_RECLAIM, ftl->dev->name);
	gc->resets = kcalloc(RESETS, sizeof(*gc->resets), GFP_KERNEL);
	gc->stream = kvmalloc(mtftl_footer_reserve(ftl->capacity) * MTFTL_BLOCK_SIZE, GFP_KERNEL);
	if (!gc->wq || !gc->resets || !gc->stream)
		return -ENOMEM;
	for (i = 0; i < BATCH_UNITS; i++) {
		gc->units[i] = mtftl_unit_alloc(ftl, gc->unit_blocks);
		if (!gc->units[i])
			return -ENOMEM;
	}
	for (i = 0; !r && i < WORKERS; i++)
		r = worker_alloc(gc, &gc->workers[i]);
	return r ?: bioset_init(&gc->bios, BATCH_UNITS, 0, BIOSET_NEED_BVECS);
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
	for (i = 0; i < WORKERS; i++)
		worker_free(&gc->workers[i]);
	for (i = 0; i < BATCH_UNITS; i++)
		mtftl_unit_free(gc->units[i]);
	kvfree(gc->stream);
	kfree(gc->resets);
	kfree(gc);
	ftl->gc_data = NULL;
}

void mtftl_gc_start(struct mtftl *ftl)
{
	struct mtftl_gc *gc = ftl->gc_data;
	u32 i;

	if (gc->running)
		return;
	gc->running = true;
	WRITE_ONCE(gc->stopping, false);
	for (i = 0; i < WORKERS; i++)
		kthread_unpark(gc->workers[i].task);
}

/* No unit of GC is in flight and no zone is being reset when this returns. */
void mtftl_gc_stop(struct mtftl *ftl)
{
	struct mtftl_gc *gc = ftl->gc_data;
	u32 i;

	if (!gc || !gc->running)
		return;
	WRITE_ONCE(gc->stopping, true);
	wake_up_all(&ftl->gc_wait);
	wake_up_all(&ftl->drain_wait);
	for (i = 0; i < WORKERS; i++)
		kthread_park(gc->workers[i].task);
	gc->running = false;
	set_active(gc, false);
	mtftl_zones_no_victim(ftl, false);
	flush_workqueue(gc->wq);
}
