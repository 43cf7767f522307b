// SPDX-License-Identifier: GPL-2.0
/* The walk over a zone's units; docs/design/format.md gives the rules and their reasons. */
#include <stdlib.h>

#include "mtftl.h"
#include "scan.h"

#define MIN_NUMBERS	1024u	/* places of the smallest set */

void window_init(struct window *window, struct flash *flash, u32 size)
{
	/* Without a header a unit is at hand as a whole, or it would be taken for several. */
	if (flash->oob && size <= MTFTL_UNIT_MAX_ENTRIES)
		size = MTFTL_UNIT_MAX_ENTRIES + 1;
	if (size > flash->zone_capacity)
		size = flash->zone_capacity;
	assert(size && size <= flash->zone_capacity);
	*window = (struct window) {
		.flash = flash,
		.buffer = xalloc_blocks(size),
		.oob = xalloc(size, sizeof(struct mtftl_oob)),
		.header = xalloc_blocks(1),
		.size = size,
	};
}

void window_free(struct window *window)
{
	free(window->buffer);
	free(window->oob);
	free(window->header);
}

int window_error(const struct window *window, struct report *report)
{
	if (!window->failed)
		return 0;
	report_error(report, "zone %u block %u: a read failed, expected data, or an error that says that"
		     " the medium has lost it: %s", window->failed_zone, window->failed_at,
		     strerror(-window->failed));
	return -EIO;
}

static int read_blocks(struct window *window, u32 zone, u32 offset, u32 nr)
{
	struct flash *flash = window->flash;

	assert(nr && nr <= window->size && offset + nr <= flash->zone_capacity);
	if (flash->oob)
		return flash->read_oob(flash, zone, offset, nr, window->buffer, window->oob);
	return flash->read(flash, zone, offset, nr, window->buffer);
}

/* Of the block that was asked for. */
static void note_error(struct window *window, int err)
{
	window->error = err;
	if (!err || window->failed || flash_medium_says(window->flash, err))
		return;
	window->failed = err;
	window->failed_zone = window->zone;
	window->failed_at = window->first;
}

const u8 *window_block(struct window *window, u32 zone, u32 offset)
{
	struct flash *flash = window->flash;
	u32 nr = flash->zones[zone].wp - offset;
	int err = 0;

	assert(zone < flash->nr_zones && offset <= flash->zones[zone].wp);
	/* A drive that hangs may take half a minute for each error. */
	if (window->failed && !window->goes_on)
		return NULL;
	if (zone != window->zone || offset < window->first ||
	    offset - window->first >= window->filled) {
		if (nr > window->size)
			nr = window->size;
		window->zone = zone;
		window->first = offset;
		window->filled = 0;
		if (!nr && flash->zones[zone].torn_sectors) {
			memset(window->oob, 0, sizeof(*window->oob));
			err = flash->read_torn(flash, zone, window->buffer);
			window->filled = !err;
		}
		/* One bad block must not hide its neighbours. */
		for (; nr && !window->filled; nr /= 2) {
			err = read_blocks(window, zone, offset, nr);
			window->filled = err ? 0 : nr;
		}
		if (!window->filled) {
			note_error(window, err);
			return NULL;
		}
	}
	assert(offset - window->first < window->filled && window->filled <= window->size);
	return window->buffer + ((size_t)(offset - window->first) << MTFTL_BLOCK_SHIFT);
}

int window_unit(struct window *window, u32 seed, u32 zone, u32 offset,
		struct mtftl_unit_info *info)
{
	const struct flash *flash = window->flash;
	const u8 *block = window_block(window, zone, offset);
	u32 skip = offset - window->first, nr = window->filled - skip;
	int err;

	if (!block)
		return -EIO;
	if (!flash->oob) {
		memcpy(window->header, block, MTFTL_BLOCK_SIZE);
		return mtftl_unit_parse(window->header, seed, zone, offset, flash->zone_capacity,
					info);
	}
	err = mtftl_oob_parse(block, window->oob + skip, sizeof(*window->oob), nr, seed, zone,
			      offset, flash->zone_capacity, window->header, info);
	/* All that is at hand is of it, and more may be. */
	if (!err && skip && !window_payload(window, info) && info->nr_blocks == nr &&
	    offset + nr < flash->zones[zone].wp) {
		window->filled = 0;
		return window_unit(window, seed, zone, offset, info);
	}
	return err;
}

u32 window_payload(const struct window *window, const struct mtftl_unit_info *info)
{
	return mtftl_unit_head(window->flash->oob, info->type);
}

