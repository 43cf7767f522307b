/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A count of bios or units in flight, and one more for the thread that waits for them. Any context
 * may take and drop; a wait sleeps.
 */
#ifndef MTFTL_INFLIGHT_H
#define MTFTL_INFLIGHT_H

#include <linux/atomic.h>
#include <linux/completion.h>

#include "device/ftl.h"

#define MTFTL_SHORT_SLEEP	(5 * HZ)

struct mtftl_inflight {
	atomic_t count;
	struct completion done;
};

static inline void mtftl_inflight_begin(struct mtftl_inflight *inflight)
{
	mtftl_assert(!atomic_read(&inflight->count));
	atomic_set(&inflight->count, 1);
	reinit_completion(&inflight->done);
}

static inline void mtftl_inflight_get(struct mtftl_inflight *inflight)
{
	mtftl_assert(atomic_read(&inflight->count) > 0);
	atomic_inc(&inflight->count);
}

static inline void mtftl_inflight_put(struct mtftl_inflight *inflight)
{
	mtftl_assert(atomic_read(&inflight->count) > 0);
	if (atomic_dec_and_test(&inflight->count))
		complete(&inflight->done);
}

/*
 * Sleeps until the drive has answered. That may take minutes, and the kernel's detector of hung
 * tasks tells of a long sleep. So the wait consists of short ones, as the block layer's own does.
 */
static inline void mtftl_wait_for_io(struct completion *done)
{
	while (!wait_for_completion_io_timeout(done, MTFTL_SHORT_SLEEP))
		;
}

/* Likewise. */
static inline void mtftl_inflight_wait(struct mtftl_inflight *inflight)
{
	mtftl_inflight_put(inflight);
	mtftl_wait_for_io(&inflight->done);
}

#endif
