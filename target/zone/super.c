// SPDX-License-Identifier: GPL-2.0
/*
 * The superblock log: see super.h.
 *
 * Zones 0 and 1. Records go to one of them until it is full, then the other is
 * reset and takes the next: the zone with the newest record is never the one reset.
 */
#include "zone/super.h"

#include <linux/slab.h>

#include "device/device.h"
#include "device/pause.h"
#include "device/rw.h"
#include "device/seq.h"
#include "device/thread.h"
#include "zone/zones.h"

struct log_zone {
	u32 wp;			/* in blocks: what a cut left of one does not count */
	bool usable;
	bool writable;
	u32 capacity;
};

static int report_log_zone(struct blk_zone *bz, unsigned int index, void *data)
{
	struct log_zone *zone = (struct log_zone *)data + index;

	zone->usable = bz->cond != BLK_ZONE_COND_OFFLINE;
	zone->writable = zone->usable && bz->cond != BLK_ZONE_COND_READONLY;
	zone->capacity = bz->capacity / MTFTL_BLOCK_SECTORS;
	zone->wp = zone->capacity;
	if (bz->cond != BLK_ZONE_COND_FULL && bz->cond != BLK_ZONE_COND_READONLY)
		zone->wp = min_t(u64, (bz->wp - bz->start) / MTFTL_BLOCK_SECTORS, zone->capacity);
	return 0;
}

/* A search for the newest record. */
struct search {
	void *buf;
	struct mtftl_sb_info *found;	/* the record that was read last */
	int refused;			/* by mtftl_sb_parse(): -EPROTO or -EINVAL, else 0 */
	bool skipped;			/* a block was passed over, in this zone */
	u32 at;				/* where the zone's newest record is */
};

/*
 * One block of the log. -ENODATA: no record verifies there; -EPROTO: we do not know the record;
 * -EINVAL: it contradicts itself. Other errors end the search.
 */
static int read_record(struct mtftl *ftl, struct search *search, u32 zone, u32 at)
{
	u32 zone_blocks = bdev_zone_sectors(mtftl_bdev(ftl)) / MTFTL_BLOCK_SECTORS;
	int r;

	if (mtftl_interrupted())
		return -EINTR;
	r = mtftl_rw_sync(ftl, REQ_OP_READ, zone * zone_blocks + at, search->buf, 1);
	/* The next try may read it: an older record is no answer yet. */
	if (r && !mtftl_medium_says(r))
		return r == -ENOMEM ? r : -EIO;
	if (r)
		return -ENODATA;
	r = mtftl_sb_parse(search->buf, search->found);
	if (r == -EPROTO)
		mtftl_err(ftl, "superblock in zone %u block %u: another version, incompat or map_entry_bytes, expected version %u, no features but %#x and %u bytes",
			  zone, at, MTFTL_VERSION, MTFTL_SB_OOB | MTFTL_SB_MAP_LOG,
			  (u32)MTFTL_MAP_ENTRY_BYTES);
	if (r == -EINVAL)
		mtftl_err(ftl, "superblock in zone %u block %u: %s is impossible, expected what fits its other fields",
			  zone, at, mtftl_sb_wrong(search->found));
	return r && r != -EPROTO && r != -EINVAL ? -ENODATA : r;
}

/* The newest record of one zone, from its write pointer backwards. -ENODATA: it has none. */
static int search_zone(struct mtftl *ftl, struct search *search, u32 zone, u32 wp)
{
	int r = -ENODATA;

	search->skipped = false;
	while (r && wp-- > 0) {
		r = read_record(ftl, search, zone, wp);
		if (r == -EPROTO || r == -EINVAL)
			search->refused = r;
		else if (r && r != -ENODATA)
			return r;
		if (r)
			search->skipped = true;
	}
	search->at = wp;
	return r ? -ENODATA : 0;
}

/*
 * The newest record that verifies. -ENODATA: there is none at all; -EPROTO: there is one that we do
 * not know; -EINVAL: one that contradicts itself.
 */
static int read_newest(struct mtftl *ftl, struct mtftl_sb_info *info, u32 *zone, u32 *wp,
		       enum mtftl_super_age *age)
{
	struct log_zone zones[MTFTL_NR_SB_ZONES] = {};
	bool behind = false, unknown = false;
	struct search search = {};
	int r;
	u32 z;

