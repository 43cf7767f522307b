// SPDX-License-Identifier: GPL-2.0
/* The image behind the readers' tests. Single-threaded. */
#include <stdlib.h>
#include <sys/mman.h>

#include "format/maplog.h"
#include "image.h"
#include "mtftl.h"

static int image_read(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer)
{
	struct image *image = (struct image *)flash;
	u32 i;

	for (i = 0; i < nr; i++)
		if (image->unreadable == flash_page(flash, zone, offset + i))
			return image->unreadable_error;
	memcpy(buffer, image_block(image, zone, offset), (size_t)nr << MTFTL_BLOCK_SHIFT);
	return 0;
}

static int image_read_torn(struct flash *flash, u32 zone, void *buffer)
{
	const struct flash_zone *state = &flash->zones[zone];
	size_t size = state->torn_sectors * 512;

	memcpy(buffer, image_block((struct image *)flash, zone, state->wp), size);
	memset((u8 *)buffer + size, 0, MTFTL_BLOCK_SIZE - size);
	return 0;
}

static int image_read_oob(struct flash *flash, u32 zone, u32 offset, u32 nr, void *buffer,
			  struct mtftl_oob *oob)
{
	struct image *image = (struct image *)flash;

	memcpy(oob, image->oob + flash_page(flash, zone, offset), nr * sizeof(*oob));
	return image_read(flash, zone, offset, nr, buffer);
}

static int image_write(struct flash *flash, u32 zone, u32 offset, u32 nr, const void *buffer)
{
	struct image *image = (struct image *)flash;
	struct flash_zone *state = &flash->zones[zone];

	if (offset != state->wp || offset + nr > flash->zone_capacity || state->cond > FLASH_OPEN)
		return -EIO;
	memcpy(image_block(image, zone, offset), buffer, (size_t)nr << MTFTL_BLOCK_SHIFT);
	state->wp += nr;
	state->cond = state->wp == flash->zone_capacity ? FLASH_FULL : FLASH_OPEN;
	return 0;
}

static int image_flush(struct flash *flash)
{
	(void)flash;
	return 0;
}

static int image_reset(struct flash *flash, u32 zone)
{
	if (flash->zones[zone].cond > FLASH_FULL)
		return -EIO;
	image_reset_zone((struct image *)flash, zone);
	return 0;
}

static int image_finish(struct flash *flash, u32 zone)
{
	if (flash->zones[zone].cond > FLASH_FULL)
		return -EIO;
	flash->zones[zone] = (struct flash_zone) { .cond = FLASH_FULL, .wp = flash->zone_capacity };
	return 0;
}

/* A zone of the largest capacity takes 2 GiB: memory comes as it is written to. */
static void *sparse_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		fail(EXIT_FAILED, "image: no room for %zu bytes: %s", bytes, strerror(errno));
	return memory;
}

static size_t image_blocks(const struct image *image)
{
	return (size_t)image->flash.nr_zones * image->flash.zone_blocks;
}

struct image *image_new_of(u32 nr_zones, u32 zone_blocks, u32 capacity, u64 logical_blocks)
{
	struct image *image = xalloc(1, sizeof(*image));
	u32 i;

	image->flash = (struct flash) {
		.nr_zones = nr_zones,
		.zone_blocks = zone_blocks,
		.zone_capacity = capacity,
		.zones = xalloc(nr_zones, sizeof(struct flash_zone)),
		.read = image_read,
		.read_torn = image_read_torn,
		.read_oob = image_read_oob,
		.write = image_write,
		.flush = image_flush,
		.reset = image_reset,
		.finish = image_finish,
	};
	image->sb = (struct mtftl_sb_info) {
		.uuid = "an image's uuid",
		.key = 0x5eed5eed,
		.logical_blocks = logical_blocks,
		.nr_zones = nr_zones,
		.zone_blocks = zone_blocks,
		.zone_capacity = capacity,
		.op_permille = 250,
	};
	image->unreadable = IMAGE_ALL_READABLE;
	image->unreadable_error = -ENODATA;
	image->seed = mtftl_seed(image->sb.uuid, image->sb.key);
	image->erase_count = xalloc(nr_zones, sizeof(*image->erase_count));
	image->first_seq = xalloc(nr_zones, sizeof(*image->first_seq));
	image->data = sparse_memory(image_blocks(image) * MTFTL_BLOCK_SIZE);
	image->oob = sparse_memory(image_blocks(image) * sizeof(*image->oob));
	for (i = 0; i < nr_zones; i++)
		image->flash.zones[i].cond = FLASH_EMPTY;
	return image;
}

