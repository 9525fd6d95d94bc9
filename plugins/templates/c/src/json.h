/* Reads a string of a JSON object. The host has checked the arguments against the schema, so this knows only what it needs. */
#pragma once

/* The string at `key` of the outermost object in `json`, as UTF-8 from malloc; NULL when there is none. A string with the
 * character U+0000 counts as none: C could not tell its end. */
char *json_string(const char *json, const char *key);
