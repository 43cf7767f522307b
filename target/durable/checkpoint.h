/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checkpoints: the map and where zones were written to, on zones set aside for two of them.
 * Written while users go on.
 *
 * checkpoints->lock: one at a time. All of it sleeps, and allocates nothing: a checkpoint may be
 * what memory is waiting for.
 */
#ifndef MTFTL_CHECKPOINT_H
#define MTFTL_CHECKPOINT_H

#include "device/spread.h"

int mtftl_checkpoints_alloc(struct mtftl *ftl);
/* None is taken by itself any more. */
void mtftl_checkpoints_stop(struct mtftl *ftl);
void mtftl_checkpoints_free(struct mtftl *ftl);
/* Those that were asked for by now are written. */
void mtftl_checkpoints_settle(struct mtftl *ftl);

/* Write one now. With @clean it says that nothing has been written since. */
int mtftl_checkpoint(struct mtftl *ftl, bool clean);
/* For a mount, before the device has users. -EINTR: a fatal signal is pending. */
int mtftl_checkpoint_mount(struct mtftl *ftl);

/* Mounting: the one that the log names, every block verified, into the map and the records. */
int mtftl_checkpoint_load(struct mtftl *ftl);
const struct mtftl_zone_record *mtftl_checkpoint_record(const struct mtftl *ftl, u32 zone);
u64 mtftl_checkpoint_bytes(const struct mtftl *ftl);
/* Its zones, and as many for the next one; from which zone on data lies. */
int mtftl_checkpoint_set_aside(struct mtftl *ftl, u32 *first_data);
/* In place of those that went bad, when it is known what the others hold. */
void mtftl_checkpoint_replace_bad(struct mtftl *ftl);
/* What a mount reads units by: its buffer is large, so it is made when the table is loaded. */
struct mtftl_scanner *mtftl_checkpoint_scanner(const struct mtftl *ftl);
/* By what it spreads its work over CPUs, likewise. */
struct mtftl_spread *mtftl_checkpoint_spread(const struct mtftl *ftl);
/* Of MTFTL_BUFFER_ORDER: checkpoints do not use it before the mount is done. */
void *mtftl_checkpoint_buf(const struct mtftl *ftl);

#endif
