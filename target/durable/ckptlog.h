/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The zones set aside for checkpoints, as units are written to them, one behind the other: a circle
 * of seats, see format/maplog.h. What is written and where it may go is up to the caller.
 *
 * For one checkpoint at a time. All of it sleeps, and allocates nothing.
 */
#ifndef MTFTL_CKPTLOG_H
#define MTFTL_CKPTLOG_H

#include "device/ftl.h"
#include "format/maplog.h"

struct mtftl_ckpt_stream {
	struct mtftl *ftl;
	const u32 *seats;	/* zones set aside */
	u32 nr_seats;
	u32 begin;		/* seat that it begins in */
	u32 last;		/* zones behind that one that it may enter */
	struct mtftl_log_at at;	/* counted from there */
	bool mounting;		/* a fatal signal ends it */
	void *buf;		/* of MTFTL_BUFFER_ORDER */

	/* The run: units of one type. */
	enum mtftl_unit_type type;
	u32 fill;		/* payload blocks in the buffer */
	u32 ids[MTFTL_LOG_UNIT_BLOCKS];	/* for their entries */
	struct mtftl_log_at first_at;	/* of its first unit */
	u64 first_seq, last_seq;	/* of its units; 0: there is none */
	/* The unit in the buffer lies there now. */
	void (*landed)(struct mtftl_ckpt_stream *stream, u32 seat, u32 offset);
	void *private;
};

/*
 * What is written from now on a suspend waits for, until mtftl_send_end(). -EAGAIN: in a pause.
 * -EROFS: the device turned read-only meanwhile, perhaps because another system wrote to it.
 */
int mtftl_ckpt_send_begin(struct mtftl *ftl);
/* A zone set aside, and no checkpoint that counts needs what it holds. */
int mtftl_ckpt_reset_zone(struct mtftl *ftl, u32 zone);
/* It is not written to any more: not full, it would stay active. */
void mtftl_ckpt_finish_zone(struct mtftl *ftl, u32 zone);

void mtftl_ckpt_begin_run(struct mtftl_ckpt_stream *stream, enum mtftl_unit_type type);
/* For block @id; it is written when the unit is full. NULL: error. */
void *mtftl_ckpt_next_block(struct mtftl_ckpt_stream *stream, u32 id, int *error);
/* Not needed after all. */
static inline void mtftl_ckpt_drop_block(struct mtftl_ckpt_stream *stream)
{
	mtftl_assert(stream->fill);
	stream->fill--;
}

int mtftl_ckpt_end_run(struct mtftl_ckpt_stream *stream);

#endif
