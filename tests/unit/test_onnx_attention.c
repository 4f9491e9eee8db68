/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX's Attention becomes one node of ours where that computes it. Its scores, when they are
 * wanted, make it several nodes instead: both must give the same. */

#include <stdio.h>
#include <stdlib.h>

#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"
#include "tests/lib/onnx_build.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/onnx/onnx.h"

enum { INPUTS_MAX = 8, TEXT_BYTES = 512 };

static enum status import(const char *text, int64_t opset, struct graph **g, struct error *err)
{
    struct builder b = {0};
    build_model(&b, opset);
    build_graph(&b, text);
    build_end(&b);
    enum status status = onnx_import_memory(b.bytes, b.size, NULL, "f.onnx", NULL, g, err);
    build_release(&b);
    return status;
}

/* Output 0. */
static struct ref_tensor result(const struct graph *g)
{
    struct ref_tensor in[INPUTS_MAX] = {0}, out[INPUTS_MAX] = {0}, first;
    for (int k = 0; k < g->input_count; k++) {
        const struct value *value = &g->values[g->inputs[k]];
        void *data = malloc(value_size(value) + 1);
        value_materialise(value, data);
        MUST(ref_from_data, &in[k], value->dtype, &value->shape, data);
        free(data);
    }
    MUST(reference_run, g, in, out, NULL);
    first = out[0];
    for (int k = 0; k < INPUTS_MAX; k++) {
        ref_release(&in[k]);
        if (k)
            ref_release(&out[k]);
    }
    return first;
}

static const struct row {
    const char *inputs, *call; /* what comes before and after "y = Attention" */
    int64_t opset;
    bool causal, zeros, masked; /* ours: its attributes, and whether it has a mask */
} rows[] = {
    {"in q f32[2,3,4,8]; in k f32[2,3,6,8]; in v f32[2,3,6,8]", "(q k v)", 23, false, false, false},
    {"in q f32[2,4,24]; in k f32[2,6,8]; in v f32[2,6,8]",
     "(q k v) q_num_heads=3 kv_num_heads=1 scale=0.2", 23, false, false, false},
    /* The last query is that of the last key, or of one before it. */
    {"in q f32[2,6,5,8]; in k f32[2,2,5,8]; in v f32[2,2,5,8]", "(q k v) is_causal=1", 23, true,
     false, false},
    {"in q f32[2,6,3,8]; in k f32[2,2,5,8]; in v f32[2,2,5,8]", "(q k v) is_causal=1", 23, false,
     false, true},
    {"in q f32[2,6,5,8]; in k f32[2,2,3,8]; in v f32[2,2,3,8]", "(q k v) is_causal=1", 23, false,
     false, true},
    {"in q f32[2,2,3,8]; in k f32[2,2,3,8]; in v f32[2,2,3,8]; in p f32[2,2,4,8];"
     "in r f32[2,2,4,8]",
     "(q k v - p r) is_causal=1", 23, true, false, false},
    {"in q f32[2,3,16]; in k f32[2,3,8]; in v f32[2,3,8]; in p f32[2,1,4,8]; in r f32[2,1,4,8]",
     "(q k v - p r) is_causal=1 q_num_heads=2 kv_num_heads=1", 24, true, false, false},
    /* Masks: of numbers, of truth, short, and none for a whole row. */
    {"in q f32[2,2,3,8]; in k f32[2,2,3,8]; in v f32[2,2,3,8]; in b f32[2,1,3,3]",
     "(q k v b) is_causal=1", 23, true, true, true},
    {"in q f32[2,2,3,8]; in k f32[2,2,3,8]; in v f32[2,2,3,8];"
     "const b bool[3,3]=1,1,0,0,0,0,1,0,1",
     "(q k v b)", 23, false, true, true},
    {"in q f32[2,2,3,8]; in k f32[2,2,5,8]; in v f32[2,2,5,8]; in b f32[3,4]", "(q k v b)", 24,
     false, true, true},
    {"in q f32[2,2,3,8]; in k f32[2,2,5,8]; in v f32[2,2,5,8];"
     "const b bool[2,1,3,4]=1,1,0,0,0,0,0,0,1,0,1,1",
     "(q k v b)", 24, false, true, true},
    {"in q f32[2,2,3,8]; in k f32[2,2,5,8]; in v f32[2,2,5,8]; const b bool[3,1]=1,0,1",
     "(q k v b)", 23, false, true, true},
    {"in q f32[2,2,3,8]; in k f32[2,2,5,8]; in v f32[2,2,5,8]; const b bool[3,1]=1,0,1",
     "(q k v b)", 24, false, true, true},
    /* Sequences that end before the keys do; one of them has fewer keys than queries. */
    {"in q f32[2,2,3,8]; in k f32[2,2,7,8]; in v f32[2,2,7,8]; const n i64[2]=5,2",
     "(q k v - - - n)", 24, false, true, true},
    {"in q f32[2,2,3,8]; in k f32[2,2,7,8]; in v f32[2,2,7,8]; const n i64[2]=5,2",
     "(q k v - - - n) is_causal=1", 24, false, true, true},
    {"in q f32[2,2,7,8]; in k f32[2,2,7,8]; in v f32[2,2,7,8]",
     "(q k v) left_window_size=2 is_causal=1", 25, true, true, true},
    {"in q f32[2,2,3,8]; in k f32[2,2,7,8]; in v f32[2,2,7,8]; const n i64[2]=5,6",
     "(q k v - - - n) left_window_size=1 right_window_size=1", 25, false, true, true},
};

