// SPDX-License-Identifier: GPL-2.0
/*
 * Commands that their caller waits for: see rw.h.
 */
#include "device/rw.h"

#include <linux/sched/mm.h>

#include "device/device.h"
#include "device/meta.h"
#include "device/seq.h"

static sector_t zone_sectors(const struct mtftl *ftl)
{
	return (sector_t)MTFTL_BLOCK_SECTORS << ftl->config.zone_shift;
}

static int rw(struct mtftl *ftl, blk_opf_t opf, sector_t sector, void *data, u32 nr, void *oob)
{
	struct mtftl_meta meta;
	struct bio_vec vec;
	unsigned long failures;
	struct bio bio;
	int r;

	mtftl_assert(nr && sector >= ftl->config.first_sector &&
		     (sector - ftl->config.first_sector) % zone_sectors(ftl) + nr <=
		     (sector_t)ftl->config.capacity * MTFTL_BLOCK_SECTORS,
		     "%u sectors at %llu", nr, (u64)sector);
	bio_init(&bio, mtftl_bdev(ftl), &vec, 1, opf);
	bio.bi_iter.bi_sector = sector;
	__bio_add_page(&bio, virt_to_page(data), nr << SECTOR_SHIFT, offset_in_page(data));
	if (op_is_write(opf) || oob)
		mtftl_meta_attach(&ftl->config, &bio, &meta, oob);
	/* The end of a pause may depend on what is read. */
	if (op_is_write(opf))
		mtftl_pause_heed(ftl);
	mtftl_count(ftl, asked, 1);
	failures = mtftl_seq_failures(ftl);
	r = submit_bio_wait(&bio);
	mtftl_count(ftl, answered, 1);
	/* The kernel takes the flag away if it thinks that the drive has no cache. */
	if (op_is_write(opf) && !(bio.bi_opf & REQ_FUA) && !r)
		mtftl_seq_landed(ftl, failures);
	if (op_is_write(opf) || oob)
		mtftl_meta_detach(&bio);
	bio_uninit(&bio);
	return r;
}

/* @data is from the page allocator. */
int mtftl_rw_sectors(struct mtftl *ftl, blk_opf_t opf, sector_t sector, void *data, u32 nr)
{
	return rw(ftl, opf, sector, data, nr, NULL);
}

/* With the blocks' metadata. @oob: within a page. */
int mtftl_read_oob(struct mtftl *ftl, u32 page, void *data, u32 nr_blocks, void *oob)
{
	return rw(ftl, REQ_OP_READ, mtftl_page_sector(ftl, page), data,
		  nr_blocks * MTFTL_BLOCK_SECTORS, oob);
}

int mtftl_rw_sync(struct mtftl *ftl, blk_opf_t opf, u32 page, void *data, u32 nr_blocks)
{
	return mtftl_rw_sectors(ftl, opf, mtftl_page_sector(ftl, page), data,
				nr_blocks * MTFTL_BLOCK_SECTORS);
}

int mtftl_zone_mgmt(struct mtftl *ftl, u32 zone, enum req_op op)
{
	unsigned int flags;
	int r;

	mtftl_pause_heed(ftl);
	mtftl_count(ftl, asked, 1);
	flags = memalloc_noio_save();
	r = blkdev_zone_mgmt(mtftl_bdev(ftl), op,
			     mtftl_page_sector(ftl, mtftl_zone_page(ftl, zone)), zone_sectors(ftl));
	memalloc_noio_restore(flags);
	mtftl_count(ftl, answered, 1);
	return r;
}

int mtftl_report_zones(struct mtftl *ftl, u32 zone, u32 nr, report_zones_cb note, void *data)
{
	return blkdev_report_zones(mtftl_bdev(ftl),
				   mtftl_page_sector(ftl, mtftl_zone_page(ftl, zone)), nr, note,
				   data);
}

static int note_condition(struct blk_zone *bz, unsigned int index, void *condition)
{
	*(u8 *)condition = bz->cond;
	return 0;
}

/* The condition that the device reports, or BLK_ZONE_COND_NOT_WP. The command takes memory. */
u8 mtftl_zone_condition(struct mtftl *ftl, u32 zone)
{
	unsigned int flags = memalloc_noio_save();
	u8 condition = BLK_ZONE_COND_NOT_WP;

	mtftl_report_zones(ftl, zone, 1, note_condition, &condition);
	memalloc_noio_restore(flags);
	return condition;
}

/* True: nothing in the zone can be read any more. */
bool mtftl_zone_is_offline(struct mtftl *ftl, u32 zone)
{
	return mtftl_zone_condition(ftl, zone) == BLK_ZONE_COND_OFFLINE;
}

/*
 * Does it answer at all? If not, an error says nothing about the place where it occurred: nothing
 * may be given up for it. Of the two superblock zones one block may be torn, not both. Users wait
 * for zones that GC cannot gain any more, and perhaps no write is under way that would fail: so the
 * device turns read-only here.
 */
bool mtftl_device_answers(struct mtftl *ftl, void *block)
{
	u32 zone;

	for (zone = 0; zone < MTFTL_NR_SB_ZONES; zone++)
		if (!mtftl_rw_sync(ftl, REQ_OP_READ, zone << ftl->config.zone_shift, block, 1))
			return true;
	mtftl_set_read_only(ftl, "the device does not answer");
	return false;
}
