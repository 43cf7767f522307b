/*
 * How long the cell array takes: by the page's place in its word line, and by
 * the wear and the age of its zone.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The pages of an erase block belong to word lines in turn, page_types each.
 * All blocks of a zone count as worn as they are on average, and all data in it
 * as old as the first.  Pure C; the owner serialises.
 */

#ifndef HW_NVME_FLASH_CELL_H
#define HW_NVME_FLASH_CELL_H

#include "dev.h"

/*
 * The owner: "READ/PROGRAM" of each page of a word line, in nanoseconds, with
 * colons between them.  Empty: all pages take read_ns and program_ns.  What is
 * wrong (to be freed), or NULL.
 */
char *flash_cell_parse(FlashTuning *t, const char *text);

/* The owner: the mean of all pages and the longest, whatever is delayed. */
typedef struct FlashCellTimes {
    uint64_t read_ns, read_max_ns;          /* of a page */
    uint64_t program_ns, program_max_ns;    /* of a program unit */
} FlashCellTimes;

FlashCellTimes flash_cell_times(const FlashDev *dev);

/* Erases that a zone's erase blocks have had; are they all that there may be? */
uint64_t flash_cell_erases(const FlashDev *dev, uint32_t zone);
bool flash_cell_worn_out(const FlashDev *dev, uint32_t zone);

/* How often a read of the zone is done again before it succeeds. */
uint32_t flash_cell_retries(const FlashDev *dev, uint32_t zone);

/*
 * The row of pages that holds the block of a zone, retries included; a zone's
 * program unit; the n-th of its blocks that a die erases.
 */
uint64_t flash_cell_read_ns(const FlashDev *dev, uint32_t zone, uint64_t block);
uint64_t flash_cell_program_ns(const FlashDev *dev, uint32_t zone,
                               uint64_t unit);
uint64_t flash_cell_erase_ns(const FlashDev *dev, uint32_t zone, uint64_t n);

#endif
