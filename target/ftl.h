/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inside the module: structures, which lock protects what, and the functions
 * that each file offers to the others.
 *
 * Locks, outermost first; none is held across a wait for I/O but those marked *:
 *	life*		mount, stop and unmount
 *   super.lock*	superblock log and checkpoint
 *   gc_lock*	a batch of GC's units, from number to completion
 *   stream->lock	who takes place in a stream's zone, process context
 *   zones_lock		states and lists of zones, process context
 *   zone->lock		a zone's units in flight and footer, irq
 *   lane->lock		a lane's positions, waiting bios and free units, irq
 *   shard->lock	a part of the map and the slots that it points to, irq
 * The last three are leaves, taken one at a time: shard->lock may be taken alone
 * only, or inside stream->lock.
 */
#ifndef MTFTL_FTL_H
#define MTFTL_FTL_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "policy.h"
#include "unit.h"

#define DM_MSG_PREFIX "mtftl"

#define MTFTL_BLOCK_SECTORS	(MTFTL_BLOCK_SIZE >> SECTOR_SHIFT)
#define MTFTL_NR_SHARDS		512	/* locks; chunks of the map are spread over them */
#define MTFTL_CHUNK_SHIFT	10	/* map entries that share a lock for certain */
#define MTFTL_BUFFER_ORDER	5	/* slots are allocated 32 pages at a time */
#define MTFTL_LATENCIES		24	/* the last: 4 s and more */
#define MTFTL_MAX_FAILURES	4	/* zones in a row that fail a write */
#define MTFTL_ZONE_LIVES	2u	/* each ended by a failed write, in a row: it is worn out */
#define MTFTL_LAST_HOPE		(5 * HZ)	/* nothing moves for so long: the end */
#define MTFTL_NO_LBA		U32_MAX	/* a slot that nobody needs */

#define mtftl_err(ftl, fmt, ...)	DMERR("%s: " fmt, (ftl)->dev->name, ##__VA_ARGS__)
#define mtftl_warn(ftl, fmt, ...)	DMWARN("%s: " fmt, (ftl)->dev->name, ##__VA_ARGS__)
#define mtftl_info(ftl, fmt, ...)	DMINFO("%s: " fmt, (ftl)->dev->name, ##__VA_ARGS__)

/*
 * BLK_STS_MEDIUM and BLK_STS_PROTECTION: what was there is lost. Any other error may pass.
 */
static inline bool mtftl_medium_says(int error)
{
	return error == -ENODATA || error == -EILSEQ;
}

/* Map entries: a block of the device, a slot, or one of MTFTL_MAP_*. */
#define MTFTL_MAP_SLOTS		(MTFTL_MAP_MAX_PAGE + 1)
#define MTFTL_MAX_SLOTS		(MTFTL_MAP_LOST - MTFTL_MAP_SLOTS)

static inline bool mtftl_is_page(u32 value)
{
	return value <= MTFTL_MAP_MAX_PAGE;
}

static inline bool mtftl_is_slot(u32 value)
{
	return value >= MTFTL_MAP_SLOTS && value < MTFTL_MAP_LOST;
}

/* One 4 KiB place in a lane's buffer. */
enum mtftl_slot_state {
	MTFTL_SLOT_FREE,	/* or reserved by somebody who is still filling it */
	MTFTL_SLOT_FILLED,	/* may be overwritten in place; dead if the map is elsewhere */
	MTFTL_SLOT_IN_FLIGHT,	/* its content is fixed */
	MTFTL_SLOT_DONE,	/* waits for the slots before it */
};

struct mtftl_slot {
	u32 lba;		/* shard->lock of the lba that it holds or held */
	u32 prev;		/* what the map pointed to before; shard->lock */
	u8 state;		/* shard->lock to change, but for DONE -> FREE: lane->lock */
};

struct mtftl_shard {
	spinlock_t lock;	/* map entries of its chunks, the slots they point to */
} ____cacheline_aligned_in_smp;

struct mtftl_entry_io {
	u32 lba;
	u32 from;		/* map value that it replaces: a slot, or GC's old page */
	u32 crc;		/* of GC's: as the unit before said */
	void *data;
};

