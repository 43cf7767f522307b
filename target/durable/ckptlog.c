// SPDX-License-Identifier: GPL-2.0
/*
 * Units of checkpoints on their way to the zones set aside: see ckptlog.h.
 */
#include "durable/ckptlog.h"

#include "device/device.h"
#include "device/pause.h"
#include "device/rw.h"
#include "device/seq.h"
#include "device/thread.h"
#include "map/map.h"
#include "zone/zones.h"

static_assert(!(MTFTL_BUFFER_BLOCKS - 1 - MTFTL_LOG_UNIT_BLOCKS));

int mtftl_ckpt_send_begin(struct mtftl *ftl)
{
	if (!mtftl_send_begin(ftl))
		return -EAGAIN;
	if (!mtftl_is_read_only(ftl))
		return 0;
	mtftl_send_end(ftl);
	return -EROFS;
}

int mtftl_ckpt_reset_zone(struct mtftl *ftl, u32 index)
{
	struct mtftl_zone *zone = mtftl_zone(ftl, index);
	int r;

	/* One that holds data is never reset here. */
	mtftl_assert(zone->state == MTFTL_ZONE_CKPT, "zone %u: state %u", index, zone->state);
	mtftl_assert(!mtftl_map_valid(ftl, index), "zone %u", index);
	r = mtftl_ckpt_send_begin(ftl);
	if (r)
		return r;
	zone->erase_count++;
	zone->quiet_wp = 0;
	zone->first_seq = 0;
	r = mtftl_zone_mgmt(ftl, index, REQ_OP_ZONE_RESET);
	mtftl_send_end(ftl);
	zone->broken = r;
	zone->judged = false;
	return r;
}

void mtftl_ckpt_finish_zone(struct mtftl *ftl, u32 index)
{
	struct mtftl_zone *zone = mtftl_zone(ftl, index);
	u32 capacity = ftl->config.capacity;

	mtftl_assert(zone->state == MTFTL_ZONE_CKPT, "zone %u: state %u", index, zone->state);
	/* One that refuses stays as it is. */
	if ((zone->quiet_wp < capacity || ftl->config.capacity_unaligned) &&
	    !mtftl_zone_mgmt(ftl, index, REQ_OP_ZONE_FINISH))
		zone->quiet_wp = capacity;
}

static u32 zone_of(const struct mtftl_ckpt_stream *stream)
{
	return stream->seats[(stream->begin + stream->at.zone) % stream->nr_seats];
}

/* A mount will find the unit written just now: for an assertion. The buffer is free by now. */
static bool reads_back(struct mtftl_ckpt_stream *stream, u32 zone, u64 seq)
{
	const struct mtftl_config *config = &stream->ftl->config;
	u32 at = stream->at.offset, i, crc;
	struct mtftl_unit_info info;
	u64 lba;

	/* A drive that does not answer says nothing of what was written. */
	if (mtftl_rw_sync(stream->ftl, REQ_OP_READ, mtftl_zone_page(stream->ftl, zone) + at,
			  stream->buf, 1 + stream->fill))
		return true;
	if (mtftl_unit_parse(stream->buf, config->seed, zone, at, config->capacity, &info) ||
	    info.type != stream->type || info.seq != seq || info.nr_entries != stream->fill)
		return false;
	for (i = 0; i < info.nr_entries; i++) {
		mtftl_unit_entry(stream->buf, i, &lba, &crc);
		if (lba != stream->ids[i] ||
		    crc != mtftl_payload_crc(config->seed,
					     stream->buf + (1 + i) * MTFTL_BLOCK_SIZE))
			return false;
	}
	return true;
}

/* Header and all: @seq gets its number. */
static void compose(struct mtftl_ckpt_stream *stream, u32 zone, u64 *seq)
{
	const struct mtftl_config *config = &stream->ftl->config;
	/* First: a flush that runs meanwhile may cover the number drawn here. */
	u64 durable_seq = mtftl_seq_durable(stream->ftl);
	struct mtftl_unit_info info = {
		.type = stream->type,
		.nr_blocks = stream->fill,
		.lane = U16_MAX,
		.seq = mtftl_seq_draw(stream->ftl),
	};
	u32 i;

	mtftl_unit_init(stream->buf, &info);
	for (i = 0; i < stream->fill; i++)
		mtftl_unit_add_entry(stream->buf, stream->ids[i],
				     mtftl_payload_crc(config->seed, stream->buf +
						       (1 + i) * MTFTL_BLOCK_SIZE));
	mtftl_unit_seal(stream->buf, config->seed, zone, stream->at.offset,
			mtftl_zone(stream->ftl, zone)->erase_count, durable_seq);
	mtftl_assert(mtftl_unit_parses(stream->buf, config->seed, zone, stream->at.offset,
				       config->capacity),
		     "zone %u: block %u", zone, stream->at.offset);
	*seq = info.seq;
}

