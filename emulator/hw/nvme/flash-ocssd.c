/*
 * The Open-Channel personality.  See flash-ocssd.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Above flash-io.h and flash-fault.h.  A chunk is a zone of the model on one
 * die; a group is a channel, a parallel unit (PU) a die on it.
 *
 * A command names sectors: by a list of addresses (vector), or as a range
 * (scalar).  Neighbours in it that follow each other in one chunk are a run,
 * which is one command of the model.  A request keeps its runs, and what it
 * reads, in req->opaque until the last of them has ended.
 */

#include "qemu/osdep.h"
#include "qapi/error.h"

#include "flash-fault.h"
#include "flash-io.h"
#include "flash-ns.h"
#include "flash-ocssd.h"
#include "flash-personality.h"

#define OCSSD_MAX_LIST      64
#define OCSSD_MAX_NOTES     64

/* Statuses of the command set, beside NVMe's own. */
enum {
    OCSSD_OFFLINE_CHUNK = 0x2c0,
    OCSSD_INVALID_RESET = 0x2c1,
    OCSSD_OUT_OF_ORDER = 0x2f2,
};

enum {
    OCSSD_CAN_COPY = 1 << 0,
    OCSSD_CAN_RESET_FREE = 1 << 1,
    OCSSD_CAN_RESET_OPEN = 1 << 2,
};

typedef struct QEMU_PACKED OcssdGeometry {
    uint8_t major;
    uint8_t minor;
    uint8_t reserved2[6];
    uint8_t group_bits;
    uint8_t pu_bits;
    uint8_t chunk_bits;
    uint8_t sector_bits;
    uint8_t reserved12[4];
    uint32_t mccap;
    uint8_t reserved20[44];
    uint16_t num_grp;
    uint16_t num_pu;
    uint32_t num_chk;
    uint32_t clba;
    uint8_t reserved76[52];
    uint32_t ws_min;
    uint32_t ws_opt;
    uint32_t mw_cunits;
    uint32_t maxoc;
    uint32_t maxocpu;
    uint8_t reserved148[44];
    uint32_t read_ns, read_max_ns;
    uint32_t write_ns, write_max_ns;
    uint32_t reset_ns, reset_max_ns;
    uint8_t reserved216[3880];
} OcssdGeometry;

typedef enum OcssdState {
    OCSSD_FREE = 1 << 0,
    OCSSD_CLOSED = 1 << 1,
    OCSSD_OPEN = 1 << 2,
    OCSSD_OFFLINE = 1 << 3,
} OcssdState;

enum {
    OCSSD_SEQUENTIAL = 1 << 0,  /* a chunk's type */
};

typedef struct QEMU_PACKED OcssdDescriptor {
    uint8_t state;
    uint8_t type;
    uint8_t wear;
    uint8_t reserved3[5];
    uint64_t slba;
    uint64_t cnlb;
    uint64_t wp;
} OcssdDescriptor;

enum {
    OCSSD_NOTE_UNRECOVERABLE = 1 << 3,  /* state: data is lost */
    OCSSD_NOTE_REFRESH = 1 << 4,        /* ... is to be moved */
    OCSSD_NOTE_CHUNK = 1 << 1,          /* mask: it is about the whole chunk */
};

typedef struct QEMU_PACKED OcssdNote {
    uint64_t count;             /* the first is 1; 0: none */
    uint64_t lba;
    uint32_t nsid;
    uint16_t state;
    uint8_t mask;
    uint8_t reserved23[9];
    uint16_t nlb;               /* zero-based */
    uint8_t reserved34[30];
} OcssdNote;

QEMU_BUILD_BUG_ON(sizeof(OcssdGeometry) != 4096);
QEMU_BUILD_BUG_ON(sizeof(OcssdDescriptor) != 32);
QEMU_BUILD_BUG_ON(sizeof(OcssdNote) != 64);

/* What the host sees of a chunk: at once, while the flash is still at work. */
typedef struct OcssdChunk {
    OcssdState state;
    uint32_t wp;
} OcssdChunk;

typedef struct NvmeFlashOcssd {
    uint32_t groups, pus, chunks, sectors;
    uint8_t group_bits, pu_bits, chunk_bits, sector_bits;
    OcssdChunk *chunk;          /* by zone of the model */
    uint32_t feedback;          /* the feature: which reads the host asks for */
    uint64_t notes;             /* ever made */
    OcssdNote note[OCSSD_MAX_NOTES];    /* the newest ones, round and round */
} NvmeFlashOcssd;

typedef struct OcssdRun {
    bool there;                 /* data can be: the address is of a chunk */
    uint32_t zone;
    uint32_t sector;
    uint32_t at;                /* its first sector's place in the command */
    uint32_t nlb;
    const FlashCmd *cmd;        /* of a read: to know it by when it ends */
} OcssdRun;

typedef enum OcssdKind {
    OCSSD_DO_READ,
    OCSSD_DO_COPY,              /* while it reads; then it is a write */
    OCSSD_DO_WRITE,
    OCSSD_DO_RESET,
} OcssdKind;

