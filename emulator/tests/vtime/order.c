// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every CPU takes STEPS steps. How often was the next step another CPU's than
 * the one before, and in which order were the CPUs done?
 */
#include "guest.h"

#define STEPS 60000

static uint32_t switches, order[MAX_CPUS];
static int done;
static volatile int last = -1;

void work(int id)
{
	for (int i = 0; i < STEPS; i++) {
		if (last != id) {
			last = id;
			switches++;
		}
	}
	order[__atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST)] = id;
}

void report(void)
{
	say("switches", 1, &switches);
	say("order", cpus, order);
}
