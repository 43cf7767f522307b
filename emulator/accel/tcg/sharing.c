/*
 * What CPUs share: accesses that missed L1, by place and instruction.
 *
 * The file is text.  A line begins with "miss" (no other CPU had a hand in
 * it) or with "share", and has in hexadecimal: the instruction's address; then
 * in decimal its kind (0 load, 1 store, 2 locked), whether another socket had
 * a hand in it (1) or not (0), how often, and what it took in ps; then in
 * hexadecimal the CPUs that did it, as bits.  "share" goes on with the line's
 * number in memory and the address accessed.
 *
 * Only the vCPU thread is here, and at the very end the main thread, when the
 * other one runs no more.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "system/system.h"

#include "sharing.h"

typedef struct Place {
    vaddr pc;
    vaddr addr;         /* of a miss: 0 */
    uint32_t line;
    uint16_t kind;
    uint16_t far;
    uint64_t count;
    uint64_t ticks;
    uint64_t cpus;
} Place;

bool sharing_on;

static struct {
    char *file;
    int64_t speed;
    GHashTable *places;
} sharing;

static guint place_hash(gconstpointer p)
{
    const Place *place = p;
    uint64_t mixed = (place->pc * 31 + place->addr) * 31 + place->line;

    return (mixed ^ mixed >> 32) * 8 + place->kind * 2 + place->far;
}

static gboolean place_equal(gconstpointer p, gconstpointer q)
{
    const Place *a = p;
    const Place *b = q;

    return a->pc == b->pc && a->addr == b->addr && a->line == b->line &&
           a->kind == b->kind && a->far == b->far;
}

static void write_place(gpointer key, gpointer value, gpointer file)
{
    const Place *p = key;

    fprintf(file, "%s %" VADDR_PRIx " %u %u %" PRIu64 " %" PRIu64 " %" PRIx64,
            p->addr ? "share" : "miss", p->pc, p->kind, p->far, p->count,
            p->ticks * 1000 / sharing.speed, p->cpus);
    if (p->addr) {
        fprintf(file, " %x %" VADDR_PRIx, p->line, p->addr);
    }
    fputc('\n', file);
}

static void write_all(Notifier *notifier, void *data)
{
    FILE *file = fopen(sharing.file, "w");

    if (file) {
        g_hash_table_foreach(sharing.places, write_place, file);
    }
    if (!file || fclose(file)) {
        error_report("%s: %s", sharing.file, strerror(errno));
    }
}

void sharing_start(const char *file, int64_t speed)
{
    static Notifier at_exit = { .notify = write_all };

    assert(!sharing.places);
    sharing.file = g_strdup(file);
    sharing.speed = speed;
    sharing.places = g_hash_table_new_full(place_hash, place_equal, g_free,
                                           NULL);
    sharing_on = true;
    qemu_add_exit_notifier(&at_exit);
}

void sharing_count(bool on)
{
    if (sharing.places) {
        if (on) {
            g_hash_table_remove_all(sharing.places);
        }
        sharing_on = on;
    }
}

void sharing_note(int cpu, uint64_t line, vaddr addr, vaddr pc, MemKind kind,
                  const MemAnswer *answer)
{
    bool shared = answer->source >= MEM_CLEAN || answer->contended;
    Place key = {
        .pc = pc, .kind = kind, .far = answer->far,
        .addr = shared ? addr : 0, .line = shared ? line : 0,
    };
    Place *place = g_hash_table_lookup(sharing.places, &key);

    assert(cpu < MEM_MAX_CPUS);
    if (!place) {
        place = g_memdup2(&key, sizeof(key));
        g_hash_table_add(sharing.places, place);
    }
    place->count++;
    place->ticks += answer->ticks;
    place->cpus |= 1ull << cpu;
}
