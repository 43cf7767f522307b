/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Garbage collection: what is valid moves out of zones that hold little, so that these can be
 * reset. Threads of its own do it when zones are short: see mtftl_space_kick_gc(). These sleep.
 */
#ifndef MTFTL_GC_H
#define MTFTL_GC_H

#include "device/ftl.h"

int mtftl_gc_alloc(struct mtftl *ftl);
void mtftl_gc_start(struct mtftl *ftl);
/* A pause is over. */
void mtftl_gc_resume(struct mtftl *ftl);
/* No unit of GC is in flight and no zone is being reset when this returns. */
void mtftl_gc_stop(struct mtftl *ftl);
void mtftl_gc_free(struct mtftl *ftl);

/* Collect one zone, even if there are enough free ones. */
void mtftl_gc_force(struct mtftl *ftl);

#endif
