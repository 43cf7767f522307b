/*
 * The FTL inside a drive: the host's commands, and the list of mappings.  See
 * ftl.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Writes wait here, in the order in which they came, until the buffer has slots
 * and the mapping a place: a block is in the map when it is in the buffer, and
 * never earlier, so that a read always finds it.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ftl.h"
#include "mappings.h"

/* Parts of the host's commands. */

static void part_ended(FlashDev *dev, FlashCmd *cmd)
{
    if (!cmd->status) {
        flash_cmd_step(dev, cmd->owner);
    }
    free(cmd);
}

static void submit_part(Ftl *ftl, FlashCmd *whole, FlashCmdKind kind,
                        uint64_t place, uint32_t nlb)
{
    FlashCmd *cmd = flash_alloc(1, sizeof(*cmd));

    assert(place % ftl->cap + nlb <= ftl->cap);
    cmd->kind = kind;
    cmd->zone = place / ftl->cap;
    cmd->block = place % ftl->cap;
    cmd->nlb = nlb;
    cmd->fua = whole->fua;
    cmd->inside = whole->inside;
    cmd->owner = whole;
    cmd->then = part_ended;
    whole->pending++;
    flash_dev_submit_internal(ftl->dev, cmd);
}

static bool in_memory(Ftl *ftl, uint64_t lba, bool change)
{
    return !ftl->mapping->fetch || ftl->mapping->fetch(ftl, lba, change);
}

/* Blocks that lie side by side are one read; true: all are under way. */
static bool host_read(Ftl *ftl, FlashCmd *cmd)
{
    const uint64_t *map = ftl->map + cmd->block;

    while (cmd->admitted < cmd->nlb) {
        uint32_t i = cmd->admitted, n = 1;

        if (!in_memory(ftl, cmd->block + i, false)) {
            return false;
        }
        while (map[i] != FTL_NOWHERE && i + n < cmd->nlb &&
               map[i + n] == map[i] + n && map[i + n] % ftl->cap &&
               in_memory(ftl, cmd->block + i + n, false)) {
            n++;
        }
        cmd->admitted += n;
        if (map[i] != FTL_NOWHERE) {
            submit_part(ftl, cmd, FLASH_CMD_READ, map[i], n);
        }
    }
    return true;
}

static void wait_for_map(Ftl *ftl, FlashCmd *cmd)
{
    FlashCmd **p = &ftl->readers;

    while (*p) {
        p = &(*p)->wait_next;
    }
    cmd->pending++;             /* for its place there */
    cmd->wait_next = NULL;
    *p = cmd;
}

static void continue_reads(Ftl *ftl)
{
    FlashCmd **p = &ftl->readers;

    while (*p) {
        FlashCmd *cmd = *p;

        if (host_read(ftl, cmd)) {
            *p = cmd->wait_next;
            flash_cmd_step(ftl->dev, cmd);
        } else {
            p = &cmd->wait_next;
        }
    }
}

static void host_trim(Ftl *ftl, FlashCmd *cmd)
{
    for (uint32_t i = 0; i < cmd->nlb; i++) {
        uint64_t lba = cmd->block + i;

        if (ftl->map[lba] != FTL_NOWHERE) {
            ftl->trims[lba] = ++ftl->version;
            ftl_unmap(ftl, lba);
            ftl->stats.trimmed++;
        }
    }
}

/*
 * All of it or nothing, into one program unit: what a cut tears is the program,
 * and then the older versions of all of its blocks count.
 */
static bool host_write_whole(Ftl *ftl, FlashCmd *cmd)
{
    bool through = flash_write_through(ftl->dev, cmd);
    size_t size = ftl->dev->media.shape.block_size;
    uint32_t block;

    ftl->whole = true;
    assert(ftl->mapping->place_whole && cmd->nlb <= ftl->dev->unit_blocks);
    if (!flash_dev_fits(ftl->dev, cmd->nlb)) {
        return false;
    }
    block = ftl->mapping->place_whole(ftl, cmd->block, cmd->nlb);
    if (block == FTL_NONE) {
        return false;
    }
    for (; cmd->admitted < cmd->nlb; cmd->admitted++) {
        ftl_put(ftl, block, cmd->block + cmd->admitted,
                cmd->data + cmd->admitted * size, through ? cmd : NULL);
    }
    ftl->stats.host += cmd->nlb;
    ftl->handles[ftl->handle].host += cmd->nlb;
    if (through) {
        flash_dev_push(ftl->dev, block);
    }
    return true;
}

