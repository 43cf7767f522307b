// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of GC's walk of one zone (walk.c, scan.c, parse.c of the module): what a zone
 * holds, by its footer or by its headers, and zones that no writer makes. Every read is checked
 * against the zone. GC's buffers are as large as GC makes them, under ASan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "device/device.h"
#include "device/rw.h"
#include "zone/walk.h"
#include "zone/zones.h"

#define SEED		42u
#define ZONE		5u
#define ERASES		7u
#define FOOTER_UNIT	31u	/* blocks of the stream in one unit */
#define MAX_CAPACITY	275712u

/* The zone; a block that is not there reads as zeroes. */
static u8 *blocks[MAX_CAPACITY];
static struct mtftl_oob oob[MAX_CAPACITY];
static u32 reads, blocks_read;
static u32 unreadable = MAX_CAPACITY;	/* a block that cannot be read, with this error */
static int unreadable_error = -ENODATA;	/* the medium has lost it */
static struct mtftl_cpu_stats stats;
static struct mtftl_device device = { .stats = &stats };
static u32 pauses;		/* that were sat out: there is one in each read */

static u8 *block_at(u32 at)
{
	if (!blocks[at])
		blocks[at] = calloc(1, MTFTL_BLOCK_SIZE);
	return blocks[at];
}

void mtftl_space_send_begin(struct mtftl *ftl)
{
	/* Whatever waits for the end of a pause must have nothing in flight. */
	assert_int_equal(stats.sending, stats.landed);
	stats.sending++;
	device.paused = false;
	pauses++;
}

int mtftl_rw_sync(struct mtftl *ftl, blk_opf_t opf, u32 page, void *data, u32 nr)
{
	u32 at = page & ((1u << ftl->config.zone_shift) - 1), i;

	(void)opf;
	device.paused = true;
	reads++;
	blocks_read += nr;
	assert_int_equal(page >> ftl->config.zone_shift, ZONE);
	assert_in_range(nr, 1, MTFTL_BUFFER_BLOCKS);
	assert_in_range(at + nr, 1, ftl->config.capacity);
	if (at <= unreadable && unreadable < at + nr)
		return unreadable_error;
	for (i = 0; i < nr; i++) {
		if (blocks[at + i])
			memcpy((u8 *)data + i * MTFTL_BLOCK_SIZE, blocks[at + i],
			       MTFTL_BLOCK_SIZE);
		else
			memset((u8 *)data + i * MTFTL_BLOCK_SIZE, 0, MTFTL_BLOCK_SIZE);
	}
	return 0;
}

int mtftl_read_oob(struct mtftl *ftl, u32 page, void *data, u32 nr, void *to)
{
	u32 at = page & ((1u << ftl->config.zone_shift) - 1);

	memcpy(to, oob + at, nr * sizeof(*oob));
	return mtftl_rw_sync(ftl, REQ_OP_READ, page, data, nr);
}

/* What is written */

static void write_unit(u32 at, enum mtftl_unit_type type, u64 seq, u64 lba, u16 nr)
{
	struct mtftl_unit_info info = { .type = type, .nr_blocks = nr, .seq = seq };
	u8 *header = block_at(at);
	u16 i;

	mtftl_unit_init(header, &info);
	for (i = 0; i < nr; i++)
		mtftl_unit_add_entry(header, lba + i,
				     mtftl_payload_crc(SEED, block_at(at + 1 + i)));
	mtftl_unit_seal(header, SEED, ZONE, at, ERASES, 0);
}

static void write_bare(u32 at, u64 seq, u32 lba, u16 nr)
{
	u16 i;

	for (i = 0; i < nr; i++)
		mtftl_oob_compose(&oob[at + i], MTFTL_UNIT_DATA, seq, lba + i,
				  mtftl_payload_crc(SEED, block_at(at + i)), SEED, ZONE, ERASES);
}

/* FOOTER units from block @at on, for as many blocks of @stream as its tail will say. */
static void write_footer(u32 at, u32 capacity, const u8 *stream, const struct mtftl_footer *footer,
			 u32 erase_count)
{
	u32 left = DIV_ROUND_UP(footer->used, MTFTL_BLOCK_SIZE), index = 0, first = at, n, i;

	for (; left; left -= n, at += 1 + n) {
		struct mtftl_unit_info info = { .type = MTFTL_UNIT_FOOTER, .seq = 90 };
		u8 *header = block_at(at);

		n = min(left, FOOTER_UNIT);
		info.nr_blocks = n;
		mtftl_unit_init(header, &info);
		for (i = 0; i < n; i++, index++) {
			u8 *block = block_at(at + 1 + i);

			memcpy(block, stream + index * MTFTL_BLOCK_SIZE, MTFTL_BLOCK_SIZE);
			mtftl_unit_add_entry(header, index, mtftl_payload_crc(SEED, block));
		}
		mtftl_unit_seal(header, SEED, ZONE, at, erase_count, 0);
	}
	mtftl_tail_compose(block_at(capacity - 1), SEED, ZONE, ERASES, first, footer);
}

