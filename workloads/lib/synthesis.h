/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks made to measure: a chain of convolutions at halving resolutions, whose channels are
 * searched until work and memory are what is wanted. The form is that of AI Matrix's synthetic nets
 * (arXiv 1812.00886): within a resolution, kernels descend. */
#ifndef WORKLOADS_LIB_SYNTHESIS_H
#define WORKLOADS_LIB_SYNTHESIS_H

#include <stdint.h>

enum { SYNTHESIS_GROUPS = 6, SYNTHESIS_KERNELS = 3, SYNTHESIS_DEPTH = 3 };
enum { SYNTHESIS_GENES = SYNTHESIS_GROUPS * SYNTHESIS_KERNELS * SYNTHESIS_DEPTH };

extern const int synthesis_kernels[SYNTHESIS_KERNELS]; /* 5, 3, 1 */

struct synthesis_statistics {
    double intensity;                 /* FLOP per byte of the footprint */
    double footprint;                 /* bytes: weights, and each activation once */
    double shares[SYNTHESIS_KERNELS]; /* of the multiply-adds, by kernel; sum 1 */
};

/* Output channels of each layer, 0: no such layer. Gene ((group, kernel), depth). */
struct synthesis_net {
    int channels[SYNTHESIS_GENES];
};

struct synthesis_frame {
    int64_t batch, image, classes; /* image: its side */
};

void synthesis_measure(const struct synthesis_net *net, const struct synthesis_frame *frame,
                       struct synthesis_statistics *statistics);
/* The best net that the search finds; the same for the same arguments. */
void synthesis_search(const struct synthesis_frame *frame, const struct synthesis_statistics *want,
                      struct synthesis_net *net);

#endif
