/*
 * The clockwork of a NAND package.  See timing.h for the model.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

static void queue_put(FlashQueue *q, FlashOp *op)
{
    op->next = NULL;
    if (q->tail) {
        q->tail->next = op;
    } else {
        q->head = op;
    }
    q->tail = op;
}

static FlashOp *queue_take(FlashQueue *q, FlashOp *prev)
{
    FlashOp *op = prev ? prev->next : q->head;

    assert(op);
    if (prev) {
        prev->next = op->next;
    } else {
        q->head = op->next;
    }
    if (q->tail == op) {
        q->tail = prev;
    }
    assert(!q->head == !q->tail);
    return op;
}

static bool event_before(const FlashEvent *a, const FlashEvent *b)
{
    return a->when != b->when ? a->when < b->when : a->order < b->order;
}

/* Place i is free: ev goes there, or as far towards the top as it belongs. */
static void heap_up(FlashTime *ft, size_t i, FlashEvent ev)
{
    while (i && event_before(&ev, &ft->heap[(i - 1) / 2])) {
        ft->heap[i] = ft->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    ft->heap[i] = ev;
}

static void heap_push(FlashTime *ft, FlashEvent ev)
{
    if (ft->heap_len == ft->heap_cap) {
        ft->heap_cap = ft->heap_cap ? 2 * ft->heap_cap : 64;
        ft->heap = realloc(ft->heap, ft->heap_cap * sizeof(*ft->heap));
        assert(ft->heap);
    }
    heap_up(ft, ft->heap_len++, ev);
}

static FlashEvent heap_take(FlashTime *ft, size_t i)
{
    FlashEvent taken = ft->heap[i];
    FlashEvent last = ft->heap[--ft->heap_len];
    size_t child;

    assert(i <= ft->heap_len);
    if (i == ft->heap_len) {
        return taken;
    }
    while ((child = 2 * i + 1) < ft->heap_len) {
        if (child + 1 < ft->heap_len &&
            event_before(&ft->heap[child + 1], &ft->heap[child])) {
            child++;
        }
        if (!event_before(&ft->heap[child], &last)) {
            break;
        }
        ft->heap[i] = ft->heap[child];
        i = child;
    }
    heap_up(ft, i, last);
    return taken;
}

static void event_put(FlashTime *ft, uint64_t when, uint64_t order,
                      FlashFire *fire, void *arg, uint32_t turn)
{
    FlashEvent ev = {
        .when = when < ft->now ? ft->now : when,
        .order = order,
        .fire = fire,
        .arg = arg,
        .turn = turn,
    };

    heap_push(ft, ev);
}

static void event_set(FlashTime *ft, uint64_t when, FlashFire *fire, void *arg,
                      uint32_t turn)
{
    event_put(ft, when, ft->order++, fire, arg, turn);
}

void flash_time_at(FlashTime *ft, uint64_t when, FlashFire *fire, void *arg)
{
    event_set(ft, when, fire, arg, 0);
}

void flash_time_behind(FlashTime *ft, uint64_t when, FlashFire *fire, void *arg)
{
    event_put(ft, when, UINT64_MAX, fire, arg, 0);
}

void flash_time_forget(FlashTime *ft, FlashFire *fire)
{
    size_t i = 0;

    while (i < ft->heap_len) {
        if (ft->heap[i].fire == fire) {
            heap_take(ft, i);
            i = 0;              /* what took its place may be anywhere */
        } else {
            i++;
        }
    }
}

static FlashDie *op_die(FlashTime *ft, FlashOp *op)
{
    assert(op->die < ft->nr_dies);
    return &ft->dies[op->die];
}

static FlashChannel *op_channel(FlashTime *ft, FlashOp *op)
{
    return &ft->channels[op->die % ft->nr_channels];
}

static FlashPlane *op_plane(FlashTime *ft, FlashOp *op)
{
    assert(op->kind == FLASH_OP_READ && op->plane < ft->nr_planes);
    return &op_die(ft, op)->planes[op->plane];
}

uint64_t flash_xfer_ns(const FlashTime *ft, uint64_t bytes)
{
    uint64_t ns = ft->bus.setup_ns;

    if (ft->bus.bytes_per_s) {
        ns += (bytes * 1000000000 + ft->bus.bytes_per_s - 1) /
              ft->bus.bytes_per_s;
    }
    return ns;
}

static void die_kick(FlashTime *ft, FlashDie *die);
static void xfer_end(FlashTime *ft, void *arg);

/* The channel's next transfer is that of op. */
static uint64_t channel_take(FlashTime *ft, FlashChannel *ch, FlashOp *op)
{
    uint64_t ns = flash_xfer_ns(ft, op->bytes);

    assert(op_channel(ft, op) == ch);
    if (ch->last && ch->last != op->die + 1) {
        ns += ft->bus.switch_ns;
    }
    ch->last = op->die + 1;
    ch->busy_ns += ns;
    return ns;
}

/* When the transfer begins: the controller turns to one channel at a time. */
static uint64_t turn_to(FlashTime *ft, FlashChannel *ch, FlashOpKind kind)
{
    uint64_t ns = ft->turned_for == FLASH_OP_READ ? ft->bus.turn_read_ns :
                                                    ft->bus.turn_write_ns;
    uint64_t at = ft->now;

    if (ns && ft->turned_to && ft->turned_to != ch &&
        at < ft->turned_at + ns) {
        at = ft->turned_at + ns;
    }
    ft->turned_to = ch;
    ft->turned_for = kind;
    ft->turned_at = at;
    return at;
}

static void channel_kick(FlashTime *ft, FlashChannel *ch)
{
    uint64_t ns, at;

    if (ch->current || !ch->queue.head) {
        return;
    }
    ch->current = queue_take(&ch->queue, NULL);
    ns = channel_take(ft, ch, ch->current);
    at = turn_to(ft, ch, ch->current->kind);
    event_set(ft, at + ns, xfer_end, ch->current, 0);
}

static void xfer_begin(FlashTime *ft, FlashOp *op)
{
    op_die(ft, op)->transfers++;
    assert(op_die(ft, op)->transfers <= op_die(ft, op)->active);
    queue_put(&op_channel(ft, op)->queue, op);
    channel_kick(ft, op_channel(ft, op));
}

/* Defined below; the turn is checked in flash_time_run(). */
static void cell_end(FlashTime *ft, void *arg);

/* A cell array of the die is at work from here on, or no longer. */
static void array_begin(FlashTime *ft, FlashDie *die)
{
    if (!die->at_work++) {
        die->at_work_since = ft->now;
    }
}

static void array_end(FlashTime *ft, FlashDie *die)
{
    assert(die->at_work && die->at_work <= ft->nr_planes);
    if (!--die->at_work) {
        die->busy_ns += ft->now - die->at_work_since;
    }
}

/* Where an operation is while the cell array works on it. */
static FlashOp **op_cell(FlashTime *ft, FlashOp *op)
{
    return op->kind == FLASH_OP_READ ? &op_plane(ft, op)->cell :
                                       &op_die(ft, op)->cell;
}

static void cell_begin(FlashTime *ft, FlashOp *op)
{
    FlashDie *die = op_die(ft, op);
    FlashOp **cell = op_cell(ft, op);
    bool first = !op->suspended;

    assert(!die->cell && !*cell);
    assert(op->kind == FLASH_OP_READ || (!die->parked && !die->at_work));
    if (first) {
        op->left_ns = op->cell_ns * die->slow / FLASH_SLOW_UNIT;
    } else {
        op->left_ns += ft->resume_ns;
        op->suspended = false;
    }
    op->since = ft->now;
    *cell = op;
    array_begin(ft, die);
    die->kind = op->kind;
    event_set(ft, ft->now + op->left_ns, cell_end, op, ++op->turn);
    if (first && op->started) {
        op->started(ft, op);
    }
}

static void op_done(FlashTime *ft, FlashOp *op)
{
    FlashDie *die = op_die(ft, op);

    assert(die->active);
    die->active--;
    if (op->kind == FLASH_OP_READ) {
        assert(die->reading && op_plane(ft, op)->reading);
        die->reading--;
        op_plane(ft, op)->reading--;
    } else {
        die->passed = 0;
    }
    die->ops[op->kind]++;
    op->done(ft, op);           /* may free op */
    die_kick(ft, die);
}

static void cell_end(FlashTime *ft, void *arg)
{
    FlashOp *op = arg;
    FlashDie *die = op_die(ft, op);
    FlashOp **cell = op_cell(ft, op);

    assert(*cell == op);
    *cell = NULL;
    array_end(ft, die);

    if (op->kind == FLASH_OP_READ) {
        xfer_begin(ft, op);
        die_kick(ft, die);
        return;
    }
    if (die->ready) {
        FlashOp *ready = die->ready;

        die->ready = NULL;
        cell_begin(ft, ready);
    }
    op_done(ft, op);
}

static void xfer_end(FlashTime *ft, void *arg)
{
    FlashOp *op = arg;
    FlashDie *die = op_die(ft, op);
    FlashChannel *ch = op_channel(ft, op);

    assert(ch->current == op && die->transfers);
    ch->current = NULL;
    die->transfers--;
    channel_kick(ft, ch);

    if (op->kind == FLASH_OP_READ) {
        op_done(ft, op);
    } else if (die->cell || die->parked) {
        assert(!die->ready);
        die->ready = op;
    } else {
        cell_begin(ft, op);
        die_kick(ft, die);      /* the cache register is free again */
    }
}

/* Has the read's plane a page register for it, if the die only reads? */
static bool plane_admits(FlashTime *ft, FlashOp *read)
{
    const FlashPlane *plane = op_plane(ft, read);

    return !plane->reading || (ft->cache && !op_die(ft, read)->parked &&
                               plane->reading == 1 && !plane->cell);
}

/* May op join what the die is doing now? */
static bool die_admits(FlashTime *ft, FlashDie *die, FlashOp *op)
{
    if (!die->active) {
        return true;
    }
    switch (op->kind) {
    case FLASH_OP_READ:
        return die->active == die->reading && plane_admits(ft, op);
    case FLASH_OP_PROGRAM:
        return ft->cache && die->active == 1 && !die->parked &&
               die->kind == FLASH_OP_PROGRAM && !die->transfers;
    default:
        return false;
    }
}

static void die_waited(FlashDie *die, uint64_t wait)
{
    die->wait_ns += wait;
    if (wait > die->wait_max_ns) {
        die->wait_max_ns = wait;
    }
}

static void op_begin(FlashTime *ft, FlashDie *die, FlashOp *op)
{
    assert(op_die(ft, op) == die && ft->now >= op->since);
    die_waited(die, ft->now - op->since);
    die->active++;
    if (op->kind == FLASH_OP_READ) {
        die->reading++;
        op_plane(ft, op)->reading++;
    }
    die->kind = op->kind;
    if (op->kind == FLASH_OP_PROGRAM) {
        xfer_begin(ft, op);
    } else {
        cell_begin(ft, op);
    }
}

static void die_stopped(FlashTime *ft, void *arg)
{
    FlashDie *die = arg;

    assert(die->stopping && die->parked);
    die->stopping = false;
    array_end(ft, die);
    die_kick(ft, die);
}

/*
 * A read interrupts the program or erase in the cell array.  What it interrupts
 * keeps its data, the read takes the page register, and a program that comes
 * next keeps the cache register.  Nothing begins before the array has stopped.
 */
static bool die_suspend(FlashTime *ft, FlashDie *die)
{
    FlashOp *op = die->cell;

    if (!ft->suspend || !op || die->parked) {
        return false;
    }
    assert(op->left_ns >= ft->now - op->since && !die->stopping);
    op->left_ns -= ft->now - op->since;
    op->suspended = true;
    op->turn++;
    die->cell = NULL;
    die->parked = op;
    if (ft->suspend_ns) {
        die->stopping = true;
        flash_time_at(ft, ft->now + ft->suspend_ns, die_stopped, die);
    } else {
        array_end(ft, die);
    }
    return true;
}

/* What may begin next: an operation of the queue, and the one before it. */
typedef struct FlashChoice {
    FlashOp *op, *prev;
    bool passes;                /* programs or erases that came before it */
} FlashChoice;

/*
 * The first read whose plane is free, or else the first one.  It passes other
 * operations only if reads go first.
 */
static FlashChoice choose_read(FlashTime *ft, FlashDie *die, bool first)
{
    bool all_busy = die->at_work == ft->nr_planes ||
                    (!ft->cache && die->reading == ft->nr_planes);
    FlashChoice found = { 0 };
    FlashOp *prev = NULL;
    bool passes = false;

    for (FlashOp *op = die->queue.head; op; prev = op, op = op->next) {
        if (op->kind != FLASH_OP_READ) {
            passes = true;
            if (!first) {
                break;
            }
        } else if (!found.op || plane_admits(ft, op)) {
            found = (FlashChoice) { .op = op, .prev = prev, .passes = passes };
            if (ft->nr_planes == 1 || all_busy || plane_admits(ft, op)) {
                break;
            }
        }
    }
    return found;
}

/*
 * Reads go first, until read_limit of them have passed the next other
 * operation.
 */
static void die_kick(FlashTime *ft, FlashDie *die)
{
    while (!die->stopping && (die->queue.head || die->parked)) {
        bool first = (ft->read_first || ft->suspend) &&
                     die->passed < ft->read_limit;
        FlashChoice next = choose_read(ft, die, first);

        assert(die->reading <= die->active && die->transfers <= die->active);
        if (die->parked) {
            if (first && next.op && plane_admits(ft, next.op)) {
                /* more reads, before the interrupted work goes on */
                die->passed++;
                op_begin(ft, die, queue_take(&die->queue, next.prev));
                continue;
            }
            if (!die->reading) {
                FlashOp *op = die->parked;

                die->parked = NULL;
                cell_begin(ft, op);
            }
            return;
        }
        if (first && next.op && die_suspend(ft, die)) {
            continue;
        }
        if (!next.op) {
            next.op = die->queue.head;
        }
        if (!die_admits(ft, die, next.op)) {
            return;
        }
        die->passed += next.passes;
        op_begin(ft, die, queue_take(&die->queue, next.prev));
    }
}

static void booked_began(FlashTime *ft, void *arg)
{
    FlashOp *op = arg;

    op->started(ft, op);
}

static void booked_ended(FlashTime *ft, void *arg)
{
    FlashOp *op = arg;
    FlashDie *die = op_die(ft, op);

    die->busy_ns += op->left_ns;
    die->ops[op->kind]++;
    op->done(ft, op);           /* may free op */
}

static uint64_t xfer_book(FlashTime *ft, FlashOp *op, uint64_t from)
{
    FlashChannel *ch = op_channel(ft, op);

    return flash_book_take(&ch->book, ft->now, from, channel_take(ft, ch, op));
}

/* A die is busy with a booked operation until its last step ends. */
static void op_book(FlashTime *ft, FlashOp *op)
{
    FlashDie *die = op_die(ft, op);
    uint64_t begin = die->booked > ft->now ? die->booked : ft->now;

    die_waited(die, begin - ft->now);
    op->left_ns = op->cell_ns * die->slow / FLASH_SLOW_UNIT;
    if (op->kind == FLASH_OP_PROGRAM) {
        begin = xfer_book(ft, op, begin);
    }
    die->booked = begin + op->left_ns;
    if (op->kind == FLASH_OP_READ) {
        die->booked = xfer_book(ft, op, die->booked);
    }
    if (op->started) {
        event_set(ft, begin, booked_began, op, 0);
    }
    event_set(ft, die->booked, booked_ended, op, 0);
}

void flash_op_submit(FlashTime *ft, FlashOp *op)
{
    FlashDie *die = op_die(ft, op);

    op->since = ft->now;
    op->turn = 0;
    op->suspended = false;
    if (ft->booked) {
        op_book(ft, op);
        return;
    }
    queue_put(&die->queue, op);
    die_kick(ft, die);
}

bool flash_op_cancel(FlashTime *ft, FlashOp *op)
{
    FlashQueue *q = &op_die(ft, op)->queue;
    FlashOp *prev = NULL;

    for (FlashOp *o = q->head; o; prev = o, o = o->next) {
        if (o == op) {
            queue_take(q, prev);
            return true;
        }
    }
    return false;
}

bool flash_time_next(const FlashTime *ft, uint64_t *when)
{
    if (!ft->heap_len) {
        return false;
    }
    assert(ft->heap[0].when >= ft->now);
    *when = ft->heap[0].when;
    return true;
}

void flash_time_run(FlashTime *ft, uint64_t until)
{
    while (ft->heap_len && ft->heap[0].when <= until) {
        FlashEvent ev = heap_take(ft, 0);

        assert(ev.when >= ft->now);
        ft->now = ev.when;
        if (ev.fire == cell_end && ((FlashOp *)ev.arg)->turn != ev.turn) {
            continue;           /* interrupted meanwhile */
        }
        ev.fire(ft, ev.arg);
    }
    if (until > ft->now) {
        ft->now = until;
    }
}

void flash_time_init(FlashTime *ft, uint32_t channels, uint32_t dies,
                     uint32_t planes)
{
    memset(ft, 0, sizeof(*ft));
    assert(channels && dies % channels == 0 && planes);
    ft->nr_channels = channels;
    ft->nr_dies = dies;
    ft->nr_planes = planes;
    ft->dies = calloc(dies, sizeof(*ft->dies));
    ft->planes = calloc((size_t)dies * planes, sizeof(*ft->planes));
    ft->channels = calloc(channels, sizeof(*ft->channels));
    assert(ft->dies && ft->planes && ft->channels);
    for (uint32_t i = 0; i < dies; i++) {
        ft->dies[i].planes = &ft->planes[(size_t)i * planes];
        ft->dies[i].slow = FLASH_SLOW_UNIT;
    }
}

void flash_time_free(FlashTime *ft)
{
    for (uint32_t i = 0; i < ft->nr_channels; i++) {
        flash_book_free(&ft->channels[i].book);
    }
    free(ft->dies);
    free(ft->planes);
    free(ft->channels);
    free(ft->heap);
}

void flash_time_clear(FlashTime *ft)
{
    for (uint32_t i = 0; i < ft->nr_dies; i++) {
        FlashDie *die = &ft->dies[i];

        die->queue = (FlashQueue) { 0 };
        die->cell = die->ready = die->parked = NULL;
        die->stopping = false;
        die->active = die->reading = die->transfers = die->passed = 0;
        die->at_work = 0;
        die->booked = 0;
        memset(die->planes, 0, ft->nr_planes * sizeof(*die->planes));
    }
    for (uint32_t i = 0; i < ft->nr_channels; i++) {
        ft->channels[i].queue = (FlashQueue) { 0 };
        ft->channels[i].current = NULL;
        ft->channels[i].last = 0;
        flash_book_free(&ft->channels[i].book);
    }
    ft->turned_to = NULL;
    ft->heap_len = 0;
}
