/* SPDX-License-Identifier: Apache-2.0
 *
 * The room engine/graph/ says what is to be computed: values, nodes, shapes and tensors, what an
 * operator (op.h) and a kernel (kernel.h) are, and what a graph costs (cost.h). Nothing in it runs.
 *
 * A graph: values (tensors) and the nodes that compute them, in execution order.
 *
 * Every value has one producer (static single assignment), a static shape and ONNX semantics, so
 * importing and exporting ONNX is renaming. Values and nodes are named by their index; NONE stands
 * for an absent optional input.
 *
 * Life cycle: graph_new; graph_input / graph_param / graph_const / graph_node ... ; graph_output;
 * graph_check; read only from then on. The first error sticks: later calls return NONE and
 * graph_check reports it, so that a model reads without an error test per line.
 */
#ifndef ENGINE_GRAPH_GRAPH_H
#define ENGINE_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/error.h"
#include "engine/graph/function.h"
#include "engine/graph/tensor.h"

enum { NONE = -1, POST_MAX = 4 };

struct op;
struct pool;
struct graph;

/* How the elements of an input or a parameter come about when no file gives them. */
enum fill_kind {
    FILL_NONE,    /* the caller gives the data */
    FILL_CONST,   /* a everywhere */
    FILL_UNIFORM, /* [a, b) */
    FILL_NORMAL,  /* mean a, deviation b */
    FILL_INDEX,   /* uniform integers in [a, b) */
    FILL_ZIPF,    /* integers in [a, b), Zipf with exponent 1.05, permuted */
    FILL_MASK,    /* rows of ones, then zeros: lengths uniform in [a, b] along the last axis */
    FILL_IMAGE,   /* smooth random fields plus noise, mean a, deviation b */
    FILL_NIBBLES, /* bytes whose halves are each uniform integers in [a, b) */
};

struct fill {
    enum fill_kind kind;
    double a, b;
    uint64_t seed; /* 0: derived from the value's name */
};

enum value_kind {
    VALUE_INPUT,  /* changes from run to run */
    VALUE_PARAM,  /* a weight: constant in inference, updated in training */
    VALUE_STATE,  /* outlives an execution, and each may change it: see struct state */
    VALUE_CONST,  /* constant always (shapes, tables) */
    VALUE_RESULT, /* computed by a node */
};

struct value {
    const char *name; /* unique in the graph */
    enum value_kind kind;
    enum dtype dtype;
    struct shape shape;
    int producer;     /* node; NONE for inputs, params, states and consts */
    int producer_out; /* which of its outputs */
    const void *data; /* row-major contents of a const or loaded param; NULL: made by fill */
    struct fill fill;
    bool data_owned; /* data was malloc'd for this graph: freed with it, or once packed */
    bool weight;     /* made as a param, whatever its kind is now */
    int count; /* value (i64 scalar) that tells how many rows along count_axis are real; NONE */
    int count_axis; /* outputs of data-dependent size are padded to their maximum */
};

/* A value that outlives an execution: a weight that is trained, a moment, a counter of steps. What
 * an execution finds is `before`, a value of kind VALUE_STATE among the graph's inputs; what the
 * next one will find is `after`, some result among its outputs. So a graph stays a function. An
 * executable keeps both in one place where the order of its steps allows. after NONE: it stays. */
struct state {
    int before, after;
};

/* What a node is there for. */
enum phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_COMMUNICATION, PHASE_UPDATE, PHASE_COUNT };

const char *phase_name(enum phase phase); /* "forward", "backward", "communication", "update" */

enum attr_kind {
    ATTR_INT,
    ATTR_FLOAT,
    ATTR_STRING,
    ATTR_INTS,
    ATTR_FLOATS,
    ATTR_STRINGS,
    ATTR_TENSOR,
    ATTR_GRAPH
};

struct attr {
    const char *name;
    enum attr_kind kind;
    int64_t i;
    double f;
    const char *s;
    int count; /* of ints, floats, strings */
    const int64_t *ints;
    const double *floats;
    const char *const *strings;
    struct desc desc; /* tensor: dtype and shape, plain */
    const void *data; /* tensor: contents */
    const struct graph *graph;
};

enum post_kind { POST_ACT, POST_ADD, POST_MUL };

/* One step of a fused epilogue, applied in order to the node's first output. */
struct post {
    enum post_kind kind;
    enum function act; /* POST_ACT */
    float a, b;        /* POST_ACT: its parameters p and q */
    int input;         /* POST_ADD, POST_MUL: index into node->inputs, broadcast to the output */
};

struct node {
    const struct op *op;
    const char *name; /* unique in the graph */
    int input_count, output_count;
    int *inputs;  /* values; NONE: absent. Operands of posts come after the operator's own */
    int *outputs; /* values; NONE: not wanted */
    int attr_count;
    const struct attr *attrs;
    int op_inputs; /* how many of inputs belong to the operator itself */
    int post_count;
    struct post posts[POST_MAX];
    enum phase phase;
    bool dead; /* removed by a pass */
};

struct graph {
    struct arena arena;
    const char *name;
    int64_t batch;    /* items that one execution takes; 0: the first input's first dimension */
    const char *note; /* what its maker says about it, for `ridge graph`; NULL: nothing */
    bool training; /* built to learn: dropout drops, batch normalisations use the batch's moments */
    struct value *values;
    struct node *nodes;
    int *inputs, *outputs; /* values, in the caller's order */
    struct state *states;
    enum phase phase; /* of the nodes that are added next */
    int value_count, node_count, input_count, output_count, state_count;
    size_t value_cap, node_cap, input_cap, output_cap, state_cap;
    int *name_table; /* value index + 1 by hash of its name */
    size_t name_cap;
    struct error err; /* the first error of the builder */
    bool failed;
    void *owned; /* e.g. a mapped ONNX file that values point into */
    void (*owned_free)(void *owned);
    const struct called *called; /* what graph_call said, the last one first */
};

