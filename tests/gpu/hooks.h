/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of plug-ins ask a kernel, by the hooks that the engine calls. A refusal fails the
 * test.
 */
#ifndef TESTS_GPU_HOOKS_H
#define TESTS_GPU_HOOKS_H

#include "engine/graph/kernel.h"

int hooks_variants(const struct kernel *kernel, const struct kernel_query *q);
void hooks_describe(const struct kernel *kernel, const struct kernel_query *q, int variant,
                    char *text, size_t size);
size_t hooks_workspace(const struct kernel *kernel, const struct kernel_query *q, int variant);
/* Planned and prepared; kernel_release it. packed_bytes may be NULL. */
struct kernel_state *hooks_prepare(const struct kernel *kernel, const struct kernel_query *q,
                                   int variant, size_t *packed_bytes);

/* Everything that an executable does with the last variant of a kernel, to the first failure. */
enum status hooks_run(const struct kernel *kernel, const struct kernel_query *q,
                      const struct kernel_args *args, int launches, struct error *err);

#endif
