// SPDX-License-Identifier: GPL-2.0
/* A drive as its journal tells of it: see drive.h. */
#include "drive.h"

#include "common.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flash/model/erase.h"
#include "oracle.h"

#define MANY		(1ull << 60)
#define ERASE_FATES	6u	/* of an erase that a cut interrupts: so many draws of its generator */

static const struct content nothing = { .kind = CONTENT_ZEROES };

static uint64_t draw(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ull;
	return mix(*state);
}

static uint32_t nr_zones(const struct drive *drive)
{
	return (uint32_t)drive->media.shape.nr_zones;
}

/* Life */

void drive_open(struct drive *drive, const FlashShape *shape, const char *image)
{
	uint64_t pages = shape->nr_zones * shape->zone_blocks;
	char *why = flash_media_open(&drive->media, image, shape);

	if (why || shape->block_size != BLOCK_BYTES) {
		fprintf(stderr, "%s\n", why ? why : "the drive's blocks are not of 4096 bytes");
		exit(2);
	}
	drive->page_blocks = shape->planes * shape->page_size / shape->block_size;
	drive->unit_blocks = drive->page_blocks * shape->program_pages;
	drive->contents = must(calloc(pages, sizeof(*drive->contents)));
	drive->held = must(calloc(pages, sizeof(*drive->held)));
	drive->first_held = must(calloc(shape->nr_zones, sizeof(*drive->first_held)));
	drive->end_held = must(calloc(shape->nr_zones, sizeof(*drive->end_held)));
}

void drive_private(struct drive *drive)
{
	FlashMedia *m = &drive->media;

	if (mmap(m->map, m->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
		 m->fd, 0) != m->map) {
		perror("cuts: a private copy of the image");
		exit(2);
	}
}

/* Without what is zeroes: few blocks are written. */
void drive_save(const struct drive *drive, const char *path)
{
	static const uint8_t zeroes[4096];
	const FlashMedia *m = &drive->media;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	uint64_t at;

	if (fd < 0 || ftruncate(fd, (off_t)m->map_len)) {
		perror(path);
		exit(2);
	}
	for (at = 0; at < m->map_len; at += sizeof(zeroes))
		if (memcmp(m->map + at, zeroes, sizeof(zeroes)) &&
		    pwrite(fd, m->map + at, sizeof(zeroes), (off_t)at) != sizeof(zeroes)) {
			perror(path);
			exit(2);
		}
	close(fd);
}

/* The journal */

static struct content look(const struct drive *drive, const uint8_t *data)
{
	struct content content = { .kind = CONTENT_STAMPED };
	uint64_t lba = UINT32_MAX;

	if (oracle_stamp(drive->run, data, &lba, &content.version))
		content.kind = CONTENT_OTHER;
	else if (!content.version)
		content.kind = CONTENT_ZEROES;
	content.lba = (uint32_t)lba;
	return content;
}

void drive_set_run(struct drive *drive, uint64_t run)
{
	drive->run = run;
}

/* An erase may have left anything of them. */
static void look_again(struct drive *drive, uint32_t zone)
{
	uint32_t i, page = drive_page(drive, zone, 0);

	for (i = 0; i < drive->media.zones[zone].wp; i++, page++) {
		uint32_t id = drive->contents[page].id;

		drive->contents[page] = look(drive, flash_media_data(&drive->media, page));
		if (drive->contents[page].kind != CONTENT_ZEROES)
			drive->contents[page].id = id;
	}
}

static void drop_held(struct drive *drive, uint32_t zone)
{
	memset(drive->held + drive_page(drive, zone, drive->first_held[zone]), 0,
	       (drive->end_held[zone] - drive->first_held[zone]) * sizeof(*drive->held));
	drive->first_held[zone] = drive->end_held[zone] = 0;
}

