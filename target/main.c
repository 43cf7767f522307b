// SPDX-License-Identifier: GPL-2.0
/*
 * dm-mtftl: the side that device-mapper sees. Table line, bios, suspend and resume,
 * mount and stop. The only file that knows device-mapper's rules.
 *
 * The constructor only looks: while it runs an older table may be writing to the same
 * device. Mounting happens before the first resume. A stop drains, checkpoints and says
 * clean; it happens after each suspend, before a reboot and at the latest when the
 * target goes.
 *
 * Locks: ftl->life is held while a target is mounted, stopped or unmounted, for as long as its
 * device may hang; mounts_lock protects the list of those that have a device, not across I/O.
 */
#include "ftl.h"

#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/reboot.h>
#include <linux/slab.h>
#include <linux/suspend.h>

#define DEFAULT_BUFFER_ENTRIES	1024
#define DEFAULT_WRITE_UNIT	32
#define MIN_LOG			16384u	/* units between two checkpoints at least */
#define WORKS_WAIT	(60 * HZ)	/* for devices that hang */
#define TIB_SHIFT		28	/* blocks of a TiB */
#define MAX_DISCARD_BLOCKS	(64u << MTFTL_CHUNK_SHIFT)

static LIST_HEAD(mounts);
static DEFINE_MUTEX(mounts_lock);
static atomic_t works;			/* that tell_all() waits for */
static DECLARE_WAIT_QUEUE_HEAD(works_wait);

/* Table line */

static int parse_number(struct dm_target *ti, const char *name, const char *value,
			unsigned int least, unsigned int most, unsigned int *out)
{
	if (!kstrtouint(value, 10, out) && *out >= least && *out <= most)
		return 0;
	DMERR("%s is %s, expected %u to %u", name, value, least, most);
	ti->error = "Option out of range";
	return -EINVAL;
}

static int parse_switch(struct dm_target *ti, const char *name, const char *value,
			const char *on, const char *off, bool *out)
{
	*out = !strcmp(value, on);
	if (*out || !strcmp(value, off))
		return 0;
	DMERR("%s is %s, expected %s or %s", name, value, on, off);
	ti->error = "Option has an unknown value";
	return -EINVAL;
}

static int parse_option(struct dm_target *ti, struct mtftl_options *opt, const char *name,
			const char *value)
{
	if (!strcmp(name, "lanes")) {
		opt->lanes = 0;
		if (!strcmp(value, "percpu"))
			return 0;
		return parse_number(ti, name, value, 1, 1024, &opt->lanes);
	}
	if (!strcmp(name, "buffer_entries"))
		return parse_number(ti, name, value, 1, MTFTL_MAX_SLOTS / 4,
				    &opt->buffer_entries);
	if (!strcmp(name, "write_unit"))
		return parse_number(ti, name, value, 1, MTFTL_UNIT_MAX_ENTRIES, &opt->write_unit);
	if (!strcmp(name, "low_water"))
		return parse_number(ti, name, value, 0, U16_MAX, &opt->low_water);
	if (!strcmp(name, "hot_cold"))
		return parse_switch(ti, name, value, "on", "off", &opt->hot_cold);
	if (!strcmp(name, "placement"))
		return parse_switch(ti, name, value, "append", "write", &opt->append);
	if (!strcmp(name, "gc_policy")) {
		opt->gc_policy = mtftl_victim_policy(value);
		if (opt->gc_policy)
			return 0;
		DMERR("gc_policy is %s, expected greedy or cost-benefit", value);
		ti->error = "Unknown GC policy";
		return -EINVAL;
	}
	DMERR("option %s is not known", name);
	ti->error = "Unknown option";
	return -EINVAL;
}

static int parse_table(struct mtftl *ftl, unsigned int argc, char **argv)
{
	struct dm_target *ti = ftl->ti;
	unsigned int nr, i;
	int r;

	ftl->opt = (struct mtftl_options){
		.buffer_entries = DEFAULT_BUFFER_ENTRIES,
		.write_unit = DEFAULT_WRITE_UNIT,
		.gc_policy = mtftl_victim_policy("greedy"),
		.hot_cold = true,
		.append = true,
	};
	if (!argc)
		return 0;
	if (kstrtouint(argv[0], 10, &nr) || nr != argc - 1 || nr % 2) {
		ti->error = "Expected <device> [<number of words> {<option> <value>}]";
		return -EINVAL;
	}
	for (i = 1; i < argc; i += 2) {
		r = parse_option(ti, &ftl->opt, argv[i], argv[i + 1]);
		if (r)
			return r;
	}
	return 0;
}

