// SPDX-License-Identifier: GPL-2.0
/* mtftl top: what devices do, again and again: the difference of two looks at target and drive. */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "dm.h"
#include "drive.h"
#include "format/format.h"
#include "health.h"
#include "mtftl.h"
#include "status.h"

#define MAX_DEVICES	64
#define NAME_LEN	512	/* as libdevmapper escapes it */
#define MIN_INTERVAL	0.1	/* seconds */
#define MAX_INTERVAL	3600.0

/* One look at a device. */
struct look {
	char name[NAME_LEN];
	char state[24];
	char drive[PATH_MAX];
	struct timespec at;
	u64 read, written, flash;	/* blocks */
	u64 free_zones, zones, filled, room;
	char gc[8];
	struct drive_stat users, drive_stat;
};

static void __attribute__((noreturn)) fail_vanished(const struct look *now,
						    const struct look *before, u32 nr_before)
{
	const char *drive = now->drive;
	u32 i;

	/* The kernel has forgotten its name. */
	for (i = 0; i < nr_before; i++)
		if (!strcmp(before[i].name, now->name))
			drive = before[i].drive;
	fail(EXIT_FAILED, "%s: its drive %s has vanished, the kernel's log may say why", now->name,
	     drive);
}

/* False if the device is gone, or none of ours. */
static bool look_at(const char *name, struct look *look, const struct look *before, u32 nr_before)
{
	struct open_device device;
	const struct status *status = &device.status;

	if (!open_device_ask(name, false, &device))
		return false;
	snprintf(look->name, sizeof(look->name), "%s", name);
	snprintf(look->drive, sizeof(look->drive), "%s", device.lower);
	snprintf(look->state, sizeof(look->state), "%s", health_state(status, &device.target));
	snprintf(look->gc, sizeof(look->gc), "%s", status_text(status, "gc"));
	look->read = status_number(status, "read");
	look->written = status_number(status, "written");
	look->flash = status_flash_blocks(status);
	look->free_zones = status_number(status, "free");
	look->zones = status_number(status, "zones");
	look->filled = status_sum(status, "fill");
	look->room = status_number(status, "lanes") * status_number(status, "entries");
	free(device.line);
	clock_gettime(CLOCK_MONOTONIC, &look->at);
	drive_stat(device.target.number, &look->users);
	if (!device.target.empty && !drive_stat(device.number, &look->drive_stat))
		fail_vanished(look, before, nr_before);
	return true;
}

/* All devices, or those that are named: these must be there. */
static u32 look_at_all(int nr_names, char **names, struct look *looks, const struct look *before,
		       u32 nr_before)
{
	char **all = names;
	size_t nr = nr_names, i;
	u32 found = 0;

	if (!nr_names)
		all = dm_names(&nr);
	for (i = 0; i < nr && found < MAX_DEVICES; i++) {
		looks[found] = (struct look) { 0 };
		if (look_at(all[i], &looks[found], before, nr_before))
			found++;
		else if (nr_names)
			fail(EXIT_FAILED, "%s: no such mtftl device, or it has been closed", all[i]);
		if (!nr_names)
			free(all[i]);
	}
	if (!nr_names)
		free(all);
	return found;
}

static double mib_rate(u64 before, u64 now, double seconds)
{
	/* Counters may be reset. */
	return now > before ? (now - before) / seconds / (1 << (20 - MTFTL_BLOCK_SHIFT)) : 0;
}

static void print_head(void)
{
	printf("%-16s %-18s %9s %9s %8s %8s %9s %8s %8s %5s %11s %6s %7s\n", "name", "state",
	       "read", "write", "read", "write", "flash", "read", "write", "WA", "empty", "gc",
	       "buffers");
	printf("%-16s %-18s %9s %9s %8s %8s %9s %8s %8s %5s %11s %6s %7s\n", "", "", "MiB/s",
	       "MiB/s", "ms", "ms", "MiB/s", "ms", "ms", "", "zones", "", "%");
}

static void print_change(const struct look *before, const struct look *now)
{
	double seconds = now->at.tv_sec - before->at.tv_sec +
			 (now->at.tv_nsec - before->at.tv_nsec) * 1e-9;
	struct drive_stat users = drive_stat_since(&before->users, &now->users);
	struct drive_stat drive = drive_stat_since(&before->drive_stat, &now->drive_stat);
	double written = mib_rate(before->written, now->written, seconds);
	double flash = mib_rate(before->flash, now->flash, seconds);
	char empty[32];

	snprintf(empty, sizeof(empty), "%" PRIu64 "/%" PRIu64, now->free_zones, now->zones);
	printf("%-16s %-18s %9.1f %9.1f %8.2f %8.2f %9.1f %8.2f %8.2f %5.2f %11s %6s %7.0f\n",
	       now->name, now->state, mib_rate(before->read, now->read, seconds), written,
	       drive_mean(&users, 0), drive_mean(&users, 1), flash, drive_mean(&drive, 0),
	       drive_mean(&drive, 1), written > 0 ? flash / written : 0, empty, now->gc,
	       now->room ? 100.0 * now->filled / now->room : 0);
}

/* Devices that came meanwhile have no look before, and are shown the next time. */
static void print_changes(const struct look *before, u32 nr_before, const struct look *now, u32 nr)
{
	u32 i, j;

	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	print_head();
	for (i = 0; i < nr; i++)
		for (j = 0; j < nr_before; j++)
			if (!strcmp(now[i].name, before[j].name))
				print_change(&before[j], &now[i]);
	fflush(stdout);
	if (ferror(stdout))
		fail(EXIT_FAILED, "cannot write the output: %s", strerror(errno));
}

static double number_of(const char *option, const char *text, double least, double most)
{
	char *end;
	double number = strtod(text, &end);

	if (!*text || *end || !(number >= least && number <= most))
		fail(EXIT_USAGE, "%s %s: expected a number from %g to %g", option, text, least, most);
	return number;
}

int cmd_top(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'c' },
		{ "interval", required_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	static struct look looks[2][MAX_DEVICES];
	double interval = 1;
	u32 nr[2], turn = 0;
	int c, count = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		if (c == 'c')
			count = number_of("--count", optarg, 1, INT_MAX);
		if (c == 'i')
			interval = number_of("--interval", optarg, MIN_INTERVAL, MAX_INTERVAL);
	}
	if (argc - optind > MAX_DEVICES)
		fail(EXIT_USAGE, "top: %d names given, expected at most %d", argc - optind, MAX_DEVICES);
	nr[0] = look_at_all(argc - optind, argv + optind, looks[0], NULL, 0);
	do {
		nanosleep(&(struct timespec) { .tv_sec = floor(interval),
					       .tv_nsec = fmod(interval, 1) * 1e9 }, NULL);
		turn = !turn;
		nr[turn] = look_at_all(argc - optind, argv + optind, looks[turn], looks[!turn],
				       nr[!turn]);
		print_changes(looks[!turn], nr[!turn], looks[turn], nr[turn]);
	} while (!count || --count);
	return EXIT_OK;
}
