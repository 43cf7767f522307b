/* SPDX-License-Identifier: GPL-2.0 */
#include "kernel.h"

/* A sign or a line's end, which the kernel's takes as well, are not needed here. */
static inline int kstrtouint(const char *text, unsigned int base, unsigned int *found)
{
	unsigned long value;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoul(text, &end, base);
	if (*end)
		return -EINVAL;
	if (errno || value > U32_MAX)
		return -ERANGE;
	*found = value;
	return 0;
}
