// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery and check on images in memory: each rule of docs/design/format.md once on
 * purpose, then random histories against a model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "check.h"
#include "image.h"
#include "nvme.h"
#include "replay.h"
#include "scan.h"
#include "super.h"

static struct image *image;
static struct super super;
static struct replay replay;

static int setup(void **state)
{
	(void)state;
	image = image_new();
	memset(&replay, 0, sizeof(replay));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	replay_free(&replay);
	image_free(image);
	return 0;
}

static u32 page(u32 zone, u32 offset)
{
	return flash_page(&image->flash, zone, offset);
}

static int recover(void)
{
	static struct report report;
	int err = super_find(&image->flash, &super);

	if (err)
		return err;
	replay_free(&replay);
	memset(&report, 0, sizeof(report));
	report.quiet = true;
	replay = (struct replay) { .flash = &image->flash, .report = &report };
	replay_from(&replay, &super);
	return replay_run(&replay);
}

static u64 check_errors(void)
{
	struct check_totals totals;
	struct report report = { .quiet = true };

	assert_int_equal(check_flash(&image->flash, &report, &totals), 0);
	return report.errors;
}

static u64 check_notes(void)
{
	struct check_totals totals;
	struct report report = { .quiet = true };

	assert_int_equal(check_flash(&image->flash, &report, &totals), 0);
	return report.notes;
}

static u32 head(void)
{
	return mtftl_unit_head(image->sb.oob, MTFTL_UNIT_DATA);
}

/* One block in a unit of its own; returns its page. */
static u32 put(u32 zone, u64 seq, u64 lba, u16 content)
{
	return page(zone, image_write_unit(image, zone, MTFTL_UNIT_DATA, seq, 1, &lba,
					   &content) + head());
}

static void tear(u32 zone, u32 offset)
{
	image_block(image, zone, offset)[60] ^= 0x40;
}

static void empty_map(u32 *map)
{
	memset(map, 0xff, IMAGE_LOGICAL * sizeof(*map));
}

static void formatted_device_is_unmapped(void **state)
{
	u32 i;

	(void)state;
	image_write_super(image, MTFTL_SB_CLEAN);
	assert_int_equal(recover(), 0);
	for (i = 0; i < IMAGE_LOGICAL; i++)
		assert_int_equal(replay.map[i], MTFTL_MAP_UNMAPPED);
	assert_int_equal(check_errors(), 0);
}

static void no_superblock(void **state)
{
	(void)state;
	assert_int_equal(recover(), -ENODATA);
}

static void a_superblock_may_have_been_in_an_offline_zone(void **state)
{
	u32 zone;

	(void)state;
	for (zone = 0; zone < MTFTL_NR_SB_ZONES; zone++) {
		image->flash.zones[zone].cond = FLASH_OFFLINE;
		assert_int_equal(recover(), -ENXIO);
		image->flash.zones[zone].cond = FLASH_EMPTY;
	}
	image_write_super(image, 0);
	image->flash.zones[1].cond = FLASH_OFFLINE;
	assert_int_equal(recover(), 0);
}

static void newest_whole_superblock_counts(void **state)
{
	(void)state;
	image_write_super(image, 0);
	image_write_super(image, 0);
	image_write_super(image, 0);
	assert_int_equal(recover(), 0);
	assert_int_equal(super.info.generation, 3);
	tear(0, 2);
	assert_int_equal(recover(), 0);
	assert_int_equal(super.info.generation, 2);
	assert_int_equal(super.offset, 1);

	/* The other zone, which has the higher generation. */
	image->flash.zones[1] = (struct flash_zone) { .cond = FLASH_OPEN, .wp = 1 };
	image->sb.generation = 9;
	mtftl_sb_compose(image_block(image, 1, 0), &image->sb);
	assert_int_equal(recover(), 0);
	assert_int_equal(super.zone, 1);
	assert_int_equal(check_errors(), 0);

	/* The zones' records must not interleave. */
	image->sb.generation = 1;
	mtftl_sb_compose(image_block(image, 1, 0), &image->sb);
	assert_int_equal(check_errors(), 1);
	assert_int_equal(recover(), 0);
	assert_int_equal(super.zone, 0);
}

static void use_unknown_feature(u32 zone, u32 offset)
{
	struct mtftl_sb *sb = (struct mtftl_sb *)image_block(image, zone, offset);

	sb->incompat = cpu_to_le64(4);
	sb->crc = 0;
	sb->crc = cpu_to_le32(mtftl_crc32c(~0u, sb, sizeof(*sb)));
}

static void newer_superblock_is_not_skipped_for_an_older_one(void **state)
{
	(void)state;
	image_write_super(image, 0);
	image_write_super(image, 0);
	use_unknown_feature(0, 1);
	assert_int_equal(recover(), -EPROTO);
}

static void superblock_of_another_geometry(void **state)
{
	(void)state;
	image->sb.zone_capacity--;
	image_write_super(image, 0);
	assert_int_equal(recover(), -ESTALE);
}

static void highest_number_wins_wherever_it_is(void **state)
{
	u32 newest;

	(void)state;
	image_write_super(image, 0);
	put(5, 3, 7, 3);
	newest = put(3, 9, 7, 9);
	put(3, 4, 7, 4);
	put(9, 8, 7, 8);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[7], newest);
	assert_int_equal(replay.max_seq, 9);
	assert_int_equal(check_errors(), 0);
}

static void trims_take_their_own_number(void **state)
{
	u32 later;

	(void)state;
	image_write_super(image, 0);
	put(3, 1, 10, 1);
	put(3, 2, 11, 2);
	put(3, 3, 12, 3);
	/* Trimmed at 4; block 11 was written again at 5, before the record at 6. */
	later = put(4, 5, 11, 5);
	image_write_range(image, 3, 6, 10, 2, 4, MTFTL_RANGE_TRIM);
	image_write_range(image, 3, 8, 12, 1, 7, MTFTL_RANGE_LOST);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[10], MTFTL_MAP_UNMAPPED);
	assert_int_equal(replay.map[11], later);
	assert_int_equal(replay.map[12], MTFTL_MAP_LOST);
	assert_int_equal(check_errors(), 0);
}