struct image *image_new(void)
{
	return image_new_of(IMAGE_ZONES, IMAGE_ZONE_BLOCKS, IMAGE_CAPACITY, IMAGE_LOGICAL);
}

void image_free(struct image *image)
{
	munmap(image->data, image_blocks(image) * MTFTL_BLOCK_SIZE);
	munmap(image->oob, image_blocks(image) * sizeof(*image->oob));
	free(image->erase_count);
	free(image->first_seq);
	free(image->flash.zones);
	free(image);
}

u8 *image_block(struct image *image, u32 zone, u32 offset)
{
	return image->data + ((size_t)flash_page(&image->flash, zone, offset) << MTFTL_BLOCK_SHIFT);
}

void image_reset_zone(struct image *image, u32 zone)
{
	u32 blocks = image->flash.zone_blocks;

	memset(image_block(image, zone, 0), 0, (size_t)blocks << MTFTL_BLOCK_SHIFT);
	memset(image->oob + flash_page(&image->flash, zone, 0), 0, blocks * sizeof(*image->oob));
	image->flash.zones[zone] = (struct flash_zone) { .cond = FLASH_EMPTY };
	image->erase_count[zone]++;
	image->first_seq[zone] = 0;
}

/* The next block of a zone, which then counts as written. */
static u8 *next_block(struct image *image, u32 zone, u32 *offset)
{
	struct flash_zone *state = &image->flash.zones[zone];

	if (state->wp == image->flash.zone_capacity)
		fail(EXIT_FAILED, "image: zone %u is full", zone);
	*offset = state->wp++;
	state->cond = state->wp == image->flash.zone_capacity ? FLASH_FULL : FLASH_OPEN;
	return image_block(image, zone, *offset);
}

void image_write_super(struct image *image, u16 flags)
{
	u32 offset;

	image->sb.flags = flags;
	image->sb.generation++;
	mtftl_sb_compose(next_block(image, 0, &offset), &image->sb);
}

static void note_unit(struct image *image, u32 zone, u32 offset, u64 seq)
{
	if (offset == 0)
		image->first_seq[zone] = seq;
	if (seq > image->seq)
		image->seq = seq;
}

/* A unit whose payload is already at hand; entry i is for first_lba + i. */
static void write_stream_unit(struct image *image, u32 zone, enum mtftl_unit_type type,
			      const u8 *payload, u64 first, u16 nr, u16 padding)
{
	struct mtftl_unit_info info = {
		.type = type, .seq = ++image->seq, .nr_blocks = nr + padding,
	};
	u32 offset, at;
	u8 *header = next_block(image, zone, &offset);
	u16 i;

	mtftl_unit_init(header, &info);
	for (i = 0; i < nr + padding; i++) {
		u8 *block = next_block(image, zone, &at);

		if (i >= nr)
			continue;
		memcpy(block, payload + ((size_t)i << MTFTL_BLOCK_SHIFT), MTFTL_BLOCK_SIZE);
		mtftl_unit_add_entry(header, first + i, mtftl_payload_crc(image->seed, block));
	}
	mtftl_unit_seal(header, image->seed, zone, offset, image->erase_count[zone],
			image->durable_seq);
	note_unit(image, zone, offset, info.seq);
}

static void fill(u8 *block, u16 content)
{
	u16 *to = (u16 *)block;
	u32 j;

	for (j = 0; j < MTFTL_BLOCK_SIZE / sizeof(*to); j++)
		to[j] = content;
}

