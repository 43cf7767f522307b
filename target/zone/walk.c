// SPDX-License-Identifier: GPL-2.0
/*
 * What a zone holds: see walk.h.
 */
#include "zone/walk.h"

#include "device/pause.h"
#include "device/rw.h"
#include "device/space.h"

/*
 * One FOOTER unit at *@at: its blocks of the stream, which begin at *@index. -EBADMSG: it does not
 * verify; or an error that may pass.
 */
static int read_footer_unit(struct mtftl_zone *zone, void *buf, u32 *at, void *stream, u32 *index,
			    const struct mtftl_tail_info *tail)
{
	const struct mtftl_config *config = &zone->ftl->config;
	u32 max = min(config->capacity - *at, MTFTL_BUFFER_BLOCKS), i, crc;
	struct mtftl_unit_info info;
	u64 lba;
	int r;

	/* The stream is not complete, and the zone is at its end. */
	if (!max)
		return -EBADMSG;
	r = mtftl_rw_sync(zone->ftl, REQ_OP_READ, mtftl_zone_start(zone) + *at, buf, max);
	if (r)
		return mtftl_medium_says(r) ? -EBADMSG : r;
	if (mtftl_unit_parse(buf, config->seed, zone->index, *at, config->capacity, &info))
		return -EBADMSG;
	mtftl_assert(*at + 1 + info.nr_blocks <= config->capacity);
	if (info.type != MTFTL_UNIT_FOOTER || info.erase_count != tail->erase_count ||
	    !info.nr_entries || info.nr_blocks >= max)
		return -EBADMSG;
	for (i = 0; i < info.nr_entries && *index < tail->footer_blocks; i++, (*index)++) {
		void *block = buf + (1 + i) * MTFTL_BLOCK_SIZE;

		mtftl_unit_entry(buf, i, &lba, &crc);
		if (lba != *index || crc != mtftl_payload_crc(config->seed, block))
			return -EBADMSG;
		memcpy(stream + *index * MTFTL_BLOCK_SIZE, block, MTFTL_BLOCK_SIZE);
	}
	*at += 1 + info.nr_blocks;
	return 0;
}

/* A pause waits for one read at most. The walk keeps its place: frequent pauses do not stop GC. */
static void sit_out_pauses(struct mtftl *ftl)
{
	if (likely(!mtftl_is_paused(ftl)))
		return;
	mtftl_send_end(ftl);
	mtftl_space_send_begin(ftl);
}

int mtftl_walk_tail(struct mtftl_zone *zone, void *buf, struct mtftl_tail_info *tail)
{
	const struct mtftl_config *config = &zone->ftl->config;
	int r;

	if (zone->wp < config->capacity)
		return 0;
	r = mtftl_rw_sync(zone->ftl, REQ_OP_READ, mtftl_zone_start(zone) + config->capacity - 1,
			  buf, 1);
	if (r)
		return mtftl_medium_says(r) ? 0 : r;
	return !mtftl_tail_parse(buf, config->seed, zone->index, config->capacity,
				 !config->header_blocks, tail);
}

int mtftl_walk_footer(struct mtftl_zone *zone, void *buf, void *stream,
		      const struct mtftl_tail_info *tail)
{
	u32 size = tail->footer_blocks * MTFTL_BLOCK_SIZE, at = tail->footer_offset, index = 0;
	struct mtftl *ftl = zone->ftl;
	int r;

	mtftl_assert(tail->footer_blocks <= mtftl_footer_list_blocks(&ftl->config), "%u blocks",
		     tail->footer_blocks);
	/* Another one is a user's copy of an older tail. */
	if (tail->erase_count != zone->erase_count)
		return 0;
	while (index < tail->footer_blocks) {
		sit_out_pauses(ftl);
		r = read_footer_unit(zone, buf, &at, stream, &index, tail);
		if (r)
			return r == -EBADMSG ? 0 : r;
	}
	return mtftl_footer_valid(stream, size, tail, !ftl->config.header_blocks);
}

/* Read the footer into @stream, which the longest one fits; its size, 0: none that verifies. */
static u32 read_footer(struct mtftl_zone *zone, void *buf, void *stream)
{
	struct mtftl_tail_info tail;

	if (mtftl_walk_tail(zone, buf, &tail) <= 0 ||
	    mtftl_walk_footer(zone, buf, stream, &tail) <= 0)
		return 0;
	return tail.footer_blocks * MTFTL_BLOCK_SIZE;
}

static void walk_footer(struct mtftl_zone *zone, const void *stream, u32 size,
			mtftl_walk_fn block, void *private)
{
	u32 pos = 0, offset, i, start = mtftl_zone_start(zone);
	enum mtftl_unit_type type;
	const __le64 *lbas;
	u16 nr;
	u64 seq;

	while (mtftl_footer_next(stream, size, &pos, &seq, &offset, &type, &nr, &lbas) == 1) {
		mtftl_assert(offset + nr < zone->ftl->config.capacity, "zone %u: %u at %u",
			     zone->index, nr, offset);
		if (type == MTFTL_UNIT_RANGES)
			block(private, type, start + offset, 0, 0);
		for (i = 0; i < nr; i++)
			block(private, type, start + offset, i, le64_to_cpu(lbas[i]));
	}
}

/*
 * Every block that units of a zone hold, for GC. They come from the footer, which is read into
 * @stream. If the footer does not verify, they come from the headers. False: blocks that cannot be
 * read are left out. The caller has begun to send; the walk waits while there is a pause.
 */
bool mtftl_zone_walk(struct mtftl_zone *zone, struct mtftl_scanner *scanner, void *buf,
		     void *stream, mtftl_walk_fn block, void *private)
{
	struct mtftl *ftl = zone->ftl;
	u32 start = mtftl_zone_start(zone), at = 0, i, crc;
	u32 size = read_footer(zone, buf, stream);
	struct mtftl_unit_info info;
	bool all = true;
	u64 lba;
	int r;

	if (size) {
		walk_footer(zone, stream, size, block, private);
		return true;
	}
	while (at < zone->wp) {
		sit_out_pauses(ftl);
		r = mtftl_scan_unit(scanner, zone, at, buf, &info);
		if (r <= 0) {
			all = false;
			at++;
			continue;
		}
		if (info.type == MTFTL_UNIT_DATA || info.type == MTFTL_UNIT_GC)
			for (i = 0; i < info.nr_entries; i++) {
				mtftl_unit_entry(buf, i, &lba, &crc);
				block(private, info.type, start + at, i, lba);
			}
		if (info.type == MTFTL_UNIT_RANGES)
			block(private, info.type, start + at, 0, 0);
		at += mtftl_unit_head(!ftl->config.header_blocks, info.type) + info.nr_blocks;
		mtftl_assert(at <= ftl->config.capacity, "zone %u: %u", zone->index, at);
	}
	return all;
}
