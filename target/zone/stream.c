// SPDX-License-Identifier: GPL-2.0
/*
 * Streams: see stream.h. Closing zones is work of one ordered queue, one at a time.
 */
#include "zone/stream.h"

#include <linux/slab.h>

#include "device/pause.h"
#include "device/seq.h"
#include "device/space.h"
#include "map/age.h"
#include "map/map.h"
#include "map/ring.h"
#include "zone/follow.h"
#include "zone/footer.h"
#include "zone/life.h"

struct mtftl_footer_buf {
	struct list_head list;		/* streams->lock */
	struct mtftl_footer footer;
	bool complete;			/* lists every unit */
	void *stream;
} ____cacheline_aligned_in_smp;		/* of zones that others write to */

struct mtftl_streams {
	struct mtftl_stream *gc;	/* budget.gc_streams */
	spinlock_t lock;		/* footer_bufs */
	struct list_head footer_bufs;	/* free ones */
	void *close_buf;		/* for closing a zone */
	atomic_t failed_zones;		/* since the last write that succeeded */
	struct mtftl_event opened;
	struct mtftl_stream all[];	/* budget.user_streams, then GC's */
};

static bool gc_has_zone(const struct mtftl *ftl)
{
	u32 i;

	for (i = 0; i < ftl->config.budget.gc_streams; i++)
		if (ftl->streams->gc[i].zone)
			return true;
	return false;
}

/* Without the stream's lock it holds for a moment only. */
static u32 left_in(const struct mtftl_stream *stream)
{
	const struct mtftl_zone *zone = READ_ONCE(stream->zone);
	u32 wp = zone ? READ_ONCE(zone->wp) : 0;

	mtftl_assert(!zone || (wp <= zone->ftl->config.capacity &&
			       READ_ONCE(zone->limit) <= zone->ftl->config.capacity),
		     "zone %u: wp %u", zone->index, wp);
	return zone && !READ_ONCE(zone->broken) && wp < zone->limit ? zone->limit - wp : 0;
}

static void look_at_room(struct mtftl *ftl)
{
	u32 i, room = 0;

	for (i = 0; i < ftl->config.budget.user_streams; i++)
		room += mtftl_admit_room(&ftl->config.limits, left_in(&ftl->streams->all[i]));
	mtftl_space_set_room(ftl, room, mtftl_streams_gc_room(ftl), gc_has_zone(ftl));
}

/* With the lock of the zones. NULL: the stream has none any more. */
static void hold(void *data, struct mtftl_zone *zone)
{
	struct mtftl_stream *stream = data;
	struct mtftl *ftl = stream->ftl;

	if (zone && stream < ftl->streams->all + ftl->config.budget.user_streams)
		mtftl_map_tick(ftl);
	/* It opens one, or gives its own away. */
	mtftl_assert(!zone != !stream->zone);
	stream->zone = zone;
	look_at_room(ftl);
}

static struct mtftl_footer_buf *take_footer(struct mtftl_streams *streams)
{
	struct mtftl_footer_buf *buf;

	spin_lock(&streams->lock);
	buf = list_first_entry_or_null(&streams->footer_bufs, struct mtftl_footer_buf, list);
	if (buf)
		list_del_init(&buf->list);
	spin_unlock(&streams->lock);
	if (!buf)
		return NULL;
	buf->complete = true;
	mtftl_footer_init(&buf->footer, buf->stream, buf->footer.size);
	return buf;
}

static void give_footer_back(struct mtftl_streams *streams, struct mtftl_zone *zone)
{
	if (!zone->footer)
		return;
	mtftl_assert(!READ_ONCE(zone->in_flight), "zone %u", zone->index);
	spin_lock(&streams->lock);
	list_add(&zone->footer->list, &streams->footer_bufs);
	spin_unlock(&streams->lock);
	zone->footer = NULL;
}