/* What the device allows */

static int check_zone(struct blk_zone *zone, unsigned int index, void *data)
{
	struct mtftl *ftl = data;

	/* Of one that is offline no more may be known. */
	if (zone->cond == BLK_ZONE_COND_OFFLINE)
		return 0;
	if (zone->type != BLK_ZONE_TYPE_SEQWRITE_REQ) {
		ftl->ti->error = "Device has conventional zones, expected sequential ones only";
		return -EINVAL;
	}
	if (ftl->capacity && zone->capacity / MTFTL_BLOCK_SECTORS != ftl->capacity) {
		ftl->ti->error = "Device has zones of different capacities, expected one";
		return -EINVAL;
	}
	ftl->capacity = zone->capacity / MTFTL_BLOCK_SECTORS;
	ftl->ragged |= zone->capacity % MTFTL_BLOCK_SECTORS;
	return 0;
}

static int check_device(struct mtftl *ftl)
{
	struct request_queue *q = bdev_get_queue(ftl->bdev);
	struct dm_target *ti = ftl->ti;
	u32 sectors;
	int r;

	if (!bdev_is_zoned(ftl->bdev)) {
		ti->error = "Device is not zoned, expected a host-managed zoned device";
		return -EINVAL;
	}
	if (!mtftl_compat_host_managed(ftl->bdev)) {
		ti->error = "Device is host-aware, expected a host-managed zoned device";
		return -EINVAL;
	}
	if (bdev_logical_block_size(ftl->bdev) > MTFTL_BLOCK_SIZE) {
		ti->error = "Device has blocks of more than 4096 bytes";
		return -EINVAL;
	}
	if (bdev_zone_sectors(ftl->bdev) % MTFTL_BLOCK_SECTORS ||
	    !is_power_of_2(bdev_zone_sectors(ftl->bdev))) {
		ti->error = "Zone size is not a power of two of 4096 bytes";
		return -EINVAL;
	}
	r = blkdev_report_zones(ftl->bdev, 0, BLK_ALL_ZONES, check_zone, ftl);
	if (r < 0) {
		ti->error = ti->error ?: "Cannot report zones";
		return r;
	}
	if (!bdev_max_zone_append_sectors(ftl->bdev))
		ftl->opt.append = false;
	sectors = queue_max_sectors(q);
	if (ftl->opt.append)
		sectors = min(sectors, bdev_max_zone_append_sectors(ftl->bdev));
	/* One segment a block at worst, and one for the header: units are never split. */
	ftl->unit_max = min3(sectors / MTFTL_BLOCK_SECTORS, (u32)queue_max_segments(q),
			     (u32)MTFTL_UNIT_MAX_ENTRIES + 1);
	if (ftl->unit_max < 2) {
		ti->error = "Device takes less than 8192 bytes in one write";
		return -EINVAL;
	}
	ftl->unit_max--;
	ftl->opt.write_unit = min(ftl->opt.write_unit, ftl->unit_max);
	return 0;
}

static int check_super(struct mtftl *ftl)
{
	struct mtftl_sb_info *info = &ftl->super.info;
	u32 zone_blocks = bdev_zone_sectors(ftl->bdev) / MTFTL_BLOCK_SECTORS;
	struct dm_target *ti = ftl->ti;
	int r;

	r = mtftl_super_read(ftl, info, &ftl->super.zone, &ftl->super.wp);
	switch (r) {
	case 0:
		break;
	case -ENODATA:
		ti->error = "No superblock found, expected a device formatted by mtftl format";
		return -EINVAL;
	case -EPROTO:
		ti->error = "Superblock is of a newer version or has unknown features";
		return -EINVAL;
	case -EINVAL:
		ti->error = "Superblock contradicts itself";
		return r;
	default:
		ti->error = "Cannot read the superblock";
		return r;
	}
	if (info->zone_blocks != zone_blocks || info->nr_zones != bdev_nr_zones(ftl->bdev) ||
	    info->zone_capacity != ftl->capacity) {
		DMERR("%s: has %u zones of %u blocks that hold %u, expected %u of %u that hold %u",
		      ftl->dev->name, bdev_nr_zones(ftl->bdev), zone_blocks, ftl->capacity,
		      info->nr_zones, info->zone_blocks, info->zone_capacity);
		ti->error = "Device has other zones than it was formatted with";
		return -EINVAL;
	}
	if (ti->len != info->logical_blocks * MTFTL_BLOCK_SECTORS) {
		DMERR("%s: length is %llu sectors, expected %llu", ftl->dev->name,
		      (u64)ti->len, info->logical_blocks * MTFTL_BLOCK_SECTORS);
		ti->error = "Table has another length than the device was formatted with";
		return -EINVAL;
	}
	ftl->super.clean = info->flags & MTFTL_SB_CLEAN;
	ftl->super.ckpt_seq = info->ckpt_seq;
	/* Somebody may have formatted it since the constructor. */
	ftl->seed = mtftl_seed(info->uuid, info->key);
	return 0;
}

