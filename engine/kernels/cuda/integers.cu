/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of i32 and i64, the types of indices and shapes, any layout and broadcast: a thread
 * per result. Sums, differences and products wrap; what is divided by 0 gives 0, as in the
 * reference. */
#include "engine/kernels/cuda/lib/query.h"

enum what {
    INTEGER_ADD,
    INTEGER_SUB,
    INTEGER_MUL,
    INTEGER_MAX,
    INTEGER_MIN,
    INTEGER_DIV,
    INTEGER_MOD,
    INTEGER_NONE
};

struct integers {
    const void *a, *b;
    void *y;
    unsigned count;
    int rank, what;
    bool fmod; /* the remainder has the sign of the dividend, else that of the divisor */
    struct divisor dim[RANK_MAX]; /* outermost first */
    int a_stride[RANK_MAX], b_stride[RANK_MAX];
};

/* Towards zero; the least number over -1, which traps on CPUs, wraps. word: the unsigned type as
 * wide as number. */
template <class number, class word>
static __device__ __forceinline__ number quotient(number a, number b)
{
    if (b == 0)
        return 0;
    return b == -1 ? (number)(0 - (word)a) : a / b;
}

template <class number>
static __device__ __forceinline__ number remainder_of(number a, number b, bool fmod)
{
    number rest = b == 0 || b == -1 ? 0 : a % b;
    return !fmod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <class number, class word>
static __device__ __forceinline__ number combine(const struct integers &k, number a, number b)
{
    switch (k.what) {
    case INTEGER_ADD:
        return (number)((word)a + (word)b);
    case INTEGER_SUB:
        return (number)((word)a - (word)b);
    case INTEGER_MUL:
        return (number)((word)a * (word)b);
    case INTEGER_MAX:
        return a < b ? b : a;
    case INTEGER_DIV:
        return quotient<number, word>(a, b);
    case INTEGER_MOD:
        return remainder_of(a, b, k.fmod);
    default:
        return b < a ? b : a;
    }
}

template <class number, class word>
__global__ void __launch_bounds__(BLOCK) integers_each(const __grid_constant__ struct integers k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step) {
        unsigned rest = e;
        int a = 0, b = 0;
        for (int d = k.rank - 1; d >= 0; d--) {
            unsigned next = divide(rest, k.dim[d]);
            int i = (int)(rest - next * k.dim[d].d);
            a += i * k.a_stride[d];
            b += i * k.b_stride[d];
            rest = next;
        }
        ((number *)k.y)[e] =
            combine<number, word>(k, ((const number *)k.a)[a], ((const number *)k.b)[b]);
    }
}

/* ---- hooks ---- */

/* As enum what. */
static const char *const ops[] = {"Add", "Sub", "Mul", "Max", "Min", "Div", "Mod", NULL};

struct kernel_state {
    struct integers k; /* pointers are left open */
    bool wide;         /* i64 */
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct integers *k = &s->k;
    const struct desc *y = &q->out[0], *descs[] = {y, &q->in[0], &q->in[1]};
    struct strided space;
    if (q->node->post_count || q->in_count != 2)
        return REFUSE(why, "no fused epilogue, and two inputs");
    if (!is_index(y->dtype) || q->in[0].dtype != y->dtype || q->in[1].dtype != y->dtype)
        return REFUSE(why, "only i32 and i64");
    if (!cuda_host->desc_is_dense(y) || !fits_index(y))
        return REFUSE(why, "only a dense result of less than 2^31 elements");
    for (k->what = 0; k->what < INTEGER_NONE; k->what++)
        if (strcmp(ops[k->what], cuda_host->node_op(q->node)) == 0)
            break;
    k->fmod = cuda_host->node_int(q->node, "fmod", 0) != 0;
    k->count = (unsigned)shape_count(&y->shape);
    if (k->count == 0)
        return STATUS_OK;
    strided_init(&space, descs, ARRAY_COUNT(descs));
    k->rank = space.rank;
    for (int d = 0; d < space.rank; d++) {
        k->dim[d] = divisor_of(space.dim[d]);
        k->a_stride[d] = (int)space.stride[1][d];
        k->b_stride[d] = (int)space.stride[2][d];
    }
    s->wide = y->dtype == DTYPE_I64;
    s->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct integers k = state->k;
    k.a = args->in[0];
    k.b = args->in[1];
    k.y = args->out[0];
    if (state->wide)
        LAUNCH((integers_each<int64_t, uint64_t>), state->grid, cuda_size(BLOCK), 0, &k, args);
    else
        LAUNCH((integers_each<int32_t, uint32_t>), state->grid, cuda_size(BLOCK), 0, &k, args);
}

CUDA_KERNEL(integers) = {CUDA_NAME(integers), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