static u32 write_without_header(struct image *image, u32 zone, enum mtftl_unit_type type, u64 seq,
				u16 nr, const u64 *lbas, const u16 *contents)
{
	u32 first = image->flash.zones[zone].wp, at, i;

	for (i = 0; i < nr; i++) {
		u8 *block = next_block(image, zone, &at);

		fill(block, contents[i]);
		mtftl_oob_compose(image->oob + flash_page(&image->flash, zone, at), type, seq,
				  lbas[i], mtftl_payload_crc(image->seed, block), image->seed, zone,
				  image->erase_count[zone]);
	}
	note_unit(image, zone, first, seq);
	return first;
}

u32 image_write_unit(struct image *image, u32 zone, enum mtftl_unit_type type, u64 seq, u16 nr,
		     const u64 *lbas, const u16 *contents)
{
	struct mtftl_unit_info info = { .type = type, .seq = seq, .nr_blocks = nr };
	u32 offset, at, i;
	u8 *header;

	if (image->sb.oob)
		return write_without_header(image, zone, type, seq, nr, lbas, contents);
	header = next_block(image, zone, &offset);
	mtftl_unit_init(header, &info);
	for (i = 0; i < nr; i++) {
		u8 *block = next_block(image, zone, &at);

		fill(block, contents[i]);
		mtftl_unit_add_entry(header, lbas[i], mtftl_payload_crc(image->seed, block));
	}
	mtftl_unit_seal(header, image->seed, zone, MTFTL_ANY_OFFSET, image->erase_count[zone],
			image->durable_seq);
	note_unit(image, zone, offset, seq);
	return offset;
}

u32 image_write_range(struct image *image, u32 zone, u64 seq, u64 lba, u32 nr_blocks,
		      u64 range_seq, enum mtftl_range_kind kind)
{
	struct mtftl_unit_info info = { .type = MTFTL_UNIT_RANGES, .seq = seq };
	u32 offset;
	u8 *header = next_block(image, zone, &offset);

	mtftl_unit_init(header, &info);
	mtftl_unit_add_range(header, lba, nr_blocks, range_seq, kind);
	mtftl_unit_seal(header, image->seed, zone, offset, image->erase_count[zone],
			image->durable_seq);
	note_unit(image, zone, offset, seq);
	return offset;
}

static void fill_records(const struct image *image, void *stream)
{
	struct mtftl_zone_record *record = stream;
	u32 i;

	for (i = 0; i < image->flash.nr_zones; i++) {
		record[i].erase_count = cpu_to_le32(image->erase_count[i]);
		record[i].wp = cpu_to_le32(image->flash.zones[i].wp);
		record[i].first_seq = cpu_to_le64(image->first_seq[i]);
	}
	if (image->retired)
		record[image->retired].flags = cpu_to_le16(MTFTL_ZONE_RETIRED);
}

void image_write_checkpoint(struct image *image, u32 zone, u64 ckpt_seq, const u32 *map,
			    u16 flags)
{
	const u32 nr_zones = image->flash.nr_zones, logical = image->sb.logical_blocks;
	u32 blocks = mtftl_ckpt_stream_blocks(nr_zones, logical), i, n, at = 0, used = 0;
	u32 capacity = image->flash.zone_capacity;
	u8 *stream = xalloc(blocks, MTFTL_BLOCK_SIZE);
	__le32 *entry = (__le32 *)(stream + ((size_t)mtftl_ckpt_stream_blocks(nr_zones, 0) <<
					     MTFTL_BLOCK_SHIFT));

	fill_records(image, stream);
	for (i = 0; i < logical; i++)
		entry[i] = cpu_to_le32(map[i]);
	for (i = 0; i < blocks; i += n) {
		u32 longest = image->unit_sizes ? *image->unit_sizes++ : IMAGE_STREAM_UNIT;

		n = blocks - i < longest ? blocks - i : longest;
		if (n > capacity - at - 1)
			n = capacity - at - 1;
		write_stream_unit(image, zone + used, MTFTL_UNIT_CKPT,
				  stream + ((size_t)i << MTFTL_BLOCK_SHIFT), i, n, 0);
		at += 1 + n;
		if (capacity - at < 1 + MTFTL_STREAM_UNIT_BLOCKS) {
			used++;
			at = 0;
		}
	}
	free(stream);
	image->unit_sizes = NULL;

	image->sb.map_log = false;
	mtftl_sb_set_checkpoint(&image->sb, NULL);
	image->sb.ckpt_seq = ckpt_seq;
	image->sb.ckpt_blocks = blocks;
	image->sb.ckpt_nr_zones = mtftl_ckpt_zones(nr_zones, capacity, logical);
	for (i = 0; i < image->sb.ckpt_nr_zones; i++)
		image->sb.ckpt_zones[i] = zone + i;
	image_write_super(image, flags);
}

