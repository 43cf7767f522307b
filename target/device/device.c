// SPDX-License-Identifier: GPL-2.0
/*
 * The drive below: see device.h.
 */
#include "device/device.h"

#include <linux/slab.h>

#include "device/meta.h"

#define NR_COUNTERS	(sizeof(struct mtftl_cpu_stats) / sizeof(u64))

int mtftl_device_open(struct mtftl *ftl, struct dm_target *ti, const char *path)
{
	struct mtftl_device *device = kzalloc(sizeof(*device), GFP_KERNEL);
	int r;

	if (device)
		device->stats = alloc_percpu(struct mtftl_cpu_stats);
	ftl->device = device;
	if (!device || !device->stats) {
		ti->error = "Out of memory";
		return -ENOMEM;
	}
	device->ti = ti;
	init_waitqueue_head(&device->unsilenced);
	device->disk = dm_disk(dm_table_get_md(ti->table))->disk_name;
	r = dm_get_device(ti, path, dm_table_get_mode(ti->table), &device->dm);
	if (r) {
		ti->error = "Cannot open the device";
		return r;
	}
	device->bdev = device->dm->bdev;
	return 0;
}

void mtftl_device_close(struct mtftl *ftl, struct dm_target *ti)
{
	struct mtftl_device *device = ftl->device;

	if (!device)
		return;
	free_percpu(device->stats);
	if (device->dm)
		dm_put_device(ti, device->dm);
	kfree(device);
	ftl->device = NULL;
}

/* For a mount. */
int mtftl_device_prepare(struct mtftl *ftl)
{
	int r = init_srcu_struct(&ftl->device->readers);

	ftl->device->readers_counted = !r;
	return r;
}

void mtftl_device_unprepare(struct mtftl *ftl)
{
	if (ftl->device->readers_counted)
		cleanup_srcu_struct(&ftl->device->readers);
	ftl->device->readers_counted = false;
	memset(&ftl->device->turned_read_only, 0, sizeof(ftl->device->turned_read_only));
}

/* Everybody who looked the map up before this call has got his answer. Sleeps. */
void mtftl_wait_readers(struct mtftl *ftl)
{
	/* Not the other kind: that takes several ticks, for a few microseconds of CPU. */
	synchronize_srcu_expedited(&ftl->device->readers);
}

/* Counters */

void mtftl_stats_sum(struct mtftl *ftl, struct mtftl_cpu_stats *sum)
{
	u64 *out = (u64 *)sum;
	unsigned int cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu)
		for (i = 0; i < NR_COUNTERS; i++)
			out[i] += ((u64 *)per_cpu_ptr(ftl->device->stats, cpu))[i];
}

/* Of the counter at @offset in struct mtftl_cpu_stats. */
static u64 sum(const struct mtftl *ftl, size_t offset)
{
	unsigned int cpu;
	u64 all = 0;

	for_each_possible_cpu(cpu)
		all += READ_ONCE(*(u64 *)((void *)per_cpu_ptr(ftl->device->stats, cpu) + offset));
	return all;
}

/* Writes that the device says it has: those before a flush are what that covers. */
u64 mtftl_taken(struct mtftl *ftl)
{
	return sum(ftl, offsetof(struct mtftl_cpu_stats, taken));
}

bool mtftl_stats_are_even(const struct mtftl *ftl, size_t begun, size_t ended)
{
	u64 all = sum(ftl, ended);

	/* Ends first: one that begins and ends meanwhile must not hide one that is under way. */
	smp_rmb();
	return sum(ftl, begun) == all;
}

/* The device executes an erase, a flush, a read of GC or a command that something waits for. */
bool mtftl_device_is_at_work(const struct mtftl *ftl)
{
	return !mtftl_stats_are_even(ftl, offsetof(struct mtftl_cpu_stats, asked),
				     offsetof(struct mtftl_cpu_stats, answered));
}

/* What it may be asked for */

/* Once and for all: acknowledged data stays readable, whoever waits gets an error. */
void mtftl_set_read_only(struct mtftl *ftl, const char *why)
{
	if (xchg(&ftl->device->read_only, 1))
		return;
	mtftl_err(ftl, "read-only: %s", why);
	mtftl_event_tell(&ftl->device->turned_read_only, ftl);
	mtftl_event_tell(&ftl->device->news, ftl);
}

/* A mount begins. */
void mtftl_device_begin(struct mtftl *ftl, bool read_only)
{
	WRITE_ONCE(ftl->device->read_only, read_only);
}

