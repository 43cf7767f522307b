/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only way up: a file above asks to be called when something happens below. Subscriptions are
 * made while components are set up and never end. A subscriber is called in the context in which it
 * happens, which may be an interrupt.
 */
#ifndef MTFTL_EVENT_H
#define MTFTL_EVENT_H

struct mtftl;

struct mtftl_event {
	void (*heard[3])(struct mtftl *ftl);
};

void mtftl_event_on(struct mtftl_event *event, void (*heard)(struct mtftl *ftl));
void mtftl_event_tell(const struct mtftl_event *event, struct mtftl *ftl);

#endif
