// SPDX-License-Identifier: GPL-2.0
/*
 * All short workloads: see sequences.h. Before a workload three blocks were written several times, so
 * that there are full zones, and all is flushed. Three others have never been written.
 */
#include "sequences.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "notes.h"

#define MOST_BLOCKS	3u	/* of an operation */
#define MOST_LANES	3u
#define MOST_LENGTH	3u
#define OLD		0u	/* blocks that were written before; the next ones were not */
#define NEW		MOST_BLOCKS
#define TIMES		9u	/* that the old blocks were written */
#define SETTLED_NS	4000000	/* by then moves and erases have ended */

enum kind {
	SEQ_WRITE, SEQ_OVERWRITE, SEQ_FUA, SEQ_DISCARD, SEQ_ZEROES,	/* on blocks */
	SEQ_FLUSH, SEQ_GC, SEQ_RESET, SEQ_CHECKPOINT, SEQ_SUSPEND, SEQ_RELOAD,
	NR_SEQ_KINDS,
};

struct letter {
	enum kind kind;
	unsigned int nr;		/* blocks */
};

struct sequence {
	struct device *dev;
	struct oracle *oracle;
	struct tuning tuning;
	void *data;
	unsigned int failures;
};

static void on_cpu(unsigned int number)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(number, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void settle(void)
{
	struct timespec pause = { 0, SETTLED_NS };

	nanosleep(&pause, NULL);
}

static void expect_none(struct sequence *seq, int err, const char *what)
{
	if (!err)
		return;
	printf("VIOLATION %s failed: %s\n", what, strerror(-err));
	seq->failures++;
}

static void put(struct sequence *seq, uint64_t lba, unsigned int nr, bool fua)
{
	static struct op op;
	int err;

	oracle_begin(seq->oracle, &op, lba, nr, false, false);
	oracle_fill(seq->oracle, &op, seq->data);
	err = seq->dev->ops->write(seq->dev, lba, nr, seq->data, fua ? WRITE_FUA : 0);
	oracle_end(seq->oracle, &op, !err, fua);
	expect_none(seq, err, "a write");
}

static void clear(struct sequence *seq, unsigned int nr, enum clear_kind kind)
{
	static struct op op;
	int err;

	oracle_begin(seq->oracle, &op, OLD, nr, true, false);
	err = seq->dev->ops->clear(seq->dev, OLD, nr, kind);
	oracle_end(seq->oracle, &op, !err, false);
	expect_none(seq, err, "a discard");
}

static void flush(struct sequence *seq)
{
	static struct op op;
	int err;

	oracle_flush_begin(seq->oracle, &op);
	err = seq->dev->ops->flush(seq->dev);
	if (!err)
		oracle_flush_end(seq->oracle, &op);
	expect_none(seq, err, "a flush");
}

static void disturb(struct sequence *seq, enum disturbance what)
{
	expect_none(seq, seq->dev->ops->disturb(seq->dev, what, &seq->tuning), "a command");
}

static void perform(struct sequence *seq, struct letter letter)
{
	switch (letter.kind) {
	case SEQ_WRITE:
		put(seq, NEW, letter.nr, false);
		break;
	case SEQ_OVERWRITE:
		put(seq, OLD, letter.nr, false);
		break;
	case SEQ_FUA:
		put(seq, OLD, letter.nr, true);
		break;
	case SEQ_DISCARD:
		clear(seq, letter.nr, CLEAR_DISCARD);
		break;
	case SEQ_ZEROES:
		clear(seq, letter.nr, CLEAR_ZEROES);
		break;
	case SEQ_FLUSH:
		flush(seq);
		break;
	case SEQ_GC:
	case SEQ_RESET:
		disturb(seq, DISTURB_GC);
		if (letter.kind == SEQ_RESET)
			settle();
		break;
	case SEQ_CHECKPOINT:
		disturb(seq, DISTURB_CHECKPOINT);
		break;
	case SEQ_SUSPEND:
		disturb(seq, DISTURB_SUSPEND);
		break;
	default:
		disturb(seq, DISTURB_RELOAD);
		break;
	}
}

static unsigned int alphabet(bool reduced, struct letter *letters)
{
	static const enum kind few[] = {
		SEQ_WRITE, SEQ_OVERWRITE, SEQ_FLUSH, SEQ_DISCARD, SEQ_GC, SEQ_RESET,
	};
	unsigned int i, nr, n = 0;

	for (i = 0; reduced && i < sizeof(few) / sizeof(*few); i++)
		letters[n++] = (struct letter){ few[i], 1 };
	for (i = 0; !reduced && i < NR_SEQ_KINDS; i++)
		for (nr = 1; nr <= (i < SEQ_FLUSH ? MOST_BLOCKS : 1); nr++)
			letters[n++] = (struct letter){ i, nr };
	return n;
}

/* A formatted device with blocks that were written and flushed. */
static void prepare(struct sequence *seq)
{
	unsigned int i;

	expect_none(seq, seq->dev->ops->unmount(seq->dev), "a stop");
	oracle_stopped_clean(seq->oracle);
	oracle_formatting(seq->oracle);
	expect_none(seq, seq->dev->ops->format(seq->dev), "a format");
	oracle_formatted(seq->oracle);
	expect_none(seq, seq->dev->ops->mount(seq->dev, &seq->tuning), "a mount");
	for (i = 0; i < TIMES; i++)
		put(seq, OLD + i % MOST_BLOCKS, 1, true);
}

/* Its number has a digit for each operation, from the last to the first. */
static void run_one(struct sequence *seq, const struct letter *letters, unsigned int nr_letters,
		    unsigned int length, unsigned int number)
{
	unsigned int i;

	prepare(seq);
	oracle_workload(seq->oracle, length << 24 | number, seq->tuning.lanes);
	for (i = 0; i < length; i++, number /= nr_letters) {
		on_cpu(i % seq->tuning.lanes);
		perform(seq, letters[number % nr_letters]);
	}
	settle();
}

int sequences(struct device *dev, struct oracle *oracle, unsigned int length, bool reduced,
	      void (*enter)(const char *phase))
{
	struct letter letters[NR_SEQ_KINDS * MOST_BLOCKS];
	unsigned int nr = alphabet(reduced, letters), done = 0, l, i, all;
	struct sequence seq = {
		.dev = dev, .oracle = oracle,
		.tuning = { .buffer_entries = 64, .write_unit = 1, .append = true },
	};

	if (posix_memalign(&seq.data, BLOCK_BYTES, MOST_BLOCKS * BLOCK_BYTES))
		return 2;
	if (dev->nr_blocks < SEQUENCE_BLOCKS || length > MOST_LENGTH) {
		fprintf(stderr, "sequences of %u operations on %u blocks: expected at most %u, %u blocks\n",
			length, (unsigned int)dev->nr_blocks, MOST_LENGTH, SEQUENCE_BLOCKS);
		return 2;
	}
	for (seq.tuning.lanes = 1; seq.tuning.lanes <= (reduced ? 1 : MOST_LANES); seq.tuning.lanes++)
		for (l = 1, all = nr; l <= length; l++, all *= nr)
			for (i = 0; i < all && !seq.failures; i++, done++) {
				enter("sequence");
				run_one(&seq, letters, nr, l, i);
			}
	dev->ops->unmount(dev);
	oracle_stopped_clean(oracle);
	printf("{\"workloads\": %u, \"letters\": %u, \"violations\": %u}\n", done, nr, seq.failures);
	return seq.failures ? 1 : 0;
}
