// SPDX-License-Identifier: GPL-2.0
/* Messages, memory and progress for every command, and for the tests. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "format/format.h"
#include "mtftl.h"
#include "vector.h"

static bool bar_shown;

void progress_clear(void)
{
	if (bar_shown)
		fputs("\r\033[K", stderr);
	bar_shown = false;
}

void fail(enum mtftl_exit code, const char *format, ...)
{
	va_list args;

	progress_clear();
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
	return memory;
}

bool is_confirmed(void)
{
	char *answer = NULL;
	size_t size = 0;
	bool yes;

	fputs("Are you sure? (Type 'yes' in capital letters): ", stderr);
	yes = getline(&answer, &size, stdin) > 0 && !strcmp(answer, "YES\n");
	free(answer);
	return yes;
}

/* Bytes that a program may allocate without harming others, swap included; 0 if unknown. */
static u64 available_memory(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	u64 sum = 0, kib;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1 ||
		    sscanf(line, "SwapFree: %" SCNu64, &kib) == 1)
			sum += kib << 10;
	if (file)
		fclose(file);
	return sum;
}

void need_memory(const char *path, u64 needed)
{
	u64 available = available_memory();

	if (available && needed > available)
		fail(EXIT_FAILED, "%s: takes %.1f GiB of memory, expected at most the %.1f GiB that"
		     " are available", path, needed / (double)(1 << 30),
		     available / (double)(1 << 30));
}

void *vector_add(struct vector *vector, size_t size)
{
	assert(size && vector->nr <= vector->room);
	if (vector->nr == vector->room) {
		vector->room = vector->room ? 2 * vector->room : 64;
		vector->items = realloc(vector->items, vector->room * size);
		if (!vector->items)
			fail(EXIT_FAILED, "out of memory: %" PRIu64 " records of %zu bytes",
			     vector->room, size);
	}
	return (char *)vector->items + vector->nr++ * size;
}

void vector_free(struct vector *vector)
{
	free(vector->items);
	*vector = (struct vector) { 0 };
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
		progress_clear();
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
