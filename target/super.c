// SPDX-License-Identifier: GPL-2.0
/*
 * The superblock log, under super.log_lock, and checkpoints, under super.lock, all of it
 * synchronous. A checkpoint flushes, and a lane's first write asks for the log: so the
 * log has a lock of its own.
 *
 * Log: zones 0 and 1. Records go to one of them until it is full, then the other is
 * reset and takes the next: the zone with the newest record is never the one reset.
 *
 * A checkpoint is fuzzy: users go on. Zone records first, then the number S0, then a
 * flush, then the map, shard by shard. A unit below a recorded position has drawn its
 * number before S0, so units above S0 are all behind the recorded positions; what
 * drew up to S0 is flushed and in the map when that is copied.
 */
#include "ftl.h"

#include <linux/slab.h>
#include <linux/vmalloc.h>

#define CKPT_PAYLOAD	((1u << MTFTL_BUFFER_ORDER) - 1)	/* blocks of a unit */

/* The log */

struct log_zone {
	u32 wp;			/* in blocks: what a cut left of one does not count */
	bool usable;
	u32 capacity;
};

static int report_log_zone(struct blk_zone *bz, unsigned int index, void *data)
{
	struct log_zone *zone = (struct log_zone *)data + index;

	zone->usable = bz->cond != BLK_ZONE_COND_OFFLINE;
	zone->capacity = bz->capacity / MTFTL_BLOCK_SECTORS;
	zone->wp = zone->capacity;
	if (bz->cond != BLK_ZONE_COND_FULL && bz->cond != BLK_ZONE_COND_READONLY)
		zone->wp = (bz->wp - bz->start) / MTFTL_BLOCK_SECTORS;
	return 0;
}

/*
 * The newest record that verifies; from the write pointers backwards, over torn ones.
 * -ENODATA: there is none at all; -EPROTO: there is one that we do not know; -EINVAL: one
 * that contradicts itself.
 */
int mtftl_super_read(struct mtftl *ftl, struct mtftl_sb_info *info, u32 *zone, u32 *wp)
{
	u32 zone_blocks = bdev_zone_sectors(ftl->bdev) / MTFTL_BLOCK_SECTORS;
	struct log_zone zones[MTFTL_NR_SB_ZONES] = {};
	struct mtftl_sb_info *found;
	int r, result = -ENODATA;
	bool skipped = false;
	u32 z, at;
	void *buf;

	r = blkdev_report_zones(ftl->bdev, 0, MTFTL_NR_SB_ZONES, report_log_zone, zones);
	if (r < 0)
		return r;
	buf = (void *)__get_free_page(GFP_NOIO);
	found = kzalloc(sizeof(*found), GFP_NOIO);
	if (!buf || !found) {
		result = -ENOMEM;
		goto out;
	}
	info->generation = 0;
	for (z = 0; z < MTFTL_NR_SB_ZONES; z++) {
		for (at = zones[z].usable ? zones[z].wp : 0; at-- > 0; ) {
			r = mtftl_rw_sync(ftl, REQ_OP_READ, z * zone_blocks + at, buf, 1);
			/* The next try may read it: an older record is no answer yet. */
			if (r && !mtftl_medium_says(r)) {
				result = -EIO;
				goto out;
			}
			if (!r)
				r = mtftl_sb_parse(buf, found);
			if (r == -EPROTO || r == -EINVAL)
				result = r;
			if (!r)
				break;
			skipped = true;
		}
		if (zones[z].usable && zones[z].wp && !r && found->generation > info->generation) {
			*info = *found;
			*zone = z;
			*wp = zones[z].wp;
		}
	}
	/* One that cannot be read may be newer, and say that there is more to read. */
	if (skipped)
		info->flags &= ~MTFTL_SB_CLEAN;
	if (info->generation && result == -ENODATA)
		result = 0;
out:
	kfree(found);
	free_page((unsigned long)buf);
	return result;
}

static int log_write(struct mtftl *ftl, void *buf)
{
	struct mtftl_super *super = &ftl->super;
	u32 page = (super->zone << ftl->zone_shift) + super->wp;

	super->wp++;
	return mtftl_rw_sync(ftl, REQ_OP_WRITE | REQ_FUA, page, buf, 1);
}

/*
 * After an error. Whoever writes to the drive beside us makes the kernel fail our next write to that
 * zone, until somebody asks where it is; or the zone is further than we know.
 */
