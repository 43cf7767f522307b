// SPDX-License-Identifier: GPL-2.0
/*
 * The module's own recovery on any image, and GC's walk of each zone: what the target does before it has
 * seen that anything verifies. No read may leave its zone or ask for nothing; and where recovery
 * succeeds, no map entry may point where nothing was written.
 */
#include "checkpoint.h"
#include "device.h"
#include "fuzz.h"
#include "image.h"
#include "log.h"
#include "map.h"
#include "recover.h"
#include "seq.h"
#include "sparse.h"
#include "stream.h"
#include "walk.h"
#include "zone.h"

static struct sparse_image image;

/* The device */

sector_t bdev_zone_sectors(struct block_device *bdev)
{
	(void)bdev;
	return IMAGE_ZONE_BLOCKS * MTFTL_BLOCK_SECTORS;
}

int blkdev_report_zones(struct block_device *bdev, sector_t sector, unsigned int nr,
			int (*report)(struct blk_zone *zone, unsigned int index, void *data),
			void *data)
{
	static const u8 conditions[] = {
		[FLASH_EMPTY] = BLK_ZONE_COND_EMPTY, [FLASH_OPEN] = BLK_ZONE_COND_IMP_OPEN,
		[FLASH_FULL] = BLK_ZONE_COND_FULL, [FLASH_READONLY] = BLK_ZONE_COND_READONLY,
		[FLASH_OFFLINE] = BLK_ZONE_COND_OFFLINE,
	};
	u32 i;
	int r;

	(void)bdev;
	(void)sector;
	for (i = 0; i < nr && i < IMAGE_ZONES; i++) {
		struct blk_zone zone = {
			.start = i * bdev_zone_sectors(bdev),
			.wp = i * bdev_zone_sectors(bdev) + image.zones[i].wp * MTFTL_BLOCK_SECTORS,
			.capacity = IMAGE_CAPACITY * MTFTL_BLOCK_SECTORS,
			.cond = conditions[image.zones[i].cond],
		};

		r = report(&zone, i, data);
		if (r)
			return r;
	}
	return i;
}

int mtftl_rw_sync(struct mtftl *ftl, blk_opf_t opf, u32 page, void *data, u32 nr)
{
	u32 zone = page / IMAGE_ZONE_BLOCKS, offset = page % IMAGE_ZONE_BLOCKS, i;

	(void)ftl;
	fuzz_assert(zone < IMAGE_ZONES && nr > 0 && offset + nr <= IMAGE_CAPACITY);
	if ((opf & 0xff) == REQ_OP_WRITE)
		return 0;
	if (image.zones[zone].cond == FLASH_OFFLINE)
		return -EIO;
	memset(data, 0, nr * MTFTL_BLOCK_SIZE);
	for (i = 0; i < nr && offset + i < image.zones[zone].wp; i++)
		sparse_block(&image, page + i, (u8 *)data + i * MTFTL_BLOCK_SIZE);
	return 0;
}

int mtftl_read_oob(struct mtftl *ftl, u32 page, void *data, u32 nr, void *oob)
{
	u32 written = image.zones[page / IMAGE_ZONE_BLOCKS].wp, i;
	struct mtftl_oob *to = oob;

	memset(to, 0, nr * sizeof(*to));
	for (i = 0; i < nr && page % IMAGE_ZONE_BLOCKS + i < written; i++)
		to[i] = image.blocks[page + i].oob;
	return mtftl_rw_sync(ftl, REQ_OP_READ, page, data, nr);
}

int mtftl_rw_sectors(struct mtftl *ftl, blk_opf_t opf, sector_t sector, void *data, u32 nr)
{
	(void)ftl;
	(void)opf;
	(void)sector;
	(void)data;
	(void)nr;
	return 0;
}

bool mtftl_device_answers(struct mtftl *ftl, void *block)
{
	(void)ftl;
	(void)block;
	return true;
}

int mtftl_zone_mgmt(struct mtftl *ftl, u32 zone, enum req_op op)
{
	(void)ftl;
	(void)zone;
	(void)op;
	return 0;
}

void mtftl_set_read_only(struct mtftl *ftl, const char *why)
{
	(void)why;
	ftl->device->read_only = true;
}

/* What the rest of the module does for recovery */

void mtftl_seq_go_on(struct mtftl *ftl, u64 last, u64 durable)
{
	atomic64_set(&ftl->seq->last, last);
	ftl->seq->durable = durable;
}

void mtftl_seq_set_ckpt(struct mtftl *ftl, u64 number)
{
	ftl->seq->ckpt = number;
}

u64 mtftl_seq_before_apart(struct mtftl *ftl, u64 drawn)
{
	(void)ftl;
	return drawn;
}

int mtftl_flush_device(struct mtftl *ftl, u64 drawn)
{
	(void)ftl;
	(void)drawn;
	return 0;
}

void mtftl_zone_set_state(struct mtftl_zone *zone, enum mtftl_zone_state state)
{
	zone->ftl->zones->count[zone->state]--;
	zone->state = state;
	zone->ftl->zones->count[state]++;
}

void mtftl_zone_finish_broken(struct mtftl_zone *zone)
{
	zone->broken = true;
}

u32 mtftl_zone_replace(struct mtftl *ftl, u32 index)
{
	(void)ftl;
	(void)index;
	return U32_MAX;
}

