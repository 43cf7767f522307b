/*
 * What the mappings of the FTL share.  See core.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* Blocks that a job reads at once, next to each other on flash. */
typedef struct FtlRun {
    FlashCmd cmd;               /* first: it is freed by its address */
    Ftl *ftl;
    FtlJob *job;                /* that waits for it, or NULL */
    uint32_t first;
} FtlRun;

/* Places. */

static uint32_t block_of(const Ftl *ftl, uint64_t place)
{
    assert(place < (uint64_t)ftl->nr_blocks * ftl->cap);
    return place / ftl->cap;
}

uint32_t ftl_used(const Ftl *ftl, uint32_t block)
{
    return flash_dev_used(ftl->dev, block);
}

uint32_t ftl_erases(const Ftl *ftl, uint32_t block)
{
    assert(block < ftl->nr_blocks);
    return ftl->dev->media.zones[block].erases;
}

uint64_t ftl_units(const Ftl *ftl, uint64_t blocks)
{
    return flash_zone_units(ftl->dev, blocks) * ftl->dev->unit_blocks;
}

static uint32_t oob_handle(const FtlOob *oob)
{
    return (oob->lba & FTL_FILLER) >> FTL_HANDLE;
}

static uint64_t oob_lba(const Ftl *ftl, const FtlOob *oob)
{
    uint64_t lba = oob->lba & FTL_FILLER;

    return ftl->config.handles && lba != FTL_FILLER ?
           lba & ((1ull << FTL_HANDLE) - 1) : lba;
}

void ftl_unmap(Ftl *ftl, uint64_t lba)
{
    uint64_t place = ftl->map[lba];
    FtlBlock *b;

    if (place == FTL_NOWHERE) {
        return;
    }
    b = &ftl->blocks[block_of(ftl, place)];
    assert(b->valid && ftl->back[place] == lba);
    b->valid--;
    b->changed = ftl->version;
    ftl->back[place] = FTL_FILLER;
    ftl->map[lba] = FTL_NOWHERE;
}

static void map_to(Ftl *ftl, uint64_t lba, uint64_t place)
{
    FtlBlock *b = &ftl->blocks[block_of(ftl, place)];

    ftl_unmap(ftl, lba);
    ftl->map[lba] = place;
    assert(ftl->back[place] == FTL_FILLER);
    ftl->back[place] = lba;
    b->valid++;
    b->changed = ftl->version;
}

static void put_lba(Ftl *ftl, uint32_t block, uint64_t lba, uint32_t handle,
                    const uint8_t *data, bool own, FlashCmd *wait)
{
    FtlBlock *b = &ftl->blocks[block];
    uint32_t n = ftl_used(ftl, block);
    FtlOob oob = {
        .lba = lba | (uint64_t)b->role << FTL_ROLE |
               (uint64_t)handle << FTL_HANDLE,
        .version = ++ftl->version,
    };

    assert(n < ftl->cap);
    assert(!handle || handle < ftl->config.handles);
    assert(b->state == FTL_OPEN);
    if (lba != FTL_FILLER) {
        map_to(ftl, lba, (uint64_t)block * ftl->cap + n);
    }
    if (n + 1 == ftl->cap && b->state == FTL_OPEN) {
        b->state = FTL_CLOSED;
    }
    flash_dev_put(ftl->dev, block, data, (const uint8_t *)&oob, own, wait);
}

void ftl_put(Ftl *ftl, uint32_t block, uint64_t lba, const uint8_t *data,
             FlashCmd *wait)
{
    put_lba(ftl, block, lba, ftl->handle, data, false, wait);
}

void ftl_put_own(Ftl *ftl, uint32_t block, uint64_t lba, const uint8_t *data)
{
    put_lba(ftl, block, lba, 0, data, true, NULL);
}

static void tell(const Ftl *ftl, const FtlEvent *event)
{
    if (ftl->config.event) {
        ftl->config.event(ftl->config.owner, event);
    }
}

static void on_padded(FlashDev *dev, uint32_t block)
{
    Ftl *ftl = dev->ftl;
    FtlBlock *b = &ftl->blocks[block];
    uint32_t handle = ftl_handle_of(b->role);

    if (ftl_used(ftl, block) != ftl->cap || b->state != FTL_OPEN) {
        return;
    }
    b->state = FTL_CLOSED;
    if (handle != FTL_NONE && ftl->mapping->open_of(ftl, handle) == block) {
        tell(ftl, &(FtlEvent) { .kind = FTL_PADDED, .handle = handle });
    }
}

