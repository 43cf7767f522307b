/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A zoned device in memory and a plain writer of the format, for the tests of the
 * readers. It writes what it is told, also what no writer should.
 */
#ifndef MTFTL_TESTS_IMAGE_H
#define MTFTL_TESTS_IMAGE_H

#include "flash.h"
#include "format/parse.h"

#define IMAGE_ZONES		12u
#define IMAGE_ZONE_BLOCKS	128u
#define IMAGE_CAPACITY		120u
#define IMAGE_LOGICAL		256u
#define IMAGE_STREAM_UNIT	31u	/* blocks of a unit of a checkpoint or footer */

#define IMAGE_ALL_READABLE	0xffffffffu

struct image {
	struct flash flash;
	struct mtftl_sb_info sb;
	u32 seed;
	u64 seq;			/* last number given */
	u64 durable_seq;		/* put into the next header */
	u32 *erase_count;		/* of each zone */
	u64 *first_seq;
	u32 retired;			/* a zone that the next checkpoint says is; 0: none */
	const u8 *unit_sizes;		/* blocks of its stream's units; NULL: IMAGE_STREAM_UNIT each */
	u8 *data;
	struct mtftl_oob *oob;		/* of each block, where sb.oob is set first of all */
	u32 unreadable;			/* page that fails to read, if any */
	int unreadable_error;		/* -ENODATA at first */
};

struct image *image_new(void);
/* Of another geometry than IMAGE_*. */
struct image *image_new_of(u32 nr_zones, u32 zone_blocks, u32 capacity, u64 logical_blocks);
void image_free(struct image *image);

u8 *image_block(struct image *image, u32 zone, u32 offset);
void image_reset_zone(struct image *image, u32 zone);
/* Append a superblock record of the next generation to zone 0. */
void image_write_super(struct image *image, u16 flags);

/*
 * Append a unit with the given number; payload block i holds content[i] in every
 * byte pair. Returns the offset of its first block: the header, if it has one.
 */
u32 image_write_unit(struct image *image, u32 zone, enum mtftl_unit_type type, u64 seq, u16 nr,
		     const u64 *lbas, const u16 *contents);
u32 image_write_range(struct image *image, u32 zone, u64 seq, u64 lba, u32 nr_blocks,
		      u64 range_seq, enum mtftl_range_kind kind);
/*
 * Write @map and the state of all zones into @zone and, if need be, the zones behind it, and a
 * superblock that points to it.
 */
void image_write_checkpoint(struct image *image, u32 zone, u64 ckpt_seq, const u32 *map,
			    u16 flags);
/*
 * Likewise as a log of map blocks, from the first of the zones set aside on: they are reset. False:
 * the zones are too small.
 */
bool image_write_map_log(struct image *image, u64 ckpt_seq, const u32 *map, u16 flags);
/* Fill a zone up with padding and end it with a footer of its units but the first @omitted. */
void image_write_footer(struct image *image, u32 zone, u32 omitted);

#endif