/* What a command is until it ends; one piece of memory. */
typedef struct OcssdList {
    OcssdKind kind;
    uint32_t nr;
    uint64_t failed;            /* a bit for each sector of a vector */
    uint16_t status;            /* of the first that failed */
    uint32_t nr_runs;
    OcssdRun *run;
    uint64_t *addr;
    uint64_t *to;               /* where a copy goes */
    uint8_t *data, *oob;
    uint32_t size;              /* of all of it */
} OcssdList;

static NvmeFlashOcssd *ocssd_of(const NvmeNamespace *ns)
{
    return ns->flash_conf->ocssd;
}

/* Addresses: group | PU | chunk | sector. */

static uint8_t ocssd_bits(uint32_t n)
{
    return n > 1 ? 32 - clz32(n - 1) : 0;
}

static uint64_t ocssd_field(uint64_t *addr, uint8_t bits)
{
    uint64_t value = *addr & ((1ull << bits) - 1);

    *addr >>= bits;
    return value;
}

/* The zone and sector of an address; false: nothing is there. */
static bool ocssd_find(const NvmeFlashOcssd *o, uint64_t addr, uint32_t *zone,
                       uint32_t *sector)
{
    uint32_t chunk, pu, group;

    *sector = ocssd_field(&addr, o->sector_bits);
    chunk = ocssd_field(&addr, o->chunk_bits);
    pu = ocssd_field(&addr, o->pu_bits);
    group = ocssd_field(&addr, o->group_bits);
    if (addr || group >= o->groups || pu >= o->pus || chunk >= o->chunks ||
        *sector >= o->sectors) {
        return false;
    }
    /* zone z is on die z % dies, die d on channel d % channels */
    *zone = (chunk * o->pus + pu) * o->groups + group;
    return true;
}

static uint64_t ocssd_addr(const NvmeFlashOcssd *o, uint32_t group, uint32_t pu,
                           uint32_t chunk)
{
    uint64_t addr = group;

    addr = addr << o->pu_bits | pu;
    addr = addr << o->chunk_bits | chunk;
    return addr << o->sector_bits;
}

/* A chunk's descriptor, by its place in the log page. */
static OcssdDescriptor ocssd_describe(const NvmeNamespace *ns, uint64_t place)
{
    const NvmeFlashOcssd *o = ocssd_of(ns);
    uint32_t chunk = place % o->chunks;
    uint32_t pu = place / o->chunks % o->pus;
    uint32_t group = place / o->chunks / o->pus;
    uint32_t zone = (chunk * o->pus + pu) * o->groups + group;
    const OcssdChunk *c = &o->chunk[zone];

    return (OcssdDescriptor) {
        .state = c->state,
        .type = OCSSD_SEQUENTIAL,
        .wear = MIN(ns->flash->dev.media.zones[zone].erases, 255),
        .slba = cpu_to_le64(ocssd_addr(o, group, pu, chunk)),
        .cnlb = cpu_to_le64(o->sectors),
        .wp = cpu_to_le64(c->state == OCSSD_OFFLINE ? UINT64_MAX : c->wp),
    };
}

static uint64_t ocssd_place(const NvmeFlashOcssd *o, uint32_t zone)
{
    uint32_t group = zone % o->groups, pu = zone / o->groups % o->pus;

    return ((uint64_t)group * o->pus + pu) * o->chunks +
           zone / o->groups / o->pus;
}

/* How many sectors of a chunk the host may read. */
static uint32_t ocssd_readable(const NvmeNamespace *ns, uint32_t zone)
{
    const OcssdChunk *c = &ocssd_of(ns)->chunk[zone];
    uint32_t kept = ns->flash_conf->chunks.mw_cunits;

    switch (c->state) {
    case OCSSD_CLOSED:
        return c->wp;
    case OCSSD_OPEN:
        return c->wp > kept ? c->wp - kept : 0;
    default:
        return 0;
    }
}

/* Lists. */

static OcssdList *ocssd_new_list(NvmeNamespace *ns, OcssdKind kind, uint32_t nr)
{
    size_t size = sizeof(OcssdList) +
                  nr * (sizeof(OcssdRun) + 2 * sizeof(uint64_t));
    size_t bytes = kind == OCSSD_DO_RESET ? nr * sizeof(OcssdDescriptor) :
                   nvme_l2b(ns, nr) + nvme_m2b(ns, nr);
    OcssdList *l = g_malloc(size + bytes);

    memset(l, 0, size);
    l->kind = kind;
    l->nr = nr;
    l->size = size + bytes;
    l->run = (OcssdRun *)(l + 1);
    l->addr = (uint64_t *)(l->run + nr);
    l->to = l->addr + nr;
    l->data = (uint8_t *)(l->to + nr);
    l->oob = l->data + nvme_l2b(ns, nr);
    return l;
}

static void ocssd_fail(OcssdList *l, uint32_t at, uint32_t nlb, uint16_t status)
{
    for (uint32_t i = at; i < at + nlb && i < OCSSD_MAX_LIST; i++) {
        l->failed |= 1ull << i;
    }
    l->status = l->status ? l->status : status | NVME_DNR;
}