static void torn_payload_falls_back_unless_it_was_durable(void **state)
{
	u32 old;

	(void)state;
	image_write_super(image, 0);
	old = put(3, 1, 10, 1);
	put(3, 2, 10, 2);
	tear(3, 3);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[10], old);
	assert_int_equal(replay.blocks_dropped, 1);
	assert_int_equal(check_errors(), 0);

	/* Once it is known to have been durable, it is damage: nothing older takes its place. */
	image->durable_seq = 2;
	put(4, 3, 20, 3);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[10], page(3, 3));
	assert_int_equal(check_errors(), 1);
}

static void only_the_torn_block_of_a_unit_is_dropped(void **state)
{
	const u64 lbas[] = { 1, 2, 3 };
	const u16 contents[] = { 1, 2, 3 };

	(void)state;
	image_write_super(image, 0);
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 1, 3, lbas, contents);
	tear(3, 2);
	image->flash.zones[3].wp = 3;
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[1], page(3, 1));
	assert_int_equal(replay.map[2], MTFTL_MAP_UNMAPPED);
	assert_int_equal(replay.map[3], MTFTL_MAP_UNMAPPED);
	assert_int_equal(check_errors(), 0);
}

static void torn_header_does_not_hide_what_follows(void **state)
{
	const u64 lbas[] = { 1, 2, 3 };
	const u16 contents[] = { 1, 2, 3 };
	u32 behind;

	(void)state;
	image_write_super(image, 0);
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 1, 3, lbas, contents);
	tear(3, 0);
	behind = put(3, 2, 9, 9);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[1], MTFTL_MAP_UNMAPPED);
	assert_int_equal(replay.map[9], behind);
	assert_int_equal(check_errors(), 0);

	/* Nor does a header that cannot be read. */
	image->unreadable = page(3, 0);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[9], behind);
}

static void copied_header_in_a_torn_unit_is_no_unit(void **state)
{
	const u64 lbas[] = { 1, 2, 3 };
	const u16 contents[] = { 1, 2, 3 };
	u32 behind;

	(void)state;
	image_write_super(image, 0);
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 1, 3, lbas, contents);
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 2, 3, lbas, contents);
	behind = put(3, 3, 9, 9);
	/*
	 * A user's raw copy of the first header as the last payload of a torn unit: its three
	 * blocks would reach over the next unit's header.
	 */
	memcpy(image_block(image, 3, 7), image_block(image, 3, 0), MTFTL_BLOCK_SIZE);
	tear(3, 4);
	image->durable_seq = 3;
	put(5, 4, 50, 50);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[9], behind);
	assert_int_equal(replay.map[2], page(3, 2));

	/* Of an older life of the zone likewise. */
	image->erase_count[3] = 7;
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 40, 1, lbas + 2, contents);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[3], page(3, 3));
}

static void unit_written_twice_is_taken_where_it_verifies(void **state)
{
	u32 good;

	(void)state;
	image_write_super(image, 0);
	put(3, 1, 10, 1);
	good = put(3, 2, 10, 2);
	put(6, 2, 10, 2);
	tear(6, 1);
	image->durable_seq = 2;
	put(4, 3, 20, 3);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[10], good);
	assert_int_equal(check_errors(), 0);

	/* No copy verifies: lost, not older data. */
	tear(3, 3);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[10], MTFTL_MAP_LOST);
}

static void checkpoint_and_what_changed_since(void **state)
{
	u32 map[IMAGE_LOGICAL];

	(void)state;
	image_write_super(image, 0);
	empty_map(map);
	map[1] = put(3, 1, 1, 1);
	map[2] = put(4, 2, 2, 2);
	map[5] = put(6, 3, 5, 5);
	image->seq = 10;
	image_write_checkpoint(image, 2, 10, map, 0);
	/* Zone 3 unchanged, zone 4 grew, zone 6 was reset, zone 7 is new. */
	map[3] = put(4, 20, 3, 3);
	put(4, 19, 2, 0);
	map[2] = put(7, 21, 2, 4);
	image_reset_zone(image, 6);
	map[5] = put(6, 22, 5, 6);
	assert_int_equal(recover(), 0);
	assert_memory_equal(replay.map, map, sizeof(map));
	assert_int_equal(replay.zones_skipped, 1);
	assert_int_equal(replay.zones_scanned, 3);
	assert_int_equal(replay.units, 4);
	assert_int_equal(check_errors(), 0);
}

static void scan_may_start_inside_a_unit(void **state)
{
	const u64 lbas[] = { 1, 2, 3 };
	const u16 contents[] = { 1, 2, 3 };
	u32 map[IMAGE_LOGICAL], behind;

	(void)state;
	image_write_super(image, 0);
	empty_map(map);
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 5, 3, lbas, contents);
	image->flash.zones[3].wp = 3;
	image_write_checkpoint(image, 2, 10, map, 0);
	image->flash.zones[3].wp = 4;
	/* The last payload block is a copy of its header, which reaches over what follows. */
	memcpy(image_block(image, 3, 3), image_block(image, 3, 0), MTFTL_BLOCK_SIZE);
	behind = put(3, 20, 9, 9);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[9], behind);
}

/* No writer makes them; a mount takes that of zone 0. */
static void of_two_equal_generations_the_first_counts(void **state)
{
	(void)state;
	image_write_super(image, 0);
	memcpy(image_block(image, 1, 0), image_block(image, 0, 0), MTFTL_BLOCK_SIZE);
	image->flash.zones[1] = (struct flash_zone) { .cond = FLASH_OPEN, .wp = 1 };
	assert_int_equal(super_find(&image->flash, &super), 0);
	assert_int_equal(super.zone, 0);
}

