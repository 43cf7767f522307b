// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What padding costs a drive with an FTL, and what collection pads.  Flash is
 * programmed once, so a unit that is issued before it is full takes all of its
 * flash.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "flash/ftl/ftl.h"
#include "flash/ftl/core.h"

#define BLOCK 512u
#define UNIT 4u                 /* blocks of a program unit */
#define CAP 32u                 /* ... of an erase block */
#define US 1000ull
#define MOST_EVENTS 1000000u    /* of one command: more are a live lock */

static char path[] = "/tmp/test-ftl-units-XXXXXX";
static FlashDev dev;
static Ftl *ftl;
static FtlConfig config;
static unsigned done;
static const char *const with_logs[] = { "bast", "fast", "last" };
static uint16_t next_handle;     /* of the writes that follow */
static FlashStatus status;

static void on_done(FlashDev *d, FlashCmd *cmd)
{
    (void)d;
    status = cmd->status;
    done++;
    free(cmd);
}

static void on_lost_power(FlashDev *d)
{
    (void)d;
}

static FtlConfig plain_config(const char *mapping)
{
    return (FtlConfig) {
        .mapping = (char *)mapping, .gc_begin = 75, .gc_urgent = 95,
        .gc_gain = 8, .hot_cold = true, .log_blocks = 3, .log_ways = 1,
        .map_pages = 2,
    };
}

/*
 * So many dies, each with its own erase blocks; config is as it is to be.  What
 * is wrong with it, or NULL.
 */
static char *try_to_open(uint32_t dies, uint32_t blocks, uint64_t buffer)
{
    FlashShape shape = {
        .nr_zones = blocks, .zone_blocks = CAP, .zone_cap = CAP,
        .block_size = BLOCK, .meta_size = FTL_OOB, .channels = dies,
        .dies_per_channel = 1, .planes = 1, .page_size = UNIT * BLOCK,
        .program_pages = 1, .pages_per_block = CAP / UNIT, .zone_dies = 1,
    };

    shape.ext_size = (config.logical * FTL_TRIM / blocks + 8) / 8 * 8;
    dev = (FlashDev) {
        .done = on_done, .lost_power = on_lost_power,
        .tuning = {
            .program_ns = 200 * US, .read_ns = 50 * US, .erase_ns = 2000 * US,
            .delay_read = true, .delay_program = true, .delay_erase = true,
            .buffer = buffer,
        },
    };
    done = 0;
    assert_null(flash_dev_open(&dev, path, &shape));
    return ftl_open(&ftl, &dev, &config);
}

static void open_configured(uint32_t dies, uint32_t blocks, uint32_t spare,
                            uint64_t buffer)
{
    config.logical = ftl_logical((uint64_t)blocks * CAP, spare);
    assert_null(try_to_open(dies, blocks, buffer));
}

static void open_drive(const char *mapping, uint32_t dies, uint32_t blocks,
                       uint32_t spare, uint64_t buffer)
{
    config = plain_config(mapping);
    open_configured(dies, blocks, spare, buffer);
}

static void close_drive(void)
{
    flash_dev_close(&dev);
    ftl_free(ftl);
    unlink(path);
}

static void run(FlashCmdKind kind, uint64_t lba, uint32_t value)
{
    FlashCmd *cmd = calloc(1, sizeof(*cmd));
    unsigned before = done;
    uint64_t when;

    cmd->kind = kind;
    cmd->block = lba;
    if (kind == FLASH_CMD_WRITE) {
        cmd->nlb = 1;
        cmd->data = calloc(1, BLOCK);
        memcpy(cmd->data, &value, sizeof(value));
        cmd->handle = next_handle;
    }
    flash_dev_submit(&dev, cmd);
    for (uint32_t events = 0; done == before; events++) {
        assert_true(events < MOST_EVENTS);
        assert_true(flash_time_next(&dev.time, &when));
        flash_time_run(&dev.time, when);
    }
}

static uint32_t value_of(uint64_t lba)
{
    uint32_t data[BLOCK / 4];

    assert_false(ftl_bad(ftl, lba, 1));
    ftl_copy(ftl, lba, 1, (uint8_t *)data);
    return data[0];
}

