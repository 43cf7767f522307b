/* SPDX-License-Identifier: GPL-2.0 */
/* What device-mapper says of a device of ours. */
#ifndef MTFTL_TOOL_DM_H
#define MTFTL_TOOL_DM_H

#include <libdevmapper.h>
#include <limits.h>
#include <sys/types.h>

#include "lib/pure.h"

struct dm_target_info {
	uint64_t sectors;
	bool empty;		/* of ours, but without a table: its mount was cut off */
	bool suspended;
	bool read_only;		/* opened with --readonly */
	int open_count;
	dev_t number;
	u32 events;		/* so many have happened */
	char node[PATH_MAX];	/* where libdevmapper has it: names are mangled there */
};

/* The line that a task of @type gives for the target @name; fails if it is none of ours. */
char *dm_target_line(const char *name, int type, struct dm_target_info *target);

/* The same, or NULL if it is none of ours or gone. */
char *dm_our_line(const char *name, int type, struct dm_target_info *target);

/* The names of all device-mapper devices, in order. */
char **dm_names(size_t *nr);

/* The path and number of the drive that a table line begins with; 0: it has none. */
dev_t dm_lower_device(const char *table, char *path, size_t size);

/* Wait until more than so many events have happened. False: the device is gone. */
bool dm_wait(const char *name, u32 events);

/* What the device answers to a message; NULL: nothing. */
char *dm_message(const char *name, const char *message);

/* Say so if the module is of another release than this program; it need not be loaded. */
void dm_check_module(void);

#endif
