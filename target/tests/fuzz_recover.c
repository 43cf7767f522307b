// SPDX-License-Identifier: GPL-2.0
/*
 * The module's own recovery on any image, and GC's walk of each zone: what the target does before it has
 * seen that anything verifies. No read may leave its zone or ask for nothing; and where recovery
 * succeeds, no map entry may point where nothing was written. Then the tool rebuilds the image: the
 * module must mount that, with the map that the tool finds in it.
 */
#include "device/device.h"
#include "device/rw.h"
#include "device/seq.h"
#include "durable/checkpoint.h"
#include "durable/recover.h"
#include "fuzz_kernel.h"
#include "map/map.h"
#include "rebuild.h"
#include "replay.h"
#include "super.h"
#include "zone/stream.h"
#include "zone/super.h"
#include "zone/walk.h"
#include "zone/zones.h"

/* The device: the rest is in fuzz_kernel.c */

int mtftl_rw_sectors(struct mtftl *ftl, blk_opf_t opf, sector_t sector, void *data, u32 nr)
{
	u32 page = sector / MTFTL_BLOCK_SECTORS, zone = page / fuzz_image.flash.zone_blocks;
	const struct flash_zone *state = &fuzz_image.zones[zone];

	(void)ftl;
	fuzz_assert(zone < fuzz_image.flash.nr_zones && state->wp < fuzz_image.flash.zone_capacity);
	fuzz_assert(page % fuzz_image.flash.zone_blocks == state->wp);
	if ((opf & 0xff) != REQ_OP_READ)
		return 0;
	fuzz_assert(sector % MTFTL_BLOCK_SECTORS == 0 && nr == state->torn_sectors);
	return sparse_torn_block(&fuzz_image, zone, data);
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

/* The test */

#define LOGICAL_MOST	(1u << 16)	/* else the map would take all the time */
#define MIN_LOG		4096u		/* as table.c has it */

static void check_map(const struct mtftl *ftl)
{
	u32 blocks = fuzz_image.flash.zone_blocks;
	u64 i;

	for (i = 0; i < ftl->config.logical_blocks; i++) {
		const struct flash_zone *zone;
		u32 page = mtftl_map_look(ftl, i);

		if (page == MTFTL_MAP_UNMAPPED || page == MTFTL_MAP_LOST)
			continue;
		fuzz_assert(page / blocks < ftl->config.nr_zones);
		zone = &fuzz_image.zones[page / blocks];
		fuzz_assert(zone->cond == FLASH_OFFLINE ||
			    mtftl_zone(ftl, page / blocks)->state == MTFTL_ZONE_BAD ||
			    page % blocks < zone->wp);
	}
}

/* Walks as GC does, with as much memory as GC has. */
static void walk(struct mtftl *ftl)
{
	void *buf = malloc(MTFTL_BUFFER_BLOCKS * MTFTL_BLOCK_SIZE);
	void *stream = malloc((size_t)MTFTL_BLOCK_SIZE *
			mtftl_footer_stream_blocks(ftl->config.capacity,
						   !ftl->config.header_blocks));
	struct mtftl_scanner *scanner = mtftl_scanner_alloc(ftl, GFP_KERNEL);
	jmp_buf give_up;
	u32 i;

	/* Reads of recovery do not count. */
	sparse_allow(&fuzz_image, SPARSE_READS / 4);
	fuzz_image.give_up = &give_up;
	if (!setjmp(give_up))
		for (i = MTFTL_NR_SB_ZONES; i < ftl->config.nr_zones; i++)
			if (mtftl_zone(ftl, i)->state == MTFTL_ZONE_FULL)
				mtftl_zone_walk(mtftl_zone(ftl, i), scanner, buf, stream,
						fuzz_kernel_seen, mtftl_zone(ftl, i));
	fuzz_assert(!sparse_asked_too_much(&fuzz_image));
	mtftl_scanner_free(scanner);
	free(stream);
	free(buf);
}

/* As mtftl_table_check_super() does. */
static bool fits(const struct mtftl_config *config, const struct mtftl_sb_info *info)
{
	return info->nr_zones == config->nr_zones && info->zone_blocks == 1u << config->zone_shift &&
	       info->zone_capacity == config->capacity && info->logical_blocks <= LOGICAL_MOST &&
	       (!info->oob || config->meta_size >= sizeof(struct mtftl_oob));
}

static void configure(struct mtftl_config *config, const struct mtftl_sb_info *info)
{
	config->seed = mtftl_seed(info->uuid, info->key);
	config->logical_blocks = info->logical_blocks;
	config->header_blocks = !info->oob;
	config->budget.data_zones = 2;
	config->device_in_zones = 8;
	config->checkpoint_after = max(2u * mtftl_ckpt_stream_blocks(info->nr_zones,
								     info->logical_blocks),
				       MIN_LOG);
}

/* @found: the map of an image that the tool has rebuilt; NULL: any image. Returns what recovery does. */
static int recover(struct mtftl *ftl, const u32 *found)
{
	static struct mtftl_zones *zones;
	u32 nr_zones = ftl->config.nr_zones, i;
	int r;

	ftl->map->entries = malloc(ftl->config.logical_blocks * sizeof(*ftl->map->entries));
	memset(ftl->map->entries, 0xff, ftl->config.logical_blocks * sizeof(*ftl->map->entries));
	ftl->map->changed = calloc(BITS_TO_LONGS(mtftl_map_chunks(ftl)), sizeof(long));
	ftl->map->zones = calloc(nr_zones, sizeof(*ftl->map->zones));
	if (!zones)
		zones = malloc(sizeof(*zones) + FUZZ_MAX_ZONES * sizeof(*zones->all));
	memset(zones, 0, sizeof(*zones) + nr_zones * sizeof(*zones->all));
	ftl->zones = zones;
	ftl->space->state.zones[MTFTL_ZONE_EMPTY] = nr_zones;
	for (i = 0; i < nr_zones; i++) {
		mtftl_zone(ftl, i)->ftl = ftl;
		mtftl_zone(ftl, i)->index = i;
	}
	fuzz_assert(!mtftl_checkpoints_alloc(ftl));
	r = mtftl_recover(ftl);
	fuzz_assert(!sparse_asked_too_much(&fuzz_image));
	if (found && !sparse_is_exhausted(&fuzz_image)) {
		fuzz_assert(!r);
		for (i = 0; i < ftl->config.logical_blocks; i++)
			fuzz_assert(mtftl_map_look(ftl, i) == found[i]);
	}
	if (!r && !found) {
		check_map(ftl);
		walk(ftl);
	}
	mtftl_checkpoints_free(ftl);
	free(ftl->map->zones);
	free(ftl->map->entries);
	free(ftl->map->changed);
	return r;
}

static int mount(const u32 *found)
{
	static struct mtftl_cpu_stats stats;
	static struct dm_dev dm;
	struct mtftl_device device = { .dm = &dm, .disk = "dm-0", .stats = &stats };
	struct mtftl_map map = { };
	struct mtftl_seq seq = { };
	struct mtftl_space space = { };
	struct mtftl ftl = { .device = &device, .seq = &seq, .map = &map, .space = &space };
	int r = 0;

	fuzz_kernel_config(&ftl.config);
	fuzz_assert(!mtftl_super_alloc(&ftl));
	if (!mtftl_super_load(&ftl) && fits(&ftl.config, &ftl.super->info)) {
		configure(&ftl.config, &ftl.super->info);
		r = recover(&ftl, found);
	}
	mtftl_super_free(&ftl);
	return r;
}

static void rebuild(void)
{
	struct report report = { .quiet = true };
	struct replay replay = { .flash = &fuzz_image.flash, .report = &report };
	struct rebuild_totals totals;
	static struct super super;

	if (super_find(&fuzz_image.flash, &super) || super.info.logical_blocks > LOGICAL_MOST ||
	    rebuild_flash(&fuzz_image.flash, &report, true, &totals) || !totals.missing)
		return;
	sparse_allow(&fuzz_image, SPARSE_READS);
	fuzz_assert(!super_find(&fuzz_image.flash, &super));
	replay_from(&replay, &super);
	if (!replay_run(&replay)) {
		sparse_allow(&fuzz_image, SPARSE_READS);
		mount(replay.map);
	}
	replay_free(&replay);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	if (!sparse_load(&fuzz_image, data, size))
		return 0;
	/* The tool has nothing to rebuild where the module mounts; and it reads all several times. */
	if (mount(NULL) && fuzz_image.below < SPARSE_READS / 4) {
		sparse_load(&fuzz_image, data, size);
		rebuild();
	}
	return 0;
}
