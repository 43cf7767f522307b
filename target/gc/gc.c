// SPDX-License-Identifier: GPL-2.0
/*
 * Garbage collection: which zones are victims, and when. One thread, the keeper, decides. It has
 * the valid blocks of a victim listed, hands them to the movers (move.c), which work on every core,
 * and puts the victim away when all have moved. Resets go on in the background (reset.c): no write
 * waits for one.
 *
 * Space. A victim may be moved while others are, if all that they may still write fits into what
 * users cannot take: the reserve without the zones of the buffers, and the zone that GC has open.
 * What victims will free does not count. The oldest victim waits for space, the others give up. So
 * at worst one victim is moved in part, and the zones kept for GC are enough for that.
 *
 * Progress. Users stop at a reserve of zones, less what is left in those that they have open: the
 * gate shuts, and nothing new enters the buffers. What is buffered by then always fits into the
 * reserve, and GC always keeps one zone to move into. Above the reserve, users may write as fast as
 * GC gains space: see pace.c.
 *
 * Victims and all else here are the keeper's, except for what other threads set: forced, stopping.
 */
#include "gc/gc.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "device/await.h"
#include "device/device.h"
#include "device/pause.h"
#include "device/rw.h"
#include "device/seq.h"
#include "device/space.h"
#include "device/thread.h"
#include "device/trace.h"
#include "durable/checkpoint.h"
#include "gc/move.h"
#include "gc/pace.h"
#include "gc/reset.h"
#include "io/lane.h"
#include "map/map.h"
#include "policy/choose.h"
#include "zone/life.h"
#include "zone/scan.h"
#include "zone/stream.h"
#include "zone/super.h"
#include "zone/walk.h"

#define VICTIMS		3u	/* one ends, one is moved, one is listed */
#define WEAR_INTERVAL	32u	/* every so many victims look at the least worn zone */
#define LOOKS_AT_ONCE	256u	/* zones, before others get the CPU */
#define WEAR_SPREAD	16u	/* erasures apart that are worth moving cold data for */

struct victim {
	struct mtftl_victim moved;	/* zone NULL: there is none */
	bool listing;			/* list_work has it */
	bool admitted;			/* the movers have it */
	bool by_map;			/* what its headers do not tell was asked of the map */
};

struct mtftl_gc {
	struct mtftl *ftl;
	struct task_struct *keeper;
	struct victim victims[VICTIMS];
	u32 first;			/* the oldest one; the others follow in turn */
	u32 nr;				/* of them under way */
	struct mtftl_pace pace;
	struct mtftl_movers *movers;
	struct mtftl_resets *resets;
	struct workqueue_struct *wq;	/* lists the newest victim */
	struct work_struct list_work;
	struct victim *listed;		/* list_work's, like the next two */
	struct mtftl_scanner *scanner;
	void *walk_buf;
	void *stream;			/* of a footer */
	void *block;			/* for whether the device answers */
	u32 payload;			/* blocks that fit into a zone that GC writes */
	struct mtftl_chooser chooser;
	const struct mtftl_victim_policy *policy;	/* of the last choice, like the next one */
	bool was_forced;
	u32 hopeless;			/* worn-out zones, all of them given up at the last look */
	u64 looked_at;			/* for them, in jiffies as 64 bits */
	bool found_none;		/* the last look did */
	struct mtftl_wait users;	/* what is buffered finds no place */
	int forced;			/* by message: collect once if no zones are short; an int */
	bool running;			/* starts and stops take turns */
	bool stopping;
};

void mtftl_gc_force(struct mtftl *ftl)
{
	WRITE_ONCE(ftl->gc->forced, true);
	mtftl_space_kick_gc(ftl);
}

static bool may_go_on(const struct mtftl_gc *gc)
{
	return !mtftl_is_read_only(gc->ftl) && !mtftl_is_paused(gc->ftl) &&
	       !READ_ONCE(gc->stopping);
}

static u32 zones_coming(const struct mtftl *ftl)
{
	return mtftl_zones_count(ftl, MTFTL_ZONE_EMPTY) +
	       mtftl_zones_count(ftl, MTFTL_ZONE_RESETTING);
}

static bool zones_are_short(const struct mtftl *ftl)
{
	return zones_coming(ftl) < READ_ONCE(ftl->config.limits.low_water);
}

