/* SPDX-License-Identifier: GPL-2.0 */
/* The offline check of a whole device or image, apart from its command line. */
#ifndef MTFTL_TOOL_CHECK_H
#define MTFTL_TOOL_CHECK_H

#include "flash.h"
#include "format/parse.h"
#include "report.h"

struct check_totals {
	u64 units;
	u64 blocks;		/* payload blocks of data that verify */
	u64 torn;		/* and that do not, but that nothing refers to */
	u64 gap_blocks;
	u64 mapped;
	u64 lost;
};

/* Bytes of memory that the check takes at least; it takes more if units are small. */
u64 check_memory(const struct flash *flash, const struct mtftl_sb_info *sb);

/*
 * Reads everything, reports what is wrong. -EIO: a read failed that may succeed later, so less is known
 * to be right; another -errno: there is no device to check.
 */
int check_flash(struct flash *flash, struct report *report, struct check_totals *totals);

#endif