/* Neighbours become runs; a read's end where there is nothing more to read. */
static void ocssd_split(const NvmeNamespace *ns, OcssdList *l,
                        const uint64_t *addr, bool read)
{
    const NvmeFlashOcssd *o = ocssd_of(ns);
    OcssdRun *run = NULL;

    l->nr_runs = 0;
    for (uint32_t i = 0; i < l->nr; i++) {
        uint32_t zone = 0, sector = 0;
        bool there = ocssd_find(o, addr[i], &zone, &sector) &&
                     (!read || sector < ocssd_readable(ns, zone));

        if (run && run->there == there &&
            (!there || (run->zone == zone &&
                        run->sector + run->nlb == sector))) {
            run->nlb++;
            continue;
        }
        run = &l->run[l->nr_runs++];
        *run = (OcssdRun) {
            .there = there, .zone = zone, .sector = sector, .at = i, .nlb = 1,
        };
    }
}

/* A vector command's list: in the command itself when it is of one. */
static uint16_t ocssd_fetch_list(NvmeCtrl *n, uint32_t low, uint32_t high,
                                 uint32_t nr, uint64_t *addr)
{
    uint64_t at = (uint64_t)le32_to_cpu(high) << 32 | le32_to_cpu(low);

    if (nr == 1) {
        *addr = at;
        return NVME_SUCCESS;
    }
    if (pci_dma_read(PCI_DEVICE(n), at, addr, nr * sizeof(*addr))) {
        return NVME_DATA_TRAS_ERROR;
    }
    for (uint32_t i = 0; i < nr; i++) {
        addr[i] = le64_to_cpu(addr[i]);
    }
    return NVME_SUCCESS;
}

/* The command has ended; its list goes. */
static uint16_t ocssd_end(NvmeRequest *req)
{
    g_autofree OcssdList *l = req->opaque;
    uint16_t status = l->status ? l->status : req->status;

    req->opaque = NULL;
    if (status && !l->failed) {
        ocssd_fail(l, 0, l->nr, status);    /* a cut, or a reset meanwhile */
    }
    if (req->cmd.opcode >= NVME_CMD_OCSSD_RESET) {
        req->cqe.result = cpu_to_le32(l->failed);
        req->cqe.dw1 = cpu_to_le32(l->failed >> 32);
    }
    return (status & 0x7ff) == NVME_ZONE_INVALID_WRITE ?
           OCSSD_OUT_OF_ORDER | NVME_DNR : status;
}

/* Reads. */

static uint16_t ocssd_read_ended(NvmeRequest *req, const FlashCmd *cmd)
{
    NvmeNamespace *ns = req->ns;
    FlashDev *dev = &ns->flash->dev;
    OcssdList *l = req->opaque;
    OcssdRun *run = l->run;

    while (run->cmd != cmd) {
        run++;
    }
    run->cmd = NULL;            /* another one may get its memory */
    if (!run->there) {
        return NVME_SUCCESS;
    }
    flash_dev_copy(dev, run->zone, run->sector, run->nlb,
                   l->data + nvme_l2b(ns, run->at),
                   l->oob + nvme_m2b(ns, run->at));
    for (uint32_t i = 0; i < run->nlb; i++) {
        if (flash_dev_bad(dev, run->zone, run->sector + i, 1)) {
            ocssd_fail(l, run->at + i, 1, NVME_UNRECOVERED_READ);
        }
    }
    return NVME_SUCCESS;
}

/* What was read goes to the host, also when some of it could not be. */
static uint16_t ocssd_return_data(NvmeRequest *req)
{
    NvmeCtrl *n = nvme_ctrl(req);
    NvmeNamespace *ns = req->ns;
    OcssdList *l = req->opaque;
    size_t len = nvme_l2b(ns, l->nr), mlen = nvme_m2b(ns, l->nr);
    uint16_t status = req->status;

    if (!status) {
        status = nvme_bounce_data(n, l->data, len,
                                  NVME_TX_DIRECTION_FROM_DEVICE, req);
    }
    if (!status && mlen && req->cmd.mptr) {
        status = nvme_bounce_mdata(n, l->oob, mlen,
                                   NVME_TX_DIRECTION_FROM_DEVICE, req);
    }
    if (status) {
        l->status = 0;
        l->failed = 0;
        req->status = status;
    }
    return ocssd_end(req);
}

