// SPDX-License-Identifier: GPL-2.0
/*
 * Holds the thread that comes to a place in the target: a test helper, never part of a product.
 * The parameter "what" names places, with commas in between; "held" those to which a thread came.
 * The table says what becomes of it until the place's name is written to "go". "asked" is how many
 * flushes of the device were requested.
 */
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>

enum {
	GC, FLUSH, REDO, SUBMIT, READ_PART, PLACE, DISCARD, STARVE, RESET, LOAD, SCAN, SORT, FIRST,
	LATE, LANDED, ERASE, NOWHERE, PRESUSPEND, UNDO, THREADS, WAKE, PROBE, FULL, CLOSE, LIST,
	OWN, HELP, WRITTEN, ERASED,
	NR_PLACES
};

struct place {
	const char *what, *symbol;
	const char *who;	/* comm begins so */
	const char *caller;	/* NULL: any */
	void *instead;		/* of the function */
	bool all;		/* that come until then, not the first one alone */
	int passed;		/* how many callers are let through first */
	bool watched;
	atomic_t came;
	struct completion release;
	struct kprobe probe;
};

static struct place places[NR_PLACES];
static int asked;

static void hold(int place)
{
	wait_for_completion(&places[place].release);
}

static void *original(int place)
{
	return places[place].probe.addr;
}

/* Instead of functions: they are called then. */

static void take_place_later(void *unit, void *stream)
{
	void (*take_place)(void *unit, void *stream) = original(GC);

	hold(GC);
	take_place(unit, stream);
}

static void *find_later(void *ftl, const void *want, u32 *room)
{
	void *(*find)(void *ftl, const void *want, u32 *room) = original(REDO);

	hold(REDO);
	return find(ftl, want, room);
}

static void submit_later(void *unit)
{
	void (*submit)(void *unit) = original(SUBMIT);

	hold(SUBMIT);
	submit(unit);
}

static void accept_later(void *bio, unsigned int sectors)
{
	void (*accept)(void *bio, unsigned int sectors) = original(READ_PART);

	hold(READ_PART);
	accept(bio, sectors);
}

static unsigned long lock_later(raw_spinlock_t *lock)
{
	unsigned long (*lock_irqsave)(raw_spinlock_t *lock) = original(DISCARD);

	hold(DISCARD);
	return lock_irqsave(lock);
}

static int step_later(int place, void *rec)
{
	int (*step)(void *rec) = original(place);

	hold(place);
	return step(rec);
}

static int load_later(void *ftl)
{
	return step_later(LOAD, ftl);
}

static int read_later(void *scanner, void *zone, u32 at, void *header, void *info)
{
	int (*read)(void *scanner, void *zone, u32 at, void *header, void *info) = original(SCAN);

	hold(SCAN);
	return read(scanner, zone, at, header, info);
}

static int sort_later(void *finds)
{
	return step_later(SORT, finds);
}

static int checkpoint_later(void *ftl)
{
	return step_later(FIRST, ftl);
}

/*
 * Complete as threaded drivers do. With preempt=full an RCU reader may be preempted, but not sleep.
 */
static void *late_bio;
static struct task_struct *late_thread;

static int complete_late(void *unused)
{
	void (*endio)(void *bio) = original(LATE);

	wait_for_completion(&places[LATE].release);
	if (late_bio)
		endio(late_bio);
	while (!kthread_should_stop())
		schedule_timeout_idle(1);
	return 0;
}

static void end_in_a_thread(void *bio)
{
	late_bio = bio;
	complete_all(&places[LATE].release);
}

static void wake_later(void *ftl)
{
	void (*wake)(void *ftl) = original(LANDED);

	while (!completion_done(&places[LANDED].release))
		cpu_relax();
	wake(ftl);
}

/* With one argument more than newer kernels have. */
static int erase_later(void *bdev, int op, sector_t sector, sector_t nr_sectors, gfp_t gfp)
{
	int (*mgmt)(void *bdev, int op, sector_t sector, sector_t nr_sectors,
		    gfp_t gfp) = original(ERASE);

	hold(ERASE);
	return mgmt(bdev, op, sector, nr_sectors, gfp);
}

static void presuspend_slowly(void *ti)
{
	void (*presuspend)(void *ti) = original(PRESUSPEND);

	presuspend(ti);
	hold(PRESUSPEND);
}

static void undo_later(void *ti)
{
	void (*undo)(void *ti) = original(UNDO);

	hold(UNDO);
	undo(ti);
}

static int alloc_later(void *ftl)
{
	int (*alloc)(void *ftl) = original(THREADS);

	hold(THREADS);
	return alloc(ftl);
}

static int close_later(void *zone, const void *footer, void *buf)
{
	int (*write)(void *zone, const void *footer, void *buf) = original(CLOSE);

	hold(CLOSE);
	return write(zone, footer, buf);
}

