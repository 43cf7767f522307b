// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The flash model against closed forms, without a guest: times, buffer,
 * zones, power, image.  Each test builds a small device in a temporary file.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "flash/model/erase.h"
#include "flash/model/model.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define BLOCK 4096u
#define US 1000ull
#define MS (1000 * US)

static char path[] = "/tmp/test-flash-XXXXXX";

typedef struct Rig {
    FlashDev dev;
    unsigned done;              /* commands that ended, and the last one's */
    uint64_t at;
    FlashStatus status;
} Rig;

static void on_done(FlashDev *dev, FlashCmd *cmd)
{
    Rig *rig = dev->owner;

    rig->done++;
    rig->at = dev->time.now;
    rig->status = cmd->status;
    free(cmd);
}

static void on_lost_power(FlashDev *dev)
{
    (void)dev;
}

static FlashShape shape_of(uint32_t channels, uint32_t dies, uint32_t planes,
                           uint32_t page, uint32_t program_pages)
{
    return (FlashShape) {
        .nr_zones = 8, .zone_blocks = 4096, .zone_cap = 4096,
        .block_size = BLOCK,
        .channels = channels, .dies_per_channel = dies, .planes = planes,
        .page_size = page, .program_pages = program_pages,
        .pages_per_block = 16 * program_pages,
        .zone_dies = channels * dies,
    };
}

static FlashTuning tuning_of(uint64_t read, uint64_t program, uint64_t erase)
{
    return (FlashTuning) {
        .read_ns = read, .program_ns = program, .erase_ns = erase,
        .cache = true, .buffer = 64 * MIB,
        .delay_read = true, .delay_program = true, .delay_erase = true,
        .delay_transfer = true,
    };
}

/* Windows of the device that is opened next: blocks of each, and how many. */
static uint32_t window_blocks, windows;

/* Caches of zones, that it has in place of a buffer. */
static uint32_t zone_caches;
static bool protected;

static Rig *rig_open(const FlashShape *shape, const FlashTuning *tuning)
{
    Rig *rig = calloc(1, sizeof(*rig));
    char *why;

    rig->dev.owner = rig;
    rig->dev.window_blocks = window_blocks;
    rig->dev.window_bytes = (uint64_t)windows * window_blocks * BLOCK;
    rig->dev.nr_caches = zone_caches;
    rig->dev.plp = protected;
    rig->dev.done = on_done;
    rig->dev.lost_power = on_lost_power;
    rig->dev.tuning = *tuning;
    why = flash_dev_open(&rig->dev, path, shape);
    if (why) {
        fail_msg("%s", why);
    }
    return rig;
}

static Rig *rig_new(FlashShape shape, FlashTuning tuning)
{
    unlink(path);
    return rig_open(&shape, &tuning);
}

static void rig_free(Rig *rig)
{
    flash_dev_close(&rig->dev);
    free(rig);
}

static FlashCmd *cmd_new(FlashCmdKind kind, uint32_t zone, uint64_t block,
                         uint32_t nlb)
{
    FlashCmd *cmd = calloc(1, sizeof(*cmd));

    cmd->kind = kind;
    cmd->zone = zone;
    cmd->block = block;
    cmd->nlb = nlb;
    return cmd;
}

static void submit(Rig *rig, FlashCmdKind kind, uint32_t zone, uint64_t block,
                   uint32_t nlb)
{
    flash_dev_submit(&rig->dev, cmd_new(kind, zone, block, nlb));
}

/* Every block carries its number and a salt. */
static FlashCmd *write_new(Rig *rig, uint32_t zone, uint64_t block,
                           uint32_t nlb, uint64_t salt)
{
    FlashCmd *cmd = cmd_new(FLASH_CMD_WRITE, zone, block, nlb);

    cmd->data = calloc(nlb, BLOCK);
    cmd->oob = calloc(nlb, rig->dev.media.shape.meta_size + 1);
    for (uint32_t i = 0; i < nlb; i++) {
        uint64_t *p = (uint64_t *)(cmd->data + i * BLOCK);

        p[0] = zone;
        p[1] = block + i;
        p[2] = p[511] = salt;
    }
    return cmd;
}

static void put_write(Rig *rig, uint32_t zone, uint64_t block, uint32_t nlb,
                      uint64_t salt, bool fua)
{
    FlashCmd *cmd = write_new(rig, zone, block, nlb, salt);

    cmd->fua = fua;
    flash_dev_submit(&rig->dev, cmd);
}

/* Run until n commands have ended; the instant of the last one. */
static uint64_t run(Rig *rig, unsigned n)
{
    uint64_t when;

    n += rig->done;
    while (rig->done < n) {
        assert_true(flash_time_next(&rig->dev.time, &when));
        flash_time_run(&rig->dev.time, when);
    }
    return rig->at;
}

static void drain(Rig *rig)
{
    uint64_t when;

    while (flash_time_next(&rig->dev.time, &when)) {
        flash_time_run(&rig->dev.time, when);
    }
}

/* Fill part of a zone and let everything settle. */
static void fill(Rig *rig, uint32_t zone, uint64_t from, uint64_t to)
{
    while (from < to) {
        uint32_t n = to - from < 256 ? to - from : 256;

        put_write(rig, zone, from, n, 1, false);
        from += n;
        drain(rig);
    }
}

static void assert_near(uint64_t have, uint64_t want)
{
    if (have * 1000 < want * 990 || have * 1000 > want * 1010) {
        fail_msg("%llu is not within 1%% of %llu", (unsigned long long)have,
                 (unsigned long long)want);
    }
}

/* Reads. */

static const FlashBus bus = { .bytes_per_s = 400000000 };
#define XFER 10240ull           /* 4 KiB at 400 MB/s */

static Rig *read_rig(bool cache)
{
    FlashTuning t = tuning_of(50 * US, 0, 0);
    Rig *rig;

    t.cache = cache;
    t.bus = bus;
    rig = rig_new(shape_of(2, 2, 1, 4096, 1), t);
    fill(rig, 0, 0, 64);
    return rig;
}

static uint64_t two_reads(Rig *rig, uint64_t a, uint64_t b)
{
    uint64_t start = rig->dev.time.now;

    submit(rig, FLASH_CMD_READ, 0, a, 1);
    submit(rig, FLASH_CMD_READ, 0, b, 1);
    return run(rig, 2) - start;
}

static void test_one_read(void **state)
{
    Rig *rig = read_rig(false);
    uint64_t start = rig->dev.time.now;

    (void)state;
    submit(rig, FLASH_CMD_READ, 0, 5, 1);
    assert_int_equal(run(rig, 1) - start, 50 * US + XFER);
    rig_free(rig);
}

/* Block n is on die n % 4, which is on channel n % 2. */
static void test_two_reads(void **state)
{
    Rig *rig = read_rig(false);

    (void)state;
    assert_int_equal(two_reads(rig, 0, 4), 2 * (50 * US + XFER));
    assert_int_equal(two_reads(rig, 0, 1), 50 * US + XFER);
    assert_int_equal(two_reads(rig, 0, 2), 50 * US + 2 * XFER);
    rig_free(rig);
}

static void test_cache_read_overlaps(void **state)
{
    Rig *rig = read_rig(true);

    (void)state;
    assert_int_equal(two_reads(rig, 0, 4), 2 * 50 * US + XFER);
    rig_free(rig);
}

/* The bus is free while a cell is read: another die's write may use it. */
static void test_read_leaves_the_bus(void **state)
{
    FlashTuning t = tuning_of(50 * US, 20 * US, 0);
    uint64_t start;
    Rig *rig;

    (void)state;
    t.bus = bus;
    t.buffer = 0;
    rig = rig_new(shape_of(1, 2, 1, 4096, 1), t);
    fill(rig, 0, 0, 3);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 1);       /* die 0 */
    put_write(rig, 0, 3, 1, 1, false);          /* die 1 */
    assert_int_equal(run(rig, 1) - start, XFER + 20 * US);
    assert_int_equal(run(rig, 1) - start, 50 * US + XFER);
    rig_free(rig);
}

static void test_beyond_the_data(void **state)
{
    Rig *rig = read_rig(false);
    uint64_t start = rig->dev.time.now;

    (void)state;
    submit(rig, FLASH_CMD_READ, 0, 2000, 8);
    submit(rig, FLASH_CMD_READ, 3, 0, 8);
    assert_int_equal(rig->done > 1 ? rig->at - start : 1, 0);
    rig_free(rig);
}

static void test_read_overtakes(void **state)
{
    FlashTuning t = tuning_of(50 * US, 1 * MS, 0);
    uint64_t start;
    Rig *rig;

    (void)state;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    fill(rig, 0, 0, 4);
    put_write(rig, 0, 4, 3, 1, false);          /* three programs wait */
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    assert_int_equal(run(rig, 1) - start, 3 * MS + 50 * US);

    rig->dev.tuning.read_first = true;
    flash_dev_retune(&rig->dev);
    put_write(rig, 0, 7, 3, 1, false);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    assert_int_equal(run(rig, 1) - start, 1 * MS + 50 * US);
    drain(rig);

    rig->dev.tuning.suspend = true;
    rig->dev.tuning.cache = false;
    rig->dev.tuning.resume_ns = 7 * US;
    flash_dev_retune(&rig->dev);
    start = rig->dev.time.now;
    put_write(rig, 0, 10, 1, 1, true);
    flash_time_run(&rig->dev.time, start + 300 * US);
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    assert_int_equal(run(rig, 1) - start, 350 * US);
    assert_int_equal(run(rig, 1) - start, 1 * MS + 57 * US);
    rig_free(rig);
}

/* So they do when the cache register holds the next program already. */
static void test_suspend_with_cache(void **state)
{
    FlashTuning t = tuning_of(50 * US, 1 * MS, 0);
    Rig *rig;

    (void)state;
    t.suspend = true;
    t.resume_ns = 7 * US;
    t.bus = bus;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    fill(rig, 0, 0, 4);
    flash_time_run(&rig->dev.time, 10 * MS);
    put_write(rig, 0, 4, 3, 1, false);
    /* the first is programmed, the second is ready, the third waits */
    flash_time_run(&rig->dev.time, 10 * MS + XFER + 300 * US);
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    submit(rig, FLASH_CMD_READ, 0, 1, 1);
    assert_int_equal(run(rig, 1), 10 * MS + XFER + 350 * US + XFER);
    assert_int_equal(run(rig, 1), 10 * MS + XFER + 400 * US + 2 * XFER);
    submit(rig, FLASH_CMD_FLUSH, 0, 0, 0);
    assert_int_equal(run(rig, 1),
                     10 * MS + XFER + 3 * MS + 107 * US + 2 * XFER);
    /* while the second is on the bus: it comes through, and waits */
    fill(rig, 0, 7, 8);
    flash_time_run(&rig->dev.time, 20 * MS);
    put_write(rig, 0, 8, 2, 1, false);
    flash_time_run(&rig->dev.time, 20 * MS + XFER + 1 * US);
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    assert_int_equal(run(rig, 1), 20 * MS + XFER + 51 * US + XFER);
    submit(rig, FLASH_CMD_FLUSH, 0, 0, 0);
    assert_int_equal(run(rig, 1), 20 * MS + XFER + 2 * MS + 57 * US + XFER);
    assert_int_equal(rig->dev.time.dies[0].active, 0);
    rig_free(rig);
}

/* It takes the array so long to stop, and to go on; meanwhile nothing begins. */
static void test_suspension_takes_time(void **state)
{
    for (int erase = 0; erase < 2; erase++) {
        FlashTuning t = tuning_of(50 * US, 1 * MS, 2 * MS);
        uint64_t start = 10 * MS, busy;
        Rig *rig;

        (void)state;
        t.suspend = true;
        t.cache = false;
        t.suspend_ns = 30 * US;
        t.resume_ns = 7 * US;
        t.bus = bus;
        rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
        fill(rig, 0, 0, 4);
        fill(rig, 1, 0, 1);
        flash_time_run(&rig->dev.time, start);
        busy = rig->dev.time.dies[0].busy_ns;
        if (erase) {
            submit(rig, FLASH_CMD_RESET, 1, 0, 0);
        } else {
            put_write(rig, 0, 4, 1, 1, true);
        }
        for (uint64_t n = 1; n <= 5; n++) {
            uint64_t at = start + n * 150 * US;

            flash_time_run(&rig->dev.time, at);
            submit(rig, FLASH_CMD_READ, 0, 0, 1);
            if (n == 5) {       /* while it stops */
                flash_time_run(&rig->dev.time, at + 29 * US);
                submit(rig, FLASH_CMD_READ, 0, 1, 1);
            }
            assert_int_equal(run(rig, 1), at + 80 * US + XFER);
        }
        run(rig, 2);
        assert_int_equal(rig->at - start, (erase ? 2 * MS : 1 * MS + XFER) +
                         5 * (30 * US + 50 * US + XFER + 7 * US) +
                         50 * US + XFER);
        assert_int_equal(rig->dev.time.dies[0].busy_ns - busy,
                         (erase ? 2 * MS : 1 * MS) + 5 * (30 + 7) * US +
                         6 * 50 * US);
        rig_free(rig);
    }
}

/* The power may go while the array stops. */
static void test_cut_while_it_stops(void **state)
{
    FlashTuning t = tuning_of(50 * US, 1 * MS, 2 * MS);
    Rig *rig;

    (void)state;
    t.suspend = true;
    t.suspend_ns = 30 * US;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    fill(rig, 0, 0, 4);
    flash_time_run(&rig->dev.time, 10 * MS);
    put_write(rig, 0, 4, 1, 1, false);
    flash_time_run(&rig->dev.time, 10 * MS + 300 * US);
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    flash_dev_cut(&rig->dev, 10 * MS + 310 * US);
    run(rig, 1);
    assert_int_equal(rig->status, FLASH_NO_POWER);
    flash_dev_power_on(&rig->dev);
    assert_true(flash_dev_bad(&rig->dev, 0, 4, 1));
    assert_int_equal(two_reads(rig, 0, 1), 2 * 50 * US);
    rig_free(rig);
}

