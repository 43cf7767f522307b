/*
 * What is on the flash: one sparse image file, mapped shared, so that it
 * survives the emulator, however that ends.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layout (each part starts on a 4 KiB boundary, little endian):
 *
 *     header      FlashImageHeader: version, shape, geometry
 *     zones       FlashImageZone for each zone
 *     extensions  zone descriptor extensions, if there are any
 *     bad         one bit a logical block: programming it never ended
 *     oob         metadata, ms bytes a logical block
 *     data
 *
 * The rule that makes any instant a valid image: a logical block below its
 * zone's write pointer either holds its data or has its bad bit set.
 * flash_media_begin() is called when a program reaches the cell array and
 * flash_media_commit() when it ends, so a kill of the process between the two
 * leaves exactly what a power loss leaves.  Erases have a rule of their own
 * (erase.h).  A random write window (ZRWA)
 * begins at the write pointer.  Its blocks lie here too, at their own place:
 * the drive keeps them through a power loss.  Pure C; the owner serialises.
 */

#ifndef HW_NVME_FLASH_MEDIA_H
#define HW_NVME_FLASH_MEDIA_H

#include <stdbool.h>
#include <stdint.h>

#include "journal.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the flash image is little endian: this host would read it the wrong way"
#endif

#define FLASH_IMAGE_MAGIC   "MTFLASH"
#define FLASH_IMAGE_VERSION 1

/* What must agree between an image and the device that opens it. */
typedef struct FlashShape {
    uint64_t nr_zones;
    uint64_t zone_blocks;       /* zone size, logical blocks */
    uint64_t zone_cap;          /* zone capacity, logical blocks */
    uint32_t block_size;        /* logical block, bytes */
    uint32_t meta_size;         /* metadata of a logical block, bytes */
    uint32_t ext_size;          /* zone descriptor extension, bytes */
    uint32_t channels;
    uint32_t dies_per_channel;
    uint32_t planes;
    uint32_t page_size;
    uint32_t program_pages;     /* of each plane, in one program */
    uint32_t pages_per_block;
    uint32_t zone_dies;
    char drive[16];             /* its personality and mapping; empty: zns */
} FlashShape;

typedef struct FlashImageHeader {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
    FlashShape shape;
} FlashImageHeader;

enum {
    FLASH_ZONE_FINISHED = 1 << 0,   /* full, whatever the write pointer */
    FLASH_ZONE_READ_ONLY = 1 << 1,
    FLASH_ZONE_OFFLINE = 1 << 2,
    FLASH_ZONE_EXT_VALID = 1 << 3,  /* descriptor extension is set */
    FLASH_ZONE_WINDOW = 1 << 4,     /* has a random write window */
    FLASH_ZONE_BY_DRIVE = 1 << 5,   /* finished by itself, without padding */
    FLASH_ZONE_FLAGS = (1 << 6) - 1,
    FLASH_ZONE_WAS_FLAGS = FLASH_ZONE_FINISHED | FLASH_ZONE_EXT_VALID |
                           FLASH_ZONE_BY_DRIVE,
};

typedef struct FlashImageZone {
    uint64_t wp;                /* logical blocks from the zone's start */
    uint64_t padded;            /* programmed by finish, the same way */
    uint32_t flags;
    uint32_t erases;            /* resets, also of an empty zone */
    uint64_t ahead;             /* end of what its window ever held */
    uint64_t was;               /* wp before erases that go on; 0: none do */
    uint64_t was_padded;
    uint32_t was_flags;
    uint32_t seed;              /* what is left if they are interrupted */
    uint64_t worn;              /* erases of its erase blocks, all together */
} FlashImageZone;

typedef struct FlashMedia {
    FlashShape shape;
    int fd;
    uint8_t *map;
    uint64_t map_len;
    FlashImageZone *zones;
    uint8_t *ext;
    uint8_t *bad;
    uint8_t *oob;
    uint8_t *data;
    FlashJournal *journal;      /* NULL: none is wanted; the owner sets it */
    bool fresh;                 /* the file was blank when it was opened */
    bool unmade;                /* ... and is to be so again */
} FlashMedia;

/*
 * Open the image, or create it when there is none.  Returns NULL, or what is
 * wrong, in words (to be freed).
 */
char *flash_media_open(FlashMedia *m, const char *path,
                       const FlashShape *shape);
void flash_media_close(FlashMedia *m);

/*
 * The drive is refused after all.  If its image was created for it, a file
 * without data is left once it is closed, which any drive takes.
 */
void flash_media_unmake(FlashMedia *m);

static inline uint8_t *flash_media_data(const FlashMedia *m, uint64_t lba)
{
    return m->data + lba * m->shape.block_size;
}

static inline uint8_t *flash_media_oob(const FlashMedia *m, uint64_t lba)
{
    return m->oob + lba * m->shape.meta_size;
}

/* Is a block of this range unreadable? */
bool flash_media_bad(const FlashMedia *m, uint64_t lba, uint64_t nlb);
void flash_media_mark(FlashMedia *m, uint64_t lba, uint64_t nlb, bool bad);

/* A program of these blocks of a zone begins in the cell array; ends. */
void flash_media_begin(FlashMedia *m, uint32_t zone, uint64_t block,
                       uint32_t nlb);
void flash_media_commit(FlashMedia *m, uint32_t zone, uint64_t block,
                        uint32_t nlb, const void *data, const void *oob);

/* The zone's record has changed by other hands. */
void flash_media_changed(FlashMedia *m, uint32_t zone);

/* What began did not come: the zone ends at the block again. */
void flash_media_undo(FlashMedia *m, uint32_t zone, uint64_t block,
                      uint32_t nlb);

/* Zeroes; their memory goes back to the host. */
void flash_media_wipe(FlashMedia *m, uint64_t lba, uint64_t nlb);

#endif
