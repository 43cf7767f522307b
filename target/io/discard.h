/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Discards and write-zeroes: they clear the map at once, and leave records that go to flash with
 * the next flush. mtftl_discard() never sleeps.
 */
#ifndef MTFTL_DISCARD_H
#define MTFTL_DISCARD_H

#include <linux/bio.h>

#include "device/ftl.h"

/* Completes the bio, now or later: one that finds no room for its record waits, and comes again. */
void mtftl_discard(struct mtftl *ftl, struct bio *bio);
/* There is room for records: serve the discards that wait, in order, as far as it lasts. */
void mtftl_discard_waiting(struct mtftl *ftl);

#endif
