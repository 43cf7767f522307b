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

static void save_image_for(const char *folder, const char *fuzzer, const char *name,
			   struct image *image)
{
	FILE *file = create(folder, fuzzer, name);
	u32 zone, offset;

	for (zone = 0; zone < IMAGE_ZONES; zone++) {
		fputc(image->flash.zones[zone].cond, file);
		fputc(image->flash.zones[zone].wp, file);
	}
	for (zone = 0; zone < IMAGE_ZONES; zone++) {
		for (offset = 0; offset < image->flash.zones[zone].wp; offset++) {
			const u8 *block = image_block(image, zone, offset);
			const struct mtftl_oob *oob = image->oob + flash_page(&image->flash, zone, offset);
			size_t used = used_bytes(block), length;

			if (!used && !oob->tag)
				continue;
			length = oob->tag ? FUZZ_OOB | (sizeof(*oob) + used) : used;
			fputc(zone, file);
			fputc(offset, file);
			fputc(length & 0xff, file);
			fputc(length >> 8, file);
			fwrite(oob, 1, oob->tag ? sizeof(*oob) : 0, file);
			fwrite(block, 1, used, file);
		}
	}
	fclose(file);
}

/* Two fuzzers read images: the tool's recovery and the module's. */
static void save_image(const char *folder, const char *name, struct image *image)
{
	save_image_for(folder, "image", name, image);
	save_image_for(folder, "recover", name, image);
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
	save_image(folder, "footer-short", image);
}

int main(int argc, char **argv)
{
	/* Payload stays zero, so that an image is small. */
	const u64 lbas[] = { 5, 9, 200 };
	const u16 contents[] = { 0, 0, 0 };
	u32 map[IMAGE_LOGICAL];
	struct image *image;
	const char *folder;

	if (argc != 2)
		fail(EXIT_USAGE, "fuzz_seeds: expected a folder");
	folder = argv[1];
	if (mkdir(folder, 0777) && errno != EEXIST)
		fail(EXIT_FAILED, "%s: %s", folder, strerror(errno));
	image = image_new();
	image_write_super(image, MTFTL_SB_CLEAN);
	save_image(folder, "formatted", image);
	image_write_super(image, 0);
	save_block(folder, "super", "formatted", image_block(image, 0, 0));

	image_write_unit(image, 3, MTFTL_UNIT_DATA, 3, 3, lbas, contents);
	image_write_range(image, 3, 5, 9, 1, 4, MTFTL_RANGE_TRIM);
	image_write_unit(image, 4, MTFTL_UNIT_GC, 6, 2, lbas, contents);
	image_write_unit(image, 5, MTFTL_UNIT_GC, 6, 2, lbas, contents);
	save_image(folder, "units", image);
	save_block(folder, "unit", "data", image_block(image, 3, 0));
	save_block(folder, "unit", "ranges", image_block(image, 3, 4));

	image_write_footer(image, 3, 0);
	save_image(folder, "footer", image);
	{
		FILE *file = create(folder, "tail", "footer");

		fwrite(image_block(image, 3, IMAGE_CAPACITY - 1), 1, 64, file);
		fwrite(image_block(image, 3, 6), 1, used_bytes(image_block(image, 3, 6)), file);
		fclose(file);
	}

	memset(map, 0xff, sizeof(map));
	map[5] = flash_page(&image->flash, 4, 1);
	map[9] = flash_page(&image->flash, 4, 2);
	map[200] = flash_page(&image->flash, 3, 3);
	image_write_checkpoint(image, 2, 10, map, 0);
	image_write_unit(image, 6, MTFTL_UNIT_DATA, 12, 1, lbas, contents);
	save_image(folder, "checkpoint", image);
	save_block(folder, "super", "checkpoint", image_block(image, 0, 2));
	short_footer(folder, image);
	image_free(image);

	image = image_new();
	image->sb.oob = true;
	image_write_super(image, 0);
	image_write_unit(image, 3, MTFTL_UNIT_DATA, 3, 3, lbas, contents);
	image_write_range(image, 3, 5, 9, 1, 4, MTFTL_RANGE_TRIM);
	image_write_unit(image, 3, MTFTL_UNIT_GC, 6, 2, lbas, contents);
	image_write_footer(image, 3, 0);
	image_write_unit(image, 4, MTFTL_UNIT_GC, 6, 2, lbas, contents);
	save_image(folder, "metadata", image);
	save_block(folder, "unit", "metadata", (const u8 *)&image->oob[3 * IMAGE_ZONE_BLOCKS]);
	image_free(image);
	return 0;
}
