/*
 * What mappings with log blocks share.  See hybrid.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "hybrid.h"

#define MERGING 2               /* a log in order, and what a merge writes */
#define ASIDE 4                 /* beside data and logs: twice that */

enum { ROLE_WRITTEN, ROLE_MERGED };

static FtlHybrid *hybrid_of(const Ftl *ftl)
{
    return ftl->own;
}

char *ftl_hybrid_open(Ftl *ftl, size_t size, uint32_t numbers)
{
    uint64_t pieces = (ftl->config.logical + ftl->cap - 1) / ftl->cap;
    uint64_t need = pieces + ftl->config.log_blocks + ASIDE;
    FtlHybrid *h;
    char *why = NULL;

    if (!ftl->config.log_ways ||
        ftl->config.log_ways > ftl->config.log_blocks) {
        return asprintf(&why, "%u log blocks in turn, of %u in all: that must "
                        "be at least 1, and no more than there are",
                        ftl->config.log_ways, ftl->config.log_blocks) < 0 ?
               NULL : why;
    }
    if (ftl->config.seq_logs &&
        ftl->config.log_ways + (uint64_t)ftl->config.seq_logs >
        ftl->config.log_blocks) {
        return asprintf(&why, "%u log blocks for writes in order and %u in "
                        "turn, of %u in all: expected no more than there are",
                        ftl->config.seq_logs, ftl->config.log_ways,
                        ftl->config.log_blocks) < 0 ? NULL : why;
    }
    if (need > ftl->nr_blocks) {
        return asprintf(&why, "%llu data blocks, %u log blocks and %d more do "
                        "not fit into %u blocks of flash",
                        (unsigned long long)pieces, ftl->config.log_blocks,
                        ASIDE, ftl->nr_blocks) < 0 ? NULL : why;
    }
    h = ftl->own = flash_alloc(1, size + (pieces + ftl->config.log_ways +
                                          2ull * ftl->nr_blocks + numbers) *
                                         sizeof(*h->data));
    h->pieces = pieces;
    h->data = (uint32_t *)((char *)h + size);
    h->ways = h->data + pieces;
    h->in_order = h->ways + ftl->config.log_ways;
    h->piece_of = h->in_order + ftl->nr_blocks;
    return NULL;
}

uint32_t *ftl_hybrid_numbers(const Ftl *ftl)
{
    return hybrid_of(ftl)->piece_of + ftl->nr_blocks;
}

uint32_t ftl_hybrid_take(Ftl *ftl)
{
    FtlHybrid *h = hybrid_of(ftl);

    for (uint32_t i = 0; i < ftl->nr_groups; i++) {
        uint32_t block = ftl_take(ftl, h->turn, ROLE_WRITTEN);

        h->turn = (h->turn + 1) % ftl->nr_groups;
        if (block != FTL_NONE) {
            return block;
        }
    }
    assert(!"blocks are set aside for all that is wanted");
    return FTL_NONE;
}

uint32_t ftl_hybrid_data(Ftl *ftl, uint64_t lba)
{
    uint32_t *data = &hybrid_of(ftl)->data[lba / ftl->cap];

    assert(lba / ftl->cap < hybrid_of(ftl)->pieces);
    if (*data == FTL_NONE && lba % ftl->cap == 0) {
        *data = ftl_hybrid_take(ftl);
    }
    return *data != FTL_NONE && ftl_used(ftl, *data) == lba % ftl->cap ?
           *data : FTL_NONE;
}

/* The turn of the next way comes with a program unit that is full. */
static uint32_t next_way(Ftl *ftl, uint32_t block)
{
    FtlHybrid *h = hybrid_of(ftl);

    assert(ftl_used(ftl, block) < ftl->cap);
    h->at = block;
    if ((ftl_used(ftl, block) + 1) % ftl->dev->unit_blocks == 0) {
        h->way = (h->way + 1) % ftl->config.log_ways;
        h->at = FTL_NONE;
    }
    return block;
}

uint32_t ftl_hybrid_way(Ftl *ftl)
{
    FtlHybrid *h = hybrid_of(ftl);
    uint32_t block;

    assert(h->way < ftl->config.log_ways);
    if (h->at != FTL_NONE && h->at == h->ways[h->way] &&
        ftl_used(ftl, h->at) % ftl->dev->unit_blocks == 0) {
        h->way = (h->way + 1) % ftl->config.log_ways;   /* it was padded */
    }
    h->at = FTL_NONE;
    block = h->ways[h->way];
    return block != FTL_NONE && ftl_used(ftl, block) < ftl->cap ?
           next_way(ftl, block) : FTL_NONE;
}

