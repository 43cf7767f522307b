/*
 * Memory model: the machines that it knows.  Constants only.
 *
 * Sizes are the vendors'.  Latencies between cores are medians that
 * github.com/nviennot/core-to-core-latency lists: 51 ns for a Xeon Platinum
 * 8375C (Ice Lake), 20 ns for a Core i7-6700K (Skylake).  That a write takes
 * as long whether others hold the line modified or shared, and that a line
 * which another core holds unchanged comes in 85% of that time, is from table
 * 2 of David, Guerraoui, Trigonakis, "Everything you always wanted to know
 * about synchronization but were afraid to ask", SOSP 2013 (115, 116 and 92 of
 * 109 cycles on a Xeon).  L2, L3 and memory: 14 and some 75 cycles of 3.5 GHz
 * and 85 ns for the server; 12 and 42 cycles of 4 GHz and 42 cycles plus 51 ns
 * for the desktop (7-cpu.com).  A locked instruction on a line that is there
 * takes some 18 cycles (Agner Fog's instruction tables).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <string.h>

#include "memory-model.h"

#define KIB(n) ((n) * 1024u / MEM_LINE_SIZE)
#define CACHE(lines, nr_ways) { .sets = (lines) / (nr_ways), .ways = (nr_ways) }

/*
 * What an out-of-order core hides, one constant a kind.  Loads: nothing, as if
 * each were needed at once; but streams are prefetched.  Stores: half, because
 * they wait in the store buffer, which the next locked instruction empties.
 * Atomics: nothing.
 */
#define EXPOSED .load_percent = 100, .store_percent = 50

#define SERVER                                                          \
    .l1 = CACHE(KIB(48), 12),                                           \
    .l2 = CACHE(KIB(1280), 20),                                         \
    .l3 = CACHE(KIB(48 * 1024), 12),                                    \
    .l2_ns = 4, .stream_ns = 5, .atomic_ns = 5,                         \
    .l3_ns = { 21, 85 }, .dram_ns = { 85, 139 },                        \
    .clean_ns = { 43, 95 }, .modified_ns = { 51, 110 },                 \
    EXPOSED, .dma_to_l3 = true

static const MemProfile profiles[] = {
    {
        .name = "server",
        .text = "one socket like a Xeon Platinum 8375C (Ice Lake)",
        .sockets = 1, SERVER,
    }, {
        .name = "server2",
        .text = "two such sockets, half of the CPUs on each",
        .sockets = 2, SERVER,
    }, {
        .name = "desktop",
        .text = "a Core i7-6700K (Skylake)",
        .sockets = 1,
        .l1 = CACHE(KIB(32), 8),
        .l2 = CACHE(KIB(256), 4),
        .l3 = CACHE(KIB(8 * 1024), 16),
        .l2_ns = 3, .stream_ns = 4, .atomic_ns = 4,
        .l3_ns = { 10, 10 }, .dram_ns = { 62, 62 },
        .clean_ns = { 17, 17 }, .modified_ns = { 20, 20 },
        EXPOSED, .dma_to_l3 = false,
    },
};

const MemProfile *mem_profile_at(unsigned index)
{
    return index < sizeof(profiles) / sizeof(profiles[0]) ? &profiles[index]
                                                          : NULL;
}

const MemProfile *mem_profile(const char *name)
{
    const MemProfile *profile;
    unsigned i;

    assert(name);
    for (i = 0; (profile = mem_profile_at(i)); i++) {
        if (!strcmp(profile->name, name)) {
            break;
        }
    }
    return profile;
}
