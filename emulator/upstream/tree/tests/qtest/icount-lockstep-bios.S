/*
 * Firmware of icount-lockstep-test: all CPUs run a loop at once, and note when
 * it began and ended.  icount-lockstep-bios.h has its code; to make that anew:
 *
 *     gcc -m32 -c -o bios.o icount-lockstep-bios.S
 *     objcopy -O binary -j .text bios.o bios.bin
 *     xxd -i bios.bin
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * It lies at 0xf0000, where a startup interrupt sends the other CPUs.  What it
 * leaves in memory, in words of 4 bytes:
 *
 *     0x10000  CPUs that have arrived
 *     0x10004  ... that have ended
 *     0x10008  ... that there are
 *     0x10100  when the loop of CPU 0 began, when it ended; then CPU 1, ...
 */
#define HERE 0xf0000
#define TURNS 1000000

	.text
	.code16
entry:
	cli
	lgdtl	%cs:gdt_pointer - entry
	movl	%cr0, %eax
	orl	$1, %eax
	movl	%eax, %cr0
	ljmpl	$8, $(HERE + protected - entry)

	.code32
protected:
	movl	$0x10, %eax
	movl	%eax, %ds
	movl	$1, %eax
	cpuid
	shrl	$24, %ebx
	jnz	arrive

	/* The first CPU asks fw_cfg how many there are, and starts the others. */
	movl	$5, %eax
	movl	$0x510, %edx
	outw	%ax, %dx
	incl	%edx
	xorl	%eax, %eax
	inb	%dx, %al
	movl	%eax, 0x10008
	movl	$0x1ff, 0xfee000f0
	movl	$0xc4500, 0xfee00300
	movl	$0xc46f0, 0xfee00300

arrive:
	movl	%ebx, %esi
	lock incl 0x10000
1:	pause
	movl	0x10008, %eax
	cmpl	%eax, 0x10000
	jne	1b

	rdtsc
	movl	%eax, 0x10100(,%esi,8)
	movl	$TURNS, %ecx
2:	decl	%ecx
	jnz	2b
	rdtsc
	movl	%eax, 0x10104(,%esi,8)
	lock incl 0x10004
3:	hlt
	jmp	3b

	.balign	8
gdt:
	.quad	0
	.quad	0x00cf9b000000ffff
	.quad	0x00cf93000000ffff
gdt_pointer:
	.word	. - gdt - 1
	.long	HERE + gdt - entry
