// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of the policies: budget of open zones, victims, rate of users, blocks in order.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/choose.h"
#include "policy/hint.h"
#include "policy/policy.h"
#include "zone/follow.h"

static int budget(u32 limit, u32 lanes, u32 nr_zones, struct mtftl_budget *b)
{
	return mtftl_budget(limit, lanes, nr_zones, mtftl_placement("by-age"), b);
}

static void every_class_has_a_stream(const struct mtftl_budget *b)
{
	u32 class;

	for (class = 0; class < b->user_classes; class++)
		assert_true(mtftl_budget_first(b, class) < mtftl_budget_first(b, class + 1));
	assert_int_equal(mtftl_budget_first(b, 0), 0);
	assert_int_equal(mtftl_budget_first(b, b->user_classes), b->user_streams);
}

/* Whatever the limits are: something for each stream, and never more than there is. */
static void budget_fits_every_limit(void **state)
{
	static const u32 zones[] = { 16, 32, 128, 1024, 65536 };
	struct mtftl_budget b;
	u32 limit, lanes, i;

	(void)state;
	for (i = 0; i < sizeof(zones) / sizeof(zones[0]); i++)
		for (limit = MTFTL_MIN_OPEN_ZONES; limit < 300; limit++)
			for (lanes = 1; lanes <= 256; lanes++) {
				assert_int_equal(budget(limit, lanes, zones[i], &b), 0);
				assert_true(b.data_zones >= 1);
				/* Superblock log and two checkpoints. */
				assert_true(b.data_zones + 3 <= limit);
				assert_true(b.user_classes >= 1);
				assert_true(b.user_streams >= b.user_classes);
				assert_true(b.gc_streams >= 1);
				assert_true(b.gc_shares || b.user_streams + b.gc_streams <=
							   b.data_zones);
				every_class_has_a_stream(&b);
			}
}

/* With one stream two users' blocks in order lie in one zone, in turn: on the same few dies. */
static void writers_in_order_have_two_streams(void **state)
{
	static const u32 zones[] = { 96, 128, 1024, 65536 };
	static const char *const names[] = { "none", "hot-cold", "by-age", "by-life" };
	struct mtftl_budget b;
	u32 limit, lanes, i, n;

	(void)state;
	for (n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		for (i = 0; i < sizeof(zones) / sizeof(zones[0]); i++)
			for (limit = 0; limit < 40; limit = limit ? limit + 1 : 8)
				for (lanes = 1; lanes <= 16; lanes++) {
					if (mtftl_budget(limit, lanes, zones[i], mtftl_placement(names[n]),
							 &b) || b.user_streams < 3)
						continue;
					assert_true(mtftl_budget_first(&b, b.user_classes) -
						    mtftl_budget_first(&b, b.user_classes - 1) >= 2);
				}
	/* Lanes are few, the drive is not. */
	assert_int_equal(mtftl_budget(0, 1, 1024, mtftl_placement("by-life"), &b), 0);
	assert_int_equal(b.user_classes, 3);
	assert_int_equal(b.user_streams, 4);
}

static void budget_refuses_less_than_four(void **state)
{
	struct mtftl_budget b;
	u32 limit;

	(void)state;
	for (limit = 1; limit < MTFTL_MIN_OPEN_ZONES; limit++)
		assert_int_equal(budget(limit, 1, 1024, &b), -EINVAL);
}

static void budget_shares_few_zones_out(void **state)
{
	struct mtftl_budget b;

	(void)state;
	assert_int_equal(mtftl_budget(0, 8, 1024, mtftl_placement("hot-cold"), &b), 0);
	assert_int_equal(b.user_streams, 8);
	assert_int_equal(b.gc_streams, 1);
	assert_int_equal(budget(0, 8, 1024, &b), 0);
	/* Each lane has a zone of each class. */
	assert_int_equal(b.user_streams, 16);
	assert_int_equal(b.user_classes, 2);
	assert_int_equal(b.gc_streams, 3);
	assert_false(b.gc_shares);
	assert_true(b.data_zones > 19);
	/* Not so many here, each holds free space back: one a lane and one for GC. */
	assert_int_equal(budget(0, 8, 128, &b), 0);
	assert_int_equal(b.user_streams + b.gc_streams, 9);
	/* One lane has classes too, where the device is large enough. */
	assert_int_equal(budget(0, 1, 1024, &b), 0);
	assert_int_equal(b.user_streams + b.gc_streams, 6);
	assert_int_equal(b.user_classes, 2);
	assert_int_equal(budget(0, 1, 32, &b), 0);
	assert_int_equal(b.user_streams + b.gc_streams, 2);
	assert_int_equal(mtftl_budget(0, 4, 1024, mtftl_placement("none"), &b), 0);
	assert_int_equal(b.user_classes, 1);
	assert_int_equal(b.gc_streams, 1);
	assert_int_equal(budget(4, 8, 1024, &b), 0);
	assert_int_equal(b.user_streams, 1);
	assert_int_equal(b.user_classes, 1);
	assert_true(b.gc_shares);
}

/* What few zones or few that may be open leave: classes first, then streams of their own. */
static void budget_of_small_drives(void **state)
{
	static const struct {
		const char *placement;
		u32 limit, lanes, nr_zones, data_zones, gc_streams, user_streams, user_classes;
	} rows[] = {
		/* An eighth of the zones is open at most. */
		{ "by-life", 0, 8, 7, 1, 1, 1, 1 },
		{ "by-life", 0, 8, 16, 2, 1, 1, 1 },
		{ "by-life", 0, 8, 31, 3, 1, 2, 1 },
		{ "by-age", 0, 8, 32, 4, 1, 3, 1 },
		{ "by-life", 0, 1, 32, 4, 1, 1, 1 },
		/* A class for each 16 zones; the hottest ones are one if they had no more than that. */
		{ "by-life", 0, 1, 47, 4, 1, 1, 1 },
		{ "by-life", 0, 1, 48, 6, 1, 2, 2 },
		{ "by-life", 0, 8, 48, 6, 2, 4, 1 },
		{ "by-life", 0, 8, 64, 8, 2, 6, 2 },
		{ "by-life", 0, 1, 80, 10, 2, 3, 2 },
		{ "by-life", 0, 8, 97, 12, 3, 6, 3 },
		/* The coldest one has two streams if there are zones for one class more. */
		{ "by-life", 0, 1, 97, 12, 3, 3, 2 },
		{ "by-life", 0, 1, 128, 14, 3, 4, 3 },
		/* As many may be closing. */
		{ "by-life", 0, 2, 200, 18, 3, 6, 3 },
		{ "by-life", 0, 8, 200, 18, 3, 6, 3 },
		{ "by-life", 0, 8, 1000, 54, 3, 24, 3 },
		{ "by-life", 14, 8, 1000, 11, 3, 6, 3 },
		{ "by-life", 14, 8, 16, 2, 1, 1, 1 },
		{ "by-life", 8, 8, 200, 5, 2, 3, 2 },
		{ "by-life", 5, 8, 200, 2, 1, 1, 1 },
		{ "hot-cold", 11, 8, 1000, 8, 1, 7, 1 },
		{ "hot-cold", 11, 1, 48, 6, 1, 2, 1 },
	};
	struct mtftl_budget b;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(mtftl_budget(rows[i].limit, rows[i].lanes, rows[i].nr_zones,
					      mtftl_placement(rows[i].placement), &b), 0);
		assert_int_equal(b.data_zones, rows[i].data_zones);
		assert_int_equal(b.gc_streams, rows[i].gc_streams);
		assert_int_equal(b.user_streams, rows[i].user_streams);
		assert_int_equal(b.user_classes, rows[i].user_classes);
		assert_int_equal(b.gc_shares, b.data_zones == 1);
	}
}

