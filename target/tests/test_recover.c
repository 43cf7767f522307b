// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of what a mount finds in zones after a power cut (recover.c, found.c, scan.c): torn
 * blocks and payloads, lives of a zone, headers and footers, and what it makes of zones written in part.
 */
#include "recovery.h"

#include "check.h"
#include "durable/checkpoint.h"
#include "module.h"
#include "zone/super.h"
#include "zone/zones.h"

/* Before a mount, which may write. */
static void assert_checks(u64 errors, u64 lost)
{
	struct report report = { .quiet = true };
	struct check_totals totals;

	assert_int_equal(check_flash(&image->flash, &report, &totals), 0);
	assert_int_equal(report.errors, errors);
	assert_int_equal(totals.lost, lost);
}

/* Sectors of 512 bytes */

static void a_header_in_a_torn_block_claims_its_payload(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	u32 old = put(FIRST_DATA, 1, 5, 9), new;

	cut(FIRST_DATA, image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 2, 3, lbas, contents), 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], old);
	/* No other unit gets its number, and the next one lies behind what the header claims. */
	assert_int_equal(mtftl_seq_last(&ftl), 2);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 2 + 4);
	new = put(FIRST_DATA, 3, 8, 4);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], old);
	assert_int_equal(map.entries[8], new);
}

static void a_torn_block_in_an_empty_zone(void **state)
{
	u32 new;

	put(FIRST_DATA, 1, 5, 9);
	cut(FIRST_DATA, 0, 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 2);
	new = put(FIRST_DATA, 2, 6, 9);
	mount_like_the_tool();
	assert_int_equal(map.entries[6], new);
}

/* A unit of few ranges is whole in its first sector. */
static void ranges_in_a_torn_block_count(void **state)
{
	put(FIRST_DATA, 1, 5, 9);
	cut(FIRST_DATA, image_write_range(image, FIRST_DATA, 3, 5, 1, 2, MTFTL_RANGE_TRIM), 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->ranges_seq, 3);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
}

static void a_torn_block_that_the_medium_has_lost_claims_nothing(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	u32 old = put(FIRST_DATA, 1, 5, 9);

	cut(FIRST_DATA, image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 2, 3, lbas, contents), 1);
	unreadable = flash_page(&image->flash, FIRST_DATA, 2);
	mount();
	assert_int_equal(map.entries[5], old);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 2 + 1);
}

/* On a device that has its headers in metadata, whatever a block looks like. */
static void data_that_looks_like_a_header_claims_nothing(void **state)
{
	struct mtftl_unit_info info = { .type = MTFTL_UNIT_DATA, .seq = 9, .nr_blocks = 3 };
	u8 *block = image_block(image, FIRST_DATA, 1);
	u32 old = put(FIRST_DATA, 1, 5, 9), i;

	mtftl_unit_init(block, &info);
	for (i = 0; i < 3; i++)
		mtftl_unit_add_entry(block, 5 + i, i);
	mtftl_unit_seal(block, image->seed, FIRST_DATA, 1, image->erase_count[FIRST_DATA], 0);
	image->flash.zones[FIRST_DATA].wp = 2;
	cut(FIRST_DATA, 1, 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], old);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 1 + 1);
	assert_int_equal(mtftl_seq_last(&ftl), 1);
}

static void what_is_no_header_in_a_torn_block(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	u32 whole, new;

	/* In a payload. */
	image->durable_seq = 0;
	whole = image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1, 3, lbas, contents);
	cut(FIRST_DATA, whole + 2, 3);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], flash_page(&image->flash, FIRST_DATA, 1));
	assert_int_equal(map.entries[6], MTFTL_MAP_UNMAPPED);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 4);
	/* A header of which the last entries are missing. */
	cut(FIRST_DATA, 4, 0);
	put(FIRST_DATA, 2, 8, 8);
	image_block(image, FIRST_DATA, 4)[40] ^= 1;
	cut(FIRST_DATA, 4, 2);
	mount_like_the_tool();
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->wp, 5);
	new = put(FIRST_DATA, 3, 9, 9);
	mount_like_the_tool();
	assert_int_equal(map.entries[9], new);
}

/* Lives of a zone */

/* The first header is torn, and its payload a copy of a header of the zone's life before. */
static void a_copy_from_an_earlier_life_hides_nothing(void **state)
{
	const u64 lba = 5;
	const u16 content = 1;
	u8 copy[MTFTL_BLOCK_SIZE];
	u32 there;

	/* Placed by zone append, so it verifies anywhere in the zone. */
	image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1, 1, &lba, &content);
	mtftl_unit_seal(image_block(image, FIRST_DATA, 0), image->seed, FIRST_DATA,
			MTFTL_ANY_OFFSET, image->erase_count[FIRST_DATA], 0);
	memcpy(copy, image_block(image, FIRST_DATA, 0), sizeof(copy));
	image_reset_zone(image, FIRST_DATA);
	put(FIRST_DATA, 2, 6, 2);
	memcpy(image_block(image, FIRST_DATA, 1), copy, sizeof(copy));
	there = put(FIRST_DATA, 3, 7, 3);
	image_block(image, FIRST_DATA, 0)[60] ^= 1;
	mount_like_the_tool();
	assert_int_equal(map.entries[7], there);
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
}

