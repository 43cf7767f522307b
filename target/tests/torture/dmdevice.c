// SPDX-License-Identifier: GPL-2.0
/*
 * dm-mtftl over a namespace of the emulated flash device, whose power is cut
 * and restored by the emulator's vendor commands (docs/emulator/faults.md). Spec: the
 * namespace, which is formatted: /dev/nvme0n1; or, with the number of blocks that it was formatted
 * with, is left as it is: /dev/nvme0n1,6000.
 *
 * A power cycle also unbinds the NVMe driver and binds it again: what the
 * kernel remembers of zones and write pointers does not outlive a real one.
 * Only I/O runs in many threads; it uses nothing but dm->fd.
 */
#include "dmdevice.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <linux/dm-ioctl.h>
#include <linux/blkzoned.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "format/format.h"
#include "fuawrite/fuawrite.h"
#include "oracle.h"

#define SPARE		25		/* percent */
#define KEPT_CAPACITY	128		/* of a zone, if nothing is formatted: it has as much */

/* The emulator's vendor command and log page. */
#define FLASH_OPCODE	0xc0
enum flash_action {
	FLASH_POWER_ON		= 0x00,
	FLASH_CUT		= 0x01,
	FLASH_CUT_AT_PROGRAM	= 0x02,
	FLASH_CUT_FORGET	= 0x03,
	FLASH_CUT_AT_RESET	= 0x04,
	FLASH_WRITE_ERROR	= 0x11,
	FLASH_READ_RATE		= 0x12,
	FLASH_WRITE_RATE	= 0x13,
	FLASH_READ_ONLY		= 0x15,
	FLASH_SLOW_DIE		= 0x17,
	FLASH_CLEAR		= 0x1f,
};
#define FLASH_LOG		0xf0
#define FLASH_LOG_SIZE		280
#define FLASH_LOG_CHANNELS	12
#define FLASH_LOG_DIES		16	/* of a channel */
#define FLASH_LOG_POWERED	272

int dm_command(struct dmdevice *dm, unsigned long command, uint32_t flags, const char *text)
{
	union {
		struct dm_ioctl head;
		char bytes[16384];
	} io = { 0 };
	static int control = -1;
	char *payload = io.bytes + sizeof(io.head);

	if (control < 0)
		control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		return -errno;
	io.head.version[0] = DM_VERSION_MAJOR;
	io.head.data_size = sizeof(io);
	io.head.data_start = sizeof(io.head);
	io.head.flags = flags;
	strcpy(io.head.name, dm->name);
	if (command == DM_TABLE_LOAD) {
		struct dm_target_spec spec = { .length = SECTORS(dm->dev.nr_blocks) };

		io.head.target_count = 1;
		memcpy(spec.target_type, text, strcspn(text, " "));
		memcpy(payload, &spec, sizeof(spec));
		strcpy(payload + sizeof(spec), text + strcspn(text, " "));
	} else if (command == DM_TARGET_MSG) {
		strcpy(payload + sizeof(struct dm_target_msg), text);
	}
	if (ioctl(control, command, &io))
		return -errno;
	if (command == DM_DEV_CREATE)
		snprintf(dm->node, sizeof(dm->node), "/dev/dm-%u", minor((dev_t)io.head.dev));
	return 0;
}

static int load_table(struct dmdevice *dm, const struct tuning *tuning)
{
	static const char *const placements[NR_PLACEMENTS] = {
		"none", "hot-cold", "by-age", "by-life",
	};
	char line[PATH_MAX + 128];
	unsigned int entries = tuning->buffer_entries;

	/* What is buffered must fit into zones that users cannot have: not too many. */
	if (entries > dm->zone_capacity / 2)
		entries = dm->zone_capacity / 2;
	snprintf(line, sizeof(line),
		 "mtftl %s 12 lanes %u buffer_entries %u write_unit %u gc_policy %s placement %s"
		 " append %s", dm->namespace, tuning->lanes, entries, tuning->write_unit,
		 tuning->cost_benefit ? "cost-benefit" : "greedy", placements[tuning->placement],
		 tuning->append ? "on" : "off");
	return dm_command(dm, DM_TABLE_LOAD, 0, line);
}

