// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of checkpoints (checkpoint.c, ckptlog.c): how they are read and written, what they
 * keep of zones, and how a pause ends them.
 */
#include "recovery.h"

#include <linux/sched/signal.h>

#include "rebuild.h"
#include "device/pause.h"
#include "durable/checkpoint.h"
#include "module.h"
#include "super.h"
#include "zone/super.h"
#include "zone/zones.h"

#define READS_OF_LOG	1u	/* if the newest record is whole, and the other zone is empty */

/* A clean checkpoint of the older kind: the module makes a log of map blocks then. */
static void stop_as_before(void)
{
	assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
	image->sb = ftl.super->info;
	image_write_super(image, MTFTL_SB_CLEAN);
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
	struct super found;
	u32 page;

	image_write_checkpoint(image, 2, 10, map_of_blocks(0), 0);
	page = put(FIRST_DATA, 11, 5, 9);
	image->sb.ckpt_nr_zones = 2;
	image->sb.ckpt_zones[1] = 3;
	image_write_super(image, 0);
	assert_int_equal(try_to_mount(), -EINVAL);
	assert_int_equal(super_find(&image->flash, &found), -EINVAL);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_checkpoint_of_many_units_is_loaded),
		TEST(a_checkpoint_goes_on_where_a_unit_fits),
		TEST(a_checkpoint_of_uneven_units_is_loaded),
		TEST(a_stream_beyond_its_zones_is_refused),
		TEST(an_entry_that_is_no_block_is_refused),
		LOG_TEST(an_entry_that_is_no_block_is_refused),
		TEST(a_checkpoint_in_more_zones_than_it_needs_is_refused),
		TEST(a_device_that_grows_keeps_its_data),
		TEST(no_unit_of_a_checkpoint_is_another),
		TEST(a_checkpoint_that_fails_is_silent_in_a_pause),
		TEST(a_pause_ends_a_checkpoint),
		TEST(a_checkpoint_ends_if_a_pause_made_the_device_read_only),
		LOG_TEST(a_checkpoint_that_fails_is_silent_in_a_pause),
		TEST(a_checkpoint_keeps_what_is_known_of_zones),
		TEST(a_checkpoint_costs_what_it_must),
		TEST(a_record_of_an_empty_zone_says_nothing),
		TEST(a_long_log_is_cut_by_a_checkpoint),
		TEST(a_checkpoint_whose_flush_fails_writes_nothing),
		LOG_TEST(a_checkpoint_whose_flush_fails_writes_nothing),
		TEST(a_zone_that_is_reset_while_a_checkpoint_flushes),
		TEST(a_clean_checkpoint_is_doubted_if_zones_hold_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
