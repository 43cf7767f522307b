/*
 * A journal of the flash of one namespace, and the port by which the guest adds
 * notes to it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Runs under the big QEMU lock.
 */

#ifndef HW_NVME_FLASH_JOURNAL_PORT_H
#define HW_NVME_FLASH_JOURNAL_PORT_H

#include "nvme.h"

/* flash.c: refuse what a journal cannot describe. */
bool nvme_flash_journal_check(const NvmeNamespace *ns, Error **errp);

/* flash.c: the device is open, its image empty; NULL or what is wrong. */
char *nvme_flash_journal_start(struct NvmeFlash *f, const char *path);
void nvme_flash_journal_stop(struct NvmeFlash *f);

/* flash.c: the namespace goes, and with it the port. */
void nvme_flash_journal_free(struct NvmeFlash *f);

#endif
