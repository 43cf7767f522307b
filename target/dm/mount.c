// SPDX-License-Identifier: GPL-2.0
/*
 * Sets the components up and tears them down: see target.h.
 *
 * All that a mount needs is made ahead of it, in the order of the layers: while a device is
 * suspended, memory may be waiting for it. Of a mount that failed nothing is left; the next one
 * has to get it then.
 */
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "device/device.h"
#include "device/seq.h"
#include "device/space.h"
#include "dm/target.h"
#include "durable/checkpoint.h"
#include "durable/flush.h"
#include "durable/recover.h"
#include "gc/gc.h"
#include "io/lane.h"
#include "map/map.h"
#include "map/pending.h"
#include "map/ring.h"
#include "zone/stream.h"
#include "zone/super.h"
#include "zone/write.h"
#include "zone/zones.h"

#define TIB_SHIFT		28	/* blocks of a TiB */

/* Each is freed whether it was made in full, in part, or not at all. */
static const struct component {
	const char *name;
	int (*alloc)(struct mtftl *ftl);
	void (*free)(struct mtftl *ftl);
} components[] = {
	{ "device",		mtftl_device_prepare,	mtftl_device_unprepare },
	{ "space",		mtftl_space_alloc,	mtftl_space_free },
	{ "pending",		mtftl_pending_alloc,	mtftl_pending_free },
	{ "rings",		mtftl_rings_alloc,	mtftl_rings_free },
	{ "map",		mtftl_map_alloc,	mtftl_map_free },
	{ "zones",		mtftl_zones_alloc,	mtftl_zones_free },
	{ "streams",		mtftl_streams_alloc,	mtftl_streams_free },
	{ "writes",		mtftl_writes_alloc,	mtftl_writes_free },
	{ "lanes",		mtftl_lanes_alloc,	mtftl_lanes_free },
	{ "flush",		mtftl_flush_alloc,	mtftl_flush_free },
	{ "checkpoints",	mtftl_checkpoints_alloc, mtftl_checkpoints_free },
	{ "gc",			mtftl_gc_alloc,		mtftl_gc_free },
};

int mtftl_prepare(struct mtftl_target *target)
{
	unsigned int i;
	int r = 0;

	target->prepared = true;
	for (i = 0; !r && i < ARRAY_SIZE(components); i++)
		r = components[i].alloc(&target->ftl);
	/* A killed process gets no thread, and no memory that takes long to find. */
	return r && fatal_signal_pending(current) ? -EINTR : r;
}

static int start_flusher(struct mtftl *ftl)
{
	mtftl_flush_start(ftl);
	return 0;
}

static void stop_flusher(struct mtftl *ftl)
{
	mtftl_flush_stop(ftl);
	/* What landed last may have left a zone to be closed. */
	mtftl_zones_settle(ftl);
}

/* After a crash: so that the next mount does not have to look at the same again. */
static int first_checkpoint(struct mtftl *ftl)
{
	int r = 0;

	if (!mtftl_super_is_clean(ftl) && !mtftl_is_read_only(ftl))
		r = mtftl_checkpoint_mount(ftl);
	/* Nothing can be logged any more: what is there can be read. */
	return mtftl_is_read_only(ftl) ? 0 : r;
}

static void stop_checkpoints(struct mtftl *ftl)
{
	mtftl_checkpoints_stop(ftl);
	mtftl_zones_settle(ftl);
}

static int start_gc(struct mtftl *ftl)
{
	mtftl_gc_start(ftl);
	return 0;
}

/* Each is stopped whether it was started or not, from the last to the first. */
static const struct step {
	const char *name;
	int (*start)(struct mtftl *ftl);
	void (*stop)(struct mtftl *ftl);
} steps[] = {
	{ "recover",		mtftl_recover },
	{ "flusher",		start_flusher,		stop_flusher },
	{ "writers",		mtftl_lanes_start,	mtftl_lanes_stop },
	{ "first checkpoint",	first_checkpoint,	stop_checkpoints },
	{ "gc",			start_gc,		mtftl_gc_stop },
};

void mtftl_unmount(struct mtftl_target *target)
{
	struct mtftl *ftl = &target->ftl;
	unsigned int i;

	for (i = ARRAY_SIZE(steps); i-- > 0; )
		if (steps[i].stop)
			steps[i].stop(ftl);
	mtftl_writes_settle(ftl);
	for (i = ARRAY_SIZE(components); i-- > 0; )
		components[i].free(ftl);
	mtftl_device_begin(ftl, false);
	target->mounted = false;
	target->prepared = false;
}

