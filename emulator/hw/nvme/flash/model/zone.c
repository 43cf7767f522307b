/*
 * Resets and finishes.  See zone.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <stdlib.h>

#include "buffer.h"
#include "cache.h"
#include "cell.h"
#include "erase.h"
#include "unit.h"
#include "zone.h"

/* A zone's part of one die, to be erased. */
typedef struct FlashShare {
    uint32_t zone;
    uint32_t place;             /* of the die, in the zone's stripe */
    uint64_t blocks;
} FlashShare;

/* Erases or padding of one command on one die, one after the other. */
struct FlashJob {
    FlashOp op;
    FlashCmd *cmd;
    FlashJob *next, **pprev;
    uint64_t left;
    uint64_t unit;              /* padding: the zone's next one on this die */
    bool begun;                 /* the operation is in the cell array */
    bool dropped;               /* padding whose zone was reset */
    FlashShare *shares;         /* erases: what they are of */
    FlashShare *share;          /* the one at work, and its next block */
    uint64_t block;
};

/* Jobs: the same work again and again on one die, for one command. */

static void job_next(FlashDev *dev, FlashJob *job);

static void job_free(FlashJob *job)
{
    free(job->shares);
    free(job);
}

static void job_started(FlashTime *ft, FlashOp *op)
{
    FlashDev *dev = flash_time_dev(ft);
    FlashJob *job = op->arg;

    if (job->dropped) {
        return;                 /* of it only the transfer was left */
    }
    job->begun = true;
    if (op->kind == FLASH_OP_ERASE) {
        assert(job->block < job->share->blocks);
        dev->stats.erases++;
        flash_erase_block(&dev->media, job->share->zone, job->share->place,
                          job->block++);
    } else {
        dev->stats.programs_finish++;
        dev->stats.programmed_bytes += op->bytes;
    }
}

static void job_ended(FlashTime *ft, FlashOp *op)
{
    job_next(flash_time_dev(ft), op->arg);
}

static void job_next(FlashDev *dev, FlashJob *job)
{
    FlashCmd *cmd = job->cmd;

    if (!job->left) {
        assert(*job->pprev == job);
        *job->pprev = job->next;
        if (job->next) {
            job->next->pprev = job->pprev;
        }
        job_free(job);
        flash_cmd_step(dev, cmd);
        return;
    }
    job->left--;
    job->begun = false;
    if (job->op.kind == FLASH_OP_ERASE) {
        if (job->block == job->share->blocks) {
            job->share++;
            job->block = 0;
        }
        job->op.cell_ns = flash_cell_erase_ns(dev, job->share->zone,
                                              job->block);
    } else {
        job->op.cell_ns = flash_cell_program_ns(dev, cmd->zone, job->unit);
        job->unit += dev->media.shape.zone_dies;
    }
    flash_op_submit(&dev->time, &job->op);
}

/* The shares, of erases, pass to the job; padding has its first unit. */
static void job_start(FlashDev *dev, FlashCmd *cmd, FlashOpKind kind,
                      uint32_t die, uint64_t count, FlashShare *shares,
                      uint64_t unit)
{
    FlashJob *job;

    if (!count) {
        return;
    }
    assert(!shares == (kind != FLASH_OP_ERASE));
    job = flash_alloc(1, sizeof(*job));
    job->cmd = cmd;
    job->left = count;
    job->unit = unit;
    job->shares = job->share = shares;
    job->op.kind = kind;
    job->op.die = die;
    job->op.started = job_started;
    job->op.done = job_ended;
    job->op.arg = job;
    job->op.bytes = kind == FLASH_OP_PROGRAM ? flash_unit_bytes(dev) : 0;
    job->next = dev->jobs;
    job->pprev = &dev->jobs;
    if (dev->jobs) {
        dev->jobs->pprev = &job->next;
    }
    dev->jobs = job;
    cmd->pending++;
    job_next(dev, job);
}

void flash_zone_forget(FlashDev *dev)
{
    while (dev->jobs) {
        FlashJob *job = dev->jobs;

        dev->jobs = job->next;
        job_free(job);
    }
}

/* Resets. */

bool flash_zone_touched(const FlashDev *dev, uint32_t zone)
{
    const FlashImageZone *iz = &dev->media.zones[zone];

    return !(iz->flags & (FLASH_ZONE_READ_ONLY | FLASH_ZONE_OFFLINE)) &&
           (dev->zones[zone].accepted || iz->wp || iz->flags);
}

/*
 * Padding that has not begun is dropped; if its transfer has begun, only that
 * ends.
 */
static void job_drop(FlashDev *dev, FlashJob *job)
{
    job->left = 0;
    if (flash_op_cancel(&dev->time, &job->op)) {
        job_next(dev, job);
    } else if (!job->begun) {
        job->dropped = true;
        job->op.bytes = 0;
        job->op.cell_ns = 0;
    }
}

/* Nothing of the zone stays in the buffer or in the queue for it. */
static void zone_drop(FlashDev *dev, uint32_t zone)
{
    FlashJob *next;

    for (FlashJob *job = dev->jobs; job; job = next) {
        next = job->next;
        if (job->cmd->zone == zone && job->op.kind == FLASH_OP_PROGRAM) {
            job_drop(dev, job);
        }
    }
    flash_buffer_overtake(dev, zone);
    assert(!flash_buffer_waits(dev, zone));
    flash_cache_reset(dev, zone);
    flash_units_drop(dev, zone);
}

/* What a reset has to erase on one die. */
typedef struct FlashErases {
    uint64_t blocks;
    uint32_t nr;
    FlashShare *shares;
} FlashErases;

