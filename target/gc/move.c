// SPDX-License-Identifier: GPL-2.0
/*
 * Moving: see move.h.
 *
 * A mover is a thread; there is one for each lane, from MOVERS_MIN to MOVERS_MAX. It takes a slice
 * of the oldest victim that has items left, begins to read it, and meanwhile writes the one that it
 * took before. A slice's unit lands whenever it does: only the victim waits for it.
 *
 * Order. A slice publishes that it is about to draw a number (seq.h), draws it, then takes, under
 * the shard lock, only blocks that the map still points at. A write that comes later gets a slot,
 * whose unit draws a higher number. On completion the map follows only where it is unchanged.
 *
 * Pauses. A mover keeps its slices during a pause, and goes on with them when it ends. If it gave
 * them up, pauses that follow each other faster than a slice is read would stop GC.
 *
 * movers->lock protects the queue of victims and what is handed out of them. A slice belongs to its
 * mover, then to its bio; its last reference makes it free again.
 */
#include "gc/move.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "device/await.h"
#include "device/inflight.h"
#include "device/meta.h"
#include "device/pause.h"
#include "device/rw.h"
#include "device/seq.h"
#include "device/space.h"
#include "device/thread.h"
#include "durable/flush.h"
#include "gc/reset.h"
#include "io/lane.h"
#include "map/age.h"
#include "map/map.h"
#include "map/pending.h"
#include "zone/stream.h"
#include "zone/write.h"

#define UNIT_BLOCKS	64u	/* header below 2% whatever users write */
#define SLICE_ITEMS	96u	/* a unit's blocks, and the headers that they lay behind */
#define CHUNKS		4u	/* of memory: with the holes between them */
#define CHUNK		MTFTL_BUFFER_BLOCKS
#define HOLE		4u	/* blocks that are read along: another command would cost more */
#define MOVERS_MIN	3u	/* with one lane too: comparisons shall not meet a weak GC */
#define MOVERS_MAX	8u	/* what more have in hand is neither moved nor free */
#define READING		2u	/* slices of a mover that are read at once */
#define SLICES		(READING + 2)	/* and written */

/* What came of a block that was read. */
enum found {
	WHOLE,
	LATER,			/* an error that may pass */
	LOST,			/* the medium says so, or its checksum */
};

/* One read of contiguous pages. */
struct part {
	struct mtftl_inflight *inflight;
	u32 page;
	u32 pos;		/* in the slice's memory, in blocks */
	u32 nr;
	blk_status_t status;
	struct mtftl_meta *meta;	/* where there are no headers */
};

struct slice {
	struct mover *mover;
	struct mtftl_victim *victim;	/* NULL: the slice is free */
	atomic_t refs;			/* its mover's, and its unit's */
	u32 nr;
	struct mtftl_item items[SLICE_ITEMS];
	u32 crcs[SLICE_ITEMS];
	u8 found[SLICE_ITEMS];		/* enum found */
	u8 pos[SLICE_ITEMS];		/* in its memory, in blocks */
	u8 part[SLICE_ITEMS];		/* that reads it */
	struct part parts[SLICE_ITEMS];
	u32 nr_parts;
	struct mtftl_inflight inflight;	/* reads */
	bool is_read;			/* they have landed, and it no longer counts as sending */
	void **chunks;			/* its blocks' memory */
	void **oobs;			/* a page for each chunk, where there are no headers */
	struct mtftl_meta *metas;	/* likewise, of each part */
	struct mtftl_write *unit;
	struct completion landed;	/* the unit, where there is more to write with it */
	struct mtftl_unordered unordered;
};

struct mover {
	struct mtftl_movers *movers;
	struct task_struct *task;
	wait_queue_head_t wait;		/* its own, for victims and for slices */
	struct slice slices[SLICES];
	struct slice *reading[READING];	/* oldest first */
	u32 nr_reading;
	void *block;			/* for whether the device answers */
	/* Of the unit under way, for verifying: slices end where they will. */
	u32 header_page;
	void *header;
	struct mtftl_unit_info unit;
	enum found header_found;
};

struct mtftl_movers {
	struct mtftl *ftl;
	struct mtftl_pace *pace;
	struct mtftl_resets *resets;
	struct bio_set bios;		/* reads */
	wait_queue_head_t landed;	/* a stop, for slices */
	spinlock_t lock;		/* queue, and what is handed out */
	struct list_head queue;		/* victims with items left, oldest first */
	struct mutex ranges_lock;	/* the next two */
	u64 logged_after;		/* the checkpoint's number */
	u32 logged_again;		/* ranges out of victims since */
	bool stopping;
	bool starved;			/* some mover finds no zone to move into */
	unsigned int nr;
	struct mover all[];
};

