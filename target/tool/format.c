// SPDX-License-Identifier: GPL-2.0
/* mtftl format: an empty device of ours, once the user knows what that erases. */
#include <blkid/blkid.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "device.h"
#include "format/maplog.h"
#include "mtftl.h"
#include "super.h"

#define DEFAULT_OP_PERMILLE	250
#define MIN_OP_PERMILLE		10
#define MAX_OP_PERMILLE		900
#define UNIT_BLOCKS		32u	/* for which mtftl_logical_blocks() counts a header */
#define ALIGN_BLOCKS		256u	/* 1 MiB */

static u32 parse_op(const char *text)
{
	char *end;
	double percent = strtod(text, &end);
	long permille;

	if (*end == '%')
		end++;
	permille = *text && !*end && isfinite(percent) ? lround(percent * 10) : -1;
	if (permille < MIN_OP_PERMILLE || permille > MAX_OP_PERMILLE)
		fail(EXIT_USAGE, "--op %s: expected a percentage from %u to %u", text,
		     MIN_OP_PERMILLE / 10, MAX_OP_PERMILLE / 10);
	return permille;
}

/* What libblkid finds, in words; false if it finds nothing. */
static bool find_signature(const char *path, char *found, size_t size)
{
	const char *type = "unknown";
	blkid_probe probe;
	int fd, nr;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	probe = blkid_new_probe();
	if (fd < 0 || !probe || blkid_probe_set_device(probe, fd, 0, 0))
		fail(EXIT_FAILED, "%s: cannot look for signatures: %s", path, strerror(errno));
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE);
	blkid_probe_enable_partitions(probe, 1);
	nr = blkid_do_safeprobe(probe);
	if (nr == 0 && blkid_probe_lookup_value(probe, "TYPE", &type, NULL))
		blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL);
	if (nr == 0)
		snprintf(found, size, "a signature of %s", type);
	else if (nr == -2)
		snprintf(found, size, "several signatures");
	else if (nr < 0)
		snprintf(found, size, "what cannot be searched for signatures");
	blkid_free_probe(probe);
	close(fd);
	return nr != 1;
}

/* A device of ours, of whatever version; false if there is none. */
static bool find_ours(struct device *device, char *found, size_t size)
{
	char uuid[UUID_STR_LEN];
	struct super super;
	int err = super_find(&device->flash, &super);

	if (err == -ENODATA || err == -ENXIO)
		return false;
	if (err && err != -ESTALE && err != -EOPNOTSUPP) {
		snprintf(found, size, "%s", super_error(err));
		return true;
	}
	uuid_unparse(super.info.uuid, uuid);
	snprintf(found, size, "the mtftl device %s", uuid);
	return true;
}

/* If any zone is written, the user must know what will be lost. */
static void ask_before_loss(struct device *device)
{
	char found[256] = "data without a known signature";
	u32 nr = device->flash.nr_zones;

	if (!find_ours(device, found, sizeof(found)) &&
	    !find_signature(device->path, found, sizeof(found)) && !device->nr_written)
		return;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		fail(EXIT_FAILED, "%s: holds %s, %u of %u zones are written; --force erases it",
		     device->path, found, device->nr_written, nr);
	fprintf(stderr, "WARNING: %s holds %s, %u of %u zones are written.\n"
		"This erases all of it, irrevocably.\n", device->path, found, device->nr_written,
		nr);
	if (!is_confirmed())
		fail(EXIT_FAILED, "%s: not confirmed with YES, nothing is changed", device->path);
}

static u32 usable_zones(struct device *device)
{
	u32 i, nr = 0;

	for (i = 0; i < device->flash.nr_zones; i++) {
		enum flash_cond cond = device->flash.zones[i].cond;

		if (cond != FLASH_READONLY && cond != FLASH_OFFLINE)
			nr++;
		else if (i < MTFTL_NR_SB_ZONES)
			fail(EXIT_FAILED, "%s: zone %u is %s, expected a writable one for superblocks;"
			     " format a dm-linear that begins behind it", device->path, device->first_zone + i,
			     cond == FLASH_OFFLINE ? "offline" : "read-only");
	}
	return nr;
}

/* If the drive takes short writes only, there are more headers. A few more are what spare is for. */
static u64 without_headers(const struct device *device, u64 blocks, bool oob)
{
	u64 payload = device->write_blocks - 1, fewer;

	if (device->write_blocks < 2)
		fail(EXIT_FAILED, "%s: takes %u bytes in one write, expected %u or more", device->path,
		     device->write_blocks * MTFTL_BLOCK_SIZE, 2 * MTFTL_BLOCK_SIZE);
	if (oob || payload >= UNIT_BLOCKS / 2)
		return blocks;
	fewer = blocks * (UNIT_BLOCKS + 1) / UNIT_BLOCKS * payload / (payload + 1);
	return fewer < ALIGN_BLOCKS ? fewer : fewer & ~(u64)(ALIGN_BLOCKS - 1);
}

