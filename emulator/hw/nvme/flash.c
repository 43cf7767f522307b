/*
 * The flash device behind an NVMe zoned namespace: glue between QEMU's NVMe
 * controller and the model in flash-model.c.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Everything runs under the big QEMU lock: in a vCPU thread when a doorbell is
 * served inline, in the main loop from the one virtual-clock timer of the
 * namespace.  Data moves when a command arrives, so a parked request holds no
 * guest memory and can be forgotten at any time; its FlashCmd lives on in the
 * model without an owner.
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qobject/qdict.h"
#include "chardev/char-fe.h"
#include "system/block-backend.h"

#include "flash.h"
#include "flash-model.h"
#include "trace.h"

#define NVME_FLASH_UNARMED      UINT64_MAX
#define NVME_FLASH_MAX_RANGES   1024
#define NVME_FLASH_MAX_ORPHANS  (64 * MiB)

/* What the user asked for; the shape is fixed once the device exists. */
typedef struct NvmeFlashParams {
    char *media;
    uint64_t size;
    uint32_t channels;
    uint32_t dies;
    uint32_t planes;
    uint64_t page;
    uint32_t program_pages;
    uint32_t block_pages;
    uint32_t blocks;
    uint32_t zone_dies;
    char *stream;
    uint32_t stream_ms;
} NvmeFlashParams;

typedef struct NvmeFlash NvmeFlash;

typedef struct NvmeFlashRange {
    uint64_t slba;
    uint64_t nlb;
    uint32_t left;              /* errors still to give; 0: without end */
    bool write;
    QTAILQ_ENTRY(NvmeFlashRange) entry;
} NvmeFlashRange;

struct NvmeFlash {
    FlashDev dev;
    NvmeFlashParams params;
    NvmeNamespace *ns;
    QEMUTimer *timer;
    uint64_t armed;             /* what the timer is set to */
    bool powered;
    Chardev *stream;
    CharBackend stream_be;
    QEMUTimer *stream_timer;

    uint64_t late;              /* completions after their time, and how much */
    uint64_t late_ns;
    uint64_t late_max_ns;

    uint64_t orphans;           /* bytes of commands that nobody waits for */
    QTAILQ_HEAD(, NvmeFlashRange) ranges;
    uint32_t nr_ranges;
    uint32_t read_ppm;          /* commands that fail, of a million */
    uint32_t write_ppm;
    uint32_t drop;              /* completions still to swallow */
    uint64_t random;
};

static NvmeFlash *flash_of(FlashDev *dev)
{
    return container_of(dev, NvmeFlash, dev);
}

/* Time. */

static void nvme_flash_arm(NvmeFlash *f)
{
    uint64_t when;

    if (!flash_time_next(&f->dev.time, &when)) {
        if (f->armed != NVME_FLASH_UNARMED) {
            f->armed = NVME_FLASH_UNARMED;
            timer_del(f->timer);
        }
    } else if (when != f->armed) {
        f->armed = when;
        timer_mod_ns(f->timer, when);
    }
}

