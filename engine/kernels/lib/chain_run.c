/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/chain_run.h"

#include "base/numbers/integers.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/tile_fn.h"
#include "engine/kernels/lib/tiles.h"

enum {
    TILE_SCRATCH = 1024,    /* elements of a tile when several share the first cache */
    TILE_DIRECT = 8192,     /* when nothing is kept in between */
    ITEM_CHEAP = 32768,     /* elements that a thread takes at a time: about 2 us of copying */
    ITEM_DEAR = 8192,       /* the same with calls of exp and the like */
    STREAM_BYTES = 16 << 20 /* outputs beyond this are not found in the caches again */
};

/* ---- plan ---- */

static enum chain_form form_of(const struct strided *s, int k)
{
    if (strided_is_scalar(s, k))
        return CHAIN_SCALAR;
    if (strided_is_full(s, k))
        return CHAIN_FULL;
    return strided_is_vector(s, k) ? CHAIN_VECTOR : CHAIN_STRIDED;
}

static int last_use(const struct chain *chain, int step)
{
    int last = step;
    for (int s = step + 1; s < chain->count; s++)
        if (chain->steps[s].a == chain->inputs + step || chain->steps[s].b == chain->inputs + step)
            last = s;
    return last;
}

/* A step may write where an operand that it is the last to read lies. */
static void assign_slots(struct chain_plan *plan)
{
    const struct chain *chain = &plan->chain;
    int free_from[CHAIN_STEPS] = {0}, count = 0;
    for (int s = 0; s < chain->count; s++) {
        int slot = 0;
        while (slot < count && free_from[slot] > s)
            slot++;
        count = slot == count ? count + 1 : count;
        free_from[slot] = last_use(chain, s);
        plan->slot[s] = slot;
    }
    bool direct = chain->count == 1 && !plan->stream && !plan->gaps && !plan->bf16;
    plan->slots = direct ? 0 : count;
}

static bool is_dear(const struct chain *chain)
{
    double calls = 0;
    for (int s = 0; s < chain->count; s++)
        calls += function_info(chain->steps[s].code)->calls;
    return calls > 0;
}

/* All inputs are read where they lie, also across rows. */
static bool lies_flat(const struct chain_plan *plan)
{
    for (int k = 0; k < plan->chain.inputs; k++)
        if (plan->form[k] == CHAIN_VECTOR || plan->form[k] == CHAIN_STRIDED)
            return false;
    return true;
}

static void cut_tiles(struct chain_plan *plan, int threads)
{
    const struct strided *s = &plan->space;
    bool direct = plan->slots == 0 && (lies_flat(plan) || s->row >= TILE_DIRECT);
    plan->tile = direct ? TILE_DIRECT : TILE_SCRATCH;
    if (s->row >= plan->tile || s->rows == 1) {
        plan->tile_rows = 0;
        plan->tiles_per_row = divide_up(s->row, plan->tile);
        plan->tiles = plan->tiles_per_row * s->rows;
    } else {
        plan->tile_rows = s->row ? plan->tile / s->row : 1;
        plan->tiles = divide_up(s->rows, plan->tile_rows);
    }
    int64_t size = plan->tile_rows ? plan->tile_rows * s->row : plan->tile;
    int64_t item = is_dear(&plan->chain) ? ITEM_DEAR : ITEM_CHEAP;
    plan->tiles_per_item = rows_of_tile(plan->tiles, size, item, threads);
    plan->items = divide_up(plan->tiles, plan->tiles_per_item);
}

/* Inputs whose elements do not lie in a tile as the vector loops want them: floats, one after the
 * other. */
static void choose_spreads(struct chain_plan *plan)
{
    for (int k = 0; k < plan->chain.inputs; k++) {
        int64_t inner = plan->space.stride[k + 1][plan->space.rank - 1];
        bool lies = plan->form[k] == CHAIN_FULL || (plan->tile_rows == 0 && inner == 1);
        bool fits = plan->form[k] == CHAIN_SCALAR || plan->form[k] == CHAIN_UNUSED ||
                    (plan->tile_rows == 0 && inner == 0) || (lies && !plan->bf16);
        plan->spread[k] = fits ? -1 : plan->slots++;
    }
}

