// SPDX-License-Identifier: GPL-2.0
/* Notes for the flash's journal: see notes.h. */
#include "notes.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/io.h>

#define PORT	0xfa8		/* as in emulator/hw/nvme/flash-journal.c */

static bool wanted;

void notes_open(void)
{
	/* The threads that this one makes inherit it. */
	if (ioperm(PORT, sizeof(uint32_t), 1)) {
		perror("the port of the flash's journal");
		exit(2);
	}
	wanted = true;
}

void notes_add(const struct note *note)
{
	const uint32_t words[] = { sizeof(*note), note->kind, note->op, note->lba, note->nr };
	unsigned int i;

	if (!wanted)
		return;
	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		outl(words[i], PORT);
}
