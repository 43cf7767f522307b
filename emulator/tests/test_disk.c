// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The model of a disk against closed forms, without a guest: the head, its
 * queue, and a zoned drive on it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "flash/model/disk.h"
#include "flash/model/model.h"

#define KIB 1024ull
#define BLOCK 4096u
#define US 1000ull
#define MS (1000 * US)

#define TURN (8 * MS)
#define SKEW (1 * MS)
#define TRACK 100ull            /* blocks; each takes 80 us */
#define ONE (TURN / TRACK)
#define BLOCKS (16 * TRACK * TRACK)     /* 1600 tracks */

static const FlashDiskTuning tuning = {
    .turn_ns = TURN, .skew_ns = SKEW, .seek_track_ns = 800 * US,
    .seek_sqrt_ns = 9 * MS, .seek_linear_ns = 5 * MS,
    .track = TRACK * BLOCK,
};

static void assert_within(uint64_t have, uint64_t want, uint64_t most)
{
    if (have > want + most || want > have + most) {
        fail_msg("%llu is not within %llu of %llu", (unsigned long long)have,
                 (unsigned long long)most, (unsigned long long)want);
    }
}

/* The head. */

static void test_seeks(void **state)
{
    FlashDisk *disk = flash_disk_new(&tuning, BLOCKS, BLOCK);
    uint64_t sum = 0, last = 0;

    (void)state;
    assert_int_equal(flash_disk_track(disk, BLOCKS - 1), 1599);
    assert_int_equal(flash_disk_seek_ns(disk, 7, 7), 0);
    assert_int_equal(flash_disk_seek_ns(disk, 7, 8), 800 * US);
    assert_int_equal(flash_disk_seek_ns(disk, 8, 7), 800 * US);
    assert_int_equal(flash_disk_seek_ns(disk, 0, 1599), 14800 * US);
    /* a quarter of the stroke: half of what grows as the root */
    assert_within(flash_disk_seek_ns(disk, 0, 400),
                  800 * US + 4500 * US + 1250 * US, 5 * US);
    for (uint64_t i = 0; i < 1600; i++) {
        uint64_t ns = flash_disk_seek_ns(disk, 0, i);

        assert_true(ns >= last);
        last = ns;
        sum += 2 * (1600 - i) * ns;     /* as many pairs are so far apart */
    }
    /* the mean of |x - y| is 1/3, that of its root 8/15 */
    assert_within(sum / (1600 * 1600), 800 * US + 4800 * US + 5 * MS / 3,
                  20 * US);
    free(disk);
}

/* Where the block is in a turn, as a disk of one density has it. */
static uint64_t phase(uint64_t block)
{
    return (block / TRACK * SKEW + block % TRACK * ONE) % TURN;
}

static uint64_t expected(const FlashDisk *disk, uint64_t now, uint64_t track,
                         uint64_t block, uint32_t nlb)
{
    uint64_t there = now + flash_disk_seek_ns(disk, track, block / TRACK);

    while (there % TURN != phase(block)) {
        there += 10 * US - there % (10 * US);   /* all phases are such */
    }
    return there + nlb * ONE +
           ((block + nlb - 1) / TRACK - block / TRACK) * SKEW;
}

static void test_seek_turn_and_transfer(void **state)
{
    static const struct {
        uint64_t block;
        uint32_t nlb;
    } accesses[] = {
        { 0, 1 }, { 50, 1 }, { 50, 1 }, { 150, 1 }, { 99, 1 }, { 12345, 1 },
        { BLOCKS - 1, 1 }, { 3, 200 }, { 99 * TRACK, 1000 }, { 0, 1 },
    };
    FlashDisk *disk = flash_disk_new(&tuning, BLOCKS, BLOCK);
    uint64_t now = 0, track = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++) {
        uint64_t block = accesses[i].block;
        uint32_t nlb = accesses[i].nlb;
        uint64_t want = expected(disk, now, track, block, nlb);

        assert_int_equal(flash_disk_begin(disk, now, i % 2, block),
                         expected(disk, now, track, block, 1) - ONE);
        assert_int_equal(flash_disk_access(disk, now, i % 2, block, nlb), want);
        now = want + 137 * US;
        track = (block + nlb - 1) / TRACK;
    }
    free(disk);
}

