// SPDX-License-Identifier: GPL-2.0
/*
 * What a mount finds: see found.h. It is kept in chunks. Each chunk is sorted by itself, and
 * reading merges them in order. So nothing moves when more is added, and no step takes long.
 */
#include "durable/found.h"

#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "device/compat.h"
#include "device/thread.h"
#include "map/ring.h"

#define CHUNK_SHIFT	14u
#define CHUNK		16384u
#define MIN_NUMBERS	1024u		/* places of the smallest set */

static_assert(CHUNK == 1u << CHUNK_SHIFT);

struct mtftl_finds {
	u64 limit;			/* of bytes */
	u64 bytes;
	u64 left;			/* bytes that the first look may still find */
	u64 after, last;		/* numbers that are kept: above, not above */
	bool left_out;			/* some are above last */
	u64 nr;
	struct mtftl_found **chunks;

	/* Merging. */
	u32 *next;			/* of each chunk: what comes next */
	u32 *heap;			/* chunks that have not ended, the lowest number first */
	u32 heap_nr;
};

struct mtftl_numbers {
	u64 *places;			/* 0: free */
	u32 size;			/* a power of two; half of them are free at least */
	u32 nr;
	siphash_key_t key;		/* media cannot contain numbers chosen to collide */
};

struct mtftl_finds *mtftl_finds_alloc(u64 limit, u64 most, u64 after)
{
	u32 chunks = div_u64(limit, CHUNK * sizeof(struct mtftl_found)) + 1;
	struct mtftl_finds *finds = kzalloc_obj(*finds, GFP_NOIO);

	if (!finds)
		return NULL;
	finds->limit = limit;
	finds->left = max(limit, most);
	finds->after = after;
	finds->last = U64_MAX;
	finds->chunks = kvcalloc(chunks, sizeof(*finds->chunks), GFP_NOIO);
	finds->next = kvcalloc(chunks, sizeof(*finds->next), GFP_NOIO);
	finds->heap = kvcalloc(chunks, sizeof(*finds->heap), GFP_NOIO);
	if (finds->chunks && finds->next && finds->heap)
		return finds;
	mtftl_finds_free(finds);
	return NULL;
}

/* Forget the records from @from on. */
static void forget(struct mtftl_finds *finds, u64 from)
{
	u64 i;

	for (i = from; i < finds->nr; i++) {
		kfree(mtftl_finds_at(finds, i)->lbas);
		if (!(i % CHUNK))
			cond_resched();
	}
	finds->nr = from;
}

void mtftl_finds_free(struct mtftl_finds *finds)
{
	u32 i;

	if (!finds)
		return;
	forget(finds, 0);
	for (i = 0; finds->chunks && i <= div_u64(finds->limit, CHUNK * sizeof(**finds->chunks));
	     i++)
		kvfree(finds->chunks[i]);
	kvfree(finds->chunks);
	kvfree(finds->next);
	kvfree(finds->heap);
	kfree(finds);
}

u64 mtftl_finds_nr(const struct mtftl_finds *finds)
{
	return finds->nr;
}

struct mtftl_found *mtftl_finds_at(struct mtftl_finds *finds, u64 index)
{
	mtftl_assert(index <= finds->nr && finds->chunks[index >> CHUNK_SHIFT], "%llu of %llu",
		     index, finds->nr);
	return &finds->chunks[index >> CHUNK_SHIFT][index % CHUNK];
}

/* Bytes that a record takes, as the allocator rounds them. */
static u64 cost(const struct mtftl_found *found)
{
	return sizeof(*found) + (found->type == MTFTL_UNIT_RANGES ? 0 :
				 roundup_pow_of_two(found->nr * sizeof(*found->lbas)));
}

static int count_to(struct mtftl_finds *finds, u64 seq, u64 *count)
{
	u64 i;

	for (i = 0, *count = 0; i < finds->nr; i++) {
		if (!(i % CHUNK) && mtftl_interrupted())
			return -EINTR;
		*count += mtftl_finds_at(finds, i)->seq <= seq;
	}
	return 0;
}

/* Those above last. */
static void leave_out(struct mtftl_finds *finds)
{
	u64 i, kept = 0;

	for (i = 0; i < finds->nr; i++) {
		struct mtftl_found *found = mtftl_finds_at(finds, i);

		if (!(i % CHUNK))
			cond_resched();
		if (found->seq > finds->last) {
			finds->bytes -= cost(found);
			kfree(found->lbas);
			continue;
		}
		*mtftl_finds_at(finds, kept++) = *found;
	}
	for (i = DIV_ROUND_UP_ULL(kept, CHUNK); i < DIV_ROUND_UP_ULL(finds->nr, CHUNK); i++) {
		kvfree(finds->chunks[i]);
		finds->chunks[i] = NULL;
	}
	mtftl_assert(kept < finds->nr && finds->bytes <= finds->limit, "%llu of %llu", kept,
		     finds->nr);
	finds->nr = kept;
	finds->left_out = true;
}

