// SPDX-License-Identifier: GPL-2.0
/*
 * Tests on the host of the table line's options (options.c of the module): what each takes, what
 * it says of other values, and that it takes what it prints.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/options.h"

static struct mtftl_config fresh(void)
{
	struct mtftl_config config = {};

	mtftl_options_init(&config);
	return config;
}

/* The option's value as `dmsetup table` prints it. */
static const char *printed(const struct mtftl_config *config, const char *name)
{
	static char text[MTFTL_OPTION_TEXT];
	u32 i;

	for (i = 0; mtftl_option_name(i); i++)
		if (!strcmp(mtftl_option_name(i), name))
			return mtftl_option_value(config, i, text);
	return "not printed";
}

static void options_have_defaults(void **state)
{
	static const char *const defaults[][2] = {
		{ "lanes", "percpu" }, { "buffer_entries", "1024" }, { "write_unit", "32" },
		{ "gc_policy", "cost-benefit" }, { "placement", "by-life" },
		{ "write_hints", "on" }, { "append", "on" }, { "low_water", "0" },
	};
	struct mtftl_config config = fresh();
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(defaults); i++) {
		assert_string_equal(mtftl_option_name(i), defaults[i][0]);
		assert_string_equal(printed(&config, defaults[i][0]), defaults[i][1]);
	}
	assert_null(mtftl_option_name(i));
	assert_int_equal(config.nr_lanes, 0);
	assert_ptr_equal(config.placement, mtftl_placement("by-life"));
	assert_ptr_equal(config.gc_policy, mtftl_victim_policy("cost-benefit"));
	assert_true(config.write_hints);
	assert_true(config.append);
}

static void each_option_sets_its_field(void **state)
{
	char expected[MTFTL_OPTION_TEXT];
	struct mtftl_config config = fresh();

	(void)state;
	assert_int_equal(mtftl_option_set(&config, "lanes", "8", expected), 0);
	assert_int_equal(mtftl_option_set(&config, "buffer_entries", "4096", expected), 0);
	assert_int_equal(mtftl_option_set(&config, "write_unit", "1", expected), 0);
	assert_int_equal(mtftl_option_set(&config, "gc_policy", "greedy", expected), 0);
	assert_int_equal(mtftl_option_set(&config, "placement", "hot-cold", expected), 0);
	assert_int_equal(mtftl_option_set(&config, "write_hints", "off", expected), 0);
	assert_int_equal(mtftl_option_set(&config, "append", "off", expected), 0);
	assert_int_equal(mtftl_option_set(&config, "low_water", "12", expected), 0);
	assert_int_equal(config.nr_lanes, 8);
	assert_int_equal(config.buffer_entries, 4096);
	assert_int_equal(config.write_unit, 1);
	assert_ptr_equal(config.gc_policy, mtftl_victim_policy("greedy"));
	assert_ptr_equal(config.placement, mtftl_placement("hot-cold"));
	assert_false(config.write_hints);
	assert_false(config.append);
	assert_int_equal(config.limits.low_water, 12);
	assert_int_equal(mtftl_option_set(&config, "lanes", "percpu", expected), 0);
	assert_int_equal(config.nr_lanes, 0);
}

static void wrong_values_name_the_right_ones(void **state)
{
	static const struct {
		const char *name, *value, *expected;
		int error;
	} wrong[] = {
		{ "lanes", "0", "percpu or 1 to 1024", -EINVAL },
		{ "lanes", "1025", "percpu or 1 to 1024", -EINVAL },
		{ "lanes", "many", "percpu or 1 to 1024", -EINVAL },
		{ "lanes", "", "percpu or 1 to 1024", -EINVAL },
		{ "write_unit", "253", "1 to 252", -EINVAL },
		{ "write_unit", "percpu", "1 to 252", -EINVAL },
		{ "write_unit", "8x", "1 to 252", -EINVAL },
		{ "write_unit", "-1", "1 to 252", -EINVAL },
		{ "low_water", "65536", "0 to 65535", -EINVAL },
		{ "low_water", "4294967297", "0 to 65535", -EINVAL },
		{ "gc_policy", "best", "greedy or cost-benefit", -EINVAL },
		{ "placement", "best", "none, hot-cold, by-age or by-life", -EINVAL },
		{ "placement", "", "none, hot-cold, by-age or by-life", -EINVAL },
		{ "append", "write", "on or off", -EINVAL },
		{ "write_hints", "short", "on or off", -EINVAL },
		{ "colour", "blue",
		  "lanes, buffer_entries, write_unit, gc_policy, placement, write_hints, append or "
		  "low_water", -ENOENT },
		{ "streams", "none",
		  "lanes, buffer_entries, write_unit, gc_policy, placement, write_hints, append or "
		  "low_water", -ENOENT },
	};
	struct mtftl_config config = fresh(), before = config;
	char expected[MTFTL_OPTION_TEXT];
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(mtftl_option_set(&config, wrong[i].name, wrong[i].value, expected),
				 wrong[i].error);
		assert_string_equal(expected, wrong[i].expected);
		assert_memory_equal(&config, &before, sizeof(config));
	}
}

