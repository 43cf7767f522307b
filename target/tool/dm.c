// SPDX-License-Identifier: GPL-2.0
/*
 * mtftl open and close: the device-mapper side, by libdevmapper. The kernel gets a device by its
 * number, because paths and the names that libdevmapper mangles may hold any character.
 */
#include <fcntl.h>
#include <getopt.h>
#include <libdevmapper.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "device.h"
#include "dm.h"
#include "dm/version.h"
#include "find.h"
#include "kmsg.h"
#include "mtftl.h"
#include "super.h"
#include "vector.h"

#define MAX_PARAMS	4096
#define NUMBER_LEN	24	/* "major:minor" */
#define UUID_PREFIX	"mtftl-"
#define TARGET_LEN	16	/* a target's name, as device-mapper has it */

#define NOT_A_NAME	"'%s' cannot be a name, expected up to 127 characters without '/' (one that is no" \
			" letter, digit or #+-.:=@_ counts as four)"

/* Wait as long as LVM does for programs that open a device for a moment, udev above all. */
#define BUSY_TRIES	25
#define BUSY_WAIT_US	200000

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
	if (!task)
		fail(EXIT_FAILED, "%s: out of memory", name);
	if (*name && dm_task_set_name(task, name))
		return task;
	if (type == DM_DEVICE_CREATE)
		fail(EXIT_USAGE, NOT_A_NAME, name);
	fail(EXIT_FAILED, "%s: no such device-mapper device", name);
}

/* 0 or an error; EPERM if the call did not reach device-mapper. */
static int task_run(struct dm_task *task)
{
	return dm_task_run(task) ? 0 : dm_task_get_errno(task) ?: EPERM;
}

/* Run a task that makes or removes a node, and wait for udev where there is one. */
static int task_run_synced(struct dm_task *task)
{
	uint32_t cookie = 0;
	int err = EPERM;

	if (dm_task_set_cookie(task, &cookie, 0))
		err = task_run(task);
	dm_udev_wait(cookie);
	dm_task_update_nodes();
	return err;
}

/* One step of a device's life, without parameters. */
static int run_step(int type, const char *name, bool synced)
{
	struct dm_task *task = task_new(type, name);
	int err = synced ? task_run_synced(task) : task_run(task);

	dm_task_destroy(task);
	return err;
}

static const char *in_words(int err)
{
	switch (err) {
	case EPERM:
		return "device-mapper does not answer, expected root, and a kernel with dm-mod";
	case EBUSY:
		return "in use, expected an idle device";
	case EIO:
		return "the device reports an error";
	case EOVERFLOW:
		return "the device has no active zone left, expected one";
	case ETOOMANYREFS:
		return "the device has no open zone left, expected one";
	}
	return strerror(err);
}

/* Open */

struct opening {
	const char *name;
	const char *path;
	char uuid[sizeof(UUID_PREFIX) + UUID_STR_LEN];
	char lower[NUMBER_LEN];
	char mapped[NUMBER_LEN];	/* of the new device */
	int log;
};

/* "key=value" to two words of the table line. */
static void add_option(char *words, const char *option)
{
	const char *equals = strchr(option, '=');
	size_t used = strlen(words);

	if (!equals || equals == option || !equals[1] || strpbrk(option, " \t\\"))
		fail(EXIT_USAGE, "open: '%s', expected key=value", option);
	if (snprintf(words + used, MAX_PARAMS - used, " %.*s %s", (int)(equals - option), option,
		     equals + 1) >= (int)(MAX_PARAMS - used))
		fail(EXIT_USAGE, "open: too many options");
}

/*
 * Make another open of the same drive wait: if both are refused, each must find its own reason in
 * the log. udev leaves a locked drive alone.
 */
static void lock_drive(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	/* If the open fails, device_open() will say why. */
	if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB))
		return;
	fprintf(stderr, "mtftl: %s: locked by another program, waiting for it\n", path);
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
}

