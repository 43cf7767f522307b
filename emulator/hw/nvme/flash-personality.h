/*
 * What kind of drive the host sees on the flash: the struct of functions that
 * a personality is.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A personality gives commands their meaning: it makes commands of the model
 * (flash/model/model.h) from the controller's requests, and says what those
 * give back.  All below is the same for all of them: model, buffer, clock
 * (flash-io.h), faults and power (flash-fault.h), counters (flash-log.h).  One
 * file each; flash.c lists them, and flash.personality names one.  All
 * functions are called under the big QEMU lock, with the clock set to now.
 */

#ifndef HW_NVME_FLASH_PERSONALITY_H
#define HW_NVME_FLASH_PERSONALITY_H

#include "flash/model/model.h"
#include "nvme.h"

/* Copy; and what the controller says of all copies. */
#define NVME_FLASH_COPIES   (NVME_ONCS_COPY | NVME_ONCS_NVMCSA | \
                             NVME_ONCS_NVMAFC)

typedef struct NvmeFlashPersonality {
    const char *name;           /* value of flash.personality */

    /* Optional commands and formats of Copy that it has, as Identify says. */
    uint16_t oncs;
    uint16_t ocfs;

    /* Bytes that the host sees of so many bytes of flash; NULL: all. */
    uint64_t (*bytes)(const NvmeNamespace *ns, uint64_t flash);

    /*
     * Refuse properties that do not go with it: at start, and when one has
     * changed on a running device, which goes back then.
     */
    bool (*check)(const NvmeNamespace *ns, Error **errp);

    /*
     * At start: its part of the shape (zones, their size and capacity,
     * extensions), and of the device what is fixed.  The geometry is there, as
     * the user gave it.
     */
    void (*shape)(const NvmeNamespace *ns, FlashShape *shape, FlashDev *dev);

    /*
     * Does a power cut leave all or nothing of a write that fits into a program
     * unit?  NULL: it may tear any write of more than one block.
     */
    bool (*whole)(const NvmeNamespace *ns);

    /*
     * The device is open, what is wrong (to be freed), or NULL; it was closed.
     * Both may be NULL.
     */
    char *(*start)(NvmeNamespace *ns);
    void (*stop)(NvmeNamespace *ns);

    /*
     * What is on flash becomes what the host sees: at power on.  False: no such
     * drive wrote that, and this one stays off.
     */
    bool (*load)(NvmeNamespace *ns);

    /* What holds this block fails for good, or turns read-only.  A status. */
    uint16_t (*fail)(NvmeNamespace *ns, uint64_t lba, bool offline);

    /* A read of the NVM command set, checked and mapped by the controller. */
    uint16_t (*read)(NvmeCtrl *n, NvmeRequest *req);

    /*
     * Any I/O command, before the controller looks at it; false: it goes on
     * with it, which for a read means the function above.  A personality
     * that serves all reads here has none above.
     */
    bool (*exec_other)(NvmeCtrl *n, NvmeRequest *req, uint16_t *status);

    /* A read of the request ends: it takes what the blocks hold.  A status. */
    uint16_t (*read_ended)(NvmeRequest *req, const FlashCmd *cmd);

    /*
     * All commands of a request that has req->opaque have ended; a status, or
     * NVME_NO_COMPLETE when others are under way.  req->opaque is memory of
     * the personality, which a cancelled request gives back by g_free().
     */
    uint16_t (*resume)(NvmeRequest *req);

    /* Add members to the counters' JSON object; NULL: it has none. */
    void (*print)(const NvmeNamespace *ns, GString *json);
} NvmeFlashPersonality;

#endif
