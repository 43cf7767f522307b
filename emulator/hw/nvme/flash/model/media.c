/*
 * What is on the flash.  See media.h for the layout and its one rule.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "media.h"

#define PART_ALIGN 4096ull

typedef struct FlashLayout {
    uint64_t zones, ext, bad, oob, data, end;
} FlashLayout;

static uint64_t add_part(uint64_t *at, uint64_t len)
{
    uint64_t start = *at;

    *at = (start + len + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    return start;
}

static void lay_out(const FlashShape *s, FlashLayout *l)
{
    uint64_t blocks = s->nr_zones * s->zone_blocks;
    uint64_t at = PART_ALIGN;

    l->zones = add_part(&at, s->nr_zones * sizeof(FlashImageZone));
    l->ext = add_part(&at, s->nr_zones * s->ext_size);
    l->bad = add_part(&at, (blocks + 7) / 8);
    l->oob = add_part(&at, blocks * s->meta_size);
    l->data = add_part(&at, blocks * s->block_size);
    l->end = at;
}

static char *complain(const char *path, const char *what)
{
    char *s;

    return asprintf(&s, "flash.media '%s': %s", path, what) < 0 ? NULL : s;
}

#define DIFFERS(field, name)                                            \
    if (have->field != want->field) {                                   \
        return asprintf(&s, "flash.media '%s': the image has " name     \
                        " %llu, the device %llu", path,                 \
                        (unsigned long long)have->field,                \
                        (unsigned long long)want->field) < 0 ? NULL : s;\
    }

static char *compare_shape(const char *path, const FlashShape *have,
                           const FlashShape *want)
{
    char *s;

    if (strncmp(have->drive, want->drive, sizeof(have->drive))) {
        return complain(path, "the image is that of another kind of drive "
                        "(flash.personality, flash.mapping, fdp.nruh, "
                        "flash.fdp_persistent)");
    }
    DIFFERS(block_size, "logical blocks of");
    DIFFERS(meta_size, "metadata bytes");
    DIFFERS(zone_blocks, "a zone size in blocks of");
    DIFFERS(zone_cap, "a zone capacity in blocks of");
    DIFFERS(nr_zones, "zones:");
    DIFFERS(ext_size, "a zone descriptor extension of");
    DIFFERS(channels, "channels:");
    DIFFERS(dies_per_channel, "dies a channel:");
    DIFFERS(planes, "planes:");
    DIFFERS(page_size, "a page size of");
    DIFFERS(program_pages, "pages a program:");
    DIFFERS(pages_per_block, "pages a block:");
    DIFFERS(zone_dies, "dies a zone:");
    return NULL;
}

/* A damaged table would lead us out of the zones. */
static char *check_zones(const FlashMedia *m, const char *path)
{
    uint64_t cap = m->shape.zone_cap;
    char *s;

    for (uint64_t i = 0; i < m->shape.nr_zones; i++) {
        const FlashImageZone *z = &m->zones[i];
        const char *what = z->wp > cap ? "write pointer" :
                           z->padded > cap ? "padding" :
                           z->was > cap || z->was_padded > cap ? "erase" :
                           z->ahead > cap ? "window" :
                           z->flags & ~FLASH_ZONE_FLAGS ||
                           z->was_flags & ~FLASH_ZONE_WAS_FLAGS ? "flags" :
                           NULL;

        if (what) {
            return asprintf(&s, "flash.media '%s': damaged flash image: zone "
                            "%llu has an impossible %s", path,
                            (unsigned long long)i, what) < 0 ? NULL : s;
        }
    }
    return NULL;
}

static char *check_image(FlashMedia *m, const char *path,
                         const FlashShape *want, uint64_t end)
{
    FlashImageHeader *h = (FlashImageHeader *)m->map;

    if (memcmp(h->magic, FLASH_IMAGE_MAGIC, sizeof(h->magic))) {
        return complain(path, "not a flash image");
    }
    if (h->version != FLASH_IMAGE_VERSION) {
        return complain(path, "a flash image of another version");
    }
    if (m->map_len != end) {
        /* the shape is compared first: it says why the length differs */
        char *why = compare_shape(path, &h->shape, want);

        return why ? why : complain(path, "truncated flash image");
    }
    return compare_shape(path, &h->shape, want);
}

