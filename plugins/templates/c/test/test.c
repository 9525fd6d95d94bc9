/* `make test`: tests the tools without WebAssembly. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/json.h"
#include "../src/tools.h"

static int n_failures;

static void check(const char *what, const char *got, const char *expected);

/* In a plugin, the host implements these. */
void progress(const char *message) { (void)message; }

char *settings(void) {
    const char json[] = "{\"only\":\"*.md\"}";
    char *text = malloc(sizeof json);
    return text ? memcpy(text, json, sizeof json) : NULL;
}

bool walk(const char *root, const char *only, const char *skip, void (*found)(void *data, const char *path), void *data) {
    (void)skip;
    check("globs", only, "*.md");
    found(data, strrchr(root, '/') + 1);
    return true;
}

void log_line(zeph_plugin_log_level_t level, const char *message) {
    (void)level;
    (void)message;
}

static void check(const char *what, const char *got, const char *expected) {
    if (got && strcmp(got, expected) == 0) return;
    n_failures++;
    fprintf(stderr, "%s: expected `%s`, got `%s`\n", what, expected, got ? got : "nothing");
}

static void check_call(const char *name, const char *arguments, const char *expected) {
    for (size_t i = 0; i < n_tools; i++) {
        if (strcmp(tools[i].name, name) != 0) continue;
        result ended = tools[i].run(arguments);
        check(name, ended.error ? ended.error : ended.text, expected);
        free(ended.error);
        free(ended.text);
        return;
    }
    check(name, NULL, expected);
}

static void check_json(const char *json, const char *expected) {
    char *got = json_string(json, "key");
    check(json, got, expected);
    free(got);
}

int main(void) {
    check_call("TOOL_PREFIX_words", "{\"text\":\"one two  three\\n\"}", "3 words");
    check_call("TOOL_PREFIX_words", "{}", "`text` has to be a text");
    check_call("TOOL_PREFIX_file", "{\"path\":\"/nowhere/at/all\"}",
               "`/nowhere/at/all` does not exist or is outside the granted directories");
    check_call("TOOL_PREFIX_tree", "{\"path\":\"/nowhere/at/all\"}", "0 words");
    check_json("{\"a\":[{\"key\":\"inner\"},\"}\\\"\"], \"b\": -1.5, \"key\" : \"plain\"}", "plain");
    check_json("{\"key\":\"\\u00e9 \\ud83d\\ude00 \\\"\\/\\n\"}", "\xc3\xa9 \xf0\x9f\x98\x80 \"/\n");
    printf("%d failed\n", n_failures);
    return n_failures > 0;
}
