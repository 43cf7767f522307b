// SPDX-License-Identifier: GPL-2.0
/*
 * The log of map blocks: the stream, then the directory in it, then the map block at each place.
 * Single-threaded; owns all it allocates.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "format/maplog.h"
#include "maplog.h"
#include "mtftl.h"

struct maplog {
	struct replay *replay;
	struct window *window;
	struct mtftl_log_shape shape;
	u32 seed;
	bool *have;			/* see maplog_load() */
	bool *have_stream;		/* of each block of the stream */
	struct mtftl_map_place *places;	/* the directory */
	u32 taken;			/* blocks of the stream that are there */
	struct mtftl_log_at end;	/* of what is searched for it, from its first seat on */
	u32 searched;			/* seats of that */
	bool newer;
};

/* A block of the stream that verifies. */
static void take_block(struct maplog *log, u64 index, const u8 *block)
{
	u32 records = log->shape.record_blocks;

	assert(index < log->shape.stream_blocks);
	if (log->have_stream[index])
		return;
	log->have_stream[index] = true;
	log->taken++;
	if (index >= records) {
		memcpy((u8 *)log->places + ((index - records) << MTFTL_BLOCK_SHIFT), block,
		       MTFTL_BLOCK_SIZE);
		return;
	}
	log->have[index] = replay_take_records(log->replay, index, block);
}

/* What of a unit's payload verifies, as the header in the window says. */
static void take_unit(struct maplog *log, const struct mtftl_unit_info *info)
{
	u32 wp = log->window->flash->zones[info->zone].wp, crc, i;
	const u8 *block;
	u64 index;

	for (i = 0; i < info->nr_entries && info->offset + 1 + i < wp; i++) {
		mtftl_unit_entry(log->window->header, i, &index, &crc);
		block = window_block(log->window, info->zone, info->offset + 1 + i);
		if (block && mtftl_payload_crc(log->seed, block) == crc &&
		    index < log->shape.stream_blocks)
			take_block(log, index, block);
	}
}

static bool is_of_stream(const struct maplog *log, const struct mtftl_unit_info *info)
{
	return info->type == MTFTL_UNIT_CKPT && info->seq >= log->replay->sb->ckpt_unit_first &&
	       info->seq <= log->replay->sb->ckpt_unit_last;
}

static void need_seat(struct maplog *log, u32 seat)
{
	log->replay->ckpt_needs[log->replay->sb->ckpt_zones[seat % log->shape.seats]] = true;
}

/* Unit behind unit, from where the record says. False: one is not there. *@head: its last seat. */
static bool walk_stream(struct maplog *log, u32 *head)
{
	const struct mtftl_sb_info *sb = log->replay->sb;
	u32 seat = sb->ckpt_seat, offset = sb->ckpt_offset, entered = 1, before;
	u64 seq = sb->ckpt_unit_first - 1;
	struct mtftl_unit_info info;
	int err;

	while (log->taken < log->shape.stream_blocks) {
		u32 zone;

		if (!mtftl_log_takes(log->shape.capacity, offset)) {
			seat = (seat + 1) % log->shape.seats;
			offset = 0;
			entered++;
		}
		zone = sb->ckpt_zones[seat];
		if (entered > log->shape.seats / 2 || offset >= log->window->flash->zones[zone].wp)
			return false;
		err = window_unit(log->window, log->seed, zone, offset, &info);
		log->newer |= err == -EPROTO;
		before = log->taken;
		if (err || !is_of_stream(log, &info) || info.seq <= seq)
			return false;
		take_unit(log, &info);
		need_seat(log, seat);
		/* All of it, and nothing twice. */
		if (!info.nr_entries || info.nr_entries != info.nr_blocks ||
		    log->taken != before + info.nr_entries ||
		    (seq < sb->ckpt_unit_first && info.seq != sb->ckpt_unit_first))
			return false;
		seq = info.seq;
		offset += 1 + info.nr_blocks;
	}
	*head = seat;
	return seq == sb->ckpt_unit_last;
}

static void found_unit(void *context, const struct mtftl_unit_info *info, const u8 *header)
{
	struct maplog *log = context;

	(void)header;
	if (!is_of_stream(log, info) ||
	    (log->searched == log->end.zone && info->offset >= log->end.offset))
		return;
	take_unit(log, info);
}

/*
 * What is left of the stream, no farther than one of units of full length goes. A checkpoint that a
 * power cut ended may have left units of the same numbers in front of it, and in zones that the log
 * has not entered since.
 */
static void search_stream(struct maplog *log)
{
	const struct mtftl_sb_info *sb = log->replay->sb;
	u32 offset = sb->ckpt_offset, most = log->shape.seats / 2;
	struct scan_result result;

	log->end = (struct mtftl_log_at) { .offset = offset };
	mtftl_log_advance(log->shape.capacity, &log->end, log->shape.stream_blocks);
	/* What cannot be read now may be readable later: then the checkpoint is whole. */
	for (log->searched = 0; log->searched < most; log->searched++)
		need_seat(log, sb->ckpt_seat + log->end.zone + log->shape.seats - log->searched);
	for (log->searched = 0; log->searched <= log->end.zone && log->searched < most;
	     log->searched++) {
		u32 zone = sb->ckpt_zones[(sb->ckpt_seat + log->searched) % log->shape.seats];

		if (offset < log->window->flash->zones[zone].wp)
			scan_zone(log->window, log->seed, zone, offset, 0, found_unit, log, &result);
		offset = 0;
	}
}