static int log_write_again(struct mtftl *ftl, void *buf)
{
	struct mtftl_super *super = &ftl->super;
	sector_t start = ((sector_t)super->zone << ftl->zone_shift) * MTFTL_BLOCK_SECTORS;
	struct log_zone zone = {};
	int r;

	r = blkdev_report_zones(ftl->bdev, start, 1, report_log_zone, &zone);
	if (r < 0)
		return r;
	if (zone.wp != super->wp - 1) {
		mtftl_err(ftl, "superblock log: zone %u is written up to block %u, expected %u: by a write of ours that was not confirmed, or by another program",
			  super->zone, zone.wp, super->wp - 1);
		return -EIO;
	}
	mtftl_err(ftl, "superblock log: a write to zone %u failed, it is tried once more; does another program write to the device?",
		  super->zone);
	super->wp--;
	return log_write(ftl, buf);
}

/* In the other zone, from its beginning. */
static int log_go_round(struct mtftl *ftl, void *buf)
{
	struct mtftl_super *super = &ftl->super;
	struct mtftl_zone *other = &ftl->zones[!super->zone];
	int r, tries = 2;

	/* The newest record is in the zone that is left: one failed write is not the end. */
	do {
		r = mtftl_zone_mgmt(other, REQ_OP_ZONE_RESET);
		if (r)
			return r;
		other->erase_count++;
		super->zone = other->index;
		super->wp = 0;
		r = log_write(ftl, buf);
	} while (r && --tries);
	return r;
}

/* Make @super->info the newest record, with @flags. */
static int append_record(struct mtftl *ftl, u16 flags)
{
	struct mtftl_super *super = &ftl->super;
	void *buf = super->log_buf;
	int r;

	lockdep_assert_held(&super->log_lock);
	/* The other zone may hold the only record that is left. */
	if (READ_ONCE(ftl->read_only))
		return -EIO;
	/* First what it stands for; apart, or nobody knows whether it was the flush that failed. */
	r = mtftl_flush_device(ftl, 0);
	if (r) {
		mtftl_set_read_only(ftl, "the superblock log cannot be written");
		return r;
	}
	r = -ENOSPC;
	super->info.flags = flags;
	super->info.generation++;
	mtftl_sb_compose(buf, &super->info);
	if (super->wp < ftl->capacity) {
		r = log_write(ftl, buf);
		if (r)
			r = log_write_again(ftl, buf);
		/* It must not stay active: the device may have no room for another one then. */
		if (r)
			mtftl_zone_mgmt(&ftl->zones[super->zone], REQ_OP_ZONE_FINISH);
	} else if (ftl->ragged) {
		mtftl_zone_mgmt(&ftl->zones[super->zone], REQ_OP_ZONE_FINISH);
	}
	if (r)
		r = log_go_round(ftl, buf);
	if (r)
		mtftl_set_read_only(ftl, "the superblock log cannot be written");
	else
		WRITE_ONCE(super->clean, flags & MTFTL_SB_CLEAN);
	return r;
}

/* Before the first write after a clean mount or stop: the checkpoint is not all any more. */
int mtftl_super_dirty(struct mtftl *ftl)
{
	int r = 0;

	mutex_lock(&ftl->super.log_lock);
	if (ftl->super.clean)
		r = append_record(ftl, 0);
	mutex_unlock(&ftl->super.log_lock);
	return r;
}

/* Checkpoint: a stream of blocks, in CKPT units, over the zones of one set */

struct ckpt_stream {
	struct mtftl *ftl;
	const u32 *zones;
	u32 nr_zones;
	u32 zone;		/* index into zones */
	u32 wp;
	u32 index;		/* next block of the stream */
	u32 fill;		/* payload blocks in the buffer */
	void *buf;
};

static int ckpt_reset_zone(struct mtftl *ftl, u32 index)
{
	struct mtftl_zone *zone = &ftl->zones[index];

	zone->erase_count++;
	return mtftl_zone_mgmt(zone, REQ_OP_ZONE_RESET);
}