static u64 score(const char *name, u32 valid, u64 age)
{
	struct mtftl_candidate zone = { .valid = valid, .capacity = 1000, .age = age };
	const struct mtftl_victim_policy *policy = mtftl_victim_policy(name);

	assert_non_null(policy);
	return policy->score(&zone);
}

static void greedy_looks_at_what_is_valid_alone(void **state)
{
	(void)state;
	assert_true(score("greedy", 100, 1) > score("greedy", 101, 1000000));
	assert_int_equal(score("greedy", 1000, 5), 0);
}

static void cost_benefit_prefers_the_old(void **state)
{
	(void)state;
	assert_true(score("cost-benefit", 500, 1000) > score("cost-benefit", 500, 10));
	assert_true(score("cost-benefit", 700, 1000) > score("cost-benefit", 300, 10));
	assert_true(score("cost-benefit", 300, 1000) > score("cost-benefit", 700, 1000));
	/* Nothing to gain, however old: never a victim. And no overflow. */
	assert_int_equal(score("cost-benefit", 1000, UINT64_MAX), 0);
	assert_true(score("cost-benefit", 0, UINT64_MAX) > score("cost-benefit", 1, UINT64_MAX));
	assert_int_equal(score("cost-benefit", 0, UINT64_MAX), 1000 * ((1ull << 31) + 1));
	assert_int_equal(score("cost-benefit", 500, 1000), 500 * 1001 / 1001);
	/* What has just become full is worth it, if nothing better is there. */
	assert_int_equal(score("cost-benefit", 999, 0), 1);
	assert_int_equal(score("cost-benefit", 1000, 0), 0);
}

/* Of a block that was new, and is written again so long after. */
static u32 written(const char *name, u32 age, u32 turn)
{
	const struct mtftl_placement *placement = mtftl_placement(name);
	u32 life = mtftl_life_written(placement, mtftl_life_new(turn), age);

	return mtftl_class_written(placement, life, turn, placement->user_classes);
}

static u32 moved(const char *name, u32 age, u32 turn)
{
	return mtftl_class_moved(mtftl_placement(name), mtftl_life_moved(0, age), turn,
				 MTFTL_MAX_CLASSES);
}

/* The older the colder, and no class that there is no stream for; none where all are alike. */
static void placement_follows_age(void **state)
{
	u32 age, last = 0, class;

	(void)state;
	assert_int_equal(written("by-age", 0, 80), 0);
	assert_int_equal(written("by-age", 9, 80), 0);
	assert_int_equal(written("by-age", 10, 80), 1);
	for (age = 0; age < 1000; age++) {
		class = moved("by-age", age, 80);
		assert_true(class >= last && class < mtftl_placement("by-age")->gc_classes);
		last = class;
	}
	assert_int_equal(last, mtftl_placement("by-age")->gc_classes - 1);
	assert_int_equal(written("by-age", UINT32_MAX, 80), 1);
	assert_int_equal(moved("by-age", UINT32_MAX, UINT32_MAX), 1);
	assert_int_equal(moved("hot-cold", 1000, 80), 0);
	assert_int_equal(written("none", 1000, 80), 0);
}

static void lives_are_logarithms(void **state)
{
	u32 age;

	(void)state;
	assert_int_equal(mtftl_life(0), 0);
	for (age = 1; age < 100000; age++) {
		double octaves = log2(2.0 * age + 1);

		assert_true(mtftl_life(age) >= mtftl_life(age - 1));
		assert_true(fabs(mtftl_life(age) - octaves * MTFTL_OCTAVE) < MTFTL_OCTAVE / 8);
	}
	assert_true(mtftl_life(UINT32_MAX) <= UINT16_MAX);
	assert_true(mtftl_life_new(UINT32_MAX) <= UINT16_MAX);
}

