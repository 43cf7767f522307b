/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mtftl_assert() states what holds unless the code is wrong. What a drive or its media say is not
 * asserted: parsers and callers check that, and return an error.
 *
 *	mtftl_assert(wp <= capacity);
 *	mtftl_assert(wp <= capacity, "zone %u: wp %u", zone, wp);
 *
 * In a debug build a condition that does not hold is a warning of the kernel, once a place, with
 * the state behind it. The build for a kernel that checks itself (KASAN, KCSAN, lockdep, DEBUG_VM)
 * is a debug build, and any other one if it is asked for. Otherwise the condition is compiled, but
 * not evaluated.
 *
 * Any context. A condition has no side effects; fields that it reads without their lock are read as
 * other code reads them, with READ_ONCE().
 */
#ifndef MTFTL_ASSERT_H
#define MTFTL_ASSERT_H

#ifndef __KERNEL__
/* On the host it is assert(). */
#include <assert.h>

#define mtftl_assert(condition, ...)	assert(condition)
#elif defined(MTFTL_DEBUG)
#include <linux/bug.h>

#define mtftl_assert(condition, ...) \
	mtftl_assert_told(condition, #condition, "" __VA_ARGS__)
#define mtftl_assert_told(condition, text, fmt, ...) \
	WARN_ONCE(!(condition), "dm-mtftl: expected %s; " fmt "\n", text, ##__VA_ARGS__)
#else
#define mtftl_assert(condition, ...)	((void)sizeof((__force long)(condition)))
#endif

#define mtftl_assert_size(type, size)	static_assert(sizeof(type) == (size), #type)

#endif
