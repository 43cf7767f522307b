// SPDX-License-Identifier: GPL-2.0
/*
 * Compose and parse the blocks of the on-media format: see parse.h for the
 * contract and format.h for the layout. Pure: buffers are the caller's, so are
 * locks, and any context may call it.
 */
#include "format/parse.h"

#include "format/maplog.h"

#define CRC_INIT	(~(u32)0)

/* The checksum of a block's first @size bytes as if the field at @crc_at were zero. */
static u32 block_crc(u32 seed, const void *block, size_t size, size_t crc_at)
{
	static const __le32 zero;
	const u8 *bytes = block;
	size_t behind = crc_at + sizeof(zero);
	u32 crc = mtftl_crc32c(seed, bytes, crc_at);

	mtftl_assert(behind <= size && size <= MTFTL_BLOCK_SIZE);
	crc = mtftl_crc32c(crc, &zero, sizeof(zero));
	return mtftl_crc32c(crc, bytes + behind, size - behind);
}

/* Numbers and generations begin at 1. */
static bool number_valid(u64 number)
{
	return number && !(number >> MTFTL_SEQ_BITS);
}

u32 mtftl_seed(const u8 uuid[16], u32 key)
{
	return mtftl_crc32c(key, uuid, 16);
}

u32 mtftl_payload_crc(u32 seed, const void *block)
{
	return mtftl_crc32c(seed, block, MTFTL_BLOCK_SIZE);
}

/* Units */

static struct mtftl_entry *unit_entries(struct mtftl_unit *unit)
{
	return (struct mtftl_entry *)(unit + 1);
}

static struct mtftl_range *unit_ranges(struct mtftl_unit *unit)
{
	return (struct mtftl_range *)(unit + 1);
}

/* What the header uses: most are short, and every write pays for its header. */
static size_t unit_used(const struct mtftl_unit *unit)
{
	size_t each = unit->type == MTFTL_UNIT_RANGES ? sizeof(struct mtftl_range) :
							sizeof(struct mtftl_entry);
	size_t used = sizeof(*unit) + each * le16_to_cpu(unit->nr_entries);

	/* A damaged count fails the checksum, or contradicts the rest. */
	return used < MTFTL_BLOCK_SIZE ? used : MTFTL_BLOCK_SIZE;
}

static u32 unit_crc(u32 seed, const struct mtftl_unit *unit)
{
	return block_crc(seed, unit, unit_used(unit), offsetof(struct mtftl_unit, crc));
}

void mtftl_unit_init(void *block, const struct mtftl_unit_info *info)
{
	struct mtftl_unit *unit = block;

	mtftl_assert(number_valid(info->seq), "seq %llu", info->seq);
	mtftl_assert(info->nr_blocks <= MTFTL_UNIT_MAX_ENTRIES, "%u blocks", info->nr_blocks);
	memset(unit, 0, sizeof(*unit));
	unit->magic = cpu_to_le32(MTFTL_UNIT_MAGIC);
	unit->version = MTFTL_VERSION;
	unit->type = info->type;
	unit->nr_blocks = cpu_to_le16(info->nr_blocks);
	unit->lane = cpu_to_le16(info->lane);
	unit->seq = cpu_to_le64(info->seq);
}

/* The next free index; the caller adds no more than fit. */
static unsigned int unit_grow(struct mtftl_unit *unit)
{
	u16 index = le16_to_cpu(unit->nr_entries);

	mtftl_assert(index < (unit->type == MTFTL_UNIT_RANGES ? MTFTL_UNIT_MAX_RANGES :
			      MTFTL_UNIT_MAX_ENTRIES), "type %u: entry %u", unit->type, index);
	unit->nr_entries = cpu_to_le16(index + 1);
	return index;
}

void mtftl_unit_add_entry(void *block, u64 lba, u32 crc)
{
	struct mtftl_unit *unit = block;
	struct mtftl_entry *entry = unit_entries(unit) + unit_grow(unit);

	mtftl_assert(unit->type != MTFTL_UNIT_RANGES);
	entry->lba = cpu_to_le64(lba);
	entry->crc = cpu_to_le32(crc);
	entry->reserved = 0;
}

void mtftl_unit_add_range(void *block, u64 lba, u32 nr_blocks, u64 seq,
			  enum mtftl_range_kind kind)
{
	struct mtftl_unit *unit = block;
	struct mtftl_range *range = unit_ranges(unit) + unit_grow(unit);

