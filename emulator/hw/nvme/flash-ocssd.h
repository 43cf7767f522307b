/*
 * The Open-Channel personality: a drive of the Open-Channel SSD 2.0 kind, whose
 * host says which die holds what.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The controller gives all of its I/O commands to it, and these admin commands
 * and log pages.  Runs under the big QEMU lock.
 */

#ifndef HW_NVME_FLASH_OCSSD_H
#define HW_NVME_FLASH_OCSSD_H

#include "nvme.h"

#define NVME_ADM_CMD_OCSSD_GEOMETRY 0xe2
#define NVME_LOG_OCSSD_CHUNKS       0xca
#define NVME_LOG_OCSSD_NOTES        0xd0
#define NVME_FEAT_OCSSD_FEEDBACK    0xca

enum {
    NVME_CMD_OCSSD_RESET = 0x90,
    NVME_CMD_OCSSD_WRITE = 0x91,
    NVME_CMD_OCSSD_READ = 0x92,
    NVME_CMD_OCSSD_COPY = 0x93,
};

extern const struct NvmeFlashPersonality nvme_flash_ocssd;

/* ctrl.c: admin commands.  Each gives a status. */
uint16_t nvme_ocssd_geometry(NvmeCtrl *n, NvmeRequest *req);
uint16_t nvme_ocssd_feedback(NvmeCtrl *n, NvmeRequest *req, bool set);

/* ctrl.c: len bytes of a log page, from that offset on.  A status. */
uint16_t nvme_ocssd_chunks(NvmeCtrl *n, NvmeRequest *req, uint32_t len,
                           uint64_t off);
uint16_t nvme_ocssd_notes(NvmeCtrl *n, NvmeRequest *req, uint32_t len,
                          uint64_t off);

#endif
