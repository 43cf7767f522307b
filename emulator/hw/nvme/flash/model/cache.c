/*
 * Write caches of zones.  See cache.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <stdlib.h>

#include "buffer.h"
#include "cache.h"
#include "unit.h"

#define CACHE_PAGE 4096         /* bytes that FlashTuning.cache_page_ns is of */
#define NO_ZONE UINT32_MAX

struct FlashCache {
    uint32_t zone;
    uint64_t used;              /* blocks, those of a zone since reset too */
    FlashUnit *head, *tail;     /* full, not sent to their dies */
};

static FlashCache *cache_of(const FlashDev *dev, uint32_t zone)
{
    for (uint32_t i = 0; i < dev->nr_caches; i++) {
        if (dev->caches[i].zone == zone) {
            return &dev->caches[i];
        }
    }
    return NULL;
}

/* FEMU's order: the first cache is not looked at when it is free. */
static FlashCache *cache_choose(const FlashDev *dev)
{
    FlashCache *best = dev->caches;

    for (uint32_t i = 1; i < dev->nr_caches; i++) {
        if (!dev->caches[i].used) {
            return &dev->caches[i];
        }
        if (dev->caches[i].used > best->used) {
            best = &dev->caches[i];
        }
    }
    return best;
}

static uint64_t cache_blocks(const FlashDev *dev)
{
    uint64_t n = dev->tuning.buffer / dev->nr_caches /
                 dev->media.shape.block_size;

    if (!dev->tuning.buffer) {
        return UINT64_MAX;      /* each write is flushed when it is in */
    }
    return n ? n : 1;
}

/* An event of units: u has left its zone's unit to be filled. */
static void cache_hold(FlashDev *dev, FlashUnit *u)
{
    FlashCache *c = cache_of(dev, u->zone);

    assert(c && !u->held);
    u->held = true;
    u->cache_next = NULL;
    if (c->tail) {
        c->tail->cache_next = u;
    } else {
        c->head = u;
    }
    c->tail = u;
}

/* All that it holds goes to the dies; cmd, if any, waits for it. */
static void cache_flush(FlashDev *dev, FlashCache *c, FlashCmd *cmd)
{
    FlashUnit *u;

    if (c->zone != NO_ZONE && dev->zones[c->zone].fill) {
        flash_unit_issue(dev, dev->zones[c->zone].fill);
    }
    while ((u = c->head)) {
        c->head = u->cache_next;
        u->held = false;
        if (cmd) {
            flash_unit_wait(u, cmd);
        }
        u->op.die = dev->cache_turn++ % dev->time.nr_dies;
        flash_op_submit(&dev->time, &u->op);
    }
    c->tail = NULL;
    c->used = 0;
}

static void cache_stored(FlashTime *ft, void *arg)
{
    flash_cmd_step(flash_time_dev(ft), arg);
}

void flash_cache_write(FlashDev *dev, FlashCmd *cmd)
{
    uint64_t size = cache_blocks(dev);
    uint64_t bytes = (uint64_t)cmd->nlb * dev->media.shape.block_size;
    FlashCache *c = cache_of(dev, cmd->zone);

    cmd->pending = 1;
    if (!c) {
        c = cache_choose(dev);
        cache_flush(dev, c, cmd);
        c->zone = cmd->zone;
    }
    while (cmd->admitted < cmd->nlb) {
        uint64_t n = cmd->nlb - cmd->admitted;

        if (c->used >= size) {
            cache_flush(dev, c, cmd);
        }
        n = n < size - c->used ? n : size - c->used;
        c->used += flash_buffer_put(dev, cmd, n);
    }
    if (flash_write_through(dev, cmd)) {
        cache_flush(dev, c, cmd);
    }
    dev->stats.waited += cmd->pending > 1;
    dev->cache_zone = cmd->zone;
    flash_time_at(&dev->time,
                  dev->time.now + dev->tuning.cache_page_ns *
                                  ((bytes + CACHE_PAGE - 1) / CACHE_PAGE),
                  cache_stored, cmd);
}

void flash_cache_push(FlashDev *dev, uint32_t zone)
{
    FlashCache *c = cache_of(dev, zone);

    if (c) {
        cache_flush(dev, c, NULL);
    }
}

void flash_cache_push_all(FlashDev *dev)
{
    for (uint32_t i = 0; i < dev->nr_caches; i++) {
        cache_flush(dev, &dev->caches[i], NULL);
    }
}

void flash_cache_reset(FlashDev *dev, uint32_t zone)
{
    FlashCache *c = cache_of(dev, zone);

    assert(zone < dev->media.shape.nr_zones);
    if (c && dev->tuning.delay_erase) {
        *c = (FlashCache) { .zone = NO_ZONE };
    } else if (c) {
        if (dev->zones[zone].fill) {
            flash_unit_issue(dev, dev->zones[zone].fill);
        }
        for (FlashUnit *u = c->head; u; u = u->cache_next) {
            u->held = false;    /* only its data is gone */
        }
    }
    if (dev->tuning.delay_erase && dev->cache_zone == zone) {
        dev->cache_turn = 0;
    }
}

void flash_cache_init(FlashDev *dev)
{
    if (dev->nr_caches && !dev->caches) {
        dev->caches = flash_alloc(dev->nr_caches, sizeof(*dev->caches));
    }
    for (uint32_t i = 0; i < dev->nr_caches; i++) {
        dev->caches[i] = (FlashCache) { .zone = NO_ZONE };
    }
    dev->cache_zone = NO_ZONE;
    dev->cache_turn = 0;
    dev->hold = dev->nr_caches ? cache_hold : NULL;
}

void flash_cache_free(FlashDev *dev)
{
    free(dev->caches);
    dev->caches = NULL;
}
