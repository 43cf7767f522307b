/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The drive below: geometry in pages, synchronous I/O, readers, whether it may be written to, counters.
 *
 * read_only and giving_back are set here only. Counters are per CPU and only ever added to.
 * mtftl_set_read_only() may be called in any context; what does I/O or waits may sleep.
 */
#ifndef MTFTL_DEVICE_H
#define MTFTL_DEVICE_H

#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/srcu.h>

#include "device/compat.h"
#include "device/event.h"
#include "device/ftl.h"

#define MTFTL_BLOCK_SECTORS	(MTFTL_BLOCK_SIZE >> SECTOR_SHIFT)
#define MTFTL_LAST_HOPE		(5 * HZ)	/* nothing moves for so long: the end */
#define MTFTL_MAX_FAILURES	4	/* zones in a row that fail a write: the device is gone */

#define mtftl_err(ftl, fmt, ...)	DMERR("%s: " fmt, (ftl)->device->dm->name, ##__VA_ARGS__)
#define mtftl_warn(ftl, fmt, ...)	DMWARN("%s: " fmt, (ftl)->device->dm->name, ##__VA_ARGS__)
#define mtftl_info(ftl, fmt, ...)	DMINFO("%s: " fmt, (ftl)->device->dm->name, ##__VA_ARGS__)

struct mtftl_cpu_stats {
	u64 user_writes, user_overwrites, user_reads, buffer_reads, user_trims;	/* blocks */
	u64 data_blocks, gc_blocks, meta_blocks;			/* to flash */
	u64 sending, landed;		/* who writes, and is done: see pause.h */
	u64 taken;			/* writes that the device says it has */
	u64 asked, answered;		/* commands that are neither users' nor units */
	u64 units, waits, flushes, read_errors, write_errors, lost_blocks, victims, checkpoints;
};

struct mtftl_device {
	struct dm_target *ti;
	struct dm_dev *dm;
	const char *disk;		/* the device that users see, by its kernel name: dm-0 */
	struct block_device *bdev;
	struct mtftl_cpu_stats __percpu *stats;
	struct srcu_struct readers;	/* from the look at the map on: see read.c */
	bool readers_counted;
	int read_only;			/* nothing can be written any more; exchanged: an int */
	bool paused, silent;		/* see pause.h */
	wait_queue_head_t unsilenced;
	bool giving_back;		/* see mtftl_device_gives_back() */
	struct mtftl_event turned_read_only, news;	/* more is broken or lost than before */
};

/* Per bio, from device-mapper. */
struct mtftl_bio {
	u64 since;		/* writes that wait: ns */
	int reader;		/* reads of the device: what to leave by */
	bool reads;
	bool through;		/* a FUA write that no flush is needed for: see map.h */
	u32 lba, nr;		/* its blocks that may not be on flash yet */
	u32 slot;		/* that the first one waits for */
	unsigned long dropped;	/* as mtftl_map's, when it began */
};

static inline struct mtftl_bio *mtftl_bio(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct mtftl_bio));
}

int mtftl_device_open(struct mtftl *ftl, struct dm_target *ti, const char *path);
void mtftl_device_close(struct mtftl *ftl, struct dm_target *ti);
int mtftl_device_prepare(struct mtftl *ftl);
void mtftl_device_unprepare(struct mtftl *ftl);
void mtftl_wait_readers(struct mtftl *ftl);

#define mtftl_count(ftl, field, n)	this_cpu_add((ftl)->device->stats->field, n)
void mtftl_stats_sum(struct mtftl *ftl, struct mtftl_cpu_stats *sum);
u64 mtftl_taken(struct mtftl *ftl);
/* All that has begun has ended, by the two counters at these offsets in struct mtftl_cpu_stats. */
bool mtftl_stats_are_even(const struct mtftl *ftl, size_t begun, size_t ended);
bool mtftl_device_is_at_work(const struct mtftl *ftl);

static inline bool mtftl_is_read_only(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->device->read_only);
}

void mtftl_set_read_only(struct mtftl *ftl, const char *why);
void mtftl_device_begin(struct mtftl *ftl, bool read_only);
void mtftl_device_give_up(struct mtftl *ftl);
void mtftl_device_give_back(struct mtftl *ftl, bool give_back);
/* Bios that would wait go back to device-mapper. */
bool mtftl_device_gives_back(const struct mtftl *ftl);
void mtftl_give_back(struct bio *bio);

static inline sector_t mtftl_page_sector(u32 page)
{
	return (sector_t)page * MTFTL_BLOCK_SECTORS;
}

/* BLK_STS_MEDIUM and BLK_STS_PROTECTION: what was there is lost. Any other error may pass. */
static inline bool mtftl_medium_says(int error)
{
	return error == -ENODATA || error == -EILSEQ;
}

/*
 * Call it before each command that may change something. A pause does not wait for ever for
 * senders that the drive keeps: what they send next waits for the pause's end. Sleeps.
 */
void mtftl_device_heed_pause(struct mtftl *ftl);
int mtftl_rw_sectors(struct mtftl *ftl, blk_opf_t opf, sector_t sector, void *data, u32 nr);
int mtftl_rw_sync(struct mtftl *ftl, blk_opf_t opf, u32 page, void *data, u32 nr_blocks);
int mtftl_read_oob(struct mtftl *ftl, u32 page, void *data, u32 nr_blocks, void *oob);
int mtftl_zone_mgmt(struct mtftl *ftl, u32 zone, enum req_op op);
u8 mtftl_zone_condition(struct mtftl *ftl, u32 zone);
bool mtftl_zone_is_offline(struct mtftl *ftl, u32 zone);
bool mtftl_device_answers(struct mtftl *ftl, void *block);
#endif
