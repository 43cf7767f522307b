// SPDX-License-Identifier: GPL-2.0
/*
 * Shares out the zones that may be open at once: see policy.h. Pure.
 */
#include "policy.h"

#define KEPT	3	/* superblock log, durable checkpoint, the one being written */

int mtftl_budget(u32 limit, u32 lanes, u32 nr_zones, struct mtftl_budget *budget)
{
	u32 available;

	if (limit && limit < MTFTL_MIN_OPEN_ZONES)
		return -EINVAL;
	/* One for each lane and GC, and as many again that are being closed. */
	available = 2 * (lanes + 1);
	if (limit && limit - KEPT < available)
		available = limit - KEPT;
	/* Open zones hold free space back: on a small device, keep that small. */
	if (available > nr_zones / 8)
		available = nr_zones / 8 ? nr_zones / 8 : 1;

	budget->data_zones = available;
	budget->gc_shares = available == 1;
	budget->user_streams = available - !budget->gc_shares;
	if (budget->user_streams > lanes)
		budget->user_streams = lanes;
	return 0;
}
