// SPDX-License-Identifier: GPL-2.0
/*
 * A mount's work, spread over CPUs: see spread.h.
 */
#include "device/spread.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "device/device.h"
#include "device/inflight.h"
#include "device/thread.h"

/* Parts may wait for the drive, and a drive is quick only with several reads in flight. */
#define WORKERS_PER_CPU	4u
#define MOST_WORKERS	32u

struct worker {
	struct work_struct work;
	struct mtftl_spread *spread;
	void *buf;
};

struct mtftl_spread {
	struct workqueue_struct *wq;
	mtftl_part_fn part;
	void *private;
	u32 nr;
	atomic_t next;		/* the first part that is not begun */
	int error;		/* the first one */
	struct mtftl_inflight helpers;	/* that were asked for help, and may be at it */
	u32 nr_workers;		/* that have a buffer */
	struct worker *workers;	/* the first one is the caller */
};

static void do_parts(struct worker *worker, bool may_be_killed)
{
	struct mtftl_spread *spread = worker->spread;

	while (!READ_ONCE(spread->error)) {
		u32 number = atomic_inc_return(&spread->next) - 1;
		int r;

		if (number >= spread->nr)
			return;
		r = spread->part(spread->private, number, worker->buf);
		if (mtftl_interrupted() && may_be_killed && !r)
			r = -EINTR;
		if (r)
			cmpxchg(&spread->error, 0, r);
	}
}

static void help(struct work_struct *work)
{
	struct worker *worker = container_of(work, struct worker, work);
	unsigned int flags = memalloc_noio_save();

	do_parts(worker, false);
	memalloc_noio_restore(flags);
	mtftl_inflight_put(&worker->spread->helpers);
}

int mtftl_spread(struct mtftl_spread *spread, u32 nr, mtftl_part_fn part, void *private)
{
	u32 i, workers = min(max(nr, 1u), spread->nr_workers);

	mtftl_assert(workers, "%u parts after a mount", nr);
	spread->part = part;
	spread->private = private;
	spread->nr = nr;
	spread->error = 0;
	atomic_set(&spread->next, 0);
	mtftl_inflight_begin(&spread->helpers);
	for (i = 1; i < workers; i++) {
		mtftl_inflight_get(&spread->helpers);
		queue_work(spread->wq, &spread->workers[i].work);
	}
	do_parts(&spread->workers[0], true);
	for (i = 1; i < workers; i++)
		if (cancel_work(&spread->workers[i].work))
			mtftl_inflight_put(&spread->helpers);
	mtftl_inflight_wait(&spread->helpers);
	mtftl_assert(spread->error || (u32)atomic_read(&spread->next) >= nr, "%d of %u",
		     atomic_read(&spread->next), nr);
	return spread->error;
}

struct mtftl_spread *mtftl_spread_alloc(struct mtftl *ftl)
{
	u32 i, nr = min(WORKERS_PER_CPU * mtftl_thread_nr_cpus(), MOST_WORKERS);
	struct mtftl_spread *spread = kzalloc_obj(*spread, GFP_KERNEL);

	if (!spread)
		return NULL;
	init_completion(&spread->helpers.done);
	spread->workers = kvcalloc(nr + 1, sizeof(*spread->workers), GFP_KERNEL);
	spread->wq = alloc_workqueue("mtftl-mount-%s", WQ_UNBOUND, 0, mtftl_disk_name(ftl));
	for (i = 0; spread->workers && i <= nr; i++) {
		struct worker *worker = &spread->workers[i];
		/* It is slower without helpers, but not worth a search for memory. */
		gfp_t gfp = i ? GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN : GFP_KERNEL;

		worker->buf = (void *)__get_free_pages(gfp, MTFTL_BUFFER_ORDER);
		if (!worker->buf)
			break;
		INIT_WORK(&worker->work, help);
		worker->spread = spread;
		spread->nr_workers = i + 1;
	}
	if (!spread->nr_workers || !spread->wq) {
		mtftl_spread_free(spread);
		return NULL;
	}
	return spread;
}

/*
 * The queue stays: if it were destroyed in a resume, the resume might wait for another creator of
 * queues, which waits for memory, which waits for the device.
 */
void mtftl_spread_shrink(struct mtftl_spread *spread)
{
	while (spread->nr_workers)
		free_pages((unsigned long)spread->workers[--spread->nr_workers].buf,
			   MTFTL_BUFFER_ORDER);
}

void mtftl_spread_free(struct mtftl_spread *spread)
{
	if (!spread)
		return;
	mtftl_spread_shrink(spread);
	if (spread->wq)
		destroy_workqueue(spread->wq);
	kvfree(spread->workers);
	kfree(spread);
}