static void nvme_flash_run(NvmeFlash *f)
{
    flash_time_run(&f->dev.time, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
}

/* Whoever has commands here: a shared namespace has several controllers. */
static void nvme_flash_each_ctrl(NvmeFlash *f, void (*call)(NvmeCtrl *n))
{
    for (uint32_t i = 0; i < NVME_MAX_CONTROLLERS; i++) {
        NvmeCtrl *n = nvme_subsys_ctrl(f->ns->subsys, i);

        if (n) {
            call(n);
        }
    }
}

static void nvme_flash_timer(void *opaque)
{
    NvmeFlash *f = opaque;

    f->armed = NVME_FLASH_UNARMED;
    nvme_flash_each_ctrl(f, nvme_hold_cqes);
    nvme_flash_run(f);
    nvme_flash_arm(f);
    nvme_flash_each_ctrl(f, nvme_release_cqes);
}

/* Completion. */

static uint16_t nvme_flash_status(const FlashCmd *cmd)
{
    switch (cmd->status) {
    case FLASH_OK:
        return NVME_SUCCESS;
    case FLASH_READ_ERROR:
        return NVME_UNRECOVERED_READ | NVME_DNR;
    case FLASH_OVERTAKEN:
        return NVME_ZONE_INVALID_WRITE | NVME_DNR;
    case FLASH_NO_POWER:
        return NVME_INTERNAL_DEV_ERROR | NVME_DNR;
    }
    g_assert_not_reached();
}

static uint16_t nvme_flash_copy_write(NvmeRequest *req);

static uint64_t nvme_flash_weight(const NvmeFlash *f, const FlashCmd *cmd)
{
    return sizeof(*cmd) + nvme_l2b(f->ns, cmd->nlb);
}

static void nvme_flash_orphan(NvmeFlash *f, FlashCmd *cmd)
{
    cmd->owner = NULL;
    f->orphans += nvme_flash_weight(f, cmd);
}

static void nvme_flash_done(FlashDev *dev, FlashCmd *cmd)
{
    NvmeFlash *f = flash_of(dev);
    NvmeRequest *req = cmd->owner;
    uint64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    uint16_t status = nvme_flash_status(cmd);

    if (now > dev->time.now) {
        f->late++;
        f->late_ns += now - dev->time.now;
        f->late_max_ns = MAX(f->late_max_ns, now - dev->time.now);
    }
    trace_nvme_flash_done(f->ns->params.nsid, cmd->kind, cmd->zone, cmd->block,
                          cmd->nlb, cmd->status, dev->time.now);
    if (!req) {
        f->orphans -= nvme_flash_weight(f, cmd);
    }
    g_free(cmd);
    if (!req) {
        return;
    }
    if (status) {
        req->status = status;
    }
    if (--req->flash_pending) {
        return;
    }
    if (req->opaque) {
        status = nvme_flash_copy_write(req);
        if (status != NVME_NO_COMPLETE) {
            req->status = status;
            nvme_enqueue_req_completion(nvme_cq(req), req);
        }
        return;
    }
    if (f->drop) {
        f->drop--;
        req->flash_pending = 1;
        return;
    }
    nvme_enqueue_req_completion(nvme_cq(req), req);
}

void nvme_flash_begin(NvmeRequest *req)
{
    req->aiocb = NULL;
    req->status = NVME_SUCCESS;
    req->flash_pending = 1;
}

uint16_t nvme_flash_end(NvmeRequest *req, uint16_t status)
{
    NvmeFlash *f = req->ns->flash;

    if (status) {
        req->status = status;
    }
    nvme_flash_arm(f);
    if (--req->flash_pending) {
        return NVME_NO_COMPLETE;
    }
    if (req->opaque) {
        return nvme_flash_copy_write(req);
    }
    if (f->drop && !req->status) {
        f->drop--;
        req->flash_pending = 1;
        return NVME_NO_COMPLETE;
    }
    return req->status;
}

static FlashCmd *nvme_flash_cmd(NvmeRequest *req, FlashCmdKind kind,
                                uint32_t zone)
{
    FlashCmd *cmd = g_new0(FlashCmd, 1);

    cmd->kind = kind;
    cmd->zone = zone;
    cmd->owner = req;
    req->flash_pending++;
    return cmd;
}

static void nvme_flash_submit(NvmeFlash *f, FlashCmd *cmd)
{
    trace_nvme_flash_submit(f->ns->params.nsid, cmd->kind, cmd->zone,
                            cmd->block, cmd->nlb, f->dev.time.now);
    flash_dev_submit(&f->dev, cmd);
}

bool nvme_flash_cancel(NvmeRequest *req)
{
    NvmeCtrl *n = nvme_ctrl(req);

    if (!req->flash_pending) {
        return false;
    }
    req->flash_pending = 0;
    g_clear_pointer(&req->opaque, g_free);
    /*
     * A broadcast flush has commands on several namespaces, and one may have
     * been detached meanwhile.
     */
    for (uint32_t i = 1; i <= NVME_MAX_NAMESPACES; i++) {
        NvmeNamespace *ns = nvme_subsys_ns(n->subsys, i);
        FlashCmd *cmd = ns && ns->flash ? ns->flash->dev.cmds : NULL;

        for (; cmd; cmd = cmd->next) {
            if (cmd->owner == req) {
                nvme_flash_orphan(ns->flash, cmd);
            }
        }
    }
    return true;
}

/* Faults. */

static bool nvme_flash_chance(NvmeFlash *f, uint32_t ppm)
{
    if (!ppm) {
        return false;
    }
    /* xorshift64*: the same faults for the same seed and commands */
    f->random ^= f->random >> 12;
    f->random ^= f->random << 25;
    f->random ^= f->random >> 27;
    return (f->random * 0x2545f4914f6cdd1dull >> 32) % 1000000 < ppm;
}

static void nvme_flash_forget_range(NvmeFlash *f, NvmeFlashRange *r)
{
    QTAILQ_REMOVE(&f->ranges, r, entry);
    f->nr_ranges--;
    g_free(r);
}

static bool nvme_flash_faulty(NvmeFlash *f, bool write, uint64_t slba,
                              uint64_t nlb)
{
    NvmeFlashRange *r;

    QTAILQ_FOREACH(r, &f->ranges, entry) {
        if (r->write == write && slba < r->slba + r->nlb &&
            r->slba < slba + nlb) {
            if (r->left && !--r->left) {
                nvme_flash_forget_range(f, r);
            }
            return true;
        }
    }
    return nvme_flash_chance(f, write ? f->write_ppm : f->read_ppm);
}

/* Commands. */

uint16_t nvme_flash_check(NvmeNamespace *ns)
{
    NvmeFlash *f = ns->flash;

    nvme_flash_run(f);
    f->dev.through = !blk_enable_write_cache(ns->blkconf.blk);
    if (!f->powered) {
        return NVME_INTERNAL_DEV_ERROR | NVME_DNR;
    }
    /* a host that submits and aborts without end has to wait */
    return f->orphans > NVME_FLASH_MAX_ORPHANS ? NVME_NS_NOT_READY :
                                                 NVME_SUCCESS;
}

static uint16_t nvme_flash_copy_out(NvmeCtrl *n, NvmeRequest *req,
                                    uint32_t zone, uint64_t block,
                                    uint32_t nlb)
{
    NvmeNamespace *ns = req->ns;
    FlashDev *dev = &ns->flash->dev;
    size_t len = nvme_l2b(ns, nlb), mlen = nvme_m2b(ns, nlb);
    const uint8_t *direct = flash_dev_peek(dev, zone, block, nlb);
    g_autofree uint8_t *data = NULL, *oob = NULL;
    uint16_t status;

    if (direct && !mlen) {
        return nvme_bounce_data(n, (void *)direct, len,
                                NVME_TX_DIRECTION_FROM_DEVICE, req);
    }
    data = g_malloc(len);
    oob = g_malloc(MAX(mlen, 1));
    flash_dev_copy(dev, zone, block, nlb, data, oob);
    status = nvme_bounce_data(n, data, len, NVME_TX_DIRECTION_FROM_DEVICE, req);
    if (!status && mlen && req->cmd.mptr) {
        status = nvme_bounce_mdata(n, oob, mlen, NVME_TX_DIRECTION_FROM_DEVICE,
                                   req);
    }
    return status;
}

uint16_t nvme_flash_read(NvmeCtrl *n, NvmeRequest *req)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    NvmeNamespace *ns = req->ns;
    NvmeFlash *f = ns->flash;
    uint64_t slba = le64_to_cpu(rw->slba);
    uint32_t nlb = (uint32_t)le16_to_cpu(rw->nlb) + 1;
    uint32_t zone = slba / ns->zone_size;
    uint64_t block = slba % ns->zone_size;
    FlashCmd *cmd;
    uint16_t status;

    status = nvme_flash_copy_out(n, req, zone, block, nlb);
    nvme_sg_unmap(&req->sg);
    if (status) {
        return status;
    }
    nvme_flash_begin(req);
    if (flash_dev_bad(&f->dev, zone, block, nlb) ||
        nvme_flash_faulty(f, false, slba, nlb)) {
        req->status = NVME_UNRECOVERED_READ | NVME_DNR;
    }
    if (flash_dev_instant(&f->dev, zone)) {
        f->dev.stats.cmds[FLASH_CMD_READ]++;
        f->dev.stats.read_bytes += nvme_l2b(ns, nlb);
        return nvme_flash_end(req, NVME_SUCCESS);
    }
    cmd = nvme_flash_cmd(req, FLASH_CMD_READ, zone);
    cmd->block = block;
    cmd->nlb = nlb;
    cmd->fua = le16_to_cpu(rw->control) & NVME_RW_FUA;
    nvme_flash_submit(f, cmd);
    return nvme_flash_end(req, NVME_SUCCESS);
}

static uint16_t nvme_flash_fetch(NvmeCtrl *n, NvmeRequest *req, uint32_t nlb,
                                 bool zeroes, uint8_t *data, uint8_t *oob)
{
    NvmeNamespace *ns = req->ns;
    size_t len = nvme_l2b(ns, nlb), mlen = nvme_m2b(ns, nlb);
    uint16_t status;

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
    status = nvme_bounce_data(n, data, len, NVME_TX_DIRECTION_TO_DEVICE, req);
    if (!status && mlen) {
        if (req->cmd.mptr) {
            status = nvme_bounce_mdata(n, oob, mlen,
                                       NVME_TX_DIRECTION_TO_DEVICE, req);
        } else {
            memset(oob, 0, mlen);
        }
    }
    return status;
}

uint16_t nvme_flash_write(NvmeCtrl *n, NvmeRequest *req, NvmeZone *zone,
                          bool append, bool zeroes)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    NvmeNamespace *ns = req->ns;
    NvmeFlash *f = ns->flash;
    FlashDev *dev = &f->dev;
    uint64_t slba = le64_to_cpu(rw->slba);
    uint32_t nlb = (uint32_t)le16_to_cpu(rw->nlb) + 1;
    uint32_t idx = slba / ns->zone_size;
    uint64_t block = slba % ns->zone_size;
    bool window = zone->d.za & NVME_ZA_ZRWA_VALID;
    FlashCmdKind kind = append ? FLASH_CMD_APPEND : FLASH_CMD_WRITE;
    FlashCmd *cmd;
    uint16_t status;

    if (nvme_flash_faulty(f, true, slba, nlb)) {
        return NVME_WRITE_FAULT | NVME_DNR;
    }
    if (!zeroes && !req->opaque) {
        status = nvme_map_dptr(n, &req->sg, nvme_l2b(ns, nlb), &req->cmd);
        if (status) {
            return status;
        }
    }
    if (flash_dev_instant(dev, idx) && !window) {
        uint64_t lba = idx * ns->zone_size + block;

        flash_dev_write_begin(dev, idx, nlb);
        status = nvme_flash_fetch(n, req, nlb, zeroes,
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
        return nvme_flash_end(req, NVME_SUCCESS);
    }

    cmd = g_new0(FlashCmd, 1);
    /* freed by the model, which knows no glib */
    cmd->data = malloc(nvme_l2b(ns, nlb));
    cmd->oob = malloc(MAX(nvme_m2b(ns, nlb), 1));
    if (!cmd->data || !cmd->oob) {
        status = NVME_INTERNAL_DEV_ERROR;
    } else {
        status = nvme_flash_fetch(n, req, nlb, zeroes, cmd->data, cmd->oob);
    }
    nvme_sg_unmap(&req->sg);
    if (status) {
        free(cmd->data);
        free(cmd->oob);
        g_free(cmd);
        return status;
    }
    nvme_flash_begin(req);
    cmd->kind = kind;
    cmd->zone = idx;
    cmd->block = block;
    cmd->nlb = nlb;
    cmd->fua = le16_to_cpu(rw->control) & NVME_RW_FUA;
    cmd->owner = req;
    req->flash_pending++;
    zone->w_ptr += window ? 0 : nlb;
    nvme_finalize_zoned_write(ns, req);
    cmd->window = window;
    cmd->commit = zone->d.wp - zone->d.zslba;
    nvme_flash_submit(f, cmd);
    return nvme_flash_end(req, NVME_SUCCESS);
}

