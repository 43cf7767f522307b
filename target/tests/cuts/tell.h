/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tells of one cut, for a page that explains it: what each block of the drive was before it, and is
 * after it. One thread, one cut of a process.
 */
#ifndef MTFTL_TESTS_TELL_H
#define MTFTL_TESTS_TELL_H

#include <stdio.h>

#include "drive.h"

/* Before the cut. */
void tell_before(const struct drive *drive);
/* After it, before anything is mounted: a JSON array of zones. */
void tell_zones(const struct drive *drive, FILE *file);

#endif
