// SPDX-License-Identifier: GPL-2.0
/* Writes the fuzzers' first inputs below a folder: blocks and images as they should be. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "image.h"
#include "mtftl.h"

static FILE *create(const char *folder, const char *fuzzer, const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, fuzzer);
	if (mkdir(path, 0777) && errno != EEXIST)
		fail(EXIT_FAILED, "%s: %s", path, strerror(errno));
	snprintf(path, sizeof(path), "%s/%s/%s", folder, fuzzer, name);
	file = fopen(path, "wb");
	if (!file)
		fail(EXIT_FAILED, "%s: %s", path, strerror(errno));
	return file;
}

static size_t used_bytes(const u8 *block)
{
	size_t used = MTFTL_BLOCK_SIZE;

	while (used > 0 && block[used - 1] == 0)
		used--;
	return used;
}

static void save_block(const char *folder, const char *fuzzer, const char *name, const u8 *block)
{
	FILE *file = create(folder, fuzzer, name);

	fwrite(block, 1, used_bytes(block), file);
	fclose(file);
}


/* Writing images */

static void put_record(FILE *file, enum fuzz_kind kind, u32 zone, u32 at, u8 extra, u32 length)
{
	struct fuzz_record record = {
		.kind = kind | zone >> 8 << 2, .zone = zone, .at = { at, at >> 8, at >> 16 },
		.extra = extra, .length = { length, length >> 8 },
	};

	fwrite(&record, sizeof(record), 1, file);
}

static void put_geometry(FILE *file, const struct image *image, u8 flags)
{
	u32 capacity = image->flash.zone_capacity, zones = image->flash.nr_zones - FUZZ_MIN_ZONES, least = 4;
	struct fuzz_geometry geometry = {
		.capacity = { capacity, capacity >> 8, capacity >> 16 },
		.zones = { zones, zones >> 8 }, .flags = flags,
		.meta = image->sb.oob ? sizeof(struct mtftl_oob) / 8 : 0,
	};

	while (least < capacity)
		least *= 2;
	if (image->flash.zone_blocks > least)
		geometry.flags |= FUZZ_GEO_HOLE;
	if (image->sb.oob)
		geometry.flags |= FUZZ_GEO_OOB;
	fwrite(&geometry, sizeof(geometry), 1, file);
}

static bool is_padding(const u8 *block)
{
	const struct mtftl_unit *unit = (const struct mtftl_unit *)block;

	return le32_to_cpu(unit->magic) == MTFTL_UNIT_MAGIC && unit->type == MTFTL_UNIT_FOOTER &&
	       !unit->nr_entries && le16_to_cpu(unit->nr_blocks) == IMAGE_STREAM_UNIT;
}

/* Padding up to the zone's end: its units are equal, so one record describes all of them. */
static void put_padding(FILE *file, u32 zone, u32 at, const u8 *block)
{
	_Alignas(8) u8 copy[MTFTL_BLOCK_SIZE];
	struct mtftl_unit *unit = (struct mtftl_unit *)copy;

	memcpy(copy, block, sizeof(copy));
	unit->offset = cpu_to_le32(MTFTL_ANY_OFFSET);
	put_record(file, FUZZ_FILL, zone, at, IMAGE_STREAM_UNIT, used_bytes(copy));
	fwrite(copy, 1, used_bytes(copy), file);
}

/* How many blocks from here on hold the same. */
static u32 blocks_alike(struct image *image, u32 zone, u32 offset)
{
	const u8 *block = image_block(image, zone, offset);
	u32 left = image->flash.zones[zone].wp - offset, n = 0;

	while (n + 1 < left && n < 255 &&
	       !memcmp(block, image_block(image, zone, offset + n + 1), MTFTL_BLOCK_SIZE))
		n++;
	return n;
}

