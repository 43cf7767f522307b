/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is fixed while a table is in force: what it asked for, as far as the device allows it, and
 * what follows from both. table.c fills it in before any other component runs; all may read it.
 * Only limits.low_water and gc_policy change later, by message: with WRITE_ONCE().
 */
#ifndef MTFTL_CONFIG_H
#define MTFTL_CONFIG_H

#include "format/parse.h"
#include "policy/admit.h"
#include "policy/policy.h"

#define MTFTL_CHUNK_SHIFT	10	/* map entries that share a lock for certain */
#define MTFTL_BUFFER_SHIFT	5	/* memory for blocks comes 32 at a time */
#define MTFTL_BUFFER_BLOCKS	32u
#define MTFTL_BUFFER_ORDER	get_order(MTFTL_BUFFER_BLOCKS << MTFTL_BLOCK_SHIFT)

/* Map values: a page of the device, a slot, or one of MTFTL_MAP_*. */
#define MTFTL_MAP_SLOTS		(MTFTL_MAP_MAX_PAGE + 1)
#define MTFTL_MAX_SLOTS		(MTFTL_MAP_LOST - MTFTL_MAP_SLOTS)

struct mtftl_config {
	/* Of the device, in blocks. */
	u64 first_sector;	/* where zone 0 begins: see mtftl_run_add() */
	u32 zones_there;	/* zones from there on, in one run */
	u32 nr_zones;		/* those of the format */
	u32 zone_shift;
	u32 capacity;
	bool capacity_unaligned; /* and some sectors, not written: full zones are finished */
	u64 logical_blocks;
	u32 seed;
	u32 unit_max;		/* payload of the largest unit */
	u32 meta_size;		/* bytes of metadata of each block that we may use; 0: none */
	u32 header_blocks;	/* blocks of a header of user data: 1, or 0 as that is metadata */

	/* Of the table. */
	u32 nr_lanes;
	u32 lane_shift;		/* slots of a lane's array */
	u32 buffer_entries;	/* of all lanes together */
	u32 write_unit;
	const struct mtftl_victim_policy *gc_policy;
	const struct mtftl_placement *placement;
	bool write_hints;	/* of writers, that say how long their data will live, count */
	bool append;		/* the device chooses the place in a zone */

	struct mtftl_admit_limits limits;
	struct mtftl_budget budget;
	u32 device_in_zones;	/* zones that hold as much as the device: see policy.h */
	u32 unwritten_life;	/* of blocks that were never written */
	u32 unwritten_class;
	u64 checkpoint_after;	/* numbers drawn between two checkpoints */
};

/* Blocks at the end of a zone that its footer and tail take at most. */
static inline u32 mtftl_footer_blocks(const struct mtftl_config *config)
{
	return mtftl_footer_reserve(config->capacity, !config->header_blocks);
}

/* Blocks in front of them: what a zone with a footer takes. */
static inline u32 mtftl_usable_blocks(const struct mtftl_config *config)
{
	mtftl_assert(mtftl_footer_blocks(config) < config->capacity, "%u blocks", config->capacity);
	return config->capacity - mtftl_footer_blocks(config);
}

/* Blocks of a footer's list at most. */
static inline u32 mtftl_footer_list_blocks(const struct mtftl_config *config)
{
	return mtftl_footer_stream_blocks(config->capacity, !config->header_blocks);
}

/* Blocks of a checkpoint, without headers. */
static inline u32 mtftl_checkpoint_blocks(const struct mtftl_config *config)
{
	return mtftl_ckpt_stream_blocks(config->nr_zones, config->logical_blocks);
}

/* Zones that users' data does not fill. */
u32 mtftl_config_spare_zones(const struct mtftl_config *config);

/* The superblock is known. */
void mtftl_config_set_format(struct mtftl_config *config, const struct mtftl_sb_info *info);
/*
 * All that follows, once the drive, the table and the format are known. @open_limit: zones that may
 * be open, 0 for no limit. Makes buffer_entries smaller if the drive has little to spare. -ERANGE:
 * buffer_entries is more than slots can be numbered; -EINVAL: @open_limit is too small.
 */
int mtftl_config_fit(struct mtftl_config *config, u32 open_limit);

#endif