/* As much as fits; true: all of it. */
static bool host_write(Ftl *ftl, FlashCmd *cmd)
{
    bool through = flash_write_through(ftl->dev, cmd);
    size_t size = ftl->dev->media.shape.block_size;
    uint32_t last = FTL_NONE;
    bool all = true;

    assert(!cmd->handle || cmd->handle < ftl->config.handles);
    ftl->handle = cmd->handle;
    if (!cmd->admitted && cmd->hinted && ftl->mapping->near &&
        cmd->near < ftl->config.logical) {
        ftl->mapping->near(ftl, cmd->near, cmd->further);
    }
    if (cmd->whole) {
        return host_write_whole(ftl, cmd);
    }
    while (cmd->admitted < cmd->nlb) {
        uint64_t lba = cmd->block + cmd->admitted;
        uint32_t block = FTL_NONE;

        if (in_memory(ftl, lba, true) && flash_dev_room(ftl->dev)) {
            block = ftl->mapping->place(ftl, lba);
        }
        if (through && last != FTL_NONE && block != last) {
            flash_dev_push(ftl->dev, last);
        }
        if (block == FTL_NONE) {
            all = false;
            last = FTL_NONE;
            break;
        }
        assert(cmd->data && ftl_used(ftl, block) < ftl->cap);
        ftl_put(ftl, block, lba, cmd->data + cmd->admitted * size,
                through ? cmd : NULL);
        ftl->stats.host++;
        ftl->handles[ftl->handle].host++;
        cmd->admitted++;
        last = block;
    }
    if (through && last != FTL_NONE) {
        flash_dev_push(ftl->dev, last);
    }
    return all;
}

/* Jobs first: they make the space that writes wait for. */
static void pump(Ftl *ftl)
{
    if (ftl->pumping || !ftl->dev->powered) {
        ftl->again = true;
        return;
    }
    ftl->pumping = true;
    do {
        ftl->again = false;
        ftl_run_jobs(ftl);
        while (ftl->head && host_write(ftl, ftl->head)) {
            FlashCmd *cmd = ftl->head;

            assert(cmd->admitted == cmd->nlb);
            ftl->head = cmd->wait_next;
            if (!ftl->head) {
                ftl->tail = &ftl->head;
            }
            flash_cmd_step(ftl->dev, cmd);
        }
        continue_reads(ftl);
    } while (ftl->again);
    ftl->pumping = false;
}

static void on_space(FlashDev *dev)
{
    pump(dev->ftl);
}

static void host_queue(Ftl *ftl, FlashCmd *cmd)
{
    assert(!*ftl->tail);
    cmd->pending++;             /* for its place in the queue */
    cmd->wait_next = NULL;
    *ftl->tail = cmd;
    ftl->tail = &cmd->wait_next;
    pump(ftl);
    ftl->dev->stats.waited += ftl->head != NULL;
}

static void on_host(FlashDev *dev, FlashCmd *cmd)
{
    Ftl *ftl = dev->ftl;

    assert(cmd->kind == FLASH_CMD_FLUSH ||
           cmd->block + cmd->nlb <= ftl->config.logical);
    cmd->pending = 1;
    switch (cmd->kind) {
    case FLASH_CMD_READ:
        wait_for_map(ftl, cmd);
        pump(ftl);
        break;
    case FLASH_CMD_WRITE:
        host_queue(ftl, cmd);
        break;
    case FLASH_CMD_FLUSH:
        submit_part(ftl, cmd, FLASH_CMD_FLUSH, 0, 0);
        break;
    case FLASH_CMD_TRIM:
        host_trim(ftl, cmd);
        break;
    default:
        break;                  /* nothing that such a drive has */
    }
    flash_cmd_step(dev, cmd);
}

/* Data. */

void ftl_copy(const Ftl *ftl, uint64_t lba, uint32_t nlb, uint8_t *data)
{
    size_t size = ftl->dev->media.shape.block_size;
    FtlOob oob;

    assert(lba + nlb <= ftl->config.logical);
    for (; nlb; nlb--, lba++, data += size) {
        uint64_t place = ftl->map[lba];

        if (place == FTL_NOWHERE) {
            memset(data, 0, size);
        } else {
            flash_dev_copy(ftl->dev, place / ftl->cap, place % ftl->cap, 1,
                           data, (uint8_t *)&oob);
        }
    }
}

bool ftl_bad(const Ftl *ftl, uint64_t lba, uint32_t nlb)
{
    assert(lba + nlb <= ftl->config.logical);
    for (; nlb; nlb--, lba++) {
        uint64_t place = ftl->map[lba];

        if (place != FTL_NOWHERE &&
            flash_dev_bad(ftl->dev, place / ftl->cap, place % ftl->cap, 1)) {
            return true;
        }
    }
    return false;
}

