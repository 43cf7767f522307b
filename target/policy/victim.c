// SPDX-License-Identifier: GPL-2.0
/*
 * Victim policies of GC, chosen by name on the table line: see policy.h. Pure.
 */
#include "policy/policy.h"

#define LEAST_GAIN	32u	/* of a zone, as a fraction, or it is not worth moving */

/* Least to move. */
static u64 score_greedy(const struct mtftl_candidate *zone)
{
	mtftl_assert(zone->valid <= zone->capacity, "%u of %u", zone->valid, zone->capacity);
	return zone->capacity - zone->valid;
}

/*
 * Space gained times age, by the cost of reading and writing what is valid: (1 - u) * age / 2u. Old
 * zones are taken earlier: what is left in them is cold. Close to the best there is: a zone whose
 * blocks die at a rate r gains most, beside others, at the same (1/u - 1 + ln u) / r, and what
 * has died by an age says r = -ln u / age.
 */
static u64 score_cost_benefit(const struct mtftl_candidate *zone)
{
	u64 age = zone->age < (1ull << 31) ? zone->age : 1ull << 31, score;

	mtftl_assert(zone->valid <= zone->capacity, "%u of %u", zone->valid, zone->capacity);
	score = div_u64((u64)(zone->capacity - zone->valid) * (age + 1), 2 * zone->valid + 1);
	/* A young zone is worth little, but more than nothing if there is something to gain. */
	return score || zone->valid == zone->capacity ? score : 1;
}

u32 mtftl_victim_limit(u32 payload, u64 logical_blocks, u32 zones)
{
	u64 average = div_u64(logical_blocks + zones - 1, zones);
	u32 limit = payload - payload / LEAST_GAIN;
	/* Units at a batch's end are short: some of the least gain may be their headers. */
	u32 most = payload - payload / (4 * LEAST_GAIN) - 1;

	if (average > limit)
		limit = average < most ? average : most;
	mtftl_assert(limit <= payload, "%u of %u", limit, payload);
	return limit;
}

static const struct mtftl_victim_policy policies[] = {
	{ "greedy",		score_greedy },
	{ "cost-benefit",	score_cost_benefit },
};

const struct mtftl_victim_policy *mtftl_victim_policy(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(policies); i++)
		if (!strcmp(policies[i].name, name))
			return &policies[i];
	return NULL;
}

const char *mtftl_victim_policy_name(u32 index)
{
	return index < ARRAY_SIZE(policies) ? policies[index].name : NULL;
}
