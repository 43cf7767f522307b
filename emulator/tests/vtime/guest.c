// SPDX-License-Identifier: GPL-2.0-or-later
/* The part that all test programs share: see guest.h. */
#include "guest.h"

#define APIC(reg) (*(volatile uint32_t *)(0xfee00000 + (reg)))

struct gate {
	uint16_t low, selector, flags, high;
};

int cpus;
volatile uint32_t fired[MAX_CPUS];

static struct gate idt[0x41];
static int present, arrived, generation, done;

void on_timer(void);

void say(const char *name, int count, const uint32_t *numbers)
{
	while (*name)
		out8(0xe9, *name++);
	for (int i = 0; i < count; i++) {
		char digits[10];
		int n = 0;
		uint32_t rest = numbers[i];

		do {
			digits[n++] = '0' + rest % 10;
			rest /= 10;
		} while (rest);
		out8(0xe9, ' ');
		while (n)
			out8(0xe9, digits[--n]);
	}
	out8(0xe9, '\n');
}

void leave(void)
{
	out8(0xf4, 0);
	for (;;)
		asm volatile("hlt");
}

void interrupts_on(void)
{
	struct {
		uint16_t limit;
		uint32_t base;
	} __attribute__((packed)) pointer = { sizeof(idt) - 1, (uint32_t)idt };
	uint32_t handler = (uint32_t)on_timer;

	idt[0x40] = (struct gate){ handler, 8, 0x8e00, handler >> 16 };
	asm volatile("lidt %0" : : "m"(pointer));
	APIC(0xf0) = 0x1ff;
	APIC(0x3e0) = 0xb;	/* timer: one count is a nanosecond */
	APIC(0x320) = 0x40;
	asm volatile("sti");
}

void timer_start(uint32_t ns)
{
	APIC(0x380) = ns;
}

void send_interrupt(int id)
{
	APIC(0x310) = id << 24;
	APIC(0x300) = 0x4040;
}

void meet(void)
{
	int before = __atomic_load_n(&generation, __ATOMIC_SEQ_CST);

	if (__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST) == cpus) {
		arrived = 0;
		__atomic_store_n(&generation, before + 1, __ATOMIC_SEQ_CST);
	}
	while (__atomic_load_n(&generation, __ATOMIC_SEQ_CST) == before)
		asm volatile("pause");
}

void start(int id)
{
	if (id == 0) {
		uint8_t low, high;

		/* fw_cfg, key 5: number of CPUs */
		asm volatile("outw %w0, %w1" : : "a"(5), "d"(0x510));
		asm volatile("inb %w1, %0" : "=a"(low) : "d"(0x511));
		asm volatile("inb %w1, %0" : "=a"(high) : "d"(0x511));
		present = 0;
		arrived = 0;
		done = 0;
		cpus = low;
		APIC(0xf0) = 0x1ff;
		APIC(0x300) = 0xc4500;	/* all others: INIT */
		APIC(0x300) = 0xc46f0;	/* all others: start at 0xf0000 */
		while (__atomic_load_n(&present, __ATOMIC_SEQ_CST) != cpus - 1)
			;
	} else {
		__atomic_add_fetch(&present, 1, __ATOMIC_SEQ_CST);
	}
	meet();
	work(id);
	if (__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST) != cpus)
		return;
	report();
	leave();
}