static void __attribute__((noreturn)) fail_open(const struct opening *opening, int err)
{
	char reason[1024];
	enum reason kind = kmsg_reason(opening->log, opening->lower, opening->mapped, reason,
				       sizeof(reason));
	const char *advice = "";

	if (kind == STEP)
		fail(EXIT_FAILED, "%s: cannot open %s: %s: %s", opening->name, opening->path, reason,
		     in_words(err));
	if (kind == NO_REASON)
		fail(EXIT_FAILED, "%s: cannot open %s: %s", opening->name, opening->path,
		     in_words(err));
	/* What is wrong with it is said first, and that it is damaged then. */
	if (!strncmp(reason, "checkpoint", strlen("checkpoint")))
		advice = "; mtftl check --rebuild tells what can be saved";
	if (strstr(reason, "unknown target type"))
		advice = ", expected the module dm-mtftl to be loaded";
	fail(EXIT_FAILED, "%s: cannot open %s: %s%s", opening->name, opening->path, reason, advice);
}

/* Names and UUIDs are there once: say which of them is taken. */
static void __attribute__((noreturn)) fail_create(const struct opening *opening, int err)
{
	struct dm_task *task = task_new(DM_DEVICE_INFO, opening->name);
	struct dm_info info = { 0 };
	const char *name;

	if (err != EBUSY)
		fail_open(opening, err);
	if (!task_run(task) && dm_task_get_info(task, &info) && info.exists)
		fail(EXIT_FAILED, "%s: there is a device of this name already, expected another name",
		     opening->name);
	dm_task_destroy(task);
	task = dm_task_create(DM_DEVICE_INFO);
	if (!task || !dm_task_set_uuid(task, opening->uuid) || task_run(task))
		fail_open(opening, err);
	name = dm_task_get_name(task);
	fail(EXIT_FAILED, "%s: cannot open %s: it has the UUID of %s, which is open, expected another"
	     " one", opening->name, opening->path, name && *name ? name : "another device");
}

static void create(struct opening *opening)
{
	struct dm_task *task = task_new(DM_DEVICE_CREATE, opening->name);
	struct dm_info info;
	int err;

	if (!dm_task_set_uuid(task, opening->uuid))
		fail(EXIT_FAILED, "%s: out of memory", opening->name);
	err = task_run(task);
	if (!err && !dm_task_get_info(task, &info))
		err = EIO;
	if (err)
		fail_create(opening, err);
	snprintf(opening->mapped, sizeof(opening->mapped), "%u:%u", info.major, info.minor);
	dm_task_destroy(task);
}

static int load_table(const struct opening *opening, u64 sectors, const char *params,
		      bool read_only)
{
	struct dm_task *task = task_new(DM_DEVICE_RELOAD, opening->name);
	int err;

	if (!dm_task_add_target(task, 0, sectors, "mtftl", params) ||
	    (read_only && !dm_task_set_ro(task)))
		err = ENOMEM;
	else
		err = task_run(task);
	dm_task_destroy(task);
	return err;
}

/* What the tab says of opening->name; returns the number of words. */
static int take_entry(struct opening *opening, char *words, bool *read_only)
{
	struct tab_entry entry;
	const char *at;
	char *setting;
	int nr = 0;

	find_entry(opening->name, &entry);
	opening->path = find_drive(entry.device);
	*read_only |= tab_has(&entry, "readonly");
	for (at = entry.options; (setting = tab_setting(&at)); nr += 2) {
		add_option(words, setting);
		free(setting);
	}
	return nr;
}

