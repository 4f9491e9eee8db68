/* SPDX-License-Identifier: Apache-2.0
 * The option parser on any command line: words are separated by line ends. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS_MAX = 64 };

struct values {
    bool fast;
    int64_t batch;
    double seconds;
    const char *file;
    struct option_list items;
};

static const struct option table[] = {
    {"fast", 'f', OPTION_FLAG, offsetof(struct values, fast), NULL, "be quick"},
    {"batch", 'b', OPTION_INT, offsetof(struct values, batch), "N", "rows"},
    {"seconds", 0, OPTION_FLOAT, offsetof(struct values, seconds), "X", "time"},
    {"file", 0, OPTION_TEXT, offsetof(struct values, file), "FILE", "where"},
    {"item", 'i', OPTION_LIST, offsetof(struct values, items), "NAME", "what"},
    {.name = NULL},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest = NULL, *argv[WORDS_MAX];
    struct values values = {.fast = false};
    struct error err;
    int argc = 0;
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *w = strtok_r(text, "\n", &rest); w && argc < WORDS_MAX;
         w = strtok_r(NULL, "\n", &rest))
        argv[argc++] = w;
    int before = argc;
    if (options_parse(table, &argc, argv, &values, &err) == STATUS_OK) {
        if (argc > before || values.items.count > OPTION_LIST_MAX)
            abort();
    } else if (!memchr(err.message, '\0', sizeof(err.message)) || !err.message[0]) {
        abort(); /* a failure says why */
    }
    free(text);
    return 0;
}
