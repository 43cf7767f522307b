/*
 * Requests of the controller on modelled flash.  See flash-io.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Above the model, below the personalities: what a request means is theirs,
 * and they are asked when its commands end.
 */

#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "system/block-backend.h"

#include "flash-io.h"
#include "flash-ns.h"
#include "trace.h"

#define NVME_FLASH_UNARMED      UINT64_MAX
#define NVME_FLASH_MAX_ORPHANS  (64 * MiB)
#define NVME_FLASH_MAX_HELD     (256 * MiB)

NvmeFlashMachine nvme_flash_machine =
    QTAILQ_HEAD_INITIALIZER(nvme_flash_machine);

static NvmeFlash *flash_of(FlashDev *dev)
{
    return container_of(dev, NvmeFlash, dev);
}

/* Time. */

void nvme_flash_arm(NvmeFlash *f)
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

/* Controllers with commands here: a shared namespace has several. */
static void nvme_flash_each_ctrl(NvmeFlash *f, void (*call)(NvmeCtrl *n))
{
    NvmeSubsystem *subsys = f->ns->subsys;
    uint32_t left = subsys->nr_ctrls;

    for (uint32_t i = 0; left && i < NVME_MAX_CONTROLLERS; i++) {
        NvmeCtrl *n = nvme_subsys_ctrl(subsys, i);

        if (n) {
            call(n);
            left--;
        }
    }
    assert(!left);
}

/*
 * Commands end in the model, and what a read found goes to guest memory, which
 * may be the registers of any controller here: none may come back into us.
 */
void nvme_flash_enter(NvmeFlash *f)
{
    f->entered++;
    nvme_flash_each_ctrl(f, nvme_hold_cqes);
}

void nvme_flash_leave(NvmeFlash *f)
{
    g_assert(f->entered);
    nvme_flash_each_ctrl(f, nvme_release_cqes);
    f->entered--;
}

static void nvme_flash_run_to(NvmeFlash *f, uint64_t until)
{
    uint64_t when;
    bool due = flash_time_next(&f->dev.time, &when) && when <= until;

    if (due) {
        nvme_flash_enter(f);
    }
    flash_time_run(&f->dev.time, until);
    if (due) {
        nvme_flash_leave(f);
    }
}

/*
 * Is it in the middle of an event, and not itself the one that asks?  Only a
 * guest that transfers data to registers gets there.
 */
static bool nvme_flash_busy(const NvmeFlash *f, const NvmeFlash *asks)
{
    return f->entered && f != asks;
}

/* Whose event comes first (@f: nobody's), and from when on another's may. */
static NvmeFlash *nvme_flash_first(NvmeFlash *f, uint64_t now, uint64_t *until)
{
    NvmeFlash *each, *first = NULL;
    uint64_t when, earliest = now;

    *until = now;
    QTAILQ_FOREACH(each, &nvme_flash_machine, beside) {
        if (nvme_flash_busy(each, f) ||
            !flash_time_next(&each->dev.time, &when) || when > now) {
            continue;
        }
        if (first && when >= earliest) {
            *until = MIN(*until, when);
        } else {
            *until = first ? earliest : now;
            first = each;
            earliest = when;
        }
    }
    return first ? first : f;
}

static bool nvme_flash_cut_is_due(void)
{
    NvmeFlash *each;

    QTAILQ_FOREACH(each, &nvme_flash_machine, beside) {
        if (flash_dev_awaits_cut(&each->dev)) {
            return true;
        }
    }
    return false;
}

/*
 * If the power is to go, the devices' events have the order of time, so that a
 * cut finds all at one instant.  If it is not, the others are left alone: in
 * lockstep a vCPU that is behind this one may still come to them.
 */
void nvme_flash_run(NvmeFlash *f)
{
    uint64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), until;
    NvmeFlash *first, *each;

    if (!nvme_flash_cut_is_due()) {
        nvme_flash_run_to(f, now);
        return;
    }
    do {
        first = nvme_flash_first(f, now, &until);
        nvme_flash_run_to(first, until);
    } while (until < now);
    QTAILQ_FOREACH(each, &nvme_flash_machine, beside) {
        if (each != first && !nvme_flash_busy(each, f)) {
            nvme_flash_run_to(each, now);
        }
    }
}

static void nvme_flash_timer(void *opaque)
{
    NvmeFlash *f = opaque;

    f->armed = NVME_FLASH_UNARMED;
    nvme_flash_run(f);
    nvme_flash_arm(f);
}

