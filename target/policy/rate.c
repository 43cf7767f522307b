// SPDX-License-Identifier: GPL-2.0
/*
 * The rate limiter's arithmetic: see policy.h. Pure.
 */
#include "policy/policy.h"

u32 mtftl_rate_ready(u32 spare_zones, u32 nr_zones)
{
	u32 ready = spare_zones / 4;

	if (ready < 2)
		ready = 2;
	if (ready > 5)
		ready = 5;
	return ready > nr_zones / 64 ? ready : nr_zones / 64;
}

s64 mtftl_rate_credit(const struct mtftl_space_seen *space, u32 low_water)
{
	u32 moved = space->moved < space->moving ? space->moved : space->moving;
	u64 free = (u64)space->zones * space->capacity + space->room;

	mtftl_assert(low_water, "%u", low_water);
	if (space->moving)
		free += div_u64((u64)moved * space->victims * space->capacity, space->moving);
	return free - (u64)(low_water - 1) * space->capacity;
}

s64 mtftl_rate_allowance(s64 left, u32 passed_us, u32 back_us)
{
	s64 share;

	/* Never nothing: to shut is the gate's. */
	if (left < 1)
		return 1;
	if (passed_us >= back_us)
		return left;
	share = div_u64((u64)left * passed_us, back_us);
	mtftl_assert(share <= left, "%lld of %lld", share, left);
	return share ? share : 1;
}
