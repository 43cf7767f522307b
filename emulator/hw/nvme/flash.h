/*
 * Modelled flash behind an NVMe namespace: what ctrl.c and ns.c call.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A namespace with the property flash.media has ns->flash; for all others
 * nothing here is ever called.  Everything runs under the big QEMU lock.
 */

#ifndef HW_NVME_FLASH_H
#define HW_NVME_FLASH_H

#include "flash-fault.h"
#include "flash-fdp.h"
#include "flash-io.h"
#include "flash-journal.h"
#include "flash-log.h"
#include "flash-ocssd.h"
#include "flash-zns.h"

/* ns.c: life of a namespace. */
void nvme_flash_class_props(ObjectClass *oc);
void nvme_flash_instance_init(NvmeNamespace *ns);
void nvme_flash_instance_finalize(NvmeNamespace *ns);
bool nvme_flash_wanted(const NvmeNamespace *ns);
int nvme_flash_make_blk(NvmeNamespace *ns, Error **errp);
int nvme_flash_open(NvmeNamespace *ns, Error **errp);
void nvme_flash_shutdown(NvmeNamespace *ns);
void nvme_flash_close(NvmeNamespace *ns);

/*
 * ctrl.c: Identify and the log of commands must not announce what a namespace
 * of the controller does not do.  nvm: of the NVM command set.
 */
void nvme_flash_identify(NvmeCtrl *n, NvmeIdCtrl *id);
bool nvme_flash_has_cache(NvmeCtrl *n);
void nvme_flash_effects(NvmeCtrl *n, NvmeEffectsLog *log, bool nvm);

/* ctrl.c: refuse a controller for flash that cannot do what it promises. */
bool nvme_flash_check_ctrl(NvmeCtrl *n, Error **errp);

/*
 * ctrl.c: I/O commands that its personality serves.  read: checked and mapped.
 * exec_other: any, before the controller looks at it; false: not served here.
 */
uint16_t nvme_flash_read(NvmeCtrl *n, NvmeRequest *req);
bool nvme_flash_exec_other(NvmeCtrl *n, NvmeRequest *req, uint16_t *status);

#endif
