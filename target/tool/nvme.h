/* SPDX-License-Identifier: GPL-2.0 */
/* What the status of an NVMe read means, in the errors that reads of the block device have. Pure. */
#ifndef MTFTL_TOOL_NVME_H
#define MTFTL_TOOL_NVME_H

#include <errno.h>

#define NVME_STATUS_CODE(status)	((status) & 0xff)
#define NVME_STATUS_TYPE(status)	((status) >> 8 & 7)

enum nvme_status_type {
	NVME_GENERIC	= 0,
	NVME_MEDIUM	= 2,	/* or data integrity */
	NVME_PATH	= 3,	/* or the host has aborted it */
};

/* Of NVME_GENERIC, those that say that the command was not carried out, whatever the medium holds. */
static inline bool nvme_may_pass(int code)
{
	switch (code) {
	case 0x04:	/* data transfer error */
	case 0x05:	/* aborted: power loss */
	case 0x07:	/* aborted on request */
	case 0x08:	/* aborted: its queue is gone */
	case 0x1d:	/* sanitize in progress */
	case 0x21:	/* interrupted */
	case 0x22:	/* transient transport error */
	case 0x82:	/* namespace not ready */
	case 0x84:	/* format in progress */
		return true;
	}
	return false;
}

/* @status is not 0. */
static inline int nvme_read_error(int status)
{
	switch (NVME_STATUS_TYPE(status)) {
	case NVME_MEDIUM:
		return -ENODATA;
	case NVME_PATH:
		return -ENOLINK;
	case NVME_GENERIC:
		return nvme_may_pass(NVME_STATUS_CODE(status)) ? -EAGAIN : -EIO;
	}
	return -EIO;
}

#endif
