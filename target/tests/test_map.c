// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of the map's marks (map.c of the module): what a checkpoint copies is what has
 * changed, and what changes while it copies is still marked afterwards. And of the lives that new
 * data gets by what it replaces (age.c). One thread; what another one
 * would do comes where a lock is left, and before a number is drawn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <linux/fs.h>

#include "device/device.h"
#include "device/seq.h"
#include "map/age.h"
#include "map/map.h"
#include "policy/hint.h"

#define LBA	2050u		/* of chunk 2 */
#define CHUNK	(LBA >> MTFTL_CHUNK_SHIFT)
#define PAGE	(5u << 7)	/* the first of zone 5 */
#define OTHER	(6u << 7)
#define DEVICE	64u		/* in zones */

static struct mtftl_device device;
static struct mtftl_seq seq;
static struct mtftl_slot slots[4];
static struct mtftl ftl;
static u8 data[MTFTL_BUFFER_BLOCKS * MTFTL_BLOCK_SIZE];
static void *chunks[] = { data };
static u32 draws;		/* of numbers, each with the chunk marked */

/* The rest of the module */

void mtftl_on_read_only(struct mtftl *of, void (*heard)(struct mtftl *ftl))
{
	(void)of;
	(void)heard;
}

bool mtftl_device_gives_back(const struct mtftl *of)
{
	(void)of;
	return false;
}

void mtftl_pending_flush(struct mtftl *of, struct bio *bio)
{
	(void)of;
	(void)bio;
	fail();
}

void mtftl_range_add(struct mtftl *of, const struct mtftl_range_rec *rec)
{
	assert_int_equal(rec->seq, mtftl_seq_last(of));
}

/* Marks */

static bool is_marked(void)
{
	return test_bit(CHUNK, ftl.map->changed);
}

/* What a checkpoint has of the block; @marked: and whether it was marked before. */
static u32 copied(bool marked)
{
	static __le32 out[1 << MTFTL_CHUNK_SHIFT];

	assert_int_equal(is_marked(), marked);
	assert_int_equal(mtftl_map_durable(&ftl, CHUNK, out), 1 << MTFTL_CHUNK_SHIFT);
	assert_false(is_marked());
	return le32_to_cpu(out[LBA % (1 << MTFTL_CHUNK_SHIFT)]);
}

static void draw_when_marked(void)
{
	assert_true(is_marked());
	draws++;
}

static int setup(void **state)
{
	static struct {
		struct mtftl_rings rings;
		struct mtftl_ring ring;
	} lanes;

	(void)state;
	memset(&seq, 0, sizeof(seq));
	memset(slots, 0, sizeof(slots));
	memset(&lanes, 0, sizeof(lanes));
	lanes.rings.nr = 1;
	lanes.rings.shift = 2;
	lanes.rings.all[0] = (struct mtftl_ring) {
		.slots = slots, .chunks = chunks, .entries = ARRAY_SIZE(slots),
		.mask = ARRAY_SIZE(slots) - 1, .first_slot = MTFTL_MAP_SLOTS,
	};
	ftl = (struct mtftl) {
		.device = &device, .seq = &seq, .rings = &lanes.rings,
		.config = {
			.nr_zones = 12, .zone_shift = 7, .capacity = 120, .logical_blocks = 4096,
			.nr_lanes = 1, .lane_shift = 2,
			.placement = mtftl_placement("by-life"), .budget.user_classes = 3,
			.device_in_zones = DEVICE, .unwritten_life = mtftl_life_new(DEVICE),
			.unwritten_class = 2,
		},
	};
	assert_int_equal(mtftl_map_alloc(&ftl), 0);
	draws = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kernel_counts = NULL;
	kernel_unlocked = NULL;
	mtftl_map_free(&ftl);
	assert_int_equal(kernel_allocated, 0);
	return 0;
}

/* As a mount has it from a checkpoint. */
static void load(u32 value)
{
	mtftl_map_load(&ftl, LBA, value);
	if (mtftl_is_page(value))
		mtftl_map_count(&ftl, mtftl_page_zone(&ftl, value), 1);
}

static u32 publish(u32 slot)
{
	u32 value = MTFTL_MAP_SLOTS + slot;

	assert_int_equal(mtftl_map_publish(&ftl, LBA, &slots[slot], value, false), value);
	return value;
}

static void take(u32 slot)
{
	assert_true(mtftl_map_take(&ftl, mtftl_ring(&ftl, 0), &slots[slot], MTFTL_MAP_SLOTS + slot));
}

/* Tests */

static void what_is_buffered_changes_nothing(void **state)
{
	load(PAGE);
	publish(0);
	assert_int_equal(copied(false), PAGE);
	take(0);
	assert_int_equal(copied(false), PAGE);
}

