// SPDX-License-Identifier: GPL-2.0
/*
 * A checkpoint that is damaged, on images in memory: each part of it once, and what is done
 * with what it alone knew.
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
#include "rebuild.h"
#include "replay.h"
#include "super.h"

#define CKPT_ZONE	2u
#define GROWN_ZONES	24u
#define GROWN_BYTES	((size_t)GROWN_ZONES * IMAGE_ZONE_BLOCKS * MTFTL_BLOCK_SIZE)
#define IMAGE_BYTES	((size_t)IMAGE_ZONES * IMAGE_ZONE_BLOCKS * MTFTL_BLOCK_SIZE)

enum part { HEADER, ZONE_RECORDS, MAP, NR_PARTS };	/* by block of the checkpoint's zone */

static struct image *image;
static u32 map[IMAGE_LOGICAL];		/* what recovery must find */
static struct rebuild_totals totals;

static u32 put(u32 zone, u64 seq, u64 lba, u16 content)
{
	return flash_page(&image->flash, zone, 1 + image_write_unit(image, zone, MTFTL_UNIT_DATA,
								    seq, 1, &lba, &content));
}

static void tear(u32 zone, u32 offset)
{
	image_block(image, zone, offset)[60] ^= 0x40;
}

/* Overwritten, discarded and lost blocks below the checkpoint, one more above it. */
static int fill(void)
{
	memset(map, 0xff, sizeof(map));
	image_write_super(image, MTFTL_SB_CLEAN);
	put(6, 1, 10, 0x1001);
	map[11] = put(6, 2, 11, 0x1101);
	map[10] = put(7, 3, 10, 0x1003);
	put(7, 4, 12, 0x1204);
	put(7, 5, 13, 0x1305);
	image_write_range(image, 8, 8, 12, 1, 7, MTFTL_RANGE_TRIM);
	image_write_range(image, 8, 10, 13, 1, 9, MTFTL_RANGE_LOST);
	map[13] = MTFTL_MAP_LOST;
	image_write_checkpoint(image, CKPT_ZONE, 10, map, 0);
	map[11] = put(7, image->seq + 1, 11, 0x1120);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	image = image_new();
	return fill();
}

/* The same, and zones were appended since. */
static int setup_grown(void **state)
{
	int err;

	(void)state;
	image = image_new_of(GROWN_ZONES, IMAGE_ZONE_BLOCKS, IMAGE_CAPACITY, IMAGE_LOGICAL);
	image->sb.nr_zones = IMAGE_ZONES;
	image->flash.nr_zones = IMAGE_ZONES;
	err = fill();
	image->flash.nr_zones = GROWN_ZONES;
	return err;
}

static int teardown(void **state)
{
	(void)state;
	image_free(image);
	return 0;
}

static int rebuild(bool write)
{
	struct report report = { .quiet = true };

	return rebuild_flash(&image->flash, &report, write, &totals);
}

/* Recovery succeeds with this map, and check has no objection. */
static void assert_recovers(void)
{
	struct report report = { .quiet = true };
	struct replay replay = { .flash = &image->flash, .report = &report };
	struct check_totals checked;
	struct super super;

	assert_int_equal(super_find(&image->flash, &super), 0);
	replay_from(&replay, &super);
	assert_int_equal(replay_run(&replay), 0);
	assert_memory_equal(replay.map, map, sizeof(map));
	assert_int_equal(check_flash(&image->flash, &report, &checked), 0);
	assert_int_equal(report.errors, 0);
	replay_free(&replay);
}

static void a_whole_checkpoint_is_left_alone(void **state)
{
	u64 generation = image->sb.generation;
	struct super super;

	(void)state;
	assert_int_equal(rebuild(true), 0);
	assert_int_equal(totals.missing, 0);
	assert_int_equal(super_find(&image->flash, &super), 0);
	assert_int_equal(super.info.generation, generation);
	assert_recovers();
}

