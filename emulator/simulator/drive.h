/*
 * What the programs of this folder share: a drive without a guest, described
 * by words, and the latencies of what it was asked.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The model of flash and the FTL are those of the emulator (hw/nvme).  A word
 * is NAME=VALUE; what is wrong ends the program with status 2.
 */

#ifndef SIMULATOR_DRIVE_H
#define SIMULATOR_DRIVE_H

#include "flash/ftl/ftl.h"

typedef enum WordKind {
    WORD_BOOL,
    WORD_U32,
    WORD_U64,
    WORD_NS,                    /* that something takes */
} WordKind;

typedef struct Word {
    const char *name;           /* NULL ends a table */
    WordKind kind;
    void *to;
} Word;

typedef enum Personality {
    DRIVE_BLACKBOX,
    DRIVE_ZNS,
    DRIVE_OCSSD,
} Personality;

typedef struct Latencies {
    uint64_t *ns, nr, room;
} Latencies;

extern FlashDev dev;
extern FlashShape shape;
extern FlashTuning tuning;
extern FtlConfig config;        /* logical: blocks that the host sees */
extern Personality personality;
extern Ftl *ftl;                /* of a black box */

__attribute__((format(printf, 1, 2), noreturn))
void fail(const char *format, ...);

/* A word of the drive, or of the program's own table. */
void parse_word(const char *text, const Word *own);

/* Open a drive in memory as the words say; done: what ends a command. */
void open_drive(void (*done)(FlashDev *d, FlashCmd *cmd));
void close_drive(void);

/* Do its operations take time? */
void set_delays(bool on);

/* Let it work until the next instant at which anything happens. */
void drive_step(uint64_t waiting);

void add_latency(Latencies *l, uint64_t ns);
void print_latencies(const char *name, Latencies *l);

/* The generator that all loads draw from. */
void seed_draws(uint64_t seed);
uint64_t draw(uint64_t below);

#endif