/* There is no room: leave out the half with the higher numbers. */
static int narrow(struct mtftl_finds *finds)
{
	u64 low = finds->after, high = finds->last, mid, n;
	int r;

	/* Find the lowest number that at least half of the records do not exceed. */
	while (high - low > 1) {
		mid = low + (high - low) / 2;
		r = count_to(finds, mid, &n);
		if (r)
			return r;
		if (2 * n < finds->nr)
			low = mid;
		else
			high = mid;
	}
	r = count_to(finds, high, &n);
	/* If the highest number alone has half of the records, leave out all of it. */
	if (!r && n == finds->nr) {
		high = low;
		r = count_to(finds, high, &n);
	}
	if (r)
		return r;
	/* Several units have one number if their writes failed. No writer tries that often. */
	if (!n)
		return -E2BIG;
	finds->last = high;
	leave_out(finds);
	return 0;
}

static bool is_wanted(struct mtftl_finds *finds, u64 seq)
{
	if (seq > finds->last)
		finds->left_out = true;
	return seq > finds->after && seq <= finds->last;
}

static int add(struct mtftl_finds *finds, struct mtftl_found *found, const void *header)
{
	struct mtftl_found **chunk;
	u64 bytes = cost(found), lba;
	u32 i, crc;
	int r;

	if (found->seq > finds->after) {
		if (bytes > finds->left)
			return -EOVERFLOW;
		finds->left -= bytes;
	}
	while (is_wanted(finds, found->seq) && finds->bytes + bytes > finds->limit) {
		r = narrow(finds);
		if (r)
			return r;
	}
	if (!is_wanted(finds, found->seq))
		return 0;
	chunk = &finds->chunks[finds->nr >> CHUNK_SHIFT];
	if (!*chunk)
		*chunk = kvmalloc_array(CHUNK, sizeof(**chunk), GFP_NOIO);
	if (!*chunk)
		return -ENOMEM;
	if (found->type != MTFTL_UNIT_RANGES) {
		found->lbas = kmalloc_array(found->nr, sizeof(*found->lbas), GFP_NOIO);
		if (!found->lbas)
			return -ENOMEM;
		for (i = 0; i < found->nr; i++) {
			mtftl_unit_entry(header, i, &lba, &crc);
			found->lbas[i] = min_t(u64, lba, MTFTL_NO_LBA);
		}
	}
	*mtftl_finds_at(finds, finds->nr++) = *found;
	finds->bytes += bytes;
	mtftl_assert(finds->bytes <= finds->limit, "%llu bytes", finds->bytes);
	return 0;
}

int mtftl_finds_add(struct mtftl_finds *finds, const void *header,
		    const struct mtftl_unit_info *info, u32 page)
{
	struct mtftl_found found = { .seq = info->seq, .page = page, .type = info->type };
	enum mtftl_range_kind kind;
	u32 i, blocks;
	int r = 0;
	u64 lba;

	if (info->type != MTFTL_UNIT_RANGES) {
		found.nr = info->nr_entries;
		return found.nr ? add(finds, &found, header) : 0;
	}
	for (i = 0; !r && i < info->nr_entries; i++) {
		mtftl_unit_range(header, i, &lba, &blocks, &found.seq, &kind);
		found.lba = min_t(u64, lba, U32_MAX);
		found.nr = blocks;
		found.kind = kind;
		r = add(finds, &found, header);
	}
	return r;
}

static int by_seq(const void *a, const void *b)
{
	const struct mtftl_found *left = a, *right = b;

	if (left->seq != right->seq)
		return left->seq < right->seq ? -1 : 1;
	return left->page < right->page ? -1 : left->page > right->page;
}

static u32 chunk_size(const struct mtftl_finds *finds, u32 chunk)
{
	return min_t(u64, finds->nr - ((u64)chunk << CHUNK_SHIFT), CHUNK);
}

static struct mtftl_found *first_of(struct mtftl_finds *finds, u32 at)
{
	u32 chunk = finds->heap[at];

	mtftl_assert(at < finds->heap_nr && finds->next[chunk] < chunk_size(finds, chunk),
		     "chunk %u: %u", chunk, finds->next[chunk]);
	return &finds->chunks[chunk][finds->next[chunk]];
}

