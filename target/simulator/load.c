// SPDX-License-Identifier: GPL-2.0
/*
 * What users write: see load.h. Blocks are drawn by Walker's alias method: two looks at a table,
 * whatever the distribution.
 */
#include "load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct load {
	u64 random[2];			/* xorshift128+ */
	u32 blocks;
	double *shares;			/* NULL: a trace, or uniform */
	u32 *place;			/* of a rank: the block */
	float *keep;			/* of a cell: the chance of its own rank, else alias */
	u32 *alias;
	bool shifts;
	u32 *trace;
	u64 trace_nr, trace_at;
};

static u64 draw(struct load *load)
{
	u64 a = load->random[0], b = load->random[1];

	load->random[0] = b;
	a ^= a << 23;
	load->random[1] = a ^ b ^ (a >> 18) ^ (b >> 5);
	return load->random[1] + b;
}

u32 load_random(struct load *load, u32 below)
{
	return ((draw(load) >> 32) * below) >> 32;
}

u32 load_next(struct load *load)
{
	u32 cell, rank;

	if (load->trace) {
		if (load->trace_at == load->trace_nr)
			load->trace_at = 0;
		return load->trace[load->trace_at++];
	}
	cell = load_random(load, load->blocks);
	if (!load->shares)
		return cell;
	rank = (float)(draw(load) >> 40) * 0x1p-24f < load->keep[cell] ? cell : load->alias[cell];
	return load->place[rank];
}

/* Of what is alike the first half is hot, so the last ranks take its place. */
void load_half_way(struct load *load)
{
	u32 i, other;

	if (!load->shifts)
		return;
	for (i = 0; i < load->blocks / 2; i++) {
		double *share = &load->shares[load->place[i]], its = *share;

		other = load->place[load->blocks - 1 - i];
		*share = load->shares[other];
		load->shares[other] = its;
		load->place[load->blocks - 1 - i] = load->place[i];
		load->place[i] = other;
	}
}

const double *load_shares(const struct load *load)
{
	return load->shares;
}

bool load_is_trace(const struct load *load)
{
	return load->trace;
}

/* Cells of the same height, each of at most two ranks. */
static void fill_cells(struct load *load, const double *weights)
{
	u32 *small = malloc(load->blocks * sizeof(u32)), *large = malloc(load->blocks * sizeof(u32));
	double *left = malloc(load->blocks * sizeof(double)), sum = 0;
	u32 smalls = 0, larges = 0, i;

	for (i = 0; i < load->blocks; i++)
		sum += weights[i];
	for (i = 0; i < load->blocks; i++) {
		left[i] = weights[i] / sum * load->blocks;
		load->keep[i] = 1;
		if (left[i] < 1)
			small[smalls++] = i;
		else
			large[larges++] = i;
		load->shares[load->place[i]] += weights[i] / sum;
	}
	while (smalls && larges) {
		u32 to = small[--smalls], from = large[larges - 1];

		load->keep[to] = left[to];
		load->alias[to] = from;
		left[from] -= 1 - left[to];
		if (left[from] < 1) {
			larges--;
			small[smalls++] = from;
		}
	}
	free(small);
	free(large);
	free(left);
}

/* Each rank at a block of its own. */
static void shuffle(struct load *load)
{
	u32 i, k, other;

	for (i = 0; i < load->blocks; i++)
		load->place[i] = i;
	for (i = load->blocks - 1; i; i--) {
		k = load_random(load, i + 1);
		other = load->place[i];
		load->place[i] = load->place[k];
		load->place[k] = other;
	}
}

static void set_hot(double *weights, u32 blocks, double writes, double of)
{
	u32 hot = of / 100 * blocks, i;

	for (i = 0; i < blocks; i++)
		weights[i] = i < hot ? writes / hot : (100 - writes) / (blocks - hot);
}

/* Each job's ranks lie where chance puts them, several at one block, and none at others. */
static void set_fio_zipf(struct load *load, double *weights, double theta, u32 jobs)
{
	u32 job, i;

	for (job = 0; job < jobs; job++)
		for (i = 0; i < load->blocks; i++)
			weights[load_random(load, load->blocks)] += pow(i + 1, -theta);
}

static bool set_weights(struct load *load, const char *spec, double *weights)
{
	double theta, writes, of;
	u32 jobs = 1, i;

	shuffle(load);
	if (sscanf(spec, "zipf:%lf", &theta) == 1) {
		for (i = 0; i < load->blocks; i++)
			weights[i] = pow(i + 1, -theta);
		return true;
	}
	if (sscanf(spec, "fio-zipf:%lf/%u", &theta, &jobs) >= 1) {
		set_fio_zipf(load, weights, theta, jobs);
		return true;
	}
	load->shifts = !strncmp(spec, "shift:", 6);
	if (sscanf(spec, "hot:%lf/%lf", &writes, &of) != 2 &&
	    sscanf(spec, "shift:%lf/%lf", &writes, &of) != 2)
		return false;
	set_hot(weights, load->blocks, writes, of);
	return writes > 0 && writes < 100 && of / 100 * load->blocks >= 1 && of < 100;
}

static bool read_trace(struct load *load, const char *path)
{
	FILE *file = fopen(path, "r");
	u64 max = 0;
	u32 block;

	while (file && fscanf(file, "%u", &block) == 1) {
		if (load->trace_nr == max) {
			max = max ? 2 * max : 4096;
			load->trace = realloc(load->trace, max * sizeof(u32));
		}
		load->trace[load->trace_nr++] = block % load->blocks;
	}
	if (file)
		fclose(file);
	return load->trace_nr;
}

struct load *load_new(const char *spec, u32 blocks, u64 seed)
{
	struct load *load = calloc(1, sizeof(*load));
	double *weights;
	bool ok;

	load->random[0] = seed ^ 0x9e3779b97f4a7c15ull;
	load->random[1] = seed + 0xd1b54a32d192ed03ull;
	load->blocks = blocks;
	if (!strcmp(spec, "uniform"))
		return load;
	if (!strncmp(spec, "trace:", 6)) {
		ok = read_trace(load, spec + 6);
	} else {
		weights = calloc(blocks, sizeof(double));
		load->shares = calloc(blocks, sizeof(double));
		load->place = malloc(blocks * sizeof(u32));
		load->keep = malloc(blocks * sizeof(float));
		load->alias = calloc(blocks, sizeof(u32));
		ok = set_weights(load, spec, weights);
		if (ok)
			fill_cells(load, weights);
		free(weights);
	}
	if (ok)
		return load;
	load_free(load);
	return NULL;
}

void load_free(struct load *load)
{
	free(load->shares);
	free(load->place);
	free(load->keep);
	free(load->alias);
	free(load->trace);
	free(load);
}