/* For a stream without one. False: no zone for @right. */
static bool stream_open_zone(struct mtftl_stream *stream, enum mtftl_right right)
{
	struct mtftl *ftl = stream->ftl;
	struct mtftl_zone *zone;

	lockdep_assert_held(&stream->lock);
	mtftl_assert(!stream->zone);
	zone = mtftl_zone_open(ftl, right, hold, stream);
	if (!zone)
		return false;
	/* There is a footer for each zone that may be open. It must list all units of the zone. */
	if (!zone->wp)
		zone->footer = take_footer(ftl->streams);
	mtftl_assert(zone->wp || zone->footer, "zone %u", zone->index);
	zone->append = ftl->config.append;
	zone->born_sum = (u64)mtftl_map_born(ftl, zone->index) * zone->wp;
	zone->life_sum = (u64)mtftl_map_life(ftl, zone->index) * zone->wp;
	zone->closing = false;
	/* Without a footer data may go up to the end. */
	zone->limit = ftl->config.capacity;
	if (zone->footer)
		zone->limit -= mtftl_footer_blocks(&ftl->config);
	mtftl_assert(zone->wp < zone->limit && zone->quiet_wp == zone->wp,
		     "zone %u: wp %u quiet %u limit %u", zone->index, zone->wp, zone->quiet_wp,
		     zone->limit);
	mtftl_event_tell(&ftl->streams->opened, ftl);
	/* Writers with lesser rights than this one may share it: they try again. */
	mtftl_space_appeared(ftl);
	return true;
}

static void stream_close_zone(struct mtftl_stream *stream)
{
	struct mtftl_zone *zone = stream->zone;
	bool idle;

	lockdep_assert_held(&stream->lock);
	mtftl_zone_shut(zone, hold, stream);
	spin_lock_irq(&zone->lock);
	zone->closing = true;
	idle = !zone->in_flight;
	spin_unlock_irq(&zone->lock);
	if (idle)
		mtftl_zone_queue_close(zone);
}

/* Nothing but the zone append command orders writes to a zone on 6.1. */
static bool is_busy(struct mtftl_zone *zone)
{
	bool busy;

	if (zone->append)
		return false;
	spin_lock_irq(&zone->lock);
	busy = zone->in_flight;
	spin_unlock_irq(&zone->lock);
	return busy;
}

/*
 * Blocks that a unit may take now, header included. 0: the zone is busy, or there is none that this
 * right may open. A zone with less room than is wanted is closed, and another one opened.
 */
static u32 stream_room(struct mtftl_stream *stream, const struct mtftl_want *want, bool opens)
{
	struct mtftl_zone *zone = stream->zone;
	bool busy, close;

	lockdep_assert_held(&stream->lock);
	mtftl_assert(want->least, "right %u", want->right);
	if (zone) {
		busy = is_busy(zone);
		close = READ_ONCE(zone->broken) || zone->wp + want->least > zone->limit;
		if (!close)
			return busy ? 0 : zone->limit - zone->wp;
		stream_close_zone(stream);
	}
	if (!opens || !stream_open_zone(stream, want->right))
		return 0;
	zone = stream->zone;
	mtftl_assert(zone, "right %u", want->right);
	if (zone->broken || zone->wp + want->least > zone->limit) {
		stream_close_zone(stream);
		return 0;
	}
	return zone->limit - zone->wp;
}

static struct mtftl_stream *try_stream(struct mtftl_stream *stream, const struct mtftl_want *want,
				       bool opens, u32 *room)
{
	mutex_lock(&stream->lock);
	*room = stream_room(stream, want, opens);
	/* What it gets is worth the trouble, and ends in front of the footer. */
	mtftl_assert(!*room ||
		     (*room >= want->least && stream->zone->wp + *room == stream->zone->limit),
		     "%u blocks", *room);
	if (*room)
		return stream;
	mutex_unlock(&stream->lock);
	return NULL;
}

static u32 class_streams(const struct mtftl *ftl, u32 class)
{
	const struct mtftl_budget *budget = &ftl->config.budget;

	mtftl_assert(class < budget->user_classes, "class %u", class);
	return mtftl_budget_first(budget, class + 1) - mtftl_budget_first(budget, class);
}

/* One of the users' streams of a class: after the last one comes the first one again. */
static struct mtftl_stream *class_stream(struct mtftl *ftl, u32 class, unsigned int i)
{
	const struct mtftl_budget *budget = &ftl->config.budget;
	u32 from = mtftl_budget_first(budget, class), nr = class_streams(ftl, class);