	mtftl_assert(unit->type == MTFTL_UNIT_RANGES);
	range->lba = cpu_to_le64(lba);
	range->seq = cpu_to_le64(seq);
	range->nr_blocks = cpu_to_le32(nr_blocks);
	range->kind = cpu_to_le32(kind);
}

void mtftl_unit_seal(void *block, u32 seed, u32 zone, u32 offset, u32 erase_count,
		     u64 durable_seq)
{
	struct mtftl_unit *unit = block;

	unit->zone = cpu_to_le32(zone);
	unit->offset = cpu_to_le32(offset);
	unit->erase_count = cpu_to_le32(erase_count);
	unit->durable_seq = cpu_to_le64(durable_seq);
	/* In one piece: a call costs as much as many bytes. */
	unit->crc = 0;
	unit->crc = cpu_to_le32(mtftl_crc32c(seed, unit, unit_used(unit)));
}

static bool unit_counts_valid(const struct mtftl_unit_info *info)
{
	switch (info->type) {
	case MTFTL_UNIT_DATA:
	case MTFTL_UNIT_GC:
	case MTFTL_UNIT_CKPT:
	case MTFTL_UNIT_FOOTER:
	case MTFTL_UNIT_MAP:
		return info->nr_entries <= info->nr_blocks &&
		       info->nr_blocks <= MTFTL_UNIT_MAX_ENTRIES;
	case MTFTL_UNIT_RANGES:
		return info->nr_entries <= MTFTL_UNIT_MAX_RANGES && info->nr_blocks == 0;
	}
	return false;
}

static bool unit_ranges_valid(const void *block, const struct mtftl_unit_info *info)
{
	enum mtftl_range_kind kind;
	unsigned int i;
	u32 nr_blocks;
	u64 lba, seq;

	for (i = 0; i < info->nr_entries; i++) {
		mtftl_unit_range(block, i, &lba, &nr_blocks, &seq, &kind);
		if (nr_blocks == 0 || nr_blocks > MTFTL_RANGE_MAX_BLOCKS || lba + nr_blocks < lba)
			return false;
		if (seq == 0 || seq >= info->seq)
			return false;
		if (kind != MTFTL_RANGE_TRIM && kind != MTFTL_RANGE_LOST)
			return false;
	}
	return true;
}

int mtftl_unit_parse(const void *block, u32 seed, u32 zone, u32 offset, u32 capacity,
		     struct mtftl_unit_info *info)
{
	const struct mtftl_unit *unit = block;
	u32 meant_for = le32_to_cpu(unit->offset);

	if (le32_to_cpu(unit->magic) != MTFTL_UNIT_MAGIC)
		return -ENODATA;
	if (le32_to_cpu(unit->crc) != unit_crc(seed, block))
		return -EBADMSG;
	if (unit->version != MTFTL_VERSION)
		return -EPROTO;
	if (le32_to_cpu(unit->zone) != zone ||
	    (meant_for != offset && meant_for != MTFTL_ANY_OFFSET))
		return -ESTALE;

	info->type = unit->type;
	info->nr_entries = le16_to_cpu(unit->nr_entries);
	info->nr_blocks = le16_to_cpu(unit->nr_blocks);
	info->lane = le16_to_cpu(unit->lane);
	info->seq = le64_to_cpu(unit->seq);
	info->durable_seq = le64_to_cpu(unit->durable_seq);
	info->zone = zone;
	info->offset = offset;
	info->erase_count = le32_to_cpu(unit->erase_count);

	if (!unit_counts_valid(info) || !number_valid(info->seq) || info->durable_seq >= info->seq)
		return -EINVAL;
	if (offset >= capacity || info->nr_blocks > capacity - offset - 1)
		return -EINVAL;
	if (info->type == MTFTL_UNIT_RANGES && !unit_ranges_valid(block, info))
		return -EINVAL;
	return 0;
}

void mtftl_unit_entry(const void *block, unsigned int index, u64 *lba, u32 *crc)
{
	const struct mtftl_unit *unit = block;
	const struct mtftl_entry *entry = (const struct mtftl_entry *)(unit + 1) + index;

	mtftl_assert(index < MTFTL_UNIT_MAX_ENTRIES, "entry %u", index);
	*lba = le64_to_cpu(entry->lba);
	*crc = le32_to_cpu(entry->crc);
}

