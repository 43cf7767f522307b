// SPDX-License-Identifier: GPL-2.0
/*
 * What follows from the table line, the drive and its format: see config.h.
 */
#include "device/config.h"

#include <linux/log2.h>
#include <linux/minmax.h>

#define MIN_LOG			16384u	/* units between two checkpoints at least */
#define APART_SPARE		16u	/* zones: of fewer, one that is half full is too much */

bool mtftl_config_set_streams(struct mtftl_config *config, const char *name)
{
	config->streams = mtftl_placement(name);
	return config->streams;
}

bool mtftl_config_set_gc_policy(struct mtftl_config *config, const char *name)
{
	const struct mtftl_victim_policy *policy = mtftl_victim_policy(name);

	if (policy)
		WRITE_ONCE(config->gc_policy, policy);
	return policy;
}

void mtftl_config_set_format(struct mtftl_config *config, const struct mtftl_sb_info *info)
{
	config->header_blocks = mtftl_unit_head(info->oob, MTFTL_UNIT_DATA);
	config->seed = mtftl_seed(info->uuid, info->key);
}

/* Zones that the data of users takes. */
static u32 zones_of_users(const struct mtftl_config *config)
{
	u64 blocks = config->logical_blocks;

	if (config->header_blocks)
		blocks += config->logical_blocks / 32;
	return max_t(u32, DIV_ROUND_UP_ULL(blocks, mtftl_usable_blocks(config)), 1);
}

u32 mtftl_config_spare_zones(const struct mtftl_config *config)
{
	u32 ckpt = mtftl_ckpt_zones(config->nr_zones, config->capacity, config->logical_blocks);
	u32 zones = config->nr_zones - MTFTL_NR_SB_ZONES - 2 * ckpt;
	u32 needed = zones_of_users(config);

	return zones > needed ? zones - needed : 0;
}

/*
 * Zones for what is buffered, were each unit as small as can be, and one for when a write to those
 * fails. On a device with little to spare, the buffer gets smaller instead.
 */
static void set_buffer_zones(struct mtftl_config *config)
{
	u32 spare = mtftl_config_spare_zones(config), most = max(spare / 2, MTFTL_GC_RESERVE_ZONES);

	config->buffer_zones = 1 + DIV_ROUND_UP(2 * config->buffer_entries, config->capacity);
	if (config->buffer_zones + 2 > most) {
		config->buffer_zones = most - 2;
		config->buffer_entries = (config->buffer_zones - 1) * config->capacity / 2;
	}
	config->device_in_zones = zones_of_users(config);
	config->flush_zones = most > MTFTL_GC_RESERVE_ZONES ? 2 : 1;
	config->classes_own_zones = spare >= APART_SPARE;
}

/*
 * Zones that users leave to GC: those that are kept, and one to move into; with a zone that both
 * write to, one more.
 */
static void set_reserve(struct mtftl_config *config)
{
	u32 low_water;

	config->reserve = config->buffer_zones + 1 + config->budget.gc_shares;
	low_water = config->reserve + mtftl_rate_ready(mtftl_config_spare_zones(config),
						       config->nr_zones);
	/* GC that begins when users have to wait already would never begin. */
	config->low_water = config->low_water ? max(config->low_water, config->reserve + 1) :
						low_water;
}

int mtftl_config_fit(struct mtftl_config *config, u32 open_limit)
{
	set_buffer_zones(config);
	/* A lane of less than a unit would never compose a full one. */
	config->nr_lanes = clamp(config->buffer_entries / config->write_unit, 1u, config->nr_lanes);
	config->write_unit = min(config->write_unit, config->buffer_entries);
	config->lane_shift = order_base_2(max(config->buffer_entries / config->nr_lanes, 2u));
	if ((u64)config->nr_lanes << config->lane_shift > MTFTL_MAX_SLOTS)
		return -ERANGE;
	if (mtftl_budget(open_limit, config->nr_lanes, config->nr_zones, config->streams,
			 &config->budget))
		return -EINVAL;
	set_reserve(config);
	/* A checkpoint costs little beside what is written in between: 1% with full units. */
	config->checkpoint_after = max(2u * mtftl_checkpoint_blocks(config), MIN_LOG);
	return 0;
}
