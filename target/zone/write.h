/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A write unit on its way to flash: memory, bio, completion, and another try in another zone when
 * the device fails.
 *
 * A unit belongs to the code that composes it until mtftl_write_submit(); from then to its
 * completion, which may be in interrupt context, to the bio. Its owner hears of two things: it is
 * written, and it is done.
 */
#ifndef MTFTL_WRITE_H
#define MTFTL_WRITE_H

#include <linux/bio.h>

#include "device/meta.h"
#include "zone/stream.h"

struct mtftl_write;

struct mtftl_write_owner {
	/* Its blocks lie from @page on: the map learns it while GC still leaves the zone alone. */
	void (*written)(struct mtftl_write *unit, u32 page);
	/* The unit is its owner's again. An error: nothing could help. */
	void (*done)(struct mtftl_write *unit, blk_status_t status);
};

struct mtftl_write_entry {
	u32 lba;
	u32 from;		/* map value that it replaces: a slot, or GC's old page */
	u32 crc;		/* of its data; of GC's, as the unit before said */
	bool summed;		/* it is known */
	void *data;
};

struct mtftl_write {
	struct mtftl *ftl;
	const struct mtftl_write_owner *owner;
	void *private;			/* the owner's */
	struct list_head list;		/* free: the owner's; or to be written again */
	struct mtftl_extent place;
	u64 seq;
	enum mtftl_unit_type type;
	u16 lane;			/* for the header */
	u16 nr;
	u16 max;
	bool through;			/* FUA: when it is done it is on flash */
	unsigned long failures;		/* mtftl_seq_failures() when it was sent */
	u32 born;			/* by the map's clock: when users wrote it */
	u32 life;			/* of its blocks, see policy.h */
	void *header;			/* or all its blocks' metadata */
	u64 *lbas;			/* for the footer */
	struct bio bio;
	struct mtftl_meta meta;
	struct bio_vec *vecs;
	struct mtftl_write_entry entries[];
};

int mtftl_writes_alloc(struct mtftl *ftl);
/* On return all units have landed and completed: what completions use may be freed. */
void mtftl_writes_settle(struct mtftl *ftl);
void mtftl_writes_free(struct mtftl *ftl);

/* For @max blocks at most; on @node, or NUMA_NO_NODE. */
struct mtftl_write *mtftl_write_alloc(struct mtftl *ftl, unsigned int max, int node,
				      const struct mtftl_write_owner *owner, void *private);
void mtftl_write_free(struct mtftl_write *unit);

void mtftl_write_start(struct mtftl_write *unit, enum mtftl_unit_type type, u64 seq);
/* Of a block, for its unit. */
u32 mtftl_write_checksum(const struct mtftl *ftl, const void *data);
/* @crc: of the data; NULL: it is not known yet. */
void mtftl_write_add(struct mtftl_write *unit, u32 lba, u32 from, void *data, const u32 *crc);
/* Its place in the stream, which is locked. */
void mtftl_write_take_place(struct mtftl_write *unit, struct mtftl_stream *stream);
/* Header and checksums, once: a unit that is written again keeps them, and its number. */
void mtftl_write_compose(struct mtftl_write *unit);
void mtftl_write_submit(struct mtftl_write *unit);

#endif
