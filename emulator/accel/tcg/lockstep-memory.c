/*
 * Lockstep virtual time with caches: between TCG and the memory model.
 *
 * With -icount ...,quantum=Q,memory=NAME an access costs what memory-model.c
 * says: that much of its vCPU's budget is gone, as if it had been executed.
 *
 * TCG's code finds memory by a table per vCPU and MMU mode that has the form
 * of the TLB, but an entry is a line, not a page.  A line is in there only
 * while the model has it in that vCPU's L1, writable only if a write changes
 * nothing there.  So what hits costs no more than a hit of the TLB, and
 * everything else comes here by the slow path.  The tables are a cache of the
 * model's L1: what they hold shows in the host's time, never in the guest's.
 *
 * Each slot of an L1 knows where its line is in the tables: in one place.
 *
 * If a vCPU touches a line that another one has just asked for, its turn ends
 * there, so that vCPUs behind in time come first: the line changes hands as
 * often as it would.  Such a line stays out of the tables for a moment.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/option.h"
#include "qemu/units.h"
#include "exec/cpu-common.h"
#include "exec/target_page.h"
#include "hw/boards.h"
#include "hw/core/cpu.h"
#include "system/cpu-timers.h"
#include "system/hostmem.h"
#include "system/numa.h"

#include "lockstep-memory.h"
#include "sharing.h"

/* Entries of a table of lines. */
#define TABLE_ENTRIES 512
#define NOWHERE UINT64_MAX

/* Beside its RAM, the guest has some more memory: firmware, what is shared. */
#define MORE_RAM (4 * GiB)

bool icount_memory;

/* Where the line of an L1's slot is in the tables. */
typedef struct Slot {
    vaddr addr;
    int mmu_idx;
} Slot;

static struct {
    const MemProfile *profile;
    MemModel *model;
    const MemoryClock *clock;
    uint64_t lines;
    Slot *slots[MEM_MAX_CPUS];
    CPUState *cpus[MEM_MAX_CPUS];
} memory;

/* The tables of lines */

static CPUTLBEntry *entry_of(CPUState *cpu, int mmu_idx, vaddr addr)
{
    return &cpu->neg.tlb.l[mmu_idx].table[(addr >> MEM_LINE_BITS) &
                                          (TABLE_ENTRIES - 1)];
}

void lines_init(CPUState *cpu)
{
    int i;

    if (!icount_memory) {
        return;
    }
    for (i = 0; i < NB_MMU_MODES; i++) {
        CPUTLBDescFast *fast = &cpu->neg.tlb.l[i];

        fast->mask = (TABLE_ENTRIES - 1) << CPU_TLB_ENTRY_BITS;
        fast->table = g_new(CPUTLBEntry, TABLE_ENTRIES);
        lines_flush(cpu, i);
    }
}

void lines_destroy(CPUState *cpu)
{
    int i;

    for (i = 0; i < NB_MMU_MODES; i++) {
        g_free(cpu->neg.tlb.l[i].table);
        cpu->neg.tlb.l[i].table = NULL;
    }
}

void lines_flush(CPUState *cpu, int mmu_idx)
{
    memset(cpu->neg.tlb.l[mmu_idx].table, -1,
           TABLE_ENTRIES * sizeof(CPUTLBEntry));
}

void lines_flush_page(CPUState *cpu, int mmu_idx, vaddr page)
{
    vaddr addr;

    assert(!(page & ~TARGET_PAGE_MASK));
    for (addr = page; addr != page + TARGET_PAGE_SIZE; addr += MEM_LINE_SIZE) {
        CPUTLBEntry *entry = entry_of(cpu, mmu_idx, addr);

        if (entry->addr_read == addr || entry->addr_write == addr) {
            memset(entry, -1, sizeof(*entry));
        }
    }
}

