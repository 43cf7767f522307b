/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Admission: which level of scarcity holds, which sources of space each right may use, in which
 * order, and whether a wait can ever end. Pure: everything follows from limits and state.
 *
 * Life of a zone: empty -> open (in a stream of users or of GC) -> closing (no more units start;
 * its units land, then its footer is written or the zone is finished) -> full -> victim (its valid
 * blocks move) -> resetting -> empty. A partial zone was open when the device was mounted, and is
 * opened again. A victim that could not be emptied is full again. Open, closing and partial zones
 * count against limits->data_zones.
 *
 * Levels, from the most space to none, each with the restrictions of those before it. Free: users
 * wait for nothing. Slowed: blocks enter the buffers at a rate, see mtftl_rate_allowance(). Paced:
 * they leave them as GC gains space, see mtftl_rate_credit(). Gated: nothing enters the buffers,
 * and what is there may use the reserve. Dead end: a right waits for what cannot happen, and the
 * device turns read-only.
 *
 * Life of a user's block: it enters the buffers unless these are gated, takes place with the
 * USER right, and leaves the buffers when its unit has landed. A unit whose write failed takes
 * place again with the RETRY right; its zone is broken, has no room left, and is closed.
 *
 * What waits for what. A reset needs on flash what replaced the zone's blocks. The lanes write that
 * ahead of everything else; if one of them does not at once, if users are gated, or if a discard is
 * not logged yet, the reset waits for a flush. A flush needs its discard records on flash (FLUSH
 * right), then every block that is buffered when it begins. A block that waits for a retry is
 * still buffered. A victim needs place with the GC right for each block that is still valid. GC
 * needs no reset and no flush to move a victim. It takes full zones from which something can be
 * gained, while fewer than limits->low_water zones are empty or resetting; if there are none, if
 * it has no victim under way and no zone is resetting, no_victim is set.
 *
 * A zone whose write failed is closed and full, with what is valid in it. After the second failure
 * in a row GC clears it, and then it is bad. A zone that cannot be reset is full again once, and
 * bad the second time.
 *
 * A writer walks the list of mtftl_admit_sources() and takes place in the first zone that has
 * room: a header and a block for USER and GC, whose units are cut to the room that there is; one
 * block for FLUSH; the whole unit for RETRY. On its way it closes zones that are broken or have
 * less room than that. If the source may open zones, a stream without a zone opens one, if
 * mtftl_admit_may_open() still agrees under the lock of the zones. If no source has room, the
 * writer waits until a zone was opened, became full or empty, a unit landed, the level fell,
 * no_victim changed, or the last block left the buffers behind the gate. Then it looks again.
 * Every list for USER, FLUSH and RETRY begins with users' streams, the writer's own first. So a
 * writer may look into that stream's open zone before it asks for the list.
 *
 * One slice of GC waits: that of the oldest victim. Any other victim that finds no place is given
 * up and is full again, with the blocks that are still valid in it.
 */
#ifndef MTFTL_ADMIT_H
#define MTFTL_ADMIT_H

#include "lib/pure.h"

