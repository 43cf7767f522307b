// SPDX-License-Identifier: GPL-2.0
/*
 * Ages and lives, as placement asks for them: see age.h.
 */
#include "map/age.h"

#include "device/device.h"
#include "map/ring.h"
#include "policy/hint.h"

u32 mtftl_age_unwritten(const struct mtftl *ftl)
{
	return ftl->config.unwritten_life;
}

/* Unless its writer knows better: what is replaced tells how long the block lived. */
void mtftl_age_slot(const struct mtftl *ftl, struct mtftl_slot *slot, u32 old)
{
	const struct mtftl_config *config = &ftl->config;
	u32 life, zone;

	/* Computed once: a user waits. */
	if (!mtftl_hint_tells(slot->hint) && !mtftl_is_page(old) && !mtftl_is_slot(old)) {
		slot->life = config->unwritten_life;
		slot->class = config->unwritten_class;
		return;
	}
	if (mtftl_hint_tells(slot->hint)) {
		life = mtftl_life_hinted(slot->hint, config->device_in_zones);
	} else if (mtftl_is_page(old)) {
		zone = mtftl_page_zone(ftl, old);
		life = mtftl_life_written(config->placement, mtftl_map_life(ftl, zone),
					  mtftl_map_age(ftl, zone));
	} else {
		life = mtftl_life_written(config->placement, mtftl_slot(ftl, old, NULL)->life, 0);
	}
	slot->life = life;
	slot->class = mtftl_class_written(config->placement, life, config->device_in_zones,
					  config->budget.user_classes);
	mtftl_assert(slot->class < config->budget.user_classes, "life %u", life);
}

u32 mtftl_age_moved(const struct mtftl *ftl, u32 zone)
{
	return mtftl_life_moved(mtftl_map_life(ftl, zone), mtftl_map_age(ftl, zone));
}

u32 mtftl_age_class_moved(const struct mtftl *ftl, u32 life)
{
	const struct mtftl_config *config = &ftl->config;

	return mtftl_class_moved(config->placement, life, config->device_in_zones,
				 config->budget.gc_streams);
}

void mtftl_age_guess(struct mtftl *ftl, u32 zone, u32 born)
{
	mtftl_assert(born <= ftl->config.device_in_zones, "zone %u: %u", zone, born);
	mtftl_map_set_age(ftl, zone, born, mtftl_life(ftl->config.device_in_zones - born));
}
