/* SPDX-License-Identifier: GPL-2.0 */
/* Tracks what the tool allocates, so that a fuzzer can stop it anywhere without a leak. */
#ifndef MTFTL_TESTS_FUZZ_ALLOC_H
#define MTFTL_TESTS_FUZZ_ALLOC_H

#include <stddef.h>

void *fuzz_calloc(size_t count, size_t size);
void *fuzz_realloc(void *memory, size_t size);
void *fuzz_aligned_alloc(size_t alignment, size_t size);
void fuzz_free(void *memory);
void fuzz_free_all(void);

#endif
