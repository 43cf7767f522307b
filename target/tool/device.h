/* SPDX-License-Identifier: GPL-2.0 */
/* A zoned block device behind struct flash, by libzbd. */
#ifndef MTFTL_TOOL_DEVICE_H
#define MTFTL_TOOL_DEVICE_H

#include <sys/types.h>

#include "flash.h"

struct device {
	struct flash flash;
	const char *path;
	dev_t number;
	int fd;
	u32 first_zone;		/* of the drive's zones, the format's zone 0 */
	u32 left_alone;		/* zones of the drive in which the format is not */
	u32 nr_written;		/* zones that hold something, a part of a block at least */
	u32 sector_size;
	u32 write_blocks;	/* that one write may have, as the kernel says it */
	u32 meta_size;		/* bytes of metadata of each block that we may use, or 0 */
};

enum device_access {
	DEVICE_READ,		/* also while someone else has it open */
	DEVICE_READ_IDLE,	/* refused while in use */
	DEVICE_WRITE,		/* likewise */
};

/* The kernel's own name of a block device, as a path; "/dev/" if there is none. */
void device_name(dev_t number, char *path, size_t size);
/* Opens and checks the geometry that the format asks for; fails with a message. */
struct device *device_open(const char *path, enum device_access access);
void device_close(struct device *device);
/* Its metadata has room for headers, and this kernel's module can use it. */
bool device_takes_headers(const struct device *device);

/* Reset what is not empty in zones [first, first + nr). */
void device_reset(struct device *device, u32 first, u32 nr, const char *what);
/* The same for all zones, with one command if the device has one. */
void device_reset_all(struct device *device, const char *what);
/* Write one block at the start of an empty zone and make it durable. */
void device_write_first(struct device *device, u32 zone, const void *block);

#endif
