// SPDX-License-Identifier: GPL-2.0
/*
 * How libFuzzer changes a device. It makes half of the changes itself. The others keep records
 * whole and give one of their fields a value that is likely to matter.
 */
#include "fuzz.h"

struct field {
	u16 at;
	u16 size;
};

static const struct field super_fields[] = {
	{ 12, 2 }, { 14, 2 }, { 32, 8 }, { 40, 8 }, { 48, 8 }, { 56, 8 }, { 64, 4 }, { 68, 4 },
	{ 72, 4 }, { 76, 4 }, { 80, 8 }, { 88, 8 }, { 96, 4 }, { 104, 4 }, { 108, 4 },
	/* of the log of map blocks */
	{ 2152, 8 }, { 2160, 8 }, { 2168, 4 }, { 2172, 4 }, { 2176, 1 },
};

static const struct field unit_fields[] = {
	{ 8, 1 }, { 9, 1 }, { 10, 2 }, { 12, 2 }, { 16, 8 }, { 24, 8 }, { 32, 4 }, { 36, 4 }, { 40, 4 },
	/* the first entry or range, and the second */
	{ 64, 8 }, { 72, 4 }, { 72, 8 }, { 80, 4 }, { 80, 8 }, { 84, 4 }, { 88, 4 }, { 88, 8 },
};

static const struct field tail_fields[] = {
	{ 8, 1 }, { 12, 4 }, { 16, 4 }, { 20, 4 }, { 24, 4 }, { 28, 4 }, { 32, 8 }, { 40, 8 },
};

/* In streams: map entries, zone records, records of footers; and a block's metadata. */
static const struct field stream_fields[] = {
	{ 0, 8 }, { 0, 4 }, { 4, 4 }, { 8, 4 }, { 8, 8 }, { 12, 1 }, { 14, 2 }, { 16, 8 }, { 16, 2 },
	{ 24, 8 }, { 24, 4 }, { 32, 4 },
};

static u64 state;

static u32 pick(u32 n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(state >> 33) % n;
}

static u64 load(const u8 *at, u32 size)
{
	u64 value = 0;
	u32 i;

	for (i = 0; i < size; i++)
		value |= (u64)at[i] << 8 * i;
	return value;
}

static void store(u8 *at, u32 size, u64 value)
{
	for (; size; size--, value >>= 8)
		*at++ = value;
}

static u64 likely(u64 old, u32 capacity)
{
	static const u64 values[] = {
		0, 1, 2, 3, 7, 8, 31, 32, 168, 252, 253, 1023, 1024, 1025, 0xffff, 1u << 31,
		MTFTL_MAP_MAX_PAGE, MTFTL_MAP_LOST, MTFTL_MAP_UNMAPPED, 1ull << 32, 1ull << 63, ~0ull,
		/* bounds of numbers, generations and erase counts, and where devices are read-only */
		(1ull << (MTFTL_SEQ_BITS - 1)) - 1, 1ull << (MTFTL_SEQ_BITS - 1),
		(1ull << MTFTL_SEQ_BITS) - 2, (1ull << MTFTL_SEQ_BITS) - 1, 1ull << MTFTL_SEQ_BITS,
		MTFTL_MAX_ERASES / 2, MTFTL_MAX_ERASES, MTFTL_MAX_ERASES + 1,
	};

	switch (pick(7)) {
	case 0:
		return capacity - 2 + pick(4);
	case 1:
		return old - 2 + pick(5);
	case 2:
		return old * 2;
	case 3:
		return pick(capacity);
	case 4:
		return pick(16);
	case 5:		/* the share of it that a footer or checkpoint takes */
		return capacity * (u64)(4 * (1 + pick(8))) / MTFTL_BLOCK_SIZE + pick(4);
	}
	return values[pick(ARRAY_SIZE(values))];
}