/* Free blocks. */

static void free_block(Ftl *ftl, uint32_t block)
{
    FtlGroup *g = &ftl->groups[block % ftl->nr_groups];
    FtlBlock *b = &ftl->blocks[block];

    assert(!b->valid);
    assert(b->state != FTL_FREE && !ftl_used(ftl, block));
    b->state = FTL_FREE;
    b->next = FTL_NONE;
    ftl->stats.free_blocks++;
    if (g->nr_free++) {
        ftl->blocks[g->last].next = block;
    } else {
        g->first = block;
    }
    g->last = block;
}

/* The free block behind that one, or the first (FTL_NONE), is taken. */
static uint32_t take_behind(Ftl *ftl, uint32_t group, uint8_t role,
                            uint32_t before)
{
    FtlGroup *g = &ftl->groups[group];
    uint32_t *link = before == FTL_NONE ? &g->first : &ftl->blocks[before].next;
    uint32_t block = *link;

    if (!g->nr_free) {
        return FTL_NONE;
    }
    assert(ftl->blocks[block].state == FTL_FREE && ftl->stats.free_blocks);
    *link = ftl->blocks[block].next;
    g->last = block == g->last ? before : g->last;
    g->nr_free--;
    ftl->stats.free_blocks--;
    ftl->blocks[block].state = FTL_OPEN;
    ftl->blocks[block].role = role;
    return block;
}

uint32_t ftl_take(Ftl *ftl, uint32_t group, uint8_t role)
{
    return take_behind(ftl, group, role, FTL_NONE);
}

uint32_t ftl_take_by_wear(Ftl *ftl, uint32_t group, uint8_t role, bool most)
{
    const FtlGroup *g = &ftl->groups[group];
    uint32_t best = g->first, before = FTL_NONE, block = g->first;

    for (uint32_t i = 1; i < g->nr_free; i++) {
        uint32_t next = ftl->blocks[block].next;
        uint32_t n = ftl_erases(ftl, next), than = ftl_erases(ftl, best);

        if (most ? n > than : n < than) {
            best = next;
            before = block;
        }
        block = next;
    }
    return take_behind(ftl, group, role, before);
}

/* Jobs: moving. */

FtlJob *ftl_job(void)
{
    FtlJob *job = flash_alloc(1, sizeof(*job));

    job->from = job->victims[0] = job->victims[1] = job->last = FTL_NONE;
    return job;
}

static void run_ended(FlashDev *dev, FlashCmd *cmd)
{
    FtlRun *run = (FtlRun *)cmd;

    (void)dev;
    if (!cmd->status && run->job) {
        assert(run->first + cmd->nlb <= run->job->nr);
        memset(run->job->read + run->first, true, cmd->nlb);
        run->ftl->kick(run->ftl);
    }
    free(run);
}

static bool wanted(const Ftl *ftl, const FtlJob *job, uint64_t lba)
{
    uint64_t place = lba == FTL_FILLER ? FTL_NOWHERE : ftl->map[lba];

    return job->from == FTL_NONE ||
           (place != FTL_NOWHERE && block_of(ftl, place) == job->from);
}

static uint64_t job_place(const Ftl *ftl, const FtlJob *job, uint32_t n)
{
    uint64_t lba = job->lbas[n];

    return lba != FTL_FILLER && wanted(ftl, job, lba) ? ftl->map[lba] :
                                                        FTL_NOWHERE;
}

/* One read for what lies side by side. */
static void job_read(Ftl *ftl, FtlJob *job, uint32_t most)
{
    uint64_t place = job_place(ftl, job, job->asked);
    uint32_t n = 1;
    FtlRun *run;

    assert(job->asked < job->nr && most);
    if (place == FTL_NOWHERE) {
        job->read[job->asked++] = true;
        return;
    }
    while (n < most && job->asked + n < job->nr &&
           (place + n) % ftl->cap &&
           job_place(ftl, job, job->asked + n) == place + n) {
        n++;
    }
    run = flash_alloc(1, sizeof(*run));
    run->cmd.kind = FLASH_CMD_READ;
    run->cmd.zone = block_of(ftl, place);
    run->cmd.block = place % ftl->cap;
    run->cmd.nlb = n;
    run->cmd.inside = true;
    run->cmd.then = run_ended;
    run->ftl = ftl;
    run->job = ftl->config.at_once ? NULL : job;
    run->first = job->asked;
    job->asked += n;
    flash_dev_submit_internal(ftl->dev, &run->cmd);
}