/* Of the life that the zone has, and of a unit that was found in front of it. */
static void a_copy_of_what_was_found_hides_nothing(void **state)
{
	const u64 lba = 5;
	const u16 content = 1;
	u32 there;

	image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1, 1, &lba, &content);
	put(FIRST_DATA, 2, 6, 2);
	memcpy(image_block(image, FIRST_DATA, 3), image_block(image, FIRST_DATA, 0),
	       MTFTL_BLOCK_SIZE);
	there = put(FIRST_DATA, 3, 7, 3);
	image_block(image, FIRST_DATA, 2)[60] ^= 1;
	mount_like_the_tool();
	assert_int_equal(map.entries[5], flash_page(&image->flash, FIRST_DATA, 1));
	assert_int_equal(map.entries[6], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[7], there);
}

/* Numbers that the checkpoint has say nothing of a life that began after it. */
static void what_is_older_than_the_checkpoint_tells_no_life(void **state)
{
	static _Alignas(8) u8 older[MTFTL_BLOCK_SIZE];
	struct mtftl_unit_info info = { .type = MTFTL_UNIT_DATA, .seq = 5, .nr_blocks = 1 };
	u32 there, i;

	image_write_checkpoint(image, 2, 10, map_of_blocks(0), 0);
	mtftl_unit_init(older, &info);
	mtftl_unit_add_entry(older, 5, 0);
	mtftl_unit_seal(older, image->seed, FIRST_DATA, MTFTL_ANY_OFFSET, 7, 0);
	put(FIRST_DATA, 21, 6, 2);
	there = put(FIRST_DATA, 22, 7, 3);
	/* As the payload of both. */
	for (i = 1; i < 4; i += 2)
		memcpy(image_block(image, FIRST_DATA, i), older, sizeof(older));
	image_block(image, FIRST_DATA, 0)[60] ^= 1;
	image->durable_seq = 22;
	put(FIRST_DATA + 1, 23, 8, 4);
	mount();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[7], there);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->erase_count, image->erase_count[FIRST_DATA]);
}

/* What tells the zone's life is read with a block that cannot be read. */
static void a_life_is_found_beside_what_cannot_be_read(void **state)
{
	const u64 lba = 5;
	const u16 content = 1;
	u8 copy[MTFTL_BLOCK_SIZE];
	u32 there;

	image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1, 1, &lba, &content);
	memcpy(copy, image_block(image, FIRST_DATA, 0), sizeof(copy));
	image_reset_zone(image, FIRST_DATA);
	put(FIRST_DATA, 2, 6, 2);
	memcpy(image_block(image, FIRST_DATA, 1), copy, sizeof(copy));
	there = put(FIRST_DATA, 3, 7, 3);
	image_block(image, FIRST_DATA, 0)[60] ^= 1;
	image->durable_seq = 3;
	put(FIRST_DATA + 1, 4, 8, 4);
	unreadable = there;
	mount();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[7], there);
}

/*
 * A checkpoint's map has units that were in flight when its zone records were captured. So a record
 * of write pointer 0 does not say that no entry points into the zone.
 */
static void an_entry_of_an_earlier_life_is_lost(void **state)
{
	u32 head = !image->sb.oob, entries[IMAGE_LOGICAL], kept, other;

	/* Metadata has the lowest 14 bits alone: zeroes after the next reset. */
	image->erase_count[FIRST_DATA] = 0x7fff;
	image->erase_count[FIRST_DATA + 1] = 0x7fff;
	memset(entries, 0xff, sizeof(entries));
	entries[5] = flash_page(&image->flash, FIRST_DATA, head);
	entries[6] = flash_page(&image->flash, FIRST_DATA + 1, head);
	image_write_checkpoint(image, 2, 10, entries, 0);
	assert_int_equal(put(FIRST_DATA, 1, 5, 9), entries[5]);
	kept = put(FIRST_DATA + 1, 2, 6, 9);
	put(FIRST_DATA + 2, 11, 5, 9);
	image_reset_zone(image, FIRST_DATA);
	other = put(FIRST_DATA, 12, 7, 7);
	assert_int_equal(other, entries[5]);
	image_block(image, FIRST_DATA + 2, 0)[60] ^= 1;
	assert_checks(0, 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[6], kept);
	assert_int_equal(map.entries[7], other);
}

/* The zone's life is then what a unit behind it says. */
static void an_entry_of_an_earlier_life_behind_a_torn_unit(void **state)
{
	u32 entries[IMAGE_LOGICAL], other;

	memset(entries, 0xff, sizeof(entries));
	entries[5] = put(FIRST_DATA, 1, 5, 9);
	image_write_checkpoint(image, 2, 10, entries, 0);
	image_reset_zone(image, FIRST_DATA);
	put(FIRST_DATA, 11, 7, 7);
	other = put(FIRST_DATA, 12, 8, 8);
	image_block(image, FIRST_DATA, 0)[60] ^= 1;
	assert_checks(0, 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[7], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[8], other);
}

static void an_entry_of_an_empty_zone_is_lost(void **state)
{
	u32 entries[IMAGE_LOGICAL], kept, newer;

	memset(entries, 0xff, sizeof(entries));
	entries[5] = put(FIRST_DATA, 1, 5, 9);
	entries[6] = put(FIRST_DATA + 1, 2, 6, 9);
	entries[7] = put(FIRST_DATA, 3, 7, 9);
	kept = entries[6];
	image_write_checkpoint(image, 2, 10, entries, 0);
	newer = put(FIRST_DATA + 2, 11, 7, 7);
	image_reset_zone(image, FIRST_DATA);
	assert_checks(0, 1);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[6], kept);
	assert_int_equal(map.entries[7], newer);
}

