// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * firmware: a drive with its FTL inside, without a guest.
 *
 *     firmware NAME=VALUE...
 *
 * The FTL and the model of flash are those of the black box
 * (emulator/hw/nvme); here a load takes the host's place: so many requests
 * are in flight, and each that ends is followed by another.  Words are in
 * the table below.  What was found is printed as JSON; it follows from the words
 * alone.
 *
 * The drive is filled in order, then aged by the load without delays, then
 * warmed up by it with them; what follows counts.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flash/ftl/ftl.h"

#define STREAMS 64u

typedef struct Words {
    uint64_t blocks;            /* erase blocks of a die */
    uint64_t spare_permille;
    /* the load; sizes are bytes */
    uint64_t random;            /* percent of requests that are, of `small` */
    uint64_t small, large;      /* ... and in order, of `large` */
    uint64_t streams, run;      /* in order: so many at a time, each so far */
    uint64_t hot, hot_area;     /* percent of random requests, and where */
    uint64_t area;              /* percent of the drive that is used */
    uint64_t reads;             /* percent of requests */
    uint64_t fill;              /* percent of the area, in order, first */
    uint64_t age;               /* percent of the area, without delays */
    uint64_t depth, warm, requests;
    uint64_t seed;
} Words;

static Words w = {
    .blocks = 64, .spare_permille = 70, .random = 100, .small = 4096,
    .large = 65536, .streams = 1, .run = 1 << 20, .hot = 50, .hot_area = 50,
    .area = 100, .fill = 100, .depth = 1, .requests = 10000, .seed = 1,
};
static FlashShape shape = {
    .block_size = 4096, .meta_size = FTL_OOB, .channels = 1,
    .dies_per_channel = 1, .planes = 1, .page_size = 4096,
    .program_pages = 1, .pages_per_block = 64,
};
static FlashTuning tuning = { .buffer = 1 << 20 };
static FtlConfig config = {
    .gc_begin = 75, .gc_urgent = 95, .gc_gain = 8, .log_blocks = 64,
    .log_ways = 1, .map_pages = 64,
};
static char mapping[16] = "page";

typedef enum WordKind { WORD_BOOL, WORD_U32, WORD_U64 } WordKind;

static const struct {
    const char *name;
    WordKind kind;
    void *to;
} words[] = {
    /* the drive, as the properties flash.* */
    { "sector", WORD_U32, &shape.block_size },
    { "channels", WORD_U32, &shape.channels },
    { "dies", WORD_U32, &shape.dies_per_channel },
    { "planes", WORD_U32, &shape.planes },
    { "page", WORD_U32, &shape.page_size },
    { "program_pages", WORD_U32, &shape.program_pages },
    { "block_pages", WORD_U32, &shape.pages_per_block },
    { "zone_dies", WORD_U32, &shape.zone_dies },
    { "blocks", WORD_U64, &w.blocks },
    { "read_ns", WORD_U64, &tuning.read_ns },
    { "program_ns", WORD_U64, &tuning.program_ns },
    { "erase_ns", WORD_U64, &tuning.erase_ns },
    { "channel_rate", WORD_U64, &tuning.bus.bytes_per_s },
    { "channel_setup_ns", WORD_U64, &tuning.bus.setup_ns },
    { "channel_switch_ns", WORD_U64, &tuning.bus.switch_ns },
    { "turn_read_ns", WORD_U64, &tuning.bus.turn_read_ns },
    { "turn_write_ns", WORD_U64, &tuning.bus.turn_write_ns },
    { "service_ns", WORD_U64, &tuning.service_ns },
    { "buffer", WORD_U64, &tuning.buffer },
    { "cache", WORD_BOOL, &tuning.cache },
    { "read_first", WORD_BOOL, &tuning.read_first },
    { "read_limit", WORD_U32, &tuning.read_limit },
    /* its FTL */
    { "spare_permille", WORD_U64, &w.spare_permille },
    { "gc_begin", WORD_U32, &config.gc_begin },
    { "gc_urgent", WORD_U32, &config.gc_urgent },
    { "gc_gain", WORD_U32, &config.gc_gain },
    { "gc_age", WORD_BOOL, &config.cost_benefit },
    { "gc_at_once", WORD_BOOL, &config.at_once },
    { "hot_cold", WORD_BOOL, &config.hot_cold },
    { "hot_writes", WORD_BOOL, &config.hot_writes },
    { "wear_spread", WORD_U32, &config.wear_spread },
    { "log_blocks", WORD_U32, &config.log_blocks },
    { "log_ways", WORD_U32, &config.log_ways },
    { "seq_logs", WORD_U32, &config.seq_logs },
    { "map_pages", WORD_U32, &config.map_pages },
    /* the load */
    { "random", WORD_U64, &w.random },
    { "small", WORD_U64, &w.small },
    { "large", WORD_U64, &w.large },
    { "streams", WORD_U64, &w.streams },
    { "run", WORD_U64, &w.run },
    { "hot", WORD_U64, &w.hot },
    { "hot_area", WORD_U64, &w.hot_area },
    { "area", WORD_U64, &w.area },
    { "reads", WORD_U64, &w.reads },
    { "fill", WORD_U64, &w.fill },
    { "age", WORD_U64, &w.age },
    { "depth", WORD_U64, &w.depth },
    { "warm", WORD_U64, &w.warm },
    { "requests", WORD_U64, &w.requests },
    { "seed", WORD_U64, &w.seed },
};

