/* SPDX-License-Identifier: GPL-2.0 */
/*
 * FUA alone: from user space a write with O_DSYNC reaches a block device as FUA
 * and then a flush, which hides a FUA that does not keep its word. A file
 * system sends FUA alone; so does this ioctl of /dev/fuawrite.
 */
#ifndef FUAWRITE_H
#define FUAWRITE_H

#include <linux/ioctl.h>
#include <linux/types.h>

struct fuawrite {
	__u64 offset;		/* bytes, like the length a multiple of 4096 */
	__u64 data;		/* address */
	__u32 length;
	__s32 fd;		/* of the block device, open for writing */
};

#define FUAWRITE	_IOW('f', 1, struct fuawrite)
#define FUAWRITE_MAX	(64u << 10)

#endif
