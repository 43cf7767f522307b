// SPDX-License-Identifier: GPL-2.0
/*
 * A model of the target as far as space goes: see model.h. policy/admit.c itself decides in it. The
 * rest follows device/space.c, device/await.c, zone/stream.c, zone/write.c, zone/zones.c,
 * io/lane.c, gc/ and durable/flush.c, whose names its functions have where there is one.
 *
 * A drive is its zones. A zone is how far it is written, how many of its blocks are valid, and what
 * is in flight to it. Neither zones nor blocks have names, because admission knows none: states
 * that differ by an exchange of zones are one. Space is counted in the smallest unit, a header and
 * a block. A user's unit holds one block: no other takes more space for what is buffered. A unit of
 * GC holds as many as its victim has or its zone takes, and a retry needs as much in one zone.
 *
 * Why what holds here holds there. The model has each order of steps that threads and the drive
 * can bring about, with one exception: one walk along the list of sources, with the zones that it
 * closes and opens, is one step. In the target a lock of the zones covers each part of it, and a
 * writer that was refused looks again. Everything that follows from time, ages, policies or chance
 * is left open, and all of it is tried: which zone GC takes, which of the empty ones is opened,
 * when a command ends, which of a victim's blocks users replace, whether credit lasts. Progress
 * relies on none of it: paced users have no credit, and no reset is early because what it waits
 * for was written already (both are STEP_MAYBE).
 *
 * Not in it: several blocks in a user's unit, FUA, pauses, mounts and the zones that they find
 * written in part, wear leveling, reads that fail, and checkpoints that a reset waits for. Buffers
 * are one pool, of which a flush takes the oldest blocks first; lanes differ only by what they take
 * before they see each other, limits.slack. A user's look at the gate and its taking of a slot are
 * one step.
 */
#include "tests/model/model.h"

#include <stdio.h>

static struct geometry geometry;
static struct mtftl_admit_limits limits;
static u32 logical_blocks, most_buffered, victim_limit;

const char *const step_names[NR_STEPS] = {
	"user", "user refused", "flush", "flush refused", "retry", "retry refused", "move",
	"move beside", "move refused", "choose", "admit", "retire", "rest", "land", "close",
	"erase", "round", "round ends", "maybe", "write", "discard", "ask", "fail",
};

const char *const wait_names[NR_WAITS] = { "gate", "user", "flush", "retry", "gc", "round" };

bool model_set(const struct geometry *wanted)
{
	u32 spare, blocks;

	geometry = *wanted;
	limits = (struct mtftl_admit_limits){ };
	spare = geometry.spare ? geometry.spare : MTFTL_ADMIT_LEAST_SPARE;
	if (geometry.zones <= spare || geometry.zones > MAX_ZONES)
		return false;
	/* In blocks, as the target counts: a unit is a header and a block. */
	blocks = 2 * geometry.units;
	limits.usable = blocks;
	most_buffered = blocks;
	mtftl_admit_keep(&limits, spare, blocks, 1, &most_buffered);
	/* In units. */
	limits.smallest = 1;
	limits.usable = geometry.units;
	limits.buffered = most_buffered;
	limits.slack = geometry.lanes;
	limits.data_zones = geometry.data_zones;
	limits.gc_shares = geometry.data_zones == 1;
	limits.gc_apart = !geometry.gc_mixes;
	mtftl_admit_reserve(&limits, spare, geometry.zones + 4, geometry.low_water);
	if (geometry.users_apart) {
		limits.users_apart = true;
		limits.flush_zones = 2;
	}
	logical_blocks = (geometry.zones - spare) * geometry.units;
	/* Something is gained: a 32nd of so small a zone would be nothing. */
	victim_limit = geometry.units - 1;
	return true;
}

/* Zones */

static struct zone *zone_of_stream(struct model *model, u32 stream)
{
	u32 i;

	for (i = 0; i < geometry.zones; i++)
		if (model->zones[i].kind == KIND_OPEN && model->zones[i].slot == stream)
			return &model->zones[i];
	return NULL;
}

static struct zone *zone_of_victim(struct model *model, u32 victim)
{
	u32 i;

	for (i = 0; i < geometry.zones; i++)
		if (model->zones[i].kind == KIND_VICTIM && model->zones[i].slot == victim)
			return &model->zones[i];
	return NULL;
}

static u32 in_flight(const struct zone *zone)
{
	return zone->users + zone->later + zone->records + zone->moves[0] + zone->moves[1];
}

static u32 count(const struct model *model, enum kind kind)
{
	u32 i, nr = 0;

	for (i = 0; i < geometry.zones; i++)
		nr += model->zones[i].kind == kind;
	return nr;
}

static u32 resetting(const struct model *model)
{
	return count(model, KIND_DEAD) + count(model, KIND_FLUSHED) + count(model, KIND_ERASED);
}

static bool is_worn_out(const struct zone *zone)
{
	return zone->lives >= 2;
}

/* Users' units and blocks that wait for their retry. */
static u32 in_redo(const struct model *model, bool users)
{
	u32 i, nr = 0;

	for (i = 0; i < MAX_REDO && model->redo[i]; i++)
		nr += users == (model->redo[i] == REDO_USER || model->redo[i] == REDO_LATER);
	return nr;
}

/* Slots of the buffers that are in use. */
static u32 used(const struct model *model)
{
	u32 i, nr = model->buffered + in_redo(model, true);

	for (i = 0; i < geometry.zones; i++)
		nr += model->zones[i].users + model->zones[i].later;
	return nr;
}