static int ckpt_write_unit(struct ckpt_stream *stream)
{
	struct mtftl *ftl = stream->ftl;
	/* First: a flush that runs meanwhile may cover the number drawn here. */
	u64 durable_seq = READ_ONCE(ftl->durable_seq);
	struct mtftl_unit_info info = {
		.type = MTFTL_UNIT_CKPT,
		.nr_blocks = stream->fill,
		.lane = U16_MAX,
		.seq = atomic64_inc_return(&ftl->seq),
	};
	u32 zone, i;
	int r;

	if (READ_ONCE(ftl->paused))
		return -EAGAIN;
	zone = stream->zones[stream->zone];
	mtftl_unit_init(stream->buf, &info);
	for (i = 0; i < stream->fill; i++)
		mtftl_unit_add_entry(stream->buf, stream->index + i,
				     mtftl_payload_crc(ftl->seed, stream->buf +
						       (1 + i) * MTFTL_BLOCK_SIZE));
	mtftl_unit_seal(stream->buf, ftl->seed, zone, stream->wp,
			ftl->zones[zone].erase_count, durable_seq);
	r = mtftl_rw_sync(ftl, REQ_OP_WRITE, (zone << ftl->zone_shift) + stream->wp, stream->buf,
			  1 + stream->fill);
	if (r) {
		ftl->zones[zone].broken = true;
		return r;
	}
	mtftl_count(ftl, meta_blocks, 1 + stream->fill);
	stream->wp += 1 + stream->fill;
	stream->index += stream->fill;
	stream->fill = 0;
	/* Too little left for a unit of MTFTL_STREAM_UNIT_BLOCKS: the next zone. */
	if (ftl->capacity - stream->wp < 1 + MTFTL_STREAM_UNIT_BLOCKS) {
		/* Not full, it would stay active, and is not counted. One that refuses is not. */
		if (stream->wp < ftl->capacity || ftl->ragged)
			mtftl_zone_mgmt(&ftl->zones[zone], REQ_OP_ZONE_FINISH);
		stream->zone++;
		stream->wp = 0;
	}
	return 0;
}

/* Where the next block of the stream goes; it is written when the unit is full. NULL: error. */
static void *ckpt_next_block(struct ckpt_stream *stream, int *error)
{
	struct mtftl *ftl = stream->ftl;
	u32 room = min(ftl->capacity - stream->wp - 1, CKPT_PAYLOAD);
	void *block;

	*error = 0;
	if (stream->fill == room)
		*error = ckpt_write_unit(stream);
	if (stream->zone >= stream->nr_zones)
		*error = -ENOSPC;
	/* The buffer is still full. */
	if (*error)
		return NULL;
	block = stream->buf + (1 + stream->fill++) * MTFTL_BLOCK_SIZE;
	memset(block, 0, MTFTL_BLOCK_SIZE);
	return block;
}

static void capture_zones(struct mtftl *ftl)
{
	u32 i;

	for (i = 0; i < ftl->nr_zones; i++) {
		struct mtftl_zone *zone = &ftl->zones[i];
		struct mtftl_zone_record *record = &ftl->super.records[i];

		memset(record, 0, sizeof(*record));
		spin_lock_irq(&zone->lock);
		record->erase_count = cpu_to_le32(zone->erase_count);
		record->wp = cpu_to_le32(zone->quiet_wp);
		if (zone->quiet_wp)
			record->first_seq = cpu_to_le64(zone->first_seq);
		if (zone->state == MTFTL_ZONE_BAD)
			record->flags = cpu_to_le16(MTFTL_ZONE_RETIRED);
		spin_unlock_irq(&zone->lock);
	}
}

static int write_map(struct ckpt_stream *stream)
{
	const u32 per_block = MTFTL_BLOCK_SIZE / sizeof(__le32);
	struct mtftl *ftl = stream->ftl;
	u32 lba, i, n;
	int r;

	BUILD_BUG_ON(MTFTL_BLOCK_SIZE / sizeof(__le32) != 1 << MTFTL_CHUNK_SHIFT);
	for (lba = 0; lba < ftl->logical_blocks; lba += n) {
		struct mtftl_shard *shard = mtftl_shard(ftl, lba);
		__le32 *out = ckpt_next_block(stream, &r);

		if (r)
			return r;
		n = min_t(u64, per_block, ftl->logical_blocks - lba);
		spin_lock_irq(&shard->lock);
		for (i = 0; i < n; i++)
			out[i] = cpu_to_le32(mtftl_map_durable(ftl, lba + i));
		spin_unlock_irq(&shard->lock);
		cond_resched();
	}
	return 0;
}

/*
 * Does it do so at all? Else an error says nothing about the place where it occurred: nothing
 * may be given up for it. Of the two superblock zones one block may be torn, not both. Users
 * wait for zones that nobody can gain any more, and perhaps nobody writes who would see
 * it: so it is said here.
 */
