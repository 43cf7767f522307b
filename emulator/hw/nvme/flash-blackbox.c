/*
 * The black box.  See flash-blackbox.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Above flash-io.h, flash-fault.h and the FTL (flash/ftl/ftl.h), which does all
 * the work: here requests become commands on logical blocks.  Dataset
 * Management and Write Zeroes unmap; blocks without data read as zeroes.
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qapi/error.h"

#include "atomic.h"
#include "flash-blackbox.h"
#include "flash-fault.h"
#include "flash-fdp.h"
#include "flash/ftl/ftl.h"
#include "flash-io.h"
#include "flash-ns.h"

static Ftl *ftl_of(const NvmeRequest *req)
{
    return req->ns->flash->ftl;
}

static uint16_t nvme_blackbox_check_bounds(const NvmeNamespace *ns,
                                           uint64_t slba, uint64_t nlb)
{
    uint64_t size = le64_to_cpu(ns->id_ns.nsze);

    return slba > size || nlb > size - slba ? NVME_LBA_RANGE | NVME_DNR :
                                              NVME_SUCCESS;
}

/* Reads. */

/* The instant at which a read takes what the blocks hold. */
static uint16_t nvme_blackbox_read_ended(NvmeRequest *req, const FlashCmd *cmd)
{
    NvmeCtrl *n = nvme_ctrl(req);
    size_t len = nvme_l2b(req->ns, cmd->nlb);
    g_autofree uint8_t *data = NULL, *want = NULL;
    uint16_t status;

    if (ftl_bad(ftl_of(req), cmd->block, cmd->nlb)) {
        return NVME_UNRECOVERED_READ | NVME_DNR;
    }
    if (req->cmd.opcode == NVME_CMD_VERIFY) {
        return NVME_SUCCESS;
    }
    data = g_malloc(len);
    ftl_copy(ftl_of(req), cmd->block, cmd->nlb, data);
    if (req->cmd.opcode == NVME_CMD_READ) {
        return nvme_bounce_data(n, data, len, NVME_TX_DIRECTION_FROM_DEVICE,
                                req);
    }
    want = g_malloc(len);
    status = nvme_bounce_data(n, want, len, NVME_TX_DIRECTION_TO_DEVICE, req);
    if (!status && memcmp(want, data, len)) {
        status = NVME_CMP_FAILURE | NVME_DNR;
    }
    return status;
}

static uint16_t nvme_blackbox_do_read(NvmeRequest *req, bool inside)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    NvmeFlash *f = req->ns->flash;
    FlashCmd *cmd;

    nvme_flash_begin(req);
    cmd = nvme_flash_cmd(req, FLASH_CMD_READ, 0);
    cmd->block = le64_to_cpu(rw->slba);
    cmd->nlb = (uint32_t)le16_to_cpu(rw->nlb) + 1;
    nvme_flash_count(req, false, cmd->nlb);
    cmd->fua = le16_to_cpu(rw->control) & NVME_RW_FUA;
    cmd->inside = inside;
    if (nvme_flash_faulty(f, false, cmd->block, cmd->nlb)) {
        req->status = NVME_UNRECOVERED_READ | NVME_DNR;
    }
    nvme_flash_submit(f, cmd);
    return nvme_flash_end(req, NVME_SUCCESS);
}

static uint16_t nvme_blackbox_read(NvmeCtrl *n, NvmeRequest *req)
{
    return nvme_blackbox_do_read(req, false);
}

/* Compare and Verify cost a read. */
static uint16_t nvme_blackbox_check(NvmeCtrl *n, NvmeRequest *req)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    uint32_t nlb = (uint32_t)le16_to_cpu(rw->nlb) + 1;
    uint16_t status = nvme_check_range(n, req, le64_to_cpu(rw->slba), nlb);

    if (!status && req->cmd.opcode == NVME_CMD_COMPARE) {
        status = nvme_map_dptr(n, &req->sg, nvme_l2b(req->ns, nlb), &req->cmd);
    }
    return status ? status : nvme_blackbox_do_read(req, true);
}

/* Writes. */

/*
 * What a file system knows of a write, as the artifact of "We Ain't Afraid of
 * No File Fragmentation" (FAST '24) puts it into bits that are reserved: an
 * append, dwords 2 and 3 say where the file's data before it begins, or an
 * overwrite.
 */
#define HINT_APPEND     (1 << 8)        /* of the control field */
#define HINT_OVERWRITE  (1 << 9)

