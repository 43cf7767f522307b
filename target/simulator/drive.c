// SPDX-License-Identifier: GPL-2.0
/*
 * A drive without time: see drive.h. What the target does between its policies is done here in the
 * same order: stream.c (streams and their zones), gc.c (when, and which victim), rate.c (pace),
 * admit.c (where users stop).
 */
#include "drive.h"

#include <math.h>
#include <stdlib.h>

enum { EMPTY, OPEN, FULL, VICTIM };

/* What is open is filled before another one is opened: GC is always at work here. */
static u32 user_stream(const struct drive *drive, u32 class)
{
	u32 from = mtftl_budget_first(&drive->budget, class), i, stream;
	u32 nr = mtftl_budget_first(&drive->budget, class + 1) - from;

	for (i = 0; i < nr; i++) {
		stream = from + (drive->lane + i) % nr;
		if (drive->streams[stream].zone >= 0)
			return stream;
	}
	return from + drive->lane % nr;
}

static u32 least_worn(struct drive *drive)
{
	u32 *nr = &drive->state.zones[MTFTL_ZONE_EMPTY], i, best = 0, zone;

	for (i = 1; i < *nr; i++)
		if (drive->zones[drive->empty[i]].erase_count <
		    drive->zones[drive->empty[best]].erase_count)
			best = i;
	zone = drive->empty[best];
	drive->empty[best] = drive->empty[--*nr];
	return zone;
}

static void open_zone(struct drive *drive, u32 stream, u32 class)
{
	u32 index = least_worn(drive);
	struct zone *zone = &drive->zones[index];

	zone->wp = 0;
	zone->valid = 0;
	zone->born_sum = 0;
	zone->life_sum = 0;
	zone->class = class;
	zone->state = OPEN;
	drive->streams[stream] = (struct stream){ .zone = index };
	drive->room += drive->capacity;
	drive->clock += stream < drive->budget.user_streams;
}

static void take_blocks(struct drive *drive, struct stream *stream, u32 born)
{
	struct zone *zone = &drive->zones[stream->zone];

	zone->wp++;
	zone->born_sum += born;
	zone->born = zone->born_sum / zone->wp;
	zone->life_sum += drive->life;
	zone->life = zone->life_sum / zone->wp;
	drive->room--;
}

/* A unit has two blocks at least. */
static void close_if_full(struct drive *drive, struct stream *stream)
{
	struct zone *zone = &drive->zones[stream->zone];

	if (zone->wp + (stream->unit_left ? 1 : 2) <= drive->capacity)
		return;
	drive->room -= drive->capacity - zone->wp;
	zone->state = FULL;
	zone->full_seq = drive->seq;
	stream->zone = -1;
	stream->unit_left = 0;
}

/* The next block needs a header. */
static void end_unit(struct drive *drive, u32 index)
{
	struct stream *stream = &drive->streams[index];

	stream->unit_left = 0;
	if (stream->zone >= 0)
		close_if_full(drive, stream);
}

/* A block to the end of a stream, whose units have @unit blocks. */
static void put(struct drive *drive, u32 block, u32 index, u32 class, u32 unit, u32 born)
{
	struct stream *stream = &drive->streams[index];
	struct zone *zone;
	u32 page;

	if (stream->zone < 0)
		open_zone(drive, index, class);
	zone = &drive->zones[stream->zone];
	if (!stream->unit_left) {
		stream->unit_left = unit;
		drive->headers++;
		drive->seq++;
		take_blocks(drive, stream, born);
	}
	page = stream->zone * drive->capacity + zone->wp;
	take_blocks(drive, stream, born);
	stream->unit_left--;
	if (drive->map[block] != ~0u)
		drive->zones[drive->map[block] / drive->capacity].valid--;
	drive->map[block] = page;
	drive->owner[page] = block;
	zone->valid++;
	close_if_full(drive, stream);
}

/* GC */

static bool look_at(void *data, u32 index, struct mtftl_seen *seen)
{
	const struct drive *drive = data;
	const struct zone *zone = &drive->zones[index];
	struct mtftl_candidate candidate = {
		.valid = zone->valid,
		.capacity = drive->capacity,
		.age = drive->seq - zone->full_seq,
	};

	if (zone->state != FULL)
		return false;
	seen->erase_count = zone->erase_count;
	seen->before = index;
	if (zone->valid <= drive->limit)
		seen->score = drive->victims->score(&candidate);
	return true;
}

