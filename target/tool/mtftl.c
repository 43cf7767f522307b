// SPDX-License-Identifier: GPL-2.0
/* mtftl(8): finds the command and runs it. */
#include <stdio.h>

#include "mtftl.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *usage;
} commands[] = {
	{ "format", cmd_format, "[--op PERCENT] [--headers auto|blocks|metadata] [--force] [--uuid UUID] DEVICE" },
	{ "open", cmd_open, "DEVICE NAME [KEY=VALUE...]" },
	{ "close", cmd_close, "NAME" },
	{ "check", cmd_check, "[--rebuild [--force]] DEVICE" },
	{ "dump", cmd_dump, "[--units] DEVICE" },
	{ "status", cmd_status, "[--counters | --json] NAME" },
};

static void usage(FILE *to)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(to, "%s mtftl %-6s %s\n", i ? "      " : "usage:", commands[i].name,
			commands[i].usage);
}

int main(int argc, char **argv)
{
	int status;
	size_t i;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))) {
		usage(stdout);
		return EXIT_OK;
	}
	for (i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name)) {
			status = commands[i].run(argc - 1, argv + 1);
			if (fflush(stdout) || ferror(stdout))
				fail(EXIT_FAILED, "cannot write the output: %s", strerror(errno));
			return status;
		}
	if (argc > 1)
		fprintf(stderr, "mtftl: no command '%s'\n", argv[1]);
	usage(stderr);
	return EXIT_USAGE;
}
