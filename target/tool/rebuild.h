/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A new checkpoint in place of a damaged one: what verifies of the old one, and for the rest what
 * the zones' headers and footers say. Pure except for the flash's functions and memory.
 */
#ifndef MTFTL_TOOL_REBUILD_H
#define MTFTL_TOOL_REBUILD_H

#include "flash.h"
#include "format/parse.h"
#include "report.h"

struct rebuild_totals {
	u64 missing;		/* blocks of the checkpoint that do not verify */
	u32 unfinished;		/* zones: the last unit of each is not whole, and nothing fills it up */
	u64 mapped;
	u64 lost;
	u64 unknown;		/* logical blocks of which the checkpoint does not tell */
	u64 found;		/* of them mapped again */
};

/*
 * Looks, and with @write writes; where the checkpoint is whole, only what one that was cut off has
 * left to do. 0 or -errno: what super_find() gives, -EPROTO for units of a newer version, -EOVERFLOW
 * where numbers are used up, -ENOSPC where no zone is left for a checkpoint, or what the device says.
 */
int rebuild_flash(struct flash *flash, struct report *report, bool write,
		  struct rebuild_totals *totals);

/*
 * For a device to which zones were appended: the same map, and a size as format would give it now.
 * A checkpoint for it is written, then the record that says so. @was and @now: what records say.
 * -EEXIST: it has no more zones than before, -ENOTEMPTY: one of them is not empty, or as above.
 */
int rebuild_grow(struct flash *flash, struct report *report, struct mtftl_sb_info *was,
		 struct mtftl_sb_info *now);

#endif