/* Memory. */

static void nvme_flash_add_held(NvmeFlash *f, int64_t bytes)
{
    f->held += bytes;
    f->held_max = MAX(f->held_max, f->held);
    if (f->full && f->held < NVME_FLASH_MAX_HELD) {
        f->full = false;
        nvme_kick_waiting_sqs(f->ns->subsys);
    }
}

void nvme_flash_hold(NvmeRequest *req, uint32_t bytes)
{
    uint32_t before = req->flash_held;

    req->flash_held = bytes;
    if (bytes != before) {
        nvme_flash_add_held(req->ns->flash, (int64_t)bytes - before);
    }
}

bool nvme_flash_full(NvmeCtrl *n, const NvmeCmd *cmd)
{
    NvmeNamespace *ns = nvme_ns(n, le32_to_cpu(cmd->nsid));
    NvmeFlash *f = ns ? ns->flash : NULL;

    if (!f || f->held < NVME_FLASH_MAX_HELD) {
        return false;
    }
    nvme_flash_run(f);
    nvme_flash_arm(f);
    f->full = f->held >= NVME_FLASH_MAX_HELD;
    return f->full;
}

/* Completion. */

void nvme_flash_count(NvmeRequest *req, bool write, uint32_t nlb)
{
    block_acct_start(blk_get_stats(req->ns->blkconf.blk), &req->acct,
                     nvme_l2b(req->ns, nlb),
                     write ? BLOCK_ACCT_WRITE : BLOCK_ACCT_READ);
}

/* The request has ended, whether or not the host will hear of it. */
static void nvme_flash_retire(NvmeRequest *req, uint16_t status)
{
    BlockAcctStats *stats;

    if (!req->ns || !req->ns->flash) {
        return;
    }
    stats = blk_get_stats(req->ns->blkconf.blk);
    if ((status & 0x7ff) == NVME_UNRECOVERED_READ) {
        req->ns->flash->media_errors++;
    }
    if (status && (status & 0x7ff) != NVME_CMP_FAILURE) {
        block_acct_failed(stats, &req->acct);
    } else {
        block_acct_done(stats, &req->acct);
    }
    nvme_flash_hold(req, 0);
}

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

static uint64_t nvme_flash_weight(const NvmeFlash *f, const FlashCmd *cmd)
{
    return sizeof(*cmd) + nvme_l2b(f->ns, cmd->nlb);
}

/*
 * A command's share of the memory in flight.  A write's data is copied.  A
 * read has an operation for each page that it reads, and below an FTL at worst
 * a command for each block.
 */
static uint64_t nvme_flash_share(const NvmeFlash *f, const FlashCmd *cmd)
{
    const FlashDev *dev = &f->dev;
    uint64_t share = sizeof(*cmd);

    if (cmd->data) {
        share += nvme_l2b(f->ns, cmd->nlb) + nvme_m2b(f->ns, cmd->nlb);
    } else if (cmd->kind == FLASH_CMD_READ && dev->serve) {
        share += cmd->nlb * (sizeof(FlashCmd) + sizeof(FlashOp));
    } else if (cmd->kind == FLASH_CMD_READ) {
        share += (cmd->nlb / dev->page_blocks + 2) * sizeof(FlashOp);
    }
    return share;
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

    g_assert(f->entered || !req);
    if (now > dev->time.now) {
        f->late++;
        f->late_ns += now - dev->time.now;
        f->late_max_ns = MAX(f->late_max_ns, now - dev->time.now);
    }
    trace_nvme_flash_done(f->ns->params.nsid, cmd->kind, cmd->zone, cmd->block,
                          cmd->nlb, cmd->status, dev->time.now);
    if (!req) {
        f->orphans -= nvme_flash_weight(f, cmd);
    } else if (cmd->kind == FLASH_CMD_READ && !status && !req->status) {
        status = f->personality->read_ended(req, cmd);
    }
    nvme_flash_add_held(f, -(int64_t)cmd->held);
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
        status = f->personality->resume(req);
        if (status == NVME_NO_COMPLETE) {
            return;
        }
        req->status = status;
    }
    nvme_flash_retire(req, req->status);
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
        status = f->personality->resume(req);
        if (status == NVME_NO_COMPLETE) {
            return status;
        }
        req->status = status;
    }
    nvme_flash_retire(req, req->status);
    if (f->drop && !req->status) {
        f->drop--;
        req->flash_pending = 1;
        return NVME_NO_COMPLETE;
    }
    return req->status;
}

