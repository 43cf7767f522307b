/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Walks the units of one zone, over whatever is torn or damaged, and reads zone
 * footers. Pure except for flash->read and memory.
 */
#ifndef MTFTL_TOOL_SCAN_H
#define MTFTL_TOOL_SCAN_H

#include "flash.h"
#include "format/parse.h"
#include "report.h"

/* Blocks of one zone, read ahead in pieces of a given size. */
struct window {
	struct flash *flash;
	u8 *buffer;
	struct mtftl_oob *oob;	/* of its blocks, where units have no headers */
	u8 *header;		/* of the unit read last */
	u32 size;		/* blocks in the buffer */
	u32 zone;
	u32 first;		/* what it holds: blocks [first, first + filled) of zone */
	u32 filled;
	int error;		/* of the block that was asked for last and could not be read */
	int failed;		/* the first error that may pass: NULL said nothing of what is there */
	u32 failed_zone;	/* what it was */
	u32 failed_at;
	bool goes_on;		/* reads behind such an error, too */
};

void window_init(struct window *window, struct flash *flash, u32 size);
void window_free(struct window *window);
/* 0, or -EIO: a read failed that may succeed later, which is reported. */
int window_error(const struct window *window, struct report *report);
/*
 * One block below the write pointer, or what is written of the one at it. NULL if it cannot be
 * read. Valid until the next call.
 */
const u8 *window_block(struct window *window, u32 zone, u32 offset);
/*
 * The unit that begins there, as mtftl_unit_parse() says, or -EIO. Its header, window->header, is
 * valid until the next unit.
 */
int window_unit(struct window *window, u32 seed, u32 zone, u32 offset,
		struct mtftl_unit_info *info);
/* Where the payload of a unit begins. */
u32 window_payload(const struct window *window, const struct mtftl_unit_info *info);

struct scan_result {
	u32 units;
	u32 gap_blocks;		/* below the write pointer, but in no unit */
	u32 first_gap;
	u32 contradictions;	/* headers that verify, but make no sense */
	u32 unreadable;		/* headers that could not be read */
	u32 worn_at;		/* the first header with more erases than a mount takes */
	u32 worn_erases;	/* as it says; 0: there is none */
	bool newer;		/* a unit of a version that is not ours: do not go on */
};

/*
 * Call @found for each unit of a zone from block @from on, in order of offset.
 * A header behind a torn place counts only if its number is above @ckpt_seq (0
 * if in doubt), new in this zone, and its erase count that of the zone's first header.
 * If that one is torn, the erase count is the highest that a header names. Anything else
 * may be payload that a user copied from the raw device.
 */
typedef void (*scan_found)(void *context, const struct mtftl_unit_info *info,
			   const u8 *header);
void scan_zone(struct window *window, u32 seed, u32 zone, u32 from, u64 ckpt_seq,
	       scan_found found, void *context, struct scan_result *result);

/*
 * 1: a unit by this seed begins a zone behind the log; 0: none does; or -EIO: none, but a read failed
 * that may find one later. *@written: zones that could have one, as far as the first unit. Zones that
 * are read-only could not: a format does not reset them.
 */
int scan_finds_unit(struct flash *flash, u32 seed, u32 *written);

/*
 * The footer stream of a full zone, or NULL if it has none that verifies from tail
 * to last block. The caller frees it. @size is in bytes.
 */
u8 *scan_footer(struct window *window, u32 seed, u32 zone, struct mtftl_tail_info *tail,
		u64 *durable_seq, u32 *size);

#endif
