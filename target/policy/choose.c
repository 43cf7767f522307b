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
	chooser->turn = 0;
}

void mtftl_choose_anew(struct mtftl_chooser *chooser)
{
	chooser->nr_kept = 0;
}

static bool is_better(const struct mtftl_seen *a, const struct mtftl_seen *b)
{
	return a->score > b->score || (a->score == b->score && a->before < b->before);
}

/* In the place of @at, or before it. */
static void put_in_order(struct mtftl_seen *kept, u32 at, const struct mtftl_seen *seen)
{
	for (; at && is_better(seen, &kept[at - 1]); at--)
		kept[at] = kept[at - 1];
	kept[at] = *seen;
}

static void keep(struct mtftl_chooser *chooser, const struct mtftl_seen *seen)
{
	struct mtftl_seen *kept = chooser->kept;
	u32 at = chooser->nr_kept, i;

	mtftl_assert(at <= MTFTL_KEPT && seen->zone < chooser->nr_zones, "zone %u", seen->zone);
	if (!seen->score || (at == MTFTL_KEPT && !is_better(seen, &kept[at - 1])))
		return;
	for (i = 0; i < chooser->nr_kept; i++) {
		if (kept[i].zone != seen->zone)
			continue;
		/* Blocks of it may have died between two looks. */
		if (is_better(seen, &kept[i]))
			put_in_order(kept, i, seen);
		return;
	}
	/* One of them is enough: should all of them have to wait, others are known. */
	if (at && seen->score == MTFTL_FIRST_OF_ALL && kept[0].score == seen->score) {
		if (is_better(seen, &kept[0]))
			kept[0] = *seen;
		return;
	}
	if (at < MTFTL_KEPT)
		chooser->nr_kept++;
	else
		at--;
	put_in_order(kept, at, seen);
}

static bool is_less_worn(const struct mtftl_worn *a, const struct mtftl_worn *b)
{
	if (a->zone == MTFTL_NO_ZONE || b->zone == MTFTL_NO_ZONE)
		return b->zone == MTFTL_NO_ZONE;
	return a->least < b->least || (a->least == b->least && a->before < b->before);
}

static void note_wear(struct mtftl_worn *worn, const struct mtftl_seen *seen)
{
	const struct mtftl_worn this = {
		.zone = seen->zone,
		.least = seen->erase_count,
		.before = seen->before,
		.most = worn->most > seen->erase_count ? worn->most : seen->erase_count,
	};

	/* It will be written to no more. */
	if (seen->score == MTFTL_FIRST_OF_ALL)
		return;
	if (is_less_worn(&this, worn))
		*worn = this;
	worn->most = this.most;
}

static void forget_worn(struct mtftl_worn *worn, u32 zone)
{
	if (worn->zone == zone)
		worn->zone = MTFTL_NO_ZONE;
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
	if (!chooser->nr_kept)
		most = chooser->nr_zones;
	for (i = 0; i < most; i++)
		look_on(chooser, look, data);
	return chooser->nr_kept ? chooser->kept[0].zone : MTFTL_NO_ZONE;
}

u32 mtftl_choose_for_wear(struct mtftl_chooser *chooser, u32 interval, u32 spread,
			  bool (*look)(void *data, u32 zone, struct mtftl_seen *seen), void *data)
{
	struct mtftl_worn *worn = chooser->worn;
	u32 i, most = worn[0].most > worn[1].most ? worn[0].most : worn[1].most;

	mtftl_assert(interval);
	if ((worn[0].zone == MTFTL_NO_ZONE && worn[1].zone == MTFTL_NO_ZONE) ||
	    ++chooser->turn % interval)
		return MTFTL_NO_ZONE;
	for (i = 0; i < 2; i++) {
		struct mtftl_worn least = worn[is_less_worn(&worn[1], &worn[0])];
		struct mtftl_seen seen = { .zone = least.zone };

		if (least.zone == MTFTL_NO_ZONE || most - least.least <= spread)
			break;
		forget_worn(&worn[0], least.zone);
		forget_worn(&worn[1], least.zone);
		/* It may have been taken since it was noted. */
		if (look(data, least.zone, &seen) && seen.erase_count == least.least &&
		    seen.score != MTFTL_FIRST_OF_ALL)
			return least.zone;
	}
	return MTFTL_NO_ZONE;
}
