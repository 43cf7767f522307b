// SPDX-License-Identifier: GPL-2.0
/*
 * Reads units: see scan.h. Without headers each block has to be read, so many are read at once.
 * The same is done where no unit is found and where units are short: in a zone that was finished
 * early most blocks belong to no unit. Of longer units only the headers are read.
 */
#include "zone/scan.h"

#include <linux/slab.h>

#include "device/rw.h"

#define AHEAD	MTFTL_BUFFER_BLOCKS

static_assert(AHEAD * MTFTL_META_MAX <= PAGE_SIZE);

struct mtftl_scanner {
	void *blocks;
	void *oob;
	u32 page;		/* where they are from */
	u32 nr;			/* 0: nothing is at hand */
	u32 next;		/* behind what was looked at last */
	bool dense;		/* and there several headers are worth one read */
};

struct mtftl_scanner *mtftl_scanner_alloc(const struct mtftl *ftl, gfp_t gfp)
{
	struct mtftl_scanner *scanner = kzalloc_obj(*scanner, gfp);

	if (!scanner)
		return NULL;
	scanner->blocks = (void *)__get_free_pages(gfp, MTFTL_BUFFER_ORDER);
	if (!ftl->config.header_blocks)
		scanner->oob = (void *)__get_free_page(gfp);
	if (scanner->blocks && (scanner->oob || ftl->config.header_blocks))
		return scanner;
	mtftl_scanner_free(scanner);
	return NULL;
}

void mtftl_scanner_free(struct mtftl_scanner *scanner)
{
	if (!scanner)
		return;
	free_pages((unsigned long)scanner->blocks, MTFTL_BUFFER_ORDER);
	free_page((unsigned long)scanner->oob);
	kfree(scanner);
}

static int read_blocks(struct mtftl_scanner *scanner, struct mtftl *ftl, u32 page, u32 nr)
{
	if (ftl->config.header_blocks)
		return mtftl_rw_sync(ftl, REQ_OP_READ, page, scanner->blocks, nr);
	return mtftl_read_oob(ftl, page, scanner->blocks, nr, scanner->oob);
}

/* From @page on. One block that cannot be read must not hide those before it. */
static int read_ahead(struct mtftl_scanner *scanner, struct mtftl *ftl, u32 page, u32 nr)
{
	int r;

	mtftl_assert(nr && nr <= AHEAD, "%u blocks", nr);
	scanner->page = page;
	scanner->nr = nr;
	r = read_blocks(scanner, ftl, page, nr);
	if (r && nr > 1) {
		scanner->nr = 1;
		r = read_blocks(scanner, ftl, page, 1);
	}
	if (r)
		scanner->nr = 0;
	return r;
}

/* Blocks read ahead in another life of the zone, or before its last writes, do not count. */
static int have_block(struct mtftl_scanner *scanner, struct mtftl_zone *zone, u32 at, u32 ahead)
{
	u32 page = mtftl_zone_start(zone) + at;

	mtftl_assert(at < zone->wp, "zone %u: block %u, wp %u", zone->index, at, zone->wp);
	if (page > scanner->page && page < scanner->page + scanner->nr)
		return 0;
	return read_ahead(scanner, zone->ftl, page, clamp(zone->wp - at, 1u, ahead));
}

static int read_header(struct mtftl_scanner *scanner, struct mtftl_zone *zone, u32 at, void *header,
		       struct mtftl_unit_info *info)
{
	const struct mtftl_config *config = &zone->ftl->config;
	u32 page = mtftl_zone_start(zone) + at;
	bool dense = scanner->dense && page == scanner->next;
	int r = have_block(scanner, zone, at, dense ? AHEAD : 1);
	u32 blocks = 1;

	if (!r) {
		memcpy(header, scanner->blocks + (page - scanner->page) * MTFTL_BLOCK_SIZE,
		       MTFTL_BLOCK_SIZE);
		r = !mtftl_unit_parse(header, config->seed, zone->index, at, config->capacity,
				      info);
	}
	if (r == 1)
		blocks += info->nr_blocks;
	mtftl_assert(at + blocks <= config->capacity, "zone %u: %u blocks at %u", zone->index,
		     blocks, at);
	scanner->next = page + blocks;
	scanner->dense = blocks <= AHEAD / 4;
	return mtftl_medium_says(r) ? 0 : r;
}

int mtftl_scan_unit(struct mtftl_scanner *scanner, struct mtftl_zone *zone, u32 at, void *header,
		    struct mtftl_unit_info *info)
{
	const struct mtftl_config *config = &zone->ftl->config;
	u32 skip;
	int r;

	if (config->header_blocks)
		return read_header(scanner, zone, at, header, info);
	r = have_block(scanner, zone, at, AHEAD);
	if (r)
		return mtftl_medium_says(r) ? 0 : r;
	skip = mtftl_zone_start(zone) + at - scanner->page;
	mtftl_assert(skip < scanner->nr, "%u of %u", skip, scanner->nr);
	if (mtftl_oob_parse(scanner->blocks + skip * MTFTL_BLOCK_SIZE,
			    scanner->oob + skip * config->meta_size, config->meta_size,
			    scanner->nr - skip, config->seed, zone->index, at, config->capacity,
			    header, info))
		return 0;
	/* That of a header is whole. */
	if (!mtftl_unit_head(true, info->type))
		info->erase_count = mtftl_erase_count(zone->erase_count, info->erase_count);
	return 1;
}