void lines_reset_dirty(CPUState *cpu, int mmu_idx, uintptr_t start,
                       uintptr_t length)
{
    CPUTLBEntry *entry = cpu->neg.tlb.l[mmu_idx].table;
    CPUTLBEntry *end = entry + TABLE_ENTRIES;

    for (; entry < end; entry++) {
        if (entry->addr_write != NOWHERE &&
            entry->addr_write + entry->addend - start < length) {
            qatomic_set(&entry->addr_write, NOWHERE);
        }
    }
}

/* The model's MemForget. */
static void forget(void *opaque, int index, int number, bool writes_only)
{
    Slot *slot = &memory.slots[index][number];
    CPUTLBEntry *entry;

    if (slot->addr == NOWHERE) {
        return;
    }
    entry = entry_of(memory.cpus[index], slot->mmu_idx, slot->addr);
    if (entry->addr_write == slot->addr) {
        entry->addr_write = NOWHERE;
    }
    if (!writes_only) {
        if (entry->addr_read == slot->addr) {
            entry->addr_read = NOWHERE;
        }
        slot->addr = NOWHERE;
    }
}

/* The line at @addr is in L1, in slot @number; let TCG's code find it. */
static void remember(CPUState *cpu, int number, vaddr addr, int mmu_idx,
                     const CPUTLBEntry *page, bool write)
{
    Slot *slot = &memory.slots[cpu->cpu_index][number];
    CPUTLBEntry *entry = entry_of(cpu, mmu_idx, addr);
    vaddr page_addr = addr & TARGET_PAGE_MASK;

    assert(!(addr & (MEM_LINE_SIZE - 1)));
    if (slot->addr != addr || slot->mmu_idx != mmu_idx) {
        forget(NULL, cpu->cpu_index, number, false);
        slot->addr = addr;
        slot->mmu_idx = mmu_idx;
    }
    if (entry->addr_read != addr && entry->addr_write != addr) {
        entry->addr_write = NOWHERE;
    }
    /* Flags in the TLB's entry ask for the slow path, each time. */
    entry->addr_read = page->addr_read == page_addr ? addr : NOWHERE;
    if (write) {
        entry->addr_write = page->addr_write == page_addr ? addr : NOWHERE;
    }
    entry->addend = page->addend;
}

/* Accesses */

/* The address of the instruction that code at @ra of the host belongs to. */
static vaddr guest_pc(CPUState *cpu, uintptr_t ra)
{
    uint64_t data[8];
    vaddr pc = cpu->cc->get_pc(cpu);

    /* Code knows its place in the page; the page is where the vCPU is. */
    if (ra && cpu_unwind_state_data(cpu, ra, data)) {
        pc = (pc & TARGET_PAGE_MASK) | (data[0] & ~TARGET_PAGE_MASK);
    }
    return pc;
}

void memory_access(CPUState *cpu, vaddr addr, int size, ram_addr_t ram,
                   MemKind kind, int mmu_idx, const CPUTLBEntry *page,
                   uintptr_t ra)
{
    vaddr last = (addr + size - 1) >> MEM_LINE_BITS;
    uint64_t line = ram >> MEM_LINE_BITS;
    vaddr at;

    if (!memory.model || !cpu->running) {
        return;
    }
    assert(memory.cpus[cpu->cpu_index] == cpu);
    for (at = addr >> MEM_LINE_BITS; at <= last && line < memory.lines;
         at++, line++) {
        MemAnswer answer = mem_access(memory.model, cpu->cpu_index, line, kind,
                                      memory.clock->instant(cpu));

        if (sharing_on && answer.source != MEM_L1) {
            sharing_note(cpu->cpu_index, line, MAX(addr, at << MEM_LINE_BITS),
                         guest_pc(cpu, ra), kind, &answer);
        }
        if (answer.ticks || answer.contended) {
            memory.clock->charge(cpu, answer.ticks, answer.contended);
        }
        if (answer.contended) {
            forget(NULL, cpu->cpu_index, answer.slot, false);
        } else {
            remember(cpu, answer.slot, at << MEM_LINE_BITS, mmu_idx, page,
                     kind != MEM_LOAD);
        }
    }
}

