/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads units, one after the other, wherever their headers are: in a block of their own or in the
 * blocks' metadata. A scanner belongs to its one user. Sleeps; reading allocates nothing.
 */
#ifndef MTFTL_SCAN_H
#define MTFTL_SCAN_H

#include "zone/zones.h"

struct mtftl_scanner;

struct mtftl_scanner *mtftl_scanner_alloc(const struct mtftl *ftl, gfp_t gfp);
void mtftl_scanner_free(struct mtftl_scanner *scanner);

/*
 * The unit at block @at of a zone that is not written to. 1: it is there; 0: none is, or the medium
 * says that it cannot be read; or an error that may pass. @header: a block. A unit without a header
 * may come in several parts.
 */
int mtftl_scan_unit(struct mtftl_scanner *scanner, struct mtftl_zone *zone, u32 at, void *header,
		    struct mtftl_unit_info *info);

#endif
