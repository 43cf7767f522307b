// SPDX-License-Identifier: GPL-2.0
/*
 * Pace: see pace.h. The arithmetic is in rate.c.
 */
#include "gc/pace.h"

#include "device/device.h"
#include "device/space.h"
#include "io/lane.h"
#include "zone/stream.h"

#define TICK_US		250
#define MOST		0x40000000	/* that lanes count */
#define LATE_US		4000	/* what was missed longer ago is not made up for */

void mtftl_pace_begin(struct mtftl_pace *pace, u32 blocks)
{
	atomic_add(blocks, &pace->moving);
	atomic_inc(&pace->victims);
}

void mtftl_pace_end(struct mtftl_pace *pace, u32 blocks, u32 moved)
{
	mtftl_assert(atomic_read(&pace->victims) > 0 && atomic_read(&pace->moving) >= (int)blocks,
		     "%d victims, %u of %d blocks", atomic_read(&pace->victims), blocks,
		     atomic_read(&pace->moving));
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

	mtftl_space_set_credit(ftl, mtftl_rate_credit(&seen,
						      READ_ONCE(ftl->config.limits.low_water)));
	mtftl_space_appeared(ftl);
}

/* What enters the buffers */

static bool must_slow(const struct mtftl *ftl)
{
	struct mtftl_admit_state state;

	mtftl_space_look(ftl, &state);
	state.stopped = mtftl_is_read_only(ftl) || mtftl_is_paused(ftl);
	return mtftl_admit_is_slowed(&ftl->config.limits, &state);
}

static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct mtftl_pace *pace = container_of(timer, struct mtftl_pace, timer);
	struct mtftl *ftl = pace->ftl;
	struct mtftl_admit_state state;
	ktime_t now = ktime_get();
	s64 blocks;
	u32 passed;

	if (!must_slow(ftl)) {
		mtftl_space_set_slowed(ftl, false);
		return HRTIMER_NORESTART;
	}
	passed = min_t(s64, ktime_us_delta(now, pace->ticked), LATE_US);
	pace->ticked = now;
	mtftl_space_set_slowed(ftl, true);
	mtftl_space_look(ftl, &state);
	blocks = mtftl_rate_allowance(mtftl_admit_left(&ftl->config.limits, &state,
						       mtftl_streams_room(ftl)),
				      passed, mtftl_zones_back_us(ftl));
	mtftl_lanes_allow(ftl, min_t(s64, blocks, MOST));
	hrtimer_forward_now(timer, ns_to_ktime(TICK_US * NSEC_PER_USEC));
	return HRTIMER_RESTART;
}

void mtftl_pace_init(struct mtftl_pace *pace, struct mtftl *ftl)
{
	pace->ftl = ftl;
	hrtimer_setup(&pace->timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}

void mtftl_pace_watch(struct mtftl_pace *pace)
{
	if (hrtimer_active(&pace->timer) || !must_slow(pace->ftl))
		return;
	pace->ticked = ktime_get();
	hrtimer_start(&pace->timer, ns_to_ktime(TICK_US * NSEC_PER_USEC), HRTIMER_MODE_REL);
}

void mtftl_pace_stop(struct mtftl_pace *pace)
{
	hrtimer_cancel(&pace->timer);
	mtftl_space_set_slowed(pace->ftl, false);
}
