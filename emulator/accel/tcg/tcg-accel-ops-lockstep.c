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
 *    instant that a vCPU has seen is over for all others too.
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
 * Where nothing but its length ends a slice, the vCPU runs on to the end of the
 * block of translated code that it is in, and has that much less of the next
 * round: so blocks are not translated again for each place to cut them.
 *
 * A lock that is held when its holder's slice ends stays held for the whole
 * slice of all others, and one that is taken and released within a slice is
 * never seen held.  Both errors vanish with short rounds, and both show in that
 * a vCPU still spins when its slice ends: nothing that another vCPU does can
 * end its wait earlier.  Rounds are short from then on, P instructions or a
 * share of the time that the shortest wait has lasted, until no vCPU has waited
 * for a while.  A vCPU that reads the clock in between waits for time to pass.
 *
 * With a model of memory (lockstep-memory.c) an access may take longer than its
 * instruction; that much of the slice is gone.  What does not fit in before the
 * next timer the vCPU owes: it stands still for it afterwards.  The vCPU that
 * is furthest behind has its turn then; and a turn is cut when the vCPU wants
 * what others have just had, and goes on when those have caught up.
 *
 * With stall=L a vCPU stands still now and then, wherever it is, for up to L ns,
 * as when a host takes its processor away: so that what others may do between
 * two instructions of it is seen to happen.
 *
 * With schedule=SEED (lockstep-schedule.c) only the vCPU with the highest
 * priority has a turn, and those above it that spin; the others stand still.
 * The round ends with that turn: where the vCPU halts, or interrupts another
 * one, which may have a higher priority.
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

#include "lockstep-memory.h"
#include "lockstep-schedule.h"
#include "tcg-accel-ops.h"
#include "tcg-accel-ops-icount.h"
#include "tcg-accel-ops-lockstep.h"

#define MAX_QUANTUM 1000000
#define MAX_SPEED 100
#define NEVER INT64_MAX

/* Instructions a vCPU may run in one go while all others are halted. */
#define ALONE 1000000

/* Instructions per round while vCPUs spin, unless "spin" says otherwise. */
#define SPIN 4

/* Nanoseconds that PAUSE lasts: 140 cycles on servers since 2017, at 3.5 GHz. */
#define PAUSE 40

/* A vCPU whose last PAUSE is no more instructions ago spins. */
#define LOOP 100

/* While vCPUs spin a round lasts this part of the shortest wait. */
#define PART 32

/* Instructions since the last wait until rounds are long again. */
#define CALM 10000

/* Nanoseconds; a stall is of each of that many magnitudes equally often. */
#define MAX_STALL 1000000000
#define STALL_EVERY 100000
#define MAGNITUDES 8

/*
 * Instructions that vCPUs run with the priorities of one draw.  A vCPU that
 * spins without PAUSE holds the one that it waits for until a draw puts that
 * one first: if 63 wait for one, for 64 periods on average.
 */
#define MAX_PERIOD 10000000
#define PERIOD 1000000

int64_t icount_quantum;

typedef struct VCpu {
    CPUState *cpu;
    int64_t at;         /* the instant that it has reached */
    int64_t paused;     /* when it last executed PAUSE, as far as it counts */
    int64_t waits;      /* since when it spins; negative: it does not */
    int64_t owes;       /* for memory or a stall: ticks to stand still */
    int64_t runs;       /* ticks until it stalls */
    bool looked;        /* it has read the clock since PAUSE */
    bool turns;         /* its turn was cut; with a model of memory: it has
                           another one in this round */
} VCpu;

static struct {
    /* Fixed by the command line. */
    int64_t speed;      /* ticks per nanosecond */
    int64_t slice;      /* ticks per round */
    int64_t spin_slice; /* the same while vCPUs spin */
    int64_t pause;      /* ticks that PAUSE lasts beyond an instruction */
    int64_t stall;      /* ticks that the longest stall lasts; 0: no stalls */
    int64_t stall_every; /* ticks that a vCPU runs between two, in the mean */
    int shift;          /* an instruction lasts 1 << shift ticks */

    VCpu *vcpus;        /* in the order of their turns */
    int count;
    VCpu *turn;         /* the one that has its turn */
    int64_t length;     /* how long this round may last */

