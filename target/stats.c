// SPDX-License-Identifier: GPL-2.0
/*
 * What the target tells: status line, messages, and the switch to read-only.
 * Counters are per CPU and only ever added to.
 */
#include "ftl.h"

static void sum_stats(struct mtftl *ftl, struct mtftl_cpu_stats *sum)
{
	const unsigned int words = sizeof(*sum) / sizeof(u64);
	unsigned int cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu)
		for (i = 0; i < words; i++)
			((u64 *)sum)[i] += ((u64 *)per_cpu_ptr(ftl->stats, cpu))[i];
}

void mtftl_status(struct mtftl *ftl, char *result, unsigned int maxlen)
{
	struct mtftl_cpu_stats s;
	unsigned int sz = 0, i;

	sum_stats(ftl, &s);
	DMEMIT("%s", READ_ONCE(ftl->read_only) ? "read-only" : "rw");
	DMEMIT(" zones %u/%u open %u/%u", mtftl_zones_free_count(ftl), ftl->nr_zones,
	       ftl->zones_in_use, ftl->budget.data_zones);
	DMEMIT(" written %llu overwritten %llu read %llu hits %llu trimmed %llu", s.user_writes,
	       s.user_overwrites, s.user_reads, s.buffer_reads, s.user_trims);
	DMEMIT(" units %llu data %llu gc %llu meta %llu", s.units, s.data_blocks, s.gc_blocks,
	       s.meta_blocks);
	DMEMIT(" waits %llu flushes %llu errors %llu/%llu", s.waits, s.flushes, s.read_errors,
	       s.write_errors);
	DMEMIT(" seq %lld lanes %u", atomic64_read(&ftl->seq), ftl->nr_lanes);
	for (i = 0; i < ftl->nr_lanes; i++)
		DMEMIT("%c%llu", i ? ',' : ' ', READ_ONCE(ftl->lanes[i].head) -
						READ_ONCE(ftl->lanes[i].tail));
}

int mtftl_message(struct mtftl *ftl, unsigned int argc, char **argv)
{
	if (argc == 1 && !strcasecmp(argv[0], "checkpoint"))
		return mtftl_checkpoint(ftl, false);
	mtftl_err(ftl, "message %s is not known, expected checkpoint", argv[0]);
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
