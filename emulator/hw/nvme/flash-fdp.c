/*
 * Flexible data placement on modelled flash.  See flash-fdp.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Above flash-io.h and the FTL (flash/ftl/ftl.h).
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qapi/error.h"

#include "flash-fdp.h"
#include "flash-io.h"
#include "flash-ns.h"

/* Bytes of an erase block, on all dies: what a reclaim unit is. */
static uint64_t nvme_flash_fdp_unit(const NvmeFlash *f)
{
    const FlashShape *s = &f->dev.media.shape;

    return s->zone_cap * s->block_size;
}

/* Events. */

static NvmeFdpEvent *nvme_flash_fdp_log(NvmeNamespace *ns, uint16_t ruhid,
                                        uint8_t type)
{
    NvmeEnduranceGroup *endgrp = ns->endgrp;
    NvmeRuHandle *ruh = &endgrp->fdp.ruhs[ruhid];
    NvmeFdpEvent *e;
    NvmeCtrl *n = NULL;

    g_assert(ruhid < endgrp->fdp.nruh);
    for (uint32_t i = 0; !n && i < NVME_MAX_CONTROLLERS; i++) {
        n = nvme_subsys_ctrl(ns->subsys, i);    /* all have the same time */
    }
    if (!n || !((ruh->event_filter >> nvme_fdp_evf_shifts[type]) & 1)) {
        return NULL;
    }
    e = nvme_fdp_alloc_event(n, type < FDP_EVT_MEDIA_REALLOC ?
                                &endgrp->fdp.host_events :
                                &endgrp->fdp.ctrl_events);
    e->type = type;
    e->flags = FDPEF_NSIDV | FDPEF_LV;
    e->nsid = cpu_to_le32(ns->params.nsid);
    e->ruhid = ruhid;
    for (uint16_t ph = 0; ph < ns->fdp.nphs; ph++) {
        if (ns->fdp.phs[ph] == ruhid) {
            e->flags |= FDPEF_PIV;
            e->pid = cpu_to_le16(ph);
        }
    }
    return e;
}

/* Of what was moved the host hears only if it may lie among others' now. */
static void nvme_flash_fdp_event(void *owner, const FtlEvent *event)
{
    NvmeNamespace *ns = ((NvmeFlash *)owner)->ns;
    uint8_t type = ns->endgrp->fdp.ruhs[event->handle].ruht;
    NvmeFdpEvent *e;
    uint8_t *moved;

    if (event->kind == FTL_PADDED) {
        nvme_flash_fdp_log(ns, event->handle, FDP_EVT_RUH_IMPLICIT_RU_CHANGE);
        return;
    }
    g_assert(event->kind == FTL_MOVED && event->nlb);
    e = type == NVME_RUHT_INITIALLY_ISOLATED ?
        nvme_flash_fdp_log(ns, event->handle, FDP_EVT_MEDIA_REALLOC) : NULL;
    if (e) {
        moved = (uint8_t *)e->type_specific;
        moved[0] = 1;                           /* there is a first block */
        stw_le_p(moved + 2, MIN(event->nlb, UINT16_MAX));
        stq_le_p(moved + 4, event->lba);
    }
}

/* What ctrl.c calls. */

static void nvme_flash_fdp_sync_ns(NvmeNamespace *ns)
{
    NvmeEnduranceGroup *endgrp = ns->endgrp;
    NvmeFlash *f = ns->flash;
    const FlashShape *s = &f->dev.media.shape;
    const FlashStats *stats = &f->dev.stats;

    g_assert(f->ftl_config.handles == endgrp->fdp.nruh);
    nvme_flash_run(f);
    nvme_flash_arm(f);
    for (uint16_t i = 0; i < endgrp->fdp.nruh; i++) {
        endgrp->fdp.ruhs[i].rus[0].ruamw = ftl_handle_left(f->ftl, i);
    }
    endgrp->fdp.hbmw = ftl_stats(f->ftl)->host * s->block_size;
    endgrp->fdp.mbmw = stats->programmed_bytes;
    endgrp->fdp.mbe = stats->erases * s->planes * s->page_size *
                      s->pages_per_block;
}

