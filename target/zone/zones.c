// SPDX-License-Identifier: GPL-2.0
/*
 * All zones: see zones.h.
 */
#include "zone/zones.h"

#include <linux/slab.h>

#include "device/space.h"
#include "device/trace.h"
#include "map/age.h"
#include "map/map.h"
#include "map/ring.h"

#define EMPTY_LOOKS	512u	/* zones, with the lock held */

static void set_state(struct mtftl_zone *zone, enum mtftl_zone_state state)
{
	struct mtftl_zones *zones = zone->ftl->zones;

	lockdep_assert_held(&zones->lock);
	mtftl_assert(state < MTFTL_NR_ZONE_STATES && zone->wp <= zone->ftl->config.capacity,
		     "zone %u: state %u, wp %u", zone->index, state, zone->wp);
	/* A zone that is reset holds nothing, and only open zones are written to. */
	mtftl_assert((state != MTFTL_ZONE_RESETTING && state != MTFTL_ZONE_EMPTY) ||
		     !mtftl_map_valid(zone->ftl, zone->index), "zone %u: %u blocks are valid",
		     zone->index, mtftl_map_valid(zone->ftl, zone->index));
	mtftl_assert(state != MTFTL_ZONE_FULL || zone->state != MTFTL_ZONE_FULL, "zone %u",
		     zone->index);
	mtftl_assert(state != MTFTL_ZONE_EMPTY || !zone->wp, "zone %u: wp %u", zone->index,
		     zone->wp);
	mtftl_assert(state == MTFTL_ZONE_CLOSING || !READ_ONCE(zone->in_flight),
		     "zone %u: state %u, %u in flight", zone->index, state, zone->in_flight);
	trace_mtftl_zone_state(mtftl_dev(zone->ftl), zone->index, zone->state, state,
			       zone->wp, mtftl_map_valid(zone->ftl, zone->index));
	list_move_tail(&zone->list, &zones->list[state]);
	mtftl_space_move_zone(zone->ftl, zone->state, state);
	mtftl_assert(mtftl_zones_worn_out(zone->ftl) <=
		     mtftl_zones_count(zone->ftl, MTFTL_ZONE_FULL) + 1,
		     "%u zones", mtftl_zones_worn_out(zone->ftl));
	if (mtftl_zone_is_worn_out(zone))
		WRITE_ONCE(zones->worn_out, zones->worn_out + (state == MTFTL_ZONE_FULL) -
						    (zone->state == MTFTL_ZONE_FULL));
	if (zone->state == MTFTL_ZONE_EMPTY)
		WRITE_ONCE(zones->opened, zones->opened + 1);
	if (state == MTFTL_ZONE_FULL)
		zone->full_nr = ++zones->full_nr;
	/* Pairs with GC, which looks at full zones without the lock. */
	smp_store_release(&zone->state, state);
}

void mtftl_zone_move(struct mtftl_zone *zone, enum mtftl_zone_state state)
{
	spin_lock(&zone->ftl->zones->lock);
	set_state(zone, state);
	spin_unlock(&zone->ftl->zones->lock);
}

/* The least worn of those that have been empty for longest. */
static struct mtftl_zone *least_worn(struct mtftl *ftl)
{
	struct mtftl_zone *zone, *best = NULL;
	u32 looks = 0;

	lockdep_assert_held(&ftl->zones->lock);
	list_for_each_entry(zone, &ftl->zones->list[MTFTL_ZONE_EMPTY], list) {
		if (!best || zone->erase_count < best->erase_count)
			best = zone;
		if (++looks == EMPTY_LOOKS)
			break;
	}
	mtftl_assert(!best || (best->state == MTFTL_ZONE_EMPTY && !best->wp && !best->broken),
		     "zone %u: state %u, wp %u", best->index, best->state, best->wp);
	return best;
}

