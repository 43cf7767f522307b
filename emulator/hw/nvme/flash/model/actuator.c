/*
 * The queue of a disk's one actuator.  See actuator.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * It is the queue of the only die, so that operations are taken back and a
 * power cut forgets them as in any drive.
 */

#include <assert.h>

#include "actuator.h"

/* What may be next, and the operation before it in the queue. */
typedef struct Choice {
    FlashOp *op, *prev;
    uint64_t begin;
} Choice;

/* That whose transfer can begin first; of several, the first that came. */
static Choice nearest(FlashTime *ft, bool reads_only)
{
    Choice found = { .begin = UINT64_MAX };
    FlashOp *prev = NULL;

    for (FlashOp *op = ft->dies[0].queue.head; op; prev = op, op = op->next) {
        bool read = op->kind == FLASH_OP_READ;
        uint64_t begin;

        if (reads_only && !read) {
            continue;
        }
        begin = flash_disk_begin(ft->disk, ft->now, read, op->block);
        if (begin < found.begin) {
            found = (Choice) { .op = op, .prev = prev, .begin = begin };
        }
        if (begin == ft->now) {
            break;
        }
    }
    return found;
}

static Choice choose(FlashTime *ft)
{
    FlashOp *oldest = ft->dies[0].queue.head;
    Choice found = { 0 };

    if (!oldest->oldest) {
        oldest->oldest = true;
        oldest->left_ns = ft->now + ft->disk->tuning.pass_ns;
    }
    if (oldest->left_ns <= ft->now) {
        found.op = oldest;
        return found;
    }
    if (ft->read_first) {
        found = nearest(ft, true);
    }
    return found.op ? found : nearest(ft, false);
}

static void kick(FlashTime *ft);

static void ended(FlashTime *ft, void *arg)
{
    FlashDie *die = &ft->dies[0];
    FlashOp *op = arg;

    assert(die->cell == op);
    die->cell = NULL;
    die->busy_ns += ft->now - die->at_work_since;
    die->ops[op->kind]++;
    op->done(ft, op);           /* may free op */
    kick(ft);
}

static void kick(FlashTime *ft)
{
    FlashDie *die = &ft->dies[0];
    uint64_t end;
    Choice next;
    FlashOp *op;

    if (die->cell || !die->queue.head) {
        return;
    }
    next = choose(ft);
    op = flash_queue_take(&die->queue, next.prev);
    assert(op == next.op && ft->now >= op->since);
    flash_die_waited(die, ft->now - op->since);
    die->cell = op;
    die->at_work_since = ft->now;
    end = flash_disk_access(ft->disk, ft->now, op->kind == FLASH_OP_READ,
                            op->block, op->nlb);
    flash_time_at(ft, end, ended, op);
    if (op->started) {
        op->started(ft, op);
    }
}

static void erased(FlashTime *ft, void *arg)
{
    FlashOp *op = arg;

    ft->dies[0].ops[op->kind]++;
    op->done(ft, op);           /* may free op */
}

static void take(FlashTime *ft, FlashOp *op)
{
    if (op->kind == FLASH_OP_ERASE) {
        flash_time_at(ft, ft->now + op->cell_ns, erased, op);
        if (op->started) {
            op->started(ft, op);
        }
        return;
    }
    op->oldest = false;
    flash_queue_put(&ft->dies[0].queue, op);
    kick(ft);
}

void flash_actuator_start(FlashTime *ft, FlashDisk *disk)
{
    assert(ft->nr_dies == 1 && !ft->take);
    ft->disk = disk;
    ft->take = take;
}
