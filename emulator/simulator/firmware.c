// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * firmware: a drive with its FTL inside, without a guest.
 *
 *     firmware NAME=VALUE...
 *
 * The FTL and the model of flash are those of the black box
 * (emulator/hw/nvme); here a load takes the host's place: so many requests
 * are in flight, and each that ends is followed by another.  Words are in
 * the table below, those of the drive in drive.c.  What was found is printed as
 * JSON; it follows from the words alone.
 *
 * With parts, the area is cut into as many, and what is written to one of them
 * goes by a handle of its own, if the drive has handles.
 *
 * The drive is filled in order, then aged by the load without delays, then it
 * is worn and stands for a while, then warmed up by the load with delays; what
 * follows counts.
 */

#include <stdio.h>
#include <stdlib.h>

#include "drive.h"

#define STREAMS 64u

typedef struct Words {
    /* sizes are bytes */
    uint64_t random;            /* percent of requests that are, of `small` */
    uint64_t small, large;      /* ... and in order, of `large` */
    uint64_t streams, run;      /* in order: so many at a time, each so far */
    uint64_t hot, hot_area;     /* percent of random requests, and where */
    uint64_t area;              /* percent of the drive that is used */
    uint64_t parts;             /* of the area, 0: no load by parts */
    uint64_t noisy;             /* percent of writes: at random to the first */
    uint64_t reads;             /* percent of requests */
    uint64_t fill;              /* percent of the area, in order, first */
    uint64_t age;               /* percent of the area, without delays */
    uint64_t worn;              /* erases that its blocks have had then */
    uint64_t kept_ns;           /* it stands for so long */
    uint64_t depth, warm, requests;
    uint64_t seed;
} Words;

static Words w = {
    .random = 100, .small = 4096, .large = 65536, .streams = 1,
    .run = 1 << 20, .hot = 50, .hot_area = 50, .area = 100, .fill = 100,
    .depth = 1, .requests = 10000, .seed = 1,
};
static const Word words[] = {
    { "random", WORD_U64, &w.random },
    { "small", WORD_U64, &w.small },
    { "large", WORD_U64, &w.large },
    { "streams", WORD_U64, &w.streams },
    { "run", WORD_U64, &w.run },
    { "hot", WORD_U64, &w.hot },
    { "hot_area", WORD_U64, &w.hot_area },
    { "area", WORD_U64, &w.area },
    { "parts", WORD_U64, &w.parts },
    { "noisy", WORD_U64, &w.noisy },
    { "reads", WORD_U64, &w.reads },
    { "fill", WORD_U64, &w.fill },
    { "age", WORD_U64, &w.age },
    { "worn", WORD_U64, &w.worn },
    { "kept_ns", WORD_U64, &w.kept_ns },
    { "depth", WORD_U64, &w.depth },
    { "warm", WORD_U64, &w.warm },
    { "requests", WORD_U64, &w.requests },
    { "seed", WORD_U64, &w.seed },
    { .name = NULL },
};

/* The load. */

static struct { uint64_t at, end; } streams[STREAMS];

static uint64_t area_bytes(void)
{
    return config.logical * shape.block_size / 100 * w.area;
}

static uint64_t random_place(void)
{
    uint64_t places = area_bytes() / w.small;
    uint64_t hot = places * w.hot_area / 100;

    if (draw(100) < w.hot) {
        return draw(hot ? hot : 1) * w.small;
    }
    return (hot + draw(places - hot ? places - hot : 1)) * w.small;
}

static uint64_t stream_place(uint64_t size)
{
    uint64_t n = draw(w.streams), run = w.run;
    uint64_t runs = area_bytes() / run;
    uint64_t at;

    if (streams[n].at + size > streams[n].end) {
        streams[n].at = draw(runs ? runs : 1) * run;
        streams[n].end = streams[n].at + run;
    }
    at = streams[n].at;
    streams[n].at += size;
    return at;
}

/* Parts: in each but the first, writes in order go round. */

static uint64_t part_bytes(void)
{
    return area_bytes() / w.parts / w.large * w.large;
}

static uint64_t part_of(uint64_t at)
{
    uint64_t n = at / part_bytes();

    return n < w.parts ? n : w.parts - 1;
}

static uint64_t part_place(uint64_t *size)
{
    uint64_t n = draw(100) < w.noisy ? 0 : 1 + draw(w.parts - 1);
    uint64_t at;

    if (!n || draw(100) < w.random) {
        *size = w.small;
        at = draw(part_bytes() / w.small) * w.small;
    } else {
        *size = w.large;
        at = streams[n].at;
        streams[n].at = (at + w.large) % part_bytes();
    }
    return n * part_bytes() + at;
}

/* The drive. */

static uint64_t under_way, ended;

typedef struct Request {
    FlashCmd cmd;               /* first: it is freed by its address */
    uint64_t since;
} Request;

static Latencies latencies[2];              /* reads, writes */
static bool counting;
static uint64_t in_use;                     /* sum of erase blocks that are */
static uint64_t bytes;                      /* of requests that count */

static void on_done(FlashDev *d, FlashCmd *cmd)
{
    const Request *r = (Request *)cmd;
    Latencies *l = &latencies[cmd->kind == FLASH_CMD_WRITE];

    if (counting) {
        add_latency(l, d->time.now - r->since);
        in_use += shape.nr_zones - ftl_stats(ftl)->free_blocks;
        bytes += (uint64_t)cmd->nlb * shape.block_size;
    }
    under_way--;
    ended++;
    free(cmd);
}

