// SPDX-License-Identifier: GPL-2.0
/*
 * Victim policies of GC, chosen by name on the table line: see policy.h. Pure.
 */
#include "policy.h"

/* Least to move. */
static u64 score_greedy(const struct mtftl_candidate *zone)
{
	return zone->capacity - zone->valid;
}

/*
 * Space gained times age, by the cost of reading and writing what is valid:
 * (1 - u) * age / (1 + u). Old zones are taken earlier: what is left in them is cold.
 */
static u64 score_cost_benefit(const struct mtftl_candidate *zone)
{
	u64 age = zone->age < (1ull << 31) ? zone->age : 1ull << 31;

	return div_u64((u64)(zone->capacity - zone->valid) * (age + 1),
		       zone->capacity + zone->valid);
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