/* None may be lost now. */
static bool zones_are_scarce(const struct mtftl *ftl)
{
	return mtftl_zones_count(ftl, MTFTL_ZONE_EMPTY) <= ftl->config.limits.reserve;
}

/*
 * A worn-out zone is cleared even if zones are not short. If GC found none at its last look that it
 * had not given up, it looks again after a second.
 */
static bool may_clear_worn_out(const struct mtftl_gc *gc)
{
	u32 worn_out = mtftl_zones_worn_out(gc->ftl);

	return worn_out && !zones_are_scarce(gc->ftl) &&
	       (worn_out != gc->hopeless ||
		!time_before64(get_jiffies_64(), gc->looked_at + HZ));
}

/* GC shall gain space. One victim at a time will do while users need not wait. */
static bool space_is_wanted(const struct mtftl_gc *gc)
{
	return zones_are_short(gc->ftl) &&
	       (!gc->nr || mtftl_space_credit(gc->ftl) < gc->ftl->config.capacity / 2);
}

/* Choosing */

/* The most that a victim may hold. */
static u32 worth_moving(struct mtftl_gc *gc)
{
	struct mtftl *ftl = gc->ftl;
	u32 used = ftl->config.limits.reserve + mtftl_zones_count(ftl, MTFTL_ZONE_SUPER) +
		   mtftl_zones_count(ftl, MTFTL_ZONE_CKPT) +
		   mtftl_zones_count(ftl, MTFTL_ZONE_BAD);

	return mtftl_victim_limit(gc->payload, ftl->config.logical_blocks,
				  ftl->config.nr_zones > used ? ftl->config.nr_zones - used : 1);
}

/* What a look at zones goes by. */
struct choice {
	struct mtftl *ftl;
	const struct mtftl_victim_policy *policy;
	bool forced;		/* by message: also what GC gave up a while ago */
	bool scarce;		/* zones are: a worn-out one has to wait */
	u32 limit;		/* the most that a victim may hold */
	u32 looks;
	u64 now;
	u64 clock;		/* jiffies, as zone->not_before has them */
};

/*
 * A full zone stays full until the keeper takes it, because nothing else does. So no lock is needed
 * to look at it.
 */
static bool look_at(void *data, u32 index, struct mtftl_seen *seen)
{
	struct choice *choice = data;
	const struct mtftl_config *config = &choice->ftl->config;
	const struct mtftl_zone *zone = mtftl_zone(choice->ftl, index);
	struct mtftl_candidate candidate = { .capacity = config->capacity };
	u32 valid;

	if (!(++choice->looks % LOOKS_AT_ONCE))
		cond_resched();
	/* Pairs with set_state() of zones.c: what else is known of the zone is seen. */
	if (smp_load_acquire(&zone->state) != MTFTL_ZONE_FULL)
		return false;
	mtftl_assert(!READ_ONCE(zone->in_flight), "zone %u: %u in flight", index, zone->in_flight);
	if (!choice->forced && time_before64(choice->clock, zone->not_before))
		return false;
	seen->erase_count = zone->erase_count;
	seen->before = zone->full_nr;
	/* It costs a zone, and gives none back: that can wait. */
	if (mtftl_zone_is_worn_out(zone)) {
		seen->score = MTFTL_FIRST_OF_ALL;
		return !choice->scarce;
	}
	/*
	 * Headers and footer of a full zone are no garbage: moved for them alone, zones
	 * would go round for ever, with users waiting for what is never gained.
	 */
	valid = mtftl_map_valid(choice->ftl, index);
	if (valid > choice->limit)
		return true;
	candidate.valid = min(valid, config->capacity);
	/* It may have become full since. */
	candidate.age = choice->now > zone->full_seq ? choice->now - zone->full_seq : 0;
	seen->score = choice->policy->score(&candidate);
	mtftl_assert(seen->score < MTFTL_FIRST_OF_ALL, "zone %u", index);
	return true;
}

