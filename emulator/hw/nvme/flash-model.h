/*
 * The flash device: commands, write buffer, zones on dies, power.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Sits between the NVMe front end (flash.c) and the clockwork (flash-time.c)
 * with the media (flash-media.c).  Pure C, so that the closed forms of the
 * timing model are tested without a guest.  The owner serialises, sets
 * FlashTime.now through flash_time_run() before each call, and runs the
 * clockwork when flash_time_next() says so.
 *
 * A zone is striped over its dies in program units: what one die programs in
 * one go, planes x pages x page size.  Data is acknowledged when it is in the
 * buffer and becomes durable when its program ends.
 *
 * A zone may have a random write window (ZRWA): slots of the buffer, set aside,
 * that a power loss spares.  Blocks in it may be written again.  A commit
 * slides the window on, and what it leaves behind is programmed.
 */

#ifndef HW_NVME_FLASH_MODEL_H
#define HW_NVME_FLASH_MODEL_H

#include "flash-media.h"
#include "flash-time.h"

#define FLASH_ALL_ZONES UINT32_MAX

typedef enum FlashCmdKind {
    FLASH_CMD_READ,
    FLASH_CMD_WRITE,
    FLASH_CMD_APPEND,
    FLASH_CMD_FLUSH,
    FLASH_CMD_OPEN,
    FLASH_CMD_CLOSE,
    FLASH_CMD_FINISH,
    FLASH_CMD_RESET,
    FLASH_CMD_COMMIT,
    FLASH_CMD_KINDS
} FlashCmdKind;

typedef enum FlashStatus {
    FLASH_OK,
    FLASH_READ_ERROR,
    FLASH_OVERTAKEN,            /* the zone was reset before the write began */
    FLASH_NO_POWER,
} FlashStatus;

typedef struct FlashCmd FlashCmd;
typedef struct FlashUnit FlashUnit;
typedef struct FlashJob FlashJob;
typedef struct FlashDev FlashDev;

struct FlashCmd {
    FlashCmdKind kind;
    bool fua;                   /* a write ends, or a read begins, on flash */
    bool window;                /* write to it; open: the zone gets one */
    uint32_t zone;
    uint64_t block;             /* first block, from the zone's start */
    uint32_t nlb;
    uint64_t commit;            /* where the window begins afterwards */
    uint8_t *data;              /* of a write, until all of it is buffered */
    uint8_t *oob;
    FlashStatus status;
    void *owner;

    /* private to flash-model.c */
    FlashDev *dev;
    FlashCmd *next, **pprev;    /* all commands */
    FlashCmd *wait_next;        /* waiting for buffer, or for programs */
    FlashOp *reads;
    uint64_t seq;               /* flush: newest unit to wait for */
    uint64_t extra_ns;          /* firmware time before the answer */
    uint32_t admitted;          /* blocks in the buffer */
    uint32_t pending;           /* operations, units and jobs to wait for */
};

/* Times and policies: all may change while the device runs. */
typedef struct FlashTuning {
    uint64_t read_ns;
    uint64_t program_ns;
    uint64_t erase_ns;
    uint64_t erase_more_ns;     /* each further block on a die; 0: the same */
    FlashBus bus;
    bool cache, read_first, suspend;
    uint64_t resume_ns;
    bool delay_read, delay_program, delay_erase, delay_transfer;
    uint64_t buffer;            /* bytes; 0: writes end when programmed */
    uint64_t service_ns;        /* the controller, one command at a time */
    uint64_t cmd_ns[FLASH_CMD_KINDS];   /* firmware latency, overlapping */
} FlashTuning;

typedef struct FlashStats {
    uint64_t cmds[FLASH_CMD_KINDS];
    uint64_t errors;
    uint64_t read_bytes, written_bytes;
    uint64_t buffer_hits;       /* rows of a read found in the buffer */
    uint64_t reads;             /* cell reads */
    uint64_t programs_full;     /* program units filled by the host */
    uint64_t programs_padded;   /* cut short by flush, FUA or a full buffer */
    uint64_t programs_finish;
    uint64_t programs_retried;
    uint64_t erases;
    uint64_t programmed_bytes;  /* host data and padding */
    uint64_t buffer_used, buffer_max;
    uint64_t buffer_time;       /* integral of buffer_used over time */
    uint64_t buffer_since;
    uint64_t waited;            /* writes that waited for buffer space */
    uint64_t cuts;
    uint64_t lost_bytes;        /* acknowledged, not programmed, at a cut */
} FlashStats;