void nvme_flash_fdp_sync(NvmeSubsystem *subsys)
{
    for (uint32_t i = 1; i <= NVME_MAX_NAMESPACES; i++) {
        NvmeNamespace *ns = nvme_subsys_ns(subsys, i);

        if (ns && ns->flash && ns->endgrp->fdp.enabled) {
            nvme_flash_fdp_sync_ns(ns);
        }
    }
}

/* The counters are those of one drive, and so are the reclaim units. */
bool nvme_flash_fdp_suits(NvmeNamespace *ns, Error **errp)
{
    for (uint32_t i = 1; i <= NVME_MAX_NAMESPACES; i++) {
        NvmeNamespace *other = nvme_subsys_ns(ns->subsys, i);

        if (other && other != ns && (ns->flash || other->flash)) {
            error_setg(errp, "flash.media: in a subsystem with fdp=on the "
                       "namespace must be alone, but there is namespace %"
                       PRIu32 ", too", i);
            return false;
        }
    }
    return true;
}

void nvme_flash_fdp_renew(NvmeNamespace *ns, uint16_t ruhid)
{
    g_assert(ruhid < ns->flash->ftl_config.handles);
    nvme_flash_run(ns->flash);
    nvme_flash_enter(ns->flash);
    ftl_handle_renew(ns->flash->ftl, ruhid);
    nvme_flash_leave(ns->flash);
    nvme_flash_arm(ns->flash);
}

/* What the personality calls. */

uint16_t nvme_flash_fdp_handle(const NvmeRequest *req)
{
    const NvmeRwCmd *rw = (const NvmeRwCmd *)&req->cmd;
    uint8_t dtype = (le16_to_cpu(rw->control) >> 4) & 0xf;
    uint16_t ph = le16_to_cpu(rw->dspec);
    NvmeNamespace *ns = req->ns;
    NvmeFdpEvent *e;

    if (dtype != NVME_DIRECTIVE_DATA_PLACEMENT) {
        return ns->fdp.phs[0];
    }
    if (ph >= ns->fdp.nphs) {
        e = nvme_flash_fdp_log(ns, ns->fdp.phs[0], FDP_EVT_INVALID_PID);
        if (e) {
            e->flags = FDPEF_PIV | FDPEF_NSIDV;
            e->pid = cpu_to_le16(ph);
        }
        return ns->fdp.phs[0];
    }
    return ns->fdp.phs[ph];
}

char *nvme_flash_fdp_start(NvmeNamespace *ns)
{
    NvmeEnduranceGroup *endgrp = ns->endgrp;
    NvmeFlash *f = ns->flash;
    FtlConfig *c = &f->ftl_config;
    char *why = NULL;

    if (endgrp->fdp.nrg != 1) {
        return asprintf(&why, "flash.media: fdp.nrg is %" PRIu16 ", expected 1: "
                        "a reclaim unit is on all dies",
                        endgrp->fdp.nrg) < 0 ? NULL : why;
    }
    if (endgrp->fdp.runs != nvme_flash_fdp_unit(f)) {
        return asprintf(&why, "flash.media: fdp.runs is %" PRIu64 ", expected %"
                        PRIu64 ": an erase block on all dies",
                        endgrp->fdp.runs,
                        nvme_flash_fdp_unit(f)) < 0 ? NULL : why;
    }
    if (c->apart > endgrp->fdp.nruh) {
        return asprintf(&why, "flash.fdp_persistent is %" PRIu32 ", expected at "
                        "most fdp.nruh (%" PRIu16 ")", c->apart,
                        endgrp->fdp.nruh) < 0 ? NULL : why;
    }
    c->handles = endgrp->fdp.nruh;
    c->event = nvme_flash_fdp_event;
    c->owner = f;
    for (uint16_t i = c->handles - c->apart; i < c->handles; i++) {
        endgrp->fdp.ruhs[i].ruht = NVME_RUHT_PERSISTENTLY_ISOLATED;
    }
    return NULL;
}
