// SPDX-License-Identifier: GPL-2.0
/*
 * Lets a thread stand still at a point in the target: a test helper, never part of a product. If
 * "POINT MS" is written to the parameter "at", the next thread that comes to the point stays there
 * for so many milliseconds, while others go on. A thread that may not sleep keeps its CPU busy, for
 * BUSY_MS at most. "none 0" disarms all points. These are where the target goes from one step to
 * the next, and the locks of the map. A history names them (history.h).
 *
 * Points are armed one at a time; module_param's lock sees to it.
 */
#include <linux/delay.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>

#define BUSY_MS		4u

struct point {
	const char *name, *symbol;
	const char *who;	/* how the name of the thread begins */
	const char *caller;	/* how that of the calling function begins; NULL: any */
	bool after;		/* the function, not before it */
	void *instead;		/* of the function; calls it */
	bool watched;
	atomic_t ms;		/* 0: threads go through */
	unsigned int taken_ms;	/* by the one that came */
	struct kprobe probe;
};

static struct point points[];

static void linger(const struct point *point)
{
	unsigned int ms = READ_ONCE(point->taken_ms);

	if (preemptible() && !rcu_preempt_depth())
		fsleep(ms * USEC_PER_MSEC);
	else
		mdelay(min(ms, BUSY_MS));
}

/* Whatever the function's arguments are, as many as registers hold. */
typedef u64 (*function_t)(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f);

static u64 pass(const struct point *point, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	function_t original = (function_t)point->probe.addr;
	u64 r;

	if (!point->after)
		linger(point);
	r = original(a, b, c, d, e, f);
	if (point->after)
		linger(point);
	return r;
}

#define PASS(n)									\
	static u64 pass_##n(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)		\
	{									\
		return pass(&points[n], a, b, c, d, e, f);			\
	}

PASS(0) PASS(1) PASS(2) PASS(3) PASS(4) PASS(5) PASS(6) PASS(7) PASS(8) PASS(9) PASS(10) PASS(11)
PASS(12) PASS(13) PASS(14) PASS(15)

static struct point points[] = {
	/* A writer looks for a place, takes it, and sends the unit. */
	{ "lane-find", "mtftl_stream_find", "mtftl/", NULL, false, pass_0 },
	{ "lane-take", "mtftl_write_take_place", "mtftl/", NULL, false, pass_1 },
	{ "lane-send", "mtftl_write_submit", "mtftl/", NULL, false, pass_2 },
	{ "gc-find", "mtftl_stream_find", "mtftl_gc/", NULL, false, pass_3 },
	{ "gc-take", "mtftl_write_take_place", "mtftl_gc/", NULL, false, pass_4 },
	{ "gc-send", "mtftl_write_submit", "mtftl_gc/", NULL, false, pass_5 },
	{ "work-find", "mtftl_stream_find", "kworker/", NULL, false, pass_6 },
	{ "work-send", "mtftl_write_submit", "kworker/", NULL, false, pass_7 },
	/* A flush: of all that is buffered, and of the drive. A reset of a zone. */
	{ "sync", "mtftl_flush_sync", "", NULL, false, pass_8 },
	{ "flush", "mtftl_flush_device", "", NULL, false, pass_9 },
	{ "manage", "mtftl_zone_mgmt", "", NULL, false, pass_10 },
	/* A user has looked where a block is, and reads there. */
	{ "user-read", "blk_mq_submit_bio", "torture", NULL, false, pass_11 },
	/* The map's locks: before one is taken, and after it was given back. */
	{ "user-lock", "_raw_spin_lock_irqsave", "torture", "mtftl_map_", false, pass_12 },
	{ "lane-lock", "_raw_spin_lock_irqsave", "mtftl/", "mtftl_map_", false, pass_13 },
	{ "user-unlock", "_raw_spin_unlock_irqrestore", "torture", "mtftl_map_", true, pass_14 },
	{ "copy-unlock", "_raw_spin_unlock_irq", "", "mtftl_map_", true, pass_15 },
};

static bool is_caller(const struct point *point, const struct pt_regs *regs)
{
	char symbol[KSYM_SYMBOL_LEN];

	/* At the function's first instruction. */
	sprint_symbol_no_offset(symbol, *(unsigned long *)kernel_stack_pointer((void *)regs));
	return !strncmp(symbol, point->caller, strlen(point->caller));
}

static int come(struct kprobe *probe, struct pt_regs *regs)
{
	struct point *point = container_of(probe, struct point, probe);
	unsigned int ms = atomic_read(&point->ms);

	/* An interrupt has the name of the thread that it came upon. */
	if (!in_task())
		return 0;
	if (!ms || strncmp(current->comm, point->who, strlen(point->who)) ||
	    (point->caller && !is_caller(point, regs)) ||
	    atomic_cmpxchg(&point->ms, ms, 0) != ms)
		return 0;
	WRITE_ONCE(point->taken_ms, ms);
	instruction_pointer_set(regs, (unsigned long)point->instead);
	return 1;
}

/* With one the probe may change where the call goes. */
static void left(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static int watch(struct point *point)
{
	int r;

	if (point->watched)
		return 0;
	point->probe.symbol_name = point->symbol;
	point->probe.pre_handler = come;
	point->probe.post_handler = left;
	r = register_kprobe(&point->probe);
	point->watched = !r;
	return r;
}

/* From now on threads go through all points. */
static int go_on(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(points); i++)
		atomic_set(&points[i].ms, 0);
	return 0;
}

static int arm(const char *text, const struct kernel_param *param)
{
	unsigned int i, ms;
	char name[16];
	int r;

	if (sscanf(text, "%15s %u", name, &ms) != 2)
		return -EINVAL;
	if (!strcmp(name, "none"))
		return go_on();
	for (i = 0; i < ARRAY_SIZE(points); i++)
		if (!strcmp(name, points[i].name))
			break;
	if (i == ARRAY_SIZE(points))
		return -EINVAL;
	r = watch(&points[i]);
	if (!r)
		atomic_set(&points[i].ms, ms);
	return r;
}

/* A line a point: its name, and for how long the next thread will stay. */
static int tell(char *buffer, const struct kernel_param *param)
{
	unsigned int i;
	int n = 0;

	for (i = 0; i < ARRAY_SIZE(points); i++)
		n += sysfs_emit_at(buffer, n, "%s %u\n", points[i].name,
				   atomic_read(&points[i].ms));
	return n;
}

static const struct kernel_param_ops at_ops = { .set = arm, .get = tell };

module_param_cb(at, &at_ops, NULL, 0600);

static int __init linger_init(void)
{
	return 0;
}

module_init(linger_init);
MODULE_DESCRIPTION("Lets threads stand still at points in the target, for tests");
MODULE_LICENSE("GPL");