/* Reads pass a program or an erase up to the limit; then it goes on. */
static void test_reads_pass_so_often(void **state)
{
    FlashTuning t = tuning_of(50 * US, 1 * MS, 2 * MS);
    Rig *rig;

    (void)state;
    t.read_first = true;
    t.cache = false;
    t.resume_ns = 7 * US;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    fill(rig, 0, 0, 4);
    fill(rig, 1, 0, 1);
    flash_time_run(&rig->dev.time, 10 * MS);

    /* two programs and an erase: one works, and each other one waits for 64 */
    put_write(rig, 0, 4, 2, 1, false);
    submit(rig, FLASH_CMD_RESET, 1, 0, 0);
    for (int i = 0; i < 500; i++) {
        submit(rig, FLASH_CMD_READ, 0, 0, 1);
    }
    flash_time_run(&rig->dev.time, 11 * MS + 64 * 50 * US + 1 * MS - 1);
    assert_int_equal(rig->dev.stats.buffer_used, BLOCK);
    flash_time_run(&rig->dev.time, 11 * MS + 64 * 50 * US + 1 * MS);
    assert_int_equal(rig->dev.stats.buffer_used, 0);
    flash_time_run(&rig->dev.time, 12 * MS + 128 * 50 * US + 2 * MS - 1);
    assert_int_equal(rig->dev.time.dies[0].ops[FLASH_OP_ERASE], 0);
    flash_time_run(&rig->dev.time, 12 * MS + 128 * 50 * US + 2 * MS);
    assert_int_equal(rig->dev.time.dies[0].ops[FLASH_OP_ERASE], 1);
    drain(rig);
    assert_int_equal(rig->dev.time.now, 14 * MS + 500 * 50 * US);

    /* one that was interrupted, by reads at once or one at a time */
    rig->dev.tuning.suspend = true;
    rig->dev.tuning.read_limit = 10;
    flash_dev_retune(&rig->dev);
    flash_time_run(&rig->dev.time, 100 * MS);
    put_write(rig, 0, 6, 1, 1, false);
    flash_time_run(&rig->dev.time, 100 * MS + 300 * US);
    for (int i = 0; i < 100; i++) {
        submit(rig, FLASH_CMD_READ, 0, 0, 1);
    }
    flash_time_run(&rig->dev.time, 101 * MS + 507 * US - 1);
    assert_int_equal(rig->dev.stats.buffer_used, BLOCK);
    flash_time_run(&rig->dev.time, 101 * MS + 507 * US);
    assert_int_equal(rig->dev.stats.buffer_used, 0);
    drain(rig);
    flash_time_run(&rig->dev.time, 200 * MS);
    put_write(rig, 0, 7, 1, 1, false);
    for (int i = 0; i < 25; i++) {
        flash_time_run(&rig->dev.time, 200 * MS + i * 60 * US);
        submit(rig, FLASH_CMD_READ, 0, 0, 1);
    }
    /* ten times it was interrupted */
    flash_time_run(&rig->dev.time, 201 * MS + 10 * 57 * US - 1);
    assert_int_equal(rig->dev.stats.buffer_used, BLOCK);
    flash_time_run(&rig->dev.time, 201 * MS + 10 * 57 * US);
    assert_int_equal(rig->dev.stats.buffer_used, 0);
    rig_free(rig);
}

/* Block n is on plane n % planes; a row has a block of each. */
static Rig *planes_rig(uint32_t channels, uint32_t planes, FlashTuning t)
{
    Rig *rig;

    t.plane_reads = true;
    rig = rig_new(shape_of(channels, 1, planes, 4096, 1), t);
    fill(rig, 0, 0, 64);
    return rig;
}

static void test_plane_reads(void **state)
{
    FlashTuning t = tuning_of(50 * US, 0, 0);
    uint64_t start;
    Rig *rig;

    (void)state;
    t.bus = bus;
    for (int cache = 0; cache < 2; cache++) {
        t.cache = cache;
        rig = planes_rig(1, 4, t);
        assert_int_equal(two_reads(rig, 0, 4),
                         2 * 50 * US + (cache ? 1 : 2) * XFER);
        assert_int_equal(two_reads(rig, 0, 5), 50 * US + 2 * XFER);
        assert_int_equal(rig->dev.stats.reads, 4);

        /* one command for all planes */
        start = rig->dev.time.now;
        submit(rig, FLASH_CMD_READ, 0, 8, 4);
        assert_int_equal(run(rig, 1) - start, 50 * US + 4 * XFER);
        assert_int_equal(rig->dev.stats.reads, 8);

        /* a read passes those of another plane that wait */
        start = rig->dev.time.now;
        submit(rig, FLASH_CMD_READ, 0, 0, 1);
        submit(rig, FLASH_CMD_READ, 0, 4, 1);
        submit(rig, FLASH_CMD_READ, 0, 1, 1);
        assert_int_equal(run(rig, 2) - start, 50 * US + 2 * XFER);
        assert_int_equal(run(rig, 1) - start,
                         2 * 50 * US + (cache ? 1 : 2) * XFER);
        rig_free(rig);
    }

    /* planes that read together; pages of two blocks */
    t.cache = false;
    rig = rig_new(shape_of(1, 1, 4, 4096, 1), t);
    fill(rig, 0, 0, 64);
    assert_int_equal(two_reads(rig, 0, 1), 2 * (50 * US + XFER));
    rig_free(rig);
    t.plane_reads = true;
    rig = rig_new(shape_of(1, 1, 2, 8192, 1), t);
    fill(rig, 0, 0, 64);
    assert_int_equal(two_reads(rig, 0, 1), 2 * (50 * US + XFER));
    assert_int_equal(two_reads(rig, 1, 2), 50 * US + 2 * XFER);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 1, 4);       /* one row and a part of it */
    assert_int_equal(run(rig, 1) - start, 2 * 50 * US + 2 * XFER);
    rig_free(rig);
}

/* A program is of all planes: it waits for all reads, and all wait for it. */
static void test_plane_reads_and_programs(void **state)
{
    FlashTuning t = tuning_of(50 * US, 1 * MS, 0);
    uint64_t start;
    Rig *rig;

    (void)state;
    t.cache = false;
    rig = planes_rig(1, 2, t);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    submit(rig, FLASH_CMD_READ, 0, 2, 1);
    put_write(rig, 0, 64, 2, 1, true);
    submit(rig, FLASH_CMD_READ, 0, 1, 1);
    submit(rig, FLASH_CMD_READ, 0, 4, 1);
    flash_time_run(&rig->dev.time, start + 100 * US);
    assert_int_equal(rig->dev.stats.reads, 4);
    assert_int_equal(rig->dev.time.dies[0].ops[FLASH_OP_READ], 2);
    assert_int_equal(run(rig, 1) - start, 1100 * US);
    assert_int_equal(run(rig, 2) - start, 1150 * US);
    assert_int_equal(rig->dev.time.dies[0].busy_ns, 33 * MS + 150 * US);

    /* reads of both planes overlap in one interruption, and count */
    rig->dev.tuning.suspend = true;
    rig->dev.tuning.resume_ns = 7 * US;
    rig->dev.tuning.read_limit = 3;
    flash_dev_retune(&rig->dev);
    start = rig->dev.time.now;
    put_write(rig, 0, 66, 2, 1, true);
    flash_time_run(&rig->dev.time, start + 300 * US);
    for (int i = 0; i < 6; i++) {
        submit(rig, FLASH_CMD_READ, 0, i, 1);
    }
    assert_int_equal(run(rig, 2) - start, 350 * US);
    assert_int_equal(run(rig, 1) - start, 400 * US);
    assert_int_equal(run(rig, 1) - start, 1107 * US);
    assert_int_equal(run(rig, 3) - start, 1207 * US);
    assert_int_equal(rig->dev.time.dies[0].active, 0);
    rig_free(rig);
}

/* Dies whose planes always have a read to do. */
static void test_plane_reads_bandwidth(void **state)
{
    FlashTuning t = tuning_of(50 * US, 0, 0);
    const uint32_t n = 32000;
    uint64_t start, random = 1;
    Rig *rig;

    (void)state;
    for (int together = 0; together < 2; together++) {
        rig = together ? rig_new(shape_of(2, 1, 4, 4096, 1), t) :
                         planes_rig(2, 4, t);
        fill(rig, 1, 0, 64);
        start = rig->dev.time.now;
        for (uint32_t i = 0; i < n; i++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            submit(rig, FLASH_CMD_READ, 1, (random >> 33) % 8 * 8 + i % 8, 1);
        }
        assert_near(run(rig, n) - start, n / (together ? 2 : 8) * 50 * US);
        rig_free(rig);
    }
}

/* A channel that turns to another of its dies pays for it. */
static void test_channel_switch(void **state)
{
    FlashTuning t = tuning_of(50 * US, 0, 0);
    Rig *rig;

    (void)state;
    t.bus = (FlashBus) {
        .bytes_per_s = bus.bytes_per_s, .switch_ns = 7 * US,
    };
    t.cache = false;
    rig = rig_new(shape_of(1, 2, 1, 4096, 1), t);
    fill(rig, 0, 0, 4);
    drain(rig);
    flash_time_run(&rig->dev.time, 10 * MS);
    submit(rig, FLASH_CMD_READ, 0, 1, 1);
    run(rig, 1);                /* die 1 comes next */
    flash_time_run(&rig->dev.time, 20 * MS);
    submit(rig, FLASH_CMD_READ, 0, 1, 1);
    submit(rig, FLASH_CMD_READ, 0, 3, 1);
    assert_int_equal(run(rig, 1), 20 * MS + 50 * US + XFER);
    assert_int_equal(run(rig, 1), 20 * MS + 2 * (50 * US + XFER));
    flash_time_run(&rig->dev.time, 30 * MS);
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    submit(rig, FLASH_CMD_READ, 0, 1, 1);
    assert_int_equal(run(rig, 1), 30 * MS + 50 * US + XFER + 7 * US);
    assert_int_equal(run(rig, 1), 30 * MS + 50 * US + 2 * (XFER + 7 * US));
    rig_free(rig);
}

/* One controller turns from channel to channel: after a read, after a write. */
static void test_channel_turns(void **state)
{
    FlashTuning t = tuning_of(50 * US, 100 * US, 0);
    uint64_t start;
    Rig *rig;

    (void)state;
    t.bus = (FlashBus) {
        .bytes_per_s = bus.bytes_per_s, .turn_read_ns = 16 * US,
        .turn_write_ns = 33 * US,
    };
    t.cache = false;
    t.buffer = 0;
    rig = rig_new(shape_of(3, 1, 1, 4096, 1), t);
    put_write(rig, 0, 0, 3, 1, false);
    assert_int_equal(run(rig, 1), 2 * 33 * US + XFER + 100 * US);
    start = rig->dev.time.now;  /* long after the controller's last turn */
    submit(rig, FLASH_CMD_READ, 0, 0, 3);
    assert_int_equal(run(rig, 1) - start, 50 * US + 2 * 16 * US + XFER);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    assert_int_equal(run(rig, 1) - start, 50 * US + XFER);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 1);       /* the same channel */
    assert_int_equal(run(rig, 1) - start, 50 * US + XFER);
    rig_free(rig);
}

/* Writes. */

/* Sustained bandwidth of a device whose buffer is small against the data. */
static uint64_t write_rate(FlashShape shape, FlashTuning t, uint32_t nlb)
{
    Rig *rig;
    uint64_t bytes = 0, start, from, end = shape.zone_cap;
    unsigned sent = 0;

    t.buffer = 2ull * shape.channels * shape.dies_per_channel * shape.planes *
               shape.page_size * shape.program_pages;
    rig = rig_new(shape, t);
    start = rig->dev.time.now;
    for (uint32_t zone = 0; zone < 4; zone++) {
        for (from = 0; from < end; from += nlb) {
            put_write(rig, zone, from, nlb, 1, false);
            bytes += (uint64_t)nlb * BLOCK;
            if (++sent >= rig->done + 64) {
                run(rig, 1);
            }
        }
    }
    drain(rig);
    bytes = bytes * 1000000000 / (rig->dev.time.now - start);
    rig_free(rig);
    return bytes;
}

static void set_pages(FlashTuning *t, const char *text)
{
    char *why = flash_cell_parse(t, text);

    if (why) {
        fail_msg("%s", why);
    }
}

/* How long reads of so many blocks from there on take, one after the other. */
static uint64_t read_each(Rig *rig, uint64_t block, uint32_t n)
{
    uint64_t start = rig->dev.time.now;

    for (uint32_t i = 0; i < n; i++) {
        submit(rig, FLASH_CMD_READ, 0, block + i, 1);
        run(rig, 1);
    }
    return rig->dev.time.now - start;
}

/*
 * Pages of a word line, programmed one by one (three dies), and three of them
 * at once.  Erase blocks have 48 pages, so the zone has some of each die.
 */
static void test_page_types(void **state)
{
    FlashTuning t = tuning_of(7 * US, 7 * US, 0);
    uint64_t start;
    Rig *rig;

    (void)state;
    set_pages(&t, "20000/300000:40000/600000:90000/1500000");
    t.buffer = 0;
    t.cache = false;
    for (uint32_t dies = 1; dies <= 3; dies += 2) {
        uint32_t pages = dies == 1 ? 3 : 1;     /* of a program */
        FlashShape shape = shape_of(1, dies, 1, 4096, pages);

        shape.pages_per_block = 48;
        rig = rig_new(shape, t);
        /* block n is page n / dies of its die; of each kind there are three */
        start = rig->dev.time.now;
        for (uint32_t i = 0; i < 9; i += pages) {
            put_write(rig, 0, i, pages, 1, false);
            run(rig, 1);
        }
        assert_int_equal(rig->dev.time.now - start, 3 * 2400 * US);
        assert_int_equal(read_each(rig, 0, 9), 3 * 150 * US);
        for (uint32_t i = 0; i < 9; i++) {
            static const uint64_t us[] = { 20, 40, 90 };

            assert_int_equal(read_each(rig, i, 1), us[i / dies % 3] * US);
        }
        rig_free(rig);
    }
    t.delay_read = t.delay_program = false;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    put_write(rig, 0, 0, 1, 1, false);
    assert_int_equal(run(rig, 1), 0);
    assert_int_equal(read_each(rig, 0, 1), 0);
    rig_free(rig);
}

/* The second erase block begins with a word line; so does padding anywhere. */
static void test_page_types_of_padding(void **state)
{
    FlashTuning t = tuning_of(0, 0, 0);
    FlashShape shape = shape_of(1, 2, 1, 4096, 1);
    Rig *rig;

    (void)state;
    set_pages(&t, "0/100000:0/200000:0/600000");
    t.buffer = 0;
    shape.pages_per_block = 12;
    shape.zone_cap = 2 * 24;
    rig = rig_new(shape, t);
    for (uint32_t first = 1; first < 8; first++) {
        /* pages that die 0 has, and what its rest takes */
        uint32_t has = (first + 1) / 2, last = first / 2, pad = 0, pad1 = 0;
        uint64_t start;

        for (uint32_t page = 0; page < 24; page++) {
            static const uint32_t us[] = { 100, 200, 600 };

            pad += page < has ? 0 : us[page % 3];
            pad1 += page < last ? 0 : us[page % 3];
        }
        put_write(rig, first, 0, first, 1, false);
        drain(rig);
        start = rig->dev.time.now;
        submit(rig, FLASH_CMD_FINISH, first, 0, 0);
        assert_int_equal(run(rig, 1) - start, (pad1 > pad ? pad1 : pad) * US);
    }
    rig_free(rig);
}

