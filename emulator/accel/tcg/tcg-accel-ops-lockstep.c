/*
 * Lockstep virtual time: N modelled cores on one host thread.
 *
 * With -icount shift=S,sleep=off,quantum=Q[,speed=N][,spin=P] time passes in
 * rounds.
 * In a round every vCPU that is not halted runs up to Q instructions (its
 * slice), all from the same instant; then the clock moves on by the longest
 * slice.  When every vCPU is halted, the clock jumps to the next timer.  What
 * the guest sees is a function of what it executes and of nothing else.
 *
 * Time is counted in ticks of 1/speed ns; an instruction lasts 2^S ticks.
 * There are two views of it:
 *  - timers_state.qemu_icount, the instant at which the current round began.
 *    Written by the vCPU thread only, between rounds; it never goes back.
 *    Every other thread reads this one, or lockstep.seen if that is later: an
 *    instant that a vCPU has seen is over for everybody else too.
 *  - lockstep.now, what the vCPU thread sees: the instant that the vCPU in
 *    turn has reached.  It starts again from the round's base for each vCPU.
 *
 * Timers of QEMU_CLOCK_VIRTUAL run in the vCPU thread, under the BQL, and the
 * clock reads exactly their expiry time when they do.  A round ends at the
 * next expiry.  If a vCPU arms a timer that lies before the round's end, the
 * round is cut short there; if an earlier vCPU has passed that instant
 * already, the timer fires when the arming vCPU gets to it, running or halted.
 * So a timer that interrupts the vCPU which armed it is always exact.
 *
 * A lock that is held when its holder's slice ends stays held for the whole
 * slice of everyone else, and one that is taken and released within a slice is
 * never seen held.  Both errors vanish with short rounds, and both show in that
 * somebody spins.  So rounds last only P instructions from a PAUSE on, until
 * nobody has executed one for a while.
 *
 * Nothing here waits for the main loop, except that a request to stop (pause,
 * reset, debugger) freezes time at the end of the round until it was served.
 *
 * Everything static belongs to the vCPU thread; the BQL is held where a
 * comment says so.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/guest-random.h"
#include "qemu/main-loop.h"
#include "qemu/option.h"
#include "qemu/rcu.h"
#include "qemu/seqlock.h"
#include "qemu/timer.h"
#include "exec/cpu-common.h"
#include "exec/gdbstub.h"
#include "gdbstub/enums.h"
#include "hw/core/cpu.h"
#include "system/cpu-timers.h"
#include "system/cpu-timers-internal.h"
#include "system/cpus.h"
#include "system/runstate.h"
#include "tcg/startup.h"

#include "tcg-accel-ops.h"
#include "tcg-accel-ops-icount.h"
#include "tcg-accel-ops-lockstep.h"

#define MAX_QUANTUM 1000000
#define MAX_SPEED 100
#define NEVER INT64_MAX

/* Instructions a vCPU may run in one go while all others are halted. */
#define ALONE 1000000

/* Instructions per round while vCPUs spin, unless "spin" says otherwise. */
#define SPIN 10

/* Instructions since the last PAUSE until rounds are long again. */
#define CALM 5000

int64_t icount_quantum;

static struct {
    /* Fixed by the command line. */
    int64_t speed;      /* ticks per nanosecond */
    int64_t slice;      /* ticks per round */
    int64_t spin_slice; /* the same while vCPUs spin */
    int shift;          /* an instruction lasts 1 << shift ticks */

    int64_t now;        /* while no vCPU runs: the vCPU thread's clock */
    int64_t seen;       /* the latest instant that a running vCPU has read */
    int64_t end;        /* while a vCPU runs: when its budget is used up */
    int64_t due;        /* first timer, as far as known; maybe too early */
    int64_t calm;       /* rounds are short until then: a vCPU has spun */
    bool spun;          /* the running vCPU has executed PAUSE */
    bool woken;         /* the running vCPU has interrupted another one */
    bool frozen;        /* a vCPU asked to stop, the main loop will answer */
} lockstep;

/* Options */

static bool parse_count(QemuOpts *opts, const char *name, int64_t max,
                        int64_t *value, Error **errp)
{
    const char *text = qemu_opt_get(opts, name);

    if (text && (qemu_strtoi64(text, NULL, 0, value) < 0 ||
                 *value < 1 || *value > max)) {
        error_setg(errp, "icount: %s must be a number from 1 to %" PRId64
                   ", not '%s'", name, max, text);
        return false;
    }
    return true;
}

