/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers: one counter for all units, what of it is durable, what the durable checkpoint covers,
 * and the numbers in flight that no flush waits for.
 *
 * Drawing and looking: any context, no lock. mtftl_flush_device() sleeps.
 */
#ifndef MTFTL_SEQ_H
#define MTFTL_SEQ_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>

#include "device/ftl.h"

struct mtftl_seq {
	atomic64_t last ____cacheline_aligned_in_smp;	/* drawn */

	u64 durable ____cacheline_aligned_in_smp;	/* flushing to change, composers read */
	u64 ckpt;		/* of the durable checkpoint; the log's records go ahead of it */
	struct mutex flushing;	/* one flush of the device at a time: what follows, and durable */
	unsigned long flushes;	/* begun */
	int result;		/* of the last one */
	u64 flushed;		/* of mtftl_taken(); U64_MAX: no flush was sent in this mount */
	bool known;		/* the device's cache holds nothing but what landed since */
	bool unsure;		/* the device may have dropped data; any context sets it */

	/* Completions and the flusher read these, which hardly ever change. */
	unsigned long failures ____cacheline_aligned_in_smp;	/* flushes that failed */
	struct list_head unordered;	/* units that flushes do not wait for; fixed in a mount */
};

int mtftl_seq_alloc(struct mtftl *ftl);
void mtftl_seq_free(struct mtftl *ftl);

static inline u64 mtftl_seq_draw(struct mtftl *ftl)
{
	return atomic64_inc_return(&ftl->seq->last);
}

static inline u64 mtftl_seq_last(const struct mtftl *ftl)
{
	return atomic64_read(&ftl->seq->last);
}

static inline u64 mtftl_seq_durable(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->seq->durable);
}

static inline u64 mtftl_seq_ckpt(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->seq->ckpt);
}

/* Numbers that recovery would have to look at, and with it the time that it takes. */
static inline u64 mtftl_seq_since_checkpoint(const struct mtftl *ftl)
{
	return mtftl_seq_last(ftl) - mtftl_seq_ckpt(ftl);
}

/* Mounting only. */
void mtftl_seq_set_last(struct mtftl *ftl, u64 last, u64 durable);
void mtftl_seq_set_ckpt(struct mtftl *ftl, u64 number);

/*
 * Unordered units: flushes do not wait for them. Each sender is listed, with a lower bound of the
 * number that it has in flight: from before that is drawn to after the unit has landed.
 */
struct mtftl_unordered {
	struct list_head list;
	u64 seq ____cacheline_aligned_in_smp;	/* U64_MAX: there is none */
};

void mtftl_seq_add_unordered(struct mtftl *ftl, struct mtftl_unordered *unordered);
void mtftl_seq_remove_unordered(struct mtftl *ftl, struct mtftl_unordered *unordered);
/* A number for a unit. */
u64 mtftl_seq_begin_unordered(struct mtftl *ftl, struct mtftl_unordered *unordered);
/* It has landed. Any context. */
void mtftl_seq_end_unordered(struct mtftl_unordered *unordered);
/* Of the numbers up to @drawn: those below all unordered units that are in flight. */
u64 mtftl_seq_before_unordered(struct mtftl *ftl, u64 drawn);
bool mtftl_seq_has_unordered(struct mtftl *ftl);

int mtftl_flush_device(struct mtftl *ftl, u64 drawn);
/* The same, but nothing is sent if all that was written since the last one was with FUA. */
int mtftl_flush_cache(struct mtftl *ftl, u64 drawn);
void mtftl_seq_forget_cache(struct mtftl *ftl);
static inline unsigned long mtftl_seq_failures(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->seq->failures);
}

/* A write has landed in the drive's cache. @failures: mtftl_seq_failures() when it was sent. */
void mtftl_seq_landed(struct mtftl *ftl, unsigned long failures);
/* All writes that have landed are on flash, without another flush. */
bool mtftl_seq_is_flushed(struct mtftl *ftl);

#endif
