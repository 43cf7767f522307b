/* SPDX-License-Identifier: GPL-2.0 */
/* Why device-mapper refuses a device: its calls return a number, the kernel's log has the words. */
#ifndef MTFTL_TOOL_KMSG_H
#define MTFTL_TOOL_KMSG_H

#include <stddef.h>

enum reason {		/* the best one first */
	COMPLAINT,	/* of the target itself */
	REFUSAL,	/* what device-mapper says of the target's refusal */
	STEP,		/* the step of a mount that failed */
	NO_REASON,
};

/* The log from here on; -1 if it cannot be read, which kmsg_reason() takes. */
int kmsg_open(void);

/*
 * Of what the kernel has said since then about the drive @lower or the device @mapped, both as
 * "major:minor", the first line of the best kind, without the device that it begins with.
 */
enum reason kmsg_reason(int fd, const char *lower, const char *mapped, char *reason, size_t size);

#endif
