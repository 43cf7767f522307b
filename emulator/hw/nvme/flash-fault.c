/*
 * Faults on demand and power.  See flash-fault.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Above flash-io.h, below the personalities, whom it asks what fails when a
 * block does.
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qapi/error.h"

#include "flash-fault.h"
#include "flash-io.h"
#include "flash-ns.h"
#include "trace.h"

#define NVME_FLASH_MAX_RANGES   1024

typedef struct NvmeFlashRange {
    uint64_t slba;
    uint64_t nlb;
    uint32_t left;              /* errors still to give; 0: without end */
    bool write;
    QTAILQ_ENTRY(NvmeFlashRange) entry;
} NvmeFlashRange;

typedef struct NvmeFlashFaults {
    QTAILQ_HEAD(, NvmeFlashRange) ranges;
    uint32_t nr_ranges;
    uint32_t read_ppm;          /* commands that fail, of a million */
    uint32_t write_ppm;
    uint64_t random;
} NvmeFlashFaults;

/* Commands that fail. */

static bool nvme_flash_chance(NvmeFlashFaults *faults, uint32_t ppm)
{
    if (!ppm) {
        return false;
    }
    /* xorshift64*: the same faults for the same seed and commands */
    faults->random ^= faults->random >> 12;
    faults->random ^= faults->random << 25;
    faults->random ^= faults->random >> 27;
    return (faults->random * 0x2545f4914f6cdd1dull >> 32) % 1000000 < ppm;
}

static void nvme_flash_forget_range(NvmeFlashFaults *faults,
                                    NvmeFlashRange *r)
{
    QTAILQ_REMOVE(&faults->ranges, r, entry);
    faults->nr_ranges--;
    g_free(r);
}

bool nvme_flash_faulty(NvmeFlash *f, bool write, uint64_t slba, uint64_t nlb)
{
    NvmeFlashFaults *faults = f->faults;
    NvmeFlashRange *r;

    QTAILQ_FOREACH(r, &faults->ranges, entry) {
        if (r->write == write && slba < r->slba + r->nlb &&
            r->slba < slba + nlb) {
            if (r->left && !--r->left) {
                nvme_flash_forget_range(faults, r);
            }
            return true;
        }
    }
    return nvme_flash_chance(faults,
                             write ? faults->write_ppm : faults->read_ppm);
}

/* Power. */

static void nvme_flash_lost_power(FlashDev *dev)
{
    NvmeFlash *f = container_of(dev, NvmeFlash, dev);

    f->powered = false;
    trace_nvme_flash_power(f->ns->params.nsid, false);
}

static void nvme_flash_power_on(NvmeFlash *f)
{
    flash_dev_power_on(&f->dev);
    if (!f->powered) {
        f->powered = true;
        f->personality->load(f->ns);
        trace_nvme_flash_power(f->ns->params.nsid, true);
    }
}

/* From the guest (vendor command) and from QOM (text). */

typedef enum NvmeFlashAction {
    NVME_FLASH_POWER_ON = 0x00,
    NVME_FLASH_CUT = 0x01,          /* a: ns from now, 0: now */
    NVME_FLASH_CUT_AT_PROGRAM = 0x02, /* a: n-th program from now */
    NVME_FLASH_CUT_FORGET = 0x03,
    NVME_FLASH_CUT_AT_RESET = 0x04, /* a: n-th reset of a zone from now */
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
    { "cut-at-reset", NVME_FLASH_CUT_AT_RESET },
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
    NvmeFlashFaults *faults = f->faults;
    NvmeFlashRange *r, *next;

    QTAILQ_FOREACH_SAFE(r, &faults->ranges, entry, next) {
        nvme_flash_forget_range(faults, r);
    }
    faults->read_ppm = faults->write_ppm = f->drop = 0;
    f->dev.trouble.fail_program = 0;
    for (uint32_t i = 0; i < f->dev.time.nr_dies; i++) {
        f->dev.time.dies[i].slow = FLASH_SLOW_UNIT;
    }
}

static uint16_t nvme_flash_act(NvmeFlash *f, NvmeFlashAction action,
                               uint64_t a, uint64_t b, uint32_t c)
{
    NvmeFlashFaults *faults = f->faults;
    NvmeFlashRange *r;
    uint16_t status;

    nvme_flash_run(f);
    trace_nvme_flash_action(f->ns->params.nsid, action, a, b, c);
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
    case NVME_FLASH_CUT_AT_RESET:
        f->dev.trouble.cut_at_reset = a;
        break;
    case NVME_FLASH_READ_ERROR:
    case NVME_FLASH_WRITE_ERROR:
        if (!b || a + b < a) {
            return NVME_INVALID_FIELD;
        }
        if (faults->nr_ranges == NVME_FLASH_MAX_RANGES) {
            return NVME_CAP_EXCEEDED;
        }
        r = g_new0(NvmeFlashRange, 1);
        r->slba = a;
        r->nlb = b;
        r->left = c;
        r->write = action == NVME_FLASH_WRITE_ERROR;
        QTAILQ_INSERT_TAIL(&faults->ranges, r, entry);
        faults->nr_ranges++;
        break;
    case NVME_FLASH_READ_RATE:
        faults->read_ppm = MIN(a, 1000000);
        break;
    case NVME_FLASH_WRITE_RATE:
        faults->write_ppm = MIN(a, 1000000);
        break;
    case NVME_FLASH_FAIL_PROGRAM:
        f->dev.trouble.fail_program = a;
        break;
    case NVME_FLASH_READ_ONLY:
    case NVME_FLASH_OFFLINE:
        status = f->personality->fail(f->ns, a, action == NVME_FLASH_OFFLINE);
        if (status) {
            return status;
        }
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
        faults->random = a ? a : 1;
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

void nvme_flash_fault_text(NvmeFlash *f, const char *text, Error **errp)
{
    g_auto(GStrv) word = g_strsplit(text, " ", 0);
    guint n = g_strv_length(word);
    uint64_t arg[3] = { 0 };
    uint16_t status;

    for (guint i = 1; i < n; i++) {
        if (i > 3 || qemu_strtou64(word[i], NULL, 0, &arg[i - 1])) {
            error_setg(errp, "flash.fault '%s': at most three numbers", text);
            return;
        }
    }
    for (size_t i = 0; n && i < ARRAY_SIZE(nvme_flash_actions); i++) {
        if (!strcmp(word[0], nvme_flash_actions[i].name)) {
            status = nvme_flash_act(f, nvme_flash_actions[i].action, arg[0],
                                    arg[1], arg[2]);
            if (status) {
                error_setg(errp, "flash.fault '%s': %s", text,
                           status == NVME_CAP_EXCEEDED ?
                           "too many ranges" : "impossible");
            }
            return;
        }
    }
    error_setg(errp, "flash.fault '%s': no such action", text);
}

/* Life. */

void nvme_flash_fault_init(NvmeFlash *f)
{
    f->faults = g_new0(NvmeFlashFaults, 1);
    f->faults->random = 1;
    QTAILQ_INIT(&f->faults->ranges);
}

void nvme_flash_fault_start(NvmeFlash *f)
{
    f->dev.lost_power = nvme_flash_lost_power;
    f->powered = true;
}

void nvme_flash_fault_stop(NvmeFlash *f)
{
    nvme_flash_clear_faults(f);
}

void nvme_flash_fault_free(NvmeFlash *f)
{
    g_free(f->faults);
}
