// SPDX-License-Identifier: GPL-2.0
/*
 * dm-mtftl: the side that device-mapper sees. Bios, suspend and resume. The only file that knows
 * the rules of device-mapper's calls.
 *
 * The constructor only looks: while it runs an older table may be writing to the same
 * device. Mounting happens before the first resume. A stop happens after each suspend, before a
 * reboot and at the latest when the target goes.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "device/bio.h"
#include "device/limits.h"
#include "device/seq.h"
#include "dm/stats.h"
#include "dm/target.h"
#include "dm/version.h"
#include "durable/flush.h"
#include "gc/gc.h"
#include "io/discard.h"
#include "io/lane.h"
#include "io/read.h"
#include "map/pending.h"
#include "zone/super.h"

#define MAX_DISCARD_BLOCKS	(64u << MTFTL_CHUNK_SHIFT)

static void mtftl_dtr(struct dm_target *ti)
{
	struct mtftl_target *target = ti->private;
	struct mtftl *ftl = &target->ftl;

	mutex_lock(&target->life);
	mtftl_quiesce(target, true);
	if (target->prepared)
		mtftl_unmount(target);
	mutex_unlock(&target->life);
	mtftl_power_forget(target);
	cancel_delayed_work_sync(&target->news);
	mtftl_super_free(ftl);
	mtftl_seq_free(ftl);
	mtftl_device_close(ftl, ti);
	free_page((unsigned long)target->probe);
	mtftl_target_put(target);
}

/*
 * Device-mapper begins to hold bios some time after presuspend() and does not say when. A read with
 * REQ_NOWAIT tells: before, device-mapper sends it to us; from then on it fails the read with
 * EAGAIN. If the drive below does not take REQ_NOWAIT, no bio has it, so none can fail for it. Any
 * other error says nothing.
 */
static bool is_held(struct mtftl_target *target)
{
	struct bio_vec vec;
	struct bio bio;
	int r;

	bio_init(&bio, dm_disk(target->md)->part0, &vec, 1, REQ_OP_READ | REQ_NOWAIT);
	__bio_add_page(&bio, virt_to_page(target->probe), MTFTL_BLOCK_SIZE, 0);
	r = submit_bio_wait(&bio);
	bio_uninit(&bio);
	return r == -EAGAIN || r == -EOPNOTSUPP;
}

static bool is_probe(const struct mtftl_target *target, const struct bio *bio)
{
	return unlikely(READ_ONCE(target->suspending)) &&
	       bio_page(bio) == virt_to_page(target->probe);
}

/*
 * If a suspend is without flush, the device may hang: bios that wait for it go back, and come
 * again. They go back only when device-mapper holds bios: until then it would send them again at
 * once, by a worker. If it begins to hold them meanwhile, it fails those with REQ_NOWAIT, and not
 * every caller tries again (io_uring does for its own thread only). A suspend that was interrupted
 * gives nothing back.
 */
static void give_back(struct work_struct *work)
{
	struct mtftl_target *target = container_of(work, struct mtftl_target, give_back);

	while (!is_held(target)) {
		if (!dm_noflush_suspending(target->ti))
			return;
		usleep_range(20, 50);
	}
	if (!dm_noflush_suspending(target->ti))
		return;
	mtftl_device_give_back(&target->ftl, true);
	/* A thread that takes a list's lock from here on sees it. */
	mtftl_lanes_give_back(&target->ftl);
	mtftl_pending_give_back(&target->ftl);
}

/* A program that waits for events reads the status line then: once a second is enough. */
static void tell_news(struct work_struct *work)
{
	struct mtftl_target *target = container_of(work, struct mtftl_target, news.work);

	WRITE_ONCE(target->told, jiffies);
	dm_table_event(target->ti->table);
}

static void news(struct mtftl *ftl)
{
	struct mtftl_target *target = container_of(ftl, struct mtftl_target, ftl);
	unsigned long next = READ_ONCE(target->told) + HZ, now = jiffies;

	WRITE_ONCE(target->origin.changed, ktime_get_boottime_seconds());
	schedule_delayed_work(&target->news, time_before(now, next) ? next - now : 0);
}