static void clean_checkpoint_is_all_there_is(void **state)
{
	u32 map[IMAGE_LOGICAL];

	(void)state;
	image_write_super(image, 0);
	empty_map(map);
	map[1] = put(3, 1, 1, 1);
	image_write_checkpoint(image, 2, 10, map, MTFTL_SB_CLEAN);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[1], map[1]);
	assert_int_equal(check_errors(), 0);
	/* A newer unit contradicts the flag: then it is not the newest checkpoint. */
	map[3] = put(4, 20, 3, 3);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[3], map[3]);
	assert_int_not_equal(check_errors(), 0);
}

static void range_before_the_checkpoint_in_a_unit_behind_it(void **state)
{
	u32 map[IMAGE_LOGICAL];

	(void)state;
	image_write_super(image, 0);
	empty_map(map);
	/* Trimmed at 5, written again at 6, checkpoint at 10, the record only now. */
	map[1] = put(3, 6, 1, 1);
	image_write_checkpoint(image, 2, 10, map, 0);
	image_write_range(image, 3, 20, 1, 1, 5, MTFTL_RANGE_TRIM);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[1], map[1]);
	assert_int_equal(check_errors(), 0);
}

static void damaged_checkpoint_is_refused(void **state)
{
	u32 map[IMAGE_LOGICAL];

	(void)state;
	image_write_super(image, 0);
	empty_map(map);
	image_write_checkpoint(image, 2, 10, map, 0);
	assert_int_equal(recover(), 0);
	tear(2, 2);
	assert_int_equal(recover(), -EBADMSG);
	assert_int_equal(check_errors(), 1);
	tear(2, 2);
	tear(2, 0);
	assert_int_equal(recover(), -EBADMSG);
}

static void fill_with_footer(u32 zone)
{
	const u64 lbas[] = { 30, 31, 32 };
	const u16 contents[] = { 1, 2, 3 };

	image_write_unit(image, zone, MTFTL_UNIT_DATA, 4, 3, lbas, contents);
	image_write_range(image, zone, 6, 31, 1, 5, MTFTL_RANGE_TRIM);
	image_write_unit(image, zone, MTFTL_UNIT_GC, 7, 1, lbas, contents);
	image_write_footer(image, zone, 0);
}

static void footer_stands_for_the_headers(void **state)
{
	u32 map[IMAGE_LOGICAL];

	(void)state;
	image_write_super(image, 0);
	fill_with_footer(3);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.zones_by_footer, 1);
	assert_int_equal(replay.zones_scanned, 0);
	assert_int_equal(replay.map[30], page(3, 6));
	assert_int_equal(replay.map[31], MTFTL_MAP_UNMAPPED);
	assert_int_equal(replay.map[32], page(3, 3));
	assert_int_equal(check_errors(), 0);
	assert_int_equal(check_notes(), 0);
	memcpy(map, replay.map, sizeof(map));

	/* Damaged tail or stream: the headers say the same. */
	tear(3, IMAGE_CAPACITY - 1);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.zones_scanned, 1);
	assert_memory_equal(replay.map, map, sizeof(map));
	tear(3, IMAGE_CAPACITY - 1);
	tear(3, 8);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.zones_scanned, 1);
	assert_memory_equal(replay.map, map, sizeof(map));
}

/* A flush may have ended between two units of the footer; only the last one, padding, knows of it. */
static void padding_behind_a_footer_says_what_is_durable(void **state)
{
	struct mtftl_unit_info info;
	u32 at = 0, newest;

	(void)state;
	image_write_super(image, 0);
	put(5, 100, 5, 1);
	newest = put(5, 101, 5, 2);
	tear(5, newest % IMAGE_ZONE_BLOCKS);
	fill_with_footer(3);
	/* The last unit that has a header. */
	while (!mtftl_unit_parse(image_block(image, 3, at), image->seed, 3, at, IMAGE_CAPACITY, &info) &&
	       at + 1 + info.nr_blocks < IMAGE_CAPACITY - 1)
		at += 1 + info.nr_blocks;
	assert_int_equal(info.type, MTFTL_UNIT_FOOTER);
	assert_int_equal(info.nr_entries, 0);
	mtftl_unit_seal(image_block(image, 3, at), image->seed, 3, at, image->erase_count[3], 101);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.zones_by_footer, 1);
	assert_int_equal(replay.durable_seq, 101);
	assert_int_equal(replay.map[5], newest);
}

static void units_in_a_footer_are_verified_if_not_durable(void **state)
{
	(void)state;
	image_write_super(image, 0);
	fill_with_footer(3);
	tear(3, 6);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.zones_by_footer, 1);
	assert_int_equal(replay.map[30], page(3, 1));
	image->durable_seq = 7;
	put(4, 100, 99, 1);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[30], page(3, 6));
}

static void footer_of_another_life_is_not_used(void **state)
{
	const u32 from = 2, nr = IMAGE_CAPACITY - from;
	u8 footer[IMAGE_CAPACITY * MTFTL_BLOCK_SIZE];
	u64 lba = 40;
	u16 content = 4;

	(void)state;
	image_write_super(image, 0);
	put(3, 1, 1, 1);
	image_write_footer(image, 3, 0);
	memcpy(footer, image_block(image, 3, from), nr * MTFTL_BLOCK_SIZE);
	image_reset_zone(image, 3);
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 200, 1, &lba, &content);
	image->flash.zones[3] = (struct flash_zone) { .cond = FLASH_FULL, .wp = IMAGE_CAPACITY };
	memcpy(image_block(image, 3, from), footer, nr * MTFTL_BLOCK_SIZE);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.zones_by_footer, 0);
	assert_int_equal(replay.map[40], page(3, 1));
}

