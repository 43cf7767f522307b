// SPDX-License-Identifier: GPL-2.0
/*
 * Map blocks: see mapblocks.h.
 *
 * A map block whose bit in map->changed is clear is on flash as the directory says. Its bit is
 * cleared when it is copied, so a copy that is not written leaves the directory wrong: then the
 * next checkpoint writes all of the map.
 *
 * A mount reads the zones of the span in pieces of its buffers, and takes from each the map blocks
 * that the directory has there. So a log in any order is read in order.
 */
#include "durable/mapblocks.h"

#include <linux/slab.h>

#include "device/device.h"
#include "device/rw.h"
#include "map/map.h"
#include "zone/super.h"
#include "zone/zones.h"

#define PER_BLOCK	(MTFTL_BLOCK_SIZE / (u32)sizeof(struct mtftl_map_place))

struct mtftl_mapblocks {
	struct mtftl *ftl;
	struct mtftl_log_shape shape;
	struct mtftl_map_place *places;	/* the directory, whole blocks */
	unsigned long *todo;		/* a bit for each: the checkpoint being written has it */
	u32 seats[MTFTL_SB_MAX_LOG_ZONES];	/* a number for each, of blocks or a mark */

	/* A mount: */
	u32 *lie;			/* 1 + which one lies at each block of the span; 0: none */
	u32 oldest, span;		/* seats */
};

static u32 directory_blocks(const struct mtftl_mapblocks *blocks)
{
	return blocks->shape.stream_blocks - blocks->shape.record_blocks;
}

struct mtftl_mapblocks *mtftl_mapblocks_alloc(struct mtftl *ftl)
{
	struct mtftl_mapblocks *blocks = kzalloc_obj(*blocks, GFP_KERNEL);
	u32 places;

	if (!blocks)
		return NULL;
	blocks->ftl = ftl;
	mtftl_log_shape(&blocks->shape, ftl->config.nr_zones, ftl->config.capacity,
			ftl->config.logical_blocks);
	mtftl_assert(blocks->shape.map_blocks == mtftl_map_chunks(ftl));
	places = directory_blocks(blocks) * PER_BLOCK;
	blocks->places = kvmalloc_array(places, sizeof(*blocks->places), GFP_KERNEL);
	blocks->todo = kvcalloc(BITS_TO_LONGS(blocks->shape.map_blocks), sizeof(long), GFP_KERNEL);
	if (blocks->places && blocks->todo) {
		/* Nowhere. */
		memset(blocks->places, 0xff, places * sizeof(*blocks->places));
		return blocks;
	}
	mtftl_mapblocks_free(blocks);
	return NULL;
}

void mtftl_mapblocks_free(struct mtftl_mapblocks *blocks)
{
	if (!blocks)
		return;
	kvfree(blocks->places);
	kvfree(blocks->todo);
	kfree(blocks);
}

u64 mtftl_mapblocks_bytes(const struct mtftl_mapblocks *blocks)
{
	return (u64)directory_blocks(blocks) * MTFTL_BLOCK_SIZE +
	       BITS_TO_LONGS(blocks->shape.map_blocks) * sizeof(long);
}

const struct mtftl_log_shape *mtftl_mapblocks_shape(const struct mtftl_mapblocks *blocks)
{
	return &blocks->shape;
}

/* Writing */

/* How many are to be written; of the others, how many each seat holds. */
static u32 count(struct mtftl_mapblocks *blocks)
{
	u32 i, changed = 0;

	memset(blocks->seats, 0, sizeof(blocks->seats));
	for (i = 0; i < blocks->shape.map_blocks; i++) {
		const struct mtftl_map_place *place = &blocks->places[i];

		if (test_bit(i, blocks->todo))
			changed++;
		else if (!mtftl_place_is_none(place))
			blocks->seats[mtftl_place_seat(&blocks->shape, place)]++;
		if (!(i % PER_BLOCK))
			cond_resched();
	}
	return changed;
}

