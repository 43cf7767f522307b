/*
 * Program units: what is buffered, on its way to the dies.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A unit is filled behind what its zone holds, and is issued to its die, full
 * or not.  When its program ends, and never earlier, it gives its slots back
 * and calls FlashDev.room().  In a drive with an FTL a unit is programmed
 * once, so a unit that is issued before it is full takes all of its flash.
 * Blocks that such a drive moves by itself take slots only when their unit is
 * issued, and no flush needs them.  Commands can wait for one unit (FUA), or
 * for all that are issued (flush).  If zones have caches, an issued unit waits
 * there (FlashDev.hold()) until the cache sends it to a die.  Called by the
 * rooms of the model; the owner serialises.
 */

#ifndef HW_NVME_FLASH_UNIT_H
#define HW_NVME_FLASH_UNIT_H

#include "dev.h"

typedef struct FlashWaiter FlashWaiter;

/* One program unit's worth of buffered data. */
struct FlashUnit {
    FlashOp op;
    uint32_t zone;
    uint64_t block;             /* first block, from the zone's start */
    uint32_t nlb;               /* blocks, padding included */
    uint32_t filled;            /* of these, data */
    uint32_t slots;             /* of the buffer, that it has */
    bool own;                   /* all that it holds was moved by the drive */
    uint64_t seq;
    bool dropped;               /* its zone was reset */
    bool kept;                  /* the image has its data already */
    bool begun;
    bool held;                  /* in a zone's cache, that a reset empties */
    FlashWaiter *waiters;
    FlashUnit *next, *prev;     /* fill list or issued list */
    FlashUnit *zone_next;
    FlashUnit *cache_next;      /* of a zone's cache */
    uint8_t *data;
    uint8_t *oob;
};

/* The zone's next unit; n more blocks are in it, and it leaves when full. */
FlashUnit *flash_unit_new(FlashDev *dev, uint32_t zone);
void flash_unit_grow(FlashDev *dev, FlashUnit *u, uint32_t n);

/*
 * With capacitors: what the next n blocks hold, which are in the unit's memory,
 * is in the image before they count.
 */
void flash_unit_keep(FlashDev *dev, FlashUnit *u, uint32_t n);

/* The unit holds more than blocks that the drive moved: it takes slots. */
void flash_unit_take(FlashDev *dev, FlashUnit *u);

/* Up to n blocks more that fit into the buffer and the zone's unit. */
uint64_t flash_unit_room(const FlashDev *dev, uint32_t zone, uint64_t n);

/* Send it to its die, full or not. */
void flash_unit_issue(FlashDev *dev, FlashUnit *u);

/* If units that are not full hold all of the buffer, issue one of them. */
void flash_units_make_room(FlashDev *dev);

/* The command waits for the unit; does it; for all that a host wants on flash. */
void flash_unit_wait(FlashUnit *u, FlashCmd *cmd);
bool flash_unit_awaited(const FlashUnit *u, const FlashCmd *cmd);
void flash_units_flush(FlashDev *dev, FlashCmd *cmd);

/* The unit that holds the block, or NULL. */
const FlashUnit *flash_unit_of(const FlashDev *dev, uint32_t zone,
                               uint64_t block);

/* The zone is reset: nothing of it stays in the buffer or queued. */
void flash_units_drop(FlashDev *dev, uint32_t zone);

/* The power went: all are gone, and what they held is counted as lost. */
void flash_units_lose(FlashDev *dev);

/* An orderly shutdown: what they hold is on the media. */
void flash_units_sync(FlashDev *dev);

void flash_units_init(FlashDev *dev);
void flash_units_free(FlashDev *dev);

#endif
