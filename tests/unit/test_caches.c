/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys that are turned by their position and put into a cache that is a state, one token after the
 * other as in the decoding of text. */
#include "engine/ops/family/gradient.h"
#include "engine/reference/reference.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

enum { BATCH = 2, HEADS = 3, SIZE = 16, POSITIONS = 40, STEPS = 7, VALUES_MAX = 8 };

/* Heads as samples of their own: what shows a state's next contents lies where they do. */
static int by_heads(struct graph *g, int x)
{
    struct shape shape = gradient_shape(g, x);
    const int64_t flat[] = {BATCH * HEADS, shape.dim[2], shape.dim[3]};
    return graph_node(g, "Reshape", NULL, INPUTS(x, graph_const_i64(g, 3, flat)), NO_ATTRS);
}

/* What queries make of all keys; `round`: the cache goes on at its start when it is full. */
static struct graph *decoder(enum dtype dtype, bool round)
{
    struct graph *g = graph_new("decoder");
    struct fill zero = {.kind = FILL_CONST};
    int at = graph_input(g, "at", DTYPE_I64, shape_of(BATCH), zero);
    int key = noise_input(g, "key", shape_of(BATCH, HEADS, 1, SIZE));
    int query = noise_input(g, "query", shape_of(BATCH, HEADS, 1, SIZE));
    int cosines = noise_param(g, "cosines", shape_of(2 * POSITIONS, SIZE / 2));
    int sines = noise_param(g, "sines", shape_of(2 * POSITIONS, SIZE / 2));
    int past = graph_state(g, "keys", dtype, shape_of(BATCH, HEADS, POSITIONS, SIZE), zero);
    const int64_t each[] = {BATCH, 1};
    int positions =
        graph_node(g, "Reshape", NULL, INPUTS(at, graph_const_i64(g, 2, each)), NO_ATTRS);
    int turned =
        graph_node(g, "RotaryEmbedding", NULL, INPUTS(key, cosines, sines, positions), NO_ATTRS);
    int keys = graph_node(g, "TensorScatter", "put", INPUTS(past, make_cast(g, turned, dtype), at),
                          ATTRS(attr_string("mode", round ? "circular" : "linear")));
    graph_state_after(g, past, keys);
    keys = make_cast(g, keys, DTYPE_F32);
    if (!round) {
        keys = by_heads(g, keys);
        query = by_heads(g, query);
    }
    keys = make_transposed(g, keys);
    graph_output(g, graph_node(g, "MatMul", NULL, INPUTS(query, keys), NO_ATTRS));
    MUST(graph_check, g);
    return g;
}

static int output_of_state(const struct graph *g)
{
    int k = 0;
    while (g->outputs[k] != g->states[0].after)
        k++;
    return k;
}

/* Sample b is at position first + b + step. */
static void set_places(const struct graph *g, struct exe *exe, struct ref_tensor *inputs,
                       int64_t first)
{
    int64_t *at = (int64_t *)(void *)exe_input_named(exe, "at");
    for (int64_t b = 0; b < BATCH; b++)
        at[b] = inputs[input_named(g, "at")].i[b] = first + b;
}

/* Some tokens, each compared with the reference's. */
static void decode(enum precision precision, enum dtype dtype, bool round, double bound)
{
    struct graph *g = decoder(dtype, round);
    struct exe_options options = {.threads = 2, .no_tune = true, .precision = precision};
    struct exe *exe = compiled(g, &options);
    struct ref_tensor inputs[VALUES_MAX] = {0}, outputs[VALUES_MAX], got;
    MUST(reference_inputs, g, inputs, NULL);
    for (int64_t step = 0; step < STEPS; step++) {
        set_places(g, exe, inputs, (round ? POSITIONS - 4 : 0) + step);
        exe_run(exe);
        MUST(reference_run, g, inputs, outputs, NULL);
        MUST(ref_from_data, &got, DTYPE_F32, &outputs[0].shape, exe_output(exe, 0));
        if (ref_rel_error(&got, &outputs[0]) > bound)
            fail_msg("step %d: error %g", (int)step, ref_rel_error(&got, &outputs[0]));
        ref_release(&got);
        reference_carry(g, inputs, outputs);
        for (int k = 0; k < g->output_count; k++)
            ref_release(&outputs[k]);
    }
    const struct graph *made = exe_graph(exe);
    if (precision == PRECISION_BF16) /* key, query and result: nothing casts the whole cache */
        assert_int_equal(count_ops(made, "Cast"), 3);
    assert_ptr_equal(exe_input(exe, input_named(made, "keys")),
                     exe_output(exe, output_of_state(made)));
    for (int k = 0; k < g->input_count; k++)
        ref_release(&inputs[k]);
    exe_graph_free(exe, g);
}

TEST(keys_are_put_in_place)
{
    for (int round = 0; round < 2; round++)
        decode(PRECISION_F32, DTYPE_F32, round, 1e-5);
}

TEST(keys_of_f32_are_put_in_place_in_bf16)
{
    for (int round = 0; round < 2; round++)
        decode(PRECISION_BF16, DTYPE_F32, round, 0.01);
}

TEST(keys_of_bf16_are_put_in_place)
{
    for (int round = 0; round < 2; round++) {
        decode(PRECISION_F32, DTYPE_BF16, round, 0.01);
        decode(PRECISION_BF16, DTYPE_BF16, round, 0.02);
    }
}
