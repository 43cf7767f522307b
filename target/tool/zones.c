// SPDX-License-Identifier: GPL-2.0
/* mtftl zones: state, valid share, age and wear of each zone, in a terminal, as JSON or as SVG. */
#include <getopt.h>
#include <inttypes.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "dm.h"
#include "drive.h"
#include "format/format.h"
#include "json.h"
#include "mtftl.h"
#include "status.h"
#include "vector.h"

#define ANSWER_S	2	/* for a drive to say how large zones are */
#define MIN_COLUMNS	16
#define MARGIN		8	/* columns in front of a map */
#define ROWS		16	/* of a map at most: then a cell is several zones */
#define SVG_COLUMNS	64
#define SVG_CELL	12

/* Worst first: a cell of several zones shows the first that one of them is in. */
static const struct state {
	const char *name;
	char letter;
	const char *colour;
} states[] = {
	{ "bad", 'X', "#d62728" },
	{ "resetting", 'r', "#bcbd22" },
	{ "victim", 'v', "#ff7f0e" },
	{ "super", 'S', "#9467bd" },
	{ "checkpoint", 'C', "#8c564b" },
	{ "open", 'o', "#2ca02c" },
	{ "partial", 'p', "#98df8a" },
	{ "closing", 'c', "#17becf" },
	{ "full", '#', "#1f77b4" },
	{ "empty", '.', "#c7c7c7" },
};

struct zone {
	u32 state;	/* in the table */
	u32 written, valid, erases, age;
};

struct zones {
	const char *name;
	char drive[PATH_MAX];
	u32 nr;
	const struct zone *all;
	u32 capacity, oldest, least_worn, most_worn;	/* of all zones */
};

static u32 max_of(u32 a, u32 b)
{
	return a > b ? a : b;
}

static u32 state_of(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(states) - 1; i++)
		if (!strcmp(states[i].name, name))
			break;
	return i;
}

/* The target's lines; see "zones" in docs/use/status.md. */
static void ask(struct zones *zones, const char *name)
{
	struct dm_target_info target;
	struct vector all = { 0 };
	struct drive_facts drive;
	struct zone zone;
	char *table = dm_target_line(name, DM_DEVICE_TABLE, &target), *said, *rest, *line;
	char state[16];

	*zones = (struct zones) { .name = name, .least_worn = UINT_MAX };
	dm_lower_device(table, zones->drive, sizeof(zones->drive));
	free(table);
	said = dm_message(name, "zones");
	if (!said)
		fail(EXIT_FAILED, "%s: the target does not tell of its zones, expected one that is mounted,"
		     " and a module of version 1.1 or newer", name);
	for (rest = said; (line = strsep(&rest, "\n")); ) {
		if (sscanf(line, "%15s %u %u %u %u", state, &zone.written, &zone.valid,
			   &zone.erases, &zone.age) != 5)
			continue;
		zone.state = state_of(state);
		*(struct zone *)vector_add(&all, sizeof(zone)) = zone;
		zones->capacity = max_of(zones->capacity, zone.written);
		zones->oldest = max_of(zones->oldest, zone.age);
		zones->most_worn = max_of(zones->most_worn, zone.erases);
		if (zone.erases < zones->least_worn)
			zones->least_worn = zone.erases;
	}
	free(said);
	zones->all = all.items;
	zones->nr = all.nr;
	/* A drive that does not answer has zones as large as the fullest one. */
	if (drive_ask(zones->drive, ANSWER_S, &drive) && drive.has_super)
		zones->capacity = drive.super.zone_capacity;
}

/* Terminal */

enum map { MAP_STATE, MAP_VALID, MAP_AGE, MAP_WEAR };

static double share_of(const struct zones *zones, const struct zone *zone, enum map map)
{
	u32 span = zones->most_worn - zones->least_worn;

	switch (map) {
	case MAP_VALID:
		return zones->capacity ? zone->valid / (double)zones->capacity : 0;
	case MAP_AGE:
		return zones->oldest ? zone->age / (double)zones->oldest : 0;
	default:
		return span ? (zone->erases - zones->least_worn) / (double)span : 0;
	}
}

/* A share from 0 to 1 as one cell; blank is none at all. */
static void put_share(double share)
{
	static const char *const bars[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	bool fine = !strcmp(nl_langinfo(CODESET), "UTF-8");

	if (share > 1)
		share = 1;
	if (fine)
		fputs(bars[(u32)(share * 8 + 0.999)], stdout);
	else
		putchar(share > 0 ? '0' + (int)(share * 9) : ' ');
}

static void put_cell(const struct zones *zones, u32 first, u32 nr, enum map map)
{
	u32 state = ARRAY_SIZE(states) - 1, i;
	double sum = 0;

	for (i = first; i < first + nr; i++) {
		if (zones->all[i].state < state)
			state = zones->all[i].state;
		if (map != MAP_STATE)
			sum += share_of(zones, &zones->all[i], map);
	}
	if (map == MAP_STATE)
		putchar(states[state].letter);
	else
		put_share(sum / nr);
}

static u32 columns(void)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < MIN_COLUMNS + MARGIN)
		return 80 - MARGIN;
	return size.ws_col - MARGIN;
}

