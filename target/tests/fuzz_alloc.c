// SPDX-License-Identifier: GPL-2.0
/* What the tool allocates: see fuzz_alloc.h. Its sources are compiled to call this in place of libc. */
#undef calloc
#undef realloc
#undef aligned_alloc
#undef free

#include <stdlib.h>

#include "fuzz.h"
#include "fuzz_alloc.h"

static void *pieces[64];
static unsigned int nr_pieces;

static void *keep(void *memory)
{
	fuzz_assert(memory && nr_pieces < ARRAY_SIZE(pieces));
	pieces[nr_pieces++] = memory;
	return memory;
}

/* The newest ones go first. What is not ours is libc's own, or the program's around the fuzzer. */
static void forget(const void *memory)
{
	unsigned int i = nr_pieces;

	while (i-- > 0)
		if (pieces[i] == memory) {
			pieces[i] = pieces[--nr_pieces];
			return;
		}
}

void *fuzz_calloc(size_t count, size_t size)
{
	return keep(calloc(count, size));
}

void *fuzz_realloc(void *memory, size_t size)
{
	if (memory)
		forget(memory);
	return keep(realloc(memory, size));
}

void *fuzz_aligned_alloc(size_t alignment, size_t size)
{
	return keep(aligned_alloc(alignment, size));
}

void fuzz_free(void *memory)
{
	if (memory)
		forget(memory);
	free(memory);
}

void fuzz_free_all(void)
{
	while (nr_pieces)
		free(pieces[--nr_pieces]);
}
