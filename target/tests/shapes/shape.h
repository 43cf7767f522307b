/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of the kernel's headers that probe.c, bio.h, compat.h, limits.h and meta.h look at, in
 * the shape of any version from 6.1 on: SHAPE, 608 for 6.8. A -D of one of the names below makes a
 * kernel that has backported that change, or does not have it yet. Nothing here runs.
 */
#ifndef MTFTL_TESTS_SHAPE_H
#define MTFTL_TESTS_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* As the kernel's makefiles have it. */
#pragma GCC diagnostic error "-Wimplicit-function-declaration"

#ifndef SHAPE_OPEN_WRITE		/* modes are the block layer's */
#define SHAPE_OPEN_WRITE	(SHAPE >= 605)
#endif
#ifndef SHAPE_DOWN_READ
#define SHAPE_DOWN_READ		(SHAPE >= 603)
#endif
#ifndef SHAPE_TIMER_DELETE		/* stable kernels had it soon */
#define SHAPE_TIMER_DELETE	(SHAPE >= 602)
#endif
#ifndef SHAPE_DEL_TIMER
#define SHAPE_DEL_TIMER		(SHAPE < 615)
#endif
#ifndef SHAPE_CONTAINER_OF
#define SHAPE_CONTAINER_OF	(SHAPE >= 616)
#endif
#ifndef SHAPE_HRTIMER_SETUP
#define SHAPE_HRTIMER_SETUP	(SHAPE >= 613)
#endif
#ifndef SHAPE_HRTIMER_INIT
#define SHAPE_HRTIMER_INIT	(SHAPE < 615)
#endif
#ifndef SHAPE_HOST_AWARE		/* such drives have a model of their own, and "zoned" is an enum */
#define SHAPE_HOST_AWARE	(SHAPE < 608)
#endif
#ifndef SHAPE_MGMT_GFP
#define SHAPE_MGMT_GFP		(SHAPE < 609)
#endif
#ifndef SHAPE_DISK_LIMITS		/* zones that may be open are the disk's, not the queue's */
#define SHAPE_DISK_LIMITS	(SHAPE < 609)
#endif
#ifndef SHAPE_FEATURES			/* "zoned" is one of these, "misaligned" is a flag */
#define SHAPE_FEATURES		(SHAPE >= 611)
#endif
#ifndef SHAPE_PROFILE			/* integrity has one */
#define SHAPE_PROFILE		(SHAPE < 611)
#endif
#ifndef SHAPE_BIP_BIO
#define SHAPE_BIP_BIO		(SHAPE < 615)
#endif
#ifndef SHAPE_WRITE_HINT
#define SHAPE_WRITE_HINT	(SHAPE >= 609)
#endif
#ifndef SHAPE_WZEROES
#define SHAPE_WZEROES		(SHAPE >= 617)
#endif
#ifndef SHAPE_METADATA_SIZE		/* and not tuple_size */
#define SHAPE_METADATA_SIZE	(SHAPE >= 618)
#endif
#ifndef SHAPE_ALLOC_OBJ			/* memory is asked for by its type */
#define SHAPE_ALLOC_OBJ		(SHAPE >= 700)
#endif

#define CONFIG_BLK_DEV_INTEGRITY
#define READ_ONCE(x)		(x)
#define GFP_NOIO		0u
#define ZERO_PAGE(address)	((struct page *)(address))
#define REQ_INTEGRITY		1u

typedef uint64_t sector_t;
typedef uint32_t gfp_t;
typedef uint32_t fmode_t;
typedef uint32_t blk_mode_t;
typedef uint32_t blk_opf_t;

enum req_op { REQ_OP_ZONE_RESET };

struct page;
struct dm_table;
struct srcu_struct;
struct block_device;
struct bvec_iter { sector_t bi_sector; unsigned int bi_size; };
struct bio_vec { struct page *bv_page; unsigned int bv_len, bv_offset; };

struct page *virt_to_page(const void *address);
void *page_address(const struct page *page);
#define offset_in_page(address)	((uintptr_t)(address) & 4095)

/* Memory */

void *kzalloc(size_t size, gfp_t gfp);
#if SHAPE_ALLOC_OBJ
#define kzalloc_obj(object, ...)	kzalloc(sizeof(object), __VA_ARGS__)
#endif

/* Modes */

#if SHAPE_OPEN_WRITE
#define BLK_OPEN_WRITE		((blk_mode_t)2)
blk_mode_t dm_table_get_mode(struct dm_table *table);
#else
#define FMODE_WRITE		((fmode_t)2)
fmode_t dm_table_get_mode(struct dm_table *table);
#endif