/* Block by block or at once: a turn a track, and the skew between two. */
static void test_in_order(void **state)
{
    FlashDisk *disk = flash_disk_new(&tuning, BLOCKS, BLOCK);
    uint64_t start = flash_disk_access(disk, 0, false, 0, 1), now = start;

    (void)state;
    for (uint64_t block = 1; block < 10 * TRACK; block++) {
        now = flash_disk_access(disk, now, false, block, 1);
    }
    assert_int_equal(now - start, 10 * TURN + 9 * SKEW - ONE);
    start = now;
    now = flash_disk_access(disk, now, true, 10 * TRACK, 10 * TRACK);
    assert_int_equal(now - start, 10 * (TURN + SKEW));
    free(disk);
}

static void test_outer_tracks_hold_more(void **state)
{
    FlashDiskTuning t = tuning;
    uint64_t start, sum = 0, first = 0;
    FlashDisk *disk;

    (void)state;
    t.inner_track = 64 * KIB;
    disk = flash_disk_new(&t, 8 * BLOCKS, BLOCK);
    for (uint32_t i = 0; i < FLASH_DISK_BANDS; i++) {
        uint64_t per_track = 100 - 84 * i / 15;

        sum += per_track;
        first += i ? 0 : disk->band_tracks * per_track;
        assert_int_equal(disk->per_track[i], per_track);
    }
    assert_int_equal(disk->per_track[15], 16);
    assert_true(disk->band_tracks * sum >= 8 * BLOCKS);
    assert_true((disk->band_tracks - 1) * sum < 8 * BLOCKS);
    assert_int_equal(flash_disk_track(disk, first), disk->band_tracks);
    assert_true(flash_disk_track(disk, 8 * BLOCKS - 1) <
                16 * disk->band_tracks);
    /* the same for a track, of any number of blocks, and from band to band */
    start = flash_disk_access(disk, 0, false, first - 1, 1);
    start = flash_disk_access(disk, start, false, first, 95);
    assert_int_equal(flash_disk_access(disk, start, false, first + 95, 96) -
                     start, TURN + TURN / 95 + 2 * SKEW);
    free(disk);
}

/* Read-ahead: what the head has read meanwhile costs nothing. */
static void test_reads_ahead(void **state)
{
    FlashDiskTuning t = tuning;
    FlashDisk *disk;
    uint64_t at, end;

    (void)state;
    t.read_ahead = 20 * BLOCK;
    disk = flash_disk_new(&t, BLOCKS, BLOCK);
    end = flash_disk_access(disk, 0, true, 0, 10);
    assert_int_equal(end, 10 * ONE);
    /* three of the next four have passed since */
    at = end + 3 * ONE;
    assert_int_equal(flash_disk_begin(disk, at, true, 10), at);
    assert_int_equal(flash_disk_access(disk, at, true, 10, 1), at);
    assert_int_equal(flash_disk_access(disk, at, true, 11, 3), end + 4 * ONE);
    /* all that it reads on are there: up to 14 + 20 */
    at = end + 50 * ONE;
    assert_int_equal(flash_disk_access(disk, at, true, 14, 19), at);
    assert_int_equal(flash_disk_begin(disk, at, true, 33), at);
    assert_int_equal(flash_disk_access(disk, at, true, 33, 1), at);
    /* it goes on from 34, which passes again after a turn */
    assert_int_equal(flash_disk_begin(disk, at, true, 34), TURN + 34 * ONE);
    assert_int_equal(flash_disk_access(disk, at, true, 34, 2),
                     TURN + 36 * ONE);
    /* more than it would read on is read as it passes */
    assert_int_equal(flash_disk_access(disk, TURN + 40 * ONE, true, 36, 164),
                     2 * TURN + SKEW + TRACK * ONE);
    /* a write ends it */
    at = 3 * TURN;
    end = flash_disk_access(disk, at, false, 0, 1);
    assert_int_equal(flash_disk_begin(disk, end, true, 200),
                     expected(disk, end, 0, 200, 1) - ONE);
    /* the head is where it has read to: on another track by now */
    end = flash_disk_access(disk, end, true, 95, 1);
    at = end + 4 * ONE + SKEW;
    assert_int_equal(flash_disk_begin(disk, at, false, 105),
                     expected(disk, at, 1, 105, 1) - ONE);
    flash_disk_forget(disk);
    assert_int_equal(flash_disk_begin(disk, at, true, 96),
                     expected(disk, at, 0, 96, 1) - ONE);
    free(disk);
}

