// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of what a mount keeps of its finds (found.c of the module). They come in order
 * of numbers, in limited memory, and completely however many there are. A fatal signal ends it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "device/thread.h"
#include "durable/found.h"

#define LIMIT	(4u << 20)
#define SPARE	(1u << 20)	/* a chunk that is not full, and what does not grow */

static _Alignas(8) u8 header[MTFTL_BLOCK_SIZE];

static int add_unit(struct mtftl_finds *finds, u64 seq, u16 nr, u32 page)
{
	struct mtftl_unit_info info = {
		.type = MTFTL_UNIT_DATA, .seq = seq, .nr_entries = nr, .nr_blocks = nr,
	};
	u16 i;

	mtftl_unit_init(header, &info);
	for (i = 0; i < nr; i++)
		mtftl_unit_add_entry(header, page + i, 0);
	return mtftl_finds_add(finds, header, &info, page);
}

/* Records of numbers from @seq on. */
static int add_ranges(struct mtftl_finds *finds, u64 seq, u16 nr)
{
	struct mtftl_unit_info info = {
		.type = MTFTL_UNIT_RANGES, .seq = seq + nr, .nr_entries = nr,
	};
	u16 i;

	mtftl_unit_init(header, &info);
	for (i = 0; i < nr; i++)
		mtftl_unit_add_range(header, seq + i, 1, seq + i, MTFTL_RANGE_TRIM);
	return mtftl_finds_add(finds, header, &info, 0);
}

/* Numbers above @last, each once, in order, @step apart; the highest. */
static u64 drain(struct mtftl_finds *finds, u64 last, u64 step)
{
	struct mtftl_found *found;

	assert_int_equal(mtftl_finds_sort(finds), 0);
	while ((found = mtftl_finds_next(finds))) {
		assert_int_equal(found->seq, last + step);
		assert_null(found->same);
		last = found->seq;
	}
	return last;
}

static void numbers_come_in_order(void **state)
{
	struct mtftl_finds *finds = mtftl_finds_alloc(LIMIT, U64_MAX, 10);
	struct mtftl_found *found;

	(void)state;
	/* One of a unit's two places; the record has its own number, not its unit's. */
	assert_int_equal(add_unit(finds, 13, 2, 500), 0);
	assert_int_equal(add_unit(finds, 11, 3, 400), 0);
	assert_int_equal(add_ranges(finds, 12, 1), 0);
	assert_int_equal(add_unit(finds, 13, 2, 300), 0);
	assert_int_equal(add_unit(finds, 10, 1, 600), 0);
	assert_int_equal(add_unit(finds, 14, 0, 600), 0);
	assert_int_equal(mtftl_finds_nr(finds), 4);
	assert_int_equal(mtftl_finds_sort(finds), 0);

	found = mtftl_finds_next(finds);
	assert_int_equal(found->seq, 11);
	assert_int_equal(found->page, 400);
	assert_int_equal(found->nr, 3);
	assert_int_equal(found->lbas[2], 402);
	assert_null(found->same);
	found = mtftl_finds_next(finds);
	assert_int_equal(found->seq, 12);
	assert_int_equal(found->type, MTFTL_UNIT_RANGES);
	assert_int_equal(found->lba, 12);
	assert_int_equal(found->kind, MTFTL_RANGE_TRIM);
	found = mtftl_finds_next(finds);
	assert_int_equal(found->page, 300);
	assert_int_equal(found->same->page, 500);
	assert_null(found->same->same);
	assert_null(mtftl_finds_next(finds));
	assert_false(mtftl_finds_forget(finds));
	mtftl_finds_free(finds);
	assert_int_equal(kernel_allocated, 0);
}

/* As zones come: number by number, backwards, or all over. */
enum order { UP, DOWN, MIXED };

static u64 number(enum order order, u64 i, u64 nr)
{
	/* 7919 is prime to the sizes below. */
	return 1 + (order == UP ? i : order == DOWN ? nr - 1 - i : i * 7919 % nr);
}

