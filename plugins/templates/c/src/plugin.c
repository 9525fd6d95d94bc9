/* Connects the tools to the WIT interface. A new tool needs no change here. */
#include <stdlib.h>
#include <string.h>

#include "tools.h"

static char *terminated(const tool_plugin_string_t *string) {
    char *text = malloc(string->len + 1);
    if (!text) abort();
    memcpy(text, string->ptr, string->len);
    text[string->len] = '\0';
    return text;
}

void progress(const char *message) {
    tool_plugin_string_t text;
    tool_plugin_string_set(&text, message);
    zeph_plugin_progress_report(&text, NULL, NULL);
}

void log_line(zeph_plugin_log_level_t level, const char *message) {
    tool_plugin_string_t text;
    tool_plugin_string_set(&text, message);
    zeph_plugin_log_write(level, &text);
}

char *settings(void) {
    tool_plugin_string_t json;
    zeph_plugin_context_settings(&json);
    char *text = terminated(&json);
    tool_plugin_string_free(&json);
    return text;
}

uint64_t remaining(void) { return zeph_plugin_context_remaining(); }

/* The words of `text`, which has to outlive them. */
static tool_plugin_list_string_t words(const char *text) {
    tool_plugin_list_string_t list = {.ptr = calloc(strlen(text) / 2 + 1, sizeof *list.ptr), .len = 0};
    if (!list.ptr) abort();
    for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        list.ptr[list.len++] = (tool_plugin_string_t){.ptr = (uint8_t *)at, .len = length};
        at += length;
    }
    return list;
}

bool walk(const char *root, const char *only, const char *skip, void (*found)(void *data, const char *path), void *data) {
    tool_plugin_string_t place;
    tool_plugin_string_set(&place, root);
    zeph_plugin_walk_options_t options = {.only = words(only), .skip = words(skip), .standard_filters = true};
    zeph_plugin_walk_own_walker_t walker;
    zeph_plugin_walk_walk_error_t error;
    bool ok = zeph_plugin_walk_static_walker_open(&place, &options, &walker, &error);
    free(options.only.ptr);
    free(options.skip.ptr);
    if (!ok) return false;
    zeph_plugin_walk_list_entry_t entries;
    for (size_t n = 1; ok && n > 0;) {
        ok = zeph_plugin_walk_method_walker_next(zeph_plugin_walk_borrow_walker(walker), 1000, &entries, &error);
        n = ok ? entries.len : 0;
        for (size_t i = 0; i < n; i++) {
            if (entries.ptr[i].kind != ZEPH_PLUGIN_WALK_ENTRY_KIND_FILE) continue;
            char *path = terminated(&entries.ptr[i].path);
            found(data, path);
            free(path);
        }
        if (ok) zeph_plugin_walk_list_entry_free(&entries);
    }
    zeph_plugin_walk_walker_drop_own(walker);
    return ok;
}

bool exports_zeph_plugin_tools_list_tools(exports_zeph_plugin_tools_list_tool_definition_t *ret,
                                          tool_plugin_string_t *err) {
    (void)err;
    ret->ptr = calloc(n_tools, sizeof *ret->ptr);
    if (!ret->ptr) abort();
    ret->len = n_tools;
    for (size_t i = 0; i < n_tools; i++) {
        exports_zeph_plugin_tools_tool_definition_t *definition = &ret->ptr[i];
        tool_plugin_string_dup(&definition->name, tools[i].name);
        tool_plugin_string_dup(&definition->description, tools[i].description);
        tool_plugin_string_dup(&definition->parameters, tools[i].parameters);
        definition->kind = tools[i].kind;
        definition->annotations = (zeph_plugin_types_annotations_t){
            .read_only = tools[i].read_only,
            .destructive = !tools[i].read_only,
            .idempotent = tools[i].read_only,
            .open_world = !tools[i].read_only,
        };
    }
    return true;
}

static result run(const char *name, const char *arguments) {
    for (size_t i = 0; i < n_tools; i++)
        if (strcmp(tools[i].name, name) == 0) return tools[i].run(arguments);
    return (result){.error = strdup("this plugin has no such tool"),
                    .category = ZEPH_PLUGIN_TYPES_ERROR_CATEGORY_PERMANENT_FAILURE};
}

bool exports_zeph_plugin_tools_call_tool(tool_plugin_string_t *name, tool_plugin_string_t *arguments,
                                         exports_zeph_plugin_tools_call_context_t *context,
                                         exports_zeph_plugin_tools_outcome_t *ret,
                                         exports_zeph_plugin_tools_tool_error_t *err) {
    char *tool_name = terminated(name), *json = terminated(arguments);
    result ended = run(tool_name, json);
    free(tool_name);
    free(json);
    tool_plugin_string_free(name);
    tool_plugin_string_free(arguments);
    exports_zeph_plugin_tools_call_context_free(context);

    if (ended.error) {
        *err = (exports_zeph_plugin_tools_tool_error_t){.category = ended.category};
        tool_plugin_string_set(&err->message, ended.error);
        return false;
    }
    zeph_plugin_types_content_t *content = malloc(sizeof *content);
    if (!content) abort();
    content->tag = ZEPH_PLUGIN_TYPES_CONTENT_TEXT;
    tool_plugin_string_set(&content->val.text, ended.text);
    *ret = (exports_zeph_plugin_tools_outcome_t){.tag = ZEPH_PLUGIN_TYPES_OUTCOME_DONE};
    ret->val.done.content.ptr = content;
    ret->val.done.content.len = 1;
    return true;
}
