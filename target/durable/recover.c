// SPDX-License-Identifier: GPL-2.0
/*
 * Mounting: a table of steps, each timed. Runs alone, before any user and any thread.
 * Nothing that was there changes: the caller writes a checkpoint once all steps
 * succeeded, and the zeroes behind a torn unit say nothing, so a crash in between is
 * harmless.
 */
#include "durable/recover.h"

#include <linux/slab.h>

#include "device/device.h"
#include "device/rw.h"
#include "device/seq.h"
#include "device/spread.h"
#include "device/thread.h"
#include "durable/checkpoint.h"
#include "durable/found.h"
#include "map/age.h"
#include "map/map.h"
#include "zone/life.h"
#include "zone/scan.h"
#include "zone/super.h"
#include "zone/walk.h"
#include "zone/zones.h"

#define FILL_BLOCKS	2u	/* that fit into the buffer */
#define PART_BLOCKS	0x4000ull	/* of the map, that one CPU looks at, at a time */
#define MIN_FINDS	(16u << 20)	/* bytes for what is found, at least */
/*
 * Bytes that all finds may take for each block of the device. A discard is logged only if a block
 * was mapped, so there is one range record for each block that the checkpoint has or that was
 * written since. Units of one block take two blocks. That makes 68 bytes. Records that GC logs
 * again may be there twice.
 */
#define MOST_FINDS	128u

/* What the footer of a zone lists: it is read if one of the zone's headers cannot be. */
struct listed {
	struct mtftl_zone *zone;	/* whose it is; NULL: it was not looked for */
	u32 size;			/* of the stream; 0: there is none */
	void *stream;
	u32 *at;			/* 1 + where the unit that begins at a block is listed */
};

struct recovery {
	struct mtftl *ftl;
	struct mtftl_scanner *scanner;
	struct mtftl_finds *finds;
	struct mtftl_numbers *numbers;	/* of the zone that is scanned */
	struct listed listed;		/* likewise */
	u64 nr_units;		/* newer than the checkpoint */
	u64 durable_seq;
	u64 newest_seq;
	atomic64_t lost;	/* blocks whose entries point to nothing */
	bool clean;		/* the checkpoint is all that there is */
	bool older;		/* there is, or was, a newer record: see apply() */
	void *buf;
};

/* @part has entries from its number times PART_BLOCKS on. */
static int for_all_entries(struct recovery *rec, mtftl_part_fn part)
{
	u32 nr = DIV_ROUND_UP_ULL(rec->ftl->config.logical_blocks, PART_BLOCKS);

	return mtftl_spread(mtftl_checkpoint_spread(rec->ftl), nr, part, rec);
}

static int report_zone(struct blk_zone *bz, unsigned int index, void *data)
{
	struct mtftl *ftl = ((struct recovery *)data)->ftl;
	struct mtftl_zone *zone = mtftl_zone(ftl, index);
	enum mtftl_zone_state state = MTFTL_ZONE_PARTIAL;

	if (index >= ftl->config.nr_zones ||
	    bz->start != mtftl_page_sector(ftl, mtftl_zone_start(zone)))
		return -EIO;
	zone->wp = 0;
	zone->torn_sectors = 0;
	zone->unfinished = false;
	zone->newer = false;
	switch (bz->cond) {
	case BLK_ZONE_COND_EMPTY:
		state = MTFTL_ZONE_EMPTY;
		break;
	case BLK_ZONE_COND_OFFLINE:
		state = MTFTL_ZONE_BAD;
		break;
	case BLK_ZONE_COND_READONLY:
		/* What it holds can be read: GC moves it, then retires the zone. */
		zone->broken = true;
		zone->failed_lives = MTFTL_ZONE_LIVES;
		fallthrough;
	case BLK_ZONE_COND_FULL:
		state = MTFTL_ZONE_FULL;
		zone->wp = ftl->config.capacity;
		break;
	default:
		if (bz->wp < bz->start || bz->wp - bz->start > bz->capacity)
			return -EIO;
		zone->wp = min_t(u64, (bz->wp - bz->start) / MTFTL_BLOCK_SECTORS,
				 ftl->config.capacity);
		zone->torn_sectors = (bz->wp - bz->start) % MTFTL_BLOCK_SECTORS;
		if (zone->wp == ftl->config.capacity) {
			state = MTFTL_ZONE_FULL;
			zone->unfinished = true;
		}
		break;
	}
	mtftl_assert(zone->wp <= ftl->config.capacity && zone->torn_sectors < MTFTL_BLOCK_SECTORS,
		     "zone %u: wp %u", index, zone->wp);
	mtftl_assert((state == MTFTL_ZONE_FULL) == (zone->wp == ftl->config.capacity),
		     "zone %u: state %u, wp %u", index, state, zone->wp);
	zone->quiet_wp = zone->wp;
	mtftl_zone_move(zone, state);
	return 0;
}

static int step_report_zones(struct recovery *rec)
{
	/* A zone that is left out would count as empty. */
	return mtftl_report_all_zones(rec->ftl, 0, rec->ftl->config.nr_zones, report_zone, rec);
}

/* Nothing else says which blocks these are. */
static void tell_offline(const struct mtftl_zone *zone)
{
	mtftl_err(zone->ftl, "zone %u is offline: blocks that were written to it since the last checkpoint are as they were before",
		  zone->index);
	mtftl_tell_news(zone->ftl);
}