/*
 * The file is new, or its maker was killed after it had set the length and
 * before it wrote the header, which is one write.  So the file is empty.
 */
static bool is_blank(int fd, uint64_t len, uint64_t end)
{
    return !len ||
           (len == end && lseek(fd, 0, SEEK_DATA) < 0 && errno == ENXIO);
}

/* Give a blank file its length and its header. */
static char *create(const FlashMedia *m, const char *path, uint64_t len)
{
    FlashImageHeader h = {
        .magic = FLASH_IMAGE_MAGIC,
        .version = FLASH_IMAGE_VERSION,
        .shape = m->shape,
    };
    ssize_t done;

    if (ftruncate(m->fd, len)) {
        return complain(path, strerror(errno));
    }
    done = pwrite(m->fd, &h, sizeof(h), 0);
    return done == sizeof(h) ? NULL :
           complain(path, done < 0 ? strerror(errno) : "no room for a header");
}

char *flash_media_open(FlashMedia *m, const char *path, const FlashShape *shape)
{
    FlashLayout l;
    struct stat st;
    char *why;

    lay_out(shape, &l);
    assert(shape->zone_cap <= shape->zone_blocks);
    memset(m, 0, sizeof(*m));
    m->shape = *shape;
    m->map = MAP_FAILED;
    m->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (m->fd < 0) {
        why = complain(path, strerror(errno));
        goto fail;
    }
    if (flock(m->fd, LOCK_EX | LOCK_NB)) {
        why = complain(path, "in use by another emulator");
        goto fail;
    }
    /* Only now: until it had the lock, another emulator may have made it. */
    if (fstat(m->fd, &st)) {
        why = complain(path, strerror(errno));
        goto fail;
    }
    m->map_len = st.st_size;
    if (is_blank(m->fd, m->map_len, l.end)) {
        m->map_len = l.end;
        m->fresh = true;
        why = create(m, path, l.end);
        if (why) {
            goto fail;
        }
    }
    if (m->map_len < PART_ALIGN) {
        why = complain(path, "not a flash image");
        goto fail;
    }
    m->map = mmap(NULL, m->map_len, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_NORESERVE, m->fd, 0);
    if (m->map == MAP_FAILED) {
        why = complain(path, strerror(errno));
        goto fail;
    }
    why = check_image(m, path, shape, l.end);
    if (why) {
        goto fail;
    }
    m->zones = (FlashImageZone *)(m->map + l.zones);
    m->ext = m->map + l.ext;
    m->bad = m->map + l.bad;
    m->oob = m->map + l.oob;
    m->data = m->map + l.data;
    why = check_zones(m, path);
    if (why) {
        goto fail;
    }
    return NULL;

fail:
    flash_media_unmake(m);
    flash_media_close(m);
    return why;
}

void flash_media_close(FlashMedia *m)
{
    if (m->map != MAP_FAILED) {
        munmap(m->map, m->map_len);
        m->map = MAP_FAILED;
    }
    if (m->fd >= 0) {
        if (m->unmade && ftruncate(m->fd, 0)) {
            /* so the image stays, and the next start says if it differs */
            m->unmade = false;
        }
        close(m->fd);
        m->fd = -1;
    }
}

void flash_media_unmake(FlashMedia *m)
{
    m->unmade = m->fresh;
}

bool flash_media_bad(const FlashMedia *m, uint64_t lba, uint64_t nlb)
{
    uint64_t end = lba + nlb;

    assert(end <= m->shape.nr_zones * m->shape.zone_blocks);
    while (lba < end) {
        if (!(lba & 7) && end - lba >= 8 && !m->bad[lba / 8]) {
            lba += 8;
        } else if (m->bad[lba / 8] & 1 << (lba & 7)) {
            return true;
        } else {
            lba++;
        }
    }
    return false;
}