static enum status check_tensors(const struct kernel_query *q, struct error *why)
{
    if (q->out_count != 1 || (!query_all_dtype(q, DTYPE_F32) && !query_all_dtype(q, DTYPE_BF16)))
        return UNSUPPORTED(why, "only f32, or only bf16");
    if (q->in_count > CHAIN_INPUTS)
        return UNSUPPORTED(why, "%d inputs, at most %d", q->in_count, (int)CHAIN_INPUTS);
    return STATUS_OK;
}

enum status SIMD_FN(chain_plan_make)(const struct kernel_query *q, struct chain_plan *plan,
                                     struct error *why)
{
    const float *scalars[CHAIN_INPUTS] = {0};
    float values[CHAIN_INPUTS];
    const struct desc *descs[STRIDED_OPERANDS] = {&q->out[0]};
    *plan = (struct chain_plan){0};
    TRY(check_tensors(q, why));
    plan->bf16 = q->out[0].dtype == DTYPE_BF16;
    for (int k = 0; k < q->in_count; k++) {
        const void *fixed = query_fixed(q, k);
        descs[k + 1] = query_in(q, k);
        if (!fixed || shape_count(&q->in[k].shape) != 1)
            continue;
        values[k] = float_read(fixed, 0, plan->bf16);
        scalars[k] = &values[k];
    }
    TRY(chain_from_node(q->node, scalars, &plan->chain, why));
    strided_init(&plan->space, descs, q->in_count + 1);
    if (plan->space.row > 1 && plan->space.stride[0][plan->space.rank - 1] != 1)
        return UNSUPPORTED(why, "rows of the output have gaps");
    for (int k = 0; k < q->in_count; k++)
        if (chain_reads(&plan->chain, k))
            plan->form[k] = form_of(&plan->space, k + 1);
    plan->gaps = !desc_is_dense(&q->out[0]);
    plan->stream = !plan->gaps && desc_bytes(&q->out[0]) > STREAM_BYTES;
    assign_slots(plan);
    cut_tiles(plan, q->threads);
    choose_spreads(plan);
    return STATUS_OK;
}

size_t SIMD_FN(chain_workspace)(const struct chain_plan *plan, int threads)
{
    int64_t tile = plan->tile_rows ? plan->tile_rows * plan->space.row : plan->tile;
    tile = divide_up(tile, 16) * 16;
    return (size_t)(threads * plan->slots * tile) * sizeof(float);
}

/* ---- run ---- */

struct run {
    const struct chain_plan *plan;
    const struct kernel_args *args;
};

/* What a thread works on. */
struct tile {
    float *scratch;
    int64_t scratch_tile; /* elements from one scratch tile to the next */
    int64_t first, count; /* elements of the space */
    int64_t row, column;  /* of the first */
};

/* n elements of a row from x on, whose step is 0, 1 or more. */
SIMD_INLINE void spread_row(float *y, const void *x, int64_t n, int64_t step, bool bf16)
{
    int64_t i = 0;
    if (step > 1) {
        for (; i < n; i++)
            y[i] = float_read(x, i * step, bf16);
        return;
    }
    vf all = vf_set1(float_read(x, 0, bf16));
    for (; i + VL <= n; i += VL)
        vf_store(y + i, step ? vf_read(x, i, bf16) : all);
    vm rest = vm_first(n - i);
    vf_store_m(y + i, rest, step ? vf_read_m(x, i, rest, bf16) : all);
}

/* Whole rows of the tile; the index of the outer dimensions is counted on, not divided out. */
SIMD_INLINE void spread_rows(const struct strided *s, int k, const void *x, const struct tile *t,
                             float *y, bool bf16)
{
    int64_t index[RANK_MAX], row = t->row;
    for (int d = s->rank - 2; d >= 0; d--) {
        index[d] = row % s->dim[d];
        row /= s->dim[d];
        x = float_at(x, index[d] * s->stride[k][d], bf16);
    }
    for (int64_t done = 0; done < t->count; done += s->row, y += s->row) {
        spread_row(y, x, s->row, s->stride[k][s->rank - 1], bf16);
        for (int d = s->rank - 2; d >= 0; d--) {
            x = float_at(x, s->stride[k][d], bf16);
            if (++index[d] < s->dim[d])
                break;
            x = float_at(x, -s->stride[k][d] * s->dim[d], bf16);
            index[d] = 0;
        }
    }
}