/* A mount ends: units that failed do not look for another place any more. */
void mtftl_device_give_up(struct mtftl *ftl)
{
	WRITE_ONCE(ftl->device->read_only, true);
}

void mtftl_device_give_back(struct mtftl *ftl, bool give_back)
{
	WRITE_ONCE(ftl->device->giving_back, give_back);
}

/*
 * A signal ends a suspend before we hear of it. Device-mapper sends the bios again by then, and
 * would fail those that are given back once more.
 */
bool mtftl_device_gives_back(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->device->giving_back) && dm_noflush_suspending(ftl->device->ti);
}

/* With noflush device-mapper sends it again after the resume. */
void mtftl_give_back(struct bio *bio)
{
	bio->bi_status = BLK_STS_DM_REQUEUE;
	bio_endio(bio);
}

/* I/O */

void mtftl_device_heed_pause(struct mtftl *ftl)
{
	wait_event_idle(ftl->device->unsilenced, !READ_ONCE(ftl->device->silent));
}

static int rw(struct mtftl *ftl, blk_opf_t opf, sector_t sector, void *data, u32 nr, void *oob)
{
	struct mtftl_meta meta;
	struct bio_vec vec;
	struct bio bio;
	int r;

	bio_init(&bio, ftl->device->bdev, &vec, 1, opf);
	bio.bi_iter.bi_sector = sector;
	__bio_add_page(&bio, virt_to_page(data), nr << SECTOR_SHIFT, offset_in_page(data));
	if (op_is_write(opf) || oob)
		mtftl_meta_attach(&ftl->config, &bio, &meta, oob);
	/* The end of a pause may depend on what is read. */
	if (op_is_write(opf))
		mtftl_device_heed_pause(ftl);
	mtftl_count(ftl, asked, 1);
	r = submit_bio_wait(&bio);
	mtftl_count(ftl, answered, 1);
	if (op_is_write(opf) && !r)
		mtftl_count(ftl, taken, 1);
	if (op_is_write(opf) || oob)
		mtftl_meta_detach(&bio);
	bio_uninit(&bio);
	return r;
}

/* For what is not in the hot path. @data is from the page allocator. */
int mtftl_rw_sectors(struct mtftl *ftl, blk_opf_t opf, sector_t sector, void *data, u32 nr)
{
	return rw(ftl, opf, sector, data, nr, NULL);
}

/* With the blocks' metadata. @oob: within a page. */
int mtftl_read_oob(struct mtftl *ftl, u32 page, void *data, u32 nr_blocks, void *oob)
{
	return rw(ftl, REQ_OP_READ, mtftl_page_sector(page), data, nr_blocks * MTFTL_BLOCK_SECTORS,
		  oob);
}

int mtftl_rw_sync(struct mtftl *ftl, blk_opf_t opf, u32 page, void *data, u32 nr_blocks)
{
	return mtftl_rw_sectors(ftl, opf, mtftl_page_sector(page), data,
				nr_blocks * MTFTL_BLOCK_SECTORS);
}

int mtftl_zone_mgmt(struct mtftl *ftl, u32 zone, enum req_op op)
{
	sector_t sectors = mtftl_page_sector(mtftl_zone_page(ftl, 1));
	int r;

	mtftl_device_heed_pause(ftl);
	mtftl_count(ftl, asked, 1);
	r = mtftl_compat_zone_mgmt(ftl->device->bdev, op, zone * sectors, sectors);
	mtftl_count(ftl, answered, 1);
	return r;
}

static int note_condition(struct blk_zone *bz, unsigned int index, void *condition)
{
	*(u8 *)condition = bz->cond;
	return 0;
}

/*
 * The condition that the device reports, or BLK_ZONE_COND_NOT_WP. Asks it, which may take memory.
 */
u8 mtftl_zone_condition(struct mtftl *ftl, u32 zone)
{
	unsigned int flags = memalloc_noio_save();
	u8 condition = BLK_ZONE_COND_NOT_WP;

	blkdev_report_zones(ftl->device->bdev, mtftl_page_sector(mtftl_zone_page(ftl, zone)), 1,
			    note_condition, &condition);
	memalloc_noio_restore(flags);
	return condition;
}

/* True: nothing in the zone can be read any more. */
bool mtftl_zone_is_offline(struct mtftl *ftl, u32 zone)
{
	return mtftl_zone_condition(ftl, zone) == BLK_ZONE_COND_OFFLINE;
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
		if (!mtftl_rw_sync(ftl, REQ_OP_READ, zone << ftl->config.zone_shift, block, 1))
			return true;
	mtftl_set_read_only(ftl, "the device does not answer");
	return false;
}