/* Why a place is none; NULL: it is one. */
static const char *wrong_place(const struct maplog *log, const struct mtftl_map_place *place)
{
	u32 seat, offset;

	if (!mtftl_place_valid(&log->shape, place))
		return "expected a block behind a header in a seat";
	seat = mtftl_place_seat(&log->shape, place);
	offset = mtftl_place_offset(&log->shape, place);
	if (offset >= log->window->flash->zones[log->replay->sb->ckpt_zones[seat]].wp)
		return "expected a block that is written";
	return NULL;
}

static bool load_map_block(struct maplog *log, u32 index)
{
	const struct mtftl_map_place *place = &log->places[index];
	const struct mtftl_sb_info *sb = log->replay->sb;
	const char *wrong;
	const u8 *block;
	u32 seat;

	if (mtftl_place_is_none(place))
		return true;
	wrong = wrong_place(log, place);
	if (wrong) {
		report_error(log->replay->report, "checkpoint: map block %u is at %u: %s", index,
			     le32_to_cpu(place->at), wrong);
		return false;
	}
	seat = mtftl_place_seat(&log->shape, place);
	need_seat(log, seat);
	block = window_block(log->window, sb->ckpt_zones[seat],
			     mtftl_place_offset(&log->shape, place));
	if (!block || mtftl_payload_crc(log->seed, block) != le32_to_cpu(place->crc))
		return false;
	return replay_take_map(log->replay, index, block);
}

static int by_place(const void *a, const void *b)
{
	u32 x = le32_to_cpu(((const struct mtftl_map_place *)a)->at);
	u32 y = le32_to_cpu(((const struct mtftl_map_place *)b)->at);

	return x < y ? -1 : x > y;
}

/* The places as a whole, once all of them are known; the order of the directory is lost. */
static bool places_are_legal(struct maplog *log, u32 head)
{
	u32 *blocks = xalloc(log->shape.seats, sizeof(*blocks)), i, span;
	bool legal = true;

	qsort(log->places, log->shape.map_blocks, sizeof(*log->places), by_place);
	for (i = 0; i < log->shape.map_blocks && !mtftl_place_is_none(&log->places[i]); i++) {
		if (!mtftl_place_valid(&log->shape, &log->places[i]))
			continue;
		blocks[mtftl_place_seat(&log->shape, &log->places[i])]++;
		if (i && log->places[i].at == log->places[i - 1].at) {
			report_error(log->replay->report, "checkpoint: two map blocks are at %u",
				     le32_to_cpu(log->places[i].at));
			legal = false;
		}
	}
	span = mtftl_log_span(&log->shape, blocks, log->replay->sb->ckpt_seat, head);
	free(blocks);
	if (span <= log->shape.seats / 2)
		return legal;
	report_error(log->replay->report, "checkpoint: map blocks are in %u seats up to seat %u,"
		     " expected at most %u", span, head, log->shape.seats / 2);
	return false;
}

static int load(struct maplog *log)
{
	u32 per_block = MTFTL_BLOCK_SIZE / sizeof(*log->places), i, head;
	const struct mtftl_sb_info *sb = log->replay->sb;
	bool whole;

	whole = walk_stream(log, &head);
	if (log->newer) {
		report_error(log->replay->report, "zone %u: a unit of a newer version",
			     sb->ckpt_zones[sb->ckpt_seat]);
		return -EPROTO;
	}
	if (!whole)
		search_stream(log);
	for (i = 0; i < log->shape.map_blocks; i++)
		log->have[log->shape.record_blocks + i] =
			log->have_stream[log->shape.record_blocks + i / per_block] &&
			load_map_block(log, i);
	/* A contradiction: the module does not take it. */
	log->have[0] &= !whole || places_are_legal(log, head);
	if (!whole && log->taken == log->shape.stream_blocks) {
		report_error(log->replay->report, "checkpoint: the units of its stream contradict the"
			     " superblock");
		log->have[0] = false;
	}
	if (sb->ckpt_unit_last > log->replay->max_seq)
		log->replay->max_seq = sb->ckpt_unit_last;
	return 0;
}

int maplog_load(struct replay *replay, struct window *window, u32 seed, bool *have)
{
	struct maplog log = { .replay = replay, .window = window, .seed = seed, .have = have };
	int err;

	mtftl_log_shape(&log.shape, replay->sb->nr_zones, replay->sb->zone_capacity,
			replay->sb->logical_blocks);
	log.have_stream = xalloc(log.shape.stream_blocks, sizeof(*log.have_stream));
	log.places = xalloc(log.shape.stream_blocks - log.shape.record_blocks, MTFTL_BLOCK_SIZE);
	err = load(&log);
	free(log.have_stream);
	free(log.places);
	return err;
}