/* A write unit in flight: belongs to whoever composes it, then to its bio. */
struct mtftl_unit_io {
	struct mtftl *ftl;
	struct mtftl_lane *lane;	/* whose buffer, NULL: GC or ranges */
	struct mtftl_zone *zone;
	struct list_head list;		/* free, or to be written again */
	void (*done)(struct mtftl_unit_io *unit, blk_status_t status);	/* without lane; irq */
	void *private;
	u64 seq;
	enum mtftl_unit_type type;
	int failures;			/* ftl->failed_zones when it was sent */
	u16 nr;
	u16 max;
	u32 offset;			/* where it is meant to go, or went */
	u32 blocks;			/* of the zone, header included */
	void *header;
	u64 *lbas;			/* for the footer */
	struct bio bio;
	struct bio_vec *vecs;
	struct mtftl_entry_io entries[];
};

struct mtftl_lane {
	struct mtftl *ftl;
	unsigned int index;
	unsigned int cpu;
	struct task_struct *writer;
	struct mtftl_slot *slots;
	void **chunks;			/* pages of the slots */
	u32 entries;			/* slots in use at most */
	u32 batch;			/* filled slots that are worth a unit */
	u32 mask;			/* of positions, for the array's index */
	u32 first_slot;			/* map value of slot 0 */

	spinlock_t lock ____cacheline_aligned_in_smp;	/* what follows, up to free_units */
	u64 head;			/* next position to be filled */
	u64 tail;			/* first position that is not written yet */
	struct bio_list waiting;	/* writes that found no slot, in order */
	struct list_head free_units;
	unsigned int units_in_flight;

	u64 next;			/* next position to be composed; writer only */
	unsigned long away;		/* jiffies, 0: on its CPU; flusher */
	u64 drain_to;			/* compose up to here without waiting; flusher */
	u64 settle_to;			/* a reset waits until this is written; GC's reset work */
	u64 latency[MTFTL_LATENCIES];	/* writes that waited, by log2 of microseconds; writer */
	bool overdue;			/* what is filled goes, full unit or not */
	struct timer_list timer;	/* makes it so */
	bool asleep;			/* the writer wants to be woken */
	u32 stalled_at;			/* ftl->space_gen when it was refused; writer, like the next */
	enum mtftl_stall {
		MTFTL_NOT_STALLED,
		MTFTL_NO_CREDIT,	/* until GC gives some, or a flush wants it */
		MTFTL_NO_PLACE,
	} stalled;

	/* Who puts work into other lanes: a hint, racy by design. */
	unsigned int guest;		/* lane whose user came here last */
	unsigned long guest_seen;	/* jiffies */
};

/* A CPU's choice of lane, for a jiffy. Hints: written by whoever runs there. */
struct mtftl_cpu {
	struct mtftl_lane *lane;
	unsigned long seen;		/* jiffies of its last write */
};

enum mtftl_zone_state {
	MTFTL_ZONE_EMPTY,
	MTFTL_ZONE_OPEN,	/* some stream writes to it */
	MTFTL_ZONE_PARTIAL,	/* written in part by an earlier mount: opened again first */
	MTFTL_ZONE_CLOSING,	/* has its data, waits for its footer */
	MTFTL_ZONE_FULL,
	MTFTL_ZONE_VICTIM,	/* GC works on it */
	MTFTL_ZONE_RESETTING,
	MTFTL_ZONE_SUPER,	/* superblock log */
	MTFTL_ZONE_CKPT,	/* set aside for checkpoints */
	MTFTL_ZONE_BAD,		/* retired, read-only or offline */
	MTFTL_NR_ZONE_STATES
};

struct mtftl_zone {
	spinlock_t lock;	/* wp to footer */
	u32 index;
	u32 wp;			/* blocks handed out */
	u32 quiet_wp;		/* every unit below it has completed */
	u32 limit;		/* data goes below it */
	u8 torn_sectors;	/* of the block at wp, found by recovery */
	u32 torn_end;		/* where recovery found the last unit's end; above wp: torn */
	u16 in_flight;
	bool closing;		/* nobody takes place in it any more */
	bool broken;		/* failed a write: nothing more goes here before a reset */
	bool append;		/* placed by the device */
	bool unfinished;	/* found written to its last block, and active still */
	u32 erase_count;	/* changed while nobody writes to the zone, like the next */
	u32 failed_lives;	/* in a row, of this mount */
	unsigned long not_before;	/* jiffies, 0: no victim sooner, it could not be read */
	u64 first_seq;		/* number of its first unit, 0 if not known yet */
	u64 ranges_seq;		/* of the newest ranges in it */
	u64 full_seq;		/* when it became full, for its age */
	struct mtftl_footer_buf *footer;	/* NULL: it will have none */