static bool is_header(const struct mtftl_item *item)
{
	return item->lba == MTFTL_NO_LBA;
}

static bool has_ended(void *data)
{
	const struct mtftl_movers *movers = data;

	return mtftl_is_read_only(movers->ftl) || READ_ONCE(movers->stopping);
}

static bool may_go_on(struct mtftl_movers *movers)
{
	return !has_ended(movers) && !mtftl_is_paused(movers->ftl);
}

/* Slices and their victims */

static void victim_put(struct mtftl_movers *movers, struct mtftl_victim *victim)
{
	mtftl_assert(atomic_read(&victim->left) > 0, "%d", atomic_read(&victim->left));
	if (atomic_dec_and_test(&victim->left))
		mtftl_space_kick_gc(movers->ftl);
}

/* Any context. */
static void slice_put(struct slice *slice)
{
	struct mtftl_movers *movers = slice->mover->movers;
	struct mtftl_victim *victim = slice->victim;

	mtftl_assert(victim && atomic_read(&slice->refs) > 0, "%d", atomic_read(&slice->refs));
	if (!atomic_dec_and_test(&slice->refs))
		return;
	/* Put the victim first: once all slices are free, another one may take its place. */
	victim_put(movers, victim);
	/* Pairs with free_slice(): its next taker finds its unit at rest. */
	smp_store_release(&slice->victim, NULL);
	wake_up(&slice->mover->wait);
	if (wq_has_sleeper(&movers->landed))
		wake_up_all(&movers->landed);
}

static struct slice *free_slice(struct mover *mover)
{
	unsigned int i;

	for (i = 0; i < SLICES; i++)
		/* Pairs with slice_put(). */
		if (!smp_load_acquire(&mover->slices[i].victim))
			return &mover->slices[i];
	return NULL;
}

/* No mover takes items out of it any more. */
static void leave_queue(struct mtftl_movers *movers, struct mtftl_victim *victim)
{
	lockdep_assert_held(&movers->lock);
	mtftl_assert(!list_empty(&victim->list));
	list_del_init(&victim->list);
	victim_put(movers, victim);
	/* Movers want the next one. */
	if (list_empty(&movers->queue))
		mtftl_space_kick_gc(movers->ftl);
}

/* Also what lies between it and the item before, if that is little. False: its memory is full. */
static bool add_item(struct slice *slice, struct mtftl_item item)
{
	struct part *part = slice->nr ? &slice->parts[slice->nr_parts - 1] : NULL;
	u32 end = part ? part->pos + part->nr : 0, more = part ? item.page - part->page + 1 : 1;

	if (slice->nr == SLICE_ITEMS)
		return false;
	/* A part is contiguous in memory, so it lies within a chunk. */
	if (part && more > part->nr && more - part->nr <= 1 + HOLE &&
	    part->pos % CHUNK + more <= CHUNK) {
		part->nr = more;
	} else if (end < CHUNKS * CHUNK) {
		part = &slice->parts[slice->nr_parts++];
		*part = (struct part){
			.inflight = &slice->inflight, .page = item.page, .pos = end, .nr = 1,
			.meta = slice->metas + slice->nr_parts - 1,
		};
	} else {
		return false;
	}
	slice->part[slice->nr] = slice->nr_parts - 1;
	slice->pos[slice->nr] = part->pos + part->nr - 1;
	mtftl_assert(part->page + part->nr - 1 == item.page &&
		     part->pos % CHUNK + part->nr <= CHUNK,
		     "page %#x: %u from %#x on", item.page, part->nr, part->page);
	slice->items[slice->nr++] = item;
	return true;
}

/* The next items of the victim: as many blocks as a unit takes, each behind its header. */
static void cut_slice(struct mtftl_movers *movers, struct mtftl_victim *victim,
		      struct slice *slice)
{
	const struct mtftl_item *item = victim->items + victim->next;
	const struct mtftl_item *end = victim->items + victim->nr_items;
	u32 blocks = 0;

