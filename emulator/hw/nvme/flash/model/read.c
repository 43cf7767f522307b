/*
 * Reads.  See read.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <string.h>

#include "cache.h"
#include "cell.h"
#include "read.h"
#include "unit.h"

static void read_arrived(FlashTime *ft, void *arg)
{
    flash_cmd_step(flash_time_dev(ft), arg);
}

/* So many bytes of the command are out of the flash. */
static void read_out(FlashDev *dev, FlashCmd *cmd, uint64_t bytes)
{
    uint64_t now = dev->time.now, when = now;

    assert(bytes <= (uint64_t)cmd->nlb * dev->media.shape.block_size);
    if (bytes && !cmd->inside) {
        when = flash_link_take(dev, FLASH_TO_HOST, now, bytes);
    }
    if (when > now) {
        flash_time_at(&dev->time, when, read_arrived, cmd);
    } else {
        flash_cmd_step(dev, cmd);
    }
}

static void read_ended(FlashTime *ft, FlashOp *op)
{
    read_out(flash_time_dev(ft), op->arg, op->bytes);
}

/* A FUA read waits until what it reads is on flash. */
static void read_through(FlashDev *dev, FlashCmd *cmd, uint64_t end)
{
    FlashZone *z = &dev->zones[cmd->zone];

    assert(end <= dev->media.shape.zone_cap);
    if (z->fill && !z->fill->kept && end > z->fill->block) {
        if (z->pinned) {
            flash_unit_wait(z->fill, cmd);
        } else {
            flash_unit_issue(dev, z->fill);
        }
    }
    flash_cache_push(dev, cmd->zone);
    for (FlashUnit *u = z->units; u; u = u->zone_next) {
        if (!u->kept && cmd->block < u->block + u->nlb && end > u->block) {
            flash_unit_wait(u, cmd);
        }
    }
}

/*
 * One cell read and one transfer for each row of pages that is touched, or if
 * planes read by themselves, for each page.
 */
void flash_read(FlashDev *dev, FlashCmd *cmd)
{
    const FlashShape *s = &dev->media.shape;
    uint64_t block = cmd->block, end = cmd->block + cmd->nlb;
    uint64_t limit = flash_zone_end(dev, cmd->zone);
    uint64_t accepted = dev->zones[cmd->zone].accepted;
    uint64_t buffered = 0;
    uint32_t n = 0;

    assert(cmd->zone < s->nr_zones && limit <= s->zone_cap);
    if (end > limit) {
        end = limit;            /* beyond it there is nothing to read */
    }
    cmd->pending = 1;
    if (cmd->fua) {
        read_through(dev, cmd, end);
    }
    if (block < end) {
        cmd->reads = flash_alloc((end - 1) / dev->page_blocks -
                                 block / dev->page_blocks + 1,
                                 sizeof(*cmd->reads));
    }
    while (block < end) {
        uint64_t edge = (block / dev->page_blocks + 1) * dev->page_blocks;
        uint64_t first = block;
        uint32_t wanted = 0;

        for (edge = edge < end ? edge : end; block < edge; block++) {
            wanted += block < accepted && !flash_unit_of(dev, cmd->zone, block);
        }
        buffered += block - first - wanted;
        if (!wanted) {
            dev->stats.buffer_hits++;
            continue;
        }
        cmd->reads[n] = (FlashOp) {
            .kind = FLASH_OP_READ,
            .die = flash_dev_die(dev, cmd->zone,
                                 (block - 1) / dev->unit_blocks),
            .plane = (block - 1) / dev->page_blocks % dev->time.nr_planes,
            .bytes = wanted * s->block_size,
            .cell_ns = flash_cell_read_ns(dev, cmd->zone, block - 1),
            .done = read_ended,
            .arg = cmd,
        };
        n++;
    }
    dev->stats.reads += n;
    dev->stats.read_retries += (uint64_t)n * flash_cell_retries(dev, cmd->zone);
    cmd->pending += n;
    for (uint32_t i = 0; i < n; i++) {
        flash_op_submit(&dev->time, &cmd->reads[i]);
    }
    read_out(dev, cmd, buffered * s->block_size);
}

const uint8_t *flash_dev_oob(const FlashDev *dev, uint32_t zone, uint64_t block)
{
    const FlashShape *s = &dev->media.shape;
    const FlashUnit *u = flash_unit_of(dev, zone, block);
    uint64_t lba = zone * s->zone_blocks + block;

    assert(zone < s->nr_zones && block < s->zone_cap);
    if (u && !u->kept) {
        return u->oob + (block - u->block) * s->meta_size;
    }
    return flash_media_bad(&dev->media, lba, 1) ?
           NULL : flash_media_oob(&dev->media, lba);
}

/* Data. */

const uint8_t *flash_dev_peek(const FlashDev *dev, uint32_t zone,
                              uint64_t block, uint32_t nlb)
{
    const FlashZone *z = &dev->zones[zone];
    const FlashUnit *u;

    assert(zone < dev->media.shape.nr_zones);
    if (block + nlb > flash_zone_end(dev, zone)) {
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

    assert(zone < s->nr_zones && block + nlb <= s->zone_blocks);
    for (; nlb; nlb--, block++, lba++, data += s->block_size) {
        const FlashUnit *u = flash_unit_of(dev, zone, block);

        if (u && !u->kept) {
            uint64_t at = block - u->block;

            memcpy(data, u->data + at * s->block_size, s->block_size);
            memcpy(oob, u->oob + at * s->meta_size, s->meta_size);
        } else if (block < flash_zone_end(dev, zone)) {
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

    assert(zone < dev->media.shape.nr_zones);
    if (end > flash_zone_end(dev, zone)) {
        end = flash_zone_end(dev, zone);
    }
    if (block >= end ||
        !flash_media_bad(&dev->media, start + block, end - block)) {
        return false;
    }
    for (; block < end; block++) {
        if (flash_media_bad(&dev->media, start + block, 1) &&
            !flash_unit_of(dev, zone, block)) {
            return true;
        }
    }
    return false;
}
