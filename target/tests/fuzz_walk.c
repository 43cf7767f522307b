// SPDX-License-Identifier: GPL-2.0
/*
 * GC's walk of any zone, into memory as large as GC's own. All that it finds lies within its zone.
 * There is no superblock and no recovery, which take most of the time of fuzz_recover, so the walk
 * gets all executions.
 */
#include "device/device.h"
#include "fuzz_kernel.h"
#include "zone/walk.h"
#include "zone/zones.h"

#define READS	1500u	/* else walks of headers would take all the time */
#define NEAR	64u

/* Counts for libFuzzer as coverage: how much of a stream was read, and how much room was left. */
static u8 progress[2 * NEAR] __attribute__((section("__libfuzzer_extra_counters")));

/* Exactly as large as the stream, so that ASan sees writes behind it. */
static void *stream_of(u32 blocks)
{
	static void *stream;
	static u32 size;

	if (size != blocks) {
		free(stream);
		stream = malloc((size_t)blocks * MTFTL_BLOCK_SIZE);
		size = blocks;
	}
	return stream;
}

static void mark(u8 *stream, u32 blocks)
{
	u32 i;

	for (i = 0; i < blocks; i++)
		stream[i * MTFTL_BLOCK_SIZE] = 0xa5;
}

static void note_progress(const u8 *stream, u32 blocks)
{
	u32 written = 0;

	while (written < blocks && stream[written * MTFTL_BLOCK_SIZE] != 0xa5)
		written++;
	if (written < NEAR)
		progress[written] = 1;
	if (blocks - written < NEAR)
		progress[NEAR + blocks - written] = 1;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct mtftl_zones *zones;
	static void *buf;
	struct mtftl_device device = { };
	struct mtftl ftl = { .device = &device };
	struct mtftl_scanner *scanner;
	struct mtftl_zone *zone;
	jmp_buf give_up;
	u32 blocks, i;
	u8 *stream;

	if (!sparse_load(&fuzz_image, data, size))
		return 0;
	fuzz_kernel_config(&ftl.config);
	ftl.config.header_blocks = !(fuzz_image.oob &&
				     ftl.config.meta_size >= sizeof(struct mtftl_oob));
	if (!zones) {
		zones = calloc(1, sizeof(*zones) + FUZZ_MAX_ZONES * sizeof(*zones->all));
		buf = malloc(MTFTL_BUFFER_BLOCKS * MTFTL_BLOCK_SIZE);
	}
	ftl.zones = zones;
	scanner = mtftl_scanner_alloc(&ftl, GFP_KERNEL);
	blocks = mtftl_footer_stream_blocks(ftl.config.capacity, !ftl.config.header_blocks);
	stream = stream_of(blocks);
	mark(stream, blocks);
	sparse_allow(&fuzz_image, READS);
	fuzz_image.give_up = &give_up;
	/* A walk has nothing of its own that would be lost. */
	if (!setjmp(give_up))
		for (i = 0; i < ftl.config.nr_zones; i++) {
			if (!fuzz_image.zones[i].wp)
				continue;
			zone = mtftl_zone(&ftl, i);
			zone->ftl = &ftl;
			zone->index = i;
			zone->wp = fuzz_image.zones[i].wp;
			mtftl_zone_walk(zone, scanner, buf, stream, fuzz_kernel_seen, zone);
		}
	fuzz_assert(!sparse_asked_too_much(&fuzz_image));
	note_progress(stream, blocks);
	mtftl_scanner_free(scanner);
	return 0;
}