/* The best one of all that the rules allow; also if others are allowed than the last time. */
static u32 choose_by_score(struct mtftl_gc *gc, struct choice *choice)
{
	u32 worn_out = mtftl_zones_worn_out(gc->ftl), best;
	bool whole = choice->forced || may_clear_worn_out(gc);

	if (choice->policy != gc->policy || choice->forced != gc->was_forced)
		mtftl_choose_anew(&gc->chooser);
	gc->policy = choice->policy;
	gc->was_forced = choice->forced;
	best = mtftl_choose(&gc->chooser, whole, look_at, choice);
	if (whole && !choice->scarce) {
		gc->looked_at = choice->clock;
		gc->hopeless = worn_out;
	}
	return best;
}

/* @gain: to gain space. Otherwise only a worn-out zone is a victim. */
static struct mtftl_zone *pick_victim(struct mtftl_gc *gc, bool forced, bool gain)
{
	struct mtftl *ftl = gc->ftl;
	struct choice choice = {
		.ftl = ftl,
		.policy = READ_ONCE(ftl->config.gc_policy),
		.forced = forced,
		.scarce = zones_are_scarce(ftl),
		.limit = worth_moving(gc),
		.now = mtftl_seq_last(ftl),
		.clock = get_jiffies_64(),
	};
	u32 best = choose_by_score(gc, &choice), least;

	if (best != MTFTL_NO_ZONE && gc->chooser.kept[0].score == MTFTL_FIRST_OF_ALL) {
		gc->hopeless = 0;
		return mtftl_zone(ftl, best);
	}
	if (!gain)
		return NULL;
	/* What sits on the least worn zone is cold: let others have a turn there. */
	least = mtftl_choose_for_wear(&gc->chooser, WEAR_INTERVAL, WEAR_SPREAD, look_at, &choice);
	if (least != MTFTL_NO_ZONE)
		best = least;
	return best == MTFTL_NO_ZONE ? NULL : mtftl_zone(ftl, best);
}

/* Listing */

/* A mount would need them: no checkpoint has what they say. */
static bool has_new_ranges(const struct mtftl_zone *zone)
{
	return zone->ranges_seq > mtftl_seq_ckpt(zone->ftl);
}

static void add_item(struct mtftl_victim *victim, u32 lba, u32 page)
{
	if (victim->nr_items < victim->zone->ftl->config.capacity)
		victim->items[victim->nr_items++] = (struct mtftl_item){ .lba = lba, .page = page };
}

/* Of a walk that lists a victim. */
struct listing {
	struct mtftl_victim *victim;
	u32 header;		/* of the unit under way */
};

static void keep_item(void *private, enum mtftl_unit_type type, u32 header, u32 index, u64 lba)
{
	struct listing *listing = private;
	struct mtftl_victim *victim = listing->victim;
	struct mtftl *ftl = victim->zone->ftl;
	u32 page = header + ftl->config.header_blocks + index;

	mtftl_assert(mtftl_page_zone(ftl, header) == victim->zone->index, "page %#x", header);
	if (type == MTFTL_UNIT_RANGES) {
		if (has_new_ranges(victim->zone))
			add_item(victim, MTFTL_NO_LBA, header);
		return;
	}
	if (lba >= ftl->config.logical_blocks || mtftl_map_look(ftl, lba) != page)
		return;
	if (ftl->config.header_blocks && listing->header != header)
		add_item(victim, MTFTL_NO_LBA, header);
	listing->header = header;
	add_item(victim, lba, page);
}

/* Its headers do not tell all: ask the map. Slow, and hardly ever needed. */
static void find_by_map(struct mtftl_victim *victim)
{
	struct mtftl *ftl = victim->zone->ftl;
	const struct mtftl_config *config = &ftl->config;
	u32 lba, value;

	victim->nr_items = 0;
	for (lba = 0; lba < config->logical_blocks && victim->nr_items < config->capacity; lba++) {
		value = mtftl_map_look(ftl, lba);
		if (mtftl_is_page(value) && mtftl_page_zone(ftl, value) == victim->zone->index)
			add_item(victim, lba, value);
		if (!(lba & 0xffff))
			cond_resched();
	}
}