/* Tiles of whole rows: a vector is the same in every tile, so once per item is enough. */
static void prepare_tile(const struct run *run, const struct tile *t, bool first_of_item)
{
    const struct chain_plan *plan = run->plan;
    for (int k = 0; plan->tile_rows && k < plan->chain.inputs; k++) {
        float *y = t->scratch + plan->spread[k] * t->scratch_tile;
        if (plan->spread[k] < 0 || (plan->form[k] == CHAIN_VECTOR && !first_of_item))
            continue;
        if (plan->bf16)
            spread_rows(&plan->space, k + 1, run->args->in[k], t, y, true);
        else
            spread_rows(&plan->space, k + 1, run->args->in[k], t, y, false);
    }
}

struct operand {
    const float *at;
    float value; /* where `at` may point if it is scalar */
    bool scalar;
};

/* Part of a row of input k, or of all that lies like the output, from element `at` on. */
static const float *spread_part(const struct run *run, int k, const struct tile *t, int64_t at,
                                int64_t step)
{
    const struct chain_plan *plan = run->plan;
    const void *x = run->args->in[k];
    if (plan->spread[k] < 0)
        return (const float *)x + at;
    float *spread = t->scratch + plan->spread[k] * t->scratch_tile;
    if (plan->bf16)
        spread_row(spread, float_at(x, at, true), t->count, step, true);
    else
        spread_row(spread, float_at(x, at, false), t->count, step, false);
    return spread;
}

/* Input k of the tile. */
static void read_input(const struct run *run, int k, const struct tile *t, struct operand *operand)
{
    const struct chain_plan *plan = run->plan;
    const struct strided *s = &plan->space;
    const void *x = run->args->in[k];
    int64_t inner = s->stride[k + 1][s->rank - 1];
    operand->scalar = plan->form[k] == CHAIN_SCALAR || (plan->tile_rows == 0 && inner == 0);
    if (operand->scalar) {
        int64_t at = plan->form[k] == CHAIN_SCALAR ? 0 : strided_at(s, k + 1, t->row);
        operand->value = float_read(x, at, plan->bf16);
        operand->at = &operand->value;
    } else if (plan->form[k] == CHAIN_FULL) {
        operand->at = spread_part(run, k, t, t->first, 1);
    } else if (plan->tile_rows) { /* filled by prepare_tile */
        operand->at = t->scratch + plan->spread[k] * t->scratch_tile;
    } else {
        int64_t at = strided_at(s, k + 1, t->row) + t->column * inner;
        operand->at = spread_part(run, k, t, at, inner);
    }
}

static void run_step(const struct chain_plan *plan, int s, struct operand *operands,
                     const struct tile *t, float *y)
{
    const struct chain_step *step = &plan->chain.steps[s];
    bool two = function_info(step->code)->operands == 2;
    const struct operand *a = &operands[step->a], *b = two ? &operands[step->b] : a;
    bool scalar = a->scalar && b->scalar;
    struct tile_operands x = {a->at, b->at, 0};
    if (a->scalar)
        x.scalars |= TILE_A_SCALAR;
    if (b->scalar)
        x.scalars |= TILE_B_SCALAR;
    SIMD_FN(tile_fns)[step->code](y, &x, scalar ? 1 : t->count, step);
    operands[plan->chain.inputs + s] = (struct operand){.at = y, .scalar = scalar};
}

/* n results, or a single one for all of them. */
SIMD_INLINE void write_row(void *out, const float *x, int64_t n, bool scalar, bool bf16)
{
    int64_t i = 0;
    vf all = vf_set1(*x);
    for (; i + VL <= n; i += VL)
        vf_write(out, i, scalar ? all : vf_load(x + i), bf16);
    vm rest = vm_first(n - i);
    vf_write_m(out, i, rest, scalar ? all : vf_load_m(x + i, rest), bf16);
}

