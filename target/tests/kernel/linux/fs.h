/* SPDX-License-Identifier: GPL-2.0 */
/* What of the kernel map.c needs beyond kernel.h. No bio waits for a slot, and none is copied. */
#ifndef MTFTL_TESTS_FS_H
#define MTFTL_TESTS_FS_H

#include "kernel.h"

#define WRITE_LIFE_SHORT		2
#define WRITE_LIFE_EXTREME		5
#define BIO_EMPTY_LIST			{ NULL, NULL }
#define array_size(n, size)		((size_t)(n) * (size))
#define vmalloc(size)			kvmalloc(size, GFP_KERNEL)
#define vfree(p)			kvfree(p)
#define atomic_dec(v)			((void)(v)->counter--)
#define atomic_long_inc(v)		((void)(v)->counter++)
#define atomic_sub_return_release(n, v)	((v)->counter -= (n))
#define spin_lock_irqsave(lock, flags)	((void)((flags) = 0), mutex_lock(lock))
/* There is one thread. */
#define smp_rmb()			((void)0)
/* Likewise. */
#define smp_load_acquire(p)		(*(p))
/* Likewise. */
#define smp_store_release(p, value)	(*(p) = (value))
#define bdev_write_cache(bdev)		((void)(bdev), true)
#define bio_list_init(list)		((list)->head = NULL)
#define bio_list_empty(list)		(!(list)->head)
#define bio_list_pop(list)		((struct bio *)(list)->head)
#define bio_list_add(list, bio)		((void)(list), (void)(bio), abort())
#define bio_io_error(bio)		((void)(bio), abort())
#define bio_iter_iovec(bio, iter)	((void)(bio), (void)(iter), abort(), (struct bio_vec) { 0 })
#define bio_advance_iter_single(bio, iter, n)	((void)(bio), (void)(iter), (void)(n))
#define memcpy_to_page(page, at, from, n)	memcpy((u8 *)(page) + (at), from, n)
#define memcpy_from_page(to, page, at, n)	memcpy(to, (u8 *)(page) + (at), n)

/* Happens when a lock has just been left, as if another CPU had waited for it; NULL: nothing does. */
__attribute__((weak)) void (*kernel_unlocked)(void);

static inline void unlock(struct mutex *lock)
{
	mutex_unlock(lock);
	if (kernel_unlocked)
		kernel_unlocked();
}

#undef spin_unlock_irq
#define spin_unlock_irq			unlock
#define spin_unlock_irqrestore(lock, flags)	((void)(flags), unlock(lock))

#undef atomic64_inc_return
/* Happens when a number is about to be drawn. */
__attribute__((weak)) void (*kernel_counts)(void);
#define atomic64_inc_return(v)		((kernel_counts ? kernel_counts() : (void)0), ++(v)->counter)

#endif