static void list_victim(struct mtftl_gc *gc, struct mtftl_victim *victim)
{
	struct listing listing = { .victim = victim, .header = U32_MAX };
	struct mtftl_zone *zone = victim->zone;

	mtftl_assert(zone->state == MTFTL_ZONE_VICTIM && !atomic_read(&victim->left),
		     "zone %u: state %u", zone->index, zone->state);
	victim->nr_items = 0;
	victim->gave_up = false;
	victim->ranges_left = false;
	victim->ended_early = false;
	atomic_set(&victim->moved, 0);
	if (mtftl_map_valid(gc->ftl, zone->index) || has_new_ranges(zone))
		victim->ranges_left = !mtftl_zone_walk(zone, gc->scanner, gc->walk_buf, gc->stream,
						       keep_item, &listing);
}

/*
 * Headers that lie all over a zone take long to read, and what has been moved meanwhile is not to
 * wait for them: it is to be reset.
 */
static void list_work(struct work_struct *work)
{
	struct mtftl_gc *gc = container_of(work, struct mtftl_gc, list_work);
	unsigned int flags = memalloc_noio_save();
	struct victim *victim = gc->listed;

	mtftl_assert(victim->listing && !victim->admitted);
	mtftl_space_send_begin(gc->ftl);
	list_victim(gc, &victim->moved);
	mtftl_send_end(gc->ftl);
	/* Pairs with may_admit(), which must see what was listed. */
	smp_store_release(&victim->listing, false);
	mtftl_space_kick_gc(gc->ftl);
	memalloc_noio_restore(flags);
}

/* Victims under way */

static struct victim *nth_victim(struct mtftl_gc *gc, u32 n)
{
	mtftl_assert(gc->first < VICTIMS && gc->nr <= VICTIMS, "%u from %u on", gc->nr, gc->first);
	return &gc->victims[(gc->first + n) % VICTIMS];
}

/* Blocks that it may still take, were each slice cut by the end of a zone, one by all of GC's. */
static u32 needs(const struct mtftl_gc *gc, const struct mtftl_victim *victim)
{
	u32 done = min_t(u32, max(atomic_read(&victim->moved), 0), victim->nr_items);
	u32 blocks = victim->nr_items - done;

	mtftl_assert(victim->nr_items <= gc->ftl->config.capacity, "%u items", victim->nr_items);
	return blocks + 2 * (1 + blocks / mtftl_move_unit_blocks(gc->ftl)) +
	       gc->ftl->config.budget.gc_streams - 1;
}

/* What all of those may still take that are moved. */
static u32 debt(struct mtftl_gc *gc)
{
	u32 i, blocks = 0;

	for (i = 0; i < gc->nr; i++)
		if (nth_victim(gc, i)->admitted)
			blocks += needs(gc, &nth_victim(gc, i)->moved);
	return blocks;
}

/* The last one, which is listed. */
static bool may_admit(struct mtftl_gc *gc)
{
	struct victim *last = nth_victim(gc, gc->nr - 1);
	struct mtftl_admit_state state;

	/* Pairs with list_work(). */
	if (!gc->nr || last->admitted || smp_load_acquire(&last->listing))
		return false;
	if (gc->nr == 1)
		return true;
	mtftl_space_look(gc->ftl, &state);
	state.gc_room = mtftl_streams_gc_room(gc->ftl);
	state.gc_owes = debt(gc);
	return mtftl_admit_victim(&gc->ftl->config.limits, &state, needs(gc, &last->moved));
}

static void admit(struct mtftl_gc *gc, struct victim *victim)
{
	mtftl_assert(victim->moved.zone && !READ_ONCE(victim->listing));
	victim->admitted = true;
	mtftl_zones_set_gc_owes(gc->ftl, debt(gc));
	WRITE_ONCE(victim->moved.oldest, victim == nth_victim(gc, 0));
	mtftl_pace_begin(&gc->pace, victim->moved.nr_items);
	mtftl_move(gc->movers, &victim->moved);
}

/* False also if the device must not be asked. */
static bool device_answers(struct mtftl_gc *gc)
{
	bool answers;

	if (!mtftl_send_begin(gc->ftl))
		return false;
	answers = mtftl_device_answers(gc->ftl, gc->block);
	mtftl_send_end(gc->ftl);
	return answers;
}