/* A block that a handle's write brought moves. */
static void note_move(Ftl *ftl, FtlJob *job, uint32_t handle, uint64_t lba)
{
    FtlEvent *moves = &job->moves[handle];

    assert(handle < ftl->config.handles);
    if (!moves->nlb++) {
        moves->lba = lba;
    }
    ftl->handles[handle].moved++;
}

/* The newest version of the next block, which has been read, goes its way. */
static void job_put(Ftl *ftl, FtlJob *job)
{
    uint64_t lba = job->lbas[job->put++];
    uint32_t handle = 0;
    uint64_t place;
    FtlOob oob;

    assert(job->put <= job->asked);
    if (!wanted(ftl, job, lba)) {
        return;                 /* the host was faster */
    }
    place = lba == FTL_FILLER ? FTL_NOWHERE : ftl->map[lba];
    if (place == FTL_NOWHERE) {
        memset(ftl->scratch, 0, ftl->dev->media.shape.block_size);
        lba = FTL_FILLER;
        ftl->stats.filler++;
    } else {
        flash_dev_copy(ftl->dev, block_of(ftl, place), place % ftl->cap, 1,
                       ftl->scratch, (uint8_t *)&oob);
        /* pages of a map that are written anew: the mapping counts them */
        ftl->stats.moved += job->from != FTL_NONE || lba < ftl->config.logical;
        if (job->moves) {
            handle = oob_handle(&oob);
            note_move(ftl, job, handle, lba);
        }
    }
    job->last = job->dest(ftl, job);
    put_lba(ftl, job->last, lba, handle, ftl->scratch, true, NULL);
}

/* FEMU's way: dies are busy for so long, but no write waits for its read. */
static void job_charge(Ftl *ftl, FtlJob *job)
{
    while (job->asked < job->nr) {
        job_read(ftl, job, job->nr);
    }
    while (job->put < job->nr) {
        job_put(ftl, job);
    }
}

/* Has the unit that the next block goes to begun?  Then it needs no slot. */
static bool goes_on(const Ftl *ftl, const FtlJob *job)
{
    uint32_t block = job->in_place ? job->tag : job->last;

    return block != FTL_NONE && flash_dev_filling(ftl->dev, block);
}

static void job_move(Ftl *ftl, FtlJob *job)
{
    FlashDev *dev = ftl->dev;
    uint32_t window = dev->media.shape.zone_dies * dev->unit_blocks;

    do {
        while (job->put < job->asked && job->read[job->put] &&
               (goes_on(ftl, job) || flash_dev_room(dev))) {
            job_put(ftl, job);
        }
        if (job->asked == job->nr || job->asked - job->put >= window) {
            return;
        }
        job_read(ftl, job, window - (job->asked - job->put));
    } while (true);
}

/* Jobs: waiting, erasing. */

typedef struct FtlStep {
    FlashCmd cmd;               /* first: it is freed by its address */
    Ftl *ftl;
    FtlJob *job;
} FtlStep;

static void step_ended(FlashDev *dev, FlashCmd *cmd)
{
    FtlStep *step = (FtlStep *)cmd;

    (void)dev;
    if (!cmd->status) {
        assert(step->job->waits);
        step->job->waits--;
        step->ftl->kick(step->ftl);
    }
    free(step);
}

static FlashCmd *job_step(Ftl *ftl, FtlJob *job)
{
    FtlStep *step = flash_alloc(1, sizeof(*step));

    step->cmd.then = step_ended;
    step->ftl = ftl;
    step->job = job;
    job->waits++;
    return &step->cmd;
}

