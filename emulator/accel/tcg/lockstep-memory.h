/*
 * Lockstep virtual time with caches: what the rest of TCG calls.
 *
 * All of it runs in the vCPU thread; lines_reset_dirty(), and
 * memory_dma_write() of cpu-timers.h, also elsewhere under the BQL.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef LOCKSTEP_MEMORY_H
#define LOCKSTEP_MEMORY_H

#include "exec/cpu-common.h"
#include "exec/tlb-common.h"
#include "exec/vaddr.h"
#include "memory-model.h"

/*
 * Read "memory" and "sharing" from -icount.  @speed is in ticks per ns.
 * Returns false with @errp set if it cannot be.
 */
bool memory_configure(QemuOpts *opts, int64_t speed, Error **errp);

/*
 * The first vCPU, one of a kind, is there.  The model is made for the CPUs that
 * the machine begins with: none can be plugged in or out.
 */
void memory_fix_cpus(CPUState *cpu);

/* The caller's clock, for a vCPU that runs; in ticks. */
typedef struct MemoryClock {
    /* The instant that @cpu has reached. */
    int64_t (*instant)(CPUState *cpu);

    /*
     * What @cpu has just done takes @cost ticks more.  @cut: its turn ends
     * here, so that other vCPUs catch up.
     */
    void (*charge)(CPUState *cpu, int64_t cost, bool cut);
} MemoryClock;

/*
 * Make the model, once all vCPUs and the guest's memory are there.  A turn
 * lasts @slice ticks.  The model asks @clock for the instant of each access and
 * charges it there.
 */
void memory_start(int64_t slice, int64_t speed, const MemoryClock *clock);

/* A vCPU's tables of lines. */
void lines_init(CPUState *cpu);
void lines_destroy(CPUState *cpu);

/* What the TLB forgets, the tables forget too: all, or a page. */
void lines_flush(CPUState *cpu, int mmu_idx);
void lines_flush_page(CPUState *cpu, int mmu_idx, vaddr page);

/* Writes to that memory of the host have to be seen again. */
void lines_reset_dirty(CPUState *cpu, int mmu_idx, uintptr_t start,
                       uintptr_t length);

/*
 * @cpu accesses @size bytes at @addr, of one page, which is at @ram of the
 * guest's memory; @page is its entry in the TLB, @ra where the code is.
 */
void memory_access(CPUState *cpu, vaddr addr, int size, ram_addr_t ram,
                   MemKind kind, int mmu_idx, const CPUTLBEntry *page,
                   uintptr_t ra);

#endif /* LOCKSTEP_MEMORY_H */
