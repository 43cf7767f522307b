// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Code in global pages of the upper half, which changes under its callers.
 *
 * A caller in one page jumps to code in the next, and some of that lies across
 * two pages. What it returns says which page was mapped when it was called.
 * After each change the caller does what an operating system has to do, and no
 * more; then what it gets must be new.
 */
#include "guest.h"

#define TABLES		0x200000	/* two sets of five page tables */
#define PAGES		0x300000	/* physical pages of code */
#define PRESENT		0x003
#define LARGE		0x080
#define GLOBAL		0x100
#define PAE		0x20		/* of CR4 */
#define PGE		0x80

enum { CALLER, ONE, TWO, TAIL, TAIL_ONE, TAIL_TWO };

static uint64_t *const top = (uint64_t *)TABLES;
static uint64_t *const other_top = (uint64_t *)(TABLES + 0x5000);
static uint64_t *const leaves = (uint64_t *)(TABLES + 0x4000);
static uint64_t *const other_leaves = (uint64_t *)(TABLES + 0x8000);
static uint64_t idt[4];
static uint32_t found[32], expected[32], steps;
uint32_t trapped;

/* In 64-bit code, call @what with an address of the upper half in RAX. */
uint32_t upper(const char *what, uint32_t at);
extern const char call_it[], flush_it[], trap_it[], on_trap[];

asm(".text\n"
    "upper:\n"
    "	push %ebx\n"
    "	mov 8(%esp), %ebx\n"
    "	mov 12(%esp), %eax\n"
    "	ljmp $0x18, $1f\n"
    "	.code64\n"
    "1:	mov %eax, %eax\n"
    "	mov $0xffffffff80000000, %rcx\n"
    "	add %rcx, %rax\n"
    "	call *%rbx\n"
    "	mov $2f, %ecx\n"
    "	pushq $8\n"
    "	push %rcx\n"
    "	lretq\n"
    "call_it:\n"
    "	call *%rax\n"
    "	ret\n"
    "flush_it:\n"
    "	invlpg (%rax)\n"
    "	ret\n"
    "trap_it:\n"
    "	mov %rax, %dr0\n"
    "	mov $1, %eax\n"
    "	mov %rax, %dr7\n"
    "	ret\n"
    "on_trap:\n"
    "	push %rax\n"
    "	mov $trapped, %eax\n"
    "	incl (%rax)\n"
    "	pop %rax\n"
    "	orl $0x10000, 16(%rsp)\n"	/* RF: past the breakpoint */
    "	iretq\n"
    "	.code32\n"
    "2:	pop %ebx\n"
    "	ret\n");

static void map(uint64_t *table, int page, int physical, uint32_t flags)
{
	table[page] = (PAGES + physical * 0x1000) | PRESENT | flags;
}

static uint8_t *code(int physical)
{
	return (uint8_t *)(PAGES + physical * 0x1000);
}

/* At @to: mov $@number, %eax; ret. */
static void put(uint8_t *to, uint32_t number)
{
	*to = 0xb8;
	*(uint32_t *)(to + 1) = number;
	to[5] = 0xc3;
}

/* At @at of the caller's page: call what is at @to in the upper half; ret. */
static void put_call(uint32_t at, uint32_t to)
{
	uint8_t *p = code(CALLER) + at;

	*p = 0xe8;
	*(int32_t *)(p + 1) = to - (at + 5);
	p[5] = 0xc3;
}

static void load_top(uint64_t *table)
{
	asm volatile("mov %0, %%cr3" : : "r"(table) : "memory");
}

static void set_cr4(uint32_t set, uint32_t clear)
{
	uint32_t cr4;

	asm volatile("mov %%cr4, %0" : "=r"(cr4));
	asm volatile("mov %0, %%cr4" : : "r"((cr4 | set) & ~clear) : "memory");
}

/* Often enough to be linked, if it can be. */
static void expect(uint32_t at, uint32_t answer)
{
	for (int i = 0; i < 3; i++)
		found[steps] = upper(call_it, at);
	expected[steps++] = answer;
}

