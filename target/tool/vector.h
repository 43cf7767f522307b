/* SPDX-License-Identifier: GPL-2.0 */
/* A growing array, for records whose number is known only at the end. */
#ifndef MTFTL_TOOL_VECTOR_H
#define MTFTL_TOOL_VECTOR_H

#include "lib/pure.h"

struct vector {
	void *items;
	u64 nr;
	u64 room;
};

/* Room for one more item of @size bytes, always the same one for a vector. */
void *vector_add(struct vector *vector, size_t size);
void vector_free(struct vector *vector);

#endif
