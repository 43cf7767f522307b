/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a block device may answer. The oracle knows, for every 4096-byte block,
 * which versions were submitted, acknowledged and flushed, and judges what a
 * read finds: while the device runs, and after a power cut.
 *
 * Each write, discard or write-zeroes gives every block that it touches its
 * next version. Written blocks carry their stamp (run, block, version) and a
 * payload that follows from it, so that a block proves whose it is, and that it
 * is whole. Operations on one block that overlap in time form a group: nothing
 * orders them, and any of them may win. Without overlap a group has one member.
 *
 * Thread safe: one mutex inside, never held across I/O.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_BYTES	4096u
#define MAX_OP_BLOCKS	1024u

struct oracle;

/* One operation in flight; owned by the thread that runs it. */
struct op {
	uint64_t lba;
	uint32_t nr;
	bool zeroes;			/* discard or write-zeroes, not a write */
	size_t acked_before;		/* acknowledgements that a flush covers */
	uint32_t version[MAX_OP_BLOCKS];
	uint32_t group[MAX_OP_BLOCKS];	/* first version of the group it belongs to */
};

struct oracle *oracle_new(uint64_t run, uint64_t nr_blocks);
void oracle_free(struct oracle *oracle);
uint64_t oracle_nr_blocks(const struct oracle *oracle);

enum begun {
	BEGUN,
	BUSY,			/* another operation on one of the blocks, and no @race */
	FLUSH_FIRST,		/* a block has too many versions that no flush covers */
};

/* Start changing @nr blocks. */
enum begun oracle_begin(struct oracle *oracle, struct op *op, uint64_t lba, uint32_t nr,
			bool zeroes, bool race);
/* The data that @op writes. */
void oracle_fill(const struct oracle *oracle, const struct op *op, void *data);
/* It ended; where not @ok, it may or may not have taken effect. */
void oracle_end(struct oracle *oracle, struct op *op, bool ok, bool durable);

/* A flush: what is acknowledged before it begins is durable once it ends well. */
void oracle_flush_begin(struct oracle *oracle, struct op *op);
void oracle_flush_end(struct oracle *oracle, const struct op *op);
/* A clean stop made everything durable that was acknowledged. */
void oracle_stopped_clean(struct oracle *oracle);

/* A read beside the writers: @op remembers what was acknowledged at its start. */
void oracle_read_begin(struct oracle *oracle, struct op *op, uint64_t lba, uint32_t nr);
/*
 * Each of these returns the number of violations, having printed them, the
 * first of the run with all that is remembered of its block.
 */
unsigned int oracle_read_end(struct oracle *oracle, const struct op *op, const void *data);

/*
 * With no operation in flight: the device was made new, every block is zeroes. It may have fewer
 * blocks than before, because zones have failed.
 */
void oracle_formatted(struct oracle *oracle, uint64_t nr_blocks);
/* After a crash, before any block is judged: no flush will cover what was acknowledged. */
void oracle_crashed(struct oracle *oracle);
/*
 * After a crash, with no operation in flight: judge @nr blocks, and take what
 * was found as the state from which the next round starts.
 */
unsigned int oracle_recovered(struct oracle *oracle, uint64_t lba, uint32_t nr,
			      const void *data);
/* Has it changed since it was last judged? Where not, its base is all that it may hold. */
bool oracle_changed(struct oracle *oracle, uint64_t lba);
/* Zeroes when it was last judged, and not changed since. */
bool oracle_empty(struct oracle *oracle, uint64_t lba);
/* The judgement of a block that gave a read error. */
unsigned int oracle_unreadable(struct oracle *oracle, uint64_t lba);
/*
 * For a judge of cuts that were not made, and so change nothing. What block @data is, or why it is
 * none of that run: NULL if it is. May a cut now leave @version of a block, 0: zeroes? And what a
 * guest has found after a cut that was made.
 */
const char *oracle_stamp(uint64_t run, const void *data, uint64_t *lba, uint32_t *version);
bool oracle_may_leave(const struct oracle *oracle, uint64_t lba, uint32_t version);
void oracle_print_left(struct oracle *oracle, uint64_t lba, uint32_t version, const char *wrong);
void oracle_take(struct oracle *oracle, uint64_t lba, uint32_t version);
/* The time of what is recorded from now on: not the clock's. */
void oracle_set_clock(struct oracle *oracle, const uint64_t *ns);
/* Nothing is promised until oracle_formatted(). */
void oracle_formatting(struct oracle *oracle);
/* What follows is the workload with that number. */
void oracle_workload(struct oracle *oracle, uint32_t number, uint32_t lanes);
/* An administrator's command begins. It promises nothing. */
void oracle_command(struct oracle *oracle, uint32_t what);
/* Some version of this block, or zeroes: all that can be asked of damaged media. */
bool oracle_plausible(struct oracle *oracle, uint64_t lba, const void *data);

#endif
