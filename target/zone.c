// SPDX-License-Identifier: GPL-2.0
/*
 * Zones: their states, the budget of open ones, who may take which, closing with a
 * footer, reset. A stream is an open zone and the right to place units in it.
 *
 * States, lists and the budget are under zones_lock (process context); a zone's units
 * in flight and its footer under zone->lock (completions).
 */
#include "ftl.h"
#include "trace.h"

#include <linux/slab.h>

#define CLOSE_BLOCKS	(1u << MTFTL_BUFFER_ORDER)	/* written at once by the closer */

void mtftl_zone_set_state(struct mtftl *ftl, struct mtftl_zone *zone,
			  enum mtftl_zone_state state)
{
	lockdep_assert_held(&ftl->zones_lock);
	trace_mtftl_zone_state(zone, zone->state, state);
	ftl->zone_count[zone->state]--;
	zone->state = state;
	ftl->zone_count[state]++;
	list_move_tail(&zone->list, &ftl->zone_list[state]);
}

u32 mtftl_zones_free_count(struct mtftl *ftl)
{
	return READ_ONCE(ftl->zone_count[MTFTL_ZONE_EMPTY]);
}

/* A write that failed may have been the controller's fault, or the wire's: once. */
bool mtftl_zone_is_worn_out(const struct mtftl_zone *zone)
{
	return zone->failed_lives >= MTFTL_ZONE_LIVES;
}

/* Nothing that is under way could make a zone writable again. */
bool mtftl_out_of_zones(struct mtftl *ftl)
{
	bool out;

	spin_lock(&ftl->zones_lock);
	out = !ftl->zone_count[MTFTL_ZONE_EMPTY] && !ftl->zone_count[MTFTL_ZONE_PARTIAL] &&
	      !ftl->zone_count[MTFTL_ZONE_OPEN] && !ftl->zone_count[MTFTL_ZONE_CLOSING] &&
	      !ftl->zone_count[MTFTL_ZONE_RESETTING] && !ftl->zone_count[MTFTL_ZONE_VICTIM];
	spin_unlock(&ftl->zones_lock);
	return out;
}

/* By itself, that is: units that are to be written again need a place, resets a flush. */
static bool something_moves(struct mtftl *ftl)
{
	struct mtftl_zone *zone;
	bool any;

	spin_lock(&ftl->zones_lock);
	any = ftl->zone_count[MTFTL_ZONE_CLOSING];
	list_for_each_entry(zone, &ftl->zone_list[MTFTL_ZONE_OPEN], list)
		any |= READ_ONCE(zone->in_flight);
	spin_unlock(&ftl->zones_lock);
	return any;
}

/*
 * For who must write and finds no place, at each of its looks: if nothing is written
 * and nothing freed for so long, all wait for each other, and none will appear.
 */
bool mtftl_hope_is_lost(struct mtftl *ftl, struct mtftl_hope *hope)
{
	u64 moved = atomic64_read(&ftl->seq) + atomic_read(&ftl->space_gen);

	if (moved != hope->moved || something_moves(ftl) || READ_ONCE(ftl->paused)) {
		hope->moved = moved;
		hope->since = jiffies;
	} else if (time_after_eq(jiffies, hope->since + MTFTL_LAST_HOPE)) {
		mtftl_set_read_only(ftl, "no place is left for what has to be written");
	}
	return READ_ONCE(ftl->read_only);
}

/* The least worn of the empty ones. */
static struct mtftl_zone *least_worn(struct mtftl *ftl)
{
	struct mtftl_zone *zone, *best = NULL;

	list_for_each_entry(zone, &ftl->zone_list[MTFTL_ZONE_EMPTY], list)
		if (!best || zone->erase_count < best->erase_count)
			best = zone;
	return best;
}

static bool lanes_empty(struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ftl->nr_lanes; i++)
		if (READ_ONCE(ftl->lanes[i].head) != READ_ONCE(ftl->lanes[i].tail))
			return false;
	return true;
}

