/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only place that knows kernel versions, with meta.h: 6.1, 6.12 and 7.3 are supported.
 */
#ifndef MTFTL_COMPAT_H
#define MTFTL_COMPAT_H

#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/sched/mm.h>
#include <linux/srcu.h>
#include <linux/timer.h>
#include <linux/version.h>

/* Since 6.16 it has this name. */
#ifndef timer_container_of
#define timer_container_of from_timer
#endif

/* Since 6.13 it takes the function, too. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define hrtimer_setup(timer, tick, clock, mode) \
	(hrtimer_init(timer, clock, mode), (void)((timer)->function = (tick)))
#endif

/* Since 6.9 the caller's memalloc scope says how to allocate. */
static inline int mtftl_compat_zone_mgmt(struct block_device *bdev, enum req_op op,
					 sector_t sector, sector_t nr_sectors)
{
	unsigned int flags = memalloc_noio_save();
	int r;

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
	r = blkdev_zone_mgmt(bdev, op, sector, nr_sectors, GFP_NOIO);
#else
	r = blkdev_zone_mgmt(bdev, op, sector, nr_sectors);
#endif
	memalloc_noio_restore(flags);
	return r;
}

/* Since 6.11 "zoned" is a feature bit, before it was an enum. */
static inline void mtftl_compat_not_zoned(struct queue_limits *limits)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	limits->zoned = BLK_ZONED_NONE;
#else
	limits->features &= ~BLK_FEAT_ZONED;
	limits->max_zone_append_sectors = 0;
	limits->max_open_zones = 0;
	limits->max_active_zones = 0;
#endif
}

static inline void mtftl_compat_max_discard(struct queue_limits *limits, unsigned int sectors)
{
	limits->max_hw_discard_sectors = sectors;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
	limits->max_discard_sectors = sectors;
#endif
}

/* Since 6.5 modes are flags of the block layer. */
static inline bool mtftl_compat_may_write(struct dm_table *table)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return dm_table_get_mode(table) & FMODE_WRITE;
#else
	return dm_table_get_mode(table) & BLK_OPEN_WRITE;
#endif
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
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
	limits->max_hw_wzeroes_unmap_sectors = sectors;
#endif
}

/* Since 6.3 these are srcu_down_read() and srcu_up_read(): leaving is up to an interrupt. */
static inline int mtftl_compat_reader_enter(struct srcu_struct *readers)
{
	int reader = __srcu_read_lock(readers);

	__release(readers);
	return reader;
}

static inline void mtftl_compat_reader_leave(struct srcu_struct *readers, int reader)
{
	__acquire(readers);
	__srcu_read_unlock(readers, reader);
}

/* Older kernels know host-aware devices besides. */
static inline bool mtftl_compat_host_managed(struct block_device *bdev)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
	return bdev_zoned_model(bdev) == BLK_ZONED_HM;
#else
	return bdev_is_zoned(bdev);
#endif
}

#endif
