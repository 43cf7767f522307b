// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes: see lane.h. Users reserve and fill slots of a ring, its writer composes them into units.
 *
 * ring->lock protects waiting bios and free units beside the ring's own; next belongs to the
 * lane's thread. Slots change under their shard's lock, see map.c.
 */
#include "io/lane.h"

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/topology.h>

#include "device/bio.h"
#include "device/device.h"
#include "device/pause.h"
#include "device/seq.h"
#include "device/space.h"
#include "device/thread.h"
#include "device/trace.h"
#include "map/map.h"
#include "map/pending.h"
#include "map/pick.h"
#include "map/ring.h"
#include "zone/follow.h"
#include "zone/super.h"
#include "zone/write.h"

#define UNITS_MIN	4u
#define UNITS_MAX	32u
#define BATCH_MIN	64u	/* blocks that are worth waking the writer for */
#define RESERVE_MAX	32u	/* blocks that are copied without being preempted */
#define HELD		(HZ / 10)	/* no longer is kept what could be overwritten */
#define LOOK		DIV_ROUND_UP(HZ, 100)	/* jiffies between looks at an awake writer */
#define LOOKS		4	/* looks without progress until it counts as starved */
#define VAIN		100	/* turns without work until a writer sleeps for a moment */
#define MOMENT		50	/* microseconds */
#define AWAY		(2 * HZ)	/* a starved writer keeps off its CPU so long */
#define BEHIND		(HZ / 10)	/* users do more so long after several waited */
#define SPARE_AFTER	2	/* jiffies without a user of its own */
#define NEIGHBOURS	8u	/* lanes that are looked at for room */
#define GATHER		(HZ / 20)	/* so long after a flush that wanted little */
#define LATENCIES	24	/* the last: 4 s and more */

enum stall {
	NOT_STALLED,
	NO_CREDIT,	/* until GC gives some, or a flush wants it */
	NO_PLACE,
};

/* Lines that its own CPU writes are apart from those that others look at. */
struct lane {
	struct mtftl *ftl;
	struct mtftl_ring *ring;
	unsigned int index;
	unsigned int cpu;
	struct task_struct *writer;
	u32 batch;			/* filled slots that are worth waking the writer for */
	u32 span;			/* slots that may wait for others of their class */
	u32 ahead;			/* so many may be composed ahead of the oldest slot */
	u32 held;			/* slots that are kept while users are slowed */
	unsigned long away;		/* jiffies, 0: on its CPU; lanes->place */
	unsigned long turns_seen;	/* the timer, like the next two */
	unsigned int looks;		/* that saw the same */
	struct timer_list watch;	/* while the writer is awake: does it make progress? */
	bool starved;			/* it makes no progress: it needs another CPU */

	/* A user of another lane that came here: a hint, racy by design. */
	unsigned int guest ____cacheline_aligned_in_smp;	/* that lane */
	unsigned long guest_seen;	/* jiffies */

	struct bio_list waiting ____cacheline_aligned_in_smp;	/* no slot yet; ring->lock */
	unsigned long crowded;		/* jiffies: several last waited at a time; ring->lock */
	atomic_t allowance;		/* blocks that may enter while users are slowed */
	struct list_head free_units;	/* ring->lock, like the next */
	unsigned int units_in_flight;
	u32 enough;			/* now: none were worth a unit when it looked; writer */
	bool overdue;			/* what is filled goes, full unit or not */
	int asleep;			/* the writer wants to be woken; exchanged: an int */
	enum stall stalled;		/* writer, like the next */
	u32 stalled_at;			/* mtftl_space_gen() when it was refused */
	unsigned long turns;		/* that it took */
	struct timer_list timer;	/* makes it overdue */
	u64 limited;			/* the oldest slot when the timer was started */
	u64 latency[LATENCIES];		/* writes that waited, by log2 of microseconds; writer */
	struct mtftl_follow follow;	/* writer */
};

/* A CPU's choice of lane, for a jiffy. Hints: each task that runs there writes them. */
struct cpu_choice {
	struct lane *home;
	struct lane *lane;
	unsigned long seen;		/* jiffies of its last write */
	unsigned int looked;		/* where the search for a lane with an idle CPU goes on */
} ____cacheline_aligned_in_smp;

struct mtftl_lanes {
	struct hlist_node cpu_node;	/* tells when CPUs come back */
	bool cpus_watched;
	struct cpu_choice __percpu *cpus;
	struct workqueue_struct *wq;
	struct delayed_work place;	/* moves writers that do not get their CPU, and back */
	cpumask_var_t allowed;		/* to threads of ours; place */
	unsigned int nr;
	unsigned int first ____cacheline_aligned_in_smp;	/* to hear what is next; a hint */
	struct lane *gathers ____cacheline_aligned_in_smp;	/* all small writes; a hint */
	unsigned long gather_until;	/* jiffies; the flusher, like the next */
	bool through;			/* what a flush wants goes with FUA meanwhile */
	struct lane all[];
};

/* The writer: when to compose, when to sleep */

static bool is_wanted(const struct lane *lane)
{
	return atomic_read(&lane->ring->wanted);
}

/* A flush, a reset or a FUA write waits for the lane, so it needs no credit. */
static bool is_demanded(const struct lane *lane)
{
	return !mtftl_ring_is_drained(lane->ring) || is_wanted(lane);
}

/* It was refused, and nothing has changed since. */
static bool is_stalled(struct lane *lane)
{
	switch (READ_ONCE(lane->stalled)) {
	case NO_CREDIT:
		if (is_demanded(lane))
			return false;
		fallthrough;
	case NO_PLACE:
		return READ_ONCE(lane->stalled_at) == mtftl_space_gen(lane->ftl);
	default:
		return false;
	}
}

/* Slots in use at which waiting bios are admitted again. */
static u32 admit_below(const struct mtftl_ring *ring)
{
	return ring->entries - ring->entries / 4;
}

static bool is_waited_for(const struct lane *lane)
{
	return READ_ONCE(lane->waiting.head);
}

/* Users wait for room, and no unit that lands will make some. */
static bool is_jammed(const struct lane *lane)
{
	return is_waited_for(lane) && !READ_ONCE(lane->units_in_flight) &&
	       mtftl_ring_used(lane->ring) > admit_below(lane->ring) &&
	       !mtftl_space_is_slowed(lane->ftl) && !mtftl_space_is_gated(lane->ftl);
}

/* A flush or a user waits for what is filled, or it has waited for company long enough. */
static bool is_urgent(const struct lane *lane)
{
	return !mtftl_ring_is_drained(lane->ring) || READ_ONCE(lane->overdue) || is_jammed(lane);
}

