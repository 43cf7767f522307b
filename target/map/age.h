/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How old what lies in a zone is, and how long it will live: for placement, see policy.h. Ages
 * count in zones that users have begun. Any context; hints, so nothing orders them: they need no
 * more than to be about right.
 */
#ifndef MTFTL_AGE_H
#define MTFTL_AGE_H

#include "map/entries.h"

struct mtftl_slot;

static inline u32 mtftl_map_age(const struct mtftl *ftl, u32 zone)
{
	u32 age = mtftl_map_clock(ftl) - mtftl_map_born(ftl, zone);

	mtftl_assert(zone < ftl->config.nr_zones, "zone %u", zone);
	/* It was written while this looked. */
	return age > ~0u / 2 ? 0 : age;
}

/* The life of a block that was never written. */
u32 mtftl_age_unwritten(const struct mtftl *ftl);
/* Life and class of the slot's new data, which takes the place of what the map says is @old. */
void mtftl_age_slot(const struct mtftl *ftl, struct mtftl_slot *slot, u32 old);
/* The life of blocks that GC moves out of the zone, and the class of such a life. */
u32 mtftl_age_moved(const struct mtftl *ftl, u32 zone);
u32 mtftl_age_class_moved(const struct mtftl *ftl, u32 life);
/* A mount knows no more of a zone than when it was begun. */
void mtftl_age_guess(struct mtftl *ftl, u32 zone, u32 born);

#endif