/*
 * Zones that users leave to GC. When they get there buffers take nothing more, and all that is
 * buffered by then has to fit into a part of it, were each unit as small as can be.
 * On a device with little to spare, the buffer gets smaller instead. Of the rest GC leaves one to
 * the flush that its victims wait for, and if there are enough one for when a write to that fails.
 */
static void set_reserve(struct mtftl *ftl)
{
	u32 ckpt = mtftl_ckpt_zones(ftl->nr_zones, ftl->capacity, ftl->logical_blocks);
	u32 zones = ftl->nr_zones - MTFTL_NR_SB_ZONES - 2 * ckpt;
	u32 payload = ftl->capacity - mtftl_footer_reserve(ftl->capacity);
	u32 needed = DIV_ROUND_UP_ULL(ftl->logical_blocks + ftl->logical_blocks / 32, payload);
	u32 spare = zones > needed ? zones - needed : 0;
	u32 most = max(spare / 2, MTFTL_GC_RESERVE_ZONES);

	ftl->kept = 1 + DIV_ROUND_UP(2 * ftl->opt.buffer_entries, ftl->capacity);
	if (ftl->kept + 2 > most) {
		ftl->kept = most - 2;
		ftl->opt.buffer_entries = (ftl->kept - 1) * ftl->capacity / 2;
		DMWARN("%s: buffer_entries is %u: more would not fit into %u spare zones",
		       ftl->dev->name, ftl->opt.buffer_entries, spare);
	}
	ftl->reserve = ftl->kept + 2;
	ftl->flush_zones = most > MTFTL_GC_RESERVE_ZONES ? 2 : 1;
	/*
	 * Free space that GC keeps ready above it is where users and GC write, what is moved
	 * already and what is being reset: some 4 zones, and one to start in.
	 */
	ftl->low_water = ftl->reserve + max(clamp(spare / 3, 2u, 5u), ftl->nr_zones / 64);
}

static int check_options(struct mtftl *ftl)
{
	struct dm_target *ti = ftl->ti;
	u32 limit;

	ftl->nr_zones = ftl->super.info.nr_zones;
	ftl->zone_shift = ilog2(ftl->super.info.zone_blocks);
	ftl->logical_blocks = ftl->super.info.logical_blocks;

	set_reserve(ftl);
	ftl->nr_lanes = ftl->opt.lanes ? ftl->opt.lanes : num_online_cpus();
	/* A lane of less than a unit would never compose a full one. */
	ftl->nr_lanes = clamp(ftl->opt.buffer_entries / ftl->opt.write_unit, 1u, ftl->nr_lanes);
	ftl->opt.write_unit = min(ftl->opt.write_unit, ftl->opt.buffer_entries);
	ftl->lane_shift = order_base_2(max(ftl->opt.buffer_entries / ftl->nr_lanes, 2u));
	if ((u64)ftl->nr_lanes << ftl->lane_shift > MTFTL_MAX_SLOTS) {
		ti->error = "buffer_entries is more than slots can be numbered";
		return -EINVAL;
	}
	limit = min_not_zero(bdev_max_open_zones(ftl->bdev), bdev_max_active_zones(ftl->bdev));
	if (mtftl_budget(limit, ftl->nr_lanes, ftl->nr_zones, &ftl->budget)) {
		ti->error = "Device allows too few open zones, expected 4 at least";
		return -EINVAL;
	}
	/* A checkpoint costs little beside what is written in between: 1% with full units. */
	ftl->log_limit = max(2u * mtftl_ckpt_stream_blocks(ftl->nr_zones, ftl->logical_blocks),
			     MIN_LOG);
	/* GC that begins when users have to wait already would never begin. */
	if (ftl->opt.low_water)
		ftl->low_water = max(ftl->opt.low_water, ftl->reserve + 1);
	return 0;
}

/* Mount and stop */

