// SPDX-License-Identifier: GPL-2.0
/*
 * The drive below: see device.h.
 */
#include "device/device.h"

#include <linux/slab.h>

#define NR_COUNTERS	(sizeof(struct mtftl_cpu_stats) / sizeof(u64))

int mtftl_device_open(struct mtftl *ftl, struct dm_target *ti, const char *path)
{
	struct mtftl_device *device = kzalloc_obj(*device, GFP_KERNEL);
	int r;

	if (device)
		device->stats = alloc_percpu(struct mtftl_cpu_stats);
	ftl->device = device;
	if (!device || !device->stats) {
		ti->error = "Out of memory";
		return -ENOMEM;
	}
	device->ti = ti;
	init_waitqueue_head(&device->unsilenced);
	device->disk = dm_disk(dm_table_get_md(ti->table))->disk_name;
	r = dm_get_device(ti, path, dm_table_get_mode(ti->table), &device->dm);
	if (r) {
		ti->error = "Cannot open the device";
		return r;
	}
	device->bdev = device->dm->bdev;
	return 0;
}

void mtftl_device_close(struct mtftl *ftl, struct dm_target *ti)
{
	struct mtftl_device *device = ftl->device;

	if (!device)
		return;
	free_percpu(device->stats);
	if (device->dm)
		dm_put_device(ti, device->dm);
	kfree(device);
	ftl->device = NULL;
}

struct zone_search {
	struct mtftl_run run;
	sector_t zone_sectors;
};

static int note_zone(struct blk_zone *zone, unsigned int index, void *data)
{
	struct zone_search *search = data;

	if (zone->type != BLK_ZONE_TYPE_SEQWRITE_REQ || zone->len != search->zone_sectors)
		mtftl_run_add(&search->run, 0, false);
	else if (zone->cond == BLK_ZONE_COND_OFFLINE)
		mtftl_run_add(&search->run, MTFTL_RUN_ANY, false);
	else
		mtftl_run_add(&search->run, zone->capacity / MTFTL_BLOCK_SECTORS,
			      zone->capacity % MTFTL_BLOCK_SECTORS);
	return 0;
}

/* Fills in where the format lies. -EINVAL: nowhere. */
int mtftl_device_find_zones(struct mtftl *ftl)
{
	struct zone_search search = { .zone_sectors = bdev_zone_sectors(mtftl_bdev(ftl)) };
	struct mtftl_config *config = &ftl->config;
	int r = blkdev_report_zones(mtftl_bdev(ftl), 0, BLK_ALL_ZONES, note_zone, &search);

	if (r < 0)
		return r == -EINVAL ? -EIO : r;
	if (!search.run.nr || search.run.capacity == MTFTL_RUN_ANY)
		return -EINVAL;
	config->zone_shift = ilog2(search.zone_sectors / MTFTL_BLOCK_SECTORS);
	config->first_sector = search.run.first * search.zone_sectors;
	config->zones_there = search.run.nr;
	config->capacity = search.run.capacity;
	config->capacity_unaligned = search.run.surplus;
	return 0;
}

/* For a mount. */
int mtftl_device_prepare(struct mtftl *ftl)
{
	int r = init_srcu_struct(&ftl->device->readers);

	ftl->device->readers_counted = !r;
	return r;
}

void mtftl_device_unprepare(struct mtftl *ftl)
{
	if (ftl->device->readers_counted)
		cleanup_srcu_struct(&ftl->device->readers);
	ftl->device->readers_counted = false;
	memset(&ftl->device->turned_read_only, 0, sizeof(ftl->device->turned_read_only));
}

/* All readers that looked the map up before this call have their answer. Sleeps. */
void mtftl_wait_readers(struct mtftl *ftl)
{
	/* Not the other kind: that takes several ticks, for a few microseconds of CPU. */
	synchronize_srcu_expedited(&ftl->device->readers);
}

const char *mtftl_device_name(const struct mtftl *ftl)
{
	return ftl->device->dm->name;
}

const char *mtftl_disk_name(const struct mtftl *ftl)
{
	return ftl->device->disk;
}

int mtftl_device_iterate(struct mtftl *ftl, iterate_devices_callout_fn fn, void *data)
{
	const struct mtftl_config *config = &ftl->config;
	struct mtftl_device *device = ftl->device;
	sector_t sectors = (sector_t)config->zones_there * MTFTL_BLOCK_SECTORS <<
			   config->zone_shift;

	/* Of whole zones: device-mapper refuses a smaller last one. */
	return fn(device->ti, device->dm, config->first_sector, sectors, data);
}

