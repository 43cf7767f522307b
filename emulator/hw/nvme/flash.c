/*
 * The flash device behind an NVMe namespace: properties, set-up, and the list
 * of personalities.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * On top of all rooms of the device; flash.h says which file calls what.  Runs
 * under the big QEMU lock.
 */

#include "qemu/osdep.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qobject/qdict.h"
#include "system/block-backend.h"
#include "system/cpu-timers.h"

#include "atomic.h"
#include "flash-blackbox.h"
#include "flash.h"
#include "flash-ns.h"

/* The drives that there are; the first is the default. */
static const NvmeFlashPersonality *const nvme_flash_personalities[] = {
    &nvme_flash_zns,
    &nvme_flash_ocssd,
    &nvme_flash_blackbox,
};

/* What the user asked for; the shape is fixed once the device exists. */
typedef struct NvmeFlashParams {
    char *media;
    char *personality;
    char *page_types;
    uint64_t size;
    uint32_t channels;
    uint32_t dies;
    uint32_t planes;
    uint64_t page;
    uint32_t program_pages;
    uint32_t block_pages;
    uint32_t blocks;
    uint32_t zone_dies;
    char *stream;
    char *journal;
    uint32_t stream_ms;
} NvmeFlashParams;

/* The device with what the user asked for; ns->flash_conf is its first part. */
typedef struct NvmeFlashConf {
    NvmeFlash flash;
    NvmeFlashParams params;
} NvmeFlashConf;

static NvmeFlashConf *conf_of(const NvmeNamespace *ns)
{
    return container_of(ns->flash_conf, NvmeFlashConf, flash);
}

uint16_t nvme_flash_read(NvmeCtrl *n, NvmeRequest *req)
{
    return req->ns->flash->personality->read(n, req);
}

bool nvme_flash_exec_other(NvmeCtrl *n, NvmeRequest *req, uint16_t *status)
{
    return req->ns->flash->personality->exec_other(n, req, status);
}

/* What the controller announces. */

static const struct {
    uint16_t oncs;
    uint8_t opcode;
} nvme_flash_optional[] = {
    { NVME_ONCS_COMPARE, NVME_CMD_COMPARE },
    { NVME_ONCS_DSM, NVME_CMD_DSM },
    { NVME_ONCS_WRITE_ZEROES, NVME_CMD_WRITE_ZEROES },
    { NVME_ONCS_VERIFY, NVME_CMD_VERIFY },
    { NVME_FLASH_COPIES, NVME_CMD_COPY },
};

/* A volatile write cache, which the power takes with it? */
bool nvme_flash_has_cache(NvmeCtrl *n)
{
    bool any = false;

    for (uint32_t i = 1; i <= NVME_MAX_NAMESPACES; i++) {
        NvmeNamespace *ns = nvme_ns(n, i);

        if (ns && (!ns->flash || !ns->flash->dev.plp)) {
            return true;
        }
        any |= ns != NULL;
    }
    return !any;
}

/* An optional command is for all namespaces, or for none. */
void nvme_flash_identify(NvmeCtrl *n, NvmeIdCtrl *id)
{
    uint16_t oncs = le16_to_cpu(id->oncs), ocfs = le16_to_cpu(id->ocfs);

    for (uint32_t i = 1; i <= NVME_MAX_NAMESPACES; i++) {
        NvmeNamespace *ns = nvme_ns(n, i);

        if (!ns || !ns->flash) {
            continue;
        }
        for (size_t j = 0; j < ARRAY_SIZE(nvme_flash_optional); j++) {
            oncs &= ns->flash->personality->oncs |
                    ~nvme_flash_optional[j].oncs;
        }
        ocfs &= ns->flash->personality->ocfs;
    }
    id->oncs = cpu_to_le16(oncs);
    id->ocfs = cpu_to_le16(ocfs);
    if (!nvme_flash_has_cache(n)) {
        id->vwc &= ~NVME_VWC_PRESENT;
    }
}

void nvme_flash_effects(NvmeCtrl *n, NvmeEffectsLog *log, bool nvm)
{
    bool flash = false, ocssd = false;

    for (uint32_t i = 1; i <= NVME_MAX_NAMESPACES; i++) {
        NvmeNamespace *ns = nvme_ns(n, i);

        if (!ns || !ns->flash) {
            continue;
        }
        flash = true;
        ocssd |= ns->flash->personality == &nvme_flash_ocssd;
        for (size_t j = 0; nvm && j < ARRAY_SIZE(nvme_flash_optional); j++) {
            if (!(ns->flash->personality->oncs & nvme_flash_optional[j].oncs)) {
                log->iocs[nvme_flash_optional[j].opcode] = 0;
            }
        }
    }
    if (!flash) {
        log->acs[NVME_ADM_CMD_FLASH] = 0;
    }
    if (!ocssd) {
        log->acs[NVME_ADM_CMD_OCSSD_GEOMETRY] = 0;
        log->iocs[NVME_CMD_OCSSD_RESET] = 0;
        log->iocs[NVME_CMD_OCSSD_WRITE] = 0;
        log->iocs[NVME_CMD_OCSSD_READ] = 0;
        log->iocs[NVME_CMD_OCSSD_COPY] = 0;
    }
}

