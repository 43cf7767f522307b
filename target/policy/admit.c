// SPDX-License-Identifier: GPL-2.0
/*
 * Admission: see admit.h. Pure.
 *
 * Why this is enough. The reserve holds the buffered blocks (twice, were all units as small as can
 * be), one zone for a write to these that fails, and one for GC to move into. Users leave it
 * alone until the gate shuts, and then it takes what is buffered. As long as something is buffered,
 * GC leaves what is promised to the buffers, and the zone for a write that fails; then the last
 * zones to flushes. So a flush always ends, hence a reset, and GC always has a zone for the one
 * victim that waits for space. A test goes through all states of small drives to see it.
 */
#include "policy/admit.h"

#include "policy/policy.h"

#define APART_SPARE	16u	/* zones: of fewer, one that is half full is too much */

static u32 least(u32 a, u32 b)
{
	return a < b ? a : b;
}

static u32 empty(const struct mtftl_admit_state *state)
{
	return state->zones[MTFTL_ZONE_EMPTY];
}

/* Zones that count against the budget of open ones. */
static u32 in_use(const struct mtftl_admit_state *state)
{
	return state->zones[MTFTL_ZONE_OPEN] + state->zones[MTFTL_ZONE_PARTIAL] +
	       state->zones[MTFTL_ZONE_CLOSING];
}

/* The gate */

/* Zones of the reserve that are not for buffered blocks: GC's, and the one for a failed write. */
static s32 fixed_zones(const struct mtftl_admit_limits *limits)
{
	mtftl_assert(limits->buffer_zones && limits->reserve > limits->buffer_zones, "%u of %u",
		     limits->buffer_zones, limits->reserve);
	return limits->reserve - (limits->buffer_zones - 1);
}

/*
 * Empty zones that @blocks need after users' open zones are full. A zone shared with GC does not
 * count: GC may fill it.
 */
static u32 zones_for(const struct mtftl_admit_limits *limits,
		     const struct mtftl_admit_state *state, u32 blocks)
{
	u32 room = limits->gc_shares ? 0 : state->users_room;

	mtftl_assert(limits->usable, "%u", limits->usable);
	return blocks > room ? (blocks - room + limits->usable - 1) / limits->usable : 0;
}

s32 mtftl_admit_spare(const struct mtftl_admit_limits *limits,
		      const struct mtftl_admit_state *state)
{
	u32 enough = limits->usable > state->gc_owes ? limits->usable : state->gc_owes;
	s32 fixed = fixed_zones(limits);

	/* GC has its zone already. */
	if (!limits->gc_shares && state->gc_room >= enough)
		fixed--;
	return (s32)empty(state) - fixed;
}

s64 mtftl_admit_left(const struct mtftl_admit_limits *limits,
		     const struct mtftl_admit_state *state, u64 room)
{
	s64 zones = (s32)empty(state) - fixed_zones(limits);
	s64 for_buffers = limits->buffered + limits->slack;
	s64 most = (s64)limits->buffer_zones * limits->usable;

	return zones * limits->usable + (s64)room - (for_buffers < most ? for_buffers : most);
}

void mtftl_admit_gate(const struct mtftl_admit_limits *limits, struct mtftl_admit_state *state)
{
	u32 promise = least(zones_for(limits, state, limits->buffered), limits->buffer_zones - 1);
	u32 wanted = least(zones_for(limits, state, limits->buffered + limits->slack),
			   limits->buffer_zones);

	state->gated = !state->no_victim && mtftl_admit_spare(limits, state) < (s32)wanted;
	/* Behind a shut gate the buffers only get emptier: what was promised is enough. */
	state->buffer_promise = state->gated ? least(state->buffer_promise, promise) : promise;
	mtftl_assert(state->buffer_promise < limits->buffer_zones, "%u of %u",
		     state->buffer_promise, limits->buffer_zones);
}

/* Before the gate */

bool mtftl_admit_is_slowed(const struct mtftl_admit_limits *limits,
			   const struct mtftl_admit_state *state)
{
	return empty(state) < limits->low_water && !state->no_victim && !state->stopped;
}

void mtftl_admit_pace(const struct mtftl_admit_limits *limits, struct mtftl_admit_state *state)
{
	u32 coming = empty(state) + state->zones[MTFTL_ZONE_RESETTING];

	state->paced = state->gc_works && coming < limits->low_water;
}

/* Sources */