static void what_lands_is_marked(void **state)
{
	u32 value;

	load(PAGE);
	value = publish(0);
	take(0);
	mtftl_map_complete(&ftl, LBA, value, OTHER);
	assert_int_equal(copied(true), OTHER);
	assert_int_equal(copied(false), OTHER);
}

/* Behind what is buffered by now: a checkpoint looks through that. */
static void what_lands_behind_a_newer_slot_is_marked(void **state)
{
	u32 older, newer;

	load(PAGE);
	older = publish(0);
	take(0);
	newer = publish(1);
	mtftl_map_complete(&ftl, LBA, older, OTHER);
	assert_int_equal(copied(true), OTHER);
	take(1);
	mtftl_map_complete(&ftl, LBA, newer, PAGE + 1);
	assert_int_equal(copied(true), PAGE + 1);
}

static void what_is_moved_is_marked(void **state)
{
	load(PAGE);
	mtftl_map_move(&ftl, LBA, PAGE + 1, OTHER);
	assert_int_equal(copied(false), PAGE);
	mtftl_map_move(&ftl, LBA, PAGE, OTHER);
	assert_int_equal(copied(true), OTHER);
}

/* Before its number is drawn: a checkpoint that covers that looks for marks then. */
static void what_is_lost_is_marked_first(void **state)
{
	u64 number;

	load(PAGE);
	kernel_counts = draw_when_marked;
	assert_true(mtftl_map_lose(&ftl, LBA, PAGE, &number));
	assert_int_equal(draws, 1);
	assert_int_equal(copied(true), MTFTL_MAP_LOST);
}

static void what_is_discarded_is_marked_first(void **state)
{
	struct mtftl_range_rec rec = { .lba = LBA - 1, .nr_blocks = 3 };

	assert_false(mtftl_map_discard(&ftl, &rec));
	assert_int_equal(copied(false), MTFTL_MAP_UNMAPPED);
	load(PAGE);
	kernel_counts = draw_when_marked;
	assert_true(mtftl_map_discard(&ftl, &rec));
	assert_int_equal(draws, 1);
	assert_int_equal(copied(true), MTFTL_MAP_UNMAPPED);
}

static void move_now(void)
{
	kernel_unlocked = NULL;
	mtftl_map_move(&ftl, LBA, PAGE, OTHER);
}

/* As soon as the copy is made: the mark is of the next one. */
static void a_change_behind_the_copy_stays_marked(void **state)
{
	static __le32 out[1 << MTFTL_CHUNK_SHIFT];

	load(PAGE);
	mtftl_map_mark(&ftl, LBA);
	kernel_unlocked = move_now;
	mtftl_map_durable(&ftl, CHUNK, out);
	assert_int_equal(le32_to_cpu(out[LBA % (1 << MTFTL_CHUNK_SHIFT)]), PAGE);
	assert_int_equal(copied(true), OTHER);
}

/* Lives */

static void expect_life(u32 slot, u32 life)
{
	assert_int_equal(slots[slot].life, life);
	assert_int_equal(slots[slot].class,
			 mtftl_class_written(ftl.config.placement, life, DEVICE, 3));
}

/* Nothing, what is buffered, what is on flash; but if its writer knows better, none of these. */
static void what_is_replaced_tells_a_life(void **state)
{
	const u32 known = mtftl_life(40), age = 30;
	u32 older, newer;

	older = publish(0);
	take(0);
	expect_life(0, mtftl_life_new(DEVICE));
	newer = publish(1);
	take(1);
	expect_life(1, mtftl_life_written(ftl.config.placement, mtftl_life_new(DEVICE), 0));
	assert_true(slots[1].life < slots[0].life);
	mtftl_map_complete(&ftl, LBA, older, OTHER);
	mtftl_map_complete(&ftl, LBA, newer, PAGE);
	mtftl_map_set_clock(&ftl, DEVICE);
	mtftl_map_set_age(&ftl, PAGE >> 7, DEVICE - age, known);
	publish(2);
	take(2);
	expect_life(2, mtftl_life_written(ftl.config.placement, known, age));
	slots[3].hint = MTFTL_HINT_SHORT;
	publish(3);
	expect_life(3, mtftl_life_hinted(MTFTL_HINT_SHORT, DEVICE));
}

static void a_hint_is_believed_where_nothing_was(void **state)
{
	slots[0].hint = MTFTL_HINT_SHORT;
	publish(0);
	expect_life(0, mtftl_life_hinted(MTFTL_HINT_SHORT, DEVICE));
	assert_int_equal(slots[0].class, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_is_buffered_changes_nothing),
		TEST(what_lands_is_marked),
		TEST(what_lands_behind_a_newer_slot_is_marked),
		TEST(what_is_moved_is_marked),
		TEST(what_is_lost_is_marked_first),
		TEST(what_is_discarded_is_marked_first),
		TEST(a_change_behind_the_copy_stays_marked),
		TEST(what_is_replaced_tells_a_life),
		TEST(a_hint_is_believed_where_nothing_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
