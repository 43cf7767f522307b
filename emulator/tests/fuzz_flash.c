// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gives any image to the model and to the FTL inside a drive, opens it and
 * runs a host's commands on it.  The image is that of a small new drive,
 * changed at places that the input names.  Either it is refused, or everything
 * stays within the drive's bounds.  After an orderly stop the image can be
 * opened again.
 *
 * The input: a FuzzDrive, then records, each a FuzzPoke and the bytes that it
 * puts there.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flash/ftl/ftl.h"
#include "flash/ftl/core.h"

#define BLOCK 512u
#define OPERATIONS 24u
#define EVENTS_MOST 100000u     /* of a command, or it never ends */
#define US 1000ull

typedef struct FuzzDrive {
    uint8_t kind;               /* 0: zones; else a mapping */
    uint8_t shape;
    uint8_t tuning;
    uint8_t operations;         /* the seed of what the host does */
    uint8_t shorter[2];         /* so many bytes are missing at the end */
} FuzzDrive;

typedef struct FuzzPoke {
    uint8_t part;               /* enum below */
    uint8_t extra;              /* byte of the record; oob: so many blocks more */
    uint8_t at[3];              /* zone, block, or byte of the part */
    uint8_t size;               /* of what follows */
} FuzzPoke;

enum { PART_HEADER, PART_ZONE, PART_EXT, PART_BAD, PART_OOB, PARTS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[32];
static int image = -1;
static FlashDev dev;
static Ftl *ftl;
static FtlConfig config;
static FlashShape shape;
static uint32_t zone_caches;
static unsigned under_way;
static uint64_t random_state;

static void require(bool condition)
{
    if (!condition) {
        __builtin_trap();
    }
}

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 0x2545f4914f6cdd1dull >> 16) % below;
}

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

/* The drive. */

static void choose(const FuzzDrive *drive, FlashTuning *tuning)
{
    static const struct {
        uint32_t channels, dies, planes, page, pages, width, rows;
    } shapes[] = {
        { 1, 1, 1, 512, 1, 1, 4 },
        { 2, 2, 1, 1024, 1, 4, 4 },
        { 2, 2, 1, 1024, 1, 1, 8 },
        { 2, 1, 2, 1024, 3, 2, 4 },
        { 4, 2, 1, 512, 2, 2, 16 },
    };
    static char *mappings[] = { "", "page", "dftl", "bast", "fast", "last" };
    uint32_t n = drive->shape % (sizeof(shapes) / sizeof(shapes[0]));
    uint32_t kind = drive->kind % (sizeof(mappings) / sizeof(mappings[0]));
    bool hole = !kind && drive->shape & 0x80;

    shape = (FlashShape) {
        .block_size = BLOCK, .meta_size = kind ? FTL_OOB : n * 8,
        .channels = shapes[n].channels, .dies_per_channel = shapes[n].dies,
        .planes = shapes[n].planes, .page_size = shapes[n].page,
        .program_pages = shapes[n].pages,
        .pages_per_block = shapes[n].rows * shapes[n].pages,
        .zone_dies = shapes[n].width,
    };
    shape.zone_blocks = shape.zone_cap =
        shape.pages_per_block * shape.planes * shape.page_size / BLOCK *
        shape.zone_dies;
    if (hole) {
        shape.zone_blocks *= 2;
        shape.zone_cap--;
    }
    shape.nr_zones = shape.channels * shape.dies_per_channel /
                     shape.zone_dies * (kind ? 36 : 4);
    config = (FtlConfig) {
        .mapping = mappings[kind], .gc_begin = drive->tuning & 1 ? 75 : 100,
        .gc_urgent = drive->tuning & 2 ? 95 : 100, .gc_gain = 8,
        .cost_benefit = drive->tuning & 4, .hot_cold = drive->tuning & 8,
        .at_once = drive->tuning & 16, .log_blocks = 4, .log_ways = 2,
        .hot_writes = drive->tuning & 64,
        .wear_spread = drive->tuning & 128 ? 2 : 0,
        .map_pages = 2,
        .logical = ftl_logical(shape.nr_zones * shape.zone_cap, 50),
    };
    shape.ext_size = kind ? (config.logical * FTL_TRIM / shape.nr_zones + 8) /
                            8 * 8 : drive->tuning & 1 ? 64 : 0;
    *tuning = (FlashTuning) {
        .read_ns = 50 * US, .program_ns = 200 * US, .erase_ns = 2000 * US,
        .cache = true, .delay_read = true, .delay_program = true,
        .delay_erase = true,
        .buffer = drive->tuning & 32 ? 0 : 64 * BLOCK,
        .booked = drive->tuning & 64,
    };
    zone_caches = !kind && tuning->booked && drive->tuning & 128 ? 2 : 0;
}

