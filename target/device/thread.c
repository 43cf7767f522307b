// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that are made ahead of time: see thread.h.
 */
#include "device/thread.h"

#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/topology.h>
#include <uapi/linux/sched/types.h>

struct task_struct *mtftl_thread(int (*run)(void *data), void *data, int cpu, const char *name, ...)
{
	struct task_struct *task;
	char full[MTFTL_THREAD_NAME];
	va_list args;

	va_start(args, name);
	/* The kernel keeps names that are longer than a task's name, too: ps shows them. */
	vsnprintf(full, sizeof(full), name, args);
	va_end(args);
	task = kthread_create_on_node(run, data, cpu < 0 ? NUMA_NO_NODE : cpu_to_node(cpu), "%s",
				      full);
	if (IS_ERR(task))
		return NULL;
	kthread_park(task);
	return task;
}

void mtftl_thread_hurries(void)
{
	const struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_NORMAL,
		/* Other threads of normal priority keep a tenth of its CPU. */
		.sched_nice = -10,
		/* The task that runs keeps its slice, except from those whose slice is shorter. */
		.sched_runtime = 100 * NSEC_PER_USEC,
	};

	sched_setattr_nocheck(current, &attr);
}

/* Threads of ours stay off CPUs that the administrator isolates (isolcpus, nohz_full). */
static bool is_isolated(unsigned int cpu)
{
	return !housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN) ||
	       !housekeeping_test_cpu(cpu, HK_TYPE_TICK);
}

void mtftl_thread_cpus(struct cpumask *cpus)
{
	unsigned int cpu;

	cpumask_clear(cpus);
	for_each_online_cpu(cpu)
		if (!is_isolated(cpu))
			cpumask_set_cpu(cpu, cpus);
	if (cpumask_empty(cpus))
		cpumask_copy(cpus, cpu_online_mask);
}

static unsigned int count_cpus(void)
{
	unsigned int cpu, nr = 0;

	for_each_online_cpu(cpu)
		nr += !is_isolated(cpu);
	return nr;
}

unsigned int mtftl_thread_nr_cpus(void)
{
	return count_cpus() ?: num_online_cpus();
}

unsigned int mtftl_thread_next_cpu(int cpu)
{
	unsigned int i, nr = num_online_cpus();
	bool any = !count_cpus();

	/* CPUs may go offline meanwhile. */
	for (i = 0; i < nr; i++) {
		cpu = cpumask_next(cpu, cpu_online_mask);
		if ((unsigned int)cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		if (any || !is_isolated(cpu))
			break;
	}
	return cpu;
}