/* Dies that always have a read to do: each takes the mean of the pages. */
static void test_page_types_bandwidth(void **state)
{
    FlashTuning t = tuning_of(0, 0, 0);
    FlashShape shape = shape_of(1, 4, 1, 4096, 1);
    const uint32_t n = 24000;
    uint64_t start, random = 1;
    Rig *rig;

    (void)state;
    set_pages(&t, "20000/0:40000/0:90000/0");
    shape.pages_per_block = 48;
    rig = rig_new(shape, t);
    fill(rig, 0, 0, 192);
    start = rig->dev.time.now;
    for (uint32_t i = 0; i < n; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        submit(rig, FLASH_CMD_READ, 0, (random >> 33) % 48 * 4 + i % 4, 1);
    }
    assert_near(run(rig, n) - start, n / 4 * 50 * US);
    rig_free(rig);
}

static void test_page_types_in_words(void **state)
{
    static const char *const wrong[] = {
        "1", "1/", "/1", "1/2:", ":1/2", "1/2::3/4", "1/2,3/4", "-1/2", "1/-2",
        "1 /2", "1/2 ", "1000000000001/1", "99999999999999999999/1",
        "1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1",
    };
    FlashTuning t = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char *why = flash_cell_parse(&t, wrong[i]);

        assert_non_null(why);
        free(why);
    }
    set_pages(&t, "1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1");
    assert_int_equal(t.page_types, 8);
    set_pages(&t, "");
    assert_int_equal(t.page_types, 0);
}

/* Wear. */

static unsigned worn_out;

static void on_worn_out(FlashDev *dev, uint32_t zone)
{
    (void)dev;
    worn_out |= 1u << zone;
}

static void set_erases(Rig *rig, uint32_t zone, uint64_t erases)
{
    rig->dev.media.zones[zone].worn = erases * rig->dev.erase_blocks;
}

/* Times grow, or shrink, in proportion to the erases, up to those of its life. */
static void test_worn_times(void **state)
{
    static const uint64_t erases[] = { 0, 25, 50, 100, 1000 };
    FlashTuning t = tuning_of(50 * US, 200 * US, 1 * MS);

    (void)state;
    t.buffer = 0;
    t.cache = false;
    t.worn_read = 150;
    t.worn_program = 80;
    t.worn_erase = 300;
    for (t.pe_cycles = 0; t.pe_cycles <= 100; t.pe_cycles += 100) {
        for (size_t i = 0; i < sizeof(erases) / sizeof(erases[0]); i++) {
            Rig *rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
            uint64_t n = t.pe_cycles && erases[i] < 100 ? erases[i] :
                                                          t.pe_cycles;
            uint64_t start;

            set_erases(rig, 0, erases[i]);
            put_write(rig, 0, 0, 1, 1, false);
            assert_int_equal(run(rig, 1), 200 * US - 400 * n);
            assert_int_equal(read_each(rig, 0, 1), 50 * US + 250 * n);
            start = rig->dev.time.now;
            submit(rig, FLASH_CMD_RESET, 0, 0, 0);
            assert_int_equal(run(rig, 1) - start, 1 * MS + 20 * US * n);
            rig_free(rig);
        }
    }
}

/* One more cell read for so many erases, and for so long since the program. */
static void test_read_retries(void **state)
{
    FlashTuning t = tuning_of(50 * US, 0, 0);
    uint64_t start, retries;
    Rig *rig;

    (void)state;
    t.retry_erases = 10;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    fill(rig, 0, 0, 64);
    for (uint64_t n = 0; n < 50; n++) {
        uint64_t times = n < 32 ? n : 32;

        set_erases(rig, 0, 10 * n + n % 10);
        retries = rig->dev.stats.read_retries;
        assert_int_equal(read_each(rig, 0, 1), (1 + times) * 50 * US);
        assert_int_equal(rig->dev.stats.read_retries - retries, times);
    }

    /* the first block's age is that of all */
    rig->dev.tuning.retry_age_ns = 1 * MS;
    set_erases(rig, 0, 20);
    submit(rig, FLASH_CMD_RESET, 0, 0, 0);
    start = run(rig, 1) + 10 * MS;
    flash_time_run(&rig->dev.time, start);
    fill(rig, 0, 0, 1);
    flash_time_run(&rig->dev.time, start + 1500 * US);
    fill(rig, 0, 1, 2);
    flash_time_run(&rig->dev.time, start + 3999 * US);
    assert_int_equal(read_each(rig, 1, 1), (1 + 2 + 3) * 50 * US);
    flash_dev_cut(&rig->dev, start + 5 * MS);
    flash_time_run(&rig->dev.time, start + 7 * MS);
    flash_dev_power_on(&rig->dev);
    assert_int_equal(read_each(rig, 0, 1), (1 + 2 + 7) * 50 * US);
    submit(rig, FLASH_CMD_RESET, 0, 0, 0);
    run(rig, 1);
    fill(rig, 0, 0, 1);
    assert_int_equal(read_each(rig, 0, 1), (1 + 2) * 50 * US);
    rig_free(rig);
}

/* Whatever the times and percentages, a slow die's sums do not wrap. */
static void test_longest_times(void **state)
{
    FlashTuning t = tuning_of(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    uint64_t most = 64 * 100000 * MS;
    Rig *rig;

    (void)state;
    t.pe_cycles = UINT32_MAX;
    t.worn_read = t.worn_program = t.worn_erase = UINT32_MAX;
    t.retry_erases = 1;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    for (uint64_t erases = 0; erases <= UINT32_MAX; erases += 1 << 28) {
        set_erases(rig, 0, erases);
        assert_int_equal(flash_cell_read_ns(&rig->dev, 0, 0), most);
        assert_int_equal(flash_cell_program_ns(&rig->dev, 0, 0), most);
        assert_int_equal(flash_cell_erase_ns(&rig->dev, 0, 0), most);
    }
    rig_free(rig);
}

/* With capacitors data is as old as its write, not as what the zone held once. */
static void test_age_of_kept_data(void **state)
{
    FlashTuning t = tuning_of(50 * US, 1 * MS, 1 * MS);
    uint64_t erased;
    Rig *rig;

    (void)state;
    t.retry_age_ns = 10 * MS;
    protected = true;
    rig = rig_new(shape_of(1, 1, 1, 16384, 1), t);
    fill(rig, 0, 0, 4);
    submit(rig, FLASH_CMD_RESET, 0, 0, 0);
    erased = run(rig, 1);
    flash_time_run(&rig->dev.time, erased + 100 * MS);
    put_write(rig, 0, 0, 1, 1, false);          /* its unit is not full */
    flash_dev_cut(&rig->dev, erased + 101 * MS);
    flash_time_run(&rig->dev.time, erased + 109 * MS);
    flash_dev_power_on(&rig->dev);
    assert_int_equal(read_each(rig, 0, 1), 50 * US);
    flash_time_run(&rig->dev.time, erased + 110 * MS);
    assert_int_equal(read_each(rig, 0, 1), 2 * 50 * US);
    rig_free(rig);
    protected = false;
}

/* Dies that always have a read to do, of a zone that is worn and one that is not. */
static void test_worn_bandwidth(void **state)
{
    FlashTuning t = tuning_of(50 * US, 0, 0);
    const uint32_t n = 24000;
    uint64_t start, random = 1;
    Rig *rig;

    (void)state;
    t.pe_cycles = 1000;
    t.worn_read = 140;
    t.retry_erases = 200;
    rig = rig_new(shape_of(1, 4, 1, 4096, 1), t);
    fill(rig, 0, 0, 64);
    fill(rig, 1, 0, 64);
    set_erases(rig, 1, 500);
    start = rig->dev.time.now;
    for (uint32_t i = 0; i < n; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        submit(rig, FLASH_CMD_READ, random >> 63,
               (random >> 33) % 16 * 4 + i % 4, 1);
    }
    /* half of them take 50 us, the others 60 us three times */
    assert_near(run(rig, n) - start, n / 4 * 115 * US);
    rig_free(rig);
}

/* A zone has so many lives; the image counts them. */
static void test_wear_out(void **state)
{
    FlashTuning t = tuning_of(0, 0, 1 * MS);
    FlashShape shape = shape_of(1, 2, 1, 4096, 1);
    Rig *rig;

    (void)state;
    shape.zone_cap = 64;
    t.pe_cycles = 3;
    t.wear_out = true;
    rig = rig_new(shape, t);
    for (int open = 0; open < 2; open++) {
        rig->dev.worn_out = on_worn_out;
        worn_out = 0;
        for (int i = open ? 2 : 0; i < 3; i++) {
            assert_int_equal(worn_out, 0);
            fill(rig, 2, 0, 64);
            fill(rig, 3, 0, open ? 64 : 8);     /* one block of two a die */
            submit(rig, FLASH_CMD_RESET, 3, 0, 0);
            submit(rig, FLASH_CMD_RESET, 2, 0, 0);
            flash_time_run(&rig->dev.time, rig->dev.time.now + 1 * MS);
            assert_int_equal(worn_out, 0);
            drain(rig);
        }
        assert_int_equal(worn_out, 1 << 2 | (open ? 1 << 3 : 0));
        rig_free(rig);
        if (!open) {
            rig = rig_open(&shape, &t);
            assert_int_equal(flash_cell_erases(&rig->dev, 2), 3);
            assert_int_equal(flash_cell_erases(&rig->dev, 3), 1);
            set_erases(rig, 2, 2);
            set_erases(rig, 3, 2);
        }
    }
}

static void test_write_bandwidth(void **state)
{
    FlashShape s = shape_of(2, 4, 2, 16384, 3);
    FlashTuning t = tuning_of(50 * US, 700 * US, 0);

    (void)state;
    s.zone_blocks = s.zone_cap = 24 * 8 * 64;
    t.bus.bytes_per_s = 1200000000;
    assert_near(write_rate(s, t, 32), 8 * 98304ull * 1000000000 / (700 * US));
}

/* The zone-reset paper's QLC: 8 dies x 2 planes x 64 KiB in 12.196 ms. */
static void test_qlc(void **state)
{
    FlashShape s = shape_of(4, 2, 2, 16384, 4);
    FlashTuning t = tuning_of(75 * US, 12196 * US, 3 * MS);

    (void)state;
    s.zone_blocks = s.zone_cap = 32 * 8 * 64;
    t.bus.bytes_per_s = 1200000000;
    assert_near(write_rate(s, t, 32) / 1000, 8199 * MIB / 100 / 1000);
}

static void test_femu(void **state)
{
    FlashTuning t = tuning_of(40 * US, 200 * US, 2 * MS);

    (void)state;
    assert_near(write_rate(shape_of(2, 8, 1, 4096, 1), t, 4), 327680000);
}

/* A program's transfer overlaps the one before only with a cache register. */
static void test_cache_program(void **state)
{
    FlashShape s = shape_of(1, 1, 1, 4096, 1);
    FlashTuning t = tuning_of(0, 100 * US, 0);

    (void)state;
    t.bus = bus;
    assert_near(write_rate(s, t, 4), BLOCK * 1000000000ull / (100 * US));
    t.cache = false;
    assert_near(write_rate(s, t, 4),
                BLOCK * 1000000000ull / (100 * US + XFER));
}

static void test_zone_on_few_dies(void **state)
{
    FlashShape s = shape_of(4, 4, 1, 4096, 1);
    FlashTuning t = tuning_of(0, 100 * US, 0);

    (void)state;
    s.zone_dies = 1;
    assert_near(write_rate(s, t, 4), BLOCK * 1000000000ull / (100 * US));
    s.zone_dies = 4;
    assert_near(write_rate(s, t, 4), 4 * BLOCK * 1000000000ull / (100 * US));
}

/* Early completion until the buffer is full, then one slot a program. */
static void test_back_pressure(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig;

    (void)state;
    t.buffer = 4 * BLOCK;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    for (int i = 0; i < 8; i++) {
        put_write(rig, 0, i, 1, 1, false);
    }
    assert_int_equal(rig->done, 4);
    assert_int_equal(rig->dev.time.now, 0);
    for (int i = 1; i <= 4; i++) {
        assert_int_equal(run(rig, 1), i * MS);
    }
    assert_int_equal(rig->dev.stats.buffer_max, 4 * BLOCK);
    /* larger than the buffer: admitted piece by piece */
    put_write(rig, 0, 8, 16, 1, false);
    assert_int_equal(run(rig, 1), 20 * MS);
    rig_free(rig);
}

/* Partial units cannot block the buffer for ever. */
static void test_partial_units_make_room(void **state)
{
    FlashShape s = shape_of(1, 1, 1, 16384, 1);
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig;

    (void)state;
    t.buffer = 2 * BLOCK;
    rig = rig_new(s, t);
    for (int zone = 0; zone < 3; zone++) {
        put_write(rig, zone, 0, 1, 1, false);
    }
    assert_int_equal(run(rig, 3 - rig->done), 1 * MS);
    assert_int_equal(rig->dev.stats.programs_padded, 1);
    rig_free(rig);
}

static void test_flush_and_fua(void **state)
{
    FlashShape s = shape_of(1, 2, 1, 16384, 1);
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig = rig_new(s, t);

    (void)state;
    submit(rig, FLASH_CMD_FLUSH, 0, 0, 0);
    assert_int_equal(rig->done, 1);             /* nothing to do */
    put_write(rig, 0, 0, 5, 1, false);          /* a unit and a quarter */
    assert_int_equal(rig->done, 2);
    submit(rig, FLASH_CMD_FLUSH, 0, 0, 0);
    assert_int_equal(run(rig, 1), 1 * MS);      /* two dies */
    assert_int_equal(rig->dev.stats.programs_padded, 1);
    assert_int_equal(rig->dev.stats.buffer_used, 0);
    assert_int_equal(rig->dev.media.zones[0].wp, 5);
    put_write(rig, 0, 5, 1, 1, true);
    assert_int_equal(run(rig, 1), 2 * MS);
    put_write(rig, 0, 6, 8, 1, true);           /* 2 + 4 + 2 blocks */
    assert_int_equal(run(rig, 1), 4 * MS);      /* two of them on one die */
    /* written four times 16 KiB and two padded ends for 14 blocks */
    assert_int_equal(rig->dev.stats.programmed_bytes, 6 * 16 * KIB);
    rig_free(rig);
}

static void test_fua_read(void **state)
{
    FlashShape s = shape_of(1, 2, 1, 16384, 1);
    FlashTuning t = tuning_of(50 * US, 1 * MS, 0);
    Rig *rig = rig_new(s, t);
    FlashCmd *cmd;

    (void)state;
    put_write(rig, 0, 0, 5, 1, false);          /* a unit and a quarter */
    put_write(rig, 1, 0, 1, 1, false);
    cmd = cmd_new(FLASH_CMD_READ, 0, 4, 1);
    cmd->fua = true;
    flash_dev_submit(&rig->dev, cmd);
    assert_int_equal(rig->done, 2);
    assert_int_equal(run(rig, 1), 1 * MS);
    assert_int_equal(rig->dev.media.zones[0].wp, 5);
    assert_false(flash_media_bad(&rig->dev.media, 0, 5));
    assert_int_equal(rig->dev.media.zones[1].wp, 0);    /* not asked for */
    rig_free(rig);
}

/* A unit of 4 GiB, on a bus that carries one in 4.3 s. */
static void test_large_unit(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig;

    (void)state;
    t.bus.bytes_per_s = 1000000000;
    rig = rig_new(shape_of(1, 1, 64, 1 << 20, 64), t);
    put_write(rig, 0, 0, 1, 1, true);
    assert_int_equal(run(rig, 1), (1ull << 32) + 1 * MS);
    assert_int_equal(rig->dev.stats.programmed_bytes, 1ull << 32);
    rig_free(rig);
}

static void test_write_through(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig;

    (void)state;
    t.buffer = 0;
    rig = rig_new(shape_of(1, 2, 1, 4096, 1), t);
    put_write(rig, 0, 0, 2, 1, false);
    assert_int_equal(run(rig, 1), 1 * MS);
    put_write(rig, 0, 2, 3, 1, false);
    assert_int_equal(run(rig, 1), 3 * MS);
    rig_free(rig);
}

static void test_read_hits_the_buffer(void **state)
{
    FlashShape s = shape_of(1, 1, 1, 4096, 1);
    FlashTuning t = tuning_of(50 * US, 1 * MS, 0);
    uint8_t data[2 * BLOCK], oob[1];
    Rig *rig = rig_new(s, t);

    (void)state;
    put_write(rig, 0, 0, 2, 77, false);
    submit(rig, FLASH_CMD_READ, 0, 0, 2);
    assert_int_equal(rig->done, 2);
    assert_int_equal(rig->dev.stats.buffer_hits, 2);
    flash_dev_copy(&rig->dev, 0, 0, 2, data, oob);
    assert_int_equal(((uint64_t *)data)[2], 77);
    assert_int_equal(((uint64_t *)data)[512 + 1], 1);
    assert_null(flash_dev_peek(&rig->dev, 0, 0, 1));
    drain(rig);
    assert_non_null(flash_dev_peek(&rig->dev, 0, 0, 1));
    rig_free(rig);
}

/* Zones: 8 dies, 16 units a block, 4 blocks a die. */

static Rig *zone_rig(void)
{
    FlashShape s = shape_of(2, 4, 1, 16384, 1);
    FlashTuning t = tuning_of(0, 100 * US, 3 * MS);

    s.zone_blocks = s.zone_cap = 4 * 8 * 16 * 4;
    t.cmd_ns[FLASH_CMD_RESET] = 20 * US;
    return rig_new(s, t);
}

static uint64_t timed(Rig *rig, FlashCmdKind kind, uint32_t zone)
{
    uint64_t start = rig->dev.time.now;
    unsigned done = rig->done;

    submit(rig, kind, zone, 0, 0);
    if (rig->done == done) {
        run(rig, 1);
    }
    return rig->at - start;
}

static void test_reset(void **state)
{
    Rig *rig = zone_rig();
    uint64_t cap = rig->dev.media.shape.zone_cap;

    (void)state;
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 0), 20 * US);
    fill(rig, 0, 0, cap);
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 0), 20 * US + 4 * 3 * MS);
    fill(rig, 0, 0, cap / 2);
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 0), 20 * US + 2 * 3 * MS);
    fill(rig, 0, 0, 4);                         /* one unit on one die */
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 0), 20 * US + 3 * MS);
    assert_int_equal(rig->dev.stats.erases, 32 + 16 + 1);
    assert_int_equal(rig->dev.media.zones[0].wp, 0);

    rig->dev.tuning.erase_more_ns = 1 * MS;
    fill(rig, 0, 0, cap);
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 0), 20 * US + 6 * MS);
    rig->dev.tuning.delay_erase = false;
    fill(rig, 0, 0, cap);
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 0), 20 * US);
    rig_free(rig);
}

