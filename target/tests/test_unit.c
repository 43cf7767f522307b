// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of parse.c on the host: what is composed parses back, and every
 * damage, foreign place and contradiction is refused with its own error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "format/parse.h"

#define KEY		0x1234abcdu
#define ZONE		7u
#define OFFSET		40u
#define CAPACITY	1000u

static const u8 uuid[16] = "0123456789abcdef";

static _Alignas(8) u8 block[MTFTL_BLOCK_SIZE];
static struct mtftl_unit_info parsed;

static u32 seed(void)
{
	return mtftl_seed(uuid, KEY);
}

static void compose_unit(enum mtftl_unit_type type, u16 entries, u16 blocks, u32 offset)
{
	struct mtftl_unit_info info = {
		.type = type, .nr_blocks = blocks, .lane = 3, .seq = 100,
	};
	u16 i;

	mtftl_unit_init(block, &info);
	for (i = 0; i < entries; i++)
		if (type == MTFTL_UNIT_RANGES)
			mtftl_unit_add_range(block, 1000 * i, i + 1, 50 + i % 50,
					     i % 2 ? MTFTL_RANGE_TRIM : MTFTL_RANGE_LOST);
		else
			mtftl_unit_add_entry(block, 5000000000ull + i, ~i);
	mtftl_unit_seal(block, seed(), ZONE, offset, 9, 77);
}

static int parse_unit(void)
{
	return mtftl_unit_parse(block, seed(), ZONE, OFFSET, CAPACITY, &parsed);
}

/* Change a field of a sealed unit and make its checksum right again. */
#define reseal(field, value) do {							\
	struct mtftl_unit *unit = (void *)block;					\
	unit->field = (value);								\
	mtftl_unit_seal(block, seed(), le32_to_cpu(unit->zone), le32_to_cpu(unit->offset),	\
			le32_to_cpu(unit->erase_count), le64_to_cpu(unit->durable_seq));	\
} while (0)

static void crc_is_the_kernels(void **state)
{
	(void)state;
	/* The check value of CRC-32C, with the inversions left to us. */
	assert_int_equal(mtftl_crc32c(~0u, "123456789", 9), ~0xe3069283u);
	assert_int_equal(mtftl_crc32c(0, "123456789", 9), 0x58e3fa20u);
	/* It can be fed in pieces. */
	assert_int_equal(mtftl_crc32c(mtftl_crc32c(5, "1234", 4), "56789", 5),
			 mtftl_crc32c(5, "123456789", 9));
}

static void seed_depends_on_uuid_and_key(void **state)
{
	static const u8 other[16] = "0123456789abcdeg";

	(void)state;
	assert_int_not_equal(mtftl_seed(uuid, 1), mtftl_seed(uuid, 2));
	assert_int_not_equal(mtftl_seed(uuid, 1), mtftl_seed(other, 1));
}

static void data_unit_round_trip(void **state)
{
	u64 lba;
	u32 crc;
	u16 i;

	(void)state;
	compose_unit(MTFTL_UNIT_DATA, MTFTL_UNIT_MAX_ENTRIES, MTFTL_UNIT_MAX_ENTRIES, OFFSET);
	assert_int_equal(parse_unit(), 0);
	assert_int_equal(parsed.type, MTFTL_UNIT_DATA);
	assert_int_equal(parsed.nr_entries, MTFTL_UNIT_MAX_ENTRIES);
	assert_int_equal(parsed.nr_blocks, MTFTL_UNIT_MAX_ENTRIES);
	assert_int_equal(parsed.lane, 3);
	assert_int_equal(parsed.seq, 100);
	assert_int_equal(parsed.durable_seq, 77);
	assert_int_equal(parsed.zone, ZONE);
	assert_int_equal(parsed.offset, OFFSET);
	assert_int_equal(parsed.erase_count, 9);
	for (i = 0; i < parsed.nr_entries; i++) {
		mtftl_unit_entry(block, i, &lba, &crc);
		assert_int_equal(lba, 5000000000ull + i);
		assert_int_equal(crc, ~(u32)i);
	}
}

static void ranges_round_trip(void **state)
{
	enum mtftl_range_kind kind;
	u64 lba, seq;
	u32 blocks;
	u16 i;

	(void)state;
	compose_unit(MTFTL_UNIT_RANGES, MTFTL_UNIT_MAX_RANGES, 0, OFFSET);
	assert_int_equal(parse_unit(), 0);
	assert_int_equal(parsed.nr_entries, MTFTL_UNIT_MAX_RANGES);
	for (i = 0; i < parsed.nr_entries; i++) {
		mtftl_unit_range(block, i, &lba, &blocks, &seq, &kind);
		assert_int_equal(lba, 1000 * i);
		assert_int_equal(blocks, i + 1);
		assert_int_equal(seq, 50 + i % 50);
		assert_int_equal(kind, i % 2 ? MTFTL_RANGE_TRIM : MTFTL_RANGE_LOST);
	}
}

static void padding_is_allowed_behind_entries(void **state)
{
	(void)state;
	compose_unit(MTFTL_UNIT_DATA, 0, 16, OFFSET);
	assert_int_equal(parse_unit(), 0);
	assert_int_equal(parsed.nr_entries, 0);
	assert_int_equal(parsed.nr_blocks, 16);
	compose_unit(MTFTL_UNIT_DATA, 17, 16, OFFSET);
	assert_int_equal(parse_unit(), -EINVAL);
}

static void appended_unit_is_valid_anywhere_in_its_zone(void **state)
{
	(void)state;
	compose_unit(MTFTL_UNIT_GC, 2, 2, MTFTL_ANY_OFFSET);
	assert_int_equal(parse_unit(), 0);
	assert_int_equal(parsed.offset, OFFSET);
	assert_int_equal(mtftl_unit_parse(block, seed(), ZONE, OFFSET + 1, CAPACITY, &parsed), 0);
	assert_int_equal(mtftl_unit_parse(block, seed(), ZONE + 1, OFFSET, CAPACITY, &parsed),
			 -ESTALE);
}

static void each_bit_of_a_header_is_covered(void **state)
{
	size_t bit, used = sizeof(struct mtftl_unit) + 20 * sizeof(struct mtftl_entry);

	(void)state;
	compose_unit(MTFTL_UNIT_DATA, 20, 20, OFFSET);
	for (bit = 0; bit < 8 * used; bit++) {
		block[bit / 8] ^= 1u << bit % 8;
		assert_int_equal(parse_unit(), bit < 32 ? -ENODATA : -EBADMSG);
		block[bit / 8] ^= 1u << bit % 8;
	}
	memset(block + used, 0xff, sizeof(block) - used);
	assert_int_equal(parse_unit(), 0);
}

static void foreign_units_are_refused(void **state)
{
	(void)state;
	compose_unit(MTFTL_UNIT_DATA, 4, 4, OFFSET);
	assert_int_equal(mtftl_unit_parse(block, mtftl_seed(uuid, KEY + 1), ZONE, OFFSET, CAPACITY,
					  &parsed), -EBADMSG);
	assert_int_equal(mtftl_unit_parse(block, seed(), ZONE + 1, OFFSET, CAPACITY, &parsed),
			 -ESTALE);
	assert_int_equal(mtftl_unit_parse(block, seed(), ZONE, OFFSET + 1, CAPACITY, &parsed),
			 -ESTALE);
	reseal(version, MTFTL_VERSION + 1);
	assert_int_equal(parse_unit(), -EPROTO);
}

