/*
 * The model of the flash device.  See model.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The way of a command: submit -> (controller, one at a time) -> ready ->
 * operations on dies -> answer -> (firmware latency) -> done.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "cache.h"
#include "erase.h"
#include "model.h"
#include "unit.h"
#include "zone.h"

/* Commands. */

static void cmd_execute(FlashDev *dev, FlashCmd *cmd)
{
    assert(cmd->zone < dev->media.shape.nr_zones ||
           (cmd->kind == FLASH_CMD_RESET && cmd->zone == FLASH_ALL_ZONES));
    switch (cmd->kind) {
    case FLASH_CMD_READ:
        flash_read(dev, cmd);
        break;
    case FLASH_CMD_WRITE:
    case FLASH_CMD_APPEND:
    case FLASH_CMD_COMMIT:
        if (dev->nr_caches) {
            flash_cache_write(dev, cmd);
        } else {
            flash_buffer_write(dev, cmd);
        }
        break;
    case FLASH_CMD_OPEN:
        if (cmd->window) {
            flash_erase_end(&dev->media, cmd->zone);
            dev->media.zones[cmd->zone].flags |= FLASH_ZONE_WINDOW;
        }
        flash_cmd_answer(dev, cmd);
        break;
    case FLASH_CMD_FLUSH:
        flash_cache_push_all(dev);
        flash_units_flush(dev, cmd);
        break;
    case FLASH_CMD_FINISH:
        flash_zone_finish(dev, cmd);
        break;
    case FLASH_CMD_RESET:
        flash_zone_reset(dev, cmd);
        break;
    default:
        flash_cmd_answer(dev, cmd);
    }
}

static void cmd_ready(FlashTime *ft, void *arg)
{
    FlashDev *dev = flash_time_dev(ft);

    if (dev->serve) {
        dev->serve(dev, arg);
    } else {
        cmd_execute(dev, arg);
    }
}

void flash_dev_submit_internal(FlashDev *dev, FlashCmd *cmd)
{
    flash_cmd_link(dev, cmd);
    cmd->extra_ns = 0;
    if (!dev->powered) {
        cmd->status = FLASH_NO_POWER;
        flash_cmd_done(&dev->time, cmd);
        return;
    }
    cmd_execute(dev, cmd);
}

uint64_t flash_dev_room(FlashDev *dev)
{
    uint64_t room = flash_buffer_room(dev);

    if (!room) {
        flash_units_make_room(dev);
    }
    return room;
}

bool flash_dev_fits(FlashDev *dev, uint32_t nlb)
{
    uint64_t size = dev->tuning.buffer / dev->media.shape.block_size;

    if (flash_buffer_room(dev) >= (nlb < size ? nlb : size)) {
        return true;
    }
    flash_units_make_room(dev);
    return false;
}

void flash_dev_put(FlashDev *dev, uint32_t zone, const uint8_t *data,
                   const uint8_t *oob, bool own, FlashCmd *wait)
{
    const FlashShape *s = &dev->media.shape;
    FlashUnit *u = dev->zones[zone].fill;

    if (!u) {
        u = flash_unit_new(dev, zone);
        u->own = own;
    }
    if (u->own && !own) {
        flash_unit_take(dev, u);
        u->own = false;
    }
    assert(u->nlb < dev->unit_blocks);
    memcpy(u->data + (size_t)u->nlb * s->block_size, data, s->block_size);
    memcpy(u->oob + (size_t)u->nlb * s->meta_size, oob, s->meta_size);
    if (wait) {
        flash_unit_wait(u, wait);
    }
    flash_unit_keep(dev, u, 1);
    flash_unit_grow(dev, u, 1);
}

void flash_dev_push(FlashDev *dev, uint32_t zone)
{
    if (dev->zones[zone].fill && !dev->zones[zone].pinned) {
        flash_unit_issue(dev, dev->zones[zone].fill);
    }
}

void flash_dev_pin(FlashDev *dev, uint32_t zone, bool pinned)
{
    assert(zone < dev->media.shape.nr_zones);
    dev->zones[zone].pinned = pinned;
}

