// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every CPU reads the clock over and over. Did its own reading ever go back,
 * and how far was it behind what another CPU had read before?
 */
#include "guest.h"

#define READS 20000

static uint32_t backwards[MAX_CPUS], behind[MAX_CPUS];
static volatile uint32_t latest;

void work(int id)
{
	uint32_t before = now();

	for (int i = 0; i < READS; i++) {
		uint32_t seen = latest;
		uint32_t time = now();

		if (time < before)
			backwards[id]++;
		if (time < seen && seen - time > behind[id])
			behind[id] = seen - time;
		if (time > seen)
			latest = time;
		before = time;
	}
}

void report(void)
{
	say("backwards", cpus, backwards);
	say("behind", cpus, behind);
}
