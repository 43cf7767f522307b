// SPDX-License-Identifier: GPL-2.0
/*
 * Hints of writers: see hint.h. Pure.
 */
#include "policy/hint.h"

#include "policy/policy.h"

/* In octaves above device_in_zones: by-life has each of the first three in a class of its own. */
u32 mtftl_life_hinted(u32 hint, u32 device_in_zones)
{
	static const s32 lives[] = { -4, -1, 0, 2 };
	s32 life;

	mtftl_assert(mtftl_hint_tells(hint), "%u", hint);
	life = (s32)mtftl_life(device_in_zones) +
	       lives[hint - MTFTL_HINT_SHORT] * (s32)MTFTL_OCTAVE;
	return life > 0 ? life : 0;
}