	lockdep_assert_held(&movers->lock);
	slice->nr = 0;
	slice->nr_parts = 0;
	slice->victim = victim;
	atomic_inc(&victim->left);
	if (!is_header(item) && victim->header != U32_MAX)
		add_item(slice, (struct mtftl_item){ MTFTL_NO_LBA, victim->header });
	for (; item < end && blocks < slice->unit->max && add_item(slice, *item); item++) {
		/* One of ranges stands by itself. */
		if (is_header(item) && movers->ftl->config.header_blocks)
			victim->header = item->page;
		else if (!is_header(item))
			blocks++;
	}
	victim->next = item - victim->items;
	mtftl_assert(slice->nr && blocks <= slice->unit->max && victim->next <= victim->nr_items,
		     "%u items, %u blocks", slice->nr, blocks);
	if (item == end)
		leave_queue(movers, victim);
}

static struct slice *take_slice(struct mover *mover)
{
	struct mtftl_movers *movers = mover->movers;
	struct slice *slice = free_slice(mover);
	struct mtftl_victim *victim;

	/* A pause waits until this read is done. */
	if (!slice || !may_go_on(movers) || !mtftl_send_begin(movers->ftl))
		return NULL;
	spin_lock(&movers->lock);
	victim = list_first_entry_or_null(&movers->queue, struct mtftl_victim, list);
	if (victim)
		cut_slice(movers, victim, slice);
	spin_unlock(&movers->lock);
	if (!victim) {
		mtftl_send_end(movers->ftl);
		return NULL;
	}
	atomic_set(&slice->refs, 1);
	return slice;
}

/* What is left of a victim stays where it is. */
static void end_early(struct mtftl_movers *movers, struct mtftl_victim *victim)
{
	WRITE_ONCE(victim->ended_early, true);
	spin_lock(&movers->lock);
	if (!list_empty(&victim->list))
		leave_queue(movers, victim);
	spin_unlock(&movers->lock);
}

/* Reading */

static void *memory_at(const struct slice *slice, u32 pos)
{
	mtftl_assert(pos < CHUNKS * CHUNK, "%u", pos);
	return slice->chunks[pos / CHUNK] + pos % CHUNK * MTFTL_BLOCK_SIZE;
}

/* The metadata of a block in its memory. */
static void *oob_at(const struct slice *slice, u32 pos)
{
	return slice->oobs[pos / CHUNK] + pos % CHUNK * slice->mover->movers->ftl->config.meta_size;
}

/* Of an item. */
static void *slice_block(const struct slice *slice, u32 i)
{
	return memory_at(slice, slice->pos[i]);
}

static void read_endio(struct bio *bio)
{
	struct part *part = bio->bi_private;
	struct slice *slice = container_of(part->inflight, struct slice, inflight);

	mtftl_count(slice->mover->movers->ftl, answered, 1);
	part->status = bio->bi_status;
	mtftl_meta_detach(bio);
	bio_put(bio);
	mtftl_inflight_put(part->inflight);
}

static void submit_part(struct slice *slice, struct part *part)
{
	struct mtftl_movers *movers = slice->mover->movers;
	void *data = memory_at(slice, part->pos);
	struct bio *bio;

	bio = bio_alloc_bioset(mtftl_bdev(movers->ftl), 1, REQ_OP_READ, GFP_NOIO, &movers->bios);
	bio->bi_iter.bi_sector = mtftl_page_sector(movers->ftl, part->page);
	bio->bi_private = part;
	bio->bi_end_io = read_endio;
	__bio_add_page(bio, virt_to_page(data), part->nr * MTFTL_BLOCK_SIZE, offset_in_page(data));
	if (!movers->ftl->config.header_blocks)
		mtftl_meta_attach(&movers->ftl->config, bio, part->meta,
				  oob_at(slice, part->pos));
	mtftl_inflight_get(part->inflight);
	mtftl_pause_heed(movers->ftl);
	mtftl_count(movers->ftl, asked, 1);
	submit_bio_noacct(bio);
}

static void start_reading(struct slice *slice)
{
	struct blk_plug plug;
	u32 i;

	mtftl_assert(slice->nr_parts && slice->nr_parts <= slice->nr, "%u parts of %u",
		     slice->nr_parts, slice->nr);
	slice->is_read = false;
	memset(slice->found, WHOLE, sizeof(slice->found));
	mtftl_inflight_begin(&slice->inflight);
	blk_start_plug(&plug);
	for (i = 0; i < slice->nr_parts; i++)
		submit_part(slice, &slice->parts[i]);
	blk_finish_plug(&plug);
}

/* From its begin on the slice counts as sending. */
static void wait_for_reads(struct slice *slice)
{
	mtftl_assert(slice->victim);
	if (slice->is_read)
		return;
	mtftl_inflight_wait(&slice->inflight);
	mtftl_send_end(slice->mover->movers->ftl);
	slice->is_read = true;
}