	enum mtftl_zone_state state;	/* zones_lock */
	struct list_head list;	/* of its state; zones_lock */
	atomic_t valid;		/* blocks that the map points to */
	struct work_struct close_work;
	struct mtftl *ftl;
};

struct mtftl_footer_buf {
	struct list_head list;		/* zones_lock */
	struct mtftl_footer footer;
	bool complete;			/* lists every unit */
	void *stream;
};

/* Which zones may be taken by whom. */
enum mtftl_right {
	MTFTL_RIGHT_USER,	/* what is buffered fits into the reserve: see gc.c */
	MTFTL_RIGHT_URGENT,	/* a flush or a failed write waits for it: any zone */
	MTFTL_RIGHT_GC,		/* leaves zones for what is buffered */
};

/* A place to write to: one open zone. Lanes may share one. */
struct mtftl_stream {
	struct mutex lock;
	struct mtftl *ftl;
	struct mtftl_zone *zone;	/* changes under zones_lock too */
};

/* Of one who finds no place: what it saw, and since when nothing has moved. */
struct mtftl_hope {
	u64 moved;
	unsigned long since;		/* jiffies */
};

/* Discards and losses that are not on flash yet. */
struct mtftl_ranges {
	spinlock_t lock;
	unsigned int nr;
	unsigned int reserved;		/* places for trims under way */
	struct bio_list waiting;	/* found no place */
	struct mtftl_range_rec {
		u32 lba;
		u32 nr_blocks;
		u64 seq;
		enum mtftl_range_kind kind;
	} *recs;
};
#define MTFTL_MAX_RANGES	((unsigned int)MTFTL_UNIT_MAX_RANGES * 4)

struct mtftl_super {
	struct mutex lock;
	struct mutex log_lock;		/* the log: never held across a flush of lanes */
	void *log_buf;
	struct mtftl_sb_info info;	/* the newest record */
	u32 zone;			/* 0 or 1: where the log goes on */
	u32 wp;
	bool clean;			/* the newest record says so */
	u64 ckpt_seq;			/* of the durable checkpoint; in info a record goes ahead of it */
	u32 set[2][MTFTL_SB_MAX_CKPT_ZONES];	/* zones set aside, two checkpoints' worth */
	u32 set_zones;
	unsigned int durable_set;
	void *buf;		/* 1 << MTFTL_BUFFER_ORDER pages */
	struct mtftl_zone_record *records;	/* of the checkpoint being loaded or written */
};

/* Table line. */
struct mtftl_options {
	unsigned int lanes;		/* 0: one for each CPU */
	unsigned int buffer_entries;
	unsigned int write_unit;
	const struct mtftl_victim_policy *gc_policy;
	bool hot_cold;
	bool append;
	unsigned int low_water;		/* zones, 0: chosen by size */
};

struct mtftl_cpu_stats {
	u64 user_writes, user_overwrites, user_reads, buffer_reads, user_trims;	/* blocks */
	u64 data_blocks, gc_blocks, meta_blocks;			/* to flash */
	u64 sent, landed, taken;	/* writes, of any kind; taken: landed without an error */
	u64 units, waits, flushes, read_errors, write_errors, lost_blocks, victims, checkpoints;
};

struct mtftl {
	struct dm_dev *dev;
	struct block_device *bdev;
	struct dm_target *ti;
	struct mtftl_options opt;
	struct list_head mounts;	/* all that have a device; mounts_lock in main.c */
	struct mutex life;		/* mounted, stopped, unmounted: one at a time */
	struct work_struct machine_work;	/* the machine reboots, hibernates, woke up */

	/* Geometry, in blocks. */
	u32 nr_zones;
	u32 zone_shift;
	u32 capacity;
	bool ragged;		/* and some sectors, which nobody writes: full zones are finished */
	u64 logical_blocks;
	u32 seed;
	u32 unit_max;			/* payload of the largest unit */
	struct mtftl_budget budget;

	u32 *map;
	struct mtftl_shard *shards;
	atomic64_t seq ____cacheline_aligned_in_smp;
	u64 durable_seq;		/* flush_lock to change, composers read */