int dm_unmount(struct device *dev)
{
	struct dmdevice *dm = to_dm(dev);
	int err = 0;

	if (dm->fd >= 0)
		close(dm->fd);
	dm->fd = -1;
	if (dm->created)
		err = dm_command(dm, DM_DEV_REMOVE, 0, NULL);
	dm->created = false;
	return err;
}

int dm_begin(struct dmdevice *dm)
{
	int err = dm_command(dm, DM_DEV_CREATE, 0, NULL);

	if (err)
		return err;
	dm->created = true;
	dm->replaced = false;
	return 0;
}

int dm_take(struct dmdevice *dm)
{
	int err = dm_command(dm, DM_DEV_SUSPEND, 0, NULL);

	if (err)
		return err;
	dm->fd = open(dm->node, O_RDWR | O_DIRECT | O_CLOEXEC);
	return dm->fd < 0 ? -errno : 0;
}

static int dm_mount(struct device *dev, const struct tuning *tuning)
{
	struct dmdevice *dm = to_dm(dev);
	int err = dm_begin(dm);

	if (err)
		return err;
	err = load_table(dm, tuning) ?: dm_take(dm);
	if (err)
		dm_unmount(dev);
	return err;
}

static int resume(struct dmdevice *dm)
{
	int err = dm_command(dm, DM_DEV_SUSPEND, 0, NULL);

	/* With the power off it stays suspended, and I/O waits: let it fail instead. */
	dm->replaced = err;
	if (err && !dm_command(dm, DM_TABLE_LOAD, 0, "error"))
		dm_command(dm, DM_DEV_SUSPEND, 0, NULL);
	return err;
}

static int dm_disturb(struct device *dev, enum disturbance what, const struct tuning *tuning)
{
	uint32_t flags = DM_SUSPEND_FLAG;
	struct dmdevice *dm = to_dm(dev);
	int err = 0;

	if (what == DISTURB_PAUSE)
		flags |= DM_NOFLUSH_FLAG | DM_SKIP_LOCKFS_FLAG;
	if (what == DISTURB_CHECKPOINT)
		return dm_command(dm, DM_TARGET_MSG, 0, "checkpoint");
	if (what == DISTURB_GC)
		return dm_command(dm, DM_TARGET_MSG, 0, "gc");
	if (what == DISTURB_RELOAD)
		err = load_table(dm, tuning);
	/* A loaded table comes into force with the resume. */
	if (!err)
		err = dm_command(dm, DM_DEV_SUSPEND, flags, NULL);
	return err ?: resume(dm);
}

static int result(ssize_t got, uint32_t nr, int partial)
{
	if (got < 0)
		return -errno;
	return (size_t)got == (size_t)nr * BLOCK_BYTES ? 0 : partial;
}

int dm_read(struct device *dev, uint64_t lba, uint32_t nr, void *data)
{
	return result(pread(to_dm(dev)->fd, data, (size_t)nr * BLOCK_BYTES,
			    (off_t)lba * BLOCK_BYTES), nr, -EIO);
}

int dm_write(struct device *dev, uint64_t lba, uint32_t nr, const void *data, unsigned int flags)
{
	struct dmdevice *dm = to_dm(dev);
	struct iovec iov = { (void *)data, (size_t)nr * BLOCK_BYTES };
	int nowait = flags & WRITE_NOWAIT ? RWF_NOWAIT : 0;

	if (flags & WRITE_FUA) {
		struct fuawrite fua = {
			.offset = lba * BLOCK_BYTES, .data = (uintptr_t)data,
			.length = nr * BLOCK_BYTES, .fd = dm->fd,
		};

		return ioctl(dm->fuawrite, FUAWRITE, &fua) ? -errno : 0;
	}
	return result(pwritev2(dm->fd, &iov, 1, (off_t)lba * BLOCK_BYTES, nowait), nr,
		      nowait ? -EAGAIN : -EIO);
}

