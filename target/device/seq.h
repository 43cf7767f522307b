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
	u64 flushed;		/* of mtftl_taken() */
	bool unsure;		/* the device may have dropped what it was given */
	struct list_head apart;	/* units that flushes do not wait for; only set up and torn down */
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
static inline u64 mtftl_seq_log_length(const struct mtftl *ftl)
{
	return mtftl_seq_last(ftl) - mtftl_seq_ckpt(ftl);
}

/* Mounting only. */
void mtftl_seq_go_on(struct mtftl *ftl, u64 last, u64 durable);
void mtftl_seq_set_ckpt(struct mtftl *ftl, u64 number);

/*
 * Units apart. Who sends them is listed, with a lower bound of the number that it has in flight: from
 * before that is drawn to after the unit has landed.
 */
struct mtftl_apart {
	struct list_head list;
	u64 seq ____cacheline_aligned_in_smp;	/* U64_MAX: there is none */
};

void mtftl_seq_add_apart(struct mtftl *ftl, struct mtftl_apart *apart);
void mtftl_seq_remove_apart(struct mtftl *ftl, struct mtftl_apart *apart);
/* A number for a unit. */
u64 mtftl_seq_apart_begin(struct mtftl *ftl, struct mtftl_apart *apart);
/* It has landed. Any context. */
void mtftl_seq_apart_end(struct mtftl_apart *apart);
/* Of the numbers up to @drawn: those below all units apart that are in flight. */
u64 mtftl_seq_before_apart(struct mtftl *ftl, u64 drawn);
bool mtftl_seq_are_apart(struct mtftl *ftl);

int mtftl_flush_device(struct mtftl *ftl, u64 drawn);

#endif
