/*
 * A disk with one actuator.  See disk.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The place of a block is the time at which it begins, on a head that reads all
 * blocks from the first one on, without end.  In a turn it passes the head at
 * its place modulo turn_ns.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "disk.h"

#define ROOT_BITS 20            /* of the fraction of a square root */

static char *wrong_size(const char *name, uint64_t is, uint64_t most)
{
    char *why = NULL;

    return asprintf(&why, "flash.%s is %" PRIu64 ", expected %llu to %" PRIu64
                    ", in whole blocks", name, is, FLASH_DISK_LEAST_TRACK,
                    most) < 0 ? NULL : why;
}

static char *wrong_ns(const char *name, uint64_t is, uint64_t least,
                      uint64_t most)
{
    char *why = NULL;

    return asprintf(&why, "flash.%s is %" PRIu64 ", expected %" PRIu64 " to %"
                    PRIu64, name, is, least, most) < 0 ? NULL : why;
}

static bool is_track(uint64_t bytes, uint64_t most, uint32_t block_size)
{
    return bytes >= FLASH_DISK_LEAST_TRACK && bytes <= most &&
           bytes % block_size == 0;
}

char *flash_disk_check(const FlashDiskTuning *t, uint32_t block_size)
{
    char *why = NULL;

    if (!t->turn_ns && (t->skew_ns || t->seek_track_ns || t->seek_sqrt_ns ||
                        t->seek_linear_ns || t->track || t->inner_track ||
                        t->read_ahead || t->pass_ns)) {
        return asprintf(&why, "flash.turn_ns is 0, so there is no disk, but "
                        "something is said of its tracks or its head") < 0 ?
               NULL : why;
    } else if (!t->turn_ns) {
        return NULL;
    } else if (t->turn_ns > FLASH_DISK_MOST_TURN) {
        return wrong_ns("turn_ns", t->turn_ns, 1, FLASH_DISK_MOST_TURN);
    } else if (t->skew_ns < t->seek_track_ns || t->skew_ns > t->turn_ns) {
        /* with less, each track would cost a turn */
        return wrong_ns("skew_ns", t->skew_ns, t->seek_track_ns, t->turn_ns);
    } else if (!is_track(t->track, FLASH_DISK_MOST_TRACK, block_size)) {
        return wrong_size("track", t->track, FLASH_DISK_MOST_TRACK);
    } else if (t->inner_track &&
               !is_track(t->inner_track, t->track, block_size)) {
        return wrong_size("inner_track", t->inner_track, t->track);
    }
    return NULL;
}

FlashDisk *flash_disk_new(const FlashDiskTuning *t, uint64_t blocks,
                          uint32_t block_size)
{
    FlashDisk *disk = calloc(1, sizeof(*disk));
    uint64_t outer = t->track / block_size;
    uint64_t inner = t->inner_track ? t->inner_track / block_size : outer;
    uint64_t all = 0;

    assert(disk && blocks && t->turn_ns && inner && inner <= outer);
    disk->tuning = *t;
    disk->blocks = blocks;
    disk->ahead_blocks = t->read_ahead / block_size;
    for (uint32_t i = 0; i < FLASH_DISK_BANDS; i++) {
        disk->per_track[i] = outer - (outer - inner) * i /
                                     (FLASH_DISK_BANDS - 1);
        all += disk->per_track[i];
    }
    disk->band_tracks = (blocks + all - 1) / all;
    return disk;
}

void flash_disk_forget(FlashDisk *disk)
{
    disk->ahead = (FlashAhead) { 0 };
}

/* Where things are. */

typedef struct Spot {
    uint64_t track;
    uint64_t index;             /* of the block, on its track */
    uint64_t per_track;
} Spot;

static Spot spot_of(const FlashDisk *disk, uint64_t block)
{
    uint64_t left = block, n = 0;
    uint32_t band = 0;

    assert(block < disk->blocks);
    for (; band < FLASH_DISK_BANDS; band++, left -= n) {
        n = disk->band_tracks * disk->per_track[band];
        if (left < n) {
            break;
        }
    }
    assert(band < FLASH_DISK_BANDS);
    return (Spot) {
        .track = band * disk->band_tracks + left / disk->per_track[band],
        .index = left % disk->per_track[band],
        .per_track = disk->per_track[band],
    };
}

static uint64_t track_ns(const FlashDisk *disk)
{
    return disk->tuning.turn_ns + disk->tuning.skew_ns;
}

static uint64_t place_of(const FlashDisk *disk, uint64_t block)
{
    Spot s = spot_of(disk, block);

    return s.track * track_ns(disk) +
           s.index * disk->tuning.turn_ns / s.per_track;
}

/* ... where it ends: what follows on the same track begins at that place. */
static uint64_t end_of(const FlashDisk *disk, uint64_t block)
{
    Spot s = spot_of(disk, block);

    return s.track * track_ns(disk) +
           (s.index + 1) * disk->tuning.turn_ns / s.per_track;
}