static void note_unit(struct mtftl_ckpt_stream *stream, u32 index, u64 seq)
{
	struct mtftl_zone *zone = mtftl_zone(stream->ftl, index);

	mtftl_count(stream->ftl, meta_blocks, 1 + stream->fill);
	if (!stream->at.offset)
		zone->first_seq = seq;
	mtftl_assert(zone->first_seq <= seq && (stream->at.offset || zone->first_seq == seq),
		     "zone %u: number %llu at %u", index, seq, stream->at.offset);
	if (!stream->first_seq) {
		stream->first_seq = seq;
		stream->first_at = stream->at;
	}
	stream->last_seq = seq;
	stream->at.offset += 1 + stream->fill;
	zone->quiet_wp = stream->at.offset;
	stream->fill = 0;
}

static int write_unit(struct mtftl_ckpt_stream *stream)
{
	struct mtftl *ftl = stream->ftl;
	u32 zone = zone_of(stream), at = stream->at.offset;
	u64 seq;
	int r;

	mtftl_assert(mtftl_zone(ftl, zone)->state == MTFTL_ZONE_CKPT, "zone %u", zone);
	mtftl_assert(stream->fill && at + 1 + stream->fill <= ftl->config.capacity,
		     "%u blocks at %u", stream->fill, at);
	compose(stream, zone, &seq);
	r = mtftl_rw_sync(ftl, REQ_OP_WRITE, mtftl_zone_page(ftl, zone) + at, stream->buf,
			  1 + stream->fill);
	if (r) {
		mtftl_zone(ftl, zone)->broken = true;
		return r;
	}
	if (stream->landed)
		stream->landed(stream, (stream->begin + stream->at.zone) % stream->nr_seats, at);
	mtftl_assert(reads_back(stream, zone, seq), "zone %u: block %u", zone, at);
	note_unit(stream, zone, seq);
	/* Too little is left for a unit of MTFTL_STREAM_UNIT_BLOCKS. */
	if (!mtftl_log_takes(ftl->config.capacity, stream->at.offset))
		mtftl_ckpt_finish_zone(ftl, zone);
	return 0;
}

int mtftl_ckpt_end_run(struct mtftl_ckpt_stream *stream)
{
	int r;

	if (!stream->fill)
		return 0;
	if (stream->mounting && mtftl_interrupted())
		return -EINTR;
	r = mtftl_ckpt_send_begin(stream->ftl);
	if (r)
		return r;
	r = write_unit(stream);
	mtftl_send_end(stream->ftl);
	return r;
}

void mtftl_ckpt_begin_run(struct mtftl_ckpt_stream *stream, enum mtftl_unit_type type)
{
	mtftl_assert(!stream->fill, "%u blocks", stream->fill);
	stream->type = type;
	stream->first_seq = 0;
	stream->last_seq = 0;
	stream->landed = NULL;
}

void *mtftl_ckpt_next_block(struct mtftl_ckpt_stream *stream, u32 id, int *error)
{
	u32 capacity = stream->ftl->config.capacity, room;
	void *block;

	room = min(capacity - stream->at.offset - 1, MTFTL_LOG_UNIT_BLOCKS);
	*error = 0;
	if (stream->fill && stream->fill == room)
		*error = mtftl_ckpt_end_run(stream);
	if (!*error && !mtftl_log_takes(capacity, stream->at.offset)) {
		mtftl_assert(!stream->fill, "%u blocks", stream->fill);
		if (stream->at.zone == stream->last)
			*error = -ENOSPC;
		else
			stream->at = (struct mtftl_log_at){ .zone = stream->at.zone + 1 };
	}
	/* The buffer is still full. */
	if (*error)
		return NULL;
	mtftl_assert(stream->fill < MTFTL_LOG_UNIT_BLOCKS, "%u blocks", stream->fill);
	stream->ids[stream->fill] = id;
	block = stream->buf + (1 + stream->fill++) * MTFTL_BLOCK_SIZE;
	memset(block, 0, MTFTL_BLOCK_SIZE);
	return block;
}
