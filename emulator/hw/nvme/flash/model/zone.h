/*
 * What is done to whole zones: resets and finishes, as erases and padding, die
 * by die.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Called by model.c; the owner serialises.
 */

#ifndef HW_NVME_FLASH_ZONE_H
#define HW_NVME_FLASH_ZONE_H

#include "dev.h"

/* Such a command is ready. */
void flash_zone_reset(FlashDev *dev, FlashCmd *cmd);
void flash_zone_finish(FlashDev *dev, FlashCmd *cmd);

/* Would a reset of all zones have to do anything for it? */
bool flash_zone_touched(const FlashDev *dev, uint32_t zone);

/* The power went: no erase, no padding goes on. */
void flash_zone_forget(FlashDev *dev);

#endif
