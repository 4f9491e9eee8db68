/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/pool.h"
#include "engine/graph/graph.h"
#include "engine/graph/op.h"
#include "engine/run/exe.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"

TEST(first_error_sticks)
{
    struct error err;
    struct graph *g = graph_new("broken");
    int x = noise_input(g, "x", shape_of(2, 3));
    int y = noise_input(g, "y", shape_of(2, 4));
    int z = graph_node(g, "Add", "sum", INPUTS(x, y), NO_ATTRS);
    assert_int_equal(z, NONE);
    assert_int_equal(graph_node(g, "NoSuchOperator", NULL, INPUTS(z), NO_ATTRS), NONE);
    graph_output(g, z);
    assert_int_not_equal(graph_check(g, &err), STATUS_OK);
    assert_non_null(strstr(err.message, "sum"));
    assert_non_null(strstr(err.message, "[2,3]"));
    graph_free(g);
}

TEST(names_stay_unique)
{
    struct graph *g = graph_new("names");
    int a = noise_input(g, "x", shape_of(2));
    int b = noise_input(g, "x", shape_of(2));
    assert_string_not_equal(g->values[a].name, g->values[b].name);
    for (int k = 0; k < 1000; k++)
        graph_const_f32(g, (float)k);
    assert_int_equal(graph_find_value(g, "x"), a);
    graph_rename(g, b, "other");
    assert_int_equal(graph_find_value(g, "other"), b);
    assert_int_equal(graph_find_value(g, "nothing"), NONE);
    graph_free(g);
}

TEST(compact_sorts_and_drops)
{
    struct graph *g = graph_new("order");
    int x = noise_input(g, "x", shape_of(2));
    int used = graph_node(g, "Relu", "used", INPUTS(x), NO_ATTRS);
    graph_node(g, "Relu", "unused", INPUTS(x), NO_ATTRS);
    int late = graph_node(g, "Neg", "late", INPUTS(x), NO_ATTRS);
    graph_output(g, used);
    g->nodes[0].inputs[0] = late; /* reads a node after it, as passes leave it */
    graph_compact(g);
    MUST(graph_check, g);
    assert_int_equal(g->node_count, 2);
    assert_string_equal(g->nodes[0].name, "late");
    assert_string_equal(g->nodes[1].name, "used");
    graph_free(g);
}

/* A pass leaves new nodes at the end. There the gradient of a weight would keep what it reads to
 * the end of the backward pass, and an exchange between ranks would begin only then. */
TEST(the_gradient_of_a_weight_is_computed_when_it_can_be)
{
    enum { LENGTH = 8 };
    struct graph *g = graph_new("order");
    int x = noise_input(g, "x", shape_of(2)), passed_on[LENGTH];
    g->phase = PHASE_BACKWARD;
    for (int k = 0; k < LENGTH; k++)
        passed_on[k] = graph_node(g, "Neg", NULL, INPUTS(k ? passed_on[k - 1] : x), NO_ATTRS);
    int turned = graph_node(g, "Relu", "turned", INPUTS(passed_on[1]), NO_ATTRS);
    int weight = graph_node(g, "Neg", "weight", INPUTS(turned), NO_ATTRS);
    g->phase = PHASE_UPDATE;
    graph_output(g,
                 graph_node(g, "Add", "update", INPUTS(weight, passed_on[LENGTH - 1]), NO_ATTRS));
    graph_compact(g);
    assert_int_equal(g->node_count, LENGTH + 3);
    assert_string_equal(g->nodes[2].name, "turned");
    assert_string_equal(g->nodes[3].name, "weight");
    assert_string_equal(g->nodes[LENGTH + 2].name, "update");
    graph_free(g);
}

TEST(copies_are_independent)
{
    struct graph *g = graph_new("original");
    int x = noise_input(g, "x", shape_of(2));
    graph_output(g, graph_node(g, "Relu", "node", INPUTS(x), NO_ATTRS));
    struct graph *copy = graph_copy(g);
    graph_node(copy, "Neg", NULL, INPUTS(x), NO_ATTRS);
    copy->nodes[0].inputs[0] = NONE;
    assert_int_equal(g->node_count, 1);
    assert_int_equal(g->nodes[0].inputs[0], x);
    graph_free(g);
    assert_string_equal(copy->nodes[0].name, "node");
    graph_free(copy);
}

