/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/chain_run.h"

#include "base/numbers/integers.h"
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
    bool direct = chain->count == 1 && !plan->stream && !plan->gaps;
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

/* Inputs whose elements do not lie in a tile as the vector loops want them. */
static void choose_spreads(struct chain_plan *plan)
{
    for (int k = 0; k < plan->chain.inputs; k++) {
        int64_t inner = plan->space.stride[k + 1][plan->space.rank - 1];
        bool cut_fits = plan->tile_rows == 0 && (inner == 0 || inner == 1);
        bool fits = cut_fits || plan->form[k] == CHAIN_FULL || plan->form[k] == CHAIN_SCALAR ||
                    plan->form[k] == CHAIN_UNUSED;
        plan->spread[k] = fits ? -1 : plan->slots++;
    }
}

static enum status check_tensors(const struct kernel_query *q, struct error *why)
{
    if (q->out_count != 1 || !query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (q->in_count > CHAIN_INPUTS)
        return UNSUPPORTED(why, "%d inputs, at most %d", q->in_count, (int)CHAIN_INPUTS);
    return STATUS_OK;
}

enum status SIMD_FN(chain_plan_make)(const struct kernel_query *q, struct chain_plan *plan,
                                     struct error *why)
{
    const float *scalars[CHAIN_INPUTS] = {0};
    const struct desc *descs[STRIDED_OPERANDS] = {&q->out[0]};
    *plan = (struct chain_plan){0};
    TRY(check_tensors(q, why));
    for (int k = 0; k < q->in_count; k++) {
        descs[k + 1] = query_in(q, k);
        if (descs[k + 1] && q->fixed && q->fixed[k] && shape_count(&q->in[k].shape) == 1)
            scalars[k] = q->fixed[k];
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
static void spread_row(float *y, const float *x, int64_t n, int64_t step)
{
    if (step > 1) {
        SIMD_FN(tile_gather)(y, x, n, step);
        return;
    }
    int64_t i = 0;
    vf all = vf_set1(*x);
    for (; i + VL <= n; i += VL)
        vf_store(y + i, step ? vf_load(x + i) : all);
    vm rest = vm_first(n - i);
    vf_store_m(y + i, rest, step ? vf_load_m(x + i, rest) : all);
}

/* Whole rows of the tile; the index of the outer dimensions is counted on, not divided out. */
static void spread_rows(const struct strided *s, int k, const float *x, const struct tile *t,
                        float *y)
{
    int64_t index[RANK_MAX], row = t->row;
    for (int d = s->rank - 2; d >= 0; d--) {
        index[d] = row % s->dim[d];
        row /= s->dim[d];
        x += index[d] * s->stride[k][d];
    }
    for (int64_t done = 0; done < t->count; done += s->row, y += s->row) {
        spread_row(y, x, s->row, s->stride[k][s->rank - 1]);
        for (int d = s->rank - 2; d >= 0; d--) {
            x += s->stride[k][d];
            if (++index[d] < s->dim[d])
                break;
            x -= s->stride[k][d] * s->dim[d];
            index[d] = 0;
        }
    }
}

/* Where input k of the tile can be read, and whether it is one value. */
static const float *input_of(const struct run *run, int k, const struct tile *t, bool *scalar)
{
    const struct chain_plan *plan = run->plan;
    const struct strided *s = &plan->space;
    const float *x = run->args->in[k];
    int64_t inner = s->stride[k + 1][s->rank - 1];
    *scalar = plan->form[k] == CHAIN_SCALAR || (plan->tile_rows == 0 && inner == 0);
    if (plan->form[k] == CHAIN_SCALAR)
        return x;
    if (plan->form[k] == CHAIN_FULL)
        return x + t->first;
    float *spread = t->scratch + plan->spread[k] * t->scratch_tile;
    if (plan->tile_rows)
        return spread; /* filled by prepare_tile */
    x += strided_at(s, k + 1, t->row) + t->column * inner;
    if (plan->spread[k] < 0)
        return x;
    SIMD_FN(tile_gather)(spread, x, t->count, inner);
    return spread;
}

/* Tiles of whole rows: a vector is the same in every tile, so once per item is enough. */
static void prepare_tile(const struct run *run, const struct tile *t, bool first_of_item)
{
    const struct chain_plan *plan = run->plan;
    for (int k = 0; plan->tile_rows && k < plan->chain.inputs; k++) {
        if (plan->spread[k] < 0 || (plan->form[k] == CHAIN_VECTOR && !first_of_item))
            continue;
        spread_rows(&plan->space, k + 1, run->args->in[k], t,
                    t->scratch + plan->spread[k] * t->scratch_tile);
    }
}

struct operand {
    const float *at;
    bool scalar;
};

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
    operands[plan->chain.inputs + s] = (struct operand){y, scalar};
}

/* Whole rows into their places. */
static void write_rows(const struct run *run, const struct operand *result, const struct tile *t)
{
    const struct strided *s = &run->plan->space;
    float *out = run->args->out[0];
    const float *from = result->at;
    vm mask = vm_first(s->row);
    vf all = vf_set1(*from);
    for (int64_t done = 0, row = t->row; done < t->count; done += s->row, row++) {
        float *to = out + (s->rank == 2 ? row * s->stride[0][0] : strided_at(s, 0, row));
        const float *own = result->scalar ? from : from + done;
        if (s->row <= VL)
            vf_store_m(to, mask, result->scalar ? all : vf_load_m(own, mask));
        else
            spread_row(to, own, s->row, !result->scalar);
    }
}

static void finish(const struct run *run, const struct operand *result, const struct tile *t,
                   float *out)
{
    if (run->plan->gaps && run->plan->tile_rows)
        write_rows(run, result, t);
    else if (result->scalar)
        SIMD_FN(tile_fill)(out, *result->at, t->count);
    else if (run->plan->stream)
        SIMD_FN(tile_stream)(out, result->at, t->count);
}

static void run_tile(const struct run *run, const struct tile *t)
{
    const struct chain_plan *plan = run->plan;
    const struct chain *chain = &plan->chain;
    struct operand operands[CHAIN_INPUTS + CHAIN_STEPS];
    bool in_scratch = plan->stream || (plan->gaps && plan->tile_rows);
    int64_t at = plan->gaps ? strided_at(&plan->space, 0, t->row) + t->column : t->first;
    float *out = (float *)run->args->out[0] + at;
    for (int k = 0; k < chain->inputs; k++)
        if (plan->form[k] != CHAIN_UNUSED)
            operands[k].at = input_of(run, k, t, &operands[k].scalar);
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
