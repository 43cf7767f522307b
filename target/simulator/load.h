/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What users write: a distribution over blocks, or a trace of them. One thread, no lock; for the
 * simulator (simulate.c).
 */
#ifndef MTFTL_LOAD_H
#define MTFTL_LOAD_H

#include "lib/pure.h"

struct load;

/*
 * @spec: uniform, zipf:1.2, hot:90/10 (90% of the writes go to 10% of the blocks), shift:90/10 (and
 * half-way to others), fio-zipf:1.2/4 (as fio's, where ranks share blocks, of so many jobs), or
 * trace:FILE (a block's number a line, begun anew at its end). NULL: not understood, or no file.
 */
struct load *load_new(const char *spec, u32 blocks, u64 seed);
void load_free(struct load *load);
u32 load_next(struct load *load);
/* Half of the time is over. */
void load_half_way(struct load *load);
/* How often each block is written, in all 1; NULL: all alike, or a trace. */
const double *load_shares(const struct load *load);
bool load_is_trace(const struct load *load);
/* Evenly over @below. */
u32 load_random(struct load *load, u32 below);

#endif
