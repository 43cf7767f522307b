// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every CPU repeats string instructions. How long did they take, did they do
 * what they should, and how late was a timer that ran out in the middle of one?
 */
#include "guest.h"

#define WORDS 3000

static const uint32_t lengths[] = { 0, 1, 10, 999, WORDS };

#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

static uint32_t copied[LENGTHS], searched[LENGTHS];
static uint32_t wrong[MAX_CPUS], late[MAX_CPUS];

static uint32_t copy(uint32_t *to, const uint32_t *from, uint32_t words)
{
	uint32_t begin = now();

	asm volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
	return now() - begin;
}

/* Words before the first one that holds that value. */
static uint32_t search(const uint32_t *in, uint32_t value, uint32_t *took)
{
	uint32_t begin = now();
	uint32_t left = WORDS;

	asm volatile("repne scasl" : "+D"(in), "+c"(left) : "a"(value) : "memory", "cc");
	*took = now() - begin;
	return WORDS - 1 - left;
}

static int same(const uint32_t *a, const uint32_t *b, uint32_t words)
{
	while (words && a[words - 1] == b[words - 1])
		words--;
	return !words;
}

void work(int id)
{
	uint32_t *from = (uint32_t *)(0x200000 + id * 0x10000);
	uint32_t *to = from + WORDS + 1;
	uint32_t begin, delay = 1000 + 37 * id;

	interrupts_on();
	for (uint32_t i = 0; i < WORDS; i++)
		from[i] = id + i;
	meet();
	for (uint32_t i = 0; i < LENGTHS; i++) {
		uint32_t last = lengths[i] ? lengths[i] - 1 : 0;
		uint32_t took;

		to[lengths[i]] = 77;
		copied[i] = copy(to, from, lengths[i]);
		wrong[id] += !same(to, from, lengths[i]) || to[lengths[i]] != 77;
		wrong[id] += search(from, id + last, &took) != last;
		searched[i] = took;
	}
	for (uint32_t i = 0; i < WORDS; i++)
		to[i] = 0;
	fired[id] = 0;
	asm volatile("cli");
	begin = now();
	timer_start(delay);
	asm volatile("sti");
	copy(to, from, WORDS);
	late[id] = fired[id] - begin - delay;
	wrong[id] += !same(to, from, WORDS);
}

void report(void)
{
	say("copied", LENGTHS, copied);
	say("searched", LENGTHS, searched);
	say("wrong", cpus, wrong);
	say("late", cpus, late);
}
