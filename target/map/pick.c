// SPDX-License-Identifier: GPL-2.0
/*
 * Which slots go into one unit: see pick.h. Slots become filled beside this, and nothing else:
 * users release each slot that they fill with its class, and only the writer sends it.
 */
#include "map/pick.h"

static struct mtftl_slot *slot_at(const struct mtftl_ring *ring, u64 pos)
{
	mtftl_assert(pos < READ_ONCE(ring->head), "slot %llu, head %llu", pos, ring->head);
	return &ring->slots[(u32)pos & ring->mask];
}

static u64 class_start(const struct mtftl_ring *ring, u32 class)
{
	return max(ring->next, ring->from[class]);
}

/* What was seen once is not looked at again: the writer asks after every few slots. */
void mtftl_ring_pick(struct mtftl_ring *ring, u32 max, struct mtftl_pick *pick)
{
	u64 head = READ_ONCE(ring->head);
	u32 all = 0, i;

	mtftl_assert(ring->next + ring->ahead <= ring->looked && ring->looked <= head,
		     "next %llu ahead %u looked %llu head %llu", ring->next, ring->ahead,
		     ring->looked, head);
	*pick = (struct mtftl_pick){};
	for (i = 0; i < MTFTL_MAX_CLASSES; i++) {
		all += ring->filled[i];
		if (ring->filled[i] >= max)
			pick->class = i;
	}
	if (all && ring->filled[pick->class] < max)
		pick->class = slot_at(ring, ring->next)->class;
	while (ring->looked != head && ring->filled[pick->class] < max) {
		const struct mtftl_slot *slot = slot_at(ring, ring->looked);

		/* Pairs with mtftl_map_publish(). */
		if (smp_load_acquire(&slot->state) == MTFTL_SLOT_FREE)
			break;
		ring->looked++;
		ring->filled[slot->class]++;
		if (!all++ || ring->filled[slot->class] == max)
			pick->class = slot->class;
	}
	pick->start = class_start(ring, pick->class);
	pick->end = ring->looked;
	pick->nr = min(ring->filled[pick->class], max);
	pick->others = all - pick->nr;
	/* What was looked at is counted, or composed. */
	mtftl_assert(all == pick->end - ring->next - ring->ahead, "%u of %llu counted", all,
		     pick->end - ring->next - ring->ahead);
}

void mtftl_ring_pick_oldest(struct mtftl_ring *ring, u32 max, struct mtftl_pick *pick)
{
	mtftl_assert(ring->ahead, "next %llu", ring->next);
	mtftl_ring_pick(ring, max, pick);
	pick->others += pick->nr;
	/* Others are ahead of it, so it was looked at, and is filled. */
	pick->class = slot_at(ring, ring->next)->class;
	pick->start = ring->next;
	pick->nr = min(ring->filled[pick->class], max);
	mtftl_assert(pick->nr && pick->nr <= pick->others, "%u of %u slots of class %u", pick->nr,
		     pick->others, pick->class);
	pick->others -= pick->nr;
}

u32 mtftl_ring_fullest(const struct mtftl_ring *ring)
{
	u32 most = 0, i;

	for (i = 0; i < MTFTL_MAX_CLASSES; i++)
		most = max(most, ring->filled[i]);
	return most;
}

void mtftl_ring_pick_wanted(struct mtftl_ring *ring, u32 max, struct mtftl_pick *pick)
{
	u64 pos;

	/* All that is filled is looked at first. */
	mtftl_ring_pick(ring, U32_MAX, pick);
	pick->wanted = true;
	pick->start = ring->next;
	pick->nr = 0;
	for (pos = ring->next; pos != ring->looked && pick->nr < max; pos++)
		if (mtftl_ring_is_picked(ring, pick, pos) && !pick->nr++)
			pick->class = slot_at(ring, pos)->class;
	mtftl_assert(pick->class < MTFTL_MAX_CLASSES && pick->nr <= max);
}

bool mtftl_ring_is_picked(const struct mtftl_ring *ring, const struct mtftl_pick *pick, u64 pos)
{
	const struct mtftl_slot *slot = slot_at(ring, pos);

	return READ_ONCE(slot->state) == MTFTL_SLOT_FILLED &&
	       (pick->wanted ? READ_ONCE(slot->wanted) || READ_ONCE(slot->through) :
		pick->mixed || slot->class == pick->class);
}

void mtftl_ring_pick_all(const struct mtftl_ring *ring, struct mtftl_pick *pick)
{
	pick->nr += pick->others;
	pick->mixed = true;
	pick->start = ring->next;
}

void mtftl_ring_take(struct mtftl_ring *ring, const struct mtftl_pick *pick, u64 pos)
{
	u32 class = slot_at(ring, pos)->class;

	mtftl_assert(ring->filled[class] && pos >= class_start(ring, class),
		     "slot %llu: %u of class %u from %llu on", pos, ring->filled[class], class,
		     ring->from[class]);
	ring->filled[class]--;
	/* If only marked slots are picked, slots before this one remain. */
	if (!pick->wanted)
		ring->from[class] = pos + 1;
}

void mtftl_ring_taken(struct mtftl_ring *ring, u32 nr)
{
	u64 next = ring->next;
	u32 ahead = ring->ahead + nr;

	for (; ahead && READ_ONCE(slot_at(ring, next)->state) != MTFTL_SLOT_FILLED; next++)
		ahead--;
	mtftl_assert(next + ahead <= ring->looked, "next %llu ahead %u looked %llu", next, ahead,
		     ring->looked);
	WRITE_ONCE(ring->ahead, ahead);
	WRITE_ONCE(ring->next, next);
}