/*
 * Begin to send: see pause.h. Waits as long as there is a pause, which must not wait for slices
 * that this mover began to read. False: nothing is to be sent.
 */
static bool send_begin(struct mover *mover)
{
	struct mtftl_movers *movers = mover->movers;
	struct mtftl *ftl = movers->ftl;
	u32 i;

	while (!mtftl_send_begin(ftl)) {
		for (i = 0; i < mover->nr_reading; i++)
			wait_for_reads(mover->reading[i]);
		mtftl_space_sit_out_pause(ftl, has_ended, movers);
		if (has_ended(movers))
			return false;
	}
	return true;
}

/* One block by itself. False: the device does not answer at all. */
static bool read_block(struct slice *slice, u32 i)
{
	const struct mtftl_item *item = &slice->items[i];
	struct mtftl *ftl = slice->mover->movers->ftl;
	int r;

	if (ftl->config.header_blocks)
		r = mtftl_rw_sync(ftl, REQ_OP_READ, item->page, slice_block(slice, i), 1);
	else
		r = mtftl_read_oob(ftl, item->page, slice_block(slice, i), 1,
				   oob_at(slice, slice->pos[i]));
	slice->found[i] = WHOLE;
	if (!r)
		return true;
	if (!mtftl_device_answers(ftl, slice->mover->block))
		return false;
	if (mtftl_medium_says(r) || mtftl_zone_is_offline(ftl, mtftl_page_zone(ftl, item->page)))
		slice->found[i] = LOST;
	else
		slice->found[i] = LATER;
	return true;
}

/* False: the device does not answer, or must not be asked any more. */
static bool read_again(struct slice *slice, u32 i)
{
	struct mover *mover = slice->mover;
	bool answers;

	if (!send_begin(mover))
		return false;
	answers = read_block(slice, i);
	mtftl_send_end(mover->movers->ftl);
	return answers;
}

/*
 * Write the unit's records of ranges to another zone, if no checkpoint has them. A record keeps its
 * number, because that counts, and not the number of its unit. A checkpoint for each victim with
 * such records would write the map over and over. False: some are left to a checkpoint, for example
 * because those written again since the last one fill as many blocks as it would.
 */
static bool log_again(struct mover *mover)
{
	struct mtftl_movers *movers = mover->movers;
	struct mtftl *ftl = movers->ftl;
	u64 after = mtftl_seq_ckpt(ftl), lba;
	u32 most = MTFTL_UNIT_MAX_RANGES * mtftl_checkpoint_blocks(&ftl->config);
	struct mtftl_range_rec rec;
	bool ok = true;
	u32 i;

	mutex_lock(&movers->ranges_lock);
	if (movers->logged_after != after)
		movers->logged_again = 0;
	movers->logged_after = after;
	for (i = 0; ok && i < mover->unit.nr_entries; i++) {
		mtftl_unit_range(mover->header, i, &lba, &rec.nr_blocks, &rec.seq, &rec.kind);
		if (rec.seq <= after)
			continue;
		ok = movers->logged_again < most && lba < ftl->config.logical_blocks &&
		     mtftl_flush_for_range(ftl);
		if (!ok)
			break;
		rec.lba = lba;
		mtftl_range_add(ftl, &rec);
		movers->logged_again++;
	}
	mutex_unlock(&movers->ranges_lock);
	return ok;
}

/* Its blocks come next. */
static void take_header(struct slice *slice, u32 i)
{
	u32 page = slice->items[i].page;
	struct mover *mover = slice->mover;
	struct mtftl *ftl = mover->movers->ftl;
	const void *block = slice_block(slice, i);
	bool ranges_left;

	mtftl_assert(mtftl_page_zone(ftl, page) == slice->victim->zone->index, "page %#x", page);
	mover->header_found = slice->found[i];
	if (slice->found[i] == WHOLE &&
	    mtftl_unit_parse(block, ftl->config.seed, mtftl_page_zone(ftl, page),
			     mtftl_page_offset(ftl, page), ftl->config.capacity, &mover->unit))
		mover->header_found = LOST;
	mover->header_page = page;
	if (mover->header_found == WHOLE)
		memcpy(mover->header, block, MTFTL_BLOCK_SIZE);
	if (mover->header_found == WHOLE && mover->unit.type == MTFTL_UNIT_RANGES)
		ranges_left = !log_again(mover);
	else
		ranges_left = mover->header_found != WHOLE;
	if (ranges_left)
		WRITE_ONCE(slice->victim->ranges_left, true);
}