bool ftl_hybrid_is_way(const Ftl *ftl, uint32_t block)
{
    const FtlHybrid *h = hybrid_of(ftl);

    for (uint32_t i = 0; i < ftl->config.log_ways; i++) {
        if (h->ways[i] == block && ftl_used(ftl, block) < ftl->cap) {
            return true;
        }
    }
    return false;
}

uint32_t ftl_hybrid_new_way(Ftl *ftl)
{
    FtlHybrid *h = hybrid_of(ftl);
    uint32_t block = h->ways[h->way] = ftl_hybrid_take(ftl);

    return next_way(ftl, block);
}

uint32_t ftl_hybrid_piece(const Ftl *ftl, uint32_t block)
{
    for (uint32_t i = 0; i < ftl_used(ftl, block); i++) {
        uint64_t lba = ftl->back[(uint64_t)block * ftl->cap + i];

        if (lba != FTL_FILLER) {
            return lba / ftl->cap;
        }
    }
    return hybrid_of(ftl)->pieces;
}

bool ftl_hybrid_one_piece(const Ftl *ftl, uint32_t block)
{
    uint32_t piece = ftl_hybrid_piece(ftl, block);

    for (uint32_t i = 0; i < ftl_used(ftl, block); i++) {
        uint64_t lba = ftl->back[(uint64_t)block * ftl->cap + i];

        if (lba != FTL_FILLER && lba / ftl->cap != piece) {
            return false;
        }
    }
    return true;
}

static uint64_t lba_of(const Ftl *ftl, uint32_t piece, uint32_t n)
{
    uint64_t lba = (uint64_t)piece * ftl->cap + n;

    assert(piece < hybrid_of(ftl)->pieces && n < ftl->cap);
    return lba < ftl->config.logical ? lba : FTL_FILLER;
}

static bool is_mapped(const Ftl *ftl, uint64_t lba)
{
    return lba != FTL_FILLER && ftl->map[lba] != FTL_NOWHERE;
}

/* Does the block hold all that the piece has of its first blocks, in place? */
static bool in_order(const Ftl *ftl, uint32_t piece, uint32_t block)
{
    for (uint32_t i = 0; i < ftl_used(ftl, block); i++) {
        uint64_t lba = lba_of(ftl, piece, i);

        if (is_mapped(ftl, lba) &&
            ftl->map[lba] != (uint64_t)block * ftl->cap + i) {
            return false;
        }
    }
    return true;
}

/* Jobs. */

static void job_ended(Ftl *ftl, FtlJob *job)
{
    FtlHybrid *h = hybrid_of(ftl);

    (void)job;
    assert(h->jobs);
    h->jobs--;
    h->ended(ftl);
}

static uint32_t job_dest(Ftl *ftl, FtlJob *job)
{
    assert(ftl_used(ftl, job->tag) < ftl->cap);
    return job->tag;
}

void ftl_hybrid_erase(Ftl *ftl, uint32_t block)
{
    FtlHybrid *h = hybrid_of(ftl);
    FtlJob *job = ftl_job();

    assert(!ftl->blocks[block].valid);
    for (uint32_t i = 0; i < ftl->config.log_ways; i++) {
        if (h->ways[i] == block) {
            h->ways[i] = FTL_NONE;
        }
    }
    job->victims[0] = block;
    job->ended = job_ended;
    h->jobs++;
    ftl_start(ftl, job);
}

void ftl_hybrid_merge(Ftl *ftl, uint32_t piece, uint32_t log)
{
    FtlHybrid *h = hybrid_of(ftl);
    FtlJob *job = ftl_job();
    uint32_t n = 0, end = ftl->cap;

    assert(piece < h->pieces && (log == FTL_NONE || log != h->data[piece]));
    job->victims[0] = h->data[piece];
    job->dest = job_dest;
    job->ended = job_ended;
    job->in_place = true;
    if (log != FTL_NONE && in_order(ftl, piece, log)) {
        job->tag = log;
        n = ftl_used(ftl, log);
        while (end > n && !is_mapped(ftl, lba_of(ftl, piece, end - 1))) {
            end--;              /* what was never written may be later */
        }
        ftl->stats.merges_switch += n == end;
        ftl->stats.merges_partial += n < end;
    } else {
        job->tag = ftl_hybrid_take(ftl);
        job->victims[1] = log;
        ftl->blocks[job->tag].role = ROLE_MERGED;
        ftl->stats.merges_full++;
    }
    h->data[piece] = job->tag;
    job->lbas = flash_alloc(end - n, sizeof(*job->lbas));
    for (; n < end; n++) {
        job->lbas[job->nr++] = lba_of(ftl, piece, n);
    }
    h->jobs++;
    ftl_start(ftl, job);
}

