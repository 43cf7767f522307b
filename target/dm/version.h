/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module can be asked, as device-mapper's version of the target. mtftl(8) compares it
 * with its own.
 */
#ifndef MTFTL_TARGET_VERSION_H
#define MTFTL_TARGET_VERSION_H

#define MTFTL_TARGET_MAJOR	1	/* what an older tool knows means something else */
#define MTFTL_TARGET_MINOR	1	/* the status line or the messages have more */
#define MTFTL_TARGET_PATCH	0

#endif
