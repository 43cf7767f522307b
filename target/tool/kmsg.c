// SPDX-License-Identifier: GPL-2.0
/*
 * Reads /dev/kmsg: a record is "level,number,time,flags;text", and lines of further properties.
 * Lines of other devices are skipped: their drivers, and other programs, talk at the same time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kmsg.h"

#define KMSG_LEVEL	7	/* of the number that a record begins with */
#define KMSG_ERROR	3

int kmsg_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* What follows @prefix, @device and a colon at the beginning of a text, or NULL. */
static const char *behind(const char *text, const char *prefix, const char *device)
{
	size_t length = strlen(prefix);

	if (strncmp(text, prefix, length))
		return NULL;
	text += length;
	length = strlen(device);
	if (strncmp(text, device, length) || strncmp(text + length, ": ", 2))
		return NULL;
	return text + length + 2;
}

/* What kind of reason a line is, and where its words begin. */
static enum reason judge(unsigned int level, const char **text, const char *lower,
			 const char *mapped)
{
	const char *words = behind(*text, "device-mapper: mtftl: ", lower);

	if (words) {
		*text = words;
		if (level <= KMSG_ERROR)
			return COMPLAINT;
		return strstr(words, ", failed") ? STEP : NO_REASON;
	}
	words = behind(*text, "device-mapper: table: ", mapped);
	if (!words || strncmp(words, "mtftl: ", strlen("mtftl: ")))
		return NO_REASON;
	*text = words + strlen("mtftl: ");
	return REFUSAL;
}

enum reason kmsg_reason(int fd, const char *lower, const char *mapped, char *reason, size_t size)
{
	enum reason best = NO_REASON, now;
	char record[8192], *text;
	const char *words;
	ssize_t got;

	while (fd >= 0) {
		got = read(fd, record, sizeof(record) - 1);
		/* Some lines are gone, as the log was full: go on with what is left. */
		if (got < 0 && errno == EPIPE)
			continue;
		if (got <= 0)
			break;
		record[got] = 0;
		text = strchr(record, ';');
		if (!text)
			continue;
		text[strcspn(text, "\n")] = 0;
		words = text + 1;
		now = judge(strtoul(record, NULL, 10) & KMSG_LEVEL, &words, lower, mapped);
		if (now >= best)
			continue;
		best = now;
		snprintf(reason, size, "%s", words);
	}
	return best;
}