/* Logs in order. */

uint32_t ftl_hybrid_in_order(const Ftl *ftl, uint32_t piece)
{
    const FtlHybrid *h = hybrid_of(ftl);

    assert(piece < h->pieces);
    for (uint32_t i = 0; i < h->nr_in_order; i++) {
        if (h->piece_of[h->in_order[i]] == piece) {
            return h->in_order[i];
        }
    }
    return FTL_NONE;
}

uint32_t ftl_hybrid_new_in_order(Ftl *ftl, uint32_t piece)
{
    FtlHybrid *h = hybrid_of(ftl);
    uint32_t log;

    assert(ftl_hybrid_in_order(ftl, piece) == FTL_NONE);
    log = h->in_order[h->nr_in_order++] = ftl_hybrid_take(ftl);
    h->piece_of[log] = piece;
    return log;
}

void ftl_hybrid_remove(uint32_t *list, uint32_t *nr, uint32_t block)
{
    uint32_t n = 0;

    while (list[n] != block) {
        n++;
        assert(n < *nr);
    }
    for (--*nr; n < *nr; n++) {
        list[n] = list[n + 1];
    }
}

void ftl_hybrid_merge_piece(Ftl *ftl, uint32_t piece)
{
    FtlHybrid *h = hybrid_of(ftl);
    uint32_t log = ftl_hybrid_in_order(ftl, piece);

    if (log != FTL_NONE) {
        ftl_hybrid_remove(h->in_order, &h->nr_in_order, log);
    }
    ftl_hybrid_merge(ftl, piece, log);
}

/* Power on. */

bool ftl_hybrid_ignores(const FtlBlock *block)
{
    return block->role == ROLE_MERGED && !block->whole;
}

/* The piece whose data block it can be; pieces: none. */
static uint32_t piece_in_place(const Ftl *ftl, uint32_t block)
{
    uint32_t piece = ftl_hybrid_piece(ftl, block);

    for (uint32_t i = 0; i < ftl_used(ftl, block); i++) {
        uint64_t lba = ftl->back[(uint64_t)block * ftl->cap + i];

        if (lba != FTL_FILLER && lba != lba_of(ftl, piece, i)) {
            return hybrid_of(ftl)->pieces;
        }
    }
    return piece;
}

uint32_t ftl_hybrid_load(Ftl *ftl, uint32_t *logs)
{
    FtlHybrid *h = hybrid_of(ftl);
    uint32_t n = 0;

    h->jobs = h->way = h->nr_in_order = 0;
    h->at = FTL_NONE;
    for (uint32_t i = 0; i < ftl->config.log_ways; i++) {
        h->ways[i] = FTL_NONE;
    }
    for (uint32_t i = 0; i < h->pieces; i++) {
        h->data[i] = FTL_NONE;
    }
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        FtlBlock *b = &ftl->blocks[i];
        uint32_t piece;

        if (b->state == FTL_FREE) {
            continue;
        }
        b->state = ftl_used(ftl, i) < ftl->cap ? FTL_OPEN : FTL_CLOSED;
        piece = b->valid ? piece_in_place(ftl, i) : h->pieces;
        if (piece < h->pieces &&
            (h->data[piece] == FTL_NONE ||
             b->valid > ftl->blocks[h->data[piece]].valid)) {
            h->data[piece] = i;
        }
    }
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        FtlBlock *b = &ftl->blocks[i];

        if (b->state == FTL_FREE) {
            continue;
        }
        if (!b->valid) {
            ftl_hybrid_erase(ftl, i);
        } else if (h->data[ftl_hybrid_piece(ftl, i)] != i) {
            logs[n++] = i;
            assert(n <= ftl->nr_blocks);
        }
    }
    return n;
}

bool ftl_hybrid_sound(const Ftl *ftl, uint32_t logs)
{
    return (uint64_t)logs + hybrid_of(ftl)->pieces + MERGING <= ftl->nr_blocks;
}

uint64_t ftl_hybrid_map_bytes(const Ftl *ftl)
{
    return 4ull * hybrid_of(ftl)->pieces +
           8ull * ftl->config.log_blocks * ftl->cap;
}