static u32 mapped(const struct model *model)
{
	u32 i, nr = used(model);

	for (i = 0; i < geometry.zones; i++)
		nr += model->zones[i].valid;
	return nr;
}

/* space.c */

static void look(const struct model *model, struct mtftl_admit_state *state)
{
	*state = (struct mtftl_admit_state){
		.zones = {
			[MTFTL_ZONE_EMPTY] = count(model, KIND_EMPTY),
			[MTFTL_ZONE_OPEN] = count(model, KIND_OPEN),
			[MTFTL_ZONE_PARTIAL] = count(model, KIND_PARTIAL),
			[MTFTL_ZONE_CLOSING] = count(model, KIND_CLOSING),
			[MTFTL_ZONE_FULL] = count(model, KIND_FULL),
			[MTFTL_ZONE_VICTIM] = count(model, KIND_VICTIM),
			[MTFTL_ZONE_RESETTING] = resetting(model),
			[MTFTL_ZONE_BAD] = count(model, KIND_BAD),
		},
		.users_room = model->users_room,
		.gc_room = model->gc_room,
		.gc_owes = model->gc_owes,
		.buffer_promise = model->promised,
		.gated = model->gated,
		.paced = model->paced,
		.gc_has_zone = model->gc_has_zone,
		.no_victim = model->no_victim,
	};
}

static void update_gate(struct model *model)
{
	struct mtftl_admit_state state;

	look(model, &state);
	mtftl_admit_gate(&limits, &state);
	model->promised = state.buffer_promise;
	model->gated = state.gated;
}

static void appeared(struct model *model)
{
	model->refused = 0;
}

static bool are_buffers_empty(const struct model *model, enum mtftl_right right)
{
	return right == MTFTL_RIGHT_GC && count(model, KIND_EMPTY) <= limits.buffer_zones && !used(model);
}

/* stream.c */

static u32 first_of_gc(void)
{
	return limits.gc_shares ? 0 : geometry.user_streams;
}

static u32 left_in(struct model *model, u32 stream)
{
	const struct zone *zone = zone_of_stream(model, stream);

	return zone && !zone->broken ? geometry.units - zone->wp : 0;
}

static u32 room_of_gc(struct model *model)
{
	u32 i, left, room = 0;

	for (i = 0; i < geometry.gc_streams; i++) {
		left = left_in(model, first_of_gc() + i);
		room += left ? left - 1 : 0;
	}
	return room;
}

static void look_at_room(struct model *model)
{
	u32 i;

	model->users_room = 0;
	for (i = 0; i < geometry.user_streams; i++)
		model->users_room += mtftl_admit_room(&limits, left_in(model, i));
	model->gc_room = room_of_gc(model);
	model->gc_has_zone = 0;
	for (i = 0; i < geometry.gc_streams; i++)
		model->gc_has_zone |= !!zone_of_stream(model, first_of_gc() + i);
	update_gate(model);
}

/* What the writer wants, and a choice that the model leaves open. */
struct want {
	enum mtftl_right right;
	u32 class;
	u32 least;
	bool worn;		/* of empty zones, the one whose write failed */
};

static bool open_zone(struct model *model, u32 stream, const struct want *want)
{
	struct mtftl_admit_state state;
	struct zone *zone = NULL, *other;
	u32 i;

	look(model, &state);
	state.buffers_empty = are_buffers_empty(model, want->right);
	if (!mtftl_admit_may_open(&limits, &state, want->right))
		return false;
	for (i = 0; i < geometry.zones; i++) {
		other = &model->zones[i];
		if (other->kind == KIND_PARTIAL) {
			zone = other;
			break;
		}
		if (other->kind == KIND_EMPTY &&
		    (!zone || (want->worn ? other->lives > zone->lives : other->lives < zone->lives)))
			zone = other;
	}
	if (!zone)
		return false;
	/* mtftl_space_move_zone() */
	if (zone->kind == KIND_EMPTY)
		model->no_victim = 0;
	zone->kind = KIND_OPEN;
	zone->slot = stream;
	look_at_room(model);
	appeared(model);
	return true;
}

static void close_zone(struct model *model, struct zone *zone)
{
	zone->kind = KIND_CLOSING;
	zone->slot = 0;
	look_at_room(model);
}

static u32 stream_room(struct model *model, u32 stream, const struct want *want, bool opens)
{
	struct zone *zone = zone_of_stream(model, stream);

	if (zone) {
		if (!zone->broken && zone->wp + want->least <= geometry.units)
			return geometry.units - zone->wp;
		close_zone(model, zone);
	}
	if (!opens || !open_zone(model, stream, want))
		return 0;
	zone = zone_of_stream(model, stream);
	if (zone->broken || zone->wp + want->least > geometry.units) {
		close_zone(model, zone);
		return 0;
	}
	return geometry.units - zone->wp;
}

static struct zone *try_streams(struct model *model, u32 first, u32 nr, u32 class, u32 most,
				const struct want *want, bool opens)
{
	u32 i, stream;

	for (i = 0; i < most; i++) {
		stream = first + (class + i) % nr;
		if (stream_room(model, stream, want, opens))
			return zone_of_stream(model, stream);
	}
	return NULL;
}

