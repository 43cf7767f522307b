// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that are made ahead of time: see thread.h.
 */
#include "thread.h"

#include <linux/topology.h>

struct task_struct *mtftl_thread(int (*run)(void *data), void *data, int cpu, const char *name, ...)
{
	struct task_struct *task;
	char full[TASK_COMM_LEN];
	va_list args;

	va_start(args, name);
	vsnprintf(full, sizeof(full), name, args);
	va_end(args);
	task = kthread_create_on_node(run, data, cpu < 0 ? NUMA_NO_NODE : cpu_to_node(cpu), "%s",
				      full);
	if (IS_ERR(task))
		return NULL;
	kthread_park(task);
	return task;
}