/* Where the head is: as far as it has read, and no farther. */
static void test_head_that_reads_on(void **state)
{
    FlashDiskTuning t = tuning;
    FlashDisk *disk;
    uint64_t end, at;

    (void)state;
    t.read_ahead = 20 * BLOCK;
    disk = flash_disk_new(&t, BLOCKS, BLOCK);
    end = flash_disk_access(disk, 0, true, 70, 10);
    /* it has read up to 99, the last block of track 0 */
    at = end + 3 * (TURN + SKEW);
    assert_int_equal(flash_disk_begin(disk, at, false, 500),
                     expected(disk, at, 0, 500, 1) - ONE);
    end = flash_disk_access(disk, at, true, 80, 1);
    assert_int_equal(end, at);
    assert_int_equal(flash_disk_begin(disk, at, false, 500),
                     expected(disk, at, 0, 500, 1) - ONE);
    /* ... and now 100, so it stands still on track 1, and waits for 101 */
    at += 3 * (TURN + SKEW);
    assert_int_equal(flash_disk_access(disk, at, true, 81, 1), at);
    for (; at < end + 5 * (TURN + SKEW); at += 130 * US) {
        assert_int_equal(flash_disk_begin(disk, at, false, 500),
                         expected(disk, at, 1, 500, 1) - ONE);
    }
    flash_disk_forget(disk);
    assert_int_equal(flash_disk_begin(disk, at, false, 500),
                     expected(disk, at, 1, 500, 1) - ONE);
    free(disk);
}

/* The end of the disk is the end of what it reads on. */
static void test_nothing_behind_the_end(void **state)
{
    FlashDiskTuning t = tuning;
    FlashDisk *disk;
    uint64_t end;

    (void)state;
    t.read_ahead = 20 * BLOCK;
    disk = flash_disk_new(&t, BLOCKS, BLOCK);
    end = flash_disk_access(disk, 0, true, BLOCKS - 6, 4) + 10 * ONE;
    assert_int_equal(flash_disk_access(disk, end, true, BLOCKS - 2, 1), end);
    assert_int_equal(flash_disk_access(disk, end, true, BLOCKS - 1, 1), end);
    assert_true(flash_disk_access(disk, end, true, BLOCKS - 1, 1) > end);
    free(disk);
}

static void refused(FlashDiskTuning t, const char *word)
{
    char *why = flash_disk_check(&t, BLOCK);

    if (!why || !strstr(why, word)) {
        fail_msg("%s does not say %s", why ? why : "nothing", word);
    }
    free(why);
}

static void test_check(void **state)
{
    FlashDiskTuning t = tuning;

    (void)state;
    assert_null(flash_disk_check(&t, BLOCK));
    t.inner_track = 64 * KIB;
    assert_null(flash_disk_check(&t, BLOCK));
    t.inner_track += 1;
    refused(t, "flash.inner_track is 65537");
    t.inner_track = t.track + BLOCK;
    refused(t, "flash.inner_track is 413696, expected 65536 to 409600");
    t = tuning;
    t.turn_ns = 0;
    refused(t, "flash.turn_ns is 0");
    t.turn_ns = FLASH_DISK_MOST_TURN + 1;
    refused(t, "flash.turn_ns is 100000001, expected 1 to 100000000");
    t = tuning;
    t.skew_ns = t.seek_track_ns - 1;
    refused(t, "flash.skew_ns is 799999, expected 800000 to 8000000");
    t.skew_ns = t.turn_ns + 1;
    refused(t, "flash.skew_ns");
    t = tuning;
    t.track = 64 * KIB - BLOCK;
    refused(t, "flash.track is 61440");
    t.track = FLASH_DISK_MOST_TRACK + BLOCK;
    refused(t, "flash.track");
    t = (FlashDiskTuning) { 0 };
    assert_null(flash_disk_check(&t, BLOCK));
}

/* No time wraps on the largest drive with the slowest head. */
static void test_largest(void **state)
{
    FlashDiskTuning t = {
        .turn_ns = FLASH_DISK_MOST_TURN, .skew_ns = FLASH_DISK_MOST_TURN,
        .seek_track_ns = FLASH_DISK_MOST_TURN,
        .seek_sqrt_ns = 100000 * MS, .seek_linear_ns = 100000 * MS,
        .track = FLASH_DISK_LEAST_TRACK, .read_ahead = UINT64_MAX,
    };
    uint64_t blocks = (1ull << 50) / 512, end;
    FlashDisk *disk = flash_disk_new(&t, blocks, 512);

    (void)state;
    end = flash_disk_access(disk, 0, true, blocks - 100, 50);
    assert_true(end > 200000 * MS && end < 200400 * MS);
    assert_within(flash_disk_access(disk, end, true, blocks - 50, 50) - end,
                  50 * t.turn_ns / 128, 1);
    assert_true(flash_disk_access(disk, end, false, 0, 1) > end);
    free(disk);
}

