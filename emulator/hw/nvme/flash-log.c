/*
 * What the flash device tells.  See flash-log.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Above flash-io.h; changes nothing but the clock.
 */

#include "qemu/osdep.h"
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

/* The vendor log page: little endian, this order; grows at its end only. */
typedef struct QEMU_PACKED NvmeFlashLogDie {
    uint64_t busy_ns;
    uint64_t wait_ns;
    uint64_t wait_max_ns;
    uint64_t reads;
    uint64_t programs;
    uint64_t erases;
} NvmeFlashLogDie;

typedef struct QEMU_PACKED NvmeFlashLog {
    char magic[4];
    uint16_t version;
    uint16_t header_len;
    uint16_t die_len;
    uint16_t reserved;
    uint32_t channels;
    uint32_t dies_per_channel;
    uint32_t planes;
    uint32_t page_size;
    uint32_t program_pages;
    uint32_t block_pages;
    uint32_t zone_dies;
    uint64_t now_ns;
    uint64_t cmds[FLASH_CMD_RESET + 1];
    uint64_t errors;
    uint64_t read_bytes;
    uint64_t written_bytes;
    uint64_t programmed_bytes;
    uint64_t buffer_hits;
    uint64_t reads;
    uint64_t programs_full;
    uint64_t programs_padded;
    uint64_t programs_finish;
    uint64_t programs_retried;
    uint64_t erases;
    uint64_t buffer_used;
    uint64_t buffer_max;
    uint64_t buffer_mean;
    uint64_t waited;
    uint64_t cuts;
    uint64_t lost_bytes;
    uint64_t late;
    uint64_t late_ns;
    uint64_t late_max_ns;
    uint64_t powered;
    uint64_t commits;
    uint64_t trims;
} NvmeFlashLog;

uint16_t nvme_flash_log(NvmeCtrl *n, NvmeRequest *req, uint32_t len,
                        uint64_t off)
{
    uint32_t nsid = le32_to_cpu(req->cmd.nsid);
    NvmeNamespace *ns = NULL;
    g_autofree NvmeFlashLog *log = NULL;
    NvmeFlashLogDie *die;
    const FlashStats *s;
    const FlashShape *shape;
    FlashDev *dev;
    size_t size;

    if (nsid == NVME_NSID_BROADCAST || !nsid) {
        for (uint32_t i = 1; i <= NVME_MAX_NAMESPACES && !ns; i++) {
            ns = nvme_ns(n, i) && nvme_ns(n, i)->flash ? nvme_ns(n, i) : NULL;
        }
    } else {
        ns = nvme_ns(n, nsid);
    }
    if (!ns || !ns->flash) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    nvme_flash_run(ns->flash);
    dev = &ns->flash->dev;
    s = &dev->stats;
    shape = &dev->media.shape;
    size = sizeof(*log) + dev->time.nr_dies * sizeof(*die);
    if (off >= size) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    log = g_malloc0(size);
    memcpy(log->magic, "MTFL", 4);
    log->version = cpu_to_le16(1);
    log->header_len = cpu_to_le16(sizeof(*log));
    log->die_len = cpu_to_le16(sizeof(*die));
    log->channels = cpu_to_le32(shape->channels);
    log->dies_per_channel = cpu_to_le32(shape->dies_per_channel);
    log->planes = cpu_to_le32(shape->planes);
    log->page_size = cpu_to_le32(shape->page_size);
    log->program_pages = cpu_to_le32(shape->program_pages);
    log->block_pages = cpu_to_le32(shape->pages_per_block);
    log->zone_dies = cpu_to_le32(shape->zone_dies);
    log->now_ns = cpu_to_le64(dev->time.now);
    for (int i = 0; i <= FLASH_CMD_RESET; i++) {
        log->cmds[i] = cpu_to_le64(s->cmds[i]);
    }
    log->errors = cpu_to_le64(s->errors);
    log->read_bytes = cpu_to_le64(s->read_bytes);
    log->written_bytes = cpu_to_le64(s->written_bytes);
    log->programmed_bytes = cpu_to_le64(s->programmed_bytes);
    log->buffer_hits = cpu_to_le64(s->buffer_hits);
    log->reads = cpu_to_le64(s->reads);
    log->programs_full = cpu_to_le64(s->programs_full);
    log->programs_padded = cpu_to_le64(s->programs_padded);
    log->programs_finish = cpu_to_le64(s->programs_finish);
    log->programs_retried = cpu_to_le64(s->programs_retried);
    log->erases = cpu_to_le64(s->erases);
    log->buffer_used = cpu_to_le64(s->buffer_used);
    log->buffer_max = cpu_to_le64(s->buffer_max);
    log->buffer_mean = cpu_to_le64(flash_buffer_mean(dev));
    log->waited = cpu_to_le64(s->waited);
    log->cuts = cpu_to_le64(s->cuts);
    log->lost_bytes = cpu_to_le64(s->lost_bytes);
    log->late = cpu_to_le64(ns->flash->late);
    log->late_ns = cpu_to_le64(ns->flash->late_ns);
    log->late_max_ns = cpu_to_le64(ns->flash->late_max_ns);
    log->powered = cpu_to_le64(ns->flash->powered);
    log->commits = cpu_to_le64(s->cmds[FLASH_CMD_COMMIT]);
    log->trims = cpu_to_le64(s->cmds[FLASH_CMD_TRIM]);
    die = (NvmeFlashLogDie *)(log + 1);
    for (uint32_t i = 0; i < dev->time.nr_dies; i++, die++) {
        const FlashDie *d = &dev->time.dies[i];

        die->busy_ns = cpu_to_le64(d->busy_ns);
        die->wait_ns = cpu_to_le64(d->wait_ns);
        die->wait_max_ns = cpu_to_le64(d->wait_max_ns);
        die->reads = cpu_to_le64(d->ops[FLASH_OP_READ]);
        die->programs = cpu_to_le64(d->ops[FLASH_OP_PROGRAM]);
        die->erases = cpu_to_le64(d->ops[FLASH_OP_ERASE]);
    }
    return nvme_c2h(n, (uint8_t *)log + off, MIN(size - off, len), req);
}