static void put_zone(FILE *file, struct image *image, u32 zone)
{
	const struct flash_zone *state = &image->flash.zones[zone];
	bool padded = false;
	u32 offset, alike;

	if (state->cond != FLASH_EMPTY)
		put_record(file, FUZZ_ZONE, zone, state->wp, state->cond, 0);
	for (offset = 0; offset < state->wp; offset++) {
		const u8 *block = image_block(image, zone, offset);
		const struct mtftl_oob *oob = image->oob + flash_page(&image->flash, zone, offset);
		size_t used = used_bytes(block);

		if (is_padding(block)) {
			if (!padded)
				put_padding(file, zone, offset, block);
			padded = true;
			continue;
		}
		if (!used && !oob->tag)
			continue;
		alike = oob->tag ? 0 : blocks_alike(image, zone, offset);
		put_record(file, alike ? FUZZ_COUNT : FUZZ_BLOCK, zone, offset, alike,
			   oob->tag ? FUZZ_OOB | (sizeof(*oob) + used) : used);
		offset += alike;
		fwrite(oob, 1, oob->tag ? sizeof(*oob) : 0, file);
		fwrite(block, 1, used, file);
	}
}

static void save_zones(const char *folder, const char *fuzzer, const char *name, struct image *image,
		       u8 flags, u32 first, u32 nr)
{
	FILE *file = create(folder, fuzzer, name);
	u32 zone;

	put_geometry(file, image, flags);
	for (zone = first; zone < first + nr; zone++)
		put_zone(file, image, zone);
	fclose(file);
}

/* The tool reads images, and so does the module's recovery. */
static void save_image(const char *folder, const char *name, struct image *image, u8 flags)
{
	save_zones(folder, "image", name, image, flags, 0, image->flash.nr_zones);
	save_zones(folder, "recover", name, image, flags, 0, image->flash.nr_zones);
}

/* Blocks */

#define PLACE_ZONE	3	/* the zone where fuzz_unit and fuzz_tail take their block to be from */

static FILE *create_unit(const char *folder, const char *name, u32 capacity, u32 offset, u8 stride, u8 nr)
{
	const u8 place[] = { capacity, capacity >> 8, capacity >> 16, offset, offset >> 8, offset >> 16,
			     (stride - sizeof(struct mtftl_oob)) / 8, nr - 1 };
	FILE *file = create(folder, "unit", name);

	fwrite(place, 1, sizeof(place), file);
	return file;
}

static void save_unit(const char *folder, const char *name, struct image *image, u32 zone, u32 offset)
{
	FILE *file = create_unit(folder, name, image->flash.zone_capacity, offset,
				 sizeof(struct mtftl_oob), 3);
	_Alignas(8) u8 block[MTFTL_BLOCK_SIZE];

	memcpy(block, image_block(image, zone, offset), sizeof(block));
	((struct mtftl_unit *)block)->zone = cpu_to_le32(PLACE_ZONE);
	if (image->sb.oob)
		fwrite(image->oob + flash_page(&image->flash, zone, offset),
		       sizeof(struct mtftl_oob), 3, file);
	fwrite(block, 1, used_bytes(block), file);
	fclose(file);
}

static void save_tail(const char *folder, const char *name, struct image *image, u32 zone)
{
	u32 capacity = image->flash.zone_capacity;
	const u8 place[] = { capacity, capacity >> 8, capacity >> 16, image->sb.oob };
	struct mtftl_tail tail = *(const struct mtftl_tail *)image_block(image, zone, capacity - 1);
	u32 offset = le32_to_cpu(tail.footer_offset);
	FILE *file = create(folder, "tail", name);

	tail.zone = cpu_to_le32(PLACE_ZONE);
	fwrite(place, 1, sizeof(place), file);
	fwrite(&tail, 1, 64, file);
	fwrite(image_block(image, zone, offset + 1), 1,
	       used_bytes(image_block(image, zone, offset + 1)), file);
	fclose(file);
}

