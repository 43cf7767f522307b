/*
 * What the mappings of the FTL share: where the newest version of each logical
 * block is, erase blocks, and jobs, which move blocks and erase.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A mapping (struct FtlMapping, one file each) says where the next version of a
 * block goes and what is to be collected.  Whatever it says, a read finds the
 * newest version: the table of places is kept here, for all of them alike, and
 * what a mapping's drive would hold in memory is only told (map_bytes).
 *
 * A job moves logical blocks, waits until the newest version of all that its
 * victims hold is on flash, and then erases them.  So a flushed block is on
 * flash at any instant.  A patient job does not pad a unit for that: later
 * moves fill it, or ftl_hurry_jobs() pads it.  Moves go before the host's
 * writes when slots of the buffer are free.  Called by ftl.c and the mappings;
 * the owner serialises.
 */

#ifndef HW_NVME_FLASH_FTL_CORE_H
#define HW_NVME_FLASH_FTL_CORE_H

#include "config.h"
#include "../model/model.h"

#define FTL_NOWHERE UINT64_MAX      /* no place */
#define FTL_NONE    UINT32_MAX      /* no erase block */
#define FTL_ROLE    56              /* FtlOob.lba: the role's lowest bit */
#define FTL_FILLER  ((1ull << FTL_ROLE) - 1)    /* no logical block */
#define FTL_ROLES   2               /* that a mapping can tell apart */
#define FTL_HANDLE  48              /* ... its handle's, if there are any */
#define FTL_VERSIONS (UINT64_MAX / 2)   /* more than a drive can write */

/* What is stored beside a block; a version of 0 is none. */
typedef struct FtlOob {
    uint64_t lba;
    uint64_t version;
} FtlOob;

typedef enum FtlState {
    FTL_FREE,
    FTL_OPEN,                   /* the mapping writes to it */
    FTL_CLOSED,
    FTL_VICTIM,                 /* a job empties it, and will erase it */
} FtlState;

typedef struct FtlBlock {
    FtlState state;
    uint8_t role;               /* the mapping's; stored with what it holds */
    bool whole;                 /* found on flash full, and readable */
    uint32_t valid;             /* newest versions that it holds */
    uint64_t changed;           /* version when that changed last */
    uint64_t newest;            /* version that was found on flash; 0: none */
    uint32_t next;              /* of the free blocks */
} FtlBlock;

typedef struct FtlGroup {
    uint32_t first, last;       /* free blocks, the longest free first */
    uint32_t nr_free, nr_blocks;
} FtlGroup;

typedef struct FtlJob FtlJob;

/* Work on some erase blocks; the mapping fills in the first part. */
struct FtlJob {
    uint64_t *lbas;             /* to be moved, in this order; freed with it */
    uint32_t nr;
    uint32_t from;              /* ... if still there; FTL_NONE: wherever */
    uint32_t victims[2];        /* erased then; FTL_NONE: none */
    uint32_t tag;
    uint32_t (*dest)(Ftl *ftl, FtlJob *job);    /* with room for a block */
    bool in_place;              /* tag is the destination: never padded */
    bool patient;               /* waits for units that are not full */
    bool held;                  /* ... and waits: held_up() was called */
    void (*held_up)(Ftl *ftl, FtlJob *job);
    void (*ended)(Ftl *ftl, FtlJob *job);

    /* private to core.c */
    FtlJob *next;
    uint32_t last;              /* where the last one went */
    uint8_t *read;              /* which have been read */
    FtlEvent *moves;            /* by handle: what was moved; NULL: none are */
    FlashCmd *programs;         /* waits for what was moved; NULL: not yet */
    uint32_t asked, put;
    uint32_t waits;             /* for programs, or erases under way */
    enum { FTL_MOVING, FTL_WAITING, FTL_ERASING } step;
};

