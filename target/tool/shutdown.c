// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a shutdown: closes the mtftl device that the root file system is on.
 *
 * systemd-shutdown makes /run/initramfs the root, where keep has put this program, and starts it as
 * process 1. All other processes are gone, and the old root file system is below /oldroot. Whatever
 * fails here, the machine must stop: each failure is told, and the next step is taken.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	const char *word;
	int how;
} ways[] = {
	{ "reboot", RB_AUTOBOOT },
	{ "poweroff", RB_POWER_OFF },
	{ "halt", RB_HALT_SYSTEM },
	{ "kexec", LINUX_REBOOT_CMD_KEXEC },
};

static int way_of(const char *word)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(word, ways[i].word))
			return ways[i].how;
	return RB_AUTOBOOT;
}

/* What /sys/block/BLOCK/dm/KEY says; "" if there is no such file. */
static void attribute(const char *block, const char *key, char *value, int size)
{
	char path[512];
	FILE *file;

	value[0] = 0;
	snprintf(path, sizeof(path), "/sys/block/%s/dm/%s", block, key);
	file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(value, size, file))
		value[0] = 0;
	value[strcspn(value, "\n")] = 0;
	fclose(file);
}

static void close_device(const char *name)
{
	pid_t child = fork();

	if (!child) {
		/* udev has ended, and would be waited for. */
		setenv("DM_DISABLE_UDEV", "1", 1);
		execl("/usr/sbin/mtftl", "mtftl", "close", name, (char *)NULL);
		fprintf(stderr, "mtftl: %s: not closed: %s\n", name, strerror(errno));
		_exit(1);
	}
	if (child < 0 || waitpid(child, NULL, 0) < 0)
		fprintf(stderr, "mtftl: %s: not closed: %s\n", name, strerror(errno));
}

static void close_devices(void)
{
	char uuid[256], name[256];
	const struct dirent *entry;
	DIR *blocks = opendir("/sys/block");

	if (!blocks) {
		fprintf(stderr, "mtftl: /sys/block: %s\n", strerror(errno));
		return;
	}
	while ((entry = readdir(blocks))) {
		attribute(entry->d_name, "uuid", uuid, sizeof(uuid));
		attribute(entry->d_name, "name", name, sizeof(name));
		if (!strncmp(uuid, "mtftl-", strlen("mtftl-")))
			close_device(name);
	}
	closedir(blocks);
}

int main(int argc, char **argv)
{
	/* Nothing has a file open there, so with its last mount the file system is gone. */
	if (umount2("/oldroot", MNT_DETACH))
		fprintf(stderr, "mtftl: /oldroot: cannot unmount: %s\n", strerror(errno));
	close_devices();
	sync();
	reboot(way_of(argc > 1 ? argv[1] : ""));
	fprintf(stderr, "mtftl: cannot %s: %s\n", argc > 1 ? argv[1] : "reboot", strerror(errno));
	reboot(RB_AUTOBOOT);
	/* The kernel panics if process 1 ends. */
	for (;;)
		pause();
}
