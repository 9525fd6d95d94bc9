#include "json.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_space(const char *at) { return at + strspn(at, " \t\r\n"); }

/* The value of four hexadecimal digits; 0, which no text may hold, for anything else. */
static unsigned hex4(const char *at) {
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = at[i] ? strchr(digits, at[i] | 0x20) : NULL;
        if (!digit) return 0;
        value = value * 16 + (unsigned)(digit - digits);
    }
    return value;
}

static char *put_utf8(char *out, unsigned code) {
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        *out++ = (char)(0xf0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    return out;
}

/* Decodes the string whose opening quote is at `*at` and moves `*at` behind its closing one. */
static char *take_string(const char **at) {
    const char *in = *at + 1;
    /* No escape gets longer by being decoded. */
    char *text = malloc(strlen(in) + 1), *out = text;
    while (text && *in && *in != '"') {
        if (*in != '\\') {
            *out++ = *in++;
            continue;
        }
        const char *plain = "\"\\/bfnrt", *meant = "\"\\/\b\f\n\r\t";
        const char *known = in[1] ? strchr(plain, in[1]) : NULL;
        unsigned code = known ? (unsigned char)meant[known - plain] : in[1] == 'u' ? hex4(in + 2) : 0;
        in += known ? 2 : 6;
        if (code >= 0xd800 && code < 0xdc00 && in[0] == '\\' && in[1] == 'u') {
            code = 0x10000 + ((code - 0xd800) << 10) + (hex4(in + 2) - 0xdc00);
            in += 6;
        }
        if (code == 0) {
            free(text);
            return NULL;
        }
        out = put_utf8(out, code);
    }
    if (!text || *in != '"') {
        free(text);
        return NULL;
    }
    *out = '\0';
    *at = in + 1;
    return text;
}

/* Behind the value at `at`, whatever it is. */
static const char *skip_value(const char *at) {
    int depth = 0;
    do {
        if (*at == '"') {
            for (at++; *at && *at != '"'; at++) at += *at == '\\' && at[1];
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            depth--;
        }
        at += *at != '\0';
    } while (*at && (depth > 0 || !strchr(",}]", *at)));
    return at;
}

char *json_string(const char *json, const char *key) {
    const char *at = skip_space(json);
    if (*at != '{') return NULL;
    for (at = skip_space(at + 1); *at == '"'; at = skip_space(at + (*at == ','))) {
        char *name = take_string(&at);
        if (!name) return NULL;
        bool found = strcmp(name, key) == 0;
        free(name);
        at = skip_space(at);
        if (*at != ':') return NULL;
        at = skip_space(at + 1);
        if (found) return *at == '"' ? take_string(&at) : NULL;
        at = skip_space(skip_value(at));
    }
    return NULL;
}
