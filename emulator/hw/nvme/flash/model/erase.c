/*
 * Erases that the power may interrupt.  See erase.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * FlashImageZone.was is what a zone's erases hang on: it is set when the rest
 * of the record is there, and cleared when nothing is left to do.  A kill
 * between the two finds the record, and flash_erase_cut() may begin again.
 */

#include <assert.h>

#include "erase.h"

typedef enum Fate {
    FATE_EMPTY,                 /* of a zone */
    FATE_SHORT,
    FATE_KEPT,
    FATE_ZEROES = FATE_EMPTY,   /* of a program unit */
    FATE_ERROR = FATE_SHORT,
    FATES = FATE_KEPT + 1,
} Fate;

/* One erase block's part of a zone, and the n-th of its program units. */
typedef struct EraseBlock {
    uint32_t zone;
    uint32_t place;
    uint64_t n;
} EraseBlock;

typedef struct Span {
    uint64_t block;             /* from the zone's start */
    uint64_t nlb;               /* 0: the zone ended before it */
} Span;

static uint32_t units_per_block(const FlashMedia *m)
{
    return m->shape.pages_per_block / m->shape.program_pages;
}

static Span unit_span(const FlashMedia *m, EraseBlock b, uint32_t unit)
{
    const FlashShape *s = &m->shape;
    uint64_t unit_blocks = (uint64_t)s->planes * s->page_size *
                           s->program_pages / s->block_size;
    uint64_t was = m->zones[b.zone].was;
    uint64_t nr = b.n * (s->pages_per_block / s->program_pages) + unit;
    Span span = { .block = (nr * s->zone_dies + b.place) * unit_blocks };

    assert(b.place < s->zone_dies && unit < units_per_block(m));
    if (span.block < was) {
        span.nlb = unit_blocks;
        if (span.nlb > was - span.block) {
            span.nlb = was - span.block;
        }
    }
    return span;
}

static uint64_t zone_start(const FlashMedia *m, uint32_t zone)
{
    return zone * m->shape.zone_blocks;
}

/* Erased: readable, and nothing there. */
static void clear_blocks(FlashMedia *m, uint32_t zone, uint64_t block,
                         uint64_t nlb)
{
    uint64_t lba = zone_start(m, zone) + block;

    assert(block + nlb <= m->shape.zone_cap);
    flash_media_wipe(m, lba, nlb);
    flash_media_mark(m, lba, nlb, false);
}

/* The kernel writes a mapping back as it finds it: in order of our stores. */
static void publish(FlashImageZone *z, uint64_t was)
{
    __atomic_store_n(&z->was, was, __ATOMIC_RELEASE);
}

static void zone_empty(FlashMedia *m, uint32_t zone)
{
    FlashImageZone *z = &m->zones[zone];
    uint64_t from = z->was > z->wp ? z->was : z->wp;

    if (z->ahead > from) {
        clear_blocks(m, zone, from, z->ahead - from);
    }
    z->wp = 0;
    z->padded = 0;
    z->ahead = 0;
    z->flags &= ~(FLASH_ZONE_FINISHED | FLASH_ZONE_EXT_VALID |
                  FLASH_ZONE_WINDOW | FLASH_ZONE_BY_DRIVE);
}

void flash_erase_begin(FlashMedia *m, uint32_t zone, uint64_t now)
{
    FlashImageZone *z = &m->zones[zone];

    /* a reset of an empty zone is answered before another one's erases end */
    flash_erase_end(m, zone);
    if (m->journal) {
        flash_journal_add(m->journal, FLASH_JOURNAL_RESET, zone, now, 0);
    }
    z->was_padded = z->padded;
    z->was_flags = z->flags & FLASH_ZONE_WAS_FLAGS;
    z->seed = now ^ now >> 32;
    publish(z, z->wp);
    zone_empty(m, zone);
    z->erases++;
    assert(!z->wp && z->was <= m->shape.zone_cap);
}

