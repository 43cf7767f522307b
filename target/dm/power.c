// SPDX-License-Identifier: GPL-2.0
/*
 * Which table has which drive, and what happens to the machine: see target.h. A stop drains,
 * checkpoints and says clean; it happens when another table takes over, before a reboot, and before
 * hibernation.
 *
 * A table is listed from before its first write until after its last one. If two tables reach the
 * same drive, one of them has to wait, or is refused. mounts_lock protects the list, but is not
 * held across I/O.
 */
#include <linux/platform_device.h>
#include <linux/reboot.h>
#include <linux/slab.h>
#include <linux/suspend.h>

#include "dm/target.h"
#include "zone/super.h"

#define WORKS_WAIT	(60 * HZ)	/* for devices that hang */
#define WAKE_AGAIN	HZ		/* until a log can be read */

static LIST_HEAD(mounts);
static DEFINE_MUTEX(mounts_lock);	/* mounts, and what works do */
static struct workqueue_struct *wq;	/* for targets whose own queues may be waiting for it */
static atomic_t works;			/* that tell_all() waits for */
static DECLARE_WAIT_QUEUE_HEAD(works_wait);

/* Compare the block device and the UUID: a table may reach a drive through other devices. */
static bool on_same_drive(const struct mtftl_target *a, const struct mtftl_target *b)
{
	return mtftl_bdev(&a->ftl) == mtftl_bdev(&b->ftl) ||
	       !memcmp(a->uuid, b->uuid, sizeof(a->uuid));
}

static void say_why(const struct mtftl_target *target, const struct mtftl_target *other)
{
	if (mtftl_bdev(&other->ftl) == mtftl_bdev(&target->ftl))
		mtftl_err(&target->ftl,
			  "in use by another mtftl device, expected one for each device");
	else
		mtftl_err(&target->ftl,
			  "has the same superblock as %s, which another mtftl device uses, expected one for each drive",
			  mtftl_device_name(&other->ftl));
}

/* Fails if another mtftl device has the drive, or if its destructor still writes to it. */
static int claim(struct mtftl_target *target)
{
	struct mtftl_target *other;
	int r = 0;

	mutex_lock(&mounts_lock);
	memcpy(target->uuid, mtftl_super_info(&target->ftl)->uuid, sizeof(target->uuid));
	list_for_each_entry(other, &mounts, claimed) {
		if (other->md == target->md || READ_ONCE(other->handed_over) ||
		    !on_same_drive(other, target))
			continue;
		say_why(target, other);
		r = -EBUSY;
		break;
	}
	if (!r && list_empty(&target->claimed))
		list_add(&target->claimed, &mounts);
	mutex_unlock(&mounts_lock);
	return r;
}

void mtftl_disclaim(struct mtftl_target *target)
{
	mutex_lock(&mounts_lock);
	list_del_init(&target->claimed);
	mutex_unlock(&mounts_lock);
}

static void target_free(struct kref *refs)
{
	kfree(container_of(refs, struct mtftl_target, refs));
}

void mtftl_target_put(struct mtftl_target *target)
{
	kref_put(&target->refs, target_free);
}

/* The table of the same name, with a reference: its destructor may run, and end, meanwhile. */
static struct mtftl_target *predecessor(struct mtftl_target *target)
{
	struct mtftl_target *other, *found = NULL;

	mutex_lock(&mounts_lock);
	list_for_each_entry(other, &mounts, claimed) {
		if (other == target || other->md != target->md ||
		    READ_ONCE(other->handed_over) || !on_same_drive(other, target))
			continue;
		kref_get(&other->refs);
		found = other;
		break;
	}
	mutex_unlock(&mounts_lock);
	return found;
}

/*
 * The table that this one replaces still holds what is not on flash: it stops first, and for good.
 * Device-mapper destroys it before or after that. Its destructor holds life until it is unmounted.
 */
int mtftl_claim(struct mtftl_target *target)
{
	struct mtftl_target *other;
	int r = claim(target);

	while (!r && (other = predecessor(target))) {
		/* A table's own first, then that of the one before: never the other way round. */
		mutex_lock_nested(&other->life, SINGLE_DEPTH_NESTING);
		r = mtftl_quiesce(other, true);
		if (!r)
			WRITE_ONCE(other->handed_over, true);
		mutex_unlock(&other->life);
		mtftl_target_put(other);
	}
	return r;
}

static void work_ended(void)
{
	if (atomic_dec_and_test(&works))
		wake_up_all(&works_wait);
}

/*
 * What happens to the machine. Before a reboot users may go on until it stops: what they write
 * must be looked for. What wakes up from hibernation has the map of when the image was taken, so
 * nothing may be written from then on, also not while the image is. The time to stop is when users
 * are frozen and devices are not yet: that is when drivers prepare.
 */
static enum {
	MACHINE_REBOOTS,
	MACHINE_HIBERNATES,
	MACHINE_WOKE_UP,
} machine;			/* what works do: one thing at a time */
static bool hibernating;	/* from before users are frozen to after they are thawed */

