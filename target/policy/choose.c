// SPDX-License-Identifier: GPL-2.0
/*
 * Choices among many zones: see choose.h.
 */
#include "policy/choose.h"

void mtftl_chooser_init(struct mtftl_chooser *chooser, u32 nr_zones)
{
	const struct mtftl_worn none = { .zone = MTFTL_NO_ZONE };

	mtftl_assert(nr_zones && nr_zones < MTFTL_NO_ZONE, "%u zones", nr_zones);
	chooser->nr_zones = nr_zones;
	/* What is kept outlives a round, although each choice takes one. */
	chooser->part = nr_zones / (MTFTL_KEPT - 1) + 1;
	if (chooser->part < MTFTL_LOOKS)
		chooser->part = MTFTL_LOOKS;
	if (chooser->part > nr_zones)
		chooser->part = nr_zones;
	chooser->hand = 0;
	chooser->nr_kept = 0;
	chooser->worn[0] = none;
	chooser->worn[1] = none;
}

static bool is_better(const struct mtftl_seen *a, const struct mtftl_seen *b)
{
	return a->score > b->score || (a->score == b->score && a->before < b->before);
}

static void keep(struct mtftl_chooser *chooser, const struct mtftl_seen *seen)
{
	struct mtftl_seen *kept = chooser->kept;
	u32 at = chooser->nr_kept, i;

	mtftl_assert(at <= MTFTL_KEPT && seen->zone < chooser->nr_zones, "zone %u", seen->zone);
	if (!seen->score || (at == MTFTL_KEPT && !is_better(seen, &kept[at - 1])))
		return;
	for (i = 0; i < chooser->nr_kept; i++)
		if (kept[i].zone == seen->zone)
			return;
	if (at < MTFTL_KEPT)
		chooser->nr_kept++;
	else
		at--;
	for (; at && is_better(seen, &kept[at - 1]); at--)
		kept[at] = kept[at - 1];
	kept[at] = *seen;
}

static void note_wear(struct mtftl_worn *worn, const struct mtftl_seen *seen)
{
	if (worn->zone == MTFTL_NO_ZONE || seen->erase_count < worn->least) {
		worn->zone = seen->zone;
		worn->least = seen->erase_count;
	}
	if (seen->erase_count > worn->most)
		worn->most = seen->erase_count;
}

/* The next zone in turn. */
static void look_on(struct mtftl_chooser *chooser,
		    bool (*look)(void *data, u32 zone, struct mtftl_seen *seen), void *data)
{
	struct mtftl_seen seen = { .zone = chooser->hand };

	mtftl_assert(chooser->hand < chooser->nr_zones, "zone %u", chooser->hand);
	if (look(data, seen.zone, &seen)) {
		keep(chooser, &seen);
		note_wear(&chooser->worn[0], &seen);
	}
	if (++chooser->hand < chooser->nr_zones)
		return;
	chooser->hand = 0;
	chooser->worn[1] = chooser->worn[0];
	chooser->worn[0] = (struct mtftl_worn){ .zone = MTFTL_NO_ZONE };
}

u32 mtftl_choose(struct mtftl_chooser *chooser, bool whole,
		 bool (*look)(void *data, u32 zone, struct mtftl_seen *seen), void *data)
{
	u32 i, nr = chooser->nr_kept, most = whole ? chooser->nr_zones : chooser->part;

	mtftl_assert(nr <= MTFTL_KEPT && most <= chooser->nr_zones, "%u kept, %u of %u", nr, most,
		     chooser->nr_zones);
	/* Those that have been looked at again take the places of the first ones. */
	chooser->nr_kept = 0;
	for (i = 0; i < nr; i++) {
		struct mtftl_seen seen = { .zone = chooser->kept[i].zone };

		if (look(data, seen.zone, &seen))
			keep(chooser, &seen);
	}
	for (i = 0; i < most || (i < chooser->nr_zones && !chooser->nr_kept); i++)
		look_on(chooser, look, data);
	return chooser->nr_kept ? chooser->kept[0].zone : MTFTL_NO_ZONE;
}

u32 mtftl_choose_least_worn(const struct mtftl_chooser *chooser, u32 spread)
{
	const struct mtftl_worn *now = &chooser->worn[0], *last = &chooser->worn[1];
	u32 most = now->most > last->most ? now->most : last->most;

	if (now->zone == MTFTL_NO_ZONE ||
	    (last->zone != MTFTL_NO_ZONE && last->least <= now->least))
		now = last;
	if (now->zone == MTFTL_NO_ZONE || most - now->least <= spread)
		return MTFTL_NO_ZONE;
	mtftl_assert(most >= now->least, "zone %u: %u of %u", now->zone, now->least, most);
	return now->zone;
}
