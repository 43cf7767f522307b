/*
 * The zoned personality.  See flash-zns.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Above flash-io.h and flash-fault.h.  A zone of the namespace is one of the
 * model.
 */

#include "qemu/osdep.h"
#include "qapi/error.h"

#include "flash/model/erase.h"
#include "flash-fault.h"
#include "flash-io.h"
#include "flash-ns.h"
#include "flash-personality.h"
#include "flash-zns.h"

/* Reads. */

/* The instant at which a read takes what the blocks hold. */
static uint16_t nvme_flash_serve_read(NvmeRequest *req, uint32_t zone,
                                      uint64_t block, uint32_t nlb)
{
    if (flash_dev_bad(&req->ns->flash->dev, zone, block, nlb)) {
        return NVME_UNRECOVERED_READ | NVME_DNR;
    }
    switch (req->cmd.opcode) {
    case NVME_CMD_READ:
        return nvme_flash_copy_out(req, zone, block, nlb);
    case NVME_CMD_COMPARE:
        return nvme_flash_compare(req, zone, block, nlb);
    default:
        return NVME_SUCCESS;    /* Verify, or one of a copy's sources */
    }
}

static uint16_t nvme_flash_read_ended(NvmeRequest *req, const FlashCmd *cmd)
{
    return nvme_flash_serve_read(req, cmd->zone, cmd->block, cmd->nlb);
}

static uint16_t nvme_flash_zone_read(NvmeCtrl *n, NvmeRequest *req)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    NvmeNamespace *ns = req->ns;
    NvmeFlash *f = ns->flash;
    uint64_t slba = le64_to_cpu(rw->slba);
    uint32_t nlb = (uint32_t)le16_to_cpu(rw->nlb) + 1;
    uint32_t zone = slba / ns->zone_size;
    uint64_t block = slba % ns->zone_size;
    FlashCmd *cmd;

    nvme_flash_begin(req);
    nvme_flash_count(req, false, nlb);
    if (nvme_flash_faulty(f, false, slba, nlb)) {
        req->status = NVME_UNRECOVERED_READ | NVME_DNR;
    }
    if (flash_dev_instant(&f->dev, zone)) {
        f->dev.stats.cmds[FLASH_CMD_READ]++;
        f->dev.stats.read_bytes += nvme_l2b(ns, nlb);
        return nvme_flash_end(req, req->status ? NVME_SUCCESS :
                              nvme_flash_serve_read(req, zone, block, nlb));
    }
    cmd = nvme_flash_cmd(req, FLASH_CMD_READ, zone);
    cmd->block = block;
    cmd->nlb = nlb;
    cmd->fua = le16_to_cpu(rw->control) & NVME_RW_FUA;
    nvme_flash_submit(f, cmd);
    return nvme_flash_end(req, NVME_SUCCESS);
}

/* Writes. */

/* What the write brings: zeroes, what a copy has read, or the host's data. */
static uint16_t nvme_flash_fill_data(NvmeRequest *req, uint32_t nlb,
                                     bool zeroes, uint8_t *data, uint8_t *oob)
{
    NvmeNamespace *ns = req->ns;
    size_t len = nvme_l2b(ns, nlb), mlen = nvme_m2b(ns, nlb);

    if (zeroes) {
        memset(data, 0, len);
        memset(oob, 0, mlen);
        return NVME_SUCCESS;
    }
    if (req->opaque) {
        memcpy(data, req->opaque, len);
        memcpy(oob, req->opaque + len, mlen);
        g_clear_pointer(&req->opaque, g_free);
        return NVME_SUCCESS;
    }
    return nvme_flash_fetch(req, nlb, data, oob);
}

/* A write that takes no time: its data goes from the host to the media. */
static uint16_t nvme_flash_write_now(NvmeRequest *req, NvmeZone *zone,
                                     FlashCmdKind kind, uint32_t nlb,
                                     bool zeroes, bool inside)
{
    NvmeNamespace *ns = req->ns;
    FlashDev *dev = &ns->flash->dev;
    uint64_t lba = le64_to_cpu(((NvmeRwCmd *)&req->cmd)->slba);
    uint32_t idx = lba / ns->zone_size;
    uint16_t status;

    flash_dev_write_begin(dev, idx, nlb);
    status = nvme_flash_fill_data(req, nlb, zeroes,
                                  flash_media_data(&dev->media, lba),
                                  flash_media_oob(&dev->media, lba));
    nvme_sg_unmap(&req->sg);
    if (status) {
        flash_dev_write_undo(dev, idx, nlb);
        return status;
    }
    flash_dev_write_end(dev, kind, idx, nlb);
    zone->w_ptr += nlb;
    nvme_finalize_zoned_write(ns, req);
    nvme_flash_begin(req);
    if (!inside) {
        nvme_flash_count(req, true, nlb);
    }
    return nvme_flash_end(req, NVME_SUCCESS);
}

