// SPDX-License-Identifier: GPL-2.0
/*
 * Opens a zoned block device and refuses, with the reason, what the format
 * cannot live on. I/O is direct: the page cache knows nothing of what the module
 * wrote below it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <libzbd/zbd.h>
#include <limits.h>
#include <linux/nvme_ioctl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "device.h"
#include "format/parse.h"
#include "mtftl.h"
#include "nvme.h"

#define MIN_OPEN_ZONES	4
#define META_BLOCKS	32u	/* read at once: any drive takes that */
#define META_READERS	8u	/* for as many dies at work as one large read has */

/* Of NVMe's commands and Identify Namespace, what is needed here. */
#define NVME_CMD_READ		0x02
#define NVME_ADMIN_IDENTIFY	0x06
#define NVME_ID_SIZE		4096
#define NVME_ID_FLBAS		26	/* bits 0-3: format; 4: metadata follows the data */
#define NVME_ID_DPS		29	/* bits 0-2: protection information, which is not ours */
#define NVME_ID_LBAF		128	/* 4 bytes a format, the first two: bytes of metadata */

/* The zones of the format may begin behind others, which are left alone. */
static u64 device_block(const struct flash *flash, u32 zone, u32 offset)
{
	const struct device *device = (const struct device *)flash;

	return ((u64)device->first_zone + zone) * flash->zone_blocks + offset;
}

static off_t device_at(const struct flash *flash, u32 zone, u32 offset)
{
	return (off_t)device_block(flash, zone, offset) << MTFTL_BLOCK_SHIFT;
}

