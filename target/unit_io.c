// SPDX-License-Identifier: GPL-2.0
/*
 * A write unit on its way to flash: memory, bio, completion, and another try in
 * another zone when the device fails. A unit belongs to whoever composes it until
 * mtftl_unit_submit(); from then to its completion, which may be in interrupt
 * context, to the bio.
 */
#include "ftl.h"
#include "trace.h"

#include <linux/slab.h>


struct mtftl_unit_io *mtftl_unit_alloc(struct mtftl *ftl, unsigned int max)
{
	struct mtftl_unit_io *unit;

	unit = kvzalloc(struct_size(unit, entries, max), GFP_KERNEL);
	if (!unit)
		return NULL;
	unit->ftl = ftl;
	unit->max = max;
	INIT_LIST_HEAD(&unit->list);
	unit->header = (void *)get_zeroed_page(GFP_KERNEL);
	unit->lbas = kcalloc(max, sizeof(*unit->lbas), GFP_KERNEL);
	unit->vecs = kcalloc(max + 1, sizeof(*unit->vecs), GFP_KERNEL);
	if (!unit->header || !unit->lbas || !unit->vecs) {
		mtftl_unit_free(unit);
		return NULL;
	}
	return unit;
}

void mtftl_unit_free(struct mtftl_unit_io *unit)
{
	if (!unit)
		return;
	free_page((unsigned long)unit->header);
	kfree(unit->lbas);
	kfree(unit->vecs);
	kvfree(unit);
}

void mtftl_unit_start(struct mtftl_unit_io *unit, enum mtftl_unit_type type, u64 seq)
{
	unit->type = type;
	unit->seq = seq;
	unit->nr = 0;
	unit->zone = NULL;
}

void mtftl_unit_add(struct mtftl_unit_io *unit, u32 lba, u32 from, void *data)
{
	struct mtftl_entry_io *entry = &unit->entries[unit->nr];

	entry->lba = lba;
	entry->from = from;
	entry->data = data;
	unit->lbas[unit->nr++] = lba;
}

/* The map first: while the unit counts as in flight, GC leaves its zone alone. */
static void unit_finish(struct mtftl_unit_io *unit, blk_status_t status)
{
	struct mtftl *ftl = unit->ftl;
	u32 page, i;

	if (!status) {
		page = mtftl_zone_page(ftl, unit->zone) + unit->offset + 1;
		for (i = 0; i < unit->nr && unit->type != MTFTL_UNIT_RANGES; i++, page++) {
			struct mtftl_entry_io *entry = &unit->entries[i];

			if (unit->type == MTFTL_UNIT_DATA)
				mtftl_map_complete(ftl, entry->lba, entry->from, page);
			else
				mtftl_map_move(ftl, entry->lba, entry->from, page);
		}
		mtftl_zone_unit_done(unit, status);
	}
	if (unit->lane)
		mtftl_lane_unit_done(unit, status);
	else
		unit->done(unit, status);
}

static void unit_endio(struct bio *bio)
{
	struct mtftl_unit_io *unit = container_of(bio, struct mtftl_unit_io, bio);
	struct mtftl *ftl = unit->ftl;
	blk_status_t status = bio->bi_status;
	unsigned long flags;

	if (!status)
		mtftl_count(ftl, taken, 1);
	mtftl_count(ftl, landed, 1);
	/* A place that cannot be true is an error like any other. */
	if (!status && unit->zone->append &&
	    mtftl_append_offset(bio->bi_iter.bi_sector,
				mtftl_page_sector(mtftl_zone_page(ftl, unit->zone)), ftl->capacity,
				unit->blocks, &unit->offset))
		status = BLK_STS_IOERR;
	bio_uninit(bio);
	trace_mtftl_unit_completed(unit, blk_status_to_errno(status));
	if (likely(!status)) {
		unit_finish(unit, status);
		return;
	}
	/* At once, also for those that will wait: its zone closes and makes place. */
	mtftl_count(ftl, write_errors, 1);
	mtftl_zone_unit_done(unit, status);
	spin_lock_irqsave(&ftl->redo_lock, flags);
	list_add_tail(&unit->list, &ftl->redo);
	spin_unlock_irqrestore(&ftl->redo_lock, flags);
	mod_delayed_work(ftl->wq, &ftl->redo_work, 0);
}

/* Its place is taken: seal the header for it and go. */
void mtftl_unit_submit(struct mtftl_unit_io *unit)
{
	struct mtftl *ftl = unit->ftl;
	struct mtftl_zone *zone = unit->zone;
	struct bio *bio = &unit->bio;
	u32 i;

	unit->failures = atomic_read(&ftl->failed_zones);
	mtftl_unit_seal(unit->header, ftl->seed, zone->index,
			zone->append ? MTFTL_ANY_OFFSET : unit->offset, zone->erase_count,
			READ_ONCE(ftl->durable_seq));
	bio_init(bio, ftl->bdev, unit->vecs, unit->max + 1,
		 zone->append ? REQ_OP_ZONE_APPEND : REQ_OP_WRITE);
	bio->bi_iter.bi_sector = mtftl_page_sector(mtftl_zone_page(ftl, zone) +
						   (zone->append ? 0 : unit->offset));
	bio->bi_end_io = unit_endio;
	__bio_add_page(bio, virt_to_page(unit->header), MTFTL_BLOCK_SIZE, 0);
	for (i = 0; unit->type != MTFTL_UNIT_RANGES && i < unit->nr; i++) {
		void *data = unit->entries[i].data;

		/* Merges neighbours: slots are contiguous by the chunk. */
		if (bio_add_page(bio, virt_to_page(data), MTFTL_BLOCK_SIZE,
				 offset_in_page(data)) != MTFTL_BLOCK_SIZE)
			WARN_ON_ONCE(1);
	}
	trace_mtftl_unit_submitted(unit, 0);
	mtftl_count(ftl, sent, 1);
	submit_bio_noacct(bio);
}