/* Take the data of a write.  A status; the model frees what it gets. */
static uint16_t nvme_flash_write_fetch(NvmeRequest *req, FlashCmd *cmd,
                                       uint32_t nlb)
{
    uint16_t status;

    /* the model knows no glib */
    cmd->data = malloc(nvme_l2b(req->ns, nlb));
    cmd->oob = malloc(MAX(nvme_m2b(req->ns, nlb), 1));
    status = cmd->data && cmd->oob ?
             nvme_flash_fill_data(req, nlb, false, cmd->data, cmd->oob) :
             NVME_INTERNAL_DEV_ERROR;
    nvme_sg_unmap(&req->sg);
    if (status) {
        free(cmd->data);
        free(cmd->oob);
    }
    return status;
}

static uint16_t nvme_flash_write_queued(NvmeRequest *req, NvmeZone *zone,
                                        FlashCmdKind kind, uint32_t nlb,
                                        bool zeroes, bool inside)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    NvmeNamespace *ns = req->ns;
    NvmeFlash *f = ns->flash;
    uint64_t slba = le64_to_cpu(rw->slba);
    bool window = zone->d.za & NVME_ZA_ZRWA_VALID;
    FlashCmd *cmd = g_new0(FlashCmd, 1);

    if (!zeroes) {
        uint16_t status = nvme_flash_write_fetch(req, cmd, nlb);

        if (status) {
            g_free(cmd);
            return status;
        }
    }
    nvme_flash_begin(req);
    if (!inside) {
        nvme_flash_count(req, true, nlb);
    }
    cmd->kind = kind;
    cmd->zone = slba / ns->zone_size;
    cmd->block = slba % ns->zone_size;
    cmd->nlb = nlb;
    cmd->fua = le16_to_cpu(rw->control) & NVME_RW_FUA;
    cmd->closes = f->auto_closed;
    f->auto_closed = 0;
    nvme_flash_adopt(req, cmd);
    zone->w_ptr += window ? 0 : nlb;
    nvme_finalize_zoned_write(ns, req);
    cmd->inside = inside;
    cmd->window = window;
    cmd->commit = zone->d.wp - zone->d.zslba;
    nvme_flash_submit(f, cmd);
    return nvme_flash_end(req, NVME_SUCCESS);
}

uint16_t nvme_flash_write(NvmeCtrl *n, NvmeRequest *req, NvmeZone *zone,
                          bool append, bool zeroes)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    NvmeNamespace *ns = req->ns;
    uint64_t slba = le64_to_cpu(rw->slba);
    uint32_t nlb = (uint32_t)le16_to_cpu(rw->nlb) + 1;
    bool window = zone->d.za & NVME_ZA_ZRWA_VALID;
    bool inside = zeroes || req->opaque;        /* opaque: a copy's */
    FlashCmdKind kind = append ? FLASH_CMD_APPEND : FLASH_CMD_WRITE;
    uint16_t status;

    if (nvme_flash_faulty(ns->flash, true, slba, nlb)) {
        return NVME_WRITE_FAULT | NVME_DNR;
    }
    if (!inside) {
        status = nvme_map_dptr(n, &req->sg, nvme_l2b(ns, nlb), &req->cmd);
        if (status) {
            return status;
        }
    }
    if (!window && flash_dev_instant(&ns->flash->dev, slba / ns->zone_size)) {
        return nvme_flash_write_now(req, zone, kind, nlb, zeroes, inside);
    }
    return nvme_flash_write_queued(req, zone, kind, nlb, zeroes, inside);
}

/* Copy. */

/* What req->opaque of a copy is until its sources are read. */
typedef struct NvmeFlashCopy {
    uint32_t nr;
    NvmeCopySourceRangeFormat0_2 from[];
} NvmeFlashCopy;

