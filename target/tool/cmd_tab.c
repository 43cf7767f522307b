// SPDX-License-Identifier: GPL-2.0
/* mtftl tab: what /etc/mtftltab says, for the scripts that open devices at boot and for people. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "find.h"
#include "mtftl.h"

static const char *tab_path(void)
{
	return getenv("MTFTLTAB") ?: TAB_PATH;
}

static void complain(unsigned int line, const char *what)
{
	fprintf(stderr, "mtftl: %s: line %u: %s; this line is left out\n", tab_path(), line, what);
}

void find_tab(struct tab *tab)
{
	FILE *file = fopen(tab_path(), "re");

	*tab = (struct tab) { 0 };
	if (!file && errno == ENOENT)
		return;
	if (!file)
		fail(EXIT_FAILED, "%s: cannot read: %s", tab_path(), strerror(errno));
	tab_read(file, tab, complain);
	fclose(file);
}

void find_entry(const char *name, struct tab_entry *entry)
{
	const struct tab_entry *found;
	struct tab tab;

	find_tab(&tab);
	found = tab_find(&tab, name);
	if (!found)
		fail(EXIT_FAILED, "%s: not in %s, expected one of its names, or a device and a name", name,
		     tab_path());
	/* The tab stays in memory until the program ends. */
	*entry = *found;
}

int cmd_tab(int argc, char **argv)
{
	static const struct option options[] = {
		{ "with", required_argument, NULL, 'w' },
		{ NULL, 0, NULL, 0 },
	};
	const char *with = NULL;
	struct tab tab;
	unsigned int i;
	int c, status;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		with = optarg;
	}
	if (argc != optind)
		fail(EXIT_USAGE, "tab: %d words more than expected", argc - optind);
	find_tab(&tab);
	for (i = 0; i < tab.nr; i++)
		if (!with || tab_has(&tab.entries[i], with))
			printf("%s %s %s\n", tab.entries[i].name, tab.entries[i].device,
			       tab.entries[i].options);
	status = tab.wrong ? EXIT_DAMAGE : EXIT_OK;
	tab_free(&tab);
	return status;
}
