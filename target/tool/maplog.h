/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The checkpoint of a device whose map is in a log of blocks, by the rules of docs/design/format.md
 * and apart from the module. Reads only; for replay.c.
 */
#ifndef MTFTL_TOOL_MAPLOG_H
#define MTFTL_TOOL_MAPLOG_H

#include "replay.h"
#include "scan.h"

/*
 * @have: of each block of zone records, and then of each map block, whether it is there. Says in
 * @replay which zones are needed. 0 or -EPROTO, which is reported: a unit is of a newer version.
 */
int maplog_load(struct replay *replay, struct window *window, u32 seed, bool *have);

#endif