static void footer_that_contradicts_itself_is_not_used(void **state)
{
	struct mtftl_tail *tail;

	(void)state;
	image_write_super(image, 0);
	fill_with_footer(3);
	tail = (struct mtftl_tail *)image_block(image, 3, IMAGE_CAPACITY - 1);
	tail->nr_records = cpu_to_le32(2);
	tail->crc = 0;
	tail->crc = cpu_to_le32(mtftl_crc32c(image->seed, tail, sizeof(*tail)));
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.zones_by_footer, 0);
}

static void footer_that_omits_a_unit_is_found_by_check(void **state)
{
	(void)state;
	image_write_super(image, 0);
	put(3, 1, 1, 1);
	put(3, 2, 2, 2);
	image_write_footer(image, 3, 1);
	/* The number of units differs, and recovery misses a block. */
	assert_int_equal(check_errors(), 2);
}

static void footer_that_lies_is_found_by_check(void **state)
{
	struct mtftl_unit_info info = { .type = MTFTL_UNIT_DATA, .seq = 8, .nr_blocks = 1 };
	u8 *header;

	(void)state;
	image_write_super(image, 0);
	fill_with_footer(3);
	assert_int_equal(check_errors(), 0);
	/* The GC unit's header, replaced by one with another number and no entry. */
	header = image_block(image, 3, 5);
	mtftl_unit_init(header, &info);
	mtftl_unit_seal(header, image->seed, 3, 5, 0, 0);
	assert_int_not_equal(check_errors(), 0);
}

/* What header-restore looks at before it writes. */
static void a_reset_of_the_log_keeps_what_is_read_only(void **state)
{
	struct flash_zone *log = image->flash.zones;

	(void)state;
	image->sb.generation = 7;
	image_write_super(image, 0);
	memcpy(image_block(image, 1, 0), image_block(image, 0, 0), MTFTL_BLOCK_SIZE);
	log[1] = log[0];
	assert_int_equal(super_find_kept(&image->flash, &super), -ENODATA);
	log[1].cond = FLASH_READONLY;
	assert_int_equal(super_find_kept(&image->flash, &super), 0);
	assert_int_equal(super.info.generation, 8);
	assert_int_equal(super.zone, 1);
	/* A mount does not pass over this one. */
	use_unknown_feature(1, 0);
	assert_int_equal(super_find_kept(&image->flash, &super), -EPROTO);
	log[1] = (struct flash_zone) { .cond = FLASH_OFFLINE };
	assert_int_equal(super_find_kept(&image->flash, &super), -ENXIO);
	/* All of it is as it was. */
	assert_int_equal(log[0].wp, 1);
	assert_int_equal(super_find(&image->flash, &super), 0);
	assert_int_equal(super.zone, 0);
}

/* Power goes off behind so many commands that change something. */
static struct flash whole;
static u32 power;

static int write_until_off(struct flash *flash, u32 zone, u32 offset, u32 nr, const void *buffer)
{
	return !power || !--power ? -EIO : whole.write(flash, zone, offset, nr, buffer);
}

static int reset_until_off(struct flash *flash, u32 zone)
{
	return !power || !--power ? -EIO : whole.reset(flash, zone);
}

enum log_case { OLDER, FULL, UNKNOWN, UNREADABLE, KEPT, NOTHING, NR_LOG_CASES };

/* The newest record is in zone 0, an older one in zone 1: and then some of it is something else. */
static void write_log(enum log_case what)
{
	struct flash_zone *log = image->flash.zones;

	image_write_super(image, 0);
	memcpy(image_block(image, 1, 0), image_block(image, 0, 0), MTFTL_BLOCK_SIZE);
	log[1] = log[0];
	image_write_super(image, 0);
	while (what == FULL && log[0].wp < IMAGE_CAPACITY)
		image_write_super(image, 0);
	if (what == UNKNOWN)
		use_unknown_feature(0, 1);
	if (what == UNREADABLE || what == NOTHING)
		image_block(image, 1, 0)[9] ^= 1;
	if (what == KEPT)
		log[1].cond = FLASH_READONLY;
	if (what == NOTHING)
		memset(image_block(image, 0, 0), 0, 2 * MTFTL_BLOCK_SIZE);
}

/* Behind a cut. */
static void assert_no_older_record(enum log_case what, u64 newest)
{
	int err = super_find(&image->flash, &super);

	switch (what) {
	case UNKNOWN:
		assert_true(err == -EPROTO || (!err && super.info.op_permille == 123));
		return;
	case UNREADABLE:
	case NOTHING:
		assert_true(err == -ENODATA || super.may_be_older || super.info.op_permille == 123);
		return;
	default:
		assert_int_equal(err, 0);
		/* The kept one is older; there is no other place for a new one. */
		assert_true(what == KEPT || super.info.generation >= newest);
	}
}

static void no_older_record_comes_back(void **state)
{
	static u8 block[MTFTL_BLOCK_SIZE];
	struct mtftl_sb_info info;
	u32 commands, zone;
	enum log_case what;
	u64 newest;
	int err;

	for (what = 0; what < NR_LOG_CASES; what++) {
		commands = 0;
		do {
			teardown(state);
			setup(state);
			write_log(what);
			newest = image->sb.generation;
			info = image->sb;
			info.op_permille = 123;
			info.generation = what == UNKNOWN || what == NOTHING ? 1 : newest + 1;
			mtftl_sb_compose(block, &info);
			err = super_find(&image->flash, &super);
			whole = image->flash;
			image->flash.write = write_until_off;
			image->flash.reset = reset_until_off;
			power = ++commands;
			err = super_replace(&image->flash, err, &super, block);
			if (err)
				assert_no_older_record(what, newest);
		} while (err);
		assert_int_equal(commands, what == KEPT ? 3 : 4);
		assert_int_equal(super_find(&image->flash, &super), 0);
		assert_int_equal(super.info.op_permille, 123);
		assert_int_equal(super.offset, 0);
		assert_false(super.may_be_older);
		zone = super.zone;
		assert_true(what == KEPT || image->flash.zones[!zone].cond == FLASH_EMPTY);
	}
}

