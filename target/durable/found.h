/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a mount finds that is newer than the checkpoint: units and range records, and the numbers
 * that a zone has shown. Used by one mount at a time; may sleep and allocates memory.
 *
 * The media say how much there is, and may be wrong. So only a limited number of bytes is kept. If
 * there is more, the records with the highest numbers are left out. The mount reads its zones again
 * for them when it has applied the others. A log of legal length fits at once: see recover.c.
 */
#ifndef MTFTL_FOUND_H
#define MTFTL_FOUND_H

#include "device/ftl.h"

struct mtftl_found {
	u64 seq;
	union {
		u32 page;	/* of a unit: of its first payload block */
		u32 lba;	/* of a range record */
	};
	u16 nr;			/* entries, blocks */
	u8 type;		/* of the unit that it is or was in */
	u8 kind;		/* of a range record */
	u32 *lbas;		/* of a unit; MTFTL_NO_LBA: does not count */
	struct mtftl_found *same;	/* the next one with this number */
};

struct mtftl_finds;

/*
 * Keeps at most @limit bytes, and only records with numbers above @after. All of them together may
 * take @most bytes, whether they are kept or left out: so @most / @limit bounds how often the zones
 * are read.
 */
struct mtftl_finds *mtftl_finds_alloc(u64 limit, u64 most, u64 after);
void mtftl_finds_free(struct mtftl_finds *finds);

/*
 * A unit with entries or ranges, whose payload begins at @page. -E2BIG: its number is in more
 * places than any is written to. -EOVERFLOW: there is more than @most.
 */
int mtftl_finds_add(struct mtftl_finds *finds, const void *header,
		    const struct mtftl_unit_info *info, u32 page);
u64 mtftl_finds_nr(const struct mtftl_finds *finds);
/* In any order. Valid until one is added. */
struct mtftl_found *mtftl_finds_at(struct mtftl_finds *finds, u64 index);

/* -EINTR: a fatal signal is pending. */
int mtftl_finds_sort(struct mtftl_finds *finds);
/* After sorting: the record with the lowest number; ->same leads to its equals. NULL: the end. */
struct mtftl_found *mtftl_finds_next(struct mtftl_finds *finds);
/* Forget all. True: some records were left out, and have to be added now. */
bool mtftl_finds_forget(struct mtftl_finds *finds);

/* A set of numbers. */
struct mtftl_numbers;

struct mtftl_numbers *mtftl_numbers_alloc(void);
void mtftl_numbers_free(struct mtftl_numbers *numbers);
void mtftl_numbers_clear(struct mtftl_numbers *numbers);
int mtftl_numbers_add(struct mtftl_numbers *numbers, u64 number);
bool mtftl_numbers_has(const struct mtftl_numbers *numbers, u64 number);

#endif
