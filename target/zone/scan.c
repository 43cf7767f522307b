// SPDX-License-Identifier: GPL-2.0
/*
 * Reads units: see scan.h. Without headers each block has to be read, so many are read at once.
 * The same is done where no unit is found and where units are short: in a zone that was finished
 * early most blocks belong to no unit. Of longer units only the headers are read.
 */
#include "zone/scan.h"

#include <linux/slab.h>

#define AHEAD	MTFTL_BUFFER_BLOCKS

static_assert(AHEAD * MTFTL_META_MAX <= PAGE_SIZE);

struct mtftl_reader {
	void *blocks;
	void *oob;
	u32 page;		/* where they are from */
	u32 nr;			/* 0: nothing is at hand */
	u32 next;		/* behind what was looked at last */
	bool dense;		/* and there several headers are worth one read */
};

struct mtftl_reader *mtftl_reader_alloc(const struct mtftl *ftl, gfp_t gfp)
{
	struct mtftl_reader *reader = kzalloc(sizeof(*reader), gfp);

	if (!reader)
		return NULL;
	reader->blocks = (void *)__get_free_pages(gfp, MTFTL_BUFFER_ORDER);
	if (!ftl->config.head)
		reader->oob = (void *)__get_free_page(gfp);
	if (reader->blocks && (reader->oob || ftl->config.head))
		return reader;
	mtftl_reader_free(reader);
	return NULL;
}

void mtftl_reader_free(struct mtftl_reader *reader)
{
	if (!reader)
		return;
	free_pages((unsigned long)reader->blocks, MTFTL_BUFFER_ORDER);
	free_page((unsigned long)reader->oob);
	kfree(reader);
}

static int read_blocks(struct mtftl_reader *reader, struct mtftl *ftl, u32 page, u32 nr)
{
	if (ftl->config.head)
		return mtftl_rw_sync(ftl, REQ_OP_READ, page, reader->blocks, nr);
	return mtftl_read_oob(ftl, page, reader->blocks, nr, reader->oob);
}

/* From @page on. One block that cannot be read must not hide those before it. */
static int read_ahead(struct mtftl_reader *reader, struct mtftl *ftl, u32 page, u32 nr)
{
	int r;

	reader->page = page;
	reader->nr = nr;
	r = read_blocks(reader, ftl, page, nr);
	if (r && nr > 1) {
		reader->nr = 1;
		r = read_blocks(reader, ftl, page, 1);
	}
	if (r)
		reader->nr = 0;
	return r;
}

/* Blocks read ahead in another life of the zone, or before its last writes, do not count. */
static int have_block(struct mtftl_reader *reader, struct mtftl_zone *zone, u32 at, u32 ahead)
{
	u32 page = mtftl_zone_start(zone) + at;

	if (page > reader->page && page < reader->page + reader->nr)
		return 0;
	return read_ahead(reader, zone->ftl, page, clamp(zone->wp - at, 1u, ahead));
}

static int read_header(struct mtftl_reader *reader, struct mtftl_zone *zone, u32 at, void *header,
		       struct mtftl_unit_info *info)
{
	const struct mtftl_config *config = &zone->ftl->config;
	u32 page = mtftl_zone_start(zone) + at;
	bool dense = reader->dense && page == reader->next;
	int r = have_block(reader, zone, at, dense ? AHEAD : 1);
	u32 blocks = 1;

	if (!r) {
		memcpy(header, reader->blocks + (page - reader->page) * MTFTL_BLOCK_SIZE,
		       MTFTL_BLOCK_SIZE);
		r = !mtftl_unit_parse(header, config->seed, zone->index, at, config->capacity,
				      info);
	}
	if (r == 1)
		blocks += info->nr_blocks;
	reader->next = page + blocks;
	reader->dense = blocks <= AHEAD / 4;
	return mtftl_medium_says(r) ? 0 : r;
}

int mtftl_read_unit(struct mtftl_reader *reader, struct mtftl_zone *zone, u32 at, void *header,
		    struct mtftl_unit_info *info)
{
	const struct mtftl_config *config = &zone->ftl->config;
	u32 skip;
	int r;

	if (config->head)
		return read_header(reader, zone, at, header, info);
	r = have_block(reader, zone, at, AHEAD);
	if (r)
		return mtftl_medium_says(r) ? 0 : r;
	skip = mtftl_zone_start(zone) + at - reader->page;
	if (mtftl_oob_parse(reader->blocks + skip * MTFTL_BLOCK_SIZE,
			    reader->oob + skip * config->meta_size, config->meta_size,
			    reader->nr - skip, config->seed, zone->index, at, config->capacity,
			    header, info))
		return 0;
	/* That of a header is whole. */
	if (!mtftl_unit_head(true, info->type))
		info->erase_count = mtftl_erase_count(zone->erase_count, info->erase_count);
	return 1;
}
