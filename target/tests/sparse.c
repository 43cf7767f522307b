// SPDX-License-Identifier: GPL-2.0
/* A device made of a fuzzer's input: see sparse.h. */
#include <errno.h>

#include "sparse.h"

#define NR_BUCKETS	(sizeof(((struct sparse_image *)0)->buckets) / sizeof(u32))

static u32 bucket_of(u32 page)
{
	return (page * 0x9e3779b1u >> 20) % NR_BUCKETS;
}

static const struct sparse_block *find(const struct sparse_image *image, u32 page)
{
	u32 zone = page / image->flash.zone_blocks, offset = page % image->flash.zone_blocks, i;

	for (i = image->buckets[bucket_of(page)]; i; i = image->blocks[i - 1].next)
		if (image->blocks[i - 1].page == page)
			return &image->blocks[i - 1];
	for (i = 0; i < image->nr_fills; i++) {
		const struct sparse_fill *fill = &image->fills[i];

		if (fill->zone == zone && offset >= fill->first && offset < fill->end &&
		    (offset - fill->first) % fill->stride == 0)
			return &fill->block;
	}
	return NULL;
}

/* The newest one of a place is found first. */
static struct sparse_block *add(struct sparse_image *image, u32 page)
{
	struct sparse_block *block = &image->blocks[image->nr];
	u32 *bucket = &image->buckets[bucket_of(page)];

	if (image->nr == SPARSE_BLOCKS)
		return NULL;
	*block = (struct sparse_block){ .page = page, .next = *bucket };
	*bucket = ++image->nr;
	return block;
}

int sparse_block(struct sparse_image *image, u32 page, u8 *block, struct mtftl_oob *oob)
{
	const struct sparse_block *given;

	if (!image->reads && image->give_up)
		longjmp(*image->give_up, 1);
	if (!image->reads)
		return -EIO;
	image->reads--;
	given = find(image, page);
	if (oob)
		*oob = given ? given->oob : (struct mtftl_oob){ 0 };
	if (!given) {
		memset(block, 0, MTFTL_BLOCK_SIZE);
		return 0;
	}
	fuzz_block(block, given->data, given->size);
	if (given->torn)
		block[MTFTL_BLOCK_SIZE - 1] = FUZZ_TORN;
	return 0;
}

int sparse_torn_block(struct sparse_image *image, u32 zone, u8 *block)
{
	const struct flash_zone *state = &image->zones[zone];
	size_t size = state->torn_sectors * 512;
	int err = sparse_block(image, flash_page(&image->flash, zone, state->wp), block, NULL);

	memset(block + size, 0, MTFTL_BLOCK_SIZE - size);
	return err;
}

static int sparse_read_oob(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer,
			   struct mtftl_oob *oob)
{
	struct sparse_image *image = (struct sparse_image *)flash;
	u8 *to = buffer;
	u32 i;

	fuzz_assert(zone < flash->nr_zones && nr > 0);
	fuzz_assert(offset < image->zones[zone].wp && nr <= image->zones[zone].wp - offset);
	for (i = 0; i < nr; i++, to += MTFTL_BLOCK_SIZE) {
		int err = sparse_block(image, flash_page(flash, zone, offset + i), to,
				       oob ? oob + i : NULL);

		if (err)
			return err;
	}
	return 0;
}

static int sparse_read(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer)
{
	return sparse_read_oob(flash, zone, offset, nr, buffer, NULL);
}

static int sparse_read_torn(struct flash *flash, u32 zone, void *buffer)
{
	const struct flash_zone *state = &flash->zones[zone];

	fuzz_assert(zone < flash->nr_zones && state->torn_sectors && state->wp < flash->zone_capacity);
	return sparse_torn_block((struct sparse_image *)flash, zone, buffer);
}

static int sparse_write(struct flash *flash, u32 zone, u32 offset, u32 nr, const void *buffer)
{
	struct sparse_image *image = (struct sparse_image *)flash;
	struct flash_zone *state = &image->zones[zone];
	u32 i;

	fuzz_assert(zone < flash->nr_zones && nr > 0);
	fuzz_assert(offset < flash->zone_capacity && nr <= flash->zone_capacity - offset);
	if (offset != state->wp || state->cond > FLASH_OPEN || state->torn_sectors)
		return -EIO;
	for (i = 0; i < nr; i++) {
		struct sparse_block *block;

		if (image->written == ARRAY_SIZE(image->content))
			return -EIO;
		block = add(image, flash_page(flash, zone, offset + i));
		if (!block)
			return -EIO;
		block->data = memcpy(image->content[image->written++],
				     (const u8 *)buffer + (size_t)i * MTFTL_BLOCK_SIZE,
				     MTFTL_BLOCK_SIZE);
		block->size = MTFTL_BLOCK_SIZE;
		state->wp++;
		state->cond = state->wp == flash->zone_capacity ? FLASH_FULL : FLASH_OPEN;
	}
	return 0;
}

static int sparse_flush(struct flash *flash)
{
	(void)flash;
	return 0;
}

/* Blocks of a zone from @first on are no more to be found. */
static void forget(struct sparse_image *image, u32 zone, u32 first)
{
	u32 blocks = image->flash.zone_blocks, i;

	for (i = 0; i < image->nr; i++)
		if (image->blocks[i].page / blocks == zone && image->blocks[i].page % blocks >= first)
			image->blocks[i].page = MTFTL_MAP_UNMAPPED;
	for (i = 0; i < image->nr_fills; i++)
		if (image->fills[i].zone == zone && image->fills[i].end > first)
			image->fills[i].end = first;
}

