// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The FTL inside a drive against an array, without a guest: random commands,
 * many at a time, with power cuts in between.
 *
 *     test_ftl MAPPING OPERATIONS SEED [plp] [whole] [torn] [handles] [aged]
 *
 * Each version of a logical block carries its number.  What a read brings is
 * the version that was acknowledged last, or one under way; after a cut it is
 * none older than what was flushed, or trimmed.  A seed stands for a geometry too.
 * Exits with 1 and one line where that is not so.
 *
 * plp: the drive has capacitors, so what was acknowledged is safe.  whole: no
 * cut may tear a write that fits into a program unit.  torn: the same is
 * expected of a drive that does not promise it.  handles: each write names one,
 * and blocks that were written by several are mixed only by collection, and
 * only those of handles that are not kept apart.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flash/ftl/ftl.h"
#include "flash/ftl/core.h"

#define BLOCK 512u
#define DEEP 16u                /* commands under way, at most */
#define MOST 8u                 /* blocks of a command, at most */
#define US 1000ull

static char path[] = "/tmp/test-ftl-XXXXXX";
static uint64_t random_state, operations, done_operations;
static FlashDev dev;
static Ftl *ftl;
static FtlConfig config;
static FlashShape shape;
static FlashTuning tuning;
static unsigned under_way;
static bool dead;
static bool plp, whole, torn, handles, aged;
static unsigned cut_at_end;     /* the power goes then, counted in events */

/* What we know of a logical block; its versions are numbered from 1. */
typedef struct Known {
    uint64_t sent;              /* newest version that was submitted */
    uint64_t acked;             /* ... and acknowledged */
    uint64_t safe;              /* ... and is on flash */
    uint64_t trim;              /* newest version that is a trim: reads as 0 */
    uint64_t trimming;          /* ... that is under way */
    unsigned busy;              /* writes under way */
} Known;

static Known *known;

/* A write since the last cut. */
typedef struct Sent {
    uint64_t lba;
    uint32_t nlb;
    uint64_t versions[MOST];
} Sent;

static Sent *sent;
static size_t nr_sent, room_sent;

typedef struct Command {
    FlashCmd cmd;
    uint64_t versions[MOST];
    uint64_t *acked;            /* flush: what it has to bring to flash */
} Command;

static void wrong(const char *what, ...)
{
    va_list args;

    va_start(args, what);
    printf("wrong after %llu operations: ", (unsigned long long)done_operations);
    vprintf(what, args);
    printf("\n");
    va_end(args);
    unlink(path);
    exit(1);
}

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 0x2545f4914f6cdd1dull >> 16) % below;
}

/* The version that a block has now; a trim's and none are 0. */
static uint64_t version_of(uint64_t lba)
{
    uint8_t data[BLOCK];
    uint64_t *word = (uint64_t *)data;

    if (ftl_bad(ftl, lba, 1)) {
        wrong("block %llu is unreadable", (unsigned long long)lba);
    }
    ftl_copy(ftl, lba, 1, data);
    if (word[0] && (word[0] != lba + 1 || word[BLOCK / 8 - 1] != word[1])) {
        wrong("block %llu holds another's data", (unsigned long long)lba);
    }
    return word[0] ? word[1] : 0;
}

/* Not older than least: that is the trim since then, where it is zeroes. */
static uint64_t check_block(uint64_t lba, uint64_t least, const char *when)
{
    const Known *k = &known[lba];
    uint64_t v = version_of(lba);

    if (!v && k->trimming >= least && k->trimming) {
        return k->trimming;
    }
    if (!v && k->trim >= least) {
        return k->trim;
    }
    if (v < least || v < k->trim || v > k->sent) {
        wrong("%s: block %llu has version %llu, expected %llu to %llu, "
              "trimmed at %llu", when, (unsigned long long)lba,
              (unsigned long long)v, (unsigned long long)least,
              (unsigned long long)k->sent, (unsigned long long)k->trim);
    }
    return v;
}