/* One interval of another length moves no block; many of them do, in both directions. */
static void a_life_remembers(void **state)
{
	const struct mtftl_placement *by_life = mtftl_placement("by-life");
	u32 turn = 400, life, hot = mtftl_life(1), cold = mtftl_life(turn * 2), i;

	(void)state;
	life = mtftl_life_written(by_life, cold, 100);
	assert_int_equal(mtftl_class_written(by_life, life, turn, 3), by_life->user_classes - 1);
	life = mtftl_life_written(by_life, hot, turn);
	assert_int_equal(mtftl_class_written(by_life, life, turn, 3), 0);
	for (i = 0, life = cold; i < 10; i++)
		life = mtftl_life_written(by_life, life, 1);
	assert_int_equal(mtftl_class_written(by_life, life, turn, 3), 0);
	for (i = 0, life = hot; i < 10; i++)
		life = mtftl_life_written(by_life, life, turn * 2);
	assert_int_equal(mtftl_class_written(by_life, life, turn, 3), by_life->user_classes - 1);
	/* What GC finds has lived at least so long. */
	assert_int_equal(mtftl_life_moved(hot, turn), mtftl_life(turn));
	assert_int_equal(mtftl_life_moved(cold, 1), cold);
}

/* With fewer the last one is as before; with one all are alike. */
static void cold_blocks_keep_their_class(void **state)
{
	const struct mtftl_placement *by_life = mtftl_placement("by-life");
	u32 life, turn = 400;

	(void)state;
	for (life = 0; life < mtftl_life(8 * turn); life++) {
		bool cold = mtftl_class_written(by_life, life, turn, 3) == 2;

		assert_int_equal(mtftl_class_written(by_life, life, turn, 2), cold);
		assert_int_equal(mtftl_class_written(by_life, life, turn, 1), 0);
		cold = mtftl_class_moved(by_life, life, turn, 3) == 2;
		assert_int_equal(mtftl_class_moved(by_life, life, turn, 2), cold);
		assert_int_equal(mtftl_class_moved(by_life, life, turn, 1), 0);
		assert_int_equal(mtftl_class_moved(mtftl_placement("none"), life, turn, 1), 0);
	}
}

/* What is said to live longer never gets a class before what is said to live less long. */
static void hints_are_classes(void **state)
{
	const struct mtftl_placement *by_life = mtftl_placement("by-life");
	u32 turns[] = { 1, 40, 400, UINT32_MAX }, hint, i;

	(void)state;
	for (hint = 0; hint < 300; hint++)
		assert_int_equal(mtftl_hint_tells(hint), hint >= 2 && hint <= 5);
	for (i = 0; i < ARRAY_SIZE(turns); i++) {
		for (hint = MTFTL_HINT_SHORT; hint <= MTFTL_HINT_EXTREME; hint++) {
			u32 life = mtftl_life_hinted(hint, turns[i]);

			assert_true(life <= UINT16_MAX);
			assert_true(hint == MTFTL_HINT_SHORT ||
				    life >= mtftl_life_hinted(hint - 1, turns[i]));
			assert_int_equal(mtftl_class_written(mtftl_placement("none"), life,
							     turns[i], 1), 0);
		}
	}
	for (i = 0; i < 4; i++) {
		static const u32 users[] = { 0, 1, 2, 2 }, gc[] = { 0, 1, 1, 2 };
		u32 life = mtftl_life_hinted(MTFTL_HINT_SHORT + i, 400);

		assert_int_equal(mtftl_class_written(by_life, life, 400, 3), users[i]);
		assert_int_equal(mtftl_class_moved(by_life, life, 400, 3), gc[i]);
		assert_int_equal(mtftl_class_written(mtftl_placement("by-age"), life, 400, 2), i > 0);
	}
	assert_int_equal(mtftl_life_hinted(MTFTL_HINT_EXTREME, 400), mtftl_life_new(400));
}

/* Full zones whose blocks die, of which one at a time is taken, and that others fill again. */

#define CHOSEN_CAPACITY	1000u

struct full {
	u32 valid, erase_count;
	bool worn_out;
	u64 since;		/* 0: not full */
	u64 seen;		/* its score at the last look */
	u32 choice;		/* of that look */
};

struct history {
	struct full *zones;
	struct mtftl_chooser chooser;
	const struct mtftl_victim_policy *policy;
	u64 now;
	u32 nr, choice, looks;
	bool scarce;		/* no worn-out zone may be taken */
};

static u64 score_of(const struct history *history, u32 zone)
{
	const struct full *full = &history->zones[zone];
	struct mtftl_candidate candidate = {
		.valid = full->valid,
		.capacity = CHOSEN_CAPACITY,
		.age = history->now - full->since,
	};

	return history->policy->score(&candidate);
}

static bool look_at_full(void *data, u32 zone, struct mtftl_seen *seen)
{
	struct history *history = data;
	struct full *full = &history->zones[zone];

	assert_true(zone < history->nr);
	history->looks++;
	full->choice = history->choice;
	if (!full->since)
		return false;
	full->seen = full->worn_out ? MTFTL_FIRST_OF_ALL : score_of(history, zone);
	if (full->worn_out && history->scarce)
		return false;
	*seen = (struct mtftl_seen){ zone, full->erase_count, full->seen, full->since };
	return true;
}

static void fill_zone(struct history *history, u32 zone)
{
	/* No two at the same time: there is one best choice. */
	history->zones[zone].since = ++history->now;
	history->zones[zone].valid = CHOSEN_CAPACITY - rand() % 100;
	history->zones[zone].seen = 0;
}

