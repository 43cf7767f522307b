// SPDX-License-Identifier: GPL-2.0
/* What a drive says of itself: see drive.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nvme_ioctl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "drive.h"
#include "mtftl.h"
#include "super.h"

/* Of NVMe's Get Log Page and its SMART / Health Information log. */
#define NVME_ADMIN_GET_LOG	0x02
#define NVME_LOG_SMART		0x02
#define NVME_ALL_NAMESPACES	0xffffffffu
#define NVME_SMART_SIZE		512u
#define NVME_SMART_WARNING	0
#define NVME_SMART_SPARE	3
#define NVME_SMART_LEAST	4
#define NVME_SMART_USED		5
#define NVME_SMART_WRITTEN	48	/* 16 bytes, of which we take 8 */
#define NVME_SMART_UNIT		512000u	/* bytes, which it counts by */

static void ask_health(int fd, struct drive_health *health)
{
	u8 log[NVME_SMART_SIZE] = { 0 };
	__le64 written;
	struct nvme_admin_cmd command = {
		.opcode = NVME_ADMIN_GET_LOG, .nsid = NVME_ALL_NAMESPACES,
		.addr = (uintptr_t)log, .data_len = sizeof(log),
		.cdw10 = NVME_LOG_SMART | (sizeof(log) / 4 - 1) << 16,
	};

	if (ioctl(fd, NVME_IOCTL_ADMIN_CMD, &command))
		return;
	memcpy(&written, log + NVME_SMART_WRITTEN, sizeof(written));
	*health = (struct drive_health) {
		.known = true,
		.warning = log[NVME_SMART_WARNING],
		.spare = log[NVME_SMART_SPARE],
		.spare_least = log[NVME_SMART_LEAST],
		.used = log[NVME_SMART_USED],
		.written = le64_to_cpu(written) * NVME_SMART_UNIT,
	};
}

static void __attribute__((noreturn)) tell(const char *path, int to)
{
	int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC), err;
	struct drive_facts facts = { 0 };
	struct device *device;
	struct super super;

	/* A drive that cannot be read is the caller's to judge. */
	if (quiet >= 0)
		dup2(quiet, STDERR_FILENO);
	device = device_open(path, DEVICE_READ);
	facts.could_have_oob = device_takes_headers(device);
	err = super_find(&device->flash, &super);
	facts.has_super = !err || err == -EOPNOTSUPP;
	if (facts.has_super)
		facts.super = super.info;
	ask_health(device->fd, &facts.health);
	_exit(write(to, &facts, sizeof(facts)) == sizeof(facts) ? EXIT_OK : EXIT_FAILED);
}

/* Read @facts as a whole; false: the process ended without, or the time is over. */
static bool hear(int from, int seconds, struct drive_facts *facts)
{
	struct pollfd poll_fd = { .fd = from, .events = POLLIN };
	u8 *to = (u8 *)facts;
	size_t left = sizeof(*facts);
	ssize_t got;
	int ready;

	while (left) {
		ready = poll(&poll_fd, 1, seconds < 0 ? -1 : 1000 * seconds);
		if (!ready || (ready < 0 && errno != EINTR))
			return false;
		if (ready < 0)
			continue;
		got = read(from, to, left);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		to += got;
		left -= got;
	}
	return true;
}

bool drive_ask(const char *path, int seconds, struct drive_facts *facts)
{
	bool heard;
	int ends[2];
	pid_t child;

	*facts = (struct drive_facts) { 0 };
	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC))
		fail(EXIT_FAILED, "%s: no pipe: %s", path, strerror(errno));
	child = fork();
	if (child < 0)
		fail(EXIT_FAILED, "%s: no process to look at it: %s", path, strerror(errno));
	if (!child)
		tell(path, ends[1]);
	close(ends[1]);
	heard = hear(ends[0], seconds, facts);
	close(ends[0]);
	if (!heard)
		*facts = (struct drive_facts) { 0 };
	kill(child, SIGKILL);
	/* One that waits for a drive that hangs ends when that does. */
	while (waitpid(child, NULL, heard || seconds < 0 ? 0 : WNOHANG) < 0 && errno == EINTR)
		;
	return heard;
}

bool drive_stat(dev_t number, struct drive_stat *stat)
{
	char path[64];
	FILE *file;
	bool there;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/stat", major(number), minor(number));
	file = fopen(path, "re");
	there = file && fscanf(file, "%" SCNu64 " %*u %*u %" SCNu64 " %" SCNu64 " %*u %*u %" SCNu64
			       " %" SCNu64, &stat->ios[0], &stat->ms[0], &stat->ios[1],
			       &stat->ms[1], &stat->in_flight) == 5;
	if (file)
		fclose(file);
	return there;
}

struct drive_stat drive_stat_since(const struct drive_stat *before, const struct drive_stat *now)
{
	struct drive_stat since = *now;
	int kind;

	for (kind = 0; kind < 2; kind++) {
		since.ios[kind] -= before->ios[kind];
		since.ms[kind] -= before->ms[kind];
	}
	return since;
}

double drive_mean(const struct drive_stat *stat, int kind)
{
	return stat->ios[kind] ? stat->ms[kind] / (double)stat->ios[kind] : 0;
}