static struct zone *try_source(struct model *model, enum mtftl_source source,
			       const struct want *want)
{
	bool is_gc = want->right == MTFTL_RIGHT_GC;
	u32 users = geometry.user_streams, gc = geometry.gc_streams;
	u32 users_class = is_gc ? users - 1 : want->class;

	switch (source) {
	case MTFTL_FROM_CLASS:
		return try_streams(model, 0, users, users_class, 1, want, false);
	case MTFTL_FROM_USERS:
	case MTFTL_FROM_USERS_NEW:
		return try_streams(model, 0, users, users_class, users, want,
				   source == MTFTL_FROM_USERS_NEW);
	case MTFTL_FROM_GC:
	case MTFTL_FROM_GC_NEW:
		return try_streams(model, first_of_gc(), gc, is_gc ? want->class : 0, gc, want,
				   source == MTFTL_FROM_GC_NEW);
	default:
		return NULL;
	}
}

static struct zone *find(struct model *model, const struct want *want)
{
	struct mtftl_admit_state state;
	struct mtftl_sources sources;
	struct zone *zone = NULL;
	u32 i;

	/* Before it asks, as mtftl_stream_find() does. */
	if (want->right != MTFTL_RIGHT_GC)
		zone = try_streams(model, 0, geometry.user_streams, want->class, 1, want, false);
	if (zone)
		return zone;
	look(model, &state);
	state.buffers_empty = are_buffers_empty(model, want->right);
	sources = mtftl_admit_sources(&limits, &state, want->right);
	for (i = 0; i < sources.nr && !zone; i++)
		zone = try_source(model, sources.from[i], want);
	return zone;
}

static void take(struct model *model, struct zone *zone, u32 units)
{
	zone->wp += units;
	if (mtftl_admit_is_room_needed(&limits, count(model, KIND_EMPTY)))
		look_at_room(model);
}

/* gc.c */

static u32 coming(const struct model *model)
{
	return count(model, KIND_EMPTY) + resetting(model);
}

static u32 worn_out(const struct model *model)
{
	u32 i, nr = 0;

	for (i = 0; i < geometry.zones; i++)
		nr += model->zones[i].kind == KIND_FULL && is_worn_out(&model->zones[i]);
	return nr;
}

static bool is_short(const struct model *model)
{
	return coming(model) < limits.low_water;
}

static bool is_out(struct model *model, u32 victim)
{
	u32 i;

	if (model->victims[victim].redo)
		return true;
	for (i = 0; i < geometry.zones; i++)
		if (model->zones[i].moves[victim])
			return true;
	return false;
}

static bool is_done(struct model *model, u32 victim)
{
	return model->nr_victims > victim && model->victims[victim].admitted &&
	       !is_out(model, victim) &&
	       (model->victims[victim].ended || !zone_of_victim(model, victim)->valid);
}

static u32 debt(const struct model *model)
{
	u32 i, blocks = 0;

	for (i = 0; i < model->nr_victims; i++)
		if (model->victims[i].admitted)
			blocks += model->victims[i].items;
	return blocks;
}

static void set_owes(struct model *model)
{
	model->gc_owes = debt(model);
	update_gate(model);
}

static void set_no_victim(struct model *model, bool none)
{
	if (none == model->no_victim)
		return;
	model->no_victim = none;
	update_gate(model);
	appeared(model);
}

static void update_active(struct model *model)
{
	struct mtftl_admit_state state;

	look(model, &state);
	state.gc_works = model->nr_victims;
	mtftl_admit_pace(&limits, &state);
	if (state.paced == model->paced)
		return;
	model->paced = state.paced;
	appeared(model);
}

/* Victims that come behind another one move up. */
static void retire(struct model *model)
{
	struct zone *zone = zone_of_victim(model, 0);
	bool empty = !zone->valid && !model->victims[0].ended;
	u32 i;

	zone->kind = empty ? KIND_DEAD : KIND_FULL;
	zone->slot = 0;
	model->victims[0] = model->victims[1];
	model->victims[1] = (struct victim){ };
	model->nr_victims--;
	for (i = 0; i < geometry.zones; i++) {
		zone = &model->zones[i];
		if (zone->kind == KIND_VICTIM)
			zone->slot = 0;
		zone->moves[0] = zone->moves[1];
		zone->moves[1] = 0;
	}
	for (i = 0; i < MAX_REDO; i++)
		if (model->redo[i] == REDO_MOVE + 1)
			model->redo[i] = REDO_MOVE;
	set_owes(model);
	appeared(model);
}

static void choose(struct model *model, struct zone *zone)
{
	if (zone) {
		zone->kind = KIND_VICTIM;
		zone->slot = model->nr_victims;
		model->victims[model->nr_victims++] = (struct victim){ .items = zone->valid };
	}
	update_active(model);
	set_no_victim(model, !model->nr_victims && !resetting(model));
}

static bool may_admit(struct model *model)
{
	struct mtftl_admit_state state;
	struct victim *last = &model->victims[model->nr_victims - 1];

	if (!model->nr_victims || last->admitted)
		return false;
	if (model->nr_victims == 1)
		return true;
	look(model, &state);
	state.gc_room = room_of_gc(model);
	state.gc_owes = debt(model);
	return mtftl_admit_victim(&limits, &state, last->items);
}

/* Steps */

struct steps {
	const struct model *from;
	void (*emit)(const struct model *to, enum step by, void *data);
	void *data;
};

static void emit(const struct steps *steps, const struct model *to, enum step by)
{
	steps->emit(to, by, steps->data);
}

static u32 classes(enum mtftl_right right)
{
	if (right == MTFTL_RIGHT_USER)
		return geometry.user_streams;
	return right == MTFTL_RIGHT_GC ? geometry.gc_streams : 1;
}

