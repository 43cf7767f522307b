// SPDX-License-Identifier: GPL-2.0
/*
 * mtftl metrics: the status lines of devices in Prometheus's text format, for the textfile collector
 * of the node exporter. All samples of a metric follow each other, so all devices are asked first.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dm.h"
#include "format/format.h"
#include "mtftl.h"
#include "status.h"
#include "vector.h"
#include "waits.h"

struct asked {
	const char *name;
	struct open_device device;
	struct waits waits;
};

#define GAUGE	"gauge"
#define COUNTER	"counter"
#define BYTES	MTFTL_BLOCK_SIZE	/* the field counts blocks */

/* A sample is a field of the status line, times a factor. A row without a name belongs to the metric above. */
static const struct sample {
	const char *field;
	u64 factor;
	const char *label;
	const char *metric;
	const char *type;
	const char *help;
} samples[] = {
	{ "zones", 1, NULL, "mtftl_zones", GAUGE,
	  "Zones of the drive." },
	{ "free", 1, "state=\"free\"", "mtftl_zones_in_state", GAUGE,
	  "Zones in a state; some are in none, such as those of the superblock." },
	{ "open", 1, "state=\"open\"", NULL, NULL, NULL },
	{ "full", 1, "state=\"full\"", NULL, NULL, NULL },
	{ "resetting", 1, "state=\"resetting\"", NULL, NULL, NULL },
	{ "bad", 1, "state=\"bad\"", NULL, NULL, NULL },
	{ "reserve", 1, NULL, "mtftl_reserve_zones", GAUGE,
	  "Free zones below which users wait." },
	{ "low_water", 1, NULL, "mtftl_low_water_zones", GAUGE,
	  "Free zones below which GC works." },
	{ "fill", BYTES, NULL, "mtftl_buffered_bytes", GAUGE,
	  "Data of users that waits to be written." },
	{ "mapped", BYTES, NULL, "mtftl_mapped_bytes", GAUGE,
	  "Data of the device that is on the drive." },
	{ "seconds", 1, NULL, "mtftl_counted_seconds", GAUGE,
	  "Since the counters started." },
	{ "unchanged", 1, NULL, "mtftl_unchanged_seconds", GAUGE,
	  "Since the mount, or since a zone failed, blocks were lost or the device turned read-only." },
	{ "written", BYTES, NULL, "mtftl_written_bytes_total", COUNTER,
	  "Data that users wrote." },
	{ "absorbed", BYTES, NULL, "mtftl_absorbed_bytes_total", COUNTER,
	  "Data that was overwritten while it was buffered." },
	{ "trimmed", BYTES, NULL, "mtftl_discarded_bytes_total", COUNTER,
	  "Data that users discarded." },
	{ "read", BYTES, NULL, "mtftl_read_bytes_total", COUNTER,
	  "Data that users read." },
	{ "hits", BYTES, NULL, "mtftl_read_hit_bytes_total", COUNTER,
	  "Data that users read, of it from the buffers." },
	{ "flash_data", BYTES, "kind=\"data\"", "mtftl_flash_written_bytes_total", COUNTER,
	  "Data written to the drive." },
	{ "flash_gc", BYTES, "kind=\"gc\"", NULL, NULL, NULL },
	{ "flash_headers", BYTES, "kind=\"headers\"", NULL, NULL, NULL },
	{ "flash_meta", BYTES, "kind=\"metadata\"", NULL, NULL, NULL },
	{ "waits", 1, NULL, "mtftl_buffer_waits_total", COUNTER,
	  "Writes that found the buffer full." },
	{ "flushes", 1, NULL, "mtftl_flushes_total", COUNTER,
	  "Rounds of flushes." },
	{ "checkpoints", 1, NULL, "mtftl_checkpoints_total", COUNTER,
	  "Checkpoints." },
	{ "victims", 1, NULL, "mtftl_victim_zones_total", COUNTER,
	  "Zones that GC collected." },
	{ "since_checkpoint", 1, NULL, "mtftl_units_since_checkpoint", GAUGE,
	  "Units that a mount after a crash reads." },
	{ "read_errors", 1, NULL, "mtftl_read_errors_total", COUNTER,
	  "Reads that the drive failed." },
	{ "write_errors", 1, NULL, "mtftl_write_errors_total", COUNTER,
	  "Writes that the drive failed." },
	{ "lost", 1, NULL, "mtftl_lost_blocks", GAUGE,
	  "Blocks that could not be read any more." },
	{ "wear_least", 1, "zone=\"least\"", "mtftl_zone_erases", GAUGE,
	  "Erases since the format of the least and of the most worn zone." },
	{ "wear_most", 1, "zone=\"most\"", NULL, NULL, NULL },
	{ "wear_total", 1, NULL, "mtftl_zone_erases_total", COUNTER,
	  "Erases of all zones since the format." },
};

static void print_label(FILE *out, const char *key, const char *value)
{
	fprintf(out, "%s=\"", key);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			fputc('\\', out);
		if (*value == '\n')
			fputs("\\n", out);
		else
			fputc(*value, out);
	}
	fputc('"', out);
}

static void print_sample(FILE *out, const char *metric, const struct asked *asked, const char *label,
			 u64 value)
{
	fprintf(out, "%s{", metric);
	print_label(out, "name", asked->name);
	fprintf(out, "%s%s} %" PRIu64 "\n", label ? "," : "", label ? label : "", value);
}

