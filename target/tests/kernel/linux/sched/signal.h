/* SPDX-License-Identifier: GPL-2.0 */
#include "kernel.h"

#ifndef MTFTL_TESTS_KERNEL_SIGNAL_H
#define MTFTL_TESTS_KERNEL_SIGNAL_H

#define current	((void *)0)

/* A test kills when this was asked for so often, and from then on; 0: never. */
__attribute__((weak)) unsigned long kernel_kill_at, kernel_asked;

static inline bool fatal_signal_pending(void *task)
{
	(void)task;
	kernel_asked++;
	return kernel_kill_at && kernel_asked >= kernel_kill_at;
}

#endif
