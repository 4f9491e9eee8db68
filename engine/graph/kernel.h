/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel says *how* a node is computed on one device by one provider. For every node the tuner
 * asks all kernels of its operator; each accepts or refuses with a reason that `ridge explain`
 * prints, the accepting ones are checked against the reference and timed, the fastest is kept.
 * The reference is always last and always accepts.
 *
 *   plan       required  accepts or refuses (UNSUPPORTED with a reason), and computes all that the
 *                        other hooks read: sizes, strides, how the work is cut into tasks
 *   variants   optional  how many tunings there are (tile sizes, packing ...), asked of the plan
 *                        of the first
 *   describe   optional  a few words on the variant for `ridge explain`, e.g. "12x32 kc256"
 *   workspace  optional  scratch bytes for launch, 64-byte aligned
 *   prepare    optional  once: memory for packed weights, tables of no fixed size
 *   pack       optional  brings the inputs that it keeps in a form of its own (.packs) into that
 *                        form: once where all of them are fixed, else before each launch
 *   launch     required  the timed part: allocates nothing, takes no lock, cannot fail
 *   release    optional  gives back what prepare made
 *
 * Who owns what. Each kernel defines struct kernel_state; its memory belongs to the engine:
 * state_size bytes, 64-byte aligned and cleared before plan (NULL where state_size is 0). plan
 * has no effect but what it writes there, so a tuner may plan only to ask. What prepare
 * allocates it stores in the state at once, for release to find: after prepare, whether it
 * succeeded or failed half-way, the engine calls release once. release may also meet a state that
 * was planned and never prepared. It frees what the state points to, never the state.
 * The query outlives the state, so plan may keep a pointer to it. launch gets no query, because
 * what it needs is computed already; what changes from launch to launch is in kernel_args.
 *
 * On a device (kernel.device, engine/run/device.h) the hooks get the same: `fixed` points to memory
 * of the host, and what launch needs of it prepare puts into memory of the device itself
 * (device_upload), in its state. launch puts its work into args->stream and returns without
 * waiting, so that a whole executable can be captured and replayed; a library's handle that is
 * shared by several states gets its stream there. Scratch comes from `workspace`, 256-byte aligned.
 *
 * Native kernels are written once against engine/kernels/lib/simd.h and compiled for every
 * instruction set: `REGISTER_KERNEL(softmax_rows)` becomes softmax_rows_scalar, _avx2, _avx512.
 * The smallest example is engine/kernels/cpu/copy_plain.c. tests/ops proves every kernel on every
 * case of its operator, with guard zones round each tensor.
 */
#ifndef ENGINE_GRAPH_KERNEL_H
#define ENGINE_GRAPH_KERNEL_H

#include "base/error.h"
#include "base/registry.h"
#include "base/system/pool.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor.h"

/* Ordered: a CPU that has one has all before it. */
enum isa { ISA_SCALAR, ISA_AVX2, ISA_AVX512, ISA_COUNT };

enum { ALIGN_TENSOR = 64, ALIGN_DEVICE = 256 };

struct device; /* engine/run/device.h */

/* One node, lowered: descs are in memory order of this executable. */
struct kernel_query {
    const struct node *node; /* operator, attributes, posts */
    int in_count, out_count; /* in includes the operands of posts */
    const struct desc *in;   /* dtype DTYPE_NONE: absent */
    const struct desc *out;
    const void *const *fixed; /* per input: contents known now (constant weight, in in[i]'s
                                 layout), or NULL: comes with each launch. A fixed input whose
                                 packed form is all that launch needs is not kept in memory
                                 otherwise: see kernel.packs */
    int threads;
    const struct device
        *device; /* an opened one, current in the calling thread; never NULL for
                    kernels of devices other than the CPU, which may leave it NULL */
    bool tf32;   /* products of f32 may round their factors to 10 bits of mantissa */
};

/* Input i; NULL: absent. */
static inline const struct desc *query_in(const struct kernel_query *q, int i)
{
    return i < q->in_count && q->in[i].dtype != DTYPE_NONE ? &q->in[i] : NULL;
}

/* What is in it; NULL: not known now. */
static inline const void *query_fixed(const struct kernel_query *q, int i)
{
    return q->fixed && query_in(q, i) ? q->fixed[i] : NULL;
}

struct kernel_args {
    const void *const *in; /* all tensors and the workspace are memory of the kernel's device */
    void *const *out;
    void *workspace;
    struct pool *pool;
    void *stream;      /* device queue (CUDA: cudaStream_t); NULL on CPUs */
    struct error *err; /* where a launch says that it could not be done, unless an earlier one has
                          (err->code is no longer OK): a device's kernel that is refused, the
                          reference for want of memory, no other kernel of the CPU. May be NULL */
};

struct kernel_state; /* each kernel defines its own */

