/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of damage_model() (tests/lib/damage.h): a model is taken apart by the definition of ONNX,
 * changed in one way, and put together again. All of it lies in one arena, so that a part may stand
 * in several places.
 *
 * damage_model.c: drawing parts, names and numbers. damage_parts.c: tensors, shapes, attributes.
 * damage_nodes.c: nodes, and nests of functions and branches. */
#ifndef TESTS_LIB_DAMAGE_MODEL_H
#define TESTS_LIB_DAMAGE_MODEL_H

#include <stdbool.h>

#include "base/arena.h"
#include "onnx.pb-c.h"
#include "tests/lib/damage.h"

enum { GRAPHS_MAX = 64, BODIES_MAX = 128, TRIES = 10 };

/* The nodes of a graph or of a function. */
struct body {
    size_t *count;
    Onnx__NodeProto ***nodes;
};

struct model {
    struct arena arena;
    Onnx__ModelProto *proto;
    const char *path; /* of the sound file */
    struct draws *draws;
    Onnx__GraphProto *graphs[GRAPHS_MAX]; /* the first is the model's */
    struct body bodies[BODIES_MAX];
    uint32_t graph_count, body_count;
};

/* [0, count); 0 of nothing. */
uint32_t below(struct model *m, size_t count);

/* Parts that there are; NULL where there is none, but for the graph. A body has nodes. */
struct body *any_body(struct model *m);
Onnx__NodeProto *any_node(struct model *m);
Onnx__AttributeProto *any_attribute(struct model *m);
Onnx__GraphProto *any_graph(struct model *m);
Onnx__TensorProto *any_tensor(struct model *m);
Onnx__ValueInfoProto *any_port(struct model *m);

/* A name that stands somewhere in the model; at times one that does not. */
char *any_name(struct model *m);
char *strange_text(struct model *m);
float strange_float(struct model *m);
void change_ints(struct model *m, int64_t **list, size_t *count);
/* A copy of an array with room for one more. */
void *longer(struct model *m, const void *array, size_t count, size_t item_bytes);
/* For protobuf-c: from the arena. */
ProtobufCAllocator model_memory(struct model *m);

/* Inputs that are no f32 become constants with the contents of the file's own test: what they
 * decide, such as shapes, is then decided by them. */
void fix_whole_numbers(struct model *m);

/* Changes; false: there is nothing of the kind. */
bool change_tensor(struct model *m);
bool fix_input(struct model *m); /* becomes a constant with odd contents */
bool change_port(struct model *m);
bool change_attribute(struct model *m);
bool add_attribute(struct model *m);
bool rewire(struct model *m);
bool change_operator(struct model *m);
bool shuffle(struct model *m);
bool build_functions(struct model *m);
bool build_branches(struct model *m);

#endif