static void history_begin(struct history *history, u32 nr, const char *policy)
{
	*history = (struct history){ .nr = nr, .policy = mtftl_victim_policy(policy), .now = 1 };
	history->zones = calloc(nr, sizeof(*history->zones));
	memset(&history->chooser, 0x55, sizeof(history->chooser));
	mtftl_chooser_init(&history->chooser, nr);
	for (u32 i = 0; i < nr; i++)
		if (rand() % 16)
			fill_zone(history, i);
}

/* Blocks die, some zones become full, and one is chosen: which may be none. */
static u32 history_goes_on(struct history *history)
{
	u32 zone, i;

	history->now += rand() % 64;
	for (i = rand() % 300; i; i--) {
		/* Most die in few zones. */
		zone = rand() % (rand() % 4 ? 1 + history->nr / 8 : history->nr);
		history->zones[zone].valid -= history->zones[zone].valid * (rand() % 4) / 8;
	}
	for (i = rand() % 3; i; i--) {
		zone = rand() % history->nr;
		if (!history->zones[zone].since)
			fill_zone(history, zone);
	}
	history->looks = 0;
	history->choice++;
	return mtftl_choose(&history->chooser, false, look_at_full, history);
}

static void take(struct history *history, u32 zone)
{
	assert_true(history->zones[zone].since);
	history->zones[zone].since = 0;
	history->zones[zone].erase_count++;
}

/* What a walk over all zones finds. */
static u32 best_of_all(const struct history *history)
{
	u64 best_score = 0, score;
	u32 best = MTFTL_NO_ZONE, i;

	for (i = 0; i < history->nr; i++) {
		score = history->zones[i].since ? score_of(history, i) : 0;
		if (score > best_score || (score && score == best_score &&
					   history->zones[i].since < history->zones[best].since)) {
			best_score = score;
			best = i;
		}
	}
	return best;
}

static u32 choose_for_wear(struct history *history, u32 interval, u32 spread)
{
	return mtftl_choose_for_wear(&history->chooser, interval, spread, look_at_full, history);
}

/* And by wear: of equals the one that has been full for longest. */
static u32 least_worn_of_all(const struct history *history, u32 spread)
{
	const struct full *least = NULL;
	u32 most = 0, i;

	for (i = 0; i < history->nr; i++) {
		const struct full *full = &history->zones[i];

		if (!full->since)
			continue;
		most = full->erase_count > most ? full->erase_count : most;
		if (!least || full->erase_count < least->erase_count ||
		    (full->erase_count == least->erase_count && full->since < least->since))
			least = full;
	}
	if (!least || most - least->erase_count <= spread)
		return MTFTL_NO_ZONE;
	return least - history->zones;
}

static void the_best_of_few_zones_is_chosen(void **state)
{
	static const u32 sizes[] = { 1, 2, 63, 64, 65, 500, MTFTL_LOOKS };
	struct history history;
	u32 i, k, turn, zone, none = 0, worn = 0, turns;

	(void)state;
	srand(1);
	for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		history_begin(&history, sizes[i / 2], mtftl_victim_policy_name(i % 2));
		for (turn = turns = 0; turn < 600; turn++) {
			u32 least;

			zone = history_goes_on(&history);
			assert_int_equal(zone, best_of_all(&history));
			none += zone == MTFTL_NO_ZONE;
			/* A turn is one only if there is a zone that wear might count for. */
			for (k = 0; k < history.nr && !history.zones[k].since; k++)
				;
			least = k < history.nr && ++turns % 8 == 0 ?
				least_worn_of_all(&history, 1) : MTFTL_NO_ZONE;
			assert_int_equal(choose_for_wear(&history, 8, 1), least);
			worn += least != MTFTL_NO_ZONE;
			if (least != MTFTL_NO_ZONE)
				zone = least;
			if (zone != MTFTL_NO_ZONE)
				take(&history, zone);
		}
		free(history.zones);
	}
	assert_true(none && worn);
}

/* No zone was better at the last look at it, which is not long ago; and looks are few. */
static void of_many_zones_none_was_better_lately(void **state)
{
	static const u32 sizes[] = { MTFTL_LOOKS + 1, 50000, 200000, 500000 };
	struct history history;
	u32 i, k, turn, zone;

	(void)state;
	srand(2);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		history_begin(&history, sizes[i], "cost-benefit");
		for (turn = 0; turn < 200; turn++) {
			zone = history_goes_on(&history);
			assert_int_not_equal(zone, MTFTL_NO_ZONE);
			/* At the first one nothing is known. */
			assert_true(!turn || history.looks <= MTFTL_KEPT +
				    (sizes[i] > 200000 ? sizes[i] / 63 + 1 : MTFTL_LOOKS));
			for (k = 0; k < history.nr; k++) {
				const struct full *full = &history.zones[k];

				assert_true(!full->since || full->seen <= score_of(&history, zone));
				assert_true(history.choice - full->choice < MTFTL_KEPT);
			}
			take(&history, zone);
		}
		free(history.zones);
	}
}

/* However many are full: if one of them is worth it, it is found. */
static void one_zone_that_is_worth_it_is_found(void **state)
{
	struct history history;
	u32 i, zone;

	(void)state;
	srand(3);
	history_begin(&history, 20000, "greedy");
	for (i = 0; i < history.nr; i++) {
		fill_zone(&history, i);
		history.zones[i].valid = CHOSEN_CAPACITY;
	}
	assert_int_equal(mtftl_choose(&history.chooser, false, look_at_full, &history),
			 MTFTL_NO_ZONE);
	for (i = 0; i < 100; i++) {
		zone = rand() % history.nr;
		history.zones[zone].valid--;
		assert_int_equal(mtftl_choose(&history.chooser, false, look_at_full, &history),
				 zone);
		history.zones[zone].valid++;
		assert_int_equal(mtftl_choose(&history.chooser, true, look_at_full, &history),
				 MTFTL_NO_ZONE);
	}
	free(history.zones);
}