/* Budget and reserve, in one place. */
static bool may_open_empty(struct mtftl *ftl, enum mtftl_right right)
{
	u32 empty = ftl->zone_count[MTFTL_ZONE_EMPTY];
	u32 kept = 0;

	lockdep_assert_held(&ftl->zones_lock);
	/* GC can always open its zone: else nothing would ever become free again. */
	if (right != MTFTL_RIGHT_GC && !ftl->gc_stream->zone && !ftl->budget.gc_shares)
		kept = 1;
	if (ftl->zones_in_use + kept >= ftl->budget.data_zones)
		return false;
	/* Users have their limit at the door of the buffers. The last zone is for flushes. */
	switch (right) {
	case MTFTL_RIGHT_USER:
		return empty > (ftl->no_victim ? ftl->reserve : 0);
	case MTFTL_RIGHT_URGENT:
		return empty > 0;
	case MTFTL_RIGHT_GC:
		break;
	}
	return empty > (lanes_empty(ftl) ? ftl->flush_zones : ftl->kept);
}

/* After each change of how many zones are empty. */
static void update_gate(struct mtftl *ftl)
{
	lockdep_assert_held(&ftl->zones_lock);
	WRITE_ONCE(ftl->gated, ftl->zone_count[MTFTL_ZONE_EMPTY] <= ftl->reserve &&
			       !ftl->no_victim);
}

/*
 * No full zone is worth collecting: what could be gained lies in the open ones, so users go
 * on in those until they are full.
 */
void mtftl_zones_no_victim(struct mtftl *ftl, bool none)
{
	if (none == READ_ONCE(ftl->no_victim))
		return;
	spin_lock(&ftl->zones_lock);
	ftl->no_victim = none;
	update_gate(ftl);
	spin_unlock(&ftl->zones_lock);
	mtftl_space_appeared(ftl);
}

/* For a stream without one. False: no zone for @right. */
static bool stream_open_zone(struct mtftl_stream *stream, enum mtftl_right right)
{
	struct mtftl *ftl = stream->ftl;
	struct mtftl_zone *zone;

	lockdep_assert_held(&stream->lock);
	spin_lock(&ftl->zones_lock);
	/* Zones that an earlier mount left behind count against the budget already. */
	zone = list_first_entry_or_null(&ftl->zone_list[MTFTL_ZONE_PARTIAL],
					struct mtftl_zone, list);
	if (!zone && may_open_empty(ftl, right)) {
		zone = least_worn(ftl);
		zone->footer = list_first_entry_or_null(&ftl->footer_bufs,
							struct mtftl_footer_buf, list);
		if (zone->footer) {
			list_del_init(&zone->footer->list);
			zone->footer->complete = true;
			mtftl_footer_init(&zone->footer->footer, zone->footer->stream,
					  zone->footer->footer.size);
		}
		ftl->zones_in_use++;
	}
	if (zone)
		mtftl_zone_set_state(ftl, zone, MTFTL_ZONE_OPEN);
	/* With its place in the budget: may_open_empty() looks at both. */
	stream->zone = zone;
	update_gate(ftl);
	spin_unlock(&ftl->zones_lock);
	if (!zone)
		return false;

	zone->append = ftl->opt.append;
	zone->closing = false;
	/* Without a footer data may go up to the end. */
	zone->limit = ftl->capacity;
	if (zone->footer)
		zone->limit -= mtftl_footer_reserve(ftl->capacity);
	if (mtftl_zones_free_count(ftl) < ftl->low_water)
		mtftl_gc_kick(ftl);
	/* Zones are opened seldom enough to look here how long recovery would take. */
	if (mtftl_log_length(ftl) > ftl->log_limit)
		queue_work(ftl->ckpt_wq, &ftl->ckpt_work);
	/* Others may share it, with lesser rights than who opened it: they may try again. */
	mtftl_space_appeared(ftl);
	return true;
}

static void stream_close_zone(struct mtftl_stream *stream)
{
	struct mtftl_zone *zone = stream->zone;
	struct mtftl *ftl = stream->ftl;
	bool idle;

	lockdep_assert_held(&stream->lock);
	spin_lock(&ftl->zones_lock);
	mtftl_zone_set_state(ftl, zone, MTFTL_ZONE_CLOSING);
	stream->zone = NULL;
	spin_unlock(&ftl->zones_lock);

	spin_lock_irq(&zone->lock);
	zone->closing = true;
	idle = !zone->in_flight;
	spin_unlock_irq(&zone->lock);
	if (idle)
		queue_work(ftl->wq, &zone->close_work);
}

/*
 * Blocks that a unit may take now, header included; 0: busy, or no zone for @right.
 * Where fewer than @least are left the zone is closed and another one opened.
 */
