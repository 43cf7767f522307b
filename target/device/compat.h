/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes what older kernels lack. The module is written for the newest one; bio.h, limits.h, meta.h
 * and table.c tell kernels apart, too. All ask what a kernel has (probe.c), not for its version.
 *
 * Nothing of this is left in a series for the kernel itself: see `scripts/lab upstream`.
 */
#ifndef MTFTL_COMPAT_H
#define MTFTL_COMPAT_H

#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/hrtimer.h>
#include <linux/slab.h>
#include <linux/srcu.h>
#include <linux/timer.h>

#include "probed.h"

/* Since 7.0 memory is asked for by its type. */
#ifndef kzalloc_obj
#define kzalloc_obj(object, gfp) kzalloc(sizeof(object), gfp)
#endif

/* Since 6.16 it has this name. */
#ifndef timer_container_of
#define timer_container_of from_timer
#endif

/* Since 6.2, and in stable kernels before. */
#ifdef MTFTL_HAS_DEL_TIMER_SYNC
#define timer_delete_sync(timer) del_timer_sync(timer)
#endif

/* Since 6.13 it takes the function, too. */
#ifdef MTFTL_HAS_HRTIMER_INIT
static inline void mtftl_hrtimer_setup(struct hrtimer *timer,
				       enum hrtimer_restart (*function)(struct hrtimer *timer),
				       clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}

#define hrtimer_setup mtftl_hrtimer_setup
#endif

/* Since 6.9 the caller's memalloc scope says how to allocate. */
#ifdef MTFTL_HAS_ZONE_MGMT_GFP
#define blkdev_zone_mgmt(bdev, op, sector, nr) blkdev_zone_mgmt(bdev, op, sector, nr, GFP_NOIO)
#endif

/* Since 6.5 modes are flags of the block layer. */
#ifndef BLK_OPEN_WRITE
#define BLK_OPEN_WRITE FMODE_WRITE
#endif

/* Since 6.3 there are functions for a reader that another context ends. */
#ifndef MTFTL_HAS_SRCU_DOWN_READ
#define srcu_down_read __srcu_read_lock
#define srcu_up_read __srcu_read_unlock
#endif

#endif
