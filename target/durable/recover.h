/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mounting: zones, map and numbers become what the device says. Sleeps, takes memory.
 */
#ifndef MTFTL_RECOVER_H
#define MTFTL_RECOVER_H

#include "device/ftl.h"

/* Alone: before any user and any thread. Each step is told with its time. */
int mtftl_recover(struct mtftl *ftl);

#endif
