// SPDX-License-Identifier: GPL-2.0
/*
 * Checkpoints: see checkpoint.h.
 *
 * A checkpoint is fuzzy: users go on. Zone records first, then the number S0, then a
 * flush, then the map, shard by shard. A unit below a recorded position has drawn its
 * number before S0, so units above S0 are all behind the recorded positions; what
 * drew up to S0 is flushed and in the map when that is copied. Zones that were reset
 * meanwhile are recorded as they are then: what drew up to S0 may be in them.
 *
 * With a log of map blocks what changed of the map is copied. The bits that say so are looked at
 * where the copying would begin else: docs/design/map-blocks.md has the reasons.
 */
#include "durable/checkpoint.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "device/device.h"
#include "device/pause.h"
#include "device/rw.h"
#include "device/seq.h"
#include "device/space.h"
#include "device/thread.h"
#include "durable/ckptlog.h"
#include "durable/flush.h"
#include "durable/mapblocks.h"
#include "map/map.h"
#include "zone/life.h"
#include "zone/scan.h"
#include "zone/stream.h"
#include "zone/super.h"
#include "zone/zones.h"

#define CKPT_PAYLOAD	MTFTL_LOG_UNIT_BLOCKS	/* blocks of a unit */
#define PART_UNITS	4u		/* that one CPU loads at a time */
#define NO_ZONE		U32_MAX		/* a seat that lacks one */

struct mtftl_checkpoints {
	struct mtftl *ftl;
	struct mutex lock;		/* what follows, up to records */
	u32 seats[MTFTL_SB_MAX_LOG_ZONES];	/* zones set aside, a circle of twice set_zones */
	u32 set_zones;			/* that a checkpoint of any size fits into */
	struct mtftl_log log;		/* up to the durable checkpoint */
	bool map_log;			/* that is of map blocks and a directory */
	bool redo;			/* the directory is not as the map has it */
	struct mtftl_mapblocks *blocks;
	struct mtftl_sb_info next;	/* for the record of the next one */
	struct mtftl_log_plan plan;	/* of it */
	struct mtftl_log_at end;	/* likewise */
	void *buf;			/* of MTFTL_BUFFER_ORDER */
	struct mtftl_scanner *scanner;	/* of a mount */
	struct mtftl_spread *spread;	/* likewise */
	struct mtftl_zone_record *records;	/* of the checkpoint being loaded or written */
	struct workqueue_struct *wq;
	struct work_struct work;
};

static void capture_zones(struct mtftl *ftl)
{
	u32 i;

	lockdep_assert_held(&ftl->checkpoints->lock);
	for (i = 0; i < ftl->config.nr_zones; i++) {
		struct mtftl_zone *zone = mtftl_zone(ftl, i);
		struct mtftl_zone_record *record = &ftl->checkpoints->records[i];
		bool bad;
		u64 first;
		u32 wp;

		memset(record, 0, sizeof(*record));
		/* Units land under the lock. A reset that ends now changes fields without it. */
		spin_lock_irq(&zone->lock);
		bad = READ_ONCE(zone->state) == MTFTL_ZONE_BAD;
		wp = READ_ONCE(zone->quiet_wp);
		first = READ_ONCE(zone->first_seq);
		record->erase_count = cpu_to_le32(zone->erase_count);
		record->wp = cpu_to_le32(wp);
		if (wp)
			record->first_seq = cpu_to_le64(first);
		if (bad)
			record->flags = cpu_to_le16(MTFTL_ZONE_RETIRED);
		mtftl_assert(mtftl_zone_record_valid(record, ftl->config.capacity) &&
			     le64_to_cpu(record->first_seq) == (wp ? first : 0) &&
			     !record->flags == !bad, "zone %u: wp %u", i, wp);
		spin_unlock_irq(&zone->lock);
	}
}

/* As the zone is now, if it was reset since its record was captured. */
static void record_reset(struct mtftl *ftl, u32 index)
{
	struct mtftl_zone_record *record = &ftl->checkpoints->records[index];
	u32 erase_count = READ_ONCE(mtftl_zone(ftl, index)->erase_count);

	lockdep_assert_held(&ftl->checkpoints->lock);
	if (le32_to_cpu(record->erase_count) == erase_count)
		return;
	mtftl_assert(erase_count > le32_to_cpu(record->erase_count), "zone %u: %u erases", index,
		     erase_count);
	record->erase_count = cpu_to_le32(erase_count);
	record->wp = 0;
	record->first_seq = 0;
}

/*
 * A unit of up to S0 may have come to lie in a zone that was reset since the records were captured:
 * one whose write failed, and that found no zone before. The map has it, so the record must be of
 * that life of the zone, or a mount would take the entry for one of the life before.
 */
static void capture_resets(struct mtftl *ftl)
{
	u32 i;

	for (i = 0; i < ftl->config.nr_zones; i++)
		record_reset(ftl, i);
}

static u32 record_blocks(const struct mtftl *ftl)
{
	return mtftl_ckpt_stream_blocks(ftl->config.nr_zones, 0);
}

static int write_records(struct mtftl_ckpt_stream *stream)
{
	struct mtftl *ftl = stream->ftl;
	u32 bytes = ftl->config.nr_zones * sizeof(*ftl->checkpoints->records), at;
	void *block;
	int r;

	mtftl_assert(stream->type == MTFTL_UNIT_CKPT && !stream->fill, "type %u", stream->type);
	for (at = 0; at < bytes; at += MTFTL_BLOCK_SIZE) {
		block = mtftl_ckpt_next_block(stream, at / MTFTL_BLOCK_SIZE, &r);
		if (r)
			return r;
		memcpy(block, (void *)ftl->checkpoints->records + at,
		       min(bytes - at, MTFTL_BLOCK_SIZE));
	}
	return 0;
}

