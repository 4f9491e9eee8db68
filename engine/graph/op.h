/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator says *what* is computed: shapes, cost, a plain reference, its test cases. *How* it is
 * computed fast is said by kernels (engine/graph/kernel.h). One file per operator in engine/ops/,
 * named after it in snake case; the smallest example is engine/ops/identity.c.
 *
 *   infer      required  fills dtype and shape of every output from the inputs
 *   cost       optional  absent: moves data only (no FLOPs); bytes are counted by the graph
 *   reference  required  computes the outputs; floats are double, everything else is int64_t
 *   gradient   adds nodes that compute the inputs' gradients, of those of the outputs; or
 *              no_gradient says why there is none. A function that is not smooth has one all the
 *              same, where learning makes use of it: ReLU, a maximum
 *   cases      required  at least one; tests run each through every kernel that accepts it
 */
#ifndef ENGINE_GRAPH_OP_H
#define ENGINE_GRAPH_OP_H

#include "base/error.h"
#include "base/registry.h"
#include "base/system/pool.h"
#include "engine/graph/graph.h"
#include "engine/graph/ref_tensor.h"
#include "engine/graph/tensor.h"

/* ---- shape inference ---- */

struct infer {
    const struct node *node;
    const struct value *const *in; /* NULL: absent */
    struct value *const *out;      /* NULL: not wanted; set dtype and shape */
    int in_count, out_count;
};

/* Contents of a 1-D (or scalar) integer input that is known now; UNSUPPORTED when it is not. */
enum status infer_ints(const struct infer *c, int input, int64_t *values, int max, int *count,
                       struct error *err);
/* Contents of a float or integer input that is known now, as doubles. */
enum status infer_floats(const struct infer *c, int input, double *values, int max, int *count,
                         struct error *err);
/* Whether input exists and is present. */
bool infer_has(const struct infer *c, int input);
/* Sets an output if it is wanted. */
void infer_set(const struct infer *c, int output, enum dtype dtype, const struct shape *shape);

/* Shape rules shared by many operators. */
enum status infer_same(const struct infer *c, struct error *err);      /* out 0 = in 0 */
enum status infer_broadcast(const struct infer *c, struct error *err); /* all inputs, in 0's type */
enum status infer_compare(const struct infer *c, struct error *err);   /* broadcast, bool result */

/* ---- cost ---- */

/* What a node costs by the stated convention (docs/method.md): FMA = 2, elementwise once per
 * output element with a weight per operator; transcendental calls are counted apart as well. */
struct cost {
    double macs;            /* multiply-accumulates of matrix products and convolutions */
    double elementwise;     /* other FLOPs */
    double transcendentals; /* calls of exp, log, tanh, erf, sqrt, division ... */
};

/* ---- reference ---- */

struct ref_call {
    const struct node *node;
    const struct ref_tensor *const *in; /* NULL: absent */
    struct ref_tensor *const *out;      /* NULL: not wanted; zeroed, shape from infer */
    int in_count, out_count;            /* the operator's own inputs, without posts */
    struct pool *pool;                  /* may be NULL */
};

/* ---- test cases ---- */

/* Inputs are written "f32[2,3] i64[2]=0,1 - f32[4]{0.5:2}": type and shape, then either literal
 * contents (row-major, a single literal repeats), or {low:high} for uniform random ones (default
 * {-1:1}; integers {0:10}). "-" is an absent input. Inputs with literal contents are constants of
 * the graph, the others are run-time inputs; "f32[4,3]!" makes a random input a constant weight.
 * Attributes: "axis=1 pads=[0,1] mode=\"linear\" alpha=0.5" (a dot makes it a float). */
struct op_case {
    const char *name;
    const char *inputs;
    const char *attrs; /* may be NULL */
    int outputs;       /* wanted outputs; 0 means 1 */
    double tolerance;  /* 0: the operator's */
};

/* How an operator bears channels-last memory. */
enum layout_rule {
    LAYOUT_RULE_PLAIN = 0,     /* inputs and outputs are plain */
    LAYOUT_RULE_ANY,           /* elementwise: any layout, the same for all; broadcast by strides */
    LAYOUT_RULE_AXIS,          /* works on logical axes by strides: any one layout, kept */
    LAYOUT_RULE_CHANNELS_LAST, /* inputs and output 0 want NHWC (conv, pooling, batch norm ...) */
    LAYOUT_RULE_CHANNELS_READ, /* inputs want NHWC, outputs are plain: gradients of weights */
};