static int step_load_checkpoint(struct recovery *rec)
{
	u64 blocks = mtftl_super_info(rec->ftl)->ckpt_blocks;
	struct mtftl *ftl = rec->ftl;
	int r = 0;
	u32 i;

	if (blocks)
		r = mtftl_checkpoint_load(ftl);
	if (r && r != -EINTR)
		mtftl_err(ftl, "checkpoint is damaged (%d), expected %llu blocks that verify", r,
			  blocks);
	if (r)
		return r;
	rec->newest_seq = mtftl_seq_last(ftl);
	mtftl_assert(rec->newest_seq >= mtftl_super_info(ftl)->ckpt_seq, "number %llu",
		     rec->newest_seq);
	for (i = 0; i < ftl->config.nr_zones; i++) {
		const struct mtftl_zone_record *record = mtftl_checkpoint_record(ftl, i);
		struct mtftl_zone *zone = mtftl_zone(ftl, i);

		zone->erase_count = le32_to_cpu(record->erase_count);
		zone->first_seq = le64_to_cpu(record->first_seq);
		if (le16_to_cpu(record->flags) & MTFTL_ZONE_RETIRED)
			mtftl_zone_move(zone, MTFTL_ZONE_BAD);
		else if (zone->state == MTFTL_ZONE_BAD && !rec->clean && i >= MTFTL_NR_SB_ZONES)
			tell_offline(zone);
	}
	return 0;
}

/*
 * Is the clean checkpoint not the newest? What came after it began where a zone ended, or in an
 * empty one. A full zone may have been finished there. From @first on zones hold data.
 */
static bool written_since(struct mtftl *ftl, u32 first)
{
	u32 i;

	mtftl_assert(first > MTFTL_NR_SB_ZONES && first < ftl->config.nr_zones, "zone %u", first);
	for (i = first; i < ftl->config.nr_zones; i++) {
		struct mtftl_zone *zone = mtftl_zone(ftl, i);
		u32 wp = le32_to_cpu(mtftl_checkpoint_record(ftl, i)->wp);

		if ((zone->state == MTFTL_ZONE_PARTIAL && (zone->wp > wp || zone->torn_sectors)) ||
		    (zone->state == MTFTL_ZONE_FULL && !wp))
			return true;
	}
	return false;
}

/* Superblock log, the durable checkpoint, and zones for the next one: see step_replace_bad(). */
static int step_set_aside(struct recovery *rec)
{
	struct mtftl *ftl = rec->ftl;
	u32 i, first;
	int r;

	for (i = 0; i < MTFTL_NR_SB_ZONES; i++)
		mtftl_zone_move(mtftl_zone(ftl, i), MTFTL_ZONE_SUPER);
	r = mtftl_checkpoint_set_aside(ftl, &first);
	mtftl_assert(r || mtftl_zones_count(ftl, MTFTL_ZONE_SUPER) == MTFTL_NR_SB_ZONES);
	if (!r && rec->clean && written_since(ftl, first)) {
		mtftl_err(ftl, "zones hold more than the clean checkpoint says: newer records are missing");
		mtftl_super_distrust(ftl);
		rec->clean = false;
		rec->older = true;
	}
	return r;
}

/* Scanning */

/* Blocks in front of its payload. */
static u32 head(const struct recovery *rec, enum mtftl_unit_type type)
{
	return mtftl_unit_head(!rec->ftl->config.header_blocks, type);
}

static int keep_unit(struct recovery *rec, const struct mtftl_unit_info *info)
{
	struct mtftl *ftl = rec->ftl;
	u32 page = mtftl_zone_page(ftl, info->zone) + info->offset + head(rec, info->type);
	int r = 0;

	mtftl_assert(info->seq > mtftl_super_info(ftl)->ckpt_seq, "number %llu", info->seq);
	mtftl_assert(info->offset + head(rec, info->type) + info->nr_blocks <= ftl->config.capacity,
		     "zone %u: %u blocks at %u", info->zone, info->nr_blocks, info->offset);
	rec->nr_units++;
	if (ftl->config.header_blocks)
		r = mtftl_numbers_add(rec->numbers, info->seq);
	r = r ?: mtftl_finds_add(rec->finds, rec->buf, info, page);
	if (r == -E2BIG)
		mtftl_err(ftl, "zone %u block %u: a number is in more places than any is written to",
			  info->zone, info->offset);
	if (r == -EOVERFLOW)
		mtftl_err(ftl, "zones hold more units and range records above number %llu than a writer leaves, expected at most %u bytes of them for each block",
			  mtftl_super_info(ftl)->ckpt_seq, MOST_FINDS);
	return r;
}

static void saw_unit(struct recovery *rec, struct mtftl_zone *zone,
		     const struct mtftl_unit_info *info)
{
	mtftl_assert(info->zone == zone->index && info->durable_seq < info->seq,
		     "zone %u: number %llu, durable %llu", zone->index, info->seq,
		     info->durable_seq);
	/* A checkpoint that was not completed may say so of what this recovery finds torn. */
	if (info->type != MTFTL_UNIT_CKPT && info->type != MTFTL_UNIT_MAP) {
		rec->durable_seq = max(rec->durable_seq, info->durable_seq);
		zone->newer |= info->seq > mtftl_super_info(rec->ftl)->ckpt_seq;
	} else if (!mtftl_super_info(rec->ftl)->ckpt_blocks &&
		   mtftl_super_age(rec->ftl) == MTFTL_SUPER_FIRST) {
		/* The record was restored: there had been one that named a checkpoint. */
		rec->older = true;
	}
	rec->newest_seq = max(rec->newest_seq, info->seq);
	zone->erase_count = info->erase_count;
	if (info->offset == 0)
		zone->first_seq = info->seq;
	if (info->type == MTFTL_UNIT_RANGES)
		zone->ranges_seq = max(zone->ranges_seq, info->seq);
}

/*
 * The block at the write pointer is there in part, on a drive of smaller blocks than ours. A short
 * header may be whole in it. complete_block() writes zeroes behind it: so it reads here.
 */
static int read_torn_unit(struct recovery *rec, struct mtftl_zone *zone,
			  struct mtftl_unit_info *info)
{
	const struct mtftl_config *config = &rec->ftl->config;
	u32 page = mtftl_zone_start(zone) + zone->wp;
	int r;

