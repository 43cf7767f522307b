// SPDX-License-Identifier: GPL-2.0
/*
 * The options of a table line: see options.h.
 */
#include "device/options.h"

#include <linux/kstrtox.h>

static const char *const switches[] = { "on", "off" };

static const char *switch_name(u32 index)
{
	return index < ARRAY_SIZE(switches) ? switches[index] : NULL;
}

static const char *get_append(const struct mtftl_config *config)
{
	return switches[!config->append];
}

static void set_append(struct mtftl_config *config, const char *word)
{
	config->append = !strcmp(word, switches[0]);
}

static const char *get_write_hints(const struct mtftl_config *config)
{
	return switches[!config->write_hints];
}

static void set_write_hints(struct mtftl_config *config, const char *word)
{
	config->write_hints = !strcmp(word, switches[0]);
}

static const char *get_gc_policy(const struct mtftl_config *config)
{
	return READ_ONCE(config->gc_policy)->name;
}

/* A message changes it while GC reads it. */
static void set_gc_policy(struct mtftl_config *config, const char *word)
{
	WRITE_ONCE(config->gc_policy, mtftl_victim_policy(word));
}

static const char *get_placement(const struct mtftl_config *config)
{
	return config->placement->name;
}

static void set_placement(struct mtftl_config *config, const char *word)
{
	config->placement = mtftl_placement(word);
}

static const struct option {
	const char *name, *by_default;

	/* One that is a number. */
	size_t offset;		/* of a u32 in struct mtftl_config */
	u32 least, most;
	const char *zero;	/* a word that stands for 0; NULL: there is none */

	/* One that is a word: set() is called with one of those that name() lists. */
	const char *(*word)(u32 index);
	const char *(*get)(const struct mtftl_config *config);
	void (*set)(struct mtftl_config *config, const char *word);
} options[] = {
	{ .name = "lanes", .by_default = "percpu", .zero = "percpu", .least = 1, .most = 1024,
	  .offset = offsetof(struct mtftl_config, nr_lanes) },
	{ .name = "buffer_entries", .by_default = "1024", .least = 1, .most = MTFTL_MAX_SLOTS / 4,
	  .offset = offsetof(struct mtftl_config, buffer_entries) },
	{ .name = "write_unit", .by_default = "32", .least = 1, .most = MTFTL_UNIT_MAX_ENTRIES,
	  .offset = offsetof(struct mtftl_config, write_unit) },
	{ .name = "gc_policy", .by_default = "cost-benefit", .word = mtftl_victim_policy_name,
	  .get = get_gc_policy, .set = set_gc_policy },
	{ .name = "placement", .by_default = "by-life", .word = mtftl_placement_name,
	  .get = get_placement, .set = set_placement },
	{ .name = "write_hints", .by_default = "on", .word = switch_name,
	  .get = get_write_hints, .set = set_write_hints },
	{ .name = "append", .by_default = "on", .word = switch_name,
	  .get = get_append, .set = set_append },
	{ .name = "low_water", .by_default = "0", .least = 0, .most = U16_MAX,
	  .offset = offsetof(struct mtftl_config, limits.low_water) },
};

/* Old names, and old values: NULL is any of them. */
static const struct {
	const char *name, *value, *new_name, *new_value;
} renamed[] = {
	{ "streams",	NULL,		"placement",	NULL },
	{ "placement",	"append",	"append",	"on" },
	{ "placement",	"write",	"append",	"off" },
};

/* "a, b or c". A copy for each of the callers would not pay. */
static noinline void list_words(const char *(*word)(u32 index), char text[MTFTL_OPTION_TEXT])
{
	const char *now, *next;
	size_t used = 0;
	u32 i;

	for (i = 0, now = word(0); now && used < MTFTL_OPTION_TEXT; i++, now = next) {
		next = word(i + 1);
		used += snprintf(text + used, MTFTL_OPTION_TEXT - used, "%s%s",
				 !i ? "" : next ? ", " : " or ", now);
	}
}

static bool set_word(const struct option *option, struct mtftl_config *config, const char *value)
{
	const char *word;
	u32 i;

	for (i = 0; (word = option->word(i)); i++) {
		if (!strcmp(value, word)) {
			option->set(config, word);
			return true;
		}
	}
	return false;
}

static bool set_number(const struct option *option, struct mtftl_config *config, const char *value)
{
	u32 *number = (void *)config + option->offset;
	unsigned int found = 0;

	if (!option->zero || strcmp(value, option->zero))
		if (kstrtouint(value, 10, &found) || found < option->least || found > option->most)
			return false;
	*number = found;
	return true;
}

static const struct option *find_option(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(options); i++)
		if (!strcmp(name, options[i].name))
			return &options[i];
	return NULL;
}

int mtftl_option_set(struct mtftl_config *config, const char *name, const char *value,
		     char expected[MTFTL_OPTION_TEXT])
{
	const struct option *option = find_option(name);

	if (!option) {
		list_words(mtftl_option_name, expected);
		return -ENOENT;
	}
	if (option->word ? set_word(option, config, value) : set_number(option, config, value))
		return 0;
	if (option->word)
		list_words(option->word, expected);
	else
		snprintf(expected, MTFTL_OPTION_TEXT, "%s%s%u to %u", option->zero ?: "",
			 option->zero ? " or " : "", option->least, option->most);
	return -EINVAL;
}

bool mtftl_option_renew(const char **name, const char **value)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(renamed); i++) {
		if (strcmp(*name, renamed[i].name) ||
		    (renamed[i].value && strcmp(*value, renamed[i].value)))
			continue;
		*name = renamed[i].new_name;
		*value = renamed[i].new_value ?: *value;
		return true;
	}
	return false;
}

void mtftl_options_init(struct mtftl_config *config)
{
	char expected[MTFTL_OPTION_TEXT];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(options); i++)
		mtftl_option_set(config, options[i].name, options[i].by_default, expected);
}

u32 mtftl_options_nr(void)
{
	return ARRAY_SIZE(options);
}

const char *mtftl_option_name(u32 index)
{
	return index < ARRAY_SIZE(options) ? options[index].name : NULL;
}

const char *mtftl_option_value(const struct mtftl_config *config, u32 index,
			       char text[MTFTL_OPTION_TEXT])
{
	const struct option *option = &options[index];
	const u32 *number = (const void *)config + option->offset;

	if (option->word)
		return option->get(config);
	if (!*number && option->zero)
		return option->zero;
	snprintf(text, MTFTL_OPTION_TEXT, "%u", *number);
	return text;
}
