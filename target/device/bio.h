/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the target notes of each bio, in memory that device-mapper gives with it.
 */
#ifndef MTFTL_BIO_H
#define MTFTL_BIO_H

#include <linux/bio.h>
#include <linux/device-mapper.h>

#include "device/compat.h"

struct mtftl_bio {
	u64 since;		/* writes that wait: ns */
	int reader;		/* reads of the device: what to leave by */
	bool reads;
	bool through;		/* a FUA write that no flush is needed for: see map.h */
	u32 lba, nr;		/* its blocks that may not be on flash yet */
	u32 slot;		/* that the first one waits for */
	unsigned long dropped;	/* as mtftl_map's, when it began */
};

static inline struct mtftl_bio *mtftl_bio(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct mtftl_bio));
}

/* What the writer says of how long the data will live: see hint.h. None before 6.9. */
static inline u32 mtftl_bio_hint(const struct bio *bio)
{
#ifdef MTFTL_HAS_WRITE_HINT
	return bio->bi_write_hint;
#else
	return 0;
#endif
}

/* With noflush device-mapper sends it again after the resume. */
static inline void mtftl_give_back(struct bio *bio)
{
	bio->bi_status = BLK_STS_DM_REQUEUE;
	bio_endio(bio);
}

#endif
