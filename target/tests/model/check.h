/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What must hold in all states of a model, once explore.c has found them.
 */
#ifndef MTFTL_CHECK_H
#define MTFTL_CHECK_H

#include "tests/model/explore.h"

/* Of one drive. */
struct result {
	u32 states, ends;	/* ends: the target turns read-only in these, after two failures */
	u64 steps;
};

/* False: something does not hold; the way to it is printed. */
bool check_drive(const struct geometry *geometry, struct result *result);

#endif