static int mtftl_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct mtftl_target *target;
	struct mtftl *ftl;
	int r;

	if (!argc) {
		ti->error = "Expected <device> [<number of words> {<option> <value>}]";
		return -EINVAL;
	}
	target = kzalloc_obj(*target, GFP_KERNEL);
	if (!target) {
		ti->error = "Out of memory";
		return -ENOMEM;
	}
	ti->private = target;
	target->ti = ti;
	ftl = &target->ftl;
	mutex_init(&target->life);
	INIT_WORK(&target->give_back, give_back);
	INIT_DELAYED_WORK(&target->news, tell_news);
	target->told = jiffies - HZ;
	mtftl_power_init_target(target);
	r = mtftl_device_open(ftl, ti, argv[0]);
	if (r)
		goto bad;
	mtftl_on_news(ftl, news);
	target->probe = (void *)__get_free_page(GFP_KERNEL);
	r = target->probe ? mtftl_seq_alloc(ftl) : -ENOMEM;
	r = r ?: mtftl_super_alloc(ftl);
	if (r) {
		ti->error = "Out of memory";
		goto bad;
	}
	r = mtftl_table_parse(target, argc - 1, argv + 1);
	r = r ?: mtftl_table_check_device(target);
	r = r ?: mtftl_table_check_super(target);
	r = r ?: mtftl_table_fit(target);
	r = r ?: dm_set_target_max_io_len(ti, MAX_DISCARD_BLOCKS * MTFTL_BLOCK_SECTORS);
	if (r)
		goto bad;
	r = mtftl_prepare(target);
	if (r) {
		ti->error = r == -EINTR ? "Interrupted by a signal" : "Out of memory";
		goto bad;
	}

	ti->per_io_data_size = sizeof(struct mtftl_bio);
	ti->num_flush_bios = 1;
	ti->num_discard_bios = 1;
	ti->num_write_zeroes_bios = 1;
	ti->flush_supported = true;
	ti->discards_supported = true;
	return 0;
bad:
	mtftl_dtr(ti);
	return r;
}

/*
 * Does not sleep with REQ_NOWAIT: a write that finds no room waits in its lane's list, as it would
 * in a device's queue. A read keeps the flag: where the device has no request left, it says so.
 */
static int mtftl_map(struct dm_target *ti, struct bio *bio)
{
	struct mtftl_target *target = ti->private;
	struct mtftl *ftl = &target->ftl;

	if (bio->bi_opf & REQ_PREFLUSH) {
		/* Always empty here: device-mapper takes the data apart. */
		mtftl_flush(ftl, bio);
		return DM_MAPIO_SUBMITTED;
	}
	switch (bio_op(bio)) {
	case REQ_OP_READ:
		if (!is_probe(target, bio))
			return mtftl_read(ftl, bio);
		mtftl_bio(bio)->reads = false;
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	case REQ_OP_WRITE:
		mtftl_lane_write(ftl, bio);
		return DM_MAPIO_SUBMITTED;
	case REQ_OP_DISCARD:
	case REQ_OP_WRITE_ZEROES:
		mtftl_discard(ftl, bio);
		return DM_MAPIO_SUBMITTED;
	default:
		bio->bi_status = BLK_STS_NOTSUPP;
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	}
}

static int mtftl_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct mtftl_target *target = ti->private;

	if (bio_op(bio) == REQ_OP_READ)
		mtftl_read_end(&target->ftl, bio, *error);
	return DM_ENDIO_DONE;
}

static int mtftl_preresume(struct dm_target *ti)
{
	struct mtftl_target *target = ti->private;
	unsigned int flags = memalloc_noio_save();
	int r = 0;

	mutex_lock(&target->life);
	target->suspended = false;
	WRITE_ONCE(target->suspending, false);
	mtftl_device_give_back(&target->ftl, false);
	if (target->mounted) {
		r = mtftl_resume(target);
		/* On an error device-mapper leaves it suspended. */
		target->suspended = r;
		WRITE_ONCE(target->suspending, r);
	} else {
		r = mtftl_claim(target);
		/* What the constructor read may be older than what the others wrote. */
		r = r ?: mtftl_table_check_super(target);
		/* It may have been formatted meanwhile, and may be another table's drive by now. */
		r = r ?: mtftl_claim(target);
		r = r ?: mtftl_mount(target);
		if (r)
			mtftl_disclaim(target);
	}
	mutex_unlock(&target->life);
	memalloc_noio_restore(flags);
	return r;
}

static void mtftl_presuspend(struct dm_target *ti)
{
	struct mtftl_target *target = ti->private;

	target->noflush = dm_noflush_suspending(ti);
	/* Before device-mapper waits for messages. Pairs with mtftl_target_message(). */
	smp_store_release(&target->suspending, true);
	if (!target->noflush || !target->mounted)
		return;
	mtftl_power_queue(&target->give_back);
}

static void mtftl_presuspend_undo(struct dm_target *ti)
{
	struct mtftl_target *target = ti->private;

	cancel_work_sync(&target->give_back);
	mtftl_device_give_back(&target->ftl, false);
	WRITE_ONCE(target->suspending, false);
}

