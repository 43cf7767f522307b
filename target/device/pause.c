// SPDX-License-Identifier: GPL-2.0
/*
 * Who writes, and the pause that waits for them: see pause.h.
 */
#include "device/pause.h"

void mtftl_pause_set(struct mtftl *ftl, bool pause)
{
	WRITE_ONCE(ftl->device->paused, pause);
	/* Pairs with mtftl_send_begin(). */
	smp_mb();
	if (pause)
		return;
	WRITE_ONCE(ftl->device->silent, false);
	wake_up_all(&ftl->device->unsilenced);
}

void mtftl_pause_silence(struct mtftl *ftl)
{
	WRITE_ONCE(ftl->device->silent, true);
}

/* Nobody is at it, and as there is a pause, nobody will be. */
bool mtftl_pause_is_reached(const struct mtftl *ftl)
{
	return mtftl_stats_are_even(ftl, offsetof(struct mtftl_cpu_stats, sending),
				    offsetof(struct mtftl_cpu_stats, landed));
}