	mtftl_assert(nr && from + nr <= budget->user_streams, "class %u: %u streams from %u on",
		     class, nr, from);
	return &ftl->streams->all[from + i % nr];
}

/* Streams of a class, the wanted one first. A copy for each of the callers would not pay. */
static noinline struct mtftl_stream *try_class(struct mtftl_stream *streams, u32 nr, u32 first,
					       const struct mtftl_want *want, bool opens, u32 *room)
{
	struct mtftl_stream *stream = NULL;
	u32 i;

	mtftl_assert(nr, "right %u", want->right);
	for (i = 0; i < nr && !stream; i++)
		stream = try_stream(&streams[(first + i) % nr], want, opens, room);
	return stream;
}

/* What GC moves has lived for long: among users it is with the coldest. */
static u32 users_class(const struct mtftl *ftl, const struct mtftl_want *want)
{
	mtftl_assert(want->right == MTFTL_RIGHT_GC || want->class < ftl->config.budget.user_classes,
		     "class %u", want->class);
	return want->right == MTFTL_RIGHT_GC ? ftl->config.budget.user_classes - 1 : want->class;
}

/* Users' streams of so many classes, the own class first. */
static struct mtftl_stream *try_users(struct mtftl *ftl, u32 classes, const struct mtftl_want *want,
				      bool opens, u32 *room)
{
	u32 i, nr = ftl->config.budget.user_classes, own = users_class(ftl, want), class;
	struct mtftl_stream *stream = NULL;

	mtftl_assert(own < nr && classes <= nr, "class %u, %u of %u", own, classes, nr);
	for (i = 0; i < classes && !stream; i++) {
		class = (own + i) % nr;
		stream = try_class(class_stream(ftl, class, 0), class_streams(ftl, class),
				   want->first, want, opens, room);
	}
	return stream;
}

static struct mtftl_stream *try_gc(struct mtftl *ftl, const struct mtftl_want *want, bool opens,
				   u32 *room)
{
	u32 nr = ftl->config.budget.gc_streams;
	u32 class = want->right == MTFTL_RIGHT_GC ? want->class : 0;

	mtftl_assert(class < nr, "class %u of %u", class, nr);
	return try_class(ftl->streams->gc, nr, class, want, opens, room);
}

static struct mtftl_stream *try_source(struct mtftl *ftl, enum mtftl_source source,
				       const struct mtftl_want *want, u32 *room)
{
	bool opens = source == MTFTL_FROM_USERS_NEW || source == MTFTL_FROM_GC_NEW;
	u32 classes = source == MTFTL_FROM_CLASS ? 1 : ftl->config.budget.user_classes;

	if (source == MTFTL_FROM_GC || source == MTFTL_FROM_GC_NEW)
		return try_gc(ftl, want, opens, room);
	return try_users(ftl, classes, want, opens, room);
}

struct mtftl_stream *mtftl_stream_find(struct mtftl *ftl, const struct mtftl_want *want, u32 *room)
{
	struct mtftl_stream *stream = NULL;
	struct mtftl_sources sources;
	u32 i;

	mtftl_assert(want->right < MTFTL_RIGHT_META, "right %u", want->right);
	/* Whatever the state is, the list begins with this stream. Most units find room there. */
	if (want->right != MTFTL_RIGHT_GC)
		stream = try_stream(class_stream(ftl, want->class, want->first), want, false, room);
	if (stream)
		return stream;
	sources = mtftl_space_sources(ftl, want->right,
				      mtftl_zones_buffers_are_empty(ftl, want->right));
	for (i = 0; i < sources.nr && !stream; i++)
		stream = try_source(ftl, sources.from[i], want, room);
	mtftl_assert(!stream || (mutex_is_locked(&stream->lock) && *room >= want->least),
		     "right %u: %u of %u blocks", want->right, *room, want->least);
	return stream;
}