/* All of it has moved, as far as it could. False: there is more to do for it. */
static bool has_ended(struct mtftl_gc *gc, struct victim *victim)
{
	struct mtftl_victim *moved = &victim->moved;
	struct mtftl *ftl = gc->ftl;

	mtftl_assert(victim->admitted && list_empty(&moved->list), "zone %u", moved->zone->index);
	mtftl_pace_end(&gc->pace, moved->nr_items, atomic_read(&moved->moved));
	if (victim->by_map || !mtftl_map_valid(ftl, moved->zone->index) || moved->gave_up ||
	    moved->ended_early || !device_answers(gc))
		return true;
	/* A header could not be read, or a footer was wrong. */
	find_by_map(moved);
	atomic_set(&moved->moved, 0);
	mtftl_warn(ftl, "zone %u: %u blocks found by the map alone", moved->zone->index,
		   moved->nr_items);
	victim->by_map = true;
	admit(gc, victim);
	return false;
}

/* The oldest one is over. */
static void retire(struct mtftl_gc *gc)
{
	struct mtftl_victim *victim = &nth_victim(gc, 0)->moved;
	struct mtftl_zone *zone = victim->zone;
	struct mtftl *ftl = gc->ftl;
	bool empty = !mtftl_map_valid(ftl, zone->index) && !victim->ended_early;

	mtftl_assert(gc->nr && zone->state == MTFTL_ZONE_VICTIM && !atomic_read(&victim->left),
		     "zone %u: state %u, %d slices", zone->index, zone->state,
		     atomic_read(&victim->left));
	trace_mtftl_gc_victim(mtftl_dev(ftl), zone->index, victim->nr_items,
			      zones_coming(ftl), mtftl_space_credit(ftl));
	if (empty && !victim->ranges_left)
		zone->ranges_seq = 0;
	zone->not_before = victim->gave_up ? get_jiffies_64() + MTFTL_GIVEN_UP : 0;
	mtftl_zone_move(zone, empty ? MTFTL_ZONE_RESETTING : MTFTL_ZONE_FULL);
	if (victim->gave_up)
		mtftl_warn(ftl, "zone %u: read failed, trying again in 10 s", zone->index);
	victim->zone = NULL;
	gc->first = (gc->first + 1) % VICTIMS;
	gc->nr--;
	if (gc->nr)
		WRITE_ONCE(nth_victim(gc, 0)->moved.oldest, true);
	mtftl_zones_set_gc_owes(gc->ftl, debt(gc));
	mtftl_pace_update(&gc->pace);
	if (empty) {
		mtftl_count(ftl, victims, 1);
		mtftl_resets_kick(gc->resets);
	}
}

static bool oldest_is_done(struct mtftl_gc *gc)
{
	/* What the last slice has left behind is there. */
	return gc->nr && nth_victim(gc, 0)->admitted &&
	       !atomic_read_acquire(&nth_victim(gc, 0)->moved.left);
}

/* The keeper */

static bool wanted(struct mtftl_gc *gc)
{
	return READ_ONCE(gc->forced) || may_clear_worn_out(gc) ||
	       mtftl_resets_failed(gc->resets) || space_is_wanted(gc);
}

static bool may_choose(struct mtftl_gc *gc)
{
	return gc->nr < VICTIMS && (!gc->nr || nth_victim(gc, gc->nr - 1)->admitted) &&
	       may_go_on(gc) && wanted(gc);
}

static void update_active(struct mtftl_gc *gc)
{
	mtftl_pace_watch(&gc->pace);
	if (mtftl_space_pace(gc->ftl, gc->nr && may_go_on(gc)))
		mtftl_pace_update(&gc->pace);
}

/*
 * So many zones are worn out that nothing can be gained from those that are left, and all
 * that is open is full. For a while a discard may still help.
 */
static void see_if_stuck(struct mtftl_gc *gc)
{
	struct mtftl_admit_state state;

	if (!mtftl_lanes_stuck(gc->ftl, false)) {
		gc->users.moved = 0;
		return;
	}
	mtftl_zones_look(gc->ftl, &state);
	state.in_flight |= !mtftl_lanes_landed(gc->ftl);
	mtftl_is_dead_end(gc->ftl, &state, &gc->users);
}