static void print_map(const struct zones *zones, enum map map, u32 width, u32 each)
{
	u32 at, column = 0;

	for (at = 0; at < zones->nr; at += each) {
		if (column == 0)
			printf("%*s", MARGIN, "");
		put_cell(zones, at, zones->nr - at < each ? zones->nr - at : each, map);
		if (++column == width) {
			putchar('\n');
			column = 0;
		}
	}
	if (column)
		putchar('\n');
}

static void print_maps(const struct zones *zones)
{
	u32 width = columns(), each = (zones->nr + width * ROWS - 1) / (width * ROWS);

	setlocale(LC_CTYPE, "");
	printf("%s: %u zones of %s, a cell is %u\n", zones->name, zones->nr, zones->drive, each);
	puts("state   S superblock, C checkpoint, . empty, o open, p partly written, c closing, # full,\n"
	     "        v collected, r being reset, X failed");
	print_map(zones, MAP_STATE, width, each);
	printf("valid   of %u blocks\n", zones->capacity);
	print_map(zones, MAP_VALID, width, each);
	printf("age     in zones begun since; the oldest: %u\n", zones->oldest);
	print_map(zones, MAP_AGE, width, each);
	printf("wear    from %u to %u erases\n", zones->nr ? zones->least_worn : 0, zones->most_worn);
	print_map(zones, MAP_WEAR, width, each);
}

/* Files */

static void print_json(const struct zones *zones)
{
	struct json *json = json_start(stdout);
	u32 i;

	json_string(json, "name", zones->name);
	json_string(json, "drive", zones->drive);
	json_array(json, "zones");
	for (i = 0; i < zones->nr; i++) {
		json_object(json, NULL);
		json_u64(json, "zone", i);
		json_string(json, "state", states[zones->all[i].state].name);
		json_u64(json, "written", zones->all[i].written);
		json_u64(json, "valid", zones->all[i].valid);
		json_u64(json, "erases", zones->all[i].erases);
		json_u64(json, "age", zones->all[i].age);
		json_end(json);
	}
	json_end(json);
	json_finish(json);
}

/* Its frame has the state's colour; it is filled as far as data is valid, the darker the older. */
static void svg_zone(FILE *out, const struct zones *zones, u32 index, u32 top)
{
	const struct zone *zone = &zones->all[index];
	const char *colour = states[zone->state].colour;
	u32 x = index % SVG_COLUMNS * SVG_CELL, y = top + index / SVG_COLUMNS * SVG_CELL;
	double height = share_of(zones, zone, MAP_VALID) * (SVG_CELL - 2);

	fprintf(out, "<g><title>zone %u: %s, %u of %u blocks valid, age %u, %u erases</title>"
		"<rect class=\"zone\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"%s\""
		" fill-opacity=\"0.25\" stroke=\"#fff\"/>", index, states[zone->state].name,
		zone->valid, zone->written, zone->age, zone->erases, x, y, SVG_CELL, SVG_CELL, colour);
	if (height > 0)
		fprintf(out, "<rect x=\"%u\" y=\"%.1f\" width=\"%u\" height=\"%.1f\" fill=\"%s\""
			" fill-opacity=\"%.2f\"/>", x + 1, y + SVG_CELL - 1 - height, SVG_CELL - 2,
			height, colour, 0.5 + share_of(zones, zone, MAP_AGE) / 2);
	fprintf(out, "<rect x=\"%u\" y=\"%u\" width=\"%.1f\" height=\"1.5\" fill=\"#000\"/></g>\n",
		x + 1, y + 1, share_of(zones, zone, MAP_WEAR) * (SVG_CELL - 2));
}

static void write_svg(const struct zones *zones, const char *path)
{
	u32 rows = (zones->nr + SVG_COLUMNS - 1) / SVG_COLUMNS, top = 56, i;
	FILE *out = fopen(path, "we");

	if (!out)
		fail(EXIT_FAILED, "%s: cannot write: %s", path, strerror(errno));
	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\""
		" font-family=\"sans-serif\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", SVG_COLUMNS * SVG_CELL,
		top + rows * SVG_CELL);
	fprintf(out, "<text x=\"2\" y=\"14\">%u zones; height: valid data; darker: older; black line: wear,"
		" %u to %u erases</text>\n", zones->nr, zones->nr ? zones->least_worn : 0,
		zones->most_worn);
	for (i = 0; i < ARRAY_SIZE(states); i++)
		fprintf(out, "<rect x=\"%u\" y=\"26\" width=\"10\" height=\"10\" fill=\"%s\"/>"
			"<text x=\"%u\" y=\"35\">%s</text>\n", 2 + 76 * i, states[i].colour,
			15 + 76 * i, states[i].name);
	for (i = 0; i < zones->nr; i++)
		svg_zone(out, zones, i, top);
	fputs("</svg>\n", out);
	if (ferror(out) | fclose(out))
		fail(EXIT_FAILED, "%s: cannot write: %s", path, strerror(errno));
}

int cmd_zones(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "svg", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	const char *svg = NULL;
	struct zones zones;
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		json |= c == 'j';
		if (c == 's')
			svg = optarg;
	}
	if (argc - optind != 1)
		fail(EXIT_USAGE, "zones: %d names given, expected one", argc - optind);
	ask(&zones, argv[optind]);
	if (svg)
		write_svg(&zones, svg);
	else if (json)
		print_json(&zones);
	else
		print_maps(&zones);
	return EXIT_OK;
}
