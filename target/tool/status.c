// SPDX-License-Identifier: GPL-2.0
/* mtftl status: the target's line and what the drive says in words, as a list, or as JSON. */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dm.h"
#include "drive.h"
#include "health.h"
#include "json.h"
#include "mtftl.h"
#include "status.h"
#include "waits.h"

#define ANSWER_S	2	/* for a drive to say what it is */
#define LOOK_MS		200	/* how long commands in flight are watched */

void status_parse(struct status *status, char *line)
{
	const char *name = "mode";
	char *value;

	status->nr = 0;
	while (name && (value = strsep(&line, " ")) && status->nr < STATUS_MAX_FIELDS) {
		status->fields[status->nr++] = (struct field) { name, value };
		name = strsep(&line, " ");
	}
}

const char *status_text(const struct status *status, const char *name)
{
	unsigned int i;

	for (i = 0; i < status->nr; i++)
		if (!strcmp(status->fields[i].name, name))
			return status->fields[i].value;
	return "0";
}

bool status_has(const struct status *status, const char *name)
{
	unsigned int i;

	for (i = 0; i < status->nr; i++)
		if (!strcmp(status->fields[i].name, name))
			return true;
	return false;
}

u64 status_number(const struct status *status, const char *name)
{
	return strtoull(status_text(status, name), NULL, 10);
}

u64 status_sum(const struct status *status, const char *name)
{
	const char *at = status_text(status, name);
	char *end;
	u64 sum = 0;

	for (;; at = end + 1) {
		sum += strtoull(at, &end, 10);
		if (*end != ',')
			return sum;
	}
}

u64 status_flash_blocks(const struct status *status)
{
	return status_number(status, "flash_data") + status_number(status, "flash_gc") +
	       status_number(status, "flash_headers") + status_number(status, "flash_meta");
}

bool open_device_ask(const char *name, bool must_be, struct open_device *device)
{
	char *(*line_of)(const char *name, int type, struct dm_target_info *target) =
		must_be ? dm_target_line : dm_our_line;
	char *table = line_of(name, DM_DEVICE_TABLE, &device->target);

	if (!table)
		return false;
	device->number = dm_lower_device(table, device->lower, sizeof(device->lower));
	free(table);
	device->line = line_of(name, DM_DEVICE_STATUS, &device->target);
	if (device->line)
		status_parse(&device->status, device->line);
	return device->line;
}

/* Everything that is known of a device */

struct known {
	const char *name;
	struct open_device open;
	struct drive_facts drive;
	struct drive_stat users, drive_stat;	/* since the boot */
	struct waits waits;
	struct health health;
};

/*
 * The time of the drive's commands. If there are some in flight, what matters is how long they take
 * now, not what the mean since the boot is.
 */
static void look_at_commands(struct known *known, struct health_facts *facts,
			     struct drive_stat *recent)
{
	struct drive_stat now;

	if (!drive_stat(known->open.number, &known->drive_stat))
		return;
	*recent = known->drive_stat;
	if (!recent->in_flight)
		return;
	nanosleep(&(struct timespec) { .tv_nsec = LOOK_MS * 1000000 }, NULL);
	if (!drive_stat(known->open.number, &now))
		return;
	*recent = drive_stat_since(&known->drive_stat, &now);
	if (!recent->ios[0] && !recent->ios[1] && now.in_flight)
		facts->stuck_ms = LOOK_MS;
	known->drive_stat = now;
}

static void know(struct known *known, const char *name)
{
	struct health_facts facts = {
		.status = &known->open.status, .target = &known->open.target, .drive = &known->drive,
	};
	struct drive_stat recent = { 0 };

	*known = (struct known) { .name = name };
	facts.drive_stat = &recent;
	open_device_ask(name, true, &known->open);
	if (known->open.target.empty) {
		facts.answered = true;
	} else {
		look_at_commands(known, &facts, &recent);
		facts.answered = drive_ask(known->open.lower, ANSWER_S, &known->drive);
	}
	if (known->open.status.nr > 1)
		waits_ask(name, &known->waits);
	drive_stat(known->open.target.number, &known->users);
	health_judge(&facts, &known->health);
}