/* False: there is none to gain from. Or users took a zone meanwhile: look again. */
static bool choose_victim(struct mtftl_gc *gc)
{
	struct victim *victim = nth_victim(gc, gc->nr);
	bool forced = xchg(&gc->forced, 0), none, known;
	bool gain = forced || space_is_wanted(gc);
	struct mtftl *ftl = gc->ftl;
	u32 opened = mtftl_zones_opened(ftl);
	struct mtftl_zone *zone;

	zone = pick_victim(gc, forced, gain);
	gc->found_none = !zone;
	if (zone) {
		zone->taken = ktime_get();
		mtftl_assert(gc->nr < VICTIMS && !victim->moved.zone);
		mtftl_zone_move(zone, MTFTL_ZONE_VICTIM);
		victim->moved.zone = zone;
		victim->admitted = false;
		victim->by_map = false;
		gc->nr++;
	}
	update_active(gc);
	none = gain && !gc->nr && !mtftl_zones_count(ftl, MTFTL_ZONE_RESETTING);
	known = mtftl_zones_set_no_victim(ftl, none, opened);
	see_if_stuck(gc);
	if (!zone)
		return !known;
	victim->listing = true;
	gc->listed = victim;
	queue_work(gc->wq, &gc->list_work);
	return true;
}

static void rest(struct mtftl_gc *gc)
{
	update_active(gc);
	if (!gc->nr)
		mtftl_zones_set_no_victim(gc->ftl, false, 0);
}

/* False: there is nothing to do now. */
static bool gc_step(struct mtftl_gc *gc)
{
	if (oldest_is_done(gc)) {
		if (has_ended(gc, nth_victim(gc, 0)))
			retire(gc);
		return true;
	}
	if (may_go_on(gc) && may_admit(gc)) {
		admit(gc, nth_victim(gc, gc->nr - 1));
		return true;
	}
	if (!may_choose(gc) || mtftl_super_dirty(gc->ftl))
		return false;
	if (mtftl_resets_failed(gc->resets)) {
		mtftl_resets_retry(gc->resets, gc->block);
		return false;
	}
	return choose_victim(gc);
}

/* Movers are at rest: what they have not taken goes back. */
static void give_back(struct mtftl_gc *gc)
{
	flush_work(&gc->list_work);
	while (gc->nr) {
		struct victim *victim = nth_victim(gc, 0);

		if (victim->admitted) {
			mtftl_move_end(gc->movers, &victim->moved);
			mtftl_pace_end(&gc->pace, victim->moved.nr_items,
				       atomic_read(&victim->moved.moved));
		} else {
			victim->moved.ended_early = true;
		}
		retire(gc);
	}
}

/* Between two tries. A look that finds nothing is at all zones, however many there are. */
static long interval(const struct mtftl_gc *gc)
{
	return gc->found_none && gc->ftl->config.nr_zones > MTFTL_LOOKS ? HZ : HZ / 10;
}

static int keeper(void *data)
{
	unsigned int flags = memalloc_noio_save();
	struct mtftl_gc *gc = data;
	struct mtftl *ftl = gc->ftl;
	u32 gen;

	while (!kthread_should_stop()) {
		if (kthread_should_park()) {
			give_back(gc);
			kthread_parkme();
		}
		gen = mtftl_space_gen(ftl);
		gc->found_none = false;
		if (gc_step(gc))
			continue;
		if (may_choose(gc)) {
			/* Nothing to gain now, until a user writes or a zone becomes free. */
			mtftl_space_await_gc(ftl, kthread_should_park() || oldest_is_done(gc) ||
					     may_admit(gc) || gen != mtftl_space_gen(ftl),
					     interval(gc));
			continue;
		}
		rest(gc);
		mtftl_space_await_gc(ftl, kthread_should_stop() || kthread_should_park() ||
				     oldest_is_done(gc) || (may_go_on(gc) && may_admit(gc)) ||
				     may_choose(gc),
				     may_go_on(gc) && mtftl_zones_worn_out(ftl) ?
				     HZ : MAX_SCHEDULE_TIMEOUT);
	}
	memalloc_noio_restore(flags);
	return 0;
}

static void zone_opened(struct mtftl *ftl)
{
	if (mtftl_zones_count(ftl, MTFTL_ZONE_EMPTY) < READ_ONCE(ftl->config.limits.low_water))
		mtftl_space_kick_gc(ftl);
}

