/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The log of map blocks, MTFTL_SB_MAP_LOG: where its units lie in the zones set aside, what its
 * directory says, and which map blocks a checkpoint carries over so that the log never ends.
 *
 * The zones set aside are a circle of seats. The log grows at its head: changed map blocks, then
 * the stream of the checkpoint. The zones from the oldest one that the newest checkpoint needs up
 * to the head are its span. It is at most half of the circle, so the other half takes a checkpoint
 * of any size. Pure: any context.
 */
#ifndef MTFTL_MAPLOG_H
#define MTFTL_MAPLOG_H

#include "format/format.h"

#define MTFTL_LOG_UNIT_BLOCKS	31u	/* of a unit, if neither its run nor its zone ends */

/* What is fixed for a format. */
struct mtftl_log_shape {
	u32 capacity;		/* blocks of a zone */
	u32 seats;		/* 0: there is no such log */
	u32 per_block;		/* entries of the map in a map block */
	u32 map_blocks;
	u32 record_blocks;	/* of the stream, in front of the directory */
	u32 stream_blocks;
};

void mtftl_log_shape(struct mtftl_log_shape *shape, u32 nr_zones, u32 capacity, u64 logical_blocks);
/* Half of the circle takes all map blocks and the stream. If not, the stream has the map. */
bool mtftl_log_fits(const struct mtftl_log_shape *shape);

struct mtftl_log_at {
	u32 zone;		/* of the circle, counted from where the log was */
	u32 offset;		/* of the next block in it */
};

/* A unit may begin at this block: what is left of the zone is worth one. */
static inline bool mtftl_log_takes(u32 capacity, u32 offset)
{
	return offset <= capacity && capacity - offset >= 1 + MTFTL_STREAM_UNIT_BLOCKS;
}

/* Writing @blocks of one kind, behind what is there. */
void mtftl_log_advance(u32 capacity, struct mtftl_log_at *at, u32 blocks);

static inline bool mtftl_place_valid(const struct mtftl_log_shape *shape,
				     const struct mtftl_map_place *place)
{
	u32 at = le32_to_cpu(place->at);

	/* A header is in front of it. */
	return at == MTFTL_PLACE_NONE ||
	       (at < (u64)shape->seats * shape->capacity && at % shape->capacity);
}

static inline bool mtftl_place_is_none(const struct mtftl_map_place *place)
{
	return le32_to_cpu(place->at) == MTFTL_PLACE_NONE;
}

/* Of a place that is valid, and not none. */
static inline u32 mtftl_place_seat(const struct mtftl_log_shape *shape,
				   const struct mtftl_map_place *place)
{
	return le32_to_cpu(place->at) / shape->capacity;
}

static inline u32 mtftl_place_offset(const struct mtftl_log_shape *shape,
				     const struct mtftl_map_place *place)
{
	return le32_to_cpu(place->at) % shape->capacity;
}

void mtftl_place_set(const struct mtftl_log_shape *shape, struct mtftl_map_place *place, u32 seat,
		     u32 offset, u32 crc);
/* All entries of a map block are unmapped: it needs no place. */
bool mtftl_map_block_is_empty(const void *block);

/*
 * The span of a checkpoint whose stream goes from seat @first to seat @head; @blocks: how many map
 * blocks each seat holds. No writer leaves more than half of the circle.
 */
u32 mtftl_log_span(const struct mtftl_log_shape *shape, const u32 *blocks, u32 first, u32 head);

/* The log as the newest durable checkpoint has it. */
struct mtftl_log {
	u32 head;		/* seat */
	u32 offset;		/* of the next block there */
	u32 span;		/* 0: there is no checkpoint */
};

struct mtftl_log_plan {
	bool all;		/* every map block: begins at the seat behind the head */
	u32 carried;		/* the oldest zones of the span: what they hold is written again */
	u32 entered;		/* zones behind the head that it is written to */
};

/* A seat of the circle, @nr behind @seat. */
static inline u32 mtftl_log_seat(const struct mtftl_log_shape *shape, u32 seat, u32 nr)
{
	return (seat + nr) % shape->seats;
}

/* The oldest one of the span, or one that is younger by @age. */
u32 mtftl_log_oldest(const struct mtftl_log_shape *shape, const struct mtftl_log *log, u32 age);
/*
 * The least work that leaves a span of half of the circle: @changed map blocks are to be written,
 * @kept says how many others each seat holds.
 */
void mtftl_log_plan(const struct mtftl_log_shape *shape, const struct mtftl_log *log, u32 changed,
		    const u32 *kept, struct mtftl_log_plan *plan);
/* All of @blocks map blocks, wherever they lie. */
void mtftl_log_plan_all(const struct mtftl_log_shape *shape, u32 blocks,
			struct mtftl_log_plan *plan);
/* The checkpoint is durable. It ended @at, counted from the zone that it began in. */
void mtftl_log_done(const struct mtftl_log_shape *shape, struct mtftl_log *log,
		    const struct mtftl_log_plan *plan, const struct mtftl_log_at *at);

#endif
