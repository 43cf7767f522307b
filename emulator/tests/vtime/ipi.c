// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first CPU interrupts the last one, which is halted and answers with an
 * interrupt, SHOTS times. The others are busy (BUSY=1) or halted as well. How
 * long does the first one wait, at least and at most?
 */
#include "guest.h"

#define SHOTS 50

static uint32_t took[2];
static volatile int over;

static void wait(int id)
{
	while (!fired[id])
		asm volatile("sti; hlt; cli" : : : "memory");
}

void work(int id)
{
	int last = cpus - 1;

	took[0] = 0xffffffff;
	interrupts_on();
	asm volatile("cli");
	meet();
	/* Let all CPUs come to rest. */
	if (id == 0) {
		timer_start(100000);
		wait(0);
		for (int i = 0; i < SHOTS; i++) {
			uint32_t begin = now(), time;

			fired[0] = 0;
			send_interrupt(last);
			wait(0);
			time = fired[0] - begin;
			if (time < took[0])
				took[0] = time;
			if (time > took[1])
				took[1] = time;
		}
		over = 1;
		for (int other = 1; other < cpus; other++)
			send_interrupt(other);
	} else {
		while (!over) {
			if (id != last && BUSY)
				continue;
			wait(id);
			fired[id] = 0;
			if (id == last && !over)
				send_interrupt(0);
		}
	}
}

void report(void)
{
	say("took", 2, took);
}
