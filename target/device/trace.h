/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints, for any component. Names of devices are left out: the dev_t tells them apart.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mtftl

#if !defined(MTFTL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MTFTL_TRACE_H

#include <linux/tracepoint.h>

#define mtftl_show_type(type) __print_symbolic(type,	\
	{ MTFTL_UNIT_DATA,	"data" },		\
	{ MTFTL_UNIT_GC,	"gc" },			\
	{ MTFTL_UNIT_RANGES,	"ranges" },		\
	{ MTFTL_UNIT_CKPT,	"checkpoint" },		\
	{ MTFTL_UNIT_MAP,	"map" },		\
	{ MTFTL_UNIT_FOOTER,	"footer" })

#define mtftl_show_state(state) __print_symbolic(state,	\
	{ MTFTL_ZONE_EMPTY,	"empty" },		\
	{ MTFTL_ZONE_OPEN,	"open" },		\
	{ MTFTL_ZONE_PARTIAL,	"partial" },		\
	{ MTFTL_ZONE_CLOSING,	"closing" },		\
	{ MTFTL_ZONE_FULL,	"full" },		\
	{ MTFTL_ZONE_VICTIM,	"victim" },		\
	{ MTFTL_ZONE_RESETTING,	"resetting" },		\
	{ MTFTL_ZONE_SUPER,	"super" },		\
	{ MTFTL_ZONE_CKPT,	"checkpoint" },		\
	{ MTFTL_ZONE_BAD,	"bad" })

/* Blocks entered a lane's buffer; used: its slots taken, these included. */
TRACE_EVENT(mtftl_insert,
	    TP_PROTO(dev_t dev, u32 lane, u32 lba, u32 blocks, u32 used),
	    TP_ARGS(dev, lane, lba, blocks, used),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u32, lane)
			     __field(u32, lba)
			     __field(u32, blocks)
			     __field(u32, used)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->lane = lane;
			   __entry->lba = lba;
			   __entry->blocks = blocks;
			   __entry->used = used;),
	    TP_printk("%d,%d lane %u lba %u + %u used %u", MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->lane, __entry->lba, __entry->blocks, __entry->used));

/* Slots of a lane became free; used: those still taken. */
TRACE_EVENT(mtftl_free,
	    TP_PROTO(dev_t dev, u32 lane, u32 used),
	    TP_ARGS(dev, lane, used),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u32, lane)
			     __field(u32, used)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->lane = lane;
			   __entry->used = used;),
	    TP_printk("%d,%d lane %u used %u", MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->lane, __entry->used));

DECLARE_EVENT_CLASS(mtftl_unit,
		    TP_PROTO(dev_t dev, u16 lane, u32 type, u64 seq, u32 blocks, u32 zone,
			     u32 offset, int status),
		    TP_ARGS(dev, lane, type, seq, blocks, zone, offset, status),
		    TP_STRUCT__entry(__field(dev_t, dev)
				     __field(int, lane)
				     __field(u32, type)
				     __field(u64, seq)
				     __field(u32, blocks)
				     __field(u32, zone)
				     __field(u32, offset)
				     __field(int, status)),
		    TP_fast_assign(__entry->dev = dev;
				   __entry->lane = lane == U16_MAX ? -1 : lane;
				   __entry->type = type;
				   __entry->seq = seq;
				   __entry->blocks = blocks;
				   __entry->zone = zone;
				   __entry->offset = offset;
				   __entry->status = status;),
		    TP_printk("%d,%d lane %d %s seq %llu blocks %u zone %u offset %u status %d",
			      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->lane,
			      mtftl_show_type(__entry->type), __entry->seq, __entry->blocks,
			      __entry->zone, __entry->offset, __entry->status));

DEFINE_EVENT(mtftl_unit, mtftl_unit_submitted,
	     TP_PROTO(dev_t dev, u16 lane, u32 type, u64 seq, u32 blocks, u32 zone, u32 offset,
		      int status),
	     TP_ARGS(dev, lane, type, seq, blocks, zone, offset, status));

DEFINE_EVENT(mtftl_unit, mtftl_unit_completed,
	     TP_PROTO(dev_t dev, u16 lane, u32 type, u64 seq, u32 blocks, u32 zone, u32 offset,
		      int status),
	     TP_ARGS(dev, lane, type, seq, blocks, zone, offset, status));

/* A number was drawn and slots were taken; they are not placed yet. */
TRACE_EVENT(mtftl_unit_composed,
	    TP_PROTO(dev_t dev, u32 lane, u64 seq, u32 taken, u32 live),
	    TP_ARGS(dev, lane, seq, taken, live),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u32, lane)
			     __field(u64, seq)
			     __field(u32, taken)
			     __field(u32, live)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->lane = lane;
			   __entry->seq = seq;
			   __entry->taken = taken;
			   __entry->live = live;),
	    TP_printk("%d,%d lane %u seq %llu slots %u live %u", MAJOR(__entry->dev),
		      MINOR(__entry->dev), __entry->lane, __entry->seq, __entry->taken,
		      __entry->live));

TRACE_EVENT(mtftl_zone_state,
	    TP_PROTO(dev_t dev, u32 zone, u32 from, u32 to, u32 wp, int valid),
	    TP_ARGS(dev, zone, from, to, wp, valid),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u32, zone)
			     __field(u32, from)
			     __field(u32, to)
			     __field(u32, wp)
			     __field(int, valid)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->zone = zone;
			   __entry->from = from;
			   __entry->to = to;
			   __entry->wp = wp;
			   __entry->valid = valid;),
	    TP_printk("%d,%d zone %u %s -> %s wp %u valid %d", MAJOR(__entry->dev),
		      MINOR(__entry->dev), __entry->zone, mtftl_show_state(__entry->from),
		      mtftl_show_state(__entry->to), __entry->wp, __entry->valid));

TRACE_EVENT(mtftl_gc_victim,
	    TP_PROTO(dev_t dev, u32 zone, u32 found, u32 coming, s64 credit),
	    TP_ARGS(dev, zone, found, coming, credit),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u32, zone)
			     __field(u32, found)
			     __field(u32, coming)
			     __field(s64, credit)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->zone = zone;
			   __entry->found = found;
			   __entry->coming = coming;
			   __entry->credit = credit;),
	    TP_printk("%d,%d zone %u moved %u free zones %u credit %lld", MAJOR(__entry->dev),
		      MINOR(__entry->dev), __entry->zone, __entry->found, __entry->coming,
		      __entry->credit));

TRACE_EVENT(mtftl_flush,
	    TP_PROTO(dev_t dev, u64 durable_seq, int error),
	    TP_ARGS(dev, durable_seq, error),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u64, durable_seq)
			     __field(int, error)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->durable_seq = durable_seq;
			   __entry->error = error;),
	    TP_printk("%d,%d durable up to %llu error %d", MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->durable_seq, __entry->error));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH device
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