/* Each flushed write takes a unit, in the next die's turn. */
static void test_padding_takes_flash(void **state)
{
    (void)state;
    open_drive("page", 2, 40, 30, 64 * BLOCK);
    for (uint32_t i = 0; i < 16; i++) {
        run(FLASH_CMD_WRITE, i, i + 1);
        run(FLASH_CMD_FLUSH, 0, 0);
    }
    assert_int_equal(dev.stats.programs_padded, 16);
    assert_int_equal(dev.stats.programmed_bytes, 16 * UNIT * BLOCK);
    assert_int_equal(dev.time.dies[0].ops[FLASH_OP_PROGRAM], 8);
    assert_int_equal(dev.time.dies[1].ops[FLASH_OP_PROGRAM], 8);
    assert_int_equal(dev.stats.buffer_used, 0);
    assert_int_equal(ftl->stats.free_blocks, 38);       /* two are full */
    for (uint32_t i = 0; i < 16; i++) {
        assert_int_equal(value_of(i), i + 1);
    }
    for (uint32_t i = 0; i < 2 * config.logical; i++) {
        run(FLASH_CMD_WRITE, i % 64, i);
        run(FLASH_CMD_FLUSH, 0, 0);
    }
    assert_true(dev.stats.erases >=
                (2 * config.logical * UNIT / CAP) - 40);
    for (uint32_t i = 2 * config.logical - 64; i < 2 * config.logical; i++) {
        assert_int_equal(value_of(i % 64), i);
    }
    close_drive();
}

/* A cut in a later program leaves alone what an earlier one has stored. */
static void test_cut_in_the_next_unit(void **state)
{
    (void)state;
    open_drive("page", 1, 40, 30, 64 * BLOCK);
    run(FLASH_CMD_WRITE, 1, 11);
    run(FLASH_CMD_FLUSH, 0, 0);
    run(FLASH_CMD_WRITE, 2, 22);
    dev.trouble.cut_at_program = 1;
    run(FLASH_CMD_FLUSH, 0, 0);
    assert_int_equal(status, FLASH_NO_POWER);
    flash_dev_power_on(&dev);
    assert_true(ftl_load(ftl));
    assert_int_equal(value_of(1), 11);
    assert_int_equal(value_of(2), 0);
    /* the torn unit is not written again, nor is the first one's rest */
    assert_int_equal(ftl_used(ftl, ftl->map[1] / CAP), 2 * UNIT);
    run(FLASH_CMD_WRITE, 2, 33);
    run(FLASH_CMD_FLUSH, 0, 0);
    assert_int_equal(ftl->map[2] % CAP, 2 * UNIT);
    close_drive();
}

/* Collection pads neither what the host has half written, nor its own unit. */
static void test_collection_does_not_pad(void **state)
{
    uint64_t random = 1, written = 0;

    (void)state;
    open_drive("page", 4, 160, 30, 64 * BLOCK);
    for (uint64_t i = 0; i < 12 * config.logical; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        run(FLASH_CMD_WRITE, (random >> 33) % config.logical, i);
        written++;
    }
    assert_true(ftl->stats.victims > 1000);
    assert_int_equal(dev.stats.programs_padded, 0);
    assert_true(dev.stats.programmed_bytes <=
                (written + ftl->stats.moved) * BLOCK);
    close_drive();
}

/* A flush programs what the host wrote: not what the drive moves. */
static void test_flush_leaves_moved_blocks(void **state)
{
    uint8_t data[BLOCK] = { 0 };
    uint32_t block;

    (void)state;
    open_drive("page", 1, 40, 30, 64 * BLOCK);
    run(FLASH_CMD_WRITE, 1, 11);
    block = ftl_take(ftl, 0, 0);
    ftl_put_own(ftl, block, 5, data);
    assert_int_equal(dev.stats.buffer_used, BLOCK);     /* that of the host */
    run(FLASH_CMD_FLUSH, 0, 0);
    assert_int_equal(ftl_used(ftl, block), 1);
    assert_int_equal(dev.stats.programs_padded, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dev.stats.buffer_used, 0);
        ftl_put_own(ftl, block, 6 + i, data);
    }
    assert_int_equal(dev.stats.buffer_used, UNIT * BLOCK);
    run(FLASH_CMD_FLUSH, 0, 0);
    assert_int_equal(dev.stats.programs_full, 1);
    close_drive();
}

