// SPDX-License-Identifier: GPL-2.0
/*
 * A write unit on its way to flash: see write.h. Units whose write failed are listed under
 * writes->lock, and written again by one work item of the queue that closes zones.
 */
#include "zone/write.h"

#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "device/await.h"
#include "device/pause.h"
#include "device/rw.h"
#include "device/seq.h"
#include "device/space.h"
#include "device/trace.h"
#include "map/age.h"
#include "map/map.h"
#include "zone/life.h"

struct mtftl_writes {
	struct mtftl *ftl;
	spinlock_t lock;		/* redo */
	struct list_head redo;
	struct delayed_work work;
	struct mtftl_wait wait;		/* the work's, like block */
	void *block;
};

struct mtftl_write *mtftl_write_alloc(struct mtftl *ftl, unsigned int max, int node,
				      const struct mtftl_write_owner *owner, void *private)
{
	struct mtftl_write *unit;
	struct page *header;

	mtftl_assert(max && max <= MTFTL_UNIT_MAX_ENTRIES && owner->written && owner->done);
	mtftl_assert(ftl->config.header_blocks || max * ftl->config.meta_size <= PAGE_SIZE);
	unit = kvzalloc_node(struct_size(unit, entries, max), GFP_KERNEL, node);
	if (!unit)
		return NULL;
	unit->ftl = ftl;
	unit->max = max;
	unit->owner = owner;
	unit->private = private;
	unit->lane = U16_MAX;
	INIT_LIST_HEAD(&unit->list);
	header = alloc_pages_node(node, GFP_KERNEL | __GFP_ZERO, 0);
	unit->header = header ? page_address(header) : NULL;
	unit->lbas = kcalloc_node(max, sizeof(*unit->lbas), GFP_KERNEL, node);
	unit->vecs = kcalloc_node(max + 1, sizeof(*unit->vecs), GFP_KERNEL, node);
	if (!unit->header || !unit->lbas || !unit->vecs) {
		mtftl_write_free(unit);
		return NULL;
	}
	return unit;
}

void mtftl_write_free(struct mtftl_write *unit)
{
	if (!unit)
		return;
	free_page((unsigned long)unit->header);
	kfree(unit->lbas);
	kfree(unit->vecs);
	kvfree(unit);
}

void mtftl_write_start(struct mtftl_write *unit, enum mtftl_unit_type type, u64 seq)
{
	mtftl_assert(seq && seq <= mtftl_seq_last(unit->ftl), "number %llu", seq);
	mtftl_assert(list_empty(&unit->list), "unit %llu is free, or to be written again",
		     unit->seq);
	unit->type = type;
	unit->seq = seq;
	unit->nr = 0;
	unit->through = false;
	unit->born = mtftl_map_clock(unit->ftl);
	unit->life = mtftl_age_unwritten(unit->ftl);
	unit->place.zone = NULL;
}

u32 mtftl_write_checksum(const struct mtftl *ftl, const void *data)
{
	return mtftl_payload_crc(ftl->config.seed, data);
}

void mtftl_write_add(struct mtftl_write *unit, u32 lba, u32 from, void *data, const u32 *crc)
{
	struct mtftl_write_entry *entry = &unit->entries[unit->nr];

	mtftl_assert(unit->nr < unit->max && lba < unit->ftl->config.logical_blocks,
		     "%u of %u: block %u", unit->nr, unit->max, lba);
	/* A lane's are of slots, GC's of pages. */
	mtftl_assert(unit->type == MTFTL_UNIT_GC ? mtftl_is_page(from) : mtftl_is_slot(from),
		     "type %u: %#x", unit->type, from);
	entry->lba = lba;
	entry->from = from;
	entry->data = data;
	entry->summed = crc;
	if (crc)
		entry->crc = *crc;
	unit->lbas[unit->nr++] = lba;
}

static u32 head(const struct mtftl_write *unit)
{
	return mtftl_unit_head(!unit->ftl->config.header_blocks, unit->type);
}

void mtftl_write_take_place(struct mtftl_write *unit, struct mtftl_stream *stream)
{
	mtftl_assert(unit->nr || unit->type == MTFTL_UNIT_RANGES, "unit %llu", unit->seq);
	mtftl_stream_take(stream, &unit->place, head(unit) + unit->nr, unit->born,
			  unit->life);
}

