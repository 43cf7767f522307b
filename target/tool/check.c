// SPDX-License-Identifier: GPL-2.0
/*
 * Everything that the media can show to be wrong. Recovery is run as the module would. Then one
 * pass reads every unit of every zone, verifies its payload and notes which is the newest of each
 * block: that must lead to the same map.
 *
 * Memory: 8 bytes a logical block (its newest page here, and the one that recovery finds), 16 a
 * unit and 32 a range record. The unit of a page says how new the page is.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "mtftl.h"
#include "replay.h"
#include "scan.h"
#include "super.h"
#include "vector.h"

/* Blocks read at once: enough to keep all dies of a drive busy. */
#define WINDOW_BLOCKS	1024
#define FULL_UNIT	32u	/* blocks of data, where none was flushed */

struct unit_ref {
	u64 seq;
	u32 zone;
	u32 offset;
};

struct range_ref {
	u64 seq;
	u64 lba;
	u32 nr_blocks;
	u32 value;		/* of the map: MTFTL_MAP_* */
};

struct block_ref {
	u32 page;
	u64 lba;
};

struct check {
	struct flash *flash;
	struct report *report;
	struct check_totals *totals;
	const struct mtftl_sb_info *sb;
	u32 seed;
	struct window window;
	struct vector units;		/* of data and ranges, struct unit_ref, zone by zone */
	u64 *first_unit;		/* of each zone; and behind the last one, what there are */
	struct vector ranges;		/* struct range_ref */
	struct vector bad;		/* payload that does not verify, struct block_ref */
	struct vector twins;		/* as good as newest: of a unit written twice */
	u32 *newest;			/* per logical block: its page, or MTFTL_MAP_* */
};

/* Superblocks */

static int check_superblock_log(struct flash *flash, struct report *report)
{
	u64 last_of_zone[MTFTL_NR_SB_ZONES] = { 0 }, first_of_zone[MTFTL_NR_SB_ZONES] = { 0 };
	struct mtftl_sb_info info;
	struct window window;
	u32 zone, at;
	int failed;

	window_init(&window, flash, WINDOW_BLOCKS);
	window.goes_on = true;
	for (zone = 0; zone < MTFTL_NR_SB_ZONES && zone < flash->nr_zones; zone++) {
		for (at = 0; at < flash->zones[zone].wp; at++) {
			const u8 *block = window_block(&window, zone, at);
			int err = block ? mtftl_sb_parse(block, &info) : -EIO;

			if (err == -ENODATA || err == -EBADMSG || err == -EIO) {
				report_note(report, "zone %u block %u: no whole superblock record",
					    zone, at);
			} else if (err) {
				report_error(report, "zone %u block %u: %s", zone, at,
					     super_error(err));
			} else {
				if (info.generation <= last_of_zone[zone])
					report_error(report, "zone %u block %u: generation %" PRIu64
						     " behind %" PRIu64, zone, at, info.generation,
						     last_of_zone[zone]);
				if (!first_of_zone[zone])
					first_of_zone[zone] = info.generation;
				last_of_zone[zone] = info.generation;
			}
		}
	}
	if (first_of_zone[0] && first_of_zone[1] && first_of_zone[0] <= last_of_zone[1] &&
	    first_of_zone[1] <= last_of_zone[0])
		report_error(report, "superblocks: generations of zones 0 and 1 overlap");
	failed = window_error(&window, report);
	window_free(&window);
	return failed;
}

/* Units */

static void add_block(struct vector *vector, u32 page, u64 lba)
{
	struct block_ref *block = vector_add(vector, sizeof(*block));

	*block = (struct block_ref) { .page = page, .lba = lba };
}

