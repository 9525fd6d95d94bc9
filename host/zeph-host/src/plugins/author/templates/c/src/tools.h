/* What a tool is. tools.c knows this and no WebAssembly, so that `make test` runs it on any machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The categories and kinds of the contract. */
#include "tool_plugin.h"

/* How a call ended. */
typedef struct {
    /* NULL, or why the call failed: one plain sentence for the model. From malloc. */
    char *error;
    /* ZEPH_PLUGIN_TYPES_ERROR_CATEGORY_…, when it failed. */
    zeph_plugin_types_error_category_t category;
    /* The answer for the model, when it did not. From malloc. */
    char *text;
} result;

/* One row of the table in tools.c. */
typedef struct {
    const char *name;
    const char *description;
    /* JSON Schema of the arguments. */
    const char *parameters;
    /* ZEPH_PLUGIN_TYPES_TOOL_KIND_… */
    zeph_plugin_types_tool_kind_t kind;
    /* Changes nothing and stays inside. A tool without this promise asks the user before it runs. */
    bool read_only;
    /* `arguments` is a JSON object that fits `parameters`. */
    result (*run)(const char *arguments);
} tool;

extern const tool tools[];
extern const size_t n_tools;

/* What the operator set for this plugin, in `[plugins.settings.PLUGIN_NAME]`: a JSON object. From malloc; in plugin.c. */
char *settings(void);

/* Calls `found` with the path of each file below the directory `root`, relative to it. `only` and `skip` are globs with spaces
 * between; what .gitignore names is omitted. False when the directory may not be read; in plugin.c. */
bool walk(const char *root, const char *only, const char *skip, void (*found)(void *data, const char *path), void *data);

/* Tells the user how a long call is getting on; in plugin.c. */
void progress(const char *message);

/* Writes for the operator, never for the model. `level` is ZEPH_PLUGIN_LOG_LEVEL_…; in plugin.c. */
void log_line(zeph_plugin_log_level_t level, const char *message);
