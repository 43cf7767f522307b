// SPDX-License-Identifier: GPL-2.0
/* mtftl open and close: the device-mapper side, by libdevmapper. */
#include <fcntl.h>
#include <libdevmapper.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "device.h"
#include "dm.h"
#include "mtftl.h"
#include "super.h"

#define MAX_PARAMS	4096
#define KMSG_LEVEL	7	/* of the number that a record of the kernel's log begins with */
#define KMSG_ERROR	3

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

enum reason { COMPLAINT, REFUSAL, STEP, NO_REASON };	/* the best one first */

/* The target's own complaint, what device-mapper says of it, or the step of a mount that failed. */
static enum reason judge(unsigned int level, const char *text)
{
	if (!strstr(text, "device-mapper: ") || !strstr(text, "mtftl: "))
		return NO_REASON;
	if (!strstr(text, "device-mapper: mtftl: "))
		return REFUSAL;
	if (level <= KMSG_ERROR)
		return COMPLAINT;
	return strstr(text, ", failed") ? STEP : NO_REASON;
}

/* Of what the kernel said since then, the first of the best kind, without whom it is about. */
static enum reason kernel_log_reason(int fd, char *reason, size_t size)
{
	enum reason best = NO_REASON, now;
	char record[1024], *text;
	ssize_t got;

	while (fd >= 0 && (got = read(fd, record, sizeof(record) - 1)) > 0) {
		record[got] = 0;
		text = strchr(record, ';');
		if (!text)
			continue;
		text[strcspn(text, "\n")] = 0;
		now = judge(strtoul(record, NULL, 10) & KMSG_LEVEL, text);
		if (now >= best)
			continue;
		best = now;
		text = strstr(text, "mtftl: ") + strlen("mtftl: ");
		if (text[strspn(text, "0123456789:")] == ' ')
			text += strspn(text, "0123456789: ");
		snprintf(reason, size, "%s", text);
	}
	return best;
}

/* What a mount's error means where the kernel has not said it. */
static const char *in_words(int err)
{
	switch (err) {
	case 0:
		return "the kernel refuses it";
	case EBUSY:
		return "name or device already open";
	case EIO:
		return "the device reports an error";
	case EOVERFLOW:
		return "the device has no active zone left, expected one";
	case ETOOMANYREFS:
		return "the device has no open zone left, expected one";
	}
	return strerror(err);
}

static void fail_open(const char *name, const char *device, int err, int log)
{
	char reason[1024];

	switch (kernel_log_reason(log, reason, sizeof(reason))) {
	case STEP:
		fail(EXIT_FAILED, "%s: cannot open %s: %s: %s", name, device, reason, in_words(err));
	case NO_REASON:
		fail(EXIT_FAILED, "%s: cannot open %s: %s", name, device, in_words(err));
	default:
		fail(EXIT_FAILED, "%s: cannot open %s: %s%s", name, device, reason,
		     strstr(reason, "checkpoint is damaged") ?
		     "; mtftl check --rebuild tells what can be saved" : "");
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
	if (!task_run_synced(task))
		fail_open(name, argv[1], dm_task_get_errno(task), log);
	dm_task_destroy(task);
	return EXIT_OK;
}

char *dm_target_line(const char *name, int type, struct dm_target_info *target)
{
	uint64_t start;
	char *type_name, *params, *line;
	struct dm_task *task = task_new(type, name);
	struct dm_info info;

	if (!dm_task_run(task) || !dm_task_get_info(task, &info) || !info.exists)
		fail(EXIT_FAILED, "%s: no such device-mapper device", name);
	dm_get_next_target(task, NULL, &start, &target->sectors, &type_name, &params);
	if (!type_name || strcmp(type_name, "mtftl"))
		fail(EXIT_FAILED, "%s: a device-mapper device of target %s, expected mtftl", name,
		     type_name ? type_name : "none");
	target->suspended = info.suspended;
	line = strdup(params);
	if (!line)
		fail(EXIT_FAILED, "%s: out of memory", name);
	dm_task_destroy(task);
	return line;
}

void dm_lower_device(const char *table, char *path, size_t size)
{
	char link[64], target[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/sys/dev/block/%.*s", (int)strcspn(table, " "), table);
	length = readlink(link, target, sizeof(target) - 1);
	target[length < 0 ? 0 : length] = 0;
	snprintf(path, size, "/dev/%s", strrchr(target, '/') ? strrchr(target, '/') + 1 : "");
}

/* 0 if all that was written is on flash now. */
static int flush(const char *name)
{
	char path[PATH_MAX];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s", dm_dir(), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		err = errno;
	if (fd >= 0)
		close(fd);
	return err;
}

/* The superblock says whether the target got as far as it should. */
static void check_stopped(const char *name, const char *lower)
{
	struct device *device = device_open(lower, DEVICE_READ);
	struct super super;
	int err = super_find(&device->flash, &super);

	if (err)
		fail(EXIT_FAILED, "%s: closed, but %s: %s", name, lower, super_error(err));
	if (!super.says_clean)
		fail(EXIT_FAILED, "%s: closed, with all data on %s, but the clean stop could not be"
		     " written, expected a drive that takes writes; the next open recovers", name,
		     lower);
	device_close(device);
}

int cmd_close(int argc, char **argv)
{
	struct dm_target_info target;
	char lower[PATH_MAX], *table;
	struct dm_task *task;
	int err, lost = 0;

	if (argc != 2)
		fail(EXIT_USAGE, "close: %d names given, expected one", argc - 1);
	table = dm_target_line(argv[1], DM_DEVICE_TABLE, &target);
	dm_lower_device(table, lower, sizeof(lower));
	free(table);
	/* One that is suspended did so already, and would not answer. */
	if (!target.suspended)
		lost = flush(argv[1]);
	task = task_new(DM_DEVICE_REMOVE, argv[1]);
	if (!task_run_synced(task)) {
		err = dm_task_get_errno(task);
		fail(EXIT_FAILED, "%s: cannot remove: %s", argv[1],
		     err == EBUSY ? "in use, expected an idle device" : strerror(err));
	}
	dm_task_destroy(task);
	if (lost)
		fail(EXIT_FAILED, "%s: closed, but what was written since the last flush is lost: "
		     "the last one failed (%s), and the kernel's log says why", argv[1],
		     strerror(lost));
	check_stopped(argv[1], lower);
	return EXIT_OK;
}
