/* SPDX-License-Identifier: GPL-2.0 */
/* The fuzzers' image of a whole device, made of their input: see fuzz.h. */
#ifndef MTFTL_TESTS_SPARSE_H
#define MTFTL_TESTS_SPARSE_H

#include "flash.h"
#include "image.h"

#define SPARSE_BLOCKS	(IMAGE_ZONES * IMAGE_ZONE_BLOCKS)

struct sparse_image {
	struct flash flash;		/* but for read */
	struct flash_zone zones[IMAGE_ZONES];
	struct {
		const u8 *data;
		u32 size;
		bool torn;
		struct mtftl_oob oob;
	} blocks[SPARSE_BLOCKS];
};

void sparse_load(struct sparse_image *image, const u8 *data, size_t size);
/* For recovery and check: as struct flash has it. */
int sparse_read(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer);
int sparse_read_oob(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer,
		    struct mtftl_oob *oob);
void sparse_block(const struct sparse_image *image, u32 page, u8 *block);

#endif
