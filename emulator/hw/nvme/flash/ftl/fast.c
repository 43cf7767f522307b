/*
 * FAST: log blocks that all pieces share.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One log block takes writes in order, from the first block of a piece on; the
 * others take all else, log_ways of them in turn.  When no more are left, the
 * oldest is emptied: each piece that has something in it is merged.  After Lee
 * et al., A Log Buffer-Based Flash Translation Layer Using Fully-Associative
 * Sector Translation, 2007.  Called by ftl.c and the core; the owner
 * serialises.
 */

#include <assert.h>

#include "hybrid.h"
#include "mappings.h"

typedef struct Fast {
    FtlHybrid hybrid;
    uint32_t in_order;          /* the log block of writes in order */
    uint32_t piece;             /* ... and what it is of */
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

/* The log that was written in order is merged, by itself or with its piece. */
static uint32_t take_in_order(Fast *fast)
{
    uint32_t log = fast->in_order;

    assert(log != FTL_NONE);
    fast->in_order = FTL_NONE;
    return log;
}

static void empty_oldest(Ftl *ftl)
{
    Fast *fast = ftl->own;
    uint32_t piece;

    assert(fast->nr);
    fast->victim = fast->logs[0];
    piece = ftl_hybrid_piece(ftl, fast->victim);
    if (piece < fast->hybrid.pieces) {
        bool ours = fast->in_order != FTL_NONE && fast->piece == piece;

        ftl_hybrid_merge(ftl, piece, ours ? take_in_order(fast) : FTL_NONE);
        return;
    }
    ftl_hybrid_erase(ftl, fast->victim);
    fast->victim = FTL_NONE;
    fast->nr--;
    for (uint32_t i = 0; i < fast->nr; i++) {
        fast->logs[i] = fast->logs[i + 1];
    }
}

static uint32_t place_in_order(Ftl *ftl, uint64_t lba)
{
    Fast *fast = ftl->own;

    if (fast->in_order != FTL_NONE &&
        (lba % ftl->cap == 0 ||
         ftl_used(ftl, fast->in_order) == ftl->cap)) {
        ftl_hybrid_merge(ftl, fast->piece, take_in_order(fast));
        return FTL_NONE;
    }
    if (lba % ftl->cap == 0) {
        fast->in_order = ftl_hybrid_take(ftl);
        fast->piece = lba / ftl->cap;
    }
    assert(fast->in_order != FTL_NONE && fast->piece == lba / ftl->cap);
    return fast->in_order;
}

static uint32_t place_anywhere(Ftl *ftl)
{
    Fast *fast = ftl->own;
    uint32_t block = ftl_hybrid_way(ftl);

    if (block != FTL_NONE) {
        return block;
    }
    if (fast->nr >= ftl->config.log_blocks) {
        empty_oldest(ftl);
        return FTL_NONE;
    }
    assert(fast->nr < ftl->config.log_blocks);
    return fast->logs[fast->nr++] = ftl_hybrid_new_way(ftl);
}

static uint32_t fast_place(Ftl *ftl, uint64_t lba)
{
    Fast *fast = ftl->own;
    uint32_t block;

    if (fast->hybrid.jobs) {
        return FTL_NONE;
    }
    block = ftl_hybrid_data(ftl, lba);
    if (block != FTL_NONE) {
        return block;
    }
    if (lba % ftl->cap == 0 ||
        (fast->in_order != FTL_NONE &&
         (ftl_used(ftl, fast->in_order) == ftl->cap ||
          (fast->piece == lba / ftl->cap &&
           ftl_used(ftl, fast->in_order) == lba % ftl->cap)))) {
        return place_in_order(ftl, lba);
    }
    return place_anywhere(ftl);
}

static bool fast_load(Ftl *ftl)
{
    Fast *fast = ftl->own;

    fast->in_order = fast->victim = FTL_NONE;
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
