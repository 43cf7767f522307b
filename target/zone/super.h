/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The superblock log: the newest record says which checkpoint is durable and whether the device
 * was stopped cleanly. Apart from checkpoints, for these flush lanes, and a lane's first write
 * asks for the log.
 *
 * super->lock serializes records; it is never held across a flush of lanes. All of it sleeps.
 */
#ifndef MTFTL_SUPER_H
#define MTFTL_SUPER_H

#include <linux/mutex.h>

#include "device/ftl.h"

/* What a mount knows of the newest record that it finds. */
enum mtftl_super_age {
	MTFTL_SUPER_NEWEST,
	MTFTL_SUPER_FIRST,		/* in block 0 of its zone: what was before it is gone */
	MTFTL_SUPER_OLDER,		/* a block that cannot be read may be a newer one */
};

struct mtftl_super {
	struct mutex lock;		/* a record: what follows */
	void *block;
	struct mtftl_sb_info info;	/* the newest record */
	struct mtftl_sb_info back;	/* as it reads, for an assertion */
	u32 zone;			/* 0 or 1: where the log goes on */
	u32 wp;
	bool clean;			/* the newest record says so */
	enum mtftl_super_age age;	/* of the one that the mount found */
};

int mtftl_super_alloc(struct mtftl *ftl);
void mtftl_super_free(struct mtftl *ftl);

/*
 * The newest record on the device becomes ours. Before a mount: -ENODATA: there is none at all;
 * -EPROTO: there is one that we do not know; -EINVAL: one that contradicts itself.
 */
int mtftl_super_load(struct mtftl *ftl);
/*
 * @ours: no other writer has written a record since. An error says neither: it may pass. Takes
 * memory.
 */
int mtftl_super_is_ours(struct mtftl *ftl, bool *ours);
/*
 * The newest record. For mounting, before there is another one; later on only for what all records
 * have in common.
 */
const struct mtftl_sb_info *mtftl_super_info(const struct mtftl *ftl);
/* Mounting: a write to the zone that the log left may have failed, and left it active. */
void mtftl_super_finish_other(struct mtftl *ftl);

static inline enum mtftl_super_age mtftl_super_age(const struct mtftl *ftl)
{
	return ftl->super->age;
}

/* Recovery found that there is more to say than the record does. */
void mtftl_super_distrust(struct mtftl *ftl);

int mtftl_super_make_dirty(struct mtftl *ftl);

static inline bool mtftl_super_is_clean(const struct mtftl *ftl)
{
	return READ_ONCE(ftl->super->clean);
}

/* Before the first write after a clean mount or stop: the checkpoint is not all any more. */
static inline int mtftl_super_dirty(struct mtftl *ftl)
{
	return unlikely(mtftl_super_is_clean(ftl)) ? mtftl_super_make_dirty(ftl) : 0;
}

/* Makes the checkpoint that @named names durable. Its blocks are written. */
int mtftl_super_checkpoint(struct mtftl *ftl, const struct mtftl_sb_info *named, bool clean);

#endif