/* With log blocks: padding ends a log early, and nothing else. */
static void test_padding_with_logs(void **state)
{
    (void)state;
    for (int n = 0; n < 3; n++) {
        uint32_t *last;

        open_drive(with_logs[n], 2, 40, 50, 64 * BLOCK);
        last = calloc(config.logical, sizeof(*last));
        for (uint32_t i = 1; i < 4 * config.logical; i++) {
            uint64_t lba = i * 7ull % config.logical;

            run(FLASH_CMD_WRITE, lba, i);
            last[lba] = i;
            if (i % 3 == 0) {
                run(FLASH_CMD_FLUSH, 0, 0);
            }
        }
        for (uint64_t lba = 0; lba < config.logical; lba++) {
            assert_int_equal(value_of(lba), last[lba]);
        }
        free(last);
        close_drive();
    }
}

static void write_pieces(uint32_t from, uint32_t to, uint32_t first,
                         uint32_t end, uint32_t value)
{
    for (uint32_t i = first; i < end; i++) {
        for (uint32_t piece = from; piece < to; piece++) {
            run(FLASH_CMD_WRITE, piece * CAP + i, value + i);
        }
    }
}

/*
 * After a cut all logs count as such for any block.  Logs for writes in order
 * come only when these are no more than there may be: or blocks run out.
 */
static void test_logs_after_a_cut(void **state)
{
    static const char *const mappings[] = { "fast", "last" };

    (void)state;
    for (int n = 0; n < 2; n++) {
        config = plain_config(mappings[n]);
        config.log_blocks = 20;
        config.seq_logs = 10;
        open_configured(2, 48, 110, 64 * BLOCK);
        write_pieces(0, 22, 0, CAP, 1000);      /* data blocks */
        write_pieces(0, 10, 0, CAP / 2, 2000);  /* ten logs, half full */
        write_pieces(10, 20, 1, CAP, 3000);     /* ten for any block */
        run(FLASH_CMD_FLUSH, 0, 0);
        flash_dev_cut(&dev, dev.time.now);
        flash_time_run(&dev.time, dev.time.now);
        flash_dev_power_on(&dev);
        assert_true(ftl_load(ftl));
        write_pieces(10, 20, 0, CAP / 2, 4000); /* and ten more */
        for (uint32_t piece = 0; piece < 22; piece++) {
            assert_int_equal(value_of(piece * CAP + 1),
                             piece < 10 ? 2001 : piece < 20 ? 4001 : 1001);
            assert_int_equal(value_of(piece * CAP + CAP - 1),
                             piece < 10 || piece >= 20 ? 1000 + CAP - 1 :
                                                         3000 + CAP - 1);
        }
        close_drive();
    }
}

/* Streams in order end as switches, if each has its log. */
static void test_a_log_for_each_stream(void **state)
{
    (void)state;
    for (uint32_t logs = 1; logs <= 8; logs += 7) {
        config = plain_config("fast");
        config.log_blocks = 10;
        config.seq_logs = logs;
        open_configured(2, 48, 110, 64 * BLOCK);
        write_pieces(0, 22, 0, CAP, 1000);
        write_pieces(0, 8, 0, CAP, 2000);
        write_pieces(8, 16, 0, CAP, 2000);
        if (logs == 8) {
            assert_int_equal(ftl->stats.moved, 0);
            assert_int_equal(ftl->stats.merges_full, 0);
        } else {
            assert_true(ftl->stats.moved > CAP);
        }
        close_drive();
    }
}

/* What is written all the time has blocks of its own: GC finds them stale. */
static void test_hot_writes_apart(void **state)
{
    uint64_t moved[2];

    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        config = plain_config("page");
        config.hot_writes = apart;
        open_configured(1, 60, 30, 64 * BLOCK);
        write_pieces(0, 40, 0, CAP, 1000);
        for (uint32_t i = 0; i < 40000; i++) {
            /* nine of ten go to the first 64 blocks, none of them in a row */
            uint32_t lba = i % 10 ? i * 37 % 64 : 64 + i / 10 * 17 % 1200;

            run(FLASH_CMD_WRITE, lba, i);
        }
        moved[apart] = ftl->stats.moved;
        assert_true(apart == (ftl->stats.hot > 30000));
        close_drive();
    }
    assert_true(moved[1] * 3 < moved[0] * 2);
}

