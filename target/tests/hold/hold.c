// SPDX-License-Identifier: GPL-2.0
/*
 * Holds who comes first to a place in the target: a test helper, never part of a product. He waits there,
 * in his own context, until somebody writes to the parameter "go". "held" says when he does.
 *
 * what=gc: a mover between its look at the map and its unit's way to the device. what=flush: a worker's
 * flush of the device, which then fails and never reaches it; "asked" is how many were asked for.
 */
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

static char *what;
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

module_param(what, charp, 0444);
module_param(held, bool, 0444);
module_param(asked, int, 0444);
module_param_cb(go, &go_ops, NULL, 0200);

static void hold(void)
{
	WRITE_ONCE(held, true);
	wait_for_completion(&release);
}

static void (*take_place)(void *unit, void *stream);

/* Instead of the function, which it calls then. */
static void take_place_later(void *unit, void *stream)
{
	hold();
	take_place(unit, stream);
}

/* Instead of the function. */
static int fail_later(struct block_device *bdev)
{
	hold();
	return -EIO;
}

static const struct place {
	const char *what, *symbol, *who;	/* comm begins so */
	void *instead;
} places[] = {
	{ "gc", "mtftl_unit_take_place", "mtftl_gc/", take_place_later },
	{ "flush", "blkdev_issue_flush", "kworker/", fail_later },
}, *place;

static int enter(struct kprobe *probe, struct pt_regs *regs)
{
	if (strncmp(current->comm, place->who, strlen(place->who)) || atomic_xchg(&came, 1))
		return 0;
	instruction_pointer_set(regs, (unsigned long)place->instead);
	return 1;
}

/* With one the probe may change where the call goes. */
static void left(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static int ask(struct kprobe *probe, struct pt_regs *regs)
{
	WRITE_ONCE(asked, asked + 1);
	return 0;
}

static struct kprobe first = { .pre_handler = enter, .post_handler = left };
static struct kprobe each = { .symbol_name = "mtftl_flush_device", .pre_handler = ask };

static int __init hold_init(void)
{
	unsigned int i;
	int r;

	for (i = 0; what && i < ARRAY_SIZE(places); i++)
		if (!strcmp(what, places[i].what))
			place = &places[i];
	if (!place)
		return -EINVAL;
	first.symbol_name = place->symbol;
	r = register_kprobe(&first);
	if (r)
		return r;
	take_place = (void *)first.addr;
	return register_kprobe(&each);
}

module_init(hold_init);
MODULE_DESCRIPTION("Holds GC, or a flush, for tests");
MODULE_LICENSE("GPL");