/* The zone's blocks in use, die by die.  FEMU erases all that it has. */
static void zone_erases(FlashDev *dev, uint32_t zone, FlashErases *dies)
{
    const FlashImageZone *iz = &dev->media.zones[zone];
    uint64_t begun = dev->zones[zone].programmed;
    uint64_t used = begun > iz->padded ? begun : iz->padded;
    uint64_t units = flash_zone_units(dev, dev->nr_caches ?
                                      dev->media.shape.zone_cap : used);

    assert(used <= dev->media.shape.zone_cap);
    for (uint32_t i = 0; i < dev->media.shape.zone_dies; i++) {
        uint64_t n = flash_units_at(dev, 0, units, i);

        if (n) {
            FlashErases *e = &dies[flash_dev_die(dev, zone, i)];
            uint64_t blocks = (n + dev->units_per_block - 1) /
                              dev->units_per_block;

            if (!(e->nr & (e->nr - 1))) {
                e->shares = realloc(e->shares, (2 * e->nr + 1) *
                                               sizeof(*e->shares));
                assert(e->shares);
            }
            e->shares[e->nr++] = (FlashShare) {
                .zone = zone, .place = i, .blocks = blocks,
            };
            e->blocks += blocks;
        }
    }
}

static void reset_ended(FlashDev *dev, FlashCmd *cmd)
{
    bool all = cmd->zone == FLASH_ALL_ZONES;
    uint32_t first = all ? 0 : cmd->zone;
    uint32_t last = all ? dev->media.shape.nr_zones - 1 : cmd->zone;

    assert(last < dev->media.shape.nr_zones);
    for (uint32_t i = first; i <= last; i++) {
        flash_erase_end(&dev->media, i);
        if (flash_cell_worn_out(dev, i)) {
            dev->worn_out(dev, i);
        }
    }
    if (dev->trouble.cut_at_reset && !--dev->trouble.cut_at_reset) {
        dev->cut(dev, dev->time.now);
    }
}

void flash_zone_reset(FlashDev *dev, FlashCmd *cmd)
{
    bool all = cmd->zone == FLASH_ALL_ZONES;
    uint64_t nr_zones = dev->media.shape.nr_zones;
    uint32_t nr_dies = dev->time.nr_dies;
    FlashErases *dies = flash_alloc(nr_dies, sizeof(*dies));

    cmd->ended = reset_ended;
    cmd->pending = 1;
    for (uint32_t i = 0; i < nr_zones; i++) {
        if (all ? flash_zone_touched(dev, i) : i == cmd->zone) {
            if (!dev->nr_caches || dev->tuning.delay_erase) {
                zone_erases(dev, i, dies);
            }
            flash_erase_begin(&dev->media, i, dev->time.now);
            /* a finish that ends with it must find that the zone was reset */
            zone_drop(dev, i);
        }
    }
    for (uint32_t die = 0; die < nr_dies; die++) {
        job_start(dev, cmd, FLASH_OP_ERASE, die, dies[die].blocks,
                  dies[die].shares, 0);
    }
    free(dies);
    flash_buffer_pump(dev);
    flash_cmd_step(dev, cmd);
}

/* Finishes. */

/* A full zone is full after a power loss only from here on. */
static void finish_ended(FlashDev *dev, FlashCmd *cmd)
{
    FlashImageZone *z = &dev->media.zones[cmd->zone];

    assert(cmd->zone < dev->media.shape.nr_zones);
    if (cmd->status || cmd->seq != z->erases) {
        return;                 /* it was reset meanwhile */
    }
    flash_erase_end(&dev->media, cmd->zone);
    if (dev->zones[cmd->zone].accepted && !(z->flags & FLASH_ZONE_FINISHED)) {
        z->padded = dev->media.shape.zone_cap;
    }
    z->flags |= FLASH_ZONE_FINISHED;
    flash_media_changed(&dev->media, cmd->zone);
}

/* What a window holds beyond the units on their way is part of the padding. */
static bool finish_admit(FlashDev *dev, FlashCmd *cmd)
{
    const FlashImageZone *iz = &dev->media.zones[cmd->zone];
    FlashZone *z = &dev->zones[cmd->zone];
    uint64_t from = flash_zone_units(dev, z->accepted);
    uint64_t to = flash_zone_units(dev, dev->media.shape.zone_cap);
    FlashUnit *u;

    cmd->seq = iz->erases;
    if (z->fill) {
        flash_unit_issue(dev, z->fill);
    }
    flash_cache_push(dev, cmd->zone);
    if (iz->ahead > z->accepted) {
        from = z->accepted / dev->unit_blocks;
    }
    if (iz->flags & FLASH_ZONE_WINDOW) {
        flash_window_end(dev, cmd->zone);
    }
    for (u = z->units; u; u = u->zone_next) {
        flash_unit_wait(u, cmd);
    }
    if (z->accepted && !z->finished) {
        uint32_t width = dev->media.shape.zone_dies;

        for (uint32_t i = 0; i < width; i++) {
            job_start(dev, cmd, FLASH_OP_PROGRAM,
                      flash_dev_die(dev, cmd->zone, i),
                      flash_units_at(dev, from, to, i), NULL,
                      from + (i + width - from % width) % width);
        }
    }
    z->finished = true;
    return true;
}

/* Behind what waits for the buffer, in this zone, or to slide its window. */
void flash_zone_finish(FlashDev *dev, FlashCmd *cmd)
{
    cmd->ended = finish_ended;
    if (flash_buffer_waits(dev, cmd->zone) ||
        dev->media.zones[cmd->zone].flags & FLASH_ZONE_WINDOW) {
        cmd->admit = finish_admit;
        flash_buffer_queue(dev, cmd);
        return;
    }
    cmd->pending = 1;
    finish_admit(dev, cmd);
    flash_cmd_step(dev, cmd);
}