/* What is below @at is in order, @at itself may not be. */
static void sift(struct mtftl_finds *finds, u32 at)
{
	u32 child, other;

	for (; (child = 2 * at + 1) < finds->heap_nr; at = child) {
		other = child + 1;
		if (other < finds->heap_nr &&
		    by_seq(first_of(finds, other), first_of(finds, child)) < 0)
			child = other;
		if (by_seq(first_of(finds, at), first_of(finds, child)) <= 0)
			return;
		swap(finds->heap[at], finds->heap[child]);
	}
}

int mtftl_finds_sort(struct mtftl_finds *finds)
{
	u32 i, nr = DIV_ROUND_UP_ULL(finds->nr, CHUNK);

	for (i = 0; i < nr; i++) {
		if (mtftl_interrupted())
			return -EINTR;
		sort(finds->chunks[i], chunk_size(finds, i), sizeof(**finds->chunks), by_seq, NULL);
		finds->heap[i] = i;
		finds->next[i] = 0;
	}
	finds->heap_nr = nr;
	for (i = nr / 2; i-- > 0; )
		sift(finds, i);
	return 0;
}

static struct mtftl_found *take_first(struct mtftl_finds *finds)
{
	struct mtftl_found *found = first_of(finds, 0);
	u32 chunk = finds->heap[0];

	if (++finds->next[chunk] == chunk_size(finds, chunk))
		finds->heap[0] = finds->heap[--finds->heap_nr];
	sift(finds, 0);
	mtftl_assert(!finds->heap_nr || by_seq(found, first_of(finds, 0)) <= 0, "number %llu",
		     found->seq);
	found->same = NULL;
	return found;
}

struct mtftl_found *mtftl_finds_next(struct mtftl_finds *finds)
{
	struct mtftl_found *found, *last;

	if (!finds->heap_nr)
		return NULL;
	found = take_first(finds);
	for (last = found; finds->heap_nr && first_of(finds, 0)->seq == found->seq;
	     last = last->same)
		last->same = take_first(finds);
	return found;
}

bool mtftl_finds_forget(struct mtftl_finds *finds)
{
	bool left_out = finds->left_out;

	forget(finds, 0);
	finds->bytes = 0;
	finds->left = U64_MAX;	/* they find the same again */
	finds->after = finds->last;
	finds->last = U64_MAX;
	finds->left_out = false;
	return left_out;
}

/* Numbers */

struct mtftl_numbers *mtftl_numbers_alloc(void)
{
	struct mtftl_numbers *numbers = kzalloc_obj(*numbers, GFP_NOIO);

	if (!numbers)
		return NULL;
	get_random_bytes(&numbers->key, sizeof(numbers->key));
	numbers->size = MIN_NUMBERS;
	numbers->places = kvcalloc(numbers->size, sizeof(*numbers->places), GFP_NOIO);
	if (numbers->places)
		return numbers;
	kfree(numbers);
	return NULL;
}

void mtftl_numbers_free(struct mtftl_numbers *numbers)
{
	if (!numbers)
		return;
	kvfree(numbers->places);
	kfree(numbers);
}

void mtftl_numbers_clear(struct mtftl_numbers *numbers)
{
	if (numbers->nr)
		memset(numbers->places, 0, numbers->size * sizeof(*numbers->places));
	numbers->nr = 0;
}

/* The place where the number is, or would be. */
static u64 *place_of(const struct mtftl_numbers *numbers, u64 number)
{
	u32 at = siphash_1u64(number, &numbers->key);

	/* A search ends at a free place. */
	mtftl_assert(number && numbers->nr < numbers->size &&
		     !(numbers->size & (numbers->size - 1)));
	for (;; at++) {
		u64 *place = &numbers->places[at & (numbers->size - 1)];

		if (!*place || *place == number)
			return place;
	}
}

static int grow(struct mtftl_numbers *numbers)
{
	u64 *old = numbers->places, *places;
	u32 i, size = numbers->size;

	places = kvcalloc(2 * size, sizeof(*places), GFP_NOIO);
	if (!places)
		return -ENOMEM;
	numbers->places = places;
	numbers->size = 2 * size;
	for (i = 0; i < size; i++)
		if (old[i])
			*place_of(numbers, old[i]) = old[i];
	kvfree(old);
	return 0;
}

int mtftl_numbers_add(struct mtftl_numbers *numbers, u64 number)
{
	u64 *place = place_of(numbers, number);
	int r;

	if (*place)
		return 0;
	if (2 * (numbers->nr + 1) > numbers->size) {
		r = grow(numbers);
		if (r)
			return r;
		place = place_of(numbers, number);
	}
	*place = number;
	numbers->nr++;
	mtftl_assert(2 * numbers->nr <= numbers->size);
	return 0;
}

bool mtftl_numbers_has(const struct mtftl_numbers *numbers, u64 number)
{
	return *place_of(numbers, number);
}
