/*
 * Lockstep: blocks of code in pages that all vCPUs share.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "exec/cputlb.h"
#include "hw/core/cpu.h"

#include "internal-common.h"
#include "tb-global.h"

typedef struct Link {
    TranslationBlock *from;
    int n;
} Link;

TbGlobalEntry tb_global_cache[1 << TB_GLOBAL_BITS];

static GArray *links;   /* of struct Link: all that lead to another page */
static bool kept;       /* the cache is not empty */

/* Are the pages of @tb global, which @cpu has found at @pc just now? */
static bool is_global(CPUState *cpu, vaddr pc, const TranslationBlock *tb)
{
    return tb_global_may_be(pc) && tlb_is_global(cpu, pc) &&
           (tb_page_addr1(tb) == -1 ||
            tlb_is_global(cpu, TARGET_PAGE_ALIGN(pc)));
}

void tb_global_keep(CPUState *cpu, vaddr pc, TranslationBlock *tb)
{
    if (is_global(cpu, pc, tb)) {
        TbGlobalEntry *entry = tb_global_entry(pc, tb->flags, tb_cflags(tb));

        entry->tb = tb;
        entry->pc = pc;
        kept = true;
    }
}

bool tb_global_may_link(CPUState *cpu, vaddr pc, TranslationBlock *from, int n,
                        TranslationBlock *to)
{
    Link link = { from, n };
    CPUState *other;

    assert(n == 0 || n == 1);
    /* A block that may be elsewhere as well leads elsewhere from there. */
    if (tb_cflags(from) & CF_PCREL || !is_global(cpu, pc, to)) {
        return false;
    }
    /* A vCPU that comes by a link does not meet a breakpoint. */
    CPU_FOREACH(other) {
        if (!QTAILQ_EMPTY(&other->breakpoints)) {
            return false;
        }
    }
    if (!links) {
        links = g_array_new(false, false, sizeof(Link));
    }
    g_array_append_val(links, link);
    return true;
}

void tb_global_flush(void)
{
    for (guint i = 0; links && i < links->len; i++) {
        Link *link = &g_array_index(links, Link, i);

        tb_unlink_jump(link->from, link->n);
    }
    tb_global_reset();
}

void tb_global_reset(void)
{
    if (links) {
        g_array_set_size(links, 0);
    }
    if (kept) {
        memset(tb_global_cache, 0, sizeof(tb_global_cache));
        kept = false;
    }
}