/* Counters */

void mtftl_stats_sum(struct mtftl *ftl, struct mtftl_cpu_stats *sum)
{
	u64 *out = (u64 *)sum;
	unsigned int cpu, i;

	static_assert(sizeof(struct mtftl_cpu_stats) == NR_COUNTERS * sizeof(u64));
	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu)
		for (i = 0; i < NR_COUNTERS; i++)
			out[i] += ((u64 *)per_cpu_ptr(ftl->device->stats, cpu))[i];
}

/* Of the counter at @offset in struct mtftl_cpu_stats. */
static u64 sum(const struct mtftl *ftl, size_t offset)
{
	unsigned int cpu;
	u64 all = 0;

	for_each_possible_cpu(cpu)
		all += READ_ONCE(*(u64 *)((void *)per_cpu_ptr(ftl->device->stats, cpu) + offset));
	return all;
}

/*
 * Writes that the device says it has, perhaps in its cache: those before a flush are what that
 * covers. What was written with FUA is on flash, and does not count.
 */
u64 mtftl_taken(struct mtftl *ftl)
{
	return sum(ftl, offsetof(struct mtftl_cpu_stats, taken));
}

/* All that has begun has ended, by the two counters at these offsets. */
static bool is_even(const struct mtftl *ftl, size_t begun, size_t ended)
{
	u64 all = sum(ftl, ended);

	/* Ends first: one that begins and ends meanwhile must not hide one that is under way. */
	smp_rmb();
	return sum(ftl, begun) == all;
}

/* All that began to send has landed, and because there is a pause, nothing begins. */
bool mtftl_pause_is_reached(const struct mtftl *ftl)
{
	return is_even(ftl, offsetof(struct mtftl_cpu_stats, sending),
		       offsetof(struct mtftl_cpu_stats, landed));
}

/* The device executes an erase, a flush, a read of GC or a command that something waits for. */
bool mtftl_device_is_at_work(const struct mtftl *ftl)
{
	return !is_even(ftl, offsetof(struct mtftl_cpu_stats, asked),
			offsetof(struct mtftl_cpu_stats, answered));
}

/* What it may be asked for */

/* Once and for all: acknowledged data stays readable, bios that wait get an error. */
void mtftl_set_read_only(struct mtftl *ftl, const char *why)
{
	if (xchg(&ftl->device->read_only, 1))
		return;
	mtftl_err(ftl, "read-only: %s", why);
	mtftl_event_tell(&ftl->device->turned_read_only, ftl);
	mtftl_tell_news(ftl);
}

void mtftl_on_read_only(struct mtftl *ftl, void (*heard)(struct mtftl *ftl))
{
	mtftl_event_on(&ftl->device->turned_read_only, heard);
}

void mtftl_tell_news(struct mtftl *ftl)
{
	mtftl_event_tell(&ftl->device->news, ftl);
}

void mtftl_on_news(struct mtftl *ftl, void (*heard)(struct mtftl *ftl))
{
	mtftl_event_on(&ftl->device->news, heard);
}

/* A mount begins. */
void mtftl_device_begin(struct mtftl *ftl, bool read_only)
{
	WRITE_ONCE(ftl->device->read_only, read_only);
}

/* A mount ends: units that failed do not look for another place any more. */
void mtftl_device_give_up(struct mtftl *ftl)
{
	WRITE_ONCE(ftl->device->read_only, true);
}

void mtftl_device_give_back(struct mtftl *ftl, bool give_back)
{
	WRITE_ONCE(ftl->device->giving_back, give_back);
}

/*
 * A signal ends a suspend before we hear of it. Device-mapper sends the bios again by then, and
 * would fail those that are given back once more.
 */
bool mtftl_device_gives_back(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->device->giving_back) && dm_noflush_suspending(ftl->device->ti);
}

void mtftl_pause_set(struct mtftl *ftl, bool pause)
{
	WRITE_ONCE(ftl->device->paused, pause);
	/* Pairs with mtftl_send_begin(). */
	smp_mb();
	if (pause)
		return;
	WRITE_ONCE(ftl->device->silent, false);
	wake_up_all(&ftl->device->unsilenced);
}

void mtftl_pause_silence(struct mtftl *ftl)
{
	WRITE_ONCE(ftl->device->silent, true);
}

void mtftl_pause_heed(struct mtftl *ftl)
{
	wait_event_idle(ftl->device->unsilenced, !READ_ONCE(ftl->device->silent));
}
