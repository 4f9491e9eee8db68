/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/options.h"

#include <errno.h>
#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 64, NAMES_MAX = 64 };

struct parser {
    const struct option *table;
    char **argv;
    int argc;
    int at; /* next word to read */
    void *values;
};

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Edit distance in which exchanging two neighbours costs one (Damerau, optimal alignment). */
static int edit_distance(const char *a, const char *b)
{
    int m = (int)strlen(a), n = (int)strlen(b);
    if (m > WORD_MAX || n > WORD_MAX)
        return WORD_MAX;
    int row[3][WORD_MAX + 1]; /* rows i - 2, i - 1, i of the matrix, used in turn */
    for (int j = 0; j <= n; j++)
        row[0][j] = j;
    for (int i = 1; i <= m; i++) {
        int *now = row[i % 3];
        const int *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= n; j++) {
            now[j] =
                smaller(smaller(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = smaller(now[j], before[j - 2] + 1);
        }
    }
    return row[m % 3][n];
}

const char *nearest_word(const char *word, const char *const *words, int count)
{
    const char *best = NULL;
    int length = (int)strlen(word), best_distance = smaller(1 + length / 4, length);
    for (int k = 0; k < count; k++) {
        int distance = edit_distance(word, words[k]);
        if (distance < best_distance || (!best && distance == best_distance)) {
            best = words[k];
            best_distance = distance;
        }
    }
    for (int k = 0; k < count && !best && length >= 3; k++)
        if (strstr(words[k], word)) /* "bert" for "bert_large" */
            best = words[k];
    return best;
}

static const struct option *option_long(const struct option *table, const char *name, size_t length)
{
    for (; table && table->name; table++)
        if (strlen(table->name) == length && memcmp(table->name, name, length) == 0)
            return table;
    return NULL;
}

static const struct option *option_letter(const struct option *table, char letter)
{
    for (; table && table->name; table++)
        if (table->letter && table->letter == letter)
            return table;
    return NULL;
}

static enum status unknown_option(const struct option *table, const char *word, struct error *err)
{
    const char *names[NAMES_MAX];
    int count = 0;
    for (; table && table->name && count < NAMES_MAX; table++)
        names[count++] = table->name;
    char name[WORD_MAX];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word + strspn(word, "-"));
    name[strcspn(name, "=")] = '\0';
    const char *nearest = word[1] == '-' ? nearest_word(name, names, count) : NULL;
    if (nearest)
        return FAIL(err, STATUS_FAILED, "unknown option %.100s, did you mean --%s?", word, nearest);
    return FAIL(err, STATUS_FAILED, "unknown option %.100s (-h lists all)", word);
}

struct range {
    double min, max;
};

static struct range range_of(enum option_kind kind)
{
    switch (kind) {
    case OPTION_COUNT:
        return (struct range){1, OPTION_COUNT_MAX};
    case OPTION_THREADS:
        return (struct range){1, OPTION_THREADS_MAX};
    case OPTION_PERCENT:
        return (struct range){1e-9, 1000};
    case OPTION_SHARE:
        return (struct range){1e-12, 1};
    case OPTION_AMOUNT:
        return (struct range){0, DBL_MAX};
    case OPTION_POSITIVE:
        return (struct range){DBL_TRUE_MIN, DBL_MAX};
    default:
        return (struct range){-DBL_MAX, DBL_MAX};
    }
}

static enum status check_range(const struct option *option, double value, const char *text,
                               struct error *err)
{
    struct range range = range_of(option->kind);
    if (value >= range.min && value <= range.max)
        return STATUS_OK;
    if (option->kind == OPTION_AMOUNT)
        return FAIL(err, STATUS_FAILED, "--%s needs a number that is not below 0, got \"%.100s\"",
                    option->name, text);
    if (option->kind == OPTION_POSITIVE)
        return FAIL(err, STATUS_FAILED, "--%s needs a number above 0, got \"%.100s\"", option->name,
                    text);
    return FAIL(err, STATUS_FAILED, "--%s needs a value from %.10g to %.10g, got \"%.100s\"",
                option->name, range.min, range.max, text);
}

static enum status store_int(const struct option *option, const char *text, void *field,
                             struct error *err)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        return FAIL(err, STATUS_FAILED, "--%s needs an integer, got \"%.100s\"", option->name,
                    text);
    TRY(check_range(option, (double)value, text, err));
    *(int64_t *)field = value;
    return STATUS_OK;
}

