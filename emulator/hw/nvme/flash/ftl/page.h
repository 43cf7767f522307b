/*
 * Page mapping, for mappings that are built upon it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The owner serialises.
 */

#ifndef HW_NVME_FLASH_FTL_PAGE_H
#define HW_NVME_FLASH_FTL_PAGE_H

#include "core.h"

/* As in FtlMapping; more: bytes, zeroed, that ftl_page_more() gives. */
char *ftl_page_open(Ftl *ftl, size_t more);
void *ftl_page_more(const Ftl *ftl);
bool ftl_page_load(Ftl *ftl);
uint32_t ftl_page_place(Ftl *ftl, uint64_t lba);
void ftl_page_near(Ftl *ftl, uint64_t lba, uint32_t further);

/* Blocks that can be written to a group beyond what GC needs. */
uint64_t ftl_page_spare(const Ftl *ftl, uint32_t group);

#endif
