/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads: out of the buffers, or off the device, as the map says. Never waits; sends what a
 * caller plugged, which may sleep where the drive's queue does, but for REQ_NOWAIT.
 */
#ifndef MTFTL_READ_H
#define MTFTL_READ_H

#include <linux/bio.h>

#include "device/ftl.h"

/* From .map: what device-mapper has to do with the bio. */
int mtftl_read(struct mtftl *ftl, struct bio *bio);
/* The device has answered, in whatever context that is. */
void mtftl_read_end(struct mtftl *ftl, struct bio *bio, blk_status_t status);

#endif
