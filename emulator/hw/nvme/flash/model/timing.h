/*
 * The clockwork of a NAND package: dies, channels and the instants at which
 * they become free.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Pure C: no QEMU types, no clock of its own, no threads.  The owner hands in
 * the present instant, asks for the next one that matters, and calls
 * flash_time_run() when it has come.  All times are nanoseconds.
 *
 * A die has a cell array that does one thing at a time and one page register
 * (two with cache mode).  A channel is a bus that carries one transfer at a
 * time, in the order in which the transfers became due.  A read holds the
 * register from the start of the cell read to the end of its transfer, and
 * the bus only while bytes move.  A program holds the register from the start
 * of its transfer to the end of the cell program.  One controller begins all
 * transfers: turning to another channel may take it time.
 *
 * Planes of a die may read by themselves.  Then each has a cell array and page
 * registers of its own for reads, which overlap those of other planes and pass
 * them in the die's queue.  Programs and erases are of all planes.
 *
 * Or all operations are booked: each gets its time on the die and the channel
 * when it comes, behind what the die has, and in the gaps of the channel.  It
 * keeps that time: nothing overtakes it, interrupts it or takes it back.
 *
 * Not protected by a lock: the owner serialises (QEMU: the big lock).
 */

#ifndef HW_NVME_FLASH_TIMING_H
#define HW_NVME_FLASH_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book.h"

#define FLASH_SLOW_UNIT 100     /* FlashDie.slow of an ordinary die */
#define FLASH_READ_LIMIT 64     /* FlashTime.read_limit, unless it is set */

typedef enum FlashOpKind {
    FLASH_OP_READ,
    FLASH_OP_PROGRAM,
    FLASH_OP_ERASE,
    FLASH_OP_KINDS
} FlashOpKind;

typedef struct FlashTime FlashTime;
typedef struct FlashOp FlashOp;
typedef void FlashFire(FlashTime *ft, void *arg);

/* One piece of work for one die.  The caller owns it until done() is called. */
struct FlashOp {
    FlashOpKind kind;
    uint32_t die;
    uint32_t plane;             /* read: of those that read by themselves */
    uint64_t bytes;             /* to carry over the channel */
    uint64_t cell_ns;           /* nominal time in the cell array */
    void (*started)(FlashTime *ft, FlashOp *op);    /* cell work begins */
    void (*done)(FlashTime *ft, FlashOp *op);
    void *arg;

    /* private to timing.c */
    FlashOp *next;
    uint64_t since;             /* queued, then: cell work began */
    uint64_t left_ns;           /* cell work still to do */
    uint32_t turn;              /* stale cell-end events have another one */
    bool suspended;
};

typedef struct FlashQueue {
    FlashOp *head;
    FlashOp *tail;
} FlashQueue;

/* What reads by itself: a plane, or all planes of a die. */
typedef struct FlashPlane {
    FlashOp *cell;              /* the read in its cell array */
    uint32_t reading;           /* page registers that reads have */
} FlashPlane;

typedef struct FlashDie {
    FlashQueue queue;           /* waiting, in order of arrival */
    FlashPlane *planes;
    FlashOp *cell;              /* program or erase in the cell array */
    FlashOp *ready;             /* program, transferred, waits for the array */
    FlashOp *parked;            /* program or erase that a read suspended */
    bool stopping;              /* ... and that has not stopped yet */
    FlashOpKind kind;           /* of the work in progress */
    uint32_t active;            /* page registers in use */
    uint32_t reading;           /* of these, by reads */
    uint32_t transfers;         /* of these, on the bus or waiting for it */
    uint32_t passed;            /* reads that passed the next other operation */
    uint32_t slow;              /* percent of nominal cell time */
    uint64_t booked;            /* booked operations end then */
    uint32_t at_work;           /* cell arrays, of planes or of the die */
    uint64_t at_work_since;

    uint64_t busy_ns;           /* any cell array at work */
    uint64_t wait_ns;           /* sum of time in queue */
    uint64_t wait_max_ns;
    uint64_t ops[FLASH_OP_KINDS];
} FlashDie;

typedef struct FlashChannel {
    FlashQueue queue;
    FlashOp *current;
    uint32_t last;              /* 1 + the die of the last transfer; 0: none */
    FlashBook book;             /* of booked operations */
    uint64_t busy_ns;
} FlashChannel;

typedef struct FlashBus {
    uint64_t bytes_per_s;       /* of a channel; 0: transfers take no time */
    uint64_t setup_ns;          /* per transfer */
    uint64_t switch_ns;         /* ... of another die than the one before */
    /* From a transfer to the next one, on another channel: after a read, ... */
    uint64_t turn_read_ns, turn_write_ns;
} FlashBus;

typedef struct FlashEvent {
    uint64_t when;
    uint64_t order;             /* ties fire in the order they were set */
    FlashFire *fire;
    void *arg;
    uint32_t turn;
} FlashEvent;

struct FlashTime {
    uint64_t now;
    uint32_t nr_channels;
    uint32_t nr_dies;           /* die d sits on channel d % nr_channels */
    uint32_t nr_planes;         /* of a die, that read by themselves */
    FlashDie *dies;
    FlashPlane *planes;         /* of all dies */
    FlashChannel *channels;
    FlashChannel *turned_to;    /* where the last transfer began; NULL: none */
    FlashOpKind turned_for;     /* ... for what */
    uint64_t turned_at;         /* ... when */

    /* may change at any time; work in progress keeps what it began with */
    FlashBus bus;
    bool cache;                 /* overlap a transfer with the cell array */
    bool read_first;            /* reads overtake waiting programs, erases */
    bool suspend;               /* ... and interrupt one in progress */
    uint64_t suspend_ns;        /* until an interrupted one has stopped */
    uint64_t resume_ns;         /* what it pays extra */
    uint32_t read_limit;        /* reads that pass one program or erase */
    bool booked;                /* from the start on: operations are booked */

    FlashEvent *heap;
    size_t heap_len, heap_cap;
    uint64_t order;
};

void flash_time_init(FlashTime *ft, uint32_t channels, uint32_t dies,
                     uint32_t planes);
void flash_time_free(FlashTime *ft);

/* Forget all work and all events: the power is gone. */
void flash_time_clear(FlashTime *ft);

void flash_time_at(FlashTime *ft, uint64_t when, FlashFire *fire, void *arg);

/* The same, but behind all else of that instant, also what is set later. */
void flash_time_behind(FlashTime *ft, uint64_t when, FlashFire *fire,
                       void *arg);
void flash_time_forget(FlashTime *ft, FlashFire *fire);
bool flash_time_next(const FlashTime *ft, uint64_t *when);
void flash_time_run(FlashTime *ft, uint64_t until);

void flash_op_submit(FlashTime *ft, FlashOp *op);
uint64_t flash_xfer_ns(const FlashTime *ft, uint64_t bytes);

/* Take it back; false: it is no longer waiting for its die. */
bool flash_op_cancel(FlashTime *ft, FlashOp *op);

#endif
