/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A mount's work, spread over CPUs: the caller does its share, and workers help it. The caller
 * waits for parts that were begun only. So it comes to the end alone if no worker can be made,
 * because memory waits for this device.
 */
#ifndef MTFTL_SPREAD_H
#define MTFTL_SPREAD_H

#include "device/ftl.h"

struct mtftl_spread;

/* NULL: no memory. */
struct mtftl_spread *mtftl_spread_alloc(struct mtftl *ftl);
void mtftl_spread_free(struct mtftl_spread *spread);
/* No more is to be done: gives back the memory of buffers. */
void mtftl_spread_shrink(struct mtftl_spread *spread);

/*
 * Calls @part for each number below @nr, in any order. It may sleep, and must not recurse. No part
 * begins after the first error, which is returned. -EINTR: a fatal signal is pending. All parts
 * have ended by then. One caller at a time. @buf: of MTFTL_BUFFER_ORDER, for the part alone.
 */
typedef int (*mtftl_part_fn)(void *private, u32 number, void *buf);
int mtftl_spread(struct mtftl_spread *spread, u32 nr, mtftl_part_fn part, void *private);

#endif
