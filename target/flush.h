/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flush rounds: what makes acknowledged things durable. One thread runs them; what a round is for
 * is listed in pending.h. These sleep.
 */
#ifndef MTFTL_FLUSH_H
#define MTFTL_FLUSH_H

#include "ftl.h"

int mtftl_flush_alloc(struct mtftl *ftl);
void mtftl_flush_start(struct mtftl *ftl);
void mtftl_flush_stop(struct mtftl *ftl);
void mtftl_flush_free(struct mtftl *ftl);

/* All that was acknowledged before the call is durable when it returns 0. */
int mtftl_flush_sync(struct mtftl *ftl);
/*
 * The same in two steps. The first one leaves lanes the pace of their users, unless that takes long, or
 * @hurry says so; one caller at a time. Where it comes true the device's flush is missing, the second step,
 * with the number that it gave; else all of the above is.
 */
bool mtftl_flush_settle(struct mtftl *ftl, bool (*hurry)(struct mtftl *ftl, void *private),
			void *private, u64 *drawn);
int mtftl_flush_settled(struct mtftl *ftl, u64 drawn);
/* Keep room for a record, as mtftl_range_reserve(). False: nothing can be written any more. */
bool mtftl_flush_for_range(struct mtftl *ftl);

#endif