/* A drive. */

static char path[] = "/tmp/test-disk-XXXXXX";

#define ZONE 1024u              /* blocks */

typedef struct Rig {
    FlashDev dev;
    uint64_t order[64];         /* of what ended: its tag, and when */
    uint64_t at[64];
    unsigned sent, done;
} Rig;

static void on_done(FlashDev *dev, FlashCmd *cmd)
{
    Rig *rig = dev->owner;

    rig->order[rig->done % 64] = cmd->zone * (uint64_t)ZONE + cmd->block;
    rig->at[rig->done++ % 64] = dev->time.now;
    free(cmd);
}

static void on_lost_power(FlashDev *dev)
{
    (void)dev;
}

static Rig *rig_new(const FlashDiskTuning *disk, bool read_first)
{
    const FlashShape shape = {
        .nr_zones = 150, .zone_blocks = ZONE, .zone_cap = ZONE,
        .block_size = BLOCK, .channels = 1, .dies_per_channel = 1,
        .planes = 1, .page_size = 8 * BLOCK, .program_pages = 1,
        .pages_per_block = ZONE / 8, .zone_dies = 1,
    };
    Rig *rig = calloc(1, sizeof(*rig));

    unlink(path);
    rig->dev.owner = rig;
    rig->dev.done = on_done;
    rig->dev.lost_power = on_lost_power;
    rig->dev.tuning = (FlashTuning) {
        .disk = *disk, .read_first = read_first, .buffer = 4096 * KIB,
        .delay_read = true, .delay_program = true, .delay_erase = true,
        .cmd_ns = { [FLASH_CMD_RESET] = 3 * MS, [FLASH_CMD_FINISH] = 2 * MS },
    };
    assert_null(flash_dev_open(&rig->dev, path, &shape));
    return rig;
}

static void rig_free(Rig *rig)
{
    flash_dev_close(&rig->dev);
    free(rig);
}

static void submit(Rig *rig, FlashCmdKind kind, uint64_t block, uint32_t nlb,
                   bool fua)
{
    FlashCmd *cmd = calloc(1, sizeof(*cmd));

    cmd->kind = kind;
    cmd->zone = block / ZONE;
    cmd->block = block % ZONE;
    cmd->nlb = nlb;
    cmd->fua = fua;
    rig->sent++;
    flash_dev_submit(&rig->dev, cmd);
}

/* Run until n more commands have ended; when the last one did. */
static uint64_t run(Rig *rig, unsigned n)
{
    uint64_t when;

    for (n += rig->done; rig->done < n;) {
        assert_true(flash_time_next(&rig->dev.time, &when));
        flash_time_run(&rig->dev.time, when);
    }
    return rig->at[(rig->done - 1) % 64];
}

/* Run until all commands have ended. */
static uint64_t finish(Rig *rig)
{
    return run(rig, rig->sent - rig->done);
}

static void idle(Rig *rig, uint64_t ns)
{
    flash_time_run(&rig->dev.time, rig->dev.time.now + ns);
}

static void fill(Rig *rig, uint64_t first, uint64_t end)
{
    for (uint64_t block = first; block < end; block += 64) {
        submit(rig, FLASH_CMD_WRITE, block, 64, false);
        finish(rig);
    }
    submit(rig, FLASH_CMD_FLUSH, 0, 0, false);
    finish(rig);
}

/* Without read-ahead a read by itself is a seek, a turn's part, a transfer. */
static void test_one_read(void **state)
{
    Rig *rig = rig_new(&tuning, false);
    uint64_t start;

    (void)state;
    assert_false(flash_dev_instant(&rig->dev, 0));
    fill(rig, 0, ZONE);
    fill(rig, 140 * ZONE, 141 * ZONE);
    idle(rig, 123 * US);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_READ, 77, 1, false);
    assert_int_equal(run(rig, 1),
                     expected(rig->dev.time.disk, start, (141 * ZONE - 1) /
                              TRACK, 77, 1));
    rig_free(rig);
}

