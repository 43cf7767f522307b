/*
 * The flash device of a namespace, for the rooms that it consists of.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Only flash*.c includes this.  Each part belongs to the room named, which
 * alone changes it unless something else is said; all under the big QEMU lock.
 */

#ifndef HW_NVME_FLASH_NS_H
#define HW_NVME_FLASH_NS_H

#include "qemu/queue.h"
#include "qemu/timer.h"

#include "flash/ftl/ftl.h"
#include "flash/model/model.h"
#include "flash-personality.h"

typedef struct NvmeFlash NvmeFlash;

/* flash-io.c: the open flash devices of this machine, as they were opened. */
typedef QTAILQ_HEAD(NvmeFlashMachine, NvmeFlash) NvmeFlashMachine;
extern NvmeFlashMachine nvme_flash_machine;

/* What the user asked for of chunks: flash.c fills it in. */
typedef struct NvmeFlashChunks {
    uint64_t bytes;
    uint32_t ws_min;            /* blocks a write has at least */
    uint32_t ws_opt;
    uint32_t mw_cunits;         /* ... that the host keeps until more come */
} NvmeFlashChunks;

struct NvmeFlash {
    NvmeNamespace *ns;
    FlashDev dev;               /* flash/model/model.h: what its owner calls */
    const NvmeFlashPersonality *personality;
    uint64_t bytes;             /* of flash */
    uint64_t reserve;           /* erase blocks (on all planes) beyond zones */

    /* flash-zns.c */
    uint32_t auto_closed;       /* zones, for the command that is coming */

    /* flash-ocssd.c */
    NvmeFlashChunks chunks;
    struct NvmeFlashOcssd *ocssd;

    /* flash-io.c */
    QTAILQ_ENTRY(NvmeFlash) beside;     /* in nvme_flash_machine */
    QEMUTimer *timer;
    uint64_t armed;             /* what the timer is set to */
    uint32_t entered;           /* times that its controllers are held */
    uint64_t orphans;           /* bytes of commands whose request is gone */
    uint64_t held;              /* memory of what is in flight, in bytes */
    uint64_t held_max;
    bool full;                  /* queues wait until less is held */
    uint64_t media_errors;      /* requests that met an unreadable block */
    uint64_t late;              /* completions after their time, and how much */
    uint64_t late_ns;
    uint64_t late_max_ns;
    uint32_t drop;              /* completions to swallow, from flash-fault.c */

    /* flash-fault.c */
    struct NvmeFlashFaults *faults;
    bool powered;

    /* flash-blackbox.c; configuration and spare: flash.c, from properties */
    struct FtlConfig ftl_config;
    uint32_t spare;             /* percent of what the host sees */
    bool hints;                 /* those of write commands count */
    Ftl *ftl;

    /* flash-log.c */
    struct NvmeFlashStream *stream;     /* NULL: none is wanted */

    /* flash-journal.c */
    struct NvmeFlashJournal *journal;   /* NULL: none is wanted */
};

#endif