	mtftl_assert(zone->torn_sectors && zone->wp < config->capacity, "zone %u: wp %u",
		     zone->index, zone->wp);
	memset(rec->buf, 0, MTFTL_BLOCK_SIZE);
	r = mtftl_rw_sectors(rec->ftl, REQ_OP_READ, mtftl_page_sector(rec->ftl, page), rec->buf,
			     zone->torn_sectors);
	if (!r)
		r = !mtftl_unit_parse(rec->buf, config->seed, zone->index, zone->wp,
				      config->capacity, info) &&
		    mtftl_unit_head(!config->header_blocks, info->type);
	return mtftl_medium_says(r) ? 0 : r;
}

/*
 * At block @at, as mtftl_scan_unit(). A unit of a newer version ends the mount, because the next
 * checkpoint would leave it out. It must begin where a unit ends, @in_step: else it may lie in
 * users' data.
 */
static int scan_unit(struct recovery *rec, struct mtftl_zone *zone, u32 at, bool in_step,
		     struct mtftl_unit_info *info)
{
	const struct mtftl_config *config = &rec->ftl->config;
	int r;

	/* If nothing is read, it does not hold what was read last. */
	memset(rec->buf, 0, sizeof(struct mtftl_unit));
	r = at < zone->wp ? mtftl_scan_unit(rec->scanner, zone, at, rec->buf, info) :
			    read_torn_unit(rec, zone, info);
	if (!r && in_step && mtftl_unit_parse(rec->buf, config->seed, zone->index, at,
					      config->capacity, info) == -EPROTO) {
		mtftl_err(rec->ftl, "zone %u block %u: a unit of version %u, expected version %u",
			  zone->index, at, ((struct mtftl_unit *)rec->buf)->version,
			  MTFTL_VERSION);
		return -EPROTO;
	}
	if (r > 0 && info->erase_count > MTFTL_MAX_ERASES) {
		mtftl_err(rec->ftl, "zone %u block %u: erase_count %u, expected at most %u",
			  zone->index, at, info->erase_count, MTFTL_MAX_ERASES);
		return -EINVAL;
	}
	return r;
}

/*
 * The first header of a zone is behind a torn one. It may be a copy in users' data of a header of
 * an earlier life of the zone. A user cannot copy what is written later, so the zone's life is the
 * highest that any header behind it names.
 */
static int find_life(struct recovery *rec, struct mtftl_zone *zone, u32 at)
{
	void *blocks = mtftl_checkpoint_buf(rec->ftl);	/* no checkpoint is read or written now */
	const struct mtftl_config *config = &rec->ftl->config;
	u64 ckpt_seq = mtftl_super_info(rec->ftl)->ckpt_seq;
	struct mtftl_unit_info info;
	u32 i, n;
	int r;

	mtftl_assert(config->header_blocks && at <= config->capacity, "zone %u: block %u",
		     zone->index, at);
	for (; at < zone->wp; at += n) {
		if (mtftl_interrupted())
			return -EINTR;
		n = min(zone->wp - at, MTFTL_BUFFER_BLOCKS);
		r = mtftl_rw_sync(rec->ftl, REQ_OP_READ, mtftl_zone_start(zone) + at, blocks, n);
		if (r && n > 1) {
			n = 1;
			r = mtftl_rw_sync(rec->ftl, REQ_OP_READ, mtftl_zone_start(zone) + at,
					  blocks, n);
		}
		if (r && !mtftl_medium_says(r))
			return r;
		for (i = 0; !r && i < n; i++)
			if (!mtftl_unit_parse(blocks + i * MTFTL_BLOCK_SIZE, config->seed,
					      zone->index, at + i, config->capacity, &info) &&
			    info.seq > ckpt_seq && info.erase_count <= MTFTL_MAX_ERASES)
				zone->erase_count = max(zone->erase_count, info.erase_count);
	}
	return 0;
}

static int alloc_listed(struct recovery *rec)
{
	const struct mtftl_config *config = &rec->ftl->config;
	u32 size = mtftl_footer_list_blocks(config) * MTFTL_BLOCK_SIZE;

	if (!rec->listed.stream)
		rec->listed.stream = kvmalloc(size, GFP_NOIO);
	if (!rec->listed.at)
		rec->listed.at = kvcalloc(config->capacity, sizeof(*rec->listed.at), GFP_NOIO);
	return rec->listed.stream && rec->listed.at ? 0 : -ENOMEM;
}

/* Where the units of a zone are listed. Of ranges a footer says nothing. */
static void index_listed(struct recovery *rec, u32 size)
{
	u32 pos = 0, next = 0, at, *index = rec->listed.at;
	const void *stream = rec->listed.stream;
	enum mtftl_unit_type type;
	const __le64 *lbas;
	u64 seq;
	u16 nr;

	memset(index, 0, rec->ftl->config.capacity * sizeof(*index));
	while (mtftl_footer_next(stream, size, &next, &seq, &at, &type, &nr, &lbas) > 0) {
		mtftl_assert(at < rec->ftl->config.capacity, "block %u", at);
		if (type != MTFTL_UNIT_RANGES)
			index[at] = 1 + pos;
		pos = next;
	}
	rec->listed.size = size;
}

/* Nothing in front of block @at is a header. @known: see scan_zone(). */
static int read_listed(struct recovery *rec, struct mtftl_zone *zone, u32 at, bool *known)
{
	void *buf = mtftl_checkpoint_buf(rec->ftl);	/* no checkpoint is read or written now */
	struct mtftl_tail_info tail;
	int r;

	if (rec->listed.zone == zone)
		return 0;
	r = mtftl_walk_tail(zone, buf, &tail);
	if (r > 0)
		r = alloc_listed(rec) ?: 1;
	if (r > 0 && !*known) {
		r = find_life(rec, zone, at) ?: 1;
		*known = r > 0;
	}
	if (r > 0)
		r = mtftl_walk_footer(zone, buf, rec->listed.stream, &tail);
	if (r < 0)
		return r;
	rec->listed.zone = zone;
	rec->listed.size = 0;
	if (r)
		index_listed(rec, tail.footer_blocks * MTFTL_BLOCK_SIZE);
	return 0;
}

