/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Compose and parse the blocks of the on-media format. Pure: the caller owns
 * every buffer, nothing here blocks or allocates. Parsers take anything that a
 * device may return and never read outside the block that they were given.
 *
 * Parsers return 0 or:
 *   -ENODATA	not such a block at all (magic)
 *   -EBADMSG	checksum wrong: torn or damaged
 *   -EPROTO	a version or feature that this reader does not know
 *   -ESTALE	intact, but of another device, zone or place
 *   -EINVAL	intact, but its fields contradict each other
 */
#ifndef MTFTL_PARSE_H
#define MTFTL_PARSE_H

#include "format/layout.h"

/*
 * What every checksum but the superblock's starts from. The key keeps users from
 * writing payload that recovery, looking for the unit behind a torn one, would
 * take for a header: the UUID is public, the key is never shown.
 */
u32 mtftl_seed(const u8 uuid[16], u32 key);

struct mtftl_unit_info {
	enum mtftl_unit_type type;
	u16 nr_entries;
	u16 nr_blocks;
	u16 lane;
	u64 seq;
	u64 durable_seq;
	u32 zone;		/* these three: set by sealing and parsing */
	u32 offset;
	u32 erase_count;
};

/*
 * Start a header in a 4096-byte block: entries are added, then it is sealed.
 * info->nr_entries is ignored: it counts what is added. nr_blocks covers padding.
 * What the header does not use of the block stays as it is.
 */
void mtftl_unit_init(void *block, const struct mtftl_unit_info *info);
void mtftl_unit_add_entry(void *block, u64 lba, u32 crc);
void mtftl_unit_add_range(void *block, u64 lba, u32 nr_blocks, u64 seq,
			  enum mtftl_range_kind kind);
/* Set place (a retry goes elsewhere with the same number) and checksum. */
void mtftl_unit_seal(void *block, u32 seed, u32 zone, u32 offset, u32 erase_count,
		     u64 durable_seq);

u32 mtftl_payload_crc(u32 seed, const void *block);

/*
 * Check one header that was read from block @offset of zone @zone, with
 * @capacity writable blocks; fill @info.
 */
int mtftl_unit_parse(const void *block, u32 seed, u32 zone, u32 offset, u32 capacity,
		     struct mtftl_unit_info *info);
/* Readers will take it for a unit there: for assertions on what is about to be written. */
static inline bool mtftl_unit_parses(const void *block, u32 seed, u32 zone, u32 offset,
				     u32 capacity)
{
	struct mtftl_unit_info info;

	return !mtftl_unit_parse(block, seed, zone, offset, capacity, &info);
}

/* Valid for a parsed header and index < info.nr_entries only. */
void mtftl_unit_entry(const void *block, unsigned int index, u64 *lba, u32 *crc);
void mtftl_unit_range(const void *block, unsigned int index, u64 *lba, u32 *nr_blocks,
		      u64 *seq, enum mtftl_range_kind *kind);

/*
 * Units without a header. Their blocks' metadata is made into a header, so that readers of units
 * see no other difference than where the payload begins: mtftl_unit_head().
 */

/* Blocks of a unit in front of its payload. */
static inline u32 mtftl_unit_head(bool oob, enum mtftl_unit_type type)
{
	return !oob || (type != MTFTL_UNIT_DATA && type != MTFTL_UNIT_GC);
}

/* @crc: of the block, by mtftl_payload_crc(). */
void mtftl_oob_compose(struct mtftl_oob *oob, enum mtftl_unit_type type, u64 seq, u32 lba, u32 crc,
		       u32 seed, u32 zone, u32 erase_count);
/* What the writer of block @lba said its checksum is. Anything, if it is not that block's. */
u32 mtftl_oob_crc(const struct mtftl_oob *oob, u32 lba, u32 seed, u32 zone);
/*
 * The unit at block @offset: of @nr blocks there, with @stride bytes of metadata each, the first
 * ones of one number and type that verify. @header gets a header that says the same, or that of
 * a unit that has one. Of the erase count only the lowest bits are known: mtftl_erase_count().
 */
int mtftl_oob_parse(const void *blocks, const void *oob, u32 stride, u32 nr, u32 seed, u32 zone,
		    u32 offset, u32 capacity, void *header, struct mtftl_unit_info *info);
/* The first one from @known on with these lowest bits. */
u32 mtftl_erase_count(u32 known, u32 lowest);
bool mtftl_same_erase_count(bool oob, u32 a, u32 b);

/* Superblock records. */
struct mtftl_sb_info {
	u8  uuid[16];
	u16 flags;
	bool oob;
	bool map_log;
	u64 generation;
	u64 logical_blocks;
	u32 nr_zones;
	u32 zone_blocks;
	u32 zone_capacity;
	u32 op_permille;
	u32 key;
	u64 ckpt_seq;
	u64 ckpt_blocks;
	u32 ckpt_nr_zones;
	u32 ckpt_zones[MTFTL_SB_MAX_LOG_ZONES];
	u64 ckpt_unit_first;	/* these four: if map_log is set */
	u64 ckpt_unit_last;
	u32 ckpt_seat;
	u32 ckpt_offset;
};