/* One read after the other, with a pause between: no turn is lost. */
static void test_sequential_reads(void **state)
{
    FlashDiskTuning t = tuning;
    uint64_t start;
    Rig *rig;

    (void)state;
    t.read_ahead = 256 * KIB;
    rig = rig_new(&t, false);
    fill(rig, 0, ZONE);
    submit(rig, FLASH_CMD_READ, 0, 4, false);
    start = run(rig, 1);
    for (uint64_t block = 4; block < 1000; block += 4) {
        idle(rig, ONE);
        submit(rig, FLASH_CMD_READ, block, 4, false);
        run(rig, 1);
    }
    assert_int_equal(rig->dev.time.now - start,
                     10 * TURN - 4 * ONE + 9 * SKEW);
    /* what was read ahead is lost with the power */
    idle(rig, TURN);
    assert_int_equal(flash_disk_begin(rig->dev.time.disk, rig->dev.time.now,
                                      true, 1000), rig->dev.time.now);
    flash_dev_power_off(&rig->dev);
    flash_dev_power_on(&rig->dev);
    assert_true(flash_disk_begin(rig->dev.time.disk, rig->dev.time.now,
                                 true, 1000) > rig->dev.time.now);
    rig_free(rig);
}

/* From the buffer they go on as the head passes; flushed, each loses a turn. */
static void test_sequential_writes(void **state)
{
    Rig *rig = rig_new(&tuning, false);
    uint64_t start, end;

    (void)state;
    fill(rig, 0, 64);
    start = rig->dev.time.now;
    idle(rig, 1 * MS);
    fill(rig, 64, ZONE);
    end = rig->dev.time.now;
    assert_int_equal(end - start, TURN + (ZONE - 64) * ONE + 10 * SKEW);

    for (unsigned i = 0; i < 5; i++) {
        submit(rig, FLASH_CMD_WRITE, ZONE + i, 1, true);
        run(rig, 1);
        assert_int_equal(rig->dev.time.now % TURN,
                         phase(ZONE + i) + ONE);
        if (i) {
            assert_int_equal(rig->dev.time.now - end, TURN + ONE);
        }
        end = rig->dev.time.now;
        idle(rig, 200 * US);
    }
    rig_free(rig);
}

/* The nearest of those that wait; passed for a while only. */
static void test_order(void **state)
{
    FlashDiskTuning t = tuning;
    uint64_t start, far = 140 * ZONE;
    unsigned passes = 0;
    Rig *rig;

    (void)state;
    t.pass_ns = 50 * MS;
    rig = rig_new(&t, false);
    fill(rig, far, far + 64);
    fill(rig, 0, ZONE);
    submit(rig, FLASH_CMD_READ, 1000, 1, false);
    submit(rig, FLASH_CMD_READ, far, 1, false);
    submit(rig, FLASH_CMD_READ, 500, 1, false);
    submit(rig, FLASH_CMD_READ, 1001, 1, false);
    finish(rig);
    assert_int_equal(rig->order[(rig->done - 3) % 64], 1001);
    assert_int_equal(rig->order[(rig->done - 2) % 64], 500);
    assert_int_equal(rig->order[(rig->done - 1) % 64], far);

    submit(rig, FLASH_CMD_READ, 0, 1, false);
    run(rig, 1);
    submit(rig, FLASH_CMD_READ, 10, 1, false);
    submit(rig, FLASH_CMD_READ, far, 1, false);
    submit(rig, FLASH_CMD_READ, 20, 1, false);
    start = run(rig, 1);
    /* another near one is there whenever the head is free */
    for (uint64_t block = 30; ; block += 10, passes++) {
        submit(rig, FLASH_CMD_READ, block % 1000, 1, false);
        run(rig, 1);
        if (rig->order[(rig->done - 1) % 64] == far) {
            break;
        }
        assert_true(passes < 1000);
    }
    assert_true(passes > 40);
    assert_true(rig->dev.time.now - start > 50 * MS);
    assert_true(rig->dev.time.now - start < 50 * MS + TURN + 15 * MS + TURN);
    rig_free(rig);
}

