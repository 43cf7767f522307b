/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a test program on the bare machine needs: CPUs, a clock, a console.
 * The program defines work(), which every CPU calls at the same time; when the
 * last one has returned, the first calls report() and the machine ends.
 */
#ifndef GUEST_H
#define GUEST_H

#include <stdint.h>

#define MAX_CPUS 64

extern int cpus;
extern volatile uint32_t fired[MAX_CPUS];	/* last interrupt's time */

void work(int id);
void report(void);

/* One line: name, then numbers. */
void say(const char *name, int count, const uint32_t *numbers);
_Noreturn void leave(void);

/* Interrupts: vector 0x40 notes the time in fired[]. */
void interrupts_on(void);
void timer_start(uint32_t ns);
void send_interrupt(int id);
/* Each CPU waits for all. */
void meet(void);

static inline void out8(uint16_t port, uint8_t value)
{
	asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

/* Nanoseconds; a test lasts less than 4 s. */
static inline uint32_t now(void)
{
	uint32_t low;

	asm volatile("rdtsc" : "=a"(low) : : "edx", "memory");
	return low;
}

#endif