/* How the image is laid out, as the model says: see flash/model/media.h. */

typedef struct Place {
    uint64_t start, size;
} Place;

static uint64_t end_of(uint64_t start, uint64_t size)
{
    return (start + size + 4095) / 4096 * 4096;
}

static void lay_out(Place *parts, uint64_t *end)
{
    uint64_t blocks = shape.nr_zones * shape.zone_blocks, at = 0;
    uint64_t sizes[PARTS] = {
        [PART_HEADER] = sizeof(FlashImageHeader),
        [PART_ZONE] = shape.nr_zones * sizeof(FlashImageZone),
        [PART_EXT] = shape.nr_zones * shape.ext_size,
        [PART_BAD] = (blocks + 7) / 8,
        [PART_OOB] = blocks * shape.meta_size,
    };

    for (int i = 0; i < PARTS; i++) {
        parts[i] = (Place) { at, sizes[i] };
        at = end_of(at, sizes[i]);
    }
    *end = end_of(at, blocks * shape.block_size);
}

static void put(uint64_t at, uint64_t end, const void *bytes, size_t size)
{
    if (at < end) {
        size = size < end - at ? size : end - at;
        require(pwrite(image, bytes, size, at) == (ssize_t)size);
    }
}

/*
 * Consecutive blocks get the metadata of consecutive logical blocks and
 * versions.
 */
static void put_oobs(const Place *part, const FuzzPoke *poke, uint32_t at,
                     const uint8_t *bytes)
{
    FtlOob oob = { 0 };

    memcpy(&oob, bytes, poke->size < sizeof(oob) ? poke->size : sizeof(oob));
    for (uint32_t i = 0; i <= poke->extra; i++) {
        uint64_t from = (at + (uint64_t)i) * shape.meta_size;

        put(part->start + from, part->start + part->size, &oob, sizeof(oob));
        oob.lba++;
        oob.version++;
    }
}

static void make_image(const FuzzDrive *drive, const uint8_t *data, size_t size)
{
    FlashImageHeader header = {
        .magic = FLASH_IMAGE_MAGIC, .version = FLASH_IMAGE_VERSION,
        .shape = shape,
    };
    Place parts[PARTS];
    uint64_t end;

    lay_out(parts, &end);
    require(!ftruncate(image, 0));
    require(!ftruncate(image, end));
    put(0, sizeof(header), &header, sizeof(header));
    while (size >= sizeof(FuzzPoke)) {
        const FuzzPoke *poke = (const FuzzPoke *)data;
        const Place *part = &parts[poke->part % PARTS];
        uint32_t at = poke->at[0] | poke->at[1] << 8 | poke->at[2] << 16;
        const uint8_t *bytes = data + sizeof(*poke);
        size_t n = poke->size;

        size -= sizeof(*poke);
        n = n < size ? n : size;
        data = bytes + n;
        size -= n;
        if (!part->size || n < poke->size) {
            continue;
        }
        switch (poke->part % PARTS) {
        case PART_ZONE:
            put(part->start + at % shape.nr_zones * sizeof(FlashImageZone) +
                poke->extra % sizeof(FlashImageZone), part->start + part->size,
                bytes, n);
            break;
        case PART_OOB:
            put_oobs(part, poke, at % (shape.nr_zones * shape.zone_blocks),
                     bytes);
            break;
        default:
            put(part->start + at % part->size, part->start + part->size, bytes,
                n);
        }
    }
    if (drive->shorter[1] == 0xff) {
        require(!ftruncate(image, end - drive->shorter[0] * 4096ull % end));
    }
}

/* What must hold whatever the image says. */

static void check_zones(void)
{
    for (uint32_t i = 0; i < shape.nr_zones; i++) {
        require(dev.zones[i].accepted <= shape.zone_cap);
        require(dev.zones[i].programmed <= dev.zones[i].accepted);
        require(flash_zone_end(&dev, i) <= shape.zone_cap);
        require(!dev.media.zones[i].was || dev.jobs);
    }
}

static void check_tables(void)
{
    uint32_t *valid = calloc(ftl->nr_blocks, sizeof(*valid));

    for (uint64_t lba = 0; lba < ftl->space; lba++) {
        uint64_t place = ftl->map[lba];

        if (place != FTL_NOWHERE) {
            require(place / ftl->cap < ftl->nr_blocks);
            require(ftl->back[place] == lba);
            require(place % ftl->cap < ftl_used(ftl, place / ftl->cap));
            valid[place / ftl->cap]++;
        }
    }
    for (uint32_t i = 0; i < ftl->nr_blocks; i++) {
        require(valid[i] == ftl->blocks[i].valid);
        require(ftl->blocks[i].state != FTL_FREE || !ftl_used(ftl, i));
    }
    free(valid);
}

