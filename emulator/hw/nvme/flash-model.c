/*
 * The flash device.  See flash-model.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The way of a command: submit -> (controller, one at a time) -> ready ->
 * operations on dies -> answer -> (firmware latency) -> done.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "flash-model.h"

typedef struct FlashWaiter {
    struct FlashWaiter *next;
    FlashCmd *cmd;
} FlashWaiter;

/* One program unit's worth of buffered data. */
struct FlashUnit {
    FlashOp op;
    FlashDev *dev;
    uint32_t zone;
    uint64_t block;             /* first block, from the zone's start */
    uint32_t nlb;               /* blocks filled */
    uint64_t seq;
    bool dropped;               /* its zone was reset */
    bool kept;                  /* the image has its data already */
    bool begun;
    FlashWaiter *waiters;
    FlashUnit *next, *prev;     /* fill list or issued list */
    FlashUnit *zone_next;
    uint8_t *data;
    uint8_t *oob;
};

/* Erases or padding of one command on one die, one after the other. */
struct FlashJob {
    FlashOp op;
    FlashCmd *cmd;
    FlashJob *next, **pprev;
    uint64_t first;             /* erases at full price */
    uint64_t left;
};

static void *alloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);

    assert(p);
    return p;
}

static FlashDev *time_dev(FlashTime *ft)
{
    return (FlashDev *)((char *)ft - offsetof(FlashDev, time));
}

/* Geometry. */

uint32_t flash_dev_die(const FlashDev *dev, uint32_t zone, uint64_t unit)
{
    uint32_t width = dev->media.shape.zone_dies;
    uint32_t groups = dev->time.nr_dies / width;

    return zone % groups * width + (unit + zone / groups) % width;
}

static uint64_t unit_bytes(const FlashDev *dev)
{
    return (uint64_t)dev->unit_blocks * dev->media.shape.block_size;
}

static uint64_t zone_units(const FlashDev *dev, uint64_t blocks)
{
    return (blocks + dev->unit_blocks - 1) / dev->unit_blocks;
}

/* How many of units [from, to) of the zone sit on the die at that place? */
static uint64_t units_at(const FlashDev *dev, uint64_t from, uint64_t to,
                         uint32_t place)
{
    uint32_t width = dev->media.shape.zone_dies;

    return (to + width - 1 - place) / width -
           (from + width - 1 - place) / width;
}

/* Where the zone's data ends, that in its window included. */
static uint64_t zone_end(const FlashDev *dev, uint32_t zone)
{
    uint64_t accepted = dev->zones[zone].accepted;
    uint64_t ahead = dev->media.zones[zone].ahead;

    return accepted > ahead ? accepted : ahead;
}

/* Buffer accounting. */

static void buffer_add(FlashDev *dev, int64_t bytes)
{
    FlashStats *s = &dev->stats;

    s->buffer_time += s->buffer_used * (dev->time.now - s->buffer_since);
    s->buffer_since = dev->time.now;
    s->buffer_used += bytes;
    if (s->buffer_used > s->buffer_max) {
        s->buffer_max = s->buffer_used;
    }
}

/* Blocks that still fit. */
static uint64_t buffer_room(const FlashDev *dev)
{
    uint64_t size = dev->tuning.buffer, used = dev->stats.buffer_used;

    if (!size) {
        return UINT64_MAX;
    }
    return used < size ? (size - used) / dev->media.shape.block_size : 0;
}

/* Commands: the last steps. */

static void cmd_unlink(FlashCmd *cmd)
{
    *cmd->pprev = cmd->next;
    if (cmd->next) {
        cmd->next->pprev = cmd->pprev;
    }
}

static void cmd_done(FlashTime *ft, void *arg)
{
    FlashDev *dev = time_dev(ft);
    FlashCmd *cmd = arg;

    cmd_unlink(cmd);
    free(cmd->reads);
    free(cmd->data);
    free(cmd->oob);
    cmd->reads = NULL;
    cmd->data = cmd->oob = NULL;
    if (cmd->status) {
        dev->stats.errors++;
    }
    dev->done(dev, cmd);
}

static void cmd_answer(FlashDev *dev, FlashCmd *cmd)
{
    if (cmd->extra_ns) {
        flash_time_at(&dev->time, dev->time.now + cmd->extra_ns, cmd_done, cmd);
    } else {
        cmd_done(&dev->time, cmd);
    }
}

/* A full zone is full after a power loss only from here on. */
static void finish_ended(FlashDev *dev, FlashCmd *cmd)
{
    FlashImageZone *z = &dev->media.zones[cmd->zone];

    if (cmd->seq != z->erases) {
        return;                 /* it was reset meanwhile */
    }
    z->flags |= FLASH_ZONE_FINISHED;
    if (dev->zones[cmd->zone].accepted) {
        z->padded = dev->media.shape.zone_cap;
    }
}

static void cmd_step(FlashDev *dev, FlashCmd *cmd)
{
    assert(cmd->pending);
    if (!--cmd->pending) {
        if (cmd->kind == FLASH_CMD_FINISH && !cmd->status) {
            finish_ended(dev, cmd);
        }
        cmd_answer(dev, cmd);
    }
}

