// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery in five steps: load the checkpoint, look at each zone that changed since, forget what the
 * checkpoint had in zones that were reset, sort what was found by number, apply it.
 * Single-threaded; owns all it allocates.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "maplog.h"
#include "mtftl.h"
#include "replay.h"
#include "scan.h"
#include "super.h"
#include "vector.h"

#define WINDOW_BLOCKS	8

struct log_unit {
	u64 seq;
	u32 zone;
	u32 offset;		/* of its first block */
	u64 first_entry;
	u16 nr_entries;
	bool has_crcs;		/* else found in a footer: they are in its header */
};

/* There may be one for each block of the device. */
struct log_entry {
	u32 lba;		/* or NO_LBA: past the end of any device */
	u32 crc;
};

#define NO_LBA	UINT32_MAX

struct log_range {
	u64 seq;
	u64 lba;
	u32 nr_blocks;
	enum mtftl_range_kind kind;
};

/* One step of the log: ranges[index] or units[index]. */
struct log_event {
	u64 seq;
	u64 index;
	bool is_range;
};

struct log {
	struct replay *replay;
	struct window window;
	u32 seed;
	u64 from_seq;		/* what is newer counts */
	struct vector units;
	struct vector entries;
	struct vector ranges;
};

/* Checkpoint */

bool replay_take_records(struct replay *replay, u64 index, const u8 *block)
{
	const struct mtftl_zone_record *record = (const struct mtftl_zone_record *)block;
	u32 per_block = MTFTL_BLOCK_SIZE / sizeof(*record), i;
	u64 first = index * per_block;

	assert(first < replay->sb->nr_zones);
	for (i = 0; i < per_block && first + i < replay->sb->nr_zones; i++)
		if (!mtftl_zone_record_valid(&record[i], replay->sb->zone_capacity)) {
			report_error(replay->report, "checkpoint: record of zone %" PRIu64 ": wp %u,"
				     " erase_count %u and first_seq %" PRIu64 ", expected at most %u, %u"
				     " and %u bits", first + i, le32_to_cpu(record[i].wp),
				     le32_to_cpu(record[i].erase_count),
				     le64_to_cpu(record[i].first_seq), replay->sb->zone_capacity,
				     MTFTL_MAX_ERASES, MTFTL_SEQ_BITS);
			return false;
		}
	for (i = 0; i < per_block && first + i < replay->sb->nr_zones; i++) {
		replay->zones[first + i] = (struct replay_zone) {
			.erase_count = le32_to_cpu(record[i].erase_count),
			.wp = le32_to_cpu(record[i].wp),
			.first_seq = le64_to_cpu(record[i].first_seq),
			.flags = le16_to_cpu(record[i].flags),
			.life = le32_to_cpu(record[i].erase_count),
		};
	}
	return true;
}

static bool is_map_entry(const struct mtftl_sb_info *sb, u32 entry)
{
	return mtftl_map_entry_valid(entry, sb->nr_zones, __builtin_ctz(sb->zone_blocks),
				     sb->zone_capacity);
}

bool replay_take_map(struct replay *replay, u64 index, const u8 *block)
{
	const __le32 *entry = (const __le32 *)block;
	u32 per_block = MTFTL_BLOCK_SIZE / sizeof(*entry), i;
	u64 first = index * per_block;

	assert(first < replay->sb->logical_blocks);
	for (i = 0; i < per_block && first + i < replay->sb->logical_blocks; i++)
		if (!is_map_entry(replay->sb, le32_to_cpu(entry[i]))) {
			report_error(replay->report, "checkpoint: map entry of block %" PRIu64
				     " is %#x, expected a block of a zone", first + i,
				     le32_to_cpu(entry[i]));
			return false;
		}
	for (i = 0; i < per_block && first + i < replay->sb->logical_blocks; i++)
		replay->map[first + i] = le32_to_cpu(entry[i]);
	return true;
}

static bool take_ckpt_block(struct replay *replay, u64 index, const u8 *block)
{
	u64 records = mtftl_ckpt_stream_blocks(replay->sb->nr_zones, 0);

	return index < records ? replay_take_records(replay, index, block) :
				 replay_take_map(replay, index - records, block);
}

struct ckpt_walk {
	struct log *log;
	bool *have;		/* which blocks of the stream were seen */
	u64 missing;
};

