/*
 * A disk with one actuator: where its head is, and when blocks pass it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Blocks lie on tracks one after the other, from the outermost inwards.  The
 * tracks form bands of equally many; those of a band hold equally many blocks,
 * outer ones more than inner ones.  The first block of a track passes the head
 * skew_ns later in the turn than that of the track before, so that the head can
 * follow.  After a read the head reads on.  Pure C: no queue and no events,
 * those are in actuator.h.  Called by actuator.c and model.c, whose owner
 * serialises.
 */

#ifndef HW_NVME_FLASH_DISK_H
#define HW_NVME_FLASH_DISK_H

#include <stdbool.h>
#include <stdint.h>

#define FLASH_DISK_BANDS 16
/* Limits: no sum of times wraps, however large the drive is. */
#define FLASH_DISK_MOST_TURN 100000000ull       /* ns */
#define FLASH_DISK_LEAST_TRACK (64ull << 10)    /* bytes */
#define FLASH_DISK_MOST_TRACK (1ull << 30)

/* All of it is fixed once the device runs. */
typedef struct FlashDiskTuning {
    uint64_t turn_ns;           /* of the platter; 0: it is no disk */
    uint64_t skew_ns;           /* between a track's end and the next one */
    uint64_t seek_track_ns;     /* of the head to the next track */
    uint64_t seek_sqrt_ns;      /* what the whole stroke takes longer, ... */
    uint64_t seek_linear_ns;    /* ... as the root of the way, and as the way */
    uint64_t track;             /* bytes of an outermost track */
    uint64_t inner_track;       /* ... of an innermost one; 0: the same */
    uint64_t read_ahead;        /* bytes that the head reads on */
    uint64_t pass_ns;           /* so long the oldest operation is passed */
} FlashDiskTuning;

/* Blocks that are read ahead: [have, end), of which those below there are. */
typedef struct FlashAhead {
    uint64_t have, there, end;
    uint64_t base;              /* the others come then + their place */
} FlashAhead;

typedef struct FlashDisk {
    FlashDiskTuning tuning;
    uint64_t blocks;
    uint64_t ahead_blocks;      /* that the head reads on, at most */
    uint64_t band_tracks;       /* tracks of each band */
    uint64_t per_track[FLASH_DISK_BANDS];
    uint64_t track;             /* that the head was left on */
    FlashAhead ahead;
} FlashDisk;

/* What is wrong with it, in words (to be freed), or NULL. */
char *flash_disk_check(const FlashDiskTuning *t, uint32_t block_size);

/* The tuning was checked. */
FlashDisk *flash_disk_new(const FlashDiskTuning *t, uint64_t blocks,
                          uint32_t block_size);

/* The power went: nothing is read ahead. */
void flash_disk_forget(FlashDisk *disk);

uint64_t flash_disk_track(const FlashDisk *disk, uint64_t block);
uint64_t flash_disk_seek_ns(const FlashDisk *disk, uint64_t from, uint64_t to);

/* When the transfer of the block would begin, if the head was sent now. */
uint64_t flash_disk_begin(const FlashDisk *disk, uint64_t now, bool read,
                          uint64_t block);

/* Send the head; when the last of the blocks is transferred. */
uint64_t flash_disk_access(FlashDisk *disk, uint64_t now, bool read,
                           uint64_t block, uint32_t nlb);

#endif