enum mtftl_zone_state {
	MTFTL_ZONE_EMPTY,
	MTFTL_ZONE_OPEN,	/* a stream writes to it */
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

/* For what a writer needs place. */
enum mtftl_right {
	MTFTL_RIGHT_USER,	/* buffered blocks, whatever wants them written */
	MTFTL_RIGHT_FLUSH,	/* discard records that a flush needs: one block a unit */
	MTFTL_RIGHT_RETRY,	/* a unit whose write failed: the whole unit in one zone */
	MTFTL_RIGHT_GC,		/* valid blocks of a victim */
	MTFTL_RIGHT_META,	/* a zone in place of a broken checkpoint zone */
	MTFTL_NR_RIGHTS
};

/* Where a writer looks for place. Each source goes over several streams in turn. */
enum mtftl_source {
	MTFTL_FROM_CLASS,	/* open zones of users' streams of the writer's own class */
	MTFTL_FROM_USERS,	/* open zones of all users' streams, the own class first */
	MTFTL_FROM_GC,		/* open zones of GC's streams, the own class first */
	MTFTL_FROM_USERS_NEW,	/* as FROM_USERS, and a stream without a zone opens one */
	MTFTL_FROM_GC_NEW,	/* as FROM_GC, and a stream without a zone opens one */
	MTFTL_NR_SOURCES
};

struct mtftl_sources {
	u8 nr;
	u8 from[MTFTL_NR_SOURCES];	/* enum mtftl_source, the first choice first */
};

/* Fixed for a table, except for low_water. Zones, if nothing else is said. */
struct mtftl_admit_limits {
	u32 smallest;		/* unit: blocks, header included; 1 or 2 */
	u32 usable;		/* blocks of a zone that units take: mtftl_admit_room() */
	u32 reserve;		/* zones that users leave: buffer_zones, and one or two for GC */
	u32 buffer_zones;	/* of them: for buffered blocks, and one if a write may fail */
	u32 flush_zones;	/* of them: for flushes although nothing is buffered; 1 or 2 */
	u32 low_water;		/* GC works below it; > reserve */
	u32 data_zones;		/* open, closing and partial at most */
	u32 buffered;		/* blocks that full buffers take, in the smallest units */
	u32 slack;		/* blocks that all lanes together take before any sees the others */
	bool gc_shares;		/* one open zone, which users and GC share: their streams are one */
	bool gc_apart;		/* GC has classes of its own: it keeps out of users' zones */
	bool users_apart;	/* users keep out of GC's zones as long as the reserve lasts */
};

/* What admission looks at. Blocks, zones and flags as they are now, or were a moment ago. */
struct mtftl_admit_state {
	u32 zones[MTFTL_NR_ZONE_STATES];	/* super, checkpoint and bad ones do not matter */
	u32 users_room;		/* blocks left in users' open zones: mtftl_admit_room() of each */
	u32 gc_room;		/* blocks left in GC's open zones, less one a zone; 0: gc_shares */
	u32 gc_owes;		/* blocks that GC may still write for the victims it has begun */
	/* Earlier answers, which hold until they are asked for again. */
	u32 buffer_promise;	/* mtftl_admit_gate(): empty zones that GC leaves to the buffers */
	bool gated;		/* mtftl_admit_gate() */
	bool paced;		/* mtftl_admit_pace() */
	/* What happens. */
	bool gc_has_zone;	/* a stream of GC has an open zone */
	bool no_victim;		/* GC found no zone to gain from, and none is resetting */
	bool gc_works;		/* GC has a victim and may go on */
	bool stopped;		/* read-only or paused: nothing is slowed */
	bool buffers_empty;
	bool at_work;		/* commands at the device other than reads and units */
	bool in_flight;		/* units at the device; for USER and GC, also those to be retried */
	bool flushing;		/* a flush waits for what is buffered, and resets for the flush */
};

/* Call it whenever the empty zones, users_room, gc_room, gc_owes or no_victim have changed. */
void mtftl_admit_gate(const struct mtftl_admit_limits *limits, struct mtftl_admit_state *state);
/* GC calls it when it begins with a victim and when it rests, and sometimes in between. */
void mtftl_admit_pace(const struct mtftl_admit_limits *limits, struct mtftl_admit_state *state);
bool mtftl_admit_is_slowed(const struct mtftl_admit_limits *limits,
			   const struct mtftl_admit_state *state);
/*
 * Buffered blocks wait for credit, unless a flush, a reset or a FUA write wants them. While GC
 * finds no place itself they do not wait: empty buffers leave more to GC.
 */
static inline bool mtftl_admit_is_spent(bool paced, bool gc_waits, bool spent)
{
	return paced && !gc_waits && spent;
}

struct mtftl_sources mtftl_admit_sources(const struct mtftl_admit_limits *limits,
					 const struct mtftl_admit_state *state,
					 enum mtftl_right right);
/* May a stream without a zone, or META, take one now? */
bool mtftl_admit_may_open(const struct mtftl_admit_limits *limits,
			  const struct mtftl_admit_state *state, enum mtftl_right right);
/*
 * May GC begin to move one more victim, which needs so many blocks, although it has others under
 * way? The first one may always begin: its own blocks are what it gains.
 */
bool mtftl_admit_victim(const struct mtftl_admit_limits *limits,
			const struct mtftl_admit_state *state, u32 needs);
/*
 * Nothing that is under way brings a place for a right that waits. Before it turns read-only the
 * target sees this for five seconds, in which no unit is numbered and no space appears: by then
 * every wait that ends by itself has ended.
 */
bool mtftl_admit_is_dead_end(const struct mtftl_admit_state *state, enum mtftl_right right);
/* No zone is left that could ever take a retried unit: there is no need to wait. */
bool mtftl_admit_is_out(const struct mtftl_admit_state *state);

/* Empty zones beyond what GC and failed writes need, less than 0: some of these are missing. */
s32 mtftl_admit_spare(const struct mtftl_admit_limits *limits,
		      const struct mtftl_admit_state *state);
/* Blocks that may be written before the gate shuts. GC's count: it gives back what it takes. */
s64 mtftl_admit_left(const struct mtftl_admit_limits *limits,
		     const struct mtftl_admit_state *state, u64 room);

/* So few zones are empty that room in open ones matters: users_room has to be up to date. */
static inline bool mtftl_admit_is_room_needed(const struct mtftl_admit_limits *limits, u32 empty)
{
	return empty <= limits->reserve + 2;
}

/* Blocks of those left in a zone that units take, however small they are. */
static inline u32 mtftl_admit_room(const struct mtftl_admit_limits *limits, u32 left)
{
	return left - left % limits->smallest;
}

/* Zones that every format keeps from users: 2 buffer_zones, one for GC, one if that is shared. */
#define MTFTL_ADMIT_LEAST_SPARE	4u

/*
 * Limits for a device with so many zones beyond what users' blocks need. The first, which needs
 * usable, sets buffer_zones, flush_zones and users_apart, and lowers @buffer_entries to what fits.
 * The second, which needs these and gc_shares, sets reserve and low_water. @low_water: as asked
 * for, 0 for the default.
 */
void mtftl_admit_keep(struct mtftl_admit_limits *limits, u32 spare, u32 capacity, u32 write_unit,
		      u32 *buffer_entries);
void mtftl_admit_reserve(struct mtftl_admit_limits *limits, u32 spare, u32 nr_zones,
			 u32 low_water);

#endif
