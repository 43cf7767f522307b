/*
 * The FTL inside a drive: what the drive's personality calls.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * It makes an ordinary drive, whose blocks are written in any order, of the
 * flash model, whose zones are the FTL's erase blocks (a block on each of
 * zone_dies dies).  The host's commands come to it from the model, with logical
 * blocks in place of a zone's; what it does for them and for itself are
 * commands to the model.  Pure C; the owner serialises, as for the model.
 *
 * The number of a logical block and that of its version lie beside it on flash,
 * and the map is rebuilt from these at power on.  What was trimmed is held in
 * memory that survives a loss of power, as behind capacitors.
 */

#ifndef HW_NVME_FLASH_FTL_H
#define HW_NVME_FLASH_FTL_H

#include "config.h"
#include "../model/model.h"

/*
 * What the host sees of so many blocks of flash, when the rest is that many
 * percent of it.
 */
uint64_t ftl_logical(uint64_t blocks, uint32_t spare);

/*
 * Between flash_dev_open() and flash_dev_close(); free it after the latter.
 * Returns what is wrong with the configuration or the media (to be freed), or
 * NULL.
 */
char *ftl_open(Ftl **ftl, FlashDev *dev, const FtlConfig *config);
void ftl_free(Ftl *ftl);

/*
 * Is a write (FlashCmd.whole) that fits into a program unit wholly on flash or
 * not at all when the power goes?  Others must not be asked for.
 */
bool ftl_writes_whole(const char *mapping);

/* The power is back: the map is what is on flash; false: no FTL wrote that. */
bool ftl_load(Ftl *ftl);

/*
 * What the logical blocks hold now; bad: one of them cannot be read.  A block
 * that was never written, or trimmed, holds zeroes.
 */
void ftl_copy(const Ftl *ftl, uint64_t lba, uint32_t nlb, uint8_t *data);
bool ftl_bad(const Ftl *ftl, uint64_t lba, uint32_t nlb);

/* What it tells: counters, its mapping, bytes of memory that this takes. */
const FtlStats *ftl_stats(const Ftl *ftl);
const char *ftl_name(const Ftl *ftl);
uint64_t ftl_map_bytes(const Ftl *ftl);

/*
 * Handles: what became of a handle's writes; blocks that the erase block still
 * takes to which it writes; its next write goes to another one.
 */
const FtlHandle *ftl_handle(const Ftl *ftl, uint32_t handle);
uint64_t ftl_handle_left(const Ftl *ftl, uint32_t handle);
void ftl_handle_renew(Ftl *ftl, uint32_t handle);

/* How often its least and its most worn erase block were erased. */
typedef struct FtlWear {
    uint32_t least, most;
} FtlWear;

FtlWear ftl_wear(const Ftl *ftl);

#endif