/* Header and checksums, once: a unit that is written again keeps them, and its number. */
void mtftl_unit_compose(struct mtftl_unit_io *unit)
{
	struct mtftl *ftl = unit->ftl;
	struct mtftl_unit_info info = {
		.type = unit->type,
		.nr_blocks = unit->nr,
		.lane = unit->lane ? unit->lane->index : U16_MAX,
		.seq = unit->seq,
	};
	u32 i;

	mtftl_unit_init(unit->header, &info);
	for (i = 0; i < unit->nr; i++) {
		struct mtftl_entry_io *entry = &unit->entries[i];

		/* GC's was verified: whatever happens to the data from here on, it tells. */
		if (unit->type != MTFTL_UNIT_GC)
			entry->crc = mtftl_payload_crc(ftl->seed, entry->data);
		mtftl_unit_add_entry(unit->header, entry->lba, entry->crc);
	}
}

/*
 * Units whose write failed: their zone takes nothing more, they go elsewhere with the
 * number that they have. Who could make place for them may be waiting for them: a device
 * that is gone, or has nothing left, must be seen here.
 */
void mtftl_redo_work(struct work_struct *work)
{
	struct mtftl *ftl = container_of(work, struct mtftl, redo_work.work);
	struct mtftl_stream *stream;
	struct mtftl_unit_io *unit;
	u32 room, gen;

	/* mtftl_space_appeared() starts this work again. */
	while (!READ_ONCE(ftl->paused)) {
		spin_lock_irq(&ftl->redo_lock);
		unit = list_first_entry_or_null(&ftl->redo, struct mtftl_unit_io, list);
		if (unit)
			list_del_init(&unit->list);
		spin_unlock_irq(&ftl->redo_lock);
		if (!unit)
			return;

		/*
		 * So many zones in a row are not worn out: the device is gone. All units
		 * together count, or they burn every zone between them.
		 */
		if (atomic_read(&ftl->failed_zones) >= MTFTL_MAX_FAILURES)
			mtftl_set_read_only(ftl, "writes fail wherever they go");
		if (mtftl_out_of_zones(ftl))
			mtftl_set_read_only(ftl, "a write failed and no zone is left for it");
		gen = atomic_read(&ftl->space_gen);
		stream = NULL;
		if (!READ_ONCE(ftl->read_only))
			stream = mtftl_stream_find(ftl, 0, unit->blocks, MTFTL_RIGHT_URGENT,
						   &room);
		if (stream) {
			mtftl_stream_take(stream, unit);
			mutex_unlock(&stream->lock);
			mtftl_unit_submit(unit);
		} else if (READ_ONCE(ftl->read_only) ||
			   !mtftl_device_answers(ftl, ftl->close_buf) ||
			   mtftl_hope_is_lost(ftl, &ftl->redo_hope)) {
			unit_finish(unit, BLK_STS_IOERR);
		} else {
			/* mtftl_space_appeared() starts this work again. */
			spin_lock_irq(&ftl->redo_lock);
			list_add(&unit->list, &ftl->redo);
			spin_unlock_irq(&ftl->redo_lock);
			/* It looks at the list: what appeared while it was empty was missed. */
			smp_mb();
			if (gen == atomic_read(&ftl->space_gen)) {
				queue_delayed_work(ftl->wq, &ftl->redo_work, MTFTL_LAST_HOPE);
				return;
			}
		}
	}
}

/* For what is not in the hot path. @data is from the page allocator. */
int mtftl_rw_sectors(struct mtftl *ftl, blk_opf_t opf, sector_t sector, void *data, u32 nr)
{
	struct bio_vec vec;
	struct bio bio;
	int r;

	bio_init(&bio, ftl->bdev, &vec, 1, opf);
	bio.bi_iter.bi_sector = sector;
	__bio_add_page(&bio, virt_to_page(data), nr << SECTOR_SHIFT, offset_in_page(data));
	if (op_is_write(opf))
		mtftl_count(ftl, sent, 1);
	r = submit_bio_wait(&bio);
	if (op_is_write(opf) && !r)
		mtftl_count(ftl, taken, 1);
	if (op_is_write(opf))
		mtftl_count(ftl, landed, 1);
	bio_uninit(&bio);
	return r;
}

int mtftl_rw_sync(struct mtftl *ftl, blk_opf_t opf, u32 page, void *data, u32 nr_blocks)
{
	return mtftl_rw_sectors(ftl, opf, mtftl_page_sector(page), data,
				nr_blocks * MTFTL_BLOCK_SECTORS);
}
