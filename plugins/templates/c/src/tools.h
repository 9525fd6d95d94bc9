/* Declares tools. tools.c does not depend on WebAssembly, so that `make test` runs on any machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Error categories and tool kinds. */
#include "tool_plugin.h"

/* The outcome of a call. */
typedef struct {
    /* NULL, or the error: one plain sentence for the model, allocated with malloc. */
    char *error;
    /* ZEPH_PLUGIN_TYPES_ERROR_CATEGORY_…, if the call failed. */
    zeph_plugin_types_error_category_t category;
    /* The result for the model, if it did not fail; allocated with malloc. */
    char *text;
} result;

/* An entry of the table in tools.c. */
typedef struct {
    const char *name;
    const char *description;
    /* JSON Schema of the arguments. */
    const char *parameters;
    /* ZEPH_PLUGIN_TYPES_TOOL_KIND_… */
    zeph_plugin_types_tool_kind_t kind;
    /* Changes nothing and stays within the granted directories. Other tools need the user's approval. */
    bool read_only;
    /* `arguments` is a JSON object valid against `parameters`. */
    result (*run)(const char *arguments);
} tool;

extern const tool tools[];
extern const size_t n_tools;

/* The settings from `[plugins.settings.PLUGIN_NAME]` of the host's configuration, as a JSON object allocated with malloc. In plugin.c. */
char *settings(void);

/* Milliseconds left for this call. In plugin.c; tool_plugin.h has the rest of the context (`zeph_plugin_context_…`). */
uint64_t remaining(void);

/* Calls `found` with the path of each file below the directory `root`, relative to it. `only` and `skip` are globs
 * separated by spaces; files ignored by .gitignore are omitted. Returns false if the directory cannot be read. In plugin.c. */
bool walk(const char *root, const char *only, const char *skip, void (*found)(void *data, const char *path), void *data);

/* Reports the progress of a long call to the user. In plugin.c. */
void progress(const char *message);

/* Writes to the operator's log, which the model never sees. `level` is ZEPH_PLUGIN_LOG_LEVEL_…. In plugin.c. */
void log_line(zeph_plugin_log_level_t level, const char *message);
