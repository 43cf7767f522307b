// SPDX-License-Identifier: GPL-2.0
/* mtftl status: the target's status line in words, as a list, or as JSON. */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "dm.h"
#include "json.h"
#include "mtftl.h"
#include "status.h"

/* Of docs/use/status.md: above it more spare would help most. */
#define MUCH_WAF	3.0

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

static void list_fields(const struct status *status)
{
	unsigned int i;

	for (i = 0; i < status->nr; i++)
		printf("%-12s %s\n", status->fields[i].name, status->fields[i].value);
}

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

static void print_json(const char *name, struct status *status)
{
	struct json *json = json_start(stdout);
	unsigned int i;

	json_string(json, "name", name);
	for (i = 0; i < status->nr; i++)
		json_value(json, status->fields[i].name, status->fields[i].value);
	json_finish(json);
}

static const struct ill {
	const char *field;
	const char *one, *more;
	const char *advice;
} ills[] = {
	{ "lost", "block could not be read any more and is lost", "blocks could not be read any more and are lost",
	  "restore the files that read as errors; a lost block is well again once it is written" },
	{ "bad", "zone has failed", "zones have failed",
	  "look at the drive's health (nvme smart-log); each failed zone leaves less to spare" },
	{ "read_errors", "read failed", "reads failed", "look at the drive's health (nvme smart-log)" },
	{ "write_errors", "write failed and was repeated elsewhere", "writes failed and were repeated elsewhere",
	  "look at the drive's health (nvme smart-log)" },
};

static bool may_write(const struct status *status)
{
	return !strcmp(status_text(status, "mode"), "rw");
}

const char *status_state(const struct status *status, const struct dm_target_info *target)
{
	size_t i;

	if (status->nr < 2)
		return "never resumed";
	if (!may_write(status))
		return target->read_only ? "opened read-only" : "read-only";
	if (target->suspended)
		return "suspended";
	for (i = 0; i < ARRAY_SIZE(ills); i++)
		if (status_number(status, ills[i].field))
			return "works, with faults";
	return "well";
}

/* What is wrong, in the first line. */
static void print_health(const char *name, const struct status *status, bool read_only)
{
	bool writes = may_write(status);
	const char *between = ": ";
	size_t i;

	printf("%s %s", name, writes ? "works" :
	       read_only ? "is open read-only" : "is read-only, the kernel's log says why");
	for (i = 0; i < ARRAY_SIZE(ills); i++) {
		u64 nr = status_number(status, ills[i].field);

		if (!nr)
			continue;
		printf("%s%" PRIu64 " %s", between, nr, nr == 1 ? ills[i].one : ills[i].more);
		between = ", ";
	}
	puts(writes && *between == ':' ? " and is well" : "");
}

static void advise(const char *advice)
{
	printf("  advice   %s\n", advice);
}

/* What to do about it. The same advice may hold for several things. */
static void print_advice(const struct status *status, const struct dm_target_info *target)
{
	const char *before = "";
	size_t i;

	if (!may_write(status) && !target->read_only)
		advise("copy the data while it can be read; the kernel's log says what must be mended");
	if (target->suspended)
		advise("it is suspended, writes wait: dmsetup resume goes on");
	for (i = 0; i < ARRAY_SIZE(ills); i++)
		if (status_number(status, ills[i].field) && strcmp(ills[i].advice, before)) {
			advise(ills[i].advice);
			before = ills[i].advice;
		}
	if (!strcmp(status_text(status, "gc"), "short"))
		advise("discard what is not needed (fstrim); if it lasts, format with more to spare (--op)");
	else if (strtod(status_text(status, "waf"), NULL) > MUCH_WAF)
		advise("garbage collection moves much: discard what is not needed (fstrim)");
}

static void print_words(const char *name, const struct status *status)
{
	struct dm_target_info target;
	char lower[PATH_MAX], *table = dm_target_line(name, DM_DEVICE_TABLE, &target);
	u64 zones = status_number(status, "zones"), free_zones = status_number(status, "free");
	u64 lanes = status_number(status, "lanes");
	const char *gc = status_text(status, "gc");

	dm_lower_device(table, lower, sizeof(lower));
	free(table);
	if (status->nr < 2) {
		printf("%s is not open: it was never resumed; mtftl close removes it\n", name);
		return;
	}
	print_health(name, status, target.read_only);
	print_advice(status, &target);
	printf("  size     %" PRIu64 " MiB, on %s\n", target.sectors >> 11, lower);
	printf("  space    %" PRIu64 "%% used: %" PRIu64 " of %" PRIu64 " zones are empty; %s\n",
	       zones ? 100 - free_zones * 100 / zones : 0, free_zones, zones,
	       !strcmp(gc, "idle") ? "no garbage collection is needed" :
	       !strcmp(gc, "short") ? "writes wait for garbage collection" :
				      "garbage collection is at work");
	printf("  buffers  %" PRIu64 " blocks of 4 KiB wait to be written, room for %" PRIu64
	       " in %" PRIu64 " lane%s\n", status_sum(status, "fill"),
	       lanes * status_number(status, "entries"), lanes, lanes == 1 ? "" : "s");
	if (status_number(status, "written"))
		printf("  writes   %s blocks went to flash for each that was written\n",
		       status_text(status, "waf"));
	printf("  wear     each zone was erased %" PRIu64 " to %" PRIu64 " times, %.1f on average\n",
	       status_number(status, "wear_least"), status_number(status, "wear_most"),
	       zones ? status_number(status, "wear_total") / (double)zones : 0);
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
	int c, form = 0;
	char *line;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		form = c;
	}
	if (argc - optind != 1)
		fail(EXIT_USAGE, "status: %d names given, expected one", argc - optind);

	line = dm_target_line(argv[optind], DM_DEVICE_STATUS, &target);
	status_parse(&status, line);
	if (form == 'j')
		print_json(argv[optind], &status);
	else if (form == 'c')
		list_fields(&status);
	else
		print_words(argv[optind], &status);
	free(line);
	return EXIT_OK;
}
