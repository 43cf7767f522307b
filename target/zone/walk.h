/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a zone holds, as its footer or its headers say. No state of its own; the caller owns the
 * zone, which is not written to, and the buffers. Sleeps, allocates nothing.
 */
#ifndef MTFTL_WALK_H
#define MTFTL_WALK_H

#include "zone/scan.h"

/*
 * The footer of a zone, in two steps. 1: it is there; 0: none that verifies is; or an error that
 * may pass. The tail is in the zone's last block. Its list, of footer_blocks, is read into @stream.
 * @buf and @stream as below.
 */
int mtftl_walk_tail(struct mtftl_zone *zone, void *buf, struct mtftl_tail_info *tail);
int mtftl_walk_footer(struct mtftl_zone *zone, void *buf, void *stream,
		      const struct mtftl_tail_info *tail);

/* An entry of the unit that begins at page @header, or a unit of ranges. */
typedef void (*mtftl_walk_fn)(void *private, enum mtftl_unit_type type, u32 header, u32 index,
			      u64 lba);

/*
 * Every block that units of a zone hold. They come from the footer, which is read into @stream, or
 * from the headers if it does not verify. False: what cannot be read is left out. @buf: of
 * MTFTL_BUFFER_ORDER; @stream: mtftl_footer_stream_blocks().
 */
bool mtftl_zone_walk(struct mtftl_zone *zone, struct mtftl_scanner *scanner, void *buf,
		     void *stream, mtftl_walk_fn block, void *private);

#endif