/*
 * Copy reads all of its sources at once.  When the last is there, it becomes
 * a write of what they hold: req->opaque, data and then metadata.
 */
static uint16_t nvme_flash_copy(NvmeCtrl *n, NvmeRequest *req)
{
    NvmeCopyCmd *copy = (NvmeCopyCmd *)&req->cmd;
    NvmeNamespace *ns = req->ns;
    uint32_t nr = copy->nr + 1, total = 0;
    size_t len = nr * sizeof(NvmeCopySourceRangeFormat0_2);
    g_autofree NvmeFlashCopy *c = g_malloc(sizeof(*c) + len);
    uint16_t status;

    if (copy->control[0] & 0xf) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    if (nr > ns->id_ns.msrc + 1) {
        return NVME_CMD_SIZE_LIMIT | NVME_DNR;
    }
    c->nr = nr;
    status = nvme_map_dptr(n, &req->sg, len, &req->cmd);
    if (!status) {
        status = nvme_bounce_data(n, c->from, len, NVME_TX_DIRECTION_TO_DEVICE,
                                  req);
        nvme_sg_unmap(&req->sg);
    }
    for (uint32_t i = 0; !status && i < nr; i++) {
        uint32_t nlb = le16_to_cpu(c->from[i].nlb) + 1;

        total += nlb;
        if (nlb > le16_to_cpu(ns->id_ns.mssrl) ||
            total > MIN(le32_to_cpu(ns->id_ns.mcl), UINT16_MAX + 1u)) {
            return NVME_CMD_SIZE_LIMIT | NVME_DNR;
        }
        status = nvme_check_range(n, req, le64_to_cpu(c->from[i].slba), nlb);
    }
    if (status) {
        return status;
    }

    nvme_flash_begin(req);
    nvme_flash_hold(req, nvme_l2b(ns, total) + nvme_m2b(ns, total));
    ((NvmeRwCmd *)&req->cmd)->nlb = cpu_to_le16(total - 1);
    req->opaque = c;
    for (uint32_t i = 0; i < nr; i++) {
        uint64_t slba = le64_to_cpu(c->from[i].slba);
        FlashCmd *cmd = nvme_flash_cmd(req, FLASH_CMD_READ,
                                       slba / ns->zone_size);

        cmd->block = slba % ns->zone_size;
        cmd->nlb = le16_to_cpu(c->from[i].nlb) + 1;
        cmd->inside = true;
        if (nvme_flash_faulty(ns->flash, false, slba, cmd->nlb)) {
            req->status = NVME_UNRECOVERED_READ | NVME_DNR;
        }
        nvme_flash_submit(ns->flash, cmd);
    }
    c = NULL;
    return nvme_flash_end(req, NVME_SUCCESS);
}

static void nvme_flash_copy_sources(NvmeRequest *req)
{
    NvmeNamespace *ns = req->ns;
    uint32_t total = (uint32_t)le16_to_cpu(((NvmeRwCmd *)&req->cmd)->nlb) + 1;
    g_autofree NvmeFlashCopy *c = req->opaque;
    uint8_t *data = g_malloc(nvme_l2b(ns, total) + nvme_m2b(ns, total));
    uint8_t *oob = data + nvme_l2b(ns, total);

    req->opaque = data;
    for (uint32_t i = 0; i < c->nr; i++) {
        uint64_t slba = le64_to_cpu(c->from[i].slba);
        uint32_t nlb = le16_to_cpu(c->from[i].nlb) + 1;

        flash_dev_copy(&ns->flash->dev, slba / ns->zone_size,
                       slba % ns->zone_size, nlb, data, oob);
        data += nvme_l2b(ns, nlb);
        oob += nvme_m2b(ns, nlb);
    }
}

static uint16_t nvme_flash_copy_write(NvmeRequest *req)
{
    uint16_t status = req->status;

    if (!status) {
        nvme_flash_copy_sources(req);
        status = nvme_do_write(nvme_ctrl(req), req, false, false);
    }
    g_clear_pointer(&req->opaque, g_free);
    return status;
}

/* The rest of the NVM command set. */

/*
 * Compare and Verify cost a read.  Deallocate is advice, and a zone's blocks
 * go with its reset.
 */