int dm_flush(struct device *dev)
{
	struct dmdevice *dm = to_dm(dev);

	if (fdatasync(dm->fd))
		return -errno;
	return dm->replaced ? -EIO : 0;
}

int dm_clear(struct device *dev, uint64_t lba, uint32_t nr, enum clear_kind kind)
{
	uint64_t range[2] = { lba * BLOCK_BYTES, (uint64_t)nr * BLOCK_BYTES };

	return ioctl(to_dm(dev)->fd, kind == CLEAR_DISCARD ? BLKDISCARD : BLKZEROOUT, range) ?
	       -errno : 0;
}

static int admin_command(struct dmdevice *dm, struct nvme_admin_cmd *cmd)
{
	int fd = open(dm->controller, O_RDWR | O_CLOEXEC), status;

	if (fd < 0)
		return -errno;
	status = ioctl(fd, NVME_IOCTL_ADMIN_CMD, cmd);
	if (status)
		status = status < 0 ? -errno : -EPROTO;
	close(fd);
	return status;
}

static int flash_action(struct dmdevice *dm, enum flash_action action, uint64_t value,
			uint32_t nr, uint32_t times)
{
	struct nvme_admin_cmd cmd = {
		.opcode = FLASH_OPCODE, .nsid = 1, .cdw10 = action,
		.cdw11 = (uint32_t)value, .cdw12 = (uint32_t)(value >> 32),
		.cdw13 = nr, .cdw15 = times,
	};

	return admin_command(dm, &cmd);
}

static int dm_fault(struct device *dev, enum fault fault, uint64_t where)
{
	struct dmdevice *dm = to_dm(dev);
	uint64_t zone = where % dm->nr_zones;

	/*
	 * In one zone the superblock log cannot go round, and when that is full the device is at
	 * its end: the second zone is spared, and the first never turns read-only.
	 */
	if (zone == 1 || (zone == 0 && fault == FAULT_READ_ONLY))
		zone = 2;
	zone *= dm->zone_blocks;
	if (fault == FAULT_WRITE)
		return flash_action(dm, FLASH_WRITE_ERROR, zone, dm->zone_blocks, 1);
	return flash_action(dm, FLASH_READ_ONLY, zone, 0, 0);
}

static int dm_fault_rates(struct device *dev, unsigned int reads, unsigned int writes)
{
	int err = flash_action(to_dm(dev), FLASH_READ_RATE, reads, 0, 0);

	return err ?: flash_action(to_dm(dev), FLASH_WRITE_RATE, writes, 0, 0);
}

static int dm_arm(struct device *dev, enum cut_kind kind, uint64_t value)
{
	static const unsigned int actions[] = {
		[CUT_NS] = FLASH_CUT,
		[CUT_PROGRAMS] = FLASH_CUT_AT_PROGRAM,
		[CUT_RESETS] = FLASH_CUT_AT_RESET,
	};

	return flash_action(to_dm(dev), actions[kind], value, 0, 0);
}

static void read_flash_log(struct dmdevice *dm, unsigned char log[FLASH_LOG_SIZE])
{
	struct nvme_admin_cmd cmd = {
		.opcode = 0x02, .nsid = 1, .addr = (uintptr_t)log, .data_len = FLASH_LOG_SIZE,
		.cdw10 = FLASH_LOG | (FLASH_LOG_SIZE / 4 - 1) << 16,
	};
	int err = admin_command(dm, &cmd);

	if (err || memcmp(log, "MTFL", 4)) {
		fprintf(stderr, "the flash does not tell its state: %s\n", strerror(-err));
		exit(2);
	}
}