/* Units of one type over the circle, whose first zone is the first one set aside. */
static void write_run(struct image *image, const struct mtftl_log_shape *shape,
		      struct mtftl_log_at *at, enum mtftl_unit_type type, const u8 *payload, u32 nr,
		      struct mtftl_map_place *places)
{
	u32 i, k, n;

	for (i = 0; i < nr; i += n) {
		u32 longest = MTFTL_LOG_UNIT_BLOCKS;

		if (type == MTFTL_UNIT_CKPT && image->unit_sizes)
			longest = *image->unit_sizes++;
		if (!mtftl_log_takes(shape->capacity, at->offset))
			*at = (struct mtftl_log_at) { at->zone + 1, 0 };
		n = nr - i < longest ? nr - i : longest;
		if (n > shape->capacity - at->offset - 1)
			n = shape->capacity - at->offset - 1;
		write_stream_unit(image, MTFTL_NR_SB_ZONES + at->zone, type,
				  payload + ((size_t)i << MTFTL_BLOCK_SHIFT), i, n, 0);
		for (k = 0; places && k < n; k++)
			mtftl_place_set(shape, &places[i + k], at->zone, at->offset + 1 + k,
					mtftl_payload_crc(image->seed, payload +
							  ((size_t)(i + k) << MTFTL_BLOCK_SHIFT)));
		at->offset += 1 + n;
	}
}

/* What the superblock says of a stream that begins @at. */
static void name_log(struct image *image, const struct mtftl_log_shape *shape,
		     const struct mtftl_log_at *at, u64 ckpt_seq, u64 first)
{
	struct mtftl_sb_info *sb = &image->sb;
	u32 i;

	mtftl_sb_set_checkpoint(sb, NULL);
	sb->map_log = true;
	sb->ckpt_seq = ckpt_seq;
	sb->ckpt_blocks = shape->stream_blocks;
	sb->ckpt_nr_zones = shape->seats;
	for (i = 0; i < shape->seats; i++)
		sb->ckpt_zones[i] = MTFTL_NR_SB_ZONES + i;
	sb->ckpt_unit_first = first;
	sb->ckpt_unit_last = image->seq;
	sb->ckpt_seat = at->zone;
	sb->ckpt_offset = at->offset;
}

