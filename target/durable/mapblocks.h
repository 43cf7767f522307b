/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Map blocks: the map as a checkpoint has it in the log, block by block, and the directory that
 * says where each lies. See format/maplog.h, and docs/design/map-blocks.md for the reasons.
 *
 * Used by one checkpoint or one mount at a time: the lock of checkpoints protects it. All of it
 * sleeps. Writing allocates nothing.
 */
#ifndef MTFTL_MAPBLOCKS_H
#define MTFTL_MAPBLOCKS_H

#include "device/spread.h"
#include "durable/ckptlog.h"

struct mtftl_mapblocks;

/* NULL: no memory. */
struct mtftl_mapblocks *mtftl_mapblocks_alloc(struct mtftl *ftl);
void mtftl_mapblocks_free(struct mtftl_mapblocks *blocks);
u64 mtftl_mapblocks_bytes(const struct mtftl_mapblocks *blocks);
const struct mtftl_log_shape *mtftl_mapblocks_shape(const struct mtftl_mapblocks *blocks);

/*
 * Choose what the next checkpoint writes: what changed up to now, and what it has to carry over.
 * @all: what the directory says does not count, so it writes all of the map.
 */
void mtftl_mapblocks_plan(struct mtftl_mapblocks *blocks, const struct mtftl_log *log, bool all,
			  struct mtftl_log_plan *plan);
/* That, and then the directory, within the stream. On an error the next checkpoint writes all. */
int mtftl_mapblocks_write(struct mtftl_mapblocks *blocks, struct mtftl_ckpt_stream *stream);
int mtftl_mapblocks_write_directory(struct mtftl_mapblocks *blocks,
				    struct mtftl_ckpt_stream *stream);

/* Mounting. @tell: say what is wrong. */

/* Entries of the map from block @lba on; each is checked. */
int mtftl_mapblocks_load_entries(struct mtftl *ftl, u64 lba, const void *block, bool tell);
/* Block @index of the directory. */
void mtftl_mapblocks_load_directory(struct mtftl_mapblocks *blocks, u32 index, const void *block);
/*
 * All of it is there: check it, and read the map blocks. The stream goes from seat @first to seat
 * @head. *@span: zones up to that one that are needed.
 */
int mtftl_mapblocks_load(struct mtftl_mapblocks *blocks, struct mtftl_spread *spread, u32 first,
			 u32 head, u32 *span);

#endif
