// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Images that no drive of this mapping leaves behind.  Each is refused when
 * the drive starts; an image that is accepted takes writes.
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
#define CAP 8u                  /* blocks of an erase block */
#define BLOCKS 24u
#define LOGICAL 128u            /* 16 pieces */

static char path[] = "/tmp/test-ftl-image-XXXXXX";
static FlashMedia media;
static uint32_t handles, apart;     /* of the drive */

static FlashShape shape_of(void)
{
    return (FlashShape) {
        .nr_zones = BLOCKS, .zone_blocks = CAP, .zone_cap = CAP,
        .block_size = BLOCK, .meta_size = FTL_OOB, .ext_size = 48,
        .channels = 1, .dies_per_channel = 1, .planes = 1, .page_size = BLOCK,
        .program_pages = 1, .pages_per_block = CAP, .zone_dies = 1,
    };
}

static void image_begin(void)
{
    FlashShape shape = shape_of();

    unlink(path);
    assert_null(flash_media_open(&media, path, &shape));
}

/* The next block of an erase block holds that version of a logical block. */
static void put(uint32_t zone, uint64_t lba, uint64_t version)
{
    FtlOob *oob = (FtlOob *)flash_media_oob(&media, zone * CAP +
                                                    media.zones[zone].wp++);

    oob->lba = lba;
    oob->version = version;
}

static void on_done(FlashDev *dev, FlashCmd *cmd)
{
    *(unsigned *)dev->owner += 1;
    free(cmd);
}

static void on_lost_power(FlashDev *dev)
{
    (void)dev;
}

/* Does a drive of that mapping start?  One that does is written all over. */
static bool starts(const char *mapping)
{
    FtlConfig config = {
        .mapping = (char *)mapping, .logical = LOGICAL, .gc_begin = 75,
        .gc_urgent = 95, .gc_gain = 8, .log_blocks = 3, .log_ways = 1,
        .map_pages = 2, .hot_cold = true, .handles = handles, .apart = apart,
    };
    FlashShape shape = shape_of();
    unsigned done = 0;
    FlashDev dev = {
        .done = on_done, .lost_power = on_lost_power, .owner = &done,
    };
    Ftl *ftl = NULL;
    uint64_t when;
    char *why;

    flash_media_close(&media);
    assert_null(flash_dev_open(&dev, path, &shape));
    why = ftl_open(&ftl, &dev, &config);
    for (uint64_t i = 0; !why && i < 4 * LOGICAL; i++) {
        FlashCmd *cmd = calloc(1, sizeof(*cmd));

        cmd->kind = FLASH_CMD_WRITE;
        cmd->block = i * 37 % LOGICAL;
        cmd->nlb = 1;
        cmd->data = calloc(1, BLOCK);
        flash_dev_submit(&dev, cmd);
        while (done <= i && flash_time_next(&dev.time, &when)) {
            flash_time_run(&dev.time, when);
        }
        assert_int_equal(done, i + 1);
    }
    flash_dev_close(&dev);
    ftl_free(ftl);
    free(why);
    return !why;
}

static const char *const mappings[] = { "page", "dftl", "bast", "fast", "last" };

static void test_sound(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(mappings) / sizeof(mappings[0]); n++) {
        uint64_t version = 1;

        image_begin();
        for (uint64_t i = 0; i < LOGICAL; i++) {
            put(i / CAP, i, version++);
        }
        put(20, 3, version++);
        put(20, 3, version++);
        put(21, CAP, FTL_VERSIONS);
        assert_true(starts(mappings[n]));
    }
}

/* Writes would wrap the versions, and lose to what is old. */
static void test_versions(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(mappings) / sizeof(mappings[0]); n++) {
        image_begin();
        put(3, 5, UINT64_MAX - 1);
        assert_false(starts(mappings[n]));
        image_begin();
        ((uint64_t *)media.ext)[7] = UINT64_MAX;
        assert_false(starts(mappings[n]));
        image_begin();
        put(3, 5 | 7ull << FTL_ROLE, 1);
        assert_false(starts(mappings[n]));
    }
}

/* A merge frees one log of a piece, and whatever else is in it is lost. */
static void test_logs_of_bast(void **state)
{
    (void)state;
    image_begin();
    put(4, 1, 1);
    put(5, 2, 2);
    assert_false(starts("bast"));
    image_begin();
    put(4, 1, 1);
    put(4, CAP + 1, 2);
    assert_false(starts("bast"));
}

/* So many logs that a piece cannot get a data block. */
static void test_too_many_logs(void **state)
{
    (void)state;
    for (size_t n = 2; n < sizeof(mappings) / sizeof(mappings[0]); n++) {
        image_begin();
        for (uint32_t i = 0; i < BLOCKS - 2; i++) {
            put(i, (i + 1) % (LOGICAL / CAP) * CAP + 1 + i / 16, i + 1);
        }
        assert_false(starts(mappings[n]));
    }
}

static uint64_t by(uint64_t handle, uint64_t role, uint64_t lba)
{
    return lba | handle << FTL_HANDLE | role << FTL_ROLE;
}

/* Of two handles the second one's data is never mixed with the other's. */
static void test_handles(void **state)
{
    const struct {
        uint64_t lba;
        bool sound;
    } images[] = {
        { by(0, 0, 5), true }, { by(0, ftl_role_of(0), 5), true },
        { by(1, ftl_role_of(1), 5), true }, { by(1, 0, 5), false },
        { by(1, ftl_role_of(0), 5), false }, { by(0, 1, 5), false },
        { by(2, 0, 5), false }, { by(2, ftl_role_of(2), 5), false },
        { FTL_FILLER, false },
    };

    (void)state;
    handles = 2;
    apart = 1;
    for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++) {
        image_begin();
        put(3, images[i].lba, 1);
        assert_true(starts("page") == images[i].sound);
    }
    handles = apart = 0;
    image_begin();
    put(3, by(0, ftl_role_of(0), 5), 1);
    assert_false(starts("page"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_logs_of_bast),
        cmocka_unit_test(test_too_many_logs),
        cmocka_unit_test(test_handles),
    };
    int failed;

    close(mkstemp(path));
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