static u64 exported_blocks(struct device *device, u32 op_permille, bool oob)
{
	u32 capacity = device->flash.zone_capacity, nr = usable_zones(device), enough;
	u64 blocks = mtftl_logical_blocks(nr, capacity, op_permille, oob);

	if (blocks)
		return without_headers(device, blocks, oob);
	for (enough = nr; enough < nr + 64; enough++)
		if (mtftl_logical_blocks(enough, capacity, op_permille, oob))
			fail(EXIT_FAILED, "%s: %u usable zones, expected %u or more", device->path,
			     nr, enough);
	fail(EXIT_FAILED, "%s: zones of %u blocks are too small for a device of %u zones",
	     device->path, capacity, nr);
}

enum headers { HEADERS_AUTO, HEADERS_BLOCKS, HEADERS_METADATA };

static enum headers parse_headers(const char *text)
{
	static const char *const names[] = { "auto", "blocks", "metadata" };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(text, names[i]))
			return i;
	fail(EXIT_USAGE, "--headers %s: expected auto, blocks or metadata", text);
}

/* Where units of data have their headers: in metadata, if there is enough. */
static bool choose_headers(const struct device *device, enum headers headers)
{
	if (headers == HEADERS_AUTO)
		return device_takes_headers(device);
	if (headers == HEADERS_METADATA && !device->flash.read_oob)
		fail(EXIT_FAILED, "%s: %u bytes of metadata a block, expected %zu to %u, apart from "
		     "blocks of %u bytes", device->path, device->meta_size,
		     sizeof(struct mtftl_oob), MTFTL_META_MAX, MTFTL_BLOCK_SIZE);
	return headers == HEADERS_METADATA;
}

/* Unless its zones are too small for one. */
static bool takes_map_log(const struct mtftl_sb_info *sb)
{
	struct mtftl_log_shape shape;

	mtftl_log_shape(&shape, sb->nr_zones, sb->zone_capacity, sb->logical_blocks);
	return mtftl_log_fits(&shape);
}

/* The path of the device; NULL: a word is wrong, and getopt has said so. */
static const char *parse_words(int argc, char **argv, struct mtftl_sb_info *sb,
			       enum headers *headers, bool *force)
{
	static const struct option options[] = {
		{ "op", required_argument, NULL, 'o' },
		{ "force", no_argument, NULL, 'f' },
		{ "uuid", required_argument, NULL, 'u' },
		{ "headers", required_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'o')
			sb->op_permille = parse_op(optarg);
		else if (c == 'f')
			*force = true;
		else if (c == 'u' && uuid_parse(optarg, sb->uuid))
			fail(EXIT_USAGE, "--uuid %s: expected a UUID", optarg);
		else if (c == 'h')
			*headers = parse_headers(optarg);
		else if (c == '?')
			return NULL;
	}
	if (argc - optind != 1)
		fail(EXIT_USAGE, "format: %d devices given, expected one", argc - optind);
	return argv[optind];
}

int cmd_format(int argc, char **argv)
{
	struct mtftl_sb_info sb = {
		.flags = MTFTL_SB_CLEAN,
		.generation = 1,
		.op_permille = DEFAULT_OP_PERMILLE,
	};
	char uuid[UUID_STR_LEN];
	struct device *device;
	enum headers headers = HEADERS_AUTO;
	bool force = false;
	const char *path;
	void *block;

	uuid_generate_random(sb.uuid);
	path = parse_words(argc, argv, &sb, &headers, &force);
	if (!path)
		return EXIT_USAGE;
	if (getrandom(&sb.key, sizeof(sb.key), 0) != sizeof(sb.key))
		fail(EXIT_FAILED, "no random key: %s", strerror(errno));

	device = device_open(path, DEVICE_WRITE);
	sb.nr_zones = device->flash.nr_zones;
	sb.zone_blocks = device->flash.zone_blocks;
	sb.zone_capacity = device->flash.zone_capacity;
	sb.oob = choose_headers(device, headers);
	sb.logical_blocks = exported_blocks(device, sb.op_permille, sb.oob);
	sb.map_log = takes_map_log(&sb);
	if (!force)
		ask_before_loss(device);

	/* Superblocks go first: an interrupted format leaves no device of ours. */
	device_reset(device, 0, MTFTL_NR_SB_ZONES, "superblocks");
	device_reset_all(device, "resetting zones");
	block = xalloc_blocks(1);
	mtftl_sb_compose(block, &sb);
	device_write_first(device, 0, block);
	free(block);

	uuid_unparse(sb.uuid, uuid);
	printf("%s: %" PRIu64 " MiB of %" PRIu64 " MiB, over-provisioning %u.%u%%, UUID %s%s\n",
	       device->path, sb.logical_blocks >> 8, ((u64)sb.nr_zones * sb.zone_capacity) >> 8,
	       sb.op_permille / 10, sb.op_permille % 10, uuid,
	       sb.oob ? ", headers in metadata" : "");
	if (device->left_alone)
		printf("%s: %u zones are left alone: conventional, smaller, or apart from the others\n",
		       device->path, device->left_alone);
	device_close(device);
	return EXIT_OK;
}
