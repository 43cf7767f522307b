// SPDX-License-Identifier: GPL-2.0
/*
 * What follows from the table line, the drive and its format: see config.h.
 */
#include "device/config.h"

#include <linux/log2.h>
#include <linux/minmax.h>

#define MIN_LOG			16384u	/* units between two checkpoints at least */

void mtftl_config_set_format(struct mtftl_config *config, const struct mtftl_sb_info *info)
{
	config->header_blocks = mtftl_unit_head(info->oob, MTFTL_UNIT_DATA);
	config->seed = mtftl_seed(info->uuid, info->key);
}

u32 mtftl_config_spare_zones(const struct mtftl_config *config)
{
	return mtftl_spare_zones(config->nr_zones, config->capacity, config->logical_blocks,
				 !config->header_blocks);
}

/* The rest of the limits, once lanes, buffers and budget are known. */
static void set_limits(struct mtftl_config *config)
{
	struct mtftl_admit_limits *limits = &config->limits;

	limits->buffered = 2 * config->buffer_entries;
	limits->slack = config->nr_lanes * (config->write_unit + config->header_blocks);
	limits->data_zones = config->budget.data_zones;
	limits->gc_shares = config->budget.gc_shares;
	limits->gc_apart = config->placement->gc_classes;
	mtftl_admit_reserve(limits, mtftl_config_spare_zones(config), config->nr_zones,
			    limits->low_water);
}

int mtftl_config_fit(struct mtftl_config *config, u32 open_limit)
{
	struct mtftl_admit_limits *limits = &config->limits;

	static_assert(MTFTL_GC_RESERVE_ZONES >= MTFTL_ADMIT_LEAST_SPARE);
	limits->smallest = config->header_blocks + 1;
	limits->usable = mtftl_admit_room(limits, mtftl_usable_blocks(config));
	mtftl_admit_keep(limits, mtftl_config_spare_zones(config), config->capacity,
			 config->write_unit, &config->buffer_entries);
	config->device_in_zones = mtftl_user_zones(config->capacity, config->logical_blocks,
						   !config->header_blocks);
	/* A lane of less than a unit would never compose a full one. */
	config->nr_lanes = clamp(config->buffer_entries / config->write_unit, 1u, config->nr_lanes);
	config->write_unit = min(config->write_unit, config->buffer_entries);
	config->lane_shift = order_base_2(max(config->buffer_entries / config->nr_lanes, 2u));
	if ((u64)config->nr_lanes << config->lane_shift > MTFTL_MAX_SLOTS)
		return -ERANGE;
	if (mtftl_budget(open_limit, config->nr_lanes, config->nr_zones, config->placement,
			 &config->budget))
		return -EINVAL;
	config->unwritten_life = mtftl_life_new(config->device_in_zones);
	config->unwritten_class = mtftl_class_written(config->placement, config->unwritten_life,
						      config->device_in_zones,
						      config->budget.user_classes);
	set_limits(config);
	mtftl_assert(config->write_unit && config->nr_lanes &&
		     config->nr_lanes <= config->buffer_entries,
		     "%u lanes, %u slots", config->nr_lanes, config->buffer_entries);
	/* A checkpoint costs little beside what is written in between: 1% with full units. */
	config->checkpoint_after = max(2u * mtftl_checkpoint_blocks(config), MIN_LOG);
	return 0;
}