static int device_read(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer)
{
	struct device *device = (struct device *)flash;
	off_t at = device_at(flash, zone, offset);
	size_t left = (size_t)nr << MTFTL_BLOCK_SHIFT;
	char *to = buffer;

	while (left > 0) {
		ssize_t got = pread(device->fd, to, left, at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		left -= got;
		at += got;
		to += got;
	}
	return 0;
}

static int device_read_torn(struct flash *flash, u32 zone, void *buffer)
{
	const struct flash_zone *state = &flash->zones[zone];
	off_t at = device_at(flash, zone, state->wp);
	ssize_t size = state->torn_sectors << 9;
	ssize_t got = pread(((struct device *)flash)->fd, buffer, size, at);

	if (got != size)
		return got < 0 ? -errno : -EIO;
	memset((u8 *)buffer + size, 0, MTFTL_BLOCK_SIZE - size);
	return 0;
}

/* A read of blocks with their metadata, in pieces; each of n readers takes every n-th piece. */
struct oob_read {
	struct device *device;
	u64 lba;
	u32 nr;
	u8 *to;
	struct mtftl_oob *oob;
	u32 first;		/* piece of this reader */
	int err;
	pthread_t thread;
};

/* Metadata comes with a command of NVMe's only. */
static int read_piece(const struct oob_read *read, u32 at, u32 nr, u8 *meta)
{
	struct nvme_user_io io = {
		.opcode = NVME_CMD_READ,
		.addr = (uintptr_t)(read->to + ((size_t)at << MTFTL_BLOCK_SHIFT)),
		.metadata = (uintptr_t)meta,
		.slba = read->lba + at,
		.nblocks = nr - 1,
	};
	int err = ioctl(read->device->fd, NVME_IOCTL_SUBMIT_IO, &io);
	u32 i;

	if (err < 0)
		return -errno;
	if (err)
		return nvme_read_error(err);
	for (i = 0; i < nr; i++)
		memcpy(&read->oob[at + i], meta + (size_t)i * read->device->meta_size,
		       sizeof(*read->oob));
	return 0;
}

static void *read_pieces(void *context)
{
	struct oob_read *read = context;
	u8 *meta = xalloc(META_BLOCKS, read->device->meta_size);
	u32 at, nr;

	for (at = read->first * META_BLOCKS; !read->err && at < read->nr;
	     at += META_READERS * META_BLOCKS) {
		nr = read->nr - at < META_BLOCKS ? read->nr - at : META_BLOCKS;
		read->err = read_piece(read, at, nr, meta);
	}
	free(meta);
	return NULL;
}

static int device_read_oob(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer,
			   struct mtftl_oob *oob)
{
	struct oob_read reads[META_READERS];
	u32 readers = (nr + META_BLOCKS - 1) / META_BLOCKS, i;
	int err = 0;

	if (readers > META_READERS)
		readers = META_READERS;
	for (i = 0; i < readers; i++) {
		reads[i] = (struct oob_read) {
			.device = (struct device *)flash, .lba = device_block(flash, zone, offset),
			.nr = nr, .to = buffer, .oob = oob, .first = i,
		};
		if (i && pthread_create(&reads[i].thread, NULL, read_pieces, &reads[i]))
			fail(EXIT_FAILED, "out of threads: %u more wanted", readers - i);
	}
	for (i = 0; i < readers; i++) {
		if (i)
			pthread_join(reads[i].thread, NULL);
		else
			read_pieces(&reads[i]);
		err = err ?: reads[i].err;
	}
	return err;
}

static int device_write(struct flash *flash, u32 zone, u32 offset, u32 nr, const void *buffer)
{
	struct device *device = (struct device *)flash;
	off_t at = device_at(flash, zone, offset);
	size_t left = (size_t)nr << MTFTL_BLOCK_SHIFT;
	ssize_t written = pwrite(device->fd, buffer, left, at);

	if (written != (ssize_t)left)
		return written < 0 ? -errno : -EIO;
	flash->zones[zone].cond = FLASH_OPEN;
	flash->zones[zone].wp = offset + nr;
	flash->zones[zone].torn_sectors = 0;
	return 0;
}

static int device_flush(struct flash *flash)
{
	return fsync(((struct device *)flash)->fd) ? -errno : 0;
}

static int device_reset_zone(struct flash *flash, u32 zone)
{
	struct device *device = (struct device *)flash;
	u64 zone_bytes = (u64)flash->zone_blocks << MTFTL_BLOCK_SHIFT;

	if (zbd_reset_zones(device->fd, device_at(flash, zone, 0), zone_bytes))
		return -errno;
	flash->zones[zone] = (struct flash_zone) { .cond = FLASH_EMPTY };
	return 0;
}

static int device_finish_zone(struct flash *flash, u32 zone)
{
	struct device *device = (struct device *)flash;
	u64 zone_bytes = (u64)flash->zone_blocks << MTFTL_BLOCK_SHIFT;

	if (zbd_finish_zones(device->fd, device_at(flash, zone, 0), zone_bytes))
		return -errno;
	flash->zones[zone] = (struct flash_zone) { .cond = FLASH_FULL, .wp = flash->zone_capacity };
	return 0;
}

/* What device-mapper calls one of its devices; empty if it is none of them. */
static void find_dm_name(const char *kernel_name, char *name, size_t size)
{
	char path[300], dm_name[256] = "";
	FILE *file;

	name[0] = 0;
	snprintf(path, sizeof(path), "/sys/block/%s/dm/name", kernel_name);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(dm_name, sizeof(dm_name), file)) {
		dm_name[strcspn(dm_name, "\n")] = 0;
		snprintf(name, size, " (%s)", dm_name);
	}
	fclose(file);
}

/* What holds the device, by its sysfs folder; empty if that does not tell. */
static void find_holder(const struct stat *st, char *name, size_t size)
{
	char path[64], dm_name[264];
	struct dirent *entry;
	DIR *dir;

	name[0] = 0;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/holders", major(st->st_rdev),
		 minor(st->st_rdev));
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		find_dm_name(entry->d_name, dm_name, sizeof(dm_name));
		snprintf(name, size, ", held by %s%s", entry->d_name, dm_name);
	}
	closedir(dir);
}