static void run_by(uint32_t handle, uint64_t lba, uint32_t value)
{
    next_handle = handle;
    run(FLASH_CMD_WRITE, lba, value);
    next_handle = 0;
}

/* The logical block's erase block, and who wrote it, as stored beside it. */
static uint32_t lies_in(uint64_t lba, FtlOob *oob)
{
    uint8_t data[BLOCK];
    uint64_t place = ftl->map[lba];

    assert_int_not_equal(place, FTL_NOWHERE);
    flash_dev_copy(&dev, place / CAP, place % CAP, 1, data, (uint8_t *)oob);
    return place / CAP;
}

/* Two handles in turn, then a third of each: collection moves the rest. */
static void test_handles_apart(void **state)
{
    FtlOob oob;

    (void)state;
    for (uint32_t apart = 0; apart <= 2; apart++) {
        bool mixed = false;

        config = plain_config("page");
        config.handles = 2;
        config.apart = apart;
        open_configured(1, 40, 45, 64 * BLOCK);
        for (uint64_t lba = 0; lba < config.logical; lba++) {
            run_by(lba % 2, lba, lba);
        }
        for (uint64_t lba = 0; lba < config.logical; lba++) {
            assert_int_equal(ftl_handle_of(ftl->blocks[lies_in(lba, &oob)].role),
                             lba % 2);
            assert_int_equal(oob.lba, lba | lba % 2 << FTL_HANDLE |
                                      (FTL_ROLES + lba % 2) << FTL_ROLE);
        }
        for (uint32_t i = 0; i < 4 * config.logical; i++) {
            uint64_t lba = i * 37ull % (config.logical / 3) * 3;

            run_by(lba % 2, lba, i);
        }
        for (uint64_t lba = 0; lba < config.logical; lba++) {
            uint8_t role = ftl->blocks[lies_in(lba, &oob)].role;

            mixed |= !role;
            assert_int_equal(oob.lba >> FTL_HANDLE & 0xff, lba % 2);
            assert_true(role ? ftl_handle_of(role) == lba % 2 :
                               lba % 2 < 2 - apart);
        }
        assert_true(mixed == (apart < 2));
        assert_true(ftl_handle(ftl, 0)->moved && ftl_handle(ftl, 1)->moved);
        assert_int_equal(ftl_handle(ftl, 0)->moved + ftl_handle(ftl, 1)->moved,
                         ftl->stats.moved);
        close_drive();
    }
}

/* A unit that is renewed takes nothing more; its rest comes back by GC. */
static void test_renewed_unit(void **state)
{
    FtlOob oob;

    (void)state;
    config = plain_config("page");
    config.handles = 2;
    open_configured(1, 40, 60, 64 * BLOCK);
    for (uint32_t i = 0; i < 8 * config.logical; i++) {
        uint64_t lba = i * 7ull % config.logical;
        uint32_t before;

        run_by(1, lba, i);
        before = lies_in(lba, &oob);
        assert_int_equal(ftl_handle_left(ftl, 0), CAP);
        if (i % 5 == 0) {
            ftl_handle_renew(ftl, 1);
            assert_int_equal(ftl_handle_left(ftl, 1), CAP);
            run_by(1, lba, i);
            assert_int_not_equal(lies_in(lba, &oob), before);
        }
    }
    close_drive();
}

static void restart(void)
{
    run(FLASH_CMD_FLUSH, 0, 0);
    flash_dev_cut(&dev, dev.time.now);
    flash_time_run(&dev.time, dev.time.now);
    flash_dev_power_on(&dev);
    assert_true(ftl_load(ftl));
}

/*
 * After a restart a handle goes on in the unit that it wrote last: not in one
 * that an update has closed, wherever that lies.
 */