static int write_map(struct mtftl_ckpt_stream *stream)
{
	struct mtftl *ftl = stream->ftl;
	u32 chunk;
	int r;

	BUILD_BUG_ON(MTFTL_BLOCK_SIZE / sizeof(__le32) != 1 << MTFTL_CHUNK_SHIFT);
	mtftl_assert(record_blocks(ftl) + mtftl_map_chunks(ftl) ==
		     mtftl_checkpoint_blocks(&ftl->config));
	for (chunk = 0; chunk < mtftl_map_chunks(ftl); chunk++) {
		__le32 *out = mtftl_ckpt_next_block(stream, record_blocks(ftl) + chunk, &r);

		if (r)
			return r;
		mtftl_map_durable(ftl, chunk, out);
		cond_resched();
	}
	return 0;
}

/* Zones for checkpoints */

/* Right behind the superblocks: versions that know of no log take these without a look. */
static bool is_low(const struct mtftl_zone *zone)
{
	return zone->index < MTFTL_NR_SB_ZONES + 2 * zone->ftl->checkpoints->set_zones;
}

static bool is_empty(const struct mtftl_zone *zone)
{
	return zone->state == MTFTL_ZONE_EMPTY;
}

/*
 * Neither the map nor the next mount needs what it holds: so is a zone with an earlier checkpoint,
 * or with one that a power cut ended.
 */
static bool is_spent(const struct mtftl_zone *zone)
{
	return zone->state != MTFTL_ZONE_EMPTY && !zone->newer && !mtftl_zone_is_worn_out(zone) &&
	       !mtftl_map_valid(zone->ftl, zone->index);
}

static bool is_low_and_free(const struct mtftl_zone *zone)
{
	return is_low(zone) && (is_empty(zone) || is_spent(zone));
}

/* One that serves, but is not set aside; NULL: there is none. The search begins at zone @from. */
static struct mtftl_zone *find_zone(struct mtftl *ftl, u32 from,
				    bool (*serves)(const struct mtftl_zone *zone))
{
	u32 i;

	for (i = from; i < ftl->config.nr_zones; i++) {
		struct mtftl_zone *zone = mtftl_zone(ftl, i);

		if (zone->state != MTFTL_ZONE_CKPT && zone->state != MTFTL_ZONE_BAD &&
		    !zone->broken && serves(zone))
			return zone;
	}
	return NULL;
}

/*
 * If no zone is empty, a mount takes a spent one: only then is it known which zones are. NULL:
 * there is none.
 */
static struct mtftl_zone *set_aside(struct mtftl *ftl, bool mounting)
{
	struct mtftl_zone *zone = mtftl_zones_set_aside(ftl);

	if (zone || !mounting)
		return zone;
	zone = find_zone(ftl, MTFTL_NR_SB_ZONES, is_spent);
	if (zone)
		mtftl_zone_move(zone, MTFTL_ZONE_CKPT);
	return zone;
}

/* A seat of the circle: of the zones behind the log's head, 1 is the first. */
static u32 *seat_behind(struct mtftl_checkpoints *ckpts, u32 nr)
{
	mtftl_assert(ckpts->set_zones && ckpts->log.head < 2 * ckpts->set_zones, "seat %u",
		     ckpts->log.head);
	return &ckpts->seats[(ckpts->log.head + nr) % (2 * ckpts->set_zones)];
}

/* A zone that failed retires. False: there is none that takes its seat. */
static bool replace(struct mtftl *ftl, u32 *seat, bool mounting)
{
	struct mtftl_zone *bad = mtftl_zone(ftl, *seat), *zone;

	mtftl_assert(bad->state == MTFTL_ZONE_CKPT, "zone %u: state %u", *seat, bad->state);
	mtftl_zone_finish_broken(bad);
	zone = set_aside(ftl, mounting);
	if (!zone)
		return false;
	mtftl_assert(zone->state == MTFTL_ZONE_CKPT, "zone %u", zone->index);
	mtftl_zone_retire(bad);
	*seat = zone->index;
	return true;
}

/*
 * The log was written to its head, which failed. The drive may have finished it, as it may any zone
 * that is open for long. So the next try begins behind it, and the zone keeps its seat: what it
 * holds can be read, and it is judged when the log comes round to it.
 */
static bool leave_failed_head(struct mtftl_checkpoints *ckpts)
{
	struct mtftl_zone *head = mtftl_zone(ckpts->ftl, *seat_behind(ckpts, 0));
	bool takes = mtftl_log_takes(ckpts->ftl->config.capacity, ckpts->log.offset);

	/* Behind a checkpoint of the older kind nothing goes on. */
	mtftl_assert(ckpts->map_log || !takes, "block %u", ckpts->log.offset);
	if (!takes || ckpts->plan.all || !head->broken)
		return false;
	head->broken = false;
	/* The directory may have places of this try. */
	ckpts->redo = true;
	return true;
}

/*
 * Zones for those of the next checkpoint that failed. These retire at their first failure: zones
 * set aside are found by where they lie. False: no reason to try again.
 */
static bool replace_failed(struct mtftl *ftl, bool mounting)
{
	struct mtftl_checkpoints *ckpts = ftl->checkpoints;
	bool answers, again = false, lacks = false;
	u32 i;

	lockdep_assert_held(&ckpts->lock);
	if (!mtftl_send_begin(ftl))
		return false;
	answers = mtftl_device_answers(ftl, ckpts->buf);
	for (i = 1; answers && i <= ckpts->set_zones && !lacks; i++) {
		if (!mtftl_zone(ftl, *seat_behind(ckpts, i))->broken)
			continue;
		again = replace(ftl, seat_behind(ckpts, i), mounting);
		lacks = !again;
	}
	mtftl_assert(!lacks || !again, "seat %u", i);
	/* What was acknowledged can be read all the same. */
	if (lacks && mounting)
		mtftl_set_read_only(ftl, "no zones are left for a checkpoint");
	if (answers && !lacks)
		again |= leave_failed_head(ckpts);
	mtftl_send_end(ftl);
	return again;
}