static int part_later(void *private, u32 number, void *buf)
{
	int (*part)(void *private, u32 number, void *buf) = original(OWN);

	hold(OWN);
	return part(private, number, buf);
}

/* The detector of hung tasks shall see other threads alone. */
static int help_later(void *private, u32 number, void *buf)
{
	int (*part)(void *private, u32 number, void *buf) = original(HELP);

	while (!completion_done(&places[HELP].release))
		schedule_timeout_idle(1);
	return part(private, number, buf);
}

/* Its caller has a spinlock, so it cannot sleep. */
static void list_later(void *ftl, const void *rec)
{
	void (*add)(void *ftl, const void *rec) = original(LIST);

	mdelay(2000);
	add(ftl, rec);
}

static void work_later(void *work)
{
	void (*run)(void *work) = original(WAKE);

	hold(WAKE);
	run(work);
}

/* The drive does what it is told, and says that it failed. */

static void end_with_an_error(struct bio *bio)
{
	void (*endio)(struct bio *bio) = original(WRITTEN);

	bio->bi_status = BLK_STS_IOERR;
	endio(bio);
}

static int erase_and_fail(void *bdev, int op, sector_t sector, sector_t nr_sectors, gfp_t gfp)
{
	int (*mgmt)(void *bdev, int op, sector_t sector, sector_t nr_sectors,
		    gfp_t gfp) = original(ERASED);

	return mgmt(bdev, op, sector, nr_sectors, gfp) ?: -EIO;
}

/* Instead of functions: they are not called. */

static int fail_a_flush(void)
{
	hold(FLUSH);
	return -EIO;
}

static int fail_a_reset(void)
{
	hold(RESET);
	return -EIO;
}

static void *find_none(void)
{
	return NULL;
}

static int fail_a_probe(void)
{
	return -EIO;
}

static u8 say_full(void)
{
	return BLK_ZONE_COND_FULL;
}

static struct place places[] = {
	/* A mover between its look at the map and its unit's way to the device waits. */
	[GC] = { "gc", "mtftl_write_take_place", "mtftl_gc/", NULL, take_place_later },
	/* A worker's flush of the device waits, then fails and never reaches it. */
	[FLUSH] = { "flush", "blkdev_issue_flush", "kworker/", NULL, fail_a_flush },
	/* A unit whose write failed waits before it has another place. */
	[REDO] = { "redo", "mtftl_stream_find", "kworker/", NULL, find_later },
	/* A user's unit waits between the buffers and the device. */
	[SUBMIT] = { "submit", "mtftl_write_submit", "mtftl/", NULL, submit_later },
	/* A scanner of several parts waits between its look at the map and the device. */
	[READ_PART] = { "read", "dm_accept_partial_bio", "dd", NULL, accept_later },
	/* Lanes find no place. */
	[PLACE] = { "place", "mtftl_stream_find", "mtftl/", NULL, find_none, true },
	/* A discard waits before it has the map's lock. */
	[DISCARD] = { "discard", "_raw_spin_lock_irqsave", "blkdiscard", "mtftl_map_discard",
		      lock_later },
	/* Movers find no place. */
	[STARVE] = { "starve", "mtftl_stream_find", "mtftl_gc/", NULL, find_none, true },
	/* Steps of a mount wait: reading the checkpoint and zones, sorting, the first checkpoint. */
	[LOAD] = { "load", "mtftl_checkpoint_load", "dmsetup", NULL, load_later },
	[SCAN] = { "scan", "mtftl_scan_unit", "dmsetup", NULL, read_later },
	[SORT] = { "sort", "mtftl_finds_sort", "dmsetup", NULL, sort_later },
	[FIRST] = { "first", "mtftl_checkpoint_mount", "dmsetup", NULL, checkpoint_later },
	/* A reset waits, then fails for once. */
	[RESET] = { "reset", "mtftl_flush_device", "kworker/", NULL, fail_a_reset },
	/* A unit's completion goes on in a thread. */
	[LATE] = { "late", "unit_endio", "", NULL, end_in_a_thread },
	/* That thread stands still once the unit is no longer in flight. */
	[LANDED] = { "landed", "mtftl_space_wake", "hold", NULL, wake_later },
	/* The device keeps a zone's erase and does not answer. */
	[ERASE] = { "erase", "blkdev_zone_mgmt", "kworker/", NULL, erase_later },
	/* A failed unit finds no new place. */
	[NOWHERE] = { "nowhere", "mtftl_stream_find", "kworker/", NULL, find_none, true },
	/* The process that suspends sleeps before device-mapper holds bios. */
	[PRESUSPEND] = { "presuspend", "mtftl_presuspend", "dmsetup", NULL, presuspend_slowly },
	/* A signal ended a suspend; the target does not know it yet. */
	[UNDO] = { "undo", "mtftl_presuspend_undo", "dmsetup", NULL, undo_later },
	/* The machine woke up after a sleep; the target does not know it yet. */
	[WAKE] = { "wake", "power_work", "kworker/", NULL, work_later, .passed = 1 },
	/* The first reads that ask whether device-mapper holds bios fail. */
	[PROBE] = { "probe", "submit_bio_wait", "kworker/", "is_held", fail_a_probe, true },
	/* The device says that each zone is full. */
	[FULL] = { "full", "mtftl_zone_condition", "kworker/", NULL, say_full, true },
	/* A zone's footer waits before it is written. */
	[CLOSE] = { "close", "mtftl_footer_write", "kworker/", NULL, close_later },
	/* A discard stands still before its record is listed, for two seconds. */
	[LIST] = { "list", "mtftl_range_add", "blkdiscard", NULL, list_later },
	/* The process that mounts waits in its first part of the map, and a helper in its own. */
	[OWN] = { "own", "count_part", "dmsetup", NULL, part_later },
	[HELP] = { "help", "count_part", "kworker/", NULL, help_later },
	/* A unit is written, and a zone erased, and each is said to have failed. */
	[WRITTEN] = { "written", "unit_endio", "", NULL, end_with_an_error },
	[ERASED] = { "erased", "blkdev_zone_mgmt", "kworker/", NULL, erase_and_fail },
	/* The process that loads a table waits before its lanes are made. */
	[THREADS] = { "threads", "mtftl_lanes_alloc", "dmsetup", NULL, alloc_later },
};