bool image_write_map_log(struct image *image, u64 ckpt_seq, const u32 *map, u16 flags)
{
	const u32 logical = image->sb.logical_blocks;
	struct mtftl_log_at at = { 0 }, first;
	struct mtftl_log_shape shape;
	u8 *blocks, *stream;
	u64 number;
	u32 i;

	mtftl_log_shape(&shape, image->flash.nr_zones, image->flash.zone_capacity, logical);
	if (!mtftl_log_fits(&shape))
		return false;
	for (i = 0; i < shape.seats; i++)
		image_reset_zone(image, MTFTL_NR_SB_ZONES + i);
	blocks = xalloc(shape.map_blocks, MTFTL_BLOCK_SIZE);
	stream = xalloc(shape.stream_blocks, MTFTL_BLOCK_SIZE);
	for (i = 0; i < logical; i++)
		((__le32 *)blocks)[i] = cpu_to_le32(map[i]);
	fill_records(image, stream);
	write_run(image, &shape, &at, MTFTL_UNIT_MAP, blocks, shape.map_blocks,
		  (struct mtftl_map_place *)(stream + shape.record_blocks * MTFTL_BLOCK_SIZE));
	number = image->seq + 1;
	first = at;
	if (!mtftl_log_takes(shape.capacity, first.offset))
		first = (struct mtftl_log_at) { first.zone + 1, 0 };
	write_run(image, &shape, &at, MTFTL_UNIT_CKPT, stream, shape.stream_blocks, NULL);
	image->unit_sizes = NULL;
	name_log(image, &shape, &first, ckpt_seq, number);
	image_write_super(image, flags);
	free(blocks);
	free(stream);
	return true;
}

static int parse(struct image *image, u32 zone, u32 at, u8 *header, struct mtftl_unit_info *info)
{
	const u8 *block = image_block(image, zone, at);

	if (image->sb.oob)
		return mtftl_oob_parse(block, image->oob + flash_page(&image->flash, zone, at),
				       sizeof(*image->oob), image->flash.zones[zone].wp - at,
				       image->seed, zone, at, image->flash.zone_capacity, header,
				       info);
	memcpy(header, block, MTFTL_BLOCK_SIZE);
	return mtftl_unit_parse(header, image->seed, zone, at, image->flash.zone_capacity, info);
}

/* As the module does: FOOTER units up to the zone's last block but one, then the tail. */
static void close_zone(struct image *image, u32 zone, const struct mtftl_footer *footer)
{
	u32 last = image->flash.zone_capacity - 1, blocks, index = 0, at = image->flash.zones[zone].wp;
	u32 first = at;

	blocks = (footer->used + MTFTL_BLOCK_SIZE - 1) / MTFTL_BLOCK_SIZE;
	while (image->flash.zones[zone].wp < last) {
		u32 room = last - image->flash.zones[zone].wp - 1, n;

		room = room < IMAGE_STREAM_UNIT ? room : IMAGE_STREAM_UNIT;
		n = blocks - index < room ? blocks - index : room;
		write_stream_unit(image, zone, MTFTL_UNIT_FOOTER,
				  footer->stream + ((size_t)index << MTFTL_BLOCK_SHIFT), index, n,
				  room - n);
		index += n;
	}
	mtftl_tail_compose(next_block(image, zone, &at), image->seed, zone,
			   image->erase_count[zone], first, footer);
}

void image_write_footer(struct image *image, u32 zone, u32 omitted)
{
	u32 reserve = mtftl_footer_reserve(image->flash.zone_capacity, image->sb.oob);
	u8 *stream = xalloc(reserve, MTFTL_BLOCK_SIZE);
	struct mtftl_unit_info info;
	struct mtftl_footer footer;
	u64 lbas[MTFTL_UNIT_MAX_ENTRIES];
	u8 header[MTFTL_BLOCK_SIZE] __attribute__((aligned(8)));
	u32 at, crc, i;

	mtftl_footer_init(&footer, stream, reserve * MTFTL_BLOCK_SIZE);
	for (at = 0; at < image->flash.zones[zone].wp;
	     at += mtftl_unit_head(image->sb.oob, info.type) + info.nr_blocks) {
		u16 listed;

		if (parse(image, zone, at, header, &info))
			fail(EXIT_FAILED, "image: zone %u has no unit at block %u", zone, at);
		if (omitted && omitted--)
			continue;
		listed = info.type == MTFTL_UNIT_RANGES ? 0 : info.nr_entries;
		for (i = 0; i < listed; i++)
			mtftl_unit_entry(header, i, &lbas[i], &crc);
		if (mtftl_footer_add(&footer, info.seq, at, info.type, listed, lbas))
			fail(EXIT_FAILED, "image: footer of zone %u is too long", zone);
	}
	close_zone(image, zone, &footer);
	free(stream);
}