/*
 * Block @at is no header that can be read. 1: the zone's footer lists a unit that begins there. Its
 * checksums are in its header alone: so it counts if it is known to be durable.
 */
static int find_listed(struct recovery *rec, struct mtftl_zone *zone, u32 at, bool *known,
		       struct mtftl_unit_info *info)
{
	const struct listed *listed = &rec->listed;
	const __le64 *lbas;
	u32 pos, offset;
	u16 nr, i;
	int r;

	r = read_listed(rec, zone, at, known);
	if (r || !listed->size || !listed->at[at])
		return r;
	*info = (struct mtftl_unit_info){ .zone = zone->index, .erase_count = zone->erase_count };
	pos = listed->at[at] - 1;
	r = mtftl_footer_next(listed->stream, listed->size, &pos, &info->seq, &offset,
			      &info->type, &nr, &lbas);
	mtftl_assert(r > 0 && offset == at, "zone %u: block %u, not %u", zone->index, offset, at);
	info->offset = at;
	info->nr_blocks = nr;
	info->nr_entries = nr;
	mtftl_unit_init(rec->buf, info);
	for (i = 0; i < nr; i++)
		mtftl_unit_add_entry(rec->buf, le64_to_cpu(lbas[i]), 0);
	return 1;
}

/*
 * Units of one zone from block @at on. A torn one in the middle hides nothing behind it. What is
 * found behind it may be a copy in users' data of a header of this zone: of another life,
 * too old to matter, or of one that was found already. Metadata has no copies. @known: the zone's
 * erase count is that of its first header.
 */
static int scan_zone(struct recovery *rec, struct mtftl_zone *zone, u32 at, bool known)
{
	u32 end = zone->wp + (zone->torn_sectors && zone->wp < rec->ftl->config.capacity);
	u64 ckpt_seq = mtftl_super_info(rec->ftl)->ckpt_seq;
	bool in_step = !at, copies = rec->ftl->config.header_blocks;
	struct mtftl_unit_info info;
	int r;

	mtftl_assert(at <= zone->wp && end <= rec->ftl->config.capacity, "zone %u: from %u to %u",
		     zone->index, at, end);
	mtftl_numbers_clear(rec->numbers);
	rec->listed.zone = NULL;
	while (at < end) {
		if (mtftl_interrupted())
			return -EINTR;
		r = scan_unit(rec, zone, at, in_step, &info);
		if (!r && copies)
			r = find_listed(rec, zone, at, &known, &info);
		if (r < 0)
			return r;
		if (r && copies && !known && (in_step || info.seq > ckpt_seq)) {
			zone->erase_count = info.erase_count;
			r = in_step ? 1 : find_life(rec, zone, at + 1) ?: 1;
			if (r < 0)
				return r;
			known = true;
		}
		if (!r || (copies && info.erase_count != zone->erase_count) ||
		    (copies && !in_step && (info.seq <= ckpt_seq ||
					  mtftl_numbers_has(rec->numbers, info.seq)))) {
			in_step = false;
			at++;
			continue;
		}
		mtftl_assert(r && (!copies || info.erase_count == zone->erase_count),
			     "zone %u: block %u", zone->index, at);
		in_step = true;
		saw_unit(rec, zone, &info);
		if (info.seq > ckpt_seq &&
		    (info.type == MTFTL_UNIT_DATA || info.type == MTFTL_UNIT_GC ||
		     info.type == MTFTL_UNIT_RANGES)) {
			r = keep_unit(rec, &info);
			if (r)
				return r;
		}
		at += head(rec, info.type) + info.nr_blocks;
	}
	mtftl_assert(at >= zone->wp && at <= rec->ftl->config.capacity, "zone %u: block %u, wp %u",
		     zone->index, at, zone->wp);
	zone->torn_end = at;
	return 0;
}

static int scan_changed(struct recovery *rec, struct mtftl_zone *zone)
{
	struct mtftl *ftl = rec->ftl;
	const struct mtftl_zone_record *record = mtftl_checkpoint_record(ftl, zone->index);
	u32 from = le32_to_cpu(record->wp);
	struct mtftl_unit_info info;
	u64 first = 0;
	int r = 0;

	if (zone->wp)
		r = scan_unit(rec, zone, 0, true, &info);
	if (r < 0)
		return r;
	if (r) {
		first = info.seq;
		zone->erase_count = info.erase_count;
	}
	/* Reset since, or nothing known of it: all of it is new. */
	if (from && (from > zone->wp || !first || first != le64_to_cpu(record->first_seq)))
		from = 0;
	mtftl_assert(!r == !first, "zone %u: number %llu", zone->index, first);
	mtftl_assert(!from || (from <= zone->wp && first == le64_to_cpu(record->first_seq)),
		     "zone %u: block %u", zone->index, from);
	zone->first_seq = first;
	return scan_zone(rec, zone, from, r);
}

/*
 * A zone that was reset since the checkpoint holds nothing that the checkpoint's map could still
 * point to: its blocks had newer durable versions, which the replay will find. If those cannot be
 * read, the block is lost, and must not read as whatever is there now. A record of write pointer 0
 * is no exception: the map has units that were in flight when the record was captured.
 */
static int forget_part(void *private, u32 number, void *buf)
{
	struct mtftl *ftl = ((struct recovery *)private)->ftl;
	u64 lba = (u64)number * PART_BLOCKS, end;
	u32 start = 0, blocks = 0;
	bool reset = false;

	end = min(lba + PART_BLOCKS, ftl->config.logical_blocks);
	for (; lba < end; lba++) {
		const struct mtftl_zone_record *record;
		u32 page = mtftl_map_look(ftl, lba);
		struct mtftl_zone *zone;

		mtftl_assert(!mtftl_is_slot(page), "block %llu: %#x", lba, page);
		if (page - start >= blocks) {
			if (!mtftl_is_page(page))
				continue;
			zone = mtftl_zone(ftl, mtftl_page_zone(ftl, page));
			record = mtftl_checkpoint_record(ftl, zone->index);
			start = mtftl_zone_start(zone);
			blocks = ftl->config.capacity;
			reset = zone->state == MTFTL_ZONE_EMPTY ||
				zone->erase_count != le32_to_cpu(record->erase_count);
		}
		if (reset)
			mtftl_map_set(ftl, lba, MTFTL_MAP_LOST);
	}
	return 0;
}

