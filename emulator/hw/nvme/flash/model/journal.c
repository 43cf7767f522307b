/*
 * The journal.  See journal.h.
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
#include <sys/uio.h>
#include <unistd.h>

#include "journal.h"

char *flash_journal_open(FlashJournal *j, const char *path,
                         const uint64_t *now)
{
    char *s;

    j->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    j->now = now;
    if (j->fd >= 0) {
        return NULL;
    }
    return asprintf(&s, "flash.journal '%s': %s", path, strerror(errno)) < 0 ?
           NULL : s;
}

void flash_journal_close(FlashJournal *j)
{
    close(j->fd);
    j->fd = -1;
}

void flash_journal_put(FlashJournal *j, FlashJournalRecord r,
                       const void *data, size_t len, const void *more,
                       size_t more_len)
{
    struct iovec parts[] = {
        { &r, sizeof(r) }, { (void *)data, len }, { (void *)more, more_len },
    };
    ssize_t done;

    r.now = *j->now;
    r.bytes = len + more_len;
    assert(r.bytes == len + more_len);
    done = writev(j->fd, parts, 3);
    if (done != (ssize_t)(sizeof(r) + len + more_len)) {
        perror("flash.journal");
        abort();
    }
}

void flash_journal_add(FlashJournal *j, FlashJournalKind kind, uint32_t zone,
                       uint64_t block, uint32_t nlb)
{
    flash_journal_put(j, (FlashJournalRecord) {
        .kind = kind, .zone = zone, .block = block, .nlb = nlb,
    }, NULL, 0, NULL, 0);
}
