// SPDX-License-Identifier: GPL-2.0
/*
 * A lane: a ring of 4 KiB slots and the thread that writes them out.
 *
 * Positions only grow: tail <= next <= head <= tail + entries. Writers of the device
 * above ("users") reserve at head and fill without a lock; the lane's thread composes
 * from next, as far as slots are filled; completions free at tail, in order. A flush
 * waits until tail has passed the head that it saw.
 *
 * lane->lock protects head, tail, waiting bios and free units; next belongs to the
 * lane's thread. Slots change under their shard's lock, see l2p.c.
 */
#include "ftl.h"
#include "trace.h"

#include <linux/cpuhotplug.h>
#include <linux/jiffies.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#define UNITS_MIN	4u
#define UNITS_MAX	32u
#define BATCH_MIN	32u	/* blocks that are worth waking the writer for */
#define RESERVE_MAX	32u	/* blocks that are copied without being preempted */
#define AWAY		(2 * HZ)	/* a writer keeps off a CPU that it did not get */
#define SPARE_AFTER	2	/* jiffies without a user of its own */

struct mtftl_slot *mtftl_slot(struct mtftl *ftl, u32 value, void **data)
{
	u32 slot = value - MTFTL_MAP_SLOTS;
	struct mtftl_lane *lane = &ftl->lanes[slot >> ftl->lane_shift];
	u32 index = slot & lane->mask;

	if (data)
		*data = lane->chunks[index >> MTFTL_BUFFER_ORDER] +
			(index & ((1u << MTFTL_BUFFER_ORDER) - 1)) * MTFTL_BLOCK_SIZE;
	return &lane->slots[index];
}

static inline u32 lane_value(const struct mtftl_lane *lane, u64 pos)
{
	return lane->first_slot + ((u32)pos & lane->mask);
}

/* The writer: when to compose, when to sleep */

static bool next_is_filled(struct mtftl_lane *lane)
{
	u64 next = READ_ONCE(lane->next);

	return next != READ_ONCE(lane->head) &&
	       READ_ONCE(lane->slots[(u32)next & lane->mask].state) == MTFTL_SLOT_FILLED;
}

static bool is_drained(struct mtftl_lane *lane)
{
	return READ_ONCE(lane->drain_to) <= READ_ONCE(lane->next);
}

/* It was refused, and nothing has changed since. */
static bool is_stalled(struct mtftl_lane *lane)
{
	switch (READ_ONCE(lane->stalled)) {
	case MTFTL_NO_CREDIT:
		if (!is_drained(lane))
			return false;
		fallthrough;
	case MTFTL_NO_PLACE:
		return READ_ONCE(lane->stalled_at) == (u32)atomic_read(&lane->ftl->space_gen);
	default:
		return false;
	}
}

/*
 * Full units go at once. Less than that goes when somebody waits for it, or has waited
 * for company long enough: it was acknowledged already, so nobody is delayed by that.
 */
static bool may_compose(struct mtftl_lane *lane, u64 filled, u32 enough)
{
	return filled >= enough || !is_drained(lane) || READ_ONCE(lane->overdue);
}

/* Waiting bios are admitted many at a time, so that those woken do not run one by one. */
static bool may_admit(struct mtftl_lane *lane)
{
	u64 used = READ_ONCE(lane->head) - READ_ONCE(lane->tail);

	if (bio_list_empty(&lane->waiting) || used >= lane->entries || READ_ONCE(lane->ftl->gated))
		return false;
	return used <= lane->entries - lane->entries / 4 ||
	       (!READ_ONCE(lane->units_in_flight) && !next_is_filled(lane));
}

static bool has_work(struct mtftl_lane *lane)
{
	if (READ_ONCE(lane->ftl->read_only))
		return !bio_list_empty(&lane->waiting);
	if (may_admit(lane))
		return true;
	if (!next_is_filled(lane) || READ_ONCE(lane->ftl->paused))
		return false;
	if (is_stalled(lane))
		return false;
	/* Small units are worth waking up for several at a time only. */
	return !list_empty(&lane->free_units) &&
	       may_compose(lane, READ_ONCE(lane->head) - READ_ONCE(lane->next), lane->batch);
}

