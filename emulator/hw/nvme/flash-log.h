/*
 * What the flash device tells: a vendor log page, counters as JSON, and a
 * stream of these.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Runs under the big QEMU lock.
 */

#ifndef HW_NVME_FLASH_LOG_H
#define HW_NVME_FLASH_LOG_H

#include "nvme.h"

#define NVME_LOG_FLASH      0xf0    /* vendor: counters */

/* ctrl.c: len bytes of the log page, from that offset on.  A status. */
uint16_t nvme_flash_log(NvmeCtrl *n, NvmeRequest *req, uint32_t len,
                        uint64_t off);

/* Health, for the fields of standard and OCP log pages. */
typedef struct NvmeFlashHealth {
    uint64_t read_bytes;        /* from media */
    uint64_t written_bytes;     /* to media, padding and copies included */
    uint64_t errors;            /* commands that met unreadable blocks */
    uint64_t starts;            /* of the drive */
    uint64_t cuts;              /* of its power, without a shutdown notice */
    uint8_t spare;              /* percent that is left, if flash is set */
    uint8_t spare_threshold;    /* ... below which the host is warned */
    uint8_t used;               /* percent of the life that it is made for */
    uint64_t life;              /* 10^9 bytes that this life takes; 0: any */
    bool flash;                 /* a namespace on flash was added */
} NvmeFlashHealth;

/* ctrl.c: add what the flash of this namespace knows. */
void nvme_flash_health(NvmeNamespace *ns, NvmeFlashHealth *h);

/* flash.c: the same as JSON, in one line (to be freed). */
char *nvme_flash_json(struct NvmeFlash *f);

/*
 * flash.c: a line to that character device at each interval.  open refuses
 * what cannot be one; start: the device is open.
 */
bool nvme_flash_stream_open(struct NvmeFlash *f, const char *chardev,
                            uint32_t interval_ms, Error **errp);
void nvme_flash_stream_start(struct NvmeFlash *f);
void nvme_flash_stream_stop(struct NvmeFlash *f);

#endif
