/*
 * The zoned personality: what commands of a zoned namespace do on flash.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The controller checks commands and keeps the states of zones as ever; at the
 * places where it would go to the disk it calls this.  Runs under the big
 * QEMU lock.
 */

#ifndef HW_NVME_FLASH_ZNS_H
#define HW_NVME_FLASH_ZNS_H

#include "nvme.h"

extern const struct NvmeFlashPersonality nvme_flash_zns;

/* ctrl.c: a write or append, checked.  A status, or NVME_NO_COMPLETE. */
uint16_t nvme_flash_write(NvmeCtrl *n, NvmeRequest *req, NvmeZone *zone,
                          bool append, bool zeroes);

/* ctrl.c: a reset, as a whole.  A status, or NVME_NO_COMPLETE. */
uint16_t nvme_flash_reset(NvmeRequest *req, uint32_t zone_idx, bool all);

/*
 * ctrl.c: the other zone management commands, which may stand for many zones:
 * between nvme_flash_begin() and nvme_flash_end(), one call for each zone.
 */
void nvme_flash_open_zone(NvmeRequest *req, NvmeZone *zone);
void nvme_flash_close_zone(NvmeRequest *req, NvmeZone *zone);
void nvme_flash_finish_zone(NvmeRequest *req, NvmeZone *zone);
void nvme_flash_commit_zone(NvmeRequest *req, NvmeZone *zone);

/* ctrl.c: a zone was closed to make room for the command that comes next. */
void nvme_flash_auto_close(NvmeNamespace *ns);

/* ctrl.c: the zone enters a state. */
void nvme_flash_zone_state(NvmeNamespace *ns, NvmeZone *zone,
                           NvmeZoneState state);

/* ns.c: where the zones' descriptor extensions lie, and the zones at start. */
uint8_t *nvme_flash_extensions(NvmeNamespace *ns);
void nvme_flash_load_zones(NvmeNamespace *ns);

#endif