/* Units. */

static void pump(FlashDev *dev);

static FlashUnit *unit_new(FlashDev *dev, uint32_t zone)
{
    const FlashShape *s = &dev->media.shape;
    FlashUnit *u = dev->spare;

    if (u) {
        dev->spare = u->next;
    } else {
        u = alloc(1, sizeof(*u));
        u->data = alloc(dev->unit_blocks, s->block_size);
        u->oob = alloc(dev->unit_blocks, s->meta_size ? s->meta_size : 1);
    }
    u->dev = dev;
    u->zone = zone;
    u->block = dev->zones[zone].accepted;
    u->nlb = 0;
    u->dropped = u->kept = u->begun = false;
    u->waiters = NULL;
    u->next = NULL;
    u->prev = dev->fill_tail;
    if (dev->fill_tail) {
        dev->fill_tail->next = u;
    } else {
        dev->fill_head = u;
    }
    dev->fill_tail = u;
    dev->zones[zone].fill = u;
    return u;
}

static void unit_free(FlashDev *dev, FlashUnit *u)
{
    while (u->waiters) {
        FlashWaiter *w = u->waiters;

        u->waiters = w->next;
        free(w);
    }
    u->next = dev->spare;
    dev->spare = u;
}

static void list_remove(FlashUnit **head, FlashUnit **tail, FlashUnit *u)
{
    if (u->prev) {
        u->prev->next = u->next;
    } else {
        *head = u->next;
    }
    if (u->next) {
        u->next->prev = u->prev;
    } else {
        *tail = u->prev;
    }
}

static void unit_wait(FlashUnit *u, FlashCmd *cmd)
{
    FlashWaiter *w = u->waiters;

    if (w && w->cmd == cmd) {
        return;
    }
    w = alloc(1, sizeof(*w));
    w->cmd = cmd;
    w->next = u->waiters;
    u->waiters = w;
    cmd->pending++;
}

static void waiters_step(FlashDev *dev, FlashUnit *u)
{
    while (u->waiters) {
        FlashWaiter *w = u->waiters;
        FlashCmd *cmd = w->cmd;

        u->waiters = w->next;
        free(w);
        cmd_step(dev, cmd);
    }
}

static void zone_forget_unit(FlashDev *dev, FlashUnit *u)
{
    FlashUnit **p = &dev->zones[u->zone].units;

    while (*p != u) {
        p = &(*p)->zone_next;
    }
    *p = u->zone_next;
}

static void flushes_check(FlashDev *dev)
{
    while (dev->flush_head &&
           (!dev->issued_head ||
            dev->issued_head->seq > dev->flush_head->seq)) {
        FlashCmd *cmd = dev->flush_head;

        dev->flush_head = cmd->wait_next;
        if (!dev->flush_head) {
            dev->flush_tail = &dev->flush_head;
        }
        cmd_step(dev, cmd);
    }
}

static void unit_started(FlashTime *ft, FlashOp *op)
{
    FlashUnit *u = op->arg;
    FlashDev *dev = time_dev(ft);
    FlashZone *z = &dev->zones[u->zone];

    if (u->dropped) {
        return;                 /* of it only the transfer was left */
    }
    if (u->begun) {
        dev->stats.programs_retried++;
    } else if (u->nlb == dev->unit_blocks) {
        dev->stats.programs_full++;
    } else {
        dev->stats.programs_padded++;
    }
    dev->stats.programmed_bytes += op->bytes;
    u->begun = true;
    if (z->programmed < u->block + u->nlb) {
        z->programmed = u->block + u->nlb;
    }
    if (!u->kept) {
        flash_media_begin(&dev->media, u->zone, u->block, u->nlb);
    }
    if (dev->trouble.cut_at_program && !--dev->trouble.cut_at_program) {
        flash_dev_cut(dev, ft->now);
    }
}

static void unit_ended(FlashTime *ft, FlashOp *op)
{
    FlashUnit *u = op->arg;
    FlashDev *dev = time_dev(ft);

    if (!u->dropped && dev->trouble.fail_program &&
        !--dev->trouble.fail_program) {
        /* the drive still has the data, and writes it to a spare block */
        flash_op_submit(ft, op);
        return;
    }

    list_remove(&dev->issued_head, &dev->issued_tail, u);
    if (!u->dropped) {
        zone_forget_unit(dev, u);
        if (!u->kept) {
            flash_media_commit(&dev->media, u->zone, u->block, u->nlb, u->data,
                               u->oob);
        }
        buffer_add(dev, -(int64_t)u->nlb * dev->media.shape.block_size);
    }
    waiters_step(dev, u);
    unit_free(dev, u);
    flushes_check(dev);
    pump(dev);
}

static uint64_t program_ns(const FlashDev *dev)
{
    return dev->tuning.delay_program ? dev->tuning.program_ns : 0;
}

