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

/* Open the log at its end; -1 if it cannot be read, which kmsg_reason() accepts. */
int kmsg_open(void);

/*
 * Find the best line that the kernel has logged since then about the drive @lower or the device
 * @mapped, both as "major:minor". If several are of the best kind, take the first. The device in
 * front of it is left out.
 */
enum reason kmsg_reason(int fd, const char *lower, const char *mapped, char *reason, size_t size);

#endif
