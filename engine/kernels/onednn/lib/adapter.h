/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN as ridge sees it: the C API of versions 2 and 3, which lib/layout.h and lib/operation.c
 * tell apart. A kernel file next door describes its node as steps: primitives of oneDNN with the
 * tensors they read and write. Everything else is the same for all kernels and lives here: choosing
 * an implementation, packing weights, scratch memory, launching.
 *
 *   static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
 *   {
 *       struct operation relu = {OPERATION_ELTWISE, dnnl_eltwise_relu, .src = &src, .dst = &src};
 *       TRY(plan_attr(plan, why));
 *       TRY(plan_step(plan, &relu, &step, why));
 *       step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &src);
 *   }
 *   ONEDNN_KERNEL(relu, build, 1, .ops = OPS("Relu"));
 *
 * Variant v of a kernel is the v-th implementation that oneDNN offers for the operation, without
 * those it calls "ref": they exist to be complete and are up to 300 times slower, and oneDNN falls
 * back to them without a word. Nor those called "gemm:jit", which move the stack pointer and
 * compute some elements wrongly (operation.c).
 */
#ifndef ENGINE_KERNELS_ONEDNN_LIB_ADAPTER_H
#define ENGINE_KERNELS_ONEDNN_LIB_ADAPTER_H

#include "engine/kernels/onednn/lib/operation.h"
#include "engine/ops/lib/chain.h"
#include "engine/run/plugin.h"

extern const struct plugin_host *onednn_host;
extern dnnl_engine_t onednn_engine;

