// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first CPU follows a chain through SIZE KiB of memory, each line once, in
 * an order that no prefetcher guesses; or, with STREAM, each line after the one
 * before. How long do STEPS steps of the second time round take?
 */
#include "guest.h"

#ifndef SIZE
#define SIZE 16
#endif
#ifndef STREAM
#define STREAM 0
#endif
#define STEPS (1 << 16)
#define LINES (SIZE * 16u)	/* a power of two */
#define MEMORY 0x1000000u

static uint32_t took;

static void *follow(void *at, uint32_t steps)
{
	for (; steps; steps -= 16)
		asm volatile(".rept 16\n movl (%0), %0\n .endr" : "+r"(at) : : "memory");
	return at;
}

void work(int id)
{
	uint32_t line = 0, begin;
	void *at;

	if (id)
		return;
	for (uint32_t i = 0; i < LINES; i++) {
		uint32_t next = (STREAM ? line + 1 : line * 1664525u + 1013904223u) % LINES;

		*(uint32_t *)(MEMORY + line * 64) = MEMORY + next * 64;
		line = next;
	}
	at = follow((void *)MEMORY, LINES);
	begin = now();
	follow(at, STEPS);
	took = now() - begin;
}

void report(void)
{
	say("took", 1, &took);
}
