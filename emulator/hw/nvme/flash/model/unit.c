/*
 * Program units.  See unit.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "unit.h"

struct FlashWaiter {
    FlashWaiter *next;
    FlashCmd *cmd;
};

FlashUnit *flash_unit_new(FlashDev *dev, uint32_t zone)
{
    const FlashShape *s = &dev->media.shape;
    FlashUnit *u = dev->spare;

    assert(!dev->zones[zone].fill);
    assert(dev->zones[zone].accepted < s->zone_cap);
    if (u) {
        dev->spare = u->next;
    } else {
        u = flash_alloc(1, sizeof(*u));
        u->data = flash_alloc(dev->unit_blocks, s->block_size);
        u->oob = flash_alloc(dev->unit_blocks, s->meta_size ? s->meta_size : 1);
    }
    u->zone = zone;
    u->block = dev->zones[zone].accepted;
    u->nlb = u->filled = u->slots = 0;
    u->dropped = u->kept = u->begun = u->own = u->held = false;
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
    assert((u->prev ? u->prev->next : *head) == u);
    assert((u->next ? u->next->prev : *tail) == u);
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

void flash_unit_wait(FlashUnit *u, FlashCmd *cmd)
{
    FlashWaiter *w = u->waiters;

    if (w && w->cmd == cmd) {
        return;
    }
    w = flash_alloc(1, sizeof(*w));
    w->cmd = cmd;
    w->next = u->waiters;
    u->waiters = w;
    cmd->pending++;
}

bool flash_unit_awaited(const FlashUnit *u, const FlashCmd *cmd)
{
    const FlashWaiter *w = u->waiters;

    while (w && w->cmd != cmd) {
        w = w->next;
    }
    return w;
}

static void waiters_step(FlashDev *dev, FlashUnit *u)
{
    while (u->waiters) {
        FlashWaiter *w = u->waiters;
        FlashCmd *cmd = w->cmd;

        u->waiters = w->next;
        free(w);
        flash_cmd_step(dev, cmd);
    }
}

static void zone_forget_unit(FlashDev *dev, FlashUnit *u)
{
    FlashUnit **p = &dev->zones[u->zone].units;

    while (*p != u) {
        p = &(*p)->zone_next;
        assert(*p);
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
        flash_cmd_step(dev, cmd);
    }
}

static void slots_add(FlashDev *dev, FlashUnit *u, int64_t n)
{
    u->slots += n;
    assert(u->slots <= dev->unit_blocks);
    flash_buffer_add(dev, n * dev->media.shape.block_size);
}

static void unit_started(FlashTime *ft, FlashOp *op)
{
    FlashUnit *u = op->arg;
    FlashDev *dev = flash_time_dev(ft);
    FlashZone *z = &dev->zones[u->zone];

    if (u->dropped) {
        return;                 /* of it only the transfer was left */
    }
    assert(u->filled <= u->nlb && u->nlb <= dev->unit_blocks);
    if (u->begun) {
        dev->stats.programs_retried++;
    } else if (u->filled == dev->unit_blocks) {
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
        flash_dev_begin(dev, u->zone, u->block, u->nlb);
    }
    if (dev->trouble.cut_at_program && !--dev->trouble.cut_at_program) {
        dev->cut(dev, ft->now);
    }
}

static void unit_ended(FlashTime *ft, FlashOp *op)
{
    FlashUnit *u = op->arg;
    FlashDev *dev = flash_time_dev(ft);

    assert(u->begun || u->dropped);
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
        slots_add(dev, u, -(int64_t)u->slots);
    }
    waiters_step(dev, u);
    unit_free(dev, u);
    flushes_check(dev);
    dev->room(dev);
}

void flash_unit_take(FlashDev *dev, FlashUnit *u)
{
    if (u->own) {
        assert(!u->slots);
        slots_add(dev, u, u->nlb);
    }
}

static void unit_store(FlashDev *dev, FlashUnit *u, uint32_t from, uint32_t n)
{
    const FlashShape *s = &dev->media.shape;

    flash_dev_begin(dev, u->zone, u->block + from, n);
    flash_media_commit(&dev->media, u->zone, u->block + from, n,
                       u->data + (size_t)from * s->block_size,
                       u->oob + (size_t)from * s->meta_size);
}

void flash_unit_keep(FlashDev *dev, FlashUnit *u, uint32_t n)
{
    if (dev->plp) {
        u->kept = true;
        unit_store(dev, u, u->nlb, n);
    }
}

/* NAND is programmed once, so the rest of the unit is padding. */
static void unit_pad(FlashDev *dev, FlashUnit *u)
{
    const FlashShape *s = &dev->media.shape;
    uint64_t end = u->block + dev->unit_blocks;

    end -= u->block % dev->unit_blocks;
    end = end < s->zone_cap ? end : s->zone_cap;
    assert(u->nlb && u->block + u->nlb <= end);
    memset(u->data + (size_t)u->nlb * s->block_size, 0,
           (end - u->block - u->nlb) * s->block_size);
    memset(u->oob + (size_t)u->nlb * s->meta_size, 0,
           (end - u->block - u->nlb) * s->meta_size);
    flash_unit_keep(dev, u, end - u->block - u->nlb);
    u->nlb = end - u->block;
    dev->zones[u->zone].accepted = end;
    dev->padded(dev, u->zone);
}

