// SPDX-License-Identifier: GPL-2.0
/*
 * Replay with what is left of the checkpoint, then write the map that it gives as a checkpoint of
 * its own, into zones that hold nothing, and a superblock record that names it. Until that record
 * is durable the device is as it was, except that zones that end in a torn unit are full. It does
 * not say clean: the next mount looks at the zones by its own rules. Single-threaded; owns all it
 * allocates.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "mtftl.h"
#include "rebuild.h"
#include "replay.h"
#include "scan.h"
#include "super.h"

#define MAP_PER_BLOCK	(MTFTL_BLOCK_SIZE / (u32)sizeof(__le32))
#define UNIT_BLOCKS	(1 + MTFTL_STREAM_UNIT_BLOCKS)

struct seen_zone {
	bool told;		/* it has a header that verifies */
	u32 erase_count;	/* as that says */
	u64 first_seq;		/* of the header in block 0, or 0 */
	u32 end;		/* of what the last unit claims */
	u64 last_seq;		/* of that unit */
	enum mtftl_unit_type last_type;
	bool has_others;	/* units that are none of a checkpoint's stream */
};

struct rebuild {
	struct flash *flash;
	struct report *report;
	struct super super;
	struct replay replay;
	struct window window;
	struct rebuild_totals *totals;
	bool worn;		/* a header has an erase count that a mount refuses */
	u32 seed;
	struct seen_zone *seen;
	u8 *vouched;		/* a bit each: a unit holds the logical block where the map says */
	u32 zones[MTFTL_SB_MAX_CKPT_ZONES];	/* for the new checkpoint */
	u32 nr_zones;
};

/* Zones */

static void vouch(void *context, const struct mtftl_unit_info *info, const u8 *header)
{
	struct rebuild *rebuild = context;
	struct seen_zone *seen = &rebuild->seen[info->zone];
	u64 lba;
	u32 crc, i;

	assert(info->zone >= MTFTL_NR_SB_ZONES && info->zone < rebuild->flash->nr_zones);
	if (!seen->told) {
		seen->told = true;
		seen->erase_count = info->erase_count;
		if (!window_payload(&rebuild->window, info))
			seen->erase_count =
				mtftl_erase_count(rebuild->replay.zones[info->zone].erase_count,
						  info->erase_count);
		seen->first_seq = info->offset ? 0 : info->seq;
	}
	rebuild->worn |= info->erase_count > MTFTL_MAX_ERASES;
	/* Zones that recovery passes over may have the numbers of an attempt that a cut ended. */
	if (info->seq > rebuild->replay.max_seq)
		rebuild->replay.max_seq = info->seq;
	seen->end = info->offset + window_payload(&rebuild->window, info) + info->nr_blocks;
	seen->last_seq = info->seq;
	seen->last_type = info->type;
	seen->has_others |= info->type != MTFTL_UNIT_CKPT;
	if (info->type != MTFTL_UNIT_DATA && info->type != MTFTL_UNIT_GC)
		return;
	for (i = 0; i < info->nr_entries; i++) {
		mtftl_unit_entry(header, i, &lba, &crc);
		if (lba < rebuild->super.info.logical_blocks &&
		    rebuild->replay.map[lba] == flash_page(rebuild->flash, info->zone,
							   info->offset +
							   window_payload(&rebuild->window, info) + i))
			rebuild->vouched[lba / 8] |= 1 << lba % 8;
	}
}

/* No mount takes what is behind them; a mount keeps half of them for what it will count. */
static bool is_used_up(const struct rebuild *rebuild)
{
	return rebuild->worn || rebuild->replay.max_seq >> (MTFTL_SEQ_BITS - 1) ||
	       rebuild->super.info.generation >> (MTFTL_SEQ_BITS - 1);
}

/*
 * A unit of a newer version ends a mount. Recovery has passed over it in the zones that the old
 * record names for checkpoints, and in those that a footer speaks for.
 */
static int look_at_zones(struct rebuild *rebuild)
{
	struct scan_result result;
	int err = 0;
	u32 zone;

	for (zone = MTFTL_NR_SB_ZONES; zone < rebuild->flash->nr_zones && !rebuild->window.failed;
	     zone++) {
		progress("looking at zones", zone, rebuild->flash->nr_zones);
		/* Recovery passes over it, too; and it may fail to be read. */
		if (rebuild->replay.zones[zone].flags & MTFTL_ZONE_RETIRED)
			continue;
		scan_zone(&rebuild->window, rebuild->seed, zone, 0, 0, vouch, rebuild, &result);
		if (!result.newer)
			continue;
		report_error(rebuild->report, "zone %u: a unit of a newer version", zone);
		err = -EPROTO;
	}
	progress("looking at zones", zone, zone);
	err = err ?: window_error(&rebuild->window, rebuild->report);
	return err ?: is_used_up(rebuild) ? -EOVERFLOW : 0;
}

