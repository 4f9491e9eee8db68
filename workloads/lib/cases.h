/* SPDX-License-Identifier: Apache-2.0
 * Workloads that are one layer: the shapes that AI Matrix measures are numbered from 1. */
#ifndef WORKLOADS_LIB_CASES_H
#define WORKLOADS_LIB_CASES_H

#include "engine/graph/graph.h"
#include "workloads/workload.h"

/* Index of the case that the parameter `name` wants; -1, and an error in the graph: there is none.
 */
int case_index(struct graph *g, const struct workload_config *config, const char *name, int count);
/* An input of normally distributed numbers. */
int case_input(struct graph *g, const char *name, struct shape shape);
/* One of images [N, H, W, C], as TensorFlow and so AI Matrix has them, for operators that take
 * [N, C, H, W]; and their result as the output "y" again. Where kernels compute channels-last no
 * image is moved for that. */
int case_images(struct graph *g, int64_t batch, int64_t side, int64_t channels);
void case_images_output(struct graph *g, int y);

#endif