static void take_ckpt_unit(void *context, const struct mtftl_unit_info *info, const u8 *header)
{
	struct ckpt_walk *walk = context;
	struct log *log = walk->log;
	const u8 *block;
	u64 index;
	u32 i, crc;

	if (info->type != MTFTL_UNIT_CKPT)
		return;
	for (i = 0; i < info->nr_entries; i++) {
		mtftl_unit_entry(header, i, &index, &crc);
		if (info->offset + 1 + i >= log->replay->flash->zones[info->zone].wp)
			return;
		block = window_block(&log->window, info->zone, info->offset + 1 + i);
		if (!block || mtftl_payload_crc(log->seed, block) != crc)
			continue;
		if (index >= log->replay->sb->ckpt_blocks || walk->have[index] ||
		    !take_ckpt_block(log->replay, index, block))
			continue;
		assert(walk->missing);
		walk->have[index] = true;
		walk->missing--;
	}
	if (info->seq > log->replay->max_seq)
		log->replay->max_seq = info->seq;
}

/* All of it in one stream. */
static int load_stream(struct log *log, bool *have)
{
	const struct mtftl_sb_info *sb = log->replay->sb;
	struct ckpt_walk walk = { .log = log, .have = have, .missing = sb->ckpt_blocks };
	struct scan_result result = { 0 };
	u32 i;

	for (i = 0; i < sb->ckpt_nr_zones && !result.newer; i++) {
		log->replay->ckpt_needs[sb->ckpt_zones[i]] = true;
		scan_zone(&log->window, log->seed, sb->ckpt_zones[i], 0, 0, take_ckpt_unit, &walk,
			  &result);
	}
	/* What is missing may be in there: it is not damaged. */
	if (!walk.missing || !result.newer)
		return 0;
	report_error(log->replay->report, "zone %u: a unit of a newer version",
		     sb->ckpt_zones[i - 1]);
	return -EPROTO;
}

/*
 * Is the clean checkpoint not the newest? What came after it began where a zone ended, or in an
 * empty one. A full zone may have been finished there. The module's rule, of the same zones.
 */
static bool written_since(const struct replay *replay)
{
	const struct mtftl_sb_info *sb = replay->sb;
	u32 zone = MTFTL_NR_SB_ZONES +
		   2 * mtftl_ckpt_zones(sb->nr_zones, sb->zone_capacity, sb->logical_blocks);

	for (; zone < sb->nr_zones; zone++) {
		const struct flash_zone *state = &replay->flash->zones[zone];
		bool full = state->wp == sb->zone_capacity;
		u32 wp = replay->zones[zone].wp;

		if (super_names_zone(sb, zone) || replay->zones[zone].flags & MTFTL_ZONE_RETIRED)
			continue;
		if (full ? !wp : state->wp > wp || state->torn_sectors)
			return true;
	}
	return false;
}

static int load_checkpoint(struct log *log)
{
	struct replay *replay = log->replay;
	u32 blocks = mtftl_ckpt_stream_blocks(replay->sb->nr_zones, replay->sb->logical_blocks), i;
	bool *have = xalloc(blocks, sizeof(*have));
	int err;

	if (replay->sb->map_log)
		err = maplog_load(replay, &log->window, log->seed, have);
	else
		err = load_stream(log, have);
	if (!err)
		err = window_error(&log->window, replay->report);
	for (i = 0; i < blocks; i++)
		replay->ckpt_missing += !have[i];
	if (!err && replay->ckpt_missing && replay->salvage)
		replay->ckpt_have = have;
	else
		free(have);
	if (err || !replay->ckpt_missing)
		return err;
	report_error(replay->report, "checkpoint: %" PRIu64 " of %u blocks do not verify",
		     replay->ckpt_missing, blocks);
	return replay->salvage ? 0 : -EBADMSG;
}

bool replay_in_checkpoint(const struct replay *replay, u64 lba)
{
	u64 index = mtftl_ckpt_stream_blocks(replay->sb->nr_zones, 0);

	index += lba / (MTFTL_BLOCK_SIZE / sizeof(__le32));
	assert(lba < replay->sb->logical_blocks);
	assert(index < mtftl_ckpt_stream_blocks(replay->sb->nr_zones,
						replay->sb->logical_blocks));
	return !replay->ckpt_have || replay->ckpt_have[index];
}

