/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What writes to the drive, and the pause that waits for it: after a suspend without flush, and
 * before the image of a hibernation, nothing more may be written.
 *
 * Each sender counts itself, per CPU, and looks at the flag of the pause. A pause waits until all
 * senders have ended, but not for ever: the drive may keep a command. From then on senders wait
 * before they send the next one. The flag and the counters are in device.h. Any context.
 */
#ifndef MTFTL_PAUSE_H
#define MTFTL_PAUSE_H

#include "device/device.h"

/* A sender that has begun, and ends before its write has landed, counts that write. */
static inline void mtftl_send_hold(struct mtftl *ftl)
{
	mtftl_count(ftl, sending, 1);
}

static inline void mtftl_send_end(struct mtftl *ftl)
{
	mtftl_count(ftl, landed, 1);
}

/*
 * Call it before you look whether anything may be written, and mtftl_send_end() after the last
 * write has landed, in whatever context that is. False: nothing may be.
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

#endif
