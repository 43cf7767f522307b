// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A bit of everything, at odds with each other: timers, halts, interrupts
 * between CPUs, a lock, and one checksum a CPU over every time it reads.  If the
 * machine has a port for that, it is paused PAUSES times.
 */
#include "guest.h"

#define ROUNDS 300
#define PAUSES 10

static uint32_t sum[MAX_CPUS], lock, shared;

static void add(int id, uint32_t value)
{
	sum[id] = (sum[id] ^ value) * 16777619;
}

void work(int id)
{
	uint32_t random = id + 1;

	interrupts_on();
	for (int i = 0; i < ROUNDS; i++) {
		random = random * 1664525 + 1013904223;
		fired[id] = 0;
		asm volatile("cli");
		timer_start(50 + (random >> 20));
		if (random & 1)
			asm volatile("sti; hlt" : : : "memory");
		else
			asm volatile("sti" : : : "memory");
		while (!fired[id])
			asm volatile("pause");
		add(id, fired[id]);
		while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
			asm volatile("pause");
		shared = (shared ^ now()) * 31;
		add(id, shared);
		__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
		if (random & 6)
			send_interrupt((id + (random >> 28)) % cpus);
		add(id, now());
		if (id == cpus / 2 && i % (ROUNDS / PAUSES) == 0)
			out8(0xf8, 0);
	}
}

void report(void)
{
	uint32_t end = now();

	say("sums", cpus, sum);
	say("end", 1, &end);
}
