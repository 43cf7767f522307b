// SPDX-License-Identifier: GPL-2.0
/* mtftl discard: everything on an open device, so that all of its zones are free again. */
#include <fcntl.h>
#include <getopt.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "dm.h"
#include "mtftl.h"

#define PIECE	(1ull << 30)	/* so that progress is seen, and Ctrl-C heard */

int cmd_discard(int argc, char **argv)
{
	static const struct option options[] = {
		{ "force", no_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	struct dm_target_info target;
	uint64_t range[2], size;
	const char *name;
	bool force = false;
	int c, fd;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		force = true;
	}
	if (argc - optind != 1)
		fail(EXIT_USAGE, "discard: %d names given, expected one", argc - optind);
	name = argv[optind];
	free(dm_target_line(name, DM_DEVICE_TABLE, &target));
	if (target.read_only || target.suspended || target.empty)
		fail(EXIT_FAILED, "%s: %s, expected a device that takes writes", name,
		     target.read_only ? "opened read-only" : target.suspended ? "suspended" :
		     "never resumed");
	fd = open(target.node, O_RDWR | O_EXCL | O_CLOEXEC);
	if (fd < 0)
		fail(EXIT_FAILED, "%s: cannot open %s: %s", name, target.node,
		     errno == EBUSY ? "in use, expected an idle device" : strerror(errno));
	if (!force) {
		if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
			fail(EXIT_FAILED, "%s: all data would be lost; --force discards it", name);
		fprintf(stderr, "WARNING: this discards all data on %s, irrevocably.\n", name);
		if (!is_confirmed())
			fail(EXIT_FAILED, "%s: not confirmed with YES, nothing is changed", name);
	}
	size = target.sectors << 9;
	for (range[0] = 0; range[0] < size; range[0] += range[1]) {
		progress("discarding", range[0], size);
		range[1] = size - range[0] < PIECE ? size - range[0] : PIECE;
		if (ioctl(fd, BLKDISCARD, range))
			fail(EXIT_FAILED, "%s: cannot discard: %s", name, strerror(errno));
	}
	progress("discarding", size, size);
	if (fsync(fd))
		fail(EXIT_FAILED, "%s: cannot flush: %s", name, strerror(errno));
	close(fd);
	return EXIT_OK;
}
