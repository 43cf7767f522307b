// SPDX-License-Identifier: GPL-2.0
/*
 * Reads units: see reader.h. Without headers each block has to be read: many at once, and those
 * that follow are there already.
 */
#include "reader.h"

#include <linux/slab.h>

#define AHEAD	(1u << MTFTL_BUFFER_ORDER)

static_assert(AHEAD * MTFTL_META_MAX <= PAGE_SIZE);

struct mtftl_reader {
	void *blocks;
	void *oob;
	u32 page;		/* where they are from */
	u32 nr;			/* 0: nothing is at hand */
};

struct mtftl_reader *mtftl_reader_alloc(const struct mtftl *ftl, gfp_t gfp)
{
	struct mtftl_reader *reader = kzalloc(sizeof(*reader), gfp);

	if (!reader || ftl->config.head)
		return reader;
	reader->blocks = (void *)__get_free_pages(gfp, MTFTL_BUFFER_ORDER);
	reader->oob = (void *)__get_free_page(gfp);
	if (reader->blocks && reader->oob)
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

/* From @page on. One block that cannot be read must not hide those before it. */
static int read_ahead(struct mtftl_reader *reader, struct mtftl *ftl, u32 page, u32 nr)
{
	int r;

	reader->page = page;
	reader->nr = nr;
	r = mtftl_read_oob(ftl, page, reader->blocks, nr, reader->oob);
	if (r && nr > 1) {
		reader->nr = 1;
		r = mtftl_read_oob(ftl, page, reader->blocks, 1, reader->oob);
	}
	if (r)
		reader->nr = 0;
	return r;
}

int mtftl_read_unit(struct mtftl_reader *reader, struct mtftl_zone *zone, u32 at, void *header,
		    struct mtftl_unit_info *info)
{
	struct mtftl *ftl = zone->ftl;
	const struct mtftl_config *config = &ftl->config;
	u32 page = mtftl_zone_start(zone) + at, skip;
	int r = 0;

	if (config->head) {
		r = mtftl_rw_sync(ftl, REQ_OP_READ, page, header, 1);
		if (r)
			return mtftl_medium_says(r) ? 0 : r;
		return !mtftl_unit_parse(header, config->seed, zone->index, at, config->capacity,
					 info);
	}
	/* What was read ahead of another zone's life, or before its last writes, is not it. */
	if (page <= reader->page || page >= reader->page + reader->nr)
		r = read_ahead(reader, ftl, page, clamp(zone->wp - at, 1u, AHEAD));
	if (r)
		return mtftl_medium_says(r) ? 0 : r;
	skip = page - reader->page;
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
