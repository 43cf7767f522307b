// SPDX-License-Identifier: GPL-2.0
/* The JSON writer: one value a line, indented by depth. */
#include <inttypes.h>
#include <stdlib.h>

#include "json.h"
#include "mtftl.h"

#define MAX_DEPTH	16

struct json {
	FILE *out;
	int depth;
	char closing[MAX_DEPTH];
	bool filled;		/* the innermost one has a value already */
};

static void string(struct json *json, const char *text)
{
	const unsigned char *c;

	fputc('"', json->out);
	for (c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(json->out, "\\%c", *c);
		else if (*c < 0x20)
			fprintf(json->out, "\\u%04x", *c);
		else
			fputc(*c, json->out);
	}
	fputc('"', json->out);
}

static void indent(struct json *json)
{
	fprintf(json->out, "\n%*s", 2 * json->depth, "");
}

static void start_value(struct json *json, const char *name)
{
	if (json->filled)
		fputc(',', json->out);
	if (json->depth)
		indent(json);
	if (name) {
		string(json, name);
		fputs(": ", json->out);
	}
	json->filled = true;
}

static void nest(struct json *json, const char *name, const char *brackets)
{
	assert(json->depth < MAX_DEPTH);
	start_value(json, name);
	fputc(brackets[0], json->out);
	json->closing[json->depth++] = brackets[1];
	json->filled = false;
}

struct json *json_start(FILE *out)
{
	struct json *json = xalloc(1, sizeof(*json));

	json->out = out;
	json_object(json, NULL);
	return json;
}

void json_finish(struct json *json)
{
	json_end(json);
	assert(!json->depth);
	fputc('\n', json->out);
	free(json);
}

void json_object(struct json *json, const char *name)
{
	nest(json, name, "{}");
}

void json_array(struct json *json, const char *name)
{
	nest(json, name, "[]");
}

void json_end(struct json *json)
{
	bool filled = json->filled;

	assert(json->depth > 0);
	json->depth--;
	if (filled)
		indent(json);
	fputc(json->closing[json->depth], json->out);
	json->filled = true;
}

void json_u64(struct json *json, const char *name, u64 value)
{
	start_value(json, name);
	fprintf(json->out, "%" PRIu64, value);
}

void json_number(struct json *json, const char *name, const char *number)
{
	start_value(json, name);
	fputs(number, json->out);
}

void json_bool(struct json *json, const char *name, bool value)
{
	start_value(json, name);
	fputs(value ? "true" : "false", json->out);
}

void json_string(struct json *json, const char *name, const char *value)
{
	start_value(json, name);
	string(json, value);
}