static bool dm_dead(struct device *dev)
{
	unsigned char log[FLASH_LOG_SIZE];
	uint64_t powered;

	read_flash_log(to_dm(dev), log);
	memcpy(&powered, log + FLASH_LOG_POWERED, sizeof(powered));
	return !powered;
}

static int dm_slow_die(struct device *dev, uint64_t where, unsigned int percent)
{
	unsigned char log[FLASH_LOG_SIZE];
	uint32_t channels, dies;

	read_flash_log(to_dm(dev), log);
	memcpy(&channels, log + FLASH_LOG_CHANNELS, sizeof(channels));
	memcpy(&dies, log + FLASH_LOG_DIES, sizeof(dies));
	return flash_action(to_dm(dev), FLASH_SLOW_DIE, where % (channels * dies), percent, 0);
}

static unsigned int dm_log_room(struct device *dev)
{
	struct dmdevice *dm = to_dm(dev);
	struct {
		struct blk_zone_report head;
		struct blk_zone zones[MTFTL_NR_SB_ZONES];
	} report = { .head.nr_zones = MTFTL_NR_SB_ZONES };
	int fd = open(dm->namespace, O_RDONLY | O_CLOEXEC), err;
	unsigned int i, room = 0;

	if (fd < 0)
		return 0;
	err = ioctl(fd, BLKREPORTZONE, &report);
	close(fd);
	/* The one that is written in part. */
	for (i = 0; !err && i < MTFTL_NR_SB_ZONES; i++) {
		const struct blk_zone *zone = &report.zones[i];

		if (zone->cond >= BLK_ZONE_COND_IMP_OPEN && zone->cond <= BLK_ZONE_COND_CLOSED)
			room = (unsigned int)((zone->start + zone->capacity - zone->wp) / SECTORS(1));
	}
	return room;
}