/* @to names the checkpoint that @from does; NULL: none. */
void mtftl_sb_set_checkpoint(struct mtftl_sb_info *to, const struct mtftl_sb_info *from);
void mtftl_sb_compose(void *block, const struct mtftl_sb_info *info);
/* On -EINVAL too @info holds what the record says; mtftl_sb_wrong() names the wrong field. */
int mtftl_sb_parse(const void *block, struct mtftl_sb_info *info);
/* The first field that is out of its bounds or contradicts those before it, by name; NULL: none. */
const char *mtftl_sb_wrong(const struct mtftl_sb_info *info);

/*
 * Finds the zones that the format is in: the longest run of sequential zones of one size and one
 * capacity, the first of those that are equally long. Conventional zones and a smaller last zone
 * are left alone. For all zones of the device in their order: @capacity of one, in blocks, and
 * whether it has some @surplus sectors beyond those; 0: it is no such zone; MTFTL_RUN_ANY: it is
 * offline, and no more may be known of it.
 */
#define MTFTL_RUN_ANY	(~0ull)

struct mtftl_run {
	u32 first, nr;
	u64 capacity;
	bool surplus;		/* any of its zones has some */
	/* The run that the zone before is in. */
	u32 last_first, last_nr;
	u64 last_capacity;
	bool last_surplus;
};

void mtftl_run_add(struct mtftl_run *run, u64 capacity, bool surplus);

/*
 * Where a zone append went, as the device says: the block of the zone that begins at sector
 * @start. -EINVAL: no place where @blocks could have been put.
 */
int mtftl_append_offset(u64 sector, u64 start, u32 capacity, u32 blocks, u32 *offset);

/* Layout arithmetic that the module and the tool must agree on. */
/* Blocks of the longest footer stream of a zone. */
u32 mtftl_footer_stream_blocks(u32 zone_capacity, bool oob);
/* Blocks at the end of a zone that its footer and tail take at most. */
u32 mtftl_footer_reserve(u32 zone_capacity, bool oob);
/*
 * Largest exported size for a device, or 0 if it is too small or its checkpoint
 * would take too many zones: superblock and checkpoint zones, GC's reserve,
 * footers, one header a 32-block unit where there are any, and @op_permille of the
 * rest are taken off. A multiple of 1 MiB where it is at least that.
 */
u64 mtftl_logical_blocks(u32 nr_zones, u32 zone_capacity, u32 op_permille, bool oob);
/* Zones that the data of users takes in full units, and zones that it leaves. */
u32 mtftl_user_zones(u32 zone_capacity, u64 logical_blocks, bool oob);
u32 mtftl_spare_zones(u32 nr_zones, u32 zone_capacity, u64 logical_blocks, bool oob);

/* A zone record: its position is inside the zone, and its numbers cannot wrap. */
bool mtftl_zone_record_valid(const struct mtftl_zone_record *record, u32 capacity);
/* An entry is a block that a zone can hold, or one of the marks. A mount checks each entry. */
static inline bool mtftl_map_entry_valid(u32 entry, u32 nr_zones, u32 zone_shift, u32 capacity)
{
	if (entry > MTFTL_MAP_MAX_PAGE)
		return entry == MTFTL_MAP_UNMAPPED || entry == MTFTL_MAP_LOST;
	return entry >> zone_shift < nr_zones && (entry & ((1u << zone_shift) - 1)) < capacity;
}

/* Footers: a builder that is fed unit by unit, into a caller's stream buffer. */
struct mtftl_footer {
	u8 *stream;
	u32 size;		/* of the buffer, bytes */
	u32 used;
	u32 nr_records;
	u64 min_seq;
	u64 max_seq;
};

/* Zeroes the stream: what stays unused pads its last block. */
void mtftl_footer_init(struct mtftl_footer *footer, void *stream, u32 size);
/* -ENOSPC leaves the footer unchanged. @lbas may be NULL if @nr_entries is 0. */
int mtftl_footer_add(struct mtftl_footer *footer, u64 seq, u32 offset,
		     enum mtftl_unit_type type, u16 nr_entries, const u64 *lbas);
void mtftl_tail_compose(void *block, u32 seed, u32 zone, u32 erase_count, u32 footer_offset,
			const struct mtftl_footer *footer);
struct mtftl_tail_info {
	u32 erase_count;
	u32 footer_offset;
	u32 footer_blocks;
	u32 nr_records;
	u64 min_seq;
	u64 max_seq;
};

/* The stream is no longer than mtftl_footer_stream_blocks(). */
int mtftl_tail_parse(const void *block, u32 seed, u32 zone, u32 capacity, bool oob,
		     struct mtftl_tail_info *info);
/*
 * Walk a footer stream: *pos starts at 0; returns 1 with a record, 0 at its
 * end, -EINVAL where the stream contradicts itself. *lbas points into the
 * stream (little-endian, 8-byte aligned if the stream is).
 */
int mtftl_footer_next(const void *stream, u32 size, u32 *pos, u64 *seq, u32 *offset,
		      enum mtftl_unit_type *type, u16 *nr_entries, const __le64 **lbas);
/*
 * Whether the stream lists what its tail says. If not, nothing of it counts. If so, each unit lies
 * between the start of the zone and the footer, with all its entries, and together they have no
 * more blocks than there are.
 */
bool mtftl_footer_valid(const void *stream, u32 size, const struct mtftl_tail_info *tail, bool oob);

#endif
