/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who writes to the drive, and the pause that waits for them: after a suspend without flush, and
 * before the image of a hibernation, nothing more may be written.
 *
 * The flag and the counters are of device.h; the counters are per CPU. Any context but for
 * mtftl_pause_set(), whose callers take turns: see target.h.
 */
#ifndef MTFTL_PAUSE_H
#define MTFTL_PAUSE_H

#include "device/device.h"

static inline bool mtftl_is_paused(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->device->paused);
}

/* For who began already, and ends before what it sends has landed. */
static inline void mtftl_send_hold(struct mtftl *ftl)
{
	mtftl_count(ftl, sending, 1);
}

static inline void mtftl_send_end(struct mtftl *ftl)
{
	mtftl_count(ftl, landed, 1);
}

/*
 * From before the look whether anything may be written to after the last write has landed, in
 * whatever context that is. False: nothing may be.
 */
static inline bool mtftl_send_begin(struct mtftl *ftl)
{
	mtftl_send_hold(ftl);
	/* Pairs with mtftl_pause_set(): it waits for us, or we see the flag. */
	smp_mb();
	if (likely(!mtftl_is_paused(ftl)))
		return true;
	mtftl_send_end(ftl);
	return false;
}

void mtftl_pause_set(struct mtftl *ftl, bool pause);
/* Those who began before the pause and have not ended send nothing more until it ends. */
void mtftl_pause_silence(struct mtftl *ftl);
bool mtftl_pause_is_reached(const struct mtftl *ftl);

#endif
