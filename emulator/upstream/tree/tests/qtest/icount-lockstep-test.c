/*
 * QTest testcase for lockstep time: -icount ...,quantum=Q
 *
 * Firmware runs a loop on all CPUs at once (icount-lockstep-bios.S).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/units.h"
#include "libqtest.h"
#include "icount-lockstep-bios.h"

#define CPUS        4
#define TURNS       1000000
/* Instructions from the reading of the clock before the loop to the next. */
#define LOOP        (2 * TURNS + 3)
#define ENDED       0x10004
#define TIMES       0x10100

typedef struct Times {
    uint32_t begun, ended;
} Times;

static char *bios;

static void write_bios(void)
{
    g_autofree uint8_t *image = g_malloc(64 * KiB);
    /* ljmp $0xf000, $0 */
    static const uint8_t reset[] = { 0xea, 0x00, 0x00, 0x00, 0xf0 };
    int fd = g_file_open_tmp("lockstep-XXXXXX", &bios, NULL);

    g_assert_cmpint(fd, >=, 0);
    memset(image, 0xf4, 64 * KiB);
    memcpy(image, lockstep_bios, sizeof(lockstep_bios));
    memcpy(image + 0xfff0, reset, sizeof(reset));
    g_assert_cmpint(write(fd, image, 64 * KiB), ==, 64 * KiB);
    close(fd);
}

static void run(const char *icount, Times times[CPUS])
{
    gint64 late = g_get_monotonic_time() + 300 * G_USEC_PER_SEC;
    QTestState *qts;

    qts = qtest_initf("-machine pc -accel tcg -cpu qemu64 -m 16M -smp %d "
                      "-nodefaults -global apic-common.vapic=off "
                      "-icount shift=0,sleep=off%s -bios %s",
                      CPUS, icount, bios);
    while (qtest_readl(qts, ENDED) != CPUS) {
        g_assert_cmpint(g_get_monotonic_time(), <, late);
        g_usleep(1000);
    }
    for (int i = 0; i < CPUS; i++) {
        times[i].begun = qtest_readl(qts, TIMES + 8 * i);
        times[i].ended = qtest_readl(qts, TIMES + 8 * i + 4);
    }
    qtest_quit(qts);
}

/* From the instant that the first one began to when the last one ended. */
static uint32_t span(const Times times[CPUS])
{
    uint32_t begun = UINT32_MAX, ended = 0;

    for (int i = 0; i < CPUS; i++) {
        begun = MIN(begun, times[i].begun);
        ended = MAX(ended, times[i].ended);
    }
    return ended - begun;
}

/* Each CPU has a core of its own, whatever the quantum is. */
static void test_scales(void)
{
    static const int quanta[] = { 100, 1000, 100000 };
    Times times[CPUS];

    for (int i = 0; i < ARRAY_SIZE(quanta); i++) {
        g_autofree char *icount = g_strdup_printf(",quantum=%d", quanta[i]);

        run(icount, times);
        for (int cpu = 0; cpu < CPUS; cpu++) {
            g_assert_cmpuint(times[cpu].ended - times[cpu].begun, ==, LOOP);
        }
        g_assert_cmpuint(span(times), <, LOOP + LOOP / 20);
    }
}

/* Without lockstep they share one. */
static void test_shared_clock(void)
{
    Times times[CPUS];

    run("", times);
    g_assert_cmpuint(span(times), >, 3 * LOOP);
}

static void test_speed(void)
{
    Times times[CPUS];

    run(",quantum=1000,speed=4", times);
    for (int cpu = 0; cpu < CPUS; cpu++) {
        uint32_t took = times[cpu].ended - times[cpu].begun;

        g_assert_cmpuint(took, >=, LOOP / 4);
        g_assert_cmpuint(took, <=, LOOP / 4 + 1);
    }
}

static void same_again(const char *icount)
{
    Times one[CPUS], other[CPUS];

    run(icount, one);
    run(icount, other);
    g_assert_cmpmem(one, sizeof(one), other, sizeof(other));
}

/* A run is a function of what goes into it, with each of the options. */
static void test_same_again(void)
{
    same_again(",quantum=1000,spin=4");
    same_again(",quantum=1000,schedule=1,changes=4");
}

/* Caches make the first accesses longer, and no others of this loop. */
static void test_caches(void)
{
#ifdef HOST_X86_64
    Times times[CPUS];

    run(",quantum=1000,memory=server", times);
    for (int cpu = 0; cpu < CPUS; cpu++) {
        uint32_t took = times[cpu].ended - times[cpu].begun;

        g_assert_cmpuint(took, >, LOOP);
        g_assert_cmpuint(took, <, LOOP + 10000);
    }
    same_again(",quantum=1000,memory=server");
#else
    g_test_skip("the model of caches needs an x86-64 host");
#endif
}

typedef struct Refused {
    const char *icount, *why;
} Refused;

static const Refused refused[] = {
    { "quantum=100", "quantum needs a fixed shift" },
    { "shift=auto,sleep=off,quantum=100", "quantum needs a fixed shift" },
    { "shift=0,quantum=100", "quantum needs sleep=off" },
    { "shift=0,sleep=off,quantum=0", "quantum must be a number from 1 to" },
    { "shift=0,sleep=off,speed=4", "need quantum" },
    { "shift=1,sleep=off,quantum=100,speed=2", "speed needs shift=0" },
    { "shift=0,sleep=off,quantum=100,spin=101", "spin must be a number" },
#ifdef HOST_X86_64
    { "shift=0,sleep=off,quantum=100,memory=none", "there is no memory" },
#endif
    { "shift=0,sleep=off,quantum=100,stall-every=10", "needs stall" },
    { "shift=0,sleep=off,quantum=100,changes=1", "need schedule" },
    { "shift=0,sleep=off,quantum=100,rr=record,rrfile=/dev/null",
      "quantum and rr are incompatible" },
};

static void test_refused(void)
{
    for (int i = 0; i < ARRAY_SIZE(refused); i++) {
        const char *argv[] = { getenv("QTEST_QEMU_BINARY"), "-M", "none",
                               "-display", "none", "-icount",
                               refused[i].icount, NULL };
        g_autofree char *said = NULL;
        int status;

        g_assert_true(g_spawn_sync(NULL, (char **)argv, NULL,
                                   G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL,
                                   NULL, &said, &status, NULL));
        g_assert_cmpint(status, !=, 0);
        g_assert_nonnull(strstr(said, refused[i].why));
    }
}

int main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    write_bios();

    qtest_add_func("/lockstep/scales", test_scales);
    qtest_add_func("/lockstep/shared-clock", test_shared_clock);
    qtest_add_func("/lockstep/speed", test_speed);
    qtest_add_func("/lockstep/same-again", test_same_again);
    qtest_add_func("/lockstep/caches", test_caches);
    qtest_add_func("/lockstep/refused", test_refused);

    status = g_test_run();
    unlink(bios);
    g_free(bios);
    return status;
}
