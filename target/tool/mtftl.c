// SPDX-License-Identifier: GPL-2.0
/* mtftl(8): finds the command and runs it; messages and progress for all. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "format.h"
#include "mtftl.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *usage;
} commands[] = {
	{ "format", cmd_format, "[--op PERCENT] [--force] [--uuid UUID] DEVICE" },
};

static bool bar_shown;

static void bar_clear(void)
{
	if (bar_shown)
		fputs("\r\033[K", stderr);
	bar_shown = false;
}

void fail(enum mtftl_exit code, const char *format, ...)
{
	va_list args;

	bar_clear();
	fflush(stdout);
	fputs("mtftl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(code);
}

void *xalloc(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory)
		fail(EXIT_FAILED, "out of memory: %zu bytes wanted", count * size);
	return memory;
}

void *xalloc_blocks(size_t blocks)
{
	void *memory = aligned_alloc(MTFTL_BLOCK_SIZE, blocks * MTFTL_BLOCK_SIZE);

	if (!memory)
		fail(EXIT_FAILED, "out of memory: %zu blocks wanted", blocks);
	return memset(memory, 0, blocks * MTFTL_BLOCK_SIZE);
}

void progress(const char *what, u64 done, u64 total)
{
	static int terminal = -1;
	static struct timespec last;
	struct timespec now;
	char bar[41];
	unsigned int i;

	if (terminal < 0)
		terminal = isatty(STDERR_FILENO);
	if (!terminal)
		return;
	if (done >= total) {
		bar_clear();
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (done == 0)
		last = now;
	if ((now.tv_sec - last.tv_sec) * 1000 + (now.tv_nsec - last.tv_nsec) / 1000000 < 100)
		return;
	last = now;
	for (i = 0; i < sizeof(bar) - 1; i++)
		bar[i] = i * total < done * (sizeof(bar) - 1) ? '#' : '.';
	bar[i] = 0;
	fprintf(stderr, "\r%s [%s] %3" PRIu64 "%%", what, bar, done * 100 / total);
	bar_shown = true;
}

static void usage(FILE *to)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(to, "%s mtftl %-6s %s\n", i ? "      " : "usage:", commands[i].name,
			commands[i].usage);
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))) {
		usage(stdout);
		return EXIT_OK;
	}
	for (i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	if (argc > 1)
		fprintf(stderr, "mtftl: no command '%s'\n", argv[1]);
	usage(stderr);
	return EXIT_USAGE;
}
