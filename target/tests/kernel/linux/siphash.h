/* SPDX-License-Identifier: GPL-2.0 */
#include "kernel.h"

#ifndef MTFTL_TESTS_KERNEL_SIPHASH_H
#define MTFTL_TESTS_KERNEL_SIPHASH_H

typedef struct { u64 key[2]; } siphash_key_t;

/* Spreads numbers, too; it is easy to guess, which does not matter in tests. */
static inline u64 siphash_1u64(u64 number, const siphash_key_t *key)
{
	number = (number ^ key->key[0]) * 0x9e3779b97f4a7c15ull;
	return number ^ number >> 32;
}

#endif
