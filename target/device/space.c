// SPDX-License-Identifier: GPL-2.0
/*
 * Space as those see it who want some: see space.h.
 */
#include "device/space.h"

#include <linux/slab.h>

#include "device/device.h"
#include "device/pause.h"

int mtftl_space_alloc(struct mtftl *ftl)
{
	struct mtftl_space *space = kzalloc(sizeof(*space), GFP_KERNEL);

	if (!space)
		return -ENOMEM;
	init_waitqueue_head(&space->wait);
	init_waitqueue_head(&space->gc_wait);
	ftl->space = space;
	mtftl_event_on(&ftl->device->turned_read_only, mtftl_space_appeared);
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
	/* Pairs with who lists what waits: he sees the new generation, or is seen. */
	smp_mb__after_atomic();
	mtftl_event_tell(&ftl->space->appeared, ftl);
	mtftl_space_wake(ftl);
}

void mtftl_space_send_begin(struct mtftl *ftl)
{
	while (!mtftl_send_begin(ftl))
		wait_event_idle(ftl->space->wait, !mtftl_is_paused(ftl));
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

void mtftl_space_set_gate(struct mtftl *ftl, bool gated)
{
	WRITE_ONCE(ftl->space->gated, gated);
}

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

void mtftl_space_set_paced(struct mtftl *ftl, bool paced)
{
	WRITE_ONCE(ftl->space->paced, paced);
}

void mtftl_space_set_unpaced(struct mtftl *ftl, bool unpaced)
{
	WRITE_ONCE(ftl->space->unpaced, unpaced);
}

void mtftl_space_set_credit(struct mtftl *ftl, s64 credit)
{
	atomic64_set(&ftl->space->credit, credit);
}