bool lockstep_configure(QemuOpts *opts, long shift, bool sleep, Error **errp)
{
    int64_t quantum = 0;
    int64_t speed = 1;
    int64_t spin;

    if (!parse_count(opts, "quantum", MAX_QUANTUM, &quantum, errp) ||
        !parse_count(opts, "speed", MAX_SPEED, &speed, errp)) {
        return false;
    }
    if (!quantum) {
        if (qemu_opt_get(opts, "speed") || qemu_opt_get(opts, "spin")) {
            error_setg(errp, "icount: speed and spin need quantum");
            return false;
        }
        return true;
    }
    spin = MIN(SPIN, quantum);
    if (!parse_count(opts, "spin", quantum, &spin, errp)) {
        return false;
    }
    if (qemu_opt_get(opts, "rr")) {
        error_setg(errp, "icount: quantum and rr are incompatible");
        return false;
    }
    if (shift < 0) {
        error_setg(errp, "icount: quantum needs a fixed shift");
        return false;
    }
    if (sleep) {
        error_setg(errp, "icount: quantum needs sleep=off");
        return false;
    }
    if (speed > 1 && shift > 0) {
        error_setg(errp, "icount: speed needs shift=0");
        return false;
    }
    lockstep.speed = speed;
    lockstep.shift = shift;
    lockstep.slice = quantum << shift;
    lockstep.spin_slice = spin << shift;
    icount_quantum = quantum;
    return true;
}

/* The clock */

static int64_t instructions_left(CPUState *cpu)
{
    return cpu->neg.icount_decr.u16.low + cpu->icount_extra;
}

int64_t lockstep_get_raw(void)
{
    CPUState *cpu = current_cpu;
    int64_t now;

    if (!qemu_in_vcpu_thread()) {
        return MAX(qatomic_read_i64(&timers_state.qemu_icount),
                   qatomic_read_i64(&lockstep.seen));
    }
    if (!cpu->running) {
        return lockstep.now;
    }
    if (!cpu->neg.can_do_io) {
        error_report("Bad icount read");
        exit(1);
    }
    now = lockstep.end - (instructions_left(cpu) << lockstep.shift);
    if (now > lockstep.seen) {
        qatomic_set_i64(&lockstep.seen, now);
    }
    return now;
}

int64_t lockstep_get_clock(void)
{
    return lockstep_get_raw() / lockstep.speed;
}

/* Timers */

/* Find the first timer; counted from lockstep.now if it has expired. */
static void find_due(void)
{
    int64_t delta = timerlist_deadline_ns(main_loop_tlg.tl[QEMU_CLOCK_VIRTUAL]);

    if (delta < 0) {
        lockstep.due = NEVER;
    } else if (delta == 0) {
        lockstep.due = lockstep.now;
    } else {
        lockstep.due = (lockstep_get_clock() + delta) * lockstep.speed;
    }
}

/*
 * Run, in order, the timers from lockstep.now up to and including @until,
 * each with the clock at its expiry.
 */
static void run_timers(int64_t until)
{
    for (find_due(); lockstep.due <= until; find_due()) {
        lockstep.now = lockstep.due;
        bql_lock();
        qemu_clock_run_timers(QEMU_CLOCK_VIRTUAL);
        /* Other lists belong to other threads, all we can do is wake them. */
        if (qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL,
                                       QEMU_TIMER_ATTR_ALL) == 0) {
            qemu_clock_notify(QEMU_CLOCK_VIRTUAL);
        }
        bql_unlock();
    }
    lockstep.now = until;
}

/* One vCPU's turn */

void icount_spin_hint(void)
{
    lockstep.spun = true;
}

static void run_queued_work(CPUState *cpu)
{
    if (unlikely(!cpu_work_list_empty(cpu))) {
        bql_lock();
        process_queued_cpu_work(cpu);
        bql_unlock();
    }
}

/* Run @cpu until lockstep.now is @until, or something ends its run earlier. */
static int run_until(CPUState *cpu, int64_t until)
{
    int64_t budget = DIV_ROUND_UP(until - lockstep.now, 1 << lockstep.shift);
    int ret;

    cpu->icount_budget = budget;
    cpu->neg.icount_decr.u16.low = MIN(0xffff, budget);
    cpu->icount_extra = budget - cpu->neg.icount_decr.u16.low;
    lockstep.end = lockstep.now + (budget << lockstep.shift);

    ret = tcg_cpu_exec(cpu);

    lockstep.now = lockstep.end - (instructions_left(cpu) << lockstep.shift);
    cpu->neg.icount_decr.u16.low = 0;
    cpu->icount_extra = 0;
    cpu->icount_budget = 0;
    return ret;
}

/* A debugger that steps @cpu may want its timers held. */
static void hold_timers_while_stepping(CPUState *cpu)
{
    if (unlikely(cpu->singlestep_enabled & SSTEP_NOTIMER)) {
        bql_lock();
        qemu_clock_enable(QEMU_CLOCK_VIRTUAL, false);
        bql_unlock();
        find_due();
    }
}

static bool can_run(CPUState *cpu)
{
    return !cpu->stopped && (!cpu->halted || cpu_has_work(cpu));
}

/*
 * Run @cpu from lockstep.now to @limit.  @far is how far others have got in
 * this round.  Returns the limit for those who come after: a timer armed
 * meanwhile cuts the round short, but not to less than @far.
 */