struct graph *graph_new(const char *name);
void graph_free(struct graph *graph);

int graph_input(struct graph *g, const char *name, enum dtype dtype, struct shape shape,
                struct fill fill);
int graph_param(struct graph *g, const char *name, enum dtype dtype, struct shape shape,
                struct fill fill);
/* A state, which is an input as well. Its fill is what the first execution finds. */
int graph_state(struct graph *g, const char *name, enum dtype dtype, struct shape shape,
                struct fill fill);
/* Weight v becomes a state. */
void graph_make_state(struct graph *g, int v);
/* What the next execution finds in place of state `before`; becomes an output, after those that
 * are no states. A second call replaces the first: of a state that changes twice in an execution
 * the second change reads what the first one left. */
void graph_state_after(struct graph *g, int before, int after);
/* The state whose `before` is v; NONE. */
int graph_state_of(const struct graph *g, int v);
/* data is copied. name NULL: made up. */
int graph_const(struct graph *g, const char *name, enum dtype dtype, struct shape shape,
                const void *data);
int graph_const_f32(struct graph *g, float value);                    /* scalar */
int graph_const_i64(struct graph *g, int count, const int64_t *data); /* 1-D; count -1: scalar */

/* Adds a node, infers its outputs, returns its first output. name NULL: made from the op's name. */
int graph_node(struct graph *g, const char *op, const char *name, int input_count,
               const int *inputs, int attr_count, const struct attr *attrs);
/* The same with output_count outputs, whose values are written to outputs. The first status. */
enum status graph_node_many(struct graph *g, const char *op, const char *name, int input_count,
                            const int *inputs, int attr_count, const struct attr *attrs,
                            int output_count, int *outputs);
void graph_output(struct graph *g, int value);
/* Gives a value another name (kept unique). */
void graph_rename(struct graph *g, int value, const char *name);
/* For people and files: what a model calls an output whose name an input of it has already. */
void graph_call(struct graph *g, int value, const char *name);
/* That, or else the value's name. */
const char *graph_called(const struct graph *g, int value);

/* Wiring of models: graph_op(g, "Add", INPUTS(x, y), ATTRS(attr_int("axis", 1))). */
#define INPUTS(...)                                                                                \
    (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[])                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define ATTRS(...)                                                                                 \
    (int)(sizeof((struct attr[]){__VA_ARGS__}) / sizeof(struct attr)), (const struct attr[])       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define NO_ATTRS 0, NULL

struct attr attr_int(const char *name, int64_t value);
struct attr attr_float(const char *name, double value);
struct attr attr_string(const char *name, const char *value);
struct attr attr_ints(const char *name, int count, const int64_t *values);
#define attr_ints_of(name, ...)                                                                    \
    attr_ints(name, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                     \
              (int64_t[]){__VA_ARGS__})

const struct attr *node_attr(const struct node *node, const char *name);
int64_t node_int(const struct node *node, const char *name, int64_t fallback);
double node_float(const struct node *node, const char *name, double fallback);
const char *node_string(const struct node *node, const char *name, const char *fallback);
/* Copies up to max ints; returns how many the attribute has, 0 when it is absent. */
int node_ints(const struct node *node, const char *name, int64_t *values, int max);

/* The builder's first error so far. */
enum status graph_failed(const struct graph *g, struct error *err);
/* The builder's first error, or a broken invariant (order, names, shapes, dangling values). */
enum status graph_check(const struct graph *g, struct error *err);
/* A deep copy of the structure; contents of weights are shared and must outlive the copy. */
struct graph *graph_copy(const struct graph *g);
/* Removes dead nodes, and nodes whose outputs nobody uses; renumbers nodes, keeps values. Nodes
 * that exchange values with other ranks come as soon as what they need is there. */
void graph_compact(struct graph *g);
/* Gives a node an attribute, in the place of one with that name. False: out of memory. */
bool graph_set_attr(struct graph *g, struct node *node, struct attr attr);
/* Cuts value v off from what computes it; the caller says what it is from now on. */
void graph_cut(struct graph *g, int v);
/* Cut off, an input; fill is what it has when nothing is given. */
void graph_make_input(struct graph *g, int v, struct fill fill);
int graph_find_value(const struct graph *g, const char *name); /* NONE when there is none */
/* Which of the graph's inputs value v, or that of this name, is; NONE. */
int graph_input_index(const struct graph *g, int v);
int graph_input_named(const struct graph *g, const char *name);
int graph_uses(const struct graph *g, int value); /* how many inputs and graph outputs read it */
static inline bool value_is_fixed(const struct value *value)
{
    return value->kind == VALUE_PARAM || value->kind == VALUE_CONST;
}

enum { MATERIALISE_TILE = 1 << 14 };

size_t value_size(const struct value *value); /* bytes of its contents, row-major */
/* Row-major contents of an input, param or const, written to dst (value_size). */
void value_materialise(const struct value *value, void *dst);
/* With the threads of the pool, which may be NULL. */
void value_materialise_by(struct pool *pool, const struct value *value, void *dst);
/* Only those of one of its tiles: MATERIALISE_TILE elements, the last has fewer. */
void value_materialise_tile(const struct value *value, int64_t tile, void *dst);
int64_t value_tiles(const struct value *value);

#endif
