/*
 * Page mapping: any block may be anywhere.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Writes go to the groups of dies in turn, a program unit each.  In each group
 * garbage collection begins when so many of its erase blocks are in use, and
 * empties one at a time: the one with the least valid blocks, or by the ratio
 * of benefit to cost.  The last free blocks are its own, so that it always has
 * somewhere to move to.
 *
 * With hot_writes, a write is hot if the version that it replaces lived shorter
 * than the mean of those replaced lately; hot ones have erase blocks of their
 * own.  With wear_spread, a stream takes the free block that was erased least.
 * As long as a block was erased so many times more than another, every other
 * victim of its group is the one erased least: what lies in it is cold, and
 * goes to the free block that was erased most.
 *
 * If the host's writes name handles, each has erase blocks of its own.  What
 * collection moves goes to blocks of GC, or, of a handle whose data is kept
 * apart, to further blocks of that handle.  Nothing is moved to a block that the
 * host writes to.
 *
 * A write that must not be torn by a power cut goes into one program unit, which
 * is padded before if too little of it is left.  Collection leaves a block alone
 * as long as such a write may be on its way to it: if moved, parts of the write
 * could be on flash before the rest.
 *
 * Called by ftl.c and the core; the owner serialises.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "mappings.h"
#include "page.h"

#define RESERVE 2               /* erase blocks of a group that only GC takes */

#define NO_STREAM (-1)

#define LIVES 4096              /* that the mean of lives is over, about */
#define LOOKS 64u               /* for old data, until data gets old */

/* Behind these each handle has two: the host's writes, and what is moved. */
enum { STREAM_USER, STREAM_GC, STREAM_MAP, STREAM_HOT, STREAM_WEAR, STREAMS };
enum { ROLE_DATA, ROLE_MAP };   /* of erase blocks; a map is not mixed in */

typedef struct PageGroup {
    uint32_t open[STREAMS];     /* erase blocks being written */
    uint64_t left;              /* room in those that a power loss cut short */
    bool collecting;            /* a job moves what a victim holds */
    bool levelled;              /* the last victim was one that is worn least */
    bool refreshed;             /* old data was moved since a write got a block */
    uint32_t held;              /* victims whose jobs wait to fill a unit */
    uint64_t promised;          /* room that jobs which follow will need */
} PageGroup;

typedef struct PageTurn {
    uint32_t group;             /* that is written to */
    uint32_t at;                /* ... where a unit has begun, or FTL_NONE */
} PageTurn;

typedef struct Page {
    PageTurn turns[2];          /* of all writes, or without the hot ones */
    uint64_t writes;            /* of the host; hot_writes only, as the next */
    uint64_t lives;             /* LIVES times the mean of lives, in writes */
    uint64_t *written;          /* by logical block: the last; 0: unknown */
    uint32_t *by_handle;        /* open blocks of the streams of handles */
    PageGroup groups[];
} Page;

/* Free blocks of a group that users' writes leave alone. */
static uint32_t kept_free(const Ftl *ftl, uint32_t group)
{
    uint32_t n = ftl->groups[group].nr_blocks;
    uint32_t kept = n * (100 - ftl->config.gc_urgent) / 100;
    uint32_t reserve = RESERVE + (ftl->config.wear_spread ||
                                  ftl->config.refresh_ns ||
                                  ftl->config.handles);

    return kept > reserve ? kept : reserve;
}

static size_t groups_size(const Ftl *ftl)
{
    return sizeof(Page) + ftl->nr_groups * sizeof(PageGroup);
}

static size_t written_size(const Ftl *ftl)
{
    return ftl->config.hot_writes ? ftl->config.logical * sizeof(uint64_t) : 0;
}

/* What follows may be of any type. */
static size_t own_size(const Ftl *ftl)
{
    return groups_size(ftl) + written_size(ftl) +
           2 * ftl->config.handles * sizeof(uint32_t);
}

/* Erase blocks of a group that are written to. */
static uint32_t most_open(const Ftl *ftl)
{
    const FtlConfig *c = &ftl->config;

    if (c->handles) {
        return 1 + c->handles + c->apart;
    }
    return STREAMS - !ftl->mapping->follow - !c->hot_writes - !c->wear_spread;
}

/*
 * Data that fills an erase block, if any amount of it can be.  As long as all
 * blocks hold more than that, collection must fill units with moves from several
 * victims.  That cannot be relied on if these go to several streams: so each
 * victim has to gain a unit.
 */
