/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where every CPU starts: the first one from the reset vector, the others by a
 * startup interrupt with vector 0xf0. Enters protected mode with flat
 * segments and a stack of its own, and calls start(id).
 */
	.section .reset, "ax"
	.code16
	ljmp	$0xf000, $0

	.section .entry, "ax"
entry:
	cli
	lgdtl	%cs:gdt_pointer - entry
	movl	%cr0, %eax
	orl	$1, %eax
	movl	%eax, %cr0
	ljmpl	$8, $protected

	.code32
protected:
	movl	$0x10, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	movl	$1, %eax
	cpuid
	shrl	$24, %ebx
	movl	%ebx, %eax
	shll	$12, %eax
	movl	$0x90000, %esp
	subl	%eax, %esp
	pushl	%ebx
	call	start
1:	hlt
	jmp	1b

	.balign	8
gdt:
	.quad	0
	.quad	0x00cf9b000000ffff
	.quad	0x00cf93000000ffff
gdt_pointer:
	.word	. - gdt - 1
	.long	gdt

/* An interrupt: note the time, end it. The time goes to fired[id]. */
	.text
	.globl	on_timer
on_timer:
	pushl	%eax
	pushl	%ecx
	pushl	%edx
	rdtsc
	movl	0xfee00020, %ecx
	shrl	$24, %ecx
	movl	%eax, fired(,%ecx,4)
	movl	$0, 0xfee000b0
	popl	%edx
	popl	%ecx
	popl	%eax
	iret
