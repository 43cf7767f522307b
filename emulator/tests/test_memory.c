// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The memory model against closed forms, without a guest: where a line is
 * found, what that takes, which CPU loses it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "memory-model.h"

#define CPUS 4
#define LINES (1u << 20)
#define MOMENT 1000

/* Small caches: 4 lines in L1, 8 in L2, 64 in L3; all latencies differ. */
static const MemProfile small = {
    .name = "small", .sockets = 2,
    .l1 = { 2, 2 }, .l2 = { 2, 4 }, .l3 = { 8, 8 },
    .l2_ns = 3, .stream_ns = 5, .atomic_ns = 7,
    .l3_ns = { 11, 13 }, .dram_ns = { 100, 150 },
    .clean_ns = { 30, 60 }, .modified_ns = { 40, 80 },
    .load_percent = 100, .store_percent = 50, .dma_to_l3 = true,
};

typedef struct Rig {
    MemModel *model;
    uint64_t now;       /* far enough apart that no CPU waits */
    int gone, read_only;
    int cpu, slot;      /* of the last one */
} Rig;

static void forget(void *opaque, int cpu, int slot, bool writes_only)
{
    Rig *rig = opaque;

    rig->gone += !writes_only;
    rig->read_only += writes_only;
    rig->cpu = cpu;
    rig->slot = slot;
}

static int begin(void **state)
{
    static Rig rig;

    memset(&rig, 0, sizeof(rig));
    rig.now = 1000000;
    rig.model = mem_new(&small, CPUS, LINES, 1, MOMENT, forget, &rig);
    *state = &rig;
    return !rig.model;
}

static int end(void **state)
{
    mem_free(((Rig *)*state)->model);
    return 0;
}

static MemAnswer touch(Rig *rig, int cpu, uint64_t line, MemKind kind)
{
    rig->now += 10 * MOMENT;
    return mem_access(rig->model, cpu, line, kind, rig->now);
}

static void expect(Rig *rig, int cpu, uint64_t line, MemKind kind,
                   MemSource source, uint64_t ticks)
{
    MemAnswer answer = touch(rig, cpu, line, kind);

    assert_int_equal(answer.source, source);
    assert_int_equal(answer.ticks, ticks);
    assert_false(answer.contended);
}

/* CPUs 0 and 1 are on the first socket; page 0 and page 2 are its memory. */
static void test_levels(void **state)
{
    Rig *rig = *state;
    unsigned i;

    expect(rig, 0, 0, MEM_LOAD, MEM_DRAM, 100);
    expect(rig, 0, 0, MEM_LOAD, MEM_L1, 0);
    expect(rig, 2, 64, MEM_LOAD, MEM_DRAM, 100);
    expect(rig, 2, 130, MEM_LOAD, MEM_DRAM, 150);
    /* Two more of its set, and it is in L2 only; four more: L3. */
    expect(rig, 0, 128 + 4, MEM_LOAD, MEM_DRAM, 100);
    expect(rig, 0, 128 + 8, MEM_LOAD, MEM_DRAM, 100);
    expect(rig, 0, 0, MEM_LOAD, MEM_L2, 3);
    for (i = 2; i < 5; i++) {
        expect(rig, 0, 128 + 8 * i, MEM_LOAD, MEM_DRAM, 100);
    }
    expect(rig, 0, 0, MEM_LOAD, MEM_L3, 11);
    assert_int_equal(mem_count(rig->model, MEM_DRAM), 8);
    assert_int_equal(mem_ticks(rig->model, MEM_DRAM), 850);
}

static void test_kinds(void **state)
{
    Rig *rig = *state;

    expect(rig, 0, 0, MEM_STORE, MEM_DRAM, 50);
    expect(rig, 0, 0, MEM_ATOMIC, MEM_L1, 7);
    expect(rig, 0, 10, MEM_ATOMIC, MEM_DRAM, 107);
}

static void test_stream(void **state)
{
    Rig *rig = *state;
    unsigned i;

    expect(rig, 0, 8, MEM_LOAD, MEM_DRAM, 100);
    for (i = 9; i < 64; i++) {
        expect(rig, 0, i, MEM_LOAD, MEM_STREAM, 5);
    }
    /* A prefetcher stops at the page. */
    expect(rig, 0, 64, MEM_LOAD, MEM_DRAM, 150);
    expect(rig, 0, 66, MEM_LOAD, MEM_DRAM, 150);
}