/* For an assertion: each seat has a zone of its own. */
static bool are_apart(const struct mtftl_checkpoints *ckpts)
{
	u32 i, k;

	for (i = 0; i < 2 * ckpts->set_zones; i++)
		for (k = 0; k <= i; k++)
			if (ckpts->seats[i] == NO_ZONE ||
			    (k < i && ckpts->seats[i] == ckpts->seats[k]))
				return false;
	return true;
}

/* What a checkpoint stands for, up to number *@number; users go on. */
static int capture(struct mtftl *ftl, u64 *number)
{
	int r;

	capture_zones(ftl);
	*number = mtftl_seq_last(ftl);
	r = mtftl_flush_sync(ftl);
	if (r)
		return r;
	/* GC's units are not part of a flush. */
	mtftl_space_await(ftl, mtftl_seq_before_unordered(ftl, *number) == *number,
			  MAX_SCHEDULE_TIMEOUT);
	/* Before it is looked at what changed: what has not changed then is of these lives. */
	capture_resets(ftl);
	mtftl_assert(*number <= mtftl_seq_last(ftl), "number %llu", *number);
	return 0;
}

/* After the flush, because what replaced the data of a spent zone must be durable. */
static int reset_seats(struct mtftl *ftl, u32 nr)
{
	u32 i;
	int r;

	mtftl_assert(nr <= ftl->checkpoints->set_zones, "%u seats", nr);
	for (i = 1; i <= nr; i++) {
		u32 zone = *seat_behind(ftl->checkpoints, i);

		r = mtftl_ckpt_reset_zone(ftl, zone);
		if (r)
			return r;
		record_reset(ftl, zone);
	}
	return 0;
}

/* All of it in one stream, in the half of the circle that the durable checkpoint leaves free. */
static int write_whole(struct mtftl_ckpt_stream *stream, u64 number)
{
	struct mtftl_checkpoints *ckpts = stream->ftl->checkpoints;
	u32 seats = 2 * ckpts->set_zones, i;
	int r;

	mtftl_assert(!ckpts->map_log && ckpts->redo);
	ckpts->plan = (struct mtftl_log_plan){ .all = true, .entered = ckpts->set_zones };
	stream->begin = (ckpts->log.head + 1) % seats;
	stream->last = ckpts->set_zones - 1;
	r = reset_seats(stream->ftl, ckpts->set_zones);
	if (r)
		return r;
	mtftl_ckpt_begin_run(stream, MTFTL_UNIT_CKPT);
	r = write_records(stream) ?: write_map(stream) ?: mtftl_ckpt_end_run(stream);
	if (r)
		return r;
	memset(&ckpts->next, 0, sizeof(ckpts->next));
	ckpts->next.ckpt_seq = number;
	ckpts->next.ckpt_blocks = mtftl_checkpoint_blocks(&stream->ftl->config);
	ckpts->next.ckpt_nr_zones = ckpts->set_zones;
	for (i = 0; i < ckpts->set_zones; i++)
		ckpts->next.ckpt_zones[i] = *seat_behind(ckpts, 1 + i);
	return 0;
}

/* The zone at the head of the log is left before it is full. */
static void finish_head(struct mtftl *ftl)
{
	struct mtftl_zone *head = mtftl_zone(ftl, *seat_behind(ftl->checkpoints, 0));

	mtftl_assert(ftl->checkpoints->plan.all ||
		     !mtftl_log_takes(ftl->config.capacity, ftl->checkpoints->log.offset));
	/* It is empty if there is no checkpoint yet. */
	if (!head->quiet_wp || head->quiet_wp >= ftl->config.capacity ||
	    mtftl_ckpt_send_begin(ftl))
		return;
	mtftl_ckpt_finish_zone(ftl, head->index);
	mtftl_send_end(ftl);
}

static void begin_log(struct mtftl_ckpt_stream *stream)
{
	struct mtftl_checkpoints *ckpts = stream->ftl->checkpoints;

	mtftl_assert(ckpts->plan.entered <= ckpts->set_zones &&
		     ckpts->plan.entered >= ckpts->plan.all, "%u zones", ckpts->plan.entered);
	if (ckpts->plan.all || !mtftl_log_takes(stream->ftl->config.capacity, ckpts->log.offset))
		finish_head(stream->ftl);
	stream->begin = (ckpts->log.head + ckpts->plan.all) % stream->nr_seats;
	stream->last = ckpts->plan.entered - ckpts->plan.all;
	if (!ckpts->plan.all)
		stream->at.offset = ckpts->log.offset;
}

/* What the record says of a stream that is written. */
static void name_log(struct mtftl_ckpt_stream *stream, u64 number)
{
	struct mtftl_checkpoints *ckpts = stream->ftl->checkpoints;
	struct mtftl_sb_info *next = &ckpts->next;

	mtftl_assert(stream->first_seq > number && stream->first_seq <= stream->last_seq,
		     "numbers %llu to %llu", stream->first_seq, stream->last_seq);
	memset(next, 0, sizeof(*next));
	next->map_log = true;
	next->ckpt_seq = number;
	next->ckpt_blocks = mtftl_mapblocks_shape(ckpts->blocks)->stream_blocks;
	next->ckpt_nr_zones = stream->nr_seats;
	memcpy(next->ckpt_zones, ckpts->seats, stream->nr_seats * sizeof(*ckpts->seats));
	next->ckpt_unit_first = stream->first_seq;
	next->ckpt_unit_last = stream->last_seq;
	next->ckpt_seat = (stream->begin + stream->first_at.zone) % stream->nr_seats;
	next->ckpt_offset = stream->first_at.offset;
	ckpts->end = stream->at;
}