/* Each lane is asked: only where it matters. */
bool mtftl_zones_buffers_are_empty(const struct mtftl *ftl, enum mtftl_right right)
{
	mtftl_assert(right < MTFTL_NR_RIGHTS, "right %u", right);
	return right == MTFTL_RIGHT_GC &&
	       mtftl_zones_count(ftl, MTFTL_ZONE_EMPTY) <= ftl->config.limits.buffer_zones &&
	       mtftl_rings_are_empty(ftl);
}

struct mtftl_zone *mtftl_zone_open(struct mtftl *ftl, enum mtftl_right right,
				   void (*hold)(void *data, struct mtftl_zone *zone), void *data)
{
	struct list_head *partial = &ftl->zones->list[MTFTL_ZONE_PARTIAL];
	struct mtftl_zone *zone = NULL;

	spin_lock(&ftl->zones->lock);
	if (mtftl_space_may_open(ftl, right, mtftl_zones_buffers_are_empty(ftl, right))) {
		zone = list_first_entry_or_null(partial, struct mtftl_zone, list);
		if (!zone)
			zone = least_worn(ftl);
		/* That it may open one says that there is one. */
		mtftl_assert(zone && !zone->footer, "right %u", right);
		set_state(zone, MTFTL_ZONE_OPEN);
		mtftl_assert(mtftl_zones_in_use(ftl) <= ftl->config.budget.data_zones,
			     "%u zones of %u", mtftl_zones_in_use(ftl),
			     ftl->config.budget.data_zones);
		/* With its place in the budget: mtftl_space_may_open() looks at both. */
		hold(data, zone);
	}
	spin_unlock(&ftl->zones->lock);
	return zone;
}

void mtftl_zone_shut(struct mtftl_zone *zone,
		     void (*hold)(void *data, struct mtftl_zone *zone), void *data)
{
	spin_lock(&zone->ftl->zones->lock);
	mtftl_assert(zone->state == MTFTL_ZONE_OPEN && !zone->closing, "zone %u: state %u",
		     zone->index, zone->state);
	set_state(zone, MTFTL_ZONE_CLOSING);
	hold(data, NULL);
	spin_unlock(&zone->ftl->zones->lock);
}

void mtftl_zones_take(struct mtftl *ftl, enum mtftl_zone_state state, struct list_head *list)
{
	mtftl_assert(list_empty(list));
	spin_lock(&ftl->zones->lock);
	list_splice_init(&ftl->zones->list[state], list);
	spin_unlock(&ftl->zones->lock);
}

void mtftl_zones_give_back(struct mtftl *ftl, enum mtftl_zone_state state, struct list_head *list)
{
	mtftl_assert(list_empty(list) ||
		     list_first_entry(list, struct mtftl_zone, list)->state == state,
		     "state %u", state);
	spin_lock(&ftl->zones->lock);
	list_splice_init(list, &ftl->zones->list[state]);
	spin_unlock(&ftl->zones->lock);
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
	list_for_each_entry(zone, &ftl->zones->list[MTFTL_ZONE_OPEN], list) {
		mtftl_assert(zone->state == MTFTL_ZONE_OPEN, "zone %u: state %u", zone->index,
			     zone->state);
		state->in_flight |= READ_ONCE(zone->in_flight);
	}
	spin_unlock(&ftl->zones->lock);
}

u32 mtftl_zones_opened(const struct mtftl *ftl)
{
	/* The looks come after. */
	return smp_load_acquire(&ftl->zones->opened);
}

/*
 * No full zone is worth collecting: what could be gained lies in the open ones, so users go
 * on in those until they are full. A zone that was opened since GC looked counts on a new look.
 */
bool mtftl_zones_set_no_victim(struct mtftl *ftl, bool none, u32 opened)
{
	bool known;

	if (none == mtftl_space_has_no_victim(ftl))
		return true;
	spin_lock(&ftl->zones->lock);
	known = !none || opened == ftl->zones->opened;
	if (known)
		mtftl_space_set_no_victim(ftl, none);
	spin_unlock(&ftl->zones->lock);
	if (known)
		mtftl_space_appeared(ftl);
	return known;
}