static void old_forms_become_new_ones(void **state)
{
	static const struct {
		const char *name, *value, *new_name, *new_value;
	} forms[] = {
		{ "streams", "by-life", "placement", "by-life" },
		{ "streams", "none", "placement", "none" },
		{ "streams", "best", "placement", "best" },
		{ "placement", "append", "append", "on" },
		{ "placement", "write", "append", "off" },
	};
	static const char *const ours[][2] = {
		{ "placement", "by-life" }, { "placement", "best" }, { "append", "on" },
		{ "append", "write" }, { "lanes", "append" }, { "colour", "blue" },
	};
	const char *name, *value;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(forms); i++) {
		name = forms[i].name;
		value = forms[i].value;
		assert_true(mtftl_option_renew(&name, &value));
		assert_string_equal(name, forms[i].new_name);
		assert_string_equal(value, forms[i].new_value);
		assert_false(mtftl_option_renew(&name, &value));
	}
	for (i = 0; i < ARRAY_SIZE(ours); i++) {
		name = ours[i][0];
		value = ours[i][1];
		assert_false(mtftl_option_renew(&name, &value));
		assert_ptr_equal(name, ours[i][0]);
		assert_ptr_equal(value, ours[i][1]);
	}
}

/* A word as users may write one: a right one, perhaps with a byte of it changed, or digits. */
static const char *word(char text[16])
{
	static const char *const right[] = {
		"lanes", "buffer_entries", "write_unit", "gc_policy", "placement",
		"write_hints", "append", "low_water",
		"streams", "percpu", "greedy", "cost-benefit", "none", "hot-cold", "by-age", "by-life",
		"on", "off", "write", "1", "8", "252", "1024", "65535", "4294967295",
	};
	size_t length;

	strcpy(text, right[rand() % ARRAY_SIZE(right)]);
	length = strlen(text);
	if (rand() % 4 == 0)
		text[rand() % length] = ' ' + rand() % 95;
	if (rand() % 4 == 0)
		snprintf(text, 16, "%u", (u32)rand() >> rand() % 31);
	if (rand() % 16 == 0)
		text[rand() % length] = 0;
	return text;
}

/* Nothing but the option changes; what is printed is taken, and changes nothing; a refusal changes nothing. */
static void what_is_printed_is_accepted(void **state)
{
	char expected[MTFTL_OPTION_TEXT], texts[2][16], text[MTFTL_OPTION_TEXT];
	struct mtftl_config config = fresh(), before, again;
	u32 accepted = 0, refused = 0, round, i;
	const char *name, *value;

	(void)state;
	srand(1);
	for (round = 0; round < 200000; round++) {
		name = word(texts[0]);
		value = word(texts[1]);
		before = config;
		mtftl_option_renew(&name, &value);
		memset(expected, 'x', sizeof(expected));
		if (mtftl_option_set(&config, name, value, expected)) {
			assert_memory_equal(&config, &before, sizeof(config));
			assert_non_null(memchr(expected, 0, sizeof(expected) - 1));
			refused++;
			continue;
		}
		accepted++;
		again = fresh();
		for (i = 0; mtftl_option_name(i); i++) {
			value = mtftl_option_value(&config, i, text);
			assert_int_equal(mtftl_option_set(&again, mtftl_option_name(i), value,
							  expected), 0);
		}
		assert_memory_equal(&config, &again, sizeof(config));
	}
	assert_true(accepted > 1000 && refused > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_have_defaults),
		cmocka_unit_test(each_option_sets_its_field),
		cmocka_unit_test(wrong_values_name_the_right_ones),
		cmocka_unit_test(old_forms_become_new_ones),
		cmocka_unit_test(what_is_printed_is_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
