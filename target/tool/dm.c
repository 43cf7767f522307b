// SPDX-License-Identifier: GPL-2.0
/* mtftl open, close and status: the device-mapper side, by libdevmapper. */
#include <fcntl.h>
#include <getopt.h>
#include <libdevmapper.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "device.h"
#include "json.h"
#include "mtftl.h"
#include "super.h"

#define MAX_PARAMS	4096

/* libdevmapper's own messages say less than ours. */
static void quiet(int level, const char *file, int line, int dm_errno, const char *format, ...)
{
	(void)level, (void)file, (void)line, (void)dm_errno, (void)format;
}

static struct dm_task *task_new(int type, const char *name)
{
	struct dm_task *task;

	dm_log_with_errno_init(quiet);
	task = dm_task_create(type);
	if (!task || !dm_task_set_name(task, name))
		fail(EXIT_FAILED, "%s: not a name that device-mapper takes", name);
	return task;
}

/* Run a task that makes or removes a node, and wait for udev where there is one. */
static int task_run_synced(struct dm_task *task)
{
	uint32_t cookie = 0;
	int ok;

	if (!dm_task_set_cookie(task, &cookie, 0))
		return 0;
	ok = dm_task_run(task);
	dm_udev_wait(cookie);
	dm_task_update_nodes();
	return ok;
}

/* The kernel's log from here on: device-mapper says there why it refuses. */
static int kernel_log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

static void kernel_log_show(int fd)
{
	char record[1024], *text;
	ssize_t got;

	while (fd >= 0 && (got = read(fd, record, sizeof(record) - 1)) > 0) {
		record[got] = 0;
		text = strchr(record, ';');
		if (!text || !(strstr(text, "device-mapper") || strstr(text, "mtftl")))
			continue;
		text[strcspn(text, "\n")] = 0;
		fprintf(stderr, "mtftl: kernel: %s\n", text + 1);
	}
}

/* "key=value" to two words of the table line. */
static void add_option(char *params, const char *option)
{
	const char *equals = strchr(option, '=');
	size_t used = strlen(params);

	if (!equals || equals == option || !equals[1] || strpbrk(option, " \t\\"))
		fail(EXIT_USAGE, "open: '%s', expected key=value", option);
	if (snprintf(params + used, MAX_PARAMS - used, " %.*s %s", (int)(equals - option), option,
		     equals + 1) >= (int)(MAX_PARAMS - used))
		fail(EXIT_USAGE, "open: too many options");
}

int cmd_open(int argc, char **argv)
{
	char params[MAX_PARAMS], uuid[sizeof("mtftl-") + UUID_STR_LEN] = "mtftl-";
	struct device *device;
	struct dm_task *task;
	struct super super;
	const char *name;
	int i, err, log;

	if (argc < 3)
		fail(EXIT_USAGE, "open: expected a device and a name");
	name = argv[2];
	snprintf(params, sizeof(params), "%s", argv[1]);
	if (argc > 3)
		snprintf(params, sizeof(params), "%s %d", argv[1], 2 * (argc - 3));
	for (i = 3; i < argc; i++)
		add_option(params, argv[i]);

	device = device_open(argv[1], DEVICE_READ_IDLE);
	err = super_find(&device->flash, &super);
	if (err)
		fail(EXIT_FAILED, "%s: %s", argv[1], super_error(err));
	device_close(device);
	uuid_unparse(super.info.uuid, uuid + strlen(uuid));

	task = task_new(DM_DEVICE_CREATE, name);
	if (!dm_task_set_uuid(task, uuid) ||
	    !dm_task_add_target(task, 0, super.info.logical_blocks << (MTFTL_BLOCK_SHIFT - 9),
				"mtftl", params) ||
	    !dm_task_set_add_node(task, DM_ADD_NODE_ON_CREATE))
		fail(EXIT_FAILED, "%s: out of memory", name);
	log = kernel_log_open();
	if (!task_run_synced(task)) {
		err = dm_task_get_errno(task);
		kernel_log_show(log);
		fail(EXIT_FAILED, "%s: cannot create with 'mtftl %s': %s", name, params,
		     err == EBUSY ? "name or device already open" :
				    err ? strerror(err) : "the kernel refuses it");
	}
	dm_task_destroy(task);
	return EXIT_OK;
}

/* The status or table line of the target @name; fails if it is none of ours. */
static char *target_line(const char *name, int type)
{
	uint64_t start, length;
	char *target, *params, *line;
	struct dm_task *task = task_new(type, name);
	struct dm_info info;

	if (!dm_task_run(task) || !dm_task_get_info(task, &info) || !info.exists)
		fail(EXIT_FAILED, "%s: no such device-mapper device", name);
	dm_get_next_target(task, NULL, &start, &length, &target, &params);
	if (!target || strcmp(target, "mtftl"))
		fail(EXIT_FAILED, "%s: a device-mapper device of target %s, expected mtftl", name,
		     target ? target : "none");
	line = strdup(params);
	if (!line)
		fail(EXIT_FAILED, "%s: out of memory", name);
	dm_task_destroy(task);
	return line;
}

int cmd_close(int argc, char **argv)
{
	struct dm_task *task;
	int err;

	if (argc != 2)
		fail(EXIT_USAGE, "close: %d names given, expected one", argc - 1);
	free(target_line(argv[1], DM_DEVICE_TABLE));
	task = task_new(DM_DEVICE_REMOVE, argv[1]);
	if (!task_run_synced(task)) {
		err = dm_task_get_errno(task);
		fail(EXIT_FAILED, "%s: cannot remove: %s", argv[1],
		     err == EBUSY ? "in use, expected an idle device" : strerror(err));
	}
	dm_task_destroy(task);
	return EXIT_OK;
}

/* The lanes' fill is a list, also of one lane. */
static void json_value(struct json *json, const char *name, char *value)
{
	bool list = !strcmp(name, "fill");
	char *item;

	if (list) {
		json_array(json, name);
		name = NULL;
	}
	while ((item = strsep(&value, ","))) {
		if (item[strspn(item, "-0123456789.")])
			json_string(json, name, item);
		else
			json_number(json, name, item);
	}
	if (list)
		json_end(json);
}

int cmd_status(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	struct json *json = NULL;
	char *line, *word, *value;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		json = json_start(stdout);
	}
	if (argc - optind != 1)
		fail(EXIT_USAGE, "status: %d names given, expected one", argc - optind);

	line = target_line(argv[optind], DM_DEVICE_STATUS);
	if (json)
		json_string(json, "name", argv[optind]);
	/* The mode, then pairs of name and value. */
	word = "mode";
	while (word && (value = strsep(&line, " "))) {
		if (json)
			json_value(json, word, value);
		else
			printf("%-12s %s\n", word, value);
		word = strsep(&line, " ");
	}
	if (json)
		json_finish(json);
	return EXIT_OK;
}
