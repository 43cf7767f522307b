// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first CPU switches the HPET's counter off and on while all are busy.  It goes on where it
 * stood, so that for another thread it never goes back, if that reads the same clock.
 */
#include "guest.h"

#define TURNS 10000

static volatile uint32_t *const configuration = (uint32_t *)0xfed00010;

void work(int id)
{
	for (int i = 0; i < 2000; i++) {
		uint32_t turns = TURNS + id;

		asm volatile("1: decl %0\n jnz 1b" : "+r"(turns));
		if (id == 0) {
			*configuration = 0;
			*configuration = 1;
		}
	}
}

void report(void)
{
}
