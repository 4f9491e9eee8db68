/* SPDX-License-Identifier: Apache-2.0
 *
 * workloads/data: data sets that lie in files, read as the samples that a workload learns from.
 *
 * A format is a file of workloads/data/formats/; the smallest is mnist.c. Which workloads it serves
 * follows from the inputs of their training graphs: a format says which it fills, and open refuses
 * a graph that lacks them or gives them another type or shape.
 *
 * Samples are numbered from 0 on without end: every pass over the data set is an epoch, shuffled
 * by the seed and the number of the epoch. Sample k is the same in whatever batch it is, and
 * whoever reads it. Those that are held out are numbered once, in the order of the files. */
#ifndef WORKLOADS_DATA_DATA_H
#define WORKLOADS_DATA_DATA_H

#include "base/arena.h"
#include "base/registry.h"
#include "base/system/file.h"
#include "workloads/training.h"

enum { DATA_FILES = 16, DATA_MARKS = 8 };

/* A file of a data set in memory. */
struct data_text {
    const char *name; /* with its path, for messages */
    const void *data;
    size_t size;
};

/* Capitals of text. */
enum letter_case {
    LETTERS_AS_VOCABULARY, /* count where the words that are given have any */
    LETTERS_KEPT,
    LETTERS_LOWERED,
};

/* Where a data set lies: a folder, or, for tests, files in memory. */
struct data_source {
    struct arena arena;  /* for what a format keeps */
    const char *folder;  /* NULL: in memory */
    const char *file[2]; /* of the folder, that were named; NULL: the format's usual names */
    enum letter_case letters;
    const struct data_text *texts;
    int text_count;
    struct file files[DATA_FILES];
    int file_count;
};

bool data_has(const struct data_source *source, const char *name);
/* Maps a file until the source is closed. */
enum status data_map(struct data_source *source, const char *name, struct data_text *text,
                     struct error *err);

enum { DATA_LEARNT, DATA_HELD_OUT, DATA_PARTS };

struct data_set {
    const struct data_format *format;
    struct data_source source;
    int64_t count[DATA_PARTS]; /* samples of one epoch; those that are held out */
    const struct quality
        *quality;           /* how the held-out ones are judged; NULL: as the workload says */
    void *state;            /* the format's, in source.arena */
    int64_t dropped;        /* records of the files that are no samples */
    int64_t words, unknown; /* of text: all of them, and those that are not in the vocabulary */
    double padding;         /* of text to learn from: share of a sample's places without a word */
    uint64_t vocabulary;    /* hash of the one that was given; 0: none was */
};

/* Rows of a batch that are to be filled. */
struct data_rows {
    const struct batch *batch;
    int64_t first, count;
    const int64_t *record; /* per row: which sample of its part, from 0 */
    int64_t bytes;         /* what the format read of files for them: it adds to this */
};

struct data_format {
    const char *name;
    const char *summary;           /* one line: which files */
    const char *marks[DATA_MARKS]; /* a folder with one of these files is of this format */
    const char *inside[4];         /* folders in which they lie, too: "MNIST/raw" */
    const char *ending;            /* a file that is named and ends in this is of this format */
    bool pairs;                    /* two files may be named, whose lines belong together */
    /* Where names of files do not tell. */
    bool (*recognises)(const char *folder);
    /* Parameters of the workload that make it read the folder itself: no samples are read. The
     * hooks below are then absent. */
    enum status (*parameters)(const char *folder, char *text, size_t size, struct error *err);
    /* Fills count and state. UNSUPPORTED where the graph lacks an input. */
    enum status (*open)(struct data_set *set, const struct graph *graph, struct error *err);
    /* By any number of threads at a time. */
    enum status (*read)(const struct data_set *set, struct data_rows *rows, struct error *err);
};

int data_format_count(void);
const struct data_format *data_format_at(int index);

/* What "PATH", "PATH,PATH" of two files of one folder, or "FORMAT:" and either, names. */
struct data_place {
    const struct data_format *format;
    char folder[512];
    char file[2][128]; /* that was named; "": the folder was, or a single file */
    enum letter_case letters;
};
enum status data_find(const char *text, struct data_place *place, struct error *err);

/* Opens a place, or files in memory, for a graph of training. Close it in any case. */
enum status data_open(const struct data_place *place, const struct graph *graph,
                      struct data_set *set, struct error *err);
enum status data_open_texts(const struct data_format *format, const struct data_text *texts,
                            int count, const struct graph *graph, struct data_set *set,
                            struct error *err);
void data_close(struct data_set *set);

/* Fills rows [first, first + count) of the batch; adds to *bytes what was read for that. */
enum status data_fill(const struct data_set *set, const struct batch *batch, int64_t first,
                      int64_t count, int64_t *bytes, struct error *err);

/* ---- for formats ---- */

/* Which record of `count` sample `number` of the endless order is. */
int64_t data_order(uint64_t seed, int64_t count, int64_t number);
/* The graph's input of that name, type and rank; UNSUPPORTED, NULL: it has none such. */
enum status data_input(const struct data_set *set, const struct graph *graph, const char *name,
                       enum dtype dtype, int rank, const struct value **value, struct error *err);
/* Ids of the input must be below this many. */
int64_t data_ids(const struct value *value);
/* Splits records where a data set has no test part of its own: every tenth, by a hash. index[p]
 * lists the records of part p. */
struct data_split {
    int64_t *index[DATA_PARTS];
    int64_t count[DATA_PARTS];
};
enum status data_split(struct arena *arena, int64_t records, struct data_split *split,
                       struct error *err);

#endif