/* A power cut may tear a write between program units, and inside one. */
static bool nvme_flash_refuses_whole(const NvmeNamespace *ns, const char *name,
                                     uint16_t value, Error **errp)
{
    const NvmeFlashPersonality *personality = ns->flash_conf->personality;
    const NvmeFlashParams *p = &conf_of(ns)->params;
    uint64_t blocks = 1;

    if (personality->whole && personality->whole(ns)) {
        blocks = p->planes * p->page * p->program_pages / ns->lbasz;
    }
    if (!value || value < blocks) {
        return false;
    }
    error_setg(errp, "flash.media: a power cut tears writes of more than "
               "%" PRIu64 " block%s, but %s is %" PRIu16 ": expected %s%"
               PRIu64, blocks, blocks > 1 ? "s" : "", name, value,
               blocks > 1 ? "at most " : "", blocks ? blocks - 1 : 0);
    return true;
}

static bool nvme_flash_refuses_ctrl(const NvmeNamespace *ns, const NvmeCtrl *n,
                                    Error **errp)
{
    return nvme_flash_refuses_whole(ns, "atomic.awupf", n->params.atomic_awupf,
                                    errp);
}

bool nvme_flash_check_ctrl(NvmeCtrl *n, Error **errp)
{
    for (uint32_t i = 1; n->subsys && i <= NVME_MAX_NAMESPACES; i++) {
        NvmeNamespace *ns = nvme_subsys_ns(n->subsys, i);

        if (ns && (!nvme_atomic_suits(ns, n, errp) ||
                   (ns->flash && nvme_flash_refuses_ctrl(ns, n, errp)))) {
            return false;
        }
    }
    return true;
}

/* Properties. */

typedef enum NvmeFlashPropKind {
    FLASH_PROP_BOOL,
    FLASH_PROP_U32,
    FLASH_PROP_U64,
    FLASH_PROP_NS,              /* that something takes */
    FLASH_PROP_SIZE,
    FLASH_PROP_STR,
} NvmeFlashPropKind;

typedef struct NvmeFlashProp {
    const char *name;
    NvmeFlashPropKind kind;
    bool live;                  /* may change while the device runs */
    size_t offset;              /* in NvmeFlashConf */
    const char *help;
} NvmeFlashProp;

#define FIXED(_name, _kind, _field, _help)                      \
    { "flash." _name, FLASH_PROP_ ## _kind, false,              \
      offsetof(NvmeFlashConf, params._field), _help }
#define CHUNK(_name, _kind, _field, _help)                      \
    { "flash." _name, FLASH_PROP_ ## _kind, false,              \
      offsetof(NvmeFlashConf, flash.chunks._field), _help }
#define DRIVE(_name, _kind, _field, _help)                      \
    { "flash." _name, FLASH_PROP_ ## _kind, false,              \
      offsetof(NvmeFlashConf, flash._field), _help }
#define LIVE(_name, _kind, _field, _help)                       \
    { "flash." _name, FLASH_PROP_ ## _kind, true,               \
      offsetof(NvmeFlashConf, flash.dev.tuning._field), _help }