/* What is found */

struct found {
	u32 blocks;
	u32 ranges;
	u64 lbas;		/* their sum */
	const struct mtftl_config *config;
};

static void seen(void *private, enum mtftl_unit_type type, u32 header, u32 index, u64 lba)
{
	struct found *found = private;
	u32 at = header & ((1u << found->config->zone_shift) - 1);

	assert_int_equal(header >> found->config->zone_shift, ZONE);
	assert_in_range(at + mtftl_unit_head(!found->config->header_blocks, type) + index, 0,
			found->config->capacity - 1);
	assert_true(type != MTFTL_UNIT_RANGES || !index);
	found->ranges += type == MTFTL_UNIT_RANGES;
	found->blocks += type != MTFTL_UNIT_RANGES;
	found->lbas += lba;
}

/* With buffers as GC has them. */
static struct found walk(u32 capacity, bool is_oob)
{
	struct mtftl ftl = {
		.device = &device,
		.config = {
			.nr_zones = 64, .capacity = capacity, .seed = SEED,
			.header_blocks = !is_oob,
			.zone_shift = 32 - __builtin_clz(capacity),
			.meta_size = sizeof(struct mtftl_oob),
		},
	};
	void *buf = malloc(MTFTL_BUFFER_BLOCKS * MTFTL_BLOCK_SIZE);
	void *stream = malloc((size_t)MTFTL_BLOCK_SIZE *
			      mtftl_footer_stream_blocks(capacity, is_oob));
	struct mtftl_scanner *scanner = mtftl_scanner_alloc(&ftl, GFP_KERNEL);
	struct found found = { .config = &ftl.config };
	struct mtftl_zone *zone;
	u32 i;

	ftl.zones = calloc(1, sizeof(*ftl.zones) + 64 * sizeof(*ftl.zones->all));
	zone = mtftl_zone(&ftl, ZONE);
	zone->ftl = &ftl;
	zone->index = ZONE;
	zone->wp = capacity;
	zone->erase_count = ERASES;
	reads = 0;
	blocks_read = 0;
	pauses = 0;
	device.paused = false;
	stats.sending++;
	mtftl_zone_walk(zone, scanner, buf, stream, seen, &found);
	stats.landed++;
	assert_int_equal(stats.sending, stats.landed);
	assert_true(pauses || reads < 2);
	mtftl_scanner_free(scanner);
	free(ftl.zones);
	free(stream);
	free(buf);
	for (i = 0; i < MAX_CAPACITY; i++) {
		free(blocks[i]);
		blocks[i] = NULL;
	}
	memset(oob, 0, sizeof(oob));
	return found;
}

/* Tests */

#define CAPACITY	1536u

static _Alignas(8) u8 stream[2 * MTFTL_BLOCK_SIZE];
static struct mtftl_footer footer;

/* Two units of data and one of ranges in front of block @end, listed. */
static void write_units(void)
{
	const u64 first[] = { 100, 101, 102 }, second[] = { 200 };

	write_unit(0, MTFTL_UNIT_DATA, 10, 100, 3);
	write_unit(4, MTFTL_UNIT_RANGES, 12, 0, 0);
	write_unit(5, MTFTL_UNIT_DATA, 11, 200, 1);
	mtftl_footer_init(&footer, stream, sizeof(stream));
	mtftl_footer_add(&footer, 10, 0, MTFTL_UNIT_DATA, 3, first);
	mtftl_footer_add(&footer, 12, 4, MTFTL_UNIT_RANGES, 0, NULL);
	mtftl_footer_add(&footer, 11, 5, MTFTL_UNIT_DATA, 1, second);
}

static void assert_all_found(const struct found *found)
{
	assert_int_equal(found->blocks, 4);
	assert_int_equal(found->ranges, 1);
	assert_int_equal(found->lbas, 100 + 101 + 102 + 200);
}

static void footer_saves_reads(void **state)
{
	struct found found;

	(void)state;
	write_units();
	write_footer(7, CAPACITY, stream, &footer, ERASES);
	found = walk(CAPACITY, false);
	assert_all_found(&found);
	assert_int_equal(reads, 2);
}

