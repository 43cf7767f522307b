// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Write amplification of the page mapping under uniform random writes, without
 * a guest and without delays.
 *
 *     ftl_waf SPARE BLOCKS PAGES ROUNDS
 *
 * Fills a drive of so many erase blocks of so many pages in order, then writes
 * ROUNDS times its size at random.  Prints what was written and moved in the last
 * round, and by how much flash that holds data exceeds what the host sees.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "flash-ftl.h"

#define BLOCK 512u

static FlashDev dev;
static unsigned under_way;

static void on_done(FlashDev *d, FlashCmd *cmd)
{
    (void)d;
    under_way--;
    free(cmd);
}

static void on_lost_power(FlashDev *d)
{
    (void)d;
}

static void write_one(uint64_t lba)
{
    FlashCmd *cmd = calloc(1, sizeof(*cmd));
    uint64_t when;

    cmd->kind = FLASH_CMD_WRITE;
    cmd->block = lba;
    cmd->nlb = 1;
    cmd->data = calloc(1, BLOCK);
    under_way++;
    flash_dev_submit(&dev, cmd);
    while (under_way) {
        if (!flash_time_next(&dev.time, &when)) {
            abort();
        }
        flash_time_run(&dev.time, when);
    }
}

int main(int argc, char **argv)
{
    static char path[] = "/dev/shm/ftl-waf-XXXXXX";
    uint32_t spare = argc == 5 ? atoi(argv[1]) : 0;
    FlashShape shape = {
        .block_size = BLOCK, .meta_size = FTL_OOB, .channels = 1,
        .dies_per_channel = 1, .planes = 1, .page_size = BLOCK,
        .program_pages = 1, .zone_dies = 1,
    };
    FtlConfig config = {
        .mapping = "page", .gc_begin = 100, .gc_urgent = 100, .gc_gain = 8,
        .hot_cold = true,
    };
    uint64_t random = 88172645463325252ull, rounds, closed = 0;
    FtlStats before = { 0 };
    Ftl *ftl;
    char *why;

    if (argc != 5) {
        return 2;
    }
    shape.nr_zones = atoi(argv[2]);
    shape.zone_blocks = shape.zone_cap = shape.pages_per_block = atoi(argv[3]);
    rounds = atoi(argv[4]);
    config.logical = ftl_logical(shape.nr_zones * shape.zone_cap, spare);
    shape.ext_size = (config.logical * FTL_TRIM / shape.nr_zones + 8) / 8 * 8;
    dev.done = on_done;
    dev.lost_power = on_lost_power;
    dev.tuning.buffer = 64 * BLOCK;
    close(mkstemp(path));
    why = flash_dev_open(&dev, path, &shape);
    unlink(path);
    why = why ? why : ftl_open(&ftl, &dev, &config);
    if (why) {
        printf("%s\n", why);
        return 1;
    }
    for (uint64_t i = 0; i < config.logical; i++) {
        write_one(i);
    }
    for (uint64_t i = 0; i < rounds * config.logical; i++) {
        if (i == (rounds - 1) * config.logical) {
            before = *ftl_stats(ftl);
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        write_one((random >> 16) % config.logical);
        if (i >= (rounds - 1) * config.logical) {
            closed += shape.nr_zones - ftl_stats(ftl)->free_blocks;
        }
    }
    /* of the two blocks being written half is used */
    printf("%llu %llu %.6f\n",
           (unsigned long long)(ftl_stats(ftl)->host - before.host),
           (unsigned long long)(ftl_stats(ftl)->moved - before.moved),
           ((double)closed / config.logical - 1) * shape.zone_cap /
           config.logical);
    flash_dev_close(&dev);
    ftl_free(ftl);
    return 0;
}
