// SPDX-License-Identifier: GPL-2.0
/*
 * Any image to the whole check, recovery included. Where recovery succeeds, no map
 * entry that check is content with may lie outside what is written.
 */
#include "check.h"
#include "fuzz.h"
#include "image.h"
#include "replay.h"
#include "super.h"

#define NR_BLOCKS	(IMAGE_ZONES * IMAGE_ZONE_BLOCKS)

struct sparse_block {
	const u8 *data;
	u32 size;
	bool torn;
};

struct sparse_image {
	struct flash flash;
	struct flash_zone zones[IMAGE_ZONES];
	struct sparse_block blocks[NR_BLOCKS];
};

static int sparse_read(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer)
{
	struct sparse_image *image = (struct sparse_image *)flash;
	const struct sparse_block *from = &image->blocks[flash_page(flash, zone, offset)];
	u8 *to = buffer;
	u32 i;

	fuzz_assert(zone < IMAGE_ZONES && nr > 0);
	fuzz_assert(offset + nr <= image->zones[zone].wp);
	for (i = 0; i < nr; i++, to += MTFTL_BLOCK_SIZE) {
		fuzz_block(to, from[i].data, from[i].size);
		if (from[i].torn)
			to[MTFTL_BLOCK_SIZE - 1] = FUZZ_TORN;
	}
	return 0;
}

static void load_image(struct sparse_image *image, const u8 *data, size_t size)
{
	static const u8 nothing[1];
	u32 i, zone, offset, length;

	image->flash = (struct flash) {
		.nr_zones = IMAGE_ZONES,
		.zone_blocks = IMAGE_ZONE_BLOCKS,
		.zone_capacity = IMAGE_CAPACITY,
		.zones = image->zones,
		.read = sparse_read,
	};
	for (i = 0; i < NR_BLOCKS; i++)
		image->blocks[i] = (struct sparse_block) { .data = nothing };
	for (i = 0; i < IMAGE_ZONES; i++, data += 2, size -= 2) {
		image->zones[i].cond = data[0] % (FLASH_OFFLINE + 1);
		image->zones[i].wp = data[1] % (IMAGE_CAPACITY + 1);
	}
	while (size >= 4) {
		zone = data[0] % IMAGE_ZONES;
		offset = data[1] % IMAGE_ZONE_BLOCKS;
		length = data[2] | data[3] << 8;
		data += 4;
		size -= 4;
		i = flash_page(&image->flash, zone, offset);
		image->blocks[i].torn = length & FUZZ_TEAR;
		length &= ~FUZZ_TEAR;
		if (length > size)
			length = size;
		image->blocks[i].data = data;
		image->blocks[i].size = length;
		data += length;
		size -= length;
	}
}

static void compare_with_recovery(struct sparse_image *image)
{
	struct report report = { .quiet = true };
	struct replay replay = { .flash = &image->flash, .report = &report };
	struct super super;
	u64 i;

	fuzz_assert(super_find(&image->flash, &super) == 0);
	replay.sb = &super.info;
	fuzz_assert(replay_run(&replay) == 0);
	for (i = 0; i < super.info.logical_blocks; i++) {
		u32 page = replay.map[i];

		if (page == MTFTL_MAP_UNMAPPED || page == MTFTL_MAP_LOST)
			continue;
		fuzz_assert(page < NR_BLOCKS);
		fuzz_assert(page % IMAGE_ZONE_BLOCKS < image->zones[page / IMAGE_ZONE_BLOCKS].wp);
	}
	replay_free(&replay);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct sparse_image image;
	struct report report = { .quiet = true };
	struct check_totals totals;

	if (size < 2 * IMAGE_ZONES)
		return 0;
	load_image(&image, data, size);
	if (!check_flash(&image.flash, &report, &totals) && !report.errors)
		compare_with_recovery(&image);
	return 0;
}