static void each_part_is_rebuilt(void **state)
{
	void *before = malloc(IMAGE_BYTES);
	int part;

	for (part = 0; part < NR_PARTS; part++) {
		tear(CKPT_ZONE, part);
		memcpy(before, image->data, IMAGE_BYTES);
		assert_int_equal(rebuild(false), 0);
		assert_memory_equal(before, image->data, IMAGE_BYTES);
		assert_int_equal(totals.missing, part == HEADER ? 2 : 1);
		assert_int_equal(totals.unknown, part == ZONE_RECORDS ? 0 : IMAGE_LOGICAL);
		assert_int_equal(totals.mapped, 2);
		assert_int_equal(totals.lost, 1);
		assert_int_equal(rebuild(true), 0);
		assert_recovers();
		/* What is written from then on is found by an ordinary recovery. */
		map[40] = put(9, image->seq + 100, 40, 0x4000);
		assert_recovers();
		teardown(state);
		setup(state);
	}
	free(before);
}

/* It may hold what is missing, and only a newer program can tell. */
static void a_newer_checkpoint_is_not_replaced(void **state)
{
	struct mtftl_unit *unit = (struct mtftl_unit *)image_block(image, CKPT_ZONE, HEADER);
	size_t used = sizeof(*unit) + le16_to_cpu(unit->nr_entries) * sizeof(struct mtftl_entry);
	u64 generation = image->sb.generation;
	struct super super;

	(void)state;
	unit->version = MTFTL_VERSION + 1;
	unit->crc = 0;
	unit->crc = cpu_to_le32(mtftl_crc32c(image->seed, unit, used));
	assert_int_equal(rebuild(true), -EPROTO);
	assert_int_equal(super_find(&image->flash, &super), 0);
	assert_int_equal(super.info.generation, generation);
}

static void a_block_that_cannot_be_read_is_a_damaged_one(void **state)
{
	(void)state;
	image->unreadable = flash_page(&image->flash, CKPT_ZONE, MAP);
	assert_int_equal(rebuild(true), 0);
	assert_recovers();
}

/* Some drives, or what is below, have no other error. */
static void the_user_says_whether_eio_is_loss(void **state)
{
	struct report report = { .quiet = true };
	struct check_totals checked;
	struct super super;

	(void)state;
	image->unreadable = flash_page(&image->flash, CKPT_ZONE, MAP);
	image->unreadable_error = -EIO;
	assert_int_equal(rebuild(true), -EIO);
	assert_true(image->flash.eio_ends_it);
	image->flash.eio_ends_it = false;
	/* The way to the drive is broken, whatever the user says. */
	image->unreadable_error = -ETIMEDOUT;
	assert_int_equal(rebuild(true), -EIO);
	image->flash.eio_is_loss = true;
	assert_int_equal(rebuild(true), -EIO);
	assert_false(image->flash.eio_ends_it);
	image->unreadable_error = -EIO;
	assert_int_equal(check_flash(&image->flash, &report, &checked), 0);
	assert_int_equal(report.errors, 1);
	assert_int_equal(rebuild(true), 0);
	assert_recovers();
	/* The newest superblock. */
	image->unreadable = flash_page(&image->flash, 0, image->flash.zones[0].wp - 1);
	assert_int_equal(super_find(&image->flash, &super), 0);
	assert_true(super.may_be_older);
	assert_false(image->flash.eio_ends_it);
	image->flash.eio_is_loss = false;
	assert_int_equal(super_find(&image->flash, &super), -EIO);
	assert_true(image->flash.eio_ends_it);
}

/* A mount does not take it for loss, whatever the user says. */
static void a_zone_that_no_mount_reads_is_told(void **state)
{
	static const struct {
		int error;
		u32 offset, notes;
	} rows[] = { { -ENODATA, 0, 0 }, { -EIO, 0, 1 }, { -EIO, 2, 0 } };
	u64 before = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct report report = { .quiet = true };

		teardown(state);
		setup(state);
		tear(CKPT_ZONE, MAP);
		image->flash.eio_is_loss = true;
		image->unreadable = flash_page(&image->flash, 7, rows[i].offset);
		image->unreadable_error = rows[i].error;
		assert_int_equal(rebuild_flash(&image->flash, &report, true, &totals), 0);
		if (!i)
			before = report.notes;
		assert_int_equal(report.notes, before + rows[i].notes);
	}
}