/* Slots that what is not composed yet keeps, its own and those composed before it. */
static u32 ring_span(const struct mtftl_ring *ring)
{
	return READ_ONCE(ring->head) - READ_ONCE(ring->next);
}

/*
 * Users that are slowed do not fill the buffers any more. The buffers absorb as much as before
 * only if blocks stay in them for a while.
 */
static bool may_hold_slots(const struct lane *lane)
{
	return mtftl_space_is_slowed(lane->ftl) && !mtftl_space_is_gated(lane->ftl);
}

/* Something is worth waking up for: small units for several at a time only. */
static bool is_worth_waking(const struct lane *lane)
{
	if (is_urgent(lane) || is_wanted(lane))
		return true;
	if (may_hold_slots(lane))
		return ring_span(lane->ring) >= lane->held;
	return mtftl_ring_unsent(lane->ring) >= READ_ONCE(lane->enough);
}

/*
 * What goes into the next unit. What a reset waits for goes first, then the oldest slot if so much
 * was composed ahead of it that it holds up the ring, then full units. Less than that goes when it
 * is urgent, or when others fill the ring behind it: it was acknowledged already, so no user is
 * delayed by that. What fits into one unit is not parted for its classes.
 */
static bool pick(struct lane *lane, struct mtftl_pick *pick)
{
	u32 max = lane->ftl->config.write_unit, span, wait;
	struct mtftl_ring *ring = lane->ring;

	if (is_wanted(lane)) {
		mtftl_ring_pick_wanted(ring, max, pick);
		if (pick->nr)
			return true;
	}
	if (ring->ahead >= lane->ahead && !may_hold_slots(lane)) {
		mtftl_ring_pick_oldest(ring, max, pick);
		return true;
	}
	mtftl_ring_pick(ring, max, pick);
	span = pick->end - ring->next;
	if (is_urgent(lane) && pick->nr + pick->others <= max)
		mtftl_ring_pick_all(ring, pick);
	if (may_hold_slots(lane) && !is_urgent(lane)) {
		/* Once it keeps nothing it looks again. */
		WRITE_ONCE(lane->enough, 0);
		return pick->nr && ring_span(ring) >= lane->held;
	}
	if (pick->nr == max || (pick->nr && is_urgent(lane)))
		return true;
	if (span != pick->nr && span >= lane->span)
		return true;
	wait = max - mtftl_ring_fullest(ring);
	if (span != pick->nr)
		wait = min(wait, lane->span - span);
	WRITE_ONCE(lane->enough, max(pick->nr + pick->others + wait, lane->batch));
	return false;
}

/* Nothing enters its buffer now: at the gate, or before it, until some time has passed. */
static bool is_shut(const struct lane *lane)
{
	return mtftl_space_is_gated(lane->ftl) ||
	       (mtftl_space_is_slowed(lane->ftl) && atomic_read(&lane->allowance) <= 0);
}

/* Waiting bios are admitted many at a time, so that those woken do not run one by one. */
static bool may_admit(struct lane *lane)
{
	struct mtftl_ring *ring = lane->ring;
	u32 used = mtftl_ring_used(ring);

	if (bio_list_empty(&lane->waiting) || used >= ring->entries ||
	    is_shut(lane))
		return false;
	return used <= admit_below(ring) ||
	       (!READ_ONCE(lane->units_in_flight) && !mtftl_ring_next_is_filled(ring));
}

static bool has_work(struct lane *lane)
{
	bool worth = is_worth_waking(lane);

	/* Most that ask hear this. */
	if (!worth && bio_list_empty(&lane->waiting))
		return false;
	if (mtftl_is_read_only(lane->ftl))
		return !bio_list_empty(&lane->waiting);
	if (may_admit(lane))
		return true;
	return worth && mtftl_ring_next_is_filled(lane->ring) && !mtftl_is_paused(lane->ftl) &&
	       !is_stalled(lane) && !list_empty(&lane->free_units);
}

static void watch(struct lane *lane)
{
	mod_timer(&lane->watch, jiffies + LOOK);
}

static void wake_writer(struct lane *lane)
{
	if (!xchg(&lane->asleep, 0))
		return;
	wake_up_process(lane->writer);
	if (!timer_pending(&lane->watch))
		watch(lane);
}

/* Any context. Call it after the writer was given something to do. */
static void lane_kick(struct lane *lane)
{
	/* Pairs with the barrier in writer_sleep(): it sees the work, or we see it asleep. */
	smp_mb();
	if (READ_ONCE(lane->asleep) && has_work(lane))
		wake_writer(lane);
}

/* Too little for a unit: it goes after a jiffy, whatever comes. */
static void limit_wait(struct lane *lane)
{
	if (timer_pending(&lane->timer) || !mtftl_ring_next_is_filled(lane->ring))
		return;
	WRITE_ONCE(lane->limited, READ_ONCE(lane->ring->next));
	mod_timer(&lane->timer, jiffies + (may_hold_slots(lane) ? HELD : 1));
}

/* What has come since the timer was started waits for its own time. */
static void lane_overdue(struct timer_list *timer)
{
	struct lane *lane = timer_container_of(lane, timer, timer);

	/* Pairs with lane_kick(): if a user saw the timer pending, this sees the user's slot. */
	smp_mb();
	if (READ_ONCE(lane->limited) != READ_ONCE(lane->ring->next)) {
		limit_wait(lane);
		return;
	}
	WRITE_ONCE(lane->overdue, true);
	lane_kick(lane);
}

static void lane_watch(struct timer_list *timer)
{
	struct lane *lane = timer_container_of(lane, timer, watch);
	struct cpu_choice *there = per_cpu_ptr(lane->ftl->lanes->cpus, lane->cpu);
	unsigned long turns = READ_ONCE(lane->turns);

	/* Pairs with wake_writer(): we see it awake, or it sees that this timer is not pending. */
	smp_mb();
	if (READ_ONCE(lane->asleep))
		return;
	/*
	 * A writer that sleeps waits for the drive. If users run on this CPU, the writer will get
	 * its turn, unless the user is the task that keeps it waiting.
	 */
	if (turns != lane->turns_seen || !task_is_running(lane->writer) ||
	    (!is_demanded(lane) && time_before(jiffies, READ_ONCE(there->seen) + LOOK)))
		lane->looks = 0;
	lane->turns_seen = turns;
	if (++lane->looks > LOOKS) {
		lane->looks = 0;
		WRITE_ONCE(lane->starved, true);
		mod_delayed_work(lane->ftl->lanes->wq, &lane->ftl->lanes->place, 0);
	}
	watch(lane);
}