/* What becomes of an operator in a graph of 16-bit floats (engine/ops/family/narrow.h). */
enum narrow_class {
    NARROW_NEVER = 0, /* decisions, coordinates, indices, losses; and what has no rule yet */
    NARROW_MOVE,      /* moves elements: rounds nothing, so it does as its inputs do */
    NARROW_MATH,      /* elementwise, reductions, pools, norms: in f32 if only f32 reads it */
    NARROW_WORK,      /* products, convolutions, recurrences, attention */
};

/* What an operator reads of its input 0. */
enum op_reads {
    READS_ALL = 0,
    READS_WHAT_IT_WRITES, /* picks elements by position: as many as its result has */
    READS_ROWS,           /* a row for each index in input 1; of any number: of pairs of them */
    READS_SHAPE,          /* no contents, of any input */
    READS_CHANGED_ROWS,   /* of states, one per result, those rows that it changes in place */
    READS_REPLACED_PART,  /* all; where its result follows a state: nothing of that one */
    READS_EXPERTS,        /* of input 1, [E, ...], what the tokens' choices, `chosen` each, reach */
};

/* How the elements of input 1 point into input 0. */
enum index_rule {
    INDICES_NONE = 0,
    INDICES_FROM_START, /* along one axis, never negative */
    INDICES_EITHER_WAY, /* along one axis; negative: from its end */
    INDICES_ROWS,       /* each row of input 1 along the first axes, either way */
};

/* A list that older ONNX files hold in an attribute, newer ones in an input. */
struct attr_input {
    const char *attr; /* NULL ends the list */
    int input, since; /* the opset that moved it */
};

/* ---- gradients ---- */

/* The loss is some scalar that the graph computes of the node's results. What a rule adds to the
 * graph may move g->nodes and g->values: keep indices, not pointers. */
struct gradient_call {
    struct graph *g;
    int node;           /* its index */
    const int *dy;      /* per output: the gradient of the loss by it; NONE: it is zero */
    const bool *wanted; /* per input: whether its gradient is asked for */
    int *dx;            /* per input: to be set where wanted, of the input's shape; NONE: zero */
};

/* An operator with an update rule is an optimiser, and updates any number of weights at once. Its
 * inputs are the learning rate (f32 scalar), the number of this step (i64 scalar; 0: none is made),
 * what all gradients are to be multiplied by (f32 scalar, or absent: 1), and then for each weight:
 * it, its gradient, and each of its slots. Its outputs are for each weight what comes after it and
 * after each of its slots. */
enum { UPDATE_PARAMETERS = 8 };
struct update_step; /* engine/ops/family/update.h */
struct update_parameter {
    const char *name; /* an attribute */
    double fallback;
};
struct update_rule {
    const char *name;    /* "adam"; NULL: it sums gradients, and no recipe names it */
    int slots;           /* states beside each weight, of its shape: moments */
    bool takes_norms;    /* of whole weights and gradients: parts of them cannot be updated alone */
    const char *initial; /* the attribute that says what the first slot starts with; NULL: 0 */
    /* The first one is `decay`; name NULL ends. */
    struct update_parameter parameters[UPDATE_PARAMETERS];
    /* Optional: what follows from them and from the number of the step. */
    void (*begin)(struct update_step *s);
};
enum { UPDATE_RATE, UPDATE_STEP, UPDATE_SCALE, UPDATE_WEIGHTS };

struct move;
struct op_args;
struct chain;