/* The drive lost it, so this is an error. Reads tell what a zone that is offline holds. */
static void an_entry_behind_the_write_pointer_is_lost(void **state)
{
	const u16 flags[] = { 0, MTFTL_SB_CLEAN };
	u32 entries[IMAGE_LOGICAL], i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		unmount();
		image_free(image);
		setup(state);
		memset(entries, 0xff, sizeof(entries));
		entries[5] = put(FIRST_DATA, 1, 5, 9);
		entries[6] = put(FIRST_DATA, 2, 6, 9);
		entries[7] = put(FIRST_DATA + 1, 3, 7, 9);
		image_write_checkpoint(image, 2, 10, entries, flags[i]);
		cut(FIRST_DATA, 2, 0);
		image->flash.zones[FIRST_DATA + 1] = (struct flash_zone) { .cond = FLASH_OFFLINE };
		/* And one of the zone that is offline. */
		assert_checks(2, 1);
		module_news = 0;
		mount_like_the_tool();
		assert_int_equal(stats.lost_blocks, 1);
		/* It tells of the zone that is offline, too, unless the stop was clean. */
		assert_int_equal(module_news, 1 + !flags[i]);
		/* What comes to lie there now must not be taken for what is lost. */
		assert_true(mtftl_zone(&ftl, FIRST_DATA)->broken);
		assert_false(mtftl_super_is_clean(&ftl));
		assert_int_equal(map.entries[5], entries[5]);
		assert_int_equal(map.entries[6], MTFTL_MAP_LOST);
		assert_int_equal(map.entries[7], entries[7]);
	}
}

/* The checkpoint's record ends within what is there now. */
static void a_zone_that_was_reset_is_read_from_its_beginning(void **state)
{
	u32 entries[IMAGE_LOGICAL], pages[3], i;

	memset(entries, 0xff, sizeof(entries));
	entries[5] = put(FIRST_DATA, 1, 5, 9);
	put(FIRST_DATA, 2, 6, 9);
	image_write_checkpoint(image, 2, 10, entries, 0);
	image_reset_zone(image, FIRST_DATA);
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = put(FIRST_DATA, 11 + i, i, i);
	mount_like_the_tool();
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		assert_int_equal(map.entries[i], pages[i]);
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->first_seq, 11);
}

static void entries_of_all_parts_are_looked_at(void **state)
{
	const u32 lbas[] = { 0, 0x3fff, 0x4000, 0x8000, LARGE_LOGICAL - 1 };
	u32 *entries = begin_large(LARGE_CAPACITY, LARGE_LOGICAL), i;

	for (i = 0; i < ARRAY_SIZE(lbas); i++)
		entries[lbas[i]] = put(LARGE_DATA + i % 2, 1 + i, lbas[i], i);
	image_write_checkpoint(image, 2, 10, entries, 0);
	mount_like_the_tool();
	for (i = 0; i < ARRAY_SIZE(lbas); i++)
		assert_int_equal(map.entries[lbas[i]], entries[lbas[i]]);
	image_reset_zone(image, LARGE_DATA);
	mount_like_the_tool();
	for (i = 0; i < ARRAY_SIZE(lbas); i++)
		assert_int_equal(map.entries[lbas[i]], i % 2 ? entries[lbas[i]] : MTFTL_MAP_LOST);
	free(entries);
}

/* The block behind a zone's last one is the first of the next zone. */
static void blocks_that_go_on_in_the_next_zone_are_there(void **state)
{
	const u32 capacity = 128;
	u32 page = 0, i;

	image_free(image);
	image = image_new_of(IMAGE_ZONES, capacity, capacity, IMAGE_LOGICAL);
	image->sb.oob = true;
	image_write_super(image, 0);
	for (i = 0; i <= capacity; i++)
		page = put(FIRST_DATA + i / capacity, 1 + i, i, i);
	mount();
	assert_int_equal(stats.lost_blocks, 0);
	assert_int_equal(page, map.entries[capacity - 1] + 1);
	assert_int_equal(map.entries[capacity], page);
}

/* Headers that cannot be read, and footers */

static void a_durable_unit_whose_header_is_lost_is_in_the_footer(void **state)
{
	const u32 lost[] = { 0, 3, 4, 7 };
	u32 old, i;

	for (i = 0; i < ARRAY_SIZE(lost); i++) {
		unmount();
		image_free(image);
		setup(state);
		old = put(FIRST_DATA + 1, 1, lost[i], 1);
		fill_with_footer(FIRST_DATA, 8, 0, 2);
		fill_with_footer(FIRST_DATA + 2, 8, 50, 20);
		image->durable_seq = 40;
		put(FIRST_DATA + 1, 41, 100, 1);
		mount_like_the_tool();
		assert_int_not_equal(map.entries[lost[i]], old);
		lose_header(FIRST_DATA, lost[i]);
		lose_header(FIRST_DATA + 2, lost[i]);
		mount_like_the_tool();
		assert_int_equal(map.entries[lost[i]],
				 flash_page(&image->flash, FIRST_DATA, 2 * lost[i] + 1));
		assert_int_equal(map.entries[50 + lost[i]],
				 flash_page(&image->flash, FIRST_DATA + 2, 2 * lost[i] + 1));
		assert_int_equal(map.entries[100], flash_page(&image->flash, FIRST_DATA + 1, 3));
	}
}

