/*
 * Program units: what is buffered, on its way to the dies.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A unit is filled behind what its zone holds, is issued to its die, full or
 * not, and gives its slots back when the program ends, never earlier; then it
 * calls FlashDev.room().  Commands can wait for one (FUA), or for all that are
 * issued (flush).  Called by the rooms of the model; the owner serialises.
 */

#ifndef HW_NVME_FLASH_UNIT_H
#define HW_NVME_FLASH_UNIT_H

#include "flash-dev.h"

typedef struct FlashWaiter FlashWaiter;

/* One program unit's worth of buffered data. */
struct FlashUnit {
    FlashOp op;
    uint32_t zone;
    uint64_t block;             /* first block, from the zone's start */
    uint32_t nlb;               /* blocks filled */
    uint64_t seq;
    bool dropped;               /* its zone was reset */
    bool kept;                  /* the image has its data already */
    bool begun;
    FlashWaiter *waiters;
    FlashUnit *next, *prev;     /* fill list or issued list */
    FlashUnit *zone_next;
    uint8_t *data;
    uint8_t *oob;
};

/* The zone's next unit; n more blocks are in it, and it leaves when full. */
FlashUnit *flash_unit_new(FlashDev *dev, uint32_t zone);
void flash_unit_grow(FlashDev *dev, FlashUnit *u, uint32_t n);

/* Up to n blocks more that fit into the buffer and the zone's unit. */
uint64_t flash_unit_room(const FlashDev *dev, uint32_t zone, uint64_t n);

/* Send it to its die, full or not; all of them. */
void flash_unit_issue(FlashDev *dev, FlashUnit *u);
void flash_units_issue(FlashDev *dev);

/* The command waits for the unit; for all units that there are. */
void flash_unit_wait(FlashUnit *u, FlashCmd *cmd);
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