	struct mtftl_lane *lanes ____cacheline_aligned_in_smp;
	unsigned int nr_lanes;
	unsigned int lane_shift;	/* slots of a lane's array */
	struct hlist_node cpu_node;	/* tells when CPUs come back */
	bool cpus_watched;
	struct mtftl_cpu __percpu *cpus;
	cpumask_var_t elsewhere;	/* flusher */
	atomic_t space_gen;		/* one more whenever place may have appeared */
	struct mtftl_stream *streams;	/* budget.user_streams, then GC's */
	struct mtftl_stream *gc_stream;

	struct mtftl_zone *zones;
	spinlock_t zones_lock;
	struct list_head zone_list[MTFTL_NR_ZONE_STATES];
	u32 zone_count[MTFTL_NR_ZONE_STATES];
	u32 zones_in_use;		/* open, closing and partial: against the budget */
	struct list_head footer_bufs;
	struct workqueue_struct *wq;	/* ordered: closing zones, writing units again */
	void *close_buf;		/* of whatever runs in wq */
	u32 reserve;			/* zones that users cannot take */
	u32 kept;			/* of them: for what is buffered */
	u32 flush_zones;		/* of them: for flushes, though nothing is buffered */
	bool gated;			/* no more than the reserve is left: buffers take nothing */
	bool no_victim;			/* and GC finds none: users fill what is open */
	u32 worn_out_zones;		/* full ones that GC has to clear; zones_lock */
	u32 low_water;			/* GC runs below */
	atomic64_t credit;		/* blocks that users may write while GC runs */

	struct srcu_struct readers;	/* of the device, from the look at the map on */
	bool readers_counted;

	/* Flush rounds. */
	struct task_struct *flusher;
	spinlock_t flush_lock;		/* what follows, up to flush_error, and durable_seq */
	struct bio_list flush_bios;
	struct bio_list round_bios;	/* of the round under way */
	u64 flush_wanted;		/* rounds asked for */
	u64 flush_failures;		/* rounds that failed */
	u64 flushed;			/* of mtftl_taken() */
	bool unsure;			/* the device may have dropped what it was given */
	int flush_error;		/* of the last round that failed */
	u64 flush_done;			/* rounds completed; flusher */
	wait_queue_head_t flush_wait;	/* the flusher, and who waits for a round */
	wait_queue_head_t drain_wait;	/* a lane reached drain_to */
	struct mtftl_ranges ranges;
	struct mtftl_unit_io *ranges_unit;	/* flusher only, like the next */
	blk_status_t ranges_status;

	struct mutex gc_lock;		/* held while GC has units in flight */
	struct mtftl_gc *gc_data;
	wait_queue_head_t gc_wait;

	spinlock_t redo_lock;		/* redo: units whose write failed */
	struct list_head redo;
	struct delayed_work redo_work;
	struct mtftl_hope redo_hope;	/* redo_work's */
	atomic_t failed_zones;		/* since the last write that succeeded */

	struct mtftl_super super;
	u64 log_limit;			/* numbers drawn since the last checkpoint */
	struct work_struct ckpt_work;
	struct workqueue_struct *ckpt_wq;
	bool read_only;			/* nothing can be written any more */
	bool prepared;			/* all memory and threads are there */
	bool mounted;
	bool handed_over;		/* another table has the device: nothing is written any more */
	bool noflush;			/* the suspend under way: nobody waits for the device */
	bool suspended;			/* by device-mapper */
	bool giving_back;		/* bios that would wait go back to device-mapper */
	bool paused;			/* nothing more is sent to the device */

	struct mtftl_cpu_stats __percpu *stats;
	struct mtftl_cpu_stats stats_origin;	/* sums at the last reset */
};

/* Per bio, from device-mapper. */
struct mtftl_bio {
	u64 since;		/* writes that wait: ns */
	int reader;		/* reads of the device: what to leave by */
	bool reads;
};

#define mtftl_count(ftl, field, n)	this_cpu_add((ftl)->stats->field, n)

static inline struct mtftl_shard *mtftl_shard(struct mtftl *ftl, u32 lba)
{
	return &ftl->shards[(lba >> MTFTL_CHUNK_SHIFT) % MTFTL_NR_SHARDS];
}

static inline struct mtftl_zone *mtftl_page_zone(struct mtftl *ftl, u32 page)
{
	return &ftl->zones[page >> ftl->zone_shift];
}