static int step_forget_reset(struct recovery *rec)
{
	return for_all_entries(rec, forget_part);
}

static int step_scan(struct recovery *rec)
{
	struct mtftl *ftl = rec->ftl;
	u32 i;
	int r;

	for (i = MTFTL_NR_SB_ZONES; i < ftl->config.nr_zones; i++) {
		struct mtftl_zone *zone = mtftl_zone(ftl, i);

		if (zone->state != MTFTL_ZONE_PARTIAL && zone->state != MTFTL_ZONE_FULL)
			continue;
		if (mtftl_interrupted())
			return -EINTR;
		r = scan_changed(rec, zone);
		if (r)
			return r;
	}
	return 0;
}

static int step_sort(struct recovery *rec)
{
	return mtftl_finds_sort(rec->finds);
}

/* Behind a zone's write pointer there may be anything, once it is written to. */
static bool is_written(struct mtftl *ftl, u32 page)
{
	const struct mtftl_zone *zone = mtftl_zone(ftl, mtftl_page_zone(ftl, page));

	mtftl_assert(mtftl_is_page(page) && zone->wp <= ftl->config.capacity, "page %#x", page);
	return (mtftl_page_offset(ftl, page)) < zone->wp;
}

/* One block, if need be by itself. False: it is not what the header says. An error is no answer. */
static int verify_block(struct mtftl *ftl, u32 page, void *block, bool read, u32 crc, bool *whole)
{
	int r = 0;

	mtftl_assert(mtftl_page_offset(ftl, page) < ftl->config.capacity, "page %#x", page);
	*whole = is_written(ftl, page);
	if (*whole && !read)
		r = mtftl_rw_sync(ftl, REQ_OP_READ, page, block, 1);
	*whole = *whole && !r && crc == mtftl_payload_crc(ftl->config.seed, block);
	return mtftl_medium_says(r) ? 0 : r;
}

static bool is_unit(const struct mtftl_found *found)
{
	mtftl_assert(found->type == MTFTL_UNIT_DATA || found->type == MTFTL_UNIT_GC ||
		     found->type == MTFTL_UNIT_RANGES, "type %u", found->type);
	return found->type != MTFTL_UNIT_RANGES;
}

static bool parses(struct mtftl *ftl, u32 page, const void *header)
{
	return mtftl_unit_parses(header, ftl->config.seed, mtftl_page_zone(ftl, page),
				 mtftl_page_offset(ftl, page), ftl->config.capacity);
}

/*
 * Entries whose payload did not make it are dropped: the version before is still there. What
 * cannot be read together is read block by block: only a torn block is dropped.
 */
static int verify_unit(struct recovery *rec, struct mtftl_found *unit)
{
	struct mtftl *ftl = rec->ftl;
	void *payload = mtftl_checkpoint_buf(ftl);	/* no checkpoint is read or written now */
	u32 i, n, k, crc;
	bool whole;
	u64 lba;
	int r = -ENODATA;

	mtftl_assert(is_unit(unit) && ftl->config.header_blocks &&
		     unit->nr <= MTFTL_UNIT_MAX_ENTRIES,
		     "number %llu: %u blocks", unit->seq, unit->nr);
	/* Else all of its payload is missing, and maybe a part of its header. */
	if (is_written(ftl, unit->page))
		r = mtftl_rw_sync(ftl, REQ_OP_READ, unit->page - 1, rec->buf, 1);
	if (r && !mtftl_medium_says(r))
		return r;
	/* Nor does it say anything if a footer alone lists the unit. */
	if (!r && !parses(ftl, unit->page - 1, rec->buf))
		r = -ENODATA;
	for (i = 0; r && i < unit->nr; i++)
		unit->lbas[i] = MTFTL_NO_LBA;
	for (; i < unit->nr; i += n) {
		u32 page = unit->page + i;
		bool together;

		n = min(unit->nr - i, MTFTL_BUFFER_BLOCKS);
		together = !mtftl_rw_sync(ftl, REQ_OP_READ, page, payload, n);
		for (k = 0; k < n; k++) {
			mtftl_unit_entry(rec->buf, i + k, &lba, &crc);
			r = verify_block(ftl, page + k, payload + k * MTFTL_BLOCK_SIZE, together,
					 crc, &whole);
			if (r)
				return r;
			if (!whole)
				unit->lbas[i + k] = MTFTL_NO_LBA;
		}
	}
	return 0;
}

/* Verify units that may be torn. Without a header each block was verified when it was found. */
static int step_verify(struct recovery *rec)
{
	u64 i, nr = rec->ftl->config.header_blocks ? mtftl_finds_nr(rec->finds) : 0;
	int r = 0;

	for (i = 0; !r && i < nr; i++) {
		struct mtftl_found *found = mtftl_finds_at(rec->finds, i);

		if (mtftl_interrupted())
			return -EINTR;
		if (is_unit(found) && found->seq > rec->durable_seq)
			r = verify_unit(rec, found);
	}
	return r;
}

static void apply_range(struct mtftl *ftl, const struct mtftl_found *range)
{
	u64 end = min((u64)range->lba + range->nr, ftl->config.logical_blocks), lba;
	u32 value = range->kind == MTFTL_RANGE_LOST ? MTFTL_MAP_LOST : MTFTL_MAP_UNMAPPED;

	mtftl_assert(!is_unit(range) && range->nr && range->nr <= MTFTL_RANGE_MAX_BLOCKS,
		     "number %llu: %u blocks", range->seq, range->nr);
	for (lba = range->lba; lba < end; lba++)
		mtftl_map_set(ftl, lba, value);
}