static const NvmeFlashProp nvme_flash_props[] = {
    FIXED("media", STR, media, "image file; switches the flash model on"),
    FIXED("personality", STR, personality,
          "what the host takes the drive for: zns, ocssd, blackbox"),
    FIXED("size", SIZE, size, "bytes of all zones"),
    FIXED("channels", U32, channels, "channels"),
    FIXED("dies", U32, dies, "dies a channel"),
    FIXED("planes", U32, planes, "planes a die, used together"),
    FIXED("page", SIZE, page, "page size of a plane"),
    FIXED("program_pages", U32, program_pages,
          "pages of each plane that one program fills"),
    FIXED("block_pages", U32, block_pages, "pages of an erase block"),
    FIXED("blocks", U32, blocks,
          "erase blocks a plane; 0: as many as the zones need"),
    FIXED("zone_dies", U32, zone_dies, "dies under a zone; 0: all"),
    CHUNK("chunk", SIZE, bytes,
          "ocssd: bytes of a chunk; 0: one erase block on each plane"),
    CHUNK("ws_min", U32, ws_min, "ocssd: blocks that a write has at least"),
    CHUNK("ws_opt", U32, ws_opt, "ocssd: ... at best; 0: a program unit"),
    CHUNK("mw_cunits", U32, mw_cunits,
          "ocssd: blocks of a chunk's end that cannot be read until more come"),
    FIXED("stream", STR, stream, "character device for JSON counters"),
    FIXED("stream_ms", U32, stream_ms, "interval of the stream"),
    FIXED("journal", STR, journal,
          "file that gets all that a power cut could show"),
    DRIVE("hints", BOOL, hints,
          "of a blackbox: takes hints where a write would like to lie"),
    DRIVE("mapping", STR, ftl_config.mapping, "of a blackbox: its FTL"),
    DRIVE("spare", U32, spare,
          "of a blackbox: flash beyond what the host sees, in percent of that"),
    DRIVE("gc_begin", U32, ftl_config.gc_begin,
          "percent of blocks in use at which collection begins"),
    DRIVE("gc_urgent", U32, ftl_config.gc_urgent,
          "... and at which writes wait for it"),
    DRIVE("gc_gain", U32, ftl_config.gc_gain,
          "until then a victim has to give back 1/gain of its blocks"),
    DRIVE("gc_age", BOOL, ftl_config.cost_benefit,
          "victims by benefit over cost, with their age, not the emptiest"),
    DRIVE("hot_cold", BOOL, ftl_config.hot_cold,
          "what is collected goes to blocks of its own"),
    DRIVE("hot_writes", BOOL, ftl_config.hot_writes,
          "... and so does what is written again sooner than most"),
    DRIVE("wear_spread", U32, ftl_config.wear_spread,
          "collection holds a die's blocks to so many erases apart; 0: not"),
    DRIVE("refresh_ns", U64, ftl_config.refresh_ns,
          "collection moves data when it is that old; 0: not"),
    DRIVE("gc_at_once", BOOL, ftl_config.at_once,
          "what is collected is charged to the dies at once, as FEMU does"),
    DRIVE("fdp_persistent", U32, ftl_config.apart,
          "with FDP: handles, the last ones, that are persistently isolated"),
    DRIVE("log_blocks", U32, ftl_config.log_blocks,
          "of a hybrid mapping: log blocks"),
    DRIVE("log_ways", U32, ftl_config.log_ways,
          "... of these, written in turn"),
    DRIVE("seq_logs", U32, ftl_config.seq_logs,
          "... for writes in order; 0: one more (fast), a fifth (last)"),
    DRIVE("map_pages", U32, ftl_config.map_pages,
          "of a map on flash: pages of it in memory"),
    LIVE("read_ns", NS, read_ns, "cell read"),
    LIVE("program_ns", NS, program_ns, "cell program"),
    FIXED("page_types", STR, page_types,
          "READ/PROGRAM:... in place of both, for each page of a word line"),
    LIVE("erase_ns", NS, erase_ns, "erase of a zone's first block on a die"),
    LIVE("erase_more_ns", NS, erase_more_ns,
         "... of each further block; 0: the same"),
    LIVE("channel_rate", SIZE, bus.bytes_per_s,
         "bytes a second of a channel; 0: no transfer time"),
    LIVE("channel_setup_ns", NS, bus.setup_ns, "per transfer"),
    LIVE("channel_switch_ns", NS, bus.switch_ns,
         "... when the one before was of another die"),
    LIVE("turn_read_ns", NS, bus.turn_read_ns,
         "from a read's transfer to the next one, on another channel"),
    LIVE("turn_write_ns", NS, bus.turn_write_ns, "... from a program's"),
    LIVE("link_rate", SIZE, link_rate,
         "bytes a second of the host's link, each way; 0: no transfer time"),
    DRIVE("booked", BOOL, dev.tuning.booked,
          "operations take their time of dies and channels when they come"),
    DRIVE("plane_reads", BOOL, dev.tuning.plane_reads,
          "planes read by themselves: reads of a die's planes overlap"),
    LIVE("cache", BOOL, cache, "a transfer overlaps the cell array's work"),
    LIVE("read_first", BOOL, read_first,
         "reads overtake waiting programs and erases"),
    LIVE("suspend", BOOL, suspend, "reads interrupt programs and erases"),
    LIVE("suspend_ns", NS, suspend_ns, "until an interrupted one has stopped"),
    LIVE("resume_ns", NS, resume_ns, "what it pays when it goes on"),
    LIVE("read_limit", U32, read_limit,
         "reads that pass one program or erase, at most; 0: 64"),
    LIVE("delay_read", BOOL, delay_read, "cell reads take time"),
    LIVE("delay_program", BOOL, delay_program, "cell programs take time"),
    LIVE("delay_erase", BOOL, delay_erase, "erases take time"),
    LIVE("delay_transfer", BOOL, delay_transfer, "transfers take time"),
    LIVE("buffer", SIZE, buffer,
         "write buffer in bytes; 0: a write ends when it is programmed"),
    DRIVE("pe_cycles", U32, dev.tuning.pe_cycles,
          "erases that a block is made for, which SMART refers to; 0: any"),
    DRIVE("wear_out", BOOL, dev.tuning.wear_out,
          "a zone with so many erases goes offline when it is reset"),
    LIVE("worn_read", U32, worn_read,
         "percent of a cell read's time in a block with so many; 0: 100"),
    LIVE("worn_program", U32, worn_program, "... of a program's"),
    LIVE("worn_erase", U32, worn_erase, "... of an erase's"),
    LIVE("retry_erases", U32, retry_erases,
         "a read takes a retry for each so many erases of its block; 0: none"),
    LIVE("retry_age_ns", U64, retry_age_ns,
         "... and for each so long since its zone was begun; 0: none"),
    DRIVE("plp", BOOL, dev.plp,
          "power-loss protection: the buffer survives, and flushes do nothing"),
    DRIVE("zone_caches", U32, dev.nr_caches,
          "the buffer is so many caches of zones, as in FEMU; 0: one for all"),
    LIVE("cache_page_ns", NS, cache_page_ns,
         "... which take 4 KiB of a write in so long"),
    LIVE("service_ns", NS, service_ns, "controller time, one by one"),
    LIVE("read_cmd_ns", NS, cmd_ns[FLASH_CMD_READ], "latency of a read"),
    LIVE("long_read_ns", NS, long_read_ns,
         "... of one of more than 4 KiB; 0: the same"),
    LIVE("write_cmd_ns", NS, cmd_ns[FLASH_CMD_WRITE], "... of a write"),
    LIVE("append_cmd_ns", NS, cmd_ns[FLASH_CMD_APPEND], "... of an append"),
    LIVE("flush_cmd_ns", NS, cmd_ns[FLASH_CMD_FLUSH], "... of a flush"),
    LIVE("open_ns", NS, cmd_ns[FLASH_CMD_OPEN],
         "... of a zone open, explicit or implicit"),
    LIVE("close_ns", NS, cmd_ns[FLASH_CMD_CLOSE], "... of a zone close"),
    LIVE("finish_ns", NS, cmd_ns[FLASH_CMD_FINISH],
         "... of a zone finish, padding apart"),
    LIVE("reset_ns", NS, cmd_ns[FLASH_CMD_RESET],
         "... of a zone reset, erases apart"),
    LIVE("commit_ns", NS, cmd_ns[FLASH_CMD_COMMIT],
         "... of an explicit ZRWA flush"),
};

