/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lives of zones: what becomes of one whose write failed, or that was reset. Each life begins with
 * a reset. All of it sleeps, and is for the code to which the zone belongs.
 */
#ifndef MTFTL_LIFE_H
#define MTFTL_LIFE_H

#include "zone/zones.h"

/* GC leaves a zone for so long that could not be read or reset. */
#define MTFTL_GIVEN_UP	(2 * MTFTL_LAST_HOPE)

bool mtftl_zone_was_finished(struct mtftl_zone *zone);
void mtftl_zone_finish_broken(struct mtftl_zone *zone);
void mtftl_zone_reset_done(struct mtftl_zone *zone, bool ok);
void mtftl_zone_retire(struct mtftl_zone *zone);

#endif
