// SPDX-License-Identifier: GPL-2.0
/*
 * The map: see map.h.
 *
 * Every change of an entry, of the slot that it points to and of the zones' valid counts is one
 * step under the lock of the entry's shard.
 *
 * Order. A unit's number is drawn before its slots are taken (mtftl_map_take), and a
 * slot that was taken is never overwritten: a newer write gets a new slot, which is
 * published before its own unit draws a number. So the higher number is the newer data.
 */
#include "map/map.h"

#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "device/bio.h"
#include "device/device.h"
#include "device/seq.h"
#include "map/age.h"
#include "policy/hint.h"

#define NR_SHARDS	512	/* chunks of the map are spread over them */

static_assert((int)MTFTL_HINT_SHORT == WRITE_LIFE_SHORT);
static_assert((int)MTFTL_HINT_EXTREME == WRITE_LIFE_EXTREME);

struct mtftl_map_shard {
	spinlock_t lock;	/* entries of its chunks, the slots they point to */
	/* Of slots by their number: a slot that lands looks at few bios besides its own. */
	spinlock_t through_lock;	/* inside any shard's lock */
	struct bio_list through;	/* FUA writes that wait for one of these slots */
} ____cacheline_aligned_in_smp;

int mtftl_map_alloc(struct mtftl *ftl)
{
	size_t bytes = array_size(ftl->config.logical_blocks, sizeof(u32));
	struct mtftl_map *map = kzalloc_obj(*map, GFP_KERNEL);
	unsigned int i;

	if (!map)
		return -ENOMEM;
	mtftl_assert(ftl->config.logical_blocks - 1 <= MTFTL_MAP_MAX_PAGE);
	ftl->map = map;
	map->entries = vmalloc(bytes);
	map->changed = kvcalloc(BITS_TO_LONGS(mtftl_map_chunks(ftl)), sizeof(long), GFP_KERNEL);
	map->shards = kvcalloc(NR_SHARDS, sizeof(*map->shards), GFP_KERNEL);
	map->zones = kvcalloc(ftl->config.nr_zones, sizeof(*map->zones), GFP_KERNEL);
	if (!map->entries || !map->changed || !map->shards || !map->zones)
		return -ENOMEM;
	memset(map->entries, 0xff, bytes);
	for (i = 0; i < NR_SHARDS; i++) {
		spin_lock_init(&map->shards[i].lock);
		spin_lock_init(&map->shards[i].through_lock);
	}
	mtftl_on_read_only(ftl, mtftl_map_through_again);
	return 0;
}

void mtftl_map_free(struct mtftl *ftl)
{
	struct mtftl_map *map = ftl->map;

	if (!map)
		return;
	vfree(map->entries);
	kvfree(map->changed);
	kvfree(map->shards);
	kvfree(map->zones);
	kfree(map);
	ftl->map = NULL;
}

u64 mtftl_map_bytes(const struct mtftl *ftl)
{
	return ftl->config.logical_blocks * sizeof(*ftl->map->entries) +
	       BITS_TO_LONGS(mtftl_map_chunks(ftl)) * sizeof(long) +
	       ftl->config.nr_zones * sizeof(*ftl->map->zones);
}

static struct mtftl_map_shard *lba_shard(struct mtftl *ftl, u32 lba)
{
	mtftl_assert(lba < ftl->config.logical_blocks, "block %u", lba);
	return &ftl->map->shards[(lba >> MTFTL_CHUNK_SHIFT) % NR_SHARDS];
}

/* A page that a zone can hold. */
static bool is_page_of_zone(const struct mtftl *ftl, u32 value)
{
	return mtftl_is_page(value) &&
	       mtftl_map_entry_valid(value, ftl->config.nr_zones, ftl->config.zone_shift,
				     ftl->config.capacity);
}

/* The slot may be what the map, or a newer slot, says of the block: it is not free yet. */
static bool is_slot_of(const struct mtftl_slot *slot, u32 lba)
{
	return slot->lba == lba &&
	       (slot->state == MTFTL_SLOT_FILLED || slot->state == MTFTL_SLOT_IN_FLIGHT);
}

