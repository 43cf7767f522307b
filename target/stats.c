// SPDX-License-Identifier: GPL-2.0
/*
 * What the target tells: status line, messages, and the switch to read-only.
 * Counters are per CPU and only ever added to: "reset_stats" moves the origin.
 */
#include "ftl.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

#define NR_COUNTERS	(sizeof(struct mtftl_cpu_stats) / sizeof(u64))

static void sum_stats(struct mtftl *ftl, struct mtftl_cpu_stats *sum)
{
	u64 *out = (u64 *)sum;
	unsigned int cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu)
		for (i = 0; i < NR_COUNTERS; i++)
			out[i] += ((u64 *)per_cpu_ptr(ftl->stats, cpu))[i];
}

/* Writes that the device says it has: those before a flush are what that covers. */
u64 mtftl_taken(struct mtftl *ftl)
{
	unsigned int cpu;
	u64 taken = 0;

	for_each_possible_cpu(cpu)
		taken += READ_ONCE(per_cpu_ptr(ftl->stats, cpu)->taken);
	return taken;
}

/* None of them is under way. Who sends may be about to, unless it was told not to. */
bool mtftl_all_landed(struct mtftl *ftl)
{
	u64 sent = 0, landed = 0;
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		sent += READ_ONCE(per_cpu_ptr(ftl->stats, cpu)->sent);
	for_each_possible_cpu(cpu)
		landed += READ_ONCE(per_cpu_ptr(ftl->stats, cpu)->landed);
	return sent == landed;
}

static void stats_since_reset(struct mtftl *ftl, struct mtftl_cpu_stats *s)
{
	const u64 *origin = (const u64 *)&ftl->stats_origin;
	u64 *out = (u64 *)s;
	unsigned int i;

	sum_stats(ftl, s);
	for (i = 0; i < NR_COUNTERS; i++)
		out[i] -= origin[i];
}

static const char *gc_state(struct mtftl *ftl)
{
	if (READ_ONCE(ftl->gated))
		return "short";
	return mtftl_gc_active(ftl) ? "active" : "idle";
}

