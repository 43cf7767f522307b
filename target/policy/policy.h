/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decisions as pure functions: which blocks lie together (placement.c), how zones are shared out
 * (budget.c), which zone GC takes next (victim.c), how fast users may write while it works
 * (rate.c). A policy is a function or two and a line in its table.
 */
#ifndef MTFTL_POLICY_H
#define MTFTL_POLICY_H

#include "lib/pure.h"

/*
 * Blocks of a class share zones, so that what lies in one dies at about the same time. Classes
 * begin with what lives shortest. Ages are counted in zones that users have filled since. The
 * device's size is @device_in_zones of them: in this time all is written once. A life says how long
 * a block stays until it is written again: the logarithm of its intervals so far, in parts of an
 * octave. A zone has the mean of what lies there, and so remembers for all its blocks.
 */
#define MTFTL_MAX_CLASSES	4u
#define MTFTL_OCTAVE		64u
#define MTFTL_INTERVALS		16u	/* parts of a life */

struct mtftl_placement {
	const char *name;
	u32 user_classes;	/* wanted: there are fewer where few zones may be open */
	u32 gc_classes;		/* 0: GC writes where users do */
	u32 last;		/* parts of a life that are the last interval; all: no memory */
	s32 written[MTFTL_MAX_CLASSES - 1];	/* where each next class of users begins: octaves */
	s32 moved[MTFTL_MAX_CLASSES - 1];	/* above device_in_zones; and of GC's */
};

/* By its name, and the names that there are. NULL: there is none. */
const struct mtftl_placement *mtftl_placement(const char *name);
const char *mtftl_placement_name(u32 index);
u32 mtftl_life(u32 age);
/* Of a block that is written again, so long after it was, in a zone of that life. */
u32 mtftl_life_written(const struct mtftl_placement *placement, u32 life, u32 age);
/* Of one that GC moves out of that zone. */
u32 mtftl_life_moved(u32 life, u32 age);
/* Of one that was never written. */
u32 mtftl_life_new(u32 device_in_zones);
/* If there are fewer @classes than wanted, the first are one: cold blocks cost most elsewhere. */
u32 mtftl_class_written(const struct mtftl_placement *placement, u32 life, u32 device_in_zones,
			u32 classes);
u32 mtftl_class_moved(const struct mtftl_placement *placement, u32 life, u32 device_in_zones,
		      u32 classes);

/* How many zones may be open at once, and for which streams. */
struct mtftl_budget {
	u32 data_zones;		/* open at once for data, those being closed included */
	u32 user_streams;	/* zones that lanes write to at once */
	u32 user_classes;	/* that share these out */
	u32 gc_streams;		/* zones that GC writes to, a class each */
	bool gc_shares;		/* too few: GC writes to the user's stream */
};

/*
 * @limit is the device's smaller limit of open and active zones, 0 for none. One is kept for the
 * superblock log and two for checkpoints. -EINVAL: fewer than MTFTL_MIN_OPEN_ZONES.
 */
#define MTFTL_MIN_OPEN_ZONES	4
int mtftl_budget(u32 limit, u32 lanes, u32 nr_zones, const struct mtftl_placement *placement,
		 struct mtftl_budget *budget);

/* Of the users' streams, the first of a class; of the one behind the last class, their number. */
static inline u32 mtftl_budget_first(const struct mtftl_budget *budget, u32 class)
{
	return class * budget->user_streams / budget->user_classes;
}

/* What a victim policy knows of a full zone. */
struct mtftl_candidate {
	u32 valid;		/* blocks that GC would have to move */
	u32 capacity;
	u64 age;		/* units written since it became full */
};

struct mtftl_victim_policy {
	const char *name;
	u64 (*score)(const struct mtftl_candidate *zone);	/* highest is taken */
};

/* By its name, and the names that there are. NULL: there is none. */
const struct mtftl_victim_policy *mtftl_victim_policy(const char *name);
const char *mtftl_victim_policy_name(u32 index);

/*
 * The most valid blocks of a zone that is worth collecting, where GC puts @payload blocks into
 * one. Headers and footers are no garbage: moved for them alone, zones would go round for
 * ever. But when all of @zones are full, one of them is a victim, however little it gains.
 */
u32 mtftl_victim_limit(u32 payload, u64 logical_blocks, u32 zones);

/* Space as pacing sees it: in blocks, and none of it in steps of a zone. */
struct mtftl_space_seen {
	u32 zones;		/* empty, or about to be */
	u32 capacity;		/* of each */
	u64 room;		/* left in open zones */
	u32 victims;		/* under way */
	u32 moving;		/* blocks found in them */
	u32 moved;		/* of these, by now */
};

/* Zones above the reserve that GC keeps ready: written to, moved, being reset, to start in. */
u32 mtftl_rate_ready(u32 spare_zones, u32 nr_zones);

/*
 * Blocks that users may write while GC works: what is free above one zone less than
 * @low_water, where GC would rest. A victim becomes free with each block that is moved, by its
 * share, so users go on at the pace of GC, and opening or freeing a zone changes nothing.
 */
s64 mtftl_rate_credit(const struct mtftl_space_seen *space, u32 low_water);

/*
 * Blocks that may enter the buffers in @passed_us, so that the @left ones last until a victim is
 * empty. That takes @back_us from when it is chosen; 0: not known yet.
 */
s64 mtftl_rate_allowance(s64 left, u32 passed_us, u32 back_us);

#endif
