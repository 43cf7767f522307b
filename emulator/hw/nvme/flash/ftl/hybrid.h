/*
 * What mappings with log blocks share: a block map, and merges.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The logical blocks are cut into pieces as large as an erase block.  A
 * piece has a data block, which holds each of its blocks at its place, and what
 * cannot be written there goes to log blocks.  A merge makes one data block of
 * what a piece has: of a log block that holds its first blocks in order (a
 * switch, when that is full, else a partial merge), or a new one (a full
 * merge).  Writes wait while it goes on.
 *
 * A new data block counts at power on only when it is whole: so an interrupted
 * merge leaves nothing but a block to be erased.  Called by the mappings, whose
 * memory (Ftl.own) begins with the structure; the owner serialises.
 */

#ifndef HW_NVME_FLASH_FTL_HYBRID_H
#define HW_NVME_FLASH_FTL_HYBRID_H

#include "core.h"

typedef struct FtlHybrid {
    uint32_t pieces;
    uint32_t *data;             /* by piece: its data block, or FTL_NONE */
    uint32_t *ways;             /* logs for any block, written in turn */
    uint32_t way;               /* ... whose turn it is */
    uint32_t at;                /* ... that has begun a unit, or FTL_NONE */
    uint32_t turn;              /* the group that gives the next block */
    uint32_t nr_in_order;
    uint32_t *in_order;         /* logs of a piece each, the oldest first */
    uint32_t *piece_of;         /* by block: the piece, of these */
    uint32_t jobs;              /* under way */
    void (*ended)(Ftl *ftl);    /* one has ended */
} FtlHybrid;

/*
 * Memory for the mapping: its structure, data[], and so many numbers more;
 * what is wrong (to be freed), or NULL.
 */
char *ftl_hybrid_open(Ftl *ftl, size_t size, uint32_t numbers);

/* Numbers behind data[]. */
uint32_t *ftl_hybrid_numbers(const Ftl *ftl);

/*
 * At power on: data blocks are found, what is empty is erased, and the numbers
 * of the other blocks, which are logs, are stored; how many.
 */
uint32_t ftl_hybrid_load(Ftl *ftl, uint32_t *logs);

/* FtlMapping.ignores: a merge that was cut short has left its sources. */
bool ftl_hybrid_ignores(const FtlBlock *block);

/*
 * With this number of logs, can each piece get a data block, and merges too?
 */
bool ftl_hybrid_sound(const Ftl *ftl, uint32_t logs);

/* The piece's data block, if the block comes next there, or FTL_NONE. */
uint32_t ftl_hybrid_data(Ftl *ftl, uint64_t lba);

/* A free block, to write to it. */
uint32_t ftl_hybrid_take(Ftl *ftl);

/*
 * Merge a piece; log: a block that holds nothing else, which is erased or
 * becomes the data block; FTL_NONE: there is none.
 */
void ftl_hybrid_merge(Ftl *ftl, uint32_t piece, uint32_t log);

/*
 * Logs that are written in order, from the first block of their piece on: the
 * piece's, or FTL_NONE; a new one; merge the piece, with its log if it has one.
 */
uint32_t ftl_hybrid_in_order(const Ftl *ftl, uint32_t piece);
uint32_t ftl_hybrid_new_in_order(Ftl *ftl, uint32_t piece);
void ftl_hybrid_merge_piece(Ftl *ftl, uint32_t piece);

/* The block leaves a list of so many, in which it is. */
void ftl_hybrid_remove(uint32_t *list, uint32_t *nr, uint32_t block);

/*
 * Logs that take any block are log_ways at a time, each for a program unit.
 * The one whose turn it is, if it has room, or FTL_NONE; then another may take
 * its place, which is returned.
 */
uint32_t ftl_hybrid_way(Ftl *ftl);
uint32_t ftl_hybrid_new_way(Ftl *ftl);
bool ftl_hybrid_is_way(const Ftl *ftl, uint32_t block);

/* A log block without valid blocks is erased. */
void ftl_hybrid_erase(Ftl *ftl, uint32_t block);

/* The piece of the first valid block; pieces: there is none. */
uint32_t ftl_hybrid_piece(const Ftl *ftl, uint32_t block);

/* All of its valid blocks are of one piece. */
bool ftl_hybrid_one_piece(const Ftl *ftl, uint32_t block);

/* Memory of a block map, and of a page map of the log blocks. */
uint64_t ftl_hybrid_map_bytes(const Ftl *ftl);

#endif