/* The number of the unit that holds a page, if the unit was found already; 0 if it is no page. */
static u64 seq_of(const struct check *check, u32 page)
{
	const struct unit_ref *unit = check->units.items;
	u32 zone = page / check->flash->zone_blocks, offset = page % check->flash->zone_blocks;
	u64 low, high, middle;

	if (page > MTFTL_MAP_MAX_PAGE)
		return 0;
	low = check->first_unit[zone];
	high = check->first_unit[zone + 1];
	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (unit[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return unit[low].seq;
}

static void check_entries(struct check *check, const struct mtftl_unit_info *info,
			  const u8 *header)
{
	u32 wp = check->flash->zones[info->zone].wp, crc, i;
	u64 lba, newest_seq;

	for (i = 0; i < info->nr_entries; i++) {
		u32 offset = info->offset + window_payload(&check->window, info) + i;
		u32 page = flash_page(check->flash, info->zone, offset);
		const u8 *block = NULL;

		mtftl_unit_entry(header, i, &lba, &crc);
		if (lba >= check->sb->logical_blocks) {
			report_error(check->report, "zone %u block %u: logical block %" PRIu64
				     " is past the end", info->zone, info->offset, lba);
			continue;
		}
		if (offset < wp)
			block = window_block(&check->window, info->zone, offset);
		if (!block || mtftl_payload_crc(check->seed, block) != crc) {
			add_block(&check->bad, page, lba);
			continue;
		}
		check->totals->blocks++;
		newest_seq = seq_of(check, check->newest[lba]);
		if (newest_seq == info->seq) {
			if (page - check->newest[lba] <= i)
				report_error(check->report, "zone %u block %u: logical block %"
					     PRIu64 " twice in one unit", info->zone,
					     info->offset, lba);
			add_block(&check->twins, page, lba);
		}
		if (info->seq > newest_seq)
			check->newest[lba] = page;
	}
}

static void check_ranges(struct check *check, const struct mtftl_unit_info *info,
			 const u8 *header)
{
	enum mtftl_range_kind kind;
	struct range_ref range;
	u32 i;

	for (i = 0; i < info->nr_entries; i++) {
		mtftl_unit_range(header, i, &range.lba, &range.nr_blocks, &range.seq, &kind);
		range.value = kind == MTFTL_RANGE_LOST ? MTFTL_MAP_LOST : MTFTL_MAP_UNMAPPED;
		if (range.lba + range.nr_blocks > check->sb->logical_blocks)
			report_error(check->report, "zone %u block %u: a range past the end",
				     info->zone, info->offset);
		else
			*(struct range_ref *)vector_add(&check->ranges, sizeof(range)) = range;
	}
}

static int by_number(const void *a, const void *b)
{
	const struct range_ref *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Once all units are known: a range that is newer than the newest unit of a block decides. */
static void apply_ranges(struct check *check)
{
	struct range_ref *range = check->ranges.items;
	u64 i, at;

	if (!check->ranges.nr)
		return;
	qsort(range, check->ranges.nr, sizeof(*range), by_number);
	for (i = 0; i < check->ranges.nr; i++)
		for (at = range[i].lba; at < range[i].lba + range[i].nr_blocks; at++)
			if (range[i].seq > seq_of(check, check->newest[at]))
				check->newest[at] = range[i].value;
}

static void check_unit(void *context, const struct mtftl_unit_info *info, const u8 *header)
{
	struct check *check = context;

	check->totals->units++;
	if (info->type == MTFTL_UNIT_CKPT || info->type == MTFTL_UNIT_FOOTER ||
	    info->type == MTFTL_UNIT_MAP)
		return;
	*(struct unit_ref *)vector_add(&check->units, sizeof(struct unit_ref)) =
		(struct unit_ref) {
			.seq = info->seq, .zone = info->zone, .offset = info->offset,
		};
	check->first_unit[info->zone + 1] = check->units.nr;
	if (check->sb->flags & MTFTL_SB_CLEAN && info->seq > check->sb->ckpt_seq)
		report_error(check->report, "zone %u block %u: unit %" PRIu64
			     " is newer than the clean checkpoint's %" PRIu64, info->zone,
			     info->offset, info->seq, check->sb->ckpt_seq);
	if (info->type == MTFTL_UNIT_RANGES)
		check_ranges(check, info, header);
	else
		check_entries(check, info, header);
}

/* The header that a footer record speaks of must be there and say the same. */
static bool record_matches(struct check *check, u32 zone, u64 seq, u32 offset,
			   enum mtftl_unit_type type, u16 nr_entries, const __le64 *lbas)
{
	struct mtftl_unit_info info;
	u64 lba;
	u32 crc, i;

	if (window_unit(&check->window, check->seed, zone, offset, &info))
		return false;
	if (info.seq != seq || info.type != type)
		return false;
	if (type == MTFTL_UNIT_RANGES)
		return true;
	if (info.nr_entries != nr_entries)
		return false;
	for (i = 0; i < nr_entries; i++) {
		mtftl_unit_entry(check->window.header, i, &lba, &crc);
		if (lba != le64_to_cpu(lbas[i]))
			return false;
	}
	return true;
}

/* So must the metadata of each of its blocks, except those that a cut has torn. */
static bool blocks_match(struct check *check, u32 zone, u64 seq, u32 offset,
			 enum mtftl_unit_type type, u16 nr_entries, const __le64 *lbas)
{
	struct mtftl_unit_info info;
	u64 lba;
	u32 crc, i;

	for (i = 0; i < nr_entries; i++) {
		if (window_unit(&check->window, check->seed, zone, offset + i, &info))
			continue;
		mtftl_unit_entry(check->window.header, 0, &lba, &crc);
		if (info.seq != seq || info.type != type || lba != le64_to_cpu(lbas[i]))
			return false;
	}
	return true;
}

/*
 * After a cut a footer may be there before a unit of a slower die, or when the erase of its zone was
 * at some of the dies. What the map has there is missed in check_map().
 */
static bool is_gone(struct check *check, u32 zone, u32 offset)
{
	const u8 *block = window_block(&check->window, zone, offset);

	return !block || (!block[0] && !memcmp(block, block + 1, MTFTL_BLOCK_SIZE - 1));
}

static void check_footer(struct check *check, u32 zone, u64 units)
{
	u32 size, pos = 0, offset;
	struct mtftl_tail_info tail;
	enum mtftl_unit_type type;
	const __le64 *lbas;
	u64 durable = 0, seq;
	u32 torn = 0;
	u16 entries;
	u8 *stream;

	stream = scan_footer(&check->window, check->seed, zone, &tail, &durable, &size);
	if (!stream)
		return;
	while (mtftl_footer_next(stream, size, &pos, &seq, &offset, &type, &entries, &lbas) > 0) {
		if (!mtftl_unit_head(check->sb->oob, type)) {
			if (!blocks_match(check, zone, seq, offset, type, entries, lbas))
				report_error(check->report, "zone %u: footer lists unit %" PRIu64
					     " at block %u, the metadata does not", zone, seq,
					     offset);
		} else if (is_gone(check, zone, offset))
			torn++;
		else if (!record_matches(check, zone, seq, offset, type, entries, lbas))
			report_error(check->report, "zone %u: footer lists unit %" PRIu64
				     " at block %u, its header does not", zone, seq, offset);
	}
	/* A unit without a header may be there in parts. */
	if (!check->sb->oob && tail.nr_records - torn != units)
		report_error(check->report, "zone %u: footer lists %u units, the zone has %" PRIu64,
			     zone, tail.nr_records, units);
	free(stream);
}

static void check_zone(struct check *check, u32 zone)
{
	struct scan_result result;
	u64 before = check->units.nr;

	check->first_unit[zone] = before;
	check->first_unit[zone + 1] = before;
	if (check->flash->zones[zone].cond == FLASH_OFFLINE) {
		report_note(check->report, "zone %u: offline", zone);
		return;
	}
	scan_zone(&check->window, check->seed, zone, 0, 0, check_unit, check, &result);
	if (result.newer)
		report_error(check->report, "zone %u: a unit of a newer version", zone);
	if (result.worn_erases)
		report_error(check->report, "zone %u block %u: erase_count %u, expected at most %u", zone,
			     result.worn_at, result.worn_erases, MTFTL_MAX_ERASES);
	if (result.contradictions)
		report_error(check->report, "zone %u: %u headers contradict themselves", zone,
			     result.contradictions);
	if (result.unreadable)
		report_note(check->report, "zone %u: %u blocks cannot be read", zone,
			    result.unreadable);
	if (result.gap_blocks)
		report_note(check->report, "zone %u: %u blocks from block %u on are in no unit",
			    zone, result.gap_blocks, result.first_gap);
	check->totals->gap_blocks += result.gap_blocks;
	check_footer(check, zone, check->units.nr - before);
}

/* No mount reads one that has retired, and it may fail each time. */
static void check_zones(struct check *check, const struct replay *replay)
{
	u32 zone, nr_zones = check->flash->nr_zones;
	int failed;

	for (zone = MTFTL_NR_SB_ZONES; zone < nr_zones; zone++) {
		progress("reading zones", zone, nr_zones);
		failed = check->window.failed;
		check_zone(check, zone);
		if (replay->zones[zone].flags & MTFTL_ZONE_RETIRED)
			check->window.failed = failed;
	}
	progress("reading zones", zone, nr_zones);
}

static int by_seq(const void *a, const void *b)
{
	const struct unit_ref *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->zone < y->zone ? -1 : x->zone > y->zone;
}

/* A unit that was written again after an error, or sent again, says the same in both places. */
static bool same_unit(struct check *check, const struct unit_ref *a, const struct unit_ref *b)
{
	static _Alignas(8) u8 header[MTFTL_BLOCK_SIZE];
	struct mtftl_unit_info x, y;
	struct window *window = &check->window;

	if (window_unit(window, check->seed, a->zone, a->offset, &x))
		return false;
	memcpy(header, window->header, sizeof(header));
	if (window_unit(window, check->seed, b->zone, b->offset, &y) || x.type != y.type)
		return false;
	/* Without a header each may lack other blocks. */
	return !window_payload(window, &x) ||
	       (x.nr_entries == y.nr_entries &&
		!memcmp(header + sizeof(struct mtftl_unit),
			window->header + sizeof(struct mtftl_unit),
			MTFTL_BLOCK_SIZE - sizeof(struct mtftl_unit)));
}

static void check_numbers(struct check *check)
{
	struct unit_ref *unit = check->units.items;
	u64 i;

	if (!check->units.nr)
		return;
	qsort(unit, check->units.nr, sizeof(*unit), by_seq);
	for (i = 1; i < check->units.nr; i++) {
		if (unit[i - 1].seq != unit[i].seq)
			continue;
		if (!same_unit(check, &unit[i - 1], &unit[i]))
			report_error(check->report, "number %" PRIu64
				     " given twice: zone %u block %u, zone %u block %u",
				     unit[i].seq, unit[i - 1].zone, unit[i - 1].offset,
				     unit[i].zone, unit[i].offset);
		else if (unit[i - 1].zone == unit[i].zone)
			report_note(check->report, "unit %" PRIu64 " was written to zone %u twice",
				    unit[i].seq, unit[i].zone);
		else
			report_note(check->report, "unit %" PRIu64 " was written to zones %u and %u",
				    unit[i].seq, unit[i - 1].zone, unit[i].zone);
	}
}

/* Map */

static int by_page(const void *a, const void *b)
{
	const struct block_ref *x = a, *y = b;

	return x->page < y->page ? -1 : x->page > y->page;
}

static bool has_block(const struct vector *sorted, u32 page, u64 lba)
{
	struct block_ref key = { .page = page };
	const struct block_ref *found = NULL;

	if (sorted->nr)
		found = bsearch(&key, sorted->items, sorted->nr, sizeof(key), by_page);
	return found && found->lba == lba;
}

static void sort_blocks(struct vector *vector)
{
	if (vector->nr)
		qsort(vector->items, vector->nr, sizeof(struct block_ref), by_page);
}

static void report_mapped(struct check *check, u64 lba, u32 page)
{
	u32 zone = page / check->flash->zone_blocks, offset = page % check->flash->zone_blocks;
	const char *why;

	if (page > MTFTL_MAP_MAX_PAGE || zone >= check->flash->nr_zones ||
	    zone < MTFTL_NR_SB_ZONES)
		why = "there is no such place";
	else if (offset >= check->flash->zones[zone].wp)
		why = "nothing is written there";
	else if (has_block(&check->bad, page, lba))
		why = "its checksum does not match";
	else if (check->newest[lba] <= MTFTL_MAP_MAX_PAGE)
		why = "a newer unit is elsewhere, or no unit holds it there";
	else
		why = "no unit holds it there";
	report_error(check->report, "logical block %" PRIu64 " at zone %u block %u: %s", lba, zone,
		     offset, why);
}

static void check_map(struct check *check, const struct replay *replay)
{
	u64 lba;

	sort_blocks(&check->bad);
	sort_blocks(&check->twins);
	check->totals->torn = check->bad.nr;
	for (lba = 0; lba < check->sb->logical_blocks; lba++) {
		u32 page = replay->map[lba], newest = check->newest[lba];
		bool in_log = seq_of(check, newest) > check->sb->ckpt_seq;

		check->totals->lost += page == MTFTL_MAP_LOST;
		if (page != MTFTL_MAP_UNMAPPED && page != MTFTL_MAP_LOST) {
			check->totals->mapped++;
			check->totals->torn -= has_block(&check->bad, page, lba);
			if (page != newest && (newest > MTFTL_MAP_MAX_PAGE ||
					       !has_block(&check->twins, page, lba)))
				report_mapped(check, lba, page);
		} else if (in_log) {
			report_error(check->report, "logical block %" PRIu64 ": unit %" PRIu64
				     " holds it, recovery does not find it", lba,
				     seq_of(check, newest));
		}
	}
}

u64 check_memory(const struct flash *flash, const struct mtftl_sb_info *sb)
{
	u64 written = 0;
	u32 zone;

	for (zone = MTFTL_NR_SB_ZONES; zone < flash->nr_zones; zone++)
		written += flash->zones[zone].wp;
	return sb->logical_blocks * 2 * sizeof(u32) +
	       written / (1 + FULL_UNIT) * sizeof(struct unit_ref);
}

int check_flash(struct flash *flash, struct report *report, struct check_totals *totals)
{
	struct check check = { .flash = flash, .report = report, .totals = totals };
	struct replay replay = { .flash = flash, .report = report };
	struct super super;
	int err, unread;

	memset(totals, 0, sizeof(*totals));
	err = super_find(flash, &super);
	if (err)
		return err;

	unread = check_superblock_log(flash, report);
	check.sb = &super.info;
	check.seed = mtftl_seed(super.info.uuid, super.info.key);
	check.newest = xalloc(super.info.logical_blocks, sizeof(*check.newest));
	memset(check.newest, 0xff, super.info.logical_blocks * sizeof(*check.newest));
	check.first_unit = xalloc((size_t)flash->nr_zones + 1, sizeof(*check.first_unit));
	window_init(&check.window, flash, WINDOW_BLOCKS);
	check.window.goes_on = true;
	replay_from(&replay, &super);
	err = replay_run(&replay);
	check_zones(&check, &replay);
	apply_ranges(&check);
	/* What was not seen is not wrong. */
	unread = (err == -EIO ? err : window_error(&check.window, report)) ?: unread;
	if (!err && !check.window.failed)
		check_map(&check, &replay);
	replay_free(&replay);
	/* Last: it sorts the units. */
	if (!check.window.failed)
		check_numbers(&check);

	window_free(&check.window);
	vector_free(&check.units);
	vector_free(&check.ranges);
	vector_free(&check.bad);
	vector_free(&check.twins);
	free(check.first_unit);
	free(check.newest);
	return unread;
}
