/* SPDX-License-Identifier: GPL-2.0 */
/* What a drive says of itself: superblock, health, and how long its commands take. */
#ifndef MTFTL_TOOL_DRIVE_H
#define MTFTL_TOOL_DRIVE_H

#include <sys/types.h>

#include "format/parse.h"

/* NVMe's health log; other drives have none. */
struct drive_health {
	bool known;
	u8 warning;		/* critical warnings, a bit each */
	u8 spare;		/* percent, like the next two */
	u8 spare_least;		/* below it the drive warns */
	u8 used;		/* of its life; may be above 100 */
	u64 written;		/* bytes, by all hosts */
};

struct drive_facts {
	bool has_super;		/* @super is right */
	bool could_have_oob;	/* headers could be in its metadata */
	struct mtftl_sb_info super;
	struct drive_health health;
};

/*
 * Asks by a process of its own: what is on a drive may be written by anybody, and a drive may hang.
 * False if there is no answer within @seconds (-1: wait for it). The drive may be in use.
 */
bool drive_ask(const char *path, int seconds, struct drive_facts *facts);

/* Of /sys/block/X/stat: reads first, then writes. */
struct drive_stat {
	u64 ios[2];
	u64 ms[2];
	u64 in_flight;
};

/* False if the device is gone. */
bool drive_stat(dev_t number, struct drive_stat *stat);
/* What happened in between. */
struct drive_stat drive_stat_since(const struct drive_stat *before, const struct drive_stat *now);
/* Milliseconds of a read (0) or write (1) on average; 0 if there was none. */
double drive_mean(const struct drive_stat *stat, int kind);

#endif