bool replay_zone_in_checkpoint(const struct replay *replay, u32 zone)
{
	return !replay->ckpt_have ||
	       replay->ckpt_have[zone / (MTFTL_BLOCK_SIZE / sizeof(struct mtftl_zone_record))];
}

/* The map has it from the checkpoint, which is newer. */
static bool is_superseded(const struct replay *replay, u64 seq, u64 lba)
{
	return seq <= replay->sb->ckpt_seq && replay_in_checkpoint(replay, lba);
}

/* Log */

static u32 short_lba(u64 lba)
{
	return lba < NO_LBA ? lba : NO_LBA;
}

static void take_ranges(struct log *log, const struct mtftl_unit_info *info, const u8 *header)
{
	struct log_range range;
	u32 i;

	for (i = 0; i < info->nr_entries; i++) {
		mtftl_unit_range(header, i, &range.lba, &range.nr_blocks, &range.seq, &range.kind);
		if (range.seq > log->from_seq)
			*(struct log_range *)vector_add(&log->ranges, sizeof(range)) = range;
	}
}

/* Metadata has the lowest bits of it alone. */
static void note_life(struct log *log, const struct mtftl_unit_info *info)
{
	struct replay_zone *zone = &log->replay->zones[info->zone];

	zone->life = window_payload(&log->window, info) ? info->erase_count :
							  mtftl_erase_count(zone->life, info->erase_count);
}

static void take_unit(void *context, const struct mtftl_unit_info *info, const u8 *header)
{
	struct log *log = context;
	struct log_unit *unit;
	struct log_entry entry;
	u64 lba;
	u32 i;

	note_life(log, info);
	if (info->seq > log->replay->max_seq)
		log->replay->max_seq = info->seq;
	/* A checkpoint that was not completed may say so of what is torn here. */
	if (info->type == MTFTL_UNIT_CKPT || info->type == MTFTL_UNIT_MAP)
		log->replay->older |= log->replay->first && !log->replay->sb->ckpt_blocks;
	else if (info->durable_seq > log->replay->durable_seq)
		log->replay->durable_seq = info->durable_seq;
	if (info->seq <= log->from_seq)
		return;
	if (info->type == MTFTL_UNIT_RANGES)
		take_ranges(log, info, header);
	if (info->type != MTFTL_UNIT_DATA && info->type != MTFTL_UNIT_GC)
		return;
	if (info->nr_entries == 0)
		return;

	unit = vector_add(&log->units, sizeof(*unit));
	*unit = (struct log_unit) {
		.seq = info->seq,
		.zone = info->zone,
		.offset = info->offset,
		.first_entry = log->entries.nr,
		.nr_entries = info->nr_entries,
		.has_crcs = true,
	};
	for (i = 0; i < info->nr_entries; i++) {
		mtftl_unit_entry(header, i, &lba, &entry.crc);
		entry.lba = short_lba(lba);
		*(struct log_entry *)vector_add(&log->entries, sizeof(entry)) = entry;
	}
}

/*
 * False if a header that the footer only points to is of a newer version: then scan. If it cannot
 * be read, its ranges are not known.
 */
static bool take_footer(struct log *log, u32 zone, const u8 *stream, u32 size)
{
	struct replay *replay = log->replay;
	u32 pos = 0, offset, i;
	struct mtftl_unit_info info;
	enum mtftl_unit_type type;
	const __le64 *lbas;
	const u8 *header;
	u16 entries;
	u64 seq;
	int err;

	while (mtftl_footer_next(stream, size, &pos, &seq, &offset, &type, &entries, &lbas) > 0) {
		if (seq > replay->max_seq)
			replay->max_seq = seq;
		if (seq <= log->from_seq)
			continue;
		if (type != MTFTL_UNIT_RANGES && entries == 0)
			continue;
		if (type == MTFTL_UNIT_RANGES) {
			header = window_block(&log->window, zone, offset);
			err = header ? mtftl_unit_parse(header, log->seed, zone, offset,
							replay->flash->zone_capacity, &info) : -EIO;
			if (err == -EPROTO)
				return false;
			if (!err && info.type == MTFTL_UNIT_RANGES && info.seq == seq)
				take_ranges(log, &info, header);
			continue;
		}
		*(struct log_unit *)vector_add(&log->units, sizeof(struct log_unit)) =
			(struct log_unit) {
				.seq = seq,
				.zone = zone,
				.offset = offset,
				.first_entry = log->entries.nr,
				.nr_entries = entries,
			};
		for (i = 0; i < entries; i++)
			*(struct log_entry *)vector_add(&log->entries, sizeof(struct log_entry)) =
				(struct log_entry) { .lba = short_lba(le64_to_cpu(lbas[i])) };
	}
	return true;
}

