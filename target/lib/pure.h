/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the pure parts (format, units, victim choice, budget, rate) need from
 * their surroundings, in the kernel and on the host. Code that includes only
 * this never blocks, allocates or calls the kernel.
 */
#ifndef MTFTL_PURE_H
#define MTFTL_PURE_H

#include "lib/assert.h"

#ifdef __KERNEL__
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/byteorder.h>

#define mtftl_crc32c(seed, data, len)	crc32c(seed, data, len)
#else
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define cpu_to_le16(x)	((__le16)htole16(x))
#define cpu_to_le32(x)	((__le32)htole32(x))
#define cpu_to_le64(x)	((__le64)htole64(x))
#define le16_to_cpu(x)	le16toh((u16)(x))
#define le32_to_cpu(x)	le32toh((u32)(x))
#define le64_to_cpu(x)	le64toh((u64)(x))

static inline int fls(u32 x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

/* Same convention as the kernel's: no inversion before or after. */
u32 mtftl_crc32c(u32 seed, const void *data, size_t len);
#endif

#endif