u32 mtftl_streams_next(const struct mtftl *ftl, u32 class, unsigned int first, u32 *next, u32 max)
{
	u32 from = mtftl_budget_first(&ftl->config.budget, class), i;
	u32 nr = mtftl_budget_first(&ftl->config.budget, class + 1) - from;

	mtftl_assert(class < ftl->config.budget.user_classes, "class %u", class);
	for (i = 0; i < min(nr, max); i++) {
		const struct mtftl_stream *stream = &ftl->streams->all[from + (first + i) % nr];
		const struct mtftl_zone *zone = READ_ONCE(stream->zone);

		next[i] = zone ? mtftl_zone_start(zone) + READ_ONCE(zone->wp) :
				 MTFTL_FOLLOW_NOWHERE;
	}
	return i;
}

void mtftl_stream_take(struct mtftl_stream *stream, struct mtftl_extent *place, u32 blocks,
		       u32 born, u32 life)
{
	struct mtftl_zone *zone = stream->zone;
	struct mtftl *ftl = stream->ftl;

	lockdep_assert_held(&stream->lock);
	mtftl_assert(zone->state == MTFTL_ZONE_OPEN, "zone %u: state %u", zone->index, zone->state);
	place->zone = zone;
	place->blocks = blocks;
	spin_lock_irq(&zone->lock);
	mtftl_assert(blocks && zone->wp + blocks <= zone->limit && !zone->closing,
		     "zone %u: wp %u, %u blocks, limit %u", zone->index, zone->wp, blocks,
		     zone->limit);
	/* Only appends may overtake each other. */
	mtftl_assert(zone->append || !zone->in_flight, "zone %u: %u in flight", zone->index,
		     zone->in_flight);
	place->offset = zone->wp;
	zone->wp += blocks;
	zone->born_sum += (u64)born * blocks;
	zone->life_sum += (u64)life * blocks;
	mtftl_map_set_age(zone->ftl, zone->index, div_u64(zone->born_sum, zone->wp),
			  div_u64(zone->life_sum, zone->wp));
	zone->in_flight++;
	spin_unlock_irq(&zone->lock);
	if (mtftl_admit_is_room_needed(&ftl->config.limits,
				       mtftl_zones_count(ftl, MTFTL_ZONE_EMPTY)))
		mtftl_zones_update_room(ftl, look_at_room);
}

/* One unit less in flight; its zone's lock is held. True: the last one of a zone to be closed. */
static bool unit_left(struct mtftl_zone *zone)
{
	lockdep_assert_held(&zone->lock);
	mtftl_assert(zone->in_flight && zone->quiet_wp <= zone->wp,
		     "zone %u: %u in flight, wp %u quiet %u", zone->index, zone->in_flight,
		     zone->wp, zone->quiet_wp);
	zone->in_flight--;
	if (!zone->in_flight && !zone->broken)
		zone->quiet_wp = zone->wp;
	mtftl_assert(zone->in_flight ? zone->quiet_wp < zone->wp :
		     zone->broken || zone->quiet_wp == zone->wp,
		     "zone %u: %u in flight, wp %u quiet %u", zone->index, zone->in_flight,
		     zone->wp, zone->quiet_wp);
	return zone->closing && !zone->in_flight;
}

static void after_unit(struct mtftl_zone *zone, bool close, bool append)
{
	if (close)
		mtftl_zone_queue_close(zone);
	if (!append)
		mtftl_space_appeared(zone->ftl);
}

void mtftl_stream_landed(struct mtftl_extent *place, enum mtftl_unit_type type, u64 seq, u32 nr,
			 const u64 *lbas)
{
	struct mtftl_zone *zone = place->zone;
	struct mtftl_streams *streams = zone->ftl->streams;
	bool close, append = zone->append;
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	/* An append that a driver sent twice may lie further behind. */
	mtftl_assert(append || (place->offset >= zone->quiet_wp &&
				place->offset + place->blocks <= zone->wp),
		     "zone %u: %u blocks at %u, wp %u quiet %u", zone->index, place->blocks,
		     place->offset, zone->wp, zone->quiet_wp);
	mtftl_assert(seq && seq <= mtftl_seq_last(zone->ftl), "number %llu", seq);
	if (atomic_read(&streams->failed_zones))
		atomic_set(&streams->failed_zones, 0);
	if (place->offset == 0)
		zone->first_seq = seq;
	if (type == MTFTL_UNIT_RANGES)
		zone->ranges_seq = max(zone->ranges_seq, seq);
	mtftl_assert((place->offset || zone->first_seq == seq) &&
		     (type != MTFTL_UNIT_RANGES || zone->ranges_seq >= seq),
		     "zone %u: number %llu at %u", zone->index, seq, place->offset);
	if (zone->footer && mtftl_footer_add(&zone->footer->footer, seq, place->offset, type, nr,
					     lbas))
		zone->footer->complete = false;
	close = unit_left(zone);
	spin_unlock_irqrestore(&zone->lock, flags);
	after_unit(zone, close, append);
}

