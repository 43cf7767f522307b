/* SPDX-License-Identifier: GPL-2.0 */
/* Is a device well, and what is to be done if not: decided from what target and drive say. Pure. */
#ifndef MTFTL_TOOL_HEALTH_H
#define MTFTL_TOOL_HEALTH_H

#include "drive.h"
#include "status.h"

#define HEALTH_MAX	16

/* A state stands for "works"; with notes alone a device is well. */
enum condition_kind { CONDITION_STATE, CONDITION_FAULT, CONDITION_NOTE };

struct condition {
	enum condition_kind kind;
	const char *name;	/* one word, for programs */
	char what[160];		/* goes on a line that begins with the device's name */
	const char *advice;
};

/* What a device's condition follows from. */
struct health_facts {
	const struct status *status;
	const struct dm_target_info *target;
	bool answered;			/* the drive, in time */
	const struct drive_facts *drive;
	const struct drive_stat *drive_stat;	/* of the last moment, or since the boot */
	unsigned int stuck_ms;		/* so long no command ended, though some are there */
};

struct health {
	const char *state;	/* in a word or two, as `mtftl list` has it */
	u32 nr;
	struct condition conditions[HEALTH_MAX];
};

/* Zones that are left beyond what the device's data needs, of those that a new drive has. */
struct spare_zones {
	u32 left;
	u32 all;
};

/* False if it is not known. */
bool health_spare(const struct drive_facts *drive, const struct status *status,
		  struct spare_zones *spare);
void health_judge(const struct health_facts *facts, struct health *health);
/* As far as the target alone tells, in a word or two. */
const char *health_state(const struct status *status, const struct dm_target_info *target);

#endif
