/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flush rounds: what makes acknowledged things durable. One thread runs them; what a round is for
 * is listed in pending.h. These sleep.
 */
#ifndef MTFTL_FLUSH_H
#define MTFTL_FLUSH_H

#include "device/ftl.h"

int mtftl_flush_alloc(struct mtftl *ftl);
void mtftl_flush_start(struct mtftl *ftl);
void mtftl_flush_stop(struct mtftl *ftl);
void mtftl_flush_free(struct mtftl *ftl);

/* Completes the bio, which has no data. Any context. */
void mtftl_flush(struct mtftl *ftl, struct bio *bio);
/* All that was acknowledged before the call is durable when it returns 0. */
int mtftl_flush_sync(struct mtftl *ftl);
/* Keep room for a record, as mtftl_range_reserve(). False: nothing can be written any more. */
bool mtftl_flush_for_range(struct mtftl *ftl);

#endif