/* The list has its addresses; it goes to the request. */
static uint16_t ocssd_read(NvmeRequest *req, OcssdList *l)
{
    NvmeNamespace *ns = req->ns;
    NvmeFlash *f = ns->flash;
    bool dulbe = NVME_ERR_REC_DULBE(ns->features.err_rec);

    ocssd_split(ns, l, l->addr, true);
    for (uint32_t i = 0; i < l->nr; i++) {
        if (nvme_flash_faulty(f, false, l->addr[i], 1)) {
            ocssd_fail(l, i, 1, NVME_UNRECOVERED_READ);
        }
    }
    nvme_flash_begin(req);
    nvme_flash_hold(req, l->size);
    req->opaque = l;
    if (l->kind == OCSSD_DO_READ) {
        nvme_flash_count(req, false, l->nr);
    }
    for (uint32_t i = 0; i < l->nr_runs; i++) {
        OcssdRun *run = &l->run[i];
        FlashCmd *cmd = nvme_flash_cmd(req, FLASH_CMD_READ, run->zone);

        run->cmd = cmd;
        cmd->inside = l->kind == OCSSD_DO_COPY;
        if (run->there) {
            cmd->block = run->sector;
            cmd->nlb = run->nlb;
        } else {
            /* costs the controller's time, and no die's */
            memset(l->data + nvme_l2b(ns, run->at), 0, nvme_l2b(ns, run->nlb));
            memset(l->oob + nvme_m2b(ns, run->at), 0, nvme_m2b(ns, run->nlb));
            if (dulbe) {
                ocssd_fail(l, run->at, run->nlb, NVME_DULB);
            }
        }
        nvme_flash_submit(f, cmd);
    }
    return nvme_flash_end(req, NVME_SUCCESS);
}

/* Writes. */

static uint16_t ocssd_check_run(const NvmeNamespace *ns, const OcssdList *l,
                                const OcssdRun *run)
{
    const NvmeFlashOcssd *o = ocssd_of(ns);
    const OcssdChunk *c = &o->chunk[run->zone];
    uint32_t wp = c->wp;

    if (!run->there || c->state & (OCSSD_CLOSED | OCSSD_OFFLINE)) {
        return NVME_WRITE_FAULT;
    }
    for (const OcssdRun *r = l->run; r < run; r++) {
        wp += r->there && r->zone == run->zone ? r->nlb : 0;
    }
    if (run->sector != wp) {
        return OCSSD_OUT_OF_ORDER;
    }
    return run->nlb % ns->flash_conf->chunks.ws_min ? NVME_INVALID_FIELD :
                                                 NVME_SUCCESS;
}

/* All of it may be written, or nothing is. */
static void ocssd_check_write(const NvmeNamespace *ns, OcssdList *l,
                              const uint64_t *addr)
{
    ocssd_split(ns, l, addr, false);
    for (uint32_t i = 0; i < l->nr_runs; i++) {
        uint16_t status = ocssd_check_run(ns, l, &l->run[i]);

        if (status) {
            ocssd_fail(l, l->run[i].at, l->run[i].nlb, status);
        }
    }
    for (uint32_t i = 0; !l->status && i < l->nr; i++) {
        if (nvme_flash_faulty(ns->flash, true, addr[i], 1)) {
            ocssd_fail(l, i, 1, NVME_WRITE_FAULT);
        }
    }
}

/* What the list holds is written where its runs say; it was checked. */
static uint16_t ocssd_submit_write(NvmeRequest *req, OcssdList *l, bool fua,
                                   bool inside)
{
    NvmeNamespace *ns = req->ns;
    NvmeFlashOcssd *o = ocssd_of(ns);

    nvme_flash_begin(req);
    nvme_flash_hold(req, l->size);
    req->opaque = l;
    if (!inside) {
        nvme_flash_count(req, true, l->nr);
    }
    for (uint32_t i = 0; !l->status && i < l->nr_runs; i++) {
        const OcssdRun *run = &l->run[i];
        OcssdChunk *c = &o->chunk[run->zone];
        FlashCmd *cmd = nvme_flash_cmd(req, FLASH_CMD_WRITE, run->zone);
        size_t len = nvme_l2b(ns, run->nlb), mlen = nvme_m2b(ns, run->nlb);

        /* freed by the model, which knows no glib */
        cmd->data = malloc(len);
        cmd->oob = malloc(MAX(mlen, 1));
        g_assert(cmd->data && cmd->oob);
        memcpy(cmd->data, l->data + nvme_l2b(ns, run->at), len);
        memcpy(cmd->oob, l->oob + nvme_m2b(ns, run->at), mlen);
        cmd->block = run->sector;
        cmd->nlb = run->nlb;
        cmd->fua = fua;
        cmd->inside = inside;
        c->wp += run->nlb;
        c->state = c->wp == o->sectors ? OCSSD_CLOSED : OCSSD_OPEN;
        nvme_flash_submit(ns->flash, cmd);
    }
    return nvme_flash_end(req, NVME_SUCCESS);
}

static uint16_t ocssd_write(NvmeRequest *req, OcssdList *l)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    uint16_t status = nvme_flash_fetch(req, l->nr, l->data, l->oob);

    nvme_sg_unmap(&req->sg);
    if (status) {
        g_free(l);
        return status;
    }
    ocssd_check_write(req->ns, l, l->addr);
    return ocssd_submit_write(req, l, le16_to_cpu(rw->control) & NVME_RW_FUA,
                              false);
}

/* A copy's sources have been read. */
static uint16_t ocssd_copy_write(NvmeRequest *req)
{
    OcssdList *l = req->opaque;

    if (l->status || req->status) {
        return ocssd_end(req);
    }
    l->kind = OCSSD_DO_WRITE;
    ocssd_check_write(req->ns, l, l->to);
    return ocssd_submit_write(req, l, false, true);
}