/* The stream's only unit ends with the zone, and not all of the stream was in it. */
static void short_footer(const char *folder, struct image *image)
{
	const u32 at = IMAGE_CAPACITY - 10;
	struct mtftl_unit *unit = (struct mtftl_unit *)image_block(image, 5, at);
	struct mtftl_tail *tail = (struct mtftl_tail *)image_block(image, 5, IMAGE_CAPACITY - 1);

	image_write_footer(image, 5, 0);
	memcpy(unit, image_block(image, 5, le32_to_cpu(tail->footer_offset)), MTFTL_BLOCK_SIZE);
	unit->nr_blocks = cpu_to_le16(9);
	unit->offset = cpu_to_le32(MTFTL_ANY_OFFSET);
	tail->footer_offset = cpu_to_le32(at);
	tail->footer_blocks = cpu_to_le32(2);
	save_image(folder, "footer-short", image, 0);
	save_zones(folder, "walk", "footer-short", image, 0, 5, 1);
}

/* All blocks of the stream's units have an entry, though the stream itself is shorter. */
static void list_padding(struct image *image, u32 zone)
{
	const struct mtftl_tail *tail = (const struct mtftl_tail *)
		image_block(image, zone, image->flash.zone_capacity - 1);
	struct mtftl_unit *unit = (struct mtftl_unit *)
		image_block(image, zone, le32_to_cpu(tail->footer_offset));
	u32 i;

	for (i = le16_to_cpu(unit->nr_entries); i < le16_to_cpu(unit->nr_blocks); i++)
		mtftl_unit_add_entry(unit, i, 0);
}

/* What is written to a device of any geometry; payload stays zero, so that an image is small. */
static void save_geometry(const char *folder, const char *name, u32 nr_zones, u32 capacity, u8 flags,
			  bool oob)
{
	u32 zone_blocks = 4, ckpt, first, at;
	u64 logical = mtftl_logical_blocks(nr_zones, capacity, 0, oob), i;
	const u16 contents[3] = { 0 };
	u64 lbas[3] = { 0 };
	struct image *image;
	char path[64];
	u32 *map;

	while (zone_blocks < capacity)
		zone_blocks *= 2;
	if (flags & FUZZ_GEO_HOLE)
		zone_blocks *= 2;
	if (logical > 1u << 15)
		logical = 1u << 15;
	if (!logical)
		fail(EXIT_FAILED, "%s: there is no such device", name);
	lbas[1] = logical / 2;
	lbas[2] = logical - 1;
	ckpt = mtftl_ckpt_zones(nr_zones, capacity, logical);
	first = MTFTL_NR_SB_ZONES + 2 * ckpt;
	image = image_new_of(nr_zones, zone_blocks, capacity, logical);
	image->sb.oob = oob;
	image_write_super(image, 0);
	image_write_unit(image, first, MTFTL_UNIT_DATA, 3, logical > 2 ? 3 : 1, lbas, contents);
	save_unit(folder, name, image, first, 0);
	if (capacity > 8) {
		image_write_range(image, first, 5, lbas[2], 1, 4, MTFTL_RANGE_TRIM);
		image_write_unit(image, first + 1, MTFTL_UNIT_GC, 6, 1, lbas, contents);
	}
	image_write_footer(image, first, 0);
	save_tail(folder, name, image, first);
	save_image(folder, name, image, flags);
	save_zones(folder, "walk", name, image, flags, first, 1);
	list_padding(image, first);
	snprintf(path, sizeof(path), "%s-listed", name);
	save_image(folder, path, image, flags);
	save_zones(folder, "walk", path, image, flags, first, 1);

	map = xalloc(logical, sizeof(*map));
	for (i = 0; i < logical; i++)
		map[i] = MTFTL_MAP_UNMAPPED;
	map[0] = flash_page(&image->flash, first, !oob);
	image->seq = 10;
	image_write_checkpoint(image, MTFTL_NR_SB_ZONES, 10, map, 0);
	at = first + 2;
	if (at < nr_zones)
		image_write_unit(image, at, MTFTL_UNIT_DATA, image->seq + 1, 1, lbas, contents);
	snprintf(path, sizeof(path), "%s-checkpoint", name);
	save_image(folder, path, image, flags);
	save_block(folder, "super", path, image_block(image, 0, 1));
	if (image_write_map_log(image, image->seq, map, 0)) {
		snprintf(path, sizeof(path), "%s-log", name);
		save_image(folder, path, image, flags);
		save_block(folder, "super", path, image_block(image, 0, 2));
	}
	free(map);
	image_free(image);
}

