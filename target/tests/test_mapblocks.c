// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of the log of map blocks (mapblocks.c): what a checkpoint writes to it, how it goes
 * round, and zones of it that a cut left in part, that fail, or that are read-only.
 */
#include "recovery.h"

#include "durable/checkpoint.h"
#include "module.h"
#include "zone/super.h"
#include "zone/zones.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_checkpoint_writes_what_changed),
		TEST(a_log_goes_on_behind_a_torn_block),
		TEST(what_a_cut_tore_in_the_log_hides_nothing),
		TEST(what_a_cut_left_of_a_checkpoint_is_finished),
		TEST(a_read_only_zone_of_the_log_is_replaced),
		TEST(a_low_zone_that_no_log_names_holds_data),
		TEST(low_zones_with_data_are_not_taken),
		TEST(a_head_of_the_log_that_fails_needs_no_zone),
		TEST(a_read_only_head_of_the_log_stays),
		TEST(a_pause_before_a_zone_is_entered_costs_nothing),
		TEST(a_pause_before_the_head_is_finished_costs_nothing),
		TEST(a_log_of_two_zones_goes_round),
		TEST(a_log_of_four_zones_goes_round),
		TEST(a_checkpoint_that_is_cut_leaves_the_one_before),
		TEST(a_checkpoint_of_many_records_may_end_anywhere),
		TEST(a_clean_stop_brings_an_older_device_over),
		TEST(a_zone_of_the_log_that_fails_is_replaced),
		TEST(a_head_of_the_log_that_the_drive_finishes_is_left),
		TEST(a_checkpoint_without_a_zone_to_spare_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