/* One block between a bio, which advances, and memory. */
static void copy_block(struct bio *bio, void *data, bool to_bio)
{
	unsigned int left = MTFTL_BLOCK_SIZE;

	mtftl_assert(bio->bi_iter.bi_size >= left, "%u bytes", bio->bi_iter.bi_size);
	while (left) {
		struct bio_vec bv = bio_iter_iovec(bio, bio->bi_iter);
		unsigned int n = min(left, bv.bv_len);

		if (to_bio)
			memcpy_to_page(bv.bv_page, bv.bv_offset, data, n);
		else
			memcpy_from_page(data, bv.bv_page, bv.bv_offset, n);
		bio_advance_iter_single(bio, &bio->bi_iter, n);
		data += n;
		left -= n;
	}
	mtftl_assert(!left, "%u bytes", left);
}

void mtftl_bio_to_slot(struct bio *bio, void *data)
{
	struct bio_vec bv = bio_iter_iovec(bio, bio->bi_iter);

	if (bv.bv_len != MTFTL_BLOCK_SIZE) {
		copy_block(bio, data, false);
		return;
	}
	/* Nearly all are one piece of memory. */
	memcpy_from_page(data, bv.bv_page, bv.bv_offset, MTFTL_BLOCK_SIZE);
	bio_advance_iter_single(bio, &bio->bi_iter, MTFTL_BLOCK_SIZE);
}

/* A FUA write waits for the slot, whose data is not composed yet. The lock is held. */
static void want_through(struct mtftl *ftl, struct mtftl_slot *slot, u32 value)
{
	lockdep_assert_held(&lba_shard(ftl, slot->lba)->lock);
	mtftl_assert(slot->state == MTFTL_SLOT_FREE || slot->state == MTFTL_SLOT_FILLED,
		     "block %u: state %u", slot->lba, slot->state);
	if (!slot->through) {
		WRITE_ONCE(slot->through, true);
		atomic_inc(&mtftl_ring(ftl, mtftl_map_ring(ftl, value))->wanted);
	}
	mtftl_assert(slot->through, "block %u", slot->lba);
}

/* Its newest data is buffered and not in flight yet: overwrite it where it is. */
u32 mtftl_map_overwrite(struct mtftl *ftl, u32 lba, struct bio *bio, bool through)
{
	struct mtftl_map_shard *shard = lba_shard(ftl, lba);
	u32 value, done = MTFTL_MAP_UNMAPPED;
	struct mtftl_slot *slot;
	unsigned long flags;
	void *data;

	spin_lock_irqsave(&shard->lock, flags);
	value = ftl->map->entries[lba];
	if (mtftl_is_slot(value)) {
		slot = mtftl_slot(ftl, value, &data);
		mtftl_assert(is_slot_of(slot, lba), "block %u: slot of %u, state %u", lba,
			     slot->lba, slot->state);
		if (slot->state == MTFTL_SLOT_FILLED) {
			copy_block(bio, data, false);
			slot->summed = false;
			if (through)
				want_through(ftl, slot, value);
			done = value;
		}
	}
	spin_unlock_irqrestore(&shard->lock, flags);
	return done;
}

static void add_page(struct mtftl *ftl, u32 page)
{
	mtftl_assert(is_page_of_zone(ftl, page), "page %#x", page);
	atomic_inc(&ftl->map->zones[mtftl_page_zone(ftl, page)].blocks);
}

static void drop_page(struct mtftl *ftl, u32 value)
{
	mtftl_assert(!mtftl_is_page(value) || is_page_of_zone(ftl, value), "map value %#x", value);
	mtftl_assert(!mtftl_is_page(value) || mtftl_map_valid(ftl, mtftl_page_zone(ftl, value)),
		     "page %#x is not counted", value);
	/* Pairs with mtftl_map_want(), which sees what took its place if it sees it gone. */
	if (mtftl_is_page(value))
		atomic_sub_return_release(1, &ftl->map->zones[mtftl_page_zone(ftl, value)].blocks);
}

/*
 * A filled slot becomes the block's newest data. If an older one is not in flight yet, that one
 * takes the data and this one is not needed: a flush or a reset may wait for the older slot, and
 * knows nothing of this one.
 */
