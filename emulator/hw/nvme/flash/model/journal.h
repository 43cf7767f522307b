/*
 * The journal: everything that changes what a power cut would leave.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A file of records in the order of events: blocks that the buffer takes, with
 * their data; programs, resets and erases as they begin and end; zones that are
 * finished; and notes of the guest in between.  The same calls of media.h and
 * erase.h, made in that order on an empty image, lead to the image at each
 * instant.  So one run shows what all cuts of it would leave.
 *
 * Off unless the owner opens one.  Below all rooms of the model.  Pure C; the
 * owner serialises.
 */

#ifndef HW_NVME_FLASH_JOURNAL_H
#define HW_NVME_FLASH_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

typedef enum FlashJournalKind {
    FLASH_JOURNAL_SHAPE,        /* the first one; payload: FlashShape */
    FLASH_JOURNAL_ADMIT,        /* the buffer has nlb blocks; payload: them,
                                   then their metadata */
    FLASH_JOURNAL_BEGIN,        /* a program of nlb blocks */
    FLASH_JOURNAL_COMMIT,       /* ... ended */
    FLASH_JOURNAL_RESET,        /* of a zone; block: the seed's instant */
    FLASH_JOURNAL_ERASE,        /* block: the n-th erase block of place nlb */
    FLASH_JOURNAL_ERASED,       /* all of the zone, or as good as that */
    FLASH_JOURNAL_ZONE,         /* payload: FlashImageZone, as it is now */
    FLASH_JOURNAL_CUT,          /* the power went */
    FLASH_JOURNAL_NOTE,         /* payload: the guest's words */
} FlashJournalKind;

typedef struct FlashJournalRecord {
    uint64_t now;
    uint32_t kind;
    uint32_t zone;
    uint64_t block;             /* from the zone's start */
    uint32_t nlb;
    uint32_t bytes;             /* that follow */
} FlashJournalRecord;

typedef struct FlashJournal {
    int fd;
    const uint64_t *now;
} FlashJournal;

/* NULL, or what is wrong, in words (to be freed). */
char *flash_journal_open(FlashJournal *j, const char *path,
                         const uint64_t *now);
void flash_journal_close(FlashJournal *j);

/*
 * Add a record; its payload is in two parts, either of which may be empty.  A
 * journal with a gap would say what never was, so the process ends if it
 * cannot be written.
 */
void flash_journal_add(FlashJournal *j, FlashJournalKind kind, uint32_t zone,
                       uint64_t block, uint32_t nlb);
void flash_journal_put(FlashJournal *j, FlashJournalRecord r,
                       const void *data, size_t len, const void *more,
                       size_t more_len);

#endif