/* What it tells. */

#define COUNTER(_name) { #_name, offsetof(FtlStats, _name) }

const FtlCounter ftl_counters[] = {
    COUNTER(host),
    COUNTER(moved),
    COUNTER(filler),
    COUNTER(trimmed),
    COUNTER(victims),
    COUNTER(urgent),
    COUNTER(levelled),
    COUNTER(refreshed),
    COUNTER(hot),
    COUNTER(merges_switch),
    COUNTER(merges_partial),
    COUNTER(merges_full),
    COUNTER(map_reads),
    COUNTER(map_writes),
    { NULL, 0 },
};

const FtlStats *ftl_stats(const Ftl *ftl)
{
    return &ftl->stats;
}

const char *ftl_name(const Ftl *ftl)
{
    return ftl->mapping->name;
}

uint64_t ftl_map_bytes(const Ftl *ftl)
{
    return ftl->mapping->map_bytes(ftl);
}

/* Handles. */

const FtlHandle *ftl_handle(const Ftl *ftl, uint32_t handle)
{
    assert(handle < ftl->config.handles);
    return &ftl->handles[handle];
}

uint64_t ftl_handle_left(const Ftl *ftl, uint32_t handle)
{
    uint32_t block = ftl->mapping->open_of(ftl, handle);
    uint32_t used = block == FTL_NONE ? 0 : ftl_used(ftl, block);

    assert(handle < ftl->config.handles && used <= ftl->cap);
    return used == ftl->cap ? ftl->cap : ftl->cap - used;
}

void ftl_handle_renew(Ftl *ftl, uint32_t handle)
{
    assert(handle < ftl->config.handles);
    if (ftl->dev->powered) {
        ftl->mapping->renew(ftl, handle);
    }
}

FtlWear ftl_wear(const Ftl *ftl)
{
    FtlWear wear = { UINT32_MAX, 0 };

    assert(ftl->nr_blocks);
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        uint32_t n = ftl_erases(ftl, i);

        wear.least = n < wear.least ? n : wear.least;
        wear.most = n > wear.most ? n : wear.most;
    }
    return wear;
}

/* Life. */

uint64_t ftl_logical(uint64_t blocks, uint32_t spare)
{
    return blocks * 100 / (100 + (uint64_t)spare);
}

static const FtlMapping *mapping_of(const char *name)
{
#define IS_IT(mapping)                          \
    if (!strcmp((mapping).name, name)) {        \
        return &(mapping);                      \
    }

    FTL_MAPPINGS(IS_IT)
    return NULL;
}

bool ftl_writes_whole(const char *name)
{
    const FtlMapping *mapping = mapping_of(name);

    return mapping && mapping->place_whole;
}

static char *complain(const char *what, const char *word)
{
    char *s;

    return asprintf(&s, "%s '%s'", what, word) < 0 ? NULL : s;
}

char *ftl_open(Ftl **opened, FlashDev *dev, const FtlConfig *config)
{
    const FtlMapping *mapping = mapping_of(config->mapping);
    char *why;
    Ftl *ftl;

    if (!mapping) {
        return complain("there is no mapping", config->mapping);
    }
    if (config->handles && !mapping->open_of) {
        return complain("placement handles need the mapping 'page', not",
                        config->mapping);
    }
    if (config->refresh_ns && !mapping->refreshes) {
        return complain("refresh_ns needs the mapping 'page' or 'dftl', not",
                        config->mapping);
    }
    assert(config->handles <= FTL_HANDLES && config->apart <= config->handles);
    ftl = flash_alloc(1, sizeof(*ftl));
    ftl->dev = dev;
    ftl->config = *config;
    ftl->mapping = mapping;
    ftl->kick = pump;
    ftl->space = config->logical;
    if (mapping->own_blocks) {
        ftl->space += mapping->own_blocks(ftl);
    }
    ftl_core_init(ftl);
    why = mapping->open(ftl);
    if (why) {
        ftl_free(ftl);
        return why;
    }
    dev->ftl = ftl;
    dev->serve = on_host;
    dev->space = on_space;
    *opened = ftl;
    return ftl_load(ftl) ? NULL : complain("damaged flash image: it cannot be "
                                           "of the mapping", mapping->name);
}

bool ftl_load(Ftl *ftl)
{
    ftl->head = NULL;
    ftl->tail = &ftl->head;
    ftl->readers = NULL;
    return ftl_core_load(ftl) && ftl->mapping->load(ftl);
}

void ftl_free(Ftl *ftl)
{
    ftl_core_free(ftl);
    free(ftl->own);
    free(ftl);
}