/* Zone 1 of a few hundred becomes the best between two looks in one choice. */
static bool look_at_one_that_dies(void *data, u32 zone, struct mtftl_seen *seen)
{
	u32 *looks = data;

	*seen = (struct mtftl_seen){ zone, 0, 1000 - zone, zone };
	if (zone == 1 && ++*looks > 2)
		seen->score = 2000;
	return true;
}

static void what_a_second_look_finds_counts(void **state)
{
	static const u32 sizes[] = { 2, MTFTL_KEPT, 500 };
	struct mtftl_chooser chooser;
	u32 i, k, looks;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		mtftl_chooser_init(&chooser, sizes[i]);
		looks = 0;
		assert_int_equal(mtftl_choose(&chooser, false, look_at_one_that_dies, &looks), 0);
		assert_int_equal(looks, 1);
		assert_int_equal(mtftl_choose(&chooser, false, look_at_one_that_dies, &looks), 1);
		assert_int_equal(looks, 3);
		/* In order, each once. */
		for (k = 1; k < chooser.nr_kept; k++)
			assert_true(chooser.kept[k - 1].score > chooser.kept[k].score);
	}
}

/* All zones hold what is hardly worth it, those behind MTFTL_LOOKS much less. */
static void the_first_choice_is_of_all_zones(void **state)
{
	struct history history;
	u32 i;

	(void)state;
	srand(5);
	history_begin(&history, 20000, "greedy");
	for (i = 0; i < history.nr; i++) {
		fill_zone(&history, i);
		history.zones[i].valid = CHOSEN_CAPACITY * (i < 10000 ? 97 : 50) / 100;
	}
	assert_int_equal(mtftl_choose(&history.chooser, false, look_at_full, &history), 10000);
	/* So it is if scores go by another rule. */
	history.zones[10000].since = 0;
	history.zones[history.nr - 1].valid = 0;
	mtftl_choose_anew(&history.chooser);
	assert_int_equal(mtftl_choose(&history.chooser, false, look_at_full, &history),
			 history.nr - 1);
	free(history.zones);
}

/* Zones that have to be cleared, more than are kept, and then they have to wait. */
static void zones_that_wait_hide_no_others(void **state)
{
	static const u32 worn_out[] = { 1, MTFTL_KEPT - 1, MTFTL_KEPT, 3 * MTFTL_KEPT };
	struct history history;
	u32 i, k, zone;

	(void)state;
	srand(6);
	for (i = 0; i < ARRAY_SIZE(worn_out); i++) {
		history_begin(&history, 20000, "greedy");
		for (k = 0; k < history.nr; k++)
			fill_zone(&history, k);
		for (k = 0; k < worn_out[i]; k++)
			history.zones[8192 + k].worn_out = true;
		/* The first of them has been full for less time than those behind it. */
		fill_zone(&history, 8192);
		/* The best ones lie where no look in turn comes soon. */
		for (k = 0; k < MTFTL_KEPT - 1; k++)
			history.zones[history.nr - 1 - k].valid = k;
		/* Oldest first, and before all others. */
		assert_int_equal(mtftl_choose(&history.chooser, true, look_at_full, &history),
				 8192 + (worn_out[i] > 1));
		history.scarce = true;
		for (k = 0; k < MTFTL_KEPT - 1; k++) {
			history.looks = 0;
			zone = mtftl_choose(&history.chooser, false, look_at_full, &history);
			assert_int_equal(zone, history.nr - 1 - k);
			assert_true(history.looks <= MTFTL_KEPT + MTFTL_LOOKS);
			take(&history, zone);
		}
		free(history.zones);
	}
}

/* All are full, and their erase counts lie between 100 and 109. */
static void wear_begin(struct history *history, u32 nr)
{
	history_begin(history, nr, "greedy");
	assert_int_equal(choose_for_wear(history, 1, 0), MTFTL_NO_ZONE);
	for (u32 i = 0; i < nr; i++) {
		fill_zone(history, i);
		history->zones[i].erase_count = 100 + i % 10;
	}
}

static void look_at_part(struct history *history, u32 rounds)
{
	while (rounds--)
		mtftl_choose(&history->chooser, false, look_at_full, history);
}

static void the_least_worn_zone_is_known(void **state)
{
	static const u32 sizes[] = { 100, 20000 };
	struct history history;
	u32 i;

	(void)state;
	srand(4);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		wear_begin(&history, sizes[i]);
		history.zones[17].erase_count = 90;
		look_at_part(&history, 6);
		assert_int_equal(choose_for_wear(&history, 1, 19), MTFTL_NO_ZONE);
		assert_int_equal(choose_for_wear(&history, 1, 18), 17);
		/* Once it is taken, it is not known any more, also not within a round. */
		take(&history, 17);
		assert_int_not_equal(choose_for_wear(&history, 1, 8), 17);
		history.zones[history.nr - 1].erase_count = 95;
		look_at_part(&history, 12);
		assert_int_equal(choose_for_wear(&history, 1, 13), history.nr - 1);
		free(history.zones);
	}
}

/* Whatever it was at the last look: another choice may have taken it, and it may be full again. */
static void a_zone_that_was_taken_is_not_the_least_worn(void **state)
{
	struct history history;
	u32 again;

	(void)state;
	srand(7);
	for (again = 0; again < 2; again++) {
		wear_begin(&history, 20000);
		history.zones[17].erase_count = 80;
		history.zones[18].erase_count = 90;
		look_at_part(&history, 3);
		/* 17 is the least worn of the last round, 18 will be of this one. */
		take(&history, 17);
		look_at_part(&history, 4);
		if (again)
			fill_zone(&history, 17);
		assert_int_equal(choose_for_wear(&history, 1, 10), 18);
		assert_int_equal(choose_for_wear(&history, 1, 10), MTFTL_NO_ZONE);
		free(history.zones);
	}
}

