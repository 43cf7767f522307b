// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers: see seq.h.
 *
 * A device flush that failed leaves open what the drive has dropped of all that it was given since
 * the one before. So nothing may be called durable any more, and nothing reset or put into a
 * checkpoint: only recovery, which looks at what is there, can tell. Unless nothing was given: all
 * that had landed was flushed before, and what was in flight meanwhile goes with FUA or fails. Each
 * write finds that out for itself when it lands.
 */
#include "device/seq.h"

#include <linux/slab.h>

#include "device/device.h"
#include "device/trace.h"

int mtftl_seq_alloc(struct mtftl *ftl)
{
	struct mtftl_seq *seq = kzalloc_obj(*seq, GFP_KERNEL);

	if (!seq)
		return -ENOMEM;
	mutex_init(&seq->flushing);
	INIT_LIST_HEAD(&seq->unordered);
	ftl->seq = seq;
	return 0;
}

void mtftl_seq_free(struct mtftl *ftl)
{
	kfree(ftl->seq);
	ftl->seq = NULL;
}

void mtftl_seq_set_last(struct mtftl *ftl, u64 last, u64 durable)
{
	mtftl_assert(durable <= last && !(last >> MTFTL_SEQ_BITS), "%llu, durable %llu", last,
		     durable);
	atomic64_set(&ftl->seq->last, last);
	ftl->seq->durable = durable;
	ftl->seq->unsure = false;
	ftl->seq->flushed = U64_MAX;
	/* What the drive was given before this mount may be in its cache. */
	ftl->seq->known = false;
}

void mtftl_seq_set_ckpt(struct mtftl *ftl, u64 number)
{
	WRITE_ONCE(ftl->seq->ckpt, number);
}

void mtftl_seq_add_unordered(struct mtftl *ftl, struct mtftl_unordered *unordered)
{
	unordered->seq = U64_MAX;
	list_add(&unordered->list, &ftl->seq->unordered);
}

void mtftl_seq_remove_unordered(struct mtftl *ftl, struct mtftl_unordered *unordered)
{
	mtftl_assert(unordered->seq == U64_MAX, "%llu is in flight", unordered->seq);
	list_del(&unordered->list);
}

u64 mtftl_seq_begin_unordered(struct mtftl *ftl, struct mtftl_unordered *unordered)
{
	mtftl_assert(unordered->seq == U64_MAX, "%llu is in flight", unordered->seq);
	WRITE_ONCE(unordered->seq, mtftl_seq_last(ftl) + 1);
	/* Pairs with mtftl_seq_before_unordered(). */
	smp_mb();
	return mtftl_seq_draw(ftl);
}

void mtftl_seq_end_unordered(struct mtftl_unordered *unordered)
{
	mtftl_assert(unordered->seq != U64_MAX);
	/* Pairs with mtftl_seq_before_unordered(): without the number it sees what was written. */
	smp_store_release(&unordered->seq, U64_MAX);
}

u64 mtftl_seq_before_unordered(struct mtftl *ftl, u64 drawn)
{
	struct mtftl_unordered *unordered;

	/* Pairs with mtftl_seq_begin_unordered(): a reader of the number sees the bound, too. */
	smp_rmb();
	list_for_each_entry(unordered, &ftl->seq->unordered, list) {
		/* Pairs with mtftl_seq_end_unordered(). */
		u64 seq = smp_load_acquire(&unordered->seq);

		drawn = min(drawn, seq - 1);
	}
	return drawn;
}

bool mtftl_seq_has_unordered(struct mtftl *ftl)
{
	return mtftl_seq_before_unordered(ftl, U64_MAX - 1) != U64_MAX - 1;
}

