/* SPDX-License-Identifier: Apache-2.0
 *
 * For the exporter: an operator of ridge written as several nodes of ONNX. Each part is a node with
 * one output, named after the result; the first error sticks and later parts do nothing. */
#ifndef WORKLOADS_ONNX_EXPORT_PARTS_H
#define WORKLOADS_ONNX_EXPORT_PARTS_H

#include "workloads/onnx/export/export.h"

struct parts {
    const struct form *form;
    int made;
    struct error *err;
    enum status status;
};

/* The name of the node's result. */
const char *part(struct parts *p, const char *op, int input_count, const char *const *inputs,
                 int attr_count, const struct attr *attrs);
/* The same with the name of output `output` of the form; does nothing when that is absent. */
void part_last(struct parts *p, int output, const char *op, int input_count,
               const char *const *inputs, int attr_count, const struct attr *attrs);
const char *part_const(struct parts *p, enum dtype dtype, const struct shape *shape,
                       const void *data);
const char *part_i64(struct parts *p, int64_t number);  /* scalar */
const char *part_list(struct parts *p, int64_t number); /* of one number */
const char *part_ints(struct parts *p, int count, const int64_t *numbers);
const char *part_f32(struct parts *p, double number); /* of one number */

/* Wiring: part(p, "Add", NAMES(a, b), NO_ATTRS). */
#define NAMES(...)                                                                                 \
    (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)), (const char *const[])     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* The results of a node with two (TopK: the elements, and where they came from). */
struct part_pair {
    const char *first, *second;
};
struct part_pair part_pair(struct parts *p, const char *op, int input_count,
                           const char *const *inputs, int attr_count, const struct attr *attrs);

enum status export_detection_output(const struct form *f, struct error *err);

enum status export_ctc_greedy_decoder(const struct form *f, struct error *err);
enum status export_connected_components(const struct form *f, struct error *err);
enum status export_merge_segments(const struct form *f, struct error *err);
enum status export_rms_normalization(const struct form *f, struct error *err);
enum status export_rotary_embedding(const struct form *f, struct error *err);
enum status export_tensor_scatter(const struct form *f, struct error *err);

#endif
