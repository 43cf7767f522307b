// SPDX-License-Identifier: GPL-2.0
/* A device made of a fuzzer's input: see fuzz.h. */
#include "fuzz.h"
#include "sparse.h"

void sparse_load(struct sparse_image *image, const u8 *data, size_t size)
{
	static const u8 nothing[1];
	u32 i, zone, offset, length;

	image->flash = (struct flash) {
		.nr_zones = IMAGE_ZONES,
		.zone_blocks = IMAGE_ZONE_BLOCKS,
		.zone_capacity = IMAGE_CAPACITY,
		.zones = image->zones,
	};
	memset(image->blocks, 0, sizeof(image->blocks));
	for (i = 0; i < SPARSE_BLOCKS; i++)
		image->blocks[i].data = nothing;
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

/* One block, as it was given, zeroes following. */
void sparse_block(const struct sparse_image *image, u32 page, u8 *block)
{
	fuzz_block(block, image->blocks[page].data, image->blocks[page].size);
	if (image->blocks[page].torn)
		block[MTFTL_BLOCK_SIZE - 1] = FUZZ_TORN;
}