void mtftl_stream_failed(struct mtftl_extent *place)
{
	struct mtftl_zone *zone = place->zone;
	bool close, append = zone->append;
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	mtftl_assert(place->blocks && place->offset + place->blocks <= zone->wp,
		     "zone %u: %u blocks at %u, wp %u", zone->index, place->blocks, place->offset,
		     zone->wp);
	/* All in flight may fail at once: that is one failure, until a new try fails. */
	if (!zone->broken)
		atomic_cmpxchg(&zone->ftl->streams->failed_zones, place->failures,
			       place->failures + 1);
	zone->broken = true;
	close = unit_left(zone);
	spin_unlock_irqrestore(&zone->lock, flags);
	after_unit(zone, close, append);
}

void mtftl_streams_forgive(struct mtftl *ftl)
{
	atomic_set(&ftl->streams->failed_zones, 0);
}

int mtftl_streams_failures(const struct mtftl *ftl)
{
	return atomic_read(&ftl->streams->failed_zones);
}

static void zone_close_work(struct work_struct *work)
{
	struct mtftl_zone *zone = container_of(work, struct mtftl_zone, close_work);
	const struct mtftl_footer_buf *buf = zone->footer;
	const struct mtftl_footer *footer = buf && buf->complete ? &buf->footer : NULL;
	struct mtftl *ftl = zone->ftl;

	/* mtftl_streams_close_idle() starts it again, maybe while it still runs: once is enough. */
	if (READ_ONCE(zone->state) != MTFTL_ZONE_CLOSING || !mtftl_send_begin(ftl))
		return;
	mtftl_assert(zone->closing && !READ_ONCE(zone->in_flight), "zone %u: %u in flight",
		     zone->index, zone->in_flight);
	if (!zone->broken && mtftl_footer_write(zone, footer, ftl->streams->close_buf)) {
		mtftl_count(ftl, write_errors, 1);
		zone->broken = true;
	}
	if (zone->broken)
		mtftl_zone_finish_broken(zone);
	else
		zone->failed_lives = 0;
	mtftl_send_end(ftl);
	/* It does not stay active: it is full, or was finished. */
	mtftl_assert(zone->broken || zone->wp == ftl->config.capacity, "zone %u: wp %u",
		     zone->index, zone->wp);
	/* Before the zone leaves the budget: what is opened next finds it. */
	give_footer_back(ftl->streams, zone);
	zone->quiet_wp = zone->wp;
	zone->full_seq = mtftl_seq_last(ftl);
	mtftl_zone_move(zone, MTFTL_ZONE_FULL);
	if (mtftl_zone_is_worn_out(zone))
		mtftl_space_kick_gc(ftl);
	mtftl_space_appeared(ftl);
}

static bool close_if_idle(struct mtftl_zone *zone, void *data)
{
	bool idle;

	mtftl_assert(zone->state == MTFTL_ZONE_CLOSING, "zone %u: state %u", zone->index,
		     zone->state);
	spin_lock_irq(&zone->lock);
	idle = zone->closing && !zone->in_flight;
	spin_unlock_irq(&zone->lock);
	if (idle)
		mtftl_zone_queue_close(zone);
	return false;
}

/* After a pause: those that were to be closed meanwhile. */
void mtftl_streams_close_idle(struct mtftl *ftl)
{
	mtftl_zones_each(ftl, MTFTL_ZONE_CLOSING, close_if_idle, NULL);
}

static u32 streams_nr(const struct mtftl *ftl)
{
	const struct mtftl_budget *budget = &ftl->config.budget;

	return budget->user_streams + (budget->gc_shares ? 0 : budget->gc_streams);
}

