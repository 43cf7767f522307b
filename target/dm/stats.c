// SPDX-License-Identifier: GPL-2.0
/*
 * What the target tells on request: see stats.h. Counters are only ever added to: "reset_stats"
 * moves the origin.
 */
#include "dm/stats.h"

#include "device/options.h"
#include "device/seq.h"
#include "device/space.h"
#include "durable/checkpoint.h"
#include "gc/gc.h"
#include "io/lane.h"
#include "map/map.h"
#include "map/ring.h"
#include "zone/zones.h"

void mtftl_origin_begin(struct mtftl_origin *origin)
{
	origin->counted = ktime_get_boottime_seconds();
	/* The mount itself may have told news: that is no later. */
	WRITE_ONCE(origin->changed, origin->counted);
}

static void stats_since(struct mtftl *ftl, const struct mtftl_cpu_stats *origin,
			struct mtftl_cpu_stats *s)
{
	u64 *out = (u64 *)s;
	unsigned int i;

	mtftl_stats_sum(ftl, s);
	for (i = 0; i < sizeof(*s) / sizeof(u64); i++)
		out[i] -= ((const u64 *)origin)[i];
}

static const char *gc_state(struct mtftl *ftl)
{
	if (mtftl_space_is_gated(ftl))
		return "short";
	return mtftl_space_is_paced(ftl) ? "active" : "idle";
}

void mtftl_status(struct mtftl *ftl, const struct mtftl_origin *origin, char *result,
		  unsigned int maxlen)
{
	const struct mtftl_config *config = &ftl->config;
	time64_t now = ktime_get_boottime_seconds();
	u32 i, least = U32_MAX, most = 0;
	u64 flash, waf, total = 0, mapped = 0;
	struct mtftl_cpu_stats s;
	unsigned int sz = 0;

	stats_since(ftl, &origin->stats, &s);
	s.units *= ftl->config.header_blocks;
	flash = s.data_blocks + s.gc_blocks + s.units + s.meta_blocks;
	waf = s.user_writes ? div64_u64(flash * 1000, s.user_writes) : 1000;
	for (i = 0; i < config->nr_zones; i++) {
		least = min(least, mtftl_zone(ftl, i)->erase_count);
		most = max(most, mtftl_zone(ftl, i)->erase_count);
		total += mtftl_zone(ftl, i)->erase_count;
		mapped += mtftl_map_valid(ftl, i);
	}
	DMEMIT("%s lanes %u fill ", mtftl_is_read_only(ftl) ? "read-only" : "rw",
	       config->nr_lanes);
	for (i = 0; i < config->nr_lanes; i++)
		DMEMIT("%s%u", i ? "," : "", mtftl_ring_used(mtftl_ring(ftl, i)));
	DMEMIT(" entries %u zones %u free %u open %u open_limit %u full %u resetting %u bad %u",
	       mtftl_ring(ftl, 0)->entries, config->nr_zones,
	       mtftl_zones_count(ftl, MTFTL_ZONE_EMPTY), mtftl_zones_in_use(ftl),
	       config->budget.data_zones, mtftl_zones_count(ftl, MTFTL_ZONE_FULL),
	       mtftl_zones_count(ftl, MTFTL_ZONE_RESETTING),
	       mtftl_zones_count(ftl, MTFTL_ZONE_BAD));
	DMEMIT(" mapped %llu", mapped);
	DMEMIT(" gc %s low_water %u reserve %u victims %llu credit %lld", gc_state(ftl),
	       config->limits.low_water, config->limits.reserve, s.victims,
	       mtftl_space_credit(ftl));
	DMEMIT(" written %llu absorbed %llu trimmed %llu read %llu hits %llu", s.user_writes,
	       s.user_overwrites, s.user_trims, s.user_reads, s.buffer_reads);
	DMEMIT(" flash_data %llu flash_gc %llu flash_headers %llu flash_meta %llu waf %llu.%03llu",
	       s.data_blocks, s.gc_blocks, s.units, s.meta_blocks, waf / 1000, waf % 1000);
	DMEMIT(" waits %llu flushes %llu checkpoints %llu since_checkpoint %llu seq %llu", s.waits,
	       s.flushes, s.checkpoints, mtftl_seq_since_checkpoint(ftl), mtftl_seq_last(ftl));
	DMEMIT(" seconds %lld unchanged %lld", now - origin->counted,
	       now - READ_ONCE(origin->changed));
	DMEMIT(" read_errors %llu write_errors %llu lost %llu", s.read_errors, s.write_errors,
	       s.lost_blocks);
	DMEMIT(" wear_least %u wear_most %u wear_total %llu", least, most, total);
}