/* What it would have told is not known; nor is it wrong. */
static void a_check_says_which_read_may_succeed_later(void **state)
{
	static const int errors[] = { -EIO, -ETIMEDOUT };
	const u32 pages[] = {
		map[11], map[11] - 1, flash_page(&image->flash, CKPT_ZONE, MAP),
		flash_page(&image->flash, 0, 0),
	};
	struct check_totals checked;
	u32 i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		for (k = 0; k < ARRAY_SIZE(errors); k++) {
			struct report report = { .quiet = true };

			image->unreadable = pages[i];
			image->unreadable_error = errors[k];
			assert_int_equal(check_flash(&image->flash, &report, &checked), -EIO);
			assert_int_equal(report.errors, 1);
			image->flash.eio_is_loss = !k;
			report.errors = 0;
			assert_int_equal(check_flash(&image->flash, &report, &checked), k ? -EIO : 0);
			image->flash.eio_is_loss = false;
		}
	image->unreadable = IMAGE_ALL_READABLE;
	assert_recovers();
}

static void a_clean_stop_is_no_reason_not_to_look(void **state)
{
	(void)state;
	image_reset_zone(image, 3);
	image_write_checkpoint(image, 3, image->seq, map, MTFTL_SB_CLEAN);
	tear(3, MAP);
	assert_int_equal(rebuild(true), 0);
	assert_recovers();
}

/* Its checksum is right, but it names a zone that is none: a mount refuses it. */
static void a_map_entry_that_is_none_is_missing(void **state)
{
	(void)state;
	map[20] = MTFTL_MAP_MAX_PAGE;
	image_write_checkpoint(image, 3, image->seq, map, 0);
	map[20] = MTFTL_MAP_UNMAPPED;
	assert_int_equal(rebuild(true), 0);
	assert_int_equal(totals.missing, 1);
	assert_recovers();
}

/* A mount takes it for lost; the zone is one of users' by then. */
static void a_map_entry_into_the_old_checkpoint_is_lost(void **state)
{
	(void)state;
	map[20] = flash_page(&image->flash, 3, MAP);
	image_write_checkpoint(image, 3, image->seq, map, 0);
	map[20] = MTFTL_MAP_LOST;
	tear(3, ZONE_RECORDS);
	assert_int_equal(rebuild(true), 0);
	assert_int_equal(totals.lost, 2);
	assert_recovers();
}

/* Else they are drawn again, and a zone's first number does not tell its lives apart. */
static void numbers_of_a_cut_attempt_are_not_drawn_again(void **state)
{
	u64 number = image->seq + 500, index = 0;
	u16 content = 0;
	struct super super;

	(void)state;
	image_write_unit(image, CKPT_ZONE, MTFTL_UNIT_MAP, number, 1, &index, &content);
	tear(CKPT_ZONE, MAP);
	assert_int_equal(rebuild(true), 0);
	assert_int_equal(super_find(&image->flash, &super), 0);
	assert_in_range(super.info.ckpt_seq, number, number + 1);
	assert_recovers();
}

static void use_up_numbers(void)
{
	put(9, (1ull << MTFTL_SEQ_BITS) - 1, 40, 0x4000);
}

static void use_up_generations(void)
{
	image->sb.generation = (1ull << MTFTL_SEQ_BITS) - 2;
	image_write_super(image, 0);
}

static void use_up_erases(void)
{
	image->erase_count[9] = MTFTL_MAX_ERASES + 1;
	put(9, image->seq + 1, 40, 0x4000);
}