/* What has come may be enough for a few of them: each in turn is the first to hear of it. */
void mtftl_lanes_kick(struct mtftl *ftl)
{
	struct mtftl_lanes *lanes = ftl->lanes;
	unsigned int i, first = READ_ONCE(lanes->first) % lanes->nr;

	WRITE_ONCE(lanes->first, first + 1);
	for (i = 0; i < lanes->nr; i++)
		lane_kick(&lanes->all[(first + i) % lanes->nr]);
}

/*
 * @blocks more may enter the buffers: in equal parts, those of lanes that users wait for, if any.
 * What is not enough for all goes round. A lane that has as much gets no more. Any context.
 */
void mtftl_lanes_allow(struct mtftl *ftl, u32 blocks)
{
	struct mtftl_lanes *lanes = ftl->lanes;
	unsigned int i, waited_for = 0, nr, first = READ_ONCE(lanes->first);
	struct lane *lane;
	u32 part;

	for (i = 0; i < lanes->nr; i++)
		waited_for += is_waited_for(&lanes->all[i]);
	nr = waited_for ?: lanes->nr;
	for (i = 0; blocks && nr && i < lanes->nr; i++) {
		lane = &lanes->all[(first + i) % lanes->nr];
		if (waited_for && !is_waited_for(lane))
			continue;
		part = DIV_ROUND_UP(blocks, nr);
		blocks -= part;
		nr--;
		if (atomic_read(&lane->allowance) < (int)part)
			atomic_add(part, &lane->allowance);
		lane_kick(lane);
	}
	WRITE_ONCE(lanes->first, (first + i) % lanes->nr);
}