static void job_erase(Ftl *ftl, FtlJob *job, uint32_t block)
{
    FlashCmd *cmd = job_step(ftl, job);

    cmd->kind = FLASH_CMD_RESET;
    assert(ftl->blocks[block].state == FTL_VICTIM);
    cmd->zone = block;
    flash_dev_submit_internal(ftl->dev, cmd);
}

/* Does a job still write to the block?  Then the job fills its unit. */
static bool moved_to(const Ftl *ftl, uint32_t block)
{
    for (const FtlJob *job = ftl->jobs; job; job = job->next) {
        if (job->step == FTL_MOVING &&
            (job->last == block || (job->in_place && job->tag == block))) {
            return true;
        }
    }
    return false;
}

/*
 * The version on a victim may be the one that was flushed, so the newest one
 * must be on flash before the victim is erased.  Pages of a map need not: they
 * are made anew.  If cmd is given, it waits for that.  True: the newest
 * version is in a unit that has not been issued.
 */
static bool wait_for(Ftl *ftl, uint32_t victim, uint32_t n, FlashCmd *cmd,
                     bool push)
{
    const FtlOob *oob = (const FtlOob *)flash_dev_oob(ftl->dev, victim, n);
    uint64_t lba = oob ? oob_lba(ftl, oob) : FTL_FILLER;
    uint64_t place;

    assert(n < ftl_used(ftl, victim));
    if (lba >= ftl->config.logical || !oob->version) {
        return false;
    }
    place = ftl->map[lba];
    if (place == FTL_NOWHERE ||
        !flash_dev_wait(ftl->dev, block_of(ftl, place), place % ftl->cap,
                        cmd)) {
        return false;
    }
    if (push && !moved_to(ftl, block_of(ftl, place))) {
        flash_dev_push(ftl->dev, block_of(ftl, place));
    }
    return flash_dev_filling(ftl->dev, block_of(ftl, place));
}

/*
 * True: what the job waits for has not been issued yet.  At power on, blocks
 * that were moved in place count all together or not at all.
 */
static bool job_wait(Ftl *ftl, FtlJob *job, FlashCmd *cmd, bool push)
{
    bool held = false;

    for (uint32_t n = 0; job->in_place && n < ftl_used(ftl, job->tag); n++) {
        if (flash_dev_wait(ftl->dev, job->tag, n, cmd) && push) {
            flash_dev_push(ftl->dev, job->tag);
        }
    }

    for (int i = 0; i < 2; i++) {
        uint32_t victim = job->victims[i];

        for (uint32_t n = 0;
             victim != FTL_NONE && n < ftl_used(ftl, victim); n++) {
            held |= wait_for(ftl, victim, n, cmd, push);
        }
    }
    return held;
}

/*
 * The job's unit that is not issued yet, or -1.  All that is in it may be stale
 * by now: the job waits for its program nevertheless.
 */
static int64_t job_awaits(const Ftl *ftl, const FtlJob *job)
{
    return job->step == FTL_WAITING && job->waits ?
           flash_dev_awaits(ftl->dev, job->programs) : -1;
}

void ftl_hurry_jobs(Ftl *ftl, uint32_t tag)
{
    for (FtlJob *job = ftl->jobs; job; job = job->next) {
        if (job->tag == tag && !(job->held && job->step == FTL_WAITING &&
                                 (job_wait(ftl, job, NULL, false) ||
                                  job_awaits(ftl, job) >= 0))) {
            return;             /* a job goes on by itself, and gives a block */
        }
    }
    for (FtlJob *job = ftl->jobs; job; job = job->next) {
        if (job->tag == tag) {
            int64_t block;

            assert(!job->in_place);     /* its unit could not be pushed */
            job_wait(ftl, job, NULL, true);
            while ((block = job_awaits(ftl, job)) >= 0) {
                flash_dev_push(ftl->dev, block);
            }
        }
    }
}

static void job_free(FtlJob *job)
{
    free(job->lbas);
    free(job->read);
    free(job->moves);
    free(job);
}

static void job_end(Ftl *ftl, FtlJob *job)
{
    FtlJob **p = &ftl->jobs;

    while (*p != job) {
        p = &(*p)->next;
        assert(*p);
    }
    *p = job->next;
    for (int i = 0; i < 2; i++) {
        if (job->victims[i] != FTL_NONE) {
            ftl->stats.victims++;
            free_block(ftl, job->victims[i]);
        }
    }
    job->ended(ftl, job);
    job_free(job);
    ftl->kick(ftl);
}