static inline u32 mtftl_zone_page(struct mtftl *ftl, const struct mtftl_zone *zone)
{
	return zone->index << ftl->zone_shift;
}

static inline sector_t mtftl_page_sector(u32 page)
{
	return (sector_t)page * MTFTL_BLOCK_SECTORS;
}

/* main.c; -1: on any CPU. It is parked. NULL: no memory. */
struct task_struct *mtftl_thread(int (*run)(void *data), void *data, int cpu, const char *name,
				 ...) __printf(4, 5);

/* lane.c */
int mtftl_lanes_init(void);
void mtftl_lanes_exit(void);
int mtftl_lanes_alloc(struct mtftl *ftl);
void mtftl_lanes_free(struct mtftl *ftl);
int mtftl_lanes_start(struct mtftl *ftl);
void mtftl_lanes_free_writers(struct mtftl *ftl);
void mtftl_lanes_bind_writers(struct mtftl *ftl);
bool mtftl_lanes_landed(struct mtftl *ftl);
bool mtftl_lanes_stuck(struct mtftl *ftl);
void mtftl_lanes_stop(struct mtftl *ftl);
void mtftl_lane_write(struct mtftl *ftl, struct bio *bio);
void mtftl_lane_unit_done(struct mtftl_unit_io *unit, blk_status_t status);
void mtftl_lane_kick(struct mtftl_lane *lane);
void mtftl_lanes_give_back(struct mtftl *ftl);
void mtftl_lanes_kick(struct mtftl *ftl);
void mtftl_space_appeared(struct mtftl *ftl);
struct mtftl_slot *mtftl_slot(struct mtftl *ftl, u32 value, void **data);

/* l2p.c */
int mtftl_map_alloc(struct mtftl *ftl);
void mtftl_map_free(struct mtftl *ftl);
void mtftl_bio_to_slot(struct bio *bio, void *data);
bool mtftl_map_overwrite(struct mtftl *ftl, u32 lba, struct bio *bio);
void mtftl_map_publish(struct mtftl *ftl, u32 lba, struct mtftl_slot *slot, u32 value);
bool mtftl_map_take(struct mtftl *ftl, struct mtftl_slot *slot, u32 value);
void mtftl_map_complete(struct mtftl *ftl, u32 lba, u32 value, u32 page);
bool mtftl_map_copy_slot(struct mtftl *ftl, u32 lba, u32 value, struct bio *bio);
bool mtftl_map_trim(struct mtftl *ftl, struct mtftl_range_rec *rec);
bool mtftl_map_points_to(struct mtftl *ftl, u32 lba, u32 page);
void mtftl_map_move(struct mtftl *ftl, u32 lba, u32 from, u32 to);
bool mtftl_map_lose(struct mtftl *ftl, u32 lba, u32 page, u64 *seq);
u32 mtftl_map_durable(struct mtftl *ftl, u32 lba);

/* unit_io.c */
struct mtftl_unit_io *mtftl_unit_alloc(struct mtftl *ftl, unsigned int max);
void mtftl_unit_free(struct mtftl_unit_io *unit);
void mtftl_unit_start(struct mtftl_unit_io *unit, enum mtftl_unit_type type, u64 seq);
void mtftl_unit_add(struct mtftl_unit_io *unit, u32 lba, u32 from, void *data);
void mtftl_unit_compose(struct mtftl_unit_io *unit);
void mtftl_unit_submit(struct mtftl_unit_io *unit);
void mtftl_redo_work(struct work_struct *work);
int mtftl_rw_sectors(struct mtftl *ftl, blk_opf_t opf, sector_t sector, void *data, u32 nr);
int mtftl_rw_sync(struct mtftl *ftl, blk_opf_t opf, u32 page, void *data, u32 nr_blocks);

/* zone.c */
bool mtftl_out_of_zones(struct mtftl *ftl);
bool mtftl_hope_is_lost(struct mtftl *ftl, struct mtftl_hope *hope);
int mtftl_zones_alloc(struct mtftl *ftl);
void mtftl_zones_free(struct mtftl *ftl);
struct mtftl_stream *mtftl_stream_find(struct mtftl *ftl, unsigned int first, u32 least,
				       enum mtftl_right right, u32 *room);
void mtftl_stream_take(struct mtftl_stream *stream, struct mtftl_unit_io *unit);
void mtftl_zone_unit_done(struct mtftl_unit_io *unit, blk_status_t status);
void mtftl_zone_set_state(struct mtftl *ftl, struct mtftl_zone *zone,
			  enum mtftl_zone_state state);
