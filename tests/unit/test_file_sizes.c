/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model file leaves open: its batch, known when it is planned and the one that it is
 * imported with, and other sizes, which are parameters of its points. */
#include <stdio.h>
#include <unistd.h>

#include "engine/graph/cost.h"
#include "harness/suite/plan.h"
#include "harness/suite/point_params.h"
#include "tests/lib/onnx_build.h"
#include "tests/lib/unit.h"
#include "workloads/model_file.h"
#include "workloads/onnx/open_dims.h"

/* 0: the bytes do not say it. */
static int64_t batch_of(const void *bytes, size_t size)
{
    struct arena arena = {.head = NULL};
    struct open_dims dims;
    int64_t batch =
        open_dims_read(bytes, size, &arena, &dims) ? open_dims_batch(&dims, NULL, 0) : 0;
    arena_release(&arena);
    return batch;
}

/* What the import makes of the file with this batch. */
static int64_t imported_batch(const struct builder *b, int64_t batch)
{
    const struct onnx_import_options options = {.batch = batch};
    struct graph *g;
    struct graph_cost cost;
    MUST(onnx_import_memory, b->bytes, b->size, NULL, "test.onnx", &options, &g);
    graph_cost(g, &cost);
    graph_free(g);
    return cost.batch;
}

static void batch_is(const char *text, int64_t batch)
{
    struct builder b = {0};
    build_file(&b, text);
    assert_int_equal(batch_of(b.bytes, b.size), batch);
    assert_int_equal(imported_batch(&b, 0), batch);
    assert_int_equal(imported_batch(&b, batch), batch);
    build_release(&b);
}

TEST(the_batch_of_a_file_is_what_it_is_imported_with)
{
    (void)state;
    batch_is("in x f32[6,3]; y = Relu(x); out y f32[6,3]", 6);
    batch_is("in x f32[N,3]; y = Relu(x); out y f32[N,3]", 1);
    batch_is("in x f32[0,3]; y = Relu(x); out y f32[N,3]", 1);
    batch_is("in x f32[]; y = Relu(x); out y f32[]", 1);
    batch_is("const w f32[3]=1; y = Relu(w); out y f32[3]", 1);
    /* Before IR 4 weights were inputs, too. */
    batch_is("in w f32[7,3]; const w f32[7,3]=1; in x f32[5,3]; y = Relu(x); out y f32[5,3]", 5);
}

TEST(bytes_that_are_no_model_have_no_batch)
{
    static const unsigned char cut[] = {0x3a, 0x7f, 0x5a}, number[] = {0x38, 0x05};
    (void)state;
    assert_int_equal(batch_of("", 0), 0);
    assert_int_equal(batch_of("no model at all", 15), 0);
    assert_int_equal(batch_of(cut, sizeof(cut)), 0);
    assert_int_equal(batch_of(number, sizeof(number)), 0);
    for (int k = 0; k < hostile_count(); k++) { /* none may crash */
        struct builder b = {0};
        hostile_build(k, &b);
        batch_of(b.bytes, b.size);
        build_release(&b);
    }
}

/* Bug: of 600 inputs each looked at all fields of an initialiser without a name, and nobody counted
 * them: with more of both a plan took hours. */
TEST(a_file_of_too_many_fields_has_no_batch)
{
    struct builder b = {0};
    (void)state;
    build_model(&b, 17);
    build_open(&b, 5);
    for (int k = 0; k < 400000; k++)
        build_number(&b, 2, 1);
    build_close(&b);
    for (int k = 0; k < 600; k++)
        build_input(&b, "x", 1, "2,3");
    build_end(&b);
    assert_int_equal(batch_of(b.bytes, b.size), 0);
    build_release(&b);
}

/* ---- sizes that a file leaves open ---- */

static const char two_open[] = "in ids i64[batch,sequence]; in positions i64[sequence]; "
                               "y = Add(ids positions); out y i64[batch,sequence]";

static enum status import_sized(const char *text, const char *const *sizes, int count,
                                struct graph **g, struct error *err)
{
    const struct onnx_import_options options = {.dims = sizes, .dim_count = count};
    struct builder b = {0};
    build_file(&b, text);
    enum status status = onnx_import_memory(b.bytes, b.size, NULL, "f.onnx", &options, g, err);
    build_release(&b);
    return status;
}

static void refused(const char *text, const char *size, enum status status, const char *says)
{
    struct graph *g = NULL;
    FAILS(status, says, import_sized, text, &size, size != NULL, &g);
    assert_null(g);
}

/* Bug: the first dimension of a vector was taken for the batch, which is the one of the ids. */
TEST(a_length_that_leads_one_shape_and_follows_in_another_is_no_batch)
{
    static const char *const sizes[] = {"sequence=5"}, *const both[] = {"batch=3", "sequence=5"};
    struct graph *g;
    batch_is("in ids i64[batch,4]; in positions i64[4]; y = Add(ids positions); "
             "out y i64[batch,4]",
             1);
    refused(two_open, NULL, STATUS_UNSUPPORTED,
            "dimension 1 (\"sequence\") is left open by the file; give its size: "
            "f.onnx:sequence=N");
    MUST(import_sized, two_open, sizes, 1, &g);
    assert_int_equal(g->values[g->outputs[0]].shape.dim[0], 1);
    assert_int_equal(g->values[g->outputs[0]].shape.dim[1], 5);
    graph_free(g);
    MUST(import_sized, two_open, both, 2, &g);
    assert_int_equal(g->values[g->outputs[0]].shape.dim[0], 3);
    graph_free(g);
    /* Nothing else can be the batch here. */
    batch_is("in a f32[nodes,nodes]; y = Relu(a); out y f32[nodes,nodes]", 1);
}