static void admit(struct drive *drive, const FlashJournalRecord *record, const uint8_t *payload)
{
	const FlashShape *shape = &drive->media.shape;
	uint32_t zone = record->zone, at = (uint32_t)record->block, i;
	struct held *held = drive->held + drive_page(drive, zone, at);

	if (drive->first_held[zone] == drive->end_held[zone])
		drive->first_held[zone] = drive->end_held[zone] = at;
	assert(at == drive->end_held[zone]);
	for (i = 0; i < record->nlb; i++) {
		held[i].data = payload + (size_t)i * shape->block_size;
		held[i].oob = payload + (size_t)record->nlb * shape->block_size +
			      (size_t)i * shape->meta_size;
		held[i].content = look(drive, held[i].data);
		held[i].content.id = ++drive->ids;
	}
	drive->end_held[zone] += record->nlb;
}

/* The block is in the buffer, and its program has begun: it ends. */
static void commit(struct drive *drive, uint32_t zone, uint32_t block)
{
	uint32_t page = drive_page(drive, zone, block);
	struct held *held = &drive->held[page];

	if (!held->data) {
		fprintf(stderr, "zone %u block %u is programmed, but was not in the buffer\n", zone,
			block);
		exit(2);
	}
	flash_media_commit(&drive->media, zone, block, 1, held->data, held->oob);
	drive->contents[page] = held->content;
	held->data = NULL;
	while (drive->first_held[zone] < drive->end_held[zone] &&
	       !drive->held[drive_page(drive, zone, drive->first_held[zone])].data)
		drive->first_held[zone]++;
}

static void end_erase(struct drive *drive, uint32_t zone)
{
	uint64_t was = drive->media.zones[zone].was;

	flash_erase_end(&drive->media, zone);
	memset(drive->contents + drive_page(drive, zone, 0), 0, was * sizeof(*drive->contents));
}

static void tear_erases(struct drive *drive)
{
	uint32_t i;

	for (i = 0; i < nr_zones(drive); i++)
		if (drive->media.zones[i].was) {
			flash_erase_cut(&drive->media, i);
			look_again(drive, i);
		}
}

static void lose_power(struct drive *drive)
{
	uint32_t i;

	for (i = 0; i < nr_zones(drive); i++)
		drop_held(drive, i);
	tear_erases(drive);
}

void drive_apply(struct drive *drive, const FlashJournalRecord *record, const uint8_t *payload)
{
	FlashMedia *m = &drive->media;
	uint32_t zone = record->zone, block = (uint32_t)record->block, i;

	if (zone >= nr_zones(drive)) {
		fprintf(stderr, "the journal names zone %u of %u\n", zone, nr_zones(drive));
		exit(2);
	}
	switch (record->kind) {
	case FLASH_JOURNAL_ADMIT:
		admit(drive, record, payload);
		break;
	case FLASH_JOURNAL_BEGIN:
		flash_media_begin(m, zone, block, record->nlb);
		break;
	case FLASH_JOURNAL_COMMIT:
		for (i = 0; i < record->nlb; i++)
			commit(drive, zone, block + i);
		break;
	case FLASH_JOURNAL_RESET:
		end_erase(drive, zone);
		drop_held(drive, zone);
		flash_erase_begin(m, zone, record->block);
		break;
	case FLASH_JOURNAL_ERASE:
		flash_erase_block(m, zone, record->nlb, record->block);
		break;
	case FLASH_JOURNAL_ERASED:
		end_erase(drive, zone);
		break;
	case FLASH_JOURNAL_ZONE:
		memcpy(&m->zones[zone], payload, sizeof(*m->zones));
		break;
	case FLASH_JOURNAL_CUT:
		lose_power(drive);
		break;
	default:
		break;
	}
}

/* Cuts */

/* Blocks in the buffer that one program takes: part of a unit. */
struct group {
	uint32_t block, nlb;
	uint32_t pages;		/* of which it has blocks */
	bool begun;
};

static struct group group_at(const struct drive *drive, uint32_t zone, uint32_t block)
{
	uint32_t end = block - block % drive->unit_blocks + drive->unit_blocks;
	struct group group = { .block = block };

	if (end > drive->end_held[zone])
		end = drive->end_held[zone];
	/* A unit that a flush has sent is a program of its own. */
	if (block < drive->media.zones[zone].wp && end > drive->media.zones[zone].wp)
		end = (uint32_t)drive->media.zones[zone].wp;
	while (block < end && drive->held[drive_page(drive, zone, block)].data)
		block++;
	group.nlb = block - group.block;
	group.pages = (block - 1) / drive->page_blocks - group.block / drive->page_blocks + 1;
	group.begun = group.block < drive->media.zones[zone].wp;
	return group;
}

