/*
 * FAST: log blocks that all pieces share.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One log block takes writes in order, from the first block of a piece on, or
 * seq_logs of them, a piece each; the others take all else, log_ways of them in
 * turn.  When no more are left, the oldest is emptied: each piece that has
 * something in it is merged.  After Lee et al., A Log Buffer-Based Flash
 * Translation Layer Using Fully-Associative Sector Translation, 2007.  Called by
 * ftl.c and the core; the owner serialises.
 */

#include <assert.h>

#include "hybrid.h"
#include "mappings.h"

typedef struct Fast {
    FtlHybrid hybrid;
    uint32_t victim;            /* log block that is being emptied */
    uint32_t nr;
    uint32_t *logs;             /* the others, the oldest first */
} Fast;

static void empty_oldest(Ftl *ftl);

static void fast_ended(Ftl *ftl)
{
    Fast *fast = ftl->own;

    if (fast->victim != FTL_NONE && !fast->hybrid.jobs) {
        empty_oldest(ftl);
    }
}

static char *fast_open(Ftl *ftl)
{
    char *why = ftl_hybrid_open(ftl, sizeof(Fast), ftl->nr_blocks);
    Fast *fast = ftl->own;

    if (!why) {
        fast->hybrid.ended = fast_ended;
        fast->logs = ftl_hybrid_numbers(ftl);
    }
    return why;
}

static uint32_t most_in_order(const Ftl *ftl)
{
    return ftl->config.seq_logs ? ftl->config.seq_logs : 1;
}

static uint32_t most_logs(const Ftl *ftl)
{
    return ftl->config.log_blocks - ftl->config.seq_logs;
}

static void empty_oldest(Ftl *ftl)
{
    Fast *fast = ftl->own;
    uint32_t piece;

    assert(fast->nr);
    fast->victim = fast->logs[0];
    piece = ftl_hybrid_piece(ftl, fast->victim);
    if (piece < fast->hybrid.pieces) {
        ftl_hybrid_merge_piece(ftl, piece);
        return;
    }
    ftl_hybrid_erase(ftl, fast->victim);
    ftl_hybrid_remove(fast->logs, &fast->nr, fast->victim);
    fast->victim = FTL_NONE;
}

/* The piece of a log in order that is full; pieces: there is none. */
static uint32_t full_in_order(const Ftl *ftl)
{
    const FtlHybrid *h = ftl->own;

    for (uint32_t i = 0; i < h->nr_in_order; i++) {
        if (ftl_used(ftl, h->in_order[i]) == ftl->cap) {
            return h->piece_of[h->in_order[i]];
        }
    }
    return h->pieces;
}

/* At the start of a piece; first the log that makes way is merged. */
static uint32_t begin_in_order(Ftl *ftl, uint64_t lba)
{
    Fast *fast = ftl->own;
    FtlHybrid *h = &fast->hybrid;
    uint32_t piece = lba / ftl->cap;

    assert(lba % ftl->cap == 0);
    if (ftl_hybrid_in_order(ftl, piece) != FTL_NONE) {
        ftl_hybrid_merge_piece(ftl, piece);
        return FTL_NONE;
    }
    if (fast->nr > most_logs(ftl)) {
        empty_oldest(ftl);      /* found at power on: all count as these */
        return FTL_NONE;
    }
    if (h->nr_in_order >= most_in_order(ftl)) {
        ftl_hybrid_merge_piece(ftl, h->piece_of[h->in_order[0]]);
        return FTL_NONE;
    }
    return ftl_hybrid_new_in_order(ftl, piece);
}

static uint32_t place_anywhere(Ftl *ftl)
{
    Fast *fast = ftl->own;
    uint32_t block = ftl_hybrid_way(ftl);

    if (block != FTL_NONE) {
        return block;
    }
    if (fast->nr >= most_logs(ftl)) {
        empty_oldest(ftl);
        return FTL_NONE;
    }
    assert(fast->nr < ftl->config.log_blocks);
    return fast->logs[fast->nr++] = ftl_hybrid_new_way(ftl);
}

static uint32_t fast_place(Ftl *ftl, uint64_t lba)
{
    Fast *fast = ftl->own;
    uint32_t block, log, full;

    if (fast->hybrid.jobs) {
        return FTL_NONE;
    }
    block = ftl_hybrid_data(ftl, lba);
    if (block != FTL_NONE) {
        return block;
    }
    full = full_in_order(ftl);
    if (full < fast->hybrid.pieces) {
        ftl_hybrid_merge_piece(ftl, full);
        return FTL_NONE;
    }
    log = ftl_hybrid_in_order(ftl, lba / ftl->cap);
    if (log != FTL_NONE && ftl_used(ftl, log) == lba % ftl->cap) {
        return log;
    }
    return lba % ftl->cap ? place_anywhere(ftl) : begin_in_order(ftl, lba);
}

static bool fast_load(Ftl *ftl)
{
    Fast *fast = ftl->own;

    fast->victim = FTL_NONE;
    fast->nr = ftl_hybrid_load(ftl, fast->logs);
    return ftl_hybrid_sound(ftl, fast->nr);
}

const FtlMapping ftl_fast = {
    .name = "fast",
    .open = fast_open,
    .ignores = ftl_hybrid_ignores,
    .load = fast_load,
    .place = fast_place,
    .map_bytes = ftl_hybrid_map_bytes,
};
