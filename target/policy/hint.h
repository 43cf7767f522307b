/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hints of writers: how long a block will live, as the kernel counts it (enum rw_hint). A hint
 * takes the place of the life that intervals tell, see policy.h. Other values say nothing.
 */
#ifndef MTFTL_HINT_H
#define MTFTL_HINT_H

#include "lib/pure.h"

enum {
	MTFTL_HINT_SHORT = 2,
	MTFTL_HINT_MEDIUM,
	MTFTL_HINT_LONG,
	MTFTL_HINT_EXTREME,
};

static inline bool mtftl_hint_tells(u32 hint)
{
	return hint >= MTFTL_HINT_SHORT && hint <= MTFTL_HINT_EXTREME;
}

u32 mtftl_life_hinted(u32 hint, u32 device_in_zones);

#endif