typedef struct FtlMapping {
    const char *name;
    uint64_t (*own_blocks)(const Ftl *ftl);     /* behind the host's; NULL: 0 */
    char *(*open)(Ftl *ftl);    /* what is wrong (to be freed), or NULL */
    /* What a block holds does not count at power on; NULL: all does. */
    bool (*ignores)(const FtlBlock *block);
    /* The core knows what is on flash; false: no drive leaves it like that. */
    bool (*load)(Ftl *ftl);
    /*
     * Is the part of the map that has this block in memory?  false: it comes,
     * or room for it; ask again.  NULL: all of the map is.
     */
    bool (*fetch)(Ftl *ftl, uint64_t lba, bool change);
    /* What collection has moved calls for another job, or NULL. */
    FtlJob *(*follow)(Ftl *ftl, const FtlJob *done);
    /* An erase block for the next version; FTL_NONE: wait for a job. */
    uint32_t (*place)(Ftl *ftl, uint64_t lba);
    /*
     * An erase block for the next versions of so many blocks, all in one
     * program unit, or FTL_NONE.  NULL: writes may be torn by a power cut.
     */
    uint32_t (*place_whole)(Ftl *ftl, uint64_t lba, uint32_t nlb);
    /*
     * The erase block that a handle writes to, or FTL_NONE; its next write is
     * not to go there.  NULL: the mapping has no handles.
     */
    uint32_t (*open_of)(const Ftl *ftl, uint32_t handle);
    void (*renew)(Ftl *ftl, uint32_t handle);
    /* It would be good to go on so many dies from where that block is; NULL. */
    void (*near)(Ftl *ftl, uint64_t lba, uint32_t further);
    uint64_t (*map_bytes)(const Ftl *ftl);
    bool refreshes;             /* it moves data when that gets old */
} FtlMapping;

struct Ftl {
    FlashDev *dev;
    FtlConfig config;
    const FtlMapping *mapping;
    void *own;                  /* the mapping's; one allocation */
    FtlStats stats;

    /* core.c; mappings read */
    uint32_t nr_blocks, nr_groups, cap;     /* cap: blocks of an erase block */
    uint64_t version;
    uint64_t space;             /* logical blocks, the mapping's own included */
    uint64_t *map;              /* logical block to place: block x cap + n */
    uint64_t *back;             /* place to logical block, or FTL_FILLER */
    uint64_t *trims;            /* version at the last trim: survives */
    FtlBlock *blocks;
    FtlGroup *groups;           /* block b is of group b % nr_groups */
    FtlJob *jobs;
    uint8_t *scratch;           /* one logical block */
    FtlHandle *handles;
    bool whole;                 /* some writes must not be torn by a cut */
    void (*kick)(Ftl *ftl);     /* ftl.c: something has moved on */

    /* ftl.c; mappings read */
    FlashCmd *head, **tail;     /* writes that wait */
    FlashCmd *readers;          /* reads that wait for a part of the map */
    uint32_t handle;            /* of the write that gets its place */
    bool pumping, again;
};

/* Life: all memory; what is on flash (false: no drive wrote that); no job. */
void ftl_core_init(Ftl *ftl);
bool ftl_core_load(Ftl *ftl);
void ftl_core_free(Ftl *ftl);

/*
 * Handles: what a handle's erase block has as its role, and the other way: the
 * handle, or FTL_NONE.  Is what was written by it not to be mixed with others'?
 */
static inline uint8_t ftl_role_of(uint32_t handle)
{
    return FTL_ROLES + handle;
}

static inline uint32_t ftl_handle_of(uint8_t role)
{
    return role < FTL_ROLES ? FTL_NONE : (uint32_t)role - FTL_ROLES;
}

static inline bool ftl_is_apart(const Ftl *ftl, uint32_t handle)
{
    return handle >= ftl->config.handles - ftl->config.apart;
}

/* The flash that these blocks take, in whole units. */
uint64_t ftl_units(const Ftl *ftl, uint64_t blocks);

/*
 * Take a free block of the group, if there is one, to write to it: the one that
 * has been free for longest, or that was erased least, or most often.
 */
uint32_t ftl_take(Ftl *ftl, uint32_t group, uint8_t role);
uint32_t ftl_take_by_wear(Ftl *ftl, uint32_t group, uint8_t role, bool most);

/* Blocks of an erase block that were written or taken by padding. */
uint32_t ftl_used(const Ftl *ftl, uint32_t block);

/* How often the erase block was erased. */
uint32_t ftl_erases(const Ftl *ftl, uint32_t block);

/*
 * Write the next version of a logical block; wait, if given, waits for its
 * program.  The same for what the drive moves: no flush needs it.  Drop all
 * versions of the block.
 */
void ftl_put(Ftl *ftl, uint32_t block, uint64_t lba, const uint8_t *data,
             FlashCmd *wait);
void ftl_put_own(Ftl *ftl, uint32_t block, uint64_t lba, const uint8_t *data);
void ftl_unmap(Ftl *ftl, uint64_t lba);

/* A job, zeroed; start it, and go on with all that there are. */
FtlJob *ftl_job(void);
void ftl_start(Ftl *ftl, FtlJob *job);
void ftl_run_jobs(Ftl *ftl);

/* If all jobs of the tag are held up, pad their units, so that they go on. */
void ftl_hurry_jobs(Ftl *ftl, uint32_t tag);

#endif
