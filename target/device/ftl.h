/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One device as its components see it. Each component is a file with a header of its own, which
 * says what it offers, in which context, and what protects it. Other files do not use the fields of
 * its struct. Folders are layers: a file includes and calls what lies in its own folder or in one
 * below. target/Makefile lists the folders from the top down, and `make lint` checks the sources.
 * Only events go up: see event.h.
 *
 * Locks, outermost first; none is held across a wait for I/O but those marked *:
 *	life*			mount, stop and unmount (target.h)
 *	checkpoints.lock*	one checkpoint at a time
 *	super.lock*		the superblock log
 *	movers.ranges_lock*	ranges that GC logs again
 *	seq.flushing*		one flush of the device at a time, and what is durable
 *	stream->lock		taking place in a stream's zone, process context
 *	zones.lock		states and lists of zones, process context
 *	zone->lock		a zone's units in flight and footer, irq
 *	ring->lock		a ring's positions, what its lane keeps, irq
 *	shard->lock		a part of the map and the slots that it points to, irq
 *	movers.lock		GC's queue of victims, process context, taken alone
 *	resets.lock, streams.lock	zones to be erased; free footers; likewise
 *	shard->through_lock	a list of FUA writes that wait, irq
 *	pending.lock		lists of bios and records, irq
 * zone->lock, ring->lock and shard->lock are taken one at a time; of them shard->lock may be taken
 * inside stream->lock, and the last two lines inside shard->lock.
 */
#ifndef MTFTL_FTL_H
#define MTFTL_FTL_H

#include <linux/blkdev.h>

#include "device/config.h"

#define MTFTL_BLOCK_SECTORS	(MTFTL_BLOCK_SIZE >> SECTOR_SHIFT)

/* As device-mapper's messages begin. */
#define DM_MSG_PREFIX "mtftl"

struct mtftl {
	struct mtftl_config config;
	struct mtftl_device *device;
	struct mtftl_seq *seq;
	struct mtftl_space *space;
	struct mtftl_pending *pending;
	struct mtftl_rings *rings;
	struct mtftl_map *map;
	struct mtftl_zones *zones;
	struct mtftl_streams *streams;
	struct mtftl_writes *writes;
	struct mtftl_super *super;
	struct mtftl_lanes *lanes;
	struct mtftl_flush *flush;
	struct mtftl_checkpoints *checkpoints;
	struct mtftl_gc *gc;
};

/* Pages of the device are its blocks, numbered by zone. */
static inline u32 mtftl_page_zone(const struct mtftl *ftl, u32 page)
{
	return page >> ftl->config.zone_shift;
}

static inline u32 mtftl_page_offset(const struct mtftl *ftl, u32 page)
{
	return page & ((1u << ftl->config.zone_shift) - 1);
}

static inline u32 mtftl_zone_page(const struct mtftl *ftl, u32 zone)
{
	/* The superblock, which says how many there are, is in the first ones. */
	mtftl_assert(zone < max(ftl->config.nr_zones, MTFTL_NR_SB_ZONES), "zone %u", zone);
	return zone << ftl->config.zone_shift;
}

static inline sector_t mtftl_page_sector(const struct mtftl *ftl, u32 page)
{
	return ftl->config.first_sector + (sector_t)page * MTFTL_BLOCK_SECTORS;
}

#endif
