// SPDX-License-Identifier: GPL-2.0
/*
 * The log of map blocks: its arithmetic, and its policy beside a circle of zones in memory. There a
 * plain writer follows each plan, power goes at any write, attempts are given up, and after each
 * step all that the newest durable checkpoint needs must be there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "format/maplog.h"
#include "format/parse.h"

#define MAX_SEATS	16u
#define MAX_CAPACITY	400u
#define MAX_MAP		512u

/* Arithmetic */

static struct mtftl_log_shape shape_of(u32 nr_zones, u32 capacity, u64 logical_blocks)
{
	struct mtftl_log_shape shape;

	mtftl_log_shape(&shape, nr_zones, capacity, logical_blocks);
	return shape;
}

static void a_shape_counts_what_a_format_has(void **state)
{
	struct mtftl_log_shape shape = shape_of(129, 4096, 1024 * 512 + 1);

	(void)state;
	assert_int_equal(shape.per_block, 1024);
	assert_int_equal(shape.map_blocks, 513);
	assert_int_equal(shape.record_blocks, 2);
	assert_int_equal(shape.stream_blocks, 2 + 2);
	assert_int_equal(shape.seats, 2);
	assert_true(mtftl_log_fits(&shape));
	/* The largest device of the smallest zones: as many zones as a record names. */
	shape = shape_of(1u << 18, 1024, (u64)(1u << 18) * 850);
	assert_int_equal(shape.seats, 2 * mtftl_ckpt_zones(1u << 18, 1024, (u64)(1u << 18) * 850));
	assert_in_range(shape.seats, 2 * 200, MTFTL_SB_MAX_LOG_ZONES);
	assert_true(mtftl_log_fits(&shape));
	/* Two runs do not share a unit, so tiny zones take no log. */
	shape = shape_of(9, 8, 8);
	assert_int_equal(shape.seats, 2);
	assert_false(mtftl_log_fits(&shape));
	shape = shape_of(9, 7, 7);
	assert_int_equal(shape.seats, 0);
	assert_false(mtftl_log_fits(&shape));
	/* Nor do zones that no unit fits into, however many there are. */
	shape = (struct mtftl_log_shape) { .capacity = MTFTL_STREAM_UNIT_BLOCKS, .seats = 100 };
	assert_false(mtftl_log_fits(&shape));
}

/* Every device that format makes of zones of 64 blocks and more has a log. */
static void what_can_be_formatted_has_a_log(void **state)
{
	u32 zones, capacity, op;

	(void)state;
	for (capacity = 64; capacity <= 1u << 16; capacity = capacity * 5 / 3)
		for (zones = 9; zones <= 1u << 12; zones = zones * 3 / 2)
			for (op = 0; op < 1000; op += 333) {
				u64 blocks = mtftl_logical_blocks(zones, capacity, op, false);
				struct mtftl_log_shape shape = shape_of(zones, capacity, blocks);

				if (blocks && !mtftl_log_fits(&shape))
					fail_msg("%u zones of %u blocks, %u permille", zones, capacity, op);
			}
}

/* As the module writes: a unit ends with its run, with its zone, or when it is full. */
static void advance_slowly(u32 capacity, struct mtftl_log_at *at, u32 blocks)
{
	u32 fill = 0, most;

	while (blocks) {
		if (!fill && capacity - at->offset < 1 + MTFTL_STREAM_UNIT_BLOCKS) {
			at->zone++;
			at->offset = 0;
		}
		most = capacity - at->offset - 1;
		most = most < MTFTL_LOG_UNIT_BLOCKS ? most : MTFTL_LOG_UNIT_BLOCKS;
		fill++;
		blocks--;
		if (fill < most && blocks)
			continue;
		at->offset += 1 + fill;
		fill = 0;
	}
}

static void runs_end_where_a_writer_ends(void **state)
{
	u32 capacity, offset, blocks;

	(void)state;
	for (capacity = 8; capacity < 140; capacity++)
		for (offset = 0; offset <= capacity; offset += 1 + capacity / 9)
			for (blocks = 0; blocks < 300; blocks += 1 + blocks / 5) {
				struct mtftl_log_at a = { 3, offset }, b = a;

				mtftl_log_advance(capacity, &a, blocks);
				advance_slowly(capacity, &b, blocks);
				assert_int_equal(a.zone, b.zone);
				assert_int_equal(a.offset, b.offset);
			}
}