/* Nor is one that failed since it was looked at: nothing is written to it. */
static void what_became_of_the_least_worn_zones_is_looked_at(void **state)
{
	static const u32 sizes[] = { 100, 20000 };
	struct history history;
	u32 i, nr, k;

	(void)state;
	srand(10);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		for (nr = 1; nr <= 2; nr++) {
			wear_begin(&history, sizes[i]);
			history.zones[17].erase_count = 80;
			look_at_part(&history, 3);
			/* 17 is known of the last round, 18 of this one. */
			history.zones[17].worn_out = true;
			history.zones[18].erase_count = 81;
			look_at_part(&history, 4);
			history.zones[18].worn_out = nr > 1;
			k = choose_for_wear(&history, 1, 10);
			assert_int_equal(k, nr > 1 ? MTFTL_NO_ZONE : 18);
			free(history.zones);
		}
}

/* The most worn zone of the round that has not ended counts, too. */
static void the_most_worn_zone_is_known_at_once(void **state)
{
	struct history history;

	(void)state;
	srand(11);
	wear_begin(&history, 20000);
	history.zones[17].erase_count = 90;
	look_at_part(&history, 4);
	assert_int_equal(choose_for_wear(&history, 1, 19), MTFTL_NO_ZONE);
	history.zones[history.chooser.hand].erase_count = 130;
	look_at_part(&history, 1);
	assert_int_equal(choose_for_wear(&history, 1, 40), MTFTL_NO_ZONE);
	assert_int_equal(choose_for_wear(&history, 1, 39), 17);
	free(history.zones);
}

/* Cold zones lie all over the device: each turn takes one of them, however long a round is. */
static void each_turn_for_wear_takes_a_cold_zone(void **state)
{
	static const u32 sizes[] = { 500, MTFTL_LOOKS, 20000, 100000, 174000, 300000 };
	struct history history;
	u32 i, k, turn, zone, cold;

	(void)state;
	srand(8);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		wear_begin(&history, sizes[i]);
		for (k = 0; k < 100; k++) {
			zone = (u64)k * history.nr / 100;
			history.zones[zone].erase_count = k % 7;
			history.zones[zone].valid = CHOSEN_CAPACITY;
		}
		for (turn = 1, cold = 0; turn <= 640; turn++) {
			zone = mtftl_choose(&history.chooser, false, look_at_full, &history);
			k = choose_for_wear(&history, 32, 16);
			assert_true(k == MTFTL_NO_ZONE || turn % 32 == 0);
			if (turn % 32 == 0) {
				assert_int_not_equal(k, MTFTL_NO_ZONE);
				assert_true(history.zones[k].erase_count < 7);
				cold++;
				zone = k;
			}
			take(&history, zone);
			history.zones[zone].erase_count = 105;
			fill_zone(&history, zone);
		}
		assert_int_equal(cold, 20);
		free(history.zones);
	}
}

/* Of equals it is the one that has been full for longest; and none that has to be cleared counts. */
static void the_least_worn_zone_is_the_oldest(void **state)
{
	static const u32 sizes[] = { 100, 20000 };
	struct history history;
	u32 i;

	(void)state;
	srand(9);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		wear_begin(&history, sizes[i]);
		history.zones[20].erase_count = 90;
		history.zones[30].erase_count = 90;
		history.zones[40].erase_count = 90;
		fill_zone(&history, 20);
		fill_zone(&history, 40);
		history.zones[50].erase_count = 10;
		history.zones[50].worn_out = true;
		history.zones[60].erase_count = 1000;
		history.zones[60].worn_out = true;
		look_at_part(&history, 6);
		assert_int_equal(choose_for_wear(&history, 1, 19), MTFTL_NO_ZONE);
		assert_int_equal(choose_for_wear(&history, 1, 18), 30);
		free(history.zones);
	}
}

static void unknown_placement_is_none(void **state)
{
	(void)state;
	assert_null(mtftl_placement("hot"));
	assert_null(mtftl_placement(""));
}

static void unknown_policy_is_none(void **state)
{
	(void)state;
	assert_null(mtftl_victim_policy("best"));
	assert_null(mtftl_victim_policy(""));
}

/* Little garbage is no reason to move a zone, unless no other zone can have more. */
static void victims_gain_something_worth_it(void **state)
{
	u32 zones, payload = 1000;

	(void)state;
	assert_int_equal(mtftl_victim_limit(payload, 10000, 20), payload - payload / 32);
	assert_int_equal(mtftl_victim_limit(payload, 9800, 10), 980);
	assert_int_equal(mtftl_victim_limit(payload, 9801, 10), 981);
	/* Of which some blocks are headers. */
	assert_int_equal(mtftl_victim_limit(payload, 9990, 10), payload - payload / 128 - 1);
	for (zones = 10; zones < 40; zones++) {
		u32 limit = mtftl_victim_limit(payload, 9800, zones);

		assert_true(limit < payload - payload / 200);
		/* Were all of them above the limit, there would be more data than there is. */
		assert_true((u64)zones * (limit + 1) > 9800);
	}
}

/* Each zone that is kept ready is one less to collect from: not more than a fourth of them, but for two. */
static void ready_goes_by_what_is_to_spare(void **state)
{
	u32 spare;

	(void)state;
	for (spare = 0; spare < 40; spare++) {
		u32 ready = mtftl_rate_ready(spare, 32);

		assert_true(ready >= 2 && ready <= 5);
		assert_true(ready == 2 || ready <= spare / 4);
		assert_true(ready <= mtftl_rate_ready(spare + 1, 32));
	}
	assert_int_equal(mtftl_rate_ready(11, 32), 2);
	assert_int_equal(mtftl_rate_ready(12, 32), 3);
	assert_int_equal(mtftl_rate_ready(19, 32), 4);
	assert_int_equal(mtftl_rate_ready(20, 32), 5);
	assert_int_equal(mtftl_rate_ready(1000, 32), 5);
	/* Many zones are small ones. */
	assert_int_equal(mtftl_rate_ready(1000, 64 * 20), 20);
	assert_int_equal(mtftl_rate_ready(0, 64 * 21 - 1), 20);
}