static void contradictions_in_a_unit_are_refused(void **state)
{
	struct mtftl_range *range = (void *)(block + sizeof(struct mtftl_unit));

	(void)state;
	compose_unit(MTFTL_UNIT_DATA, 4, 4, OFFSET);
	/* Its payload must end inside the zone. */
	assert_int_equal(mtftl_unit_parse(block, seed(), ZONE, OFFSET, OFFSET + 5, &parsed), 0);
	assert_int_equal(mtftl_unit_parse(block, seed(), ZONE, OFFSET, OFFSET + 4, &parsed),
			 -EINVAL);
	assert_int_equal(mtftl_unit_parse(block, seed(), ZONE, OFFSET, OFFSET, &parsed), -EINVAL);

	reseal(type, 0);
	assert_int_equal(parse_unit(), -EINVAL);
	reseal(type, MTFTL_UNIT_MAP + 1);
	assert_int_equal(parse_unit(), -EINVAL);
	reseal(type, MTFTL_UNIT_RANGES);
	assert_int_equal(parse_unit(), -EINVAL);

	compose_unit(MTFTL_UNIT_DATA, MTFTL_UNIT_MAX_ENTRIES, MTFTL_UNIT_MAX_ENTRIES, OFFSET);
	assert_int_equal(parse_unit(), 0);
	reseal(nr_blocks, cpu_to_le16(MTFTL_UNIT_MAX_ENTRIES + 1));
	assert_int_equal(parse_unit(), -EINVAL);

	compose_unit(MTFTL_UNIT_DATA, 4, 4, OFFSET);
	reseal(durable_seq, cpu_to_le64(100));
	assert_int_equal(parse_unit(), -EINVAL);
	reseal(durable_seq, 0);
	assert_int_equal(parse_unit(), 0);
	reseal(seq, 0);
	assert_int_equal(parse_unit(), -EINVAL);

	compose_unit(MTFTL_UNIT_RANGES, 4, 0, OFFSET);
	reseal(nr_entries, cpu_to_le16(MTFTL_UNIT_MAX_RANGES + 1));
	assert_int_equal(parse_unit(), -EINVAL);
	compose_unit(MTFTL_UNIT_RANGES, 4, 1, OFFSET);
	assert_int_equal(parse_unit(), -EINVAL);

	compose_unit(MTFTL_UNIT_RANGES, 4, 0, OFFSET);
	range[3].nr_blocks = 0;
	reseal(lane, 0);
	assert_int_equal(parse_unit(), -EINVAL);
	compose_unit(MTFTL_UNIT_RANGES, 4, 0, OFFSET);
	range[2].lba = cpu_to_le64(~0ull);
	reseal(lane, 0);
	assert_int_equal(parse_unit(), -EINVAL);
	compose_unit(MTFTL_UNIT_RANGES, 4, 0, OFFSET);
	range[1].kind = cpu_to_le32(3);
	reseal(lane, 0);
	assert_int_equal(parse_unit(), -EINVAL);
	compose_unit(MTFTL_UNIT_RANGES, 4, 0, OFFSET);
	range[0].seq = cpu_to_le64(100);
	reseal(lane, 0);
	assert_int_equal(parse_unit(), -EINVAL);
}

/* What a reader has to do for one header is bounded. */
static void long_ranges_are_refused(void **state)
{
	struct mtftl_range *range = (void *)(block + sizeof(struct mtftl_unit));
	const u32 refused[] = { MTFTL_RANGE_MAX_BLOCKS + 1, 1u << 31, ~0u };
	size_t i;

	(void)state;
	compose_unit(MTFTL_UNIT_RANGES, MTFTL_UNIT_MAX_RANGES, 0, OFFSET);
	range[7].nr_blocks = cpu_to_le32(MTFTL_RANGE_MAX_BLOCKS);
	reseal(lane, 0);
	assert_int_equal(parse_unit(), 0);
	range[0].nr_blocks = cpu_to_le32(1);
	range[0].lba = cpu_to_le64(~0ull - 1);
	reseal(lane, 0);
	assert_int_equal(parse_unit(), 0);
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		range[7].nr_blocks = cpu_to_le32(refused[i]);
		reseal(lane, 0);
		assert_int_equal(parse_unit(), -EINVAL);
	}
}

/* The next number is above all that are found. */
static void numbers_that_would_wrap_are_refused(void **state)
{
	(void)state;
	compose_unit(MTFTL_UNIT_DATA, 4, 4, OFFSET);
	reseal(seq, cpu_to_le64((1ull << MTFTL_SEQ_BITS) - 1));
	assert_int_equal(parse_unit(), 0);
	reseal(seq, cpu_to_le64(1ull << MTFTL_SEQ_BITS));
	assert_int_equal(parse_unit(), -EINVAL);
	reseal(seq, cpu_to_le64(~0ull));
	assert_int_equal(parse_unit(), -EINVAL);
}

static void retried_unit_keeps_its_number(void **state)
{
	(void)state;
	compose_unit(MTFTL_UNIT_DATA, 4, 4, OFFSET);
	mtftl_unit_seal(block, seed(), ZONE + 5, OFFSET + 9, 2, 80);
	assert_int_equal(parse_unit(), -ESTALE);
	assert_int_equal(mtftl_unit_parse(block, seed(), ZONE + 5, OFFSET + 9, CAPACITY, &parsed),
			 0);
	assert_int_equal(parsed.seq, 100);
	assert_int_equal(parsed.durable_seq, 80);
	assert_int_equal(parsed.erase_count, 2);
}

/* Units without a header */

#define OOB_BLOCKS	5u
#define STRIDE		64u	/* of metadata: more than we use */

static _Alignas(8) u8 bare[OOB_BLOCKS][MTFTL_BLOCK_SIZE], meta[OOB_BLOCKS][STRIDE];

static struct mtftl_oob *oob_at(u32 i)
{
	return (struct mtftl_oob *)meta[i];
}

static void compose_bare(u32 first, u32 nr, enum mtftl_unit_type type, u64 seq)
{
	u32 i;

	for (i = first; i < first + nr; i++) {
		memset(bare[i], 'a' + i, MTFTL_BLOCK_SIZE);
		mtftl_oob_compose(oob_at(i), type, seq, 0xfffffff0u + i,
				  mtftl_payload_crc(seed(), bare[i]), seed(), ZONE, 0x12345);
	}
}

static int parse_bare(u32 first, u32 nr, u32 zone, u32 offset)
{
	return mtftl_oob_parse(bare[first], meta[first], STRIDE, nr, seed(), zone, offset, CAPACITY,
			       block, &parsed);
}

static void bare_unit_round_trip(void **state)
{
	const u64 seq = (1ull << MTFTL_OOB_SEQ_BITS) - 1;
	u32 i, crc;
	u64 lba;

	(void)state;
	memset(meta, 0xee, sizeof(meta));
	compose_bare(0, OOB_BLOCKS, MTFTL_UNIT_GC, seq);
	assert_int_equal(parse_bare(0, OOB_BLOCKS, ZONE, OFFSET), 0);
	assert_int_equal(parsed.type, MTFTL_UNIT_GC);
	assert_int_equal(parsed.seq, seq);
	assert_int_equal(parsed.zone, ZONE);
	assert_int_equal(parsed.offset, OFFSET);
	assert_int_equal(parsed.nr_entries, OOB_BLOCKS);
	assert_int_equal(parsed.nr_blocks, OOB_BLOCKS);
	assert_int_equal(parsed.durable_seq, 0);
	assert_int_equal(mtftl_erase_count(0x10000, parsed.erase_count), 0x12345);
	assert_true(mtftl_same_erase_count(true, parsed.erase_count, 0x12345));
	assert_false(mtftl_same_erase_count(false, parsed.erase_count, 0x12345));
	for (i = 0; i < OOB_BLOCKS; i++) {
		mtftl_unit_entry(block, i, &lba, &crc);
		assert_int_equal(lba, 0xfffffff0u + i);
		assert_int_equal(crc, mtftl_payload_crc(seed(), bare[i]));
		assert_int_equal(mtftl_oob_crc(oob_at(i), lba, seed(), ZONE), crc);
		assert_int_not_equal(mtftl_oob_crc(oob_at(i), lba + 1, seed(), ZONE), crc);
		assert_int_not_equal(mtftl_oob_crc(oob_at(i), lba, seed(), ZONE + 1), crc);
	}
	/* From its middle on; and as far as the zone goes. */
	assert_int_equal(parse_bare(2, 2, ZONE, OFFSET), 0);
	assert_int_equal(parsed.nr_entries, 2);
	assert_int_equal(parse_bare(0, OOB_BLOCKS, ZONE, CAPACITY - 3), 0);
	assert_int_equal(parsed.nr_entries, 3);
	assert_int_equal(parse_bare(0, OOB_BLOCKS, ZONE, CAPACITY), -EINVAL);
}

