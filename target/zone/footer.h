/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What closes a zone: footer units up to its last block. No state of its own; the caller owns the
 * zone, which is not written to any more, and the buffer. Sleeps.
 */
#ifndef MTFTL_FOOTER_H
#define MTFTL_FOOTER_H

#include "zone/zones.h"

/* @footer: what the zone holds, NULL if that is not known; @buf: of MTFTL_BUFFER_ORDER. */
int mtftl_footer_write(struct mtftl_zone *zone, const struct mtftl_footer *footer, void *buf);

#endif
