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

/* Sleeps. */
static inline void mtftl_inflight_wait(struct mtftl_inflight *inflight)
{
	mtftl_inflight_put(inflight);
	wait_for_completion_io(&inflight->done);
}

#endif
