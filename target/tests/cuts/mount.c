// SPDX-License-Identifier: GPL-2.0
/* The module's own mount on the host: see mount.h. What it leaves in memory goes with the process. */
#include <setjmp.h>

#include "device/device.h"
#include "device/rw.h"
#include "device/seq.h"
#include "durable/checkpoint.h"
#include "durable/recover.h"
#include "map/map.h"
#include "mount.h"
#include "zone/super.h"
#include "zone/zones.h"

#define MIN_LOG		4096u

static struct drive *drive;
static struct mtftl ftl;
static jmp_buf power_went;
static unsigned int writes, last_write, last_pages;

/* The drive */

sector_t bdev_zone_sectors(struct block_device *bdev)
{
	(void)bdev;
	return (sector_t)drive->media.shape.zone_blocks * MTFTL_BLOCK_SECTORS;
}

static u8 condition(const FlashImageZone *zone)
{
	if (zone->flags & FLASH_ZONE_OFFLINE)
		return BLK_ZONE_COND_OFFLINE;
	if (zone->flags & FLASH_ZONE_READ_ONLY)
		return BLK_ZONE_COND_READONLY;
	if (zone->flags & FLASH_ZONE_FINISHED || zone->wp == drive->media.shape.zone_cap)
		return BLK_ZONE_COND_FULL;
	return zone->wp ? BLK_ZONE_COND_IMP_OPEN : BLK_ZONE_COND_EMPTY;
}

int mtftl_report_zones(struct mtftl *of, u32 first, u32 nr, report_zones_cb note, void *data)
{
	sector_t size = bdev_zone_sectors(NULL);
	int r = 0;
	u32 i;

	(void)of;
	for (i = 0; !r && i < nr && first + i < drive->media.shape.nr_zones; i++) {
		const FlashImageZone *zone = &drive->media.zones[first + i];
		sector_t start = (first + i) * size;
		struct blk_zone bz = {
			.start = start, .len = size, .cond = condition(zone),
			.wp = start + zone->wp * MTFTL_BLOCK_SECTORS,
			.capacity = drive->media.shape.zone_cap * MTFTL_BLOCK_SECTORS,
		};

		r = note(&bz, i, data);
	}
	return r ?: (int)i;
}

/* True: in this change of the drive the power goes. */
static bool goes_now(void)
{
	return ++writes == last_write;
}

int mtftl_rw_sync(struct mtftl *of, blk_opf_t opf, u32 page, void *data, u32 nr)
{
	u32 zone = mtftl_page_zone(of, page), block = mtftl_page_offset(of, page);
	int r;

	if ((opf & 0xff) == REQ_OP_READ)
		return drive_read(drive, zone, block, nr, data, NULL);
	if (!goes_now())
		return drive_write(drive, zone, block, nr, data);
	/* Its first blocks are there. The others are torn, or were not begun. */
	r = min(nr, last_pages);
	if (r)
		drive_write(drive, zone, block, r, data);
	if (last_pages % 2 && (u32)r < nr)
		flash_media_begin(&drive->media, zone, block + r, nr - r);
	longjmp(power_went, 1);
}

int mtftl_rw_sectors(struct mtftl *of, blk_opf_t opf, sector_t sector, void *data, u32 nr)
{
	return mtftl_rw_sync(of, opf, sector / MTFTL_BLOCK_SECTORS, data, nr / MTFTL_BLOCK_SECTORS);
}

int mtftl_read_oob(struct mtftl *of, u32 page, void *data, u32 nr, void *oob)
{
	return drive_read(drive, mtftl_page_zone(of, page), mtftl_page_offset(of, page), nr, data, oob);
}

int mtftl_zone_mgmt(struct mtftl *of, u32 zone, enum req_op op)
{
	(void)of;
	if (goes_now()) {
		/* The zone is as it was, or the command was carried out. */
		if (last_pages % 2 && op == REQ_OP_ZONE_RESET)
			drive_reset(drive, zone);
		longjmp(power_went, 1);
	}
	return op == REQ_OP_ZONE_RESET ? drive_reset(drive, zone) : drive_finish(drive, zone);
}

void mtftl_space_send_begin(struct mtftl *of)
{
	(void)of;
}

bool mtftl_device_answers(struct mtftl *of, void *block)
{
	(void)of;
	(void)block;
	return true;
}

