// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of GC's resets (gc/reset.c): what is sent behind a pause, which may end with the
 * device read-only because another system wrote to the drive. One thread: works run when the test
 * runs them, and a pause ends when something waits for its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "device/device.h"
#include "device/rw.h"
#include "device/seq.h"
#include "device/space.h"
#include "durable/checkpoint.h"
#include "durable/flush.h"
#include "gc/reset.h"
#include "io/lane.h"
#include "map/map.h"
#include "map/pending.h"
#include "zone/life.h"
#include "zone/super.h"

#define ZONE	3u
#define ZONES	5u
#define MOST	8u	/* works that are queued */

static struct mtftl_cpu_stats stats;
static struct mtftl_device device = { .stats = &stats };
static struct mtftl_map_zone map_zones[ZONES];
static struct mtftl_map map = { .zones = map_zones };
static struct mtftl_seq seq;
static struct mtftl_space space;
static struct mtftl_super super;
static struct mtftl ftl = {
	.device = &device, .map = &map, .seq = &seq, .space = &space, .super = &super,
	.config.nr_zones = ZONES,
};

static struct work_struct *works[MOST];
static bool pause_while_settling, ends_read_only;
/* Commands, and pauses that were sat out. */
static u32 resets_sent, flushes_sent, sat_out;
static struct list_head resetting, empty;	/* zones in these states which nothing has taken */

/* The rest of the module */

void mtftl_space_sit_out_pause(struct mtftl *of, bool (*over)(void *data), void *data)
{
	/* The pause waits until all that began to send has ended. */
	assert_int_equal(stats.sending, stats.landed);
	if (!device.paused)
		return;
	assert_false(over(data));
	device.paused = false;
	device.read_only = ends_read_only;
	sat_out++;
}

int mtftl_zone_mgmt(struct mtftl *of, u32 zone, enum req_op op)
{
	assert_int_equal(zone, ZONE);
	assert_int_equal(op, REQ_OP_ZONE_RESET);
	assert_int_equal(stats.sending, stats.landed + 1);
	resets_sent++;
	return 0;
}

int mtftl_flush_device(struct mtftl *of, u64 drawn)
{
	assert_int_equal(stats.sending, stats.landed + 1);
	flushes_sent++;
	return 0;
}

void mtftl_zones_take(struct mtftl *of, enum mtftl_zone_state state, struct list_head *list)
{
	assert_int_equal(state, MTFTL_ZONE_RESETTING);
	list_splice_init(&resetting, list);
}

void mtftl_zones_give_back(struct mtftl *of, enum mtftl_zone_state state, struct list_head *list)
{
	assert_int_equal(state, MTFTL_ZONE_RESETTING);
	list_splice_init(list, &resetting);
}

void mtftl_zone_reset_done(struct mtftl_zone *zone, bool ok)
{
	assert_int_equal(zone->index, ZONE);
	assert_true(ok);
	zone->state = MTFTL_ZONE_EMPTY;
	list_move(&zone->list, &empty);
}

/* The flush comes next. */
void mtftl_lanes_kick(struct mtftl *of)
{
	device.paused = pause_while_settling;
}

int mtftl_flush_sync(struct mtftl *of)
{
	fail();
	return 0;
}

u32 mtftl_ranges_count(struct mtftl *of, bool reserved)
{
	return 0;
}

void mtftl_map_want(struct mtftl *of, bool (*leaves)(struct mtftl *of, u32 page))
{
}

bool mtftl_device_answers(struct mtftl *of, void *block)
{
	return true;
}

int mtftl_checkpoint(struct mtftl *of, bool clean)
{
	fail();
	return 0;
}

int mtftl_super_make_dirty(struct mtftl *of)
{
	fail();
	return 0;
}

void mtftl_wait_readers(struct mtftl *of)
{
}

void mtftl_space_kick_gc(struct mtftl *of)
{
}

void mtftl_space_wake(struct mtftl *of)
{
}

const char *mtftl_disk_name(const struct mtftl *of)
{
	return "dm-0";
}

/* The test */

static void note_work(struct work_struct *work)
{
	u32 i = 0;

	while (works[i])
		assert_in_range(++i, 0, MOST - 1);
	works[i] = work;
}