/* A backup of another drive's superblock has another key. */
static void units_tell_whose_superblock_it_is(void **state)
{
	u32 written;

	(void)state;
	image_write_super(image, 0);
	assert_int_equal(scan_finds_unit(&image->flash, image->seed, &written), 0);
	assert_int_equal(written, 0);
	put(3, 1, 1, 1);
	put(4, 2, 1, 1);
	assert_int_equal(scan_finds_unit(&image->flash, image->seed, &written), 1);
	assert_int_equal(scan_finds_unit(&image->flash, image->seed + 1, &written), 0);
	assert_int_equal(written, 2);
	/* One is enough. */
	tear(3, 0);
	assert_int_equal(scan_finds_unit(&image->flash, image->seed, &written), 1);
	/* It may be in the zone that cannot be read just now. */
	image->unreadable = page(4, 0);
	assert_int_equal(scan_finds_unit(&image->flash, image->seed, &written), 0);
	image->unreadable_error = -EIO;
	assert_int_equal(scan_finds_unit(&image->flash, image->seed, &written), -EIO);
	image->unreadable = IMAGE_ALL_READABLE;
	/* A format does not reset it. */
	image->flash.zones[4].cond = FLASH_READONLY;
	assert_int_equal(scan_finds_unit(&image->flash, image->seed, &written), 0);
	assert_int_equal(written, 1);
}

/* A program of another version has the key, too; and so has a unit that went to the wrong zone. */
static void units_that_no_mount_takes_tell_it_too(void **state)
{
	struct mtftl_unit *unit;
	u32 written;

	(void)state;
	image_write_super(image, 0);
	put(3, 1, 1, 1);
	unit = (struct mtftl_unit *)image_block(image, 3, 0);
	mtftl_unit_seal(unit, image->seed, 4, 0, 0, 0);
	assert_int_equal(scan_finds_unit(&image->flash, image->seed, &written), 1);
	unit->version++;
	mtftl_unit_seal(unit, image->seed, 3, 0, 0, 0);
	assert_int_equal(scan_finds_unit(&image->flash, image->seed, &written), 1);
	assert_int_equal(scan_finds_unit(&image->flash, image->seed + 1, &written), 0);
}

static void unit_of_a_newer_version_stops_recovery(void **state)
{
	struct mtftl_unit *unit;

	(void)state;
	image_write_super(image, 0);
	put(3, 1, 1, 1);
	unit = (struct mtftl_unit *)image_block(image, 3, 0);
	unit->version++;
	mtftl_unit_seal(unit, image->seed, 3, 0, 0, 0);
	assert_int_equal(recover(), -EPROTO);
}

/* No unit lies across the write pointer that a checkpoint records. */
static void so_does_one_right_behind_the_checkpoint(void **state)
{
	u32 map[IMAGE_LOGICAL], at;
	struct mtftl_unit *unit;

	(void)state;
	image_write_super(image, 0);
	empty_map(map);
	map[1] = put(4, 1, 1, 1);
	image_write_checkpoint(image, 2, 1, map, 0);
	at = image->flash.zones[4].wp;
	put(4, image->seq + 1, 1, 2);
	unit = (struct mtftl_unit *)image_block(image, 4, at);
	unit->version++;
	mtftl_unit_seal(unit, image->seed, 4, at, 0, 0);
	assert_int_equal(recover(), -EPROTO);
}

static void a_newer_version_in_users_data_stops_nothing(void **state)
{
	const u64 lbas[] = { 1, 2 };
	const u16 contents[] = { 1, 2 };
	struct mtftl_unit *unit;
	u32 at;

	(void)state;
	image_write_super(image, 0);
	at = image_write_unit(image, 3, MTFTL_UNIT_DATA, 1, 2, lbas, contents);
	unit = (struct mtftl_unit *)image_block(image, 3, at + 1);
	memcpy(unit, image_block(image, 3, at), MTFTL_BLOCK_SIZE);
	unit->version++;
	mtftl_unit_seal(unit, image->seed, 3, at + 1, 0, 0);
	memset(image_block(image, 3, at), 0, MTFTL_BLOCK_SIZE);
	assert_int_equal(recover(), 0);
}

/* A mount that reads it refuses it: in the zone's first header, or in one behind a torn unit. */
static void erase_counts_that_no_mount_takes_are_errors(void **state)
{
	u32 worn, torn;

	for (worn = 0; worn < 2; worn++)
		for (torn = 0; torn < 2; torn++) {
			teardown(state);
			setup(state);
			image_write_super(image, 0);
			image->erase_count[3] = MTFTL_MAX_ERASES + worn;
			put(3, 1, 1, 1);
			put(3, 2, 2, 2);
			if (torn)
				tear(3, 0);
			assert_int_equal(check_errors(), worn);
		}
}

static void retired_zone_is_not_read(void **state)
{
	struct mtftl_zone_record *record;
	struct mtftl_unit *header;
	struct mtftl_entry *entry;
	u32 map[IMAGE_LOGICAL];

	(void)state;
	image_write_super(image, 0);
	empty_map(map);
	image_write_checkpoint(image, 2, 10, map, 0);
	header = (struct mtftl_unit *)image_block(image, 2, 0);
	record = (struct mtftl_zone_record *)image_block(image, 2, 1);
	entry = (struct mtftl_entry *)(header + 1);
	record[3].flags = cpu_to_le16(MTFTL_ZONE_RETIRED);
	entry[0].crc = cpu_to_le32(mtftl_payload_crc(image->seed, record));
	mtftl_unit_seal(header, image->seed, 2, 0, 0, 0);
	put(3, 20, 1, 1);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[1], MTFTL_MAP_UNMAPPED);
}

