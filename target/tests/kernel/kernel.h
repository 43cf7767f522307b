/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much of the kernel as recovery, checkpoints, the walk of a zone and resets need, for a single
 * thread on the host: no waiting, memory from malloc. A lock only knows whether it is held, as a
 * thread that waited for one would hang. The device is up to the file that includes this: see
 * fuzz_recover.c.
 */
#ifndef MTFTL_TESTS_KERNEL_H
#define MTFTL_TESTS_KERNEL_H

/* Versions do not matter here, and there are no readers. */
#define MTFTL_COMPAT_H
#define srcu_down_read(readers)			((void)(readers), 0)
#define srcu_up_read(readers, reader)		((void)(readers), (void)(reader))
#define __acquire(lock)				((void)(lock))
#define __release(lock)				((void)(lock))

#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/pure.h"

typedef u64 sector_t;
typedef u8 blk_status_t;
typedef u32 blk_opf_t;
typedef s64 ktime_t;
typedef u32 gfp_t;
typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;
struct mutex { bool held; };
struct wait_queue_head { int unused; };
struct list_head { struct list_head *next, *prev; };
struct hlist_node { void *unused; };
struct bio_list { void *head, *tail; };
struct bio_vec { void *bv_page; unsigned int bv_len, bv_offset; };
struct bvec_iter { sector_t bi_sector; unsigned int bi_size; };
struct bio { struct bvec_iter bi_iter; blk_status_t bi_status; };
struct completion { u32 done; };
struct cpumask;
struct dm_target;
struct mtftl_meta;
struct work_struct { void (*run)(struct work_struct *work); bool queued; };
struct workqueue_struct { int unused; };
struct delayed_work { struct work_struct work; };
struct timer_list { int unused; };
struct srcu_struct { int unused; };
struct block_device { dev_t bd_dev; };
struct dm_dev { char name[16]; };
enum req_op { REQ_OP_READ, REQ_OP_WRITE, REQ_OP_ZONE_RESET, REQ_OP_ZONE_FINISH };

#define atomic_long_t		atomic64_t
#define spinlock_t		struct mutex
#define wait_queue_head_t	struct wait_queue_head
#define cpumask_var_t		u32

#define REQ_FUA			0x100u
#define REQ_PREFLUSH		0x200u
#define BLK_STS_DM_REQUEUE	11
#define GFP_KERNEL		0u
#define GFP_NOIO		0u
#define __GFP_ZERO		1u
#define __GFP_NORETRY		2u
#define __GFP_NOWARN		4u
#define HZ			250
#define PAGE_SHIFT		12
#define PAGE_SIZE		4096u
#define SECTOR_SHIFT		9
#define U16_MAX			0xffffu
#define U32_MAX			0xffffffffu
#define U64_MAX			0xffffffffffffffffull

#define __percpu
#define __printf(at, first)	__attribute__((format(printf, at, first)))
#define ____cacheline_aligned_in_smp
#define fallthrough		__attribute__((fallthrough))
#define noinline		__attribute__((noinline))
#define READ_ONCE(x)		(x)
#define WRITE_ONCE(x, value)	((x) = (value))
#define BUILD_BUG_ON(condition)	_Static_assert(!(condition), #condition)
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define DIV_ROUND_UP_ULL(n, d)	DIV_ROUND_UP((u64)(n), d)
#define swap(a, b)		do { typeof(a) kept = (a); (a) = (b); (b) = kept; } while (0)
#define container_of(ptr, type, member)	((type *)((char *)(ptr) - offsetof(type, member)))
#define list_for_each_entry(pos, head, member)						\
	for (pos = container_of((head)->next, typeof(*(pos)), member);			\
	     &(pos)->member != (head);							\
	     pos = container_of((pos)->member.next, typeof(*(pos)), member))
#define list_first_entry(head, type, member)	container_of((head)->next, type, member)
#define LIST_HEAD(name)		struct list_head name = { &(name), &(name) }
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define clamp(n, least, most)	min(max(n, least), most)
#undef static_assert
#define static_assert(condition, ...)	_Static_assert(condition, #condition)

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline bool list_is_singular(const struct list_head *head)
{
	return !list_empty(head) && head->next == head->prev;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	entry->next = head;
	entry->prev = head->prev;
	head->prev->next = entry;
	head->prev = entry;
}

static inline void list_move(struct list_head *entry, struct list_head *head)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	list_add_tail(entry, head->next);
}

static inline void list_splice_tail(struct list_head *list, struct list_head *head)
{
	if (list_empty(list))
		return;
	list->next->prev = head->prev;
	head->prev->next = list->next;
	list->prev->next = head;
	head->prev = list->prev;
}