int cmd_open(int argc, char **argv)
{
	static const struct option options[] = {
		{ "readonly", no_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	struct opening opening = { .uuid = UUID_PREFIX };
	char words[MAX_PARAMS] = "", params[MAX_PARAMS + 2 * NUMBER_LEN];
	bool read_only = false;
	struct device *device;
	struct super super;
	int c, i, err, nr;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		read_only = true;
	}
	if (argc == optind)
		fail(EXIT_USAGE, "open: expected a device and a name, or a name in " TAB_PATH);
	if (argc - optind == 1) {
		opening.name = argv[optind];
		nr = take_entry(&opening, words, &read_only);
	} else {
		opening.path = find_drive(argv[optind]);
		opening.name = argv[optind + 1];
		for (i = optind + 2; i < argc; i++)
			add_option(words, argv[i]);
		nr = 2 * (argc - optind - 2);
	}

	lock_drive(opening.path);
	device = device_open(opening.path, DEVICE_READ_IDLE);
	err = super_find(&device->flash, &super);
	if (err)
		fail(EXIT_FAILED, "%s: %s", opening.path, super_error(err));
	snprintf(opening.lower, sizeof(opening.lower), "%u:%u", major(device->number),
		 minor(device->number));
	device_close(device);
	uuid_unparse(super.info.uuid, opening.uuid + strlen(opening.uuid));

	snprintf(params, sizeof(params), "%s %d%s", opening.lower, nr, words);
	opening.log = kmsg_open();
	create(&opening);
	err = load_table(&opening, super.info.logical_blocks << (MTFTL_BLOCK_SHIFT - 9), params,
			 read_only);
	if (!err)
		err = run_step(DM_DEVICE_RESUME, opening.name, true);
	if (!err) {
		dm_check_module();
		return EXIT_OK;
	}
	run_step(DM_DEVICE_REMOVE, opening.name, true);
	fail_open(&opening, err);
}

/* What device-mapper says of a device */

static void take_info(struct dm_task *task, const struct dm_info *info,
		      struct dm_target_info *target)
{
	char *mangled = dm_task_get_name_mangled(task);
	const char *uuid = dm_task_get_uuid(task);

	target->suspended = info->suspended;
	target->read_only = info->read_only;
	target->open_count = info->open_count;
	target->number = makedev(info->major, info->minor);
	target->events = info->event_nr;
	target->empty = !info->live_table && uuid &&
			!strncmp(uuid, UUID_PREFIX, strlen(UUID_PREFIX));
	snprintf(target->node, sizeof(target->node), "%s/%s", dm_dir(), mangled ? mangled : "");
	free(mangled);
}

/*
 * 0 with the line of a device of ours. ENXIO: there is no such device. ENODEV: it has another target,
 * whose name @other gets.
 */
static int get_line(const char *name, int type, struct dm_target_info *target, char **line,
		    char other[TARGET_LEN])
{
	char *type_name = NULL, *params = NULL;
	struct dm_task *task = task_new(type, name);
	int err = task_run(task);
	struct dm_info info;
	uint64_t start;

	if (!err && (!dm_task_get_info(task, &info) || !info.exists))
		err = ENXIO;
	if (!err) {
		take_info(task, &info, target);
		dm_get_next_target(task, NULL, &start, &target->sectors, &type_name, &params);
		if (!target->empty && (!type_name || strcmp(type_name, "mtftl"))) {
			snprintf(other, TARGET_LEN, "%s", type_name ? type_name : "none");
			err = ENODEV;
		}
	}
	if (!err) {
		*line = strdup(target->empty ? "" : params);
		if (!*line)
			fail(EXIT_FAILED, "%s: out of memory", name);
	}
	dm_task_destroy(task);
	return err;
}

char *dm_target_line(const char *name, int type, struct dm_target_info *target)
{
	char *line, other[TARGET_LEN];
	int err = get_line(name, type, target, &line, other);

	if (err == ENXIO)
		fail(EXIT_FAILED, "%s: no such device-mapper device", name);
	if (err == ENODEV)
		fail(EXIT_FAILED, "%s: a device-mapper device of target %s, expected mtftl", name,
		     other);
	if (err)
		fail(EXIT_FAILED, "%s: %s", name, in_words(err));
	return line;
}

char *dm_our_line(const char *name, int type, struct dm_target_info *target)
{
	char *line, other[TARGET_LEN];

	return get_line(name, type, target, &line, other) ? NULL : line;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char **dm_names(size_t *nr)
{
	struct vector names = { 0 };
	struct dm_names *at = NULL;
	struct dm_task *task;
	char *copy;
	int err;

	dm_log_with_errno_init(quiet);
	task = dm_task_create(DM_DEVICE_LIST);
	/* Without device-mapper there is no task. */
	err = task ? task_run(task) : EPERM;
	if (err)
		fail(EXIT_FAILED, "%s", in_words(err));
	at = dm_task_get_names(task);
	while (at && at->dev) {
		copy = strdup(at->name);
		if (!copy)
			fail(EXIT_FAILED, "out of memory");
		*(char **)vector_add(&names, sizeof(char *)) = copy;
		at = at->next ? (struct dm_names *)((char *)at + at->next) : NULL;
	}
	dm_task_destroy(task);
	if (names.nr)
		qsort(names.items, names.nr, sizeof(char *), by_text);
	*nr = names.nr;
	return names.items;
}

dev_t dm_lower_device(const char *table, char *path, size_t size)
{
	unsigned int major, minor;

	if (sscanf(table, "%u:%u", &major, &minor) != 2) {
		snprintf(path, size, "an unknown drive");
		return 0;
	}
	device_name(makedev(major, minor), path, size);
	return makedev(major, minor);
}

bool dm_wait(const char *name, u32 events)
{
	struct dm_task *task;
	int err;

	do {
		task = task_new(DM_DEVICE_WAITEVENT, name);
		err = dm_task_set_event_nr(task, events) ? task_run(task) : ENOMEM;
		dm_task_destroy(task);
	} while (err == EINTR);
	if (err && err != ENXIO)
		fail(EXIT_FAILED, "%s: cannot wait for events: %s", name, in_words(err));
	return !err;
}

char *dm_message(const char *name, const char *message)
{
	struct dm_task *task = task_new(DM_DEVICE_TARGET_MSG, name);
	const char *said = NULL;
	char *copy;

	if (dm_task_set_sector(task, 0) && dm_task_set_message(task, message) && !task_run(task))
		said = dm_task_get_message_response(task);
	copy = said ? strdup(said) : NULL;
	dm_task_destroy(task);
	return copy;
}

void dm_check_module(void)
{
	struct dm_task *task;
	struct dm_versions *at;
	const char *other = NULL, *advice;
	u32 of_tool = MTFTL_TARGET_MAJOR << 16 | MTFTL_TARGET_MINOR, of_module;

	dm_log_with_errno_init(quiet);
	task = dm_task_create(DM_DEVICE_LIST_VERSIONS);
	at = task && !task_run(task) ? dm_task_get_versions(task) : NULL;
	while (at && strcmp(at->name, "mtftl"))
		at = at->next ? (struct dm_versions *)((char *)at + at->next) : NULL;
	if (at) {
		of_module = at->version[0] << 16 | at->version[1];
		other = of_module < of_tool ? "older" : of_module > of_tool ? "newer" : NULL;
		advice = of_module < of_tool ?
			 "some values are missing: update dm-mtftl-dkms and load the new module" :
			 "it may say what this tool does not know: update mtftl-tools";
	}
	if (other)
		fprintf(stderr, "mtftl: the module dm-mtftl has version %u.%u, %s than this tool's"
			" %u.%u: %s\n", at->version[0], at->version[1], other,
			MTFTL_TARGET_MAJOR, MTFTL_TARGET_MINOR, advice);
	if (task)
		dm_task_destroy(task);
}

/* Rename */

int cmd_rename(int argc, char **argv)
{
	static const struct option options[] = {
		{ NULL, 0, NULL, 0 },
	};
	struct dm_target_info target;
	struct dm_task *task;
	const char *name, *wanted;
	int err;

	if (getopt_long(argc, argv, "", options, NULL) >= 0)
		return EXIT_USAGE;
	if (argc - optind != 2)
		fail(EXIT_USAGE, "rename: %d names given, expected the old and the new one",
		     argc - optind);
	name = argv[optind];
	wanted = argv[optind + 1];
	free(dm_target_line(name, DM_DEVICE_TABLE, &target));
	task = task_new(DM_DEVICE_RENAME, name);
	if (!*wanted || !dm_task_set_newname(task, wanted))
		fail(EXIT_USAGE, NOT_A_NAME, wanted);
	err = task_run_synced(task);
	dm_task_destroy(task);
	if (err == EBUSY)
		fail(EXIT_FAILED, "%s: there is a device of this name already, expected another name",
		     wanted);
	if (err)
		fail(EXIT_FAILED, "%s: cannot rename: %s", name, in_words(err));
	return EXIT_OK;
}

/* Close */

static const char *stopped;	/* the device that we have suspended */

/* Nothing else would resume what we have suspended. */
static void change_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(how, &set, NULL);
}

/* Also at exit, whatever goes wrong. */
static void resume_stopped(void)
{
	const char *name = stopped;

	stopped = NULL;
	if (!name)
		return;
	run_step(DM_DEVICE_RESUME, name, true);
	change_signals(SIG_UNBLOCK);
}

/* Wait for programs such as udev that open the device for a moment. */
static void wait_until_idle(const char *name, struct dm_target_info *target, int *tries)
{
	for (; target->open_count > 0; (*tries)++) {
		if (*tries == BUSY_TRIES)
			fail(EXIT_FAILED, "%s: cannot remove: in use, expected an idle device", name);
		usleep(BUSY_WAIT_US);
		free(dm_target_line(name, DM_DEVICE_TABLE, target));
	}
}

/* Open it by the kernel's own name, or by the node of libdevmapper if there is no other. */
static int open_node(const struct dm_target_info *target)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	device_name(target->number, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		fd = open(target->node, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &st) || st.st_rdev != target->number)) {
		close(fd);
		errno = ENODEV;
		return -1;
	}
	return fd;
}