static void test_reset_all_is_linear(void **state)
{
    Rig *rig = zone_rig();
    uint64_t cap = rig->dev.media.shape.zone_cap;

    (void)state;
    for (uint32_t n = 1; n <= 8; n++) {
        for (uint32_t zone = 0; zone < n; zone++) {
            fill(rig, zone, 0, cap);
        }
        assert_int_equal(timed(rig, FLASH_CMD_RESET, FLASH_ALL_ZONES),
                         n * (20 * US + 4 * 3 * MS));
    }
    rig_free(rig);
}

/* Others on the same dies feel a reset, and it waits for them. */
static void test_reset_queues(void **state)
{
    Rig *rig = zone_rig();
    uint64_t start;

    (void)state;
    fill(rig, 0, 0, 4);
    fill(rig, 1, 0, 32);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_RESET, 0, 0, 0);
    /* zone 0 begins on die 0; zone 1's unit 7 is there too */
    submit(rig, FLASH_CMD_READ, 1, 28, 1);
    assert_int_equal(run(rig, 1) - start, 3 * MS);
    assert_int_equal(run(rig, 1) - start, 3 * MS + 20 * US);
    rig_free(rig);
}

static void test_reset_drops_the_buffer(void **state)
{
    Rig *rig = zone_rig();

    (void)state;
    put_write(rig, 0, 0, 3, 1, false);          /* stays in the buffer */
    put_write(rig, 1, 0, 9, 1, false);          /* two units on their way */
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 0), 20 * US);
    assert_int_equal(rig->dev.stats.buffer_used, 9 * BLOCK);
    submit(rig, FLASH_CMD_RESET, 1, 0, 0);
    assert_int_equal(rig->dev.stats.buffer_used, 0);
    assert_int_equal(rig->dev.zones[1].accepted, 0);
    put_write(rig, 1, 0, 4, 2, true);
    drain(rig);
    assert_int_equal(rig->dev.media.zones[1].wp, 4);
    assert_int_equal(((uint64_t *)flash_dev_peek(&rig->dev, 1, 0, 1))[2], 2);
    rig_free(rig);
}

/* A write that waited for the buffer when its zone was reset comes too late. */
static void test_reset_overtakes_writes(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig;

    (void)state;
    t.buffer = BLOCK;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    put_write(rig, 0, 0, 1, 1, false);
    put_write(rig, 0, 1, 1, 1, false);
    put_write(rig, 1, 0, 1, 1, false);
    submit(rig, FLASH_CMD_RESET, 0, 0, 0);
    assert_int_equal(rig->dev.zones[1].accepted, 1);
    drain(rig);
    assert_int_equal(rig->done, 4);
    assert_int_equal(rig->dev.stats.errors, 1);
    assert_int_equal(rig->dev.zones[0].accepted, 0);
    rig_free(rig);
}

static void test_finish(void **state)
{
    Rig *rig = zone_rig();
    uint64_t cap = rig->dev.media.shape.zone_cap;

    (void)state;
    assert_int_equal(timed(rig, FLASH_CMD_FINISH, 0), 0);   /* empty */
    fill(rig, 1, 0, cap / 2);
    /* half of 512 units on 8 dies */
    assert_int_equal(timed(rig, FLASH_CMD_FINISH, 1), 32 * 100 * US);
    assert_int_equal(timed(rig, FLASH_CMD_FINISH, 1), 0);
    assert_int_equal(rig->dev.stats.programs_finish, 256);
    /* the padding must be erased too */
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 1), 20 * US + 4 * 3 * MS);
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 0), 20 * US);
    rig_free(rig);
}

/* Finish comes after the zone's writes that wait, and pads what they leave. */
static void test_finish_behind_writes(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig;

    (void)state;
    t.buffer = BLOCK;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    put_write(rig, 1, 0, 1, 1, false);
    for (int i = 0; i < 3; i++) {
        put_write(rig, 0, i, 1, 1, false);
    }
    submit(rig, FLASH_CMD_FINISH, 0, 0, 0);
    submit(rig, FLASH_CMD_FINISH, 2, 0, 0);     /* has nothing to wait for */
    assert_int_equal(rig->done, 2);
    assert_int_equal(run(rig, 3), 3 * MS);
    assert_int_equal(run(rig, 1), (1 + 4096) * MS);
    assert_int_equal(rig->dev.stats.programs_full, 4);
    assert_int_equal(rig->dev.stats.programs_finish, 4096 - 3);
    assert_int_equal(rig->dev.stats.programmed_bytes, 4097ull * BLOCK);
    assert_int_equal(rig->dev.zones[0].accepted, 3);
    rig_free(rig);
}

/* What a reset drops is not programmed, not counted, and blocks nothing. */
static void test_dropped_programs(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig;

    (void)state;
    t.bus.setup_ns = 10 * US;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    put_write(rig, 0, 0, 2, 1, false);
    put_write(rig, 1, 0, 50, 1, false);
    submit(rig, FLASH_CMD_FLUSH, 0, 0, 0);
    submit(rig, FLASH_CMD_RESET, 1, 0, 0);
    assert_int_equal(run(rig, 1), 2 * MS + 10 * US);
    assert_int_equal(rig->dev.stats.programs_full, 2);
    assert_int_equal(rig->dev.stats.programmed_bytes, 2 * BLOCK);
    drain(rig);
    assert_int_equal(rig->dev.time.now, 2 * MS + 10 * US);

    /* the padding of a finish ends with its zone */
    submit(rig, FLASH_CMD_FINISH, 0, 0, 0);
    flash_time_run(&rig->dev.time, 5 * MS);
    submit(rig, FLASH_CMD_RESET, 0, 0, 0);
    drain(rig);
    assert_true(rig->dev.time.now < 6 * MS);
    assert_int_equal(rig->dev.stats.programs_finish, 3);
    assert_int_equal(rig->dev.media.zones[0].flags, 0);
    rig_free(rig);
}

/* Padding that waits behind another zone's programs goes with its zone. */
static void test_dropped_padding(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig;

    (void)state;
    t.bus.setup_ns = 10 * US;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    put_write(rig, 0, 0, 1, 1, false);
    drain(rig);
    flash_time_run(&rig->dev.time, 10 * MS);
    put_write(rig, 1, 0, 4, 1, false);
    submit(rig, FLASH_CMD_FINISH, 0, 0, 0);
    assert_int_equal(rig->done, 2);
    submit(rig, FLASH_CMD_RESET, 0, 0, 0);
    assert_int_equal(rig->done, 3);             /* the finish has ended */
    assert_int_equal(rig->dev.media.zones[0].flags, 0);
    drain(rig);
    assert_int_equal(rig->dev.time.now, 14 * MS + 10 * US);
    assert_int_equal(rig->dev.stats.programs_finish, 0);
    assert_int_equal(rig->dev.stats.programmed_bytes, 5 * BLOCK);
    assert_int_equal(rig->done, 4);

    /* its transfer has begun, its program has not: only that is left of it */
    put_write(rig, 0, 0, 1, 1, false);
    drain(rig);
    flash_time_run(&rig->dev.time, 20 * MS);
    submit(rig, FLASH_CMD_FINISH, 0, 0, 0);
    flash_time_run(&rig->dev.time, 20 * MS + 5 * US);
    submit(rig, FLASH_CMD_RESET, 0, 0, 0);
    drain(rig);
    assert_int_equal(rig->dev.time.now, 20 * MS + 10 * US);
    assert_int_equal(rig->dev.stats.programs_finish, 0);
    rig_free(rig);
}

/* The mean of what is buffered, when its integral is beyond 64 bits. */
static void test_buffer_mean(void **state)
{
    FlashTuning t = tuning_of(0, 3600 * 1000 * MS, 0);
    Rig *rig;

    (void)state;
    t.buffer = 16 * MIB;
    rig = rig_new(shape_of(1, 1, 64, 262144, 1), t);
    put_write(rig, 0, 0, 4096, 1, false);       /* an hour of 16 MiB */
    drain(rig);
    assert_int_equal(rig->dev.time.now, 3600 * 1000 * MS);
    assert_int_equal(flash_buffer_mean(&rig->dev), 16 * MIB);
    put_write(rig, 1, 0, 2048, 1, false);
    flash_time_run(&rig->dev.time, 7200 * 1000 * MS);
    assert_int_equal(flash_buffer_mean(&rig->dev), 12 * MIB);
    rig_free(rig);
}

/* Whatever a host sends, what is kept for it has a limit. */
static void test_bounds(void **state)
{
    FlashTuning t = tuning_of(0, 1000 * MS, 0);
    unsigned waiting = 0;
    Rig *rig;

    (void)state;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    put_write(rig, 0, 0, 2, 1, false);
    for (int i = 0; i < 1000; i++) {
        put_write(rig, 1, 0, 8, 1, false);
        submit(rig, FLASH_CMD_RESET, 1, 0, 0);
    }
    for (FlashOp *op = rig->dev.time.dies[0].queue.head; op; op = op->next) {
        waiting++;
    }
    assert_true(waiting < 10);
    for (int i = 0; i < 1000; i++) {
        flash_dev_cut(&rig->dev, (10000 - i) * MS);
        flash_dev_cut(&rig->dev, (10000 + i) * MS);
    }
    assert_true(rig->dev.time.heap_len < 10);
    drain(rig);
    assert_int_equal(rig->dev.stats.cuts, 1);
    assert_int_equal(rig->dev.time.now, 9001 * MS);
    flash_dev_power_on(&rig->dev);
    flash_dev_cut(&rig->dev, 9500 * MS);
    flash_dev_forget_cuts(&rig->dev);
    drain(rig);
    assert_int_equal(rig->dev.stats.cuts, 1);
    rig_free(rig);
}

static void test_open_and_close(void **state)
{
    FlashTuning t = tuning_of(0, 0, 0);
    Rig *rig;

    (void)state;
    t.cmd_ns[FLASH_CMD_OPEN] = 5 * US;
    t.cmd_ns[FLASH_CMD_CLOSE] = 11 * US;
    t.cmd_ns[FLASH_CMD_WRITE] = 10 * US;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    assert_int_equal(timed(rig, FLASH_CMD_OPEN, 0), 5 * US);
    assert_int_equal(timed(rig, FLASH_CMD_CLOSE, 0), 11 * US);
    put_write(rig, 1, 0, 1, 1, false);          /* opens implicitly */
    assert_int_equal(run(rig, 1), 16 * US + 15 * US);
    put_write(rig, 1, 1, 1, 1, false);
    assert_int_equal(run(rig, 1), 31 * US + 10 * US);
    rig_free(rig);
}

/*
 * The host's link carries one transfer at a time each way, a page when it is
 * out of the flash.
 */
