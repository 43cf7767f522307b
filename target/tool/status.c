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

#define MAX_FIELDS	64

struct field {
	const char *name;
	char *value;
};

struct status {
	struct field fields[MAX_FIELDS];
	unsigned int nr;
};

/* The mode, then pairs of name and value; @line is taken apart. */
static void status_parse(struct status *status, char *line)
{
	const char *name = "mode";
	char *value;

	status->nr = 0;
	while (name && (value = strsep(&line, " ")) && status->nr < MAX_FIELDS) {
		status->fields[status->nr++] = (struct field) { name, value };
		name = strsep(&line, " ");
	}
}

static const char *text_of(const struct status *status, const char *name)
{
	unsigned int i;

	for (i = 0; i < status->nr; i++)
		if (!strcmp(status->fields[i].name, name))
			return status->fields[i].value;
	return "0";
}

static u64 number_of(const struct status *status, const char *name)
{
	return strtoull(text_of(status, name), NULL, 10);
}

static u64 sum_of(const struct status *status, const char *name)
{
	const char *at = text_of(status, name);
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

/* What is wrong, in the first line. */
static void print_health(const char *name, const struct status *status, bool read_only)
{
	static const struct {
		const char *field;
		const char *one, *more;
	} ills[] = {
		{ "lost", "block could not be read any more and is lost", "blocks could not be read any more and are lost" },
		{ "bad", "zone has failed", "zones have failed" },
		{ "read_errors", "read failed", "reads failed" },
		{ "write_errors", "write failed and was repeated elsewhere", "writes failed and were repeated elsewhere" },
	};
	bool writes = !strcmp(text_of(status, "mode"), "rw");
	const char *between = ": ";
	size_t i;

	printf("%s %s", name, writes ? "works" :
	       read_only ? "is open read-only" : "is read-only, the kernel's log says why");
	for (i = 0; i < sizeof(ills) / sizeof(ills[0]); i++) {
		u64 nr = number_of(status, ills[i].field);

		if (!nr)
			continue;
		printf("%s%" PRIu64 " %s", between, nr, nr == 1 ? ills[i].one : ills[i].more);
		between = ", ";
	}
	puts(writes && *between == ':' ? " and is well" : "");
}

static void print_words(const char *name, const struct status *status)
{
	struct dm_target_info target;
	char lower[PATH_MAX], *table = dm_target_line(name, DM_DEVICE_TABLE, &target);
	u64 zones = number_of(status, "zones"), free_zones = number_of(status, "free");
	u64 lanes = number_of(status, "lanes");
	const char *gc = text_of(status, "gc");

	dm_lower_device(table, lower, sizeof(lower));
	free(table);
	if (status->nr < 2) {
		printf("%s is not open: it was never resumed; mtftl close removes it\n", name);
		return;
	}
	print_health(name, status, target.read_only);
	printf("  size     %" PRIu64 " MiB, on %s\n", target.sectors >> 11, lower);
	printf("  space    %" PRIu64 "%% used: %" PRIu64 " of %" PRIu64 " zones are empty; %s\n",
	       zones ? 100 - free_zones * 100 / zones : 0, free_zones, zones,
	       !strcmp(gc, "idle") ? "no garbage collection is needed" :
	       !strcmp(gc, "short") ? "writes wait for garbage collection" :
				      "garbage collection is at work");
	printf("  buffers  %" PRIu64 " blocks of 4 KiB wait to be written, room for %" PRIu64
	       " in %" PRIu64 " lane%s\n", sum_of(status, "fill"),
	       lanes * number_of(status, "entries"), lanes, lanes == 1 ? "" : "s");
	if (number_of(status, "written"))
		printf("  writes   %s blocks went to flash for each that was written\n",
		       text_of(status, "waf"));
	printf("  wear     each zone was erased %" PRIu64 " to %" PRIu64 " times, %.1f on average\n",
	       number_of(status, "wear_least"), number_of(status, "wear_most"),
	       zones ? number_of(status, "wear_total") / (double)zones : 0);
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
