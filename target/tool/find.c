// SPDX-License-Identifier: GPL-2.0
/*
 * mtftl probe, and the search for a drive by its UUID. Anybody may have written what is on a drive:
 * each is looked at by a process of its own, which takes from it what super_find() has verified.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "device.h"
#include "drive.h"
#include "find.h"
#include "mtftl.h"
#include "super.h"
#include "vector.h"

#define UUID	"UUID="

/* Keys that udev and lsblk know, and some of our own. */
static void print_keys(const struct super *super)
{
	char uuid[UUID_STR_LEN];

	uuid_unparse_lower(super->info.uuid, uuid);
	printf("ID_FS_TYPE=mtftl\n"
	       "ID_FS_USAGE=other\n"
	       "ID_FS_VERSION=%u\n"
	       "ID_FS_UUID=%s\n"
	       "ID_FS_UUID_ENC=%s\n"
	       "MTFTL_SIZE=%" PRIu64 "\n"
	       "MTFTL_CLEAN=%d\n"
	       "MTFTL_HEADERS=%s\n",
	       MTFTL_VERSION, uuid, uuid, super->info.logical_blocks << MTFTL_BLOCK_SHIFT,
	       super->says_clean, super->info.oob ? "metadata" : "blocks");
}

int cmd_probe(int argc, char **argv)
{
	static const struct option options[] = {
		{ NULL, 0, NULL, 0 },
	};
	struct device *device;
	struct super super;
	int err;

	if (getopt_long(argc, argv, "", options, NULL) >= 0)
		return EXIT_USAGE;
	if (argc - optind != 1)
		fail(EXIT_USAGE, "probe: %d devices given, expected one", argc - optind);
	device = device_open(argv[optind], DEVICE_READ);
	err = super_find(&device->flash, &super);
	if (err == -ENODATA || err == -ENXIO)
		fail(EXIT_NOTHING, "%s: %s", device->path, super_error(err));
	/* Metadata that cannot be read says nothing about what the drive is. */
	if (err && err != -EOPNOTSUPP)
		fail(EXIT_DAMAGE, "%s: %s", device->path, super_error(err));
	print_keys(&super);
	device_close(device);
	return EXIT_OK;
}

/* Search */

static bool read_line(const char *block, const char *attribute, char *line, size_t size)
{
	char path[PATH_MAX];
	FILE *file;
	bool there;

	snprintf(path, sizeof(path), "/sys/block/%s/%s", block, attribute);
	file = fopen(path, "re");
	there = file && fgets(line, size, file);
	if (file)
		fclose(file);
	if (there)
		line[strcspn(line, "\n")] = 0;
	return there;
}

/* If something holds a drive, nothing else can open it. */
static bool is_held(const char *block)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool held = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/block/%s/holders", block);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		held |= entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return held;
}

static bool has_uuid(const char *path, const uuid_t wanted)
{
	struct drive_facts facts;

	return drive_ask(path, -1, &facts) && facts.has_super &&
	       !uuid_compare(facts.super.uuid, wanted);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The paths of all idle drives with this UUID, in order. */
static void search(const uuid_t wanted, struct vector *found)
{
	char model[32], number[32], path[PATH_MAX], *copy;
	unsigned int major, minor;
	struct dirent *entry;
	DIR *dir = opendir("/sys/block");

	while (dir && (entry = readdir(dir))) {
		if (!read_line(entry->d_name, "queue/zoned", model, sizeof(model)) ||
		    strcmp(model, "host-managed") || is_held(entry->d_name) ||
		    !read_line(entry->d_name, "dev", number, sizeof(number)) ||
		    sscanf(number, "%u:%u", &major, &minor) != 2)
			continue;
		device_name(makedev(major, minor), path, sizeof(path));
		if (!has_uuid(path, wanted))
			continue;
		copy = strdup(path);
		if (!copy)
			fail(EXIT_FAILED, "out of memory");
		*(char **)vector_add(found, sizeof(char *)) = copy;
	}
	if (dir)
		closedir(dir);
	if (found->nr)
		qsort(found->items, found->nr, sizeof(char *), by_text);
}

const char *find_drive(const char *device)
{
	struct vector found = { 0 };
	char **paths, names[1024] = "";
	uuid_t wanted;
	size_t used, i;

	if (strncmp(device, UUID, strlen(UUID)))
		return device;
	if (uuid_parse(device + strlen(UUID), wanted))
		fail(EXIT_USAGE, "%s: expected UUID= and a UUID", device);
	fflush(NULL);
	search(wanted, &found);
	paths = found.items;
	if (!found.nr)
		fail(EXIT_FAILED, "%s: no idle drive has it, expected one", device);
	if (found.nr == 1)
		return paths[0];
	for (i = 0; i < found.nr; i++) {
		used = strlen(names);
		snprintf(names + used, sizeof(names) - used, "%s%s", i ? " and " : "", paths[i]);
	}
	fail(EXIT_FAILED, "%s: %s have it, expected one drive: none is opened; one can be by its path",
	     device, names);
}