/*
 * What the new checkpoint says of each zone: units behind these write pointers are newer than it.
 * Of a zone whose last unit claims more than is written it says nothing: a mount looks at it from its
 * first block on, and fills up that unit before it writes anything there.
 * A zone without a header gets the highest erase count of all: it must not repeat one of its own.
 */
static void set_records(struct rebuild *rebuild)
{
	struct replay_zone *record;
	u32 zone, most = 0;

	for (zone = MTFTL_NR_SB_ZONES; zone < rebuild->flash->nr_zones; zone++) {
		const struct seen_zone *seen = &rebuild->seen[zone];
		u32 wp = rebuild->flash->zones[zone].wp;

		record = &rebuild->replay.zones[zone];
		record->first_seq = seen->end > wp ? 0 : seen->first_seq;
		record->wp = record->first_seq ? wp : 0;
		if (seen->told)
			record->erase_count = seen->erase_count;
		if (record->erase_count > most)
			most = record->erase_count;
	}
	for (zone = MTFTL_NR_SB_ZONES; zone < rebuild->flash->nr_zones; zone++) {
		record = &rebuild->replay.zones[zone];
		if (!rebuild->seen[zone].told && !record->erase_count)
			record->erase_count = most;
	}
}

/* The map */

/*
 * Is the block there? A unit says so, or its header cannot be read any more, but the checkpoint that had
 * it there knew the zone in the life that it is in.
 */
static bool is_there(const struct rebuild *rebuild, u64 lba, u32 page)
{
	u32 zone = page / rebuild->flash->zone_blocks;

	if (zone < MTFTL_NR_SB_ZONES || zone >= rebuild->flash->nr_zones ||
	    page % rebuild->flash->zone_blocks >= rebuild->flash->zones[zone].wp)
		return false;
	return rebuild->vouched[lba / 8] & 1 << lba % 8 ||
	       (rebuild->seen[zone].told && replay_zone_in_checkpoint(&rebuild->replay, zone) &&
		rebuild->replay.zones[zone].erase_count == rebuild->seen[zone].erase_count);
}

/* What is not there reads as an error from now on; then all is counted and told. */
static void judge_map(struct rebuild *rebuild)
{
	u64 lba, first = 0, blocks = rebuild->super.info.logical_blocks;
	struct rebuild_totals *totals = rebuild->totals;
	bool known, before = true;

	for (lba = 0; lba < blocks; lba++) {
		u32 *page = &rebuild->replay.map[lba];

		known = replay_in_checkpoint(&rebuild->replay, lba);
		if (*page <= MTFTL_MAP_MAX_PAGE && !is_there(rebuild, lba, *page))
			*page = MTFTL_MAP_LOST;
		totals->mapped += *page <= MTFTL_MAP_MAX_PAGE;
		totals->lost += *page == MTFTL_MAP_LOST;
		totals->unknown += !known;
		totals->found += !known && *page <= MTFTL_MAP_MAX_PAGE;
		if (before && !known)
			first = lba;
		if (!before && known)
			report_note(rebuild->report, "logical blocks %" PRIu64 " to %" PRIu64
				    ": from headers and footers alone", first, lba - 1);
		before = known;
	}
	if (!before)
		report_note(rebuild->report, "logical blocks %" PRIu64 " to %" PRIu64
			    ": from headers and footers alone", first, blocks - 1);
}

/* Where the new checkpoint goes */

/* Set aside for checkpoints, unless data lies there. */
static bool is_set_aside(const struct mtftl_sb_info *sb, u32 zone, u32 wanted)
{
	return super_names_zone(sb, zone) || zone < MTFTL_NR_SB_ZONES + 2 * wanted;
}

/* A rebuild or resize that was cut off may have left it: it belongs to no checkpoint that counts. */
static bool is_left_over(const struct rebuild *rebuild, u32 zone)
{
	return rebuild->seen[zone].told && !rebuild->seen[zone].has_others;
}