static u32 stream_room(struct mtftl_stream *stream, u32 least, enum mtftl_right right,
		       bool may_open)
{
	struct mtftl_zone *zone = stream->zone;
	bool busy, close;
	u32 room;

	lockdep_assert_held(&stream->lock);
	if (zone) {
		spin_lock_irq(&zone->lock);
		close = zone->broken || zone->wp + least > zone->limit;
		/* Nothing but the zone append command orders writes to a zone on 6.1. */
		busy = !zone->append && zone->in_flight;
		room = zone->limit - zone->wp;
		spin_unlock_irq(&zone->lock);
		if (!close)
			return busy ? 0 : room;
		stream_close_zone(stream);
	}
	if (!may_open || !stream_open_zone(stream, right))
		return 0;
	zone = stream->zone;
	if (zone->broken || zone->wp + least > zone->limit) {
		stream_close_zone(stream);
		return 0;
	}
	return zone->limit - zone->wp;
}

static struct mtftl_stream *try_stream(struct mtftl_stream *stream, u32 least,
				       enum mtftl_right right, bool may_open, u32 *room)
{
	mutex_lock(&stream->lock);
	*room = stream_room(stream, least, right, may_open);
	if (*room)
		return stream;
	mutex_unlock(&stream->lock);
	return NULL;
}

static struct mtftl_stream *try_streams(struct mtftl *ftl, unsigned int first, u32 least,
					enum mtftl_right right, bool may_open, u32 *room)
{
	unsigned int i, nr = ftl->budget.user_streams;
	struct mtftl_stream *stream = NULL;

	for (i = 0; i < nr && !stream; i++)
		stream = try_stream(&ftl->streams[(first + i) % nr], least, right, may_open,
				    room);
	return stream;
}

/* GC leaves room in users' zones to what is buffered, unless that fits into empty ones. */
static bool may_share(struct mtftl *ftl, enum mtftl_right right)
{
	return right != MTFTL_RIGHT_GC || mtftl_zones_free_count(ftl) >= ftl->kept ||
	       lanes_empty(ftl);
}

/*
 * A stream with room, locked, or NULL. Users try their own first, then the others'. While GC
 * works, what is open is filled before another one is opened: half-filled zones are
 * space that nobody can use. Where zones are short, or nothing can be gained, GC's too.
 */
struct mtftl_stream *mtftl_stream_find(struct mtftl *ftl, unsigned int first, u32 least,
				       enum mtftl_right right, u32 *room)
{
	bool scarce = READ_ONCE(ftl->gated) || READ_ONCE(ftl->no_victim);
	bool shares = may_share(ftl, right);
	bool mixed = shares && (right != MTFTL_RIGHT_GC || !ftl->opt.hot_cold);
	struct mtftl_stream *stream = NULL;

	if (!shares && ftl->budget.gc_shares)
		return NULL;
	if (mixed && (scarce || mtftl_gc_active(ftl)))
		stream = try_streams(ftl, first, least, right, false, room);
	if (!stream && mixed && scarce)
		stream = try_stream(ftl->gc_stream, least, right, false, room);
	if (!stream && mixed)
		stream = try_streams(ftl, first, least, right, true, room);
	if (!stream && (right != MTFTL_RIGHT_USER || READ_ONCE(ftl->gated)))
		stream = try_stream(ftl->gc_stream, least, right, true, room);
	/* Hot and cold apart is a wish: without a zone GC would wait for ever. */
	if (!stream && !mixed && shares && scarce)
		stream = try_streams(ftl, first, least, right, false, room);
	return stream;
}

void mtftl_stream_take(struct mtftl_stream *stream, struct mtftl_unit_io *unit)
{
	struct mtftl_zone *zone = stream->zone;

	lockdep_assert_held(&stream->lock);
	unit->zone = zone;
	unit->blocks = unit->type == MTFTL_UNIT_RANGES ? 1 : 1 + unit->nr;
	spin_lock_irq(&zone->lock);
	unit->offset = zone->wp;
	zone->wp += unit->blocks;
	zone->in_flight++;
	spin_unlock_irq(&zone->lock);
}