/* Empty zones differ: any may be the least worn. */
static bool have_choice(const struct model *model)
{
	u32 i, lives = 0;

	for (i = 0; i < geometry.zones; i++)
		if (model->zones[i].kind == KIND_EMPTY)
			lives |= 1u << model->zones[i].lives;
	return lives & (lives - 1);
}

/* In each way that the model leaves open. */
static void each_place(const struct steps *steps, enum mtftl_right right, u32 least, u32 which,
		       void (*try)(const struct steps *steps, const struct want *want, u32 which))
{
	struct want want = { .right = right, .least = least };
	u32 worn, choices = 1 + have_choice(steps->from);

	for (want.class = 0; want.class < classes(right); want.class++)
		for (worn = 0; worn < choices; worn++) {
			want.worn = worn;
			try(steps, &want, which);
		}
}

static void try_user(const struct steps *steps, const struct want *want, u32 is_sure)
{
	struct model to = *steps->from;
	struct zone *zone;

	/* What appears during the attempt counts as a change: the lane looks again. */
	to.refused = 1;
	zone = find(&to, want);
	if (!zone) {
		if (is_sure)
			emit(steps, &to, STEP_USER_REFUSED);
		return;
	}
	/* Other lanes may find place, too. */
	to.refused = 0;
	to.buffered--;
	if (to.drain || to.round == ROUND_NONE)
		zone->users++;
	else
		zone->later++;
	if (to.drain)
		to.drain--;
	take(&to, zone, 1);
	emit(steps, &to, is_sure ? STEP_USER : STEP_MAYBE);
}

static void step_user(const struct steps *steps)
{
	const struct model *model = steps->from;

	if (!model->buffered)
		return;
	/* Without credit only what a flush wants is sure to be written. */
	each_place(steps, MTFTL_RIGHT_USER, 1,
		   !model->refused && (!mtftl_admit_is_spent(model->paced, model->unpaced, true) ||
				       model->drain), try_user);
}

static void try_record(const struct steps *steps, const struct want *want, u32 unused)
{
	struct model to = *steps->from;
	struct zone *zone = find(&to, want);

	(void)unused;
	if (!zone) {
		emit(steps, &to, STEP_FLUSH_REFUSED);
		return;
	}
	zone->records++;
	to.round++;
	if (!geometry.free_records)
		take(&to, zone, 1);
	emit(steps, &to, STEP_FLUSH);
}

static void try_retry(const struct steps *steps, const struct want *want, u32 unused)
{
	struct model to = *steps->from;
	struct zone *zone = find(&to, want);
	u32 i, victim = to.redo[0] - REDO_MOVE;

	(void)unused;
	if (!zone) {
		emit(steps, &to, STEP_RETRY_REFUSED);
		return;
	}
	switch (to.redo[0]) {
	case REDO_USER:
		zone->users++;
		break;
	case REDO_LATER:
		zone->later++;
		break;
	case REDO_RECORD:
		zone->records++;
		break;
	default:
		zone->moves[victim] = want->least;
		to.victims[victim].redo = 0;
	}
	for (i = 0; i + 1 < MAX_REDO; i++)
		to.redo[i] = to.redo[i + 1];
	to.redo[MAX_REDO - 1] = REDO_NONE;
	if (steps->from->redo[0] != REDO_RECORD || !geometry.free_records)
		take(&to, zone, want->least);
	emit(steps, &to, STEP_RETRY);
}

static void step_retry(const struct steps *steps)
{
	u32 first = steps->from->redo[0], least = 1;

	if (first >= REDO_MOVE)
		least = steps->from->victims[first - REDO_MOVE].redo;
	if (first)
		each_place(steps, MTFTL_RIGHT_RETRY, least, 0, try_retry);
}

static void try_move(const struct steps *steps, const struct want *want, u32 victim)
{
	struct model to = *steps->from;
	struct zone *zone = find(&to, want);
	u32 n;

	if (!zone) {
		if (victim) {
			to.victims[victim].ended = 1;
		} else if (!to.unpaced) {
			to.unpaced = 1;
			appeared(&to);
		}
		emit(steps, &to, STEP_MOVE_REFUSED);
		return;
	}
	to.unpaced = 0;
	to.victims[victim].items = zone_of_victim(&to, victim)->valid;
	n = to.victims[victim].items;
	if (n > geometry.units - zone->wp)
		n = geometry.units - zone->wp;
	zone->moves[victim] = n;
	take(&to, zone, n);
	emit(steps, &to, victim ? STEP_MOVE_BESIDE : STEP_MOVE);
}

static bool is_moved(struct model *model, u32 victim)
{
	return model->victims[victim].admitted && !model->victims[victim].ended &&
	       !is_out(model, victim) && zone_of_victim(model, victim)->valid;
}

static void step_move(const struct steps *steps)
{
	struct model model = *steps->from;
	u32 i;

	for (i = 0; i < model.nr_victims; i++)
		if (is_moved(&model, i))
			each_place(steps, MTFTL_RIGHT_GC, 1, i, try_move);
}

static bool is_candidate(const struct model *model, const struct zone *zone)
{
	bool scarce = count(model, KIND_EMPTY) <= limits.reserve;

	if (zone->kind != KIND_FULL)
		return false;
	if (is_worn_out(zone))
		return !scarce;
	/* One that is worn out goes first. */
	return zone->valid <= victim_limit && (scarce || !worn_out(model));
}

static void step_choose(const struct steps *steps)
{
	const struct model *from = steps->from;
	enum step by = from->nr_victims ? STEP_MAYBE : STEP_CHOOSE;
	bool found = false;
	struct model to;
	u32 i;

	for (i = 0; i < geometry.zones; i++) {
		if (!is_candidate(from, &from->zones[i]))
			continue;
		found = true;
		to = *from;
		choose(&to, &to.zones[i]);
		emit(steps, &to, by);
	}
	if (!found) {
		to = *from;
		choose(&to, NULL);
		emit(steps, &to, by);
	}
}