	static_assert(MTFTL_NR_SB_ZONES == 2);	/* log_go_round() goes to the other one */
	r = mtftl_report_all_zones(ftl, 0, MTFTL_NR_SB_ZONES, report_log_zone, zones);
	if (r)
		return r;
	search.buf = (void *)__get_free_page(GFP_NOIO);
	search.found = kzalloc_obj(*search.found, GFP_NOIO);
	r = search.buf && search.found ? 0 : -ENOMEM;
	info->generation = 0;
	for (z = 0; !r && z < MTFTL_NR_SB_ZONES; z++) {
		r = search_zone(ftl, &search, z, zones[z].usable ? zones[z].wp : 0);
		if (!r && search.found->generation > info->generation) {
			*info = *search.found;
			*zone = z;
			*wp = zones[z].wp;
			*age = search.at ? MTFTL_SUPER_NEWEST : MTFTL_SUPER_FIRST;
			behind = search.skipped;
		}
		unknown |= r == -ENODATA && search.skipped;
		if (r == -ENODATA)
			r = 0;
	}
	/*
	 * A block that cannot be read may be a newer record: then there is more to read. So may a
	 * zone that is offline, if the log had to go round to it. The log has left a zone whose
	 * record is older than the other zone's: behind that there is no newer one.
	 */
	if (info->generation && zones[*zone].wp == zones[*zone].capacity)
		unknown |= !zones[!*zone].usable;
	if (behind || unknown) {
		info->flags &= ~MTFTL_SB_CLEAN;
		*age = MTFTL_SUPER_OLDER;
	}
	r = r ?: search.refused;
	if (!r && !info->generation)
		r = -ENODATA;
	kfree(search.found);
	free_page((unsigned long)search.buf);
	return r;
}

int mtftl_super_load(struct mtftl *ftl)
{
	struct mtftl_super *super = ftl->super;
	int r = read_newest(ftl, &super->info, &super->zone, &super->wp, &super->age);

	if (r)
		return r;
	mtftl_assert(super->zone < MTFTL_NR_SB_ZONES && super->wp, "zone %u: wp %u", super->zone,
		     super->wp);
	super->clean = super->info.flags & MTFTL_SB_CLEAN;
	mtftl_seq_set_ckpt(ftl, super->info.ckpt_seq);
	return 0;
}

int mtftl_super_is_ours(struct mtftl *ftl, bool *ours)
{
	struct mtftl_sb_info *info = kzalloc_obj(*info, GFP_NOIO);
	const struct mtftl_sb_info *known = &ftl->super->info;
	enum mtftl_super_age age;
	u32 zone, wp;
	int r;

	if (!info)
		return -ENOMEM;
	r = read_newest(ftl, info, &zone, &wp, &age);
	/* Our newest record may be unreadable by now. Another writer adds one, or formats. */
	*ours = !r && info->generation <= known->generation &&
		!memcmp(info->uuid, known->uuid, sizeof(info->uuid));
	kfree(info);
	return r == -ENODATA || r == -EPROTO || r == -EINVAL ? 0 : r;
}

const struct mtftl_sb_info *mtftl_super_info(const struct mtftl *ftl)
{
	return &ftl->super->info;
}

void mtftl_super_distrust(struct mtftl *ftl)
{
	ftl->super->clean = false;
}

static int log_write(struct mtftl *ftl, void *buf)
{
	struct mtftl_super *super = ftl->super;
	u32 page = (super->zone << ftl->config.zone_shift) + super->wp;
	bool fua = bdev_fua(mtftl_bdev(ftl));
	int r;

	mtftl_assert(super->zone < MTFTL_NR_SB_ZONES && super->wp < ftl->config.capacity,
		     "zone %u: wp %u", super->zone, super->wp);
	super->wp++;
	r = mtftl_rw_sync(ftl, REQ_OP_WRITE | (fua ? REQ_FUA : 0), page, buf, 1);
	/* With REQ_FUA the kernel would send a flush of its own, and hide whether that failed. */
	return r || fua ? r : mtftl_flush_device(ftl, 0);
}

/*
 * After an error. If another program writes to the drive, the kernel fails our next write to that
 * zone, until its write pointer is asked for; or the zone is further than we know.
 */
static int log_write_again(struct mtftl *ftl, void *buf)
{
	struct mtftl_super *super = ftl->super;
	struct log_zone zone = {};
	int r;

	r = mtftl_report_zones(ftl, super->zone, 1, report_log_zone, &zone);
	if (r < 0)
		return r;
	if (!zone.writable) {
		mtftl_err(ftl, "superblock log: zone %u is read-only or offline, trying the other zone",
			  super->zone);
		return -EIO;
	}
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
	struct mtftl_super *super = ftl->super;
	struct mtftl_zone *other = mtftl_zone(ftl, !super->zone);
	int r, tries = 2;

	mtftl_assert(other->state == MTFTL_ZONE_SUPER && other->index != super->zone,
		     "zone %u: state %u", other->index, other->state);
	/* The newest record is in the zone that is left: one failed write is not the end. */
	do {
		r = mtftl_zone_mgmt(ftl, other->index, REQ_OP_ZONE_RESET);
		if (r)
			return r;
		other->erase_count++;
		super->zone = other->index;
		super->wp = 0;
		r = log_write(ftl, buf);
	} while (r && --tries);
	return r;
}