static void test_states(void **state)
{
    Rig *rig = *state;

    expect(rig, 0, 0, MEM_LOAD, MEM_DRAM, 100);
    /* Alone and unchanged: it need not ask before it writes. */
    expect(rig, 0, 0, MEM_STORE, MEM_L1, 0);
    expect(rig, 1, 0, MEM_LOAD, MEM_MODIFIED, 40);
    assert_int_equal(rig->read_only, 1);
    expect(rig, 0, 0, MEM_LOAD, MEM_L1, 0);
    expect(rig, 3, 0, MEM_LOAD, MEM_L3, 13);
    expect(rig, 0, 0, MEM_STORE, MEM_UPGRADE, 40);
    assert_int_equal(rig->gone, 2);
    expect(rig, 3, 0, MEM_STORE, MEM_MODIFIED, 40);
    assert_int_equal(rig->gone, 3);
    assert_int_equal(rig->cpu, 0);

    expect(rig, 0, 20, MEM_LOAD, MEM_DRAM, 100);
    expect(rig, 1, 20, MEM_LOAD, MEM_CLEAN, 30);
    expect(rig, 0, 30, MEM_LOAD, MEM_DRAM, 100);
    expect(rig, 2, 30, MEM_LOAD, MEM_CLEAN, 60);
    expect(rig, 1, 30, MEM_ATOMIC, MEM_SHARED, 87);
    expect(rig, 0, 40, MEM_LOAD, MEM_DRAM, 100);
    expect(rig, 1, 40, MEM_ATOMIC, MEM_CLEAN, 47);
}

/* What is a socket's is near for its CPUs only; the rest is as without. */
static void test_homes(void **state)
{
    Rig *rig = *state;
    unsigned i;

    for (i = 0; i < CPUS; i++) {
        assert_int_equal(mem_socket(rig->model, i), i / 2);
    }
    mem_place(rig->model, 1000, 500, 1);
    mem_place(rig->model, 1500, 500, 0);
    for (i = 1000; i < 2000; i += 10) {
        expect(rig, 1, i, MEM_LOAD, MEM_DRAM, i < 1500 ? 150 : 100);
        mem_dma_write(rig->model, i);
    }
    expect(rig, 2, 1005, MEM_LOAD, MEM_DRAM, 100);
    expect(rig, 2, 1505, MEM_LOAD, MEM_DRAM, 150);
    for (i = 0; i < 1000; i += 10) {
        expect(rig, 0, i, MEM_LOAD, MEM_DRAM, i / 64 % 2 ? 150 : 100);
    }
    expect(rig, 0, 2048, MEM_LOAD, MEM_DRAM, 100);
    expect(rig, 3, 2050, MEM_LOAD, MEM_DRAM, 150);
}

/* All that is dearer because it comes from the other socket says so. */
static void test_far(void **state)
{
    static const struct {
        int cpu, line;
        MemKind kind;
        bool far;
    } steps[] = {
        { 0, 0, MEM_LOAD, false }, { 0, 64, MEM_LOAD, true },
        { 0, 64, MEM_LOAD, false }, { 1, 64, MEM_LOAD, false },
        { 2, 64, MEM_LOAD, true }, { 2, 64, MEM_STORE, true },
        { 3, 64, MEM_STORE, false }, { 0, 64, MEM_STORE, true },
        { 2, 0, MEM_STORE, true }, { 2, 0, MEM_STORE, false },
    };
    Rig *rig = *state;
    unsigned i;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        assert_int_equal(touch(rig, steps[i].cpu, steps[i].line,
                               steps[i].kind).far, steps[i].far);
    }
}

/* All want one line at once: each gets it when the one before has it. */
static void test_queue(void **state)
{
    Rig *rig = *state;
    uint64_t now = 1000000;
    MemAnswer answer;
    unsigned i;

    mem_access(rig->model, 3, 0, MEM_ATOMIC, now - 100 * MOMENT);
    answer = mem_access(rig->model, 0, 0, MEM_ATOMIC, now);
    assert_false(answer.contended);
    assert_int_equal(answer.ticks, 80 + 7);
    for (i = 1; i < 10; i++) {
        answer = mem_access(rig->model, i % 2, 0, MEM_ATOMIC, now + i);
        assert_true(answer.contended);
        assert_int_equal(now + i + answer.ticks, now + 80 + 40 * i + 7);
    }
    /* A CPU that is not late enough to wait has contended nevertheless. */
    answer = mem_access(rig->model, 0, 0, MEM_ATOMIC, now + 500);
    assert_true(answer.contended);
    assert_int_equal(answer.ticks, 40 + 7);
    answer = mem_access(rig->model, 1, 0, MEM_ATOMIC, now + 2000);
    assert_false(answer.contended);
    /* A reader waits for what is on its way, too, but keeps none waiting. */
    answer = mem_access(rig->model, 0, 0, MEM_LOAD, now + 2010);
    assert_int_equal(answer.ticks, 30 + 40);
    answer = mem_access(rig->model, 2, 0, MEM_LOAD, now + 2020);
    assert_int_equal(answer.ticks, 60 + 13);
    answer = mem_access(rig->model, 3, 0, MEM_LOAD, now + 2020);
    assert_int_equal(answer.ticks, 60 + 13);
}

