// SPDX-License-Identifier: GPL-2.0
/*
 * Space as a writer sees it: see space.h.
 */
#include "device/space.h"

#include <linux/slab.h>

#include "device/device.h"
#include "device/pause.h"

int mtftl_space_alloc(struct mtftl *ftl)
{
	struct mtftl_space *space = kzalloc_obj(*space, GFP_KERNEL);

	if (!space)
		return -ENOMEM;
	init_waitqueue_head(&space->wait);
	init_waitqueue_head(&space->gc_wait);
	ftl->space = space;
	mtftl_on_read_only(ftl, mtftl_space_appeared);
	return 0;
}

void mtftl_space_free(struct mtftl *ftl)
{
	kfree(ftl->space);
	ftl->space = NULL;
}

void mtftl_space_appeared(struct mtftl *ftl)
{
	atomic_inc(&ftl->space->gen);
	/* Pairs with a retry that is listed: it sees the new generation, or it is seen. */
	smp_mb__after_atomic();
	mtftl_event_tell(&ftl->space->appeared, ftl);
	mtftl_space_wake(ftl);
}

void mtftl_space_on_appeared(struct mtftl *ftl, void (*heard)(struct mtftl *ftl))
{
	mtftl_event_on(&ftl->space->appeared, heard);
}

/* A second copy of the wait would not pay. */
noinline void mtftl_space_sit_out_pause(struct mtftl *ftl, bool (*over)(void *data), void *data)
{
	wait_event_idle(ftl->space->wait, !mtftl_is_paused(ftl) || (over && over(data)));
}

void mtftl_space_send_begin(struct mtftl *ftl)
{
	while (!mtftl_send_begin(ftl))
		mtftl_space_sit_out_pause(ftl, NULL, NULL);
}

void mtftl_space_wake(struct mtftl *ftl)
{
	/* Orders what has happened before the look. */
	if (wq_has_sleeper(&ftl->space->wait))
		wake_up_all(&ftl->space->wait);
}

void mtftl_space_kick_gc(struct mtftl *ftl)
{
	wake_up(&ftl->space->gc_wait);
}

/* The state */

void mtftl_space_look(const struct mtftl *ftl, struct mtftl_admit_state *state)
{
	/* Without the lock of the zones the counts may be of different moments. */
	*state = data_race(ftl->space->state);
	state->gated = mtftl_space_is_gated(ftl);
	state->paced = mtftl_space_is_paced(ftl);
}

bool mtftl_space_has_no_victim(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->space->state.no_victim);
}

struct mtftl_sources mtftl_space_sources(const struct mtftl *ftl, enum mtftl_right right,
					 bool buffers_empty)
{
	struct mtftl_admit_state state;

	mtftl_space_look(ftl, &state);
	state.buffers_empty = buffers_empty;
	return mtftl_admit_sources(&ftl->config.limits, &state, right);
}

bool mtftl_space_may_open(const struct mtftl *ftl, enum mtftl_right right, bool buffers_empty)
{
	struct mtftl_admit_state state;

	mtftl_space_look(ftl, &state);
	state.buffers_empty = buffers_empty;
	return mtftl_admit_may_open(&ftl->config.limits, &state, right);
}

static void update_gate(struct mtftl *ftl)
{
	struct mtftl_space *space = ftl->space;
	struct mtftl_admit_state state = space->state;

	mtftl_admit_gate(&ftl->config.limits, &state);
	mtftl_assert(state.buffer_promise < ftl->config.limits.buffer_zones, "%u zones",
		     state.buffer_promise);
	WRITE_ONCE(space->state.buffer_promise, state.buffer_promise);
	/* All lanes read its line. */
	if (state.gated != space->gated)
		WRITE_ONCE(space->gated, state.gated);
}

/* All of them are empty. */
void mtftl_space_begin_zones(struct mtftl *ftl, u32 nr)
{
	ftl->space->state = (struct mtftl_admit_state){
		.zones[MTFTL_ZONE_EMPTY] = nr,
		.buffer_promise = ftl->config.limits.buffer_zones - 1,
	};
}

void mtftl_space_move_zone(struct mtftl *ftl, enum mtftl_zone_state from, enum mtftl_zone_state to)
{
	u32 *zones = ftl->space->state.zones;

	mtftl_assert(zones[from], "%u to %u", from, to);
	WRITE_ONCE(zones[from], zones[from] - 1);
	WRITE_ONCE(zones[to], zones[to] + 1);
	/* With no victim the gate is open, so each zone taken counts on a new look by GC. */
	if (from == MTFTL_ZONE_EMPTY)
		WRITE_ONCE(ftl->space->state.no_victim, false);
	if (from == MTFTL_ZONE_EMPTY || to == MTFTL_ZONE_EMPTY)
		update_gate(ftl);
}

void mtftl_space_set_room(struct mtftl *ftl, u32 users, u32 gc, bool gc_has_zone)
{
	mtftl_assert(users <= ftl->config.budget.user_streams * ftl->config.capacity, "%u blocks",
		     users);
	WRITE_ONCE(ftl->space->state.users_room, users);
	WRITE_ONCE(ftl->space->state.gc_room, gc);
	WRITE_ONCE(ftl->space->state.gc_has_zone, gc_has_zone);
	update_gate(ftl);
}

void mtftl_space_set_gc_owes(struct mtftl *ftl, u32 blocks)
{
	WRITE_ONCE(ftl->space->state.gc_owes, blocks);
	update_gate(ftl);
}

void mtftl_space_set_no_victim(struct mtftl *ftl, bool none)
{
	WRITE_ONCE(ftl->space->state.no_victim, none);
	update_gate(ftl);
}

/* Levels */

void mtftl_space_set_slowed(struct mtftl *ftl, bool slowed)
{
	if (slowed == mtftl_space_is_slowed(ftl))
		return;
	if (slowed)
		WRITE_ONCE(ftl->space->slowed_since, ktime_get());
	WRITE_ONCE(ftl->space->slowed, slowed);
	if (!slowed)
		mtftl_event_tell(&ftl->space->appeared, ftl);
}

bool mtftl_space_is_slowed_since(const struct mtftl *ftl, ktime_t then)
{
	return mtftl_space_is_slowed(ftl) && ktime_after(then, READ_ONCE(ftl->space->slowed_since));
}

bool mtftl_space_pace(struct mtftl *ftl, bool gc_works)
{
	struct mtftl_admit_state state;

	mtftl_space_look(ftl, &state);
	state.gc_works = gc_works;
	mtftl_admit_pace(&ftl->config.limits, &state);
	if (state.paced == mtftl_space_is_paced(ftl))
		return false;
	WRITE_ONCE(ftl->space->paced, state.paced);
	return true;
}

void mtftl_space_set_unpaced(struct mtftl *ftl, bool unpaced)
{
	WRITE_ONCE(ftl->space->unpaced, unpaced);
}

void mtftl_space_set_credit(struct mtftl *ftl, s64 credit)
{
	atomic64_set(&ftl->space->credit, credit);
}

s64 mtftl_space_credit(const struct mtftl *ftl)
{
	return atomic64_read(&ftl->space->credit);
}

bool mtftl_space_is_spent(const struct mtftl *ftl)
{
	return mtftl_admit_is_spent(mtftl_space_is_paced(ftl), READ_ONCE(ftl->space->unpaced),
				    mtftl_space_credit(ftl) <= 0);
}
