// SPDX-License-Identifier: GPL-2.0
/*
 * Discards and write-zeroes: see discard.h.
 */
#include "io/discard.h"

#include "device/device.h"
#include "map/map.h"
#include "map/pending.h"

static_assert(1u << MTFTL_CHUNK_SHIFT <= MTFTL_RANGE_MAX_BLOCKS);

/* Completes the bio, now or later. */
static void discard(struct mtftl *ftl, struct bio *bio, bool waited)
{
	while (bio->bi_iter.bi_size) {
		u32 lba = bio->bi_iter.bi_sector / MTFTL_BLOCK_SECTORS;
		u32 left = (1u << MTFTL_CHUNK_SHIFT) - (lba & ((1u << MTFTL_CHUNK_SHIFT) - 1));
		u32 n = min(left, bio->bi_iter.bi_size >> MTFTL_BLOCK_SHIFT);
		struct mtftl_range_rec rec = {
			.lba = lba,
			.nr_blocks = n,
			.kind = MTFTL_RANGE_TRIM,
		};

		mtftl_assert(n && lba + n <= ftl->config.logical_blocks, "%u blocks from %u on", n,
			     lba);
		if (mtftl_is_read_only(ftl)) {
			bio_io_error(bio);
			return;
		}
		if (!mtftl_range_reserve(ftl, bio, waited)) {
			mtftl_pending_wake(ftl);
			return;
		}
		if (mtftl_map_discard(ftl, &rec))
			mtftl_count(ftl, user_trims, n);
		else
			mtftl_range_add(ftl, NULL);
		bio->bi_iter.bi_sector += (sector_t)n * MTFTL_BLOCK_SECTORS;
		bio->bi_iter.bi_size -= n * MTFTL_BLOCK_SIZE;
	}
	if (bio->bi_opf & REQ_FUA)
		mtftl_pending_flush(ftl, bio);
	else
		bio_endio(bio);
}

void mtftl_discard_waiting(struct mtftl *ftl)
{
	struct bio *bio;

	while ((bio = mtftl_ranges_take_waiting(ftl))) {
		discard(ftl, bio, true);
		cond_resched();
	}
}

/* Discard or write-zeroes. */
void mtftl_discard(struct mtftl *ftl, struct bio *bio)
{
	discard(ftl, bio, false);
}
