/* SPDX-License-Identifier: Apache-2.0
 *
 * Shell completion, and the words that it offers where a command line says RUN, POINT, PLOT or NAME
 * (completion_words.c). Most words are known when completion is installed; those of a database are
 * looked up when they are needed.
 */
#ifndef HARNESS_CLI_COMPLETION_H
#define HARNESS_CLI_COMPLETION_H

#include <stdio.h>

#include "base/error.h"
#include "base/text/options.h"
#include "harness/suite/suite.h"

struct word_kind {
    const char *name;  /* "runs"; in `ridge help --words runs` */
    const char *usage; /* "RUN": what a usage says where such a word stands; NULL: none does */
    const char *sql;   /* of words in a database; NULL: they are built in */
    enum status (*print)(FILE *stream, struct error *err);
    enum suite_key_id key; /* neither of both: the choices of this key of a suite */
};

/* The script for a shell: bash, zsh or fish. */
enum status completion_print(const char *shell, FILE *stream, struct error *err);

int word_kind_count(void);
const struct word_kind *word_kind_at(int index);
/* A kind by name; the message names the nearest. */
enum status word_kind_find(const char *name, const struct word_kind **kind, struct error *err);
/* One word per line; db is looked into for words of a database only. */
enum status word_kind_print(const struct word_kind *kind, const char *db, FILE *stream,
                            struct error *err);
/* What the value of an option may be, or NULL: a number, a file, free text. */
const struct word_kind *word_kind_of_option(const struct option *option);

#endif