/* What the block's writer said of it. False: there is no header that tells. */
static bool expected_crc(struct slice *slice, u32 i, u32 *crc)
{
	const struct mtftl_item *item = &slice->items[i];
	struct mover *mover = slice->mover;
	struct mtftl *ftl = mover->movers->ftl;
	u32 index = item->page - mover->header_page - 1;
	u64 lba;

	if (!ftl->config.header_blocks) {
		*crc = mtftl_oob_crc(oob_at(slice, slice->pos[i]), item->lba, ftl->config.seed,
				     mtftl_page_zone(ftl, item->page));
		return true;
	}
	if (mover->header_found != WHOLE || index >= mover->unit.nr_entries)
		return false;
	mtftl_unit_entry(mover->header, index, &lba, crc);
	return lba == item->lba;
}

/* It is as it was written, or that cannot be told. False: the device does not answer. */
static bool verify(struct slice *slice, u32 i)
{
	struct mtftl *ftl = slice->mover->movers->ftl;
	const struct mtftl_item *item = &slice->items[i];
	u32 crc;

	slice->crcs[i] = mtftl_payload_crc(ftl->config.seed, slice_block(slice, i));
	if (!expected_crc(slice, i, &crc) || crc == slice->crcs[i])
		return true;
	/* On the way here, or on the medium? */
	if (!read_again(slice, i))
		return false;
	expected_crc(slice, i, &crc);
	slice->crcs[i] = mtftl_payload_crc(ftl->config.seed, slice_block(slice, i));
	if (slice->found[i] == WHOLE && crc != slice->crcs[i]) {
		slice->found[i] = LOST;
		mtftl_warn_limit(ftl, "block %u is not what was written", item->lba);
	}
	return true;
}

/* False: the device does not answer at all. */
static bool finish_reading(struct slice *slice)
{
	struct mover *mover = slice->mover;
	u32 i;

	wait_for_reads(slice);
	/* Where a read failed, one by one: its neighbours may be fine. */
	for (i = 0; i < slice->nr; i++)
		if (slice->parts[slice->part[i]].status && !read_again(slice, i))
			return false;
	mover->header_found = LOST;
	for (i = 0; i < slice->nr; i++) {
		if (is_header(&slice->items[i]))
			take_header(slice, i);
		else if (mover->header_found == LATER && mover->movers->ftl->config.header_blocks)
			slice->found[i] = LATER;
		else if (slice->found[i] == WHOLE && !verify(slice, i))
			return false;
		if (slice->found[i] == LATER)
			WRITE_ONCE(slice->victim->gave_up, true);
	}
	return true;
}

/* Its only copy cannot be read: say so, durably, instead of handing out anything else. */
static void lose(struct mtftl *ftl, const struct mtftl_item *item)
{
	struct mtftl_range_rec rec = {
		.lba = item->lba,
		.nr_blocks = 1,
		.kind = MTFTL_RANGE_LOST,
	};

	if (!mtftl_flush_for_range(ftl))
		return;
	if (mtftl_map_lose(ftl, item->lba, item->page, &rec.seq)) {
		mtftl_count(ftl, lost_blocks, 1);
		mtftl_tell_news(ftl);
		mtftl_range_add(ftl, &rec);
	} else {
		mtftl_range_add(ftl, NULL);
	}
}

/* Writing */

static void unit_written(struct mtftl_write *unit, u32 page)
{
	u32 i;

	for (i = 0; i < unit->nr; i++)
		mtftl_map_move(unit->ftl, unit->entries[i].lba, unit->entries[i].from, page + i);
}

static void count_moved(struct slice *slice, u32 blocks)
{
	mtftl_assert(blocks <= slice->nr, "%u of %u items", blocks, slice->nr);
	atomic_add(blocks, &slice->victim->moved);
	mtftl_pace_moved(slice->mover->movers->pace, blocks);
}

static void unit_done(struct mtftl_write *unit, blk_status_t status)
{
	struct slice *slice = unit->private;

	mtftl_assert(unit == slice->unit && slice->unordered.seq <= unit->seq, "unit %llu, %llu",
		     unit->seq, slice->unordered.seq);
	mtftl_seq_end_unordered(&slice->unordered);
	count_moved(slice, unit->nr);
	mtftl_pace_update(slice->mover->movers->pace);
	complete(&slice->landed);
	slice_put(slice);
}