static enum status store_float(const struct option *option, const char *text, void *field,
                               struct error *err)
{
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || errno || value - value != 0) /* inf - inf and nan are not 0 */
        return FAIL(err, STATUS_FAILED, "--%s needs a number, got \"%.100s\"", option->name, text);
    TRY(check_range(option, value, text, err));
    *(double *)field = value;
    return STATUS_OK;
}

static enum status store_item(const struct option *option, const char *text, void *field,
                              struct error *err)
{
    struct option_list *list = field;
    if (list->count == OPTION_LIST_MAX)
        return FAIL(err, STATUS_FAILED, "--%s is given more than %d times", option->name,
                    OPTION_LIST_MAX);
    list->items[list->count++] = text;
    return STATUS_OK;
}

static enum status store(const struct option *option, const char *text, void *values,
                         struct error *err)
{
    void *field = (char *)values + option->offset;
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return STATUS_OK;
    case OPTION_INT:
    case OPTION_COUNT:
    case OPTION_THREADS:
        return store_int(option, text, field, err);
    case OPTION_SEED:
        ((struct option_seed *)field)->given = true;
        return store_int(option, text, &((struct option_seed *)field)->value, err);
    case OPTION_AMOUNT:
        ((struct option_amount *)field)->given = true;
        return store_float(option, text, &((struct option_amount *)field)->value, err);
    case OPTION_FLOAT:
    case OPTION_POSITIVE:
    case OPTION_PERCENT:
    case OPTION_SHARE:
        return store_float(option, text, field, err);
    case OPTION_TEXT:
        *(const char **)field = text;
        return STATUS_OK;
    case OPTION_LIST:
        return store_item(option, text, field, err);
    }
    return FAIL(err, STATUS_FAILED, "--%s has an unknown kind %d", option->name, option->kind);
}

/* One option word, and the word after it when that is its value. */
static enum status parse_option(struct parser *p, char *word, struct error *err)
{
    bool is_long = word[1] == '-';
    char *equals = strchr(word, '=');
    size_t length = is_long ? strcspn(word + 2, "=") : 1;
    const struct option *option =
        is_long ? option_long(p->table, word + 2, length) : option_letter(p->table, word[1]);
    if (!option || (!is_long && word[2] && word[2] != '='))
        return unknown_option(p->table, word, err);
    if (option->kind == OPTION_FLAG) {
        if (equals)
            return FAIL(err, STATUS_FAILED, "--%s takes no value, got \"%.100s\"", option->name,
                        equals + 1);
        return store(option, "", p->values, err);
    }
    if (equals)
        return store(option, equals + 1, p->values, err);
    if (p->at == p->argc)
        return FAIL(err, STATUS_FAILED, "--%s needs a value: --%s %s", option->name, option->name,
                    option->argument ? option->argument : "VALUE");
    return store(option, p->argv[p->at++], p->values, err);
}

/* "-" and negative numbers are words. */
static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] && !strchr("0123456789.", word[1]);
}

enum status options_parse(const struct option *table, int *argc, char **argv, void *values,
                          struct error *err)
{
    struct parser p = {.table = table, .argv = argv, .argc = *argc, .values = values};
    int words = 0;
    bool options = true;
    while (p.at < p.argc) {
        char *word = argv[p.at++];
        if (options && strcmp(word, "--") == 0)
            options = false;
        else if (options && is_option(word))
            TRY(parse_option(&p, word, err));
        else
            argv[words++] = word;
    }
    *argc = words;
    return STATUS_OK;
}

void options_usage(const struct option *table, char *text, size_t size)
{
    size_t used = 0;
    if (size)
        text[0] = '\0';
    for (; table && table->name && used < size; table++) {
        char left[48], letter[8] = "    ";
        if (table->letter)
            snprintf(letter, sizeof(letter), "-%c, ", table->letter);
        const char *argument = table->kind == OPTION_FLAG ? NULL : table->argument;
        snprintf(left, sizeof(left), "%s--%s%s%s", letter, table->name, argument ? " " : "",
                 argument ? argument : "");
        const char *again = table->kind == OPTION_LIST ? " (may be given again)" : "";
        int length = snprintf(text + used, size - used, "  %-26s %s%s\n", left, table->help, again);
        used += length > 0 ? (size_t)length : 0;
    }
}