static void blocks_past_the_end_are_errors(void **state)
{
	(void)state;
	image_write_super(image, 0);
	put(3, 1, IMAGE_LOGICAL - 1, 1);
	assert_int_equal(check_errors(), 0);
	put(3, 2, IMAGE_LOGICAL, 1);
	image_write_range(image, 3, 4, IMAGE_LOGICAL - 1, 2, 3, MTFTL_RANGE_TRIM);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[IMAGE_LOGICAL - 1], page(3, 1));
	assert_int_not_equal(check_errors(), 0);
}

static void check_finds_wrong_maps(void **state)
{
	const u32 wrong[] = {
		flash_page(&image->flash, 3, 2),	/* a header */
		flash_page(&image->flash, 3, 3),	/* another block's */
		flash_page(&image->flash, 5, 1),	/* older */
		flash_page(&image->flash, 4, 1),	/* not written */
		flash_page(&image->flash, 1, 1),	/* a superblock zone */
		flash_page(&image->flash, IMAGE_ZONES, 1),
		MTFTL_MAP_MAX_PAGE + 1,
	};
	u32 map[IMAGE_LOGICAL], i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		image_free(image);
		image = image_new();
		image_write_super(image, 0);
		put(5, 1, 1, 1);
		empty_map(map);
		map[1] = put(3, 2, 1, 1);
		map[2] = put(3, 3, 2, 2);
		image_write_checkpoint(image, 2, 10, map, MTFTL_SB_CLEAN);
		assert_int_equal(check_errors(), 0);
		image_reset_zone(image, 2);
		image->erase_count[2] = 0;
		map[1] = wrong[i];
		image->seq = 20;
		image_write_checkpoint(image, 2, 20, map, MTFTL_SB_CLEAN);
		/* What is no block of any zone damages the checkpoint: that is told, too. */
		assert_int_equal(check_errors(), 1 + (i > 4));
	}
}

static void check_finds_numbers_given_twice(void **state)
{
	(void)state;
	image_write_super(image, 0);
	put(3, 1, 1, 1);
	put(4, 1, 2, 1);
	assert_int_equal(check_errors(), 1);
	put(5, 2, 3, 3);
	put(5, 2, 4, 4);
	assert_int_equal(check_errors(), 2);
}

/* By a driver that got no answer, to a zone where the device chooses the place. */
static void check_takes_a_unit_that_was_sent_twice(void **state)
{
	(void)state;
	image_write_super(image, 0);
	put(3, 1, 1, 1);
	put(3, 1, 1, 1);
	assert_int_equal(check_errors(), 0);
	put(3, 1, 1, 2);
	assert_int_equal(check_errors(), 1);
}

static void check_finds_a_block_twice_in_a_unit(void **state)
{
	const u64 lbas[] = { 1, 2, 1 };
	const u16 contents[] = { 1, 2, 3 };

	(void)state;
	image_write_super(image, 0);
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 1, 3, lbas, contents);
	assert_int_equal(check_errors(), 1);
}

static void without_headers_each_block_counts_by_itself(void **state)
{
	const u64 lbas[] = { 1, 2, 3 };
	const u16 contents[] = { 1, 2, 3 };
	u32 old;

	(void)state;
	image->sb.oob = true;
	image_write_super(image, 0);
	old = put(3, 1, 2, 9);
	assert_int_equal(old, page(3, 0));
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 2, 3, lbas, contents);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.units, 2);
	assert_int_equal(replay.map[2], page(3, 2));
	assert_int_equal(check_errors(), 0);
	assert_int_equal(check_notes(), 0);

	/* One is torn, by its data or its metadata: the others are there. */
	tear(3, 2);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[1], page(3, 1));
	assert_int_equal(replay.map[2], old);
	assert_int_equal(replay.map[3], page(3, 3));
	assert_int_equal(check_errors(), 0);
	tear(3, 2);
	image->oob[page(3, 2)].tag ^= cpu_to_le64(1ull << 40);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[2], old);
	assert_int_equal(replay.map[3], page(3, 3));
	assert_int_equal(check_errors(), 0);
	image->oob[page(3, 2)].tag ^= cpu_to_le64(1ull << 40);
	image->unreadable = page(3, 2);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[2], old);
	assert_int_equal(replay.map[3], page(3, 3));
	assert_int_equal(check_errors(), 0);
}

static void without_headers_a_copied_header_is_data(void **state)
{
	u64 lba = 7;
	u16 content = 0;
	u32 at;

	(void)state;
	image->sb.oob = true;
	image_write_super(image, 0);
	at = image_write_range(image, 3, 9, 1, 5, 8, MTFTL_RANGE_LOST);
	put(4, 10, 1, 1);
	/* A user stores what a range of a later life of this device could look like. */
	image_write_unit(image, 4, MTFTL_UNIT_DATA, 11, 1, &lba, &content);
	memcpy(image_block(image, 4, 1), image_block(image, 3, at), MTFTL_BLOCK_SIZE);
	((struct mtftl_unit *)image_block(image, 4, 1))->zone = cpu_to_le32(4);
	mtftl_unit_seal(image_block(image, 4, 1), image->seed, 4, 1, 0, 0);
	mtftl_oob_compose(&image->oob[page(4, 1)], MTFTL_UNIT_DATA, 11, 7,
			  mtftl_payload_crc(image->seed, image_block(image, 4, 1)), image->seed, 4, 0);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.map[7], page(4, 1));
	assert_int_equal(replay.map[1], page(4, 0));
	assert_int_equal(check_errors(), 0);
}

static void without_headers_a_footer_must_say_the_same(void **state)
{
	(void)state;
	image->sb.oob = true;
	image_write_super(image, 0);
	fill_with_footer(3);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.zones_scanned, 1);
	assert_int_equal(replay.map[30], page(3, 4));
	assert_int_equal(replay.map[31], MTFTL_MAP_UNMAPPED);
	assert_int_equal(replay.map[32], page(3, 2));
	assert_int_equal(check_errors(), 0);
	assert_int_equal(check_notes(), 0);

	/* Another block, intact, where it lists one. */
	mtftl_oob_compose(&image->oob[page(3, 4)], MTFTL_UNIT_GC, 7, 99,
			  mtftl_payload_crc(image->seed, image_block(image, 3, 4)), image->seed, 3, 0);
	assert_int_equal(check_errors(), 1);
}

