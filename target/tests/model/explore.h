/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All states that a model can reach, and the steps between them. One walk at a time, in memory.
 */
#ifndef MTFTL_EXPLORE_H
#define MTFTL_EXPLORE_H

#include "tests/model/model.h"

struct edge {
	u32 to;
	u8 step;	/* enum step */
};

/* Of the last walk. Edges of a state: from first_edge[state] up to first_edge[state + 1]. */
struct graph {
	u32 nr_states;
	u64 *first_edge;
	struct edge *edges;
	u64 nr_edges;
};

extern struct graph graph;

/* Breadth first. @look sees each state once its edges are there; false: it has seen enough. */
bool explore(bool (*look)(u32 state, const struct model *model));
void explore_end(void);
void explore_get(u32 state, struct model *model);
/* The shortest way to it, a line for each state. */
void explore_trace(u32 state);

void *explore_memory(void *old, u64 nr, u64 size);

#endif
