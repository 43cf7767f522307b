/*
 * The write buffer.  See buffer.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <string.h>

#include "buffer.h"
#include "unit.h"

/* Writes. */

/* Copy nr pieces of a write's data, from piece at on; from NULL: zeroes. */
static void copy_pieces(uint8_t *to, const uint8_t *from, uint32_t at,
                        uint32_t nr, size_t size)
{
    if (from && size) {
        memcpy(to, from + at * size, nr * size);
    } else if (size) {
        memset(to, 0, nr * size);
    }
}

/* The n blocks that come behind what the unit has. */
static void note_admitted(const FlashDev *dev, const FlashUnit *u, uint32_t n)
{
    const FlashShape *s = &dev->media.shape;
    FlashJournalRecord r = {
        .kind = FLASH_JOURNAL_ADMIT, .zone = u->zone,
        .block = u->block + u->nlb, .nlb = n,
    };

    flash_journal_put(dev->media.journal, r,
                      u->data + (size_t)u->nlb * s->block_size,
                      (size_t)n * s->block_size,
                      u->oob + (size_t)u->nlb * s->meta_size,
                      (size_t)n * s->meta_size);
}

uint32_t flash_buffer_put(FlashDev *dev, FlashCmd *cmd, uint64_t n)
{
    const FlashShape *s = &dev->media.shape;
    FlashZone *z = &dev->zones[cmd->zone];
    FlashUnit *u;

    n = flash_unit_room(dev, cmd->zone, n);
    if (!n) {
        return 0;
    }
    u = z->fill ? z->fill : flash_unit_new(dev, cmd->zone);
    copy_pieces(u->data + (size_t)u->nlb * s->block_size, cmd->data,
                cmd->admitted, n, s->block_size);
    copy_pieces(u->oob + (size_t)u->nlb * s->meta_size, cmd->oob,
                cmd->admitted, n, s->meta_size);
    if (dev->media.journal) {
        note_admitted(dev, u, n);
    }
    cmd->admitted += n;
    assert(cmd->admitted <= cmd->nlb);
    if (flash_write_through(dev, cmd)) {
        flash_unit_wait(u, cmd);
    }
    flash_unit_keep(dev, u, n);
    flash_unit_grow(dev, u, n);
    return n;
}

/* Move as much as fits of a write into the buffer; true: all of it. */
static bool write_admit(FlashDev *dev, FlashCmd *cmd)
{
    FlashZone *z = &dev->zones[cmd->zone];

    while (cmd->admitted < cmd->nlb) {
        if (!flash_buffer_put(dev, cmd, cmd->nlb - cmd->admitted)) {
            return false;
        }
    }
    if (flash_write_through(dev, cmd) && z->fill) {
        flash_unit_issue(dev, z->fill);
    }
    return true;
}

/* Windows. */

/* Blocks before it whose program did not begin are holes from now on. */
static void window_make_holes(FlashDev *dev, uint32_t zone)
{
    FlashZone *z = &dev->zones[zone];

    if (z->fill && !z->fill->kept) {
        flash_unit_issue(dev, z->fill);
    }
    flash_dev_begin(dev, zone, z->accepted, 0);
}

static void window_store(FlashDev *dev, FlashCmd *cmd, uint64_t end)
{
    const FlashShape *s = &dev->media.shape;
    FlashImageZone *iz = &dev->media.zones[cmd->zone];
    uint64_t block = cmd->block + cmd->admitted;
    uint64_t lba = cmd->zone * s->zone_blocks + block;

    assert(end <= s->zone_cap && cmd->admitted <= cmd->nlb);
    if (block >= end) {
        return;
    }
    iz->ahead = iz->ahead > end ? iz->ahead : end;
    flash_media_mark(&dev->media, lba, end - block, true);
    copy_pieces(flash_media_data(&dev->media, lba), cmd->data, cmd->admitted,
                end - block, s->block_size);
    copy_pieces(flash_media_oob(&dev->media, lba), cmd->oob, cmd->admitted,
                end - block, s->meta_size);
    flash_media_mark(&dev->media, lba, end - block, false);
    cmd->admitted += end - block;
}

/* Write what the window holds, slide it as far as fits; true: all done. */
static bool window_admit(FlashDev *dev, FlashCmd *cmd)
{
    FlashZone *z = &dev->zones[cmd->zone];
    uint64_t end = cmd->block + cmd->nlb;

    assert(cmd->commit <= dev->media.shape.zone_cap);
    window_make_holes(dev, cmd->zone);
    while (z->accepted < cmd->commit) {
        uint64_t edge = z->accepted + dev->window_blocks;
        uint32_t n = flash_unit_room(dev, cmd->zone, cmd->commit - z->accepted);
        FlashUnit *u;

        window_store(dev, cmd, end < edge ? end : edge);
        if (!n) {
            return false;
        }
        u = z->fill ? z->fill : flash_unit_new(dev, cmd->zone);
        u->kept = true;
        dev->media.zones[cmd->zone].wp = z->accepted + n;
        flash_unit_grow(dev, u, n);
    }
    window_store(dev, cmd, end);
    return true;
}

void flash_window_end(FlashDev *dev, uint32_t zone)
{
    FlashImageZone *iz = &dev->media.zones[zone];

    window_make_holes(dev, zone);
    iz->flags &= ~FLASH_ZONE_WINDOW;
    iz->wp = dev->zones[zone].accepted = flash_zone_end(dev, zone);
}

/* The queue. */

/* Let waiting writes into the buffer, in the order in which they came. */
void flash_buffer_pump(FlashDev *dev)
{
    while (dev->wait_head) {
        FlashCmd *cmd = dev->wait_head;

        assert(cmd->pending && cmd->admit);
        if (!cmd->admit(dev, cmd)) {
            flash_units_make_room(dev);
            return;
        }
        dev->wait_head = cmd->wait_next;
        if (!dev->wait_head) {
            dev->wait_tail = &dev->wait_head;
        }
        flash_cmd_step(dev, cmd);
    }
    if (dev->space) {
        dev->space(dev);
    }
}

void flash_buffer_queue(FlashDev *dev, FlashCmd *cmd)
{
    bool first = !dev->wait_head;

    assert(!*dev->wait_tail);
    /* the answer waits for all of the write, not for its first units */
    cmd->pending = 1;
    cmd->wait_next = NULL;
    *dev->wait_tail = cmd;
    dev->wait_tail = &cmd->wait_next;
    if (first) {
        flash_buffer_pump(dev);
    }
}

void flash_buffer_write(FlashDev *dev, FlashCmd *cmd)
{
    cmd->admit = cmd->window ? window_admit : write_admit;
    flash_buffer_queue(dev, cmd);
    if (dev->wait_head) {
        dev->stats.waited++;
    }
}

bool flash_buffer_waits(const FlashDev *dev, uint32_t zone)
{
    const FlashCmd *w = dev->wait_head;

    while (w && w->zone != zone) {
        w = w->wait_next;
    }
    return w;
}

void flash_buffer_overtake(FlashDev *dev, uint32_t zone)
{
    FlashCmd **p = &dev->wait_head;

    while (*p) {
        FlashCmd *cmd = *p;

        if (cmd->zone != zone) {
            p = &cmd->wait_next;
            continue;
        }
        assert(cmd->pending);
        *p = cmd->wait_next;
        cmd->status = FLASH_OVERTAKEN;
        flash_cmd_step(dev, cmd);
    }
    dev->wait_tail = p;
}

void flash_buffer_init(FlashDev *dev)
{
    dev->room = flash_buffer_pump;
    dev->wait_head = NULL;
    dev->wait_tail = &dev->wait_head;
}