/* An image that was made up: nothing is written, not even into zones that are free. */
static void numbers_that_are_used_up_end_a_rebuild(void **state)
{
	static void (*const use_up[])(void) = { use_up_numbers, use_up_generations, use_up_erases };
	void *before = malloc(IMAGE_BYTES);
	u32 i;

	for (i = 0; i < 3; i++) {
		use_up[i]();
		tear(CKPT_ZONE, MAP);
		memcpy(before, image->data, IMAGE_BYTES);
		assert_int_equal(rebuild(true), -EOVERFLOW);
		assert_memory_equal(before, image->data, IMAGE_BYTES);
		teardown(state);
		setup(state);
	}
	free(before);
}

static void a_device_that_is_out_of_zones_stays_so(void **state)
{
	struct super super;

	(void)state;
	image_write_super(image, MTFTL_SB_READONLY);
	tear(CKPT_ZONE, MAP);
	assert_int_equal(rebuild(true), 0);
	assert_int_equal(super_find(&image->flash, &super), 0);
	assert_int_equal(super.info.flags, MTFTL_SB_READONLY);
}

static void damaged_data_does_not_become_older_data(void **state)
{
	(void)state;
	tear(7, 1);
	tear(CKPT_ZONE, MAP);
	assert_int_equal(rebuild(true), 0);
	assert_int_equal(totals.lost, 2);
	map[10] = MTFTL_MAP_LOST;
	assert_recovers();
}

/* The record may be an older one: then an earlier cut has torn units that are above its number, too. */
static void a_torn_unit_above_the_checkpoint_is_not_taken_for_data(void **state)
{
	(void)state;
	put(8, image->seq + 1, 30, 0x3000);
	put(8, image->seq + 1, 30, 0x3001);
	tear(8, image->flash.zones[8].wp - 1);
	map[30] = MTFTL_MAP_LOST;
	image->durable_seq = image->seq;
	map[31] = put(9, image->seq + 1, 31, 0x3100);
	tear(CKPT_ZONE, MAP);
	assert_int_equal(rebuild(true), 0);
	assert_int_equal(totals.lost, 2);
	assert_recovers();
}

static void what_the_checkpoint_alone_knew_comes_back(void **state)
{
	(void)state;
	image_reset_zone(image, 8);
	tear(CKPT_ZONE, MAP);
	assert_int_equal(rebuild(true), 0);
	assert_int_equal(totals.found, 4);
	map[12] = flash_page(&image->flash, 7, 3);
	map[13] = flash_page(&image->flash, 7, 5);
	assert_recovers();
}

static void a_map_that_verifies_is_believed(void **state)
{
	(void)state;
	image_reset_zone(image, 8);
	tear(CKPT_ZONE, ZONE_RECORDS);
	assert_int_equal(rebuild(true), 0);
	assert_recovers();
}

/* An old record that names an old checkpoint: its zones have had another life since. */
static void a_map_that_is_older_than_the_zones_gives_nobody_others_blocks(void **state)
{
	u16 content = 0x5000;
	u64 lba = 50;

	(void)state;
	image_reset_zone(image, 7);
	tear(CKPT_ZONE, ZONE_RECORDS);
	image_write_unit(image, 7, MTFTL_UNIT_DATA, image->seq + 1, 1, &lba, &content);
	map[10] = MTFTL_MAP_LOST;
	map[11] = flash_page(&image->flash, 6, 3);
	map[50] = flash_page(&image->flash, 7, 1);
	assert_int_equal(rebuild(true), 0);
	assert_recovers();
}

/* The block's first version went with its zone, and of the later ones none is whole. */
static void a_torn_unit_does_not_vouch_for_an_earlier_life(void **state)
{
	u32 entries[1536], page;

	teardown(state);
	image = image_new_of(24, IMAGE_ZONE_BLOCKS, IMAGE_CAPACITY, ARRAY_SIZE(entries));
	memset(entries, 0xff, sizeof(entries));
	image_write_super(image, 0);
	page = put(6, 1, 10, 0x1001);
	entries[10] = page;
	image_write_checkpoint(image, CKPT_ZONE, 10, entries, 0);
	put(7, 20, 10, 0x1020);
	tear(7, 0);
	image_reset_zone(image, 6);
	assert_int_equal(put(6, 21, 10, 0x1021), page);
	tear(6, 1);
	/* The half of the map that does not have the block. */
	tear(CKPT_ZONE, MAP + 1);
	assert_int_equal(rebuild(false), 0);
	assert_int_equal(totals.missing, 1);
	assert_int_equal(totals.mapped, 0);
	assert_int_equal(totals.lost, 1);
}