u32 mtftl_map_publish(struct mtftl *ftl, u32 lba, struct mtftl_slot *slot, u32 value, bool through)
{
	struct mtftl_map_shard *shard = lba_shard(ftl, lba);
	struct mtftl_slot *older = NULL;
	void *from, *to = NULL;
	unsigned long flags;
	u32 old, at = value;

	spin_lock_irqsave(&shard->lock, flags);
	mtftl_assert(slot == mtftl_slot(ftl, value, NULL) && slot->state == MTFTL_SLOT_FREE,
		     "block %u: slot %#x, state %u", lba, value, slot->state);
	old = ftl->map->entries[lba];
	if (mtftl_is_slot(old))
		older = mtftl_slot(ftl, old, &to);
	mtftl_assert(old != value && (!older || is_slot_of(older, lba)), "block %u: %#x", lba, old);
	if (older && older->state == MTFTL_SLOT_FILLED) {
		mtftl_slot(ftl, value, &from);
		memcpy(to, from, MTFTL_BLOCK_SIZE);
		older->summed = slot->summed;
		older->crc = slot->crc;
		WRITE_ONCE(slot->lba, MTFTL_NO_LBA);
		at = old;
	} else {
		WRITE_ONCE(slot->lba, lba);
		WRITE_ONCE(slot->prev, old);
		mtftl_age_slot(ftl, slot, old);
		drop_page(ftl, old);
		WRITE_ONCE(ftl->map->entries[lba], value);
	}
	if (through)
		want_through(ftl, mtftl_slot(ftl, at, NULL), at);
	/* Pairs with the writer's acquire: it composes only what was published. */
	smp_store_release(&slot->state, MTFTL_SLOT_FILLED);
	spin_unlock_irqrestore(&shard->lock, flags);
	return at;
}

/* It is written, or need not be. */
static void unwant(struct mtftl *ftl, struct mtftl_slot *slot)
{
	lockdep_assert_held(&lba_shard(ftl, slot->lba)->lock);
	if (!slot->wanted)
		return;
	mtftl_assert(atomic_read(&ftl->map->wanted) > 0);
	WRITE_ONCE(slot->wanted, false);
	/* Pairs with mtftl_map_wants(): what is written is on the device, a discard is listed. */
	atomic_sub_return_release(1, &ftl->map->wanted);
}

static void want(struct mtftl *ftl, struct mtftl_ring *ring, struct mtftl_slot *slot,
		 bool (*leaves)(struct mtftl *ftl, u32 page))
{
	/* Once: it may be another block's by the second look, and no page. */
	u32 lba = READ_ONCE(slot->lba), prev = READ_ONCE(slot->prev);
	struct mtftl_map_shard *shard;
	unsigned long flags;
	u8 state;

	/* What changes meanwhile is a page that was written just now, and does not leave. */
	if (lba == MTFTL_NO_LBA || !mtftl_is_page(prev) || !leaves(ftl, prev))
		return;
	shard = lba_shard(ftl, lba);
	spin_lock_irqsave(&shard->lock, flags);
	/* Pairs with mtftl_map_publish(), maybe under another lock: if filled, its lba is seen. */
	state = smp_load_acquire(&slot->state);
	if ((state == MTFTL_SLOT_FILLED || state == MTFTL_SLOT_IN_FLIGHT) &&
	    READ_ONCE(slot->lba) == lba && !slot->wanted && mtftl_is_page(slot->prev) &&
	    leaves(ftl, slot->prev)) {
		WRITE_ONCE(slot->wanted, true);
		atomic_inc(&ftl->map->wanted);
		if (state == MTFTL_SLOT_FILLED)
			atomic_inc(&ring->wanted);
	}
	spin_unlock_irqrestore(&shard->lock, flags);
}

void mtftl_map_want(struct mtftl *ftl, bool (*leaves)(struct mtftl *ftl, u32 page))
{
	unsigned int i;
	u64 pos;

	/* Pairs with drop_page(). */
	smp_mb();
	for (i = 0; i < ftl->config.nr_lanes; i++) {
		struct mtftl_ring *ring = mtftl_ring(ftl, i);
		u64 head;

		pos = READ_ONCE(ring->tail);
		/* A tail that is read later may be ahead of it. Pairs with the ring's lock. */
		smp_rmb();
		for (head = READ_ONCE(ring->head); pos != head; pos++)
			want(ftl, ring, &ring->slots[(u32)pos & ring->mask], leaves);
	}
}

