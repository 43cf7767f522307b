/*
 * Where a command's time went.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The model does not keep this.  The linker puts these functions in front of
 * some of the model's own (--wrap, see parts.c), so that each operation of a
 * die is seen when it comes, when its cell work begins, and when it ends.  The
 * parts of a command follow from its last operation, and add up to its time to
 * the nanosecond.
 */

#ifndef SIMULATOR_PARTS_H
#define SIMULATOR_PARTS_H

#include "flash/model/model.h"

/* One operation, as far as a command waited for it. */
typedef struct LastOp {
    bool known;
    FlashOpKind kind;
    uint32_t die;
    uint64_t came, cell_began, ended;
    uint64_t cell_ns, transfer_ns;      /* nominal */
    uint64_t link_ns;                   /* on the way out, waits included */
} LastOp;

typedef struct Parts {
    uint64_t service;           /* the controller, and its firmware */
    uint64_t link;              /* the host's link, waits for it included */
    uint64_t queue;             /* for dies, channels and the buffer */
    uint64_t gc;                /* ... because of the drive's own work */
    uint64_t cell, transfer;
} Parts;

/* A command of the host; the program's own structure begins with it. */
typedef struct Timed {
    FlashCmd cmd;               /* first: the model knows no more */
    uint64_t began, ready;      /* submitted; the controller is done with it */
    uint64_t link_in, link_out;
    LastOp last;
} Timed;

/* After flash_dev_open(), and after flash_dev_close(). */
void parts_open(FlashDev *dev);
void parts_close(void);

/* In place of flash_dev_submit(). */
void parts_submit(FlashDev *dev, Timed *t);

/* The command has just ended. */
Parts parts_of(const FlashDev *dev, const Timed *t);

/* No command that is under way began before that instant. */
void parts_forget(uint64_t before);

#endif
