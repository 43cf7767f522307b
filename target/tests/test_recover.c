// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of the module's mount, checkpoints and log (recover.c, checkpoint.c, super.c) on
 * a drive in memory that is written to and counts its commands. The tool's recovery, which is
 * another program, must find the same map.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <linux/sched/signal.h>

#include "check.h"
#include "rebuild.h"
#include "device/device.h"
#include "device/pause.h"
#include "device/rw.h"
#include "device/seq.h"
#include "durable/checkpoint.h"
#include "durable/found.h"
#include "durable/recover.h"
#include "format/maplog.h"
#include "image.h"
#include "map/map.h"
#include "module.h"
#include "replay.h"
#include "super.h"
#include "zone/super.h"
#include "zone/zones.h"

#define FIRST_DATA	4u	/* zone: behind the superblocks and two checkpoints */
#define LEFT_ALONE	3u	/* zones in front of those of the format */
#define READS_OF_LOG	1u	/* if the newest record is whole, and the other zone is empty */

static struct image *image;
static struct {
	u64 commands, reads, blocks_read, finishes;
	int fail_write;		/* writes until one fails; 0: none does */
	u32 failed;		/* the zone that it went to */
	bool fail_writes;	/* each one */
	bool pause_then;	/* and the device is suspended */
	int pause_after;	/* writes until it is, if none fails; 0: it is not */
	bool pause_in_reset;	/* likewise, in the next reset */
	int fail_read;		/* one read, with this error */
	u64 reads_before;	/* that one */
	int fail_log;		/* so many writes to the superblock log */
} drive;

/* Of zones that are read-only: where what is written ends, and what reads say that go on behind. */
static struct {
	u32 end;
	int error;
} read_only;

/* They last over mounts. Zones from @reported on are left out of reports, without an error. */
static u32 reported = U32_MAX;
static int report_fails;	/* of a report; 0: none */
static u32 misplaced;		/* a zone that is said to begin elsewhere; 0: none */
static u32 misled;		/* one whose write pointer lies in front of it; 0: none */
static u32 spare_sectors;	/* of each zone, behind its last block */
static u32 unreadable;		/* page; 0: none */
static int unreadable_error = -ENODATA;
static bool finish_fails, aligned;
static int mount_fails_write;	/* see fail_write */
static int mount_fails_read;	/* see fail_read */
static u64 mount_reads_before;
/* A fatal signal comes behind so many reads of a mount, when it was asked for so often; 0: none. */
static struct {
	u64 reads;
	unsigned long asks;
} killed_behind;
static int power;		/* commands until it goes off; 0: it stays on; -1: it is off */
static int lies_at;		/* commands until one is carried out, and fails; 0: none */

/* A device with a log of map blocks. */
static struct {
	u32 logical, next_zone;		/* for the next unit of data */
	u32 *entries;			/* as the map shall be */
	bool unseen;			/* the tool looks where a mount does not: at spent zones */
} logged;

/* The module that mounted it last. */
static struct mtftl_cpu_stats stats;
static struct dm_dev dm;
static struct mtftl_device device;
static struct mtftl_map map;
static struct mtftl_seq seq;
static struct mtftl_space space;
static struct mtftl ftl;
static bool mounted, mount_read_only;

/* The drive */

static void command(void)
{
	drive.commands++;
	/* Of a mount each command may be sent; after that only by code that a suspend waits for. */
	assert_true(!mounted || stats.sending > stats.landed);
}

sector_t bdev_zone_sectors(struct block_device *bdev)
{
	return (sector_t)image->flash.zone_blocks * MTFTL_BLOCK_SECTORS;
}

int mtftl_report_zones(struct mtftl *of, u32 first, u32 nr, report_zones_cb note, void *data)
{
	static const u8 conditions[] = {
		[FLASH_EMPTY] = BLK_ZONE_COND_EMPTY, [FLASH_OPEN] = BLK_ZONE_COND_IMP_OPEN,
		[FLASH_FULL] = BLK_ZONE_COND_FULL, [FLASH_READONLY] = BLK_ZONE_COND_READONLY,
		[FLASH_OFFLINE] = BLK_ZONE_COND_OFFLINE,
	};
	sector_t size = bdev_zone_sectors(NULL);
	int r = 0;
	u32 i;

	(void)of;
	if (report_fails)
		return report_fails;
	for (i = 0; !r && i < nr && first + i < min(image->flash.nr_zones, reported); i++) {
		const struct flash_zone *zone = &image->flash.zones[first + i];
		sector_t start = (LEFT_ALONE + first + i) * size;
		struct blk_zone bz = {
			.start = start, .len = size, .cond = conditions[zone->cond],
			.wp = start + zone->wp * MTFTL_BLOCK_SECTORS + zone->torn_sectors,
			.capacity = image->flash.zone_capacity * MTFTL_BLOCK_SECTORS +
				    spare_sectors,
		};

		/* A zone that is read-only has none. */
		if (zone->cond == FLASH_READONLY)
			bz.wp = 0;
		if (misplaced && misplaced == first + i)
			bz.start++;
		if (misled && misled == first + i)
			bz.wp = start - 1;
		r = note(&bz, i, data);
	}
	return r ?: (int)i;
}

/* In this command, which changes the drive. */
static bool power_goes(void)
{
	if (power > 0 && !--power)
		power = -1;
	return power < 0;
}

/* Of a command that was carried out. */
static int answer(int r)
{
	return lies_at && !--lies_at ? -EIO : r;
}

/* At the write pointer, or not at all. */
static int write_sectors(u32 zone, u32 at, const void *data, u32 nr)
{
	struct flash_zone *state = &image->flash.zones[zone];
	u32 end = at + nr;

	if (zone < MTFTL_NR_SB_ZONES && drive.fail_log) {
		drive.fail_log--;
		return -EIO;
	}
	if (drive.fail_writes)
		return -EIO;
	if (drive.fail_write && !--drive.fail_write) {
		drive.failed = zone;
		device.paused |= drive.pause_then;
		return -EIO;
	}
	if (at != state->wp * MTFTL_BLOCK_SECTORS + state->torn_sectors ||
	    state->cond > FLASH_OPEN || end > image->flash.zone_capacity * MTFTL_BLOCK_SECTORS)
		return -EIO;
	memcpy(image_block(image, zone, 0) + ((size_t)at << SECTOR_SHIFT), data,
	       (size_t)nr << SECTOR_SHIFT);
	state->wp = end / MTFTL_BLOCK_SECTORS;
	state->torn_sectors = end % MTFTL_BLOCK_SECTORS;
	state->cond = state->wp == image->flash.zone_capacity ? FLASH_FULL : FLASH_OPEN;
	if (drive.pause_after && !--drive.pause_after)
		device.paused = true;
	return 0;
}

int mtftl_rw_sectors(struct mtftl *of, blk_opf_t opf, sector_t sector, void *data, u32 nr)
{
	u32 zone = sector / bdev_zone_sectors(NULL) - LEFT_ALONE;
	u32 at = sector % bdev_zone_sectors(NULL);
	const struct flash_zone *state = &image->flash.zones[zone];

	command();
	assert_in_range(zone, 0, image->flash.nr_zones - 1);
	assert_in_range(nr, 1, MTFTL_BUFFER_BLOCKS * MTFTL_BLOCK_SECTORS);
	if (power < 0)
		return -EIO;
	if ((opf & 0xff) != REQ_OP_READ && power_goes()) {
		/* A part of it is there. */
		if (nr / 2)
			write_sectors(zone, at, data, nr / 2);
		return -EIO;
	}
	if ((opf & 0xff) != REQ_OP_READ)
		return answer(write_sectors(zone, at, data, nr));
	drive.reads++;
	drive.blocks_read += DIV_ROUND_UP(nr, MTFTL_BLOCK_SECTORS);
	if (killed_behind.reads == drive.reads)
		kernel_kill_at = kernel_asked + killed_behind.asks;
	if (drive.fail_read && drive.reads_before) {
		drive.reads_before--;
	} else if (drive.fail_read) {
		int r = drive.fail_read;

		drive.fail_read = 0;
		return r;
	}
	if (unreadable && unreadable >= flash_page(&image->flash, zone, at / MTFTL_BLOCK_SECTORS) &&
	    unreadable < flash_page(&image->flash, zone, DIV_ROUND_UP(at + nr, MTFTL_BLOCK_SECTORS)))
		return unreadable_error;
	/* Drives need not answer for what is not written. */
	if (state->cond <= FLASH_OPEN &&
	    at + nr > state->wp * MTFTL_BLOCK_SECTORS + state->torn_sectors)
		return -EIO;
	if (state->cond == FLASH_READONLY && at + nr > read_only.end * MTFTL_BLOCK_SECTORS &&
	    read_only.error)
		return read_only.error;
	memcpy(data, image_block(image, zone, 0) + ((size_t)at << SECTOR_SHIFT),
	       (size_t)nr << SECTOR_SHIFT);
	return 0;
}

int mtftl_rw_sync(struct mtftl *of, blk_opf_t opf, u32 page, void *data, u32 nr)
{
	return mtftl_rw_sectors(of, opf, mtftl_page_sector(of, page), data, nr * MTFTL_BLOCK_SECTORS);
}

int mtftl_read_oob(struct mtftl *of, u32 page, void *data, u32 nr, void *oob)
{
	memcpy(oob, image->oob + page, nr * sizeof(*image->oob));
	return mtftl_rw_sync(of, REQ_OP_READ, page, data, nr);
}

int mtftl_zone_mgmt(struct mtftl *of, u32 zone, enum req_op op)
{
	command();
	if (power < 0 || power_goes())
		return -EIO;
	if (op == REQ_OP_ZONE_RESET) {
		device.paused |= drive.pause_in_reset;
		return answer(image->flash.reset(&image->flash, zone));
	}
	drive.finishes++;
	if (finish_fails || image->flash.zones[zone].cond > FLASH_FULL)
		return -EIO;
	image->flash.zones[zone] = (struct flash_zone) {
		.cond = FLASH_FULL, .wp = image->flash.zone_capacity,
	};
	return 0;
}

/* Of a walk after a pause; a mount has none. */
void mtftl_space_send_begin(struct mtftl *of)
{
	fail();
}

bool mtftl_device_answers(struct mtftl *of, void *block)
{
	return !mtftl_rw_sync(of, REQ_OP_READ, 0, block, 1);
}

/* The module */

static void unmount(void)
{
	/* Who began to send has ended. */
	assert_int_equal(stats.sending, stats.landed);
	mounted = false;
	/* A mount that failed early has neither. */
	mtftl_checkpoints_stop(&ftl);
	mtftl_checkpoints_free(&ftl);
	mtftl_super_free(&ftl);
	free(ftl.zones);
	free(map.zones);
	free(map.entries);
	free(map.changed);
	memset(&ftl, 0, sizeof(ftl));
	memset(&map, 0, sizeof(map));
}

static int try_to_mount(void)
{
	const struct mtftl_sb_info *info;
	u32 i;
	int r;

	unmount();
	memset(&drive, 0, sizeof(drive));
	drive.fail_write = mount_fails_write;
	drive.fail_read = mount_fails_read;
	drive.reads_before = mount_reads_before;
	memset(&stats, 0, sizeof(stats));
	memset(&seq, 0, sizeof(seq));
	memset(&space, 0, sizeof(space));
	device = (struct mtftl_device) {
		.dm = &dm, .disk = "dm-0", .stats = &stats, .read_only = mount_read_only,
	};
	ftl = (struct mtftl) {
		.device = &device, .seq = &seq, .map = &map, .space = &space,
		.config = {
			.first_sector = LEFT_ALONE * bdev_zone_sectors(NULL),
			.nr_zones = image->flash.nr_zones, .capacity = image->flash.zone_capacity,
			.zone_shift = 31 - __builtin_clz(image->flash.zone_blocks),
			.header_blocks = !image->sb.oob, .budget.data_zones = 2,
			.device_in_zones = 8,
			.meta_size = sizeof(struct mtftl_oob), .capacity_unaligned = !aligned,
		},
	};
	r = mtftl_super_alloc(&ftl) ?: mtftl_super_load(&ftl);
	if (r)
		return r;
	info = &ftl.super->info;
	ftl.config.seed = mtftl_seed(info->uuid, info->key);
	ftl.config.logical_blocks = info->logical_blocks;
	map.entries = malloc(info->logical_blocks * sizeof(*map.entries));
	memset(map.entries, 0xff, info->logical_blocks * sizeof(*map.entries));
	map.changed = calloc(BITS_TO_LONGS(mtftl_map_chunks(&ftl)), sizeof(long));
	map.zones = calloc(info->nr_zones, sizeof(*map.zones));
	ftl.zones = calloc(1, sizeof(*ftl.zones) + info->nr_zones * sizeof(*ftl.zones->all));
	space.state.zones[MTFTL_ZONE_EMPTY] = info->nr_zones;
	for (i = 0; i < info->nr_zones; i++) {
		mtftl_zone(&ftl, i)->ftl = &ftl;
		mtftl_zone(&ftl, i)->index = i;
	}
	r = mtftl_checkpoints_alloc(&ftl) ?: mtftl_recover(&ftl);
	mounted = !r;
	return r;
}

/* Of the blocks of zones, and of zones in each state. A zone in part is as long as the drive's. */
static void expect_counts(void)
{
	u32 *blocks = calloc(ftl.config.nr_zones, sizeof(*blocks)), i;
	u32 states[ARRAY_SIZE(space.state.zones)] = {};

	for (i = 0; i < ftl.config.logical_blocks; i++)
		if (mtftl_is_page(map.entries[i]))
			blocks[mtftl_page_zone(&ftl, map.entries[i])]++;
	for (i = 0; i < ftl.config.nr_zones; i++) {
		const struct mtftl_zone *zone = mtftl_zone(&ftl, i);

		states[zone->state]++;
		assert_int_equal(map.zones[i].blocks.counter, blocks[i]);
		assert_int_equal(zone->full_seq, zone->first_seq);
		if (zone->state != MTFTL_ZONE_PARTIAL)
			continue;
		assert_int_equal(zone->wp, image->flash.zones[i].wp);
		assert_int_equal(zone->quiet_wp, zone->wp);
	}
	assert_memory_equal(states, space.state.zones, sizeof(states));
	free(blocks);
}

static void mount(void)
{
	assert_int_equal(try_to_mount(), 0);
	expect_counts();
}

/* What the tool finds. It looks before a mount, which may write zeroes behind what is torn. */
static struct {
	struct super super;
	struct report report;
	struct replay replay;
} tool;

static int look_like_the_tool(void)
{
	tool.report = (struct report){ .quiet = true };
	tool.replay = (struct replay){ .flash = &image->flash, .report = &tool.report };
	assert_int_equal(super_find(&image->flash, &tool.super), 0);
	tool.replay.sb = &tool.super.info;
	return replay_run(&tool.replay);
}

static void mount_like_the_tool(void)
{
	u64 i;

	assert_int_equal(look_like_the_tool(), 0);
	mount();
	for (i = 0; i < tool.super.info.logical_blocks; i++)
		assert_int_equal(map.entries[i], tool.replay.map[i]);
	assert_true(logged.unseen || mtftl_seq_last(&ftl) >= tool.replay.max_seq);
	replay_free(&tool.replay);
}

/* Or what it finds damaged. */
static void mount_or_fail_like_the_tool(void)
{
	int r = look_like_the_tool();

	assert_int_equal(!try_to_mount(), !r);
	if (!r)
		assert_memory_equal(map.entries, tool.replay.map,
				    tool.super.info.logical_blocks * sizeof(*tool.replay.map));
	replay_free(&tool.replay);
}

/* Before a mount, which may write. */
static void assert_checks(u64 errors, u64 lost)
{
	struct report report = { .quiet = true };
	struct check_totals totals;

	assert_int_equal(check_flash(&image->flash, &report, &totals), 0);
	assert_int_equal(report.errors, errors);
	assert_int_equal(totals.lost, lost);
}

/* A clean checkpoint of the older kind: the module makes a log of map blocks then. */
static void stop_as_before(void)
{
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	image->sb = ftl.super->info;
	image_write_super(image, MTFTL_SB_CLEAN);
}

static int setup(void **state)
{
	image = image_new();
	image_write_super(image, 0);
	return 0;
}

static int setup_log(void **state)
{
	image = image_new();
	image->sb.map_log = true;
	image_write_super(image, 0);
	return 0;
}

static int setup_oob(void **state)
{
	image = image_new();
	image->sb.oob = true;
	image_write_super(image, 0);
	return 0;
}

static int teardown(void **state)
{
	unmount();
	image_free(image);
	unreadable = 0;
	unreadable_error = -ENODATA;
	finish_fails = false;
	aligned = false;
	mount_fails_write = 0;
	mount_fails_read = 0;
	mount_reads_before = 0;
	memset(&killed_behind, 0, sizeof(killed_behind));
	report_fails = 0;
	misled = 0;
	spare_sectors = 0;
	mount_read_only = false;
	power = 0;
	lies_at = 0;
	module_flushes = NULL;
	module_flush_fails = 0;
	module_cannot_flush = 0;
	module_spare = 0;
	kernel_kill_at = 0;
	kernel_short_at = 0;
	kernel_queues = NULL;
	kernel_no_fua = false;
	free(logged.entries);
	memset(&logged, 0, sizeof(logged));
	assert_int_equal(kernel_allocated, 0);
	return 0;
}

static void begin_anew(void **state)
{
	unmount();
	image_free(image);
	setup(state);
}

/* One block in a unit of its own; returns its page. */
static u32 put(u32 zone, u64 number, u64 lba, u16 content)
{
	return flash_page(&image->flash, zone,
			  image_write_unit(image, zone, MTFTL_UNIT_DATA, number, 1, &lba,
					   &content)) + !image->sb.oob;
}

/* A cut left @sectors of block @offset, and nothing behind. */
static void cut(u32 zone, u32 offset, u8 sectors)
{
	struct flash_zone *state = &image->flash.zones[zone];
	u8 *left = image_block(image, zone, offset) + sectors * 512;

	memset(left, 0, image_block(image, zone, state->wp) - left);
	*state = (struct flash_zone) {
		.cond = FLASH_OPEN, .wp = offset, .torn_sectors = sectors,
	};
}

/* A map of one block in each data zone up to @last. */
static const u32 *map_of_blocks(u32 last)
{
	static u32 entries[IMAGE_LOGICAL];
	u32 i;

	memset(entries, 0xff, sizeof(entries));
	for (i = FIRST_DATA; i < last; i++)
		entries[i] = flash_page(&image->flash, i, 1);
	return entries;
}

/* Sectors of 512 bytes */

static void a_header_in_a_torn_block_claims_its_payload(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	u32 old = put(FIRST_DATA, 1, 5, 9), new;

	cut(FIRST_DATA, image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 2, 3, lbas, contents), 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], old);
	/* No other unit gets its number, and the next one lies behind what the header claims. */
	assert_int_equal(mtftl_seq_last(&ftl), 2);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 2 + 4);
	new = put(FIRST_DATA, 3, 8, 4);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], old);
	assert_int_equal(map.entries[8], new);
}

static void a_torn_block_in_an_empty_zone(void **state)
{
	u32 new;

	put(FIRST_DATA, 1, 5, 9);
	cut(FIRST_DATA, 0, 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 2);
	new = put(FIRST_DATA, 2, 6, 9);
	mount_like_the_tool();
	assert_int_equal(map.entries[6], new);
}

/* A unit of few ranges is whole in its first sector. */
static void ranges_in_a_torn_block_count(void **state)
{
	put(FIRST_DATA, 1, 5, 9);
	cut(FIRST_DATA, image_write_range(image, FIRST_DATA, 3, 5, 1, 2, MTFTL_RANGE_TRIM), 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->ranges_seq, 3);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
}

