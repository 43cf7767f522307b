/*
 * Memory model: caches, directory, latencies.  See memory-model.h for which
 * thread may call it.
 *
 * All caches replace the line that came first (FIFO): a hit changes nothing,
 * so that a caller that keeps track of what is in L1 need not report it.  L2
 * holds what L1 holds; L3 holds what an L2 has dropped, what CPUs share and,
 * where devices write there, what those wrote.
 *
 * Tags may be out of date: what counts is the directory.  A tag whose line the
 * directory says is elsewhere is found again when the line comes back.
 *
 * A line moves to one CPU after the other: a CPU that asks for it while it is
 * on its way waits until it has arrived.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory-model.h"

#define NO_LINE UINT32_MAX
#define STREAMS 16
#define PAGE_LINES 64

enum {
    EXCLUSIVE = 1,      /* the one holder may write to it */
    DIRTY = 2,          /* and has done so */
};

typedef struct Line {
    uint64_t holders;   /* CPUs in whose L2 it is: bits */
    uint64_t asked;     /* when another CPU last asked for it */
    uint32_t busy;      /* until so long after that it is on its way */
    uint8_t state;
    uint8_t in_l3;      /* sockets: bits */
} Line;

/* Tags of a cache: lines, set by set; and the way to be replaced next. */
typedef struct Tags {
    MemCache shape;
    uint32_t *line;
    uint8_t *next;
} Tags;

typedef struct Core {
    Tags l1, l2;
    int socket;
    uint32_t stream[STREAMS];   /* the last line missed, by its page */
} Core;

/* Memory of a socket. */
typedef struct Home {
    uint64_t first, lines;
} Home;

struct MemModel {
    MemProfile profile;         /* its times in ticks */
    int cpus;
    uint64_t lines;
    uint64_t moment;
    MemForget *forget;
    void *opaque;
    Line *line;
    Core *cores;
    Tags l3[MEM_MAX_SOCKETS];
    uint64_t on_socket[MEM_MAX_SOCKETS];        /* its CPUs: bits */
    Home home[MEM_MAX_SOCKETS];
    uint64_t count[MEM_NR_SOURCES];
    uint64_t ticks[MEM_NR_SOURCES];
};

/* Tags */

static bool tags_init(Tags *tags, MemCache shape)
{
    size_t nr = (size_t)shape.sets * shape.ways;

    assert(nr);
    tags->shape = shape;
    tags->line = malloc(nr * sizeof(*tags->line));
    tags->next = calloc(shape.sets, sizeof(*tags->next));
    if (!tags->line || !tags->next) {
        return false;
    }
    memset(tags->line, 0xff, nr * sizeof(*tags->line));
    return true;
}

static void tags_free(Tags *tags)
{
    free(tags->line);
    free(tags->next);
}

static uint32_t tags_set(const Tags *tags, uint32_t line)
{
    return line % tags->shape.sets;
}

/* The slot that has @line's tag, or -1. */
static int tags_find(const Tags *tags, uint32_t line)
{
    uint32_t first = tags_set(tags, line) * tags->shape.ways;
    uint32_t i;

    for (i = first; i < first + tags->shape.ways; i++) {
        if (tags->line[i] == line) {
            return i;
        }
    }
    return -1;
}

/* Puts @line, which has no tag, in a slot; @gone is the line it replaces. */
static int tags_insert(Tags *tags, uint32_t line, uint32_t *gone)
{
    uint32_t set = tags_set(tags, line);
    int slot = set * tags->shape.ways + tags->next[set];

    assert(tags->next[set] < tags->shape.ways);
    tags->next[set] = (tags->next[set] + 1) % tags->shape.ways;
    *gone = tags->line[slot];
    tags->line[slot] = line;
    return slot;
}

/* Where lines are */

static void put_into_l3(MemModel *m, int socket, uint32_t line)
{
    uint32_t gone;

    assert(line < m->lines && (uint32_t)socket < m->profile.sockets);
    if (m->line[line].in_l3 & 1u << socket) {
        return;
    }
    m->line[line].in_l3 |= 1u << socket;
    if (tags_find(&m->l3[socket], line) < 0) {
        tags_insert(&m->l3[socket], line, &gone);
        if (gone != NO_LINE) {
            m->line[gone].in_l3 &= ~(1u << socket);
        }
    }
}

