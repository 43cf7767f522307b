/* SPDX-License-Identifier: GPL-2.0 */
/* Writes JSON as it goes: objects and arrays nest, names are NULL inside arrays. */
#ifndef MTFTL_TOOL_JSON_H
#define MTFTL_TOOL_JSON_H

#include <stdio.h>

#include "lib/pure.h"

struct json;

/* Opens the outermost object; json_finish() closes it and frees. */
struct json *json_start(FILE *out);
void json_finish(struct json *json);

void json_object(struct json *json, const char *name);
void json_array(struct json *json, const char *name);
void json_end(struct json *json);
void json_u64(struct json *json, const char *name, u64 value);
/* As it is written already. */
void json_number(struct json *json, const char *name, const char *number);
void json_bool(struct json *json, const char *name, bool value);
void json_string(struct json *json, const char *name, const char *value);

#endif