static const struct {
	const char *name;
	u32 nr_zones, capacity;
	u8 flags;
} geometries[] = {
	{ "least",	9,	8,	0 },
	{ "small",	16,	16,	0 },
	{ "many",	1000,	9,	FUZZ_GEO_512 },
	{ "page",	12,	257,	FUZZ_GEO_HOLE },
	{ "middle",	40,	1536,	FUZZ_GEO_512 },
	{ "large",	10,	65537,	0 },
	{ "largest",	11,	FUZZ_MAX_CAPACITY, 0 },
};

int main(int argc, char **argv)
{
	/* Payload stays zero, so that an image is small. */
	const u64 lbas[] = { 5, 9, 200 };
	const u16 contents[] = { 0, 0, 0 };
	u32 map[IMAGE_LOGICAL], i;
	struct image *image;
	const char *folder;
	char name[64];

	if (argc != 2)
		fail(EXIT_USAGE, "fuzz_seeds: expected a folder");
	folder = argv[1];
	if (mkdir(folder, 0777) && errno != EEXIST)
		fail(EXIT_FAILED, "%s: %s", folder, strerror(errno));
	image = image_new();
	image_write_super(image, MTFTL_SB_CLEAN);
	save_image(folder, "formatted", image, 0);
	image_write_super(image, 0);
	save_block(folder, "super", "formatted", image_block(image, 0, 0));

	image_write_unit(image, 3, MTFTL_UNIT_DATA, 3, 3, lbas, contents);
	image_write_range(image, 3, 5, 9, 1, 4, MTFTL_RANGE_TRIM);
	image_write_unit(image, 4, MTFTL_UNIT_GC, 6, 2, lbas, contents);
	image_write_unit(image, 5, MTFTL_UNIT_GC, 6, 2, lbas, contents);
	save_image(folder, "units", image, 0);
	save_unit(folder, "data", image, 3, 0);
	save_unit(folder, "ranges", image, 3, 4);
	image_write_footer(image, 3, 0);
	save_image(folder, "footer", image, 0);
	save_tail(folder, "footer", image, 3);

	memset(map, 0xff, sizeof(map));
	map[5] = flash_page(&image->flash, 4, 1);
	map[9] = flash_page(&image->flash, 4, 2);
	map[200] = flash_page(&image->flash, 3, 3);
	image_write_checkpoint(image, 2, 10, map, 0);
	image_write_unit(image, 6, MTFTL_UNIT_DATA, 12, 1, lbas, contents);
	save_image(folder, "checkpoint", image, 0);
	image_write_map_log(image, 12, map, 0);
	save_image(folder, "log", image, 0);
	short_footer(folder, image);
	image_free(image);

	for (i = 0; i < ARRAY_SIZE(geometries); i++) {
		save_geometry(folder, geometries[i].name, geometries[i].nr_zones, geometries[i].capacity,
			      geometries[i].flags, false);
		/* Device blocks of 512 bytes have no metadata that we can use. */
		snprintf(name, sizeof(name), "%s-oob", geometries[i].name);
		if (i)
			save_geometry(folder, name, geometries[i].nr_zones, geometries[i].capacity,
				      geometries[i].flags & ~FUZZ_GEO_512, true);
	}
	return 0;
}