static void nvme_blackbox_parse_hint(const NvmeRequest *req, FlashCmd *cmd)
{
    const NvmeRwCmd *rw = (const NvmeRwCmd *)&req->cmd;
    uint16_t control = le16_to_cpu(rw->control);

    cmd->hinted = control & (HINT_APPEND | HINT_OVERWRITE);
    cmd->near = cmd->block;
    if (control & HINT_APPEND) {
        cmd->near = le32_to_cpu(rw->cdw2) |
                    (uint64_t)le32_to_cpu(rw->cdw3) << 32;
        cmd->further = 1;
    }
}

static uint16_t nvme_blackbox_write(NvmeCtrl *n, NvmeRequest *req)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    NvmeNamespace *ns = req->ns;
    uint64_t slba = le64_to_cpu(rw->slba);
    uint32_t nlb = (uint32_t)le16_to_cpu(rw->nlb) + 1;
    uint16_t status = nvme_check_range(n, req, slba, nlb);
    FlashCmd *cmd;
    uint8_t *data;

    if (status) {
        return status;
    }
    if (nvme_flash_faulty(ns->flash, true, slba, nlb)) {
        return NVME_WRITE_FAULT | NVME_DNR;
    }
    status = nvme_map_dptr(n, &req->sg, nvme_l2b(ns, nlb), &req->cmd);
    if (status) {
        return status;
    }
    /* freed by the model, which knows no glib */
    data = malloc(nvme_l2b(ns, nlb));
    status = data ? nvme_flash_fetch(req, nlb, data, NULL) :
                    NVME_INTERNAL_DEV_ERROR;
    nvme_sg_unmap(&req->sg);
    if (status) {
        free(data);
        return status;
    }
    nvme_flash_begin(req);
    nvme_flash_count(req, true, nlb);
    cmd = nvme_flash_cmd(req, FLASH_CMD_WRITE, 0);
    cmd->block = slba;
    cmd->nlb = nlb;
    cmd->data = data;
    cmd->fua = le16_to_cpu(rw->control) & NVME_RW_FUA;
    cmd->whole = nlb > 1 && nvme_is_atomic_in_cut(n, ns, slba, nlb);
    if (ns->flash->hints) {
        nvme_blackbox_parse_hint(req, cmd);
    }
    if (ns->endgrp->fdp.enabled) {
        cmd->handle = nvme_flash_fdp_handle(req);
    }
    nvme_flash_submit(ns->flash, cmd);
    return nvme_flash_end(req, NVME_SUCCESS);
}

/* Trims. */

static void nvme_blackbox_trim(NvmeRequest *req, uint64_t slba, uint32_t nlb)
{
    FlashCmd *cmd = nvme_flash_cmd(req, FLASH_CMD_TRIM, 0);

    cmd->block = slba;
    cmd->nlb = nlb;
    nvme_flash_submit(req->ns->flash, cmd);
}

static uint16_t nvme_blackbox_write_zeroes(NvmeRequest *req)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    uint64_t slba = le64_to_cpu(rw->slba);
    uint32_t nlb = (uint32_t)le16_to_cpu(rw->nlb) + 1;
    uint16_t status = nvme_blackbox_check_bounds(req->ns, slba, nlb);

    if (status) {
        return status;
    }
    if (nvme_flash_faulty(req->ns->flash, true, slba, nlb)) {
        return NVME_WRITE_FAULT | NVME_DNR;
    }
    nvme_flash_begin(req);
    nvme_blackbox_trim(req, slba, nlb);
    return nvme_flash_end(req, NVME_SUCCESS);
}

/* All of the ranges, or none when one of them is wrong. */
static uint16_t nvme_blackbox_dsm(NvmeCtrl *n, NvmeRequest *req)
{
    NvmeDsmCmd *dsm = (NvmeDsmCmd *)&req->cmd;
    uint32_t nr = (le32_to_cpu(dsm->nr) & 0xff) + 1;
    size_t len = nr * sizeof(NvmeDsmRange);
    g_autofree NvmeDsmRange *range = g_malloc(len);
    uint16_t status = nvme_map_dptr(n, &req->sg, len, &req->cmd);

    if (!status) {
        status = nvme_bounce_data(n, range, len, NVME_TX_DIRECTION_TO_DEVICE,
                                  req);
        nvme_sg_unmap(&req->sg);
    }
    for (uint32_t i = 0; !status && i < nr; i++) {
        status = nvme_blackbox_check_bounds(req->ns, le64_to_cpu(range[i].slba),
                                            le32_to_cpu(range[i].nlb));
    }
    if (status || !(le32_to_cpu(dsm->attributes) & NVME_DSMGMT_AD)) {
        return status;
    }
    nvme_flash_begin(req);
    for (uint32_t i = 0; i < nr; i++) {
        nvme_blackbox_trim(req, le64_to_cpu(range[i].slba),
                           le32_to_cpu(range[i].nlb));
    }
    return nvme_flash_end(req, NVME_SUCCESS);
}

