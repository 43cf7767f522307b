// SPDX-License-Identifier: GPL-2.0
/*
 * All that differs between kernels, used as the target uses it: it must compile on every shape.
 */
#include <linux/hrtimer.h>

#include "device/compat.h"
#include "device/meta.h"

struct owner { struct timer_list timer; };

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
	mtftl_compat_not_zoned(limits);
	mtftl_compat_max_discard(limits, 8);
	mtftl_compat_max_write_zeroes(limits, 8);
	if (!mtftl_compat_may_write(table) || !mtftl_compat_host_managed(bdev))
		return 0;
	return mtftl_compat_zone_mgmt(bdev, REQ_OP_ZONE_RESET, 0, 8);
}

int use_readers(struct srcu_struct *readers)
{
	int reader = mtftl_compat_reader_enter(readers);

	mtftl_compat_reader_leave(readers, reader);
	return reader;
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