struct task_struct *mtftl_thread(int (*run)(void *data), void *data, int cpu, const char *name, ...)
{
	struct task_struct *task;
	char full[TASK_COMM_LEN];
	va_list args;

	va_start(args, name);
	vsnprintf(full, sizeof(full), name, args);
	va_end(args);
	task = kthread_create_on_node(run, data, cpu < 0 ? NUMA_NO_NODE : cpu_to_node(cpu), "%s",
				      full);
	if (IS_ERR(task))
		return NULL;
	kthread_park(task);
	return task;
}

/*
 * All that a mount needs, ahead of it: while a device is suspended, memory may be waiting for it.
 * Of a mount that failed nothing is left; the next one has to get it then.
 */
static int prepare(struct mtftl *ftl)
{
	int r;

	ftl->prepared = true;
	ftl->ckpt_wq = alloc_ordered_workqueue("mtftl-ckpt-%s", WQ_MEM_RECLAIM, ftl->dev->name);
	r = ftl->ckpt_wq ? mtftl_super_alloc(ftl) : -ENOMEM;
	r = r ?: mtftl_read_init(ftl);
	r = r ?: mtftl_map_alloc(ftl);
	r = r ?: mtftl_zones_alloc(ftl);
	r = r ?: mtftl_lanes_alloc(ftl);
	r = r ?: mtftl_gc_alloc(ftl);
	return r ?: mtftl_flush_alloc(ftl);
}

static void unmount(struct mtftl *ftl)
{
	mtftl_gc_stop(ftl);
	if (ftl->ckpt_wq)
		destroy_workqueue(ftl->ckpt_wq);
	ftl->ckpt_wq = NULL;
	if (ftl->wq)
		flush_workqueue(ftl->wq);
	mtftl_lanes_stop(ftl);
	mtftl_flush_stop(ftl);
	mtftl_gc_free(ftl);
	mtftl_zones_free(ftl);
	mtftl_lanes_free(ftl);
	mtftl_map_free(ftl);
	mtftl_read_exit(ftl);
	mtftl_super_free(ftl);
	ftl->read_only = false;
	ftl->mounted = false;
	ftl->prepared = false;
}

/* What grows with the device: time to mount, and memory but for the buffers. */
static void tell_cost(struct mtftl *ftl, u64 us)
{
	u64 bytes = ftl->logical_blocks * sizeof(*ftl->map) +
		    ftl->nr_zones * (sizeof(*ftl->zones) + sizeof(*ftl->super.records));

	mtftl_info(ftl, "mount: %llu us in all, %llu us per TiB; map and zones: %llu KiB, %llu KiB per TiB",
		   us, div64_u64(us << TIB_SHIFT, ftl->logical_blocks), bytes >> 10,
		   div64_u64((bytes >> 10) << TIB_SHIFT, ftl->logical_blocks));
}

static int mount(struct mtftl *ftl)
{
	unsigned int flags = memalloc_noio_save();
	ktime_t start = ktime_get();
	bool was_clean;
	int r;

	ftl->read_only = ftl->super.info.flags & MTFTL_SB_READONLY ||
			 !mtftl_compat_may_write(ftl->ti->table);
	r = ftl->prepared ? 0 : prepare(ftl);
	r = r ?: mtftl_recover(ftl);
	was_clean = ftl->super.clean;
	if (!r)
		mtftl_flush_start(ftl);
	r = r ?: mtftl_lanes_start(ftl);
	if (!r && !was_clean && !ftl->read_only) {
		r = mtftl_checkpoint(ftl, false);
		/* Nothing can be logged any more: what is there can be read. */
		if (READ_ONCE(ftl->read_only))
			r = 0;
	}
	if (r) {
		unmount(ftl);
	} else {
		mtftl_gc_start(ftl);
		tell_cost(ftl, ktime_us_delta(ktime_get(), start));
	}
	ftl->mounted = !r;
	memalloc_noio_restore(flags);
	return r;
}

/* Nothing is sent from here on; what is under way may take long, or for ever: 5 seconds it gets. */
static void pause_sending(struct mtftl *ftl)
{
	unsigned long end = jiffies + MTFTL_LAST_HOPE;

	lockdep_assert_held(&ftl->life);
	WRITE_ONCE(ftl->paused, true);
	wake_up_all(&ftl->drain_wait);
	while (!mtftl_all_landed(ftl) && time_before(jiffies, end))
		schedule_timeout_idle(1);
}

