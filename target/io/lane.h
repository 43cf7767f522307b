/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lanes: a ring of the pool each, and the thread that writes it out. Users' writes enter here.
 *
 * mtftl_lane_write() never sleeps and may be called from .map; mtftl_lanes_kick() in any context;
 * what starts, stops or moves threads sleeps.
 */
#ifndef MTFTL_LANE_H
#define MTFTL_LANE_H

#include <linux/bio.h>

#include "device/ftl.h"

int mtftl_lanes_init(void);	/* of the module */
void mtftl_lanes_exit(void);

int mtftl_lanes_alloc(struct mtftl *ftl);
int mtftl_lanes_start(struct mtftl *ftl);
/* They are drained, or nothing helps any more. No unit of theirs is in flight afterwards. */
void mtftl_lanes_stop(struct mtftl *ftl);
void mtftl_lanes_free(struct mtftl *ftl);

/* Completes the bio, now or later. */
void mtftl_lane_write(struct mtftl *ftl, struct bio *bio);

/* There may be something to do: space, or a flush that wants what is buffered. */
void mtftl_lanes_kick(struct mtftl *ftl);
/*
 * A flush wants so many blocks. If they fit into one unit, one lane takes all writes for a while.
 * @through: and what flushes want goes to flash at once. The flusher.
 */
void mtftl_lanes_gather(struct mtftl *ftl, u64 blocks, bool through);
bool mtftl_lanes_go_through(const struct mtftl *ftl);
/* A flush is about to be asked for: a hint. Any context. */
void mtftl_lanes_hurry(struct mtftl *ftl);
/* So many blocks may enter the buffers while users are slowed. Any context. */
void mtftl_lanes_allow(struct mtftl *ftl, u32 blocks);
/* The device gives back: bios that wait, and none waits afterwards. */
void mtftl_lanes_give_back(struct mtftl *ftl);

/* No unit of theirs is in flight. */
bool mtftl_lanes_landed(struct mtftl *ftl);
/* What is buffered finds no place; @drain: what a flush waits for. */
bool mtftl_lanes_stuck(struct mtftl *ftl, bool drain);

/*
 * A line each: how many writes that waited for a slot did so for 0, 1, 2-3, 4-7, ... microseconds.
 */
void mtftl_lanes_tell_latency(struct mtftl *ftl, char *result, unsigned int maxlen);

#endif