void mtftl_unit_range(const void *block, unsigned int index, u64 *lba, u32 *nr_blocks,
		      u64 *seq, enum mtftl_range_kind *kind)
{
	const struct mtftl_unit *unit = block;
	const struct mtftl_range *range = (const struct mtftl_range *)(unit + 1) + index;

	mtftl_assert(index < MTFTL_UNIT_MAX_RANGES, "range %u", index);
	*lba = le64_to_cpu(range->lba);
	*nr_blocks = le32_to_cpu(range->nr_blocks);
	*seq = le64_to_cpu(range->seq);
	*kind = le32_to_cpu(range->kind);
}

/* Units without a header */

#define OOB_ERASE_SHIFT	MTFTL_OOB_TYPE_BITS
#define OOB_ERASE_MASK	((1u << MTFTL_OOB_ERASE_BITS) - 1)
#define OOB_SEQ_SHIFT	(MTFTL_OOB_TYPE_BITS + MTFTL_OOB_ERASE_BITS)

static u32 oob_own_crc(u32 seed, __le32 lba, __le64 tag, u32 zone)
{
	__le32 meant_for = cpu_to_le32(zone);
	u32 crc = mtftl_crc32c(seed, &lba, sizeof(lba));

	crc = mtftl_crc32c(crc, &tag, sizeof(tag));
	return mtftl_crc32c(crc, &meant_for, sizeof(meant_for));
}

void mtftl_oob_compose(struct mtftl_oob *oob, enum mtftl_unit_type type, u64 seq, u32 lba, u32 crc,
		       u32 seed, u32 zone, u32 erase_count)
{
	mtftl_assert(!(seq >> MTFTL_OOB_SEQ_BITS), "seq %llu", seq);
	oob->lba = cpu_to_le32(lba);
	oob->tag = cpu_to_le64((u64)type | (u64)(erase_count & OOB_ERASE_MASK) << OOB_ERASE_SHIFT |
			       seq << OOB_SEQ_SHIFT);
	oob->check = cpu_to_le32(crc ^ oob_own_crc(seed, oob->lba, oob->tag, zone));
}

u32 mtftl_oob_crc(const struct mtftl_oob *oob, u32 lba, u32 seed, u32 zone)
{
	return le32_to_cpu(oob->check) ^ oob_own_crc(seed, cpu_to_le32(lba), oob->tag, zone);
}

static enum mtftl_unit_type oob_type(const struct mtftl_oob *oob)
{
	return le64_to_cpu(oob->tag) & ((1u << MTFTL_OOB_TYPE_BITS) - 1);
}

int mtftl_oob_parse(const void *blocks, const void *oob, u32 stride, u32 nr, u32 seed, u32 zone,
		    u32 offset, u32 capacity, void *header, struct mtftl_unit_info *info)
{
	const struct mtftl_oob *first = oob, *next = oob;
	u64 tag = le64_to_cpu(first->tag);
	const u8 *block = blocks;
	u32 i, lba, crc;
	int r;

	if (!oob_type(first)) {
		memcpy(header, blocks, MTFTL_BLOCK_SIZE);
		r = mtftl_unit_parse(header, seed, zone, offset, capacity, info);
		/* A reader would look for its payload in its place. */
		return r ?: (mtftl_unit_head(true, info->type) ? 0 : -EINVAL);
	}
	*info = (struct mtftl_unit_info){
		.type = oob_type(first),
		.seq = tag >> OOB_SEQ_SHIFT,
		.zone = zone,
		.offset = offset,
		.erase_count = tag >> OOB_ERASE_SHIFT & OOB_ERASE_MASK,
	};
	if (mtftl_unit_head(true, info->type) || !info->seq || offset >= capacity)
		return -EINVAL;
	mtftl_unit_init(header, info);
	if (nr > capacity - offset)
		nr = capacity - offset;
	if (nr > MTFTL_UNIT_MAX_ENTRIES)
		nr = MTFTL_UNIT_MAX_ENTRIES;
	for (i = 0; i < nr; i++, block += MTFTL_BLOCK_SIZE) {
		next = (const struct mtftl_oob *)((const u8 *)oob + (size_t)i * stride);
		lba = le32_to_cpu(next->lba);
		/* A unit holds a block once: this is the same one, sent again. */
		if (i && (next->tag != first->tag || next->lba == first->lba))
			break;
		crc = mtftl_payload_crc(seed, block);
		if (crc != mtftl_oob_crc(next, lba, seed, zone))
			break;
		mtftl_unit_add_entry(header, lba, crc);
	}
	/* It ends in its zone, and in the buffer that its reader has for it. */
	mtftl_assert(i <= capacity - offset && i <= MTFTL_UNIT_MAX_ENTRIES);
	info->nr_entries = i;
	info->nr_blocks = i;
	return i ? 0 : -EBADMSG;
}

