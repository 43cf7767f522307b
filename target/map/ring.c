// SPDX-License-Identifier: GPL-2.0
/*
 * The buffers: see ring.h.
 */
#include "map/ring.h"

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "device/thread.h"

void mtftl_ring_advance(struct mtftl_ring *ring)
{
	u64 tail = ring->tail;

	lockdep_assert_held(&ring->lock);
	mtftl_assert(mtftl_ring_is_sound(ring), "tail %llu next %llu head %llu entries %u",
		     ring->tail, ring->next, ring->head, ring->entries);
	while (tail != ring->next) {
		struct mtftl_slot *slot = &ring->slots[(u32)tail & ring->mask];

		/* Pairs with mtftl_map_complete(). */
		if (smp_load_acquire(&slot->state) != MTFTL_SLOT_DONE)
			break;
		/* Nothing waits for what is not there any more. */
		mtftl_assert(slot->state == MTFTL_SLOT_DONE && !slot->wanted && !slot->through,
			     "slot %llu of block %u: state %u", tail, slot->lba, slot->state);
		slot->state = MTFTL_SLOT_FREE;
		tail++;
	}
	/* Pairs with mtftl_rings_are_drained(). */
	smp_store_release(&ring->tail, tail);
}

bool mtftl_rings_are_empty(const struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ftl->rings->nr; i++)
		if (mtftl_ring_used(&ftl->rings->all[i]))
			return false;
	return true;
}

u64 mtftl_rings_mark_drain(struct mtftl *ftl)
{
	unsigned int i;
	u64 all = 0;

	for (i = 0; i < ftl->rings->nr; i++) {
		struct mtftl_ring *ring = &ftl->rings->all[i];

		spin_lock_irq(&ring->lock);
		mtftl_assert(ring->drain_to <= ring->head);
		all += ring->head - ring->drain_to;
		WRITE_ONCE(ring->drain_to, ring->head);
		spin_unlock_irq(&ring->lock);
	}
	return all;
}

bool mtftl_rings_are_drained(const struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ftl->rings->nr; i++)
		/* Pairs with mtftl_ring_advance(): the discard that killed a slot is listed. */
		if (smp_load_acquire(&ftl->rings->all[i].tail) < ftl->rings->all[i].drain_to)
			return false;
	return true;
}

static int ring_alloc(struct mtftl_ring *ring, u32 slots)
{
	u32 i, chunks = DIV_ROUND_UP(slots, MTFTL_BUFFER_BLOCKS);
	int node = cpu_to_node(ring->cpu);
	struct page *pages;

	/* Positions become indices by a mask. */
	mtftl_assert(slots == ring->mask + 1 && !(slots & ring->mask), "%u slots", slots);
	ring->slots = kvzalloc_node(array_size(slots, sizeof(*ring->slots)), GFP_KERNEL, node);
	ring->chunks = kvzalloc_node(array_size(chunks, sizeof(*ring->chunks)), GFP_KERNEL, node);
	if (!ring->slots || !ring->chunks)
		return -ENOMEM;
	for (i = 0; i < chunks; i++) {
		pages = alloc_pages_node(node, GFP_KERNEL, MTFTL_BUFFER_ORDER);
		if (!pages)
			return -ENOMEM;
		ring->chunks[i] = page_address(pages);
	}
	return 0;
}

int mtftl_rings_alloc(struct mtftl *ftl)
{
	unsigned int i, nr = ftl->config.nr_lanes;
	struct mtftl_rings *rings;
	int r = 0, cpu = -1;

	rings = kvzalloc(struct_size(rings, all, nr), GFP_KERNEL);
	if (!rings)
		return -ENOMEM;
	ftl->rings = rings;
	rings->shift = ftl->config.lane_shift;
	for (; !r && rings->nr < nr; rings->nr++) {
		struct mtftl_ring *ring = &rings->all[rings->nr];

		i = rings->nr;
		cpu = mtftl_thread_next_cpu(cpu);
		ring->cpu = cpu;
		ring->entries = max(ftl->config.buffer_entries / nr, 1u);
		ring->mask = (1u << rings->shift) - 1;
		ring->first_slot = MTFTL_MAP_SLOTS + (i << rings->shift);
		mtftl_assert(ring->entries && ring->entries <= 1u << rings->shift);
		mtftl_assert(mtftl_is_slot(ring->first_slot + ring->mask), "lane %u", i);
		spin_lock_init(&ring->lock);
		r = ring_alloc(ring, 1u << rings->shift);
	}
	return r;
}

void mtftl_rings_free(struct mtftl *ftl)
{
	struct mtftl_rings *rings = ftl->rings;
	u32 i, c;

	if (!rings)
		return;
	for (i = 0; i < rings->nr; i++) {
		struct mtftl_ring *ring = &rings->all[i];

		for (c = 0; ring->chunks && c <= ring->mask >> MTFTL_BUFFER_SHIFT; c++)
			free_pages((unsigned long)ring->chunks[c], MTFTL_BUFFER_ORDER);
		kvfree(ring->slots);
		kvfree(ring->chunks);
	}
	kvfree(rings);
	ftl->rings = NULL;
}
