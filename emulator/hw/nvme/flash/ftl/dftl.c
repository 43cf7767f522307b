/*
 * DFTL: page mapping, whose map is on flash, with a part of it in memory.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The map is cut into pages as large as a logical block, which are logical
 * blocks themselves, behind those of the host.  A command waits until the pages
 * that it needs are in the cache; the one that was not used for longest makes
 * way, and is written if it has changed.  What collection moves changes pages
 * too: those that are not in the cache are read and written, as many as leave
 * room for the next victim; the others are owed, or small erase blocks would
 * never gain anything.  After Gupta et al., DFTL: A Flash Translation Layer
 * Employing Demand-based Selective Caching of Page-level Address Mappings,
 * 2009.  A trim costs nothing here.  Called by ftl.c and the core; the
 * owner serialises.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mappings.h"
#include "page.h"

typedef struct Slot {
    uint32_t page;              /* of the map, or FTL_NONE */
    bool changed;
    bool coming;                /* being read */
    uint64_t used;              /* when */
} Slot;

typedef struct Dftl {
    uint64_t uses;
    uint32_t entries;           /* of a page of the map */
    uint32_t pages;
    uint32_t *slot_of;          /* by page: where it is, or FTL_NONE */
    uint8_t *owed;              /* by page: collection has changed it */
    uint32_t next_owed;         /* where to look for one */
    Slot slots[];
} Dftl;

typedef struct Fetch {
    FlashCmd cmd;               /* first: it is freed by its address */
    Ftl *ftl;
    Slot *slot;
} Fetch;

static uint32_t entries_of(const Ftl *ftl)
{
    return ftl->dev->media.shape.block_size / sizeof(uint32_t);
}

static uint64_t dftl_own_blocks(const Ftl *ftl)
{
    return (ftl->config.logical + entries_of(ftl) - 1) / entries_of(ftl);
}

static char *dftl_open(Ftl *ftl)
{
    uint64_t pages = dftl_own_blocks(ftl);
    size_t slots = ftl->config.map_pages * sizeof(Slot);
    char *why = ftl_page_open(ftl, sizeof(Dftl) + slots +
                                   pages * (sizeof(uint32_t) + 1));
    Dftl *dftl;

    if (!why) {
        dftl = ftl_page_more(ftl);
        dftl->entries = entries_of(ftl);
        dftl->pages = pages;
        dftl->slot_of = (uint32_t *)((char *)(dftl + 1) + slots);
        dftl->owed = (uint8_t *)(dftl->slot_of + pages);
    }
    return why;
}

/* A page of the map goes to flash: the entries as they are now. */
static bool write_back(Ftl *ftl, Slot *slot)
{
    const Dftl *dftl = ftl_page_more(ftl);
    uint64_t first = (uint64_t)slot->page * dftl->entries;
    uint32_t *entries = (uint32_t *)ftl->scratch;
    uint32_t block;

    assert(slot->page < dftl->pages && slot->changed);
    if (!flash_dev_room(ftl->dev)) {
        return false;
    }
    block = ftl_page_place(ftl, ftl->config.logical + slot->page);
    if (block == FTL_NONE) {
        return false;
    }
    for (uint32_t i = 0; i < dftl->entries; i++) {
        entries[i] = first + i < ftl->config.logical ? ftl->map[first + i] :
                                                       FTL_NONE;
    }
    ftl_put_own(ftl, block, ftl->config.logical + slot->page, ftl->scratch);
    ftl->stats.map_writes++;
    slot->changed = false;
    return true;
}

/* The slot that was not used for longest, empty; NULL: not now. */
static Slot *make_room(Ftl *ftl)
{
    Dftl *dftl = ftl_page_more(ftl);
    Slot *oldest = NULL;

    for (uint32_t i = 0; i < ftl->config.map_pages; i++) {
        Slot *slot = &dftl->slots[i];

        if (!slot->coming && (!oldest || slot->used < oldest->used)) {
            oldest = slot;
        }
    }
    if (!oldest || (oldest->changed && !write_back(ftl, oldest))) {
        return NULL;
    }
    if (oldest->page != FTL_NONE) {
        assert(dftl->slot_of[oldest->page] == oldest - dftl->slots);
        dftl->slot_of[oldest->page] = FTL_NONE;
    }
    return oldest;
}

static void arrived(FlashDev *dev, FlashCmd *cmd)
{
    Fetch *fetch = (Fetch *)cmd;

    (void)dev;
    if (!cmd->status) {
        assert(fetch->slot->coming);
        fetch->slot->coming = false;
        fetch->ftl->kick(fetch->ftl);
    }
    free(fetch);
}

