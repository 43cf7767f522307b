/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the target tells on request: the status line and messages. Sleeps.
 */
#ifndef MTFTL_STATS_H
#define MTFTL_STATS_H

#include "device/device.h"

/* One line: the mode, then names and values, a list's items apart by commas. */
void mtftl_status(struct mtftl *ftl, const struct mtftl_cpu_stats *origin, char *result,
		  unsigned int maxlen);
/* Whether the message needs commands to the drive. */
bool mtftl_message_sends(const char *name);
/* 1: there is a result. @origin: what counters are told from. */
int mtftl_message(struct mtftl *ftl, struct mtftl_cpu_stats *origin, unsigned int argc,
		  char **argv, char *result, unsigned int maxlen);

#endif
