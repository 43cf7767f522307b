// SPDX-License-Identifier: GPL-2.0
/*
 * mtftl dump: what is on the media, as JSON. Tells what it finds and judges nothing;
 * the key of the checksums is left out.
 */
#include <getopt.h>
#include <stdlib.h>
#include <uuid/uuid.h>

#include "device.h"
#include "json.h"
#include "mtftl.h"
#include "replay.h"
#include "scan.h"
#include "super.h"

#define WINDOW_BLOCKS	8
#define NR_TYPES	(MTFTL_UNIT_MAP + 1)

static const char *const type_names[NR_TYPES] = {
	[MTFTL_UNIT_DATA] = "data",	[MTFTL_UNIT_GC] = "gc",
	[MTFTL_UNIT_RANGES] = "ranges",	[MTFTL_UNIT_CKPT] = "checkpoint",
	[MTFTL_UNIT_FOOTER] = "footer",	[MTFTL_UNIT_MAP] = "map",
};

static const char *const cond_names[] = {
	[FLASH_EMPTY] = "empty",	[FLASH_OPEN] = "open",
	[FLASH_FULL] = "full",		[FLASH_READONLY] = "read-only",
	[FLASH_OFFLINE] = "offline",
};

struct zone_dump {
	struct json *json;
	bool list_units;
	u64 units[NR_TYPES];
	u64 min_seq;
	u64 max_seq;
	u32 erase_count;
	u32 known_erase_count;	/* as the checkpoint has it */
	bool oob;
};

static void dump_super(struct json *json, const struct super *super)
{
	const struct mtftl_sb_info *info = &super->info;
	char uuid[UUID_STR_LEN];
	u32 i;

	uuid_unparse(info->uuid, uuid);
	json_object(json, "superblock");
	json_u64(json, "version", MTFTL_VERSION);
	json_u64(json, "zone", super->zone);
	json_u64(json, "block", super->offset);
	json_string(json, "uuid", uuid);
	json_u64(json, "generation", info->generation);
	json_bool(json, "clean", info->flags & MTFTL_SB_CLEAN);
	json_bool(json, "read_only", info->flags & MTFTL_SB_READONLY);
	json_u64(json, "logical_blocks", info->logical_blocks);
	json_u64(json, "zones", info->nr_zones);
	json_u64(json, "zone_blocks", info->zone_blocks);
	json_u64(json, "zone_capacity", info->zone_capacity);
	json_u64(json, "op_permille", info->op_permille);
	json_string(json, "headers", info->oob ? "metadata" : "blocks");
	json_u64(json, "checkpoint_seq", info->ckpt_seq);
	json_u64(json, "checkpoint_blocks", info->ckpt_blocks);
	json_bool(json, "map_log", info->map_log);
	if (info->map_log) {
		json_u64(json, "checkpoint_seat", info->ckpt_seat);
		json_u64(json, "checkpoint_offset", info->ckpt_offset);
		json_u64(json, "checkpoint_first_seq", info->ckpt_unit_first);
		json_u64(json, "checkpoint_last_seq", info->ckpt_unit_last);
	}
	json_array(json, "checkpoint_zones");
	for (i = 0; i < info->ckpt_nr_zones; i++)
		json_u64(json, NULL, info->ckpt_zones[i]);
	json_end(json);
	json_end(json);
}