static void test_link(void **state)
{
    FlashTuning t = tuning_of(50 * US, 0, 0);
    FlashCmd *copy;
    uint64_t start;
    Rig *rig;

    (void)state;
    t.link_rate = 40000 * BLOCK;                /* 25 us a block */
    rig = rig_new(shape_of(4, 1, 1, 4096, 1), t);
    fill(rig, 0, 0, 64);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    assert_int_equal(run(rig, 1) - start, 50 * US + 25 * US);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 64);      /* of four dies: it is full */
    assert_int_equal(run(rig, 1) - start, 50 * US + 64 * 25 * US);

    /* both ways at once; nothing but reads overtakes data */
    start = rig->dev.time.now;
    put_write(rig, 1, 0, 8, 1, false);
    submit(rig, FLASH_CMD_FLUSH, 0, 0, 0);
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    assert_int_equal(run(rig, 1) - start, 50 * US + 25 * US);
    assert_int_equal(run(rig, 2) - start, 8 * 25 * US);
    assert_int_equal(rig->status, FLASH_OK);

    /* a copy's blocks do not pass it, buffered ones do */
    copy = cmd_new(FLASH_CMD_READ, 0, 0, 4);
    copy->inside = true;
    start = rig->dev.time.now;
    flash_dev_submit(&rig->dev, copy);
    assert_int_equal(run(rig, 1) - start, 50 * US);
    rig->dev.tuning.program_ns = 1000 * MS;
    put_write(rig, 2, 0, 4, 1, false);
    run(rig, 1);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 2, 0, 4);
    assert_int_equal(run(rig, 1) - start, 4 * 25 * US);
    rig_free(rig);
}

/* The firmware may take longer for reads of more than 4 KiB. */
static void test_long_reads(void **state)
{
    FlashTuning t = tuning_of(50 * US, 0, 0);
    uint64_t start;
    Rig *rig;

    (void)state;
    t.cmd_ns[FLASH_CMD_READ] = 20 * US;
    t.long_read_ns = 30 * US;
    rig = rig_new(shape_of(2, 1, 1, 4096, 1), t);
    fill(rig, 0, 0, 8);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    assert_int_equal(run(rig, 1) - start, 70 * US);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 2);
    assert_int_equal(run(rig, 1) - start, 80 * US);
    rig_free(rig);
}

/* The controller serves one command after the other. */
static void test_service_time(void **state)
{
    FlashTuning t = tuning_of(0, 0, 0);
    Rig *rig;

    (void)state;
    t.service_ns = 2 * US;
    rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);
    for (int i = 0; i < 5; i++) {
        submit(rig, FLASH_CMD_READ, 0, 0, 1);
    }
    assert_int_equal(run(rig, 5), 10 * US);
    rig_free(rig);
}

static void test_slow_die_and_failed_program(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig;

    (void)state;
    rig = rig_new(shape_of(1, 2, 1, 4096, 1), t);
    rig->dev.time.dies[0].slow = 250;
    put_write(rig, 0, 0, 1, 1, true);           /* die 0 */
    assert_int_equal(run(rig, 1), 2500 * US);
    rig->dev.trouble.fail_program = 1;
    put_write(rig, 0, 1, 1, 1, true);           /* die 1, twice */
    assert_int_equal(run(rig, 1), 4500 * US);
    assert_int_equal(rig->dev.stats.programs_retried, 1);
    rig_free(rig);
}

/* Power. */

static void check_after_cut(Rig *rig)
{
    /* one die: programs end in order, 1 ms each; cut at 2.5 ms */
    assert_int_equal(rig->dev.media.zones[0].wp, 3);
    assert_false(flash_dev_bad(&rig->dev, 0, 0, 2));
    assert_true(flash_dev_bad(&rig->dev, 0, 2, 1));
    assert_int_equal(rig->dev.zones[0].accepted, 3);
    assert_int_equal(rig->dev.zones[1].accepted, 0);
    assert_false(flash_dev_bad(&rig->dev, 0, 3, 10));
}

static void test_cut_in_time(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);

    (void)state;
    for (int i = 0; i < 8; i++) {
        put_write(rig, 0, i, 1, 1, false);
    }
    put_write(rig, 1, 0, 1, 1, false);
    submit(rig, FLASH_CMD_FLUSH, 0, 0, 0);
    flash_dev_cut(&rig->dev, 2500 * US);
    assert_int_equal(run(rig, 1), 2500 * US);
    assert_int_equal(rig->status, FLASH_NO_POWER);
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    assert_int_equal(rig->status, FLASH_NO_POWER);
    flash_dev_power_on(&rig->dev);
    check_after_cut(rig);
    assert_int_equal(rig->dev.stats.lost_bytes, 7 * BLOCK);
    /* the zone goes on behind the torn block */
    put_write(rig, 0, 3, 1, 9, true);
    run(rig, 1);
    assert_int_equal(rig->status, FLASH_OK);
    assert_false(flash_dev_bad(&rig->dev, 0, 3, 1));
    rig_free(rig);
}

/*
 * The power goes because that of another drive does: what this one does at that
 * instant is done, as if it had been run first.
 */
static void test_cut_with_another_drive(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);

    (void)state;
    for (int too = 0; too < 2; too++) {
        Rig *rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);

        (too ? flash_dev_cut_too : flash_dev_cut)(&rig->dev, 1 * MS);
        put_write(rig, 0, 0, 2, 1, false);      /* the second begins then */
        assert_true(flash_dev_awaits_cut(&rig->dev));
        flash_time_run(&rig->dev.time, 1 * MS);
        assert_int_equal(rig->dev.stats.cuts, 1);
        assert_false(flash_dev_awaits_cut(&rig->dev));
        flash_dev_power_on(&rig->dev);
        assert_int_equal(rig->dev.zones[0].accepted, 1 + too);
        assert_true(flash_dev_bad(&rig->dev, 0, 0, 1) != too);
        rig_free(rig);
    }
}

static void test_cut_at_program(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig = rig_new(shape_of(1, 1, 1, 4096, 1), t);

    (void)state;
    rig->dev.trouble.cut_at_program = 3;
    for (int i = 0; i < 8; i++) {
        put_write(rig, 0, i, 1, 1, false);
    }
    put_write(rig, 1, 0, 1, 1, false);
    drain(rig);
    flash_dev_power_on(&rig->dev);
    check_after_cut(rig);
    rig_free(rig);
}

/* The power goes when the second reset has ended: both zones are empty, and what comes after is lost. */
static void test_cut_at_reset(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 3 * MS);
    Rig *rig = rig_new(shape_of(2, 1, 1, 4096, 1), t);

    (void)state;
    fill(rig, 0, 0, 4);
    fill(rig, 1, 0, 4);
    rig->dev.trouble.cut_at_reset = 2;
    submit(rig, FLASH_CMD_RESET, 0, 0, 0);
    run(rig, 1);
    assert_int_equal(rig->status, FLASH_OK);
    submit(rig, FLASH_CMD_RESET, 1, 0, 0);
    run(rig, 1);
    put_write(rig, 2, 0, 1, 1, false);
    drain(rig);
    assert_false(rig->dev.powered);
    flash_dev_power_on(&rig->dev);
    assert_int_equal(rig->dev.media.zones[0].wp, 0);
    assert_int_equal(rig->dev.media.zones[1].wp, 0);
    assert_int_equal(rig->dev.media.zones[2].wp, 0);
    rig_free(rig);
}

/* A fast die runs ahead: what waited for the slow one is a hole. */
static void test_cut_leaves_holes(void **state)
{
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig = rig_new(shape_of(2, 1, 1, 4096, 1), t);

    (void)state;
    rig->dev.time.dies[0].slow = 1000;
    for (int i = 0; i < 6; i++) {
        put_write(rig, 0, i, 1, 1, false);
    }
    flash_dev_cut(&rig->dev, 3500 * US);
    drain(rig);
    flash_dev_power_on(&rig->dev);
    assert_int_equal(rig->dev.media.zones[0].wp, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(flash_dev_bad(&rig->dev, 0, i, 1), i % 2 == 0);
    }
    rig_free(rig);
}

/* The process dies with programs in flight; another one opens the image. */
static void test_kill(void **state)
{
    FlashShape s = shape_of(1, 1, 1, 4096, 1);
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    int status;
    Rig *rig;
    pid_t pid;

    (void)state;
    unlink(path);
    pid = fork();
    if (!pid) {
        rig = rig_open(&s, &t);
        for (int i = 0; i < 8; i++) {
            put_write(rig, 0, i, 1, 1, false);
        }
        put_write(rig, 1, 0, 1, 1, false);
        flash_time_run(&rig->dev.time, 2500 * US);
        kill(getpid(), SIGKILL);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    rig = rig_open(&s, &t);
    check_after_cut(rig);
    rig_free(rig);
}

static void test_orderly_close(void **state)
{
    FlashShape s = shape_of(1, 1, 1, 16384, 1);
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    Rig *rig;

    (void)state;
    s.meta_size = 16;
    rig = rig_new(s, t);
    put_write(rig, 0, 0, 6, 5, false);
    rig_free(rig);
    rig = rig_open(&s, &t);
    assert_int_equal(rig->dev.zones[0].accepted, 6);
    assert_false(flash_dev_bad(&rig->dev, 0, 0, 6));
    assert_int_equal(((uint64_t *)flash_dev_peek(&rig->dev, 0, 5, 1))[2], 5);
    rig_free(rig);
}

/* After a shutdown all is safe, also while the programs go on. */
static void test_shutdown(void **state)
{
    FlashShape s = shape_of(1, 1, 1, 4096, 1);
    FlashTuning t = tuning_of(0, 1 * MS, 0);
    int status;
    Rig *rig;
    pid_t pid;

    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        unlink(path);
        pid = fork();
        if (!pid) {
            rig = rig_open(&s, &t);
            put_write(rig, 0, 0, 5, 3, false);
            flash_dev_sync(&rig->dev);
            if (cut) {
                flash_dev_cut(&rig->dev, 2500 * US);
            }
            flash_time_run(&rig->dev.time, 2500 * US);
            kill(getpid(), SIGKILL);
        }
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        rig = rig_open(&s, &t);
        assert_int_equal(rig->dev.zones[0].accepted, 5);
        assert_false(flash_dev_bad(&rig->dev, 0, 0, 5));
        assert_int_equal(((uint64_t *)flash_dev_peek(&rig->dev, 0, 4, 1))[2],
                         3);
        rig_free(rig);
    }
}

/*
 * Erases that the power interrupts: of 500 blocks on 4 dies, 2 in a unit, 16
 * units in an erase block.  Die 0 is late: it programs a block of another zone.
 */

#define TORN_BLOCKS 500u
#define TORN_LATE (5 * MS)
#define TORN_AFTER (12 * US)    /* when the reset comes */

typedef enum Remains {
    REMAINS_BAD,
    REMAINS_ZEROES,
    REMAINS_OLD,
    REMAINS_BEYOND,             /* the write pointer */
    REMAINS_WRONG,
} Remains;

static Rig *torn_rig(bool fresh)
{
    FlashShape s = shape_of(2, 2, 1, 4096, 2);
    FlashTuning t = tuning_of(0, TORN_LATE, 3 * MS);

    s.zone_blocks = s.zone_cap = 512;
    s.meta_size = 8;
    return fresh ? rig_new(s, t) : rig_open(&s, &t);
}

static void torn_reset(Rig *rig, uint64_t reset_ns)
{
    fill(rig, 0, 0, TORN_BLOCKS);
    submit(rig, FLASH_CMD_FINISH, 0, 0, 0);
    submit(rig, FLASH_CMD_FLUSH, 0, 0, 0);
    drain(rig);
    flash_time_run(&rig->dev.time, rig->dev.time.now + reset_ns);
    put_write(rig, 4, 0, 2, 1, false);
    flash_time_run(&rig->dev.time, rig->dev.time.now + TORN_AFTER);
    submit(rig, FLASH_CMD_RESET, 0, 0, 0);
}

static Remains remains(Rig *rig, uint64_t block)
{
    const uint64_t *p = (uint64_t *)flash_media_data(&rig->dev.media, block);

    if (block >= rig->dev.zones[0].accepted) {
        return !p[1] && !p[2] && !p[511] &&
               !flash_media_bad(&rig->dev.media, block, 1) ? REMAINS_BEYOND :
                                                             REMAINS_WRONG;
    }
    if (flash_dev_bad(&rig->dev, 0, block, 1)) {
        return REMAINS_BAD;
    }
    if (!p[1] && !p[2] && !p[511]) {
        return REMAINS_ZEROES;
    }
    return p[1] == block && p[2] == 1 && p[511] == 1 ? REMAINS_OLD :
                                                       REMAINS_WRONG;
}

/* Has the erase of that block begun so long after the reset? */
static bool torn_begun(uint64_t block, uint64_t ns)
{
    uint64_t unit = block / 2;
    uint64_t begin = unit / 4 / 16 * 3 * MS;

    return ns >= begin + (unit % 4 ? 0 : TORN_LATE - TORN_AFTER);
}

static void test_cut_in_a_reset(void **state)
{
    unsigned seen[REMAINS_WRONG] = { 0 }, empty = 0, cut_short = 0, kept = 0;

    (void)state;
    srandom(3);
    for (int round = 0; round < 150; round++) {
        uint64_t reset_ns = random() % MS, cut_ns = random() % (14 * MS);
        Remains after_cut[512];
        uint64_t have, first = TORN_BLOCKS;
        int status;
        Rig *rig;
        pid_t pid;

        rig = torn_rig(true);
        torn_reset(rig, reset_ns);
        flash_dev_cut(&rig->dev, rig->dev.time.now + cut_ns);
        drain(rig);
        flash_dev_power_on(&rig->dev);
        have = rig->dev.zones[0].accepted;
        for (uint32_t i = 0; i < 512; i++) {
            after_cut[i] = remains(rig, i);
            assert_int_not_equal(after_cut[i], REMAINS_WRONG);
            if (i < have && !torn_begun(i, cut_ns)) {
                assert_int_equal(after_cut[i], REMAINS_OLD);
            }
            if (i < have && i % 2) {            /* a unit is of one kind */
                assert_int_equal(after_cut[i], after_cut[i - 1]);
            }
            if (i < TORN_BLOCKS && torn_begun(i, cut_ns) && first > i) {
                first = i;
            }
            seen[after_cut[i]] += i < have && torn_begun(i, cut_ns);
        }
        if (!have) {
            empty++;
        } else if (have == TORN_BLOCKS) {
            assert_true(rig->dev.zones[0].finished);
            kept++;
        } else {
            assert_int_equal(have, first);
            assert_false(rig->dev.zones[0].finished);
            cut_short++;
        }
        /* what was erased in part is erased in full the next time */
        if (have) {
            uint64_t erases = rig->dev.stats.erases;

            submit(rig, FLASH_CMD_RESET, 0, 0, 0);
            drain(rig);
            assert_int_equal(rig->dev.stats.erases - erases, 16);
            assert_int_equal(remains(rig, 499), REMAINS_BEYOND);
        }
        rig_free(rig);

        /* a kill at the same instant leaves the same */
        unlink(path);
        pid = fork();
        if (!pid) {
            rig = torn_rig(false);
            torn_reset(rig, reset_ns);
            flash_time_run(&rig->dev.time, rig->dev.time.now + cut_ns);
            kill(getpid(), SIGKILL);
        }
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        rig = torn_rig(false);
        assert_int_equal(rig->dev.zones[0].accepted, have);
        for (uint32_t i = 0; i < 512; i++) {
            assert_int_equal(remains(rig, i), after_cut[i]);
        }
        rig_free(rig);
    }
    assert_true(empty > 20 && kept > 20 && cut_short > 5);
    assert_true(seen[REMAINS_BAD] && seen[REMAINS_ZEROES] && seen[REMAINS_OLD]);
}