static void wake_writer(struct mtftl_lane *lane)
{
	if (xchg(&lane->asleep, false))
		wake_up_process(lane->writer);
}

/* Any context. Whoever gave the writer something to do calls this afterwards. */
void mtftl_lane_kick(struct mtftl_lane *lane)
{
	/* Pairs with the barrier in writer_sleep(): it sees the work, or we see it asleep. */
	smp_mb();
	if (READ_ONCE(lane->asleep) && has_work(lane))
		wake_writer(lane);
}

/* Too little for a unit: it goes after a jiffy, whatever comes. */
static void limit_wait(struct mtftl_lane *lane)
{
	if (!timer_pending(&lane->timer) && next_is_filled(lane))
		mod_timer(&lane->timer, jiffies + 1);
}

static void lane_overdue(struct timer_list *timer)
{
	struct mtftl_lane *lane = timer_container_of(lane, timer, timer);

	WRITE_ONCE(lane->overdue, true);
	mtftl_lane_kick(lane);
}

void mtftl_lanes_kick(struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ftl->nr_lanes; i++)
		mtftl_lane_kick(&ftl->lanes[i]);
}

/* A zone, or users' credit: whoever was refused may try again. Any context. */
void mtftl_space_appeared(struct mtftl *ftl)
{
	atomic_inc(&ftl->space_gen);
	/* Pairs with mtftl_redo_work(): it sees the new generation, or its unit is seen here. */
	smp_mb__after_atomic();
	mtftl_lanes_kick(ftl);
	if (!list_empty(&ftl->redo))
		mod_delayed_work(ftl->wq, &ftl->redo_work, 0);
	if (wq_has_sleeper(&ftl->drain_wait))
		wake_up_all(&ftl->drain_wait);
}