/* Words */

/* Quick to read, such as "12 min". */
static const char *duration(double seconds, char text[32])
{
	static const struct {
		double seconds;
		const char *name;
	} units[] = {
		{ 365.25 * 86400, "years" }, { 86400, "days" }, { 3600, "h" }, { 60, "min" },
		{ 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(units) - 1; i++)
		if (seconds >= units[i].seconds * (units[i].seconds > 1 ? 2 : 1))
			break;
	snprintf(text, 32, "%.0f %s", seconds / units[i].seconds, units[i].name);
	return text;
}

static const char *amount(double bytes, char text[32])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
	size_t i = 0;

	for (bytes /= 1024; bytes >= 1000 && i < ARRAY_SIZE(units) - 1; i++)
		bytes /= 1024;
	snprintf(text, 32, "%.3g %s", bytes, units[i]);
	return text;
}

static const char *blocks(u64 nr, char text[32])
{
	return amount((double)nr * MTFTL_BLOCK_SIZE, text);
}

/* What is wrong, in the first line. */
static void print_health(const struct known *known)
{
	const struct health *health = &known->health;
	const char *head = known->open.target.read_only ? "is open read-only" : "works";
	const char *between = ": ";
	bool works = true;
	u32 i;

	for (i = 0; i < health->nr; i++)
		if (health->conditions[i].kind == CONDITION_STATE)
			head = health->conditions[i].what;
	works = !strcmp(head, "works");
	printf("%s %s", known->name, head);
	for (i = 0; i < health->nr; i++) {
		if (health->conditions[i].kind != CONDITION_FAULT)
			continue;
		printf("%s%s", between, health->conditions[i].what);
		between = ", ";
	}
	if (works && *between == ':')
		printf(" and is well");
	for (i = 0; i < health->nr; i++)
		if (health->conditions[i].kind == CONDITION_NOTE)
			printf("; %s", health->conditions[i].what);
	putchar('\n');
}

/* The same advice may hold for several conditions. */
static void print_advice(const struct health *health)
{
	u32 i, j;

	for (i = 0; i < health->nr; i++) {
		for (j = 0; j < i; j++)
			if (!strcmp(health->conditions[i].advice, health->conditions[j].advice))
				break;
		if (j == i)
			printf("  advice   %s\n", health->conditions[i].advice);
	}
}

static void print_since(const struct known *known)
{
	const struct status *status = &known->open.status;
	u64 unchanged = status_number(status, "unchanged"), counted = status_number(status, "seconds");
	time_t since = time(NULL) - unchanged;
	char text[32], when[32];
	struct tm local;

	if (!status_has(status, "unchanged"))
		return;
	strftime(when, sizeof(when), "%F %T", localtime_r(&since, &local));
	printf("  since    %s, %s ago: %s\n", when, unchanged ? duration(unchanged, text) : "0 s",
	       !strcmp(known->health.state, "read-only") ? "it turned read-only" :
	       unchanged < counted ? "the last fault" :
	       unchanged == counted ? "the mount" : "the mount or the last fault");
}

static void print_space(const struct known *known)
{
	const struct status *status = &known->open.status;
	u64 all = known->open.target.sectors >> (MTFTL_BLOCK_SHIFT - 9);
	u64 mapped = status_number(status, "mapped");
	u64 lanes = status_number(status, "lanes");
	const char *gc = status_text(status, "gc");
	struct spare_zones spare;
	char of[32], text[32];

	if (status_has(status, "mapped"))
		printf("  filled   %.0f%%: %s of %s have data\n",
		       all ? 100.0 * mapped / all : 0, blocks(mapped, text), blocks(all, of));
	printf("  space    %" PRIu64 " of %" PRIu64 " zones are empty; %s\n",
	       status_number(status, "free"), status_number(status, "zones"),
	       !strcmp(gc, "idle") ? "no garbage collection is needed" :
	       !strcmp(gc, "short") ? "writes wait for garbage collection" :
				      "garbage collection is at work");
	if (health_spare(&known->drive, status, &spare))
		printf("  spare    %u of %u zones beyond what the data needs are left\n", spare.left,
		       spare.all);
	printf("  buffers  %" PRIu64 " blocks of 4 KiB wait to be written, room for %" PRIu64
	       " in %" PRIu64 " lane%s\n", status_sum(status, "fill"),
	       lanes * status_number(status, "entries"), lanes, lanes == 1 ? "" : "s");
}

