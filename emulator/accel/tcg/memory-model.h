/*
 * Memory model: what each access to memory costs on a machine with caches.
 *
 * Private L1 and L2 of each CPU, an L3 of each socket, and a directory that
 * knows for every line of memory which CPUs hold it and how (exclusive,
 * modified or shared).  The caller says which CPU touches which line when; the
 * model says how long that takes.  It is a function of these calls alone.
 *
 * It is plain C and knows nothing of QEMU; its tests run on the host.  The
 * owner of a model calls it from one thread, or under a lock of its own.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef MEMORY_MODEL_H
#define MEMORY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEM_LINE_BITS 6
#define MEM_LINE_SIZE (1u << MEM_LINE_BITS)
#define MEM_MAX_CPUS 64
#define MEM_MAX_SOCKETS 4

typedef enum MemKind {
    MEM_LOAD,
    MEM_STORE,
    MEM_ATOMIC,         /* a locked read-modify-write */
} MemKind;

/* Where a line was found; from MEM_CLEAN on another CPU had a hand in it. */
typedef enum MemSource {
    MEM_L1,
    MEM_L2,
    MEM_STREAM,         /* the next line of a stream: prefetched */
    MEM_L3,
    MEM_DRAM,
    MEM_CLEAN,          /* another CPU held it alone, unchanged */
    MEM_MODIFIED,       /* another CPU has changed it */
    MEM_SHARED,         /* others held it and lost it to a write */
    MEM_UPGRADE,        /* so did they, but the writer had it already */
    MEM_NR_SOURCES,
} MemSource;

typedef struct MemCache {
    uint32_t sets;
    uint32_t ways;
} MemCache;

/* A line's way within a socket, and to or from another one: nanoseconds. */
typedef struct MemLatency {
    uint32_t same;
    uint32_t other;
} MemLatency;

typedef struct MemProfile {
    const char *name;
    const char *text;           /* one line for a user */
    uint32_t sockets;
    MemCache l1, l2, l3;        /* of a CPU, of a CPU, of a socket */
    uint32_t l2_ns;
    uint32_t stream_ns;
    uint32_t atomic_ns;         /* a locked instruction beside its line */
    MemLatency l3_ns;
    MemLatency dram_ns;
    MemLatency clean_ns;
    MemLatency modified_ns;     /* and any write that others must answer */
    uint32_t load_percent;      /* of a load's way, what the CPU waits */
    uint32_t store_percent;     /* the same of a store's */
    bool dma_to_l3;             /* what a device writes goes into the L3 */
} MemProfile;

typedef struct MemAnswer {
    uint64_t ticks;     /* that the access takes beyond its instruction */
    MemSource source;
    int slot;           /* of the CPU's L1 in which the line now is */
    bool contended;     /* another CPU asked for the line a moment ago */
    bool far;           /* another socket had a hand in it */
} MemAnswer;

/*
 * The line in @slot of @cpu's L1 has left it; or, if @writes_only, may be read
 * on, but a CPU that writes to it must ask again.
 */
typedef void MemForget(void *opaque, int cpu, int slot, bool writes_only);

typedef struct MemModel MemModel;

/* The profile of that name, or NULL. */
const MemProfile *mem_profile(const char *name);

/* The profile number @index, or NULL beyond the last. */
const MemProfile *mem_profile_at(unsigned index);

/*
 * A model of @cpus CPUs and @lines lines.  Its clock counts @ticks_per_ns.
 * Two accesses less than @moment ticks apart contend.  NULL without memory.
 */
MemModel *mem_new(const MemProfile *profile, int cpus, uint64_t lines,
                  uint32_t ticks_per_ns, uint64_t moment,
                  MemForget *forget, void *opaque);
void mem_free(MemModel *model);

/* On which socket @cpu is: half of them on each of two. */
int mem_socket(const MemModel *model, int cpu);

/*
 * @lines lines from @first on are @socket's memory, at most once a socket.
 * Other memory lies on the sockets in turn, page by page.
 */
void mem_place(MemModel *model, uint64_t first, uint64_t lines, int socket);

/* Lines that a CPU's L1 holds: slots are numbered from 0 to one less. */
int mem_l1_slots(const MemModel *model);

/*
 * @cpu touches @line (less than the model has) at the instant @now.  Until
 * forget() is told, further loads from it find it in L1; so do stores and
 * atomics after a store or an atomic.  These loads and stores change nothing
 * and cost nothing: unless the line was contended, they may be spared.
 */
MemAnswer mem_access(MemModel *model, int cpu, uint64_t line, MemKind kind,
                     uint64_t now);

/* A device writes to @line. */
void mem_dma_write(MemModel *model, uint64_t line);

/* All accesses so far, and what they took, by where lines were found. */
uint64_t mem_count(const MemModel *model, MemSource source);
uint64_t mem_ticks(const MemModel *model, MemSource source);

#endif /* MEMORY_MODEL_H */
