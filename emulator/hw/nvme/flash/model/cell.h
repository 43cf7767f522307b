/*
 * How long the cell array takes: by the page's place in its word line.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The pages of an erase block belong to word lines in turn, page_types each.
 * Pure C; the owner serialises.
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

/* The row of pages that holds the block of a zone; a zone's program unit. */
uint64_t flash_cell_read_ns(const FlashDev *dev, uint64_t block);
uint64_t flash_cell_program_ns(const FlashDev *dev, uint64_t unit);

#endif
