/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Blocks in order stay in order on flash, whatever is written between them. So a drive that stripes
 * its zones reads them from all dies at once, and the target need not know how it stripes.
 *
 * If several users write in order to one lane, each of them soon has a zone of its own. A unit goes
 * to the stream that continues behind the block before it. If another user has written there, the
 * unit goes to the next stream. Pure; each lane's writer has one of its own.
 */
#ifndef MTFTL_FOLLOW_H
#define MTFTL_FOLLOW_H

#include "device/config.h"

#define MTFTL_FOLLOW_UNITS	8u	/* that are remembered: they may be in flight */
#define MTFTL_FOLLOW_STREAMS	8u	/* that are looked at, the lane's own first */
#define MTFTL_FOLLOW_NOWHERE	(~0u)	/* no page */

struct mtftl_follow {
	struct {
		u32 lba, page;		/* behind the end of a unit */
	} ends[MTFTL_FOLLOW_UNITS];
	u32 at;				/* of them, the oldest */
	u32 moves;			/* to other streams, since one went on where it should */
	u32 rest;			/* units that stay at home, since moving does not help */
};

void mtftl_follow_init(struct mtftl_follow *follow);

/* The page behind the block before @lba, if a unit here ended with that. */
u32 mtftl_follow_page(const struct mtftl_follow *follow, u32 lba);
/* A unit ends before @lba, and its place before @page. */
void mtftl_follow_note(struct mtftl_follow *follow, u32 lba, u32 page);

/*
 * Which of @nr streams, the lane's own first, takes what should lie at @page. @next: the page that
 * each of them would write to.
 */
u32 mtftl_follow_choose(const struct mtftl_config *config, struct mtftl_follow *follow, u32 page,
			const u32 *next, u32 nr);

#endif
