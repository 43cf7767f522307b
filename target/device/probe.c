// SPDX-License-Identifier: GPL-2.0
/*
 * What this kernel has, whatever version it calls itself: distributions backport. Kbuild compiles
 * this file once. Each PROBE() stands on a line of its own. If it compiles, MTFTL_HAS_ and its name
 * are defined in probed.h, which compat.h reads.
 *
 * A probe asks for the older form of an interface that changed. So a kernel that is newer than all
 * that were tested counts as the newest.
 */
#include <linux/blk-integrity.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/srcu.h>
#include <linux/timer.h>

#define PROBE(name, expression) extern char name[sizeof(((expression), 0))]
#define A(type) ((struct type *)NULL)

PROBE(NOTHING, no_kernel_has_this());	/* if it compiles, no answer counts */
PROBE(BIP_BIO, A(bio_integrity_payload)->bip_bio);
PROBE(DEL_TIMER_SYNC, del_timer_sync(A(timer_list)));
/* Until 6.8. Since then limits that only zoned devices may have are the queue's, and checked. */
PROBE(DISK_OPEN_ZONES, A(gendisk)->max_open_zones);
PROBE(HRTIMER_INIT, hrtimer_init(A(hrtimer), CLOCK_MONOTONIC, HRTIMER_MODE_REL));
/* Until 6.10. There a bio's end frees its payload, whatever allocated it. */
PROBE(INTEGRITY_PROFILE, A(blk_integrity)->profile);
/* Until 6.10; a flag since. */
PROBE(LIMITS_MISALIGNED, A(queue_limits)->misaligned);
/* Until 6.10, an enum until 6.7; a feature bit since. */
PROBE(LIMITS_ZONED, A(queue_limits)->zoned);
PROBE(TUPLE_SIZE, A(blk_integrity)->tuple_size);
/* Until 6.7: host-aware devices have a model of their own. */
PROBE(ZONED_MODEL, bdev_zoned_model(A(block_device)));
PROBE(ZONE_MGMT_GFP, blkdev_zone_mgmt(A(block_device), REQ_OP_ZONE_RESET, 0, 0, GFP_NOIO));
/* These are new: they replaced no older form. */
PROBE(SRCU_DOWN_READ, srcu_down_read(A(srcu_struct)));
PROBE(WRITE_HINT, A(bio)->bi_write_hint);
PROBE(WZEROES_UNMAP, A(queue_limits)->max_hw_wzeroes_unmap_sectors);