/* What its data says of the handle that brought a block is what the flash says. */
static void check_handles(void)
{
    for (uint64_t lba = 0; lba < config.logical; lba++) {
        uint64_t place = ftl->map[lba], word[BLOCK / 8];
        uint32_t handle;
        uint8_t role;
        FtlOob oob;

        if (place == FTL_NOWHERE) {
            continue;
        }
        flash_dev_copy(&dev, place / ftl->cap, place % ftl->cap, 1,
                       (uint8_t *)word, (uint8_t *)&oob);
        handle = oob.lba >> FTL_HANDLE & 0xff;
        role = oob.lba >> FTL_ROLE;
        if (handle != word[2]) {
            wrong("block %llu came by handle %llu, not by %u",
                  (unsigned long long)lba, (unsigned long long)word[2], handle);
        }
        if (role != ftl->blocks[place / ftl->cap].role ||
            (role ? ftl_handle_of(role) != handle :
                    ftl_is_apart(ftl, handle))) {
            wrong("block %llu of handle %u is among those of role %u",
                  (unsigned long long)lba, handle, role);
        }
    }
}

/* All that is open for the host is its handle's, also what was trimmed. */
static void check_open(void)
{
    for (uint32_t h = 0; h < config.handles; h++) {
        uint32_t block = ftl->mapping->open_of(ftl, h);
        uint64_t left = ftl_handle_left(ftl, h);

        if (!left || left > ftl->cap ||
            (block != FTL_NONE && ftl->blocks[block].role != ftl_role_of(h))) {
            wrong("handle %u writes to erase block %u", h, block);
        }
    }
}

static void check_tables(void)
{
    uint32_t *valid = calloc(ftl->nr_blocks, sizeof(*valid));

    for (uint64_t lba = 0; lba < ftl->space; lba++) {
        uint64_t place = ftl->map[lba];

        if (place != FTL_NOWHERE) {
            if (ftl->back[place] != lba ||
                place % ftl->cap >= ftl_used(ftl, place / ftl->cap)) {
                wrong("the map and the flash differ");
            }
            valid[place / ftl->cap]++;
        }
    }
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        if (valid[i] != ftl->blocks[i].valid ||
            (ftl->blocks[i].state == FTL_FREE && ftl_used(ftl, i))) {
            wrong("erase block %u is not what it is taken for", i);
        }
    }
    free(valid);
    if (handles) {
        check_handles();
        check_open();
    }
}

static void on_event(void *owner, const FtlEvent *event)
{
    (void)owner;
    if (event->handle >= config.handles ||
        (event->kind == FTL_MOVED &&
         (!event->nlb || event->lba >= config.logical))) {
        wrong("an event of handle %u", event->handle);
    }
}

static void on_done(FlashDev *d, FlashCmd *cmd)
{
    Command *c = (Command *)cmd;

    (void)d;
    under_way--;
    if (cmd->kind == FLASH_CMD_FLUSH) {
        for (uint64_t i = 0; !cmd->status && i < config.logical; i++) {
            if (c->acked[i] > known[i].safe) {
                known[i].safe = c->acked[i];
            }
        }
        free(c->acked);
    }
    for (uint32_t i = 0; i < cmd->nlb && cmd->kind == FLASH_CMD_WRITE; i++) {
        Known *k = &known[cmd->block + i];

        k->busy--;
        if (!cmd->status && c->versions[i] > k->acked) {
            k->acked = c->versions[i];
        }
        if (!cmd->status && (cmd->fua || plp || !tuning.buffer) &&
            c->versions[i] > k->safe) {
            k->safe = c->versions[i];
        }
    }
    for (uint32_t i = 0; i < cmd->nlb && cmd->kind == FLASH_CMD_TRIM; i++) {
        Known *k = &known[cmd->block + i];

        if (!cmd->status) {
            k->trim = k->acked = k->safe = k->trimming;
            k->trimming = 0;
        }
    }
    for (uint32_t i = 0; i < cmd->nlb && cmd->kind == FLASH_CMD_READ; i++) {
        if (!cmd->status) {
            check_block(cmd->block + i, c->versions[i], "read");
        }
    }
    free(c);
}

static void on_lost_power(FlashDev *d)
{
    (void)d;
    dead = true;
}

static Command *command(FlashCmdKind kind, uint64_t lba, uint32_t nlb)
{
    Command *c = calloc(1, sizeof(*c));

    c->cmd.kind = kind;
    c->cmd.block = lba;
    c->cmd.nlb = nlb;
    under_way++;
    return c;
}

