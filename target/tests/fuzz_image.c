// SPDX-License-Identifier: GPL-2.0
/*
 * Gives any image to the tool: the whole check with recovery, then a rebuild that writes. If
 * recovery succeeds, check must report each map entry outside what is written. What was rebuilt can
 * be recovered.
 */
#include "check.h"
#include "fuzz.h"
#include "fuzz_alloc.h"
#include "rebuild.h"
#include "replay.h"
#include "sparse.h"
#include "super.h"

#define LOGICAL_MOST	(1u << 16)	/* else the map would take all the time */

static int recover(struct sparse_image *image, struct super *super, struct replay *replay)
{
	fuzz_assert(super_find(&image->flash, super) == 0);
	replay_from(replay, super);
	return replay_run(replay);
}

static void compare_with_recovery(struct sparse_image *image)
{
	struct report report = { .quiet = true };
	struct replay replay = { .flash = &image->flash, .report = &report };
	u32 blocks = image->flash.zone_blocks;
	struct super super;
	int err = recover(image, &super, &replay);
	u64 i;

	fuzz_assert(!err);
	for (i = 0; !err && i < super.info.logical_blocks; i++) {
		u32 page = replay.map[i];

		if (page == MTFTL_MAP_UNMAPPED || page == MTFTL_MAP_LOST)
			continue;
		fuzz_assert(page / blocks < image->flash.nr_zones);
		fuzz_assert(page % blocks < image->zones[page / blocks].wp);
	}
	replay_free(&replay);
}

static void check(struct sparse_image *image)
{
	struct report report = { .quiet = true };
	struct check_totals totals;

	if (check_flash(&image->flash, &report, &totals) || report.errors)
		return;
	sparse_allow(image, SPARSE_READS);
	compare_with_recovery(image);
}

static void rebuild(struct sparse_image *image)
{
	struct report report = { .quiet = true };
	struct replay replay = { .flash = &image->flash, .report = &report };
	struct rebuild_totals totals;
	struct super super;

	sparse_allow(image, SPARSE_READS);
	if (rebuild_flash(&image->flash, &report, true, &totals) || !totals.missing)
		return;
	sparse_allow(image, SPARSE_READS);
	fuzz_assert(!recover(image, &super, &replay));
	replay_free(&replay);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct sparse_image image;
	struct super super;
	jmp_buf give_up;

	if (!sparse_load(&image, data, size))
		return 0;
	image.give_up = &give_up;
	if (!setjmp(give_up) && !super_find(&image.flash, &super) &&
	    super.info.logical_blocks <= LOGICAL_MOST) {
		check(&image);
		rebuild(&image);
	}
	fuzz_assert(!sparse_asked_too_much(&image));
	fuzz_free_all();
	return 0;
}
