// SPDX-License-Identifier: GPL-2.0
/* Damaged media, see fuzz.h. One thread; the image is all of its state. */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/blkzoned.h>
#include <linux/nvme_ioctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "format/format.h"
#include "oracle.h"

#define CHUNK	64u	/* blocks of one read or write */
#define META_CHUNK	32u	/* with metadata: any drive takes that */

/* Of NVMe's commands and Identify Namespace, what is needed here. */
#define NVME_CMD_WRITE		0x01
#define NVME_CMD_READ		0x02
#define NVME_ADMIN_IDENTIFY	0x06
#define NVME_ID_FLBAS		26	/* bits 0-3: format */
#define NVME_ID_LBAF		128	/* 4 bytes a format, the first two: bytes of metadata */

struct zone_image {
	uint64_t start;		/* bytes */
	uint32_t wp;		/* blocks */
	bool full;		/* with a write pointer it would be one more active zone */
	unsigned char *data;
	unsigned char *meta;	/* of its blocks; NULL: they have none */
};

enum class {
	SUPERBLOCK, HEADER, TAIL, STREAM, OOB, NR_CLASSES,	/* STREAM: of a checkpoint or footer */
};

struct target_block {
	uint32_t zone, block;
	enum class class;
	uint32_t header;	/* of a stream's block: where its unit begins */
};

struct image {
	int fd;
	unsigned int nr_zones;
	uint64_t device_sectors;
	struct zone_image *zones;
	struct target_block *targets;
	unsigned int nr_targets;
	uint32_t seed;		/* of checksums */
	uint32_t meta_size;	/* bytes of metadata a block, 0: no use is made of it */
	bool map_log;		/* behind its zone records a checkpoint has a directory, not the map */
};

static uint64_t random_state;

