/*
 * Lockstep virtual time: the hooks that the rest of TCG calls.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef TCG_ACCEL_OPS_LOCKSTEP_H
#define TCG_ACCEL_OPS_LOCKSTEP_H

/*
 * Read lockstep's options from -icount.  @shift is the fixed shift, or -1.
 * Returns false with @errp set when the options contradict each other.
 */
bool lockstep_configure(QemuOpts *opts, long shift, bool sleep, Error **errp);

/* QEMU_CLOCK_VIRTUAL as the calling thread sees it; any thread. */
int64_t lockstep_get_clock(void);

/* The same in units of 1/speed ns. */
int64_t lockstep_get_raw(void);

/*
 * The next block of code has @size instructions, more than are left of @cpu's
 * slice, but some are left.  Returns true if it may run whole nevertheless.
 */
bool lockstep_lend(CPUState *cpu, int size);

/* The thread that serves every vCPU, and its AccelOpsClass methods. */
void *lockstep_cpu_thread_fn(void *arg);
void lockstep_kick_vcpu_thread(CPUState *cpu);
void lockstep_handle_interrupt(CPUState *cpu, int mask);

#endif /* TCG_ACCEL_OPS_LOCKSTEP_H */