static void places_are_bounded(void **state)
{
	const struct mtftl_log_shape shape = { .capacity = 100, .seats = 4 };
	struct mtftl_map_place place;

	(void)state;
	mtftl_place_set(&shape, &place, 3, 99, 0x1234);
	assert_true(mtftl_place_valid(&shape, &place));
	assert_int_equal(mtftl_place_seat(&shape, &place), 3);
	assert_int_equal(mtftl_place_offset(&shape, &place), 99);
	assert_int_equal(le32_to_cpu(place.crc), 0x1234);
	place.at = cpu_to_le32(400);
	assert_false(mtftl_place_valid(&shape, &place));
	place.at = cpu_to_le32(401);
	assert_false(mtftl_place_valid(&shape, &place));
	place.at = cpu_to_le32(200);	/* a header */
	assert_false(mtftl_place_valid(&shape, &place));
	place.at = cpu_to_le32(MTFTL_PLACE_NONE - 1);
	assert_false(mtftl_place_valid(&shape, &place));
	place.at = cpu_to_le32(MTFTL_PLACE_NONE);
	assert_true(mtftl_place_valid(&shape, &place) && mtftl_place_is_none(&place));
}

static void spans_reach_back_to_the_oldest_block(void **state)
{
	const struct mtftl_log_shape shape = { .capacity = 100, .seats = 6 };
	u32 blocks[6] = { 0 };

	(void)state;
	assert_int_equal(mtftl_log_span(&shape, blocks, 2, 2), 1);
	assert_int_equal(mtftl_log_span(&shape, blocks, 5, 1), 3);
	blocks[1] = 1;
	assert_int_equal(mtftl_log_span(&shape, blocks, 2, 2), 2);
	blocks[4] = 7;
	assert_int_equal(mtftl_log_span(&shape, blocks, 2, 2), 5);
	blocks[3] = 1;
	assert_int_equal(mtftl_log_span(&shape, blocks, 2, 2), 6);
}

/* The circle */

enum { STREAM_ID = 1u << 20 };	/* a block of the stream; map blocks are 0 and up */

struct cell {
	u32 id, version;
};

static struct {
	struct mtftl_log_shape shape;
	struct mtftl_log log;			/* durable */
	struct cell cells[MAX_SEATS][MAX_CAPACITY];
	u32 wp[MAX_SEATS];
	u32 version[MAX_MAP];			/* of the map now */
	bool changed[MAX_MAP], todo[MAX_MAP];
	struct mtftl_map_place dir[MAX_MAP];
	bool redo;

	/* What the durable checkpoint says. */
	struct mtftl_map_place durable[MAX_MAP];
	u32 durable_version[MAX_MAP];
	u32 number, first_seat, first_offset;	/* of its stream */

	u64 written, checkpoints;
	u32 power;				/* writes until it goes; 0: it does not */
} circle;

static u32 drawn = 1;

static u32 pick(u32 n)
{
	drawn = drawn * 1664525 + 1013904223;
	return (drawn >> 8) % n;
}

/* All that the durable checkpoint needs is where it says. */
static void check_durable(void)
{
	struct mtftl_log_at at = { circle.first_seat, circle.first_offset };
	u32 i;

	if (!circle.log.span)
		return;
	for (i = 0; i < circle.shape.map_blocks; i++) {
		const struct mtftl_map_place *place = &circle.durable[i];
		const struct cell *cell;

		if (mtftl_place_is_none(place))
			continue;
		cell = &circle.cells[mtftl_place_seat(&circle.shape, place)]
				  [mtftl_place_offset(&circle.shape, place)];
		assert_int_equal(cell->id, i);
		assert_int_equal(cell->version, circle.durable_version[i]);
	}
	for (i = 0; i < circle.shape.stream_blocks; i++) {
		struct mtftl_log_at begin = at;

		/* The reader's rule: behind the last unit, or in the next zone. */
		mtftl_log_advance(circle.shape.capacity, &at, i + 1);
		assert_int_equal(circle.cells[at.zone % circle.shape.seats][at.offset - 1].id,
				 STREAM_ID + i);
		assert_int_equal(circle.cells[at.zone % circle.shape.seats][at.offset - 1].version,
				 circle.number);
		at = begin;
	}
}

/* False: the power went. */
static bool step(void)
{
	/* At each step it would take all the time; and when the power goes: mount(). */
	if (!pick(32))
		check_durable();
	return !circle.power || --circle.power;
}

struct writer {
	struct mtftl_log_at at;
	u32 begin;		/* seat */
	u32 limit;		/* zones */
	struct cell unit[MTFTL_LOG_UNIT_BLOCKS];
	u32 fill;
};

static u32 seat_of(const struct writer *writer)
{
	return mtftl_log_seat(&circle.shape, writer->begin, writer->at.zone);
}

static bool write_unit(struct writer *writer)
{
	u32 seat = seat_of(writer), i;

	assert_int_equal(circle.wp[seat], writer->at.offset);
	assert_true(writer->at.zone <= writer->limit);
	/* The header. */
	circle.cells[seat][circle.wp[seat]++] = (struct cell) { UINT32_MAX, 0 };
	circle.written++;
	for (i = 0; i < writer->fill; i++) {
		if (!step())
			return false;
		if (writer->unit[i].id < STREAM_ID)
			mtftl_place_set(&circle.shape, &circle.dir[writer->unit[i].id], seat,
					circle.wp[seat], 0);
		circle.cells[seat][circle.wp[seat]++] = writer->unit[i];
		circle.written++;
	}
	writer->at.offset = circle.wp[seat];
	writer->fill = 0;
	return step();
}

