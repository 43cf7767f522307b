/*
 * Page mapping: any block may be anywhere.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Writes go to the groups of dies in turn, a program unit each.  In each group
 * garbage collection begins when so many of its erase blocks are in use, and
 * empties one at a time: the one with the least valid blocks, or by the ratio
 * of benefit to cost.  The last free blocks are its own, so that it always has
 * somewhere to move to.  Called by flash-ftl.c and the core; the owner
 * serialises.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <stdlib.h>

#include "flash-ftl-mappings.h"
#include "flash-ftl-page.h"

#define RESERVE 2               /* erase blocks of a group that only GC takes */

enum { STREAM_USER, STREAM_GC, STREAMS };

typedef struct PageGroup {
    uint32_t open[STREAMS];     /* erase blocks being written */
    bool collecting;
} PageGroup;

typedef struct Page {
    uint32_t turn;              /* the group that is written to */
    PageGroup groups[];
} Page;

/* Free blocks of a group that users' writes leave alone. */
static uint32_t kept_free(const Ftl *ftl, uint32_t group)
{
    uint32_t n = ftl->groups[group].nr_blocks;
    uint32_t kept = n * (100 - ftl->config.gc_urgent) / 100;

    return kept > RESERVE ? kept : RESERVE;
}

/* What follows may be of any type. */
static size_t own_size(const Ftl *ftl)
{
    size_t size = sizeof(Page) + ftl->nr_groups * sizeof(PageGroup);

    return (size + 7) / 8 * 8;
}

char *ftl_page_open(Ftl *ftl, size_t more)
{
    uint64_t room = 0;
    char *why = NULL;

    for (uint32_t i = 0; i < ftl->nr_groups; i++) {
        uint32_t n = ftl->groups[i].nr_blocks;
        uint32_t aside = kept_free(ftl, i) + STREAMS;

        room += n > aside ? (uint64_t)(n - aside) * ftl->cap : 0;
    }
    if (room < ftl->space) {
        return asprintf(&why, "the page mapping can hold %llu blocks of data "
                        "on this flash, not %llu: give it more to spare",
                        (unsigned long long)room,
                        (unsigned long long)ftl->space) < 0 ? NULL :
                                                                       why;
    }
    ftl->own = flash_alloc(1, own_size(ftl) + more);
    return NULL;
}

static char *page_open(Ftl *ftl)
{
    return ftl_page_open(ftl, 0);
}

void *ftl_page_more(const Ftl *ftl)
{
    return (char *)ftl->own + own_size(ftl);
}

/* Collection. */

static uint64_t score(const Ftl *ftl, const FtlBlock *b)
{
    uint64_t gain = ftl->cap - b->valid;

    if (!ftl->config.cost_benefit) {
        return gain;
    }
    return b->valid ? (ftl->version - b->changed) * gain / (2 * b->valid) :
                      UINT64_MAX;
}

/* What can be moved now, while users' writes wait. */
static uint64_t room(const Ftl *ftl, uint32_t group)
{
    const PageGroup *g = &((Page *)ftl->own)->groups[group];
    uint64_t n = (uint64_t)ftl->groups[group].nr_free * ftl->cap;

    for (int i = 0; i < STREAMS; i++) {
        if (g->open[i] != FTL_NONE) {
            n += ftl->cap - ftl_used(ftl, g->open[i]);
        }
    }
    return n;
}

/* Of those whose blocks find room: after a cut it may be scarce. */
static uint32_t pick_victim(const Ftl *ftl, uint32_t group)
{
    uint32_t best = FTL_NONE;
    uint64_t best_score = 0, most = room(ftl, group);

    for (uint32_t i = group; i < ftl->nr_blocks; i += ftl->nr_groups) {
        const FtlBlock *b = &ftl->blocks[i];

        if (b->state == FTL_CLOSED && b->valid < ftl->cap && b->valid <= most &&
            (best == FTL_NONE || score(ftl, b) > best_score)) {
            best = i;
            best_score = score(ftl, b);
        }
    }
    return best;
}

static uint32_t page_dest(Ftl *ftl, FtlJob *job)
{
    PageGroup *g = &((Page *)ftl->own)->groups[job->tag];
    uint32_t *open = &g->open[ftl->config.hot_cold ? STREAM_GC : STREAM_USER];
    uint32_t block;

    if (*open == FTL_NONE) {
        *open = ftl_take(ftl, job->tag, 0);
    }
    if (*open == FTL_NONE) {
        open = &g->open[STREAM_USER];
    }
    block = *open;
    if (ftl_used(ftl, block) + 1 == ftl->cap) {
        *open = FTL_NONE;
    }
    return block;
}

static void collect(Ftl *ftl, uint32_t group);

