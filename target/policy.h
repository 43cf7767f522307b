/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decisions as pure functions: how zones are shared out (budget.c), which zone
 * GC takes next (victim.c), how fast users may write while it works (rate.c).
 * A policy is one function and one line in its table.
 */
#ifndef MTFTL_POLICY_H
#define MTFTL_POLICY_H

#include "pure.h"

/* How many zones may be open at once, and for whom. */
struct mtftl_budget {
	u32 data_zones;		/* open at once for data, those being closed included */
	u32 user_streams;	/* zones that lanes write to at once */
	bool gc_shares;		/* too few: GC writes to the user's stream */
};

/*
 * @limit is the device's smaller limit of open and active zones, 0 for none.
 * One is kept for the superblock log and two for checkpoints.
 * -EINVAL: fewer than MTFTL_MIN_OPEN_ZONES.
 */
#define MTFTL_MIN_OPEN_ZONES	4
int mtftl_budget(u32 limit, u32 lanes, u32 nr_zones, struct mtftl_budget *budget);

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

/* NULL if there is none of that name. */
const struct mtftl_victim_policy *mtftl_victim_policy(const char *name);

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

/*
 * Blocks that users may write while GC works: what is free above one zone less than
 * @low_water, where GC would rest. A victim becomes free with each block that is moved, by its
 * share, so users go on at the pace of GC, and opening or freeing a zone changes nothing.
 */
s64 mtftl_rate_credit(const struct mtftl_space_seen *space, u32 low_water);

#endif
