// SPDX-License-Identifier: GPL-2.0
/*
 * What must hold: see check.h.
 *
 * In each state: no more zones are open than the drive allows. If nothing moves and something
 * waits, admission says that this is the end, and two commands or more have failed. Admission never
 * says so while the device has a command.
 *
 * Paths: from each state in which something waits, steps that the target takes by itself lead to
 * the end of that wait, or after two failures to the end.
 *
 * Cycles: no run that is fair waits for ever, whatever users do. It is fair if each command ends,
 * and if each kind of step that is possible again and again is taken again and again. So a set of
 * states that a run may stay in has no state that a command's end leads out of, and takes each kind
 * of step that is possible in it. All other states are taken away until none is left.
 */
#include "tests/model/check.h"

#include <stdio.h>
#include <stdlib.h>

#define NONE	UINT32_MAX
#define ENDS	(1u << NR_WAITS)	/* beside enum waits, as a bit */

static u8 *waits;		/* of each state: enum waits, as bits, and ENDS */
static u32 room_waits;

static bool is_fair(const struct edge *edge)
{
	return edge->step < NR_FAIR_STEPS;
}

static bool fails(u32 state, const char *what)
{
	explore_trace(state);
	printf("wrong: %s\n", what);
	return false;
}

/* Each state */

static bool moves(u32 state)
{
	u64 i;

	for (i = graph.first_edge[state]; i < graph.first_edge[state + 1]; i++)
		if (is_fair(&graph.edges[i]))
			return true;
	return false;
}

static bool look(u32 state, const struct model *model)
{
	bool dead = model_is_dead(model);

	if (state >= room_waits) {
		room_waits = room_waits ? 2 * room_waits : 1u << 16;
		waits = explore_memory(waits, room_waits, sizeof(*waits));
	}
	waits[state] = model_waits(model);
	if (model_is_over(model))
		return fails(state, "more zones are open than the drive allows");
	if (dead && model_is_busy(model))
		return fails(state, "said to be the end, and the device has a command");
	if (moves(state) || !waits[state])
		return true;
	if (!dead)
		return fails(state, "something waits, nothing moves, and nothing says so");
	if (model->failures < 2)
		return fails(state, "the end, after one failure or none");
	waits[state] |= ENDS;
	return true;
}

/* Paths */

/* Fair edges the other way round: states before @state are those from starts[state] on. */
struct back {
	u64 *starts;
	u32 *from;
};

static void turn_round(struct back *back)
{
	u32 state;
	u64 i;

	back->starts = explore_memory(NULL, graph.nr_states + 1ull, sizeof(*back->starts));
	back->from = explore_memory(NULL, graph.nr_edges + 1, sizeof(*back->from));
	memset(back->starts, 0, (graph.nr_states + 1ull) * sizeof(*back->starts));
	for (i = 0; i < graph.nr_edges; i++)
		if (is_fair(&graph.edges[i]))
			back->starts[graph.edges[i].to]++;
	for (state = 0; state < graph.nr_states; state++)
		back->starts[state + 1] += back->starts[state];
	for (state = 0; state < graph.nr_states; state++)
		for (i = graph.first_edge[state]; i < graph.first_edge[state + 1]; i++)
			if (is_fair(&graph.edges[i]))
				back->from[--back->starts[graph.edges[i].to]] = state;
}

/* Waits that are not in @state or end with its next step. */
static u32 served_at(u32 state)
{
	u32 served = ~waits[state] & (ENDS - 1), wait;
	u64 i;

	for (i = graph.first_edge[state]; i < graph.first_edge[state + 1]; i++)
		for (wait = 0; wait < NR_WAITS; wait++)
			if (graph.edges[i].step == model_served(wait))
				served |= 1u << wait;
	return served | (waits[state] & ENDS);
}

/* What is served in a state is so in those before it. */
static u8 *serve(const struct back *back)
{
	u8 *served = explore_memory(NULL, graph.nr_states, sizeof(*served)), *queued;
	u32 *stack = explore_memory(NULL, graph.nr_states, sizeof(*stack)), nr = 0, state, to;
	u64 i;

	queued = explore_memory(NULL, graph.nr_states, sizeof(*queued));
	for (state = 0; state < graph.nr_states; state++) {
		served[state] = served_at(state);
		queued[state] = true;
		stack[nr++] = state;
	}
	while (nr) {
		state = stack[--nr];
		queued[state] = false;
		for (i = back->starts[state]; i < back->starts[state + 1]; i++) {
			to = back->from[i];
			if (!(served[state] & ~served[to]))
				continue;
			served[to] |= served[state];
			if (!queued[to])
				stack[nr++] = to;
			queued[to] = true;
		}
	}
	free(queued);
	free(stack);
	return served;
}