u64 mtftl_streams_room(const struct mtftl *ftl)
{
	u64 room = 0;
	u32 i;

	for (i = 0; i < streams_nr(ftl); i++)
		room += left_in(&ftl->streams->all[i]);
	mtftl_assert(room <= (u64)streams_nr(ftl) * ftl->config.capacity, "%llu blocks", room);
	return room;
}

u32 mtftl_streams_gc_room(const struct mtftl *ftl)
{
	u32 room = 0, i;

	/* Of each the last block may be of no use. */
	for (i = 0; i < ftl->config.budget.gc_streams; i++)
		room += max(left_in(&ftl->streams->gc[i]), 1u) - 1;
	mtftl_assert(room < i * ftl->config.capacity, "%u blocks", room);
	return room;
}

void mtftl_streams_on_open(struct mtftl *ftl, void (*heard)(struct mtftl *ftl))
{
	mtftl_event_on(&ftl->streams->opened, heard);
}

static int footer_bufs_alloc(struct mtftl *ftl)
{
	/* Room for the longest stream: as much is kept free for it at the end of each zone. */
	u32 blocks = mtftl_footer_list_blocks(&ftl->config);
	struct mtftl_footer_buf *buf;
	u32 i;

	mtftl_assert(mtftl_footer_blocks(&ftl->config) < ftl->config.capacity);
	for (i = 0; i < ftl->config.budget.data_zones; i++) {
		buf = kzalloc_obj(*buf, GFP_KERNEL);
		if (!buf)
			return -ENOMEM;
		list_add(&buf->list, &ftl->streams->footer_bufs);
		buf->footer.size = blocks * MTFTL_BLOCK_SIZE;
		buf->stream = kvcalloc(blocks, MTFTL_BLOCK_SIZE, GFP_KERNEL);
		if (!buf->stream)
			return -ENOMEM;
	}
	return 0;
}

int mtftl_streams_alloc(struct mtftl *ftl)
{
	const struct mtftl_budget *budget = &ftl->config.budget;
	struct mtftl_streams *streams;
	u32 i;

	mtftl_assert(budget->user_streams && budget->gc_streams &&
		     streams_nr(ftl) <= budget->data_zones, "%u and %u streams for %u zones",
		     budget->user_streams, budget->gc_streams, budget->data_zones);
	streams = kzalloc(struct_size(streams, all, streams_nr(ftl)), GFP_KERNEL);
	if (!streams)
		return -ENOMEM;
	ftl->streams = streams;
	spin_lock_init(&streams->lock);
	INIT_LIST_HEAD(&streams->footer_bufs);
	for (i = 0; i < streams_nr(ftl); i++) {
		mutex_init(&streams->all[i].lock);
		streams->all[i].ftl = ftl;
	}
	streams->gc = &streams->all[budget->gc_shares ? 0 : budget->user_streams];
	for (i = 0; i < ftl->config.nr_zones; i++)
		INIT_WORK(&mtftl_zone(ftl, i)->close_work, zone_close_work);
	streams->close_buf = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO,
						      MTFTL_BUFFER_ORDER);
	return streams->close_buf ? footer_bufs_alloc(ftl) : -ENOMEM;
}

/* No unit is in flight, and nothing is queued any more. */
void mtftl_streams_free(struct mtftl *ftl)
{
	struct mtftl_streams *streams = ftl->streams;
	struct mtftl_footer_buf *buf, *next;
	u32 i;

	if (!streams)
		return;
	for (i = 0; i < ftl->config.nr_zones; i++) {
		mtftl_assert(!mtftl_zone(ftl, i)->in_flight, "zone %u", i);
		if (mtftl_zone(ftl, i)->footer)
			list_add(&mtftl_zone(ftl, i)->footer->list, &streams->footer_bufs);
	}
	list_for_each_entry_safe(buf, next, &streams->footer_bufs, list) {
		kvfree(buf->stream);
		kfree(buf);
	}
	free_pages((unsigned long)streams->close_buf, MTFTL_BUFFER_ORDER);
	kfree(streams);
	ftl->streams = NULL;
}