static void a_footer_of_several_units_is_read(void **state)
{
	const u32 capacity = 27648, nr = 6000, size = 40 * MTFTL_BLOCK_SIZE;
	struct mtftl_footer long_one;
	u8 *longest = malloc(size);
	struct found found;
	u64 lba;

	(void)state;
	mtftl_footer_init(&long_one, longest, size);
	for (lba = 0; lba < nr; lba++)
		assert_int_equal(mtftl_footer_add(&long_one, 10 + lba, 2 * lba, MTFTL_UNIT_DATA, 1,
						  &lba), 0);
	write_footer(2 * nr, capacity, longest, &long_one, ERASES);
	found = walk(capacity, false);
	assert_int_equal(found.blocks, nr);
	assert_int_equal(found.lbas, (u64)nr * (nr - 1) / 2);
	/* The tail, and two units for 36 blocks. */
	assert_int_equal(reads, 3);
	free(longest);
}

static void headers_say_the_same(void **state)
{
	struct found found;

	(void)state;
	write_units();
	found = walk(CAPACITY, false);
	assert_all_found(&found);
}

static void footer_without_headers(void **state)
{
	const u64 lbas[] = { 5, 6 };
	struct found found;

	(void)state;
	write_bare(0, 10, 5, 2);
	mtftl_footer_init(&footer, stream, sizeof(stream));
	mtftl_footer_add(&footer, 10, 0, MTFTL_UNIT_DATA, 2, lbas);
	write_footer(2, CAPACITY, stream, &footer, ERASES);
	found = walk(CAPACITY, true);
	assert_int_equal(found.blocks, 2);
	assert_int_equal(reads, 2);
}

/* Blocks of the stream that a device with metadata may have, on one with headers. */
static void stream_longer_than_the_buffer_is_refused(void **state)
{
	const u32 capacities[] = { 120, 256, 512, CAPACITY, 27648, MAX_CAPACITY };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(capacities); i++) {
		u32 capacity = capacities[i], most = mtftl_footer_stream_blocks(capacity, true);
		u8 *longest = malloc((size_t)most * MTFTL_BLOCK_SIZE);
		struct mtftl_footer long_one = {
			.used = most * MTFTL_BLOCK_SIZE, .nr_records = 3, .min_seq = 10,
			.max_seq = 12,
		};
		struct found found;

		memset(longest, 'A', (size_t)most * MTFTL_BLOCK_SIZE);
		write_units();
		write_footer(capacity - 1 - most - DIV_ROUND_UP(most, FOOTER_UNIT), capacity,
			     longest, &long_one, ERASES);
		found = walk(capacity, false);
		assert_all_found(&found);
		free(longest);
	}
}

static void places_outside_the_zone_are_refused(void **state)
{
	const u32 offsets[] = { 7, CAPACITY - 1, CAPACITY, 2048, 1u << 31, ~0u - 1, ~0u };
	const u64 lba = 300;
	struct found found;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		write_units();
		mtftl_footer_add(&footer, 11, offsets[i], MTFTL_UNIT_DATA, 1, &lba);
		write_footer(7, CAPACITY, stream, &footer, ERASES);
		found = walk(CAPACITY, false);
		assert_all_found(&found);
	}
}

/* GC must not take a zone for empty that holds discards which its footer does not list. */
static void footer_that_lists_less_than_its_tail_says_is_refused(void **state)
{
	struct found found;

	(void)state;
	write_units();
	footer.nr_records++;
	write_footer(7, CAPACITY, stream, &footer, ERASES);
	found = walk(CAPACITY, false);
	assert_all_found(&found);
}

static void footer_units_of_another_life_are_refused(void **state)
{
	struct found found;

	(void)state;
	write_units();
	write_footer(7, CAPACITY, stream, &footer, ERASES - 1);
	found = walk(CAPACITY, false);
	assert_all_found(&found);
	assert_true(reads > 2);
}

/* Its stream goes on where the zone has ended. */
static void a_footer_that_the_zone_cuts_short_is_refused(void **state)
{
	const u32 at = CAPACITY - 4;
	struct mtftl_unit_info info = { .type = MTFTL_UNIT_FOOTER, .nr_blocks = 3, .seq = 90 };
	struct mtftl_footer longer;
	struct found found;

	(void)state;
	write_units();
	longer = footer;
	longer.used = 2 * MTFTL_BLOCK_SIZE;
	mtftl_unit_init(block_at(at), &info);
	memcpy(block_at(at + 1), stream, MTFTL_BLOCK_SIZE);
	mtftl_unit_add_entry(block_at(at), 0, mtftl_payload_crc(SEED, block_at(at + 1)));
	mtftl_unit_seal(block_at(at), SEED, ZONE, at, ERASES, 0);
	mtftl_tail_compose(block_at(CAPACITY - 1), SEED, ZONE, ERASES, at, &longer);
	found = walk(CAPACITY, false);
	assert_all_found(&found);
	assert_true(reads > 2);
}

