/*
 * Erases that the power may interrupt.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The host sees a zone empty from its reset on.  The flash does not know that
 * before the erases have ended: until then the image keeps what the zone held,
 * and which of its erase blocks were begun with (their blocks are bad).  When
 * the power goes meanwhile, or the process dies and another one opens the
 * image, the zone is empty, or as it was, or it ends before the first block
 * whose erase had begun; and what remains of begun blocks reads as an error, as
 * zeroes or as ever, program unit by program unit.  A generator decides, which
 * the instant of the reset seeds.
 *
 * Pure C, above media.h; the owner serialises.
 */

#ifndef HW_NVME_FLASH_ERASE_H
#define HW_NVME_FLASH_ERASE_H

#include "media.h"

/* The zone is reset at that instant; its erases are still to come. */
void flash_erase_begin(FlashMedia *m, uint32_t zone, uint64_t now);

/*
 * The erase of the zone's n-th block begins on the die that has the program
 * units place, place + zone_dies, ...
 */
void flash_erase_block(FlashMedia *m, uint32_t zone, uint32_t place,
                       uint64_t n);

/*
 * All erases of the zone have ended, if any went on; its memory goes back to
 * the host.  Comes before anything new is put into the zone.
 */
void flash_erase_end(FlashMedia *m, uint32_t zone);

/* The power went. */
void flash_erase_cut(FlashMedia *m, uint32_t zone);

#endif
