/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Streams: an open zone each, and the right to place units in it. Users' streams are shared out to
 * classes of data, GC has one for each of its own. Which right
 * may open which zone when few are empty, and what happens if one is full or a write to it fails.
 *
 * mtftl_stream_find() returns a stream locked; its caller takes place, or does not, and unlocks.
 * Process context; mtftl_stream_landed() and mtftl_stream_failed() are for completions.
 */
#ifndef MTFTL_STREAM_H
#define MTFTL_STREAM_H

#include <linux/mutex.h>

#include "device/event.h"
#include "zone/zones.h"

struct mtftl_stream {
	struct mutex lock;		/* taking place */
	struct mtftl *ftl;
	struct mtftl_zone *zone;	/* changes with its state */
} ____cacheline_aligned_in_smp;		/* lanes write to streams of their own */

/* Where a unit goes, or went. */
struct mtftl_extent {
	struct mtftl_zone *zone;
	u32 offset;
	u32 blocks;		/* header included */
	int failures;		/* mtftl_streams_failures() when it was sent */
};

int mtftl_streams_alloc(struct mtftl *ftl);
void mtftl_streams_free(struct mtftl *ftl);
/* Called when a zone was opened, with the stream's lock held. */
void mtftl_streams_on_open(struct mtftl *ftl, void (*heard)(struct mtftl *ftl));

/* What a writer looks for. */
struct mtftl_want {
	enum mtftl_right right;
	u32 class;		/* of users' data, or of GC's */
	unsigned int first;	/* of the streams that a users' class has */
	u32 least;		/* blocks */
};

/* A stream with room, locked, or NULL: see admit.h. @room: blocks that a unit may take. */
struct mtftl_stream *mtftl_stream_find(struct mtftl *ftl, const struct mtftl_want *want, u32 *room);
/*
 * The page that each stream of a class would write to, from @first on, @max of them at most; their
 * number. A moment's truth: others write.
 */
u32 mtftl_streams_next(const struct mtftl *ftl, u32 class, unsigned int first, u32 *next, u32 max);
/* @born, @life: of what goes there, see age.h. */
void mtftl_stream_take(struct mtftl_stream *stream, struct mtftl_extent *place, u32 blocks,
		       u32 born, u32 life);

/* Completed; @lbas: what it holds, for the footer. */
void mtftl_stream_landed(struct mtftl_extent *place, enum mtftl_unit_type type, u64 seq, u32 nr,
			 const u64 *lbas);
/* Failed, and about to go elsewhere. */
void mtftl_stream_failed(struct mtftl_extent *place);
/* The last failure does not count: the device had finished its zone. */
void mtftl_streams_forgive(struct mtftl *ftl);
/* Zones in a row that failed a write. */
int mtftl_streams_failures(const struct mtftl *ftl);

/* Left in zones that are open: a moment's truth, as good as pacing needs. */
u64 mtftl_streams_room(const struct mtftl *ftl);
/* Left in those that GC has to itself. */
u32 mtftl_streams_gc_room(const struct mtftl *ftl);
/* After a pause: zones that were to be closed meanwhile. */
void mtftl_streams_close_idle(struct mtftl *ftl);

#endif
