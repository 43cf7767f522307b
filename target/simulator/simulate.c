// SPDX-License-Identifier: GPL-2.0
/*
 * simulate: what the target's policies cost, in write amplification and wear, on a drive without
 * time.
 * Words are NAME=VALUE (see parameters below); what was found is printed as JSON.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "format/parse.h"
#include "limit.h"
#include "load.h"

struct parameters {
	u32 zones, capacity, op_permille, lanes, write_unit, gc_unit, limit;
	u32 entries;		/* of the buffer */
	u32 low_water;		/* 0: by size */
	u32 seed;
	u32 age, writes;	/* drive writes: before what counts, and that count */
	u32 wear_interval, wear_spread;
	const char *load, *placement, *victims;
};

static const struct number {
	const char *name;
	size_t offset;
} numbers[] = {
	{ "zones",		offsetof(struct parameters, zones) },
	{ "capacity",		offsetof(struct parameters, capacity) },
	{ "op",			offsetof(struct parameters, op_permille) },
	{ "lanes",		offsetof(struct parameters, lanes) },
	{ "write_unit",		offsetof(struct parameters, write_unit) },
	{ "gc_unit",		offsetof(struct parameters, gc_unit) },
	{ "open_limit",		offsetof(struct parameters, limit) },
	{ "buffer_entries",	offsetof(struct parameters, entries) },
	{ "low_water",		offsetof(struct parameters, low_water) },
	{ "seed",		offsetof(struct parameters, seed) },
	{ "age",		offsetof(struct parameters, age) },
	{ "writes",		offsetof(struct parameters, writes) },
	{ "wear_interval",	offsetof(struct parameters, wear_interval) },
	{ "wear_spread",	offsetof(struct parameters, wear_spread) },
};

static bool parse(struct parameters *parameters, const char *word)
{
	const char *value = strchr(word, '=');
	size_t length = value ? value - word : 0, i;

	if (!value++)
		return false;
	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (strlen(numbers[i].name) == length && !memcmp(numbers[i].name, word, length))
			return sscanf(value, "%u",
				      (u32 *)((char *)parameters + numbers[i].offset)) == 1;
	if (!strncmp(word, "load=", 5))
		parameters->load = value;
	else if (!strncmp(word, "placement=", 10))
		parameters->placement = value;
	else if (!strncmp(word, "gc_policy=", 10))
		parameters->victims = value;
	else
		return false;
	return true;
}

/* As table.c shares the drive out. */
static bool set_up(struct drive *drive, const struct parameters *parameters)
{
	u32 ckpt, spare, buffer_zones, needed;
	struct mtftl_placement wanted;

	drive->blocks = mtftl_logical_blocks(parameters->zones, parameters->capacity,
					     parameters->op_permille, false);
	drive->placing = placing_find(drive, parameters->placement);
	drive->victims = mtftl_victim_policy(parameters->victims);
	if (!drive->blocks || !drive->placing || !drive->victims || !parameters->lanes ||
	    !parameters->write_unit || !parameters->gc_unit)
		return false;
	wanted.user_classes = drive->placing->user_classes;
	wanted.gc_classes = drive->placing->gc_classes;
	if (mtftl_budget(parameters->limit, parameters->lanes, parameters->zones, &wanted,
			 &drive->budget) ||
	    drive->budget.gc_shares ||
	    drive->budget.user_streams + drive->budget.gc_streams > MAX_STREAMS)
		return false;
	ckpt = mtftl_ckpt_zones(parameters->zones, parameters->capacity, drive->blocks);
	drive->nr_zones = parameters->zones - MTFTL_NR_SB_ZONES - 2 * ckpt;
	drive->capacity = parameters->capacity - mtftl_footer_reserve(parameters->capacity, false);
	drive->write_unit = parameters->write_unit;
	drive->gc_unit = parameters->gc_unit;
	drive->lanes = parameters->lanes;
	drive->wear_interval = parameters->wear_interval;
	drive->wear_spread = parameters->wear_spread;
	needed = (drive->blocks + drive->blocks / 32 + drive->capacity - 1) / drive->capacity;
	spare = drive->nr_zones > needed ? drive->nr_zones - needed : 0;
	buffer_zones = 1 +
		(2 * parameters->entries + parameters->capacity - 1) / parameters->capacity;
	drive->limits.usable = drive->capacity;
	drive->limits.buffer_zones = 1;
	drive->limits.reserve = buffer_zones + 1;
	drive->low_water = parameters->low_water ? parameters->low_water :
			   drive->limits.reserve + mtftl_rate_ready(spare, parameters->zones);
	return drive->low_water > drive->limits.reserve;
}

/* The buffer: a block that is in it takes what is written to it. */
struct buffer {
	u32 *blocks, entries, used, at;
	u8 *holds;
	u64 absorbed;
};

static void write_through(struct drive *drive, struct buffer *buffer, u32 block)
{
	u32 oldest;

	if (!buffer->entries) {
		drive_write(drive, block);
		return;
	}
	if (buffer->holds[block]) {
		buffer->absorbed++;
		return;
	}
	buffer->holds[block] = 1;
	if (buffer->used < buffer->entries) {
		buffer->blocks[buffer->used++] = block;
		return;
	}
	oldest = buffer->blocks[buffer->at];
	buffer->blocks[buffer->at] = block;
	buffer->at = (buffer->at + 1) % buffer->entries;
	buffer->holds[oldest] = 0;
	drive_write(drive, oldest);
}

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