/* Nothing of it is below its write pointer either. */
static int sparse_reset(struct flash *flash, u32 zone)
{
	struct sparse_image *image = (struct sparse_image *)flash;

	fuzz_assert(zone < flash->nr_zones);
	if (image->zones[zone].cond > FLASH_FULL)
		return -EIO;
	image->zones[zone] = (struct flash_zone){ .cond = FLASH_EMPTY };
	forget(image, zone, 0);
	return 0;
}

static int sparse_finish(struct flash *flash, u32 zone)
{
	struct sparse_image *image = (struct sparse_image *)flash;

	fuzz_assert(zone < flash->nr_zones);
	if (image->zones[zone].cond > FLASH_FULL)
		return -EIO;
	forget(image, zone, image->zones[zone].wp);
	image->zones[zone] = (struct flash_zone){ .cond = FLASH_FULL, .wp = flash->zone_capacity };
	return 0;
}

static void take_zone(struct sparse_image *image, const struct fuzz_record *record, u32 zone,
		      u32 *written)
{
	u32 capacity = image->flash.zone_capacity;
	struct flash_zone state = { .cond = (record->extra & 7) % (FLASH_OFFLINE + 1) };

	state.wp = fuzz_u24(record->at) % (capacity + 1);
	if (state.cond == FLASH_EMPTY || state.cond == FLASH_OFFLINE)
		state.wp = 0;
	if (image->small_blocks && state.cond == FLASH_OPEN && state.wp < capacity)
		state.torn_sectors = record->extra >> 3 & 7;
	if (state.cond == FLASH_OPEN && !state.wp && !state.torn_sectors)
		state.cond = FLASH_EMPTY;
	/* As a drive's zones are seen: there it has no write pointer. */
	if (state.cond == FLASH_FULL || state.cond == FLASH_READONLY)
		state.wp = capacity;
	*written -= image->zones[zone].wp;
	if (state.wp > SPARSE_WRITTEN - *written)
		state = (struct flash_zone){ .cond = FLASH_EMPTY };
	*written += state.wp;
	image->zones[zone] = state;
}

static void take_content(struct sparse_image *image, const struct fuzz_record *record, u32 zone,
			 const u8 *data, u32 size, u32 flags)
{
	u32 at = fuzz_u24(record->at) % image->flash.zone_capacity;
	struct sparse_block *block;

	if (fuzz_kind(record) == FUZZ_BLOCK) {
		block = add(image, flash_page(&image->flash, zone, at));
	} else {
		struct sparse_fill *fill = &image->fills[image->nr_fills];

		if (image->nr_fills == SPARSE_FILLS)
			return;
		image->nr_fills++;
		*fill = (struct sparse_fill){ .zone = zone, .first = at };
		fill->stride = fuzz_kind(record) == FUZZ_FILL ? record->extra + 1u : 1;
		fill->end = fuzz_kind(record) == FUZZ_FILL ? image->flash.zone_capacity :
							      at + record->extra + 1u;
		block = &fill->block;
	}
	if (!block)
		return;
	block->torn = flags & FUZZ_TEAR;
	if (flags & FUZZ_OOB && size >= sizeof(block->oob)) {
		memcpy(&block->oob, data, sizeof(block->oob));
		data += sizeof(block->oob);
		size -= sizeof(block->oob);
	}
	block->data = data;
	block->size = size;
}

bool sparse_load(struct sparse_image *image, const u8 *data, size_t size)
{
	const struct fuzz_geometry *geometry = (const struct fuzz_geometry *)data;
	u32 capacity, zone_blocks = 4, written = 0;

	if (size < sizeof(*geometry))
		return false;
	capacity = fuzz_capacity(geometry->capacity);
	while (zone_blocks < capacity)
		zone_blocks *= 2;
	if (geometry->flags & FUZZ_GEO_HOLE)
		zone_blocks *= 2;
	image->flash = (struct flash) {
		.nr_zones = FUZZ_MIN_ZONES + (geometry->zones[0] | geometry->zones[1] << 8) %
					     (FUZZ_MAX_ZONES - FUZZ_MIN_ZONES + 1),
		.zone_blocks = zone_blocks,
		.zone_capacity = capacity,
		.zones = image->zones,
		.read = sparse_read,
		.read_torn = sparse_read_torn,
		.write = sparse_write,
		.flush = sparse_flush,
		.reset = sparse_reset,
		.finish = sparse_finish,
	};
	image->small_blocks = geometry->flags & FUZZ_GEO_512;
	image->oob = geometry->flags & FUZZ_GEO_OOB;
	image->meta_size = (geometry->meta & 0xf) * 8;
	if (image->small_blocks)
		image->meta_size = 0;
	if (image->meta_size >= sizeof(struct mtftl_oob))
		image->flash.read_oob = sparse_read_oob;
	memset(image->zones, 0, sizeof(*image->zones) * image->flash.nr_zones);
	memset(image->buckets, 0, sizeof(image->buckets));
	sparse_allow(image, SPARSE_READS);
	image->give_up = NULL;
	image->nr = 0;
	image->nr_fills = 0;
	image->written = 0;

	data += sizeof(*geometry);
	size -= sizeof(*geometry);
	while (size >= sizeof(struct fuzz_record)) {
		const struct fuzz_record *record = (const struct fuzz_record *)data;
		u32 zone = (record->zone | record->kind >> 2 << 8) % image->flash.nr_zones;
		u32 flags = record->length[0] | record->length[1] << 8;
		u32 length = flags & FUZZ_LENGTH;

		data += sizeof(*record);
		size -= sizeof(*record);
		if (fuzz_kind(record) == FUZZ_ZONE) {
			take_zone(image, record, zone, &written);
			continue;
		}
		if (length > size)
			length = size;
		take_content(image, record, zone, data, length, flags);
		data += length;
		size -= length;
	}
	image->below = written;
	return true;
}