/* Nothing wears out here, so all of the spare is left. */
void nvme_flash_health(NvmeNamespace *ns, NvmeFlashHealth *h)
{
    const FlashDev *dev = &ns->flash->dev;
    const FlashStats *s = &dev->stats;

    nvme_flash_run(ns->flash);
    nvme_flash_arm(ns->flash);
    h->read_bytes += s->reads * dev->row_blocks * dev->media.shape.block_size;
    h->written_bytes += s->programmed_bytes;
    h->errors += ns->flash->media_errors;
    h->starts = MAX(h->starts, 1 + s->cuts);
    h->cuts += s->cuts;
    h->spare = 100;
}

static void json_u64(GString *s, const char *name, uint64_t value)
{
    g_string_append_printf(s, "%s\"%s\":%" PRIu64,
                           s->str[s->len - 1] == '{' ? "" : ",", name, value);
}

/* The same as JSON, in one line. */
char *nvme_flash_json(NvmeFlash *f)
{
    static const char *const cmds[FLASH_CMD_KINDS] = {
        "read", "write", "append", "flush", "open", "close", "finish", "reset",
        "commit", "trim",
    };
    FlashDev *dev = &f->dev;
    const FlashStats *s = &dev->stats;
    const FlashShape *shape = &dev->media.shape;
    GString *g = g_string_new("{");

    json_u64(g, "version", 1);
    json_u64(g, "now_ns", dev->time.now);
    json_u64(g, "powered", f->powered);
    g_string_append(g, ",\"geometry\":{");
    json_u64(g, "channels", shape->channels);
    json_u64(g, "dies", shape->dies_per_channel);
    json_u64(g, "planes", shape->planes);
    json_u64(g, "page", shape->page_size);
    json_u64(g, "program_pages", shape->program_pages);
    json_u64(g, "block_pages", shape->pages_per_block);
    json_u64(g, "zone_dies", shape->zone_dies);
    json_u64(g, "zones", shape->nr_zones);
    json_u64(g, "zone_size", shape->zone_blocks * shape->block_size);
    json_u64(g, "zone_capacity", shape->zone_cap * shape->block_size);
    g_string_append(g, "},\"commands\":{");
    for (int i = 0; i < FLASH_CMD_KINDS; i++) {
        json_u64(g, cmds[i], s->cmds[i]);
    }
    g_string_append(g, "}");
    json_u64(g, "errors", s->errors);
    json_u64(g, "read_bytes", s->read_bytes);
    json_u64(g, "written_bytes", s->written_bytes);
    json_u64(g, "programmed_bytes", s->programmed_bytes);
    json_u64(g, "buffer_hits", s->buffer_hits);
    json_u64(g, "reads", s->reads);
    json_u64(g, "programs_full", s->programs_full);
    json_u64(g, "programs_padded", s->programs_padded);
    json_u64(g, "programs_finish", s->programs_finish);
    json_u64(g, "programs_retried", s->programs_retried);
    json_u64(g, "erases", s->erases);
    json_u64(g, "buffer_used", s->buffer_used);
    json_u64(g, "buffer_max", s->buffer_max);
    json_u64(g, "buffer_mean", flash_buffer_mean(dev));
    json_u64(g, "waited", s->waited);
    json_u64(g, "held", f->held);
    json_u64(g, "held_max", f->held_max);
    json_u64(g, "cuts", s->cuts);
    json_u64(g, "lost_bytes", s->lost_bytes);
    json_u64(g, "late", f->late);
    json_u64(g, "late_ns", f->late_ns);
    json_u64(g, "late_max_ns", f->late_max_ns);
    g_string_append(g, ",\"dies\":[");
    for (uint32_t i = 0; i < dev->time.nr_dies; i++) {
        const FlashDie *d = &dev->time.dies[i];

        g_string_append(g, i ? ",{" : "{");
        json_u64(g, "busy_ns", d->busy_ns);
        json_u64(g, "wait_ns", d->wait_ns);
        json_u64(g, "wait_max_ns", d->wait_max_ns);
        json_u64(g, "reads", d->ops[FLASH_OP_READ]);
        json_u64(g, "programs", d->ops[FLASH_OP_PROGRAM]);
        json_u64(g, "erases", d->ops[FLASH_OP_ERASE]);
        g_string_append(g, "}");
    }
    g_string_append(g, "]");
    if (f->personality->tell) {
        f->personality->tell(f->ns, g);
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