void flash_dev_hold(FlashDev *dev, FlashCmd *cmd)
{
    flash_cmd_link(dev, cmd);
    cmd->extra_ns = 0;
    cmd->pending = 1;
}

bool flash_dev_wait(FlashDev *dev, uint32_t zone, uint64_t block, FlashCmd *cmd)
{
    FlashUnit *u = (FlashUnit *)flash_unit_of(dev, zone, block);

    if (!u || u->kept) {
        return false;
    }
    if (cmd) {
        flash_unit_wait(u, cmd);
    }
    return u == dev->zones[zone].fill;
}

void flash_dev_release(FlashDev *dev, FlashCmd *cmd)
{
    flash_cmd_step(dev, cmd);
}

int64_t flash_dev_awaits(const FlashDev *dev, const FlashCmd *cmd)
{
    for (const FlashUnit *u = dev->fill_head; u; u = u->next) {
        if (flash_unit_awaited(u, cmd)) {
            return u->zone;
        }
    }
    return -1;
}

void flash_dev_align(FlashDev *dev, uint32_t zone)
{
    FlashZone *z = &dev->zones[zone];
    uint64_t end = flash_zone_units(dev, z->accepted) * dev->unit_blocks;

    assert(!z->fill);
    z->accepted = end < dev->media.shape.zone_cap ? end :
                                                    dev->media.shape.zone_cap;
}

void flash_dev_submit(FlashDev *dev, FlashCmd *cmd)
{
    uint64_t now = dev->time.now;
    uint64_t begin = dev->service_free > now ? dev->service_free : now;
    uint64_t ready, bytes = (uint64_t)cmd->nlb * dev->media.shape.block_size;

    flash_cmd_link(dev, cmd);
    if (!dev->powered) {
        cmd->status = FLASH_NO_POWER;
        flash_cmd_done(&dev->time, cmd);
        return;
    }
    dev->stats.cmds[cmd->kind]++;
    if (cmd->kind == FLASH_CMD_READ) {
        dev->stats.read_bytes += bytes;
    } else if (cmd->kind <= FLASH_CMD_APPEND || cmd->kind == FLASH_CMD_COMMIT) {
        dev->stats.written_bytes += bytes;
        if (!dev->serve && !dev->zones[cmd->zone].open) {
            dev->zones[cmd->zone].open = true;
            cmd->extra_ns += dev->tuning.cmd_ns[FLASH_CMD_OPEN];
        }
    } else if (cmd->kind == FLASH_CMD_RESET && cmd->zone == FLASH_ALL_ZONES) {
        uint64_t n = 0;

        for (uint32_t i = 0; i < dev->media.shape.nr_zones; i++) {
            n += flash_zone_touched(dev, i);
        }
        cmd->extra_ns *= n ? n : 1;
    }

    ready = dev->service_free = begin + dev->tuning.service_ns;
    if (cmd->kind != FLASH_CMD_READ) {
        /* nothing overtakes data that is on its way here, but reads */
        ready = flash_link_take(dev, FLASH_FROM_HOST, ready,
                                cmd->data && !cmd->inside ? bytes : 0);
    }
    if (ready > now) {
        flash_time_at(&dev->time, ready, cmd_ready, cmd);
    } else {
        cmd_ready(&dev->time, cmd);
    }
}

/* Instant writes. */

bool flash_dev_instant(const FlashDev *dev, uint32_t zone)
{
    return dev->instant && !dev->media.journal && !dev->fill_head && !dev->issued_head &&
           !dev->wait_head && !dev->jobs && !dev->trouble.cut_at_program &&
           !dev->trouble.fail_program && !dev->zones[zone].fill;
}

void flash_dev_write_begin(FlashDev *dev, uint32_t zone, uint32_t nlb)
{
    FlashZone *z = &dev->zones[zone];

    assert(!z->fill && !z->units);
    flash_dev_begin(dev, zone, z->accepted, nlb);
    z->programmed = z->accepted + nlb;
}

