// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of logs of map blocks that are damaged, forged, or from another writer: what the
 * module refuses, and what the tool rebuilds.
 */
#include "recovery.h"

#include "check.h"
#include "rebuild.h"
#include "durable/checkpoint.h"
#include "format/maplog.h"
#include "zone/super.h"
#include "zone/zones.h"

#define GROWN_ZONES	24u

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

/* Zones are appended to it later. */
static void begin_grown(void)
{
	unmount();
	image_free(image);
	image = image_new_of(GROWN_ZONES, IMAGE_ZONE_BLOCKS, IMAGE_CAPACITY, IMAGE_LOGICAL);
	image->sb.nr_zones = IMAGE_ZONES;
	image->flash.nr_zones = IMAGE_ZONES;
	image_write_super(image, 0);
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

/* A unit of ten blocks behind the checkpoint, of which a cut left two, and @sectors of the third. */
static u32 tear_last_unit(u8 sectors)
{
	u64 lbas[10];
	u16 contents[10];
	u32 at, i;

	for (i = 0; i < ARRAY_SIZE(lbas); i++) {
		lbas[i] = 20 + i;
		contents[i] = i;
	}
	at = image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, image->seq + 1, ARRAY_SIZE(lbas),
			      lbas, contents);
	cut(FIRST_DATA, at + 3, sectors);
	return flash_page(&image->flash, FIRST_DATA, at + 1);
}

/* The next mount does not look at it: what it claims would be written to. */
static void nothing_is_written_into_a_torn_unit(void **state)
{
	static const struct {
		u8 sectors;
		bool grows;
	} rows[] = { { 0, false }, { 3, false }, { 0, true }, { 3, true } };
	struct report report = { .quiet = true };
	struct mtftl_sb_info was, now;
	struct rebuild_totals totals;
	u32 page, i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		begin_grown();
		image_write_checkpoint(image, 2, 1, map_of_blocks(0), 0);
		page = tear_last_unit(rows[i].sectors);
		if (rows[i].grows) {
			image->flash.nr_zones = GROWN_ZONES;
			assert_int_equal(rebuild_grow(&image->flash, &report, &was, &now), 0);
		} else {
			image_block(image, 2, 2)[9] ^= 1;
			assert_int_equal(rebuild(&totals), 0);
			assert_int_equal(totals.missing, 1);
		}
		mount_like_the_tool();
		assert_int_equal(map.entries[20], page);
		assert_int_equal(map.entries[21], page + 1);
		assert_int_equal(map.entries[22], MTFTL_MAP_UNMAPPED);
		assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->state, MTFTL_ZONE_FULL);
	}
}

static int refuse_finish(struct flash *flash, u32 zone)
{
	return -EIO;
}

/* It was whole when the checkpoint was written. The power goes when the new one is valid. */
static void nor_into_one_that_the_drive_has_shortened(void **state)
{
	struct report report = { .quiet = true };
	struct mtftl_sb_info was, now;
	struct rebuild_totals totals;
	u32 entries[IMAGE_LOGICAL], page, turn, i;

	for (turn = 0; turn < 4; turn++) {
		begin_grown();
		page = tear_last_unit(turn & 1);
		memcpy(entries, map_of_blocks(0), sizeof(entries));
		for (i = 0; i < 10; i++)
			entries[20 + i] = page + i;
		image_write_checkpoint(image, 2, image->seq, entries, 0);
		image->flash.finish = refuse_finish;
		if (turn & 2) {
			image->flash.nr_zones = GROWN_ZONES;
			assert_int_equal(rebuild_grow(&image->flash, &report, &was, &now), -EIO);
		} else {
			image_block(image, 2, 1)[9] ^= 1;
			assert_int_equal(rebuild(&totals), -EIO);
		}
		mount_like_the_tool();
		assert_int_equal(map.entries[21], page + 1);
		for (i = 2; i < 10; i++)
			assert_int_equal(map.entries[20 + i], MTFTL_MAP_LOST);
		assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->state, MTFTL_ZONE_PARTIAL);
		assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 1 + 10);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_damaged_log_is_rebuilt_among_its_zones),
		TEST(a_log_with_a_newer_unit_is_not_rebuilt),
		TEST(nothing_is_written_into_a_torn_unit),
		TEST(nor_into_one_that_the_drive_has_shortened),
		TEST(an_attempt_of_the_same_numbers_is_not_salvaged),
		TEST(a_torn_unit_in_front_of_a_stream_hides_none_of_it),
		TEST(a_stream_that_goes_round_is_refused),
		TEST(numbers_of_a_stream_are_as_its_record_says),
		TEST(a_log_of_another_writer_is_loaded),
		TEST(an_older_record_finds_its_checkpoint),
		TEST(forged_directories_are_refused),
		TEST(the_stream_of_another_time_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
