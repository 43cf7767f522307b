// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz N SEED: in the guest, N random admin and I/O commands, valid and
 * garbage, through the driver's passthrough.
 *
 * Left out is what breaks the driver's own queues or makes it wait for its
 * time-out (deleting queues, asynchronous events, shadow doorbells, detaching
 * the namespace, dropped completions), and reads larger than the buffer,
 * which would overwrite the guest.
 */

#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BLOCKS 1048576u         /* of the namespace, more or less */
#define BUFFER (128 * 1024)

static uint8_t buffer[BUFFER] __attribute__((aligned(4096)));

static uint32_t pick(uint32_t n)
{
    return random() % n;
}

/* Mostly sensible, at times anything. */
static uint64_t lba(void)
{
    switch (pick(8)) {
    case 0:
        return (uint64_t)random() << 33 | random();
    case 1:
        return BLOCKS - pick(4);
    case 2:
        return pick(BLOCKS);
    default:
        return pick(16) * 16384 + (pick(2) ? 0 : pick(64));
    }
}

static void io(struct nvme_passthru_cmd *c)
{
    static const uint8_t opcodes[] = {
        0x00, 0x01, 0x01, 0x01, 0x02, 0x02, 0x04, 0x05, 0x08, 0x09, 0x0c,
        0x19, 0x79, 0x79, 0x79, 0x7a, 0x7d, 0x7d, 0x7d, 0x7d,
    };
    static const uint8_t actions[] = { 1, 2, 3, 4, 5, 0x11 };
    uint64_t slba = lba();
    uint32_t nlb = pick(4) ? pick(8) : pick(32);

    c->opcode = pick(50) ? opcodes[pick(sizeof(opcodes))] : pick(256);
    c->nsid = pick(50) ? 1 : random();
    c->cdw10 = slba;
    c->cdw11 = slba >> 32;
    c->cdw12 = nlb | (pick(8) ? 0 : 1u << 30);
    c->addr = (uintptr_t)buffer;
    c->data_len = (nlb + 1) * 4096;
    switch (c->opcode) {
    case 0x00: case 0x04: case 0x08: case 0x0c:
        c->data_len = 0;
        break;
    case 0x01: case 0x05: case 0x7d:
        if (!pick(20)) {
            c->cdw12 |= random() & 0xffff;
        }
        break;
    case 0x09:
        c->cdw10 = pick(4);
        c->cdw11 = 4;
        c->data_len = 4096;
        break;
    case 0x19:
        c->cdw12 = random();
        c->data_len = 4096;
        break;
    case 0x79:
        c->cdw13 = pick(20) ? actions[pick(sizeof(actions))]
                            : (uint32_t)random();
        c->cdw13 |= pick(50) ? 0 : 1 << 8;
        c->cdw13 |= pick(2) << 9;               /* with a random write area */
        c->data_len = 0;
        break;
    case 0x7a:
        c->cdw12 = 1023;
        c->cdw13 = pick(4) ? 0 : random();
        c->data_len = 4096;
        break;
    default:
        c->cdw12 = pick(8);
        c->cdw13 = random();
        c->data_len = pick(2) ? BUFFER : 0;
    }
}

static void admin(struct nvme_passthru_cmd *c)
{
    static const uint8_t opcodes[] = {
        0x02, 0x02, 0x06, 0x06, 0x08, 0x09, 0x0a, 0x0d, 0x10, 0x18, 0x19, 0x1a,
        0x80, 0xc0, 0xc0, 0xc1, 0xff,
    };

    c->opcode = opcodes[pick(sizeof(opcodes))];
    c->nsid = pick(4) ? 1 : pick(3) ? 0xffffffff : random();
    c->cdw10 = random();
    c->cdw11 = pick(4) ? 0 : random();
    c->cdw12 = pick(4) ? 0 : random();
    c->cdw13 = pick(4) ? 0 : random();
    c->addr = (uintptr_t)buffer;
    c->data_len = 4096;
    switch (c->opcode) {
    case 0x02:
        c->cdw10 = 1023u << 16 | (pick(2) ? 0xf0 : pick(256));
        c->cdw11 = 0;
        break;
    case 0x06:
        c->cdw10 = pick(32);
        break;
    case 0x08:
        c->cdw10 = random() << 16 | pick(4);    /* abort */
        c->data_len = 0;
        break;
    case 0x09:
        /* not the number of queues, not the asynchronous events */
        c->cdw10 = pick(2) ? 0x06 : 0x02;
        c->cdw11 = pick(2);
        c->data_len = 0;
        break;
    case 0x0a:
        c->cdw10 = pick(32);
        break;
    case 0x80:
        c->cdw10 = pick(16);
        c->data_len = 0;
        break;
    case 0xc0:
        c->cdw10 = pick(0x20);
        if (c->cdw10 == 0x18) {
            c->cdw10 = 0x1f;
        }
        c->cdw11 = pick(2) ? pick(100) : lba();
        if (c->cdw10 == 0x15 || c->cdw10 == 0x16) {
            /* for good: so not the zones that the rest works on */
            c->cdw11 = (32 + pick(16)) * 16384;
        }
        c->cdw12 = pick(50) ? 0 : random();
        c->cdw13 = pick(100);
        c->cdw14 = 0;
        c->cdw15 = pick(4);
        c->nsid = pick(20) ? 1 : random();
        c->data_len = 0;
        break;
    }
}

int main(int argc, char **argv)
{
    int ctrl = open("/dev/nvme0", O_RDWR), ns = open("/dev/nvme0n1", O_RDWR);
    long n = argc > 1 ? atol(argv[1]) : 1000, ok = 0, refused = 0;

    srandom(argc > 2 ? atol(argv[2]) : 1);
    if (ctrl < 0 || ns < 0) {
        perror("open");
        return 1;
    }
    for (long i = 0; i < n; i++) {
        struct nvme_passthru_cmd c = { .timeout_ms = 20000 };

        if (pick(5)) {
            io(&c);
            ioctl(ns, NVME_IOCTL_IO_CMD, &c) ? refused++ : ok++;
        } else {
            admin(&c);
            ioctl(ctrl, NVME_IOCTL_ADMIN_CMD, &c) ? refused++ : ok++;
        }
        if (i % 64 == 0) {
            /* power and zones back, or nothing would be left to try */
            struct nvme_passthru_cmd on = { .opcode = 0xc0, .nsid = 1 };

            ioctl(ctrl, NVME_IOCTL_ADMIN_CMD, &on);
            on.cdw10 = 0x1f;
            ioctl(ctrl, NVME_IOCTL_ADMIN_CMD, &on);
        }
    }
    printf("fuzz: %ld done, %ld refused\n", ok, refused);
    return ok > n / 20 ? 0 : 2;
}