void flash_unit_issue(FlashDev *dev, FlashUnit *u)
{
    FlashZone *z = &dev->zones[u->zone];

    assert(z->fill == u && u->nlb);
    flash_unit_take(dev, u);
    if (dev->padded) {
        unit_pad(dev, u);
    }
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
        .bytes = flash_unit_bytes(dev),
        .cell_ns = flash_cell_program_ns(dev, u->zone,
                                         u->block / dev->unit_blocks),
        .started = unit_started,
        .done = unit_ended,
        .arg = u,
    };
    if (dev->hold) {
        dev->hold(dev, u);
    } else {
        flash_op_submit(&dev->time, &u->op);
    }
}

static bool is_pinned(const FlashDev *dev, const FlashUnit *u)
{
    return dev->zones[u->zone].pinned;
}

void flash_units_make_room(FlashDev *dev)
{
    FlashUnit *u = dev->fill_head;

    while (u && (u->own || is_pinned(dev, u))) {
        u = u->next;
    }
    if (u && !dev->issued_head) {
        flash_unit_issue(dev, u);
    }
}

void flash_unit_grow(FlashDev *dev, FlashUnit *u, uint32_t n)
{
    FlashZone *z = &dev->zones[u->zone];

    u->nlb += n;
    u->filled = u->nlb;
    z->accepted += n;
    assert(z->fill == u && u->nlb <= dev->unit_blocks);
    assert(z->accepted <= dev->media.shape.zone_cap);
    if (!u->own) {
        slots_add(dev, u, n);
    }
    if (z->accepted % dev->unit_blocks == 0 ||
        z->accepted == dev->media.shape.zone_cap) {
        flash_unit_issue(dev, u);
    }
}

uint64_t flash_unit_room(const FlashDev *dev, uint32_t zone, uint64_t n)
{
    uint64_t left = dev->unit_blocks -
                    dev->zones[zone].accepted % dev->unit_blocks;
    uint64_t room = flash_buffer_room(dev);

    assert(dev->zones[zone].accepted <= dev->media.shape.zone_cap);
    n = n < room ? n : room;
    return n < left ? n : left;
}

const FlashUnit *flash_unit_of(const FlashDev *dev, uint32_t zone,
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

void flash_units_flush(FlashDev *dev, FlashCmd *cmd)
{
    FlashUnit *next;

    cmd->pending = 1;
    if (dev->plp) {
        flash_cmd_step(dev, cmd);
        return;
    }
    for (FlashUnit *u = dev->fill_head; u; u = next) {
        next = u->next;
        if (u->own) {
            continue;           /* its old copy is still there */
        }
        if (is_pinned(dev, u)) {
            flash_unit_wait(u, cmd);
        } else {
            flash_unit_issue(dev, u);
        }
    }
    cmd->seq = dev->seq;
    cmd->wait_next = NULL;
    *dev->flush_tail = cmd;
    dev->flush_tail = &cmd->wait_next;
    flushes_check(dev);
}

void flash_units_drop(FlashDev *dev, uint32_t zone)
{
    FlashZone *z = &dev->zones[zone];
    FlashUnit *u;

    while ((u = z->units)) {
        assert(u->zone == zone && !u->dropped);
        z->units = u->zone_next;
        slots_add(dev, u, -(int64_t)u->slots);
        if (u->held || flash_op_cancel(&dev->time, &u->op)) {
            list_remove(&dev->issued_head, &dev->issued_tail, u);
            waiters_step(dev, u);
            unit_free(dev, u);
            continue;
        }
        u->dropped = true;
        if (!u->begun && !dev->time.booked) {
            u->op.bytes = 0;
            u->op.cell_ns = 0;
        }
    }
    u = z->fill;
    if (u) {
        z->fill = NULL;
        slots_add(dev, u, -(int64_t)u->slots);
        list_remove(&dev->fill_head, &dev->fill_tail, u);
        waiters_step(dev, u);
        unit_free(dev, u);
    }
    z->accepted = z->programmed = 0;
    z->finished = z->pinned = false;
    assert(!z->units && !z->fill);
    flushes_check(dev);
}

static void lose_units(FlashDev *dev, FlashUnit **head, FlashUnit **tail)
{
    while (*head) {
        FlashUnit *u = *head;

        if (!u->dropped && !u->kept && !u->own) {
            dev->stats.lost_bytes += (uint64_t)u->filled *
                                     dev->media.shape.block_size;
        }
        list_remove(head, tail, u);
        unit_free(dev, u);
    }
}

void flash_units_lose(FlashDev *dev)
{
    lose_units(dev, &dev->fill_head, &dev->fill_tail);
    lose_units(dev, &dev->issued_head, &dev->issued_tail);
    assert(!dev->fill_tail && !dev->issued_tail);
    flash_units_init(dev);
}

void flash_units_sync(FlashDev *dev)
{
    FlashUnit *next;

    for (FlashUnit *u = dev->fill_head; u; u = next) {
        next = u->next;
        if (u->own || dev->plp) {
            continue;
        }
        if (is_pinned(dev, u)) {
            /* it is still filled, and programmed then */
            unit_store(dev, u, 0, u->nlb);
        } else {
            flash_unit_issue(dev, u);
        }
    }
    for (FlashUnit *u = dev->issued_head; u; u = u->next) {
        if (!u->dropped && !u->kept) {
            unit_store(dev, u, 0, u->nlb);
            u->kept = true;
        }
    }
}

void flash_units_init(FlashDev *dev)
{
    dev->flush_head = NULL;
    dev->flush_tail = &dev->flush_head;
}

void flash_units_free(FlashDev *dev)
{
    assert(!dev->fill_head && !dev->issued_head);
    while (dev->spare) {
        FlashUnit *u = dev->spare;

        dev->spare = u->next;
        free(u->data);
        free(u->oob);
        free(u);
    }
}
