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
    NvmeFlash *f = container_of(dev, NvmeFlash, dev), *other;

    f->powered = false;
    trace_nvme_flash_power(f->ns->params.nsid, false);
    /* A machine has one supply: no drive sees another one without power. */
    QTAILQ_FOREACH(other, &nvme_flash_machine, beside) {
        flash_dev_cut_too(&other->dev, dev->time.now);
        nvme_flash_arm(other);
    }
}

static bool nvme_flash_power_on(NvmeFlash *f)
{
    flash_dev_power_on(&f->dev);
    if (!f->powered) {
        if (!f->personality->load(f->ns)) {
            flash_dev_power_off(&f->dev);       /* no other drive is at fault */
            return false;
        }
        f->powered = true;
        trace_nvme_flash_power(f->ns->params.nsid, true);
    }
    return true;
}

/* From the guest (vendor command) and from QOM (text). */

/* An action's numbers; what they mean depends on the action. */
typedef struct NvmeFlashNumbers {
    uint64_t a, b;
    uint32_t c;
} NvmeFlashNumbers;

static uint16_t nvme_flash_act_power_on(NvmeFlash *f, const NvmeFlashNumbers *n)
{
    return nvme_flash_power_on(f) ? NVME_SUCCESS : NVME_INTERNAL_DEV_ERROR;
}

static uint16_t nvme_flash_act_cut(NvmeFlash *f, const NvmeFlashNumbers *n)
{
    if (n->a > INT64_MAX / 2) {
        return NVME_INVALID_FIELD;
    }
    flash_dev_cut(&f->dev, f->dev.time.now + n->a);
    nvme_flash_run(f);
    return NVME_SUCCESS;
}

static uint16_t nvme_flash_act_cut_at_program(NvmeFlash *f,
                                              const NvmeFlashNumbers *n)
{
    f->dev.trouble.cut_at_program = n->a;
    return NVME_SUCCESS;
}

static uint16_t nvme_flash_act_cut_forget(NvmeFlash *f,
                                          const NvmeFlashNumbers *n)
{
    flash_dev_forget_cuts(&f->dev);
    return NVME_SUCCESS;
}

static uint16_t nvme_flash_act_cut_at_reset(NvmeFlash *f,
                                            const NvmeFlashNumbers *n)
{
    f->dev.trouble.cut_at_reset = n->a;
    return NVME_SUCCESS;
}

static uint16_t nvme_flash_add_range(NvmeFlash *f, const NvmeFlashNumbers *n,
                                     bool write)
{
    NvmeFlashFaults *faults = f->faults;
    NvmeFlashRange *r;

    if (!n->b || n->a + n->b < n->a) {
        return NVME_INVALID_FIELD;
    }
    if (faults->nr_ranges == NVME_FLASH_MAX_RANGES) {
        return NVME_CAP_EXCEEDED;
    }
    r = g_new0(NvmeFlashRange, 1);
    r->slba = n->a;
    r->nlb = n->b;
    r->left = n->c;
    r->write = write;
    QTAILQ_INSERT_TAIL(&faults->ranges, r, entry);
    faults->nr_ranges++;
    return NVME_SUCCESS;
}

static uint16_t nvme_flash_act_read_error(NvmeFlash *f,
                                          const NvmeFlashNumbers *n)
{
    return nvme_flash_add_range(f, n, false);
}

static uint16_t nvme_flash_act_write_error(NvmeFlash *f,
                                           const NvmeFlashNumbers *n)
{
    return nvme_flash_add_range(f, n, true);
}

static uint16_t nvme_flash_act_read_rate(NvmeFlash *f,
                                         const NvmeFlashNumbers *n)
{
    f->faults->read_ppm = MIN(n->a, 1000000);
    return NVME_SUCCESS;
}

static uint16_t nvme_flash_act_write_rate(NvmeFlash *f,
                                          const NvmeFlashNumbers *n)
{
    f->faults->write_ppm = MIN(n->a, 1000000);
    return NVME_SUCCESS;
}

static uint16_t nvme_flash_act_fail_program(NvmeFlash *f,
                                            const NvmeFlashNumbers *n)
{
    f->dev.trouble.fail_program = n->a;
    return NVME_SUCCESS;
}

static uint16_t nvme_flash_act_read_only(NvmeFlash *f,
                                         const NvmeFlashNumbers *n)
{
    return f->personality->fail(f->ns, n->a, false);
}

