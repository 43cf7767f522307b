// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A drive without a guest.  See drive.h.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drive.h"

FlashDev dev;
FlashShape shape = {
    .block_size = 4096, .channels = 1, .dies_per_channel = 1, .planes = 1,
    .page_size = 4096, .program_pages = 1, .pages_per_block = 64,
};
FlashTuning tuning = { .buffer = 1 << 20 };
FtlConfig config = {
    .gc_begin = 75, .gc_urgent = 95, .gc_gain = 8, .log_blocks = 64,
    .log_ways = 1, .map_pages = 64,
};
Personality personality;
Ftl *ftl;

static char mapping[16] = "page";
static uint64_t blocks = 64;            /* erase blocks of a die */
static uint64_t spare_permille = 70;
static uint64_t random_state;

/* The drive, as the properties flash.*, and its FTL. */
static const Word words[] = {
    { "sector", WORD_U32, &shape.block_size },
    { "channels", WORD_U32, &shape.channels },
    { "dies", WORD_U32, &shape.dies_per_channel },
    { "planes", WORD_U32, &shape.planes },
    { "page", WORD_U32, &shape.page_size },
    { "program_pages", WORD_U32, &shape.program_pages },
    { "block_pages", WORD_U32, &shape.pages_per_block },
    { "zone_dies", WORD_U32, &shape.zone_dies },
    { "blocks", WORD_U64, &blocks },
    { "read_ns", WORD_NS, &tuning.read_ns },
    { "program_ns", WORD_NS, &tuning.program_ns },
    { "erase_ns", WORD_NS, &tuning.erase_ns },
    { "erase_more_ns", WORD_NS, &tuning.erase_more_ns },
    { "channel_rate", WORD_U64, &tuning.bus.bytes_per_s },
    { "channel_setup_ns", WORD_NS, &tuning.bus.setup_ns },
    { "channel_switch_ns", WORD_NS, &tuning.bus.switch_ns },
    { "turn_read_ns", WORD_NS, &tuning.bus.turn_read_ns },
    { "turn_write_ns", WORD_NS, &tuning.bus.turn_write_ns },
    { "pe_cycles", WORD_U32, &tuning.pe_cycles },
    { "worn_read", WORD_U32, &tuning.worn_read },
    { "worn_program", WORD_U32, &tuning.worn_program },
    { "worn_erase", WORD_U32, &tuning.worn_erase },
    { "retry_erases", WORD_U32, &tuning.retry_erases },
    { "retry_age_ns", WORD_U64, &tuning.retry_age_ns },
    { "link_rate", WORD_U64, &tuning.link_rate },
    { "service_ns", WORD_NS, &tuning.service_ns },
    { "read_cmd_ns", WORD_NS, &tuning.cmd_ns[FLASH_CMD_READ] },
    { "long_read_ns", WORD_NS, &tuning.long_read_ns },
    { "write_cmd_ns", WORD_NS, &tuning.cmd_ns[FLASH_CMD_WRITE] },
    { "flush_cmd_ns", WORD_NS, &tuning.cmd_ns[FLASH_CMD_FLUSH] },
    { "reset_ns", WORD_NS, &tuning.cmd_ns[FLASH_CMD_RESET] },
    { "buffer", WORD_U64, &tuning.buffer },
    { "cache", WORD_BOOL, &tuning.cache },
    { "read_first", WORD_BOOL, &tuning.read_first },
    { "read_limit", WORD_U32, &tuning.read_limit },
    { "suspend", WORD_BOOL, &tuning.suspend },
    { "suspend_ns", WORD_NS, &tuning.suspend_ns },
    { "resume_ns", WORD_NS, &tuning.resume_ns },
    { "booked", WORD_BOOL, &tuning.booked },
    { "plane_reads", WORD_BOOL, &tuning.plane_reads },
    { "spare_permille", WORD_U64, &spare_permille },
    { "gc_begin", WORD_U32, &config.gc_begin },
    { "gc_urgent", WORD_U32, &config.gc_urgent },
    { "gc_gain", WORD_U32, &config.gc_gain },
    { "gc_age", WORD_BOOL, &config.cost_benefit },
    { "gc_at_once", WORD_BOOL, &config.at_once },
    { "hot_cold", WORD_BOOL, &config.hot_cold },
    { "hot_writes", WORD_BOOL, &config.hot_writes },
    { "wear_spread", WORD_U32, &config.wear_spread },
    { "refresh_ns", WORD_U64, &config.refresh_ns },
    { "log_blocks", WORD_U32, &config.log_blocks },
    { "log_ways", WORD_U32, &config.log_ways },
    { "seq_logs", WORD_U32, &config.seq_logs },
    { "map_pages", WORD_U32, &config.map_pages },
    { "handles", WORD_U32, &config.handles },
    { "fdp_persistent", WORD_U32, &config.apart },
    { .name = NULL },
};

void fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(2);
}

static const Word *find(const Word *table, const char *name, size_t length)
{
    for (const Word *word = table; word->name; word++) {
        if (strlen(word->name) == length &&
            !strncmp(word->name, name, length)) {
            return word;
        }
    }
    return NULL;
}

static void set_personality(const char *name)
{
    static const char *const names[] = { "blackbox", "zns", "ocssd" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!strcmp(name, names[i])) {
            personality = (Personality)i;
            return;
        }
    }
    fail("there is no personality '%s', expected blackbox, zns or ocssd", name);
}