/* However many blocks go on as if they were of the same unit. */
static void a_bare_unit_has_no_more_than_a_header_lists(void **state)
{
	const u32 nr = MTFTL_UNIT_MAX_ENTRIES + 1;
	struct mtftl_oob *oob = calloc(nr, sizeof(*oob));
	u8 *blocks = calloc(nr, MTFTL_BLOCK_SIZE);
	u32 i;

	(void)state;
	for (i = 0; i < nr; i++)
		mtftl_oob_compose(oob + i, MTFTL_UNIT_DATA, 9, i,
				  mtftl_payload_crc(seed(), blocks), seed(), ZONE, 1);
	assert_int_equal(mtftl_oob_parse(blocks, oob, sizeof(*oob), nr, seed(), ZONE, 0, CAPACITY,
					 block, &parsed), 0);
	assert_int_equal(parsed.nr_blocks, nr - 1);
	free(blocks);
	free(oob);
}

static void bare_units_end_where_another_begins(void **state)
{
	(void)state;
	compose_bare(0, 2, MTFTL_UNIT_DATA, 7);
	compose_bare(2, 1, MTFTL_UNIT_DATA, 8);
	compose_bare(3, 1, MTFTL_UNIT_GC, 8);
	memset(oob_at(4), 0, sizeof(struct mtftl_oob));
	assert_int_equal(parse_bare(0, OOB_BLOCKS, ZONE, OFFSET), 0);
	assert_int_equal(parsed.nr_entries, 2);
	assert_int_equal(parse_bare(2, 3, ZONE, OFFSET), 0);
	assert_int_equal(parsed.nr_entries, 1);
	assert_int_equal(parse_bare(3, 2, ZONE, OFFSET), 0);
	assert_int_equal(parsed.nr_entries, 1);
	/* No data, and no header either. */
	assert_int_equal(parse_bare(4, 1, ZONE, OFFSET), -ENODATA);

	/* The same unit, sent again. */
	compose_bare(0, 2, MTFTL_UNIT_DATA, 7);
	memcpy(bare[2], bare[0], 2 * sizeof(bare[0]));
	memcpy(meta[2], meta[0], 2 * sizeof(meta[0]));
	assert_int_equal(parse_bare(0, 4, ZONE, OFFSET), 0);
	assert_int_equal(parsed.nr_entries, 2);
}

static void headers_stand_between_bare_units(void **state)
{
	u8 header[MTFTL_BLOCK_SIZE];

	(void)state;
	compose_unit(MTFTL_UNIT_RANGES, 3, 0, OFFSET);
	memcpy(bare[0], block, sizeof(block));
	memset(oob_at(0), 0, sizeof(struct mtftl_oob));
	compose_bare(1, 1, MTFTL_UNIT_DATA, 7);
	memcpy(header, block, sizeof(header));
	memset(block, 0, sizeof(block));
	assert_int_equal(parse_bare(0, 2, ZONE, OFFSET), 0);
	assert_int_equal(parsed.type, MTFTL_UNIT_RANGES);
	assert_memory_equal(block, header, sizeof(header));
	assert_int_equal(mtftl_unit_head(true, MTFTL_UNIT_RANGES), 1);
	assert_int_equal(mtftl_unit_head(true, MTFTL_UNIT_DATA), 0);
	assert_int_equal(mtftl_unit_head(false, MTFTL_UNIT_DATA), 1);

	/* Data has none here. */
	compose_unit(MTFTL_UNIT_DATA, 0, 0, OFFSET);
	memcpy(bare[0], block, sizeof(block));
	assert_int_equal(parse_bare(0, 2, ZONE, OFFSET), -EINVAL);

	/* What users store may look like a header: their blocks say that they are none. */
	memcpy(bare[1], header, sizeof(header));
	mtftl_oob_compose(oob_at(1), MTFTL_UNIT_DATA, 7, 3, mtftl_payload_crc(seed(), bare[1]),
			  seed(), ZONE, 0);
	assert_int_equal(parse_bare(1, 1, ZONE, OFFSET), 0);
	assert_int_equal(parsed.type, MTFTL_UNIT_DATA);
}

static void each_bit_of_metadata_and_block_is_covered(void **state)
{
	u8 *bytes = meta[0];
	size_t bit;

	(void)state;
	compose_bare(0, 1, MTFTL_UNIT_DATA, 0x123456789abcull);
	for (bit = 0; bit < 8 * sizeof(struct mtftl_oob); bit++) {
		bytes[bit / 8] ^= 1u << bit % 8;
		assert_int_not_equal(parse_bare(0, 1, ZONE, OFFSET), 0);
		bytes[bit / 8] ^= 1u << bit % 8;
	}
	for (bit = 0; bit < 8 * MTFTL_BLOCK_SIZE; bit += 7) {
		bare[0][bit / 8] ^= 1u << bit % 8;
		assert_int_equal(parse_bare(0, 1, ZONE, OFFSET), -EBADMSG);
		bare[0][bit / 8] ^= 1u << bit % 8;
	}
	assert_int_equal(parse_bare(0, 1, ZONE + 1, OFFSET), -EBADMSG);
	assert_int_equal(parse_bare(0, 1, ZONE, OFFSET), 0);
	/* A block of another unit under this one's metadata. */
	compose_bare(1, 1, MTFTL_UNIT_DATA, 9);
	memcpy(meta[1], meta[0], STRIDE);
	assert_int_equal(parse_bare(1, 1, ZONE, OFFSET), -EBADMSG);
	/* Numbers start at 1; a type of two bits that has a header. */
	compose_bare(0, 1, MTFTL_UNIT_DATA, 0);
	assert_int_equal(parse_bare(0, 1, ZONE, OFFSET), -EINVAL);
	compose_bare(0, 1, MTFTL_UNIT_RANGES, 9);
	assert_int_equal(parse_bare(0, 1, ZONE, OFFSET), -EINVAL);
}

static void erase_counts_are_the_next_ones(void **state)
{
	const u32 turn = 1u << MTFTL_OOB_ERASE_BITS;

	(void)state;
	assert_int_equal(mtftl_erase_count(0, 0), 0);
	assert_int_equal(mtftl_erase_count(5, 5), 5);
	assert_int_equal(mtftl_erase_count(5, 4), turn + 4);
	assert_int_equal(mtftl_erase_count(7 * turn + 3, 2), 8 * turn + 2);
	assert_int_equal(mtftl_erase_count(7 * turn + 3, turn - 1), 8 * turn - 1);
}

/* Superblock */

static struct mtftl_sb_info example_sb(void)
{
	struct mtftl_sb_info info = {
		.flags = MTFTL_SB_CLEAN, .generation = 12, .logical_blocks = 20000,
		.nr_zones = 64, .zone_blocks = 1024, .zone_capacity = CAPACITY,
		.op_permille = 250, .key = KEY, .ckpt_seq = 99, .ckpt_blocks = 21,
		.ckpt_nr_zones = 1, .ckpt_zones = { 2 },
	};

	memcpy(info.uuid, uuid, sizeof(uuid));
	return info;
}

/* Zones of two checkpoints, as a circle; the stream lies behind some map blocks. */
static struct mtftl_sb_info example_log_sb(void)
{
	struct mtftl_sb_info info = example_sb();