uint16_t nvme_flash_flush(NvmeCtrl *n, NvmeRequest *req, uint32_t nsid)
{
    NvmeNamespace *ns;
    uint16_t status, first = NVME_SUCCESS;

    nvme_flash_begin(req);
    for (uint32_t i = 1; i <= NVME_MAX_NAMESPACES; i++) {
        ns = nvme_ns(n, i);
        if (!ns || (nsid != NVME_NSID_BROADCAST && i != nsid)) {
            continue;
        }
        if (!ns->flash) {
            status = blk_flush(ns->blkconf.blk) < 0 ? NVME_WRITE_FAULT :
                                                      NVME_SUCCESS;
        } else {
            status = nvme_flash_check(ns);
            if (!status) {
                nvme_flash_submit(ns->flash,
                                  nvme_flash_cmd(req, FLASH_CMD_FLUSH, 0));
                nvme_flash_arm(ns->flash);
            }
        }
        first = first ? first : status;
    }
    return nvme_flash_end(req, first);
}

static uint16_t nvme_flash_compare(NvmeCtrl *n, NvmeRequest *req,
                                   uint64_t slba, uint32_t nlb)
{
    NvmeNamespace *ns = req->ns;
    size_t len = nvme_l2b(ns, nlb);
    g_autofree uint8_t *want = g_malloc(len), *have = g_malloc(len);
    g_autofree uint8_t *oob = g_malloc(MAX(nvme_m2b(ns, nlb), 1));
    uint16_t status;

    status = nvme_map_dptr(n, &req->sg, len, &req->cmd);
    if (status) {
        return status;
    }
    status = nvme_bounce_data(n, want, len, NVME_TX_DIRECTION_TO_DEVICE, req);
    nvme_sg_unmap(&req->sg);
    if (status) {
        return status;
    }
    flash_dev_copy(&ns->flash->dev, slba / ns->zone_size, slba % ns->zone_size,
                   nlb, have, oob);
    return memcmp(want, have, len) ? NVME_CMP_FAILURE | NVME_DNR : NVME_SUCCESS;
}

/*
 * Copy reads all of its sources at once.  When the last is there, it becomes
 * a write of what they held when it came: req->opaque, data and then metadata.
 */
static uint16_t nvme_flash_copy(NvmeCtrl *n, NvmeRequest *req)
{
    NvmeCopyCmd *copy = (NvmeCopyCmd *)&req->cmd;
    NvmeNamespace *ns = req->ns;
    FlashDev *dev = &ns->flash->dev;
    uint32_t nr = copy->nr + 1, total = 0;
    g_autofree NvmeCopySourceRangeFormat0_2 *from =
        g_new(NvmeCopySourceRangeFormat0_2, nr);
    uint8_t *data, *oob;
    uint16_t status;

    if (copy->control[0] & 0xf) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    if (nr > ns->id_ns.msrc + 1) {
        return NVME_CMD_SIZE_LIMIT | NVME_DNR;
    }
    status = nvme_map_dptr(n, &req->sg, nr * sizeof(*from), &req->cmd);
    if (!status) {
        status = nvme_bounce_data(n, from, nr * sizeof(*from),
                                  NVME_TX_DIRECTION_TO_DEVICE, req);
        nvme_sg_unmap(&req->sg);
    }
    for (uint32_t i = 0; !status && i < nr; i++) {
        uint32_t nlb = le16_to_cpu(from[i].nlb) + 1;

        total += nlb;
        if (nlb > le16_to_cpu(ns->id_ns.mssrl) ||
            total > MIN(le32_to_cpu(ns->id_ns.mcl), UINT16_MAX + 1u)) {
            return NVME_CMD_SIZE_LIMIT | NVME_DNR;
        }
        status = nvme_check_range(n, req, le64_to_cpu(from[i].slba), nlb);
    }
    if (status) {
        return status;
    }

    nvme_flash_begin(req);
    data = req->opaque = g_malloc(nvme_l2b(ns, total) + nvme_m2b(ns, total));
    oob = data + nvme_l2b(ns, total);
    for (uint32_t i = 0; i < nr; i++) {
        uint64_t slba = le64_to_cpu(from[i].slba);
        uint32_t nlb = le16_to_cpu(from[i].nlb) + 1;
        FlashCmd *cmd = nvme_flash_cmd(req, FLASH_CMD_READ,
                                       slba / ns->zone_size);

        cmd->block = slba % ns->zone_size;
        cmd->nlb = nlb;
        flash_dev_copy(dev, cmd->zone, cmd->block, nlb, data, oob);
        data += nvme_l2b(ns, nlb);
        oob += nvme_m2b(ns, nlb);
        if (flash_dev_bad(dev, cmd->zone, cmd->block, nlb) ||
            nvme_flash_faulty(ns->flash, false, slba, nlb)) {
            req->status = NVME_UNRECOVERED_READ | NVME_DNR;
        }
        nvme_flash_submit(ns->flash, cmd);
    }
    ((NvmeRwCmd *)&req->cmd)->nlb = cpu_to_le16(total - 1);
    return nvme_flash_end(req, NVME_SUCCESS);
}

static uint16_t nvme_flash_copy_write(NvmeRequest *req)
{
    uint16_t status = req->status;

    if (!status) {
        status = nvme_do_write(nvme_ctrl(req), req, false, false);
    }
    g_clear_pointer(&req->opaque, g_free);
    return status;
}

/*
 * Compare and Verify cost a read.  Deallocate is advice, and a zone's blocks
 * go with its reset.
 */