/* The model adds times up; no sum of those that are let in wraps. */
static bool nvme_flash_visit_ns(Visitor *v, const char *name, uint64_t *ns,
                                Error **errp)
{
    uint64_t given = *ns;

    if (!visit_type_uint64(v, name, &given, errp)) {
        return false;
    }
    if (given > FLASH_MOST_NS) {
        error_setg(errp, "%s is %" PRIu64 ", expected at most %llu", name,
                   given, FLASH_MOST_NS);
        return false;
    }
    *ns = given;
    return true;
}

/*
 * Read or write, as @v goes.  DEFINE_PROP_*() would not do: the setters of
 * qdev refuse once a device is realized, and these go on.
 */
static bool nvme_flash_visit_prop(Visitor *v, const char *name,
                                  NvmeFlashPropKind kind, void *field,
                                  Error **errp)
{
    switch (kind) {
    case FLASH_PROP_BOOL:
        return visit_type_bool(v, name, field, errp);
    case FLASH_PROP_U32:
        return visit_type_uint32(v, name, field, errp);
    case FLASH_PROP_U64:
        return visit_type_uint64(v, name, field, errp);
    case FLASH_PROP_NS:
        return nvme_flash_visit_ns(v, name, field, errp);
    case FLASH_PROP_SIZE:
        return visit_type_size(v, name, field, errp);
    case FLASH_PROP_STR:
        return visit_type_str(v, name, field, errp);
    }
    g_assert_not_reached();
}

static void nvme_flash_get_prop(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    const NvmeFlashProp *p = opaque;
    void *field = (char *)conf_of(NVME_NS(obj)) + p->offset;
    char *empty = (char *)"";

    if (p->kind == FLASH_PROP_STR && !*(char **)field) {
        field = &empty;
    }
    nvme_flash_visit_prop(v, name, p->kind, field, errp);
}

