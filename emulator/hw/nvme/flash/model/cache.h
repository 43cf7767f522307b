/*
 * Write caches of zones, as FEMU has them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * In place of a buffer that all zones share: each of a few caches holds what
 * one zone was written last.  A write to a zone without a cache takes one, a
 * free one or the fullest.  What a cache holds is programmed when another zone
 * takes it, or when a write finds it full, and that write waits for all of it.
 * Every other write ends after a time for each of its pages, whatever the dies
 * have to do.  Programs go to the dies in turn, whatever their zone.  A reset
 * erases all that the zone has, or, if erases take no time, does not wait for
 * the dies at all.  Operations are booked (timing.h): no program is dropped.
 *
 * Beside the buffer (buffer.h), above units.  Called by the rooms of the model;
 * the owner serialises.
 */

#ifndef HW_NVME_FLASH_CACHE_H
#define HW_NVME_FLASH_CACHE_H

#include "dev.h"

/* A write or append is ready; there are caches. */
void flash_cache_write(FlashDev *dev, FlashCmd *cmd);

/* What is cached of the zone, or of all of them, goes to its dies. */
void flash_cache_push(FlashDev *dev, uint32_t zone);
void flash_cache_push_all(FlashDev *dev);

/*
 * The zone is reset.  If erases take time, its cache is empty.  If not, it
 * keeps what it holds, and programs it in its turn.
 */
void flash_cache_reset(FlashDev *dev, uint32_t zone);

/* The power went, or comes for the first time: all are empty. */
void flash_cache_init(FlashDev *dev);
void flash_cache_free(FlashDev *dev);

#endif
