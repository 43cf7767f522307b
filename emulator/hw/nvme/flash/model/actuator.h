/*
 * The queue of a disk's one actuator, in place of the queues of dies.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One operation is at work at a time.  The next one is that whose transfer can
 * begin first, as in a drive that orders its queue by the position of its head
 * (NCQ).  If reads go first (FlashTime.read_first), others wait as long as
 * there are any.  The oldest operation is passed for pass_ns at most, from the
 * instant on at which it is the oldest; then it is next.  Erases take their
 * cell time, without the head.
 *
 * Pure C.  model.c starts it, timing.c calls it through FlashTime.take; the
 * owner serialises.
 */

#ifndef HW_NVME_FLASH_ACTUATOR_H
#define HW_NVME_FLASH_ACTUATOR_H

#include "disk.h"
#include "timing.h"

/* All operations are for the disk from here on; it stays the caller's. */
void flash_actuator_start(FlashTime *ft, FlashDisk *disk);

#endif
