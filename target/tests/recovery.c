// SPDX-License-Identifier: GPL-2.0
/*
 * The drive in memory, and the module that mounts it: see recovery.h.
 */
#include "recovery.h"

#include <linux/sched/signal.h>

#include "check.h"
#include "device/rw.h"
#include "durable/checkpoint.h"
#include "durable/recover.h"
#include "module.h"
#include "replay.h"
#include "super.h"
#include "zone/super.h"
#include "zone/zones.h"

#define LEFT_ALONE	3u	/* zones in front of those of the format */
#define LARGE_ZONES	1024u

struct image *image;
struct drive drive;
struct read_only read_only;
u32 reported = U32_MAX;
int report_fails;
u32 misplaced, misled, spare_sectors;
u32 unreadable;
int unreadable_error = -ENODATA;
bool finish_fails, aligned;
int mount_fails_write, mount_fails_read;
u64 mount_reads_before;
struct killed_behind killed_behind;
int power, lies_at;
struct logged logged;

struct mtftl_cpu_stats stats;
static struct dm_dev dm;
struct mtftl_device device;
struct mtftl_map map;
struct mtftl_seq seq;
struct mtftl_space space;
struct mtftl ftl;
bool mounted, mount_read_only;

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

void unmount(void)
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

int try_to_mount(void)
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

void mount(void)
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
	replay_from(&tool.replay, &tool.super);
	return replay_run(&tool.replay);
}

void mount_like_the_tool(void)
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
void mount_or_fail_like_the_tool(void)
{
	int r = look_like_the_tool();

	assert_int_equal(!try_to_mount(), !r);
	if (!r)
		assert_memory_equal(map.entries, tool.replay.map,
				    tool.super.info.logical_blocks * sizeof(*tool.replay.map));
	replay_free(&tool.replay);
}

int setup(void **state)
{
	image = image_new();
	image_write_super(image, 0);
	return 0;
}

int setup_log(void **state)
{
	image = image_new();
	image->sb.map_log = true;
	image_write_super(image, 0);
	return 0;
}

int setup_oob(void **state)
{
	image = image_new();
	image->sb.oob = true;
	image_write_super(image, 0);
	return 0;
}

int teardown(void **state)
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

void begin_anew(void **state)
{
	unmount();
	image_free(image);
	setup(state);
}

u32 *begin_large(u32 capacity, u32 logical_blocks)
{
	u32 *entries = malloc(logical_blocks * sizeof(*entries));

	unmount();
	image_free(image);
	image = image_new_of(LARGE_ZONES, 64, capacity, logical_blocks);
	memset(entries, 0xff, logical_blocks * sizeof(*entries));
	return entries;
}

/* What is in zones */

/* One block in a unit of its own; returns its page. */
u32 put(u32 zone, u64 number, u64 lba, u16 content)
{
	return flash_page(&image->flash, zone,
			  image_write_unit(image, zone, MTFTL_UNIT_DATA, number, 1, &lba,
					   &content)) + !image->sb.oob;
}

/* A cut left @sectors of block @offset, and nothing behind. */
void cut(u32 zone, u32 offset, u8 sectors)
{
	struct flash_zone *state = &image->flash.zones[zone];
	u8 *left = image_block(image, zone, offset) + sectors * 512;

	memset(left, 0, image_block(image, zone, state->wp) - left);
	*state = (struct flash_zone) {
		.cond = FLASH_OPEN, .wp = offset, .torn_sectors = sectors,
	};
}

/* A map of one block in each data zone up to @last. */
const u32 *map_of_blocks(u32 last)
{
	static u32 entries[IMAGE_LOGICAL];
	u32 i;

	memset(entries, 0xff, sizeof(entries));
	for (i = FIRST_DATA; i < last; i++)
		entries[i] = flash_page(&image->flash, i, 1);
	return entries;
}

/* Units of one block, and a footer; the first one has block @lba and number @number. */
void fill_with_footer(u32 zone, u32 units, u64 lba, u64 number)
{
	u32 i;

	for (i = 0; i < units; i++)
		put(zone, number + i, lba + i, 9);
	image->seq = number + units;
	image_write_footer(image, zone, 0);
}

void lose_header(u32 zone, u32 unit)
{
	image_block(image, zone, 2 * unit)[60] ^= 1;
}

/* A block in each zone for data except one; returns that one. */
u32 fill_zones_but_one(void)
{
	u32 zone, last = image->flash.nr_zones - 1;

	for (zone = FIRST_DATA; zone < last; zone++)
		put(zone, zone, zone, zone);
	image->flash.zones[FIRST_DATA - 1].cond = FLASH_OFFLINE;
	return last;
}

void expect_blocks(u32 last)
{
	u32 zone;

	for (zone = FIRST_DATA; zone < last; zone++)
		assert_int_equal(map.entries[zone], flash_page(&image->flash, zone, 1));
}

/* A log of map blocks */

/* Formatted with a log, or without one; how many zones are set aside. */
u32 begin_logged_of(u32 zones, u32 logical, bool map_log)
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
void begin_logged(u32 seats, bool map_log)
{
	assert_int_equal(begin_logged_of(seats > 2 ? 1024 : 60, seats > 2 ? 114900 : 5000, map_log),
			 seats);
}

/* A block of that chunk is written, as a user would. */
void write_chunk(u32 chunk)
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

void expect_logged(void)
{
	assert_memory_equal(map.entries, logged.entries, logged.logical * sizeof(u32));
}