static void dump_unit(void *context, const struct mtftl_unit_info *info, const u8 *header)
{
	struct zone_dump *dump = context;
	struct json *json = dump->json;
	u32 i;

	if (!dump->max_seq || info->seq < dump->min_seq)
		dump->min_seq = info->seq;
	if (info->seq > dump->max_seq)
		dump->max_seq = info->seq;
	dump->erase_count = info->erase_count;
	if (!mtftl_unit_head(dump->oob, info->type))
		dump->erase_count = mtftl_erase_count(dump->known_erase_count, info->erase_count);
	dump->units[info->type]++;
	if (!dump->list_units)
		return;

	json_object(json, NULL);
	json_u64(json, "block", info->offset);
	json_string(json, "type", type_names[info->type]);
	json_u64(json, "seq", info->seq);
	json_u64(json, "durable_seq", info->durable_seq);
	json_u64(json, "lane", info->lane);
	json_u64(json, "payload_blocks", info->nr_blocks);
	json_array(json, info->type == MTFTL_UNIT_RANGES ? "ranges" : "blocks");
	for (i = 0; i < info->nr_entries; i++) {
		enum mtftl_range_kind kind;
		u32 crc, nr_blocks;
		u64 lba, seq;

		if (info->type != MTFTL_UNIT_RANGES) {
			mtftl_unit_entry(header, i, &lba, &crc);
			json_u64(json, NULL, lba);
			continue;
		}
		mtftl_unit_range(header, i, &lba, &nr_blocks, &seq, &kind);
		json_object(json, NULL);
		json_u64(json, "block", lba);
		json_u64(json, "blocks", nr_blocks);
		json_u64(json, "seq", seq);
		json_string(json, "kind", kind == MTFTL_RANGE_TRIM ? "trim" : "lost");
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

static void dump_zone(struct json *json, struct window *window, u32 seed, u32 zone,
		      const struct replay *replay, const u32 *valid, bool list_units)
{
	struct flash *flash = window->flash;
	struct zone_dump dump = {
		.json = json, .list_units = list_units, .oob = flash->oob,
		.known_erase_count = replay->zones[zone].erase_count,
	};
	struct mtftl_tail_info tail;
	struct scan_result result = { 0 };
	u64 durable = 0;
	u32 size, i;
	u8 *footer;

	json_object(json, NULL);
	json_u64(json, "zone", zone);
	json_string(json, "condition", cond_names[flash->zones[zone].cond]);
	json_u64(json, "written_blocks", flash->zones[zone].wp);
	json_u64(json, "mapped_blocks", valid[zone]);
	json_bool(json, "retired", replay->zones[zone].flags & MTFTL_ZONE_RETIRED);
	if (list_units)
		json_array(json, "list");
	scan_zone(window, seed, zone, 0, 0, dump_unit, &dump, &result);
	if (list_units)
		json_end(json);
	json_object(json, "units");
	for (i = MTFTL_UNIT_DATA; i < NR_TYPES; i++)
		json_u64(json, type_names[i], dump.units[i]);
	json_end(json);
	json_u64(json, "blocks_in_no_unit", result.gap_blocks);
	json_u64(json, "erase_count",
		 result.units ? dump.erase_count : replay->zones[zone].erase_count);
	json_u64(json, "min_seq", dump.min_seq);
	json_u64(json, "max_seq", dump.max_seq);
	footer = scan_footer(window, seed, zone, &tail, &durable, &size);
	json_bool(json, "footer", footer);
	free(footer);
	json_end(json);
}

static void dump_map(struct json *json, const struct replay *replay, bool damaged, u32 *valid)
{
	u64 mapped = 0, lost = 0, unmapped = 0, lba;

	for (lba = 0; lba < replay->sb->logical_blocks; lba++) {
		u32 page = replay->map[lba], zone = page / replay->flash->zone_blocks;

		if (page == MTFTL_MAP_UNMAPPED) {
			unmapped++;
		} else if (page == MTFTL_MAP_LOST) {
			lost++;
		} else {
			mapped++;
			if (zone < replay->flash->nr_zones)
				valid[zone]++;
		}
	}
	json_object(json, "map");
	json_bool(json, "damaged", damaged);
	json_u64(json, "mapped", mapped);
	json_u64(json, "unmapped", unmapped);
	json_u64(json, "lost", lost);
	json_u64(json, "max_seq", replay->max_seq);
	json_u64(json, "durable_seq", replay->durable_seq);
	json_u64(json, "replayed_units", replay->units);
	json_u64(json, "replayed_ranges", replay->ranges);
	json_u64(json, "dropped_blocks", replay->blocks_dropped);
	json_u64(json, "zones_skipped", replay->zones_skipped);
	json_u64(json, "zones_by_footer", replay->zones_by_footer);
	json_u64(json, "zones_scanned", replay->zones_scanned);
	json_end(json);
}

int cmd_dump(int argc, char **argv)
{
	static const struct option options[] = {
		{ "units", no_argument, NULL, 'u' },
		{ NULL, 0, NULL, 0 },
	};
	struct report report = { .quiet = true };
	struct replay replay = { .report = &report };
	bool list_units = false;
	struct device *device;
	struct window window;
	struct super super;
	struct json *json;
	u32 *valid, zone, seed;
	int c, err;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		list_units = true;
	}
	if (argc - optind != 1)
		fail(EXIT_USAGE, "dump: %d devices given, expected one", argc - optind);
	device = device_open(argv[optind], DEVICE_READ_IDLE);
	err = super_find(&device->flash, &super);
	if (err)
		fail(EXIT_FAILED, "%s: %s", device->path, super_error(err));

	need_memory(device->path, super.info.logical_blocks * sizeof(u32));
	replay.flash = &device->flash;
	replay_from(&replay, &super);
	err = replay_run(&replay);
	valid = xalloc(device->flash.nr_zones, sizeof(*valid));
	seed = mtftl_seed(super.info.uuid, super.info.key);
	window_init(&window, &device->flash, WINDOW_BLOCKS);
	window.goes_on = true;

	json = json_start(stdout);
	json_string(json, "device", device->path);
	json_u64(json, "first_zone", device->first_zone);
	dump_super(json, &super);
	dump_map(json, &replay, err != 0, valid);
	json_array(json, "zones");
	for (zone = MTFTL_NR_SB_ZONES; zone < device->flash.nr_zones; zone++)
		dump_zone(json, &window, seed, zone, &replay, valid, list_units);
	json_end(json);
	json_finish(json);

	window_free(&window);
	free(valid);
	replay_free(&replay);
	device_close(device);
	return EXIT_OK;
}