u32 mtftl_erase_count(u32 known, u32 lowest)
{
	u32 count = known + ((lowest - known) & OOB_ERASE_MASK);

	mtftl_assert(mtftl_same_erase_count(true, count, lowest));
	return count;
}

bool mtftl_same_erase_count(bool oob, u32 a, u32 b)
{
	return !((a ^ b) & (oob ? OOB_ERASE_MASK : ~(u32)0));
}

/* Superblock records */

void mtftl_sb_set_checkpoint(struct mtftl_sb_info *to, const struct mtftl_sb_info *from)
{
	static const struct mtftl_sb_info none;

	if (from)
		to->map_log = from->map_log;
	else
		from = &none;
	to->ckpt_seq = from->ckpt_seq;
	to->ckpt_blocks = from->ckpt_blocks;
	to->ckpt_nr_zones = from->ckpt_nr_zones;
	memcpy(to->ckpt_zones, from->ckpt_zones, sizeof(to->ckpt_zones));
	to->ckpt_unit_first = from->ckpt_unit_first;
	to->ckpt_unit_last = from->ckpt_unit_last;
	to->ckpt_seat = from->ckpt_seat;
	to->ckpt_offset = from->ckpt_offset;
}

static u64 sb_incompat(const struct mtftl_sb_info *info)
{
	return (info->oob ? MTFTL_SB_OOB : 0) | (info->map_log ? MTFTL_SB_MAP_LOG : 0);
}

void mtftl_sb_compose(void *block, const struct mtftl_sb_info *info)
{
	struct mtftl_sb *sb = block;
	u32 i;

	mtftl_assert(info->ckpt_nr_zones <= MTFTL_SB_MAX_LOG_ZONES);
	memset(block, 0, MTFTL_BLOCK_SIZE);
	sb->magic = cpu_to_le64(MTFTL_SB_MAGIC);
	sb->version = cpu_to_le16(MTFTL_VERSION);
	sb->flags = cpu_to_le16(info->flags);
	memcpy(sb->uuid, info->uuid, sizeof(sb->uuid));
	sb->incompat = cpu_to_le64(sb_incompat(info));
	sb->generation = cpu_to_le64(info->generation);
	sb->logical_blocks = cpu_to_le64(info->logical_blocks);
	sb->nr_zones = cpu_to_le32(info->nr_zones);
	sb->zone_blocks = cpu_to_le32(info->zone_blocks);
	sb->zone_capacity = cpu_to_le32(info->zone_capacity);
	sb->op_permille = cpu_to_le32(info->op_permille);
	sb->key = cpu_to_le32(info->key);
	sb->ckpt_seq = cpu_to_le64(info->ckpt_seq);
	sb->ckpt_blocks = cpu_to_le64(info->ckpt_blocks);
	sb->ckpt_nr_zones = cpu_to_le32(info->ckpt_nr_zones);
	for (i = 0; i < info->ckpt_nr_zones; i++)
		sb->ckpt_zones[i] = cpu_to_le32(info->ckpt_zones[i]);
	if (info->map_log) {
		sb->ckpt_unit_first = cpu_to_le64(info->ckpt_unit_first);
		sb->ckpt_unit_last = cpu_to_le64(info->ckpt_unit_last);
		sb->ckpt_seat = cpu_to_le32(info->ckpt_seat);
		sb->ckpt_offset = cpu_to_le32(info->ckpt_offset);
		sb->map_entry_bytes = MTFTL_MAP_ENTRY_BYTES;
	}
	sb->crc = cpu_to_le32(block_crc(CRC_INIT, block, MTFTL_BLOCK_SIZE,
					offsetof(struct mtftl_sb, crc)));
}

/* The names are those of struct mtftl_sb. */
static const char *sb_geometry_wrong(const struct mtftl_sb_info *info)
{
	u64 device_blocks = (u64)info->nr_zones * info->zone_blocks;

	if (!number_valid(info->generation))
		return "generation";
	if (info->nr_zones <= MTFTL_NR_SB_ZONES)
		return "nr_zones";
	if (info->zone_capacity == 0)
		return "zone_capacity";
	if (info->zone_capacity > info->zone_blocks)
		return "zone_capacity or zone_blocks";
	if (device_blocks > (u64)MTFTL_MAP_MAX_PAGE + 1)
		return "nr_zones or zone_blocks";
	if (info->logical_blocks == 0 ||
	    info->logical_blocks >
	    mtftl_logical_blocks(info->nr_zones, info->zone_capacity, 0, info->oob))
		return "logical_blocks";
	if (info->op_permille >= 1000)
		return "op_permille";
	return NULL;
}