/* Makes @super->info the newest record, with @flags. */
static int append_record(struct mtftl *ftl, u16 flags)
{
	struct mtftl_super *super = ftl->super;
	void *buf = super->block;
	int r;

	lockdep_assert_held(&super->lock);
	/* The other zone may hold the only record that is left. */
	if (mtftl_is_read_only(ftl))
		return -EIO;
	/* First what it stands for; apart, so that a flush that failed is known. */
	r = mtftl_flush_device(ftl, 0);
	if (r) {
		mtftl_set_read_only(ftl, "the superblock log cannot be written");
		return r;
	}
	r = -ENOSPC;
	super->info.flags = flags;
	super->info.generation++;
	mtftl_sb_compose(buf, &super->info);
	mtftl_assert(!mtftl_sb_wrong(&super->info), "%s", mtftl_sb_wrong(&super->info));
	/* The next mount will read it. */
	mtftl_assert(!mtftl_sb_parse(buf, &super->back));
	if (super->wp < ftl->config.capacity) {
		r = log_write(ftl, buf);
		if (r)
			r = log_write_again(ftl, buf);
		/* It must not stay active: the device may have no room for another one then. */
		if (r)
			mtftl_zone_mgmt(ftl, super->zone, REQ_OP_ZONE_FINISH);
	} else if (ftl->config.capacity_unaligned) {
		mtftl_zone_mgmt(ftl, super->zone, REQ_OP_ZONE_FINISH);
	}
	if (r)
		r = log_go_round(ftl, buf);
	if (r)
		mtftl_set_read_only(ftl, "the superblock log cannot be written");
	else
		WRITE_ONCE(super->clean, flags & MTFTL_SB_CLEAN);
	return r;
}

void mtftl_super_finish_other(struct mtftl *ftl)
{
	struct mtftl_zone *other = mtftl_zone(ftl, !ftl->super->zone);

	if (other->wp && other->wp < ftl->config.capacity)
		mtftl_zone_mgmt(ftl, other->index, REQ_OP_ZONE_FINISH);
}

int mtftl_super_make_dirty(struct mtftl *ftl)
{
	int r = 0;

	if (!mtftl_send_begin(ftl))
		return -EAGAIN;
	mutex_lock(&ftl->super->lock);
	if (ftl->super->clean)
		r = append_record(ftl, 0);
	mutex_unlock(&ftl->super->lock);
	mtftl_send_end(ftl);
	return r;
}

int mtftl_super_checkpoint(struct mtftl *ftl, const struct mtftl_sb_info *named, bool clean)
{
	struct mtftl_sb_info *info = &ftl->super->info;
	u64 number = named->ckpt_seq;
	int r;

	if (!mtftl_send_begin(ftl))
		return -EAGAIN;
	mutex_lock(&ftl->super->lock);
	mtftl_assert(named->ckpt_blocks && named->ckpt_nr_zones, "%u zones", named->ckpt_nr_zones);
	mtftl_assert(number >= info->ckpt_seq && number <= mtftl_seq_last(ftl),
		     "number %llu after %llu", number, info->ckpt_seq);
	mtftl_sb_set_checkpoint(info, named);
	/* The record that points to it flushes before it is written. */
	r = append_record(ftl, clean ? MTFTL_SB_CLEAN : 0);
	if (!r)
		mtftl_seq_set_ckpt(ftl, number);
	mutex_unlock(&ftl->super->lock);
	mtftl_send_end(ftl);
	return r;
}

int mtftl_super_alloc(struct mtftl *ftl)
{
	struct mtftl_super *super = kzalloc_obj(*super, GFP_KERNEL);

	if (!super)
		return -ENOMEM;
	ftl->super = super;
	mutex_init(&super->lock);
	super->block = (void *)__get_free_page(GFP_KERNEL);
	return super->block ? 0 : -ENOMEM;
}

void mtftl_super_free(struct mtftl *ftl)
{
	if (!ftl->super)
		return;
	free_page((unsigned long)ftl->super->block);
	kfree(ftl->super);
	ftl->super = NULL;
}