/* Nothing wears out of which nobody says how much it takes. */
static bool nvme_flash_check_wear(const NvmeNamespace *ns, Error **errp)
{
    const FlashTuning *t = &ns->flash_conf->dev.tuning;
    uint64_t refresh = ns->flash_conf->ftl_config.refresh_ns;
    bool worn = t->worn_read || t->worn_program || t->worn_erase;

    if ((t->wear_out || worn) && !t->pe_cycles) {
        error_setg(errp, "flash.%s needs flash.pe_cycles",
                   t->wear_out ? "wear_out" : "worn_...");
    } else if (t->wear_out &&
               ns->flash_conf->personality != &nvme_flash_zns) {
        error_setg(errp, "flash.wear_out is of zoned drives: expected "
                   "flash.personality=zns");
    } else if (refresh && ns->flash_conf->personality != &nvme_flash_blackbox) {
        error_setg(errp, "flash.refresh_ns is of drives with an FTL: expected "
                   "flash.personality=blackbox");
    } else if (refresh && refresh < FTL_LEAST_REFRESH) {
        error_setg(errp, "flash.refresh_ns is %" PRIu64 ", expected 0 or at "
                   "least %llu", refresh, FTL_LEAST_REFRESH);
    } else {
        return true;
    }
    return false;
}

static void nvme_flash_set_prop(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    const NvmeFlashProp *p = opaque;
    NvmeFlash *f = NVME_NS(obj)->flash_conf;
    void *field = (char *)conf_of(f->ns) + p->offset;
    FlashTuning before = f->dev.tuning;
    char *str = NULL;

    if (f->ns->flash) {
        if (!p->live) {
            error_setg(errp, "%s cannot change while the device runs", name);
            return;
        }
        nvme_flash_run(f);
    }
    if (p->kind != FLASH_PROP_STR) {
        nvme_flash_visit_prop(v, name, p->kind, field, errp);
    } else if (nvme_flash_visit_prop(v, name, p->kind, &str, errp)) {
        g_free(*(char **)field);
        *(char **)field = str;
    }
    if (f->ns->flash) {
        if (!nvme_flash_check_wear(f->ns, errp) ||
            !f->personality->check(f->ns, errp)) {
            f->dev.tuning = before;
        }
        nvme_flash_enter(f);
        flash_dev_retune(&f->dev);
        nvme_flash_leave(f);
        nvme_flash_arm(f);
    }
}

static char *nvme_flash_get_stats(Object *obj, Error **errp)
{
    NvmeNamespace *ns = NVME_NS(obj);

    if (!ns->flash) {
        return g_strdup("{}");
    }
    /*
     * In lockstep a vCPU is in the middle of its turn: it must not find the
     * device at an instant that it has not reached.
     */
    if (!icount_lockstep()) {
        nvme_flash_run(ns->flash);
        nvme_flash_arm(ns->flash);
    }
    return nvme_flash_json(ns->flash);
}

static char *nvme_flash_get_fault(Object *obj, Error **errp)
{
    return g_strdup("");
}

static void nvme_flash_set_fault(Object *obj, const char *value, Error **errp)
{
    NvmeNamespace *ns = NVME_NS(obj);

    if (!ns->flash) {
        error_setg(errp, "flash.fault: the device does not run yet");
        return;
    }
    nvme_flash_fault_text(ns->flash, value, errp);
}

void nvme_flash_class_props(ObjectClass *oc)
{
    static const char *const types[] = {
        [FLASH_PROP_BOOL] = "bool", [FLASH_PROP_U32] = "uint32",
        [FLASH_PROP_U64] = "uint64", [FLASH_PROP_NS] = "uint64",
        [FLASH_PROP_SIZE] = "size", [FLASH_PROP_STR] = "str",
    };

    for (size_t i = 0; i < ARRAY_SIZE(nvme_flash_props); i++) {
        const NvmeFlashProp *p = &nvme_flash_props[i];

        object_class_property_add(oc, p->name, types[p->kind],
                                  nvme_flash_get_prop, nvme_flash_set_prop,
                                  NULL, (void *)p);
        object_class_property_set_description(oc, p->name, p->help);
    }
    object_class_property_add_str(oc, "flash.stats", nvme_flash_get_stats,
                                  NULL);
    object_class_property_set_description(oc, "flash.stats",
                                          "counters as JSON (read only)");
    object_class_property_add_str(oc, "flash.fault", nvme_flash_get_fault,
                                  nvme_flash_set_fault);
    object_class_property_set_description(oc, "flash.fault",
                                          "write: ACTION [NUMBER]...");
}

/* Life. */