static void a_torn_block_that_the_medium_has_lost_claims_nothing(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	u32 old = put(FIRST_DATA, 1, 5, 9);

	cut(FIRST_DATA, image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 2, 3, lbas, contents), 1);
	unreadable = flash_page(&image->flash, FIRST_DATA, 2);
	mount();
	assert_int_equal(map.entries[5], old);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 2 + 1);
}

/* On a device that has its headers in metadata, whatever a block looks like. */
static void data_that_looks_like_a_header_claims_nothing(void **state)
{
	struct mtftl_unit_info info = { .type = MTFTL_UNIT_DATA, .seq = 9, .nr_blocks = 3 };
	u8 *block = image_block(image, FIRST_DATA, 1);
	u32 old = put(FIRST_DATA, 1, 5, 9), i;

	mtftl_unit_init(block, &info);
	for (i = 0; i < 3; i++)
		mtftl_unit_add_entry(block, 5 + i, i);
	mtftl_unit_seal(block, image->seed, FIRST_DATA, 1, image->erase_count[FIRST_DATA], 0);
	image->flash.zones[FIRST_DATA].wp = 2;
	cut(FIRST_DATA, 1, 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], old);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 1 + 1);
	assert_int_equal(mtftl_seq_last(&ftl), 1);
}

static void what_is_no_header_in_a_torn_block(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	u32 whole, new;

	/* In a payload. */
	image->durable_seq = 0;
	whole = image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1, 3, lbas, contents);
	cut(FIRST_DATA, whole + 2, 3);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], flash_page(&image->flash, FIRST_DATA, 1));
	assert_int_equal(map.entries[6], MTFTL_MAP_UNMAPPED);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 4);
	/* A header of which the last entries are missing. */
	cut(FIRST_DATA, 4, 0);
	put(FIRST_DATA, 2, 8, 8);
	image_block(image, FIRST_DATA, 4)[40] ^= 1;
	cut(FIRST_DATA, 4, 2);
	mount_like_the_tool();
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 5);
	new = put(FIRST_DATA, 3, 9, 9);
	mount_like_the_tool();
	assert_int_equal(map.entries[9], new);
}

/* Lives of a zone */

/* The first header is torn, and its payload a copy of a header of the zone's life before. */
static void a_copy_from_an_earlier_life_hides_nothing(void **state)
{
	const u64 lba = 5;
	const u16 content = 1;
	u8 copy[MTFTL_BLOCK_SIZE];
	u32 there;

	/* Placed by zone append, so it verifies anywhere in the zone. */
	image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1, 1, &lba, &content);
	mtftl_unit_seal(image_block(image, FIRST_DATA, 0), image->seed, FIRST_DATA,
			MTFTL_ANY_OFFSET, image->erase_count[FIRST_DATA], 0);
	memcpy(copy, image_block(image, FIRST_DATA, 0), sizeof(copy));
	image_reset_zone(image, FIRST_DATA);
	put(FIRST_DATA, 2, 6, 2);
	memcpy(image_block(image, FIRST_DATA, 1), copy, sizeof(copy));
	there = put(FIRST_DATA, 3, 7, 3);
	image_block(image, FIRST_DATA, 0)[60] ^= 1;
	mount_like_the_tool();
	assert_int_equal(map.entries[7], there);
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
}

/* Of the life that the zone has, and of a unit that was found in front of it. */
static void a_copy_of_what_was_found_hides_nothing(void **state)
{
	const u64 lba = 5;
	const u16 content = 1;
	u32 there;

	image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1, 1, &lba, &content);
	put(FIRST_DATA, 2, 6, 2);
	memcpy(image_block(image, FIRST_DATA, 3), image_block(image, FIRST_DATA, 0),
	       MTFTL_BLOCK_SIZE);
	there = put(FIRST_DATA, 3, 7, 3);
	image_block(image, FIRST_DATA, 2)[60] ^= 1;
	mount_like_the_tool();
	assert_int_equal(map.entries[5], flash_page(&image->flash, FIRST_DATA, 1));
	assert_int_equal(map.entries[6], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[7], there);
}

/* Numbers that the checkpoint has say nothing of a life that began after it. */
static void what_is_older_than_the_checkpoint_tells_no_life(void **state)
{
	static _Alignas(8) u8 older[MTFTL_BLOCK_SIZE];
	struct mtftl_unit_info info = { .type = MTFTL_UNIT_DATA, .seq = 5, .nr_blocks = 1 };
	u32 there, i;

	image_write_checkpoint(image, 2, 10, map_of_blocks(0), 0);
	mtftl_unit_init(older, &info);
	mtftl_unit_add_entry(older, 5, 0);
	mtftl_unit_seal(older, image->seed, FIRST_DATA, MTFTL_ANY_OFFSET, 7, 0);
	put(FIRST_DATA, 21, 6, 2);
	there = put(FIRST_DATA, 22, 7, 3);
	/* As the payload of both. */
	for (i = 1; i < 4; i += 2)
		memcpy(image_block(image, FIRST_DATA, i), older, sizeof(older));
	image_block(image, FIRST_DATA, 0)[60] ^= 1;
	image->durable_seq = 22;
	put(FIRST_DATA + 1, 23, 8, 4);
	mount();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[7], there);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->erase_count, image->erase_count[FIRST_DATA]);
}

/* What tells the zone's life is read with a block that cannot be read. */
static void a_life_is_found_beside_what_cannot_be_read(void **state)
{
	const u64 lba = 5;
	const u16 content = 1;
	u8 copy[MTFTL_BLOCK_SIZE];
	u32 there;

	image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1, 1, &lba, &content);
	memcpy(copy, image_block(image, FIRST_DATA, 0), sizeof(copy));
	image_reset_zone(image, FIRST_DATA);
	put(FIRST_DATA, 2, 6, 2);
	memcpy(image_block(image, FIRST_DATA, 1), copy, sizeof(copy));
	there = put(FIRST_DATA, 3, 7, 3);
	image_block(image, FIRST_DATA, 0)[60] ^= 1;
	image->durable_seq = 3;
	put(FIRST_DATA + 1, 4, 8, 4);
	unreadable = there;
	mount();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[7], there);
}

/*
 * A checkpoint's map has units that were in flight when its zone records were captured. So a record
 * of write pointer 0 does not say that no entry points into the zone.
 */
static void an_entry_of_an_earlier_life_is_lost(void **state)
{
	u32 head = !image->sb.oob, entries[IMAGE_LOGICAL], kept, other;

	/* Metadata has the lowest 14 bits alone: zeroes after the next reset. */
	image->erase_count[FIRST_DATA] = 0x7fff;
	image->erase_count[FIRST_DATA + 1] = 0x7fff;
	memset(entries, 0xff, sizeof(entries));
	entries[5] = flash_page(&image->flash, FIRST_DATA, head);
	entries[6] = flash_page(&image->flash, FIRST_DATA + 1, head);
	image_write_checkpoint(image, 2, 10, entries, 0);
	assert_int_equal(put(FIRST_DATA, 1, 5, 9), entries[5]);
	kept = put(FIRST_DATA + 1, 2, 6, 9);
	put(FIRST_DATA + 2, 11, 5, 9);
	image_reset_zone(image, FIRST_DATA);
	other = put(FIRST_DATA, 12, 7, 7);
	assert_int_equal(other, entries[5]);
	image_block(image, FIRST_DATA + 2, 0)[60] ^= 1;
	assert_checks(0, 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[6], kept);
	assert_int_equal(map.entries[7], other);
}

/* The zone's life is then what a unit behind it says. */
static void an_entry_of_an_earlier_life_behind_a_torn_unit(void **state)
{
	u32 entries[IMAGE_LOGICAL], other;

	memset(entries, 0xff, sizeof(entries));
	entries[5] = put(FIRST_DATA, 1, 5, 9);
	image_write_checkpoint(image, 2, 10, entries, 0);
	image_reset_zone(image, FIRST_DATA);
	put(FIRST_DATA, 11, 7, 7);
	other = put(FIRST_DATA, 12, 8, 8);
	image_block(image, FIRST_DATA, 0)[60] ^= 1;
	assert_checks(0, 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[7], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[8], other);
}

static void an_entry_of_an_empty_zone_is_lost(void **state)
{
	u32 entries[IMAGE_LOGICAL], kept, newer;

	memset(entries, 0xff, sizeof(entries));
	entries[5] = put(FIRST_DATA, 1, 5, 9);
	entries[6] = put(FIRST_DATA + 1, 2, 6, 9);
	entries[7] = put(FIRST_DATA, 3, 7, 9);
	kept = entries[6];
	image_write_checkpoint(image, 2, 10, entries, 0);
	newer = put(FIRST_DATA + 2, 11, 7, 7);
	image_reset_zone(image, FIRST_DATA);
	assert_checks(0, 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[6], kept);
	assert_int_equal(map.entries[7], newer);
}

/* The drive lost it, so this is an error. Reads tell what a zone that is offline holds. */
static void an_entry_behind_the_write_pointer_is_lost(void **state)
{
	const u16 flags[] = { 0, MTFTL_SB_CLEAN };
	u32 entries[IMAGE_LOGICAL], i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		unmount();
		image_free(image);
		setup(state);
		memset(entries, 0xff, sizeof(entries));
		entries[5] = put(FIRST_DATA, 1, 5, 9);
		entries[6] = put(FIRST_DATA, 2, 6, 9);
		entries[7] = put(FIRST_DATA + 1, 3, 7, 9);
		image_write_checkpoint(image, 2, 10, entries, flags[i]);
		cut(FIRST_DATA, 2, 0);
		image->flash.zones[FIRST_DATA + 1] = (struct flash_zone) { .cond = FLASH_OFFLINE };
		/* And one of the zone that is offline. */
		assert_checks(2, 1);
		module_news = 0;
		mount_like_the_tool();
		assert_int_equal(stats.lost_blocks, 1);
		/* It tells of the zone that is offline, too, unless the stop was clean. */
		assert_int_equal(module_news, 1 + !flags[i]);
		/* What comes to lie there now must not be taken for what is lost. */
		assert_true(mtftl_zone(&ftl, FIRST_DATA)->broken);
		assert_false(mtftl_super_is_clean(&ftl));
		assert_int_equal(map.entries[5], entries[5]);
		assert_int_equal(map.entries[6], MTFTL_MAP_LOST);
		assert_int_equal(map.entries[7], entries[7]);
	}
}

/* A map of three parts that CPUs look at, and a checkpoint over two zones. */
#define LARGE_ZONES	1024u
#define LARGE_CAPACITY	40u
#define LARGE_LOGICAL	(35u * 1024 + 512)
#define LARGE_DATA	6u	/* the first zone that may have data */

static u32 *begin_large(u32 capacity, u32 logical_blocks)
{
	u32 *entries = malloc(logical_blocks * sizeof(*entries));

	unmount();
	image_free(image);
	image = image_new_of(LARGE_ZONES, 64, capacity, logical_blocks);
	memset(entries, 0xff, logical_blocks * sizeof(*entries));
	return entries;
}

static void entries_of_all_parts_are_looked_at(void **state)
{
	const u32 lbas[] = { 0, 0x3fff, 0x4000, 0x8000, LARGE_LOGICAL - 1 };
	u32 *entries = begin_large(LARGE_CAPACITY, LARGE_LOGICAL), i;

	for (i = 0; i < ARRAY_SIZE(lbas); i++)
		entries[lbas[i]] = put(LARGE_DATA + i % 2, 1 + i, lbas[i], i);
	image_write_checkpoint(image, 2, 10, entries, 0);
	mount_like_the_tool();
	for (i = 0; i < ARRAY_SIZE(lbas); i++)
		assert_int_equal(map.entries[lbas[i]], entries[lbas[i]]);
	image_reset_zone(image, LARGE_DATA);
	mount_like_the_tool();
	for (i = 0; i < ARRAY_SIZE(lbas); i++)
		assert_int_equal(map.entries[lbas[i]], i % 2 ? entries[lbas[i]] : MTFTL_MAP_LOST);
	free(entries);
}

/* The block behind a zone's last one is the first of the next zone. */
static void blocks_that_go_on_in_the_next_zone_are_there(void **state)
{
	const u32 capacity = 128;
	u32 page = 0, i;

	image_free(image);
	image = image_new_of(IMAGE_ZONES, capacity, capacity, IMAGE_LOGICAL);
	image->sb.oob = true;
	image_write_super(image, 0);
	for (i = 0; i <= capacity; i++)
		page = put(FIRST_DATA + i / capacity, 1 + i, i, i);
	mount();
	assert_int_equal(stats.lost_blocks, 0);
	assert_int_equal(page, map.entries[capacity - 1] + 1);
	assert_int_equal(map.entries[capacity], page);
}

/* Headers that cannot be read, and footers */

/* Units of one block, and a footer; the first one has block @lba and number @number. */
static void fill_with_footer(u32 zone, u32 units, u64 lba, u64 number)
{
	u32 i;

	for (i = 0; i < units; i++)
		put(zone, number + i, lba + i, 9);
	image->seq = number + units;
	image_write_footer(image, zone, 0);
}

static void lose_header(u32 zone, u32 unit)
{
	image_block(image, zone, 2 * unit)[60] ^= 1;
}

static void a_durable_unit_whose_header_is_lost_is_in_the_footer(void **state)
{
	const u32 lost[] = { 0, 3, 4, 7 };
	u32 old, i;

	for (i = 0; i < ARRAY_SIZE(lost); i++) {
		unmount();
		image_free(image);
		setup(state);
		old = put(FIRST_DATA + 1, 1, lost[i], 1);
		fill_with_footer(FIRST_DATA, 8, 0, 2);
		fill_with_footer(FIRST_DATA + 2, 8, 50, 20);
		image->durable_seq = 40;
		put(FIRST_DATA + 1, 41, 100, 1);
		mount_like_the_tool();
		assert_int_not_equal(map.entries[lost[i]], old);
		lose_header(FIRST_DATA, lost[i]);
		lose_header(FIRST_DATA + 2, lost[i]);
		mount_like_the_tool();
		assert_int_equal(map.entries[lost[i]],
				 flash_page(&image->flash, FIRST_DATA, 2 * lost[i] + 1));
		assert_int_equal(map.entries[50 + lost[i]],
				 flash_page(&image->flash, FIRST_DATA + 2, 2 * lost[i] + 1));
		assert_int_equal(map.entries[100], flash_page(&image->flash, FIRST_DATA + 1, 3));
	}
}

/* Its checksums are gone with its header: a cut may have torn it. */
static void a_unit_whose_header_is_lost_counts_only_if_durable(void **state)
{
	u32 old = put(FIRST_DATA + 1, 1, 3, 1);

	image->durable_seq = 1;
	fill_with_footer(FIRST_DATA, 8, 0, 2);
	lose_header(FIRST_DATA, 3);
	mount_like_the_tool();
	assert_int_equal(map.entries[3], old);
	assert_int_equal(map.entries[4], flash_page(&image->flash, FIRST_DATA, 9));
}

/* The tail is a user's copy from the zone's life before. */
static void a_tail_of_an_earlier_life_says_nothing(void **state)
{
	u32 last = image->flash.zone_capacity - 1;
	u8 copy[MTFTL_BLOCK_SIZE];

	fill_with_footer(FIRST_DATA, 8, 0, 1);
	memcpy(copy, image_block(image, FIRST_DATA, last), sizeof(copy));
	image_reset_zone(image, FIRST_DATA);
	fill_with_footer(FIRST_DATA, 8, 0, 100);
	memcpy(image_block(image, FIRST_DATA, last), copy, sizeof(copy));
	lose_header(FIRST_DATA, 0);
	mount_like_the_tool();
	assert_int_equal(map.entries[0], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[1], flash_page(&image->flash, FIRST_DATA, 3));
}

/* An entry that the checkpoint has in a life before, where the life is the tail's to say. */
static void an_entry_of_an_earlier_life_in_a_zone_with_a_footer(void **state)
{
	u32 entries[IMAGE_LOGICAL];

	memset(entries, 0xff, sizeof(entries));
	entries[50] = put(FIRST_DATA, 1, 50, 9);
	image_write_checkpoint(image, 2, 10, entries, 0);
	image_reset_zone(image, FIRST_DATA);
	fill_with_footer(FIRST_DATA, 8, 0, 11);
	image->durable_seq = 30;
	put(FIRST_DATA + 1, 31, 100, 1);
	lose_header(FIRST_DATA, 0);
	mount_like_the_tool();
	assert_int_equal(map.entries[50], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[0], flash_page(&image->flash, FIRST_DATA, 1));
}

/* One look for it: nothing is in the zone that a footer could list. */
static void a_zone_without_a_footer_costs_one_read(void **state)
{
	u64 before;

	put(FIRST_DATA, 1, 5, 9);
	mount();
	image->flash.zones[FIRST_DATA].cond = FLASH_FULL;
	image->flash.zones[FIRST_DATA].wp = image->flash.zone_capacity;
	mount();
	before = drive.blocks_read;
	assert_in_range(before, image->flash.zone_capacity, 2 * image->flash.zone_capacity);
}

/* A zone that is offline after a cut, by its checkpoint and whether that is clean. */
static bool tells_of_offline(void **state, u16 super_flags, bool retired)
{
	u32 entries[IMAGE_LOGICAL];

	unmount();
	image_free(image);
	setup(state);
	memset(entries, 0xff, sizeof(entries));
	entries[5] = put(FIRST_DATA, 1, 5, 9);
	image->flash.zones[FIRST_DATA + 1] = (struct flash_zone) { .cond = FLASH_OFFLINE };
	image->retired = retired ? FIRST_DATA + 1 : 0;
	image_write_checkpoint(image, 2, 10, entries, super_flags);
	kernel_listens = "zone %u is offline";
	kernel_told = NULL;
	mount();
	kernel_listens = NULL;
	return kernel_told;
}

/* What was written to it since the checkpoint is hidden. */
static void an_offline_zone_is_told_after_a_cut(void **state)
{
	assert_true(tells_of_offline(state, 0, false));
	assert_false(tells_of_offline(state, MTFTL_SB_CLEAN, false));
	assert_false(tells_of_offline(state, 0, true));
}

/* A checkpoint in many units, of which some end a zone */

static void a_checkpoint_of_many_units_is_loaded(void **state)
{
	const u32 zones = 1024, capacity = IMAGE_CAPACITY, logical = 114900;
	const u32 data = MTFTL_NR_SB_ZONES + 2 * mtftl_ckpt_zones(zones, capacity, logical);
	u32 *entries = malloc(logical * sizeof(*entries)), i;

	image_free(image);
	image = image_new_of(zones, IMAGE_ZONE_BLOCKS, capacity, logical);
	memset(entries, 0xff, logical * sizeof(*entries));
	for (i = 0; i < 1000; i++)
		entries[i * 99] = put(data + i / 50, 1 + i, i * 99, i);
	image_write_checkpoint(image, 2, 2000, entries, MTFTL_SB_CLEAN);
	assert_int_equal(image->sb.ckpt_nr_zones, 2);
	assert_true(image->flash.zones[3].wp > 0);
	mount_like_the_tool();
	assert_memory_equal(map.entries, entries, logical * sizeof(*entries));
	assert_int_equal(map.zones[data].blocks.counter, 50);
	/* It is read once: a large read for each unit, and one to find out how long units are. */
	assert_int_equal(drive.reads, READS_OF_LOG + 1 + 5);
	/* So is the module's own, in the other two zones. */
	stop_as_before();
	assert_true(image->flash.zones[5].wp > 0);
	mount_like_the_tool();
	assert_memory_equal(map.entries, entries, logical * sizeof(*entries));
	assert_int_equal(drive.reads, READS_OF_LOG + 1 + 5);
	image_reset_zone(image, 2);
	image_reset_zone(image, 3);
	image->sb = ftl.super->info;
	image_write_checkpoint(image, 2, 2000, entries, MTFTL_SB_CLEAN);
	kernel_listens = "checkpoint is damaged";
	kernel_told = NULL;
	mount();
	assert_null(kernel_told);
	/* A payload in the second zone, then the last header of the first. */
	image_block(image, 3, 1)[9] ^= 1;
	assert_int_equal(try_to_mount(), -EBADMSG);
	assert_non_null(kernel_told);
	kernel_listens = NULL;
	image_block(image, 3, 1)[9] ^= 1;
	mount();
	image_block(image, 2, 96)[9] ^= 1;
	assert_int_not_equal(try_to_mount(), 0);
	image_block(image, 2, 96)[9] ^= 1;
	unreadable = flash_page(&image->flash, 3, 1);
	assert_int_equal(try_to_mount(), -ENODATA);
	free(entries);
}