/* Resets. */

static uint16_t ocssd_reset(NvmeRequest *req, OcssdList *l)
{
    NvmeNamespace *ns = req->ns;
    NvmeFlashOcssd *o = ocssd_of(ns);

    for (uint32_t i = 0; i < l->nr; i++) {
        OcssdRun *run = &l->run[i];

        run->there = ocssd_find(o, l->addr[i], &run->zone, &run->sector);
        if (!run->there) {
            ocssd_fail(l, i, 1, OCSSD_INVALID_RESET);
        } else if (o->chunk[run->zone].state == OCSSD_OFFLINE) {
            ocssd_fail(l, i, 1, OCSSD_OFFLINE_CHUNK);
        }
    }
    nvme_flash_begin(req);
    nvme_flash_hold(req, l->size);
    req->opaque = l;
    for (uint32_t i = 0; !l->status && i < l->nr; i++) {
        uint32_t zone = l->run[i].zone;
        FlashCmd *cmd = nvme_flash_cmd(req, FLASH_CMD_RESET, zone);

        o->chunk[zone] = (OcssdChunk) { .state = OCSSD_FREE };
        nvme_flash_submit(ns->flash, cmd);
    }
    return nvme_flash_end(req, NVME_SUCCESS);
}

/* Its metadata pointer, if any, wants to know what the chunks are now. */
static uint16_t ocssd_reset_ended(NvmeRequest *req)
{
    NvmeNamespace *ns = req->ns;
    OcssdList *l = req->opaque;
    OcssdDescriptor *d = (OcssdDescriptor *)l->data;

    if (!l->status && !req->status && req->cmd.mptr &&
        req->cmd.opcode == NVME_CMD_OCSSD_RESET) {
        for (uint32_t i = 0; i < l->nr; i++) {
            d[i] = ocssd_describe(ns, ocssd_place(ocssd_of(ns),
                                                  l->run[i].zone));
        }
        req->status = nvme_bounce_mdata(nvme_ctrl(req), d, l->nr * sizeof(*d),
                                        NVME_TX_DIRECTION_FROM_DEVICE, req);
    }
    return ocssd_end(req);
}

/* Deallocate resets chunks, each range a whole one. */
static uint16_t ocssd_deallocate(NvmeCtrl *n, NvmeRequest *req)
{
    NvmeDsmCmd *dsm = (NvmeDsmCmd *)&req->cmd;
    NvmeNamespace *ns = req->ns;
    uint32_t nr = (le32_to_cpu(dsm->nr) & 0xff) + 1;
    NvmeDsmRange range[256];
    uint16_t status;
    OcssdList *l;

    if (!(le32_to_cpu(dsm->attributes) & NVME_DSMGMT_AD)) {
        return NVME_SUCCESS;    /* advice */
    }
    status = nvme_map_dptr(n, &req->sg, nr * sizeof(*range), &req->cmd);
    if (!status) {
        status = nvme_bounce_data(n, range, nr * sizeof(*range),
                                  NVME_TX_DIRECTION_TO_DEVICE, req);
    }
    nvme_sg_unmap(&req->sg);
    if (status) {
        return status;
    }
    l = ocssd_new_list(ns, OCSSD_DO_RESET, nr);
    for (uint32_t i = 0; i < nr; i++) {
        l->addr[i] = le64_to_cpu(range[i].slba);
        if (le32_to_cpu(range[i].nlb) != ocssd_of(ns)->sectors ||
            l->addr[i] & ((1ull << ocssd_of(ns)->sector_bits) - 1)) {
            ocssd_fail(l, i, 1, OCSSD_INVALID_RESET);
        }
    }
    return ocssd_reset(req, l);
}

/* Commands. */

static uint16_t ocssd_resume(NvmeRequest *req)
{
    OcssdList *l = req->opaque;

    switch (l->kind) {
    case OCSSD_DO_READ:
        return ocssd_return_data(req);
    case OCSSD_DO_COPY:
        return ocssd_copy_write(req);
    case OCSSD_DO_RESET:
        return ocssd_reset_ended(req);
    default:
        return ocssd_end(req);
    }
}

/*
 * Reads and writes of the NVM command set: of sectors one behind the other.  A
 * write beyond all chunks is one to a hole.
 */
static uint16_t ocssd_exec_scalar(NvmeCtrl *n, NvmeRequest *req, OcssdKind kind)
{
    NvmeRwCmd *rw = (NvmeRwCmd *)&req->cmd;
    NvmeNamespace *ns = req->ns;
    uint64_t slba = le64_to_cpu(rw->slba);
    uint32_t nr = (uint32_t)le16_to_cpu(rw->nlb) + 1;
    bool read = kind == OCSSD_DO_READ;
    uint16_t status = nvme_check_range(n, req, read ? slba : 0, nr);
    OcssdList *l;

    if (!status) {
        status = nvme_map_dptr(n, &req->sg, nvme_l2b(ns, nr), &req->cmd);
    }
    if (status) {
        return status;
    }
    l = ocssd_new_list(ns, kind, nr);
    for (uint32_t i = 0; i < nr; i++) {
        l->addr[i] = slba + i;
    }
    return read ? ocssd_read(req, l) : ocssd_write(req, l);
}

