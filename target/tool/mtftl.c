// SPDX-License-Identifier: GPL-2.0
/* mtftl(8): finds the command and runs it. */
#include <stdio.h>

#include "mtftl.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *usage;
	const char *what;
} commands[] = {
	{ "format", cmd_format, "[--op PERCENT] [--headers auto|blocks|metadata] [--force] [--uuid UUID] DEVICE",
	  "erase DEVICE and prepare it for use; --force: without asking" },
	{ "open", cmd_open, "[--readonly] [DEVICE] NAME [KEY=VALUE...]",
	  "make DEVICE usable as /dev/mapper/NAME; KEY=VALUE: options, such as lanes=8;\n"
	  "           without DEVICE: as /etc/mtftltab says" },
	{ "close", cmd_close, "[--force | --deferred] NAME",
	  "flush and remove NAME, the opposite of open; --force: even if that loses data;\n"
	  "           --deferred: once nothing uses it" },
	{ "rename", cmd_rename, "NAME NEW",
	  "give an open device another name" },
	{ "check", cmd_check, "[--rebuild [--force]] [--ignore-read-errors] DEVICE",
	  "verify everything on a device that is not open; --rebuild: mend its map" },
	{ "dump", cmd_dump, "[--units] DEVICE",
	  "print the content of a device that is not open, as JSON" },
	{ "status", cmd_status, "[--counters | --json] NAME",
	  "print the health, size, fill level and wear of NAME" },
	{ "list", cmd_list, "",
	  "print all open devices: name, drive, size and state" },
	{ "top", cmd_top, "[--interval SECONDS] [--count N] [NAME...]",
	  "print what NAME or all open devices do, each second" },
	{ "zones", cmd_zones, "[--json | --svg FILE] NAME",
	  "draw the zones of NAME: state, valid share, age and wear" },
	{ "metrics", cmd_metrics, "[--output FILE] [NAME...]",
	  "print counters for Prometheus, of NAME or of all open devices" },
	{ "watch", cmd_watch, "[--journal] [--udev] NAME",
	  "print what happens to NAME, until it is closed; --journal, --udev: tell these" },
	{ "discard", cmd_discard, "[--force] NAME",
	  "discard all data of an open device, and free its zones; --force: without asking" },
	{ "resize", cmd_resize, "DEVICE",
	  "use zones that were appended to a device that is not open" },
	{ "header-backup", cmd_header_backup, "DEVICE FILE",
	  "save what makes DEVICE the one it is, to restore it if its superblock is lost" },
	{ "header-restore", cmd_header_restore, "[--force] DEVICE FILE",
	  "make DEVICE that one again; the next open looks at all zones" },
	{ "probe", cmd_probe, "DEVICE",
	  "print what DEVICE is, as KEY=VALUE; exit status 2: no mtftl device" },
	{ "tab", cmd_tab, "[--with OPTION]",
	  "print the lines of /etc/mtftltab, and which are wrong" },
};

static const struct command *find(const char *name)
{
	size_t i;

	for (i = 0; name && i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

/* Of one command, or of all. */
static void usage(FILE *to, const struct command *only)
{
	const char *before = "usage:";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (only && only != &commands[i])
			continue;
		fprintf(to, "%s mtftl %s%s%s\n           %s\n", before, commands[i].name,
			*commands[i].usage ? " " : "", commands[i].usage, commands[i].what);
		before = "      ";
	}
	if (only)
		fprintf(to, "The manual, mtftl-%s(8), has the rest.\n", only->name);
	else
		fputs("The manual, mtftl(8), has the rest.\n", to);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *command;
	int status;

	if (name && (!strcmp(name, "help") || !strcmp(argv[argc - 1], "--help"))) {
		usage(stdout, find(strcmp(name, "help") ? name : argv[2]));
		return EXIT_OK;
	}
	command = find(name);
	if (command) {
		status = command->run(argc - 1, argv + 1);
		if (fflush(stdout) || ferror(stdout))
			fail(EXIT_FAILED, "cannot write the output: %s", strerror(errno));
		return status;
	}
	if (name)
		fprintf(stderr, "mtftl: no command '%s'\n", name);
	usage(stderr, NULL);
	return EXIT_USAGE;
}
