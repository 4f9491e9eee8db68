/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/shell.h"

#include <string.h>

/* What means nothing but itself to any shell, wherever it stands in a word. */
static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "_-+=:,./@%";

const char *shell_word(struct arena *arena, const char *word)
{
    if (*word && !word[strspn(word, plain)])
        return word;
    const char *text = "'";
    for (const char *at = word, *quote; text && at; at = quote ? quote + 1 : NULL) {
        quote = strchr(at, '\'');
        int length = (int)(quote ? (size_t)(quote - at) : strlen(at));
        text = arena_printf(arena, "%s%.*s%s", text, length, at, quote ? "'\\''" : "'");
    }
    return text;
}
