// SPDX-License-Identifier: GPL-2.0
/*
 * All that differs between kernels, used as the target uses it: it must compile on every shape.
 */
#include <linux/hrtimer.h>

#include "device/bio.h"
#include "device/compat.h"
#include "device/limits.h"
#include "device/meta.h"

struct owner { struct timer_list timer; };

struct owner *use_memory(void)
{
	return kzalloc_obj(struct owner, GFP_NOIO);
}

struct owner *owner_of(struct owner *owner, struct timer_list *timer)
{
	return timer_container_of(owner, timer, timer);
}

enum hrtimer_restart tick(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

void use_timers(struct timer_list *timer, struct hrtimer *hrtimer)
{
	timer_delete_sync(timer);
	hrtimer_setup(hrtimer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}

int use_limits(struct block_device *bdev, struct queue_limits *limits, struct dm_table *table)
{
	mtftl_limits_not_zoned(limits);
	mtftl_limits_aligned(limits);
	mtftl_limits_discard(limits, 8);
	mtftl_limits_write_zeroes(limits, 8);
#ifdef MTFTL_HAS_ZONED_MODEL
	if (bdev_zoned_model(bdev) != BLK_ZONED_HM)
		return 0;
#endif
	if (!(dm_table_get_mode(table) & BLK_OPEN_WRITE))
		return 0;
	return blkdev_zone_mgmt(bdev, REQ_OP_ZONE_RESET, 0, 8);
}

int use_readers(struct srcu_struct *readers)
{
	int reader = srcu_down_read(readers);

	srcu_up_read(readers, reader);
	return reader;
}

unsigned int use_hint(const struct bio *bio)
{
	return mtftl_bio_hint(bio);
}

unsigned int use_meta(struct block_device *bdev, struct bio *bio, struct mtftl_meta *meta)
{
	struct mtftl_config config = { .meta_size = mtftl_meta_size(bdev) };

	if (!mtftl_meta_is_there(bdev))
		return 0;
	mtftl_meta_attach(&config, bio, meta, NULL);
	mtftl_meta_detach(bio);
	return config.meta_size;
}
