/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One target of device-mapper: a mounted device, and what device-mapper and the machine want of
 * it.
 *
 * target->life is held while one is mounted, stopped or unmounted, for as long as its device may
 * hang: all flags here are under it. One that is claimed is listed in power.c.
 */
#ifndef MTFTL_TARGET_H
#define MTFTL_TARGET_H

#include <linux/kref.h>

#include "device/device.h"
#include "dm/stats.h"

struct mtftl_target {
	struct mtftl ftl;
	struct dm_target *ti;
	struct mapped_device *md;
	struct mutex life;		/* mounted, stopped, unmounted: one at a time */
	bool prepared;			/* all memory and threads are there */
	bool mounted;
	bool handed_over;		/* another table has the device: nothing is written */
	bool noflush;			/* the suspend under way does not wait for the device */
	bool suspended;			/* by device-mapper, which has waited for all bios */
	bool frozen;			/* by a hibernation */
	bool slept;			/* another system may have written; the log tells */
	bool suspending;		/* from presuspend until the resume; no lock */
	void *probe;			/* main.c, like what follows: a page that no user has */
	struct work_struct give_back;
	struct delayed_work news;
	unsigned long told;		/* jiffies of the last event; news */
	struct mtftl_origin origin;	/* of what is told */
	struct list_head claimed;	/* power.c, like what follows */
	u8 uuid[16];			/* of the superblock, for as long as it is claimed */
	struct kref refs;		/* the destructor's, and one of each waiting table */
	struct work_struct power_work;
	struct delayed_work wake;	/* goes on after a sleep, as soon as the log can be read */
};

/* table.c: the table line, and what the device allows of it. ti->error says why not. */
int mtftl_table_parse(struct mtftl_target *target, unsigned int argc, char **argv);
int mtftl_table_check_device(struct mtftl_target *target);
int mtftl_table_check_super(struct mtftl_target *target);
int mtftl_table_fit(struct mtftl_target *target);
void mtftl_table_print(struct mtftl *ftl, char *result, unsigned int maxlen);
/* The same for IMA, which measures it. */
void mtftl_table_measure(struct mtftl_target *target, char *result, unsigned int maxlen);

/* mount.c: set up and tear down. Callers hold life, except the constructor's mtftl_prepare(). */
int mtftl_prepare(struct mtftl_target *target);
int mtftl_mount(struct mtftl_target *target);
void mtftl_unmount(struct mtftl_target *target);
/*
 * Make everything durable, and with @clean say so: nothing is written meanwhile. Durable is enough:
 * without a checkpoint the next mount takes longer, no more.
 */
int mtftl_quiesce(struct mtftl_target *target, bool clean);
/*
 * Nothing is sent from here on. What the drive has may take long, or for ever: it gets 5 seconds.
 */
void mtftl_pause(struct mtftl_target *target);
/*
 * After a pause or a stop, unless it is suspended or frozen. An error that may pass: the pause
 * lasts, and the call may be repeated.
 */
int mtftl_resume(struct mtftl_target *target);
/* The machine has woken up. */
void mtftl_thaw(struct mtftl_target *target);

/* power.c: which table has which device, and what happens to the machine. */
int mtftl_power_init(void);
void mtftl_power_exit(void);
void mtftl_power_init_target(struct mtftl_target *target);
/*
 * The drive is ours from here on, and the table that had it under our name has stopped for good.
 * -EBUSY: a table of another name has it. The superblock must have been read.
 */
int mtftl_claim(struct mtftl_target *target);
void mtftl_disclaim(struct mtftl_target *target);
/* Runs also while memory waits for a device. */
bool mtftl_power_queue(struct work_struct *work);
/* It has stopped for good: no work of its own is left, and others may have the drive. */
void mtftl_power_forget(struct mtftl_target *target);
/* Instead of freeing it. */
void mtftl_target_put(struct mtftl_target *target);

#endif
