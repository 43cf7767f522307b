/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Limits of the queue that users see: nothing of the zones below may be left. No locks; in
 * device-mapper's io_hints().
 */
#ifndef MTFTL_LIMITS_H
#define MTFTL_LIMITS_H

#include <linux/blkdev.h>

#include "device/compat.h"

static inline void mtftl_limits_not_zoned(struct queue_limits *limits)
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

static inline void mtftl_limits_discard(struct queue_limits *limits, unsigned int sectors)
{
	limits->max_hw_discard_sectors = sectors;
	limits->max_discard_sectors = sectors;
}

/* Zeroes take no space. That they unmap must be said of as many as are taken at all. */
static inline void mtftl_limits_write_zeroes(struct queue_limits *limits, unsigned int sectors)
{
	limits->max_write_zeroes_sectors = sectors;
#ifdef MTFTL_HAS_WZEROES_UNMAP
	limits->max_hw_wzeroes_unmap_sectors = sectors;
#endif
}

/* Where the drive's blocks lie, or ours in them, is no matter of users. */
static inline void mtftl_limits_aligned(struct queue_limits *limits)
{
	limits->alignment_offset = 0;
	limits->discard_alignment = 0;
#ifdef MTFTL_HAS_LIMITS_MISALIGNED
	limits->misaligned = 0;
	limits->discard_misaligned = 0;
#else
	limits->flags &= ~BLK_FLAG_MISALIGNED;
#endif
}

#endif
