/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What waits for the next round of flushes: bios that want one, tasks that wait for one, and range
 * records (discards, losses) that are not on flash yet. flush.c takes all of it from here.
 *
 * Adding: any context. Room for a record is reserved before the map changes, and the record is
 * added under the lock of the map's shard, so that a flush that finds a slot dead finds it too.
 */
#ifndef MTFTL_PENDING_H
#define MTFTL_PENDING_H

#include <linux/bio.h>
#include <linux/wait.h>

#include "device/ftl.h"

#define MTFTL_RANGE_UNITS	4	/* of records: there is room for so many */

struct mtftl_range_rec {
	u32 lba;
	u32 nr_blocks;
	u64 seq;
	enum mtftl_range_kind kind;
};

int mtftl_pending_alloc(struct mtftl *ftl);
void mtftl_pending_free(struct mtftl *ftl);

/* The flusher waits here, and so do tasks that wait for a round. */
struct wait_queue_head *mtftl_pending_wait(struct mtftl *ftl);
void mtftl_pending_wake(struct mtftl *ftl);

/* Flushes. A write that wants one (FUA) comes here when it is buffered. Completes the bio. */
void mtftl_pending_flush(struct mtftl *ftl, struct bio *bio);
/* The number of the round that covers what was acknowledged by now. */
u64 mtftl_pending_ask(struct mtftl *ftl);
u64 mtftl_pending_asked(struct mtftl *ftl);
/* All that has asked by now is in the round that begins; its number. @users: their bios, too. */
u64 mtftl_pending_begin_round(struct mtftl *ftl, bool *users);
struct bio_list mtftl_pending_end_round(struct mtftl *ftl);

/*
 * Records. Keep room for one. False: there is none; @bio, if given, waits or was given back. Bios
 * wait in order: one that has not @waited yet waits behind those that have. A caller that got room
 * must add a record, or NULL.
 */
bool mtftl_range_reserve(struct mtftl *ftl, struct bio *bio, bool waited);
void mtftl_range_add(struct mtftl *ftl, const struct mtftl_range_rec *rec);
/* Those that are there; with @reserved, those that are on their way too. */
u32 mtftl_ranges_count(struct mtftl *ftl, bool reserved);
bool mtftl_ranges_fill_unit(struct mtftl *ftl);
/*
 * The records behind the @from oldest that one unit takes, and the unit's number. They stay listed
 * and where they are until mtftl_ranges_written(), which the same caller calls.
 */
u32 mtftl_ranges_take(struct mtftl *ftl, u32 from, const struct mtftl_range_rec **recs, u64 *seq);
void mtftl_ranges_written(struct mtftl *ftl, u32 nr);
/* Bios that found no room. */
bool mtftl_ranges_are_waited_for(struct mtftl *ftl);
/* Call @heard when bios wait and there may be room. Any context. */
void mtftl_ranges_on_room(struct mtftl *ftl, void (*heard)(struct mtftl *ftl));
/* The first of these bios, if there is room now or will never be; else NULL. */
struct bio *mtftl_ranges_take_waiting(struct mtftl *ftl);

/* The device gives back: all bios, and none waits afterwards. */
void mtftl_pending_give_back(struct mtftl *ftl);

#endif