/* Completed, or failed and about to go elsewhere. Any context. */
void mtftl_zone_unit_done(struct mtftl_unit_io *unit, blk_status_t status)
{
	struct mtftl_zone *zone = unit->zone;
	bool ranges = unit->type == MTFTL_UNIT_RANGES;
	bool close, append = zone->append;
	struct mtftl *ftl = unit->ftl;
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	if (status) {
		/* All in flight may fail at once: that is one failure, until a new try fails. */
		if (!zone->broken)
			atomic_cmpxchg(&ftl->failed_zones, unit->failures, unit->failures + 1);
		zone->broken = true;
	} else {
		if (atomic_read(&ftl->failed_zones))
			atomic_set(&ftl->failed_zones, 0);
		if (unit->offset == 0)
			zone->first_seq = unit->seq;
		if (ranges)
			zone->ranges_seq = max(zone->ranges_seq, unit->seq);
		if (zone->footer && mtftl_footer_add(&zone->footer->footer, unit->seq,
						     unit->offset, unit->type,
						     ranges ? 0 : unit->nr, unit->lbas))
			zone->footer->complete = false;
	}
	zone->in_flight--;
	if (!zone->in_flight && !zone->broken)
		zone->quiet_wp = zone->wp;
	close = zone->closing && !zone->in_flight;
	spin_unlock_irqrestore(&zone->lock, flags);

	if (close)
		queue_work(ftl->wq, &zone->close_work);
	if (!append)
		mtftl_space_appeared(ftl);
}

int mtftl_zone_mgmt(struct mtftl_zone *zone, enum req_op op)
{
	sector_t sectors = (sector_t)MTFTL_BLOCK_SECTORS << zone->ftl->zone_shift;

	return mtftl_compat_zone_mgmt(zone->ftl->bdev, op, zone->index * sectors, sectors);
}

static int note_condition(struct blk_zone *bz, unsigned int index, void *condition)
{
	*(u8 *)condition = bz->cond;
	return 0;
}

/* The device says that nothing in it can be read any more. It is asked, which may take memory. */
bool mtftl_zone_is_offline(struct mtftl_zone *zone)
{
	u8 condition = BLK_ZONE_COND_NOT_WP;

	blkdev_report_zones(zone->ftl->bdev, mtftl_page_sector(mtftl_zone_page(zone->ftl, zone)),
			    1, note_condition, &condition);
	return condition == BLK_ZONE_COND_OFFLINE;
}

/* One FOOTER unit at the write pointer: @entries blocks of the stream, then padding. */
static int write_footer_unit(struct mtftl_zone *zone, void *buf, const void *stream,
			     u32 index, u32 entries, u32 blocks)
{
	struct mtftl *ftl = zone->ftl;
	/* First: a flush that runs meanwhile may cover the number drawn here. */
	u64 durable_seq = READ_ONCE(ftl->durable_seq);
	struct mtftl_unit_info info = {
		.type = MTFTL_UNIT_FOOTER,
		.nr_blocks = blocks,
		.lane = U16_MAX,
		.seq = atomic64_inc_return(&ftl->seq),
	};
	u32 i;
	int r;

	mtftl_unit_init(buf, &info);
	memset(buf + MTFTL_BLOCK_SIZE, 0, blocks * MTFTL_BLOCK_SIZE);
	memcpy(buf + MTFTL_BLOCK_SIZE, stream + index * MTFTL_BLOCK_SIZE,
	       entries * MTFTL_BLOCK_SIZE);
	for (i = 0; i < entries; i++)
		mtftl_unit_add_entry(buf, index + i,
				     mtftl_payload_crc(ftl->seed,
						       buf + (1 + i) * MTFTL_BLOCK_SIZE));
	mtftl_unit_seal(buf, ftl->seed, zone->index, zone->wp, zone->erase_count, durable_seq);
	r = mtftl_rw_sync(ftl, REQ_OP_WRITE, mtftl_zone_page(ftl, zone) + zone->wp, buf,
			  1 + blocks);
	if (!r)
		zone->wp += 1 + blocks;
	mtftl_count(ftl, meta_blocks, 1 + blocks);
	return r;
}

/*
 * Fill the zone up to its last block, so that it gives its place in the budget
 * back: finishing it would make the device pad, which may take a second.
 */