static inline void list_splice_init(struct list_head *list, struct list_head *head)
{
	list_splice_tail(list, head->next);
	INIT_LIST_HEAD(list);
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline unsigned long roundup_pow_of_two(unsigned long n)
{
	unsigned long power = 1;

	while (power < n)
		power *= 2;
	return power;
}

#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define this_cpu_add(x, n)	((x) += (n))
#define DMERR			told
#define DMWARN			told
#define DMINFO			told

#define BITS_PER_LONG			(8 * (u32)sizeof(long))
#define BITS_TO_LONGS(nr)		DIV_ROUND_UP(nr, BITS_PER_LONG)
#define BIT_OF(nr)			(1ul << (nr) % BITS_PER_LONG)
#define test_bit(nr, bits)		(!!((bits)[(nr) / BITS_PER_LONG] & BIT_OF(nr)))
#define set_bit(nr, bits)		((bits)[(nr) / BITS_PER_LONG] |= BIT_OF(nr))
#define clear_bit(nr, bits)		((bits)[(nr) / BITS_PER_LONG] &= ~BIT_OF(nr))
#define __set_bit			set_bit

static inline void mutex_init(struct mutex *lock)
{
	lock->held = false;
}

static inline void mutex_lock(struct mutex *lock)
{
	assert(!lock->held);
	lock->held = true;
}

static inline void mutex_unlock(struct mutex *lock)
{
	assert(lock->held);
	lock->held = false;
}

#define lockdep_assert_held(lock)	assert((lock)->held)
#define spin_lock_init			mutex_init
#define spin_lock			mutex_lock
#define spin_unlock			mutex_unlock
#define spin_lock_irq			mutex_lock
#define spin_unlock_irq			mutex_unlock
#define WARN_ON(condition)		(condition)
#define cond_resched()			((void)0)
#define memalloc_noio_save()		0u
#define memalloc_noio_restore(flags)	((void)(flags))

#define atomic_read(v)			((v)->counter)
#define atomic_read_acquire(v)		atomic_read(v)
#define atomic_set(v, n)		((v)->counter = (n))
#define atomic_inc(v)			((void)(v)->counter++)
#define atomic_add(n, v)		((void)((v)->counter += (n)))
#define atomic_inc_return(v)		(++(v)->counter)
#define atomic_dec_and_test(v)		(!--(v)->counter)
#define atomic64_add(n, v)		((void)((v)->counter += (n)))
#define xchg(p, n)	({ typeof(*(p)) kept = *(p); *(p) = (n); kept; })
#define cmpxchg(p, before, after)	((void)(*(p) == (before) && (*(p) = (after))))
#define atomic_long_read(v)		((v)->counter)
#define atomic64_read(v)		((v)->counter)
#define atomic64_set(v, n)		((v)->counter = (s64)(n))
#define atomic64_inc_return(v)		(++(v)->counter)
#define atomic64_sub(n, v)		((void)((v)->counter -= (n)))
#define wait_event_timeout(queue, condition, timeout) \
	((void)sizeof(queue), (void)(condition), (void)(timeout))
#define MAX_SCHEDULE_TIMEOUT		(HZ * 1000)

#define init_completion(completion)	((completion)->done = 0)
#define reinit_completion(completion)	((completion)->done = 0)
#define complete(completion)		((completion)->done++)
/* There is no other thread that could complete it. */
#define wait_for_completion_io_timeout(completion, timeout) \
	((void)(timeout), assert((completion)->done), true)
#define INIT_WORK(work, does)		(*(work) = (struct work_struct) { .run = (does) })
#define likely(x)			(x)
#define unlikely(x)			(x)
/* There is one thread. */
#define smp_mb()			((void)0)
#define dm_per_bio_data(bio, size)	((void)(size), (void *)(bio))

/* Bytes in use, and the most that ever were: a test may set them back. */
__attribute__((weak)) size_t kernel_allocated, kernel_peak;

/* Allocations so far, and the one that finds no memory: a test may set both; 0: none does. */
__attribute__((weak)) unsigned long kernel_allocations, kernel_short_at;

static inline void kvfree(const void *p)
{
	kernel_allocated -= malloc_usable_size((void *)p);
	free((void *)p);
}

#define kfree(p)			kvfree(p)

static inline void *kvcalloc(size_t n, size_t size, gfp_t gfp)
{
	void *p = ++kernel_allocations == kernel_short_at ? NULL : calloc(n ? n : 1, size);

	(void)gfp;
	kernel_allocated += malloc_usable_size(p);
	kernel_peak = max(kernel_peak, kernel_allocated);
	return p;
}

static inline void *kvmalloc_array(size_t n, size_t size, gfp_t gfp)
{
	return kvcalloc(n, size, gfp);
}

static inline void *kmalloc_array(size_t n, size_t size, gfp_t gfp)
{
	return kvcalloc(n, size, gfp);
}

static inline void *kvmalloc(size_t size, gfp_t gfp)
{
	return kvcalloc(1, size, gfp);
}

#define kzalloc_obj(object, gfp)	kvcalloc(1, sizeof(object), gfp)

static inline unsigned int get_order(unsigned long size)
{
	unsigned int order = 0;

	while (PAGE_SIZE << order < size)
		order++;
	return order;
}

static inline unsigned long __get_free_pages(gfp_t gfp, unsigned int order)
{
	return (unsigned long)kvcalloc(1u << order, 1u << PAGE_SHIFT, gfp);
}

static inline unsigned long __get_free_page(gfp_t gfp)
{
	return __get_free_pages(gfp, 0);
}

static inline void free_pages(unsigned long pages, unsigned int order)
{
	(void)order;
	kvfree((void *)pages);
}

static inline void free_page(unsigned long page)
{
	free_pages(page, 0);
}

static inline u64 get_jiffies_64(void)
{
	return 0;
}

static inline ktime_t ktime_get(void)
{
	return 0;
}

static inline bool ktime_after(ktime_t a, ktime_t b)
{
	return a > b;
}

static inline s64 ktime_us_delta(ktime_t after, ktime_t before)
{
	return after - before;
}

/* What is told counts as used. A test may listen for a message by a part of its format. */
__attribute__((weak)) const char *kernel_listens, *kernel_told;

static inline void told(const char *format, ...)
{
	if (kernel_listens && strstr(format, kernel_listens))
		kernel_told = format;
}


static inline void sort(void *base, size_t n, size_t size, int (*cmp)(const void *, const void *),
			void *swap)
{
	(void)swap;
	if (n)
		qsort(base, n, size, cmp);
}

/* Zones, as the block layer reports them. */
enum {
	BLK_ZONE_COND_NOT_WP, BLK_ZONE_COND_EMPTY, BLK_ZONE_COND_IMP_OPEN,
	BLK_ZONE_COND_READONLY = 13, BLK_ZONE_COND_FULL, BLK_ZONE_COND_OFFLINE,
};

struct blk_zone {
	sector_t start, wp, len, capacity;
	u8 cond, type;
};

typedef int (*report_zones_cb)(struct blk_zone *zone, unsigned int index, void *data);
typedef int (*iterate_devices_callout_fn)(struct dm_target *ti, struct dm_dev *dev, sector_t start,
					  sector_t len, void *data);

sector_t bdev_zone_sectors(struct block_device *bdev);

__attribute__((weak)) bool kernel_no_fua;

static inline bool bdev_fua(struct block_device *bdev)
{
	(void)bdev;
	return !kernel_no_fua;
}

/* What is queued stays queued, unless a test takes it here: with cancel_work(), to run it. */
__attribute__((weak)) void (*kernel_queues)(struct work_struct *work);

static inline bool queue_work(struct workqueue_struct *wq, struct work_struct *work)
{
	(void)wq;
	if (work->queued)
		return false;
	work->queued = true;
	if (kernel_queues)
		kernel_queues(work);
	return true;
}

static inline bool cancel_work(struct work_struct *work)
{
	bool was_queued = work->queued;

	work->queued = false;
	return was_queued;
}

#define WQ_MEM_RECLAIM	0u
#define WQ_UNBOUND	0u

static inline struct workqueue_struct *alloc_ordered_workqueue(const char *format, u32 flags,
							       const char *name)
{
	(void)format;
	(void)flags;
	(void)name;
	return kvcalloc(1, sizeof(struct workqueue_struct), 0);
}

static inline struct workqueue_struct *alloc_workqueue(const char *format, u32 flags, int most,
						       const char *name)
{
	(void)most;
	return alloc_ordered_workqueue(format, flags, name);
}

static inline void flush_workqueue(struct workqueue_struct *wq)
{
	(void)wq;
}

static inline void flush_work(struct work_struct *work)
{
	(void)work;
}

static inline void destroy_workqueue(struct workqueue_struct *wq)
{
	kvfree(wq);
}

static inline void bio_endio(struct bio *bio)
{
	(void)bio;
}

#endif