static void note_sent(const Command *c)
{
    if (nr_sent == room_sent) {
        room_sent = 2 * room_sent + 64;
        sent = realloc(sent, room_sent * sizeof(*sent));
    }
    sent[nr_sent] = (Sent) { .lba = c->cmd.block, .nlb = c->cmd.nlb };
    memcpy(sent[nr_sent++].versions, c->versions, sizeof(c->versions));
}

static void submit_write(uint64_t lba, uint32_t nlb)
{
    Command *c;

    for (uint32_t i = 0; i < nlb; i++) {
        if (known[lba + i].trimming) {
            return;
        }
    }
    c = command(FLASH_CMD_WRITE, lba, nlb);
    c->cmd.fua = !draw(16);
    c->cmd.handle = handles ? draw(config.handles) : 0;
    c->cmd.data = calloc(nlb, BLOCK);
    for (uint32_t i = 0; i < nlb; i++) {
        uint64_t *word = (uint64_t *)(c->cmd.data + i * BLOCK);

        known[lba + i].busy++;
        word[0] = lba + i + 1;
        word[1] = word[BLOCK / 8 - 1] = c->versions[i] = ++known[lba + i].sent;
        word[2] = c->cmd.handle;
    }
    /* some with a hint, and some of these of a block that does not exist */
    c->cmd.hinted = c->versions[0] % 2;
    c->cmd.near = c->versions[0] * 7919 % (config.logical + 8);
    c->cmd.further = c->versions[0] % 3;
    if ((whole || torn) && nlb <= dev.unit_blocks) {
        c->cmd.whole = whole && nlb > 1;
        note_sent(c);
    }
    flash_dev_submit(&dev, &c->cmd);
}

static void submit_read(uint64_t lba, uint32_t nlb)
{
    Command *c = command(FLASH_CMD_READ, lba, nlb);

    for (uint32_t i = 0; i < nlb; i++) {
        c->versions[i] = known[lba + i].acked;
    }
    flash_dev_submit(&dev, &c->cmd);
}

/* Trims and writes of the same blocks under way would come in any order. */
static void submit_trim(uint64_t lba, uint32_t nlb)
{
    for (uint32_t i = 0; i < nlb; i++) {
        Known *k = &known[lba + i];

        if (k->busy || k->trimming) {
            nlb = i;
        } else {
            k->trimming = ++k->sent;
        }
    }
    if (nlb) {
        flash_dev_submit(&dev, &command(FLASH_CMD_TRIM, lba, nlb)->cmd);
    }
}

static void submit_flush(void)
{
    Command *c = command(FLASH_CMD_FLUSH, 0, 0);

    c->acked = calloc(config.logical, sizeof(*c->acked));
    for (uint64_t i = 0; i < config.logical; i++) {
        c->acked[i] = known[i].acked;
    }
    flash_dev_submit(&dev, &c->cmd);
}

static FtlStats total;
static uint64_t cuts;

static void open_drive(void)
{
    char *why;

    dev = (FlashDev) {
        .tuning = tuning, .plp = plp, .done = on_done,
        .lost_power = on_lost_power,
    };
    why = flash_dev_open(&dev, path, &shape);
    if (!why) {
        why = ftl_open(&ftl, &dev, &config);
    }
    if (why) {
        wrong("%s", why);
    }
}

static void close_drive(void)
{
    const uint64_t *from = (const uint64_t *)ftl_stats(ftl);

    for (size_t i = 0; i < sizeof(total) / 8; i++) {
        ((uint64_t *)&total)[i] += from[i];
    }
    cuts += dev.stats.cuts;
    flash_dev_close(&dev);
    ftl_free(ftl);
}

/* No write is there in part; a newer one may have replaced parts of it. */
static void check_whole(void)
{
    for (size_t i = 0; i < nr_sent; i++) {
        const Sent *s = &sent[i];
        bool there = false, lost = false;

        for (uint32_t j = 0; j < s->nlb; j++) {
            const Known *k = &known[s->lba + j];
            uint64_t v = check_block(s->lba + j, k->safe, "cut");

            there |= v == s->versions[j];
            lost |= v < s->versions[j];
        }
        if (there && lost) {
            wrong("the write of %u blocks at %llu is torn", s->nlb,
                  (unsigned long long)s->lba);
        }
    }
    nr_sent = 0;
}