/* Messages */

static int message_checkpoint(struct mtftl *ftl, const char *value)
{
	return mtftl_checkpoint(ftl, false);
}

static int message_gc(struct mtftl *ftl, const char *value)
{
	mtftl_gc_force(ftl);
	return 0;
}

static int message_low_water(struct mtftl *ftl, const char *value)
{
	u32 zones;

	if (kstrtou32(value, 10, &zones) || zones <= ftl->config.limits.reserve ||
	    zones > ftl->config.nr_zones / 2) {
		mtftl_err(ftl, "low_water is %s, expected %u to %u", value,
			  ftl->config.limits.reserve + 1, ftl->config.nr_zones / 2);
		return -EINVAL;
	}
	WRITE_ONCE(ftl->config.limits.low_water, zones);
	mtftl_space_kick_gc(ftl);
	return 0;
}

static int message_gc_policy(struct mtftl *ftl, const char *value)
{
	char expected[MTFTL_OPTION_TEXT];
	int r = mtftl_option_set(&ftl->config, "gc_policy", value, expected);

	if (r)
		mtftl_err(ftl, "gc_policy is %s, expected %s", value, expected);
	return r;
}

static const struct message {
	const char *name;
	unsigned int argc;
	int (*run)(struct mtftl *ftl, const char *value);
	bool sends;		/* commands to the drive */
} messages[] = {
	{ "checkpoint",		1,	message_checkpoint,	true },
	{ "gc",			1,	message_gc,		true },
	{ "low_water",		2,	message_low_water },
	{ "gc_policy",		2,	message_gc_policy },
};

bool mtftl_message_sends(const char *name)
{
	const struct message *message;

	for (message = messages; message < messages + ARRAY_SIZE(messages); message++)
		if (!strcmp(message->name, name))
			return message->sends;
	return false;
}

int mtftl_message(struct mtftl *ftl, struct mtftl_origin *origin, unsigned int argc,
		  char **argv, char *result, unsigned int maxlen)
{
	const struct message *message;

	if (argc == 1 && !strcmp(argv[0], "latency")) {
		mtftl_lanes_tell_latency(ftl, result, maxlen);
		return 1;
	}
	if (argc == 1 && !strcmp(argv[0], "zones")) {
		mtftl_zones_tell(ftl, result, maxlen);
		return 1;
	}
	if (argc == 1 && !strcmp(argv[0], "reset_stats")) {
		mtftl_stats_sum(ftl, &origin->stats);
		origin->counted = ktime_get_boottime_seconds();
		return 0;
	}
	for (message = messages; message < messages + ARRAY_SIZE(messages); message++) {
		if (strcmp(message->name, argv[0]))
			continue;
		if (argc == message->argc)
			return message->run(ftl, argv[argc - 1]);
		mtftl_err(ftl, "message %s has %u words, expected %u", argv[0], argc,
			  message->argc);
		return -EINVAL;
	}
	mtftl_err(ftl, "message %s is not known, expected checkpoint, gc, latency, zones, reset_stats, low_water <zones> or gc_policy <name>",
		  argv[0]);
	return -EINVAL;
}
