/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/hooks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct kernel_state *planned(const struct kernel *kernel, const struct kernel_query *q,
                                    int variant)
{
    struct kernel_state *state;
    struct error err = {0};
    if (kernel_plan(kernel, q, variant, &state, &err) != STATUS_OK)
        fail_msg("%s, variant %d: %s", kernel->name, variant, err.message);
    return state;
}

int hooks_variants(const struct kernel *kernel, const struct kernel_query *q)
{
    struct kernel_state *state = planned(kernel, q, 0);
    int variants = kernel_variants(kernel, state);
    kernel_release(kernel, state);
    return variants;
}

void hooks_describe(const struct kernel *kernel, const struct kernel_query *q, int variant,
                    char *text, size_t size)
{
    struct kernel_state *state = planned(kernel, q, variant);
    kernel_describe(kernel, state, text, size);
    kernel_release(kernel, state);
}

size_t hooks_workspace(const struct kernel *kernel, const struct kernel_query *q, int variant)
{
    struct kernel_state *state = planned(kernel, q, variant);
    size_t bytes = kernel_workspace(kernel, state);
    kernel_release(kernel, state);
    return bytes;
}

struct kernel_state *hooks_prepare(const struct kernel *kernel, const struct kernel_query *q,
                                   int variant, size_t *packed_bytes)
{
    struct kernel_state *state = planned(kernel, q, variant);
    struct error err = {0};
    size_t bytes;
    if (kernel_prepare(kernel, q, state, &bytes, &err) != STATUS_OK)
        fail_msg("%s, variant %d: %s", kernel->name, variant, err.message);
    if (packed_bytes)
        *packed_bytes = bytes - kernel->state_size;
    return state;
}

enum status hooks_run(const struct kernel *kernel, const struct kernel_query *q,
                      const struct kernel_args *args, int launches, struct error *err)
{
    struct kernel_state *state;
    char text[128];
    size_t bytes;
    TRY(kernel_plan(kernel, q, 0, &state, err));
    int variants = kernel_variants(kernel, state);
    kernel_release(kernel, state);
    TRY(kernel_plan(kernel, q, variants - 1, &state, err));
    kernel_describe(kernel, state, text, sizeof(text));
    kernel_workspace(kernel, state);
    enum status status = kernel_prepare(kernel, q, state, &bytes, err);
    for (int k = 0; k < launches && status == STATUS_OK; k++)
        kernel_launch(kernel, q, state, args);
    kernel_release(kernel, state);
    return status;
}