static void all_is_found_in_bounded_memory(void **state)
{
	const u64 units = 200000;	/* 48 bytes each: more than twice the limit */
	enum order order;
	u64 i, last, looks;

	(void)state;
	for (order = UP; order <= MIXED; order++) {
		struct mtftl_finds *finds = mtftl_finds_alloc(LIMIT, U64_MAX, 0);

		kernel_peak = 0;
		last = 0;
		looks = 0;
		do {
			for (i = 0; i < units; i++)
				assert_int_equal(add_unit(finds, number(order, i, units), 3,
							  1000 + i), 0);
			last = drain(finds, last, 1);
			looks++;
		} while (mtftl_finds_forget(finds));
		assert_int_equal(last, units);
		assert_in_range(looks, 3, 8);
		assert_in_range(kernel_peak, LIMIT * 3 / 4, LIMIT + SPARE);
		mtftl_finds_free(finds);
	}
	assert_int_equal(kernel_allocated, 0);
}

static void records_are_bounded_too(void **state)
{
	struct mtftl_finds *finds = mtftl_finds_alloc(LIMIT, U64_MAX, 0);
	const u64 units = 3000, each = MTFTL_UNIT_MAX_RANGES;
	u64 i, last = 0;

	(void)state;
	kernel_peak = 0;
	do {
		for (i = 0; i < units; i++)
			assert_int_equal(add_ranges(finds, 1 + (units - 1 - i) * each, each), 0);
		last = drain(finds, last, 1);
	} while (mtftl_finds_forget(finds));
	assert_int_equal(last, units * each);
	assert_true(kernel_peak <= LIMIT + SPARE);
	mtftl_finds_free(finds);
}

/* Each look keeps half of the limit at least, so what all finds may take bounds the looks. */
static void looks_are_bounded_by_what_all_may_take(void **state)
{
	const u64 each = MTFTL_UNIT_MAX_RANGES, units = 8ull * LIMIT / (each * sizeof(struct mtftl_found));
	struct mtftl_finds *finds = mtftl_finds_alloc(LIMIT, 8ull * LIMIT, 0);
	u64 i, last = 0, looks = 0;

	(void)state;
	do {
		for (i = 0; i < units; i++)
			assert_int_equal(add_ranges(finds, number(MIXED, i, units) * each, each), 0);
		last = drain(finds, last ?: each - 1, 1);
		looks++;
	} while (mtftl_finds_forget(finds));
	assert_int_equal(last, (units + 1) * each - 1);
	assert_in_range(looks, 8, 2 * 8);
	mtftl_finds_free(finds);

	/* One unit more. */
	finds = mtftl_finds_alloc(LIMIT, 8ull * LIMIT, 0);
	for (i = 0; i < units; i++)
		assert_int_equal(add_ranges(finds, 1 + i * each, each), 0);
	assert_int_equal(add_ranges(finds, 1 + i * each, each), -EOVERFLOW);
	mtftl_finds_free(finds);
	assert_int_equal(kernel_allocated, 0);
}

/* No writer makes it, and nothing could be left out. */
static void one_number_everywhere_is_refused(void **state)
{
	struct mtftl_finds *finds = mtftl_finds_alloc(LIMIT, U64_MAX, 0);
	int r = 0;
	u32 i;

	(void)state;
	for (i = 0; !r && i < 200000; i++)
		r = add_unit(finds, 5, 3, i);
	assert_int_equal(r, -E2BIG);
	mtftl_finds_free(finds);

	/* If it is the lowest one, it comes first, and the others wait. */
	finds = mtftl_finds_alloc(LIMIT, U64_MAX, 0);
	for (i = 0, r = 0; !r && i < 60000; i++)
		r = add_unit(finds, 5, 3, i);
	for (i = 0; !r && i < 60000; i++)
		r = add_unit(finds, 6 + i, 3, i);
	assert_int_equal(r, 0);
	assert_int_equal(mtftl_finds_sort(finds), 0);
	assert_int_equal(mtftl_finds_next(finds)->seq, 5);
	assert_true(mtftl_finds_forget(finds));
	mtftl_finds_free(finds);

	/* With lower ones beside it those come first. */
	finds = mtftl_finds_alloc(LIMIT, U64_MAX, 0);
	for (i = 0, r = 0; !r && i < 1000; i++)
		r = add_unit(finds, 1 + i, 3, i);
	for (i = 0; !r && i < 200000; i++)
		r = add_unit(finds, 5000, 3, i);
	assert_int_equal(r, 0);
	assert_int_equal(drain(finds, 0, 1), 1000);
	assert_true(mtftl_finds_forget(finds));
	mtftl_finds_free(finds);
	assert_int_equal(kernel_allocated, 0);
}

