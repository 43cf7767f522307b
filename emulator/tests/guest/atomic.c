// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * atomic write FILE [plain]: numbered atomic writes of 64 KiB, each to a slot
 * of FILE, until one fails: the power is gone.  plain: writes like others,
 * and a block behind the slots after each, so that it begins and ends within
 * what the drive programs at once.
 *
 * atomic check FILE: how many slots hold blocks of two writes.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RWF_ATOMIC
#define RWF_ATOMIC 0x40
#endif

#define SLOTS   64
#define SIZE    65536
#define BLOCK   4096

static uint8_t buffer[SIZE] __attribute__((aligned(SIZE)));

static int write_slots(int fd, bool plain)
{
    int flags = plain ? 0 : RWF_ATOMIC;
    struct iovec all = { buffer, SIZE };

    for (uint64_t version = 1;; version++) {
        off_t at = random() % SLOTS * SIZE;

        for (int i = 0; i < SIZE; i += BLOCK) {
            memcpy(buffer + i, &version, sizeof(version));
        }
        if (pwritev2(fd, &all, 1, at, flags) != SIZE ||
            (plain && pwrite(fd, buffer, BLOCK, SLOTS * SIZE) != BLOCK)) {
            if (version == 1) {
                perror("atomic");
                return 1;
            }
            printf("written %llu\n", (unsigned long long)version - 1);
            return 0;
        }
    }
}

static int check_slots(int fd)
{
    int torn = 0;

    for (int slot = 0; slot < SLOTS; slot++) {
        int differs = 0;

        if (pread(fd, buffer, SIZE, (off_t)slot * SIZE) != SIZE) {
            perror("atomic");
            return 1;
        }
        for (int i = BLOCK; i < SIZE; i += BLOCK) {
            differs |= memcmp(buffer, buffer + i, 8);
        }
        torn += !!differs;
    }
    printf("torn %d\n", torn);
    return 0;
}

int main(int argc, char **argv)
{
    int fd = argc > 2 ? open(argv[2], O_RDWR | O_DIRECT) : -1;

    if (fd < 0) {
        return 2;
    }
    srandom(getpid());
    return strcmp(argv[1], "write") ? check_slots(fd) :
                                      write_slots(fd, argc > 3);
}
