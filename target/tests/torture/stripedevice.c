// SPDX-License-Identifier: GPL-2.0
/*
 * dm-stripe over several dm-mtftl, each on a drive of its own. Spec: the number of drives, which are
 * /dev/nvme0n1, /dev/nvme1n1 and so on. The emulator cuts the power of all of them at one instant.
 *
 * What wears out, goes wrong or is disturbed is one drive, or each in turn: the promises are those of
 * a single device. Threads are as in dmdevice.c, which does the I/O.
 */
#include "dmdevice.h"

#include <errno.h>
#include <linux/dm-ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define MAX_DRIVES	4u
#define CHUNK		4u	/* blocks: most operations are on several drives */

struct stripe {
	struct dmdevice top;
	unsigned int nr;
	struct device *drive[MAX_DRIVES];
};

static struct stripe *to_stripe(struct device *dev)
{
	return (struct stripe *)dev;
}

static struct device *chosen(struct device *dev, uint64_t where)
{
	struct stripe *stripe = to_stripe(dev);

	return stripe->drive[where % stripe->nr];
}

static int stripe_unmount(struct device *dev)
{
	struct stripe *stripe = to_stripe(dev);
	int err = dm_unmount(dev);
	unsigned int i;

	for (i = 0; i < stripe->nr; i++)
		err = dm_unmount(stripe->drive[i]) ?: err;
	return err;
}

static int load_stripe(struct stripe *stripe)
{
	char line[64 + MAX_DRIVES * sizeof(stripe->top.node)];
	int length = snprintf(line, sizeof(line), "striped %u %u", stripe->nr,
			      (unsigned int)SECTORS(CHUNK));
	unsigned int i;

	for (i = 0; i < stripe->nr; i++)
		length += snprintf(line + length, sizeof(line) - (size_t)length, " %s 0",
				   to_dm(stripe->drive[i])->node);
	return dm_command(&stripe->top, DM_TABLE_LOAD, 0, line);
}

static int stripe_mount(struct device *dev, const struct tuning *tuning)
{
	struct stripe *stripe = to_stripe(dev);
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < stripe->nr; i++)
		err = stripe->drive[i]->ops->mount(stripe->drive[i], tuning);
	err = err ?: dm_begin(&stripe->top);
	err = err ?: load_stripe(stripe);
	err = err ?: dm_take(&stripe->top);
	if (err)
		stripe_unmount(dev);
	return err;
}

static int stripe_disturb(struct device *dev, enum disturbance what, const struct tuning *tuning)
{
	struct stripe *stripe = to_stripe(dev);
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < stripe->nr; i++)
		err = stripe->drive[i]->ops->disturb(stripe->drive[i], what, tuning);
	return err;
}

/* A drive that an error target stands for does not tell of a flush that it dropped. */
static int stripe_flush(struct device *dev)
{
	struct stripe *stripe = to_stripe(dev);
	int err = dm_flush(dev);
	unsigned int i;

	for (i = 0; !err && i < stripe->nr; i++)
		err = to_dm(stripe->drive[i])->replaced ? -EIO : 0;
	return err;
}

static int stripe_format(struct device *dev)
{
	struct stripe *stripe = to_stripe(dev);
	uint64_t chunks = UINT64_MAX;
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < stripe->nr; i++) {
		struct device *drive = stripe->drive[i];

		err = drive->ops->format(drive);
		if (drive->nr_blocks / CHUNK < chunks)
			chunks = drive->nr_blocks / CHUNK;
	}
	dev->nr_blocks = stripe->nr * chunks * CHUNK;
	return err;
}

static int stripe_check(struct device *dev)
{
	struct stripe *stripe = to_stripe(dev);
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < stripe->nr; i++)
		err = stripe->drive[i]->ops->check(stripe->drive[i]);
	return err;
}

static int stripe_fault(struct device *dev, enum fault fault, uint64_t where)
{
	struct device *drive = chosen(dev, where);

	return drive->ops->fault(drive, fault, where / to_stripe(dev)->nr);
}

static int stripe_slow_die(struct device *dev, uint64_t where, unsigned int percent)
{
	struct device *drive = chosen(dev, where);

	return drive->ops->slow_die(drive, where / to_stripe(dev)->nr, percent);
}

/* Of the first drive: the others' logs may stand elsewhere. */
static unsigned int stripe_log_room(struct device *dev)
{
	struct device *drive = chosen(dev, 0);

	return drive->ops->log_room(drive);
}

static int stripe_arm(struct device *dev, enum cut_kind kind, uint64_t value)
{
	struct device *drive = chosen(dev, value);

	return drive->ops->arm(drive, kind, value);
}

/* All drives have one supply. */
static bool stripe_dead(struct device *dev)
{
	struct stripe *stripe = to_stripe(dev);
	bool dead = false;
	unsigned int i;

	for (i = 0; i < stripe->nr; i++)
		dead = dead || stripe->drive[i]->ops->dead(stripe->drive[i]);
	for (i = 0; dead && i < stripe->nr; i++) {
		if (!stripe->drive[i]->ops->dead(stripe->drive[i])) {
			fprintf(stderr, "drive %u has power where another one has none\n", i);
			exit(2);
		}
	}
	return dead;
}

static bool stripe_disarm(struct device *dev)
{
	struct stripe *stripe = to_stripe(dev);
	bool alive = true;
	unsigned int i;

	for (i = 0; i < stripe->nr; i++)
		alive = stripe->drive[i]->ops->disarm(stripe->drive[i]) && alive;
	return alive;
}

static int stripe_power_cycle(struct device *dev)
{
	struct stripe *stripe = to_stripe(dev);
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < stripe->nr; i++)
		err = stripe->drive[i]->ops->power_cycle(stripe->drive[i]);
	return err;
}

static void stripe_describe(struct device *dev)
{
	struct stripe *stripe = to_stripe(dev);
	unsigned int i;

	for (i = 0; i < stripe->nr; i++)
		stripe->drive[i]->ops->describe(stripe->drive[i]);
}

static const struct device_ops stripe_ops = {
	.read = dm_read, .write = dm_write, .flush = stripe_flush, .clear = dm_clear,
	.mount = stripe_mount, .unmount = stripe_unmount, .disturb = stripe_disturb,
	.format = stripe_format, .check = stripe_check, .fault = stripe_fault,
	.slow_die = stripe_slow_die, .log_room = stripe_log_room, .arm = stripe_arm,
	.dead = stripe_dead, .power_cycle = stripe_power_cycle, .describe = stripe_describe,
	.disarm = stripe_disarm,
};

struct device *stripedevice_open(const char *spec)
{
	struct stripe *stripe = calloc(1, sizeof(*stripe));
	unsigned int i, nr = (unsigned int)strtoul(spec, NULL, 10);

	if (!stripe || nr < 2 || nr > MAX_DRIVES) {
		fprintf(stderr, "stripe:%s: expected 2 to %u drives\n", spec, MAX_DRIVES);
		return NULL;
	}
	stripe->nr = nr;
	for (i = 0; i < nr; i++) {
		char *name, *namespace;

		if (asprintf(&name, "torture%u", i) < 0 || asprintf(&namespace, "/dev/nvme%un1", i) < 0)
			return NULL;
		stripe->drive[i] = dmdevice_named(name, namespace);
		free(namespace);
		if (!stripe->drive[i])
			return NULL;
	}
	dmdevice_init(&stripe->top, "torture", &stripe_ops);
	return stripe_format(&stripe->top.dev) ? NULL : &stripe->top.dev;
}
