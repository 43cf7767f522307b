// SPDX-License-Identifier: GPL-2.0
/*
 * guest-exit STATUS: the end of a run in the lab's guest.
 *
 * Copies standard input into memory that the host shares (BAR 2 of the ivshmem device at 00:10.0),
 * writes the status in front of it, and ends the emulator through its debug-exit port. Plain stores:
 * no interrupt, no queue, nothing that the guest's clock depends on.
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

int main(int argc, char **argv)
{
	int fd = open(DEVICE "enable", O_WRONLY);
	struct header *header;
	struct stat st;
	uint64_t used = PAYLOAD;
	ssize_t got = 1;
	char spill;
	char *area;

	if (argc != 2) {
		fprintf(stderr, "usage: guest-exit STATUS <FILES.tar\n");
		return 1;
	}
	if (fd < 0 || write(fd, "1", 1) != 1)
		die(DEVICE "enable");
	fd = open(DEVICE "resource2", O_RDWR);
	if (fd < 0 || fstat(fd, &st))
		die(DEVICE "resource2");
	area = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (area == MAP_FAILED)
		die("mmap");
	header = (struct header *)area;

	while (used < (uint64_t)st.st_size && got > 0) {
		got = read(0, area + used, st.st_size - used);
		if (got < 0)
			die("read");
		used += got;
	}
	header->length = used - PAYLOAD;
	if (got > 0 && read(0, &spill, 1) > 0)
		header->length = UINT64_MAX;
	header->status = strtoul(argv[1], NULL, 10);
	memcpy(header->magic, "MTFTLEND", sizeof(header->magic));

	/* Not ioperm(): a small kernel may be without it. */
	fd = open("/dev/port", O_WRONLY);
	if (fd < 0 || pwrite(fd, "", 1, EXIT_PORT) != 1)
		die("/dev/port");
	/* It ends when its main loop gets to it; if init ended before, the kernel would panic. */
	for (;;)
		pause();
}
