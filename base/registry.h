/* SPDX-License-Identifier: Apache-2.0
 *
 * A file registers what it defines by its name. `engine/ops/relu.c` ends in
 *
 *     REGISTER(op, relu) = { .name = "Relu", ... };
 *
 * which defines `const struct op op_relu`. The Makefile lists the folder into
 * build/<config>/gen/op_list.inc, one X(relu) per file, and engine/graph/op.c includes that list to
 * make a constant array. A file whose symbol differs from its name is a link error that says so.
 */
#ifndef BASE_REGISTRY_H
#define BASE_REGISTRY_H

#define REGISTER(kind, name)                                                                       \
    extern const struct kind kind##_##name;                                                        \
    const struct kind kind##_##name

#define ARRAY_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

#endif