	info.map_log = true;
	info.ckpt_blocks = 2;
	info.ckpt_nr_zones = 2;
	info.ckpt_zones[1] = 5;
	info.ckpt_unit_first = 107;
	info.ckpt_unit_last = 107;
	info.ckpt_seat = 1;
	info.ckpt_offset = 21;
	return info;
}

static int sb_round_trip(const struct mtftl_sb_info *in)
{
	struct mtftl_sb_info out;

	mtftl_sb_compose(block, in);
	return mtftl_sb_parse(block, &out);
}

static void superblock_round_trip(void **state)
{
	struct mtftl_sb_info in = example_sb(), out;

	(void)state;
	memset(&out, 0, sizeof(out));
	mtftl_sb_compose(block, &in);
	assert_memory_equal(block, "MTFTFSB1", 8);
	assert_int_equal(mtftl_sb_parse(block, &out), 0);
	assert_memory_equal(&in, &out, sizeof(in));

	in.oob = true;
	assert_int_equal(sb_round_trip(&in), 0);
	mtftl_sb_compose(block, &in);
	assert_int_equal(mtftl_sb_parse(block, &out), 0);
	assert_true(out.oob);

	/* As made by format: everything unmapped. */
	in.ckpt_seq = in.ckpt_blocks = in.ckpt_nr_zones = 0;
	assert_int_equal(sb_round_trip(&in), 0);
}

static void each_bit_of_a_superblock_is_covered(void **state)
{
	struct mtftl_sb_info in = example_sb(), out;
	size_t bit;

	(void)state;
	mtftl_sb_compose(block, &in);
	for (bit = 0; bit < 8 * sizeof(block); bit++) {
		block[bit / 8] ^= 1u << bit % 8;
		assert_int_equal(mtftl_sb_parse(block, &out), bit < 64 ? -ENODATA : -EBADMSG);
		block[bit / 8] ^= 1u << bit % 8;
	}
}

static void newer_superblock_is_refused(void **state)
{
	struct mtftl_sb_info in = example_sb(), out;
	struct mtftl_sb *sb = (void *)block;

	(void)state;
	mtftl_sb_compose(block, &in);
	sb->incompat = cpu_to_le64(MTFTL_SB_MAP_LOG << 1);
	sb->crc = 0;
	sb->crc = cpu_to_le32(mtftl_crc32c(~0u, block, sizeof(block)));
	assert_int_equal(mtftl_sb_parse(block, &out), -EPROTO);

	mtftl_sb_compose(block, &in);
	sb->compat = cpu_to_le64(1);
	sb->crc = 0;
	sb->crc = cpu_to_le32(mtftl_crc32c(~0u, block, sizeof(block)));
	assert_int_equal(mtftl_sb_parse(block, &out), 0);

	sb->version = cpu_to_le16(MTFTL_VERSION + 1);
	sb->crc = 0;
	sb->crc = cpu_to_le32(mtftl_crc32c(~0u, block, sizeof(block)));
	assert_int_equal(mtftl_sb_parse(block, &out), -EPROTO);
}