static void zones_that_the_stream_has_left_are_full(void **state)
{
	const u32 logical = 35 * 1024, capacity = 43;
	u32 *entries = malloc(logical * sizeof(*entries)), i;
	struct super super;

	memset(entries, 0xff, logical * sizeof(*entries));
	teardown(state);
	image = image_new_of(1024, 64, capacity, logical);
	image_write_checkpoint(image, CKPT_ZONE, 1, entries, 0);
	tear(CKPT_ZONE, MAP);
	assert_int_equal(rebuild(true), 0);
	assert_int_equal(super_find(&image->flash, &super), 0);
	assert_true(super.info.ckpt_nr_zones > 1);
	for (i = 0; i + 1 < super.info.ckpt_nr_zones; i++)
		assert_int_equal(image->flash.zones[super.info.ckpt_zones[i]].cond, FLASH_FULL);
	assert_int_equal(rebuild(false), 0);
	assert_int_equal(totals.missing, 0);
	free(entries);
}

static void the_other_zone_of_the_log_serves_when_one_is_full(void **state)
{
	struct super super;

	(void)state;
	while (image->flash.zones[0].wp < IMAGE_CAPACITY)
		image_write_super(image, 0);
	tear(CKPT_ZONE, MAP);
	assert_int_equal(rebuild(true), 0);
	assert_int_equal(super_find(&image->flash, &super), 0);
	assert_int_equal(super.zone, 1);
	assert_recovers();
}

static void without_a_zone_nothing_is_written(void **state)
{
	void *before = malloc(IMAGE_BYTES);
	u32 zone;

	(void)state;
	tear(CKPT_ZONE, MAP);
	for (zone = 3; zone < IMAGE_ZONES; zone++)
		if (zone != 6 && zone != 7)
			image->flash.zones[zone].cond = FLASH_READONLY;
	memcpy(before, image->data, IMAGE_BYTES);
	assert_int_equal(rebuild(true), -ENOSPC);
	assert_memory_equal(before, image->data, IMAGE_BYTES);
	free(before);
}

static int (*reset)(struct flash *flash, u32 zone);
static u32 refusals;

static int refuse_zone_3(struct flash *flash, u32 zone)
{
	refusals += zone == 3;
	return zone == 3 ? -EIO : reset(flash, zone);
}

/* The damaged part said that it has retired. */
static void a_zone_that_refuses_its_reset_is_passed_over(void **state)
{
	struct super super;

	(void)state;
	tear(CKPT_ZONE, ZONE_RECORDS);
	reset = image->flash.reset;
	image->flash.reset = refuse_zone_3;
	refusals = 0;
	assert_int_equal(rebuild(true), 0);
	assert_int_equal(refusals, 1);
	assert_int_equal(super_find(&image->flash, &super), 0);
	assert_true(super.info.ckpt_zones[0] > 3);
	assert_recovers();
}

/* Power goes off behind so many commands that change something. */
static struct flash whole;
static u32 power;

static bool is_off(void)
{
	return !power || !--power;
}

static int write_until_off(struct flash *flash, u32 zone, u32 offset, u32 nr, const void *buffer)
{
	return is_off() ? -EIO : whole.write(flash, zone, offset, nr, buffer);
}

static int reset_until_off(struct flash *flash, u32 zone)
{
	return is_off() ? -EIO : whole.reset(flash, zone);
}

static int finish_until_off(struct flash *flash, u32 zone)
{
	return is_off() ? -EIO : whole.finish(flash, zone);
}

