/*
 * Lockstep: blocks of code in pages that all vCPUs share.
 *
 * What the guest marks as global in its page tables stays valid when a vCPU
 * changes to other tables, and its kernel does so for all of itself.  So in
 * the upper half of addresses, until a vCPU flushes such a page,
 *  - all vCPUs find blocks in one cache, which is small enough for the host's;
 *  - a block may jump straight to one in another page, which for others is
 *    looked up each time.
 *
 * All vCPUs run in one thread in lockstep, which alone calls these then; out
 * of lockstep they find nothing to do.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef ACCEL_TCG_TB_GLOBAL_H
#define ACCEL_TCG_TB_GLOBAL_H

#include "exec/exec-all.h"
#include "exec/translation-block.h"
#include "system/cpu-timers.h"

#define TB_GLOBAL_BITS 15

typedef struct TbGlobalEntry {
    TranslationBlock *tb;
    vaddr pc;
} TbGlobalEntry;

extern TbGlobalEntry tb_global_cache[1 << TB_GLOBAL_BITS];

/* May what is at @pc be global?  Its blocks are not CF_PCREL then. */
static inline bool tb_global_may_be(vaddr pc)
{
    return icount_lockstep() && (int64_t)pc < 0;
}

static inline uint32_t tb_global_cflags(vaddr pc, uint32_t cflags)
{
    return tb_global_may_be(pc) ? cflags & ~CF_PCREL : cflags;
}

/* Blocks that differ in nothing but their flags have entries of their own. */
static inline TbGlobalEntry *tb_global_entry(vaddr pc, uint32_t flags,
                                             uint32_t cflags)
{
    uint32_t mixed = (uint32_t)pc ^ flags << 8 ^ cflags << 20;

    return &tb_global_cache[mixed * 0x9e3779b1u >> (32 - TB_GLOBAL_BITS)];
}

static inline TranslationBlock *tb_global_find(vaddr pc, uint64_t cs_base,
                                               uint32_t flags, uint32_t cflags)
{
    TbGlobalEntry *entry = tb_global_entry(pc, flags, cflags);
    TranslationBlock *tb = entry->tb;

    /* One that has become invalid has other flags. */
    return tb && entry->pc == pc && tb->cs_base == cs_base &&
           tb->flags == flags && tb_cflags(tb) == cflags ? tb : NULL;
}

/* @cpu has found @tb at @pc just now: keep it if its pages are global. */
void tb_global_keep(CPUState *cpu, vaddr pc, TranslationBlock *tb);

/*
 * @from's jump @n leads @cpu to @to, at @pc, in another page.  May they be
 * linked?  Then they will be until tb_global_flush() of exec/cputlb.h.
 */
bool tb_global_may_link(CPUState *cpu, vaddr pc, TranslationBlock *from, int n,
                        TranslationBlock *to);

/* Has @cpu's TLB code at @addr, in a page that is global?  (cputlb.c) */
bool tlb_is_global(CPUState *cpu, vaddr addr);

/* Undo the link of @tb's jump @n, which may be made anew.  (tb-maint.c) */
void tb_unlink_jump(TranslationBlock *tb, int n);

/* All blocks are gone. */
void tb_global_reset(void);

#endif
