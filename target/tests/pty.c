// SPDX-License-Identifier: GPL-2.0
/*
 * pty ANSWER COMMAND...: runs a command on a terminal of its own and types ANSWER when the command
 * asks something. Prints what the terminal shows, and exits with the status of the command.
 */
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char shown[4096];
	size_t used = 0;
	int terminal, status, asked = 0;
	ssize_t got;
	pid_t child;

	if (argc < 3)
		return 99;
	child = forkpty(&terminal, NULL, NULL, NULL);
	if (child < 0)
		return 99;
	if (child == 0) {
		execvp(argv[2], argv + 2);
		_exit(99);
	}
	/* EIO: the command has left its terminal. */
	while (used < sizeof(shown) - 1 &&
	       (got = read(terminal, shown + used, sizeof(shown) - 1 - used)) > 0) {
		used += got;
		shown[used] = 0;
		if (!asked && used > 3 && !strcmp(shown + used - 3, "): ")) {
			asked = 1;
			dprintf(terminal, "%s\n", argv[1]);
		}
	}
	fwrite(shown, 1, used, stdout);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 99;
	return WEXITSTATUS(status);
}
