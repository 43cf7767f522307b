// SPDX-License-Identifier: GPL-2.0
/*
 * Admission on small drives, in every state: see check.h.
 *
 *   model          all drives
 *   model NAME...  these
 */
#include <stdio.h>
#include <time.h>

#include "tests/model/check.h"

/* Four zones to spare are the fewest that a format leaves, so five zones for data are. */
static const struct geometry drives[] = {
	{ "5x2", .zones = 5, .units = 2, .lanes = 2, .data_zones = 2, .user_streams = 1,
	  .gc_streams = 1, .victims = 2, .failures = 2 },
	{ "5x2-discards", .zones = 5, .units = 2, .lanes = 1, .data_zones = 2, .user_streams = 1,
	  .gc_streams = 1, .victims = 1, .discards = true, .free_records = true },
	{ "5x3", .zones = 5, .units = 3, .lanes = 3, .data_zones = 2, .user_streams = 1,
	  .gc_streams = 1, .victims = 2, .failures = 1, .replaces = true },
	{ "5x4", .zones = 5, .units = 4, .lanes = 3, .data_zones = 2, .user_streams = 1,
	  .gc_streams = 1, .victims = 1, .failures = 1 },
	{ "6x2", .zones = 6, .units = 2, .lanes = 2, .data_zones = 2, .user_streams = 1,
	  .gc_streams = 1, .victims = 2, .failures = 1, .replaces = true },
	{ "6x2-low", .zones = 6, .units = 2, .lanes = 1, .data_zones = 2, .user_streams = 1,
	  .gc_streams = 1, .victims = 1, .failures = 1, .low_water = 4 },
	{ "6x2-mixed", .zones = 6, .units = 2, .lanes = 1, .data_zones = 2, .user_streams = 1,
	  .gc_streams = 1, .victims = 1, .gc_mixes = true },
	{ "6x2-apart", .zones = 6, .units = 2, .lanes = 1, .data_zones = 2, .user_streams = 1,
	  .gc_streams = 1, .victims = 1, .failures = 1, .users_apart = true },
	{ "6x2-users", .zones = 6, .units = 2, .lanes = 2, .data_zones = 3, .user_streams = 2,
	  .gc_streams = 1, .victims = 1 },
	{ "6x2-gc", .zones = 6, .units = 2, .lanes = 1, .data_zones = 3, .user_streams = 1,
	  .gc_streams = 2, .victims = 1 },
	{ "6x3", .zones = 6, .units = 3, .lanes = 3, .data_zones = 2, .user_streams = 1,
	  .gc_streams = 1, .victims = 1 },
	{ "7x2", .zones = 7, .units = 2, .lanes = 1, .data_zones = 2, .user_streams = 1,
	  .gc_streams = 1, .victims = 1, .failures = 1 },
	{ "8x2", .zones = 8, .units = 2, .lanes = 2, .data_zones = 2, .user_streams = 1,
	  .gc_streams = 1, .victims = 1 },
	{ "8x2-shared", .zones = 8, .units = 2, .lanes = 2, .data_zones = 1, .user_streams = 1,
	  .gc_streams = 1, .victims = 1, .failures = 1 },
	{ "7x4-shared", .zones = 7, .units = 4, .lanes = 3, .data_zones = 1, .user_streams = 1,
	  .gc_streams = 1, .victims = 1 },
};

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + 1e-9 * now.tv_nsec;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], name); i++)
		;
	return argc == 1 || i < argc;
}

int main(int argc, char **argv)
{
	const struct geometry *drive;
	struct result result;
	double since;
	u32 done = 0;

	for (drive = drives; drive < drives + ARRAY_SIZE(drives); drive++) {
		if (!is_wanted(drive->name, argc, argv))
			continue;
		since = seconds();
		if (!check_drive(drive, &result)) {
			printf("model %s: not all of it holds\n", drive->name);
			return 1;
		}
		printf("model %-13s %8u states %9llu steps %6u ends %5.1f s\n", drive->name,
		       result.states, (unsigned long long)result.steps, result.ends,
		       seconds() - since);
		fflush(stdout);
		done++;
	}
	/* A drive that does not exist has no states. */
	return done ? 0 : 2;
}
