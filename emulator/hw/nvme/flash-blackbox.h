/*
 * The black box: an ordinary drive, whose FTL is inside.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Only flash.c knows of it.
 */

#ifndef HW_NVME_FLASH_BLACKBOX_H
#define HW_NVME_FLASH_BLACKBOX_H

#include "flash-personality.h"

extern const NvmeFlashPersonality nvme_flash_blackbox;

#endif
