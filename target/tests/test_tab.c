// SPDX-License-Identifier: GPL-2.0
/* Unit tests of the parser of /etc/mtftltab. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tab.h"

static char complaints[8192];

static void complain(unsigned int line, const char *what)
{
	size_t used = strlen(complaints);

	snprintf(complaints + used, sizeof(complaints) - used, "%u: %s\n", line, what);
}

static struct tab read_bytes(const void *bytes, size_t size)
{
	FILE *file = fmemopen((void *)bytes, size, "r");
	struct tab tab;

	complaints[0] = 0;
	assert_non_null(file);
	tab_read(file, &tab, complain);
	fclose(file);
	return tab;
}

static struct tab read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static void a_line_has_three_fields(void **state)
{
	struct tab tab = read_text("# name device options\n"
				   "\n"
				   "  fast\t/dev/disk/by-id/nvme-x_1  lanes=8,readonly\n"
				   "slow UUID=6D656469-6120-666f-7220-746573747321");

	(void)state;
	assert_string_equal(complaints, "");
	assert_int_equal(tab.nr, 2);
	assert_string_equal(tab.entries[0].name, "fast");
	assert_string_equal(tab.entries[0].device, "/dev/disk/by-id/nvme-x_1");
	assert_string_equal(tab.entries[0].options, "lanes=8,readonly");
	assert_int_equal(tab.entries[0].line, 3);
	assert_string_equal(tab.entries[1].device, "UUID=6d656469-6120-666f-7220-746573747321");
	assert_string_equal(tab.entries[1].options, "-");
	assert_ptr_equal(tab_find(&tab, "slow"), &tab.entries[1]);
	assert_null(tab_find(&tab, "slo"));
	tab_free(&tab);
}

static void options_are_words_and_settings(void **state)
{
	struct tab tab = read_text("a /dev/x noauto,lanes=8,nofail,gc_policy=greedy\n"
				   "b /dev/y -\n");
	const char *at = tab.entries[0].options;
	char *setting;

	(void)state;
	assert_int_equal(tab.nr, 2);
	assert_true(tab_has(&tab.entries[0], "noauto"));
	assert_true(tab_has(&tab.entries[0], "nofail"));
	assert_false(tab_has(&tab.entries[0], "readonly"));
	assert_false(tab_has(&tab.entries[0], "lanes"));
	setting = tab_setting(&at);
	assert_string_equal(setting, "lanes=8");
	free(setting);
	setting = tab_setting(&at);
	assert_string_equal(setting, "gc_policy=greedy");
	free(setting);
	assert_null(tab_setting(&at));
	at = tab.entries[1].options;
	assert_null(tab_setting(&at));
	tab_free(&tab);
}

/* Each of these lines is left out, named by its number, and the lines around it count. */
static void a_wrong_line_is_named(void **state)
{
	static const char *const lines[][2] = {
		{ "alone", "expected a name, a device" },
		{ "x /dev/x a=1 more", "expected a name, a device" },
		{ "a/b /dev/x", "the name is not one" },
		{ "..  /dev/x", "the name is not one" },
		{ "-x /dev/x", "the name is not one" },
		{ "$(x) /dev/x", "the name is not one" },
		{ "control /dev/x", "the name is not one" },
		{ "x nvme0n1", "the device is not one" },
		{ "x /etc/passwd", "the device is not one" },
		{ "x /dev/../etc", "the device is not one" },
		{ "x /dev/$(reboot)", "the device is not one" },
		{ "x UUID=123", "the UUID is not one" },
		{ "x UUID=6d656469-6120-666f-7220-74657374732g", "the UUID is not one" },
		{ "x /dev/x frob", "an option is not one" },
		{ "x /dev/x lanes=", "an option is not one" },
		{ "x /dev/x =8", "an option is not one" },
		{ "x /dev/x lanes=8,,nofail", "an option is not one" },
		{ "x /dev/x lanes=8,", "an option is not one" },
		{ "x /dev/x lanes=$(x)", "an option is not one" },
		{ "first /dev/x", "a line above has this name" },
		{ "x /dev/first", "a line above has this device" },
	};
	char text[512], expected[64];
	struct tab tab;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "first /dev/first\n%s\nlast /dev/last\n", lines[i][0]);
		snprintf(expected, sizeof(expected), "2: %s", lines[i][1]);
		tab = read_text(text);
		if (strncmp(complaints, expected, strlen(expected)))
			fail_msg("'%s': said '%s', expected '%s'", lines[i][0], complaints, expected);
		assert_int_equal(tab.nr, 2);
		assert_int_equal(tab.wrong, 1);
		assert_non_null(tab_find(&tab, "first"));
		assert_non_null(tab_find(&tab, "last"));
		tab_free(&tab);
	}
}

static void what_is_no_text_is_left_out(void **state)
{
	char *line = malloc(3 * TAB_LINE_MAX);
	struct tab tab = read_bytes("a /dev/x\0 b\nc /dev/y\n", 21);

	(void)state;
	assert_int_equal(tab.nr, 1);
	assert_string_equal(complaints, "1: expected up to 4096 characters of text\n");
	tab_free(&tab);

	assert_non_null(line);
	memset(line, 'x', 3 * TAB_LINE_MAX);
	memcpy(line, "a /dev/", 7);
	memcpy(line + 3 * TAB_LINE_MAX - 11, "\nb /dev/y\n", 11);
	tab = read_text(line);
	assert_int_equal(tab.nr, 1);
	assert_string_equal(complaints, "1: expected up to 4096 characters of text\n");
	tab_free(&tab);
	free(line);
}

/* No bytes make it read past its line, which the sanitizers would see. */
static void any_bytes_are_read(void **state)
{
	static const char alphabet[] = "ab/=,-. \t\n#\0UID$";
	u32 random = 1, round, i;
	char bytes[64];
	struct tab tab;

	(void)state;
	for (round = 0; round < 20000; round++) {
		memcpy(bytes, "a /dev/b ", 9);
		for (i = round % 2 ? 9 : 0; i < sizeof(bytes); i++) {
			random = random * 1664525 + 1013904223;
			bytes[i] = alphabet[(random >> 16) % (sizeof(alphabet) - 1)];
		}
		tab = read_bytes(bytes, sizeof(bytes));
		for (i = 0; i < tab.nr; i++)
			assert_true(strlen(tab.entries[i].name) <= TAB_NAME_MAX);
		tab_free(&tab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_three_fields),
		cmocka_unit_test(options_are_words_and_settings),
		cmocka_unit_test(a_wrong_line_is_named),
		cmocka_unit_test(what_is_no_text_is_left_out),
		cmocka_unit_test(any_bytes_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