/* Units of a checkpoint end where their zone has no room for one that is worth it. */
static void a_checkpoint_goes_on_where_a_unit_fits(void **state)
{
	static const struct {
		u32 capacity, blocks, ends[2];
		bool aligned;
		u32 finishes, units;
		bool fails;	/* they do */
	} rows[] = {
		/* A unit of 31 blocks, then one of 7 that fits exactly; or 6 are too few. */
		{ 40, 44, { 40, 7 }, true, 0, 3 },
		{ 40, 44, { 40, 7 }, false, 1, 3 },
		{ 39, 38, { 39, 8 }, true, 1, 2 },
		{ 39, 38, { 39, 8 }, false, 1, 2 },
		{ 39, 38, { 32, 8 }, true, 1, 2, .fails = true },
	};
	u32 i, k, *entries;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		/* Eight blocks of records, and a map whose last block is half full. */
		entries = begin_large(rows[i].capacity, (rows[i].blocks - 8) * 1024 - 512);
		aligned = rows[i].aligned;
		image_write_super(image, 0);
		entries[7] = put(LARGE_DATA, 1, 7, 9);
		entries[image->sb.logical_blocks - 1] =
			put(LARGE_DATA, 2, image->sb.logical_blocks - 1, 9);
		mount();
		drive.finishes = 0;
		finish_fails = rows[i].fails;
		stop_as_before();
		assert_int_equal(drive.finishes, rows[i].finishes);
		assert_int_equal(stats.meta_blocks, rows[i].blocks + rows[i].units);
		for (k = 0; k < 2; k++) {
			const struct flash_zone *zone = &image->flash.zones[4 + k];

			assert_int_equal(zone->wp, rows[i].ends[k]);
			assert_int_equal(zone->cond, k || rows[i].fails ? FLASH_OPEN : FLASH_FULL);
			assert_int_equal(mtftl_zone(&ftl, 4 + k)->quiet_wp, zone->wp);
		}
		mount_like_the_tool();
		assert_int_equal(drive.reads, READS_OF_LOG + 1 + rows[i].units);
		assert_memory_equal(map.entries, entries,
				    image->sb.logical_blocks * sizeof(*entries));
		free(entries);
	}
}

/* Another writer may have made them: they are read one after the other. */
static void a_checkpoint_of_uneven_units_is_loaded(void **state)
{
	static const struct {
		u32 logical_blocks;
		u8 sizes[8];
	} rows[] = {
		/* All in one zone, where units as long as the first one would be fewer. */
		{ LARGE_LOGICAL - 7 * 1024, { 20, 10, 31 } },
		{ LARGE_LOGICAL, { 31, 1, 1, 1, 1, 31 } },
		{ LARGE_LOGICAL, { 20, 10, 4, 31 } },
		{ LARGE_LOGICAL, { 1, 2, 3, 4, 5, 31, 31 } },
		{ LARGE_LOGICAL, { 20, 17, 31 } },
		{ LARGE_LOGICAL, { 5, 31, 31 } },
	};
	u32 *entries, i;
	unsigned long at;
	int r;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		u32 last = rows[i].logical_blocks - 1;

		entries = begin_large(LARGE_CAPACITY, rows[i].logical_blocks);
		entries[5] = put(LARGE_DATA, 1, 5, 9);
		entries[0x4000] = put(LARGE_DATA, 2, 0x4000, 9);
		entries[last] = put(LARGE_DATA, 3, last, 9);
		image->unit_sizes = rows[i].sizes;
		image_write_checkpoint(image, 2, 3, entries, MTFTL_SB_CLEAN);
		mount_like_the_tool();
		assert_memory_equal(map.entries, entries, (last + 1) * sizeof(*entries));
		/* No number of its units is drawn again. */
		assert_int_equal(mtftl_seq_last(&ftl), image->seq);
		free(entries);
	}
	assert_true(image->flash.zones[3].wp > 0);
	for (at = 1, r = -EINTR; r; at++) {
		assert_int_equal(r, -EINTR);
		kernel_kill_at = at;
		kernel_asked = 0;
		r = try_to_mount();
		assert_int_equal(!r, kernel_asked < at);
	}
	assert_true(at > 5);
}

/* So short that they take more zones than the record names. */
static void a_stream_beyond_its_zones_is_refused(void **state)
{
	u32 *entries = begin_large(LARGE_CAPACITY, LARGE_LOGICAL);
	u8 sizes[50];

	memset(sizes, 1, sizeof(sizes));
	image->unit_sizes = sizes;
	image_write_checkpoint(image, 2, 3, entries, MTFTL_SB_CLEAN);
	assert_int_equal(image->sb.ckpt_nr_zones, 2);
	assert_true(image->flash.zones[4].wp > 0);
	assert_int_equal(try_to_mount(), -EBADMSG);
	free(entries);
}

/* Its map has no block there: behind a zone's capacity, in a zone that is not there, in a buffer. */
static void an_entry_that_is_no_block_is_refused(void **state)
{
	const u32 wrong[] = {
		IMAGE_CAPACITY, IMAGE_ZONES * IMAGE_ZONE_BLOCKS, MTFTL_MAP_SLOTS, MTFTL_MAP_LOST - 1,
	};
	const bool map_log = image->sb.map_log;
	u32 entries[IMAGE_LOGICAL], i;

	memset(entries, 0xff, sizeof(entries));
	for (i = 0; i <= ARRAY_SIZE(wrong); i++) {
		begin_anew(state);
		image->sb.map_log = map_log;
		entries[5] = i ? wrong[i - 1] : MTFTL_MAP_LOST;
		if (map_log)
			assert_true(image_write_map_log(image, 0, entries, MTFTL_SB_CLEAN));
		else
			image_write_checkpoint(image, 2, 0, entries, MTFTL_SB_CLEAN);
		kernel_listens = "map entry of block %llu is";
		kernel_told = NULL;
		assert_int_equal(try_to_mount(), i ? -EINVAL : 0);
		assert_int_equal(!kernel_told, !i);
		kernel_listens = NULL;
	}
}

/* Of a number that this version would not make: then other zones would hold its data. */
static void a_checkpoint_in_more_zones_than_it_needs_is_refused(void **state)
{
	u32 page;

	image_write_checkpoint(image, 2, 10, map_of_blocks(0), 0);
	page = put(FIRST_DATA, 11, 5, 9);
	image->sb.ckpt_nr_zones = 2;
	image->sb.ckpt_zones[1] = 3;
	image_write_super(image, 0);
	assert_int_equal(try_to_mount(), -EINVAL);
	image->sb.ckpt_nr_zones = 1;
	image_write_super(image, 0);
	mount();
	assert_int_equal(map.entries[5], page);
}

static struct mtftl_unit *ckpt_unit(u32 offset)
{
	return (struct mtftl_unit *)image_block(image, 2, offset);
}

static void seal_ckpt_unit(u32 offset)
{
	mtftl_unit_seal(ckpt_unit(offset), image->seed, 2, offset, image->erase_count[2], 0);
}

static void no_unit_of_a_checkpoint_is_another(void **state)
{
	enum { AS_IT_IS, NO_HEADER, DATA, EMPTY, PADDED, SWAPPED, TOO_LONG, TOO_MANY, ALL } what;
	u32 *entries, i;

	for (what = AS_IT_IS; what < ALL; what++) {
		static const u8 one_more[] = { 31, 7, 3 };
		struct mtftl_entry *entry;

		entries = begin_large(LARGE_CAPACITY, LARGE_LOGICAL);
		image_write_checkpoint(image, 2, 3, entries, MTFTL_SB_CLEAN);
		entry = (struct mtftl_entry *)(ckpt_unit(0) + 1);
		switch (what) {
		case NO_HEADER:
			ckpt_unit(0)->magic++;
			break;
		case DATA:
			ckpt_unit(0)->type = MTFTL_UNIT_DATA;
			break;
		case EMPTY:
			ckpt_unit(0)->nr_blocks = 0;
			ckpt_unit(0)->nr_entries = 0;
			break;
		case PADDED:
			ckpt_unit(0)->nr_entries = cpu_to_le16(30);
			break;
		case SWAPPED:
			entry[3].lba = cpu_to_le64(4);
			break;
		case TOO_LONG:
			/* It takes the header of the one behind it. */
			ckpt_unit(0)->nr_blocks = cpu_to_le16(32);
			mtftl_unit_add_entry(ckpt_unit(0), 31,
					     mtftl_payload_crc(image->seed, ckpt_unit(32)));
			break;
		default:
			break;
		}
		if (what == TOO_MANY) {
			image->sb.logical_blocks -= 1024;
			image->sb.ckpt_blocks--;
			image->unit_sizes = one_more;
			image_write_super(image, MTFTL_SB_CLEAN);
		}
		if (what != AS_IT_IS && what != NO_HEADER)
			seal_ckpt_unit(0);
		kernel_listens = what == NO_HEADER ? "no header that verifies" :
						     "expected a unit of a checkpoint";
		kernel_told = NULL;
		assert_int_equal(!try_to_mount(), what == AS_IT_IS);
		i = what != AS_IT_IS && what != SWAPPED && what != TOO_MANY;
		assert_int_equal(!!kernel_told, i);
		/* Of what its header says cannot be read, no more is read than that. */
		unreadable = flash_page(&image->flash, 2, 5);
		kernel_told = NULL;
		assert_int_not_equal(try_to_mount(), 0);
		assert_int_equal(!!kernel_told, what == NO_HEADER || what == EMPTY || what == TOO_LONG);
		unreadable = 0;
		kernel_listens = NULL;
		free(entries);
	}
}

/* So far that its map would take more zones than are set aside: these would be zones of data. */
static void a_device_that_grows_keeps_its_data(void **state)
{
	struct report report = { .quiet = true };
	struct mtftl_sb_info was, now;
	u32 page;

	unmount();
	image_free(image);
	image = image_new_of(1024, IMAGE_ZONE_BLOCKS, IMAGE_CAPACITY, 80000);
	image->sb.nr_zones = 800;
	image->sb.op_permille = 10;
	image->flash.nr_zones = 800;
	image_write_super(image, 0);
	page = put(4, 7, 9, 9);
	mount();
	assert_int_equal(map.entries[9], page);
	stop_as_before();
	unmount();
	image->flash.nr_zones = 1024;
	assert_int_equal(rebuild_grow(&image->flash, &report, &was, &now), 0);
	assert_int_equal(now.logical_blocks, mtftl_ckpt_most_blocks(1024, IMAGE_CAPACITY, 1));
	assert_int_equal(mtftl_ckpt_zones(1024, IMAGE_CAPACITY, now.logical_blocks + 1), 2);
	mount_like_the_tool();
	assert_int_equal(map.entries[9], page);
}

/* A log of map blocks */

/* Formatted with a log, or without one; how many zones are set aside. */
static u32 begin_logged_of(u32 zones, u32 logical, bool map_log)
{
	u32 seats = 2 * mtftl_ckpt_zones(zones, IMAGE_CAPACITY, logical);

	unmount();
	image_free(image);
	logged.logical = logical;
	image = image_new_of(zones, IMAGE_ZONE_BLOCKS, IMAGE_CAPACITY, logical);
	image->sb.map_log = map_log;
	image_write_super(image, 0);
	mount();
	logged.next_zone = MTFTL_NR_SB_ZONES + seats;
	logged.entries = realloc(logged.entries, logical * sizeof(u32));
	memset(logged.entries, 0xff, logical * sizeof(u32));
	return seats;
}

/* Of that many zones set aside: 2 or 4. */
static void begin_logged(u32 seats, bool map_log)
{
	assert_int_equal(begin_logged_of(seats > 2 ? 1024 : 60, seats > 2 ? 114900 : 5000, map_log),
			 seats);
}

/* A block of that chunk is written, as a user would. */
static void write_chunk(u32 chunk)
{
	u32 lba = (chunk << MTFTL_CHUNK_SHIFT) + chunk % 100;
	struct mtftl_zone *zone;

	if (image->flash.zones[logged.next_zone].wp + 2 > image->flash.zone_capacity)
		logged.next_zone++;
	zone = mtftl_zone(&ftl, logged.next_zone);
	logged.entries[lba] = put(zone->index, mtftl_seq_draw(&ftl), lba, chunk);
	if (!zone->first_seq)
		zone->first_seq = mtftl_seq_last(&ftl);
	zone->quiet_wp = image->flash.zones[zone->index].wp;
	mtftl_map_set(&ftl, lba, logged.entries[lba]);
}

static void expect_logged(void)
{
	assert_memory_equal(map.entries, logged.entries, logged.logical * sizeof(u32));
}

static u64 written_by(int (*checkpoint)(struct mtftl *ftl))
{
	u64 before = stats.meta_blocks;

	assert_int_equal(checkpoint(&ftl), 0);
	return stats.meta_blocks - before;
}

static int dirty_checkpoint(struct mtftl *of)
{
	return mtftl_checkpoint(of, false);
}

static int clean_checkpoint(struct mtftl *of)
{
	return mtftl_checkpoint(of, true);
}

static void a_checkpoint_writes_what_changed(void **state)
{
	const u32 stream = 1 + 8 + 1;	/* records, directory */
	u32 i;

	begin_logged(4, true);
	/* What was never written takes no room. */
	assert_int_equal(written_by(dirty_checkpoint), stream);
	for (i = 0; i < 100; i++)
		write_chunk(i);
	assert_int_equal(written_by(dirty_checkpoint), 100 + 4 + stream);
	assert_int_equal(written_by(dirty_checkpoint), stream);
	write_chunk(7);
	write_chunk(7);
	write_chunk(99);
	assert_int_equal(written_by(clean_checkpoint), 1 + 2 + stream);
	mount_like_the_tool();
	assert_true(mtftl_super_is_clean(&ftl));
	expect_logged();
	/* All of a chunk is discarded. */
	mtftl_map_set(&ftl, 7 * 1024 + 7, MTFTL_MAP_UNMAPPED);
	logged.entries[7 * 1024 + 7] = MTFTL_MAP_UNMAPPED;
	assert_int_equal(written_by(clean_checkpoint), stream);
	mount_like_the_tool();
	expect_logged();
	/* The last one, of which the device has a part. */
	write_chunk(112);
	assert_int_equal(written_by(dirty_checkpoint), 1 + 1 + stream);
	mtftl_map_set(&ftl, 112 * 1024 + 12, MTFTL_MAP_UNMAPPED);
	assert_int_equal(written_by(dirty_checkpoint), stream);
}

/* The drive has a part of a block behind the checkpoint, and counts zones that are written in part. */
static void a_log_goes_on_behind_a_torn_block(void **state)
{
	struct flash_zone *head;
	u32 seats, seat;

	for (seats = 2; seats <= 4; seats += 2) {
		begin_logged(seats, true);
		write_chunk(1);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		seat = ftl.super->info.ckpt_seat;
		head = &image->flash.zones[MTFTL_NR_SB_ZONES + seat];
		head->torn_sectors = 3;
		mount_like_the_tool();
		write_chunk(2);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		assert_int_equal(space.state.zones[MTFTL_ZONE_BAD], 0);
		assert_int_equal(head->cond, FLASH_FULL);
		assert_int_equal(ftl.super->info.ckpt_seat, (seat + 1) % seats);
		mount_like_the_tool();
		expect_logged();
	}
}

/* A block that cannot be read, behind the stream; then map blocks on both sides of it. */
static void what_a_cut_tore_in_the_log_hides_nothing(void **state)
{
	u32 seats, zone;

	for (seats = 2; seats <= 4; seats += 2) {
		begin_logged(seats, true);
		write_chunk(1);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		zone = MTFTL_NR_SB_ZONES + ftl.super->info.ckpt_seat;
		unreadable = flash_page(&image->flash, zone, image->flash.zones[zone].wp++);
		image->unreadable = unreadable;
		mount_like_the_tool();
		expect_logged();
		write_chunk(2);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		assert_int_equal(MTFTL_NR_SB_ZONES + ftl.super->info.ckpt_seat, zone);
		mount_like_the_tool();
		expect_logged();
		/* A map block, behind the header of its unit. */
		unreadable += 2;
		assert_int_not_equal(try_to_mount(), 0);
		unreadable = 0;
		image->unreadable = IMAGE_ALL_READABLE;
	}
}

/* A drive counts them, and the log may not come to them for long. */
static void what_a_cut_left_of_a_checkpoint_is_finished(void **state)
{
	u32 seat, i;

	begin_logged(4, true);
	write_chunk(1);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	seat = ftl.super->info.ckpt_seat;
	for (i = 1; i < 3; i++)
		image->flash.zones[MTFTL_NR_SB_ZONES + (seat + i) % 4] =
			(struct flash_zone) {
				.cond = FLASH_OPEN, .wp = i > 1 ? 0 : 3, .torn_sectors = i > 1,
			};
	mount();
	for (i = 1; i < 3; i++)
		assert_int_equal(image->flash.zones[MTFTL_NR_SB_ZONES + (seat + i) % 4].cond,
				 FLASH_FULL);
	assert_int_equal(image->flash.zones[MTFTL_NR_SB_ZONES + seat].cond, FLASH_OPEN);
	expect_logged();
}

/* Nor is it needed: another one takes its seat. */
static void a_read_only_zone_of_the_log_is_replaced(void **state)
{
	u32 seat, i;

	begin_logged(4, true);
	write_chunk(1);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	seat = (ftl.super->info.ckpt_seat + 2) % 4;
	image->flash.zones[MTFTL_NR_SB_ZONES + seat] = (struct flash_zone) {
		.cond = FLASH_READONLY, .wp = IMAGE_CAPACITY,
	};
	mount();
	assert_false(mtftl_is_read_only(&ftl));
	assert_int_equal(space.state.zones[MTFTL_ZONE_CKPT], 4);
	assert_int_not_equal(mtftl_zone(&ftl, MTFTL_NR_SB_ZONES + seat)->state, MTFTL_ZONE_CKPT);
	for (i = 0; i < 30; i++) {
		write_chunk(i);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	}
	mount();
	expect_logged();
}

/* A device that was grown has data where one of its size has zones set aside. */
static void a_low_zone_that_no_log_names_holds_data(void **state)
{
	u32 page;

	begin_logged(2, true);
	write_chunk(1);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_int_equal(ftl.super->info.ckpt_seat, 1);
	image->sb = ftl.super->info;
	image->sb.ckpt_zones[0] = 50;
	image->flash.zones[50].cond = FLASH_OFFLINE;
	image_write_super(image, 0);
	page = put(2, mtftl_seq_last(&ftl) + 1, 9, 9);
	mount();
	assert_int_equal(map.entries[9], page);
	assert_int_equal(mtftl_checkpoint(&ftl, true), 0);
	mount_like_the_tool();
	assert_int_equal(map.entries[9], page);
}

/* What the tool makes of a damaged checkpoint, and how many zones are not there. */
static int rebuild(struct rebuild_totals *totals)
{
	struct report report = { .quiet = true };

	unmount();
	return rebuild_flash(&image->flash, &report, true, totals);
}

/* The first header of the stream that the newest record names; its byte that is wrong. */
static u8 *damage_stream(void)
{
	const struct mtftl_sb_info *sb = &ftl.super->info;
	u8 *damaged = image_block(image, sb->ckpt_zones[sb->ckpt_seat], sb->ckpt_offset) + 9;

	*damaged ^= 1;
	return damaged;
}

