/* SPDX-License-Identifier: Apache-2.0
 *
 * Citation graphs as GCN reads them: papers, the words that each contains, who cites whom. Made
 * from nothing with the statistics of Cora: as many papers, words, entries and links, with few
 * papers that are cited by very many (preferential attachment gives Cora's largest degree within a
 * few links), and words as frequent as Zipf's law has them. */
#ifndef WORKLOADS_LIB_CITATIONS_H
#define WORKLOADS_LIB_CITATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* Compressed sparse rows; columns ascend within a row. */
struct csr {
    int32_t rows, columns, entries;
    int32_t *offsets, *column; /* [rows + 1], [entries] */
    float *value;              /* [entries] */
};

struct citations_size {
    int32_t papers, words, classes;
    int32_t word_entries; /* how often any word is in any paper */
    int32_t links;        /* undirected, between different papers */
};

/* Values of both: rows of words add up to 1; links become D^-1/2 (A + I) D^-1/2. */
void citations_normalise(struct csr *words, struct csr *adjacency);

/* Row-normalised words, and D^-1/2 (A + I) D^-1/2 of the links. False: out of memory, or sizes that
 * cannot be. */
bool citations_make(struct arena *arena, const struct citations_size *size, struct csr *words,
                    struct csr *adjacency);

#endif