static void test_unit_after_a_restart(void **state)
{
    FtlOob oob;

    (void)state;
    for (uint32_t apart = 0; apart <= 2; apart += 2) {
        config = plain_config("page");
        config.handles = 2;
        config.apart = apart;
        open_configured(1, 40, 60, 64 * BLOCK);
        for (uint32_t i = 0; i < 100; i++) {
            uint32_t handle = i % 2, open;

            ftl_handle_renew(ftl, handle);
            for (uint32_t n = 0; n <= i % UNIT; n++) {
                run_by(handle, i % 7 * UNIT + n, i);
            }
            open = lies_in(i % 7 * UNIT, &oob);
            restart();
            assert_int_equal(ftl_handle_left(ftl, handle), CAP - UNIT);
            run_by(handle, 200 + handle, i);
            assert_int_equal(lies_in(200 + handle, &oob), open);
        }
        close_drive();
    }
}

/*
 * With no more to spare than it asks for, a drive whose collection keeps handles
 * apart goes on for ever: a victim gains a unit at least, and no job waits for a
 * unit that nothing will fill.
 */
static void test_least_spare(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 32; seed++) {
        uint32_t handles = 1 + seed % 4, blocks = 20 + seed % 3 * 8, open;
        uint64_t random = seed;
        char *why;

        config = plain_config("page");
        config.handles = config.apart = handles;
        open = 1 + 2 * handles;
        config.logical = (blocks - 3 - open) * (CAP - UNIT + 1) + 1;
        why = try_to_open(1, blocks, 64 * BLOCK);
        assert_non_null(why);
        free(why);
        flash_dev_close(&dev);
        unlink(path);
        config.logical--;
        assert_null(try_to_open(1, blocks, 64 * BLOCK));
        for (uint32_t i = 0; i < 8 * config.logical; i++) {
            uint64_t lba;

            random = random * 6364136223846793005ull + 1442695040888963407ull;
            lba = i < config.logical ? i : (random >> 33) % config.logical;
            run_by((random >> 20) % handles, lba, i);
        }
        close_drive();
    }
}

/* Without handles the flash holds what it held before there were any. */
static void test_without_handles(void **state)
{
    FtlOob oob;

    (void)state;
    open_drive("page", 2, 40, 30, 64 * BLOCK);
    for (uint32_t i = 0; i < 4 * config.logical; i++) {
        run(FLASH_CMD_WRITE, i * 7ull % config.logical, i);
    }
    for (uint64_t lba = 0; lba < config.logical; lba++) {
        lies_in(lba, &oob);
        assert_int_equal(oob.lba, lba);
    }
    close_drive();
}

/* The age of the oldest data that lies in a block which is not written on. */
static uint64_t oldest(void)
{
    uint64_t age = 0;

    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        uint64_t born = dev.zones[i].born;

        if (ftl->blocks[i].state == FTL_CLOSED && ftl->blocks[i].valid &&
            dev.time.now - born > age) {
            age = dev.time.now - born;
        }
    }
    return age;
}

/* An idle drive moves its data, all of it, when it gets old; and no other. */
static void test_old_data_is_moved(void **state)
{
    static const char *const mappings[] = { "page", "dftl" };
    const uint64_t limit = 1000000 * US;

    (void)state;
    for (int n = 0; n < 4; n++) {
        uint64_t moved;

        config = plain_config(mappings[n / 2]);
        config.refresh_ns = n % 2 * limit;
        open_configured(2, 40, 60, 64 * BLOCK);
        for (uint32_t i = 0; i < config.logical; i++) {
            run(FLASH_CMD_WRITE, i, i);
        }
        run(FLASH_CMD_FLUSH, 0, 0);
        flash_time_run(&dev.time, 990000 * US);
        assert_int_equal(ftl_stats(ftl)->refreshed, 0);
        moved = ftl_stats(ftl)->moved;
        for (int second = 2; second < 6; second++) {
            /* a look, and the time that it takes to move it */
            flash_time_run(&dev.time, second * limit);
            assert_true(n % 2 ? oldest() < limit + limit / 64 + limit / 5 :
                                oldest() > (second - 1) * limit);
        }
        moved = ftl_stats(ftl)->moved - moved;
        assert_true(n % 2 ? moved > 3 * config.logical &&
                            moved < 6 * config.logical : !moved);
        for (uint32_t i = 0; i < config.logical; i++) {
            assert_int_equal(value_of(i), i);
        }
        close_drive();
    }
}

