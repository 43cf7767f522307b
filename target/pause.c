// SPDX-License-Identifier: GPL-2.0
/*
 * Who writes, and the pause that waits for them: see pause.h.
 */
#include "pause.h"

void mtftl_pause_set(struct mtftl *ftl, bool pause)
{
	WRITE_ONCE(ftl->device->paused, pause);
	/* Pairs with mtftl_send_begin(). */
	smp_mb();
}

/* Nobody is at it, and as there is a pause, nobody will be. */
bool mtftl_pause_is_reached(const struct mtftl *ftl)
{
	u64 sending = 0, landed = 0;
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		landed += READ_ONCE(per_cpu_ptr(ftl->device->stats, cpu)->landed);
	/* In this order: who comes and goes meanwhile must not stand for one who stays. */
	smp_rmb();
	for_each_possible_cpu(cpu)
		sending += READ_ONCE(per_cpu_ptr(ftl->device->stats, cpu)->sending);
	return sending == landed;
}