/* What changed of the map, behind what is there, and a stream that says where all of it is. */
static int write_log(struct mtftl_ckpt_stream *stream, u64 number)
{
	struct mtftl_checkpoints *ckpts = stream->ftl->checkpoints;
	bool redo = ckpts->redo;
	int r;

	/* Else there would be no directory. */
	mtftl_assert(redo || ckpts->map_log);
	mtftl_mapblocks_plan(ckpts->blocks, &ckpts->log, redo, &ckpts->plan);
	mtftl_assert(ckpts->plan.all >= redo, "%u zones entered", ckpts->plan.entered);
	/* An attempt that was given up has left some written in part. */
	r = reset_seats(stream->ftl, redo ? ckpts->set_zones : ckpts->plan.entered);
	if (r)
		return r;
	begin_log(stream);
	/* Bits are cleared from here on; until the record is durable. */
	ckpts->redo = true;
	r = mtftl_mapblocks_write(ckpts->blocks, stream);
	if (r)
		return r;
	mtftl_ckpt_begin_run(stream, MTFTL_UNIT_CKPT);
	r = write_records(stream) ?: mtftl_mapblocks_write_directory(ckpts->blocks, stream) ?:
	    mtftl_ckpt_end_run(stream);
	if (!r)
		name_log(stream, number);
	return r;
}

/*
 * A device of the older kind gets a log when it is stopped cleanly: what is there until then is as
 * its version left it.
 */
static bool is_log_due(const struct mtftl_checkpoints *ckpts, bool clean)
{
	mtftl_assert(ckpts->map_log || ckpts->redo);
	return ckpts->map_log ||
	       (clean && mtftl_log_fits(mtftl_mapblocks_shape(ckpts->blocks)));
}

static int write_checkpoint(struct mtftl *ftl, bool clean, bool mounting)
{
	struct mtftl_checkpoints *ckpts = ftl->checkpoints;
	struct mtftl_ckpt_stream stream = {
		.ftl = ftl,
		.seats = ckpts->seats,
		.nr_seats = 2 * ckpts->set_zones,
		.mounting = mounting,
		.buf = ckpts->buf,
	};
	u64 number;
	int r;

	lockdep_assert_held(&ckpts->lock);
	/* What is outside its span is not needed. */
	mtftl_assert(ckpts->log.span <= ckpts->set_zones && ckpts->set_zones && are_apart(ckpts));
	r = capture(ftl, &number);
	if (r)
		return r;
	mtftl_assert(number >= mtftl_seq_ckpt(ftl), "number %llu after %llu", number,
		     mtftl_seq_ckpt(ftl));
	return is_log_due(ckpts, clean) ? write_log(&stream, number) :
					  write_whole(&stream, number);
}

/* The record is durable. */
static void checkpoint_done(struct mtftl_checkpoints *ckpts)
{
	if (ckpts->next.map_log) {
		if (!ckpts->map_log)
			mtftl_info(ckpts->ftl, "its map is in a log of blocks from now on: older versions refuse this device");
		mtftl_log_done(mtftl_mapblocks_shape(ckpts->blocks), &ckpts->log, &ckpts->plan,
			       &ckpts->end);
		ckpts->map_log = true;
		ckpts->redo = false;
		return;
	}
	ckpts->log.head = (ckpts->log.head + ckpts->set_zones) % (2 * ckpts->set_zones);
	ckpts->log.offset = ckpts->ftl->config.capacity;
	ckpts->log.span = ckpts->set_zones;
	mtftl_assert(!((ckpts->log.head + 1) % ckpts->set_zones), "seat %u", ckpts->log.head);
}

static int make_checkpoint(struct mtftl *ftl, bool clean, bool mounting)
{
	struct mtftl_checkpoints *ckpts = ftl->checkpoints;
	unsigned int tries = 0;
	int r;

	if (mtftl_is_read_only(ftl))
		return -EROFS;
	mutex_lock(&ckpts->lock);
	/* As for units: so many zones in a row are not worn out. */
	do {
		r = write_checkpoint(ftl, clean, mounting);
	} while (r && r != -EAGAIN && r != -EROFS && ++tries < MTFTL_MAX_FAILURES &&
		 replace_failed(ftl, mounting));
	if (!r)
		r = mtftl_super_checkpoint(ftl, &ckpts->next, clean);
	if (!r) {
		mtftl_assert(mtftl_seq_ckpt(ftl) == ckpts->next.ckpt_seq, "%llu, not %llu",
			     mtftl_seq_ckpt(ftl), ckpts->next.ckpt_seq);
		checkpoint_done(ckpts);
		mtftl_count(ftl, checkpoints, 1);
	}
	mutex_unlock(&ckpts->lock);
	return r;
}

int mtftl_checkpoint(struct mtftl *ftl, bool clean)
{
	return make_checkpoint(ftl, clean, false);
}

int mtftl_checkpoint_mount(struct mtftl *ftl)
{
	return make_checkpoint(ftl, false, true);
}

static bool log_is_long(const struct mtftl *ftl)
{
	mtftl_assert(mtftl_seq_ckpt(ftl) <= mtftl_seq_last(ftl), "number %llu, checkpoint %llu",
		     mtftl_seq_last(ftl), mtftl_seq_ckpt(ftl));
	return mtftl_seq_since_checkpoint(ftl) > ftl->config.checkpoint_after;
}

static void checkpoint_work(struct work_struct *work)
{
	struct mtftl *ftl = container_of(work, struct mtftl_checkpoints, work)->ftl;
	unsigned int flags = memalloc_noio_save();

	if (!mtftl_is_read_only(ftl) && log_is_long(ftl))
		mtftl_checkpoint(ftl, false);
	memalloc_noio_restore(flags);
}

/* Zones are opened seldom enough to look then how long recovery would take. */
static void zone_opened(struct mtftl *ftl)
{
	if (log_is_long(ftl))
		queue_work(ftl->checkpoints->wq, &ftl->checkpoints->work);
}

/* Loading */