/* What is in the zone again, or was answered, is not undone by a cut. */
static void test_cut_after_a_reset(void **state)
{
    enum { ANSWERED, RESET_AGAIN, FINISHED, WRITTEN, SHUT_DOWN, WAYS };

    (void)state;
    for (int round = 0; round < 12 * WAYS; round++) {
        int way = round % WAYS;
        Rig *rig = torn_rig(true);

        torn_reset(rig, round * US);
        if (way == ANSWERED) {
            drain(rig);
        } else if (way == RESET_AGAIN) {
            submit(rig, FLASH_CMD_RESET, 0, 0, 0);
        } else if (way == FINISHED) {
            submit(rig, FLASH_CMD_FINISH, 0, 0, 0);
        } else if (way == WRITTEN) {
            put_write(rig, 0, 0, 2, 9, true);
            run(rig, 1);
            assert_non_null(rig->dev.jobs);     /* erases go on elsewhere */
        } else {
            flash_dev_sync(&rig->dev);
        }
        flash_dev_cut(&rig->dev, rig->dev.time.now + US);
        drain(rig);
        flash_dev_power_on(&rig->dev);
        assert_int_equal(rig->dev.zones[0].accepted, way == WRITTEN ? 2 : 0);
        assert_int_equal(rig->dev.zones[0].finished, way == FINISHED);
        assert_false(flash_dev_bad(&rig->dev, 0, 0, 2));
        for (uint32_t i = way == WRITTEN ? 2 : 0; i < 512; i++) {
            assert_int_equal(remains(rig, i), REMAINS_BEYOND);
        }
        rig_free(rig);
    }
}

/* A write of an instant device: counted as what it was, or undone. */
static void test_instant_write(void **state)
{
    FlashShape s = shape_of(1, 1, 1, 4096, 1);
    Rig *rig;

    (void)state;
    s.meta_size = 16;
    rig = rig_new(s, tuning_of(0, 0, 0));
    assert_true(flash_dev_instant(&rig->dev, 0));
    flash_dev_write_begin(&rig->dev, 0, 3);
    flash_dev_write_end(&rig->dev, FLASH_CMD_APPEND, 0, 3);
    assert_int_equal(rig->dev.stats.cmds[FLASH_CMD_APPEND], 1);
    assert_int_equal(rig->dev.stats.cmds[FLASH_CMD_WRITE], 0);
    flash_dev_write_begin(&rig->dev, 0, 5);
    memset(flash_media_data(&rig->dev.media, 3), 1, 2 * BLOCK);
    memset(flash_media_oob(&rig->dev.media, 3), 1, 2 * 16);
    flash_dev_write_undo(&rig->dev, 0, 5);
    assert_int_equal(rig->dev.zones[0].accepted, 3);
    assert_int_equal(rig->dev.zones[0].programmed, 3);
    assert_int_equal(rig->dev.media.zones[0].wp, 3);
    assert_false(flash_media_bad(&rig->dev.media, 0, 8));
    /* what comes to lie there finds it erased */
    for (size_t i = 0; i < 5 * BLOCK; i++) {
        assert_int_equal(flash_media_data(&rig->dev.media, 3)[i], 0);
    }
    assert_int_equal(flash_media_oob(&rig->dev.media, 3)[17], 0);
    rig_free(rig);
}

/* Random write windows: one of 8 blocks, on 2 dies, units of 4 blocks. */

static Rig *window_rig(uint32_t buffer_blocks)
{
    FlashTuning t = tuning_of(50 * US, 1 * MS, 3 * MS);
    Rig *rig;

    window_blocks = 8;
    windows = 1;
    t.buffer = buffer_blocks * BLOCK;
    rig = rig_new(shape_of(1, 2, 1, 16384, 1), t);
    return rig;
}

static void window_free(Rig *rig)
{
    rig_free(rig);
    window_blocks = windows = 0;
}

static void window_open(Rig *rig, uint32_t zone)
{
    FlashCmd *cmd = cmd_new(FLASH_CMD_OPEN, zone, 0, 0);

    cmd->window = true;
    flash_dev_submit(&rig->dev, cmd);
}

/* Writes to the window, as the front end does: commit is where it is then. */
static void window_write(Rig *rig, uint32_t zone, uint64_t block, uint32_t nlb,
                         uint64_t salt, uint64_t commit)
{
    FlashCmd *cmd = write_new(rig, zone, block, nlb, salt);

    cmd->window = true;
    cmd->commit = commit;
    flash_dev_submit(&rig->dev, cmd);
}

static void window_commit(Rig *rig, uint32_t zone, uint64_t commit)
{
    FlashCmd *cmd = cmd_new(FLASH_CMD_COMMIT, zone, 0, 0);

    cmd->window = true;
    cmd->commit = commit;
    flash_dev_submit(&rig->dev, cmd);
}

static uint64_t salt_at(Rig *rig, uint32_t zone, uint64_t block)
{
    uint64_t data[BLOCK / 8];
    uint8_t oob[64];

    flash_dev_copy(&rig->dev, zone, block, 1, (uint8_t *)data, oob);
    return data[2];
}

/* Written k times, read while it is there, programmed once. */
static void test_window_overwrites(void **state)
{
    Rig *rig = window_rig(64);
    uint64_t start;

    (void)state;
    window_open(rig, 0);
    for (int k = 1; k <= 100; k++) {
        window_write(rig, 0, 4, 4, 2 * k, 0);   /* in any order */
        window_write(rig, 0, 0, 4, k, 0);
    }
    submit(rig, FLASH_CMD_READ, 0, 0, 8);
    assert_int_equal(rig->done, 202);
    assert_int_equal(rig->dev.time.now, 0);
    assert_int_equal(rig->dev.stats.buffer_hits, 2);
    assert_int_equal(rig->dev.stats.programmed_bytes, 0);
    assert_int_equal(rig->dev.stats.buffer_used, 8 * BLOCK);
    assert_int_equal(salt_at(rig, 0, 3), 100);
    assert_int_equal(salt_at(rig, 0, 4), 200);

    window_commit(rig, 0, 8);
    drain(rig);
    assert_int_equal(rig->dev.time.now, 1 * MS);        /* on two dies */
    assert_int_equal(rig->dev.stats.programmed_bytes, 8 * BLOCK);
    assert_int_equal(rig->dev.stats.written_bytes, 800 * BLOCK);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 4);
    assert_int_equal(run(rig, 1) - start, 50 * US);
    assert_int_equal(salt_at(rig, 0, 3), 100);
    /* the next window begins empty */
    assert_int_equal(salt_at(rig, 0, 8), 0);
    window_free(rig);
}

/* A write beyond the window slides it, and waits for the slots that takes. */
static void test_window_slides(void **state)
{
    Rig *rig = window_rig(12);                  /* 8 set aside, 4 for all */

    (void)state;
    window_open(rig, 0);
    window_write(rig, 0, 0, 8, 1, 0);
    window_write(rig, 0, 8, 4, 2, 4);           /* a unit leaves */
    assert_int_equal(rig->done, 3);
    window_write(rig, 0, 12, 4, 3, 8);          /* must wait for its end */
    window_write(rig, 0, 8, 1, 4, 8);           /* in order, behind it */
    assert_int_equal(rig->done, 3);
    assert_int_equal(salt_at(rig, 0, 8), 2);
    assert_int_equal(run(rig, 2), 1 * MS);
    assert_int_equal(salt_at(rig, 0, 8), 4);
    assert_int_equal(salt_at(rig, 0, 15), 3);
    /* twice the window at once: its own first blocks leave */
    window_write(rig, 0, 8, 16, 5, 16);
    assert_int_equal(run(rig, 1), 3 * MS);
    assert_int_equal(rig->dev.stats.buffer_max, 12 * BLOCK);
    window_commit(rig, 0, 24);
    drain(rig);
    assert_int_equal(rig->dev.stats.programmed_bytes, 24 * BLOCK);
    assert_int_equal(rig->dev.stats.buffer_used, 8 * BLOCK);
    assert_int_equal(rig->dev.media.zones[0].wp, 24);
    window_free(rig);
}

/* Blocks never written are committed as zeroes. Others feel the window. */
static void test_window_in_the_buffer(void **state)
{
    Rig *rig = window_rig(12);

    (void)state;
    put_write(rig, 1, 0, 5, 9, false);
    assert_int_equal(rig->done, 0);             /* four fit beside the window */
    assert_int_equal(run(rig, 1), 1 * MS);
    window_open(rig, 0);
    window_write(rig, 0, 3, 1, 7, 0);
    window_commit(rig, 0, 4);
    drain(rig);
    assert_int_equal(salt_at(rig, 0, 0), 0);
    assert_int_equal(salt_at(rig, 0, 3), 7);
    assert_false(flash_dev_bad(&rig->dev, 0, 0, 4));
    window_free(rig);
}

/* Finish programs the window's blocks as part of its padding. */
static void test_window_finish_and_reset(void **state)
{
    Rig *rig = window_rig(64);
    uint64_t start;

    (void)state;
    window_open(rig, 0);
    window_write(rig, 0, 0, 6, 1, 0);
    /* 1024 units on two dies */
    assert_int_equal(timed(rig, FLASH_CMD_FINISH, 0), 512 * MS);
    assert_int_equal(rig->dev.stats.programmed_bytes, 4096 * BLOCK);
    assert_int_equal(salt_at(rig, 0, 5), 1);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 4, 2);
    assert_int_equal(run(rig, 1) - start, 50 * US);

    window_open(rig, 1);
    window_write(rig, 1, 0, 8, 2, 0);
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 1), 0);        /* no erase */
    assert_int_equal(salt_at(rig, 1, 0), 0);
    window_open(rig, 1);
    window_write(rig, 1, 0, 8, 3, 0);
    window_commit(rig, 1, 2);                   /* half a unit, waits */
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 1), 0);
    assert_int_equal(rig->dev.stats.buffer_used, 8 * BLOCK);
    assert_int_equal(rig->dev.media.zones[1].wp, 0);
    window_free(rig);
}

/* Nothing acknowledged is lost that went through a window. */
static void check_window(Rig *rig)
{
    /* zone 0: 2 blocks as ever, lost, then a window at 8 after its commit */
    assert_int_equal(rig->dev.zones[0].accepted, 8);
    assert_true(flash_dev_bad(&rig->dev, 0, 0, 1));
    assert_true(flash_dev_bad(&rig->dev, 0, 1, 1));
    assert_false(flash_dev_bad(&rig->dev, 0, 2, 100));
    for (int i = 2; i < 14; i++) {
        assert_int_equal(salt_at(rig, 0, i), i < 13 ? 2 : 0);
    }
    assert_true(rig->dev.media.zones[0].flags & FLASH_ZONE_WINDOW);
}

static void fill_window(Rig *rig)
{
    put_write(rig, 0, 0, 2, 1, false);
    window_open(rig, 0);
    window_write(rig, 0, 2, 8, 2, 2);
    window_write(rig, 0, 10, 3, 2, 8);
    flash_time_run(&rig->dev.time, 500 * US);   /* programs in flight */
}

static void test_window_and_power(void **state)
{
    Rig *rig = window_rig(64);
    FlashShape shape = rig->dev.media.shape;
    FlashTuning tuning = rig->dev.tuning;
    int status;
    pid_t pid;

    (void)state;
    fill_window(rig);
    flash_dev_cut(&rig->dev, 500 * US);
    drain(rig);
    flash_dev_power_on(&rig->dev);
    assert_int_equal(rig->dev.stats.lost_bytes, 2 * BLOCK);
    assert_int_equal(rig->dev.stats.buffer_used, 8 * BLOCK);
    check_window(rig);
    window_write(rig, 0, 8, 1, 3, 8);
    assert_int_equal(salt_at(rig, 0, 8), 3);
    rig_free(rig);

    unlink(path);
    pid = fork();
    if (!pid) {
        fill_window(rig_open(&shape, &tuning));
        kill(getpid(), SIGKILL);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    rig = rig_open(&shape, &tuning);
    check_window(rig);
    flash_dev_end_window(&rig->dev, 0);
    assert_int_equal(rig->dev.zones[0].accepted, 13);
    window_free(rig);
}

/*
 * Random writes, commits and cuts in four windows: each acknowledged block is
 * there with its newest data, before the write pointer and after it.
 */
static void test_random_windows(void **state)
{
    FlashTuning t = tuning_of(20 * US, 300 * US, 1 * MS);
    uint64_t salt[4][512] = { 0 }, wp[4] = { 0 }, next = 1;
    FlashShape s = shape_of(2, 2, 1, 8192, 2);
    Rig *rig;

    (void)state;
    s.zone_blocks = s.zone_cap = 512;
    s.pages_per_block = 8;
    t.buffer = 70 * BLOCK;
    t.bus = bus;
    window_blocks = 16;
    windows = 4;
    rig = rig_new(s, t);
    srandom(2);
    for (int step = 0; step < 50000; step++) {
        uint32_t zone = random() % 4, kind = random() % 64;
        uint64_t at = wp[zone] + random() % 24, n = 1 + random() % 8;

        flash_time_run(&rig->dev.time,
                       rig->dev.time.now + random() % (100 * US));
        window_open(rig, zone);
        if (kind == 0 || (kind < 8 && wp[zone] > 480)) {
            drain(rig);
            submit(rig, kind % 2 ? FLASH_CMD_FINISH : FLASH_CMD_RESET, zone, 0,
                   0);
            drain(rig);
            submit(rig, FLASH_CMD_RESET, zone, 0, 0);
            drain(rig);
            memset(salt[zone], 0, sizeof(salt[zone]));
            wp[zone] = 0;
        } else if (kind < 3) {
            while (rig->dev.wait_head) {
                run(rig, 1);    /* what waits is not acknowledged */
            }
            flash_dev_cut(&rig->dev, rig->dev.time.now);
            flash_time_run(&rig->dev.time, rig->dev.time.now);
            flash_dev_power_on(&rig->dev);
        } else if (kind < 16) {
            wp[zone] += random() % 9;
            wp[zone] = wp[zone] < 512 ? wp[zone] : 512;
            window_commit(rig, zone, wp[zone]);
        } else if (kind < 32) {
            submit(rig, FLASH_CMD_READ, zone, random() % 500, 8);
        } else if (at + n <= 512) {
            for (uint64_t i = at; i < at + n; i++) {
                salt[zone][i] = next;
            }
            wp[zone] = at + n > wp[zone] + 16 ? at + n - 16 : wp[zone];
            window_write(rig, zone, at, n, next++, wp[zone]);
        }
        if (random() % 4 == 0) {
            drain(rig);
            for (uint32_t b = 0; b < 512; b++) {
                assert_false(flash_dev_bad(&rig->dev, zone, b, 1));
                assert_int_equal(salt_at(rig, zone, b), salt[zone][b]);
            }
            assert_int_equal(rig->dev.zones[zone].accepted, wp[zone]);
        }
        assert_true(rig->dev.stats.buffer_used <= 70 * BLOCK);
    }
    assert_true(rig->dev.stats.cuts > 1000 && rig->dev.stats.waited > 1000);
    assert_int_equal(rig->dev.stats.lost_bytes, 0);
    window_free(rig);
}

/* The image. */

static void assert_refused(FlashShape shape, const char *word)
{
    FlashMedia m;
    char *why = flash_media_open(&m, path, &shape);

    assert_non_null(why);
    if (!strstr(why, word)) {
        fail_msg("'%s' does not say '%s'", why, word);
    }
    free(why);
}

static void test_image_of_another_shape(void **state)
{
    FlashShape s = shape_of(2, 2, 1, 4096, 1), other;

    (void)state;
    rig_free(rig_new(s, tuning_of(0, 0, 0)));
    other = s;
    other.nr_zones = 9;
    assert_refused(other, "zones");
    other = s;
    other.channels = 4;
    assert_refused(other, "channels");
    other = s;
    other.zone_cap = 100;
    assert_refused(other, "zone capacity");
    other = s;
    other.meta_size = 8;
    assert_refused(other, "metadata");

    truncate(path, 5000);
    assert_refused(s, "truncated");
    truncate(path, 100);
    assert_refused(s, "not a flash image");
    truncate(path, 0);
    truncate(path, 1 * MIB);
    assert_refused(s, "not a flash image");
    truncate(path, 0);
}

/* What a table of zones says is checked before it is used. */
static void test_damaged_image(void **state)
{
    FlashShape s = shape_of(1, 1, 1, 4096, 1);
    FlashMedia m;
    static const struct {
        size_t at, len;
        uint64_t value;
        const char *word;
    } damage[] = {
        { offsetof(FlashImageZone, wp), 8, 4097, "zone 5 has an impossible" },
        { offsetof(FlashImageZone, wp), 8, UINT64_MAX, "write pointer" },
        { offsetof(FlashImageZone, padded), 8, 1ull << 40, "padding" },
        { offsetof(FlashImageZone, ahead), 8, 5000, "window" },
        { offsetof(FlashImageZone, flags), 4, 1 << 31, "flags" },
        { offsetof(FlashImageZone, was), 8, 4097, "erase" },
        { offsetof(FlashImageZone, was_padded), 8, UINT64_MAX, "erase" },
        { offsetof(FlashImageZone, was_flags), 4, 2, "flags" },
    };

    (void)state;
    unlink(path);
    for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        char *field;

        assert_null(flash_media_open(&m, path, &s));
        m.zones[5].wp = 4096;
        field = (char *)&m.zones[5] + damage[i].at;
        memcpy(field, &damage[i].value, damage[i].len);
        flash_media_close(&m);
        assert_refused(s, damage[i].word);
        unlink(path);
    }
}

