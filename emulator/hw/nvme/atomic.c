/*
 * Writes that are atomic.  See atomic.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"

#include "atomic.h"

/* Limits are as Identify has them: 0 is a block, and for a boundary none. */
static bool nvme_crosses(const NvmeNamespace *ns, uint16_t boundary,
                         uint64_t slba, uint32_t nlb)
{
    uint64_t offset = ns->params.atomic.nabo, size = (uint64_t)boundary + 1;

    if (!boundary || nlb <= 1) {
        return false;
    }
    /* what lies before the offset has a boundary there */
    slba += size - offset;
    return slba / size != (slba + nlb - 1) / size;
}

bool nvme_is_atomic(const NvmeCtrl *n, const NvmeNamespace *ns, uint64_t slba,
                    uint32_t nlb)
{
    const NvmeNamespaceAtomic *own = &ns->params.atomic;

    if (nlb <= n->atomic.atomic_max_write_size) {
        return true;
    }
    return own->nawun && nlb <= (n->dn ? own->nawupf : own->nawun) + 1u &&
           !nvme_crosses(ns, n->dn ? own->nabspf : own->nabsn, slba, nlb);
}

bool nvme_is_atomic_in_cut(const NvmeCtrl *n, const NvmeNamespace *ns,
                           uint64_t slba, uint32_t nlb)
{
    const NvmeNamespaceAtomic *own = &ns->params.atomic;

    if (nlb <= le16_to_cpu(n->id_ctrl.awupf) + 1u) {
        return true;
    }
    return nlb <= own->nawupf + 1u && !nvme_crosses(ns, own->nabspf, slba, nlb);
}

bool nvme_atomic_suits(const NvmeNamespace *ns, const NvmeCtrl *n, Error **errp)
{
    const NvmeNamespaceAtomic *own = &ns->params.atomic;
    const NvmeParams *p = &n->params;

    if (own->nawun && own->nawun < p->atomic_awun) {
        error_setg(errp, "atomic.nawun is %" PRIu16 ": expected 0, or at least "
                   "atomic.awun (%" PRIu16 ")", own->nawun, p->atomic_awun);
    } else if (own->nawun && own->nawupf < p->atomic_awupf) {
        error_setg(errp, "atomic.nawupf is %" PRIu16 ": expected at least "
                   "atomic.awupf (%" PRIu16 ")", own->nawupf, p->atomic_awupf);
    } else {
        return true;
    }
    return false;
}

static bool nvme_atomic_fits(const NvmeNamespaceAtomic *own, Error **errp)
{
    if (own->nawupf > own->nawun) {
        error_setg(errp, "atomic.nawupf is %" PRIu16 ": expected at most "
                   "atomic.nawun (%" PRIu16 ")", own->nawupf, own->nawun);
    } else if (own->nabsn && own->nabsn < own->nawun) {
        error_setg(errp, "atomic.nabsn is %" PRIu16 ": expected 0, or at least "
                   "atomic.nawun (%" PRIu16 ")", own->nabsn, own->nawun);
    } else if (own->nabspf && own->nabspf < own->nawupf) {
        error_setg(errp, "atomic.nabspf is %" PRIu16 ": expected 0, or at "
                   "least atomic.nawupf (%" PRIu16 ")", own->nabspf,
                   own->nawupf);
    } else if (own->nabo > own->nabsn || own->nabo > own->nabspf) {
        error_setg(errp, "atomic.nabo is %" PRIu16 ": expected at most "
                   "atomic.nabsn (%" PRIu16 ") and atomic.nabspf (%" PRIu16
                   ")", own->nabo, own->nabsn, own->nabspf);
    } else {
        return true;
    }
    return false;
}

bool nvme_ns_init_atomic(NvmeNamespace *ns, Error **errp)
{
    const NvmeNamespaceAtomic *own = &ns->params.atomic;
    NvmeIdNs *id_ns = &ns->id_ns;

    if (!nvme_atomic_fits(own, errp)) {
        return false;
    }
    for (uint32_t i = 0; i < NVME_MAX_CONTROLLERS; i++) {
        NvmeCtrl *n = nvme_subsys_ctrl(ns->subsys, i);

        if (n && !nvme_atomic_suits(ns, n, errp)) {
            return false;
        }
    }
    if (own->nawun) {
        id_ns->nsfeat |= NVME_ID_NS_NSFEAT_NSABPNS;
        id_ns->nawun = cpu_to_le16(own->nawun);
        id_ns->nawupf = cpu_to_le16(own->nawupf);
        id_ns->nabsn = cpu_to_le16(own->nabsn);
        id_ns->nabspf = cpu_to_le16(own->nabspf);
        id_ns->nabo = cpu_to_le16(own->nabo);
        ns->subsys->atomic_writes = true;
    }
    return true;
}
