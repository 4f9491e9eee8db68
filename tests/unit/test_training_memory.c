/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of training: a step takes what was planned, as the operating system counts it, and
 * allocates nothing. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/graph/op.h"
#include "harness/watch/resident.h"
#include "tests/lib/unit.h"
#include "workloads/training.h"

struct subject {
    struct graph *g;
    struct exe *exe;
};

static struct graph *step_of(const char *spec, int64_t batch)
{
    const struct train_options options = {.micro_batches = 1};
    const struct training *training;
    struct graph *g;
    struct error err;
    if (workload_open_training(spec, batch, &options, &g, &training, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    return g;
}

static struct subject compile(const char *spec, int64_t batch)
{
    struct exe_options options = {
        .threads = 2, .isa = isa_detect(), .no_tune = true, .providers = "native"};
    struct subject s = {.g = step_of(spec, batch)};
    struct error err;
    if (exe_new(s.g, &options, &s.exe, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    return s;
}

static void release(struct subject *s)
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
    } cases[] = {{"densenet121", 2}, {"resnet50", 1}, {"din", 128}, {"ncf", 2048}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        bool known = resident_reset();
        double before = resident_peak();
        struct subject s = compile(cases[k].spec, cases[k].batch);
        exe_run(s.exe);
        double used = resident_peak() - before;
        struct exe_memory memory = exe_memory(s.exe);
        double planned =
            (double)memory.arena_bytes + (double)memory.weight_bytes + beside_arena(s.g);
        print_message("# %s: planned %.1f MB, used %.1f MB\n", cases[k].spec, planned * 1e-6,
                      used * 1e-6);
        if (known && !getenv("ASAN_OPTIONS") && !getenv("TSAN_OPTIONS"))
            assert_true(used > 0.9 * planned && used < 1.1 * planned);
        release(&s);
    }
}

TEST(a_step_allocates_nothing)
{
    static const char *const specs[] = {"resnet50:image=64,classes=4,thin=8",
                                        "ncf:users=64,items=48", "din:items=60,history=8",
                                        "crnn:width=48,filters=8,units=32"};
    for (size_t k = 0; k < sizeof(specs) / sizeof(specs[0]); k++) {
        struct subject s = compile(specs[k], 4);
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
