/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Resets of collected zones, behind GC's back: no write ever waits for one. A part of GC, which
 * keeps it.
 */
#ifndef MTFTL_RESET_H
#define MTFTL_RESET_H

#include "device/ftl.h"

struct mtftl_resets *mtftl_resets_alloc(struct mtftl *ftl);
void mtftl_resets_free(struct mtftl_resets *resets);

/* Zones were put into the state RESETTING. Any context. */
void mtftl_resets_kick(struct mtftl_resets *resets);
/* Until none is at work. Those that are refused from now on stay as they are. */
void mtftl_resets_settle(struct mtftl_resets *resets);

/* Zones wait for a reset that could not be tried: for GC, which tries again. */
bool mtftl_resets_failed(const struct mtftl_resets *resets);
void mtftl_resets_retry(struct mtftl_resets *resets, void *block);
/* GC stops: do not wait for users. */
void mtftl_resets_hurry(struct mtftl_resets *resets, bool hurry);

#endif