static void fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(2);
}

static void parse_word(const char *text)
{
    const char *value = strchr(text, '=');
    unsigned long long number;
    char *end;

    if (!value) {
        fail("'%s' is no word, expected NAME=VALUE", text);
    }
    if (!strncmp(text, "mapping=", 8)) {
        snprintf(mapping, sizeof(mapping), "%s", value + 1);
        return;
    }
    number = strtoull(value + 1, &end, 0);
    if (end == value + 1 || *end) {
        fail("'%s' has no number", text);
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i].name) != (size_t)(value - text) ||
            strncmp(words[i].name, text, value - text)) {
            continue;
        }
        switch (words[i].kind) {
        case WORD_BOOL:
            *(bool *)words[i].to = number;
            return;
        case WORD_U32:
            *(uint32_t *)words[i].to = number;
            return;
        case WORD_U64:
            *(uint64_t *)words[i].to = number;
            return;
        }
    }
    fail("'%s' names nothing that there is", text);
}

/* The load. */

static uint64_t random_state;
static struct { uint64_t at, end; } streams[STREAMS];

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 0x2545f4914f6cdd1dull >> 16) % below;
}

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

/* The drive. */

static FlashDev dev;
static Ftl *ftl;
static uint64_t under_way, ended;

typedef struct Request {
    FlashCmd cmd;               /* first: it is freed by its address */
    uint64_t since;
} Request;

typedef struct Latencies {
    uint64_t *ns, nr;
} Latencies;

static Latencies latencies[2];              /* reads, writes */
static bool counting;
static uint64_t in_use;                     /* sum of erase blocks that are */
static uint64_t bytes;                      /* of requests that count */

static void on_done(FlashDev *d, FlashCmd *cmd)
{
    const Request *r = (Request *)cmd;
    Latencies *l = &latencies[cmd->kind == FLASH_CMD_WRITE];

    if (counting) {
        l->ns[l->nr++] = d->time.now - r->since;
        in_use += shape.nr_zones - ftl_stats(ftl)->free_blocks;
        bytes += (uint64_t)cmd->nlb * shape.block_size;
    }
    under_way--;
    ended++;
    free(cmd);
}

static void on_lost_power(FlashDev *d)
{
    (void)d;
}

static void submit(FlashCmdKind kind, uint64_t at, uint64_t size)
{
    Request *r = calloc(1, sizeof(*r));

    r->cmd.kind = kind;
    r->cmd.block = at / shape.block_size;
    r->cmd.nlb = size / shape.block_size;
    r->since = dev.time.now;
    if (kind == FLASH_CMD_WRITE) {
        r->cmd.data = calloc(r->cmd.nlb, shape.block_size);
    }
    under_way++;
    flash_dev_submit(&dev, &r->cmd);
}