static uint32_t most_valid(const Ftl *ftl)
{
    return ftl->config.apart ? ftl->cap - (ftl->dev->unit_blocks - 1) :
                               ftl->cap;
}

char *ftl_page_open(Ftl *ftl, size_t more)
{
    const FtlConfig *c = &ftl->config;
    uint64_t room = 0;
    char *why = NULL;
    Page *page;

    if (c->handles && (ftl->nr_groups > 1 || !c->hot_cold || c->hot_writes ||
                       c->wear_spread)) {
        return asprintf(&why, "placement handles need erase blocks on all dies "
                        "(zone_dies), hot_cold=on, hot_writes=off and "
                        "wear_spread=0") < 0 ? NULL : why;
    }
    for (uint32_t i = 0; i < ftl->nr_groups; i++) {
        uint32_t n = ftl->groups[i].nr_blocks;
        uint32_t aside = kept_free(ftl, i) + most_open(ftl);

        room += n > aside ? (uint64_t)(n - aside) * most_valid(ftl) : 0;
    }
    if (room < ftl->space) {
        return asprintf(&why, "the page mapping can hold %llu blocks of data "
                        "on this flash, not %llu: give it more to spare",
                        (unsigned long long)room,
                        (unsigned long long)ftl->space) < 0 ? NULL :
                                                                       why;
    }
    page = ftl->own = flash_alloc(1, own_size(ftl) + more);
    page->written = (uint64_t *)((char *)page + groups_size(ftl));
    page->by_handle = (uint32_t *)((char *)page->written + written_size(ftl));
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

/* Streams. */

static int nr_streams(const Ftl *ftl)
{
    return STREAMS + 2 * ftl->config.handles;
}

static uint32_t *slot_of(const Ftl *ftl, uint32_t group, int stream)
{
    Page *page = ftl->own;

    assert(stream < nr_streams(ftl));
    return stream < STREAMS ? &page->groups[group].open[stream] :
                              &page->by_handle[stream - STREAMS];
}

static int stream_of_handle(uint32_t handle)
{
    return STREAMS + 2 * handle;
}

static uint8_t role_of_stream(int stream)
{
    return stream < STREAMS ?
           (stream == STREAM_MAP ? ROLE_MAP : ROLE_DATA) :
           ftl_role_of((stream - STREAMS) / 2);
}

/* If there are handles: where the blocks go that such an erase block holds. */
static int stream_of_moves(const Ftl *ftl, uint8_t role)
{
    uint32_t handle = ftl_handle_of(role);

    assert(role != ROLE_MAP);
    return handle != FTL_NONE && ftl_is_apart(ftl, handle) ?
           stream_of_handle(handle) + 1 : STREAM_GC;
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

/* The stream's open block, or FTL_NONE, also if padding has filled it. */
static uint32_t *open_of(const Ftl *ftl, uint32_t group, int stream)
{
    uint32_t *open = slot_of(ftl, group, stream);

    if (*open != FTL_NONE && ftl_used(ftl, *open) == ftl->cap) {
        *open = FTL_NONE;
    }
    return open;
}

/* Room of an open erase block, in whole units. */
static uint64_t room_of(const Ftl *ftl, uint32_t open)
{
    return open == FTL_NONE ? 0 : (ftl->cap - ftl_used(ftl, open)) /
                                  ftl->dev->unit_blocks * ftl->dev->unit_blocks;
}

/* What can be moved now, in whole units, while users' writes wait. */
static uint64_t room(const Ftl *ftl, uint32_t group)
{
    const PageGroup *g = &((Page *)ftl->own)->groups[group];
    uint64_t n = (uint64_t)ftl->groups[group].nr_free * ftl->cap + g->left;

    for (int i = 0; i < STREAMS; i++) {
        n += room_of(ftl, g->open[i]);
    }
    return n > g->promised ? n - g->promised : 0;
}

/*
 * The same if blocks of handles must not be mixed.  As long as jobs wait for
 * their units to fill, one free block is kept for what is urgent after a cut.
 */
static uint64_t room_in(const Ftl *ftl, uint32_t group, int stream)
{
    const PageGroup *g = &((Page *)ftl->own)->groups[group];
    uint64_t nr_free = ftl->groups[group].nr_free;

    nr_free -= nr_free && g->held;
    return nr_free * ftl->cap + room_of(ftl, *open_of(ftl, group, stream));
}

/* Does what the block holds find room?  most: what can be moved. */
static bool has_room(const Ftl *ftl, uint32_t group, uint32_t block,
                     uint64_t most)
{
    const FtlBlock *b = &ftl->blocks[block];

    if (ftl->config.handles) {
        return ftl_units(ftl, b->valid) <=
               room_in(ftl, group, stream_of_moves(ftl, b->role));
    }
    return ftl_units(ftl, b->valid) + ftl->cap - ftl_used(ftl, block) <= most;
}

/* Can a job take the block, or is a write on its way that must not be torn? */
static bool is_victim(const Ftl *ftl, uint32_t block)
{
    return ftl->blocks[block].state == FTL_CLOSED &&
           !(ftl->whole && flash_dev_in_flight(ftl->dev, block));
}

/* Of those whose blocks find room: after a cut it may be scarce. */
static uint32_t pick_victim(const Ftl *ftl, uint32_t group)
{
    uint32_t best = FTL_NONE;
    uint64_t best_score = 0, most = room(ftl, group);

    for (uint32_t i = group; i < ftl->nr_blocks; i += ftl->nr_groups) {
        const FtlBlock *b = &ftl->blocks[i];

        if (is_victim(ftl, i) && b->valid < ftl->cap &&
            has_room(ftl, group, i, most) &&
            (best == FTL_NONE || score(ftl, b) > best_score)) {
            best = i;
            best_score = score(ftl, b);
        }
    }
    return best;
}

/*
 * The one that was erased least, if another block was erased so many times
 * more; else FTL_NONE.  Nothing may be gained by it: so it leaves GC's reserve
 * alone, and an ordinary victim comes before the next one.
 */
static uint32_t pick_unworn(const Ftl *ftl, uint32_t group)
{
    const PageGroup *g = &((Page *)ftl->own)->groups[group];
    uint32_t least = FTL_NONE, most = 0;

    if (!ftl->config.wear_spread || g->levelled ||
        ftl->groups[group].nr_free <= RESERVE) {
        return FTL_NONE;
    }
    for (uint32_t i = group; i < ftl->nr_blocks; i += ftl->nr_groups) {
        uint32_t n = ftl_erases(ftl, i);

        most = n > most ? n : most;
        if (is_victim(ftl, i) && ftl_used(ftl, i) == ftl->cap &&
            (least == FTL_NONE || n < ftl_erases(ftl, least))) {
            least = i;
        }
    }
    return least != FTL_NONE &&
           most - ftl_erases(ftl, least) > ftl->config.wear_spread &&
           ftl_units(ftl, ftl->blocks[least].valid) <= room(ftl, group) ?
           least : FTL_NONE;
}

/*
 * The one whose data is oldest, if it is as old as data may get; else FTL_NONE.
 * Nothing may be gained by it either, and data may get old faster than it can be
 * moved: so while writes wait, each of these is followed by a block for them.
 */
static uint32_t pick_old(const Ftl *ftl, uint32_t group)
{
    const FlashDev *dev = ftl->dev;
    uint64_t most = room(ftl, group);
    uint32_t oldest = FTL_NONE;

    if (!ftl->config.refresh_ns || ftl->groups[group].nr_free <= RESERVE ||
        (((Page *)ftl->own)->groups[group].refreshed && ftl->head)) {
        return FTL_NONE;
    }
    for (uint32_t i = group; i < ftl->nr_blocks; i += ftl->nr_groups) {
        uint64_t born = dev->zones[i].born;

        /* programmed: until then it is not born, and what it held was older */
        if (is_victim(ftl, i) && ftl->blocks[i].valid &&
            dev->zones[i].programmed &&
            dev->time.now - born >= ftl->config.refresh_ns &&
            has_room(ftl, group, i, most) &&
            (oldest == FTL_NONE || born < dev->zones[oldest].born)) {
            oldest = i;
        }
    }
    return oldest;
}

/* A block that was cut short, to go on there, or FTL_NONE. */
static uint32_t take_left(Ftl *ftl, uint32_t group)
{
    PageGroup *g = &((Page *)ftl->own)->groups[group];

    for (uint32_t i = group; g->left && !ftl->config.handles &&
                             i < ftl->nr_blocks; i += ftl->nr_groups) {
        if (ftl->blocks[i].state == FTL_CLOSED && ftl_used(ftl, i) < ftl->cap) {
            ftl->blocks[i].state = FTL_OPEN;
            assert(g->left >= ftl->cap - ftl_used(ftl, i));
            g->left -= ftl->cap - ftl_used(ftl, i);
            return i;
        }
    }
    return FTL_NONE;
}

/* The erase block that the stream is written to, if there can be one. */
static uint32_t *stream_open(Ftl *ftl, uint32_t group, int stream)
{
    uint32_t *open = open_of(ftl, group, stream);
    uint8_t role = role_of_stream(stream);

    if (*open == FTL_NONE) {
        *open = ftl->config.wear_spread ?
                ftl_take_by_wear(ftl, group, role, stream == STREAM_WEAR) :
                ftl_take(ftl, group, role);
    }
    if (*open == FTL_NONE) {
        *open = take_left(ftl, group);
    }
    return open;
}

/* Where the job's next block goes: to that stream, if there is room there. */
static uint32_t dest_in(Ftl *ftl, const FtlJob *job, int stream)
{
    uint32_t *open = stream_open(ftl, job->tag, stream);
    uint32_t block;

    for (int i = 0; *open == FTL_NONE; i++) {
        /* a victim's blocks have room somewhere; those of handles in theirs */
        assert(i < STREAMS && !ftl->config.handles);
        open = open_of(ftl, job->tag, i);
    }
    block = *open;
    assert(ftl_used(ftl, block) < ftl->cap);
    if (ftl_used(ftl, block) + 1 == ftl->cap) {
        *open = FTL_NONE;
    }
    return block;
}

static bool of_map(const Ftl *ftl, const FtlJob *job)
{
    return job->from == FTL_NONE || ftl->blocks[job->from].role == ROLE_MAP;
}

static uint32_t page_dest(Ftl *ftl, FtlJob *job)
{
    if (ftl->config.handles) {
        return dest_in(ftl, job,
                       stream_of_moves(ftl, ftl->blocks[job->from].role));
    }
    return dest_in(ftl, job, of_map(ftl, job) ? STREAM_MAP :
                             ftl->config.hot_cold ? STREAM_GC : STREAM_USER);
}

static uint32_t level_dest(Ftl *ftl, FtlJob *job)
{
    return dest_in(ftl, job, of_map(ftl, job) ? STREAM_MAP : STREAM_WEAR);
}

static void collect(Ftl *ftl, uint32_t group);

/* A job may begin that fills the unit with its moves. */
static void held_up(Ftl *ftl, FtlJob *job)
{
    PageGroup *g = &((Page *)ftl->own)->groups[job->tag];

    assert(g->collecting && job->patient);
    g->held++;
    g->collecting = false;
    collect(ftl, job->tag);
}

static void collected(Ftl *ftl, FtlJob *job)
{
    PageGroup *g = &((Page *)ftl->own)->groups[job->tag];
    FtlJob *next = NULL;

    if (job->from == FTL_NONE) {
        assert(g->promised >= ftl_units(ftl, job->nr));
        g->promised -= ftl_units(ftl, job->nr);
    } else {
        assert(g->held >= job->held);
        g->held -= job->held;
    }

    if (ftl->mapping->follow) {
        next = ftl->mapping->follow(ftl, job);
    }
    if (next) {
        next->tag = job->tag;
        next->held = job->held;
        g->promised += ftl_units(ftl, next->nr);
        next->dest = page_dest;
        next->ended = collected;
        ftl_start(ftl, next);
        return;
    }
    g->collecting &= job->held;
    collect(ftl, job->tag);
}

/* A job moves what the victim holds, and erases it. */
static void empty(Ftl *ftl, uint32_t group, uint32_t victim)
{
    PageGroup *g = &((Page *)ftl->own)->groups[group];
    FtlJob *job = ftl_job();

    job->lbas = flash_alloc(ftl->cap, sizeof(*job->lbas));
    for (uint32_t i = 0; i < ftl->cap; i++) {
        uint64_t lba = ftl->back[(uint64_t)victim * ftl->cap + i];

        if (lba != FTL_FILLER) {
            job->lbas[job->nr++] = lba;
        }
    }
    if (ftl_used(ftl, victim) < ftl->cap) {
        assert(g->left >= ftl->cap - ftl_used(ftl, victim));
        g->left -= ftl->cap - ftl_used(ftl, victim);
    }
    assert(job->nr == ftl->blocks[victim].valid);
    job->from = job->victims[0] = victim;
    job->tag = group;
    job->dest = g->levelled ? level_dest : page_dest;
    job->ended = collected;
    job->patient = true;
    job->held_up = held_up;
    g->collecting = true;
    ftl_start(ftl, job);
}

static void collect(Ftl *ftl, uint32_t group)
{
    PageGroup *g = &((Page *)ftl->own)->groups[group];
    uint32_t n = ftl->groups[group].nr_blocks;
    uint32_t nr_free = ftl->groups[group].nr_free;
    bool urgent = nr_free <= kept_free(ftl, group);
    uint32_t victim, old, unworn = FTL_NONE, gain;

    if (g->collecting) {
        return;
    }
    old = urgent ? FTL_NONE : pick_old(ftl, group);
    if (!urgent && old == FTL_NONE &&
        (n - nr_free - g->held) * 100 < n * ftl->config.gc_begin) {
        return;
    }
    for (int i = 0; i < nr_streams(ftl); i++) {
        open_of(ftl, group, i); /* what is full may be a victim */
    }
    victim = old;
    if (victim == FTL_NONE) {
        victim = unworn = pick_unworn(ftl, group);
    }
    if (victim == FTL_NONE) {
        victim = pick_victim(ftl, group);
    }
    if (victim == FTL_NONE) {
        if (urgent) {
            ftl_hurry_jobs(ftl, group);
        }
        return;
    }
    gain = ftl->cap - ftl->blocks[victim].valid;
    if (old == FTL_NONE && unworn == FTL_NONE && !urgent &&
        gain < ftl->cap / ftl->config.gc_gain) {
        return;
    }
    g->levelled = unworn != FTL_NONE;
    g->refreshed |= old != FTL_NONE;
    ftl->stats.levelled += g->levelled;
    ftl->stats.refreshed += old != FTL_NONE;
    ftl->stats.urgent += urgent;
    empty(ftl, group, victim);
}

/* Of an idle drive, too, old data is moved. */
static void look_for_old(FlashTime *ft, void *arg)
{
    Ftl *ftl = arg;

    for (uint32_t i = 0; i < ftl->nr_groups; i++) {
        collect(ftl, i);
    }
    flash_time_at(ft, ft->now + ftl->config.refresh_ns / LOOKS + 1,
                  look_for_old, ftl);
}

/* Users' writes. */

/* GC needs room for a victim's blocks, and for what follows from them. */
uint64_t ftl_page_spare(const Ftl *ftl, uint32_t group)
{
    uint64_t have = room(ftl, group), need = 2ull * ftl->cap;

    return have > need ? have - need : 0;
}

/* What a handle's open block still takes is of no use to GC. */
static bool scarce(const Ftl *ftl, uint32_t group)
{
    if (ftl->config.handles) {
        return false;
    }
    return ftl->mapping->follow ? !ftl_page_spare(ftl, group) :
                                  !ftl->groups[group].nr_free;
}

/*
 * Will it be written again sooner than most?  The mean of all lives is the
 * number of blocks in use, so a block of average heat is hot as often as not.
 */
static bool is_hot(const Ftl *ftl, uint64_t lba)
{
    const Page *page = ftl->own;
    uint64_t life = page->writes + 1 - page->written[lba];

    return page->written[lba] && life < page->lives / LIVES;
}

/* They have a place; the versions that they replace have lived until now. */
static void note_writes(Ftl *ftl, uint64_t lba, uint32_t nlb, int stream)
{
    Page *page = ftl->own;

    if (!ftl->config.hot_writes || stream == STREAM_MAP) {
        return;
    }
    for (; nlb; nlb--, lba++) {
        page->writes++;
        if (page->written[lba]) {
            page->lives += page->writes - page->written[lba];
            page->lives -= page->lives / LIVES;
        }
        page->written[lba] = page->writes;
        ftl->stats.hot += stream == STREAM_HOT;
    }
}

static int stream_of(const Ftl *ftl, uint64_t lba)
{
    if (lba >= ftl->config.logical) {
        return STREAM_MAP;
    }
    if (ftl->config.handles) {
        return stream_of_handle(ftl->handle);
    }
    return ftl->config.hot_writes && is_hot(ftl, lba) ? STREAM_HOT :
                                                        STREAM_USER;
}

/* Blocks that the program unit still takes at which the erase block is. */
static uint32_t left_of_unit(const Ftl *ftl, uint32_t block)
{
    uint32_t unit = ftl->dev->unit_blocks;

    assert(ftl->cap % unit == 0);
    return unit - ftl_used(ftl, block) % unit;
}

static uint32_t group_place(Ftl *ftl, uint32_t group, int stream, uint32_t nlb)
{
    uint32_t *open = open_of(ftl, group, stream);
    uint32_t block = *open;

    if (block != FTL_NONE && left_of_unit(ftl, block) < nlb &&
        !scarce(ftl, group)) {
        flash_dev_push(ftl->dev, block);
        block = *open_of(ftl, group, stream);
    }
    if (block == FTL_NONE) {
        if (ftl->groups[group].nr_free > kept_free(ftl, group)) {
            block = *stream_open(ftl, group, stream);
            ((Page *)ftl->own)->groups[group].refreshed = false;
        }
        collect(ftl, group);
    }
    if (scarce(ftl, group)) {
        /* a victim may fit by now that did not */
        collect(ftl, group);
        return FTL_NONE;        /* GC needs what is left */
    }
    if (block != FTL_NONE && ftl_used(ftl, block) + nlb == ftl->cap) {
        *open = FTL_NONE;
    }
    return block;
}

/* All of them go into one program unit. */
static uint32_t place_blocks(Ftl *ftl, uint64_t lba, uint32_t nlb)
{
    int stream = stream_of(ftl, lba);
    Page *page = ftl->own;
    PageTurn *turn = &page->turns[stream == STREAM_HOT];

    assert(turn->group < ftl->nr_groups && lba < ftl->space);
    if (turn->at != FTL_NONE &&
        ftl_used(ftl, turn->at) % ftl->dev->unit_blocks == 0) {
        turn->group = (turn->group + 1) % ftl->nr_groups;   /* it was padded */
    }
    turn->at = FTL_NONE;
    for (uint32_t i = 0; i < ftl->nr_groups; i++) {
        uint32_t block = group_place(ftl, turn->group, stream, nlb);

        if (block == FTL_NONE || left_of_unit(ftl, block) == nlb) {
            turn->group = (turn->group + 1) % ftl->nr_groups;
        } else {
            turn->at = block;
        }
        if (block != FTL_NONE) {
            note_writes(ftl, lba, nlb, stream);
            return block;
        }
    }
    return FTL_NONE;
}

uint32_t ftl_page_place(Ftl *ftl, uint64_t lba)
{
    return place_blocks(ftl, lba, 1);
}

void ftl_page_near(Ftl *ftl, uint64_t lba, uint32_t further)
{
    Page *page = ftl->own;
    uint64_t place = ftl->map[lba];

    for (int i = 0; i < 2 && place != FTL_NOWHERE; i++) {
        page->turns[i] = (PageTurn) {
            .group = (place / ftl->cap + further) % ftl->nr_groups,
            .at = FTL_NONE,
        };
    }
}

static uint32_t page_open_of(const Ftl *ftl, uint32_t handle)
{
    return *slot_of(ftl, 0, stream_of_handle(handle));
}

/* The rest of its block stays empty until that is erased. */
static void page_renew(Ftl *ftl, uint32_t handle)
{
    PageGroup *g = ((Page *)ftl->own)->groups;
    uint32_t *open = open_of(ftl, 0, stream_of_handle(handle));
    uint32_t block = *open;

    if (block == FTL_NONE || !ftl_used(ftl, block)) {
        return;
    }
    *open = FTL_NONE;
    flash_dev_push(ftl->dev, block);
    if (ftl->blocks[block].state == FTL_OPEN) {
        assert(ftl_used(ftl, block) < ftl->cap);
        ftl->blocks[block].state = FTL_CLOSED;
        g->left += ftl->cap - ftl_used(ftl, block);
    }
    collect(ftl, 0);
}

/* What the drive knew of its writes was in memory. */
static void forget_lives(Ftl *ftl)
{
    Page *page = ftl->own;

    page->writes = 0;
    page->lives = ftl->config.logical * LIVES;
    for (uint64_t i = 0; ftl->config.hot_writes && i < ftl->config.logical;
         i++) {
        page->written[i] = 0;
    }
}

/* The stream that may go on in such a block. */
static int load_stream(const Ftl *ftl, const PageGroup *g, uint8_t role)
{
    if (role == ROLE_MAP) {
        return g->open[STREAM_MAP] == FTL_NONE ? STREAM_MAP : NO_STREAM;
    }
    if (g->open[STREAM_USER] == FTL_NONE) {
        return STREAM_USER;
    }
    if (ftl->config.hot_cold && g->open[STREAM_GC] == FTL_NONE) {
        return STREAM_GC;
    }
    if (ftl->config.hot_writes && g->open[STREAM_HOT] == FTL_NONE) {
        return STREAM_HOT;
    }
    return ftl->config.wear_spread && g->open[STREAM_WEAR] == FTL_NONE ?
           STREAM_WEAR : NO_STREAM;
}

/* A stream of the block's group goes on there, if one still has none. */
static void load_block(Ftl *ftl, uint32_t block)
{
    uint32_t group = block % ftl->nr_groups;
    PageGroup *g = &((Page *)ftl->own)->groups[group];
    int stream = load_stream(ftl, g, ftl->blocks[block].role);

    if (stream != NO_STREAM) {
        *slot_of(ftl, group, stream) = block;
    }
}

/* The stream takes the newer of its block and this one; what is left then. */
static uint32_t load_newer(Ftl *ftl, int stream, uint32_t block)
{
    uint32_t *slot = slot_of(ftl, 0, stream), had = *slot;

    if (had != FTL_NONE &&
        ftl->blocks[had].newest > ftl->blocks[block].newest) {
        return block;
    }
    *slot = block;
    return had;
}

/*
 * An update leaves a block behind that has room.  So a handle goes on in the
 * one that was written last.  If its data is kept apart, the next one is for
 * what is moved: the image does not tell the two from each other.
 */
static void load_block_of_handle(Ftl *ftl, uint32_t block)
{
    uint32_t handle = ftl_handle_of(ftl->blocks[block].role);
    int stream = handle == FTL_NONE ? STREAM_GC : stream_of_handle(handle);

    block = load_newer(ftl, stream, block);
    if (block != FTL_NONE && handle != FTL_NONE && ftl_is_apart(ftl, handle)) {
        load_newer(ftl, stream + 1, block);
    }
}

/* What the streams have is written on. */
static void load_open(Ftl *ftl, uint32_t group)
{
    PageGroup *g = &((Page *)ftl->own)->groups[group];

    for (int i = 0; i < nr_streams(ftl); i++) {
        uint32_t block = *slot_of(ftl, group, i);

        if (block != FTL_NONE) {
            assert(ftl->blocks[block].state == FTL_CLOSED);
            assert(g->left >= ftl->cap - ftl_used(ftl, block));
            ftl->blocks[block].state = FTL_OPEN;
            g->left -= ftl->cap - ftl_used(ftl, block);
        }
    }
}

/* Blocks that were being written go on; what there is more waits for GC. */
bool ftl_page_load(Ftl *ftl)
{
    Page *page = ftl->own;

    page->turns[0] = page->turns[1] = (PageTurn) { .at = FTL_NONE };
    for (uint32_t i = 0; i < ftl->nr_groups; i++) {
        page->groups[i] = (PageGroup) {
            .open = { FTL_NONE, FTL_NONE, FTL_NONE, FTL_NONE, FTL_NONE },
        };
    }
    for (uint32_t i = 0; i < 2 * ftl->config.handles; i++) {
        page->by_handle[i] = FTL_NONE;
    }
    forget_lives(ftl);
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        if (ftl->blocks[i].state == FTL_CLOSED && ftl_used(ftl, i) < ftl->cap) {
            page->groups[i % ftl->nr_groups].left += ftl->cap -
                                                     ftl_used(ftl, i);
            if (ftl->config.handles) {
                load_block_of_handle(ftl, i);
            } else {
                load_block(ftl, i);
            }
        }
    }
    for (uint32_t i = 0; i < ftl->nr_groups; i++) {
        load_open(ftl, i);
        collect(ftl, i);
    }
    flash_time_forget(&ftl->dev->time, look_for_old);
    if (ftl->config.refresh_ns) {
        look_for_old(&ftl->dev->time, ftl);
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
    .place_whole = place_blocks,
    .open_of = page_open_of,
    .renew = page_renew,
    .near = ftl_page_near,
    .map_bytes = page_map_bytes,
    .refreshes = true,
};
