/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The metadata of a bio's blocks, as the kernel carries it. Nothing here allocates, sleeps or
 * locks; the memory is the caller's as long as the bio lives.
 */
#ifndef MTFTL_META_H
#define MTFTL_META_H

#include <linux/blk-integrity.h>
#include <linux/blkdev.h>

#include "device/compat.h"
#include "device/config.h"

struct mtftl_meta {
	struct bio_integrity_payload payload;
	struct bio_vec vec;
};

/* The device has some. The kernel makes none up for an append: one without is refused. */
static inline bool mtftl_meta_is_there(struct block_device *bdev)
{
#ifdef CONFIG_BLK_DEV_INTEGRITY
	return bdev_get_integrity(bdev);
#else
	return false;
#endif
}

#ifdef CONFIG_BLK_DEV_INTEGRITY
#ifndef MTFTL_HAS_INTEGRITY_PROFILE
#define MTFTL_META_IS_WRITTEN
#endif
#endif

#ifdef MTFTL_META_IS_WRITTEN
/* Bytes for each block of ours; 0: none, or it is not ours to write. */
static inline u32 mtftl_meta_size(struct block_device *bdev)
{
	struct blk_integrity *integrity = bdev_get_integrity(bdev);
	u32 size;

	if (!integrity || 1u << integrity->interval_exp != MTFTL_BLOCK_SIZE ||
	    integrity->csum_type != BLK_INTEGRITY_CSUM_NONE)
		return 0;
#ifdef MTFTL_HAS_TUPLE_SIZE
	size = integrity->tuple_size;
#else
	size = integrity->metadata_size;
#endif
	return size > MTFTL_META_MAX ? 0 : size;
}

/*
 * For all blocks of a bio, where the device has metadata: @oob, within a page; or zeroes where that
 * is NULL, which say that the blocks are no data.
 */
static inline void mtftl_meta_attach(const struct mtftl_config *config, struct bio *bio,
				     struct mtftl_meta *meta, void *oob)
{
	u32 size = (bio->bi_iter.bi_size >> MTFTL_BLOCK_SHIFT) * config->meta_size;

	if (!size)
		return;
	oob = oob ?: page_address(ZERO_PAGE(0));
	meta->vec = (struct bio_vec){
		.bv_page = virt_to_page(oob), .bv_len = size, .bv_offset = offset_in_page(oob),
	};
	memset(&meta->payload, 0, sizeof(meta->payload));
#ifdef MTFTL_HAS_BIP_BIO
	meta->payload.bip_bio = bio;
#endif
	meta->payload.bip_vec = &meta->vec;
	meta->payload.bip_vcnt = 1;
	meta->payload.bip_max_vcnt = 1;
	meta->payload.bip_iter.bi_size = size;
	meta->payload.bip_iter.bi_sector = bio->bi_iter.bi_sector;
	bio->bi_integrity = &meta->payload;
	bio->bi_opf |= REQ_INTEGRITY;
}

/* Before the bio is given back: its owner would free this. */
static inline void mtftl_meta_detach(struct bio *bio)
{
	bio->bi_integrity = NULL;
	bio->bi_opf &= ~REQ_INTEGRITY;
}
#else
static inline u32 mtftl_meta_size(struct block_device *bdev)
{
	return 0;
}

static inline void mtftl_meta_attach(const struct mtftl_config *config, struct bio *bio,
				     struct mtftl_meta *meta, void *oob)
{
}

static inline void mtftl_meta_detach(struct bio *bio)
{
}
#endif

#endif