static void step_rest(const struct steps *steps)
{
	struct model to = *steps->from;

	update_active(&to);
	if (!to.nr_victims)
		set_no_victim(&to, false);
	emit(steps, &to, STEP_REST);
}

static void step_keeper(const struct steps *steps)
{
	struct model to = *steps->from;
	bool may_choose = !to.nr_victims ||
			  (to.nr_victims < geometry.victims && to.victims[to.nr_victims - 1].admitted);

	may_choose &= is_short(&to) || worn_out(&to);
	if (is_done(&to, 0)) {
		retire(&to);
		emit(steps, &to, STEP_RETIRE);
	} else if (may_admit(&to)) {
		to.victims[to.nr_victims - 1].admitted = 1;
		set_owes(&to);
		emit(steps, &to, STEP_ADMIT);
	} else {
		if (may_choose)
			step_choose(steps);
		/* A second victim is wanted if users wait for credit. */
		if (!may_choose || to.nr_victims)
			step_rest(steps);
	}
}

static void landed_move(const struct steps *steps, u32 i, u32 victim)
{
	const struct model *from = steps->from;
	u32 n = from->zones[i].moves[victim], others = from->victims[victim].items - n;
	u32 alive, valid = zone_of_victim((struct model *)from, victim)->valid;

	/* Users may have replaced some meanwhile: of those in the unit or of the others. */
	for (alive = valid > others ? valid - others : 0; alive <= n && alive <= valid; alive++) {
		struct model to = *from;

		to.zones[i].moves[victim] = 0;
		to.zones[i].valid += alive;
		zone_of_victim(&to, victim)->valid -= alive;
		to.victims[victim].items = others;
		appeared(&to);
		emit(steps, &to, STEP_LAND);
	}
}

static void landed_user(const struct steps *steps, u32 i, bool later, bool alive)
{
	struct model to = *steps->from;

	if (later)
		to.zones[i].later--;
	else
		to.zones[i].users--;
	to.zones[i].valid += alive;
	if (!used(&to) && to.gated)
		appeared(&to);
	/* A unit that lands dead was replaced by a buffered block, or discarded. */
	emit(steps, &to, alive ? STEP_LAND : STEP_MAYBE);
}

static void step_land(const struct steps *steps, u32 i)
{
	const struct zone *zone = &steps->from->zones[i];
	u32 victim;

	if (zone->users) {
		landed_user(steps, i, false, true);
		landed_user(steps, i, false, false);
	}
	if (zone->later) {
		landed_user(steps, i, true, true);
		landed_user(steps, i, true, false);
	}
	if (zone->records) {
		struct model to = *steps->from;

		to.zones[i].records = 0;
		to.round = to.round == ROUND_RECORD_SENT ? ROUND_DRAIN : ROUND_DEVICE;
		emit(steps, &to, STEP_LAND);
	}
	for (victim = 0; victim < MAX_VICTIMS; victim++)
		if (zone->moves[victim])
			landed_move(steps, i, victim);
}

static void fail_unit(const struct steps *steps, u32 i, enum redo redo)
{
	struct model to = *steps->from;
	struct zone *zone = &to.zones[i];
	u32 at = 0;

	/* All in flight may fail at once: that is one failure. */
	if (!zone->broken && to.failures >= geometry.failures)
		return;
	to.failures += !zone->broken;
	zone->broken = 1;
	switch (redo) {
	case REDO_USER:
		zone->users--;
		break;
	case REDO_LATER:
		zone->later--;
		break;
	case REDO_RECORD:
		zone->records--;
		break;
	default:
		to.victims[redo - REDO_MOVE].redo = zone->moves[redo - REDO_MOVE];
		zone->moves[redo - REDO_MOVE] = 0;
	}
	while (to.redo[at])
		at++;
	to.redo[at] = redo;
	emit(steps, &to, STEP_FAIL);
}

static void step_fail(const struct steps *steps, u32 i)
{
	const struct zone *zone = &steps->from->zones[i];
	u32 victim;

	if (zone->users)
		fail_unit(steps, i, REDO_USER);
	if (zone->later)
		fail_unit(steps, i, REDO_LATER);
	if (zone->records)
		fail_unit(steps, i, REDO_RECORD);
	for (victim = 0; victim < MAX_VICTIMS; victim++)
		if (zone->moves[victim])
			fail_unit(steps, i, REDO_MOVE + victim);
}

static void step_close(const struct steps *steps, u32 i, bool fails)
{
	struct model to = *steps->from;
	struct zone *zone = &to.zones[i];

	if (fails && (zone->broken || to.failures >= geometry.failures))
		return;
	to.failures += fails;
	zone->lives = zone->broken || fails ? zone->lives + 1 : 0;
	zone->kind = KIND_FULL;
	appeared(&to);
	emit(steps, &to, fails ? STEP_FAIL : STEP_CLOSE);
}

static void step_erase(const struct steps *steps, u32 i, bool fails)
{
	struct model to = *steps->from;
	struct zone *zone = &to.zones[i];

	if (fails && (is_worn_out(zone) || to.failures >= geometry.failures))
		return;
	to.failures += fails;
	if (is_worn_out(zone)) {
		zone->kind = KIND_BAD;
	} else if (fails) {
		zone->lives++;
		zone->kind = is_worn_out(zone) ? KIND_BAD : KIND_FULL;
	} else {
		zone->kind = KIND_EMPTY;
		update_gate(&to);
	}
	appeared(&to);
	emit(steps, &to, fails ? STEP_FAIL : STEP_ERASE);
}

