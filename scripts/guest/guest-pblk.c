// SPDX-License-Identifier: GPL-2.0
/*
 * guest-pblk create DISK NAME FIRST LAST [SPARE] | new DISK NAME FIRST LAST [SPARE] | remove NAME
 *
 * Makes /dev/NAME, a pblk target over parallel units FIRST to LAST of an Open-Channel drive, with what is on it or new;
 * SPARE is the share of it, in percent, that users do not see. nvme-cli could, while Linux had such drives.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define CONTROL "/dev/lightnvm/control"
#define EXTENDED 1
#define FACTORY (1u << 0)

/* Linux's ABI, which current headers no longer have. */
struct create {
	char disk[32];
	char type[48];
	char name[32];
	uint32_t flags;
	uint32_t kind;
	uint16_t first;
	uint16_t last;
	uint16_t spare;
	uint16_t reserved;
};

struct drop {
	char name[32];
	uint32_t flags;
};

#define CREATE _IOW('L', 0x22, struct create)
#define REMOVE _IOW('L', 0x23, struct drop)

int main(int argc, char **argv)
{
	int fresh = argc > 1 && !strcmp(argv[1], "new");
	int fd = open(CONTROL, O_RDWR), wrong = 1;

	if (fd < 0) {
		perror(CONTROL);
		return 1;
	}
	if (argc >= 6 && (fresh || !strcmp(argv[1], "create"))) {
		struct create c = {
			.type = "pblk",
			.flags = fresh ? FACTORY : 0,
			.kind = EXTENDED,
			.first = atoi(argv[4]),
			.last = atoi(argv[5]),
			.spare = argc > 6 ? atoi(argv[6]) : UINT16_MAX,	/* pblk's own */
		};

		snprintf(c.disk, sizeof(c.disk), "%s", argv[2]);
		snprintf(c.name, sizeof(c.name), "%s", argv[3]);
		wrong = ioctl(fd, CREATE, &c);
	} else if (argc == 3 && !strcmp(argv[1], "remove")) {
		struct drop r = {};

		snprintf(r.name, sizeof(r.name), "%s", argv[2]);
		wrong = ioctl(fd, REMOVE, &r);
	} else {
		fputs("guest-pblk create|new DISK NAME FIRST LAST [SPARE] | remove NAME\n", stderr);
		return 2;
	}
	if (wrong)
		perror(argv[1]);
	return !!wrong;
}
