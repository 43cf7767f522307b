// SPDX-License-Identifier: GPL-2.0
/*
 * Parses any block as a zone's tail, and what follows it as the footer stream. The three bytes in
 * front of both are the zone's capacity; the next one says whether units have headers.
 */
#include "format/parse.h"
#include "fuzz.h"

#define ZONE		3
#define STREAM_BLOCKS	4u

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	_Alignas(8) u8 block[MTFTL_BLOCK_SIZE];
	static _Alignas(8) u8 stream[STREAM_BLOCKS * MTFTL_BLOCK_SIZE];
	u32 pos = 0, before = 0, offset, length, capacity, head, i;
	struct mtftl_tail_info tail;
	enum mtftl_unit_type type;
	const __le64 *lbas;
	u16 entries;
	u64 seq, sum = 0;
	bool oob;

	if (size < 4)
		return 0;
	capacity = fuzz_capacity(data);
	oob = data[3] & 1;
	data += 4;
	size -= 4;
	/* Only the first 48 bytes of a tail mean something; 64 leave some of the rest. */
	head = size < 64 ? size : 64;
	fuzz_block(block, data, head);
	if (!mtftl_tail_parse(block, 0, ZONE, capacity, oob, &tail)) {
		fuzz_assert((u64)tail.footer_offset + 1 + tail.footer_blocks < capacity);
		/* So much memory is there for the stream. */
		fuzz_assert(tail.footer_blocks <= mtftl_footer_stream_blocks(capacity, oob));
		fuzz_assert(tail.nr_records <= tail.footer_offset);
	}

	length = size - head < sizeof(stream) ? size - head : sizeof(stream);
	memcpy(stream, data + head, length);
	while (mtftl_footer_next(stream, length, &pos, &seq, &offset, &type, &entries, &lbas) > 0) {
		fuzz_assert(pos > before && pos <= length);
		before = pos;
		for (i = 0; i < entries; i++)
			sum += le64_to_cpu(lbas[i]);
	}
	return sum == 1 ? -1 : 0;
}
