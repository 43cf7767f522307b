// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every CPU does the same for TIME ns, on lines that all share or, where STEP
 * is 16, that each has for itself. How often did each do it?
 */
#include "guest.h"

#define ATOMIC 0	/* adds one */
#define STORE 1		/* stores */
#define SWAP 2		/* the first two CPUs: swap 0 for 1, and back */
#define FLAG 3		/* the first two CPUs: wait for the other one's store */
#define READ 4		/* loads; the first CPU stores, every PERIOD ns */
#define TICKET 5	/* takes a ticket lock, gives it back */
#define QUEUE 6		/* the same with a lock of which each waits on its own line */
#define RWSEM 7		/* takes a lock for reading, as Linux' rwsem counts, gives it back */

#ifndef WHAT
#define WHAT ATOMIC
#endif
#ifndef STEP
#define STEP 0
#endif
#ifndef TIME
#define TIME 200000
#endif
#ifndef PERIOD
#define PERIOD 2000
#endif
#define READER 256	/* a reader in the lock's count; below it: the writer, a waiter */
#define TURNS 8		/* between two looks at the clock, each a block of code of its own */

struct node {
	struct node *next;
	uint32_t waits;
} __attribute__((aligned(64)));

static uint32_t words[16 * MAX_CPUS] __attribute__((aligned(64)));
static struct node nodes[MAX_CPUS];
static struct { struct node *tail; } __attribute__((aligned(64))) queue;
static struct { uint32_t next; } __attribute__((aligned(64))) tickets;
static struct { uint32_t now; } __attribute__((aligned(64))) serving;
static struct { uint32_t count; } __attribute__((aligned(64))) rwsem;
static struct counter { uint32_t count; } __attribute__((aligned(64))) done[MAX_CPUS];

static inline void pause(void)
{
	asm volatile("pause");
}

static void swap_turns(uint32_t id)
{
	for (int i = 0; i < TURNS; i++) {
		uint32_t mine = id;

		while (!__atomic_compare_exchange_n(words, &mine, !id, 0, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST))
			mine = id;
	}
}

static void flag_turns(uint32_t id)
{
	for (int i = 0; i < TURNS; i++) {
		while (__atomic_load_n(words, __ATOMIC_ACQUIRE) != id)
			pause();
		__atomic_store_n(words, !id, __ATOMIC_RELEASE);
	}
}

static void ticket_turns(void)
{
	for (int i = 0; i < TURNS; i++) {
		uint32_t mine = __atomic_fetch_add(&tickets.next, 1, __ATOMIC_RELAXED);

		while (__atomic_load_n(&serving.now, __ATOMIC_ACQUIRE) != mine)
			pause();
		__atomic_store_n(&serving.now, mine + 1, __ATOMIC_RELEASE);
	}
}

static void queue_turns(struct node *me)
{
	for (int i = 0; i < TURNS; i++) {
		struct node *before, *after, *only = me;

		me->next = 0;
		me->waits = 1;
		before = __atomic_exchange_n(&queue.tail, me, __ATOMIC_ACQ_REL);
		if (before) {
			__atomic_store_n(&before->next, me, __ATOMIC_RELEASE);
			while (__atomic_load_n(&me->waits, __ATOMIC_ACQUIRE))
				pause();
		}
		after = __atomic_load_n(&me->next, __ATOMIC_ACQUIRE);
		if (!after) {
			if (__atomic_compare_exchange_n(&queue.tail, &only, 0, 0,
							__ATOMIC_RELEASE, __ATOMIC_RELAXED))
				continue;
			while (!(after = __atomic_load_n(&me->next, __ATOMIC_ACQUIRE)))
				pause();
		}
		__atomic_store_n(&after->waits, 0, __ATOMIC_RELEASE);
	}
}

static void rwsem_turns(void)
{
	for (int i = 0; i < TURNS; i++) {
		while (__atomic_add_fetch(&rwsem.count, READER, __ATOMIC_ACQUIRE) % READER) {
			__atomic_sub_fetch(&rwsem.count, READER, __ATOMIC_RELAXED);
			pause();
		}
		asm volatile("movl %0, %%eax" : : "m"(words[0]) : "eax");
		__atomic_sub_fetch(&rwsem.count, READER, __ATOMIC_RELEASE);
	}
}

static void turns(int id)
{
	uint32_t *word = words + (STEP ? STEP * id : id % 16);
	uint32_t left = TURNS;

	switch (WHAT) {
	case ATOMIC:
		asm volatile("1: lock incl %0\n decl %1\n jnz 1b" : "+m"(words[STEP * id]), "+r"(left));
		break;
	case STORE:
		asm volatile("1: movl %1, %0\n decl %1\n jnz 1b" : "+m"(*word), "+r"(left));
		break;
	case SWAP:
		swap_turns(id);
		break;
	case FLAG:
		flag_turns(id);
		break;
	case READ:
		asm volatile("1: movl %1, %%eax\n decl %0\n jnz 1b" : "+r"(left) : "m"(words[0]) : "eax");
		break;
	case TICKET:
		ticket_turns();
		break;
	case QUEUE:
		queue_turns(nodes + id);
		break;
	case RWSEM:
		rwsem_turns();
		break;
	}
}

void work(int id)
{
	uint32_t begin = now();

	if ((WHAT == SWAP || WHAT == FLAG) && id > 1)
		return;
	if (WHAT == READ && id == 0) {
		while (now() - begin < TIME) {
			uint32_t last = now();

			asm volatile("incl %0" : "+m"(words[0]));
			done[id].count++;
			while (now() - last < PERIOD)
				pause();
		}
		return;
	}
	/* A CPU in the middle of a handover must find the other one there. */
	while (WHAT == SWAP || WHAT == FLAG ? done[id].count < TIME / 200 * TURNS
					    : now() - begin < TIME) {
		turns(id);
		done[id].count += TURNS;
	}
	if (WHAT == SWAP || WHAT == FLAG)
		done[id].count = now() - begin;
}

void report(void)
{
	uint32_t counts[MAX_CPUS];

	for (int i = 0; i < cpus; i++)
		counts[i] = done[i].count;
	say("done", cpus, counts);
}