/* The next group from @block on; false: there is none. */
static bool next_group(const struct drive *drive, uint32_t zone, uint32_t block, struct group *group)
{
	if (block < drive->first_held[zone])
		block = drive->first_held[zone];
	while (block < drive->end_held[zone] && !drive->held[drive_page(drive, zone, block)].data)
		block++;
	if (block >= drive->end_held[zone])
		return false;
	*group = group_at(drive, zone, block);
	return true;
}

/* Numbers of states, as far as they are told apart. */
static uint64_t times(uint64_t a, uint64_t b)
{
	return a > UINT32_MAX || b > UINT32_MAX || a * b > MANY ? MANY : a * b;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b > MANY ? MANY : a + b;
}

/*
 * A program that began has left so many of its pages, from none to all; the zone ends behind the
 * last one that began. So many states do its groups have, with any number of them begun.
 */
static uint64_t states_of_zone(const struct drive *drive, uint32_t zone)
{
	uint64_t states = 1, with = 1;
	struct group group;
	uint32_t at;

	for (at = 0; next_group(drive, zone, at, &group); at = group.block + group.nlb) {
		with = times(with, group.pages + 1);
		/* What began cannot be undone: the states without it do not count. */
		states = group.begun ? with : plus(states, with);
	}
	return plus(states, drive->media.zones[zone].was ? ERASE_FATES - 1 : 0);
}

uint64_t drive_states(const struct drive *drive, uint64_t most)
{
	uint64_t states = 1;
	uint32_t i;

	for (i = 0; i < nr_zones(drive); i++)
		if (drive->first_held[i] != drive->end_held[i] || drive->media.zones[i].was)
			states = times(states, states_of_zone(drive, i));
	return states < most ? states : most;
}

/* The first pages of a program are written, the others torn. */
static void program(struct drive *drive, uint32_t zone, const struct group *group, uint32_t pages)
{
	uint32_t first = group->block / drive->page_blocks, i;

	if (!group->begun)
		flash_media_begin(&drive->media, zone, group->block, group->nlb);
	for (i = group->block; i < group->block + group->nlb; i++)
		if (i / drive->page_blocks - first < pages)
			commit(drive, zone, i);
}

/*
 * The state of that number of a zone's groups: see states_of_zone(). 0: what has begun is torn. Returns
 * the choices.
 */
static unsigned int program_groups(struct drive *drive, uint32_t zone, uint64_t number)
{
	uint64_t states = 1, with = 1, before = 0;
	unsigned int choices = 0;
	uint32_t at, end = 0;
	struct group group;

	/* Which is the last one that began? */
	for (at = 0; next_group(drive, zone, at, &group); at = group.block + group.nlb) {
		uint64_t less = states;

		with = times(with, group.pages + 1);
		states = group.begun ? with : plus(states, with);
		if (group.begun || number >= less) {
			before = group.begun ? 0 : less;
			end = group.block + group.nlb;
		}
		if (!group.begun && number < states)
			break;
	}
	number -= before;
	for (at = 0; at < end && next_group(drive, zone, at, &group); at = group.block + group.nlb) {
		uint32_t pages = (uint32_t)(number % (group.pages + 1));

		choices += pages + !group.begun;
		program(drive, zone, &group, pages);
		number /= group.pages + 1;
	}
	return choices;
}

unsigned int drive_cut(struct drive *drive, uint64_t number, uint64_t most, uint64_t seed)
{
	bool all = drive_states(drive, MANY) <= most;
	uint64_t random = mix(seed) ^ number;
	unsigned int choices = 0;
	uint32_t i;

	for (i = 0; i < nr_zones(drive); i++) {
		FlashImageZone *zone = &drive->media.zones[i];
		uint64_t states, n;

		if (drive->first_held[i] == drive->end_held[i] && !zone->was)
			continue;
		states = states_of_zone(drive, i);
		n = !number ? 0 : all ? number % states : draw(&random) % states;
		number = all ? number / states : number;
		if (zone->was && n)
			zone->seed ^= (uint32_t)mix(n);
		if (zone->was)
			choices += n > 0;
		else
			choices += program_groups(drive, i, n);
	}
	lose_power(drive);
	return choices;
}