static void writer_sleep(struct mtftl_lane *lane)
{
	set_current_state(TASK_IDLE);
	WRITE_ONCE(lane->asleep, true);
	/* Pairs with the barrier in mtftl_lane_kick(). */
	smp_mb();
	if (!has_work(lane) && !kthread_should_stop()) {
		limit_wait(lane);
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	WRITE_ONCE(lane->asleep, false);
}

/* Composing */

/* Slots from next on that are filled, @max at most. */
static u32 count_filled(struct mtftl_lane *lane, u32 max)
{
	u64 pos = lane->next;
	u32 n = 0;

	max = min_t(u64, max, READ_ONCE(lane->head) - pos);
	/* Pairs with mtftl_map_publish(). */
	while (n < max && smp_load_acquire(&lane->slots[(u32)(pos + n) & lane->mask].state) ==
			  MTFTL_SLOT_FILLED)
		n++;
	return n;
}

static struct mtftl_unit_io *get_unit(struct mtftl_lane *lane)
{
	struct mtftl_unit_io *unit;

	spin_lock_irq(&lane->lock);
	unit = list_first_entry_or_null(&lane->free_units, struct mtftl_unit_io, list);
	if (unit) {
		list_del_init(&unit->list);
		lane->units_in_flight++;
	}
	spin_unlock_irq(&lane->lock);
	return unit;
}

/* Free what is done at the tail, in order. */
static void advance_tail(struct mtftl_lane *lane)
{
	u64 tail = lane->tail;

	lockdep_assert_held(&lane->lock);
	while (tail != lane->next) {
		struct mtftl_slot *slot = &lane->slots[(u32)tail & lane->mask];

		/* Pairs with mtftl_map_complete(). */
		if (smp_load_acquire(&slot->state) != MTFTL_SLOT_DONE)
			break;
		slot->state = MTFTL_SLOT_FREE;
		tail++;
	}
	/* Pairs with lanes_drained(). */
	smp_store_release(&lane->tail, tail);
	trace_mtftl_free(lane, lane->head - tail);
}

static void put_unit(struct mtftl_lane *lane, struct mtftl_unit_io *unit)
{
	unsigned long flags;
	bool empty;

	spin_lock_irqsave(&lane->lock, flags);
	list_add(&unit->list, &lane->free_units);
	WRITE_ONCE(lane->units_in_flight, lane->units_in_flight - 1);
	advance_tail(lane);
	empty = lane->tail == lane->head;
	spin_unlock_irqrestore(&lane->lock, flags);

	/*
	 * GC may have more of the reserve when the buffers are empty. Either way sleepers are
	 * woken; wq_has_sleeper() orders the new tail before the look.
	 */
	if (empty && READ_ONCE(lane->ftl->gated))
		mtftl_space_appeared(lane->ftl);
	else if (wq_has_sleeper(&lane->ftl->drain_wait))
		wake_up_all(&lane->ftl->drain_wait);
}

/*
 * Completed: slots are published already. Any context. After a failure that nothing could
 * help the slots stay as they are: their data can still be read.
 */
void mtftl_lane_unit_done(struct mtftl_unit_io *unit, blk_status_t status)
{
	struct mtftl_lane *lane = unit->lane;

	put_unit(lane, unit);
	mtftl_lane_kick(lane);
}

static bool lane_compose(struct mtftl_lane *lane)
{
	struct mtftl *ftl = lane->ftl;
	struct mtftl_stream *stream;
	struct mtftl_unit_io *unit;
	u32 n, room, i;
	u64 seq, next;

	n = count_filled(lane, ftl->opt.write_unit);
	if (!n)
		WRITE_ONCE(lane->overdue, false);
	if (!n || READ_ONCE(ftl->read_only) || READ_ONCE(ftl->paused) ||
	    !may_compose(lane, READ_ONCE(lane->head) - lane->next, ftl->opt.write_unit))
		return false;
	if (is_stalled(lane))
		return false;
	/* Before the attempt: what appears during it counts as a change. */
	WRITE_ONCE(lane->stalled_at, atomic_read(&ftl->space_gen));
	WRITE_ONCE(lane->stalled, MTFTL_NO_PLACE);
	if (unlikely(READ_ONCE(ftl->super.clean)) && mtftl_super_dirty(ftl))
		return false;
	if (is_drained(lane) && mtftl_throttled(ftl)) {
		WRITE_ONCE(lane->stalled, MTFTL_NO_CREDIT);
		return false;
	}
	unit = get_unit(lane);
	if (!unit) {
		WRITE_ONCE(lane->stalled, MTFTL_NOT_STALLED);
		return false;
	}
	stream = mtftl_stream_find(ftl, lane->index, 2, MTFTL_RIGHT_USER, &room);
	if (!stream) {
		put_unit(lane, unit);
		return false;
	}
	WRITE_ONCE(lane->stalled, MTFTL_NOT_STALLED);
	n = min(n, room - 1);

	/*
	 * Only now, with the slots known: each of the n was published before this number was
	 * drawn, so a unit with an older copy of one of their blocks has a lower number.
	 */
	seq = atomic64_inc_return(&ftl->seq);
	mtftl_unit_start(unit, MTFTL_UNIT_DATA, seq);
	for (i = 0, next = lane->next; i < n; i++, next++) {
		u32 value = lane_value(lane, next);
		struct mtftl_slot *slot;
		void *data;

		slot = mtftl_slot(ftl, value, &data);
		if (mtftl_map_take(ftl, slot, value))
			mtftl_unit_add(unit, slot->lba, value, data);
	}
	if (unit->nr)
		mtftl_stream_take(stream, unit);
	mutex_unlock(&stream->lock);
	WRITE_ONCE(lane->next, next);
	trace_mtftl_unit_composed(lane, seq, n, unit->nr);

	if (!unit->nr) {
		put_unit(lane, unit);
		return true;
	}
	mtftl_charge(ftl, unit->nr);
	mtftl_count(ftl, units, 1);
	mtftl_count(ftl, data_blocks, unit->nr);
	mtftl_unit_compose(unit);
	mtftl_unit_submit(unit);
	return true;
}

/* Users: inserting */

/*
 * Up to what the bio needs; 0: it waits now, or still does, or is given back. Whoever comes while
 * others wait waits behind them; while zones are short all do.
 */
static u32 reserve_slots(struct mtftl_lane *lane, struct bio *bio, bool waited, u64 *pos)
{
	u32 want = min(bio->bi_iter.bi_size >> MTFTL_BLOCK_SHIFT, RESERVE_MAX);
	struct mtftl_bio *io = dm_per_bio_data(bio, sizeof(*io));
	bool back = false;
	unsigned long flags;
	u32 n = 0;

	spin_lock_irqsave(&lane->lock, flags);
	if ((waited || bio_list_empty(&lane->waiting)) && !READ_ONCE(lane->ftl->gated))
		n = min_t(u64, want, lane->entries - (lane->head - lane->tail));
	*pos = lane->head;
	if (n)
		WRITE_ONCE(lane->head, lane->head + n);
	else if (READ_ONCE(lane->ftl->giving_back))
		back = true;
	else if (waited)
		bio_list_add_head(&lane->waiting, bio);
	else
		bio_list_add(&lane->waiting, bio);
	if (!n && !waited && !back)
		io->since = ktime_get_ns();
	spin_unlock_irqrestore(&lane->lock, flags);
	if (back)
		mtftl_give_back(bio);
	return n;
}

/*
 * False: the bio waits in lane->waiting, and may be gone already. Nobody who has reserved slots is
 * preempted before they are filled: the lane, and with it flushes, resets and checkpoints, would
 * wait for him, whoever has his CPU.
 */
static bool insert_bio(struct mtftl_lane *lane, struct bio *bio, bool waited)
{
	struct mtftl *ftl = lane->ftl;
	u32 n = 0, written = 0;
	u64 pos = 0;

	while (bio->bi_iter.bi_size) {
		u32 lba = bio->bi_iter.bi_sector / MTFTL_BLOCK_SECTORS;
		struct mtftl_slot *slot;
		void *data;
		u32 value;

		if (!n) {
			if (mtftl_map_overwrite(ftl, lba, bio)) {
				mtftl_count(ftl, user_overwrites, 1);
				written++;
				continue;
			}
			mtftl_compat_preempt_disable();
			n = reserve_slots(lane, bio, waited, &pos);
			if (!n) {
				mtftl_compat_preempt_enable();
				mtftl_count(ftl, user_writes, written);
				return false;
			}
			trace_mtftl_insert(lane, lba, n, READ_ONCE(lane->head) -
						       READ_ONCE(lane->tail));
		}
		value = lane_value(lane, pos);
		slot = mtftl_slot(ftl, value, &data);
		mtftl_bio_to_slot(bio, data);
		mtftl_map_publish(ftl, lba, slot, value);
		written++;
		pos++;
		if (!--n)
			mtftl_compat_preempt_enable();
	}
	mtftl_count(ftl, user_writes, written);
	return true;
}

/* Writer only; those that did not wait are not counted here. */
static void count_latency(struct mtftl_lane *lane, u64 since)
{
	u64 us = div_u64(ktime_get_ns() - since, NSEC_PER_USEC);

	lane->latency[min_t(u32, fls64(us), MTFTL_LATENCIES - 1)]++;
}

static void write_done(struct mtftl *ftl, struct bio *bio)
{
	if (bio->bi_opf & REQ_FUA)
		mtftl_flush_bio(ftl, bio);
	else
		bio_endio(bio);
}

static struct bio_list take_waiting(struct mtftl_lane *lane)
{
	struct bio_list bios;

	spin_lock_irq(&lane->lock);
	bios = lane->waiting;
	bio_list_init(&lane->waiting);
	spin_unlock_irq(&lane->lock);
	return bios;
}

static void fail_waiting(struct mtftl_lane *lane)
{
	struct bio_list bios = take_waiting(lane);
	struct bio *bio;

	while ((bio = bio_list_pop(&bios)))
		bio_io_error(bio);
}

/* ftl->giving_back is set: those that wait, and nobody waits afterwards. */
void mtftl_lanes_give_back(struct mtftl *ftl)
{
	struct bio_list bios;
	struct bio *bio;
	unsigned int i;

	for (i = 0; i < ftl->nr_lanes; i++) {
		bios = take_waiting(&ftl->lanes[i]);
		while ((bio = bio_list_pop(&bios)))
			mtftl_give_back(bio);
	}
}

static bool lane_admit(struct mtftl_lane *lane)
{
	struct mtftl_bio *io;
	bool some = false;
	struct bio *bio;
	u64 since;

	if (READ_ONCE(lane->ftl->read_only)) {
		fail_waiting(lane);
		return false;
	}
	if (!may_admit(lane))
		return false;
	do {
		spin_lock_irq(&lane->lock);
		bio = NULL;
		if (lane->head - lane->tail < lane->entries)
			bio = bio_list_pop(&lane->waiting);
		spin_unlock_irq(&lane->lock);
		if (!bio)
			break;
		some = true;
		io = dm_per_bio_data(bio, sizeof(*io));
		since = io->since;
		if (!insert_bio(lane, bio, true))
			break;
		count_latency(lane, since);
		write_done(lane->ftl, bio);
	} while (1);
	return some;
}

/*
 * Which lane takes a user's write
 *
 * The user's own CPU also runs its lane's writer, so a user whose neighbours are idle
 * goes to a neighbour's lane, where the writer has a CPU to itself; with all CPUs busy
 * everybody stays at home. The choice is kept for a jiffy, or until the lane is full: each
 * move wakes another writer. Hints only: a wrong one costs time, nothing else, so nothing
 * here is locked.
 */

static u32 lane_used(struct mtftl_lane *lane)
{
	return READ_ONCE(lane->head) - READ_ONCE(lane->tail);
}

static bool is_full(struct mtftl_lane *lane)
{
	return lane_used(lane) >= lane->entries;
}

/* Its CPU has no user of its own, and no other lane's user has come to it. */
static bool is_spare(struct mtftl *ftl, struct mtftl_lane *lane, struct mtftl_lane *home)
{
	unsigned long seen = READ_ONCE(per_cpu_ptr(ftl->cpus, lane->cpu)->seen);

	if (time_before(jiffies, seen + SPARE_AFTER))
		return false;
	return READ_ONCE(lane->guest) == home->index ||
	       time_after_eq(jiffies, READ_ONCE(lane->guest_seen) + SPARE_AFTER);
}

static struct mtftl_lane *find_spare(struct mtftl *ftl, struct mtftl_lane *first,
				     struct mtftl_lane *home)
{
	struct mtftl_lane *lane;
	unsigned int i;

	for (i = 0; i < ftl->nr_lanes; i++) {
		lane = &ftl->lanes[(first->index + i) % ftl->nr_lanes];
		if (lane->cpu == home->cpu || is_full(lane) || !is_spare(ftl, lane, home))
			continue;
		WRITE_ONCE(lane->guest, home->index);
		WRITE_ONCE(lane->guest_seen, jiffies);
		return lane;
	}
	return NULL;
}

static struct mtftl_lane *choose_lane(struct mtftl *ftl, struct mtftl_cpu *here,
				      struct mtftl_lane *home)
{
	struct mtftl_lane *lane = find_spare(ftl, here->lane ?: home, home);
	unsigned int i;

	WRITE_ONCE(here->seen, jiffies);
	here->lane = lane ?: home;
	if (!lane && is_full(home))
		for (i = 0, lane = home; i < ftl->nr_lanes; i++)
			if (lane_used(&ftl->lanes[i]) < lane_used(lane))
				lane = &ftl->lanes[i];
	return lane ?: home;
}

static struct mtftl_lane *pick_lane(struct mtftl *ftl)
{
	struct mtftl_cpu *here = raw_cpu_ptr(ftl->cpus);
	struct mtftl_lane *lane = READ_ONCE(here->lane);

	if (lane && time_before_eq(jiffies, here->seen) && !is_full(lane))
		return lane;
	return choose_lane(ftl, here, &ftl->lanes[raw_smp_processor_id() % ftl->nr_lanes]);
}

/* A user's write: never sleeps. Completes the bio, now or later. */
void mtftl_lane_write(struct mtftl *ftl, struct bio *bio)
{
	struct mtftl_lane *lane = pick_lane(ftl);

	if (unlikely(READ_ONCE(ftl->read_only))) {
		bio_io_error(bio);
		return;
	}
	if (insert_bio(lane, bio, false))
		write_done(ftl, bio);
	else
		mtftl_count(ftl, waits, 1);
	mtftl_lane_kick(lane);
	limit_wait(lane);
}

/* The writer thread */

static int lane_writer(void *data)
{
	unsigned int flags = memalloc_noio_save();
	struct mtftl_lane *lane = data;
	struct blk_plug plug;
	bool busy;

	while (!kthread_should_stop()) {
		blk_start_plug(&plug);
		do {
			busy = lane_admit(lane);
			busy |= lane_compose(lane);
			cond_resched();
		} while (busy);
		blk_finish_plug(&plug);
		writer_sleep(lane);
	}
	memalloc_noio_restore(flags);
	return 0;
}

/*
 * When a CPU goes the scheduler moves its writer to another one, where it goes on; when
 * the CPU comes back, so does the writer.
 */
static enum cpuhp_state cpu_online_state;

static int cpu_online_again(unsigned int cpu, struct hlist_node *node)
{
	struct mtftl *ftl = hlist_entry(node, struct mtftl, cpu_node);
	unsigned int i;

	for (i = 0; i < ftl->nr_lanes; i++)
		if (ftl->lanes[i].cpu == cpu)
			set_cpus_allowed_ptr(ftl->lanes[i].writer, cpumask_of(cpu));
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
	unsigned int i;
	int r;

	for (i = 0; i < ftl->nr_lanes; i++)
		kthread_unpark(ftl->lanes[i].writer);
	/* Binds them: the callback runs for each CPU that is online. */
	r = cpuhp_state_add_instance(cpu_online_state, &ftl->cpu_node);
	ftl->cpus_watched = !r;
	return r;
}

/*
 * Flushes wait for writers. One whose CPU is taken by somebody of a higher class, as long as that
 * likes, goes to another CPU. Flusher only, like the next.
 */
void mtftl_lanes_free_writers(struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ftl->nr_lanes; i++) {
		struct mtftl_lane *lane = &ftl->lanes[i];

		if (READ_ONCE(lane->tail) >= lane->drain_to || !task_is_running(lane->writer) ||
		    READ_ONCE(lane->writer->on_cpu))
			continue;
		cpumask_andnot(ftl->elsewhere, cpu_online_mask, cpumask_of(lane->cpu));
		if (cpumask_empty(ftl->elsewhere))
			continue;
		set_cpus_allowed_ptr(lane->writer, ftl->elsewhere);
		lane->away = jiffies | 1;
	}
}