struct closing {
	const char *name;
	char lower[PATH_MAX];
	bool force;
	int lost;		/* the error of the last flush */
	bool clean;		/* the superblock says so, or need not */
};

/* 0 if all that was written is on flash now. */
static int flush(const struct closing *closing, const struct dm_target_info *target)
{
	int fd = open_node(target), err = 0;

	if (fd < 0 && closing->force)
		return 0;
	if (fd < 0)
		fail(EXIT_FAILED, "%s: not closed: cannot open %s to flush it: %s", closing->name,
		     target->node, strerror(errno));
	if (fsync(fd))
		err = errno;
	close(fd);
	return err;
}

/* Look whether the target has written its clean stop; returns 0 or what super_find() says. */
static int look_at_super(const char *lower, bool *clean)
{
	struct device *device = device_open(lower, DEVICE_READ);
	struct super super;
	int err = super_find(&device->flash, &super);

	*clean = !err && super.says_clean;
	device_close(device);
	return err;
}

/*
 * Stop the device, as a removal would, and check the result while the drive is still ours: after
 * the removal other programs may open it.
 */
static void stop(struct closing *closing, const struct dm_target_info *target)
{
	int err = 0;

	if (!target->suspended) {
		change_signals(SIG_BLOCK);
		stopped = closing->name;
		err = run_step(DM_DEVICE_SUSPEND, closing->name, false);
	}
	if (err)
		fail(EXIT_FAILED, "%s: not closed: cannot suspend: %s", closing->name,
		     in_words(err));
	closing->clean = target->read_only;
	if (!closing->clean)
		err = look_at_super(closing->lower, &closing->clean);
	if (err)
		fail(EXIT_FAILED, "%s: not closed: %s: %s; --force closes it all the same",
		     closing->name, closing->lower, super_error(err));
	if (!closing->clean && target->suspended)
		fail(EXIT_FAILED, "%s: not closed: suspended, and not all of it is on %s, expected a"
		     " device that goes on (dmsetup resume), or --force", closing->name,
		     closing->lower);
}