static bool check_paths(void)
{
	struct back back;
	u32 state, wait;
	bool ok = true;
	u8 *served;

	turn_round(&back);
	served = serve(&back);
	for (state = 0; state < graph.nr_states && ok; state++)
		for (wait = 0; wait < NR_WAITS && ok; wait++) {
			if (served[state] & (1u << wait | ENDS))
				continue;
			printf("waits for ever: %s\n", wait_names[wait]);
			ok = fails(state, "no step of the target leads to the end of a wait");
		}
	free(served);
	free(back.starts);
	free(back.from);
	return ok;
}

/* Cycles */

struct cycles {
	enum step served;	/* ends the wait in question */
	u8 *left;		/* of each state: a run might stay in it */
	u32 *component;		/* of what can reach each other; NONE: none yet */
	u32 nr_components;
	/* Tarjan's algorithm. */
	u32 *index, *low, *stack, *calls;
	u64 *next_edge;
	u8 *on_stack;
	u32 counter, top;
};

static void alloc_cycles(struct cycles *cycles)
{
	u64 nr = graph.nr_states;

	*cycles = (struct cycles){ };
	cycles->left = explore_memory(NULL, nr, sizeof(*cycles->left));
	cycles->component = explore_memory(NULL, nr, sizeof(*cycles->component));
	cycles->index = explore_memory(NULL, nr, sizeof(*cycles->index));
	cycles->low = explore_memory(NULL, nr, sizeof(*cycles->low));
	cycles->stack = explore_memory(NULL, nr, sizeof(*cycles->stack));
	cycles->calls = explore_memory(NULL, nr, sizeof(*cycles->calls));
	cycles->next_edge = explore_memory(NULL, nr, sizeof(*cycles->next_edge));
	cycles->on_stack = explore_memory(NULL, nr, sizeof(*cycles->on_stack));
	memset(cycles->on_stack, 0, nr);
}

static void free_cycles(struct cycles *cycles)
{
	free(cycles->left);
	free(cycles->component);
	free(cycles->index);
	free(cycles->low);
	free(cycles->stack);
	free(cycles->calls);
	free(cycles->next_edge);
	free(cycles->on_stack);
}

/* Failures are few, so none is in a cycle. */
static bool stays(const struct cycles *cycles, const struct edge *edge)
{
	return cycles->left[edge->to] && edge->step != cycles->served && edge->step != STEP_FAIL;
}

static void visit(struct cycles *cycles, u32 state)
{
	cycles->index[state] = cycles->counter;
	cycles->low[state] = cycles->counter++;
	cycles->stack[cycles->top++] = state;
	cycles->on_stack[state] = true;
}

/* The next state that was not seen yet; NONE: there is none. */
static u32 next_state(struct cycles *cycles, u32 state)
{
	const struct edge *edge;

	while (cycles->next_edge[state] < graph.first_edge[state + 1]) {
		edge = &graph.edges[cycles->next_edge[state]++];
		if (!stays(cycles, edge))
			continue;
		if (cycles->index[edge->to] == NONE)
			return edge->to;
		if (cycles->on_stack[edge->to] && cycles->index[edge->to] < cycles->low[state])
			cycles->low[state] = cycles->index[edge->to];
	}
	return NONE;
}

static void end_component(struct cycles *cycles, u32 root)
{
	u32 state;

	do {
		state = cycles->stack[--cycles->top];
		cycles->on_stack[state] = false;
		cycles->component[state] = cycles->nr_components;
	} while (state != root);
	cycles->nr_components++;
}

static void find_from(struct cycles *cycles, u32 root)
{
	u32 depth = 0, state = root, next;

	visit(cycles, root);
	cycles->calls[0] = root;
	for (;;) {
		next = next_state(cycles, state);
		if (next != NONE) {
			visit(cycles, next);
			cycles->calls[++depth] = next;
			state = next;
			continue;
		}
		if (cycles->low[state] == cycles->index[state])
			end_component(cycles, state);
		if (!depth)
			return;
		next = cycles->calls[--depth];
		if (cycles->low[state] < cycles->low[next])
			cycles->low[next] = cycles->low[state];
		state = next;
	}
}