static void without_headers_as_many_as_a_window_holds(void **state)
{
	u64 lbas[100];
	u16 contents[100];
	u32 i;

	(void)state;
	image->sb.oob = true;
	image_write_super(image, 0);
	for (i = 0; i < 100; i++) {
		lbas[i] = i;
		contents[i] = i;
	}
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 1, 10, lbas, contents);
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 2, 100, lbas, contents);
	assert_int_equal(recover(), 0);
	assert_int_equal(replay.units, 2);
	assert_int_equal(replay.map[99], page(3, 109));
	assert_int_equal(check_errors(), 0);
	assert_int_equal(check_notes(), 0);
}

static void metadata_that_cannot_be_read_is_refused(void **state)
{
	(void)state;
	image->sb.oob = true;
	image_write_super(image, 0);
	image->flash.read_oob = NULL;
	assert_int_equal(recover(), -EOPNOTSUPP);
}

/* Where a user says that EIO is loss, an error of the way to the drive must be another one. */
static void of_nvme_errors_only_some_are_of_the_medium(void **state)
{
	static const struct {
		int status, err;
	} rows[] = {
		{ 0x281, -ENODATA },	/* unrecovered read error */
		{ 0x4281, -ENODATA },	/* do not retry */
		{ 0x282, -ENODATA },	/* guard check */
		{ 0x370, -ENOLINK },	/* path error */
		{ 0x371, -ENOLINK },	/* aborted by the host */
		{ 0x007, -EAGAIN },
		{ 0x082, -EAGAIN },	/* not ready */
		{ 0x006, -EIO },	/* internal error */
		{ 0x4006, -EIO },
		{ 0x107, -EIO },	/* of a command's own */
	};
	u32 i;

	(void)state;
	image->flash.eio_is_loss = true;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(nvme_read_error(rows[i].status), rows[i].err);
		assert_int_equal(flash_medium_says(&image->flash, rows[i].err),
				 rows[i].err == -ENODATA || rows[i].err == -EIO);
	}
}

/*
 * Random histories, with headers and without. The writer keeps every rule; the power goes at a random moment,
 * at which each unit that no flush covered is whole, torn or has a torn header. The
 * model knows for each block the versions that may survive: the newest, and if that
 * was not durable, older ones back to the newest durable one.
 */
#define RANDOM_HISTORIES	400
#define MAX_VERSIONS		512

struct version {
	u64 seq;
	u32 value;		/* page or MTFTL_MAP_* */
	bool durable;
	bool survives;
};

static struct version versions[IMAGE_LOGICAL][MAX_VERSIONS];
static u32 nr_versions[IMAGE_LOGICAL];

static void add_version(u64 lba, u64 seq, u32 value)
{
	assert_true(nr_versions[lba] < MAX_VERSIONS);
	versions[lba][nr_versions[lba]++] = (struct version) {
		.seq = seq, .value = value, .survives = true,
	};
}

static u32 newest_version(u64 lba)
{
	return nr_versions[lba] ? versions[lba][nr_versions[lba] - 1].value : MTFTL_MAP_UNMAPPED;
}

static u32 expected(u64 lba)
{
	u32 i;

	for (i = nr_versions[lba]; i-- > 0;)
		if (versions[lba][i].survives)
			return versions[lba][i].value;
	return MTFTL_MAP_UNMAPPED;
}

static void write_randomly(u64 seq)
{
	u64 lbas[8];
	u16 contents[8], nr = 1 + rand() % 8, i;
	u32 zone = 3 + rand() % (IMAGE_ZONES - 3), offset;
	u64 start = rand() % IMAGE_LOGICAL;

	if (image->flash.zones[zone].wp + 1 + nr + 3 > IMAGE_CAPACITY)
		return;
	for (i = 0; i < nr; i++) {
		lbas[i] = (start + i * 3) % IMAGE_LOGICAL;
		contents[i] = rand();
	}
	offset = image_write_unit(image, zone, rand() % 2 ? MTFTL_UNIT_DATA : MTFTL_UNIT_GC, seq,
				  nr, lbas, contents);
	for (i = 0; i < nr; i++)
		add_version(lbas[i], seq, page(zone, offset + head() + i));
}

static void trim_randomly(u64 seq)
{
	u32 zone = 3 + rand() % (IMAGE_ZONES - 3), nr = 1 + rand() % 20, i;
	u64 lba = rand() % (IMAGE_LOGICAL - nr);
	bool lost = rand() % 4 == 0;

	if (image->flash.zones[zone].wp + 4 > IMAGE_CAPACITY)
		return;
	image_write_range(image, zone, seq, lba, nr, seq - 1,
			  lost ? MTFTL_RANGE_LOST : MTFTL_RANGE_TRIM);
	for (i = 0; i < nr; i++)
		add_version(lba + i, seq - 1, lost ? MTFTL_MAP_LOST : MTFTL_MAP_UNMAPPED);
}

static void flush(void)
{
	u32 lba, i;

	image->durable_seq = image->seq;
	for (lba = 0; lba < IMAGE_LOGICAL; lba++)
		for (i = 0; i < nr_versions[lba]; i++)
			versions[lba][i].durable = true;
}

static void checkpoint(void)
{
	u32 map[IMAGE_LOGICAL], lba;

	flush();
	for (lba = 0; lba < IMAGE_LOGICAL; lba++)
		map[lba] = newest_version(lba);
	image_reset_zone(image, 2);
	image_write_checkpoint(image, 2, image->seq, map, 0);
	image->seq += 5;
}

