// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first CPU works while all others are halted, then wakes the last one and
 * works on, as that one does. How long after the interrupt was sent does the
 * last one answer it, at least and at most? What is the longest step of the
 * first one's clock from one reading to the next?
 */
#include "guest.h"

#define SHOTS	20
#define WORK	5000

static int32_t delay[2];
static uint32_t step;
static volatile int over;

/* Reads the clock for a while. */
static void read_clock(uint32_t ns)
{
	uint32_t begin = now(), before = begin;

	while (before - begin < ns) {
		uint32_t time = now();

		if (time - before > step)
			step = time - before;
		before = time;
	}
}

static void work_on(void)
{
	for (volatile int i = 0; i < WORK; i++)
		;
}

static void wait(int id)
{
	while (!fired[id])
		asm volatile("sti; hlt; cli" : : : "memory");
}

void work(int id)
{
	int last = cpus - 1;

	interrupts_on();
	asm volatile("cli");
	meet();
	if (id != 0) {
		while (!over) {
			wait(id);
			if (!over)
				work_on();
			fired[id] = 0;
		}
		return;
	}
	delay[0] = 0x7fffffff;
	/* Let all CPUs come to rest. */
	timer_start(100000);
	wait(0);
	for (int i = 0; i < SHOTS; i++) {
		uint32_t begin;
		int32_t late;

		work_on();
		begin = now();
		send_interrupt(last);
		read_clock(WORK);
		late = fired[last] - begin;
		if (late < delay[0])
			delay[0] = late;
		if (late > delay[1])
			delay[1] = late;
		while (fired[last])
			asm volatile("pause");
		/* The other one is halted by then. */
		work_on();
	}
	over = 1;
	for (int other = 1; other < cpus; other++)
		send_interrupt(other);
}

void report(void)
{
	say("delay", 2, (uint32_t *)delay);
	say("step", 1, &step);
}
