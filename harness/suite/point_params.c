/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "harness/suite/point_params.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/model_file.h"

enum { WORDS_MAX = 16 };

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *point_words(struct arena *arena, const char *list)
{
    const char *words[WORDS_MAX], *result = "";
    int count = 0;
    char *copy = arena_strdup(arena, list), *save = NULL;
    for (char *word = copy ? strtok_r(copy, ", ", &save) : NULL; word && count < WORDS_MAX;
         word = strtok_r(NULL, ", ", &save))
        words[count++] = word;
    qsort(words, (size_t)count, sizeof(*words), by_name);
    for (int k = 0; k < count && result; k++)
        if (k == 0 || strcmp(words[k], words[k - 1]) != 0)
            result = arena_printf(arena, "%s%s%s", result, *result ? "," : "", words[k]);
    return copy ? result : NULL;
}

const char *point_params_join(struct arena *arena, const char **words, int count)
{
    const char *result = "";
    qsort(words, (size_t)count, sizeof(*words), by_name);
    for (int k = 0; k < count && result; k++)
        result = arena_printf(arena, "%s%s%s", result, k ? "," : "", words[k]);
    return result;
}

bool point_states(const struct workload *w, const char *name)
{
    return w && w->stated && strcmp(w->stated, name) == 0;
}

/* Whether the word says what holds without it, and is not stated all the same. */
static bool is_default(const struct workload *w, const char *word)
{
    size_t name = strcspn(word, "=");
    for (const struct param *p = w ? w->params : NULL; p && p->name; p++)
        if (strlen(p->name) == name && strncmp(p->name, word, name) == 0)
            return word[name] == '=' && strcmp(p->value, word + name + 1) == 0 &&
                   !point_states(w, p->name);
    return false;
}

/* What is left of the words but those about the parameter of `word`, which counts, since it comes
 * later. */
static int without_name(const char **words, int count, const char *word)
{
    size_t name = strcspn(word, "=");
    int left = 0;
    for (int k = 0; k < count; k++)
        if (strcspn(words[k], "=") != name || strncmp(words[k], word, name) != 0)
            words[left++] = words[k];
    return left;
}

const char *point_params(struct arena *arena, const char *spec)
{
    const struct workload *w = workload_of(spec);
    size_t path = model_file_path(spec);
    const char *words[PARAM_MAX], *colon = path ? spec + path : strchr(spec, ':');
    char *copy = arena_strdup(arena, colon && *colon ? colon + 1 : ""), *save = NULL;
    int count = 0, own = 0;
    if (!w && !path)
        return "";
    for (const struct param *p = w ? w->params : NULL; p && p->name && copy; p++)
        if (point_states(w, p->name)) {
            const char *stated = arena_printf(arena, "%s=%s", p->name, p->value);
            if (stated)
                words[count++] = stated;
            else
                copy = NULL;
        }
    for (char *word = copy ? strtok_r(copy, ",", &save) : NULL; word && count < PARAM_MAX;
         word = strtok_r(NULL, ",", &save)) {
        count = without_name(words, count, word);
        words[count++] = word;
    }
    for (int k = 0; k < count; k++)
        if (!is_default(w, words[k]))
            words[own++] = words[k];
    return copy ? point_params_join(arena, words, own) : NULL;
}

bool point_same_model(const char *spec, const char *other)
{
    struct arena arena = {.head = NULL};
    const struct workload *w = workload_of(spec);
    const char *a = point_params(&arena, spec), *b = point_params(&arena, other);
    size_t path = model_file_path(spec);
    bool file = path && path == model_file_path(other) && strncmp(spec, other, path) == 0;
    bool same = file || (w && w == workload_of(other)) ? a && b && strcmp(a, b) == 0
                                                       : strcmp(spec, other) == 0;
    arena_release(&arena);
    return same;
}
