// SPDX-License-Identifier: GPL-2.0-or-later
/* The last CPU asks for the machine's end, and would go on for ever. */
#include "guest.h"

void work(int id)
{
	uint32_t turns = 0;

	if (id != cpus - 1)
		for (;;)
			asm volatile("" : : : "memory");
	say("before", 1, &turns);
	out8(0xf4, 0);
	for (;;) {
		turns++;
		say("after", 1, &turns);
	}
}

void report(void)
{
}