void mtftl_zones_no_victim(struct mtftl *ftl, bool none);
int mtftl_zone_mgmt(struct mtftl_zone *zone, enum req_op op);
bool mtftl_zone_is_offline(struct mtftl_zone *zone);
void mtftl_zone_finish_broken(struct mtftl_zone *zone);
bool mtftl_zone_is_worn_out(const struct mtftl_zone *zone);
void mtftl_zone_reset_done(struct mtftl *ftl, struct mtftl_zone *zone, bool ok);
u32 mtftl_zone_replace(struct mtftl *ftl, u32 index);
u32 mtftl_zones_free_count(struct mtftl *ftl);
void mtftl_zones_go_on(struct mtftl *ftl);

/* read.c */
int mtftl_read_init(struct mtftl *ftl);
void mtftl_read_exit(struct mtftl *ftl);
int mtftl_read(struct mtftl *ftl, struct bio *bio);
void mtftl_wait_readers(struct mtftl *ftl);

/* flush.c */
int mtftl_flush_alloc(struct mtftl *ftl);
void mtftl_flush_start(struct mtftl *ftl);
void mtftl_flush_stop(struct mtftl *ftl);
void mtftl_flush_bio(struct mtftl *ftl, struct bio *bio);
int mtftl_flush_sync(struct mtftl *ftl);
int mtftl_flush_device(struct mtftl *ftl, u64 drawn);
int mtftl_flush_calmly(struct mtftl *ftl, bool (*hurry)(struct mtftl *ftl));
void mtftl_trim(struct mtftl *ftl, struct bio *bio);
void mtftl_flush_give_back(struct mtftl *ftl);
bool mtftl_range_wait(struct mtftl *ftl);
void mtftl_range_log(struct mtftl *ftl, const struct mtftl_range_rec *rec);

/* gc.c */
void mtftl_gc_start(struct mtftl *ftl);
void mtftl_gc_stop(struct mtftl *ftl);
void mtftl_gc_kick(struct mtftl *ftl);
bool mtftl_gc_active(struct mtftl *ftl);
bool mtftl_throttled(struct mtftl *ftl);
void mtftl_charge(struct mtftl *ftl, u32 blocks);
int mtftl_gc_alloc(struct mtftl *ftl);
void mtftl_gc_free(struct mtftl *ftl);
void mtftl_gc_force(struct mtftl *ftl);
u64 mtftl_gc_oldest_seq(struct mtftl *ftl);

/* recover.c; an entry of the unit whose header is page @header, or a unit of ranges */
typedef void (*mtftl_walk_fn)(void *private, enum mtftl_unit_type type, u32 header, u32 index,
			      u64 lba);
bool mtftl_zone_walk(struct mtftl *ftl, struct mtftl_zone *zone, void *buf, void *stream,
		     mtftl_walk_fn block, void *private);

/* super.c */
int mtftl_super_alloc(struct mtftl *ftl);
void mtftl_super_free(struct mtftl *ftl);
int mtftl_super_read(struct mtftl *ftl, struct mtftl_sb_info *info, u32 *zone, u32 *wp);
u64 mtftl_log_length(struct mtftl *ftl);
void mtftl_checkpoint_work(struct work_struct *work);
int mtftl_super_dirty(struct mtftl *ftl);
int mtftl_checkpoint(struct mtftl *ftl, bool clean);
bool mtftl_device_answers(struct mtftl *ftl, void *block);
int mtftl_checkpoint_load(struct mtftl *ftl);

/* recover.c */
int mtftl_recover(struct mtftl *ftl);

/* With noflush device-mapper sends it again after the resume. */
static inline void mtftl_give_back(struct bio *bio)
{
	bio->bi_status = BLK_STS_DM_REQUEUE;
	bio_endio(bio);
}

/* stats.c */
u64 mtftl_taken(struct mtftl *ftl);
bool mtftl_all_landed(struct mtftl *ftl);
void mtftl_status(struct mtftl *ftl, char *result, unsigned int maxlen);
int mtftl_message(struct mtftl *ftl, unsigned int argc, char **argv, char *result,
		  unsigned int maxlen);
void mtftl_set_read_only(struct mtftl *ftl, const char *why);

#endif