static void collected(Ftl *ftl, FtlJob *job)
{
    FtlJob *next = NULL;

    if (ftl->mapping->follow) {
        next = ftl->mapping->follow(ftl, job);
    }
    if (next) {
        next->tag = job->tag;
        next->dest = page_dest;
        next->ended = collected;
        ftl_start(ftl, next);
        return;
    }
    ((Page *)ftl->own)->groups[job->tag].collecting = false;
    collect(ftl, job->tag);
}

static void collect(Ftl *ftl, uint32_t group)
{
    PageGroup *g = &((Page *)ftl->own)->groups[group];
    uint32_t n = ftl->groups[group].nr_blocks;
    uint32_t nr_free = ftl->groups[group].nr_free;
    bool urgent = nr_free <= kept_free(ftl, group);
    uint32_t victim, gain;
    FtlJob *job;

    if (g->collecting ||
        (!urgent && (n - nr_free) * 100 < n * ftl->config.gc_begin)) {
        return;
    }
    victim = pick_victim(ftl, group);
    if (victim == FTL_NONE) {
        return;
    }
    gain = ftl->cap - ftl->blocks[victim].valid;
    if (!urgent && gain < ftl->cap / ftl->config.gc_gain) {
        return;
    }
    job = ftl_job();
    job->lbas = flash_alloc(ftl->cap, sizeof(*job->lbas));
    for (uint32_t i = 0; i < ftl->cap; i++) {
        uint64_t lba = ftl->back[(uint64_t)victim * ftl->cap + i];

        if (lba != FTL_FILLER) {
            job->lbas[job->nr++] = lba;
        }
    }
    job->from = job->victims[0] = victim;
    job->tag = group;
    job->dest = page_dest;
    job->ended = collected;
    g->collecting = true;
    ftl->stats.urgent += urgent;
    ftl_start(ftl, job);
}

/* Users' writes. */

/* GC needs room for a victim's blocks, and for what follows from moving them. */
static bool scarce(const Ftl *ftl, uint32_t group)
{
    return ftl->mapping->follow ? room(ftl, group) <= 2ull * ftl->cap :
                                  !ftl->groups[group].nr_free;
}

static uint32_t group_place(Ftl *ftl, uint32_t group)
{
    uint32_t *open = &((Page *)ftl->own)->groups[group].open[STREAM_USER];
    uint32_t block = *open;

    if (block == FTL_NONE) {
        if (ftl->groups[group].nr_free > kept_free(ftl, group)) {
            block = *open = ftl_take(ftl, group, 0);
        }
        collect(ftl, group);
    }
    if (scarce(ftl, group)) {
        /* a victim may fit by now that did not */
        collect(ftl, group);
        return FTL_NONE;        /* GC needs what is left */
    }
    if (block != FTL_NONE && ftl_used(ftl, block) + 1 == ftl->cap) {
        *open = FTL_NONE;
    }
    return block;
}

uint32_t ftl_page_place(Ftl *ftl, uint64_t lba)
{
    Page *page = ftl->own;

    (void)lba;
    for (uint32_t i = 0; i < ftl->nr_groups; i++) {
        uint32_t block = group_place(ftl, page->turn);

        if (block == FTL_NONE ||
            (ftl_used(ftl, block) + 1) % ftl->dev->unit_blocks == 0) {
            page->turn = (page->turn + 1) % ftl->nr_groups;
        }
        if (block != FTL_NONE) {
            return block;
        }
    }
    return FTL_NONE;
}

/* Blocks that were being written go on; what there is more is collected. */
bool ftl_page_load(Ftl *ftl)
{
    Page *page = ftl->own;

    page->turn = 0;
    for (uint32_t i = 0; i < ftl->nr_groups; i++) {
        page->groups[i] = (PageGroup) { .open = { FTL_NONE, FTL_NONE } };
    }
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        PageGroup *g = &page->groups[i % ftl->nr_groups];
        int stream = g->open[STREAM_USER] == FTL_NONE ? STREAM_USER : STREAM_GC;

        if (ftl->blocks[i].state == FTL_CLOSED && ftl_used(ftl, i) < ftl->cap &&
            g->open[stream] == FTL_NONE &&
            (stream == STREAM_USER || ftl->config.hot_cold)) {
            g->open[stream] = i;
            ftl->blocks[i].state = FTL_OPEN;
        }
    }
    for (uint32_t i = 0; i < ftl->nr_groups; i++) {
        collect(ftl, i);
    }
    return true;
}

static uint64_t page_map_bytes(const Ftl *ftl)
{
    bool wide = (uint64_t)ftl->nr_blocks * ftl->cap > UINT32_MAX;

    return ftl->config.logical * (wide ? 8 : 4);
}

const FtlMapping ftl_page = {
    .name = "page",
    .open = page_open,
    .load = ftl_page_load,
    .place = ftl_page_place,
    .map_bytes = page_map_bytes,
};
