/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For tests on the host of the module's mount, checkpoints and logs: a drive in memory that is
 * written to and counts its commands, and the module that mounts it. The tool's recovery, which is
 * another program, must find the same map. One thread; setup() and teardown() surround each test.
 */
#ifndef MTFTL_TESTS_RECOVERY_H
#define MTFTL_TESTS_RECOVERY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "device/device.h"
#include "device/seq.h"
#include "image.h"
#include "map/map.h"

#define FIRST_DATA	4u	/* zone: behind the superblocks and two checkpoints */

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define LOG_TEST(name) { #name "_with_a_log", name, setup_log, teardown, NULL }
#define OOB_TEST(name) { #name "_without_headers", name, setup_oob, teardown, NULL }

/* The drive; what @drive has begins anew with each mount. */
extern struct image *image;
extern struct drive {
	u64 commands, reads, blocks_read, finishes;
	int fail_write;		/* writes until one fails; 0: none does */
	u32 failed;		/* the zone that it went to */
	bool fail_writes;	/* each one */
	bool pause_then;	/* and the device is suspended */
	int pause_after;	/* writes until it is, if none fails; 0: it is not */
	bool pause_in_reset;	/* likewise, in the next reset */
	int fail_read;		/* one read, with this error */
	u64 reads_before;	/* that one */
	int fail_log;		/* so many writes to the superblock log */
} drive;

/* Of zones that are read-only: where what is written ends, and what reads say that go on behind. */
extern struct read_only {
	u32 end;
	int error;
} read_only;

/* They last over mounts. Zones from @reported on are left out of reports, without an error. */
extern u32 reported;
extern int report_fails;	/* of a report; 0: none */
extern u32 misplaced;		/* a zone that is said to begin elsewhere; 0: none */
extern u32 misled;		/* one whose write pointer lies in front of it; 0: none */
extern u32 spare_sectors;	/* of each zone, behind its last block */
extern u32 unreadable;		/* page; 0: none */
extern int unreadable_error;
extern bool finish_fails, aligned;
extern int mount_fails_write;	/* see fail_write */
extern int mount_fails_read;	/* see fail_read */
extern u64 mount_reads_before;
/* A fatal signal comes behind so many reads of a mount, when it was asked for so often; 0: none. */
extern struct killed_behind {
	u64 reads;
	unsigned long asks;
} killed_behind;
extern int power;		/* commands until it goes off; 0: it stays on; -1: it is off */
extern int lies_at;		/* commands until one is carried out, and fails; 0: none */

/* The module that mounted it last. */
extern struct mtftl_cpu_stats stats;
extern struct mtftl_device device;
extern struct mtftl_map map;
extern struct mtftl_seq seq;
extern struct mtftl_space space;
extern struct mtftl ftl;
extern bool mounted, mount_read_only;

int try_to_mount(void);
void mount(void);
void unmount(void);
void mount_like_the_tool(void);
/* Or what it finds damaged. */
void mount_or_fail_like_the_tool(void);

int setup(void **state);
int setup_log(void **state);	/* with a log of map blocks */
int setup_oob(void **state);	/* headers are in metadata */
int teardown(void **state);
void begin_anew(void **state);

/* What is in zones: see recovery.c. */
u32 put(u32 zone, u64 number, u64 lba, u16 content);
void cut(u32 zone, u32 offset, u8 sectors);
const u32 *map_of_blocks(u32 last);
void fill_with_footer(u32 zone, u32 units, u64 lba, u64 number);
void lose_header(u32 zone, u32 unit);
u32 fill_zones_but_one(void);
void expect_blocks(u32 last);

/* A map of three parts that CPUs look at, and a checkpoint over two zones. */
#define LARGE_CAPACITY	40u
#define LARGE_LOGICAL	(35u * 1024 + 512)
#define LARGE_DATA	6u	/* the first zone that may have data */

u32 *begin_large(u32 capacity, u32 logical_blocks);

/* A device with a log of map blocks. */
extern struct logged {
	u32 logical, next_zone;		/* for the next unit of data */
	u32 *entries;			/* as the map shall be */
	bool unseen;			/* the tool looks where a mount does not: at spent zones */
} logged;

u32 begin_logged_of(u32 zones, u32 logical, bool map_log);
void begin_logged(u32 seats, bool map_log);
void write_chunk(u32 chunk);
void expect_logged(void);

#endif