static void resume_target(struct mtftl_target *target)
{
	if (mtftl_resume(target))
		queue_delayed_work(wq, &target->wake, WAKE_AGAIN);
}

static void wake_work(struct work_struct *work)
{
	struct mtftl_target *target = container_of(work, struct mtftl_target, wake.work);

	mutex_lock(&target->life);
	/* A suspended device goes on at its resume. */
	if (target->mounted && !target->handed_over)
		resume_target(target);
	mutex_unlock(&target->life);
}

static void power_work(struct work_struct *work)
{
	struct mtftl_target *target = container_of(work, struct mtftl_target, power_work);

	mutex_lock(&target->life);
	if (!target->mounted || target->handed_over)
		goto out;
	switch (machine) {
	case MACHINE_REBOOTS:
		/* A frozen device is in a hibernation image, which must match the drive. */
		if (!target->frozen)
			mtftl_quiesce(target, false);
		break;
	case MACHINE_HIBERNATES:
		if (target->frozen)
			break;
		if (!target->suspended)
			mtftl_quiesce(target, true);
		mtftl_pause(target);
		target->frozen = true;
		break;
	case MACHINE_WOKE_UP:
		mtftl_thaw(target);
		resume_target(target);
		break;
	}
out:
	mutex_unlock(&target->life);
	work_ended();
}

void mtftl_power_init_target(struct mtftl_target *target)
{
	kref_init(&target->refs);
	target->md = dm_table_get_md(target->ti->table);
	INIT_LIST_HEAD(&target->claimed);
	INIT_WORK(&target->power_work, power_work);
	INIT_DELAYED_WORK(&target->wake, wake_work);
}

void mtftl_power_forget(struct mtftl_target *target)
{
	/* It has stopped, so the next table may write. */
	mtftl_disclaim(target);
	if (cancel_work_sync(&target->power_work))
		work_ended();
	cancel_delayed_work_sync(&target->wake);
}

bool mtftl_power_queue(struct work_struct *work)
{
	return queue_work(wq, work);
}

/* All at once: a device that hangs keeps no other waiting. */
static int tell_all(int what)
{
	struct mtftl_target *target;

	mutex_lock(&mounts_lock);
	machine = what;
	list_for_each_entry(target, &mounts, claimed) {
		atomic_inc(&works);
		if (!mtftl_power_queue(&target->power_work))
			atomic_dec(&works);
	}
	mutex_unlock(&mounts_lock);
	if (wait_event_timeout(works_wait, !atomic_read(&works), WORKS_WAIT))
		return 0;
	DMERR("a device does not answer");
	return -EBUSY;
}

static int reboot_event(struct notifier_block *nb, unsigned long event, void *data)
{
	tell_all(MACHINE_REBOOTS);
	return NOTIFY_DONE;
}

static int pm_event(struct notifier_block *nb, unsigned long event, void *data)
{
	if (event == PM_HIBERNATION_PREPARE)
		hibernating = true;
	if (event == PM_POST_HIBERNATION) {
		hibernating = false;
		tell_all(MACHINE_WOKE_UP);
	}
	return NOTIFY_DONE;
}

static int pm_prepare(struct device *dev)
{
	return hibernating ? tell_all(MACHINE_HIBERNATES) : 0;
}

static struct notifier_block reboot_notifier = {
	.notifier_call = reboot_event,
};

static struct notifier_block pm_notifier = {
	.notifier_call = pm_event,
};

static const struct dev_pm_ops pm_ops = {
	.prepare = pm_prepare,
};

static struct platform_driver pm_driver = {
	.driver = {
		.name = "dm-mtftl",
		.pm = &pm_ops,
	},
};

static struct platform_device *pm_device;

static int __init pm_init(void)
{
	int r = platform_driver_register(&pm_driver);

	if (r)
		return r;
	pm_device = platform_device_register_simple("dm-mtftl", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(pm_device)) {
		platform_driver_unregister(&pm_driver);
		return PTR_ERR(pm_device);
	}
	r = register_pm_notifier(&pm_notifier);
	if (!r)
		return 0;
	platform_device_unregister(pm_device);
	platform_driver_unregister(&pm_driver);
	return r;
}

static void pm_exit(void)
{
	unregister_pm_notifier(&pm_notifier);
	platform_device_unregister(pm_device);
	platform_driver_unregister(&pm_driver);
}

int __init mtftl_power_init(void)
{
	int r;

	/* No worker can be created while memory waits for a suspended device. */
	wq = alloc_workqueue("mtftl", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!wq)
		return -ENOMEM;
	r = pm_init();
	if (r)
		goto no_pm;
	r = register_reboot_notifier(&reboot_notifier);
	if (r)
		goto no_notifier;
	return 0;
no_notifier:
	pm_exit();
no_pm:
	destroy_workqueue(wq);
	return r;
}

void mtftl_power_exit(void)
{
	unregister_reboot_notifier(&reboot_notifier);
	pm_exit();
	destroy_workqueue(wq);
}