/*
 * With no more to spare than it asks for, and writes that wait for collection
 * all the time: old data is moved, and so is what collection gains nothing by.
 */
static void test_old_data_is_moved_under_load(void **state)
{
    static const char *const mappings[] = { "page", "dftl" };
    const uint64_t limit = 1000000 * US;

    (void)state;
    for (int n = 0; n < 2; n++) {
        const uint32_t blocks = 40, open = n ? 3 : 2;
        char *why;

        config = plain_config(mappings[n]);
        config.refresh_ns = limit;
        config.logical = (blocks - 3 - open) * CAP + 1;
        config.logical -= n ? (blocks - 3 - open) * CAP / 128 + 1 : 0;
        why = try_to_open(1, blocks, 64 * BLOCK);
        assert_non_null(why);
        free(why);
        flash_dev_close(&dev);
        unlink(path);
        config.logical--;
        assert_null(try_to_open(1, blocks, 64 * BLOCK));
        for (uint32_t i = 0; i < config.logical; i++) {
            run(FLASH_CMD_WRITE, i, i);
        }
        for (uint32_t i = 0; dev.time.now < 6 * limit; i++) {
            run(FLASH_CMD_WRITE, i * 7 % 64, i);
            assert_true(oldest() < limit + limit / 64 + limit / 2);
        }
        assert_true(ftl_stats(ftl)->urgent > 100);
        assert_true(ftl_stats(ftl)->refreshed > 100);
        close_drive();
    }
}

/* A block that was full before, and is to be programmed again, holds no old data. */
static void test_data_that_is_not_programmed_is_not_old(void **state)
{
    (void)state;
    config = plain_config("page");
    config.refresh_ns = 1000000 * US;
    open_configured(1, 40, 60, 64 * BLOCK);
    write_pieces(0, 24, 0, CAP, 1000);
    write_pieces(0, 24, 0, CAP, 2000);          /* all blocks were in use */
    run(FLASH_CMD_FLUSH, 0, 0);
    flash_time_run(&dev.time, dev.time.now + 900000 * US);
    write_pieces(0, 24, 0, CAP, 3000);
    run(FLASH_CMD_FLUSH, 0, 0);
    assert_int_equal(ftl_stats(ftl)->refreshed, 0);
    close_drive();
}

/* With log blocks nothing looks for old data. */
static void test_no_refresh_by_others(void **state)
{
    (void)state;
    for (int n = 0; n < 3; n++) {
        char *why;

        config = plain_config(with_logs[n]);
        config.refresh_ns = 1000000 * US;
        config.logical = ftl_logical(40 * CAP, 60);
        why = try_to_open(1, 40, 64 * BLOCK);
        assert_non_null(why);
        assert_non_null(strstr(why, "refresh_ns"));
        free(why);
        flash_dev_close(&dev);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padding_takes_flash),
        cmocka_unit_test(test_cut_in_the_next_unit),
        cmocka_unit_test(test_collection_does_not_pad),
        cmocka_unit_test(test_flush_leaves_moved_blocks),
        cmocka_unit_test(test_padding_with_logs),
        cmocka_unit_test(test_logs_after_a_cut),
        cmocka_unit_test(test_a_log_for_each_stream),
        cmocka_unit_test(test_hot_writes_apart),
        cmocka_unit_test(test_handles_apart),
        cmocka_unit_test(test_renewed_unit),
        cmocka_unit_test(test_unit_after_a_restart),
        cmocka_unit_test(test_least_spare),
        cmocka_unit_test(test_without_handles),
        cmocka_unit_test(test_old_data_is_moved),
        cmocka_unit_test(test_old_data_is_moved_under_load),
        cmocka_unit_test(test_data_that_is_not_programmed_is_not_old),
        cmocka_unit_test(test_no_refresh_by_others),
    };
    int failed;

    close(mkstemp(path));
    unlink(path);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