/* The first ones that serve, so those right behind the superblocks: older versions look no farther. */
static int choose_zones(struct rebuild *rebuild)
{
	const struct mtftl_sb_info *sb = &rebuild->super.info;
	u32 wanted = mtftl_ckpt_zones(sb->nr_zones, sb->zone_capacity, sb->logical_blocks);
	bool *used = xalloc(sb->nr_zones, sizeof(*used));
	u32 zone;
	u64 lba;

	assert(wanted && wanted <= MTFTL_SB_MAX_CKPT_ZONES);
	rebuild->nr_zones = 0;
	for (lba = 0; lba < sb->logical_blocks; lba++)
		if (rebuild->replay.map[lba] <= MTFTL_MAP_MAX_PAGE)
			used[rebuild->replay.map[lba] / sb->zone_blocks] = true;
	for (zone = MTFTL_NR_SB_ZONES; zone < sb->nr_zones && rebuild->nr_zones < wanted; zone++) {
		enum flash_cond cond = rebuild->flash->zones[zone].cond;

		if (used[zone] || rebuild->replay.ckpt_needs[zone] ||
		    !flash_is_writable(rebuild->flash, zone) ||
		    rebuild->replay.zones[zone].flags & MTFTL_ZONE_RETIRED ||
		    rebuild->replay.zones[zone].erase_count >= MTFTL_MAX_ERASES ||
		    rebuild->seen[zone].erase_count >= MTFTL_MAX_ERASES)
			continue;
		if (cond == FLASH_EMPTY || is_set_aside(sb, zone, wanted) || is_left_over(rebuild, zone))
			rebuild->zones[rebuild->nr_zones++] = zone;
	}
	free(used);
	return rebuild->nr_zones < wanted ? -ENOSPC : 0;
}

static int empty_zones(struct rebuild *rebuild)
{
	u32 i;
	int err;

	for (i = 0; i < rebuild->nr_zones; i++) {
		struct replay_zone *record = &rebuild->replay.zones[rebuild->zones[i]];

		/* The checkpoint that is there stays until the record names the new one. */
		assert(!rebuild->replay.ckpt_needs[rebuild->zones[i]]);
		err = rebuild->flash->reset(rebuild->flash, rebuild->zones[i]);
		if (err) {
			record->flags |= MTFTL_ZONE_RETIRED;
			return err;
		}
		record->erase_count++;
		record->first_seq = 0;
		record->wp = 0;
	}
	return 0;
}

/* The stream */

static void fill_zone_records(const struct rebuild *rebuild, u64 first, void *block)
{
	struct mtftl_zone_record *record = block;
	u32 i;

	assert(first < rebuild->flash->nr_zones);
	for (i = 0; i < MTFTL_BLOCK_SIZE / sizeof(*record); i++) {
		const struct replay_zone *zone = &rebuild->replay.zones[first + i];

		if (first + i >= rebuild->flash->nr_zones)
			return;
		record[i].erase_count = cpu_to_le32(zone->erase_count);
		record[i].wp = cpu_to_le32(zone->wp);
		record[i].first_seq = cpu_to_le64(zone->first_seq);
		record[i].flags = cpu_to_le16(zone->flags);
	}
}

static void fill_map(const struct rebuild *rebuild, u64 first, void *block)
{
	__le32 *entry = block;
	u32 i;

	assert(first < rebuild->super.info.logical_blocks);
	for (i = 0; i < MAP_PER_BLOCK && first + i < rebuild->super.info.logical_blocks; i++)
		entry[i] = cpu_to_le32(rebuild->replay.map[first + i]);
}

static void fill_block(const struct rebuild *rebuild, u64 index, void *block)
{
	u32 per_block = MTFTL_BLOCK_SIZE / sizeof(struct mtftl_zone_record);
	u64 zone_blocks = (rebuild->flash->nr_zones + per_block - 1) / per_block;

	memset(block, 0, MTFTL_BLOCK_SIZE);
	if (index < zone_blocks)
		fill_zone_records(rebuild, index * per_block, block);
	else
		fill_map(rebuild, (index - zone_blocks) * MAP_PER_BLOCK, block);
}