static void mean(const struct drive_stat *stat, int kind, char text[32])
{
	duration(drive_mean(stat, kind) * 1e-3, text);
	if (!stat->ios[kind])
		strcpy(text, "none");
}

static void print_latency(const struct known *known)
{
	char text[4][32];
	int kind;

	if (known->waits.nr)
		printf("  waits    %" PRIu64 " writes waited for room: half of them up to %s,"
		       " 99%% up to %s, 99.9%% up to %s\n", known->waits.nr,
		       duration(waits_within(&known->waits, 500) * 1e-6, text[0]),
		       duration(waits_within(&known->waits, 990) * 1e-6, text[1]),
		       duration(waits_within(&known->waits, 999) * 1e-6, text[2]));
	for (kind = 0; kind < 2; kind++) {
		mean(&known->users, kind, text[kind]);
		mean(&known->drive_stat, kind, text[2 + kind]);
	}
	printf("  latency  users: reads %s, writes %s; drive: reads %s, writes %s (means since the"
	       " boot)\n", text[0], text[1], text[2], text[3]);
}

/*
 * Seconds that the rest of the drive's life lasts, if it is written to as since the counters
 * started; below 0 if that is not known. The drive rounds down what is used: @least is set if that
 * is no percent at all.
 */
static double life_left(const struct known *known, bool *least)
{
	const struct drive_health *health = &known->drive.health;
	double seconds = status_number(&known->open.status, "seconds");
	double written = (double)status_flash_blocks(&known->open.status) * MTFTL_BLOCK_SIZE;

	*least = !health->used;
	if (!health->known || !health->written || seconds <= 0 || written <= 0)
		return -1;
	if (health->used >= 100)
		return 0;
	return (double)health->written * (100 - health->used) / (health->used ?: 1) /
	       (written / seconds);
}

static void print_wear(const struct known *known)
{
	const struct status *status = &known->open.status;
	u64 zones = status_number(status, "zones");
	char from[32], to[32];
	bool least;
	double left = life_left(known, &least);

	if (status_number(status, "written"))
		printf("  writes   %s of users became %s on the drive: write amplification %s\n",
		       blocks(status_number(status, "written"), from),
		       blocks(status_flash_blocks(status), to), status_text(status, "waf"));
	printf("  wear     each zone was erased %" PRIu64 " to %" PRIu64 " times, %.1f on average\n",
	       status_number(status, "wear_least"), status_number(status, "wear_most"),
	       zones ? status_number(status, "wear_total") / (double)zones : 0);
	if (!known->drive.health.known)
		return;
	printf("  life     %u%% of the drive's life is used", known->drive.health.used);
	if (left >= 0)
		printf("; at this rate the rest lasts %s%s", least ? "at least " : "",
		       duration(left, from));
	putchar('\n');
}

static void print_words(const struct known *known)
{
	char text[32];

	print_health(known);
	print_advice(&known->health);
	if (known->open.target.empty)
		return;
	printf("  size     %s, on %s\n", amount((double)known->open.target.sectors * 512, text),
	       known->open.lower);
	if (known->open.status.nr < 2)
		return;
	print_since(known);
	print_space(known);
	print_latency(known);
	print_wear(known);
}

/* JSON; target/tool/status.schema.json says what it is */

/* The lanes' fill is a list, also of one lane. */
static void json_value(struct json *json, const char *name, char *value)
{
	bool list = !strcmp(name, "fill");
	char *item;

	if (list) {
		json_array(json, name);
		name = NULL;
	}
	while ((item = strsep(&value, ","))) {
		if (item[strspn(item, "-0123456789.")])
			json_string(json, name, item);
		else
			json_number(json, name, item);
	}
	if (list)
		json_end(json);
}