void nvme_flash_instance_init(NvmeNamespace *ns)
{
    NvmeFlashConf *conf = g_new0(NvmeFlashConf, 1);
    NvmeFlashParams *p = &conf->params;
    FlashTuning *t = &conf->flash.dev.tuning;

    ns->flash_conf = &conf->flash;
    conf->flash.ns = ns;
    nvme_flash_fault_init(&conf->flash);
    p->channels = p->dies = p->planes = 1;
    p->page = 4 * KiB;
    p->program_pages = 1;
    p->block_pages = 256;
    p->stream_ms = 100;
    conf->flash.chunks.ws_min = 1;
    conf->flash.spare = 7;
    conf->flash.ftl_config = (FtlConfig) {
        .mapping = g_strdup("page"), .gc_begin = 75, .gc_urgent = 95,
        .gc_gain = 8, .hot_cold = true, .log_blocks = 64,
        .log_ways = 1, .map_pages = 64,
    };
    t->buffer = 1 * MiB;
    t->delay_read = t->delay_program = true;
    t->delay_erase = t->delay_transfer = true;
}

/* The namespace cannot be: what it made of a blank file goes with it. */
static void nvme_flash_refuse(NvmeNamespace *ns)
{
    flash_media_unmake(&ns->flash->dev.media);
    nvme_flash_close(ns);
}

void nvme_flash_instance_finalize(NvmeNamespace *ns)
{
    NvmeFlashConf *conf = conf_of(ns);

    if (ns->flash) {
        nvme_flash_refuse(ns);  /* something else of it was wrong */
    }
    nvme_flash_fault_free(&conf->flash);
    nvme_flash_journal_free(&conf->flash);
    g_free(conf->params.media);
    g_free(conf->params.personality);
    g_free(conf->params.page_types);
    g_free(conf->flash.ftl_config.mapping);
    g_free(conf->params.stream);
    g_free(conf->params.journal);
    g_free(conf);
}

bool nvme_flash_wanted(const NvmeNamespace *ns)
{
    return ns->flash_conf && conf_of(ns)->params.media;
}

static const NvmeFlashPersonality *nvme_flash_choose(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(nvme_flash_personalities); i++) {
        if (!name || !*name ||
            !strcmp(nvme_flash_personalities[i]->name, name)) {
            return nvme_flash_personalities[i];
        }
    }
    return NULL;
}

/* The rest of the controller expects a block backend: one without data. */
int nvme_flash_make_blk(NvmeNamespace *ns, Error **errp)
{
    const NvmeFlashParams *p = &conf_of(ns)->params;
    const NvmeFlashPersonality *personality =
        nvme_flash_choose(p->personality);
    uint32_t lbasz = ns->blkconf.logical_block_size;
    uint64_t size = p->size;
    QDict *opts;

    if (ns->blkconf.blk) {
        error_setg(errp, "flash.media and drive exclude each other");
        return -1;
    }
    if (!personality) {
        error_setg(errp, "flash.personality: there is no '%s'",
                   p->personality);
        return -1;
    }
    if (!p->size || p->size > 1 * PiB) {
        error_setg(errp, "flash.size must be given, and at most 1P");
        return -1;
    }
    if (lbasz != 512 && lbasz != 4096) {
        error_setg(errp, "flash.media needs a logical_block_size of 512 or "
                   "4096, not %" PRIu32, lbasz);
        return -1;
    }
    ns->flash_conf->personality = personality;
    ns->flash_conf->bytes = size;
    if (personality->bytes) {
        size = personality->bytes(ns, size);
    }
    opts = qdict_new();
    qdict_put_str(opts, "driver", "null-co");
    qdict_put_int(opts, "size",
                  size / lbasz * (lbasz + ns->params.ms));
    ns->blkconf.blk = blk_new_open(NULL, NULL, opts, BDRV_O_RDWR, errp);
    return ns->blkconf.blk ? 0 : -1;
}

