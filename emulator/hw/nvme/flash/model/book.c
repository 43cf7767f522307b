/*
 * Time of a bus, taken in advance.  See book.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"

/* One span in place of [first, end), of which there may be none. */
static void replace(FlashBook *book, size_t first, size_t end, FlashSpan span)
{
    assert(first <= end && end <= book->nr && span.from < span.to);
    assert(!first || book->spans[first - 1].to <= span.from);
    assert(end == book->nr || span.to <= book->spans[end].from);
    if (first == end && book->nr == book->cap) {
        book->cap = book->cap ? 2 * book->cap : 16;
        book->spans = realloc(book->spans, book->cap * sizeof(*book->spans));
        assert(book->spans);
    }
    memmove(&book->spans[first + 1], &book->spans[end],
            (book->nr - end) * sizeof(*book->spans));
    book->spans[first] = span;
    book->nr = book->nr - (end - first) + 1;
}

static void forget(FlashBook *book, uint64_t now)
{
    size_t past = 0;

    while (past < book->nr && book->spans[past].to <= now) {
        past++;
    }
    if (past) {
        book->nr -= past;
        memmove(book->spans, &book->spans[past],
                book->nr * sizeof(*book->spans));
    }
}

uint64_t flash_book_take(FlashBook *book, uint64_t now, uint64_t from,
                         uint64_t ns)
{
    FlashSpan span = { .from = from, .to = from };
    size_t first = 0, i;

    assert(from >= now);
    if (!ns) {
        return from;
    }
    forget(book, now);
    while (first < book->nr && book->spans[first].to <= from) {
        first++;
    }
    /* all gaps up to its end are taken, so that one span is left of them */
    for (i = first; i < book->nr && book->spans[i].from < span.to + ns; i++) {
        const FlashSpan *busy = &book->spans[i];

        if (busy->from > span.to) {
            ns -= busy->from - span.to;
        } else if (busy->from < span.from) {
            span.from = busy->from;
        }
        span.to = busy->to;
    }
    span.to += ns;
    replace(book, first, i, span);
    return span.to;
}

void flash_book_free(FlashBook *book)
{
    free(book->spans);
    *book = (FlashBook) { 0 };
}
