// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Resets the machine twice from the last CPU while the others work. The
 * memory survives: how far had they got, and when did the next life begin?
 */
#include "guest.h"

static volatile uint32_t lives, born[3];
static volatile uint32_t done[MAX_CPUS];

void work(int id)
{
	uint32_t turns = 1000;

	if (lives == 2)
		return;
	if (id != cpus - 1)
		for (;;)
			done[id]++;
	asm volatile("1: decl %0\n jnz 1b" : "+r"(turns));
	born[++lives] = now();
	out8(0xcf9, 6);
	for (;;)
		done[id]++;
}

void report(void)
{
	say("reset", 2, (const uint32_t *)born + 1);
	say("done", cpus, (const uint32_t *)done);
	born[0] = now();
	say("end", 1, (const uint32_t *)born);
}