TEST(one_node_gives_what_several_give)
{
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        char text[2][TEXT_BYTES];
        struct graph *g[2];
        struct ref_tensor y[2];
        for (int n = 0; n < 2; n++) {
            snprintf(text[n], TEXT_BYTES, "%s; y%s = Attention%s; out y f32[]%s", rows[k].inputs,
                     n ? " - - s" : "", rows[k].call, n ? "; out s f32[]" : "");
            MUST(import, text[n], rows[k].opset, &g[n]);
            y[n] = result(g[n]);
        }
        assert_int_equal(count_ops(g[0], "Attention"), 1);
        assert_int_equal(count_ops(g[0], "Softmax"), 0);
        assert_int_equal(count_ops(g[1], "Attention"), 0);
        for (int n = 0; n < g[0]->node_count; n++) {
            const struct node *node = &g[0]->nodes[n];
            if (node->op != &op_attention)
                continue;
            assert_int_equal(node_int(node, "causal", 0), rows[k].causal);
            assert_int_equal(node_int(node, "zero_empty", 0), rows[k].zeros);
            assert_int_equal(node->op_inputs, rows[k].masked ? 4 : 3);
        }
        assert_true(shape_equal(&y[0].shape, &y[1].shape));
        assert_true(ref_rel_error(&y[0], &y[1]) < 1e-6);
        for (int n = 0; n < 2; n++) {
            ref_release(&y[n]);
            graph_free(g[n]);
        }
    }
}

/* Layers have one mask between them, or several. */
TEST(masks_are_made_once)
{
    static const char *const seconds[] = {"b", "c"};
    for (int k = 0; k < 2; k++) {
        char text[TEXT_BYTES];
        struct graph *g;
        snprintf(text, sizeof(text),
                 "in q f32[2,2,3,8]; in k f32[2,2,3,8]; in b bool[3,3]; in c bool[3,3];"
                 "x = Attention(q k k b) is_causal=1; y = Attention(x k k %s) is_causal=1;"
                 "out y f32[]",
                 seconds[k]);
        MUST(import, text, 24, &g);
        assert_int_equal(count_ops(g, "Attention"), 2);
        assert_int_equal(count_ops(g, "Where"), 1 + k);
        graph_free(g);
    }
}