/* Every bio is answered. Without flush all is kept in memory. Nothing is sent until the resume. */
static void mtftl_postsuspend(struct dm_target *ti)
{
	struct mtftl_target *target = ti->private;

	cancel_work_sync(&target->give_back);
	mutex_lock(&target->life);
	target->suspended = true;
	if (!target->noflush)
		mtftl_quiesce(target, true);
	if (target->mounted)
		mtftl_pause(target);
	mutex_unlock(&target->life);
}

static void mtftl_status_line(struct dm_target *ti, status_type_t type, unsigned int flags,
			      char *result, unsigned int maxlen)
{
	struct mtftl_target *target = ti->private;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		if (target->mounted)
			mtftl_status(&target->ftl, &target->origin, result, maxlen);
		else
			DMEMIT("not mounted");
		break;
	case STATUSTYPE_TABLE:
		mtftl_table_print(&target->ftl, result, maxlen);
		break;
	case STATUSTYPE_IMA:
		mtftl_table_measure(target, result, maxlen);
		break;
	}
}

static int mtftl_target_message(struct dm_target *ti, unsigned int argc, char **argv,
				char *result, unsigned int maxlen)
{
	struct mtftl_target *target = ti->private;

	if (!target->mounted)
		return -EINVAL;
	/*
	 * Nothing may be sent now. A message that waited for the resume would block the reload that
	 * resumes. Messages that came before are waited for. Pairs with mtftl_presuspend().
	 */
	if (smp_load_acquire(&target->suspending) && mtftl_message_sends(argv[0]))
		return -EBUSY;
	return mtftl_message(&target->ftl, &target->origin, argc, argv, result, maxlen);
}

static void mtftl_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	limits->logical_block_size = MTFTL_BLOCK_SIZE;
	limits->physical_block_size = MTFTL_BLOCK_SIZE;
	limits->io_min = MTFTL_BLOCK_SIZE;
	limits->io_opt = 0;
	/* Else bios are split at the borders of zones, which users do not see any more. */
	limits->chunk_sectors = 0;
	limits->discard_granularity = MTFTL_BLOCK_SIZE;
	mtftl_limits_write_zeroes(limits, MAX_DISCARD_BLOCKS * MTFTL_BLOCK_SECTORS);
	mtftl_limits_discard(limits, MAX_DISCARD_BLOCKS * MTFTL_BLOCK_SECTORS);
	mtftl_limits_not_zoned(limits);
	mtftl_limits_aligned(limits);
}

static int mtftl_iterate_devices(struct dm_target *ti, iterate_devices_callout_fn fn, void *data)
{
	struct mtftl_target *target = ti->private;

	return mtftl_device_iterate(&target->ftl, fn, data);
}

static struct target_type mtftl_target = {
	.name = "mtftl",
	.version = { MTFTL_TARGET_MAJOR, MTFTL_TARGET_MINOR, MTFTL_TARGET_PATCH },
	.features = DM_TARGET_SINGLETON | DM_TARGET_MIXED_ZONED_MODEL | DM_TARGET_NOWAIT |
		    DM_TARGET_INTEGRITY,	/* the device's metadata is not the user's */
	.module = THIS_MODULE,
	.ctr = mtftl_ctr,
	.dtr = mtftl_dtr,
	.map = mtftl_map,
	.end_io = mtftl_end_io,
	.preresume = mtftl_preresume,
	.presuspend = mtftl_presuspend,
	.presuspend_undo = mtftl_presuspend_undo,
	.postsuspend = mtftl_postsuspend,
	.status = mtftl_status_line,
	.message = mtftl_target_message,
	.io_hints = mtftl_io_hints,
	.iterate_devices = mtftl_iterate_devices,
};

static int __init mtftl_init(void)
{
	int r = mtftl_lanes_init();

	if (r)
		return r;
	r = mtftl_power_init();
	if (r)
		goto no_machine;
	r = dm_register_target(&mtftl_target);
	if (r)
		goto no_target;
	return 0;
no_target:
	mtftl_power_exit();
no_machine:
	mtftl_lanes_exit();
	return r;
}

static void __exit mtftl_exit(void)
{
	dm_unregister_target(&mtftl_target);
	mtftl_power_exit();
	mtftl_lanes_exit();
}

module_init(mtftl_init);
module_exit(mtftl_exit);
MODULE_DESCRIPTION("Multi-threaded flash translation layer on a zoned device");
MODULE_LICENSE("GPL");