/* After a while they try their own CPU again. */
void mtftl_lanes_bind_writers(struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ftl->nr_lanes; i++) {
		struct mtftl_lane *lane = &ftl->lanes[i];

		if (!lane->away || time_before(jiffies, lane->away + AWAY))
			continue;
		lane->away = 0;
		if (cpu_online(lane->cpu))
			set_cpus_allowed_ptr(lane->writer, cpumask_of(lane->cpu));
	}
}

/* No unit of theirs is in flight. */
bool mtftl_lanes_landed(struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ftl->nr_lanes; i++)
		if (READ_ONCE(ftl->lanes[i].units_in_flight))
			return false;
	return true;
}

/* What is buffered finds no place. */
bool mtftl_lanes_stuck(struct mtftl *ftl)
{
	bool stuck = false;
	unsigned int i;

	for (i = 0; i < ftl->nr_lanes; i++) {
		struct mtftl_lane *lane = &ftl->lanes[i];

		if (READ_ONCE(lane->head) == READ_ONCE(lane->tail))
			continue;
		stuck = READ_ONCE(lane->stalled) == MTFTL_NO_PLACE && is_stalled(lane);
		if (!stuck)
			break;
	}
	return stuck;
}

/* Lanes are drained, or nothing helps any more. No unit of theirs is in flight afterwards. */
void mtftl_lanes_stop(struct mtftl *ftl)
{
	unsigned int i;

	if (!ftl->lanes)
		return;
	if (ftl->cpus_watched)
		cpuhp_state_remove_instance(cpu_online_state, &ftl->cpu_node);
	ftl->cpus_watched = false;
	/* Units that failed do not look for another place any more. */
	WRITE_ONCE(ftl->read_only, true);
	mtftl_space_appeared(ftl);
	for (i = 0; i < ftl->nr_lanes; i++) {
		if (!ftl->lanes[i].writer)
			continue;
		kthread_stop(ftl->lanes[i].writer);
		timer_delete_sync(&ftl->lanes[i].timer);
		ftl->lanes[i].writer = NULL;
	}
	wait_event(ftl->drain_wait, mtftl_lanes_landed(ftl));
	/* Their completions may still look at the lane. */
	synchronize_rcu();
}

