// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of admission. The table is docs/design/gc.md: "The gate", "Before the gate", "Pace"
 * and "A full device", a row for each thing that they say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/admit.h"

/* From the most space to none: see admit.h. */
enum level {
	FREE,
	SLOWED,
	PACED,
	GATED,
	DEAD,
};

#define FULL_BUFFERS	200u	/* blocks: two zones */
#define USABLE		100u

/* 64 zones, 4 of them the reserve: two for the buffers, one for a failed write, one for GC. */
static const struct mtftl_admit_limits drive = {
	.usable = USABLE, .reserve = 4, .buffer_zones = 3, .flush_zones = 2, .low_water = 8,
	.data_zones = 8, .buffered = FULL_BUFFERS, .slack = 10, .gc_apart = true,
	.users_apart = true,
};

/* The same, without spare zones: classes give way sooner, and flushes have one zone. */
static const struct mtftl_admit_limits small = {
	.usable = USABLE, .reserve = 4, .buffer_zones = 3, .flush_zones = 1, .low_water = 5,
	.data_zones = 3, .buffered = FULL_BUFFERS, .slack = 10, .gc_apart = true,
};

/* Two open zones would be one too many. */
static const struct mtftl_admit_limits shared = {
	.usable = USABLE, .reserve = 5, .buffer_zones = 3, .flush_zones = 2, .low_water = 8,
	.data_zones = 1, .buffered = FULL_BUFFERS, .slack = 10, .gc_apart = true, .gc_shares = true,
};

/* GC writes where users do. */
static const struct mtftl_admit_limits mixed = {
	.usable = USABLE, .reserve = 4, .buffer_zones = 3, .flush_zones = 2, .low_water = 8,
	.data_zones = 8, .buffered = FULL_BUFFERS, .slack = 10, .users_apart = true,
};

#define ZONES(empty, open, resetting) \
	.zones = { [MTFTL_ZONE_EMPTY] = (empty), [MTFTL_ZONE_OPEN] = (open), \
		   [MTFTL_ZONE_RESETTING] = (resetting), [MTFTL_ZONE_FULL] = 40 }
#define WAITS(right)	(1u << MTFTL_RIGHT_##right)

/*
 * Sources in their order: c, own class; u, users' open zones; g, GC's; U and G, a new one if need
 * be. Rights that may open a zone: users, flush, retry, gc, metadata.
 */
struct row {
	const char *doc;
	const struct mtftl_admit_limits *limits;
	struct mtftl_admit_state state;		/* buffer_promise: before the look */
	enum level level;
	u32 buffer_promise;
	const char *users, *flush, *gc, *may_open;
	u32 waiting;				/* rights, as WAITS() */
};

