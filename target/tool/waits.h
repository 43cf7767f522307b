/* SPDX-License-Identifier: GPL-2.0 */
/* How long writes waited for room in the buffers, since the mount. */
#ifndef MTFTL_TOOL_WAITS_H
#define MTFTL_TOOL_WAITS_H

#include "lib/pure.h"

#define WAITS_MAX	64

/* Bucket n has waits of up to waits_limit(n) us that are in none below; the last one all others. */
struct waits {
	u64 writes[WAITS_MAX];
	u32 nr_buckets;
	u64 nr;			/* the sum of all */
};

/* Of all lanes of the device; no buckets if it does not tell. */
void waits_ask(const char *name, struct waits *waits);
u64 waits_limit(u32 bucket);
/* Microseconds within which this share of the writes was taken. */
u64 waits_within(const struct waits *waits, u32 permille);

#endif