/* Send a unit to its die, full or not. */
static void unit_issue(FlashDev *dev, FlashUnit *u)
{
    FlashZone *z = &dev->zones[u->zone];

    list_remove(&dev->fill_head, &dev->fill_tail, u);
    z->fill = NULL;
    u->seq = ++dev->seq;
    u->next = NULL;
    u->prev = dev->issued_tail;
    if (dev->issued_tail) {
        dev->issued_tail->next = u;
    } else {
        dev->issued_head = u;
    }
    dev->issued_tail = u;
    u->zone_next = z->units;
    z->units = u;

    u->op = (FlashOp) {
        .kind = FLASH_OP_PROGRAM,
        .die = flash_dev_die(dev, u->zone, u->block / dev->unit_blocks),
        .bytes = unit_bytes(dev),
        .cell_ns = program_ns(dev),
        .started = unit_started,
        .done = unit_ended,
        .arg = u,
    };
    flash_op_submit(&dev->time, &u->op);
}

static void issue_all(FlashDev *dev)
{
    while (dev->fill_head) {
        unit_issue(dev, dev->fill_head);
    }
}

/* n more blocks of a zone are in its unit, which leaves when it is full. */
static void unit_grow(FlashDev *dev, FlashUnit *u, uint32_t n)
{
    FlashZone *z = &dev->zones[u->zone];

    u->nlb += n;
    z->accepted += n;
    buffer_add(dev, (int64_t)n * dev->media.shape.block_size);
    if (z->accepted % dev->unit_blocks == 0 ||
        z->accepted == dev->media.shape.zone_cap) {
        unit_issue(dev, u);
    }
}

/* Up to n blocks more that fit into the buffer and the zone's unit. */
static uint64_t unit_room(const FlashDev *dev, uint32_t zone, uint64_t n)
{
    uint64_t left = dev->unit_blocks -
                    dev->zones[zone].accepted % dev->unit_blocks;
    uint64_t room = buffer_room(dev);

    n = n < room ? n : room;
    return n < left ? n : left;
}

/* Writes. */

static bool write_through(const FlashDev *dev, const FlashCmd *cmd)
{
    return cmd->fua || dev->through || !dev->tuning.buffer;
}

/* Move as much as fits of a write into the buffer; true: all of it. */
static bool write_admit(FlashDev *dev, FlashCmd *cmd)
{
    const FlashShape *s = &dev->media.shape;
    FlashZone *z = &dev->zones[cmd->zone];

    while (cmd->admitted < cmd->nlb) {
        uint32_t n = unit_room(dev, cmd->zone, cmd->nlb - cmd->admitted);
        FlashUnit *u;

        if (!n) {
            return false;
        }
        u = z->fill ? z->fill : unit_new(dev, cmd->zone);
        memcpy(u->data + (size_t)u->nlb * s->block_size,
               cmd->data + (size_t)cmd->admitted * s->block_size,
               (size_t)n * s->block_size);
        if (s->meta_size) {
            memcpy(u->oob + (size_t)u->nlb * s->meta_size,
                   cmd->oob + (size_t)cmd->admitted * s->meta_size,
                   (size_t)n * s->meta_size);
        }
        cmd->admitted += n;
        if (write_through(dev, cmd)) {
            unit_wait(u, cmd);
        }
        unit_grow(dev, u, n);
    }
    if (write_through(dev, cmd) && z->fill) {
        unit_issue(dev, z->fill);
    }
    return true;
}

/*
 * Random write windows.  Their blocks lie in the image from the start, so that
 * what was acknowledged is there after a cut, also while it is programmed.
 */

/* Blocks before the window whose program did not begin are holes from now on. */
static void window_holes(FlashDev *dev, uint32_t zone)
{
    FlashZone *z = &dev->zones[zone];

    if (z->fill && !z->fill->kept) {
        unit_issue(dev, z->fill);
    }
    flash_media_begin(&dev->media, zone, z->accepted, 0);
}

static void window_store(FlashDev *dev, FlashCmd *cmd, uint64_t end)
{
    const FlashShape *s = &dev->media.shape;
    FlashImageZone *iz = &dev->media.zones[cmd->zone];
    uint64_t block = cmd->block + cmd->admitted;

    if (block >= end) {
        return;
    }
    iz->ahead = iz->ahead > end ? iz->ahead : end;
    flash_media_mark(&dev->media, cmd->zone * s->zone_blocks + block,
                     end - block, true);
    flash_media_commit(&dev->media, cmd->zone, block, end - block,
                       cmd->data + (size_t)cmd->admitted * s->block_size,
                       cmd->oob + (size_t)cmd->admitted * s->meta_size);
    cmd->admitted += end - block;
}

/* Write what the window holds, slide it as far as fits; true: all done. */
static bool window_admit(FlashDev *dev, FlashCmd *cmd)
{
    FlashZone *z = &dev->zones[cmd->zone];
    uint64_t end = cmd->block + cmd->nlb;

    window_holes(dev, cmd->zone);
    while (z->accepted < cmd->commit) {
        uint64_t edge = z->accepted + dev->window_blocks;
        uint32_t n = unit_room(dev, cmd->zone, cmd->commit - z->accepted);
        FlashUnit *u;

        window_store(dev, cmd, end < edge ? end : edge);
        if (!n) {
            return false;
        }
        u = z->fill ? z->fill : unit_new(dev, cmd->zone);
        u->kept = true;
        dev->media.zones[cmd->zone].wp = z->accepted + n;
        unit_grow(dev, u, n);
    }
    window_store(dev, cmd, end);
    return true;
}