static bool read_by_footer(struct log *log, u32 zone)
{
	u64 units = log->units.nr, entries = log->entries.nr, ranges = log->ranges.nr;
	struct mtftl_tail_info tail;
	bool taken;
	u32 size;
	u8 *stream;

	/* Whether a block verifies, and so counts, only its metadata says. */
	if (log->replay->sb->oob)
		return false;
	stream = scan_footer(&log->window, log->seed, zone, &tail, &log->replay->durable_seq,
			     &size);
	if (!stream)
		return false;
	log->replay->zones[zone].life = tail.erase_count;
	taken = take_footer(log, zone, stream, size);
	if (!taken) {
		log->units.nr = units;
		log->entries.nr = entries;
		log->ranges.nr = ranges;
	}
	free(stream);
	return taken;
}

/* Where the scan of a zone starts: 0 unless it is certainly as the checkpoint saw it. */
static u32 scan_start(struct log *log, u32 zone)
{
	struct replay *replay = log->replay;
	const struct replay_zone *record = &replay->zones[zone];
	struct mtftl_unit_info info;

	if (window_unit(&log->window, log->seed, zone, 0, &info))
		return 0;
	note_life(log, &info);
	if (replay->ckpt_have || record->first_seq == 0 || record->wp > replay->flash->zones[zone].wp)
		return 0;
	return info.seq == record->first_seq ? record->wp : 0;
}

static int read_zone(struct log *log, u32 zone)
{
	struct replay *replay = log->replay;
	u32 wp = replay->flash->zones[zone].wp, start;
	bool torn = replay->flash->zones[zone].torn_sectors;
	struct scan_result result;

	if ((wp == 0 && !torn) || replay->zones[zone].flags & MTFTL_ZONE_RETIRED)
		return 0;
	start = wp ? scan_start(log, zone) : 0;
	if (start == wp && !torn) {
		replay->zones_skipped++;
		return 0;
	}
	if (read_by_footer(log, zone)) {
		replay->zones_by_footer++;
		return 0;
	}
	replay->zones_scanned++;
	scan_zone(&log->window, log->seed, zone, start, log->from_seq, take_unit, log, &result);
	assert(zone >= MTFTL_NR_SB_ZONES && start <= wp);
	if (!result.newer)
		return 0;
	report_error(replay->report, "zone %u: a unit of a newer version", zone);
	return -EPROTO;
}

/* Entries that are lost */

/* Of what is in a zone that failed, reads tell. */
static bool is_judged(const struct replay *replay, u32 page)
{
	u32 zone = page / replay->flash->zone_blocks;

	return page <= MTFTL_MAP_MAX_PAGE && zone >= MTFTL_NR_SB_ZONES && zone < replay->sb->nr_zones &&
	       replay->flash->zones[zone].cond != FLASH_OFFLINE &&
	       !(replay->zones[zone].flags & MTFTL_ZONE_RETIRED);
}

/*
 * Before the log is applied: what the checkpoint had in a zone that was reset since. Versions that
 * replaced it were durable before that. If the log does not have them, something else is there now.
 */
static void forget_resets(struct replay *replay)
{
	u64 lba;

	for (lba = 0; lba < replay->sb->logical_blocks; lba++) {
		u32 zone = replay->map[lba] / replay->flash->zone_blocks;

		if (!is_judged(replay, replay->map[lba]))
			continue;
		if (replay->flash->zones[zone].cond == FLASH_EMPTY ||
		    (replay_zone_in_checkpoint(replay, zone) &&
		     replay->zones[zone].life != replay->zones[zone].erase_count))
			replay->map[lba] = MTFTL_MAP_LOST;
	}
}

/*
 * Last of all, and of a clean checkpoint, too: the drive lost what it had there, or the entry is of
 * another writer.
 */