static void job_moved(Ftl *ftl, FtlJob *job)
{
    FlashCmd *cmd = job_step(ftl, job);

    job->step = FTL_WAITING;
    job->programs = cmd;
    assert(job->put == job->nr);
    for (uint32_t i = 0; job->moves && i < ftl->config.handles; i++) {
        if (job->moves[i].nlb) {
            tell(ftl, &job->moves[i]);
        }
    }
    if (job->in_place) {
        flash_dev_pin(ftl->dev, job->tag, false);
    }
    flash_dev_hold(ftl->dev, cmd);
    if (job_wait(ftl, job, cmd, !job->patient) && job->patient) {
        job->held = true;
        job->held_up(ftl, job);
    }
    flash_dev_release(ftl->dev, cmd);
}

/* As far as it goes now. */
static void job_pump(Ftl *ftl, FtlJob *job)
{
    if (job->step == FTL_MOVING) {
        if (ftl->config.at_once) {
            job_charge(ftl, job);
        } else {
            job_move(ftl, job);
        }
        if (job->put < job->nr) {
            return;
        }
        job_moved(ftl, job);
    }
    if (job->step == FTL_WAITING && !job->waits) {
        job->step = FTL_ERASING;
        for (int i = 0; i < 2; i++) {
            if (job->victims[i] != FTL_NONE) {
                job_erase(ftl, job, job->victims[i]);
            }
        }
    }
    if (job->step == FTL_ERASING && !job->waits) {
        job_end(ftl, job);
    }
}

void ftl_run_jobs(Ftl *ftl)
{
    FtlJob *next;

    for (FtlJob *job = ftl->jobs; job; job = next) {
        next = job->next;
        job_pump(ftl, job);
    }
}

void ftl_start(Ftl *ftl, FtlJob *job)
{
    job->read = flash_alloc(job->nr, 1);
    assert(job->ended && (job->dest || !job->nr));
    if (ftl->config.handles) {
        job->moves = flash_alloc(ftl->config.handles, sizeof(*job->moves));
        for (uint32_t i = 0; i < ftl->config.handles; i++) {
            job->moves[i].handle = i;
        }
    }
    assert(!job->patient || job->held_up);
    if (job->in_place) {
        flash_dev_pin(ftl->dev, job->tag, true);
    }
    for (int i = 0; i < 2; i++) {
        if (job->victims[i] != FTL_NONE) {
            assert(ftl->blocks[job->victims[i]].state == FTL_OPEN ||
                   ftl->blocks[job->victims[i]].state == FTL_CLOSED);
            ftl->blocks[job->victims[i]].state = FTL_VICTIM;
        }
    }
    job->next = ftl->jobs;
    ftl->jobs = job;
    ftl->kick(ftl);
}

/* Life. */

static void jobs_forget(Ftl *ftl)
{
    while (ftl->jobs) {
        FtlJob *job = ftl->jobs;

        ftl->jobs = job->next;
        job_free(job);
    }
}

void ftl_core_init(Ftl *ftl)
{
    const FlashShape *s = &ftl->dev->media.shape;

    ftl->dev->padded = on_padded;
    ftl->cap = s->zone_cap;
    ftl->nr_blocks = s->nr_zones;
    ftl->nr_groups = ftl->dev->time.nr_dies / s->zone_dies;
    assert(ftl->cap && ftl->nr_groups);
    ftl->trims = (uint64_t *)ftl->dev->media.ext;
    ftl->map = flash_alloc(ftl->space, sizeof(*ftl->map));
    ftl->back = flash_alloc((size_t)ftl->nr_blocks * ftl->cap,
                            sizeof(*ftl->back));
    ftl->blocks = flash_alloc(ftl->nr_blocks, sizeof(*ftl->blocks));
    ftl->groups = flash_alloc(ftl->nr_groups, sizeof(*ftl->groups));
    ftl->scratch = flash_alloc(1, s->block_size);
    ftl->handles = flash_alloc(ftl->config.handles + 1, sizeof(*ftl->handles));
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        ftl->groups[i % ftl->nr_groups].nr_blocks++;
    }
}

