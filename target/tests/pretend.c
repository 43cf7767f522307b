// SPDX-License-Identifier: GPL-2.0
/*
 * LD_PRELOAD: plays another drive and another module. The drive's health log says that $USED percent
 * of its life is used, and that 500 TB have been written. Device-mapper says that the target mtftl has version $MODULE (major.minor).
 */
#include <dlfcn.h>
#include <libdevmapper.h>
#include <linux/ioctl.h>
#include <linux/nvme_ioctl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GET_LOG		0x02
#define LOG_SMART	0x02
#define SMART_USED	5
#define SMART_WRITTEN	48
#define SMART_UNIT	512000

static void play_health(unsigned char *log, int used)
{
	unsigned long long units = 500000000000000ull / SMART_UNIT;

	log[SMART_USED] = used;
	memcpy(log + SMART_WRITTEN, &units, sizeof(units));
}

int ioctl(int fd, unsigned long request, ...)
{
	int (*real)(int fd, unsigned long request, void *argument) = dlsym(RTLD_NEXT, "ioctl");
	struct nvme_admin_cmd *command;
	const char *used = getenv("USED");
	void *argument;
	va_list args;
	int result;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	result = real(fd, request, argument);
	command = argument;
	if (used && !result && request == NVME_IOCTL_ADMIN_CMD && command->opcode == GET_LOG &&
	    (command->cdw10 & 0xff) == LOG_SMART)
		play_health((unsigned char *)command->addr, atoi(used));
	return result;
}

struct dm_versions *dm_task_get_versions(struct dm_task *task)
{
	struct dm_versions *(*real)(struct dm_task *task) = dlsym(RTLD_NEXT, "dm_task_get_versions");
	struct dm_versions *first = real(task), *at = first;
	const char *module = getenv("MODULE");

	while (at && strcmp(at->name, "mtftl"))
		at = at->next ? (struct dm_versions *)((char *)at + at->next) : NULL;
	if (at && module)
		sscanf(module, "%u.%u", &at->version[0], &at->version[1]);
	return first;
}
