// SPDX-License-Identifier: GPL-2.0
/* Any block as a superblock record: what parses, composes to the same again. */
#include "format/parse.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	_Alignas(8) u8 block[MTFTL_BLOCK_SIZE];
	struct mtftl_sb_info info, again;

	fuzz_block(block, data, size);
	memset(&info, 0, sizeof(info));
	memset(&again, 0, sizeof(again));
	if (mtftl_sb_parse(block, &info))
		return 0;
	fuzz_assert((u64)info.nr_zones * info.zone_blocks <= (u64)MTFTL_MAP_MAX_PAGE + 1);
	fuzz_assert(info.ckpt_nr_zones <= MTFTL_SB_MAX_LOG_ZONES);
	mtftl_sb_compose(block, &info);
	fuzz_assert(mtftl_sb_parse(block, &again) == 0);
	fuzz_assert(!memcmp(info.ckpt_zones, again.ckpt_zones, 4 * info.ckpt_nr_zones));
	memset(info.ckpt_zones, 0, sizeof(info.ckpt_zones));
	memset(again.ckpt_zones, 0, sizeof(again.ckpt_zones));
	fuzz_assert(!memcmp(&info, &again, sizeof(info)));
	return 0;
}