uint64_t flash_disk_track(const FlashDisk *disk, uint64_t block)
{
    return spot_of(disk, block).track;
}

/* The head. */

static uint64_t root(uint64_t n)
{
    uint64_t found = 0;

    for (uint64_t bit = 1ull << 31; bit; bit >>= 1) {
        if ((found | bit) * (found | bit) <= n) {
            found |= bit;
        }
    }
    return found;
}

uint64_t flash_disk_seek_ns(const FlashDisk *disk, uint64_t from, uint64_t to)
{
    const FlashDiskTuning *t = &disk->tuning;
    uint64_t way = from < to ? to - from : from - to;
    uint64_t most = FLASH_DISK_BANDS * disk->band_tracks - 2;
    uint64_t part, ns;

    if (!way) {
        return 0;
    }
    assert(way - 1 <= most);
    part = (((unsigned __int128)(way - 1)) << (2 * ROOT_BITS)) / most;
    ns = ((unsigned __int128)t->seek_sqrt_ns * root(part)) >> ROOT_BITS;
    ns += ((unsigned __int128)t->seek_linear_ns * part) >> (2 * ROOT_BITS);
    return t->seek_track_ns + ns;
}

/* When the block comes that is read ahead, and is not there yet. */
static uint64_t comes_at(const FlashDisk *disk, uint64_t block)
{
    return disk->ahead.base + end_of(disk, block);
}

/* Has the head read all that it reads ahead? */
static bool has_stopped(const FlashDisk *disk, uint64_t now)
{
    const FlashAhead *a = &disk->ahead;

    return a->there == a->end || comes_at(disk, a->end - 1) <= now;
}

static bool is_ahead(const FlashDisk *disk, bool read, uint64_t block)
{
    return read && block >= disk->ahead.have && block < disk->ahead.end;
}

/* The track that the head is on. */
static uint64_t head_at(const FlashDisk *disk, uint64_t now)
{
    const FlashAhead *a = &disk->ahead;
    int64_t gone = now - a->base;       /* the base may be before all time */
    uint64_t track, last;

    if (a->there == a->end || gone < 0) {
        return disk->track;
    }
    track = gone / track_ns(disk);
    last = flash_disk_track(disk, a->end - 1);
    track = track < last ? track : last;
    return track > disk->track ? track : disk->track;
}

/* When the block begins to pass the head, which leaves the track now. */
static uint64_t passes_at(const FlashDisk *disk, uint64_t now, uint64_t track,
                          uint64_t block)
{
    Spot s = spot_of(disk, block);
    uint64_t turn = disk->tuning.turn_ns;
    uint64_t there = now + flash_disk_seek_ns(disk, track, s.track);
    uint64_t place = place_of(disk, block);

    return there + (place % turn + turn - there % turn) % turn;
}

uint64_t flash_disk_begin(const FlashDisk *disk, uint64_t now, bool read,
                          uint64_t block)
{
    uint64_t begin;

    if (!is_ahead(disk, read, block)) {
        return passes_at(disk, now, head_at(disk, now), block);
    }
    if (block < disk->ahead.there) {
        return now;
    }
    begin = disk->ahead.base + place_of(disk, block);
    return begin > now ? begin : now;
}

/* The head reads on behind that block; so far it has read up to there. */
static void read_on(FlashDisk *disk, uint64_t there, uint64_t base,
                    uint64_t block)
{
    FlashAhead *a = &disk->ahead;

    a->have = block;
    a->there = there;
    a->base = base;
    a->end = block + disk->ahead_blocks;
    a->end = a->end < disk->blocks ? a->end : disk->blocks;
    assert(a->there <= a->end && a->have <= a->end);
}

/* A read of what is read ahead, at least of its beginning. */
static uint64_t access_ahead(FlashDisk *disk, uint64_t now, uint64_t end)
{
    FlashAhead *a = &disk->ahead;
    uint64_t there = a->there, base = a->base, comes = now;

    if (has_stopped(disk, now)) {
        there = a->end;
        disk->track = flash_disk_track(disk, there - 1);
        if (there < disk->blocks) {
            base = passes_at(disk, now, disk->track, there) -
                   place_of(disk, there);
        }
    }
    if (end > there) {
        comes = base + end_of(disk, end - 1);
    }
    read_on(disk, there > end ? there : end, base, end);
    return comes > now ? comes : now;
}

uint64_t flash_disk_access(FlashDisk *disk, uint64_t now, bool read,
                           uint64_t block, uint32_t nlb)
{
    uint64_t end = block + nlb, base;

    assert(nlb && end <= disk->blocks);
    if (is_ahead(disk, read, block)) {
        return access_ahead(disk, now, end);
    }
    base = passes_at(disk, now, head_at(disk, now), block) -
           place_of(disk, block);
    disk->track = flash_disk_track(disk, end - 1);
    flash_disk_forget(disk);
    if (read) {
        read_on(disk, end, base, end);
    }
    return base + end_of(disk, end - 1);
}
