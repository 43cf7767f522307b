// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a command's time went.  See parts.h.
 *
 * Built with -Wl,--wrap for each function __wrap_X below: other files that call
 * X call __wrap_X, which calls the model's X by the name __real_X.
 */

#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "flash/model/unit.h"
#include "parts.h"

/* An operation under way: what its owner set, and what was seen of it. */
typedef struct Probe {
    struct Probe *next;         /* of those that are free */
    struct Probe *made;         /* of all */
    void (*started)(FlashTime *ft, FlashOp *op);
    void (*done)(FlashTime *ft, FlashOp *op);
    void *arg;
    LastOp op;
    bool own;                   /* work of the drive: no command asked for it */
} Probe;

/* What a die did, by the ends of its operations. */
typedef struct Span {
    uint64_t end;
    uint64_t busy, own;         /* sums up to here */
} Span;

typedef struct Die {
    Span *spans;
    size_t nr, room;
} Die;

static Die *dies;
static uint32_t nr_dies;
static Probe *spare, *all;
static uint64_t forgotten;      /* no one asks for what was before */
static Timed *submitting, *reading;
static const LastOp *ending;    /* its operation is telling its owner */
static Timed *ending_of;        /* ... which is a read of this command */

void __real_flash_op_submit(FlashTime *ft, FlashOp *op);
bool __real_flash_op_cancel(FlashTime *ft, FlashOp *op);
void __real_flash_cmd_step(FlashDev *d, FlashCmd *cmd);
void __real_flash_read(FlashDev *d, FlashCmd *cmd);
uint64_t __real_flash_link_take(FlashDev *d, FlashWay way, uint64_t from,
                                uint64_t bytes);
void __wrap_flash_op_submit(FlashTime *ft, FlashOp *op);
bool __wrap_flash_op_cancel(FlashTime *ft, FlashOp *op);
void __wrap_flash_cmd_step(FlashDev *d, FlashCmd *cmd);
void __wrap_flash_read(FlashDev *d, FlashCmd *cmd);
uint64_t __wrap_flash_link_take(FlashDev *d, FlashWay way, uint64_t from,
                                uint64_t bytes);

/*
 * The host's command behind a command of the model, or NULL: an FTL makes parts
 * of it, whose owner it is.
 */
static Timed *host_cmd(const FlashCmd *cmd)
{
    if (!cmd->then) {
        return (Timed *)cmd;
    }
    return cmd->owner ? (Timed *)cmd->owner : NULL;
}

/* What dies did. */

/* Forget what is not asked for any more, or make room for more. */
static void make_room(Die *die)
{
    size_t old = 0;

    while (old + 1 < die->nr && die->spans[old + 1].end < forgotten) {
        old++;
    }
    die->nr -= old;
    memmove(die->spans, die->spans + old, die->nr * sizeof(*die->spans));
    if (old < die->room / 2) {
        die->room *= 2;
        die->spans = realloc(die->spans, die->room * sizeof(*die->spans));
        if (!die->spans) {
            fail("no memory for what dies did");
        }
    }
}

static void add_span(Die *die, uint64_t from, uint64_t to, bool own)
{
    Span last = die->nr ? die->spans[die->nr - 1] : (Span) { 0 };
    uint64_t ns = to - (from > last.end ? from : last.end);

    if (die->nr == die->room) {
        make_room(die);
    }
    die->spans[die->nr++] = (Span) { to, last.busy + ns,
                                     last.own + (own ? ns : 0) };
}

/* Sums up to an instant. */
static Span sums(const Die *die, uint64_t when)
{
    size_t low = 0, high = die->nr;
    Span found = { 0 };

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (die->spans[middle].end < when) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low) {
        found = die->spans[low - 1];
    }
    if (low < die->nr) {
        const Span *next = &die->spans[low];
        uint64_t ns = next->busy - found.busy, begin = next->end - ns;
        uint64_t part = when > begin ? when - begin : 0;

        found.busy += part;
        found.own += next->own > found.own ? part : 0;
    }
    return found;
}

