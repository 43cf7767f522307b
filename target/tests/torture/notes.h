/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Notes of what the oracle learns, in the order in which it does. A guest writes them to the port of
 * the flash's journal (emulator/hw/nvme/flash-journal.c), where each has its place among what the
 * drive did. The judge of cuts (target/tests/cuts) gives them to an oracle of its own.
 */
#ifndef NOTES_H
#define NOTES_H

#include <stdint.h>

enum note_kind {
	NOTE_BEGIN,		/* a write of blocks that hold stamps */
	NOTE_CLEAR,		/* or a discard, or zeroes */
	NOTE_ACKED,
	NOTE_FAILED,
	NOTE_DURABLE,		/* acknowledged, and it was FUA */
	NOTE_FLUSH,
	NOTE_FLUSHED,
	NOTE_CRASHED,
	NOTE_RECOVERED,		/* block lba is version nr, 0: zeroes */
	NOTE_FORMATTING,	/* nothing is promised... */
	NOTE_FORMATTED,		/* ...until here: lba blocks of zeroes */
	NOTE_ORACLE,		/* the first one: op is the run, lba the number of blocks */
	NOTE_WORKLOAD,		/* what follows has this number; nr: its lanes */
	NOTE_COMMAND,		/* of an administrator begins: nr of enum disturbance */
	NR_NOTES,
};

struct note {
	uint32_t kind;
	uint32_t op;		/* whose end or flush it is: any number that no other in flight has */
	uint32_t lba;
	uint32_t nr;
};

/* Make this process's notes go to the port; exits if it may not. Before threads are made. */
void notes_open(void);
/* Nothing before notes_open(). One at a time: the caller serialises. */
void notes_add(const struct note *note);

#endif
