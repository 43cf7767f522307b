// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every CPU sets its own timer SHOTS times, to a different delay each time,
 * and waits for it in a loop or halted. How late was the handler, beyond the
 * delay? The first CPU waits alone at the end, while all others are halted.
 */
#include "guest.h"

#define SHOTS 40

static uint32_t shortest[MAX_CPUS], longest[MAX_CPUS];

static uint32_t shoot(int id, uint32_t delay, int halt)
{
	uint32_t begin;

	fired[id] = 0;
	asm volatile("cli");
	begin = now();
	timer_start(delay);
	if (halt)
		asm volatile("sti; hlt" : : : "memory");
	else
		asm volatile("sti" : : : "memory");
	while (!fired[id])
		;
	return fired[id] - begin - delay;
}

static void note(int id, uint32_t late)
{
	if (late < shortest[id])
		shortest[id] = late;
	if (late > longest[id])
		longest[id] = late;
}

void work(int id)
{
	interrupts_on();
	shoot(id, 5000, 0);
	shortest[id] = 0xffffffff;
	meet();
	for (int i = 0; i < SHOTS; i++)
		note(id, shoot(id, 100 + 37 * id + 131 * i, HALTED));
	meet();
	if (id == 0)
		for (int i = 0; i < SHOTS; i++)
			note(id, shoot(id, 100 + 10007 * i, HALTED));
}

void report(void)
{
	say("shortest", cpus, shortest);
	say("longest", cpus, longest);
}