static int refuse_write(struct flash *flash, u32 zone, u32 offset, u32 nr, const void *data)
{
	return -EIO;
}

/* It has emptied zones by then. What was damaged was only not readable for a while. */
static void cut_a_rebuild(u8 *damaged)
{
	int (*write)(struct flash *, u32, u32, u32, const void *) = image->flash.write;
	struct rebuild_totals totals;

	image->flash.write = refuse_write;
	assert_int_equal(rebuild(&totals), -EIO);
	image->flash.write = write;
	*damaged ^= 1;
	mount_like_the_tool();
	expect_logged();
	*damaged ^= 1;
}

/* Checkpoints of the older kind name half of the zones set aside: where the others lay may be data. */
static void low_zones_with_data_are_not_taken(void **state)
{
	u32 seats, zone, taken;

	for (seats = 2; seats <= 4; seats += 2)
		for (taken = 1; taken <= seats; taken++) {
			begin_logged(seats, false);
			if (taken < seats)
				image_write_checkpoint(image, 50, 1, logged.entries, 0);
			for (zone = 2; zone < 2 + taken; zone++)
				logged.entries[zone] = put(zone, image->seq + 1, zone, 9);
			mount_like_the_tool();
			expect_logged();
			assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
			mount_like_the_tool();
			expect_logged();
			assert_int_equal(mtftl_checkpoint(&ftl, true), 0);
			mount_like_the_tool();
			expect_logged();
			assert_int_equal(space.state.zones[MTFTL_ZONE_CKPT], seats);
		}
}

/* Into the zones set aside that the damaged one does not need: none of them is left to users. */
static void a_damaged_log_is_rebuilt_among_its_zones(void **state)
{
	struct rebuild_totals totals;
	u32 seats, i;
	u8 *damaged;

	for (seats = 2; seats <= 4; seats += 2) {
		begin_logged(seats, true);
		for (i = 0; i < 5; i++)
			write_chunk(i);
		/* Up to the first seat: the tool looks for free ones from there on. */
		do {
			write_chunk(1);
			assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		} while (ftl.super->info.ckpt_seat);
		damaged = damage_stream();
		assert_int_not_equal(try_to_mount(), 0);
		/* No zone is empty. */
		for (i = MTFTL_NR_SB_ZONES; i < image->flash.nr_zones; i++)
			if (image->flash.zones[i].cond == FLASH_EMPTY)
				image->flash.zones[i] = (struct flash_zone) {
					.cond = FLASH_OPEN, .wp = 1,
				};
		/* The power goes before the new checkpoint is there: the old one has lost nothing. */
		cut_a_rebuild(damaged);
		assert_int_equal(rebuild(&totals), 0);
		assert_true(totals.missing > 0);
		mount_like_the_tool();
		expect_logged();
		assert_false(ftl.super->info.map_log);
		for (i = 0; i < seats; i++)
			assert_int_equal(mtftl_zone(&ftl, MTFTL_NR_SB_ZONES + i)->state,
					 MTFTL_ZONE_CKPT);
	}
}

/* Only a newer program can tell what it is, and the next mount would meet it. */
static void a_log_with_a_newer_unit_is_not_rebuilt(void **state)
{
	struct rebuild_totals totals;
	struct mtftl_unit *unit;
	u32 seat, zone, at, i;
	u64 generation;

	for (seat = 0; seat < 4; seat++) {
		begin_logged(4, true);
		for (i = 0; i < 5; i++)
			write_chunk(i);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		zone = ftl.super->info.ckpt_zones[seat];
		generation = ftl.super->info.generation;
		damage_stream();
		/* Behind what is damaged it may be a user's block. */
		if (seat == ftl.super->info.ckpt_seat)
			continue;
		at = put(zone, image->seq + 1, 1, 1) % image->flash.zone_blocks - 1;
		unit = (struct mtftl_unit *)image_block(image, zone, at);
		unit->version++;
		mtftl_unit_seal(unit, image->seed, zone, at, image->erase_count[zone], 0);
		assert_int_equal(rebuild(&totals), -EPROTO);
		assert_int_not_equal(try_to_mount(), 0);
		assert_int_equal(ftl.super->info.generation, generation);
	}
}

/*
 * An attempt that a cut ended has written a stream, elsewhere. Its numbers are drawn again, and then
 * the stream that has them is damaged.
 */
static void an_attempt_of_the_same_numbers_is_not_salvaged(void **state)
{
	struct rebuild_totals totals;
	u64 number;
	u32 i;

	begin_logged(4, true);
	for (i = 0; i < 60; i++)
		write_chunk(i);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	for (; i < 113; i++)
		write_chunk(i);
	/* The next one writes all of the map, and its stream to a zone of its own. */
	drive.fail_write = 1;
	drive.pause_then = true;
	assert_int_not_equal(mtftl_checkpoint(&ftl, false), 0);
	device.paused = false;
	drive.fail_log = 4;
	assert_int_not_equal(mtftl_checkpoint(&ftl, false), 0);
	number = mtftl_seq_last(&ftl);
	mount_like_the_tool();
	/* Two units of map blocks, and one of the stream. */
	while (mtftl_seq_last(&ftl) + 3 < number)
		write_chunk(70);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_int_equal(ftl.super->info.ckpt_unit_first, number);
	assert_int_equal(ftl.super->info.ckpt_unit_last, number);
	mount_like_the_tool();
	expect_logged();
	damage_stream();
	assert_int_equal(rebuild(&totals), 0);
	assert_int_equal(totals.missing, 8 + 113);
	mount_like_the_tool();
	expect_logged();
}

/* It claims blocks that a cut has not written, and the log went on there. */
static void a_torn_unit_in_front_of_a_stream_hides_none_of_it(void **state)
{
	static const u8 one_by_one[] = { 1, 1 };
	struct rebuild_totals totals;
	struct mtftl_unit *unit;

	begin_logged(2, false);
	image->unit_sizes = one_by_one;
	assert_true(image_write_map_log(image, 1, logged.entries, 0));
	unit = (struct mtftl_unit *)image_block(image, 2, 0);
	unit->nr_blocks = cpu_to_le16(IMAGE_STREAM_UNIT);
	mtftl_unit_seal(unit, image->seed, 2, 0, image->erase_count[2], 0);
	mount_like_the_tool();
	/* Zone records; the directory is in a unit of its own. */
	damage_stream();
	assert_int_equal(rebuild(&totals), 0);
	assert_int_equal(totals.missing, 1);
}

/* No zone is left that takes its place: the next try begins behind it. */
static void a_head_of_the_log_that_fails_needs_no_zone(void **state)
{
	u32 seats, mounting, i;

	for (seats = 2; seats <= 4; seats += 2)
		for (mounting = 0; mounting < 2; mounting++) {
			begin_logged(seats, true);
			for (i = 0; i < 5; i++)
				write_chunk(i);
			assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
			write_chunk(1);
			mount();
			drive.fail_write = 1;
			assert_int_equal(mounting ? mtftl_checkpoint_mount(&ftl) :
						    mtftl_checkpoint(&ftl, true), 0);
			assert_int_equal(drive.fail_write, 0);
			assert_false(mtftl_is_read_only(&ftl));
			mount_like_the_tool();
			expect_logged();
			for (i = 0; i < 30; i++) {
				write_chunk(i % 5);
				assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
			}
			mount_like_the_tool();
			expect_logged();
		}
}

/* Its zone was read-only before: the one spare zone goes to the seat that lacks one. */
static void a_read_only_head_of_the_log_stays(void **state)
{
	u32 head, i;

	begin_logged(4, true);
	for (i = 0; i < 5; i++)
		write_chunk(i);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	head = ftl.super->info.ckpt_zones[ftl.super->info.ckpt_seat];
	write_chunk(1);
	read_only.end = image->flash.zones[head].wp;
	image->flash.zones[head].cond = FLASH_READONLY;
	mount();
	expect_logged();
	module_spare = image->flash.nr_zones - 1;
	lies_at = 1;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	module_spare = 0;
	assert_int_equal(mtftl_zone(&ftl, head)->state, MTFTL_ZONE_CKPT);
	assert_int_equal(space.state.zones[MTFTL_ZONE_BAD], 1);
	mount();
	expect_logged();
}

/* A zone of the log cannot be reset yet: what changed is still known. */
static void a_pause_before_a_zone_is_entered_costs_nothing(void **state)
{
	const struct mtftl_sb_info *sb;
	u64 before;
	u32 i;

	begin_logged(4, true);
	for (i = 0; i < 60; i++)
		write_chunk(i);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	sb = &ftl.super->info;
	while (image->flash.zones[sb->ckpt_zones[sb->ckpt_seat]].wp + 8 <= IMAGE_CAPACITY) {
		write_chunk(1);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	}
	write_chunk(2);
	device.paused = true;
	assert_int_equal(mtftl_checkpoint(&ftl, false), -EAGAIN);
	device.paused = false;
	before = stats.meta_blocks;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_int_equal(stats.meta_blocks - before, 1 + 1 + 1 + 8 + 1);
	mount_like_the_tool();
	expect_logged();
}

#define STREAM_BLOCKS	9u	/* of begin_stream(): only the last one is of the directory */

/* Block @index of a stream, in a unit of its own. */
static void write_stream_block(u32 zone, u64 index, u64 number)
{
	u16 content = index == STREAM_BLOCKS - 1 ? 0xffff : 0;

	image_write_unit(image, zone, MTFTL_UNIT_CKPT, number, 1, &index, &content);
}

/* Of units that have numbers from 10 on; two zones are set aside. */
static void begin_stream(u32 capacity)
{
	struct mtftl_log_shape shape;

	unmount();
	image_free(image);
	image = image_new_of(1024, capacity, capacity, 1000);
	mtftl_log_shape(&shape, 1024, capacity, 1000);
	assert_int_equal(shape.seats, 2);
	assert_int_equal(shape.stream_blocks, STREAM_BLOCKS);
	image->sb.map_log = true;
	image->sb.ckpt_seq = 1;
	image->sb.ckpt_blocks = STREAM_BLOCKS;
	image->sb.ckpt_nr_zones = 2;
	image->sb.ckpt_zones[0] = 2;
	image->sb.ckpt_zones[1] = 3;
	image->sb.ckpt_unit_first = 10;
	image->sb.ckpt_unit_last = 10 + STREAM_BLOCKS - 1;
}

/* Units of one block: it ends in the seat that it begins in, in front of its beginning. */
static void a_stream_that_goes_round_is_refused(void **state)
{
	struct report report = { .quiet = true };
	struct check_totals totals;
	u64 i;

	begin_stream(16);
	for (i = 6; i < 9; i++)
		write_stream_block(2, i, 10 + i);
	image->flash.zones[2].wp = 8;
	write_stream_block(2, 0, 10);
	for (i = 1; i < 6; i++)
		write_stream_block(3, i, 10 + i);
	image->sb.ckpt_offset = 8;
	image_write_super(image, 0);
	kernel_listens = "expected at most %u seats from seat %u on";
	kernel_told = NULL;
	assert_int_equal(try_to_mount(), -EINVAL);
	assert_non_null(kernel_told);
	kernel_listens = NULL;
	check_flash(&image->flash, &report, &totals);
	assert_true(report.errors > 0);
}

/* They grow from the first one that the record names to the last one, and no other unit has them. */
static void numbers_of_a_stream_are_as_its_record_says(void **state)
{
	static const struct {
		u32 unit;
		u64 number;
		bool fits;
	} rows[] = {
		{ 4, 14, true },
		{ 4, 13, false },	/* that of the unit in front of it */
		{ 4, 12, false },
		{ 4, 18, false },	/* that of the last one */
		{ 7, 18, false },
		{ 8, 18, true },
		{ 8, 19, false },
		{ 0, 9, false },
		{ 0, 11, false },
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		begin_stream(64);
		for (k = 0; k < STREAM_BLOCKS; k++)
			write_stream_block(2, k, k == rows[i].unit ? rows[i].number : 10 + k);
		image_write_super(image, 0);
		assert_int_equal(try_to_mount(), rows[i].fits ? 0 : -EINVAL);
	}
	/* One that is a single unit. */
	begin_logged(2, false);
	assert_true(image_write_map_log(image, 1, logged.entries, 0));
	mount();
	assert_int_equal(image->sb.ckpt_unit_first, image->sb.ckpt_unit_last);
	image->sb.ckpt_unit_last++;
	image_write_super(image, 0);
	assert_int_equal(try_to_mount(), -EINVAL);
}

/* It writes each map block, also those without an entry. */
static void a_log_of_another_writer_is_loaded(void **state)
{
	u32 i;

	begin_logged(4, false);
	for (i = 0; i < 1000; i++)
		logged.entries[i * 99] = put(logged.next_zone + i / 50, 1 + i, i * 99, i);
	image->seq = 2000;
	assert_true(image_write_map_log(image, 2000, logged.entries, MTFTL_SB_CLEAN));
	assert_true(image->flash.zones[3].wp > 0);
	mount_like_the_tool();
	assert_true(mtftl_super_is_clean(&ftl));
	expect_logged();
	/* Large reads: four for each zone, and the stream. */
	assert_in_range(drive.reads, 4, 12);
	assert_int_equal(mtftl_checkpoint(&ftl, true), 0);
	mount_like_the_tool();
	expect_logged();
	/* A map block of it. */
	image_block(image, 2, 1)[9] ^= 1;
	assert_int_equal(try_to_mount(), -EBADMSG);
	image_block(image, 2, 1)[9] ^= 1;
	mount();
	/* The stream's header. */
	image_block(image, ftl.super->info.ckpt_zones[ftl.super->info.ckpt_seat],
		    ftl.super->info.ckpt_offset)[9] ^= 1;
	assert_int_not_equal(try_to_mount(), 0);
}

/* Round and round, and what lies in the oldest zone is carried over. */
static void the_log_of_map_blocks_goes_round(u32 seats)
{
	const u32 chunks = seats > 2 ? 113 : 5;
	u32 i, k, drawn = 1;

	begin_logged(seats, true);
	for (i = 0; i < chunks; i++)
		write_chunk(i);
	for (i = 0; i < 60; i++) {
		for (k = 0; k < i % 7; k++) {
			drawn = drawn * 1664525 + 1013904223;
			write_chunk((drawn >> 8) % chunks);
		}
		assert_int_equal(mtftl_checkpoint(&ftl, i % 3), 0);
		if (i % 5)
			continue;
		mount_like_the_tool();
		expect_logged();
		/* None of them failed. */
		for (k = 0; k < seats; k++)
			assert_int_equal(ftl.super->info.ckpt_zones[k], MTFTL_NR_SB_ZONES + k);
	}
	assert_true(mtftl_zone(&ftl, MTFTL_NR_SB_ZONES)->erase_count > 1);
}

static void a_log_of_two_zones_goes_round(void **state)
{
	the_log_of_map_blocks_goes_round(2);
}

static void a_log_of_four_zones_goes_round(void **state)
{
	the_log_of_map_blocks_goes_round(4);
}

/* It is finished by the next one, as nothing is sent in a pause. */
static void a_pause_before_the_head_is_finished_costs_nothing(void **state)
{
	struct flash_zone *head;
	u64 finishes;

	begin_logged(2, true);
	write_chunk(1);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	head = &image->flash.zones[MTFTL_NR_SB_ZONES + ftl.super->info.ckpt_seat];
	/* After one that failed all of the map is written, to the other zone. */
	write_chunk(2);
	drive.fail_write = 1;
	drive.pause_then = true;
	assert_int_not_equal(mtftl_checkpoint(&ftl, false), 0);
	device.paused = false;
	drive.pause_in_reset = true;
	finishes = drive.finishes;
	assert_int_equal(mtftl_checkpoint(&ftl, false), -EAGAIN);
	assert_int_equal(drive.finishes, finishes);
	assert_int_equal(head->cond, FLASH_OPEN);
	drive.pause_in_reset = false;
	device.paused = false;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_int_equal(head->cond, FLASH_FULL);
	mount_like_the_tool();
	expect_logged();
}

/* Writes of a checkpoint until it fails there, and the device is suspended: as a cut leaves it. */
static void cut_at_each_write(u32 seats, bool map_log, bool clean, u32 rounds)
{
	const u32 chunks = seats > 2 ? 113 : 5;
	u32 at, i, k;
	int r = 1;

	for (at = 1; r; at++) {
		begin_logged(seats, map_log);
		for (i = 0; i < chunks; i++)
			write_chunk(i);
		for (i = 0; i < rounds; i++) {
			for (k = 0; k < chunks / 4; k++)
				write_chunk((i * 7 + k) % chunks);
			assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		}
		write_chunk(1);
		drive.fail_write = at;
		drive.pause_then = true;
		r = mtftl_checkpoint(&ftl, clean);
		assert_true(r ? device.paused : at > 1);
		mount_like_the_tool();
		expect_logged();
		write_chunk(2);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		mount_like_the_tool();
		expect_logged();
		assert_int_equal(mtftl_checkpoint(&ftl, true), 0);
		mount_like_the_tool();
		expect_logged();
		assert_true(ftl.super->info.map_log);
	}
}

static void a_checkpoint_that_is_cut_leaves_the_one_before(void **state)
{
	u32 rounds;

	for (rounds = 1; rounds < 12; rounds++)
		cut_at_each_write(2, true, false, rounds);
	for (rounds = 2; rounds < 9; rounds += 2)
		cut_at_each_write(4, true, false, rounds);
}

/* Where a unit ends with the records, or within them. */
static void a_checkpoint_of_many_records_may_end_anywhere(void **state)
{
	const u32 zones[] = { 31 * 128, 31 * 128 + 1 };
	u32 turn, at;
	bool is_last;
	int r;

	/* With and without a log; a zone fails, or it is cut. */
	for (turn = 0; turn < 4 * ARRAY_SIZE(zones); turn++) {
		assert_int_equal(begin_logged_of(zones[turn / 4], 2000, turn & 1), 2);
		write_chunk(1);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		module_spare = image->flash.nr_zones - 20;
		for (at = 1, is_last = false; !is_last; at++) {
			write_chunk(at % 2);
			drive.fail_write = at;
			drive.pause_then = turn & 2;
			r = mtftl_checkpoint(&ftl, false);
			assert_true(!r || device.paused);
			is_last = drive.fail_write;
			mount_like_the_tool();
			expect_logged();
		}
		assert_true(at > 3);
	}
}

static void a_clean_stop_brings_an_older_device_over(void **state)
{
	begin_logged(4, false);
	write_chunk(3);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_false(ftl.super->info.map_log);
	mount_like_the_tool();
	expect_logged();
	assert_int_equal(mtftl_checkpoint(&ftl, true), 0);
	assert_true(ftl.super->info.map_log);
	mount_like_the_tool();
	assert_true(mtftl_super_is_clean(&ftl));
	expect_logged();
	/* A cut in it leaves the older one. */
	logged.unseen = true;
	cut_at_each_write(2, false, true, 1);
	cut_at_each_write(4, false, true, 2);
	/* Zones too small for it stay as they are. */
	unmount();
	image_free(image);
	image = image_new_of(40, 16, 16, 200);
	image_write_super(image, 0);
	mount();
	assert_int_equal(mtftl_checkpoint(&ftl, true), 0);
	mount();
	assert_int_equal(ftl.super->info.map_log, true);
	unmount();
	image_free(image);
	image = image_new_of(12, 8, 8, 8);
	image_write_super(image, 0);
	mount();
	assert_int_equal(mtftl_checkpoint(&ftl, true), 0);
	mount_like_the_tool();
	assert_false(ftl.super->info.map_log);
}