/* Numbers that were found in a zone, by their hash: half of the places are free at least. */
struct numbers {
	u64 *places;		/* 0: free */
	u64 size;		/* a power of two */
	u64 nr;
};

/* A writer does not choose its numbers so that they meet: they count up. */
static u64 *place_of(const struct numbers *numbers, u64 number)
{
	u64 at = number * 0x9e3779b97f4a7c15ull >> (64 - __builtin_ctzll(numbers->size));

	/* A search ends at a free place. */
	assert(number && numbers->nr < numbers->size);
	while (numbers->places[at] && numbers->places[at] != number)
		at = (at + 1) & (numbers->size - 1);
	return &numbers->places[at];
}

static void numbers_add(struct numbers *numbers, u64 number)
{
	struct numbers larger = { .size = numbers->size ? 2 * numbers->size : MIN_NUMBERS };
	u64 i;

	if (2 * numbers->nr >= numbers->size) {
		larger.places = xalloc(larger.size, sizeof(*larger.places));
		for (i = 0; i < numbers->size; i++)
			if (numbers->places[i])
				numbers_add(&larger, numbers->places[i]);
		free(numbers->places);
		*numbers = larger;
	}
	assert(2 * numbers->nr < numbers->size);
	numbers->nr += !*place_of(numbers, number);
	*place_of(numbers, number) = number;
}

/* What is known of this zone; numbers are only asked for behind torn places. */
struct seen {
	struct numbers numbers;
	u32 erase_count;
	bool known;		/* its erase count */
};

static bool is_copy(const struct seen *seen, const struct mtftl_unit_info *info, u64 ckpt_seq)
{
	return info->seq <= ckpt_seq ||
	       (seen->numbers.nr && *place_of(&seen->numbers, info->seq));
}

/* The highest erase count that a header from block @at on names, if its number is above @ckpt_seq. */
static u32 find_life(struct window *window, u32 seed, u32 zone, u32 at, u64 ckpt_seq)
{
	const struct flash *flash = window->flash;
	struct mtftl_unit_info info;
	u32 life = 0;

	for (; at < flash->zones[zone].wp; at++) {
		const u8 *block = window_block(window, zone, at);

		if (block && !mtftl_unit_parse(block, seed, zone, at, flash->zone_capacity, &info) &&
		    info.seq > ckpt_seq && info.erase_count > life)
			life = info.erase_count;
	}
	return life;
}

/* A tail is no unit, but no gap either. */
static bool is_tail(const struct window *window, const u8 *block, u32 seed, u32 zone, u32 at)
{
	const struct flash *flash = window->flash;
	u32 capacity = flash->zone_capacity;
	struct mtftl_tail_info tail;

	return at == capacity - 1 && block &&
	       mtftl_tail_parse(block, seed, zone, capacity, flash->oob, &tail) == 0;
}

/* What window_unit() says of a block. */
static void note_header(struct scan_result *result, int err, u32 at,
			const struct mtftl_unit_info *info)
{
	result->unreadable += err == -EIO;
	result->contradictions += err == -EINVAL;
	if (!err && info->erase_count > MTFTL_MAX_ERASES && !result->worn_erases) {
		result->worn_at = at;
		result->worn_erases = info->erase_count;
	}
}

void scan_zone(struct window *window, u32 seed, u32 zone, u32 from, u64 ckpt_seq,
	       scan_found found, void *context, struct scan_result *result)
{
	const struct flash_zone *state = &window->flash->zones[zone];
	u32 wp = state->wp + !!state->torn_sectors, at = from;
	bool oob = window->flash->oob;	/* which users cannot copy */
	struct mtftl_unit_info info;
	struct seen seen = { 0 };
	bool in_step = from == 0;	/* at the zone's start, or right behind a unit */

	memset(result, 0, sizeof(*result));
	if (from && !oob && !window_unit(window, seed, zone, 0, &info)) {
		seen.erase_count = info.erase_count;
		seen.known = true;
	}
	while (at < wp) {
		int err = window_unit(window, seed, zone, at, &info);

		if (err && err != -EIO && is_tail(window, window_block(window, zone, at), seed, zone, at))
			break;
		note_header(result, err, at, &info);
		/* Where a unit begins, also behind what the checkpoint knows. Else it may be users' data. */
		if (err == -EPROTO && (in_step || at == from)) {
			result->newer = true;
			break;
		}
		if (!err && !oob && !seen.known && (in_step || info.seq > ckpt_seq)) {
			u32 life = in_step ? 0 : find_life(window, seed, zone, at + 1, ckpt_seq);

			seen.erase_count = life > info.erase_count ? life : info.erase_count;
			seen.known = true;
			/* Its header may have left the window. */
			err = window_unit(window, seed, zone, at, &info);
		}
		if (!err && !oob && (info.erase_count != seen.erase_count ||
				     (!in_step && is_copy(&seen, &info, ckpt_seq))))
			err = -ESTALE;
		if (err) {
			if (at < state->wp && !result->gap_blocks++)
				result->first_gap = at;
			in_step = false;
			at++;
			continue;
		}
		if (!oob)
			numbers_add(&seen.numbers, info.seq);
		result->units++;
		found(context, &info, window->header);
		in_step = true;
		at += window_payload(window, &info) + info.nr_blocks;
		assert(at <= window->flash->zone_capacity);
	}
	free(seen.numbers.places);
}