void flash_dev_end_window(FlashDev *dev, uint32_t zone)
{
    FlashImageZone *iz = &dev->media.zones[zone];

    window_holes(dev, zone);
    iz->flags &= ~FLASH_ZONE_WINDOW;
    iz->wp = dev->zones[zone].accepted = zone_end(dev, zone);
}

static void finish_start(FlashDev *dev, FlashCmd *cmd);

static bool cmd_admit(FlashDev *dev, FlashCmd *cmd)
{
    if (cmd->kind == FLASH_CMD_FINISH) {
        finish_start(dev, cmd);
        return true;
    }
    return cmd->window ? window_admit(dev, cmd) : write_admit(dev, cmd);
}

/* Let waiting writes into the buffer, in the order in which they came. */
static void pump(FlashDev *dev)
{
    while (dev->wait_head) {
        FlashCmd *cmd = dev->wait_head;

        if (!cmd_admit(dev, cmd)) {
            if (!dev->issued_head && dev->fill_head) {
                /* all of the buffer is in units that are not full */
                unit_issue(dev, dev->fill_head);
            }
            return;
        }
        dev->wait_head = cmd->wait_next;
        if (!dev->wait_head) {
            dev->wait_tail = &dev->wait_head;
        }
        cmd_step(dev, cmd);
    }
}

static void write_ready(FlashDev *dev, FlashCmd *cmd)
{
    bool first = !dev->wait_head;

    /* the answer waits for all of the write, not for its first units */
    cmd->pending = 1;
    cmd->wait_next = NULL;
    *dev->wait_tail = cmd;
    dev->wait_tail = &cmd->wait_next;
    if (first) {
        pump(dev);
    }
    if (dev->wait_head && cmd->kind != FLASH_CMD_FINISH) {
        dev->stats.waited++;
    }
}

/* Reads. */

static void read_ended(FlashTime *ft, FlashOp *op)
{
    cmd_step(time_dev(ft), op->arg);
}

static const FlashUnit *unit_of(const FlashDev *dev, uint32_t zone,
                                uint64_t block)
{
    const FlashZone *z = &dev->zones[zone];
    const FlashUnit *u;

    if (z->fill && block >= z->fill->block) {
        return block < z->fill->block + z->fill->nlb ? z->fill : NULL;
    }
    for (u = z->units; u; u = u->zone_next) {
        if (block >= u->block && block < u->block + u->nlb) {
            return u;
        }
    }
    return NULL;
}

/* A FUA read waits until what it reads is on flash. */
static void read_through(FlashDev *dev, FlashCmd *cmd, uint64_t end)
{
    FlashZone *z = &dev->zones[cmd->zone];

    if (z->fill && !z->fill->kept && end > z->fill->block) {
        unit_issue(dev, z->fill);
    }
    for (FlashUnit *u = z->units; u; u = u->zone_next) {
        if (!u->kept && cmd->block < u->block + u->nlb && end > u->block) {
            unit_wait(u, cmd);
        }
    }
}

/* One cell read and one transfer for each row of pages that is touched. */
static void read_ready(FlashDev *dev, FlashCmd *cmd)
{
    const FlashShape *s = &dev->media.shape;
    uint64_t block = cmd->block, end = cmd->block + cmd->nlb;
    uint64_t limit = zone_end(dev, cmd->zone);
    uint64_t accepted = dev->zones[cmd->zone].accepted;
    uint32_t n = 0;

    if (end > limit) {
        end = limit;            /* beyond it there is nothing to read */
    }
    cmd->pending = 1;
    if (cmd->fua) {
        read_through(dev, cmd, end);
    }
    if (block < end) {
        cmd->reads = alloc((end - 1) / dev->row_blocks -
                           block / dev->row_blocks + 1, sizeof(*cmd->reads));
    }
    while (block < end) {
        uint64_t edge = (block / dev->row_blocks + 1) * dev->row_blocks;
        uint32_t wanted = 0;

        for (edge = edge < end ? edge : end; block < edge; block++) {
            wanted += block < accepted && !unit_of(dev, cmd->zone, block);
        }
        if (!wanted) {
            dev->stats.buffer_hits++;
            continue;
        }
        cmd->reads[n] = (FlashOp) {
            .kind = FLASH_OP_READ,
            .die = flash_dev_die(dev, cmd->zone,
                                 (block - 1) / dev->unit_blocks),
            .bytes = wanted * s->block_size,
            .cell_ns = dev->tuning.delay_read ? dev->tuning.read_ns : 0,
            .done = read_ended,
            .arg = cmd,
        };
        n++;
    }
    dev->stats.reads += n;
    cmd->pending += n;
    for (uint32_t i = 0; i < n; i++) {
        flash_op_submit(&dev->time, &cmd->reads[i]);
    }
    cmd_step(dev, cmd);
}

/* Jobs: the same work again and again on one die, for one command. */

static void job_next(FlashDev *dev, FlashJob *job);