void device_name(dev_t number, char *path, size_t size)
{
	char link[64], target[PATH_MAX], *name, *at;
	ssize_t length;

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(number), minor(number));
	length = readlink(link, target, sizeof(target) - 1);
	target[length < 0 ? 0 : length] = 0;
	name = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
	/* sysfs has no folders for those of /dev. */
	for (at = name; (at = strchr(at, '!')); )
		*at = '/';
	snprintf(path, size, "/dev/%s", name);
}

static void open_zoned(struct device *device, enum device_access access, struct zbd_info *info)
{
	int flags = access == DEVICE_WRITE ? O_RDWR : O_RDONLY;
	char holder[600], name[PATH_MAX];
	struct stat st;

	if (stat(device->path, &st))
		fail(EXIT_FAILED, "%s: %s", device->path, strerror(errno));
	if (!S_ISBLK(st.st_mode))
		fail(EXIT_FAILED, "%s: not a block device, expected a zoned one", device->path);
	device->number = st.st_rdev;
	/* libzbd looks for a device's name in sysfs. */
	device_name(device->number, name, sizeof(name));
	if (zbd_device_is_zoned(name) != 1)
		fail(EXIT_FAILED, "%s: not zoned, expected a host-managed zoned device",
		     device->path);

	flags |= O_DIRECT | O_CLOEXEC;
	if (access != DEVICE_READ)
		flags |= O_EXCL;
	device->fd = zbd_open(name, flags, info);
	if (device->fd < 0 && errno == EBUSY) {
		find_holder(&st, holder, sizeof(holder));
		fail(EXIT_FAILED, "%s: in use%s, expected an idle device", device->path, holder);
	}
	if (device->fd < 0)
		fail(EXIT_FAILED, "%s: cannot open: %s", device->path, strerror(errno));
}

static void check_limit(const struct device *device, const char *what, unsigned int limit)
{
	/* 0: no limit, -1: not known */
	if (limit != 0 && limit != -1u && limit < MIN_OPEN_ZONES)
		fail(EXIT_FAILED, "%s: at most %u %s zones, expected %u or more", device->path,
		     limit, what, MIN_OPEN_ZONES);
}

static void check_info(struct device *device, const struct zbd_info *info)
{
	if (info->model != ZBD_DM_HOST_MANAGED)
		fail(EXIT_FAILED, "%s: host-aware, expected a host-managed zoned device",
		     device->path);
	if (info->lblock_size > MTFTL_BLOCK_SIZE)
		fail(EXIT_FAILED, "%s: logical blocks of %u bytes, expected at most %u",
		     device->path, info->lblock_size, MTFTL_BLOCK_SIZE);
	check_limit(device, "open", info->max_nr_open_zones);
	check_limit(device, "active", info->max_nr_active_zones);
}

static void take_zone(struct device *device, u32 index, const struct zbd_zone *zone)
{
	struct flash_zone *to = &device->flash.zones[index];
	u32 capacity = device->flash.zone_capacity;

	/* A write pointer means nothing where a zone is full, read-only or offline. */
	to->wp = capacity;
	to->torn_sectors = 0;
	switch (zone->cond) {
	case ZBD_ZONE_COND_FULL:
		to->cond = FLASH_FULL;
		device->nr_written++;
		break;
	case ZBD_ZONE_COND_READONLY:
		to->cond = FLASH_READONLY;
		break;
	case ZBD_ZONE_COND_OFFLINE:
		to->cond = FLASH_OFFLINE;
		to->wp = 0;
		break;
	case ZBD_ZONE_COND_EMPTY:
		to->cond = FLASH_EMPTY;
		to->wp = 0;
		break;
	default:
		to->cond = FLASH_OPEN;
		to->wp = (zone->wp - zone->start) >> MTFTL_BLOCK_SHIFT;
		device->nr_written += zone->wp > zone->start;
		if (to->wp > capacity)
			fail(EXIT_FAILED, "%s: write pointer of zone %u is past its capacity, expected"
			     " at most block %u", device->path, index, capacity);
		if (to->wp < capacity)
			to->torn_sectors = (zone->wp - zone->start) % MTFTL_BLOCK_SIZE >> 9;
	}
}