void flash_dev_write_end(FlashDev *dev, FlashCmdKind kind, uint32_t zone,
                         uint32_t nlb)
{
    uint64_t bytes = (uint64_t)nlb * dev->media.shape.block_size;
    FlashZone *z = &dev->zones[zone];

    assert(z->programmed == z->accepted + nlb);
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

    assert(z->programmed == z->accepted + nlb);
    flash_media_undo(&dev->media, zone, z->accepted, nlb);
    z->programmed = z->accepted;
}

void flash_dev_end_window(FlashDev *dev, uint32_t zone)
{
    flash_window_end(dev, zone);
}

/* Power. */

static void zone_load(FlashDev *dev, uint32_t zone)
{
    const FlashImageZone *iz = &dev->media.zones[zone];

    assert(iz->wp <= dev->media.shape.zone_cap);
    dev->zones[zone] = (FlashZone) {
        .accepted = iz->wp,
        .programmed = iz->wp,
        .finished = iz->flags & FLASH_ZONE_FINISHED,
        .born = dev->zones[zone].born,
    };
}

static void drop_all(FlashDev *dev)
{
    flash_units_lose(dev);
    flash_zone_forget(dev);
    flash_buffer_init(dev);
    flash_cache_init(dev);
    for (uint32_t i = 0; i < dev->media.shape.nr_zones; i++) {
        flash_erase_cut(&dev->media, i);
        zone_load(dev, i);
    }
    dev->service_free = 0;
    dev->link_free[FLASH_FROM_HOST] = dev->link_free[FLASH_TO_HOST] = 0;
    flash_buffer_add(dev, (int64_t)(dev->window_bytes -
                                    dev->stats.buffer_used));
    assert(!dev->fill_head && !dev->issued_head && !dev->jobs);
    assert(dev->stats.buffer_used == dev->window_bytes);
    flash_time_clear(&dev->time);
}

static void cut_now(FlashTime *ft, void *arg)
{
    FlashDev *dev = arg;

    (void)ft;
    assert(dev->powered);
    dev->stats.cuts++;
    if (dev->media.journal) {
        flash_journal_add(dev->media.journal, FLASH_JOURNAL_CUT, 0, 0, 0);
    }
    flash_dev_power_off(dev);
    dev->lost_power(dev);
}

void flash_dev_power_off(FlashDev *dev)
{
    dev->powered = false;
    dev->cut_at = UINT64_MAX;
    drop_all(dev);
    while (dev->cmds) {
        dev->cmds->status = FLASH_NO_POWER;
        flash_cmd_done(&dev->time, dev->cmds);
    }
}

/* Only the first of several counts: what comes after it finds no power. */
static bool takes_cut(FlashDev *dev, uint64_t when)
{
    if (!dev->powered || when >= dev->cut_at) {
        return false;
    }
    flash_time_forget(&dev->time, cut_now);
    dev->cut_at = when;
    return true;
}

void flash_dev_cut(FlashDev *dev, uint64_t when)
{
    if (takes_cut(dev, when)) {
        flash_time_at(&dev->time, when, cut_now, dev);
    }
}

void flash_dev_cut_too(FlashDev *dev, uint64_t when)
{
    if (takes_cut(dev, when)) {
        flash_time_behind(&dev->time, when, cut_now, dev);
    }
}

bool flash_dev_awaits_cut(const FlashDev *dev)
{
    return dev->powered && (dev->cut_at != UINT64_MAX ||
                            dev->trouble.cut_at_program ||
                            dev->trouble.cut_at_reset);
}

void flash_dev_forget_cuts(FlashDev *dev)
{
    flash_time_forget(&dev->time, cut_now);
    dev->cut_at = UINT64_MAX;
    dev->trouble.cut_at_program = 0;
    dev->trouble.cut_at_reset = 0;
}

void flash_dev_power_on(FlashDev *dev)
{
    flash_dev_forget_cuts(dev);
    dev->powered = true;
}

/* Life. */