TEST(a_size_that_has_no_name_is_called_after_its_input)
{
    static const char text[] = "in x f32[N,-1]; y = Relu(x); out y f32[N,-1]";
    static const char *const sizes[] = {"x.1=6"};
    struct graph *g;
    refused(text, NULL, STATUS_UNSUPPORTED, "give its size: f.onnx:x.1=N");
    MUST(import_sized, text, sizes, 1, &g);
    assert_int_equal(g->values[g->outputs[0]].shape.dim[1], 6);
    graph_free(g);
}

TEST(a_size_that_is_given_is_one_that_the_file_leaves_open)
{
    static const char leading[] = "in x f32[N]; y = Relu(x); out y f32[N]";
    static const char fixed[] = "in x f32[2,3]; y = Relu(x); out y f32[2,3]";
    refused(two_open, "sequence", STATUS_UNSUPPORTED, "is left open by the file");
    refused(leading, "M=2", STATUS_FAILED, "open are N");
    refused(leading, "N", STATUS_FAILED, "should be DIMENSION=SIZE");
    refused(leading, "N=0", STATUS_FAILED, "must be a positive number");
    refused(leading, "N=2x", STATUS_FAILED, "must be a positive number");
    refused(fixed, "x.1=3", STATUS_FAILED, "the file fixes all");
}

TEST(sizes_stand_in_the_word_after_the_path)
{
    assert_int_equal(model_file_path("m.onnx"), 6);
    assert_int_equal(model_file_path("m.ONNX:L=3"), 6);
    assert_int_equal(model_file_path("a.onnx:b/m.onnx"), 15);
    assert_int_equal(model_file_path("a.onnx:b/m.onnx:L=3,M=4"), 15);
    assert_int_equal(model_file_path(".onnx"), 0);
    assert_int_equal(model_file_path("ncf:users=3"), 0);
    assert_int_equal(model_file_path("m.onnx.data"), 0);
    assert_true(point_same_model("m.onnx:L=3,M=4", "m.onnx:M=4,L=3"));
    assert_false(point_same_model("m.onnx:L=3", "m.onnx:L=4"));
    assert_false(point_same_model("m.onnx:L=3", "n.onnx:L=3"));
}

/* ---- plans ---- */

static void write_model(char *path, size_t size, const char *text)
{
    struct builder b = {0};
    snprintf(path, size, "/tmp/ridge-sizes-%ld.onnx", (long)getpid());
    build_file(&b, text);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(b.bytes, 1, b.size, file), b.size);
    fclose(file);
    build_release(&b);
}

TEST(sizes_of_a_file_are_parameters_of_its_points)
{
    char path[64], spec[96], first[17];
    struct plan plan;
    struct plan_overrides o = {.cpus = 4};
    write_model(path, sizeof(path), two_open);
    snprintf(spec, sizeof(spec), "%s:sequence=5", path);
    char *words[] = {spec};
    MUST(plan_from_words, words, 1, &o, &plan);
    assert_string_equal(plan.points[0].workload, path);
    assert_string_equal(plan.points[0].params, "sequence=5");
    assert_string_equal(plan.points[0].spec, spec);
    assert_int_equal(plan.points[0].batch, 1);
    snprintf(first, sizeof(first), "%s", plan.points[0].id);
    plan_release(&plan);
    snprintf(spec, sizeof(spec), "%s:sequence=6", path);
    MUST(plan_from_words, words, 1, &o, &plan);
    assert_string_not_equal(plan.points[0].id, first);
    plan_release(&plan);
    unlink(path);
}

static void word_refused(const char *path, const char *sizes, const char *says)
{
    char word[96];
    char *words[] = {word};
    struct plan plan;
    struct plan_overrides o = {.cpus = 4};
    snprintf(word, sizeof(word), "%s:%s", path, sizes);
    FAILS(STATUS_FAILED, says, plan_from_words, words, 1, &o, &plan);
}

TEST(a_plan_refuses_sizes_that_the_file_does_not_leave_open)
{
    char path[64];
    write_model(path, sizeof(path), two_open);
    word_refused(path, "sequenc=5", "did you mean \"sequence\"?");
    word_refused(path, "batch=5", "\"batch\" is the batch: give it with --batch");
    word_refused(path, "sequence=0", "sequence");
    word_refused(path, "sequence", "should be PARAMETER=VALUE");
    unlink(path);
}

/* Of two batches neither is the one that --batch means alone. */
TEST(each_of_two_batches_can_be_given)
{
    char path[64], spec[96];
    struct plan plan;
    struct plan_overrides o = {.cpus = 4};
    write_model(path, sizeof(path),
                "in x f32[N,3]; in y f32[M,3]; z = Gemm(x y) transB=1; out z f32[N,M]");
    snprintf(spec, sizeof(spec), "%s:M=7,N=5", path);
    char *words[] = {spec};
    MUST(plan_from_words, words, 1, &o, &plan);
    assert_int_equal(plan.points[0].batch, 5);
    assert_string_equal(plan.points[0].params, "M=7,N=5");
    plan_release(&plan);
    unlink(path);
}

TEST(a_file_without_a_given_batch_has_the_id_of_its_own)
{
    char path[64];
    struct plan plain, given;
    struct plan_overrides o = {.cpus = 4}, two = {.cpus = 4, .batch = "2"};
    (void)state;
    char *words[] = {path};
    write_model(path, sizeof(path), "in x f32[2,3]; y = Relu(x); out y f32[2,3]");
    MUST(plan_from_words, words, 1, &o, &plain);
    MUST(plan_from_words, words, 1, &two, &given);
    unlink(path);
    assert_int_equal(plain.points[0].batch, 2);
    assert_string_equal(plain.points[0].id, given.points[0].id);
    plan_release(&plain);
    plan_release(&given);
}