/* Do everything up to the removal. Fails if the removal would lose something. */
static void prepare_removal(struct closing *closing, const struct dm_target_info *target)
{
	/* A suspended device would not answer. */
	closing->lost = target->suspended ? 0 : flush(closing, target);
	if (closing->lost && !closing->force)
		fail(EXIT_FAILED, "%s: not closed: what was written since the last flush cannot be"
		     " made durable (%s), the kernel's log says why; it can be read until close"
		     " --force loses it", closing->name, strerror(closing->lost));
	/* With --force even a drive that no longer answers is closed. */
	if (!closing->force)
		stop(closing, target);
}

/* The device is removed by now. */
static void tell_what_was_lost(struct closing *closing, const struct dm_target_info *target)
{
	int err = 0;

	if (closing->lost)
		fail(EXIT_FAILED, "%s: closed, but what was written since the last flush is lost: "
		     "the last one failed (%s), and the kernel's log says why", closing->name,
		     strerror(closing->lost));
	if (closing->force && !target->read_only) {
		err = look_at_super(closing->lower, &closing->clean);
		if (err || !closing->clean)
			fail(EXIT_FAILED, "%s: closed, but %s: %s", closing->name, closing->lower,
			     err ? super_error(err) : "its superblock does not tell of a clean stop,"
						      " unless it was opened again since");
	}
	if (!closing->force && !closing->clean)
		fail(EXIT_FAILED, "%s: closed, with all data on %s, but the clean stop could not be"
		     " written, expected a drive that takes writes; the next open recovers",
		     closing->name, closing->lower);
}