static const struct mtftl_write_owner unit_owner = {
	.written = unit_written,
	.done = unit_done,
};

/* It finds no zone to move into: users are not paced then, but empty their buffers. */
static void set_starved(struct mtftl_movers *movers, bool starved)
{
	if (starved == READ_ONCE(movers->starved))
		return;
	WRITE_ONCE(movers->starved, starved);
	mtftl_space_set_unpaced(movers->ftl, starved);
	if (starved)
		mtftl_space_appeared(movers->ftl);
}

/* Resets that failed are to be tried again, or there is no more to be done now. */
static bool is_over(void *data)
{
	struct mtftl_movers *movers = data;

	return mtftl_resets_failed(movers->resets) || !may_go_on(movers);
}

/* It has looked for space in vain. False: it is not worth another try. */
static bool wait_for_space(struct slice *slice, struct mtftl_wait *wait)
{
	struct mtftl_movers *movers = slice->mover->movers;
	struct mtftl *ftl = movers->ftl;
	struct mtftl_admit_state state;

	/* What it wants was promised to those before it. */
	if (!READ_ONCE(slice->victim->oldest))
		return false;
	set_starved(movers, true);
	mtftl_resets_retry(movers->resets, slice->mover->block);
	mtftl_zones_look(ftl, &state);
	state.in_flight |= !mtftl_lanes_landed(ftl) || mtftl_seq_has_unordered(ftl);
	return mtftl_wait_for_place(ftl, &state, wait, is_over, movers) && !has_ended(movers);
}

/* How many items it dealt with, 0: no space. Alive ones are sent. */
static u32 write_unit(struct slice *slice, u32 i, bool *sent)
{
	struct mtftl *ftl = slice->mover->movers->ftl;
	const struct mtftl_item *items = slice->items;
	struct mtftl_write *unit = slice->unit;
	u32 zone = slice->victim->zone->index, room, n;
	u32 life = mtftl_age_moved(ftl, zone);
	struct mtftl_want want = {
		.right = MTFTL_RIGHT_GC,
		.class = mtftl_age_class_moved(ftl, life),
		.least = ftl->config.header_blocks + 1,
	};
	struct mtftl_stream *stream;

	stream = mtftl_stream_find(ftl, &want, &room);
	if (!stream)
		return 0;
	mtftl_assert(room > ftl->config.header_blocks && slice->unordered.seq == U64_MAX,
		     "%u blocks", room);
	room = min(room - ftl->config.header_blocks, (u32)unit->max);
	/* The number first, then the look at the map: a write in between has a higher one. */
	mtftl_write_start(unit, MTFTL_UNIT_GC, mtftl_seq_begin_unordered(ftl, &slice->unordered));
	unit->born = mtftl_map_born(ftl, zone);
	unit->life = life;
	for (n = 0; i + n < slice->nr && unit->nr < room; n++) {
		if (is_header(&items[i + n]) || slice->found[i + n] != WHOLE ||
		    !mtftl_map_points_to(ftl, items[i + n].lba, items[i + n].page))
			continue;
		mtftl_write_add(unit, items[i + n].lba, items[i + n].page,
				slice_block(slice, i + n), &slice->crcs[i + n]);
	}
	if (unit->nr)
		mtftl_write_take_place(unit, stream);
	mutex_unlock(&stream->lock);
	mtftl_assert(n && unit->nr <= n, "%u of %u blocks", unit->nr, n);
	/* Those that are not in it need not be moved any more. */
	count_moved(slice, n - unit->nr);
	if (!unit->nr) {
		mtftl_seq_end_unordered(&slice->unordered);
		mtftl_space_wake(ftl);
		return n;
	}
	atomic_inc(&slice->refs);
	reinit_completion(&slice->landed);
	mtftl_count(ftl, gc_blocks, unit->nr);
	mtftl_count(ftl, units, 1);
	mtftl_write_compose(unit);
	mtftl_write_submit(unit);
	*sent = true;
	return n;
}

/* One unit from item @i on, if any of them is alive. */
static u32 send_unit(struct slice *slice, u32 i, bool *sent)
{
	struct mover *mover = slice->mover;
	u32 n;

	*sent = false;
	if (!send_begin(mover))
		return 0;
	n = write_unit(slice, i, sent);
	mtftl_send_end(mover->movers->ftl);
	return n;
}