static int load_records(struct mtftl *ftl, u32 index, const void *block, bool tell)
{
	u32 per_block = MTFTL_BLOCK_SIZE / sizeof(*ftl->checkpoints->records);
	struct mtftl_zone_record *records = ftl->checkpoints->records + index * per_block;
	u32 i, n = min(per_block, ftl->config.nr_zones - index * per_block);

	static_assert(!(MTFTL_BLOCK_SIZE % sizeof(*records)));
	mtftl_assert(index * per_block < ftl->config.nr_zones, "block %u", index);
	memcpy(records, block, n * sizeof(*records));
	for (i = 0; i < n; i++) {
		if (mtftl_zone_record_valid(&records[i], ftl->config.capacity))
			continue;
		if (tell)
			mtftl_err(ftl, "checkpoint: record of zone %u: wp %u, erase_count %u and first_seq %llu, expected at most %u, %u and %u bits",
				  index * per_block + i, le32_to_cpu(records[i].wp),
				  le32_to_cpu(records[i].erase_count),
				  le64_to_cpu(records[i].first_seq), ftl->config.capacity,
				  MTFTL_MAX_ERASES, MTFTL_SEQ_BITS);
		return -EINVAL;
	}
	return 0;
}

static int load_block(struct mtftl *ftl, u32 index, const void *block, bool tell)
{
	u32 behind = index - record_blocks(ftl);

	mtftl_assert(index < mtftl_super_info(ftl)->ckpt_blocks, "block %u", index);
	if (index < record_blocks(ftl))
		return load_records(ftl, index, block, tell);
	if (!mtftl_super_info(ftl)->map_log)
		return mtftl_mapblocks_load_entries(ftl, (u64)behind << MTFTL_CHUNK_SHIFT, block,
						    tell);
	mtftl_mapblocks_load_directory(ftl->checkpoints->blocks, behind, block);
	return 0;
}

/* Log all fields that may be wrong: their values say more than the rule that they break. */
static void tell_header(struct mtftl *ftl, u32 zone, u32 offset, const void *buf, int error)
{
	const struct mtftl_unit *unit = buf;

	if (error == -ENODATA || error == -EBADMSG) {
		mtftl_err(ftl,
			  "checkpoint: zone %u block %u: no header that verifies by uuid and key",
			  zone, offset);
		return;
	}
	mtftl_err(ftl, "checkpoint: zone %u block %u: version %u, type %u, nr_entries %u, nr_blocks %u, seq %llu, durable_seq %llu, zone %u, offset %u, expected a unit of a checkpoint",
		  zone, offset, unit->version, unit->type, le16_to_cpu(unit->nr_entries),
		  le16_to_cpu(unit->nr_blocks), le64_to_cpu(unit->seq),
		  le64_to_cpu(unit->durable_seq), le32_to_cpu(unit->zone),
		  le32_to_cpu(unit->offset));
}

/* What may be a unit, at block @offset of a zone, with its payload; how many blocks are in @buf. */
static int read_unit(struct mtftl *ftl, u32 zone, u32 offset, void *buf, u32 *nr)
{
	u32 wp = mtftl_zone(ftl, zone)->wp, page = mtftl_zone_page(ftl, zone) + offset;
	struct mtftl_unit_info info;
	int r;

	mtftl_assert(offset < ftl->config.capacity && wp <= ftl->config.capacity,
		     "zone %u: block %u, wp %u", zone, offset, wp);
	/* Some drives refuse reads of what is not written. An offline zone says so itself. */
	*nr = min((wp > offset ? wp : ftl->config.capacity) - offset, 1 + CKPT_PAYLOAD);
	r = mtftl_rw_sync(ftl, REQ_OP_READ, page, buf, *nr);
	if (!r)
		return 0;
	/* Behind the unit may lie what a power cut tore: then no more than the unit is read. */
	*nr = 1;
	r = mtftl_rw_sync(ftl, REQ_OP_READ, page, buf, 1);
	if (r || mtftl_unit_parse(buf, ftl->config.seed, zone, offset, ftl->config.capacity,
				  &info) || info.nr_blocks > CKPT_PAYLOAD)
		return r;
	*nr += info.nr_blocks;
	return mtftl_rw_sync(ftl, REQ_OP_READ, page, buf, *nr);
}

static int parse_unit(struct mtftl *ftl, u32 zone, u32 offset, const void *buf, u32 nr,
		      struct mtftl_unit_info *info)
{
	int r = mtftl_unit_parse(buf, ftl->config.seed, zone, offset, ftl->config.capacity, info);

	if (!r && (info->type != MTFTL_UNIT_CKPT || !info->nr_blocks ||
		   info->nr_entries != info->nr_blocks || info->nr_blocks >= nr))
		r = -EINVAL;
	return r;
}

/* A block of the unit in @buf: entry @i shall be block @index of the stream. */
static int take_block(struct mtftl *ftl, const void *buf, u32 i, u32 index, u64 *lba, bool tell)
{
	const void *block = buf + (1 + i) * MTFTL_BLOCK_SIZE;
	u32 crc;

	mtftl_assert(i < CKPT_PAYLOAD, "entry %u", i);
	mtftl_unit_entry(buf, i, lba, &crc);
	if (*lba != index || index >= mtftl_super_info(ftl)->ckpt_blocks ||
	    crc != mtftl_payload_crc(ftl->config.seed, block))
		return -EBADMSG;
	return load_block(ftl, index, block, tell);
}

static int load_unit(struct mtftl *ftl, u32 zone, u32 *offset, u32 *index, u64 *seq)
{
	void *buf = ftl->checkpoints->buf;
	struct mtftl_unit_info info;
	u32 i, nr;
	u64 lba;
	int r;

	r = read_unit(ftl, zone, *offset, buf, &nr);
	if (r)
		return r;
	r = parse_unit(ftl, zone, *offset, buf, nr, &info);
	if (r) {
		tell_header(ftl, zone, *offset, buf, r);
		return r;
	}
	for (i = 0; i < info.nr_entries; i++) {
		r = take_block(ftl, buf, i, *index, &lba, true);
		if (r == -EBADMSG)
			mtftl_err(ftl, "checkpoint: zone %u block %u: entry %u: lba %llu, expected %u and a block that verifies",
				  zone, *offset, i, lba, *index);
		if (r)
			return r;
		(*index)++;
	}
	*offset += 1 + info.nr_blocks;
	mtftl_assert(*offset <= ftl->config.capacity, "zone %u: block %u", zone, *offset);
	mtftl_assert(*index <= mtftl_super_info(ftl)->ckpt_blocks, "block %u", *index);
	*seq = info.seq;
	if (mtftl_seq_last(ftl) < info.seq)
		mtftl_seq_set_last(ftl, info.seq, 0);
	return 0;
}

