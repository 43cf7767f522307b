/*
 * Faults on demand and power: what the vendor command and the property
 * flash.fault can do to the flash device.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Runs under the big QEMU lock.
 */

#ifndef HW_NVME_FLASH_FAULT_H
#define HW_NVME_FLASH_FAULT_H

#include "nvme.h"

#define NVME_ADM_CMD_FLASH  0xc0    /* vendor: power and faults */

/* ctrl.c: the vendor command. */
uint16_t nvme_flash_admin(NvmeCtrl *n, NvmeRequest *req);

/* flash.c: the same in words. */
void nvme_flash_fault_text(struct NvmeFlash *f, const char *text,
                           Error **errp);

/* Personalities: is a command on these blocks to fail?  Each asks once. */
bool nvme_flash_faulty(struct NvmeFlash *f, bool write, uint64_t slba,
                       uint64_t nlb);

/* flash.c: life; start: the device is open, and has power. */
void nvme_flash_fault_init(struct NvmeFlash *f);
void nvme_flash_fault_start(struct NvmeFlash *f);
void nvme_flash_fault_stop(struct NvmeFlash *f);
void nvme_flash_fault_free(struct NvmeFlash *f);

#endif