static int lane_alloc(struct mtftl *ftl, struct mtftl_lane *lane)
{
	u32 i, slots = 1u << ftl->lane_shift;
	u32 chunks = DIV_ROUND_UP(slots, 1u << MTFTL_BUFFER_ORDER);
	struct mtftl_unit_io *unit;

	lane->slots = kvcalloc(slots, sizeof(*lane->slots), GFP_KERNEL);
	lane->chunks = kvcalloc(chunks, sizeof(*lane->chunks), GFP_KERNEL);
	if (!lane->slots || !lane->chunks)
		return -ENOMEM;
	for (i = 0; i < chunks; i++) {
		lane->chunks[i] = (void *)__get_free_pages(GFP_KERNEL, MTFTL_BUFFER_ORDER);
		if (!lane->chunks[i])
			return -ENOMEM;
	}
	for (i = 0; i < clamp(lane->entries / ftl->opt.write_unit, UNITS_MIN, UNITS_MAX); i++) {
		unit = mtftl_unit_alloc(ftl, ftl->opt.write_unit);
		if (!unit)
			return -ENOMEM;
		unit->lane = lane;
		list_add(&unit->list, &lane->free_units);
	}
	lane->writer = mtftl_thread(lane_writer, lane, lane->cpu, "mtftl/%u", lane->index);
	return lane->writer ? 0 : -ENOMEM;
}