#define refuses(field, value)		refuses_in(example_sb(), field, value)
#define log_refuses(field, value)	refuses_in(example_log_sb(), field, value)
#define refuses_in(example, field, value) do {					\
	struct mtftl_sb_info in = example;					\
	assert_int_equal(sb_round_trip(&in), 0);				\
	in.field = (value);							\
	assert_int_equal(sb_round_trip(&in), -EINVAL);				\
	/* And says which. */							\
	assert_true(strstr(#field, mtftl_sb_wrong(&in)) ||			\
		    strstr(mtftl_sb_wrong(&in), #field));			\
} while (0)

static void contradictions_in_a_superblock_are_refused(void **state)
{
	struct mtftl_sb_info huge = example_sb();

	(void)state;
	refuses(generation, 0);
	refuses(logical_blocks, 0);
	refuses(logical_blocks, mtftl_logical_blocks(64, CAPACITY, 0, false) + 1);
	refuses(nr_zones, 2);
	refuses(zone_capacity, 0);
	refuses(zone_capacity, 1025);
	refuses(op_permille, 1000);
	refuses(ckpt_blocks, 0);
	refuses(ckpt_blocks, 22);
	refuses(ckpt_nr_zones, 0);
	/* More than its checkpoint takes. */
	refuses(ckpt_nr_zones, 2);
	refuses(ckpt_zones[0], 1);
	refuses(ckpt_zones[0], 64);

	/* Past 16 TiB a page number does not fit. */
	huge.ckpt_seq = huge.ckpt_blocks = huge.ckpt_nr_zones = 0;
	huge.zone_blocks = huge.zone_capacity = 1 << 18;
	huge.nr_zones = 1 << 14;
	assert_int_equal(sb_round_trip(&huge), -EINVAL);
	huge.nr_zones = (1 << 14) - 8;
	assert_int_equal(sb_round_trip(&huge), 0);
	/* A zone that its footer fills. */
	huge.zone_capacity = 3;
	assert_int_equal(sb_round_trip(&huge), -EINVAL);
}

static void a_superblock_tells_where_the_log_of_the_map_is(void **state)
{
	struct mtftl_sb_info in = example_log_sb(), out;
	struct mtftl_sb *sb = (void *)block;

	(void)state;
	memset(&out, 0, sizeof(out));
	mtftl_sb_compose(block, &in);
	assert_int_equal(mtftl_sb_parse(block, &out), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	/* Map entries of another width are for another reader. */
	sb->map_entry_bytes++;
	sb->crc = 0;
	sb->crc = cpu_to_le32(mtftl_crc32c(~0u, block, sizeof(block)));
	assert_int_equal(mtftl_sb_parse(block, &out), -EPROTO);
	/* As made by format; and a checkpoint of the other kind. */
	mtftl_sb_set_checkpoint(&in, NULL);
	assert_true(in.map_log);
	assert_int_equal(sb_round_trip(&in), 0);
	out = example_sb();
	mtftl_sb_set_checkpoint(&in, &out);
	assert_memory_equal(&in, &out, sizeof(in));
	/* Without the bit these fields mean nothing. */
	mtftl_sb_compose(block, &in);
	sb->ckpt_seat = cpu_to_le32(7);
	sb->crc = 0;
	sb->crc = cpu_to_le32(mtftl_crc32c(~0u, block, sizeof(block)));
	assert_int_equal(mtftl_sb_parse(block, &out), 0);
	assert_int_equal(out.ckpt_seat, 0);
}

static void contradictions_about_the_log_of_the_map_are_refused(void **state)
{
	(void)state;
	log_refuses(ckpt_blocks, 0);
	log_refuses(ckpt_blocks, 3);
	log_refuses(ckpt_nr_zones, 1);
	log_refuses(ckpt_nr_zones, 3);
	log_refuses(ckpt_zones[1], 2);
	log_refuses(ckpt_zones[1], 64);
	log_refuses(ckpt_unit_first, 0);
	log_refuses(ckpt_unit_first, 99);	/* drawn behind ckpt_seq */
	log_refuses(ckpt_unit_first, 1ull << MTFTL_SEQ_BITS);
	log_refuses(ckpt_unit_last, 106);
	log_refuses(ckpt_unit_last, 1ull << MTFTL_SEQ_BITS);
	log_refuses(ckpt_seat, 2);
	log_refuses(ckpt_offset, CAPACITY - MTFTL_STREAM_UNIT_BLOCKS);
	log_refuses(ckpt_offset, ~0u);
}

/* As format makes it: nothing of a stream is named yet. */
static void a_log_without_a_checkpoint_names_no_stream(void **state)
{
	struct mtftl_sb_info in = example_log_sb(), tiny;

	(void)state;
	mtftl_sb_set_checkpoint(&in, NULL);
	tiny = in;
	assert_int_equal(sb_round_trip(&in), 0);
	in.ckpt_unit_first = 1;
	assert_int_equal(sb_round_trip(&in), -EINVAL);
	in.ckpt_unit_first = 0;
	in.ckpt_unit_last = 1;
	assert_int_equal(sb_round_trip(&in), -EINVAL);
	in.ckpt_unit_last = 0;
	in.ckpt_seat = 1;
	assert_int_equal(sb_round_trip(&in), -EINVAL);
	in.ckpt_seat = 0;
	in.ckpt_offset = 1;
	assert_int_equal(sb_round_trip(&in), -EINVAL);
	assert_string_equal(mtftl_sb_wrong(&in), "ckpt_blocks");
	/* Zones that are too small for a log. */
	tiny.nr_zones = 12;
	tiny.zone_blocks = tiny.zone_capacity = tiny.logical_blocks = 8;
	assert_int_equal(sb_round_trip(&tiny), -EINVAL);
	tiny.map_log = false;
	assert_int_equal(sb_round_trip(&tiny), 0);
}

static void generations_that_would_wrap_are_refused(void **state)
{
	struct mtftl_sb_info in = example_sb(), out;

	(void)state;
	in.generation = ~0ull;
	mtftl_sb_compose(block, &in);
	assert_int_equal(mtftl_sb_parse(block, &out), -EINVAL);
	in.generation = (1ull << MTFTL_SEQ_BITS) - 1;
	mtftl_sb_compose(block, &in);
	assert_int_equal(mtftl_sb_parse(block, &out), 0);
	in.ckpt_seq = ~0ull;
	mtftl_sb_compose(block, &in);
	assert_int_equal(mtftl_sb_parse(block, &out), -EINVAL);
}

/* What is just possible is no contradiction. */
static void superblocks_of_the_largest_layout_are_accepted(void **state)
{
	struct mtftl_sb_info in = example_sb(), out;
	u32 i;

	(void)state;
	/* Of zones beyond their number a record says nothing. */
	in.ckpt_zones[1] = 5;
	mtftl_sb_compose(block, &in);
	assert_int_equal(mtftl_sb_parse(block, &out), 0);
	assert_int_equal(out.ckpt_zones[0], in.ckpt_zones[0]);
	assert_int_equal(out.ckpt_zones[1], 0);
	in.op_permille = 999;
	in.nr_zones = 220000;
	in.logical_blocks = mtftl_logical_blocks(in.nr_zones, in.zone_capacity, 0, false);
	in.ckpt_blocks = mtftl_ckpt_stream_blocks(in.nr_zones, in.logical_blocks);
	in.ckpt_nr_zones = mtftl_ckpt_zones(in.nr_zones, in.zone_capacity, in.logical_blocks);
	assert_in_range(in.ckpt_nr_zones, 200, MTFTL_SB_MAX_CKPT_ZONES);
	for (i = 0; i < in.ckpt_nr_zones; i++)
		in.ckpt_zones[i] = in.nr_zones - 1 - i;
	mtftl_sb_compose(block, &in);
	assert_int_equal(mtftl_sb_parse(block, &out), 0);
	assert_memory_equal(in.ckpt_zones, out.ckpt_zones, sizeof(in.ckpt_zones));
	/* Nothing kept back, nothing written. */
	in.ckpt_seq = in.ckpt_blocks = in.ckpt_nr_zones = in.op_permille = 0;
	in.logical_blocks = mtftl_logical_blocks(in.nr_zones, in.zone_capacity, 0, false);
	assert_int_equal(sb_round_trip(&in), 0);
	in.logical_blocks++;
	assert_int_equal(sb_round_trip(&in), -EINVAL);
}

static void too_many_ckpt_zones_are_refused(void **state)
{
	struct mtftl_sb_info in = example_sb(), out;
	struct mtftl_sb *sb = (void *)block;

	(void)state;
	mtftl_sb_compose(block, &in);
	sb->ckpt_nr_zones = cpu_to_le32(MTFTL_SB_MAX_CKPT_ZONES + 1);
	sb->crc = 0;
	sb->crc = cpu_to_le32(mtftl_crc32c(~0u, block, sizeof(block)));
	assert_int_equal(mtftl_sb_parse(block, &out), -EINVAL);
}

/* Checkpoint streams */

static void zone_records_are_bounded(void **state)
{
	struct mtftl_zone_record record = {
		.wp = cpu_to_le32(CAPACITY), .first_seq = cpu_to_le64(50),
	};

	(void)state;
	assert_true(mtftl_zone_record_valid(&record, CAPACITY));
	assert_false(mtftl_zone_record_valid(&record, CAPACITY - 1));
	record.erase_count = cpu_to_le32(MTFTL_MAX_ERASES);
	assert_true(mtftl_zone_record_valid(&record, CAPACITY));
	record.erase_count = cpu_to_le32(MTFTL_MAX_ERASES + 1);
	assert_false(mtftl_zone_record_valid(&record, CAPACITY));
	record.erase_count = 0;
	record.first_seq = cpu_to_le64(1ull << MTFTL_SEQ_BITS);
	assert_false(mtftl_zone_record_valid(&record, CAPACITY));
}

static void map_entries_are_bounded(void **state)
{
	(void)state;
	assert_true(mtftl_map_entry_valid(MTFTL_MAP_UNMAPPED, 8, 10, 1000));
	assert_true(mtftl_map_entry_valid(MTFTL_MAP_LOST, 8, 10, 1000));
	assert_true(mtftl_map_entry_valid(7 * 1024 + 999, 8, 10, 1000));
	/* In the hole behind a zone, in a zone that is not there, a slot. */
	assert_false(mtftl_map_entry_valid(7 * 1024 + 1000, 8, 10, 1000));
	assert_false(mtftl_map_entry_valid(8 * 1024, 8, 10, 1000));
	assert_false(mtftl_map_entry_valid(MTFTL_MAP_MAX_PAGE + 1, ~0u, 0, 1));
	assert_false(mtftl_map_entry_valid(MTFTL_MAP_LOST - 1, ~0u, 0, 1));
}

/* Layout */

static void layout_arithmetic(void **state)
{
	u64 tib = (1ull << 40) / MTFTL_BLOCK_SIZE, blocks;
	u32 capacity = 275712, zones = 904;

	(void)state;
	/* 128 zone records fit a block, 1024 map entries fit a block. */
	assert_int_equal(mtftl_ckpt_stream_blocks(128, 1024), 2);
	assert_int_equal(mtftl_ckpt_stream_blocks(129, 1025), 4);
	assert_int_equal(mtftl_ckpt_stream_blocks(1024, 16 * tib), 8 + (16 * tib) / 1024);
	/* A zone of 16 blocks takes two headers and 14 blocks of the stream. */
	assert_int_equal(mtftl_ckpt_zones(128, 16, 13 * 1024), 1);
	assert_int_equal(mtftl_ckpt_zones(128, 16, 13 * 1024 + 1), 2);
	/* The most that a zone has room for, behind the records; more records than room. */
	assert_int_equal(mtftl_ckpt_most_blocks(128, 16, 1), 13 * 1024);
	assert_int_equal(mtftl_ckpt_most_blocks(14 * 128, 16, 1), 0);
	assert_int_equal(mtftl_ckpt_most_blocks(20 * 128, 16, 1), 0);
	assert_int_equal(mtftl_ckpt_zones(128, 7, 1024), (u32)-1);
	/* 1024 records of 16 bytes: 4 blocks, a header, the tail. */
	assert_int_equal(mtftl_footer_reserve(1024, false), 6);
	/* Without headers each block may be a unit of one: 6 blocks. */
	assert_int_equal(mtftl_footer_reserve(1024, true), 8);

	/* A 1 TB drive: 904 zones of 1077 MiB. */
	blocks = mtftl_logical_blocks(zones, capacity, 250, false);
	assert_true(blocks > (u64)zones * capacity * 70 / 100);
	assert_true(blocks < (u64)zones * capacity * 75 / 100);
	assert_int_equal(blocks % 256, 0);
	assert_true(mtftl_logical_blocks(zones, capacity, 0, false) > blocks);
	/* Headers were one block in 33. */
	assert_true(mtftl_logical_blocks(zones, capacity, 250, true) > blocks * 102 / 100);

	/* 10 zones of 1018 blocks in front of their footers, with one header for 32 blocks. */
	assert_int_equal(mtftl_user_zones(1024, 9872, false), 10);
	assert_int_equal(mtftl_user_zones(1024, 9873, false), 11);
	assert_int_equal(mtftl_user_zones(1024, 32 * 308, false), 10);
	assert_int_equal(mtftl_user_zones(1024, 32 * 309, false), 11);
	assert_int_equal(mtftl_user_zones(1024, 1, true), 1);
	assert_int_equal(mtftl_user_zones(1024, 0, true), 1);
	/* Two for superblocks and two for checkpoints. */
	assert_int_equal(mtftl_spare_zones(20, 1024, 32 * 308, false), 6);
	assert_int_equal(mtftl_spare_zones(14, 1024, 32 * 308, false), 0);
	assert_int_equal(mtftl_spare_zones(10, 1024, 32 * 308, false), 0);

	/* Too small, too many checkpoint zones, nothing left. */
	assert_int_equal(mtftl_logical_blocks(8, 1024, 0, false), 0);
	assert_true(mtftl_logical_blocks(9, 1024, 0, false) > 0);
	assert_int_equal(mtftl_logical_blocks(9, 1024, 1000, false), 0);
	assert_int_equal(mtftl_logical_blocks(9, 1024, 1001, false), 0);
	assert_int_equal(mtftl_logical_blocks(64, 6, 0, false), 0);
	assert_int_equal(mtftl_logical_blocks(1u << 22, 1024, 250, false), 0);
}

static void footer_and_tail_fit_their_reserve(void **state)
{
	u32 capacity, used;

	(void)state;
	for (capacity = 16; capacity < 300000; capacity = capacity * 3 / 2) {
		u32 oob;

		for (oob = 0; oob < 2; oob++) {
			u32 reserve = mtftl_footer_reserve(capacity, oob);

			assert_true(reserve < capacity / 2);
			/* The worst zone, up to the reserve: ranges only, or units of one block. */
			used = ((capacity - reserve) * (oob ? 24 : 16) + MTFTL_BLOCK_SIZE - 1) /
			       MTFTL_BLOCK_SIZE;
			used += (used + MTFTL_STREAM_UNIT_BLOCKS - 1) / MTFTL_STREAM_UNIT_BLOCKS + 1;
			assert_true(used <= reserve);
		}
	}
}

/* The largest size of blocks that the parser takes for a stream, 0: none. */
static u32 longest_stream(u32 capacity, bool oob)
{
	struct mtftl_footer footer = { .nr_records = 1, .min_seq = 1, .max_seq = 1 };
	struct mtftl_tail_info tail;
	u32 blocks, longest = 0;

	for (blocks = 1; blocks + 2 <= capacity; blocks++) {
		footer.used = blocks * MTFTL_BLOCK_SIZE;
		mtftl_tail_compose(block, seed(), ZONE, 9, 1, &footer);
		if (!mtftl_tail_parse(block, seed(), ZONE, capacity, oob, &tail))
			longest = blocks;
		else if (longest)
			break;
	}
	return longest;
}

/* GC's buffer has mtftl_footer_stream_blocks(): a longer stream would be written behind it. */
static void accepted_streams_fit_their_buffer(void **state)
{
	const u32 sizes[] = { 3, 4, 7, 8, 120, 255, 256, 257, 511, 512, 513, 1024, 1536, 4096,
			      27648, 65536, 275712 };
	u32 oob;
	size_t i;

	(void)state;
	for (oob = 0; oob < 2; oob++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			u32 buffer = mtftl_footer_stream_blocks(sizes[i], oob);

			assert_true(longest_stream(sizes[i], oob) <= buffer);
			assert_true(buffer < mtftl_footer_reserve(sizes[i], oob));
		}
	}
	/* The longest stream that a writer can make is accepted. */
	assert_int_equal(longest_stream(275712, false), 275712 * 16 / MTFTL_BLOCK_SIZE);
	assert_int_equal(longest_stream(275712, true), (275712 * 24 + 4095) / MTFTL_BLOCK_SIZE);
}

/* Footers */

static _Alignas(8) u8 stream[2 * MTFTL_BLOCK_SIZE];

static void footer_round_trip(void **state)
{
	const u64 lbas[] = { 5, 1ull << 40, 7 };
	struct mtftl_tail_info tail;
	struct mtftl_footer footer;
	enum mtftl_unit_type type;
	const __le64 *found;
	u32 pos = 0, offset;
	u16 entries;
	u64 seq;

	(void)state;
	mtftl_footer_init(&footer, stream, sizeof(stream));
	assert_int_equal(mtftl_footer_add(&footer, 21, 0, MTFTL_UNIT_DATA, 3, lbas), 0);
	assert_int_equal(mtftl_footer_add(&footer, 20, 4, MTFTL_UNIT_RANGES, 0, NULL), 0);
	assert_int_equal(mtftl_footer_add(&footer, 25, 5, MTFTL_UNIT_GC, 1, lbas), 0);
	mtftl_tail_compose(block, seed(), ZONE, 9, 30, &footer);

	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, CAPACITY, false, &tail), 0);
	assert_int_equal(tail.erase_count, 9);
	assert_int_equal(tail.footer_offset, 30);
	assert_int_equal(tail.footer_blocks, 1);
	assert_int_equal(tail.nr_records, 3);
	assert_int_equal(tail.min_seq, 20);
	assert_int_equal(tail.max_seq, 25);

	assert_int_equal(mtftl_footer_next(stream, sizeof(stream), &pos, &seq, &offset, &type,
					   &entries, &found), 1);
	assert_int_equal(seq, 21);
	assert_int_equal(offset, 0);
	assert_int_equal(type, MTFTL_UNIT_DATA);
	assert_int_equal(entries, 3);
	assert_int_equal(le64_to_cpu(found[1]), lbas[1]);
	assert_int_equal(mtftl_footer_next(stream, sizeof(stream), &pos, &seq, &offset, &type,
					   &entries, &found), 1);
	assert_int_equal(seq, 20);
	assert_int_equal(type, MTFTL_UNIT_RANGES);
	assert_int_equal(mtftl_footer_next(stream, sizeof(stream), &pos, &seq, &offset, &type,
					   &entries, &found), 1);
	assert_int_equal(offset, 5);
	assert_int_equal(le64_to_cpu(found[0]), 5);
	assert_int_equal(mtftl_footer_next(stream, sizeof(stream), &pos, &seq, &offset, &type,
					   &entries, &found), 0);
}