static void find_components(struct cycles *cycles)
{
	u32 state;

	cycles->nr_components = 0;
	cycles->counter = 0;
	for (state = 0; state < graph.nr_states; state++) {
		cycles->component[state] = NONE;
		cycles->index[state] = NONE;
		cycles->next_edge[state] = graph.first_edge[state];
	}
	for (state = 0; state < graph.nr_states; state++)
		if (cycles->left[state] && cycles->index[state] == NONE)
			find_from(cycles, state);
}

static bool is_within(const struct cycles *cycles, u32 state, const struct edge *edge)
{
	return stays(cycles, edge) && cycles->component[edge->to] == cycles->component[state];
}

/* Kinds of steps, as bits, that are possible in a component and never taken in it; its size. */
static u32 *find_unfair(const struct cycles *cycles, u32 **sizes)
{
	u32 *taken = calloc(cycles->nr_components + 1, sizeof(*taken));
	u32 *possible = calloc(cycles->nr_components + 1, sizeof(*possible)), state, own;
	u64 i;

	*sizes = calloc(cycles->nr_components + 1, sizeof(**sizes));
	if (!taken || !possible || !*sizes)
		exit(2);
	for (state = 0; state < graph.nr_states; state++) {
		if (!cycles->left[state])
			continue;
		own = cycles->component[state];
		(*sizes)[own]++;
		for (i = graph.first_edge[state]; i < graph.first_edge[state + 1]; i++) {
			if (!is_fair(&graph.edges[i]))
				continue;
			possible[own] |= 1u << graph.edges[i].step;
			if (is_within(cycles, state, &graph.edges[i]))
				taken[own] |= 1u << graph.edges[i].step;
		}
	}
	for (own = 0; own < cycles->nr_components; own++)
		possible[own] &= ~taken[own];
	free(taken);
	return possible;
}

static bool is_left(const struct cycles *cycles, u32 state, u32 unfair)
{
	const struct edge *edge;
	u64 i;

	for (i = graph.first_edge[state]; i < graph.first_edge[state + 1]; i++) {
		edge = &graph.edges[i];
		if (!is_fair(edge))
			continue;
		if (unfair >> edge->step & 1)
			return false;
		if ((edge->step == STEP_LAND || edge->step == STEP_CLOSE ||
		     edge->step == STEP_ERASE) && !is_within(cycles, state, edge))
			return false;
	}
	return true;
}

/* True: something was taken away. */
static bool prune(struct cycles *cycles)
{
	u32 *sizes, *unfair = find_unfair(cycles, &sizes), state, own;
	bool some = false;

	for (state = 0; state < graph.nr_states; state++) {
		if (!cycles->left[state])
			continue;
		own = cycles->component[state];
		if (sizes[own] > 1 && is_left(cycles, state, unfair[own]))
			continue;
		/* Its component has to be found anew before others of it are judged. */
		cycles->component[state] = NONE;
		some = true;
	}
	for (state = 0; state < graph.nr_states; state++)
		cycles->left[state] &= cycles->component[state] != NONE;
	free(unfair);
	free(sizes);
	return some;
}

static bool check_cycles(void)
{
	struct cycles cycles;
	bool ok = true;
	u32 wait, state;

	alloc_cycles(&cycles);
	for (wait = 0; wait < NR_WAITS && ok; wait++) {
		cycles.served = model_served(wait);
		for (state = 0; state < graph.nr_states; state++)
			cycles.left[state] = waits[state] >> wait & 1;
		do {
			find_components(&cycles);
		} while (prune(&cycles));
		for (state = 0; state < graph.nr_states && ok; state++) {
			if (!cycles.left[state])
				continue;
			printf("starves: %s\n", wait_names[wait]);
			ok = fails(state, "a fair run need not go on from here");
		}
	}
	free_cycles(&cycles);
	return ok;
}

bool check_drive(const struct geometry *geometry, struct result *result)
{
	bool ok;
	u32 i;

	model_set(geometry);
	ok = explore(look) && check_paths() && check_cycles();
	*result = (struct result){ .states = graph.nr_states, .steps = graph.nr_edges };
	for (i = 0; ok && i < graph.nr_states; i++)
		result->ends += !!(waits[i] & ENDS);
	explore_end();
	free(waits);
	waits = NULL;
	room_waits = 0;
	return ok;
}
