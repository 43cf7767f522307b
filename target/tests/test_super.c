// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of the log of superblocks (zone/super.c): where a record goes if a write of it fails,
 * and how a record of another writer is known.
 */
#include "recovery.h"

#include "durable/checkpoint.h"
#include "module.h"
#include "zone/super.h"
#include "zone/zones.h"

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

/* The next record would be one that no mount takes. */
static void generations_that_are_used_up_are_not_counted_on(void **state)
{
	const u64 half = 1ull << (MTFTL_SEQ_BITS - 1);
	const u64 generations[] = { half - 1, half, 2 * half - 1 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(generations); i++) {
		u32 wp;

		begin_anew(state);
		image->sb.generation = generations[i] - 1;
		image_write_super(image, 0);
		put(FIRST_DATA, 1, 5, 9);
		cut(FIRST_DATA, 1, 0);
		wp = image->flash.zones[0].wp;
		mount();
		assert_int_equal(mtftl_super_info(&ftl)->generation, generations[i]);
		assert_int_equal(mtftl_is_read_only(&ftl), generations[i] >= half);
		/* Nor has the mount written before. */
		assert_int_equal(image->flash.zones[FIRST_DATA].wp, generations[i] < half ? 2 : 1);
		assert_int_equal(mtftl_checkpoint(&ftl, false), generations[i] < half ? 0 : -EROFS);
		assert_int_equal(image->flash.zones[0].wp, wp + (generations[i] < half));
		mount();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		TEST(only_another_writer_is_not_us),
		TEST(generations_that_are_used_up_are_not_counted_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
