/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the importer, for its files:
 *   import.c     the model: inputs, initialisers, nodes in order, outputs
 *   scope.c      names of values, per graph, subgraph and function body
 *   node.c       one node: attributes, translation, adding, folding
 *   numbers.c    refuses sizes that no model has, before anything computes with them
 *   types.c      refuses element types that an operator does not take
 *   translate.c  what older operator sets meant
 *   control.c    If, Loop and Scan, inlined
 *   function.c   local functions, inlined
 *   counted.c    sizes that are known only at run time
 *   needed.c     which inputs' contents decide shapes
 *   attention.c  Attention, as ours or as several nodes; attention_mask.c: its masks
 *   fills.c      contents for inputs when nobody gives them
 */
#ifndef WORKLOADS_ONNX_IMPORT_IMPORT_H
#define WORKLOADS_ONNX_IMPORT_IMPORT_H

#include "engine/graph/op.h"
#include "workloads/onnx/onnx.h"
#include "workloads/onnx/open_dims.h"
#include "workloads/onnx/tensor.h"

enum {
    UNKNOWN_NAME = -2,   /* NONE is a value that is absent on purpose */
    INLINED_MAX = 20000, /* nodes that loops, branches and functions may become */
    UNROLLED_MAX = 2000, /* nodes of one loop: trip count times body */
    CALL_DEPTH_MAX = 64  /* functions and branches within each other */
};

enum { BIAS_KEYS = 12 };

/* What is added to scores of attention is often the same for all layers: it is made once. */
struct last_bias {
    bool known;
    int64_t key[BIAS_KEYS]; /* what it depends on */
    int value;
};

struct importer {
    struct graph *g;
    const Onnx__ModelProto *model;
    const struct onnx_import_options *options;
    const char *file; /* for messages */
    struct onnx_memory *memory;
    struct arena scratch; /* gone after the import */
    int inlined, depth;
    struct open_dims dims; /* of the inputs */
    bool batch_used;       /* some dimension took options->batch */
    struct last_bias bias;
};

/* Names to values; looks outward through parents (subgraphs see the graph around them). */
struct scope {
    const struct scope *parent;
    int64_t opset; /* of the ONNX domain */
    const char **names;
    int *values;
    size_t count, cap;
    /* Attributes of the function call whose body this is: what ref_attr_name refers to. */
    Onnx__AttributeProto *const *call_attrs;
    size_t call_attr_count;
};

/* A subscope sees its parent's names and shares its opset and call attributes. */
struct scope scope_inside(const struct scope *parent);
enum status scope_put(struct importer *im, struct scope *scope, const char *name, int value,
                      struct error *err);
/* The value, NONE when the name is empty or stands for nothing, UNKNOWN_NAME. */
int scope_find(const struct scope *scope, const char *name);
enum status scope_get(const struct scope *scope, const char *name, int *value, struct error *err);
/* The attribute of this name with references to the call resolved; NULL. */
const Onnx__AttributeProto *scope_attr(const struct scope *scope, const Onnx__NodeProto *node,
                                       const char *name);
const Onnx__AttributeProto *scope_resolve(const struct scope *scope,
                                          const Onnx__AttributeProto *attr);

/* A node on its way into the graph; what translate.c may change. Memory: importer.scratch. */
struct draft {
    const char *op;
    const char *name; /* of the node in the file, may be NULL */
    int64_t opset;
    const struct op *known; /* after lookup */
    int input_count, attr_count, output_count;
    int *inputs; /* with room for DRAFT_SLACK more */
    struct attr *attrs;
};

enum { DRAFT_SLACK = 8 };

struct attr *draft_attr(struct draft *d, const char *name); /* NULL: absent */
void draft_add_attr(struct draft *d, struct attr attr);
void draft_drop_attr(struct draft *d, const char *name);

/* ---- stages ---- */

enum status import_nodes(struct importer *im, struct scope *scope, size_t count,
                         Onnx__NodeProto *const *nodes, struct error *err);
enum status import_initializers(struct importer *im, struct scope *scope,
                                const Onnx__GraphProto *graph, struct error *err);
enum status import_tensor(struct importer *im, const char *name, const Onnx__TensorProto *tensor,
                          bool weight, int *value, struct error *err);
enum status import_attr(struct importer *im, const Onnx__AttributeProto *from, struct attr *attr,
                        struct error *err);

enum status translate_draft(struct importer *im, struct draft *d, struct error *err);
/* Of which kind an attribute is: no list where a string belongs. */
enum status check_attr_kind(const struct attr *attr, struct error *err);
enum status check_draft_types(const struct graph *g, const struct draft *d, struct error *err);
/* Attributes, and contents of inputs that decide shapes. */
enum status check_draft_numbers(const struct graph *g, const struct draft *d, struct error *err);

/* ONNX's Attention: values that no output of the node stands for are NONE. */
enum {
    ATTENTION_Y,
    ATTENTION_PRESENT_KEY,
    ATTENTION_PRESENT_VALUE,
    ATTENTION_SCORES,
    ATTENTION_OUTPUTS
};
enum status import_attention(struct importer *im, struct draft *d, const Onnx__NodeProto *node,
                             int *outputs, struct error *err);

/* Whether it is If, Loop or Scan; and inlining them. */
bool is_control(const Onnx__NodeProto *node);
enum status import_control(struct importer *im, struct scope *scope, const Onnx__NodeProto *node,
                           struct error *err);
const Onnx__FunctionProto *find_function(const struct importer *im, const Onnx__NodeProto *node);
enum status import_call(struct importer *im, struct scope *scope, const Onnx__NodeProto *node,
                        const Onnx__FunctionProto *function, struct error *err);

/* The ONNX opset among the imports of a model or function; 0 when it is not there. */
int64_t find_opset(size_t count, Onnx__OperatorSetIdProto *const *imports);
bool is_onnx_domain(const char *domain);
/* NULL: not one that files may name. */
const struct op *known_operator(const Onnx__NodeProto *node);

/* After node n was added: sets value->count of its outputs, or refuses what cannot be done with
 * an input of unknown size. */
enum status count_outputs(struct graph *g, int n, struct error *err);

/* Marks which names of the graph must be known before the run. */
struct needed {
    const char **names;
    size_t count, cap;
    struct arena *arena;
};
enum status find_needed(const Onnx__GraphProto *graph, struct needed *needed, struct error *err);
bool is_needed(const struct needed *needed, const char *name);

/* Gives inputs without contents a sensible fill. */
void choose_fills(struct graph *g);

/* ---- small things ---- */

const char *text_of(const char *text); /* NULL: "" */
/* Adds a node of the importer's own. */
int add_node(struct importer *im, const char *op, int input_count, const int *inputs,
             int attr_count, const struct attr *attrs);
/* A constant integer or bool of one element; UNSUPPORTED when it is not known. */
enum status known_int(struct importer *im, int value, int64_t *number, struct error *err);

#endif
