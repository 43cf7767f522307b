// SPDX-License-Identifier: GPL-2.0
/* journal SOCKET: plays the journal of systemd. It prints each message, and an empty line. */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char message[65536];
	ssize_t size;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	if (argc != 2 || fd < 0)
		return 2;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		return 1;
	while ((size = recv(fd, message, sizeof(message), 0)) >= 0) {
		fwrite(message, 1, size, stdout);
		putchar('\n');
		fflush(stdout);
	}
	return 1;
}