static void test_dma(void **state)
{
    Rig *rig = *state;

    expect(rig, 0, 0, MEM_STORE, MEM_DRAM, 50);
    mem_dma_write(rig->model, 0);
    assert_int_equal(rig->gone, 1);
    expect(rig, 0, 0, MEM_LOAD, MEM_L3, 11);
    /* It has it alone. */
    expect(rig, 0, 0, MEM_STORE, MEM_L1, 0);
}

/*
 * Whatever happens, a line that a CPU may write to is with no other: kept
 * here as a caller would, from the answers and from what is to be forgotten.
 */
typedef struct Kept {
    Rig rig;
    int64_t line[CPUS][4];
    bool writable[CPUS][4];
} Kept;

static void forget_kept(void *opaque, int cpu, int slot, bool writes_only)
{
    Kept *kept = opaque;

    kept->writable[cpu][slot] = false;
    if (!writes_only) {
        kept->line[cpu][slot] = -1;
    }
}

static void test_writer_is_alone(void **state)
{
    static Kept kept;
    uint32_t random = 1;
    MemModel *model;
    unsigned i, cpu, slot;

    (void)state;
    memset(kept.line, -1, sizeof(kept.line));
    model = mem_new(&small, CPUS, LINES, 1, MOMENT, forget_kept, &kept);
    for (i = 0; i < 200000; i++) {
        unsigned me, line;
        MemKind kind;
        MemAnswer answer;
        bool was = false, could = false;

        random = random * 1664525 + 1013904223;
        me = random >> 30;
        line = random >> 24 & 31;
        kind = (random >> 20 & 15) % 3;
        if ((random >> 10 & 63) == 0) {
            mem_dma_write(model, line);
        }
        for (slot = 0; slot < 4; slot++) {
            if (kept.line[me][slot] == line) {
                was = true;
                could = kept.writable[me][slot];
            }
        }
        answer = mem_access(model, me, line, kind, i * 50);
        if (was) {
            assert_true(answer.source == MEM_L1 || answer.source >= MEM_CLEAN);
        }
        if (could || (was && kind == MEM_LOAD)) {
            assert_int_equal(answer.source, MEM_L1);
        }
        kept.line[me][answer.slot] = line;
        kept.writable[me][answer.slot] |= kind != MEM_LOAD;
        for (cpu = 0; cpu < CPUS; cpu++) {
            for (slot = 0; slot < 4; slot++) {
                if (cpu != me && kept.line[cpu][slot] == line) {
                    assert_int_equal(kind, MEM_LOAD);
                    assert_false(kept.writable[cpu][slot]);
                }
            }
        }
    }
    mem_free(model);
}

static void test_profiles(void **state)
{
    const MemProfile *p;
    unsigned i;

    (void)state;
    for (i = 0; (p = mem_profile_at(i)); i++) {
        assert_ptr_equal(mem_profile(p->name), p);
        assert_true(p->l2_ns < p->l3_ns.same);
        assert_true(p->l3_ns.same < p->clean_ns.same);
        assert_true(p->clean_ns.same < p->modified_ns.same);
        assert_true(p->modified_ns.same < p->dram_ns.same);
        assert_true(p->l1.sets * p->l1.ways < p->l2.sets * p->l2.ways);
    }
    assert_true(i > 0);
    assert_null(mem_profile("none"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_levels, begin, end),
        cmocka_unit_test_setup_teardown(test_kinds, begin, end),
        cmocka_unit_test_setup_teardown(test_stream, begin, end),
        cmocka_unit_test_setup_teardown(test_states, begin, end),
        cmocka_unit_test_setup_teardown(test_homes, begin, end),
        cmocka_unit_test_setup_teardown(test_far, begin, end),
        cmocka_unit_test_setup_teardown(test_queue, begin, end),
        cmocka_unit_test_setup_teardown(test_dma, begin, end),
        cmocka_unit_test(test_writer_is_alone),
        cmocka_unit_test(test_profiles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
