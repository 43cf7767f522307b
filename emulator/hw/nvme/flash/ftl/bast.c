/*
 * BAST: each log block belongs to one piece.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A piece that cannot be written in place gets a log block, and is merged when
 * that is full.  When no more are left, the piece that got its log block first
 * is merged.  After Kim et al., A Space-Efficient Flash Translation Layer for
 * CompactFlash Systems, 2002.  Called by ftl.c and the core; the owner
 * serialises.
 */

#include <assert.h>

#include "hybrid.h"
#include "mappings.h"

typedef struct Bast {
    FtlHybrid hybrid;
    uint32_t nr;
    uint32_t *pieces;           /* that have a log block, the oldest first */
    uint32_t *logs;             /* by piece */
} Bast;

static void bast_ended(Ftl *ftl)
{
    (void)ftl;                  /* the write that waits comes again */
}

static char *bast_open(Ftl *ftl)
{
    char *why = ftl_hybrid_open(ftl, sizeof(Bast), 2 * ftl->nr_blocks);
    Bast *bast = ftl->own;

    if (!why) {
        bast->hybrid.ended = bast_ended;
        bast->pieces = ftl_hybrid_numbers(ftl);
        bast->logs = bast->pieces + ftl->nr_blocks;
    }
    return why;
}

static void merge(Ftl *ftl, uint32_t piece)
{
    Bast *bast = ftl->own;
    uint32_t n = 0;

    while (bast->pieces[n] != piece) {
        n++;
        assert(n < bast->nr);
    }
    for (bast->nr--; n < bast->nr; n++) {
        bast->pieces[n] = bast->pieces[n + 1];
    }
    ftl_hybrid_merge(ftl, piece, bast->logs[piece]);
    bast->logs[piece] = FTL_NONE;
}

static uint32_t bast_place(Ftl *ftl, uint64_t lba)
{
    Bast *bast = ftl->own;
    uint32_t piece = lba / ftl->cap, block;

    if (bast->hybrid.jobs) {
        return FTL_NONE;
    }
    block = ftl_hybrid_data(ftl, lba);
    if (block != FTL_NONE) {
        return block;
    }
    block = bast->logs[piece];
    if (block == FTL_NONE && bast->nr >= ftl->config.log_blocks) {
        merge(ftl, bast->pieces[0]);
        return FTL_NONE;
    }
    if (block == FTL_NONE) {
        block = bast->logs[piece] = ftl_hybrid_take(ftl);
        bast->pieces[bast->nr++] = piece;
        assert(bast->nr <= ftl->config.log_blocks);
    } else if (ftl_used(ftl, block) == ftl->cap) {
        merge(ftl, piece);
        return FTL_NONE;
    }
    return block;
}

static bool bast_load(Ftl *ftl)
{
    Bast *bast = ftl->own;

    bast->nr = ftl_hybrid_load(ftl, bast->pieces);
    for (uint32_t i = 0; i < bast->hybrid.pieces; i++) {
        bast->logs[i] = FTL_NONE;
    }
    for (uint32_t i = 0; i < bast->nr; i++) {
        uint32_t log = bast->pieces[i], piece = ftl_hybrid_piece(ftl, log);

        assert(piece < bast->hybrid.pieces);
        if (bast->logs[piece] != FTL_NONE || !ftl_hybrid_one_piece(ftl, log)) {
            return false;
        }
        bast->pieces[i] = piece;
        bast->logs[piece] = log;
    }
    return ftl_hybrid_sound(ftl, bast->nr);
}

const FtlMapping ftl_bast = {
    .name = "bast",
    .open = bast_open,
    .ignores = ftl_hybrid_ignores,
    .load = bast_load,
    .place = bast_place,
    .map_bytes = ftl_hybrid_map_bytes,
};