static void go_on(struct mtftl *ftl)
{
	lockdep_assert_held(&ftl->life);
	WRITE_ONCE(ftl->giving_back, false);
	if (!ftl->paused)
		return;
	WRITE_ONCE(ftl->paused, false);
	mtftl_zones_go_on(ftl);
	mtftl_space_appeared(ftl);
	mtftl_gc_kick(ftl);
}

/*
 * Make everything durable, and with @clean say so: nobody writes meanwhile. Durable is enough:
 * without a checkpoint the next mount takes longer, no more.
 */
static int quiesce(struct mtftl *ftl, bool clean)
{
	unsigned int flags;
	int r = 0, said = 0;

	lockdep_assert_held(&ftl->life);
	if (!ftl->mounted || ftl->handed_over)
		return 0;
	flags = memalloc_noio_save();
	go_on(ftl);
	mtftl_gc_stop(ftl);
	if (!READ_ONCE(ftl->read_only))
		r = mtftl_flush_sync(ftl);
	flush_workqueue(ftl->wq);
	/* After the last zone was opened: that asks for a checkpoint. */
	flush_workqueue(ftl->ckpt_wq);
	/* Only now: what was buffered, and not written yet, had not made it dirty. */
	if (!r && !READ_ONCE(ftl->read_only) && !READ_ONCE(ftl->super.clean))
		said = mtftl_checkpoint(ftl, clean);
	if (r || said)
		mtftl_err(ftl, "clean stop failed (%d), the next mount recovers", r ?: said);
	memalloc_noio_restore(flags);
	return r;
}

/* The device is ours from here on, unless another mtftl device has it. */
static int claim(struct mtftl *ftl)
{
	struct mapped_device *md = dm_table_get_md(ftl->ti->table);
	struct mtftl *other;
	int r = 0;

	mutex_lock(&mounts_lock);
	list_for_each_entry(other, &mounts, mounts)
		if (other->bdev == ftl->bdev && !READ_ONCE(other->handed_over) &&
		    dm_table_get_md(other->ti->table) != md)
			r = -EBUSY;
	if (!r && list_empty(&ftl->mounts))
		list_add(&ftl->mounts, &mounts);
	mutex_unlock(&mounts_lock);
	if (r)
		mtftl_err(ftl, "in use by another mtftl device, expected one for each device");
	return r;
}

static void disclaim(struct mtftl *ftl)
{
	mutex_lock(&mounts_lock);
	list_del_init(&ftl->mounts);
	mutex_unlock(&mounts_lock);
}

/* Of the same name. Device-mapper does one thing at a time to a name: it stays while we look. */
static struct mtftl *predecessor(struct mtftl *ftl)
{
	struct mtftl *other, *found = NULL;

	mutex_lock(&mounts_lock);
	list_for_each_entry(other, &mounts, mounts)
		if (other != ftl && other->bdev == ftl->bdev && !READ_ONCE(other->handed_over))
			found = other;
	mutex_unlock(&mounts_lock);
	return found;
}

/*
 * The table that this one replaces still holds what is not on flash: it stops first, and for
 * good. Device-mapper destroys it only when this one is at work already.
 */
static int stop_others(struct mtftl *ftl)
{
	struct mtftl *other;
	int r = claim(ftl);

	while (!r && (other = predecessor(ftl))) {
		mutex_lock(&other->life);
		r = quiesce(other, true);
		if (!r)
			WRITE_ONCE(other->handed_over, true);
		mutex_unlock(&other->life);
	}
	return r;
}

static void work_ended(void)
{
	if (atomic_dec_and_test(&works))
		wake_up_all(&works_wait);
}

/*
 * What happens to the machine. Before a reboot users may go on until it stops: what they write must
 * be looked for. What wakes up from hibernation has the map of when the image was taken, so nothing
 * may be written from then on, also not while the image is. The time to stop is when users are
 * frozen and devices are not yet: that is when drivers prepare.
 */
static enum {
	MACHINE_REBOOTS,
	MACHINE_HIBERNATES,
	MACHINE_WOKE_UP,
} machine;			/* what works do: one thing at a time */
static bool hibernating;	/* from before users are frozen to after they are thawed */

/* Somebody may have mounted the device while the machine slept. */
static bool log_is_ours(struct mtftl *ftl)
{
	struct mtftl_sb_info *info = kzalloc(sizeof(*info), GFP_NOIO);
	u32 zone, wp;
	bool ours;

	ours = info && !mtftl_super_read(ftl, info, &zone, &wp) &&
	       info->generation == ftl->super.info.generation;
	kfree(info);
	return ours;
}

