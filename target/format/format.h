/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-media format, version 1. Shared by the kernel module, mtftl(8) and the
 * tests; the tool's documentation explains it in prose. Every integer is little-endian,
 * every structure is one or part of one 4096-byte block, "block" is always
 * 4096 bytes whatever the device's own sector size is.
 *
 *   zones 0, 1   superblock log: struct mtftl_sb records, one a block, the
 *                highest generation that verifies is the valid one
 *   other zones  units, back to back: a header block, then its payload blocks; or, where
 *                the superblock says so, data without a header, and a struct mtftl_oob
 *                in the metadata of each block
 *
 * Numbers (seq) are drawn from one counter. For any logical block the durable
 * unit or range record with the highest number tells where its newest data is.
 */
#ifndef MTFTL_FORMAT_H
#define MTFTL_FORMAT_H

#include "lib/pure.h"

#define MTFTL_BLOCK_SHIFT	12
#define MTFTL_BLOCK_SIZE	4096u
#define MTFTL_VERSION		1
#define MTFTL_NR_SB_ZONES	2u

#define MTFTL_SB_MAGIC		0x314253465446544dull	/* "MTFTFSB1", as bytes */
#define MTFTL_UNIT_MAGIC	0x5554464dul		/* "MFTU" */
#define MTFTL_TAIL_MAGIC	0x5454464dul		/* "MFTT" */

/* Superblock flags. */
#define MTFTL_SB_CLEAN		0x0001	/* the checkpoint is all there is to read */
#define MTFTL_SB_READONLY	0x0002	/* out of good zones: mounts read-only */

/* Features that a reader must know. */
#define MTFTL_SB_OOB		0x0001	/* DATA and GC units have no header: struct mtftl_oob */
#define MTFTL_SB_MAP_LOG	0x0002	/* map blocks lie apart: struct mtftl_map_place */

#define MTFTL_SB_MAX_CKPT_ZONES	256	/* of one checkpoint */
#define MTFTL_SB_MAX_LOG_ZONES	(2 * MTFTL_SB_MAX_CKPT_ZONES)
#define MTFTL_GC_RESERVE_ZONES	4u	/* never counted as space for users */
/* Units of a checkpoint or footer stream, but its last, hold at least so many blocks. */
#define MTFTL_STREAM_UNIT_BLOCKS	7u

struct mtftl_sb {
	__le64 magic;			/*   0 */
	__le32 crc;			/*   8: of the block, with this field zero */
	__le16 version;			/*  12 */
	__le16 flags;			/*  14: MTFTL_SB_* */
	__u8   uuid[16];		/*  16: with the key, seeds every other checksum */
	__le64 generation;		/*  32: one more with every record */
	__le64 compat;			/*  40: features that an old reader may ignore */
	__le64 incompat;		/*  48: features that it must know */
	__le64 logical_blocks;		/*  56: size of the exported device */
	__le32 nr_zones;		/*  64 */
	__le32 zone_blocks;		/*  68: distance between zone starts */
	__le32 zone_capacity;		/*  72: writable blocks of each zone */
	__le32 op_permille;		/*  76: over-provisioning asked for at format */
	__le64 ckpt_seq;		/*  80: units above it are newer than the checkpoint */
	__le64 ckpt_blocks;		/*  88: blocks in its stream, 0: no checkpoint yet */
	__le32 ckpt_nr_zones;		/*  96 */
	__le32 key;			/* 100: random and secret, see mtftl_seed() */
	/* 104: in stream order; with MTFTL_SB_MAP_LOG all zones set aside, as a circle of seats */
	__le32 ckpt_zones[MTFTL_SB_MAX_LOG_ZONES];
	/* With MTFTL_SB_MAP_LOG, if there is a checkpoint, else zeroes: */
	__le64 ckpt_unit_first;		/* 2152: numbers of the stream's first and last unit */
	__le64 ckpt_unit_last;		/* 2160 */
	__le32 ckpt_seat;		/* 2168: where the first one lies */
	__le32 ckpt_offset;		/* 2172 */
	__u8   map_entry_bytes;		/* 2176: of an entry of the map: 4 */
	__u8   reserved1[1919];		/* 2177 */
};

