/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device of device-mapper whose power can be cut: dm-mtftl over a drive (dmdevice.c), and
 * dm-stripe over several of these (stripedevice.c). Only these two include this.
 */
#ifndef DMDEVICE_H
#define DMDEVICE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "device.h"
#include "oracle.h"

#define SECTORS(blocks)	((uint64_t)(blocks) * (BLOCK_BYTES / 512))

struct dmdevice {
	struct device dev;
	const char *name;	/* of device-mapper */
	char node[32];		/* /dev/dm-0 */
	char *namespace;
	char *controller;	/* /dev/nvme0 */
	char *pci;		/* its address on the bus */
	int fd;			/* of the mounted device */
	int fuawrite;
	uint32_t nr_zones;
	uint32_t zone_blocks;
	uint32_t zone_capacity;
	bool created;
	bool replaced;		/* by the error target, where flushes succeed */
};

static inline struct dmdevice *to_dm(struct device *dev)
{
	return (struct dmdevice *)dev;
}

/* All else of it is zeroes. */
void dmdevice_init(struct dmdevice *dm, const char *name, const struct device_ops *ops);
/* What dmdevice_open() opens, under another name. */
struct device *dmdevice_named(const char *name, const char *spec);

/* One device-mapper command; @text is a table line ("TARGET ...") or a message. */
int dm_command(struct dmdevice *dm, unsigned long command, uint32_t flags, const char *text);
/* A mount: begin, load a table, take it into use; where one of these fails, unmount. */
int dm_begin(struct dmdevice *dm);
int dm_take(struct dmdevice *dm);
int dm_unmount(struct device *dev);

/* I/O, as device.h has it. */
int dm_read(struct device *dev, uint64_t lba, uint32_t nr, void *data);
int dm_write(struct device *dev, uint64_t lba, uint32_t nr, const void *data, unsigned int flags);
int dm_flush(struct device *dev);
int dm_clear(struct device *dev, uint64_t lba, uint32_t nr, enum clear_kind kind);

#endif