/* Those that are queued by now. */
static void run_works(void)
{
	struct work_struct *now[MOST];
	u32 i;

	memcpy(now, works, sizeof(now));
	memset(works, 0, sizeof(works));
	for (i = 0; i < MOST && now[i]; i++) {
		cancel_work(now[i]);
		now[i]->run(now[i]);
	}
}

static int setup(void **state)
{
	struct mtftl_zone *zone;

	kernel_queues = note_work;
	memset(&stats, 0, sizeof(stats));
	device.read_only = false;
	device.paused = false;
	pause_while_settling = false;
	resets_sent = 0;
	flushes_sent = 0;
	sat_out = 0;
	ftl.zones = calloc(1, sizeof(*ftl.zones) + ZONES * sizeof(*ftl.zones->all));
	zone = mtftl_zone(&ftl, ZONE);
	zone->index = ZONE;
	zone->ftl = &ftl;
	zone->state = MTFTL_ZONE_RESETTING;
	INIT_LIST_HEAD(&resetting);
	INIT_LIST_HEAD(&empty);
	list_add_tail(&zone->list, &resetting);
	*state = mtftl_resets_alloc(&ftl);
	return !*state;
}

static int teardown(void **state)
{
	assert_null(works[0]);
	assert_int_equal(stats.sending, stats.landed);
	mtftl_resets_free(*state);
	free(ftl.zones);
	return kernel_allocated;
}

static void expect_reset(const struct mtftl_resets *resets)
{
	assert_int_equal(resets_sent, 1);
	assert_int_equal(mtftl_zone(&ftl, ZONE)->state, MTFTL_ZONE_EMPTY);
	assert_true(list_empty(&resetting) && list_is_singular(&empty));
	assert_false(mtftl_resets_failed(resets));
}

/* It stays in its state, for a table that may write. */
static void expect_given_up(const struct mtftl_resets *resets)
{
	assert_int_equal(sat_out, 1);
	assert_int_equal(resets_sent, 0);
	assert_int_equal(mtftl_zone(&ftl, ZONE)->state, MTFTL_ZONE_RESETTING);
	assert_true(list_is_singular(&resetting));
	assert_true(mtftl_resets_failed(resets));
}

static void a_zone_is_reset_behind_a_flush(void **state)
{
	mtftl_resets_kick(*state);
	run_works();
	assert_int_equal(flushes_sent, 1);
	assert_int_equal(resets_sent, 0);
	run_works();
	expect_reset(*state);
	run_works();
	assert_int_equal(sat_out, 0);
}

/* An eraser waits for the end of a pause. */
static void a_reset_behind_a_pause(void **state, bool read_only)
{
	mtftl_resets_kick(*state);
	run_works();
	device.paused = true;
	ends_read_only = read_only;
	run_works();
	run_works();
}

static void a_reset_goes_on_behind_a_pause(void **state)
{
	a_reset_behind_a_pause(state, false);
	assert_int_equal(sat_out, 1);
	expect_reset(*state);
}

static void nothing_is_reset_behind_a_pause_that_ended_read_only(void **state)
{
	a_reset_behind_a_pause(state, true);
	expect_given_up(*state);
}

/* A settler does, in front of its flush. */
static void a_flush_behind_a_pause(void **state, bool read_only)
{
	pause_while_settling = true;
	ends_read_only = read_only;
	mtftl_resets_kick(*state);
	run_works();
	pause_while_settling = false;
	run_works();
	run_works();
}

static void a_flush_goes_on_behind_a_pause(void **state)
{
	a_flush_behind_a_pause(state, false);
	assert_int_equal(sat_out, 1);
	assert_int_equal(flushes_sent, 1);
	expect_reset(*state);
}

static void nothing_is_flushed_behind_a_pause_that_ended_read_only(void **state)
{
	a_flush_behind_a_pause(state, true);
	assert_int_equal(flushes_sent, 0);
	expect_given_up(*state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_zone_is_reset_behind_a_flush),
		TEST(a_reset_goes_on_behind_a_pause),
		TEST(nothing_is_reset_behind_a_pause_that_ended_read_only),
		TEST(a_flush_goes_on_behind_a_pause),
		TEST(nothing_is_flushed_behind_a_pause_that_ended_read_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