static void woke_up(struct mtftl *ftl)
{
	unsigned int flags = memalloc_noio_save();

	if (!READ_ONCE(ftl->read_only) && !log_is_ours(ftl))
		mtftl_set_read_only(ftl, "the device was written to while the machine slept");
	if (!ftl->suspended) {
		go_on(ftl);
		mtftl_gc_start(ftl);
	}
	memalloc_noio_restore(flags);
}

static void machine_work(struct work_struct *work)
{
	struct mtftl *ftl = container_of(work, struct mtftl, machine_work);

	mutex_lock(&ftl->life);
	if (ftl->mounted && !ftl->handed_over) {
		if (machine == MACHINE_WOKE_UP) {
			woke_up(ftl);
		} else if (machine == MACHINE_REBOOTS || !ftl->paused) {
			quiesce(ftl, machine == MACHINE_HIBERNATES);
			if (machine == MACHINE_HIBERNATES)
				pause_sending(ftl);
		}
	}
	mutex_unlock(&ftl->life);
	work_ended();
}

/* All at once: a device that hangs keeps no other waiting. */
static int tell_all(int what)
{
	struct mtftl *ftl;

	mutex_lock(&mounts_lock);
	machine = what;
	list_for_each_entry(ftl, &mounts, mounts) {
		atomic_inc(&works);
		if (!queue_work(system_unbound_wq, &ftl->machine_work))
			atomic_dec(&works);
	}
	mutex_unlock(&mounts_lock);
	if (wait_event_timeout(works_wait, !atomic_read(&works), WORKS_WAIT))
		return 0;
	DMERR("a device does not answer");
	return -EBUSY;
}

static int reboot_event(struct notifier_block *nb, unsigned long event, void *data)
{
	tell_all(MACHINE_REBOOTS);
	return NOTIFY_DONE;
}

static int pm_event(struct notifier_block *nb, unsigned long event, void *data)
{
	if (event == PM_HIBERNATION_PREPARE)
		hibernating = true;
	if (event == PM_POST_HIBERNATION) {
		hibernating = false;
		tell_all(MACHINE_WOKE_UP);
	}
	return NOTIFY_DONE;
}

static int pm_prepare(struct device *dev)
{
	return hibernating ? tell_all(MACHINE_HIBERNATES) : 0;
}

static struct notifier_block reboot_notifier = {
	.notifier_call = reboot_event,
};

static struct notifier_block pm_notifier = {
	.notifier_call = pm_event,
};

static const struct dev_pm_ops pm_ops = {
	.prepare = pm_prepare,
};

static struct platform_driver pm_driver = {
	.driver = {
		.name = "dm-mtftl",
		.pm = &pm_ops,
	},
};

static struct platform_device *pm_device;

static int __init pm_init(void)
{
	int r = platform_driver_register(&pm_driver);

	if (r)
		return r;
	pm_device = platform_device_register_simple("dm-mtftl", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(pm_device)) {
		platform_driver_unregister(&pm_driver);
		return PTR_ERR(pm_device);
	}
	return register_pm_notifier(&pm_notifier);
}

static void pm_exit(void)
{
	unregister_pm_notifier(&pm_notifier);
	platform_device_unregister(pm_device);
	platform_driver_unregister(&pm_driver);
}

/* Target */

static void mtftl_dtr(struct dm_target *ti)
{
	struct mtftl *ftl = ti->private;

	disclaim(ftl);
	if (cancel_work_sync(&ftl->machine_work))
		work_ended();
	mutex_lock(&ftl->life);
	if (ftl->mounted)
		quiesce(ftl, true);
	if (ftl->prepared)
		unmount(ftl);
	mutex_unlock(&ftl->life);
	free_percpu(ftl->stats);
	if (ftl->dev)
		dm_put_device(ti, ftl->dev);
	kfree(ftl);
}

