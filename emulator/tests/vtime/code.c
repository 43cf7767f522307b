// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ordinary code, for measuring the emulator's own speed: each CPU heap-sorts
 * and checksums an array of its own, with calls, branches and memory accesses.
 */
#include "guest.h"

#define COUNT 512

static uint32_t data[MAX_CPUS][COUNT], table[256], took[MAX_CPUS];

static __attribute__((noinline)) uint32_t checksum(const uint8_t *bytes, int count)
{
	uint32_t crc = ~0u;

	while (count--)
		crc = crc >> 8 ^ table[(crc ^ *bytes++) & 0xff];
	return crc;
}

static __attribute__((noinline)) void sift(uint32_t *heap, int top, int count)
{
	for (;;) {
		int child = 2 * top + 1;
		uint32_t value = heap[top];

		if (child >= count)
			return;
		if (child + 1 < count && heap[child + 1] > heap[child])
			child++;
		if (heap[child] <= value)
			return;
		heap[top] = heap[child];
		heap[child] = value;
		top = child;
	}
}

static __attribute__((noinline)) void sort(uint32_t *heap, int count)
{
	for (int top = count / 2; top >= 0; top--)
		sift(heap, top, count);
	while (--count > 0) {
		uint32_t value = heap[0];

		heap[0] = heap[count];
		heap[count] = value;
		sift(heap, 0, count);
	}
}

void work(int id)
{
	uint32_t begin = now(), random = id;

	for (int i = 0; i < 256; i++) {
		uint32_t value = i;

		for (int bit = 0; bit < 8; bit++)
			value = value & 1 ? value >> 1 ^ 0xedb88320 : value >> 1;
		table[i] = value;
	}
	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < COUNT; i++)
			data[id][i] = random = random * 1664525 + 1013904223;
		sort(data[id], COUNT);
		random ^= checksum((uint8_t *)data[id], sizeof(data[id]));
	}
	took[id] = now() - begin;
}

void report(void)
{
	say("took", cpus, took);
}
