/*
 * The write buffer: back-pressure, and random write windows.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Writes wait in the order in which they come, until all of them is in units
 * (unit.h), which takes free slots; what must come behind them waits with
 * them.  Windows (ZRWA) are slots of their own: their blocks lie in the image
 * from the start, so that what was acknowledged is there after a cut, also
 * while it is programmed.  Called by the rooms of the model; the owner
 * serialises.
 */

#ifndef HW_NVME_FLASH_BUFFER_H
#define HW_NVME_FLASH_BUFFER_H

#include "dev.h"

/* A write, append or commit of a window is ready. */
void flash_buffer_write(FlashDev *dev, FlashCmd *cmd);

/*
 * What all kinds of buffers do with a write: put up to n more blocks of it into
 * the zone's unit; how many there was room for.
 */
uint32_t flash_buffer_put(FlashDev *dev, FlashCmd *cmd, uint64_t n);

/*
 * cmd->admit() is called when all that came before is in units; false: not all
 * of it fits yet.
 */
void flash_buffer_queue(FlashDev *dev, FlashCmd *cmd);

/* Let in what fits: there may be more room. */
void flash_buffer_pump(FlashDev *dev);

/* Does anything wait that is the zone's? */
bool flash_buffer_waits(const FlashDev *dev, uint32_t zone);

/* The zone is reset: what waits is overtaken. */
void flash_buffer_overtake(FlashDev *dev, uint32_t zone);

/* The zone's window ends; what it holds is committed. */
void flash_window_end(FlashDev *dev, uint32_t zone);

/* The power went, or comes for the first time: nothing waits. */
void flash_buffer_init(FlashDev *dev);

#endif
