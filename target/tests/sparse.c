// SPDX-License-Identifier: GPL-2.0
/* A device made of a fuzzer's input: see fuzz.h. */
#include "fuzz.h"
#include "sparse.h"

void sparse_load(struct sparse_image *image, const u8 *data, size_t size)
{
	static const u8 nothing[1];
	u32 i, zone, offset, length;
	bool has_oob;

	image->flash = (struct flash) {
		.nr_zones = IMAGE_ZONES,
		.zone_blocks = IMAGE_ZONE_BLOCKS,
		.zone_capacity = IMAGE_CAPACITY,
		.zones = image->zones,
		.read = sparse_read,
		.read_oob = sparse_read_oob,
	};
	memset(image->blocks, 0, sizeof(image->blocks));
	for (i = 0; i < SPARSE_BLOCKS; i++)
		image->blocks[i].data = nothing;
	for (i = 0; i < IMAGE_ZONES; i++, data += 2, size -= 2) {
		image->zones[i].cond = data[0] % (FLASH_OFFLINE + 1);
		image->zones[i].wp = data[1] % (IMAGE_CAPACITY + 1);
		/* As a drive's zones are seen: there it has no write pointer. */
		if (image->zones[i].cond == FLASH_FULL || image->zones[i].cond == FLASH_READONLY)
			image->zones[i].wp = IMAGE_CAPACITY;
	}
	while (size >= 4) {
		zone = data[0] % IMAGE_ZONES;
		offset = data[1] % IMAGE_ZONE_BLOCKS;
		length = data[2] | data[3] << 8;
		data += 4;
		size -= 4;
		i = flash_page(&image->flash, zone, offset);
		image->blocks[i].torn = length & FUZZ_TEAR;
		has_oob = length & FUZZ_OOB;
		length &= ~(FUZZ_TEAR | FUZZ_OOB);
		if (length > size)
			length = size;
		if (has_oob && length >= sizeof(image->blocks[i].oob)) {
			memcpy(&image->blocks[i].oob, data, sizeof(image->blocks[i].oob));
			data += sizeof(image->blocks[i].oob);
			size -= sizeof(image->blocks[i].oob);
			length -= sizeof(image->blocks[i].oob);
		}
		image->blocks[i].data = data;
		image->blocks[i].size = length;
		data += length;
		size -= length;
	}
}

int sparse_read(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer)
{
	struct sparse_image *image = (struct sparse_image *)flash;
	u8 *to = buffer;
	u32 i;

	fuzz_assert(zone < IMAGE_ZONES && nr > 0);
	fuzz_assert(offset + nr <= image->zones[zone].wp);
	for (i = 0; i < nr; i++, to += MTFTL_BLOCK_SIZE)
		sparse_block(image, flash_page(flash, zone, offset + i), to);
	return 0;
}

int sparse_read_oob(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer,
		    struct mtftl_oob *oob)
{
	struct sparse_image *image = (struct sparse_image *)flash;
	u32 i;

	for (i = 0; i < nr; i++)
		oob[i] = image->blocks[flash_page(flash, zone, offset + i)].oob;
	return sparse_read(flash, zone, offset, nr, buffer);
}

/* One block, as it was given, zeroes following. */
void sparse_block(const struct sparse_image *image, u32 page, u8 *block)
{
	fuzz_block(block, image->blocks[page].data, image->blocks[page].size);
	if (image->blocks[page].torn)
		block[MTFTL_BLOCK_SIZE - 1] = FUZZ_TORN;
}
