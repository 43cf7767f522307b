// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every CPU reads the clock over and over, for TIME ns. How often did its clock
 * leap, how far at most, and how much time did it lose that way?
 */
#include "guest.h"

#define TIME	20000000
#define LEAP	30	/* ns: more than from one reading to the next */

static uint32_t leaps[MAX_CPUS], longest[MAX_CPUS], lost[MAX_CPUS];

void work(int id)
{
	uint32_t begin = now(), before = begin;

	while (before - begin < TIME) {
		uint32_t time = now(), step = time - before;

		if (step > LEAP) {
			leaps[id]++;
			lost[id] += step;
		}
		if (step > longest[id])
			longest[id] = step;
		before = time;
	}
}

void report(void)
{
	say("leaps", cpus, leaps);
	say("longest", cpus, longest);
	say("lost", cpus, lost);
}
