/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pace: how fast users may write while GC works: what leaves the buffers is paid for by what GC has
 * moved, and what enters them slows down the nearer the gate is, so that they never run into it. A
 * part of GC, which keeps it. Counting: any context, no lock.
 */
#ifndef MTFTL_PACE_H
#define MTFTL_PACE_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>

#include "device/ftl.h"

struct mtftl_pace {
	struct mtftl *ftl;
	atomic_t victims;	/* under way */
	atomic_t moving;	/* blocks found in them */
	atomic_t moved;		/* of these, by now */
	struct hrtimer timer;	/* runs while zones are short */
	ktime_t ticked;		/* timer */
};

void mtftl_pace_init(struct mtftl_pace *pace, struct mtftl *ftl);
/* The keeper calls these when zones may be short, and when it stops. */
void mtftl_pace_watch(struct mtftl_pace *pace);
void mtftl_pace_stop(struct mtftl_pace *pace);
/* A victim with so many blocks comes, or goes again. */
void mtftl_pace_begin(struct mtftl_pace *pace, u32 blocks);
void mtftl_pace_end(struct mtftl_pace *pace, u32 blocks, u32 moved);
/* So many have moved, or need not be moved any more. */
void mtftl_pace_moved(struct mtftl_pace *pace, u32 blocks);
/* Users are told what they may write now. */
void mtftl_pace_update(struct mtftl_pace *pace);

#endif
