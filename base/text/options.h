/* SPDX-License-Identifier: Apache-2.0
 *
 * One table per command gives parsing, usage text, the man page and shell completion.
 * "--name VALUE", "--name=VALUE", "-n VALUE"; "--" ends options. Words that are no options stay.
 */
#ifndef BASE_TEXT_OPTIONS_H
#define BASE_TEXT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Ranges of numbers, which suite files share. */
#define OPTION_COUNT_MAX   1e9
#define OPTION_THREADS_MAX 65536

enum option_kind {
    OPTION_FLAG,
    OPTION_INT,      /* any integer of 64 bits; commands take one of the next three */
    OPTION_SEED,     /* the same, into a struct option_seed: 0 and nothing differ */
    OPTION_COUNT,    /* integer from 1 to OPTION_COUNT_MAX */
    OPTION_THREADS,  /* integer from 1 to OPTION_THREADS_MAX */
    OPTION_FLOAT,    /* any finite number; commands take one of the next four */
    OPTION_POSITIVE, /* number above 0, so that 0 can stand for what was not given */
    OPTION_AMOUNT,   /* number from 0 on, into a struct option_amount: 0 and nothing differ */
    OPTION_PERCENT,  /* number from 1e-9 to 1000 */
    OPTION_SHARE,    /* number from 1e-12 to 1 */
    OPTION_TEXT,
    OPTION_LIST
};

enum { OPTION_LIST_MAX = 32 };

struct option_list {
    const char *items[OPTION_LIST_MAX];
    int count;
};

struct option_seed {
    int64_t value;
    bool given;
};

struct option_amount {
    double value;
    bool given;
};

struct option {
    const char *name; /* long, without dashes; NULL ends the table */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset; /* into the command's struct: bool, int64_t, double, const char * or one of the
                      above */
    const char *argument; /* "N", "FILE"; NULL for flags */
    const char *help;
};

/* Fills *values; moves the other words to the front of argv and counts them. An unknown option or
 * a bad value fails with the nearest valid name. */
enum status options_parse(const struct option *table, int *argc, char **argv, void *values,
                          struct error *err);
/* Usage lines of the table into text, as `ridge CMD -h` prints them. */
void options_usage(const struct option *table, char *text, size_t size);
/* The nearest of `count` words by edit distance, or NULL when none is near. */
const char *nearest_word(const char *word, const char *const *words, int count);

#endif