static void a_fatal_signal_ends_it(void **state)
{
	struct mtftl_finds *finds = mtftl_finds_alloc(LIMIT, U64_MAX, 0);
	int r = 0;
	u32 i;

	(void)state;
	for (i = 0; i < 10000; i++)
		add_unit(finds, 1 + i, 3, i);
	kernel_kill_at = 1;
	assert_int_equal(mtftl_finds_sort(finds), -EINTR);
	for (i = 0; !r && i < 200000; i++)
		r = add_unit(finds, 20000 + i, 3, i);
	assert_int_equal(r, -EINTR);
	kernel_kill_at = 0;
	mtftl_finds_free(finds);
	assert_int_equal(kernel_allocated, 0);
}

/* Units until some are left out, or until it ends; how often it asked for a signal. */
static int fill_up(unsigned long kill_at, unsigned long *asked)
{
	struct mtftl_finds *finds = mtftl_finds_alloc(LIMIT, U64_MAX, 0);
	int r = 0;
	u64 i;

	kernel_asked = 0;
	kernel_kill_at = kill_at;
	for (i = 0; !r && mtftl_finds_nr(finds) == i; i++)
		r = add_unit(finds, 1 + i, 3, i);
	*asked = kernel_asked;
	kernel_kill_at = 0;
	mtftl_finds_free(finds);
	return r;
}

/* Also when the half that stays is known, and only its size is not. */
static void a_fatal_signal_ends_the_search_for_a_half(void **state)
{
	unsigned long all, asked;

	(void)state;
	assert_int_equal(fill_up(0, &all), 0);
	assert_true(all > 100);
	assert_int_equal(fill_up(all, &asked), -EINTR);
	assert_int_equal(asked, all);
	assert_int_equal(fill_up(all + 1, &asked), 0);
	assert_int_equal(kernel_allocated, 0);
}

/* Nothing stays behind. */
static void memory_that_is_short_ends_it(void **state)
{
	struct mtftl_numbers *numbers;
	struct mtftl_finds *finds;
	unsigned long at;
	int r = -ENOMEM;
	u64 i;

	(void)state;
	for (at = 1; r; at++) {
		assert_int_equal(r, -ENOMEM);
		kernel_allocations = 0;
		kernel_short_at = at;
		finds = mtftl_finds_alloc(LIMIT, U64_MAX, 0);
		numbers = finds ? mtftl_numbers_alloc() : NULL;
		r = numbers ? 0 : -ENOMEM;
		for (i = 1; !r && i < 1000; i++)
			r = mtftl_numbers_add(numbers, i);
		if (!r)
			r = add_unit(finds, 1, 3, 7);
		mtftl_numbers_free(numbers);
		mtftl_finds_free(finds);
		assert_int_equal(kernel_allocated, 0);
	}
	/* One object and three arrays; one, a set and a larger one; a chunk and a unit's blocks. */
	assert_int_equal(at - 2, 4 + 3 + 2);
	kernel_short_at = 0;
}

static void sets_of_numbers(void **state)
{
	struct mtftl_numbers *numbers = mtftl_numbers_alloc();
	u64 i;

	(void)state;
	assert_false(mtftl_numbers_has(numbers, 7));
	for (i = 1; i < 100000; i += 2)
		assert_int_equal(mtftl_numbers_add(numbers, i), 0);
	assert_int_equal(mtftl_numbers_add(numbers, 1), 0);
	for (i = 1; i < 100000; i++)
		assert_int_equal(mtftl_numbers_has(numbers, i), i % 2);
	mtftl_numbers_clear(numbers);
	assert_false(mtftl_numbers_has(numbers, 1));
	mtftl_numbers_free(numbers);
	assert_int_equal(kernel_allocated, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_come_in_order),
		cmocka_unit_test(all_is_found_in_bounded_memory),
		cmocka_unit_test(records_are_bounded_too),
		cmocka_unit_test(looks_are_bounded_by_what_all_may_take),
		cmocka_unit_test(one_number_everywhere_is_refused),
		cmocka_unit_test(a_fatal_signal_ends_it),
		cmocka_unit_test(a_fatal_signal_ends_the_search_for_a_half),
		cmocka_unit_test(memory_that_is_short_ends_it),
		cmocka_unit_test(sets_of_numbers),
	};

	return cmocka_run_group_tests_name("found", tests, NULL, NULL);
}