/* The zone set aside that the log goes on in; 0: it begins a new one. */
static u32 head_of_the_log(void)
{
	u32 i;

	for (i = 0; i < ftl.super->info.ckpt_nr_zones; i++)
		if (image->flash.zones[ftl.super->info.ckpt_zones[i]].cond == FLASH_OPEN)
			return ftl.super->info.ckpt_zones[i];
	return 0;
}

/*
 * It retires, and another zone takes its seat; the head is left, and is whole. Nothing of the map is
 * missing.
 */
static void a_zone_of_the_log_that_fails_is_replaced(void **state)
{
	u32 seats, rounds, at, head, bad, heads = 0, others = 0, i;

	for (seats = 2; seats <= 4; seats += 2)
		for (rounds = 1; rounds < 24; rounds++)
			for (at = 1; ; at++) {
				begin_logged(seats, true);
				for (i = 0; i < 10 * rounds; i++)
					write_chunk(i % (seats > 2 ? 113 : 5));
				for (i = 0; i < rounds; i++)
					assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
				write_chunk(1);
				head = head_of_the_log();
				drive.fail_write = at;
				module_spare = image->flash.nr_zones - 3;
				assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
				module_spare = 0;
				assert_int_equal(drive.fail_write, 0);
				/* The last one is the record. */
				if (drive.failed < MTFTL_NR_SB_ZONES) {
					assert_true(at > 2);
					break;
				}
				bad = drive.failed != head;
				heads += !bad;
				others += bad;
				assert_int_equal(space.state.zones[MTFTL_ZONE_BAD], bad);
				mount_like_the_tool();
				expect_logged();
				assert_int_equal(space.state.zones[MTFTL_ZONE_BAD], bad);
				assert_int_equal(space.state.zones[MTFTL_ZONE_CKPT], seats);
				for (i = 0; i < 5; i++) {
					write_chunk(i);
					assert_int_equal(mtftl_checkpoint(&ftl, i % 2), 0);
				}
				mount_like_the_tool();
				expect_logged();
			}
	assert_true(heads && others);
}

/* A drive may finish what is open for long: no zone retires, and no empty one is taken. */
static void a_head_of_the_log_that_the_drive_finishes_is_left(void **state)
{
	u32 seats, round, head, left = 0;

	for (seats = 2; seats <= 4; seats += 2) {
		begin_logged(seats, true);
		module_spare = image->flash.nr_zones - 3;
		for (round = 0; round < 20; round++) {
			write_chunk(round % 5);
			assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
			head = head_of_the_log();
			if (head) {
				image->flash.zones[head].cond = FLASH_FULL;
				image->flash.zones[head].wp = image->flash.zone_capacity;
			}
			left += !!head;
		}
		assert_int_equal(module_spare, image->flash.nr_zones - 3);
		module_spare = 0;
		assert_int_equal(space.state.zones[MTFTL_ZONE_BAD], 0);
		write_chunk(1);
		mount_like_the_tool();
		expect_logged();
		assert_int_equal(space.state.zones[MTFTL_ZONE_BAD], 0);
	}
	assert_true(left >= 30);
}

/* The checkpoint before it stays; what a mount lacks makes the device read-only. */
static void a_checkpoint_without_a_zone_to_spare_fails(void **state)
{
	u32 mounting;

	for (mounting = 0; mounting < 2; mounting++) {
		begin_logged(4, false);
		write_chunk(1);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		drive.fail_write = 1;
		assert_int_equal(mounting ? mtftl_checkpoint_mount(&ftl) :
					    mtftl_checkpoint(&ftl, false), -EIO);
		assert_int_equal(mtftl_is_read_only(&ftl), mounting);
		assert_int_equal(space.state.zones[MTFTL_ZONE_BAD], 0);
		assert_int_equal(mtftl_checkpoint(&ftl, false), mounting ? -EROFS : 0);
		mount_like_the_tool();
		expect_logged();
	}
}

/* The newest record cannot be read: the one before it names what is there still. */
static void an_older_record_finds_its_checkpoint(void **state)
{
	u32 i;

	begin_logged(4, true);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	for (i = 0; i < 9; i++) {
		write_chunk(i);
		write_chunk(20 + i);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		unreadable = flash_page(&image->flash, ftl.super->zone, ftl.super->wp - 1);
		image->unreadable = unreadable;
		mount_like_the_tool();
		expect_logged();
		unreadable = 0;
		image->unreadable = IMAGE_ALL_READABLE;
		mount();
	}
}

/* The stream's last block: of a directory of less than a block. Sealed again, as a forger would. */
static struct mtftl_map_place *forge(void (*how)(struct mtftl_map_place *places))
{
	const struct mtftl_sb_info *sb = &ftl.super->info;
	u32 zone = sb->ckpt_zones[sb->ckpt_seat], crc;
	struct mtftl_unit *unit = (void *)image_block(image, zone, sb->ckpt_offset);
	u32 last = le16_to_cpu(unit->nr_entries);
	struct mtftl_entry *entry = (struct mtftl_entry *)(unit + 1) + last - 1;
	struct mtftl_map_place *places = (void *)image_block(image, zone, sb->ckpt_offset + last);

	how(places);
	crc = mtftl_payload_crc(image->seed, places);
	entry->crc = cpu_to_le32(crc);
	mtftl_unit_seal(unit, image->seed, zone, sb->ckpt_offset,
			le32_to_cpu(unit->erase_count), le64_to_cpu(unit->durable_seq));
	return places;
}

static void forge_nothing(struct mtftl_map_place *places)
{
}

static void forge_far(struct mtftl_map_place *places)
{
	places[1].at = cpu_to_le32(2 * IMAGE_CAPACITY + 1);
}

static void forge_header(struct mtftl_map_place *places)
{
	places[1].at = cpu_to_le32(IMAGE_CAPACITY);
}

static void forge_unwritten(struct mtftl_map_place *places)
{
	places[1].at = cpu_to_le32(le32_to_cpu(places[1].at) / IMAGE_CAPACITY * IMAGE_CAPACITY +
				   IMAGE_CAPACITY - 1);
}

static void forge_twice(struct mtftl_map_place *places)
{
	places[1] = places[2];
}

static void forge_crc(struct mtftl_map_place *places)
{
	places[1].crc ^= cpu_to_le32(1);
}

static void forge_elsewhere(struct mtftl_map_place *places)
{
	/* A block that is written, in the other half of the circle. */
	places[1].at = cpu_to_le32((1 - le32_to_cpu(places[1].at) / IMAGE_CAPACITY) *
				   IMAGE_CAPACITY + 1);
}

static void forged_directories_are_refused(void **state)
{
	static const struct {
		void (*how)(struct mtftl_map_place *places);
		const char *told;
	} forgeries[] = {
		{ forge_nothing, NULL },
		{ forge_far, "expected a block behind a header in one of" },
		{ forge_header, "expected a block behind a header in one of" },
		{ forge_unwritten, "expected a block that is written" },
		{ forge_twice, "expected places of their own" },
		{ forge_crc, "expected crc" },
		{ forge_elsewhere, "expected at most %u" },
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(forgeries); i++) {
		begin_logged(2, true);
		for (k = 0; k < 5; k++)
			write_chunk(k);
		/* So that both zones are written. */
		while (!image->flash.zones[2].wp || !image->flash.zones[3].wp) {
			write_chunk(1);
			assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		}
		forge(forgeries[i].how);
		kernel_listens = forgeries[i].told ?: "checkpoint:";
		kernel_told = NULL;
		if (!forgeries[i].told) {
			mount_like_the_tool();
			expect_logged();
		} else {
			struct report report = { .quiet = true };
			struct check_totals totals;

			assert_int_not_equal(try_to_mount(), 0);
			check_flash(&image->flash, &report, &totals);
			assert_true(report.errors > 0);
		}
		assert_int_equal(!kernel_told, !forgeries[i].told);
		kernel_listens = NULL;
	}
}

/* A record that is older than what is in its zones by now. */
static void the_stream_of_another_time_is_refused(void **state)
{
	struct mtftl_sb_info old;
	u32 i;

	begin_logged(2, true);
	write_chunk(1);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	old = ftl.super->info;
	/* Until one of the same length is at the same place. */
	for (i = 0; ; i++) {
		write_chunk(1);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		if (ftl.super->info.ckpt_seat == old.ckpt_seat &&
		    ftl.super->info.ckpt_offset == old.ckpt_offset)
			break;
		assert_in_range(i, 0, 1000);
	}
	mount();
	old.generation = ftl.super->info.generation;
	image->sb = old;
	image_write_super(image, 0);
	kernel_listens = "expected ckpt_unit_first %llu";
	kernel_told = NULL;
	assert_int_equal(try_to_mount(), -EINVAL);
	assert_non_null(kernel_told);
	kernel_listens = NULL;
}

/* What a mount costs */

/* So many blocks of the data zones, each full of range records; @same: all of one number. */
static void fill_with_ranges(u32 blocks, bool same)
{
	u64 first = image->seq + 1, number = first;
	u32 zone, i;

	for (zone = FIRST_DATA; blocks; zone++) {
		struct flash_zone *state = &image->flash.zones[zone];

		for (; blocks && state->wp < image->flash.zone_capacity; blocks--) {
			struct mtftl_unit_info info = { .type = MTFTL_UNIT_RANGES };
			u8 *header = image_block(image, zone, state->wp);

			info.seq = number + MTFTL_UNIT_MAX_RANGES;
			mtftl_unit_init(header, &info);
			for (i = 0; i < MTFTL_UNIT_MAX_RANGES; i++, number++)
				mtftl_unit_add_range(header, i, 1, same ? first : number,
						     MTFTL_RANGE_TRIM);
			mtftl_unit_seal(header, image->seed, zone, state->wp++, 0, 0);
			state->cond = FLASH_OPEN;
			number++;
		}
		if (state->wp == image->flash.zone_capacity)
			state->cond = FLASH_FULL;
	}
	image->seq = number;
}

/* No writer leaves as much, however often the zones would have to be read. */
static void a_device_full_of_ranges_is_refused(void **state)
{
	const u32 zones = 24, capacity = 512;

	image_free(image);
	image = image_new_of(zones, capacity, capacity, 4096);
	image_write_super(image, 0);
	fill_with_ranges(3000, false);
	kernel_listens = "zones hold more units and range records";
	kernel_told = NULL;
	mount();
	assert_null(kernel_told);
	assert_in_range(drive.blocks_read, 3000, 3000 + zones * MTFTL_BUFFER_BLOCKS);
	image_free(image);
	image = image_new_of(zones, capacity, capacity, 4096);
	image_write_super(image, 0);
	fill_with_ranges((zones - FIRST_DATA) * capacity, false);
	kernel_listens = "zones hold more units and range records";
	assert_int_equal(try_to_mount(), -EOVERFLOW);
	kernel_listens = NULL;
	assert_non_null(kernel_told);
	assert_in_range(drive.blocks_read, 3000, 4000);
}

/* Records that take a quarter more than a mount keeps at once, of a device that may have them. */
static void begin_with_many_ranges(bool same)
{
	const u32 zones = 350, capacity = 512, most = 5 * (16u << 20) / 4;

	unmount();
	image_free(image);
	image = image_new_of(zones, capacity, capacity, 4096);
	image_write_super(image, 0);
	put(FIRST_DATA, 1, 3, 9);
	fill_with_ranges(most / sizeof(struct mtftl_found) / MTFTL_UNIT_MAX_RANGES, same);
}

/* What was not kept at first counts in its turn, and a signal ends each part of that. */
static void zones_are_read_again_for_what_is_not_kept(void **state)
{
	u32 page, i;
	u64 reads;

	begin_with_many_ranges(false);
	page = put(FIRST_DATA + 20, image->seq + 1, 4, 9);
	image->durable_seq = image->seq;
	image_write_range(image, FIRST_DATA + 21, image->seq + 2, 300, 1, image->seq + 1,
			  MTFTL_RANGE_TRIM);
	/* It leaves the drive as it is. */
	mount_read_only = true;
	kernel_listens = "that they were read %u times";
	kernel_told = NULL;
	mount();
	assert_non_null(kernel_told);
	kernel_listens = NULL;
	assert_int_equal(map.entries[3], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[4], page);
	/* While it scans; when it has; while it looks through what it has found. */
	reads = drive.reads;
	for (i = 0; i < 3; i++) {
		killed_behind.reads = reads - !i;
		killed_behind.asks = i < 2 ? 1 : 100;
		assert_int_equal(try_to_mount(), -EINTR);
		assert_int_equal(drive.reads, killed_behind.reads);
		kernel_kill_at = 0;
	}
}

static void a_number_that_is_everywhere_is_refused(void **state)
{
	begin_with_many_ranges(true);
	kernel_listens = "in more places than any is written to";
	kernel_told = NULL;
	assert_int_equal(try_to_mount(), -E2BIG);
	assert_non_null(kernel_told);
	kernel_listens = NULL;
}

/* FUA writes alone make no number durable: so each block is verified, in two reads more. */
static void reads_of_units_that_no_flush_followed(void **state)
{
	const u32 units = 50;
	u64 flushed;
	u32 i;

	for (i = 0; i < units; i++) {
		image->durable_seq = i;
		put(FIRST_DATA, i + 1, i, i);
	}
	mount();
	flushed = drive.reads;
	image_reset_zone(image, FIRST_DATA);
	image->durable_seq = 0;
	for (i = 0; i < units; i++)
		put(FIRST_DATA, 100 + i, i, i);
	mount();
	assert_int_equal(drive.reads, flushed + 2 * (units - 1));
}

/* Memory that is short */

/* Wherever it is: the mount says so, leaves nothing behind, and the next one succeeds. */
static void a_mount_without_memory_says_so(void **state)
{
	const bool map_log = image->sb.map_log, oob = image->sb.oob;
	unsigned long at, most;
	u32 pages[2], i;
	bool ours;
	int r;

	image_free(image);
	image = image_new_of(IMAGE_ZONES, 2048, 2048, IMAGE_LOGICAL);
	image->sb.map_log = map_log;
	image->sb.oob = oob;
	image_write_super(image, 0);
	if (map_log)
		assert_true(image_write_map_log(image, 0, map_of_blocks(0), 0));
	pages[0] = put(FIRST_DATA + 1, 21, 100, 1);
	fill_with_footer(FIRST_DATA, 8, 0, 3);
	if (!oob)
		lose_header(FIRST_DATA, 3);
	/* More numbers in a zone than the smallest set has room for. */
	for (i = 0; i < 600; i++)
		image_write_range(image, FIRST_DATA + 2, 1001 + 2 * i, 200, 1, 1000 + 2 * i,
				  MTFTL_RANGE_TRIM);
	image->durable_seq = 20;
	pages[1] = put(FIRST_DATA + 1, 22, 101, 1);
	kernel_allocations = 0;
	mount();
	most = kernel_allocations;
	assert_true(most > 20);
	for (at = 1; at <= most; at++) {
		kernel_allocations = 0;
		kernel_short_at = at;
		r = try_to_mount();
		kernel_short_at = 0;
		if (r) {
			assert_int_equal(r, -ENOMEM);
			unmount();
			assert_int_equal(kernel_allocated, 0);
			continue;
		}
		/* It was for a helper. */
		assert_int_equal(map.entries[100], pages[0]);
		assert_int_equal(map.entries[101], pages[1]);
		assert_int_equal(map.entries[3], flash_page(&image->flash, FIRST_DATA, oob ? 3 : 7));
	}
	mount();
	mounted = false;
	for (at = 1; at <= 3; at++) {
		kernel_allocations = 0;
		kernel_short_at = at;
		assert_int_equal(mtftl_super_is_ours(&ftl, &ours), -ENOMEM);
	}
}

/* Pauses */

static void a_checkpoint_that_fails_is_silent_in_a_pause(void **state)
{
	u64 before;

	put(FIRST_DATA, 1, 5, 9);
	mount();
	drive.fail_write = 1;
	drive.pause_then = true;
	assert_int_not_equal(mtftl_checkpoint(&ftl, false), 0);
	before = drive.commands;
	assert_true(device.paused);
	assert_int_not_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_int_equal(drive.commands, before);
	device.paused = false;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
}

/* In each of the writes of a checkpoint but the last one, which is its record. */
static void a_pause_ends_a_checkpoint(void **state)
{
	u64 before;
	int at, r;

	free(begin_large(LARGE_CAPACITY, LARGE_LOGICAL));
	image_write_super(image, 0);
	put(LARGE_DATA, 1, 7, 9);
	mount();
	for (at = 1, r = -EAGAIN; r; at++) {
		assert_int_equal(r, -EAGAIN);
		drive.pause_after = at;
		r = mtftl_checkpoint(&ftl, false);
		assert_true(device.paused);
		before = drive.commands;
		assert_int_equal(mtftl_checkpoint(&ftl, false), -EAGAIN);
		assert_int_equal(drive.commands, before);
		device.paused = false;
	}
	/* Three units, and the record. */
	assert_int_equal(at, 1 + 4);
	assert_int_equal(stats.checkpoints, 1);
}

/* Another system wrote while this one was suspended: it resets nothing, and writes nothing. */
static u64 changes_before;

static void pause_ends_read_only(struct mtftl *of)
{
	changes_before = drive.commands - drive.reads;
	mtftl_set_read_only(of, "another system wrote to it");
}

static void a_checkpoint_ends_if_a_pause_made_the_device_read_only(void **state)
{
	int map_log;

	for (map_log = 0; map_log < 2; map_log++) {
		begin_logged(2, map_log);
		write_chunk(1);
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		write_chunk(2);
		/* A zone that failed before gets no other one in its place now. */
		mtftl_zone(&ftl, MTFTL_NR_SB_ZONES)->broken = true;
		mtftl_zone(&ftl, MTFTL_NR_SB_ZONES + 1)->broken = true;
		module_spare = image->flash.nr_zones - 3;
		module_flushes = pause_ends_read_only;
		assert_int_equal(mtftl_checkpoint(&ftl, false), -EROFS);
		module_flushes = NULL;
		assert_int_equal(module_spare, image->flash.nr_zones - 3);
		module_spare = 0;
		assert_int_equal(drive.commands - drive.reads, changes_before);
	}
}

/* A zone of checkpoints went bad, and no zone is empty */

/* A block in each zone for data, but for one; returns that one. */
static u32 fill_zones_but_one(void)
{
	u32 zone, last = image->flash.nr_zones - 1;

	for (zone = FIRST_DATA; zone < last; zone++)
		put(zone, zone, zone, zone);
	image->flash.zones[FIRST_DATA - 1].cond = FLASH_OFFLINE;
	return last;
}

static void expect_blocks(u32 last)
{
	u32 zone;

	for (zone = FIRST_DATA; zone < last; zone++)
		assert_int_equal(map.entries[zone], flash_page(&image->flash, zone, 1));
}

static void expect_checkpoints_in(u32 zone)
{
	u32 i;

	assert_false(mtftl_is_read_only(&ftl));
	assert_int_equal(mtftl_zone(&ftl, zone)->state, MTFTL_ZONE_CKPT);
	for (i = 0; i < 3; i++)
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	mount();
	assert_false(mtftl_is_read_only(&ftl));
	expect_blocks(zone);
}

static void a_checkpoint_that_was_cut_leaves_a_zone_for_the_next(void **state)
{
	u32 last = fill_zones_but_one(), i;
	const u64 block = 0;
	const u16 content = 7;

	image_write_unit(image, last, MTFTL_UNIT_CKPT, 100, 1, &block, &content);
	/* However often. */
	for (i = 0; i < 3; i++) {
		mount();
		drive.fail_write = 1;
		mtftl_checkpoint(&ftl, false);
	}
	mount();
	expect_blocks(last);
	expect_checkpoints_in(last);
}

static void a_checkpoint_that_was_cut_in_its_first_block(void **state)
{
	u32 last = fill_zones_but_one();

	image->flash.zones[last] = (struct flash_zone) { .cond = FLASH_OPEN, .wp = 1 };
	mount();
	/* The drive would count it until it is reset. */
	assert_int_equal(image->flash.zones[last].cond, FLASH_FULL);
	expect_checkpoints_in(last);
}

