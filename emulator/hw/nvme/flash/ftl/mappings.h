/*
 * The mappings that the FTL has.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One file each, which includes this, and one line here.
 */

#ifndef HW_NVME_FLASH_FTL_MAPPINGS_H
#define HW_NVME_FLASH_FTL_MAPPINGS_H

#include "core.h"

#define FTL_MAPPINGS(each)      \
    each(ftl_page)              \
    each(ftl_dftl)              \
    each(ftl_bast)              \
    each(ftl_fast)              \
    each(ftl_last)

#define FTL_DECLARE(mapping)    \
extern const FtlMapping mapping;

FTL_MAPPINGS(FTL_DECLARE)

#endif