static void power_off_behind(u32 commands)
{
	whole = image->flash;
	image->flash.write = write_until_off;
	image->flash.reset = reset_until_off;
	image->flash.finish = finish_until_off;
	power = commands;
}

static void power_on(void)
{
	image->flash.write = whole.write;
	image->flash.reset = whole.reset;
	image->flash.finish = whole.finish;
}

/* A unit of three blocks, and only the first one is there: behind the checkpoint, or in its map. */
static void tear_units(void)
{
	const u64 lbas[] = { 20, 21, 22 };
	const u16 contents[] = { 0x2000, 0x2100, 0x2200 };
	u32 zone;

	for (zone = 8; zone <= 9; zone++) {
		u32 at;

		image_reset_zone(image, zone);
		at = image_write_unit(image, zone, MTFTL_UNIT_DATA, image->seq + 1, 3, lbas, contents);
		map[20] = flash_page(&image->flash, zone, at + 1);
		if (zone == 8) {
			map[21] = map[20] + 1;
			map[22] = map[20] + 2;
			image_write_checkpoint(image, CKPT_ZONE + 1, image->seq, map, 0);
			map[21] = MTFTL_MAP_LOST;
			map[22] = MTFTL_MAP_LOST;
		}
		memset(image_block(image, zone, at + 2), 0, 2 * MTFTL_BLOCK_SIZE);
		image->flash.zones[zone].wp = at + 2;
	}
}

/* Whatever is done already, the same command ends it. */
static void a_rebuild_that_is_cut_off_can_be_repeated(void **state)
{
	u32 commands = 0;
	int err;

	do {
		teardown(state);
		setup(state);
		tear_units();
		tear(CKPT_ZONE + 1, ZONE_RECORDS);
		power_off_behind(++commands);
		err = rebuild(true);
		power_on();
		/* The error is EIO, and no read's. */
		assert_false(image->flash.eio_ends_it);
		if (err) {
			assert_int_equal(rebuild(false), 0);
			assert_true(totals.missing || totals.unfinished);
			assert_int_equal(rebuild(true), 0);
		}
		assert_int_equal(image->flash.zones[8].cond, FLASH_FULL);
		assert_int_equal(image->flash.zones[9].cond, FLASH_FULL);
		assert_recovers();
		assert_int_equal(rebuild(true), 0);
		assert_int_equal(totals.missing + totals.unfinished, 0);
	} while (err);
	/* Two zones, a reset, the stream and the record. */
	assert_true(commands > 5);
}

/* Else each of them takes an empty zone for ever. */
static void zones_of_those_that_were_cut_off_serve_again(void **state)
{
	static const u32 zones[] = { 3, 4, 5, 9, 10 };
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(zones); i++)
		map[50 + i] = put(zones[i], image->seq + 1, 50 + i, 0x5000 + i);
	tear(CKPT_ZONE, MAP);
	for (i = 0; i < 3; i++) {
		/* A reset and the stream, but no record. */
		power_off_behind(3);
		assert_int_equal(rebuild(true), -EIO);
		power_on();
		assert_int_equal(image->flash.zones[11].cond, FLASH_OPEN);
	}
	assert_int_equal(rebuild(true), 0);
	assert_recovers();
}

/* A mount leaves these to the next ones: a unit behind the checkpoint, and a checkpoint that was cut. */
static void what_a_mount_takes_care_of_is_no_rebuild(void **state)
{
	const u64 lbas[] = { 20, 21, 22 };
	const u16 contents[] = { 0x2000, 0x2100, 0x2200 };
	u32 turn;

	for (turn = 0; turn < 2; turn++) {
		u32 zone = turn ? CKPT_ZONE + 1 : 9;

		image_write_unit(image, zone, turn ? MTFTL_UNIT_MAP : MTFTL_UNIT_DATA,
				 turn ? 9 : image->seq + 1, 3, lbas, contents);
		image->flash.zones[zone].wp--;
		assert_int_equal(rebuild(true), 0);
		assert_int_equal(totals.missing + totals.unfinished, 0);
		assert_int_equal(image->flash.zones[zone].cond, FLASH_OPEN);
		teardown(state);
		setup(state);
	}
}