/* Turns a failed call of oneDNN into a refusal; returns UNSUPPORTED, or NO_MEMORY. */
enum status onednn_refuse(struct error *why, dnnl_status_t status, const char *call);
#define DNNL_TRY(call, why)                                                                        \
    do {                                                                                           \
        dnnl_status_t dnnl_status_ = (call);                                                       \
        if (dnnl_status_ != dnnl_success)                                                          \
            return onednn_refuse(why, dnnl_status_, #call);                                        \
    } while (0)
#define REFUSE(why, ...) onednn_host->refuse(why, STATUS_UNSUPPORTED, __VA_ARGS__)

/* ---- threads: lib/team.c ---- */

/* OpenMP threads of the calling thread from now on. In prepare: team_ready, which also pins
 * them; around launches: team_begin and team_end. */
void team_remember_cpus(void);  /* once, before anybody pins */
void team_threads(int threads); /* enough to ask about implementations: they depend on it */
void team_ready(int threads);
void team_begin(int threads);
void team_end(int threads);

/* ---- plans: lib/plan.c, lib/launch.c ---- */

enum { STEP_ARGS = 12, PLAN_STEPS = 5, PLAN_VARIANTS = 2, PLAN_TEMPORARIES = 8 };

enum source {
    SOURCE_IN,     /* input `index` of the query */
    SOURCE_OUT,    /* output `index` */
    SOURCE_WORK,   /* workspace at byte `index` */
    SOURCE_PACKED, /* own memory, filled from `data` at prepare */
};

struct step_arg {
    int arg; /* DNNL_ARG_* */
    enum source source;
    size_t index;
    struct memory_layout layout; /* as launch sees it */
    struct memory_layout from;   /* PACKED: layout of data */
    const void *data;            /* PACKED: borrowed until prepare ends */
};

struct plan_step {
    dnnl_primitive_desc_t pd; /* owned by the plan */
    bool conversion;          /* only changes a layout */
    struct step_arg args[STEP_ARGS];
    int arg_count;
};

/* Attributes of the step that is being described, and the operands of its post-ops. */
struct step_attr {
    struct plan *plan; /* that it is part of */
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    struct step_arg args[POST_MAX];
    int arg_count;
};

/* A node as oneDNN computes it: steps in order. */
struct plan {
    int variant;  /* wanted: this many implementations of the first step are skipped */
    bool packing; /* constants are read after build: those that are computed must be there */
    bool bf16;    /* floats are, in layouts made from now on; else f32 */
    struct step_attr attr;
    struct plan_step steps[PLAN_STEPS];
    int step_count;
    size_t work_bytes;
    void *temporary[PLAN_TEMPORARIES]; /* freed with the plan */
    int temporary_count;
    struct layouts layouts; /* the same */
};

typedef enum status plan_build(const struct kernel_query *q, struct plan *plan, struct error *why);

/* A step: plan_attr, post-ops into plan->attr, plan_step with the operation, then step_io and
 * step_packed for each argument. A build function that fails leaves the plan to its caller. */
enum status plan_attr(struct plan *plan, struct error *why);
enum status plan_step(struct plan *plan, const struct operation *operation, struct plan_step **step,
                      struct error *why);
/* A step that converts between two layouts; its arguments are DNNL_ARG_FROM and DNNL_ARG_TO. */
enum status plan_reorder(struct plan *plan, const struct memory_layout *from,
                         const struct memory_layout *to, struct plan_step **step,
                         struct error *why);
void plan_last_first(struct plan *plan);               /* the last step becomes the first */
size_t plan_work(struct plan *plan, size_t bytes);     /* offset of new workspace memory */
void *plan_temporary(struct plan *plan, size_t bytes); /* zeroed, lives as long; NULL: none */

void step_io(struct plan_step *step, int arg, enum source source, size_t index,
             const struct memory_layout *layout);
/* Constant data in layout `from`, kept in the layout that the implementation asked for. data is
 * read after build, and only in a plan that is `packing`. */
void step_packed(struct plan_step *step, int arg, const struct memory_layout *from,
                 const void *data);

/* Input `input`, in layout `from`, in the layout that the implementation asked for: kept where data
 * is there, else brought into it at each launch, by a step in front of all. The last word about
 * `step`, which moves. */
enum status step_weights(struct plan *plan, struct plan_step *step, int arg, int input,
                         const struct memory_layout *from, const void *data, struct error *why);

/* The layout that the step's implementation wants for an argument; lives as long as the plan. */
struct memory_layout step_layout(const struct plan_step *step, int arg);

/* Builds a plan that is zero but for variant and packing; plan_free it when this is OK. */
enum status plan_make(plan_build *build, const struct kernel_query *q, struct plan *plan,
                      struct error *why);
void plan_free(struct plan *plan);

/* A plan made ready to run. */
struct ready_arg {
    enum source source;
    size_t index;
    void *packed;
};

struct ready_step {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t exec[STEP_ARGS];
    struct ready_arg args[STEP_ARGS];
    int arg_count;
};

/* A plan is made of objects that oneDNN allocates. The hook `plan` therefore keeps only what was
 * found out with one; prepare makes it again, for good. */
struct kernel_state {
    plan_build *build;
    const struct kernel_query *q;
    int variant, limit; /* limit: how many variants are looked for */
    char text[96];      /* the implementation, and how many conversions */
    size_t work_bytes;
    int threads;
    size_t out_bytes; /* of output 0 */
    dnnl_stream_t stream;
    struct ready_step steps[PLAN_STEPS];
    int step_count;
};

/* The hooks of every kernel. */
enum status plan_query(plan_build *build, int limit, const struct kernel_query *q, int variant,
                       struct kernel_state *state, struct error *why);
int plan_variants(const struct kernel_state *state);
void plan_describe(const struct kernel_state *state, char *text, size_t size);
size_t plan_workspace(const struct kernel_state *state);
enum status plan_prepare(const struct kernel_query *q, struct kernel_state *state,
                         size_t *packed_bytes, struct error *err);
void plan_launch(const struct kernel_state *state, const struct kernel_args *args);
void plan_release(struct kernel_state *state);

/* ---- tensors and epilogues: lib/tensor.c ---- */

/* Logical shape and strides as they are; a scalar has rank 1. Refuses what is not the plan's type
 * of floats. */
enum status layout_from_desc(struct plan *plan, const struct desc *desc,
                             struct memory_layout *layout, struct error *why);
/* Of floats. One that oneDNN rejects has no dimensions, and no primitive takes it. */
struct memory_layout layout_strided(struct plan *plan, int rank, const int64_t *dims,
                                    const int64_t *strides);
struct memory_layout layout_any(struct plan *plan, int rank, const int64_t *dims);

/* How the dimensions of output 0 are grouped into those of the primitive's result: dimension k of
 * the result is made of the output's dimensions first[k] .. first[k + 1] - 1 (none: size 1). */
struct grouping {
    int rank;
    int first[RANK_MAX + 2];
};

struct grouping grouping_identity(int rank);
/* oneDNN's relu and clip give a number for NaN. In the epilogue of a sum of products that is borne;
 * kernels that do nothing else than such elementwise work refuse it. */
enum status posts_keep_nan(const struct kernel_query *q, struct error *why);
/* Puts the node's posts, or one of them, after the post-ops that attr has already. */
enum status posts_append(const struct kernel_query *q, const struct grouping *grouping,
                         struct step_attr *attr, struct error *why);
enum status post_append(const struct kernel_query *q, const struct grouping *grouping,
                        const struct post *post, struct step_attr *attr, struct error *why);
struct eltwise {
    dnnl_alg_kind_t kind; /* 0: oneDNN has none */
    double alpha, beta;
};
struct eltwise eltwise_of(enum function function, float p, float q);
enum status post_eltwise(struct step_attr *attr, dnnl_alg_kind_t kind, double alpha, double beta,
                         struct error *why);

/* ---- helpers for build functions ---- */

bool is_op(const struct kernel_query *q, const char *name);

/* Defines kernel `onednn_<symbol>` from its build function. */
#define ONEDNN_KERNEL(symbol, build, variants_max, ...)                                            \
    static enum status symbol##_plan(const struct kernel_query *q, int variant,                    \
                                     struct kernel_state *state, struct error *why)                \
    {                                                                                              \
        return plan_query(build, variants_max, q, variant, state, why);                            \
    }                                                                                              \
    REGISTER(kernel, onednn_##symbol) = {.name = "onednn_" #symbol,                                \
                                         .provider = "onednn",                                     \
                                         .own_threads = true,                                      \
                                         .distrusted = true,                                       \
                                         .state_size = sizeof(struct kernel_state),                \
                                         .plan = symbol##_plan,                                    \
                                         .variants = plan_variants,                                \
                                         .describe = plan_describe,                                \
                                         .workspace = plan_workspace,                              \
                                         .prepare = plan_prepare,                                  \
                                         .launch = plan_launch,                                    \
                                         .release = plan_release,                                  \
                                         __VA_ARGS__}

#endif
