/* SPDX-License-Identifier: Apache-2.0
 *
 * The list that harness/machine/environment.c fills, and how its parts add to it. Most facts are
 * one line of one file: those are tables of struct fact_source. What cannot be kept for lack of
 * memory sets `failed`; nobody else has to look.
 */
#ifndef HARNESS_MACHINE_FACTS_H
#define HARNESS_MACHINE_FACTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "results/record.h"

struct facts {
    struct arena *arena;
    const char *root; /* in front of every path */
    struct fact *items;
    size_t capacity;
    int count;
    bool failed;
};

enum fact_how {
    FACT_LINE,   /* the first line of the file */
    FACT_CHOICE, /* its word in brackets */
    FACT_KEY,    /* the value of the line that begins with `file_key` */
};

struct fact_source {
    const char *category, *key, *path;
    enum fact_how how;
    const char *file_key, *unit;
    enum fact_class class;
    bool optional; /* no fact where the file is absent: it belongs to another kind of machine */
};

void facts_read(struct facts *facts, const struct fact_source *sources, int count);
/* Copies all text. value "" and a status other than FACT_OK: it could not be read. */
void facts_add(struct facts *facts, struct fact fact);
/* A fact of status FACT_OK. */
__attribute__((format(printf, 3, 4))) void facts_text(struct facts *facts, struct fact fact,
                                                      const char *format, ...);
void facts_number(struct facts *facts, struct fact fact, double value);

/* The parts; each adds facts of the categories that it names. */
void facts_machine(struct facts *facts);  /* identity cpu mitigation memory */
void facts_topology(struct facts *facts); /* topology */
void facts_system(struct facts *facts);   /* kernel limit container sensor permission */
void facts_storage(struct facts *facts, const char *folder); /* storage */
void facts_process(struct facts *facts);                     /* process variable library */
void facts_gpu(struct facts *facts);                         /* gpu */

#endif
