/*
 * Lockstep virtual time: vCPUs that go by priorities, which a seed draws.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"

#include "lockstep-schedule.h"

#define NEVER INT64_MAX

static struct {
    uint64_t random;
    int64_t period;     /* ticks that a draw is for; 0: no priorities */
    int changes;

    int64_t ran;        /* ticks since the draw */
    int64_t at[MAX_CHANGES]; /* of these, when a change comes */
    int *priority;      /* of each vCPU, no two alike; a change gives its own */
    int *ranked;        /* vCPUs, the one with the highest priority first */
    int count;
} schedule;

/* The next number of Steele's, Lea's and Flood's generator SplitMix64. */
static uint64_t random_number(void)
{
    uint64_t z = schedule.random += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static int by_priority(const void *a, const void *b)
{
    return schedule.priority[*(const int *)b] -
           schedule.priority[*(const int *)a];
}

static void rank(void)
{
    int i;

    qsort(schedule.ranked, schedule.count, sizeof(int), by_priority);
    for (i = 1; i < schedule.count; i++) {
        assert(schedule.priority[schedule.ranked[i]] <
               schedule.priority[schedule.ranked[i - 1]]);
    }
}

/* Priorities above those that the changes give, and when these come. */
static void draw(void)
{
    int i;

    for (i = 0; i < schedule.count; i++) {
        int other = random_number() % (i + 1);

        schedule.priority[i] = schedule.priority[other];
        schedule.priority[other] = schedule.changes + i;
        schedule.ranked[i] = i;
    }
    for (i = 0; i < schedule.changes; i++) {
        schedule.at[i] = 1 + random_number() % schedule.period;
        assert(schedule.at[i] > 0 && schedule.at[i] <= schedule.period);
    }
    schedule.ran = 0;
    rank();
}

void schedule_configure(uint64_t seed, int changes, int64_t period)
{
    assert(changes >= 0 && changes <= MAX_CHANGES && period > 0);
    schedule.random = seed;
    schedule.changes = changes;
    schedule.period = period;
}

bool schedule_on(void)
{
    return schedule.period;
}

void schedule_vcpus(int count)
{
    if (!schedule_on() || count == schedule.count) {
        return;
    }
    schedule.count = count;
    schedule.priority = g_renew(int, schedule.priority, count);
    schedule.ranked = g_renew(int, schedule.ranked, count);
    draw();
}

int schedule_ranked(int rank)
{
    assert(rank >= 0 && rank < schedule.count);
    return schedule.ranked[rank];
}

int64_t schedule_left(void)
{
    int64_t next = schedule.period;
    int i;

    for (i = 0; i < schedule.changes; i++) {
        next = MIN(next, schedule.at[i]);
    }
    assert(next > schedule.ran);
    return next - schedule.ran;
}

bool schedule_ran(int vcpu, int64_t ran)
{
    bool changed = false;
    int i;

    assert(vcpu >= 0 && vcpu < schedule.count && ran >= 0);
    schedule.ran += ran;
    for (i = 0; i < schedule.changes; i++) {
        if (schedule.at[i] <= schedule.ran) {
            schedule.at[i] = NEVER;
            schedule.priority[vcpu] = i;
            changed = true;
        }
    }
    if (schedule.ran >= schedule.period) {
        draw();
        return true;
    }
    if (changed) {
        rank();
    }
    return changed;
}