/* Whole rows into their places. */
SIMD_INLINE void write_rows(const struct run *run, const struct operand *result,
                            const struct tile *t, bool bf16)
{
    const struct strided *s = &run->plan->space;
    void *out = run->args->out[0];
    const float *from = result->at;
    vm mask = vm_first(s->row);
    vf all = vf_set1(*from);
    for (int64_t done = 0, row = t->row; done < t->count; done += s->row, row++) {
        int64_t at = s->rank == 2 ? row * s->stride[0][0] : strided_at(s, 0, row);
        void *to = out_at(out, at, bf16);
        const float *own = result->scalar ? from : from + done;
        if (s->row <= VL)
            vf_write_m(to, 0, mask, result->scalar ? all : vf_load_m(own, mask), bf16);
        else
            write_row(to, own, s->row, result->scalar, bf16);
    }
}

/* A tile whose results lie together. */
static void round_results(const struct chain_plan *plan, const struct operand *result, int64_t n,
                          uint16_t *out)
{
    if (result->scalar)
        write_row(out, result->at, n, true, true);
    else
        SIMD_FN(tile_round)(out, result->at, n, plan->stream);
}

static void finish(const struct run *run, const struct operand *result, const struct tile *t,
                   void *out)
{
    const struct chain_plan *plan = run->plan;
    bool apart = plan->gaps && plan->tile_rows;
    if (apart && plan->bf16)
        write_rows(run, result, t, true);
    else if (apart)
        write_rows(run, result, t, false);
    else if (plan->bf16)
        round_results(plan, result, t->count, out);
    else if (result->scalar)
        SIMD_FN(tile_fill)(out, *result->at, t->count);
    else if (plan->stream)
        SIMD_FN(tile_stream)(out, result->at, t->count);
}

static void run_tile(const struct run *run, const struct tile *t)
{
    const struct chain_plan *plan = run->plan;
    const struct chain *chain = &plan->chain;
    struct operand operands[CHAIN_INPUTS + CHAIN_STEPS];
    bool in_scratch = plan->stream || plan->bf16 || (plan->gaps && plan->tile_rows);
    int64_t at = plan->gaps ? strided_at(&plan->space, 0, t->row) + t->column : t->first;
    void *out = out_at(run->args->out[0], at, plan->bf16);
    for (int k = 0; k < chain->inputs; k++)
        if (plan->form[k] != CHAIN_UNUSED)
            read_input(run, k, t, &operands[k]);
    for (int s = 0; s < chain->count; s++) {
        bool to_out = s == chain->count - 1 && !in_scratch;
        run_step(plan, s, operands, t, to_out ? out : t->scratch + plan->slot[s] * t->scratch_tile);
    }
    finish(run, &operands[chain->inputs + chain->count - 1], t, out);
}

static void run_item(void *context, int64_t item, int thread)
{
    const struct run *run = context;
    const struct chain_plan *plan = run->plan;
    const struct strided *s = &plan->space;
    int64_t first = item * plan->tiles_per_item;
    int64_t last = first + plan->tiles_per_item;
    size_t own = SIMD_FN(chain_workspace)(plan, 1);
    struct tile t = {.scratch = (float *)((char *)run->args->workspace + (size_t)thread * own)};
    t.scratch_tile = plan->slots ? (int64_t)(own / sizeof(float)) / plan->slots : 0;
    last = smaller(last, plan->tiles);
    for (int64_t k = first; k < last; k++) {
        if (plan->tile_rows) {
            int64_t rows = s->rows - k * plan->tile_rows;
            t.row = k * plan->tile_rows;
            t.count = (rows < plan->tile_rows ? rows : plan->tile_rows) * s->row;
        } else {
            t.row = k / plan->tiles_per_row;
            t.column = k % plan->tiles_per_row * plan->tile;
            t.count = s->row - t.column < plan->tile ? s->row - t.column : plan->tile;
        }
        t.first = t.row * s->row + t.column;
        prepare_tile(run, &t, k == first);
        run_tile(run, &t);
    }
    if (plan->stream)
        simd_fence();
}

void SIMD_FN(chain_run)(const struct chain_plan *plan, const struct kernel_args *args)
{
    struct run run = {plan, args};
    pool_run(args->pool, plan->items, run_item, &run);
}