static bool nvme_flash_zone_exec_other(NvmeCtrl *n, NvmeRequest *req,
                                       uint16_t *status)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    NvmeNamespace *ns = req->ns;
    uint64_t slba = le64_to_cpu(rw->slba);
    uint32_t nlb = (uint32_t)le16_to_cpu(rw->nlb) + 1;
    FlashCmd *cmd;

    switch (req->cmd.opcode) {
    case NVME_CMD_COMPARE:
    case NVME_CMD_VERIFY:
        break;
    case NVME_CMD_DSM:
        *status = NVME_SUCCESS;
        return true;
    case NVME_CMD_COPY:
        *status = nvme_flash_copy(n, req);
        return true;
    default:
        return false;
    }

    *status = nvme_check_range(n, req, slba, nlb);
    if (*status) {
        return true;
    }
    if (req->cmd.opcode == NVME_CMD_COMPARE) {
        *status = nvme_map_dptr(n, &req->sg, nvme_l2b(ns, nlb), &req->cmd);
        if (*status) {
            return true;
        }
    }
    nvme_flash_begin(req);
    nvme_flash_count(req, false, nlb);
    if (nvme_flash_faulty(ns->flash, false, slba, nlb)) {
        req->status = NVME_UNRECOVERED_READ | NVME_DNR;
    }
    cmd = nvme_flash_cmd(req, FLASH_CMD_READ, slba / ns->zone_size);
    cmd->block = slba % ns->zone_size;
    cmd->nlb = nlb;
    cmd->inside = true;
    nvme_flash_submit(ns->flash, cmd);
    *status = nvme_flash_end(req, NVME_SUCCESS);
    return true;
}

/* Zones. */

static void nvme_flash_zone_op(NvmeRequest *req, NvmeZone *zone,
                               FlashCmdKind kind)
{
    FlashCmd *cmd = nvme_flash_cmd(req, kind, zone - req->ns->zone_array);

    cmd->window = kind == FLASH_CMD_COMMIT || zone->d.za & NVME_ZA_ZRWA_VALID;
    cmd->commit = zone->d.wp - zone->d.zslba;
    if (kind == FLASH_CMD_OPEN) {
        cmd->closes = req->ns->flash->auto_closed;
        req->ns->flash->auto_closed = 0;
    }
    nvme_flash_submit(req->ns->flash, cmd);
}

void nvme_flash_auto_close(NvmeNamespace *ns)
{
    ns->flash->auto_closed++;
}

void nvme_flash_open_zone(NvmeRequest *req, NvmeZone *zone)
{
    nvme_flash_zone_op(req, zone, FLASH_CMD_OPEN);
}

void nvme_flash_close_zone(NvmeRequest *req, NvmeZone *zone)
{
    nvme_flash_zone_op(req, zone, FLASH_CMD_CLOSE);
}

void nvme_flash_finish_zone(NvmeRequest *req, NvmeZone *zone)
{
    nvme_flash_zone_op(req, zone, FLASH_CMD_FINISH);
}

void nvme_flash_commit_zone(NvmeRequest *req, NvmeZone *zone)
{
    nvme_flash_zone_op(req, zone, FLASH_CMD_COMMIT);
}

uint16_t nvme_flash_reset(NvmeRequest *req, uint32_t zone_idx, bool all)
{
    NvmeNamespace *ns = req->ns;
    uint32_t first = all ? 0 : zone_idx;
    uint32_t last = all ? ns->num_zones - 1 : zone_idx;
    uint16_t status = NVME_SUCCESS;
    FlashCmd *cmd;

    nvme_flash_begin(req);
    for (uint32_t i = first; i <= last; i++) {
        status = nvme_zrm_reset(ns, &ns->zone_array[i]);
    }
    if (!all && status) {
        return nvme_flash_end(req, status | NVME_DNR);
    }
    cmd = nvme_flash_cmd(req, FLASH_CMD_RESET,
                         all ? FLASH_ALL_ZONES : zone_idx);
    nvme_flash_submit(ns->flash, cmd);
    return nvme_flash_end(req, NVME_SUCCESS);
}