/* It serves all callers that asked before it began. */
static int flush_now(struct mtftl *ftl)
{
	struct block_device *bdev = mtftl_bdev(ftl);
	struct mtftl_seq *seq = ftl->seq;
	bool sent;
	u64 taken;
	int r;

	lockdep_assert_held(&seq->flushing);
	mtftl_pause_heed(ftl);
	WRITE_ONCE(seq->flushes, seq->flushes + 1);
	/* Pairs with mtftl_flush_device(). */
	smp_mb();
	taken = mtftl_taken(ftl);
	mtftl_count(ftl, asked, 1);
	/* The kernel sends none if it thinks that the drive has no cache. That may change. */
	sent = bdev_write_cache(bdev);
	r = READ_ONCE(seq->unsure) ? -EIO : blkdev_issue_flush(bdev);
	mtftl_count(ftl, answered, 1);
	if (!r) {
		sent = sent && bdev_write_cache(bdev);
		if (sent)
			WRITE_ONCE(seq->flushed, taken);
		WRITE_ONCE(seq->known, sent);
	} else {
		WRITE_ONCE(seq->failures, seq->failures + 1);
		/* Pairs with mtftl_seq_landed(). */
		smp_mb();
		if (mtftl_taken(ftl) != seq->flushed)
			WRITE_ONCE(seq->unsure, true);
	}
	if (READ_ONCE(seq->unsure))
		mtftl_set_read_only(ftl, "a flush failed: what the device dropped is not known");
	return r;
}

void mtftl_seq_landed(struct mtftl *ftl, unsigned long failures)
{
	mtftl_count(ftl, taken, 1);
	/* Pairs with flush_now(): a failed flush sees what was taken, or we see that it failed. */
	smp_mb();
	if (unlikely(failures != mtftl_seq_failures(ftl)))
		WRITE_ONCE(ftl->seq->unsure, true);
}

/*
 * The device was in other hands: what its cache holds is not known. Before a pause ends, so a flush
 * that waits for that, with the mutex, is sent afterwards.
 */
void mtftl_seq_forget_cache(struct mtftl *ftl)
{
	WRITE_ONCE(ftl->seq->known, false);
}

bool mtftl_seq_is_flushed(struct mtftl *ftl)
{
	struct mtftl_seq *seq = ftl->seq;

	return READ_ONCE(seq->known) && !READ_ONCE(seq->unsure) &&
	       mtftl_taken(ftl) == READ_ONCE(seq->flushed);
}

/*
 * The device's part of a flush: without an error all units up to @drawn are durable. One at a time:
 * what one that fails has dropped, another one that overlaps it would call durable. Sleeps.
 */
int mtftl_flush_device(struct mtftl *ftl, u64 drawn)
{
	struct mtftl_seq *seq = ftl->seq;
	unsigned long before;
	int r;

	/* What has landed by now is of no flush that has begun already. Pairs with flush_now(). */
	smp_mb();
	before = READ_ONCE(seq->flushes);
	mutex_lock(&seq->flushing);
	mtftl_assert(seq->durable <= mtftl_seq_last(ftl) && drawn <= mtftl_seq_last(ftl),
		     "%llu, durable %llu", drawn, seq->durable);
	if (seq->flushes == before)
		seq->result = flush_now(ftl);
	r = seq->result;
	if (!r && drawn > seq->durable)
		WRITE_ONCE(seq->durable, drawn);
	mutex_unlock(&seq->flushing);
	trace_mtftl_flush(mtftl_dev(ftl), seq->durable, r);
	return r;
}

int mtftl_flush_cache(struct mtftl *ftl, u64 drawn)
{
	struct mtftl_seq *seq = ftl->seq;
	bool flushed;

	if (!mtftl_seq_is_flushed(ftl))
		return mtftl_flush_device(ftl, drawn);
	mutex_lock(&seq->flushing);
	/* One may have failed meanwhile. */
	flushed = mtftl_seq_is_flushed(ftl);
	if (flushed && drawn > seq->durable)
		WRITE_ONCE(seq->durable, drawn);
	mutex_unlock(&seq->flushing);
	if (!flushed)
		return mtftl_flush_device(ftl, drawn);
	trace_mtftl_flush(mtftl_dev(ftl), seq->durable, 0);
	return 0;
}
