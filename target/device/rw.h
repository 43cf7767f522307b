/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands to the drive that their caller waits for: outside of the paths of users' requests. Those
 * that change something heed a pause. All of it sleeps.
 */
#ifndef MTFTL_RW_H
#define MTFTL_RW_H

#include <linux/blkdev.h>

#include "device/device.h"
#include "device/ftl.h"

/* BLK_STS_MEDIUM and BLK_STS_PROTECTION: what was there is lost. Any other error may pass. */
static inline bool mtftl_medium_says(int error)
{
	return error == -ENODATA || error == -EILSEQ;
}

int mtftl_rw_sectors(struct mtftl *ftl, blk_opf_t opf, sector_t sector, void *data, u32 nr);
int mtftl_rw_sync(struct mtftl *ftl, blk_opf_t opf, u32 page, void *data, u32 nr_blocks);
int mtftl_read_oob(struct mtftl *ftl, u32 page, void *data, u32 nr_blocks, void *oob);
int mtftl_zone_mgmt(struct mtftl *ftl, u32 zone, enum req_op op);
/* blkdev_report_zones() for @nr zones from @zone on: how many were reported, perhaps fewer. */
int mtftl_report_zones(struct mtftl *ftl, u32 zone, u32 nr, report_zones_cb note, void *data);

/* 0 if all were reported. Drivers end a report early without an error; here that is one. */
static inline int mtftl_report_all_zones(struct mtftl *ftl, u32 zone, u32 nr,
					 report_zones_cb note, void *data)
{
	int r = mtftl_report_zones(ftl, zone, nr, note, data);

	if (r < 0)
		return r;
	if (r != nr) {
		mtftl_err(ftl, "reports %d zones, expected %u", r, nr);
		return -EIO;
	}
	return 0;
}

u8 mtftl_zone_condition(struct mtftl *ftl, u32 zone);
bool mtftl_zone_is_offline(struct mtftl *ftl, u32 zone);
bool mtftl_device_answers(struct mtftl *ftl, void *block);

#endif
