/* SPDX-License-Identifier: Apache-2.0
 *
 * The public files of the citation graph Cora (Sen et al., "Collective Classification in Network
 * Data", AI Magazine 2008), and of others in their form:
 *
 *   NAME.content  a line per paper: its name, 0 or 1 for every word of the dictionary, its subject
 *   NAME.cites    a line per citation: the paper that is cited, the paper that cites it
 *
 * Fields stand between tabs or spaces. Names are any text; the papers keep their order, subjects
 * are numbered in the order of their names. Links count once whichever way and however often they
 * are given, and a paper that cites itself adds nothing. */
#ifndef WORKLOADS_DATA_CORA_H
#define WORKLOADS_DATA_CORA_H

#include "base/error.h"
#include "workloads/lib/citations.h"

struct cora {
    struct citations_size size;
    struct csr words, adjacency; /* normalised as citations_make does */
    int64_t *subjects;           /* [papers] */
    const char **names;          /* [classes] of the subjects */
};

/* The text of a file, with the name that errors call it by. */
struct cora_text {
    const char *name;
    const char *data;
    size_t size;
};

enum status cora_parse(struct arena *arena, const struct cora_text *content,
                       const struct cora_text *cites, struct cora *out, struct error *err);

/* FOLDER/NAME.content and FOLDER/NAME.cites. */
enum status cora_load(struct arena *arena, const char *folder, const char *name, struct cora *out,
                      struct error *err);

#endif
