// SPDX-License-Identifier: GPL-2.0
/* Any block as a zone's tail, and what follows it as the footer stream. */
#include "fuzz.h"
#include "unit.h"

#define ZONE		3
#define CAPACITY	1000

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	_Alignas(8) u8 block[MTFTL_BLOCK_SIZE], stream[MTFTL_BLOCK_SIZE];
	struct mtftl_tail_info tail;
	size_t head = size < sizeof(struct mtftl_footer_record) * 4 ? size :
			     sizeof(struct mtftl_footer_record) * 4;
	u32 pos = 0, before = 0, offset, length = size - head, i;
	enum mtftl_unit_type type;
	const __le64 *lbas;
	u16 entries;
	u64 seq, sum = 0;

	/* Only the first 48 bytes of a tail mean something; 64 leave some of the rest. */
	fuzz_block(block, data, head);
	if (!mtftl_tail_parse(block, 0, ZONE, CAPACITY, false, &tail)) {
		fuzz_assert(tail.footer_offset + 1 + tail.footer_blocks < CAPACITY);
		fuzz_assert(tail.nr_records <= tail.footer_offset);
	}

	fuzz_block(stream, data + head, length);
	if (length > sizeof(stream))
		length = sizeof(stream);
	while (mtftl_footer_next(stream, length, &pos, &seq, &offset, &type, &entries, &lbas) > 0) {
		fuzz_assert(pos > before && pos <= length);
		before = pos;
		for (i = 0; i < entries; i++)
			sum += le64_to_cpu(lbas[i]);
	}
	return sum == 1 ? -1 : 0;
}