void nvme_flash_zone_state(NvmeNamespace *ns, NvmeZone *zone,
                           NvmeZoneState state)
{
    uint32_t idx = zone - ns->zone_array;
    FlashImageZone *iz = &ns->flash->dev.media.zones[idx];
    bool open = state == NVME_ZONE_STATE_IMPLICITLY_OPEN ||
                state == NVME_ZONE_STATE_EXPLICITLY_OPEN;

    if (state == NVME_ZONE_STATE_READ_ONLY) {
        iz->flags |= FLASH_ZONE_READ_ONLY;
        flash_media_changed(&ns->flash->dev.media, idx);
    } else if (state == NVME_ZONE_STATE_OFFLINE) {
        iz->flags |= FLASH_ZONE_OFFLINE;
        flash_media_changed(&ns->flash->dev.media, idx);
    } else if (state == NVME_ZONE_STATE_CLOSED &&
               zone->d.za & NVME_ZA_ZD_EXT_VALID) {
        flash_erase_end(&ns->flash->dev.media, idx);
        iz->flags |= FLASH_ZONE_EXT_VALID;
        flash_media_changed(&ns->flash->dev.media, idx);
    }
    /* an implicitly opened zone pays with its first write */
    if (!open || state == NVME_ZONE_STATE_EXPLICITLY_OPEN) {
        ns->flash->dev.zones[idx].open = open;
    }
}

uint8_t *nvme_flash_extensions(NvmeNamespace *ns)
{
    return ns->flash->dev.media.ext;
}

static uint32_t nvme_flash_windows(const NvmeNamespace *ns)
{
    if (!ns->params.zrwas) {
        return 0;
    }
    return ns->params.numzrwa ? ns->params.numzrwa : ns->num_zones;
}

static void nvme_flash_load_zone(NvmeNamespace *ns, uint32_t idx)
{
    const FlashImageZone *iz = &ns->flash->dev.media.zones[idx];
    NvmeZone *zone = &ns->zone_array[idx];
    bool active = !ns->params.max_active_zones ||
                  ns->nr_active_zones < ns->params.max_active_zones;
    bool part;

    if (iz->flags & FLASH_ZONE_WINDOW && !(active && ns->zns.numzrwa)) {
        flash_dev_end_window(&ns->flash->dev, idx);
    }
    part = iz->wp || iz->flags & (FLASH_ZONE_EXT_VALID | FLASH_ZONE_WINDOW);
    memset(&zone->entry, 0, sizeof(zone->entry));
    zone->d.za = iz->flags & FLASH_ZONE_EXT_VALID ? NVME_ZA_ZD_EXT_VALID : 0;
    zone->w_ptr = zone->d.wp = zone->d.zslba + iz->wp;

    if (iz->flags & FLASH_ZONE_OFFLINE) {
        nvme_set_zone_state(zone, NVME_ZONE_STATE_OFFLINE);
    } else if (iz->flags & FLASH_ZONE_READ_ONLY) {
        nvme_set_zone_state(zone, NVME_ZONE_STATE_READ_ONLY);
    } else if (!part && !(iz->flags & FLASH_ZONE_FINISHED)) {
        nvme_set_zone_state(zone, NVME_ZONE_STATE_EMPTY);
    } else if (part && iz->wp < ns->zone_capacity &&
               !(iz->flags & FLASH_ZONE_FINISHED) && active) {
        if (iz->flags & FLASH_ZONE_WINDOW) {
            zone->d.za |= NVME_ZA_ZRWA_VALID;
            ns->zns.numzrwa--;
        }
        nvme_set_zone_state(zone, NVME_ZONE_STATE_CLOSED);
        nvme_aor_inc_active(ns);
        QTAILQ_INSERT_TAIL(&ns->closed_zones, zone, entry);
    } else {
        if (!(iz->flags & FLASH_ZONE_FINISHED) && iz->wp < ns->zone_capacity) {
            /* more than may be active: the controller finishes them */
            ns->flash->dev.media.zones[idx].flags |= FLASH_ZONE_FINISHED |
                                                     FLASH_ZONE_BY_DRIVE;
            ns->flash->dev.zones[idx].finished = true;
            flash_media_changed(&ns->flash->dev.media, idx);
        }
        if (iz->flags & FLASH_ZONE_BY_DRIVE) {
            zone->d.za |= NVME_ZA_FINISHED_BY_CTLR;
        }
        nvme_set_zone_state(zone, NVME_ZONE_STATE_FULL);
        QTAILQ_INSERT_TAIL(&ns->full_zones, zone, entry);
    }
}