/* One unit after the other, wherever each ends. What is wrong with one is told. */
static int load_in_order(struct mtftl *ftl)
{
	const struct mtftl_sb_info *sb = mtftl_super_info(ftl);
	u32 index = 0, zone = 0, offset = 0;
	int r = 0;
	u64 seq;

	while (!r && index < sb->ckpt_blocks) {
		if (zone >= sb->ckpt_nr_zones)
			return -EBADMSG;
		r = load_unit(ftl, sb->ckpt_zones[zone], &offset, &index, &seq);
		if (ftl->config.capacity - offset < 1 + MTFTL_STREAM_UNIT_BLOCKS) {
			zone++;
			offset = 0;
		}
		if (mtftl_interrupted())
			return -EINTR;
	}
	mtftl_assert(r || index == mtftl_super_info(ftl)->ckpt_blocks, "%u blocks", index);
	return r;
}

/*
 * Where units lie if all are as long as the first one, except the last of a zone and of the stream:
 * as ckpt_next_block() has them.
 */
struct ckpt_layout {
	struct mtftl *ftl;
	u32 payload;		/* blocks of a unit */
	u32 zone_units;		/* of a full zone */
	u32 zone_blocks;	/* of the stream */
	u32 nr_units;
	spinlock_t lock;	/* what follows */
	u64 last_seq;
};

/* False: they do not fit into the zones. */
static bool lay_out(struct ckpt_layout *layout, u32 payload)
{
	const struct mtftl_sb_info *sb = mtftl_super_info(layout->ftl);
	u32 capacity = layout->ftl->config.capacity, full = capacity / (1 + payload);
	u32 rest = capacity % (1 + payload), left;

	mtftl_assert(payload && payload <= CKPT_PAYLOAD, "%u blocks", payload);
	layout->payload = payload;
	layout->zone_units = full;
	layout->zone_blocks = full * payload;
	if (rest >= 1 + MTFTL_STREAM_UNIT_BLOCKS) {
		layout->zone_units++;
		layout->zone_blocks += rest - 1;
	}
	if (!full)
		return false;
	left = (u32)sb->ckpt_blocks % layout->zone_blocks;
	layout->nr_units = (u32)sb->ckpt_blocks / layout->zone_blocks * layout->zone_units +
			   DIV_ROUND_UP(left, payload);
	return DIV_ROUND_UP(layout->nr_units, layout->zone_units) <= sb->ckpt_nr_zones;
}

static int load_at(struct ckpt_layout *layout, u32 number, void *buf)
{
	const struct mtftl_sb_info *sb = mtftl_super_info(layout->ftl);
	u32 unit = number % layout->zone_units, set = number / layout->zone_units;
	u32 index = set * layout->zone_blocks + unit * layout->payload;
	u32 end = min((set + 1) * layout->zone_blocks, (u32)sb->ckpt_blocks);
	u32 zone = sb->ckpt_zones[set], offset = unit * (1 + layout->payload), i, nr;
	struct mtftl_unit_info info;
	u64 lba;
	int r;

	mtftl_assert(number < layout->nr_units && set < sb->ckpt_nr_zones, "unit %u of %u",
		     number, layout->nr_units);
	r = read_unit(layout->ftl, zone, offset, buf, &nr);
	r = r ?: parse_unit(layout->ftl, zone, offset, buf, nr, &info);
	if (!r && (index >= end || info.nr_entries != min(layout->payload, end - index)))
		r = -EBADMSG;
	for (i = 0; !r && i < info.nr_entries; i++)
		r = take_block(layout->ftl, buf, i, index + i, &lba, false);
	if (r)
		return r;
	spin_lock(&layout->lock);
	layout->last_seq = max(layout->last_seq, info.seq);
	spin_unlock(&layout->lock);
	return 0;
}

/* A few units: so few that each CPU gets some. */
static int load_part(void *private, u32 number, void *buf)
{
	struct ckpt_layout *layout = private;
	u32 unit = number * PART_UNITS, end = min(unit + PART_UNITS, layout->nr_units);
	int r = 0;

	mtftl_assert(unit < end, "unit %u of %u", unit, layout->nr_units);
	for (; !r && unit < end; unit++)
		r = load_at(layout, unit, buf);
	return r;
}

/* No other stream has units of these numbers: the record may be older than what is there. */
static bool is_of_stream(const struct mtftl_sb_info *sb, u64 seq, u64 before, bool last)
{
	mtftl_assert(sb->map_log && sb->ckpt_unit_first <= sb->ckpt_unit_last);
	return before ? seq > before && (last ? seq == sb->ckpt_unit_last :
						seq < sb->ckpt_unit_last) :
			seq == sb->ckpt_unit_first && (!last || seq == sb->ckpt_unit_last);
}