void flash_erase_block(FlashMedia *m, uint32_t zone, uint32_t place, uint64_t n)
{
    EraseBlock b = { .zone = zone, .place = place, .n = n };

    m->zones[zone].worn++;
    if (m->journal) {
        flash_journal_add(m->journal, FLASH_JOURNAL_ERASE, zone, n, place);
    }
    for (uint32_t unit = 0; unit < units_per_block(m); unit++) {
        Span span = unit_span(m, b, unit);
        uint64_t lba = zone_start(m, zone) + span.block;

        if (!span.nlb) {
            break;              /* so are those behind it */
        }
        for (uint64_t i = 0; i < span.nlb; i++) {
            if (flash_media_bad(m, lba + i, 1)) {
                /* half a program must not come back as if it were data */
                flash_media_wipe(m, lba + i, 1);
            }
        }
        flash_media_mark(m, lba, span.nlb, true);
    }
}

static bool block_begun(const FlashMedia *m, EraseBlock b)
{
    for (uint32_t unit = 0; unit < units_per_block(m); unit++) {
        Span span = unit_span(m, b, unit);

        for (uint64_t i = 0; i < span.nlb; i++) {
            if (!flash_media_bad(m, zone_start(m, b.zone) + span.block + i,
                                 1)) {
                return false;
            }
        }
    }
    return true;
}

void flash_erase_end(FlashMedia *m, uint32_t zone)
{
    FlashImageZone *z = &m->zones[zone];

    if (z->was) {
        assert(z->was <= m->shape.zone_cap);
        if (m->journal) {
            flash_journal_add(m->journal, FLASH_JOURNAL_ERASED, zone, 0, 0);
        }
        flash_media_mark(m, zone_start(m, zone), z->was, true);
        clear_blocks(m, zone, 0, z->was);
        publish(z, 0);
    }
}

/* xorshift64*, whose high bits are the good ones */
static Fate draw(uint64_t *random)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return (*random * 0x2545f4914f6cdd1dull >> 32) % FATES;
}

static void block_tear(FlashMedia *m, EraseBlock b, uint64_t *random)
{
    for (uint32_t unit = 0; unit < units_per_block(m); unit++) {
        Span span = unit_span(m, b, unit);
        uint64_t lba = zone_start(m, b.zone) + span.block;
        Fate fate = draw(random);

        if (!span.nlb) {
            continue;           /* its fate is drawn all the same */
        }
        if (fate != FATE_KEPT) {
            flash_media_wipe(m, lba, span.nlb);
        }
        flash_media_mark(m, lba, span.nlb, fate == FATE_ERROR);
    }
}

void flash_erase_cut(FlashMedia *m, uint32_t zone)
{
    FlashImageZone *z = &m->zones[zone];
    uint64_t was = z->was, end = was;
    uint64_t random = ((uint64_t)z->seed << 32 | zone) + 1;
    EraseBlock b = { .zone = zone };
    Fate fate;

    if (!was) {
        return;
    }
    zone_empty(m, zone);
    draw(&random);              /* seeds that are alike begin alike */
    fate = draw(&random);
    if (fate == FATE_EMPTY) {
        flash_erase_end(m, zone);
        return;
    }
    for (b.place = 0; b.place < m->shape.zone_dies; b.place++) {
        for (b.n = 0; unit_span(m, b, 0).nlb; b.n++) {
            uint64_t first = unit_span(m, b, 0).block;

            if (block_begun(m, b)) {
                end = fate == FATE_SHORT && first < end ? first : end;
                block_tear(m, b, &random);
            }
        }
    }
    assert(end <= was);
    if (end < was) {
        clear_blocks(m, zone, end, was - end);
        z->was_flags &= ~(FLASH_ZONE_FINISHED | FLASH_ZONE_BY_DRIVE);
        /* the cells behind it still have to be erased */
        z->was_padded = z->was_padded > was ? z->was_padded : was;
    }
    z->wp = end;
    z->padded = z->was_padded;
    z->flags |= z->was_flags;
    publish(z, 0);
}