enum mtftl_unit_type {
	MTFTL_UNIT_DATA		= 1,	/* written by users: mtftl_entry each */
	MTFTL_UNIT_GC		= 2,	/* moved by GC: mtftl_entry each */
	MTFTL_UNIT_RANGES	= 3,	/* mtftl_range each, no payload */
	MTFTL_UNIT_CKPT		= 4,	/* checkpoint stream: entry.lba is its block index */
	MTFTL_UNIT_FOOTER	= 5,	/* footer stream of this zone, likewise */
	MTFTL_UNIT_MAP		= 6,	/* map blocks: entry.lba is its index */
};

#define MTFTL_ANY_OFFSET	0xffffffffu	/* placed by zone append */

/* Bits of numbers and generations: counting on from what is on flash never wraps. */
#define MTFTL_SEQ_BITS		62

/* Resets of a zone, more than any drive endures: counting on from there never wraps. */
#define MTFTL_MAX_ERASES	0x7fffffffu

/*
 * Entry i describes payload block i. Payload blocks past the last entry are
 * padding, so a unit of no entries fills a gap. A unit holds a logical block once.
 * Numbers start at 1. Only a unit whose write failed appears twice (it keeps its
 * number and goes to another zone); payload checksums then tell which to use.
 * Of two within one zone the first counts: the other is a user's copy of it, or the
 * same append, sent again by a driver that got no answer.
 */

struct mtftl_unit {
	__le32 magic;			/*  0 */
	__le32 crc;			/*  4: of header and entries, with this field zero */
	__u8   version;			/*  8 */
	__u8   type;			/*  9: enum mtftl_unit_type */
	__le16 nr_entries;		/* 10: at most nr_blocks, but for ranges */
	__le16 nr_blocks;		/* 12: payload blocks that follow, 0 for ranges */
	__le16 lane;			/* 14: which wrote it, for people */
	__le64 seq;			/* 16: this unit's number */
	__le64 durable_seq;		/* 24: every unit up to it was durable, below seq */
	__le32 zone;			/* 32: meant for this zone */
	__le32 offset;			/* 36: at this block of it, or MTFTL_ANY_OFFSET */
	__le32 erase_count;		/* 40: resets of this zone so far */
	__u8   reserved[20];		/* 44 */
	/* 64: entries or ranges, nr_entries of them; what follows means nothing */
};

struct mtftl_entry {
	__le64 lba;			/*  0: logical block of the payload block */
	__le32 crc;			/*  8: of the payload block */
	__le32 reserved;		/* 12 */
};

/*
 * With MTFTL_SB_OOB: the first bytes of the metadata of each block of a DATA or GC unit, zeroes
 * for all other blocks. Neighbours of one number and type are one unit. The checksum is that of
 * the block, xor that of lba, tag and zone, both from the seed: so GC finds what the block's
 * writer said of it, and whatever is damaged, block or metadata, does not verify.
 */
struct mtftl_oob {
	__le32 lba;			/*  0 */
	__le32 check;			/*  4 */
	__le64 tag;			/*  8: from the lowest bit: type, erase count, number */
};

#define MTFTL_OOB_TYPE_BITS	2	/* enum mtftl_unit_type, 0: the block is no data */
#define MTFTL_OOB_ERASE_BITS	14	/* the lowest of the zone's erase count */
#define MTFTL_OOB_SEQ_BITS	48
#define MTFTL_META_MAX		128u	/* more bytes of metadata a block are not used at all */

enum mtftl_range_kind {
	MTFTL_RANGE_TRIM	= 1,	/* reads as zeroes */
	MTFTL_RANGE_LOST	= 2,	/* unreadable when GC came for it: reads as an error */
};

/* A longer discard takes several records. This bounds the work that one header can cause. */
#define MTFTL_RANGE_MAX_BLOCKS	1024u

struct mtftl_range {
	__le64 lba;			/*  0 */
	__le64 seq;			/*  8: drawn while the map changed, below its unit's */
	__le32 nr_blocks;		/* 16: up to MTFTL_RANGE_MAX_BLOCKS */
	__le32 kind;			/* 20: enum mtftl_range_kind */
};

