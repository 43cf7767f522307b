// SPDX-License-Identifier: GPL-2.0
/*
 * The rate limiter's arithmetic: see policy.h. Pure.
 */
#include "policy.h"

s64 mtftl_rate_credit(const struct mtftl_space_seen *space, u32 low_water)
{
	u32 moved = space->moved < space->moving ? space->moved : space->moving;
	u64 free = (u64)space->zones * space->capacity + space->room;

	if (space->moving)
		free += div_u64((u64)moved * space->victims * space->capacity, space->moving);
	return free - (u64)(low_water - 1) * space->capacity;
}