/* Its checksums are gone with its header: a cut may have torn it. */
static void a_unit_whose_header_is_lost_counts_only_if_durable(void **state)
{
	u32 old = put(FIRST_DATA + 1, 1, 3, 1);

	image->durable_seq = 1;
	fill_with_footer(FIRST_DATA, 8, 0, 2);
	lose_header(FIRST_DATA, 3);
	mount_like_the_tool();
	assert_int_equal(map.entries[3], old);
	assert_int_equal(map.entries[4], flash_page(&image->flash, FIRST_DATA, 9));
}

/* The tail is a user's copy from the zone's life before. */
static void a_tail_of_an_earlier_life_says_nothing(void **state)
{
	u32 last = image->flash.zone_capacity - 1;
	u8 copy[MTFTL_BLOCK_SIZE];

	fill_with_footer(FIRST_DATA, 8, 0, 1);
	memcpy(copy, image_block(image, FIRST_DATA, last), sizeof(copy));
	image_reset_zone(image, FIRST_DATA);
	fill_with_footer(FIRST_DATA, 8, 0, 100);
	memcpy(image_block(image, FIRST_DATA, last), copy, sizeof(copy));
	lose_header(FIRST_DATA, 0);
	mount_like_the_tool();
	assert_int_equal(map.entries[0], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[1], flash_page(&image->flash, FIRST_DATA, 3));
}

/* An entry that the checkpoint has in a life before, where the life is the tail's to say. */
static void an_entry_of_an_earlier_life_in_a_zone_with_a_footer(void **state)
{
	u32 entries[IMAGE_LOGICAL];

	memset(entries, 0xff, sizeof(entries));
	entries[50] = put(FIRST_DATA, 1, 50, 9);
	image_write_checkpoint(image, 2, 10, entries, 0);
	image_reset_zone(image, FIRST_DATA);
	fill_with_footer(FIRST_DATA, 8, 0, 11);
	image->durable_seq = 30;
	put(FIRST_DATA + 1, 31, 100, 1);
	lose_header(FIRST_DATA, 0);
	mount_like_the_tool();
	assert_int_equal(map.entries[50], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[0], flash_page(&image->flash, FIRST_DATA, 1));
}

/* One look for it: nothing is in the zone that a footer could list. */
static void a_zone_without_a_footer_costs_one_read(void **state)
{
	u64 before;

	put(FIRST_DATA, 1, 5, 9);
	mount();
	image->flash.zones[FIRST_DATA].cond = FLASH_FULL;
	image->flash.zones[FIRST_DATA].wp = image->flash.zone_capacity;
	mount();
	before = drive.blocks_read;
	assert_in_range(before, image->flash.zone_capacity, 2 * image->flash.zone_capacity);
}

/* A zone that is offline after a cut, by its checkpoint and whether that is clean. */
static bool tells_of_offline(void **state, u16 super_flags, bool retired)
{
	u32 entries[IMAGE_LOGICAL];

	unmount();
	image_free(image);
	setup(state);
	memset(entries, 0xff, sizeof(entries));
	entries[5] = put(FIRST_DATA, 1, 5, 9);
	image->flash.zones[FIRST_DATA + 1] = (struct flash_zone) { .cond = FLASH_OFFLINE };
	image->retired = retired ? FIRST_DATA + 1 : 0;
	image_write_checkpoint(image, 2, 10, entries, super_flags);
	kernel_listens = "zone %u is offline";
	kernel_told = NULL;
	mount();
	kernel_listens = NULL;
	return kernel_told;
}

/* What was written to it since the checkpoint is hidden. */
static void an_offline_zone_is_told_after_a_cut(void **state)
{
	assert_true(tells_of_offline(state, 0, false));
	assert_false(tells_of_offline(state, MTFTL_SB_CLEAN, false));
	assert_false(tells_of_offline(state, 0, true));
}

/* Torn payloads, on flash that fails to be read */

/* What cannot be read together is read block by block. */
static void a_payload_that_cannot_be_read_costs_one_block(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	u32 old = put(FIRST_DATA, 1, 6, 9), new;

	image->durable_seq = 1;
	new = flash_page(&image->flash, FIRST_DATA + 1, 1);
	image_write_unit(image, FIRST_DATA + 1, MTFTL_UNIT_DATA, 2, 3, lbas, contents);
	unreadable = new + 1;
	mount();
	assert_int_equal(map.entries[5], new);
	assert_int_equal(map.entries[6], old);
	assert_int_equal(map.entries[7], new + 2);
	/* An error that may pass is no answer. */
	unreadable_error = -EIO;
	assert_int_equal(try_to_mount(), -EIO);
	/* A header that cannot be read hides its unit. */
	unreadable_error = -EILSEQ;
	unreadable = new - 1;
	mount();
	assert_int_equal(map.entries[5], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[6], old);
}