static void enter_long_mode(void)
{
	static uint64_t gdt[4];
	static struct { uint16_t size; uint32_t at; } __attribute__((packed)) pointer;

	gdt[1] = 0x00cf9b000000ffff;
	gdt[2] = 0x00cf93000000ffff;
	gdt[3] = 0x00af9b000000ffff;
	pointer.size = sizeof(gdt) - 1;
	pointer.at = (uint32_t)gdt;
	asm volatile("lgdt %0" : : "m"(pointer));
	for (int i = 0; i < 2; i++) {
		uint64_t *table = i ? other_top : top;
		uint32_t at = (uint32_t)table;

		/* The first GiB as it is, and a page table for the upper half. */
		table[0] = (at + 0x1000) | PRESENT;
		table[511] = (at + 0x1000) | PRESENT;
		((uint64_t *)(at + 0x1000))[0] = (at + 0x2000) | PRESENT;
		((uint64_t *)(at + 0x1000))[510] = (TABLES + 0x3000 + 0x6000 * i) | PRESENT;
		for (int j = 0; j < 32; j++)
			((uint64_t *)(at + 0x2000))[j] = j * 0x200000 | PRESENT | LARGE;
	}
	((uint64_t *)(TABLES + 0x3000))[0] = (uint32_t)leaves | PRESENT;
	((uint64_t *)(TABLES + 0x9000))[0] = (uint32_t)other_leaves | PRESENT;
	set_cr4(PAE | PGE, 0);
	load_top(top);
	asm volatile("rdmsr; or $0x100, %%eax; wrmsr" : : "c"(0xc0000080) : "eax", "edx");
	asm volatile("mov %%cr0, %%eax; or $0x80000000, %%eax; mov %%eax, %%cr0" : : : "eax", "memory");
}

static void trap_at(uint32_t at)
{
	uint32_t handler = (uint32_t)on_trap;
	static struct { uint16_t size; uint64_t at; } __attribute__((packed)) pointer;

	idt[2] = (handler & 0xffff) | 0x18 << 16 | 0x8e00ull << 32 |
		 (uint64_t)(handler >> 16) << 48;
	idt[3] = 0;
	pointer.size = sizeof(idt) - 1;
	pointer.at = (uint32_t)idt;
	asm volatile("lidt %0" : : "m"(pointer));
	upper(trap_it, at);
}

void work(int id)
{
	if (id)
		return;
	put(code(ONE), 1);
	put(code(TWO), 2);
	/* The last byte of a number, and the return, are in the next page. */
	put(code(TAIL) + 0xffc, 0x01000003);
	code(TAIL_TWO)[0] = 2;
	code(TAIL_TWO)[1] = 0xc3;
	put_call(0, 0x1000);
	put_call(16, 0x2ffc);
	enter_long_mode();
	for (int i = 0; i < 2; i++) {
		uint64_t *table = i ? other_leaves : leaves;

		map(table, 0, CALLER, GLOBAL);
		map(table, 1, ONE, GLOBAL);
		map(table, 2, TAIL, GLOBAL);
		map(table, 3, TAIL_ONE, GLOBAL);
	}
	expect(0, 1);
	expect(16, 0x01000003);

	map(leaves, 1, TWO, GLOBAL);
	upper(flush_it, 0x1000);
	expect(0, 2);
	map(leaves, 3, TAIL_TWO, GLOBAL);
	upper(flush_it, 0x3000);
	expect(16, 0x02000003);

	map(leaves, 1, ONE, GLOBAL);
	map(leaves, 3, TAIL_ONE, GLOBAL);
	set_cr4(0, PGE);
	set_cr4(PGE, 0);
	expect(0, 1);
	expect(16, 0x01000003);

	/* Not global: a change of tables is enough. */
	map(leaves, 1, TWO, 0);
	upper(flush_it, 0x1000);
	expect(0, 2);
	map(leaves, 1, ONE, 0);
	load_top(top);
	expect(0, 1);
	map(leaves, 3, TAIL_TWO, 0);
	upper(flush_it, 0x3000);
	expect(16, 0x02000003);
	map(leaves, 3, TAIL_ONE, 0);
	load_top(top);
	expect(16, 0x01000003);

	/* Each table its own page, and the caller global for both. */
	map(other_leaves, 1, TWO, 0);
	for (int i = 0; i < 4; i++) {
		load_top(i & 1 ? top : other_top);
		expect(0, i & 1 ? 1 : 2);
	}

	/* Called global, but global pages are off. */
	set_cr4(0, PGE);
	map(leaves, 1, ONE, GLOBAL);
	load_top(top);
	expect(0, 1);
	map(leaves, 1, TWO, GLOBAL);
	load_top(top);
	expect(0, 2);
	set_cr4(PGE, 0);

	/* Written to, as when a kernel patches its code. */
	expect(0, 2);
	code(TWO)[1] = 5;
	expect(0, 5);

	/* A breakpoint at what the caller has long been linked to. */
	trap_at(0x1000);
	expect(0, 5);
	found[steps] = trapped;
	expected[steps++] = 3;
}

void report(void)
{
	say("found", steps, found);
	say("expected", steps, expected);
}