/* The power is gone; it comes back here, or in another process. */
static void revive(void)
{
    dead = false;
    if (under_way) {
        wrong("a command outlives the power");
    }
    if (draw(4)) {
        flash_dev_power_on(&dev);
        if (!ftl_load(ftl)) {
            wrong("the drive does not know its own flash");
        }
    } else {
        close_drive();
        open_drive();
    }
    check_tables();
    check_whole();
    for (uint64_t i = 0; i < config.logical; i++) {
        Known *k = &known[i];

        k->acked = k->safe = check_block(i, k->safe, "cut");
        if (k->safe == k->trimming) {
            k->trim = k->safe;
        }
        k->trimming = 0;
        if (k->acked < k->sent) {
            /* later ones that were lost must not come back */
            k->sent += MOST;
        }
    }
}

/* Has a job begun the last program unit of a block, and not yet filled it? */
static bool ends_a_block(void)
{
    for (const FtlJob *job = ftl->jobs; job; job = job->next) {
        uint32_t block = job->in_place ? job->tag : job->last;
        uint64_t wp = block == FTL_NONE ? 0 : dev.media.zones[block].wp;

        if (job->step == FTL_MOVING && wp < ftl->cap && wp % dev.unit_blocks &&
            wp + dev.unit_blocks > ftl->cap) {
            return true;
        }
    }
    return false;
}

/* Time goes on until so many commands are under way at most. */
static void run(unsigned most)
{
    uint64_t when;

    while (under_way > most && !dead) {
        if (!flash_time_next(&dev.time, &when)) {
            wrong("%u commands wait for nothing", under_way);
        }
        flash_time_run(&dev.time, when);
        if (cut_at_end && !dead && ends_a_block() && !--cut_at_end) {
            flash_dev_cut(&dev, dev.time.now);
        }
    }
    if (dead) {
        revive();
    }
}

static void one_operation(void)
{
    static uint64_t next;
    uint32_t nlb = 1 + draw(MOST);
    uint64_t lba = draw(config.logical - nlb + 1), what = draw(1000);

    if (!draw(4)) {
        lba = draw(config.logical / 8);         /* some are hotter */
    } else if (!draw(3) && next + nlb <= config.logical) {
        lba = next;                             /* some come in a row */
        next = draw(200) ? next + nlb : draw(config.logical);
    } else if (next + MOST > config.logical) {
        next = 0;
    }
    if (what < 650) {
        submit_write(lba, nlb);
    } else if (what < 950) {
        submit_read(lba, nlb);
    } else if (what < 990) {
        submit_trim(lba, nlb);
    } else if (what < 994) {
        submit_flush();
    } else if (plp && draw(2)) {
        cut_at_end = 1 + draw(8);       /* what is moved is kept by the block */
    } else if (handles && !draw(4)) {
        ftl_handle_renew(ftl, draw(config.handles));
    } else if (!draw(3)) {
        dev.trouble.cut_at_program = 1 + draw(200);
    } else if (!draw(2)) {
        flash_dev_cut(&dev, dev.time.now + draw(20000 * US));
    } else {
        run(0);
        check_tables();
        close_drive();
        open_drive();
        for (uint64_t i = 0; i < config.logical; i++) {
            check_block(i, known[i].acked, "restart");
        }
    }
}