/* What grows with the device: time to mount, and memory but for the buffers. */
static void tell_cost(struct mtftl *ftl, u64 us)
{
	u64 blocks = ftl->config.logical_blocks;
	u64 bytes = mtftl_map_bytes(ftl) + mtftl_checkpoint_bytes(ftl) +
		    ftl->config.nr_zones * sizeof(struct mtftl_zone);

	mtftl_info(ftl, "mount: %llu us in all, %llu us per TiB; map and zones: %llu KiB, %llu KiB per TiB",
		   us, div64_u64(us << TIB_SHIFT, blocks), bytes >> 10,
		   div64_u64((bytes >> 10) << TIB_SHIFT, blocks));
}

int mtftl_mount(struct mtftl_target *target)
{
	unsigned int i, flags = memalloc_noio_save();
	struct mtftl *ftl = &target->ftl;
	ktime_t start = ktime_get(), begin;
	bool may_write;
	int r;

	lockdep_assert_held(&target->life);
	may_write = (dm_table_get_mode(target->ti->table) & BLK_OPEN_WRITE) &&
		    !(mtftl_super_info(ftl)->flags & MTFTL_SB_READONLY);
	mtftl_device_begin(ftl, !may_write);
	r = target->prepared ? 0 : mtftl_prepare(target);
	for (i = 0; !r && i < ARRAY_SIZE(steps); i++) {
		begin = ktime_get();
		r = steps[i].start(ftl);
		mtftl_info(ftl, "mount: %s: %lld us%s", steps[i].name,
			   ktime_us_delta(ktime_get(), begin), r ? ", failed" : "");
	}
	if (r) {
		mtftl_unmount(target);
	} else {
		tell_cost(ftl, ktime_us_delta(ktime_get(), start));
		mtftl_origin_begin(&target->origin);
	}
	target->mounted = !r;
	memalloc_noio_restore(flags);
	return r;
}

void mtftl_pause(struct mtftl_target *target)
{
	unsigned long end = jiffies + MTFTL_LAST_HOPE;
	struct mtftl *ftl = &target->ftl;

	lockdep_assert_held(&target->life);
	mtftl_pause_set(ftl, true);
	mtftl_space_wake(ftl);
	while (!mtftl_pause_is_reached(ftl) && time_before(jiffies, end))
		schedule_timeout_idle(1);
	mtftl_pause_silence(ftl);
}

static void end_pause(struct mtftl *ftl)
{
	if (!mtftl_is_paused(ftl))
		return;
	mtftl_seq_forget_cache(ftl);
	mtftl_pause_set(ftl, false);
	mtftl_streams_close_idle(ftl);
	mtftl_space_appeared(ftl);
	mtftl_gc_resume(ftl);
}

/* Another system may have mounted the device while the machine slept. */
static int look_at_log(struct mtftl_target *target)
{
	unsigned int flags = memalloc_noio_save();
	struct mtftl *ftl = &target->ftl;
	bool ours = true;
	int r = 0;

	if (target->slept && !mtftl_is_read_only(ftl))
		r = mtftl_super_is_ours(ftl, &ours);
	if (!r && !ours)
		mtftl_set_read_only(ftl, "the device was written to while the machine slept");
	target->slept = target->slept && r;
	memalloc_noio_restore(flags);
	return r;
}

int mtftl_resume(struct mtftl_target *target)
{
	int r;

	lockdep_assert_held(&target->life);
	/* A suspend and a hibernation end in any order: the device goes on after both. */
	if (target->suspended || target->frozen)
		return 0;
	r = look_at_log(target);
	if (r) {
		mtftl_warn(&target->ftl, "the superblock log cannot be read after a sleep (%d), nothing is written until it can",
			   r);
		return r;
	}
	end_pause(&target->ftl);
	mtftl_gc_start(&target->ftl);
	return 0;
}

void mtftl_thaw(struct mtftl_target *target)
{
	lockdep_assert_held(&target->life);
	target->slept |= target->frozen;
	target->frozen = false;
}

int mtftl_quiesce(struct mtftl_target *target, bool clean)
{
	struct mtftl *ftl = &target->ftl;
	unsigned int flags;
	int r = 0, said = 0;

	lockdep_assert_held(&target->life);
	if (!target->mounted || target->handed_over)
		return 0;
	flags = memalloc_noio_save();
	mtftl_thaw(target);
	r = look_at_log(target);
	if (r)
		goto out;
	end_pause(ftl);
	mtftl_gc_stop(ftl);
	if (!mtftl_is_read_only(ftl))
		r = mtftl_flush_sync(ftl);
	mtftl_zones_settle(ftl);
	/* After the last zone was opened: that asks for a checkpoint. */
	mtftl_checkpoints_settle(ftl);
	/* Only now: what was buffered, and not written yet, had not made it dirty. */
	if (!r && !mtftl_is_read_only(ftl) && !mtftl_super_is_clean(ftl))
		said = mtftl_checkpoint(ftl, clean);
out:
	if (r || said)
		mtftl_err(ftl, "clean stop failed (%d), the next mount recovers", r ?: said);
	memalloc_noio_restore(flags);
	return r;
}