static uint16_t ocssd_exec_vector(NvmeCtrl *n, NvmeRequest *req, OcssdKind kind)
{
    NvmeNamespace *ns = req->ns;
    uint32_t nr = (le32_to_cpu(req->cmd.cdw12) & 0xffff) + 1;
    bool data = kind == OCSSD_DO_READ || kind == OCSSD_DO_WRITE;
    g_autofree OcssdList *l = NULL;
    uint16_t status;

    if (nr > OCSSD_MAX_LIST) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    status = data ? nvme_check_range(n, req, 0, nr) : NVME_SUCCESS;
    if (status) {
        return status;
    }
    l = ocssd_new_list(ns, kind, nr);
    status = ocssd_fetch_list(n, req->cmd.cdw10, req->cmd.cdw11, nr, l->addr);
    if (!status && kind == OCSSD_DO_COPY) {
        status = ocssd_fetch_list(n, req->cmd.cdw14, req->cmd.cdw15, nr, l->to);
    }
    if (!status && data) {
        status = nvme_map_dptr(n, &req->sg, nvme_l2b(ns, nr), &req->cmd);
    }
    if (status) {
        return status;
    }
    switch (kind) {
    case OCSSD_DO_WRITE:
        return ocssd_write(req, g_steal_pointer(&l));
    case OCSSD_DO_RESET:
        return ocssd_reset(req, g_steal_pointer(&l));
    default:
        return ocssd_read(req, g_steal_pointer(&l));
    }
}

static bool ocssd_exec_other(NvmeCtrl *n, NvmeRequest *req, uint16_t *status)
{
    switch (req->cmd.opcode) {
    case NVME_CMD_READ:
        *status = ocssd_exec_scalar(n, req, OCSSD_DO_READ);
        break;
    case NVME_CMD_WRITE:
        *status = ocssd_exec_scalar(n, req, OCSSD_DO_WRITE);
        break;
    case NVME_CMD_DSM:
        *status = ocssd_deallocate(n, req);
        break;
    case NVME_CMD_OCSSD_READ:
        *status = ocssd_exec_vector(n, req, OCSSD_DO_READ);
        break;
    case NVME_CMD_OCSSD_WRITE:
        *status = ocssd_exec_vector(n, req, OCSSD_DO_WRITE);
        break;
    case NVME_CMD_OCSSD_COPY:
        *status = ocssd_exec_vector(n, req, OCSSD_DO_COPY);
        break;
    case NVME_CMD_OCSSD_RESET:
        *status = ocssd_exec_vector(n, req, OCSSD_DO_RESET);
        break;
    default:
        *status = NVME_INVALID_OPCODE | NVME_DNR;
    }
    return true;
}

/* Admin commands and log pages. */

static NvmeNamespace *ocssd_find_ns(NvmeCtrl *n, const NvmeRequest *req)
{
    NvmeNamespace *ns = nvme_ns(n, le32_to_cpu(req->cmd.nsid));

    return ns && ns->flash && ns->flash->ocssd ? ns : NULL;
}

uint16_t nvme_ocssd_geometry(NvmeCtrl *n, NvmeRequest *req)
{
    NvmeNamespace *ns = ocssd_find_ns(n, req);
    const FlashTuning *t;
    const NvmeFlashOcssd *o;
    OcssdGeometry g = { .major = 2 };
    FlashCellTimes cells;

    if (!ns) {
        return NVME_INVALID_NSID | NVME_DNR;
    }
    o = ocssd_of(ns);
    t = &ns->flash->dev.tuning;
    cells = flash_cell_times(&ns->flash->dev);
    g.group_bits = o->group_bits;
    g.pu_bits = o->pu_bits;
    g.chunk_bits = o->chunk_bits;
    g.sector_bits = o->sector_bits;
    g.mccap = cpu_to_le32(OCSSD_CAN_COPY | OCSSD_CAN_RESET_FREE |
                          OCSSD_CAN_RESET_OPEN);
    g.num_grp = cpu_to_le16(o->groups);
    g.num_pu = cpu_to_le16(o->pus);
    g.num_chk = cpu_to_le32(o->chunks);
    g.clba = cpu_to_le32(o->sectors);
    g.ws_min = cpu_to_le32(ns->flash_conf->chunks.ws_min);
    g.ws_opt = cpu_to_le32(ns->flash_conf->chunks.ws_opt);
    g.mw_cunits = cpu_to_le32(ns->flash_conf->chunks.mw_cunits);
    g.maxoc = cpu_to_le32(o->groups * o->pus * o->chunks);
    g.maxocpu = cpu_to_le32(o->chunks);
    g.read_ns = cpu_to_le32(MIN(cells.read_ns, UINT32_MAX));
    g.read_max_ns = cpu_to_le32(MIN(cells.read_max_ns, UINT32_MAX));
    g.write_ns = cpu_to_le32(MIN(cells.program_ns, UINT32_MAX));
    g.write_max_ns = cpu_to_le32(MIN(cells.program_max_ns, UINT32_MAX));
    g.reset_ns = g.reset_max_ns = cpu_to_le32(MIN(t->erase_ns, UINT32_MAX));
    return nvme_c2h(n, (void *)&g, sizeof(g), req);
}