/* Where the stream of a checkpoint lies among the map blocks. */
static const char *sb_log_wrong(const struct mtftl_sb_info *info,
				const struct mtftl_log_shape *shape)
{
	if (!mtftl_log_fits(shape))
		return "incompat or zone_capacity";
	if (info->ckpt_blocks == 0)
		return info->ckpt_unit_first || info->ckpt_unit_last || info->ckpt_seat ||
		       info->ckpt_offset ? "ckpt_blocks" : NULL;
	if (info->ckpt_unit_first <= info->ckpt_seq || !number_valid(info->ckpt_unit_first))
		return "ckpt_seq or ckpt_unit_first";
	if (info->ckpt_unit_last < info->ckpt_unit_first || !number_valid(info->ckpt_unit_last))
		return "ckpt_unit_first or ckpt_unit_last";
	if (info->ckpt_seat >= shape->seats)
		return "ckpt_seat";
	if (!mtftl_log_takes(shape->capacity, info->ckpt_offset))
		return "ckpt_offset";
	return NULL;
}

static bool sb_ckpt_zones_valid(const struct mtftl_sb_info *info)
{
	u32 i, j;

	for (i = 0; i < info->ckpt_nr_zones; i++) {
		if (info->ckpt_zones[i] < MTFTL_NR_SB_ZONES ||
		    info->ckpt_zones[i] >= info->nr_zones)
			return false;
		for (j = 0; j < i; j++)
			if (info->ckpt_zones[j] == info->ckpt_zones[i])
				return false;
	}
	return true;
}

static const char *sb_ckpt_wrong(const struct mtftl_sb_info *info)
{
	u32 blocks = mtftl_ckpt_stream_blocks(info->nr_zones, info->logical_blocks), zones;
	struct mtftl_log_shape shape;
	const char *wrong = NULL;

	zones = mtftl_ckpt_zones(info->nr_zones, info->zone_capacity, info->logical_blocks);
	if (info->map_log) {
		mtftl_log_shape(&shape, info->nr_zones, info->zone_capacity, info->logical_blocks);
		wrong = sb_log_wrong(info, &shape);
		blocks = shape.stream_blocks;
		zones = shape.seats;
	}
	if (wrong)
		return wrong;
	if (info->ckpt_blocks == 0)
		return info->ckpt_nr_zones == 0 && info->ckpt_seq == 0 ? NULL : "ckpt_blocks";
	if (info->ckpt_seq >> MTFTL_SEQ_BITS)
		return "ckpt_seq";
	if (info->ckpt_blocks != blocks)
		return "incompat or ckpt_blocks";
	if (!zones || info->ckpt_nr_zones != zones ||
	    zones > (info->map_log ? MTFTL_SB_MAX_LOG_ZONES : MTFTL_SB_MAX_CKPT_ZONES) ||
	    info->ckpt_blocks > (u64)zones * info->zone_capacity)
		return "ckpt_nr_zones";
	return sb_ckpt_zones_valid(info) ? NULL : "ckpt_zones";
}

const char *mtftl_sb_wrong(const struct mtftl_sb_info *info)
{
	return sb_geometry_wrong(info) ?: sb_ckpt_wrong(info);
}

