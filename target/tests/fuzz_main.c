// SPDX-License-Identifier: GPL-2.0
/*
 * A fuzzer without libFuzzer: runs each input that it is given, files or folders of them, and
 * prints their number. If it dies, its last line names the input.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "fuzz.h"

#define SECONDS_MOST	20	/* of CPU time an input */

static unsigned int nr_inputs;

static void die(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	exit(2);
}

/* SIGPROF ends it. On a host that is busy it does not come sooner. */
static void limit(unsigned int seconds)
{
	struct itimerval timer = { .it_value.tv_sec = seconds };

	if (setitimer(ITIMER_PROF, &timer, NULL))
		die("setitimer");
}

static void run_file(const char *path, size_t size)
{
	FILE *file = fopen(path, "rb");
	/* As large as it is: what reads behind it is found. */
	u8 *data = malloc(size ? size : 1);

	if (!file || !data || fread(data, 1, size, file) != size)
		die(path);
	fclose(file);
	fprintf(stderr, "%s\n", path);
	limit(SECONDS_MOST);
	LLVMFuzzerTestOneInput(data, size);
	limit(0);
	free(data);
	nr_inputs++;
}

static void run(const char *path)
{
	struct dirent **names;
	struct stat st;
	int nr, i;

	if (stat(path, &st))
		die(path);
	if (!S_ISDIR(st.st_mode)) {
		run_file(path, st.st_size);
		return;
	}
	nr = scandir(path, &names, NULL, alphasort);
	if (nr < 0)
		die(path);
	for (i = 0; i < nr; i++) {
		char *inner;

		if (names[i]->d_name[0] != '.') {
			if (asprintf(&inner, "%s/%s", path, names[i]->d_name) < 0)
				die(path);
			run(inner);
			free(inner);
		}
		free(names[i]);
	}
	free(names);
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		run(argv[i]);
	printf("%u inputs\n", nr_inputs);
	return nr_inputs ? 0 : 2;
}
