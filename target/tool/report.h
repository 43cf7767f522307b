/* SPDX-License-Identifier: GPL-2.0 */
/* Where the readers of media say what they find: errors, and notes that are none. */
#ifndef MTFTL_TOOL_REPORT_H
#define MTFTL_TOOL_REPORT_H

#include "lib/pure.h"

struct report {
	u64 errors;
	u64 notes;
	bool quiet;		/* count only */
};

void report_error(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void report_note(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