static int64_t run_slice(CPUState *cpu, int64_t limit, int64_t far, bool alone)
{
    int ret = EXCP_INTERRUPT;

    current_cpu = cpu;
    lockstep.woken = false;
    hold_timers_while_stepping(cpu);

    while (lockstep.now < limit && ret != EXCP_DEBUG) {
        if (unlikely(lockstep.due <= lockstep.now)) {
            run_timers(lockstep.now);
        }
        if (lockstep.due >= far) {
            limit = MIN(limit, lockstep.due);
        }
        if (!can_run(cpu)) {
            if (lockstep.due >= limit) {
                break;
            }
            /* Halted, but maybe for less than the round. */
            run_timers(lockstep.due);
            continue;
        }
        run_queued_work(cpu);
        ret = run_until(cpu, MIN(limit, lockstep.due));
        if (lockstep.now < limit) {
            /* Whatever ended the run may have armed a timer. */
            find_due();
            if (alone && lockstep.woken) {
                break;
            }
        }
    }
    if (lockstep.spun) {
        lockstep.spun = false;
        lockstep.calm = lockstep.now + (CALM << lockstep.shift);
    }
    if (unlikely(ret == EXCP_DEBUG)) {
        bql_lock();
        cpu_handle_guest_debug(cpu);
        bql_unlock();
        lockstep.frozen = true;
    }
    return limit;
}

/* How long a round may last that begins at @base with @busy vCPUs. */
static int64_t round_length(int64_t base, int busy)
{
    if (busy == 1) {
        return MAX(lockstep.slice, ALONE << lockstep.shift);
    }
    return base < lockstep.calm ? lockstep.spin_slice : lockstep.slice;
}

/* Returns false if there is nothing to do: no vCPU to run and no timer. */
static bool run_round(void)
{
    int64_t base = lockstep.now;
    int64_t far = base;
    int64_t limit;
    int busy = 0;
    CPUState *cpu;

    CPU_FOREACH(cpu) {
        busy += can_run(cpu);
    }
    limit = base + round_length(base, busy);
    if (busy) {
        CPU_FOREACH(cpu) {
            if (can_run(cpu)) {
                lockstep.now = base;
                limit = run_slice(cpu, limit, far, busy == 1);
                far = MAX(far, lockstep.now);
                /* Whom it woke begins when that was, in the next round. */
                if (busy == 1) {
                    break;
                }
            }
        }
    } else {
        find_due();
        far = lockstep.due;
    }
    if (far == NEVER) {
        return false;
    }
    lockstep.now = base;
    run_timers(far);
    qatomic_set_i64(&timers_state.qemu_icount, far);
    return true;
}

/* The main loop's requests, served between rounds */

static bool request_pending(void)
{
    CPUState *cpu;

    CPU_FOREACH(cpu) {
        if (unlikely(qatomic_read(&cpu->stop) || !cpu_work_list_empty(cpu))) {
            return true;
        }
    }
    return lockstep.frozen;
}

/*
 * Serve what is pending, then sleep for as long as no vCPU may run.
 *
 * A vCPU that stops itself asks for a reset, a suspend or a debugger; time
 * stands still until the main loop answers by stopping every vCPU.
 */
static void serve_main_loop(void)
{
    BQL_LOCK_GUARD();

    for (;;) {
        int vcpus = 0;
        int asked = 0;
        int stopped = 0;
        CPUState *cpu;

        CPU_FOREACH(cpu) {
            current_cpu = cpu;
            vcpus++;
            asked += cpu->stop;
            qemu_wait_io_event_common(cpu);
            stopped += cpu->stopped;
        }
        if (asked) {
            lockstep.frozen = asked < vcpus;
        }
        if (!lockstep.frozen && stopped < vcpus) {
            find_due();
            if (!all_cpu_threads_idle() ||
                (runstate_is_running() && lockstep.due != NEVER)) {
                break;
            }
        }
        qemu_cond_wait_bql(first_cpu->halt_cond);
    }
    /* Loading a snapshot sets the clock. */
    lockstep.now = timers_state.qemu_icount;
    qatomic_set_i64(&lockstep.seen, lockstep.now);
}

void lockstep_kick_vcpu_thread(CPUState *cpu)
{
    /*
     * Other threads' requests are seen at the end of the round.  The running
     * vCPU's own have to be seen at once: it may have armed a timer.
     */
    if (qemu_in_vcpu_thread() && current_cpu->running) {
        cpu_exit(current_cpu);
    }
}

void lockstep_handle_interrupt(CPUState *cpu, int mask)
{
    icount_handle_interrupt(cpu, mask);
    if (qemu_in_vcpu_thread() && cpu != current_cpu && !lockstep.woken) {
        lockstep.woken = true;
        lockstep_kick_vcpu_thread(cpu);
    }
}

void *lockstep_cpu_thread_fn(void *arg)
{
    CPUState *cpu = arg;

    rcu_register_thread();
    tcg_register_thread();

    bql_lock();
    qemu_thread_get_self(cpu->thread);
    cpu->thread_id = qemu_get_thread_id();
    cpu->neg.can_do_io = true;
    current_cpu = cpu;
    cpu_thread_signal_created(cpu);
    qemu_guest_random_seed_thread_part2(cpu->random_seed);
    bql_unlock();

    serve_main_loop();
    for (;;) {
        if (unlikely(request_pending()) || !run_round()) {
            serve_main_loop();
        }
    }
    return NULL;
}