/* The zones that the format is in, of those that the device has. */
static struct mtftl_run find_run(const struct device *device, const struct zbd_zone *zones,
				 unsigned int nr)
{
	u64 zone_bytes = (u64)device->flash.zone_blocks << MTFTL_BLOCK_SHIFT;
	struct mtftl_run run = { 0 };
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (zones[i].type != ZBD_ZONE_TYPE_SWR || zones[i].len != zone_bytes)
			mtftl_run_add(&run, 0, false);
		else if (zones[i].cond == ZBD_ZONE_COND_OFFLINE)
			mtftl_run_add(&run, MTFTL_RUN_ANY, false);
		else
			mtftl_run_add(&run, zones[i].capacity >> MTFTL_BLOCK_SHIFT,
				      zones[i].capacity % MTFTL_BLOCK_SIZE);
	}
	if (!run.nr || run.capacity == MTFTL_RUN_ANY)
		fail(EXIT_FAILED, "%s: %u zones, none of them sequential, expected a zone that must be written in order",
		     device->path, nr);
	if ((u64)run.nr * device->flash.zone_blocks > (u64)MTFTL_MAP_MAX_PAGE + 1)
		fail(EXIT_FAILED, "%s: %.1f TiB, expected 16 TiB less 8 GiB at most", device->path,
		     (double)run.nr * zone_bytes / (1ull << 40));
	return run;
}

/* Fills in what the device says of its zones. */
static void report_zones(struct device *device)
{
	struct mtftl_run run;
	struct zbd_zone *zones;
	unsigned int nr, i;

	if (zbd_list_zones(device->fd, 0, 0, ZBD_RO_ALL, &zones, &nr))
		fail(EXIT_FAILED, "%s: cannot report zones: %s", device->path, strerror(errno));
	run = find_run(device, zones, nr);
	if (!device->flash.zones) {
		device->first_zone = run.first;
		device->left_alone = nr - run.nr;
		device->flash.nr_zones = run.nr;
		device->flash.zone_capacity = run.capacity;
		device->flash.zones = xalloc(run.nr, sizeof(*device->flash.zones));
	}
	if (run.first != device->first_zone || run.nr != device->flash.nr_zones)
		fail(EXIT_FAILED, "%s: reports %u zones from %u on, expected %u from %u on as before",
		     device->path, run.nr, run.first, device->flash.nr_zones, device->first_zone);
	device->nr_written = 0;
	for (i = 0; i < run.nr; i++)
		take_zone(device, i, &zones[run.first + i]);
	free(zones);
}

/* None, unless it is NVMe with metadata apart that means nothing to drive or kernel. */
static u32 find_meta_size(const struct device *device)
{
	u8 id[NVME_ID_SIZE] = { 0 };
	struct nvme_admin_cmd command = {
		.opcode = NVME_ADMIN_IDENTIFY, .addr = (uintptr_t)id, .data_len = sizeof(id),
	};
	int nsid = ioctl(device->fd, NVME_IOCTL_ID);
	const u8 *format;

	if (nsid <= 0 || device->sector_size != MTFTL_BLOCK_SIZE)
		return 0;
	command.nsid = nsid;
	if (ioctl(device->fd, NVME_IOCTL_ADMIN_CMD, &command))
		return 0;
	format = id + NVME_ID_LBAF + 4 * (id[NVME_ID_FLBAS] & 0xf);
	if (id[NVME_ID_FLBAS] & 0x10 || id[NVME_ID_DPS] & 0x7)
		return 0;
	return format[0] | format[1] << 8;
}