static bool write_block(struct writer *writer, u32 id, u32 version)
{
	u32 capacity = circle.shape.capacity, most;

	if (!writer->fill && !mtftl_log_takes(capacity, writer->at.offset)) {
		writer->at.zone++;
		writer->at.offset = 0;
	}
	most = capacity - writer->at.offset - 1;
	most = most < MTFTL_LOG_UNIT_BLOCKS ? most : MTFTL_LOG_UNIT_BLOCKS;
	writer->unit[writer->fill++] = (struct cell) { id, version };
	return writer->fill < most || write_unit(writer);
}

static bool plan_checkpoint(struct mtftl_log_plan *plan)
{
	u32 kept[MAX_SEATS] = { 0 }, changed = 0, i, age;

	for (i = 0; i < circle.shape.map_blocks; i++) {
		circle.todo[i] = circle.changed[i] || circle.redo;
		changed += circle.todo[i];
		if (!circle.todo[i] && !mtftl_place_is_none(&circle.dir[i]))
			kept[mtftl_place_seat(&circle.shape, &circle.dir[i])]++;
	}
	if (circle.redo)
		mtftl_log_plan_all(&circle.shape, changed, plan);
	else
		mtftl_log_plan(&circle.shape, &circle.log, changed, kept, plan);
	for (i = 0; i < circle.shape.map_blocks; i++) {
		if (circle.todo[i] || mtftl_place_is_none(&circle.dir[i]))
			continue;
		for (age = 0; age < (plan->all ? circle.log.span : plan->carried); age++)
			circle.todo[i] |= mtftl_place_seat(&circle.shape, &circle.dir[i]) ==
					mtftl_log_oldest(&circle.shape, &circle.log, age);
	}
	/* A writer that begins again does not know what it left in the others. */
	for (i = 1; i <= (circle.redo ? circle.shape.seats / 2 : plan->entered); i++) {
		circle.wp[mtftl_log_seat(&circle.shape, circle.log.head, i)] = 0;
		memset(circle.cells[mtftl_log_seat(&circle.shape, circle.log.head, i)], 0,
		       sizeof(circle.cells[0]));
		if (!step())
			return false;
	}
	return true;
}

/* False: it was not completed. */
static bool checkpoint(void)
{
	struct writer writer = { .begin = circle.log.head };
	struct mtftl_log_at first;
	struct mtftl_log_plan plan;
	u32 i;

	if (!plan_checkpoint(&plan))
		return false;
	writer.limit = plan.entered;
	if (plan.all)
		writer.begin = mtftl_log_seat(&circle.shape, circle.log.head, 1);
	else
		writer.at.offset = circle.log.offset;
	circle.redo = true;
	for (i = 0; i < circle.shape.map_blocks; i++) {
		if (!circle.todo[i])
			continue;
		circle.changed[i] = false;
		if (!circle.version[i])
			circle.dir[i].at = cpu_to_le32(MTFTL_PLACE_NONE);
		else if (!write_block(&writer, i, circle.version[i]))
			return false;
	}
	if (writer.fill && !write_unit(&writer))
		return false;
	first = writer.at;
	for (i = 0; i < circle.shape.stream_blocks; i++) {
		if (!write_block(&writer, STREAM_ID + i, circle.number + 1))
			return false;
		if (!i && !mtftl_log_takes(circle.shape.capacity, first.offset))
			first = (struct mtftl_log_at) { first.zone + 1, 0 };
	}
	if (writer.fill && !write_unit(&writer))
		return false;
	/* The record is durable. */
	circle.redo = false;
	circle.number++;
	circle.checkpoints++;
	circle.first_seat = mtftl_log_seat(&circle.shape, writer.begin, first.zone);
	circle.first_offset = first.offset;
	memcpy(circle.durable, circle.dir, sizeof(circle.dir));
	memcpy(circle.durable_version, circle.version, sizeof(circle.version));
	mtftl_log_done(&circle.shape, &circle.log, &plan, &writer.at);
	assert_int_equal(seat_of(&writer), circle.log.head);
	check_durable();
	return true;
}