#define MTFTL_UNIT_MAX_ENTRIES	((MTFTL_BLOCK_SIZE - sizeof(struct mtftl_unit)) / \
				 sizeof(struct mtftl_entry))
#define MTFTL_UNIT_MAX_RANGES	((MTFTL_BLOCK_SIZE - sizeof(struct mtftl_unit)) / \
				 sizeof(struct mtftl_range))

/*
 * The last block of a full zone. Where it verifies, GC reads the footer stream that it
 * points to instead of the headers, and so may recovery, except for the headers of
 * ranges and of units above the durable number. A footer lists every unit
 * of its zone but FOOTER ones, or is not written. Its erase count is that of the
 * zone's other headers: another is a user's copy of an older one.
 */
struct mtftl_tail {
	__le32 magic;			/*  0 */
	__le32 crc;			/*  4: of the block, with this field zero */
	__u8   version;			/*  8 */
	__u8   reserved0[3];		/*  9 */
	__le32 zone;			/* 12 */
	__le32 erase_count;		/* 16 */
	__le32 footer_offset;		/* 20: block of the first MTFTL_UNIT_FOOTER */
	__le32 footer_blocks;		/* 24: payload blocks of the stream */
	__le32 nr_records;		/* 28: units listed */
	__le64 min_seq;			/* 32: of the units listed */
	__le64 max_seq;			/* 40 */
	__u8   reserved1[4048];		/* 48 */
};

/* The footer stream: per unit one record, followed by nr_entries __le64 lbas. */
struct mtftl_footer_record {
	__le64 seq;			/*  0 */
	__le32 offset;			/*  8: of the unit's first block */
	__u8   type;			/* 12 */
	__u8   reserved;		/* 13 */
	__le16 nr_entries;		/* 14: 0 for MTFTL_UNIT_RANGES: read its header */
};

/*
 * The zone is worn out, or it was set aside for checkpoints and failed. Nothing in it counts, and
 * nothing is written to it any more.
 */
#define MTFTL_ZONE_RETIRED	0x0001

/*
 * The checkpoint stream: nr_zones zone records, padded to a block, then the
 * map, 4 bytes a logical block, as MTFTL_MAP_* or a block of the device
 * (zone * zone_blocks + offset), padded to a block.
 */
struct mtftl_zone_record {
	__le32 erase_count;		/*  0 */
	__le32 wp;			/*  4: no unit above ckpt_seq starts before this block */
	__le64 first_seq;		/*  8: number in block 0, 0 if no header is there */
	__le16 flags;			/* 16: MTFTL_ZONE_* */
	__u8   reserved[14];		/* 18 */
};

/*
 * With MTFTL_SB_MAP_LOG the stream is the zone records, then the directory, padded to a block. It
 * has one entry for each map block: MTFTL_BLOCK_SIZE / map_entry_bytes entries of the map. So a map
 * block is read and verified by itself, whatever wrote it. Seat s is ckpt_zones[s].
 */
#define MTFTL_MAP_ENTRY_BYTES	4u	/* the only width that is known */
#define MTFTL_PLACE_NONE	0xffffffffu	/* all of its entries are unmapped */

struct mtftl_map_place {
	__le32 at;			/*  0: seat * zone_capacity + block, or MTFTL_PLACE_NONE */
	__le32 crc;			/*  4: of the block */
};

#define MTFTL_MAP_UNMAPPED	0xffffffffu
#define MTFTL_MAP_LOST		0xfffffffeu
#define MTFTL_MAP_MAX_PAGE	0xffdfffffu	/* slots live above, in memory only */

mtftl_assert_size(struct mtftl_sb, MTFTL_BLOCK_SIZE);
mtftl_assert_size(struct mtftl_unit, 64);
mtftl_assert_size(struct mtftl_entry, 16);
mtftl_assert_size(struct mtftl_range, 24);
mtftl_assert_size(struct mtftl_oob, 16);
mtftl_assert_size(struct mtftl_tail, MTFTL_BLOCK_SIZE);
mtftl_assert_size(struct mtftl_footer_record, 16);
mtftl_assert_size(struct mtftl_zone_record, 32);
mtftl_assert_size(struct mtftl_map_place, 8);

#endif
