// SPDX-License-Identifier: GPL-2.0
/*
 * The superblock log: in each of its two zones the last record that is whole
 * counts, of these the one with the higher generation. A record that is whole
 * but not understood is never skipped for an older one.
 */
#include "super.h"

#include <assert.h>

static int newest_in_zone(struct flash *flash, u32 zone, struct mtftl_sb_info *info, u32 *offset,
			  bool *skipped)
{
	static _Alignas(MTFTL_BLOCK_SIZE) u8 block[MTFTL_BLOCK_SIZE];
	u32 at;
	int err;

	for (at = flash->zones[zone].wp; at-- > 0;) {
		err = flash->read(flash, zone, at, 1, block);
		if (err && !flash_medium_says(flash, err))
			return -EIO;
		err = err ? -EBADMSG : mtftl_sb_parse(block, info);
		if (err != -ENODATA && err != -EBADMSG) {
			*offset = at;
			return err;
		}
		*skipped = true;
	}
	return -ENODATA;
}

/* There may have been a record that cannot be read any more. */
static bool log_is_in_part(const struct flash *flash)
{
	u32 zone;

	for (zone = 0; zone < MTFTL_NR_SB_ZONES && zone < flash->nr_zones; zone++)
		if (flash->zones[zone].cond == FLASH_OFFLINE)
			return true;
	return false;
}

int super_find(struct flash *flash, struct super *super)
{
	struct mtftl_sb_info info;
	bool found = false, behind = false, unknown = false, skipped;
	u32 zone, offset;
	int err;

	super->alone = false;
	for (zone = 0; zone < MTFTL_NR_SB_ZONES && zone < flash->nr_zones; zone++) {
		skipped = false;
		err = newest_in_zone(flash, zone, &info, &offset, &skipped);
		unknown |= err == -ENODATA && skipped;
		if (err == -ENODATA)
			continue;
		if (err) {
			super->zone = zone;
			return err;
		}
		if (found && info.generation <= super->info.generation)
			continue;
		assert(offset < flash->zones[zone].wp && !mtftl_sb_wrong(&info));
		super->info = info;
		super->zone = zone;
		super->offset = offset;
		super->says_clean = info.flags & MTFTL_SB_CLEAN;
		behind = skipped;
		found = true;
	}
	if (!found)
		return log_is_in_part(flash) ? -ENXIO : -ENODATA;
	super->alone = unknown;
	/* The log had to go round to the other zone. */
	if (flash->zones[super->zone].wp == flash->zone_capacity)
		unknown |= flash->zones[!super->zone].cond == FLASH_OFFLINE;
	/*
	 * A record that cannot be read may be newer, and say that there is more to read; but none
	 * behind an older record of the zone that the log has left.
	 */
	super->may_be_older = behind || unknown;
	if (super->may_be_older)
		super->info.flags &= ~MTFTL_SB_CLEAN;
	if (super->info.nr_zones != flash->nr_zones ||
	    super->info.zone_blocks != flash->zone_blocks ||
	    super->info.zone_capacity != flash->zone_capacity)
		return -ESTALE;
	flash->oob = super->info.oob;
	return flash->oob && !flash->read_oob ? -EOPNOTSUPP : 0;
}

int super_find_kept(struct flash *flash, struct super *super)
{
	struct flash_zone before[MTFTL_NR_SB_ZONES];
	u32 zone;
	int err;

	assert(flash->nr_zones >= MTFTL_NR_SB_ZONES);
	memcpy(before, flash->zones, sizeof(before));
	for (zone = 0; zone < MTFTL_NR_SB_ZONES; zone++)
		if (flash_is_writable(flash, zone))
			flash->zones[zone] = (struct flash_zone) { .cond = FLASH_EMPTY };
	err = super_find(flash, super);
	memcpy(flash->zones, before, sizeof(before));
	return err;
}

/* What is newest goes last, unless only what is beside it tells that it may be an older one. */
static u32 first_to_go(const struct flash *flash, int err, const struct super *super)
{
	u32 zone = 0;

	if (err != -ENODATA && err != -ENXIO)
		zone = super->alone ? super->zone : !super->zone;
	return flash_is_writable(flash, zone) ? zone : !zone;
}

static int empty_zone(struct flash *flash, u32 zone)
{
	if (flash->zones[zone].cond == FLASH_EMPTY || !flash_is_writable(flash, zone))
		return 0;
	return flash->reset(flash, zone);
}

int super_replace(struct flash *flash, int err, const struct super *super, const void *block)
{
	u32 zone = first_to_go(flash, err, super);

	return empty_zone(flash, zone) ?: flash->write(flash, zone, 0, 1, block) ?:
	       flash->flush(flash) ?: empty_zone(flash, !zone) ?: flash->flush(flash);
}

bool super_names_zone(const struct mtftl_sb_info *sb, u32 zone)
{
	u32 i;

	for (i = 0; i < sb->ckpt_nr_zones; i++)
		if (sb->ckpt_zones[i] == zone)
			return true;
	return false;
}

const char *super_error(int error)
{
	switch (error) {
	case -ENODATA:
		return "no mtftl superblock, expected a device made by mtftl format";
	case -ENXIO:
		return "no mtftl superblock, and a zone where it may have been is offline, expected a"
		       " record in zone 0 or 1: mtftl header-restore writes one";
	case -EPROTO:
		return "a superblock of another version, expected version 1 and no new features: a newer"
		       " mtftl may know it";
	case -EINVAL:
		return "a superblock whose fields contradict each other, expected one as mtftl or the target"
		       " writes it";
	case -ESTALE:
		return "a superblock written for another geometry, expected the zones that it was formatted"
		       " with";
	case -EIO:
		return "a read or write failed, expected success, or an error that says that the medium has"
		       " lost the data: try again";
	case -EOVERFLOW:
		return "numbers, generations or erase counts that are used up, expected at most half of their"
		       " range";
	case -EOPNOTSUPP:
		return "headers in metadata, expected 16 to 128 bytes of it a block, apart from the data";
	}
	return strerror(-error);
}
