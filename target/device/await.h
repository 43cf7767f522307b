/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waiting for place: one loop for every right, and one end of it. A right notes the generation of
 * space in its struct mtftl_wait, and looks for place. If there is none, it waits, or does
 * something else for a while, and begins again.
 *
 * What the state must be for a wait to end says admit.h. Process context.
 */
#ifndef MTFTL_AWAIT_H
#define MTFTL_AWAIT_H

#include "device/ftl.h"

struct mtftl_wait {
	enum mtftl_right right;
	u32 gen;		/* mtftl_space_gen() before it looked for place */
	u64 moved;		/* numbers drawn, and space that appeared; 0: it does not wait */
	unsigned long since;	/* jiffies: nothing has moved */
};

/*
 * Nothing has moved for MTFTL_LAST_HOPE, and by @state nothing will: the device turns read-only.
 * True if it is.
 */
bool mtftl_is_dead_end(struct mtftl *ftl, const struct mtftl_admit_state *state,
		       struct mtftl_wait *wait);

/* Sleeps until another look is worth it, or @over() says so. False: it is a dead end. */
bool mtftl_wait_for_place(struct mtftl *ftl, const struct mtftl_admit_state *state,
			  struct mtftl_wait *wait, bool (*over)(void *data), void *data);

#endif
