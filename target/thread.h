/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that are made ahead of time: while a device is suspended, memory may be waiting for it.
 */
#ifndef MTFTL_THREAD_H
#define MTFTL_THREAD_H

#include <linux/kthread.h>

/* It is parked. @cpu: where its memory shall be, -1: anywhere. NULL: no memory. Sleeps. */
struct task_struct *mtftl_thread(int (*run)(void *data), void *data, int cpu, const char *name,
				 ...) __printf(4, 5);

#endif