static void json_conditions(struct json *json, const struct health *health)
{
	static const char *const kinds[] = {
		[CONDITION_STATE] = "state", [CONDITION_FAULT] = "fault", [CONDITION_NOTE] = "note",
	};
	u32 i;

	json_array(json, "conditions");
	for (i = 0; i < health->nr; i++) {
		json_object(json, NULL);
		json_string(json, "condition", health->conditions[i].name);
		json_string(json, "kind", kinds[health->conditions[i].kind]);
		json_string(json, "says", health->conditions[i].what);
		json_string(json, "advice", health->conditions[i].advice);
		json_end(json);
	}
	json_end(json);
}

static void json_mean(struct json *json, const char *name, const struct drive_stat *stat, int kind)
{
	char text[32];

	snprintf(text, sizeof(text), "%.3f", drive_mean(stat, kind));
	json_number(json, name, text);
}

static void json_drive(struct json *json, const struct known *known)
{
	const struct drive_health *health = &known->drive.health;
	struct spare_zones spare;
	char text[32];
	bool least;
	double left = life_left(known, &least);

	if (health_spare(&known->drive, &known->open.status, &spare)) {
		json_object(json, "spare_zones");
		json_u64(json, "left", spare.left);
		json_u64(json, "all", spare.all);
		json_end(json);
	}
	json_object(json, "mean_ms");
	json_mean(json, "user_reads", &known->users, 0);
	json_mean(json, "user_writes", &known->users, 1);
	json_mean(json, "drive_reads", &known->drive_stat, 0);
	json_mean(json, "drive_writes", &known->drive_stat, 1);
	json_end(json);
	if (!health->known)
		return;
	json_object(json, "smart");
	json_u64(json, "critical_warning", health->warning);
	json_u64(json, "spare_percent", health->spare);
	json_u64(json, "used_percent", health->used);
	json_u64(json, "written_bytes", health->written);
	if (left >= 0) {
		snprintf(text, sizeof(text), "%.0f", left);
		json_number(json, "seconds_left", text);
	}
	json_end(json);
}

static void print_json(struct known *known)
{
	struct json *json = json_start(stdout);
	unsigned int i;

	json_u64(json, "version", 1);
	json_string(json, "name", known->name);
	json_string(json, "drive", known->open.lower);
	json_u64(json, "bytes", known->open.target.sectors * 512);
	json_string(json, "state", known->health.state);
	json_conditions(json, &known->health);
	if (known->open.status.nr > 1) {
		json_object(json, "waits_us");
		json_u64(json, "writes", known->waits.nr);
		json_u64(json, "p50", waits_within(&known->waits, 500));
		json_u64(json, "p99", waits_within(&known->waits, 990));
		json_u64(json, "p99_9", waits_within(&known->waits, 999));
		json_end(json);
		json_drive(json, known);
		for (i = 0; i < known->open.status.nr; i++)
			json_value(json, known->open.status.fields[i].name,
				   known->open.status.fields[i].value);
	}
	json_finish(json);
}

static void list_fields(const struct status *status)
{
	unsigned int i;

	for (i = 0; i < status->nr; i++)
		printf("%-12s %s\n", status->fields[i].name, status->fields[i].value);
}

int cmd_status(int argc, char **argv)
{
	static const struct option options[] = {
		{ "counters", no_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	struct dm_target_info target;
	struct status status;
	struct known known;
	int c, form = 0;
	char *line;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		form = c;
	}
	if (argc - optind != 1)
		fail(EXIT_USAGE, "status: %d names given, expected one", argc - optind);

	if (form == 'c') {
		line = dm_target_line(argv[optind], DM_DEVICE_STATUS, &target);
		status_parse(&status, line);
		list_fields(&status);
		free(line);
		return EXIT_OK;
	}
	dm_check_module();
	know(&known, argv[optind]);
	if (form == 'j')
		print_json(&known);
	else
		print_words(&known);
	free(known.open.line);
	return EXIT_OK;
}
