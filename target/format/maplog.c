// SPDX-License-Identifier: GPL-2.0
/*
 * The log of map blocks: see maplog.h for the contract and format.h for the layout. Pure: buffers
 * and locks are the caller's, and any context may call it.
 */
#include "format/maplog.h"

#include "format/layout.h"

#define UNIT		(1 + MTFTL_LOG_UNIT_BLOCKS)
#define PER_BLOCK	(MTFTL_BLOCK_SIZE / (u32)sizeof(struct mtftl_map_place))

void mtftl_log_shape(struct mtftl_log_shape *shape, u32 nr_zones, u32 capacity, u64 logical_blocks)
{
	u32 zones = mtftl_ckpt_zones(nr_zones, capacity, logical_blocks);

	shape->capacity = capacity;
	shape->seats = zones <= MTFTL_SB_MAX_CKPT_ZONES ? 2 * zones : 0;
	shape->per_block = MTFTL_BLOCK_SIZE / MTFTL_MAP_ENTRY_BYTES;
	shape->map_blocks = mtftl_div_round_up(logical_blocks, shape->per_block);
	shape->record_blocks = mtftl_ckpt_stream_blocks(nr_zones, 0);
	shape->stream_blocks = shape->record_blocks +
			       mtftl_div_round_up(shape->map_blocks, PER_BLOCK);
}

/* Blocks without headers that fit into the last @left ones of a zone. */
static u32 room(u32 left)
{
	u32 rest = left % UNIT;

	return left / UNIT * MTFTL_LOG_UNIT_BLOCKS +
	       (rest > MTFTL_STREAM_UNIT_BLOCKS ? rest - 1 : 0);
}

void mtftl_log_advance(u32 capacity, struct mtftl_log_at *at, u32 blocks)
{
	u32 n;

	for (; blocks; blocks -= n) {
		if (!mtftl_log_takes(capacity, at->offset)) {
			at->zone++;
			at->offset = 0;
		}
		n = room(capacity - at->offset);
		mtftl_assert(n >= MTFTL_STREAM_UNIT_BLOCKS, "%u of %u", at->offset, capacity);
		if (n > blocks)
			n = blocks;
		at->offset += n + mtftl_div_round_up(n, MTFTL_LOG_UNIT_BLOCKS);
		mtftl_assert(at->offset <= capacity, "%u of %u", at->offset, capacity);
	}
}

/* Zones that all of it takes, from the start of one. */
static u32 zones_of(const struct mtftl_log_shape *shape, u32 map_blocks)
{
	struct mtftl_log_at at = { 0 };

	mtftl_log_advance(shape->capacity, &at, map_blocks);
	mtftl_log_advance(shape->capacity, &at, shape->stream_blocks);
	return at.zone + 1;
}

bool mtftl_log_fits(const struct mtftl_log_shape *shape)
{
	return shape->seats && mtftl_log_takes(shape->capacity, 0) &&
	       zones_of(shape, shape->map_blocks) <= shape->seats / 2;
}

/* The directory */

void mtftl_place_set(const struct mtftl_log_shape *shape, struct mtftl_map_place *place, u32 seat,
		     u32 offset, u32 crc)
{
	place->at = cpu_to_le32(seat * shape->capacity + offset);
	place->crc = cpu_to_le32(crc);
	mtftl_assert(seat < shape->seats && mtftl_place_valid(shape, place) &&
		     !mtftl_place_is_none(place), "seat %u: block %u", seat, offset);
}

bool mtftl_map_block_is_empty(const void *block)
{
	const __le32 *entry = block;
	u32 i;

	for (i = 0; i < MTFTL_BLOCK_SIZE / sizeof(*entry); i++)
		if (entry[i] != cpu_to_le32(MTFTL_MAP_UNMAPPED))
			return false;
	return true;
}

/* Zones from @seat up to the head. */
static u32 distance(const struct mtftl_log_shape *shape, u32 seat, u32 head)
{
	return 1 + (head + shape->seats - seat) % shape->seats;
}

u32 mtftl_log_span(const struct mtftl_log_shape *shape, const u32 *blocks, u32 first, u32 head)
{
	u32 span = distance(shape, first, head), seat;

	for (seat = 0; seat < shape->seats; seat++)
		if (blocks[seat] && distance(shape, seat, head) > span)
			span = distance(shape, seat, head);
	return span;
}

/* The next checkpoint */

u32 mtftl_log_oldest(const struct mtftl_log_shape *shape, const struct mtftl_log *log, u32 age)
{
	mtftl_assert(age < log->span && log->span <= shape->seats, "%u of %u", age, log->span);
	return (log->head + shape->seats + 1 - log->span + age) % shape->seats;
}

void mtftl_log_plan_all(const struct mtftl_log_shape *shape, u32 blocks,
			struct mtftl_log_plan *plan)
{
	plan->all = true;
	plan->carried = 0;
	plan->entered = zones_of(shape, blocks);
	/* mtftl_log_fits() */
	mtftl_assert(blocks <= shape->map_blocks && plan->entered <= shape->seats / 2,
		     "%u blocks, %u zones of %u", blocks, plan->entered, shape->seats);
}

void mtftl_log_plan(const struct mtftl_log_shape *shape, const struct mtftl_log *log, u32 changed,
		    const u32 *kept, struct mtftl_log_plan *plan)
{
	u32 carried;

	mtftl_assert(log->span <= shape->seats / 2 && log->head < shape->seats,
		     "%u zones up to %u", log->span, log->head);
	for (carried = 0; carried < log->span; carried++) {
		struct mtftl_log_at at = { .offset = log->offset };

		mtftl_log_advance(shape->capacity, &at, changed);
		mtftl_log_advance(shape->capacity, &at, shape->stream_blocks);
		if (log->span - carried + at.zone <= shape->seats / 2) {
			plan->all = false;
			plan->carried = carried;
			plan->entered = at.zone;
			return;
		}
		changed += kept[mtftl_log_oldest(shape, log, carried)];
	}
	mtftl_log_plan_all(shape, changed, plan);
}

void mtftl_log_done(const struct mtftl_log_shape *shape, struct mtftl_log *log,
		    const struct mtftl_log_plan *plan, const struct mtftl_log_at *at)
{
	u32 began = plan->all, entered = began + at->zone;

	mtftl_assert(entered <= plan->entered, "%u zones of %u", entered, plan->entered);
	log->head = mtftl_log_seat(shape, log->head, entered);
	log->offset = at->offset;
	log->span = plan->all ? entered : log->span - plan->carried + entered;
	mtftl_assert(log->span && log->span <= shape->seats / 2, "%u zones of %u", log->span,
		     shape->seats);
}
