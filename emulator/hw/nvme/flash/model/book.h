/*
 * When a bus is busy: its time, taken in advance.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * For drives whose operations are booked as they come (timing.h).  Pure C;
 * called by timing.c, whose owner serialises.
 */

#ifndef HW_NVME_FLASH_BOOK_H
#define HW_NVME_FLASH_BOOK_H

#include <stddef.h>
#include <stdint.h>

typedef struct FlashSpan {
    uint64_t from, to;
} FlashSpan;

/* Busy spans, by time; none overlaps another one. */
typedef struct FlashBook {
    FlashSpan *spans;
    size_t nr, cap;
} FlashBook;

/*
 * Take ns of the bus from that instant on, in the gaps that are left, as many
 * as it needs; when the last of it ends.  What ended before now is forgotten.
 */
uint64_t flash_book_take(FlashBook *book, uint64_t now, uint64_t from,
                         uint64_t ns);
void flash_book_free(FlashBook *book);

#endif
