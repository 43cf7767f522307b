// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for place: see await.h.
 */
#include "device/await.h"

#include <linux/jiffies.h>

#include "device/device.h"
#include "device/seq.h"
#include "device/space.h"

static const char *const dead_ends[MTFTL_NR_RIGHTS] = {
	[MTFTL_RIGHT_USER] = "no zone is left from which space could be gained",
	[MTFTL_RIGHT_FLUSH] = "no place is left for what has to be written",
	[MTFTL_RIGHT_RETRY] = "no place is left for what has to be written",
	[MTFTL_RIGHT_GC] = "no zone is left for what would have to be moved",
};

bool mtftl_is_dead_end(struct mtftl *ftl, const struct mtftl_admit_state *state,
		       struct mtftl_wait *wait)
{
	/* Never 0: that is a wait that has not begun. */
	u64 moved = 1 + mtftl_seq_last(ftl) + mtftl_space_gen(ftl);

	mtftl_assert(wait->right < MTFTL_NR_RIGHTS && dead_ends[wait->right], "right %u",
		     wait->right);
	if (wait->right == MTFTL_RIGHT_RETRY && mtftl_admit_is_out(state))
		mtftl_set_read_only(ftl, "a write failed and no zone is left for it");
	if (moved != wait->moved || mtftl_is_paused(ftl) ||
	    !mtftl_admit_is_dead_end(state, wait->right)) {
		wait->moved = moved;
		wait->since = jiffies;
	} else if (time_after_eq(jiffies, wait->since + MTFTL_LAST_HOPE)) {
		mtftl_set_read_only(ftl, dead_ends[wait->right]);
	}
	return mtftl_is_read_only(ftl);
}

bool mtftl_wait_for_place(struct mtftl *ftl, const struct mtftl_admit_state *state,
			  struct mtftl_wait *wait, bool (*over)(void *data), void *data)
{
	if (mtftl_is_dead_end(ftl, state, wait))
		return false;
	mtftl_space_await(ftl, wait->gen != mtftl_space_gen(ftl) || mtftl_is_read_only(ftl) ||
			  (over && over(data)), MTFTL_LAST_HOPE);
	return true;
}
