/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Space as a writer sees it: may the buffers take more, may a lane send what is buffered, and what
 * wakes a writer when that changes. Zones and GC, in the folders above, decide it.
 *
 * All of it is flags and counts, which may be read in any context. A writer notes
 * mtftl_space_gen() before it looks for place. If it finds none, it tries again once the
 * generation has changed.
 *
 * admit.h has the decisions. Here are the state that they look at, and their answers.
 */
#ifndef MTFTL_SPACE_H
#define MTFTL_SPACE_H

#include <linux/atomic.h>
#include <linux/ktime.h>
#include <linux/wait.h>

#include "device/event.h"
#include "device/ftl.h"

struct mtftl_space {
	/* Counts up whenever place may have appeared. */
	atomic_t gen ____cacheline_aligned_in_smp;
	/* Blocks that users may write while paced. */
	atomic64_t credit ____cacheline_aligned_in_smp;
	/* Lanes read it for each write. Buffers take nothing: only the reserve is left. */
	bool gated ____cacheline_aligned_in_smp;
	bool slowed;			/* before that: lanes take what is allowed by time */
	ktime_t slowed_since;		/* a hint */
	bool paced;			/* GC is at work: users may write what credit allows */
	bool unpaced;			/* but it finds no zone itself: users empty their buffers */
	struct mtftl_event appeared;
	wait_queue_head_t wait;		/* for all that moves: space, lanes that drained */
	wait_queue_head_t gc_wait;	/* GC, for zones that are short */
	/* Changes under the zones' lock. Gated and paced are above: see mtftl_space_look(). */
	struct mtftl_admit_state state ____cacheline_aligned_in_smp;
};

int mtftl_space_alloc(struct mtftl *ftl);
void mtftl_space_free(struct mtftl *ftl);

/* There is a zone, or credit for users: writers that were refused may try again. */
void mtftl_space_appeared(struct mtftl *ftl);
/* @heard is called then, in any context. */
void mtftl_space_on_appeared(struct mtftl *ftl, void (*heard)(struct mtftl *ftl));
/* Wait until no pause is on, then begin to send: see pause.h. Or until @over(). Both sleep. */
void mtftl_space_send_begin(struct mtftl *ftl);
void mtftl_space_sit_out_pause(struct mtftl *ftl, bool (*over)(void *data), void *data);
/* Those that await something look again: something has moved. */
void mtftl_space_wake(struct mtftl *ftl);
/* GC may have something to do. */
void mtftl_space_kick_gc(struct mtftl *ftl);

/* Sleep until @condition holds, or for @timeout jiffies: 0. The calls above make it look again. */
#define mtftl_space_await(ftl, condition, timeout) \
	wait_event_timeout((ftl)->space->wait, condition, timeout)
#define mtftl_space_await_gc(ftl, condition, timeout) \
	wait_event_idle_timeout((ftl)->space->gc_wait, condition, timeout)

/* The state as it is now, or was a moment ago. */
void mtftl_space_look(const struct mtftl *ftl, struct mtftl_admit_state *state);
bool mtftl_space_has_no_victim(const struct mtftl *ftl);
struct mtftl_sources mtftl_space_sources(const struct mtftl *ftl, enum mtftl_right right,
					 bool buffers_empty);
/* Lock of the zones held. */
bool mtftl_space_may_open(const struct mtftl *ftl, enum mtftl_right right, bool buffers_empty);
/* It changes, and the gate with it. Lock of the zones held. */
void mtftl_space_begin_zones(struct mtftl *ftl, u32 nr);
void mtftl_space_move_zone(struct mtftl *ftl, enum mtftl_zone_state from, enum mtftl_zone_state to);
void mtftl_space_set_room(struct mtftl *ftl, u32 users, u32 gc, bool gc_has_zone);
void mtftl_space_set_gc_owes(struct mtftl *ftl, u32 blocks);
void mtftl_space_set_no_victim(struct mtftl *ftl, bool none);
void mtftl_space_set_slowed(struct mtftl *ftl, bool slowed);
/* Then and all the time since. */
bool mtftl_space_is_slowed_since(const struct mtftl *ftl, ktime_t then);
/* True: users are paced from now on, or no more. */
bool mtftl_space_pace(struct mtftl *ftl, bool gc_works);
void mtftl_space_set_unpaced(struct mtftl *ftl, bool unpaced);
void mtftl_space_set_credit(struct mtftl *ftl, s64 credit);
s64 mtftl_space_credit(const struct mtftl *ftl);
/*
 * Composing has to wait for credit. While GC itself finds no zone, what is buffered goes
 * first: GC may have more of the zones that are left when the buffers are empty.
 */
bool mtftl_space_is_spent(const struct mtftl *ftl);

static inline u32 mtftl_space_gen(const struct mtftl *ftl)
{
	return atomic_read(&ftl->space->gen);
}

static inline u32 mtftl_space_zones(const struct mtftl *ftl, enum mtftl_zone_state state)
{
	return READ_ONCE(ftl->space->state.zones[state]);
}

static inline bool mtftl_space_is_gated(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->space->gated);
}

static inline bool mtftl_space_is_slowed(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->space->slowed);
}

static inline bool mtftl_space_is_paced(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->space->paced);
}

/* A unit with so many blocks takes place. */
static inline void mtftl_space_charge(struct mtftl *ftl, u32 blocks)
{
	if (mtftl_space_is_paced(ftl))
		atomic64_sub(1 + blocks, &ftl->space->credit);
}

#endif