/* What is on flash becomes what the host sees. */
void nvme_flash_load_zones(NvmeNamespace *ns)
{
    QTAILQ_INIT(&ns->exp_open_zones);
    QTAILQ_INIT(&ns->imp_open_zones);
    QTAILQ_INIT(&ns->closed_zones);
    QTAILQ_INIT(&ns->full_zones);
    ns->nr_open_zones = ns->nr_active_zones = 0;
    ns->zns.numzrwa = nvme_flash_windows(ns);
    for (uint32_t i = 0; i < ns->num_zones; i++) {
        nvme_flash_load_zone(ns, i);
    }
}

static bool nvme_flash_zones_on(NvmeNamespace *ns)
{
    nvme_flash_load_zones(ns);
    return true;
}

/* A zone fails: its resources are free, its state is for good. */
static void nvme_flash_fail_zone(NvmeNamespace *ns, uint32_t idx,
                                 NvmeZoneState state)
{
    NvmeZone *zone = &ns->zone_array[idx];

    switch (nvme_get_zone_state(zone)) {
    case NVME_ZONE_STATE_IMPLICITLY_OPEN:
    case NVME_ZONE_STATE_EXPLICITLY_OPEN:
        nvme_aor_dec_open(ns);
        /* fall through */
    case NVME_ZONE_STATE_CLOSED:
        nvme_aor_dec_active(ns);
        if (zone->d.za & NVME_ZA_ZRWA_VALID) {
            zone->d.za &= ~NVME_ZA_ZRWA_VALID;
            ns->zns.numzrwa++;
        }
        break;
    default:
        break;
    }
    nvme_assign_zone_state(ns, zone, state);
}

static uint16_t nvme_flash_fail_block(NvmeNamespace *ns, uint64_t lba,
                                      bool offline)
{
    if (lba >= ns->num_zones * ns->zone_size) {
        return NVME_INVALID_FIELD;
    }
    nvme_flash_fail_zone(ns, lba / ns->zone_size,
                         offline ? NVME_ZONE_STATE_OFFLINE :
                                   NVME_ZONE_STATE_READ_ONLY);
    return NVME_SUCCESS;
}

/* Set-up. */

/* The windows' slots are set aside: something must be left for the rest. */
static bool nvme_flash_zone_check(const NvmeNamespace *ns, Error **errp)
{
    uint64_t windows = nvme_flash_windows(ns) * ns->params.zrwas;
    uint64_t buffer = ns->flash_conf->dev.tuning.buffer;

    if (!ns->params.zoned) {
        error_setg(errp, "flash.media needs zoned=on");
        return false;
    }
    if (ns->params.cross_zone_read) {
        error_setg(errp, "flash.media does not go with zoned.cross_read");
        return false;
    }
    if (windows && ns->flash_conf->dev.nr_caches) {
        error_setg(errp, "zoned.zrwas does not go with flash.zone_caches");
        return false;
    }
    if (windows && windows >= buffer) {
        error_setg(errp, "zoned.zrwas: %" PRIu32 " windows of %" PRIu64
                   " bytes leave nothing of flash.buffer (%" PRIu64 ")",
                   nvme_flash_windows(ns), ns->params.zrwas, buffer);
        return false;
    }
    return true;
}

static void nvme_flash_zone_shape(const NvmeNamespace *ns, FlashShape *shape,
                                  FlashDev *dev)
{
    shape->nr_zones = ns->num_zones;
    shape->zone_blocks = ns->zone_size;
    shape->zone_cap = ns->zone_capacity;
    shape->ext_size = ns->params.zd_extension_size;
    dev->window_blocks = ns->params.zrwas / ns->lbasz;
    dev->window_bytes = nvme_flash_windows(ns) * ns->params.zrwas;
}

const NvmeFlashPersonality nvme_flash_zns = {
    .name = "zns",
    .oncs = NVME_ONCS_DSM | NVME_ONCS_WRITE_ZEROES | NVME_ONCS_COMPARE |
            NVME_ONCS_VERIFY | NVME_FLASH_COPIES,
    .ocfs = NVME_OCFS_COPY_FORMAT_0,
    .check = nvme_flash_zone_check,
    .shape = nvme_flash_zone_shape,
    .load = nvme_flash_zones_on,
    .fail = nvme_flash_fail_block,
    .read = nvme_flash_zone_read,
    .exec_other = nvme_flash_zone_exec_other,
    .read_ended = nvme_flash_read_ended,
    .resume = nvme_flash_copy_write,
};
