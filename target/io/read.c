// SPDX-License-Identifier: GPL-2.0
/*
 * Reads, and what keeps a zone from being reset under them.
 *
 * A reader enters (SRCU), then looks the map up, and leaves when the device has answered, on
 * whatever CPU that is. A reset of a zone to which no entry points any more waits for the
 * readers that entered before: later readers cannot have seen an entry that was dropped
 * before. The counts are per CPU: readers share nothing.
 */
#include "io/read.h"

#include "device/bio.h"
#include "device/device.h"
#include "map/map.h"

/* The reader on this CPU had sent other requests before: a hint. */
static DEFINE_PER_CPU(bool, patient);

static u32 run_length(struct mtftl *ftl, u32 lba, u32 max, u32 value, u32 step)
{
	u32 n = 1;

	while (n < max && mtftl_map_look(ftl, lba + n) == value + n * step)
		n++;
	return n;
}

/* What device-mapper comes again with. */
static bool is_rest(const struct bio *bio)
{
	return bio->bi_iter.bi_idx || mp_bvec_iter_offset(bio->bi_io_vec, bio->bi_iter) !=
				      bio->bi_io_vec->bv_offset;
}

/*
 * Accept the first @n of @of blocks; device-mapper sends the rest again. A read in parts waits if
 * the device is busy, also with REQ_NOWAIT. EAGAIN is no answer to it, not even before the first
 * part: io_uring on 6.1 hands that to the application, and so does newer io_uring for polled reads.
 */
static void accept(struct bio *bio, u32 n, u32 of)
{
	mtftl_assert(n && n <= of, "%u of %u blocks", n, of);
	if (n < of || is_rest(bio))
		bio->bi_opf &= ~REQ_NOWAIT;
	if (n < of)
		dm_accept_partial_bio(bio, n * MTFTL_BLOCK_SECTORS);
}

/*
 * File systems plug what they read, for up to 32 commands: the drive would stand still until so
 * many parts are made. A caller that reads one thing waits for it, so each part goes at once. A
 * caller that has sent other bios gains more from few doorbells. The block layer has no way for a
 * driver to say that of a bio. This may sleep, which a bio with REQ_NOWAIT must not.
 */
static void send_early(const struct bio *bio)
{
	struct blk_plug *plug = current->plug;

	if (!plug)
		return;
	if (!is_rest(bio)) {
		this_cpu_write(patient, plug->rq_count);
		return;
	}
	if (!plug->rq_count || this_cpu_read(patient) || (bio->bi_opf & REQ_NOWAIT))
		return;
	blk_finish_plug(plug);
	blk_start_plug(plug);
}

int mtftl_read(struct mtftl *ftl, struct bio *bio)
{
	struct mtftl_bio *io = mtftl_bio(bio);
	u32 lba = bio->bi_iter.bi_sector / MTFTL_BLOCK_SECTORS;
	u32 n = bio->bi_iter.bi_size >> MTFTL_BLOCK_SHIFT;
	u32 value, run;

	mtftl_assert(n && lba + n <= ftl->config.logical_blocks, "%u blocks from %u on", n, lba);
	io->reads = false;
	for (;;) {
		io->reader = mtftl_reader_enter(ftl);
		value = mtftl_map_look(ftl, lba);
		if (mtftl_is_page(value))
			break;
		mtftl_reader_leave(ftl, io->reader);

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
	run = (1u << ftl->config.zone_shift) - mtftl_page_offset(ftl, value);
	run = run_length(ftl, lba, min(n, run), value, 1);
	mtftl_assert(run && mtftl_page_offset(ftl, value) + run <= ftl->config.capacity,
		     "%u blocks from %#x on", run, value);
	send_early(bio);
	accept(bio, run, n);
	mtftl_count(ftl, user_reads, run);
	io->reads = true;
	bio_set_dev(bio, mtftl_bdev(ftl));
	bio->bi_iter.bi_sector = mtftl_page_sector(ftl, value);
	return DM_MAPIO_REMAPPED;
}

void mtftl_read_end(struct mtftl *ftl, struct bio *bio, blk_status_t status)
{
	const struct mtftl_bio *io = mtftl_bio(bio);

	if (!io->reads)
		return;
	mtftl_reader_leave(ftl, io->reader);
	if (unlikely(status))
		mtftl_count(ftl, read_errors, 1);
}