    int64_t now;        /* while no vCPU runs: the vCPU thread's clock */
    int64_t seen;       /* the latest instant that a running vCPU has read */
    int64_t end;        /* while a vCPU runs: when its budget is used up */
    int64_t stalls;     /* while a vCPU runs: when it stalls, or may yield */
    int64_t due;        /* first timer, as far as known; maybe too early */
    int64_t calm;       /* rounds are short until then: a vCPU has spun */
    bool armed;         /* a timer may be earlier than "due" says */
    bool woken;         /* the running vCPU has interrupted another one */
    bool asked;         /* the main loop wants something; atomic */
    bool frozen;        /* a vCPU asked to stop, the main loop will answer */
} lockstep;

static int64_t ticks(int64_t instructions)
{
    return instructions << lockstep.shift;
}

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

/* May the options stand together?  A line for each rule, and what to say. */
static bool check_options(QemuOpts *opts, long shift, bool sleep,
                          int64_t quantum, int64_t speed, int64_t stall,
                          Error **errp)
{
    bool memory = qemu_opt_get(opts, "memory");
    bool schedule = qemu_opt_get(opts, "schedule");
    bool part = qemu_opt_get(opts, "speed") || qemu_opt_get(opts, "spin") ||
                memory || stall || schedule;
    const struct {
        bool wrong;
        const char *why;
    } checks[] = {
        { !quantum && part,
          "speed, spin, memory, stall and schedule need quantum" },
        { qemu_opt_get(opts, "stall-every") && !stall,
          "stall-every needs stall" },
        { qemu_opt_get(opts, "sharing") && !memory, "sharing needs memory" },
        { !schedule && (qemu_opt_get(opts, "changes") ||
                        qemu_opt_get(opts, "period")),
          "changes and period need schedule" },
        { schedule && (memory || stall),
          "schedule and memory or stall are incompatible" },
        { quantum && qemu_opt_get(opts, "rr"),
          "quantum and rr are incompatible" },
        { quantum && shift < 0, "quantum needs a fixed shift" },
        { quantum && sleep, "quantum needs sleep=off" },
        { speed > 1 && shift > 0, "speed needs shift=0" },
        { memory && shift > 0, "memory needs shift=0" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        if (checks[i].wrong) {
            error_setg(errp, "icount: %s", checks[i].why);
            return false;
        }
    }
    return true;
}

static bool configure_schedule(QemuOpts *opts, Error **errp)
{
    int64_t seed = 0;
    int64_t changes = 0;
    int64_t period = PERIOD;

    if (!parse_count(opts, "schedule", INT64_MAX, &seed, errp) ||
        !parse_count(opts, "changes", MAX_CHANGES, &changes, errp) ||
        !parse_count(opts, "period", MAX_PERIOD, &period, errp)) {
        return false;
    }
    if (seed) {
        schedule_configure(seed, changes, period << lockstep.shift);
    }
    return true;
}

bool lockstep_configure(QemuOpts *opts, long shift, bool sleep, Error **errp)
{
    int64_t quantum = 0;
    int64_t speed = 1;
    int64_t stall = 0;
    int64_t every = STALL_EVERY;
    int64_t spin;

    if (!parse_count(opts, "quantum", MAX_QUANTUM, &quantum, errp) ||
        !parse_count(opts, "speed", MAX_SPEED, &speed, errp) ||
        !parse_count(opts, "stall", MAX_STALL, &stall, errp) ||
        !parse_count(opts, "stall-every", MAX_STALL, &every, errp) ||
        !check_options(opts, shift, sleep, quantum, speed, stall, errp)) {
        return false;
    }
    if (!quantum) {
        return true;
    }
    spin = MIN(SPIN, quantum);
    if (!parse_count(opts, "spin", quantum, &spin, errp) ||
        !memory_configure(opts, speed, errp)) {
        return false;
    }
    lockstep.speed = speed;
    lockstep.shift = shift;
    lockstep.slice = quantum << shift;
    lockstep.spin_slice = spin << shift;
    lockstep.pause = MAX(PAUSE * speed - (1 << shift), 0);
    lockstep.stall = stall * speed;
    lockstep.stall_every = every * speed;
    assert(lockstep.spin_slice > 0 && lockstep.spin_slice <= lockstep.slice);
    icount_quantum = quantum;
    return configure_schedule(opts, errp);
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
    assert(lockstep.turn->cpu == cpu);
    now = lockstep.end - ticks(instructions_left(cpu));
    lockstep.turn->looked = true;
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

/* Find the first timer.  All before the round's base have been served. */
static void find_due(void)
{
    int64_t now = lockstep.now;
    int64_t delta;

    lockstep.now = timers_state.qemu_icount;
    delta = timerlist_deadline_ns(main_loop_tlg.tl[QEMU_CLOCK_VIRTUAL]);
    if (delta < 0) {
        lockstep.due = NEVER;
    } else if (delta == 0) {
        lockstep.due = lockstep.now;
    } else {
        lockstep.due = (lockstep_get_clock() + delta) * lockstep.speed;
    }
    assert(lockstep.due >= lockstep.now);
    lockstep.armed = false;
    lockstep.now = now;
}

static void run_expired_timers(void)
{
    BQL_LOCK_GUARD();

    qemu_clock_run_timers(QEMU_CLOCK_VIRTUAL);
    /* Other lists belong to other threads, all we can do is wake them. */
    if (qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL,
                                   QEMU_TIMER_ATTR_ALL) == 0) {
        qemu_clock_notify(QEMU_CLOCK_VIRTUAL);
    }
    if (current_cpu->stop) {
        qatomic_set(&lockstep.asked, true);
    }
}

/*
 * Run, in order, the timers from lockstep.now up to and including @until,
 * each with the clock at its expiry.
 */
static void run_timers(int64_t until)
{
    if (lockstep.armed) {
        find_due();
    }
    while (lockstep.due <= until) {
        lockstep.now = lockstep.due;
        run_expired_timers();
        find_due();
    }
    lockstep.now = until;
}

/* One vCPU's turn */

/* Give @cpu @instructions to run. */
static void set_budget(CPUState *cpu, int64_t instructions)
{
    assert(instructions >= 0);
    cpu->neg.icount_decr.u16.low = MIN(0xffff, instructions);
    cpu->icount_extra = instructions - cpu->neg.icount_decr.u16.low;
}

/*
 * Let the time pass that PAUSE lasts, until the next timer at most; the block
 * ends behind it.
 *
 * A vCPU that waits for another one looks at memory again and again.  If it
 * reads the clock in between, it waits for time to pass, and needs no other.
 */
void icount_spin_hint(CPUState *cpu)
{
    VCpu *vcpu = lockstep.turn;
    int64_t left = instructions_left(cpu);
    int64_t used = MIN(left, lockstep.pause >> lockstep.shift);

    assert(vcpu->cpu == cpu);
    set_budget(cpu, left - used);
    if (lockstep.end < lockstep.due) {
        lockstep.end = MIN(lockstep.end + lockstep.pause - ticks(used),
                           lockstep.due);
    }
    vcpu->paused = vcpu->looked ? -NEVER
                                : lockstep.end - ticks(left - used);
    vcpu->looked = false;
}

/*
 * The next block has @size instructions, more than are left of @cpu's budget.
 * Lend it the rest, so that the block is not cut: but never more than a slice,
 * and never beyond a timer, a stall or a change of priorities.
 */
bool lockstep_lend(CPUState *cpu, int size)
{
    int64_t lent = ticks(size - cpu->icount_budget);

    if (ticks(size) > lockstep.length ||
        lockstep.end + lent > MIN(lockstep.due, lockstep.stalls)) {
        return false;
    }
    lockstep.end += lent;
    cpu->icount_budget = size;
    set_budget(cpu, size);
    return true;
}

static int64_t instant(CPUState *cpu)
{
    return lockstep.end - ticks(instructions_left(cpu));
}

/*
 * An access to memory of @cpu, which runs, takes @cost ticks.  If others are
 * waiting for the same (@cut), its turn ends with this block.
 *
 * The counter's lower half must not grow: if the instruction faults, what the
 * block has not executed is added to it.
 */
static void charge(CPUState *cpu, int64_t cost, bool cut)
{
    int64_t extra = MIN(cost, cpu->icount_extra);
    int64_t low = MIN(cost - extra, cpu->neg.icount_decr.u16.low);
    int64_t room = MAX(lockstep.due - lockstep.end, 0);
    bool missed = cost && cut;

    assert(lockstep.turn->cpu == cpu && cost >= 0);
    /* How long ago PAUSE was is counted in instructions. */
    lockstep.turn->paused += cost;
    cpu->icount_extra -= extra;
    cpu->neg.icount_decr.u16.low -= low;
    cost -= extra + low;
    if (cost) {
        lockstep.end += MIN(cost, room);
        lockstep.turn->owes += cost - MIN(cost, room);
    }
    if (cut) {
        lockstep.end -= instructions_left(cpu);
        cpu->icount_extra = 0;
        cpu->neg.icount_decr.u16.low = 0;
        lockstep.turn->turns = true;
    }
    if (missed) {
        /* What it may have waited for has come; spinning on, it waits anew. */
        lockstep.turn->waits = -1;
    }
}

static const MemoryClock memory_clock = {
    .instant = instant,
    .charge = charge,
};

/* Stalls */

static int64_t random_below(int64_t bound)
{
    uint64_t number;

    qemu_guest_getrandom_nofail(&number, sizeof(number));
    return number % bound;
}

static void plan_stall(VCpu *vcpu)
{
    /* Half of NEVER, so that an instant may be added to it. */
    vcpu->runs = lockstep.stall ? 1 + random_below(2 * lockstep.stall_every)
                                : NEVER / 2;
    assert(vcpu->runs > 0);
}

/* @vcpu has run for @ran ticks.  Does it stand still now? */
static void maybe_stall(VCpu *vcpu, int64_t ran)
{
    assert(ran >= 0 && lockstep.stall);
    vcpu->runs -= ran;
    if (vcpu->runs <= 0) {
        vcpu->owes += 1 + random_below(MAX(lockstep.stall >>
                                           random_below(MAGNITUDES), 1));
        plan_stall(vcpu);
    }
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

    assert(budget > 0);
    cpu->icount_budget = budget;
    set_budget(cpu, budget);
    lockstep.end = lockstep.now + ticks(budget);

    /* As cpu_exec_start() does, but there is no other thread to be told. */
    cpu->running = true;
    ret = cpu_exec(cpu);
    cpu->running = false;

    lockstep.now = lockstep.end - ticks(instructions_left(cpu));
    cpu->icount_budget = 0;
    set_budget(cpu, 0);
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
    return !cpu->stopped &&
           (!cpu->halted || (cpu->interrupt_request && cpu_has_work(cpu)));
}

/* Does the vCPU that has had its turn wait for another one? */
static void see_if_it_waits(VCpu *vcpu)
{
    if (vcpu->cpu->halted || vcpu->paused < vcpu->at - ticks(LOOP)) {
        vcpu->waits = -1;
    } else if (vcpu->waits < 0) {
        vcpu->waits = vcpu->at;
    }
}

/* @vcpu owes time: it stands still until @limit, or a timer, at most. */
static void stand_still(VCpu *vcpu, int64_t limit)
{
    int64_t stall = MIN(vcpu->owes,
                        MIN(limit, lockstep.due) - lockstep.now);

    assert(stall > 0);
    vcpu->owes -= stall;
    lockstep.now += stall;
}

/*
 * Run @vcpu until @limit, a timer, its next stall or the next change of
 * priorities; what ended its run.
 */
static int run_until_stall(VCpu *vcpu, int64_t limit)
{
    int64_t began = lockstep.now;
    int ret;

    run_queued_work(vcpu->cpu);
    lockstep.stalls = began + vcpu->runs;
    if (unlikely(schedule_on())) {
        lockstep.stalls = began + MIN(vcpu->runs, schedule_left());
    }
    ret = run_until(vcpu->cpu, MIN(limit, MIN(lockstep.due, lockstep.stalls)));
    assert(lockstep.now >= began);
    if (unlikely(lockstep.stall)) {
        maybe_stall(vcpu, lockstep.now - began);
    }
    if (unlikely(schedule_on())) {
        vcpu->turns |= schedule_ran(vcpu - lockstep.vcpus,
                                    lockstep.now - began);
    }
    return ret;
}

/* The turn of @vcpu, which got as far as lockstep.now, is over. */
static void end_turn(VCpu *vcpu, int ret)
{
    assert(vcpu == lockstep.turn && vcpu->owes >= 0);
    vcpu->at = lockstep.now;
    see_if_it_waits(vcpu);
    if (unlikely(vcpu->cpu->stop)) {
        qatomic_set(&lockstep.asked, true);
    }
    if (unlikely(ret == EXCP_DEBUG)) {
        bql_lock();
        cpu_handle_guest_debug(vcpu->cpu);
        bql_unlock();
        lockstep.frozen = true;
    }
}

/*
 * Run @vcpu from lockstep.now to @limit.  @far is how far others have got in
 * this round.  Returns the limit for those that come after: a timer armed
 * meanwhile cuts the round short, but not to less than @far.
 */
static int64_t run_slice(VCpu *vcpu, int64_t limit, int64_t far, bool alone)
{
    CPUState *cpu = vcpu->cpu;
    int ret = EXCP_INTERRUPT;

    current_cpu = cpu;
    lockstep.turn = vcpu;
    lockstep.woken = false;
    vcpu->turns = false;
    hold_timers_while_stepping(cpu);

    while (ret != EXCP_DEBUG) {
        if (lockstep.armed) {
            find_due();
        }
        if (lockstep.due >= far) {
            limit = MIN(limit, lockstep.due);
        }
        if (lockstep.now >= limit) {
            break;
        }
        if (unlikely(lockstep.due <= lockstep.now)) {
            run_timers(lockstep.now);
        }
        if (unlikely(vcpu->owes)) {
            stand_still(vcpu, limit);
        } else if (can_run(cpu)) {
            ret = run_until_stall(vcpu, limit);
            if ((alone && lockstep.woken) || vcpu->turns) {
                break;
            }
        } else if (lockstep.due < limit) {
            /* Halted, but maybe for less than the round. */
            run_timers(lockstep.due);
        } else {
            break;
        }
    }
    end_turn(vcpu, ret);
    return limit;
}

/*
 * How long a round may last that begins at @base with @busy vCPUs, the last of
 * which to begin to wait did so at @waits (negative: none waits).  A vCPU that
 * waits must not do so for much longer than it has to, and one that might have
 * to wait must meet the lock held.
 */
static int64_t round_length(int64_t base, int busy, int64_t waits)
{
    if (busy == 1) {
        return MAX(lockstep.slice, ticks(ALONE));
    }
    if (waits >= 0) {
        lockstep.calm = base + ticks(CALM);
        return MIN(MAX((base - waits) / PART, lockstep.spin_slice),
                   lockstep.slice);
    }
    if (base < lockstep.calm) {
        return MAX(MIN(lockstep.pause + ticks(1), lockstep.slice),
                   lockstep.spin_slice);
    }
    return lockstep.slice;
}

/*
 * Of the vCPUs with a turn in the round that begins at @base, the one furthest
 * behind @limit.  NULL: none is behind.
 */
static VCpu *furthest_behind(int64_t base, int64_t limit)
{
    VCpu *behind = NULL;
    VCpu *vcpu;

    for (vcpu = lockstep.vcpus; vcpu < lockstep.vcpus + lockstep.count;
         vcpu++) {
        int64_t at = MAX(base, vcpu->at);

        if (vcpu->turns && at < limit && can_run(vcpu->cpu)) {
            behind = vcpu;
            limit = at;
        }
    }
    return behind;
}

/* How far a round may go, and how far vCPUs have got in it. */
typedef struct Round {
    int64_t base;       /* the instant at which it began */
    int64_t limit;
    int64_t far;
} Round;

/* @vcpu has its turn in the round. */
static void take_turn(Round *round, VCpu *vcpu, bool alone)
{
    lockstep.now = MAX(round->base, vcpu->at);
    if (lockstep.now < round->limit) {
        round->limit = run_slice(vcpu, round->limit, round->far, alone);
    }
    round->far = MAX(round->far, MIN(round->limit, lockstep.now));
}

/* With a model of memory the vCPU furthest behind has its turn, again. */
static void run_furthest_behind(Round *round)
{
    VCpu *end = lockstep.vcpus + lockstep.count;
    int64_t first = NEVER;
    VCpu *vcpu;

    for (vcpu = lockstep.vcpus; vcpu < end; vcpu++) {
        vcpu->turns = true;
        if (can_run(vcpu->cpu)) {
            first = MIN(first, vcpu->at);
        }
    }
    /* All may be waiting for memory. */
    if (first >= round->limit) {
        round->far = MIN(first, lockstep.due);
        round->limit = MIN(round->far + lockstep.length, lockstep.due);
    }
    while ((vcpu = furthest_behind(round->base, round->limit))) {
        take_turn(round, vcpu, false);
    }
}

/*
 * A turn for the vCPU with the highest priority; if it spins, for the next one,
 * too: that may be the one it waits for.  Whom it woke begins in the next round.
 */
static void run_by_priority(Round *round)
{
    for (int rank = 0; rank < lockstep.count; rank++) {
        VCpu *vcpu = &lockstep.vcpus[schedule_ranked(rank)];

        if (can_run(vcpu->cpu)) {
            take_turn(round, vcpu, true);
            if (vcpu->waits < 0 || vcpu->turns) {
                break;
            }
        }
    }
}

/* One turn each, in order.  @busy: how many vCPUs can run. */
static void run_in_turn(Round *round, int busy)
{
    VCpu *end = lockstep.vcpus + lockstep.count;
    VCpu *vcpu;

    for (vcpu = lockstep.vcpus; vcpu < end; vcpu++) {
        if (can_run(vcpu->cpu)) {
            take_turn(round, vcpu, busy == 1);
            /* Whom it woke begins when that was, in the next round. */
            if (busy == 1) {
                break;
            }
        }
    }
}

/* Returns false if there is nothing to do: no vCPU to run and no timer. */
static bool run_round(void)
{
    VCpu *end = lockstep.vcpus + lockstep.count;
    Round round = { .base = lockstep.now, .far = lockstep.now };
    int64_t waits = -1;
    int busy = 0;
    VCpu *vcpu;

    RCU_READ_LOCK_GUARD();

    for (vcpu = lockstep.vcpus; vcpu < end; vcpu++) {
        if (can_run(vcpu->cpu)) {
            busy++;
            waits = MAX(waits, vcpu->waits);
        }
    }
    lockstep.length = round_length(round.base, busy, waits);
    assert(lockstep.length > 0);
    /* A timer may have gone, which is not announced. */
    find_due();
    round.limit = MIN(round.base + lockstep.length, lockstep.due);
    if (!busy) {
        round.far = lockstep.due;
    } else if (busy > 1 && icount_lockstep_memory()) {
        run_furthest_behind(&round);
    } else if (busy > 1 && schedule_on()) {
        run_by_priority(&round);
    } else {
        run_in_turn(&round, busy);
    }
    if (round.far == NEVER) {
        return false;
    }
    assert(round.far >= round.base);    /* the clock never goes back */
    lockstep.now = round.base;
    run_timers(round.far);
    qatomic_set_i64(&timers_state.qemu_icount, round.far);
    return true;
}

/* The main loop's requests, served between rounds */

/* Keep lockstep.vcpus as QEMU's list of vCPUs is, which the BQL protects. */
static void list_vcpus(void)
{
    int count = 0;
    CPUState *cpu;

    CPU_FOREACH(cpu) {
        count++;
    }
    if (count > lockstep.count) {
        lockstep.vcpus = g_renew(VCpu, lockstep.vcpus, count);
        memset(lockstep.vcpus + lockstep.count, 0,
               (count - lockstep.count) * sizeof(VCpu));
    }
    lockstep.count = 0;
    CPU_FOREACH(cpu) {
        VCpu *vcpu = &lockstep.vcpus[lockstep.count++];

        if (vcpu->cpu != cpu) {
            *vcpu = (VCpu) { .cpu = cpu, .paused = -NEVER, .waits = -1 };
            plan_stall(vcpu);
        }
    }
    schedule_vcpus(lockstep.count);
}

/* The clock may have been set: by the load of a snapshot. */
static void take_over_clock(void)
{
    int i;

    if (lockstep.now == timers_state.qemu_icount) {
        return;
    }
    lockstep.now = timers_state.qemu_icount;
    lockstep.calm = 0;
    qatomic_set_i64(&lockstep.seen, lockstep.now);
    for (i = 0; i < lockstep.count; i++) {
        lockstep.vcpus[i].at = lockstep.now;
        lockstep.vcpus[i].paused = -NEVER;
        lockstep.vcpus[i].waits = -1;
    }
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

        qatomic_set_mb(&lockstep.asked, false);
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
    list_vcpus();
    take_over_clock();
}

void lockstep_kick_vcpu_thread(CPUState *cpu)
{
    /* The running vCPU's own requests have to be seen at once. */
    if (qemu_in_vcpu_thread() && current_cpu->running) {
        lockstep.armed = true;
        cpu_exit(current_cpu);
    }
    /* Others' are seen at the end of the round. */
    if (!qemu_in_vcpu_thread() || cpu != current_cpu) {
        qatomic_set(&lockstep.asked, true);
    }
}

void lockstep_handle_interrupt(CPUState *cpu, int mask)
{
    icount_handle_interrupt(cpu, mask);
    if (qemu_in_vcpu_thread() && cpu != current_cpu && !lockstep.woken) {
        lockstep.woken = true;
        if (current_cpu->running) {
            cpu_exit(current_cpu);
        }
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
    memory_fix_cpus(cpu);
    cpu_thread_signal_created(cpu);
    qemu_guest_random_seed_thread_part2(cpu->random_seed);
    bql_unlock();

    serve_main_loop();
    memory_start(lockstep.slice, lockstep.speed, &memory_clock);
    for (;;) {
        if (unlikely(qatomic_read(&lockstep.asked) || lockstep.frozen) ||
            !run_round()) {
            serve_main_loop();
        }
    }
    return NULL;
}