static void drop_from_l1(MemModel *m, int cpu, uint32_t line)
{
    Tags *l1 = &m->cores[cpu].l1;
    int slot = tags_find(l1, line);

    if (slot >= 0) {
        l1->line[slot] = NO_LINE;
        m->forget(m->opaque, cpu, slot, false);
    }
}

/* @cpu's L2 needs the room: @line goes to the L3. */
static void evict(MemModel *m, int cpu, uint32_t line)
{
    Line *l = &m->line[line];

    if (l->holders & 1ull << cpu) {
        drop_from_l1(m, cpu, line);
        l->holders &= ~(1ull << cpu);
        l->state = 0;
        put_into_l3(m, m->cores[cpu].socket, line);
    }
}

/* All holders but @cpu lose @line, and so do all L3. */
static void take_from_others(MemModel *m, int cpu, uint32_t line)
{
    Line *l = &m->line[line];
    uint64_t others = l->holders & ~(cpu < 0 ? 0 : 1ull << cpu);

    assert(!(l->holders >> (m->cpus - 1) >> 1));
    l->holders &= ~others;
    for (; others; others &= others - 1) {
        drop_from_l1(m, __builtin_ctzll(others), line);
    }
    l->in_l3 = 0;
}

/* The one holder of @line shares it from now on. */
static void downgrade(MemModel *m, uint32_t line)
{
    Line *l = &m->line[line];
    int owner = __builtin_ctzll(l->holders);
    int slot = tags_find(&m->cores[owner].l1, line);

    assert(l->state & EXCLUSIVE && l->holders == 1ull << owner);
    if (slot >= 0) {
        m->forget(m->opaque, owner, slot, true);
    }
    l->state = 0;
    put_into_l3(m, m->cores[owner].socket, line);
}

static void put_into_l2(MemModel *m, int cpu, uint32_t line)
{
    Tags *l2 = &m->cores[cpu].l2;
    uint32_t gone;

    assert(!(m->line[line].holders & 1ull << cpu));
    m->line[line].holders |= 1ull << cpu;
    if (tags_find(l2, line) < 0) {
        tags_insert(l2, line, &gone);
        if (gone != NO_LINE) {
            evict(m, cpu, gone);
        }
    }
}

static int put_into_l1(MemModel *m, int cpu, uint32_t line)
{
    Tags *l1 = &m->cores[cpu].l1;
    int slot = tags_find(l1, line);
    uint32_t gone;

    assert(m->line[line].holders & 1ull << cpu);    /* in L2 as well */
    if (slot < 0) {
        slot = tags_insert(l1, line, &gone);
        if (gone != NO_LINE) {
            m->forget(m->opaque, cpu, slot, false);
        }
    }
    return slot;
}

/* How long lines take */

static uint32_t way(MemLatency latency, bool same, MemAnswer *answer)
{
    answer->far = !same;
    return same ? latency.same : latency.other;
}

/* The socket whose memory @line is. */
static int home_of(const MemModel *m, uint32_t line)
{
    int i;

    for (i = 0; i < MEM_MAX_SOCKETS; i++) {
        if (line - m->home[i].first < m->home[i].lines) {
            return i;
        }
    }
    return line / PAGE_LINES % m->profile.sockets;
}

/* Does @line follow the one that @core missed last in this page? */
static bool in_stream(Core *core, uint32_t line)
{
    uint32_t *last = &core->stream[line / PAGE_LINES % STREAMS];
    bool next = line == *last + 1 && line % PAGE_LINES;

    *last = line;
    return next;
}

/* Has a CPU asked for the line a moment ago? */
static bool is_hot(const MemModel *m, const Line *l, uint64_t now)
{
    return l->busy &&
           (now > l->asked ? now - l->asked : l->asked - now) < m->moment;
}

/*
 * @line is on its way for @ticks from @now on, or from when it is free.
 * Returns how long it takes to arrive.
 *
 * CPUs' clocks are a moment apart: a CPU that asks long before the last one
 * did was served in the wrong order, and does not wait for that.
 */
