// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One lock for all: for TIME ns each CPU takes it, works for about HOLD
 * instructions, gives it back, works for about REST. How often did each get it?
 */
#include "guest.h"

#ifndef HOLD
#define HOLD 50
#endif
#ifndef REST
#define REST 50
#endif
#ifndef TIME
#define TIME 4000000
#endif

static uint32_t lock, taken[MAX_CPUS];

static inline void spend(uint32_t instructions)
{
	uint32_t turns = instructions / 2;

	if (turns)
		asm volatile("1: decl %0\n jnz 1b" : "+r"(turns));
}

void work(int id)
{
	uint32_t begin = now();

	while (now() - begin < TIME) {
		while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
			while (__atomic_load_n(&lock, __ATOMIC_RELAXED))
				asm volatile("pause");
		spend(HOLD);
		__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
		taken[id]++;
		spend(REST);
	}
}

void report(void)
{
	say("taken", cpus, taken);
}