/* All of it. False: it could not. */
static bool write_slice(struct slice *slice)
{
	struct mtftl_movers *movers = slice->mover->movers;
	struct mtftl_wait wait = { .right = MTFTL_RIGHT_GC };
	bool sent = false;
	u32 i, n;

	for (i = 0; i < slice->nr; i += n) {
		/* Its zone was at its end: the unit is needed again. */
		if (sent)
			mtftl_wait_for_io(&slice->landed);
		wait.gen = mtftl_space_gen(movers->ftl);
		n = send_unit(slice, i, &sent);
		if (n)
			set_starved(movers, false);
		else if (!wait_for_space(slice, &wait))
			return false;
	}
	for (i = 0; i < slice->nr; i++)
		if (slice->found[i] == LOST && !is_header(&slice->items[i]))
			lose(movers->ftl, &slice->items[i]);
	return true;
}

/* The movers */

static bool move_some(struct mover *mover)
{
	struct slice *slice;

	while (mover->nr_reading < READING && (slice = take_slice(mover))) {
		start_reading(slice);
		mover->reading[mover->nr_reading++] = slice;
	}
	if (!mover->nr_reading)
		return false;
	mtftl_assert(mover->nr_reading <= READING && mover->reading[0]->victim);
	slice = mover->reading[0];
	mover->nr_reading--;
	memmove(mover->reading, mover->reading + 1, mover->nr_reading * sizeof(slice));
	if (!finish_reading(slice) || !write_slice(slice))
		end_early(mover->movers, slice->victim);
	slice_put(slice);
	return true;
}

static bool has_work(struct mover *mover)
{
	return !list_empty(&mover->movers->queue) && free_slice(mover) &&
	       may_go_on(mover->movers);
}

static int mover_thread(void *data)
{
	unsigned int flags = memalloc_noio_save();
	struct mover *mover = data;

	while (!kthread_should_stop()) {
		if (move_some(mover)) {
			cond_resched();
			continue;
		}
		if (kthread_should_park())
			kthread_parkme();
		wait_event_idle(mover->wait, kthread_should_stop() ||
				kthread_should_park() || has_work(mover));
	}
	memalloc_noio_restore(flags);
	return 0;
}

void mtftl_movers_wake(struct mtftl_movers *movers)
{
	unsigned int i;

	for (i = 0; i < movers->nr; i++)
		wake_up(&movers->all[i].wait);
}

void mtftl_move(struct mtftl_movers *movers, struct mtftl_victim *victim)
{
	mtftl_assert(list_empty(&victim->list) && victim->zone->state == MTFTL_ZONE_VICTIM);
	victim->next = 0;
	victim->header = U32_MAX;
	WARN_ON_ONCE(atomic_read(&victim->left));
	atomic_set(&victim->left, 1);
	spin_lock(&movers->lock);
	list_add_tail(&victim->list, &movers->queue);
	if (!victim->nr_items)
		leave_queue(movers, victim);
	spin_unlock(&movers->lock);
	mtftl_movers_wake(movers);
}

void mtftl_move_end(struct mtftl_movers *movers, struct mtftl_victim *victim)
{
	end_early(movers, victim);
}

u32 mtftl_move_unit_blocks(const struct mtftl *ftl)
{
	static_assert(UNIT_BLOCKS <= MTFTL_UNIT_MAX_ENTRIES && UNIT_BLOCKS <= SLICE_ITEMS);
	return min(UNIT_BLOCKS, ftl->config.unit_max);
}

void mtftl_movers_start(struct mtftl_movers *movers)
{
	unsigned int i;

	WRITE_ONCE(movers->stopping, false);
	for (i = 0; i < movers->nr; i++)
		kthread_unpark(movers->all[i].task);
}

static bool all_landed(struct mtftl_movers *movers)
{
	unsigned int i, k;

	for (i = 0; i < movers->nr; i++)
		for (k = 0; k < SLICES; k++)
			if (READ_ONCE(movers->all[i].slices[k].victim))
				return false;
	return true;
}

void mtftl_movers_stop(struct mtftl_movers *movers)
{
	unsigned int i;

	WRITE_ONCE(movers->stopping, true);
	mtftl_space_wake(movers->ftl);
	for (i = 0; i < movers->nr; i++)
		kthread_park(movers->all[i].task);
	wait_event(movers->landed, all_landed(movers));
	mtftl_assert(!mtftl_seq_has_unordered(movers->ftl));
	set_starved(movers, false);
}

