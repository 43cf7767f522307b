// SPDX-License-Identifier: GPL-2.0
/*
 * What the rest of the module does for recovery, checkpoints and the log, on the host: for tests
 * that bring a drive of their own. One thread.
 */
#include "device/device.h"
#include "device/seq.h"
#include "device/thread.h"
#include "durable/checkpoint.h"
#include "map/map.h"
#include "module.h"
#include "zone/life.h"
#include "zone/stream.h"
#include "zone/super.h"
#include "zone/zones.h"

void mtftl_set_read_only(struct mtftl *ftl, const char *why)
{
	(void)why;
	ftl->device->read_only = true;
}

unsigned int module_news;

void mtftl_tell_news(struct mtftl *ftl)
{
	(void)ftl;
	module_news++;
}

const char *mtftl_device_name(const struct mtftl *ftl)
{
	return ftl->device->dm->name;
}

unsigned int mtftl_thread_nr_cpus(void)
{
	return 2;
}

const char *mtftl_disk_name(const struct mtftl *ftl)
{
	return ftl->device->disk;
}

void mtftl_seq_set_last(struct mtftl *ftl, u64 last, u64 durable)
{
	atomic64_set(&ftl->seq->last, last);
	ftl->seq->durable = durable;
}

void mtftl_seq_set_ckpt(struct mtftl *ftl, u64 number)
{
	ftl->seq->ckpt = number;
}

u64 mtftl_seq_before_unordered(struct mtftl *ftl, u64 drawn)
{
	(void)ftl;
	return drawn;
}

unsigned int module_device_flushes, module_flush_fails;

int mtftl_flush_device(struct mtftl *ftl, u64 drawn)
{
	(void)ftl;
	(void)drawn;
	return ++module_device_flushes == module_flush_fails ? -EIO : 0;
}

void mtftl_zone_move(struct mtftl_zone *zone, enum mtftl_zone_state state)
{
	u32 *zones = zone->ftl->space->state.zones;

	zones[zone->state]--;
	zones[state]++;
	zone->state = state;
}

void mtftl_zone_finish_broken(struct mtftl_zone *zone)
{
	mtftl_assert(zone->broken);
}

void mtftl_zone_retire(struct mtftl_zone *zone)
{
	mtftl_zone_move(zone, MTFTL_ZONE_BAD);
}

u32 module_spare;

struct mtftl_zone *mtftl_zones_set_aside(struct mtftl *ftl)
{
	struct mtftl_zone *zone = NULL;

	if (module_spare && module_spare < ftl->config.nr_zones)
		zone = mtftl_zone(ftl, module_spare++);
	if (zone)
		mtftl_zone_move(zone, MTFTL_ZONE_CKPT);
	return zone;
}

void (*module_opened)(struct mtftl *ftl);

void mtftl_streams_on_open(struct mtftl *ftl, void (*heard)(struct mtftl *ftl))
{
	(void)ftl;
	module_opened = heard;
}

void (*module_flushes)(struct mtftl *ftl);
int module_cannot_flush;

int mtftl_flush_sync(struct mtftl *ftl)
{
	if (module_flushes)
		module_flushes(ftl);
	return module_cannot_flush;
}

u32 mtftl_map_durable(struct mtftl *ftl, u32 chunk, __le32 *out)
{
	u32 lba = chunk << MTFTL_CHUNK_SHIFT, i, nr;

	nr = min_t(u64, 1u << MTFTL_CHUNK_SHIFT, ftl->config.logical_blocks - lba);
	clear_bit(chunk, ftl->map->changed);
	for (i = 0; i < nr; i++)
		out[i] = cpu_to_le32(mtftl_map_look(ftl, lba + i));
	return nr;
}
