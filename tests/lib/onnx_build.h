/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX files made by hand, byte by byte, so that tests can also make what no exporter would.
 *
 *     struct builder b = {0};
 *     build_file(&b, "in x f32[N,3]; const w f32[3]=2,3,4; y = Add(x w); out y f32[N,3]");
 *     ...                                  b.bytes, b.size
 *     build_release(&b);
 *
 * A graph is statements between ";":
 *     in NAME TYPE[DIMS]             type: f32, u8, i32, i64 or bool; a dimension may be a word
 *     out NAME TYPE[DIMS]
 *     const NAME TYPE[DIMS]=1,2,3    the last number fills the rest
 *     OUTPUTS = OP(INPUTS) "NAME" ATTRIBUTE=VALUE ...
 *         names are separated by blanks, "-" is an absent one; DOMAIN.OP is a function's; the
 * node's name may be left out; a value is 1, 1.0, [1,2] or {GRAPH}
 *
 * What no text says is built piece by piece, after build_model and before build_end.
 */
#ifndef TESTS_LIB_ONNX_BUILD_H
#define TESTS_LIB_ONNX_BUILD_H

#include <stddef.h>
#include <stdint.h>

enum { BUILD_DEPTH_MAX = 4096 };

struct builder {
    uint8_t *bytes;
    size_t size, cap;
    size_t open[BUILD_DEPTH_MAX]; /* where the lengths of open messages stand */
    int depth;
};

/* ---- protobuf ---- */
void build_open(struct builder *b, uint32_t field); /* a message inside the current one */
void build_close(struct builder *b);
void build_number(struct builder *b, uint32_t field, int64_t value);
void build_float(struct builder *b, uint32_t field, float value);
void build_bytes(struct builder *b, uint32_t field, const void *data, size_t size);
void build_text(struct builder *b, uint32_t field, const char *text);

/* ---- a model ---- */
void build_file(struct builder *b, const char *graph); /* all of it, for operator set 17 */
void build_model(struct builder *b, int64_t opset);    /* opens the graph */
void build_graph(struct builder *b, const char *text);
void build_end(struct builder *b); /* closes all */
void build_release(struct builder *b);
void build_input(struct builder *b, const char *name, int elem_type, const char *dims);
void build_output(struct builder *b, const char *name, int elem_type, const char *dims);
void build_tensor(struct builder *b, const char *name, int elem_type, const char *dims,
                  const void *raw, size_t size);

/* Leaves the node open for attributes; build_close ends it. */
void build_node(struct builder *b, const char *op, const char *inputs, const char *outputs);
void build_attr_int(struct builder *b, const char *name, int64_t value);
void build_attr_ints(struct builder *b, const char *name, const char *list); /* "1,2,3" */
void build_attr_float(struct builder *b, const char *name, float value);
void build_attr_graph(struct builder *b, const char *name); /* opens it: close twice */
/* An attribute of a function's node that takes the value of the call's. */
void build_attr_ref(struct builder *b, const char *name, const char *of_call, int type);

/* ---- files that must be refused, and not crash ---- */
int hostile_count(void);
const char *hostile_name(int index);
void hostile_build(int index, struct builder *b);

#endif