static void job_started(FlashTime *ft, FlashOp *op)
{
    FlashStats *s = &time_dev(ft)->stats;

    if (op->kind == FLASH_OP_ERASE) {
        s->erases++;
    } else {
        s->programs_finish++;
        s->programmed_bytes += op->bytes;
    }
}

static void job_ended(FlashTime *ft, FlashOp *op)
{
    job_next(time_dev(ft), op->arg);
}

static void job_next(FlashDev *dev, FlashJob *job)
{
    FlashCmd *cmd = job->cmd;
    const FlashTuning *t = &dev->tuning;

    if (!job->left) {
        *job->pprev = job->next;
        if (job->next) {
            job->next->pprev = job->pprev;
        }
        free(job);
        cmd_step(dev, cmd);
        return;
    }
    job->left--;
    if (job->op.kind == FLASH_OP_ERASE) {
        job->op.cell_ns = 0;
        if (t->delay_erase) {
            job->op.cell_ns = job->first || !t->erase_more_ns ? t->erase_ns :
                                                               t->erase_more_ns;
        }
        if (job->first) {
            job->first--;
        }
    } else {
        job->op.cell_ns = program_ns(dev);
    }
    flash_op_submit(&dev->time, &job->op);
}

static void job_start(FlashDev *dev, FlashCmd *cmd, FlashOpKind kind,
                      uint32_t die, uint64_t first, uint64_t count)
{
    FlashJob *job;

    if (!count) {
        return;
    }
    job = alloc(1, sizeof(*job));
    job->cmd = cmd;
    job->first = first;
    job->left = count;
    job->op.kind = kind;
    job->op.die = die;
    job->op.started = job_started;
    job->op.done = job_ended;
    job->op.arg = job;
    job->op.bytes = kind == FLASH_OP_PROGRAM ? unit_bytes(dev) : 0;
    job->next = dev->jobs;
    job->pprev = &dev->jobs;
    if (dev->jobs) {
        dev->jobs->pprev = &job->next;
    }
    dev->jobs = job;
    cmd->pending++;
    job_next(dev, job);
}

/* Zones. */

static bool zone_touched(const FlashDev *dev, uint32_t zone)
{
    const FlashImageZone *iz = &dev->media.zones[zone];

    return !(iz->flags & (FLASH_ZONE_READ_ONLY | FLASH_ZONE_OFFLINE)) &&
           (dev->zones[zone].accepted || iz->wp || iz->flags);
}

/* Nothing of the zone stays in the buffer or in the queue for it. */
static void zone_drop(FlashDev *dev, uint32_t zone)
{
    FlashZone *z = &dev->zones[zone];
    FlashCmd **p = &dev->wait_head;
    FlashUnit *u;

    while (*p) {
        FlashCmd *cmd = *p;

        if (cmd->zone != zone) {
            p = &cmd->wait_next;
            continue;
        }
        *p = cmd->wait_next;
        cmd->status = FLASH_OVERTAKEN;
        cmd_step(dev, cmd);
    }
    dev->wait_tail = p;

    while ((u = z->units)) {
        z->units = u->zone_next;
        buffer_add(dev, -(int64_t)u->nlb * dev->media.shape.block_size);
        if (flash_op_cancel(&dev->time, &u->op)) {
            list_remove(&dev->issued_head, &dev->issued_tail, u);
            waiters_step(dev, u);
            unit_free(dev, u);
            continue;
        }
        u->dropped = true;
        if (!u->begun) {
            u->op.bytes = 0;
            u->op.cell_ns = 0;
        }
    }
    for (FlashJob *job = dev->jobs; job; job = job->next) {
        if (job->cmd->zone == zone && job->op.kind == FLASH_OP_PROGRAM) {
            job->left = 0;      /* padding that did not begin */
        }
    }
    u = z->fill;
    if (u) {
        z->fill = NULL;
        buffer_add(dev, -(int64_t)u->nlb * dev->media.shape.block_size);
        list_remove(&dev->fill_head, &dev->fill_tail, u);
        waiters_step(dev, u);
        unit_free(dev, u);
    }
    z->accepted = z->programmed = 0;
    z->finished = false;
    flushes_check(dev);
}

/* Erase the blocks that the zones occupy; count[die] and first[die] add up. */
static void zone_count_erases(FlashDev *dev, uint32_t zone, uint64_t *first,
                              uint64_t *count)
{
    const FlashImageZone *iz = &dev->media.zones[zone];
    uint64_t begun = dev->zones[zone].programmed;
    uint64_t used = begun > iz->padded ? begun : iz->padded;
    uint64_t units = zone_units(dev, used);

    for (uint32_t i = 0; i < dev->media.shape.zone_dies; i++) {
        uint64_t n = units_at(dev, 0, units, i);

        if (n) {
            uint32_t die = flash_dev_die(dev, zone, i);

            count[die] += (n + dev->units_per_block - 1) /
                          dev->units_per_block;
            first[die]++;
        }
    }
}