/* Of another version, or meant for another place: who wrote it had the key. */
static bool is_by_seed(int err)
{
	return !err || err == -EPROTO || err == -ESTALE;
}

int scan_finds_unit(struct flash *flash, u32 seed, u32 *written)
{
	struct mtftl_unit_info info;
	struct window window;
	bool found = false;
	u32 zone;

	*written = 0;
	window_init(&window, flash, 1);
	window.goes_on = true;
	for (zone = MTFTL_NR_SB_ZONES; zone < flash->nr_zones && !found; zone++) {
		if (!flash->zones[zone].wp || flash->zones[zone].cond == FLASH_READONLY)
			continue;
		++*written;
		found = is_by_seed(window_unit(&window, seed, zone, 0, &info));
	}
	window_free(&window);
	return found ? 1 : window.failed ? -EIO : 0;
}

/* Copy the payload of the footer units from @at on to where their entries say. */
static bool load_footer(struct window *window, u32 seed, u32 zone, u32 at,
			const struct mtftl_tail_info *tail, u64 *durable_seq, u8 *stream)
{
	u32 capacity = window->flash->zone_capacity, left = tail->footer_blocks, i;
	struct mtftl_unit_info info;
	const u8 *block;
	bool *have = xalloc(tail->footer_blocks, sizeof(*have));

	while (at < capacity - 1) {
		bool valid = !window_unit(window, seed, zone, at, &info) &&
			     info.type == MTFTL_UNIT_FOOTER &&
			     info.erase_count == tail->erase_count;

		if (!valid && left)
			break;
		/* Padding behind the stream says what was durable by then. */
		if (!valid) {
			at++;
			continue;
		}
		if (info.durable_seq > *durable_seq)
			*durable_seq = info.durable_seq;
		for (i = 0; left && i < info.nr_entries; i++) {
			u64 index;
			u32 crc;

			mtftl_unit_entry(window->header, i, &index, &crc);
			block = window_block(window, zone, at + 1 + i);
			if (index >= tail->footer_blocks || have[index] || !block ||
			    mtftl_payload_crc(seed, block) != crc)
				goto out;
			memcpy(stream + (index << MTFTL_BLOCK_SHIFT), block, MTFTL_BLOCK_SIZE);
			have[index] = true;
			left--;
		}
		at += 1 + info.nr_blocks;
		assert(at <= capacity && left <= tail->footer_blocks);
	}
out:
	free(have);
	return left == 0;
}

u8 *scan_footer(struct window *window, u32 seed, u32 zone, struct mtftl_tail_info *tail,
		u64 *durable_seq, u32 *size)
{
	u32 capacity = window->flash->zone_capacity;
	struct mtftl_unit_info first;
	const u8 *block;
	u8 *stream;

	if (window->flash->zones[zone].wp < capacity)
		return NULL;
	if (window_unit(window, seed, zone, 0, &first)) {
		if (window->flash->oob)
			return NULL;
		first.erase_count = find_life(window, seed, zone, 1, 0);
	}
	block = window_block(window, zone, capacity - 1);
	if (!block || mtftl_tail_parse(block, seed, zone, capacity, window->flash->oob, tail) ||
	    !mtftl_same_erase_count(window->flash->oob, tail->erase_count, first.erase_count))
		return NULL;

	*size = tail->footer_blocks << MTFTL_BLOCK_SHIFT;
	stream = xalloc_blocks(tail->footer_blocks);
	if (load_footer(window, seed, zone, tail->footer_offset, tail, durable_seq, stream) &&
	    mtftl_footer_valid(stream, *size, tail, window->flash->oob))
		return stream;
	free(stream);
	return NULL;
}