/* More zones */

static int grow(struct mtftl_sb_info *now)
{
	struct report report = { .quiet = true };
	struct mtftl_sb_info was;

	return rebuild_grow(&image->flash, &report, &was, now);
}

/* With the same map. */
static void assert_grows(void)
{
	struct report report = { .quiet = true };
	struct replay replay = { .flash = &image->flash, .report = &report };
	struct check_totals checked;
	struct mtftl_sb_info now;
	struct super super;
	u64 lba;

	assert_int_equal(grow(&now), 0);
	assert_int_equal(super_find(&image->flash, &super), 0);
	assert_int_equal(super.info.generation, now.generation);
	assert_int_equal(super.info.logical_blocks, now.logical_blocks);
	assert_int_equal(now.nr_zones, GROWN_ZONES);
	assert_true(now.logical_blocks > IMAGE_LOGICAL);
	replay_from(&replay, &super);
	assert_int_equal(replay_run(&replay), 0);
	assert_memory_equal(replay.map, map, sizeof(map));
	for (lba = IMAGE_LOGICAL; lba < now.logical_blocks; lba++)
		assert_int_equal(replay.map[lba], MTFTL_MAP_UNMAPPED);
	replay_free(&replay);
	assert_int_equal(check_flash(&image->flash, &report, &checked), 0);
	assert_int_equal(report.errors, 0);
	assert_int_equal(grow(&now), -EEXIST);
}

static void appended_zones_are_used(void **state)
{
	(void)state;
	assert_grows();
}

/* The log has lost its newest records: the new one must not hide what they would have told. */
static void what_is_newer_than_a_clean_checkpoint_stays(void **state)
{
	u32 turn;

	for (turn = 0; turn < 2; turn++) {
		image->flash.nr_zones = IMAGE_ZONES;
		image_reset_zone(image, 3);
		image_write_checkpoint(image, 3, image->seq, map, MTFTL_SB_CLEAN);
		/* Where a zone ended, or in one that was empty and was finished since. */
		map[30] = put(turn ? 9 : 7, image->seq + 1, 30, 0x3000);
		if (turn)
			assert_int_equal(image->flash.finish(&image->flash, 9), 0);
		image->flash.nr_zones = GROWN_ZONES;
		assert_grows();
		teardown(state);
		setup_grown(state);
	}
}

static void a_zone_that_failed_is_no_space(void **state)
{
	struct mtftl_sb_info now;

	(void)state;
	image->flash.zones[9].cond = FLASH_OFFLINE;
	assert_int_equal(grow(&now), 0);
	assert_int_equal(now.logical_blocks,
			 mtftl_logical_blocks(GROWN_ZONES - 1, IMAGE_CAPACITY, now.op_permille, false));
}

static void assert_refused(int err)
{
	u8 *before = malloc(GROWN_BYTES);
	struct mtftl_sb_info now;

	assert_non_null(before);
	memcpy(before, image->data, GROWN_BYTES);
	assert_int_equal(grow(&now), err);
	assert_memory_equal(before, image->data, GROWN_BYTES);
	assert_int_equal(image->flash.nr_zones, GROWN_ZONES);
	free(before);
}

static int (*read_blocks)(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer);
static u32 fails_in, failures;

#define MANY	100u
#define WINDOW	4u	/* reads until a block of eight has failed by itself */

static int fail_for_a_while(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer)
{
	if (zone == fails_in && failures) {
		failures--;
		return -EIO;
	}
	return read_blocks(flash, zone, offset, nr, buffer);
}

