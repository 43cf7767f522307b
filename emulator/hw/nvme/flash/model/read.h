/*
 * Reads: the cell reads of a command, and what blocks hold.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Pure C; the owner serialises.
 */

#ifndef HW_NVME_FLASH_READ_H
#define HW_NVME_FLASH_READ_H

#include "dev.h"

/* model.c: a read is ready. */
void flash_read(FlashDev *dev, FlashCmd *cmd);

/*
 * The owner: what the blocks hold now.  peek: through a pointer into the
 * media, when they are all there; else NULL, and copy gives them, from buffer
 * or media.  bad: one of them cannot be read.
 */
const uint8_t *flash_dev_peek(const FlashDev *dev, uint32_t zone,
                              uint64_t block, uint32_t nlb);
void flash_dev_copy(const FlashDev *dev, uint32_t zone, uint64_t block,
                    uint32_t nlb, uint8_t *data, uint8_t *oob);
/* The block's metadata, buffered or on flash; NULL: it cannot be read. */
const uint8_t *flash_dev_oob(const FlashDev *dev, uint32_t zone,
                             uint64_t block);

bool flash_dev_bad(const FlashDev *dev, uint32_t zone, uint64_t block,
                   uint32_t nlb);

#endif