/* Not by what the buffer has from the unit before, which had the same content. */
static void a_payload_that_cannot_be_read_is_not_verified(void **state)
{
	const u64 lbas[2][3] = { { 5, 6, 7 }, { 15, 16, 17 } };
	const u16 contents[] = { 1, 2, 3 };
	u32 i;

	for (i = 0; i < 2; i++)
		image_write_unit(image, FIRST_DATA + i, MTFTL_UNIT_DATA, 2 + i, 3, lbas[i],
				 contents);
	unreadable = flash_page(&image->flash, FIRST_DATA + 1, 2);
	mount();
	for (i = 0; i < 3; i++)
		assert_int_equal(map.entries[5 + i], flash_page(&image->flash, FIRST_DATA, 1 + i));
	assert_int_equal(map.entries[16], MTFTL_MAP_UNMAPPED);
	assert_int_equal(map.entries[17], flash_page(&image->flash, FIRST_DATA + 1, 3));
}

/* And than what is read at once; by GC, too. */
static void a_unit_longer_than_the_buffer_is_verified(void **state)
{
	const u32 nr = 2 * MTFTL_BUFFER_BLOCKS - 1, torn = nr - 3;
	u64 lbas[2 * MTFTL_BUFFER_BLOCKS];
	u16 contents[2 * MTFTL_BUFFER_BLOCKS];
	u32 i;

	for (i = 0; i < nr; i++) {
		lbas[i] = 2 * i;
		contents[i] = 100 + i;
	}
	image_write_unit(image, FIRST_DATA, MTFTL_UNIT_GC, 2, nr, lbas, contents);
	image_block(image, FIRST_DATA, 1 + torn)[9] ^= 1;
	mount_like_the_tool();
	for (i = 0; i < nr; i++)
		assert_int_equal(map.entries[2 * i],
				 i == torn ? MTFTL_MAP_UNMAPPED :
					     flash_page(&image->flash, FIRST_DATA, 1 + i));
}

/* Of two units with one number the valid one counts: a write failed, and was done again. */
static void a_unit_that_was_written_twice_is_whole_in_one_place(void **state)
{
	const u64 lbas[] = { 5, 6 };
	const u16 contents[] = { 1, 2 };
	u32 broken, i;

	for (i = 0; i < 2; i++) {
		begin_anew(state);
		put(FIRST_DATA + 2, 1, 5, 9);
		image->durable_seq = 1;
		image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 2, 2, lbas, contents);
		image_write_unit(image, FIRST_DATA + 1, MTFTL_UNIT_DATA, 2, 2, lbas, contents);
		image->durable_seq = 2;
		put(FIRST_DATA + 2, 3, 7, 9);
		broken = FIRST_DATA + i;
		image_block(image, broken, 1)[9] ^= 1;
		image_block(image, broken, 2)[9] ^= 1;
		mount_like_the_tool();
		assert_int_equal(map.entries[5], flash_page(&image->flash, FIRST_DATA + !i, 1));
		assert_int_equal(map.entries[6], flash_page(&image->flash, FIRST_DATA + !i, 2));
		/* In neither: older data does not come back. */
		image_block(image, FIRST_DATA + !i, 1)[9] ^= 1;
		mount_like_the_tool();
		assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
		assert_int_equal(map.entries[6], flash_page(&image->flash, FIRST_DATA + !i, 2));
	}
}

static void reseal_as_newer(u32 zone, u32 at)
{
	struct mtftl_unit *unit = (void *)image_block(image, zone, at);

	unit->version++;
	mtftl_unit_seal(unit, image->seed, zone, at, image->erase_count[zone], 0);
}

static void a_unit_of_a_newer_version_ends_the_mount(void **state)
{
	u32 zone, at;

	for (zone = FIRST_DATA; zone < FIRST_DATA + 2; zone++)
		for (at = 0; at < 4; at += 2) {
			begin_anew(state);
			put(zone, 1, 5, 9);
			put(zone, 2, 6, 9);
			reseal_as_newer(zone, at);
			assert_int_equal(try_to_mount(), -EPROTO);
			/* Nothing was written. */
			assert_int_equal(drive.commands, drive.reads);
			assert_int_equal(image->flash.zones[zone].wp, 4);
		}
}

/* A user may have copied it. */
static void a_unit_of_a_newer_version_in_a_payload_is_data(void **state)
{
	u32 behind;

	put(FIRST_DATA, 1, 5, 9);
	put(FIRST_DATA, 2, 6, 9);
	behind = put(FIRST_DATA, 3, 7, 9);
	reseal_as_newer(FIRST_DATA, 2);
	image_block(image, FIRST_DATA, 0)[9] ^= 1;
	mount_like_the_tool();
	assert_int_equal(map.entries[7], behind);
}

static void expect_writes_until(u32 erases)
{
	assert_int_equal(try_to_mount(), erases > MTFTL_MAX_ERASES ? -EINVAL : 0);
	if (erases > MTFTL_MAX_ERASES)
		return;
	assert_int_equal(mtftl_is_read_only(&ftl), erases > MTFTL_MAX_ERASES / 2);
	if (!mtftl_is_read_only(&ftl)) {
		assert_int_equal(mtftl_checkpoint(&ftl, false), 0);
		mount();
	}
}

