/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A zoned device as the readers of media see it: geometry, write pointers and a
 * function that reads blocks. device.c puts a real device behind it, the tests
 * and fuzzers an image in memory. All units are blocks of 4096 bytes.
 */
#ifndef MTFTL_TOOL_FLASH_H
#define MTFTL_TOOL_FLASH_H

#include <errno.h>

#include "format/format.h"

enum flash_cond {
	FLASH_EMPTY,
	FLASH_OPEN,		/* or closed: partly written */
	FLASH_FULL,
	FLASH_READONLY,
	FLASH_OFFLINE,
};

struct flash_zone {
	enum flash_cond cond;
	u32 wp;			/* whole blocks below it may hold data */
	u8 torn_sectors;	/* of 512 bytes, written of the block at wp: a cut left them */
};

struct flash {
	u32 nr_zones;
	u32 zone_blocks;	/* distance between zone starts */
	u32 zone_capacity;
	struct flash_zone *zones;
	bool oob;		/* units of data have no header: as the superblock says */
	bool eio_is_loss;	/* the user says that EIO, too, means that the medium has lost it */
	bool eio_ends_it;	/* nobody says so, and a read has failed with it */
	/* Read @nr blocks into an aligned buffer; 0 or -errno. Never crosses a zone's end. */
	int (*read)(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer);
	/* The block at a zone's write pointer, with zeroes for what is not written; NULL: none is torn. */
	int (*read_torn)(struct flash *flash, u32 zone, void *buffer);
	/* As read(), with what the blocks' metadata begins with; NULL where there is too little. */
	int (*read_oob)(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer,
			struct mtftl_oob *oob);
	/* For writers: the same at a zone's write pointer; and make it all durable. */
	int (*write)(struct flash *flash, u32 zone, u32 offset, u32 nr, const void *buffer);
	int (*flush)(struct flash *flash);
	int (*reset)(struct flash *flash, u32 zone);
	/* Full from now on; what is not written reads as zeroes. */
	int (*finish)(struct flash *flash, u32 zone);
};

/* Of a read: the medium has lost it. Any other error may pass: it says nothing of what is there. */
static inline bool flash_medium_says(struct flash *flash, int error)
{
	flash->eio_ends_it |= error == -EIO && !flash->eio_is_loss;
	return error == -ENODATA || error == -EILSEQ || (flash->eio_is_loss && error == -EIO);
}

/* The drive has given it up, else. */
static inline bool flash_is_writable(const struct flash *flash, u32 zone)
{
	return flash->zones[zone].cond != FLASH_READONLY &&
	       flash->zones[zone].cond != FLASH_OFFLINE;
}

static inline u32 flash_page(const struct flash *flash, u32 zone, u32 offset)
{
	return zone * flash->zone_blocks + offset;
}

#endif