static void change_content(u8 *data, u32 size, u32 capacity)
{
	const struct field *fields = stream_fields, *field;
	u32 nr = ARRAY_SIZE(stream_fields), base = 0;

	if (size >= 8 && load(data, 8) == MTFTL_SB_MAGIC) {
		fields = super_fields;
		nr = ARRAY_SIZE(super_fields);
	} else if (size >= 4 && load(data, 4) == MTFTL_UNIT_MAGIC) {
		fields = unit_fields;
		nr = ARRAY_SIZE(unit_fields);
	} else if (size >= 4 && load(data, 4) == MTFTL_TAIL_MAGIC) {
		fields = tail_fields;
		nr = ARRAY_SIZE(tail_fields);
	} else if (size > 8) {
		base = pick(size / 8) * 8;
	}
	field = &fields[pick(nr)];
	if (base + field->at + field->size <= size)
		store(data + base + field->at, field->size,
		      likely(load(data + base + field->at, field->size), capacity));
}

static void change_record(u8 *at, u32 length, u32 capacity)
{
	struct fuzz_record *record = (struct fuzz_record *)at;

	if (length && pick(4)) {
		change_content(at + sizeof(*record), length, capacity);
		return;
	}
	switch (pick(4)) {
	case 0:
		record->zone = pick(16);
		break;
	case 1:
		store(record->at, 3, likely(load(record->at, 3), capacity));
		break;
	case 2:
		record->extra = pick(256);
		break;
	case 3:
		record->length[1] ^= (FUZZ_TEAR | FUZZ_OOB) >> 8 & (pick(2) ? 0x80 : 0x40);
		break;
	}
}

static void change_geometry(u8 *data)
{
	static const u32 capacities[] = {
		3, 8, 9, 15, 16, 17, 120, 256, 257, 768, 1024, 1536, 4096, 65536, 275712,
	};
	struct fuzz_geometry *geometry = (struct fuzz_geometry *)data;

	switch (pick(4)) {
	case 0:
		store(geometry->capacity, 3, capacities[pick(ARRAY_SIZE(capacities))]);
		break;
	case 1:
		store(geometry->zones, 2, pick(4) ? pick(32) : pick(FUZZ_MAX_ZONES));
		break;
	case 2:
		geometry->flags ^= 1u << pick(3);
		break;
	case 3:
		geometry->meta = pick(16);
		break;
	}
}

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t max_size, unsigned int seed)
{
	u32 places[256], lengths[256], nr = 0, one, capacity;
	size_t at = sizeof(struct fuzz_geometry), whole;

	state = seed * 0x9e3779b97f4a7c15ull + 1;
	if (pick(2) || size < at + sizeof(struct fuzz_record))
		return LLVMFuzzerMutate(data, size, max_size);
	while (at + sizeof(struct fuzz_record) <= size && nr < ARRAY_SIZE(places)) {
		const struct fuzz_record *record = (const struct fuzz_record *)(data + at);
		u32 length = load(record->length, 2) & FUZZ_LENGTH;

		if (fuzz_kind(record) == FUZZ_ZONE)
			length = 0;
		if (length > size - at - sizeof(*record))
			length = size - at - sizeof(*record);
		places[nr] = at;
		lengths[nr++] = length;
		at += sizeof(*record) + length;
	}
	capacity = fuzz_capacity(data);
	/* The records at the end of a zone say most about it, and come last. */
	one = pick(3) ? pick(nr) : nr - 1;
	whole = sizeof(struct fuzz_record) + lengths[one];
	switch (pick(16)) {
	case 0:
		change_geometry(data);
		return size;
	case 1:		/* a copy of the record, to be changed later */
		if (size + whole > max_size)
			return size;
		memmove(data + places[one] + whole, data + places[one], size - places[one]);
		change_record(data + places[one], lengths[one], capacity);
		return size + whole;
	case 2:
		memmove(data + places[one], data + places[one] + whole, size - places[one] - whole);
		return size - whole;
	}
	do
		change_record(data + places[one], lengths[one], capacity);
	while (!pick(3));
	return size;
}