static void begin_round(const struct steps *steps)
{
	struct model to = *steps->from;
	u32 i;

	if (!to.asked && !count(&to, KIND_DEAD))
		return;
	for (i = 0; i < geometry.zones; i++)
		if (to.zones[i].kind == KIND_DEAD)
			to.zones[i].kind = KIND_FLUSHED;
	to.asked = 0;
	to.drain = to.buffered;
	to.round = to.record ? ROUND_RECORD : ROUND_DRAIN;
	to.record = 0;
	emit(steps, &to, STEP_ROUND);
}

static bool is_drained(const struct model *model)
{
	u32 i, nr = model->drain;

	for (i = 0; i < MAX_REDO; i++)
		nr += model->redo[i] == REDO_USER;
	for (i = 0; i < geometry.zones; i++)
		nr += model->zones[i].users;
	return !nr;
}

static void end_round(const struct steps *steps)
{
	struct model to = *steps->from;
	u32 i;

	to.round = ROUND_NONE;
	for (i = 0; i < geometry.zones; i++) {
		if (to.zones[i].kind == KIND_FLUSHED)
			to.zones[i].kind = KIND_ERASED;
		to.zones[i].users += to.zones[i].later;
		to.zones[i].later = 0;
	}
	for (i = 0; i < MAX_REDO; i++)
		if (to.redo[i] == REDO_LATER)
			to.redo[i] = REDO_USER;
	emit(steps, &to, STEP_ROUND_END);
}

static void step_round(const struct steps *steps)
{
	struct model to = *steps->from;

	switch (to.round) {
	case ROUND_NONE:
		begin_round(steps);
		break;
	case ROUND_RECORD:
	case ROUND_LATE_RECORD:
		each_place(steps, MTFTL_RIGHT_FLUSH, 1, 0, try_record);
		break;
	case ROUND_DRAIN:
		if (!is_drained(&to))
			break;
		to.round = to.record ? ROUND_LATE_RECORD : ROUND_DEVICE;
		to.record = 0;
		emit(steps, &to, STEP_ROUND);
		break;
	case ROUND_DEVICE:
		end_round(steps);
		break;
	default:
		break;
	}
}

/* What a reset waits for was written ahead of everything else: it needs no flush of the buffers. */
static void step_settle(const struct steps *steps, u32 i)
{
	struct model to = *steps->from;

	to.zones[i].kind = KIND_ERASED;
	emit(steps, &to, STEP_MAYBE);
}

/* Users */

static bool may_enter(const struct model *model)
{
	return !model->gated && used(model) < most_buffered;
}

static void step_write(const struct steps *steps)
{
	struct model to = *steps->from;
	u32 i;

	if (!may_enter(&to))
		return;
	to.buffered++;
	if (mapped(&to) <= logical_blocks)
		emit(steps, &to, STEP_WRITE);
	for (i = 0; i < geometry.zones; i++) {
		if (!to.zones[i].valid)
			continue;
		to.zones[i].valid--;
		emit(steps, &to, STEP_WRITE);
		to.zones[i].valid++;
	}
}

static void step_discard(const struct steps *steps)
{
	struct model to = *steps->from;
	u32 i;

	if (!geometry.discards)
		return;
	to.record = 1;
	for (i = 0; i < geometry.zones; i++) {
		if (!to.zones[i].valid)
			continue;
		to.zones[i].valid--;
		emit(steps, &to, STEP_DISCARD);
		to.zones[i].valid++;
	}
}

/* A zone set aside for checkpoints has failed. */
static void step_replace(const struct steps *steps)
{
	struct mtftl_admit_state state;
	struct model to = *steps->from;
	u32 i;

	look(&to, &state);
	if (!geometry.replaces || to.failures >= geometry.failures ||
	    !mtftl_admit_may_open(&limits, &state, MTFTL_RIGHT_META))
		return;
	for (i = 0; i < geometry.zones && to.zones[i].kind != KIND_EMPTY; i++)
		;
	if (i == geometry.zones)
		return;
	to.zones[i].kind = KIND_BAD;
	to.failures++;
	to.no_victim = 0;
	update_gate(&to);
	emit(steps, &to, STEP_FAIL);
}

static void step_zone(const struct steps *steps, u32 i)
{
	const struct zone *zone = &steps->from->zones[i];

	step_land(steps, i);
	step_fail(steps, i);
	switch (zone->kind) {
	case KIND_CLOSING:
		if (in_flight(zone))
			break;
		step_close(steps, i, false);
		step_close(steps, i, true);
		break;
	case KIND_DEAD:
		step_settle(steps, i);
		break;
	case KIND_ERASED:
		step_erase(steps, i, false);
		step_erase(steps, i, true);
		break;
	default:
		break;
	}
}

void model_steps(const struct model *model,
		 void (*emit_to)(const struct model *to, enum step by, void *data), void *data)
{
	struct steps steps = { .from = model, .emit = emit_to, .data = data };
	struct model to;
	u32 i;

	step_user(&steps);
	step_retry(&steps);
	step_move(&steps);
	step_keeper(&steps);
	step_round(&steps);
	for (i = 0; i < geometry.zones; i++)
		step_zone(&steps, i);
	step_write(&steps);
	step_discard(&steps);
	step_replace(&steps);
	if (!model->round) {
		to = *model;
		to.asked = 1;
		emit(&steps, &to, STEP_ASK);
	}
}

