/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only way up: a file above asks to be called when something happens below. Subscriptions are
 * made while components are set up and never end. A subscriber is called in the context in which it
 * happens, which may be an interrupt.
 */
#ifndef MTFTL_EVENT_H
#define MTFTL_EVENT_H

#include <linux/bug.h>

#include <linux/kernel.h>

struct mtftl;

struct mtftl_event {
	void (*heard[3])(struct mtftl *ftl);
};

static inline void mtftl_event_on(struct mtftl_event *event, void (*heard)(struct mtftl *ftl))
{
	unsigned int i = 0;

	while (i < ARRAY_SIZE(event->heard) && event->heard[i])
		i++;
	/* Each mount subscribes the same, so the first one after a change of code tells. */
	if (!WARN_ON(i == ARRAY_SIZE(event->heard)))
		event->heard[i] = heard;
}

static inline void mtftl_event_tell(const struct mtftl_event *event, struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(event->heard) && event->heard[i]; i++)
		event->heard[i](ftl);
}

#endif