uint16_t nvme_ocssd_feedback(NvmeCtrl *n, NvmeRequest *req, bool set)
{
    uint32_t dw10 = le32_to_cpu(req->cmd.cdw10);
    NvmeNamespace *ns = ocssd_find_ns(n, req);

    if (!ns) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    if (set) {
        if (NVME_SETFEAT_SAVE(dw10)) {
            return NVME_FID_NOT_SAVEABLE | NVME_DNR;
        }
        if (le32_to_cpu(req->cmd.cdw11) & ~3u) {
            return NVME_INVALID_FIELD | NVME_DNR;
        }
        ocssd_of(ns)->feedback = le32_to_cpu(req->cmd.cdw11);
        return NVME_SUCCESS;
    }
    switch (NVME_GETFEAT_SELECT(dw10)) {
    case NVME_GETFEAT_SELECT_CURRENT:
        req->cqe.result = cpu_to_le32(ocssd_of(ns)->feedback);
        break;
    case NVME_GETFEAT_SELECT_CAP:
        req->cqe.result = cpu_to_le32(NVME_FEAT_CAP_CHANGE |
                                      NVME_FEAT_CAP_NS);
        break;
    default:
        req->cqe.result = 0;
    }
    return NVME_SUCCESS;
}

uint16_t nvme_ocssd_chunks(NvmeCtrl *n, NvmeRequest *req, uint32_t len,
                           uint64_t off)
{
    NvmeNamespace *ns = ocssd_find_ns(n, req);
    g_autofree OcssdDescriptor *d = NULL;
    uint64_t size, first, nr;

    if (!ns) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    nvme_flash_run(ns->flash);
    size = ns->flash->dev.media.shape.nr_zones * sizeof(*d);
    if (off >= size) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    len = MIN(len, size - off);
    first = off / sizeof(*d);
    nr = DIV_ROUND_UP(off + len, sizeof(*d)) - first;
    d = g_new(OcssdDescriptor, nr);
    for (uint64_t i = 0; i < nr; i++) {
        d[i] = ocssd_describe(ns, first + i);
    }
    return nvme_c2h(n, (uint8_t *)d + off % sizeof(*d), len, req);
}

uint16_t nvme_ocssd_notes(NvmeCtrl *n, NvmeRequest *req, uint32_t len,
                          uint64_t off)
{
    NvmeNamespace *ns = ocssd_find_ns(n, req);
    OcssdNote note[OCSSD_MAX_NOTES] = { 0 };
    NvmeFlashOcssd *o;

    if (!ns || off >= sizeof(note)) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    o = ocssd_of(ns);
    for (uint64_t i = 0; i < MIN(o->notes, OCSSD_MAX_NOTES); i++) {
        uint64_t count = o->notes - i;      /* the newest first */

        note[i] = o->note[count % OCSSD_MAX_NOTES];
    }
    return nvme_c2h(n, (uint8_t *)note + off, MIN(len, sizeof(note) - off),
                    req);
}

/* Faults. */

/* A chunk goes offline, or is closed before it is full; its host is told. */
static uint16_t ocssd_fail_chunk(NvmeNamespace *ns, uint64_t lba, bool offline)
{
    NvmeFlashOcssd *o = ocssd_of(ns);
    uint32_t zone, sector;

    if (!ocssd_find(o, lba, &zone, &sector)) {
        return NVME_INVALID_FIELD;
    }
    ns->flash->dev.media.zones[zone].flags |=
        offline ? FLASH_ZONE_OFFLINE : FLASH_ZONE_FINISHED;
    if (o->chunk[zone].state != OCSSD_OFFLINE) {
        o->chunk[zone].state = offline ? OCSSD_OFFLINE : OCSSD_CLOSED;
    }
    o->notes++;
    o->note[o->notes % OCSSD_MAX_NOTES] = (OcssdNote) {
        .count = cpu_to_le64(o->notes),
        .lba = cpu_to_le64(lba - sector),
        .nsid = cpu_to_le32(ns->params.nsid),
        .state = cpu_to_le16(offline ? OCSSD_NOTE_UNRECOVERABLE :
                                       OCSSD_NOTE_REFRESH),
        .mask = OCSSD_NOTE_CHUNK,
    };
    return NVME_SUCCESS;
}

/* What is on flash becomes what the host sees. */
static bool ocssd_load(NvmeNamespace *ns)
{
    NvmeFlashOcssd *o = ocssd_of(ns);
    const FlashMedia *m = &ns->flash_conf->dev.media;

    for (uint64_t i = 0; i < m->shape.nr_zones; i++) {
        const FlashImageZone *iz = &m->zones[i];

        o->chunk[i] = (OcssdChunk) {
            .wp = iz->wp,
            .state = iz->flags & FLASH_ZONE_OFFLINE ? OCSSD_OFFLINE :
                     iz->flags & FLASH_ZONE_FINISHED ||
                     iz->wp == o->sectors ? OCSSD_CLOSED :
                     iz->wp ? OCSSD_OPEN : OCSSD_FREE,
        };
    }
    return true;
}

