/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The drive below the module's own code, for the fuzzers that run that: a sparse image. What is
 * written is dropped.
 */
#ifndef MTFTL_TESTS_FUZZ_KERNEL_H
#define MTFTL_TESTS_FUZZ_KERNEL_H

#include "device/config.h"
#include "sparse.h"
#include "zone/walk.h"

extern struct sparse_image fuzz_image;

/* What a table would find out about the drive. */
void fuzz_kernel_config(struct mtftl_config *config);

/* What a walk of a zone finds lies inside the zone: for mtftl_zone_walk(), private is the zone. */
void fuzz_kernel_seen(void *private, enum mtftl_unit_type type, u32 header, u32 index, u64 lba);

#endif
