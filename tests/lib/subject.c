/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/subject.h"

#include <math.h>

#include "engine/ops/family/narrow.h"
#include "engine/reference/reference.h"
#include "tests/lib/compare.h"
#include "tests/lib/op_case.h"
#include "tests/lib/posts.h"

/* ---- what is expected ---- */

/* As the type of the output holds it: an overflow is an infinity, an integer wraps. */
static enum status round_to_type(struct graph *g, struct ref_tensor *want, struct error *err)
{
    struct ref_tensor exact = *want;
    void *rounded = arena_array(&g->arena, (size_t)exact.count + 1, 8);
    if (!rounded)
        return FAIL_NO_MEMORY(err);
    ref_to_data(&exact, rounded);
    enum status status = ref_from_data(want, exact.dtype, &exact.shape, rounded, err);
    ref_release(&exact);
    return status;
}

static double norm_of(const struct ref_tensor *t)
{
    double norm = 0;
    for (int64_t k = 0; t->f && k < t->count; k++)
        if (isfinite(t->f[k]))
            norm = fmax(norm, fabs(t->f[k]));
    return norm;
}

/* The reference's result of the case without posts, then the posts. */
static enum status expect(struct subject *s, struct error *err)
{
    int outputs = s->g->output_count;
    s->want = arena_array(&s->g->arena, (size_t)outputs + 1, sizeof(*s->want));
    if (!s->want)
        return FAIL_NO_MEMORY(err);
    struct graph *plain = op_case_graph_in(s->op, s->c, s->floats, err);
    if (!plain)
        return err->code;
    enum status status = reference_run(plain, NULL, s->want, NULL, err);
    graph_free(plain);
    TRY(status);
    if (s->posts)
        s->norm = posts_slope(s->g) * norm_of(&s->want[0]);
    TRY(posts_expect(s->g, &s->want[0], err));
    for (int k = 0; k < outputs; k++)
        TRY(round_to_type(s->g, &s->want[k], err));
    return STATUS_OK;
}

/* Whether anything becomes `floats`; a case that names its types is the same for all of them. */
static bool has_floats(const struct subject *s)
{
    if (s->floats == DTYPE_F32)
        return true;
    struct error err = {0};
    struct graph *usual = op_case_graph_in(s->op, s->c, DTYPE_F32, &err);
    bool same = usual != NULL && usual->value_count == s->g->value_count;
    for (int v = 0; same && v < usual->value_count; v++)
        same = s->g->values[v].dtype == usual->values[v].dtype;
    graph_free(usual);
    return !same;
}

enum status subject_open(struct subject *s, int posts, struct error *err)
{
    s->posts = posts == NONE ? NULL : posts_name(posts);
    s->g = op_case_graph_in(s->op, s->c, s->floats, err);
    if (!s->g)
        return err->code;
    if (!has_floats(s))
        return UNSUPPORTED(err, "nothing is %s", dtype_name(s->floats));
    if (posts != NONE)
        TRY(posts_add(posts, s->g, err));
    return expect(s, err);
}

void subject_close(struct subject *s)
{
    for (int k = 0; s->want && k < s->g->output_count; k++)
        ref_release(&s->want[k]);
    graph_free(s->g);
    *s = (struct subject){0};
}

/* ---- judging ---- */

/* What rounding to the type costs is always allowed; tf32 rounds both factors to 10 bits. */
static double tolerance_of(const struct subject *s, double own, enum dtype dtype)
{
    double bound = s->op->tolerance > 0 ? s->op->tolerance : 1e-5;
    bound = own > bound ? own : bound;
    bound = s->c->tolerance > bound ? s->c->tolerance : bound;
    double tf32 = s->tf32 && dtype == DTYPE_F32 ? 2 * narrow_tolerance(s->op, DTYPE_F16) : 0;
    return bound + narrow_tolerance(s->op, dtype) + tf32;
}

/* Outputs of data-dependent size: only as many rows as the count beside them says. */
static void limit_rows(const struct subject *s, int output, struct comparison *c)
{
    const struct value *value = &s->g->values[s->g->outputs[output]];
    c->axis = NONE;
    for (int k = 0; value->count != NONE && k < s->g->output_count; k++) {
        if (s->g->outputs[k] == value->count) {
            c->axis = value->count_axis;
            c->rows = s->want[k].i[0];
        }
    }
}

static enum status check(const struct subject *s, struct comparison *c, const void *data,
                         double own, double *part, struct error *err)
{
    struct ref_tensor got;
    double error = 0;
    c->tolerance = tolerance_of(s, own, c->want->dtype);
    TRY(ref_from_data(&got, c->want->dtype, &c->want->shape, data, err));
    c->got = &got;
    enum status status = compare_tensors(c, &error, err);
    *part = error / c->tolerance;
    c->got = NULL;
    ref_release(&got);
    return status;
}

enum status subject_check(const struct subject *s, int output, const void *data, double own,
                          double *part, struct error *err)
{
    struct comparison c = {.want = &s->want[output], .norm = output == 0 ? s->norm : 0};
    limit_rows(s, output, &c);
    enum status status = check(s, &c, data, own, part, err);
    return status == STATUS_OK ? status : error_context(err, "output %d", output);
}

/* The loosest bound among what the passes made of the node. */
static double bound_of_steps(const struct exe *exe)
{
    double bound = 0;
    for (int k = 0; k < exe_step_count(exe); k++) {
        struct exe_step step = exe_step_at(exe, k);
        double op = step.node->op->tolerance, kernel = step.kernel->rel_error;
        bound = op > bound ? op : bound;
        bound = kernel > bound ? kernel : bound;
    }
    return bound;
}

enum status subject_check_exe(const struct subject *s, int output, const struct exe *exe,
                              double *part, struct error *err)
{
    const struct graph *g = exe_graph(exe);
    const struct shape *shape = &g->values[g->outputs[output]].shape;
    const struct ref_tensor *want = &s->want[output];
    double own = bound_of_steps(exe);
    if (!s->op->count_output || shape_equal(shape, &want->shape))
        return subject_check(s, output, exe_output(exe, output), own, part, err);
    struct ref_tensor cropped;
    TRY(crop_tensor(want, shape, &cropped, err));
    struct comparison c = {.want = &cropped, .axis = NONE};
    enum status status = check(s, &c, exe_output(exe, output), own, part, err);
    ref_release(&cropped);
    return status == STATUS_OK ? status : error_context(err, "output %d, cropped", output);
}