static void apply_unit(struct mtftl *ftl, const struct mtftl_found *unit)
{
	u32 i;

	mtftl_assert(is_unit(unit) &&
		     mtftl_page_offset(ftl, unit->page) + unit->nr <= ftl->config.capacity,
		     "number %llu: %u blocks at %#x", unit->seq, unit->nr, unit->page);
	for (i = 0; i < unit->nr; i++)
		if (unit->lbas[i] < ftl->config.logical_blocks)
			mtftl_map_set(ftl, unit->lbas[i], unit->page + i);
}

/* Until one of its copies turns out whole: older data must not come back. */
static void lose(struct mtftl *ftl, const struct mtftl_found *unit)
{
	u32 i;

	mtftl_assert(ftl->config.header_blocks, "number %llu", unit->seq);
	for (i = 0; i < unit->nr; i++)
		if (unit->lbas[i] < ftl->config.logical_blocks)
			mtftl_map_set(ftl, unit->lbas[i], MTFTL_MAP_LOST);
}

/*
 * Apply the units with this number. If a write failed there are two: the valid one counts. An older
 * record does not know which units the mount behind an earlier cut found torn. What was written
 * since says that they are durable.
 */
static int apply(struct recovery *rec, struct mtftl_found *first)
{
	struct mtftl *ftl = rec->ftl;
	bool doubtful = (first->same || rec->older) && ftl->config.header_blocks &&
			first->seq <= rec->durable_seq;
	struct mtftl_found *found;
	int r = 0;

	/* The checkpoint does not have it. found.c asserts the order. */
	mtftl_assert(first->seq > mtftl_super_info(ftl)->ckpt_seq, "number %llu", first->seq);
	mtftl_assert(first->seq <= rec->newest_seq, "number %llu of %llu", first->seq,
		     rec->newest_seq);
	for (found = first; doubtful && found; found = found->same)
		if (is_unit(found))
			lose(ftl, found);
	for (found = first; !r && found; found = found->same) {
		mtftl_assert(found->seq == first->seq, "%llu, not %llu", found->seq, first->seq);
		if (!is_unit(found)) {
			apply_range(ftl, found);
			continue;
		}
		if (doubtful)
			r = verify_unit(rec, found);
		if (!r)
			apply_unit(ftl, found);
	}
	return r;
}

static int step_replay(struct recovery *rec)
{
	struct mtftl_found *found;
	int r = 0;

	while (!r && (found = mtftl_finds_next(rec->finds)))
		r = mtftl_interrupted() ? -EINTR : apply(rec, found);
	return r;
}

/*
 * More was found than is kept at once: read the zones again for what is newer than the map by now.
 * They say the same as before, because nothing has been written yet.
 */
static int step_look_again(struct recovery *rec)
{
	u64 nr = rec->nr_units;
	u32 looks;
	int r = 0;

	for (looks = 1; !r && mtftl_finds_forget(rec->finds); looks++)
		r = step_scan(rec) ?: step_sort(rec) ?: step_verify(rec) ?: step_replay(rec);
	mtftl_assert(r || !mtftl_finds_nr(rec->finds), "%llu", mtftl_finds_nr(rec->finds));
	if (looks > 1)
		mtftl_warn(rec->ftl, "zones hold so much that is newer than the checkpoint that they were read %u times",
			   looks);
	rec->nr_units = nr;
	return r;
}

/* A device of smaller blocks than ours may be left with a part of one: zeroes make it whole. */
static int complete_block(struct recovery *rec, struct mtftl_zone *zone)
{
	struct mtftl *ftl = rec->ftl;
	sector_t at = mtftl_page_sector(ftl, mtftl_zone_start(zone) + zone->wp);
	int r;

	if (!zone->torn_sectors)
		return 0;
	mtftl_assert(zone->wp < ftl->config.capacity, "zone %u: wp %u", zone->index, zone->wp);
	r = mtftl_rw_sectors(ftl, REQ_OP_WRITE, at + zone->torn_sectors, rec->buf,
			     MTFTL_BLOCK_SECTORS - zone->torn_sectors);
	if (!r)
		zone->wp++;
	mtftl_assert(at == mtftl_page_sector(ftl, mtftl_zone_start(zone) + zone->wp - !r),
		     "zone %u: wp %u", zone->index, zone->wp);
	return r;
}

/*
 * The last unit of a zone may claim blocks that never made it. What is written next must not
 * lie inside it, because a walk by headers would pass over it: give it zeroes for payload.
 */
static int step_fill(struct recovery *rec)
{
	struct mtftl *ftl = rec->ftl;
	u32 i, n;

	if (mtftl_is_read_only(ftl))
		return 0;
	memset(rec->buf, 0, FILL_BLOCKS * MTFTL_BLOCK_SIZE);
	for (i = MTFTL_NR_SB_ZONES; i < ftl->config.nr_zones; i++) {
		struct mtftl_zone *zone = mtftl_zone(ftl, i);

		if (zone->state != MTFTL_ZONE_PARTIAL || zone->broken)
			continue;
		if (mtftl_interrupted())
			return -EINTR;
		if (complete_block(rec, zone))
			zone->broken = true;
		while (zone->wp < zone->torn_end && !zone->broken) {
			n = min(zone->torn_end - zone->wp, FILL_BLOCKS);
			if (mtftl_rw_sync(ftl, REQ_OP_WRITE,
					  mtftl_zone_start(zone) + zone->wp, rec->buf, n))
				zone->broken = true;
			else
				zone->wp += n;
		}
		/* Nothing that is written next lies in the last unit. */
		mtftl_assert(zone->broken || zone->wp >= zone->torn_end, "zone %u: wp %u, end %u",
			     i, zone->wp, zone->torn_end);
		if (zone->broken)
			mtftl_zone_finish_broken(zone);
		zone->quiet_wp = zone->wp;
		zone->unfinished = zone->wp == ftl->config.capacity;
		if (zone->broken || zone->wp == ftl->config.capacity)
			mtftl_zone_move(zone, MTFTL_ZONE_FULL);
		mtftl_assert((zone->state == MTFTL_ZONE_FULL) ==
			     (zone->broken || zone->wp == ftl->config.capacity),
			     "zone %u: state %u, wp %u", i, zone->state, zone->wp);
	}
	return 0;
}