static void read_page(Ftl *ftl, Slot *slot)
{
    uint64_t place = ftl->map[ftl->config.logical + slot->page];
    Fetch *fetch;

    assert(!slot->coming);
    if (place == FTL_NOWHERE) {
        return;                 /* it was never written */
    }
    fetch = flash_alloc(1, sizeof(*fetch));
    fetch->cmd.kind = FLASH_CMD_READ;
    fetch->cmd.inside = true;
    fetch->cmd.zone = place / ftl->cap;
    fetch->cmd.block = place % ftl->cap;
    fetch->cmd.nlb = 1;
    fetch->cmd.then = arrived;
    fetch->ftl = ftl;
    fetch->slot = slot;
    slot->coming = true;
    ftl->stats.map_reads++;
    flash_dev_submit_internal(ftl->dev, &fetch->cmd);
}

static bool dftl_fetch(Ftl *ftl, uint64_t lba, bool change)
{
    Dftl *dftl = ftl_page_more(ftl);
    uint32_t page = lba / dftl->entries;
    Slot *slot;

    assert(page < dftl->pages);
    if (dftl->slot_of[page] == FTL_NONE) {
        slot = make_room(ftl);
        if (!slot) {
            return false;
        }
        dftl->slot_of[page] = slot - dftl->slots;
        slot->page = page;
        slot->changed = dftl->owed[page];
        slot->used = ++dftl->uses;
        dftl->owed[page] = false;
        read_page(ftl, slot);
    }
    slot = &dftl->slots[dftl->slot_of[page]];
    if (slot->coming) {
        return false;
    }
    slot->used = ++dftl->uses;
    slot->changed |= change;
    return true;
}

/* What a job has moved changes the map: in the cache, or it is owed. */
static void mark_changed(Ftl *ftl, const FtlJob *done)
{
    Dftl *dftl = ftl_page_more(ftl);

    for (uint32_t i = 0; i < done->nr; i++) {
        uint32_t page = done->lbas[i] / dftl->entries;

        if (done->lbas[i] >= ftl->config.logical) {
            continue;
        }
        if (dftl->slot_of[page] != FTL_NONE) {
            dftl->slots[dftl->slot_of[page]].changed = true;
        } else if (ftl->map[ftl->config.logical + page] != FTL_NOWHERE) {
            dftl->owed[page] = true;
        }
    }
}

/*
 * Pages that are owed: as many as fit into spare room, or into what the victim
 * gave back less one program unit, whichever is more.
 */
static FtlJob *dftl_follow(Ftl *ftl, const FtlJob *done)
{
    Dftl *dftl = ftl_page_more(ftl);
    uint64_t gained = ftl->cap - ftl_units(ftl, done->nr);
    uint64_t spare = ftl_page_spare(ftl, done->tag);
    uint32_t most;
    FtlJob *job;

    if (done->from == FTL_NONE) {
        return NULL;
    }
    mark_changed(ftl, done);
    job = ftl_job();
    gained -= gained ? ftl->dev->unit_blocks : 0;
    most = gained > spare ? gained : spare;
    most = most < dftl->pages ? most : dftl->pages;
    job->lbas = flash_alloc(most, sizeof(*job->lbas));
    for (uint32_t i = 0; i < dftl->pages && job->nr < most; i++) {
        uint32_t page = dftl->next_owed;

        dftl->next_owed = (page + 1) % dftl->pages;
        if (dftl->owed[page]) {
            dftl->owed[page] = false;
            job->lbas[job->nr++] = ftl->config.logical + page;
            ftl->stats.map_reads++;
            ftl->stats.map_writes++;
        }
    }
    assert(job->nr <= most);
    if (!job->nr) {
        free(job->lbas);
        free(job);
        return NULL;
    }
    return job;
}

static bool dftl_load(Ftl *ftl)
{
    Dftl *dftl = ftl_page_more(ftl);

    for (uint32_t i = 0; i < dftl->pages; i++) {
        dftl->slot_of[i] = FTL_NONE;
        dftl->owed[i] = false;
    }
    dftl->next_owed = 0;
    for (uint32_t i = 0; i < ftl->config.map_pages; i++) {
        dftl->slots[i] = (Slot) { .page = FTL_NONE };
    }
    return ftl_page_load(ftl);
}

static uint64_t dftl_map_bytes(const Ftl *ftl)
{
    const Dftl *dftl = ftl_page_more(ftl);

    return (sizeof(uint32_t) + 1) * dftl->pages +
           (uint64_t)ftl->config.map_pages *
           ftl->dev->media.shape.block_size;
}

const FtlMapping ftl_dftl = {
    .name = "dftl",
    .own_blocks = dftl_own_blocks,
    .open = dftl_open,
    .load = dftl_load,
    .fetch = dftl_fetch,
    .follow = dftl_follow,
    .place = ftl_page_place,
    .near = ftl_page_near,
    .map_bytes = dftl_map_bytes,
    .refreshes = true,
};