/* Of erase counts: the least, what 5% and 95% have at most, the most; over the mean. */
static void print_wear(const struct drive *drive)
{
	u32 *counts = malloc(drive->nr_zones * sizeof(u32)), i;
	double mean = 0;

	for (i = 0; i < drive->nr_zones; i++) {
		counts[i] = drive->zones[i].erase_count;
		mean += counts[i];
	}
	mean /= drive->nr_zones;
	qsort(counts, drive->nr_zones, sizeof(u32), compare);
	printf("\"erases\": %.3f, \"wear\": [%.4f, %.4f, %.4f, %.4f]", mean, counts[0] / mean,
	       counts[drive->nr_zones / 20] / mean,
	       counts[drive->nr_zones - 1 - drive->nr_zones / 20] / mean,
	       counts[drive->nr_zones - 1] / mean);
	free(counts);
}

static void print_found(const struct drive *drive, const struct load *load, u64 user, u64 moved,
			u64 headers, u64 absorbed, u64 asked, u32 entries)
{
	/* Where data may lie: not in what GC keeps free, nor in headers. */
	double free_zones = drive->low_water - 1, blocks = drive->capacity;
	double room = (drive->nr_zones - free_zones) * blocks * drive->gc_unit /
		      (drive->gc_unit + 1);

	printf("{\"blocks\": %u, \"zones\": %u, \"streams\": [%u, %u], \"spare\": %.4f, ",
	       drive->blocks, drive->nr_zones, drive->budget.user_streams,
	       drive->budget.gc_streams, room / drive->blocks);
	printf("\"stored\": %llu, \"moved_over_stored\": %.4f, \"amplification\": %.4f, ",
	       (unsigned long long)user, (double)moved / user, 1 + (double)moved / user);
	printf("\"headers_over_stored\": %.4f, \"absorbed\": %.4f, ", (double)headers / user,
	       (double)absorbed / asked);
	if (!load_is_trace(load))
		printf("\"limit\": %.4f, ",
		       limit_of_placement(load_shares(load), drive->blocks, room / drive->blocks,
					  entries));
	print_wear(drive);
	printf("}\n");
}

/* To placement that knows. */
static void tell_shares(struct drive *drive, double *shares, const struct load *load, u32 entries)
{
	stored_shares(shares, load_shares(load), drive->blocks, entries);
	drive->shares = shares;
}

/* Age the drive, then count what as many writes as asked for cost. */
static void measure(struct drive *drive, struct load *load, const struct parameters *parameters)
{
	u64 asked = (u64)parameters->writes * drive->blocks, i, user, moved, headers, absorbed;
	double *shares = malloc(drive->blocks * sizeof(*shares));
	struct buffer buffer = {
		.entries = parameters->entries,
		.blocks = malloc((parameters->entries + 1) * sizeof(u32)),
		.holds = calloc(drive->blocks, 1),
	};

	drive_start(drive);
	tell_shares(drive, shares, load, parameters->entries);
	for (i = 0; i < drive->blocks; i++)
		drive_write(drive, i);
	for (i = 0; i < (u64)parameters->age * drive->blocks; i++)
		write_through(drive, &buffer, load_next(load));
	user = drive->user_blocks;
	moved = drive->gc_blocks;
	headers = drive->headers;
	absorbed = buffer.absorbed;
	for (i = 0; i < asked; i++) {
		if (i == asked / 2) {
			load_half_way(load);
			tell_shares(drive, shares, load, parameters->entries);
		}
		write_through(drive, &buffer, load_next(load));
	}
	print_found(drive, load, drive->user_blocks - user, drive->gc_blocks - moved,
		    drive->headers - headers, buffer.absorbed - absorbed, asked, buffer.entries);
	drive_end(drive);
	free(shares);
	free(buffer.blocks);
	free(buffer.holds);
}

int main(int argc, char **argv)
{
	struct parameters parameters = {
		.zones = 1024, .capacity = 1536, .op_permille = 250, .lanes = 8, .write_unit = 32,
		.gc_unit = 64, .entries = 1024, .seed = 1, .age = 6, .writes = 6,
		.wear_interval = 32, .wear_spread = 16, .load = "uniform", .placement = "by-life",
		.victims = "cost-benefit",
	};
	struct drive drive = {};
	struct load *load;
	int arg;

	for (arg = 1; arg < argc; arg++)
		if (!parse(&parameters, argv[arg])) {
			fprintf(stderr, "%s is not understood, expected NAME=VALUE\n", argv[arg]);
			return 1;
		}
	if (!set_up(&drive, &parameters)) {
		fprintf(stderr, "no such drive, or no such policy\n");
		return 1;
	}
	load = load_new(parameters.load, drive.blocks, parameters.seed);
	if (!load) {
		fprintf(stderr, "load is %s, expected uniform, zipf:T, hot:W/B, shift:W/B, fio-zipf:T/JOBS or trace:FILE\n",
			parameters.load);
		return 1;
	}
	if (!strcmp(drive.placing->name, "known") && load_is_trace(load)) {
		fprintf(stderr, "placement=known needs a distribution: a trace tells no rates\n");
		return 1;
	}
	measure(&drive, load, &parameters);
	load_free(load);
	return 0;
}