static void reset_ready(FlashDev *dev, FlashCmd *cmd)
{
    bool all = cmd->zone == FLASH_ALL_ZONES;
    uint64_t nr_zones = dev->media.shape.nr_zones;
    uint32_t nr_dies = dev->time.nr_dies;
    uint64_t *count = alloc(2 * nr_dies, sizeof(*count));
    uint64_t *first = count + nr_dies;

    cmd->pending = 1;
    for (uint32_t i = 0; i < nr_zones; i++) {
        if (all ? zone_touched(dev, i) : i == cmd->zone) {
            zone_count_erases(dev, i, first, count);
            zone_drop(dev, i);
            flash_media_reset(&dev->media, i);
        }
    }
    for (uint32_t die = 0; die < nr_dies; die++) {
        job_start(dev, cmd, FLASH_OP_ERASE, die, first[die], count[die]);
    }
    free(count);
    pump(dev);
    cmd_step(dev, cmd);
}

/* What a window holds beyond the units on their way is part of the padding. */
static void finish_start(FlashDev *dev, FlashCmd *cmd)
{
    const FlashImageZone *iz = &dev->media.zones[cmd->zone];
    FlashZone *z = &dev->zones[cmd->zone];
    uint64_t from = zone_units(dev, z->accepted);
    uint64_t to = zone_units(dev, dev->media.shape.zone_cap);
    FlashUnit *u;

    cmd->seq = iz->erases;
    if (z->fill) {
        unit_issue(dev, z->fill);
    }
    if (iz->ahead > z->accepted) {
        from = z->accepted / dev->unit_blocks;
    }
    if (iz->flags & FLASH_ZONE_WINDOW) {
        flash_dev_end_window(dev, cmd->zone);
    }
    for (u = z->units; u; u = u->zone_next) {
        unit_wait(u, cmd);
    }
    if (z->accepted && !z->finished) {
        for (uint32_t i = 0; i < dev->media.shape.zone_dies; i++) {
            job_start(dev, cmd, FLASH_OP_PROGRAM,
                      flash_dev_die(dev, cmd->zone, i), 0,
                      units_at(dev, from, to, i));
        }
    }
    z->finished = true;
}

/* Behind what waits for the buffer, in this zone, or to slide its window. */
static void finish_ready(FlashDev *dev, FlashCmd *cmd)
{
    const FlashCmd *w = dev->wait_head;

    while (w && w->zone != cmd->zone) {
        w = w->wait_next;
    }
    if (w || dev->media.zones[cmd->zone].flags & FLASH_ZONE_WINDOW) {
        write_ready(dev, cmd);
        return;
    }
    cmd->pending = 1;
    finish_start(dev, cmd);
    cmd_step(dev, cmd);
}

static void flush_ready(FlashDev *dev, FlashCmd *cmd)
{
    issue_all(dev);
    cmd->pending = 1;
    cmd->seq = dev->seq;
    cmd->wait_next = NULL;
    *dev->flush_tail = cmd;
    dev->flush_tail = &cmd->wait_next;
    flushes_check(dev);
}

static void cmd_ready(FlashTime *ft, void *arg)
{
    FlashDev *dev = time_dev(ft);
    FlashCmd *cmd = arg;

    switch (cmd->kind) {
    case FLASH_CMD_READ:
        read_ready(dev, cmd);
        break;
    case FLASH_CMD_WRITE:
    case FLASH_CMD_APPEND:
    case FLASH_CMD_COMMIT:
        write_ready(dev, cmd);
        break;
    case FLASH_CMD_OPEN:
        if (cmd->window) {
            dev->media.zones[cmd->zone].flags |= FLASH_ZONE_WINDOW;
        }
        cmd_answer(dev, cmd);
        break;
    case FLASH_CMD_FLUSH:
        flush_ready(dev, cmd);
        break;
    case FLASH_CMD_FINISH:
        finish_ready(dev, cmd);
        break;
    case FLASH_CMD_RESET:
        reset_ready(dev, cmd);
        break;
    default:
        cmd_answer(dev, cmd);
    }
}

void flash_dev_submit(FlashDev *dev, FlashCmd *cmd)
{
    uint64_t now = dev->time.now;
    uint64_t begin = dev->service_free > now ? dev->service_free : now;
    uint64_t bytes = (uint64_t)cmd->nlb * dev->media.shape.block_size;

    cmd->dev = dev;
    cmd->status = FLASH_OK;
    cmd->reads = NULL;
    cmd->admitted = cmd->pending = 0;
    cmd->extra_ns = dev->tuning.cmd_ns[cmd->kind];
    cmd->next = dev->cmds;
    cmd->pprev = &dev->cmds;
    if (dev->cmds) {
        dev->cmds->pprev = &cmd->next;
    }
    dev->cmds = cmd;

    if (!dev->powered) {
        cmd->status = FLASH_NO_POWER;
        cmd_done(&dev->time, cmd);
        return;
    }
    dev->stats.cmds[cmd->kind]++;
    if (cmd->kind == FLASH_CMD_READ) {
        dev->stats.read_bytes += bytes;
    } else if (cmd->kind <= FLASH_CMD_APPEND || cmd->kind == FLASH_CMD_COMMIT) {
        dev->stats.written_bytes += bytes;
        if (!dev->zones[cmd->zone].open) {
            dev->zones[cmd->zone].open = true;
            cmd->extra_ns += dev->tuning.cmd_ns[FLASH_CMD_OPEN];
        }
    } else if (cmd->kind == FLASH_CMD_RESET && cmd->zone == FLASH_ALL_ZONES) {
        uint64_t n = 0;

        for (uint32_t i = 0; i < dev->media.shape.nr_zones; i++) {
            n += zone_touched(dev, i);
        }
        cmd->extra_ns *= n ? n : 1;
    }

    dev->service_free = begin + dev->tuning.service_ns;
    if (dev->service_free > now) {
        flash_time_at(&dev->time, dev->service_free, cmd_ready, cmd);
    } else {
        cmd_ready(&dev->time, cmd);
    }
}

