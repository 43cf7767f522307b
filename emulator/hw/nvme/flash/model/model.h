/*
 * The model of the flash device: what its owner calls.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Sits between the NVMe front end (flash-io.c, personalities) and the clockwork
 * (timing.c) with the media (media.c).  Pure C, so that the closed
 * forms of the timing model are tested without a guest.  The owner serialises,
 * sets FlashTime.now through flash_time_run() before each call, and runs the
 * clockwork when flash_time_next() says so.
 *
 * A zone is striped over its dies in program units: what one die programs in
 * one go, planes x pages x page size.  Data is acknowledged when it is in the
 * buffer and becomes durable when its program ends, or with capacitors (plp) at
 * once.
 *
 * A zone may have a random write window (ZRWA): slots of the buffer, set aside,
 * that a power loss spares.  Blocks in it may be written again.  A commit
 * slides the window on, and what it leaves behind is programmed.
 */

#ifndef HW_NVME_FLASH_MODEL_H
#define HW_NVME_FLASH_MODEL_H

#include "cell.h"
#include "dev.h"
#include "read.h"

/* Open the media and start the device.  Returns NULL or what is wrong. */
char *flash_dev_open(FlashDev *dev, const char *path, const FlashShape *shape);

/* An orderly shutdown: what is buffered is on the media when this returns. */
void flash_dev_sync(FlashDev *dev);
void flash_dev_close(FlashDev *dev);

/* The tuning changed. */
void flash_dev_retune(FlashDev *dev);

/*
 * Submit a command; done() is called when its time has come, which may be
 * before this returns.  cmd->data and cmd->oob of a write pass to the device.
 */
void flash_dev_submit(FlashDev *dev, FlashCmd *cmd);

/*
 * A drive's own FTL, whose zones are its blocks.  Its commands cost no time of
 * the controller, are not counted as the host's, and set cmd->then.  Its
 * writes go to the buffer at once.  room says how many blocks fit; fits, if so
 * many do (or the buffer is empty, but smaller).  put adds a
 * block behind what the zone holds.  If wait is given, it waits for the
 * block's program; own: the drive has moved the block, which takes a slot only
 * when its unit is issued.  push programs what the zone holds.  If a unit is
 * programmed before it is full, it takes all of its flash, and
 * FlashDev.padded() is called.
 */
void flash_dev_submit_internal(FlashDev *dev, FlashCmd *cmd);
uint64_t flash_dev_room(FlashDev *dev);
bool flash_dev_fits(FlashDev *dev, uint32_t nlb);
void flash_dev_put(FlashDev *dev, uint32_t zone, const uint8_t *data,
                   const uint8_t *oob, bool own, FlashCmd *wait);
void flash_dev_push(FlashDev *dev, uint32_t zone);

/* Never pad the zone's units: the caller promises to fill them. */
void flash_dev_pin(FlashDev *dev, uint32_t zone, bool pinned);

/*
 * A command that waits for programs: hold begins it, wait adds the program of
 * a block (true: its unit is not issued yet), and release lets it end.
 */
void flash_dev_hold(FlashDev *dev, FlashCmd *cmd);
bool flash_dev_wait(FlashDev *dev, uint32_t zone, uint64_t block,
                    FlashCmd *cmd);
void flash_dev_release(FlashDev *dev, FlashCmd *cmd);

/* A unit that it waits for and that is not issued yet: its zone, or -1. */
int64_t flash_dev_awaits(const FlashDev *dev, const FlashCmd *cmd);

/* After a partly stored unit, skip the rest of it: it is never written. */
void flash_dev_align(FlashDev *dev, uint32_t zone);

static inline bool flash_dev_filling(const FlashDev *dev, uint32_t zone)
{
    return dev->zones[zone].fill;
}

/* Is a part of the zone in the buffer, or on its way to a die? */
static inline bool flash_dev_in_flight(const FlashDev *dev, uint32_t zone)
{
    return dev->zones[zone].fill || dev->zones[zone].units;
}

static inline uint64_t flash_dev_used(const FlashDev *dev, uint32_t zone)
{
    return dev->zones[zone].accepted;
}

/* Nothing takes time and nothing waits: data may go straight to the media. */
bool flash_dev_instant(const FlashDev *dev, uint32_t zone);

/*
 * A write of an instant device: make room on the media behind what the zone
 * holds, then fill it; undo: it could not be filled.
 */
void flash_dev_write_begin(FlashDev *dev, uint32_t zone, uint32_t nlb);
void flash_dev_write_end(FlashDev *dev, FlashCmdKind kind, uint32_t zone,
                         uint32_t nlb);
void flash_dev_write_undo(FlashDev *dev, uint32_t zone, uint32_t nlb);

/* The zone's window ends; what it holds is committed. */
void flash_dev_end_window(FlashDev *dev, uint32_t zone);

/*
 * Cut the power at that instant (at the next flash_time_run(), if past), unless
 * it goes before.  too: because another drive has lost it, so what this one
 * does at that instant comes first, in whatever order the two are run.
 */
void flash_dev_cut(FlashDev *dev, uint64_t when);
void flash_dev_cut_too(FlashDev *dev, uint64_t when);
bool flash_dev_awaits_cut(const FlashDev *dev);
void flash_dev_forget_cuts(FlashDev *dev);

/* off: as by a cut, of which nobody is told. */
void flash_dev_power_off(FlashDev *dev);
void flash_dev_power_on(FlashDev *dev);

#endif
