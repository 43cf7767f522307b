/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Histories: short lists of operations, each run on a device that is formatted for it. For the judge
 * of cuts, which has the journal of all of them: the lab enumerates, draws and shrinks them.
 *
 * The file has a line "history LANES", then a line for each operation: NAME BLOCK NR CPU, and an "&" if
 * the next operation begins without waiting for this one. The first one without "&" waits for all.
 * With NAME "linger-POINT" the next thread that comes to the point stays there for NR ms, if the
 * module linger (linger/linger.c) is loaded.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include "device.h"
#include "oracle.h"

/*
 * Run all histories of the file. @enter is told what begins. Prints one line of JSON; returns the status
 * of the program. One thread calls it, once.
 */
int histories(struct device *dev, struct oracle *oracle, const char *path,
	      void (*enter)(const char *phase));

#endif
