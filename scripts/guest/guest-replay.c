// SPDX-License-Identifier: GPL-2.0
/*
 * Replays a trace on a block device in open loop: a request is submitted when its time has come,
 * whatever is still under way.
 *
 *	guest-replay DEVICE DEPTH <TRACE >ROWS
 *
 * Each line of the trace is "NS OP OFFSET BYTES", times not falling; OP is r (read), w (write), W
 * (write with FUA) or f (flush). Others are skipped. Offsets beyond the device's end are moved
 * inside. If DEPTH requests are under way, the next one waits for an end.
 *
 * A row for each request, in the order in which they end: its number, when it was due, OP, OFFSET,
 * BYTES, how late it was submitted, the time from when it was due to its end, and the result: 0,
 * or the negative error. While it waits, it collects ends, so that their times are true. It says
 * on the standard error how many rows were late, moved or skipped.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/aio_abi.h>
#include <string.h>
#include <sys/syscall.h>

#include "guest.h"

#define ALIGN 4096u
#define MOST_DEPTH 4096u
#define LATE 100000u			/* ns: later than that is worth a word */

struct request {
	struct iocb iocb;
	uint64_t number, due, submitted, offset, bytes;
	char op;
	struct {
		void *bytes;
		uint64_t room;
	} buffers[2];			/* what is read, and what is written: always the same */
	struct request *next;		/* of those that are free */
};

static aio_context_t context;
static struct request *spare;
static unsigned int under_way, depth;
static uint64_t began, late, moved, skipped;

static void end_one(const struct io_event *event)
{
	struct request *r = (struct request *)(uintptr_t)event->data;
	int64_t result = event->res < 0 ? event->res : 0;

	if (r->op != 'f' && result == 0 && (uint64_t)event->res != r->bytes)
		result = -EIO;
	printf("%llu,%llu,%c,%llu,%llu,%llu,%llu,%lld\n", (unsigned long long)r->number,
	       (unsigned long long)r->due, r->op, (unsigned long long)r->offset, (unsigned long long)r->bytes,
	       (unsigned long long)(r->submitted - r->due), (unsigned long long)(now() - began - r->due),
	       (long long)result);
	r->next = spare;
	spare = r;
	under_way--;
}

/* Collect what has ended, until that instant; 0: at least one end, however long it takes. */
static void collect(uint64_t until)
{
	struct io_event events[64];

	for (;;) {
		uint64_t at = now() - began;
		uint64_t wait = until > at ? until - at : 0;
		struct timespec time = { .tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000 };
		long n = syscall(SYS_io_getevents, context, until ? 0L : 1L, 64L, events, until ? &time : NULL);

		if (n < 0 && errno != EINTR)
			die("io_getevents");
		for (long i = 0; i < n; i++)
			end_one(&events[i]);
		if (until ? !wait : n > 0)
			return;
		if (until && !under_way && n <= 0) {
			nanosleep(&time, NULL);
			return;
		}
	}
}

static struct request *take(void)
{
	struct request *r;

	while (!spare)
		collect(0);
	r = spare;
	spare = r->next;
	return r;
}

static void *buffer_of(struct request *r)
{
	int i = r->op != 'r';

	if (r->bytes > r->buffers[i].room) {
		free(r->buffers[i].bytes);
		if (posix_memalign(&r->buffers[i].bytes, ALIGN, r->bytes))
			die("no memory for a request");
		memset(r->buffers[i].bytes, 0x5a, r->bytes);
		r->buffers[i].room = r->bytes;
	}
	return r->buffers[i].bytes;
}

static void submit(int device, struct request *r)
{
	struct iocb *iocb = &r->iocb;
	long n;

	memset(iocb, 0, sizeof(*iocb));
	iocb->aio_data = (uintptr_t)r;
	iocb->aio_fildes = device;
	if (r->op == 'f') {
		iocb->aio_lio_opcode = IOCB_CMD_FDSYNC;
	} else {
		iocb->aio_lio_opcode = r->op == 'r' ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
		iocb->aio_rw_flags = r->op == 'W' ? RWF_DSYNC : 0;
		iocb->aio_buf = (uintptr_t)buffer_of(r);
		iocb->aio_nbytes = r->bytes;
		iocb->aio_offset = r->offset;
	}
	r->submitted = now() - began;
	late += r->submitted - r->due > LATE;
	under_way++;
	while ((n = syscall(SYS_io_submit, context, 1L, &iocb)) != 1) {
		if (n >= 0 || errno != EAGAIN)
			die("io_submit");
		collect(0);
	}
}

/* Whole blocks inside the device: its last request may be shorter than the trace's. */
static void fit(struct request *r, uint64_t size)
{
	uint64_t end = (r->offset + r->bytes + ALIGN - 1) / ALIGN * ALIGN;

	r->offset = r->offset / ALIGN * ALIGN;
	r->bytes = end - r->offset;
	if (end > size) {
		moved++;
		r->bytes = r->bytes < size ? r->bytes : size;
		r->offset = r->offset % size;
		if (r->offset + r->bytes > size)
			r->offset = size - r->bytes;
	}
}

int main(int argc, char **argv)
{
	unsigned long long due, offset, bytes;
	uint64_t number = 0, size = 0;
	struct request *all;
	int device;
	char op;

	depth = argc == 3 ? strtoul(argv[2], NULL, 0) : 0;
	if (!depth || depth > MOST_DEPTH) {
		fprintf(stderr, "usage: guest-replay DEVICE DEPTH <TRACE >ROWS, and DEPTH at most %u\n", MOST_DEPTH);
		return 2;
	}
	device = open(argv[1], O_RDWR | O_DIRECT);
	if (device < 0)
		die(argv[1]);
	size = lseek(device, 0, SEEK_END) / ALIGN * ALIGN;
	all = calloc(depth, sizeof(*all));
	if (!all || !size)
		die("no memory, or nothing on the device");
	for (unsigned int i = 0; i < depth; i++) {
		all[i].next = spare;
		spare = &all[i];
	}
	if (syscall(SYS_io_setup, (long)depth, &context))
		die("io_setup");
	printf("n,time_ns,op,offset,bytes,late_ns,total_ns,status\n");
	began = now();
	while (scanf(" %llu %c %llu %llu", &due, &op, &offset, &bytes) == 4) {
		struct request *r;

		number++;
		if (!strchr("rwWf", op) || (op != 'f' && !bytes)) {
			skipped++;
			continue;
		}
		if (due > now() - began)
			collect(due);
		r = take();
		r->number = number;
		r->due = due;
		r->op = op;
		r->offset = op == 'f' ? 0 : offset;
		r->bytes = op == 'f' ? 0 : bytes;
		if (op != 'f')
			fit(r, size);
		submit(device, r);
	}
	while (under_way)
		collect(0);
	fprintf(stderr, "%llu requests: %llu more than %u us late, %llu moved inside, %llu skipped\n",
		(unsigned long long)number, (unsigned long long)late, LATE / 1000, (unsigned long long)moved,
		(unsigned long long)skipped);
	return 0;
}
