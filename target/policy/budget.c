// SPDX-License-Identifier: GPL-2.0
/*
 * Shares out the zones that may be open at once: see policy.h. Pure.
 */
#include "policy/policy.h"

#define KEPT		3	/* superblock log, durable checkpoint, the one being written */
#define PER_CLASS	16u	/* zones that make one more worth it: it holds back half a zone */

int mtftl_budget(u32 limit, u32 lanes, u32 nr_zones, const struct mtftl_placement *placement,
		 struct mtftl_budget *budget)
{
	u32 classes = nr_zones / PER_CLASS > 2 ? nr_zones / PER_CLASS : 2;
	u32 plenty = lanes * placement->user_classes + placement->gc_classes;
	u32 most = nr_zones / 8 ? nr_zones / 8 : 1, streams = lanes + 1, available, gc;

	if (limit && limit < MTFTL_MIN_OPEN_ZONES)
		return -EINVAL;
	/* Open zones hold free space back: on a small device, keep that small. */
	if (limit && limit - KEPT < most)
		most = limit - KEPT;
	if (classes > placement->user_classes + placement->gc_classes)
		classes = placement->user_classes + placement->gc_classes;
	if (streams < classes)
		streams = classes;
	/* Writers in order part ways in the coldest class: it has two where that costs little. */
	if (streams == classes && nr_zones / PER_CLASS > classes)
		streams++;
	/* Where there are plenty no lane shares one. */
	if (streams < plenty && 2 * plenty <= most)
		streams = plenty;
	/* As many again may be about to be closed. */
	available = 2 * streams < most ? 2 * streams : most;

	budget->data_zones = available;
	budget->gc_shares = available == 1;
	if (streams > available)
		streams = available;
	gc = streams / 2;
	if (gc > (classes + 1) / 2)
		gc = (classes + 1) / 2;
	if (gc > placement->gc_classes)
		gc = placement->gc_classes;
	budget->gc_streams = gc ? gc : 1;
	budget->user_streams = budget->gc_shares ? 1 : streams - budget->gc_streams;
	budget->user_classes = classes > budget->gc_streams ? classes - budget->gc_streams : 1;
	if (budget->user_classes > placement->user_classes)
		budget->user_classes = placement->user_classes;
	if (budget->user_classes > budget->user_streams)
		budget->user_classes = budget->user_streams;
	/* Rather than none the hottest classes are one. */
	if (budget->user_streams > 2 && budget->user_classes == budget->user_streams)
		budget->user_classes--;
	mtftl_assert(budget->user_classes && budget->user_classes <= budget->user_streams &&
		     budget->user_classes <= MTFTL_MAX_CLASSES, "%u classes, %u streams",
		     budget->user_classes, budget->user_streams);
	mtftl_assert(budget->gc_shares ? budget->data_zones == 1 :
		     budget->user_streams + budget->gc_streams <= budget->data_zones,
		     "%u and %u streams for %u zones", budget->user_streams, budget->gc_streams,
		     budget->data_zones);
	mtftl_assert(!limit || budget->data_zones + KEPT <= limit, "%u zones of %u",
		     budget->data_zones, limit);
	return 0;
}
