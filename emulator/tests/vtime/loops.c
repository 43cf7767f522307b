// SPDX-License-Identifier: GPL-2.0-or-later
/* Independent loops of 2 instructions: when did each CPU begin and end? */
#include "guest.h"

#ifndef TURNS
#define TURNS 1000000
#endif

static uint32_t begun[MAX_CPUS], ended[MAX_CPUS];

void work(int id)
{
	uint32_t turns = TURNS;

	begun[id] = now();
	asm volatile("1: decl %0\n jnz 1b" : "+r"(turns));
	ended[id] = now();
}

void report(void)
{
	say("begun", cpus, begun);
	say("ended", cpus, ended);
}
