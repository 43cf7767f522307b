/* SPDX-License-Identifier: GPL-2.0 */
/* /etc/mtftltab, what is opened at boot: mtftltab(5). Pure but for what it reads from. */
#ifndef MTFTL_TOOL_TAB_H
#define MTFTL_TOOL_TAB_H

#include <stdio.h>

#include "lib/pure.h"

#define TAB_PATH	"/etc/mtftltab"
#define TAB_LINE_MAX	4096
#define TAB_NAME_MAX	127	/* as device-mapper has it */

struct tab_entry {
	unsigned int line;
	const char *name;
	const char *device;	/* a path below /dev, or UUID=... */
	const char *options;	/* as written, "-" if there are none */
	char *text;		/* that holds them */
};

struct tab {
	struct tab_entry *entries;
	unsigned int nr;
	unsigned int wrong;	/* lines that are left out */
};

/* Called for each line that is left out. */
typedef void tab_complain(unsigned int line, const char *what);

void tab_read(FILE *file, struct tab *tab, tab_complain *complain);
void tab_free(struct tab *tab);
const struct tab_entry *tab_find(const struct tab *tab, const char *name);

/* Whether the options have a word such as readonly. */
bool tab_has(const struct tab_entry *entry, const char *word);
/*
 * The next KEY=VALUE of the options, which are for the table line; @at begins as entry->options. Ends
 * with NULL; the caller frees what it gets.
 */
char *tab_setting(const char **at);

#endif