/* The module, too, can carry metadata: see target/device/meta.h. */
static bool kernel_is_new_enough(void)
{
	unsigned int release = 0, update = 0;
	struct utsname name;

	return !uname(&name) && sscanf(name.release, "%u.%u", &release, &update) == 2 &&
	       (release > 6 || (release == 6 && update >= 11));
}

bool device_takes_headers(const struct device *device)
{
	return device->flash.read_oob && kernel_is_new_enough();
}

/* An attribute of its queue; @otherwise: the kernel does not have it, or it is 0. */
static u64 queue_limit(const struct device *device, const char *name, u64 otherwise)
{
	unsigned long long value = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/%s", major(device->number),
		 minor(device->number), name);
	file = fopen(path, "re");
	if (!file)
		return otherwise;
	if (fscanf(file, "%llu", &value) != 1)
		value = 0;
	fclose(file);
	return value ?: otherwise;
}

/* As the module has it: see table.c. */
static u32 find_write_blocks(const struct device *device)
{
	u64 blocks = queue_limit(device, "max_sectors_kb", UINT32_MAX) >> (MTFTL_BLOCK_SHIFT - 10);
	u64 append = queue_limit(device, "zone_append_max_bytes", UINT32_MAX) >> MTFTL_BLOCK_SHIFT;
	u64 segments = queue_limit(device, "max_segments", UINT32_MAX);

	blocks = append < blocks ? append : blocks;
	return segments < blocks ? segments : blocks;
}

struct device *device_open(const char *path, enum device_access access)
{
	struct device *device = xalloc(1, sizeof(*device));
	struct zbd_info info;

	device->path = path;
	open_zoned(device, access, &info);
	check_info(device, &info);
	device->sector_size = info.lblock_size;
	device->write_blocks = find_write_blocks(device);
	device->flash.zone_blocks = info.zone_size >> MTFTL_BLOCK_SHIFT;
	report_zones(device);
	device->flash.read = device_read;
	device->flash.read_torn = device_read_torn;
	device->meta_size = find_meta_size(device);
	if (device->meta_size >= sizeof(struct mtftl_oob) && device->meta_size <= MTFTL_META_MAX)
		device->flash.read_oob = device_read_oob;
	device->flash.write = device_write;
	device->flash.flush = device_flush;
	device->flash.reset = device_reset_zone;
	device->flash.finish = device_finish_zone;
	return device;
}

void device_close(struct device *device)
{
	zbd_close(device->fd);
	free(device->flash.zones);
	free(device);
}

void device_reset(struct device *device, u32 first, u32 nr, const char *what)
{
	u32 i;
	int err;

	for (i = first; i < first + nr; i++) {
		enum flash_cond cond = device->flash.zones[i].cond;

		progress(what, i - first, nr);
		if (cond != FLASH_OPEN && cond != FLASH_FULL)
			continue;
		err = device_reset_zone(&device->flash, i);
		if (err)
			fail(EXIT_FAILED, "%s: cannot reset zone %u: %s", device->path, i,
			     strerror(-err));
	}
	progress(what, nr, nr);
}

void device_reset_all(struct device *device, const char *what)
{
	report_zones(device);
	if (!device->nr_written)
		return;
	/* A report shows whether the command worked; other zones are reset one by one. */
	if (!device->left_alone)
		zbd_reset_zones(device->fd, 0, 0);
	report_zones(device);
	device_reset(device, 0, device->flash.nr_zones, what);
}

void device_write_first(struct device *device, u32 zone, const void *block)
{
	int err = device_write(&device->flash, zone, 0, 1, block);

	if (err)
		fail(EXIT_FAILED, "%s: cannot write the first block of zone %u: %s", device->path,
		     zone, strerror(-err));
	err = device_flush(&device->flash);
	if (err)
		fail(EXIT_FAILED, "%s: cannot flush: %s", device->path, strerror(-err));
}