/*
 * FUA
 *
 * A FUA write marks its slots. It marks them under the lock, before their units are composed, and
 * marked slots are written with FUA. When the unit lands, the mark goes. Until then the slot can be
 * found from the map's entry: a newer slot of the block points back to it, and is written with FUA
 * as well. Only a discard loses the mark, and perhaps the slot's data with it. Then the discard's
 * record has to be on flash, which takes a flush.
 *
 * A write waits for its blocks one after the other, in a list. For each block it waits for
 * one slot: the newest marked one, which is its own or stands for it.
 */

/* The newest marked slot among the one in the entry and its predecessors. The lock is held. */
static u32 find_through(struct mtftl *ftl, u32 at)
{
	const struct mtftl_slot *slot;

	while (mtftl_is_slot(at)) {
		slot = mtftl_slot(ftl, at, NULL);
		lockdep_assert_held(&lba_shard(ftl, slot->lba)->lock);
		mtftl_assert(is_slot_of(slot, slot->lba), "block %u: slot %#x, state %u",
			     slot->lba, at, slot->state);
		if (slot->through)
			return at;
		at = slot->prev;
	}
	return MTFTL_MAP_UNMAPPED;
}

static bool is_through(struct mtftl *ftl, u32 at)
{
	return find_through(ftl, at) != MTFTL_MAP_UNMAPPED;
}

static struct mtftl_map_shard *slot_shard(struct mtftl *ftl, u32 slot)
{
	mtftl_assert(mtftl_is_slot(slot) || slot == MTFTL_MAP_UNMAPPED, "%#x", slot);
	return &ftl->map->shards[slot % NR_SHARDS];
}

/* Take the bios that wait for the slot, whose mark is gone; MTFTL_MAP_UNMAPPED: all bios. */
static struct bio_list take_through(struct mtftl_map_shard *shard, u32 slot)
{
	struct bio_list all, bios = BIO_EMPTY_LIST;
	unsigned long flags;
	struct bio *bio;

	spin_lock_irqsave(&shard->through_lock, flags);
	all = shard->through;
	bio_list_init(&shard->through);
	while ((bio = bio_list_pop(&all)))
		bio_list_add(slot == MTFTL_MAP_UNMAPPED || mtftl_bio(bio)->slot == slot ?
			     &bios : &shard->through, bio);
	spin_unlock_irqrestore(&shard->through_lock, flags);
	return bios;
}

/* True: the first block is not on flash yet; the bio waits, or has been answered. */
static bool through_waits(struct mtftl *ftl, struct bio *bio)
{
	struct mtftl_bio *io = mtftl_bio(bio);
	struct mtftl_map_shard *shard = lba_shard(ftl, io->lba), *slots;
	bool waits, failed, back;
	unsigned long flags;

	mtftl_assert(io->nr && io->lba + io->nr <= ftl->config.logical_blocks,
		     "%u blocks from %u on", io->nr, io->lba);
	spin_lock_irqsave(&shard->lock, flags);
	io->slot = find_through(ftl, ftl->map->entries[io->lba]);
	waits = io->slot != MTFTL_MAP_UNMAPPED;
	mtftl_assert(!waits || mtftl_slot(ftl, io->slot, NULL)->through, "block %u", io->lba);
	slots = slot_shard(ftl, io->slot);
	spin_lock(&slots->through_lock);
	/* The code that sets these flags takes the lock afterwards. */
	failed = waits && mtftl_is_read_only(ftl);
	back = waits && mtftl_device_gives_back(ftl);
	if (waits && !failed && !back)
		bio_list_add(&slots->through, bio);
	spin_unlock(&slots->through_lock);
	spin_unlock_irqrestore(&shard->lock, flags);
	if (failed)
		bio_io_error(bio);
	else if (back)
		mtftl_give_back(bio);
	return waits;
}

