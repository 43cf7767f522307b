/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that are made ahead of time: memory may be waiting for a suspended device. And what a
 * thread has to check when it is kept for long.
 */
#ifndef MTFTL_THREAD_H
#define MTFTL_THREAD_H

#include <linux/kthread.h>
#include <linux/sched/signal.h>

#define MTFTL_THREAD_NAME	40	/* with its device's */

/* It is parked. @cpu: where its memory shall be, -1: anywhere. NULL: no memory. Sleeps. */
struct task_struct *mtftl_thread(int (*run)(void *data), void *data, int cpu, const char *name,
				 ...) __printf(4, 5);

/* The calling thread does little at a time, and users wait for it: it runs once it is woken. */
void mtftl_thread_hurries(void);

/* CPUs that our threads may use: those that are online and not isolated, or all if all are. */
void mtftl_thread_cpus(struct cpumask *cpus);
/* How many of these there are. */
unsigned int mtftl_thread_nr_cpus(void);
/* The next of these CPUs behind @cpu, in a circle; -1: the first. */
unsigned int mtftl_thread_next_cpu(int cpu);

/* Call it now and then during a mount: other tasks run, and a fatal signal ends the mount. */
static inline bool mtftl_interrupted(void)
{
	cond_resched();
	return fatal_signal_pending(current);
}

#endif
