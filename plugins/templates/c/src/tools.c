/* The tools: each has a description for the model and a function. */
#include "tools.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"

/* Returns a string allocated with malloc. */
static char *format(const char *pattern, ...) {
    va_list values;
    va_start(values, pattern);
    int length = vsnprintf(NULL, 0, pattern, values);
    va_end(values);
    char *text = malloc((size_t)length + 1);
    if (!text) abort();
    va_start(values, pattern);
    vsnprintf(text, (size_t)length + 1, pattern, values);
    va_end(values);
    return text;
}

static result done(char *text) { return (result){.text = text}; }

static result failed(zeph_plugin_types_error_category_t category, char *error) {
    return (result){.error = error, .category = category};
}

/* Counts words, one character at a time. */
typedef struct {
    size_t words;
    bool inside;
} counter;

static void count(counter *counter, int character) {
    bool inside = !isspace(character);
    counter->words += inside && !counter->inside;
    counter->inside = inside;
}

static result counted_words(size_t words) {
    return done(format("%zu %s", words, words == 1 ? "word" : "words"));
}

static result count_words(const char *arguments) {
    char *text = json_string(arguments, "text");
    if (!text)
        return failed(ZEPH_PLUGIN_TYPES_ERROR_CATEGORY_INVALID_PARAMETERS, format("`text` has to be a text"));
    counter counted = {0};
    for (const char *at = text; *at; at++) count(&counted, (unsigned char)*at);
    free(text);
    return counted_words(counted.words);
}

static result count_file(const char *arguments) {
    char *path = json_string(arguments, "path");
    if (!path)
        return failed(ZEPH_PLUGIN_TYPES_ERROR_CATEGORY_INVALID_PARAMETERS, format("`path` has to be a path"));
    progress("reading the file");
    result ended;
    FILE *file = fopen(path, "r");
    if (file) {
        counter counted = {0};
        for (int character; (character = getc(file)) != EOF;) count(&counted, character);
        fclose(file);
        ended = counted_words(counted.words);
    } else if (errno == EACCES || errno == EPERM) {
        ended = failed(ZEPH_PLUGIN_TYPES_ERROR_CATEGORY_POLICY_BLOCKED, format("`%s` may not be read", path));
    } else {
        ended = failed(ZEPH_PLUGIN_TYPES_ERROR_CATEGORY_PERMANENT_FAILURE,
                       format("`%s` does not exist or is outside the granted directories", path));
    }
    free(path);
    return ended;
}

/* The state of a walk. */
typedef struct {
    const char *root;
    size_t words;
} tree;

static void count_in(void *data, const char *path) {
    tree *tree = data;
    char *whole = format("%s/%s", tree->root, path);
    FILE *file = fopen(whole, "r");
    free(whole);
    if (!file) return;
    counter counted = {0};
    for (int character; (character = getc(file)) != EOF;) count(&counted, character);
    fclose(file);
    tree->words += counted.words;
}

static result count_tree(const char *arguments) {
    char *path = json_string(arguments, "path");
    if (!path)
        return failed(ZEPH_PLUGIN_TYPES_ERROR_CATEGORY_INVALID_PARAMETERS, format("`path` has to be a path"));
    char *set = settings(), *only = json_string(set, "only");
    free(set);
    /* Set only if the operator has granted the variable. */
    const char *skip = getenv("WORDS_SKIP");
    tree tree = {.root = path};
    bool ok = walk(path, only ? only : "*.md *.txt", skip ? skip : "", count_in, &tree);
    result ended = ok ? counted_words(tree.words)
                      : failed(ZEPH_PLUGIN_TYPES_ERROR_CATEGORY_POLICY_BLOCKED, format("`%s` may not be read", path));
    free(only);
    free(path);
    return ended;
}

const tool tools[] = {
    {
        .name = "TOOL_PREFIX_words",
        .description = "Counts the words of a text. Use it to judge whether a text fits.",
        .parameters = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\","
                      "\"description\":\"The text to count.\"}},\"required\":[\"text\"],\"additionalProperties\":false}",
        .kind = ZEPH_PLUGIN_TYPES_TOOL_KIND_OTHER,
        .read_only = true,
        .run = count_words,
    },
    {
        .name = "TOOL_PREFIX_file",
        .description = "Counts the words of a text file.",
        .parameters = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\","
                      "\"description\":\"The file to count, as an absolute path.\"}},"
                      "\"required\":[\"path\"],\"additionalProperties\":false}",
        .kind = ZEPH_PLUGIN_TYPES_TOOL_KIND_READ,
        .read_only = true,
        .run = count_file,
    },
    {
        .name = "TOOL_PREFIX_tree",
        .description = "Counts the words of all text files below a directory.",
        .parameters = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\","
                      "\"description\":\"The directory whose files to count, as an absolute path.\"}},"
                      "\"required\":[\"path\"],\"additionalProperties\":false}",
        .kind = ZEPH_PLUGIN_TYPES_TOOL_KIND_SEARCH,
        .read_only = true,
        .run = count_tree,
    },
};
const size_t n_tools = sizeof tools / sizeof *tools;