void flash_media_mark(FlashMedia *m, uint64_t lba, uint64_t nlb, bool bad)
{
    uint64_t end = lba + nlb;

    assert(end <= m->shape.nr_zones * m->shape.zone_blocks);
    while (lba < end) {
        uint8_t *byte = &m->bad[lba / 8];

        if (!(lba & 7) && end - lba >= 8) {
            /* do not touch, and so allocate, what is right already */
            if (*byte != (bad ? 0xff : 0)) {
                *byte = bad ? 0xff : 0;
            }
            lba += 8;
        } else {
            if (bad) {
                *byte |= 1 << (lba & 7);
            } else if (*byte & 1 << (lba & 7)) {
                *byte &= ~(1 << (lba & 7));
            }
            lba++;
        }
    }
}

static void note(FlashMedia *m, FlashJournalKind kind, uint32_t zone,
                 uint64_t block, uint32_t nlb)
{
    if (m->journal) {
        flash_journal_add(m->journal, kind, zone, block, nlb);
    }
}

void flash_media_changed(FlashMedia *m, uint32_t zone)
{
    FlashJournalRecord r = { .kind = FLASH_JOURNAL_ZONE, .zone = zone };

    assert(zone < m->shape.nr_zones);
    if (m->journal) {
        flash_journal_put(m->journal, r, &m->zones[zone], sizeof(*m->zones),
                          NULL, 0);
    }
}

void flash_media_begin(FlashMedia *m, uint32_t zone, uint64_t block,
                       uint32_t nlb)
{
    FlashImageZone *z = &m->zones[zone];
    uint64_t start = zone * m->shape.zone_blocks;

    assert(zone < m->shape.nr_zones && block + nlb <= m->shape.zone_cap);
    note(m, FLASH_JOURNAL_BEGIN, zone, block, nlb);
    flash_media_mark(m, start + block, nlb, true);
    if (block + nlb > z->wp) {
        if (block > z->wp) {
            flash_media_mark(m, start + z->wp, block - z->wp, true);
        }
        z->wp = block + nlb;
    }
}

void flash_media_commit(FlashMedia *m, uint32_t zone, uint64_t block,
                        uint32_t nlb, const void *data, const void *oob)
{
    uint64_t lba = zone * m->shape.zone_blocks + block;

    assert(block + nlb <= m->zones[zone].wp);   /* its program has begun */
    note(m, FLASH_JOURNAL_COMMIT, zone, block, nlb);
    memcpy(flash_media_data(m, lba), data, (size_t)nlb * m->shape.block_size);
    if (m->shape.meta_size) {
        memcpy(flash_media_oob(m, lba), oob, (size_t)nlb * m->shape.meta_size);
    }
    flash_media_mark(m, lba, nlb, false);
}

void flash_media_undo(FlashMedia *m, uint32_t zone, uint64_t block,
                      uint32_t nlb)
{
    uint64_t lba = zone * m->shape.zone_blocks + block;

    assert(block <= m->zones[zone].wp);
    m->zones[zone].wp = block;
    memset(flash_media_data(m, lba), 0, (size_t)nlb * m->shape.block_size);
    memset(flash_media_oob(m, lba), 0, (size_t)nlb * m->shape.meta_size);
    flash_media_mark(m, lba, nlb, false);
}

/*
 * Whole host pages go back to the host, the ragged ends are cleared.  No host
 * has larger pages than these.
 */
static void discard(uint8_t *from, uint64_t len)
{
    uintptr_t page = 64 * 1024;
    uint8_t *start = (uint8_t *)(((uintptr_t)from + page - 1) & ~(page - 1));
    uint8_t *end = (uint8_t *)((uintptr_t)(from + len) & ~(page - 1));

    if (start >= end) {
        memset(from, 0, len);
        return;
    }
    memset(from, 0, start - from);
    memset(end, 0, from + len - end);
    if (madvise(start, end - start, MADV_REMOVE)) {
        memset(start, 0, end - start);
    }
}

void flash_media_wipe(FlashMedia *m, uint64_t lba, uint64_t nlb)
{
    if (nlb) {
        assert(lba + nlb <= m->shape.nr_zones * m->shape.zone_blocks);
        discard(flash_media_data(m, lba), nlb * m->shape.block_size);
        discard(flash_media_oob(m, lba), nlb * m->shape.meta_size);
    }
}