int mtftl_sb_parse(const void *block, struct mtftl_sb_info *info)
{
	const struct mtftl_sb *sb = block;
	u32 i;

	if (le64_to_cpu(sb->magic) != MTFTL_SB_MAGIC)
		return -ENODATA;
	if (le32_to_cpu(sb->crc) !=
	    block_crc(CRC_INIT, block, MTFTL_BLOCK_SIZE, offsetof(struct mtftl_sb, crc)))
		return -EBADMSG;
	if (le16_to_cpu(sb->version) != MTFTL_VERSION ||
	    le64_to_cpu(sb->incompat) & ~(u64)(MTFTL_SB_OOB | MTFTL_SB_MAP_LOG))
		return -EPROTO;
	info->map_log = le64_to_cpu(sb->incompat) & MTFTL_SB_MAP_LOG;
	if (info->map_log && sb->map_entry_bytes != MTFTL_MAP_ENTRY_BYTES)
		return -EPROTO;

	memcpy(info->uuid, sb->uuid, sizeof(info->uuid));
	info->flags = le16_to_cpu(sb->flags);
	info->oob = le64_to_cpu(sb->incompat) & MTFTL_SB_OOB;
	info->generation = le64_to_cpu(sb->generation);
	info->logical_blocks = le64_to_cpu(sb->logical_blocks);
	info->nr_zones = le32_to_cpu(sb->nr_zones);
	info->zone_blocks = le32_to_cpu(sb->zone_blocks);
	info->zone_capacity = le32_to_cpu(sb->zone_capacity);
	info->op_permille = le32_to_cpu(sb->op_permille);
	info->key = le32_to_cpu(sb->key);
	info->ckpt_seq = le64_to_cpu(sb->ckpt_seq);
	info->ckpt_blocks = le64_to_cpu(sb->ckpt_blocks);
	info->ckpt_nr_zones = le32_to_cpu(sb->ckpt_nr_zones);
	for (i = 0; i < MTFTL_SB_MAX_LOG_ZONES; i++)
		info->ckpt_zones[i] = le32_to_cpu(sb->ckpt_zones[i]);
	info->ckpt_unit_first = info->map_log ? le64_to_cpu(sb->ckpt_unit_first) : 0;
	info->ckpt_unit_last = info->map_log ? le64_to_cpu(sb->ckpt_unit_last) : 0;
	info->ckpt_seat = info->map_log ? le32_to_cpu(sb->ckpt_seat) : 0;
	info->ckpt_offset = info->map_log ? le32_to_cpu(sb->ckpt_offset) : 0;

	return mtftl_sb_wrong(info) ? -EINVAL : 0;
}

/* Layout arithmetic */

void mtftl_run_add(struct mtftl_run *run, u64 capacity, bool surplus)
{
	bool known = run->last_nr && run->last_capacity != MTFTL_RUN_ANY;
	bool other = known && capacity != MTFTL_RUN_ANY && capacity != run->last_capacity;

	if (!capacity || other) {
		run->last_first += run->last_nr + !capacity;
		run->last_nr = 0;
		run->last_surplus = false;
	}
	if (!capacity)
		return;
	run->last_surplus |= surplus;
	if (!run->last_nr || !known)
		run->last_capacity = capacity;
	if (++run->last_nr <= run->nr)
		return;
	run->first = run->last_first;
	run->nr = run->last_nr;
	run->capacity = run->last_capacity;
	run->surplus = run->last_surplus;
}

int mtftl_append_offset(u64 sector, u64 start, u32 capacity, u32 blocks, u32 *offset)
{
	const u32 per_block = MTFTL_BLOCK_SIZE >> 9;
	u64 at = sector - start;

	if (sector < start || at % per_block || at / per_block + blocks > capacity)
		return -EINVAL;
	*offset = at / per_block;
	mtftl_assert(*offset < capacity && blocks <= capacity - *offset);
	return 0;
}

u32 mtftl_footer_stream_blocks(u32 zone_capacity, bool oob)
{
	/* At worst each block is a unit: of ranges, one record and no entry; or of one block. */
	u64 each = sizeof(struct mtftl_footer_record) + (oob ? sizeof(__le64) : 0);

	return mtftl_div_round_up(zone_capacity * each, MTFTL_BLOCK_SIZE);
}

u32 mtftl_footer_reserve(u32 zone_capacity, bool oob)
{
	u32 payload = mtftl_footer_stream_blocks(zone_capacity, oob);

	return payload + mtftl_div_round_up(payload, MTFTL_STREAM_UNIT_BLOCKS) + 1;
}

u64 mtftl_logical_blocks(u32 nr_zones, u32 zone_capacity, u32 op_permille, bool oob)
{
	const u32 alignment = (1024 * 1024) / MTFTL_BLOCK_SIZE;
	u32 ckpt_zones = mtftl_ckpt_zones(nr_zones, zone_capacity, (u64)nr_zones * zone_capacity);
	u64 taken = MTFTL_NR_SB_ZONES + MTFTL_GC_RESERVE_ZONES + 2 * (u64)ckpt_zones;
	u32 footer = mtftl_footer_reserve(zone_capacity, oob);
	u64 blocks;

	if (nr_zones <= taken || ckpt_zones > MTFTL_SB_MAX_CKPT_ZONES || zone_capacity <= footer ||
	    op_permille >= 1000)
		return 0;
	blocks = (nr_zones - taken) * (zone_capacity - footer);
	if (!oob)
		blocks -= mtftl_div_round_up(blocks, 33);
	blocks -= mtftl_div_round_up(blocks * op_permille, 1000);
	mtftl_assert(blocks < (u64)nr_zones * zone_capacity);
	return blocks < alignment ? blocks : blocks & ~(u64)(alignment - 1);
}