/* Counting on would wrap, and a life would look like an older one. */
static void erase_counts_are_bounded(void **state)
{
	const u32 most[] = { MTFTL_MAX_ERASES / 2, MTFTL_MAX_ERASES, MTFTL_MAX_ERASES + 1 };
	u32 entries[IMAGE_LOGICAL], high, torn;

	memset(entries, 0xff, sizeof(entries));
	for (high = 0; high < ARRAY_SIZE(most); high++) {
		/* In the record of a zone set aside, which the first checkpoint resets. */
		begin_anew(state);
		image->erase_count[3] = most[high];
		image_write_checkpoint(image, 2, 1, entries, 0);
		expect_writes_until(most[high]);
		/* In a header: the zone's first, or the first that is whole. */
		for (torn = 0; torn < 2; torn++) {
			begin_anew(state);
			image->erase_count[FIRST_DATA] = most[high];
			put(FIRST_DATA, 1, 5, 9);
			put(FIRST_DATA, 2, 6, 9);
			image_block(image, FIRST_DATA, 0)[9] ^= torn;
			expect_writes_until(most[high]);
		}
	}
}

/* Records that are not the newest */

/* An unmapped map; block 5 is in a unit that a cut tore, and in an older one that is whole. */
static u32 tear_a_unit(u32 *entries)
{
	memset(entries, 0xff, IMAGE_LOGICAL * sizeof(*entries));
	entries[5] = put(FIRST_DATA, 1, 5, 9);
	put(FIRST_DATA + 1, 2, 5, 10);
	memset(image_block(image, FIRST_DATA + 1, 1), 0, MTFTL_BLOCK_SIZE);
	return flash_page(&image->flash, FIRST_DATA + 1, 1);
}

/* Written behind the mount that found it torn. */
static void go_on_behind(u32 *entries)
{
	image->durable_seq = 2;
	entries[6] = put(FIRST_DATA + 2, image->seq + 1, 6, 11);
}

static void a_record_without_the_checkpoint_believes_no_torn_unit(void **state)
{
	u32 entries[IMAGE_LOGICAL];

	tear_a_unit(entries);
	image_write_checkpoint(image, 2, 2, entries, 0);
	go_on_behind(entries);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], entries[5]);
	assert_int_equal(map.entries[6], entries[6]);
	/* The superblock is lost, and a backup of it brought back. */
	mtftl_sb_set_checkpoint(&image->sb, NULL);
	image->flash.zones[0] = (struct flash_zone) { .cond = FLASH_EMPTY };
	image_write_super(image, 0);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[6], entries[6]);
}

/* A cut ended the first checkpoint: no record names it, and there was no other. */
static void a_cut_in_the_first_checkpoint_makes_no_record_older(void **state)
{
	u32 entries[IMAGE_LOGICAL], torn = tear_a_unit(entries);

	image_write_super(image, 0);
	image_write_checkpoint(image, 2, 2, entries, 0);
	mtftl_sb_set_checkpoint(&image->sb, NULL);
	image->flash.zones[0].wp--;
	image_write_super(image, 0);
	go_on_behind(entries);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], torn);
	assert_int_equal(map.entries[6], entries[6]);
}

/* The log went to the other zone after a write had failed: what is behind it there is no record. */
static void a_zone_that_the_log_has_left_makes_no_record_older(void **state)
{
	u32 entries[IMAGE_LOGICAL], torn = tear_a_unit(entries);

	image_write_super(image, 0);
	image->flash.zones[0] = (struct flash_zone) {
		.cond = FLASH_FULL, .wp = image->flash.zone_capacity,
	};
	image->sb.generation++;
	mtftl_sb_compose(image_block(image, 1, 0), &image->sb);
	image->flash.zones[1] = (struct flash_zone) { .cond = FLASH_OPEN, .wp = 1 };
	go_on_behind(entries);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], torn);
	/* Without a record in there, one may have been lost. */
	image->unreadable = unreadable = flash_page(&image->flash, 0, 0);
	memset(image_block(image, 0, 0), 0, MTFTL_BLOCK_SIZE);
	memset(image_block(image, 0, 1), 0, MTFTL_BLOCK_SIZE);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[6], entries[6]);
}

static void a_record_before_the_newest_believes_no_torn_unit(void **state)
{
	u32 entries[IMAGE_LOGICAL], none[IMAGE_LOGICAL];

	memset(none, 0xff, sizeof(none));
	image->seq = 1;
	image_write_checkpoint(image, 2, 0, none, 0);
	tear_a_unit(entries);
	image->seq = 100;
	image_write_checkpoint(image, 3, 2, entries, 0);
	go_on_behind(entries);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], entries[5]);
	unreadable = flash_page(&image->flash, 0, image->flash.zones[0].wp - 1);
	image->unreadable = unreadable;
	mount_like_the_tool();
	assert_int_equal(mtftl_super_info(&ftl)->ckpt_seq, 0);
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[6], entries[6]);
}

static void a_clean_record_before_the_newest_believes_no_torn_unit(void **state)
{
	u32 entries[IMAGE_LOGICAL], none[IMAGE_LOGICAL];

	memset(none, 0xff, sizeof(none));
	image_write_checkpoint(image, 2, 0, none, MTFTL_SB_CLEAN);
	tear_a_unit(entries);
	go_on_behind(entries);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], MTFTL_MAP_LOST);
	assert_int_equal(map.entries[6], entries[6]);
}

/* No mount behind a cut came before: payloads below the durable number are not read. */
static void the_first_record_believes_what_is_durable(void **state)
{
	u32 entries[IMAGE_LOGICAL], torn = tear_a_unit(entries);

	go_on_behind(entries);
	mount_like_the_tool();
	assert_int_equal(map.entries[5], torn);
	assert_int_equal(map.entries[6], entries[6]);
}

