/*
 * Writes that are atomic: which ones the controller and the namespace promise.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The controller's limits (AWUN, AWUPF) are upstream's.  A namespace may have
 * larger ones of its own (NAWUN, NAWUPF), for writes that cross no boundary
 * (NABSN, NABSPF, NABO).  The properties are those of QEMU 10.1.
 */

#ifndef HW_NVME_ATOMIC_H
#define HW_NVME_ATOMIC_H

#include "nvme.h"

/* ns.c: Identify shows what the namespace promises; false: it cannot be. */
bool nvme_ns_init_atomic(NvmeNamespace *ns, Error **errp);

/* flash.c: may the controller, which promises something too, have it? */
bool nvme_atomic_suits(const NvmeNamespace *ns, const NvmeCtrl *n, Error **errp);

/* ctrl.c: do other commands see all of the write, or nothing? */
bool nvme_is_atomic(const NvmeCtrl *n, const NvmeNamespace *ns, uint64_t slba,
                    uint32_t nlb);

/* flash-blackbox.c: is it on the drive wholly or not at all after a cut? */
bool nvme_is_atomic_in_cut(const NvmeCtrl *n, const NvmeNamespace *ns,
                           uint64_t slba, uint32_t nlb);

#endif