uint64_t drive_digest(const struct drive *drive)
{
	const FlashMedia *m = &drive->media;
	uint64_t sum = 0;
	uint32_t i, k;

	for (i = 0; i < nr_zones(drive); i++) {
		uint32_t page = drive_page(drive, i, 0);

		sum = mix(sum ^ m->zones[i].wp ^ (uint64_t)m->zones[i].flags << 32);
		for (k = 0; k < m->zones[i].wp; k++, page++)
			sum = (sum ^ (flash_media_bad(m, page, 1) ? UINT32_MAX :
				      drive->contents[page].id)) * 0x100000001b3ull + k;
	}
	return mix(sum);
}

/* Commands */

static bool is_full(const struct drive *drive, uint32_t zone)
{
	const FlashImageZone *z = &drive->media.zones[zone];

	return z->flags & FLASH_ZONE_FINISHED || z->wp == drive->media.shape.zone_cap;
}

int drive_read(const struct drive *drive, uint32_t zone, uint32_t block, uint32_t nr, uint8_t *data,
	       uint8_t *oob)
{
	const FlashMedia *m = &drive->media;
	uint32_t page = drive_page(drive, zone, block);
	uint64_t wp = m->zones[zone].wp;
	uint32_t there = wp <= block ? 0 : wp - block < nr ? (uint32_t)(wp - block) : nr;
	size_t size = m->shape.block_size, meta = m->shape.meta_size;

	if (m->zones[zone].flags & FLASH_ZONE_OFFLINE)
		return -EIO;
	if (there && flash_media_bad(m, page, there))
		return -ENODATA;
	/* Behind the write pointer all is zeroes. */
	memcpy(data, flash_media_data(m, page), there * size);
	memset(data + there * size, 0, (nr - there) * size);
	if (oob && meta) {
		memcpy(oob, flash_media_oob(m, page), there * meta);
		memset(oob + there * meta, 0, (nr - there) * meta);
	}
	return 0;
}

int drive_write(struct drive *drive, uint32_t zone, uint32_t block, uint32_t nr, const uint8_t *data)
{
	static const uint8_t oob[64];
	const FlashShape *shape = &drive->media.shape;
	FlashImageZone *z = &drive->media.zones[zone];
	uint32_t i;

	if (z->flags & (FLASH_ZONE_READ_ONLY | FLASH_ZONE_OFFLINE) || is_full(drive, zone) ||
	    block != z->wp || block + nr > shape->zone_cap)
		return -EIO;
	flash_media_begin(&drive->media, zone, block, nr);
	for (i = 0; i < nr; i++) {
		const uint8_t *from = data + (size_t)i * shape->block_size;
		struct content *content = &drive->contents[drive_page(drive, zone, block + i)];

		flash_media_commit(&drive->media, zone, block + i, 1, from, oob);
		*content = look(drive, from);
		content->id = ++drive->ids;
	}
	return 0;
}

int drive_finish(struct drive *drive, uint32_t zone)
{
	FlashImageZone *z = &drive->media.zones[zone];

	if (z->flags & (FLASH_ZONE_READ_ONLY | FLASH_ZONE_OFFLINE))
		return -EIO;
	z->flags |= FLASH_ZONE_FINISHED;
	return 0;
}

int drive_reset(struct drive *drive, uint32_t zone)
{
	if (drive->media.zones[zone].flags & (FLASH_ZONE_READ_ONLY | FLASH_ZONE_OFFLINE))
		return -EIO;
	flash_erase_begin(&drive->media, zone, 0);
	end_erase(drive, zone);
	return 0;
}

const struct content *drive_content(const struct drive *drive, uint32_t zone, uint32_t block)
{
	const FlashMedia *m = &drive->media;
	uint32_t page = drive_page(drive, zone, block);

	if (m->zones[zone].flags & FLASH_ZONE_OFFLINE)
		return NULL;
	if (block >= m->zones[zone].wp)
		return &nothing;
	return flash_media_bad(m, page, 1) ? NULL : &drive->contents[page];
}