static const struct row rows[] = {
	/* Without need. */
	{ "there is plenty", &drive, { ZONES(30, 3, 0) },
	  FREE, 2, "U", "UG", "G", "ufrgm", 0 },
	{ "the last zone of the budget is GC's, which can always open one", &drive,
	  { ZONES(30, 7, 0) }, FREE, 2, "U", "UG", "G", "gm", 0 },
	{ "GC has it already", &drive, { ZONES(30, 7, 0), .gc_has_zone = true },
	  FREE, 2, "U", "UG", "G", "ufrgm", 0 },
	{ "zones that are being closed count against the budget", &drive,
	  { .zones = { [MTFTL_ZONE_EMPTY] = 30, [MTFTL_ZONE_OPEN] = 4, [MTFTL_ZONE_CLOSING] = 4 },
	    .gc_has_zone = true }, FREE, 2, "U", "UG", "G", "m", 0 },
	{ "a zone that an earlier mount left is open already", &drive,
	  { .zones = { [MTFTL_ZONE_EMPTY] = 30, [MTFTL_ZONE_OPEN] = 4, [MTFTL_ZONE_PARTIAL] = 4 } },
	  FREE, 2, "U", "UG", "G", "ufrgm", 0 },

	/* Before the gate. */
	{ "fewer zones are empty than low_water: by time", &drive, { ZONES(7, 3, 1) },
	  SLOWED, 2, "U", "UG", "G", "ufrgm", 0 },
	{ "low_water are empty: users are not slowed", &drive, { ZONES(8, 3, 0) },
	  FREE, 2, "U", "UG", "G", "ufrgm", 0 },
	{ "a device that is read-only or paused slows no user", &drive,
	  { ZONES(7, 3, 0), .stopped = true }, FREE, 2, "U", "UG", "G", "ufrgm", 0 },

	/* Pace. */
	{ "GC works: open zones are filled before others are opened", &drive,
	  { ZONES(7, 3, 0), .gc_works = true, .gc_has_zone = true },
	  PACED, 2, "cU", "cUG", "G", "ufrgm", 0 },
	{ "zones about to be empty are free space", &drive,
	  { ZONES(7, 3, 1), .gc_works = true, .gc_has_zone = true },
	  SLOWED, 2, "U", "UG", "G", "ufrgm", 0 },
	{ "few are empty, though GC rests", &drive, { ZONES(6, 3, 0), .gc_has_zone = true },
	  SLOWED, 2, "cU", "cUG", "G", "ufrgm", 0 },

	/* The gate. */
	{ "buffers and what lanes take at once fit into the reserve: one more is spare", &drive,
	  { ZONES(5, 3, 0), .gc_has_zone = true },
	  SLOWED, 2, "cU", "cUG", "G", "ufrgm", 0 },
	{ "the reserve: the gate is shut, and what is buffered may use it", &drive,
	  { ZONES(4, 3, 0), .gc_has_zone = true, .buffer_promise = 2 },
	  GATED, 2, "cUG", "cUG", "gGu", "ufrgm", 0 },
	{ "as much as has room in users' open zones needs no empty one", &drive,
	  { ZONES(4, 3, 0), .gc_has_zone = true, .users_room = 110 },
	  SLOWED, 1, "cU", "cUG", "G", "ufrgm", 0 },
	{ "all of it has room there", &drive,
	  { ZONES(2, 3, 0), .gc_has_zone = true, .users_room = FULL_BUFFERS + 10 },
	  SLOWED, 0, "cugU", "cugUG", "G", "frgm", 0 },
	{ "GC needs none while it has a whole zone", &drive,
	  { ZONES(4, 3, 0), .gc_has_zone = true, .gc_room = USABLE },
	  SLOWED, 2, "cU", "cUG", "G", "ufrgm", 0 },
	{ "but not if its victims may take more", &drive,
	  { ZONES(4, 3, 0), .gc_has_zone = true, .gc_room = USABLE, .gc_owes = USABLE + 1,
	    .buffer_promise = 2 },
	  GATED, 2, "cUG", "cUG", "gGu", "ufrgm", 0 },
	{ "behind the gate the promise stays, however full the open zones are", &drive,
	  { ZONES(3, 3, 0), .gc_has_zone = true, .buffer_promise = 1 },
	  GATED, 1, "cUG", "cUG", "gG", "ufrgm", 0 },
	{ "and gets less when they have more room", &drive,
	  { ZONES(1, 3, 0), .gc_has_zone = true, .users_room = 180, .buffer_promise = 2 },
	  GATED, 1, "cugUG", "cugUG", "gG", "ufrm", 0 },
	{ "GC leaves what was promised and one for a write that fails", &drive,
	  { ZONES(3, 3, 0), .gc_has_zone = true, .buffer_promise = 2 },
	  GATED, 2, "cUG", "cUG", "gG", "ufrm", 0 },
	{ "also when it has none itself, as long as something is buffered", &drive,
	  { ZONES(3, 3, 0), .buffer_promise = 2 },
	  GATED, 2, "cUG", "cUG", "gG", "ufrm", 0 },
	{ "then it takes that one: its own zone failed", &drive,
	  { ZONES(2, 3, 1), .buffer_promise = 1, .users_room = 100, .buffers_empty = true },
	  GATED, 1, "cugUG", "cugUG", "gGu", "ufrgm", 0 },
	{ "nothing is empty", &drive, { ZONES(0, 3, 0), .gc_has_zone = true, .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gG", "", 0 },
	{ "with little to spare classes give way at the gate", &small,
	  { ZONES(4, 2, 0), .gc_has_zone = true, .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gGu", "ufrgm", 0 },

	/* A full device. */
	{ "nothing can be gained: the gate is open, users fill what is open, GC's included", &drive,
	  { ZONES(4, 3, 0), .gc_has_zone = true, .no_victim = true },
	  FREE, 2, "cugU", "cugUG", "gGu", "frgm", 0 },
	{ "but they leave the reserve", &drive,
	  { ZONES(5, 3, 0), .gc_has_zone = true, .no_victim = true },
	  FREE, 2, "cugU", "cugUG", "gGu", "ufrgm", 0 },
	{ "GC without a zone writes to users' if what is buffered and GC find place in empty ones",
	  &drive, { ZONES(4, 3, 0), .buffer_promise = 2 },
	  GATED, 2, "cUG", "cUG", "gGu", "ufrgm", 0 },
	{ "if not it leaves the room that was counted for them", &drive,
	  { ZONES(3, 3, 0), .buffer_promise = 2 },
	  GATED, 2, "cUG", "cUG", "gG", "ufrm", 0 },
	{ "or while nothing is buffered", &drive,
	  { ZONES(2, 3, 1), .buffer_promise = 2, .buffers_empty = true },
	  GATED, 2, "cugUG", "cugUG", "gGu", "ufrm", 0 },
	{ "the last two empty zones are for flushes", &drive,
	  { ZONES(2, 3, 0), .gc_has_zone = true, .buffer_promise = 2, .buffers_empty = true },
	  GATED, 2, "cugUG", "cugUG", "gGu", "ufrm", 0 },
	{ "a third one is GC's", &drive,
	  { ZONES(3, 3, 0), .gc_has_zone = true, .buffer_promise = 2, .buffers_empty = true },
	  GATED, 2, "cUG", "cUG", "gGu", "ufrgm", 0 },
	{ "one where the device has least to spare", &small,
	  { ZONES(2, 2, 0), .gc_has_zone = true, .buffer_promise = 2, .buffers_empty = true },
	  GATED, 2, "cugUG", "cugUG", "gGu", "ufrgm", 0 },
	{ "all are GC's that has none, if nothing is buffered and no reset would bring one", &drive,
	  { ZONES(1, 3, 0), .buffer_promise = 2, .buffers_empty = true },
	  GATED, 2, "cugUG", "cugUG", "gGu", "ufrgm", 0 },
	{ "not before the flush that a reset waits for", &drive,
	  { ZONES(1, 3, 1), .buffer_promise = 2, .buffers_empty = true },
	  GATED, 2, "cugUG", "cugUG", "gGu", "ufrm", 0 },

	/* One zone for all. */
	{ "a zone that users and GC share: no room in it is promised", &shared,
	  { ZONES(5, 1, 0), .users_room = USABLE, .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gGu", "m", 0 },
	{ "when it is full the next one is for both", &shared,
	  { ZONES(5, 0, 0), .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gGu", "ufrgm", 0 },
	{ "GC leaves it alone while what is buffered needs the empty ones", &shared,
	  { ZONES(2, 0, 0), .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "", "ufrm", 0 },

	/* No classes of GC's. */
	{ "GC without classes writes where users do", &mixed, { ZONES(30, 3, 0) },
	  FREE, 2, "U", "UG", "UG", "ufrgm", 0 },
	{ "not while what is buffered needs the empty ones", &mixed,
	  { ZONES(2, 3, 0), .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gG", "ufrm", 0 },

	/* The end. */
	{ "what is buffered waits, nothing can be gained and nothing is under way", &drive,
	  { ZONES(0, 0, 0), .no_victim = true },
	  DEAD, 2, "cugU", "cugUG", "gG", "", WAITS(USER) },
	{ "a zone that is about to be empty is room for users", &drive,
	  { ZONES(0, 0, 1), .no_victim = true },
	  FREE, 2, "cugU", "cugUG", "gG", "", WAITS(USER) },
	{ "but not while a flush waits for what users have buffered", &drive,
	  { ZONES(0, 0, 1), .flushing = true, .buffer_promise = 2 },
	  DEAD, 2, "cugUG", "cugUG", "gG", "", WAITS(USER) },
	{ "GC may gain something yet", &drive,
	  { ZONES(0, 0, 0), .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gG", "", WAITS(USER) },
	{ "a reset gives GC a zone", &drive,
	  { ZONES(0, 0, 1), .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gG", "", WAITS(GC) },
	{ "but not a flush: resets wait for it", &drive,
	  { ZONES(0, 0, 1), .buffer_promise = 2 },
	  DEAD, 2, "cugUG", "cugUG", "gG", "", WAITS(FLUSH) },
	{ "nor a unit whose write failed, which the flush waits for", &drive,
	  { ZONES(0, 0, 1), .buffer_promise = 2 },
	  DEAD, 2, "cugUG", "cugUG", "gG", "", WAITS(RETRY) },
	{ "a zone that is being closed may have failed: what comes of it is not known", &drive,
	  { .zones = { [MTFTL_ZONE_CLOSING] = 1 }, .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gG", "", WAITS(RETRY) },
	{ "units in flight land, or fail", &drive,
	  { ZONES(0, 1, 0), .in_flight = true, .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gG", "", WAITS(FLUSH) },
	{ "commands end", &drive,
	  { ZONES(0, 0, 1), .at_work = true, .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gG", "", WAITS(RETRY) },
	{ "GC waits, and nothing else is under way", &drive,
	  { ZONES(0, 0, 0), .buffer_promise = 2 },
	  DEAD, 2, "cugUG", "cugUG", "gG", "", WAITS(GC) },
	{ "no zone is left that could ever be written, whatever is in flight", &drive,
	  { ZONES(0, 0, 0), .in_flight = true, .buffer_promise = 2 },
	  DEAD, 2, "cugUG", "cugUG", "gG", "", WAITS(RETRY) },
	{ "an empty one is left", &drive,
	  { ZONES(1, 0, 0), .in_flight = true, .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gG", "ufrm", WAITS(RETRY) },
	{ "or a victim", &drive,
	  { .zones = { [MTFTL_ZONE_VICTIM] = 1 }, .in_flight = true, .buffer_promise = 2 },
	  GATED, 2, "cugUG", "cugUG", "gG", "", WAITS(RETRY) },
};

static const char *const levels[] = { "free", "slowed", "paced", "gated", "dead" };

static bool is_dead(const struct row *row, const struct mtftl_admit_state *state)
{
	u32 right;

	for (right = 0; right < MTFTL_NR_RIGHTS; right++)
		if (row->waiting >> right & 1 && mtftl_admit_is_dead_end(state, right))
			return true;
	return row->waiting & WAITS(RETRY) && mtftl_admit_is_out(state);
}

static enum level level(const struct row *row, const struct mtftl_admit_state *state)
{
	if (is_dead(row, state))
		return DEAD;
	if (state->gated)
		return GATED;
	if (state->paced)
		return PACED;
	return mtftl_admit_is_slowed(row->limits, state) ? SLOWED : FREE;
}

static void say_sources(char *text, struct mtftl_sources sources)
{
	u32 i, at = strlen(text);

	for (i = 0; i < sources.nr; i++)
		text[at++] = "cugUG"[sources.from[i]];
	text[at++] = ' ';
	text[at] = 0;
}

static void say(char *text, const struct row *row)
{
	struct mtftl_admit_state state = row->state;
	u32 right, at;

	mtftl_admit_gate(row->limits, &state);
	mtftl_admit_pace(row->limits, &state);
	sprintf(text, "%s: %s, promise %u, from ", row->doc, levels[level(row, &state)],
		state.buffer_promise);
	for (right = 0; right < MTFTL_RIGHT_META; right++)
		say_sources(text, mtftl_admit_sources(row->limits, &state, right));
	strcat(text, "may open ");
	for (right = 0, at = strlen(text); right < MTFTL_NR_RIGHTS; right++)
		if (mtftl_admit_may_open(row->limits, &state, right))
			text[at++] = "ufrgm"[right];
	text[at] = 0;
}

static void admission_is_as_the_docs_say(void **unused)
{
	char is[256], expected[256];
	const struct row *row;

	(void)unused;
	for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
		say(is, row);
		sprintf(expected, "%s: %s, promise %u, from %s %s %s %s may open %s", row->doc,
			levels[row->level], row->buffer_promise, row->users, row->flush, row->flush,
			row->gc, row->may_open);
		assert_string_equal(is, expected);
	}
}

/* Credit: what is buffered waits for it, unless GC itself finds no zone. */
static void users_wait_for_credit(void **unused)
{
	(void)unused;
	assert_true(mtftl_admit_is_spent(true, false, true));
	assert_false(mtftl_admit_is_spent(false, false, true));
	assert_false(mtftl_admit_is_spent(true, true, true));
	assert_false(mtftl_admit_is_spent(true, false, false));
}

/* Checkpoints have zones of their own, and fail without one. */
static void metadata_has_no_stream_and_does_not_wait(void **unused)
{
	const struct row *row;

	(void)unused;
	for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
		assert_int_equal(mtftl_admit_sources(row->limits, &row->state,
						     MTFTL_RIGHT_META).nr, 0);
		assert_false(mtftl_admit_is_dead_end(&row->state, MTFTL_RIGHT_META));
	}
}

/* Victims beside others: all that they may still write fits into what users cannot take. */
static void victims_fit_into_what_is_left_to_gc(void **unused)
{
	struct mtftl_admit_state state = { ZONES(10, 3, 0), .gc_room = 50, .buffer_promise = 2 };

	(void)unused;
	/* Of the reserve one is for a failed write, two are promised. */
	assert_true(mtftl_admit_victim(&drive, &state, 150));
	assert_false(mtftl_admit_victim(&drive, &state, 151));
	state.gc_owes = 100;
	assert_true(mtftl_admit_victim(&drive, &state, 50));
	assert_false(mtftl_admit_victim(&drive, &state, 51));
	state.zones[MTFTL_ZONE_EMPTY] = 3;
	assert_false(mtftl_admit_victim(&drive, &state, 1));
	state.gc_owes = 0;
	assert_true(mtftl_admit_victim(&drive, &state, 50));
	state.zones[MTFTL_ZONE_EMPTY] = 30;
	assert_false(mtftl_admit_victim(&shared, &state, 1));
}

/* Zones that the buffers may still open; behind a shut gate it only gets less. */
static void full_zones_are_promised_to_the_buffers(void **unused)
{
	static const struct { u32 room, promise; } cases[] = {
		{ 0, 2 }, { 99, 2 }, { 100, 1 }, { 101, 1 }, { 199, 1 }, { 200, 0 }, { 300, 0 },
	};
	struct mtftl_admit_state state;
	u32 i;

	(void)unused;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		state = (struct mtftl_admit_state){ ZONES(20, 3, 0), .users_room = cases[i].room };
		mtftl_admit_gate(&drive, &state);
		assert_int_equal(state.buffer_promise, cases[i].promise);
		state.users_room = 0;
		state.zones[MTFTL_ZONE_EMPTY] = 0;
		mtftl_admit_gate(&drive, &state);
		assert_true(state.gated);
		assert_int_equal(state.buffer_promise, cases[i].promise);
	}
}

/* By what is buffered and slack; or, if that is more, by all zones for buffers. */
static void what_is_left_ends_at_the_gate(void **unused)
{
	static const u32 slacks[] = { 10, 150 };
	u32 i;

	(void)unused;
	for (i = 0; i < ARRAY_SIZE(slacks); i++) {
		struct mtftl_admit_state state = { ZONES(7, 3, 0), .gc_has_zone = true };
		struct mtftl_admit_limits limits = drive;
		u32 room = 0;

		limits.slack = slacks[i];
		/* A block at a time; a zone is opened when one is needed. */
		while (mtftl_admit_left(&limits, &state, room) > 0) {
			state.users_room = room;
			mtftl_admit_gate(&limits, &state);
			assert_false(state.gated);
			if (!room) {
				state.zones[MTFTL_ZONE_EMPTY]--;
				room = USABLE;
			}
			room--;
		}
		/* One more. */
		if (!room) {
			state.zones[MTFTL_ZONE_EMPTY]--;
			room = USABLE;
		}
		state.users_room = room - 1;
		mtftl_admit_gate(&limits, &state);
		assert_true(state.gated);
	}
}

/* A block that is too few for a header and a block is no room. */
static void blocks_that_no_unit_takes_are_no_room(void **unused)
{
	struct mtftl_admit_limits limits = { .smallest = 2 };

	(void)unused;
	assert_int_equal(mtftl_admit_room(&limits, 0), 0);
	assert_int_equal(mtftl_admit_room(&limits, 1), 0);
	assert_int_equal(mtftl_admit_room(&limits, 7), 6);
	limits.smallest = 1;
	assert_int_equal(mtftl_admit_room(&limits, 7), 7);
}

static void limits_fit_the_device(void **unused)
{
	struct mtftl_admit_limits limits = { .smallest = 2, .usable = 126 };
	u32 spare, entries, wanted, low_water, unit;

	(void)unused;
	for (spare = 0; spare < 100; spare++)
		for (wanted = 1; wanted < 10000; wanted = 3 * wanted / 2 + 1)
			for (low_water = 0; low_water < 60; low_water++) {
				unit = 1 + low_water % 3;
				entries = wanted;
				mtftl_admit_keep(&limits, spare, 128, unit, &entries);
				mtftl_admit_reserve(&limits, spare, 1024, low_water / 3);
				assert_in_range(entries, 1, wanted);
				/* All of it fits, each unit with a header. */
				assert_true(entries + (entries + unit - 1) / unit <=
					    (limits.buffer_zones - 1) * limits.usable);
				assert_true(limits.buffer_zones >= 2);
				assert_true(limits.buffer_zones + 2 <=
					    (spare / 2 > 4 ? spare / 2 : 4));
				assert_true(limits.reserve == limits.buffer_zones + 1);
				assert_true(limits.low_water > limits.reserve);
			}
	limits.usable = 2042;
	entries = 1024;
	mtftl_admit_keep(&limits, 64, 2048, 32, &entries);
	assert_int_equal(entries, 1024);
	mtftl_admit_keep(&limits, 64, 2048, 1, &entries);
	assert_int_equal(entries, 1021);
	assert_int_equal(limits.buffer_zones, 2);
	assert_int_equal(limits.flush_zones, 2);
	assert_true(limits.users_apart);
	/* With little to spare flushes have one zone, and users no zones apart. */
	for (spare = 8; spare < 18; spare++) {
		entries = 10000;
		mtftl_admit_keep(&limits, spare, 2048, 32, &entries);
		assert_int_equal(limits.flush_zones, spare < 10 ? 1 : 2);
		assert_int_equal(limits.users_apart, spare >= 16);
		assert_int_equal(limits.buffer_zones, (spare < 10 ? 4 : spare / 2) - 2);
	}
	entries = 1024;
	mtftl_admit_keep(&limits, 64, 2048, 1, &entries);
	limits.gc_shares = true;
	mtftl_admit_reserve(&limits, 64, 1024, 0);
	assert_int_equal(limits.reserve, 4);
	assert_int_equal(limits.low_water, 4 + 16);
}

/* One digit of a number that counts states. */
static u32 digit(u32 *number, u32 base)
{
	u32 value = *number % base;

	*number /= base;
	return value;
}

/* On every small drive, in whatever state it is. */
static void each_state(void (*check)(const struct mtftl_admit_limits *limits,
				     const struct mtftl_admit_state *state))
{
	static const struct mtftl_admit_limits *const all[] = { &drive, &small, &shared, &mixed };
	u32 i, left;

	for (i = 0, left = 0; !left; i++) {
		const struct mtftl_admit_limits *limits;
		struct mtftl_admit_state state = { };

		left = i;
		limits = all[digit(&left, ARRAY_SIZE(all))];
		state.zones[MTFTL_ZONE_EMPTY] = digit(&left, 10);
		state.zones[MTFTL_ZONE_OPEN] = digit(&left, 9);
		state.zones[MTFTL_ZONE_RESETTING] = digit(&left, 2);
		state.users_room = 50 * digit(&left, 7);
		state.gc_room = 50 * digit(&left, 5);
		state.gc_owes = 130 * digit(&left, 2);
		state.buffer_promise = 1 + digit(&left, 2);
		state.no_victim = digit(&left, 2);
		state.gc_has_zone = digit(&left, 2);
		state.buffers_empty = digit(&left, 2);
		if (state.zones[MTFTL_ZONE_OPEN] > limits->data_zones)
			continue;
		mtftl_admit_gate(limits, &state);
		check(limits, &state);
	}
}

/* A zone that becomes empty shuts nothing and takes no right away. */
static void check_one_more(const struct mtftl_admit_limits *limits,
			   const struct mtftl_admit_state *state)
{
	struct mtftl_admit_state more = *state;
	u32 right;

	more.zones[MTFTL_ZONE_EMPTY]++;
	mtftl_admit_gate(limits, &more);
	assert_false(more.gated && !state->gated);
	for (right = 0; right < MTFTL_NR_RIGHTS; right++)
		/* The gate that opens leaves the reserve to what is buffered then. */
		if (right != MTFTL_RIGHT_USER || more.gated == state->gated)
			assert_false(mtftl_admit_may_open(limits, state, right) &&
				     !mtftl_admit_may_open(limits, &more, right));
}

static void one_more_empty_zone_harms_nobody(void **unused)
{
	(void)unused;
	each_state(check_one_more);
}

/* So writers may look into their own stream's zone before they ask. */
static void check_first(const struct mtftl_admit_limits *limits,
			const struct mtftl_admit_state *state)
{
	static const enum mtftl_right rights[] = {
		MTFTL_RIGHT_USER, MTFTL_RIGHT_FLUSH, MTFTL_RIGHT_RETRY,
	};
	struct mtftl_sources sources;
	u32 i;

	for (i = 0; i < sizeof(rights) / sizeof(*rights); i++) {
		sources = mtftl_admit_sources(limits, state, rights[i]);
		assert_true(sources.nr);
		assert_true(sources.from[0] == MTFTL_FROM_CLASS ||
			    sources.from[0] == MTFTL_FROM_USERS ||
			    sources.from[0] == MTFTL_FROM_USERS_NEW);
	}
}

static void all_but_gc_begin_with_users_streams(void **unused)
{
	(void)unused;
	each_state(check_first);
}

/* Flushes and failed writes take any zone, and look everywhere. */
static void check_flush(const struct mtftl_admit_limits *limits,
			const struct mtftl_admit_state *state)
{
	struct mtftl_sources flush = mtftl_admit_sources(limits, state, MTFTL_RIGHT_FLUSH);
	struct mtftl_sources retry = mtftl_admit_sources(limits, state, MTFTL_RIGHT_RETRY);
	u32 in_use = state->zones[MTFTL_ZONE_OPEN] + !(state->gc_has_zone || limits->gc_shares);

	assert_int_equal(mtftl_admit_may_open(limits, state, MTFTL_RIGHT_FLUSH),
			 state->zones[MTFTL_ZONE_EMPTY] && in_use < limits->data_zones);
	assert_memory_equal(&flush, &retry, sizeof(flush));
	assert_int_equal(flush.from[flush.nr - 1], MTFTL_FROM_GC_NEW);
}

static void a_flush_may_take_what_there_is(void **unused)
{
	(void)unused;
	each_state(check_flush);
}

/* GC leaves what was promised to the buffers, and one for a failed write, unless they are empty. */
static void check_promise(const struct mtftl_admit_limits *limits,
			  const struct mtftl_admit_state *state)
{
	u32 left = state->buffers_empty ? 0 : state->buffer_promise + 1;

	if (mtftl_admit_may_open(limits, state, MTFTL_RIGHT_GC))
		assert_true(state->zones[MTFTL_ZONE_EMPTY] > left);
	/* What enters before the gate shuts fits: into the open ones, or with those promised. */
	if (!state->gated && !state->no_victim && !limits->gc_shares)
		assert_true(state->users_room + state->buffer_promise * limits->usable >=
			    limits->buffered);
}

static void gc_keeps_the_promise(void **unused)
{
	(void)unused;
	each_state(check_promise);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(admission_is_as_the_docs_say),
		cmocka_unit_test(users_wait_for_credit),
		cmocka_unit_test(metadata_has_no_stream_and_does_not_wait),
		cmocka_unit_test(victims_fit_into_what_is_left_to_gc),
		cmocka_unit_test(full_zones_are_promised_to_the_buffers),
		cmocka_unit_test(what_is_left_ends_at_the_gate),
		cmocka_unit_test(blocks_that_no_unit_takes_are_no_room),
		cmocka_unit_test(limits_fit_the_device),
		cmocka_unit_test(one_more_empty_zone_harms_nobody),
		cmocka_unit_test(all_but_gc_begin_with_users_streams),
		cmocka_unit_test(a_flush_may_take_what_there_is),
		cmocka_unit_test(gc_keeps_the_promise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
