/*
 * The mappings that the FTL has.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One file each, which includes this; flash-ftl.c lists them.
 */

#ifndef HW_NVME_FLASH_FTL_MAPPINGS_H
#define HW_NVME_FLASH_FTL_MAPPINGS_H

#include "flash-ftl-core.h"

extern const FtlMapping ftl_page;
extern const FtlMapping ftl_dftl;
extern const FtlMapping ftl_bast;
extern const FtlMapping ftl_fast;
extern const FtlMapping ftl_last;

#endif