static void unit_written(struct mtftl_write *unit)
{
	u32 page = mtftl_zone_start(unit->place.zone) + unit->place.offset + head(unit);

	/* Also where the drive says that it put it. */
	mtftl_assert(unit->place.blocks == head(unit) + unit->nr &&
		     unit->place.offset + unit->place.blocks <= unit->ftl->config.capacity,
		     "unit %llu: %u blocks at %u", unit->seq, unit->place.blocks,
		     unit->place.offset);
	unit->owner->written(unit, page);
	mtftl_stream_landed(&unit->place, unit->type, unit->seq, unit->nr, unit->lbas);
	unit->owner->done(unit, BLK_STS_OK);
}

/*
 * Runs in the context in which the device completes; a thread of a driver may be preempted
 * anywhere. A task that waits for units in flight goes on when the last one is done. Code that
 * frees memory which is used after that (lanes, movers and this file) also waits for
 * mtftl_writes_settle().
 */
static void unit_ended(struct bio *bio)
{
	struct mtftl_write *unit = container_of(bio, struct mtftl_write, bio);
	struct mtftl_extent *place = &unit->place;
	struct mtftl *ftl = unit->ftl;
	struct mtftl_writes *writes = ftl->writes;
	blk_status_t status = bio->bi_status;
	unsigned long flags;

	mtftl_assert(list_empty(&unit->list), "unit %llu", unit->seq);
	mtftl_assert(READ_ONCE(place->zone->state) == MTFTL_ZONE_OPEN ||
		     READ_ONCE(place->zone->state) == MTFTL_ZONE_CLOSING, "zone %u: state %u",
		     place->zone->index, place->zone->state);
	/* The kernel takes the flag away if it thinks that the drive has no cache. */
	if (!status && !(bio->bi_opf & REQ_FUA))
		mtftl_seq_landed(ftl, unit->failures);
	/* A place that cannot be true is an error like any other. */
	if (!status && place->zone->append &&
	    mtftl_append_offset(bio->bi_iter.bi_sector,
				mtftl_page_sector(ftl, mtftl_zone_start(place->zone)),
				ftl->config.capacity, place->blocks, &place->offset))
		status = BLK_STS_IOERR;
	mtftl_meta_detach(bio);
	bio_uninit(bio);
	trace_mtftl_unit_completed(mtftl_dev(ftl), unit->lane, unit->type, unit->seq,
				   unit->nr, place->zone->index, place->offset,
				   blk_status_to_errno(status));
	mtftl_send_end(ftl);
	if (likely(!status)) {
		unit_written(unit);
		return;
	}
	/* At once, also for those that will wait: its zone closes and makes place. */
	mtftl_count(ftl, write_errors, 1);
	mtftl_stream_failed(place);
	spin_lock_irqsave(&writes->lock, flags);
	list_add_tail(&unit->list, &writes->redo);
	spin_unlock_irqrestore(&writes->lock, flags);
	mtftl_zones_queue(ftl, &writes->work);
}

static void unit_endio(struct bio *bio)
{
	rcu_read_lock();
	unit_ended(bio);
	rcu_read_unlock();
}

/* No unit is in flight. On return no completion is running either. Sleeps. */
void mtftl_writes_settle(struct mtftl *ftl)
{
	synchronize_rcu();
}

/* What its blocks' metadata says; the place is known. */
static void compose_oob(struct mtftl_write *unit)
{
	const struct mtftl_config *config = &unit->ftl->config;
	const struct mtftl_zone *zone = unit->place.zone;
	u32 i;

	mtftl_assert(!mtftl_unit_head(true, unit->type), "type %u", unit->type);
	mtftl_assert(config->meta_size >= sizeof(struct mtftl_oob) &&
		     unit->nr * config->meta_size <= PAGE_SIZE, "%u blocks", unit->nr);
	for (i = 0; i < unit->nr; i++)
		mtftl_oob_compose(unit->header + i * config->meta_size, unit->type, unit->seq,
				  unit->entries[i].lba, unit->entries[i].crc, config->seed,
				  zone->index, zone->erase_count);
}

