// SPDX-License-Identifier: GPL-2.0
/* The target's answer to the message "latency": a line a lane, its number and then the buckets. */
#include <stdlib.h>

#include "dm.h"
#include "waits.h"

void waits_ask(const char *name, struct waits *waits)
{
	char *said = dm_message(name, "latency"), *rest = said, *line, *word;
	u64 writes;
	u32 i;

	*waits = (struct waits) { 0 };
	while (rest && (line = strsep(&rest, "\n"))) {
		strsep(&line, " ");
		for (i = 0; i < WAITS_MAX && (word = strsep(&line, " ")); i++) {
			writes = strtoull(word, NULL, 10);
			waits->writes[i] += writes;
			waits->nr += writes;
		}
		if (i > waits->nr_buckets)
			waits->nr_buckets = i;
	}
	free(said);
}

u64 waits_limit(u32 bucket)
{
	assert(bucket < WAITS_MAX);
	return (1ull << bucket) - 1;
}

u64 waits_within(const struct waits *waits, u32 permille)
{
	u64 below = 0;
	u32 i;

	for (i = 0; i < WAITS_MAX - 1; i++) {
		below += waits->writes[i];
		if (below * 1000 >= waits->nr * permille)
			break;
	}
	return waits_limit(i);
}