static int mtftl_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct mtftl *ftl;
	int r;

	if (!argc) {
		ti->error = "Expected <device> [<number of words> {<option> <value>}]";
		return -EINVAL;
	}
	ftl = kzalloc(sizeof(*ftl), GFP_KERNEL);
	if (!ftl) {
		ti->error = "Out of memory";
		return -ENOMEM;
	}
	ti->private = ftl;
	ftl->ti = ti;
	mutex_init(&ftl->life);
	INIT_LIST_HEAD(&ftl->mounts);
	INIT_WORK(&ftl->machine_work, machine_work);
	mutex_init(&ftl->super.lock);
	mutex_init(&ftl->super.log_lock);
	mutex_init(&ftl->gc_lock);
	spin_lock_init(&ftl->redo_lock);
	INIT_LIST_HEAD(&ftl->redo);
	INIT_LIST_HEAD(&ftl->footer_bufs);
	INIT_DELAYED_WORK(&ftl->redo_work, mtftl_redo_work);
	INIT_WORK(&ftl->ckpt_work, mtftl_checkpoint_work);
	init_waitqueue_head(&ftl->drain_wait);
	init_waitqueue_head(&ftl->flush_wait);
	init_waitqueue_head(&ftl->gc_wait);
	ftl->stats = alloc_percpu(struct mtftl_cpu_stats);
	r = -ENOMEM;
	if (!ftl->stats) {
		ti->error = "Out of memory";
		goto bad;
	}
	r = dm_get_device(ti, argv[0], dm_table_get_mode(ti->table), &ftl->dev);
	if (r) {
		ti->error = "Cannot open the device";
		goto bad;
	}
	ftl->bdev = ftl->dev->bdev;
	r = parse_table(ftl, argc - 1, argv + 1);
	r = r ?: check_device(ftl);
	r = r ?: check_super(ftl);
	r = r ?: check_options(ftl);
	r = r ?: dm_set_target_max_io_len(ti, MAX_DISCARD_BLOCKS * MTFTL_BLOCK_SECTORS);
	if (r)
		goto bad;
	r = prepare(ftl);
	if (r) {
		ti->error = "Out of memory";
		goto bad;
	}

	ti->per_io_data_size = sizeof(struct mtftl_bio);
	ti->num_flush_bios = 1;
	ti->num_discard_bios = 1;
	ti->num_write_zeroes_bios = 1;
	ti->flush_supported = true;
	ti->discards_supported = true;
	return 0;
bad:
	mtftl_dtr(ti);
	return r;
}

static int mtftl_map(struct dm_target *ti, struct bio *bio)
{
	struct mtftl_bio *io = dm_per_bio_data(bio, sizeof(*io));
	struct mtftl *ftl = ti->private;

	io->reads = false;
	if (bio->bi_opf & REQ_PREFLUSH) {
		/* Always empty here: device-mapper takes the data apart. */
		mtftl_flush_bio(ftl, bio);
		return DM_MAPIO_SUBMITTED;
	}
	switch (bio_op(bio)) {
	case REQ_OP_READ:
		return mtftl_read(ftl, bio);
	case REQ_OP_WRITE:
		mtftl_lane_write(ftl, bio);
		return DM_MAPIO_SUBMITTED;
	case REQ_OP_DISCARD:
	case REQ_OP_WRITE_ZEROES:
		mtftl_trim(ftl, bio);
		return DM_MAPIO_SUBMITTED;
	default:
		return DM_MAPIO_KILL;
	}
}

static int mtftl_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct mtftl_bio *io = dm_per_bio_data(bio, sizeof(*io));
	struct mtftl *ftl = ti->private;

	if (io->reads) {
		mtftl_compat_reader_leave(&ftl->readers, io->reader);
		if (unlikely(*error))
			mtftl_count(ftl, read_errors, 1);
	}
	return DM_ENDIO_DONE;
}

static int mtftl_preresume(struct dm_target *ti)
{
	struct mtftl *ftl = ti->private;
	unsigned int flags = memalloc_noio_save();
	int r;

	mutex_lock(&ftl->life);
	ftl->suspended = false;
	if (ftl->mounted) {
		r = 0;
		go_on(ftl);
		mtftl_gc_start(ftl);
	} else {
		r = stop_others(ftl);
		/* What the constructor read may be older than what the others wrote. */
		r = r ?: check_super(ftl);
		r = r ?: mount(ftl);
		if (r)
			disclaim(ftl);
	}
	mutex_unlock(&ftl->life);
	memalloc_noio_restore(flags);
	return r;
}

/* Without flush the device may hang: what waits for it goes back, and comes again. */
static void mtftl_presuspend(struct dm_target *ti)
{
	struct mtftl *ftl = ti->private;

	ftl->noflush = dm_noflush_suspending(ti);
	if (!ftl->noflush || !ftl->mounted)
		return;
	WRITE_ONCE(ftl->giving_back, true);
	/* Whoever takes a list's lock from here on sees it. */
	mtftl_lanes_give_back(ftl);
	mtftl_flush_give_back(ftl);
}