/* Tear payload blocks of what no flush has covered. */
static void cut_power(void)
{
	u32 lba, i;

	for (lba = 0; lba < IMAGE_LOGICAL; lba++) {
		for (i = 0; i < nr_versions[lba]; i++) {
			struct version *version = &versions[lba][i];
			u32 value = version->value;

			if (version->durable || value >= MTFTL_MAP_LOST || rand() % 3)
				continue;
			version->survives = false;
			tear(value / IMAGE_ZONE_BLOCKS, value % IMAGE_ZONE_BLOCKS);
		}
	}
}

static void random_histories(void **state)
{
	u32 history, step, steps, lba;

	(void)state;
	for (history = 0; history < RANDOM_HISTORIES; history++) {
		srand(history);
		image_free(image);
		image = image_new();
		image->sb.oob = history % 2;
		memset(nr_versions, 0, sizeof(nr_versions));
		image_write_super(image, 0);
		steps = 1 + rand() % 150;
		for (step = 0; step < steps; step++) {
			u32 dice = rand() % 100;
			/* Leave gaps, as lanes do whose units are not out yet. */
			u64 seq = image->seq + 2 + rand() % 3;

			if (dice < 75)
				write_randomly(seq);
			else if (dice < 87)
				trim_randomly(seq);
			else if (dice < 96)
				flush();
			else
				checkpoint();
		}
		/* Close a zone or two the proper way. */
		for (step = 3; step < IMAGE_ZONES; step += 4)
			if (image->flash.zones[step].wp > 0 &&
			    image->flash.zones[step].wp + 3 <= IMAGE_CAPACITY)
				image_write_footer(image, step, 0);
		cut_power();
		assert_int_equal(recover(), 0);
		for (lba = 0; lba < IMAGE_LOGICAL; lba++)
			if (replay.map[lba] != expected(lba))
				fail_msg("history %u: block %u is %x, expected %x", history, lba,
					 replay.map[lba], expected(lba));
		if (check_errors())
			fail_msg("history %u: check finds errors", history);
	}
}

static int (*read_image)(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer);
static u32 reads_of_zone_3;

static int count_reads(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer)
{
	reads_of_zone_3 += zone == 3;
	return read_image(flash, zone, offset, nr, buffer);
}

/* What is around it is read all the same, and not block by block: a drive takes its time to fail. */
static void few_reads_find_a_bad_block(void **state)
{
	u32 i;

	(void)state;
	image_write_super(image, 0);
	for (i = 0; i < 60; i++)
		put(3, i + 1, i, i);
	image->durable_seq = 60;
	put(4, 61, 100, 1);
	image->unreadable = page(3, 81);
	read_image = image->flash.read;
	image->flash.read = count_reads;
	reads_of_zone_3 = 0;
	assert_int_equal(check_errors(), 1);
	assert_in_range(reads_of_zone_3, 2, 60);
}

/* 16 TiB less 8 GiB, all of it in full units. */
static void check_takes_two_numbers_a_block(void **state)
{
	static struct flash_zone zones[8188];
	struct flash flash = {
		.nr_zones = 8188, .zone_blocks = 1 << 19, .zone_capacity = 1 << 19, .zones = zones,
	};
	struct mtftl_sb_info sb = { .logical_blocks = 4080ull << 20 };
	u32 i;

	(void)state;
	for (i = 0; i < flash.nr_zones; i++)
		zones[i].wp = flash.zone_capacity;
	assert_in_range(check_memory(&flash, &sb) >> 20, 33 << 10, 34 << 10);
}

#define test(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(formatted_device_is_unmapped),
		test(no_superblock),
		test(a_superblock_may_have_been_in_an_offline_zone),
		test(newest_whole_superblock_counts),
		test(newer_superblock_is_not_skipped_for_an_older_one),
		test(superblock_of_another_geometry),
		test(highest_number_wins_wherever_it_is),
		test(trims_take_their_own_number),
		test(torn_payload_falls_back_unless_it_was_durable),
		test(only_the_torn_block_of_a_unit_is_dropped),
		test(torn_header_does_not_hide_what_follows),
		test(copied_header_in_a_torn_unit_is_no_unit),
		test(unit_written_twice_is_taken_where_it_verifies),
		test(checkpoint_and_what_changed_since),
		test(scan_may_start_inside_a_unit),
		test(of_two_equal_generations_the_first_counts),
		test(clean_checkpoint_is_all_there_is),
		test(range_before_the_checkpoint_in_a_unit_behind_it),
		test(damaged_checkpoint_is_refused),
		test(footer_stands_for_the_headers),
		test(padding_behind_a_footer_says_what_is_durable),
		test(units_in_a_footer_are_verified_if_not_durable),
		test(footer_of_another_life_is_not_used),
		test(footer_that_contradicts_itself_is_not_used),
		test(footer_that_omits_a_unit_is_found_by_check),
		test(footer_that_lies_is_found_by_check),
		test(a_reset_of_the_log_keeps_what_is_read_only),
		test(no_older_record_comes_back),
		test(units_tell_whose_superblock_it_is),
		test(units_that_no_mount_takes_tell_it_too),
		test(unit_of_a_newer_version_stops_recovery),
		test(so_does_one_right_behind_the_checkpoint),
		test(a_newer_version_in_users_data_stops_nothing),
		test(erase_counts_that_no_mount_takes_are_errors),
		test(retired_zone_is_not_read),
		test(blocks_past_the_end_are_errors),
		test(check_finds_wrong_maps),
		test(check_finds_numbers_given_twice),
		test(check_takes_a_unit_that_was_sent_twice),
		test(check_finds_a_block_twice_in_a_unit),
		test(without_headers_each_block_counts_by_itself),
		test(without_headers_a_copied_header_is_data),
		test(without_headers_a_footer_must_say_the_same),
		test(without_headers_as_many_as_a_window_holds),
		test(metadata_that_cannot_be_read_is_refused),
		test(of_nvme_errors_only_some_are_of_the_medium),
		test(few_reads_find_a_bad_block),
		test(check_takes_two_numbers_a_block),
		test(random_histories),
	};

	return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