/* Less is left of the last block than a record takes. */
static void footer_may_end_close_to_its_block(void **state)
{
	struct mtftl_tail_info tail = {
		.footer_offset = 1000, .footer_blocks = 1, .nr_records = 5, .min_seq = 1, .max_seq = 5,
	};
	u64 lbas[101] = { 0 };
	struct mtftl_footer footer;
	u32 i;

	(void)state;
	mtftl_footer_init(&footer, stream, sizeof(stream));
	for (i = 0; i < 5; i++)
		assert_int_equal(mtftl_footer_add(&footer, 1 + i, 110 * i, MTFTL_UNIT_DATA,
						  i ? 100 : 101, lbas), 0);
	assert_int_equal(footer.used, MTFTL_BLOCK_SIZE - 8);
	assert_true(mtftl_footer_valid(stream, MTFTL_BLOCK_SIZE, &tail, false));
	/* What is there must be padding. */
	stream[MTFTL_BLOCK_SIZE - 8] = 1;
	assert_false(mtftl_footer_valid(stream, MTFTL_BLOCK_SIZE, &tail, false));
}

static void full_footer_stays_unchanged(void **state)
{
	u64 lbas[MTFTL_UNIT_MAX_ENTRIES] = { 0 };
	struct mtftl_footer footer, before;

	(void)state;
	mtftl_footer_init(&footer, stream, sizeof(stream));
	while (footer.size - footer.used >= 16 + 8 * MTFTL_UNIT_MAX_ENTRIES)
		assert_int_equal(mtftl_footer_add(&footer, 1 + footer.nr_records, 0,
						  MTFTL_UNIT_DATA, MTFTL_UNIT_MAX_ENTRIES, lbas),
				 0);
	before = footer;
	assert_int_equal(mtftl_footer_add(&footer, 1000, 0, MTFTL_UNIT_DATA,
					  MTFTL_UNIT_MAX_ENTRIES, lbas), -ENOSPC);
	assert_memory_equal(&footer, &before, sizeof(footer));
	assert_int_equal(mtftl_footer_add(&footer, 1000, 0, MTFTL_UNIT_RANGES, 0, NULL), 0);
	/* To its last byte. */
	memset(&footer, 0x55, sizeof(footer));
	mtftl_footer_init(&footer, stream, sizeof(stream));
	assert_int_equal(footer.used + footer.nr_records + footer.min_seq + footer.max_seq, 0);
	while (footer.used < footer.size)
		assert_int_equal(mtftl_footer_add(&footer, 1 + footer.nr_records, 0,
						  MTFTL_UNIT_RANGES, 0, NULL), 0);
	assert_int_equal(mtftl_footer_add(&footer, 1000, 0, MTFTL_UNIT_RANGES, 0, NULL), -ENOSPC);
}