/* What lies in seats that are marked is written, too. */
static void carry(struct mtftl_mapblocks *blocks)
{
	u32 i;

	for (i = 0; i < blocks->shape.map_blocks; i++) {
		const struct mtftl_map_place *place = &blocks->places[i];

		if (!test_bit(i, blocks->todo) && !mtftl_place_is_none(place) &&
		    blocks->seats[mtftl_place_seat(&blocks->shape, place)])
			__set_bit(i, blocks->todo);
		if (!(i % PER_BLOCK))
			cond_resched();
	}
}

void mtftl_mapblocks_plan(struct mtftl_mapblocks *blocks, const struct mtftl_log *log, bool all,
			  struct mtftl_log_plan *plan)
{
	u32 changed, i;

	if (all) {
		memset(blocks->todo, 0xff,
		       BITS_TO_LONGS(blocks->shape.map_blocks) * sizeof(long));
		mtftl_log_plan_all(&blocks->shape, blocks->shape.map_blocks, plan);
		return;
	}
	mtftl_map_copy_changed(blocks->ftl, blocks->todo);
	changed = count(blocks);
	mtftl_log_plan(&blocks->shape, log, changed, blocks->seats, plan);
	memset(blocks->seats, plan->all ? 0xff : 0, sizeof(blocks->seats));
	for (i = 0; i < plan->carried; i++)
		blocks->seats[mtftl_log_oldest(&blocks->shape, log, i)] = 1;
	if (plan->all || plan->carried)
		carry(blocks);
}

/* The directory says so from now on, whether the checkpoint succeeds or not. */
static void landed(struct mtftl_ckpt_stream *stream, u32 seat, u32 offset)
{
	struct mtftl_mapblocks *blocks = stream->private;
	u64 lba;
	u32 i, crc;

	for (i = 0; i < stream->fill; i++) {
		mtftl_unit_entry(stream->buf, i, &lba, &crc);
		mtftl_assert(lba < blocks->shape.map_blocks, "map block %llu", lba);
		mtftl_place_set(&blocks->shape, &blocks->places[lba], seat, offset + 1 + i, crc);
	}
}

static int write_block(struct mtftl_mapblocks *blocks, struct mtftl_ckpt_stream *stream, u32 index)
{
	__le32 *block;
	u32 nr;
	int r;

	block = mtftl_ckpt_next_block(stream, index, &r);
	if (r)
		return r;
	nr = mtftl_map_durable(blocks->ftl, index, block);
	/* What pads the last one is unmapped. */
	memset(block + nr, 0xff, MTFTL_BLOCK_SIZE - nr * sizeof(*block));
	if (mtftl_map_block_is_empty(block)) {
		mtftl_ckpt_drop_block(stream);
		blocks->places[index].at = cpu_to_le32(MTFTL_PLACE_NONE);
	}
	return 0;
}

int mtftl_mapblocks_write(struct mtftl_mapblocks *blocks, struct mtftl_ckpt_stream *stream)
{
	u32 i;
	int r = 0;

	BUILD_BUG_ON(MTFTL_BLOCK_SIZE / MTFTL_MAP_ENTRY_BYTES != 1 << MTFTL_CHUNK_SHIFT);
	mtftl_ckpt_begin_run(stream, MTFTL_UNIT_MAP);
	stream->landed = landed;
	stream->private = blocks;
	for (i = 0; !r && i < blocks->shape.map_blocks; i++) {
		if (test_bit(i, blocks->todo))
			r = write_block(blocks, stream, i);
		cond_resched();
	}
	return r ?: mtftl_ckpt_end_run(stream);
}

int mtftl_mapblocks_write_directory(struct mtftl_mapblocks *blocks,
				    struct mtftl_ckpt_stream *stream)
{
	void *block;
	u32 i;
	int r;

