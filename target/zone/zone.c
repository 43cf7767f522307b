// SPDX-License-Identifier: GPL-2.0
/*
 * Zones: see zone.h.
 */
#include "zone/zone.h"

#include <linux/slab.h>

#include "device/space.h"
#include "device/trace.h"
#include "map/map.h"

void mtftl_zone_set_state(struct mtftl_zone *zone, enum mtftl_zone_state state)
{
	struct mtftl_zones *zones = zone->ftl->zones;

	lockdep_assert_held(&zones->lock);
	trace_mtftl_zone_state(zone->ftl->device->bdev->bd_dev, zone->index, zone->state, state,
			       zone->wp, mtftl_map_valid(zone->ftl, zone->index));
	list_move_tail(&zone->list, &zones->list[state]);
	mtftl_space_move_zone(zone->ftl, zone->state, state);
	zone->state = state;
}

/* Blocks that GC may still write for the victims that it has taken. */
void mtftl_zones_set_gc_owes(struct mtftl *ftl, u32 blocks)
{
	spin_lock(&ftl->zones->lock);
	mtftl_space_set_gc_owes(ftl, blocks);
	spin_unlock(&ftl->zones->lock);
}

/* The state that a wait is judged by, with what is at the device. */
void mtftl_zones_look(struct mtftl *ftl, struct mtftl_admit_state *state)
{
	bool at_work = mtftl_device_is_at_work(ftl);
	struct mtftl_zone *zone;

	spin_lock(&ftl->zones->lock);
	mtftl_space_look(ftl, state);
	state->at_work = at_work;
	list_for_each_entry(zone, &ftl->zones->list[MTFTL_ZONE_OPEN], list)
		state->in_flight |= READ_ONCE(zone->in_flight);
	spin_unlock(&ftl->zones->lock);
}

/* The least worn of the empty ones. */
struct mtftl_zone *mtftl_zones_least_worn(struct mtftl *ftl)
{
	struct mtftl_zone *zone, *best = NULL;

	list_for_each_entry(zone, &ftl->zones->list[MTFTL_ZONE_EMPTY], list)
		if (!best || zone->erase_count < best->erase_count)
			best = zone;
	return best;
}

/*
 * No full zone is worth collecting: what could be gained lies in the open ones, so users go
 * on in those until they are full.
 */
void mtftl_zones_set_no_victim(struct mtftl *ftl, bool none)
{
	if (none == mtftl_space_has_no_victim(ftl))
		return;
	spin_lock(&ftl->zones->lock);
	mtftl_space_set_no_victim(ftl, none);
	spin_unlock(&ftl->zones->lock);
	mtftl_space_appeared(ftl);
}

/*
 * A write failed because the device had finished the zone. Devices may do so with zones that are
 * open for long, or after an internal error. The zone is as good as before. Asked once a life,
 * before we finish the zone ourselves. If the zone holds no unit of this life, the write failed for
 * another reason: a device that ends each zone so would keep us busy for ever.
 */
bool mtftl_zone_was_finished(struct mtftl_zone *zone)
{
	if (!zone->judged)
		zone->finished = zone->first_seq &&
				 mtftl_zone_condition(zone->ftl, zone->index) ==
				 BLK_ZONE_COND_FULL;
	zone->judged = true;
	return zone->finished;
}

/*
 * It cannot be filled, but must not stay active: the device counts it. Where that is
 * refused the zone is read-only or offline: not active either, and of no more use.
 */
void mtftl_zone_finish_broken(struct mtftl_zone *zone)
{
	struct mtftl *ftl = zone->ftl;

	zone->broken = true;
	if (mtftl_zone_was_finished(zone))
		return;
	zone->failed_lives++;
	if (mtftl_zone_mgmt(ftl, zone->index, REQ_OP_ZONE_FINISH))
		zone->failed_lives = MTFTL_ZONE_LIVES;
}

/* How long it takes while users are slowed: else nobody is in a hurry, or all stood still meanwhile. */
static void note_back(struct mtftl_zone *zone)
{
	struct mtftl_zones *zones = zone->ftl->zones;
	u32 took_us, mean;

	lockdep_assert_held(&zones->lock);
	if (!mtftl_space_is_slowed_since(zone->ftl, zone->taken))
		return;
	took_us = ktime_us_delta(ktime_get(), zone->taken);
	mean = zones->back_us ?: took_us;
	WRITE_ONCE(zones->back_us, mean - mean / 8 + took_us / 8);
}

