// SPDX-License-Identifier: GPL-2.0
/*
 * Reads, and what keeps a zone from being reset under them.
 *
 * A reader enters (SRCU), then looks the map up, and leaves when the device has answered, on
 * whatever CPU that is. Who wants to reset a zone that no entry points to any more waits
 * for those who entered before: later readers cannot have seen an entry that was dropped
 * before. The counts are per CPU: readers share nothing.
 */
#include "ftl.h"

int mtftl_read_init(struct mtftl *ftl)
{
	int r = init_srcu_struct(&ftl->readers);

	ftl->readers_counted = !r;
	return r;
}

void mtftl_read_exit(struct mtftl *ftl)
{
	if (ftl->readers_counted)
		cleanup_srcu_struct(&ftl->readers);
	ftl->readers_counted = false;
}

/* Everybody who looked the map up before this call has got his answer. Sleeps. */
void mtftl_wait_readers(struct mtftl *ftl)
{
	/* Not the other kind: that takes several ticks, for a few microseconds of CPU. */
	synchronize_srcu_expedited(&ftl->readers);
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
	u32 value, run;
	int reader;

	for (;;) {
		reader = mtftl_compat_reader_enter(&ftl->readers);
		value = READ_ONCE(ftl->map[lba]);
		if (mtftl_is_page(value))
			break;
		mtftl_compat_reader_leave(&ftl->readers, reader);

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
	io->reader = reader;
	io->reads = true;
	bio_set_dev(bio, ftl->bdev);
	bio->bi_iter.bi_sector = mtftl_page_sector(value);
	return DM_MAPIO_REMAPPED;
}