	for (i = 0; i < directory_blocks(blocks); i++) {
		block = mtftl_ckpt_next_block(stream, blocks->shape.record_blocks + i, &r);
		if (r)
			return r;
		memcpy(block, blocks->places + i * PER_BLOCK, MTFTL_BLOCK_SIZE);
	}
	return 0;
}

/* Loading */

int mtftl_mapblocks_load_entries(struct mtftl *ftl, u64 lba, const void *block, bool tell)
{
	u32 nr_zones = ftl->config.nr_zones, zone_shift = ftl->config.zone_shift;
	u32 capacity = ftl->config.capacity, i, n;
	const __le32 *in = block;

	mtftl_assert(lba < ftl->config.logical_blocks, "block %llu", lba);
	n = min_t(u64, 1u << MTFTL_CHUNK_SHIFT, ftl->config.logical_blocks - lba);
	for (i = 0; i < n; i++) {
		u32 value = le32_to_cpu(in[i]);

		if (!mtftl_map_entry_valid(value, nr_zones, zone_shift, capacity)) {
			if (tell)
				mtftl_err(ftl, "checkpoint: map entry of block %llu is %#x, expected a block of a zone",
					  lba + i, value);
			return -EINVAL;
		}
		mtftl_map_load(ftl, lba + i, value);
	}
	return 0;
}

void mtftl_mapblocks_load_directory(struct mtftl_mapblocks *blocks, u32 index, const void *block)
{
	mtftl_assert(index < directory_blocks(blocks), "block %u", index);
	memcpy(blocks->places + index * PER_BLOCK, block, MTFTL_BLOCK_SIZE);
}

static u32 zone_in(const struct mtftl_mapblocks *blocks, u32 seat)
{
	return mtftl_super_info(blocks->ftl)->ckpt_zones[seat];
}

static int count_places(struct mtftl_mapblocks *blocks)
{
	u32 i;

	memset(blocks->seats, 0, sizeof(blocks->seats));
	for (i = 0; i < blocks->shape.map_blocks; i++) {
		const struct mtftl_map_place *place = &blocks->places[i];
		u32 seat;

		if (!mtftl_place_valid(&blocks->shape, place)) {
			mtftl_err(blocks->ftl, "checkpoint: directory: map block %u is at %u, expected a block behind a header in one of %u seats of %u blocks",
				  i, le32_to_cpu(place->at), blocks->shape.seats,
				  blocks->shape.capacity);
			return -EINVAL;
		}
		if (mtftl_place_is_none(place))
			continue;
		seat = mtftl_place_seat(&blocks->shape, place);
		if (mtftl_place_offset(&blocks->shape, place) >=
		    mtftl_zone(blocks->ftl, zone_in(blocks, seat))->wp) {
			mtftl_err(blocks->ftl, "checkpoint: directory: map block %u is at %u, expected a block that is written",
				  i, le32_to_cpu(place->at));
			return -EINVAL;
		}
		blocks->seats[seat]++;
	}
	return 0;
}

/* Of a place in the span: which block of the span it is. */
static size_t block_of(const struct mtftl_mapblocks *blocks, u32 seat, u32 offset)
{
	u32 age = (seat + blocks->shape.seats - blocks->oldest) % blocks->shape.seats;

	mtftl_assert(age < blocks->span && offset < blocks->shape.capacity, "seat %u: block %u",
		     seat, offset);
	return (size_t)age * blocks->shape.capacity + offset;
}

static int lay_out(struct mtftl_mapblocks *blocks)
{
	u32 i;

	for (i = 0; i < blocks->shape.map_blocks; i++) {
		const struct mtftl_map_place *place = &blocks->places[i];
		u32 *lies;

		if (mtftl_place_is_none(place))
			continue;
		lies = &blocks->lie[block_of(blocks, mtftl_place_seat(&blocks->shape, place),
					     mtftl_place_offset(&blocks->shape, place))];
		if (*lies) {
			mtftl_err(blocks->ftl, "checkpoint: directory: map blocks %u and %u are at %u, expected places of their own",
				  *lies - 1, i, le32_to_cpu(place->at));
			return -EINVAL;
		}
		*lies = 1 + i;
	}
	return 0;
}