static bool dm_disarm(struct device *dev)
{
	int err = flash_action(to_dm(dev), FLASH_CUT_FORGET, 0, 0, 0);

	if (err) {
		fprintf(stderr, "cannot disarm the power cut: %s\n", strerror(-err));
		exit(2);
	}
	return !dm_dead(dev);
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int dm_power_cycle(struct device *dev)
{
	struct dmdevice *dm = to_dm(dev);
	struct timespec pause = { 0, 100000 };
	unsigned int tries = 0;
	int err = 0;

	if (!dm_dead(dev))
		err = dm_arm(dev, CUT_NS, 0);
	if (!err)
		err = flash_action(dm, FLASH_CLEAR, 0, 0, 0);
	if (!err)
		err = flash_action(dm, FLASH_POWER_ON, 0, 0, 0);
	if (!err)
		err = write_file("/sys/bus/pci/drivers/nvme/unbind", dm->pci);
	if (!err)
		err = write_file("/sys/bus/pci/drivers/nvme/bind", dm->pci);
	/* The namespace is found in the background. */
	while (!err && access(dm->namespace, R_OK | W_OK)) {
		if (tries++ == 100000)
			return -ENODEV;
		nanosleep(&pause, NULL);
	}
	return err;
}

static void dm_describe(struct device *dev)
{
	char command[64];

	snprintf(command, sizeof(command), "dmsetup status %s", to_dm(dev)->name);
	if (system(command))
		printf("no status\n");
	if (dm_dead(dev))
		printf("the power is off\n");
}

static int dm_check(struct device *dev)
{
	const char *flash = to_dm(dev)->namespace;
	char command[2 * PATH_MAX + 128];

	snprintf(command, sizeof(command), "mtftl check %s >/tmp/check 2>&1 || "
		 "{ status=$?; cat /tmp/check; mtftl dump --units %s; exit $status; }", flash, flash);
	return system(command);
}

static int dm_rebuild(struct device *dev)
{
	char command[PATH_MAX + 64];

	snprintf(command, sizeof(command), "mtftl check --rebuild --force %s >/dev/null 2>&1",
		 to_dm(dev)->namespace);
	return system(command);
}

/* Geometry is in the superblock; right after a format that is block 0. */
static bool read_superblock(struct dmdevice *dm)
{
	static _Alignas(MTFTL_BLOCK_SIZE) struct mtftl_sb sb;
	int fd = open(dm->namespace, O_RDONLY | O_DIRECT | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	got = pread(fd, &sb, sizeof(sb), 0);
	close(fd);
	if (got != sizeof(sb) || le64_to_cpu(sb.magic) != MTFTL_SB_MAGIC)
		return false;
	dm->dev.nr_blocks = le64_to_cpu(sb.logical_blocks);
	dm->nr_zones = le32_to_cpu(sb.nr_zones);
	dm->zone_blocks = le32_to_cpu(sb.zone_blocks);
	dm->zone_capacity = le32_to_cpu(sb.zone_capacity);
	return true;
}

/* Fails where zones of the superblock are worn out. */
static int dm_format(struct device *dev)
{
	struct dmdevice *dm = to_dm(dev);
	char command[PATH_MAX + 64];

	snprintf(command, sizeof(command), "mtftl format --force --op %d %s >/dev/null",
		 SPARE, dm->namespace);
	if (system(command))
		return -EIO;
	return read_superblock(dm) ? 0 : -EIO;
}

static const struct device_ops dm_ops = {
	.read = dm_read, .write = dm_write, .flush = dm_flush, .clear = dm_clear,
	.mount = dm_mount, .unmount = dm_unmount, .disturb = dm_disturb, .format = dm_format,
	.check = dm_check, .rebuild = dm_rebuild, .fault = dm_fault, .slow_die = dm_slow_die, .log_room = dm_log_room,
	.fault_rates = dm_fault_rates, .arm = dm_arm,
	.dead = dm_dead, .power_cycle = dm_power_cycle, .describe = dm_describe,
	.disarm = dm_disarm,
};

static int open_fuawrite(void)
{
	int fd = open("/dev/fuawrite", O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		perror("/dev/fuawrite");
		exit(2);
	}
	return fd;
}

void dmdevice_init(struct dmdevice *dm, const char *name, const struct device_ops *ops)
{
	dm->dev.ops = ops;
	dm->name = name;
	dm->fd = -1;
	dm->fuawrite = open_fuawrite();
}

struct device *dmdevice_named(const char *name, const char *spec)
{
	struct dmdevice *dm = calloc(1, sizeof(*dm));
	char path[PATH_MAX], real[PATH_MAX], *blocks, *flash;

	if (!dm)
		return NULL;
	dmdevice_init(dm, name, &dm_ops);
	dm->namespace = strdup(spec);
	blocks = strchr(dm->namespace, ',');
	if (blocks) {
		*blocks = '\0';
		dm->dev.nr_blocks = strtoull(blocks + 1, NULL, 10);
		dm->zone_capacity = KEPT_CAPACITY;
	} else if (dm_format(&dm->dev)) {
		fprintf(stderr, "%s: cannot be formatted\n", spec);
		return NULL;
	}
	/* basename() may change what it is given. */
	flash = strdup(dm->namespace);
	snprintf(path, sizeof(path), "/sys/class/block/%s/device", basename(dm->namespace));
	dm->namespace = flash;
	if (!realpath(path, real) || asprintf(&dm->controller, "/dev/%s", basename(real)) < 0) {
		perror(path);
		return NULL;
	}
	strcat(path, "/device");
	if (!realpath(path, real)) {
		perror(path);
		return NULL;
	}
	dm->pci = strdup(basename(real));
	dm->dev.flash = dm->namespace;
	return &dm->dev;
}

struct device *dmdevice_open(const char *spec)
{
	return dmdevice_named("torture", spec);
}