/* Data. */

bool flash_dev_instant(const FlashDev *dev, uint32_t zone)
{
    const FlashTuning *t = &dev->tuning;

    return !(t->delay_read && t->read_ns) &&
           !(t->delay_program && t->program_ns) &&
           !(t->delay_erase && t->erase_ns) &&
           !(t->delay_transfer && (t->bus.bytes_per_s || t->bus.setup_ns)) &&
           !t->service_ns && !dev->fill_head && !dev->issued_head &&
           !dev->wait_head && !dev->jobs && !t->cmd_ns[FLASH_CMD_READ] &&
           !t->cmd_ns[FLASH_CMD_WRITE] && !t->cmd_ns[FLASH_CMD_APPEND] &&
           !dev->trouble.cut_at_program && !dev->trouble.fail_program &&
           !dev->zones[zone].fill;
}

void flash_dev_write_begin(FlashDev *dev, uint32_t zone, uint32_t nlb)
{
    FlashZone *z = &dev->zones[zone];

    flash_media_begin(&dev->media, zone, z->accepted, nlb);
    z->programmed = z->accepted + nlb;
}

void flash_dev_write_end(FlashDev *dev, FlashCmdKind kind, uint32_t zone,
                         uint32_t nlb)
{
    uint64_t bytes = (uint64_t)nlb * dev->media.shape.block_size;
    FlashZone *z = &dev->zones[zone];

    flash_media_mark(&dev->media,
                     zone * dev->media.shape.zone_blocks + z->accepted, nlb,
                     false);
    z->accepted += nlb;
    z->open = true;
    dev->stats.cmds[kind]++;
    dev->stats.written_bytes += bytes;
    dev->stats.programmed_bytes += bytes;
}

void flash_dev_write_undo(FlashDev *dev, uint32_t zone, uint32_t nlb)
{
    FlashZone *z = &dev->zones[zone];

    flash_media_undo(&dev->media, zone, z->accepted, nlb);
    z->programmed = z->accepted;
}

const uint8_t *flash_dev_peek(const FlashDev *dev, uint32_t zone,
                              uint64_t block, uint32_t nlb)
{
    const FlashZone *z = &dev->zones[zone];
    const FlashUnit *u;

    if (block + nlb > zone_end(dev, zone)) {
        return NULL;
    }
    if (z->fill && !z->fill->kept && block + nlb > z->fill->block) {
        return NULL;
    }
    for (u = z->units; u; u = u->zone_next) {
        if (!u->kept && block < u->block + u->nlb && block + nlb > u->block) {
            return NULL;
        }
    }
    return flash_media_data(&dev->media,
                            zone * dev->media.shape.zone_blocks + block);
}

void flash_dev_copy(const FlashDev *dev, uint32_t zone, uint64_t block,
                    uint32_t nlb, uint8_t *data, uint8_t *oob)
{
    const FlashShape *s = &dev->media.shape;
    uint64_t lba = zone * s->zone_blocks + block;

    for (; nlb; nlb--, block++, lba++, data += s->block_size) {
        const FlashUnit *u = unit_of(dev, zone, block);

        if (u && !u->kept) {
            uint64_t at = block - u->block;

            memcpy(data, u->data + at * s->block_size, s->block_size);
            memcpy(oob, u->oob + at * s->meta_size, s->meta_size);
        } else if (block < zone_end(dev, zone)) {
            memcpy(data, flash_media_data(&dev->media, lba), s->block_size);
            memcpy(oob, flash_media_oob(&dev->media, lba), s->meta_size);
        } else {
            memset(data, 0, s->block_size);
            memset(oob, 0, s->meta_size);
        }
        oob += s->meta_size;
    }
}

bool flash_dev_bad(const FlashDev *dev, uint32_t zone, uint64_t block,
                   uint32_t nlb)
{
    uint64_t start = zone * dev->media.shape.zone_blocks;
    uint64_t end = block + nlb;

    if (end > zone_end(dev, zone)) {
        end = zone_end(dev, zone);
    }
    if (block >= end ||
        !flash_media_bad(&dev->media, start + block, end - block)) {
        return false;
    }
    for (; block < end; block++) {
        if (flash_media_bad(&dev->media, start + block, 1) &&
            !unit_of(dev, zone, block)) {
            return true;
        }
    }
    return false;
}

/* Power. */

static void zone_load(FlashDev *dev, uint32_t zone)
{
    const FlashImageZone *iz = &dev->media.zones[zone];

    dev->zones[zone] = (FlashZone) {
        .accepted = iz->wp,
        .programmed = iz->wp,
        .finished = iz->flags & FLASH_ZONE_FINISHED,
    };
}

