/*
 * The flash device: its state, and what all rooms of the model need of it:
 * geometry, the count of slots in use, the last steps of a command.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Private to the rooms of the model and its tests, but for the first part of
 * FlashDev.  Pure C; the owner serialises.
 */

#ifndef HW_NVME_FLASH_DEV_H
#define HW_NVME_FLASH_DEV_H

#include "media.h"
#include "command.h"

typedef struct FlashUnit FlashUnit;
typedef struct FlashJob FlashJob;
typedef struct FlashCache FlashCache;

typedef struct FlashZone {
    uint64_t accepted;          /* blocks buffered or programmed */
    uint64_t programmed;        /* ... whose program has begun, at least */
    FlashUnit *fill;            /* being filled */
    FlashUnit *units;           /* issued, not yet ended */
    bool open;
    bool finished;
    uint64_t born;              /* the first of its data is as old as that */
    bool pinned;                /* its unit is filled, and never padded */
} FlashZone;

struct FlashDev {
    FlashTime time;
    FlashMedia media;
    FlashTuning tuning;
    FlashStats stats;
    FlashTrouble trouble;
    bool through;               /* no write cache: as if each write were FUA */
    bool plp;                   /* fixed: the buffer survives a power cut */
    uint32_t window_blocks;     /* of each random write window */
    uint64_t window_bytes;      /* of the buffer, set aside for all of them */
    uint32_t nr_caches;         /* of zones, in place of the buffer; 0: none */
    void (*done)(FlashDev *dev, FlashCmd *cmd);
    void (*lost_power)(FlashDev *dev);
    void (*worn_out)(FlashDev *dev, uint32_t zone); /* its erases have ended */
    void *owner;

    /* events of a drive's own FTL, if it has one (flash/ftl/ftl.c) */
    void (*serve)(FlashDev *dev, FlashCmd *cmd);    /* the host's command */
    void (*space)(FlashDev *dev);                   /* slots are free again */
    void (*padded)(FlashDev *dev, uint32_t zone);   /* it ends later now */
    void *ftl;

    /* private: events, each set by the room above that wants it */
    void (*room)(FlashDev *dev);                    /* slots are free again */
    void (*cut)(FlashDev *dev, uint64_t when);      /* the power is to go */
    void (*hold)(FlashDev *dev, FlashUnit *u);      /* in place of its die */

    /* private */
    bool powered;
    bool instant;               /* as tuned, no read and no write takes time */
    uint32_t unit_blocks;       /* logical blocks of a program unit */
    uint32_t row_blocks;        /* ... of a page on all planes */
    uint32_t page_blocks;       /* ... of what one cell read reads of that */
    uint32_t units_per_block;
    uint64_t erase_blocks;      /* of a zone */
    uint64_t service_free;
    uint64_t link_free[FLASH_WAYS];
    uint64_t cut_at;            /* the power goes; UINT64_MAX: it does not */
    uint64_t seq;
    FlashZone *zones;
    FlashCmd *cmds;
    FlashCmd *wait_head, **wait_tail;       /* buffer.c: for slots */
    FlashCmd *flush_head, **flush_tail;     /* unit.c: for programs */
    FlashUnit *fill_head, *fill_tail;       /* by age */
    FlashUnit *issued_head, *issued_tail;   /* by seq */
    FlashUnit *spare;           /* free units */
    FlashJob *jobs;             /* zone.c */
    FlashCache *caches;         /* cache.c */
    uint32_t cache_zone;        /* ... the zone of the last write */
    uint64_t cache_turn;        /* ... programs so far: the next one's die */
};

/* Zeroed; never NULL. */
void *flash_alloc(size_t n, size_t size);

static inline FlashDev *flash_time_dev(FlashTime *ft)
{
    return (FlashDev *)((char *)ft - offsetof(FlashDev, time));
}

/* The die of a zone's n-th program unit. */
uint32_t flash_dev_die(const FlashDev *dev, uint32_t zone, uint64_t unit);
uint64_t flash_unit_bytes(const FlashDev *dev);
uint64_t flash_zone_units(const FlashDev *dev, uint64_t blocks);

/* How many of units [from, to) of a zone sit on the die at that place? */
uint64_t flash_units_at(const FlashDev *dev, uint64_t from, uint64_t to,
                        uint32_t place);

/* Where the zone's data ends, that in its window included. */
uint64_t flash_zone_end(const FlashDev *dev, uint32_t zone);

/*
 * Slots of the buffer: count more bytes as in use, blocks that still fit, and
 * the mean of the bytes in use.
 */
void flash_buffer_add(FlashDev *dev, int64_t bytes);
uint64_t flash_buffer_room(const FlashDev *dev);
uint64_t flash_buffer_mean(const FlashDev *dev);

/* Does the write end with its program? */
bool flash_write_through(const FlashDev *dev, const FlashCmd *cmd);

/*
 * So many bytes go over the host's link, from that instant on and behind what
 * goes the same way; when they have arrived.
 */
uint64_t flash_link_take(FlashDev *dev, FlashWay way, uint64_t from,
                         uint64_t bytes);

/* What comes into a zone finds it erased, and is what a cut finds there. */
void flash_dev_begin(FlashDev *dev, uint32_t zone, uint64_t block,
                     uint32_t nlb);

/*
 * A command begins; one of the things it waits for has come, and with the last
 * its answer; its answer, after the firmware's time; it is done (arg: the
 * command).
 */
void flash_cmd_link(FlashDev *dev, FlashCmd *cmd);
void flash_cmd_step(FlashDev *dev, FlashCmd *cmd);
void flash_cmd_answer(FlashDev *dev, FlashCmd *cmd);
void flash_cmd_done(FlashTime *ft, void *arg);

#endif