static uint64_t change_hands(MemModel *m, Line *l, uint64_t now, uint32_t ticks,
                             bool *contended)
{
    uint64_t wait = 0;

    if (now + m->profile.modified_ns.same >= l->asked &&
        now < l->asked + l->busy) {
        wait = l->asked + l->busy - now;
    }
    *contended = wait || is_hot(m, l, now);
    l->asked = now;
    l->busy = wait + ticks;
    return wait + ticks;
}

/* Others hold @line, and this access needs them. */
static uint64_t ask_others(MemModel *m, int cpu, uint32_t line, bool write,
                           uint64_t now, MemAnswer *answer)
{
    Line *l = &m->line[line];
    uint64_t others = l->holders & ~(1ull << cpu);
    uint64_t near = m->on_socket[m->cores[cpu].socket];
    bool alone = l->state & EXCLUSIVE;
    bool same = write ? !(others & ~near) : others & near;
    MemLatency latency = m->profile.modified_ns;

    assert(others);
    if (l->holders != others) {
        answer->source = MEM_UPGRADE;
    } else if (!alone) {
        answer->source = MEM_SHARED;
    } else if (l->state & DIRTY) {
        answer->source = MEM_MODIFIED;
    } else {
        answer->source = MEM_CLEAN;
        if (!write) {
            latency = m->profile.clean_ns;
        }
    }
    if (write) {
        take_from_others(m, cpu, line);
    } else {
        downgrade(m, line);
    }
    return change_hands(m, l, now, way(latency, same, answer),
                        &answer->contended);
}

/* @line comes from an L3, from a CPU that shares it, or from memory. */
static uint64_t fetch(MemModel *m, int cpu, uint32_t line, uint64_t now,
                      MemAnswer *answer)
{
    const MemProfile *p = &m->profile;
    Core *core = &m->cores[cpu];
    Line *l = &m->line[line];
    uint64_t wait = 0;

    /* Another CPU's write may still be on its way there. */
    if (now >= l->asked && now < l->asked + l->busy) {
        wait = l->asked + l->busy - now;
        answer->contended = true;
    }
    if (in_stream(core, line)) {
        answer->source = MEM_STREAM;
        return wait + p->stream_ns;
    }
    if (l->in_l3) {
        answer->source = MEM_L3;
        return wait + way(p->l3_ns, l->in_l3 & 1u << core->socket, answer);
    }
    if (l->holders) {
        answer->source = MEM_CLEAN;
        return wait + way(p->clean_ns,
                          l->holders & m->on_socket[core->socket], answer);
    }
    answer->source = MEM_DRAM;
    return wait + way(p->dram_ns, home_of(m, line) == core->socket, answer);
}

MemAnswer mem_access(MemModel *m, int cpu, uint64_t number, MemKind kind,
                     uint64_t now)
{
    const MemProfile *p = &m->profile;
    MemAnswer answer = { .source = MEM_L1 };
    uint32_t line = number;
    Line *l = &m->line[line];
    uint64_t me = 1ull << cpu;
    bool write = kind != MEM_LOAD;
    uint64_t takes = 0;

    assert(cpu >= 0 && cpu < m->cpus && number < m->lines);
    if (l->holders & me && (!write || l->state & EXCLUSIVE)) {
        /* The next CPU to ask for it may be behind in time. */
        answer.contended = is_hot(m, l, now);
        if (tags_find(&m->cores[cpu].l1, line) < 0) {
            answer.source = MEM_L2;
            takes = p->l2_ns;
        }
    } else if (write ? l->holders : l->state & EXCLUSIVE) {
        if (l->holders == me) {
            /* It shared the line with others that have dropped it since. */
            answer.source = MEM_UPGRADE;
            takes = p->l3_ns.same;
            l->in_l3 = 0;
        } else {
            takes = ask_others(m, cpu, line, write, now, &answer);
        }
    } else {
        takes = fetch(m, cpu, line, now, &answer);
    }

    if (!l->holders) {
        /* The L3 hands it over. */
        l->state = EXCLUSIVE;
        l->in_l3 = 0;
    }
    if (write) {
        l->state = EXCLUSIVE | DIRTY;
    }
    if (!(l->holders & me)) {
        put_into_l2(m, cpu, line);
    }
    answer.slot = put_into_l1(m, cpu, line);
    assert(l->holders & me);
    assert(!(l->state & EXCLUSIVE) || l->holders == me);

    if (kind == MEM_LOAD) {
        takes = takes * p->load_percent / 100;
    } else if (kind == MEM_STORE) {
        takes = takes * p->store_percent / 100;
    } else {
        takes += p->atomic_ns;
    }
    answer.ticks = takes;
    m->count[answer.source]++;
    m->ticks[answer.source] += takes;
    return answer;
}