/* False: there is something to do already. */
static bool writer_sleep(struct lane *lane)
{
	bool sleeps;

	set_current_state(TASK_IDLE);
	WRITE_ONCE(lane->asleep, true);
	/* Pairs with the barrier in lane_kick(). */
	smp_mb();
	sleeps = !has_work(lane) && !kthread_should_stop();
	if (sleeps) {
		limit_wait(lane);
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	/* Nothing woke it, so nothing has started the timer, which may have seen it asleep. */
	if (READ_ONCE(lane->asleep) && xchg(&lane->asleep, 0) && !timer_pending(&lane->watch))
		watch(lane);
	return sleeps;
}

/* Composing */

static struct mtftl_write *get_unit(struct lane *lane)
{
	struct mtftl_write *unit;

	spin_lock_irq(&lane->ring->lock);
	unit = list_first_entry_or_null(&lane->free_units, struct mtftl_write, list);
	if (unit) {
		list_del_init(&unit->list);
		mtftl_assert(lane->units_in_flight < UNITS_MAX, "lane %u", lane->index);
		lane->units_in_flight++;
	}
	spin_unlock_irq(&lane->ring->lock);
	return unit;
}

static void put_unit(struct lane *lane, struct mtftl_write *unit)
{
	struct mtftl_ring *ring = lane->ring;
	unsigned long flags;
	u32 used;

	mtftl_assert(list_empty(&unit->list) && unit->lane == lane->index, "lane %u, unit %llu",
		     lane->index, unit->seq);
	spin_lock_irqsave(&ring->lock, flags);
	mtftl_assert(lane->units_in_flight, "lane %u", lane->index);
	list_add(&unit->list, &lane->free_units);
	WRITE_ONCE(lane->units_in_flight, lane->units_in_flight - 1);
	mtftl_ring_advance(ring);
	used = ring->head - ring->tail;
	spin_unlock_irqrestore(&ring->lock, flags);
	trace_mtftl_free(mtftl_dev(lane->ftl), lane->index, used);

	/* GC may have more of the reserve when the buffers are empty. */
	if (!used && mtftl_space_is_gated(lane->ftl))
		mtftl_space_appeared(lane->ftl);
	else
		mtftl_space_wake(lane->ftl);
}

static void unit_written(struct mtftl_write *unit, u32 page)
{
	const struct mtftl_write_entry *entry = unit->entries;
	u32 i;

	mtftl_assert(unit->type == MTFTL_UNIT_DATA && unit->nr, "unit %llu", unit->seq);
	for (i = 0; i < unit->nr; i++, entry++)
		mtftl_map_complete(unit->ftl, entry->lba, entry->from, page + i);
}

/*
 * Slots are published already. Any context. After a failure that nothing could
 * help the slots stay as they are: their data can still be read.
 */
static void unit_done(struct mtftl_write *unit, blk_status_t status)
{
	struct lane *lane = unit->private;

	put_unit(lane, unit);
	lane_kick(lane);
}

static const struct mtftl_write_owner unit_owner = {
	.written = unit_written,
	.done = unit_done,
};

/*
 * Of the class's streams, counted from the lane's own, the one for what begins with the first
 * picked slots. Where their blocks do not follow each other, nothing is looked up.
 */
static u32 follow(struct lane *lane, const struct mtftl_pick *picked)
{
	u32 next[MTFTL_FOLLOW_STREAMS], nr, lba, page, value;
	struct mtftl *ftl = lane->ftl;
	const struct mtftl_ring *ring = lane->ring;
	u64 pos = picked->start;

	mtftl_assert(picked->nr && picked->class < ftl->config.budget.user_classes,
		     "%u slots of class %u", picked->nr, picked->class);
	while (!mtftl_ring_is_picked(ring, picked, pos))
		pos++;
	lba = READ_ONCE(mtftl_slot(ftl, mtftl_ring_value(ring, pos), NULL)->lba);
	if (!lba || lba == MTFTL_NO_LBA)
		return 0;
	if (picked->nr > 1 &&
	    READ_ONCE(mtftl_slot(ftl, mtftl_ring_value(ring, pos + 1), NULL)->lba) != lba + 1)
		return 0;
	page = mtftl_follow_page(&lane->follow, lba);
	if (page == MTFTL_FOLLOW_NOWHERE) {
		value = mtftl_map_look(ftl, lba - 1);
		if (!mtftl_is_page(value))
			return 0;
		page = value + 1;
	}
	nr = mtftl_streams_next(ftl, picked->class, lane->index, next, MTFTL_FOLLOW_STREAMS);
	return mtftl_follow_choose(&ftl->config, &lane->follow, page, next, nr);
}

/* What the next unit takes from the ring. False: nothing goes now. */
static bool pick_next(struct lane *lane, struct mtftl_pick *picked)
{
	bool go = pick(lane, picked);

	if (!picked->nr)
		WRITE_ONCE(lane->overdue, false);
	return go && !mtftl_is_read_only(lane->ftl) && !is_stalled(lane);
}

/*
 * A unit, and a stream with @room for it, whose lock is held then. NULL: the lane has no unit left,
 * or it is stalled.
 */
static struct mtftl_write *find_place(struct lane *lane, const struct mtftl_pick *picked,
				      struct mtftl_stream **stream, u32 *room)
{
	struct mtftl *ftl = lane->ftl;
	struct mtftl_want want = {
		.right = MTFTL_RIGHT_USER, .least = ftl->config.header_blocks + 1,
	};
	struct mtftl_write *unit;

	/* Before the attempt: what appears during it counts as a change. */
	WRITE_ONCE(lane->stalled_at, mtftl_space_gen(ftl));
	WRITE_ONCE(lane->stalled, NO_PLACE);
	if (mtftl_super_dirty(ftl))
		return NULL;
	if (!is_demanded(lane) && mtftl_space_is_spent(ftl)) {
		WRITE_ONCE(lane->stalled, NO_CREDIT);
		return NULL;
	}
	unit = get_unit(lane);
	if (!unit) {
		WRITE_ONCE(lane->stalled, NOT_STALLED);
		/* It goes on as soon as a unit is back. */
		WRITE_ONCE(lane->enough, ftl->config.write_unit);
		return NULL;
	}
	want.class = picked->class;
	want.first = lane->index + follow(lane, picked);
	*stream = mtftl_stream_find(ftl, &want, room);
	if (!*stream) {
		put_unit(lane, unit);
		return NULL;
	}
	WRITE_ONCE(lane->stalled, NOT_STALLED);
	WRITE_ONCE(lane->enough, lane->batch);
	return unit;
}

/* A flush wants it, or soon will. If little is wanted, it is on flash when its unit lands. */
static bool goes_through(const struct lane *lane)
{
	return (!mtftl_ring_is_drained(lane->ring) || READ_ONCE(lane->overdue)) &&
	       mtftl_lanes_go_through(lane->ftl);
}

/* The first @n picked slots, except those that are dead, become the unit's. */
static void take_slots(struct lane *lane, const struct mtftl_pick *picked, u32 n,
		       struct mtftl_write *unit)
{
	u32 taken = 0, lives = 0;
	u64 pos;

	for (pos = picked->start; taken < n; pos++) {
		u32 value = mtftl_ring_value(lane->ring, pos);
		struct mtftl_slot *slot;
		void *data;

		if (!mtftl_ring_is_picked(lane->ring, picked, pos))
			continue;
		taken++;
		slot = mtftl_ring_slot(lane->ring, pos, &data);
		mtftl_ring_take(lane->ring, picked, pos);
		if (!mtftl_map_take(lane->ftl, lane->ring, slot, value))
			continue;
		mtftl_assert(slot->state == MTFTL_SLOT_IN_FLIGHT, "block %u: state %u", slot->lba,
			     slot->state);
		mtftl_write_add(unit, slot->lba, value, data, slot->summed ? &slot->crc : NULL);
		unit->through |= READ_ONCE(slot->through);
		lives += slot->life;
	}
	if (unit->nr)
		unit->life = lives / unit->nr;
}

static bool lane_compose(struct lane *lane)
{
	struct mtftl *ftl = lane->ftl;
	struct mtftl_stream *stream;
	struct mtftl_write *unit;
	struct mtftl_pick picked;
	u32 n, room;
	u64 seq;

	if (!pick_next(lane, &picked))
		return false;
	unit = find_place(lane, &picked, &stream, &room);
	if (!unit)
		return false;
	mtftl_assert(room > ftl->config.header_blocks, "%u blocks", room);
	n = min(picked.nr, room - ftl->config.header_blocks);
	mtftl_assert(n && n <= unit->max, "%u of %u blocks", n, unit->max);

	/*
	 * Only now, with the slots known: each of the n was published before this number was
	 * drawn, so a unit with an older copy of one of their blocks has a lower number.
	 */
	seq = mtftl_seq_draw(ftl);
	mtftl_write_start(unit, MTFTL_UNIT_DATA, seq);
	unit->through = goes_through(lane);
	take_slots(lane, &picked, n, unit);
	if (unit->nr) {
		mtftl_write_take_place(unit, stream);
		mtftl_follow_note(&lane->follow, unit->entries[unit->nr - 1].lba + 1,
				  mtftl_zone_start(unit->place.zone) + unit->place.offset +
				  unit->place.blocks);
	}
	mutex_unlock(&stream->lock);
	mtftl_ring_taken(lane->ring, n);
	trace_mtftl_unit_composed(mtftl_dev(ftl), lane->index, seq, n, unit->nr);

	if (!unit->nr) {
		put_unit(lane, unit);
		return true;
	}
	mtftl_space_charge(ftl, unit->nr);
	mtftl_count(ftl, units, 1);
	mtftl_count(ftl, data_blocks, unit->nr);
	mtftl_write_compose(unit);
	mtftl_write_submit(unit);
	return true;
}

static bool lane_send(struct lane *lane)
{
	bool sent;

	if (!mtftl_send_begin(lane->ftl))
		return false;
	sent = lane_compose(lane);
	mtftl_send_end(lane->ftl);
	return sent;
}

/* Users: inserting */

/* Its writer does not follow its users. Ring's lock held. */
static bool is_behind(const struct lane *lane)
{
	const struct mtftl_ring *ring = lane->ring;

	return ring->head - ring->tail > ring->entries / 2 &&
	       time_before(jiffies, lane->crowded + BEHIND);
}

/* Ring's lock held. */
static void queue_up(struct lane *lane, struct bio *bio)
{
	mtftl_bio(bio)->since = ktime_get_ns();
	if (!bio_list_empty(&lane->waiting))
		lane->crowded = jiffies;
	bio_list_add(&lane->waiting, bio);
}

/* A real-time kernel's spinlocks sleep, and lend their priority instead. */
static void pin_cpu(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
}

static void unpin_cpu(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
}

/*
 * Up to what the bio needs; @behind: the writer does not follow. 0: it waits now, or is given back;
 * if it waited already, it is still the caller's. While other bios wait a new one waits behind
 * them; while zones are short all do.
 */
static u32 reserve_slots(struct lane *lane, struct bio *bio, bool waited, u64 *pos, bool *behind)
{
	u32 want = min(bio->bi_iter.bi_size >> MTFTL_BLOCK_SHIFT, RESERVE_MAX);
	bool back = false;
	unsigned long flags;
	u32 n = 0;

	spin_lock_irqsave(&lane->ring->lock, flags);
	if ((waited || bio_list_empty(&lane->waiting)) && !is_shut(lane))
		n = min_t(u64, want, lane->ring->entries - (lane->ring->head - lane->ring->tail));
	*pos = lane->ring->head;
	*behind = !waited && is_behind(lane);
	if (mtftl_space_is_slowed(lane->ftl))
		atomic_sub(n, &lane->allowance);
	mtftl_assert(mtftl_ring_is_sound(lane->ring), "lane %u: tail %llu next %llu head %llu",
		     lane->index, lane->ring->tail, lane->ring->next, lane->ring->head);
	mtftl_assert(lane->ring->head + n - lane->ring->tail <= lane->ring->entries, "%u slots", n);
	if (n)
		WRITE_ONCE(lane->ring->head, lane->ring->head + n);
	else if (!waited && mtftl_device_gives_back(lane->ftl))
		back = true;
	else if (!waited)
		queue_up(lane, bio);
	spin_unlock_irqrestore(&lane->ring->lock, flags);
	if (back)
		mtftl_give_back(bio);
	return n;
}

/* A FUA write may have put its block into a slot of another lane. */
static void kick_owner(struct mtftl *ftl, u32 value)
{
	mtftl_assert(mtftl_map_ring(ftl, value) < ftl->lanes->nr, "%#x", value);
	lane_kick(&ftl->lanes->all[mtftl_map_ring(ftl, value)]);
}

/*
 * False: the bio waits in lane->waiting, and may be gone already; if it @waited before, it is still
 * the caller's. A task that has reserved slots is not preempted before they are filled. If it were,
 * the lane, and with it flushes, resets and checkpoints, would wait until the task has a CPU again.
 */
static bool insert_bio(struct lane *lane, struct bio *bio, bool waited)
{
	bool through = bio->bi_opf & REQ_FUA && mtftl_bio(bio)->through;
	struct mtftl *ftl = lane->ftl;
	u8 hint = ftl->config.write_hints ? mtftl_bio_hint(bio) : 0;
	u32 n = 0, written = 0;
	bool behind = false;
	u64 pos = 0;

	mtftl_assert(!(bio->bi_iter.bi_size % MTFTL_BLOCK_SIZE) &&
		     !(bio->bi_iter.bi_sector % MTFTL_BLOCK_SECTORS), "%u bytes at %llu",
		     bio->bi_iter.bi_size, (u64)bio->bi_iter.bi_sector);
	while (bio->bi_iter.bi_size) {
		u32 lba = bio->bi_iter.bi_sector / MTFTL_BLOCK_SECTORS;
		struct mtftl_slot *slot;
		u32 value, at;
		void *data;

		if (!n) {
			at = mtftl_map_look(ftl, lba);
			at = mtftl_is_slot(at) ? mtftl_map_overwrite(ftl, lba, bio, through) :
			     MTFTL_MAP_UNMAPPED;
			if (at != MTFTL_MAP_UNMAPPED) {
				if (through)
					kick_owner(ftl, at);
				mtftl_count(ftl, user_overwrites, 1);
				written++;
				continue;
			}
			pin_cpu();
			n = reserve_slots(lane, bio, waited, &pos, &behind);
			if (!n) {
				unpin_cpu();
				mtftl_count(ftl, user_writes, written);
				return false;
			}
			trace_mtftl_insert(mtftl_dev(ftl), lane->index, lba, n,
					   mtftl_ring_used(lane->ring));
		}
		value = mtftl_ring_value(lane->ring, pos);
		slot = mtftl_ring_slot(lane->ring, pos, &data);
		mtftl_bio_to_slot(bio, data);
		slot->hint = hint;
		/* The data is in this CPU's cache, and the writer has enough to do. */
		slot->summed = behind;
		if (behind)
			slot->crc = mtftl_write_checksum(ftl, data);
		at = mtftl_map_publish(ftl, lba, slot, value, through);
		if (through && at != value)
			kick_owner(ftl, at);
		written++;
		pos++;
		if (!--n)
			unpin_cpu();
	}
	mtftl_count(ftl, user_writes, written);
	return true;
}

/* Writer only; those that did not wait are not counted here. */
static void count_latency(struct lane *lane, u64 since)
{
	u64 us = div_u64(ktime_get_ns() - since, NSEC_PER_USEC);

	mtftl_assert(since, "lane %u", lane->index);
	lane->latency[min_t(u32, fls64(us), LATENCIES - 1)]++;
}

static void write_done(struct mtftl *ftl, struct bio *bio)
{
	if (bio->bi_opf & REQ_FUA)
		mtftl_map_through(ftl, bio);
	else
		bio_endio(bio);
}

/* All of them, or the first one. */
static struct bio_list take_waiting(struct lane *lane, bool all)
{
	struct bio_list bios = BIO_EMPTY_LIST;
	struct bio *bio;

	spin_lock_irq(&lane->ring->lock);
	if (all) {
		bio_list_merge(&bios, &lane->waiting);
		bio_list_init(&lane->waiting);
	} else {
		bio = bio_list_pop(&lane->waiting);
		if (bio)
			bio_list_add(&bios, bio);
	}
	spin_unlock_irq(&lane->ring->lock);
	return bios;
}

static void fail_waiting(struct lane *lane)
{
	struct bio_list bios = take_waiting(lane, true);
	struct bio *bio;

	while ((bio = bio_list_pop(&bios)))
		bio_io_error(bio);
}

/* The device gives back: all bios that wait, and none waits afterwards. */
void mtftl_lanes_give_back(struct mtftl *ftl)
{
	struct bio_list bios;
	struct bio *bio;
	unsigned int i;

	for (i = 0; i < ftl->lanes->nr; i++) {
		bios = take_waiting(&ftl->lanes->all[i], true);
		while ((bio = bio_list_pop(&bios)))
			mtftl_give_back(bio);
	}
	mtftl_map_through_again(ftl);
}

/* Bios that found no room wait on, ahead of those that came meanwhile, or are given back. */
static void wait_again(struct lane *lane, struct bio_list *bios)
{
	struct bio *bio;

	spin_lock_irq(&lane->ring->lock);
	/* The code that sets this takes the lock afterwards, and then the list. */
	if (!mtftl_device_gives_back(lane->ftl)) {
		bio_list_merge_head(&lane->waiting, bios);
		bio_list_init(bios);
	}
	spin_unlock_irq(&lane->ring->lock);
	while ((bio = bio_list_pop(bios)))
		mtftl_give_back(bio);
}

/*
 * All bios that wait leave the list at once. From then on users insert on their own CPUs. If the
 * bios left one by one, users whose writes have ended would come back before the list is empty,
 * queue behind the others, and the writer would insert for all of them. While users are slowed, the
 * order in which they came counts.
 */
static bool lane_admit(struct lane *lane)
{
	struct bio_list bios;
	struct bio *bio;
	u64 since;

	if (mtftl_is_read_only(lane->ftl)) {
		fail_waiting(lane);
		return false;
	}
	if (!may_admit(lane))
		return false;
	bios = take_waiting(lane, !mtftl_space_is_slowed(lane->ftl));
	while ((bio = bio_list_pop(&bios))) {
		since = mtftl_bio(bio)->since;
		if (!insert_bio(lane, bio, true)) {
			bio_list_add_head(&bios, bio);
			wait_again(lane, &bios);
			break;
		}
		count_latency(lane, since);
		write_done(lane->ftl, bio);
	}
	return true;
}

/*
 * Which lane takes a user's write
 *
 * The user's own CPU also runs its lane's writer. So a user with idle neighbours goes to a
 * neighbour's lane on its node, where the writer has a CPU to itself. If all CPUs are busy, users
 * stay at home, and wait there when the lane is full. Only a user that would queue behind others
 * there goes where room is. The choice is kept for a jiffy, or until the lane is full: each move
 * wakes another writer. These are hints: a wrong one costs time, nothing else, so nothing here is
 * locked.
 */

static bool is_full(const struct lane *lane)
{
	return mtftl_ring_used(lane->ring) >= lane->ring->entries;
}

/* More users than it has slots for: a user that waits leaves its CPU to the writer. */
static bool is_crowded(const struct lane *lane)
{
	return is_full(lane) && is_waited_for(lane);
}

/* Its CPU has no user of its own, and no other lane's user has come to it. */
static bool is_spare(struct mtftl *ftl, struct lane *lane, struct lane *home)
{
	unsigned long seen = READ_ONCE(per_cpu_ptr(ftl->lanes->cpus, lane->cpu)->seen);

	if (time_before(jiffies, seen + SPARE_AFTER))
		return false;
	return READ_ONCE(lane->guest) == home->index ||
	       time_after_eq(jiffies, READ_ONCE(lane->guest_seen) + SPARE_AFTER);
}

/* What crosses to another node and back costs more than its idle CPU gives. */
static bool is_near(const struct lane *lane, const struct lane *home)
{
	return cpu_to_node(lane->cpu) == cpu_to_node(home->cpu);
}

/* Look at a few lanes besides @first: each look touches lines that its CPU and its users write. */
static struct lane *find_spare(struct mtftl *ftl, struct cpu_choice *here, struct lane *first,
			       struct lane *home)
{
	unsigned int i, nr = min(ftl->lanes->nr, NEIGHBOURS), looked = READ_ONCE(here->looked);
	struct lane *lane = first;

	for (i = 0; i <= nr; i++) {
		if (i)
			lane = &ftl->lanes->all[(looked + i) % ftl->lanes->nr];
		if (lane->cpu == home->cpu || !is_near(lane, home) ||
		    !is_spare(ftl, lane, home) || is_full(lane))
			continue;
		WRITE_ONCE(lane->guest, home->index);
		WRITE_ONCE(lane->guest_seen, jiffies);
		WRITE_ONCE(here->looked, lane->index);
		return lane;
	}
	WRITE_ONCE(here->looked, (looked + nr) % ftl->lanes->nr);
	return NULL;
}

/* A neighbour that is not full, for a user that would queue; NULL: none of the next few. */
static struct lane *find_room(struct mtftl *ftl, struct lane *first, struct lane *home)
{
	unsigned int i, nr = min(ftl->lanes->nr, NEIGHBOURS);
	struct lane *lane;

	for (i = 0; i < nr; i++) {
		lane = &ftl->lanes->all[(first->index + i) % ftl->lanes->nr];
		if (lane != home && is_near(lane, home) && !is_full(lane))
			return lane;
	}
	return NULL;
}

static struct lane *choose_lane(struct mtftl *ftl, struct cpu_choice *here, struct lane *home)
{
	struct lane *first = here->lane ?: home;
	struct lane *lane = find_spare(ftl, here, first, home);

	if (!lane && is_crowded(home))
		lane = find_room(ftl, first, home);
	WRITE_ONCE(here->seen, jiffies);
	here->lane = lane ?: home;
	return here->lane;
}

static struct lane *usual_lane(struct mtftl *ftl)
{
	struct cpu_choice *here = raw_cpu_ptr(ftl->lanes->cpus);
	struct lane *home = here->home, *lane = READ_ONCE(here->lane);

	mtftl_assert(home && home->index < ftl->lanes->nr);
	if (lane && time_before_eq(jiffies, here->seen) &&
	    !(lane == home ? is_crowded(lane) : is_full(lane)))
		return lane;
	return choose_lane(ftl, here, home);
}

/*
 * Gathering
 *
 * A drive programs a whole program unit for a flush, and one for each zone that was written to. A
 * file system writes its journal on another CPU than the data, so in lanes of their own they would
 * be two units in two zones, perhaps on one die. So as long as all that is written between two
 * flushes fits into one unit, one lane takes it. What does not fit any more goes its usual way.
 */

static bool is_gathering(const struct mtftl_lanes *lanes)
{
	return time_before(jiffies, READ_ONCE(lanes->gather_until));
}

bool mtftl_lanes_go_through(const struct mtftl *ftl)
{
	return is_gathering(ftl->lanes) && READ_ONCE(ftl->lanes->through);
}

void mtftl_lanes_gather(struct mtftl *ftl, u64 blocks, bool through)
{
	struct mtftl_lanes *lanes = ftl->lanes;
	bool gather = blocks <= ftl->config.write_unit;

	if (gather && !is_gathering(lanes))
		WRITE_ONCE(lanes->gathers, NULL);
	if (gather || is_gathering(lanes))
		WRITE_ONCE(lanes->gather_until, jiffies + (gather ? GATHER : 0));
	if (through != lanes->through)
		WRITE_ONCE(lanes->through, through);
}

/* A flush comes: the writer begins while the flusher wakes up. */
void mtftl_lanes_hurry(struct mtftl *ftl)
{
	struct lane *lane = READ_ONCE(ftl->lanes->gathers);

	if (!lane || !is_gathering(ftl->lanes) || !mtftl_ring_unsent(lane->ring))
		return;
	WRITE_ONCE(lane->overdue, true);
	lane_kick(lane);
}

static bool gathers(const struct lane *lane, const struct bio *bio)
{
	u32 blocks = bio->bi_iter.bi_size >> MTFTL_BLOCK_SHIFT;
	const struct cpu_choice *here = raw_cpu_ptr(lane->ftl->lanes->cpus);

	return is_near(lane, here->home) && !is_full(lane) && !is_waited_for(lane) &&
	       mtftl_ring_unsent(lane->ring) + blocks <= lane->ftl->config.write_unit;
}

static struct lane *pick_lane(struct mtftl *ftl, const struct bio *bio)
{
	struct mtftl_lanes *lanes = ftl->lanes;
	struct lane *lane, *gatherer;

	if (!is_gathering(lanes))
		return usual_lane(ftl);
	gatherer = READ_ONCE(lanes->gathers);
	if (gatherer && gathers(gatherer, bio))
		return gatherer;
	lane = usual_lane(ftl);
	if (!gatherer)
		WRITE_ONCE(lanes->gathers, lane);
	return lane;
}

/* A user's write: never sleeps. Completes the bio, now or later. */
void mtftl_lane_write(struct mtftl *ftl, struct bio *bio)
{
	struct lane *lane = pick_lane(ftl, bio);

	if (unlikely(mtftl_is_read_only(ftl))) {
		bio_io_error(bio);
		return;
	}
	if (bio->bi_opf & REQ_FUA)
		mtftl_map_through_begin(ftl, bio);
	if (insert_bio(lane, bio, false))
		write_done(ftl, bio);
	else
		mtftl_count(ftl, waits, 1);
	lane_kick(lane);
	limit_wait(lane);
}

/* The writer thread */

/* False: nothing could be done. */
static bool lane_work(struct lane *lane)
{
	bool busy, worked = false;
	struct blk_plug plug;

	blk_start_plug(&plug);
	do {
		WRITE_ONCE(lane->turns, lane->turns + 1);
		busy = lane_admit(lane);
		busy |= lane_send(lane);
		worked |= busy;
		cond_resched();
	} while (busy);
	blk_finish_plug(&plug);
	return worked;
}

static int lane_writer(void *data)
{
	unsigned int flags = memalloc_noio_save(), vain = 0;
	struct lane *lane = data;

	mtftl_thread_hurries();
	while (!kthread_should_stop()) {
		vain = lane_work(lane) ? 0 : vain + 1;
		if (writer_sleep(lane)) {
			vain = 0;
		} else if (vain >= VAIN) {
			/*
			 * What it needs next is reserved, and its user has not filled it yet. With
			 * PREEMPT_RT that user may wait for this CPU, at a lower priority.
			 */
			usleep_range_state(MOMENT, 2 * MOMENT, TASK_IDLE);
			vain = 0;
		}
	}
	memalloc_noio_restore(flags);
	return 0;
}

/*
 * When a CPU goes the scheduler moves its writer to another one, where it goes on; when
 * the CPU comes back, so does the writer. A CPU that comes back unbinds all threads that were made
 * for a node.
 */
static enum cpuhp_state cpu_online_state;

static int cpu_online_again(unsigned int cpu, struct hlist_node *node)
{
	struct mtftl_lanes *lanes = hlist_entry(node, struct mtftl_lanes, cpu_node);
	struct lane *lane;

	for (lane = lanes->all; lane < lanes->all + lanes->nr; lane++)
		if ((lane->cpu == cpu || !lane->away) && cpu_online(lane->cpu) &&
		    !cpumask_equal(&lane->writer->cpus_mask, cpumask_of(lane->cpu)))
			set_cpus_allowed_ptr(lane->writer, cpumask_of(lane->cpu));
	return 0;
}

int __init mtftl_lanes_init(void)
{
	int r = cpuhp_setup_state_multi(CPUHP_AP_ONLINE_DYN, "dm-mtftl:online",
					cpu_online_again, NULL);

	if (r < 0)
		return r;
	cpu_online_state = r;
	return 0;
}

void mtftl_lanes_exit(void)
{
	cpuhp_remove_multi_state(cpu_online_state);
}

int mtftl_lanes_start(struct mtftl *ftl)
{
	struct mtftl_lanes *lanes = ftl->lanes;
	unsigned int i;
	int r;

	mtftl_assert(mtftl_rings_are_empty(ftl));
	for (i = 0; i < lanes->nr; i++) {
		kthread_unpark(lanes->all[i].writer);
		watch(&lanes->all[i]);
	}
	/* Binds them: the callback runs for each CPU that is online. */
	r = cpuhp_state_add_instance(cpu_online_state, &lanes->cpu_node);
	lanes->cpus_watched = !r;
	return r;
}

/*
 * A task of a higher class may keep a writer's CPU as long as it likes, while users and flushes
 * wait. The writer then moves to another CPU. After a while it tries its own again. A writer that
 * waits for the drive may be taken for starved; that costs it no more than its CPU's caches.
 */
static void send_away(struct mtftl_lanes *lanes, struct lane *lane)
{
	int cpu = task_cpu(lane->writer);
	bool allowed = cpumask_test_and_clear_cpu(cpu, lanes->allowed);

	if (!cpumask_empty(lanes->allowed)) {
		set_cpus_allowed_ptr(lane->writer, lanes->allowed);
		lane->away = jiffies | 1;
	}
	if (allowed)
		cpumask_set_cpu(cpu, lanes->allowed);
}

static void place_writers(struct work_struct *work)
{
	struct mtftl_lanes *lanes = container_of(work, struct mtftl_lanes, place.work);
	bool away = false;
	struct lane *lane;

	/* A CPU that goes is still online for a while. What moves there then is left behind. */
	if (!cpus_read_trylock()) {
		queue_delayed_work(lanes->wq, &lanes->place, LOOK);
		return;
	}
	mtftl_thread_cpus(lanes->allowed);
	for (lane = lanes->all; lane < lanes->all + lanes->nr; lane++) {
		if (READ_ONCE(lane->starved)) {
			WRITE_ONCE(lane->starved, false);
			send_away(lanes, lane);
		} else if (lane->away && time_after_eq(jiffies, lane->away + AWAY)) {
			lane->away = 0;
			if (cpu_online(lane->cpu))
				set_cpus_allowed_ptr(lane->writer, cpumask_of(lane->cpu));
		}
		away |= lane->away;
	}
	cpus_read_unlock();
	if (away)
		queue_delayed_work(lanes->wq, &lanes->place, AWAY);
}

/* No unit of theirs is in flight. */
bool mtftl_lanes_landed(struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ftl->lanes->nr; i++)
		if (READ_ONCE(ftl->lanes->all[i].units_in_flight))
			return false;
	return true;
}