static void a_zone_whose_blocks_were_all_written_again(void **state)
{
	u32 last = fill_zones_but_one();

	put(last, 1, FIRST_DATA, 7);
	mount();
	/* The next mount needs it: it is newer than the checkpoint, of which there is none. */
	assert_true(mtftl_is_read_only(&ftl));
	unmount();
	image_write_checkpoint(image, 2, 50, map_of_blocks(last), 0);
	mount();
	expect_checkpoints_in(last);
}

/* The first one chosen fails, too; then there is another one, or the device can be read. */
static void a_spent_zone_that_fails_is_replaced(void **state)
{
	u32 last = fill_zones_but_one();
	const u64 block = 0;
	const u16 content = 7;

	image_reset_zone(image, last - 1);
	image_write_unit(image, last - 1, MTFTL_UNIT_CKPT, 100, 1, &block, &content);
	image_write_unit(image, last, MTFTL_UNIT_CKPT, 101, 1, &block, &content);
	mount();
	assert_int_equal(mtftl_zone(&ftl, last - 1)->state, MTFTL_ZONE_CKPT);
	/* Into the one that is left of the lowest, and into the spent one. */
	assert_int_equal(mtftl_checkpoint_mount(&ftl), 0);
	drive.fail_write = 1;
	assert_int_equal(mtftl_checkpoint_mount(&ftl), 0);
	assert_false(mtftl_is_read_only(&ftl));
	drive.fail_writes = true;
	assert_int_not_equal(mtftl_checkpoint_mount(&ftl), 0);
	assert_true(mtftl_is_read_only(&ftl));
}

/* It was finished in vain, so nothing is written to it, though nothing needs what it holds. */
static void a_worn_out_zone_takes_no_checkpoint(void **state)
{
	const u64 block = 0;
	const u16 content = 7;
	u32 zone, fails;

	for (fails = 0; fails < 2; fails++) {
		begin_anew(state);
		image_write_unit(image, FIRST_DATA, MTFTL_UNIT_CKPT, 100, 1, &block, &content);
		for (zone = FIRST_DATA + 1; zone < image->flash.nr_zones; zone++)
			put(zone, zone, zone, zone);
		finish_fails = fails;
		mount();
		finish_fails = false;
		drive.fail_write = 1;
		assert_int_equal(mtftl_checkpoint_mount(&ftl), fails ? -EIO : 0);
		assert_int_equal(mtftl_is_read_only(&ftl), fails);
		assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->state,
				 fails ? MTFTL_ZONE_FULL : MTFTL_ZONE_CKPT);
	}
}

/* Nothing must come to lie where the checkpoint has what it lost, until that is durable. */
static void a_zone_that_is_shorter_than_it_was_takes_no_checkpoint(void **state)
{
	u32 last = fill_zones_but_one();

	put(last, last, last, 7);
	image_write_checkpoint(image, 2, 50, map_of_blocks(last + 1), 0);
	cut(last, 1, 0);
	mount();
	assert_int_equal(map.entries[last], MTFTL_MAP_LOST);
	assert_true(mtftl_is_read_only(&ftl));
	assert_int_equal(mtftl_zone(&ftl, last)->state, MTFTL_ZONE_PARTIAL);
	expect_blocks(last);
}

static void a_read_only_zone_takes_no_checkpoint(void **state)
{
	u32 last = fill_zones_but_one();
	const u64 block = 0;
	const u16 content = 7;

	image_write_unit(image, last, MTFTL_UNIT_CKPT, 100, 1, &block, &content);
	image->flash.zones[last] = (struct flash_zone) {
		.cond = FLASH_READONLY, .wp = IMAGE_CAPACITY,
	};
	mount();
	assert_true(mtftl_is_read_only(&ftl));
	assert_int_equal(mtftl_zone(&ftl, last)->state, MTFTL_ZONE_FULL);
	expect_blocks(last);
}

static void a_checkpoint_gives_up_after_a_few_zones(void **state)
{
	u32 i, bad = 0;

	put(FIRST_DATA, 1, 5, 9);
	mount();
	/* A log goes on behind it, at first. */
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	module_spare = FIRST_DATA + 1;
	drive.fail_writes = true;
	assert_int_equal(mtftl_checkpoint(&ftl, false), -EIO);
	for (i = 0; i < ftl.config.nr_zones; i++)
		bad += mtftl_zone(&ftl, i)->state == MTFTL_ZONE_BAD;
	/* The head of a log keeps its seat. */
	assert_int_equal(bad, MTFTL_MAX_FAILURES - 1 - ftl.super->info.map_log);
	drive.fail_writes = false;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	mount();
	assert_true(mtftl_is_page(map.entries[5]));
}

/* If each mount that a cut ends took an empty one, GC would soon have none. */
static void a_spent_zone_is_taken_before_an_empty_one(void **state)
{
	u32 last = fill_zones_but_one();
	const u64 block = 0;
	const u16 content = 7;

	image_reset_zone(image, last - 1);
	image_write_unit(image, last, MTFTL_UNIT_CKPT, 100, 1, &block, &content);
	mount();
	assert_int_equal(mtftl_zone(&ftl, last)->state, MTFTL_ZONE_CKPT);
	assert_int_equal(mtftl_zone(&ftl, last - 1)->state, MTFTL_ZONE_EMPTY);
}

static void a_read_only_mount_finishes_no_zone(void **state)
{
	const u64 block = 0;
	const u16 content = 7;
	u32 last = fill_zones_but_one();

	image_write_unit(image, last, MTFTL_UNIT_CKPT, 100, 1, &block, &content);
	mount_read_only = true;
	mount();
	mount_read_only = false;
	assert_int_equal(drive.commands, drive.reads);
	assert_int_equal(image->flash.zones[last].cond, FLASH_OPEN);
}

/* A footer may say of all zones what is durable. */
static void a_zone_with_a_newer_footer_is_kept(void **state)
{
	u32 last = fill_zones_but_one();

	put(last, 1, FIRST_DATA, 7);
	image_write_checkpoint(image, 2, 50, map_of_blocks(last), 0);
	image->seq = 100;
	image_write_footer(image, last, 0);
	mount();
	assert_true(mtftl_is_read_only(&ftl));
	assert_int_not_equal(mtftl_zone(&ftl, last)->state, MTFTL_ZONE_CKPT);
}

static void a_zone_with_newer_ranges_is_kept(void **state)
{
	u32 last = fill_zones_but_one();

	image_write_range(image, last, 100, 200, 1, 99, MTFTL_RANGE_TRIM);
	mount();
	assert_true(mtftl_is_read_only(&ftl));
	assert_int_not_equal(mtftl_zone(&ftl, last)->state, MTFTL_ZONE_CKPT);
}

static void a_clean_stop_is_clean_beside_an_older_checkpoint(void **state)
{
	u32 last = fill_zones_but_one(), i;

	mount();
	for (i = 0; i < 4; i++) {
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		if (i & 1)
			assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		assert_int_equal(mtftl_checkpoint(&ftl, true), 0);
		mount();
		assert_true(mtftl_super_is_clean(&ftl));
		expect_blocks(last);
	}
}

/* What a drive does not report */

/* Its zones would count as empty, and all that the map has there as lost. */
static void a_report_that_ends_early_loses_nothing(void **state)
{
	u32 last = fill_zones_but_one(), zone;

	image_write_checkpoint(image, 2, last, map_of_blocks(last), MTFTL_SB_CLEAN);
	for (zone = 0; zone < image->flash.nr_zones; zone++) {
		reported = zone;
		assert_int_equal(try_to_mount(), -EIO);
		reported = U32_MAX;
	}
	mount();
	expect_blocks(last);
}

/* If the log went round, the zone may have had a newer record, without CLEAN. */
static void a_clean_record_beside_an_offline_zone_of_the_log(void **state)
{
	struct flash_zone *log = image->flash.zones;
	u32 last = fill_zones_but_one(), full;

	image->flash.zones[FIRST_DATA - 1] = (struct flash_zone) {};
	for (full = 0; full < 2; full++) {
		while (full && log[0].wp < image->flash.zone_capacity - 1)
			image_write_super(image, 0);
		image_reset_zone(image, 2);
		image_write_checkpoint(image, 2, last, map_of_blocks(last), MTFTL_SB_CLEAN);
		log[1] = (struct flash_zone) { .cond = FLASH_OFFLINE };
		kernel_listens = "zone %u is offline";
		kernel_told = NULL;
		mount_like_the_tool();
		kernel_listens = NULL;
		assert_null(kernel_told);
		assert_int_equal(mtftl_super_is_clean(&ftl), !full);
		expect_blocks(last);
	}
}

/*
 * A drive may answer reads behind what is written to a read-only zone, or say that the medium has
 * nothing there. Any other error may pass: what it hides must not be taken for what is not there.
 */
static void a_read_only_zone_has_no_write_pointer(void **state)
{
	static const int errors[] = { 0, -ENODATA, -EILSEQ, -EIO, -EREMOTEIO };
	const u32 may_pass = 3;		/* from this one on */
	u32 turn, zone, pages[2], head = !image->sb.oob;

	for (turn = 0; turn < 2 * ARRAY_SIZE(errors); turn++) {
		/* One of the log's, or the one that has data. */
		zone = turn % 2 ? FIRST_DATA : 0;
		unmount();
		image_free(image);
		head ? setup(state) : setup_oob(state);
		image_write_super(image, 0);
		pages[0] = put(FIRST_DATA, 1, 5, 9);
		pages[1] = put(FIRST_DATA, 2, 6, 9);
		read_only.end = image->flash.zones[zone].wp;
		read_only.error = errors[turn / 2];
		image->flash.zones[zone] = (struct flash_zone) {
			.cond = FLASH_READONLY, .wp = image->flash.zone_capacity,
		};
		if (turn / 2 >= may_pass) {
			assert_true(try_to_mount() < 0);
			read_only.error = 0;
		}
		mount_like_the_tool();
		assert_int_equal(map.entries[5], pages[0]);
		assert_int_equal(map.entries[6], pages[1]);
		/* GC moves what it holds; then nothing is written to it. */
		assert_true(mtftl_zone(&ftl, zone)->broken);
		assert_true(mtftl_zone_is_worn_out(mtftl_zone(&ftl, zone)));
	}
	read_only.error = 0;
}

/* Reads that fail, wherever */

/* Units before a checkpoint and behind it, a footer, a unit that lies there twice, torn ones. */
static void write_a_bit_of_everything(void)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	const bool map_log = image->sb.map_log;
	u32 entries[IMAGE_LOGICAL], i;

	memset(entries, 0xff, sizeof(entries));
	for (i = 0; i < 3; i++)
		entries[30 + i] = put(FIRST_DATA + 1, 1 + i, 30 + i, i);
	image->seq = 10;
	if (map_log)
		assert_true(image_write_map_log(image, 10, entries, 0));
	else
		image_write_checkpoint(image, 2, 10, entries, 0);
	fill_with_footer(FIRST_DATA, 8, 0, 21);
	put(FIRST_DATA + 2, 30, 40, 1);
	put(FIRST_DATA + 2, 31, 41, 1);
	for (i = 1; i < 3; i++)
		image_write_unit(image, FIRST_DATA + i, MTFTL_UNIT_DATA, 32, 3, lbas, contents);
	image->durable_seq = 32;
	put(FIRST_DATA + 3, 33, 42, 1);
	image_write_range(image, FIRST_DATA + 3, 35, 31, 1, 34, MTFTL_RANGE_TRIM);
	image_write_unit(image, FIRST_DATA + 3, MTFTL_UNIT_GC, 36, 3, lbas, contents);
	image_block(image, FIRST_DATA + 3, 4)[9] ^= 1;
	cut(FIRST_DATA + 1, image_write_unit(image, FIRST_DATA + 1, MTFTL_UNIT_DATA, 37, 3, lbas,
					     contents), 1);
}

/* An error that may pass says nothing: it ends the mount, or the block is read once more. */
static void a_read_that_fails_hides_nothing(void **state)
{
	u32 entries[IMAGE_LOGICAL], failed = 0;
	bool is_last = false;
	int r;

	write_a_bit_of_everything();
	if (!image->sb.oob) {
		lose_header(FIRST_DATA, 0);
		lose_header(FIRST_DATA, 3);
		image_block(image, FIRST_DATA + 2, 0)[60] ^= 1;
	}
	/* It leaves the drive as it is. */
	mount_read_only = true;
	mount();
	memcpy(entries, map.entries, sizeof(entries));
	mount_fails_read = -EIO;
	for (mount_reads_before = 0; !is_last; mount_reads_before++) {
		r = try_to_mount();
		is_last = drive.fail_read;
		failed += r == -EIO;
		if (r)
			assert_int_equal(r, -EIO);
		else
			assert_memory_equal(map.entries, entries, sizeof(entries));
	}
	assert_in_range(failed, 2, mount_reads_before - 2);
	assert_int_equal(r, 0);
}

/* The medium has lost a block: the tool finds the same, or cannot tell either. */
static void each_block_that_is_lost_is_lost_to_the_tool(void **state)
{
	u32 zone, at;

	write_a_bit_of_everything();
	mount_read_only = true;
	for (zone = 0; zone < image->flash.nr_zones; zone++)
		for (at = 0; at < image->flash.zones[zone].wp; at++) {
			unreadable = flash_page(&image->flash, zone, at);
			image->unreadable = unreadable;
			mount_or_fail_like_the_tool();
		}
}

/* Torn payloads, on flash that fails to be read */

/* What cannot be read together is read block by block. */
static void a_payload_that_cannot_be_read_costs_one_block(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	u32 old = put(FIRST_DATA, 1, 6, 9), new;

	image->durable_seq = 1;
	new = flash_page(&image->flash, FIRST_DATA + 1, 1);
	image_write_unit(image, FIRST_DATA + 1, MTFTL_UNIT_DATA, 2, 3, lbas, contents);
	unreadable = new + 1;
	mount();
	assert_int_equal(map.entries[5], new);
	assert_int_equal(map.entries[6], old);
	assert_int_equal(map.entries[7], new + 2);
	/* An error that may pass is no answer. */
	unreadable_error = -EIO;
	assert_int_equal(try_to_mount(), -EIO);
	/* A header that cannot be read hides its unit. */
	unreadable_error = -EILSEQ;
	unreadable = new - 1;
	mount();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[6], old);
}

/* Not by what the buffer has from the unit before, which had the same content. */
static void a_payload_that_cannot_be_read_is_not_verified(void **state)
{
	const u64 lbas[2][3] = { { 5, 6, 7 }, { 15, 16, 17 } };
	const u16 contents[] = { 1, 2, 3 };
	u32 i;

	for (i = 0; i < 2; i++)
		image_write_unit(image, FIRST_DATA + i, MTFTL_UNIT_DATA, 2 + i, 3, lbas[i],
				 contents);
	unreadable = flash_page(&image->flash, FIRST_DATA + 1, 2);
	mount();
	for (i = 0; i < 3; i++)
		assert_int_equal(map.entries[5 + i], flash_page(&image->flash, FIRST_DATA, 1 + i));
	assert_int_equal(map.entries[16], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[17], flash_page(&image->flash, FIRST_DATA + 1, 3));
}

/* And than what is read at once; by GC, too. */
static void a_unit_longer_than_the_buffer_is_verified(void **state)
{
	const u32 nr = 2 * MTFTL_BUFFER_BLOCKS - 1, torn = nr - 3;
	u64 lbas[2 * MTFTL_BUFFER_BLOCKS];
	u16 contents[2 * MTFTL_BUFFER_BLOCKS];
	u32 i;

	for (i = 0; i < nr; i++) {
		lbas[i] = 2 * i;
		contents[i] = 100 + i;
	}
	image_write_unit(image, FIRST_DATA, MTFTL_UNIT_GC, 2, nr, lbas, contents);
	image_block(image, FIRST_DATA, 1 + torn)[9] ^= 1;
	mount_like_the_tool();
	for (i = 0; i < nr; i++)
		assert_int_equal(map.entries[2 * i],
				 i == torn ? MTFTL_MAP_UNMAPPED :
					     flash_page(&image->flash, FIRST_DATA, 1 + i));
}

/* Of two units with one number the valid one counts: a write failed, and was done again. */
static void a_unit_that_was_written_twice_is_whole_in_one_place(void **state)
{
	const u64 lbas[] = { 5, 6 };
	const u16 contents[] = { 1, 2 };
	u32 broken, i;

	for (i = 0; i < 2; i++) {
		begin_anew(state);
		put(FIRST_DATA + 2, 1, 5, 9);
		image->durable_seq = 1;
		image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 2, 2, lbas, contents);
		image_write_unit(image, FIRST_DATA + 1, MTFTL_UNIT_DATA, 2, 2, lbas, contents);
		image->durable_seq = 2;
		put(FIRST_DATA + 2, 3, 7, 9);
		broken = FIRST_DATA + i;
		image_block(image, broken, 1)[9] ^= 1;
		image_block(image, broken, 2)[9] ^= 1;
		mount_like_the_tool();
		assert_int_equal(map.entries[5], flash_page(&image->flash, FIRST_DATA + !i, 1));
		assert_int_equal(map.entries[6], flash_page(&image->flash, FIRST_DATA + !i, 2));
		/* In neither: older data does not come back. */
		image_block(image, FIRST_DATA + !i, 1)[9] ^= 1;
		mount_like_the_tool();
		assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
		assert_int_equal(map.entries[6], flash_page(&image->flash, FIRST_DATA + !i, 2));
	}
}

/* GC writes a record again: then it is there twice. */
static void records_that_are_there_twice_count_once(void **state)
{
	static const struct {
		enum mtftl_range_kind kind;
		u32 value;
	} kinds[] = {
		{ MTFTL_RANGE_TRIM, MTFTL_MAP_UNMAPPED }, { MTFTL_RANGE_LOST, MTFTL_MAP_LOST },
	};
	u32 kept, i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		begin_anew(state);
		put(FIRST_DATA, 1, 5, 9);
		image_write_range(image, FIRST_DATA, 4, 5, 1, 3, kinds[i].kind);
		image_write_range(image, FIRST_DATA + 1, 6, 5, 1, 3, kinds[i].kind);
		image->durable_seq = 6;
		kept = put(FIRST_DATA + 1, 7, 6, 9);
		mount_like_the_tool();
		assert_int_equal(map.entries[5], kinds[i].value);
		assert_int_equal(map.entries[6], kept);
	}
}

/* Lives of a zone that got longer than the one before, and a number that is the checkpoint's */

/* The checkpoint's record ends within what is there now. */
static void a_zone_that_was_reset_is_read_from_its_beginning(void **state)
{
	u32 entries[IMAGE_LOGICAL], pages[3], i;

	memset(entries, 0xff, sizeof(entries));
	entries[5] = put(FIRST_DATA, 1, 5, 9);
	put(FIRST_DATA, 2, 6, 9);
	image_write_checkpoint(image, 2, 10, entries, 0);
	image_reset_zone(image, FIRST_DATA);
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = put(FIRST_DATA, 11 + i, i, i);
	mount_like_the_tool();
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		assert_int_equal(map.entries[i], pages[i]);
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->first_seq, 11);
}

static void a_zone_with_the_checkpoints_own_number_is_spent(void **state)
{
	u32 last = fill_zones_but_one();

	/* It does not know the zone, so a mount reads the unit. */
	image_write_checkpoint(image, 2, 50, map_of_blocks(last), 0);
	put(last, 50, FIRST_DATA, 7);
	mount();
	expect_checkpoints_in(last);
}

/* What no drive and no checkpoint should say */

