/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that are made ahead of time: while a device is suspended, memory may be waiting for it.
 * And what a caller's thread has to ask when it is kept for long.
 */
#ifndef MTFTL_THREAD_H
#define MTFTL_THREAD_H

#include <linux/kthread.h>
#include <linux/sched/signal.h>

#define MTFTL_THREAD_NAME	40	/* with its device's */

/* It is parked. @cpu: where its memory shall be, -1: anywhere. NULL: no memory. Sleeps. */
struct task_struct *mtftl_thread(int (*run)(void *data), void *data, int cpu, const char *name,
				 ...) __printf(4, 5);

/* How many CPUs may be home to threads of ours: those that are online and not isolated, if any is. */
unsigned int mtftl_thread_nr_cpus(void);
/* The next of them behind @cpu, round and round; behind -1 the first. */
unsigned int mtftl_thread_next_cpu(int cpu);

/* Every now and then in what a mount does: others run, and a fatal signal ends it. */
static inline bool mtftl_interrupted(void)
{
	cond_resched();
	return fatal_signal_pending(current);
}

#endif