static void forget_unwritten(struct replay *replay)
{
	u64 lba;

	for (lba = 0; lba < replay->sb->logical_blocks; lba++) {
		u32 zone = replay->map[lba] / replay->flash->zone_blocks;
		u32 offset = replay->map[lba] % replay->flash->zone_blocks;

		if (!is_judged(replay, replay->map[lba]) ||
		    (offset < replay->flash->zones[zone].wp && !replay->zones[zone].is_ckpt))
			continue;
		report_error(replay->report, "logical block %" PRIu64 " at zone %u block %u: no data is"
			     " written there", lba, zone, offset);
		replay->map[lba] = MTFTL_MAP_LOST;
		replay->zones[zone].is_shorter = true;
	}
}

/* Apply */

static void apply_range(struct log *log, const struct log_range *range)
{
	struct replay *replay = log->replay;
	u32 value = range->kind == MTFTL_RANGE_LOST ? MTFTL_MAP_LOST : MTFTL_MAP_UNMAPPED;
	u64 i;

	if (range->lba + range->nr_blocks > replay->sb->logical_blocks) {
		report_error(replay->report, "range record %" PRIu64 ": blocks past the end",
			     range->seq);
		return;
	}
	for (i = range->lba; i < range->lba + range->nr_blocks; i++)
		if (!is_superseded(replay, range->seq, i))
			replay->map[i] = value;
	replay->ranges++;
}

/* The checksums of a unit that was found in a footer; false if its header is torn. */
static bool find_crcs(struct log *log, struct log_unit *unit)
{
	struct log_entry *entry = (struct log_entry *)log->entries.items + unit->first_entry;
	struct mtftl_unit_info info;
	const u8 *header;
	u64 lba;
	u32 i;

	if (unit->has_crcs)
		return true;
	header = window_block(&log->window, unit->zone, unit->offset);
	if (!header || mtftl_unit_parse(header, log->seed, unit->zone, unit->offset,
					log->replay->flash->zone_capacity, &info) ||
	    info.seq != unit->seq || info.nr_entries != unit->nr_entries ||
	    info.type == MTFTL_UNIT_RANGES)
		return false;
	for (i = 0; i < unit->nr_entries; i++) {
		mtftl_unit_entry(header, i, &lba, &entry[i].crc);
		if (short_lba(lba) != entry[i].lba)
			return false;
	}
	unit->has_crcs = true;
	return true;
}

/* Blocks in front of a data unit's payload. */
static u32 head(const struct log *log)
{
	return mtftl_unit_head(log->replay->sb->oob, MTFTL_UNIT_DATA);
}

static bool payload_verifies(struct log *log, const struct log_unit *unit, u32 index, u32 crc)
{
	u32 offset = unit->offset + head(log) + index;
	const u8 *block;

	assert(index < unit->nr_entries);
	if (offset >= log->replay->flash->zones[unit->zone].wp)
		return false;
	block = window_block(&log->window, unit->zone, offset);
	return block && mtftl_payload_crc(log->seed, block) == crc;
}

static void apply_unit(struct log *log, struct log_unit *unit, bool verify)
{
	struct replay *replay = log->replay;
	struct log_entry *entry = (struct log_entry *)log->entries.items + unit->first_entry;
	u32 i;

	assert(unit->first_entry + unit->nr_entries <= log->entries.nr);
	if (verify && !find_crcs(log, unit)) {
		replay->blocks_dropped += unit->nr_entries;
		return;
	}
	for (i = 0; i < unit->nr_entries; i++) {
		if (entry[i].lba >= replay->sb->logical_blocks) {
			report_error(replay->report, "unit %" PRIu64 ": logical block %u is past the"
				     " end", unit->seq, entry[i].lba);
			continue;
		}
		if (is_superseded(replay, unit->seq, entry[i].lba))
			continue;
		if (verify && !payload_verifies(log, unit, i, entry[i].crc)) {
			replay->blocks_dropped++;
			continue;
		}
		replay->map[entry[i].lba] = flash_page(replay->flash, unit->zone,
						       unit->offset + head(log) + i);
	}
	replay->units++;
}

/* A durable unit of which no copy verifies is lost, rather than replaced by older data. */
static void mark_lost(struct log *log, const struct log_unit *unit)
{
	struct log_entry *entry = (struct log_entry *)log->entries.items + unit->first_entry;
	u32 i;

	for (i = 0; i < unit->nr_entries; i++)
		if (entry[i].lba < log->replay->sb->logical_blocks &&
		    !is_superseded(log->replay, unit->seq, entry[i].lba))
			log->replay->map[entry[i].lba] = MTFTL_MAP_LOST;
}