struct op {
    const char *name;           /* ONNX name: "LayerNormalization" */
    const char *domain;         /* NULL: ONNX; "ridge": ours */
    int inputs_min, inputs_max; /* op_inputs_max; inputs_max 0: inputs_min; -1: any number */
    int outputs_max;            /* 0: there is one output; -1: any number from one on */
    const char *const *attrs;   /* names it understands, NULL-terminated; NULL: none */
    /* Its value on floats: a function of x, whose parameters p and q are the first attributes with
     * these defaults, or of all inputs from the left. FN_COPY: none, or what .expression says. */
    enum function function;
    double defaults[2];
    unsigned const_inputs; /* bit i: the contents of input i decide a shape */
    unsigned int_inputs;   /* bit i: input i holds indices or flags: never floats */
    enum layout_rule layout;
    unsigned plain_inputs; /* bit i: input i is plain whatever the rule says: weights */
    enum op_reads reads;
    unsigned row_inputs;      /* bit i: of input i, too, those rows alone are read: READS_ROWS */
    bool moves_in_passing;    /* puts elements elsewhere, which a neighbour's kernel can do while it
                                 reads or writes them anyway; so can an alias */
    bool reorders;            /* output 0 shows all elements of input 0 in another order */
    bool per_element;         /* can be done where its operand is made, as elementwise work can */
    unsigned buffers;         /* bit i: input i is a statistic that is kept beside the weights */
    unsigned packed_inputs;   /* bit i: input i holds numbers of attribute `bits` (4) in bytes */
    enum narrow_class narrow; /* NARROW_NEVER where .move, .function or .expression says it */
    unsigned narrow_inputs;   /* bit i: input i becomes narrow; 0: all that do not decide a shape */
    unsigned exact_inputs;    /* bit i: input i is a choice between results of products, which keep
                                 32 bits, and so does all from there on to the choice */
    int narrow_roundings; /* how often libraries round on the way through; 0: once, the result */
    enum index_rule indices;
    bool packs;       /* its kernels keep fixed inputs in a form of their own */
    bool window;      /* slides one: pass normalise writes its attributes out */
    int window_input; /* the kernel's shape ends this input's; 0: attribute kernel_shape */
    int since;        /* the opset of ONNX that brought it; 0: 17 has it */
    const struct attr_input *attr_inputs; /* NULL: none */
    bool alias;        /* output 0 is input 0 with another shape: no work when plain */
    bool epilogue;     /* its kernels can apply node->posts: passes fuse into it */
    bool epilogue_act; /* only an activation that follows immediately */
    bool random;       /* not a function of its inputs: never folded */
    /* What draws numbers: makes a rank's node draw those that its samples would have in the batch
     * of all ranks, in which the samples of rank r follow those of r - 1. False: out of memory. */
    bool (*draw_as_rank)(struct graph *g, struct node *node, int ranks, int rank);
    bool between_ranks; /* made of the inputs of all ranks (engine/run/comm.h): output i of input i.
                           Outputs lie one after another in one piece of memory, and of AllReduce
                           inputs in their outputs' place where nobody else reads them; its kernel
                           brings the others there (engine/compile/units.c) */
    unsigned row_sets;  /* bit i: rows of output i are a set: near ties may change their order */
    enum status (*infer)(const struct infer *c, struct error *err);
    void (*cost)(const struct infer *c, struct cost *cost);
    enum status (*reference)(const struct ref_call *call, struct error *err);
    enum status (*gradient)(const struct gradient_call *call, struct error *err);
    const struct update_rule *update; /* NULL: it is no optimiser */
    const char *no_gradient;          /* why it has none: "its result is an index" */
    unsigned in_place; /* bit i: output i may lie in the memory of the state that it follows,
                          which is one of the inputs; bit 31: all from there on may. All
                          kernels of the operator bear it */
    /* Its value on floats as steps (engine/ops/lib/chain.h), where .function cannot say it. */
    enum status (*expression)(const struct node *node, const float *const *scalars,
                              struct chain *chain, struct error *err);
    double tolerance; /* norm-wise relative error that a f32 kernel may have; 0: 1e-5 */
    const struct op_case *cases;
    int case_count;
    /* Data-dependent sizes: outputs are padded with zeros to their maximum, and one output more
     * than ONNX has (its index; 0: none) is an i64 scalar that says how many entries are real. */
    int count_output;
    /* Axis of `output` along which that many entries are real; -1: the output is never padded. */
    int (*count_axis)(const struct infer *c, int output);
    /* The operator only moves elements: where to. Copy kernels and reference_move read this.
     * One move per input where inputs_max is -1 (Concat), else one per output. */
    enum status (*move)(const struct op_args *args, int part, struct move *move, struct error *err);
};

#define OP_CASES(array) .cases = (array), .case_count = ARRAY_COUNT(array)

static inline int op_inputs_max(const struct op *op)
{
    return op->inputs_max ? op->inputs_max : op->inputs_min;
}

static inline bool op_is_expression(const struct op *op)
{
    return op->function || op->expression;
}

/* The parameters p and q of the operator's function. */
void node_parameters(const struct node *node, double *parameters);

const struct op *op_find(const char *name, const char *domain); /* domain NULL: ONNX */
/* ONNX's, or where it has none of the name that of another domain. */
const struct op *op_named(const char *name);
int op_count(void);
const struct op *op_at(int index); /* alphabetical */

#endif