void mtftl_map_through_begin(struct mtftl *ftl, struct bio *bio)
{
	struct block_device *bdev = mtftl_bdev(ftl);
	struct mtftl_bio *io = mtftl_bio(bio);

	mtftl_assert(!(bio->bi_iter.bi_size % MTFTL_BLOCK_SIZE));
	/*
	 * Without FUA the kernel would flush the device for each unit, and hide which one failed.
	 */
	io->through = bdev_fua(bdev) || !bdev_write_cache(bdev);
	io->lba = bio->bi_iter.bi_sector / MTFTL_BLOCK_SECTORS;
	io->nr = bio->bi_iter.bi_size >> MTFTL_BLOCK_SHIFT;
	io->dropped = atomic_long_read(&ftl->map->dropped);
}

void mtftl_map_through(struct mtftl *ftl, struct bio *bio)
{
	struct mtftl_bio *io = mtftl_bio(bio);

	for (; io->through && io->nr; io->nr--, io->lba++)
		if (through_waits(ftl, bio))
			return;
	if (!io->through || atomic_long_read(&ftl->map->dropped) != io->dropped)
		mtftl_pending_flush(ftl, bio);
	else
		bio_endio(bio);
}

/* The slot that they waited for has landed or is dead: each bio waits for one block less. */
static void through_next(struct mtftl *ftl, struct bio_list *bios)
{
	struct bio *bio;

	while ((bio = bio_list_pop(bios))) {
		mtftl_assert(mtftl_bio(bio)->through && mtftl_bio(bio)->nr);
		mtftl_bio(bio)->nr--;
		mtftl_bio(bio)->lba++;
		mtftl_map_through(ftl, bio);
	}
	mtftl_assert(!bio && bio_list_empty(bios));
}

void mtftl_map_through_again(struct mtftl *ftl)
{
	struct mtftl_map_shard *shard;
	struct bio_list bios;
	struct bio *bio;

	for (shard = ftl->map->shards; shard < ftl->map->shards + NR_SHARDS; shard++) {
		bios = take_through(shard, MTFTL_MAP_UNMAPPED);
		while ((bio = bio_list_pop(&bios)))
			mtftl_map_through(ftl, bio);
	}
}

/*
 * Into a unit whose number is drawn already: from here on the slot is not overwritten.
 * False: it is dead, a newer write or a discard came.
 */
bool mtftl_map_take(struct mtftl *ftl, struct mtftl_ring *ring, struct mtftl_slot *slot, u32 value)
{
	struct bio_list through = BIO_EMPTY_LIST;
	struct mtftl_map_shard *shard;
	u32 lba = slot->lba;
	unsigned long flags;
	bool live;

	mtftl_assert(slot->state == MTFTL_SLOT_FILLED, "block %u: state %u", lba, slot->state);
	if (lba == MTFTL_NO_LBA) {
		WRITE_ONCE(slot->state, MTFTL_SLOT_DONE);
		return false;
	}
	shard = lba_shard(ftl, lba);
	spin_lock_irqsave(&shard->lock, flags);
	live = ftl->map->entries[lba] == value;
	mtftl_assert(slot->lba == lba, "block %u: slot of %u", lba, slot->lba);
	mtftl_assert(atomic_read(&ring->wanted) >= slot->wanted + slot->through);
	if (slot->wanted)
		atomic_dec(&ring->wanted);
	if (slot->through)
		atomic_dec(&ring->wanted);
	if (!live) {
		unwant(ftl, slot);
		if (slot->through)
			through = take_through(slot_shard(ftl, value), value);
	}
	/* The slot may land before the one that it replaces. Then it inherits the mark. */
	if (!live || mtftl_is_slot(slot->prev))
		WRITE_ONCE(slot->through, live && is_through(ftl, value));
	mtftl_assert(live ? slot->through == is_through(ftl, value) && bio_list_empty(&through) :
		     !slot->wanted && !slot->through, "block %u", lba);
	WRITE_ONCE(slot->state, live ? MTFTL_SLOT_IN_FLIGHT : MTFTL_SLOT_DONE);
	spin_unlock_irqrestore(&shard->lock, flags);
	if (unlikely(!bio_list_empty(&through)))
		through_next(ftl, &through);
	return live;
}

/*
 * The slot's data is at @page now. Compare, then store: where the map went on, the page
 * is dead on arrival, but a slot that replaced this one while it was in flight
 * must learn what the map would point to without it, for checkpoints.
 */
