// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of how a mount's work is spread (spread.c of the module): each part is done
 * once, by the mount or by a helper, and an error ends the work. A helper runs as soon as it is
 * asked, or never.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <linux/sched/signal.h>
#include <linux/workqueue.h>

#include "device/device.h"
#include "device/spread.h"
#include "device/thread.h"

#define MOST_PARTS	100u
#define FIRST_BUFFER	4ul	/* allocation: behind those that cannot be done without */

static struct mtftl ftl;
static unsigned int nr_cpus = 2;
static u32 done[MOST_PARTS + 1];
static u32 fails = MOST_PARTS;	/* the part that does */
static int here;

unsigned int mtftl_thread_nr_cpus(void)
{
	return nr_cpus;
}

const char *mtftl_disk_name(const struct mtftl *of)
{
	assert_ptr_equal(of, &ftl);
	return "dm-0";
}

static int part(void *private, u32 number, void *buf)
{
	assert_ptr_equal(private, &here);
	assert_in_range(number, 0, MOST_PARTS - 1);
	memset(buf, number, MTFTL_BUFFER_BLOCKS * MTFTL_BLOCK_SIZE);
	done[number]++;
	return number == fails ? -EIO : 0;
}

static void help_at_once(struct work_struct *work)
{
	assert_true(cancel_work(work));
	work->run(work);
}

static int do_parts(struct mtftl_spread *spread, u32 nr)
{
	memset(done, 0, sizeof(done));
	return mtftl_spread(spread, nr, part, &here);
}

static void expect_done(u32 nr)
{
	u32 i;

	for (i = 0; i <= MOST_PARTS; i++)
		assert_int_equal(done[i], i < nr);
}

static int setup(void **state)
{
	*state = mtftl_spread_alloc(&ftl);
	return !*state;
}

static int teardown(void **state)
{
	mtftl_spread_free(*state);
	kernel_queues = NULL;
	kernel_kill_at = 0;
	kernel_asked = 0;
	kernel_short_at = 0;
	fails = MOST_PARTS;
	nr_cpus = 2;
	assert_int_equal(kernel_allocated, 0);
	return 0;
}

static void each_part_is_done_once(void **state)
{
	const u32 parts[] = { 0, 1, 2, 8, 9, 10, MOST_PARTS, 3 };
	u32 i, helped;

	for (helped = 0; helped < 2; helped++) {
		kernel_queues = helped ? help_at_once : NULL;
		for (i = 0; i < ARRAY_SIZE(parts); i++) {
			assert_int_equal(do_parts(*state, parts[i]), 0);
			expect_done(parts[i]);
		}
	}
}

static void no_part_begins_after_an_error(void **state)
{
	u32 helped;

	fails = 3;
	for (helped = 0; helped < 2; helped++) {
		kernel_queues = helped ? help_at_once : NULL;
		assert_int_equal(do_parts(*state, 10), -EIO);
		expect_done(4);
	}
	/* It is the error of that work alone. */
	assert_int_equal(do_parts(*state, 3), 0);
}

/* The signal is the caller's. A helper is a thread of the kernel. */
static void a_signal_ends_the_callers_work(void **state)
{
	kernel_kill_at = 3;
	assert_int_equal(do_parts(*state, 10), -EINTR);
	expect_done(3);
	kernel_kill_at = 1;
	fails = 0;
	assert_int_equal(do_parts(*state, 10), -EIO);
	fails = MOST_PARTS;
	kernel_queues = help_at_once;
	assert_int_equal(do_parts(*state, 10), 0);
	expect_done(10);
}

/* Without helpers it is slower. */
static void a_caller_without_helpers_does_all(void **state)
{
	struct mtftl_spread *spread;
	unsigned long at, most = 0;

	for (at = 0; at <= most; at++) {
		kernel_allocations = 0;
		kernel_short_at = at;
		spread = mtftl_spread_alloc(&ftl);
		if (!at)
			most = kernel_allocations;
		assert_int_equal(!spread, at && at <= FIRST_BUFFER);
		kernel_short_at = 0;
		if (!spread)
			continue;
		assert_int_equal(do_parts(spread, MOST_PARTS), 0);
		expect_done(MOST_PARTS);
		mtftl_spread_free(spread);
	}
	assert_int_equal(most, FIRST_BUFFER + 2 * 4);
	/* A large machine does not need one for each of its CPUs. */
	nr_cpus = 100;
	kernel_allocations = 0;
	mtftl_spread_free(mtftl_spread_alloc(&ftl));
	assert_int_equal(kernel_allocations, FIRST_BUFFER + 32);
}

static void what_is_shrunk_has_no_buffers(void **state)
{
	const size_t buffer = MTFTL_BUFFER_BLOCKS * MTFTL_BLOCK_SIZE;

	assert_true(kernel_allocated > 9 * buffer);
	mtftl_spread_shrink(*state);
	assert_true(kernel_allocated < buffer);
	mtftl_spread_shrink(*state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(each_part_is_done_once),
		TEST(no_part_begins_after_an_error),
		TEST(a_signal_ends_the_callers_work),
		TEST(a_caller_without_helpers_does_all),
		TEST(what_is_shrunk_has_no_buffers),
	};

	return cmocka_run_group_tests_name("spread", tests, NULL, NULL);
}