/* What recovery and GC will make of it: for an assertion. */
static bool parses(const struct mtftl_write *unit)
{
	const struct mtftl_config *config = &unit->ftl->config;
	const struct mtftl_zone *zone = unit->place.zone;
	u32 i;

	if (head(unit))
		return mtftl_unit_parses(unit->header, config->seed, zone->index,
					 zone->append ? 0 : unit->place.offset, config->capacity);
	for (i = 0; i < unit->nr; i++)
		if (mtftl_oob_crc(unit->header + i * config->meta_size, unit->entries[i].lba,
				  config->seed, zone->index) != unit->entries[i].crc)
			return false;
	return true;
}

/* Its place is taken: seal the header for it and go. */
void mtftl_write_submit(struct mtftl_write *unit)
{
	struct mtftl *ftl = unit->ftl;
	struct mtftl_zone *zone = unit->place.zone;
	struct bio *bio = &unit->bio;
	u32 i;

	/* Its zone stays what it is until it has landed. */
	mtftl_assert(zone && READ_ONCE(zone->in_flight), "unit %llu", unit->seq);
	unit->place.failures = mtftl_streams_failures(ftl);
	if (head(unit))
		mtftl_unit_seal(unit->header, ftl->config.seed, zone->index,
				zone->append ? MTFTL_ANY_OFFSET : unit->place.offset,
				zone->erase_count, mtftl_seq_durable(ftl));
	else
		compose_oob(unit);
	mtftl_assert(parses(unit), "unit %llu of type %u", unit->seq, unit->type);
	bio_init(bio, mtftl_bdev(ftl), unit->vecs, unit->max + 1,
		 (zone->append ? REQ_OP_ZONE_APPEND : REQ_OP_WRITE) |
		 (unit->through ? REQ_FUA : 0));
	bio->bi_iter.bi_sector = mtftl_page_sector(ftl, mtftl_zone_start(zone) +
						   (zone->append ? 0 : unit->place.offset));
	bio->bi_end_io = unit_endio;
	if (head(unit))
		__bio_add_page(bio, virt_to_page(unit->header), MTFTL_BLOCK_SIZE, 0);
	for (i = 0; i < unit->nr; i++) {
		void *data = unit->entries[i].data;

		/* Merges neighbours: slots are contiguous by the chunk. */
		if (bio_add_page(bio, virt_to_page(data), MTFTL_BLOCK_SIZE,
				 offset_in_page(data)) != MTFTL_BLOCK_SIZE)
			WARN_ON_ONCE(1);
	}
	mtftl_assert(bio->bi_iter.bi_size >> MTFTL_BLOCK_SHIFT == unit->place.blocks,
		     "unit %llu: %u bytes for %u blocks", unit->seq, bio->bi_iter.bi_size,
		     unit->place.blocks);
	mtftl_meta_attach(&ftl->config, bio, &unit->meta, head(unit) ? NULL : unit->header);
	trace_mtftl_unit_submitted(mtftl_dev(ftl), unit->lane, unit->type, unit->seq,
				   unit->nr, zone->index, unit->place.offset, 0);
	mtftl_pause_heed(ftl);
	/* Its sender's own may end before it lands. */
	mtftl_send_hold(ftl);
	unit->failures = mtftl_seq_failures(ftl);
	submit_bio_noacct(bio);
}

void mtftl_write_compose(struct mtftl_write *unit)
{
	struct mtftl *ftl = unit->ftl;
	struct mtftl_unit_info info = {
		.type = unit->type,
		.nr_blocks = unit->nr,
		.lane = unit->lane,
		.seq = unit->seq,
	};
	u32 i;

	if (head(unit))
		mtftl_unit_init(unit->header, &info);
	mtftl_assert(unit->type == MTFTL_UNIT_DATA || unit->type == MTFTL_UNIT_GC, "type %u",
		     unit->type);
	mtftl_assert(unit->nr && unit->nr <= unit->max, "%u of %u blocks", unit->nr, unit->max);
	for (i = 0; i < unit->nr; i++) {
		struct mtftl_write_entry *entry = &unit->entries[i];

		/* GC's was verified: whatever happens to the data from here on, it tells. */
		mtftl_assert(entry->summed || unit->type != MTFTL_UNIT_GC, "block %u", entry->lba);
		if (!entry->summed)
			entry->crc = mtftl_write_checksum(ftl, entry->data);
		mtftl_assert(entry->crc == mtftl_write_checksum(ftl, entry->data),
			     "unit %llu: block %u", unit->seq, entry->lba);
		if (head(unit))
			mtftl_unit_add_entry(unit->header, entry->lba, entry->crc);
	}
}

