// SPDX-License-Identifier: GPL-2.0
/* Findings go to stdout, one a line; past a limit they are only counted. */
#include <stdarg.h>
#include <stdio.h>

#include "mtftl.h"
#include "report.h"

#define MAX_LINES	100	/* of each kind */

static void line(const struct report *report, u64 nr, const char *kind, const char *format,
		 va_list args)
{
	if (report->quiet || nr > MAX_LINES)
		return;
	progress_clear();
	printf("%s: ", kind);
	vprintf(format, args);
	putchar('\n');
	if (nr == MAX_LINES)
		printf("%s: further ones are counted, not shown\n", kind);
}

void report_error(struct report *report, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(report, ++report->errors, "error", format, args);
	va_end(args);
}

void report_note(struct report *report, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(report, ++report->notes, "note", format, args);
	va_end(args);
}
