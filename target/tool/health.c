// SPDX-License-Identifier: GPL-2.0
/*
 * The conditions of a device, each with what to do about it: see health.h. The order is that in
 * which they are printed: the worst first. docs/use/status.md shows each of them.
 */
#include "health.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FULL_PERCENT	95	/* of the blocks have data */
#define MUCH_WAF	3.0	/* above it more spare would help most */
#define WORN_PERCENT	80	/* of the drive's life is used */
#define SLOW_MS		50	/* of a command, on average */

/* Critical warnings of NVMe's health log. */
#define WARN_SPARE	0x01
#define WARN_DEGRADED	0x04
#define WARN_READ_ONLY	0x08

#define LOOK_AT_DRIVE	"look at the drive's health (nvme smart-log)"

static void add(struct health *health, enum condition_kind kind, const char *name,
		const char *advice, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

static void add(struct health *health, enum condition_kind kind, const char *name,
		const char *advice, const char *format, ...)
{
	struct condition *condition = &health->conditions[health->nr++];
	va_list args;

	assert(health->nr <= HEALTH_MAX);
	condition->kind = kind;
	condition->name = name;
	condition->advice = advice;
	va_start(args, format);
	vsnprintf(condition->what, sizeof(condition->what), format, args);
	va_end(args);
}

bool health_spare(const struct drive_facts *drive, const struct status *status,
		  struct spare_zones *spare)
{
	const struct mtftl_sb_info *super = &drive->super;
	u32 bad = status_number(status, "bad");

	if (!drive->has_super)
		return false;
	spare->all = mtftl_spare_zones(super->nr_zones, super->zone_capacity,
				       super->logical_blocks, super->oob);
	spare->left = spare->all > bad ? spare->all - bad : 0;
	return true;
}

static void judge_counters(const struct health_facts *facts, struct health *health)
{
	static const struct {
		const char *name, *field, *one, *more, *advice;
	} counters[] = {
		{ "lost-blocks", "lost", "block could not be read any more and is lost",
		  "blocks could not be read any more and are lost",
		  "restore the files that read as errors; a lost block is well again once it is written" },
		{ "failed-zones", "bad", "zone has failed", "zones have failed",
		  LOOK_AT_DRIVE "; each failed zone leaves less to spare" },
		{ "failed-reads", "read_errors", "read failed", "reads failed", LOOK_AT_DRIVE },
		{ "failed-writes", "write_errors", "write failed and was repeated elsewhere",
		  "writes failed and were repeated elsewhere", LOOK_AT_DRIVE },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		u64 nr = status_number(facts->status, counters[i].field);

		if (nr)
			add(health, CONDITION_FAULT, counters[i].name, counters[i].advice, "%" PRIu64 " %s", nr,
			    nr == 1 ? counters[i].one : counters[i].more);
	}
}

static void judge_spare(const struct health_facts *facts, struct health *health)
{
	const struct drive_health *drive = &facts->drive->health;
	struct spare_zones spare;

	if (health_spare(facts->drive, facts->status, &spare) && spare.left < spare.all &&
	    spare.left <= spare.all / 2)
		add(health, CONDITION_FAULT, "short-of-spare",
		    "copy the data to another drive soon: without spare zones nothing can be written",
		    "only %u of %u spare zones are left", spare.left, spare.all);
	if (drive->known && (drive->warning & WARN_SPARE || drive->spare < drive->spare_least))
		add(health, CONDITION_FAULT, "drive-short-of-spare", "replace the drive: it is running out of blocks",
		    "the drive says that %u%% of its own spare is left", drive->spare);
}

static void judge_drive(const struct health_facts *facts, struct health *health)
{
	const struct drive_health *drive = &facts->drive->health;
	const struct drive_stat *stat = facts->drive_stat;

	if (drive->known && drive->used >= WORN_PERCENT)
		add(health, CONDITION_FAULT, "worn", "plan to replace the drive, and keep backups",
		    "%u%% of the drive's life is used", drive->used);
	if (drive->known && drive->warning & (WARN_DEGRADED | WARN_READ_ONLY))
		add(health, CONDITION_FAULT, "drive-degraded", "copy the data to another drive",
		    "the drive says that it is %s", drive->warning & WARN_READ_ONLY ?
		    "read-only" : "no longer reliable");
	if (!facts->answered)
		add(health, CONDITION_FAULT, "no-answer", "look at the drive, its cable and the kernel's log",
		    "the drive does not answer");
	else if (facts->stuck_ms)
		add(health, CONDITION_FAULT, "slow-drive", LOOK_AT_DRIVE " and the kernel's log",
		    "the drive is slow: in %u ms no command ended", facts->stuck_ms);
	else if (drive_mean(stat, 0) > SLOW_MS || drive_mean(stat, 1) > SLOW_MS)
		add(health, CONDITION_FAULT, "slow-drive", LOOK_AT_DRIVE " and the kernel's log",
		    "the drive is slow: a read takes %.0f ms, a write %.0f ms",
		    drive_mean(stat, 0), drive_mean(stat, 1));
}

static void judge_space(const struct health_facts *facts, struct health *health)
{
	u64 blocks = facts->target->sectors >> (MTFTL_BLOCK_SHIFT - 9);
	u64 mapped = status_number(facts->status, "mapped");

	if (!strcmp(status_text(facts->status, "gc"), "short"))
		add(health, CONDITION_NOTE, "writes-wait",
		    "discard what is not needed (fstrim); if it lasts, format with more to spare (--op)",
		    "writes wait for garbage collection");
	if (blocks && mapped * 100 >= blocks * FULL_PERCENT)
		add(health, CONDITION_NOTE, "full", "discard what is not needed (fstrim): then it can write faster",
		    "it is full: %.0f%% of its blocks have data", 100.0 * mapped / blocks);
	else if (strtod(status_text(facts->status, "waf"), NULL) > MUCH_WAF)
		add(health, CONDITION_NOTE, "much-gc", "discard what is not needed (fstrim)",
		    "garbage collection moves much");
	if (facts->drive->has_super && !facts->drive->super.oob && facts->drive->could_have_oob)
		add(health, CONDITION_NOTE, "old-format",
		    "nothing must be done; formatted again, it writes less (copy its data first)",
		    "its format is an old one: the drive has metadata that could take headers");
}

static const char *judge_state(const struct health_facts *facts, struct health *health)
{
	const struct dm_target_info *target = facts->target;

	if (target->empty) {
		add(health, CONDITION_STATE, "never-resumed", "remove it (mtftl close), and open it again",
		    "is not open: it was never resumed");
		return "never resumed";
	}
	if (facts->status->nr < 2) {
		add(health, CONDITION_STATE, "mounting",
		    "wait: after a crash it reads what was written last; the kernel's log has the steps",
		    "is mounting");
		return "mounting";
	}
	if (strcmp(status_text(facts->status, "mode"), "rw") && !target->read_only) {
		add(health, CONDITION_STATE, "read-only",
		    "copy the data while it can be read; the kernel's log says what must be mended",
		    "is read-only, the kernel's log says why");
		return "read-only";
	}
	if (target->suspended) {
		add(health, CONDITION_STATE, "suspended", "let it go on (dmsetup resume): until then writes wait",
		    "is suspended");
		return "suspended";
	}
	return target->read_only ? "opened read-only" : NULL;
}

void health_judge(const struct health_facts *facts, struct health *health)
{
	bool tells = facts->status->nr > 1;
	const char *state;
	u32 i;

	health->nr = 0;
	state = judge_state(facts, health);
	if (tells) {
		judge_counters(facts, health);
		judge_spare(facts, health);
	}
	judge_drive(facts, health);
	if (tells)
		judge_space(facts, health);
	for (i = 0; i < health->nr; i++)
		if (health->conditions[i].kind == CONDITION_FAULT)
			state = state ?: "works, with faults";
	health->state = state ?: "well";
}

const char *health_state(const struct status *status, const struct dm_target_info *target)
{
	const struct drive_stat no_stat = { 0 };
	const struct drive_facts no_drive = { 0 };
	const struct health_facts facts = {
		.status = status, .target = target, .answered = true,
		.drive = &no_drive, .drive_stat = &no_stat,
	};
	struct health health;

	health_judge(&facts, &health);
	return health.state;
}
