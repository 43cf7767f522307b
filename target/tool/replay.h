/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Recovery, written a second time and apart from the module: from a superblock to
 * the map, by the rules of docs/design/format.md. Reads only. What the module mounts must
 * be what this finds.
 */
#ifndef MTFTL_TOOL_REPLAY_H
#define MTFTL_TOOL_REPLAY_H

#include "flash.h"
#include "format/parse.h"
#include "report.h"
#include "super.h"

struct replay_zone {
	u32 erase_count;
	u32 wp;
	u64 first_seq;
	u16 flags;
	u32 life;		/* the erase count that its headers name; as recorded if none does */
	bool is_ckpt;		/* the record names it for checkpoints: it holds no data */
	bool is_shorter;	/* than the map says: the drive has lost what was written */
};

struct replay {
	/* Given. */
	struct flash *flash;
	const struct mtftl_sb_info *sb;
	struct report *report;
	bool salvage;			/* what a damaged checkpoint lacks comes from the log */
	bool older;			/* @sb may not be the newest: units are verified; found, too */
	bool first;			/* @sb is in block 0 of its zone: what was before it is gone */

	/* Found. */
	u32 *map;			/* sb->logical_blocks pages or MTFTL_MAP_* */
	struct replay_zone *zones;	/* life: as found; the rest: the checkpoint's, or zeroes */
	/* Salvage: which blocks of zone records, and then of the map, verify; NULL: all */
	bool *ckpt_have;
	u64 ckpt_missing;
	bool *ckpt_needs;		/* of each zone: the checkpoint lies in it, in part */
	u64 max_seq;
	u64 durable_seq;
	u32 zones_skipped;		/* unchanged since the checkpoint */
	u32 zones_by_footer;
	u32 zones_scanned;
	u64 units;			/* above the checkpoint's number */
	u64 ranges;
	u64 blocks_dropped;		/* not durable and torn */
};

/*
 * 0, -EBADMSG: the checkpoint is damaged, -EPROTO: a unit is of a newer version, or -EIO: a read
 * failed that may succeed later; each is reported. replay_free() in any case.
 */
int replay_run(struct replay *replay);
/* Before that: replay what this record names. */
void replay_from(struct replay *replay, const struct super *super);
/* The checkpoint told where it is; and what it knows of a zone. */
bool replay_in_checkpoint(const struct replay *replay, u64 lba);
bool replay_zone_in_checkpoint(const struct replay *replay, u32 zone);
void replay_free(struct replay *replay);

/*
 * For readers of checkpoints: a block of zone records, a map block. False: the module would refuse
 * what it says, so it counts as missing.
 */
bool replay_take_records(struct replay *replay, u64 index, const u8 *block);
bool replay_take_map(struct replay *replay, u64 index, const u8 *block);

#endif