static int write_stream(struct rebuild *rebuild, u64 number, u64 blocks)
{
	struct flash *flash = rebuild->flash;
	u8 *unit = xalloc_blocks(UNIT_BLOCKS);
	u32 zone = 0, at = 0, i;
	u64 index = 0;
	int err = 0;

	while (!err && index < blocks) {
		u32 nr = blocks - index < MTFTL_STREAM_UNIT_BLOCKS ? blocks - index :
								     MTFTL_STREAM_UNIT_BLOCKS;
		u32 place = rebuild->zones[zone];
		struct mtftl_unit_info info = {
			.type = MTFTL_UNIT_CKPT, .nr_blocks = nr, .lane = UINT16_MAX, .seq = number + 1,
		};

		assert(zone < rebuild->nr_zones && at + 1 + nr <= flash->zone_capacity);
		number++;
		mtftl_unit_init(unit, &info);
		for (i = 0; i < nr; i++, index++) {
			u8 *block = unit + (size_t)(1 + i) * MTFTL_BLOCK_SIZE;

			fill_block(rebuild, index, block);
			mtftl_unit_add_entry(unit, index, mtftl_payload_crc(rebuild->seed, block));
		}
		mtftl_unit_seal(unit, rebuild->seed, place, at,
				rebuild->replay.zones[place].erase_count, rebuild->replay.max_seq);
		assert(!mtftl_unit_parse(unit, rebuild->seed, place, at, flash->zone_capacity,
					 &info));
		err = flash->write(flash, place, at, 1 + nr, unit);
		at += 1 + nr;
		if (flash->zone_capacity - at < UNIT_BLOCKS) {
			/* The drive counts zones that are written in part; if this fails, one more. */
			if (!err && at < flash->zone_capacity)
				flash->finish(flash, place);
			zone++;
			at = 0;
		}
	}
	assert(err || index == blocks);
	free(unit);
	return err ?: flash->flush(flash);
}

/* Behind the newest record, or in the other zone of the log where that takes no more. */
static int write_record(struct rebuild *rebuild, u64 blocks)
{
	struct mtftl_sb_info *sb = &rebuild->super.info;
	struct flash *flash = rebuild->flash;
	u32 zone = rebuild->super.zone, wp = flash->zones[zone].wp;
	void *block = xalloc_blocks(1);
	int err = -ENOSPC;

	sb->flags &= MTFTL_SB_READONLY;
	sb->generation++;
	/* All in one stream, without a log of map blocks: the target makes one of it again. */
	sb->map_log = false;
	mtftl_sb_set_checkpoint(sb, NULL);
	sb->ckpt_seq = rebuild->replay.max_seq;
	sb->ckpt_blocks = blocks;
	sb->ckpt_nr_zones = rebuild->nr_zones;
	memcpy(sb->ckpt_zones, rebuild->zones, rebuild->nr_zones * sizeof(*rebuild->zones));
	assert(!mtftl_sb_wrong(sb));
	mtftl_sb_compose(block, sb);
	if (wp < flash->zone_capacity)
		err = flash->write(flash, zone, wp, 1, block);
	if (err)
		err = flash->reset(flash, !zone) ?: flash->write(flash, !zone, 0, 1, block);
	free(block);
	return err ?: flash->flush(flash);
}

/*
 * A cut may have left less of a zone's last unit than its header claims. What is written next must
 * not lie in there: a walk by headers would pass over it. The next mount does not look at the unit,
 * so nothing is written to such a zone any more.
 */
static bool needs_finish(const struct rebuild *rebuild, u32 zone, bool shorter)
{
	const struct replay_zone *record = &rebuild->replay.zones[zone];

	return rebuild->flash->zones[zone].cond == FLASH_OPEN && record->is_shorter == shorter &&
	       rebuild->seen[zone].end > rebuild->flash->zones[zone].wp &&
	       !(record->flags & MTFTL_ZONE_RETIRED);
}

static int finish_torn(const struct rebuild *rebuild, bool shorter)
{
	u32 zone;
	int err = 0;

	for (zone = MTFTL_NR_SB_ZONES; zone < rebuild->flash->nr_zones && !err; zone++)
		if (needs_finish(rebuild, zone, shorter))
			err = rebuild->flash->finish(rebuild->flash, zone);
	return err;
}

/*
 * A zone that is shorter than the old map says ends there until a new one says what is lost. If that
 * one is durable and the zone is not finished, the next mount fills it up: see set_records().
 */
static int write_all(struct rebuild *rebuild)
{
	const struct mtftl_sb_info *sb = &rebuild->super.info;
	u64 blocks = mtftl_ckpt_stream_blocks(sb->nr_zones, sb->logical_blocks);
	int err = finish_torn(rebuild, false);

	if (err)
		return err;
	set_records(rebuild);
	/* A zone that no header told of may now have the highest erase count there is. */
	err = choose_zones(rebuild);
	if (err)
		return err;
	/* That a zone has retired may be what cannot be read: then another one serves. */
	do {
		err = empty_zones(rebuild);
	} while (err && !choose_zones(rebuild));
	return err ?: write_stream(rebuild, rebuild->replay.max_seq, blocks) ?:
	       write_record(rebuild, blocks) ?: finish_torn(rebuild, true);
}