static int write_footer(struct mtftl_zone *zone, void *buf)
{
	struct mtftl *ftl = zone->ftl;
	struct mtftl_footer_buf *footer = zone->footer;
	bool tail = footer && footer->complete && footer->footer.nr_records;
	u32 at = zone->wp, left = 0, index = 0, n, r;

	if (tail)
		left = DIV_ROUND_UP(footer->footer.used, MTFTL_BLOCK_SIZE);
	while (zone->wp + tail < ftl->capacity) {
		u32 room = min(ftl->capacity - tail - zone->wp, CLOSE_BLOCKS) - 1;

		n = min(left, room);
		r = write_footer_unit(zone, buf, footer ? footer->stream : buf, index, n, room);
		if (r)
			return r;
		left -= n;
		index += n;
	}
	if (tail) {
		mtftl_tail_compose(buf, ftl->seed, zone->index, zone->erase_count, at,
				   &footer->footer);
		r = mtftl_rw_sync(ftl, REQ_OP_WRITE, mtftl_zone_page(ftl, zone) + zone->wp, buf,
				  1);
		if (r)
			return r;
		zone->wp++;
	}
	return ftl->ragged ? mtftl_zone_mgmt(zone, REQ_OP_ZONE_FINISH) : 0;
}

/*
 * It cannot be filled, but must not stay active: the device counts it. Where that is
 * refused the zone is read-only or offline: not active either, and of no more use.
 */
void mtftl_zone_finish_broken(struct mtftl_zone *zone)
{
	zone->broken = true;
	zone->failed_lives++;
	if (mtftl_zone_mgmt(zone, REQ_OP_ZONE_FINISH))
		zone->failed_lives = MTFTL_ZONE_LIVES;
}

static void zone_close_work(struct work_struct *work)
{
	struct mtftl_zone *zone = container_of(work, struct mtftl_zone, close_work);
	struct mtftl *ftl = zone->ftl;

	/* mtftl_zones_go_on() starts this work again. */
	if (READ_ONCE(ftl->paused))
		return;
	if (!zone->broken && write_footer(zone, ftl->close_buf)) {
		mtftl_count(ftl, write_errors, 1);
		zone->broken = true;
	}
	if (zone->broken)
		mtftl_zone_finish_broken(zone);
	else
		zone->failed_lives = 0;
	spin_lock(&ftl->zones_lock);
	if (zone->footer)
		list_add(&zone->footer->list, &ftl->footer_bufs);
	zone->footer = NULL;
	zone->quiet_wp = zone->wp;
	zone->full_seq = atomic64_read(&ftl->seq);
	ftl->zones_in_use--;
	mtftl_zone_set_state(ftl, zone, MTFTL_ZONE_FULL);
	if (mtftl_zone_is_worn_out(zone))
		ftl->worn_out_zones++;
	spin_unlock(&ftl->zones_lock);
	if (mtftl_zone_is_worn_out(zone))
		mtftl_gc_kick(ftl);
	mtftl_space_appeared(ftl);
}

/* After a pause: those that were to be closed meanwhile. */
void mtftl_zones_go_on(struct mtftl *ftl)
{
	struct mtftl_zone *zone;
	bool idle;

	spin_lock(&ftl->zones_lock);
	list_for_each_entry(zone, &ftl->zone_list[MTFTL_ZONE_CLOSING], list) {
		spin_lock_irq(&zone->lock);
		idle = zone->closing && !zone->in_flight;
		spin_unlock_irq(&zone->lock);
		if (idle)
			queue_work(ftl->wq, &zone->close_work);
	}
	spin_unlock(&ftl->zones_lock);
}

/* It was reset: see gc.c. One that cannot be, or must not be written any more, retires. */
void mtftl_zone_reset_done(struct mtftl *ftl, struct mtftl_zone *zone, bool ok)
{
	if (ok)
		zone->erase_count++;
	spin_lock(&ftl->zones_lock);
	zone->wp = 0;
	zone->quiet_wp = 0;
	zone->first_seq = 0;
	zone->ranges_seq = 0;
	zone->broken = false;
	mtftl_zone_set_state(ftl, zone, ok ? MTFTL_ZONE_EMPTY : MTFTL_ZONE_BAD);
	update_gate(ftl);
	spin_unlock(&ftl->zones_lock);
	if (!ok)
		mtftl_warn(ftl, "zone %u retired", zone->index);
	mtftl_space_appeared(ftl);
}