void mtftl_map_complete(struct mtftl *ftl, u32 lba, u32 value, u32 page)
{
	struct mtftl_map_shard *shard = lba_shard(ftl, lba);
	struct bio_list through = BIO_EMPTY_LIST;
	struct mtftl_slot *slot, *newer;
	unsigned long flags;
	u32 at;

	slot = mtftl_slot(ftl, value, NULL);
	mtftl_assert(is_page_of_zone(ftl, page), "page %#x", page);
	spin_lock_irqsave(&shard->lock, flags);
	mtftl_assert(slot->lba == lba && slot->state == MTFTL_SLOT_IN_FLIGHT,
		     "block %u: slot of %u, state %u", lba, slot->lba, slot->state);
	at = ftl->map->entries[lba];
	if (at == value) {
		mtftl_map_mark(ftl, lba);
		WRITE_ONCE(ftl->map->entries[lba], page);
		add_page(ftl, page);
	} else {
		while (mtftl_is_slot(at)) {
			newer = mtftl_slot(ftl, at, NULL);
			mtftl_assert(is_slot_of(newer, lba), "block %u: slot of %u, state %u", lba,
				     newer->lba, newer->state);
			if (newer->prev == value) {
				mtftl_map_mark(ftl, lba);
				newer->prev = page;
				break;
			}
			at = newer->prev;
		}
	}
	unwant(ftl, slot);
	if (slot->through) {
		WRITE_ONCE(slot->through, false);
		through = take_through(slot_shard(ftl, value), value);
	}
	/* Pairs with mtftl_ring_advance(): if the slot is reused, the map is seen without it. */
	smp_store_release(&slot->state, MTFTL_SLOT_DONE);
	spin_unlock_irqrestore(&shard->lock, flags);
	if (unlikely(!bio_list_empty(&through)))
		through_next(ftl, &through);
}

/* Read a block out of the buffer; false: it is not there any more, look again. */
bool mtftl_map_copy_slot(struct mtftl *ftl, u32 lba, u32 value, struct bio *bio)
{
	struct mtftl_map_shard *shard = lba_shard(ftl, lba);
	unsigned long flags;
	bool hit;
	void *data;

	spin_lock_irqsave(&shard->lock, flags);
	hit = ftl->map->entries[lba] == value;
	if (hit) {
		mtftl_assert(is_slot_of(mtftl_slot(ftl, value, NULL), lba), "block %u", lba);
		mtftl_slot(ftl, value, &data);
		copy_block(bio, data, true);
	}
	spin_unlock_irqrestore(&shard->lock, flags);
	return hit;
}

/*
 * Clear entries of one chunk. The number is drawn inside the lock: drawn before, a unit
 * composed in between would bring the data back at recovery; after, a newer write
 * would die. The record is listed first: a flush that passes over a slot, dead by this, finds
 * it, and so does one before the reset of a zone that this empties. False: there was nothing to
 * clear, so nothing to log.
 */
bool mtftl_map_discard(struct mtftl *ftl, struct mtftl_range_rec *rec)
{
	struct mtftl_map_shard *shard = lba_shard(ftl, rec->lba);
	u32 i, end = rec->lba + rec->nr_blocks;
	bool killed = false, dropped = false;
	unsigned long flags;

	/* One lock is enough for it. */
	mtftl_assert(rec->nr_blocks && end <= ftl->config.logical_blocks &&
		     lba_shard(ftl, end - 1) == shard, "%u blocks from %u on", rec->nr_blocks,
		     rec->lba);
	spin_lock_irqsave(&shard->lock, flags);
	for (i = rec->lba; i < end && ftl->map->entries[i] == MTFTL_MAP_UNMAPPED; i++)
		;
	if (i == end) {
		spin_unlock_irqrestore(&shard->lock, flags);
		return false;
	}
	/* First: a checkpoint that covers the number sees it. See mtftl_map_copy_changed(). */
	mtftl_map_mark(ftl, rec->lba);
	rec->seq = mtftl_seq_draw(ftl);
	mtftl_range_add(ftl, rec);
	for (; i < end; i++) {
		u32 old = ftl->map->entries[i];

		if (old == MTFTL_MAP_UNMAPPED)
			continue;
		killed |= mtftl_is_slot(old);
		dropped |= is_through(ftl, old);
		drop_page(ftl, old);
		WRITE_ONCE(ftl->map->entries[i], MTFTL_MAP_UNMAPPED);
	}
	if (killed)
		atomic_long_inc(&ftl->map->killed);
	/* The slot is passed over or lands later, so a waiting FUA write sees this count. */
	if (dropped)
		atomic_long_inc(&ftl->map->dropped);
	spin_unlock_irqrestore(&shard->lock, flags);
	return true;
}