static void unit_lost(FlashDev *dev, const FlashUnit *u)
{
    if (!u->kept) {
        dev->stats.lost_bytes += (uint64_t)u->nlb *
                                 dev->media.shape.block_size;
    }
}

static void drop_all(FlashDev *dev)
{
    for (uint32_t i = 0; i < dev->media.shape.nr_zones; i++) {
        FlashZone *z = &dev->zones[i];

        if (z->fill) {
            unit_lost(dev, z->fill);
        }
        for (FlashUnit *u = z->units; u; u = u->zone_next) {
            unit_lost(dev, u);
        }
        zone_load(dev, i);
    }
    while (dev->fill_head) {
        FlashUnit *u = dev->fill_head;

        list_remove(&dev->fill_head, &dev->fill_tail, u);
        unit_free(dev, u);
    }
    while (dev->issued_head) {
        FlashUnit *u = dev->issued_head;

        list_remove(&dev->issued_head, &dev->issued_tail, u);
        unit_free(dev, u);
    }
    while (dev->jobs) {
        FlashJob *job = dev->jobs;

        dev->jobs = job->next;
        free(job);
    }
    dev->wait_head = dev->flush_head = NULL;
    dev->wait_tail = &dev->wait_head;
    dev->flush_tail = &dev->flush_head;
    dev->service_free = 0;
    buffer_add(dev, (int64_t)(dev->window_bytes - dev->stats.buffer_used));
    flash_time_clear(&dev->time);
}

static void cut_now(FlashTime *ft, void *arg)
{
    FlashDev *dev = arg;

    dev->powered = false;
    dev->cut_at = UINT64_MAX;
    dev->stats.cuts++;
    drop_all(dev);
    while (dev->cmds) {
        dev->cmds->status = FLASH_NO_POWER;
        cmd_done(ft, dev->cmds);
    }
    dev->lost_power(dev);
}

/* Only the first of several counts: what comes after it finds no power. */
void flash_dev_cut(FlashDev *dev, uint64_t when)
{
    if (dev->powered && when < dev->cut_at) {
        flash_time_forget(&dev->time, cut_now);
        flash_time_at(&dev->time, when, cut_now, dev);
        dev->cut_at = when;
    }
}

void flash_dev_forget_cuts(FlashDev *dev)
{
    flash_time_forget(&dev->time, cut_now);
    dev->cut_at = UINT64_MAX;
    dev->trouble.cut_at_program = 0;
}

void flash_dev_power_on(FlashDev *dev)
{
    flash_dev_forget_cuts(dev);
    dev->powered = true;
}

/* Life. */

void flash_dev_retune(FlashDev *dev)
{
    const FlashTuning *t = &dev->tuning;
    FlashTime *ft = &dev->time;

    ft->bus = t->delay_transfer ? t->bus : (FlashBus) { 0 };
    ft->cache = t->cache;
    ft->read_first = t->read_first;
    ft->suspend = t->suspend;
    ft->resume_ns = t->resume_ns;
    pump(dev);
}

char *flash_dev_open(FlashDev *dev, const char *path, const FlashShape *shape)
{
    char *why = flash_media_open(&dev->media, path, shape);
    uint64_t row = (uint64_t)shape->planes * shape->page_size;

    if (why) {
        return why;
    }
    flash_time_init(&dev->time, shape->channels,
                    shape->channels * shape->dies_per_channel);
    dev->row_blocks = row / shape->block_size;
    dev->unit_blocks = row * shape->program_pages / shape->block_size;
    dev->units_per_block = shape->pages_per_block / shape->program_pages;
    dev->zones = alloc(shape->nr_zones, sizeof(*dev->zones));
    dev->wait_tail = &dev->wait_head;
    dev->flush_tail = &dev->flush_head;
    dev->powered = true;
    dev->cut_at = UINT64_MAX;
    for (uint32_t i = 0; i < shape->nr_zones; i++) {
        zone_load(dev, i);
    }
    buffer_add(dev, dev->window_bytes);
    flash_dev_retune(dev);
    return NULL;
}

void flash_dev_sync(FlashDev *dev)
{
    FlashUnit *u;

    issue_all(dev);
    for (u = dev->issued_head; u; u = u->next) {
        if (!u->dropped && !u->kept) {
            flash_media_begin(&dev->media, u->zone, u->block, u->nlb);
            flash_media_commit(&dev->media, u->zone, u->block, u->nlb, u->data,
                               u->oob);
            u->kept = true;
        }
    }
}

void flash_dev_close(FlashDev *dev)
{
    if (dev->powered) {
        flash_dev_sync(dev);
    }
    drop_all(dev);
    while (dev->cmds) {
        dev->cmds->status = FLASH_NO_POWER;
        cmd_done(&dev->time, dev->cmds);
    }
    while (dev->spare) {
        FlashUnit *u = dev->spare;

        dev->spare = u->next;
        free(u->data);
        free(u->oob);
        free(u);
    }
    free(dev->zones);
    flash_time_free(&dev->time);
    flash_media_close(&dev->media);
}