bool mtftl_device_answers(struct mtftl *ftl, void *block)
{
	u32 zone;

	for (zone = 0; zone < MTFTL_NR_SB_ZONES; zone++)
		if (!mtftl_rw_sync(ftl, REQ_OP_READ, zone << ftl->zone_shift, block, 1))
			return true;
	mtftl_set_read_only(ftl, "the device does not answer");
	return false;
}

/* Empty zones for those of the next checkpoint that failed. False: no reason to try again. */
static bool replace_failed(struct mtftl *ftl)
{
	struct mtftl_super *super = &ftl->super;
	u32 *set = super->set[!super->durable_set];
	bool replaced = false;
	u32 i, zone;

	lockdep_assert_held(&super->lock);
	if (!mtftl_device_answers(ftl, super->buf))
		return false;
	for (i = 0; i < super->set_zones; i++) {
		if (!ftl->zones[set[i]].broken)
			continue;
		zone = mtftl_zone_replace(ftl, set[i]);
		if (zone == U32_MAX)
			return false;
		set[i] = zone;
		replaced = true;
	}
	return replaced;
}

static int write_checkpoint(struct mtftl *ftl, u64 *number)
{
	struct mtftl_super *super = &ftl->super;
	u32 record_bytes = ftl->nr_zones * sizeof(*super->records), at;
	struct ckpt_stream stream = {
		.ftl = ftl,
		.zones = super->set[!super->durable_set],
		.nr_zones = super->set_zones,
		.buf = super->buf,
	};
	void *block;
	u32 i;
	int r;

	lockdep_assert_held(&super->lock);
	if (READ_ONCE(ftl->paused))
		return -EAGAIN;
	for (i = 0; i < super->set_zones; i++) {
		r = ckpt_reset_zone(ftl, stream.zones[i]);
		if (r) {
			ftl->zones[stream.zones[i]].broken = true;
			return r;
		}
	}
	/* GC's units are not part of a flush: none is in flight while this lock is held. */
	mutex_lock(&ftl->gc_lock);
	capture_zones(ftl);
	*number = atomic64_read(&ftl->seq);
	mutex_unlock(&ftl->gc_lock);
	r = mtftl_flush_sync(ftl);
	if (r)
		return r;

	for (at = 0; at < record_bytes; at += MTFTL_BLOCK_SIZE) {
		block = ckpt_next_block(&stream, &r);
		if (r)
			return r;
		memcpy(block, (void *)super->records + at,
		       min(record_bytes - at, MTFTL_BLOCK_SIZE));
	}
	r = write_map(&stream);
	if (!r)
		r = ckpt_write_unit(&stream);
	return r;
}

int mtftl_checkpoint(struct mtftl *ftl, bool clean)
{
	struct mtftl_super *super = &ftl->super;
	unsigned int tries = 0;
	u64 number;
	int r;

	if (READ_ONCE(ftl->read_only))
		return -EROFS;
	mutex_lock(&super->lock);
	/* As for units: so many zones in a row are not worn out. */
	do {
		r = write_checkpoint(ftl, &number);
	} while (r && r != -EAGAIN && ++tries < MTFTL_MAX_FAILURES && replace_failed(ftl));
	if (!r) {
		/* The record that points to it flushes before it is written. */
		mutex_lock(&super->log_lock);
		super->info.ckpt_seq = number;
		super->info.ckpt_blocks = mtftl_ckpt_stream_blocks(ftl->nr_zones,
								   ftl->logical_blocks);
		super->info.ckpt_nr_zones = super->set_zones;
		memset(super->info.ckpt_zones, 0, sizeof(super->info.ckpt_zones));
		memcpy(super->info.ckpt_zones, super->set[!super->durable_set],
		       super->set_zones * sizeof(u32));
		r = append_record(ftl, clean ? MTFTL_SB_CLEAN : 0);
		if (!r) {
			WRITE_ONCE(super->ckpt_seq, number);
			super->durable_set = !super->durable_set;
			mtftl_count(ftl, checkpoints, 1);
		}
		mutex_unlock(&super->log_lock);
	}
	mutex_unlock(&super->lock);
	return r;
}

/* Numbers that recovery would have to look at, and with it the time that it takes. */
u64 mtftl_log_length(struct mtftl *ftl)
{
	return atomic64_read(&ftl->seq) - READ_ONCE(ftl->super.ckpt_seq);
}

