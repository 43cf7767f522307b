/*
 * What the flash device and its owner exchange: commands, times and policies,
 * counters, faults.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The owner fills in a command and gets it back from FlashDev.done().  It
 * changes tuning and trouble and reads counters whenever it likes.
 */

#ifndef HW_NVME_FLASH_COMMAND_H
#define HW_NVME_FLASH_COMMAND_H

#include "timing.h"

#define FLASH_ALL_ZONES UINT32_MAX
#define FLASH_SHORT_READ 4096   /* bytes */
#define FLASH_PAGE_TYPES 8      /* at most */
#define FLASH_RETRIES 32        /* of a read, at most */
#define FLASH_MOST_NS 100000000000ull   /* any time: no sum of them wraps */

typedef enum FlashWay {
    FLASH_FROM_HOST,
    FLASH_TO_HOST,
    FLASH_WAYS
} FlashWay;

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
    FLASH_CMD_TRIM,             /* of a drive with an FTL */
    FLASH_CMD_KINDS
} FlashCmdKind;

typedef enum FlashStatus {
    FLASH_OK,
    FLASH_READ_ERROR,
    FLASH_OVERTAKEN,            /* the zone was reset before the write began */
    FLASH_NO_POWER,
} FlashStatus;

typedef struct FlashCmd FlashCmd;
typedef struct FlashDev FlashDev;

struct FlashCmd {
    FlashCmdKind kind;
    bool fua;                   /* a write ends, or a read begins, on flash */
    bool window;                /* write to it; open: the zone gets one */
    bool inside;                /* no byte of it goes over the link */
    bool whole;                 /* write to an FTL: no cut tears it */
    bool hinted;                /* write to an FTL: it would like to lie ... */
    uint64_t near;              /* ... on the die of this logical block */
    uint32_t further;           /* ... or so many dies on from there */
    uint16_t handle;            /* write to an FTL that has handles */
    uint32_t zone;
    uint64_t block;             /* first block, from the zone's start */
    uint32_t nlb;
    uint64_t commit;            /* where the window begins afterwards */
    uint32_t closes;            /* zones that the drive closes for it */
    uint64_t held;              /* memory, as its owner counts it */
    uint8_t *data;              /* of a write, until buffered; NULL: zeroes */
    uint8_t *oob;
    FlashStatus status;
    void *owner;
    void (*then)(FlashDev *dev, FlashCmd *cmd); /* instead of FlashDev.done */

    /* private to the model */
    bool (*admit)(FlashDev *dev, FlashCmd *cmd);    /* when it is its turn */
    void (*ended)(FlashDev *dev, FlashCmd *cmd);    /* nothing is pending */
    FlashCmd *next, **pprev;    /* all commands */
    FlashCmd *wait_next;        /* waiting for buffer, or for programs */
    FlashOp *reads;
    uint64_t seq;               /* flush: newest unit to wait for */
    uint64_t extra_ns;          /* firmware time before the answer */
    uint32_t admitted;          /* blocks in the buffer */
    uint32_t pending;           /* operations, units and jobs to wait for */
};

/* A page by its place in the word line, whose cells have a bit of each. */
typedef struct FlashPageType {
    uint64_t read_ns;
    uint64_t program_ns;
} FlashPageType;

/* Times and policies: all may change while the device runs. */
typedef struct FlashTuning {
    uint64_t read_ns;
    uint64_t program_ns;
    FlashPageType pages[FLASH_PAGE_TYPES];
    uint32_t page_types;        /* fixed: of these; 0: all pages are alike */
    uint32_t pe_cycles;         /* fixed: a block is made for; 0: no wear */
    bool wear_out;              /* fixed: a zone with so many is of no use */
    /* percent of its time that a block of pe_cycles takes; 0: 100 */
    uint32_t worn_read, worn_program, worn_erase;
    /* so many erases, so much time cost a read one retry; 0: none */
    uint32_t retry_erases;
    uint64_t retry_age_ns;
    uint64_t erase_ns;
    uint64_t erase_more_ns;     /* each further block on a die; 0: the same */
    FlashBus bus;
    bool cache, read_first, suspend;
    uint64_t suspend_ns, resume_ns;
    uint32_t read_limit;        /* 0: FLASH_READ_LIMIT */
    bool delay_read, delay_program, delay_erase, delay_transfer;
    uint64_t buffer;            /* bytes; 0: writes end when programmed */
    uint64_t service_ns;        /* the controller, one command at a time */
    uint64_t cmd_ns[FLASH_CMD_KINDS];   /* firmware latency, overlapping */
    uint64_t long_read_ns;      /* ... of more than FLASH_SHORT_READ; 0: same */
    uint64_t link_rate;         /* bytes a second, each way; 0: no time */
    uint64_t cache_page_ns;     /* a zone's cache takes 4 KiB; it overlaps */
    bool booked;                /* fixed: FlashTime.booked */
    bool plane_reads;           /* fixed: planes read by themselves */
} FlashTuning;

typedef struct FlashStats {
    uint64_t cmds[FLASH_CMD_KINDS];
    uint64_t errors;
    uint64_t read_bytes, written_bytes;
    uint64_t buffer_hits;       /* rows of a read found in the buffer */
    uint64_t reads;             /* cell reads */
    uint64_t read_retries;      /* ... that had to be done again */
    uint64_t programs_full;     /* program units filled by the host */
    uint64_t programs_padded;   /* cut short by flush, FUA or a full buffer */
    uint64_t programs_finish;
    uint64_t programs_retried;
    uint64_t erases;
    uint64_t programmed_bytes;  /* host data and padding */
    uint64_t buffer_used, buffer_max;
    unsigned __int128 buffer_time;      /* integral of buffer_used over time */
    uint64_t buffer_since;
    uint64_t waited;            /* writes that waited for buffer space */
    uint64_t cuts;
    uint64_t lost_bytes;        /* acknowledged, not programmed, at a cut */
} FlashStats;

/* Cuts and program faults; the others are decided by the front end. */
typedef struct FlashTrouble {
    uint64_t cut_at_program;    /* cut when that many more began; 0: never */
    uint64_t cut_at_reset;      /* cut when that many more ended; 0: never */
    uint64_t fail_program;      /* the n-th from now fails; 0: never */
} FlashTrouble;

#endif
