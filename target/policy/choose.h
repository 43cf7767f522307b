/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Choices among full zones, in steps that do not grow with the device: pure. Each choice looks at a
 * part of all zones, in turn, and once more at the best ones of earlier looks.
 *
 * With up to MTFTL_LOOKS zones a part is all of them. With more, the choice is at least as good as
 * each zone was at the last look at it, fewer than MTFTL_KEPT choices ago: of the zones that were
 * better then, and were kept, there were more than choices since. That holds because the score of a
 * full zone never falls, and a choice takes one zone. If nothing is kept any more, a choice looks
 * at all zones. So it does if scores go by another rule, and the owner says so.
 */
#ifndef MTFTL_CHOOSE_H
#define MTFTL_CHOOSE_H

#include "lib/pure.h"

#define MTFTL_LOOKS	4096u
#define MTFTL_KEPT	64u
#define MTFTL_NO_ZONE	(~0u)
#define MTFTL_FIRST_OF_ALL	(~0ull)	/* score of a zone that has to be cleared */

struct mtftl_seen {
	u32 zone;
	u32 erase_count;
	u64 score;		/* 0: not worth it */
	u64 before;		/* of the same score, the lowest comes first */
};

/* By erase counts, of a round of looks at all zones. */
struct mtftl_worn {
	u32 zone;		/* the one that was erased least, or MTFTL_NO_ZONE */
	u32 least, most;
	u64 before;		/* as that zone has it */
};

struct mtftl_chooser {
	u32 nr_zones;
	u32 part;		/* zones that each choice looks at */
	u32 hand;		/* the next one */
	u32 nr_kept;
	struct mtftl_seen kept[MTFTL_KEPT];	/* the best one first */
	struct mtftl_worn worn[2];	/* of the round under way, and of the last one */
	u32 turn;			/* choices for which wear might have counted */
};

void mtftl_chooser_init(struct mtftl_chooser *chooser, u32 nr_zones);
/*
 * The zone with the highest score, or MTFTL_NO_ZONE. If nothing that was kept is worth it, or if
 * @whole, it looks at all zones. @look fills in all but the zone. If it returns false, the zone is
 * no candidate in this choice: it is neither kept, nor does its erase count matter.
 */
u32 mtftl_choose(struct mtftl_chooser *chooser, bool whole,
		 bool (*look)(void *data, u32 zone, struct mtftl_seen *seen), void *data);
/* Scores go by another rule from now on. */
void mtftl_choose_anew(struct mtftl_chooser *chooser);
/*
 * Each @interval times: the one that was erased least, if others were erased over @spread times
 * more. It is to be taken, or MTFTL_NO_ZONE. With more than MTFTL_LOOKS zones, of those that were
 * looked at in this round and in the last one.
 */
u32 mtftl_choose_for_wear(struct mtftl_chooser *chooser, u32 interval, u32 spread,
			  bool (*look)(void *data, u32 zone, struct mtftl_seen *seen), void *data);

#endif