static void mtftl_presuspend_undo(struct dm_target *ti)
{
	struct mtftl *ftl = ti->private;

	WRITE_ONCE(ftl->giving_back, false);
}

/* Every bio is answered. Without flush all is kept in memory. */
static void mtftl_postsuspend(struct dm_target *ti)
{
	struct mtftl *ftl = ti->private;

	mutex_lock(&ftl->life);
	ftl->suspended = true;
	if (!ftl->noflush)
		quiesce(ftl, true);
	else if (ftl->mounted)
		pause_sending(ftl);
	mutex_unlock(&ftl->life);
}

static void mtftl_status_line(struct dm_target *ti, status_type_t type, unsigned int flags,
			      char *result, unsigned int maxlen)
{
	struct mtftl *ftl = ti->private;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		if (ftl->mounted)
			mtftl_status(ftl, result, maxlen);
		else
			DMEMIT("not mounted");
		break;
	case STATUSTYPE_TABLE:
		DMEMIT("%s 14 lanes %u buffer_entries %u write_unit %u gc_policy %s hot_cold %s placement %s low_water %u",
		       ftl->dev->name, ftl->nr_lanes, ftl->opt.buffer_entries,
		       ftl->opt.write_unit, ftl->opt.gc_policy->name,
		       ftl->opt.hot_cold ? "on" : "off", ftl->opt.append ? "append" : "write",
		       ftl->low_water);
		break;
	case STATUSTYPE_IMA:
		*result = '\0';
		break;
	}
}

static int mtftl_target_message(struct dm_target *ti, unsigned int argc, char **argv,
				char *result, unsigned int maxlen)
{
	struct mtftl *ftl = ti->private;

	if (!ftl->mounted)
		return -EINVAL;
	return mtftl_message(ftl, argc, argv, result, maxlen);
}

static void mtftl_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	limits->logical_block_size = MTFTL_BLOCK_SIZE;
	limits->physical_block_size = MTFTL_BLOCK_SIZE;
	limits->io_min = MTFTL_BLOCK_SIZE;
	limits->io_opt = 0;
	/* Else bios are split at the borders of zones, which nobody sees any more. */
	limits->chunk_sectors = 0;
	limits->discard_granularity = MTFTL_BLOCK_SIZE;
	mtftl_compat_max_write_zeroes(limits, MAX_DISCARD_BLOCKS * MTFTL_BLOCK_SECTORS);
	mtftl_compat_max_discard(limits, MAX_DISCARD_BLOCKS * MTFTL_BLOCK_SECTORS);
	mtftl_compat_not_zoned(limits);
}

static int mtftl_iterate_devices(struct dm_target *ti, iterate_devices_callout_fn fn, void *data)
{
	struct mtftl *ftl = ti->private;

	return fn(ti, ftl->dev, 0, bdev_nr_sectors(ftl->bdev), data);
}

static struct target_type mtftl_target = {
	.name = "mtftl",
	.version = { 1, 0, 0 },
	.features = DM_TARGET_SINGLETON | DM_TARGET_MIXED_ZONED_MODEL,
	.module = THIS_MODULE,
	.ctr = mtftl_ctr,
	.dtr = mtftl_dtr,
	.map = mtftl_map,
	.end_io = mtftl_end_io,
	.preresume = mtftl_preresume,
	.presuspend = mtftl_presuspend,
	.presuspend_undo = mtftl_presuspend_undo,
	.postsuspend = mtftl_postsuspend,
	.status = mtftl_status_line,
	.message = mtftl_target_message,
	.io_hints = mtftl_io_hints,
	.iterate_devices = mtftl_iterate_devices,
};

static int __init mtftl_init(void)
{
	int r = mtftl_lanes_init();

	if (r)
		return r;
	r = pm_init();
	if (r)
		goto no_pm;
	r = register_reboot_notifier(&reboot_notifier);
	if (r)
		goto no_notifier;
	r = dm_register_target(&mtftl_target);
	if (r)
		goto no_target;
	return 0;
no_target:
	unregister_reboot_notifier(&reboot_notifier);
no_notifier:
	pm_exit();
no_pm:
	mtftl_lanes_exit();
	return r;
}

static void __exit mtftl_exit(void)
{
	dm_unregister_target(&mtftl_target);
	unregister_reboot_notifier(&reboot_notifier);
	pm_exit();
	mtftl_lanes_exit();
}

module_init(mtftl_init);
module_exit(mtftl_exit);
MODULE_DESCRIPTION("Multi-threaded flash translation layer on a zoned device");
MODULE_LICENSE("GPL");
