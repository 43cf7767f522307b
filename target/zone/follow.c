// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks in order stay in order on flash: see follow.h. Pure.
 */
#include "zone/follow.h"

#define TRIES	2u	/* times round the streams */
#define REST	256u	/* units, when no stream is quiet */

void mtftl_follow_init(struct mtftl_follow *follow)
{
	u32 i;

	*follow = (struct mtftl_follow){};
	for (i = 0; i < MTFTL_FOLLOW_UNITS; i++)
		follow->ends[i].page = MTFTL_FOLLOW_NOWHERE;
}

u32 mtftl_follow_page(const struct mtftl_follow *follow, u32 lba)
{
	u32 i;

	for (i = 0; i < MTFTL_FOLLOW_UNITS; i++)
		if (follow->ends[i].lba == lba && follow->ends[i].page != MTFTL_FOLLOW_NOWHERE)
			return follow->ends[i].page;
	return MTFTL_FOLLOW_NOWHERE;
}

void mtftl_follow_note(struct mtftl_follow *follow, u32 lba, u32 page)
{
	mtftl_assert(follow->at < MTFTL_FOLLOW_UNITS, "%u", follow->at);
	follow->ends[follow->at].lba = lba;
	follow->ends[follow->at].page = page;
	follow->at = (follow->at + 1) % MTFTL_FOLLOW_UNITS;
}

u32 mtftl_follow_choose(const struct mtftl_config *config, struct mtftl_follow *follow, u32 page,
			const u32 *next, u32 nr)
{
	u32 i;

	mtftl_assert(nr <= MTFTL_FOLLOW_STREAMS && page != MTFTL_FOLLOW_NOWHERE);
	for (i = 0; i < nr; i++)
		if (next[i] == page) {
			follow->moves = 0;
			return i;
		}
	if (follow->rest) {
		follow->rest--;
		return 0;
	}
	for (i = 0; i < nr; i++) {
		if (next[i] == MTFTL_FOLLOW_NOWHERE ||
		    (next[i] - 1) >> config->zone_shift != (page - 1) >> config->zone_shift)
			continue;
		/* Others have written there since. */
		if (++follow->moves <= TRIES * nr)
			return (i + 1) % nr;
		follow->moves = 0;
		follow->rest = REST;
		return 0;
	}
	return 0;
}
