/*
 * Flexible data placement on modelled flash: reclaim unit handles are handles
 * of the FTL, reclaim units its erase blocks.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The protocol is the controller's own (fdp of its subsystem); here it gets
 * numbers and events that come from the flash.  Runs under the big QEMU lock.
 */

#ifndef HW_NVME_FLASH_FDP_H
#define HW_NVME_FLASH_FDP_H

#include "nvme.h"

/*
 * ctrl.c, before it tells what is left of reclaim units, or statistics: they
 * are those of now.  The next write by a reclaim unit handle begins another
 * unit.
 */
void nvme_flash_fdp_sync(NvmeSubsystem *subsys);
void nvme_flash_fdp_renew(NvmeNamespace *ns, uint16_t ruhid);

/* ns.c: may the namespace be in its subsystem, which has fdp=on? */
bool nvme_flash_fdp_suits(NvmeNamespace *ns, Error **errp);

/*
 * Personalities: before the FTL is opened, what is wrong (to be freed) or NULL;
 * the reclaim unit handle that a write names.
 */
char *nvme_flash_fdp_start(NvmeNamespace *ns);
uint16_t nvme_flash_fdp_handle(const NvmeRequest *req);

#endif
