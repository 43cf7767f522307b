// SPDX-License-Identifier: GPL-2.0
/*
 * Any image to the whole check, recovery included. Where recovery succeeds, no map
 * entry that check is content with may lie outside what is written.
 */
#include "check.h"
#include "fuzz.h"
#include "image.h"
#include "replay.h"
#include "sparse.h"
#include "super.h"

static void compare_with_recovery(struct sparse_image *image)
{
	struct report report = { .quiet = true };
	struct replay replay = { .flash = &image->flash, .report = &report };
	struct super super;
	u64 i;

	fuzz_assert(super_find(&image->flash, &super) == 0);
	replay.sb = &super.info;
	fuzz_assert(replay_run(&replay) == 0);
	for (i = 0; i < super.info.logical_blocks; i++) {
		u32 page = replay.map[i];

		if (page == MTFTL_MAP_UNMAPPED || page == MTFTL_MAP_LOST)
			continue;
		fuzz_assert(page < SPARSE_BLOCKS);
		fuzz_assert(page % IMAGE_ZONE_BLOCKS < image->zones[page / IMAGE_ZONE_BLOCKS].wp);
	}
	replay_free(&replay);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct sparse_image image;
	struct report report = { .quiet = true };
	struct check_totals totals;

	if (size < 2 * IMAGE_ZONES)
		return 0;
	sparse_load(&image, data, size);
	if (!check_flash(&image.flash, &report, &totals) && !report.errors)
		compare_with_recovery(&image);
	return 0;
}
