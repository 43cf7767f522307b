/*
 * A journal of the flash.  See flash-journal.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The port is 32 bits wide.  A note is its length in bytes, then its bytes,
 * four at a time.  It enters the journal as a whole, with its last word: so it
 * has a place among what the flash did.  A guest with several CPUs writes one
 * note at a time.
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "exec/address-spaces.h"
#include "system/reset.h"

#include "flash-journal.h"
#include "flash-ns.h"
#include "flash-zns.h"

#define JOURNAL_PORT    0xfa8
#define NOTE_WORDS      64

struct NvmeFlashJournal {
    FlashJournal file;
    MemoryRegion port;
    uint32_t note[NOTE_WORDS];
    uint32_t left;              /* bytes of the note that are still to come */
    uint32_t filled;            /* words */
};

/* There is one port. */
static struct NvmeFlash *nvme_flash_journal_owner;

static void nvme_flash_journal_write(void *opaque, hwaddr addr, uint64_t value,
                                     unsigned size)
{
    struct NvmeFlashJournal *j = opaque;
    FlashJournalRecord r = { .kind = FLASH_JOURNAL_NOTE };

    if (j->file.fd < 0) {
        return;                 /* on its way when the port was taken away */
    }
    if (!j->left) {
        j->filled = 0;
        j->left = MIN(value, sizeof(j->note));
        return;
    }
    j->note[j->filled++] = value;
    j->left -= MIN(j->left, sizeof(*j->note));
    if (!j->left) {
        flash_journal_put(&j->file, r, j->note,
                          j->filled * sizeof(*j->note), NULL, 0);
    }
}

static uint64_t nvme_flash_journal_read(void *opaque, hwaddr addr,
                                        unsigned size)
{
    return 0;
}

static const MemoryRegionOps nvme_flash_journal_ops = {
    .read = nvme_flash_journal_read,
    .write = nvme_flash_journal_write,
    .valid.min_access_size = 4,
    .valid.max_access_size = 4,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

bool nvme_flash_journal_check(const NvmeNamespace *ns, Error **errp)
{
    if (ns->flash_conf->personality != &nvme_flash_zns) {
        error_setg(errp, "flash.journal is of zoned drives: expected "
                   "flash.personality=zns");
    } else if (ns->params.zrwas) {
        error_setg(errp, "flash.journal knows of no windows: expected "
                   "zoned.zrwas=0");
    } else if (ns->params.zd_extension_size) {
        error_setg(errp, "flash.journal knows of no zone descriptor "
                   "extensions: expected zoned.descr_ext_size=0");
    } else if (ns->flash_conf->dev.plp) {
        error_setg(errp, "flash.journal knows of no capacitors: expected "
                   "flash.plp=off");
    } else if (ns->flash_conf->dev.tuning.wear_out) {
        error_setg(errp, "flash.journal knows of no end of life: expected "
                   "flash.wear_out=off");
    } else if (nvme_flash_journal_owner) {
        error_setg(errp, "flash.journal: another namespace has it");
    } else {
        return true;
    }
    return false;
}

/* A guest that is reset in the middle of a note begins another one. */
static void nvme_flash_journal_reset(void *opaque)
{
    struct NvmeFlashJournal *j = opaque;

    j->left = 0;
}

static bool nvme_flash_is_blank(const FlashMedia *m)
{
    for (uint64_t i = 0; i < m->shape.nr_zones; i++) {
        if (m->zones[i].wp || m->zones[i].flags || m->zones[i].erases) {
            return false;
        }
    }
    return true;
}

char *nvme_flash_journal_start(struct NvmeFlash *f, const char *path)
{
    FlashMedia *m = &f->dev.media;
    FlashJournalRecord r = { .kind = FLASH_JOURNAL_SHAPE };
    struct NvmeFlashJournal *j;
    char *why;

    if (!nvme_flash_is_blank(m)) {
        return strdup("flash.journal needs an empty flash.media");
    }
    j = g_new0(struct NvmeFlashJournal, 1);
    why = flash_journal_open(&j->file, path, &f->dev.time.now);
    if (why) {
        g_free(j);
        return why;
    }
    flash_journal_put(&j->file, r, &m->shape, sizeof(m->shape), NULL, 0);
    memory_region_init_io(&j->port, OBJECT(f->ns), &nvme_flash_journal_ops, j,
                          "flash-journal", 4);
    memory_region_add_subregion(get_system_io(), JOURNAL_PORT, &j->port);
    qemu_register_reset(nvme_flash_journal_reset, j);
    m->journal = &j->file;
    f->journal = j;
    nvme_flash_journal_owner = f;
    return NULL;
}

/* The device is closed.  CPUs may still look up the port for a while. */
void nvme_flash_journal_stop(struct NvmeFlash *f)
{
    if (nvme_flash_journal_owner == f) {
        memory_region_del_subregion(get_system_io(), &f->journal->port);
        qemu_unregister_reset(nvme_flash_journal_reset, f->journal);
        flash_journal_close(&f->journal->file);
        nvme_flash_journal_owner = NULL;
    }
}

void nvme_flash_journal_free(struct NvmeFlash *f)
{
    g_clear_pointer(&f->journal, g_free);
}