static int alloc_metas(struct slice *slice)
{
	u32 i;

	slice->oobs = kcalloc(CHUNKS, sizeof(*slice->oobs), GFP_KERNEL);
	slice->metas = kcalloc(SLICE_ITEMS, sizeof(*slice->metas), GFP_KERNEL);
	if (!slice->oobs || !slice->metas)
		return -ENOMEM;
	for (i = 0; i < CHUNKS; i++) {
		slice->oobs[i] = (void *)__get_free_page(GFP_KERNEL);
		if (!slice->oobs[i])
			return -ENOMEM;
	}
	return 0;
}

static int slice_alloc(struct mover *mover, struct slice *slice)
{
	u32 i;
	struct mtftl *ftl = mover->movers->ftl;

	slice->mover = mover;
	init_completion(&slice->landed);
	init_completion(&slice->inflight.done);
	slice->chunks = kcalloc(CHUNKS, sizeof(*slice->chunks), GFP_KERNEL);
	slice->unit = mtftl_write_alloc(ftl, mtftl_move_unit_blocks(ftl), NUMA_NO_NODE, &unit_owner,
					slice);
	if (!slice->chunks || !slice->unit || (!ftl->config.header_blocks && alloc_metas(slice)))
		return -ENOMEM;
	for (i = 0; i < CHUNKS; i++) {
		slice->chunks[i] = (void *)__get_free_pages(GFP_KERNEL, MTFTL_BUFFER_ORDER);
		if (!slice->chunks[i])
			return -ENOMEM;
	}
	mtftl_seq_add_unordered(ftl, &slice->unordered);
	return 0;
}

static void slice_free(struct mtftl *ftl, struct slice *slice)
{
	u32 i;

	if (slice->unordered.list.next)
		mtftl_seq_remove_unordered(ftl, &slice->unordered);
	for (i = 0; slice->chunks && i < CHUNKS; i++)
		free_pages((unsigned long)slice->chunks[i], MTFTL_BUFFER_ORDER);
	for (i = 0; slice->oobs && i < CHUNKS; i++)
		free_page((unsigned long)slice->oobs[i]);
	kfree(slice->oobs);
	kfree(slice->metas);
	kfree(slice->chunks);
	mtftl_write_free(slice->unit);
}

static int mover_alloc(struct mover *mover, unsigned int index)
{
	struct mtftl *ftl = mover->movers->ftl;
	int r = 0;
	u32 i;

	mover->block = (void *)__get_free_page(GFP_KERNEL);
	mover->header = (void *)__get_free_page(GFP_KERNEL);
	if (!mover->block || !mover->header)
		return -ENOMEM;
	for (i = 0; !r && i < SLICES; i++)
		r = slice_alloc(mover, &mover->slices[i]);
	if (r)
		return r;
	mover->task = mtftl_thread(mover_thread, mover, -1, "mtftl_gc/%s/%u", mtftl_disk_name(ftl),
				   index);
	return mover->task ? 0 : -ENOMEM;
}

struct mtftl_movers *mtftl_movers_alloc(struct mtftl *ftl, struct mtftl_pace *pace,
					struct mtftl_resets *resets)
{
	unsigned int nr = clamp(ftl->config.nr_lanes, MOVERS_MIN, MOVERS_MAX);
	struct mtftl_movers *movers;
	int r = 0;

	movers = kvzalloc(struct_size(movers, all, nr), GFP_KERNEL);
	if (!movers)
		return NULL;
	movers->ftl = ftl;
	movers->pace = pace;
	movers->resets = resets;
	init_waitqueue_head(&movers->landed);
	spin_lock_init(&movers->lock);
	INIT_LIST_HEAD(&movers->queue);
	mutex_init(&movers->ranges_lock);
	for (; !r && movers->nr < nr; movers->nr++) {
		movers->all[movers->nr].movers = movers;
		init_waitqueue_head(&movers->all[movers->nr].wait);
		r = mover_alloc(&movers->all[movers->nr], movers->nr);
	}
	r = r ?: bioset_init(&movers->bios, 4, 0, BIOSET_NEED_BVECS);
	if (!r)
		return movers;
	mtftl_movers_free(movers);
	return NULL;
}

void mtftl_movers_free(struct mtftl_movers *movers)
{
	unsigned int i, k;

	if (!movers)
		return;
	for (i = 0; i < movers->nr; i++) {
		struct mover *mover = &movers->all[i];

		if (mover->task)
			kthread_stop(mover->task);
		for (k = 0; k < SLICES; k++)
			slice_free(movers->ftl, &mover->slices[k]);
		free_page((unsigned long)mover->block);
		free_page((unsigned long)mover->header);
	}
	bioset_exit(&movers->bios);
	kvfree(movers);
}