int mtftl_gc_alloc(struct mtftl *ftl)
{
	u32 i, capacity = ftl->config.capacity, usable = mtftl_usable_blocks(&ftl->config);
	struct mtftl_gc *gc = kzalloc_obj(*gc, GFP_KERNEL);

	if (!gc)
		return -ENOMEM;
	ftl->gc = gc;
	gc->ftl = ftl;
	gc->users.right = MTFTL_RIGHT_USER;
	mtftl_pace_init(&gc->pace, ftl);
	mtftl_chooser_init(&gc->chooser, ftl->config.nr_zones);
	INIT_WORK(&gc->list_work, list_work);
	mtftl_assert(usable < capacity, "%u of %u blocks", usable, capacity);
	gc->payload = usable;
	if (ftl->config.header_blocks)
		gc->payload -= DIV_ROUND_UP(usable, mtftl_move_unit_blocks(ftl) + 1);
	for (i = 0; i < VICTIMS; i++) {
		struct mtftl_victim *victim = &gc->victims[i].moved;

		INIT_LIST_HEAD(&victim->list);
		victim->items = kvmalloc_array(capacity, sizeof(*victim->items), GFP_KERNEL);
		if (!victim->items)
			return -ENOMEM;
	}
	gc->scanner = mtftl_scanner_alloc(ftl, GFP_KERNEL);
	gc->walk_buf = (void *)__get_free_pages(GFP_KERNEL, MTFTL_BUFFER_ORDER);
	gc->stream = kvmalloc_array(mtftl_footer_list_blocks(&ftl->config), MTFTL_BLOCK_SIZE,
				    GFP_KERNEL);
	gc->resets = mtftl_resets_alloc(ftl);
	gc->block = (void *)__get_free_page(GFP_KERNEL);
	gc->wq = alloc_ordered_workqueue("mtftl-list-%s", WQ_MEM_RECLAIM, mtftl_disk_name(ftl));
	if (!gc->scanner || !gc->walk_buf || !gc->stream || !gc->resets || !gc->block || !gc->wq)
		return -ENOMEM;
	gc->movers = mtftl_movers_alloc(ftl, &gc->pace, gc->resets);
	gc->keeper = mtftl_thread(keeper, gc, -1, "mtftl_gc/%s", mtftl_disk_name(ftl));
	mtftl_streams_on_open(ftl, zone_opened);
	return gc->movers && gc->keeper ? 0 : -ENOMEM;
}

void mtftl_gc_free(struct mtftl *ftl)
{
	struct mtftl_gc *gc = ftl->gc;
	u32 i;

	if (!gc)
		return;
	if (gc->keeper)
		kthread_stop(gc->keeper);
	mtftl_pace_stop(&gc->pace);
	mtftl_movers_free(gc->movers);
	mtftl_resets_free(gc->resets);
	kvfree(gc->stream);
	if (gc->wq)
		destroy_workqueue(gc->wq);
	free_page((unsigned long)gc->block);
	free_pages((unsigned long)gc->walk_buf, MTFTL_BUFFER_ORDER);
	mtftl_scanner_free(gc->scanner);
	for (i = 0; i < VICTIMS; i++)
		kvfree(gc->victims[i].moved.items);
	kfree(gc);
	ftl->gc = NULL;
}

void mtftl_gc_start(struct mtftl *ftl)
{
	struct mtftl_gc *gc = ftl->gc;

	if (gc->running)
		return;
	gc->running = true;
	WRITE_ONCE(gc->stopping, false);
	mtftl_resets_hurry(gc->resets, false);
	mtftl_movers_start(gc->movers);
	kthread_unpark(gc->keeper);
}

void mtftl_gc_resume(struct mtftl *ftl)
{
	mtftl_movers_wake(ftl->gc->movers);
	mtftl_space_kick_gc(ftl);
}

void mtftl_gc_stop(struct mtftl *ftl)
{
	struct mtftl_gc *gc = ftl->gc;

	if (!gc || !gc->running)
		return;
	WRITE_ONCE(gc->stopping, true);
	mtftl_resets_hurry(gc->resets, true);
	mtftl_movers_stop(gc->movers);
	kthread_park(gc->keeper);
	gc->running = false;
	mtftl_assert(!gc->nr, "%u victims", gc->nr);
	update_active(gc);
	mtftl_pace_stop(&gc->pace);
	mtftl_zones_set_no_victim(ftl, false, 0);
	mtftl_resets_settle(gc->resets);
}