bool mtftl_map_points_to(struct mtftl *ftl, u32 lba, u32 page)
{
	struct mtftl_map_shard *shard = lba_shard(ftl, lba);
	unsigned long flags;
	bool live;

	mtftl_assert(is_page_of_zone(ftl, page), "block %u: page %#x", lba, page);
	spin_lock_irqsave(&shard->lock, flags);
	live = ftl->map->entries[lba] == page;
	spin_unlock_irqrestore(&shard->lock, flags);
	return live;
}

/* GC wrote a copy: it counts only if the block was not written or discarded meanwhile. */
void mtftl_map_move(struct mtftl *ftl, u32 lba, u32 from, u32 to)
{
	struct mtftl_map_shard *shard = lba_shard(ftl, lba);
	unsigned long flags;

	mtftl_assert(is_page_of_zone(ftl, from) && is_page_of_zone(ftl, to) &&
		     mtftl_page_zone(ftl, from) != mtftl_page_zone(ftl, to),
		     "block %u: from %#x to %#x", lba, from, to);
	spin_lock_irqsave(&shard->lock, flags);
	if (ftl->map->entries[lba] == from) {
		mtftl_map_mark(ftl, lba);
		WRITE_ONCE(ftl->map->entries[lba], to);
		add_page(ftl, to);
		drop_page(ftl, from);
	}
	spin_unlock_irqrestore(&shard->lock, flags);
}

/* The page cannot be read: its block reads as an error until it is written again. */
bool mtftl_map_lose(struct mtftl *ftl, u32 lba, u32 page, u64 *seq)
{
	struct mtftl_map_shard *shard = lba_shard(ftl, lba);
	unsigned long flags;
	bool lost;

	mtftl_assert(is_page_of_zone(ftl, page), "block %u: page %#x", lba, page);
	spin_lock_irqsave(&shard->lock, flags);
	lost = ftl->map->entries[lba] == page;
	if (lost) {
		mtftl_map_mark(ftl, lba);
		drop_page(ftl, page);
		WRITE_ONCE(ftl->map->entries[lba], MTFTL_MAP_LOST);
		*seq = mtftl_seq_draw(ftl);
	}
	spin_unlock_irqrestore(&shard->lock, flags);
	return lost;
}

/* What one entry would say without the buffers. */
static u32 durable(struct mtftl *ftl, u32 lba)
{
	u32 at = ftl->map->entries[lba];

	lockdep_assert_held(&lba_shard(ftl, lba)->lock);
	while (mtftl_is_slot(at)) {
		mtftl_assert(is_slot_of(mtftl_slot(ftl, at, NULL), lba), "block %u: %#x", lba, at);
		at = mtftl_slot(ftl, at, NULL)->prev;
	}
	mtftl_assert(!mtftl_is_page(at) || is_page_of_zone(ftl, at), "block %u: %#x", lba, at);
	return at;
}

u32 mtftl_map_durable(struct mtftl *ftl, u32 chunk, __le32 *out)
{
	u32 lba = chunk << MTFTL_CHUNK_SHIFT, i, nr;
	struct mtftl_map_shard *shard = lba_shard(ftl, lba);

	nr = min_t(u64, 1u << MTFTL_CHUNK_SHIFT, ftl->config.logical_blocks - lba);
	mtftl_assert(nr && lba_shard(ftl, lba + nr - 1) == shard, "%u blocks from %u on", nr, lba);
	spin_lock_irq(&shard->lock);
	/* In one step: what changes from here on leaves the bit set. */
	clear_bit(chunk, ftl->map->changed);
	for (i = 0; i < nr; i++)
		out[i] = cpu_to_le32(durable(ftl, lba + i));
	/* Only who holds the lock marks it. */
	mtftl_assert(!test_bit(chunk, ftl->map->changed), "chunk %u", chunk);
	spin_unlock_irq(&shard->lock);
	return nr;
}