/* What was not seen would lie in front of the write pointers that the new record names. */
static void a_read_that_fails_for_a_while_hides_nothing(void **state)
{
	static const u32 zones[] = { 0, CKPT_ZONE, 7 };
	struct mtftl_sb_info now;
	u32 i;

	(void)state;
	read_blocks = image->flash.read;
	image->flash.read = fail_for_a_while;
	for (i = 0; i < 3; i++) {
		fails_in = zones[i];
		failures = MANY;
		assert_refused(-EIO);
		/* Nothing is read behind it. */
		assert_in_range(failures, MANY - WINDOW, MANY - 1);
	}
	image->flash.nr_zones = IMAGE_ZONES;
	for (i = 0; i < 3; i++) {
		failures = MANY;
		fails_in = zones[i];
		tear(CKPT_ZONE, MAP);
		assert_int_equal(rebuild(true), -EIO);
		assert_in_range(failures, MANY - WINDOW, MANY - 1);
		tear(CKPT_ZONE, MAP);
	}
	failures = 0;
	assert_recovers();
	image->flash.nr_zones = GROWN_ZONES;
	assert_int_equal(grow(&now), 0);
}

static void what_cannot_grow_is_left_alone(void **state)
{
	(void)state;
	image->flash.zones[GROWN_ZONES - 1].cond = FLASH_FULL;
	assert_refused(-ENOTEMPTY);
	image->flash.zones[GROWN_ZONES - 1].cond = FLASH_EMPTY;
	tear(CKPT_ZONE, MAP);
	assert_refused(-EBADMSG);
	map[20] = MTFTL_MAP_MAX_PAGE;
	image_write_checkpoint(image, 3, image->seq, map, 0);
	assert_refused(-EBADMSG);
}

/* No mount reads it either. */
static void a_retired_zone_that_cannot_be_read_does_not_matter(void **state)
{
	(void)state;
	image->retired = 9;
	put(9, image->seq + 1, 50, 0x5000);
	image_write_checkpoint(image, 3, image->seq, map, 0);
	read_blocks = image->flash.read;
	image->flash.read = fail_for_a_while;
	fails_in = 9;
	failures = UINT32_MAX;
	assert_grows();
	assert_int_equal(rebuild(true), 0);
}

#define test(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)
#define grown(name)	cmocka_unit_test_setup_teardown(name, setup_grown, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(a_whole_checkpoint_is_left_alone),
		test(each_part_is_rebuilt),
		test(a_newer_checkpoint_is_not_replaced),
		test(a_block_that_cannot_be_read_is_a_damaged_one),
		test(the_user_says_whether_eio_is_loss),
		test(a_zone_that_no_mount_reads_is_told),
		test(a_check_says_which_read_may_succeed_later),
		test(a_clean_stop_is_no_reason_not_to_look),
		test(a_map_entry_that_is_none_is_missing),
		test(a_map_entry_into_the_old_checkpoint_is_lost),
		test(numbers_of_a_cut_attempt_are_not_drawn_again),
		test(numbers_that_are_used_up_end_a_rebuild),
		test(a_device_that_is_out_of_zones_stays_so),
		test(damaged_data_does_not_become_older_data),
		test(a_torn_unit_above_the_checkpoint_is_not_taken_for_data),
		test(what_the_checkpoint_alone_knew_comes_back),
		test(a_map_that_verifies_is_believed),
		test(a_map_that_is_older_than_the_zones_gives_nobody_others_blocks),
		test(a_torn_unit_does_not_vouch_for_an_earlier_life),
		test(zones_that_the_stream_has_left_are_full),
		test(the_other_zone_of_the_log_serves_when_one_is_full),
		test(without_a_zone_nothing_is_written),
		test(a_zone_that_refuses_its_reset_is_passed_over),
		test(a_rebuild_that_is_cut_off_can_be_repeated),
		test(zones_of_those_that_were_cut_off_serve_again),
		test(what_a_mount_takes_care_of_is_no_rebuild),
		grown(appended_zones_are_used),
		grown(what_is_newer_than_a_clean_checkpoint_stays),
		grown(a_zone_that_failed_is_no_space),
		grown(a_read_that_fails_for_a_while_hides_nothing),
		grown(what_cannot_grow_is_left_alone),
		grown(a_retired_zone_that_cannot_be_read_does_not_matter),
	};

	return cmocka_run_group_tests_name("rebuild", tests, NULL, NULL);
}
