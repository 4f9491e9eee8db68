/* SPDX-License-Identifier: Apache-2.0
 * Einsum as products of matrices: what the pass leaves, and that it computes the same. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/random.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/lib/einsum.h"
#include "engine/reference/reference.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

static int einsum(struct graph *g, const char *equation, int count, const int *inputs)
{
    return graph_node(g, "Einsum", "einsum", count, inputs,
                      ATTRS(attr_string("equation", equation)));
}

/* Positive, so that no sum is lost among its terms' roundings. */
static const struct fill positive = {.kind = FILL_UNIFORM, .a = 0.1, .b = 1};

static struct graph *graph_from(const char *equation, enum dtype dtype, int count,
                                const struct shape *shapes)
{
    struct graph *g = graph_new("einsum");
    int inputs[EINSUM_OPERANDS_MAX];
    for (int k = 0; k < count; k++) {
        char name[8];
        snprintf(name, sizeof(name), "x%d", k);
        inputs[k] = graph_input(g, name, dtype, shapes[k], positive);
    }
    graph_output(g, einsum(g, equation, count, inputs));
    return g;
}

static struct ref_tensor result_of(const struct graph *g)
{
    struct ref_tensor result = {0};
    MUST(graph_check, g);
    MUST(reference_run, g, NULL, &result, NULL);
    return result;
}

/* The graph computes after the pass what it computed before. */
static void rewrite(struct graph *g, const char *equation)
{
    struct ref_tensor before = result_of(g);
    MUST(pass_turn_einsum, g);
    graph_compact(g);
    struct ref_tensor after = result_of(g);
    if (!shape_equal(&before.shape, &after.shape) || !(ref_rel_error(&after, &before) <= 1e-12))
        fail_msg("\"%s\" has another result", equation);
    ref_release(&before);
    ref_release(&after);
}

