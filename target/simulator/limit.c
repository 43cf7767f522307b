// SPDX-License-Identifier: GPL-2.0
/*
 * Limits: see limit.h.
 */
#include "limit.h"

#include <math.h>
#include <stdlib.h>

#define ALIKE	1.01		/* shares that differ less are one group */

/* Blocks that are written as often. */
struct group {
	double share;		/* of each */
	u32 blocks;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The part that is valid where 1/v - 1 + ln v = @x. */
static double valid_at(double x)
{
	double low = 0, high = 1, v;
	u32 i;

	for (i = 0; i < 60; i++) {
		v = (low + high) / 2;
		if (1 / v - 1 + log(v) > x)
			low = v;
		else
			high = v;
	}
	return high;
}

static double room_at(double v)
{
	return v < 1 - 1e-9 ? -log(v) / (1 - v) : 1;
}

static u32 group(double *shares, u32 blocks, struct group *groups)
{
	u32 nr = 0, i = 0, first;
	double sum;

	qsort(shares, blocks, sizeof(*shares), compare);
	while (i < blocks) {
		for (first = i, sum = 0; i < blocks && shares[i] <= shares[first] * ALIKE; i++)
			sum += shares[i];
		groups[nr++] = (struct group){ sum / (i - first), i - first };
	}
	return nr;
}

static double room(const struct group *groups, u32 nr, double mu)
{
	double all = 0;
	u32 i;

	for (i = 0; i < nr; i++)
		all += groups[i].blocks * room_at(valid_at(groups[i].share / mu));
	return all;
}

static double solve(const struct group *groups, u32 nr, double wanted)
{
	double low = 1e-20, high = 1e6, mu, all = 0;
	u32 i;

	for (i = 0; i < 100; i++) {
		mu = sqrt(low * high);
		if (room(groups, nr, mu) > wanted)
			low = mu;
		else
			high = mu;
	}
	for (i = 0; i < nr; i++)
		all += groups[i].share * groups[i].blocks /
		       (1 - valid_at(groups[i].share / high) + 1e-30);
	return all;
}

void stored_shares(double *stored, const double *shares, u32 blocks, double window)
{
	double sum = 0;
	u32 i;

	for (i = 0; i < blocks; i++) {
		stored[i] = shares ? shares[i] / (1 + shares[i] * window) : 1.0 / blocks;
		sum += stored[i];
	}
	for (i = 0; i < blocks; i++)
		stored[i] /= sum;
}

double limit_of_placement(const double *shares, u32 blocks, double spare, double window)
{
	double *stored = malloc(blocks * sizeof(*stored)), found;
	struct group *groups = malloc(blocks * sizeof(*groups));

	stored_shares(stored, shares, blocks, window);
	found = solve(groups, group(stored, blocks, groups), spare * blocks);
	free(stored);
	free(groups);
	return found;
}
