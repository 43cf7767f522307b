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
	struct open_device device;
	char size[32];

	/* It is another target's, or was removed meanwhile. */
	if (!open_device_ask(name, false, &device))
		return;
	snprintf(size, sizeof(size), "%" PRIu64 " MiB", device.target.sectors >> 11);
	printf("%-16s %-16s %12s  %s\n", name, device.lower, size,
	       health_state(&device.status, &device.target));
	free(device.line);
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