/* How much of the time from one instant to another a die did its own work. */
static uint64_t own_work(const Die *die, uint64_t from, uint64_t to)
{
    return from < to ? sums(die, to).own - sums(die, from).own : 0;
}

/* A wait for no die: the share of all dies' work that was the drive's own. */
static uint64_t own_share(uint64_t from, uint64_t to)
{
    double busy = 0, own = 0;

    for (uint32_t i = 0; from < to && i < nr_dies; i++) {
        Span a = sums(&dies[i], from), b = sums(&dies[i], to);

        busy += b.busy - a.busy;
        own += b.own - a.own;
    }
    return busy > 0 ? (uint64_t)((to - from) * (own / busy)) : 0;
}

/* Operations. */

static bool is_own(const FlashOp *op)
{
    if (personality != DRIVE_BLACKBOX) {
        return false;
    }
    switch (op->kind) {
    case FLASH_OP_READ:
        return ((const FlashCmd *)op->arg)->inside;
    case FLASH_OP_PROGRAM:
        return ((const FlashUnit *)op->arg)->own;
    default:
        return true;
    }
}

static Probe *new_probe(void)
{
    Probe *probe = spare;

    if (probe) {
        spare = probe->next;
        return probe;
    }
    probe = flash_alloc(1, sizeof(*probe));
    probe->made = all;
    all = probe;
    return probe;
}

static void free_probe(Probe *probe)
{
    probe->next = spare;
    spare = probe;
}

static Probe *give_back(FlashOp *op)
{
    Probe *probe = op->arg;

    op->started = probe->started;
    op->done = probe->done;
    op->arg = probe->arg;
    return probe;
}

static void on_started(FlashTime *ft, FlashOp *op)
{
    Probe *probe = op->arg;

    probe->op.cell_began = ft->now;
    if (probe->started) {
        op->arg = probe->arg;
        probe->started(ft, op);
        op->arg = probe;
    }
}

static void on_ended(FlashTime *ft, FlashOp *op)
{
    Probe *probe = give_back(op);
    const LastOp *before = ending;
    Timed *before_of = ending_of;

    probe->op.ended = ft->now;
    add_span(&dies[op->die], probe->op.came, ft->now, probe->own);
    ending = &probe->op;
    ending_of = NULL;
    if (op->kind == FLASH_OP_READ && !probe->own) {
        ending_of = host_cmd(op->arg);
        ending_of->last = probe->op;
    }
    probe->done(ft, op);
    ending = before;
    ending_of = before_of;
    free_probe(probe);
}

void __wrap_flash_op_submit(FlashTime *ft, FlashOp *op)
{
    Probe *probe = new_probe();

    probe->started = op->started;
    probe->done = op->done;
    probe->arg = op->arg;
    probe->own = is_own(op);
    probe->op = (LastOp) {
        .known = true, .kind = op->kind, .die = op->die, .came = ft->now,
        .cell_began = ft->now, .cell_ns = op->cell_ns,
        .transfer_ns = op->kind == FLASH_OP_ERASE ?
                       0 : flash_xfer_ns(ft, op->bytes),
    };
    op->started = on_started;
    op->done = on_ended;
    op->arg = probe;
    __real_flash_op_submit(ft, op);
}

bool __wrap_flash_op_cancel(FlashTime *ft, FlashOp *op)
{
    if (!__real_flash_op_cancel(ft, op)) {
        return false;
    }
    free_probe(give_back(op));
    return true;
}

/*
 * Does the command wait for programs or erases?  Reads do not, and a buffered
 * write waits for room, whichever program makes it.
 */
static bool waits_for_flash(const FlashDev *d, const FlashCmd *cmd)
{
    switch (cmd->kind) {
    case FLASH_CMD_WRITE:
    case FLASH_CMD_APPEND:
        return cmd->fua || d->through || !d->tuning.buffer;
    case FLASH_CMD_FLUSH:
    case FLASH_CMD_FINISH:
    case FLASH_CMD_RESET:
        return true;
    default:
        return false;
    }
}