/* Reads and flushes come on other ways. */
static bool nvme_blackbox_exec_other(NvmeCtrl *n, NvmeRequest *req,
                                     uint16_t *status)
{
    switch (req->cmd.opcode) {
    case NVME_CMD_WRITE:
        *status = nvme_blackbox_write(n, req);
        return true;
    case NVME_CMD_WRITE_ZEROES:
        *status = nvme_blackbox_write_zeroes(req);
        return true;
    case NVME_CMD_DSM:
        *status = nvme_blackbox_dsm(n, req);
        return true;
    case NVME_CMD_COMPARE:
    case NVME_CMD_VERIFY:
        *status = nvme_blackbox_check(n, req);
        return true;
    case NVME_CMD_COPY:
        *status = NVME_INVALID_OPCODE | NVME_DNR;
        return true;
    default:
        return false;
    }
}

/* Power, faults, what it tells. */

/* The image may have been changed from outside. */
static bool nvme_blackbox_load(NvmeNamespace *ns)
{
    NvmeFlash *f = ns->flash;

    if (!ftl_load(f->ftl)) {
        error_report("flash.media: damaged flash image: it cannot be of the "
                     "mapping '%s'", ftl_name(f->ftl));
        return false;
    }
    return true;
}

static uint16_t nvme_blackbox_fail(NvmeNamespace *ns, uint64_t lba,
                                   bool offline)
{
    return NVME_INVALID_FIELD;      /* there is no zone to fail */
}

static void nvme_blackbox_print_handles(const NvmeFlash *f, GString *json)
{
    g_string_append(json, ",\"handles\":[");
    for (uint32_t i = 0; i < f->ftl_config.handles; i++) {
        const FtlHandle *h = ftl_handle(f->ftl, i);

        g_string_append_printf(json, "%s{\"host\":%" PRIu64
                               ",\"moved\":%" PRIu64
                               ",\"write_amplification\":%.4f}",
                               i ? "," : "", h->host, h->moved,
                               h->host ? (double)(h->host + h->moved) / h->host :
                                         0);
    }
    g_string_append(json, "]");
}

static void nvme_blackbox_print(const NvmeNamespace *ns, GString *json)
{
    const Ftl *ftl = ns->flash->ftl;
    const FtlStats *s = ftl_stats(ftl);
    FtlWear wear = ftl_wear(ftl);

    g_string_append_printf(json, ",\"ftl\":{\"mapping\":\"%s\""
                           ",\"logical_blocks\":%" PRIu64
                           ",\"free_blocks\":%" PRIu64
                           ",\"map_bytes\":%" PRIu64
                           ",\"erases_least\":%" PRIu32
                           ",\"erases_most\":%" PRIu32,
                           ftl_name(ftl), ns->flash->ftl_config.logical,
                           s->free_blocks, ftl_map_bytes(ftl), wear.least,
                           wear.most);
    for (const FtlCounter *c = ftl_counters; c->name; c++) {
        g_string_append_printf(json, ",\"%s\":%" PRIu64, c->name,
                               ftl_count(s, c));
    }
    if (ns->flash->ftl_config.handles) {
        nvme_blackbox_print_handles(ns->flash, json);
    }
    g_string_append(json, "}");
}

/* Set-up. */

static uint64_t nvme_blackbox_bytes(const NvmeNamespace *ns, uint64_t flash)
{
    uint32_t lbasz = ns->blkconf.logical_block_size;

    return ftl_logical(flash / lbasz, ns->flash_conf->spare) * lbasz;
}