/* The stream that the record names; *@seat: where it ends. */
static int load_stream(struct mtftl *ftl, u32 *seat)
{
	const struct mtftl_sb_info *sb = mtftl_super_info(ftl);
	u32 index = 0, offset = sb->ckpt_offset, entered = 1, most = sb->ckpt_nr_zones / 2;
	u64 before = 0, seq;
	int r;

	*seat = sb->ckpt_seat;
	while (index < sb->ckpt_blocks) {
		if (mtftl_interrupted())
			return -EINTR;
		if (!mtftl_log_takes(ftl->config.capacity, offset)) {
			*seat = (*seat + 1) % sb->ckpt_nr_zones;
			offset = 0;
			entered++;
		}
		/* Around the circle it would end where it began, as if it were short. */
		if (entered > most) {
			mtftl_err(ftl, "checkpoint: the stream goes on in seat %u, expected at most %u seats from seat %u on",
				  *seat, most, sb->ckpt_seat);
			return -EINVAL;
		}
		r = load_unit(ftl, sb->ckpt_zones[*seat], &offset, &index, &seq);
		if (!r && !is_of_stream(sb, seq, before, index == sb->ckpt_blocks)) {
			mtftl_err(ftl, "checkpoint: zone %u: a unit of the stream has number %llu behind %llu, expected ckpt_unit_first %llu to ckpt_unit_last %llu",
				  sb->ckpt_zones[*seat], seq, before, sb->ckpt_unit_first,
				  sb->ckpt_unit_last);
			r = -EINVAL;
		}
		if (r && !before)
			mtftl_err(ftl, "checkpoint: ckpt_seat is %u and ckpt_offset %u, expected the beginning of its stream (%d)",
				  sb->ckpt_seat, sb->ckpt_offset, r);
		if (r)
			return r;
		before = seq;
	}
	mtftl_assert(index == sb->ckpt_blocks, "%u blocks", index);
	return 0;
}

static int load_log(struct mtftl *ftl)
{
	struct mtftl_checkpoints *ckpts = ftl->checkpoints;
	const struct mtftl_sb_info *sb = mtftl_super_info(ftl);
	const struct mtftl_zone *zone;
	u32 head, span = 0;
	int r;

	r = load_stream(ftl, &head) ?:
	    mtftl_mapblocks_load(ckpts->blocks, ckpts->spread, sb->ckpt_seat, head, &span);
	if (r)
		return r;
	mtftl_assert(span && span <= sb->ckpt_nr_zones / 2, "%u zones", span);
	/* The log goes on behind what a cut left there, if that is whole. */
	zone = mtftl_zone(ftl, sb->ckpt_zones[head]);
	ckpts->log = (struct mtftl_log) { .head = head, .offset = zone->wp, .span = span };
	if (zone->torn_sectors || zone->broken || zone->state != MTFTL_ZONE_PARTIAL)
		ckpts->log.offset = ftl->config.capacity;
	return 0;
}

int mtftl_checkpoint_load(struct mtftl *ftl)
{
	const struct mtftl_sb_info *sb = mtftl_super_info(ftl);
	struct ckpt_layout layout = { .ftl = ftl };
	void *buf = ftl->checkpoints->buf;
	struct mtftl_unit_info info;
	int r = -EBADMSG;
	u32 nr;

	spin_lock_init(&layout.lock);
	mtftl_seq_set_last(ftl, sb->ckpt_seq, 0);
	if (sb->map_log)
		return load_log(ftl);
	mtftl_assert(sb->ckpt_blocks == mtftl_checkpoint_blocks(&ftl->config));
	if (!read_unit(ftl, sb->ckpt_zones[0], 0, buf, &nr) &&
	    !parse_unit(ftl, sb->ckpt_zones[0], 0, buf, nr, &info) &&
	    lay_out(&layout, info.nr_blocks))
		r = mtftl_spread(ftl->checkpoints->spread,
				 DIV_ROUND_UP(layout.nr_units, PART_UNITS), load_part, &layout);
	if (r == -EINTR)
		return r;
	/* It is laid out in another way, or it is damaged. */
	if (r)
		return load_in_order(ftl);
	mtftl_seq_set_last(ftl, max(sb->ckpt_seq, layout.last_seq), 0);
	return 0;
}

const struct mtftl_zone_record *mtftl_checkpoint_record(const struct mtftl *ftl, u32 zone)
{
	mtftl_assert(zone < ftl->config.nr_zones, "zone %u", zone);
	return &ftl->checkpoints->records[zone];
}

u64 mtftl_checkpoint_bytes(const struct mtftl *ftl)
{
	return ftl->config.nr_zones * sizeof(*ftl->checkpoints->records) +
	       mtftl_mapblocks_bytes(ftl->checkpoints->blocks);
}

void *mtftl_checkpoint_buf(const struct mtftl *ftl)
{
	return ftl->checkpoints->buf;
}

struct mtftl_scanner *mtftl_checkpoint_scanner(const struct mtftl *ftl)
{
	return ftl->checkpoints->scanner;
}

struct mtftl_spread *mtftl_checkpoint_spread(const struct mtftl *ftl)
{
	return ftl->checkpoints->spread;
}

/* Seats get what they lack from zones of the lowest numbers that serve. False: some lack one. */
static bool fill_seats(struct mtftl *ftl, bool (*serves)(const struct mtftl_zone *zone))
{
	struct mtftl_checkpoints *ckpts = ftl->checkpoints;
	struct mtftl_zone *zone = mtftl_zone(ftl, MTFTL_NR_SB_ZONES);
	u32 i;

	for (i = 0; zone && i < 2 * ckpts->set_zones; i++) {
		if (ckpts->seats[i] != NO_ZONE)
			continue;
		zone = find_zone(ftl, zone->index, serves);
		if (zone) {
			mtftl_assert(zone->state != MTFTL_ZONE_SUPER, "zone %u", zone->index);
			mtftl_zone_move(zone, MTFTL_ZONE_CKPT);
			ckpts->seats[i] = zone->index;
		}
	}
	return zone;
}

