// SPDX-License-Identifier: GPL-2.0
/*
 * mtftl header-backup, header-restore and resize: the superblock of a drive that is not open. A backup
 * has the identity and nothing that changes, so it never grows old: without a checkpoint to begin
 * with, the mount after a restore looks at all zones.
 */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "device.h"
#include "mtftl.h"
#include "rebuild.h"
#include "scan.h"
#include "super.h"

/* What stays the same for the life of a format. */
static struct mtftl_sb_info identity_of(const struct mtftl_sb_info *info)
{
	struct mtftl_sb_info identity = *info;

	identity.flags = 0;
	identity.generation = 1;
	mtftl_sb_set_checkpoint(&identity, NULL);
	return identity;
}

/* The device and the file of such a command. */
static char **two_words(int argc, char **argv, const struct option *options, bool *force)
{
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return NULL;
		*force = true;
	}
	if (argc - optind != 2)
		fail(EXIT_USAGE, "%s: %d words given, expected a device and a file", argv[0],
		     argc - optind);
	return argv + optind;
}

int cmd_header_backup(int argc, char **argv)
{
	static const struct option options[] = {
		{ NULL, 0, NULL, 0 },
	};
	struct mtftl_sb_info identity;
	struct device *device;
	struct super super;
	u8 *block = xalloc_blocks(1);
	char **words;
	bool force;
	int err, fd;

	words = two_words(argc, argv, options, &force);
	if (!words)
		return EXIT_USAGE;
	device = device_open(words[0], DEVICE_READ);
	err = super_find(&device->flash, &super);
	if (err && err != -EOPNOTSUPP)
		fail(EXIT_FAILED, "%s: %s", device->path, super_error(err));
	identity = identity_of(&super.info);
	mtftl_sb_compose(block, &identity);
	/* It has the key. An older backup is as good: it stays. */
	fd = open(words[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		fail(EXIT_FAILED, "%s: cannot create: %s", words[1], strerror(errno));
	if (write(fd, block, MTFTL_BLOCK_SIZE) != MTFTL_BLOCK_SIZE || fsync(fd) || close(fd)) {
		err = errno;
		unlink(words[1]);
		fail(EXIT_FAILED, "%s: cannot write: %s", words[1], strerror(err));
	}
	free(block);
	device_close(device);
	return EXIT_OK;
}

static void read_backup(const char *path, u8 *block, struct mtftl_sb_info *info)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		fail(EXIT_FAILED, "%s: cannot open: %s", path, strerror(errno));
	if (st.st_size != MTFTL_BLOCK_SIZE || read(fd, block, MTFTL_BLOCK_SIZE) != MTFTL_BLOCK_SIZE)
		fail(EXIT_FAILED, "%s: no backup of a header, expected a file of %u bytes", path,
		     MTFTL_BLOCK_SIZE);
	close(fd);
	err = mtftl_sb_parse(block, info);
	if (err)
		fail(EXIT_FAILED, "%s: no backup of a header: %s", path, super_error(err));
	*info = identity_of(info);
	mtftl_sb_compose(block, info);
}

static void check_geometry(const struct device *device, const struct mtftl_sb_info *info)
{
	const struct flash *flash = &device->flash;

	if (info->nr_zones != flash->nr_zones || info->zone_blocks != flash->zone_blocks ||
	    info->zone_capacity != flash->zone_capacity)
		fail(EXIT_FAILED, "%s: %u zones of %u blocks, the backup is of a drive of %u zones of %u"
		     " blocks: expected the same drive", device->path, flash->nr_zones,
		     flash->zone_capacity, info->nr_zones, info->zone_capacity);
}

/* By the key of another drive no mount would find anything: it would take all zones for free ones. */
static void check_units(struct device *device, const struct mtftl_sb_info *info)
{
	struct flash *flash = &device->flash;
	u32 written;
	int found;

	flash->oob = info->oob;
	if (flash->oob && !flash->read_oob)
		return;
	found = scan_finds_unit(flash, mtftl_seed(info->uuid, info->key), &written);
	if (found < 0)
		fail(EXIT_FAILED, "%s: %s, or --force", device->path, super_error(found));
	if (!found && written)
		fail(EXIT_FAILED, "%s: none of %u zones begins with a unit by the key of the backup,"
		     " expected the backup of this drive, or --force", device->path, written);
}

/* The log goes on in one zone, if the drive has given up the other one. */
static void need_log_zone(const struct device *device)
{
	u32 zone;

	for (zone = 0; zone < MTFTL_NR_SB_ZONES; zone++)
		if (flash_is_writable(&device->flash, zone))
			return;
	fail(EXIT_FAILED, "%s: zones 0 and 1 are read-only or offline, expected a writable one for"
	     " superblocks", device->path);
}

/* A record in a zone that takes no reset stays: ours must be the newer one, and a mount pass over it. */
static void outnumber_kept(struct device *device, struct mtftl_sb_info *info)
{
	struct super kept;
	int err = super_find_kept(&device->flash, &kept);

	if (err == -ENODATA || err == -ENXIO)
		return;
	if (err == -EIO)
		fail(EXIT_FAILED, "%s: zone 0 or 1 is read-only, and a record may stay there: %s; nothing is"
		     " written", device->path, super_error(err));
	if (err && err != -ESTALE && err != -EOPNOTSUPP)
		fail(EXIT_FAILED, "%s: a record stays in zone 0 or 1, which is read-only: %s; nothing is"
		     " written", device->path, super_error(err));
	if (info->generation <= kept.info.generation)
		info->generation = kept.info.generation + 1;
}

int cmd_header_restore(int argc, char **argv)
{
	static const struct option options[] = {
		{ "force", no_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	u8 *block = xalloc_blocks(1);
	char uuid[UUID_STR_LEN];
	struct mtftl_sb_info info;
	struct device *device;
	struct super super;
	bool force = false, known;
	char **words;
	int err;

	words = two_words(argc, argv, options, &force);
	if (!words)
		return EXIT_USAGE;
	read_backup(words[1], block, &info);
	device = device_open(words[0], DEVICE_WRITE);
	check_geometry(device, &info);
	err = super_find(&device->flash, &super);
	/* A record that is whole knows more than a backup: where the checkpoint is. */
	if (err != -ENODATA && err != -ENXIO && !force)
		fail(EXIT_FAILED, "%s: %s; expected a drive without a superblock, or --force",
		     device->path, err ? super_error(err) : "has a superblock that is whole");
	if (!force)
		check_units(device, &info);
	need_log_zone(device);
	known = !err || err == -ESTALE || err == -EOPNOTSUPP;
	/* A system that hibernates with the device open shall see that another one has written. */
	if (known)
		info.generation = super.info.generation + 1;
	outnumber_kept(device, &info);
	if (mtftl_sb_wrong(&info))
		fail(EXIT_FAILED, "%s: %s", device->path, super_error(-EOVERFLOW));
	mtftl_sb_compose(block, &info);
	err = super_replace(&device->flash, err, &super, block);
	if (err)
		fail(EXIT_FAILED, "%s: cannot write the superblock: %s; do it again", device->path,
		     strerror(-err));
	uuid_unparse(info.uuid, uuid);
	printf("%s: is %s again; the next mount looks at all zones\n", device->path, uuid);
	free(block);
	device_close(device);
	return EXIT_OK;
}

int cmd_resize(int argc, char **argv)
{
	static const struct option options[] = {
		{ NULL, 0, NULL, 0 },
	};
	struct report report = { 0 };
	struct mtftl_sb_info was, now;
	struct device *device;
	int err;

	if (getopt_long(argc, argv, "", options, NULL) >= 0)
		return EXIT_USAGE;
	if (argc - optind != 1)
		fail(EXIT_USAGE, "resize: %d devices given, expected one", argc - optind);
	device = device_open(argv[optind], DEVICE_WRITE);
	err = rebuild_grow(&device->flash, &report, &was, &now);
	if (err == -EEXIST)
		fail(EXIT_FAILED, "%s: has %u zones as when it was formatted, expected more; if a resize was"
		     " cut off, mtftl check --rebuild --force ends it", device->path,
		     device->flash.nr_zones);
	if (err == -ENOTEMPTY)
		fail(EXIT_FAILED, "%s: an appended zone is not empty, expected empty ones from zone %u on"
		     " (blkzone reset)", device->path, was.nr_zones);
	if (err == -ENOSPC)
		fail(EXIT_FAILED, "%s: no zone is left for a checkpoint, expected empty ones that take"
		     " writes", device->path);
	if (err == -EFBIG)
		fail(EXIT_FAILED, "%s: its zones for checkpoints do not take records of %u zones,"
		     " expected fewer zones, or mtftl format", device->path, device->flash.nr_zones);
	if (err == -EBADMSG)
		fail(EXIT_FAILED, "%s: the checkpoint is damaged, expected a device that can be opened"
		     " at its old size", device->path);
	if (err)
		fail(EXIT_FAILED, "%s: %s", device->path, super_error(err));
	printf("%s: %" PRIu64 " MiB, was %" PRIu64 " MiB; %u zones, were %u\n", device->path,
	       now.logical_blocks >> 8, was.logical_blocks >> 8, now.nr_zones, was.nr_zones);
	device_close(device);
	return EXIT_OK;
}
