/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/suite/device_words.h"

#include <stdio.h>
#include <string.h>

#include "base/registry.h"
#include "base/text/options.h"
#include "engine/run/device.h"
#include "engine/run/provider.h"

/* The first ones have no number. */
static const char *const own[] = {"cpu", "null", "cuda"};
enum { UNNUMBERED = 2 };

int device_words(struct arena *arena, const char *const **words)
{
    const char *const *providers;
    int count = ARRAY_COUNT(own), all = provider_names(arena, &providers);
    const char **list = arena_array(arena, (size_t)(count + (all > 0 ? all : 0)), sizeof(*list));
    if (all < 0 || !list)
        return -1;
    memcpy(list, own, sizeof(own));
    for (int k = 0; k < all; k++)
        if (!provider_is_ours(providers[k]))
            list[count++] = providers[k];
    *words = list;
    return count;
}

static bool is_among(const char *word, const char *const *words, int count)
{
    for (int k = 0; k < count; k++)
        if (strcmp(words[k], word) == 0)
            return true;
    return false;
}

static enum status fail_unknown(const char *text, const char *const *words, int count,
                                struct error *err)
{
    char list[200] = "";
    size_t used = 0;
    const char *near = nearest_word(text, words, count);
    if (near)
        return FAIL(err, STATUS_FAILED, "\"%.60s\" is not known, did you mean \"%s\"?", text, near);
    for (int k = 0; k < count && used < sizeof(list); k++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", k ? ", " : "", words[k]);
    return FAIL(err, STATUS_FAILED,
                "\"%.60s\" is none of: %s (the second of several: cuda:1), nor does a "
                "plug-in bring it",
                text, list);
}

/* Of what may have a number: a plug-in of that name, or the device of one with another name. */
static bool is_kind(const char *kind, const char *const *words, int count)
{
    if (is_among(kind, words, UNNUMBERED))
        return false;
    return is_among(kind, words, count) || device_has_kind(kind);
}

enum status device_word_check(const char *text, struct error *err)
{
    char kind[32];
    int index;
    struct arena arena = {0};
    const char *const *words;
    int count = device_words(&arena, &words);
    enum status status = count < 0 ? FAIL_NO_MEMORY(err) : STATUS_OK;
    if (status == STATUS_OK && !is_among(text, words, count)) {
        status = device_parse(text, kind, &index, err);
        if (status == STATUS_OK && !is_kind(kind, words, count))
            status = fail_unknown(text, words, count, err);
    }
    arena_release(&arena);
    return status;
}