void mem_dma_write(MemModel *m, uint64_t line)
{
    assert(line < m->lines);
    take_from_others(m, -1, line);
    m->line[line].state = 0;
    if (m->profile.dma_to_l3) {
        put_into_l3(m, 0, line);
    }
}

int mem_l1_slots(const MemModel *m)
{
    return m->profile.l1.sets * m->profile.l1.ways;
}

uint64_t mem_count(const MemModel *m, MemSource source)
{
    assert(source < MEM_NR_SOURCES);
    return m->count[source];
}

uint64_t mem_ticks(const MemModel *m, MemSource source)
{
    assert(source < MEM_NR_SOURCES);
    return m->ticks[source];
}

/* A model's life */

int mem_socket(const MemModel *m, int cpu)
{
    assert(cpu >= 0 && cpu < m->cpus);
    return m->cores[cpu].socket;
}

void mem_place(MemModel *m, uint64_t first, uint64_t lines, int socket)
{
    assert((uint32_t)socket < m->profile.sockets);
    m->home[socket] = (Home) { .first = first, .lines = lines };
}

static void scale(MemLatency *latency, uint32_t by)
{
    latency->same *= by;
    latency->other *= by;
}

void mem_free(MemModel *m)
{
    int i;

    if (!m) {
        return;
    }
    for (i = 0; m->cores && i < m->cpus; i++) {
        tags_free(&m->cores[i].l1);
        tags_free(&m->cores[i].l2);
    }
    for (i = 0; i < MEM_MAX_SOCKETS; i++) {
        tags_free(&m->l3[i]);
    }
    free(m->cores);
    if (m->line) {
        munmap(m->line, m->lines * sizeof(Line));
    }
    free(m);
}

MemModel *mem_new(const MemProfile *profile, int cpus, uint64_t lines,
                  uint32_t ticks_per_ns, uint64_t moment,
                  MemForget *forget, void *opaque)
{
    MemModel *m = calloc(1, sizeof(*m));
    bool ok = m && cpus <= MEM_MAX_CPUS && lines < NO_LINE;
    MemProfile *p;
    uint32_t i;

    if (!ok) {
        free(m);
        return NULL;
    }
    m->profile = *profile;
    m->cpus = cpus;
    m->lines = lines;
    m->moment = moment;
    m->forget = forget;
    m->opaque = opaque;
    p = &m->profile;
    p->l2_ns *= ticks_per_ns;
    p->stream_ns *= ticks_per_ns;
    p->atomic_ns *= ticks_per_ns;
    scale(&p->l3_ns, ticks_per_ns);
    scale(&p->dram_ns, ticks_per_ns);
    scale(&p->clean_ns, ticks_per_ns);
    scale(&p->modified_ns, ticks_per_ns);

    /* Only what is touched takes memory of the host. */
    m->line = mmap(NULL, lines * sizeof(Line), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m->line == MAP_FAILED) {
        m->line = NULL;
    }
    m->cores = calloc(cpus, sizeof(*m->cores));
    ok = m->line && m->cores;
    for (i = 0; ok && i < (uint32_t)cpus; i++) {
        Core *core = &m->cores[i];

        core->socket = i * p->sockets / cpus;
        m->on_socket[core->socket] |= 1ull << i;
        memset(core->stream, 0xff, sizeof(core->stream));
        ok = tags_init(&core->l1, p->l1) && tags_init(&core->l2, p->l2);
    }
    for (i = 0; ok && i < p->sockets; i++) {
        ok = tags_init(&m->l3[i], p->l3);
    }
    if (!ok) {
        mem_free(m);
        m = NULL;
    }
    return m;
}
