/*
 * What the FTL inside a drive and its owner exchange: configuration, counters.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The owner fills in the one and reads the other.
 */

#ifndef HW_NVME_FLASH_FTL_CONFIG_H
#define HW_NVME_FLASH_FTL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Ftl Ftl;

#define FTL_OOB     16          /* bytes beside each logical block */
#define FTL_TRIM    8           /* bytes of each that survive a power loss */
#define FTL_HANDLES 128u        /* at most */

/* A drive that moved younger data would hardly do anything else. */
#define FTL_LEAST_REFRESH 1000000000ull

typedef enum FtlEventKind {
    FTL_MOVED,                  /* the handle's blocks, to another erase block */
    FTL_PADDED,                 /* the erase block that it writes is full now */
} FtlEventKind;

/* What happened to the data of a handle without its host. */
typedef struct FtlEvent {
    FtlEventKind kind;
    uint32_t handle;
    uint32_t nlb;               /* moved: so many */
    uint64_t lba;               /* ... the first of these */
} FtlEvent;

/* All are fixed while the drive runs. */
typedef struct FtlConfig {
    char *mapping;              /* its name */
    uint64_t logical;           /* blocks that the host sees */
    uint32_t gc_begin;          /* percent of blocks in use: GC begins */
    uint32_t gc_urgent;         /* ... and writes wait for it */
    uint32_t gc_gain;           /* until then a victim gives back 1/gain */
    bool cost_benefit;          /* choose by age too, not the emptiest */
    bool hot_cold;              /* what GC moves has blocks of its own */
    bool hot_writes;            /* ... and what is soon written again, too */
    uint32_t wear_spread;       /* erases between blocks, at most; 0: any */
    uint64_t refresh_ns;        /* data that old is moved; 0: none is */
    bool at_once;               /* moves are charged at once, as FEMU does */
    uint32_t log_blocks;        /* of a hybrid mapping */
    uint32_t log_ways;          /* ... of these, written in turn */
    uint32_t seq_logs;          /* ... for writes in order; 0: the mapping's */
    uint32_t map_pages;         /* of a map on flash: in memory */
    /*
     * Writes name one of so many handles, each with erase blocks of its own; 0:
     * there are none.  Of the last so many, collection too keeps the blocks
     * apart.
     */
    uint32_t handles, apart;
    void (*event)(void *owner, const FtlEvent *event);      /* or NULL */
    void *owner;
} FtlConfig;

/* What became of a handle's writes. */
typedef struct FtlHandle {
    uint64_t host;              /* blocks written by the host */
    uint64_t moved;             /* ... and again by collection */
} FtlHandle;

typedef struct FtlStats {
    uint64_t host;              /* blocks written for the host */
    uint64_t moved;             /* ... by GC and merges */
    uint64_t filler;            /* ... to fill up what a merge leaves */
    uint64_t trimmed;
    uint64_t victims;           /* erase blocks that GC or a merge emptied */
    uint64_t urgent;            /* ... while writes waited for it */
    uint64_t levelled;          /* ... because they were worn least */
    uint64_t refreshed;         /* ... because their data was old */
    uint64_t hot;               /* of host: to blocks of their own */
    uint64_t map_reads, map_writes;     /* pages of a map on flash */
    uint64_t free_blocks;       /* now */
    uint64_t merges_switch, merges_partial, merges_full;
} FtlStats;

/* The numbers of FtlStats that only grow, by their names; ends with NULL. */
typedef struct FtlCounter {
    const char *name;
    size_t offset;              /* of a 64-bit number in FtlStats */
} FtlCounter;

extern const FtlCounter ftl_counters[];

static inline uint64_t ftl_count(const FtlStats *stats, const FtlCounter *c)
{
    return *(const uint64_t *)((const char *)stats + c->offset);
}

#endif
