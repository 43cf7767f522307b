/*
 * Lockstep virtual time: vCPUs that go by priorities, which a seed draws.
 *
 * Probabilistic concurrency testing (Burckhardt and others, ASPLOS 2010) with
 * vCPUs for threads: of those that can go on, the one with the highest priority
 * does.  At a few instructions, drawn as well, the one that executes them gets
 * a priority below all that were drawn.  After a number of instructions all is
 * drawn anew.
 *
 * What is here is arithmetic: it knows no clock and no vCPU but by its number.
 * All of it belongs to the vCPU thread, once the options are read.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef LOCKSTEP_SCHEDULE_H
#define LOCKSTEP_SCHEDULE_H

#define MAX_CHANGES 8

/*
 * Let vCPUs go by priorities.  @period: ticks that they run with those of one
 * draw.  @changes: how many of these are the last before a change.
 */
void schedule_configure(uint64_t seed, int changes, int64_t period);

/* Do vCPUs go by priorities? */
bool schedule_on(void);

/* There are @count vCPUs now. */
void schedule_vcpus(int count);

/* The vCPU with the highest priority but @rank. */
int schedule_ranked(int rank);

/* Ticks that vCPUs may run until the next change. */
int64_t schedule_left(void);

/* @vcpu has run for @ran ticks.  Returns whether priorities have changed. */
bool schedule_ran(int vcpu, int64_t ran);

#endif /* LOCKSTEP_SCHEDULE_H */
