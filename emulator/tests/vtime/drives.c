// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A drive for each of two CPUs, PCI devices 4 and 5.  The first CPU flushes its
 * own, one after the other.  The second writes: how long does each write take?
 */
#include "guest.h"

#define WRITES 40
#define DEPTH 64

enum { ADMIN, IO };
enum { CC = 0x14, CSTS = 0x1c, AQA = 0x24, ASQ = 0x28, ACQ = 0x30, DOORBELLS = 0x1000 };
enum { FLUSH = 0, WRITE = 1, CREATE_SQ = 1, CREATE_CQ = 5 };

struct drive {
	uint32_t bar;
	uint32_t sq[2], cq[2];		/* where its queues lie */
	uint32_t used[2];		/* commands so far */
};

static struct drive drives[2];
static uint32_t shortest, longest, flushes, over;

static volatile uint32_t *at(uint32_t address)
{
	return (volatile uint32_t *)address;
}

static void config(int device, uint32_t reg, uint32_t value)
{
	asm volatile("outl %0, %w1" : : "a"(0x80000000u | device << 11 | reg), "d"(0xcf8));
	asm volatile("outl %0, %w1" : : "a"(value), "d"(0xcfc));
}

/* A command, and its end; its time from the doorbell on. */
static uint32_t command(struct drive *d, int queue, uint32_t opcode, uint32_t prp, uint32_t dw10, uint32_t dw11)
{
	uint32_t n = d->used[queue]++, slot = n % DEPTH, begin;
	volatile uint32_t *entry = at(d->sq[queue] + slot * 64);
	volatile uint32_t *answer = at(d->cq[queue] + slot * 16 + 12);

	for (int i = 0; i < 16; i++)
		entry[i] = 0;
	entry[0] = opcode;
	entry[1] = queue == IO;
	entry[6] = prp;
	entry[10] = dw10;
	entry[11] = dw11;
	begin = now();
	*at(d->bar + DOORBELLS + queue * 8) = (slot + 1) % DEPTH;
	while ((*answer >> 16 & 1) == (n / DEPTH & 1))
		;
	begin = now() - begin;
	*at(d->bar + DOORBELLS + queue * 8 + 4) = (slot + 1) % DEPTH;
	if (*answer >> 17)
		for (;;)		/* an error: the test runs out of time */
			asm volatile("hlt");
	return begin;
}

static void bring_up(struct drive *d, int id)
{
	uint32_t memory = 0x1000000 + id * 0x100000;

	d->bar = 0xe0000000 + id * 0x10000;
	config(4 + id, 0x10, d->bar);
	config(4 + id, 0x14, 0);
	config(4 + id, 0x04, 6);
	for (int i = 0; i < 2; i++) {
		d->sq[i] = memory + i * 0x2000;
		d->cq[i] = memory + i * 0x2000 + 0x1000;
	}
	*at(d->bar + AQA) = (DEPTH - 1) << 16 | (DEPTH - 1);
	*at(d->bar + ASQ) = d->sq[ADMIN];
	*at(d->bar + ACQ) = d->cq[ADMIN];
	*at(d->bar + CC) = 4 << 20 | 6 << 16 | 6 << 4 | 1;
	while (!(*at(d->bar + CSTS) & 1))
		;
	command(d, ADMIN, CREATE_CQ, d->cq[IO], (DEPTH - 1) << 16 | 1, 1);
	command(d, ADMIN, CREATE_SQ, d->sq[IO], (DEPTH - 1) << 16 | 1, 1 << 16 | 1);
}

void work(int id)
{
	if (!id) {
		bring_up(&drives[0], 0);
		bring_up(&drives[1], 1);
		shortest = ~0u;
	}
	meet();
	if (!id) {
		while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
			command(&drives[0], IO, FLUSH, 0, 0, 0);
			flushes++;
		}
		return;
	}
	for (uint32_t i = 0; i < WRITES; i++) {
		uint32_t took = command(&drives[1], IO, WRITE, 0x2000000, i, 0);

		shortest = took < shortest ? took : shortest;
		longest = took > longest ? took : longest;
	}
	over = 1;
}

void report(void)
{
	say("flushes", 1, &flushes);
	say("shortest", 1, &shortest);
	say("longest", 1, &longest);
}
