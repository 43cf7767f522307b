/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All short workloads, one after the other, each on a device that was formatted for it: for the
 * judge of cuts, which has the journal of all of them. The device has SEQUENCE_BLOCKS blocks.
 */
#ifndef SEQUENCES_H
#define SEQUENCES_H

#include <stdbool.h>

#include "device.h"
#include "oracle.h"

#define SEQUENCE_BLOCKS	6u

/*
 * All of so many operations, and of fewer. @reduced: of few kinds, on one block and one lane. @enter
 * is told what begins. Prints one line of JSON; returns the status of the program.
 */
int sequences(struct device *dev, struct oracle *oracle, unsigned int length, bool reduced,
	      void (*enter)(const char *phase));

#endif
