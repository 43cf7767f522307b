/*
 * LAST: log blocks by locality.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Some of the log blocks (seq_logs, or else a fifth) take writes in order, each
 * those of one piece.
 * The others take all else: hot blocks, which were in them already, apart from
 * cold ones, so that whole log blocks go stale and cost no merge.  Cold ones go
 * to log_ways of them in turn.  The one with the least valid blocks is emptied.
 * After Lee et al., LAST: Locality-Aware Sector Translation for NAND Flash
 * Memory-Based Storage Systems, 2008.  Called by ftl.c and the core; the
 * owner serialises.
 */

#include <assert.h>

#include "hybrid.h"
#include "mappings.h"

typedef struct Last {
    FtlHybrid hybrid;
    uint32_t hot;               /* log that hot blocks go to, or FTL_NONE */
    uint32_t victim;            /* log that is being emptied */
    uint32_t nr;
    uint32_t *logs;             /* for writes in any order */
    uint32_t *is_log;           /* by block: one of logs */
} Last;

static void empty_victim(Ftl *ftl);

static void last_ended(Ftl *ftl)
{
    Last *last = ftl->own;

    if (last->victim != FTL_NONE && !last->hybrid.jobs) {
        empty_victim(ftl);
    }
}

static char *last_open(Ftl *ftl)
{
    char *why = ftl_hybrid_open(ftl, sizeof(Last), 2 * ftl->nr_blocks);
    Last *last = ftl->own;

    if (!why) {
        last->hybrid.ended = last_ended;
        last->logs = ftl_hybrid_numbers(ftl);
        last->is_log = last->logs + ftl->nr_blocks;
    }
    return why;
}

static uint32_t most_in_order(const Ftl *ftl)
{
    uint32_t n = ftl->config.seq_logs ? ftl->config.seq_logs :
                                        ftl->config.log_blocks / 5;

    return n ? n : 1;
}

static uint32_t most_logs(const Ftl *ftl)
{
    uint32_t n = ftl->config.log_blocks;

    return n > most_in_order(ftl) ? n - most_in_order(ftl) : 1;
}

static void empty_victim(Ftl *ftl)
{
    Last *last = ftl->own;
    uint32_t piece = ftl_hybrid_piece(ftl, last->victim);

    assert(last->is_log[last->victim]);
    if (piece < last->hybrid.pieces) {
        ftl_hybrid_merge_piece(ftl, piece);
        return;
    }
    if (last->hot == last->victim) {
        last->hot = FTL_NONE;
    }
    ftl_hybrid_remove(last->logs, &last->nr, last->victim);
    last->is_log[last->victim] = false;
    ftl_hybrid_erase(ftl, last->victim);
    last->victim = FTL_NONE;
}

static bool is_open(const Ftl *ftl, uint32_t log)
{
    const Last *last = ftl->own;

    return (log == last->hot && ftl_used(ftl, log) < ftl->cap) ||
           ftl_hybrid_is_way(ftl, log);
}

/* One that is being written has little in it, but comes last. */
static void empty_least(Ftl *ftl)
{
    Last *last = ftl->own;

    assert(last->nr);
    last->victim = FTL_NONE;
    for (uint32_t i = 0; i < last->nr; i++) {
        uint32_t log = last->logs[i];

        if (last->victim == FTL_NONE ||
            (is_open(ftl, log) == is_open(ftl, last->victim) ?
             ftl->blocks[log].valid < ftl->blocks[last->victim].valid :
             is_open(ftl, last->victim))) {
            last->victim = log;
        }
    }
    empty_victim(ftl);
}

static uint32_t place_in_order(Ftl *ftl, uint64_t lba)
{
    Last *last = ftl->own;
    FtlHybrid *h = &last->hybrid;
    uint32_t piece = lba / ftl->cap, log = ftl_hybrid_in_order(ftl, piece);

    if (log != FTL_NONE && ftl_used(ftl, log) == lba % ftl->cap) {
        return log;
    }
    if (log != FTL_NONE) {
        ftl_hybrid_merge_piece(ftl, piece);
        return FTL_NONE;
    }
    if (last->nr > most_logs(ftl)) {
        empty_least(ftl);       /* found at power on: all count as these */
        return FTL_NONE;
    }
    if (h->nr_in_order >= most_in_order(ftl)) {
        ftl_hybrid_merge_piece(ftl, h->piece_of[h->in_order[0]]);
        return FTL_NONE;
    }
    log = ftl_hybrid_new_in_order(ftl, piece);
    assert(h->nr_in_order <= most_in_order(ftl) && !last->is_log[log]);
    return log;
}

static uint32_t place_anywhere(Ftl *ftl, uint64_t lba)
{
    Last *last = ftl->own;
    uint64_t place = ftl->map[lba];
    bool hot = place != FTL_NOWHERE && last->is_log[place / ftl->cap];
    uint32_t log = hot ? last->hot : ftl_hybrid_way(ftl);

    if (log != FTL_NONE && ftl_used(ftl, log) < ftl->cap) {
        return log;
    }
    if (last->nr >= most_logs(ftl)) {
        empty_least(ftl);
        return FTL_NONE;
    }
    if (hot) {
        log = last->hot = ftl_hybrid_take(ftl);
    } else {
        log = ftl_hybrid_new_way(ftl);
    }
    assert(last->nr < most_logs(ftl) && !last->is_log[log]);
    last->logs[last->nr++] = log;
    last->is_log[log] = true;
    return log;
}

static uint32_t last_place(Ftl *ftl, uint64_t lba)
{
    Last *last = ftl->own;
    uint32_t block, log;

    if (last->hybrid.jobs) {
        return FTL_NONE;
    }
    block = ftl_hybrid_data(ftl, lba);
    if (block != FTL_NONE) {
        return block;
    }
    log = ftl_hybrid_in_order(ftl, lba / ftl->cap);
    if (lba % ftl->cap == 0 ||
        (log != FTL_NONE && ftl_used(ftl, log) == lba % ftl->cap)) {
        return place_in_order(ftl, lba);
    }
    return place_anywhere(ftl, lba);
}

static bool last_load(Ftl *ftl)
{
    Last *last = ftl->own;

    last->hot = last->victim = FTL_NONE;
    last->nr = ftl_hybrid_load(ftl, last->logs);
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        last->is_log[i] = false;
    }
    for (uint32_t i = 0; i < last->nr; i++) {
        last->is_log[last->logs[i]] = true;
    }
    return ftl_hybrid_sound(ftl, last->nr);
}

const FtlMapping ftl_last = {
    .name = "last",
    .open = last_open,
    .ignores = ftl_hybrid_ignores,
    .load = last_load,
    .place = last_place,
    .map_bytes = ftl_hybrid_map_bytes,
};
