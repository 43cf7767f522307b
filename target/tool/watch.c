// SPDX-License-Identifier: GPL-2.0
/*
 * mtftl watch: waits for device-mapper's events of a device, and tells which faults it has that
 * were not told yet: on standard output, or to the journal and to udev.
 */
#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "dm.h"
#include "drive.h"
#include "health.h"
#include "mtftl.h"
#include "status.h"

#define ANSWER_S	2	/* for a drive to say what it is */
#define JOURNAL		"/run/systemd/journal/socket"

/* The conditions that the target tells events of; boot/mtftl.catalog explains each id. */
static const struct event {
	const char *condition;
	const char *id;
	int priority;		/* as syslog has it */
} events[] = {
	{ "read-only",		"5bea8ceb400f4804a0827c1e858563f8", 2 },
	{ "lost-blocks",	"a56946053cc4471481c574df6d7253fb", 2 },
	{ "short-of-spare",	"2b8415e7dba546d78dd66c1bd085fb53", 3 },
	{ "failed-zones",	"8a75f42b743a4b96ab340ff5befd79b7", 4 },
};

struct watch {
	const char *name;
	bool journal;
	bool udev;
	char drive[PATH_MAX];
	dev_t number;
	char told[ARRAY_SIZE(events)][sizeof(((struct condition *)0)->what)];
};

/* A field of a message to the journal; a newline would end it. */
static void add_field(FILE *message, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_field(FILE *message, const char *format, ...)
{
	char *text, *at;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		fail(EXIT_FAILED, "out of memory");
	va_end(args);
	for (at = text; *at; at++)
		fputc(*at == '\n' ? ' ' : *at, message);
	fputc('\n', message);
	free(text);
}

/* 0 or an error. */
static int send_to_journal(const void *message, size_t size)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = JOURNAL };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return errno;
	if (sendto(fd, message, size, MSG_NOSIGNAL, (const struct sockaddr *)&address,
		   sizeof(address)) < 0)
		err = errno;
	close(fd);
	return err;
}

static int tell_journal(const struct watch *watch, const struct event *event,
			const struct condition *condition, const char *text)
{
	char *message = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&message, &size);
	int err;

	if (!to)
		fail(EXIT_FAILED, "out of memory");
	add_field(to, "MESSAGE=%s", text);
	add_field(to, "MESSAGE_ID=%s", event->id);
	add_field(to, "PRIORITY=%d", event->priority);
	add_field(to, "SYSLOG_IDENTIFIER=mtftl");
	add_field(to, "MTFTL_NAME=%s", watch->name);
	add_field(to, "MTFTL_DRIVE=%s", watch->drive);
	add_field(to, "MTFTL_CONDITION=%s", condition->name);
	add_field(to, "MTFTL_ADVICE=%s", condition->advice);
	if (fclose(to))
		fail(EXIT_FAILED, "out of memory");
	err = send_to_journal(message, size);
	free(message);
	return err;
}

/* A change with SYNTH_ARG_MTFTL=readonly: the kernel takes letters and digits only. */
static int tell_udev(const struct watch *watch, const struct condition *condition)
{
	char path[64], id[UUID_STR_LEN];
	const char *at;
	uuid_t uuid;
	FILE *to;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/uevent", major(watch->number),
		 minor(watch->number));
	to = fopen(path, "we");
	if (!to)
		return errno;
	uuid_generate(uuid);
	uuid_unparse(uuid, id);
	fprintf(to, "change %s MTFTL=", id);
	for (at = condition->name; *at; at++)
		if (isalnum(*at))
			fputc(*at, to);
	return fclose(to) ? errno : 0;
}

static void tell(const struct watch *watch, const struct event *event,
		 const struct condition *condition)
{
	char text[1024];
	int err;

	snprintf(text, sizeof(text), "%s%s %s; advice: %s", watch->name,
		 condition->kind == CONDITION_STATE ? "" : ":", condition->what, condition->advice);
	err = watch->journal ? tell_journal(watch, event, condition, text) : 0;
	if (err)
		fprintf(stderr, "mtftl: %s: the journal takes no message: %s\n", watch->name,
			strerror(err));
	/* What the journal does not take must not be lost. */
	if (err || !watch->journal) {
		puts(text);
		fflush(stdout);
	}
	err = watch->udev ? tell_udev(watch, condition) : 0;
	if (err)
		fprintf(stderr, "mtftl: %s: udev cannot be told: %s\n", watch->name, strerror(err));
}

/* Of each condition what it says now, if that is not what it said before. */
static void tell_news(struct watch *watch, const struct health *health)
{
	const struct condition *condition;
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		condition = NULL;
		for (j = 0; j < health->nr; j++)
			if (!strcmp(health->conditions[j].name, events[i].condition))
				condition = &health->conditions[j];
		if (condition && strcmp(condition->what, watch->told[i]))
			tell(watch, &events[i], condition);
		strcpy(watch->told[i], condition ? condition->what : "");
	}
}

/* False if the device is gone. The events that are counted then are those before the look. */
static bool look(struct watch *watch, u32 *nr_events)
{
	struct drive_facts drive = { 0 };
	struct drive_stat stat = { 0 };
	struct open_device open = { 0 };
	struct health_facts facts = {
		.status = &open.status, .target = &open.target, .answered = true,
		.drive = &drive, .drive_stat = &stat,
	};
	struct health health;

	/* Processes that asked a drive which did not answer then. */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	/* Another device may have the name by now. */
	if (!open_device_ask(watch->name, false, &open))
		return false;
	*nr_events = open.target.events;
	watch->number = open.target.number;
	snprintf(watch->drive, sizeof(watch->drive), "%s", open.lower);
	if (open.status.nr > 1) {
		/* If it does not answer in time, nothing is known of the spare zones. */
		drive_ask(open.lower, ANSWER_S, &drive);
		health_judge(&facts, &health);
		tell_news(watch, &health);
	}
	free(open.line);
	return true;
}

int cmd_watch(int argc, char **argv)
{
	static const struct option options[] = {
		{ "journal", no_argument, NULL, 'j' },
		{ "udev", no_argument, NULL, 'u' },
		{ NULL, 0, NULL, 0 },
	};
	static struct watch watch;
	struct dm_target_info target;
	u32 nr_events;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		watch.journal |= c == 'j';
		watch.udev |= c == 'u';
	}
	if (argc - optind != 1)
		fail(EXIT_USAGE, "watch: %d names given, expected one", argc - optind);
	watch.name = argv[optind];
	/* One that is not there, or none of ours, is an error only here. */
	free(dm_target_line(watch.name, DM_DEVICE_TABLE, &target));
	while (look(&watch, &nr_events) && dm_wait(watch.name, nr_events))
		;
	return EXIT_OK;
}
