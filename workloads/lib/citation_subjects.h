/* SPDX-License-Identifier: Apache-2.0
 *
 * Subjects of papers whose citation graph is made up (workloads/lib/citations.h), so that there is
 * something to be learnt. Each of the most common words belongs to a hidden subject. A paper has of
 * each subject the share of its words, smoothed twice over citations as GCN smooths; the subject
 * whose share is farthest above the mean of all papers is the paper's. Few words decide, since
 * those that stand in a handful of papers could not be learnt from half of them. */
#ifndef WORKLOADS_LIB_CITATION_SUBJECTS_H
#define WORKLOADS_LIB_CITATION_SUBJECTS_H

#include "engine/graph/graph.h"

/* Of a graph with the constants "words.offsets", "words.columns" and "adjacency.*". Nothing is
 * written where memory is short. */
void citation_subjects(const struct graph *g, int64_t papers, int64_t classes, int64_t *subject);

#endif
