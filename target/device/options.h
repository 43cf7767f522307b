/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The options of a table line. One table reads them, prints them, and lists what each of them
 * takes. Their values are in struct mtftl_config.
 */
#ifndef MTFTL_OPTIONS_H
#define MTFTL_OPTIONS_H

#include "device/config.h"

#define MTFTL_OPTION_TEXT	128	/* bytes of a printed value, or of a list of values */

/* Give each option its default value. */
void mtftl_options_init(struct mtftl_config *config);
/* -ENOENT: no such option; -EINVAL: it takes no such value. @expected then lists what there is. */
int mtftl_option_set(struct mtftl_config *config, const char *name, const char *value,
		     char expected[MTFTL_OPTION_TEXT]);
/*
 * An old form of an option becomes the new one, and the result is true. One release accepts both.
 */
bool mtftl_option_renew(const char **name, const char **value);

u32 mtftl_options_nr(void);
/* The name of an option, in the order in which they are printed; NULL behind the last one. */
const char *mtftl_option_name(u32 index);
/* Its value in @config: a word, or a number, which is printed to @text. */
const char *mtftl_option_value(const struct mtftl_config *config, u32 index,
			       char text[MTFTL_OPTION_TEXT]);

#endif
