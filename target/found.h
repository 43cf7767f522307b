/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a mount finds that is newer than the checkpoint: units and range records, and the numbers
 * that a zone has shown. A mount's own; sleeps, takes memory.
 *
 * The media say how much there is, and may say anything. So only so many bytes are kept at once. If
 * there is more, the highest numbers are left out, and the mount looks at its zones again for them
 * when it has applied the others. A log of legal length fits at once: see recover.c.
 */
#ifndef MTFTL_FOUND_H
#define MTFTL_FOUND_H

#include "ftl.h"

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

/* Keeps @limit bytes at most; only what has a number above @after. */
struct mtftl_finds *mtftl_finds_alloc(u64 limit, u64 after);
void mtftl_finds_free(struct mtftl_finds *finds);

/* A unit with entries or ranges, whose payload begins at @page. */
int mtftl_finds_add(struct mtftl_finds *finds, const void *header,
		    const struct mtftl_unit_info *info, u32 page);
u64 mtftl_finds_nr(const struct mtftl_finds *finds);
/* In any order. Valid until one is added. */
struct mtftl_found *mtftl_finds_at(struct mtftl_finds *finds, u64 index);

/* -EINTR: a fatal signal is pending. */
int mtftl_finds_sort(struct mtftl_finds *finds);
/* After sorting: the one with the lowest number, and behind it those with the same. NULL: no more. */
struct mtftl_found *mtftl_finds_next(struct mtftl_finds *finds);
/* Forget all. True: some were left out, and are to be added now. */
bool mtftl_finds_go_on(struct mtftl_finds *finds);

/* A set of numbers. */
struct mtftl_numbers;

struct mtftl_numbers *mtftl_numbers_alloc(void);
void mtftl_numbers_free(struct mtftl_numbers *numbers);
void mtftl_numbers_clear(struct mtftl_numbers *numbers);
int mtftl_numbers_add(struct mtftl_numbers *numbers, u64 number);
bool mtftl_numbers_has(const struct mtftl_numbers *numbers, u64 number);

#endif