/* Waiting */

u32 model_waits(const struct model *model)
{
	u32 waits = 0;

	if (!may_enter(model))
		waits |= 1u << WAITS_GATE;
	if (model->buffered)
		waits |= 1u << WAITS_USER;
	if (model->round == ROUND_RECORD || model->round == ROUND_LATE_RECORD)
		waits |= 1u << WAITS_FLUSH;
	if (model->redo[0])
		waits |= 1u << WAITS_RETRY;
	if (model->nr_victims)
		waits |= 1u << WAITS_GC;
	if (model->round || model->asked || count(model, KIND_DEAD))
		waits |= 1u << WAITS_ROUND;
	return waits;
}

enum step model_served(enum waits waits)
{
	static const enum step served[NR_WAITS] = {
		[WAITS_GATE] = NR_STEPS, [WAITS_USER] = STEP_USER, [WAITS_FLUSH] = STEP_FLUSH,
		[WAITS_RETRY] = STEP_RETRY, [WAITS_GC] = STEP_RETIRE, [WAITS_ROUND] = STEP_ROUND_END,
	};

	return served[waits];
}

bool model_is_over(const struct model *model)
{
	return count(model, KIND_OPEN) + count(model, KIND_CLOSING) > geometry.data_zones;
}

bool model_is_busy(const struct model *model)
{
	u32 i;

	for (i = 0; i < geometry.zones; i++)
		if (in_flight(&model->zones[i]))
			return true;
	return model->round == ROUND_DEVICE || count(model, KIND_ERASED) ||
	       count(model, KIND_CLOSING);
}

/* As mtftl_zones_look() and its callers see it. */
static bool is_dead_end(const struct model *model, enum mtftl_right right, bool flushing)
{
	struct mtftl_admit_state state;
	bool moves = false;
	u32 i;

	look(model, &state);
	state.at_work = model->round == ROUND_DEVICE || count(model, KIND_ERASED);
	for (i = 0; i < geometry.zones; i++) {
		if (model->zones[i].kind == KIND_OPEN && in_flight(&model->zones[i]))
			state.in_flight = true;
		moves |= model->zones[i].moves[0] || model->zones[i].moves[1];
	}
	moves |= in_redo(model, false);
	if (right == MTFTL_RIGHT_USER || right == MTFTL_RIGHT_GC)
		state.in_flight |= used(model) != model->buffered;
	if (right == MTFTL_RIGHT_GC)
		state.in_flight |= moves;
	state.flushing = flushing;
	return mtftl_admit_is_dead_end(&state, right) ||
	       (right == MTFTL_RIGHT_RETRY && mtftl_admit_is_out(&state));
}

bool model_is_dead(const struct model *from)
{
	struct model model = *from;

	if (model.redo[0] && is_dead_end(&model, MTFTL_RIGHT_RETRY, false))
		return true;
	if ((model.round == ROUND_RECORD || model.round == ROUND_LATE_RECORD) &&
	    is_dead_end(&model, MTFTL_RIGHT_FLUSH, false))
		return true;
	if (model.nr_victims && is_moved(&model, 0) && is_dead_end(&model, MTFTL_RIGHT_GC, false))
		return true;
	if (!model.buffered || !model.refused)
		return false;
	if (model.round == ROUND_DRAIN && model.drain)
		return is_dead_end(&model, MTFTL_RIGHT_USER, true);
	return !model.nr_victims && (is_short(&model) || worn_out(&model)) &&
	       is_dead_end(&model, MTFTL_RIGHT_USER, false);
}

/* Packing */

struct packer {
	u32 *words;
	u32 at;
};

static void put(struct packer *packer, u32 value, u32 bits)
{
	u32 word = packer->at / 32;

	if (packer->at % 32 + bits > 32)
		packer->at = 32 * ++word;
	packer->words[word] |= value << packer->at % 32;
	packer->at += bits;
}

static u32 get(struct packer *packer, u32 bits)
{
	u32 word = packer->at / 32;

	if (packer->at % 32 + bits > 32)
		packer->at = 32 * ++word;
	packer->at += bits;
	return packer->words[word] >> (packer->at - bits) % 32 & ((1u << bits) - 1);
}

static u32 pack_zone(const struct zone *zone, bool last)
{
	struct zone z = *zone;
	struct packer packer;
	u32 word = 0;

	/* What no longer matters is the same in all. */
	if (z.kind != KIND_OPEN && z.kind != KIND_PARTIAL)
		z.wp = 0;
	if (z.kind != KIND_OPEN && z.kind != KIND_CLOSING)
		z.broken = 0;
	if (z.kind == KIND_BAD)
		z.lives = z.valid = 0;
	if (last && !z.broken && !is_worn_out(&z))
		z.lives = 0;
	packer = (struct packer){ .words = &word };
	put(&packer, z.kind, 4);
	put(&packer, z.slot, 2);
	put(&packer, z.wp, 3);
	put(&packer, z.valid, 3);
	put(&packer, z.users, 3);
	put(&packer, z.later, 3);
	put(&packer, z.records, 1);
	put(&packer, z.moves[0], 3);
	put(&packer, z.moves[1], 3);
	put(&packer, z.broken, 1);
	put(&packer, z.lives, 2);
	return word;
}

