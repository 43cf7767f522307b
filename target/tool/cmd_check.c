// SPDX-License-Identifier: GPL-2.0
/* mtftl check: the command lines of check.c and rebuild.c, with fsck's exit codes. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "check.h"
#include "device.h"
#include "mtftl.h"
#include "rebuild.h"
#include "super.h"

/* The other way to go on is up to the user. It is none behind other errors, or those of writes. */
static void __attribute__((noreturn)) cannot(const struct device *device, int err)
{
	fail(EXIT_FAILED, "%s: %s%s", device->path, super_error(err),
	     err == -EIO && device->flash.eio_ends_it ?
	     ", or let --ignore-read-errors take it for lost" : "");
}

static int check(struct device *device)
{
	struct check_totals totals;
	struct report report = { 0 };
	struct super super;
	int err = super_find(&device->flash, &super);

	if (!err) {
		need_memory(device->path, check_memory(&device->flash, &super.info));
		err = check_flash(&device->flash, &report, &totals);
	}
	if (err)
		cannot(device, err);
	printf("%s: %" PRIu64 " units, %" PRIu64 " blocks verified, %" PRIu64 " mapped, %" PRIu64
	       " lost, %" PRIu64 " torn, %" PRIu64 " in no unit: %" PRIu64 " errors, %" PRIu64
	       " notes\n", device->path, totals.units, totals.blocks, totals.mapped, totals.lost,
	       totals.torn, totals.gap_blocks, report.errors, report.notes);
	return report.errors ? EXIT_DAMAGE : EXIT_OK;
}

static int rebuild(struct device *device, bool force)
{
	struct rebuild_totals totals;
	struct report report = { 0 };
	struct super super;
	int err = super_find(&device->flash, &super);

	if (!err) {
		need_memory(device->path, super.info.logical_blocks * sizeof(u32));
		err = rebuild_flash(&device->flash, &report, force, &totals);
	}
	if (err == -ENOSPC)
		fail(EXIT_FAILED, "%s: no zone is left for a checkpoint, expected empty ones that take"
		     " writes", device->path);
	if (err)
		cannot(device, err);
	if (!totals.missing && !totals.unfinished) {
		printf("%s: the checkpoint is whole, there is nothing to rebuild\n", device->path);
		return EXIT_OK;
	}
	if (!totals.missing) {
		printf("%s: the checkpoint is whole; %u zones end in a unit that is not: %s\n",
		       device->path, totals.unfinished,
		       force ? "they are finished now" : "--force finishes them");
		return force ? EXIT_OK : EXIT_DAMAGE;
	}
	printf("%s: %" PRIu64 " blocks mapped, %" PRIu64 " lost; of %" PRIu64 " the checkpoint does"
	       " not tell, %" PRIu64 " of them are found in the zones: some may be discarded ones that"
	       " come back\n", device->path, totals.mapped, totals.lost, totals.unknown, totals.found);
	printf(force ? "a new checkpoint is written\n" : "nothing is written; --force writes it\n");
	return force ? EXIT_OK : EXIT_DAMAGE;
}

int cmd_check(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rebuild", no_argument, NULL, 'r' },
		{ "force", no_argument, NULL, 'f' },
		{ "ignore-read-errors", no_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	bool rebuilds = false, force = false, ignores = false;
	struct device *device;
	int c, status;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		rebuilds |= c == 'r';
		force |= c == 'f';
		ignores |= c == 'i';
	}
	if (argc - optind != 1)
		fail(EXIT_USAGE, "check: %d devices given, expected one", argc - optind);
	if (force && !rebuilds)
		fail(EXIT_USAGE, "check: --force without --rebuild, expected both");
	device = device_open(argv[optind], force ? DEVICE_WRITE : DEVICE_READ_IDLE);
	device->flash.eio_is_loss = ignores;
	status = rebuilds ? rebuild(device, force) : check(device);
	device_close(device);
	return status;
}