static void print_head(FILE *out, const char *metric, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
}

/* What is not a number of the status line. */
static void print_states(FILE *out, const struct asked *all, size_t nr)
{
	static const char *const gc[] = { "idle", "active", "short" };
	char label[32];
	size_t i, j;

	print_head(out, "mtftl_info", "gauge", "1; the drive below the device.");
	for (i = 0; i < nr; i++) {
		fputs("mtftl_info{", out);
		print_label(out, "name", all[i].name);
		fputc(',', out);
		print_label(out, "drive", all[i].device.lower);
		fputs("} 1\n", out);
	}
	print_head(out, "mtftl_size_bytes", "gauge", "Size of the device.");
	for (i = 0; i < nr; i++)
		print_sample(out, "mtftl_size_bytes", &all[i], NULL, all[i].device.target.sectors << 9);
	print_head(out, "mtftl_read_only", "gauge", "1 if the target has turned read-only by itself.");
	for (i = 0; i < nr; i++)
		print_sample(out, "mtftl_read_only", &all[i], NULL, !all[i].device.target.read_only &&
			     strcmp(status_text(&all[i].device.status, "mode"), "rw"));
	print_head(out, "mtftl_suspended", "gauge", "1 if the device is suspended.");
	for (i = 0; i < nr; i++)
		print_sample(out, "mtftl_suspended", &all[i], NULL, all[i].device.target.suspended);
	print_head(out, "mtftl_gc_state", "gauge", "1 for the state that GC is in; short: users wait.");
	for (i = 0; i < nr; i++)
		for (j = 0; j < ARRAY_SIZE(gc); j++) {
			snprintf(label, sizeof(label), "state=\"%s\"", gc[j]);
			print_sample(out, "mtftl_gc_state", &all[i], label,
				     !strcmp(status_text(&all[i].device.status, "gc"), gc[j]));
		}
}

static void print_counters(FILE *out, const struct asked *all, size_t nr)
{
	const struct sample *first, *at, *end = samples + ARRAY_SIZE(samples);
	size_t i;

	for (first = samples; first < end; first = at) {
		print_head(out, first->metric, first->type, first->help);
		at = first;
		do {
			for (i = 0; i < nr; i++)
				print_sample(out, first->metric, &all[i], at->label,
					     status_sum(&all[i].device.status, at->field) * at->factor);
		} while (++at < end && !at->metric);
	}
}

#define WAIT_METRIC	"mtftl_buffer_wait_seconds"

/*
 * A histogram has the writes up to a limit, with all below it. The target does not add up how long
 * they waited, so there is no sum.
 */
static void print_waits(FILE *out, const struct asked *asked)
{
	const struct waits *waits = &asked->waits;
	u64 writes = 0;
	char label[48];
	u32 i;

	for (i = 0; i + 1 < waits->nr_buckets; i++) {
		writes += waits->writes[i];
		snprintf(label, sizeof(label), "le=\"%.9g\"", waits_limit(i) * 1e-6);
		print_sample(out, WAIT_METRIC "_bucket", asked, label, writes);
	}
	print_sample(out, WAIT_METRIC "_bucket", asked, "le=\"+Inf\"", waits->nr);
	print_sample(out, WAIT_METRIC "_count", asked, NULL, waits->nr);
}

static void print_histograms(FILE *out, const struct asked *all, size_t nr)
{
	size_t i;

	print_head(out, WAIT_METRIC, "histogram",
		   "How long writes that found the buffer full waited for room, since the mount.");
	for (i = 0; i < nr; i++)
		print_waits(out, &all[i]);
}

/* The collector reads the file at any time, so it is replaced as a whole. */
static void write_file(const char *path, const struct asked *all, size_t nr)
{
	char part[PATH_MAX];
	FILE *out = stdout;

	if (path) {
		if (snprintf(part, sizeof(part), "%s.%d", path, getpid()) >= (int)sizeof(part))
			fail(EXIT_FAILED, "%s: the path is too long", path);
		out = fopen(part, "we");
		if (!out)
			fail(EXIT_FAILED, "%s: cannot write: %s", part, strerror(errno));
	}
	print_states(out, all, nr);
	print_counters(out, all, nr);
	print_histograms(out, all, nr);
	if (path && (fclose(out) || rename(part, path))) {
		int err = errno;

		unlink(part);
		fail(EXIT_FAILED, "%s: cannot write: %s", path, strerror(err));
	}
}

/* A device that has no table, or is gone by now, has nothing to say. */
static void ask(struct vector *all, const char *name, bool must_be)
{
	struct asked asked = { .name = name };

	/* The line stays in memory until the program ends. */
	if (!open_device_ask(name, must_be, &asked.device) || asked.device.status.nr < 2)
		return;
	waits_ask(name, &asked.waits);
	*(struct asked *)vector_add(all, sizeof(asked)) = asked;
}

int cmd_metrics(int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	struct vector all = { 0 };
	const char *path = NULL;
	char **names;
	size_t i, nr;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		path = optarg;
	}
	for (i = optind; i < (size_t)argc; i++)
		ask(&all, argv[i], true);
	if (optind == argc) {
		names = dm_names(&nr);
		for (i = 0; i < nr; i++)
			ask(&all, names[i], false);
	}
	write_file(path, all.items, all.nr);
	return EXIT_OK;
}
