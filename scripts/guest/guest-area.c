// SPDX-License-Identifier: GPL-2.0
/*
 * The guest's side of the memory that it shares with the host (BAR 2 of the ivshmem device at 00:10.0).
 *
 *	guest-area start >ARCHIVE	in a guest whose state is saved: pauses it, and when it goes on, as a run's
 *					guest, finds what was plugged meanwhile and copies the run's archive out
 *	guest-area end STATUS <FILES	the end of a run: copies its files in, writes the status in front of them,
 *					and ends the emulator through its debug-exit port
 *
 * Plain loads and stores: no interrupt, no queue, nothing that the guest's clock depends on.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#define DEVICE "/sys/bus/pci/devices/0000:00:10.0/"
#define EXIT_PORT 0xf4
#define PAUSE_PORT 0xf8
#define PAYLOAD 4096

struct header {
	char magic[8];
	uint64_t status;
	uint64_t length;	/* of what follows at PAYLOAD; all ones: it did not fit */
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

/* Not ioperm(): a small kernel may be without it. */
static void touch_port(off_t port)
{
	int fd = open("/dev/port", O_WRONLY);

	if (fd < 0 || pwrite(fd, "", 1, port) != 1)
		die("/dev/port");
	close(fd);
}

static struct header *map_area(size_t *size)
{
	struct stat st;
	void *area;
	int fd;

	put(DEVICE "enable", "1");
	fd = open(DEVICE "resource2", O_RDWR);
	if (fd < 0 || fstat(fd, &st))
		die(DEVICE "resource2");
	area = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (area == MAP_FAILED)
		die("mmap");
	*size = st.st_size;
	return area;
}

static int start(void)
{
	struct header *header;
	size_t size, done = 0;
	ssize_t got;

	touch_port(PAUSE_PORT);
	/* In lockstep the round goes on; it ends before this does. */
	usleep(20000);
	put("/sys/bus/pci/rescan", "1");

	header = map_area(&size);
	if (memcmp(header->magic, "MTFTLRUN", sizeof(header->magic)) || header->length > size - PAYLOAD) {
		fprintf(stderr, "guest-area: no run's archive\n");
		return 1;
	}
	for (; done < header->length; done += got) {
		got = write(1, (char *)header + PAYLOAD + done, header->length - done);
		if (got < 0)
			die("write");
	}
	return 0;
}

static void end(const char *status)
{
	size_t size, used = PAYLOAD;
	struct header *header = map_area(&size);
	ssize_t got = 1;
	char spill;

	while (used < size && got > 0) {
		got = read(0, (char *)header + used, size - used);
		if (got < 0)
			die("read");
		used += got;
	}
	header->length = used - PAYLOAD;
	if (got > 0 && read(0, &spill, 1) > 0)
		header->length = UINT64_MAX;
	header->status = strtoul(status, NULL, 10);
	memcpy(header->magic, "MTFTLEND", sizeof(header->magic));

	touch_port(EXIT_PORT);
	/* It ends when its main loop gets to it; if init ended before, the kernel would panic. */
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "start"))
		return start();
	if (argc == 3 && !strcmp(argv[1], "end"))
		end(argv[2]);
	fprintf(stderr, "usage: guest-area start >ARCHIVE | end STATUS <FILES.tar\n");
	return 1;
}