/* The zones that the record names. Those that the checkpoint does not need may be replaced. */
static void take_seats(struct mtftl_checkpoints *ckpts, const u32 *zones, u32 nr)
{
	u32 seats = 2 * ckpts->set_zones, i;

	mtftl_assert(nr <= seats && ckpts->log.span <= ckpts->set_zones, "%u zones", nr);
	for (i = 0; i < seats; i++)
		ckpts->seats[i] = i < nr ? zones[i] : NO_ZONE;
	for (i = 0; i < seats; i++) {
		/* From the head of the log backwards. */
		u32 *seat = seat_behind(ckpts, seats - i);
		struct mtftl_zone *zone;

		if (*seat == NO_ZONE)
			continue;
		zone = mtftl_zone(ckpts->ftl, *seat);
		if (i >= ckpts->log.span && (zone->state == MTFTL_ZONE_BAD || zone->broken))
			*seat = NO_ZONE;
		else
			mtftl_zone_move(zone, MTFTL_ZONE_CKPT);
	}
}

int mtftl_checkpoint_set_aside(struct mtftl *ftl, u32 *first_data)
{
	const struct mtftl_sb_info *sb = mtftl_super_info(ftl);
	struct mtftl_checkpoints *ckpts = ftl->checkpoints;
	u32 n = sb->ckpt_nr_zones;

	ckpts->set_zones = mtftl_ckpt_zones(ftl->config.nr_zones, ftl->config.capacity,
					    ftl->config.logical_blocks);
	ckpts->map_log = sb->map_log;
	ckpts->redo = !sb->map_log;
	/* The parser of records has refused others. */
	mtftl_assert(!n || n == ckpts->set_zones * (1 + ckpts->map_log), "%u zones", n);
	mtftl_assert(ckpts->set_zones && ckpts->set_zones <= MTFTL_SB_MAX_CKPT_ZONES, "%u zones",
		     ckpts->set_zones);
	*first_data = MTFTL_NR_SB_ZONES + 2 * ckpts->set_zones;
	mtftl_assert(*first_data < ftl->config.nr_zones, "%u zones", *first_data);
	if (!n || !ckpts->map_log)
		ckpts->log = (struct mtftl_log) {
			.head = ckpts->set_zones - 1, .offset = ftl->config.capacity, .span = n,
		};
	mtftl_assert(ckpts->log.head < 2 * ckpts->set_zones && !n == !ckpts->log.span, "seat %u",
		     ckpts->log.head);
	/* Seats that lack a zone get one later. What the record does not name may hold data. */
	take_seats(ckpts, sb->ckpt_zones, n);
	return 0;
}

/*
 * A drive counts zones that are written in part. A power cut may leave several that no checkpoint
 * needs, and the next ones of a log reset a zone as they enter it, not all of them first.
 */
static void finish_spent(struct mtftl *ftl)
{
	struct mtftl_checkpoints *ckpts = ftl->checkpoints;
	u32 i;

	mtftl_assert(are_apart(ckpts));
	for (i = 1; i <= 2 * ckpts->set_zones - ckpts->log.span; i++) {
		struct mtftl_zone *zone = mtftl_zone(ftl, *seat_behind(ckpts, i));

		mtftl_assert(zone->state == MTFTL_ZONE_CKPT, "zone %u: state %u", zone->index,
			     zone->state);
		/* One of all of the map resets its zones first. */
		if ((ckpts->map_log || !is_low(zone)) && (zone->wp || zone->torn_sectors) &&
		    zone->wp < ftl->config.capacity)
			mtftl_zone_mgmt(ftl, zone->index, REQ_OP_ZONE_FINISH);
	}
}

void mtftl_checkpoint_replace_bad(struct mtftl *ftl)
{
	if (mtftl_is_read_only(ftl))
		return;
	/* If each mount that a power cut ends took an empty zone, GC would soon have none. */
	if (fill_seats(ftl, is_low_and_free) || fill_seats(ftl, is_spent) ||
	    fill_seats(ftl, is_empty))
		finish_spent(ftl);
	else
		mtftl_set_read_only(ftl, "no zones are left for a checkpoint");
}

int mtftl_checkpoints_alloc(struct mtftl *ftl)
{
	struct mtftl_checkpoints *ckpts = kzalloc_obj(*ckpts, GFP_KERNEL);

	if (!ckpts)
		return -ENOMEM;
	ftl->checkpoints = ckpts;
	ckpts->ftl = ftl;
	mutex_init(&ckpts->lock);
	INIT_WORK(&ckpts->work, checkpoint_work);
	mtftl_streams_on_open(ftl, zone_opened);
	ckpts->wq = alloc_ordered_workqueue("mtftl-ckpt-%s", WQ_MEM_RECLAIM, mtftl_disk_name(ftl));
	ckpts->buf = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, MTFTL_BUFFER_ORDER);
	ckpts->records = kvcalloc(ftl->config.nr_zones, sizeof(*ckpts->records), GFP_KERNEL);
	ckpts->scanner = mtftl_scanner_alloc(ftl, GFP_KERNEL);
	ckpts->spread = mtftl_spread_alloc(ftl);
	ckpts->blocks = mtftl_mapblocks_alloc(ftl);
	return ckpts->wq && ckpts->buf && ckpts->records && ckpts->scanner && ckpts->spread &&
	       ckpts->blocks ? 0 : -ENOMEM;
}

void mtftl_checkpoints_settle(struct mtftl *ftl)
{
	flush_workqueue(ftl->checkpoints->wq);
}

void mtftl_checkpoints_stop(struct mtftl *ftl)
{
	if (!ftl->checkpoints)
		return;
	if (ftl->checkpoints->wq)
		destroy_workqueue(ftl->checkpoints->wq);
	ftl->checkpoints->wq = NULL;
}

void mtftl_checkpoints_free(struct mtftl *ftl)
{
	struct mtftl_checkpoints *ckpts = ftl->checkpoints;

	if (!ckpts)
		return;
	mtftl_checkpoints_stop(ftl);
	kvfree(ckpts->records);
	free_pages((unsigned long)ckpts->buf, MTFTL_BUFFER_ORDER);
	mtftl_scanner_free(ckpts->scanner);
	mtftl_spread_free(ckpts->spread);
	mtftl_mapblocks_free(ckpts->blocks);
	kfree(ckpts);
	ftl->checkpoints = NULL;
}
