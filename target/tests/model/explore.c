// SPDX-License-Identifier: GPL-2.0
/*
 * Walking through all states: see explore.h. A state is its packed words; a hash table finds its
 * number. Numbers are given in the order in which states are found.
 */
#include "tests/model/explore.h"

#include <stdio.h>
#include <stdlib.h>

#define NONE	UINT32_MAX

struct graph graph;

static u32 *words_of;		/* WORDS of each state */
static u32 *parents;		/* the state that it was found from, */
static u8 *parent_steps;	/* and by which step */
static u32 room_states;
static u64 room_edges;
static u32 *table, table_mask;	/* numbers by hash, NONE: free */

void *explore_memory(void *old, u64 nr, u64 size)
{
	void *memory = realloc(old, nr * size);

	if (!memory) {
		fprintf(stderr, "model: no memory\n");
		exit(2);
	}
	return memory;
}

static u32 *words_at(u32 state)
{
	return words_of + (u64)state * WORDS;
}

static u32 hash(const u32 *words)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < WORDS; i++) {
		sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15ull;
		sum ^= sum >> 29;
	}
	return sum ^ sum >> 32;
}

/* Where it is, or could be put. */
static u32 place_of(const u32 *words)
{
	u32 at = hash(words) & table_mask;

	while (table[at] != NONE && memcmp(words_at(table[at]), words, WORDS * sizeof(*words)))
		at = (at + 1) & table_mask;
	return at;
}

static void make_table(u32 nr)
{
	u32 i;

	table_mask = nr - 1;
	table = explore_memory(table, nr, sizeof(*table));
	memset(table, 0xff, (u64)nr * sizeof(*table));
	for (i = 0; i < graph.nr_states; i++)
		table[place_of(words_at(i))] = i;
}

static void make_room(void)
{
	if (graph.nr_states < room_states)
		return;
	room_states = room_states ? 2 * room_states : 1u << 16;
	words_of = explore_memory(words_of, (u64)room_states * WORDS, sizeof(*words_of));
	parents = explore_memory(parents, room_states, sizeof(*parents));
	parent_steps = explore_memory(parent_steps, room_states, sizeof(*parent_steps));
	graph.first_edge = explore_memory(graph.first_edge, room_states + 1ull,
					  sizeof(*graph.first_edge));
}

static u32 add_state(const u32 *words, u32 parent, enum step by)
{
	u32 at = place_of(words), state = graph.nr_states;

	if (table[at] != NONE)
		return table[at];
	make_room();
	memcpy(words_at(state), words, WORDS * sizeof(*words));
	parents[state] = parent;
	parent_steps[state] = by;
	table[at] = state;
	graph.nr_states++;
	if (graph.nr_states > table_mask / 2)
		make_table(2 * (table_mask + 1));
	return state;
}

static void add_edge(const struct model *to, enum step by, void *data)
{
	u32 from = *(u32 *)data, words[WORDS], state;
	u64 i;

	model_pack(to, words);
	state = add_state(words, from, by);
	if (state == from)
		return;
	for (i = graph.first_edge[from]; i < graph.nr_edges; i++)
		if (graph.edges[i].to == state && graph.edges[i].step == by)
			return;
	if (graph.nr_edges == room_edges) {
		room_edges = room_edges ? 2 * room_edges : 1u << 18;
		graph.edges = explore_memory(graph.edges, room_edges, sizeof(*graph.edges));
	}
	graph.edges[graph.nr_edges++] = (struct edge){ .to = state, .step = by };
}

bool explore(bool (*look)(u32 state, const struct model *model))
{
	u32 words[WORDS], state;
	struct model model;

	make_table(1u << 16);
	model_init(&model);
	model_pack(&model, words);
	add_state(words, NONE, NR_STEPS);
	for (state = 0; state < graph.nr_states; state++) {
		graph.first_edge[state] = graph.nr_edges;
		explore_get(state, &model);
		model_steps(&model, add_edge, &state);
		graph.first_edge[state + 1] = graph.nr_edges;
		if (!look(state, &model))
			return false;
	}
	return true;
}

void explore_end(void)
{
	free(words_of);
	free(parents);
	free(parent_steps);
	free(graph.first_edge);
	free(graph.edges);
	free(table);
	words_of = NULL;
	parents = NULL;
	parent_steps = NULL;
	table = NULL;
	room_states = 0;
	room_edges = 0;
	graph = (struct graph){ };
}

void explore_get(u32 state, struct model *model)
{
	model_unpack(words_at(state), model);
}

void explore_trace(u32 state)
{
	struct model model;
	u32 at = state, n = 1, *way;

	for (; parents[at] != NONE; at = parents[at])
		n++;
	way = explore_memory(NULL, n, sizeof(*way));
	for (at = n; at--; state = parents[state])
		way[at] = state;
	for (at = 0; at < n; at++) {
		explore_get(way[at], &model);
		printf("%-14s", at ? step_names[parent_steps[way[at]]] : "");
		model_print(&model);
	}
	free(way);
}
