// SPDX-License-Identifier: GPL-2.0
/*
 * Pace: see pace.h. The arithmetic is in rate.c.
 */
#include "pace.h"

#include "space.h"
#include "stream.h"

void mtftl_pace_begin(struct mtftl_pace *pace, u32 blocks)
{
	atomic_add(blocks, &pace->moving);
	atomic_inc(&pace->victims);
}

void mtftl_pace_end(struct mtftl_pace *pace, u32 blocks, u32 moved)
{
	atomic_sub(moved, &pace->moved);
	atomic_sub(blocks, &pace->moving);
	atomic_dec(&pace->victims);
}

void mtftl_pace_moved(struct mtftl_pace *pace, u32 blocks)
{
	atomic_add(blocks, &pace->moved);
}

/* What users took meanwhile, unseen by this look, the next one sees. */
void mtftl_pace_update(struct mtftl_pace *pace)
{
	struct mtftl *ftl = pace->ftl;
	struct mtftl_space_seen seen = {
		.zones = mtftl_zones_count(ftl, MTFTL_ZONE_EMPTY) +
			 mtftl_zones_count(ftl, MTFTL_ZONE_RESETTING),
		.capacity = ftl->config.capacity,
		.room = mtftl_streams_room(ftl),
		.victims = max(atomic_read(&pace->victims), 0),
		.moving = max(atomic_read(&pace->moving), 0),
		.moved = max(atomic_read(&pace->moved), 0),
	};

	mtftl_space_set_credit(ftl, mtftl_rate_credit(&seen, READ_ONCE(ftl->config.low_water)));
	mtftl_space_appeared(ftl);
}