/* A zone that was set aside has failed: an empty one for it. U32_MAX: there is none. */
u32 mtftl_zone_replace(struct mtftl *ftl, u32 index)
{
	struct mtftl_zone *bad = &ftl->zones[index], *zone;

	/* It retires at its first failure: zones set aside are found by where they lie. */
	mtftl_zone_finish_broken(bad);
	spin_lock(&ftl->zones_lock);
	zone = least_worn(ftl);
	if (zone) {
		mtftl_zone_set_state(ftl, bad, MTFTL_ZONE_BAD);
		mtftl_zone_set_state(ftl, zone, MTFTL_ZONE_CKPT);
		update_gate(ftl);
	}
	spin_unlock(&ftl->zones_lock);
	if (!zone)
		return U32_MAX;
	mtftl_warn(ftl, "zone %u retired", index);
	return zone->index;
}

static int footer_bufs_alloc(struct mtftl *ftl)
{
	/* Where units are so small that it does not fit, a zone gets no footer. */
	u32 size = round_up(ftl->capacity * 12, MTFTL_BLOCK_SIZE);
	struct mtftl_footer_buf *buf;
	u32 i;

	for (i = 0; i < ftl->budget.data_zones; i++) {
		buf = kzalloc(sizeof(*buf), GFP_KERNEL);
		if (!buf)
			return -ENOMEM;
		list_add(&buf->list, &ftl->footer_bufs);
		buf->footer.size = size;
		buf->stream = kvzalloc(size, GFP_KERNEL);
		if (!buf->stream)
			return -ENOMEM;
	}
	return 0;
}

int mtftl_zones_alloc(struct mtftl *ftl)
{
	u32 i;

	spin_lock_init(&ftl->zones_lock);
	for (i = 0; i < MTFTL_NR_ZONE_STATES; i++)
		INIT_LIST_HEAD(&ftl->zone_list[i]);
	ftl->wq = alloc_ordered_workqueue("mtftl-%s", WQ_MEM_RECLAIM, ftl->dev->name);
	ftl->close_buf = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, MTFTL_BUFFER_ORDER);
	ftl->zones = kvcalloc(ftl->nr_zones, sizeof(*ftl->zones), GFP_KERNEL);
	ftl->streams = kcalloc(ftl->budget.user_streams + 1, sizeof(*ftl->streams), GFP_KERNEL);
	if (!ftl->wq || !ftl->close_buf || !ftl->zones || !ftl->streams)
		return -ENOMEM;

	for (i = 0; i < ftl->nr_zones; i++) {
		struct mtftl_zone *zone = &ftl->zones[i];

		spin_lock_init(&zone->lock);
		zone->ftl = ftl;
		zone->index = i;
		zone->limit = ftl->capacity;
		INIT_WORK(&zone->close_work, zone_close_work);
		list_add_tail(&zone->list, &ftl->zone_list[MTFTL_ZONE_EMPTY]);
	}
	/* A mount before this one may have failed. */
	memset(ftl->zone_count, 0, sizeof(ftl->zone_count));
	ftl->zone_count[MTFTL_ZONE_EMPTY] = ftl->nr_zones;
	ftl->zones_in_use = 0;
	ftl->worn_out_zones = 0;
	atomic_set(&ftl->failed_zones, 0);
	ftl->gated = false;
	ftl->no_victim = false;
	for (i = 0; i <= ftl->budget.user_streams; i++) {
		mutex_init(&ftl->streams[i].lock);
		ftl->streams[i].ftl = ftl;
	}
	ftl->gc_stream = &ftl->streams[ftl->budget.gc_shares ? 0 : ftl->budget.user_streams];
	return footer_bufs_alloc(ftl);
}

void mtftl_zones_free(struct mtftl *ftl)
{
	struct mtftl_footer_buf *buf, *next;
	u32 i;

	if (ftl->wq)
		destroy_workqueue(ftl->wq);
	for (i = 0; ftl->zones && i < ftl->nr_zones; i++)
		if (ftl->zones[i].footer)
			list_add(&ftl->zones[i].footer->list, &ftl->footer_bufs);
	list_for_each_entry_safe(buf, next, &ftl->footer_bufs, list) {
		kvfree(buf->stream);
		kfree(buf);
	}
	INIT_LIST_HEAD(&ftl->footer_bufs);
	free_pages((unsigned long)ftl->close_buf, MTFTL_BUFFER_ORDER);
	kvfree(ftl->zones);
	kfree(ftl->streams);
	ftl->wq = NULL;
	ftl->close_buf = NULL;
	ftl->zones = NULL;
	ftl->streams = NULL;
}
