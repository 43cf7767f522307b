// SPDX-License-Identifier: GPL-2.0
/*
 * Holds GC between its look at the map and its unit's way to the device: a test helper, never part
 * of a product. The first mover that takes a place for its unit waits there, in its own context,
 * until somebody writes to the parameter "go". "held" says when it does.
 */
#include <linux/completion.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

static bool held;
static atomic_t came;
static DECLARE_COMPLETION(release);
static void (*take_place)(void *unit, void *stream);

static int go_set(const char *value, const struct kernel_param *param)
{
	complete_all(&release);
	return 0;
}

static const struct kernel_param_ops go_ops = { .set = go_set };

module_param(held, bool, 0444);
module_param_cb(go, &go_ops, NULL, 0200);

/* Instead of the function, which it calls then. */
static void wait_first(void *unit, void *stream)
{
	WRITE_ONCE(held, true);
	wait_for_completion(&release);
	take_place(unit, stream);
}

static int enter(struct kprobe *probe, struct pt_regs *regs)
{
	if (strncmp(current->comm, "mtftl_gc/", 9) || atomic_xchg(&came, 1))
		return 0;
	instruction_pointer_set(regs, (unsigned long)wait_first);
	return 1;
}

/* With one the probe may change where the call goes. */
static void left(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe probe = {
	.symbol_name = "mtftl_unit_take_place",
	.pre_handler = enter,
	.post_handler = left,
};

static int __init holdgc_init(void)
{
	int r = register_kprobe(&probe);

	take_place = (void *)probe.addr;
	return r;
}

module_init(holdgc_init);
MODULE_DESCRIPTION("Holds GC before it writes, for crash tests");
MODULE_LICENSE("GPL");
