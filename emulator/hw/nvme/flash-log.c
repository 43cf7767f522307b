/*
 * What the flash device tells.  See flash-log.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Above flash-io.h; changes nothing but the clock.
 */

#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "chardev/char-fe.h"

#include "flash-io.h"
#include "flash-log.h"
#include "flash-ns.h"

typedef struct NvmeFlashStream {
    CharBackend backend;
    QEMUTimer *timer;
    uint64_t interval_ns;
} NvmeFlashStream;

/*
 * What is counted, each number once: its name in JSON, its place in the log
 * page, where it is in NvmeFlash or which function knows it.
 */
typedef struct NvmeFlashCounter {
    const char *name;
    int slot;                   /* of NvmeFlashLog.counters, or NOT_LOGGED */
    size_t offset;              /* of a 64-bit number in NvmeFlash */
    uint64_t (*get)(const NvmeFlash *f);        /* instead */
} NvmeFlashCounter;

#define NOT_LOGGED  (-1)
#define LOGGED      32          /* numbers in the log page, dies apart */

#define COUNTER(_slot, _name, _field) \
    { _name, _slot, offsetof(NvmeFlash, _field), NULL }
#define STAT(_slot, _name) \
    { #_name, _slot, offsetof(NvmeFlash, dev.stats._name), NULL }
#define COMMAND(_slot, _name, _kind) \
    { _name, _slot, offsetof(NvmeFlash, dev.stats.cmds[_kind]), NULL }

static uint64_t nvme_flash_powered(const NvmeFlash *f)
{
    return f->powered;
}

static uint64_t nvme_flash_buffer_mean(const NvmeFlash *f)
{
    return flash_buffer_mean(&f->dev);
}

static const NvmeFlashCounter nvme_flash_now[] = {
    COUNTER(0, "now_ns", dev.time.now),
    { "powered", 29, 0, nvme_flash_powered },
};

static const NvmeFlashCounter nvme_flash_commands[] = {
    COMMAND(1, "read", FLASH_CMD_READ),
    COMMAND(2, "write", FLASH_CMD_WRITE),
    COMMAND(3, "append", FLASH_CMD_APPEND),
    COMMAND(4, "flush", FLASH_CMD_FLUSH),
    COMMAND(5, "open", FLASH_CMD_OPEN),
    COMMAND(6, "close", FLASH_CMD_CLOSE),
    COMMAND(7, "finish", FLASH_CMD_FINISH),
    COMMAND(8, "reset", FLASH_CMD_RESET),
    COMMAND(30, "commit", FLASH_CMD_COMMIT),
    COMMAND(31, "trim", FLASH_CMD_TRIM),
};

static const NvmeFlashCounter nvme_flash_counters[] = {
    STAT(9, errors),
    STAT(10, read_bytes),
    STAT(11, written_bytes),
    STAT(12, programmed_bytes),
    STAT(13, buffer_hits),
    STAT(14, reads),
    STAT(NOT_LOGGED, read_retries),
    STAT(15, programs_full),
    STAT(16, programs_padded),
    STAT(17, programs_finish),
    STAT(18, programs_retried),
    STAT(19, erases),
    STAT(20, buffer_used),
    STAT(21, buffer_max),
    { "buffer_mean", 22, 0, nvme_flash_buffer_mean },
    STAT(23, waited),
    COUNTER(NOT_LOGGED, "held", held),
    COUNTER(NOT_LOGGED, "held_max", held_max),
    STAT(24, cuts),
    STAT(25, lost_bytes),
    COUNTER(26, "late", late),
    COUNTER(27, "late_ns", late_ns),
    COUNTER(28, "late_max_ns", late_max_ns),
};

/* 32-bit numbers of FlashShape, in the order of NvmeFlashLog.geometry. */
static const struct {
    const char *name;
    size_t offset;
} nvme_flash_geometry[] = {
    { "channels", offsetof(FlashShape, channels) },
    { "dies", offsetof(FlashShape, dies_per_channel) },
    { "planes", offsetof(FlashShape, planes) },
    { "page", offsetof(FlashShape, page_size) },
    { "program_pages", offsetof(FlashShape, program_pages) },
    { "block_pages", offsetof(FlashShape, pages_per_block) },
    { "zone_dies", offsetof(FlashShape, zone_dies) },
};

/* 64-bit numbers of FlashDie, in the order of a die's record in the log. */
static const struct {
    const char *name;
    size_t offset;
} nvme_flash_die[] = {
    { "busy_ns", offsetof(FlashDie, busy_ns) },
    { "wait_ns", offsetof(FlashDie, wait_ns) },
    { "wait_max_ns", offsetof(FlashDie, wait_max_ns) },
    { "reads", offsetof(FlashDie, ops[FLASH_OP_READ]) },
    { "programs", offsetof(FlashDie, ops[FLASH_OP_PROGRAM]) },
    { "erases", offsetof(FlashDie, ops[FLASH_OP_ERASE]) },
};

static uint32_t u32_at(const void *base, size_t offset)
{
    return *(const uint32_t *)((const char *)base + offset);
}

static uint64_t u64_at(const void *base, size_t offset)
{
    return *(const uint64_t *)((const char *)base + offset);
}

static uint64_t nvme_flash_count_of(const NvmeFlash *f,
                                    const NvmeFlashCounter *c)
{
    return c->get ? c->get(f) : u64_at(f, c->offset);
}

/* The vendor log page: little endian; the counters grow at their end only. */
typedef struct QEMU_PACKED NvmeFlashLog {
    char magic[4];
    uint16_t version;
    uint16_t header_len;        /* a record for each die follows */
    uint16_t die_len;
    uint16_t reserved;
    uint32_t geometry[ARRAY_SIZE(nvme_flash_geometry)];
    uint64_t counters[LOGGED];
    uint64_t dies[][ARRAY_SIZE(nvme_flash_die)];
} NvmeFlashLog;

static void nvme_flash_log_counters(const NvmeFlash *f, NvmeFlashLog *log,
                                    const NvmeFlashCounter *c, size_t n)
{
    for (; n--; c++) {
        assert(c->slot < LOGGED);
        if (c->slot != NOT_LOGGED) {
            log->counters[c->slot] = cpu_to_le64(nvme_flash_count_of(f, c));
        }
    }
}

static void nvme_flash_log_fill(const NvmeFlash *f, NvmeFlashLog *log)
{
    const FlashDev *dev = &f->dev;

    memcpy(log->magic, "MTFL", 4);
    log->version = cpu_to_le16(1);
    log->header_len = cpu_to_le16(sizeof(*log));
    log->die_len = cpu_to_le16(sizeof(log->dies[0]));
    for (size_t i = 0; i < ARRAY_SIZE(nvme_flash_geometry); i++) {
        log->geometry[i] = cpu_to_le32(u32_at(&dev->media.shape,
                                              nvme_flash_geometry[i].offset));
    }
    nvme_flash_log_counters(f, log, nvme_flash_now,
                            ARRAY_SIZE(nvme_flash_now));
    nvme_flash_log_counters(f, log, nvme_flash_commands,
                            ARRAY_SIZE(nvme_flash_commands));
    nvme_flash_log_counters(f, log, nvme_flash_counters,
                            ARRAY_SIZE(nvme_flash_counters));
    for (uint32_t i = 0; i < dev->time.nr_dies; i++) {
        for (size_t j = 0; j < ARRAY_SIZE(nvme_flash_die); j++) {
            log->dies[i][j] = cpu_to_le64(u64_at(&dev->time.dies[i],
                                                 nvme_flash_die[j].offset));
        }
    }
}

/* The namespace that was asked for; without a number, the first on flash. */
static NvmeNamespace *nvme_flash_log_ns(NvmeCtrl *n, uint32_t nsid)
{
    NvmeNamespace *ns = NULL;

    if (nsid == NVME_NSID_BROADCAST || !nsid) {
        for (uint32_t i = 1; i <= NVME_MAX_NAMESPACES && !ns; i++) {
            ns = nvme_ns(n, i) && nvme_ns(n, i)->flash ? nvme_ns(n, i) : NULL;
        }
    } else {
        ns = nvme_ns(n, nsid);
    }
    return ns && ns->flash ? ns : NULL;
}

uint16_t nvme_flash_log(NvmeCtrl *n, NvmeRequest *req, uint32_t len,
                        uint64_t off)
{
    NvmeNamespace *ns = nvme_flash_log_ns(n, le32_to_cpu(req->cmd.nsid));
    g_autofree NvmeFlashLog *log = NULL;
    size_t size;

    if (!ns) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    nvme_flash_run(ns->flash);
    size = sizeof(*log) + ns->flash->dev.time.nr_dies * sizeof(log->dies[0]);
    if (off >= size) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    log = g_malloc0(size);
    nvme_flash_log_fill(ns->flash, log);
    return nvme_c2h(n, (uint8_t *)log + off, MIN(size - off, len), req);
}

#define NVME_FLASH_SPARE_THRESHOLD  10      /* percent */

/* A program that failed takes an erase block of the reserve, on all planes. */
static uint8_t nvme_flash_spare(const NvmeFlash *f)
{
    uint64_t gone = MIN(f->dev.stats.programs_retried, f->reserve);

    return f->reserve ? 100 * (f->reserve - gone) / f->reserve : 100;
}

/* The mean of all erase blocks: the image counts their erases. */
static uint8_t nvme_flash_used(const NvmeFlash *f)
{
    const FlashMedia *m = &f->dev.media;
    uint32_t pe_cycles = f->dev.tuning.pe_cycles;
    uint64_t erases = 0;

    if (!pe_cycles) {
        return 0;
    }
    for (uint64_t i = 0; i < m->shape.nr_zones; i++) {
        erases += m->zones[i].worn;
    }
    return MIN(100 * erases / (f->dev.erase_blocks * m->shape.nr_zones) /
               pe_cycles, UINT8_MAX);
}

void nvme_flash_health(NvmeNamespace *ns, NvmeFlashHealth *h)
{
    const FlashDev *dev = &ns->flash->dev;
    const FlashStats *s = &dev->stats;

    nvme_flash_run(ns->flash);
    nvme_flash_arm(ns->flash);
    h->read_bytes += s->reads * dev->page_blocks * dev->media.shape.block_size;
    h->written_bytes += s->programmed_bytes;
    h->errors += ns->flash->media_errors;
    h->starts = MAX(h->starts, 1 + s->cuts);
    h->cuts += s->cuts;
    h->spare = MIN(h->flash ? h->spare : 100, nvme_flash_spare(ns->flash));
    h->used = MAX(h->used, nvme_flash_used(ns->flash));
    h->life += muldiv64_round_up(ns->flash->bytes, dev->tuning.pe_cycles,
                                 1000000000);
    if (ns->flash->reserve) {
        h->spare_threshold = NVME_FLASH_SPARE_THRESHOLD;
    }
    h->flash = true;
}

static void json_u64(GString *s, const char *name, uint64_t value)
{
    g_string_append_printf(s, "%s\"%s\":%" PRIu64,
                           s->str[s->len - 1] == '{' ? "" : ",", name, value);
}

static void json_counters(GString *g, const NvmeFlash *f,
                          const NvmeFlashCounter *c, size_t n)
{
    for (; n--; c++) {
        json_u64(g, c->name, nvme_flash_count_of(f, c));
    }
}

static void json_geometry(GString *g, const FlashShape *s)
{
    g_string_append(g, ",\"geometry\":{");
    for (size_t i = 0; i < ARRAY_SIZE(nvme_flash_geometry); i++) {
        json_u64(g, nvme_flash_geometry[i].name,
                 u32_at(s, nvme_flash_geometry[i].offset));
    }
    json_u64(g, "zones", s->nr_zones);
    json_u64(g, "zone_size", s->zone_blocks * s->block_size);
    json_u64(g, "zone_capacity", s->zone_cap * s->block_size);
    g_string_append(g, "}");
}

static void json_dies(GString *g, const FlashTime *ft)
{
    g_string_append(g, ",\"dies\":[");
    for (uint32_t i = 0; i < ft->nr_dies; i++) {
        g_string_append(g, i ? ",{" : "{");
        for (size_t j = 0; j < ARRAY_SIZE(nvme_flash_die); j++) {
            json_u64(g, nvme_flash_die[j].name,
                     u64_at(&ft->dies[i], nvme_flash_die[j].offset));
        }
        g_string_append(g, "}");
    }
    g_string_append(g, "]");
}

/* The same as JSON, in one line. */
char *nvme_flash_json(NvmeFlash *f)
{
    GString *g = g_string_new("{");

    json_u64(g, "version", 1);
    json_counters(g, f, nvme_flash_now, ARRAY_SIZE(nvme_flash_now));
    json_geometry(g, &f->dev.media.shape);
    g_string_append(g, ",\"commands\":{");
    json_counters(g, f, nvme_flash_commands, ARRAY_SIZE(nvme_flash_commands));
    g_string_append(g, "}");
    json_counters(g, f, nvme_flash_counters, ARRAY_SIZE(nvme_flash_counters));
    json_dies(g, &f->dev.time);
    if (f->personality->print) {
        f->personality->print(f->ns, g);
    }
    g_string_append(g, "}");
    return g_string_free(g, false);
}

static void nvme_flash_stream(void *opaque)
{
    NvmeFlash *f = opaque;
    NvmeFlashStream *s = f->stream;
    g_autofree char *json = NULL;

    nvme_flash_run(f);
    json = nvme_flash_json(f);
    qemu_chr_fe_write_all(&s->backend, (uint8_t *)json, strlen(json));
    qemu_chr_fe_write_all(&s->backend, (const uint8_t *)"\n", 1);
    timer_mod_ns(s->timer, f->dev.time.now + s->interval_ns);
    nvme_flash_arm(f);
}

bool nvme_flash_stream_open(NvmeFlash *f, const char *chardev,
                            uint32_t interval_ms, Error **errp)
{
    Chardev *chr = qemu_chr_find(chardev);
    g_autofree NvmeFlashStream *s = g_new0(NvmeFlashStream, 1);

    if (!chr) {
        error_setg(errp, "flash.stream: no chardev '%s'", chardev);
        return false;
    }
    if (!qemu_chr_fe_init(&s->backend, chr, errp)) {
        return false;
    }
    s->interval_ns = (uint64_t)interval_ms * SCALE_MS;
    f->stream = g_steal_pointer(&s);
    return true;
}

void nvme_flash_stream_start(NvmeFlash *f)
{
    if (f->stream) {
        f->stream->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, nvme_flash_stream,
                                        f);
        timer_mod_ns(f->stream->timer, f->dev.time.now);
    }
}

void nvme_flash_stream_stop(NvmeFlash *f)
{
    if (f->stream) {
        timer_free(f->stream->timer);
        qemu_chr_fe_deinit(&f->stream->backend, false);
        g_clear_pointer(&f->stream, g_free);
    }
}