int mtftl_lanes_alloc(struct mtftl *ftl)
{
	unsigned int i, cpu;

	ftl->cpus = alloc_percpu(struct mtftl_cpu);
	ftl->lanes = kvcalloc(ftl->nr_lanes, sizeof(*ftl->lanes), GFP_KERNEL);
	if (!ftl->cpus || !ftl->lanes || !zalloc_cpumask_var(&ftl->elsewhere, GFP_KERNEL))
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		per_cpu_ptr(ftl->cpus, cpu)->seen = jiffies - SPARE_AFTER;
	for (i = 0, cpu = -1; i < ftl->nr_lanes; i++) {
		struct mtftl_lane *lane = &ftl->lanes[i];
		int r;

		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		lane->ftl = ftl;
		lane->index = i;
		lane->cpu = cpu;
		lane->entries = max(ftl->opt.buffer_entries / ftl->nr_lanes, 1u);
		lane->batch = max(ftl->opt.write_unit, min(BATCH_MIN, lane->entries / 4));
		lane->mask = (1u << ftl->lane_shift) - 1;
		lane->first_slot = MTFTL_MAP_SLOTS + (i << ftl->lane_shift);
		lane->guest = i;
		lane->guest_seen = jiffies - SPARE_AFTER;
		spin_lock_init(&lane->lock);
		timer_setup(&lane->timer, lane_overdue, 0);
		bio_list_init(&lane->waiting);
		INIT_LIST_HEAD(&lane->free_units);
		r = lane_alloc(ftl, lane);
		if (r)
			return r;
	}
	return 0;
}

void mtftl_lanes_free(struct mtftl *ftl)
{
	struct mtftl_unit_io *unit, *next;
	u32 i, c;

	for (i = 0; ftl->lanes && i < ftl->nr_lanes; i++) {
		struct mtftl_lane *lane = &ftl->lanes[i];

		if (!lane->ftl)
			break;
		for (c = 0; lane->chunks && c <= lane->mask >> MTFTL_BUFFER_ORDER; c++)
			free_pages((unsigned long)lane->chunks[c], MTFTL_BUFFER_ORDER);
		list_for_each_entry_safe(unit, next, &lane->free_units, list)
			mtftl_unit_free(unit);
		kvfree(lane->slots);
		kvfree(lane->chunks);
	}
	kvfree(ftl->lanes);
	ftl->lanes = NULL;
	free_percpu(ftl->cpus);
	ftl->cpus = NULL;
	free_cpumask_var(ftl->elsewhere);
	memset(&ftl->elsewhere, 0, sizeof(ftl->elsewhere));
}
