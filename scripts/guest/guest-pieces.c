// SPDX-License-Identifier: GPL-2.0
/*
 * guest-pieces DEVICE <PLAN: writes a device piece by piece, then reads pieces many at a time, and says how long that took.
 *
 * A plan has a line for each step; places and sizes are in KiB:
 *
 *	w AT SIZE		write, as an ordinary program does
 *	a AT SIZE BEFORE	write by NVMe passthrough: an append to the block at BEFORE (docs/emulator/blackbox.md, hints)
 *	o AT SIZE		the same: an overwrite
 *	f			flush
 *	r AT SIZE [AT SIZE]...	read all of these at once, and wait for them
 *	t READERS		so many such lines are read at the same time from here on: each reader takes the next one
 *	b AT SIZE		read it in order by 16 KiB, through the page cache, which is empty
 *	= NAME			print NAME, bytes and nanoseconds of the reads since the last such line
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/aio_abi.h>
#include <linux/nvme_ioctl.h>

#include "guest.h"

#define BLOCK 4096u
#define KIB 1024ull
#define MOST (16u << 20)		/* bytes of a step */
#define PIECES 4096u
#define RECORD 16384u
#define READERS 16u
#define HINT_APPEND (1u << 24)		/* of dword 12 */
#define HINT_OVERWRITE (1u << 25)

static int device;
static uint8_t *data;
static aio_context_t context;
static uint64_t took, bytes, start;
static unsigned int readers = 1, reading;
static unsigned int left[READERS];	/* of a reader's pieces */

static void write_hinted(uint64_t at, uint64_t size, uint32_t hint, uint64_t before)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = 0x01,
		.nsid = ioctl(device, NVME_IOCTL_ID),
		.cdw2 = before / BLOCK,
		.cdw3 = before / BLOCK >> 32,
		.addr = (uintptr_t)data,
		.data_len = size,
		.cdw10 = at / BLOCK,
		.cdw11 = at / BLOCK >> 32,
		.cdw12 = (size / BLOCK - 1) | hint,
	};

	if (ioctl(device, NVME_IOCTL_IO_CMD, &cmd))
		die("passthrough");
}

/* Sleeps until so many pieces have come that a reader may have all of its own. */
static void await_reader(void)
{
	static struct io_event events[PIECES];
	unsigned int least = PIECES, i;
	long n;

	for (i = 0; i < readers; i++)
		if (left[i] && left[i] < least)
			least = left[i];
	n = syscall(SYS_io_getevents, context, least, PIECES, events, NULL);
	if (n < least)
		die("io_getevents");
	while (n--) {
		if (events[n].res != (uint32_t)events[n].data) {
			fprintf(stderr, "guest-pieces: a read gives %lld\n", (long long)events[n].res);
			exit(1);
		}
		if (!--left[events[n].data >> 32])
			reading--;
	}
	if (!reading)
		took += now() - start;
}

static void read_all(const char *list)
{
	static struct iocb iocbs[PIECES], *submitted[PIECES];
	uint64_t at, size, sum = 0, most = MOST / readers / BLOCK * BLOCK, reader = 0;
	long n = 0, gone = 0;
	int used;

	while (left[reader])
		reader++;
	for (; sscanf(list, "%lu %lu%n", &at, &size, &used) == 2; list += used) {
		iocbs[n] = (struct iocb) {
			.aio_data = reader << 32 | size * KIB,
			.aio_lio_opcode = IOCB_CMD_PREAD,
			.aio_fildes = device,
			.aio_buf = (uintptr_t)data + reader * most + sum,
			.aio_nbytes = size * KIB,
			.aio_offset = at * KIB,
		};
		submitted[n] = &iocbs[n];
		sum += size * KIB;
		if (++n == PIECES || sum > most) {
			fprintf(stderr, "guest-pieces: too many pieces at once\n");
			exit(1);
		}
	}
	if (!reading++)
		start = now();
	left[reader] = n;
	while (gone < n) {
		long more = syscall(SYS_io_submit, context, n - gone, submitted + gone);

		if (more <= 0)
			die("io_submit");
		gone += more;
	}
	bytes += sum;
	while (reading == readers)
		await_reader();
}

static void read_buffered(const char *path, uint64_t at, uint64_t size)
{
	int file = open(path, O_RDONLY);
	uint64_t done, begin;

	if (file < 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED))
		die(path);
	begin = now();
	for (done = 0; done < size; done += RECORD)
		if (pread(file, data, RECORD, at + done) != RECORD)
			die("read");
	took += now() - begin;
	bytes += size;
	close(file);
}

static void step(const char *path, const char *line)
{
	uint64_t at = 0, size = 0, before = 0;
	char what = *line;

	if (strchr("waob", what) && sscanf(line + 1, "%lu %lu %lu", &at, &size, &before) < 2)
		what = '?';
	if (strchr("wao", what) && size * KIB > MOST)
		what = '?';
	while (reading && what != 'r')
		await_reader();
	switch (what) {
	case 'w':
		if (pwrite(device, data, size * KIB, at * KIB) != (ssize_t)(size * KIB))
			die("write");
		break;
	case 'a':
		write_hinted(at * KIB, size * KIB, HINT_APPEND, before * KIB);
		break;
	case 'o':
		write_hinted(at * KIB, size * KIB, HINT_OVERWRITE, 0);
		break;
	case 'f':
		if (fdatasync(device))
			die("flush");
		break;
	case 'r':
		read_all(line + 1);
		break;
	case 't':
		if (sscanf(line + 1, "%u", &readers) != 1 || !readers || readers > READERS) {
			fprintf(stderr, "guest-pieces: so many readers: %s", line);
			exit(1);
		}
		break;
	case 'b':
		read_buffered(path, at * KIB, size * KIB);
		break;
	case '=':
		printf("%.*s %lu %lu\n", (int)strcspn(line + 2, "\n"), line + 2, bytes, took);
		bytes = took = 0;
		break;
	default:
		fprintf(stderr, "guest-pieces: no such step: %s", line);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t size = 0;

	device = open(argc == 2 ? argv[1] : "", O_RDWR | O_DIRECT);
	if (device < 0)
		die("guest-pieces DEVICE");
	if (posix_memalign((void **)&data, BLOCK, MOST))
		die("memory");
	memset(data, 0x61, MOST);
	if (syscall(SYS_io_setup, PIECES, &context))
		die("io_setup");
	while (getline(&line, &size, stdin) > 0)
		step(argv[1], line);
	return 0;
}