/* What the host does. */

/* All that can happen does; a drive that is full of nonsense may be stuck. */
static void run(void)
{
    uint64_t when;
    unsigned events = 0;

    while (under_way && flash_time_next(&dev.time, &when)) {
        require(events++ < EVENTS_MOST);
        flash_time_run(&dev.time, when);
    }
}

static void submit(FlashCmdKind kind, uint32_t zone, uint64_t block,
                   uint32_t nlb)
{
    FlashCmd *cmd = calloc(1, sizeof(*cmd));

    cmd->kind = kind;
    cmd->zone = zone;
    cmd->block = block;
    cmd->nlb = nlb;
    cmd->fua = kind == FLASH_CMD_WRITE && !draw(8);
    if (kind == FLASH_CMD_WRITE) {
        cmd->data = calloc(nlb, BLOCK);
        cmd->oob = ftl ? NULL : calloc(nlb, shape.meta_size + 1);
    }
    under_way++;
    flash_dev_submit(&dev, cmd);
}

static void host_of_blocks(void)
{
    uint32_t nlb = 1 + draw(8);
    uint64_t lba = draw(config.logical - nlb + 1);
    uint8_t data[8 * BLOCK];

    switch (draw(8)) {
    case 0:
        submit(FLASH_CMD_TRIM, 0, lba, nlb);
        break;
    case 1:
        submit(FLASH_CMD_FLUSH, 0, 0, 0);
        break;
    case 2:
    case 3:
        submit(FLASH_CMD_READ, 0, lba, nlb);
        if (!ftl_bad(ftl, lba, nlb)) {
            ftl_copy(ftl, lba, nlb, data);
        }
        break;
    default:
        submit(FLASH_CMD_WRITE, 0, lba, nlb);
    }
}

/* As the personality lets it: what the zone's state allows. */
static void host_of_zones(void)
{
    uint32_t zone = draw(shape.nr_zones), flags = dev.media.zones[zone].flags;
    uint64_t used = dev.zones[zone].accepted, room = shape.zone_cap - used;
    bool dead = flags & (FLASH_ZONE_READ_ONLY | FLASH_ZONE_OFFLINE);

    switch (draw(6)) {
    case 0:
        if (!dead) {
            submit(FLASH_CMD_RESET, zone, 0, 0);
        }
        break;
    case 1:
        if (!dead && !dev.zones[zone].finished) {
            submit(FLASH_CMD_FINISH, zone, 0, 0);
        }
        break;
    case 2:
        submit(FLASH_CMD_FLUSH, 0, 0, 0);
        break;
    case 3:
        submit(FLASH_CMD_READ, zone, draw(shape.zone_cap), 1);
        break;
    default:
        if (!dead && !dev.zones[zone].finished && room &&
            !(flags & FLASH_ZONE_WINDOW)) {
            submit(FLASH_CMD_WRITE, zone, used,
                   1 + draw(room < 8 ? room : 8));
        }
    }
}

/* Returns whether it was opened. */
static bool open_drive(const FlashTuning *tuning)
{
    char *why;

    ftl = NULL;
    dev = (FlashDev) {
        .tuning = *tuning, .done = on_done, .lost_power = on_lost_power,
        .nr_caches = zone_caches,
    };
    why = flash_dev_open(&dev, path, &shape);
    if (why) {
        free(why);
        return false;
    }
    if (config.mapping[0]) {
        why = ftl_open(&ftl, &dev, &config);
        if (why) {
            free(why);
            flash_dev_close(&dev);
            if (ftl) {
                ftl_free(ftl);
            }
            return false;
        }
        check_tables();
    }
    check_zones();
    return true;
}

static void close_drive(void)
{
    flash_dev_close(&dev);
    if (ftl) {
        ftl_free(ftl);
    }
    ftl = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const FuzzDrive *drive = (const FuzzDrive *)data;
    FlashTuning tuning;

    if (size < sizeof(*drive)) {
        return 0;
    }
    if (image < 0) {
        image = memfd_create("flash", 0);
        require(image >= 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", image);
    }
    choose(drive, &tuning);
    make_image(drive, data + sizeof(*drive), size - sizeof(*drive));
    under_way = 0;
    random_state = drive->operations * 2 + 1;
    if (!open_drive(&tuning)) {
        return 0;
    }
    for (unsigned i = 0; i < OPERATIONS; i++) {
        if (ftl) {
            host_of_blocks();
        } else {
            host_of_zones();
        }
        if (draw(2)) {
            run();
        }
    }
    run();
    if (ftl) {
        check_tables();
    }
    close_drive();
    require(open_drive(&tuning));
    close_drive();
    return 0;
}
