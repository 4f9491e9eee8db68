/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of training: a step takes what was planned, as the operating system counts it, and
 * allocates nothing; recomputation takes a quarter of the activations. */
#include <malloc.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/graph/op.h"
#include "harness/campaign/phase_split.h"
#include "harness/watch/resident.h"
#include "tests/lib/unit.h"
#include "workloads/training.h"

struct trained {
    struct graph *g;
    struct exe *exe;
};

static struct graph *step_of(const char *spec, int64_t batch, bool recompute)
{
    const struct train_options options = {.recompute = recompute};
    const struct training *training;
    struct graph *g;
    MUST(workload_open_training, spec, batch, &options, &g, &training);
    return g;
}

static struct trained compile(const char *spec, int64_t batch, bool recompute)
{
    struct exe_options options = {
        .threads = 2, .isa = isa_detect(), .no_tune = true, .providers = "native"};
    struct trained s = {.g = step_of(spec, batch, recompute)};
    MUST(exe_new, s.g, &options, &s.exe);
    return s;
}

static void release(struct trained *s)
{
    exe_free(s->exe);
    graph_free(s->g);
}

/* Inputs and states, which lie beside the arena and the weights. */
static double beside_arena(const struct graph *g)
{
    double bytes = 0;
    for (int k = 0; k < g->input_count; k++) {
        const struct value *value = &g->values[g->inputs[k]];
        bytes += (double)shape_count(&value->shape) * (double)dtype_size(value->dtype);
    }
    return bytes;
}

TEST(a_step_takes_what_was_planned)
{
    static const struct {
        const char *spec;
        int64_t batch;
    } cases[] = {{"densenet121", 2}, {"resnet50", 1}, {"din", 512}, {"ncf", 4096}};
    /* Of less than 100 MB the program's own pages, 4 to 7 MB that are in no plan, are too large a
     * share: din at 128 was 8.4 to 10.8 % above it. */
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        bool known = resident_reset();
        double before = resident_peak();
        struct trained s = compile(cases[k].spec, cases[k].batch, false);
        exe_run(s.exe);
        double used = resident_peak() - before;
        struct exe_memory memory = exe_memory(s.exe);
        double planned =
            (double)memory.arena_bytes + (double)memory.weight_bytes + beside_arena(s.g);
        print_message("# %s: planned %.1f MB, used %.1f MB\n", cases[k].spec, planned * 1e-6,
                      used * 1e-6);
        if (known && !UNIT_SANITIZED)
            assert_true(used > 0.9 * planned && used < 1.1 * planned);
        release(&s);
    }
}

TEST(a_step_allocates_nothing)
{
    static const char *const specs[] = {"resnet50:image=64,classes=4,thin=8",
                                        "ncf:users=64,items=48", "din:items=60,history=8",
                                        "crnn:width=48,filters=8,units=32"};
    for (int k = 0; k < ARRAY_COUNT(specs); k++) {
        struct trained s = compile(specs[k], 4, false);
        exe_run(s.exe);
        for (int n = 0; n < exe_step_count(s.exe); n++) /* a reference may allocate */
            if (strcmp(exe_step_at(s.exe, n).kernel->provider, "reference") == 0)
                fail_msg("%s: node \"%s\" (%s) falls to the reference", specs[k],
                         exe_step_at(s.exe, n).node->name, exe_step_at(s.exe, n).node->op->name);
        struct mallinfo2 before = mallinfo2();
        for (int n = 0; n < 10; n++)
            exe_run(s.exe);
        struct mallinfo2 after = mallinfo2();
        assert_int_equal(before.uordblks, after.uordblks);
        assert_int_equal(before.hblks, after.hblks);
        release(&s);
    }
}

/* Twelve layers of BERT, thinner than the published ones. */
TEST(recomputation_keeps_a_quarter_for_a_third_more_work)
{
    struct phase_sums sums[2];
    double arena[2], flops[2];
    for (int k = 0; k < 2; k++) {
        struct trained s = compile("bert_base:tokens=64,width=192,heads=3,vocabulary=512", 16, k);
        phase_split(s.exe, NULL, &sums[k]);
        arena[k] = (double)exe_memory(s.exe).arena_bytes;
        flops[k] = 0;
        for (int p = 0; p < PHASE_COUNT; p++)
            flops[k] += sums[k].flops[p];
        release(&s);
    }
    print_message(
        "# kept %.1f and %.1f MB, arena %.1f and %.1f MB, gradients %.1f MB, %.2f x work\n",
        sums[0].activation_bytes * 1e-6, sums[1].activation_bytes * 1e-6, arena[0] * 1e-6,
        arena[1] * 1e-6, sums[1].gradient_bytes * 1e-6, flops[1] / flops[0]);
    assert_true(sums[1].activation_bytes < sums[0].activation_bytes / 4);
    assert_true(arena[1] < arena[0] / 2); /* gradients of weights are computed when they can be */
    assert_true(flops[1] < 1.35 * flops[0]);
}