static s64 pick_victim(struct drive *drive)
{
	u32 payload = drive->capacity, best, least;

	payload -= (payload + drive->gc_unit) / (drive->gc_unit + 1);
	drive->limit = mtftl_victim_limit(payload, drive->blocks, drive->nr_zones - 5);
	best = mtftl_choose(&drive->chooser, false, look_at, drive);
	least = !drive->wear_interval ? MTFTL_NO_ZONE :
		mtftl_choose_for_wear(&drive->chooser, drive->wear_interval, drive->wear_spread,
				      look_at, drive);
	if (least != MTFTL_NO_ZONE)
		return least;
	return best == MTFTL_NO_ZONE ? -1 : (s64)best;
}

static s64 credit(const struct drive *drive)
{
	struct mtftl_space_seen seen = {
		.zones = drive->state.zones[MTFTL_ZONE_EMPTY],
		.capacity = drive->capacity,
		.room = drive->room,
		.victims = drive->victim >= 0,
		.moving = drive->to_move,
		.moved = drive->moved,
	};

	return mtftl_rate_credit(&seen, drive->low_water);
}

static bool choose(struct drive *drive)
{
	drive->victim = pick_victim(drive);
	if (drive->victim < 0)
		return false;
	drive->next = 0;
	drive->moved = 0;
	drive->to_move = drive->zones[drive->victim].valid;
	drive->zones[drive->victim].state = VICTIM;
	if (drive->placing->collected)
		drive->placing->collected(drive, drive->victim);
	return true;
}

/* The victim's next block that is valid; at its end it is reset. */
static void move_one(struct drive *drive)
{
	struct zone *zone = &drive->zones[drive->victim];
	u32 page, block, class;

	while (zone->valid) {
		page = drive->victim * drive->capacity + drive->next++;
		block = drive->owner[page];
		if (block == ~0u || drive->map[block] != page)
			continue;
		class = drive->placing->moved(drive, block, drive->victim);
		if (class >= drive->budget.gc_streams)
			class = drive->budget.gc_streams - 1;
		if (!drive->placing->gc_classes)
			put(drive, block, user_stream(drive, 0), 0, drive->gc_unit, zone->born);
		else
			put(drive, block, drive->budget.user_streams + class,
			    drive->budget.user_classes + class, drive->gc_unit, zone->born);
		drive->gc_blocks++;
		drive->moved++;
		return;
	}
	/* A unit of GC's is of one victim. */
	for (class = 0; class < drive->budget.gc_streams; class++)
		end_unit(drive, drive->budget.user_streams + class);
	memset(drive->owner + drive->victim * drive->capacity, 0xff,
	       drive->capacity * sizeof(u32));
	zone->state = EMPTY;
	zone->erase_count++;
	drive->empty[drive->state.zones[MTFTL_ZONE_EMPTY]++] = drive->victim;
	drive->victim = -1;
	drive->to_move = 0;
	drive->moved = 0;
}

void drive_write(struct drive *drive, u32 block)
{
	u32 class;

	while ((credit(drive) <= 0 || mtftl_admit_spare(&drive->limits, &drive->state) <= 0) &&
	       (drive->victim >= 0 || choose(drive)))
		move_one(drive);
	class = drive->placing->written(drive, block);
	if (class >= drive->budget.user_classes)
		class = drive->budget.user_classes - 1;
	put(drive, block, user_stream(drive, class), class, drive->write_unit, drive->clock);
	drive->written_at[block] = drive->user_blocks++;
	if (++drive->in_unit == drive->write_unit) {
		drive->in_unit = 0;
		drive->lane = (drive->lane + 1) % drive->lanes;
	}
}

void drive_start(struct drive *drive)
{
	size_t pages = (size_t)drive->nr_zones * drive->capacity;
	u32 i;

	drive->map = malloc(drive->blocks * sizeof(u32));
	drive->owner = malloc(pages * sizeof(u32));
	drive->written_at = calloc(drive->blocks, sizeof(u32));
	drive->zones = calloc(drive->nr_zones, sizeof(*drive->zones));
	drive->empty = malloc(drive->nr_zones * sizeof(u32));
	memset(drive->map, 0xff, drive->blocks * sizeof(u32));
	memset(drive->owner, 0xff, pages * sizeof(u32));
	for (i = 0; i < drive->nr_zones; i++)
		drive->empty[drive->state.zones[MTFTL_ZONE_EMPTY]++] = i;
	for (i = 0; i < MAX_STREAMS; i++)
		drive->streams[i].zone = -1;
	drive->device_in_zones = (drive->blocks + drive->blocks / 32 + drive->capacity - 1) /
				 drive->capacity;
	drive->victim = -1;
	mtftl_chooser_init(&drive->chooser, drive->nr_zones);
}

