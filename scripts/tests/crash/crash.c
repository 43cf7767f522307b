// SPDX-License-Identifier: GPL-2.0
/*
 * Breaks the guest's kernel in the way that its parameter "how" names, when it is loaded. For the
 * tests of how the lab reports a broken guest; runs in process context, holds nothing.
 */
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/string.h>

static char *how = "";
module_param(how, charp, 0);

static DECLARE_COMPLETION(never);

static atomic_t spinning = ATOMIC_INIT(0);

/* With interrupts off. */
static void spin(void *unused)
{
	if (atomic_inc_return(&spinning) == num_online_cpus())
		pr_emerg("crash: all CPUs spin\n");
	for (;;)
		cpu_relax();
}

static int __init crash_init(void)
{
	if (!strcmp(how, "oops"))
		WRITE_ONCE(*(int *)8, 0);
	else if (!strcmp(how, "bug"))
		BUG();
	else if (!strcmp(how, "warning"))
		WARN(1, "crash: as asked\n");
	else if (!strcmp(how, "panic"))
		panic("crash: as asked");
	else if (!strcmp(how, "atomic")) {
		preempt_disable();
		schedule();
		preempt_enable();
	} else if (!strcmp(how, "spin")) {
		on_each_cpu(spin, NULL, 0);
	} else if (!strcmp(how, "block"))
		wait_for_completion(&never);
	return -ECANCELED;
}
module_init(crash_init);

MODULE_DESCRIPTION("Breaks the kernel on purpose");
MODULE_LICENSE("GPL");
