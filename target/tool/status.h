/* SPDX-License-Identifier: GPL-2.0 */
/* The target's status line, taken apart. */
#ifndef MTFTL_TOOL_STATUS_H
#define MTFTL_TOOL_STATUS_H

#include <limits.h>

#include "dm.h"
#include "lib/pure.h"

#define STATUS_MAX_FIELDS	64

struct status {
	struct field {
		const char *name;
		char *value;
	} fields[STATUS_MAX_FIELDS];
	unsigned int nr;
};

/* The mode, then pairs of name and value. @line is taken apart, and must outlive @status. */
void status_parse(struct status *status, char *line);
/* A field that is missing is "0". */
const char *status_text(const struct status *status, const char *name);
u64 status_number(const struct status *status, const char *name);
bool status_has(const struct status *status, const char *name);
/* Of numbers with commas between them. */
u64 status_sum(const struct status *status, const char *name);
/* Blocks that went to the drive, of all kinds. */
u64 status_flash_blocks(const struct status *status);

/* A device of ours that is open. */
struct open_device {
	struct dm_target_info target;
	char lower[PATH_MAX];
	dev_t number;		/* of the drive; 0: the table has none */
	char *line;		/* @status points into it; for the caller to free */
	struct status status;
};

/* False: it is gone, or none of ours; if it @must_be, that fails with a message. */
bool open_device_ask(const char *name, bool must_be, struct open_device *device);

#endif