void mtftl_streams_on_open(struct mtftl *ftl, void (*heard)(struct mtftl *ftl))
{
	(void)ftl;
	(void)heard;
}

int mtftl_flush_sync(struct mtftl *ftl)
{
	(void)ftl;
	return 0;
}

void mtftl_map_durable(struct mtftl *ftl, u32 lba, u32 nr, __le32 *out)
{
	u32 i;

	for (i = 0; i < nr; i++)
		out[i] = cpu_to_le32(mtftl_map_look(ftl, lba + i));
}

/* The test */

static void seen(void *private, enum mtftl_unit_type type, u32 header, u32 index, u64 lba)
{
	u32 zone = *(u32 *)private;

	(void)type;
	(void)lba;
	fuzz_assert(header / IMAGE_ZONE_BLOCKS == zone);
	fuzz_assert(header % IMAGE_ZONE_BLOCKS + index < IMAGE_CAPACITY);
}

static void check_map(const struct mtftl *ftl)
{
	u64 i;

	for (i = 0; i < ftl->config.logical_blocks; i++) {
		const struct flash_zone *zone;
		u32 page = mtftl_map_look(ftl, i);

		if (page == MTFTL_MAP_UNMAPPED || page == MTFTL_MAP_LOST)
			continue;
		fuzz_assert(page / IMAGE_ZONE_BLOCKS < IMAGE_ZONES);
		zone = &image.zones[page / IMAGE_ZONE_BLOCKS];
		fuzz_assert(zone->cond == FLASH_OFFLINE ||
			    mtftl_zone(ftl, page / IMAGE_ZONE_BLOCKS)->state == MTFTL_ZONE_BAD ||
			    page % IMAGE_ZONE_BLOCKS < zone->wp);
	}
}

static void walk(struct mtftl *ftl)
{
	void *buf = malloc(MTFTL_BLOCK_SIZE << MTFTL_BUFFER_ORDER);
	void *stream = malloc((size_t)MTFTL_BLOCK_SIZE *
			      mtftl_footer_stream_blocks(IMAGE_CAPACITY, !ftl->config.head));
	struct mtftl_reader *reader = mtftl_reader_alloc(ftl, GFP_KERNEL);
	u32 i;

	for (i = MTFTL_NR_SB_ZONES; i < IMAGE_ZONES; i++)
		if (mtftl_zone(ftl, i)->state == MTFTL_ZONE_FULL)
			mtftl_zone_walk(mtftl_zone(ftl, i), reader, buf, stream, seen, &i);
	mtftl_reader_free(reader);
	free(stream);
	free(buf);
}

static bool geometry_is_ours(const struct mtftl_sb_info *info)
{
	return info->nr_zones == IMAGE_ZONES && info->zone_blocks == IMAGE_ZONE_BLOCKS &&
	       info->zone_capacity == IMAGE_CAPACITY;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct mtftl_cpu_stats stats;
	static struct dm_dev dm;
	struct mtftl_device device = { .dm = &dm, .stats = &stats };
	struct mtftl_map map = { };
	struct mtftl_seq seq = { };
	struct mtftl ftl = {
		.config = {
			.nr_zones = IMAGE_ZONES, .capacity = IMAGE_CAPACITY, .zone_shift = 7,
			.budget.data_zones = 2, .turn = 8,
		},
		.device = &device, .seq = &seq, .map = &map,
	};
	u32 i;

	_Static_assert(IMAGE_ZONE_BLOCKS == 1u << 7, "zone_shift");
	if (size < 2 * IMAGE_ZONES)
		return 0;
	sparse_load(&image, data, size);
	fuzz_assert(!mtftl_log_alloc(&ftl));
	if (mtftl_log_load(&ftl) || !geometry_is_ours(&ftl.log->info)) {
		mtftl_log_free(&ftl);
		return 0;
	}
	ftl.config.seed = mtftl_seed(ftl.log->info.uuid, ftl.log->info.key);
	ftl.config.logical_blocks = ftl.log->info.logical_blocks;
	ftl.config.head = !ftl.log->info.oob;
	ftl.config.meta_size = sizeof(struct mtftl_oob);
	map.entries = malloc(ftl.config.logical_blocks * sizeof(*map.entries));
	memset(map.entries, 0xff, ftl.config.logical_blocks * sizeof(*map.entries));
	map.zones = calloc(IMAGE_ZONES, sizeof(*map.zones));
	ftl.zones = calloc(1, sizeof(*ftl.zones) + IMAGE_ZONES * sizeof(*ftl.zones->all));
	ftl.zones->count[MTFTL_ZONE_EMPTY] = IMAGE_ZONES;
	for (i = 0; i < IMAGE_ZONES; i++) {
		mtftl_zone(&ftl, i)->ftl = &ftl;
		mtftl_zone(&ftl, i)->index = i;
	}
	fuzz_assert(!mtftl_checkpoints_alloc(&ftl));
	if (!mtftl_recover(&ftl)) {
		check_map(&ftl);
		walk(&ftl);
	}
	mtftl_checkpoints_free(&ftl);
	mtftl_log_free(&ftl);
	free(ftl.zones);
	free(map.zones);
	free(map.entries);
	return 0;
}