static struct exe *executable(const struct graph *g)
{
    const struct exe_options untuned = {
        .threads = 1, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
    return compiled(g, &untuned);
}

static void run_as_executable(const struct graph *g, const char *equation)
{
    struct exe *exe = executable(g);
    double error = run_error(exe, g);
    bool wide = dtype_size(g->values[g->outputs[0]].dtype) >= sizeof(float);
    if (!(error <= (wide ? 1e-5 : 8e-3)))
        fail_msg("\"%s\" has an error of %g", equation, error);
    exe_free(exe);
}

/* ---- what it becomes ---- */

struct becomes {
    const char *equation;
    struct shape left, right; /* right of rank 0: there is none */
    int products, sums, muls, transposes, reshapes;
};

/* Transposes that only exchange the last two axes are among them: products read through those. */
TEST(few_elements_are_moved)
{
    const struct becomes rows[] = {
        {"bij,bjk->bik", shape_of(3, 4, 5), shape_of(3, 5, 6), .products = 1},
        {"ij,jk", shape_of(4, 5), shape_of(5, 6), .products = 1},
        {"ij,kj->ik", shape_of(4, 5), shape_of(6, 5), .products = 1, .transposes = 1},
        {"ji,jk->ik", shape_of(5, 4), shape_of(5, 6), .products = 1, .transposes = 1},
        {"jk,ij->ik", shape_of(5, 6), shape_of(4, 5), .products = 1},
        {"bnqd,bnkd->bnqk", shape_of(2, 3, 4, 5), shape_of(2, 3, 6, 5), .products = 1,
         .transposes = 1},
        {"bqhd,bkhd->bhqk", shape_of(2, 4, 3, 5), shape_of(2, 6, 3, 5), .products = 1,
         .transposes = 3},
        {"aecd,abcd->acbe", shape_of(2, 6, 3, 5), shape_of(2, 4, 3, 5), .products = 1,
         .transposes = 3},
        {"bsm,mhd->bshd", shape_of(2, 4, 6), shape_of(6, 3, 5), .products = 1, .reshapes = 2},
        {"bshd,hdm->bsm", shape_of(2, 4, 3, 5), shape_of(3, 5, 6), .products = 1, .reshapes = 2},
        /* The right one is the same for all b, so that the result need not be moved. */
        {"bind,snd->bnis", shape_of(2, 32, 3, 5), shape_of(7, 3, 5), .products = 1,
         .transposes = 3},
        {"...ij,jk->...ik", shape_of(2, 3, 4, 5), shape_of(5, 6), .products = 1},
        {"i,ij->j", shape_of(4), shape_of(4, 5), .products = 1, .reshapes = 2},
        {"bi,bi->b", shape_of(6, 4), shape_of(6, 4), .muls = 1, .sums = 1},
        {"bi,bi->b", shape_of(6, 300), shape_of(6, 300), .products = 1, .reshapes = 3},
        {"i,j->ij", shape_of(4), shape_of(5), .muls = 1, .reshapes = 1},
        {"bij,ij->bij", shape_of(2, 4, 5), shape_of(4, 5), .muls = 1},
        {"ij,ji->ij", shape_of(4, 5), shape_of(5, 4), .muls = 1, .transposes = 1},
        {"ik,kj->j", shape_of(6, 4), shape_of(4, 5), .products = 1, .sums = 1, .reshapes = 2},
        {"abc->cab", shape_of(2, 3, 4), {0}, .transposes = 1},
        {"abc->ca", shape_of(2, 3, 4), {0}, .sums = 1, .transposes = 1},
        {"abc->ac", shape_of(2, 1, 4), {0}, .reshapes = 1},
        {"abc->cab", shape_of(1, 1, 4), {0}, .reshapes = 1},
        {"abc->abc", shape_of(2, 3, 4), {0}, .products = 0},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        const struct becomes *r = &rows[k];
        const struct shape shapes[] = {r->left, r->right};
        struct graph *g = graph_from(r->equation, DTYPE_F32, r->right.rank ? 2 : 1, shapes);
        rewrite(g, r->equation);
        assert_int_equal(count_ops(g, "Einsum"), 0);
        if (count_ops(g, "MatMul") != r->products || count_ops(g, "ReduceSum") != r->sums ||
            count_ops(g, "Mul") != r->muls || count_ops(g, "Transpose") != r->transposes ||
            count_ops(g, "Reshape") != r->reshapes)
            fail_msg("\"%s\" became %d MatMul, %d ReduceSum, %d Mul, %d Transpose, %d Reshape",
                     r->equation, count_ops(g, "MatMul"), count_ops(g, "ReduceSum"),
                     count_ops(g, "Mul"), count_ops(g, "Transpose"), count_ops(g, "Reshape"));
        graph_free(g);
    }
}

static int einsums_left(const char *equation, enum dtype dtype, int count,
                        const struct shape *shapes)
{
    struct graph *g = graph_from(equation, dtype, count, shapes);
    rewrite(g, equation);
    run_as_executable(g, equation);
    int left = count_ops(g, "Einsum");
    graph_free(g);
    return left;
}

TEST(odd_ones_stay)
{
    const struct shape square = shape_of(4, 4), none = shape_of(4, 0);
    const struct shape matrices[] = {square, square, square};
    const struct shape empty[] = {none, shape_of(0, 4)};
    assert_int_equal(einsums_left("ii->i", DTYPE_F32, 1, &square), 1);
    assert_int_equal(
        einsums_left("iij,jk->ik", DTYPE_F32, 2, (const struct shape[]){shape_of(4, 4, 4), square}),
        1);
    assert_int_equal(einsums_left("ij,jk->ik", DTYPE_F32, 2, empty), 1);
    assert_int_equal(einsums_left("ij,jk->ik", DTYPE_F64, 2, matrices), 1);
    assert_int_equal(einsums_left("ij,jk->ik", DTYPE_I32, 2, matrices), 1);
}

/* The least product of two is larger than all that is given and wanted. */
TEST(a_large_product_on_the_way_is_not_made)
{
    const struct shape cube = shape_of(5, 5, 5), square = shape_of(4, 4);
    const struct shape few[] = {square, square, shape_of(4, 4, 4, 4)};
    const struct shape many[] = {cube, cube, cube, cube};
    assert_int_equal(einsums_left("ab,cd,abcd->", DTYPE_F32, 3, few), 0);
    assert_int_equal(einsums_left("abc,ade,bdf,cef->", DTYPE_F32, 4, many), 1);
}

/* In 16 bits a sum on the way would be rounded, where Einsum rounds its result alone. */
TEST(sixteen_bits_are_rounded_once)
{
    const struct shape shapes[] = {shape_of(6, 4), shape_of(4, 5), shape_of(5, 3)};
    assert_int_equal(einsums_left("ij,jk->ik", DTYPE_BF16, 2, shapes), 0);
    assert_int_equal(einsums_left("ij->j", DTYPE_F16, 1, shapes), 0);
    assert_int_equal(einsums_left("ij,jk->k", DTYPE_BF16, 2, shapes), 1);
    assert_int_equal(einsums_left("ij,jk,kl->il", DTYPE_BF16, 3, shapes), 1);
}

/* ---- attention ---- */

enum { B = 2, S = 6, G = 3, D = 8 };

static int projected(struct graph *g, int x, const char *name)
{
    int w = noise_param(g, name, shape_of(G * D, G, D));
    return einsum(g, "bsm,mgd->bsgd", 2, (const int[]){x, w});
}

/* As Keras and JAX write it: with projections to heads, and keys before queries. */
TEST(attention_is_found_in_einsums)
{
    for (int turned = 0; turned < 2; turned++) {
        struct graph *g = graph_new("attention");
        int x = noise_input(g, "x", shape_of(B, S, G * D)),
            w = noise_param(g, "w", shape_of(G, D, 5));
        int q = projected(g, x, "q"), k = projected(g, x, "k"), v = projected(g, x, "v");
        int scores = turned ? einsum(g, "aecd,abcd->acbe", 2, (const int[]){k, q})
                            : einsum(g, "bqgd,bkgd->bgqk", 2, (const int[]){q, k});
        int y = graph_node(g, "Softmax", NULL, INPUTS(scores), NO_ATTRS);
        y = einsum(g, "bgqk,bkgd->bqgd", 2, (const int[]){y, v});
        graph_output(g, einsum(g, "bqgd,gdm->bqm", 2, (const int[]){y, w}));
        rewrite(g, "attention");
        MUST(pass_find_attention, g);
        graph_compact(g);
        assert_int_equal(count_ops(g, "Attention"), 1);
        assert_int_equal(count_ops(g, "Transpose"), 0);
        run_as_executable(g, "attention");
        graph_free(g);
    }
}

/* No step of an executable moves a weight. */
TEST(weights_are_moved_once)
{
    struct graph *g = graph_new("weights");
    int x = noise_input(g, "x", shape_of(B, S, G, D)), w = noise_param(g, "w", shape_of(5, G, D));
    graph_output(g, einsum(g, "bsgd,mgd->bsm", 2, (const int[]){x, w}));
    struct exe *exe = executable(g);
    for (int s = 0; s < exe_step_count(exe); s++)
        assert_ptr_equal(exe_step_at(exe, s).node->op, &op_mat_mul);
    assert_true(run_error(exe, g) <= 1e-5);
    exe_graph_free(exe, g);
}

/* ---- any equation ---- */

enum { LETTERS = 6, TRIES = 4000 };

struct maker {
    uint64_t stream, next;
    int64_t size[LETTERS];
    bool used[LETTERS];
    bool repeats, empty, ellipses;
};

static int below(struct maker *m, int bound)
{
    return (int)(random_uniform(m->stream, m->next++) * bound);
}

/* Some letters in any order. */
static int letters(struct maker *m, int most, int *letter)
{
    int all[LETTERS], count = below(m, most + 1);
    for (int k = 0; k < LETTERS; k++) {
        int at = below(m, k + 1);
        all[k] = k;
        all[k] = all[at];
        all[at] = k;
    }
    for (int k = 0; k < count; k++)
        letter[k] = all[k];
    return count;
}

enum { TEXT = 80 };

static void write(char text[TEXT], const char *more)
{
    size_t at = strlen(text);
    snprintf(text + at, TEXT - at, "%s", more);
}

static void write_letter(char text[TEXT], int letter)
{
    write(text, (const char[]){(char)('a' + letter), '\0'});
}

/* Writes a term and makes its operand's shape. */
static struct shape operand(struct maker *m, char equation[TEXT])
{
    int letter[LETTERS + 1], count = letters(m, 4, letter);
    int ellipsis = m->ellipses ? below(m, 3) : 0;
    struct shape shape = {0};
    bool again = count > 0 && below(m, 25) == 0;
    if (again)
        letter[count++] = letter[0];
    if (m->ellipses)
        write(equation, "...");
    for (int k = 0; k < ellipsis; k++) /* of sizes 2 and 3, or of one element */
        shape.dim[shape.rank++] = below(m, 4) ? 1 + ellipsis - k : 1;
    for (int k = 0; k < count; k++) {
        bool one = below(m, 8) == 0 && m->size[letter[k]] != 0;
        write_letter(equation, letter[k]);
        m->used[letter[k]] = true;
        m->empty = m->empty || m->size[letter[k]] == 0;
        shape.dim[shape.rank++] = one ? 1 : m->size[letter[k]];
    }
    /* Its diagonal is meant, unless it is repeated along one of the two. */
    m->repeats =
        m->repeats || (again && shape.dim[ellipsis] != 1 && shape.dim[shape.rank - 1] != 1);
    return shape;
}

static int any_equation(uint64_t stream, struct maker *m, char equation[TEXT], struct shape *shapes)
{
    static const int64_t sizes[] = {1, 1, 2, 3, 5, 7, 34};
    *m = (struct maker){.stream = stream};
    int letter[LETTERS], count = 1 + below(m, 3);
    m->ellipses = below(m, 4) == 0;
    for (int k = 0; k < LETTERS; k++)
        m->size[k] = below(m, 60) == 0 ? 0 : sizes[below(m, count == 3 ? 6 : ARRAY_COUNT(sizes))];
    equation[0] = '\0';
    for (int k = 0; k < count; k++) {
        write(equation, k ? "," : "");
        shapes[k] = operand(m, equation);
    }
    write(equation, m->ellipses ? "->..." : "->");
    int wanted = letters(m, 5, letter);
    for (int k = 0; k < wanted; k++)
        if (m->used[letter[k]])
            write_letter(equation, letter[k]);
    return count;
}

/* One or two factors without a diagonal always become something else. */
TEST(any_equation_has_the_same_result)
{
    int turned[4] = {0}, kept = 0;
    for (uint64_t t = 0; t < TRIES; t++) {
        struct maker m;
        struct shape shapes[3];
        char equation[TEXT];
        int count = any_equation(t, &m, equation, shapes);
        struct graph *g = graph_from(equation, DTYPE_F32, count, shapes);
        if (t % 5 == 0)
            run_as_executable(g, equation);
        rewrite(g, equation);
        int left = count_ops(g, "Einsum");
        if (left != (m.repeats || m.empty) && (count < 3 || m.repeats || m.empty))
            fail_msg("\"%s\": %d Einsums are left", equation, left);
        turned[count] += !left;
        kept += left;
        graph_free(g);
    }
    assert_true(turned[1] > TRIES / 5 && turned[2] > TRIES / 5 && turned[3] > TRIES / 5);
    assert_true(kept > TRIES / 50);
}