static bool nvme_blackbox_fits(const NvmeNamespace *ns, Error **errp)
{
    const NvmeFlash *f = ns->flash_conf;
    const FtlConfig *c = &f->ftl_config;

    if (ns->params.zoned) {
        error_setg(errp, "flash.personality=blackbox needs zoned=off");
    } else if (ns->params.ms) {
        error_setg(errp, "flash.personality=blackbox has no metadata: ms=0");
    } else if (c->gc_begin > 100 || c->gc_urgent > 100 ||
               c->gc_begin > c->gc_urgent) {
        error_setg(errp, "flash.gc_begin (%" PRIu32 ") must be at most "
                   "flash.gc_urgent (%" PRIu32 "), and that at most 100",
                   c->gc_begin, c->gc_urgent);
    } else if (f->bytes / ns->lbasz > INT32_MAX) {
        error_setg(errp, "flash.personality=blackbox: flash.size must be below "
                   "2^31 logical blocks");
    } else if (!c->map_pages) {
        error_setg(errp, "flash.map_pages must be at least 1");
    } else if (!c->gc_gain) {
        error_setg(errp, "flash.gc_gain must be at least 1");
    } else if (c->apart && !ns->endgrp->fdp.enabled) {
        error_setg(errp, "flash.fdp_persistent needs a subsystem with fdp=on");
    } else {
        return true;
    }
    return false;
}

/* An erase block of the FTL is one of each plane on each of zone_dies dies. */
static void nvme_blackbox_shape(const NvmeNamespace *ns, FlashShape *shape,
                                FlashDev *dev)
{
    const NvmeFlash *f = ns->flash_conf;
    uint64_t blocks = (uint64_t)shape->zone_dies * shape->pages_per_block *
                      shape->planes * shape->page_size / ns->lbasz;
    uint64_t logical = ftl_logical(f->bytes / ns->lbasz, f->spare);

    shape->zone_blocks = shape->zone_cap = blocks;
    shape->nr_zones = blocks ? f->bytes / ns->lbasz / blocks : 0;
    shape->meta_size = FTL_OOB;
    shape->ext_size = shape->nr_zones ?
                      ROUND_UP(DIV_ROUND_UP(logical * FTL_TRIM,
                                            shape->nr_zones), FTL_TRIM) : 0;
    pstrcpy(shape->drive, sizeof(shape->drive), f->ftl_config.mapping);
    if (ns->endgrp->fdp.enabled) {
        snprintf(shape->drive, sizeof(shape->drive), "%.4s fdp%u-%u",
                 f->ftl_config.mapping, ns->endgrp->fdp.nruh,
                 f->ftl_config.apart);
    }
}

static char *nvme_blackbox_start(NvmeNamespace *ns)
{
    NvmeFlash *f = ns->flash;
    char *why = ns->endgrp->fdp.enabled ? nvme_flash_fdp_start(ns) : NULL;

    if (why) {
        return why;
    }
    f->ftl_config.logical = ftl_logical(f->bytes / ns->lbasz, f->spare);
    ns->id_ns.mssrl = 0;
    ns->id_ns.mcl = 0;
    ns->id_ns.msrc = 0;
    return ftl_open(&f->ftl, &f->dev, &f->ftl_config);
}

static void nvme_blackbox_stop(NvmeNamespace *ns)
{
    NvmeFlash *f = ns->flash_conf;

    if (f->ftl) {
        ftl_free(f->ftl);
        f->ftl = NULL;
    }
}

static bool nvme_blackbox_whole(const NvmeNamespace *ns)
{
    return ftl_writes_whole(ns->flash_conf->ftl_config.mapping);
}

/* Nothing sets req->opaque here. */
static uint16_t nvme_blackbox_resume(NvmeRequest *req)
{
    g_assert_not_reached();
}

const NvmeFlashPersonality nvme_flash_blackbox = {
    .name = "blackbox",
    .oncs = NVME_ONCS_DSM | NVME_ONCS_WRITE_ZEROES | NVME_ONCS_COMPARE |
            NVME_ONCS_VERIFY,
    .bytes = nvme_blackbox_bytes,
    .check = nvme_blackbox_fits,
    .shape = nvme_blackbox_shape,
    .whole = nvme_blackbox_whole,
    .start = nvme_blackbox_start,
    .stop = nvme_blackbox_stop,
    .load = nvme_blackbox_load,
    .fail = nvme_blackbox_fail,
    .read = nvme_blackbox_read,
    .exec_other = nvme_blackbox_exec_other,
    .read_ended = nvme_blackbox_read_ended,
    .resume = nvme_blackbox_resume,
    .print = nvme_blackbox_print,
};
