// SPDX-License-Identifier: GPL-2.0
/*
 * Events: see event.h.
 */
#include "device/event.h"

#include <linux/bug.h>
#include <linux/kernel.h>

void mtftl_event_on(struct mtftl_event *event, void (*heard)(struct mtftl *ftl))
{
	unsigned int i = 0;

	while (i < ARRAY_SIZE(event->heard) && event->heard[i])
		i++;
	/* Each mount subscribes the same, so the first one after a change of code tells. */
	if (!WARN_ON(i == ARRAY_SIZE(event->heard)))
		event->heard[i] = heard;
}

void mtftl_event_tell(const struct mtftl_event *event, struct mtftl *ftl)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(event->heard) && event->heard[i]; i++)
		event->heard[i](ftl);
}
