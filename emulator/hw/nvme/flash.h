/*
 * The flash device behind an NVMe zoned namespace: what ctrl.c and ns.c call.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A namespace with the property flash.media has ns->flash; for all others
 * nothing here is ever called.  Everything runs under the big QEMU lock.
 */

#ifndef HW_NVME_FLASH_H
#define HW_NVME_FLASH_H

#include "nvme.h"

#define NVME_ADM_CMD_FLASH  0xc0    /* vendor: power and faults */
#define NVME_LOG_FLASH      0xd0    /* vendor: counters */

/* ns.c: life of a namespace. */
void nvme_flash_class_props(ObjectClass *oc);
void nvme_flash_instance_init(NvmeNamespace *ns);
void nvme_flash_instance_finalize(NvmeNamespace *ns);
bool nvme_flash_wanted(const NvmeNamespace *ns);
int nvme_flash_make_blk(NvmeNamespace *ns, Error **errp);
int nvme_flash_open(NvmeNamespace *ns, Error **errp);
uint8_t *nvme_flash_extensions(NvmeNamespace *ns);
void nvme_flash_load_zones(NvmeNamespace *ns);
void nvme_flash_shutdown(NvmeNamespace *ns);
void nvme_flash_close(NvmeNamespace *ns);

/* ctrl.c: commands.  Each returns a status, or NVME_NO_COMPLETE. */
uint16_t nvme_flash_check(NvmeNamespace *ns);
uint16_t nvme_flash_read(NvmeCtrl *n, NvmeRequest *req);
uint16_t nvme_flash_write(NvmeCtrl *n, NvmeRequest *req, NvmeZone *zone,
                          bool append, bool zeroes);
uint16_t nvme_flash_flush(NvmeCtrl *n, NvmeRequest *req, uint32_t nsid);
bool nvme_flash_other(NvmeCtrl *n, NvmeRequest *req, uint16_t *status);
uint16_t nvme_flash_reset(NvmeRequest *req, uint32_t zone_idx, bool all);
uint16_t nvme_flash_admin(NvmeCtrl *n, NvmeRequest *req);
uint16_t nvme_flash_log(NvmeCtrl *n, NvmeRequest *req, uint32_t len,
                        uint64_t off);

/*
 * A zone management command may stand for many zones: begin, one op for each,
 * end.  The request completes when all of them have.
 */
void nvme_flash_begin(NvmeRequest *req);
void nvme_flash_open_zone(NvmeRequest *req, NvmeZone *zone);
void nvme_flash_close_zone(NvmeRequest *req, NvmeZone *zone);
void nvme_flash_finish_zone(NvmeRequest *req, NvmeZone *zone);
void nvme_flash_commit_zone(NvmeRequest *req, NvmeZone *zone);
uint16_t nvme_flash_end(NvmeRequest *req, uint16_t status);

/* ctrl.c: the zone enters a state. */
void nvme_flash_zone_state(NvmeNamespace *ns, NvmeZone *zone,
                           NvmeZoneState state);

/* ctrl.c: forget a request that is being cancelled; false: not ours. */
bool nvme_flash_cancel(NvmeRequest *req);

#endif
