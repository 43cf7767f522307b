// SPDX-License-Identifier: GPL-2.0
/* mtftl check: the command line of check.c, with fsck's exit codes. */
#include <inttypes.h>
#include <stdio.h>

#include "check.h"
#include "device.h"
#include "mtftl.h"
#include "super.h"

int cmd_check(int argc, char **argv)
{
	struct check_totals totals;
	struct report report = { 0 };
	struct device *device;
	int err;

	if (argc != 2)
		fail(EXIT_USAGE, "check: %d devices given, expected one", argc - 1);
	device = device_open(argv[1], DEVICE_READ_IDLE);
	err = check_flash(&device->flash, &report, &totals);
	if (err)
		fail(EXIT_FAILED, "%s: %s", argv[1], super_error(err));
	device_close(device);

	printf("%s: %" PRIu64 " units, %" PRIu64 " blocks verified, %" PRIu64 " mapped, %" PRIu64
	       " lost, %" PRIu64 " torn, %" PRIu64 " in no unit: %" PRIu64 " errors, %" PRIu64
	       " notes\n", argv[1], totals.units, totals.blocks, totals.mapped, totals.lost,
	       totals.torn, totals.gap_blocks, report.errors, report.notes);
	return report.errors ? EXIT_DAMAGE : EXIT_OK;
}