void mtftl_checkpoint_work(struct work_struct *work)
{
	struct mtftl *ftl = container_of(work, struct mtftl, ckpt_work);
	unsigned int flags = memalloc_noio_save();

	if (!READ_ONCE(ftl->read_only) && mtftl_log_length(ftl) > ftl->log_limit)
		mtftl_checkpoint(ftl, false);
	memalloc_noio_restore(flags);
}

/* Load the checkpoint that the superblock names. Every block is verified. */

static int load_block(struct mtftl *ftl, u32 index, const void *block)
{
	u32 record_bytes = ftl->nr_zones * sizeof(*ftl->super.records);
	u32 record_blocks = DIV_ROUND_UP(record_bytes, MTFTL_BLOCK_SIZE);
	const __le32 *in = block;
	u32 i, n, at;

	if (index < record_blocks) {
		at = index * MTFTL_BLOCK_SIZE;
		memcpy((void *)ftl->super.records + at, block,
		       min(record_bytes - at, MTFTL_BLOCK_SIZE));
		return 0;
	}
	at = (index - record_blocks) << MTFTL_CHUNK_SHIFT;
	n = min_t(u64, 1u << MTFTL_CHUNK_SHIFT, ftl->logical_blocks - at);
	for (i = 0; i < n; i++) {
		u32 value = le32_to_cpu(in[i]);

		if (mtftl_is_page(value) ? value >> ftl->zone_shift >= ftl->nr_zones :
		    mtftl_is_slot(value))
			return -EINVAL;
		ftl->map[at + i] = value;
	}
	return 0;
}

static int load_unit(struct mtftl *ftl, u32 zone, u32 *offset, u32 *index, void *buf)
{
	u32 page = (zone << ftl->zone_shift) + *offset, max, crc, i;
	struct mtftl_unit_info info;
	u64 lba;
	int r;

	max = min(ftl->capacity - *offset, 1 + CKPT_PAYLOAD);
	r = mtftl_rw_sync(ftl, REQ_OP_READ, page, buf, max);
	if (r)
		return r;
	r = mtftl_unit_parse(buf, ftl->seed, zone, *offset, ftl->capacity, &info);
	if (r)
		return r;
	if (info.type != MTFTL_UNIT_CKPT || !info.nr_blocks || info.nr_entries != info.nr_blocks ||
	    info.nr_blocks >= max)
		return -EINVAL;
	for (i = 0; i < info.nr_entries; i++) {
		void *block = buf + (1 + i) * MTFTL_BLOCK_SIZE;

		mtftl_unit_entry(buf, i, &lba, &crc);
		if (lba != *index || *index >= ftl->super.info.ckpt_blocks ||
		    crc != mtftl_payload_crc(ftl->seed, block))
			return -EBADMSG;
		r = load_block(ftl, (*index)++, block);
		if (r)
			return r;
	}
	*offset += 1 + info.nr_blocks;
	if ((u64)atomic64_read(&ftl->seq) < info.seq)
		atomic64_set(&ftl->seq, info.seq);
	return 0;
}

int mtftl_checkpoint_load(struct mtftl *ftl)
{
	struct mtftl_super *super = &ftl->super;
	u32 index = 0, zone = 0, offset = 0;
	int r = 0;

	atomic64_set(&ftl->seq, super->info.ckpt_seq);
	while (!r && index < super->info.ckpt_blocks) {
		if (zone >= super->info.ckpt_nr_zones)
			return -EBADMSG;
		r = load_unit(ftl, super->info.ckpt_zones[zone], &offset, &index, super->buf);
		if (ftl->capacity - offset < 1 + MTFTL_STREAM_UNIT_BLOCKS) {
			zone++;
			offset = 0;
		}
		cond_resched();
	}
	return r;
}

/* Here, as a checkpoint must not need memory: it may be what memory is waiting for. */
int mtftl_super_alloc(struct mtftl *ftl)
{
	struct mtftl_super *super = &ftl->super;

	super->buf = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, MTFTL_BUFFER_ORDER);
	super->log_buf = (void *)__get_free_page(GFP_KERNEL);
	super->records = kvcalloc(ftl->nr_zones, sizeof(*super->records), GFP_KERNEL);
	return super->buf && super->log_buf && super->records ? 0 : -ENOMEM;
}

void mtftl_super_free(struct mtftl *ftl)
{
	struct mtftl_super *super = &ftl->super;

	kvfree(super->records);
	super->records = NULL;
	free_page((unsigned long)super->log_buf);
	super->log_buf = NULL;
	free_pages((unsigned long)super->buf, MTFTL_BUFFER_ORDER);
	super->buf = NULL;
}
