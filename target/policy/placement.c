// SPDX-License-Identifier: GPL-2.0
/*
 * Placement: which blocks lie together, chosen by name on the table line: see policy.h. Pure.
 */
#include "policy/policy.h"

/*
 * by-age: a block whose last interval was short against the time in which all is written once will
 * be written again soon; the longer one has lived, the longer it will.
 * by-life: one interval says little, they scatter by octaves. What the zone's blocks were taken for
 * when they were put there says more, and their next interval corrects it.
 */
static const struct mtftl_placement placements[] = {
	{ "none",	1, 0, MTFTL_INTERVALS, {}, {} },
	{ "hot-cold",	1, 1, MTFTL_INTERVALS, {}, {} },
	{ "by-age",	2, 3, MTFTL_INTERVALS, { -3 }, { -1, 1 } },
	{ "by-life",	3, 3, 5, { -3, 0 }, { -2, 1 } },
};

const struct mtftl_placement *mtftl_placement(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(placements); i++)
		if (!strcmp(placements[i].name, name))
			return &placements[i];
	return NULL;
}

const char *mtftl_placement_name(u32 index)
{
	return index < ARRAY_SIZE(placements) ? placements[index].name : NULL;
}

/* Ages are whole: at half of one more the youngest has its place in the scale. */
u32 mtftl_life(u32 age)
{
	u32 twice = 2 * (age < 1u << 30 ? age : 1u << 30) + 1, octave = fls(twice) - 1;

	mtftl_assert(twice >> octave == 1, "%u", twice);
	return octave * MTFTL_OCTAVE +
	       (u32)(((u64)(twice - (1u << octave)) * MTFTL_OCTAVE) >> octave);
}

u32 mtftl_life_written(const struct mtftl_placement *placement, u32 life, u32 age)
{
	s32 change = (s32)(mtftl_life(age) - life) * (s32)placement->last;

	mtftl_assert(placement->last && placement->last <= MTFTL_INTERVALS, "%u parts",
		     placement->last);
	return life + change / (s32)MTFTL_INTERVALS;
}

u32 mtftl_life_moved(u32 life, u32 age)
{
	u32 so_far = mtftl_life(age);

	return so_far > life ? so_far : life;
}

u32 mtftl_life_new(u32 device_in_zones)
{
	return mtftl_life(device_in_zones) + 2 * MTFTL_OCTAVE;
}

static u32 class_of(const s32 *begins, u32 wanted, u32 classes, u32 life, u32 device_in_zones)
{
	s32 above = (s32)(life - mtftl_life(device_in_zones));
	u32 class = 0, first = wanted > classes ? wanted - classes : 0;

	while (first + class + 1 < wanted &&
	       above >= begins[first + class] * (s32)MTFTL_OCTAVE)
		class++;
	mtftl_assert(!class || class < classes, "class %u of %u", class, classes);
	return class;
}

u32 mtftl_class_written(const struct mtftl_placement *placement, u32 life, u32 device_in_zones,
			u32 classes)
{
	return class_of(placement->written, placement->user_classes, classes, life,
			device_in_zones);
}

u32 mtftl_class_moved(const struct mtftl_placement *placement, u32 life, u32 device_in_zones,
		      u32 classes)
{
	return class_of(placement->moved, placement->gc_classes, classes, life, device_in_zones);
}