static void bad_tails_are_refused(void **state)
{
	const u64 lba = 5;
	struct mtftl_tail *tail = (void *)block;
	struct mtftl_tail_info info;
	struct mtftl_footer footer;
	size_t bit;

	(void)state;
	mtftl_footer_init(&footer, stream, sizeof(stream));
	mtftl_footer_add(&footer, 21, 0, MTFTL_UNIT_DATA, 1, &lba);
	mtftl_tail_compose(block, seed(), ZONE, 9, 30, &footer);
	for (bit = 0; bit < 8 * sizeof(block); bit++) {
		block[bit / 8] ^= 1u << bit % 8;
		assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, CAPACITY, false, &info),
				 bit < 32 ? -ENODATA : -EBADMSG);
		block[bit / 8] ^= 1u << bit % 8;
	}
	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE + 1, CAPACITY, false, &info), -ESTALE);
	/* Header, stream and tail must follow the footer's offset. */
	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, 33, false, &info), 0);
	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, 32, false, &info), -EINVAL);
	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, 30, false, &info), -EINVAL);
	/* More units than blocks to hold them. */
	mtftl_tail_compose(block, seed(), ZONE, 9, 0, &footer);
	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, CAPACITY, false, &info), -EINVAL);
	footer.min_seq = 22;
	mtftl_tail_compose(block, seed(), ZONE, 9, 30, &footer);
	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, CAPACITY, false, &info), -EINVAL);
	footer.min_seq = 0;
	mtftl_tail_compose(block, seed(), ZONE, 9, 30, &footer);
	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, CAPACITY, false, &info), -EINVAL);
	/* A stream whose positions do not fit 32 bits, in a zone that would have room for it. */
	footer.min_seq = 21;
	footer.used = ~0u - MTFTL_BLOCK_SIZE;
	mtftl_tail_compose(block, seed(), ZONE, 9, 30, &footer);
	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, 1u << 30, true, &info), 0);
	footer.used = ~0u;
	mtftl_tail_compose(block, seed(), ZONE, 9, 30, &footer);
	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, 1u << 30, true, &info), -EINVAL);
	/* No stream at all. */
	footer.used = 0;
	mtftl_tail_compose(block, seed(), ZONE, 9, 30, &footer);
	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, CAPACITY, false, &info), -EINVAL);

	tail->version = MTFTL_VERSION + 1;
	tail->crc = 0;
	tail->crc = cpu_to_le32(mtftl_crc32c(seed(), block, sizeof(block)));
	assert_int_equal(mtftl_tail_parse(block, seed(), ZONE, CAPACITY, false, &info), -EPROTO);
}

static int first_record(u32 size)
{
	enum mtftl_unit_type type;
	const __le64 *lbas;
	u32 pos = 0, offset;
	u16 entries;
	u64 seq;

	return mtftl_footer_next(stream, size, &pos, &seq, &offset, &type, &entries, &lbas);
}

static void bad_footer_streams_are_refused(void **state)
{
	struct mtftl_footer_record *record = (void *)stream;
	const u64 lbas[] = { 5, 6 };
	struct mtftl_footer footer;

	(void)state;
	mtftl_footer_init(&footer, stream, sizeof(stream));
	mtftl_footer_add(&footer, 21, 0, MTFTL_UNIT_DATA, 2, lbas);
	assert_int_equal(first_record(32), 1);
	assert_int_equal(first_record(31), -EINVAL);
	assert_int_equal(first_record(15), -EINVAL);
	assert_int_equal(first_record(0), 0);
	record->type = MTFTL_UNIT_RANGES;
	assert_int_equal(first_record(32), -EINVAL);
	record->type = MTFTL_UNIT_CKPT;
	assert_int_equal(first_record(32), -EINVAL);
	record->type = MTFTL_UNIT_GC;
	assert_int_equal(first_record(32), 1);
	record->nr_entries = cpu_to_le16(MTFTL_UNIT_MAX_ENTRIES);
	assert_int_equal(first_record(sizeof(stream)), 1);
	record->nr_entries = cpu_to_le16(MTFTL_UNIT_MAX_ENTRIES + 1);
	assert_int_equal(first_record(sizeof(stream)), -EINVAL);
}

/* As its tail says: one record and its entry in front of block 30. */
static bool stream_valid(u32 offset, enum mtftl_unit_type type, u16 entries, bool oob)
{
	struct mtftl_tail_info tail = { .footer_offset = 30, .nr_records = 1, .min_seq = 21,
					.max_seq = 21 };
	const u64 lbas[40] = { 0 };
	struct mtftl_footer footer;

	mtftl_footer_init(&footer, stream, sizeof(stream));
	mtftl_footer_add(&footer, 21, offset, type, entries, lbas);
	return mtftl_footer_valid(stream, sizeof(stream), &tail, oob);
}

static void records_keep_to_their_zone(void **state)
{
	const u32 outside[] = { 30, 31, 1u << 31, ~0u - 40, ~0u - 1, ~0u };
	u32 oob;
	size_t i;

	(void)state;
	assert_true(stream_valid(27, MTFTL_UNIT_DATA, 2, false));
	assert_false(stream_valid(27, MTFTL_UNIT_DATA, 3, false));
	assert_true(stream_valid(27, MTFTL_UNIT_DATA, 3, true));
	assert_false(stream_valid(27, MTFTL_UNIT_GC, 4, true));
	assert_true(stream_valid(29, MTFTL_UNIT_RANGES, 0, false));
	assert_true(stream_valid(29, MTFTL_UNIT_RANGES, 0, true));
	assert_false(stream_valid(0, MTFTL_UNIT_DATA, 31, true));
	for (oob = 0; oob < 2; oob++) {
		for (i = 0; i < ARRAY_SIZE(outside); i++) {
			assert_false(stream_valid(outside[i], MTFTL_UNIT_RANGES, 0, oob));
			assert_false(stream_valid(outside[i], MTFTL_UNIT_DATA, 1, oob));
			assert_false(stream_valid(outside[i], MTFTL_UNIT_DATA, 40, oob));
		}
	}
}

