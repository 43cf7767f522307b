// SPDX-License-Identifier: GPL-2.0
/*
 * Placement: which blocks lie together, chosen by name on the table line: see policy.h. Pure.
 */
#include "policy.h"

static u32 all_alike(u32 age, u32 turn)
{
	(void)age;
	(void)turn;
	return 0;
}

/*
 * A block that was written again soon will be once more. Where the last interval is short against
 * the time in which all is written once, the block is hot.
 */
static u32 written_by_age(u32 age, u32 turn)
{
	return (u64)age * 8 >= turn;
}

/* The longer a block has lived, the longer it will. */
static u32 moved_by_age(u32 age, u32 turn)
{
	return ((u64)age * 2 >= turn) + (age >= 2 * (u64)turn);
}

static const struct mtftl_placement placements[] = {
	{ "none",	1, 0, all_alike,	all_alike },
	{ "hot-cold",	1, 1, all_alike,	all_alike },
	{ "by-age",	2, 3, written_by_age,	moved_by_age },
};

const struct mtftl_placement *mtftl_placement(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(placements); i++)
		if (!strcmp(placements[i].name, name))
			return &placements[i];
	return NULL;
}