/* A handle's erase blocks hold what was written by it, and nothing else. */
static bool role_fits(const Ftl *ftl, const FtlOob *oob)
{
    uint64_t role = oob->lba >> FTL_ROLE;

    if (!ftl->config.handles) {
        return role < FTL_ROLES;
    }
    if (role && role < FTL_ROLES) {
        return false;
    }
    return (oob->lba & FTL_FILLER) != FTL_FILLER &&
           oob_handle(oob) < ftl->config.handles &&
           (role ? role == ftl_role_of(oob_handle(oob)) :
                   !ftl_is_apart(ftl, oob_handle(oob)));
}

/*
 * Find the block's role, and whether all of it was written and can be read.
 * False: no drive wrote such a block.
 */
static bool block_inspect(Ftl *ftl, uint32_t block)
{
    const FlashMedia *m = &ftl->dev->media;
    FtlBlock *b = &ftl->blocks[block];
    uint64_t start = block * m->shape.zone_blocks;
    uint32_t used = ftl_used(ftl, block);

    /* a kept buffer may end inside a unit, which the drive then leaves */
    b->whole = m->zones[block].wp == ftl->cap &&
               !flash_media_bad(m, start, used);
    for (uint32_t i = 0; i < used; i++) {
        const FtlOob *oob = (const FtlOob *)flash_media_oob(m, start + i);

        if (!flash_media_bad(m, start + i, 1) && oob->version) {
            if (oob->version > FTL_VERSIONS || !role_fits(ftl, oob)) {
                return false;
            }
            b->role = oob->lba >> FTL_ROLE;
            b->newest = oob->version > b->newest ? oob->version : b->newest;
        }
    }
    ftl->version = b->newest > ftl->version ? b->newest : ftl->version;
    return true;
}

/* The newest versions are taken; versions: those of what is in the map. */
static void block_load(Ftl *ftl, uint32_t block, uint64_t *versions)
{
    const FlashMedia *m = &ftl->dev->media;
    uint64_t start = block * m->shape.zone_blocks;

    for (uint32_t i = 0; i < ftl_used(ftl, block); i++) {
        const FtlOob *oob = (const FtlOob *)flash_media_oob(m, start + i);
        uint64_t lba = oob_lba(ftl, oob);

        if (lba < ftl->space && oob->version > versions[lba] &&
            (lba >= ftl->config.logical || oob->version > ftl->trims[lba]) &&
            !flash_media_bad(m, start + i, 1)) {
            versions[lba] = oob->version;
            map_to(ftl, lba, (uint64_t)block * ftl->cap + i);
        }
    }
}

bool ftl_core_load(Ftl *ftl)
{
    uint64_t *versions;

    jobs_forget(ftl);
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        flash_dev_align(ftl->dev, i);
    }
    ftl->version = 0;
    ftl->stats.free_blocks = 0;
    for (uint64_t i = 0; i < ftl->space; i++) {
        ftl->map[i] = FTL_NOWHERE;
        if (i < ftl->config.logical && ftl->trims[i] > ftl->version) {
            ftl->version = ftl->trims[i];
        }
    }
    for (uint64_t i = 0; i < (uint64_t)ftl->nr_blocks * ftl->cap; i++) {
        ftl->back[i] = FTL_FILLER;
    }
    for (uint32_t i = 0; i < ftl->nr_groups; i++) {
        ftl->groups[i].nr_free = 0;
    }
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        ftl->blocks[i] = (FtlBlock) { .state = FTL_CLOSED };
        if (!block_inspect(ftl, i)) {
            return false;
        }
    }
    if (ftl->version > FTL_VERSIONS) {
        return false;           /* by a trim */
    }
    versions = flash_alloc(ftl->space, sizeof(*versions));
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        if (!ftl_used(ftl, i)) {
            free_block(ftl, i);
        } else if (!ftl->mapping->ignores ||
                   !ftl->mapping->ignores(&ftl->blocks[i])) {
            block_load(ftl, i, versions);
        }
    }
    free(versions);
    return true;
}

void ftl_core_free(Ftl *ftl)
{
    jobs_forget(ftl);
    free(ftl->map);
    free(ftl->back);
    free(ftl->blocks);
    free(ftl->groups);
    free(ftl->scratch);
    free(ftl->handles);
}
