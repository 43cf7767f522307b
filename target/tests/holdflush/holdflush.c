// SPDX-License-Identifier: GPL-2.0
/*
 * Holds a flush of the device, and fails it then: a test helper, never part of a product. The first one
 * that a worker sends waits there, in its own context, until somebody writes to the parameter "go",
 * and never reaches the device. "held" says when it does, "asked" how many were asked for.
 */
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

static bool held;
static int asked;
static atomic_t came;
static DECLARE_COMPLETION(release);

static int go_set(const char *value, const struct kernel_param *param)
{
	complete_all(&release);
	return 0;
}

static const struct kernel_param_ops go_ops = { .set = go_set };

module_param(held, bool, 0444);
module_param(asked, int, 0444);
module_param_cb(go, &go_ops, NULL, 0200);

/* Instead of the function. */
static int fail_later(struct block_device *bdev)
{
	WRITE_ONCE(held, true);
	wait_for_completion(&release);
	return -EIO;
}

static int enter(struct kprobe *probe, struct pt_regs *regs)
{
	if (strncmp(current->comm, "kworker/", 8) || atomic_xchg(&came, 1))
		return 0;
	instruction_pointer_set(regs, (unsigned long)fail_later);
	return 1;
}

static int ask(struct kprobe *probe, struct pt_regs *regs)
{
	WRITE_ONCE(asked, asked + 1);
	return 0;
}

/* With one the probe may change where the call goes. */
static void left(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe sent = {
	.symbol_name = "blkdev_issue_flush",
	.pre_handler = enter,
	.post_handler = left,
};

static struct kprobe wanted = {
	.symbol_name = "mtftl_flush_device",
	.pre_handler = ask,
};

static int __init holdflush_init(void)
{
	int r = register_kprobe(&sent);

	return r ?: register_kprobe(&wanted);
}

module_init(holdflush_init);
MODULE_DESCRIPTION("Holds and fails a flush of a device, for tests");
MODULE_LICENSE("GPL");