TEST(fills_do_not_depend_on_neighbours)
{
    float whole[64], again[64];
    struct value value = {.name = "w", .dtype = DTYPE_F32, .shape = shape_of(64), .fill = noise()};
    value_materialise(&value, whole);
    value_materialise(&value, again);
    assert_memory_equal(whole, again, sizeof(whole));
    value.name = "v";
    value_materialise(&value, again);
    assert_memory_not_equal(whole, again, sizeof(whole));
    for (int k = 0; k < 64; k++)
        assert_true(whole[k] >= -1 && whole[k] < 1);
}

/* Of which there are so many that they have a way of their own. */
TEST(bytes_of_quantised_weights_are_as_any_integers)
{
    enum { COUNT = 5000 };
    struct fill fill = {.kind = FILL_INDEX, .a = 1, .b = 256};
    struct value value = {.name = "w", .dtype = DTYPE_U8, .shape = shape_of(COUNT), .fill = fill};
    uint8_t bytes[COUNT];
    int32_t integers[COUNT];
    value_materialise(&value, bytes);
    value.dtype = DTYPE_I32;
    value_materialise(&value, integers);
    for (int k = 0; k < COUNT; k++)
        assert_int_equal(bytes[k], integers[k]);
    value.fill = (struct fill){.kind = FILL_NIBBLES, .a = 1, .b = 16};
    value_materialise(&value, integers);
    value.dtype = DTYPE_U8;
    value_materialise(&value, bytes);
    double low = 0, high = 0;
    for (int k = 0; k < COUNT; k++) {
        assert_int_equal(bytes[k], integers[k]);
        assert_true(bytes[k] % 16 > 0 && bytes[k] / 16 > 0);
        low += (bytes[k] % 16 - 8.0) / COUNT;
        high += (bytes[k] / 16 - 8.0) / COUNT;
    }
    assert_true(fabs(low) < 0.3 && fabs(high) < 0.3);
}

TEST(threads_fill_as_one_does)
{
    enum { COUNT = 3 * MATERIALISE_TILE + 7 };
    static const enum dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F64, DTYPE_I32};
    struct pool *pool;
    assert_int_equal(pool_new(3, &pool, NULL), STATUS_OK);
    for (int k = 0; k < 4; k++) {
        struct fill fill = {.kind = k == 3 ? FILL_ZIPF : FILL_UNIFORM, .a = -3, .b = 500};
        struct value value = {
            .name = "w", .dtype = types[k], .shape = shape_of(COUNT), .fill = fill};
        size_t bytes = COUNT * dtype_size(types[k]);
        char *one = malloc(bytes), *many = malloc(bytes), tile[MATERIALISE_TILE * 8];
        value_materialise(&value, one);
        value_materialise_by(pool, &value, many);
        assert_memory_equal(one, many, bytes);
        assert_int_equal(value_tiles(&value), 4);
        value_materialise_tile(&value, 3, tile);
        assert_memory_equal(tile, one + bytes - 7 * dtype_size(types[k]), 7 * dtype_size(types[k]));
        free(one);
        free(many);
    }
    pool_free(pool);
}

TEST(indices_stay_in_range)
{
    int32_t ids[4096];
    enum fill_kind kinds[] = {FILL_INDEX, FILL_ZIPF};
    for (int k = 0; k < 2; k++) {
        struct value value = {.name = "ids",
                              .dtype = DTYPE_I32,
                              .shape = shape_of(4096),
                              .fill = {.kind = kinds[k], .a = 0, .b = 37}};
        value_materialise(&value, ids);
        bool seen[37] = {false};
        for (int i = 0; i < 4096; i++) {
            assert_in_range(ids[i], 0, 36);
            seen[ids[i]] = true;
        }
        for (int i = 0; i < 37; i++)
            assert_true(seen[i]);
    }
}

