/*
 * How long the cell array takes.  See cell.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <stdio.h>

#include "cell.h"

/* Of a program unit, however worn it is: sums of that do not wrap either. */
#define LONGEST_NS (64 * FLASH_MOST_NS)

/* A number of nanoseconds, and what follows it; NULL: there is none. */
static const char *parse_ns(const char *text, uint64_t *ns)
{
    const char *at = text;

    for (*ns = 0; *at >= '0' && *at <= '9' && *ns <= FLASH_MOST_NS; at++) {
        *ns = 10 * *ns + (*at - '0');
    }
    return at > text && *ns <= FLASH_MOST_NS ? at : NULL;
}

char *flash_cell_parse(FlashTuning *t, const char *text)
{
    const char *at = text;
    char *why = NULL;

    t->page_types = 0;
    while (at && *at && t->page_types < FLASH_PAGE_TYPES) {
        FlashPageType *type = &t->pages[t->page_types++];

        at = parse_ns(at, &type->read_ns);
        at = at && *at == '/' ? parse_ns(at + 1, &type->program_ns) : NULL;
        if (at && *at == ':' && at[1]) {
            at++;
        } else if (at && *at) {
            at = NULL;
        }
    }
    if (at && !*at) {
        return NULL;
    }
    return asprintf(&why, "flash.page_types is '%s', expected READ/PROGRAM:... "
                    "in nanoseconds, at most %u times and %llu each", text,
                    FLASH_PAGE_TYPES, FLASH_MOST_NS) < 0 ? NULL : why;
}

/* The number in its erase block of the first page of a zone's program unit. */
static uint64_t first_page(const FlashDev *dev, uint64_t unit)
{
    const FlashShape *s = &dev->media.shape;

    return unit / s->zone_dies % dev->units_per_block * s->program_pages;
}

/* The sum of so many pages' times, from that one on. */
static uint64_t program_ns(const FlashDev *dev, uint64_t page)
{
    const FlashTuning *t = &dev->tuning;
    uint64_t ns = 0;

    for (uint32_t i = 0; i < dev->media.shape.program_pages; i++) {
        ns += t->pages[(page + i) % t->page_types].program_ns;
    }
    return ns;
}

uint64_t flash_cell_erases(const FlashDev *dev, uint32_t zone)
{
    assert(zone < dev->media.shape.nr_zones);
    return dev->media.zones[zone].worn / dev->erase_blocks;
}

bool flash_cell_worn_out(const FlashDev *dev, uint32_t zone)
{
    const FlashTuning *t = &dev->tuning;

    return t->wear_out && flash_cell_erases(dev, zone) >= t->pe_cycles;
}

static uint64_t at_most_longest(unsigned __int128 ns)
{
    return ns < LONGEST_NS ? ns : LONGEST_NS;
}

/* It grows with each erase, until the block has had all that it is made for. */
static uint64_t worn_ns(const FlashDev *dev, uint32_t zone, uint64_t ns,
                        uint32_t percent)
{
    uint64_t cycles = dev->tuning.pe_cycles, n;
    unsigned __int128 scaled;

    if (!cycles || !percent) {
        return ns;
    }
    n = flash_cell_erases(dev, zone);
    n = n < cycles ? n : cycles;
    scaled = (unsigned __int128)ns * (100 * (cycles - n) + percent * n);
    return at_most_longest(scaled / (100 * cycles));
}

uint32_t flash_cell_retries(const FlashDev *dev, uint32_t zone)
{
    const FlashTuning *t = &dev->tuning;
    uint64_t n = 0;

    assert(dev->time.now >= dev->zones[zone].born);
    if (t->retry_erases) {
        n += flash_cell_erases(dev, zone) / t->retry_erases;
    }
    if (t->retry_age_ns) {
        n += (dev->time.now - dev->zones[zone].born) / t->retry_age_ns;
    }
    return n < FLASH_RETRIES ? n : FLASH_RETRIES;
}

uint64_t flash_cell_read_ns(const FlashDev *dev, uint32_t zone, uint64_t block)
{
    const FlashTuning *t = &dev->tuning;
    uint64_t ns = t->read_ns;
    uint32_t n;

    assert(block < dev->media.shape.zone_cap);
    if (!t->delay_read) {
        return 0;
    }
    if (t->page_types) {
        uint64_t page = first_page(dev, block / dev->unit_blocks) +
                        block % dev->unit_blocks / dev->row_blocks;

        ns = t->pages[page % t->page_types].read_ns;
    }
    ns = worn_ns(dev, zone, ns, t->worn_read);
    n = flash_cell_retries(dev, zone);
    return n ? at_most_longest((unsigned __int128)ns * (1 + n)) : ns;
}

uint64_t flash_cell_program_ns(const FlashDev *dev, uint32_t zone,
                               uint64_t unit)
{
    const FlashTuning *t = &dev->tuning;
    uint64_t ns = t->program_ns;

    if (!t->delay_program) {
        return 0;
    }
    if (t->page_types) {
        ns = program_ns(dev, first_page(dev, unit));
    }
    return worn_ns(dev, zone, ns, t->worn_program);
}

uint64_t flash_cell_erase_ns(const FlashDev *dev, uint32_t zone, uint64_t n)
{
    const FlashTuning *t = &dev->tuning;

    if (!t->delay_erase) {
        return 0;
    }
    return worn_ns(dev, zone, n && t->erase_more_ns ? t->erase_more_ns :
                                                      t->erase_ns,
                   t->worn_erase);
}

FlashCellTimes flash_cell_times(const FlashDev *dev)
{
    const FlashTuning *t = &dev->tuning;
    FlashCellTimes times = { 0 };

    if (!t->page_types) {
        return (FlashCellTimes) {
            t->read_ns, t->read_ns, t->program_ns, t->program_ns,
        };
    }
    for (uint32_t i = 0; i < t->page_types; i++) {
        uint64_t read = t->pages[i].read_ns, program = program_ns(dev, i);

        times.read_ns += read;
        times.program_ns += program;
        times.read_max_ns = read > times.read_max_ns ? read :
                                                       times.read_max_ns;
        times.program_max_ns = program > times.program_max_ns ?
                               program : times.program_max_ns;
    }
    times.read_ns /= t->page_types;
    times.program_ns /= t->page_types;
    return times;
}