static void unpack_zone(u32 word, struct zone *zone)
{
	struct packer packer = { .words = &word };

	zone->kind = get(&packer, 4);
	zone->slot = get(&packer, 2);
	zone->wp = get(&packer, 3);
	zone->valid = get(&packer, 3);
	zone->users = get(&packer, 3);
	zone->later = get(&packer, 3);
	zone->records = get(&packer, 1);
	zone->moves[0] = get(&packer, 3);
	zone->moves[1] = get(&packer, 3);
	zone->broken = get(&packer, 1);
	zone->lives = get(&packer, 2);
}

/* Zones have no names: sorted. */
void model_pack(const struct model *model, u32 *words)
{
	struct packer packer = { .words = words + MAX_ZONES };
	u32 i, k, word;

	memset(words, 0, WORDS * sizeof(*words));
	for (i = 0; i < geometry.zones; i++) {
		word = pack_zone(&model->zones[i], model->failures == geometry.failures);
		for (k = i; k && words[k - 1] > word; k--)
			words[k] = words[k - 1];
		words[k] = word;
	}
	put(&packer, model->nr_victims, 2);
	for (i = 0; i < MAX_VICTIMS; i++) {
		put(&packer, model->victims[i].admitted, 1);
		put(&packer, model->victims[i].ended, 1);
		put(&packer, model->victims[i].items, 3);
		put(&packer, model->victims[i].redo, 3);
	}
	put(&packer, model->buffered, 3);
	put(&packer, model->drain, 3);
	put(&packer, model->round, 3);
	put(&packer, model->asked, 1);
	put(&packer, model->record, 1);
	for (i = 0; i < MAX_REDO; i++)
		put(&packer, model->redo[i], 3);
	put(&packer, model->promised, 3);
	put(&packer, model->gated, 1);
	put(&packer, model->paced, 1);
	put(&packer, model->no_victim, 1);
	put(&packer, model->gc_has_zone, 1);
	put(&packer, model->unpaced, 1);
	put(&packer, model->buffered && model->refused, 1);
	put(&packer, model->failures, 2);
	put(&packer, model->users_room, 4);
	put(&packer, model->gc_room, 4);
	put(&packer, model->gc_owes, 4);
}

void model_unpack(const u32 *words, struct model *model)
{
	struct packer packer = { .words = (u32 *)words + MAX_ZONES };
	u32 i;

	memset(model, 0, sizeof(*model));
	for (i = 0; i < geometry.zones; i++)
		unpack_zone(words[i], &model->zones[i]);
	model->nr_victims = get(&packer, 2);
	for (i = 0; i < MAX_VICTIMS; i++) {
		model->victims[i].admitted = get(&packer, 1);
		model->victims[i].ended = get(&packer, 1);
		model->victims[i].items = get(&packer, 3);
		model->victims[i].redo = get(&packer, 3);
	}
	model->buffered = get(&packer, 3);
	model->drain = get(&packer, 3);
	model->round = get(&packer, 3);
	model->asked = get(&packer, 1);
	model->record = get(&packer, 1);
	for (i = 0; i < MAX_REDO; i++)
		model->redo[i] = get(&packer, 3);
	model->promised = get(&packer, 3);
	model->gated = get(&packer, 1);
	model->paced = get(&packer, 1);
	model->no_victim = get(&packer, 1);
	model->gc_has_zone = get(&packer, 1);
	model->unpaced = get(&packer, 1);
	model->refused = get(&packer, 1);
	model->failures = get(&packer, 2);
	model->users_room = get(&packer, 4);
	model->gc_room = get(&packer, 4);
	model->gc_owes = get(&packer, 4);
}

void model_init(struct model *model)
{
	memset(model, 0, sizeof(*model));
	model->promised = limits.buffer_zones - 1;
	update_gate(model);
}

void model_print(const struct model *model)
{
	static const char *const kinds[] = {
		"empty", "partial", "open", "closing", "full", "victim", "dead", "flushed",
		"erased", "bad",
	};
	u32 i;

	for (i = 0; i < geometry.zones; i++) {
		const struct zone *zone = &model->zones[i];

		printf(" %s", kinds[zone->kind]);
		if (zone->kind == KIND_OPEN || zone->kind == KIND_VICTIM)
			printf("%u", zone->slot);
		if (zone->kind != KIND_EMPTY)
			printf(":%u/%u", zone->valid, zone->wp);
		if (zone->users + zone->later)
			printf("+u%u", zone->users + zone->later);
		if (zone->records)
			printf("+r");
		if (zone->moves[0])
			printf("+a%u", zone->moves[0]);
		if (zone->moves[1])
			printf("+b%u", zone->moves[1]);
		if (zone->broken)
			printf("!");
		if (zone->lives)
			printf("~%u", zone->lives);
	}
	printf(" | buffered %u(%u) round %u%s%s redo", model->buffered, model->drain, model->round,
	       model->asked ? " asked" : "", model->record ? " record" : "");
	for (i = 0; i < MAX_REDO && model->redo[i]; i++)
		printf(" %u", model->redo[i]);
	printf(" | victims");
	for (i = 0; i < model->nr_victims; i++)
		printf(" %u%s%s", model->victims[i].items, model->victims[i].admitted ? "" : "?",
		       model->victims[i].ended ? "x" : "");
	printf(" | promised %u room %u %u owes %u%s%s%s%s%s%s failures %u\n", model->promised,
	       model->users_room, model->gc_room, model->gc_owes, model->gated ? " gated" : "",
	       model->paced ? " paced" : "", model->no_victim ? " no-victim" : "",
	       model->gc_has_zone ? " gc-zone" : "", model->unpaced ? " unpaced" : "",
	       model->refused ? " refused" : "", model->failures);
}
