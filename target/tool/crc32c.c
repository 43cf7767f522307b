// SPDX-License-Identifier: GPL-2.0
/*
 * pure.h's checksum for everything that runs on the host, by ISA-L, which
 * inverts neither before nor after, as the kernel does.
 */
#include <isa-l/crc.h>

#include "lib/pure.h"

u32 mtftl_crc32c(u32 seed, const void *data, size_t len)
{
	return crc32_iscsi((unsigned char *)data, (int)len, seed);
}
