// SPDX-License-Identifier: GPL-2.0
/* mtftl list: a line for each open device. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "dm.h"
#include "health.h"
#include "mtftl.h"
#include "status.h"

static void print_line(const char *name)
{
	char *table, *line, lower[PATH_MAX], size[32];
	struct dm_target_info target;
	struct status status;

	table = dm_our_line(name, DM_DEVICE_TABLE, &target);
	line = table ? dm_our_line(name, DM_DEVICE_STATUS, &target) : NULL;
	/* It is another target's, or was removed meanwhile. */
	if (!line) {
		free(table);
		return;
	}
	status_parse(&status, line);
	dm_lower_device(table, lower, sizeof(lower));
	snprintf(size, sizeof(size), "%" PRIu64 " MiB", target.sectors >> 11);
	printf("%-16s %-16s %12s  %s\n", name, lower, size, health_state(&status, &target));
	free(line);
	free(table);
}

int cmd_list(int argc, char **argv)
{
	static const struct option options[] = {
		{ NULL, 0, NULL, 0 },
	};
	size_t i, nr;
	char **names;

	if (getopt_long(argc, argv, "", options, NULL) >= 0)
		return EXIT_USAGE;
	if (argc != optind)
		fail(EXIT_USAGE, "list: %d words more than expected", argc - optind);
	names = dm_names(&nr);
	for (i = 0; i < nr; i++) {
		print_line(names[i]);
		free(names[i]);
	}
	free(names);
	return EXIT_OK;
}
