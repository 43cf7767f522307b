// SPDX-License-Identifier: GPL-2.0
/* The drive below the module's own code: see fuzz_kernel.h. */
#include "device/device.h"
#include "device/rw.h"
#include "fuzz.h"
#include "fuzz_kernel.h"
#include "zone/zones.h"

struct sparse_image fuzz_image;

void fuzz_kernel_config(struct mtftl_config *config)
{
	*config = (struct mtftl_config) {
		.nr_zones = fuzz_image.flash.nr_zones,
		.capacity = fuzz_image.flash.zone_capacity,
		.capacity_unaligned = fuzz_image.small_blocks,
		.meta_size = fuzz_image.meta_size,
	};
	while (1u << config->zone_shift < fuzz_image.flash.zone_blocks)
		config->zone_shift++;
}

sector_t bdev_zone_sectors(struct block_device *bdev)
{
	(void)bdev;
	return (sector_t)fuzz_image.flash.zone_blocks * MTFTL_BLOCK_SECTORS;
}

static struct blk_zone report_of(u32 index)
{
	static const u8 conditions[] = {
		[FLASH_EMPTY] = BLK_ZONE_COND_EMPTY, [FLASH_OPEN] = BLK_ZONE_COND_IMP_OPEN,
		[FLASH_FULL] = BLK_ZONE_COND_FULL, [FLASH_READONLY] = BLK_ZONE_COND_READONLY,
		[FLASH_OFFLINE] = BLK_ZONE_COND_OFFLINE,
	};
	const struct flash_zone *zone = &fuzz_image.zones[index];
	sector_t start = index * bdev_zone_sectors(NULL);

	return (struct blk_zone) {
		.start = start,
		.len = bdev_zone_sectors(NULL),
		.wp = start + (sector_t)zone->wp * MTFTL_BLOCK_SECTORS + zone->torn_sectors,
		.capacity = (sector_t)fuzz_image.flash.zone_capacity * MTFTL_BLOCK_SECTORS +
			    (fuzz_image.small_blocks ? MTFTL_BLOCK_SECTORS - 1 : 0),
		.cond = conditions[zone->cond],
	};
}

int mtftl_report_zones(struct mtftl *ftl, u32 first, u32 nr, report_zones_cb note, void *data)
{
	u32 i;
	int r;

	(void)ftl;
	for (i = 0; i < nr && first + i < fuzz_image.flash.nr_zones; i++) {
		struct blk_zone zone = report_of(first + i);

		r = note(&zone, i, data);
		if (r)
			return r;
	}
	return i;
}

/* No read may leave its zone or ask for nothing. */
static int read_blocks(u32 page, u8 *data, u32 nr, u8 *oob)
{
	u32 zone = page / fuzz_image.flash.zone_blocks, offset = page % fuzz_image.flash.zone_blocks;
	u32 capacity = fuzz_image.flash.zone_capacity, i;
	struct mtftl_oob of_block = { 0 };
	int r = 0;

	fuzz_assert(zone < fuzz_image.flash.nr_zones && nr > 0);
	fuzz_assert(offset < capacity && nr <= capacity - offset);
	if (fuzz_image.zones[zone].cond == FLASH_OFFLINE)
		return -EIO;
	if (oob)
		memset(oob, 0, (size_t)nr * fuzz_image.meta_size);
	for (i = 0; i < nr && !r; i++, data += MTFTL_BLOCK_SIZE) {
		if (offset + i >= fuzz_image.zones[zone].wp) {
			memset(data, 0, MTFTL_BLOCK_SIZE);
			continue;
		}
		r = sparse_block(&fuzz_image, page + i, data, &of_block);
		if (oob)
			memcpy(oob + (size_t)i * fuzz_image.meta_size, &of_block, sizeof(of_block));
	}
	return r;
}

void mtftl_space_send_begin(struct mtftl *ftl)
{
}

int mtftl_rw_sync(struct mtftl *ftl, blk_opf_t opf, u32 page, void *data, u32 nr)
{
	u32 offset = page % fuzz_image.flash.zone_blocks;

	(void)ftl;
	if ((opf & 0xff) == REQ_OP_READ)
		return read_blocks(page, data, nr, NULL);
	fuzz_assert(page / fuzz_image.flash.zone_blocks < fuzz_image.flash.nr_zones && nr > 0);
	fuzz_assert(offset + nr <= fuzz_image.flash.zone_capacity);
	return 0;
}

int mtftl_read_oob(struct mtftl *ftl, u32 page, void *data, u32 nr, void *oob)
{
	(void)ftl;
	fuzz_assert(fuzz_image.meta_size >= sizeof(struct mtftl_oob));
	return read_blocks(page, data, nr, oob);
}

void fuzz_kernel_seen(void *private, enum mtftl_unit_type type, u32 header, u32 index, u64 lba)
{
	const struct mtftl_zone *zone = private;
	const struct mtftl_config *config = &zone->ftl->config;
	u32 offset = header - mtftl_zone_start(zone);

	(void)lba;
	fuzz_assert(header >= mtftl_zone_start(zone) && offset < config->capacity);
	if (type != MTFTL_UNIT_RANGES)
		fuzz_assert(index < config->capacity - offset &&
			    config->header_blocks + index < config->capacity - offset);
}