static void a_report_of_zones_that_cannot_be_is_refused(void **state)
{
	struct flash_zone *zone = &image->flash.zones[FIRST_DATA];

	*zone = (struct flash_zone) { .cond = FLASH_OPEN, .wp = IMAGE_CAPACITY };
	assert_int_equal(try_to_mount(), 0);
	*zone = (struct flash_zone) { .cond = FLASH_OPEN, .wp = IMAGE_CAPACITY, .torn_sectors = 1 };
	assert_int_equal(try_to_mount(), -EIO);
	*zone = (struct flash_zone) { .cond = FLASH_OPEN };
	misled = FIRST_DATA;
	assert_int_equal(try_to_mount(), -EIO);
	misled = 0;
	*zone = (struct flash_zone) { .cond = FLASH_EMPTY };
	misplaced = FIRST_DATA;
	assert_int_equal(try_to_mount(), -EIO);
	misplaced = 0;
	report_fails = -ENODEV;
	assert_int_equal(try_to_mount(), -ENODEV);
	report_fails = 0;
	assert_int_equal(try_to_mount(), 0);
}

/* They are not worth a block, so nothing of ours is there. */
static void sectors_behind_the_last_block_hold_nothing(void **state)
{
	struct flash_zone *zone = &image->flash.zones[FIRST_DATA];
	u32 i;

	fill_with_footer(FIRST_DATA, 8, 0, 1);
	zone->cond = FLASH_OPEN;
	zone->torn_sectors = 1;
	spare_sectors = 3;
	mount();
	for (i = 0; i < 8; i++)
		assert_int_equal(map.entries[i], flash_page(&image->flash, FIRST_DATA, 1 + 2 * i));
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->state, MTFTL_ZONE_FULL);
	/* But the drive counts it. */
	assert_int_equal(zone->cond, FLASH_FULL);
}

/* No user's block is there. */
static void an_entry_in_a_zone_of_metadata_is_lost(void **state)
{
	u32 entries[IMAGE_LOGICAL];

	memset(entries, 0xff, sizeof(entries));
	entries[5] = 0;
	entries[6] = flash_page(&image->flash, 2, 1);
	entries[7] = put(FIRST_DATA, 1, 7, 9);
	image_write_checkpoint(image, 2, 10, entries, MTFTL_SB_CLEAN);
	mount();
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[6], MTFTL_MAP_LOST);
	assert_false(mtftl_zone(&ftl, 0)->broken);
	assert_false(mtftl_zone(&ftl, 2)->broken);
	assert_int_equal(map.entries[7], entries[7]);
	assert_int_equal(stats.lost_blocks, 2);
	assert_false(mtftl_super_is_clean(&ftl));
}

/* Wherever it is. */
static void a_mount_that_is_killed_says_so(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	unsigned long at;
	int r = -EINTR;

	if (image->sb.map_log)
		assert_true(image_write_map_log(image, 0, map_of_blocks(0), 0));
	else
		image_write_checkpoint(image, 2, 0, map_of_blocks(0), 0);
	put(FIRST_DATA, 11, 5, 9);
	put(FIRST_DATA, 12, 8, 9);
	lose_header(FIRST_DATA, 0);
	fill_with_ranges(3, false);
	image_write_unit(image, FIRST_DATA + 1, MTFTL_UNIT_DATA, 900, 3, lbas, contents);
	/* More zones than may be open. */
	put(FIRST_DATA + 2, 901, 9, 9);
	put(FIRST_DATA + 3, 902, 10, 9);
	for (at = 1; r; at++) {
		assert_int_equal(r, -EINTR);
		kernel_kill_at = at;
		kernel_asked = 0;
		r = try_to_mount();
		assert_int_equal(!r, kernel_asked < at);
	}
	assert_true(at > 20);
	kernel_kill_at = 1;
	kernel_asked = 0;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_int_equal(mtftl_checkpoint_mount(&ftl), -EINTR);
}

/* A torn unit, and more zones in part than may be open. */
static void leave_work_for_a_mount(u32 pages[4])
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	u32 i;

	for (i = 0; i < 4; i++)
		pages[i] = put(FIRST_DATA + i, 1 + i, i, i);
	cut(FIRST_DATA + 3, image_write_unit(image, FIRST_DATA + 3, MTFTL_UNIT_DATA, 9, 3, lbas,
					     contents), 1);
}

/* Up to its checkpoint; what it is then, if the power goes in its command number @at. */
static int mount_with_power(int at)
{
	int r;

	power = at;
	r = try_to_mount() ?: mtftl_checkpoint_mount(&ftl);
	r = power < 0 ? -EIO : r;
	power = 0;
	return r;
}

/* Twelve times in the same command, or each time in a later one. */
static void cuts_of_mounts_in_a_row_lose_nothing(void **state)
{
	const int in_a_row = 12;
	u32 pages[4], i;
	int at, last = 0, turn;

	leave_work_for_a_mount(pages);
	while (mount_with_power(++last))
		;
	assert_true(last > 5);
	for (at = 1; at <= last; at++) {
		if (at > 1) {
			begin_anew(state);
			leave_work_for_a_mount(pages);
		}
		for (turn = 0; at < last && turn < in_a_row; turn++)
			mount_with_power(at);
		mount();
		assert_false(mtftl_is_read_only(&ftl));
		for (i = 0; i < 4; i++)
			assert_int_equal(map.entries[i], pages[i]);
		for (i = 5; i < 8; i++)
			assert_int_equal(map.entries[i], MTFTL_MAP_UNMAPPED);
	}
}

/* A unit that lies there twice, too: lost, then whole. */
static void blocks_beyond_the_device_are_passed_over(void **state)
{
	const u64 lbas[] = { 5, IMAGE_LOGICAL, IMAGE_LOGICAL + 1 };
	const u16 contents[] = { 1, 2, 3 };

	image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 2, 3, lbas, contents);
	image_write_unit(image, FIRST_DATA + 1, MTFTL_UNIT_DATA, 2, 3, lbas, contents);
	image->durable_seq = 2;
	put(FIRST_DATA + 1, 3, 6, 9);
	mount_like_the_tool();
	assert_true(mtftl_is_page(map.entries[5]));
}

/* Zones that are written in part */

static void zones_beyond_the_budget_are_finished(void **state)
{
	u32 i, fails;

	for (fails = 0; fails < 2; fails++) {
		begin_anew(state);
		for (i = 0; i < 4; i++)
			put(FIRST_DATA + i, 1 + i, i, i);
		finish_fails = fails;
		mount();
		for (i = 0; i < 4; i++) {
			const struct mtftl_zone *zone = mtftl_zone(&ftl, FIRST_DATA + i);
			bool first = i < 2;

			assert_int_equal(zone->state,
					 first ? MTFTL_ZONE_FULL : MTFTL_ZONE_PARTIAL);
			assert_int_equal(zone->wp, first ? IMAGE_CAPACITY : 2);
			assert_int_equal(zone->quiet_wp, zone->wp);
			assert_int_equal(zone->failed_lives,
					 first && fails ? MTFTL_ZONE_LIVES : 0);
			assert_int_equal(image->flash.zones[zone->index].cond,
					 first && !fails ? FLASH_FULL : FLASH_OPEN);
		}
	}
}

/* What else it had is lost, and until that is durable nothing must come to lie there. */
static void a_zone_that_is_shorter_than_it_was_is_finished_last(void **state)
{
	u32 entries[IMAGE_LOGICAL], i;

	memset(entries, 0xff, sizeof(entries));
	for (i = 0; i < 4; i++)
		entries[i] = put(FIRST_DATA + i, 1 + i, i, i);
	image_write_checkpoint(image, 2, 10, entries, 0);
	cut(FIRST_DATA, 1, 0);
	mount();
	assert_int_equal(map.entries[0], MTFTL_MAP_LOST);
	for (i = 0; i < 4; i++) {
		const struct mtftl_zone *zone = mtftl_zone(&ftl, FIRST_DATA + i);

		assert_int_equal(zone->broken, !i);
		assert_int_equal(zone->state,
				 i % 3 ? MTFTL_ZONE_FULL : MTFTL_ZONE_PARTIAL);
	}
}

/* It claims blocks up to the zone's last one: after that the zone is full. */
static void a_torn_unit_at_the_end_of_a_zone_fills_it(void **state)
{
	const u64 lbas[] = { 100, 101, 102 };
	const u16 contents[] = { 1, 2, 3 };
	struct flash_zone *zone = &image->flash.zones[FIRST_DATA];
	u32 i;

	for (i = 0; i < IMAGE_CAPACITY / 2 - 2; i++)
		put(FIRST_DATA, 1 + i, i, 9);
	cut(FIRST_DATA, image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1 + i, 3, lbas,
					 contents) + 2, 0);
	mount_like_the_tool();
	assert_int_equal(map.entries[100], flash_page(&image->flash, FIRST_DATA, 117));
	assert_int_equal(map.entries[101], MTFTL_MAP_UNMAPPED);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->state, MTFTL_ZONE_FULL);
	assert_int_equal(zone->wp, IMAGE_CAPACITY);
	assert_int_equal(zone->cond, FLASH_FULL);
}

/* Some sectors are left behind its last block, so the drive counts it. */
static void a_zone_that_is_written_to_its_last_block_is_finished(void **state)
{
	struct flash_zone *zone = &image->flash.zones[FIRST_DATA];

	fill_with_footer(FIRST_DATA, 8, 0, 1);
	zone->cond = FLASH_OPEN;
	mount();
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->state, MTFTL_ZONE_FULL);
	assert_int_equal(zone->cond, FLASH_FULL);
	mount();
	assert_int_equal(drive.commands, drive.reads);
}

static void a_zone_of_the_log_that_was_left_is_finished(void **state)
{
	struct flash_zone *other = &image->flash.zones[1];

	*other = (struct flash_zone) { .cond = FLASH_OPEN, .wp = 3 };
	mount();
	assert_int_equal(other->cond, FLASH_FULL);
	mount();
	assert_int_equal(drive.commands, drive.reads);
}

static void a_torn_block_that_cannot_be_completed_ends_its_zone(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	u32 i;

	/* The write of what is left of the block fails, or that of the zeroes behind it. */
	for (i = 1; i < 3; i++) {
		begin_anew(state);
		cut(FIRST_DATA, image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1, 3, lbas,
						 contents), 1);
		mount_fails_write = i;
		mount();
		assert_true(mtftl_zone(&ftl, FIRST_DATA)->broken);
		assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->state, MTFTL_ZONE_FULL);
	}
}

/* What is known of zones */

static void ages_follow_from_numbers(void **state)
{
	const u64 numbers[] = { 11, 20, 50, 90 };
	const u32 born[] = { 0, 0, 3, 7 };	/* eight steps of eleven numbers */
	u32 i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		put(FIRST_DATA + i, numbers[i], i, i);
	mount();
	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		assert_int_equal(mtftl_zone(&ftl, FIRST_DATA + i)->first_seq, numbers[i]);
		assert_int_equal(mtftl_map_born(&ftl, FIRST_DATA + i), born[i]);
	}
	assert_int_equal(mtftl_map_clock(&ftl), ftl.config.device_in_zones);
}

static void numbers_that_are_used_up_are_not_drawn(void **state)
{
	const u64 half = 1ull << (image->sb.oob ? MTFTL_OOB_SEQ_BITS - 1 : MTFTL_SEQ_BITS - 1);

	put(FIRST_DATA, half - 1, 5, 9);
	mount();
	assert_false(mtftl_is_read_only(&ftl));
	assert_int_equal(mtftl_seq_last(&ftl), half - 1);
	put(FIRST_DATA, half, 6, 9);
	mount();
	assert_true(mtftl_is_read_only(&ftl));
}

static void what_is_durable_is_known(void **state)
{
	put(FIRST_DATA, 5, 5, 9);
	image->durable_seq = 5;
	put(FIRST_DATA + 1, 6, 6, 9);
	image->durable_seq = 3;
	put(FIRST_DATA + 2, 7, 7, 9);
	mount();
	assert_int_equal(seq.durable, 5);
	assert_int_equal(mtftl_seq_last(&ftl), 7);
}

/* Checkpoints */

static void a_checkpoint_keeps_what_is_known_of_zones(void **state)
{
	u32 i, erase_counts[IMAGE_ZONES];
	u64 first[IMAGE_ZONES];

	for (i = 0; i < IMAGE_ZONES; i++)
		image->erase_count[i] = 100 * (i + 1);
	image_write_checkpoint(image, 2, 2, map_of_blocks(0), 0);
	for (i = 0; i < 2; i++)
		put(FIRST_DATA + i, 20 - i, i, i);
	mount();
	mtftl_zone_move(mtftl_zone(&ftl, FIRST_DATA + 3), MTFTL_ZONE_BAD);
	assert_int_equal(mtftl_checkpoint(&ftl, true), 0);
	assert_int_equal(stats.checkpoints, 1);
	for (i = 0; i < IMAGE_ZONES; i++) {
		erase_counts[i] = mtftl_zone(&ftl, i)->erase_count;
		first[i] = mtftl_zone(&ftl, i)->first_seq;
	}
	mount();
	assert_true(mtftl_super_is_clean(&ftl));
	assert_int_equal(mtftl_seq_ckpt(&ftl), 20);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA + 3)->state, MTFTL_ZONE_BAD);
	for (i = 0; i < IMAGE_ZONES; i++) {
		const struct mtftl_zone *zone = mtftl_zone(&ftl, i);

		/* The checkpoint's own zone was reset once for it. */
		assert_int_equal(erase_counts[i], 100 * (i + 1) + (i == 3));
		assert_int_equal(zone->erase_count, erase_counts[i]);
		if (i < FIRST_DATA)
			continue;
		assert_int_equal(zone->first_seq, first[i]);
		assert_int_equal(zone->wp, i < FIRST_DATA + 2 ? 2 : 0);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(map.entries[i], flash_page(&image->flash, FIRST_DATA + i, 1));
}

static void a_checkpoint_costs_what_it_must(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	static const u8 zeroes[MTFTL_BLOCK_SIZE];
	const u32 used = IMAGE_LOGICAL * sizeof(__le32);
	u32 turn;

	/* What a mount verifies is left in the buffer. */
	image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 2, 3, lbas, contents);
	mount();
	for (turn = 1; turn < 4; turn++) {
		const struct mtftl_zone *zone = mtftl_zone(&ftl, turn % 2 ? 3 : 2);
		u64 reads = drive.reads;

		module_device_flushes = 0;
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		assert_int_equal(stats.checkpoints, turn);
		assert_int_equal(stats.meta_blocks, 3 * turn);
		/* An assertion reads it back. */
		assert_int_equal(drive.reads, reads + 1);
		assert_int_equal(module_device_flushes, 1);
		assert_int_equal(zone->erase_count, (turn + 1) / 2);
		assert_int_equal(zone->quiet_wp, 3);
		assert_int_equal(image->flash.zones[zone->index].cond, FLASH_OPEN);
		assert_memory_equal(image_block(image, zone->index, 2) + used, zeroes,
				    MTFTL_BLOCK_SIZE - used);
	}
	/* If that read fails, it says nothing. */
	drive.fail_read = -EIO;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_int_equal(drive.fail_read, 0);
}

/* GC may have reset it since the checkpoint before. */
static void a_record_of_an_empty_zone_says_nothing(void **state)
{
	struct mtftl_zone *zone;

	put(FIRST_DATA, 1, 5, 9);
	mount();
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_int_equal(le64_to_cpu(mtftl_checkpoint_record(&ftl, FIRST_DATA)->first_seq), 1);
	zone = mtftl_zone(&ftl, FIRST_DATA);
	zone->quiet_wp = 0;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_int_equal(le64_to_cpu(mtftl_checkpoint_record(&ftl, FIRST_DATA)->first_seq), 0);
}

static struct work_struct *queued;

static void note_work(struct work_struct *work)
{
	queued = work;
}

static void do_work(void)
{
	assert_non_null(queued);
	cancel_work(queued);
	queued->run(queued);
	queued = NULL;
}

/* As long as the log is when a stream opens a zone, and when the work comes to run. */
static void a_long_log_is_cut_by_a_checkpoint(void **state)
{
	const u32 most = 10;

	put(FIRST_DATA, 1, 5, 9);
	mount();
	kernel_queues = note_work;
	ftl.config.checkpoint_after = most;
	mtftl_seq_set_last(&ftl, most, 0);
	module_opened(&ftl);
	assert_null(queued);
	mtftl_seq_set_last(&ftl, most + 1, 0);
	module_opened(&ftl);
	do_work();
	assert_int_equal(stats.checkpoints, 1);
	assert_int_equal(mtftl_seq_ckpt(&ftl), most + 1);
	/* One came first. */
	mtftl_seq_set_last(&ftl, 2 * most + 2, 0);
	module_opened(&ftl);
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	do_work();
	assert_int_equal(stats.checkpoints, 2);
	mtftl_seq_set_last(&ftl, 4 * most, 0);
	module_opened(&ftl);
	device.read_only = true;
	do_work();
	assert_int_equal(stats.checkpoints, 2);
}

static u32 flushes;

static void note_flush(struct mtftl *of)
{
	flushes++;
}

/* What it stands for may not be durable: so nothing says that it is. No zone is to blame. */
static void a_checkpoint_whose_flush_fails_writes_nothing(void **state)
{
	u32 page = put(FIRST_DATA, 1, 5, 9), turn;
	u64 commands, number;

	mount();
	/* A log goes on behind its head from the second checkpoint on. */
	for (turn = 0; turn < 3; turn++) {
		number = mtftl_seq_ckpt(&ftl);
		commands = drive.commands - drive.reads;
		flushes = 0;
		module_flushes = note_flush;
		module_cannot_flush = -EIO;
		assert_int_equal(mtftl_checkpoint(&ftl, turn % 2), -EIO);
		assert_int_equal(flushes, 1);
		module_cannot_flush = 0;
		assert_int_equal(drive.commands - drive.reads, commands);
		assert_int_equal(mtftl_seq_ckpt(&ftl), number);
		assert_int_equal(space.state.zones[MTFTL_ZONE_BAD], 0);
		assert_false(mtftl_super_is_clean(&ftl) || mtftl_is_read_only(&ftl));
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	}
	mount_like_the_tool();
	assert_int_equal(map.entries[5], page);
}

static void reset_meanwhile(struct mtftl *of)
{
	mtftl_zone(of, FIRST_DATA)->erase_count++;
}

/* Its record is of the life that the map points to. */
static void a_zone_that_is_reset_while_a_checkpoint_flushes(void **state)
{
	const struct mtftl_zone_record *record;

	image->erase_count[FIRST_DATA] = 7;
	put(FIRST_DATA, 1, 5, 9);
	put(FIRST_DATA + 1, 2, 6, 9);
	mount();
	module_flushes = reset_meanwhile;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	record = mtftl_checkpoint_record(&ftl, FIRST_DATA);
	assert_int_equal(le32_to_cpu(record->erase_count), 8);
	assert_int_equal(le32_to_cpu(record->wp), 0);
	assert_int_equal(le64_to_cpu(record->first_seq), 0);
	record = mtftl_checkpoint_record(&ftl, FIRST_DATA + 1);
	assert_int_equal(le32_to_cpu(record->wp), 2);
	assert_int_equal(le64_to_cpu(record->first_seq), 2);
}

/* One that is clean, and not the newest: a record behind it is missing. */
static void a_clean_checkpoint_is_doubted_if_zones_hold_more(void **state)
{
	enum { NOTHING, A_UNIT, A_FULL_ZONE, A_TORN_BLOCK, A_FINISHED_ZONE, ALL } more;
	struct flash_zone *zone;
	u32 entries[IMAGE_LOGICAL];

	for (more = NOTHING; more < ALL; more++) {
		begin_anew(state);
		memset(entries, 0xff, sizeof(entries));
		entries[5] = put(FIRST_DATA, 1, 5, 9);
		image_write_checkpoint(image, 2, 10, entries, MTFTL_SB_CLEAN);
		zone = &image->flash.zones[FIRST_DATA + (more == A_FULL_ZONE)];
		if (more == A_UNIT || more == A_FULL_ZONE)
			put(FIRST_DATA + (more == A_FULL_ZONE), 11, 6, 9);
		if (more == A_FULL_ZONE || more == A_FINISHED_ZONE)
			*zone = (struct flash_zone) { .cond = FLASH_FULL, .wp = IMAGE_CAPACITY };
		zone->torn_sectors = more == A_TORN_BLOCK;
		mount();
		assert_int_equal(mtftl_super_is_clean(&ftl),
				 more == NOTHING || more == A_FINISHED_ZONE);
		assert_int_equal(mtftl_is_page(map.entries[6]),
				 more == A_UNIT || more == A_FULL_ZONE);
		assert_int_equal(map.entries[5], entries[5]);
	}
}

