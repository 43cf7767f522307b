// SPDX-License-Identifier: GPL-2.0
/*
 * The parser of /etc/mtftltab. A line that is wrong is left out, with the reason; the others count.
 * What it lets through goes into names of units and into shell scripts, so it lets few characters through.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "mtftl.h"
#include "tab.h"

/* Those that device-mapper does not escape: then the node has the entry's name. */
#define NAME_CHARS	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789#+-.:=@_"
#define PATH_CHARS	NAME_CHARS "/,~"
#define KEY_CHARS	"abcdefghijklmnopqrstuvwxyz_"
#define VALUE_CHARS	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.:_/"
#define BLANKS		" \t"
#define UUID		"UUID="

static const char *const words[] = { "initramfs", "noauto", "nofail", "readonly" };

static bool is_uuid(const char *text)
{
	static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t i;

	if (strlen(text) != strlen(shape))
		return false;
	for (i = 0; shape[i]; i++)
		if (shape[i] == '-' ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return false;
	return true;
}

static const char *name_is_wrong(const char *name)
{
	if (strlen(name) > TAB_NAME_MAX || name[strspn(name, NAME_CHARS)] || name[0] == '.' ||
	    name[0] == '-' || !strcmp(name, "control"))
		return "the name is not one, expected up to 127 letters, digits or #+-.:=@_, no '.' or '-'"
		       " first, and not control";
	return NULL;
}

static const char *device_is_wrong(const char *device)
{
	if (!strncmp(device, UUID, strlen(UUID)))
		return is_uuid(device + strlen(UUID)) ? NULL : "the UUID is not one, expected 32 digits and"
							      " four '-'";
	if (strncmp(device, "/dev/", strlen("/dev/")) || device[strspn(device, PATH_CHARS)] ||
	    strstr(device, "/../") || strstr(device, "//"))
		return "the device is not one, expected UUID=... or a path that begins with /dev/";
	return NULL;
}

/* Whether the @length characters at @text are one of the words or KEY=VALUE. */
static bool is_word(const char *text, size_t length, const char *word)
{
	return length == strlen(word) && !strncmp(text, word, length);
}

static bool is_setting(const char *text, size_t length)
{
	size_t key = strspn(text, KEY_CHARS);

	return key && key + 1 < length && text[key] == '=' &&
	       strspn(text + key + 1, VALUE_CHARS) >= length - key - 1;
}

static bool is_option(const char *text, size_t length)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (is_word(text, length, words[i]))
			return true;
	return is_setting(text, length);
}

static const char *next_option(const char *at)
{
	at += strcspn(at, ",");
	return *at ? at + 1 : NULL;
}

static const char *options_are_wrong(const char *options)
{
	const char *at = strcmp(options, "-") ? options : NULL;

	for (; at; at = next_option(at))
		if (!is_option(at, strcspn(at, ",")))
			return "an option is not one, expected initramfs, noauto, nofail, readonly or KEY=VALUE,"
			       " with commas between them";
	return NULL;
}

/* As udev's links have them. */
static void lower_uuid(char *device)
{
	if (!strncmp(device, UUID, strlen(UUID)))
		for (device += strlen(UUID); *device; device++)
			*device = tolower((unsigned char)*device);
}

/* Take the line apart; returns what is wrong with it. */
static const char *parse_line(const struct tab *tab, struct tab_entry *entry)
{
	const char *wrong;
	char *rest, *device;
	unsigned int i;

	entry->name = strtok_r(entry->text, BLANKS, &rest);
	device = strtok_r(NULL, BLANKS, &rest);
	if (device)
		lower_uuid(device);
	entry->device = device;
	entry->options = strtok_r(NULL, BLANKS, &rest);
	if (!entry->device || strtok_r(NULL, BLANKS, &rest))
		return "expected a name, a device, and options with commas between them";
	if (!entry->options)
		entry->options = "-";
	wrong = name_is_wrong(entry->name) ?: device_is_wrong(entry->device) ?:
		options_are_wrong(entry->options);
	for (i = 0; !wrong && i < tab->nr; i++) {
		if (!strcmp(tab->entries[i].name, entry->name))
			wrong = "a line above has this name";
		else if (!strcmp(tab->entries[i].device, entry->device))
			wrong = "a line above has this device";
	}
	return wrong;
}

static void add_entry(struct tab *tab, const struct tab_entry *entry)
{
	tab->entries = realloc(tab->entries, (tab->nr + 1) * sizeof(*entry));
	if (!tab->entries)
		fail(EXIT_FAILED, "out of memory");
	tab->entries[tab->nr++] = *entry;
}

void tab_read(FILE *file, struct tab *tab, tab_complain *complain)
{
	struct tab_entry entry = { 0 };
	char *line = NULL;
	size_t size = 0;
	ssize_t length;

	*tab = (struct tab) { 0 };
	while ((length = getline(&line, &size, file)) >= 0) {
		const char *wrong = NULL, *first;

		entry.line++;
		if (length && line[length - 1] == '\n')
			line[--length] = 0;
		first = line + strspn(line, BLANKS);
		if (*first == '#' || first == line + length)
			continue;
		if (length > TAB_LINE_MAX || (size_t)length != strlen(line))
			wrong = "expected up to 4096 characters of text";
		entry.text = strdup(line);
		if (!entry.text)
			fail(EXIT_FAILED, "out of memory");
		wrong = wrong ?: parse_line(tab, &entry);
		if (!wrong) {
			add_entry(tab, &entry);
			continue;
		}
		tab->wrong++;
		complain(entry.line, wrong);
		free(entry.text);
	}
	free(line);
}

void tab_free(struct tab *tab)
{
	while (tab->nr)
		free(tab->entries[--tab->nr].text);
	free(tab->entries);
	tab->entries = NULL;
}

const struct tab_entry *tab_find(const struct tab *tab, const char *name)
{
	unsigned int i;

	for (i = 0; i < tab->nr; i++)
		if (!strcmp(tab->entries[i].name, name))
			return &tab->entries[i];
	return NULL;
}

bool tab_has(const struct tab_entry *entry, const char *word)
{
	const char *at;

	for (at = entry->options; at; at = next_option(at))
		if (is_word(at, strcspn(at, ","), word))
			return true;
	return false;
}

char *tab_setting(const char **at)
{
	const char *option;
	char *setting;

	while (*at) {
		option = *at;
		*at = next_option(option);
		if (!is_setting(option, strcspn(option, ",")))
			continue;
		setting = strndup(option, strcspn(option, ","));
		if (!setting)
			fail(EXIT_FAILED, "out of memory");
		return setting;
	}
	return NULL;
}