static struct mtftl_space_seen space(u32 zones, u64 room, u32 moving, u32 moved)
{
	return (struct mtftl_space_seen){ zones, 1000, room, 1, moving, moved };
}

static s64 credit(struct mtftl_space_seen space)
{
	return mtftl_rate_credit(&space, 5);
}

/* One less than low_water is what users leave free. */
static void rate_is_what_is_free_above_the_level(void **state)
{
	(void)state;
	assert_int_equal(credit(space(4, 0, 0, 0)), 0);
	assert_int_equal(credit(space(4, 10, 0, 0)), 10);
	assert_int_equal(credit(space(3, 900, 0, 0)), -100);
	assert_int_equal(credit(space(0, 0, 0, 0)), -4000);
	assert_int_equal(credit(space(UINT32_MAX, 0, 0, 0)), ((s64)UINT32_MAX - 4) * 1000);
}

/* A victim of 600 blocks gains 400: by what is moved, not at its end, and exactly that. */
static void rate_grows_with_what_is_moved(void **state)
{
	s64 last = credit(space(3, 600, 600, 0)), first = last;
	u32 moved;

	(void)state;
	for (moved = 60; moved <= 600; moved += 60) {
		/* GC writes the blocks into an open zone. */
		s64 now = credit(space(3, 600 - moved, 600, moved));

		assert_int_equal(now - last, 40);
		last = now;
	}
	assert_int_equal(last - first, 400);
	/* What is listed twice counts once, and the zone's freeing changes nothing. */
	assert_int_equal(credit(space(3, 0, 600, 700)), last);
	assert_int_equal(credit(space(4, 0, 0, 0)), last);
}

static void rate_does_not_see_zones_open(void **state)
{
	(void)state;
	assert_int_equal(credit(space(6, 0, 0, 0)), credit(space(5, 1000, 0, 0)));
}

/* What is left lasts until a zone comes back, and what enters before that is less and less. */
static void allowance_is_a_share_of_what_is_left(void **state)
{
	(void)state;
	assert_int_equal(mtftl_rate_allowance(5000, 250, 5000), 250);
	assert_int_equal(mtftl_rate_allowance(2500, 250, 5000), 125);
	assert_int_equal(mtftl_rate_allowance(5000, 250, 10000), 125);
	assert_int_equal(mtftl_rate_allowance(5000, 5000, 5000), 5000);
	assert_int_equal(mtftl_rate_allowance(5000, 4000, 50), 5000);
	/* The largest device, the longest tick, the slowest drive. */
	assert_int_equal(mtftl_rate_allowance(UINT32_MAX, 4000, 4000000000u), UINT32_MAX / 1000000);
}

static void allowance_is_never_nothing(void **state)
{
	(void)state;
	assert_int_equal(mtftl_rate_allowance(0, 250, 1000), 1);
	assert_int_equal(mtftl_rate_allowance(-100000, 250, 1000), 1);
	assert_int_equal(mtftl_rate_allowance(3, 250, 1000), 1);
	assert_int_equal(mtftl_rate_allowance(5000, 0, 1000), 1);
	/* It is not known yet how long it takes. */
	assert_int_equal(mtftl_rate_allowance(5000, 250, 0), 5000);
}

/* Zones that come back one by one are used up evenly: users meet no gate, and never rush. */
static void allowance_smooths_what_comes_in_zones(void **state)
{
	u32 each_us = 5000, back_us = 25000, zone = 700, us;
	s64 left = 8 * zone, now, least = INT64_MAX, most = 0;

	(void)state;
	for (us = 250; us < 1000000; us += 250) {
		if (us % each_us == 0)
			left += zone;
		now = mtftl_rate_allowance(left, 250, back_us);
		left -= now;
		if (us < 200000)
			continue;
		assert_true(left > 0);
		least = now < least ? now : least;
		most = now > most ? now : most;
	}
	/* 35 on average. */
	assert_in_range(least, 29, 34);
	assert_in_range(most, 36, 41);
}

#define SHIFT	10u		/* zones of 1024 pages */
#define NO	MTFTL_FOLLOW_NOWHERE

static const struct mtftl_config config = { .zone_shift = SHIFT };

/*
 * Users' writes in order, in turn, in one lane: each unit goes to the stream that is chosen. How many
 * of the last rounds' units do not lie behind the one before.
 */
static u32 torn(u32 writers, u32 streams, bool others)
{
	u32 next[MTFTL_FOLLOW_STREAMS], page[MTFTL_FOLLOW_STREAMS], lba[MTFTL_FOLLOW_STREAMS];
	struct mtftl_follow follow;
	u32 round, w, s, i, torn = 0;

	mtftl_follow_init(&follow);
	for (i = 0; i < streams; i++)
		next[i] = i ? NO : 0;
	for (w = 0; w < writers; w++) {
		page[w] = NO;
		lba[w] = w * 100000;
	}
	for (round = 0; round < 100; round++)
		for (w = 0; w < writers; w++) {
			u32 at = mtftl_follow_page(&follow, lba[w]);

			assert_true(at == page[w] || at == NO);
			if (page[w] != NO)
				at = page[w];		/* the map knows it */
			s = at == NO ? 0 : mtftl_follow_choose(&config, &follow, at, next, streams);
			assert_true(s < streams);
			if (next[s] == NO)
				next[s] = s << SHIFT;
			torn += round >= 50 && next[s] != page[w];
			next[s] = page[w] = next[s] + 9;
			lba[w] += 8;
			mtftl_follow_note(&follow, lba[w], page[w]);
			for (i = 0; others && i < streams; i++)
				if (next[i] != NO)
					next[i]++;
		}
	return torn;
}

