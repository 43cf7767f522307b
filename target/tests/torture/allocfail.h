/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's fault injection, aimed at the target: allocations fail that have
 * a function of dm-mtftl on their stack, and no others. Needs a kernel with
 * FAULT_INJECTION_STACKTRACE_FILTER, such as the kasan flavour.
 */
#ifndef ALLOCFAIL_H
#define ALLOCFAIL_H

#include <stdbool.h>

/* Once, with the module loaded. 0, or a negative errno: this kernel cannot. */
int allocfail_setup(void);
/* The n-th allocation that the calling thread makes from now on fails; 0: none. */
int allocfail_nth(unsigned int n);
/* Did it? */
bool allocfail_fired(void);
/* In all threads, every n-th allocation fails; 0: none does. */
int allocfail_storm(unsigned int n);
/* kmemleak looks once; prints what nothing points to. How many, or a negative errno. */
int allocfail_leaks(void);

#endif
