/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A drive as its journal tells of it (emulator/hw/nvme/flash/model/journal.h): what is on flash, and
 * what is in its volatile buffer, at any place of the journal; and all that a power cut there may
 * leave. The image is the emulator's, and so is the code that changes it.
 *
 * A fork of the process that calls drive_private() has the drive to itself: what it does to it is
 * gone with it. One thread.
 */
#ifndef MTFTL_TESTS_DRIVE_H
#define MTFTL_TESTS_DRIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flash/model/media.h"

enum content_kind {
	CONTENT_ZEROES,
	CONTENT_STAMPED,	/* a whole block of the run */
	CONTENT_OTHER,
};

/* What a block of the drive is, known without looking at it. */
struct content {
	uint32_t id;		/* no two blocks that were written have the same */
	uint32_t lba;		/* of its stamp */
	uint32_t version;
	enum content_kind kind;
};

/* A block in the volatile buffer. */
struct held {
	const uint8_t *data;	/* in the journal; NULL: the buffer does not have the block */
	const uint8_t *oob;
	struct content content;
};

struct drive {
	FlashMedia media;
	uint64_t run;			/* of stamps */
	uint32_t unit_blocks;		/* of a program */
	uint32_t page_blocks;		/* of it, that are torn together */
	uint32_t ids;
	struct content *contents;	/* by block of the drive; of those below write pointers */
	struct held *held;		/* by block of the drive */
	uint32_t *first_held;		/* of a zone; past the end of all: none */
	uint32_t *end_held;
};

/* Exits if it cannot. @image: a file that is made, or an empty one. */
void drive_open(struct drive *drive, const FlashShape *shape, const char *image);
void drive_private(struct drive *drive);
void drive_save(const struct drive *drive, const char *path);

/* What the journal says next. Exits if that cannot be. */
void drive_apply(struct drive *drive, const FlashJournalRecord *record, const uint8_t *payload);
/* From now on it is known what stamps are of. */
void drive_set_run(struct drive *drive, uint64_t run);

/*
 * States that a cut may leave now, at most @most. Number 0 is what the emulator's own cut leaves.
 * drive_cut() leaves the one with that number, or, if there are more than @most, one that @seed and
 * the number choose. It returns how many choices that took: programs that began only in the cut,
 * pages that became whole, and erases that ended otherwise than in state 0.
 */
uint64_t drive_states(const struct drive *drive, uint64_t most);
unsigned int drive_cut(struct drive *drive, uint64_t number, uint64_t most, uint64_t seed);
/* Of all that is on flash. */
uint64_t drive_digest(const struct drive *drive);

/* Commands, after a cut: 0 or a negative errno. */
int drive_read(const struct drive *drive, uint32_t zone, uint32_t block, uint32_t nr, uint8_t *data,
	       uint8_t *oob);
int drive_write(struct drive *drive, uint32_t zone, uint32_t block, uint32_t nr, const uint8_t *data);
int drive_finish(struct drive *drive, uint32_t zone);
int drive_reset(struct drive *drive, uint32_t zone);
/* The content of a block that can be read; NULL: it cannot. */
const struct content *drive_content(const struct drive *drive, uint32_t zone, uint32_t block);

static inline uint32_t drive_page(const struct drive *drive, uint32_t zone, uint32_t block)
{
	return (uint32_t)(zone * drive->media.shape.zone_blocks + block);
}

#endif
