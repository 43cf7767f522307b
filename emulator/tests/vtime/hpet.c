// SPDX-License-Identifier: GPL-2.0-or-later
/* Switches the HPET's counter on, so that another thread can read it, and is busy. */
#include "guest.h"

void work(int id)
{
	uint32_t turns = 20000000 + id;

	*(volatile uint32_t *)0xfed00010 = 1;
	asm volatile("1: decl %0\n jnz 1b" : "+r"(turns));
}

void report(void)
{
}
