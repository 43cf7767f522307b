/* SPDX-License-Identifier: GPL-2.0 */
/* Finds drives: by UUID, and by what /etc/mtftltab says. */
#ifndef MTFTL_TOOL_FIND_H
#define MTFTL_TOOL_FIND_H

#include "tab.h"

/* What the file says, or nothing if there is none; complains of lines that are wrong. */
void find_tab(struct tab *tab);
/* The entry of that name; fails if there is none. */
void find_entry(const char *name, struct tab_entry *entry);

/*
 * The path of a drive that is given as a path or as UUID=..., which must be that of exactly one idle
 * drive. Fails with all their names if there are more.
 */
const char *find_drive(const char *device);

#endif