/* As a mount finds it. What the log behind the checkpoint says has changed again. */
static void mount(void)
{
	u32 blocks[MAX_SEATS] = { 0 }, i, span;

	check_durable();
	circle.redo = false;
	memcpy(circle.dir, circle.durable, sizeof(circle.dir));
	for (i = 0; i < circle.shape.map_blocks; i++) {
		circle.changed[i] = circle.version[i] != circle.durable_version[i];
		if (!mtftl_place_is_none(&circle.dir[i]))
			blocks[mtftl_place_seat(&circle.shape, &circle.dir[i])]++;
	}
	if (!circle.log.span)
		return;
	span = mtftl_log_span(&circle.shape, blocks, circle.first_seat, circle.log.head);
	/* Zones whose last block went are in no span that is found. */
	assert_true(span <= circle.log.span);
	circle.log.span = span;
	circle.log.offset = circle.wp[circle.log.head];
}

static void begin(u32 map_blocks, u32 stream_blocks, u32 seats, u32 capacity)
{
	u32 i;

	memset(&circle, 0, sizeof(circle));
	circle.shape = (struct mtftl_log_shape) {
		.capacity = capacity, .seats = seats, .map_blocks = map_blocks,
		.stream_blocks = stream_blocks,
	};
	assert_true(seats <= MAX_SEATS && capacity <= MAX_CAPACITY && map_blocks <= MAX_MAP);
	assert_true(mtftl_log_fits(&circle.shape));
	circle.log = (struct mtftl_log) { .head = seats - 1, .offset = capacity };
	for (i = 0; i < map_blocks; i++)
		circle.dir[i].at = circle.durable[i].at = cpu_to_le32(MTFTL_PLACE_NONE);
}

static void change(u32 nr)
{
	u32 i;

	for (; nr; nr--) {
		i = pick(circle.shape.map_blocks);
		/* Version 0 is a map block of which all is discarded. */
		circle.version[i] = pick(50) ? drawn | 1 : 0;
		circle.changed[i] = true;
	}
}

static void run(u32 rounds, u32 most)
{
	u32 i, k;

	for (i = 0; i < rounds; i++) {
		change(pick(most + 1));
		k = pick(8);
		circle.power = k < 2 ? 1 + pick(circle.shape.map_blocks + 20) : 0;
		if (checkpoint() || k == 1)
			continue;	/* k == 1: the attempt is given up, and another one follows */
		if (circle.power || k == 0)
			mount();
	}
	circle.power = 0;
	assert_true(checkpoint());
}

static const struct {
	u32 map_blocks, stream_blocks, seats, capacity;
} shapes[] = {
	{ 1, 2, 2, 16 },
	{ 10, 3, 2, 20 },	/* a full checkpoint is nearly a zone */
	{ 60, 3, 2, 120 },
	{ 60, 3, 4, 40 },
	{ 200, 4, 8, 64 },
	{ 200, 4, 16, 40 },
	{ 500, 5, 6, 400 },
	{ 500, 300, 10, 180 },	/* many zones of few blocks each: records are most of it */
};

static void nothing_durable_is_lost(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		begin(shapes[i].map_blocks, shapes[i].stream_blocks, shapes[i].seats,
		      shapes[i].capacity);
		run(100, 3);
		run(50, shapes[i].map_blocks);
		run(50, shapes[i].map_blocks / 8 + 1);
	}
}

/* Each instant of one checkpoint, from a log in any state. */
static void power_may_go_at_each_write(void **state)
{
	static typeof(circle) before;
	u32 i, at;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		begin(shapes[i].map_blocks, shapes[i].stream_blocks, shapes[i].seats,
		      shapes[i].capacity);
		run(20 + i, 1 + shapes[i].map_blocks / 4);
		change(1 + shapes[i].map_blocks / 4);
		before = circle;
		for (at = 1; ; at++) {
			circle = before;
			circle.power = at;
			if (checkpoint())
				break;
			circle.power = 0;
			mount();
			assert_true(checkpoint());
		}
		assert_true(at > 1);
	}
}

static void small_changes_cost_little(void **state)
{
	u64 before;
	u32 i;

	(void)state;
	begin(200, 2, 8, 128);
	change(2000);
	assert_true(checkpoint());
	before = circle.written;
	for (i = 0; i < 1000; i++) {
		change(1);
		assert_true(checkpoint());
	}
	/* A map block, the stream and two headers, and about as much to carry over. */
	assert_in_range((circle.written - before) / 1000, 4, 8);
	/* Were each of them all of the map, it would be 209. */
	begin(200, 2, 8, 128);
	circle.redo = true;
	assert_true(checkpoint());
	assert_int_equal(circle.written, 3);	/* nothing is mapped */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shape_counts_what_a_format_has),
		cmocka_unit_test(what_can_be_formatted_has_a_log),
		cmocka_unit_test(runs_end_where_a_writer_ends),
		cmocka_unit_test(places_are_bounded),
		cmocka_unit_test(spans_reach_back_to_the_oldest_block),
		cmocka_unit_test(nothing_durable_is_lost),
		cmocka_unit_test(power_may_go_at_each_write),
		cmocka_unit_test(small_changes_cost_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