/*
 * A zone that is shorter is finished behind the record, so a power cut may come in between. Then the
 * unit that claims more is not above the record's number. A mount fills up what a cut has torn, but
 * for checkpoints: their log resets the zone.
 */
static int end_cut_off(struct rebuild *rebuild, bool write)
{
	struct flash *flash = rebuild->flash;
	struct scan_result result;
	struct seen_zone *seen;
	u32 zone;

	for (zone = MTFTL_NR_SB_ZONES; zone < flash->nr_zones; zone++) {
		/* No mount looks at one that has retired, and it may fail to be read. */
		if (flash->zones[zone].cond != FLASH_OPEN ||
		    rebuild->replay.zones[zone].flags & MTFTL_ZONE_RETIRED)
			continue;
		scan_zone(&rebuild->window, rebuild->seed, zone, 0, 0, vouch, rebuild, &result);
		seen = &rebuild->seen[zone];
		if (seen->last_seq > rebuild->super.info.ckpt_seq ||
		    seen->last_type == MTFTL_UNIT_CKPT || seen->last_type == MTFTL_UNIT_MAP)
			seen->end = 0;
		rebuild->totals->unfinished += needs_finish(rebuild, zone, false);
	}
	return window_error(&rebuild->window, rebuild->report) ?:
	       write ? finish_torn(rebuild, false) : 0;
}

static bool is_chosen(const struct rebuild *rebuild, u32 zone)
{
	u32 i;

	for (i = 0; i < rebuild->nr_zones; i++)
		if (rebuild->zones[i] == zone)
			return true;
	return false;
}

/* If the user says that EIO is loss, a mount does not know: it reads the first block of each zone. */
static void note_refusals(struct rebuild *rebuild)
{
	const struct flash *flash = rebuild->flash;
	u32 zone;

	for (zone = MTFTL_NR_SB_ZONES; flash->eio_is_loss && zone < flash->nr_zones; zone++) {
		if (!flash->zones[zone].wp || is_chosen(rebuild, zone) ||
		    rebuild->replay.zones[zone].flags & MTFTL_ZONE_RETIRED)
			continue;
		if (!window_block(&rebuild->window, zone, 0) && rebuild->window.error == -EIO)
			report_note(rebuild->report, "zone %u block 0: EIO: no open succeeds while this"
				    " read fails", zone);
	}
}

static int rebuild_map(struct rebuild *rebuild, bool write)
{
	int err = look_at_zones(rebuild);

	if (!err) {
		judge_map(rebuild);
		err = choose_zones(rebuild);
	}
	if (!err)
		note_refusals(rebuild);
	return err ?: write ? write_all(rebuild) : 0;
}

int rebuild_flash(struct flash *flash, struct report *report, bool write,
		  struct rebuild_totals *totals)
{
	struct rebuild rebuild = {
		.flash = flash, .report = report, .totals = totals,
		.replay = { .flash = flash, .report = report, .salvage = true },
	};
	int err;

	memset(totals, 0, sizeof(*totals));
	err = super_find(flash, &rebuild.super);
	if (err)
		return err;
	rebuild.seed = mtftl_seed(rebuild.super.info.uuid, rebuild.super.info.key);
	replay_from(&rebuild.replay, &rebuild.super);
	window_init(&rebuild.window, flash, UNIT_BLOCKS);
	err = replay_run(&rebuild.replay);
	totals->missing = rebuild.replay.ckpt_missing;
	if (!err) {
		rebuild.seen = xalloc(flash->nr_zones, sizeof(*rebuild.seen));
		rebuild.vouched = xalloc(rebuild.super.info.logical_blocks / 8 + 1, 1);
		err = totals->missing ? rebuild_map(&rebuild, write) : end_cut_off(&rebuild, write);
		free(rebuild.seen);
		free(rebuild.vouched);
	}
	replay_free(&rebuild.replay);
	window_free(&rebuild.window);
	return err;
}

/* More zones */