/* The superblock log */

/* The checkpoint's record is the newest, and in that zone. */
static void expect_record_in(u32 zone, u32 end)
{
	u64 number = mtftl_seq_ckpt(&ftl), generation = ftl.super->info.generation;

	assert_false(mtftl_is_read_only(&ftl));
	assert_int_equal(image->flash.zones[zone].wp, end);
	mount();
	assert_int_equal(ftl.super->zone, zone);
	assert_int_equal(ftl.super->wp, end);
	assert_int_equal(ftl.super->info.generation, generation);
	assert_int_equal(mtftl_seq_ckpt(&ftl), number);
}

static void a_record_that_cannot_be_written_goes_to_the_other_zone(void **state)
{
	const struct flash_zone *log;
	u32 fails, before;

	for (fails = 0; fails < 4; fails++) {
		begin_anew(state);
		log = image->flash.zones;
		put(FIRST_DATA, 1, 5, 9);
		mount();
		before = log[0].wp;
		drive.fail_log = fails;
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		assert_int_equal(drive.fail_log, 0);
		assert_int_equal(log[0].cond, fails < 2 ? FLASH_OPEN : FLASH_FULL);
		/* Each try there begins with a reset. */
		assert_int_equal(mtftl_zone(&ftl, 1)->erase_count, fails < 2 ? 0 : fails - 1);
		expect_record_in(fails >= 2, fails < 2 ? before + 1 : 1);
	}
	drive.fail_log = 4;
	assert_int_not_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_true(mtftl_is_read_only(&ftl));
	mount();
	assert_int_equal(mtftl_seq_ckpt(&ftl), 1);
}

/* What it stands for is durable before it, and it is durable itself. */
static void a_record_stands_between_flushes(void **state)
{
	const struct flash_zone *log = image->flash.zones;
	u32 before;

	put(FIRST_DATA, 1, 5, 9);
	mount();
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	kernel_no_fua = true;
	module_device_flushes = 0;
	before = log[0].wp;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_int_equal(module_device_flushes, 2);
	expect_record_in(0, before + 1);
	/* It may not be there: another one says the same. */
	module_device_flushes = 0;
	module_flush_fails = 2;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_int_equal(module_device_flushes, 3);
	assert_int_equal(log[1].wp, 1);
	/* What it stands for may not be. */
	module_device_flushes = 0;
	module_flush_fails = 1;
	assert_int_equal(mtftl_checkpoint(&ftl, true), -EIO);
	assert_true(mtftl_is_read_only(&ftl));
	assert_int_equal(log[1].wp, 1);
	assert_false(mtftl_super_is_clean(&ftl));
}

static void nothing_is_recorded_once_it_is_read_only(void **state)
{
	put(FIRST_DATA, 1, 5, 9);
	mount();
	assert_int_equal(mtftl_checkpoint(&ftl, true), 0);
	device.read_only = true;
	drive.commands = 0;
	assert_int_equal(mtftl_super_make_dirty(&ftl), -EIO);
	assert_int_equal(mtftl_checkpoint(&ftl, false), -EROFS);
	assert_int_equal(drive.commands, 0);
	assert_true(mtftl_super_is_clean(&ftl));
}

/* The newest record, in the first zone of the log. */
static void make_record_of_another_version(void)
{
	struct mtftl_sb *sb = (struct mtftl_sb *)image_block(image, 0, image->flash.zones[0].wp - 1);

	sb->version = cpu_to_le16(MTFTL_VERSION + 1);
	sb->crc = 0;
	sb->crc = cpu_to_le32(mtftl_crc32c(~0u, sb, MTFTL_BLOCK_SIZE));
}

static void a_record_of_another_version_is_named(void **state)
{
	image_write_super(image, 0);
	kernel_listens = "another version, incompat or map_entry_bytes";
	kernel_told = NULL;
	mount();
	assert_null(kernel_told);
	make_record_of_another_version();
	assert_int_equal(try_to_mount(), -EPROTO);
	assert_non_null(kernel_told);
	kernel_listens = NULL;
}

/* A reset, the unit or the record: another zone does instead, and nothing is lost. */
static void a_command_that_is_carried_out_and_fails_costs_no_data(void **state)
{
	u32 page, at;
	u64 number;

	for (at = 1; at <= 4; at++) {
		begin_anew(state);
		page = put(FIRST_DATA, 1, 5, 9);
		mount();
		module_spare = FIRST_DATA + 2;
		lies_at = at;
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		assert_int_equal(lies_at, at > 3);
		lies_at = 0;
		number = mtftl_seq_ckpt(&ftl);
		mount();
		assert_int_equal(map.entries[5], page);
		assert_int_equal(mtftl_seq_ckpt(&ftl), number);
		assert_false(mtftl_is_read_only(&ftl));
	}
}

static bool told_of_log(const char *message)
{
	kernel_listens = message;
	kernel_told = NULL;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	kernel_listens = NULL;
	expect_record_in(1, 1);
	return kernel_told;
}

static void a_log_zone_that_changed_is_left(void **state)
{
	struct flash_zone *log = image->flash.zones;

	put(FIRST_DATA, 1, 5, 9);
	mount();
	log[0].wp++;
	assert_true(told_of_log("zone %u is written up to block %u"));
	begin_anew(state);
	log = image->flash.zones;
	put(FIRST_DATA, 1, 5, 9);
	mount();
	log[0].cond = FLASH_READONLY;
	assert_true(told_of_log("zone %u is read-only or offline"));
}

/* The drive does not say whether the write was carried out. */
static void a_log_zone_whose_end_is_not_told_is_left(void **state)
{
	put(FIRST_DATA, 1, 5, 9);
	mount();
	drive.fail_log = 1;
	report_fails = -EIO;
	kernel_listens = "is read-only or offline";
	kernel_told = NULL;
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	assert_null(kernel_told);
	kernel_listens = NULL;
	report_fails = 0;
	expect_record_in(1, 1);
}

/* Zone after zone, and the newest record is always found. */
static void the_log_goes_round(void **state)
{
	u32 i, zone = 0, end = image->flash.zones[0].wp;
	u64 finishes;

	put(FIRST_DATA, 1, 5, 9);
	aligned = image->sb.map_log;
	mount();
	for (i = 0; i < 5 * IMAGE_CAPACITY / 2; i++) {
		finishes = drive.finishes;
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		if (end++ == IMAGE_CAPACITY) {
			assert_int_equal(image->flash.zones[zone].cond, FLASH_FULL);
			/* Else the drive counts it, for some sectors behind its last block. */
			assert_true(aligned || drive.finishes > finishes);
			zone = !zone;
			end = 1;
		}
		if (end < 3 || end > IMAGE_CAPACITY - 2)
			expect_record_in(zone, end);
	}
	assert_int_equal(zone, 0);
}

static void a_clean_device_is_made_dirty_once(void **state)
{
	u32 before;

	put(FIRST_DATA, 1, 5, 9);
	mount();
	assert_int_equal(mtftl_checkpoint(&ftl, true), 0);
	before = image->flash.zones[0].wp;
	device.paused = true;
	assert_int_equal(mtftl_super_make_dirty(&ftl), -EAGAIN);
	assert_int_equal(stats.sending, stats.landed);
	device.paused = false;
	assert_true(mtftl_super_is_clean(&ftl));
	assert_int_equal(mtftl_super_make_dirty(&ftl), 0);
	assert_int_equal(mtftl_super_make_dirty(&ftl), 0);
	assert_int_equal(stats.sending, stats.landed);
	assert_false(mtftl_super_is_clean(&ftl));
	expect_record_in(0, before + 1);
	assert_false(mtftl_super_is_clean(&ftl));
}

/* What another system wrote while the machine slept */

static void expect_another_writer(void)
{
	bool ours = true;

	assert_int_equal(mtftl_super_is_ours(&ftl, &ours), 0);
	assert_false(ours);
}

static void only_another_writer_is_not_us(void **state)
{
	bool ours = false;

	put(FIRST_DATA, 1, 5, 9);
	mount();
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	mounted = false;
	assert_int_equal(mtftl_super_is_ours(&ftl, &ours), 0);
	assert_true(ours);
	/* Errors that may pass say nothing. */
	drive.fail_read = -EIO;
	assert_int_equal(mtftl_super_is_ours(&ftl, &ours), -EIO);
	drive.fail_read = -ENOMEM;
	assert_int_equal(mtftl_super_is_ours(&ftl, &ours), -ENOMEM);
	/* The medium has lost our newest record: that is no writer either. */
	drive.fail_read = -ENODATA;
	assert_int_equal(mtftl_super_is_ours(&ftl, &ours), 0);
	assert_true(ours);
	image->sb = ftl.super->info;
	image_write_super(image, 0);
	expect_another_writer();
	make_record_of_another_version();
	expect_another_writer();
	image_reset_zone(image, 0);
	expect_another_writer();
	/* Formatted anew: its generations begin again. */
	image->sb.uuid[0] ^= 1;
	image->sb.generation = 0;
	image_write_super(image, 0);
	expect_another_writer();
	/* What no writer of ours says. */
	image->sb.uuid[0] ^= 1;
	image->sb.op_permille = 1000;
	image_write_super(image, 0);
	expect_another_writer();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define LOG_TEST(name) { #name "_with_a_log", name, setup_log, teardown, NULL }
#define OOB_TEST(name) { #name "_without_headers", name, setup_oob, teardown, NULL }
	const struct CMUnitTest tests[] = {
		TEST(a_header_in_a_torn_block_claims_its_payload),
		TEST(a_torn_block_in_an_empty_zone),
		TEST(ranges_in_a_torn_block_count),
		TEST(a_torn_block_that_the_medium_has_lost_claims_nothing),
		OOB_TEST(data_that_looks_like_a_header_claims_nothing),
		TEST(what_is_no_header_in_a_torn_block),
		TEST(a_copy_from_an_earlier_life_hides_nothing),
		TEST(a_copy_of_what_was_found_hides_nothing),
		TEST(what_is_older_than_the_checkpoint_tells_no_life),
		TEST(a_life_is_found_beside_what_cannot_be_read),
		TEST(an_entry_of_an_earlier_life_is_lost),
		OOB_TEST(an_entry_of_an_earlier_life_is_lost),
		TEST(an_entry_of_an_earlier_life_behind_a_torn_unit),
		OOB_TEST(an_entry_of_an_earlier_life_behind_a_torn_unit),
		TEST(an_entry_of_an_empty_zone_is_lost),
		OOB_TEST(an_entry_of_an_empty_zone_is_lost),
		TEST(an_entry_behind_the_write_pointer_is_lost),
		TEST(entries_of_all_parts_are_looked_at),
		TEST(blocks_that_go_on_in_the_next_zone_are_there),
		TEST(a_durable_unit_whose_header_is_lost_is_in_the_footer),
		TEST(a_unit_whose_header_is_lost_counts_only_if_durable),
		TEST(a_tail_of_an_earlier_life_says_nothing),
		TEST(an_entry_of_an_earlier_life_in_a_zone_with_a_footer),
		TEST(a_zone_without_a_footer_costs_one_read),
		TEST(an_offline_zone_is_told_after_a_cut),
		TEST(a_checkpoint_of_many_units_is_loaded),
		TEST(a_checkpoint_goes_on_where_a_unit_fits),
		TEST(a_checkpoint_of_uneven_units_is_loaded),
		TEST(a_stream_beyond_its_zones_is_refused),
		TEST(an_entry_that_is_no_block_is_refused),
		LOG_TEST(an_entry_that_is_no_block_is_refused),
		TEST(a_checkpoint_in_more_zones_than_it_needs_is_refused),
		TEST(a_device_that_grows_keeps_its_data),
		TEST(no_unit_of_a_checkpoint_is_another),
		TEST(a_checkpoint_writes_what_changed),
		TEST(a_log_goes_on_behind_a_torn_block),
		TEST(what_a_cut_tore_in_the_log_hides_nothing),
		TEST(what_a_cut_left_of_a_checkpoint_is_finished),
		TEST(a_read_only_zone_of_the_log_is_replaced),
		TEST(a_low_zone_that_no_log_names_holds_data),
		TEST(low_zones_with_data_are_not_taken),
		TEST(a_damaged_log_is_rebuilt_among_its_zones),
		TEST(a_log_with_a_newer_unit_is_not_rebuilt),
		TEST(an_attempt_of_the_same_numbers_is_not_salvaged),
		TEST(a_torn_unit_in_front_of_a_stream_hides_none_of_it),
		TEST(a_head_of_the_log_that_fails_needs_no_zone),
		TEST(a_read_only_head_of_the_log_stays),
		TEST(a_pause_before_a_zone_is_entered_costs_nothing),
		TEST(a_pause_before_the_head_is_finished_costs_nothing),
		TEST(a_stream_that_goes_round_is_refused),
		TEST(numbers_of_a_stream_are_as_its_record_says),
		TEST(a_log_of_another_writer_is_loaded),
		TEST(a_log_of_two_zones_goes_round),
		TEST(a_log_of_four_zones_goes_round),
		TEST(a_checkpoint_that_is_cut_leaves_the_one_before),
		TEST(a_checkpoint_of_many_records_may_end_anywhere),
		TEST(a_clean_stop_brings_an_older_device_over),
		TEST(a_zone_of_the_log_that_fails_is_replaced),
		TEST(a_head_of_the_log_that_the_drive_finishes_is_left),
		TEST(a_checkpoint_without_a_zone_to_spare_fails),
		TEST(an_older_record_finds_its_checkpoint),
		TEST(forged_directories_are_refused),
		TEST(the_stream_of_another_time_is_refused),
		TEST(a_device_full_of_ranges_is_refused),
		TEST(zones_are_read_again_for_what_is_not_kept),
		TEST(a_number_that_is_everywhere_is_refused),
		TEST(reads_of_units_that_no_flush_followed),
		TEST(a_mount_without_memory_says_so),
		LOG_TEST(a_mount_without_memory_says_so),
		OOB_TEST(a_mount_without_memory_says_so),
		TEST(a_checkpoint_that_fails_is_silent_in_a_pause),
		TEST(a_pause_ends_a_checkpoint),
		TEST(a_checkpoint_ends_if_a_pause_made_the_device_read_only),
		LOG_TEST(a_checkpoint_that_fails_is_silent_in_a_pause),
		TEST(a_checkpoint_that_was_cut_leaves_a_zone_for_the_next),
		LOG_TEST(a_checkpoint_that_was_cut_leaves_a_zone_for_the_next),
		TEST(a_checkpoint_that_was_cut_in_its_first_block),
		LOG_TEST(a_checkpoint_that_was_cut_in_its_first_block),
		TEST(a_zone_whose_blocks_were_all_written_again),
		TEST(a_spent_zone_that_fails_is_replaced),
		TEST(a_worn_out_zone_takes_no_checkpoint),
		TEST(a_zone_that_is_shorter_than_it_was_takes_no_checkpoint),
		TEST(a_read_only_zone_takes_no_checkpoint),
		TEST(a_checkpoint_gives_up_after_a_few_zones),
		LOG_TEST(a_checkpoint_gives_up_after_a_few_zones),
		TEST(a_spent_zone_is_taken_before_an_empty_one),
		LOG_TEST(a_spent_zone_that_fails_is_replaced),
		TEST(a_read_only_mount_finishes_no_zone),
		LOG_TEST(a_read_only_mount_finishes_no_zone),
		TEST(a_zone_with_a_newer_footer_is_kept),
		TEST(a_zone_with_newer_ranges_is_kept),
		TEST(a_clean_stop_is_clean_beside_an_older_checkpoint),
		LOG_TEST(a_clean_stop_is_clean_beside_an_older_checkpoint),
		TEST(a_report_that_ends_early_loses_nothing),
		TEST(a_clean_record_beside_an_offline_zone_of_the_log),
		TEST(a_read_only_zone_has_no_write_pointer),
		OOB_TEST(a_read_only_zone_has_no_write_pointer),
		TEST(a_read_that_fails_hides_nothing),
		LOG_TEST(a_read_that_fails_hides_nothing),
		OOB_TEST(a_read_that_fails_hides_nothing),
		TEST(each_block_that_is_lost_is_lost_to_the_tool),
		LOG_TEST(each_block_that_is_lost_is_lost_to_the_tool),
		TEST(a_payload_that_cannot_be_read_costs_one_block),
		TEST(a_payload_that_cannot_be_read_is_not_verified),
		TEST(a_unit_longer_than_the_buffer_is_verified),
		TEST(a_unit_that_was_written_twice_is_whole_in_one_place),
		TEST(records_that_are_there_twice_count_once),
		TEST(a_zone_that_was_reset_is_read_from_its_beginning),
		TEST(a_zone_with_the_checkpoints_own_number_is_spent),
		TEST(a_report_of_zones_that_cannot_be_is_refused),
		TEST(sectors_behind_the_last_block_hold_nothing),
		TEST(an_entry_in_a_zone_of_metadata_is_lost),
		TEST(a_mount_that_is_killed_says_so),
		LOG_TEST(a_mount_that_is_killed_says_so),
		TEST(cuts_of_mounts_in_a_row_lose_nothing),
		TEST(blocks_beyond_the_device_are_passed_over),
		TEST(zones_beyond_the_budget_are_finished),
		TEST(a_zone_that_is_shorter_than_it_was_is_finished_last),
		TEST(a_torn_unit_at_the_end_of_a_zone_fills_it),
		TEST(a_zone_that_is_written_to_its_last_block_is_finished),
		TEST(a_zone_of_the_log_that_was_left_is_finished),
		TEST(a_torn_block_that_cannot_be_completed_ends_its_zone),
		TEST(ages_follow_from_numbers),
		TEST(numbers_that_are_used_up_are_not_drawn),
		TEST(what_is_durable_is_known),
		TEST(a_checkpoint_keeps_what_is_known_of_zones),
		TEST(a_checkpoint_costs_what_it_must),
		TEST(a_record_of_an_empty_zone_says_nothing),
		TEST(a_long_log_is_cut_by_a_checkpoint),
		TEST(a_checkpoint_whose_flush_fails_writes_nothing),
		LOG_TEST(a_checkpoint_whose_flush_fails_writes_nothing),
		TEST(a_zone_that_is_reset_while_a_checkpoint_flushes),
		TEST(a_clean_checkpoint_is_doubted_if_zones_hold_more),
		TEST(a_record_that_cannot_be_written_goes_to_the_other_zone),
		TEST(a_record_stands_between_flushes),
		LOG_TEST(a_record_stands_between_flushes),
		TEST(nothing_is_recorded_once_it_is_read_only),
		TEST(a_record_of_another_version_is_named),
		TEST(a_command_that_is_carried_out_and_fails_costs_no_data),
		LOG_TEST(a_record_that_cannot_be_written_goes_to_the_other_zone),
		TEST(a_log_zone_that_changed_is_left),
		TEST(a_log_zone_whose_end_is_not_told_is_left),
		TEST(the_log_goes_round),
		LOG_TEST(the_log_goes_round),
		TEST(a_clean_device_is_made_dirty_once),
		LOG_TEST(a_clean_device_is_made_dirty_once),
		OOB_TEST(numbers_that_are_used_up_are_not_drawn),
		TEST(only_another_writer_is_not_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