static uint16_t nvme_flash_act_offline(NvmeFlash *f, const NvmeFlashNumbers *n)
{
    return f->personality->fail(f->ns, n->a, true);
}

static uint16_t nvme_flash_act_slow_die(NvmeFlash *f, const NvmeFlashNumbers *n)
{
    if (n->a >= f->dev.time.nr_dies || !n->b || n->b > 1000000) {
        return NVME_INVALID_FIELD;
    }
    f->dev.time.dies[n->a].slow = n->b;
    return NVME_SUCCESS;
}

static uint16_t nvme_flash_act_drop(NvmeFlash *f, const NvmeFlashNumbers *n)
{
    f->drop = MIN(n->a, UINT32_MAX);
    return NVME_SUCCESS;
}

static uint16_t nvme_flash_act_seed(NvmeFlash *f, const NvmeFlashNumbers *n)
{
    f->faults->random = n->a ? n->a : 1;
    return NVME_SUCCESS;
}

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

static uint16_t nvme_flash_act_clear(NvmeFlash *f, const NvmeFlashNumbers *n)
{
    nvme_flash_clear_faults(f);
    return NVME_SUCCESS;
}

/* docs/emulator/faults.md says what each does with its numbers. */
typedef struct NvmeFlashAction {
    uint32_t code;              /* of the vendor command */
    const char *name;           /* in text */
    uint16_t (*act)(NvmeFlash *f, const NvmeFlashNumbers *n);
} NvmeFlashAction;

static const NvmeFlashAction nvme_flash_actions[] = {
    { 0x00, "power-on", nvme_flash_act_power_on },
    { 0x01, "cut", nvme_flash_act_cut },
    { 0x02, "cut-at-program", nvme_flash_act_cut_at_program },
    { 0x03, "cut-forget", nvme_flash_act_cut_forget },
    { 0x04, "cut-at-reset", nvme_flash_act_cut_at_reset },
    { 0x10, "read-error", nvme_flash_act_read_error },
    { 0x11, "write-error", nvme_flash_act_write_error },
    { 0x12, "read-rate", nvme_flash_act_read_rate },
    { 0x13, "write-rate", nvme_flash_act_write_rate },
    { 0x14, "fail-program", nvme_flash_act_fail_program },
    { 0x15, "read-only", nvme_flash_act_read_only },
    { 0x16, "offline", nvme_flash_act_offline },
    { 0x17, "slow-die", nvme_flash_act_slow_die },
    { 0x18, "drop", nvme_flash_act_drop },
    { 0x19, "seed", nvme_flash_act_seed },
    { 0x1f, "clear", nvme_flash_act_clear },
};

static uint16_t nvme_flash_act(NvmeFlash *f, const NvmeFlashAction *action,
                               const NvmeFlashNumbers *n)
{
    uint16_t status;

    nvme_flash_run(f);
    trace_nvme_flash_action(f->ns->params.nsid, action->code, n->a, n->b, n->c);
    status = action->act(f, n);
    if (!status) {
        nvme_flash_arm(f);
    }
    return status;
}

uint16_t nvme_flash_admin(NvmeCtrl *n, NvmeRequest *req)
{
    NvmeNamespace *ns = nvme_ns(n, le32_to_cpu(req->cmd.nsid));
    NvmeFlashNumbers numbers = {
        .a = (uint64_t)le32_to_cpu(req->cmd.cdw12) << 32 |
             le32_to_cpu(req->cmd.cdw11),
        .b = (uint64_t)le32_to_cpu(req->cmd.cdw14) << 32 |
             le32_to_cpu(req->cmd.cdw13),
        .c = le32_to_cpu(req->cmd.cdw15),
    };
    uint32_t code = le32_to_cpu(req->cmd.cdw10);
    uint16_t status = NVME_INVALID_FIELD;

    if (!ns || !ns->flash) {
        return NVME_INVALID_NSID | NVME_DNR;
    }
    for (size_t i = 0; i < ARRAY_SIZE(nvme_flash_actions); i++) {
        if (nvme_flash_actions[i].code == code) {
            status = nvme_flash_act(ns->flash, &nvme_flash_actions[i],
                                    &numbers);
        }
    }
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
            NvmeFlashNumbers numbers = { arg[0], arg[1], arg[2] };

            status = nvme_flash_act(f, &nvme_flash_actions[i], &numbers);
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