TEST(half_floats_round_to_even)
{
    assert_int_equal(half_from_float(1.0f), 0x3c00);
    assert_int_equal(half_from_float(65504.0f), 0x7bff);
    assert_int_equal(half_from_float(65520.0f), 0x7c00);
    assert_int_equal(half_from_float(0x1p-24f), 1);
    assert_int_equal(half_from_float(0x1p-25f), 0);
    assert_int_equal(half_from_float(-2.0f), 0xc000);
    assert_int_equal(bfloat_from_float(1.00390625f), 0x3f80); /* tie: to even */
    for (unsigned bits = 0; bits < 0x7c00; bits++)
        assert_int_equal(half_from_float(half_to_float((uint16_t)bits)), bits);
}

/* Every code, every middle between two neighbours and what lies beside it. */
TEST(f8_rounds_to_even)
{
    for (unsigned code = 0; code < 256; code++) {
        float value = f8_to_float((uint8_t)code);
        bool nan = (code & 0x7f) == 0x7f;
        int exponent = code >> 3 & 15, mantissa = code & 7;
        double size = exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
        assert_true(nan ? isnan(value) : (double)value == (code & 0x80 ? -size : size));
        assert_true(!signbit(value) == !(code & 0x80));
        assert_int_equal(f8_from_float(value), code);
        if ((code & 0x7f) >= 0x7e)
            continue;
        float next = f8_to_float((uint8_t)(code + 1)), middle = (value + next) / 2;
        assert_int_equal(f8_from_float(middle), code + (code & 1));
        assert_int_equal(f8_from_float(nextafterf(middle, value)), code);
        assert_int_equal(f8_from_float(nextafterf(middle, next)), code + 1);
    }
    assert_true(f8_to_float(0x7e) == 448.0f && f8_to_float(1) == 0x1p-9f);
    assert_int_equal(f8_from_float(0x1p-10f), 0); /* tie: to even */
    assert_int_equal(f8_from_float(1e-30f), 0);
    const float large[] = {449, 464, 480, 1e30f, INFINITY};
    for (int k = 0; k < ARRAY_COUNT(large); k++) {
        assert_int_equal(f8_from_float(large[k]), 0x7e);
        assert_int_equal(f8_from_float(-large[k]), 0xfe);
    }
    uint8_t codes[4];
    float back[4];
    floats_store(DTYPE_F8E4M3, (const float[]){1, -0.1f, 500, NAN}, codes, 4);
    floats_load(DTYPE_F8E4M3, codes, back, 4);
    assert_true(back[0] == 1 && back[1] == -0.1015625f && back[2] == 448 && isnan(back[3]));
}

TEST(strides_of_layouts)
{
    struct shape shape = shape_of(2, 3, 4, 5), pooled = shape_of(2, 8, 1, 1);
    struct desc plain = desc_dense(DTYPE_F32, &shape, LAYOUT_PLAIN);
    struct desc nhwc = desc_dense(DTYPE_F32, &shape, LAYOUT_NHWC);
    assert_int_equal(plain.stride[1], 20);
    assert_int_equal(nhwc.stride[1], 1);
    assert_int_equal(nhwc.stride[3], 3);
    assert_int_equal(nhwc.stride[0], 60);
    assert_true(desc_is_plain(&plain) && !desc_is_nhwc(&plain));
    assert_true(desc_is_nhwc(&nhwc) && !desc_is_plain(&nhwc));
    struct desc both = desc_dense(DTYPE_F32, &pooled, LAYOUT_NHWC);
    assert_true(desc_is_plain(&both) && desc_is_nhwc(&both));
    assert_int_equal(desc_bytes(&nhwc), 120 * sizeof(float));
}

/* It had one element, read from memory that an empty tensor does not have. */
TEST(an_empty_axis_read_backwards_is_empty)
{
    struct graph *g = graph_new("slice");
    int x = graph_input(g, "x", DTYPE_F32, shape_of(0, 3), (struct fill){0});
    int back = graph_const_i64(g, 1, (const int64_t[]){-1});
    int far = graph_const_i64(g, 1, (const int64_t[]){-9});
    int first = graph_const_i64(g, 1, (const int64_t[]){0});
    int y = graph_node(g, "Slice", NULL, INPUTS(x, back, far, first, back), NO_ATTRS);
    assert_false(g->failed);
    assert_int_equal(g->values[y].shape.dim[0], 0);
    graph_free(g);
}