static bool is_caller(const struct place *place, struct pt_regs *regs)
{
	char symbol[KSYM_SYMBOL_LEN];

	/* At the function's first instruction. */
	sprint_symbol_no_offset(symbol, *(unsigned long *)kernel_stack_pointer(regs));
	return !strncmp(symbol, place->caller, strlen(place->caller));
}

static int enter(struct kprobe *probe, struct pt_regs *regs)
{
	struct place *place = container_of(probe, struct place, probe);

	if (strncmp(current->comm, place->who, strlen(place->who)) ||
	    (place->caller && !is_caller(place, regs)) || completion_done(&place->release) ||
	    place->passed-- > 0 || (atomic_xchg(&place->came, 1) && !place->all))
		return 0;
	instruction_pointer_set(regs, (unsigned long)place->instead);
	return 1;
}

/* With one the probe may change where the call goes. */
static void left(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static int watch(const char *what, const struct kernel_param *param)
{
	unsigned int i;

	for (i = 0; i < NR_PLACES; i++)
		if (sysfs_streq(what, places[i].what))
			break;
	if (i == NR_PLACES)
		return -EINVAL;
	places[i].watched = true;
	return 0;
}

static int go_set(const char *what, const struct kernel_param *param)
{
	unsigned int i;

	for (i = 0; i < NR_PLACES; i++)
		if (places[i].watched && sysfs_streq(what, places[i].what))
			complete_all(&places[i].release);
	return 0;
}

static int held_get(char *buffer, const struct kernel_param *param)
{
	unsigned int i;
	int n = 0;

	for (i = 0; i < NR_PLACES; i++)
		if (atomic_read(&places[i].came))
			n += sysfs_emit_at(buffer, n, "%s\n", places[i].what);
	return n;
}

static const struct kernel_param_ops watch_ops = { .set = watch };
static const struct kernel_param_ops go_ops = { .set = go_set };
static const struct kernel_param_ops held_ops = { .get = held_get };

module_param_cb(what, &watch_ops, NULL, 0);
module_param_cb(go, &go_ops, NULL, 0200);
module_param_cb(held, &held_ops, NULL, 0444);
module_param(asked, int, 0444);

static int ask(struct kprobe *probe, struct pt_regs *regs)
{
	WRITE_ONCE(asked, asked + 1);
	return 0;
}

static struct kprobe each = { .symbol_name = "mtftl_flush_device", .pre_handler = ask };

static int __init hold_init(void)
{
	unsigned int i;
	int r;

	for (i = 0; i < NR_PLACES; i++) {
		struct place *place = &places[i];

		if (!place->watched)
			continue;
		init_completion(&place->release);
		place->probe.symbol_name = place->symbol;
		place->probe.pre_handler = enter;
		place->probe.post_handler = left;
		r = register_kprobe(&place->probe);
		if (r)
			return r;
	}
	if (places[LATE].watched) {
		late_thread = kthread_run(complete_late, NULL, "hold");
		if (IS_ERR(late_thread))
			return PTR_ERR(late_thread);
	}
	return register_kprobe(&each);
}

module_init(hold_init);
MODULE_DESCRIPTION("Holds threads that come to a place in the target, for tests");
MODULE_LICENSE("GPL");