/*
 * The device counts zones that are written in part. A checkpoint that a cut ended in a zone
 * of its own may be one more than there is room for beside the next one; and so may the
 * zone that the superblock log left when a write to it failed; and those that are written to their
 * last block, where some sectors are left.
 */
static int step_finish_surplus(struct recovery *rec)
{
	struct mtftl *ftl = rec->ftl;
	u32 i;

	if (mtftl_is_read_only(ftl))
		return 0;
	mtftl_super_finish_other(ftl);
	for (i = 0; ftl->config.capacity_unaligned && i < ftl->config.nr_zones; i++)
		if (mtftl_zone(ftl, i)->unfinished)
			mtftl_zone_mgmt(ftl, i, REQ_OP_ZONE_FINISH);
	/* The broken ones last: see step_count_blocks(). */
	for (i = 0; i < 2 * ftl->config.nr_zones; i++) {
		struct mtftl_zone *zone = mtftl_zone(ftl, i % ftl->config.nr_zones);
		bool broken_ones = i >= ftl->config.nr_zones;

		if (mtftl_zones_count(ftl, MTFTL_ZONE_PARTIAL) <= ftl->config.budget.data_zones)
			break;
		if (zone->state != MTFTL_ZONE_PARTIAL ||
		    zone->broken != broken_ones)
			continue;
		if (mtftl_interrupted())
			return -EINTR;
		mtftl_assert(mtftl_zones_count(ftl, MTFTL_ZONE_PARTIAL) >
			     ftl->config.budget.data_zones, "zone %u", zone->index);
		if (mtftl_zone_mgmt(ftl, zone->index, REQ_OP_ZONE_FINISH))
			zone->failed_lives = MTFTL_ZONE_LIVES;
		zone->wp = ftl->config.capacity;
		zone->quiet_wp = ftl->config.capacity;
		mtftl_zone_move(zone, MTFTL_ZONE_FULL);
	}
	mtftl_assert(mtftl_zones_count(ftl, MTFTL_ZONE_PARTIAL) <= ftl->config.budget.data_zones,
		     "%u zones of %u", mtftl_zones_count(ftl, MTFTL_ZONE_PARTIAL),
		     ftl->config.budget.data_zones);
	return 0;
}

/* Before the mount writes anything. Half of each is kept for what it will count. */
static int step_check_numbers(struct recovery *rec)
{
	struct mtftl *ftl = rec->ftl;
	u32 bits = ftl->config.header_blocks ? MTFTL_SEQ_BITS : MTFTL_OOB_SEQ_BITS, i;
	bool used_up = false;

	if (rec->newest_seq >> (bits - 1))
		mtftl_set_read_only(ftl, "its numbers are used up");
	if (mtftl_super_info(ftl)->generation >> (MTFTL_SEQ_BITS - 1))
		mtftl_set_read_only(ftl, "its generations are used up");
	for (i = 0; i < ftl->config.nr_zones; i++) {
		/* The scan has refused it, and so has the parser of zone records. */
		mtftl_assert(mtftl_zone(ftl, i)->erase_count <= MTFTL_MAX_ERASES, "zone %u", i);
		used_up |= mtftl_zone(ftl, i)->erase_count > MTFTL_MAX_ERASES / 2;
	}
	if (used_up)
		mtftl_set_read_only(ftl, "its erase counts are used up");
	return 0;
}

/*
 * So many of a zone's first blocks may have entries that point to them. To others they know of
 * nothing: the drive lost it, or another program reset the zone.
 */
static u32 blocks_there(struct mtftl_zone *zone)
{
	u32 capacity = zone->ftl->config.capacity;

	mtftl_assert(zone->wp <= capacity, "zone %u: wp %u", zone->index, zone->wp);
	switch (zone->state) {
	case MTFTL_ZONE_BAD:
		return capacity;	/* offline: reads say so */
	case MTFTL_ZONE_SUPER:
	case MTFTL_ZONE_CKPT:
		return 0;
	default:
		return zone->wp;
	}
}

/* Blocks that follow each other are often in one zone. */
static int count_part(void *private, u32 number, void *buf)
{
	u32 zone = 0, start = 0, there = 0, nr = 0;
	u64 lba = (u64)number * PART_BLOCKS, end, lost = 0;
	struct recovery *rec = private;
	struct mtftl *ftl = rec->ftl;

	end = min(lba + PART_BLOCKS, ftl->config.logical_blocks);
	for (; lba < end; lba++) {
		u32 page = mtftl_map_look(ftl, lba);

		mtftl_assert(!mtftl_is_slot(page), "block %llu", lba);
		if (page - start >= there) {
			if (!mtftl_is_page(page))
				continue;
			mtftl_map_count(ftl, zone, nr);
			zone = mtftl_page_zone(ftl, page);
			start = mtftl_zone_page(ftl, zone);
			there = blocks_there(mtftl_zone(ftl, zone));
			nr = 0;
		}
		if (page - start < there) {
			nr++;
			continue;
		}
		if (mtftl_zone(ftl, zone)->state == MTFTL_ZONE_PARTIAL)
			WRITE_ONCE(mtftl_zone(ftl, zone)->broken, true);
		mtftl_map_set(ftl, lba, MTFTL_MAP_LOST);
		lost++;
	}
	mtftl_map_count(ftl, zone, nr);
	if (lost)
		atomic64_add(lost, &rec->lost);
	return 0;
}