static void submit(FlashCmdKind kind, uint64_t at, uint64_t size)
{
    Request *r = calloc(1, sizeof(*r));

    r->cmd.kind = kind;
    r->cmd.block = at / shape.block_size;
    r->cmd.nlb = size / shape.block_size;
    r->since = dev.time.now;
    r->cmd.handle = config.handles && w.parts ?
                    part_of(at) % config.handles : 0;
    if (kind == FLASH_CMD_WRITE) {
        r->cmd.data = calloc(r->cmd.nlb, shape.block_size);
    }
    under_way++;
    flash_dev_submit(&dev, &r->cmd);
}

static void wait_for(uint64_t most)
{
    while (under_way > most) {
        drive_step(under_way);
    }
}

static void run_load(uint64_t requests, uint64_t most, bool reads)
{
    uint64_t written = 0;

    for (uint64_t n = 0; n < requests && (!most || written < most); n++) {
        bool in_order = !w.parts && draw(100) >= w.random;
        uint64_t size = in_order ? w.large : w.small;
        uint64_t at = w.parts ? part_place(&size) :
                      in_order ? stream_place(size) : random_place();
        bool read = reads && draw(100) < w.reads;

        wait_for(w.depth - 1);
        submit(read ? FLASH_CMD_READ : FLASH_CMD_WRITE, at, size);
        written += size;
    }
}

static void check_words(void)
{
    const uint64_t sizes[] = { w.small, w.large, w.run };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (!sizes[i] || sizes[i] % shape.block_size ||
            sizes[i] > area_bytes()) {
            fail("a request or run of %llu bytes, expected a multiple of %u, "
                 "and at most %llu", (unsigned long long)sizes[i],
                 shape.block_size, (unsigned long long)area_bytes());
        }
    }
    if (!w.depth || !w.streams || w.streams > STREAMS || w.large > w.run) {
        fail("depth and streams (at most %u) must be at least 1, and run as "
             "much as large", STREAMS);
    }
    if (w.parts && (w.parts == 1 || w.parts > STREAMS || !part_bytes() ||
                    part_bytes() < w.small || w.noisy > 100)) {
        fail("parts must be 0, or 2 to %u, each as large as a request", STREAMS);
    }
}

/* What was found. */

static FtlHandle handles_before[FTL_HANDLES];

static void note_handles(void)
{
    for (uint32_t i = 0; i < config.handles; i++) {
        handles_before[i] = *ftl_handle(ftl, i);
    }
}

static void print_handles(void)
{
    printf(",\n \"handles\": [");
    for (uint32_t i = 0; i < config.handles; i++) {
        const FtlHandle *now = ftl_handle(ftl, i);

        printf("%s{\"host\": %llu, \"moved\": %llu}", i ? ", " : "",
               (unsigned long long)(now->host - handles_before[i].host),
               (unsigned long long)(now->moved - handles_before[i].moved));
    }
    printf("]");
}

static void print_rates(const FtlStats *before, const FlashStats *flash,
                        uint64_t since)
{
    const FtlStats *now = ftl_stats(ftl);
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        { "map_bytes", ftl_map_bytes(ftl) },
        { "programmed", (dev.stats.programmed_bytes - flash->programmed_bytes) /
                        shape.block_size },
        { "read_retries", dev.stats.read_retries - flash->read_retries },
        { "padded_programs", dev.stats.programs_padded -
                             flash->programs_padded },
        { "logical", config.logical },
        { "erase_blocks", shape.nr_zones },
        { "block_sectors", shape.zone_cap },
        { "erases_least", ftl_wear(ftl).least },
        { "erases_most", ftl_wear(ftl).most },
    };
    double seconds = (dev.time.now - since) / 1e9;
    uint64_t n = latencies[0].nr + latencies[1].nr;

    printf("{\"seconds\": %.9f, \"iops\": %.3f, \"mb_s\": %.4f", seconds,
           seconds ? n / seconds : 0, seconds ? bytes / seconds / 1e6 : 0);
    for (const FtlCounter *c = ftl_counters; c->name; c++) {
        printf(",\n \"%s\": %llu", c->name,
               (unsigned long long)(ftl_count(now, c) - ftl_count(before, c)));
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        printf(",\n \"%s\": %llu", numbers[i].name,
               (unsigned long long)numbers[i].value);
    }
    printf(",\n \"in_use\": %.4f", n ? (double)in_use / n : 0);
    print_latencies("read", &latencies[0]);
    print_latencies("write", &latencies[1]);
    if (config.handles) {
        print_handles();
    }
    printf("}\n");
}

static void let_it_stand(void)
{
    for (uint64_t i = 0; w.worn && i < shape.nr_zones; i++) {
        dev.media.zones[i].worn = w.worn * dev.erase_blocks;
    }
    if (w.kept_ns) {
        flash_time_run(&dev.time, dev.time.now + w.kept_ns);
    }
}

int main(int argc, char **argv)
{
    FtlStats before;
    FlashStats flash;
    uint64_t since;

    for (int i = 1; i < argc; i++) {
        parse_word(argv[i], words);
    }
    if (personality != DRIVE_BLACKBOX) {
        fail("such a load is of a black box; the others take traces");
    }
    seed_draws(w.seed);
    open_drive(on_done);
    check_words();
    set_delays(false);
    for (uint64_t at = 0; at + w.large <= area_bytes() / 100 * w.fill;
         at += w.large) {
        submit(FLASH_CMD_WRITE, at, w.large);
        wait_for(0);
    }
    run_load(w.age ? UINT64_MAX : 0, area_bytes() / 100 * w.age, false);
    wait_for(0);
    set_delays(true);
    let_it_stand();
    run_load(w.warm, 0, true);
    before = *ftl_stats(ftl);
    flash = dev.stats;
    note_handles();
    since = dev.time.now;
    counting = true;
    run_load(w.requests, 0, true);
    wait_for(0);
    print_rates(&before, &flash, since);
    close_drive();
    return 0;
}
