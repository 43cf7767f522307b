// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of a zone of checkpoints that went bad while no zone is empty: a zone that holds
 * nothing that is needed takes its place, or the device can be read only.
 */
#include "recovery.h"

#include "durable/checkpoint.h"
#include "module.h"
#include "zone/super.h"
#include "zone/zones.h"

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

static void a_zone_with_the_checkpoints_own_number_is_spent(void **state)
{
	u32 last = fill_zones_but_one();

	/* It does not know the zone, so a mount reads the unit. */
	image_write_checkpoint(image, 2, 50, map_of_blocks(last), 0);
	put(last, 50, FIRST_DATA, 7);
	mount();
	expect_checkpoints_in(last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		TEST(a_zone_with_the_checkpoints_own_number_is_spent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