/* Set-up. */

/*
 * With these sizes a write is cut nowhere but at multiples of ws_min: a power
 * cut leaves write pointers there.
 */
static bool ocssd_check(const NvmeNamespace *ns, Error **errp)
{
    const NvmeFlashChunks *c = &ns->flash_conf->chunks;
    uint64_t least = (uint64_t)c->ws_min * ns->lbasz;

    if (ns->params.zoned) {
        error_setg(errp, "flash.personality=ocssd needs zoned=off");
    } else if (!c->ws_min || !c->ws_opt || c->ws_opt % c->ws_min ||
               c->ws_opt > OCSSD_MAX_LIST) {
        error_setg(errp, "flash.ws_opt (%" PRIu32 ") must be a multiple of "
                   "flash.ws_min (%" PRIu32 "), and at most %d", c->ws_opt,
                   c->ws_min, OCSSD_MAX_LIST);
    } else if (!c->bytes || c->bytes % (c->ws_opt * ns->lbasz) ||
               c->bytes / ns->lbasz > INT32_MAX) {
        error_setg(errp, "flash.chunk (%" PRIu64 ") must be a multiple of "
                   "flash.ws_opt (%" PRIu32 " blocks)", c->bytes, c->ws_opt);
    } else if (ns->flash_conf->dev.tuning.buffer % least) {
        error_setg(errp, "flash.buffer (%" PRIu64 ") must be a multiple of "
                   "flash.ws_min (%" PRIu32 " blocks)",
                   ns->flash_conf->dev.tuning.buffer, c->ws_min);
    } else {
        return true;
    }
    return false;
}

static void ocssd_shape(const NvmeNamespace *ns, FlashShape *shape,
                        FlashDev *dev)
{
    shape->zone_blocks = ns->flash_conf->chunks.bytes / ns->lbasz;
    shape->zone_cap = shape->zone_blocks;
    shape->nr_zones = le64_to_cpu(ns->id_ns.nsze) / shape->zone_blocks;
    shape->zone_dies = 1;
}

static char *ocssd_start(NvmeNamespace *ns)
{
    NvmeFlash *f = ns->flash_conf;
    const FlashShape *s = &f->dev.media.shape;
    uint64_t dies = (uint64_t)s->channels * s->dies_per_channel;
    uint8_t bits;
    NvmeFlashOcssd *o;
    char *why;

    if (s->nr_zones % dies) {
        return asprintf(&why, "flash.size: %" PRIu64 " chunks cannot be shared "
                        "evenly by %" PRIu64 " dies", s->nr_zones,
                        dies) < 0 ? NULL : why;
    }
    if (f->dev.unit_blocks % f->chunks.ws_min) {
        return asprintf(&why, "flash.ws_min (%" PRIu32 ") must divide a "
                        "program unit (%" PRIu32 " blocks)", f->chunks.ws_min,
                        f->dev.unit_blocks) < 0 ? NULL : why;
    }
    o = f->ocssd = g_new0(NvmeFlashOcssd, 1);
    o->groups = s->channels;
    o->pus = s->dies_per_channel;
    o->chunks = s->nr_zones / dies;
    o->sectors = s->zone_cap;
    o->group_bits = ocssd_bits(o->groups);
    o->pu_bits = ocssd_bits(o->pus);
    o->chunk_bits = ocssd_bits(o->chunks);
    o->sector_bits = ocssd_bits(o->sectors);
    o->chunk = g_new0(OcssdChunk, s->nr_zones);
    bits = o->group_bits + o->pu_bits + o->chunk_bits + o->sector_bits;
    ns->id_ns.nsze = cpu_to_le64(1ull << bits);
    ns->id_ns.ncap = ns->id_ns.nuse = ns->id_ns.nsze;
    ns->id_ns.nsfeat |= NVME_ID_NS_NSFEAT_DAE;  /* if the host asks for it */
    ns->id_ns.vs[0] = 1;        /* Linux looks here */
    ns->id_ns.mssrl = 0;        /* copies are 0x93, with lists */
    ns->id_ns.mcl = 0;
    ns->id_ns.msrc = 0;
    ocssd_load(ns);
    return NULL;
}

static void ocssd_stop(NvmeNamespace *ns)
{
    if (ns->flash_conf->ocssd) {
        g_free(ns->flash_conf->ocssd->chunk);
        g_clear_pointer(&ns->flash_conf->ocssd, g_free);
    }
}

const NvmeFlashPersonality nvme_flash_ocssd = {
    .name = "ocssd",
    .oncs = NVME_ONCS_DSM,
    .check = ocssd_check,
    .shape = ocssd_shape,
    .start = ocssd_start,
    .stop = ocssd_stop,
    .load = ocssd_load,
    .fail = ocssd_fail_chunk,
    .exec_other = ocssd_exec_other,
    .read_ended = ocssd_read_ended,
    .resume = ocssd_resume,
};