static void wait_for(uint64_t most)
{
    uint64_t when;

    while (under_way > most) {
        if (!flash_time_next(&dev.time, &when)) {
            fail("%llu requests wait for nothing",
                 (unsigned long long)under_way);
        }
        flash_time_run(&dev.time, when);
    }
}

static void set_delays(bool on)
{
    dev.tuning.delay_read = dev.tuning.delay_program = on;
    dev.tuning.delay_erase = dev.tuning.delay_transfer = on;
    dev.tuning.service_ns = on ? tuning.service_ns : 0;
    flash_dev_retune(&dev);
}

static void run_load(uint64_t requests, uint64_t most, bool reads)
{
    uint64_t written = 0;

    for (uint64_t n = 0; n < requests && (!most || written < most); n++) {
        bool in_order = draw(100) >= w.random;
        uint64_t size = in_order ? w.large : w.small;
        uint64_t at = in_order ? stream_place(size) : random_place();
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
}

static void open_drive(void)
{
    static char path[] = "/dev/shm/firmware-XXXXXX";
    uint64_t row = (uint64_t)shape.planes * shape.page_size;
    uint32_t dies = shape.channels * shape.dies_per_channel;
    uint64_t blocks;
    char *why;

    shape.zone_dies = shape.zone_dies ? shape.zone_dies : dies;
    if (!dies || !shape.block_size || !row || row % shape.block_size ||
        dies % shape.zone_dies || !shape.program_pages ||
        shape.pages_per_block % shape.program_pages) {
        fail("no drive is of such a shape");
    }
    blocks = row / shape.block_size * shape.pages_per_block * shape.zone_dies;
    shape.zone_blocks = shape.zone_cap = blocks;
    shape.nr_zones = w.blocks * dies / shape.zone_dies;
    config.logical = blocks * shape.nr_zones * 1000 /
                     (1000 + w.spare_permille);
    config.mapping = mapping;
    shape.ext_size = (config.logical * FTL_TRIM / shape.nr_zones + 8) / 8 * 8;
    dev.done = on_done;
    dev.lost_power = on_lost_power;
    dev.tuning = tuning;
    close(mkstemp(path));
    why = flash_dev_open(&dev, path, &shape);
    unlink(path);
    why = why ? why : ftl_open(&ftl, &dev, &config);
    if (why) {
        fail("%s", why);
    }
}

/* What was found. */

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void print_latencies(const char *name, const Latencies *l)
{
    static const double at[] = { 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100 };
    double sum = 0;

    qsort(l->ns, l->nr, sizeof(*l->ns), by_size);
    for (uint64_t i = 0; i < l->nr; i++) {
        sum += l->ns[i];
    }
    printf(",\n \"%ss\": {\"count\": %llu", name, (unsigned long long)l->nr);
    for (size_t i = 0; l->nr && i < sizeof(at) / sizeof(at[0]); i++) {
        uint64_t n = at[i] / 100 * l->nr;

        printf(", \"p%g_us\": %.3f", at[i],
               l->ns[n < l->nr ? n : l->nr - 1] / 1e3);
    }
    printf(", \"mean_us\": %.3f}", l->nr ? sum / l->nr / 1e3 : 0);
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
    printf("}\n");
}

int main(int argc, char **argv)
{
    FtlStats before;
    FlashStats flash;
    uint64_t since;

    for (int i = 1; i < argc; i++) {
        parse_word(argv[i]);
    }
    random_state = 0x9e3779b97f4a7c15ull * (w.seed + 1);
    open_drive();
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
    run_load(w.warm, 0, true);
    latencies[0].ns = calloc(w.requests + w.depth, sizeof(uint64_t));
    latencies[1].ns = calloc(w.requests + w.depth, sizeof(uint64_t));
    before = *ftl_stats(ftl);
    flash = dev.stats;
    since = dev.time.now;
    counting = true;
    run_load(w.requests, 0, true);
    wait_for(0);
    print_rates(&before, &flash, since);
    flash_dev_close(&dev);
    ftl_free(ftl);
    free(latencies[0].ns);
    free(latencies[1].ns);
    return 0;
}