/* Let the kernel remove the device when its last user has closed it. */
static void remove_later(const char *name)
{
	struct dm_task *task = task_new(DM_DEVICE_REMOVE, name);
	int err = ENOMEM;

	if (dm_task_deferred_remove(task))
		err = task_run_synced(task);
	if (err)
		fail(EXIT_FAILED, "%s: cannot remove: %s", name, in_words(err));
	dm_task_destroy(task);
}

int cmd_close(int argc, char **argv)
{
	static const struct option options[] = {
		{ "deferred", no_argument, NULL, 'd' },
		{ "force", no_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	struct closing closing = { 0 };
	struct dm_target_info target;
	int c, err, tries = 0;
	bool deferred = false;
	char *table;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		closing.force |= c == 'f';
		deferred |= c == 'd';
	}
	if (argc - optind != 1)
		fail(EXIT_USAGE, "close: %d names given, expected one", argc - optind);
	closing.name = argv[optind];
	table = dm_target_line(closing.name, DM_DEVICE_TABLE, &target);
	dm_lower_device(table, closing.lower, sizeof(closing.lower));
	free(table);
	if (deferred && target.open_count > 0) {
		remove_later(closing.name);
		return EXIT_OK;
	}

	atexit(resume_stopped);
	for (;;) {
		wait_until_idle(closing.name, &target, &tries);
		if (!target.empty)
			prepare_removal(&closing, &target);
		err = run_step(DM_DEVICE_REMOVE, closing.name, true);
		if (err != EBUSY || tries++ == BUSY_TRIES)
			break;
		/* A program opened it meanwhile: its reads wait until the device is resumed. */
		resume_stopped();
		usleep(BUSY_WAIT_US);
		free(dm_target_line(closing.name, DM_DEVICE_TABLE, &target));
	}
	if (err)
		fail(EXIT_FAILED, "%s: cannot remove: %s", closing.name, in_words(err));
	stopped = NULL;
	if (!target.empty)
		tell_what_was_lost(&closing, &target);
	return EXIT_OK;
}
