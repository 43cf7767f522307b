/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only place that tells kernels apart, with meta.h: by what they have (probe.c), not by their
 * versions.
 */
#ifndef MTFTL_COMPAT_H
#define MTFTL_COMPAT_H

#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/hrtimer.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/srcu.h>
#include <linux/timer.h>

#include "probed.h"

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
static inline int mtftl_compat_zone_mgmt(struct block_device *bdev, enum req_op op,
					 sector_t sector, sector_t nr_sectors)
{
	unsigned int flags = memalloc_noio_save();
	int r;

#ifdef MTFTL_HAS_ZONE_MGMT_GFP
	r = blkdev_zone_mgmt(bdev, op, sector, nr_sectors, GFP_NOIO);
#else
	r = blkdev_zone_mgmt(bdev, op, sector, nr_sectors);
#endif
	memalloc_noio_restore(flags);
	return r;
}

/*
 * "zoned" is an enum before 6.8, a bool before 6.11, and a feature bit since then. Since 6.9 limits
 * that only zoned devices may have are queue limits, and are checked.
 */
static inline void mtftl_compat_not_zoned(struct queue_limits *limits)
{
#ifdef MTFTL_HAS_LIMITS_ZONED
	limits->zoned = 0;
#else
	limits->features &= ~BLK_FEAT_ZONED;
#endif
#ifndef MTFTL_HAS_DISK_OPEN_ZONES
	limits->max_zone_append_sectors = 0;
	limits->max_open_zones = 0;
	limits->max_active_zones = 0;
#endif
}

/* Since 6.9 the block layer derives the second limit from the first. */
static inline void mtftl_compat_max_discard(struct queue_limits *limits, unsigned int sectors)
{
	limits->max_hw_discard_sectors = sectors;
	limits->max_discard_sectors = sectors;
}

/* Since 6.5 modes are flags of the block layer. */
#ifndef BLK_OPEN_WRITE
#define BLK_OPEN_WRITE FMODE_WRITE
#endif

static inline bool mtftl_compat_may_write(struct dm_table *table)
{
	return dm_table_get_mode(table) & BLK_OPEN_WRITE;
}

/* A real-time kernel's spinlocks sleep, and lend their priority instead. */
static inline void mtftl_compat_preempt_disable(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
}

static inline void mtftl_compat_preempt_enable(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
}

/* Zeroes take no space: since 6.17 that is said apart, and must be as much as is taken at all. */
static inline void mtftl_compat_max_write_zeroes(struct queue_limits *limits, unsigned int sectors)
{
	limits->max_write_zeroes_sectors = sectors;
#ifdef MTFTL_HAS_WZEROES_UNMAP
	limits->max_hw_wzeroes_unmap_sectors = sectors;
#endif
}

/* Leaving is up to an interrupt. Since 6.3 there are functions for that. */
#ifndef MTFTL_HAS_SRCU_DOWN_READ
#define srcu_down_read __srcu_read_lock
#define srcu_up_read __srcu_read_unlock
#endif

static inline int mtftl_compat_reader_enter(struct srcu_struct *readers)
{
	int reader = srcu_down_read(readers);

	__release(readers);
	return reader;
}

static inline void mtftl_compat_reader_leave(struct srcu_struct *readers, int reader)
{
	__acquire(readers);
	srcu_up_read(readers, reader);
}

/* Before 6.8 there were host-aware devices besides. */
static inline bool mtftl_compat_host_managed(struct block_device *bdev)
{
#ifdef MTFTL_HAS_ZONED_MODEL
	return bdev_zoned_model(bdev) == BLK_ZONED_HM;
#else
	return bdev_is_zoned(bdev);
#endif
}

#endif