void nvme_flash_adopt(NvmeRequest *req, FlashCmd *cmd)
{
    cmd->owner = req;
    req->flash_pending++;
}

FlashCmd *nvme_flash_cmd(NvmeRequest *req, FlashCmdKind kind, uint32_t zone)
{
    FlashCmd *cmd = g_new0(FlashCmd, 1);

    cmd->kind = kind;
    cmd->zone = zone;
    nvme_flash_adopt(req, cmd);
    return cmd;
}

void nvme_flash_submit(NvmeFlash *f, FlashCmd *cmd)
{
    trace_nvme_flash_submit(f->ns->params.nsid, cmd->kind, cmd->zone,
                            cmd->block, cmd->nlb, f->dev.time.now);
    cmd->held = nvme_flash_share(f, cmd);
    nvme_flash_add_held(f, cmd->held);
    nvme_flash_enter(f);
    flash_dev_submit(&f->dev, cmd);
    nvme_flash_leave(f);
}

bool nvme_flash_cancel(NvmeRequest *req)
{
    NvmeCtrl *n = nvme_ctrl(req);

    if (!req->flash_pending) {
        return false;
    }
    req->flash_pending = 0;
    nvme_sg_unmap(&req->sg);
    g_clear_pointer(&req->opaque, g_free);
    nvme_flash_retire(req, NVME_CMD_ABORT_REQ);
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

uint16_t nvme_flash_check(NvmeNamespace *ns)
{
    NvmeFlash *f = ns->flash;

    nvme_flash_run(f);
    f->dev.through = !blk_enable_write_cache(ns->blkconf.blk);
    f->auto_closed = 0;
    if (!f->powered) {
        return NVME_INTERNAL_DEV_ERROR | NVME_DNR;
    }
    /* a host that submits and aborts without end has to wait */
    return f->orphans > NVME_FLASH_MAX_ORPHANS ? NVME_NS_NOT_READY :
                                                 NVME_SUCCESS;
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

/* Data. */

uint16_t nvme_flash_copy_out(NvmeRequest *req, uint32_t zone, uint64_t block,
                             uint32_t nlb)
{
    NvmeCtrl *n = nvme_ctrl(req);
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

uint16_t nvme_flash_fetch(NvmeRequest *req, uint32_t nlb, uint8_t *data,
                          uint8_t *oob)
{
    NvmeCtrl *n = nvme_ctrl(req);
    NvmeNamespace *ns = req->ns;
    size_t len = nvme_l2b(ns, nlb), mlen = nvme_m2b(ns, nlb);
    uint16_t status;

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

uint16_t nvme_flash_compare(NvmeRequest *req, uint32_t zone, uint64_t block,
                            uint32_t nlb)
{
    NvmeCtrl *n = nvme_ctrl(req);
    size_t len = nvme_l2b(req->ns, nlb), mlen = nvme_m2b(req->ns, nlb);
    g_autofree uint8_t *want = g_malloc(len + mlen);
    g_autofree uint8_t *have = g_malloc(len + mlen);
    uint16_t status;

    if (!req->cmd.mptr) {
        mlen = 0;               /* the host does not care */
    }
    status = nvme_bounce_data(n, want, len, NVME_TX_DIRECTION_TO_DEVICE, req);
    if (!status && mlen) {
        status = nvme_bounce_mdata(n, want + len, mlen,
                                   NVME_TX_DIRECTION_TO_DEVICE, req);
    }
    if (status) {
        return status;
    }
    flash_dev_copy(&req->ns->flash->dev, zone, block, nlb, have, have + len);
    return memcmp(want, have, len + mlen) ? NVME_CMP_FAILURE | NVME_DNR :
                                            NVME_SUCCESS;
}

/* Life. */

void nvme_flash_io_start(NvmeFlash *f)
{
    f->armed = NVME_FLASH_UNARMED;
    f->dev.done = nvme_flash_done;
    f->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, nvme_flash_timer, f);
    QTAILQ_INSERT_TAIL(&nvme_flash_machine, f, beside);
}

/* The model ends what it still has when it closes: no request is left. */
void nvme_flash_io_stop(NvmeFlash *f)
{
    QTAILQ_REMOVE(&nvme_flash_machine, f, beside);
    timer_free(f->timer);
    for (FlashCmd *cmd = f->dev.cmds; cmd; cmd = cmd->next) {
        nvme_flash_orphan(f, cmd);
    }
}