/* A seed's drive: small, so that all of it is written over and over. */
static void choose(void)
{
    static const struct {
        uint32_t channels, dies, planes, page, pages, width;
    } shapes[] = {
        { 1, 1, 1, 512, 1, 1 },
        { 2, 2, 1, 1024, 1, 4 },
        { 2, 2, 1, 1024, 1, 1 },
        { 2, 1, 2, 1024, 3, 2 },
        { 4, 2, 1, 512, 2, 2 },
        { 1, 1, 4, 2048, 1, 1 },        /* plp only, as the next one */
        { 2, 1, 2, 2048, 2, 1 },
    };
    uint32_t nr = plp ? sizeof(shapes) / sizeof(shapes[0]) : 5;
    uint32_t n = whole || torn ? 2 + draw(nr - 2) : draw(nr);
    uint32_t blocks;

    shape = (FlashShape) {
        .block_size = BLOCK, .meta_size = FTL_OOB,
        .channels = shapes[n].channels, .dies_per_channel = shapes[n].dies,
        .planes = shapes[n].planes, .page_size = shapes[n].page,
        .program_pages = shapes[n].pages,
        .pages_per_block = (1 + draw(4)) * 4 * shapes[n].pages,
        .zone_dies = handles ? shapes[n].channels * shapes[n].dies :
                               shapes[n].width,
    };
    blocks = shape.pages_per_block * shape.planes * shape.page_size / BLOCK *
             shape.zone_dies;
    shape.zone_blocks = shape.zone_cap = blocks;
    shape.nr_zones = (shape.channels * shape.dies_per_channel /
                      shape.zone_dies) * (36 + draw(16));
    config.gc_begin = draw(2) ? 75 : 100;
    config.gc_urgent = draw(2) ? 95 : 100;
    config.gc_gain = 8;
    config.cost_benefit = draw(2);
    config.hot_cold = draw(2);
    config.log_blocks = 1 + draw(4);
    config.log_ways = 1 + draw(config.log_blocks);
    config.seq_logs = draw(config.log_blocks - config.log_ways + 1);
    config.at_once = !draw(4);
    config.hot_writes = draw(2);
    config.wear_spread = draw(2) * (1 + draw(8));
    config.map_pages = 1 + draw(4);
    config.logical = ftl_logical(shape.nr_zones * shape.zone_cap,
                                 draw(2) ? 50 : 30);
    if (handles) {
        config.hot_cold = true;
        config.hot_writes = false;
        config.wear_spread = 0;
        config.handles = 1 + draw(4);
        config.apart = draw(config.handles + 1);
        config.logical = ftl_logical(shape.nr_zones * shape.zone_cap, 60);
        config.event = on_event;
    }
    shape.ext_size = (config.logical * FTL_TRIM / shape.nr_zones + 8) / 8 * 8;
    tuning = (FlashTuning) {
        .read_ns = 50 * US, .program_ns = 200 * US, .erase_ns = 2000 * US,
        .bus = { .bytes_per_s = draw(2) ? 100000000 : 0,
                 .switch_ns = draw(2) * US, .turn_read_ns = draw(2) * US,
                 .turn_write_ns = draw(2) * US },
        .cache = draw(2), .read_first = draw(2), .suspend = !draw(4),
        .delay_read = true, .delay_program = draw(8), .delay_erase = draw(4),
        .link_rate = shape.channels == 2 ? 300000000 : 0,
        .delay_transfer = true, .service_ns = draw(2) * US,
        .buffer = draw(8) ? (1 + draw(256)) * BLOCK : 0,
    };
    if (aged) {
        config.refresh_ns = (20 + draw(200)) * 1000 * US;
        tuning.plane_reads = draw(2);
        tuning.pe_cycles = 1 + draw(20);
        tuning.worn_read = draw(300);
        tuning.worn_program = draw(300);
        tuning.worn_erase = draw(300);
        tuning.retry_erases = draw(10);
        tuning.retry_age_ns = draw(50) * 1000 * US;
        tuning.suspend_ns = draw(3) * 15 * US;
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        return 2;
    }
    for (int i = 4; i < argc; i++) {
        plp |= !strcmp(argv[i], "plp");
        whole |= !strcmp(argv[i], "whole");
        torn |= !strcmp(argv[i], "torn");
        handles |= !strcmp(argv[i], "handles");
        aged |= !strcmp(argv[i], "aged");
    }
    config.mapping = argv[1];
    operations = strtoull(argv[2], NULL, 0);
    random_state = 0x9e3779b97f4a7c15ull * (strtoull(argv[3], NULL, 0) + 1);
    close(mkstemp(path));
    choose();
    known = calloc(config.logical, sizeof(*known));
    open_drive();
    for (; done_operations < operations; done_operations++) {
        one_operation();
        run(draw(DEEP));
    }
    run(0);
    check_tables();
    close_drive();
    printf("%s: %llu written, %llu moved, %llu filler, %llu victims, "
           "merges %llu %llu %llu, cuts %llu\n", argv[1],
           (unsigned long long)total.host,
           (unsigned long long)total.moved,
           (unsigned long long)total.filler,
           (unsigned long long)total.victims,
           (unsigned long long)total.merges_switch,
           (unsigned long long)total.merges_partial,
           (unsigned long long)total.merges_full,
           (unsigned long long)cuts);
    free(known);
    free(sent);
    unlink(path);
    return 0;
}