/* What ours does not compute. */
TEST(the_rest_becomes_several_nodes)
{
    static const char *const calls[] = {
        "in v f32[2,2,5,8]; y = Attention(q k v) softcap=2.0",
        "in v f32[2,2,5,6]; y = Attention(q k v)",
        "in v f32[2,2,5,8]; y = Attention(q k v) softmax_precision=11",
        "in v f32[2,2,5,8]; y - - s = Attention(q k v) qk_matmul_output_mode=3; out s f32[]",
    };
    for (int k = 0; k < ARRAY_COUNT(calls); k++) {
        char text[TEXT_BYTES];
        struct graph *g;
        snprintf(text, sizeof(text), "in q f32[2,4,3,8]; in k f32[2,2,5,8]; %s; out y f32[]",
                 calls[k]);
        MUST(import, text, 24, &g);
        assert_int_equal(count_ops(g, "Attention"), 0);
        assert_int_equal(count_ops(g, "MatMul"), 2);
        graph_free(g);
    }
}

TEST(what_makes_no_sense_is_refused)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"in q f32[2,3,8]; in k f32[2,3,8]; y = Attention(q k)", "has Q, K, V"},
        {"in q f32[2,3,8]; in k f32[2,3,8]; y = Attention(q k k)", "0 heads"},
        {"in q f32[2,3,8]; in k f32[2,3,8]; y = Attention(q k k) q_num_heads=3 kv_num_heads=2",
         "3 heads, 2 of keys"},
        {"in q f32[2,3,8]; in k f32[2,3,8]; y = Attention(q k k) q_num_heads=3 kv_num_heads=3",
         "Q [2,3,8]"},
        {"in q f32[2,4,3,8]; in k f32[2,3,3,8]; y = Attention(q k k)", "4 heads, 3 of keys"},
        {"in q f32[2,4,3,8]; in k f32[2,4,3,6]; y = Attention(q k k)", "K [2,4,3,6]"},
        {"in q f32[2,4,3,8]; in k f32[2,32]; y = Attention(q k k)", "K [2,32]"},
        {"in q f32[2,4,0,8]; in k f32[2,4,3,8]; y = Attention(q k k)", "Q [2,4,0,8]"},
        {"in q f32[2,4,3,8]; in b f32[3,4]; y = Attention(q q q b)", "a mask [3,4]"},
        {"in q f32[2,4,3,8]; in b f32[1,2,4,3,3]; y = Attention(q q q b)", "a mask [1,2,4,3,3]"},
        {"in q f32[2,4,3,8]; y = Attention(q q q - q)", "belong together"},
        {"in q f32[2,4,3,8]; in n i64[2]; y = Attention(q q q - q q n)", "belong together"},
        {"in q f32[2,4,3,8]; in p f32[2,3,3,8]; y = Attention(q q q - p q)", "do not fit"},
        {"in q f32[2,4,3,8]; in n i64[3]; y = Attention(q q q - - - n)", "one number per sequence"},
        {"in q f32[2,4,3,8]; in n f32[2]; y = Attention(q q q - - - n)", "must be integers"},
        {"in q i64[2,4,3,8]; y = Attention(q q q)", "must be floats"},
        {"in q f32[2,4,3,8]; y = Attention(q q q) scale=[1,2]", "must be a number"},
        {"in q f32[2,4,3,8]; y = Attention(q q q) heads=2", "\"heads\" of Attention"},
        {"in q f32[2,4,3,8]; y = Attention(q q q) left_window_size=-2", "a window"},
        {"in q f32[2,4,3,8]; y = Attention(q q q) softmax_precision=7", "no type of floats"},
        {"in q f32[2,4,3,8]; y = Attention(q q q) qk_matmul_output_mode=4", "mode 4"},
        {"in q f32[2,4,3,8]; y a b s t = Attention(q q q)", "no 5 outputs"},
    };
    for (int k = 0; k < ARRAY_COUNT(wrong); k++) {
        char text[TEXT_BYTES];
        struct graph *g = NULL;
        struct error err = {0};
        snprintf(text, sizeof(text), "%s; out y f32[]", wrong[k].text);
        enum status status = import(text, 25, &g, &err);
        if (status == STATUS_OK || !strstr(err.message, wrong[k].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", text, err.message, wrong[k].says);
    }
    struct graph *g;
    FAILS(STATUS_UNSUPPORTED, "operator \"Attention\"", import,
          "in q f32[2,4,3,8]; y = Attention(q q q); out y f32[]", 22, &g);
}