static void test_image_in_use(void **state)
{
    FlashShape s = shape_of(1, 1, 1, 4096, 1);
    Rig *rig = rig_new(s, tuning_of(0, 0, 0));

    (void)state;
    assert_refused(s, "in use");
    rig_free(rig);
}

/*
 * Random commands with random cuts against a record of what must hold: a
 * block that was flushed is there; one that was not is there, or an error, or
 * beyond the write pointer; never other data.  A zone that was being reset may
 * have zeroes too.
 */
static void random_cuts(bool booked, uint32_t caches)
{
    FlashShape s = shape_of(2, 2, 1, 8192, 2);
    FlashTuning t = tuning_of(20 * US, 300 * US, 1 * MS);
    uint64_t salt[8][512] = { 0 }, flushed[8] = { 0 }, wp[8] = { 0 };
    bool reset[8] = { false };  /* when the power went */
    uint64_t next = 1;
    Rig *rig;

    s.zone_blocks = s.zone_cap = 512;
    s.pages_per_block = 8;
    t.buffer = 24 * BLOCK;
    t.bus = bus;
    t.booked = booked;
    zone_caches = caches;
    rig = rig_new(s, t);
    zone_caches = 0;
    srandom(1);
    for (int step = 0; step < 100000; step++) {
        uint32_t zone = random() % 8;
        uint32_t n = 1 + random() % 16;

        flash_time_run(&rig->dev.time,
                       rig->dev.time.now + random() % (100 * US));
        switch (rig->dev.powered ? random() % 32 : -1) {
        case -1:
            break;
        case 0:
            submit(rig, FLASH_CMD_RESET, zone, 0, 0);
            flushed[zone] = 0;
            drain(rig);
            reset[zone] = !rig->dev.powered;
            wp[zone] = reset[zone] ? wp[zone] : 0;
            break;
        case 1:
            drain(rig);         /* a flush covers what was acknowledged */
            submit(rig, FLASH_CMD_FLUSH, 0, 0, 0);
            drain(rig);
            if (rig->dev.powered) {
                memcpy(flushed, wp, sizeof(wp));
            }
            break;
        case 2:
            if (random() % 2) {
                rig->dev.trouble.cut_at_program = 1 + random() % 5;
            } else if (random() % 4 == 0) {
                rig->dev.trouble.cut_at_reset = 1;
            } else {
                flash_dev_cut(&rig->dev, rig->dev.time.now +
                              random() % (1 * MS));
            }
            break;
        case 3:
            if (wp[zone] < 512) {
                rig->dev.trouble.fail_program = 1;
            }
            break;
        case 4 ... 12:
            submit(rig, FLASH_CMD_READ, zone, random() % 500, 1 + random() % 8);
            break;
        default:
            if (wp[zone] + n <= 512) {
                bool fua = !(random() % 16);

                for (uint32_t i = 0; i < n; i++) {
                    salt[zone][wp[zone] + i] = next;
                }
                put_write(rig, zone, wp[zone], n, next++, fua);
                wp[zone] += n;
                if (protected && random() % 2) {
                    drain(rig);
                    if (rig->dev.powered) {
                        memcpy(flushed, wp, sizeof(wp));
                    }
                }
            }
        }
        if (rig->dev.powered) {
            continue;
        }
        flash_dev_power_on(&rig->dev);
        for (zone = 0; zone < 8; zone++) {
            uint64_t have = rig->dev.zones[zone].accepted;

            assert_true(have <= wp[zone] && have >= flushed[zone]);
            for (uint64_t b = 0; b < have; b++) {
                const uint64_t *p;

                if (flash_dev_bad(&rig->dev, zone, b, 1)) {
                    assert_true(b >= flushed[zone]);
                    continue;
                }
                p = (const uint64_t *)flash_dev_peek(&rig->dev, zone, b, 1);
                assert_non_null(p);
                if (reset[zone] && !p[2] && !p[511]) {
                    continue;
                }
                assert_int_equal(p[0], zone);
                assert_int_equal(p[1], b);
                assert_int_equal(p[2], salt[zone][b]);
                assert_int_equal(p[511], salt[zone][b]);
            }
            reset[zone] = false;
            /* holes are no longer promised anything */
            wp[zone] = have;
            if (have) {
                submit(rig, FLASH_CMD_RESET, zone, 0, 0);
                wp[zone] = flushed[zone] = 0;
            }
        }
        drain(rig);
        assert_int_equal(rig->dev.stats.buffer_used, 0);
    }
    assert_true(rig->dev.stats.cuts > 1000);
    rig_free(rig);
}

static void test_random_cuts(void **state)
{
    (void)state;
    random_cuts(false, 0);
}

/* With capacitors an acknowledged write is as good as a flushed one. */
static void test_random_cuts_protected(void **state)
{
    (void)state;
    protected = true;
    random_cuts(false, 0);
    random_cuts(true, 0);
    protected = false;
}

/* Booked operations. */

static void test_book(void **state)
{
    FlashBook b = { 0 };

    (void)state;
    assert_int_equal(flash_book_take(&b, 0, 10, 0), 10);
    assert_int_equal(b.nr, 0);
    assert_int_equal(flash_book_take(&b, 0, 100, 10), 110);
    assert_int_equal(flash_book_take(&b, 0, 200, 10), 210);
    assert_int_equal(b.nr, 2);
    assert_int_equal(flash_book_take(&b, 0, 50, 50), 100);      /* it fits */
    assert_int_equal(flash_book_take(&b, 0, 105, 10), 120);     /* behind */
    assert_int_equal(flash_book_take(&b, 0, 20, 40), 130);      /* in pieces */
    assert_int_equal(flash_book_take(&b, 0, 150, 60), 220);     /* around one */
    assert_int_equal(b.spans[0].from, 20);
    assert_int_equal(flash_book_take(&b, 140, 140, 5), 145);
    assert_int_equal(b.spans[0].from, 140);     /* the past is forgotten */
    flash_book_free(&b);
}

/* Against an array of instants. */
static void test_random_books(void **state)
{
    static bool busy[40000];
    FlashBook b = { 0 };
    uint64_t now = 0;

    (void)state;
    srandom(2);
    memset(busy, 0, sizeof(busy));
    for (int i = 0; i < 4000; i++) {
        uint64_t from, ns = random() % 12, end, want;

        now += random() % 6;
        from = now + random() % 100;
        end = flash_book_take(&b, now, from, ns);
        for (want = from; ns; want++) {
            ns -= !busy[want];
            busy[want] = true;
        }
        assert_int_equal(end, want);
        assert_true(b.nr < 100);
    }
    flash_book_free(&b);
}

static Rig *booked_rig(uint64_t read_ns)
{
    FlashTuning t = tuning_of(read_ns, 300 * US, 1 * MS);
    Rig *rig;

    t.bus = bus;
    t.booked = true;
    rig = rig_new(shape_of(1, 2, 1, 4096, 1), t);
    fill(rig, 0, 0, 64);
    return rig;
}

/*
 * Two dies, one channel.  A command takes all of its time when it comes: the
 * first one's second read has its transfer at 2 x 50 us + XFER.  Another die's
 * read, that comes at 40 us, is ready at 90 us and finds a gap of 20 us there.
 */
static void test_booked_reads(void **state)
{
    Rig *rig = booked_rig(50 * US);
    uint64_t start = rig->dev.time.now;

    (void)state;
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    submit(rig, FLASH_CMD_READ, 0, 2, 1);       /* the same die */
    flash_time_run(&rig->dev.time, start + 40 * US);
    submit(rig, FLASH_CMD_READ, 0, 1, 1);
    assert_int_equal(run(rig, 1) - start, 50 * US + XFER);
    assert_int_equal(run(rig, 1) - start, 90 * US + XFER);
    assert_int_equal(run(rig, 1) - start, 2 * (50 * US + XFER));
    /* it comes at 95 us: its transfer goes on behind the one booked before */
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    submit(rig, FLASH_CMD_READ, 0, 2, 1);
    flash_time_run(&rig->dev.time, start + 55 * US);
    submit(rig, FLASH_CMD_READ, 0, 1, 1);
    run(rig, 1);
    assert_int_equal(run(rig, 1) - start, 2 * (50 * US + XFER));
    assert_int_equal(run(rig, 1) - start, 105 * US + 2 * XFER);
    rig_free(rig);
}

/* Nothing overtakes what is booked, and a reset does not take it back. */
static void test_booked_programs(void **state)
{
    Rig *rig = booked_rig(50 * US);
    uint64_t start = rig->dev.time.now;

    (void)state;
    rig->dev.tuning.read_first = rig->dev.tuning.suspend = true;
    flash_dev_retune(&rig->dev);
    put_write(rig, 1, 0, 4, 1, false);          /* 2 programs a die */
    submit(rig, FLASH_CMD_READ, 0, 0, 1);
    /* die 0 comes behind the transfers of die 1, where the zone begins */
    assert_int_equal(run(rig, 1) - start, XFER + 2 * (XFER + 300 * US) +
                                          50 * US + XFER);
    start = rig->dev.time.now;
    put_write(rig, 1, 4, 4, 1, false);
    submit(rig, FLASH_CMD_RESET, 1, 0, 0);
    assert_int_equal(run(rig, 1) - start, XFER + 2 * (XFER + 300 * US) +
                                          1 * MS);
    assert_int_equal(rig->dev.stats.buffer_used, 0);
    rig_free(rig);
}

/* Caches of zones, as FEMU has them. */

#define PAGE_NS (1 * US)

/* 4 dies, units of 16 KiB, a zone is a block of each; caches of 4 units. */
static Rig *cache_rig(void)
{
    FlashShape s = shape_of(2, 2, 1, 4096, 4);
    FlashTuning t = tuning_of(20 * US, 12 * MS, 3 * MS);
    Rig *rig;

    t.buffer = 3 * 64 * KIB;
    t.booked = true;
    t.cache_page_ns = PAGE_NS;
    s.zone_blocks = s.zone_cap = 256;
    zone_caches = 3;
    rig = rig_new(s, t);
    zone_caches = 0;
    return rig;
}

/* How long a write of n blocks behind what the zone holds takes. */
static uint64_t cached(Rig *rig, uint32_t zone, uint32_t n)
{
    uint64_t start = rig->dev.time.now;

    put_write(rig, zone, rig->dev.zones[zone].accepted, n, 1, false);
    return run(rig, 1) - start;
}

static void test_cached_writes(void **state)
{
    Rig *rig = cache_rig();
    uint64_t start;

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(cached(rig, 0, 4), 4 * PAGE_NS);
    }
    drain(rig);
    assert_int_equal(rig->dev.stats.programmed_bytes, 0);
    /* the cache is full: this one waits for its programs, on idle dies */
    start = rig->dev.time.now;
    put_write(rig, 0, 16, 4, 1, false);
    /* another zone's write is taken at once meanwhile, and so is a read */
    assert_int_equal(cached(rig, 1, 8), 8 * PAGE_NS);
    assert_int_equal(run(rig, 1) - start, 12 * MS);
    assert_int_equal(rig->dev.stats.waited, 1);
    /* no back-pressure: 2 flushes are booked behind each other */
    start = rig->dev.time.now;
    put_write(rig, 0, 20, 29, 1, false);        /* full twice */
    assert_int_equal(run(rig, 1) - start, 2 * 12 * MS);
    assert_int_equal(rig->dev.stats.programmed_bytes, 3 * 64 * KIB);
    rig_free(rig);
}

/* A zone without a cache takes a free one, or the fullest, and waits for it. */
static void test_cache_changes_hands(void **state)
{
    Rig *rig = cache_rig();

    (void)state;
    assert_int_equal(cached(rig, 0, 4), 4 * PAGE_NS);
    assert_int_equal(cached(rig, 1, 8), 8 * PAGE_NS);
    /* the first cache is free, and not looked at: zone 0 has the second */
    assert_int_equal(cached(rig, 2, 1), 12 * MS);
    assert_int_equal(rig->dev.stats.programmed_bytes, 2 * 16 * KIB);
    assert_int_equal(cached(rig, 0, 4), 4 * PAGE_NS);
    assert_int_equal(cached(rig, 3, 4), 12 * MS);       /* two units again */
    assert_int_equal(rig->dev.stats.programmed_bytes, 4 * 16 * KIB);
    /* units go to the dies in turn, whatever their zone */
    for (uint32_t die = 0; die < 4; die++) {
        assert_int_equal(rig->dev.time.dies[die].ops[FLASH_OP_PROGRAM], 1);
    }
    rig_free(rig);
}