/* A read that goes first does not wait for what the buffer holds. */
static void test_reads_go_first(void **state)
{
    FlashDiskTuning t = tuning;
    uint64_t took[2];

    (void)state;
    t.pass_ns = 1000 * MS;
    for (unsigned first = 0; first < 2; first++) {
        Rig *rig = rig_new(&t, first);
        uint64_t start;

        fill(rig, 140 * ZONE, 140 * ZONE + 64);
        for (uint64_t block = 0; block < 960; block += 64) {
            submit(rig, FLASH_CMD_WRITE, block, 64, false);
        }
        assert_int_equal(rig->done, rig->sent);
        start = rig->dev.time.now;
        submit(rig, FLASH_CMD_READ, 140 * ZONE, 1, false);
        took[first] = run(rig, 1) - start;
        rig_free(rig);
    }
    /* the program at work, a seek, a turn */
    assert_true(took[1] < 15 * MS + TURN + 15 * MS + TURN);
    assert_true(took[0] > 9 * TURN);
}

/* Without the head: the firmware's time only, also behind writes. */
static void test_reset_and_finish(void **state)
{
    Rig *rig = rig_new(&tuning, false);
    uint64_t start;

    (void)state;
    fill(rig, 5 * ZONE, 5 * ZONE + 128);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_FINISH, 5 * ZONE, 0, false);
    assert_int_equal(run(rig, 1) - start, 2 * MS);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_WRITE, 7 * ZONE, 64, false);
    submit(rig, FLASH_CMD_RESET, 5 * ZONE, 0, false);
    assert_int_equal(finish(rig) - start, 3 * MS);
    assert_int_equal(flash_dev_used(&rig->dev, 5), 0);
    /* of a zone that is on its way, what waits is dropped */
    submit(rig, FLASH_CMD_WRITE, 9 * ZONE, 640, false);
    submit(rig, FLASH_CMD_RESET, 9 * ZONE, 0, false);
    finish(rig);
    start = rig->dev.time.now;
    submit(rig, FLASH_CMD_FLUSH, 0, 0, false);
    assert_true(run(rig, 1) - start < 64 * ONE + 2 * (15 * MS + TURN));
    rig_free(rig);
}

/* Data is data, whatever the queue's order, and a cut leaves none of it. */
static void test_random_commands(void **state)
{
    FlashDiskTuning t = tuning;
    uint64_t wp[150] = { 0 };
    Rig *rig;

    (void)state;
    t.pass_ns = 20 * MS;
    t.read_ahead = 128 * KIB;
    t.inner_track = 200 * KIB;
    rig = rig_new(&t, true);
    srandom(1);
    for (unsigned step = 0; step < 20000; step++) {
        uint32_t zone = random() % 150, n = 1 + random() % 40;

        switch (random() % 40) {
        case 0:
            flash_dev_cut(&rig->dev, rig->dev.time.now + random() % (30 * MS));
            break;
        case 1:
            submit(rig, FLASH_CMD_RESET, zone * (uint64_t)ZONE, 0, false);
            wp[zone] = 0;
            break;
        case 2:
            submit(rig, FLASH_CMD_FLUSH, 0, 0, false);
            break;
        case 3 ... 18:
            submit(rig, FLASH_CMD_READ, zone * (uint64_t)ZONE +
                   random() % (ZONE - n), n, random() % 8 == 0);
            break;
        default:
            zone %= 8;
            if (wp[zone] + n <= ZONE) {
                submit(rig, FLASH_CMD_WRITE, zone * (uint64_t)ZONE + wp[zone],
                       n, random() % 8 == 0);
                wp[zone] += n;
            }
        }
        idle(rig, random() % (4 * MS));
        if (!rig->dev.powered) {
            assert_null(rig->dev.cmds);
            flash_dev_power_on(&rig->dev);
            for (zone = 0; zone < 150; zone++) {
                wp[zone] = flash_dev_used(&rig->dev, zone);
            }
        }
    }
    idle(rig, 100000 * MS);
    assert_null(rig->dev.cmds);
    assert_true(rig->dev.stats.cuts > 100);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeks),
        cmocka_unit_test(test_seek_turn_and_transfer),
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_outer_tracks_hold_more),
        cmocka_unit_test(test_reads_ahead),
        cmocka_unit_test(test_head_that_reads_on),
        cmocka_unit_test(test_nothing_behind_the_end),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_one_read),
        cmocka_unit_test(test_sequential_reads),
        cmocka_unit_test(test_sequential_writes),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_reads_go_first),
        cmocka_unit_test(test_reset_and_finish),
        cmocka_unit_test(test_random_commands),
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