bool mtftl_lanes_stuck(struct mtftl *ftl, bool drain)
{
	bool stuck = false;
	unsigned int i;

	for (i = 0; i < ftl->lanes->nr; i++) {
		struct lane *lane = &ftl->lanes->all[i];

		if (drain ? mtftl_ring_is_drained(lane->ring) : !mtftl_ring_used(lane->ring))
			continue;
		stuck = READ_ONCE(lane->stalled) == NO_PLACE && is_stalled(lane);
		if (!stuck)
			break;
	}
	return stuck;
}

void mtftl_lanes_tell_latency(struct mtftl *ftl, char *result, unsigned int maxlen)
{
	unsigned int sz = 0, i, b;

	for (i = 0; i < ftl->lanes->nr; i++) {
		DMEMIT("%u", i);
		for (b = 0; b < LATENCIES; b++)
			DMEMIT(" %llu", READ_ONCE(ftl->lanes->all[i].latency[b]));
		DMEMIT("\n");
	}
}

void mtftl_lanes_stop(struct mtftl *ftl)
{
	struct mtftl_lanes *lanes = ftl->lanes;
	unsigned int i;

	if (!lanes)
		return;
	if (lanes->cpus_watched)
		cpuhp_state_remove_instance(cpu_online_state, &lanes->cpu_node);
	lanes->cpus_watched = false;
	mtftl_device_give_up(ftl);
	mtftl_space_appeared(ftl);
	for (i = 0; i < lanes->nr; i++) {
		if (!lanes->all[i].writer)
			continue;
		kthread_stop(lanes->all[i].writer);
		timer_delete_sync(&lanes->all[i].timer);
		/* The writer is not woken any more. */
		timer_delete_sync(&lanes->all[i].watch);
	}
	cancel_delayed_work_sync(&lanes->place);
	/* Completions of units may still look at the lane: see mtftl_writes_settle(). */
	mtftl_space_await(ftl, mtftl_lanes_landed(ftl), MAX_SCHEDULE_TIMEOUT);
	for (i = 0; i < lanes->nr; i++)
		mtftl_assert(bio_list_empty(&lanes->all[i].waiting), "lane %u", i);
}