u32 mtftl_user_zones(u32 zone_capacity, u64 logical_blocks, bool oob)
{
	u32 footer = mtftl_footer_reserve(zone_capacity, oob);
	u64 blocks = logical_blocks + (oob ? 0 : logical_blocks / 32);
	u32 zones;

	mtftl_assert(footer < zone_capacity, "%u of %u blocks", footer, zone_capacity);
	zones = mtftl_div_round_up(blocks, zone_capacity - footer);
	return zones ? zones : 1;
}

u32 mtftl_spare_zones(u32 nr_zones, u32 zone_capacity, u64 logical_blocks, bool oob)
{
	u32 ckpt = mtftl_ckpt_zones(nr_zones, zone_capacity, logical_blocks);
	u32 zones = nr_zones - MTFTL_NR_SB_ZONES - 2 * ckpt;
	u32 needed = mtftl_user_zones(zone_capacity, logical_blocks, oob);

	mtftl_assert(nr_zones > MTFTL_NR_SB_ZONES + 2 * ckpt, "%u zones", nr_zones);
	return zones > needed ? zones - needed : 0;
}

/* Checkpoint streams */

bool mtftl_zone_record_valid(const struct mtftl_zone_record *record, u32 capacity)
{
	return le32_to_cpu(record->wp) <= capacity &&
	       le32_to_cpu(record->erase_count) <= MTFTL_MAX_ERASES &&
	       !(le64_to_cpu(record->first_seq) >> MTFTL_SEQ_BITS);
}

/* Footers */

void mtftl_footer_init(struct mtftl_footer *footer, void *stream, u32 size)
{
	/* What is written of it are whole blocks. */
	mtftl_assert(size && !(size % MTFTL_BLOCK_SIZE), "%u bytes", size);
	memset(stream, 0, size);
	footer->stream = stream;
	footer->size = size;
	footer->used = 0;
	footer->nr_records = 0;
	footer->min_seq = 0;
	footer->max_seq = 0;
}

int mtftl_footer_add(struct mtftl_footer *footer, u64 seq, u32 offset,
		     enum mtftl_unit_type type, u16 nr_entries, const u64 *lbas)
{
	u32 bytes = sizeof(struct mtftl_footer_record) + nr_entries * sizeof(__le64);
	struct mtftl_footer_record *record;
	__le64 *out;
	u16 i;

	mtftl_assert(footer->used <= footer->size);
	mtftl_assert(number_valid(seq) && nr_entries <= MTFTL_UNIT_MAX_ENTRIES,
		     "seq %llu, %u entries", seq, nr_entries);
	mtftl_assert(type == MTFTL_UNIT_DATA || type == MTFTL_UNIT_GC ||
		     (type == MTFTL_UNIT_RANGES && !nr_entries), "type %u", type);
	if (footer->size - footer->used < bytes)
		return -ENOSPC;
	record = (struct mtftl_footer_record *)(footer->stream + footer->used);
	record->seq = cpu_to_le64(seq);
	record->offset = cpu_to_le32(offset);
	record->type = type;
	record->reserved = 0;
	record->nr_entries = cpu_to_le16(nr_entries);
	out = (__le64 *)(record + 1);
	for (i = 0; i < nr_entries; i++)
		out[i] = cpu_to_le64(lbas[i]);

	if (footer->nr_records == 0 || seq < footer->min_seq)
		footer->min_seq = seq;
	if (seq > footer->max_seq)
		footer->max_seq = seq;
	footer->nr_records++;
	footer->used += bytes;
	return 0;
}

void mtftl_tail_compose(void *block, u32 seed, u32 zone, u32 erase_count, u32 footer_offset,
			const struct mtftl_footer *footer)
{
	struct mtftl_tail *tail = block;

	memset(block, 0, MTFTL_BLOCK_SIZE);
	tail->magic = cpu_to_le32(MTFTL_TAIL_MAGIC);
	tail->version = MTFTL_VERSION;
	tail->zone = cpu_to_le32(zone);
	tail->erase_count = cpu_to_le32(erase_count);
	tail->footer_offset = cpu_to_le32(footer_offset);
	tail->footer_blocks = cpu_to_le32(mtftl_div_round_up(footer->used, MTFTL_BLOCK_SIZE));
	tail->nr_records = cpu_to_le32(footer->nr_records);
	tail->min_seq = cpu_to_le64(footer->min_seq);
	tail->max_seq = cpu_to_le64(footer->max_seq);
	tail->crc = cpu_to_le32(block_crc(seed, block, MTFTL_BLOCK_SIZE,
					  offsetof(struct mtftl_tail, crc)));
}