void __wrap_flash_cmd_step(FlashDev *d, FlashCmd *cmd)
{
    Timed *t = host_cmd(cmd);

    if (ending && ending->kind != FLASH_OP_READ && t &&
        waits_for_flash(d, &t->cmd)) {
        t->last = *ending;
    }
    __real_flash_cmd_step(d, cmd);
}

void __wrap_flash_read(FlashDev *d, FlashCmd *cmd)
{
    Timed *before = reading;

    reading = cmd->inside ? NULL : host_cmd(cmd);
    __real_flash_read(d, cmd);
    reading = before;
}

uint64_t __wrap_flash_link_take(FlashDev *d, FlashWay way, uint64_t from,
                                uint64_t bytes)
{
    uint64_t when = __real_flash_link_take(d, way, from, bytes);

    if (way == FLASH_FROM_HOST && submitting) {
        submitting->link_in = when - from;
    } else if (way == FLASH_TO_HOST && ending_of) {
        ending_of->last.link_ns = when - from;
    } else if (way == FLASH_TO_HOST && reading) {
        reading->link_out = when - from;
    }
    return when;
}

/* Commands. */

void parts_open(FlashDev *d)
{
    nr_dies = d->time.nr_dies;
    dies = flash_alloc(nr_dies, sizeof(*dies));
    for (uint32_t i = 0; i < nr_dies; i++) {
        dies[i].room = 1024;
        dies[i].spans = flash_alloc(dies[i].room, sizeof(*dies[i].spans));
    }
}

void parts_close(void)
{
    while (all) {
        Probe *probe = all;

        all = probe->made;
        free(probe);
    }
    for (uint32_t i = 0; i < nr_dies; i++) {
        free(dies[i].spans);
    }
    free(dies);
}

void parts_submit(FlashDev *d, Timed *t)
{
    uint64_t now = d->time.now;
    uint64_t begin = d->service_free > now ? d->service_free : now;

    t->began = now;
    t->ready = begin + d->tuning.service_ns;
    t->link_in = t->link_out = 0;
    t->last = (LastOp) { 0 };
    submitting = t;
    flash_dev_submit(d, &t->cmd);
    submitting = NULL;
}

void parts_forget(uint64_t before)
{
    forgotten = before;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The time between two instants that lies behind `from`. */
static uint64_t after(uint64_t from, uint64_t a, uint64_t b)
{
    a = a > from ? a : from;
    return b > a ? b - a : 0;
}

Parts parts_of(const FlashDev *d, const Timed *t)
{
    uint64_t executed = t->ready + t->link_in;
    uint64_t answered = d->time.now - t->cmd.extra_ns;
    const LastOp *op = &t->last;
    Parts p = {
        .service = t->ready - t->began + t->cmd.extra_ns,
        .link = t->link_in,
    };
    uint64_t known, at_work = op->cell_began;

    if (!op->known) {
        p.gc = own_share(executed, answered - t->link_out);
        p.link += t->link_out;
        p.queue = answered - executed - t->link_out - p.gc;
        return p;
    }
    if (op->kind == FLASH_OP_READ) {
        uint64_t cell_ended = least(op->cell_began + op->cell_ns, op->ended);

        p.cell = cell_ended - op->cell_began;
        p.transfer = least(op->transfer_ns, op->ended - cell_ended);
    } else {
        uint64_t cell = least(op->cell_ns, op->ended - op->cell_began);

        at_work -= least(op->transfer_ns, op->cell_began - op->came);
        p.cell = after(executed, op->ended - cell, op->ended);
        p.transfer = after(executed, at_work, op->cell_began);
    }
    p.link += op->link_ns;
    p.gc = own_share(executed, op->came) +
           own_work(&dies[op->die],
                    op->came > executed ? op->came : executed, at_work);
    known = p.cell + p.transfer + op->link_ns;
    p.gc = least(p.gc, answered - executed - known);
    p.queue = answered - executed - known - p.gc;
    return p;
}