static int lane_alloc(struct lane *lane)
{
	u32 i, write_unit = lane->ftl->config.write_unit;
	struct mtftl_write *unit;

	mtftl_assert(write_unit && write_unit <= lane->ftl->config.unit_max, "%u blocks",
		     write_unit);
	for (i = 0; i < clamp(lane->ring->entries / write_unit, UNITS_MIN, UNITS_MAX); i++) {
		unit = mtftl_write_alloc(lane->ftl, write_unit, cpu_to_node(lane->cpu), &unit_owner,
					 lane);
		if (!unit)
			return -ENOMEM;
		unit->lane = lane->index;
		list_add(&unit->list, &lane->free_units);
	}
	lane->writer = mtftl_thread(lane_writer, lane, lane->cpu, "mtftl/%s/%u",
				    mtftl_disk_name(lane->ftl), lane->index);
	if (!lane->writer)
		return -ENOMEM;
	/* The writer may end before completions wake it, or before it is moved to another CPU. */
	get_task_struct(lane->writer);
	return 0;
}

/* Lanes are on the CPUs that threads may use, in their order; so are the homes of other CPUs. */
static void set_homes(struct mtftl_lanes *lanes, unsigned int nr)
{
	unsigned int i, cpus = mtftl_thread_nr_cpus();
	int cpu;

	for_each_possible_cpu(cpu) {
		per_cpu_ptr(lanes->cpus, cpu)->home = &lanes->all[cpu % nr];
		per_cpu_ptr(lanes->cpus, cpu)->seen = jiffies - SPARE_AFTER;
	}
	for (i = 0, cpu = -1; i < cpus; i++) {
		cpu = mtftl_thread_next_cpu(cpu);
		per_cpu_ptr(lanes->cpus, cpu)->home = &lanes->all[i % nr];
	}
	for_each_possible_cpu(cpu)
		per_cpu_ptr(lanes->cpus, cpu)->looked =
			per_cpu_ptr(lanes->cpus, cpu)->home - lanes->all;
}