/*
 * If GC wrote to users' open zones, buffered blocks and a write to these that fails would still
 * find place in empty ones, with one left for GC: the room that it takes was counted when zones
 * were promised.
 */
static bool gc_may_share(const struct mtftl_admit_limits *limits,
			 const struct mtftl_admit_state *state)
{
	return empty(state) > limits->buffer_zones || state->buffers_empty;
}

/* Place is short for @right: whose blocks lie together matters no more. */
static bool is_scarce(const struct mtftl_admit_limits *limits,
		      const struct mtftl_admit_state *state, enum mtftl_right right)
{
	if (state->no_victim)
		return true;
	if (right == MTFTL_RIGHT_GC)
		return state->gated;
	return mtftl_admit_spare(limits, state) <= 0 || (state->gated && !limits->users_apart);
}

static void add(struct mtftl_sources *sources, enum mtftl_source source)
{
	mtftl_assert(sources->nr < MTFTL_NR_SOURCES && source < MTFTL_NR_SOURCES, "%u: %u",
		     sources->nr, source);
	sources->from[sources->nr++] = source;
}

/* Open zones are filled first while GC works: zones half full are space that nothing can use. */
static void add_users(const struct mtftl_admit_limits *limits,
		      const struct mtftl_admit_state *state, enum mtftl_right right,
		      struct mtftl_sources *sources)
{
	if (mtftl_admit_is_room_needed(limits, empty(state)) || state->paced)
		add(sources, MTFTL_FROM_CLASS);
	if (is_scarce(limits, state, right)) {
		add(sources, MTFTL_FROM_USERS);
		add(sources, MTFTL_FROM_GC);
	}
	add(sources, MTFTL_FROM_USERS_NEW);
	/* What is buffered behind the gate may fill any zone. */
	if (right != MTFTL_RIGHT_USER || state->gated)
		add(sources, MTFTL_FROM_GC_NEW);
}

/* GC keeps to its own zones. Without any, and with place short, it would wait for ever. */
static void add_gc(const struct mtftl_admit_limits *limits, const struct mtftl_admit_state *state,
		   bool shares, struct mtftl_sources *sources)
{
	bool scarce = is_scarce(limits, state, MTFTL_RIGHT_GC);

	if (scarce)
		add(sources, MTFTL_FROM_GC);
	add(sources, MTFTL_FROM_GC_NEW);
	if (scarce && shares)
		add(sources, MTFTL_FROM_USERS);
}

static bool begins_with_users(const struct mtftl_sources *sources)
{
	return sources->nr && sources->from[0] != MTFTL_FROM_GC &&
	       sources->from[0] != MTFTL_FROM_GC_NEW;
}

struct mtftl_sources mtftl_admit_sources(const struct mtftl_admit_limits *limits,
					 const struct mtftl_admit_state *state,
					 enum mtftl_right right)
{
	struct mtftl_sources sources = { };
	bool shares;

	if (right == MTFTL_RIGHT_META)
		return sources;
	shares = right != MTFTL_RIGHT_GC || gc_may_share(limits, state);
	if (right != MTFTL_RIGHT_GC || (shares && !limits->gc_apart))
		add_users(limits, state, right, &sources);
	else if (shares || !limits->gc_shares)
		add_gc(limits, state, shares, &sources);
	/* See admit.h: writers for users rely on it. */
	mtftl_assert(right == MTFTL_RIGHT_GC || begins_with_users(&sources), "right %u", right);
	return sources;
}

/* Zones that GC leaves empty: what is promised, and one for a write that fails. */
static u32 gc_leaves(const struct mtftl_admit_limits *limits, const struct mtftl_admit_state *state)
{
	u32 leaves = state->buffer_promise + 1;

	if (!state->buffers_empty)
		return leaves;
	if (!state->gc_has_zone) {
		/*
		 * If no zone is resetting, only GC can bring one. It may have the last one then: a
		 * victim never fills it, so the flush before the reset has room there.
		 */
		if (!state->zones[MTFTL_ZONE_RESETTING])
			return 0;
		/* Its own zone failed, or a victim gave nothing back: it takes the one for that. */
		if (!limits->gc_shares)
			leaves--;
	}
	return least(leaves, limits->flush_zones);
}

static bool may_take_empty(const struct mtftl_admit_limits *limits,
			   const struct mtftl_admit_state *state, enum mtftl_right right)
{
	switch (right) {
	case MTFTL_RIGHT_USER:
		if (state->no_victim)
			return empty(state) > limits->reserve;
		/* Once the gate is shut, the reserve itself is the limit. */
		return state->gated ? empty(state) : mtftl_admit_spare(limits, state) > 0;
	case MTFTL_RIGHT_GC:
		return empty(state) > gc_leaves(limits, state);
	default:
		return empty(state);
	}
}