static void writers_in_order_part_ways(void **state)
{
	u32 writers, streams;

	(void)state;
	for (streams = 1; streams <= MTFTL_FOLLOW_STREAMS; streams++)
		for (writers = 1; writers <= streams; writers++)
			assert_int_equal(torn(writers, streams, false), 0);
	assert_true(torn(2, 1, false) > 0);
}

static void who_cannot_part_stays_at_home(void **state)
{
	u32 next[4] = { 100, 1024 + 100, 2048 + 100, NO }, i, moved = 0;
	struct mtftl_follow follow;

	(void)state;
	/* All are busy: others write behind each unit. */
	mtftl_follow_init(&follow);
	for (i = 0; i < 1000; i++)
		moved += mtftl_follow_choose(&config, &follow, 50, next, 4) != 0;
	/* Twice round the streams, then it rests for 256 units: three times, and once more. */
	assert_int_equal(moved, 4 * 2 * 4);
	/* And what finds its place goes there all the same. */
	assert_int_equal(mtftl_follow_choose(&config, &follow, 2048 + 100, next, 4), 2);
	/* From then on it tries as often again. */
	mtftl_follow_init(&follow);
	for (i = 0; i < 3; i++)
		assert_int_equal(mtftl_follow_choose(&config, &follow, 50, next, 4), 1);
	assert_int_equal(mtftl_follow_choose(&config, &follow, 100, next, 4), 0);
	for (i = 0; i < 2 * 4; i++)
		assert_int_equal(mtftl_follow_choose(&config, &follow, 50, next, 4), 1);
	assert_int_equal(mtftl_follow_choose(&config, &follow, 50, next, 4), 0);
}

static void what_lies_in_a_closed_zone_leads_nowhere(void **state)
{
	const u32 next[3] = { 100, 1024 + 100, NO };
	struct mtftl_follow follow;

	(void)state;
	mtftl_follow_init(&follow);
	assert_int_equal(mtftl_follow_choose(&config, &follow, 5000, next, 3), 0);
	/* A zone's last page, and the first of the next zone, which is written to. */
	assert_int_equal(mtftl_follow_choose(&config, &follow, 3 * 1024, next, 3), 0);
	assert_int_equal(mtftl_follow_choose(&config, &follow, 1024 + 90, next, 3), 2);
}

static void a_few_ends_are_remembered(void **state)
{
	struct mtftl_follow follow;
	u32 i;

	(void)state;
	mtftl_follow_init(&follow);
	assert_int_equal(mtftl_follow_page(&follow, 0), NO);
	for (i = 0; i < MTFTL_FOLLOW_UNITS + 1; i++)
		mtftl_follow_note(&follow, 100 * i + 8, 1000 + i);
	assert_int_equal(mtftl_follow_page(&follow, 8), NO);
	for (i = 1; i < MTFTL_FOLLOW_UNITS + 1; i++)
		assert_int_equal(mtftl_follow_page(&follow, 100 * i + 8), 1000 + i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budget_fits_every_limit),
		cmocka_unit_test(writers_in_order_have_two_streams),
		cmocka_unit_test(budget_refuses_less_than_four),
		cmocka_unit_test(budget_shares_few_zones_out),
		cmocka_unit_test(budget_of_small_drives),
		cmocka_unit_test(placement_follows_age),
		cmocka_unit_test(lives_are_logarithms),
		cmocka_unit_test(a_life_remembers),
		cmocka_unit_test(cold_blocks_keep_their_class),
		cmocka_unit_test(hints_are_classes),
		cmocka_unit_test(the_best_of_few_zones_is_chosen),
		cmocka_unit_test(of_many_zones_none_was_better_lately),
		cmocka_unit_test(one_zone_that_is_worth_it_is_found),
		cmocka_unit_test(what_a_second_look_finds_counts),
		cmocka_unit_test(the_first_choice_is_of_all_zones),
		cmocka_unit_test(zones_that_wait_hide_no_others),
		cmocka_unit_test(the_least_worn_zone_is_known),
		cmocka_unit_test(a_zone_that_was_taken_is_not_the_least_worn),
		cmocka_unit_test(what_became_of_the_least_worn_zones_is_looked_at),
		cmocka_unit_test(the_most_worn_zone_is_known_at_once),
		cmocka_unit_test(each_turn_for_wear_takes_a_cold_zone),
		cmocka_unit_test(the_least_worn_zone_is_the_oldest),
		cmocka_unit_test(unknown_placement_is_none),
		cmocka_unit_test(greedy_looks_at_what_is_valid_alone),
		cmocka_unit_test(cost_benefit_prefers_the_old),
		cmocka_unit_test(unknown_policy_is_none),
		cmocka_unit_test(victims_gain_something_worth_it),
		cmocka_unit_test(ready_goes_by_what_is_to_spare),
		cmocka_unit_test(rate_is_what_is_free_above_the_level),
		cmocka_unit_test(rate_grows_with_what_is_moved),
		cmocka_unit_test(rate_does_not_see_zones_open),
		cmocka_unit_test(allowance_is_a_share_of_what_is_left),
		cmocka_unit_test(allowance_is_never_nothing),
		cmocka_unit_test(allowance_smooths_what_comes_in_zones),
		cmocka_unit_test(writers_in_order_part_ways),
		cmocka_unit_test(who_cannot_part_stays_at_home),
		cmocka_unit_test(what_lies_in_a_closed_zone_leads_nowhere),
		cmocka_unit_test(a_few_ends_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