int mtftl_lanes_alloc(struct mtftl *ftl)
{
	unsigned int nr = ftl->config.nr_lanes;
	struct mtftl_lanes *lanes;
	int r = 0;

	lanes = kvzalloc(struct_size(lanes, all, nr), GFP_KERNEL);
	if (!lanes)
		return -ENOMEM;
	ftl->lanes = lanes;
	INIT_DELAYED_WORK(&lanes->place, place_writers);
	lanes->gather_until = jiffies;
	lanes->cpus = alloc_percpu(struct cpu_choice);
	if (!lanes->cpus || !zalloc_cpumask_var(&lanes->allowed, GFP_KERNEL))
		return -ENOMEM;
	lanes->wq = alloc_workqueue("mtftl-cpus-%s", WQ_MEM_RECLAIM | WQ_UNBOUND, 1,
				    mtftl_disk_name(ftl));
	if (!lanes->wq)
		return -ENOMEM;
	set_homes(lanes, nr);
	for (; !r && lanes->nr < nr; lanes->nr++) {
		struct lane *lane = &lanes->all[lanes->nr];

		lane->ftl = ftl;
		lane->ring = mtftl_ring(ftl, lanes->nr);
		lane->index = lanes->nr;
		lane->cpu = lane->ring->cpu;
		lane->batch = max(ftl->config.write_unit, min(BATCH_MIN, lane->ring->entries / 2));
		lane->enough = lane->batch;
		mtftl_follow_init(&lane->follow);
		lane->span = min(lane->ring->entries / 2,
				 2 * ftl->config.budget.user_classes * ftl->config.write_unit);
		/* Slots become free in order: the oldest must not hold up more than a quarter. */
		lane->ahead = max3(lane->ring->entries / 4, lane->span, 1u);
		/* What leaves waiting users room, all lanes together a zone, in whole units. */
		lane->held = min(admit_below(lane->ring),
				 max(ftl->config.capacity / nr, ftl->config.write_unit));
		lane->guest = lane->index;
		lane->guest_seen = jiffies - SPARE_AFTER;
		lane->crowded = jiffies - BEHIND;
		timer_setup(&lane->timer, lane_overdue, 0);
		timer_setup(&lane->watch, lane_watch, 0);
		bio_list_init(&lane->waiting);
		INIT_LIST_HEAD(&lane->free_units);
		mtftl_assert(lane->ring->entries >= lane->batch / 2 &&
			     lane->span <= lane->ring->entries);
		r = lane_alloc(lane);
	}
	mtftl_space_on_appeared(ftl, mtftl_lanes_kick);
	return r;
}

void mtftl_lanes_free(struct mtftl *ftl)
{
	struct mtftl_write *unit, *next;
	struct mtftl_lanes *lanes = ftl->lanes;
	u32 i;

	if (!lanes)
		return;
	/* A completion that came late may have set these once more. */
	for (i = 0; i < lanes->nr; i++)
		timer_delete_sync(&lanes->all[i].watch);
	if (lanes->wq) {
		cancel_delayed_work_sync(&lanes->place);
		destroy_workqueue(lanes->wq);
	}
	for (i = 0; i < lanes->nr; i++) {
		list_for_each_entry_safe(unit, next, &lanes->all[i].free_units, list)
			mtftl_write_free(unit);
		if (lanes->all[i].writer)
			put_task_struct(lanes->all[i].writer);
	}
	free_percpu(lanes->cpus);
	free_cpumask_var(lanes->allowed);
	kvfree(lanes);
	ftl->lanes = NULL;
}