/*
 * Units whose write failed: their zone takes nothing more, they go elsewhere with the
 * number that they have. GC, which could make place for them, may be waiting for them: a device
 * that is gone, or has nothing left, must be seen here. False: there is none, or no place.
 */
static bool redo_one(struct mtftl_writes *writes)
{
	struct mtftl_want want = { .right = MTFTL_RIGHT_RETRY };
	struct mtftl *ftl = writes->ftl;
	struct mtftl_stream *stream;
	struct mtftl_write *unit;
	struct mtftl_admit_state state;
	u32 room;

	spin_lock_irq(&writes->lock);
	unit = list_first_entry_or_null(&writes->redo, struct mtftl_write, list);
	if (unit)
		list_del_init(&unit->list);
	spin_unlock_irq(&writes->lock);
	if (!unit)
		return false;

	if (mtftl_zone_was_finished(unit->place.zone))
		mtftl_streams_forgive(ftl);
	/*
	 * So many zones in a row are not worn out: the device is gone. All units
	 * together count, or they burn every zone between them.
	 */
	if (mtftl_streams_failures(ftl) >= MTFTL_MAX_FAILURES)
		mtftl_set_read_only(ftl, "writes fail wherever they go");
	writes->wait.gen = mtftl_space_gen(ftl);
	want.least = unit->place.blocks;
	mtftl_assert(want.least == head(unit) + unit->nr, "unit %llu", unit->seq);
	stream = NULL;
	if (!mtftl_is_read_only(ftl))
		stream = mtftl_stream_find(ftl, &want, &room);
	if (stream) {
		mtftl_assert(room >= want.least, "%u of %u blocks", room, want.least);
		mtftl_write_take_place(unit, stream);
		mutex_unlock(&stream->lock);
		mtftl_write_submit(unit);
		return true;
	}
	mtftl_zones_look(ftl, &state);
	if (mtftl_is_dead_end(ftl, &state, &writes->wait) ||
	    !mtftl_device_answers(ftl, writes->block)) {
		rcu_read_lock();
		unit->owner->done(unit, BLK_STS_IOERR);
		rcu_read_unlock();
		return true;
	}
	spin_lock_irq(&writes->lock);
	list_add(&unit->list, &writes->redo);
	spin_unlock_irq(&writes->lock);
	/* It looks at the list: what appeared while it was empty was missed. */
	smp_mb();
	if (writes->wait.gen != mtftl_space_gen(ftl))
		return true;
	mtftl_zones_queue_later(ftl, &writes->work, MTFTL_LAST_HOPE);
	return false;
}

static void redo_work(struct work_struct *work)
{
	struct mtftl_writes *writes = container_of(work, struct mtftl_writes, work.work);
	bool more = true;

	/* Space that appears starts this work again. */
	while (more && mtftl_send_begin(writes->ftl)) {
		more = redo_one(writes);
		mtftl_send_end(writes->ftl);
	}
}

static void space_appeared(struct mtftl *ftl)
{
	/* Pairs with redo_work(): it sees the new generation, or its unit is seen here. */
	if (!list_empty(&ftl->writes->redo))
		mtftl_zones_queue(ftl, &ftl->writes->work);
}

int mtftl_writes_alloc(struct mtftl *ftl)
{
	struct mtftl_writes *writes = kzalloc_obj(*writes, GFP_KERNEL);

	if (!writes)
		return -ENOMEM;
	ftl->writes = writes;
	writes->ftl = ftl;
	writes->wait.right = MTFTL_RIGHT_RETRY;
	spin_lock_init(&writes->lock);
	INIT_LIST_HEAD(&writes->redo);
	INIT_DELAYED_WORK(&writes->work, redo_work);
	mtftl_space_on_appeared(ftl, space_appeared);
	writes->block = (void *)__get_free_page(GFP_KERNEL);
	return writes->block ? 0 : -ENOMEM;
}

void mtftl_writes_free(struct mtftl *ftl)
{
	if (!ftl->writes)
		return;
	cancel_delayed_work_sync(&ftl->writes->work);
	mtftl_assert(list_empty(&ftl->writes->redo));
	free_page((unsigned long)ftl->writes->block);
	kfree(ftl->writes);
	ftl->writes = NULL;
}