struct kernel {
    const char *name;
    const char *provider;   /* "native", "reference", or the plug-in that brings it: "onednn" */
    const char *device;     /* NULL: "cpu" */
    const char *const *ops; /* operators it computes, NULL-terminated; NULL: all */
    bool elementwise;       /* instead of ops: those whose value is an expression (op.h) */
    enum isa isa;           /* least instruction set */
    double rel_error;       /* own bound if larger than the operator's (Winograd: 1e-3); 0: none */
    unsigned packs;         /* bit i: launch does not read the operator's own input i but a form of
                                it that pack makes, or prepare where it is fixed */
    bool own_threads;       /* brings its own threads (OpenMP): the pool is parked around it */
    bool distrusted;        /* first call on a new signature runs in a forked child */
    size_t state_size;      /* of its struct kernel_state; 0: it has none */
    enum status (*plan)(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why);
    int (*variants)(const struct kernel_state *state); /* of the plan of variant 0 */
    void (*describe)(const struct kernel_state *state, char *text, size_t size);
    size_t (*workspace)(const struct kernel_state *state);
    /* packed_bytes: 0 before; how much memory the state holds beside itself. */
    enum status (*prepare)(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err);
    /* Reads the inputs in .packs alone, from args->in. Fixed ones go to memory of prepare's: then
     * args->pool and args->workspace are NULL. Others may go into the workspace, which launch finds
     * as pack leaves it: it costs no memory of the step's own, and is in the caches still. There
     * are no outputs. Like launch it allocates nothing and cannot fail. */
    void (*pack)(struct kernel_state *state, const struct kernel_args *args);
    void (*launch)(const struct kernel_state *state, const struct kernel_args *args);
    void (*release)(struct kernel_state *state);
    bool unlike_variants; /* they differ by factors: a first one that is much slower says nothing of
                             the others, which are tried all the same */
    bool ranked_variants; /* variant v is the v-th of a list that a library makes for this query,
                             and something else at every other size */
    bool general;         /* computes whatever comes, slowly: where nothing is timed, kernels of its
                             provider that accept less come first */
};

#define OPS(...)                                                                                   \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* Native kernels: the symbol, the name and the instruction set follow the compilation. */
#if defined(__AVX512F__)
#define KERNEL_ISA        ISA_AVX512
#define KERNEL_NAME(name) name##_avx512
#elif defined(__AVX2__)
#define KERNEL_ISA        ISA_AVX2
#define KERNEL_NAME(name) name##_avx2
#else
#define KERNEL_ISA        ISA_SCALAR
#define KERNEL_NAME(name) name##_scalar
#endif
#define KERNEL_CAT_(a, b)   a##b
#define KERNEL_CAT(a, b)    KERNEL_CAT_(a, b)
#define KERNEL_TEXT_(text)  #text
#define KERNEL_TEXT(text)   KERNEL_TEXT_(text)
#define KERNEL_SYMBOL(name) KERNEL_CAT(kernel_, KERNEL_NAME(name))
/* Use as: REGISTER_KERNEL(softmax_rows) = { NATIVE(softmax_rows), .ops = OPS("Softmax"), ... }; */
#define REGISTER_KERNEL(name)                                                                      \
    extern const struct kernel KERNEL_SYMBOL(name);                                                \
    const struct kernel KERNEL_SYMBOL(name)
#define NATIVE(kernel)                                                                             \
    .name = KERNEL_TEXT(KERNEL_NAME(kernel)), .provider = "native", .isa = KERNEL_ISA

/* All kernels: engine/run/kernels.h. */
bool kernel_computes(const struct kernel *kernel, const struct op *op);

/* ---- for those who call kernels ---- */

/* Asks the kernel for its plan of one variant. OK: *state is the planned state, for the functions
 * below until kernel_release; otherwise NULL. NO_MEMORY is possible, too. */
enum status kernel_plan(const struct kernel *kernel, const struct kernel_query *q, int variant,
                        struct kernel_state **state, struct error *why);
/* Whether it accepts the query, in its first variant. */
enum status kernel_accepts(const struct kernel *kernel, const struct kernel_query *q,
                           struct error *why);
int kernel_variants(const struct kernel *kernel,
                    const struct kernel_state *state); /* of variant 0 */
void kernel_describe(const struct kernel *kernel, const struct kernel_state *state, char *text,
                     size_t size); /* "" where it has nothing to say */
size_t kernel_workspace(const struct kernel *kernel, const struct kernel_state *state);
/* *bytes: of the state and what it holds. After a failure the state is still to be released. What
 * is fixed is packed. */
enum status kernel_prepare(const struct kernel *kernel, const struct kernel_query *q,
                           struct kernel_state *state, size_t *bytes, struct error *err);
/* Whether its packed inputs may be others at each launch. */
bool kernel_packs_each_time(const struct kernel *kernel, const struct kernel_query *q);
/* Whether a launch, packing included, reads input i itself: not where its packed form is enough. */
bool kernel_reads(const struct kernel *kernel, const struct kernel_query *q, int input);
/* Packs, if they may, and launches. */
void kernel_launch(const struct kernel *kernel, const struct kernel_query *q,
                   struct kernel_state *state, const struct kernel_args *args);
void kernel_release(const struct kernel *kernel, struct kernel_state *state); /* NULL: nothing */

/* The best instruction set of this CPU, lowered by RIDGE_ISA=scalar|avx2|avx512. */
enum isa isa_detect(void);
/* FAILED: RIDGE_ISA names none of them, or one that this CPU or build lacks. */
enum status isa_check(struct error *err);
const char *isa_name(enum isa isa);
/* What some CPUs with ISA_AVX512 have beyond it: dot products of bytes and of bf16. */
bool cpu_has_vnni(void);
bool cpu_has_bf16(void);
bool cpu_has_avx_vnni(void); /* with ISA_AVX2: of bytes */

/* ---- helpers for plan() ---- */
bool query_all_dtype(const struct kernel_query *q, enum dtype dtype); /* present in and out */
/* Refuses unless all inputs and outputs are f32 and plain, and the node has no posts. */
enum status query_plain_f32(const struct kernel_query *q, struct error *why);

#endif
