// SPDX-License-Identifier: GPL-2.0
/*
 * Reads, and what keeps a zone from being reset under them.
 *
 * A reader takes a reference on the current epoch, then looks the map up, and holds the
 * reference until the device has answered. Who wants to reset a zone that no entry
 * points to any more makes the other epoch current and waits until the old one's last
 * reader is gone: later readers cannot have seen an entry that was dropped before.
 * References are per CPU: readers share nothing.
 */
#include "ftl.h"

static void epoch_release(struct percpu_ref *ref)
{
	struct mtftl_epoch *epoch = container_of(ref, struct mtftl_epoch, ref);

	complete(&epoch->idle);
}

int mtftl_read_init(struct mtftl *ftl)
{
	unsigned int i;
	int r;

	mutex_init(&ftl->epoch_lock);
	for (i = 0; i < 2; i++) {
		init_completion(&ftl->epoch[i].idle);
		r = percpu_ref_init(&ftl->epoch[i].ref, epoch_release, PERCPU_REF_ALLOW_REINIT,
				    GFP_KERNEL);
		if (r)
			return r;
	}
	return 0;
}

void mtftl_read_exit(struct mtftl *ftl)
{
	percpu_ref_exit(&ftl->epoch[0].ref);
	percpu_ref_exit(&ftl->epoch[1].ref);
}

static struct percpu_ref *epoch_get(struct mtftl *ftl)
{
	struct percpu_ref *ref;

	/* Fails only in the instant between the flip and the look at the new epoch. */
	do {
		ref = &ftl->epoch[READ_ONCE(ftl->cur_epoch)].ref;
	} while (!percpu_ref_tryget_live(ref));
	return ref;
}

/* Everybody who looked the map up before this call has got his answer. Sleeps. */
void mtftl_wait_readers(struct mtftl *ftl)
{
	struct mtftl_epoch *old;

	mutex_lock(&ftl->epoch_lock);
	old = &ftl->epoch[ftl->cur_epoch];
	reinit_completion(&old->idle);
	WRITE_ONCE(ftl->cur_epoch, !ftl->cur_epoch);
	/* The new epoch is seen by whoever finds the old one dead. */
	smp_mb();
	percpu_ref_kill(&old->ref);
	wait_for_completion(&old->idle);
	percpu_ref_reinit(&old->ref);
	mutex_unlock(&ftl->epoch_lock);
}

static u32 run_length(struct mtftl *ftl, u32 lba, u32 max, u32 value, u32 step)
{
	u32 n = 1;

	while (n < max && READ_ONCE(ftl->map[lba + n]) == value + n * step)
		n++;
	return n;
}

/*
 * The first @n of @of blocks; device-mapper comes again with the rest. REQ_NOWAIT is not
 * offered: of a read in parts one could find the device busy, when the others are under way.
 */
static void accept(struct bio *bio, u32 n, u32 of)
{
	if (n < of)
		dm_accept_partial_bio(bio, n * MTFTL_BLOCK_SECTORS);
}

/* From .map: never sleeps. */
int mtftl_read(struct mtftl *ftl, struct bio *bio)
{
	struct mtftl_bio *io = dm_per_bio_data(bio, sizeof(*io));
	u32 lba = bio->bi_iter.bi_sector / MTFTL_BLOCK_SECTORS;
	u32 n = bio->bi_iter.bi_size >> MTFTL_BLOCK_SHIFT;
	struct percpu_ref *epoch;
	u32 value, run;

	for (;;) {
		/* The epoch first: see above. */
		epoch = epoch_get(ftl);
		value = READ_ONCE(ftl->map[lba]);
		if (mtftl_is_page(value))
			break;
		percpu_ref_put(epoch);

		if (mtftl_is_slot(value)) {
			accept(bio, 1, n);
			n = 1;
			if (!mtftl_map_copy_slot(ftl, lba, value, bio))
				continue;
			mtftl_count(ftl, buffer_reads, 1);
			run = 1;
		} else {
			run = run_length(ftl, lba, n, value, 0);
			accept(bio, run, n);
			if (value == MTFTL_MAP_LOST)
				bio->bi_status = BLK_STS_IOERR;
			else
				zero_fill_bio(bio);
		}
		mtftl_count(ftl, user_reads, run);
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	}
	/* Not across a border of zones: the device may refuse that. */
	run = (1u << ftl->zone_shift) - (value & ((1u << ftl->zone_shift) - 1));
	run = run_length(ftl, lba, min(n, run), value, 1);
	accept(bio, run, n);
	mtftl_count(ftl, user_reads, run);
	io->epoch = epoch;
	bio_set_dev(bio, ftl->bdev);
	bio->bi_iter.bi_sector = mtftl_page_sector(value);
	return DM_MAPIO_REMAPPED;
}