static int by_seq(const void *a, const void *b)
{
	const struct log_event *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void apply_log(struct log *log)
{
	u64 nr = log->units.nr + log->ranges.nr, i, j, k, before = 0;
	struct log_event *events = xalloc(nr, sizeof(*events));
	struct log_unit *units = log->units.items;
	struct log_range *ranges = log->ranges.items;

	for (i = 0; i < log->units.nr; i++)
		events[i] = (struct log_event) { .seq = units[i].seq, .index = i };
	for (j = 0; j < log->ranges.nr; j++)
		events[i + j] = (struct log_event) {
			.seq = ranges[j].seq, .index = j, .is_range = true,
		};
	qsort(events, nr, sizeof(*events), by_seq);

	for (i = 0; i < nr; i = j) {
		u64 seq = events[i].seq;
		u64 copies = 0;
		bool doubtful;

		/* The older ones first, and none that the checkpoint has. */
		assert(seq > before && seq > log->from_seq);
		before = seq;
		for (j = i; j < nr && events[j].seq == seq; j++)
			copies += !events[j].is_range;
		/* Units that an earlier cut has torn may be above the number of an older record. */
		doubtful = copies > 1 || log->replay->older;
		for (k = i; k < j; k++)
			if (doubtful && seq <= log->replay->durable_seq && !events[k].is_range)
				mark_lost(log, &units[events[k].index]);
		for (k = i; k < j; k++)
			if (events[k].is_range)
				apply_range(log, &ranges[events[k].index]);
			else
				apply_unit(log, &units[events[k].index],
					   doubtful || seq > log->replay->durable_seq);
	}
	free(events);
}

void replay_from(struct replay *replay, const struct super *super)
{
	replay->sb = &super->info;
	replay->older = super->may_be_older;
	replay->first = !super->offset;
}

int replay_run(struct replay *replay)
{
	const struct mtftl_sb_info *sb = replay->sb;
	struct log log = { .replay = replay, .seed = mtftl_seed(sb->uuid, sb->key) };
	bool clean = sb->flags & MTFTL_SB_CLEAN;
	int err = 0;
	u32 zone, i;

	replay->map = xalloc(sb->logical_blocks, sizeof(*replay->map));
	memset(replay->map, 0xff, sb->logical_blocks * sizeof(*replay->map));
	replay->zones = xalloc(sb->nr_zones, sizeof(*replay->zones));
	replay->ckpt_needs = xalloc(sb->nr_zones, sizeof(*replay->ckpt_needs));
	replay->max_seq = sb->ckpt_seq;
	replay->durable_seq = sb->ckpt_seq;
	window_init(&log.window, replay->flash, WINDOW_BLOCKS);

	if (sb->ckpt_blocks)
		err = load_checkpoint(&log);
	for (i = 0; i < sb->ckpt_nr_zones; i++)
		replay->zones[sb->ckpt_zones[i]].is_ckpt = true;
	log.from_seq = replay->ckpt_have ? 0 : sb->ckpt_seq;
	if (!err && clean && !replay->ckpt_have && written_since(replay)) {
		report_note(replay->report, "zones hold more than the clean checkpoint says");
		clean = false;
		replay->older = true;
	}
	replay->older |= replay->ckpt_have != NULL;
	if (!err && (replay->ckpt_have || !clean)) {
		for (zone = MTFTL_NR_SB_ZONES; zone < sb->nr_zones && !err; zone++) {
			if (!super_names_zone(sb, zone))
				err = read_zone(&log, zone);
			err = err ?: window_error(&log.window, replay->report);
		}
		if (!err) {
			forget_resets(replay);
			apply_log(&log);
			err = window_error(&log.window, replay->report);
		}
	}
	if (!err)
		forget_unwritten(replay);

	window_free(&log.window);
	vector_free(&log.units);
	vector_free(&log.entries);
	vector_free(&log.ranges);
	return err;
}

void replay_free(struct replay *replay)
{
	free(replay->ckpt_have);
	free(replay->ckpt_needs);
	free(replay->map);
	free(replay->zones);
}
