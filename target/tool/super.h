/* SPDX-License-Identifier: GPL-2.0 */
/* Finds the valid superblock record of a device. Pure except for flash->read. */
#ifndef MTFTL_TOOL_SUPER_H
#define MTFTL_TOOL_SUPER_H

#include "flash.h"
#include "format/parse.h"

struct super {
	struct mtftl_sb_info info;
	u32 zone;		/* where its record is */
	u32 offset;
	bool says_clean;	/* the record itself, whatever else was found */
	bool may_be_older;	/* one that cannot be read may be newer */
	bool alone;		/* the other zone of the log has blocks, and none of them verifies */
};

/*
 * 0, or -ENODATA: no record verifies, -EPROTO: of a newer version, -EINVAL: its
 * fields contradict each other, -ESTALE: written for another geometry, -EIO: a read
 * failed that may find a newer one later, or -EOPNOTSUPP: headers are in metadata
 * that cannot be read (then @super is filled in). Behind -EPROTO and -EINVAL its zone is.
 */
int super_find(struct flash *flash, struct super *super);
/* The same of what stays if the log's zones are reset: records in zones that take no reset. */
int super_find_kept(struct flash *flash, struct super *super);

/*
 * Make @block the only record of the log, and durable, except for those in zones that take no
 * reset. It is in block 0: see replay.c. @err, @super: what super_find() has found. If this is cut
 * off, the newest record is still there, or the new one, or none: an older one only where it is all
 * that a zone without resets has.
 */
int super_replace(struct flash *flash, int err, const struct super *super, const void *block);

/* Is the zone one of those that the record names for checkpoints? */
bool super_names_zone(const struct mtftl_sb_info *sb, u32 zone);

/* What such an error means, for people. */
const char *super_error(int error);

#endif