static uint32_t pick(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* The kernel's convention: nothing inverted. Slow, short, and not the target's own. */
static uint32_t crc32c(uint32_t crc, const void *data, size_t length)
{
	const unsigned char *bytes = data;
	int bit;

	while (length--) {
		crc ^= *bytes++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc;
}

static void *block_at(const struct image *image, uint32_t zone, uint32_t block)
{
	return image->zones[zone].data + (size_t)block * MTFTL_BLOCK_SIZE;
}

static struct mtftl_oob *oob_at(const struct image *image, uint32_t zone, uint32_t block)
{
	return (void *)(image->zones[zone].meta + (size_t)block * image->meta_size);
}

static unsigned int oob_type(const struct mtftl_oob *oob)
{
	return le64_to_cpu(oob->tag) & ((1u << MTFTL_OOB_TYPE_BITS) - 1);
}

/* The bytes of metadata a block, where a target can use them. */
static uint32_t find_meta_size(int fd)
{
	static unsigned char id[4096];
	struct nvme_admin_cmd command = {
		.opcode = NVME_ADMIN_IDENTIFY, .addr = (uintptr_t)id, .data_len = sizeof(id),
	};
	const unsigned char *format;
	int nsid = ioctl(fd, NVME_IOCTL_ID);
	uint32_t size;

	if (nsid <= 0)
		return 0;
	command.nsid = (uint32_t)nsid;
	if (ioctl(fd, NVME_IOCTL_ADMIN_CMD, &command))
		return 0;
	format = id + NVME_ID_LBAF + 4 * (id[NVME_ID_FLBAS] & 0xf);
	size = format[0] | (uint32_t)format[1] << 8;
	return size >= sizeof(struct mtftl_oob) && size <= MTFTL_META_MAX ? size : 0;
}

/* Blocks with their metadata, which comes with a command of NVMe's only. */
static int transfer(const struct image *image, const struct zone_image *zone, uint8_t opcode,
		    uint32_t at, uint32_t nr)
{
	struct nvme_user_io io = {
		.opcode = opcode,
		.addr = (uintptr_t)(zone->data + (size_t)at * MTFTL_BLOCK_SIZE),
		.metadata = (uintptr_t)(zone->meta + (size_t)at * image->meta_size),
		.slba = zone->start / MTFTL_BLOCK_SIZE + at,
		.nblocks = (uint16_t)(nr - 1),
	};
	int err = ioctl(image->fd, NVME_IOCTL_SUBMIT_IO, &io);

	return err < 0 ? -errno : err ? -EIO : 0;
}

static void read_zone_with_metadata(const struct image *image, struct zone_image *zone)
{
	uint32_t at, n;

	for (at = 0; at < zone->wp; at += n) {
		n = zone->wp - at < META_CHUNK ? zone->wp - at : META_CHUNK;
		if (!transfer(image, zone, NVME_CMD_READ, at, n))
			continue;
		n = 1;
		if (!transfer(image, zone, NVME_CMD_READ, at, n))
			continue;
		memset(zone->data + (size_t)at * MTFTL_BLOCK_SIZE, 0xa5, MTFTL_BLOCK_SIZE);
		memset(zone->meta + (size_t)at * image->meta_size, 0, image->meta_size);
	}
}

static void read_zone(const struct image *image, struct zone_image *zone)
{
	uint32_t at, n;

	if (zone->meta) {
		read_zone_with_metadata(image, zone);
		return;
	}
	for (at = 0; at < zone->wp; at += n) {
		unsigned char *to = zone->data + (size_t)at * MTFTL_BLOCK_SIZE;
		off_t from = (off_t)(zone->start + (uint64_t)at * MTFTL_BLOCK_SIZE);

		n = zone->wp - at < CHUNK ? zone->wp - at : CHUNK;
		if (pread(image->fd, to, (size_t)n * MTFTL_BLOCK_SIZE, from) > 0)
			continue;
		/* Torn by the crash: block by block, noise where nothing can be read. */
		n = 1;
		if (pread(image->fd, to, MTFTL_BLOCK_SIZE, from) != MTFTL_BLOCK_SIZE)
			memset(to, 0xa5, MTFTL_BLOCK_SIZE);
	}
}

static void add_target(struct image *image, uint32_t zone, uint32_t block, enum class class,
		       uint32_t header)
{
	image->targets = realloc(image->targets,
				 (image->nr_targets + 1) * sizeof(*image->targets));
	image->targets[image->nr_targets++] = (struct target_block){ zone, block, class, header };
}

static void find_targets(struct image *image)
{
	uint32_t z, b, i;

	for (z = 0; z < image->nr_zones; z++) {
		for (b = 0; b < image->zones[z].wp; b++) {
			const struct mtftl_unit *unit = block_at(image, z, b);
			const struct mtftl_sb *sb = (const void *)unit;
			uint32_t payload = le16_to_cpu(unit->nr_blocks);

			if (image->meta_size && oob_type(oob_at(image, z, b))) {
				add_target(image, z, b, OOB, b);
				continue;
			}
			if (z < MTFTL_NR_SB_ZONES) {
				if (le64_to_cpu(sb->magic) == MTFTL_SB_MAGIC) {
					add_target(image, z, b, SUPERBLOCK, b);
					image->seed = crc32c(le32_to_cpu(sb->key), sb->uuid, 16);
					image->map_log |= !!(le64_to_cpu(sb->incompat) & MTFTL_SB_MAP_LOG);
				}
			} else if (le32_to_cpu(unit->magic) == MTFTL_TAIL_MAGIC) {
				add_target(image, z, b, TAIL, b);
			} else if (le32_to_cpu(unit->magic) == MTFTL_UNIT_MAGIC) {
				add_target(image, z, b, HEADER, b);
				if (unit->type == MTFTL_UNIT_CKPT || unit->type == MTFTL_UNIT_FOOTER ||
				    unit->type == MTFTL_UNIT_MAP)
					for (i = 1; i <= payload && b + i < image->zones[z].wp; i++)
						add_target(image, z, b + i, STREAM, b);
				b += payload;
			}
		}
	}
}

static int load(struct image *image, const char *path)
{
	unsigned int max = 4096, i;
	struct blk_zone_report *report;

	image->fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	report = calloc(1, sizeof(*report) + max * sizeof(*report->zones));
	if (image->fd < 0 || !report)
		return -errno;
	report->nr_zones = max;
	if (ioctl(image->fd, BLKREPORTZONE, report))
		return -errno;
	image->nr_zones = report->nr_zones;
	image->zones = calloc(image->nr_zones, sizeof(*image->zones));
	image->meta_size = find_meta_size(image->fd);
	for (i = 0; i < image->nr_zones; i++) {
		const struct blk_zone *from = &report->zones[i];
		struct zone_image *zone = &image->zones[i];

		image->device_sectors = from->start + from->len;
		zone->start = from->start * 512;
		/* What can be written no more stays as it is; it has no write pointer. */
		zone->full = from->cond == BLK_ZONE_COND_FULL;
		if (zone->full)
			zone->wp = (uint32_t)(from->capacity / 8);
		else if (from->cond != BLK_ZONE_COND_READONLY && from->cond != BLK_ZONE_COND_OFFLINE)
			zone->wp = (uint32_t)((from->wp - from->start) / 8);
		zone->data = aligned_alloc(MTFTL_BLOCK_SIZE,
					   (zone->wp + 1) * (size_t)MTFTL_BLOCK_SIZE);
		if (image->meta_size)
			zone->meta = calloc(zone->wp + 1, image->meta_size);
		if (!zone->data || (image->meta_size && !zone->meta))
			return -ENOMEM;
		read_zone(image, zone);
	}
	free(report);
	find_targets(image);
	return image->nr_targets ? 0 : -ENODATA;
}

static int store_zone(const struct image *image, const struct zone_image *zone)
{
	uint32_t at, n;
	int err = 0;

	for (at = 0; zone->meta && !err && at < zone->wp; at += n) {
		n = zone->wp - at < META_CHUNK ? zone->wp - at : META_CHUNK;
		err = transfer(image, zone, NVME_CMD_WRITE, at, n);
	}
	if (zone->meta)
		return err;

	for (at = 0; at < zone->wp; at += n) {
		size_t length;

		n = zone->wp - at < CHUNK ? zone->wp - at : CHUNK;
		length = (size_t)n * MTFTL_BLOCK_SIZE;
		if (pwrite(image->fd, zone->data + (size_t)at * MTFTL_BLOCK_SIZE, length,
			   (off_t)(zone->start + (uint64_t)at * MTFTL_BLOCK_SIZE)) != (ssize_t)length)
			return -errno;
	}
	return 0;
}

static int store(const struct image *image)
{
	struct blk_zone_range all = { 0, image->device_sectors };
	int err = ioctl(image->fd, BLKRESETZONE, &all) ? -errno : 0;
	uint32_t i;

	/* Full zones first: until it is full each counts as one more active zone. */
	for (i = 0; i < 2 * image->nr_zones && !err; i++) {
		const struct zone_image *zone = &image->zones[i % image->nr_zones];

		if (zone->full == (i < image->nr_zones))
			err = store_zone(image, zone);
	}
	return err;
}

/* Of what a header uses; of other blocks all counts. */
static size_t sealed_bytes(const struct target_block *target, const unsigned char *block)
{
	const struct mtftl_unit *unit = (const void *)block;
	size_t each = unit->type == MTFTL_UNIT_RANGES ? sizeof(struct mtftl_range) :
							sizeof(struct mtftl_entry);
	size_t used = sizeof(*unit) + each * le16_to_cpu(unit->nr_entries);

	return target->class == HEADER && used < MTFTL_BLOCK_SIZE ? used : MTFTL_BLOCK_SIZE;
}

/* What the block's metadata says is right again. */
static void reseal_oob(const struct image *image, const struct target_block *target)
{
	struct mtftl_oob *oob = oob_at(image, target->zone, target->block);
	__le32 zone = cpu_to_le32(target->zone);
	uint32_t crc = crc32c(image->seed, &oob->lba, sizeof(oob->lba));

	crc = crc32c(crc, &oob->tag, sizeof(oob->tag));
	crc = crc32c(crc, &zone, sizeof(zone));
	crc ^= crc32c(image->seed, block_at(image, target->zone, target->block), MTFTL_BLOCK_SIZE);
	oob->check = cpu_to_le32(crc);
}

static void reseal(const struct image *image, const struct target_block *target);

/*
 * A map block had checksum @was: what the directory says of it is right again. The directory's own
 * block is one of the stream.
 */
static void reseal_directory(const struct image *image, __le32 was, __le32 is)
{
	unsigned int i, k;

	for (i = 0; i < image->nr_targets; i++) {
		const struct target_block *target = &image->targets[i];
		const struct mtftl_unit *unit = block_at(image, target->zone, target->header);
		struct mtftl_map_place *place = block_at(image, target->zone, target->block);
		bool found = false;

		if (target->class != STREAM || unit->type != MTFTL_UNIT_CKPT)
			continue;
		for (k = 0; k < MTFTL_BLOCK_SIZE / sizeof(*place); k++)
			if (place[k].crc == was && le32_to_cpu(place[k].at) != MTFTL_PLACE_NONE) {
				place[k].crc = is;
				found = true;
			}
		if (found)
			reseal(image, target);
	}
}

/* Make the checksum of a damaged block right again, so that the parsers see its fields. */
static void reseal(const struct image *image, const struct target_block *target)
{
	uint32_t offset = target->class == SUPERBLOCK ? 8 : 4;
	uint32_t seed = target->class == SUPERBLOCK ? ~0u : image->seed;
	unsigned char *block = block_at(image, target->zone, target->block);
	struct target_block header = *target;
	struct mtftl_entry *entry;
	__le32 crc, was;

	if (target->class == OOB) {
		reseal_oob(image, target);
		return;
	}
	/* Its checksum is in the header of its unit. */
	if (target->class == STREAM) {
		header.class = HEADER;
		header.block = target->header;
		entry = (struct mtftl_entry *)((struct mtftl_unit *)
			block_at(image, target->zone, target->header) + 1);
		entry += target->block - target->header - 1;
		was = entry->crc;
		entry->crc = cpu_to_le32(crc32c(image->seed, block, MTFTL_BLOCK_SIZE));
		reseal(image, &header);
		if (((const struct mtftl_unit *)block_at(image, header.zone, header.block))->type ==
		    MTFTL_UNIT_MAP)
			reseal_directory(image, was, entry->crc);
		return;
	}
	memset(block + offset, 0, sizeof(crc));
	crc = cpu_to_le32(crc32c(seed, block, sealed_bytes(target, block)));
	memcpy(block + offset, &crc, sizeof(crc));
}

/* True if a checksum vouches for the damage: then only crashes and hangs count. */
static bool damage(struct image *image)
{
	static const uint64_t values[] = { 0, 1, 0xff, 0xffff, 0xffffffff, ~0ull, 1ull << 31, 1ull << 63 };
	struct target_block target, other;
	struct zone_image *zone;
	bool sealed = false;
	unsigned char *block;
	uint64_t value;
	uint32_t at;

	do {
		target = image->targets[pick(image->nr_targets)];
	} while (target.class == HEADER && pick(4));
	other = image->targets[pick(image->nr_targets)];
	block = block_at(image, target.zone, target.block);
	switch (pick(6)) {
	case 0:
		block[pick(MTFTL_BLOCK_SIZE)] ^= 1u << pick(8);
		break;
	case 1:
		memset(block, 0, MTFTL_BLOCK_SIZE);
		break;
	case 2:
		memcpy(block, block_at(image, other.zone, other.block), MTFTL_BLOCK_SIZE);
		break;
	case 3:
		zone = &image->zones[target.zone];
		at = pick(zone->wp + 1);
		if (zone->full)
			memset(block_at(image, target.zone, at), 0,
			       (size_t)(zone->wp - at) * MTFTL_BLOCK_SIZE);
		else
			zone->wp = at;
		break;
	default:
		/* The fields are at the front; more of them behind, in lists. */
		at = pick(2) ? pick(112 / 4) * 4 : pick(MTFTL_BLOCK_SIZE / 8 - 1) * 8;
		value = pick(2) ? values[pick(8)] : pick(~0u);
		memcpy(block + at, &value, pick(2) ? 4 : 8);
		sealed = pick(4);
		if (sealed)
			reseal(image, &target);
	}
	return sealed;
}

static unsigned int read_all(struct device *dev, struct oracle *oracle, void *data)
{
	unsigned int violations = 0;
	uint64_t lba;
	uint32_t i, n;

	for (lba = 0; lba < dev->nr_blocks; lba += n) {
		n = dev->nr_blocks - lba < CHUNK ? (uint32_t)(dev->nr_blocks - lba) : CHUNK;
		if (dev->ops->read(dev, lba, n, data)) {
			n = 1;
			if (dev->ops->read(dev, lba, n, data))
				continue;
		}
		for (i = 0; i < n; i++)
			violations += !oracle_plausible(oracle, lba + i,
							(char *)data + (size_t)i * BLOCK_BYTES);
	}
	return violations;
}

/* How the offline program ended: with an answer, whatever that is? */
static bool has_crashed(unsigned int round, int status)
{
	if (!WIFSIGNALED(status) && !(WIFEXITED(status) && WEXITSTATUS(status) >= 126))
		return false;
	printf("VIOLATION round %u: the offline check ends with %#x\n", round, status);
	return true;
}

/* Restore what damage() did: from the pristine copy of the image. */
static void repair(struct image *image, const struct image *pristine)
{
	uint32_t z;

	for (z = 0; z < image->nr_zones; z++) {
		image->zones[z].wp = pristine->zones[z].wp;
		memcpy(image->zones[z].data, pristine->zones[z].data,
		       (size_t)pristine->zones[z].wp * MTFTL_BLOCK_SIZE);
		if (image->zones[z].meta)
			memcpy(image->zones[z].meta, pristine->zones[z].meta,
			       (size_t)pristine->zones[z].wp * image->meta_size);
	}
}

/* One field that is wrong, and nothing else */

struct field {
	enum class class;
	uint8_t type;		/* of the unit that it is in; 0: any */
	const char *name;
	uint16_t at, size;
	uint16_t each;		/* bytes from one to the next in the block, 0: there is one */
};

static const struct field fields[] = {
	{ SUPERBLOCK, 0, "version", 12, 2, 0 },
	{ SUPERBLOCK, 0, "flags", 14, 2, 0 },
	{ SUPERBLOCK, 0, "generation", 32, 8, 0 },
	{ SUPERBLOCK, 0, "incompat", 48, 8, 0 },
	{ SUPERBLOCK, 0, "logical_blocks", 56, 8, 0 },
	{ SUPERBLOCK, 0, "nr_zones", 64, 4, 0 },
	{ SUPERBLOCK, 0, "zone_blocks", 68, 4, 0 },
	{ SUPERBLOCK, 0, "zone_capacity", 72, 4, 0 },
	{ SUPERBLOCK, 0, "op_permille", 76, 4, 0 },
	{ SUPERBLOCK, 0, "ckpt_seq", 80, 8, 0 },
	{ SUPERBLOCK, 0, "ckpt_blocks", 88, 8, 0 },
	{ SUPERBLOCK, 0, "ckpt_nr_zones", 96, 4, 0 },
	{ SUPERBLOCK, 0, "key", 100, 4, 0 },
	{ SUPERBLOCK, 0, "ckpt_zones", 104, 4, 0 },
	{ SUPERBLOCK, 0, "ckpt_unit_first", 2152, 8, 0 },
	{ SUPERBLOCK, 0, "ckpt_unit_last", 2160, 8, 0 },
	{ SUPERBLOCK, 0, "ckpt_seat", 2168, 4, 0 },
	{ SUPERBLOCK, 0, "ckpt_offset", 2172, 4, 0 },
	{ SUPERBLOCK, 0, "map_entry_bytes", 2176, 1, 0 },
	{ HEADER, 0, "version", 8, 1, 0 },
	{ HEADER, 0, "type", 9, 1, 0 },
	{ HEADER, 0, "nr_entries", 10, 2, 0 },
	{ HEADER, 0, "nr_blocks", 12, 2, 0 },
	{ HEADER, 0, "seq", 16, 8, 0 },
	{ HEADER, 0, "durable_seq", 24, 8, 0 },
	{ HEADER, 0, "zone", 32, 4, 0 },
	{ HEADER, 0, "offset", 36, 4, 0 },
	{ HEADER, 0, "erase_count", 40, 4, 0 },
	{ HEADER, MTFTL_UNIT_DATA, "entry.lba", 64, 8, 16 },
	{ HEADER, MTFTL_UNIT_GC, "entry.lba", 64, 8, 16 },
	{ HEADER, MTFTL_UNIT_CKPT, "entry.lba", 64, 8, 16 },
	{ HEADER, MTFTL_UNIT_MAP, "entry.lba", 64, 8, 16 },
	{ HEADER, MTFTL_UNIT_FOOTER, "entry.lba", 64, 8, 16 },
	{ HEADER, MTFTL_UNIT_RANGES, "range.lba", 64, 8, 24 },
	{ HEADER, MTFTL_UNIT_RANGES, "range.seq", 72, 8, 24 },
	{ HEADER, MTFTL_UNIT_RANGES, "range.nr_blocks", 80, 4, 24 },
	{ HEADER, MTFTL_UNIT_RANGES, "range.kind", 84, 4, 24 },
	{ TAIL, 0, "version", 8, 1, 0 },
	{ TAIL, 0, "zone", 12, 4, 0 },
	{ TAIL, 0, "erase_count", 16, 4, 0 },
	{ TAIL, 0, "footer_offset", 20, 4, 0 },
	{ TAIL, 0, "footer_blocks", 24, 4, 0 },
	{ TAIL, 0, "nr_records", 28, 4, 0 },
	{ TAIL, 0, "min_seq", 32, 8, 0 },
	{ TAIL, 0, "max_seq", 40, 8, 0 },
	{ STREAM, MTFTL_UNIT_CKPT, "zone.erase_count", 0, 4, 32 },
	{ STREAM, MTFTL_UNIT_CKPT, "zone.wp", 4, 4, 32 },
	{ STREAM, MTFTL_UNIT_CKPT, "zone.first_seq", 8, 8, 32 },
	{ STREAM, MTFTL_UNIT_CKPT, "zone.flags", 16, 2, 32 },
	{ STREAM, MTFTL_UNIT_CKPT, "map", 0, 4, 4 },
	{ STREAM, MTFTL_UNIT_MAP, "map", 0, 4, 4 },
	{ STREAM, MTFTL_UNIT_CKPT, "place.at", 0, 4, 8 },
	{ STREAM, MTFTL_UNIT_CKPT, "place.crc", 4, 4, 8 },
	{ STREAM, MTFTL_UNIT_FOOTER, "record.seq", 0, 8, 0 },
	{ STREAM, MTFTL_UNIT_FOOTER, "record.offset", 8, 4, 0 },
	{ STREAM, MTFTL_UNIT_FOOTER, "record.type", 12, 1, 0 },
	{ STREAM, MTFTL_UNIT_FOOTER, "record.nr_entries", 14, 2, 0 },
	{ STREAM, MTFTL_UNIT_FOOTER, "record.lba", 16, 8, 8 },
	{ OOB, MTFTL_UNIT_DATA, "oob.lba", 0, 4, 0 },
	{ OOB, MTFTL_UNIT_GC, "oob.lba", 0, 4, 0 },
	{ OOB, 0, "oob.type", 8, 1, 0 },	/* and bits of the next one, which has 14 */
	{ OOB, 0, "oob.erase_count", 9, 1, 0 },
	{ OOB, MTFTL_UNIT_DATA, "oob.seq", 10, 6, 0 },
	{ OOB, MTFTL_UNIT_GC, "oob.seq", 10, 6, 0 },
};

/* Those of metadata are the last ones. */
static unsigned int nr_fields(const struct image *image)
{
	unsigned int nr = sizeof(fields) / sizeof(fields[0]);

	while (!image->meta_size && fields[nr - 1].class == OOB)
		nr--;
	return nr;
}

/* A block of a checkpoint's stream has zone records, or places of map blocks, or entries of the map. */
static bool has_field(const struct image *image, const struct target_block *target, const struct field *field)
{
	const struct mtftl_unit *unit = block_at(image, target->zone, target->header);
	const struct mtftl_entry *entries = (const void *)(unit + 1);
	uint32_t records = image->nr_zones * sizeof(struct mtftl_zone_record), first;
	const char *part = image->map_log ? "place." : "map";

	if (field->class != STREAM || unit->type != MTFTL_UNIT_CKPT)
		return true;
	first = le64_to_cpu(entries[target->block - target->header - 1].lba) * MTFTL_BLOCK_SIZE;
	if (first < records)
		part = "zone.";
	return !strncmp(field->name, part, strlen(part));
}

/* The one that counts of the superblock's; any other block of that kind. -1: there is none. */
static int target_of(const struct image *image, const struct field *field)
{
	unsigned int i, tried, best = image->nr_targets;
	uint64_t newest = 0;

	for (i = 0; field->class == SUPERBLOCK && i < image->nr_targets; i++) {
		const struct target_block *target = &image->targets[i];
		const struct mtftl_sb *sb = block_at(image, target->zone, target->block);

		if (target->class == SUPERBLOCK && le64_to_cpu(sb->generation) > newest) {
			newest = le64_to_cpu(sb->generation);
			best = i;
		}
	}
	if (field->class == SUPERBLOCK)
		return best < image->nr_targets ? (int)best : -1;
	i = pick(image->nr_targets);
	for (tried = 0; tried < image->nr_targets; tried++, i = (i + 1) % image->nr_targets) {
		const struct target_block *target = &image->targets[i];
		const struct mtftl_unit *unit = block_at(image, target->zone, target->header);
		unsigned int type = target->class == OOB ?
				    oob_type(oob_at(image, target->zone, target->block)) : unit->type;

		if (target->class == field->class && (!field->type || type == field->type) &&
		    has_field(image, target, field))
			return (int)i;
	}
	return -1;
}

/* False: no unit or block has this field. */
static bool craft(struct image *image, const struct field *field, unsigned int nth)
{
	static const uint64_t values[] = {
		~0ull, 0, 1, 0xfffffffe, 1ull << 31, 1ull << 63, 0xffff, 1ull << 61,
	};
	int index = target_of(image, field);
	uint64_t old = 0, value;
	unsigned char *block;
	uint32_t at;

	if (index < 0)
		return false;
	block = block_at(image, image->targets[index].zone, image->targets[index].block);
	if (field->class == OOB)
		block = (void *)oob_at(image, image->targets[index].zone, image->targets[index].block);
	at = field->at + (field->each && nth % 2 ? field->each * pick(8) : 0);
	memcpy(&old, block + at, field->size);
	value = nth % 3 == 2 ? old + 1 - pick(2) * 2 : values[nth % 8];
	if (!memcmp(&value, &old, field->size))
		value = old + 7;
	memcpy(block + at, &value, field->size);
	reseal(image, &image->targets[index]);
	return true;
}

/*
 * Does a kernel message since the last call name the field? For a field in a list its last word is
 * enough.
 */
static bool is_named(int messages, const char *name)
{
	const char *word = strrchr(name, '.') ? strrchr(name, '.') + 1 : name;
	static char line[8192];
	bool named = false;
	ssize_t got;

	while ((got = read(messages, line, sizeof(line) - 1)) > 0) {
		line[got] = 0;
		named |= strstr(line, "mtftl") && strstr(line, word);
	}
	return named;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* How long a mount takes; *@err: how it ended. */
static uint64_t timed_mount(struct device *dev, const struct tuning *tuning, int *err)
{
	uint64_t start = now_ns();

	*err = dev->ops->mount(dev, tuning);
	return now_ns() - start;
}

/*
 * A record without a checkpoint is legal. The longest log is the one that begins with the device.
 */
static void forget_checkpoint(struct image *image)
{
	int index = target_of(image, &fields[0]);
	struct mtftl_sb *sb = block_at(image, image->targets[index].zone, image->targets[index].block);

	sb->flags = 0;
	sb->ckpt_seq = 0;
	sb->ckpt_blocks = 0;
	sb->ckpt_nr_zones = 0;
	memset(sb->ckpt_zones, 0, sizeof(sb->ckpt_zones));
	sb->ckpt_unit_first = 0;
	sb->ckpt_unit_last = 0;
	sb->ckpt_seat = 0;
	sb->ckpt_offset = 0;
	reseal(image, &image->targets[index]);
}

/*
 * The longer of two mounts, of the image as it is and without its checkpoint; 0: they do not mount.
 */
static uint64_t longest_legal_mount(struct device *dev, struct image *image, const struct image *pristine,
				    const struct tuning *tuning)
{
	uint64_t longest = 0, took;
	int without, err;

	for (without = 0; without < 2; without++) {
		repair(image, pristine);
		if (without)
			forget_checkpoint(image);
		err = store(image);
		took = err ? 0 : timed_mount(dev, tuning, &err);
		if (err) {
			fprintf(stderr, "legal media do not mount: %s\n", strerror(-err));
			return 0;
		}
		dev->ops->unmount(dev);
		longest = took > longest ? took : longest;
	}
	return longest;
}

int crafted(struct device *dev, struct oracle *oracle, uint64_t seed, unsigned int rounds,
	    void (*enter)(const char *phase))
{
	static const struct tuning tuning = {
		.lanes = 2, .buffer_entries = 128, .write_unit = 8, .append = true,
	};
	unsigned int round, made = 0, mounted = 0, slow = 0, named = 0;
	int messages = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	void *data = aligned_alloc(MTFTL_BLOCK_SIZE, CHUNK * MTFTL_BLOCK_SIZE);
	struct image pristine = { 0 }, image = { 0 };
	uint64_t legal, longest = 0, took;
	int err = dev->flash ? load(&pristine, dev->flash) : -ENOTBLK;

	err = err ?: load(&image, dev->flash);
	if (err || !data) {
		fprintf(stderr, "no image to craft others from: %s\n", strerror(-err));
		return 2;
	}
	random_state = seed;
	enter("mount of legal media");
	legal = longest_legal_mount(dev, &image, &pristine, &tuning);
	if (!legal)
		return 2;
	for (round = 0; round < rounds; round++) {
		const struct field *field = &fields[round % nr_fields(&image)];

		enter("crafting media");
		repair(&image, &pristine);
		if (!craft(&image, field, round / nr_fields(&image)))
			continue;
		made++;
		err = store(&image);
		if (err) {
			fprintf(stderr, "cannot write the image: %s\n", strerror(-err));
			return 2;
		}
		enter("mount of crafted media");
		is_named(messages, "");
		took = timed_mount(dev, &tuning, &err);
		longest = took > longest ? took : longest;
		if (took > 2 * legal) {
			printf("VIOLATION image %u, %s: the mount takes %" PRIu64 " us, a legal one %" PRIu64 "\n",
			       round, field->name, took / 1000, legal / 1000);
			slow++;
		}
		if (err && is_named(messages, field->name))
			named++;
		else if (err)
			printf("  image %u is refused, and %s not named\n", round, field->name);
		if (err)
			continue;
		mounted++;
		enter("GC on crafted media");
		dev->ops->disturb(dev, DISTURB_GC, &tuning);
		read_all(dev, oracle, data);
		dev->ops->disturb(dev, DISTURB_CHECKPOINT, &tuning);
		enter("unmount of crafted media");
		dev->ops->unmount(dev);
	}
	printf("{\"seed\": %" PRIu64 ", \"crafted\": %u, \"mounted\": %u, \"refused\": %u, \"named\": %u, \"legal_us\": %"
	       PRIu64 ", \"longest_us\": %" PRIu64 ", \"violations\": %u}\n", seed, made, mounted,
	       made - mounted, named, legal / 1000, longest / 1000, slow);
	return slow != 0;
}

int fuzz(struct device *dev, struct oracle *oracle, uint64_t seed, unsigned int rounds,
	 void (*enter)(const char *phase))
{
	static const struct tuning tuning = {
		.lanes = 2, .buffer_entries = 128, .write_unit = 8, .append = true,
	};
	struct image pristine = { 0 }, image = { 0 };
	unsigned int round, i, mounted = 0, rebuilt = 0, crashed = 0, wrong = 0;
	void *data = aligned_alloc(MTFTL_BLOCK_SIZE, CHUNK * MTFTL_BLOCK_SIZE);
	int err = dev->flash ? load(&pristine, dev->flash) : -ENOTBLK;

	err = err ?: load(&image, dev->flash);
	if (err || !data) {
		fprintf(stderr, "no image to damage: %s\n", strerror(-err));
		return 2;
	}
	random_state = seed;
	for (round = 0; round < rounds && !wrong && !crashed; round++) {
		bool sealed = false, anew = false;

		enter("damage");
		repair(&image, &pristine);
		for (i = 1 + pick(3); i; i--)
			sealed |= damage(&image);
		err = store(&image);
		if (err) {
			fprintf(stderr, "cannot write the image: %s\n", strerror(-err));
			return 2;
		}
		enter("check of damaged media");
		crashed += has_crashed(round, dev->ops->check(dev));
		enter("mount of damaged media");
		if (!dev->ops->mount(dev, &tuning)) {
			mounted++;
		} else {
			enter("rebuild of damaged media");
			crashed += has_crashed(round, dev->ops->rebuild(dev));
			if (dev->ops->mount(dev, &tuning))
				continue;
			anew = true;
			rebuilt++;
		}
		enter("read of damaged media");
		i = read_all(dev, oracle, data);
		if (i && !sealed) {
			printf("VIOLATION round %u: %u blocks of %s media are not theirs\n",
			       round, i, anew ? "rebuilt" : "damaged");
			wrong++;
		}
		enter("unmount of damaged media");
		dev->ops->unmount(dev);
	}
	printf("{\"seed\": %" PRIu64 ", \"damaged\": %u, \"mounted\": %u, \"rebuilt\": %u, \"violations\": %u}\n",
	       seed, round, mounted, rebuilt, wrong + crashed);
	return wrong || crashed;
}