/* Whether the medium has lost it, or an error may pass: the headers say the same. */
static void a_footer_that_cannot_be_read_is_done_without(void **state)
{
	static const int errors[] = { -ENODATA, -EILSEQ, -EIO, -ETIMEDOUT };
	static const u32 lost[] = { 7, 8, CAPACITY - 1 };
	struct found found;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(errors); i++)
		for (k = 0; k < ARRAY_SIZE(lost); k++) {
			unreadable_error = errors[i];
			unreadable = lost[k];
			write_units();
			write_footer(7, CAPACITY, stream, &footer, ERASES);
			found = walk(CAPACITY, false);
			assert_all_found(&found);
		}
	unreadable = MAX_CAPACITY;
	unreadable_error = -ENODATA;
}

/* Of a zone that was finished early: its units, and then nothing that is one. */
static void what_no_unit_covers_is_read_ahead(void **state)
{
	const u32 capacities[] = { CAPACITY, MAX_CAPACITY };
	struct found found;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(capacities); i++) {
		write_units();
		found = walk(capacities[i], false);
		assert_all_found(&found);
		/* Its tail, its units, and where the first of them ends. */
		assert_in_range(reads, 1, 8 + capacities[i] / 32);
		assert_in_range(blocks_read, 1, 64 + capacities[i]);
	}
}

static void short_units_are_read_ahead(void **state)
{
	struct found found;
	u32 at;

	(void)state;
	for (at = 0; at < CAPACITY; at += 2)
		write_unit(at, MTFTL_UNIT_DATA, 10 + at, at, 1);
	found = walk(CAPACITY, false);
	assert_int_equal(found.blocks, CAPACITY / 2);
	assert_in_range(reads, 1, 4 + CAPACITY / 32);
}

/* Their payload would be read for nothing. */
static void of_long_units_only_headers_are_read(void **state)
{
	struct found found;
	u32 at;

	(void)state;
	for (at = 0; at < CAPACITY; at += 32)
		write_unit(at, MTFTL_UNIT_DATA, 10 + at, at, 31);
	found = walk(CAPACITY, false);
	assert_int_equal(found.blocks, 31 * CAPACITY / 32);
	assert_int_equal(reads, 1 + CAPACITY / 32);
	assert_int_equal(blocks_read, reads);
}

static void an_unreadable_block_hides_no_other(void **state)
{
	struct found found;
	u32 at, is_oob;

	(void)state;
	for (is_oob = 0; is_oob < 2; is_oob++) {
		for (unreadable = 40; unreadable < 110; unreadable++) {
			for (at = 0; at < CAPACITY; at += 2) {
				if (is_oob)
					write_bare(at, 10 + at, at, 2);
				else
					write_unit(at, MTFTL_UNIT_DATA, 10 + at, at, 1);
			}
			found = walk(CAPACITY, is_oob);
			if (is_oob)
				assert_int_equal(found.blocks, CAPACITY - 1);
			else
				assert_int_equal(found.blocks, CAPACITY / 2 - !(unreadable % 2));
		}
	}
	unreadable = MAX_CAPACITY;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(footer_saves_reads),
		cmocka_unit_test(a_footer_of_several_units_is_read),
		cmocka_unit_test(headers_say_the_same),
		cmocka_unit_test(footer_without_headers),
		cmocka_unit_test(stream_longer_than_the_buffer_is_refused),
		cmocka_unit_test(places_outside_the_zone_are_refused),
		cmocka_unit_test(footer_that_lists_less_than_its_tail_says_is_refused),
		cmocka_unit_test(footer_units_of_another_life_are_refused),
		cmocka_unit_test(a_footer_that_the_zone_cuts_short_is_refused),
		cmocka_unit_test(a_footer_that_cannot_be_read_is_done_without),
		cmocka_unit_test(what_no_unit_covers_is_read_ahead),
		cmocka_unit_test(short_units_are_read_ahead),
		cmocka_unit_test(of_long_units_only_headers_are_read),
		cmocka_unit_test(an_unreadable_block_hides_no_other),
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