/*
 * It was reset: see reset.c. A refusal may pass, as a failed write may: GC comes back to the zone.
 * One that is refused again, or must not be written any more, retires.
 */
void mtftl_zone_reset_done(struct mtftl_zone *zone, bool ok)
{
	struct mtftl *ftl = zone->ftl;

	if (ok)
		zone->erase_count++;
	if (!ok && !mtftl_zone_is_worn_out(zone) && ++zone->failed_lives < MTFTL_ZONE_LIVES) {
		mtftl_warn(ftl, "zone %u: reset failed, trying again in 10 s", zone->index);
		spin_lock(&ftl->zones->lock);
		mtftl_zone_set_state(zone, MTFTL_ZONE_FULL);
		spin_unlock(&ftl->zones->lock);
		mtftl_space_appeared(ftl);
		return;
	}
	spin_lock(&ftl->zones->lock);
	zone->wp = 0;
	zone->quiet_wp = 0;
	zone->first_seq = 0;
	zone->ranges_seq = 0;
	zone->broken = false;
	zone->judged = false;
	if (ok)
		note_back(zone);
	mtftl_zone_set_state(zone, ok ? MTFTL_ZONE_EMPTY : MTFTL_ZONE_BAD);
	spin_unlock(&ftl->zones->lock);
	if (!ok) {
		mtftl_warn(ftl, "zone %u retired", zone->index);
		mtftl_event_tell(&ftl->device->news, ftl);
	}
	mtftl_space_appeared(ftl);
}

/* A zone that was set aside has failed: an empty one for it. U32_MAX: there is none. */
u32 mtftl_zone_replace(struct mtftl *ftl, u32 index)
{
	struct mtftl_zone *bad = mtftl_zone(ftl, index), *zone = NULL;

	/* It retires at its first failure: zones set aside are found by where they lie. */
	mtftl_zone_finish_broken(bad);
	spin_lock(&ftl->zones->lock);
	if (mtftl_space_may_open(ftl, MTFTL_RIGHT_META, false))
		zone = mtftl_zones_least_worn(ftl);
	if (zone) {
		mtftl_zone_set_state(bad, MTFTL_ZONE_BAD);
		mtftl_zone_set_state(zone, MTFTL_ZONE_CKPT);
	}
	spin_unlock(&ftl->zones->lock);
	if (!zone)
		return U32_MAX;
	mtftl_warn(ftl, "zone %u retired", index);
	mtftl_event_tell(&ftl->device->news, ftl);
	return zone->index;
}

int mtftl_zones_alloc(struct mtftl *ftl)
{
	struct mtftl_zones *zones;
	u32 i;

	zones = kvzalloc(struct_size(zones, all, ftl->config.nr_zones), GFP_KERNEL);
	if (!zones)
		return -ENOMEM;
	ftl->zones = zones;
	spin_lock_init(&zones->lock);
	for (i = 0; i < MTFTL_NR_ZONE_STATES; i++)
		INIT_LIST_HEAD(&zones->list[i]);
	for (i = 0; i < ftl->config.nr_zones; i++) {
		struct mtftl_zone *zone = &zones->all[i];

		spin_lock_init(&zone->lock);
		zone->ftl = ftl;
		zone->index = i;
		zone->limit = ftl->config.capacity;
		list_add_tail(&zone->list, &zones->list[MTFTL_ZONE_EMPTY]);
	}
	mtftl_space_begin_zones(ftl, ftl->config.nr_zones);
	zones->wq = alloc_ordered_workqueue("mtftl-%s", WQ_MEM_RECLAIM, ftl->device->disk);
	return zones->wq ? 0 : -ENOMEM;
}

void mtftl_zones_free(struct mtftl *ftl)
{
	if (!ftl->zones)
		return;
	if (ftl->zones->wq)
		destroy_workqueue(ftl->zones->wq);
	kvfree(ftl->zones);
	ftl->zones = NULL;
}