static void stream_must_list_what_its_tail_says(void **state)
{
	struct mtftl_tail_info tail = { .footer_offset = 30, .nr_records = 2, .min_seq = 21,
					.max_seq = 25 };
	const u64 lbas[20] = { 0 };
	struct mtftl_footer footer;

	(void)state;
	mtftl_footer_init(&footer, stream, sizeof(stream));
	mtftl_footer_add(&footer, 21, 0, MTFTL_UNIT_DATA, 14, lbas);
	mtftl_footer_add(&footer, 25, 15, MTFTL_UNIT_DATA, 14, lbas);
	assert_true(mtftl_footer_valid(stream, sizeof(stream), &tail, false));
	tail.nr_records = 1;
	assert_false(mtftl_footer_valid(stream, sizeof(stream), &tail, false));
	tail.nr_records = 3;
	assert_false(mtftl_footer_valid(stream, sizeof(stream), &tail, false));
	tail.nr_records = 2;
	tail.min_seq = 22;
	assert_false(mtftl_footer_valid(stream, sizeof(stream), &tail, false));
	tail.min_seq = 21;
	tail.max_seq = 24;
	assert_false(mtftl_footer_valid(stream, sizeof(stream), &tail, false));
	tail.max_seq = 25;
	/* Cut short inside a record. */
	assert_false(mtftl_footer_valid(stream, footer.used - 8, &tail, false));
	assert_true(mtftl_footer_valid(stream, footer.used, &tail, false));

	/* Each unit is inside the zone, but together they are more than it holds. */
	mtftl_footer_init(&footer, stream, sizeof(stream));
	mtftl_footer_add(&footer, 21, 0, MTFTL_UNIT_DATA, 14, lbas);
	mtftl_footer_add(&footer, 25, 10, MTFTL_UNIT_DATA, 15, lbas);
	assert_false(mtftl_footer_valid(stream, sizeof(stream), &tail, false));
}

static void append_offset_is_checked(void **state)
{
	u32 offset = 7;

	(void)state;
	/* A zone of 100 blocks that begins at sector 8192. */
	assert_int_equal(mtftl_append_offset(8192, 8192, 100, 5, &offset), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(mtftl_append_offset(8192 + 95 * 8, 8192, 100, 5, &offset), 0);
	assert_int_equal(offset, 95);
	assert_int_equal(mtftl_append_offset(8192 + 96 * 8, 8192, 100, 5, &offset), -EINVAL);
	assert_int_equal(mtftl_append_offset(8191, 8192, 100, 5, &offset), -EINVAL);
	assert_int_equal(mtftl_append_offset(0, 8192, 100, 5, &offset), -EINVAL);
	assert_int_equal(mtftl_append_offset(8193, 8192, 100, 5, &offset), -EINVAL);
	assert_int_equal(mtftl_append_offset(~0ull - 7, 8192, 100, 5, &offset), -EINVAL);
	assert_int_equal(mtftl_append_offset(8192 + (8ull << 32), 8192, 100, 5, &offset), -EINVAL);
	assert_int_equal(offset, 95);
}

/*
 * Zones by a letter each: '-' is not sequential, 'x' offline, others have their letter for capacity.
 * A capital one has some sectors more.
 */
static struct mtftl_run run_of(const char *zones)
{
	struct mtftl_run run = { 0 };

	for (; *zones; zones++)
		mtftl_run_add(&run, *zones == '-' ? 0 : *zones == 'x' ? MTFTL_RUN_ANY :
			      (u64)(*zones | 0x20), *zones >= 'A' && *zones <= 'Z');
	return run;
}

static void zones_are_the_longest_run(void **state)
{
	static const struct {
		const char *zones;
		u32 first, nr;
		u64 capacity;
		bool surplus;
	} cases[] = {
		{ "", 0, 0, 0, false },
		{ "---", 0, 0, 0, false },
		{ "aaaa", 0, 4, 'a', false },
		{ "--aaaa-", 2, 4, 'a', false },
		{ "aa-aaa-aaa", 3, 3, 'a', false },		/* the first of those that are as long */
		{ "aabbbcc", 2, 3, 'b', false },
		{ "aab-bb", 0, 2, 'a', false },
		{ "-xaaxa", 1, 5, 'a', false },		/* offline zones belong to any run */
		{ "aaxbb", 0, 3, 'a', false },
		{ "x", 0, 1, MTFTL_RUN_ANY, false },
		{ "xx-aax", 3, 3, 'a', false },
		{ "a-bb", 2, 2, 'b', false },
		{ "aaaaxbb", 0, 5, 'a', false },
		{ "baaaa", 1, 4, 'a', false },
		{ "AAAA", 0, 4, 'a', true },
		{ "aaAa", 0, 4, 'a', true },
		{ "BB-aaa", 3, 3, 'a', false },	/* what other runs have is left alone */
		{ "BaaaC", 1, 3, 'a', false },
		{ "BBxaaaa", 3, 4, 'a', false },
		{ "aaa-BB", 0, 3, 'a', false },
		{ "aa-BBB", 3, 3, 'b', true },
	};
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct mtftl_run run = run_of(cases[i].zones);

		assert_int_equal(run.nr, cases[i].nr);
		if (!run.nr)
			continue;
		assert_int_equal(run.first, cases[i].first);
		assert_true(run.capacity == cases[i].capacity);
		assert_int_equal(run.surplus, cases[i].surplus);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_is_the_kernels),
		cmocka_unit_test(seed_depends_on_uuid_and_key),
		cmocka_unit_test(data_unit_round_trip),
		cmocka_unit_test(ranges_round_trip),
		cmocka_unit_test(padding_is_allowed_behind_entries),
		cmocka_unit_test(appended_unit_is_valid_anywhere_in_its_zone),
		cmocka_unit_test(each_bit_of_a_header_is_covered),
		cmocka_unit_test(foreign_units_are_refused),
		cmocka_unit_test(contradictions_in_a_unit_are_refused),
		cmocka_unit_test(long_ranges_are_refused),
		cmocka_unit_test(numbers_that_would_wrap_are_refused),
		cmocka_unit_test(retried_unit_keeps_its_number),
		cmocka_unit_test(bare_unit_round_trip),
		cmocka_unit_test(a_bare_unit_has_no_more_than_a_header_lists),
		cmocka_unit_test(bare_units_end_where_another_begins),
		cmocka_unit_test(headers_stand_between_bare_units),
		cmocka_unit_test(each_bit_of_metadata_and_block_is_covered),
		cmocka_unit_test(erase_counts_are_the_next_ones),
		cmocka_unit_test(superblock_round_trip),
		cmocka_unit_test(each_bit_of_a_superblock_is_covered),
		cmocka_unit_test(newer_superblock_is_refused),
		cmocka_unit_test(contradictions_in_a_superblock_are_refused),
		cmocka_unit_test(superblocks_of_the_largest_layout_are_accepted),
		cmocka_unit_test(too_many_ckpt_zones_are_refused),
		cmocka_unit_test(a_superblock_tells_where_the_log_of_the_map_is),
		cmocka_unit_test(contradictions_about_the_log_of_the_map_are_refused),
		cmocka_unit_test(a_log_without_a_checkpoint_names_no_stream),
		cmocka_unit_test(generations_that_would_wrap_are_refused),
		cmocka_unit_test(zone_records_are_bounded),
		cmocka_unit_test(map_entries_are_bounded),
		cmocka_unit_test(append_offset_is_checked),
		cmocka_unit_test(zones_are_the_longest_run),
		cmocka_unit_test(layout_arithmetic),
		cmocka_unit_test(footer_and_tail_fit_their_reserve),
		cmocka_unit_test(accepted_streams_fit_their_buffer),
		cmocka_unit_test(footer_round_trip),
		cmocka_unit_test(footer_may_end_close_to_its_block),
		cmocka_unit_test(full_footer_stays_unchanged),
		cmocka_unit_test(bad_tails_are_refused),
		cmocka_unit_test(bad_footer_streams_are_refused),
		cmocka_unit_test(records_keep_to_their_zone),
		cmocka_unit_test(stream_must_list_what_its_tail_says),
	};

	return cmocka_run_group_tests_name("unit", tests, NULL, NULL);
}
