/* SPDX-License-Identifier: Apache-2.0
 *
 * What Pad does to each axis: elements are cut off first, what is left is then padded.
 */
#ifndef ENGINE_OPS_LIB_PAD_H
#define ENGINE_OPS_LIB_PAD_H

#include "engine/ops/lib/op_args.h"

enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP };

/* One axis: `size` elements from `first` of the input stand at `begin` of the output. */
struct pad_span {
    int64_t first, size, begin, total;
};

enum status pad_mode_of(const struct node *node, enum pad_mode *mode, struct error *err);
/* Of every axis of input 0. */
enum status pad_spans_of(const struct op_args *args, struct pad_span *spans, struct error *err);
/* Element of the kept span that stands at `at`, counted from the span's first one; not for
 * PAD_CONSTANT. */
int64_t pad_source(enum pad_mode mode, int64_t at, int64_t size);

#endif
