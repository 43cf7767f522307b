// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of a mount that meets trouble: too much to keep, no memory, a signal, reads that
 * fail, power cuts in it, and what no drive and no checkpoint should say.
 */
#include "recovery.h"

#include <linux/sched/signal.h>

#include "device/rw.h"
#include "durable/checkpoint.h"
#include "durable/found.h"
#include "zone/super.h"
#include "zone/zones.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_device_full_of_ranges_is_refused),
		TEST(zones_are_read_again_for_what_is_not_kept),
		TEST(a_number_that_is_everywhere_is_refused),
		TEST(reads_of_units_that_no_flush_followed),
		TEST(a_mount_without_memory_says_so),
		LOG_TEST(a_mount_without_memory_says_so),
		OOB_TEST(a_mount_without_memory_says_so),
		TEST(a_report_that_ends_early_loses_nothing),
		TEST(a_clean_record_beside_an_offline_zone_of_the_log),
		TEST(a_read_only_zone_has_no_write_pointer),
		OOB_TEST(a_read_only_zone_has_no_write_pointer),
		TEST(a_read_that_fails_hides_nothing),
		LOG_TEST(a_read_that_fails_hides_nothing),
		OOB_TEST(a_read_that_fails_hides_nothing),
		TEST(each_block_that_is_lost_is_lost_to_the_tool),
		LOG_TEST(each_block_that_is_lost_is_lost_to_the_tool),
		TEST(a_report_of_zones_that_cannot_be_is_refused),
		TEST(sectors_behind_the_last_block_hold_nothing),
		TEST(an_entry_in_a_zone_of_metadata_is_lost),
		TEST(a_mount_that_is_killed_says_so),
		LOG_TEST(a_mount_that_is_killed_says_so),
		TEST(cuts_of_mounts_in_a_row_lose_nothing),
		TEST(blocks_beyond_the_device_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