/* With the zones that it was formatted with; @all gets how many there are. */
static int find_shorter(struct flash *flash, struct super *super, u32 *all)
{
	int err = super_find(flash, super);
	u32 zone;

	*all = flash->nr_zones;
	if (!err)
		return -EEXIST;
	if (err != -ESTALE || super->info.nr_zones >= *all)
		return err;
	for (zone = super->info.nr_zones; zone < *all; zone++)
		if (flash->zones[zone].cond != FLASH_EMPTY)
			return -ENOTEMPTY;
	flash->nr_zones = super->info.nr_zones;
	err = super_find(flash, super);
	if (err)
		flash->nr_zones = *all;
	return err;
}

/* What format would count on. */
static u32 usable_zones(const struct flash *flash, u32 all)
{
	u32 zone, nr = 0;

	for (zone = 0; zone < all; zone++)
		nr += flash_is_writable(flash, zone);
	return nr;
}

static void *grow(void *items, size_t size, u64 before, u64 now, int fill)
{
	u8 *grown = realloc(items, now * size);

	if (!grown)
		fail(EXIT_FAILED, "out of memory: %" PRIu64 " records of %zu bytes", now, size);
	memset(grown + before * size, fill, (now - before) * size);
	return grown;
}

static void add_zones(struct rebuild *rebuild, u32 all, u64 logical_blocks)
{
	struct mtftl_sb_info *sb = &rebuild->super.info;
	struct replay *replay = &rebuild->replay;

	/* All bits set: unmapped. */
	static_assert(MTFTL_MAP_UNMAPPED == UINT32_MAX, "an entry of ones");
	replay->map = grow(replay->map, sizeof(*replay->map), sb->logical_blocks, logical_blocks,
			   0xff);
	replay->zones = grow(replay->zones, sizeof(*replay->zones), sb->nr_zones, all, 0);
	replay->ckpt_needs = grow(replay->ckpt_needs, sizeof(*replay->ckpt_needs), sb->nr_zones,
				  all, 0);
	rebuild->seen = grow(rebuild->seen, sizeof(*rebuild->seen), sb->nr_zones, all, 0);
	/* There are good ones again. */
	sb->flags &= ~MTFTL_SB_READONLY;
	sb->nr_zones = all;
	sb->logical_blocks = logical_blocks;
	rebuild->flash->nr_zones = all;
}

/*
 * The device's new size. Zones set aside for checkpoints are known by where they lie, and there may
 * be data where one more pair of them would: so the map must fit into as many as before.
 */
static u64 grown_blocks(const struct flash *flash, const struct mtftl_sb_info *was, u32 all)
{
	u32 zones = mtftl_ckpt_zones(was->nr_zones, was->zone_capacity, was->logical_blocks);
	u64 most = mtftl_ckpt_most_blocks(all, was->zone_capacity, zones);
	u64 blocks = mtftl_logical_blocks(usable_zones(flash, all), was->zone_capacity,
					  was->op_permille, was->oob);

	if (blocks < was->logical_blocks)
		blocks = was->logical_blocks;
	if (blocks > most)
		blocks = most;
	assert(blocks < was->logical_blocks ||
	       mtftl_ckpt_zones(all, was->zone_capacity, blocks) <= zones);
	return blocks;
}

int rebuild_grow(struct flash *flash, struct report *report, struct mtftl_sb_info *was,
		 struct mtftl_sb_info *now)
{
	struct rebuild rebuild = {
		.flash = flash, .report = report,
		.replay = { .flash = flash, .report = report },
	};
	u64 logical_blocks;
	u32 all;
	int err;

	err = find_shorter(flash, &rebuild.super, &all);
	*was = rebuild.super.info;
	if (err)
		return err;
	logical_blocks = grown_blocks(flash, was, all);
	if (logical_blocks < was->logical_blocks) {
		flash->nr_zones = all;
		return -EFBIG;
	}
	rebuild.seed = mtftl_seed(was->uuid, was->key);
	replay_from(&rebuild.replay, &rebuild.super);
	window_init(&rebuild.window, flash, UNIT_BLOCKS);
	err = replay_run(&rebuild.replay);
	if (!err) {
		rebuild.seen = xalloc(flash->nr_zones, sizeof(*rebuild.seen));
		rebuild.vouched = xalloc(was->logical_blocks / 8 + 1, 1);
		err = look_at_zones(&rebuild);
	}
	if (!err) {
		add_zones(&rebuild, all, logical_blocks);
		err = choose_zones(&rebuild) ?: write_all(&rebuild);
	}
	flash->nr_zones = all;
	*now = rebuild.super.info;
	free(rebuild.seen);
	free(rebuild.vouched);
	replay_free(&rebuild.replay);
	window_free(&rebuild.window);
	return err;
}