static bool nvme_flash_check_features(NvmeNamespace *ns, Error **errp)
{
    uint32_t caches = ns->flash_conf->dev.nr_caches;

    for (uint32_t i = 0; i < NVME_MAX_CONTROLLERS; i++) {
        NvmeCtrl *n = nvme_subsys_ctrl(ns->subsys, i);

        if (n && nvme_flash_refuses_ctrl(ns, n, errp)) {
            return false;
        }
    }
    if (nvme_flash_refuses_whole(ns, "atomic.nawupf", ns->params.atomic.nawupf,
                                 errp)) {
        return false;
    }
    if (ns->endgrp->fdp.enabled &&
        ns->flash_conf->personality != &nvme_flash_blackbox) {
        error_setg(errp, "flash.media: of fdp=on only drives with an FTL know: "
                   "expected fdp=off, or flash.personality=blackbox");
    } else if (ns->params.pi) {
        error_setg(errp, "flash.media does not go with pi");
    } else if (ns->params.mset) {
        error_setg(errp, "flash.media needs metadata apart: mset=0");
    } else if (ns->params.ms != 0 && ns->params.ms != 8 &&
               ns->params.ms != 16 && ns->params.ms != 64) {
        error_setg(errp, "flash.media takes ms 0, 8, 16 or 64, not %" PRIu16,
                   ns->params.ms);
    } else if (caches && ns->flash_conf->personality != &nvme_flash_zns) {
        error_setg(errp, "flash.zone_caches is of zoned drives: expected "
                   "flash.personality=zns");
    } else if (caches > 1024) {
        error_setg(errp, "flash.zone_caches: at most 1024, not %" PRIu32,
                   caches);
    } else if (ns->flash_conf->dev.tuning.plane_reads &&
               ns->flash_conf->dev.tuning.booked) {
        error_setg(errp, "flash.plane_reads needs flash.booked=off: an "
                   "operation is booked on its die");
    } else if (caches && !ns->flash_conf->dev.tuning.booked) {
        error_setg(errp, "flash.zone_caches needs flash.booked=on");
    } else if (caches && ns->flash_conf->dev.plp) {
        error_setg(errp, "flash.zone_caches are lost with the power: expected "
                   "flash.plp=off");
    } else {
        return nvme_flash_check_wear(ns, errp) &&
               (!conf_of(ns)->params.journal ||
                nvme_flash_journal_check(ns, errp)) &&
               ns->flash_conf->personality->check(ns, errp);
    }
    return false;
}

/* As the user gave it; nothing of it is checked yet. */
static void nvme_flash_geometry(const NvmeNamespace *ns, FlashShape *s)
{
    const NvmeFlashParams *p = &conf_of(ns)->params;

    s->block_size = ns->lbasz;
    s->meta_size = ns->lbaf.ms;
    s->channels = p->channels;
    s->dies_per_channel = p->dies;
    s->planes = p->planes;
    s->page_size = p->page;
    s->program_pages = p->program_pages;
    s->pages_per_block = p->block_pages;
    s->zone_dies = p->zone_dies ? p->zone_dies : p->channels * p->dies;
}

/* The personality has filled in its part. */
static bool nvme_flash_check_shape(NvmeNamespace *ns, FlashShape *s,
                                   Error **errp)
{
    const NvmeFlashParams *p = &conf_of(ns)->params;
    const FlashTuning *t = &ns->flash_conf->dev.tuning;
    uint64_t dies = (uint64_t)p->channels * p->dies;
    uint64_t unit = p->planes * p->page * p->program_pages;
    uint32_t width = s->zone_dies;
    uint64_t zone_bytes = nvme_l2b(ns, s->zone_blocks);
    uint64_t die_units, zone_blocks, need;

    if (!p->channels || !p->dies || dies > 4096) {
        error_setg(errp, "flash.channels x flash.dies must be 1 to 4096");
    } else if (!p->planes || p->planes > 64) {
        error_setg(errp, "flash.planes must be 1 to 64");
    } else if (p->page < 512 || p->page > 1 * MiB || !is_power_of_2(p->page)) {
        error_setg(errp, "flash.page must be a power of two, 512 to 1M");
    } else if (!p->program_pages || p->program_pages > 64) {
        error_setg(errp, "flash.program_pages must be 1 to 64");
    } else if (p->planes * p->page % ns->lbasz) {
        error_setg(errp, "flash.planes x flash.page (%" PRIu64 ") must be a "
                   "multiple of the logical block (%zu)", p->planes * p->page,
                   ns->lbasz);
    } else if (t->plane_reads && p->page % ns->lbasz) {
        error_setg(errp, "flash.plane_reads: flash.page (%" PRIu64 ") must be "
                   "a multiple of the logical block (%zu)", p->page, ns->lbasz);
    } else if (!p->block_pages || p->block_pages % p->program_pages) {
        error_setg(errp, "flash.block_pages (%" PRIu32 ") must be a multiple "
                   "of flash.program_pages (%" PRIu32 ")", p->block_pages,
                   p->program_pages);
    } else if (width > dies || dies % width) {
        error_setg(errp, "flash.zone_dies (%" PRIu32 ") must divide the "
                   "number of dies (%" PRIu64 ")", width, dies);
    } else if (!zone_bytes || p->size % zone_bytes) {
        error_setg(errp, "flash.size (%" PRIu64 ") must be a multiple of the "
                   "zone size (%" PRIu64 ")", p->size, zone_bytes);
    } else if (!p->stream_ms) {
        error_setg(errp, "flash.stream_ms must be at least 1");
    } else {
        goto fits;
    }
    return false;

fits:
    die_units = DIV_ROUND_UP(nvme_l2b(ns, s->zone_cap), unit * width);
    zone_blocks = DIV_ROUND_UP(die_units, p->block_pages / p->program_pages);
    need = DIV_ROUND_UP(s->nr_zones, dies / width) * zone_blocks;
    if (p->blocks && p->blocks < need) {
        error_setg(errp, "the zones need %" PRIu64 " blocks a plane, "
                   "flash.blocks is %" PRIu32, need, p->blocks);
        return false;
    }
    ns->flash_conf->reserve = p->blocks ? (p->blocks - need) * dies : 0;
    return true;
}