bool nvme_flash_other(NvmeCtrl *n, NvmeRequest *req, uint16_t *status)
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
    nvme_flash_begin(req);
    if (flash_dev_bad(&ns->flash->dev, slba / ns->zone_size,
                      slba % ns->zone_size, nlb) ||
        nvme_flash_faulty(ns->flash, false, slba, nlb)) {
        req->status = NVME_UNRECOVERED_READ | NVME_DNR;
    } else if (req->cmd.opcode == NVME_CMD_COMPARE) {
        req->status = nvme_flash_compare(n, req, slba, nlb);
    }
    cmd = nvme_flash_cmd(req, FLASH_CMD_READ, slba / ns->zone_size);
    cmd->block = slba % ns->zone_size;
    cmd->nlb = nlb;
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
    nvme_flash_submit(req->ns->flash, cmd);
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
    } else if (state == NVME_ZONE_STATE_OFFLINE) {
        iz->flags |= FLASH_ZONE_OFFLINE;
    } else if (state == NVME_ZONE_STATE_CLOSED &&
               zone->d.za & NVME_ZA_ZD_EXT_VALID) {
        iz->flags |= FLASH_ZONE_EXT_VALID;
    }
    /* an implicitly opened zone pays with its first write */
    if (!open || state == NVME_ZONE_STATE_EXPLICITLY_OPEN) {
        ns->flash->dev.zones[idx].open = open;
    }
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
            zone->d.za |= NVME_ZA_FINISHED_BY_CTLR;
            ns->flash->dev.media.zones[idx].flags |= FLASH_ZONE_FINISHED;
        }
        nvme_set_zone_state(zone, NVME_ZONE_STATE_FULL);
        QTAILQ_INSERT_TAIL(&ns->full_zones, zone, entry);
    }
}

uint8_t *nvme_flash_extensions(NvmeNamespace *ns)
{
    return ns->flash->dev.media.ext;
}

/* What is on flash becomes what the host sees: at start and at power on. */
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

static void nvme_flash_lost_power(FlashDev *dev)
{
    NvmeFlash *f = flash_of(dev);

    f->powered = false;
    trace_nvme_flash_power(f->ns->params.nsid, false);
}

