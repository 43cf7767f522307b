// SPDX-License-Identifier: GPL-2.0
/*
 * Which slots go into one unit: see pick.h. Slots become filled beside this, and nothing else: who
 * fills one releases it with its class, and only the writer sends it.
 */
#include "pick.h"

static struct mtftl_slot *slot_at(const struct mtftl_ring *ring, u64 pos)
{
	return &ring->slots[(u32)pos & ring->mask];
}

void mtftl_ring_pick(struct mtftl_ring *ring, u32 max, struct mtftl_pick *pick)
{
	u64 head = READ_ONCE(ring->head), pos;
	u32 filled[MTFTL_MAX_CLASSES] = {}, all = 0;

	*pick = (struct mtftl_pick){};
	for (pos = ring->next; pos != head && filled[pick->class] < max; pos++) {
		const struct mtftl_slot *slot = slot_at(ring, pos);
		/* Pairs with mtftl_map_publish(). */
		u8 state = smp_load_acquire(&slot->state);

		if (state == MTFTL_SLOT_FREE)
			break;
		if (state != MTFTL_SLOT_FILLED)
			continue;
		if (!all++ || filled[slot->class] + 1 == max)
			pick->class = slot->class;
		filled[slot->class]++;
	}
	pick->end = pos;
	pick->nr = filled[pick->class];
	pick->others = all - pick->nr;
}

bool mtftl_ring_is_picked(const struct mtftl_ring *ring, const struct mtftl_pick *pick, u64 pos)
{
	const struct mtftl_slot *slot = slot_at(ring, pos);

	return READ_ONCE(slot->state) == MTFTL_SLOT_FILLED &&
	       (pick->mixed || slot->class == pick->class);
}

void mtftl_ring_taken(struct mtftl_ring *ring, u32 nr)
{
	u64 next = ring->next;
	u32 ahead = ring->ahead + nr;

	for (; ahead && READ_ONCE(slot_at(ring, next)->state) != MTFTL_SLOT_FILLED; next++)
		ahead--;
	WRITE_ONCE(ring->ahead, ahead);
	WRITE_ONCE(ring->next, next);
}
