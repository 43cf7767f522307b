// SPDX-License-Identifier: GPL-2.0
/*
 * What closes a zone: see footer.h.
 */
#include "zone/footer.h"

#include "device/rw.h"
#include "device/seq.h"

#define CLOSE_BLOCKS	MTFTL_BUFFER_BLOCKS	/* written at once */

/* One FOOTER unit at the write pointer: @entries blocks of the stream, then padding. */
static int write_footer_unit(struct mtftl_zone *zone, void *buf, const void *stream,
			     u32 index, u32 entries, u32 blocks)
{
	struct mtftl *ftl = zone->ftl;
	/* First: a flush that runs meanwhile may cover the number drawn here. */
	u64 durable_seq = mtftl_seq_durable(ftl);
	struct mtftl_unit_info info = {
		.type = MTFTL_UNIT_FOOTER,
		.nr_blocks = blocks,
		.lane = U16_MAX,
		.seq = mtftl_seq_draw(ftl),
	};
	u32 i;
	int r;

	mtftl_assert(entries <= blocks && zone->wp + 1 + blocks <= ftl->config.capacity,
		     "zone %u: wp %u, %u of %u blocks", zone->index, zone->wp, entries, blocks);
	mtftl_unit_init(buf, &info);
	memset(buf + MTFTL_BLOCK_SIZE, 0, blocks * MTFTL_BLOCK_SIZE);
	memcpy(buf + MTFTL_BLOCK_SIZE, stream + index * MTFTL_BLOCK_SIZE,
	       entries * MTFTL_BLOCK_SIZE);
	for (i = 0; i < entries; i++)
		mtftl_unit_add_entry(buf, index + i,
				     mtftl_payload_crc(ftl->config.seed,
						       buf + (1 + i) * MTFTL_BLOCK_SIZE));
	mtftl_unit_seal(buf, ftl->config.seed, zone->index, zone->wp, zone->erase_count,
			durable_seq);
	mtftl_assert(mtftl_unit_parses(buf, ftl->config.seed, zone->index, zone->wp,
				       ftl->config.capacity), "zone %u: block %u", zone->index,
		     zone->wp);
	r = mtftl_rw_sync(ftl, REQ_OP_WRITE, mtftl_zone_start(zone) + zone->wp, buf,
			  1 + blocks);
	if (!r)
		zone->wp += 1 + blocks;
	mtftl_count(ftl, meta_blocks, 1 + blocks);
	return r;
}

/* GC will find what the footer lists: for an assertion. */
static bool tail_parses(const struct mtftl *ftl, const struct mtftl_zone *zone, const void *block,
			const struct mtftl_footer *footer)
{
	bool oob = !ftl->config.header_blocks;
	struct mtftl_tail_info info;

	return !mtftl_tail_parse(block, ftl->config.seed, zone->index, ftl->config.capacity, oob,
				 &info) &&
	       mtftl_footer_valid(footer->stream, info.footer_blocks * MTFTL_BLOCK_SIZE, &info,
				  oob);
}

/*
 * Fill the zone up to its last block, so that it gives its place in the budget
 * back: finishing it would make the device pad, which may take a second.
 */
int mtftl_footer_write(struct mtftl_zone *zone, const struct mtftl_footer *footer, void *buf)
{
	struct mtftl *ftl = zone->ftl;
	bool tail = footer && footer->nr_records;
	u32 at = zone->wp, left = 0, index = 0, n;
	int r;

	mtftl_assert(!READ_ONCE(zone->in_flight), "zone %u", zone->index);
	if (tail)
		left = DIV_ROUND_UP(footer->used, MTFTL_BLOCK_SIZE);
	while (zone->wp + tail < ftl->config.capacity) {
		u32 room = min(ftl->config.capacity - tail - zone->wp, CLOSE_BLOCKS) - 1;

		n = min(left, room);
		r = write_footer_unit(zone, buf, tail ? footer->stream : buf, index, n, room);
		if (r)
			return r;
		left -= n;
		index += n;
	}
	if (tail) {
		mtftl_tail_compose(buf, ftl->config.seed, zone->index, zone->erase_count, at,
				   footer);
		mtftl_assert(!left && tail_parses(ftl, zone, buf, footer),
			     "zone %u: %u blocks left", zone->index, left);
		r = mtftl_rw_sync(ftl, REQ_OP_WRITE, mtftl_zone_start(zone) + zone->wp,
				  buf, 1);
		if (r)
			return r;
		zone->wp++;
	}
	mtftl_assert(zone->wp == ftl->config.capacity, "zone %u: wp %u", zone->index, zone->wp);
	if (!ftl->config.capacity_unaligned)
		return 0;
	return mtftl_zone_mgmt(ftl, zone->index, REQ_OP_ZONE_FINISH);
}