/* Only while users are slowed: otherwise no reset is in a hurry, or all stood still meanwhile. */
void mtftl_zones_note_back(const struct mtftl_zone *zone)
{
	struct mtftl_zones *zones = zone->ftl->zones;
	u32 took_us, mean;

	if (!mtftl_space_is_slowed_since(zone->ftl, zone->taken))
		return;
	mtftl_assert(!ktime_after(zone->taken, ktime_get()), "zone %u", zone->index);
	took_us = ktime_us_delta(ktime_get(), zone->taken);
	spin_lock(&zones->lock);
	mean = zones->back_us ?: took_us;
	WRITE_ONCE(zones->back_us, mean - mean / 8 + took_us / 8);
	spin_unlock(&zones->lock);
}

struct mtftl_zone *mtftl_zones_set_aside(struct mtftl *ftl)
{
	struct mtftl_zone *zone = NULL;

	spin_lock(&ftl->zones->lock);
	if (mtftl_space_may_open(ftl, MTFTL_RIGHT_META, false))
		zone = least_worn(ftl);
	if (zone)
		set_state(zone, MTFTL_ZONE_CKPT);
	spin_unlock(&ftl->zones->lock);
	return zone;
}

void mtftl_zone_queue_close(struct mtftl_zone *zone)
{
	queue_work(zone->ftl->zones->wq, &zone->close_work);
}

void mtftl_zones_queue(struct mtftl *ftl, struct delayed_work *work)
{
	mod_delayed_work(ftl->zones->wq, work, 0);
}

void mtftl_zones_queue_later(struct mtftl *ftl, struct delayed_work *work, unsigned long delay)
{
	queue_delayed_work(ftl->zones->wq, work, delay);
}

void mtftl_zones_settle(struct mtftl *ftl)
{
	if (ftl->zones && ftl->zones->wq)
		flush_workqueue(ftl->zones->wq);
}

int mtftl_zones_alloc(struct mtftl *ftl)
{
	struct mtftl_zones *zones;
	u32 i;

	mtftl_assert(ftl->config.nr_zones > MTFTL_NR_SB_ZONES && ftl->config.capacity &&
		     ftl->config.capacity <= 1u << ftl->config.zone_shift);
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
	zones->wq = alloc_ordered_workqueue("mtftl-%s", WQ_MEM_RECLAIM, mtftl_disk_name(ftl));
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

void mtftl_zones_tell(struct mtftl *ftl, char *result, unsigned int maxlen)
{
	static const char *const states[] = {
		[MTFTL_ZONE_EMPTY]	= "empty",
		[MTFTL_ZONE_OPEN]	= "open",
		[MTFTL_ZONE_PARTIAL]	= "partial",
		[MTFTL_ZONE_CLOSING]	= "closing",
		[MTFTL_ZONE_FULL]	= "full",
		[MTFTL_ZONE_VICTIM]	= "victim",
		[MTFTL_ZONE_RESETTING]	= "resetting",
		[MTFTL_ZONE_SUPER]	= "super",
		[MTFTL_ZONE_CKPT]	= "checkpoint",
		[MTFTL_ZONE_BAD]	= "bad",
	};
	unsigned int sz = 0;
	u32 i, valid;

	static_assert(ARRAY_SIZE(states) == MTFTL_NR_ZONE_STATES);
	/* If there is no room for all, device-mapper asks again with more. */
	for (i = 0; i < ftl->config.nr_zones && sz + 1 < maxlen; i++) {
		const struct mtftl_zone *zone = mtftl_zone(ftl, i);

		valid = mtftl_map_valid(ftl, i);
		DMEMIT("%s %u %u %u %u\n", states[READ_ONCE(zone->state)], READ_ONCE(zone->wp),
		       valid, READ_ONCE(zone->erase_count), valid ? mtftl_map_age(ftl, i) : 0);
		cond_resched();
	}
}