/* Does no step of a read or a write take time? */
static bool takes_no_time(const FlashTuning *t)
{
    bool cells = (t->delay_read && (t->read_ns || t->page_types)) ||
                 (t->delay_program && (t->program_ns || t->page_types)) ||
                 (t->delay_erase && t->erase_ns);
    bool transfers = t->delay_transfer &&
                     (t->bus.bytes_per_s || t->bus.setup_ns ||
                      t->bus.switch_ns || t->bus.turn_read_ns ||
                      t->bus.turn_write_ns || t->link_rate);
    bool firmware = t->service_ns || t->cmd_ns[FLASH_CMD_READ] ||
                    t->long_read_ns || t->cmd_ns[FLASH_CMD_WRITE] ||
                    t->cmd_ns[FLASH_CMD_APPEND] || t->cache_page_ns;

    return !cells && !transfers && !firmware;
}

void flash_dev_retune(FlashDev *dev)
{
    const FlashTuning *t = &dev->tuning;
    FlashTime *ft = &dev->time;

    ft->bus = t->delay_transfer ? t->bus : (FlashBus) { 0 };
    ft->cache = t->cache;
    ft->read_first = t->read_first;
    ft->suspend = t->suspend;
    ft->suspend_ns = t->suspend_ns;
    ft->resume_ns = t->resume_ns;
    ft->read_limit = t->read_limit ? t->read_limit : FLASH_READ_LIMIT;
    dev->instant = takes_no_time(t);
    flash_buffer_pump(dev);
}

char *flash_dev_open(FlashDev *dev, const char *path, const FlashShape *shape)
{
    char *why = flash_media_open(&dev->media, path, shape);
    uint64_t row = (uint64_t)shape->planes * shape->page_size;

    if (why) {
        return why;
    }
    flash_time_init(&dev->time, shape->channels,
                    shape->channels * shape->dies_per_channel,
                    dev->tuning.plane_reads ? shape->planes : 1);
    dev->row_blocks = row / shape->block_size;
    dev->unit_blocks = row * shape->program_pages / shape->block_size;
    dev->units_per_block = shape->pages_per_block / shape->program_pages;
    assert(dev->row_blocks && dev->unit_blocks && dev->units_per_block);
    dev->erase_blocks = 0;
    for (uint32_t i = 0; i < shape->zone_dies; i++) {
        uint64_t units = flash_zone_units(dev, shape->zone_cap);

        units = flash_units_at(dev, 0, units, i);
        dev->erase_blocks += (units + dev->units_per_block - 1) /
                             dev->units_per_block;
    }
    dev->zones = flash_alloc(shape->nr_zones, sizeof(*dev->zones));
    flash_units_init(dev);
    flash_buffer_init(dev);
    flash_cache_init(dev);
    dev->time.booked = dev->tuning.booked;
    dev->page_blocks = dev->row_blocks / dev->time.nr_planes;
    assert(!dev->nr_caches || dev->tuning.booked);
    assert(!dev->tuning.plane_reads || !dev->tuning.booked);
    assert(dev->page_blocks * dev->time.nr_planes == dev->row_blocks);
    dev->cut = flash_dev_cut;
    dev->powered = true;
    dev->cut_at = UINT64_MAX;
    for (uint32_t i = 0; i < shape->nr_zones; i++) {
        flash_erase_cut(&dev->media, i);
        zone_load(dev, i);
    }
    flash_buffer_add(dev, dev->window_bytes);
    flash_dev_retune(dev);
    return NULL;
}

void flash_dev_sync(FlashDev *dev)
{
    for (uint32_t i = 0; i < dev->media.shape.nr_zones; i++) {
        flash_erase_end(&dev->media, i);
    }
    flash_units_sync(dev);
}

void flash_dev_close(FlashDev *dev)
{
    if (dev->powered) {
        flash_dev_sync(dev);
    }
    drop_all(dev);
    while (dev->cmds) {
        dev->cmds->status = FLASH_NO_POWER;
        flash_cmd_done(&dev->time, dev->cmds);
    }
    flash_units_free(dev);
    flash_cache_free(dev);
    free(dev->zones);
    flash_time_free(&dev->time);
    flash_media_close(&dev->media);
}