/* The mount */

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* As table.c does; with @tight few zones may be open. */
static void configure(struct mtftl_config *config, const struct mtftl_sb_info *info, bool tight)
{
	config->seed = mtftl_seed(info->uuid, info->key);
	config->logical_blocks = info->logical_blocks;
	config->header_blocks = !info->oob;
	config->budget.data_zones = tight ? 2 : info->nr_zones;
	config->device_in_zones = 8;
	config->checkpoint_after = max(2u * mtftl_ckpt_stream_blocks(info->nr_zones,
								     info->logical_blocks),
				       MIN_LOG);
}

static int load_super(void)
{
	const FlashShape *shape = &drive->media.shape;
	const struct mtftl_sb_info *info;
	int r;

	ftl.config = (struct mtftl_config) {
		.nr_zones = shape->nr_zones, .capacity = shape->zone_cap,
		.meta_size = shape->meta_size,
	};
	while (1u << ftl.config.zone_shift < shape->zone_blocks)
		ftl.config.zone_shift++;
	r = mtftl_super_alloc(&ftl) ?: mtftl_super_load(&ftl);
	if (r)
		return r;
	info = &ftl.super->info;
	return info->nr_zones == shape->nr_zones && info->zone_capacity == shape->zone_cap ? 0 : -EINVAL;
}

static int mount(bool tight)
{
	const struct mtftl_sb_info *info;
	int r = load_super();
	u32 i;

	if (r)
		return r;
	info = &ftl.super->info;
	configure(&ftl.config, info, tight);
	ftl.map->entries = must(malloc(info->logical_blocks * sizeof(*ftl.map->entries)));
	memset(ftl.map->entries, 0xff, info->logical_blocks * sizeof(*ftl.map->entries));
	ftl.map->changed = must(calloc(BITS_TO_LONGS(mtftl_map_chunks(&ftl)), sizeof(long)));
	ftl.map->zones = must(calloc(info->nr_zones, sizeof(*ftl.map->zones)));
	ftl.zones = must(calloc(1, sizeof(*ftl.zones) + info->nr_zones * sizeof(*ftl.zones->all)));
	ftl.space->state.zones[MTFTL_ZONE_EMPTY] = info->nr_zones;
	for (i = 0; i < info->nr_zones; i++) {
		mtftl_zone(&ftl, i)->ftl = &ftl;
		mtftl_zone(&ftl, i)->index = i;
	}
	r = mtftl_checkpoints_alloc(&ftl) ?: mtftl_recover(&ftl);
	if (!r && !mtftl_super_is_clean(&ftl) && !mtftl_is_read_only(&ftl))
		r = mtftl_checkpoint_mount(&ftl);
	/* As mount.c has it: what is there can be read. */
	return mtftl_is_read_only(&ftl) ? 0 : r;
}

bool mount_drive(struct drive *of, bool tight, unsigned int cut_at, unsigned int pages, int *error)
{
	static struct mtftl_cpu_stats stats;
	static struct dm_dev dm;

	drive = of;
	last_write = cut_at;
	last_pages = pages;
	writes = 0;
	ftl = (struct mtftl) {
		.device = must(calloc(1, sizeof(*ftl.device))),
		.seq = must(calloc(1, sizeof(*ftl.seq))),
		.map = must(calloc(1, sizeof(*ftl.map))),
		.space = must(calloc(1, sizeof(*ftl.space))),
	};
	*ftl.device = (struct mtftl_device) { .dm = &dm, .disk = "dm-0", .stats = &stats };
	*error = 0;
	if (setjmp(power_went))
		return false;
	*error = mount(tight);
	return true;
}

unsigned int mount_writes(void)
{
	return writes;
}

uint64_t mount_blocks(void)
{
	return ftl.config.logical_blocks;
}

enum block_state mount_find(uint64_t lba, uint32_t *zone, uint32_t *block)
{
	u32 page = mtftl_map_look(&ftl, lba);

	if (page == MTFTL_MAP_UNMAPPED)
		return BLOCK_UNMAPPED;
	if (page == MTFTL_MAP_LOST || mtftl_page_zone(&ftl, page) >= ftl.config.nr_zones)
		return BLOCK_LOST;
	*zone = mtftl_page_zone(&ftl, page);
	*block = mtftl_page_offset(&ftl, page);
	return BLOCK_READABLE;
}