bool mtftl_admit_may_open(const struct mtftl_admit_limits *limits,
			  const struct mtftl_admit_state *state, enum mtftl_right right)
{
	u32 for_gc = 0;

	/* It is a data zone no more. */
	if (right == MTFTL_RIGHT_META)
		return may_take_empty(limits, state, right);
	/* One that an earlier mount left counts against the budget already. */
	if (state->zones[MTFTL_ZONE_PARTIAL])
		return true;
	/* GC can always open its zone: else nothing would ever become free again. */
	if (right != MTFTL_RIGHT_GC && !state->gc_has_zone && !limits->gc_shares)
		for_gc = 1;
	return in_use(state) + for_gc < limits->data_zones && may_take_empty(limits, state, right);
}

bool mtftl_admit_victim(const struct mtftl_admit_limits *limits,
			const struct mtftl_admit_state *state, u32 needs)
{
	u32 alone = least(empty(state), limits->reserve), left = 1 + state->buffer_promise;
	u64 room = state->gc_room;

	/* In zones that only GC takes. What victims will free does not count. */
	if (alone > left)
		room += (u64)(alone - left) * limits->usable;
	return !limits->gc_shares && (u64)state->gc_owes + needs <= room;
}

/* The end */

bool mtftl_admit_is_out(const struct mtftl_admit_state *state)
{
	return !empty(state) && !in_use(state) && !state->zones[MTFTL_ZONE_RESETTING] &&
	       !state->zones[MTFTL_ZONE_VICTIM];
}

bool mtftl_admit_is_dead_end(const struct mtftl_admit_state *state, enum mtftl_right right)
{
	/* A command that the device has will end, however long it takes: the kernel sees to it. */
	if (state->zones[MTFTL_ZONE_CLOSING] || state->in_flight || state->at_work)
		return false;
	switch (right) {
	case MTFTL_RIGHT_USER:
		/* Without a flush a reset may come, and a victim that needs no place. */
		return state->flushing ||
		       (state->no_victim && !state->zones[MTFTL_ZONE_RESETTING]);
	case MTFTL_RIGHT_GC:
		return !state->zones[MTFTL_ZONE_RESETTING];
	case MTFTL_RIGHT_FLUSH:
	case MTFTL_RIGHT_RETRY:
		/* Resets wait for a flush, and flushes for these. */
		return true;
	default:
		/* It does not wait: without an empty zone it fails. */
		return false;
	}
}

/* Limits */

void mtftl_admit_keep(struct mtftl_admit_limits *limits, u32 spare, u32 capacity, u32 write_unit,
		      u32 *buffer_entries)
{
	u32 most = spare / 2 > MTFTL_ADMIT_LEAST_SPARE ? spare / 2 : MTFTL_ADMIT_LEAST_SPARE;
	u32 fits;

	/* For the buffers, were each unit as small as can be, and one for a failed write. */
	limits->buffer_zones = 1 + (2 * *buffer_entries + capacity - 1) / capacity;
	limits->buffer_zones = least(limits->buffer_zones, most - 2);
	/* Larger units leave room for footers. Else these cost some slots rather than a zone. */
	fits = (limits->buffer_zones - 1) * (write_unit > 1 ? capacity : limits->usable) / 2;
	*buffer_entries = least(*buffer_entries, fits);
	limits->flush_zones = most > MTFTL_ADMIT_LEAST_SPARE ? 2 : 1;
	limits->users_apart = spare >= APART_SPARE;
	mtftl_assert(limits->buffer_zones >= 2 && *buffer_entries, "%u zones, %u slots",
		     limits->buffer_zones, *buffer_entries);
}

void mtftl_admit_reserve(struct mtftl_admit_limits *limits, u32 spare, u32 nr_zones, u32 low_water)
{
	limits->reserve = limits->buffer_zones + 1 + limits->gc_shares;
	if (!low_water)
		low_water = limits->reserve + mtftl_rate_ready(spare, nr_zones);
	/* GC that begins when users have to wait already would never begin. */
	limits->low_water = low_water > limits->reserve ? low_water : limits->reserve + 1;
	mtftl_assert(limits->reserve > limits->buffer_zones && limits->low_water > limits->reserve);
}
