// SPDX-License-Identifier: GPL-2.0
/*
 * Lives of zones: see life.h.
 */
#include "zone/life.h"

#include "device/rw.h"
#include "map/map.h"

/*
 * A write failed because the device had finished the zone. Devices may do so with zones that are
 * open for long, or after an internal error. The zone is as good as before. Asked once a life,
 * before we finish the zone ourselves. If the zone holds no unit of this life, the write failed for
 * another reason: a device that ends each zone so would keep us busy for ever.
 */
bool mtftl_zone_was_finished(struct mtftl_zone *zone)
{
	if (!zone->judged)
		zone->finished = zone->first_seq &&
				 mtftl_zone_condition(zone->ftl, zone->index) ==
				 BLK_ZONE_COND_FULL;
	zone->judged = true;
	return zone->finished;
}

/*
 * It cannot be filled, but must not stay active: the device counts it. Where that is
 * refused the zone is read-only or offline: not active either, and of no more use.
 */
void mtftl_zone_finish_broken(struct mtftl_zone *zone)
{
	struct mtftl *ftl = zone->ftl;

	/* Its units have landed: what fails now is the zone. */
	mtftl_assert(zone->broken && !READ_ONCE(zone->in_flight), "zone %u: %u in flight",
		     zone->index, zone->in_flight);
	if (mtftl_zone_was_finished(zone))
		return;
	zone->failed_lives++;
	if (mtftl_zone_mgmt(ftl, zone->index, REQ_OP_ZONE_FINISH))
		zone->failed_lives = MTFTL_ZONE_LIVES;
}

/* It is not written any more, and holds nothing. */
void mtftl_zone_retire(struct mtftl_zone *zone)
{
	mtftl_assert(!mtftl_map_valid(zone->ftl, zone->index), "zone %u: %u blocks are valid",
		     zone->index, mtftl_map_valid(zone->ftl, zone->index));
	mtftl_assert(zone->state == MTFTL_ZONE_CKPT || zone->state == MTFTL_ZONE_RESETTING,
		     "zone %u: state %u", zone->index, zone->state);
	mtftl_zone_move(zone, MTFTL_ZONE_BAD);
	mtftl_warn(zone->ftl, "zone %u retired", zone->index);
	mtftl_tell_news(zone->ftl);
}

/*
 * It was reset: see reset.c. A refusal may pass, as a failed write may: GC comes back to the zone.
 * One that is refused again, or must not be written any more, retires.
 */
void mtftl_zone_reset_done(struct mtftl_zone *zone, bool ok)
{
	struct mtftl *ftl = zone->ftl;

	mtftl_assert(zone->state == MTFTL_ZONE_RESETTING && !READ_ONCE(zone->in_flight),
		     "zone %u: state %u, %u in flight", zone->index, zone->state, zone->in_flight);
	mtftl_assert(!mtftl_map_valid(ftl, zone->index), "zone %u: %u blocks are valid",
		     zone->index, mtftl_map_valid(ftl, zone->index));
	if (ok)
		zone->erase_count++;
	if (!ok && !mtftl_zone_is_worn_out(zone) && ++zone->failed_lives < MTFTL_ZONE_LIVES) {
		mtftl_warn(ftl, "zone %u: reset failed, trying again in 10 s", zone->index);
		mtftl_zone_move(zone, MTFTL_ZONE_FULL);
		mtftl_space_appeared(ftl);
		return;
	}
	zone->wp = 0;
	zone->quiet_wp = 0;
	zone->first_seq = 0;
	zone->ranges_seq = 0;
	zone->broken = false;
	zone->judged = false;
	if (ok) {
		mtftl_zones_note_back(zone);
		mtftl_zone_move(zone, MTFTL_ZONE_EMPTY);
	} else {
		mtftl_zone_retire(zone);
	}
	mtftl_space_appeared(ftl);
}