int mtftl_tail_parse(const void *block, u32 seed, u32 zone, u32 capacity, bool oob,
		     struct mtftl_tail_info *info)
{
	const struct mtftl_tail *tail = block;
	u32 room;

	if (le32_to_cpu(tail->magic) != MTFTL_TAIL_MAGIC)
		return -ENODATA;
	if (le32_to_cpu(tail->crc) !=
	    block_crc(seed, block, MTFTL_BLOCK_SIZE, offsetof(struct mtftl_tail, crc)))
		return -EBADMSG;
	if (tail->version != MTFTL_VERSION)
		return -EPROTO;
	if (le32_to_cpu(tail->zone) != zone)
		return -ESTALE;

	info->erase_count = le32_to_cpu(tail->erase_count);
	info->footer_offset = le32_to_cpu(tail->footer_offset);
	info->footer_blocks = le32_to_cpu(tail->footer_blocks);
	info->nr_records = le32_to_cpu(tail->nr_records);
	info->min_seq = le64_to_cpu(tail->min_seq);
	info->max_seq = le64_to_cpu(tail->max_seq);

	/* At least one header stands before the stream, and the tail behind it. */
	if (info->footer_offset >= capacity)
		return -EINVAL;
	room = capacity - info->footer_offset - 1;
	/* No writer makes a longer stream, and readers have buffers for this one. */
	if (info->footer_blocks == 0 || info->footer_blocks >= room ||
	    info->footer_blocks > mtftl_footer_stream_blocks(capacity, oob))
		return -EINVAL;
	/* Positions in the stream have 32 bits. */
	if (info->footer_blocks > ~(u32)0 / MTFTL_BLOCK_SIZE)
		return -EINVAL;
	if (info->nr_records == 0 || info->nr_records > info->footer_offset ||
	    info->min_seq == 0 || info->min_seq > info->max_seq || !number_valid(info->max_seq))
		return -EINVAL;
	return 0;
}

int mtftl_footer_next(const void *stream, u32 size, u32 *pos, u64 *seq, u32 *offset,
		      enum mtftl_unit_type *type, u16 *nr_entries, const __le64 **lbas)
{
	const struct mtftl_footer_record *record;
	u32 room;

	if (*pos >= size)
		return 0;
	room = size - *pos;
	if (room < sizeof(record->seq))
		return -EINVAL;
	record = (const struct mtftl_footer_record *)((const u8 *)stream + *pos);
	*seq = le64_to_cpu(record->seq);
	/* Numbers start at 1: a record of none pads the last block. It may be shorter. */
	if (*seq == 0)
		return 0;
	if (room < sizeof(*record))
		return -EINVAL;
	room -= sizeof(*record);
	*offset = le32_to_cpu(record->offset);
	*type = record->type;
	*nr_entries = le16_to_cpu(record->nr_entries);

	if (*type != MTFTL_UNIT_DATA && *type != MTFTL_UNIT_GC && *type != MTFTL_UNIT_RANGES)
		return -EINVAL;
	if (*type == MTFTL_UNIT_RANGES && *nr_entries != 0)
		return -EINVAL;
	if (*nr_entries > MTFTL_UNIT_MAX_ENTRIES || *nr_entries * sizeof(__le64) > room)
		return -EINVAL;
	*lbas = (const __le64 *)(record + 1);
	*pos += sizeof(*record) + *nr_entries * sizeof(__le64);
	mtftl_assert(*pos <= size, "%u of %u bytes", *pos, size);
	return 1;
}

bool mtftl_footer_valid(const void *stream, u32 size, const struct mtftl_tail_info *tail, bool oob)
{
	u32 pos = 0, offset, blocks, left = tail->footer_offset, records = 0;
	enum mtftl_unit_type type;
	const __le64 *lbas;
	u16 nr;
	u64 seq;
	int r;

	while ((r = mtftl_footer_next(stream, size, &pos, &seq, &offset, &type, &nr, &lbas)) > 0) {
		blocks = mtftl_unit_head(oob, type) + nr;
		/* Units lie in front of the footer, and none inside another one. */
		if (offset >= tail->footer_offset || blocks > tail->footer_offset - offset ||
		    blocks > left)
			return false;
		if (seq < tail->min_seq || seq > tail->max_seq)
			return false;
		left -= blocks;
		records++;
	}
	return !r && records == tail->nr_records;
}