void memory_dma_write(ram_addr_t ram, ram_addr_t length)
{
    uint64_t end = (ram + length + MEM_LINE_SIZE - 1) >> MEM_LINE_BITS;
    uint64_t line;

    if (!memory.model) {
        return;
    }
    for (line = ram >> MEM_LINE_BITS; line < MIN(end, memory.lines); line++) {
        mem_dma_write(memory.model, line);
    }
}

/* Set-up */

bool memory_configure(QemuOpts *opts, int64_t speed, Error **errp)
{
    const char *name = qemu_opt_get(opts, "memory");
    const char *file = qemu_opt_get(opts, "sharing");
    const MemProfile *profile;
    unsigned i;

    assert(!memory.profile);
    assert(name || !file);
    if (!name) {
        return true;
    }
#ifndef HOST_X86_64
    error_setg(errp, "icount: memory needs an x86-64 host");
    return false;
#endif
    memory.profile = mem_profile(name);
    if (!memory.profile) {
        error_setg(errp, "icount: there is no memory '%s'", name);
        for (i = 0; (profile = mem_profile_at(i)); i++) {
            error_append_hint(errp, "%s: %s\n", profile->name, profile->text);
        }
        return false;
    }
    icount_memory = true;
    if (file) {
        sharing_start(file, speed);
    }
    return true;
}

/* A node that the guest is told of is a socket: its CPUs and its memory. */
static void place_nodes(const MachineState *machine)
{
    const NumaState *numa = machine->numa_state;
    const CPUArchIdList *cpus = machine->possible_cpus;
    bool fit;
    int i;

    if (!numa || numa->num_nodes < 2) {
        return;
    }
    fit = numa->num_nodes == memory.profile->sockets;
    for (i = 0; fit && i < cpus->len; i++) {
        fit = !cpus->cpus[i].cpu || mem_socket(memory.model, i) ==
                                    cpus->cpus[i].props.node_id;
    }
    if (!fit) {
        error_report("The guest's NUMA nodes and their CPUs are not the "
                     "sockets of memory '%s'", memory.profile->name);
        exit(1);
    }
    for (i = 0; i < numa->num_nodes; i++) {
        HostMemoryBackend *backend = numa->nodes[i].node_memdev;

        if (backend) {
            MemoryRegion *mr = host_memory_backend_get_memory(backend);

            mem_place(memory.model,
                      memory_region_get_ram_addr(mr) >> MEM_LINE_BITS,
                      memory_region_size(mr) >> MEM_LINE_BITS, i);
        }
    }
}

void memory_fix_cpus(CPUState *cpu)
{
    if (icount_memory) {
        DEVICE_GET_CLASS(cpu)->hotpluggable = false;
    }
}

void memory_start(int64_t slice, int64_t speed, const MemoryClock *clock)
{
    CPUState *cpu;
    int cpus = 0;
    int i;

    if (!icount_memory) {
        return;
    }
    assert(!memory.model && clock->instant && clock->charge);
    CPU_FOREACH(cpu) {
        cpus = MAX(cpus, cpu->cpu_index + 1);
    }
    /*
     * A vCPU asks for a line when its turn begins, and the next one when its
     * own does: two turns may lie between them.
     */
    memory.clock = clock;
    memory.lines = (current_machine->ram_size + MORE_RAM) >> MEM_LINE_BITS;
    memory.model = mem_new(memory.profile, cpus, memory.lines, speed, 2 * slice,
                           forget, NULL);
    if (!memory.model) {
        error_report("No memory model for %d CPUs and %" PRIu64 " lines: too "
                     "many, or too little memory", cpus, memory.lines);
        exit(1);
    }
    place_nodes(current_machine);
    CPU_FOREACH(cpu) {
        Slot *slots = g_new(Slot, mem_l1_slots(memory.model));

        for (i = 0; i < mem_l1_slots(memory.model); i++) {
            slots[i].addr = NOWHERE;
        }
        assert(!memory.slots[cpu->cpu_index]);
        memory.slots[cpu->cpu_index] = slots;
        memory.cpus[cpu->cpu_index] = cpu;
    }
}
