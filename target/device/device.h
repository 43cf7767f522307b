/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The drive below: its names, readers, whether it may be written to, pauses, counters.
 *
 * Counters are per CPU and only ever added to. Unless it says that it sleeps, any context may call
 * it; device-mapper's constructor opens the drive, mounts prepare it.
 */
#ifndef MTFTL_DEVICE_H
#define MTFTL_DEVICE_H

#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/srcu.h>

#include "device/compat.h"
#include "device/event.h"
#include "device/ftl.h"

#define MTFTL_LAST_HOPE		(5 * HZ)	/* nothing moves for so long: the end */
#define MTFTL_MAX_FAILURES	4	/* zones in a row that fail a write: the device is gone */

#define mtftl_err(ftl, fmt, ...)	DMERR("%s: " fmt, mtftl_device_name(ftl), ##__VA_ARGS__)
#define mtftl_warn(ftl, fmt, ...)	DMWARN("%s: " fmt, mtftl_device_name(ftl), ##__VA_ARGS__)
#define mtftl_warn_limit(ftl, fmt, ...) \
	DMWARN_LIMIT("%s: " fmt, mtftl_device_name(ftl), ##__VA_ARGS__)
#define mtftl_info(ftl, fmt, ...)	DMINFO("%s: " fmt, mtftl_device_name(ftl), ##__VA_ARGS__)

struct mtftl_cpu_stats {
	u64 user_writes, user_overwrites, user_reads, buffer_reads, user_trims;	/* blocks */
	u64 data_blocks, gc_blocks, meta_blocks;			/* to flash */
	u64 sending, landed;		/* what is sent, and has ended: see pause.h */
	u64 taken;			/* writes that the device has, on flash or in its cache */
	u64 asked, answered;		/* commands that are neither users' nor units */
	u64 units, waits, flushes, read_errors, write_errors, lost_blocks, victims, checkpoints;
};

struct mtftl_device {
	struct dm_target *ti;
	struct dm_dev *dm;
	const char *disk;
	struct block_device *bdev;
	struct mtftl_cpu_stats __percpu *stats;
	struct srcu_struct readers;
	bool readers_counted;
	int read_only;			/* nothing can be written any more; exchanged: an int */
	bool paused, silent;		/* see pause.h */
	wait_queue_head_t unsilenced;
	bool giving_back;		/* see mtftl_device_gives_back() */
	struct mtftl_event turned_read_only, news;	/* more is broken or lost than before */
};

static inline struct block_device *mtftl_bdev(const struct mtftl *ftl)
{
	return ftl->device->bdev;
}

static inline dev_t mtftl_dev(const struct mtftl *ftl)
{
	return ftl->device->bdev->bd_dev;
}

/* The drive, as major:minor; the device that users see, by its kernel name: dm-0. */
const char *mtftl_device_name(const struct mtftl *ftl);
const char *mtftl_disk_name(const struct mtftl *ftl);
int mtftl_device_iterate(struct mtftl *ftl, iterate_devices_callout_fn fn, void *data);
int mtftl_device_open(struct mtftl *ftl, struct dm_target *ti, const char *path);
void mtftl_device_close(struct mtftl *ftl, struct dm_target *ti);
int mtftl_device_find_zones(struct mtftl *ftl);
int mtftl_device_prepare(struct mtftl *ftl);
void mtftl_device_unprepare(struct mtftl *ftl);

/* From before the look at the map until the device has answered, in an interrupt: see read.c. */
static inline int mtftl_reader_enter(struct mtftl *ftl)
{
	int reader = srcu_down_read(&ftl->device->readers);

	__release(&ftl->device->readers);
	return reader;
}

static inline void mtftl_reader_leave(struct mtftl *ftl, int reader)
{
	__acquire(&ftl->device->readers);
	srcu_up_read(&ftl->device->readers, reader);
}

/* All that have entered before leave. Sleeps. */
void mtftl_wait_readers(struct mtftl *ftl);

#define mtftl_count(ftl, field, n)	this_cpu_add((*(ftl)->device->stats).field, n)
void mtftl_stats_sum(struct mtftl *ftl, struct mtftl_cpu_stats *sum);
u64 mtftl_taken(struct mtftl *ftl);
bool mtftl_device_is_at_work(const struct mtftl *ftl);

static inline bool mtftl_is_read_only(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->device->read_only);
}

void mtftl_set_read_only(struct mtftl *ftl, const char *why);
void mtftl_on_read_only(struct mtftl *ftl, void (*heard)(struct mtftl *ftl));
/* More is broken or lost than before. */
void mtftl_tell_news(struct mtftl *ftl);
void mtftl_on_news(struct mtftl *ftl, void (*heard)(struct mtftl *ftl));
void mtftl_device_begin(struct mtftl *ftl, bool read_only);
void mtftl_device_give_up(struct mtftl *ftl);
void mtftl_device_give_back(struct mtftl *ftl, bool give_back);
/* Bios that would wait go back to device-mapper. */
bool mtftl_device_gives_back(const struct mtftl *ftl);

static inline bool mtftl_is_paused(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->device->paused);
}

/* Callers take turns: see target.h. */
void mtftl_pause_set(struct mtftl *ftl, bool pause);
bool mtftl_pause_is_reached(const struct mtftl *ftl);
/* Commands of those that began before the pause wait until it ends, too. */
void mtftl_pause_silence(struct mtftl *ftl);
/* Call it before each command that may change something. Sleeps. */
void mtftl_pause_heed(struct mtftl *ftl);

#endif
