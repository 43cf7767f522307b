// SPDX-License-Identifier: GPL-2.0
/* Tells of one cut: see tell.h. */
#include "tell.h"

#include "common.h"

#include <inttypes.h>

/* What the cut made of a block; the page knows these letters. */
enum fate {
	FATE_EMPTY = '.',
	FATE_DURABLE = 'd',	/* it was on flash, and is */
	FATE_SURVIVED = 's',	/* it was in the buffer, and its program ended */
	FATE_LOST = 'l',	/* it was in the buffer, and its program had not begun */
	FATE_TORN = 't',	/* it cannot be read */
};

struct block {
	struct content content;
	bool held, written;
};

static struct block *blocks;
static FlashImageZone *zones;

void tell_before(const struct drive *drive)
{
	const FlashShape *shape = &drive->media.shape;
	uint32_t zone, i, page;

	blocks = must(calloc(shape->nr_zones * shape->zone_blocks, sizeof(*blocks)));
	zones = must(calloc(shape->nr_zones, sizeof(*zones)));
	for (zone = 0; zone < shape->nr_zones; zone++) {
		zones[zone] = drive->media.zones[zone];
		for (i = 0; i < shape->zone_cap; i++) {
			page = drive_page(drive, zone, i);
			blocks[page].held = drive->held[page].data;
			blocks[page].written = i < zones[zone].wp;
			blocks[page].content = blocks[page].held ? drive->held[page].content :
					       drive->contents[page];
		}
	}
}

static enum fate fate_of(const struct drive *drive, uint32_t zone, uint32_t i)
{
	uint32_t page = drive_page(drive, zone, i);

	if (i >= drive->media.zones[zone].wp)
		return blocks[page].held ? FATE_LOST : FATE_EMPTY;
	if (flash_media_bad(&drive->media, page, 1))
		return FATE_TORN;
	return blocks[page].held ? FATE_SURVIVED : FATE_DURABLE;
}

/* [FATE, BLOCK, VERSION]; a block of -1 is not a user's. */
static void tell_block(const struct drive *drive, uint32_t zone, uint32_t i, FILE *file)
{
	const struct block *block = &blocks[drive_page(drive, zone, i)];
	bool users = (block->held || block->written) && block->content.kind == CONTENT_STAMPED;

	fprintf(file, "%s[\"%c\", %" PRId64 ", %u]", i ? ", " : "", fate_of(drive, zone, i),
		users ? (int64_t)block->content.lba : -1, users ? block->content.version : 0);
}

void tell_zones(const struct drive *drive, FILE *file)
{
	const FlashShape *shape = &drive->media.shape;
	uint32_t zone, i;

	fprintf(file, "[");
	for (zone = 0; zone < shape->nr_zones; zone++) {
		fprintf(file, "%s\n{\"before\": %" PRIu64 ", \"after\": %" PRIu64 ", \"erasing\": %s, "
			"\"blocks\": [", zone ? "," : "", zones[zone].wp,
			drive->media.zones[zone].wp, zones[zone].was ? "true" : "false");
		for (i = 0; i < shape->zone_cap; i++)
			tell_block(drive, zone, i, file);
		fprintf(file, "]}");
	}
	fprintf(file, "]");
}
