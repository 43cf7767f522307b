// SPDX-License-Identifier: GPL-2.0
/*
 * What a zone holds: see walk.h.
 */
#include "zone/walk.h"

#include "device/pause.h"
#include "device/rw.h"
#include "device/space.h"

/* One FOOTER unit at *@at: its blocks of the stream, which begin at *@index. */
static int read_footer_unit(struct mtftl *ftl, struct mtftl_zone *zone, void *buf, u32 *at,
			    void *stream, u32 *index, u32 blocks)
{
	u32 max = min(ftl->config.capacity - *at, MTFTL_BUFFER_BLOCKS), i, crc;
	struct mtftl_unit_info info;
	u64 lba;
	int r;

	/* The stream is not complete, and the zone is at its end. */
	if (!max)
		return -EINVAL;
	r = mtftl_rw_sync(ftl, REQ_OP_READ, mtftl_zone_start(zone) + *at, buf, max);
	r = r ?: mtftl_unit_parse(buf, ftl->config.seed, zone->index, *at, ftl->config.capacity,
				  &info);
	if (r)
		return r;
	mtftl_assert(*at + 1 + info.nr_blocks <= ftl->config.capacity);
	if (info.type != MTFTL_UNIT_FOOTER || info.erase_count != zone->erase_count ||
	    !info.nr_entries || info.nr_blocks >= max)
		return -EINVAL;
	for (i = 0; i < info.nr_entries && *index < blocks; i++, (*index)++) {
		void *block = buf + (1 + i) * MTFTL_BLOCK_SIZE;

		mtftl_unit_entry(buf, i, &lba, &crc);
		if (lba != *index || crc != mtftl_payload_crc(ftl->config.seed, block))
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

/* Read the footer into @stream, which the longest one fits; its size, 0: none that verifies. */
static u32 read_footer(struct mtftl *ftl, struct mtftl_zone *zone, void *buf, void *stream)
{
	u32 capacity = ftl->config.capacity, at, index = 0, size;
	u32 last = mtftl_zone_start(zone) + capacity - 1;
	struct mtftl_tail_info tail;
	bool oob = !ftl->config.header_blocks;

	if (zone->wp < capacity || mtftl_rw_sync(ftl, REQ_OP_READ, last, buf, 1) ||
	    mtftl_tail_parse(buf, ftl->config.seed, zone->index, capacity, oob, &tail) ||
	    tail.erase_count != zone->erase_count)
		return 0;
	for (at = tail.footer_offset; index < tail.footer_blocks; ) {
		sit_out_pauses(ftl);
		if (read_footer_unit(ftl, zone, buf, &at, stream, &index, tail.footer_blocks))
			return 0;
	}
	size = tail.footer_blocks * MTFTL_BLOCK_SIZE;
	mtftl_assert(tail.footer_blocks <= mtftl_footer_list_blocks(&ftl->config));
	return mtftl_footer_valid(stream, size, &tail, oob) ? size : 0;
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
	u32 size = read_footer(ftl, zone, buf, stream);
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
