// SPDX-License-Identifier: GPL-2.0
/*
 * guest-seed <BYTES: what the lab's guest has instead of a source of randomness.
 *
 * Makes the kernel's random numbers a function of standard input. Without it the first program that
 * asks for one waits while the kernel times itself, for a thousand million instructions.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <fcntl.h>
#include <unistd.h>
#include <linux/random.h>

int main(void)
{
	struct {
		struct rand_pool_info info;
		uint8_t bytes[64];
	} seed = {};
	ssize_t got = read(0, seed.bytes, sizeof(seed.bytes));
	int fd = open("/dev/random", O_WRONLY);

	seed.info.buf_size = got;
	seed.info.entropy_count = 8 * got;
	if (got < 32 || fd < 0 || ioctl(fd, RNDADDENTROPY, &seed) || ioctl(fd, RNDRESEEDCRNG)) {
		perror("guest-seed");
		return 1;
	}
	return 0;
}