/* Word lines are whole: an erase block has as many pages of each kind. */
static bool nvme_flash_parse_pages(NvmeNamespace *ns, Error **errp)
{
    const NvmeFlashParams *p = &conf_of(ns)->params;
    FlashTuning *t = &ns->flash_conf->dev.tuning;
    char *why = flash_cell_parse(t, p->page_types ? p->page_types : "");

    if (why) {
        error_setg(errp, "%s", why);
        free(why);
        return false;
    }
    if (t->page_types && p->block_pages % t->page_types) {
        error_setg(errp, "flash.block_pages (%" PRIu32 ") must be a multiple "
                   "of the number of flash.page_types (%" PRIu32 ")",
                   p->block_pages, t->page_types);
        return false;
    }
    return true;
}

void nvme_flash_close(NvmeNamespace *ns)
{
    NvmeFlash *f = ns->flash;

    ns->flash = NULL;
    nvme_flash_stream_stop(f);
    nvme_flash_fault_stop(f);
    nvme_flash_io_stop(f);
    flash_dev_close(&f->dev);
    nvme_flash_journal_stop(f);
    if (f->personality->stop) {
        f->personality->stop(ns);
    }
    blk_unref(ns->blkconf.blk);
    ns->blkconf.blk = NULL;
}

/* Chunks that the user says nothing of are what the flash has anyway. */
static void nvme_flash_size_chunks(NvmeNamespace *ns)
{
    const NvmeFlashParams *p = &conf_of(ns)->params;
    NvmeFlashChunks *c = &ns->flash_conf->chunks;

    if (!c->bytes) {
        c->bytes = p->planes * p->page * p->block_pages;
    }
    if (!c->ws_opt) {
        c->ws_opt = p->planes * p->page * p->program_pages / ns->lbasz;
    }
}

/* A zone that the host has taken into use again lives until its next reset. */
static void nvme_flash_worn_out(FlashDev *dev, uint32_t zone)
{
    NvmeFlash *f = container_of(dev, NvmeFlash, dev);
    NvmeZone *host = &f->ns->zone_array[zone];

    if (nvme_get_zone_state(host) == NVME_ZONE_STATE_EMPTY) {
        f->personality->fail(f->ns, host->d.zslba, true);
    }
}

int nvme_flash_open(NvmeNamespace *ns, Error **errp)
{
    NvmeFlash *f = ns->flash_conf;
    const NvmeFlashParams *p = &conf_of(ns)->params;
    FlashShape shape = { 0 };
    char *why;

    nvme_flash_size_chunks(ns);
    if (!nvme_flash_check_features(ns, errp)) {
        return -1;
    }
    nvme_flash_geometry(ns, &shape);
    f->dev.worn_out = nvme_flash_worn_out;
    f->personality->shape(ns, &shape, &f->dev);
    if (!nvme_flash_check_shape(ns, &shape, errp) ||
        !nvme_flash_parse_pages(ns, errp) ||
        (p->stream &&
         !nvme_flash_stream_open(f, p->stream, p->stream_ms, errp))) {
        return -1;
    }
    why = flash_dev_open(&f->dev, p->media, &shape);
    if (why) {
        error_setg(errp, "%s", why);
        free(why);
        nvme_flash_stream_stop(f);
        return -1;
    }
    /* blocks beyond the write pointer read as zeroes, never as an error */
    ns->id_ns.nsfeat &= ~NVME_ID_NS_NSFEAT_DAE;
    nvme_flash_io_start(f);
    nvme_flash_fault_start(f);
    ns->flash = f;
    nvme_flash_run(f);
    why = p->journal ? nvme_flash_journal_start(f, p->journal) : NULL;
    if (!why && f->personality->start) {
        why = f->personality->start(ns);
    }
    if (why) {
        error_setg(errp, "%s", why);
        free(why);
        nvme_flash_refuse(ns);
        return -1;
    }
    nvme_flash_arm(f);
    nvme_flash_stream_start(f);
    return 0;
}

/* The host announced that it will cut the power. */
void nvme_flash_shutdown(NvmeNamespace *ns)
{
    NvmeFlash *f = ns->flash;

    if (f->powered) {
        nvme_flash_run(f);
        flash_dev_sync(&f->dev);
        for (uint32_t i = 0; i < f->dev.media.shape.nr_zones; i++) {
            f->dev.zones[i].open = false;
        }
        nvme_flash_arm(f);
    }
}