/* Readers */

int __srcu_read_lock(struct srcu_struct *srcu);
void __srcu_read_unlock(struct srcu_struct *srcu, int reader);
#if SHAPE_DOWN_READ
int srcu_down_read(struct srcu_struct *srcu);
void srcu_up_read(struct srcu_struct *srcu, int reader);
#endif

/* Timers */

struct timer_list { int unused; };

#if SHAPE_TIMER_DELETE
int timer_delete_sync(struct timer_list *timer);
#endif
#if SHAPE_DEL_TIMER
int del_timer_sync(struct timer_list *timer);
#endif
#if SHAPE_CONTAINER_OF
#define timer_container_of(holder, timer, member) \
	((typeof(holder))((char *)(timer) - offsetof(typeof(*(holder)), member)))
#else
#define from_timer(holder, timer, member) \
	((typeof(holder))((char *)(timer) - offsetof(typeof(*(holder)), member)))
#endif

enum hrtimer_restart { HRTIMER_NORESTART };
enum hrtimer_mode { HRTIMER_MODE_REL };
#define CLOCK_MONOTONIC		1

struct hrtimer {
#if SHAPE_HRTIMER_INIT
	enum hrtimer_restart (*function)(struct hrtimer *timer);
#else
	enum hrtimer_restart (*private)(struct hrtimer *timer);
#endif
};

#if SHAPE_HRTIMER_INIT
void hrtimer_init(struct hrtimer *timer, int clock, enum hrtimer_mode mode);
#endif
#if SHAPE_HRTIMER_SETUP
void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *timer),
		   int clock, enum hrtimer_mode mode);
#endif

/* Zones */

#if SHAPE_HOST_AWARE
enum blk_zoned_model { BLK_ZONED_NONE, BLK_ZONED_HA, BLK_ZONED_HM };
enum blk_zoned_model bdev_zoned_model(struct block_device *bdev);
#endif
bool bdev_is_zoned(struct block_device *bdev);

#if SHAPE_MGMT_GFP
int blkdev_zone_mgmt(struct block_device *bdev, enum req_op op, sector_t sector, sector_t nr,
		     gfp_t gfp);
#else
int blkdev_zone_mgmt(struct block_device *bdev, enum req_op op, sector_t sector, sector_t nr);
#endif

struct gendisk {
#if SHAPE_DISK_LIMITS
	unsigned int max_open_zones, max_active_zones;
#endif
	int unused;
};

struct queue_limits {
	unsigned int max_hw_discard_sectors, max_discard_sectors;
	unsigned int max_write_zeroes_sectors, max_zone_append_sectors;
	unsigned int alignment_offset, discard_alignment;
#if SHAPE_FEATURES
#define BLK_FLAG_MISALIGNED	(1u << 1)
	unsigned int flags;
#else
	unsigned char misaligned, discard_misaligned;
#endif
#if SHAPE_FEATURES
#define BLK_FEAT_ZONED		(1u << 10)
	unsigned int features;
#elif SHAPE_HOST_AWARE
	enum blk_zoned_model zoned;
#else
	bool zoned;
#endif
#if !SHAPE_DISK_LIMITS
	unsigned int max_open_zones, max_active_zones;
#endif
#if SHAPE_WZEROES
	unsigned int max_hw_wzeroes_unmap_sectors;
#endif
};

/* Metadata */

enum blk_integrity_checksum { BLK_INTEGRITY_CSUM_NONE };

struct blk_integrity {
#if SHAPE_PROFILE
	const void *profile;
#else
	enum blk_integrity_checksum csum_type;
#endif
#if SHAPE_METADATA_SIZE
	unsigned char metadata_size;
#else
	unsigned char tuple_size;
#endif
	unsigned char interval_exp;
};

struct bio_integrity_payload {
#if SHAPE_BIP_BIO
	struct bio *bip_bio;
#endif
	struct bvec_iter bip_iter;
	unsigned short bip_vcnt, bip_max_vcnt;
	struct bio_vec *bip_vec;
};

enum rw_hint { WRITE_LIFE_NOT_SET };

struct bio {
	blk_opf_t bi_opf;
#if SHAPE_WRITE_HINT
	enum rw_hint bi_write_hint;
#endif
	struct bvec_iter bi_iter;
	int bi_status;
	struct bio_integrity_payload *bi_integrity;
};

enum { BLK_STS_DM_REQUEUE = 11 };

void bio_endio(struct bio *bio);
void *dm_per_bio_data(struct bio *bio, size_t size);

struct blk_integrity *bdev_get_integrity(struct block_device *bdev);

#endif
