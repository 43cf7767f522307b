/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small drive and its target as states and steps. model.c says what is modelled and why that is
 * sound, explore.c walks through all states, check.c says what must hold in them.
 */
#ifndef MTFTL_MODEL_H
#define MTFTL_MODEL_H

#include "policy/admit.h"

#define MAX_ZONES	8u
#define MAX_STREAMS	4u
#define MAX_VICTIMS	2u
#define MAX_REDO	8u
#define WORDS		(MAX_ZONES + 4u)	/* of a packed state */

/* A drive, and what may happen to it. */
struct geometry {
	const char *name;
	u32 zones;		/* for data, without those of superblock and checkpoints */
	u32 units;		/* that a zone takes: each holds a block */
	u32 lanes;
	u32 spare;		/* zones beyond those that users' blocks need; 0: 4, as few as there are */
	u32 data_zones;		/* open at once; 1: users and GC share it */
	u32 user_streams;	/* a class each */
	u32 gc_streams;		/* likewise */
	u32 low_water;		/* 0: the default */
	u32 victims;		/* of GC, under way at once */
	u32 failures;		/* commands that fail */
	bool discards;
	bool free_records;	/* takes a place and no room */
	bool replaces;		/* one of these may be that of a zone for checkpoints */
	bool gc_mixes;		/* GC has no classes of its own */
	bool users_apart;	/* as with many spare zones, likewise two zones for flushes */
};

/* States of zones in the model. What a victim's zone and an open one belong to is in its slot. */
enum kind {
	KIND_EMPTY,
	KIND_PARTIAL,
	KIND_OPEN,
	KIND_CLOSING,
	KIND_FULL,
	KIND_VICTIM,
	KIND_DEAD,		/* resetting: waits for a flush to begin, */
	KIND_FLUSHED,		/* for its end, */
	KIND_ERASED,		/* for its erase */
	KIND_BAD,
};

struct zone {
	u8 kind;
	u8 slot;		/* stream of an open zone, index of a victim */
	u8 wp;			/* units */
	u8 valid;
	u8 users, later;	/* units of users in flight: a flush waits for the first */
	u8 records;		/* of discards, in flight */
	u8 moves[MAX_VICTIMS];	/* blocks of that victim in flight, in one unit */
	u8 broken;
	u8 lives;		/* ended by failed writes, in a row */
};

/* What the flusher does. */
enum round {
	ROUND_NONE,
	ROUND_RECORD,		/* the record of a discard finds no place yet */
	ROUND_RECORD_SENT,
	ROUND_DRAIN,		/* it waits for the lanes */
	ROUND_LATE_RECORD,	/* of a discard that came meanwhile */
	ROUND_LATE_RECORD_SENT,
	ROUND_DEVICE,		/* the device flushes */
};

/* Units whose write failed, in their order. */
enum redo {
	REDO_NONE,
	REDO_USER,
	REDO_LATER,
	REDO_RECORD,
	REDO_MOVE,		/* of the first victim; then of the second one */
};

struct victim {
	u8 admitted;
	u8 ended;		/* it found no place and is given up */
	u8 items;		/* blocks that were listed, and have not been moved */
	u8 redo;		/* blocks of its unit that waits for a retry */
};

struct model {
	struct zone zones[MAX_ZONES];
	struct victim victims[MAX_VICTIMS];
	u8 nr_victims;
	u8 buffered;		/* blocks that no unit has taken */
	u8 drain;		/* of them: those that the flush waits for */
	u8 round;
	u8 asked;		/* another flush is asked for */
	u8 record;		/* a discard is listed, and not written */
	u8 redo[MAX_REDO];
	/* space.c keeps these. */
	u8 promised, gated, paced, no_victim, gc_has_zone, unpaced;
	u8 users_room, gc_room, gc_owes;
	u8 refused;		/* lanes found no place, and no place has appeared since */
	u8 failures;		/* so far */
};

/* Kinds of steps. Those that the target takes by itself come first. */
enum step {
	STEP_USER,		/* a block leaves the buffers */
	STEP_USER_REFUSED,
	STEP_FLUSH,		/* a record is sent */
	STEP_FLUSH_REFUSED,
	STEP_RETRY,
	STEP_RETRY_REFUSED,
	STEP_MOVE,		/* GC sends a unit of its oldest victim, */
	STEP_MOVE_BESIDE,	/* or of another one */
	STEP_MOVE_REFUSED,
	STEP_CHOOSE,
	STEP_ADMIT,
	STEP_RETIRE,
	STEP_REST,
	STEP_LAND,
	STEP_CLOSE,
	STEP_ERASE,
	STEP_ROUND,		/* a flush begins or goes on */
	STEP_ROUND_END,
	NR_FAIR_STEPS,
	/* Those below may happen, and nothing relies on them. */
	STEP_MAYBE = NR_FAIR_STEPS,	/* the target might */
	STEP_WRITE,
	STEP_DISCARD,
	STEP_ASK,
	STEP_FAIL,
	NR_STEPS
};

/* What waits in a state. */
enum waits {
	WAITS_GATE,		/* a user's write, for the buffers */
	WAITS_USER,		/* rights: a buffered block, */
	WAITS_FLUSH,		/* a record, */
	WAITS_RETRY,		/* a unit whose write failed, */
	WAITS_GC,		/* a victim */
	WAITS_ROUND,		/* a flush */
	NR_WAITS
};

extern const char *const step_names[NR_STEPS];
extern const char *const wait_names[NR_WAITS];

/* Limits follow from the geometry as config.c has it. False: there is no such drive. */
bool model_set(const struct geometry *geometry);
void model_init(struct model *model);
/* All steps from here. */
void model_steps(const struct model *model,
		 void (*emit)(const struct model *to, enum step by, void *data), void *data);
/* Of enum waits, as bits. */
u32 model_waits(const struct model *model);
/* Step that ends a wait; NR_STEPS: it ends when a state does not have it. */
enum step model_served(enum waits waits);
/* A right waits, and admission says that this is the end. */
bool model_is_dead(const struct model *model);
/* More zones are open or being closed than the drive allows. */
bool model_is_over(const struct model *model);
/* The device has a command that will end. */
bool model_is_busy(const struct model *model);

void model_pack(const struct model *model, u32 *words);
void model_unpack(const u32 *words, struct model *model);
void model_print(const struct model *model);

#endif
