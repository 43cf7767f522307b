// SPDX-License-Identifier: GPL-2.0
/* Failing allocations of the target, see allocfail.h. */
#include "allocfail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAIL_NTH	"/proc/thread-self/fail-nth"
#define CACHES		"/sys/kernel/slab"
#define KMEMLEAK	"/sys/kernel/debug/kmemleak"

static const char *const allocators[] = {
	"/sys/kernel/debug/failslab",
	"/sys/kernel/debug/fail_page_alloc",
};

static int put(const char *folder, const char *name, const char *value)
{
	char path[320];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) != (ssize_t)strlen(value))
		err = -errno;
	close(fd);
	return err;
}

/* Where the module's code is: "name size users deps state address". */
static int module_range(char *start, char *end, size_t length)
{
	unsigned long long size, address;
	char line[512], name[64];
	FILE *file = fopen("/proc/modules", "r");
	int err = -ENOENT;

	if (!file)
		return -errno;
	while (err && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %llu %*s %*s %*s %llx", name, &size, &address) != 3 ||
		    strcmp(name, "dm_mtftl"))
			continue;
		snprintf(start, length, "0x%llx", address);
		snprintf(end, length, "0x%llx", address + size);
		err = 0;
	}
	fclose(file);
	return err;
}

/* Every cache's allocations but kmemleak's own: it gives up for good when one fails. */
static int choose_caches(void)
{
	DIR *caches = opendir(CACHES);
	struct dirent *entry;
	char path[300];

	if (!caches)
		return -errno;
	while ((entry = readdir(caches)) != NULL) {
		snprintf(path, sizeof(path), CACHES "/%s", entry->d_name);
		/* One that is shared with another cannot be chosen. */
		if (entry->d_name[0] != '.' && strncmp(entry->d_name, "kmemleak", 8))
			put(path, "/failslab", "1");
	}
	closedir(caches);
	return put(allocators[0], "/cache-filter", "Y");
}

int allocfail_setup(void)
{
	char start[32], end[32];
	int err = module_range(start, end, sizeof(start));
	unsigned int i;

	for (i = 0; !err && i < sizeof(allocators) / sizeof(allocators[0]); i++) {
		err = put(allocators[i], "/require-start", start);
		err = err ?: put(allocators[i], "/require-end", end);
		err = err ?: put(allocators[i], "/ignore-gfp-wait", "N");
		err = err ?: put(allocators[i], "/verbose", "0");
	}
	err = err ?: choose_caches();
	return err ?: put(allocators[1], "/min-order", "0");
}

int allocfail_nth(unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return put(FAIL_NTH, "", text);
}

bool allocfail_fired(void)
{
	char text[16] = "";
	int fd = open(FAIL_NTH, O_RDONLY | O_CLOEXEC);
	bool fired;

	if (fd < 0)
		return false;
	fired = read(fd, text, sizeof(text) - 1) > 0 && atoi(text) == 0;
	close(fd);
	return fired;
}

int allocfail_storm(unsigned int n)
{
	char text[16];
	unsigned int i;
	int err = 0;

	snprintf(text, sizeof(text), "%u", n);
	for (i = 0; !err && i < sizeof(allocators) / sizeof(allocators[0]); i++) {
		err = put(allocators[i], "/interval", text);
		err = err ?: put(allocators[i], "/times", "-1");
		err = err ?: put(allocators[i], "/probability", n ? "100" : "0");
	}
	return err;
}

int allocfail_leaks(void)
{
	int leaks = put(KMEMLEAK, "", "scan");
	char line[256];
	FILE *file;

	if (leaks)
		return leaks;
	file = fopen(KMEMLEAK, "r");
	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		leaks += !strncmp(line, "unreferenced object", 19);
		fputs(line, stdout);
	}
	fclose(file);
	return leaks;
}