static void nvme_flash_power_on(NvmeFlash *f)
{
    flash_dev_power_on(&f->dev);
    if (!f->powered) {
        f->powered = true;
        nvme_flash_load_zones(f->ns);
        trace_nvme_flash_power(f->ns->params.nsid, true);
    }
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

/* Power and faults, from the guest (vendor command) and from QOM (text). */

typedef enum NvmeFlashAction {
    NVME_FLASH_POWER_ON = 0x00,
    NVME_FLASH_CUT = 0x01,          /* a: ns from now, 0: now */
    NVME_FLASH_CUT_AT_PROGRAM = 0x02, /* a: n-th program from now */
    NVME_FLASH_CUT_FORGET = 0x03,
    NVME_FLASH_READ_ERROR = 0x10,   /* a: slba, b: nlb, c: times, 0: always */
    NVME_FLASH_WRITE_ERROR = 0x11,  /* the same */
    NVME_FLASH_READ_RATE = 0x12,    /* a: per million commands */
    NVME_FLASH_WRITE_RATE = 0x13,
    NVME_FLASH_FAIL_PROGRAM = 0x14, /* a: n-th program from now */
    NVME_FLASH_READ_ONLY = 0x15,    /* a: lba in the zone */
    NVME_FLASH_OFFLINE = 0x16,      /* a: lba in the zone */
    NVME_FLASH_SLOW_DIE = 0x17,     /* a: die, b: percent of nominal time */
    NVME_FLASH_DROP = 0x18,         /* a: completions to swallow */
    NVME_FLASH_SEED = 0x19,         /* a: seed of the rates */
    NVME_FLASH_CLEAR = 0x1f,        /* no faults any more */
} NvmeFlashAction;

static const struct {
    const char *name;
    NvmeFlashAction action;
} nvme_flash_actions[] = {
    { "power-on", NVME_FLASH_POWER_ON },
    { "cut", NVME_FLASH_CUT },
    { "cut-at-program", NVME_FLASH_CUT_AT_PROGRAM },
    { "cut-forget", NVME_FLASH_CUT_FORGET },
    { "read-error", NVME_FLASH_READ_ERROR },
    { "write-error", NVME_FLASH_WRITE_ERROR },
    { "read-rate", NVME_FLASH_READ_RATE },
    { "write-rate", NVME_FLASH_WRITE_RATE },
    { "fail-program", NVME_FLASH_FAIL_PROGRAM },
    { "read-only", NVME_FLASH_READ_ONLY },
    { "offline", NVME_FLASH_OFFLINE },
    { "slow-die", NVME_FLASH_SLOW_DIE },
    { "drop", NVME_FLASH_DROP },
    { "seed", NVME_FLASH_SEED },
    { "clear", NVME_FLASH_CLEAR },
};

static void nvme_flash_clear_faults(NvmeFlash *f)
{
    NvmeFlashRange *r, *next;

    QTAILQ_FOREACH_SAFE(r, &f->ranges, entry, next) {
        nvme_flash_forget_range(f, r);
    }
    f->read_ppm = f->write_ppm = f->drop = 0;
    f->dev.trouble.fail_program = 0;
    for (uint32_t i = 0; i < f->dev.time.nr_dies; i++) {
        f->dev.time.dies[i].slow = FLASH_SLOW_UNIT;
    }
}

static uint16_t nvme_flash_act(NvmeFlash *f, NvmeFlashAction action,
                               uint64_t a, uint64_t b, uint32_t c)
{
    NvmeNamespace *ns = f->ns;
    NvmeFlashRange *r;

    nvme_flash_run(f);
    trace_nvme_flash_action(ns->params.nsid, action, a, b, c);
    switch (action) {
    case NVME_FLASH_POWER_ON:
        nvme_flash_power_on(f);
        break;
    case NVME_FLASH_CUT:
        if (a > INT64_MAX / 2) {
            return NVME_INVALID_FIELD;
        }
        flash_dev_cut(&f->dev, f->dev.time.now + a);
        nvme_flash_run(f);
        break;
    case NVME_FLASH_CUT_AT_PROGRAM:
        f->dev.trouble.cut_at_program = a;
        break;
    case NVME_FLASH_CUT_FORGET:
        flash_dev_forget_cuts(&f->dev);
        break;
    case NVME_FLASH_READ_ERROR:
    case NVME_FLASH_WRITE_ERROR:
        if (!b || a + b < a) {
            return NVME_INVALID_FIELD;
        }
        if (f->nr_ranges == NVME_FLASH_MAX_RANGES) {
            return NVME_CAP_EXCEEDED;
        }
        r = g_new0(NvmeFlashRange, 1);
        r->slba = a;
        r->nlb = b;
        r->left = c;
        r->write = action == NVME_FLASH_WRITE_ERROR;
        QTAILQ_INSERT_TAIL(&f->ranges, r, entry);
        f->nr_ranges++;
        break;
    case NVME_FLASH_READ_RATE:
        f->read_ppm = MIN(a, 1000000);
        break;
    case NVME_FLASH_WRITE_RATE:
        f->write_ppm = MIN(a, 1000000);
        break;
    case NVME_FLASH_FAIL_PROGRAM:
        f->dev.trouble.fail_program = a;
        break;
    case NVME_FLASH_READ_ONLY:
    case NVME_FLASH_OFFLINE:
        if (a >= ns->num_zones * ns->zone_size) {
            return NVME_INVALID_FIELD;
        }
        nvme_flash_fail_zone(ns, a / ns->zone_size,
                             action == NVME_FLASH_OFFLINE ?
                             NVME_ZONE_STATE_OFFLINE :
                             NVME_ZONE_STATE_READ_ONLY);
        break;
    case NVME_FLASH_SLOW_DIE:
        if (a >= f->dev.time.nr_dies || !b || b > 1000000) {
            return NVME_INVALID_FIELD;
        }
        f->dev.time.dies[a].slow = b;
        break;
    case NVME_FLASH_DROP:
        f->drop = MIN(a, UINT32_MAX);
        break;
    case NVME_FLASH_SEED:
        f->random = a ? a : 1;
        break;
    case NVME_FLASH_CLEAR:
        nvme_flash_clear_faults(f);
        break;
    default:
        return NVME_INVALID_FIELD;
    }
    nvme_flash_arm(f);
    return NVME_SUCCESS;
}

uint16_t nvme_flash_admin(NvmeCtrl *n, NvmeRequest *req)
{
    NvmeNamespace *ns = nvme_ns(n, le32_to_cpu(req->cmd.nsid));
    uint64_t a = (uint64_t)le32_to_cpu(req->cmd.cdw12) << 32 |
                 le32_to_cpu(req->cmd.cdw11);
    uint64_t b = (uint64_t)le32_to_cpu(req->cmd.cdw14) << 32 |
                 le32_to_cpu(req->cmd.cdw13);
    uint16_t status;

    if (!ns || !ns->flash) {
        return NVME_INVALID_NSID | NVME_DNR;
    }
    status = nvme_flash_act(ns->flash, le32_to_cpu(req->cmd.cdw10), a, b,
                            le32_to_cpu(req->cmd.cdw15));
    return status ? status | NVME_DNR : NVME_SUCCESS;
}

/* It tells. */

/* The vendor log page: little endian, this order; grows at its end only. */
typedef struct QEMU_PACKED NvmeFlashLogDie {
    uint64_t busy_ns;
    uint64_t wait_ns;
    uint64_t wait_max_ns;
    uint64_t reads;
    uint64_t programs;
    uint64_t erases;
} NvmeFlashLogDie;

typedef struct QEMU_PACKED NvmeFlashLog {
    char magic[4];
    uint16_t version;
    uint16_t header_len;
    uint16_t die_len;
    uint16_t reserved;
    uint32_t channels;
    uint32_t dies_per_channel;
    uint32_t planes;
    uint32_t page_size;
    uint32_t program_pages;
    uint32_t block_pages;
    uint32_t zone_dies;
    uint64_t now_ns;
    uint64_t cmds[FLASH_CMD_RESET + 1];
    uint64_t errors;
    uint64_t read_bytes;
    uint64_t written_bytes;
    uint64_t programmed_bytes;
    uint64_t buffer_hits;
    uint64_t reads;
    uint64_t programs_full;
    uint64_t programs_padded;
    uint64_t programs_finish;
    uint64_t programs_retried;
    uint64_t erases;
    uint64_t buffer_used;
    uint64_t buffer_max;
    uint64_t buffer_mean;
    uint64_t waited;
    uint64_t cuts;
    uint64_t lost_bytes;
    uint64_t late;
    uint64_t late_ns;
    uint64_t late_max_ns;
    uint64_t powered;
    uint64_t commits;
} NvmeFlashLog;

static uint64_t nvme_flash_buffer_mean(const FlashDev *dev)
{
    const FlashStats *s = &dev->stats;
    uint64_t now = dev->time.now;

    return now ? (s->buffer_time + s->buffer_used * (now - s->buffer_since)) /
                 now : 0;
}

uint16_t nvme_flash_log(NvmeCtrl *n, NvmeRequest *req, uint32_t len,
                        uint64_t off)
{
    uint32_t nsid = le32_to_cpu(req->cmd.nsid);
    NvmeNamespace *ns = NULL;
    g_autofree NvmeFlashLog *log = NULL;
    NvmeFlashLogDie *die;
    const FlashStats *s;
    const FlashShape *shape;
    FlashDev *dev;
    size_t size;

    if (nsid == NVME_NSID_BROADCAST || !nsid) {
        for (uint32_t i = 1; i <= NVME_MAX_NAMESPACES && !ns; i++) {
            ns = nvme_ns(n, i) && nvme_ns(n, i)->flash ? nvme_ns(n, i) : NULL;
        }
    } else {
        ns = nvme_ns(n, nsid);
    }
    if (!ns || !ns->flash) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    nvme_flash_run(ns->flash);
    dev = &ns->flash->dev;
    s = &dev->stats;
    shape = &dev->media.shape;
    size = sizeof(*log) + dev->time.nr_dies * sizeof(*die);
    if (off >= size) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    log = g_malloc0(size);
    memcpy(log->magic, "MTFL", 4);
    log->version = cpu_to_le16(1);
    log->header_len = cpu_to_le16(sizeof(*log));
    log->die_len = cpu_to_le16(sizeof(*die));
    log->channels = cpu_to_le32(shape->channels);
    log->dies_per_channel = cpu_to_le32(shape->dies_per_channel);
    log->planes = cpu_to_le32(shape->planes);
    log->page_size = cpu_to_le32(shape->page_size);
    log->program_pages = cpu_to_le32(shape->program_pages);
    log->block_pages = cpu_to_le32(shape->pages_per_block);
    log->zone_dies = cpu_to_le32(shape->zone_dies);
    log->now_ns = cpu_to_le64(dev->time.now);
    for (int i = 0; i <= FLASH_CMD_RESET; i++) {
        log->cmds[i] = cpu_to_le64(s->cmds[i]);
    }
    log->errors = cpu_to_le64(s->errors);
    log->read_bytes = cpu_to_le64(s->read_bytes);
    log->written_bytes = cpu_to_le64(s->written_bytes);
    log->programmed_bytes = cpu_to_le64(s->programmed_bytes);
    log->buffer_hits = cpu_to_le64(s->buffer_hits);
    log->reads = cpu_to_le64(s->reads);
    log->programs_full = cpu_to_le64(s->programs_full);
    log->programs_padded = cpu_to_le64(s->programs_padded);
    log->programs_finish = cpu_to_le64(s->programs_finish);
    log->programs_retried = cpu_to_le64(s->programs_retried);
    log->erases = cpu_to_le64(s->erases);
    log->buffer_used = cpu_to_le64(s->buffer_used);
    log->buffer_max = cpu_to_le64(s->buffer_max);
    log->buffer_mean = cpu_to_le64(nvme_flash_buffer_mean(dev));
    log->waited = cpu_to_le64(s->waited);
    log->cuts = cpu_to_le64(s->cuts);
    log->lost_bytes = cpu_to_le64(s->lost_bytes);
    log->late = cpu_to_le64(ns->flash->late);
    log->late_ns = cpu_to_le64(ns->flash->late_ns);
    log->late_max_ns = cpu_to_le64(ns->flash->late_max_ns);
    log->powered = cpu_to_le64(ns->flash->powered);
    log->commits = cpu_to_le64(s->cmds[FLASH_CMD_COMMIT]);
    die = (NvmeFlashLogDie *)(log + 1);
    for (uint32_t i = 0; i < dev->time.nr_dies; i++, die++) {
        const FlashDie *d = &dev->time.dies[i];

        die->busy_ns = cpu_to_le64(d->busy_ns);
        die->wait_ns = cpu_to_le64(d->wait_ns);
        die->wait_max_ns = cpu_to_le64(d->wait_max_ns);
        die->reads = cpu_to_le64(d->ops[FLASH_OP_READ]);
        die->programs = cpu_to_le64(d->ops[FLASH_OP_PROGRAM]);
        die->erases = cpu_to_le64(d->ops[FLASH_OP_ERASE]);
    }
    return nvme_c2h(n, (uint8_t *)log + off, MIN(size - off, len), req);
}

static void json_u64(GString *s, const char *name, uint64_t value)
{
    g_string_append_printf(s, "%s\"%s\":%" PRIu64,
                           s->str[s->len - 1] == '{' ? "" : ",", name, value);
}

/* The same as JSON, in one line. */
static char *nvme_flash_json(NvmeFlash *f)
{
    static const char *const cmds[FLASH_CMD_KINDS] = {
        "read", "write", "append", "flush", "open", "close", "finish", "reset",
        "commit",
    };
    FlashDev *dev = &f->dev;
    const FlashStats *s = &dev->stats;
    const FlashShape *shape = &dev->media.shape;
    GString *g = g_string_new("{");

    json_u64(g, "version", 1);
    json_u64(g, "now_ns", dev->time.now);
    json_u64(g, "powered", f->powered);
    g_string_append(g, ",\"geometry\":{");
    json_u64(g, "channels", shape->channels);
    json_u64(g, "dies", shape->dies_per_channel);
    json_u64(g, "planes", shape->planes);
    json_u64(g, "page", shape->page_size);
    json_u64(g, "program_pages", shape->program_pages);
    json_u64(g, "block_pages", shape->pages_per_block);
    json_u64(g, "zone_dies", shape->zone_dies);
    json_u64(g, "zones", shape->nr_zones);
    json_u64(g, "zone_size", shape->zone_blocks * shape->block_size);
    json_u64(g, "zone_capacity", shape->zone_cap * shape->block_size);
    g_string_append(g, "},\"commands\":{");
    for (int i = 0; i < FLASH_CMD_KINDS; i++) {
        json_u64(g, cmds[i], s->cmds[i]);
    }
    g_string_append(g, "}");
    json_u64(g, "errors", s->errors);
    json_u64(g, "read_bytes", s->read_bytes);
    json_u64(g, "written_bytes", s->written_bytes);
    json_u64(g, "programmed_bytes", s->programmed_bytes);
    json_u64(g, "buffer_hits", s->buffer_hits);
    json_u64(g, "reads", s->reads);
    json_u64(g, "programs_full", s->programs_full);
    json_u64(g, "programs_padded", s->programs_padded);
    json_u64(g, "programs_finish", s->programs_finish);
    json_u64(g, "programs_retried", s->programs_retried);
    json_u64(g, "erases", s->erases);
    json_u64(g, "buffer_used", s->buffer_used);
    json_u64(g, "buffer_max", s->buffer_max);
    json_u64(g, "buffer_mean", nvme_flash_buffer_mean(dev));
    json_u64(g, "waited", s->waited);
    json_u64(g, "cuts", s->cuts);
    json_u64(g, "lost_bytes", s->lost_bytes);
    json_u64(g, "late", f->late);
    json_u64(g, "late_ns", f->late_ns);
    json_u64(g, "late_max_ns", f->late_max_ns);
    g_string_append(g, ",\"dies\":[");
    for (uint32_t i = 0; i < dev->time.nr_dies; i++) {
        const FlashDie *d = &dev->time.dies[i];

        g_string_append(g, i ? ",{" : "{");
        json_u64(g, "busy_ns", d->busy_ns);
        json_u64(g, "wait_ns", d->wait_ns);
        json_u64(g, "wait_max_ns", d->wait_max_ns);
        json_u64(g, "reads", d->ops[FLASH_OP_READ]);
        json_u64(g, "programs", d->ops[FLASH_OP_PROGRAM]);
        json_u64(g, "erases", d->ops[FLASH_OP_ERASE]);
        g_string_append(g, "}");
    }
    g_string_append(g, "]}");
    return g_string_free(g, false);
}

static void nvme_flash_stream(void *opaque)
{
    NvmeFlash *f = opaque;
    g_autofree char *json = NULL;

    nvme_flash_run(f);
    json = nvme_flash_json(f);
    qemu_chr_fe_write_all(&f->stream_be, (uint8_t *)json, strlen(json));
    qemu_chr_fe_write_all(&f->stream_be, (const uint8_t *)"\n", 1);
    timer_mod_ns(f->stream_timer,
                 f->dev.time.now + (uint64_t)f->params.stream_ms * SCALE_MS);
    nvme_flash_arm(f);
}

/* Properties. */

typedef enum NvmeFlashPropKind {
    FLASH_PROP_BOOL,
    FLASH_PROP_U32,
    FLASH_PROP_U64,
    FLASH_PROP_SIZE,
    FLASH_PROP_STR,
} NvmeFlashPropKind;

typedef struct NvmeFlashProp {
    const char *name;
    NvmeFlashPropKind kind;
    bool live;                  /* may change while the device runs */
    size_t offset;              /* in NvmeFlash */
    const char *help;
} NvmeFlashProp;

#define FIXED(_name, _kind, _field, _help)                      \
    { "flash." _name, FLASH_PROP_ ## _kind, false,              \
      offsetof(NvmeFlash, params._field), _help }
#define LIVE(_name, _kind, _field, _help)                       \
    { "flash." _name, FLASH_PROP_ ## _kind, true,               \
      offsetof(NvmeFlash, dev.tuning._field), _help }

static const NvmeFlashProp nvme_flash_props[] = {
    FIXED("media", STR, media, "image file; switches the flash model on"),
    FIXED("size", SIZE, size, "bytes of all zones"),
    FIXED("channels", U32, channels, "channels"),
    FIXED("dies", U32, dies, "dies a channel"),
    FIXED("planes", U32, planes, "planes a die, used together"),
    FIXED("page", SIZE, page, "page size of a plane"),
    FIXED("program_pages", U32, program_pages,
          "pages of each plane that one program fills"),
    FIXED("block_pages", U32, block_pages, "pages of an erase block"),
    FIXED("blocks", U32, blocks,
          "erase blocks a plane; 0: as many as the zones need"),
    FIXED("zone_dies", U32, zone_dies, "dies under a zone; 0: all"),
    FIXED("stream", STR, stream, "character device for JSON counters"),
    FIXED("stream_ms", U32, stream_ms, "interval of the stream"),
    LIVE("read_ns", U64, read_ns, "cell read"),
    LIVE("program_ns", U64, program_ns, "cell program"),
    LIVE("erase_ns", U64, erase_ns, "erase of a zone's first block on a die"),
    LIVE("erase_more_ns", U64, erase_more_ns,
         "... of each further block; 0: the same"),
    LIVE("channel_rate", SIZE, bus.bytes_per_s,
         "bytes a second of a channel; 0: no transfer time"),
    LIVE("channel_setup_ns", U64, bus.setup_ns, "per transfer"),
    LIVE("cache", BOOL, cache, "a transfer overlaps the cell array's work"),
    LIVE("read_first", BOOL, read_first,
         "reads overtake waiting programs and erases"),
    LIVE("suspend", BOOL, suspend, "reads interrupt programs and erases"),
    LIVE("resume_ns", U64, resume_ns, "what an interrupted one pays"),
    LIVE("delay_read", BOOL, delay_read, "cell reads take time"),
    LIVE("delay_program", BOOL, delay_program, "cell programs take time"),
    LIVE("delay_erase", BOOL, delay_erase, "erases take time"),
    LIVE("delay_transfer", BOOL, delay_transfer, "transfers take time"),
    LIVE("buffer", SIZE, buffer,
         "write buffer in bytes; 0: a write ends when it is programmed"),
    LIVE("service_ns", U64, service_ns, "controller time, one by one"),
    LIVE("read_cmd_ns", U64, cmd_ns[FLASH_CMD_READ], "latency of a read"),
    LIVE("write_cmd_ns", U64, cmd_ns[FLASH_CMD_WRITE], "... of a write"),
    LIVE("append_cmd_ns", U64, cmd_ns[FLASH_CMD_APPEND], "... of an append"),
    LIVE("flush_cmd_ns", U64, cmd_ns[FLASH_CMD_FLUSH], "... of a flush"),
    LIVE("open_ns", U64, cmd_ns[FLASH_CMD_OPEN],
         "... of a zone open, explicit or implicit"),
    LIVE("close_ns", U64, cmd_ns[FLASH_CMD_CLOSE], "... of a zone close"),
    LIVE("finish_ns", U64, cmd_ns[FLASH_CMD_FINISH],
         "... of a zone finish, padding apart"),
    LIVE("reset_ns", U64, cmd_ns[FLASH_CMD_RESET],
         "... of a zone reset, erases apart"),
    LIVE("commit_ns", U64, cmd_ns[FLASH_CMD_COMMIT],
         "... of an explicit ZRWA flush"),
};

static void nvme_flash_get_prop(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    const NvmeFlashProp *p = opaque;
    void *field = (char *)NVME_NS(obj)->flash_conf + p->offset;
    char *empty = (char *)"";

    switch (p->kind) {
    case FLASH_PROP_BOOL:
        visit_type_bool(v, name, field, errp);
        break;
    case FLASH_PROP_U32:
        visit_type_uint32(v, name, field, errp);
        break;
    case FLASH_PROP_U64:
        visit_type_uint64(v, name, field, errp);
        break;
    case FLASH_PROP_SIZE:
        visit_type_size(v, name, field, errp);
        break;
    case FLASH_PROP_STR:
        visit_type_str(v, name, *(char **)field ? field : &empty, errp);
        break;
    }
}

/* The windows' slots are set aside: something must be left for the rest. */
static bool nvme_flash_check_windows(const NvmeNamespace *ns, Error **errp)
{
    uint64_t windows = nvme_flash_windows(ns) * ns->params.zrwas;
    uint64_t buffer = ns->flash_conf->dev.tuning.buffer;

    if (!windows || windows < buffer) {
        return true;
    }
    error_setg(errp, "zoned.zrwas: %" PRIu32 " windows of %" PRIu64 " bytes "
               "leave nothing of flash.buffer (%" PRIu64 ")",
               nvme_flash_windows(ns), ns->params.zrwas, buffer);
    return false;
}

static void nvme_flash_set_prop(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    const NvmeFlashProp *p = opaque;
    NvmeFlash *f = NVME_NS(obj)->flash_conf;
    void *field = (char *)f + p->offset;
    uint64_t buffer = f->dev.tuning.buffer;
    char *str = NULL;

    if (f->ns->flash) {
        if (!p->live) {
            error_setg(errp, "%s cannot change while the device runs", name);
            return;
        }
        nvme_flash_run(f);
    }
    switch (p->kind) {
    case FLASH_PROP_BOOL:
        visit_type_bool(v, name, field, errp);
        break;
    case FLASH_PROP_U32:
        visit_type_uint32(v, name, field, errp);
        break;
    case FLASH_PROP_U64:
        visit_type_uint64(v, name, field, errp);
        break;
    case FLASH_PROP_SIZE:
        visit_type_size(v, name, field, errp);
        break;
    case FLASH_PROP_STR:
        if (visit_type_str(v, name, &str, errp)) {
            g_free(*(char **)field);
            *(char **)field = str;
        }
        break;
    }
    if (f->ns->flash) {
        if (!nvme_flash_check_windows(f->ns, errp)) {
            f->dev.tuning.buffer = buffer;
        }
        flash_dev_retune(&f->dev);
        nvme_flash_arm(f);
    }
}

static char *nvme_flash_get_stats(Object *obj, Error **errp)
{
    NvmeNamespace *ns = NVME_NS(obj);

    if (!ns->flash) {
        return g_strdup("{}");
    }
    nvme_flash_run(ns->flash);
    nvme_flash_arm(ns->flash);
    return nvme_flash_json(ns->flash);
}

static char *nvme_flash_get_fault(Object *obj, Error **errp)
{
    return g_strdup("");
}

static void nvme_flash_set_fault(Object *obj, const char *value, Error **errp)
{
    NvmeNamespace *ns = NVME_NS(obj);
    g_auto(GStrv) word = g_strsplit(value, " ", 0);
    guint n = g_strv_length(word);
    uint64_t arg[3] = { 0 };
    uint16_t status;

    if (!ns->flash) {
        error_setg(errp, "flash.fault: the device does not run yet");
        return;
    }
    for (guint i = 1; i < n; i++) {
        if (i > 3 || qemu_strtou64(word[i], NULL, 0, &arg[i - 1])) {
            error_setg(errp, "flash.fault '%s': at most three numbers", value);
            return;
        }
    }
    for (size_t i = 0; n && i < ARRAY_SIZE(nvme_flash_actions); i++) {
        if (!strcmp(word[0], nvme_flash_actions[i].name)) {
            status = nvme_flash_act(ns->flash, nvme_flash_actions[i].action,
                                    arg[0], arg[1], arg[2]);
            if (status) {
                error_setg(errp, "flash.fault '%s': %s", value,
                           status == NVME_CAP_EXCEEDED ?
                           "too many ranges" : "impossible");
            }
            return;
        }
    }
    error_setg(errp, "flash.fault '%s': no such action", value);
}

void nvme_flash_class_props(ObjectClass *oc)
{
    static const char *const types[] = {
        [FLASH_PROP_BOOL] = "bool", [FLASH_PROP_U32] = "uint32",
        [FLASH_PROP_U64] = "uint64", [FLASH_PROP_SIZE] = "size",
        [FLASH_PROP_STR] = "str",
    };

    for (size_t i = 0; i < ARRAY_SIZE(nvme_flash_props); i++) {
        const NvmeFlashProp *p = &nvme_flash_props[i];

        object_class_property_add(oc, p->name, types[p->kind],
                                  nvme_flash_get_prop, nvme_flash_set_prop,
                                  NULL, (void *)p);
        object_class_property_set_description(oc, p->name, p->help);
    }
    object_class_property_add_str(oc, "flash.stats", nvme_flash_get_stats,
                                  NULL);
    object_class_property_set_description(oc, "flash.stats",
                                          "counters as JSON (read only)");
    object_class_property_add_str(oc, "flash.fault", nvme_flash_get_fault,
                                  nvme_flash_set_fault);
    object_class_property_set_description(oc, "flash.fault",
                                          "write: ACTION [NUMBER]...");
}

/* Life. */

void nvme_flash_instance_init(NvmeNamespace *ns)
{
    NvmeFlash *f = g_new0(NvmeFlash, 1);

    ns->flash_conf = f;
    f->ns = ns;
    f->params.channels = f->params.dies = f->params.planes = 1;
    f->params.page = 4 * KiB;
    f->params.program_pages = 1;
    f->params.block_pages = 256;
    f->params.stream_ms = 100;
    f->dev.tuning.buffer = 1 * MiB;
    f->dev.tuning.delay_read = f->dev.tuning.delay_program = true;
    f->dev.tuning.delay_erase = f->dev.tuning.delay_transfer = true;
    f->random = 1;
    f->armed = NVME_FLASH_UNARMED;
    QTAILQ_INIT(&f->ranges);
}

void nvme_flash_instance_finalize(NvmeNamespace *ns)
{
    g_free(ns->flash_conf->params.media);
    g_free(ns->flash_conf->params.stream);
    g_free(ns->flash_conf);
}

bool nvme_flash_wanted(const NvmeNamespace *ns)
{
    return ns->flash_conf && ns->flash_conf->params.media;
}

/* The rest of the controller expects a block backend: one without data. */
int nvme_flash_make_blk(NvmeNamespace *ns, Error **errp)
{
    NvmeFlash *f = ns->flash_conf;
    uint32_t lbasz = ns->blkconf.logical_block_size;
    QDict *opts;

    if (ns->blkconf.blk) {
        error_setg(errp, "flash.media and drive exclude each other");
        return -1;
    }
    if (!f->params.size || f->params.size > 1 * PiB) {
        error_setg(errp, "flash.size must be given, and at most 1P");
        return -1;
    }
    if (lbasz != 512 && lbasz != 4096) {
        error_setg(errp, "flash.media needs a logical_block_size of 512 or "
                   "4096, not %" PRIu32, lbasz);
        return -1;
    }
    opts = qdict_new();
    qdict_put_str(opts, "driver", "null-co");
    qdict_put_int(opts, "size",
                  f->params.size / lbasz * (lbasz + ns->params.ms));
    ns->blkconf.blk = blk_new_open(NULL, NULL, opts, BDRV_O_RDWR, errp);
    return ns->blkconf.blk ? 0 : -1;
}

static bool nvme_flash_check_features(NvmeNamespace *ns, Error **errp)
{
    if (ns->params.pi) {
        error_setg(errp, "flash.media does not go with pi");
    } else if (ns->params.mset) {
        error_setg(errp, "flash.media needs metadata apart: mset=0");
    } else if (ns->params.ms != 0 && ns->params.ms != 8 &&
               ns->params.ms != 16 && ns->params.ms != 64) {
        error_setg(errp, "flash.media takes ms 0, 8, 16 or 64, not %" PRIu16,
                   ns->params.ms);
    } else if (ns->params.cross_zone_read) {
        error_setg(errp, "flash.media does not go with zoned.cross_read");
    } else {
        return nvme_flash_check_windows(ns, errp);
    }
    return false;
}

static bool nvme_flash_check_shape(NvmeNamespace *ns, FlashShape *s,
                                   Error **errp)
{
    const NvmeFlashParams *p = &ns->flash_conf->params;
    uint64_t dies = (uint64_t)p->channels * p->dies;
    uint64_t unit = p->planes * p->page * p->program_pages;
    uint32_t width = p->zone_dies ? p->zone_dies : dies;
    uint64_t zone_bytes = nvme_l2b(ns, ns->zone_size);
    uint64_t die_units, zone_blocks, need;

    if (!p->channels || !p->dies || dies > 4096) {
        error_setg(errp, "flash.channels x flash.dies must be 1 to 4096");
    } else if (!p->planes || p->planes > 64) {
        error_setg(errp, "flash.planes must be 1 to 64");
    } else if (p->page < 512 || p->page > 1 * MiB || !is_power_of_2(p->page)) {
        error_setg(errp, "flash.page must be a power of two, 512 to 1M");
    } else if (!p->program_pages || p->program_pages > 64) {
        error_setg(errp, "flash.program_pages must be 1 to 64");
    } else if (p->planes * p->page % ns->lbasz) {
        error_setg(errp, "flash.planes x flash.page (%" PRIu64 ") must be a "
                   "multiple of the logical block (%zu)", p->planes * p->page,
                   ns->lbasz);
    } else if (!p->block_pages || p->block_pages % p->program_pages) {
        error_setg(errp, "flash.block_pages (%" PRIu32 ") must be a multiple "
                   "of flash.program_pages (%" PRIu32 ")", p->block_pages,
                   p->program_pages);
    } else if (width > dies || dies % width) {
        error_setg(errp, "flash.zone_dies (%" PRIu32 ") must divide the "
                   "number of dies (%" PRIu64 ")", width, dies);
    } else if (p->size % zone_bytes) {
        error_setg(errp, "flash.size (%" PRIu64 ") must be a multiple of the "
                   "zone size (%" PRIu64 ")", p->size, zone_bytes);
    } else if (!p->stream_ms) {
        error_setg(errp, "flash.stream_ms must be at least 1");
    } else {
        goto fits;
    }
    return false;

fits:
    die_units = DIV_ROUND_UP(nvme_l2b(ns, ns->zone_capacity), unit * width);
    zone_blocks = DIV_ROUND_UP(die_units, p->block_pages / p->program_pages);
    need = DIV_ROUND_UP(ns->num_zones, dies / width) * zone_blocks;
    if (p->blocks && p->blocks < need) {
        error_setg(errp, "the zones need %" PRIu64 " blocks a plane, "
                   "flash.blocks is %" PRIu32, need, p->blocks);
        return false;
    }
    *s = (FlashShape) {
        .nr_zones = ns->num_zones,
        .zone_blocks = ns->zone_size,
        .zone_cap = ns->zone_capacity,
        .block_size = ns->lbasz,
        .meta_size = ns->lbaf.ms,
        .ext_size = ns->params.zd_extension_size,
        .channels = p->channels,
        .dies_per_channel = p->dies,
        .planes = p->planes,
        .page_size = p->page,
        .program_pages = p->program_pages,
        .pages_per_block = p->block_pages,
        .zone_dies = width,
    };
    return true;
}

int nvme_flash_open(NvmeNamespace *ns, Error **errp)
{
    NvmeFlash *f = ns->flash_conf;
    FlashShape shape;
    char *why;

    if (!nvme_flash_check_features(ns, errp) ||
        !nvme_flash_check_shape(ns, &shape, errp)) {
        return -1;
    }
    if (f->params.stream) {
        f->stream = qemu_chr_find(f->params.stream);
        if (!f->stream) {
            error_setg(errp, "flash.stream: no chardev '%s'",
                       f->params.stream);
            return -1;
        }
        if (!qemu_chr_fe_init(&f->stream_be, f->stream, errp)) {
            return -1;
        }
    }
    f->dev.window_blocks = ns->params.zrwas / ns->lbasz;
    f->dev.window_bytes = nvme_flash_windows(ns) * ns->params.zrwas;
    why = flash_dev_open(&f->dev, f->params.media, &shape);
    if (why) {
        error_setg(errp, "%s", why);
        free(why);
        return -1;
    }
    f->dev.done = nvme_flash_done;
    f->dev.lost_power = nvme_flash_lost_power;
    f->powered = true;
    f->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, nvme_flash_timer, f);
    ns->flash = f;
    /* blocks beyond the write pointer read as zeroes, never as an error */
    ns->id_ns.nsfeat &= ~NVME_ID_NS_NSFEAT_DAE;
    nvme_flash_run(f);
    if (f->stream) {
        f->stream_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, nvme_flash_stream,
                                       f);
        timer_mod_ns(f->stream_timer, f->dev.time.now);
    }
    return 0;
}

/* The host announced that it will cut the power. */
void nvme_flash_shutdown(NvmeNamespace *ns)
{
    NvmeFlash *f = ns->flash;

    if (f->powered) {
        nvme_flash_run(f);
        flash_dev_sync(&f->dev);
        for (uint32_t i = 0; i < ns->num_zones; i++) {
            f->dev.zones[i].open = false;
        }
        nvme_flash_arm(f);
    }
}

void nvme_flash_close(NvmeNamespace *ns)
{
    NvmeFlash *f = ns->flash;
    FlashCmd *cmd, *next;

    ns->flash = NULL;
    timer_free(f->timer);
    if (f->stream) {
        timer_free(f->stream_timer);
        qemu_chr_fe_deinit(&f->stream_be, false);
    }
    nvme_flash_clear_faults(f);
    for (cmd = f->dev.cmds; cmd; cmd = next) {
        next = cmd->next;
        nvme_flash_orphan(f, cmd);
    }
    flash_dev_close(&f->dev);
    blk_unref(ns->blkconf.blk);
    ns->blkconf.blk = NULL;
}