static int load_block(struct mtftl_mapblocks *blocks, u32 index, const void *block)
{
	u32 crc = mtftl_payload_crc(blocks->ftl->config.seed, block);

	mtftl_assert(index < blocks->shape.map_blocks, "map block %u", index);
	if (crc == le32_to_cpu(blocks->places[index].crc))
		return mtftl_mapblocks_load_entries(blocks->ftl, (u64)index << MTFTL_CHUNK_SHIFT,
						    block, true);
	mtftl_err(blocks->ftl, "checkpoint: directory: map block %u at %u has checksum %#x, expected crc %#x",
		  index, le32_to_cpu(blocks->places[index].at), crc,
		  le32_to_cpu(blocks->places[index].crc));
	return -EBADMSG;
}

static u32 zone_parts(const struct mtftl_mapblocks *blocks)
{
	return DIV_ROUND_UP(blocks->shape.capacity, MTFTL_BUFFER_BLOCKS);
}

/* Some blocks of a zone, from the first one that is needed to the last one. */
static int load_part(void *private, u32 number, void *buf)
{
	struct mtftl_mapblocks *blocks = private;
	u32 seat = mtftl_log_seat(&blocks->shape, blocks->oldest, number / zone_parts(blocks));
	u32 first = number % zone_parts(blocks) * MTFTL_BUFFER_BLOCKS, end, i;
	const u32 *lie = &blocks->lie[block_of(blocks, seat, 0)];
	u32 page = mtftl_zone_page(blocks->ftl, zone_in(blocks, seat));
	bool together;
	int r = 0;

	end = min(first + MTFTL_BUFFER_BLOCKS, blocks->shape.capacity);
	while (first < end && !lie[first])
		first++;
	while (first < end && !lie[end - 1])
		end--;
	if (first == end)
		return 0;
	/* Between them may lie what a power cut tore: then each is read by itself. */
	together = !mtftl_rw_sync(blocks->ftl, REQ_OP_READ, page + first, buf, end - first);
	for (i = first; !r && i < end; i++) {
		void *block = buf + (i - first) * MTFTL_BLOCK_SIZE;

		if (!lie[i])
			continue;
		if (!together)
			r = mtftl_rw_sync(blocks->ftl, REQ_OP_READ, page + i, block, 1);
		if (r)
			mtftl_err(blocks->ftl, "checkpoint: zone %u block %u: map block %u cannot be read (%d)",
				  zone_in(blocks, seat), i, lie[i] - 1, r);
		else
			r = load_block(blocks, lie[i] - 1, block);
	}
	return r;
}

int mtftl_mapblocks_load(struct mtftl_mapblocks *blocks, struct mtftl_spread *spread, u32 first,
			 u32 head, u32 *span)
{
	u32 most = blocks->shape.seats / 2;
	int r = count_places(blocks);

	if (r)
		return r;
	blocks->span = mtftl_log_span(&blocks->shape, blocks->seats, first, head);
	if (blocks->span > most) {
		mtftl_err(blocks->ftl, "checkpoint: directory: map blocks are in %u seats up to seat %u, expected at most %u",
			  blocks->span, head, most);
		return -EINVAL;
	}
	blocks->oldest = mtftl_log_seat(&blocks->shape, head,
					blocks->shape.seats + 1 - blocks->span);
	blocks->lie = kvcalloc((size_t)blocks->span * blocks->shape.capacity,
			       sizeof(*blocks->lie), GFP_NOIO);
	r = blocks->lie ? lay_out(blocks) : -ENOMEM;
	if (!r)
		r = mtftl_spread(spread, blocks->span * zone_parts(blocks), load_part, blocks);
	kvfree(blocks->lie);
	blocks->lie = NULL;
	*span = blocks->span;
	return r;
}
