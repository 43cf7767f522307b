/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A drive without time: zones, map, streams and GC as the target has them, with the target's own
 * policies (policy.h), and nothing that needs a clock, a buffer of data or a flash. One thread.
 */
#ifndef MTFTL_DRIVE_H
#define MTFTL_DRIVE_H

#include "policy/admit.h"
#include "policy/choose.h"
#include "policy/policy.h"

#define MAX_STREAMS	256u

struct zone {
	u32 wp;			/* blocks handed out, headers included */
	u32 valid;
	u32 born;		/* by the clock: when users wrote what lies there */
	u32 life;		/* of what lies there */
	u64 born_sum, life_sum;
	u64 full_seq;
	u32 erase_count;
	u8 class;		/* of its writer: users' first, then GC's */
	u8 state;
};

/* What fills a zone. */
struct stream {
	s64 zone;		/* -1: none */
	u32 unit_left;		/* blocks before its next header */
};

struct drive;

/* Which blocks share zones: the target's placement, or one that a paper describes. */
struct placing {
	const char *name;
	u32 user_classes, gc_classes;
	/* Of a block that users write, or that GC moves out of a zone. */
	u32 (*written)(struct drive *drive, u32 block);
	u32 (*moved)(struct drive *drive, u32 block, u32 zone);
	/* A victim was chosen. NULL: it does not matter. */
	void (*collected)(struct drive *drive, u32 zone);
};

struct drive {
	/* Set by its maker. */
	u32 blocks;		/* that users see */
	u32 nr_zones;		/* for data */
	u32 capacity;		/* of a zone, without its footer */
	u32 write_unit, gc_unit;
	u32 lanes;
	u32 low_water;		/* zones: GC works below */
	struct mtftl_admit_limits limits;	/* where users stop: nothing is buffered */
	u32 wear_interval, wear_spread;
	const struct mtftl_victim_policy *victims;
	const struct mtftl_placement *own;	/* the target's, if placing is */
	const struct placing *placing;
	const double *shares;	/* how often each block is stored; for the one that knows */
	struct mtftl_budget budget;

	u32 *map;		/* block -> page, ~0: none */
	u32 *owner;		/* page -> block */
	u32 *written_at;	/* by block, in users' writes: for placements that need it */
	struct zone *zones;
	struct stream streams[MAX_STREAMS];
	u32 *empty;
	struct mtftl_admit_state state;	/* how many are empty */
	u32 device_in_zones, clock;
	u64 seq;		/* units so far */
	u64 room;		/* in open zones */
	u32 life;		/* of the block that is put next, if the placement knows it */
	u32 lane;		/* whose turn it is */
	u32 in_unit;		/* blocks that it has written in it */
	double lifespan;	/* SepBIT: of zones of the first class, and its last ones' sum */
	double lifespans;
	u32 lifespans_nr;

	/* The victim under way. */
	s64 victim;
	u32 next, to_move, moved;
	u32 limit;		/* the most that one may hold */
	struct mtftl_chooser chooser;

	u64 user_blocks, gc_blocks, headers;
};

/* Zones, map and streams of a drive whose parameters are set. */
void drive_start(struct drive *drive);
void drive_end(struct drive *drive);
/* A user's block reaches the drive. */
void drive_write(struct drive *drive, u32 block);

/* NULL: neither the target nor a paper has it. */
const struct placing *placing_find(struct drive *drive, const char *name);

#endif