/* With the delay a reset waits for what is booked; without it does not. */
static void test_cached_reset(void **state)
{
    Rig *rig = cache_rig();
    uint64_t start;

    (void)state;
    assert_int_equal(cached(rig, 0, 16), 16 * PAGE_NS);
    start = rig->dev.time.now;
    put_write(rig, 0, 16, 20, 1, false);        /* 4 units, and 4 more */
    submit(rig, FLASH_CMD_RESET, 0, 0, 0);
    assert_int_equal(run(rig, 1) - start, 2 * 12 * MS);
    assert_int_equal(run(rig, 1) - start, 2 * 12 * MS + 3 * MS);
    assert_int_equal(rig->dev.stats.erases, 4);
    /* what the cache held is gone: it has room for 16 blocks */
    assert_int_equal(cached(rig, 0, 16), 16 * PAGE_NS);

    rig->dev.tuning.delay_erase = false;
    start = rig->dev.time.now;
    put_write(rig, 0, 16, 4, 1, false);
    assert_int_equal(timed(rig, FLASH_CMD_RESET, 0), 0);
    assert_int_equal(rig->dev.zones[0].accepted, 0);
    assert_int_equal(run(rig, 1) - start, 12 * MS);
    /* what the cache held is there still: it has room for 12 */
    assert_int_equal(cached(rig, 0, 12), 12 * PAGE_NS);
    assert_int_equal(cached(rig, 0, 1), 12 * MS);
    assert_int_equal(rig->dev.time.dies[0].ops[FLASH_OP_PROGRAM], 4);
    assert_int_equal(rig->dev.stats.erases, 4);
    drain(rig);
    assert_int_equal(rig->dev.stats.buffer_used, 1 * BLOCK);
    rig_free(rig);
}

/* However many writes come at once: all dies program all the time. */
static void test_cached_bandwidth(void **state)
{
    Rig *rig = cache_rig();

    (void)state;
    for (uint32_t n = 0; n < 8 * 64; n++) {
        uint32_t zone = n % 8;

        put_write(rig, zone, rig->dev.zones[zone].accepted, 4, 1, false);
    }
    submit(rig, FLASH_CMD_FLUSH, 0, 0, 0);
    assert_int_equal(run(rig, 8 * 64 + 1), 8 * 64 / 4 * 12 * MS);
    assert_int_equal(rig->dev.stats.programmed_bytes, 8 * 64 * 16 * KIB);
    rig_free(rig);
}

/* Unlike FEMU's a flush, a FUA write, a FUA read and a finish wait. */
static void test_cached_flush(void **state)
{
    Rig *rig = cache_rig();
    FlashCmd *cmd;
    uint64_t start;

    (void)state;
    cached(rig, 0, 2);
    cached(rig, 1, 8);
    assert_int_equal(timed(rig, FLASH_CMD_FLUSH, 0), 12 * MS);
    assert_int_equal(rig->dev.stats.buffer_used, 0);
    put_write(rig, 0, 2, 4, 1, true);
    start = rig->dev.time.now;
    assert_int_equal(run(rig, 1) - start, 12 * MS);
    cached(rig, 0, 4);
    cmd = cmd_new(FLASH_CMD_READ, 0, 6, 4);
    cmd->fua = true;
    start = rig->dev.time.now;
    flash_dev_submit(&rig->dev, cmd);
    assert_int_equal(run(rig, 1) - start, 12 * MS);
    cached(rig, 2, 4);
    assert_true(timed(rig, FLASH_CMD_FINISH, 2) >= 12 * MS);
    assert_int_equal(rig->dev.stats.buffer_used, 0);
    rig_free(rig);
}

static void test_booked_random_cuts(void **state)
{
    (void)state;
    random_cuts(true, 0);
    random_cuts(true, 3);
}

/* The journal. */

typedef struct Twin {
    FlashMedia media;
    FILE *file;                 /* the journal, as far as it was read */
    uint8_t *held;              /* what the buffer took, at its place */
    uint8_t *held_oob;
    unsigned kinds;             /* that came, one bit each */
} Twin;

static void twin_admit(Twin *twin, FlashJournalRecord r)
{
    const FlashShape *s = &twin->media.shape;
    uint64_t lba = r.zone * s->zone_blocks + r.block;

    assert_int_equal(r.bytes, r.nlb * (s->block_size + s->meta_size));
    assert_int_equal(fread(twin->held + lba * s->block_size, s->block_size,
                           r.nlb, twin->file), r.nlb);
    assert_int_equal(fread(twin->held_oob + lba * s->meta_size, s->meta_size,
                           r.nlb, twin->file), r.nlb);
}

/* As journal.h says: the same calls in the same order. */
static void twin_apply(Twin *twin, FlashJournalRecord r)
{
    FlashMedia *m = &twin->media;
    uint64_t lba = r.zone * m->shape.zone_blocks + r.block;
    FlashShape shape;

    twin->kinds |= 1u << r.kind;
    switch (r.kind) {
    case FLASH_JOURNAL_SHAPE:
        assert_int_equal(fread(&shape, sizeof(shape), 1, twin->file), 1);
        assert_memory_equal(&shape, &m->shape, sizeof(shape));
        break;
    case FLASH_JOURNAL_ADMIT:
        twin_admit(twin, r);
        break;
    case FLASH_JOURNAL_BEGIN:
        flash_media_begin(m, r.zone, r.block, r.nlb);
        break;
    case FLASH_JOURNAL_COMMIT:
        flash_media_commit(m, r.zone, r.block, r.nlb,
                           twin->held + lba * m->shape.block_size,
                           twin->held_oob + lba * m->shape.meta_size);
        break;
    case FLASH_JOURNAL_RESET:
        flash_erase_begin(m, r.zone, r.block);
        break;
    case FLASH_JOURNAL_ERASE:
        flash_erase_block(m, r.zone, r.nlb, r.block);
        break;
    case FLASH_JOURNAL_ERASED:
        flash_erase_end(m, r.zone);
        break;
    case FLASH_JOURNAL_ZONE:
        assert_int_equal(fread(&m->zones[r.zone], sizeof(*m->zones), 1,
                               twin->file), 1);
        break;
    case FLASH_JOURNAL_CUT:
        for (uint32_t i = 0; i < m->shape.nr_zones; i++) {
            flash_erase_cut(m, i);
        }
        break;
    default:
        fail_msg("a record of kind %u", r.kind);
    }
}

/* Read on, up to the end; then the two hold the same. */
static void twin_compare(Twin *twin, const FlashMedia *m)
{
    const FlashShape *s = &m->shape;
    FlashJournalRecord r;

    while (fread(&r, sizeof(r), 1, twin->file) == 1) {
        twin_apply(twin, r);
    }
    clearerr(twin->file);
    assert_memory_equal(m->zones, twin->media.zones,
                        s->nr_zones * sizeof(*m->zones));
    assert_memory_equal(m->bad, twin->media.bad,
                        s->nr_zones * s->zone_blocks / 8);
    assert_memory_equal(m->data, twin->media.data,
                        s->nr_zones * s->zone_blocks * s->block_size);
    assert_memory_equal(m->oob, twin->media.oob,
                        s->nr_zones * s->zone_blocks * s->meta_size);
}

static void journal_step(Rig *rig, uint64_t *wp, uint64_t salt)
{
    uint32_t zone = random() % 8, n = 1 + random() % 16;

    switch (random() % 32) {
    case 0:
        submit(rig, FLASH_CMD_RESET, zone, 0, 0);
        wp[zone] = 0;
        break;
    case 1:
        submit(rig, FLASH_CMD_FLUSH, 0, 0, 0);
        break;
    case 2:
        drain(rig);
        submit(rig, FLASH_CMD_FINISH, zone, 0, 0);
        drain(rig);
        wp[zone] = 512;
        break;
    case 3:
        rig->dev.trouble.fail_program = 1;
        break;
    case 4:
        flash_dev_cut(&rig->dev, rig->dev.time.now + random() % (2 * MS));
        break;
    default:
        if (wp[zone] + n <= 512) {
            put_write(rig, zone, wp[zone], n, salt, !(random() % 16));
            wp[zone] += n;
        }
    }
}

/* After each cut the journal leads to the same image, byte by byte. */
static void test_journal(void **state)
{
    char copy[sizeof(path) + 8], file[sizeof(path) + 8];
    FlashShape s = shape_of(2, 2, 1, 8192, 2);
    FlashTuning t = tuning_of(20 * US, 300 * US, 1 * MS);
    uint64_t wp[8] = { 0 };
    FlashJournal journal;
    Twin twin = { 0 };
    Rig *rig;

    (void)state;
    s.zone_blocks = s.zone_cap = 512;
    s.pages_per_block = 8;
    s.meta_size = 16;
    t.buffer = 24 * BLOCK;
    rig = rig_new(s, t);
    snprintf(copy, sizeof(copy), "%s.twin", path);
    snprintf(file, sizeof(file), "%s.j", path);
    unlink(copy);
    assert_null(flash_media_open(&twin.media, copy, &s));
    twin.held = calloc(s.nr_zones * 512, BLOCK);
    twin.held_oob = calloc(s.nr_zones * 512, s.meta_size);
    assert_null(flash_journal_open(&journal, file, &rig->dev.time.now));
    twin.file = fopen(file, "r");
    assert_non_null(twin.file);
    rig->dev.media.journal = &journal;
    srandom(1);
    for (uint64_t step = 1; step < 20000; step++) {
        flash_time_run(&rig->dev.time,
                       rig->dev.time.now + random() % (100 * US));
        if (rig->dev.powered) {
            journal_step(rig, wp, step);
            continue;
        }
        twin_compare(&twin, &rig->dev.media);
        flash_dev_power_on(&rig->dev);
        for (uint32_t zone = 0; zone < s.nr_zones; zone++) {
            wp[zone] = rig->dev.zones[zone].finished ? 512 :
                       rig->dev.zones[zone].accepted;
        }
    }
    assert_true(rig->dev.stats.cuts > 100);
    assert_int_equal(twin.kinds, (1u << FLASH_JOURNAL_NOTE) - 1 -
                                 (1u << FLASH_JOURNAL_SHAPE));
    rig->dev.media.journal = NULL;
    flash_journal_close(&journal);
    fclose(twin.file);
    flash_media_close(&twin.media);
    free(twin.held);
    free(twin.held_oob);
    unlink(copy);
    unlink(file);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_book),
        cmocka_unit_test(test_random_books),
        cmocka_unit_test(test_booked_reads),
        cmocka_unit_test(test_booked_programs),
        cmocka_unit_test(test_cached_writes),
        cmocka_unit_test(test_cache_changes_hands),
        cmocka_unit_test(test_cached_reset),
        cmocka_unit_test(test_cached_bandwidth),
        cmocka_unit_test(test_cached_flush),
        cmocka_unit_test(test_booked_random_cuts),
        cmocka_unit_test(test_one_read),
        cmocka_unit_test(test_two_reads),
        cmocka_unit_test(test_cache_read_overlaps),
        cmocka_unit_test(test_read_leaves_the_bus),
        cmocka_unit_test(test_beyond_the_data),
        cmocka_unit_test(test_read_overtakes),
        cmocka_unit_test(test_suspend_with_cache),
        cmocka_unit_test(test_suspension_takes_time),
        cmocka_unit_test(test_cut_while_it_stops),
        cmocka_unit_test(test_reads_pass_so_often),
        cmocka_unit_test(test_plane_reads),
        cmocka_unit_test(test_plane_reads_and_programs),
        cmocka_unit_test(test_plane_reads_bandwidth),
        cmocka_unit_test(test_channel_switch),
        cmocka_unit_test(test_channel_turns),
        cmocka_unit_test(test_page_types),
        cmocka_unit_test(test_page_types_of_padding),
        cmocka_unit_test(test_page_types_bandwidth),
        cmocka_unit_test(test_page_types_in_words),
        cmocka_unit_test(test_worn_times),
        cmocka_unit_test(test_read_retries),
        cmocka_unit_test(test_longest_times),
        cmocka_unit_test(test_age_of_kept_data),
        cmocka_unit_test(test_worn_bandwidth),
        cmocka_unit_test(test_wear_out),
        cmocka_unit_test(test_write_bandwidth),
        cmocka_unit_test(test_qlc),
        cmocka_unit_test(test_femu),
        cmocka_unit_test(test_cache_program),
        cmocka_unit_test(test_zone_on_few_dies),
        cmocka_unit_test(test_back_pressure),
        cmocka_unit_test(test_partial_units_make_room),
        cmocka_unit_test(test_flush_and_fua),
        cmocka_unit_test(test_fua_read),
        cmocka_unit_test(test_large_unit),
        cmocka_unit_test(test_write_through),
        cmocka_unit_test(test_read_hits_the_buffer),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_reset_all_is_linear),
        cmocka_unit_test(test_reset_queues),
        cmocka_unit_test(test_reset_drops_the_buffer),
        cmocka_unit_test(test_reset_overtakes_writes),
        cmocka_unit_test(test_finish),
        cmocka_unit_test(test_finish_behind_writes),
        cmocka_unit_test(test_dropped_programs),
        cmocka_unit_test(test_dropped_padding),
        cmocka_unit_test(test_buffer_mean),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_open_and_close),
        cmocka_unit_test(test_link),
        cmocka_unit_test(test_long_reads),
        cmocka_unit_test(test_service_time),
        cmocka_unit_test(test_slow_die_and_failed_program),
        cmocka_unit_test(test_cut_in_time),
        cmocka_unit_test(test_cut_with_another_drive),
        cmocka_unit_test(test_cut_at_program),
        cmocka_unit_test(test_cut_at_reset),
        cmocka_unit_test(test_cut_leaves_holes),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_orderly_close),
        cmocka_unit_test(test_shutdown),
        cmocka_unit_test(test_cut_in_a_reset),
        cmocka_unit_test(test_cut_after_a_reset),
        cmocka_unit_test(test_instant_write),
        cmocka_unit_test(test_window_overwrites),
        cmocka_unit_test(test_window_slides),
        cmocka_unit_test(test_window_in_the_buffer),
        cmocka_unit_test(test_window_finish_and_reset),
        cmocka_unit_test(test_window_and_power),
        cmocka_unit_test(test_random_windows),
        cmocka_unit_test(test_image_of_another_shape),
        cmocka_unit_test(test_damaged_image),
        cmocka_unit_test(test_image_in_use),
        cmocka_unit_test(test_random_cuts),
        cmocka_unit_test(test_random_cuts_protected),
        cmocka_unit_test(test_journal),
    };
    int fd = mkstemp(path), bad;

    if (fd < 0) {
        return 1;
    }
    close(fd);
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return bad;
}