/* Program faults; the others are decided by the front end. */
typedef struct FlashTrouble {
    uint64_t cut_at_program;    /* cut when that many more began; 0: never */
    uint64_t fail_program;      /* the n-th from now fails; 0: never */
} FlashTrouble;

typedef struct FlashZone {
    uint64_t accepted;          /* blocks buffered or programmed */
    uint64_t programmed;        /* ... whose program has begun, at least */
    FlashUnit *fill;            /* being filled */
    FlashUnit *units;           /* issued, not yet ended */
    bool open;
    bool finished;
} FlashZone;

struct FlashDev {
    FlashTime time;
    FlashMedia media;
    FlashTuning tuning;
    FlashStats stats;
    FlashTrouble trouble;
    bool through;               /* no write cache: as if each write were FUA */
    uint32_t window_blocks;     /* of each random write window */
    uint64_t window_bytes;      /* of the buffer, set aside for all of them */
    void (*done)(FlashDev *dev, FlashCmd *cmd);
    void (*lost_power)(FlashDev *dev);
    void *owner;

    /* private */
    bool powered;
    uint32_t unit_blocks;       /* logical blocks of a program unit */
    uint32_t row_blocks;        /* ... of a page on all planes */
    uint32_t units_per_block;
    uint64_t service_free;
    uint64_t cut_at;            /* the power goes; UINT64_MAX: it does not */
    uint64_t seq;
    FlashZone *zones;
    FlashCmd *cmds;
    FlashCmd *wait_head, **wait_tail;
    FlashCmd *flush_head, **flush_tail;
    FlashUnit *fill_head, *fill_tail;       /* by age */
    FlashUnit *issued_head, *issued_tail;   /* by seq */
    FlashUnit *spare;           /* free units */
    FlashJob *jobs;
};

/* Open the media and start the device.  Returns NULL or what is wrong. */
char *flash_dev_open(FlashDev *dev, const char *path, const FlashShape *shape);

/* An orderly shutdown: what is buffered is on the media when this returns. */
void flash_dev_sync(FlashDev *dev);
void flash_dev_close(FlashDev *dev);

/* The tuning changed. */
void flash_dev_retune(FlashDev *dev);

/*
 * Submit a command; done() is called when its time has come, which may be
 * before this returns.  cmd->data and cmd->oob of a write pass to the device.
 */
void flash_dev_submit(FlashDev *dev, FlashCmd *cmd);

/* Nothing takes time and nothing waits: data may go straight to the media. */
bool flash_dev_instant(const FlashDev *dev, uint32_t zone);

/*
 * A write of an instant device: make room on the media behind what the zone
 * holds, then fill it; undo: it could not be filled.
 */
void flash_dev_write_begin(FlashDev *dev, uint32_t zone, uint32_t nlb);
void flash_dev_write_end(FlashDev *dev, FlashCmdKind kind, uint32_t zone,
                         uint32_t nlb);
void flash_dev_write_undo(FlashDev *dev, uint32_t zone, uint32_t nlb);

/*
 * What the blocks hold now.  peek: through a pointer into the media, when
 * they are all there; else NULL, and copy gives them, from buffer or media.
 */
const uint8_t *flash_dev_peek(const FlashDev *dev, uint32_t zone,
                              uint64_t block, uint32_t nlb);
void flash_dev_copy(const FlashDev *dev, uint32_t zone, uint64_t block,
                    uint32_t nlb, uint8_t *data, uint8_t *oob);
bool flash_dev_bad(const FlashDev *dev, uint32_t zone, uint64_t block,
                   uint32_t nlb);

/* The zone's window ends; what it holds is committed. */
void flash_dev_end_window(FlashDev *dev, uint32_t zone);

/*
 * Cut the power at that instant (at the next flash_time_run(), if past), unless
 * it goes before.
 */
void flash_dev_cut(FlashDev *dev, uint64_t when);
void flash_dev_power_on(FlashDev *dev);
void flash_dev_forget_cuts(FlashDev *dev);

/* The die of a zone's n-th program unit. */
uint32_t flash_dev_die(const FlashDev *dev, uint32_t zone, uint64_t unit);

#endif
