/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the target tells on request: the status line and messages. Sleeps.
 */
#ifndef MTFTL_STATS_H
#define MTFTL_STATS_H

#include "device/device.h"

/* What is told counts from here. Times are seconds of the boot clock. */
struct mtftl_origin {
	struct mtftl_cpu_stats stats;
	time64_t counted;	/* the mount, or when counters were reset */
	time64_t changed;	/* the mount, or when more was broken or lost; any context */
};

/* A mount has begun to count: from zero. */
void mtftl_origin_begin(struct mtftl_origin *origin);
/* One line: the mode, then names and values, a list's items apart by commas. */
void mtftl_status(struct mtftl *ftl, const struct mtftl_origin *origin, char *result,
		  unsigned int maxlen);
/* Whether the message needs commands to the drive. */
bool mtftl_message_sends(const char *name);
/* 1: there is a result. */
int mtftl_message(struct mtftl *ftl, struct mtftl_origin *origin, unsigned int argc,
		  char **argv, char *result, unsigned int maxlen);

#endif