void parse_word(const char *text, const Word *own)
{
    const char *value = strchr(text, '=');
    unsigned long long number;
    const Word *word;
    char *end;

    if (!value) {
        fail("'%s' is no word, expected NAME=VALUE", text);
    }
    if (!strncmp(text, "mapping=", 8)) {
        snprintf(mapping, sizeof(mapping), "%s", value + 1);
        return;
    }
    if (!strncmp(text, "personality=", 12)) {
        set_personality(value + 1);
        return;
    }
    if (!strncmp(text, "page_types=", 11)) {
        end = flash_cell_parse(&tuning, value + 1);
        if (end) {
            fail("%s", end);
        }
        return;
    }
    number = strtoull(value + 1, &end, 0);
    if (end == value + 1 || *end) {
        fail("'%s' has no number", text);
    }
    word = find(words, text, value - text);
    word = word ? word : find(own, text, value - text);
    if (!word) {
        fail("'%s' names nothing that there is", text);
    }
    switch (word->kind) {
    case WORD_BOOL:
        *(bool *)word->to = number;
        break;
    case WORD_U32:
        *(uint32_t *)word->to = number;
        break;
    case WORD_U64:
        *(uint64_t *)word->to = number;
        break;
    case WORD_NS:
        if (number > FLASH_MOST_NS) {
            fail("'%s': expected at most %llu", text, FLASH_MOST_NS);
        }
        *(uint64_t *)word->to = number;
        break;
    }
}

static void on_lost_power(FlashDev *d)
{
    (void)d;
}

/* A zone is an erase block on each of its dies, whatever the host sees. */
static void check_shape(void)
{
    uint64_t row = (uint64_t)shape.planes * shape.page_size;
    uint32_t dies = shape.channels * shape.dies_per_channel;

    if (personality == DRIVE_OCSSD) {
        shape.zone_dies = 1;
    }
    shape.zone_dies = shape.zone_dies ? shape.zone_dies : dies;
    if (!dies || !shape.block_size || !row || row % shape.block_size ||
        dies % shape.zone_dies || !shape.program_pages ||
        shape.pages_per_block % shape.program_pages) {
        fail("no drive is of such a shape");
    }
    if (config.refresh_ns && config.refresh_ns < FTL_LEAST_REFRESH) {
        fail("refresh_ns is %llu, expected 0 or at least %llu",
             (unsigned long long)config.refresh_ns, FTL_LEAST_REFRESH);
    }
    if (tuning.plane_reads &&
        (tuning.booked || shape.page_size % shape.block_size)) {
        fail("planes read by themselves only if nothing is booked, and a page "
             "has whole sectors");
    }
    shape.zone_blocks = shape.zone_cap = row / shape.block_size *
                                         shape.pages_per_block *
                                         shape.zone_dies;
    shape.nr_zones = blocks * dies / shape.zone_dies;
}

void open_drive(void (*done)(FlashDev *d, FlashCmd *cmd))
{
    static char path[] = "/dev/shm/firmware-XXXXXX";
    char *why;

    check_shape();
    config.logical = shape.zone_blocks * shape.nr_zones;
    if (config.handles > FTL_HANDLES || config.apart > config.handles) {
        fail("there may be %u handles, and each of them may be persistent",
             FTL_HANDLES);
    }
    if (personality == DRIVE_BLACKBOX) {
        config.logical = config.logical * 1000 / (1000 + spare_permille);
        config.mapping = mapping;
        shape.meta_size = FTL_OOB;
        shape.ext_size = (config.logical * FTL_TRIM / shape.nr_zones + 8) / 8 *
                         8;
    }
    dev.done = done;
    dev.lost_power = on_lost_power;
    dev.tuning = tuning;
    close(mkstemp(path));
    why = flash_dev_open(&dev, path, &shape);
    unlink(path);
    if (!why && personality == DRIVE_BLACKBOX) {
        why = ftl_open(&ftl, &dev, &config);
    }
    if (why) {
        fail("%s", why);
    }
}

void close_drive(void)
{
    flash_dev_close(&dev);
    if (ftl) {
        ftl_free(ftl);
    }
}

void set_delays(bool on)
{
    dev.tuning.delay_read = dev.tuning.delay_program = on;
    dev.tuning.delay_erase = dev.tuning.delay_transfer = on;
    dev.tuning.service_ns = on ? tuning.service_ns : 0;
    flash_dev_retune(&dev);
}

void drive_step(uint64_t waiting)
{
    uint64_t when;

    if (!flash_time_next(&dev.time, &when)) {
        fail("%llu requests wait for nothing", (unsigned long long)waiting);
    }
    flash_time_run(&dev.time, when);
}

void add_latency(Latencies *l, uint64_t ns)
{
    if (l->nr == l->room) {
        l->room = l->room ? 2 * l->room : 4096;
        l->ns = realloc(l->ns, l->room * sizeof(*l->ns));
        if (!l->ns) {
            fail("no memory for %llu latencies", (unsigned long long)l->room);
        }
    }
    l->ns[l->nr++] = ns;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

void print_latencies(const char *name, Latencies *l)
{
    static const double at[] = { 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100 };
    double sum = 0;

    if (l->nr) {
        qsort(l->ns, l->nr, sizeof(*l->ns), by_size);
    }
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
    free(l->ns);
}

void seed_draws(uint64_t seed)
{
    random_state = 0x9e3779b97f4a7c15ull * (seed + 1);
}

uint64_t draw(uint64_t below)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 0x2545f4914f6cdd1dull >> 16) % below;
}
