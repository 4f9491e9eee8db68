/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run/kernels.h"

#include "engine/reference/reference.h"
#include "engine/run/plugin.h"

#define X(name) extern const struct kernel kernel_##name;
#include "kernel_list.inc"
#undef X

static const struct kernel *const natives[] = {
#define X(name) &kernel_##name,
#include "kernel_list.inc"
#undef X
    NULL, /* the list may be empty */
};

enum { NATIVE_COUNT = ARRAY_COUNT(natives) - 1 };

int kernel_count(void)
{
    return NATIVE_COUNT + plugin_kernel_count() + 1;
}

const struct kernel *kernel_at(int index)
{
    if (index < NATIVE_COUNT)
        return natives[index];
    index -= NATIVE_COUNT;
    return index < plugin_kernel_count() ? plugin_kernel_at(index) : &kernel_reference;
}