void drive_end(struct drive *drive)
{
	free(drive->map);
	free(drive->owner);
	free(drive->written_at);
	free(drive->zones);
	free(drive->empty);
}

/* The target's own placement: what it knows is a zone's age, and its life. */

static u32 age_of(const struct drive *drive, u32 zone)
{
	return drive->clock - drive->zones[zone].born;
}

static u32 own_written(struct drive *drive, u32 block)
{
	u32 page = drive->map[block], zone = page / drive->capacity;

	drive->life = page == ~0u ? mtftl_life_new(drive->device_in_zones) :
		      mtftl_life_written(drive->own, drive->zones[zone].life, age_of(drive, zone));
	return mtftl_class_written(drive->own, drive->life, drive->device_in_zones,
				   drive->budget.user_classes);
}

static u32 own_moved(struct drive *drive, u32 block, u32 zone)
{
	(void)block;
	drive->life = mtftl_life_moved(drive->zones[zone].life, age_of(drive, zone));
	return mtftl_class_moved(drive->own, drive->life, drive->device_in_zones,
				 drive->budget.gc_streams);
}

/*
 * SepBIT (Wang and others, FAST 2022): it keeps when each block was written. Users' blocks part by
 * whether the last version lived shorter than zones of the first class do on average, of the last
 * 16; GC's by whether they come from such a zone, and else by their age, at 4 and 16 times that.
 */
static u32 sepbit_written(struct drive *drive, u32 block)
{
	return drive->map[block] == ~0u ||
	       (u32)drive->user_blocks - drive->written_at[block] >= drive->lifespan;
}

static u32 sepbit_moved(struct drive *drive, u32 block, u32 zone)
{
	double age = (u32)drive->user_blocks - drive->written_at[block];

	if (!drive->zones[zone].class)
		return 0;
	return 1 + (age >= 4 * drive->lifespan) + (age >= 16 * drive->lifespan);
}

static void sepbit_collected(struct drive *drive, u32 zone)
{
	if (drive->zones[zone].class)
		return;
	drive->lifespans += (double)(drive->clock - drive->zones[zone].born) * drive->capacity;
	if (++drive->lifespans_nr < 16)
		return;
	drive->lifespan = drive->lifespans / 16;
	drive->lifespans = 0;
	drive->lifespans_nr = 0;
}

static const struct placing sepbit = {
	"sepbit", 2, 4, sepbit_written, sepbit_moved, sepbit_collected,
};

/* No drive can do this: it knows how often each block is stored. Only its classes are few. */
static const struct mtftl_placement told = {
	"known", 4, 4, MTFTL_INTERVALS, { -3, -1, 1 }, { -3, -1, 1 },
};

static u32 known_written(struct drive *drive, u32 block)
{
	double times = drive->shares[block] * drive->blocks;
	double octaves = mtftl_life(drive->device_in_zones) / (double)MTFTL_OCTAVE - log2(times);

	drive->life = octaves > 0 ? octaves * MTFTL_OCTAVE : 0;
	return mtftl_class_written(&told, drive->life, drive->device_in_zones, told.user_classes);
}

static u32 known_moved(struct drive *drive, u32 block, u32 zone)
{
	(void)zone;
	return known_written(drive, block);
}

static const struct placing known = { "known", 4, 4, known_written, known_moved, NULL };

const struct placing *placing_find(struct drive *drive, const char *name)
{
	static struct placing own = { .written = own_written, .moved = own_moved };

	drive->lifespan = 1e30;
	if (!strcmp(name, sepbit.name))
		return &sepbit;
	if (!strcmp(name, known.name))
		return &known;
	drive->own = mtftl_placement(name);
	if (!drive->own)
		return NULL;
	own.name = drive->own->name;
	own.user_classes = drive->own->user_classes;
	own.gc_classes = drive->own->gc_classes;
	return &own;
}