/* One line: the mode, then names and values, a list's items apart by commas. */
void mtftl_status(struct mtftl *ftl, char *result, unsigned int maxlen)
{
	u32 i, least = U32_MAX, most = 0;
	u64 flash, waf, total = 0;
	struct mtftl_cpu_stats s;
	unsigned int sz = 0;

	stats_since_reset(ftl, &s);
	flash = s.data_blocks + s.gc_blocks + s.units + s.meta_blocks;
	waf = s.user_writes ? div64_u64(flash * 1000, s.user_writes) : 1000;
	for (i = 0; i < ftl->nr_zones; i++) {
		least = min(least, ftl->zones[i].erase_count);
		most = max(most, ftl->zones[i].erase_count);
		total += ftl->zones[i].erase_count;
	}
	DMEMIT("%s lanes %u fill ", READ_ONCE(ftl->read_only) ? "read-only" : "rw",
	       ftl->nr_lanes);
	for (i = 0; i < ftl->nr_lanes; i++)
		DMEMIT("%s%llu", i ? "," : "", READ_ONCE(ftl->lanes[i].head) -
					       READ_ONCE(ftl->lanes[i].tail));
	DMEMIT(" entries %u zones %u free %u open %u open_limit %u full %u resetting %u bad %u",
	       ftl->lanes[0].entries, ftl->nr_zones, ftl->zone_count[MTFTL_ZONE_EMPTY],
	       ftl->zones_in_use, ftl->budget.data_zones, ftl->zone_count[MTFTL_ZONE_FULL],
	       ftl->zone_count[MTFTL_ZONE_RESETTING], ftl->zone_count[MTFTL_ZONE_BAD]);
	DMEMIT(" gc %s low_water %u reserve %u victims %llu credit %lld", gc_state(ftl),
	       ftl->low_water, ftl->reserve, s.victims, atomic64_read(&ftl->credit));
	DMEMIT(" written %llu absorbed %llu trimmed %llu read %llu hits %llu", s.user_writes,
	       s.user_overwrites, s.user_trims, s.user_reads, s.buffer_reads);
	DMEMIT(" flash_data %llu flash_gc %llu flash_headers %llu flash_meta %llu waf %llu.%03llu",
	       s.data_blocks, s.gc_blocks, s.units, s.meta_blocks, waf / 1000, waf % 1000);
	DMEMIT(" waits %llu flushes %llu checkpoints %llu log %llu seq %lld", s.waits, s.flushes,
	       s.checkpoints, mtftl_log_length(ftl), atomic64_read(&ftl->seq));
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

static int message_reset_stats(struct mtftl *ftl, const char *value)
{
	sum_stats(ftl, &ftl->stats_origin);
	return 0;
}

static int message_low_water(struct mtftl *ftl, const char *value)
{
	u32 zones;

	if (kstrtou32(value, 10, &zones) || zones <= ftl->reserve || zones > ftl->nr_zones / 2) {
		mtftl_err(ftl, "low_water is %s, expected %u to %u", value, ftl->reserve + 1,
			  ftl->nr_zones / 2);
		return -EINVAL;
	}
	WRITE_ONCE(ftl->low_water, zones);
	mtftl_gc_kick(ftl);
	return 0;
}

static int message_gc_policy(struct mtftl *ftl, const char *value)
{
	const struct mtftl_victim_policy *policy = mtftl_victim_policy(value);

	if (!policy) {
		mtftl_err(ftl, "gc_policy is %s, expected greedy or cost-benefit", value);
		return -EINVAL;
	}
	WRITE_ONCE(ftl->opt.gc_policy, policy);
	return 0;
}

/*
 * One line a lane: how many writes that waited for a slot did so for 0, 1, 2-3, 4-7, ...
 * microseconds. 1: there is a result.
 */
static int message_latency(struct mtftl *ftl, char *result, unsigned int maxlen)
{
	unsigned int sz = 0, i, b;

	for (i = 0; i < ftl->nr_lanes; i++) {
		DMEMIT("%u", i);
		for (b = 0; b < MTFTL_LATENCIES; b++)
			DMEMIT(" %llu", READ_ONCE(ftl->lanes[i].latency[b]));
		DMEMIT("\n");
	}
	return 1;
}

static const struct message {
	const char *name;
	unsigned int argc;
	int (*run)(struct mtftl *ftl, const char *value);
} messages[] = {
	{ "checkpoint",		1,	message_checkpoint },
	{ "gc",			1,	message_gc },
	{ "reset_stats",	1,	message_reset_stats },
	{ "low_water",		2,	message_low_water },
	{ "gc_policy",		2,	message_gc_policy },
};

int mtftl_message(struct mtftl *ftl, unsigned int argc, char **argv, char *result,
		  unsigned int maxlen)
{
	const struct message *message;

	if (argc == 1 && !strcmp(argv[0], "latency"))
		return message_latency(ftl, result, maxlen);
	for (message = messages; message < messages + ARRAY_SIZE(messages); message++) {
		if (strcmp(message->name, argv[0]))
			continue;
		if (argc == message->argc)
			return message->run(ftl, argv[argc - 1]);
		mtftl_err(ftl, "message %s has %u words, expected %u", argv[0], argc,
			  message->argc);
		return -EINVAL;
	}
	mtftl_err(ftl, "message %s is not known, expected checkpoint, gc, latency, reset_stats, low_water <zones> or gc_policy <name>",
		  argv[0]);
	return -EINVAL;
}

/* Once and for all: acknowledged data stays readable, whoever waits gets an error. */
void mtftl_set_read_only(struct mtftl *ftl, const char *why)
{
	if (xchg(&ftl->read_only, true))
		return;
	mtftl_err(ftl, "read-only: %s", why);
	mtftl_space_appeared(ftl);
	wake_up_all(&ftl->flush_wait);
}
