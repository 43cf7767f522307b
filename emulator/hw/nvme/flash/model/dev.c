/*
 * The flash device: what all rooms of the model need.  See dev.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <stdlib.h>

#include "dev.h"
#include "erase.h"

void *flash_alloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);

    assert(p);
    return p;
}

/* Geometry. */

uint32_t flash_dev_die(const FlashDev *dev, uint32_t zone, uint64_t unit)
{
    uint32_t width = dev->media.shape.zone_dies;
    uint32_t groups = dev->time.nr_dies / width;

    assert(zone < dev->media.shape.nr_zones);
    return zone % groups * width + (unit + zone / groups) % width;
}

uint64_t flash_unit_bytes(const FlashDev *dev)
{
    return (uint64_t)dev->unit_blocks * dev->media.shape.block_size;
}

uint64_t flash_zone_units(const FlashDev *dev, uint64_t blocks)
{
    return (blocks + dev->unit_blocks - 1) / dev->unit_blocks;
}

uint64_t flash_units_at(const FlashDev *dev, uint64_t from, uint64_t to,
                        uint32_t place)
{
    uint32_t width = dev->media.shape.zone_dies;

    assert(from <= to && place < width);
    return (to + width - 1 - place) / width -
           (from + width - 1 - place) / width;
}

uint64_t flash_zone_end(const FlashDev *dev, uint32_t zone)
{
    uint64_t accepted = dev->zones[zone].accepted;
    uint64_t ahead = dev->media.zones[zone].ahead;

    return accepted > ahead ? accepted : ahead;
}

/* The buffer and the media. */

void flash_buffer_add(FlashDev *dev, int64_t bytes)
{
    FlashStats *s = &dev->stats;

    assert(bytes >= 0 || s->buffer_used >= (uint64_t)-bytes);
    assert(dev->time.now >= s->buffer_since);
    s->buffer_time += (unsigned __int128)s->buffer_used *
                      (dev->time.now - s->buffer_since);
    s->buffer_since = dev->time.now;
    s->buffer_used += bytes;
    if (s->buffer_used > s->buffer_max) {
        s->buffer_max = s->buffer_used;
    }
}

uint64_t flash_buffer_mean(const FlashDev *dev)
{
    const FlashStats *s = &dev->stats;
    uint64_t now = dev->time.now;
    unsigned __int128 last = (unsigned __int128)s->buffer_used *
                             (now - s->buffer_since);

    return now ? (s->buffer_time + last) / now : 0;
}

uint64_t flash_buffer_room(const FlashDev *dev)
{
    uint64_t size = dev->tuning.buffer, used = dev->stats.buffer_used;

    if (!size || dev->nr_caches) {
        return UINT64_MAX;
    }
    return used < size ? (size - used) / dev->media.shape.block_size : 0;
}

bool flash_write_through(const FlashDev *dev, const FlashCmd *cmd)
{
    return !dev->tuning.buffer ||
           ((cmd->fua || dev->through) && !dev->plp);
}

uint64_t flash_link_take(FlashDev *dev, FlashWay way, uint64_t from,
                         uint64_t bytes)
{
    uint64_t rate = dev->tuning.delay_transfer ? dev->tuning.link_rate : 0;
    uint64_t *free_at = &dev->link_free[way];

    assert(way < FLASH_WAYS && from >= dev->time.now);
    if (rate) {
        from = *free_at > from ? *free_at : from;
        *free_at = from + (bytes * 1000000000 + rate - 1) / rate;
        return *free_at;
    }
    return from;
}

void flash_dev_begin(FlashDev *dev, uint32_t zone, uint64_t block,
                     uint32_t nlb)
{
    assert(block + nlb <= dev->media.shape.zone_cap);
    flash_erase_end(&dev->media, zone);
    if (!dev->media.zones[zone].wp) {
        dev->zones[zone].born = dev->time.now;
    }
    flash_media_begin(&dev->media, zone, block, nlb);
}

/* Commands. */

static uint64_t cmd_firmware_ns(const FlashDev *dev, const FlashCmd *cmd)
{
    uint64_t bytes = (uint64_t)cmd->nlb * dev->media.shape.block_size;

    return cmd->kind == FLASH_CMD_READ && bytes > FLASH_SHORT_READ &&
           dev->tuning.long_read_ns ? dev->tuning.long_read_ns :
                                      dev->tuning.cmd_ns[cmd->kind];
}

void flash_cmd_link(FlashDev *dev, FlashCmd *cmd)
{
    assert(cmd->kind < FLASH_CMD_KINDS);
    cmd->status = FLASH_OK;
    cmd->admit = NULL;
    cmd->ended = NULL;
    cmd->reads = NULL;
    cmd->admitted = cmd->pending = 0;
    cmd->extra_ns = cmd_firmware_ns(dev, cmd) +
                    cmd->closes * dev->tuning.cmd_ns[FLASH_CMD_CLOSE];
    cmd->next = dev->cmds;
    cmd->pprev = &dev->cmds;
    if (dev->cmds) {
        dev->cmds->pprev = &cmd->next;
    }
    dev->cmds = cmd;
}

static void cmd_unlink(FlashCmd *cmd)
{
    assert(*cmd->pprev == cmd);
    *cmd->pprev = cmd->next;
    if (cmd->next) {
        cmd->next->pprev = cmd->pprev;
    }
}

void flash_cmd_done(FlashTime *ft, void *arg)
{
    FlashDev *dev = flash_time_dev(ft);
    FlashCmd *cmd = arg;

    assert(!cmd->pending || cmd->status);
    cmd_unlink(cmd);
    free(cmd->reads);
    free(cmd->data);
    free(cmd->oob);
    cmd->reads = NULL;
    cmd->data = cmd->oob = NULL;
    if (cmd->status) {
        dev->stats.errors++;
    }
    if (cmd->then) {
        cmd->then(dev, cmd);
    } else {
        dev->done(dev, cmd);
    }
}

void flash_cmd_answer(FlashDev *dev, FlashCmd *cmd)
{
    if (cmd->extra_ns) {
        flash_time_at(&dev->time, dev->time.now + cmd->extra_ns, flash_cmd_done,
                      cmd);
    } else {
        flash_cmd_done(&dev->time, cmd);
    }
}

void flash_cmd_step(FlashDev *dev, FlashCmd *cmd)
{
    assert(cmd->pending);
    if (!--cmd->pending) {
        if (cmd->ended) {
            cmd->ended(dev, cmd);
        }
        flash_cmd_answer(dev, cmd);
    }
}