/* GC writes a record again: then it is there twice. */
static void records_that_are_there_twice_count_once(void **state)
{
	static const struct {
		enum mtftl_range_kind kind;
		u32 value;
	} kinds[] = {
		{ MTFTL_RANGE_TRIM, MTFTL_MAP_UNMAPPED }, { MTFTL_RANGE_LOST, MTFTL_MAP_LOST },
	};
	u32 kept, i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		begin_anew(state);
		put(FIRST_DATA, 1, 5, 9);
		image_write_range(image, FIRST_DATA, 4, 5, 1, 3, kinds[i].kind);
		image_write_range(image, FIRST_DATA + 1, 6, 5, 1, 3, kinds[i].kind);
		image->durable_seq = 6;
		kept = put(FIRST_DATA + 1, 7, 6, 9);
		mount_like_the_tool();
		assert_int_equal(map.entries[5], kinds[i].value);
		assert_int_equal(map.entries[6], kept);
	}
}

/* Zones that are written in part */

static void zones_beyond_the_budget_are_finished(void **state)
{
	u32 i, fails;

	for (fails = 0; fails < 2; fails++) {
		begin_anew(state);
		for (i = 0; i < 4; i++)
			put(FIRST_DATA + i, 1 + i, i, i);
		finish_fails = fails;
		mount();
		for (i = 0; i < 4; i++) {
			const struct mtftl_zone *zone = mtftl_zone(&ftl, FIRST_DATA + i);
			bool first = i < 2;

			assert_int_equal(zone->state,
					 first ? MTFTL_ZONE_FULL : MTFTL_ZONE_PARTIAL);
			assert_int_equal(zone->wp, first ? IMAGE_CAPACITY : 2);
			assert_int_equal(zone->quiet_wp, zone->wp);
			assert_int_equal(zone->failed_lives,
					 first && fails ? MTFTL_ZONE_LIVES : 0);
			assert_int_equal(image->flash.zones[zone->index].cond,
					 first && !fails ? FLASH_FULL : FLASH_OPEN);
		}
	}
}

/* What else it had is lost, and until that is durable nothing must come to lie there. */
static void a_zone_that_is_shorter_than_it_was_is_finished_last(void **state)
{
	u32 entries[IMAGE_LOGICAL], i;

	memset(entries, 0xff, sizeof(entries));
	for (i = 0; i < 4; i++)
		entries[i] = put(FIRST_DATA + i, 1 + i, i, i);
	image_write_checkpoint(image, 2, 10, entries, 0);
	cut(FIRST_DATA, 1, 0);
	mount();
	assert_int_equal(map.entries[0], MTFTL_MAP_LOST);
	for (i = 0; i < 4; i++) {
		const struct mtftl_zone *zone = mtftl_zone(&ftl, FIRST_DATA + i);

		assert_int_equal(zone->broken, !i);
		assert_int_equal(zone->state,
				 i % 3 ? MTFTL_ZONE_FULL : MTFTL_ZONE_PARTIAL);
	}
}

/* It claims blocks up to the zone's last one: after that the zone is full. */
static void a_torn_unit_at_the_end_of_a_zone_fills_it(void **state)
{
	const u64 lbas[] = { 100, 101, 102 };
	const u16 contents[] = { 1, 2, 3 };
	struct flash_zone *zone = &image->flash.zones[FIRST_DATA];
	u32 i;

	for (i = 0; i < IMAGE_CAPACITY / 2 - 2; i++)
		put(FIRST_DATA, 1 + i, i, 9);
	cut(FIRST_DATA, image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1 + i, 3, lbas,
					 contents) + 2, 0);
	mount_like_the_tool();
	assert_int_equal(map.entries[100], flash_page(&image->flash, FIRST_DATA, 117));
	assert_int_equal(map.entries[101], MTFTL_MAP_UNMAPPED);
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->state, MTFTL_ZONE_FULL);
	assert_int_equal(zone->wp, IMAGE_CAPACITY);
	assert_int_equal(zone->cond, FLASH_FULL);
}

/* Some sectors are left behind its last block, so the drive counts it. */
static void a_zone_that_is_written_to_its_last_block_is_finished(void **state)
{
	struct flash_zone *zone = &image->flash.zones[FIRST_DATA];

	fill_with_footer(FIRST_DATA, 8, 0, 1);
	zone->cond = FLASH_OPEN;
	mount();
	assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->state, MTFTL_ZONE_FULL);
	assert_int_equal(zone->cond, FLASH_FULL);
	mount();
	assert_int_equal(drive.commands, drive.reads);
}

static void a_zone_of_the_log_that_was_left_is_finished(void **state)
{
	struct flash_zone *other = &image->flash.zones[1];

	*other = (struct flash_zone) { .cond = FLASH_OPEN, .wp = 3 };
	mount();
	assert_int_equal(other->cond, FLASH_FULL);
	mount();
	assert_int_equal(drive.commands, drive.reads);
}

static void a_torn_block_that_cannot_be_completed_ends_its_zone(void **state)
{
	const u64 lbas[] = { 5, 6, 7 };
	const u16 contents[] = { 1, 2, 3 };
	u32 i;

	/* The write of what is left of the block fails, or that of the zeroes behind it. */
	for (i = 1; i < 3; i++) {
		begin_anew(state);
		cut(FIRST_DATA, image_write_unit(image, FIRST_DATA, MTFTL_UNIT_DATA, 1, 3, lbas,
						 contents), 1);
		mount_fails_write = i;
		mount();
		assert_true(mtftl_zone(&ftl, FIRST_DATA)->broken);
		assert_int_equal(mtftl_zone(&ftl, FIRST_DATA)->state, MTFTL_ZONE_FULL);
	}
}

