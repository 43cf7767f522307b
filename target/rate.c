// SPDX-License-Identifier: GPL-2.0
/*
 * The rate limiter's arithmetic: see policy.h. Pure.
 */
#include "policy.h"

#define ONE	1024u	/* fixed point */

u64 mtftl_rate_credit(u32 moved, u32 valid, u32 capacity, u32 free, u32 reserve, u32 target)
{
	u64 gain = capacity > valid ? capacity - valid : 0;
	u64 credit = valid ? div_u64((u64)moved * gain, valid) : capacity;
	u32 pressure;

	if (free <= reserve)
		return 0;
	/* 0 at the reserve, 1 at the target, 2 at most. */
	pressure = target > reserve ? div_u64((u64)(free - reserve) * ONE, target - reserve) : ONE;
	if (pressure > 2 * ONE)
		pressure = 2 * ONE;
	return div_u64(credit * pressure, ONE);
}