/*
 * Before anything is filled up: what comes where an entry points must not be taken for its block.
 * So a zone that is shorter than it was gets nothing more before a checkpoint says what is
 * lost: the stream that opens it then finishes it.
 */
static int step_count_blocks(struct recovery *rec)
{
	int r = for_all_entries(rec, count_part);
	struct mtftl *ftl = rec->ftl;
	u64 lost;

	lost = atomic64_read(&rec->lost);
	if (!r && lost) {
		mtftl_err(ftl, "%llu blocks are lost: their zones are shorter than they were",
			  lost);
		mtftl_count(ftl, lost_blocks, lost);
		mtftl_tell_news(ftl);
		mtftl_super_distrust(ftl);
	}
	return r;
}

/*
 * How much users wrote between two zones is not on flash, but their numbers are: zones are as far
 * apart as these say, from the oldest to the newest a turn of the map's clock.
 */
static void guess_ages(struct recovery *rec)
{
	u64 oldest = rec->newest_seq, first, each;
	struct mtftl *ftl = rec->ftl;
	u32 i, born;

	for (i = 0; i < ftl->config.nr_zones; i++) {
		first = mtftl_zone(ftl, i)->first_seq;
		if (first && first < oldest)
			oldest = first;
		mtftl_assert(!first || oldest <= first, "zone %u: number %llu", i, first);
	}
	mtftl_assert(oldest <= rec->newest_seq && ftl->config.device_in_zones, "%llu to %llu",
		     oldest, rec->newest_seq);
	each = div_u64(rec->newest_seq - oldest, ftl->config.device_in_zones) + 1;
	for (i = 0; i < ftl->config.nr_zones; i++) {
		/* A header that a power cut tore may have a number that none else has reached. */
		first = clamp(mtftl_zone(ftl, i)->first_seq, oldest, rec->newest_seq);
		born = div64_u64(first - oldest, each);
		mtftl_age_guess(ftl, i, born);
	}
	mtftl_map_set_clock(ftl, ftl->config.device_in_zones);
}

static int step_count_zones(struct recovery *rec)
{
	struct mtftl *ftl = rec->ftl;
	u32 i;

	guess_ages(rec);
	for (i = 0; i < ftl->config.nr_zones; i++)
		mtftl_zone(ftl, i)->full_seq = mtftl_zone(ftl, i)->first_seq;
	mtftl_assert(mtftl_zones_worn_out(ftl) <= mtftl_zones_count(ftl, MTFTL_ZONE_FULL),
		     "%u zones", mtftl_zones_worn_out(ftl));
	mtftl_seq_set_last(ftl, rec->newest_seq, min(rec->durable_seq, rec->newest_seq));
	return 0;
}

static int step_replace_bad(struct recovery *rec)
{
	mtftl_checkpoint_replace_bad(rec->ftl);
	return 0;
}

static const struct step {
	const char *name;
	int (*run)(struct recovery *rec);
	bool crash_only;
} steps[] = {
	{ "report zones",	step_report_zones },
	{ "load checkpoint",	step_load_checkpoint },
	{ "set zones aside",	step_set_aside },
	{ "scan",		step_scan,	true },
	{ "sort",		step_sort,	true },
	{ "verify payload",	step_verify,	true },
	{ "forget resets",	step_forget_reset, true },
	{ "replay",		step_replay,	true },
	{ "look again",	step_look_again,	true },
	{ "check numbers",	step_check_numbers },
	{ "count",		step_count_blocks },
	{ "replace bad zones",	step_replace_bad },
	{ "fill",		step_fill,	true },
	{ "finish surplus",	step_finish_surplus },
	{ "count zones",	step_count_zones },
};

int mtftl_recover(struct mtftl *ftl)
{
	struct recovery rec = {
		.ftl = ftl,
		.scanner = mtftl_checkpoint_scanner(ftl),
		.clean = mtftl_super_is_clean(ftl),
		.older = mtftl_super_age(ftl) == MTFTL_SUPER_OLDER,
	};
	int r = -ENOMEM;
	u32 i;

	static_assert(FILL_BLOCKS * MTFTL_BLOCK_SIZE <= 2 * PAGE_SIZE);
	mtftl_assert(mtftl_zones_count(ftl, MTFTL_ZONE_EMPTY) == ftl->config.nr_zones);
	rec.buf = (void *)__get_free_pages(GFP_NOIO, 1);
	rec.numbers = mtftl_numbers_alloc();
	/*
	 * Three quarters of what the map takes. A checkpoint is due when there are two numbers for
	 * each of its blocks, which are 4096 bytes of the map. Of a unit at most 1056 bytes are
	 * kept. There may be more until the checkpoint is durable, or while none succeeds: see
	 * step_look_again().
	 */
	rec.finds = mtftl_finds_alloc(max_t(u64, 3 * ftl->config.logical_blocks, MIN_FINDS),
				      (u64)MOST_FINDS * ftl->config.nr_zones * ftl->config.capacity,
				      mtftl_super_info(ftl)->ckpt_seq);
	if (!rec.buf || !rec.numbers || !rec.finds)
		goto out;
	for (i = 0, r = 0; !r && i < ARRAY_SIZE(steps); i++) {
		ktime_t start = ktime_get();

		if (steps[i].crash_only && rec.clean)
			continue;
		r = steps[i].run(&rec);
		mtftl_info(ftl, "mount: %s: %lld us%s", steps[i].name,
			   ktime_us_delta(ktime_get(), start), r ? ", failed" : "");
	}
	if (!r && !rec.clean)
		mtftl_info(ftl, "mount: %llu units newer than the checkpoint", rec.nr_units);
out:
	mtftl_finds_free(rec.finds);
	mtftl_numbers_free(rec.numbers);
	kvfree(rec.listed.stream);
	kvfree(rec.listed.at);
	mtftl_spread_shrink(mtftl_checkpoint_spread(ftl));
	free_pages((unsigned long)rec.buf, 1);
	return r;
}