/* What is known of zones */

static void ages_follow_from_numbers(void **state)
{
	const u64 numbers[] = { 11, 20, 50, 90 };
	const u32 born[] = { 0, 0, 3, 7 };	/* eight steps of eleven numbers */
	u32 i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		put(FIRST_DATA + i, numbers[i], i, i);
	mount();
	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		assert_int_equal(mtftl_zone(&ftl, FIRST_DATA + i)->first_seq, numbers[i]);
		assert_int_equal(mtftl_map_born(&ftl, FIRST_DATA + i), born[i]);
	}
	assert_int_equal(mtftl_map_clock(&ftl), ftl.config.device_in_zones);
}

static void numbers_that_are_used_up_are_not_drawn(void **state)
{
	const u64 half = 1ull << (image->sb.oob ? MTFTL_OOB_SEQ_BITS - 1 : MTFTL_SEQ_BITS - 1);

	put(FIRST_DATA, half - 1, 5, 9);
	mount();
	assert_false(mtftl_is_read_only(&ftl));
	assert_int_equal(mtftl_seq_last(&ftl), half - 1);
	put(FIRST_DATA, half, 6, 9);
	mount();
	assert_true(mtftl_is_read_only(&ftl));
}

static void what_is_durable_is_known(void **state)
{
	put(FIRST_DATA, 5, 5, 9);
	image->durable_seq = 5;
	put(FIRST_DATA + 1, 6, 6, 9);
	image->durable_seq = 3;
	put(FIRST_DATA + 2, 7, 7, 9);
	mount();
	assert_int_equal(seq.durable, 5);
	assert_int_equal(mtftl_seq_last(&ftl), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_header_in_a_torn_block_claims_its_payload),
		TEST(a_torn_block_in_an_empty_zone),
		TEST(ranges_in_a_torn_block_count),
		TEST(a_torn_block_that_the_medium_has_lost_claims_nothing),
		OOB_TEST(data_that_looks_like_a_header_claims_nothing),
		TEST(what_is_no_header_in_a_torn_block),
		TEST(a_copy_from_an_earlier_life_hides_nothing),
		TEST(a_copy_of_what_was_found_hides_nothing),
		TEST(what_is_older_than_the_checkpoint_tells_no_life),
		TEST(a_life_is_found_beside_what_cannot_be_read),
		TEST(an_entry_of_an_earlier_life_is_lost),
		OOB_TEST(an_entry_of_an_earlier_life_is_lost),
		TEST(an_entry_of_an_earlier_life_behind_a_torn_unit),
		OOB_TEST(an_entry_of_an_earlier_life_behind_a_torn_unit),
		TEST(an_entry_of_an_empty_zone_is_lost),
		OOB_TEST(an_entry_of_an_empty_zone_is_lost),
		TEST(an_entry_behind_the_write_pointer_is_lost),
		TEST(entries_of_all_parts_are_looked_at),
		TEST(blocks_that_go_on_in_the_next_zone_are_there),
		TEST(a_durable_unit_whose_header_is_lost_is_in_the_footer),
		TEST(a_unit_whose_header_is_lost_counts_only_if_durable),
		TEST(a_tail_of_an_earlier_life_says_nothing),
		TEST(an_entry_of_an_earlier_life_in_a_zone_with_a_footer),
		TEST(a_zone_without_a_footer_costs_one_read),
		TEST(an_offline_zone_is_told_after_a_cut),
		TEST(a_payload_that_cannot_be_read_costs_one_block),
		TEST(a_payload_that_cannot_be_read_is_not_verified),
		TEST(a_unit_longer_than_the_buffer_is_verified),
		TEST(a_unit_that_was_written_twice_is_whole_in_one_place),
		TEST(a_unit_of_a_newer_version_ends_the_mount),
		TEST(a_unit_of_a_newer_version_in_a_payload_is_data),
		TEST(erase_counts_are_bounded),
		TEST(a_record_without_the_checkpoint_believes_no_torn_unit),
		TEST(a_cut_in_the_first_checkpoint_makes_no_record_older),
		TEST(a_zone_that_the_log_has_left_makes_no_record_older),
		TEST(a_record_before_the_newest_believes_no_torn_unit),
		TEST(a_clean_record_before_the_newest_believes_no_torn_unit),
		TEST(the_first_record_believes_what_is_durable),
		TEST(records_that_are_there_twice_count_once),
		TEST(a_zone_that_was_reset_is_read_from_its_beginning),
		TEST(zones_beyond_the_budget_are_finished),
		TEST(a_zone_that_is_shorter_than_it_was_is_finished_last),
		TEST(a_torn_unit_at_the_end_of_a_zone_fills_it),
		TEST(a_zone_that_is_written_to_its_last_block_is_finished),
		TEST(a_zone_of_the_log_that_was_left_is_finished),
		TEST(a_torn_block_that_cannot_be_completed_ends_its_zone),
		TEST(ages_follow_from_numbers),
		TEST(numbers_that_are_used_up_are_not_drawn),
		TEST(what_is_durable_is_known),
		OOB_TEST(numbers_that_are_used_up_are_not_drawn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
