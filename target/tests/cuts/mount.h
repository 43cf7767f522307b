/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module's own mount of a drive: its recovery, and the checkpoint that follows. Compiled for the
 * host, from the module's sources.
 */
#ifndef MTFTL_TESTS_MOUNT_H
#define MTFTL_TESTS_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "drive.h"

enum block_state {
	BLOCK_READABLE,
	BLOCK_UNMAPPED,		/* zeroes */
	BLOCK_LOST,
};

/*
 * Mount; the power goes in the middle of the write with that number, 0: it does not. @pages says how
 * much of that write is left. False: the power went. *error: of the mount.
 */
bool mount_drive(struct drive *drive, bool tight, unsigned int cut_at, unsigned int pages, int *error);
/* Writes of the last mount. */
unsigned int mount_writes(void);
uint64_t mount_blocks(void);
/* Where a block is. */
enum block_state mount_find(uint64_t lba, uint32_t *zone, uint32_t *block);

#endif
